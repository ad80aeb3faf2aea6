"""The parts of a list of cases and the controller of places, without an app: what they are made with is made here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from textual.screen import ModalScreen, Screen

from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.screens import list_arrangement
from tui_eval.tui.screens.list_arrangement import A_MOMENT, AT_A_GLANCE, ListArrangement
from tui_eval.tui.screens.list_finder import ListFinder
from tui_eval.tui.screens.place import Place
from tui_eval.tui.screens.screen_names import SCREENS, class_of
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.case_entry import CaseRow, EntryColumn
from tui_eval.tui.state.lists.case_tree import SORTS, Tree


class List:
    """What the parts ask of the list widget."""

    def __init__(self) -> None:
        self.cases = Tree([], [], 0, {}, {})
        self.cursor = self.top = self.window = 0
        self.touched = False
        self.marks: set[str] = set()
        self.current_line: Any = None
        self.timers: list[tuple[float, Callable[[], Any]]] = []
        """What its screen was asked to call later."""
        self.threads: list[Callable[[], Any]] = []
        """What was given to a thread."""

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> object:
        self.timers.append((delay, callback))
        return object()

    def show(self, tree: Tree, *, keep: bool = True) -> None:
        self.cases = tree

    def go_to(self, key: str) -> bool:
        return key in self.cases.index

    def status_changed(self, key: str, before: str, after: str) -> list[int]:
        return []

    def widen(self, entry: CaseRow) -> None: ...

    def refresh_row(self, *rows: int) -> None: ...


class Source:
    """Three cases, none of which folds by itself."""

    outcomes: dict[str, str] = {"a": "skipped", "b": "failed", "c": "skipped"}

    def count(self) -> int:
        return len(self.outcomes)

    def maker(self) -> Callable[[], list[CaseRow]]:
        return lambda: list(self.some(self.outcomes))

    def some(self, keys: Iterable[str]) -> list[CaseRow]:
        return [CaseRow(key, key, key, f"{key}.yaml", "nao", self.outcomes[key]) for key in keys]

    def suites(self) -> tuple[()]:
        return ()

    def pointer_of(self, entry: CaseRow) -> CasePointer:
        return CasePointer(entry.case_id)


def parts(source: Source | None = None) -> tuple[ListArrangement, ListFinder, Any, list[str]]:
    said: list[str] = []
    cases = List()

    def thread(work: Callable[[], Any], take: Callable[[Any], Any], name: str) -> None:
        cases.threads.append(lambda: take(work()))

    services: Any = SimpleNamespace(
        tasks=SimpleNamespace(thread=thread),
        state=SimpleNamespace(token=1, rows=()),
        notices=SimpleNamespace(say=said.append),
        settings=SimpleNamespace(filters={}),
        memory=SimpleNamespace(filters={}),
    )
    screen: Any = SimpleNamespace(
        case_list=cases,
        has=lambda *_: True,
        set_timer=cases.set_timer,
        rebuilt=lambda: None,
        show_list=lambda: None,
        tell_arranged=lambda: None,
    )
    prompts: Any = SimpleNamespace(open=False, complain=lambda words: False)
    arrangement = ListArrangement(screen, source or Source(), services)
    arrangement.rebuild()
    return arrangement, ListFinder(screen, services, prompts, arrangement), screen.case_list, said


def shown(cases: List) -> list[str]:
    return [entry.name for entry in cases.cases.shown]


def test_every_key_of_a_list_is_handed_over_once() -> None:
    arrangement, finder, _, _ = parts()
    assert not arrangement.handlers().keys() & finder.handlers().keys()


def test_failures_come_first_and_go_back() -> None:
    arrangement, _, cases, said = parts()
    assert shown(cases) == ["a", "b", "c"]
    arrangement.handlers()["list.failures_first"]()
    assert shown(cases)[0] == "b" and said == ["failures first"]
    arrangement.handlers()["list.failures_first"]()
    assert shown(cases) == ["a", "b", "c"]


def test_each_sort_is_said_and_they_come_round() -> None:
    arrangement, _, _, said = parts()
    for _ in SORTS:
        arrangement.handlers()["list.sort"]()
    assert said == [f"sorted by {name}" for name in (*SORTS[1:], SORTS[0])]


class Columns(Source):
    """A case that is asked in these columns; rows of one are of that case alone."""

    models: tuple[str, ...] = ("",)

    def some(self, keys: Iterable[str]) -> list[CaseRow]:
        return [row for key in dict.fromkeys(key[0] for key in keys) for row in self._rows(key)]

    def _rows(self, key: str) -> list[CaseRow]:
        if key != "b" or self.models == ("",):
            return super().some([key])
        of = len(self.models)
        return [
            CaseRow(f"b/{m}", "b", f"b {m}", "b.yaml", "nao", "failed", column=EntryColumn("", m, False, of))
            for m in self.models
        ]


def test_a_case_that_is_asked_in_other_columns_has_their_rows_in_its_place() -> None:
    source = Columns()
    arrangement, _, cases, _ = parts(source)
    for models, rows in (
        (("m", "n"), ["b m", "b n"]),
        (("m", "n", "o"), ["b m", "b n", "b o"]),
        (("m", "o"), ["b m", "b o"]),
        (("",), ["b"]),
    ):
        source.models = models
        arrangement.replace_some(["b"])
        assert shown(cases) == ["a", *rows, "c"]


def test_the_mark_of_a_case_that_is_asked_in_other_columns_is_that_of_its_rows() -> None:
    source = Columns()
    arrangement, _, cases, _ = parts(source)
    source.models = ("",)
    arrangement.replace_some(["b"])
    cases.marks = {key for key, row in arrangement.rows.items() if row.case_id == "b"}
    assert len(cases.marks) == 1
    for models in (("m", "n"), ("",)):
        source.models = models
        arrangement.replace_some(["b"])
        assert cases.marks == {key for key, row in arrangement.rows.items() if row.case_id == "b"}


def test_a_filter_shows_what_it_asks_for_and_one_that_is_wrong_changes_nothing() -> None:
    _, finder, cases, _ = parts()
    assert finder.set_filter("failed") and shown(cases) == ["b"]
    assert not finder.set_filter("cost:>much") and finder.problem and shown(cases) == ["b"]
    finder.handlers()["list.clear"]()
    assert shown(cases) == ["a", "b", "c"] and not finder.problem


def test_a_filter_is_saved_under_its_name_and_forgotten() -> None:
    _, finder, _, said = parts()
    assert finder.save_filter("bad=failed") == "failed" and said[-1] == "saved as @bad"
    assert finder.set_filter("@bad")
    assert finder.save_filter("bad=") == "" and said[-1] == "@bad is forgotten"


def test_a_case_that_changes_is_told_from_one_that_does_not() -> None:
    source = Source()
    arrangement, finder, _, _ = parts(source)
    finder.set_filter("failed")
    assert not arrangement.replace_some(["c"])
    source.outcomes = {**Source.outcomes, "c": "failed"}
    assert arrangement.replace_some(["c"]) and arrangement.rows["c"].status == "failed"


class Failures(Source):
    """Cases that failed."""

    def __init__(self, many: int) -> None:
        self.outcomes = {f"case {number}": "failed" for number in range(many)}

    def become(self, arrangement: ListArrangement, status: str) -> None:
        """All of them stand so now, and the list shows it."""
        self.outcomes = dict.fromkeys(self.outcomes, status)
        if arrangement.replace_some(self.outcomes):
            arrangement.rearrange()


def lines(cases: List) -> list[str]:
    return [line.kind for line in cases.cases.lines]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the list takes for the time."""
    now = [1_000.0]
    monkeypatch.setattr(list_arrangement, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("way", [["passed"], ["running", "passed"], ["waiting", "running", "passed"]])
def test_a_failure_that_passes_now_is_seen_for_a_moment_and_folds_away(
    clock: list[float], way: list[str]
) -> None:
    source = Failures(3)
    arrangement, _, cases, _ = parts(source)
    before = lines(cases)
    for status in way:
        source.become(arrangement, status)
        assert lines(cases) == before
    clock[0] += A_MOMENT / 2
    arrangement.settle()
    arrangement.rearrange()
    assert lines(cases) == before
    [(delay, callback)] = cases.timers  # one, however often the lines are made
    assert delay == A_MOMENT
    clock[0] += A_MOMENT / 2
    callback()
    assert len(lines(cases)) < len(before) and "fold" in lines(cases)
    assert not arrangement.view.held and len(cases.timers) == 1


@pytest.mark.parametrize("when", ["before the rows are made", "after they were made"])
def test_a_failure_that_passes_while_a_thread_makes_the_rows_is_seen_for_a_moment(
    clock: list[float], when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where there are few cases: it folded away at once."""
    source = Failures(3)
    arrangement, _, cases, _ = parts(source)
    before = lines(cases)
    source.become(arrangement, "running")
    monkeypatch.setattr(list_arrangement, "MANY", 2)
    threads = cases.threads
    arrangement.remake()
    source.outcomes = dict.fromkeys(source.outcomes, "passed")
    if when == "after they were made":
        arrangement.replace_some(source.outcomes)
    while threads:
        threads.pop(0)()
    assert lines(cases) == before
    [(delay, callback)] = cases.timers
    assert delay == A_MOMENT
    clock[0] += A_MOMENT
    callback()
    while threads:
        threads.pop(0)()
    assert "fold" in lines(cases) and not arrangement.view.held


@pytest.mark.parametrize(("many", "before"), [(AT_A_GLANCE + 1, "failed"), (3, "waiting")])
def test_many_that_pass_now_or_pass_for_the_first_time_fold_at_once(
    clock: list[float], many: int, before: str
) -> None:
    source = Failures(many)
    source.outcomes = dict.fromkeys(source.outcomes, before)
    arrangement, _, cases, _ = parts(source)
    for status in ("running", "passed"):
        source.become(arrangement, status)
    assert "fold" in lines(cases) and not arrangement.view.held and not cases.timers


@pytest.mark.parametrize("name", SCREENS)
def test_every_name_is_that_of_a_screen(name: str) -> None:
    made = class_of(name)
    assert issubclass(made, Screen)
    kind = getattr(made, "kind", "")
    assert kind in ("", name) or name in ("help", "manual"), kind


class Stood(Place):
    """A place that has so many steps back inside it."""

    def __init__(self, kind: str, steps: int = 0) -> None:
        super().__init__()
        self.kind, self.steps = kind, steps

    def back(self) -> bool:
        self.steps -= 1
        return self.steps >= 0


class Dialog(ModalScreen[None]):
    """A dialog that says when it is closed."""

    closed = False

    def dismiss(self, result: Any = None) -> Any:
        self.closed = True


class Stack:
    """What the controller of places asks of an app."""

    def __init__(self, *screens: Screen[Any]) -> None:
        self.screen_stack = list(screens)

    @property
    def screen(self) -> Screen[Any]:
        return self.screen_stack[-1]

    def pop_screen(self) -> None:
        self.screen_stack.pop()


def test_back_is_a_step_inside_a_place_then_out_of_it_and_never_out_of_the_suites() -> None:
    app: Any = Stack(Stood("suites"), Stood("runs", steps=1))
    places = PlaceController(app, Any)  # type: ignore[arg-type]
    kinds = []
    for _ in range(4):
        places.back()
        kinds.append([screen.kind for screen in app.screen_stack])
    assert kinds == [["suites", "runs"], ["suites"], ["suites"], ["suites"]]


def test_back_closes_a_dialog() -> None:
    dialog = Dialog()
    app: Any = Stack(Stood("suites"), dialog)
    PlaceController(app, Any).back()  # type: ignore[arg-type]
    assert dialog.closed and len(app.screen_stack) == 2


def test_a_place_that_is_open_is_gone_back_to() -> None:
    app: Any = Stack(Stood("suites"), Stood("run"), Stood("case"))
    places = PlaceController(app, Any)  # type: ignore[arg-type]
    assert not places.bring("runs") and len(app.screen_stack) == 3
    assert places.bring("run") and app.screen.kind == "run"
