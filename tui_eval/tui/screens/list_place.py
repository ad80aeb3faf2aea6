"""What the Suites and the Run screen share: a list of cases that is filtered, sorted and searched.

Many entries and their lines are made in a thread: no key waits for a hundred thousand of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from textual import on
from textual.timer import Timer

from tui_eval.model import Suite
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.collecting import undisturbed
from tui_eval.tui.keys import bindings
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.list_finding import ListFinding
from tui_eval.tui.state.case_entry import Entry
from tui_eval.tui.state.case_tree import SORTS, Tree, View, build
from tui_eval.tui.state.describing import describe
from tui_eval.tui.state.entries import failing, meant
from tui_eval.tui.widgets.case_list import CaseList
from tui_eval.tui.widgets.lines_pane import LinesPane

MANY = 20_000
"""Entries from which on they are made, sorted and filtered in a thread."""
REST = 0.12
"""Seconds the cursor rests before the right side follows it, so that a held key stays cheap."""
GOES_ON = ("running", "retrying", "waiting")


class ListPlace(ListFinding, inherit_bindings=False):
    """A screen around a `CaseList`. Those derived say what its entries are, and compose."""

    BINDINGS = bindings("screen")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, Entry] = {}
        self._arrangement = 0
        self._changes = 0
        self._token: object = None
        self._late: set[str] | None = None
        """Keys whose entries changed while a thread makes all of them."""
        self._rest_timer: Timer | None = None
        self._wanted = ""
        self._other_marks = False
        self._from_top = False

    # -- for those derived

    def case_count(self) -> int:
        """How many entries there are to be made."""
        raise NotImplementedError

    def entry_maker(self) -> Callable[[], list[Entry]]:
        """What makes every case of this place, as it stands now; may be called in a thread."""
        raise NotImplementedError

    def entries_of(self, keys: Iterable[str]) -> Iterable[Entry]:
        """Some of them anew."""
        raise NotImplementedError

    def list_suites(self) -> Iterable[Suite]:
        """Suites whose problems stand in the list."""
        return ()

    # -- the list

    def prepare(self) -> bool:
        """Before lines are made anew; says whether the cursor stays on its case."""
        self.view.held -= self._settled()
        return True

    def remake(self) -> None:
        """Make the entries anew from the state, and the lines from them; many of them in a thread."""
        if self.case_count() <= MANY:
            self.rebuild()
            return
        self._arrangement += 1
        arrangement, keep = self._arrangement, self.prepare()
        make, old, suites = self.entry_maker(), self._entries, list(self.list_suites())
        view, token = self._snapshot(), self.eval_app.state.token
        self._late = set()

        def work() -> tuple[dict[str, Entry], Tree]:
            with undisturbed():
                entries = {entry.key: entry for entry in make()}
                hold(view, old, entries)
                return entries, build(entries.values(), suites, view)

        def take(made: tuple[dict[str, Entry], Tree]) -> None:
            if arrangement != self._arrangement or not stands(self):
                return
            late, self._late = self._late or set(), None
            self._entries, self._token = made[0], token
            self.view.held |= view.held
            self._take(made[1], keep)
            if self.replace_entries(self.entries_of(late)):
                self.rearrange()

        run_in_thread(self.eval_app, work, take, name="entries")

    def rebuild(self, *, entries: bool = True, keep: bool = True) -> Tree:
        """Make the lines anew (and the entries from the state, where `entries`)."""
        if entries or not self._entries:
            self._token = self.eval_app.state.token
            old, self._late = self._entries, None
            self._entries = {entry.key: entry for entry in self.entry_maker()()}
            hold(self.view, old, self._entries)
        keep = self.prepare() and keep
        tree = build(self._entries.values(), self.list_suites(), self.view)
        self._arrangement += 1
        self._take(tree, keep)
        return tree

    def rearrange(self) -> None:
        """The same entries under another filter or order; many of them in a thread."""
        if max(len(self._entries), self.case_count()) <= MANY:
            self.rebuild(entries=False)
            return
        if (
            self._late is not None or not self._entries
        ):  # all of them are being made: they are arranged as it is now wanted
            self.remake()
            return
        self._arrangement += 1
        arrangement, changes, keep = self._arrangement, self._changes, self.prepare()
        entries, suites, view = list(self._entries.values()), list(self.list_suites()), self._snapshot()

        def work() -> Tree:
            with undisturbed():
                return build(entries, suites, view)

        def take(tree: Tree) -> None:
            if arrangement != self._arrangement or not stands(self):
                return
            self._take(tree, keep)
            if changes != self._changes and not view.flat:
                self.set_timer(1.0, self.rearrange)  # cases went on meanwhile: the folders' counts

        run_in_thread(self.eval_app, work, take, name="arranging")

    def _snapshot(self) -> View:
        return replace(self.view, folded=set(self.view.folded), held=set(self.view.held))

    def _take(self, tree: Tree, keep: bool) -> None:
        cases = self.case_list
        if self._from_top:
            self._from_top, keep, cases.cursor, cases.top = False, False, 0, 0
        cases.show(tree, keep=keep)
        if self._wanted and (cases.touched or cases.go_to(self._wanted)):
            self._wanted = ""
        self.rebuilt()

    def _settled(self) -> set[str]:
        """Cases that need not be held where they were any longer: what they were run for has come out, and
        the cursor is elsewhere."""
        line = self.case_list.current_line if self.view.held else None
        here = line.key if line is not None else ""
        return {
            key
            for key in self.view.held
            if key != here and (key not in self._entries or self._entries[key].status not in GOES_ON)
        }

    def up_to_date(self) -> bool:
        """Whether nothing has changed since the entries were made."""
        return bool(self._entries) and self._token == self.eval_app.state.token

    def replace_entries(self, fresh: Iterable[Entry]) -> bool:
        """Entries changed: redraw their lines. Says whether the order may have changed with them."""
        cases = self.case_list
        lines: set[int] = set()
        moved = False
        for new in fresh:
            if self._late is not None:
                self._late.add(new.key)
            old = self._entries.get(new.key)
            if old is None:
                moved = True
                self._entries[new.key] = new
                continue
            before, note = old.status, old.note
            self._changes += 1
            new.variant = old.variant
            if before == new.status and not _differs(old, new):
                continue
            hold(self.view, {old.key: old}, {new.key: new})
            for name in Entry.__slots__:
                setattr(old, name, getattr(new, name))
            cases.widen(old)
            lines.update(cases.status_changed(old.key, before, old.status))
            if (before, note) != (old.status, old.note) and (self.view.flat or self.view.accept is not None):
                moved = True
        cases.refresh_lines(lines)
        return moved

    def shown_entries(self) -> list[Entry]:
        """Cases that pass the filter, in order."""
        return self.case_list.cases.shown

    def all_entries(self) -> Iterable[Entry]:
        """Every case, shown or not, in the order of the files or of the run."""
        return self._entries.values()

    def marked_entries(self) -> list[Entry]:
        """Marked cases, in order; else those of the line under the cursor."""
        cases = self.case_list
        if cases.marks:
            return [entry for entry in self._entries.values() if entry.key in cases.marks]
        line = cases.current_line
        if line is None:
            return []
        return [line.entry] if line.entry is not None else cases.below(line)

    def pointer_of(self, entry: Entry) -> CasePointer:
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

    def unfold(self, entry: Entry) -> None:
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

    def _before_cursor(self, shown: list[Entry]) -> int:
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
            pane.show(describe(line, self.eval_app.symbols, now(), below))

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
        self.eval_app.say(words)

    def action_note(self) -> None:
        """Ask what to note on the case's answer."""
        pointer = self.current()
        if pointer is None:
            self.eval_app.say("put the cursor on a case first")
        else:
            self.eval_app.note_case(self, pointer)

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


def hold(view: View, old: dict[str, Entry], new: dict[str, Entry]) -> None:
    """Let cases stay where they are that lose their place by what has become of them."""
    if view.accept is None and not view.failures_first:
        return
    for key, entry in new.items():
        before = old.get(key)
        if before is None or (before.status, before.flaky, before.note) == (
            entry.status,
            entry.flaky,
            entry.note,
        ):
            continue
        if any(had and not has for had, has in zip(view.place(before), view.place(entry), strict=True)):
            view.held.add(key)


def _differs(old: Entry, new: Entry) -> bool:
    return any(getattr(old, name) != getattr(new, name) for name in Entry.__slots__ if name != "case")


def _holds(key: str, suite: str) -> bool:
    return key == suite or (key.endswith("/") and suite.startswith(key))


def now() -> float:
    """Seconds since the epoch; one place to look when a test needs another clock."""
    return time.time()
