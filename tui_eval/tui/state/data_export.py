"""A difference for elsewhere: as CSV for a spreadsheet, as text for the pager."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tui_eval.guard.text import no_formula
from tui_eval.tui.state.data_words import reason, summary
from tui_eval.tui.state.lines import one_line

if TYPE_CHECKING:
    from tui_eval.tui.state.data_view import DataView

TITLES = ("status", "expected_row", "actual_row", "column", "expected", "actual", "why")


def as_csv(view: DataView, limit: int | None = None) -> Iterator[str]:
    """The difference as CSV in pieces: a line for each differing cell, for each cell of a row that is
    missing or extra, for each row in another place (where order counts) and for each missing column; at
    most `limit` rows. Row numbers count from 1. No cell is a formula (`no_formula`)."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(TITLES)
    for name in view.missing_columns:
        writer.writerow(("column missing", "", "", no_formula(name), "", "", ""))
    rows = view.differing if limit is None else view.differing.head(limit)
    for index in rows:
        row = view.difference.row(int(index), apart=True)
        numbers = ["" if n is None else n + 1 for n in (row.expected_index, row.actual_index)]
        if view.has_moved(row):
            writer.writerow(("moved", *numbers, "", "", "", ""))
        for cell in row.cells:
            if cell.same or (cell.why == "column missing" and row.status == "different"):
                continue
            why = "" if row.status in ("missing", "extra") else reason(cell)
            texts = (cell.column, cell.expected or "", cell.actual or "", why)
            writer.writerow((row.status, *numbers, *map(no_formula, texts)))
        if buffer.tell() > 60_000:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def as_text(view: DataView, limit: int = 5000) -> str:
    """The rows shown as text for the pager, at most `limit` of them."""
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
