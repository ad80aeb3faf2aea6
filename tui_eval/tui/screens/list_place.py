"""What the Suites and the Run screen share: a list of cases with a cursor, marks, an order, and what is under
the cursor beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace
from textual import on
from textual.signal import Signal
from textual.timer import Timer

from tui_eval.store.notes import HumanNote
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import KEYS, Key, bindings
from tui_eval.tui.screens.attempt_beside import BREAKPOINTS, WIDE, AttemptBeside
from tui_eval.tui.screens.list_arrangement import GOES_ON, ListArrangement
from tui_eval.tui.screens.list_finder import ListFinder
from tui_eval.tui.screens.place import Place, keys_of, labelled
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.services import ASKS_NOTHING
from tui_eval.tui.state.app_state import CasePointer, where_is
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_sources import CaseSource
from tui_eval.tui.state.lists.case_tree import Tree, TreeLine, View
from tui_eval.tui.state.lists.entries import NOT_PASSED, failing, meant, not_passed
from tui_eval.tui.terminal import clipboard
from tui_eval.tui.terminal.type_ahead import keys_wait
from tui_eval.tui.widgets.bars import KeyHints
from tui_eval.tui.widgets.case_list import CaseList
from tui_eval.tui.widgets.row_view import RowView

REST = 0.12
"""Seconds the cursor rests before the right side follows it, so that a held key stays cheap."""


OPENS = bindings("list", tuple(key for key in KEYS if key.id == "list.open"))
"""Enter in a pane: the case that stands there."""


class ListPlace(Place, inherit_bindings=False):
    """A screen around a `CaseList`. Those derived compose it, and say what else changes when its lines do."""

    BINDINGS = [*bindings("screen"), *OPENS]
    lists_cases = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
    VERTICAL_BREAKPOINTS = BREAKPOINTS

    def __init__(self, source: CaseSource, *, floats: bool = False) -> None:
        """`source`: the cases listed; `floats`: see `ListArrangement`."""
        super().__init__()
        services = self.services
        self.source = source
        self.arranged: Signal[None] = Signal(self, "arranged")
        """Published when the cases are others, or in another order: a screen over this one may show them too."""
        self.arrangement = ListArrangement(self, source, services, floats=floats)
        self.finder = ListFinder(self, services, self.prompts, self.arrangement)
        self.preview = AttemptBeside(self, services, now)
        self._rest_timer: Timer | None = None
        self._moved_at = 0.0
        self._other_marks = False

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            **self.finder.handlers(),
            **self.arrangement.handlers(),
            **self.preview.handlers(),
            "list.pane_size": self._resize_pane,
            "list.note": self.note,
            "list.copy": self.copy,
            "list.difference": partial(self._open_at, "difference"),
            "list.history": partial(self._open_at, "history"),
            "pane.next": partial(self.pane, 1),
            "pane.previous": partial(self.pane, -1),
        }

    # -- for those derived

    def pane(self, step: int) -> None:
        """To the next (-1: previous) pane."""
        raise NotImplementedError

    def rebuilt(self) -> None:
        """Other lines are shown, or others of them are marked."""

    def tell_arranged(self) -> None:
        """Publish it."""
        self.arranged.publish(None)

    def nothing(self) -> list[str]:
        """What the list says where there is no case, filtered or not."""
        raise NotImplementedError

    # -- what the list is

    @property
    def case_list(self) -> CaseList:
        """The list."""
        return self.query_one(CaseList)

    @property
    def view(self) -> View:
        """How the list is arranged."""
        return self.arrangement.view

    @property
    def expression(self) -> str:
        """The filter that is shown."""
        return self.finder.expression

    def set_filter(self, expression: str, *, at_once: bool = False) -> bool:
        """Show what this expression asks for; False where it cannot be understood."""
        return self.finder.set_filter(expression, at_once=at_once)

    def shown_entries(self) -> list[CaseRow]:
        """Cases that pass the filter, in order."""
        return self.case_list.cases.shown

    def all_entries(self) -> Iterable[CaseRow]:
        """Every case, shown or not, in the order of the files or of the run."""
        return self.arrangement.rows.values()

    def is_whole(self) -> bool:
        """Whether it lists all that was read and the filter asks for; see `ListArrangement.is_whole`."""
        return self.arrangement.is_whole()

    def has_what_was_read(self) -> bool:
        """Whether all that was read has its rows; see `ListArrangement.has_what_was_read`."""
        return self.arrangement.has_what_was_read()

    def when_whole(self, do: Callable[[], Any]) -> None:
        """Do this when it is whole; see `ListArrangement.when_whole`."""
        self.arrangement.when_whole(do)

    def mark_when_whole(self, mark: Callable[[], Any]) -> None:
        """Mark what the filter lets through, when the list holds that; what is typed meanwhile is meant for
        the marks."""
        if self.is_whole():
            mark()
            return
        opened = keys_wait(self.app)

        def do() -> None:
            mark()
            opened()

        self.when_whole(do)

    def say_nothing(self) -> None:
        """Let an empty list say why it is."""
        filtered = ["Nothing matches the filter.", "F clears it, f changes it."]
        empty = filtered if self.expression else self.nothing()
        if self.case_list.empty != empty:
            self.case_list.empty = empty
            if not self.case_list.cases.lines:
                self.case_list.refresh()

    # -- the cursor

    @property
    def one_column(self) -> bool:
        """Whether one row is under the cursor, and not a line that stands for several."""
        line = self.case_list.current_line if self.has(CaseList) else None
        return line is not None and line.entry is not None

    def marked_entries(self) -> list[CaseRow]:
        """Marked cases, in order; else those of the line under the cursor."""
        cases = self.case_list
        if cases.marks:
            return [entry for entry in self.all_entries() if entry.key in cases.marks]
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
        return self.source.pointer_of(entry)

    def current(self) -> CasePointer | None:
        """The case under the cursor; on a test's line that of its rows which stands worst."""
        line = self.case_list.current_line
        entry = line.telling if line is not None else None
        return self.pointer_of(entry) if entry is not None else None

    def all_current(self) -> Sequence[CasePointer]:
        """The case under the cursor; on a line that stands for several, all of these."""
        line = self.case_list.current_line
        if line is None or not line.members:
            return super().all_current()
        return [self.pointer_of(entry) for entry in line.standing]

    def go_to(self, pointer: CasePointer) -> None:
        """Put the cursor on this case, unfolding what hides it."""
        cases = self.case_list
        for entry in self.shown_entries():
            if meant(entry, pointer):
                line = cases.cases.stands_for(entry.key)
                if line is None or not cases.go_to(line.key):
                    self.arrangement.unfold(entry)
                return

    def mark(self, keys: Collection[str]) -> None:
        """Mark these cases, and no others."""
        self.case_list.marks = set(keys)

    def bring(self, key: str, suite: str = "") -> None:
        """Put the cursor on a line that is being made; see `ListArrangement.bring`."""
        self.arrangement.bring(key, suite)

    def go_when_there(self, key: str) -> None:
        """Put the cursor on a line as soon as it is there; see `ListArrangement.go_when_there`."""
        self.arrangement.go_when_there(key)

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
        here = self._past_fold(shown, here, step)
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

    def other_failing(self, pointer: CasePointer | None) -> bool:
        """Whether a case shown fails besides this one."""
        many = self.case_list.cases.standing().failing if self.has(CaseList) else 0
        if many != 1 or pointer is None:
            return many > 0
        return not any(failing(entry) and meant(entry, pointer) for entry in self.shown_entries())

    def _past_fold(self, shown: list[CaseRow], here: int | None, step: int) -> int | None:
        """Where the cursor stands on a folded line that stands for several cases, the last of these in the
        direction gone: none of them is to be seen one by one."""
        line = self.case_list.current_line
        if not self.is_current or line is None or not line.folded or not line.members:
            return here
        keys = {entry.key for entry in line.members}
        numbers = [number for number, entry in enumerate(shown) if entry.key in keys]
        return (numbers[-1] if step > 0 else numbers[0]) if numbers else here

    def _before_cursor(self, shown: list[CaseRow]) -> int:
        """The number of the last case shown above a cursor that stands on a folder or suite."""
        cases = self.case_list
        for index in range(min(cases.cursor, len(cases.cases.lines) - 1), -1, -1):
            entry = cases.cases.lines[index].entry
            if entry is not None:
                return next((n for n, other in enumerate(shown) if other is entry), -1)
        return -1

    # -- the right side

    def at_once(self) -> None:
        """An attempt that has been read is painted with the cursor, not a frame later."""
        if time.monotonic() - self._moved_at > REST:
            self.preview.show_known()

    @on(CaseList.Moved)
    def _moved(self) -> None:
        """One step shows at once what is under the cursor; of many in a row only the last does."""
        if self._rest_timer is not None:
            self._rest_timer.stop()
        before, self._moved_at = self._moved_at, time.monotonic()
        if self._moved_at - before > REST:
            self._rested()
        else:
            self._rest_timer = self.set_timer(REST, self._rested)

    @on(CaseList.Marked)
    def _marked(self) -> None:
        self._other_marks = True
        self._moved()

    def _rested(self) -> None:
        """The cursor rests: show what is under it and how many are marked."""
        if self._other_marks:
            self._other_marks = False
            self.rebuilt()
        else:
            self.show_detail()
        self.arrangement.settle()

    def show_detail(self) -> None:
        """What is under the cursor, in the pane beside the list where that is seen, and the keys for it."""
        self.preview.show()
        self.show_hints()

    # -- the footer

    def useful(self) -> set[str]:
        """Ids of the keys that would do something to what is under the cursor; those that it does not speak of
        always do."""
        cases = self.case_list
        found = useful(cases.cases, cases.current_line, marks=cases.marks, filtered=bool(self.expression))
        if not cases.has_focus and self.current() is None:
            found.discard("list.open")
        told = cases.current_line.telling if cases.current_line is not None else None
        if told is not None and self.kind == "run" and self.services.state.only_results(told.suite):
            found -= OF_THE_SUITE
        return found

    def useful_keys(self, *ids: str) -> list[Key]:
        """Rows of the key table by their ids, but for those that would do nothing now."""
        if not self.is_mounted:  # without its list none of them does anything
            return [key for key in keys_of(*ids) if key.id not in SPOKEN_OF]
        idle = SPOKEN_OF - self.useful()
        keys = [key for key in keys_of(*ids) if key.id not in idle]
        cases = self.case_list
        if (line := cases.current_line) is not None and cases.has_focus and cases.folds:
            return labelled(keys, "list.open", "unfold" if line.folded else "fold")
        return keys

    def show_hints(self) -> None:
        """Let the footer name what is useful now."""
        if self.has(KeyHints, CaseList):
            self.query_one(KeyHints).show(self.hints())

    def on_descendant_focus(self) -> None:
        """Other keys in the panes than in the list."""
        self.show_hints()

    # -- keys

    @on(CaseList.Into)
    def _into(self, event: CaseList.Into) -> None:
        event.stop()
        self.arrangement.unfold(event.entry)

    @on(CaseList.Folded)
    def _fold(self, event: CaseList.Folded) -> None:
        event.stop()
        self.arrangement.fold(event.key, event.folded)

    @on(RowView.Entered)
    def _open_looked_at(self, event: RowView.Entered) -> None:
        """Open the case that a pane shows."""
        event.stop()
        pointer = self.current()
        if pointer is not None:
            self.services.places.open_case(pointer)

    def _open_at(self, begin: str) -> None:
        """Open the case at what made it fail, or at its history."""
        pointer = self.current()
        if pointer is None:
            self.services.notices.say("put the cursor on a case first")
        else:
            self.services.places.show("case", pointer, begin=begin)

    def copy(self) -> None:
        """Ask what to copy of the case under the cursor: as in the case, and `y a` runs nothing here."""
        # Imported late, as all that reads attempts: at the start there is none to be read (`attempt_beside`).
        from tui_eval.tui.loaders.case_loader import read_text
        from tui_eval.tui.state.case.copying import COPY_CHOICES

        services, pointer = self.services, self.current()
        if pointer is None:
            services.places.show(
                "ask", "Copy: put the cursor on a case first.", ASKS_NOTHING, answer=lambda _: None
            )
            return
        where = where_is(services.state, pointer, family=False)

        def chosen(choice: str | None) -> None:
            if choice is not None:
                services.tasks.thread(
                    lambda: read_text(where, choice),
                    lambda text: self._copied(COPY_CHOICES[choice], text),
                    name="copy",
                )

        answers = [*((key, key, words) for key, words in COPY_CHOICES.items()), ("esc", "", "nothing")]
        services.places.show("ask", "Copy of this case:", answers, answer=chosen)

    def _copied(self, what: str, text: str) -> None:
        words = clipboard.copied(self.app, text, what) if text else f"there is no {what} to copy"
        self.services.notices.say(words)

    def note(self) -> None:
        """Ask what to note on the case's answer."""
        pointer = self.current()
        if pointer is None:
            words = "Your verdict: put the cursor on a case first."
            self.services.places.show("ask", words, ASKS_NOTHING, answer=lambda _: None)
        else:
            self.services.notes.ask(pointer, self._ask_note)

    def _ask_note(self, note: HumanNote) -> None:
        """Ask for a note's text."""
        prompt = Prompt("note", note.text, "a word on this answer; enter keeps it", replaces=False)
        self.call_later(self.prompts.ask, prompt, partial(self._note_left, note))

    def _note_left(self, note: HumanNote, text: str, kept: bool) -> None:
        if kept:
            self.services.notes.keep(note, replace(note, text=text.strip()))

    def _resize_pane(self) -> None:
        """More of the pane, none of it, or as it was; the keys do not stay in one that is hidden."""
        self.preview.resize()
        if self.has_class("-hidden") and not self.prompts.open:
            self.focus_home()

    def show_list(self) -> None:
        """Bring the list in sight, where another pane has its room."""

    def focus_home(self) -> None:
        """The list."""
        self.show_list()
        self.case_list.focus()

    def back(self) -> bool:
        """Leave the prompt, else drop the marks, else the filter."""
        if super().back():
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


def now() -> float:
    """Seconds since the epoch; one place to look when a test needs another clock."""
    return time.time()


# -- Which keys would do something where the cursor stands: those are the ones a footer names.

SPOKEN_OF = frozenset(
    {
        "list.open",
        "case.rerun",
        "case.edit",
        "case.cancel",
        "run.all",
        "run.failed",
        "run.pause",
        "failure.next",
        "list.filter",
        "list.clear",
        "stream.zoom",
        "stream.pin",
        "stream.follow",
    }
)
"""Keys that sometimes do nothing."""
OF_THE_SUITE = frozenset({"case.rerun", "case.edit", "run.all", "run.failed"})
"""Those that need the suite itself, not only results of it."""


def useful(
    tree: Tree, line: TreeLine | None, *, marks: Collection[str] = (), filtered: bool = False
) -> set[str]:
    """The ids of these keys; `line` is the one under the cursor."""
    found: set[str] = set()
    standing = tree.standing()
    if line is not None:
        found.add("list.open")
    if marks or (line is not None and _holds_cases(line)):
        found.add("case.rerun")
    if line is not None and (line.kind in ("suite", "problem") or line.telling is not None):
        found.add("case.edit")
    if line is not None and _works(line):
        found.add("case.cancel")
    if tree.shown:
        found.add("run.all")
    if standing.not_passed and _not_passed_here(line):
        found.add("run.failed")
    if standing.failing > _failing_here(line):
        found.add("failure.next")
    if tree.total:
        found.add("list.filter")
    if filtered:
        found.add("list.clear")
    return found


def failed_here(line: TreeLine | None) -> bool:
    """Whether what the cursor stands on failed: the next thing is to edit and to run it again."""
    told = line.telling if line is not None else None
    return told is not None and failing(told)


def _holds_cases(line: TreeLine) -> bool:
    return line.entry is not None or bool(line.members) or line.counts.total() > 0


def _not_passed_here(line: TreeLine | None) -> bool:
    """Whether `R` would run something: of a row it speaks of everything shown, of another line of what is below it."""
    if line is None or line.entry is not None:
        return True
    return any(line.counts[status] for status in NOT_PASSED) or bool(not_passed(line.members))


def _works(line: TreeLine) -> bool:
    if line.entry is not None:
        return line.entry.status in GOES_ON
    return bool(line.members) and any(line.counts[status] for status in GOES_ON)


def _failing_here(line: TreeLine | None) -> int:
    """Cases that `]` does not go to since the cursor stands on them: none of those folded into a line is seen."""
    if line is None:
        return 0
    if line.entry is not None:
        return int(failing(line.entry))
    return sum(map(failing, line.members)) if line.folded else 0
