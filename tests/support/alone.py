"""What a controller is made with where there is no app: the real plain parts, and in the place of the app, its screens,
its editor and its engine some that remember what is asked of them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from inspect import isawaitable
from pathlib import Path
from typing import Any, cast

from textual.message import Message
from textual.theme import Theme

from tests.support.live_run import FakeEngine, LiveRun, project
from tui_eval.engine.request import RunRequest
from tui_eval.model import Outcome
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import Asked, CaseHistory
from tui_eval.tui.background import Tasks
from tui_eval.tui.controllers.front_run import FrontRun
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.controllers.runs import RunController
from tui_eval.tui.controllers.step_by_step import StepController
from tui_eval.tui.engines import Engines
from tui_eval.tui.front import RunsMeant
from tui_eval.tui.handlers import Handler
from tui_eval.tui.loaders.follower import counted_with
from tui_eval.tui.loaders.suites_loader import Loaded, Loader
from tui_eval.tui.memory import ProjectMemory
from tui_eval.tui.notices import Notices
from tui_eval.tui.screens.place import Place
from tui_eval.tui.services import AppServices, Core, Window
from tui_eval.tui.settings import Settings
from tui_eval.tui.state.app_state import AppState, CasePointer
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import TreeLine, View
from tui_eval.tui.state.lists.entries import failing, meant, run_entries, suite_entries
from tui_eval.tui.state.lists.suite_changes import EditedSuite
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.text.formatting import Symbols
from tui_eval.tui.terminal.editor import Editor

DIALOGS = {"ask", "change", "run dialog", "save dialog", "tour", "first agent", "agent"}
LONG_LIVED = ("tui-watcher", "tui-follower")
"""Threads that nobody waits for."""


class FakeTimer:
    """Rings when the test says so."""

    def __init__(self, seconds: float, callback: Callable[[], Any]) -> None:
        self.seconds, self.ring, self.stopped = seconds, callback, False

    def stop(self) -> None:
        self.stopped = True


class FakeWindow:
    """In the place of the app: a stack of screens, and what of the terminal is asked for."""

    theme: Any = "textual-dark"

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.callbacks: dict[int, Any] = {}
        self.waiting: deque[Callable[[], Any]] = deque()
        self.focused: Any = None
        self.available_themes: dict[str, Theme] = {"nord": Theme("nord", "#000000")}
        self.is_running = False
        self.app_focus: Any = True
        self.toasts: list[str] = []
        self.timers: list[FakeTimer] = []
        self.done: list[Any] = []
        """What was asked of the terminal, in order."""

    @property
    def screen(self) -> Any:
        return self.stack[-1]

    @property
    def screen_stack(self) -> Sequence[Any]:
        return self.stack

    def push_screen(self, screen: Any, callback: Any = None) -> None:
        self.stack.append(screen)
        self.callbacks[id(screen)] = callback

    def pop_screen(self) -> None:
        self.stack.pop()

    def close(self, screen: Any, value: Any) -> None:
        """A dialog is left with this answer."""
        self.stack.remove(screen)
        callback = self.callbacks.pop(id(screen), None)
        if callback is not None:
            callback(value)

    def call_later(self, callback: Callable[..., Any], *arguments: Any, **options: Any) -> bool:
        self.waiting.append(lambda: callback(*arguments, **options))
        return True

    def set_timer(self, seconds: float, callback: Callable[[], Any]) -> FakeTimer:
        self.timers.append(FakeTimer(seconds, callback))
        return self.timers[-1]

    set_interval = set_timer

    def notify(self, text: str, **options: Any) -> None:
        self.toasts.append(text)

    def _handle_exception(self, error: Exception) -> None:
        raise error

    def register_theme(self, theme: Theme) -> None:
        self.available_themes[theme.name] = theme

    def set_reactive(self, reactive: Any, value: Any) -> None:
        self.theme = value
        self.done.append(("quietly", value))

    def set_keymap(self, keymap: Mapping[str, str]) -> None:
        self.done.append(("keys", dict(keymap)))

    def take_mouse(self, wanted: bool) -> None:
        self.done.append(("mouse", wanted))

    def copy_to_clipboard(self, text: str) -> None:
        self.done.append(("copied", text))

    def bell(self) -> None:
        self.done.append("bell")

    def action_suspend_process(self) -> None:
        self.done.append("suspended")

    def exit(self, result: int | None = None, return_code: int = 0, message: Any = None) -> None:
        self.done.append(("left", return_code, str(message or "")))


class FakeDialog:
    """A dialog that is asked for."""

    is_modal = True
    TITLE = ""

    def __init__(self, window: FakeWindow, name: str, arguments: Sequence[Any], options: Mapping[str, Any]):
        self._window = window
        self.name, self.arguments, self.options = name, arguments, options

    def dismiss(self, value: Any) -> None:
        self._window.close(self, value)

    def post_message(self, message: Message) -> None: ...

    def query(self, kind: Any) -> list[Any]:
        return []

    def get_selected_text(self) -> str | None:
        return None


class FakeFooter:
    """Counts how often it is drawn anew."""

    drawn = 0

    def refresh(self) -> None:
        self.drawn += 1


class FakePlace(Place):
    """A screen without cases, or one case that is looked at."""

    def __init__(
        self,
        kind: str = "",
        *arguments: Any,
        looked_at: CasePointer | None = None,
        also: Sequence[CasePointer] = (),
        runs: RunsMeant | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.kind = kind
        self.arguments, self.options = arguments, options
        self.looked_at, self.also, self.runs = looked_at, also, runs
        self.heard: list[Message] = []
        self.footer = FakeFooter()
        self.column_alone = False
        self.judges = False
        self.steps_back = 0
        self.to_edit: tuple[str, int] | None = None
        self.selected: str | None = None
        self.unmarked = False

    @property
    def one_column(self) -> bool:
        return self.column_alone

    def post_message(self, message: Message) -> bool:
        self.heard.append(message)
        return True

    def query(self, *_: Any) -> Any:
        return [self.footer]

    def current(self) -> CasePointer | None:
        return self.looked_at

    def all_current(self) -> Sequence[CasePointer]:
        return self.also or super().all_current()

    def go_to(self, pointer: CasePointer) -> None:
        self.looked_at = pointer

    def place_to_edit(self) -> tuple[str, int] | None:
        return self.to_edit

    def judge_again(self) -> bool:
        return self.judges

    def runs_meant(self) -> RunsMeant | None:
        return self.runs

    def back(self) -> bool:
        self.steps_back -= 1
        return self.steps_back >= 0

    def unmark(self) -> None:
        self.unmarked = True

    def get_selected_text(self) -> str | None:
        return self.selected


class FakeList(FakePlace):
    """A list of the cases of the suites, or of the run in front, with a cursor and marks."""

    lists_cases = True

    def __init__(self, state: AppState, kind: str = "suites") -> None:
        super().__init__(kind)
        self._state = state
        self.expression = ""
        self.whole = True
        """Whether it holds all that was read."""
        self.view = View()
        self.cursor = ""
        """The key of the row under it; empty: the first."""
        self.line: TreeLine | None = None
        """A line of another kind under the cursor."""
        self.marks: set[str] = set()
        self.hidden: set[str] = set()
        self.brought: list[tuple[str, str]] = []

    def all_entries(self) -> Sequence[CaseRow]:
        group = self._state.group
        if self.kind == "run":
            return run_entries(group, self._state) if group is not None else []
        return suite_entries(self._state)

    def shown_entries(self) -> Sequence[CaseRow]:
        return [entry for entry in self.all_entries() if entry.key not in self.hidden]

    def pointer_of(self, entry: CaseRow) -> CasePointer:
        return CasePointer(
            entry.case_id, entry.agent or None, entry.model or None, entry.run_id or None
        )  # as both lists' sources do

    def _row(self) -> CaseRow | None:
        shown = self.shown_entries()
        return next((entry for entry in shown if entry.key == self.cursor), next(iter(shown), None))

    def current(self) -> CasePointer | None:
        if self.line is not None:
            return None
        row = self._row()
        return self.pointer_of(row) if row is not None else None

    def go_to(self, pointer: CasePointer) -> None:
        for entry in self.shown_entries():
            if meant(entry, pointer):
                self.cursor = entry.key
                return

    def marked(self) -> Collection[str]:
        return self.marks

    def marked_entries(self) -> Sequence[CaseRow]:
        row = self._row()
        return [e for e in self.shown_entries() if e.key in self.marks] or ([row] if row is not None else [])

    def mark(self, keys: Collection[str]) -> None:
        self.marks = set(keys)

    def unmark(self) -> None:
        super().unmark()
        self.marks = set()

    def line_under_cursor(self) -> TreeLine | None:
        row = self._row()
        return self.line or (TreeLine("case", row.key, 0, row.name, row) if row is not None else None)

    def cases_under_cursor(self) -> Sequence[CaseRow]:
        return [row for row in self.shown_entries() if self.line is None or row.suite == self.line.path]

    def neighbour(self, pointer: CasePointer | None, step: int, only_failing: bool) -> CasePointer | None:
        shown = self.shown_entries()
        here = next((n for n, e in enumerate(shown) if pointer is not None and meant(e, pointer)), -1)
        others = shown[here + 1 :] if step > 0 else shown[: max(here, 0)][::-1]
        return next((self.pointer_of(e) for e in others if failing(e) or not only_failing), None)

    def set_filter(self, expression: str, *, at_once: bool = False) -> bool:
        self.expression = expression
        if not expression:
            self.hidden = set()
        return True

    def bring(self, key: str, suite: str = "") -> None:
        self.brought.append((key, suite))

    def go_when_there(self, key: str) -> None:
        self.cursor = key

    def is_whole(self) -> bool:
        return self.whole

    def has_what_was_read(self) -> bool:
        return self.whole

    def when_whole(self, do: Callable[[], Any]) -> None:
        do()


class FakeScreens:
    """Screens by their names: dialogs and places that remember what they were made of."""

    def __init__(self, window: FakeWindow, state: AppState) -> None:
        self._window, self._state = window, state
        self.ready: list[str] = []

    def make(self, name: str, *arguments: Any, **options: Any) -> Any:
        if name in DIALOGS:
            return FakeDialog(self._window, name, arguments, options)
        if name in ("suites", "run"):
            return FakeList(self._state, name)
        return FakePlace(name, *arguments, **options)

    def get_ready(self, *names: str) -> None:
        self.ready.extend(names)


class FakeEditor:
    """Does to a file what the test says, in the place of a person."""

    def __init__(self) -> None:
        self.opened: list[tuple[str, int, list[str]]] = []
        self.writes: dict[Path, str] = {}
        self.trouble = ""

    def edit(self, path: Path | str, line: int = 0, others: Sequence[Path | str] = ()) -> str:
        self.opened.append((Path(path).name, line, [Path(one).name for one in others]))
        for file, text in self.writes.items():
            file.write_text(text)
        return self.trouble


class FakeSuites:
    """Reads nothing, and remembers what it was to read."""

    def __init__(self) -> None:
        self.loads = 0
        self.reloads: list[list[str]] = []
        self.then: Any = ""
        self.asked_first = 0
        self.belongs = True
        """Whether the files are a suite's."""

    def load(self, then: Callable[[], Any] | None = None) -> None:
        self.loads += 1
        if then is not None:
            then()

    def reload(self, paths: Iterable[str | Path], then: str | Callable[[EditedSuite], Any] = "") -> bool:
        self.reloads.append(sorted(Path(path).name for path in paths))
        self.then = then
        return self.belongs

    def first(self) -> None:
        self.asked_first += 1

    def trusted_first(self, request: RunRequest, run: Callable[[], Any]) -> None:
        """There is nothing to be asked before."""
        run()

    def before_running(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """There is nothing to be asked before."""
        return run


class Alone:
    """A project on disk, and all that a controller is made with."""

    def __init__(self, root: Path, engine: FakeEngine | None = None) -> None:
        self.root = root
        self.engine = engine or FakeEngine(root)
        self.window = FakeWindow()
        self.state = AppState(root, loading=False)
        self.notices = Notices(cast(Any, self.window))
        self.tasks = Tasks(cast(Any, self.window), self.notices)
        self.editor = FakeEditor()
        self.core = Core(
            state=self.state,
            notices=self.notices,
            tasks=self.tasks,
            engines=Engines(self.state, self.notices, cast(Any, self.engine)),
            settings=Settings(),
            memory=ProjectMemory(root),
            symbols=Symbols(True),
            editor=cast(Editor, self.editor),
        )
        self.screens = FakeScreens(self.window, self.state)
        self.places = PlaceController(cast(Window, self.window), self.core, self.screens)
        self.list = FakeList(self.state)
        self.window.stack = [self.list]
        self.suites = FakeSuites()
        self.trust_asked: list[list[str]] = []
        self.front_run = FrontRun(cast(Window, self.window), self.core, self.places, self.trust_asked.append)
        self.runs = RunController(self.core, self.places, self.suites, self.front_run)
        self.steps = StepController(self.core, self.places, self.suites, self.front_run, self.runs)

    def services(self, **others: Any) -> AppServices:
        """What a controller is given that uses what others do."""
        given: dict[str, Any] = dict(
            ask=self.places.ask, places=self.places, suites=self.suites, runs=self.runs, notes=None, do=None,
            take_settings=lambda: None, status=str,
        )  # fmt: skip
        return AppServices(**vars(self.core), **{**given, **others})

    # -- what there is

    async def read(self) -> None:
        """Take the project's suites, and what became of their cases."""
        taken: list[Loaded] = []

        class Taker:
            def take_suites(self, loaded: Loaded) -> None:
                taken.append(loaded)

            def take_some_suites(self, loaded: Loaded, then: Any) -> None: ...

            def tell_unread(self, words: str) -> None: ...

        Loader(self.state, self.tasks, Taker(), [self.root]).load()
        await self.settle()
        self.state.config = taken[-1].config
        if (items := taken[-1].items) is not None:
            self.state.take(items)

    def show_run(self, folder: Path) -> None:
        """Have this run, with those that count with it, in front, as it is recorded now."""
        with closing(RunReader(folder)) as reader:
            run = RunView(reader.info(), folder)
            run.apply_cases(reader.cases())
            run.apply_attempts(reader.changes(0))
        self.state.group = RunGroup([*counted_with(self.root, folder), run])
        self.state.run = run

    def go_to(self, name: str) -> CasePointer:
        """Put the cursor of the list in front on the case of this name."""
        place = self.places.list_in_front
        assert isinstance(place, FakeList)
        row = next(entry for entry in place.all_entries() if entry.name == name)
        place.cursor, place.line = row.key, None
        return place.pointer_of(row)

    def look_at(self, pointer: CasePointer, **more: Any) -> FakePlace:
        """Show a case alone."""
        self.window.stack.append(FakePlace("case", looked_at=pointer, **more))
        return self.window.stack[-1]

    def past(
        self,
        name: str,
        *outcomes: Outcome,
        agent: str = "offline",
        model: str | None = None,
        run_id: str = "",
        cost: float | None = None,
        asked: Asked = "own",
    ) -> None:
        """Have a case of this name a past, newest first, with one agent and model more."""
        item = next(item for item in self.state.rows if item.name == name)
        results = [
            CaseHistory(
                run_id or f"r{number}", item.case_id, agent, model, outcome, int(outcome == "passed"), 1,
                1000.0 - number, 100.0, 10, cost, "", outcome, asked=asked,
            )
            for number, outcome in enumerate(outcomes)
        ]  # fmt: skip
        item.history = [*item.history, *results]
        self.state.version += 1

    # -- what is done

    async def press(self, handlers: Mapping[str, Handler], key_id: str) -> None:
        """Do what the key of this id does, and what follows of it."""
        done = handlers[key_id]()
        if isawaitable(done):
            await done
        await self.settle()

    async def settle(self, seconds: float = 60.0) -> None:
        """Until no thread works for the app, and all that was to be called later has been."""
        end = time.monotonic() + seconds
        while True:
            while self.window.waiting:
                done = self.window.waiting.popleft()()
                if isawaitable(done):
                    await done
            at_work = any(
                thread.name.startswith("tui-") and thread.name not in LONG_LIVED
                for thread in threading.enumerate()
            )
            if not at_work and not self.tasks.at_work and not self.window.waiting:
                return
            assert time.monotonic() < end, "waited too long"
            await asyncio.sleep(0.001)

    async def until(self, condition: Callable[[], Any], seconds: float = 60.0) -> None:
        """Until something is so, doing what was to be called later meanwhile."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "waited too long"
            await self.settle()
            await asyncio.sleep(0.005)

    async def answer(self, value: Any) -> None:
        """Leave the dialog in front with this answer."""
        self.dialog.dismiss(value)
        await self.settle()

    # -- what is seen

    @property
    def dialog(self) -> FakeDialog:
        """The dialog in front."""
        assert isinstance(self.window.screen, FakeDialog), self.window.screen
        return self.window.screen

    @property
    def question(self) -> str:
        """What the dialog in front asks."""
        assert self.dialog.name == "ask"
        return str(self.dialog.arguments[0])

    @property
    def offered(self) -> list[str]:
        """The answers that the question in front takes."""
        return [value for _, value, _ in self.dialog.arguments[1]]

    @property
    def said(self) -> str:
        """The last thing that the person was told."""
        return self.notices.lines[-1][2] if self.notices.lines else ""

    @property
    def request(self) -> RunRequest:
        """The last request to the engine."""
        return self.engine.requests[-1]

    @property
    def asked(self) -> list[str]:
        """The names of the cases of the last request."""
        return [case_id.partition("::")[2] for case_id in self.request.case_ids or ()]


async def on_project(
    folder: Path, *outcomes: Outcome, engine: FakeEngine | None = None, suites: dict[str, str] | None = None
) -> Alone:
    """A project whose suites are read; `outcomes` are those of a run of its first cases, which is in front."""
    alone = Alone(project(folder, suites), engine)
    folder_of_run = None
    if outcomes:
        names = ["refund is approved", "greets by name", "calms an angry customer"][: len(outcomes)]
        run = LiveRun(alone.root, names)
        run.all_done(list(outcomes))
        folder_of_run = run.folder
    await alone.read()
    if folder_of_run is not None:
        alone.show_run(folder_of_run)
    return alone
