"""A difference for elsewhere: as CSV for a spreadsheet, as text for the pager."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tui_eval.guard.text import no_formula
from tui_eval.tui.state.data.data_words import reason, summary
from tui_eval.tui.state.text.lines import one_line

if TYPE_CHECKING:
    from tui_eval.frames.cells import AlignedRow
    from tui_eval.tui.state.data.data_view import DataView

PIECE = 2_000
"""Rows that are made at a time."""
TITLES = ("status", "expected_row", "actual_row", "column", "expected", "actual", "why")


class ExportEnded(Exception):
    """The person did not wait for the end; `rows` were made."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.rows = rows


def as_csv(
    view: DataView, limit: int | None = None, progress: Callable[[int, int], bool] | None = None
) -> Iterator[str]:
    """The difference as CSV in pieces: a line for each differing cell, for each cell of a row that is
    missing or extra, for each row in another place (where order counts) and for each missing column; at
    most `limit` rows. Row numbers count from 1. No cell is a formula (`no_formula`).

    Args:
        progress: Told how many rows of how many are made; the answer False ends it.

    Raises:
        Ended: it was ended.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(TITLES)
    for name in view.missing_columns:
        writer.writerow(("column missing", "", "", no_formula(name), "", "", ""))
    indexes = view.differing if limit is None else view.differing.head(limit)
    for first in range(0, len(indexes), PIECE):
        if progress is not None and not progress(first, len(indexes)):
            raise ExportEnded(first)
        for row in view.difference.rows_with_what_differs(indexes.slice(first, PIECE)):
            writer.writerows(_lines(view, row))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _lines(view: DataView, row: AlignedRow) -> Iterator[tuple[object, ...]]:
    numbers = ["" if n is None else n + 1 for n in (row.expected_index, row.actual_index)]
    if view.has_moved(row):
        yield ("moved", *numbers, "", "", "", "")
    for cell in row.cells:
        if cell.why == "column missing" and row.status == "different":
            continue
        why = "" if row.status in ("missing", "extra") else reason(cell)
        texts = (cell.column, cell.expected or "", cell.actual or "", why)
        yield (row.status, *numbers, *map(no_formula, texts))


MOST_CELLS = 100_000
"""Cells that the pager is given: more take minutes, and nobody reads them there."""


def as_text(view: DataView, limit: int = 5000) -> str:
    """The rows shown as text for the pager, at most `limit` of them, fewer of many columns."""
    limit = min(limit, max(MOST_CELLS // max(len(view.visible), 1), 1))
    lines = ["".join(span.text for span in summary(view)), ""]
    for shown in range(min(len(view), limit)):
        row = view.row(shown)
        lines.append(f"{view.mark(row)} row {shown + 1}")
        for index in view.visible:
            cell = row.cells[index]
            mark = " " if cell.same else "≠"
            actual = "" if cell.same else f"   actual {one_line(cell.actual)}   ({one_line(reason(cell))})"
            lines.append(f"  {mark} {one_line(cell.column)}: {one_line(cell.expected)}{actual}")
    if len(view) > limit:
        lines.append(f"… {len(view) - limit:,} more rows")
    return "\n".join(lines) + "\n"
