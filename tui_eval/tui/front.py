"""What a controller asks of the screen in front, whichever it is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from tui_eval.tui.keys import Key
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import TreeLine


class RunsMeant(NamedTuple):
    """Runs that a comparison would be of: two that are marked, before and after, or the one under the cursor."""

    pair: tuple[str, str] | None
    one: str


@runtime_checkable
class Front(Protocol):
    """A screen that the person went to. `screens.place.Place` answers all of it for a screen without cases."""

    kind: str
    """`suites`, `run`, `runs`, `grid`, `help`, `settings`, or empty."""
    KEY_SECTIONS: tuple[tuple[str, tuple[Key, ...]], ...]
    one_column: bool
    """Whether keys mean the column that is shown alone, whatever others the case has."""
    lists_cases: bool
    """Whether it is a list of cases with a cursor and marks."""

    def current(self) -> CasePointer | None:
        """The case under the cursor, or looked at."""
        ...

    def go_to(self, pointer: CasePointer) -> None:
        """Bring this case under the cursor, or show it."""
        ...

    def back(self) -> bool:
        """One step back inside the screen; False where there is none."""
        ...

    def notice(self, words: str) -> bool:
        """Say these words where nothing is covered; False where there is no room for them."""
        ...

    def judge_again(self) -> bool:
        """Judge again what is looked at; False where the screen looks at no attempt of its own."""
        ...

    def runs_meant(self) -> RunsMeant | None:
        """The runs that a comparison would be of; None where the screen lists none."""
        ...

    def shown_entries(self) -> Sequence[CaseRow]:
        """The cases listed, in order."""
        ...

    def marked_entries(self) -> Sequence[CaseRow]:
        """Marked cases, in order; else those of the line under the cursor."""
        ...

    def marked(self) -> Collection[str]:
        """Keys of the cases that are marked."""
        ...

    def unmark(self) -> None:
        """Drop the marks."""
        ...

    def line_under_cursor(self) -> TreeLine | None:
        """The line of the list under its cursor."""
        ...

    def cases_under_cursor(self) -> Sequence[CaseRow]:
        """The cases below the line under the cursor."""
        ...

    def neighbour(self, pointer: CasePointer | None, step: int, only_failing: bool) -> CasePointer | None:
        """The next (-1: previous) case listed, or the next failing one."""
        ...
