"""The list of a case's attempts over its runs, newest first."""

from __future__ import annotations

from tui_eval.tui.state.case.case_history import CasePast, PastAttempt
from tui_eval.tui.state.case.history_view import changed_words, reasons, row_line, rows
from tui_eval.tui.state.text.lines import Line
from tui_eval.tui.widgets.line_pane import LinePane


class HistoryTable(LinePane):
    """One row per attempt; enter shows it in the other tabs."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[PastAttempt] = []
        self.changed: list[str] = []
        self.reasons: list[str] = []
        self.here: tuple[str, int] = ("", 0)

    def set_past(self, past: CasePast, here: tuple[str, int], *, keep: bool) -> None:
        """Show other attempts; `here` is the run and attempt that the other tabs show."""
        self.rows, self.changed, self.here = rows(past), changed_words(past), here
        self.reasons = reasons(self.rows)
        if not keep:
            places = (i for i, one in enumerate(self.rows) if (one.run_id, one.row.id) == here)
            self.cursor = next(places, 0)
        self.relayout()
        if not keep:
            self._show(self.cursor, True)

    def relayout(self) -> None:
        """The width changed."""
        self.set_row_count(len(self.rows))

    def row_line(self, row: int) -> Line:
        """One attempt."""
        one = self.rows[row]
        here = (one.run_id, one.row.id) == self.here
        return row_line(one, self.changed[row], self.reasons[row], self.text_width, here=here)
