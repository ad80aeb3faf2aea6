"""The list of cases: a folding tree with marks, outcome, trend and figures, good for 100,000 lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from textual.message import Message

from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import bindings
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import Tree, TreeLine
from tui_eval.tui.widgets.case_lines import CaseLines

LEAST_INSIDE = 3
"""Lines of what was unfolded that are in sight at least."""
AGED_EVERY = 60.0
"""Seconds after which a move says anew how old every row in sight is: what stands still costs nothing, but rows of one
age say the same."""


class CaseList(CaseLines):
    """Draws a `Tree`; posts `Opened` and `Rested`."""

    BINDINGS = bindings("list")

    class Opened(Message):
        """Enter was pressed on a case, a problem or a suite without lines below it."""

        def __init__(self, line: TreeLine) -> None:
            super().__init__()
            self.line = line

    class Nothing(Message):
        """Enter was pressed in an empty list."""

    class Into(Message):
        """Enter was pressed on a folded line that stands for cases: the one that tells of it is to be seen."""

        def __init__(self, entry: CaseRow) -> None:
            super().__init__()
            self.entry = entry

    class Folded(Message):
        """Something is to be folded or unfolded."""

        def __init__(self, key: str, folded: bool) -> None:
            super().__init__()
            self.key = key
            self.folded = folded

    class Marked(Message):
        """Other cases are marked."""

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, CaseList.Marked)

    class Moved(Message):
        """The cursor is elsewhere."""

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, CaseList.Moved)

    at_once: Callable[[], None] | None = None
    """Called with every move, before it is painted."""
    when_whole: Callable[[Callable[[], Any]], Any] | None = None
    """Does something when the list holds what its filter asks for; None: it always does."""

    # -- what it shows

    @property
    def current_line(self) -> TreeLine | None:
        """The line under the cursor."""
        return self.cases.lines[self.cursor] if self.cursor < len(self.cases.lines) else None

    @property
    def current_entry(self) -> CaseRow | None:
        """The case under the cursor."""
        found = self.current_line
        return found.entry if found else None

    @property
    def folds(self) -> bool:
        """Whether enter folds or unfolds the line under the cursor, and opens nothing."""
        found = self.current_line
        if found is None or not found.holds_lines:
            return False
        return found.kind != "suite" or found.folded or self._has_children(found)

    def show(self, tree: Tree, *, keep: bool = True) -> None:
        """Show another tree; the cursor stays on its line where `keep` and the line is still there, else on
        one near it. Lines that look the same are not repainted."""
        old_lines, old_cursor = self.cases.lines, self.cursor
        offset = self.cursor - self.top
        self.cases = tree
        if keep and old_cursor < len(old_lines):
            self.cursor = _nearest(old_lines, old_cursor, tree)
        self.cursor = min(self.cursor, max(0, len(tree.lines) - 1))
        if not self.show_from(self.cursor - offset):
            self.repaint()
        self.moved()

    def show_inside(self) -> None:
        """Bring what the line under the cursor holds into sight, where none or little of it is."""
        lines = self.cases.lines
        if not self.has_cursor:
            return
        last = self.cursor
        while (
            last - self.cursor + 1 < self.window
            and last + 1 < len(lines)
            and lines[last + 1].depth > lines[self.cursor].depth
        ):
            last += 1
        below = self.top + self.window - 1 - self.cursor
        if below < min(last - self.cursor, LEAST_INSIDE) and self.show_from(last - self.window + 1):
            self.scrolled()

    def status_changed(self, key: str, before: str, after: str) -> list[int]:
        """An entry's status changed in place; returns the lines to repaint."""
        return self.cases.update(key, before, after)

    def widen(self, entry: CaseRow) -> None:
        """An entry has figures that it had not: there may be more columns."""
        if self.cases.extent.widen(entry):
            self.repaint()

    def tick(self) -> None:
        """Repaint the running times in sight, nothing else."""
        columns = self.layout_for(self.size.width)
        if not columns.duration:
            return
        self.repaint(
            y
            for y, shown in enumerate(self.cases.lines[self.top : self.top + self.size.height])
            if shown.entry is not None and shown.entry.started_at
        )

    def go_to(self, key: str) -> bool:
        """Put the cursor on a line; False where it is not shown."""
        index = self.cases.index.get(key)
        if index is None:
            return False
        self.touched = True
        self.move_to(index)
        return True

    def moved(self) -> None:
        """Tell the screen: at once what can be painted in the same frame, and by message the rest."""
        if (now := self.now()) - self._aged_at >= AGED_EVERY:
            self._aged_at = now
            self.repaint()
        if self.at_once is not None:
            self.at_once()
        self.post_message(self.Moved())

    def scrolled(self) -> None:
        """Other lines are in sight."""
        self.moved()

    def find(self, needle: str, step: int, *, start: int | None = None) -> bool:
        """Go to the next line (or, with `step` -1, the one before) that contains the text; `start` is the
        first line that is looked at (None: the one after the cursor)."""
        before, self.needle = self.needle, needle.lower()
        if before != self.needle:
            self.repaint()
        lines = self.cases.lines
        if not self.needle or not lines:
            return False
        start = self.cursor + step if start is None else start
        for distance in range(len(lines)):
            index = (start + step * distance) % len(lines)
            found = lines[index]
            if self.needle in found.name.lower() or (
                found.entry is not None
                and (self.needle in found.entry.case_id.lower() or self.needle in found.entry.variant.lower())
            ):
                self.touched = True
                self.move_to(index)
                return True
        return False

    def opened(self) -> None:
        """Clicked twice."""
        self.open()

    # -- keys

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            **super().handlers(),
            "list.open": self.open,
            "list.unfold": self.unfold,
            "list.fold": self.fold,
            "list.mark": self.mark,
            "list.mark_all": self.mark_all,
        }

    def open(self) -> None:
        """Open the case; fold or unfold what holds cases. Of a folded test to the case that is looked at
        beside it: once more opens that."""
        found = self.current_line
        if found is None:
            self.post_message(self.Nothing())
            return
        if found.folded and found.members and found.telling is not None:
            self.post_message(self.Into(found.telling))
        elif self.folds:
            self.post_message(self.Folded(found.key, not found.folded))
        else:
            self.post_message(self.Opened(found))

    def unfold(self) -> None:
        """Unfold; on what is unfolded, go to its first line; on a case, open it."""
        found = self.current_line
        if found is None:
            return
        if found.folded:
            self.post_message(self.Folded(found.key, False))
        elif found.holds_lines:
            if self._has_children(found):
                self.move_to(self.cursor + 1)
        else:
            self.post_message(self.Opened(found))

    def fold(self) -> None:
        """Fold; on what cannot be folded, go to what holds it."""
        found = self.current_line
        if found is None:
            return
        if found.holds_lines and not found.folded and self._has_children(found):
            self.post_message(self.Folded(found.key, True))
        elif found.above:
            self.go_to(found.above[-1].key)

    def mark(self) -> None:
        """Mark the case, or every case of the folder or suite, and go on to the next line."""
        found = self.current_line
        if found is None:
            return
        self.touched = True
        if found.entry is not None:
            self.marks ^= {found.entry.key}
            self.refresh_row(self.cursor)
            self.move_to(self.cursor + 1)
            self.post_message(self.Marked())
        else:
            self._whole(partial(self._mark_below, found.key))

    def _mark_below(self, key: str) -> None:
        """Mark all that this line holds, or none of it; where the cursor stands on another one by now, nothing."""
        found = self.current_line
        if found is None or found.key != key:
            return
        keys = {entry.key for entry in self.below(found)}
        self.marks = self.marks - keys if keys <= self.marks else self.marks | keys
        self.repaint()
        self.move_to(self.cursor + 1)
        self.post_message(self.Marked())

    def mark_all(self) -> None:
        """Mark every case shown, or none: of a filter that was just given those that it lets through."""
        self._whole(self._mark_shown)

    def _whole(self, do: Callable[[], Any]) -> None:
        if self.when_whole is None:
            do()
        else:
            self.when_whole(do)

    def _mark_shown(self) -> None:
        keys = {entry.key for entry in self.cases.shown}
        self.marks = set() if self.marks and keys <= self.marks else set(keys)
        self.repaint()
        self.post_message(self.Marked())

    def below(self, found: TreeLine) -> list[CaseRow]:
        """The cases shown that a line holds: a folder, a suite, a group, a test or a fold."""
        if found.members:
            return list(found.standing)
        if found.kind == "folder":
            return [entry for entry in self.cases.shown if entry.suite.startswith(f"{found.path}/")]
        return [entry for entry in self.cases.shown if entry.suite == found.path]

    def _has_children(self, found: TreeLine) -> bool:
        following = self.cursor + 1
        return following < len(self.cases.lines) and self.cases.lines[following].depth > found.depth


def _nearest(old: list[TreeLine], cursor: int, tree: Tree) -> int:
    """Where the line under the cursor is now; where it is gone what holds it (folded), else the next of the
    old cases that is still there, else the last one before it; where none is, the same height."""
    line = old[cursor]
    for kept in (line, *reversed(line.above)):
        index = tree.index.get(kept.key)
        if index is not None and (kept is line or tree.lines[index].folded):
            return index
    stands = line.telling
    if stands is not None and line.kind != "group":
        for row in (stands, *_in_other_columns(stands, tree)):
            if (found := tree.stands_for(row.key)) is not None:
                return tree.index[found.key]
    for index in (*range(cursor + 1, len(old)), *range(cursor - 1, -1, -1)):
        if old[index].entry is not None and old[index].key in tree.index:
            return tree.index[old[index].key]
    return cursor if cursor < len(tree.lines) else 0


def _in_other_columns(old: CaseRow, tree: Tree) -> list[CaseRow]:
    """The rows that a case has now that it is asked in more columns, or fewer; first that of whom this one is of."""
    rows = [row for row in tree.shown if row.case_id == old.case_id and row.columns != old.columns]
    return sorted(rows, key=lambda row: row.whom != old.whom)
