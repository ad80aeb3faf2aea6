"""Rows that differ, as the HTML page of a run shows them: aligned as they were compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_eval.model import DataDetails

if TYPE_CHECKING:
    from tui_eval.frames.difference import AlignedRow, Difference

ROWS, COLUMNS = 20, 12
"""Rows and columns that are shown."""


class AlignedShown(NamedTuple):
    """The first rows that differ, both sides in one; `whole` rows there are in all, of which `different` differ."""

    columns: Sequence[str]
    rows: list[AlignedRow]
    whole: int
    different: int
    more_columns: int


class FrameShown(NamedTuple):
    """The first rows of one side, and how many `more` there are."""

    columns: list[str]
    rows: list[list[Any]]
    more: int


class DataShown(NamedTuple):
    """What differs in words and, where there are any, the rows: `aligned`, else the `sides` by name."""

    comparison: str
    reference_sql: str
    diagnosis: Sequence[str] = ()
    aligned: AlignedShown | None = None
    sides: Sequence[tuple[str, FrameShown]] = ()


def data_shown(details: Mapping[str, Any], data: DataDetails | None) -> DataShown:
    """What is shown of a comparison; `data` are the rows as they were compared (None: only those in `details`,
    which then stand side by side)."""
    shown = DataShown(details.get("comparison") or "", details.get("reference_sql") or "")
    if not shown.comparison:
        return shown
    aligned = _aligned(data) if data is not None else None
    sides = (
        [] if aligned else [(name, _frame(details.get(f"{name}_data"))) for name in ("expected", "actual")]
    )
    return shown._replace(diagnosis=_diagnosis(data), aligned=aligned, sides=sides)


def _diagnosis(data: DataDetails | None) -> Sequence[str]:
    """What the rows that differ have in common, a line each."""
    if data is None or not data.expected or not data.actual:
        return ()
    from tui_eval.frames.diagnosis import diagnosis_of_details  # imported late: polars

    return diagnosis_of_details(data).lines


def _aligned(data: DataDetails) -> AlignedShown | None:
    """The rows that differ; None where there are none, or they cannot be aligned."""
    if not data.expected or not data.actual:
        return None
    try:
        return _different(_difference(data))
    except BaseException as problem:
        # Polars panics with a BaseException, which must not end a report
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        return None


def _difference(data: DataDetails) -> Difference:
    from tui_eval.frames.comparison_rules import ComparisonSettings
    from tui_eval.frames.difference import align  # imported late: polars

    kinds = data.settings.get("types")
    types = {str(name): str(kind) for name, kind in kinds.items()} if isinstance(kinds, Mapping) else {}
    return align(
        data.expected or [], data.actual, ComparisonSettings.kept(data.settings), data.columns or None, types
    )


def _different(difference: Difference) -> AlignedShown | None:
    rows = difference.different_rows
    if not len(rows):
        return None
    shown = [difference.row(index) for index in rows.head(ROWS).to_list()]
    return AlignedShown(
        difference.columns[:COLUMNS],
        shown,
        len(difference),
        len(rows),
        max(len(difference.columns) - COLUMNS, 0),
    )


def _frame(rows: Sequence[Mapping[str, Any]] | None) -> FrameShown:
    first = (rows or [])[:ROWS]
    columns = list(dict.fromkeys(str(name) for row in first for name in row))[:COLUMNS]
    cells = [[row.get(name) for name in columns] for row in first]
    return FrameShown(columns, cells, max(len(rows or []) - ROWS, 0))
