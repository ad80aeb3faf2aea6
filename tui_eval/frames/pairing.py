"""An expected and an actual column made comparable: the rules of what equals what."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import polars as pl

from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.numbers import read_number, shortest_text
from tui_eval.frames.pairs import ColumnPair, no_keys
from tui_eval.frames.typed_columns import ReadColumn, from_cells, text_series
from tui_eval.frames.value_texts import (
    canonical,
    duck_text,
    instant,
    interval,
    json_text,
    moment,
    nested_text,
)

# -- Columns of numbers made comparable: exact ones exactly, floats within the tolerance, texts read as numbers.


_LIMIT = 2**126


def numeric(name: str, expected: ReadColumn, actual: ReadColumn, settings: ComparisonSettings) -> ColumnPair:
    """Make a column of numbers and whatever the answer has in its place comparable."""
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
        guard = text_series(strange) if any(strange) else None
        if read.kind == "mixed" and expected.kind == "float":
            read = as_floats(read)
        if read.kind == "mixed":
            return ColumnPair(name, expected, actual, canonical_texts(expected), canonical_texts(actual))
    elif actual.kind in ("bool", "time", "nested"):
        guard = text_series([None if cell is None else "\0" + canonical(cell) for cell in actual.cells])
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


def as_floats(column: ReadColumn) -> ReadColumn:
    """Integers too large to be kept exact, where the other side has floats; as it was where none holds them."""
    try:
        return from_cells([None if cell is None else float(cell) for cell in column.cells])
    except OverflowError:
        return column


def _nulls_as(like: ReadColumn, length: int) -> ReadColumn:
    dtype = pl.Float64 if like.kind == "float" else pl.Int64
    nulls = pl.Series([None] * length, dtype=dtype)
    kind = "float" if like.kind == "float" else "exact"
    return ReadColumn(kind, length, nulls, raw=[None] * length)


def _kinds_differ(expected: ReadColumn, actual: ReadColumn, read: ReadColumn) -> bool:
    """Whether pandas would hold the two as integers and floats; a frame of ours knows better."""
    if expected.typed or actual.typed:
        return False

    def whole(column: ReadColumn) -> bool:
        return column.integral and None not in column.cells

    return whole(expected) != (whole(read) and actual.kind not in ("text", "mixed"))


def _number_pair(
    name: str, expected: ReadColumn, actual: ReadColumn, settings: ComparisonSettings
) -> ColumnPair:
    rtol, atol = settings.relative, settings.absolute
    if settings.decimals is not None:
        expected, actual = _rounded(expected, settings.decimals), _rounded(actual, settings.decimals)
    floats = "float" in (expected.kind, actual.kind)
    exact_zero = rtol == 0 and atol == 0
    if not floats:
        scaled = _scaled(expected, actual)
        if scaled is None:
            return ColumnPair(
                name, expected, actual, canonical_texts(expected), canonical_texts(actual), whole=True
            )
        e, a, scale = scaled
        if not settings.explicit or exact_zero:
            return ColumnPair(name, expected, actual, e, a, scale=scale, whole=True)
        empty_e, empty_a = no_keys(expected.length), no_keys(actual.length)
        wide_e, wide_a = e.cast(pl.Int128), a.cast(pl.Int128)
        return ColumnPair(
            name, expected, actual, empty_e, empty_a, wide_e, wide_a, scale, whole=True, rtol=rtol, atol=atol
        )
    beyond = settings.decimals is None and (_beyond_floats(expected) or _beyond_floats(actual))
    if exact_zero and beyond:
        return ColumnPair(name, expected, actual, _digits(expected), _digits(actual))
    e, a = _floats(expected), _floats(actual)
    if not a.is_infinite().any():  # JSON carries neither NaN nor infinity: nao's API sends null
        e = _finite_or_null(e)
    e, a = (side.fill_nan(None) if side.is_nan().any() else side for side in (e, a))
    if exact_zero:
        return ColumnPair(name, expected, actual, e, a)
    empty_e, empty_a = no_keys(expected.length), no_keys(actual.length)
    strict = actual.is_exact if expected.kind == "exact" and not settings.explicit else None
    if strict is not None and not strict.any():
        strict = None
    result = ColumnPair(name, expected, actual, empty_e, empty_a, e, a, a_exact=strict, rtol=rtol, atol=atol)
    if strict is not None and beyond:
        result.e_digits, result.a_digits = _digits(expected), _digits(actual)
    return result


_HELD = 2**53


def _beyond_floats(column: ReadColumn) -> bool:
    """Whether a column has exact numbers that floats may not tell from others."""
    if column.kind == "exact":
        series = series_of(column)
        return max(abs(_int(series.min())), abs(_int(series.max()))) > _HELD
    if column.is_exact is None:
        return False
    return bool((column.is_exact & (series_of(column).abs() >= _HELD)).any())


def _digits(column: ReadColumn) -> pl.Series:
    """The values in full, equal where the numbers are; NaN is null."""
    return text_series([None if cell is None else _in_full(cell) for cell in column.cells])


def _in_full(cell: Any) -> str | None:
    number = Decimal(cell)
    if number.is_nan():
        return None
    return shortest_text(number) if number.is_finite() else str(number)


def _finite_or_null(series: pl.Series) -> pl.Series:
    if not series.is_infinite().any():
        return series
    return pl.select(pl.when(series.is_finite()).then(series)).to_series()


def _floats(column: ReadColumn) -> pl.Series:
    series = series_of(column)
    if column.kind == "float":
        return series
    values = series.cast(pl.Float64)
    return values / 10.0**column.scale if column.scale else values


def _rounded(column: ReadColumn, decimals: int) -> ReadColumn:
    if column.integral or column.kind not in ("float", "exact"):
        return column
    scale = 10.0**decimals
    before = _floats(column)
    scaled = before * scale
    rounded = scaled.round(0, mode="half_to_even") / scale
    values = pl.select(pl.when(scaled.abs() < 2**52).then(rounded).otherwise(before) + 0.0).to_series()
    return ReadColumn(
        "float", column.length, values, raw=column.raw, source=column.source, typed=column.typed
    )


def _scaled(expected: ReadColumn, actual: ReadColumn) -> tuple[pl.Series, pl.Series, int] | None:
    """Both as unscaled integers of one scale; None where 128 bits do not hold them."""
    scale = max(expected.scale, actual.scale)
    both: list[pl.Series] = []
    for column in (expected, actual):
        series = series_of(column)
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


def canonical_texts(column: ReadColumn) -> pl.Series:
    """The values as texts, equal where the values are."""
    if column.kind in ("text", "time"):
        return series_of(column)
    return text_series([None if cell is None else canonical(cell) for cell in column.cells])


def series_of(column: ReadColumn) -> pl.Series:
    """A column's values, where it holds them as a series."""
    assert column.series is not None
    return column.series


def pair(name: str, expected: ReadColumn, actual: ReadColumn, settings: ComparisonSettings) -> ColumnPair:
    """Make two columns comparable by the documented rules."""
    if expected.kind == "mixed" and actual.kind == "float":
        numbers = all(cell is None or type(cell) in (int, float, Decimal) for cell in expected.cells)
        expected = as_floats(expected) if numbers else expected
    if expected.kind in ("exact", "float"):
        return numeric(name, expected, actual, settings)
    if expected.kind == actual.kind and expected.kind in ("bool", "time"):
        return ColumnPair(name, expected, actual, series_of(expected), series_of(actual))
    if expected.kind == "time":
        readings = [
            None if cell is None else (moment(cell) or cell) if isinstance(cell, str) else canonical(cell)
            for cell in actual.cells
        ]
        return ColumnPair(name, expected, actual, series_of(expected), text_series(readings))
    if expected.kind == "text" and actual.kind == "text":
        return _texts(name, expected, actual)
    if expected.kind == "nested" and expected.typed:
        given = series_of(actual).to_list() if actual.kind == "nested" and actual.typed else actual.cells
        if expected.type_name.upper() == "INTERVAL":
            wanted = [None if t is None else interval(t) or t for t in series_of(expected).to_list()]
            texts = [None if cell is None else duck_text(cell) for cell in given]
            found = [None if t is None else interval(t) or t for t in texts]
            return ColumnPair(name, expected, actual, text_series(wanted), text_series(found))
        wanted, found = (
            text_series([None if cell is None else nested_text(cell, expected.type_name) for cell in side])
            for side in (series_of(expected).to_list(), given)
        )
        return ColumnPair(name, expected, actual, wanted, found)
    if expected.type_name.upper() in ("JSON", "JSONB") and any(
        isinstance(c, list | dict) for c in actual.cells
    ):
        wanted, given = (text_series([json_text(cell) for cell in side.cells]) for side in (expected, actual))
        return ColumnPair(name, expected, actual, wanted, given)
    result = ColumnPair(name, expected, actual, canonical_texts(expected), canonical_texts(actual))
    if expected.kind == "text" and not expected.typed and not actual.typed:
        result.kinds_differ = actual.kind == "exact" and None not in actual.cells
    return result


def _texts(name: str, expected: ReadColumn, actual: ReadColumn) -> ColumnPair:
    wanted, given = series_of(expected), series_of(actual)
    if not expected.typed and wanted.head(1000).str.contains(r"^\d{4,}-\d\d-\d\d").all():
        # rows of a backend carry dates as text: `2024-01-05` and its midnight are one day
        instants = {text: instant(text) for text in wanted.drop_nulls().unique().to_list()}
        if instants and all(instants.values()):
            readings = [None if t is None else instant(t) or t for t in given.to_list()]
            wanted = text_series([None if t is None else instants[t] for t in wanted.to_list()])
            return ColumnPair(name, expected, actual, wanted, text_series(readings))
    return ColumnPair(name, expected, actual, wanted, given)
