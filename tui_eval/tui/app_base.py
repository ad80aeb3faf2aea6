"""What every part of the app stands on: its values, the engine, notices, the last gate of the screen."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.command import CommandPalette
from textual.filter import LineFilter, Monochrome, NoColor
from textual.screen import ModalScreen

from tui_eval.config.project import find_root
from tui_eval.guard import trust_store
from tui_eval.guard.text import clip, visible
from tui_eval.store.run_folders import Store
from tui_eval.tui import memory, palette, themes
from tui_eval.tui.faults import Faults, contain
from tui_eval.tui.keys import bindings
from tui_eval.tui.loaders.follower import Follower
from tui_eval.tui.screens.dialogs import AskScreen
from tui_eval.tui.screens.place import Place
from tui_eval.tui.settings import read_settings
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.text.formatting import Symbols
from tui_eval.tui.terminal.frame_app import ThriftyApp
from tui_eval.tui.terminal.terminal_guard import TerminalGuard, has_unicode

if TYPE_CHECKING:
    from tui_eval.config.project import Config
    from tui_eval.engine.service.client import EngineClient
    from tui_eval.tui.loaders.suites_loader import Loader
    from tui_eval.tui.run_desk import RunDesk

LOG_LIMIT = 500


class AppBase(ThriftyApp, inherit_bindings=False):
    """Values and services of the app; what keys do is in the classes derived."""

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

    loader: Loader
    desk: RunDesk

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
        super().__init__()
        self._no_colours = NoColor() if no_color else None
        here = _project_of(open_run) if open_run is not None and not paths else None
        self.paths = [Path(os.path.abspath(path)) for path in paths] or [here or Path.cwd()]
        self.config_file = config_file
        self.state = AppState(root if root is not None else find_root(self.paths, config_file)[0])
        if open_run is not None:
            Store(self.state.root).welcome(open_run)
        self.state.trusted = trust
        self.state.agreed = trust_store.agreed(self.state.root)
        self.symbols = Symbols(has_unicode() if unicode is None else unicode)
        self.config: Config | None = None
        self.followers: dict[str, Follower] = {}
        self._going_aside: set[str] = set()
        self.log_lines: deque[tuple[float, str, str]] = deque(maxlen=LOG_LIMIT)
        self.crash: BaseException | None = None
        self.faults = Faults(self.fault, self.log_line)
        self.begun = False
        contain()
        self._engine = engine
        self._attached: dict[str, EngineClient] = {}
        self.out_of_reach: set[str] = set()
        self._open_run = open_run
        self._trust_declined: frozenset[str] = frozenset()
        self._memory = memory.recall(self.state.root)
        seen = self._memory.get("case_view")
        self.case_view: dict[str, Any] = seen if isinstance(seen, dict) else {}
        self.settings = read_settings()
        stored = self._memory.get("filters")
        self.saved_filters: dict[str, str] = (
            {str(name): str(text) for name, text in stored.items()} if isinstance(stored, dict) else {}
        )
        self._guard = TerminalGuard(unicode=self.symbols.unicode)
        self.register_theme(themes.DARK)
        self.register_theme(themes.LIGHT)

    @property
    def engine(self) -> EngineClient:
        """The engine of this app."""
        if self._engine is None:
            from tui_eval.engine.service.client import EngineClient

            self._engine = EngineClient(self.state.root)
        return self._engine

    def engine_of(self, run: RunView) -> EngineClient:
        """The engine that executes this run: ours, or the one attached to."""
        return self._attached.get(run.info.id, self.engine)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's own, and the last gate against control characters. Under NO_COLOR none of Textual's
        greys, but the terminal's own colours only."""
        filters = super().get_line_filters()
        if self._no_colours is not None:
            filters = [self._no_colours if isinstance(item, Monochrome) else item for item in filters]
        return [*filters, self._guard]

    def action_command_palette(self) -> None:
        """Actions, cases and places by name."""
        if not CommandPalette.is_open(self):  # type: ignore[arg-type]
            self.push_screen(CommandPalette(placeholder="an action, a place, or a case by its name"))

    @property
    def shown_root(self) -> str:
        """The project's folder, short."""
        try:
            return clip(f"~/{self.state.root.relative_to(Path.home())}", 40)
        except ValueError:
            return clip(str(self.state.root), 40)

    @property
    def concurrency(self) -> int:
        """How many attempts run at once unless a run says otherwise."""
        return self.config.run.concurrency if self.config is not None else 8

    # -- saying things

    def say(self, text: str) -> None:
        """A short notice; it can be read again in the log."""
        self.log_line("note", text)
        words = visible(clip(text, 300), newlines=False)
        place = self.screen
        if not (isinstance(place, Place) and place.notice(words)):
            self.notify(words, timeout=3, markup=False)

    def problem(self, text: str) -> None:
        """Something went wrong: a notice, and the log."""
        self.log_line("error", text)
        self.notify(visible(clip(text, 300), newlines=False), severity="error", timeout=8, markup=False)

    def fault(self, text: str) -> None:
        """An error of our own; the log has it already."""
        words = visible(clip(text, 300), newlines=False)
        # Later: the screen that failed may be left first.
        self.call_later(self.notify, words, severity="error", timeout=8, markup=False)

    def log_line(self, level: str, text: str) -> None:
        """Add to the log (`l`)."""
        self.log_lines.append((time.time(), level, text))

    def background_failed(self, error: Exception) -> None:
        """A thread's work ended with an exception."""
        self.problem(f"{type(error).__name__}: {error}")

    def ask(
        self,
        question: str,
        answers: Sequence[tuple[str, str, str]],
        on_answer: Callable[[str | None], Any],
        details: Sequence[str] = (),
        items: Sequence[str] = (),
        after_reading: Collection[str] = (),
    ) -> None:
        """Ask over the screen."""
        self.push_screen(AskScreen(question, answers, details, items, after_reading), on_answer)

    def tell(self, message: Any) -> None:
        """Post a message to the screens in sight."""
        for screen in reversed(self.screen_stack):
            screen.post_message(message)
            if not isinstance(screen, ModalScreen):
                break


def _project_of(run: Path) -> Path | None:
    """The project in whose store a run's folder is; none has one that is only looked at here."""
    from tui_eval.store.imported.results_files import cache_home

    parents = Path(os.path.abspath(run)).parents
    if len(parents) < 3 or parents[1].name != ".tui-eval" or parents[2].is_relative_to(cache_home()):
        return None
    return parents[2]
