"""The parts of a list of cases and the controller of places, without an app: what they are made with is made here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from textual.screen import ModalScreen, Screen

from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.screens.list_arrangement import ListArrangement
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
        self.cursor = self.top = 0
        self.touched = False
        self.current_line: Any = None

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
    services: Any = SimpleNamespace(
        state=SimpleNamespace(token=1),
        notices=SimpleNamespace(say=said.append),
        settings=SimpleNamespace(filters={}),
        memory=SimpleNamespace(filters={}),
    )
    screen: Any = SimpleNamespace(
        case_list=List(), has=lambda *_: True, rebuilt=lambda: None, tell_arranged=lambda: None
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
