"""What the Suites and the Run screen share: a list of cases with a cursor, marks, an order, and what is under
the cursor beside it."""

from __future__ import annotations

import time
from functools import partial

from textual import on
from textual.timer import Timer

from tui_eval.tui.keys import bindings
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.list_arranging import ListArranging
from tui_eval.tui.state.case.case_details import describe
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import SORTS, TreeLine
from tui_eval.tui.state.lists.entries import failing, meant
from tui_eval.tui.widgets.case_list import CaseList
from tui_eval.tui.widgets.lines_pane import LinesPane

REST = 0.12
"""Seconds the cursor rests before the right side follows it, so that a held key stays cheap."""


class ListPlace(ListArranging, inherit_bindings=False):
    """A screen around a `CaseList`. Those derived say what its entries are, and compose."""

    BINDINGS = bindings("screen")
    lists_cases = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]

    def __init__(self) -> None:
        super().__init__()
        self._rest_timer: Timer | None = None
        self._other_marks = False

    # -- the cursor

    def marked_entries(self) -> list[CaseRow]:
        """Marked cases, in order; else those of the line under the cursor."""
        cases = self.case_list
        if cases.marks:
            return [entry for entry in self._entries.values() if entry.key in cases.marks]
        line = cases.current_line
        if line is None:
            return []
        return [line.entry] if line.entry is not None else cases.below(line)

    def marked(self) -> set[str]:
        """Keys of the cases that are marked."""
        return self.case_list.marks

    def unmark(self) -> None:
        """Drop the marks."""
        self.case_list.marks = set()
        self.case_list.refresh()

    def line_under_cursor(self) -> TreeLine | None:
        """The line under the cursor."""
        return self.case_list.current_line

    def cases_under_cursor(self) -> list[CaseRow]:
        """The cases below the line under the cursor."""
        line = self.case_list.current_line
        return self.case_list.below(line) if line is not None else []

    def pointer_of(self, entry: CaseRow) -> CasePointer:
        """Where an entry's case is found."""
        return CasePointer(entry.case_id, entry.agent or None, entry.model or None)

    def current(self) -> CasePointer | None:
        """The case under the cursor."""
        entry = self.case_list.current_entry
        return self.pointer_of(entry) if entry is not None else None

    def go_to(self, pointer: CasePointer) -> None:
        """Put the cursor on this case, unfolding what hides it."""
        for entry in self.shown_entries():
            if meant(entry, pointer):
                if not self.case_list.go_to(entry.key):
                    self.unfold(entry)
                return

    def go_when_there(self, key: str) -> None:
        """Put the cursor on a line as soon as there is one of that key, unless the person has moved it."""
        if not self.case_list.go_to(key):
            self._wanted = key

    def bring(self, key: str, suite: str = "") -> None:
        """Put the cursor on a line that is being made, also where the person has moved it; what of `suite` is
        folded is unfolded."""
        if suite:
            self.view.folded = {folded for folded in self.view.folded if not _holds(folded, suite)}
        self.case_list.touched = False
        self._wanted = key

    def unfold(self, entry: CaseRow) -> None:
        """Unfold what hides a case, and put the cursor on it."""
        self.view.folded = {key for key in self.view.folded if not _holds(key, entry.suite)}
        self.rebuild(entries=False)
        self.case_list.go_to(entry.key)

    def neighbour(self, pointer: CasePointer | None, step: int, only_failing: bool) -> CasePointer | None:
        """The next (or previous) case in the list's order, or the next failing one; comes round at
        the end when looking for failing ones."""
        shown = self.shown_entries()
        if not shown:
            return None
        here = next(
            (number for number, entry in enumerate(shown) if pointer is not None and meant(entry, pointer)),
            None,
        )
        if here is None:
            here = self._before_cursor(shown) if step > 0 else self._before_cursor(shown) + 1
        for distance in range(1, len(shown) + 1):
            index = here + step * distance
            if not only_failing:
                return self.pointer_of(shown[index]) if 0 <= index < len(shown) else None
            entry = shown[index % len(shown)]
            if failing(entry):
                return self.pointer_of(entry)
        return None

    def _before_cursor(self, shown: list[CaseRow]) -> int:
        """The number of the last case shown above a cursor that stands on a folder or suite."""
        cases = self.case_list
        for index in range(min(cases.cursor, len(cases.cases.lines) - 1), -1, -1):
            entry = cases.cases.lines[index].entry
            if entry is not None:
                return next((n for n, other in enumerate(shown) if other is entry), -1)
        return -1

    # -- the right side

    @on(CaseList.Moved)
    def _moved(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.stop()
        self._rest_timer = self.set_timer(REST, self._rested)

    @on(CaseList.Marked)
    def _marked(self) -> None:
        self._other_marks = True
        self._moved()

    def _rested(self) -> None:
        """The cursor rests: show what is under it and how many are marked, and let go what was held for it."""
        if self._other_marks:
            self._other_marks = False
            self.rebuilt()
        else:
            self.show_detail()
        if self._settled():
            self.rearrange()

    def show_detail(self) -> None:
        """What is under the cursor, in the pane beside the list where that is seen."""
        pane = self.query_one(LinesPane)
        if pane.display:
            line = self.case_list.current_line
            if line is None:
                pane.show([])
                return
            below = partial(self.case_list.below, line)
            pane.show(describe(line, self.services.symbols, now(), below))

    # -- keys

    @on(CaseList.Folded)
    def _fold(self, event: CaseList.Folded) -> None:
        event.stop()
        if event.folded:
            self.view.folded.add(event.key)
        else:
            self.view.folded.discard(event.key)
        self.rearrange()

    def action_sort(self) -> None:
        """The next way to sort."""
        number = SORTS.index(self.view.sort) if self.view.sort in SORTS else 0
        self.view.sort = SORTS[(number + 1) % len(SORTS)]
        self._otherwise(f"sorted by {self.view.sort}")

    def action_reverse(self) -> None:
        """The other way round."""
        self.view.reverse = not self.view.reverse
        self._otherwise("the other way round" if self.view.reverse else f"sorted by {self.view.sort}")

    def action_failures_first(self) -> None:
        """Failures float up, or stay where they are."""
        self.view.failures_first = not self.view.failures_first
        self._otherwise("failures first" if self.view.failures_first else f"sorted by {self.view.sort}")

    def _otherwise(self, words: str) -> None:
        """The person wants another order: nothing is held, and what comes first in it is seen."""
        self.view.held.clear()
        self._from_top = self.view.flat
        self.rearrange()
        self.services.notices.say(words)

    def action_note(self) -> None:
        """Ask what to note on the case's answer."""
        pointer = self.current()
        if pointer is None:
            self.services.notices.say("put the cursor on a case first")
        else:
            self.services.notes.ask(pointer, self.ask_note)

    def back(self) -> bool:
        """Leave the prompt, else drop the marks, else the filter."""
        if self.leave_prompt():
            return True
        if self.case_list.marks:
            self.case_list.marks = set()
            self.case_list.refresh()
            self.rebuilt()
            return True
        if self.expression:
            self.set_filter("")
            return True
        return False


def _holds(key: str, suite: str) -> bool:
    return key == suite or (key.endswith("/") and suite.startswith(key))


def now() -> float:
    """Seconds since the epoch; one place to look when a test needs another clock."""
    return time.time()
