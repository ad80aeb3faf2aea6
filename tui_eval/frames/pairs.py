"""An expected and an actual column made comparable: the rules of what equals what.

Each pair has an exact key on both sides (equal keys are equal cells, null equals null). A pair that
allows a tolerance has a value beside it; cells that are no number there differ in the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl

from tui_eval.frames.columns import (
    Column,
    canonical,
    duck_text,
    even_duck_text,
    from_cells,
    instant,
    text_series,
)
from tui_eval.frames.numbers import read_number
from tui_eval.frames.settings import ATOL, RTOL, ComparisonSettings

_LIMIT = 2**126


@dataclass(slots=True)
class Pair:
    """Two columns ready to compare.

    `e_key` and `a_key` have one type. With a tolerance, `e_value` and `a_value` are Float64 or
    unscaled Int128 (times 10^-scale), `a_exact` marks actual cells that must equal exactly.
    `whole` marks pairs of exact numbers, where nao's tolerance does not count. `kinds_differ`: the
    reference would call equal values only approximately so.
    """

    name: str
    expected: Column
    actual: Column
    e_key: pl.Series
    a_key: pl.Series
    e_value: pl.Series | None = None
    a_value: pl.Series | None = None
    scale: int = 0
    a_exact: pl.Series | None = None
    whole: bool = False
    kinds_differ: bool = False
    rtol: float = 0.0
    atol: float = 0.0

    @property
    def tolerant(self) -> bool:
        """Whether cells may differ by the tolerance."""
        return self.e_value is not None


def pair(name: str, expected: Column, actual: Column, settings: ComparisonSettings) -> Pair:
    """Make two columns comparable by the documented rules."""
    if expected.kind in ("exact", "float"):
        return _numeric(name, expected, actual, settings)
    if expected.kind == actual.kind and expected.kind in ("bool", "time"):
        return _exact(name, expected, actual, _series(expected), _series(actual))
    if expected.kind == "time":
        readings = [
            None if cell is None else (instant(cell) or cell) if isinstance(cell, str) else canonical(cell)
            for cell in actual.cells
        ]
        return _exact(name, expected, actual, _series(expected), _string(readings))
    if expected.kind == "text" and actual.kind == "text":
        return _texts(name, expected, actual)
    if expected.kind == "nested" and expected.typed:
        wanted = [
            None if t is None else even_duck_text(t, expected.type_name) for t in _series(expected).to_list()
        ]
        given = _series(actual).to_list() if actual.kind == "nested" and actual.typed else actual.cells
        kind, as_map = expected.type_name, expected.type_name.upper().startswith("MAP")
        found = [
            None if cell is None else even_duck_text(duck_text(cell, as_map=as_map), kind) for cell in given
        ]
        return _exact(name, expected, actual, _string(wanted), _string(found))
    result = _exact(name, expected, actual, _canonical(expected), _canonical(actual))
    if expected.kind == "text" and not expected.typed and not actual.typed:
        result.kinds_differ = actual.kind == "exact" and None not in actual.cells
    return result


def _series(column: Column) -> pl.Series:
    assert column.series is not None
    return column.series


def _string(values: list[Any]) -> pl.Series:
    return text_series(values)


def _exact(name: str, expected: Column, actual: Column, e_key: pl.Series, a_key: pl.Series) -> Pair:
    return Pair(name, expected, actual, e_key, a_key)


def _canonical(column: Column) -> pl.Series:
    if column.kind == "text":
        return _series(column)
    if column.kind == "time":
        return _series(column)
    return _string([None if cell is None else canonical(cell) for cell in column.cells])


def _texts(name: str, expected: Column, actual: Column) -> Pair:
    wanted, given = _series(expected), _series(actual)
    if not expected.typed and wanted.head(1000).str.contains(r"^\d{4,}-\d\d-\d\d").all():
        # rows of a backend carry dates as text: `2024-01-05` and its midnight are one day
        instants = {text: instant(text) for text in wanted.drop_nulls().unique().to_list()}
        if instants and all(instants.values()):
            readings = [None if t is None else instant(t) or t for t in given.to_list()]
            wanted = _string([None if t is None else instants[t] for t in wanted.to_list()])
            return _exact(name, expected, actual, wanted, _string(readings))
    return _exact(name, expected, actual, wanted, given)


def _numeric(name: str, expected: Column, actual: Column, settings: ComparisonSettings) -> Pair:
    guard: pl.Series | None = None
    read = actual
    if actual.kind == "text" or actual.kind == "mixed":
        values: list[Any] = []
        strange: list[str | None] = []
        for cell in actual.cells:
            number = read_number(cell) if isinstance(cell, str) else cell
            unread = cell is not None and (
                isinstance(number, bool) or not isinstance(number, int | float | Decimal)
            )
            values.append(None if unread else number)
            strange.append(("\0" + canonical(cell)) if unread else None)
        read = from_cells(values)
        guard = _string(strange) if any(strange) else None
        if read.kind == "mixed" and expected.kind == "float":
            read = _as_floats(read)
        if read.kind == "mixed":
            return _exact(name, expected, actual, _canonical(expected), _canonical(actual))
    elif actual.kind in ("bool", "time", "nested"):
        guard = _string([None if cell is None else "\0" + canonical(cell) for cell in actual.cells])
        read = from_cells([None] * actual.length)
    if read.kind == "null":
        read = _nulls_as(expected, read.length)
    result = _number_pair(name, expected, read, settings)
    result.expected, result.actual = expected, actual
    result.kinds_differ = _kinds_differ(expected, actual, read)
    if guard is None:
        return result
    if result.tolerant:  # the key holds what is no number; the values are compared apart
        result.e_key = pl.repeat(None, expected.length, dtype=pl.String, eager=True)
        result.a_key = guard
        return result
    e_text = result.e_key.cast(pl.String)
    a_text = result.a_key.cast(pl.String)
    result.e_key, result.a_key = e_text, pl.select(pl.coalesce(guard, a_text)).to_series()
    return result


def _as_floats(column: Column) -> Column:
    """Integers too large to be kept exact, where only floats are expected."""
    try:
        return from_cells([None if cell is None else float(cell) for cell in column.cells])
    except OverflowError:
        return column


def _nulls_as(like: Column, length: int) -> Column:
    dtype = pl.Float64 if like.kind == "float" else pl.Int64
    nulls = pl.Series([None] * length, dtype=dtype)
    kind = "float" if like.kind == "float" else "exact"
    return Column(kind, length, nulls, raw=[None] * length)


def _kinds_differ(expected: Column, actual: Column, read: Column) -> bool:
    """Whether pandas would hold the two as integers and floats; a frame of ours knows better."""
    if expected.typed or actual.typed:
        return False

    def whole(column: Column) -> bool:
        return column.integral and None not in column.cells

    return whole(expected) != (whole(read) and actual.kind not in ("text", "mixed"))


def _number_pair(name: str, expected: Column, actual: Column, settings: ComparisonSettings) -> Pair:
    rtol, atol = settings.relative, settings.absolute
    if settings.decimals is not None:
        expected, actual = _rounded(expected, settings.decimals), _rounded(actual, settings.decimals)
    floats = "float" in (expected.kind, actual.kind)
    exact_zero = rtol == 0 and atol == 0
    if not floats:
        scaled = _scaled(expected, actual)
        if scaled is None:
            return Pair(name, expected, actual, _canonical(expected), _canonical(actual), whole=True)
        e, a, scale = scaled
        if not settings.explicit or exact_zero:
            return Pair(name, expected, actual, e, a, scale=scale, whole=True)
        empty_e = pl.repeat(None, expected.length, dtype=pl.String, eager=True)
        empty_a = pl.repeat(None, actual.length, dtype=pl.String, eager=True)
        wide_e, wide_a = e.cast(pl.Int128), a.cast(pl.Int128)
        return Pair(
            name, expected, actual, empty_e, empty_a, wide_e, wide_a, scale, whole=True, rtol=rtol, atol=atol
        )
    e, a = _floats(expected), _floats(actual)
    if not a.is_infinite().any():  # JSON carries neither NaN nor infinity: nao's API sends null
        e = _finite_or_null(e)
    e, a = e.fill_nan(None), a.fill_nan(None)
    if exact_zero:
        return Pair(name, expected, actual, e, a)
    empty_e = pl.repeat(None, expected.length, dtype=pl.String, eager=True)
    empty_a = pl.repeat(None, actual.length, dtype=pl.String, eager=True)
    strict = actual.is_exact if expected.kind == "exact" and not settings.explicit else None
    if strict is not None and not strict.any():
        strict = None
    return Pair(name, expected, actual, empty_e, empty_a, e, a, a_exact=strict, rtol=rtol, atol=atol)


def _finite_or_null(series: pl.Series) -> pl.Series:
    if not series.is_infinite().any():
        return series
    return pl.select(pl.when(series.is_finite()).then(series)).to_series()


def _floats(column: Column) -> pl.Series:
    series = _series(column)
    if column.kind == "float":
        return series
    values = series.cast(pl.Float64)
    return values / 10.0**column.scale if column.scale else values


def _rounded(column: Column, decimals: int) -> Column:
    if column.integral or column.kind not in ("float", "exact"):
        return column
    scale = 10.0**decimals
    before = _floats(column)
    scaled = before * scale
    rounded = scaled.round(0, mode="half_to_even") / scale
    values = pl.select(pl.when(scaled.abs() < 2**52).then(rounded).otherwise(before) + 0.0).to_series()
    return Column("float", column.length, values, raw=column.raw, source=column.source, typed=column.typed)


def _scaled(expected: Column, actual: Column) -> tuple[pl.Series, pl.Series, int] | None:
    """Both as unscaled integers of one scale; None where 128 bits do not hold them."""
    scale = max(expected.scale, actual.scale)
    both: list[pl.Series] = []
    for column in (expected, actual):
        series = _series(column)
        if column.scale != scale:
            factor = 10 ** (scale - column.scale)
            largest = max(abs(_int(series.min())), abs(_int(series.max())))
            if largest * factor >= _LIMIT:
                return None
            series = series.cast(pl.Int128) * pl.Series([factor], dtype=pl.Int128)
        both.append(series)
    if both[0].dtype != both[1].dtype:
        both = [series.cast(pl.Int128) for series in both]
    return both[0], both[1], scale


def _int(value: Any) -> int:
    return 0 if value is None else int(value)


def cells_same(pairs: list[Pair], e_rows: pl.Series | None, a_rows: pl.Series | None) -> list[pl.Series]:
    """Per pair, whether each expected cell equals its actual one; None: rows as they stand."""
    return [pair_same(one, e_rows, a_rows) for one in pairs]


def pair_same(one: Pair, e_rows: pl.Series | None, a_rows: pl.Series | None) -> pl.Series:
    """Whether each expected cell of the rows given equals its actual one, tolerance included."""
    e_key, a_key = _taken(one.e_key, e_rows), _taken(one.a_key, a_rows)
    if not one.tolerant:
        return e_key.eq_missing(a_key)
    assert one.e_value is not None and one.a_value is not None
    strict = None if one.a_exact is None else _taken(one.a_exact, a_rows)
    near = near_values(
        _taken(one.e_value, e_rows), _taken(one.a_value, a_rows), one.scale, one.rtol, one.atol, strict
    )
    if one.e_key.null_count() == len(one.e_key) and one.a_key.null_count() == len(one.a_key):
        return near
    return near & e_key.eq_missing(a_key)


def _taken(series: pl.Series, rows: pl.Series | None) -> pl.Series:
    return series if rows is None else series.gather(rows)


def near_values(
    expected: pl.Series,
    actual: pl.Series,
    scale: int,
    rtol: float,
    atol: float,
    strict: pl.Series | None = None,
) -> pl.Series:
    """numpy's closeness, relative to the expected side; nulls equal nulls only."""
    e, a = pl.col("e"), pl.col("a")
    frame = pl.DataFrame({"e": expected, "a": actual})
    factor = 10.0**-scale if scale > 22 else 1.0 / 10**scale
    distance = (a - e).abs().cast(pl.Float64)
    size = e.abs().cast(pl.Float64)
    if scale:
        distance, size = distance / 10.0**scale, size * factor
    near = distance <= atol + rtol * size
    if expected.dtype == pl.Float64:
        near = near & e.is_finite() & a.is_finite()
    if strict is not None:
        frame = frame.with_columns(strict.alias("s"))
        near = near & pl.col("s").not_()
    near = near | (a == e)
    both_null = e.is_null() & a.is_null()
    return frame.select(both_null | near.fill_null(False)).to_series()


def within_nao(one: Pair) -> Pair:
    """The same pair of exact numbers under nao's own tolerance, to tell a near miss."""
    if not one.whole or one.tolerant or not one.e_key.dtype.is_integer():
        return one
    return Pair(
        one.name,
        one.expected,
        one.actual,
        pl.repeat(None, len(one.e_key), dtype=pl.String, eager=True),
        pl.repeat(None, len(one.a_key), dtype=pl.String, eager=True),
        one.e_key.cast(pl.Int128),
        one.a_key.cast(pl.Int128),
        one.scale,
        rtol=RTOL,
        atol=ATOL,
    )
