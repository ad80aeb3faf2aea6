"""Rows that differ, as the HTML page of a run shows them: the one table, or both sides where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_eval.model import Attempt
from tui_eval.reports.rows_shown import COLUMNS, ROWS, RowsShown, queries_beside, rows_shown

if TYPE_CHECKING:
    from tui_eval.frames.queries import QueryLine


class FrameShown(NamedTuple):
    """The first rows of one side, and how many `more` there are."""

    columns: list[str]
    rows: list[list[Any]]
    more: int


class DataShown(NamedTuple):
    """What differs in words and as rows: the one table, else the `sides` by name; and the queries, line beside line
    where the record has both."""

    comparison: str
    reference_sql: str
    rows: RowsShown = RowsShown()
    sides: Sequence[tuple[str, FrameShown]] = ()
    queries: Sequence[QueryLine] = ()


def data_shown(details: Mapping[str, Any], attempt: Attempt | None, folder: Path | None = None) -> DataShown:
    """What is shown of a comparison.

    Args:
        attempt: with the rows as they were compared (None: only those in `details`, which then stand side by side).
        folder: the run's, where whole frames are kept.
    """
    data = attempt.data if attempt is not None else None
    shown = DataShown(
        details.get("comparison") or "",
        details.get("reference_sql") or "",
        rows_shown(data, folder, attempt=attempt),
    )
    if shown.rows.fault:
        given = details.get("actual_data")
        return shown._replace(sides=[("the answer's rows", _frame(given))] if given else ())
    if not shown.comparison:
        return shown
    if attempt is not None and attempt.outcome != "passed":
        shown = shown._replace(queries=queries_beside(attempt))
    if shown.rows.table is not None or shown.rows.order:
        return shown
    return shown._replace(
        sides=[(name, _frame(details.get(f"{name}_data"))) for name in ("expected", "actual")]
    )


def _frame(rows: Sequence[Mapping[str, Any]] | None) -> FrameShown:
    first = (rows or [])[:ROWS]
    columns = list(dict.fromkeys(str(name) for row in first for name in row))[:COLUMNS]
    cells = [[row.get(name) for name in columns] for row in first]
    return FrameShown(columns, cells, max(len(rows or []) - ROWS, 0))
