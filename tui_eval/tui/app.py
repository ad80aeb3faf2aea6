"""The app put together, and the way to open it."""

from __future__ import annotations

import errno
import signal
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from textual.app import InvalidThemeError

from tui_eval.config.project import kept_by_link, state_dir
from tui_eval.model import Suite
from tui_eval.tui import themes
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.disk_trouble import DiskTrouble
from tui_eval.tui.editing_actions import EditingActions
from tui_eval.tui.first_suite import Beginning
from tui_eval.tui.keys import remap
from tui_eval.tui.loaders.suites_loader import Loader
from tui_eval.tui.noting_actions import NotingActions
from tui_eval.tui.quit import Leaving, stop_reading
from tui_eval.tui.run_actions import RunActions
from tui_eval.tui.run_desk import RunDesk
from tui_eval.tui.runs_actions import RunsActions
from tui_eval.tui.saving_actions import SavingActions
from tui_eval.tui.screens.suites_screen import SuitesScreen
from tui_eval.tui.settings import read_settings
from tui_eval.tui.state.lists.case_tree import SORTS
from tui_eval.tui.terminal.gc_pauses import QUIET, Collecting
from tui_eval.tui.terminal.terminal_guard import on_signals, terminal_problem
from tui_eval.tui.terminal.type_ahead import TypingAhead
from tui_eval.tui.watch_actions import WatchActions

ENGINE_AFTER = 0.5
"""Seconds after the first paint at which the engine is started, so that it is warm when a case is run; a
run asked for before that starts it."""


class EvalApp(
    TypingAhead,
    WatchActions,
    SavingActions,
    NotingActions,
    RunsActions,
    RunActions,
    EditingActions,
    Beginning,
    DiskTrouble,
    Leaving,
):
    """See `run_app`. Its parts: `navigation`, `suites_reading`, `following`, `run_actions`,
    `editing_actions`, `leaving`; a further part is a class like these, named here."""

    def __init__(self, paths: Sequence[str | Path] = (), **options: Any) -> None:
        super().__init__(paths, **options)
        self.loader = Loader(self, self.paths, self.config_file)
        self.desk = RunDesk(self)
        self._collecting = Collecting(lambda: self._key_number)
        # Before anything is styled: a theme set later styles everything a second time.
        remembered = self.settings.theme or str(self._memory.get("theme", ""))
        self._take_theme(remembered)

    def _take_theme(self, name: str) -> None:
        wanted = themes.first_theme(name, no_color=self._no_colours is not None)
        if wanted == self.theme and not self.is_running:
            # TEXTUAL_THEME names it: Textual took another one's colours, since ours were not known to it yet.
            self.set_reactive(EvalApp.theme, "textual-dark")
        try:
            self.theme = wanted
        except InvalidThemeError:
            there = ", ".join(sorted(self.available_themes))
            self.settings.problems.append(f"theme: there is no {wanted}; there are {there}")
            self.theme = themes.DARK.name

    def take_settings(self) -> None:
        """The settings file has changed: what it says holds from now on."""
        before = self.settings.theme
        self.settings = read_settings()
        if self.settings.theme != before:
            self._take_theme(self.settings.theme)
        self.set_keymap(self.settings.keymap)
        remap(self.settings.keymap)
        for problem in self.settings.problems:
            self.problem(problem)

    def get_css_variables(self) -> dict[str, str]:
        """Textual's; what is raised over a surface (the line of the cursor) is lighter than it, which over a
        light one nobody sees: there it is darker."""
        variables = super().get_css_variables()
        if not self.current_theme.dark:
            variables["surface-lighten-2"] = variables["panel-darken-1"]
        return variables

    def on_mount(self) -> None:
        """Paint first; read and start things after it."""
        on_signals(self._leave_by_signal)
        self._collecting.begin()
        self.set_interval(QUIET, self._collecting.look)
        self.set_keymap(self.settings.keymap)
        remap(self.settings.keymap)
        self.call_after_refresh(self._begin)

    async def on_unmount(self) -> None:
        """The process collects as it did."""
        self._collecting.end()

    def get_default_screen(self) -> SuitesScreen:
        """The suites, as they were looked at the last time; the one screen that is never closed."""
        screen = SuitesScreen()
        screen.view.folded = {str(key) for key in self._memory.get("folded", []) if isinstance(key, str)}
        screen.view.failures_first = bool(self._memory.get("failures_first", False))
        screen.view.reverse = bool(self._memory.get("reverse", False))
        if self._memory.get("sort") in SORTS:
            screen.view.sort = str(self._memory["sort"])
        return screen

    def _begin(self) -> None:
        for problem in self.settings.problems:
            self.problem(problem)
        kept = state_dir(self.state.root)
        if kept.parent != self.state.root:
            why = (
                "has a link for .tui-eval, which is not followed"
                if kept_by_link(self.state.root)
                else "cannot be written"
            )
            self.say(f"{self.shown_root} {why}: its runs are kept in {kept}")
        self.loader.load()
        if self._open_run is not None:
            self.follow(self._open_run)
            self.action_show_run()
        self.begun = True
        # The engine's start would take the processor from the reading of the suites.
        self.set_timer(ENGINE_AFTER, self._get_ready)

    def _get_ready(self) -> None:
        """What the first run and the first case opened would otherwise wait for."""
        self.desk.soon(self.engine.start())
        run_in_thread(self, partial(import_module, "tui_eval.tui.screens.case_screen"), name="imports")


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
    try:
        app.run(mouse=False)
    except OSError as error:
        # The terminal went away while the last words were being said to it.
        if error.errno != errno.EIO:
            raise
        return 3 if app.crash is not None else 128 + signal.SIGHUP
    finally:
        stop_reading(app)
    if app.crash is not None:
        return 3
    return app.return_code or 0


__all__ = ["EvalApp", "Suite", "run_app"]
