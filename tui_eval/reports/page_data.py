"""Rows that differ, on the HTML page of a run: aligned as they were compared, the differing cells marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tui_eval.model import DataDetails
from tui_eval.reports.page_text import safe, text_of

if TYPE_CHECKING:
    from tui_eval.frames.cells import Cell
    from tui_eval.frames.difference import Difference

ROWS, COLUMNS = 20, 12
"""Rows and columns that are shown."""
_STATUS = {"same": "", "different": "≠", "missing": "− missing", "extra": "+ extra"}


def data_html(details: Mapping[str, Any], data: DataDetails | None) -> str:
    """What differs in words, the rows that differ, the SQL; `data` are the rows as they were compared (None:
    only those in `details`, which then stand side by side)."""
    parts: list[str] = []
    if details.get("comparison"):
        parts.append(f'<div class="who">what differs</div><pre>{safe(details["comparison"])}</pre>')
        parts.append((_aligned(data) if data is not None else "") or _sides(details))
    if details.get("reference_sql"):
        parts.append(f'<div class="who">expected SQL</div><pre>{safe(details["reference_sql"])}</pre>')
    return "".join(parts)


def _aligned(data: DataDetails) -> str:
    """The rows that differ, both sides in one table; empty where they cannot be aligned."""
    if not data.expected or not data.actual:
        return ""
    try:
        return _table(_difference(data))
    except BaseException as problem:
        # Polars panics with a BaseException, which must not end a report
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        return ""


def _difference(data: DataDetails) -> Difference:
    from tui_eval.frames.comparison_rules import ComparisonSettings
    from tui_eval.frames.difference import align  # imported late: polars

    kinds = data.settings.get("types")
    types = {str(name): str(kind) for name, kind in kinds.items()} if isinstance(kinds, Mapping) else {}
    return align(
        data.expected or [], data.actual, ComparisonSettings.kept(data.settings), data.columns or None, types
    )


def _table(difference: Difference) -> str:
    rows = difference.different_rows
    if not len(rows):
        return ""
    columns = difference.columns[:COLUMNS]
    head = "".join(f"<th>{safe(name, 60)}</th>" for name in columns)
    body: list[str] = []
    for index in rows.head(ROWS).to_list():
        row = difference.row(index)
        cells = "".join(f"<td>{_cell(cell)}</td>" for cell in row.cells[:COLUMNS])
        body.append(f'<tr><td class="error">{_STATUS[row.status]}</td>{cells}</tr>')
    words = f"{len(rows):,} of {len(difference):,} rows differ"
    words += f", the first {ROWS}" if len(rows) > ROWS else ""
    words += (
        f"; {len(difference.columns) - COLUMNS:,} more columns" if len(difference.columns) > COLUMNS else ""
    )
    return (
        f'<div class="who">{words}: <del>expected</del> <ins>actual</ins></div>'
        f'<div class="scroll"><table class="cells"><tr><th></th>{head}</tr>{"".join(body)}</table></div>'
    )


def _cell(cell: Cell) -> str:
    if cell.same:
        return safe(cell.expected if cell.expected is not None else "", 200)
    expected = f"<del>{safe(cell.expected, 200)}</del>" if cell.expected is not None else ""
    actual = f"<ins>{safe(cell.actual, 200)}</ins>" if cell.actual is not None else ""
    why = cell.why if cell.expected is not None and cell.actual is not None and cell.why != "value" else ""
    more = f'<br><small class="muted">{safe(why, 200)}</small>' if why else ""
    return f"{' '.join(part for part in (expected, actual) if part)}{more}"


def _sides(details: Mapping[str, Any]) -> str:
    frames = "".join(
        f'<div><div class="who">{name}</div>{_frame(details.get(f"{name}_data"))}</div>'
        for name in ("expected", "actual")
    )
    return f'<div class="sides">{frames}</div>'


def _frame(rows: Sequence[Mapping[str, Any]] | None) -> str:
    if not rows:
        return '<p class="muted">no rows</p>'
    columns = list(dict.fromkeys(str(name) for row in rows[:ROWS] for name in row))[:COLUMNS]
    head = "".join(f"<th>{safe(name, 60)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{safe(text_of(row.get(name)), 200)}</td>" for name in columns) + "</tr>"
        for row in rows[:ROWS]
    )
    more = f'<p class="muted">{len(rows) - ROWS:,} more rows</p>' if len(rows) > ROWS else ""
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>{more}'
