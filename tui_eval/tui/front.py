"""What a controller asks of the screen in front, whichever it is, and the messages that tell it of news.

The news are in the app's state already when a screen hears of them; a screen behind others hears nothing and
redraws itself from the state when it is shown again (`ScreenResume`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from textual.message import Message

from tui_eval.store.schema import AttemptRow
from tui_eval.tui.keys import Key
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import TreeLine, View


class Question(NamedTuple):
    """A question: its words, its answers (key, value, words), and what it rests on."""

    question: str
    answers: Sequence[tuple[str, str, str]]
    details: Sequence[str] = ()


class RunChanged(Message, bubble=False):
    """Attempts of `app.state.run` changed; `opened` says that it is another run altogether (or its
    facts, such as paused, changed), so that everything shown of it is out of date. `run_id`: another run
    of `app.state` that the attempts are of; empty: the run in front."""

    def __init__(self, changed: list[AttemptRow], opened: bool = False, run_id: str = "") -> None:
        super().__init__()
        self.changed = changed
        self.opened = opened
        self.run_id = run_id


class LiveText(Message, bubble=False):
    """More text arrived for these attempts (ids of rows of `attempts`) of the run in front, or of the one
    called `run_id`."""

    def __init__(self, attempts: set[int], run_id: str = "") -> None:
        super().__init__()
        self.attempts = attempts
        self.run_id = run_id


class SuitesChanged(Message, bubble=False):
    """Suites were read, or the last outcomes (of these cases only, where `case_ids` are given)."""

    def __init__(self, case_ids: Collection[str] | None = None) -> None:
        super().__init__()
        self.case_ids = case_ids


class Said(Message):
    """A few words for the person (`no next turn`), shown for a moment where the screen shows such."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words


class RunsMeant(NamedTuple):
    """Runs that a comparison would be of: two that are marked, before and after, or the one under the cursor, and
    whether that goes on."""

    pair: tuple[str, str] | None
    one: str
    goes_on: bool = False


@runtime_checkable
class Front(Protocol):
    """A screen that the person went to. `screens.place.Place` answers all of it for a screen without cases."""

    kind: str
    """What it is called in the registry of screens: `suites`, `run`, `runs`, `grid`, `paper` (help, log,
    manual), `settings` …; empty where no one asks."""
    KEY_SECTIONS: tuple[tuple[str, tuple[Key, ...]], ...]
    lists_cases: bool
    """Whether it is a list of cases with a cursor and marks."""
    compares: bool
    """Whether it sets runs or attempts beside each other: what is run from there adds to the one that is looked at, or
    to none, but never to what that is measured by."""

    @property
    def one_column(self) -> bool:
        """Whether keys mean the column that is shown alone, whatever others the case has."""
        ...

    def current(self) -> CasePointer | None:
        """The case under the cursor, or looked at."""
        ...

    def all_current(self) -> Sequence[CasePointer]:
        """The cases that keys mean which act on several: all rows of the test or fold under the cursor."""
        ...

    def go_to(self, pointer: CasePointer) -> None:
        """Bring this case under the cursor, or show it."""
        ...

    def back(self) -> bool:
        """One step back inside the screen; False where there is none."""
        ...

    def place_to_edit(self) -> tuple[str, int] | None:
        """The file (from the project root) and the line that an edit should begin at, where what is looked at points
        to one; None: the case's own."""
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

    def other_failing(self, pointer: CasePointer | None) -> bool:
        """Whether a case listed fails besides this one."""
        ...


@runtime_checkable
class CaseListFront(Front, Protocol):
    """A list of cases, as controllers see it."""

    @property
    def expression(self) -> str:
        """The filter that is shown."""
        ...

    @property
    def view(self) -> View:
        """How it is arranged."""
        ...

    def pointer_of(self, entry: CaseRow) -> CasePointer:
        """Where a row's case is found."""
        ...

    def all_entries(self) -> Iterable[CaseRow]:
        """Every case, shown or not."""
        ...

    def is_whole(self) -> bool:
        """Whether it lists all that was read and the filter asks for."""
        ...

    def has_what_was_read(self) -> bool:
        """Whether all that was read has its rows, also while they are put in order."""
        ...

    def when_whole(self, do: Callable[[], Any]) -> None:
        """Do this when it is whole: at once, where it is."""
        ...

    def set_filter(self, expression: str, *, at_once: bool = False) -> bool:
        """Show what this expression asks for; False where it cannot be understood."""
        ...

    def mark(self, keys: Collection[str]) -> None:
        """Mark these cases, and no others."""
        ...

    def bring(self, key: str, suite: str = "") -> None:
        """Put the cursor on a line that is being made, also where the person has moved it; what of `suite` is
        folded is unfolded."""
        ...

    def go_when_there(self, key: str) -> None:
        """Put the cursor on a line as soon as there is one of that key, unless the person has moved it."""
        ...
