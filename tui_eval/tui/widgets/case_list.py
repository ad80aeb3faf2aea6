"""The list of cases: a folding tree with marks, outcome, trend and figures, good for 100,000 lines."""

from __future__ import annotations

from textual.message import Message

from tui_eval.tui.keys import bindings
from tui_eval.tui.state.case_entry import Entry
from tui_eval.tui.state.case_tree import Line, Tree
from tui_eval.tui.widgets.case_line import CaseLines


class CaseList(CaseLines):
    """Draws a `Tree`; posts `Opened` and `Rested`."""

    BINDINGS = bindings("list")

    class Opened(Message):
        """Enter was pressed on a case, a problem or a suite without lines below it."""

        def __init__(self, line: Line) -> None:
            super().__init__()
            self.line = line

    class Nothing(Message):
        """Enter was pressed in an empty list."""

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

    # -- what it shows

    @property
    def current_line(self) -> Line | None:
        """The line under the cursor."""
        return self.cases.lines[self.cursor] if self.cursor < len(self.cases.lines) else None

    @property
    def current_entry(self) -> Entry | None:
        """The case under the cursor."""
        found = self.current_line
        return found.entry if found else None

    def show(self, tree: Tree, *, keep: bool = True) -> None:
        """Show another tree; the cursor stays on its line where `keep` and the line is still there, else on
        one near it. Lines that look the same are not repainted."""
        old_lines, old_cursor = self.cases.lines, self.cursor
        offset = self.cursor - self.top
        self.cases = tree
        if keep and old_cursor < len(old_lines):
            self.cursor = _nearest(old_lines, old_cursor, tree)
        height = max(1, self.size.height)
        self.cursor = min(self.cursor, max(0, len(tree.lines) - 1))
        self.top = min(max(0, self.cursor - offset), max(0, len(tree.lines) - height))
        self.repaint()
        self.moved()

    def status_changed(self, key: str, before: str, after: str) -> list[int]:
        """An entry's status changed in place; returns the lines to repaint."""
        return self.cases.update(key, before, after)

    def widen(self, entry: Entry) -> None:
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
        self.show_cursor(index)
        return True

    def moved(self) -> None:
        """Tell the screen."""
        self.post_message(self.Moved())

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
                self.show_cursor(index)
                return True
        return False

    # -- keys

    def action_open(self) -> None:
        """Open the case; fold or unfold what holds cases."""
        found = self.current_line
        if found is None:
            self.post_message(self.Nothing())
            return
        if found.kind == "folder" or (found.kind == "suite" and (found.folded or self._has_children(found))):
            self.post_message(self.Folded(found.key, not found.folded))
        else:
            self.post_message(self.Opened(found))

    def action_unfold(self) -> None:
        """Unfold; on what is unfolded, go to its first line; on a case, open it."""
        found = self.current_line
        if found is None:
            return
        if found.folded:
            self.post_message(self.Folded(found.key, False))
        elif found.kind in ("folder", "suite"):
            if self._has_children(found):
                self.show_cursor(self.cursor + 1)
        else:
            self.post_message(self.Opened(found))

    def action_fold(self) -> None:
        """Fold; on what cannot be folded, go to what holds it."""
        found = self.current_line
        if found is None:
            return
        if found.kind in ("folder", "suite") and not found.folded and self._has_children(found):
            self.post_message(self.Folded(found.key, True))
        elif found.above:
            self.go_to(found.above[-1].key)

    def action_mark(self) -> None:
        """Mark the case, or every case of the folder or suite, and go on to the next line."""
        found = self.current_line
        if found is None:
            return
        self.touched = True
        if found.entry is not None:
            self.marks ^= {found.entry.key}
            self.refresh_lines((self.cursor,))
        else:
            keys = {entry.key for entry in self.below(found)}
            self.marks = self.marks - keys if keys <= self.marks else self.marks | keys
            self.repaint()
        self.show_cursor(self.cursor + 1)
        self.post_message(self.Marked())

    def action_mark_all(self) -> None:
        """Mark every case shown, or none."""
        keys = {entry.key for entry in self.cases.shown}
        self.marks = set() if self.marks and keys <= self.marks else set(keys)
        self.repaint()
        self.post_message(self.Marked())

    def below(self, found: Line) -> list[Entry]:
        """The cases shown that a folder or suite holds."""
        if found.kind == "folder":
            return [entry for entry in self.cases.shown if entry.suite.startswith(f"{found.path}/")]
        return [entry for entry in self.cases.shown if entry.suite == found.path]

    def _has_children(self, found: Line) -> bool:
        following = self.cursor + 1
        return following < len(self.cases.lines) and self.cases.lines[following].depth > found.depth

    def watch_has_focus(self, _: bool) -> None:
        """The cursor looks different when keys go elsewhere."""
        self.refresh_lines((self.cursor,))


def _nearest(old: list[Line], cursor: int, tree: Tree) -> int:
    """Where the line under the cursor is now; where it is gone what holds it (folded), else the next of the
    old cases that is still there, else the last one before it; where none is, the same height."""
    line = old[cursor]
    for kept in (line, *reversed(line.above)):
        index = tree.index.get(kept.key)
        if index is not None and (kept is line or tree.lines[index].folded):
            return index
    for index in (*range(cursor + 1, len(old)), *range(cursor - 1, -1, -1)):
        if old[index].entry is not None and old[index].key in tree.index:
            return tree.index[old[index].key]
    return cursor if cursor < len(tree.lines) else 0
