"""A list whose rows are drawn by whoever owns it: runs, changes, search results, figures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from tui_eval.tui.state.text.lines import Line, Span, fit
from tui_eval.tui.widgets.line_pane import LinePane


class RowTable(LinePane):
    """Rows of any kind. `draw(row, width)` makes the line of one, `key(row)` tells rows apart when the
    list is shown anew; `to_column` does what right (1) and left (-1) do; `empty` stands where there are no rows."""

    def __init__(
        self,
        draw: Callable[[Any, int], Line],
        key: Callable[[Any], Hashable] = id,
        *,
        to_column: Callable[[int], Any] | None = None,
        empty: str = "",
        classes: str | None = None,
    ) -> None:
        super().__init__(classes=classes)
        self.rows: list[Any] = []
        self.empty = empty
        self._draw = draw
        self._key = key
        self._to_column = to_column

    @property
    def current(self) -> Any | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def set_rows(self, rows: Sequence[Any], *, keep: bool = True) -> None:
        """Show other rows; `keep` leaves the cursor on the row that it stands on. The same rows again
        cost nothing on the wire."""
        fresh = list(rows)
        if fresh == self.rows and fresh:
            return
        here = self.current if keep else None
        self.rows = fresh
        at = None
        if here is not None:
            wanted = self._key(here)
            at = next((i for i, row in enumerate(fresh) if self._key(row) == wanted), None)
        self.cursor = at if at is not None else self.cursor if keep else 0
        self.relayout()
        if not keep:
            self.show_from(0)
        self.show_cursor()

    def relayout(self) -> None:
        """The width or the rows changed."""
        self.set_row_count(len(self.rows) or bool(self.empty))

    def row_line(self, row: int) -> Line:
        """One row."""
        if not self.rows:
            return fit((Span(f" {self.empty}", "muted"),), self.text_width)
        return self._draw(self.rows[row], self.text_width)

    def cursor_line(self, row: int) -> bool:
        """No cursor in an empty list."""
        return bool(self.rows) and super().cursor_line(row)

    def unfold(self) -> None:
        """Right: to the next column, where there are columns."""
        self._sideways(1)

    def fold(self) -> None:
        """Left: to the previous column."""
        self._sideways(-1)

    def _sideways(self, step: int) -> None:
        if self._to_column is not None:
            self._to_column(step)
