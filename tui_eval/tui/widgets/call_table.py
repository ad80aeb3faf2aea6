"""The table of tool calls: number, turn, name, duration, size, arguments or error; or bars over time."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from tui_eval.tui.state.case.tools_view import CallRow
from tui_eval.tui.state.case.verdict_lines import GLYPHS
from tui_eval.tui.state.case.waterfall import SpanBar, bar_line, label_width, scale_line, span_of
from tui_eval.tui.state.text.lines import Line, Span, fit, width_of
from tui_eval.tui.widgets.line_pane import LinePane


class CallTable(LinePane):
    """One row per call; the cursor's row is the call shown below."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: Sequence[CallRow] = ()
        self.bars: Sequence[SpanBar] = ()
        self._name_width = 10
        self._label = 10
        self._total = 0.0

    def set_bars(self, shown: Sequence[SpanBar], cursor: int | None = None) -> None:
        """Show bars over time instead, hand-offs and replies among them; none: the calls again."""
        self.bars = shown
        if cursor is not None:
            self.cursor = max(0, min(cursor, (len(shown) or len(self.rows)) - 1))
        self.relayout()

    @property
    def call(self) -> CallRow | None:
        """The call under the cursor; None where there is none, or a hand-off or span."""
        if self.bars:
            return self.bars[self.cursor].call
        return self.rows[self.cursor] if self.rows else None

    @property
    def bar(self) -> SpanBar | None:
        """The bar under the cursor; None where calls are shown."""
        return self.bars[self.cursor] if self.bars else None

    def move_to_call(self, index: int) -> None:
        """Put the cursor on a call."""
        if self.bars:
            wanted = self.rows[index]
            index = next(
                (
                    i
                    for i, bar in enumerate(self.bars)
                    if bar.call is not None and bar.call.number == wanted.number
                ),
                self.cursor,
            )
        self.move_to(index)

    @property
    def call_index(self) -> int:
        """The number, from 0, of the call under the cursor or the last one before it; -1: none."""
        if not self.bars:
            return self.cursor if self.rows else -1
        calls = [bar.call for bar in self.bars[: self.cursor + 1] if bar.call is not None]
        return next((i for i, row in enumerate(self.rows) if calls and row.number == calls[-1].number), -1)

    def set_rows(self, rows: Sequence[CallRow], cursor: int | None = None) -> None:
        """Show other calls."""
        self.rows, self.bars = rows, ()
        self._name_width = min(max((cell_len(row.name) for row in rows), default=4), 28)
        if cursor is not None:
            self.cursor = max(0, min(cursor, len(rows) - 1))
        self.relayout()

    def reveal(self) -> None:
        """Bring the cursor into view, once the height is known."""
        self._show(self.cursor, False)

    def relayout(self) -> None:
        """The width changed."""
        self._label = label_width(self.bars, self.text_width)
        self._total = span_of(self.bars)
        self.set_row_count(len(self.bars) or len(self.rows))

    def title(self, width: int) -> Line:
        """The line above the rows, at the width that the tab has."""
        if self.bars:
            return scale_line(self._total, self.text_width, self._label)
        return self._line(
            "", "#", "turn", "tool", "time", "size", (Span("arguments", "muted"),), "muted", "muted", width
        )

    def row_line(self, row: int) -> Line:
        """One call, or one bar."""
        if self.bars:
            return bar_line(self.bars[row], self._total, self.text_width, self._label)
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
        width: int = 0,
    ) -> Line:
        width = width or self.text_width
        name_span = fit((Span(name, weight),), self._name_width)
        pad = " " * (self._name_width - width_of(name_span))
        line: Line = (
            Span(f"{glyph:<1} ", outcome),
            Span(f"{number:>3} {turn:>4}  ", "muted"),
            *name_span,
            Span(f"{pad} {took:>9} {size:>7}  ", "muted"),
        )
        return (*line, *fit(last, max(width - width_of(line), 4)))
