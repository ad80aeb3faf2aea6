"""Two columns made comparable, and which of their cells are the same.

Each pair has an exact key on both sides (equal keys are equal cells, null equals null). A pair that
allows a tolerance has a value beside it; cells that are no number there differ in the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from tui_eval.frames.comparison_rules import ATOL, RTOL
from tui_eval.frames.typed_columns import ReadColumn


@dataclass(slots=True)
class ColumnPair:
    """Two columns ready to compare.

    `e_key` and `a_key` have one type. With a tolerance, `e_value` and `a_value` are Float64 or
    unscaled Int128 (times 10^-scale); where a float does not hold them, `e_digits` and `a_digits` are the values in
    full: what is within the tolerance and has other digits is no exact match.
    `decimals`: both sides were rounded to so many first (None: not at all), `expected` and `actual` are as they were.
    `whole` marks pairs of exact numbers, where nao's tolerance does not count; their `rtol` and `atol` are what a
    float of the answer may lack to be one. `kinds_differ`: equal values are only approximately so.
    """

    name: str
    expected: ReadColumn
    actual: ReadColumn
    e_key: pl.Series
    a_key: pl.Series
    e_value: pl.Series | None = None
    a_value: pl.Series | None = None
    scale: int = 0
    e_digits: pl.Series | None = None
    a_digits: pl.Series | None = None
    whole: bool = False
    kinds_differ: bool = False
    rtol: float = 0.0
    atol: float = 0.0
    decimals: int | None = None

    @property
    def tolerant(self) -> bool:
        """Whether cells may differ by the tolerance."""
        return self.e_value is not None


def cells_of(
    pairs: Sequence[ColumnPair], rows: pl.Series, side: str, *, digits: bool = False
) -> pl.DataFrame:
    """What these rows of a side (`e`xpected, `a`ctual) are told apart by: of each column its key, its value
    where it has one, and, where that is asked for, its `digits`."""
    frame: dict[str, pl.Series] = {}
    for index, one in enumerate(pairs):
        key, value = (one.e_key, one.e_value) if side == "e" else (one.a_key, one.a_value)
        frame[f"k{index}"] = key.gather(rows)
        if value is not None:
            frame[f"v{index}"] = value.gather(rows)
        all_digits = one.e_digits if side == "e" else one.a_digits
        if digits and all_digits is not None:
            frame[f"d{index}"] = all_digits.gather(rows)
    return pl.DataFrame(frame)


def no_keys(length: int) -> pl.Series:
    """The keys of numbers that are compared within a tolerance: they have none. Kept in two bits each."""
    return pl.repeat(None, length, dtype=pl.Boolean, eager=True)


def divided(values: pl.Series, by: float) -> pl.Series:
    """Each value divided. Polars multiplies by the reciprocal of a single number: 1999 / 100 was
    19.990000000000002, and no 19.99."""
    return values / pl.repeat(by, len(values), dtype=pl.Float64, eager=True)


FLOAT_NOISE = 4.5e-16
"""Two units in the last place of a float, of its size."""
MOST_NOISE = 1e-3
"""Of a tolerance, at most."""
_AT_ONCE = 250_000
"""Rows that are compared at a time: what is computed on the way takes several times their values."""


def pair_same(one: ColumnPair, e_rows: pl.Series | None, a_rows: pl.Series | None) -> pl.Series:
    """Whether each expected cell of the rows given equals its actual one, tolerance included."""
    length = len(one.e_key if e_rows is None else e_rows)
    if length <= _AT_ONCE:
        return _same(one, e_rows, a_rows)
    every = pl.int_range(length, dtype=pl.UInt32, eager=True) if e_rows is None or a_rows is None else None
    sides = [every if rows is None else rows for rows in (e_rows, a_rows)]
    return pl.concat(
        [
            _same(one, *(side.slice(at, _AT_ONCE) for side in sides if side is not None))
            for at in range(0, length, _AT_ONCE)
        ],
        rechunk=True,
    )


def _same(one: ColumnPair, e_rows: pl.Series | None, a_rows: pl.Series | None) -> pl.Series:
    keys = one.e_key.null_count() < len(one.e_key) or one.a_key.null_count() < len(one.a_key)
    if not one.tolerant:
        return _taken(one.e_key, e_rows).eq_missing(_taken(one.a_key, a_rows))
    assert one.e_value is not None and one.a_value is not None
    near = near_values(
        _taken(one.e_value, e_rows), _taken(one.a_value, a_rows), one.scale, one.rtol, one.atol
    )
    if not keys:
        return near
    return near & _taken(one.e_key, e_rows).eq_missing(_taken(one.a_key, a_rows))


def _taken(series: pl.Series, rows: pl.Series | None) -> pl.Series:
    return series if rows is None else series.gather(rows)


def near_values(
    expected: pl.Series,
    actual: pl.Series,
    scale: int,
    rtol: float,
    atol: float,
) -> pl.Series:
    """numpy's closeness, relative to the expected side, what floats add to a distance apart: 1.3 is 0.3 from 1.0. Nulls
    equal nulls only."""
    e, a = pl.col("e"), pl.col("a")
    frame = pl.DataFrame({"e": expected, "a": actual})
    distance = (a - e).abs().cast(pl.Float64)
    size = e.abs().cast(pl.Float64)
    if scale:
        unit = pl.repeat(10.0**scale, pl.len())  # see `divided`
        distance, size = distance / unit, size / unit
    allowed = atol + rtol * size
    noise = FLOAT_NOISE * (size + allowed)  # of numbers, their distance and the tolerance
    near = distance <= allowed + pl.min_horizontal(noise, MOST_NOISE * allowed)
    if expected.dtype == pl.Float64:
        near = near & e.is_finite() & a.is_finite()
    near = near | (a == e)
    both_null = e.is_null() & a.is_null()
    return frame.select(both_null | near.fill_null(False)).to_series()


def within_nao(one: ColumnPair) -> ColumnPair:
    """The same pair of exact numbers under nao's own tolerance, to tell a near miss."""
    if not one.whole or one.tolerant or not one.e_key.dtype.is_integer():
        return one
    return ColumnPair(
        one.name,
        one.expected,
        one.actual,
        no_keys(len(one.e_key)),
        no_keys(len(one.a_key)),
        one.e_key.cast(pl.Int128),
        one.a_key.cast(pl.Int128),
        one.scale,
        rtol=RTOL,
        atol=ATOL,
    )
