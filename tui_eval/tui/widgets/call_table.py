"""The table of tool calls: number, turn, name, duration, size, arguments or error."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tui_eval.tui.state.lines import Line, Span, fit, width_of
from tui_eval.tui.state.tools_view import CallRow
from tui_eval.tui.state.verdict_lines import GLYPHS
from tui_eval.tui.widgets.line_pane import LinePane


class CallTable(LinePane):
    """One row per call; the cursor's row is the call shown below."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: Sequence[CallRow] = ()
        self._name_width = 10

    def set_rows(self, rows: Sequence[CallRow], cursor: int | None = None) -> None:
        """Show other calls."""
        self.rows = rows
        self._name_width = min(max((cell_len(row.name) for row in rows), default=4), 28)
        if cursor is not None:
            self.cursor = max(0, min(cursor, len(rows) - 1))
        self.relayout()

    def relayout(self) -> None:
        """The width changed."""
        self.set_row_count(len(self.rows))

    def title(self) -> Line:
        """The line above the rows."""
        return self._line(
            "", "#", "turn", "tool", "time", "size", (Span("arguments", "muted"),), "muted", "muted"
        )

    def row_line(self, row: int) -> Line:
        """One call."""
        call = self.rows[row]
        last: Line = (Span(f"! {call.error}", "error"),) if call.error else (Span(call.arguments, "muted"),)
        glyph = GLYPHS.get(call.verdict, "")
        return self._line(
            glyph,
            str(call.number),
            str(call.turn),
            call.name,
            call.took,
            call.size,
            last,
            call.verdict,
            "strong",
        )

    def _line(
        self,
        glyph: str,
        number: str,
        turn: str,
        name: str,
        took: str,
        size: str,
        last: Line,
        outcome: str,
        weight: str,
    ) -> Line:
        width = self.text_width
        name_span = fit((Span(name, weight),), self._name_width)
        pad = " " * (self._name_width - width_of(name_span))
        line: Line = (
            Span(f"{glyph:<1} ", outcome),
            Span(f"{number:>3} {turn:>4}  ", "muted"),
            *name_span,
            Span(f"{pad} {took:>9} {size:>7}  ", "muted"),
        )
        return (*line, *fit(last, max(width - width_of(line), 4)))
