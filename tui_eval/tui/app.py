"""The app put together, and the way to open it."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import App
from textual.screen import Screen

from tui_eval.config.project import find_root, kept_by_link, state_dir
from tui_eval.guard import trust_store
from tui_eval.store.run_folders import Store, project_of_run
from tui_eval.store.shard_runs import is_looked_at
from tui_eval.tui import palette
from tui_eval.tui.background import Tasks
from tui_eval.tui.controllers.appearance import Appearance
from tui_eval.tui.controllers.put_together import Controllers
from tui_eval.tui.engines import Engines
from tui_eval.tui.keys import bindings, elsewhere
from tui_eval.tui.memory import ProjectMemory
from tui_eval.tui.screens.screen_names import get_ready
from tui_eval.tui.services import Core
from tui_eval.tui.settings import read_settings
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.text.formatting import Symbols
from tui_eval.tui.terminal.editor import Editor
from tui_eval.tui.terminal.frame_app import FrameApp
from tui_eval.tui.terminal.gc_pauses import QUIET, Collecting
from tui_eval.tui.terminal.terminal_guard import (
    EXIT_BY_SIGNAL,
    has_unicode,
    on_signals,
    terminal_gone,
    terminal_problem,
)
from tui_eval.tui.terminal.type_ahead import TypingAhead

if TYPE_CHECKING:
    from tui_eval.engine.service.client import EngineClient

ENGINE_AFTER = 0.5
"""Seconds after the first paint at which the engine is started, so that it is warm when a case is run; a
run asked for before that starts it."""
LOOK_AT_TERMINAL = 2.0
"""Seconds between two looks whether the terminal is still there."""


class EvalApp(TypingAhead, FrameApp, inherit_bindings=False):
    """See `run_app`. Owns the services and the controllers; what a key does is in the controllers."""

    TITLE = "tui-eval"
    BINDINGS = bindings("everywhere")
    COMMANDS = {palette.Actions, palette.Cases, palette.Manual}
    COMMAND_PALETTE_BINDING = "ctrl+p"
    CSS = """
    Toast { padding: 0 1; max-width: 60; }
    ModalScreen, CommandPalette { background: transparent; }
    CommandPalette SearchIcon { display: none; }
    CommandPalette LoadingIndicator.--visible { display: none; }
    CommandPalette > Vertical { margin-top: 2; max-width: 90; }
    CommandPalette #--input { border: none; padding: 0 1; }
    CommandPalette CommandInput, CommandPalette CommandInput:focus { border: none; height: 1; padding: 0 1; }
    CommandPalette CommandList { border: none; text-wrap: nowrap; text-overflow: ellipsis; }
    CommandPalette CommandList > .option-list--option { text-style: none; }
    Input > .input--placeholder { color: $text-muted; }
    CommandPalette CommandList:ansi { border-bottom: solid ansi_default; }
    CommandPalette CommandList:ansi > .option-list--option-highlighted { text-style: bold underline; }
    Input:ansi > .input--cursor, TextArea:ansi:focus .text-area--cursor { color: ansi_default; background: ansi_default; text-style: reverse; }
    """

    def __init__(
        self,
        paths: Sequence[str | Path] = (),
        *,
        config_file: Path | None = None,
        trust: bool = False,
        open_run: Path | None = None,
        root: Path | None = None,
        engine: EngineClient | None = None,
        unicode: bool | None = None,
    ) -> None:
        no_color = "NO_COLOR" in os.environ  # Textual takes it out of the environment
        symbols = Symbols(has_unicode() if unicode is None else unicode)
        super().__init__(unicode=symbols.unicode, no_color=no_color)
        here = project_of_run(open_run) if open_run is not None and not paths else None
        wanted = [Path(os.path.abspath(path)) for path in paths] or [here or Path.cwd()]
        self.state = AppState(root if root is not None else find_root(wanted, config_file)[0])
        if open_run is not None:
            Store(self.state.root).welcome(open_run)
        self.state.config_file = config_file
        self.state.trusted = trust
        self.state.agreed = trust_store.agreed(self.state.root)
        self._open_run = open_run
        notices = self.notices
        self._core = core = Core(
            state=self.state,
            notices=notices,
            tasks=Tasks(self, notices),
            engines=Engines(self.state, notices, engine),
            settings=read_settings(),
            memory=ProjectMemory(self.state.root),
            symbols=symbols,
            editor=Editor(self),
        )
        self._collecting = Collecting(lambda: self.keys_taken)
        self.appearance = Appearance(self, core, no_color=no_color)
        made = Controllers(self, core, wanted, self.appearance, lambda: self.keys_taken == 0)
        self.handlers, self.services = made.handlers, made.services
        self.places, self.suites, self.saved = made.places, made.suites, made.saved
        self.runs, self.front_run, self.watching = made.runs, made.front_run, made.watching
        # Nothing of shards that are looked at can be run.
        self.suites.asks_when_read = open_run is None or not is_looked_at(open_run)
        self._shards = made.shards
        self._quit, self.other_engines, self.mouse = made.quit, made.other_engines, made.mouse
        self.handlers.add({"redraw": self.action_redraw})
        self.appearance.begin()

    # -- keys

    async def action_do(self, key_id: str) -> None:
        """Do what the key of this id does."""
        await self.handlers.do(key_id)

    def on_key(self, event: events.Key) -> None:
        """A key that does something in another place only says so."""
        screen = self.screen
        if (
            not screen.is_modal
            and event.key not in screen.active_bindings
            and (words := elsewhere(event.key))
        ):
            self.notices.say(words)

    def action_command_palette(self) -> None:
        """Textual's own way to it."""
        self.places.show_palette()

    async def action_quit(self) -> None:
        """ctrl+q and the palette's quit."""
        self._quit.quit()

    def background_failed(self, error: Exception) -> None:
        """A thread's work ended with an exception."""
        self.notices.failed(error)

    # -- beginning and end

    def on_mount(self) -> None:
        """Paint first; read and start things after it."""
        on_signals(self._quit.leave_by_signal)
        if not self.is_headless:
            self.set_interval(LOOK_AT_TERMINAL, self._look_at_terminal)
        self._collecting.begin()
        self.set_interval(QUIET, self._collecting.look)
        self.appearance.take_keys()
        self.mouse.take_settings()
        self.call_after_refresh(self._begin)

    def _look_at_terminal(self) -> None:
        if terminal_gone():
            self.terminal_lost()

    def terminal_lost(self) -> None:
        """The terminal went away."""
        self._quit.leave_by_signal(EXIT_BY_SIGNAL[signal.SIGHUP])

    def get_default_screen(self) -> Screen[Any]:
        """The suites; the one screen that is never closed."""
        return self.suites.screen()

    def _begin(self) -> None:
        self.appearance.report()
        kept = state_dir(self.state.root)
        if kept.parent != self.state.root:
            why = (
                "has a link for .tui-eval, which is not followed"
                if kept_by_link(self.state.root)
                else "cannot be written"
            )
            self.notices.say(f"{self.state.shown_root} {why}: its runs are kept in {kept}")
        self.suites.load()
        if self._open_run is not None:
            self._shards.leave()
            self.front_run.begin_with(self._open_run)
            self.places.show_run()
        else:
            self.front_run.follow_what_runs(left_steps=True)
        self.other_engines.begin()
        self.begun = True
        # The engine's start would take the processor from the reading of the suites.
        self.set_timer(ENGINE_AFTER, self._get_ready)

    def _get_ready(self) -> None:
        """What the first run and the first case opened would otherwise wait for."""
        self._core.tasks.soon(self._core.engines.own.start())
        self._core.tasks.thread(partial(get_ready, "case", "run"), name="imports")

    def last_words(self) -> str:
        """What else to say after a crash."""
        return "The run goes on; `tui-eval attach` comes back to it." if self.runs.running else ""

    async def on_unmount(self) -> None:
        """The process collects as it did; runs and their engines go on by themselves."""
        self._collecting.end()
        self.saved.stop()
        self._shards.stop()
        self.front_run.stop()
        self.other_engines.stop()
        await self._core.engines.close()


def run_app(
    paths: Sequence[str | Path],
    *,
    config_file: Path | None = None,
    local: bool = False,
    trust: bool = False,
    open_run: Path | None = None,
) -> int:
    """Show the app until the person leaves it.

    Args:
        paths: Suites (files or folders); none: the current folder.
        config_file: `--config`.
        local: A fast terminal: Textual's own frame rate (`TUI_EVAL_LOCAL=1` before the first import of
            this package also leaves its animations).
        trust: The suites may run code.
        open_run: The folder of a run to open.

    Returns:
        The exit code: 0, 128 + signal (SIGHUP: the terminal went away), 3 after a crash, 4 where there is
        no terminal.
    """
    problem = terminal_problem()
    if problem:
        print(problem, file=sys.stderr)
        return 4
    if local:
        import textual.screen

        textual.screen.UPDATE_PERIOD = 1 / 60  # type: ignore[misc]
    app = EvalApp(paths, config_file=config_file, trust=trust, open_run=open_run)
    threading.excepthook = app.thread_failed
    try:
        app.run(mouse=False)
    except OSError as error:
        # The terminal went away while the last words were being said to it.
        if error.errno != errno.EIO:
            raise
        return 3 if app.crash is not None else 128 + signal.SIGHUP
    finally:
        threading.excepthook = threading.__excepthook__
        stop_reading(app)
    if app.crash is not None:
        return 3
    return app.return_code or 0


def stop_reading(app: App[Any]) -> None:
    """End Textual's thread that reads keys, once the app has ended.

    Where the terminal went away meanwhile, Textual 8.2.8 may leave it reading nothing, over and over, and the
    process stays for it.
    """
    ended = getattr(app._driver, "exit_event", None)
    if isinstance(ended, Event):
        ended.set()
