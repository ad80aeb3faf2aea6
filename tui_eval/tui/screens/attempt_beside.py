"""What stands beside (or below) a list: the attempt under the cursor; of a list of cases also those of all rows of its
test, or how its case is defined; of a table of a comparison, a search, a grid, a run what its cursor stands for.

What reads an attempt and draws it is imported when the first one is to be shown: the app's first frame has none, and
would wait for a twelfth of its time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from textual.timer import Timer

from tui_eval.guard.text import visible
from tui_eval.model import OUTCOMES
from tui_eval.tui.handlers import Handler
from tui_eval.tui.services import AppServices
from tui_eval.tui.state.app_state import CasePointer, Where, where_is
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import TreeLine
from tui_eval.tui.state.text.lines import Line
from tui_eval.tui.widgets.case_list import CaseList
from tui_eval.tui.widgets.lines_pane import LinesPane

WIDE = 100
"""Columns of a screen from which on the pane stands beside its list; else it has a few lines below it."""
PATIENCE = 0.25
"""Seconds after which the case's definition stands there until its attempt has been read."""
KEPT = 64
"""Attempts that are kept, so that going back to one reads nothing."""
MOST_ANSWERS = 24
"""Rows of a test whose answers are shown one after the other."""
SIZES = ("", "-large", "-hidden")
"""The classes of a screen by how much of it the pane takes."""


class Told(NamedTuple):
    """What was read of attempts: in full, and in brief for a pane of few lines."""

    lines: list[Line]
    brief: list[Line] | None = None


def _told(where: Where, turn: int | None = None) -> Told:
    from tui_eval.tui.loaders.case_loader import load
    from tui_eval.tui.state.case.attempt_preview import brief_lines, preview_lines

    content = load(where)
    return Told(preview_lines(content, turn=turn), brief_lines(content, turn=turn))


def _answers(places: Sequence[tuple[str, Where]]) -> Told:
    from tui_eval.tui.loaders.case_loader import load
    from tui_eval.tui.state.case.attempt_preview import answers_lines, brief_answers

    answers = [(label, load(where)) for label, where in places]
    return Told(answers_lines(answers), brief_answers(answers))


class PaneScreen(Protocol):
    """What a pane with attempts asks of the screen it stands in."""

    def query_one(self, selector: type[LinesPane], /) -> LinesPane:
        """The pane."""
        ...

    def has(self, *selectors: str) -> bool:
        """Whether these widgets are there, and the screen with them."""
        ...

    def set_class(self, add: bool, *class_names: str) -> Any:
        """Give the screen these classes, or take them away."""
        ...

    def call_after_refresh(self, callback: Callable[..., Any]) -> Any:
        """Call this when the screen has been laid out again."""
        ...

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> Timer:
        """Call this once, in so many seconds."""
        ...


class BesideScreen(PaneScreen, Protocol):
    """What this asks of a screen with a list of cases."""

    @property
    def case_list(self) -> CaseList:
        """The list."""
        ...

    def all_entries(self) -> Iterable[CaseRow]:
        """Every case, shown or not."""
        ...

    def pointer_of(self, entry: CaseRow) -> CasePointer:
        """Where a row's case is found."""
        ...


class ShownAttempts:
    """Reads attempts in a thread and shows them in a screen's pane; keeps those read last. The one way in which an
    attempt comes to stand beside a list."""

    def __init__(self, screen: PaneScreen, services: AppServices, again: Callable[[], None]) -> None:
        """`again` shows what is under the cursor, when the pane has another size."""
        self._screen, self._services, self._again = screen, services, again
        self._kept: OrderedDict[Hashable, Told] = OrderedDict()
        self._coming: set[Hashable] = set()
        self._wanted: Hashable = None
        self._size = 0

    @property
    def pane(self) -> LinesPane:
        """The pane that they are shown in."""
        return self._screen.query_one(LinesPane)

    @property
    def large(self) -> bool:
        """Whether the pane takes most of the screen."""
        return SIZES[self._size] == "-large"

    def handlers(self) -> Mapping[str, Handler]:
        """What its key does."""
        return {"list.pane_size": self.resize}

    def resize(self) -> None:
        """More of the pane, none of it, or as it was."""
        self._size = (self._size + 1) % len(SIZES)
        for number, name in enumerate(SIZES):
            if name:
                self._screen.set_class(number == self._size, name)
        self._screen.call_after_refresh(self._again)

    def none(self, head: Sequence[tuple[str, str]] = ()) -> None:
        """No attempt, only these paragraphs."""
        self._wanted = None
        if self.pane.display:
            self.pane.show(head)

    def show(
        self,
        key: Hashable,
        places: Sequence[tuple[str, Where]],
        head: Sequence[tuple[str, str]],
        otherwise: Callable[[], None],
        *,
        turn: int | None = None,
    ) -> None:
        """The attempt of the one place, or those of several under their labels, below these paragraphs; `key` is the
        same as long as they are. `otherwise` shows something else where there is none, and until it has been read;
        `turn` is the one that is looked at."""
        pane = self.pane
        self._wanted = None
        if not pane.display:
            return
        if key in self._kept:
            self._kept.move_to_end(key)
            if self._kept[key].lines:
                pane.show(head, *self._kept[key])
            else:
                otherwise()
            return
        self._wanted = key

        read = partial(_told, places[0][1], turn) if len(places) == 1 else partial(_answers, list(places))
        take = partial(self._read, key, list(head), otherwise)
        self._services.tasks.thread(read, take, name="attempt")
        self._screen.set_timer(PATIENCE, partial(self._late, key, otherwise))

    def show_known(self, key: Hashable, head: Callable[[], list[tuple[str, str]]]) -> None:
        """Show this attempt where it has been read."""
        told = self._kept.get(key)
        if told and told.lines and self._screen.has("LinesPane") and self.pane.display:
            self.pane.show(head(), *told)

    def ahead(self, key: Hashable, where: Where) -> None:
        """Read what the cursor may come to next, so that it is there with the key that goes to it."""
        if key in self._kept or key in self._coming:
            return
        self._coming.add(key)

        def take(told: Told) -> None:
            self._coming.discard(key)
            self._keep(key, told)

        self._services.tasks.thread(partial(_told, where), take, name="attempt ahead")

    def _keep(self, key: Hashable, told: Told) -> None:
        self._kept[key] = told
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def _read(
        self, key: Hashable, head: list[tuple[str, str]], otherwise: Callable[[], None], told: Told
    ) -> None:
        self._keep(key, told)
        if key != self._wanted or not self._screen.has("LinesPane"):
            return
        self._wanted = None
        if told.lines:
            self.pane.show(head, *told)
        else:  # its run is gone, or holds no attempt of it that ended
            otherwise()

    def _late(self, key: Hashable, otherwise: Callable[[], None]) -> None:
        if key == self._wanted and self._screen.has("LinesPane"):
            otherwise()


class AttemptBeside:
    """What stands beside a list of cases."""

    def __init__(self, screen: BesideScreen, services: AppServices, now: Callable[[], float]) -> None:
        self._screen, self._services, self._now = screen, services, now
        self._attempts = ShownAttempts(screen, services, self.show)
        self._defined = self._together = False

    def resize(self) -> None:
        """More of the pane, none of it, or as it was."""
        self._attempts.resize()

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            "list.definition": self.other,
            "list.siblings": self.together,
            **self._attempts.handlers(),
        }

    def other(self) -> None:
        """The attempt, or how the case is defined."""
        self._defined, self._together = not self._defined, False
        self._services.notices.say("how the case is defined" if self._defined else "the attempt")
        self.show()

    def together(self) -> None:
        """The answers of all rows of a test, or the one under the cursor."""
        self._defined, self._together = False, not self._together
        self._services.notices.say("the answers of all rows of a test" if self._together else "the attempt")
        self.show()

    def show(self) -> None:
        """Show what is under the cursor, where the pane is seen."""
        if not self._attempts.pane.display:
            return
        line = self._screen.case_list.current_line
        entry = line.telling if line is not None else None
        if line is None:
            self._attempts.none()
            return
        if self._defined or entry is None or entry.status not in OUTCOMES:
            self._attempts.none(self._described(line))
            return
        rows = self._rows_of_test(entry) if self._together else [entry]
        key = tuple(map(self._key_of, rows))
        state, pointer_of = self._services.state, self._screen.pointer_of
        places = [
            (row.variant or row.agent or row.name, where_is(state, pointer_of(row), family=False))
            for row in rows
        ]
        self._attempts.show(key, places, self._head(entry, rows), partial(self._describe, line))
        if not self._together:
            self._read_ahead()

    def _key_of(self, row: CaseRow) -> Hashable:
        return (self._screen.pointer_of(row), row.finished_at, row.attempts, row.message, row.edited)

    def _read_ahead(self) -> None:
        """The attempts of the lines around the cursor."""
        cases = self._screen.case_list
        lines = cases.cases.lines
        for at in (cases.cursor + 1, cases.cursor + 2, cases.cursor - 1):
            entry = lines[at].telling if 0 <= at < len(lines) else None
            if entry is not None and entry.status in OUTCOMES:
                where = where_is(self._services.state, self._screen.pointer_of(entry), family=False)
                self._attempts.ahead((self._key_of(entry),), where)

    def show_known(self) -> None:
        """The attempt of the line under the cursor, where it has been read."""
        line = self._screen.case_list.current_line
        entry = line.telling if line is not None else None
        if entry is None or self._defined or self._together or entry.status not in OUTCOMES:
            return
        self._attempts.show_known((self._key_of(entry),), lambda: self._head(entry, [entry]))

    def _rows_of_test(self, entry: CaseRow) -> list[CaseRow]:
        """The rows of its test that have ended, itself where it is the only one."""
        rows = [one for one in self._screen.all_entries() if one.of_test == entry.of_test]
        return [one for one in rows if one.status in OUTCOMES][:MOST_ANSWERS] or [entry]

    def _head(self, entry: CaseRow, rows: Sequence[CaseRow]) -> list[tuple[str, str]]:
        from tui_eval.tui.state.case.case_details import entry_head

        if len(rows) == 1:
            head = entry_head(rows[0], self._services.symbols)
            line = self._screen.case_list.current_line
            own = line is not None and line.entry is not None
            # The app knows the terminal's size before anything is laid out.
            below = self._attempts.pane.app.size.width < WIDE and not self._attempts.large
            # Where a few lines are all there is, a row of its own says what it is; a line of several says it of none.
            return head[1:] if own and below else head
        return [("title", visible(entry.name, newlines=False))]

    def _described(self, line: TreeLine) -> list[tuple[str, str]]:
        from tui_eval.tui.state.case.case_details import describe

        below = partial(self._screen.case_list.below, line)
        return describe(line, self._services.symbols, self._now(), below)

    def _describe(self, line: TreeLine) -> None:
        self._attempts.pane.show(self._described(line))


BREAKPOINTS = [(0, "-short"), (14, "-low"), (20, "-tall"), (30, "-roomy")]
"""Lines of a screen from which on the pane is there below a list with a few lines, below a table too, and is large."""
REST = 0.12
"""Seconds the cursor rests before the pane follows it, so that a held key stays cheap."""


class LookedAt(NamedTuple):
    """What is under the cursor: the attempts under what tells them apart, what stands above them, what stands there
    where none of them can be read; `turn` is the one that is looked at."""

    key: Hashable
    places: Sequence[tuple[str, Where]]
    head: Sequence[tuple[str, str]] = ()
    otherwise: Sequence[tuple[str, str]] = ()
    turn: int | None = None


class AttemptBelow:
    """Follows a table's cursor with its screen's pane."""

    def __init__(
        self, screen: PaneScreen, services: AppServices, under_cursor: Callable[[], LookedAt | None]
    ) -> None:
        """`under_cursor` says what is to be shown; None: nothing."""
        self._screen, self._under_cursor = screen, under_cursor
        self._attempts = ShownAttempts(screen, services, self.show)
        self._timer: Timer | None = None
        self._moved_at = 0.0

    def handlers(self) -> Mapping[str, Handler]:
        """What its key does."""
        return self._attempts.handlers()

    @property
    def seen(self) -> bool:
        """Whether the pane is."""
        return self._attempts.pane.display

    def moved(self) -> None:
        """One step shows at once what is under the cursor; of many in a row only the last does."""
        if self._timer is not None:
            self._timer.stop()
        before, self._moved_at = self._moved_at, time.monotonic()
        if self._moved_at - before > REST:
            self.show()
        else:
            self._timer = self._screen.set_timer(REST, self.show)

    def show(self) -> None:
        """Show what is under the cursor, where the pane is seen."""
        if not self._screen.has("LinesPane") or not self.seen:
            return
        looked = self._under_cursor()
        if looked is None or not looked.places:
            self._attempts.none(looked.otherwise if looked is not None else ())
            return
        head, otherwise = looked.head, [*looked.head, *looked.otherwise]
        self._attempts.show(
            looked.key,
            looked.places,
            head,
            lambda: self._attempts.pane.show(otherwise),
            turn=looked.turn,
        )
