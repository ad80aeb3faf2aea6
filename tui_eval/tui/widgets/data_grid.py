"""Expected and actual rows side by side, a row of the screen for each aligned row.

Line API: a row is asked for when it is drawn, so a million of them scroll. Both halves scroll
sideways together by whole columns, those that are frozen stay. A differing cell carries `≠` and is bold; a missing row stands
only at the left with `−`, an extra one only at the right with `+`.
"""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from tui_eval.tui.state.data_view import Column, DataView
from tui_eval.tui.state.lines import Line, Span, one_line
from tui_eval.tui.widgets.line_pane import LinePane

GAP = 2


class DataGrid(LinePane):
    """The grid. `column` is the column under the cursor, `first_column` the leftmost one shown."""

    def __init__(self) -> None:
        super().__init__()
        self.view: DataView | None = None
        self.column = 0
        self.first_column = 0

    def set_view(self, view: DataView | None, cursor: int = 0) -> None:
        """Show other rows."""
        self.view = view
        self.column = min(self.column, max(len(view.columns) - 1, 0)) if view else 0
        self.relayout()
        if view is not None:
            self.cursor = min(cursor, max(len(view) - 1, 0))
            self._show(self.cursor, True)

    def relayout(self) -> None:
        """The width or the rows changed."""
        self.set_row_count(len(self.view) if self.view else 0)
        self._reveal()

    # -- drawing

    @property
    def _numbers(self) -> int:
        """Columns of the screen for row numbers."""
        return max(len(f"{max(self.view.expected, self.view.actual):,}"), 2) if self.view else 2

    @property
    def _half(self) -> int:
        """Columns of the screen for one side."""
        return max((self.text_width - 3) // 2, 8)

    def shown_columns(self) -> list[tuple[int, Column]]:
        """The columns that fit into a half: those that are frozen, then from the first one shown on."""
        shown: list[tuple[int, Column]] = []
        room = self._half - self._numbers - 3
        frozen = self.view.frozen if self.view else 0
        for index, column in enumerate(self.view.columns if self.view else ()):
            if frozen <= index < self.first_column:
                continue
            if index < frozen and column.width + GAP > room // 2:
                continue
            if shown and column.width + GAP > room:
                break
            shown.append((index, column))
            room -= column.width + GAP
        return shown

    def titles(self) -> list[Line]:
        """The two lines above the rows: whose side it is, and the columns' names."""
        if self.view is None:
            return [(), ()]
        half = self._half
        shown = self.shown_columns()
        frozen = self.view.frozen
        left, right = (
            max(self.first_column - frozen, 0),
            len(self.view.columns) - (shown[-1][0] + 1 if shown else 0),
        )
        more = (f"  ← {left} more" if left else "") + (f"  {right} more →" if right else "")
        sides = (
            Span(set_cell_size(f"   expected{more}", half), "heading"),
            Span(" │ ", "muted"),
            Span(set_cell_size("   actual", half), "heading"),
        )
        names = [Span(" " * (self._numbers + 3))]
        for index, column in shown:
            title = ("−" if column.missing else "") + column.title
            style = (
                "strong"
                + (" missing" if column.missing else "")
                + (" hit-here" if index == self.column else "")
            )
            names += [Span(_cell(title, column), style), Span(" " * GAP)]
        line = _padded(names, half)
        return [sides, (*line, Span(" │ ", "muted"), *line)]

    def row_line(self, row: int) -> Line:
        """One aligned row."""
        assert self.view is not None
        shown = self.view.row(row)
        columns = self.shown_columns()
        half = self._half
        mark = self.view.mark(shown)
        style = {"same": "note", "different": "differs", "missing": "missing", "extra": "extra"}.get(
            shown.status, "muted"
        )
        sides: list[Line] = []
        for index, present in ((shown.expected_index, "expected"), (shown.actual_index, "actual")):
            number = f"{index + 1:,}" if index is not None else ""
            spans = [Span(f"{mark} ", style), Span(f"{number:>{self._numbers}} ", "muted")]
            if index is None:
                spans.append(Span("no such row", style))
            for at, column in columns if index is not None else ():
                cell = shown.cells[at]
                value = getattr(cell, present)
                bad = shown.status == "different" and not cell.same
                word = (
                    "differs"
                    if bad
                    else style
                    if shown.status in ("missing", "extra")
                    else "muted"
                    if value == "null"
                    else ""
                )
                here = at == self.column and row == self.cursor
                spans.append(
                    Span(_cell(one_line((value or "")[:200]), column), f"{word} hit-here" if here else word)
                )
                spans.append(Span("≠" + " " * (GAP - 1) if bad else " " * GAP, "differs"))
            sides.append(_padded(spans, half))
        return (*sides[0], Span(" │ ", "muted"), *sides[1])

    # -- moving

    def action_unfold(self) -> None:
        """One column to the right."""
        self._sideways(1)

    def action_fold(self) -> None:
        """One column to the left."""
        self._sideways(-1)

    def freeze(self) -> int:
        """Let the columns up to the cursor's stay, or let go of those that do; how many stay."""
        if self.view is None or not self.view.columns:
            return 0
        wanted = self.column + 1
        self.view.frozen = 0 if self.view.frozen == wanted else min(wanted, len(self.view.columns) - 1)
        self.first_column = self.view.frozen
        self._reveal()
        self.refresh()
        return self.view.frozen

    def to_column(self, column: int) -> None:
        """Put the cursor on a column and bring it into view."""
        self._sideways(column - self.column)

    def _sideways(self, step: int) -> None:
        if self.view is None or not self.view.columns:
            return
        column = max(0, min(self.column + step, len(self.view.columns) - 1))
        if column == self.column:
            return
        self.column = column
        if self._reveal():
            self.refresh()
        self.refresh_row(self.cursor)
        self.post_message(self.Moved(self, self.cursor))

    def _reveal(self) -> bool:
        """Scroll sideways until the cursor's column is shown; whether that was needed."""
        before = self.first_column
        frozen = self.view.frozen if self.view is not None else 0
        if self.column < frozen:
            return False
        if self.column < self.first_column:
            self.first_column = self.column
        while self.view is not None and self.first_column < self.column:
            if any(index == self.column for index, _ in self.shown_columns()):
                break
            self.first_column += 1
        return before != self.first_column


def _cell(text: str, column: Column) -> str:
    """A value cut or filled to its column's width; numbers stand at the right."""
    length = cell_len(text)
    if length > column.width:
        return set_cell_size(text, column.width - 1) + "…"
    pad = " " * (column.width - length)
    return pad + text if column.right else text + pad


def _padded(spans: list[Span], width: int) -> Line:
    """Spans cut or filled to a width, so that both halves keep their place."""
    line: list[Span] = []
    for text, style in spans:
        length = cell_len(text)
        if length >= width:
            line.append(Span(set_cell_size(text, width), style))
            return tuple(line)
        line.append(Span(text, style))
        width -= length
    return (*line, Span(" " * width))
