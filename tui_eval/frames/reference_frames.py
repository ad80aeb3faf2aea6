"""nao's comparison (`nao_reference`) of large frames, a column at a time: the same verdict in a hundredth of the time.

Row by row it takes a Python object a cell: 23 s and 1.2 GB for 100,000 rows of 30 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from tui_eval.frames.compare import FrameComparison
from tui_eval.frames.comparison_rules import ATOL, RTOL, ComparisonSettings
from tui_eval.frames.numbers import reference_value
from tui_eval.frames.typed_columns import as_cells

_HELD = 2**53
_LARGEST = 1e290
"""Floats beyond are rounded otherwise, row by row."""


class _Column(NamedTuple):
    dtype: str
    series: pl.Series


def compare_frames(
    actual: pl.DataFrame,
    expected: pl.DataFrame,
    settings: ComparisonSettings | None = None,
    columns: Sequence[str] | None = None,
) -> FrameComparison | None:
    """Judge frames as `nao_reference.compare` judges their rows; None where a column is of a kind that only it can
    read, or where there is nothing to compare. Says nothing of which cells differ."""
    settings = settings or ComparisonSettings()
    names = sorted(set(columns or actual.columns))
    if not names or not len(actual) or not set(names) <= set(actual.columns) & set(expected.columns):
        return None
    if len(actual) != len(expected):
        return FrameComparison(False, f"row count: {len(actual)} vs {len(expected)}")
    decimals = 2 if settings.decimals is None else settings.decimals
    if not 0 <= decimals <= 15:
        return None
    rtol = RTOL if settings.rtol is None else settings.rtol
    atol = ATOL if settings.atol is None else settings.atol
    sides: list[list[_Column]] = []
    for frame in (actual, expected):
        made = [_normalised(frame.get_column(name), decimals) for name in names]
        read = [one for one in made if one is not None]
        if len(read) < len(made):
            return None
        sides.append(read)
    if rtol <= 1 and not all(
        _alike(a, a.series.sort(nulls_last=True), e, e.series.sort(nulls_last=True), rtol, atol)
        for a, e in zip(*sides, strict=True)
    ):  # sorted by itself a column finds partners wherever there are some: in no order are all of them near
        return FrameComparison(False, "values differ")
    tables = [pl.DataFrame({f"c{at}": one.series for at, one in enumerate(side)}) for side in sides]
    orders = [one.select(pl.arg_sort_by(one.columns, nulls_last=True)).to_series() for one in tables]
    identical = True
    for a, e in zip(*sides, strict=True):
        left, right = a.series.gather(orders[0]), e.series.gather(orders[1])
        if not _alike(a, left, e, right, rtol, atol):
            return FrameComparison(False, "values differ")
        identical = identical and a.dtype == e.dtype and bool(left.eq_missing(right).all())
    return FrameComparison(True, "match" if identical else "match (approximate)")


def _alike(a: _Column, actual: pl.Series, e: _Column, expected: pl.Series, rtol: float, atol: float) -> bool:
    """Whether columns are equal, or numbers near each other, in this order of their values."""
    if "object" in (a.dtype, e.dtype):
        return a.dtype == e.dtype and bool(actual.eq_missing(expected).all())
    return _close(actual, expected, rtol, atol)


def _normalised(series: pl.Series, decimals: int) -> _Column | None:
    """A column as the reference reads it: its type for pandas, its values rounded; None: it must read every cell."""
    dtype = series.dtype
    if dtype == pl.String:
        if as_cells(series) is not None:
            return None
        texts = series.drop_nulls().unique().to_list()
        try:
            read = [reference_value(text) for text in texts]
        except ValueError:  # text of nothing but commas, with which nao ends
            return None
        numbers = sum(one is not text for one, text in zip(read, texts, strict=True))
        if not numbers:
            return _Column("object", series)
        if numbers < len(texts):
            return None
        series = series.replace_strict(texts, read, return_dtype=pl.Float64)
    elif dtype == pl.Boolean:
        return None if series.null_count() else _Column("bool", series)
    elif isinstance(dtype, pl.Decimal):
        values = series.cast(pl.Float64)
        if _size(values) >= _HELD or dtype.scale > 15:
            return None
        whole = bool((values == values.round(0)).all())
        series = values.cast(pl.Int64) if whole else values
    elif dtype.is_integer():
        if dtype not in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32):
            return None
        series = series.cast(pl.Int64)
    elif dtype.is_float():
        series = series.cast(pl.Float64)
    else:
        return None
    if series.null_count() == len(series):
        return None
    if series.dtype == pl.Int64 and not series.null_count():
        return _Column("int64", series)
    values = series.cast(pl.Float64).fill_nan(None)
    if _size(values) > _LARGEST:
        return None
    scale = 10.0**decimals
    return _Column("float64", (values * scale).round(0, mode="half_to_even") / scale + 0.0)


def _size(values: pl.Series) -> float:
    largest = values.fill_nan(None).abs().max()
    return float(largest) if isinstance(largest, int | float) else 0.0


def _close(actual: pl.Series, expected: pl.Series, rtol: float, atol: float) -> bool:
    table = pl.DataFrame({"a": actual.cast(pl.Float64), "e": expected.cast(pl.Float64)})
    a, e = pl.col("a"), pl.col("e")
    near = ((a - e).abs() <= atol + rtol * e.abs()) & e.is_finite()
    return bool(table.select((a.eq_missing(e) | near.fill_null(False)).all()).item())
