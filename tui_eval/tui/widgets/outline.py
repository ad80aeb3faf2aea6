"""The outline of a transcript: turns, tool calls, hand-offs and errors, one row each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from rich.cells import cell_len

from tui_eval.tui.state.case.transcript_view import OutlineItem
from tui_eval.tui.state.text.lines import Line, Span, fit, width_of
from tui_eval.tui.widgets.line_pane import LinePane


class Outline(LinePane):
    """A list that leads through a transcript. Moving in it moves the text beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.items: Sequence[OutlineItem] = ()

    def set_items(self, items: Sequence[OutlineItem]) -> None:
        """Show other items, keeping the cursor on the same one."""
        key = self.items[self.cursor].key if self.cursor < len(self.items) else None
        self.items = items
        self.set_row_count(len(items))
        at = next((i for i, item in enumerate(items) if item.key == key), None)
        if at is not None:
            self.cursor = at

    def relayout(self) -> None:
        """The width changed."""
        self.set_row_count(len(self.items))

    def row_line(self, row: int) -> Line:
        """Glyph, text and, at the right, the duration."""
        item = self.items[row]
        width = self.text_width
        room = width - cell_len(item.right) - 1
        head: Line = (Span(f"{item.glyph or ' '} ", item.style), Span("  " * item.depth))
        weight = "strong" if item.depth == 0 else item.style
        left = fit((*head, Span(item.text, weight)), room if item.right else width)
        return (
            *left,
            Span(" " * max(width - width_of(left) - cell_len(item.right), 0)),
            Span(item.right, "muted"),
        )

    def follow(self, keys: Sequence[str], index: int) -> None:
        """Put the cursor on the last item at or before a block (`keys`: the blocks' keys in order),
        without telling anyone."""
        places = {key: i for i, key in enumerate(keys)}
        starts = [places.get(item.key, -1) for item in self.items]
        at = bisect_right(starts, index) - 1
        if 0 <= at < self.row_count and at != self.cursor:
            before, self.cursor = self.cursor, at
            self._show(at, False)
            self.refresh_row(before)
            self.refresh_row(at)
