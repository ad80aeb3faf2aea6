"""Both sides as one table: each row once, a cell that differs as `26.0→24.0`.

A missing row stands where it was expected (`−`), one too many where the answer has it (`+`), one that repeats
another below that (`×2`). Cells that are equal within the tolerance carry a quiet `≈`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_eval.tui.state.data.data_columns import ARROW, DataColumn, both_fitted, value_text
from tui_eval.tui.state.text.fitting import cell_len, fit
from tui_eval.tui.state.text.lines import Line, Span, width_of

if TYPE_CHECKING:
    from tui_eval.frames.cells import AlignedRow
    from tui_eval.frames.one_table import TableCell
    from tui_eval.tui.state.data.data_view import DataView

GAP = 2
"""Cells after each column; the first of them may carry a mark."""
NEAR = "≈"
Shown = Sequence[tuple[int, DataColumn, int]]
"""The columns drawn: their place, themselves, how wide they are."""
MARK_STYLES = {"≠": "differs", "−": "missing", "+": "extra", "×": "extra"}


def margin(view: DataView) -> int:
    """Cells before the first column: the mark, and the row's number where no key tells rows apart."""
    numbers = 0 if view.key else len(f"{max(view.expected, view.actual):,}") + 1
    return view.mark_width + 1 + numbers


def head(view: DataView, shown: Shown, here: int, width: int, beyond: Line = ()) -> list[Line]:
    """The two lines above the rows: names, those in which something differs with `≠`, and types.

    Args:
        here: The place of the column under the cursor.
        width: Cells of the screen.
        beyond: What is said of the columns that are not in sight, at the right of the types.
    """
    before = " " * margin(view)
    names: list[Span] = [Span(before)]
    kinds: list[Span] = [Span(before)]
    for index, column, room in shown:
        style = ("missing " if column.missing else "") + "strong" + (" hit-here" if index == here else "")
        title = ("−" if column.missing else "") + column.title
        names += [Span(fit(title, room, right=column.right), style)]
        names += [Span("≠" + " " * (GAP - 1) if column.apart else " " * GAP, "differs")]
        kinds += [Span(fit(column.kind, room, right=column.right) + " " * GAP, "muted")]
    left = cropped(kinds, max(width - width_of(beyond), 0))
    gap = Span(" " * max(width - width_of(left) - width_of(beyond), 0))
    return [cropped(names, width), (*left, gap, *beyond)]


def cropped(spans: Sequence[Span], width: int) -> Line:
    """Spans cut to a width; what is cut off are gaps, or shown to be cut already."""
    line: list[Span] = []
    for text, style in spans:
        room = width - cell_len(text)
        line.append(Span(text if room >= 0 else fit(text, width, sign=""), style))
        if room <= 0:
            break
        width = room
    return tuple(line)


def row_line(view: DataView, row: AlignedRow, shown: Shown, here: int | None) -> Line:
    """One aligned row.

    Args:
        here: The place of the column under the cursor, where the cursor is on this row.
    """
    mark = view.mark(row)
    style = MARK_STYLES.get(mark[0], "note")
    spans = [Span(fit(mark, view.mark_width + 1), style)]
    if not view.key:
        number = row.actual_index if row.expected_index is None else row.expected_index
        room = margin(view) - view.mark_width - 1
        spans.append(Span(fit(f"{(number or 0) + 1:,} ", room, right=True), "muted"))
    for at, column, width in shown:
        spans += _cell(view.table.cell(row, at), column, width, at == here)
    return tuple(spans)


def _cell(cell: TableCell, column: DataColumn, width: int, here: bool) -> list[Span]:
    lit = " cell-here" if here else ""
    if cell.state == "differs":
        wanted, given = both_fitted(cell.expected or "", cell.actual or "", width)
        pad = Span(" " * max(width - cell_len(wanted) - cell_len(given) - len(ARROW), 0))
        spans = [Span(wanted, f"was{lit}"), Span(ARROW, f"muted{lit}"), Span(given, f"differs{lit}")]
        return [pad, *spans, Span(" " * GAP)] if column.right else [*spans, pad, Span(" " * GAP)]
    style = {"missing": "missing", "extra": "extra", "lacking": "missing"}.get(cell.state, "")
    if not style and cell.text == "null":
        style = "muted"
    near = NEAR if cell.state == "near" else " "
    text = column.filled(value_text(cell.text), width)
    return [Span(text, f"{style}{lit}".strip()), Span(near + " " * (GAP - 1), "muted")]
