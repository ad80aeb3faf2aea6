"""The app: what belongs to no screen. Suites, the run in front, the engine, the way from place to place."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.app import App, SystemCommand
from textual.filter import LineFilter, Monochrome, NoColor
from textual.screen import ModalScreen, Screen

from tui_eval.config import find_root
from tui_eval.guard import trust_store
from tui_eval.guard.text import clip, visible
from tui_eval.model import Suite
from tui_eval.store.runs import Store
from tui_eval.store.schema import AttemptRow
from tui_eval.tui import memory, palette, themes
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.follower import Follower
from tui_eval.tui.keys import bindings, remap
from tui_eval.tui.loading import Loaded, Loader
from tui_eval.tui.messages import LiveText, RunChanged, SuitesChanged
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.running import RunDesk
from tui_eval.tui.screens.dialogs import AskScreen, RunChoice, RunDialog
from tui_eval.tui.screens.help import PaperScreen, help_paragraphs
from tui_eval.tui.screens.list_place import ListPlace
from tui_eval.tui.screens.run import RunScreen
from tui_eval.tui.screens.suites import SuitesScreen
from tui_eval.tui.settings import read_settings
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.entries import not_passed
from tui_eval.tui.state.figures import Symbols
from tui_eval.tui.state.run_facts import summary
from tui_eval.tui.state.run_view import RunView
from tui_eval.tui.terminal_guard import (
    TerminalGuard,
    crash_text,
    has_unicode,
    on_signals,
    terminal_problem,
)
from tui_eval.tui.thrift import thrifty

if TYPE_CHECKING:
    from tui_eval.config import Config
    from tui_eval.engine.client import EngineClient

LOG_LIMIT = 500
WANTS_TRUST = "needs trust: "


class EvalApp(App[int], inherit_bindings=False):
    """See `run_app`."""

    TITLE = "tui-eval"
    BINDINGS = bindings("everywhere")
    COMMANDS = {palette.Actions, palette.Cases}
    COMMAND_PALETTE_BINDING = "ctrl+p"
    CSS = """
    Toast { padding: 0 1; max-width: 60; }
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
        super().__init__()
        self._no_colours = NoColor() if no_color else None
        here = _project_of(open_run) if open_run is not None and not paths else None
        self.paths = [Path(os.path.abspath(path)) for path in paths] or [here or Path.cwd()]
        self.config_file = config_file
        self.state = AppState(root if root is not None else find_root(self.paths, config_file)[0])
        self.state.trusted = trust or trust_store.is_trusted(self.state.root)
        self.symbols = Symbols(has_unicode() if unicode is None else unicode)
        self.config: Config | None = None
        self.loader = Loader(self, self.paths, config_file)
        self.desk = RunDesk(self)
        self.follower: Follower | None = None
        self.log_lines: deque[tuple[float, str, str]] = deque(maxlen=LOG_LIMIT)
        self.crash: BaseException | None = None
        self._engine = engine
        self._attached: dict[str, EngineClient] = {}
        self.out_of_reach: set[str] = set()
        self._open_run = open_run
        self._trust_asked = False
        self._memory = memory.recall(self.state.root)
        self.settings = read_settings()
        self._guard = TerminalGuard()
        self.register_theme(themes.DARK)
        self.register_theme(themes.LIGHT)

    # -- life

    def on_mount(self) -> None:
        """Paint first; read and start things after it."""
        with suppress(Exception):
            remembered = self.settings.theme or str(self._memory.get("theme", ""))
            self.theme = themes.first_theme(remembered, no_color=self._no_colours is not None)
        on_signals(self._leave_by_signal)
        self.set_keymap(self.settings.keymap)
        remap(self.settings.keymap)
        screen = SuitesScreen()
        screen.view.folded = {str(key) for key in self._memory.get("folded", []) if isinstance(key, str)}
        screen.view.failures_first = bool(self._memory.get("failures_first", False))
        self.push_screen(screen)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        for problem in self.settings.problems:
            self.problem(problem)
        self.loader.load()
        if self._open_run is not None:
            self.follow(self._open_run)
            self.action_show_run()
        self.desk.soon(self._start_engine())

    async def _start_engine(self) -> None:
        await asyncio.sleep(0)
        await self.engine.start()

    @property
    def engine(self) -> EngineClient:
        """The engine of this app."""
        if self._engine is None:
            from tui_eval.engine.client import EngineClient

            self._engine = EngineClient(self.state.root)
        return self._engine

    def engine_of(self, run: RunView) -> EngineClient:
        """The engine that executes this run: ours, or the one attached to."""
        return self._attached.get(run.info.id, self.engine)

    def _leave_by_signal(self, code: int) -> None:
        self.exit(return_code=code)

    def _fatal_error(self) -> None:
        """Textual's own prints the values of variables; ours says where and what."""
        self.crash = sys.exc_info()[1] or self._exception or RuntimeError("unknown")
        self._exit_renderables.append(Text(crash_text(self.crash)))
        self._close_messages_no_wait()

    async def on_unmount(self) -> None:
        """Leave the engine to itself, remember where we were."""
        if self.follower is not None:
            self.follower.stop()
        for client in [self._engine, *self._attached.values()]:
            if client is not None:
                with suppress(Exception):
                    await client.close()

    def _remember(self) -> None:
        place = next((screen for screen in self.screen_stack if isinstance(screen, SuitesScreen)), None)
        values: dict[str, Any] = {"theme": self.theme}
        if place is not None and place.is_mounted:
            line = place.case_list.current_line
            values |= {
                "cursor": line.key if line else "",
                "filter": place.expression,
                "folded": sorted(place.view.folded)[:2000],
                "failures_first": place.view.failures_first,
            }
        memory.remember(self.state.root, values)

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        """Frames in fewer bytes."""
        super()._display(screen, thrifty(renderable))

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's own, and the last gate against control characters. Under NO_COLOR none of Textual's
        greys, but the terminal's own colours only."""
        filters = super().get_line_filters()
        if self._no_colours is not None:
            filters = [self._no_colours if isinstance(item, Monochrome) else item for item in filters]
        return [*filters, self._guard]

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the palette offers besides our actions."""
        yield SystemCommand("Theme", "Change the colours", self.action_change_theme)

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
        """A short notice."""
        self.notify(visible(clip(text, 300), newlines=False), timeout=3, markup=False)

    def problem(self, text: str) -> None:
        """Something went wrong: a notice, and the log."""
        self.log_line("error", text)
        self.notify(visible(clip(text, 300), newlines=False), severity="error", timeout=8, markup=False)

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
    ) -> None:
        """Ask over the screen."""
        self.push_screen(AskScreen(question, answers, details), on_answer)

    # -- suites

    def take_suites(self, loaded: Loaded) -> None:
        """A portion of suites was read."""
        if loaded.generation != self.loader.generation:
            return
        first = not self.state.suites
        self.config = loaded.config
        self.state.loading = not loaded.done
        self.state.problems = [problem for problem in loaded.problems if problem.level == "error"]
        for problem in loaded.problems if loaded.done else ():
            self.log_line(problem.level, str(problem))
        self.state.set_suites(loaded.suites)
        self.state.set_history(loaded.history)
        self.tell(SuitesChanged())
        if first and self.state.rows:
            self._restore()
        if loaded.done:
            # Many cases stay for good: the garbage collector need not look at them at each key press.
            gc.freeze()
            self._ask_trust(loaded.wanted)

    def take_some_suites(self, loaded: Loaded) -> None:
        """Suites were read again after an edit."""
        self.config = loaded.config
        fresh = {suite.path: suite for suite in loaded.suites}
        self.state.set_suites(
            [suite for suite in self.state.suites if suite.path not in fresh] + loaded.suites
        )
        self.tell(SuitesChanged())
        problems = sum(p.level == "error" for suite in loaded.suites for p in suite.problems)
        if problems:
            self.say(f"{problems} problem{'s' if problems > 1 else ''} in the file")
        self._ask_trust(loaded.wanted)

    def reload_suites(self, paths: Iterable[str | Path]) -> None:
        """Read the suites again that these files (from the root, or absolute) belong to."""
        wanted = {str(self.state.root / path) for path in paths}
        chosen = [
            suite
            for suite in self.state.suites
            if str(self.state.root / suite.path) in wanted or wanted & set(suite.files)
        ]
        if chosen:
            self.loader.reload(chosen)

    def _restore(self) -> None:
        place = self.suites_screen
        if self._memory.get("filter"):
            place.set_filter(str(self._memory["filter"]))
        cursor = self._memory.get("cursor")
        if isinstance(cursor, str) and cursor:
            place.case_list.go_to(cursor)

    def _ask_trust(self, wanted: list[str]) -> None:
        """Once per folder: may its suites do what they want?"""
        if not wanted or self.state.trusted or self._trust_asked:
            return
        self._trust_asked = True

        def answer(value: str | None) -> None:
            if value not in ("always", "once"):
                return
            self.state.trusted = True
            if value == "always":
                try:
                    trust_store.grant(self.state.root)
                except OSError as error:
                    self.problem(f"could not remember it: {error}")
            self.loader.load()

        shown = [f"  {clip(visible(what, newlines=False), 70)}" for what in dict.fromkeys(wanted)][:12]
        if len(wanted) > 12:
            shown.append(f"  and {len(wanted) - 12} more")
        self.ask(
            f"Do you trust {self.shown_root}?",
            [
                ("y", "always", "yes, always for this folder"),
                ("o", "once", "yes, this time"),
                ("n", "no", "no: cases that need it will be errors"),
            ],
            answer,
            ["", "Its suites want to:", *shown],
        )

    # -- the run in front

    def follow(self, folder: Path) -> None:
        """Follow this run from now on; its first news make it `state.run`."""
        if self.follower is not None:
            self.follower.stop()
        self.follower = Follower(self, folder)
        self.follower.start()

    def take_news(self) -> None:
        """The follower has news."""
        if self.follower is None:
            return
        news = self.follower.take()
        if news.error:
            self.problem(news.error)
        state = self.state
        opened = False
        before = state.run.active if state.run is not None else False
        if news.view is not None:
            state.run = news.view
            opened, before = True, news.view.active
            if news.view.active and folder_is_foreign(news.view, self):
                self.desk.soon(self._attach_engine(news.view))
        run = state.run
        if run is None or run.folder.name != news.run_id:
            return
        if news.cases:
            run.apply_cases(news.cases)
            opened = True
        changed: list[AttemptRow] = list(news.attempts.values())
        run.apply_attempts(changed)
        said = run.apply_live(news.live)
        if news.info is not None:
            run.info = news.info
            opened = True
        if opened or changed:
            self.tell(RunChanged(changed, opened))
        if said:
            self.tell(LiveText(said))
        if (before and not run.active) or (news.view is not None and not run.active):
            self._run_ended(run, rang=before)

    async def _attach_engine(self, run: RunView) -> None:
        from tui_eval.engine.client import EngineClient, EngineError

        client = EngineClient(self.state.root)
        try:
            await client.attach(run.folder)
        except EngineError as error:
            self.log_line("note", str(error))
            self.out_of_reach.add(run.info.id)
            return
        self._attached[run.info.id] = client

    def _run_ended(self, run: RunView, rang: bool) -> None:
        if rang and not self.app_focus:
            self.bell()
        if rang and not isinstance(self.screen, RunScreen):
            self.say(f"run {summary(run)}")
        wanted: list[str] = []
        for row in run.attempts.values():
            if row.outcome == "error" and row.message:
                case = run.cases.get(row.case_ref)
                self.log_line("error", f"{case.name if case else row.case_ref}: {row.message}")
                if row.message.startswith(WANTS_TRUST):
                    wanted.append(row.message.removeprefix(WANTS_TRUST).split(" (run with")[0])
        self._refresh_history(sorted({row.case_id for row in run.cases.values()}))
        self._ask_trust(wanted)

    def _refresh_history(self, case_ids: list[str]) -> None:
        root = self.state.root
        wanted = case_ids if len(case_ids) <= 500 else None

        def read() -> dict[str, Any]:
            from tui_eval.store.index import Index

            return Index(root).latest(wanted)

        def take(latest: dict[str, Any]) -> None:
            self.state.set_history(latest)
            self.tell(SuitesChanged())

        run_in_thread(self, read, take, name="history")

    def attempts_of(self, pointer: CasePointer) -> list[AttemptRow]:
        """The attempts of a case in the run in front; empty where it is not of that run."""
        run = self.state.run
        if run is None or pointer.run_id not in (None, run.info.id):
            return []
        ref = run.find(pointer.case_id, pointer.agent, pointer.model)
        return run.attempts_of(ref) if ref is not None else []

    def run_folder(self, run_id: str) -> Path:
        """Where a run of this project (or the one opened) is stored."""
        run = self.state.run
        if run is not None and run.info.id == run_id:
            return run.folder
        return Store(self.state.root).runs_folder / run_id

    def tell(self, message: Any) -> None:
        """Post a message to the screens in sight."""
        for screen in reversed(self.screen_stack):
            screen.post_message(message)
            if not isinstance(screen, ModalScreen):
                break

    # -- from place to place

    @property
    def suites_screen(self) -> SuitesScreen:
        """The first screen."""
        return next(screen for screen in self.screen_stack if isinstance(screen, SuitesScreen))

    @property
    def list_in_front(self) -> ListPlace | None:
        """The list one is in, or came from."""
        return next((s for s in reversed(self.screen_stack) if isinstance(s, ListPlace)), None)

    def pointer(self) -> CasePointer | None:
        """The case that keys mean."""
        current = getattr(self.screen, "current", None)
        return current() if current is not None else None

    def open_case(self, pointer: CasePointer) -> None:
        """Show a case in the inspector."""
        from tui_eval.tui.screens.case_screen import CaseScreen

        self.push_screen(CaseScreen(pointer))

    def open_case_id(self, case_id: str) -> None:
        """Bring a case of the suites under the cursor, and show it."""
        self.action_show_suites()
        place = self.suites_screen
        if case_id not in {entry.case_id for entry in place.shown_entries()}:
            place.set_filter("")
        place.go_to(CasePointer(case_id))
        pointer = place.current()
        if pointer is not None:
            self.open_case(pointer)

    def navigate(self, step: int, failing: bool = True) -> CasePointer | None:
        """The next (-1: previous) case, or failing case, from where one is; moves the list's cursor."""
        place = self.list_in_front
        if place is None:
            return None
        target = place.neighbour(self.pointer(), step, failing)
        if target is not None:
            place.go_to(target)
        return target

    def action_failure(self, step: int) -> None:
        """To the next failing case."""
        self._go(self.navigate(step, True), "nothing failed here")

    def action_neighbour(self, step: int) -> None:
        """To the next case."""
        self._go(self.navigate(step, False), "no further case")

    def _go(self, target: CasePointer | None, otherwise: str) -> None:
        if target is None:
            self.say(otherwise)
        elif not isinstance(self.screen, ListPlace):
            go_to = getattr(self.screen, "go_to", None)
            if go_to is not None:
                go_to(target)

    def action_show_run(self) -> None:
        """The live run."""
        for screen in self.screen_stack:
            if isinstance(screen, RunScreen):
                self._back_to(screen)
                return
        self._back_to(self.suites_screen)
        self.push_screen(RunScreen())

    def action_show_suites(self) -> None:
        """All suites."""
        self._back_to(self.suites_screen)

    def _back_to(self, target: Screen[Any]) -> None:
        while self.screen is not target and len(self.screen_stack) > 1:
            self.pop_screen()

    def action_show_help(self) -> None:
        """Keys of this place."""
        screen = self.screen
        if isinstance(screen, PaperScreen):
            self.pop_screen()
            return
        sections = getattr(screen, "KEY_SECTIONS", None) or getattr(screen, "HELP", None) or ()
        name = getattr(screen, "TITLE", None) or "this place"
        self.push_screen(PaperScreen(f"Help: {name}", lambda: help_paragraphs(str(name), sections)))

    def action_show_log(self) -> None:
        """Errors with details."""
        if not isinstance(self.screen, PaperScreen):
            self.push_screen(PaperScreen("Log", self._log_paragraphs))

    def _log_paragraphs(self) -> list[tuple[str, str]]:
        shown: list[tuple[str, str]] = []
        for at, level, text in reversed(self.log_lines):
            shown.append(("dim", time.strftime("%H:%M:%S", time.localtime(at))))
            shown.append(("bad" if level == "error" else "text", visible(clip(text, 4000))))
        return shown or [("dim", "Nothing has gone wrong so far.")]

    async def action_back(self) -> None:
        """One step back; never quits."""
        screen = self.screen
        back = getattr(screen, "back", None)
        if back is not None and back():
            return
        if isinstance(screen, ModalScreen):
            screen.dismiss(None)
        elif not isinstance(screen, SuitesScreen):
            self.pop_screen()

    async def do(self, action: str) -> None:
        """Do what a key of the table does, wherever it is bound."""
        focused = self.screen.focused
        for node in (focused, self.screen, self):
            if node is not None and hasattr(node, f"action_{action.partition('(')[0]}"):
                await self.run_action(action, node)
                return
        self.say("not here")

    # -- leaving

    def action_close_or_quit(self) -> None:
        """Close a place; on the suites and the live run, quit (and ask while a run goes on)."""
        screen = self.screen
        if isinstance(screen, RunScreen):
            if self.running:
                self._ask_quit()
            else:
                self.pop_screen()
        elif isinstance(screen, SuitesScreen):
            self._ask_quit() if self.running else self._quit()
        elif isinstance(screen, ModalScreen):
            screen.dismiss(None)
        else:
            self.pop_screen()

    async def action_quit(self) -> None:
        """ctrl+q and the palette's quit."""
        self._ask_quit() if self.running else self._quit()

    @property
    def running(self) -> bool:
        """Whether a run goes on."""
        return self.desk.starting or (self.state.run is not None and self.state.run.active)

    def _ask_quit(self) -> None:
        def answer(value: str | None) -> None:
            if value == "detach":
                self.action_detach()
            elif value == "stop":
                self.desk.soon(self._stop_and_quit())

        answers = [
            ("d", "detach", "detach: leave, the run goes on"),
            ("s", "stop", "stop it and leave"),
            ("esc", "stay", "stay"),
        ]
        run = self.state.run
        if run is not None and run.info.id in self.out_of_reach:
            del answers[1]
        self.ask("A run goes on.", answers, answer)

    async def _stop_and_quit(self) -> None:
        run = self.state.run
        try:
            if run is not None and run.info.id not in self.out_of_reach:
                await asyncio.wait_for(self.engine_of(run).cancel(run.info.id), 5)
        finally:
            self._quit()

    def action_detach(self) -> None:
        """Leave at once; a run goes on."""
        run = self.state.run
        if run is not None and run.active:
            self._quit(f"run {run.info.id} goes on; `tui-eval attach` comes back to it")
        else:
            self._quit()

    def _quit(self, message: str = "") -> None:
        self._remember()
        self.exit(0, message=Text(message) if message else None)

    def action_copy_or_quit(self) -> None:
        """Copy what is selected, else ask to quit."""
        selected = self.screen.get_selected_text()
        if selected:
            self.copy_to_clipboard(selected[:74_000])
            self.say(f"copied {len(selected):,} characters")
        elif self.running:
            self._ask_quit()
        else:
            self.ask(
                "Quit?",
                [("y", "quit", "quit"), ("n", "stay", "stay")],
                lambda v: self._quit() if v == "quit" else None,
            )

    # -- cases and runs

    def action_run_all(self) -> None:
        """Run all shown."""
        place = self.list_in_front
        if place is not None:
            self.desk.start(place.shown_entries())

    def action_rerun(self) -> None:
        """Run the case, or the marked ones."""
        place = self.list_in_front
        if place is None:
            return
        if isinstance(self.screen, ListPlace):
            entries = place.marked_entries()
            place.case_list.marks = set()
            place.case_list.refresh()
        else:
            pointer = self.pointer()
            entries = [e for e in place.shown_entries() if pointer is not None and _is(e, pointer)][:1]
        several = len(entries) > 1
        self.desk.start(entries, show=several or isinstance(self.screen, RunScreen))

    def action_rerun_failed(self) -> None:
        """Run what did not pass again."""
        place = self.list_in_front
        entries = not_passed(place.shown_entries()) if place is not None else []
        if not entries:
            self.say("everything shown has passed")
            return
        run = self.state.run
        linked = run.info.id if isinstance(place, RunScreen) and run is not None else None
        self.desk.start(entries, linked_to=linked)

    def action_once_more(self) -> None:
        """One more attempt."""
        pointer = self.pointer()
        if pointer is None:
            self.say("put the cursor on a case first")
        else:
            self.desk.once_more(pointer)

    def action_run_dialog(self) -> None:
        """Agent, attempts, limits."""
        place = self.list_in_front
        if place is None:
            return
        marked = place.case_list.marks
        entries = place.marked_entries() if marked else place.shown_entries()
        agents = sorted(self.config.agents) if self.config is not None else []

        def answer(choice: RunChoice | None) -> None:
            if choice is not None:
                self.desk.choice = choice
                self.desk.send(self.desk.request(entries, choice), show=True)

        choice = RunChoice(**{name: getattr(self.desk.choice, name) for name in RunChoice.__slots__})
        self.push_screen(RunDialog(choice, agents, lambda c: self.desk.estimate(entries, c)), answer)

    def action_pause(self) -> None:
        """Pause or resume the run."""
        self.desk.pause()

    def action_cancel_case(self) -> None:
        """Cancel the attempts of the case that have not ended."""
        run = self.state.run
        pointer = self.pointer()
        if run is None or not run.active or pointer is None:
            self.say("no running case here")
            return
        refs = [row.id for row in self.attempts_of(pointer) if row.state != "done"]
        if not refs:
            self.say("this case is not running")
            return
        self.desk.cancel(refs)
        self.say("cancelling the case")

    def action_cancel_run(self) -> None:
        """Cancel the run, after asking."""
        run = self.state.run
        if run is None or not run.active:
            self.say("no run goes on")
            return
        left = run.counts.total - run.counts.done
        self.ask(
            f"Cancel the run? {left:,} attempts have not ended.",
            [("y", "yes", "cancel them"), ("n", "no", "no")],
            lambda value: self.desk.cancel(None) if value == "yes" else None,
        )

    # -- editing

    def action_edit_case(self) -> None:
        """The file at its line in the editor; then read what changed."""
        from tui_eval.tui.editing import edit

        path, line = self._place_to_edit()
        if path is None:
            self.say("put the cursor on a case, a suite or a problem first")
            return
        suites = [suite for suite in self.state.suites if suite.path == path]
        files = sorted({str(self.state.root / path), *(file for suite in suites for file in suite.files)})
        before = _stamps(files)
        trouble = edit(self, self.state.root / path, line)
        if trouble:
            self.problem(trouble)
        changed = [file for file, stamp in _stamps(files).items() if stamp != before.get(file)]
        if changed:
            self.reload_suites(changed)

    def _place_to_edit(self) -> tuple[str | None, int]:
        if isinstance(self.screen, ListPlace):
            found = self.screen.case_list.current_line
            if found is not None and found.problem is not None:
                return found.problem.path, found.problem.line
            if found is not None and found.kind == "suite":
                return found.path, 0
        pointer = self.pointer()
        item = self.state.by_id.get(pointer.case_id) if pointer is not None else None
        if item is None:
            return None, 0
        return item.suite, item.case.line if item.case is not None else 0

    def action_edit_agent(self) -> None:
        """The agent's files in the editor; its entry in tui_eval.yaml where it names none."""
        from tui_eval.tui.editing import edit

        pointer = self.pointer()
        item = self.state.by_id.get(pointer.case_id) if pointer is not None else None
        name = (pointer.agent if pointer else None) or (item.agent if item else None)
        config = self.config
        spec = config.agents.get(name) if config is not None and name else None
        if config is None or spec is None:
            if config is not None and config.file is not None:
                edit(self, config.file)
                self.loader.load()
                return
            self.say(f"agent {name or ''} has no entry in tui_eval.yaml")
            return
        base = Path(spec.base) if spec.base else config.root
        files = [base / file for file in spec.files]
        line = 0
        if not files and config.file is not None:
            files, line = [config.file], spec.line
        if not files:
            self.say(f"agent {name} names no files")
            return
        trouble = edit(self, files[0], line, files[1:])
        if trouble:
            self.problem(trouble)
        if config.file in files:
            self.loader.load()


def _project_of(run: Path) -> Path | None:
    """The project in whose store a run's folder is."""
    parents = Path(os.path.abspath(run)).parents
    return parents[2] if len(parents) > 2 and parents[1].name == ".tui-eval" else None


def folder_is_foreign(run: RunView, app: EvalApp) -> bool:
    """Whether a run that goes on was not started by this app."""
    return app._open_run is not None and run.folder == app._open_run


def _is(entry: Any, pointer: CasePointer) -> bool:
    return entry.case_id == pointer.case_id and (
        not pointer.agent or not entry.agent or entry.agent == pointer.agent
    )


def _stamps(files: Iterable[str]) -> dict[str, tuple[int, int]]:
    stamps: dict[str, tuple[int, int]] = {}
    for file in files:
        with suppress(OSError):
            status = os.stat(file)
            stamps[file] = (status.st_mtime_ns, status.st_size)
    return stamps


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
        The exit code: 0, 128 + signal, 3 after a crash, 4 where there is no terminal.
    """
    problem = terminal_problem()
    if problem:
        print(problem, file=sys.stderr)
        return 4
    if local:
        import textual.screen

        textual.screen.UPDATE_PERIOD = 1 / 60  # type: ignore[misc]
    app = EvalApp(paths, config_file=config_file, trust=trust, open_run=open_run)
    app.run(mouse=False)
    if app.crash is not None:
        return 3
    return app.return_code or 0


__all__ = ["EvalApp", "Suite", "run_app"]
