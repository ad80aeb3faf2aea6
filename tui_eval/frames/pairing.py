"""An expected and an actual column made comparable: the rules of what equals what."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import polars as pl

from tui_eval.frames.comparison_rules import ATOL, ComparisonSettings
from tui_eval.frames.numbers import read_number, shortest_text
from tui_eval.frames.pairs import FLOAT_NOISE, ColumnPair, divided, no_keys
from tui_eval.frames.typed_columns import ReadColumn, from_cells, text_series
from tui_eval.frames.value_texts import (
    BYTES_TYPES,
    JSON_TYPES,
    canonical,
    duck_text,
    holder,
    instant,
    intervals,
    json_scalars,
    json_texts,
    moment,
    nested_texts,
    texts_of_bytes,
)

# -- Columns of numbers made comparable: exact ones exactly, floats within the tolerance, texts read as numbers.


_LIMIT = 2**126
_HELD = 2**53
_EXACT_POWERS = 22
"""Powers of ten that a float holds."""


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
    read.had_nan = read.had_nan or actual.had_nan
    result = _number_pair(name, expected, read, settings)
    result.expected, result.actual, result.decimals = expected, actual, settings.decimals
    result.kinds_differ = result.kinds_differ or _kinds_differ(expected, actual, read)
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


def _mixed(
    name: str, expected: ReadColumn, actual: ReadColumn, settings: ComparisonSettings
) -> ColumnPair | None:
    """Make a column that holds texts beside numbers comparable: numbers as numbers, within the tolerance that
    they have, texts as they are. None where nothing of it is compared within one: numbers there are their
    shortest texts.

    A text of the answer that the expected column has is that one; else it may be a number, as in a column of
    numbers."""
    texts = {cell for cell in expected.cells if isinstance(cell, str)}
    numbers = [None if isinstance(cell, str) else cell for cell in expected.cells]
    if not texts or {type(cell) for cell in numbers} - {int, float, Decimal, type(None)}:
        return None
    e_read = from_cells(numbers)
    if e_read.kind != "float" and (e_read.kind != "exact" or not settings.explicit):
        return None
    known = {canonical(cell) for cell in numbers if cell is not None}
    values: list[Any] = []
    words: list[str | None] = []
    for cell in actual.cells:
        number = cell if not isinstance(cell, str) else None if cell in texts else read_number(cell)
        if cell is None or (isinstance(number, int | float | Decimal) and not isinstance(number, bool)):
            word = None if cell is None or isinstance(cell, str) else canonical(cell)
            word = word if word in texts and word not in known else None  # `12` where the text stands
        else:
            word = canonical(cell)
        words.append(word)
        values.append(number if word is None else None)
    a_read = from_cells(values)
    a_read = as_floats(a_read) if a_read.kind == "mixed" else a_read
    if a_read.kind == "mixed":
        return None
    a_read = _nulls_as(e_read, a_read.length) if a_read.kind == "null" else a_read
    result = _number_pair(name, e_read, a_read, settings)
    result.expected, result.actual = expected, actual
    e_words = text_series([cell if isinstance(cell, str) else None for cell in expected.cells])
    a_words = text_series(words)
    if result.tolerant:
        result.e_key, result.a_key = e_words, a_words
        return result
    e_key, a_key = (
        pl.select(
            pl.coalesce(own, text_series([None if one is None else canonical(one) for one in key.to_list()]))
        ).to_series()
        for own, key in ((e_words, result.e_key), (a_words, result.a_key))
    )
    return ColumnPair(name, expected, actual, e_key, a_key)


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
    if expected.kind != "float" and not settings.explicit:
        return _exact_pair(name, expected, actual, settings)
    beyond = settings.decimals is None and (_beyond_floats(expected) or _beyond_floats(actual))
    if exact_zero and beyond:
        return ColumnPair(name, expected, actual, _digits(expected), _digits(actual))
    e, a = _floats(expected), _floats(actual)
    if e.is_infinite().any() and not (actual.had_nan or (a.is_infinite() | a.is_nan()).any()):
        e = _finite_or_null(e)  # JSON carries neither NaN nor infinity: nao's API sends null
    e, a = (side.fill_nan(None) if side.is_nan().any() else side for side in (e, a))
    if exact_zero:
        return ColumnPair(name, expected, actual, e, a)
    empty_e, empty_a = no_keys(expected.length), no_keys(actual.length)
    result = ColumnPair(name, expected, actual, empty_e, empty_a, e, a, rtol=rtol, atol=atol)
    if beyond:
        result.e_digits, result.a_digits = _digits(expected), _digits(actual)
    return result


def _exact_pair(
    name: str, expected: ReadColumn, actual: ReadColumn, settings: ComparisonSettings
) -> ColumnPair:
    """Exact numbers and an answer with floats, compared by their digits."""
    keys = _exact_keys(expected, actual, settings)
    return ColumnPair(
        name,
        expected,
        actual,
        keys.expected,
        keys.actual,
        scale=keys.scale,
        whole=True,
        kinds_differ=keys.near,
        rtol=keys.rtol,
        atol=keys.atol,
    )


def _beyond_floats(column: ReadColumn) -> bool:
    """Whether a column has exact numbers that floats may not tell from others."""
    if column.kind == "exact":
        return _most(series_of(column)) > _HELD
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
    if not number.is_finite():
        return str(number)
    if number != number.to_integral_value():
        held = float(cell)
        if isinstance(cell, float) or Decimal(held) == number:
            number = Decimal(repr(held))  # as it is written: its digits in binary are no one's
    return shortest_text(number)


def _finite_or_null(series: pl.Series) -> pl.Series:
    return pl.select(pl.when(series.is_finite()).then(series)).to_series()


def _floats(column: ReadColumn) -> pl.Series:
    series = series_of(column)
    if column.kind == "float":
        return series
    values = series.cast(pl.Float64)
    if not column.scale:
        return values
    made = divided(values, 10.0**column.scale)
    if column.scale <= _EXACT_POWERS and _most(series) <= _HELD:
        return made
    read = (series.cast(pl.String) + f"e-{column.scale}").cast(pl.Float64)  # else it would be rounded twice
    far = pl.lit(column.scale > _EXACT_POWERS) | (pl.col("v") > _HELD) | (pl.col("v") < -_HELD)
    frame = pl.DataFrame({"v": series, "made": made, "read": read})
    return frame.select(pl.when(far).then("read").otherwise("made")).to_series()


def _rounded(column: ReadColumn, decimals: int) -> ReadColumn:
    if column.integral or column.kind not in ("float", "exact") or decimals > sys.float_info.max_10_exp:
        return column  # no value has so many places
    if column.kind == "exact":
        return _exactly_rounded(column, decimals)
    scale = 10.0**decimals
    before = _floats(column)
    scaled = before * scale
    rounded = divided(_halves(scaled).round(0, mode="half_to_even"), scale)
    values = pl.select(pl.when(scaled.abs() < 2**52).then(rounded).otherwise(before) + 0.0).to_series()
    return ReadColumn(
        "float", column.length, values, raw=column.raw, source=column.source, typed=column.typed
    )


def _halves(scaled: pl.Series) -> pl.Series:
    """Halves that a float misses by its own noise, as they are written: 1.015 is 101.49999999999999 hundredths."""
    whole = (scaled * 2).round(0)
    room = pl.min_horizontal(FLOAT_NOISE * pl.col("w").abs(), 0.1)
    near = (pl.col("s") * 2 - pl.col("w")).abs() <= room
    return (
        pl.DataFrame({"s": scaled, "w": whole})
        .select(pl.when(near).then(pl.col("w") / 2).otherwise(pl.col("s")))
        .to_series()
    )


def _exactly_rounded(column: ReadColumn, decimals: int) -> ReadColumn:
    """Decimals half to even, and decimals still: made floats, a unit of their last place would be within the
    tolerance."""
    if column.scale <= decimals:
        return column
    factor = pl.lit(10 ** (column.scale - decimals), dtype=pl.Int128)
    value = pl.col("v")
    rest, down = value % factor, value // factor  # as Python's: towards minus infinity
    up = (rest * 2 > factor) | ((rest * 2 == factor) & (down % 2 != 0))
    values = (
        pl.DataFrame({"v": series_of(column).cast(pl.Int128)})
        .select(pl.when(up).then(down + 1).otherwise(down))
        .to_series()
    )
    return replace(column, series=values, scale=decimals)


def _scaled(expected: ReadColumn, actual: ReadColumn) -> tuple[pl.Series, pl.Series, int] | None:
    """Both as unscaled integers of one scale; None where 128 bits do not hold them."""
    scale = max(expected.scale, actual.scale)
    both: list[pl.Series] = []
    for column in (expected, actual):
        series = series_of(column)
        if column.scale != scale:
            factor = 10 ** (scale - column.scale)
            if _most(series) * factor >= _LIMIT:
                return None
            series = series.cast(pl.Int128) * pl.Series([factor], dtype=pl.Int128)
        both.append(series)
    if both[0].dtype != both[1].dtype:
        both = [series.cast(pl.Int128) for series in both]
    return both[0], both[1], scale


def _most(series: pl.Series) -> int:
    """The largest size of the whole numbers in it; 0 where it holds none."""
    ends: list[Any] = [series.min(), series.max()]
    return max(0 if one is None else abs(int(one)) for one in ends)


# -- Exact numbers that are expected, and floats that the answer has in their place.
#
# An answer's JSON has one kind of number, so `250001.0` may stand for 250001. It is that integer, or it is not: an
# integer off by one fails, however it is written (formats/nao.md section 3, "Surprising verdicts"; the seed's
# tolerance is there "to handle floating-point differences"). Of a DECIMAL every digit counts that its type has; an
# answer with more digits is taken at these, within the tolerance of floats.
#
# Keys are integers in billionths of the expected column's last place (thousandths of very large ones): what
# stands between two of its values has a key of its own, which no expected value has, and is as far from both
# as it is said to be.


_PARTS = 10**9, 1000
"""How many keys there are to a unit of the last place: the second where 128 bits do not hold the first."""
NOISE = 1e-12
"""What arithmetic of floats may add to a whole number, relative to it; with it comes `ATOL`, where that is less."""
_MOST_NOISE = 1e-3
_IN_FLOATS = 2**51
"""Below this a float times a power of ten is right to half a unit."""
_WIDE = Context(prec=120)


@dataclass(frozen=True, slots=True)
class _ExactKeys:
    """The keys of both sides, times 10^-`scale`: Int128, or texts where 128 bits do not hold them. `near`:
    some answer is its expected number only nearly."""

    expected: pl.Series
    actual: pl.Series
    scale: int
    near: bool
    rtol: float
    atol: float


def _exact_keys(expected: ReadColumn, actual: ReadColumn, settings: ComparisonSettings) -> _ExactKeys:
    """Keys of an expected column of exact numbers and an answer's column with floats."""
    scale = expected.scale
    rtol, atol = (
        (settings.relative, settings.absolute)
        if scale
        else (min(NOISE, settings.relative), min(ATOL, settings.absolute))
    )
    series = expected.series
    most = 0 if series is None else _most(series)
    part, least = _PARTS
    part = part if most * part < _LIMIT else least
    rule = _Rule(scale, rtol, atol, 0.5 if scale else _MOST_NOISE, part)
    exactly = not settings.relative and not settings.absolute
    wide = exactly or any(_is_wide(cell, scale) for cell in _exact_cells(actual))
    sent = expected.type_name.upper().startswith(_SENT_AS_FLOATS)
    if series is None or most * part >= _LIMIT:
        wanted = [
            None if cell is None else _expected_key(cell, rule, not wide, sent) for cell in expected.cells
        ]
        found = [None if cell is None else rule.key(cell) for cell in actual.cells]
        near = any(key is not None and key[1] for key in found)
        texts = (
            text_series([None if key is None else f"{key:x}" for key in wanted]),
            text_series([None if key is None or key[0] is None else f"{key[0]:x}" for key in found]),
        )
        return _ExactKeys(*texts, 0, near, rtol, atol)
    e_keys = series.cast(pl.Int128) * pl.Series([part], dtype=pl.Int128)
    nearest = False
    if not wide:
        beyond = (series >= _IN_FLOATS) | (series <= -_IN_FLOATS)
        for at in beyond.fill_null(False).arg_true().to_list():
            digits = int(series[at])
            key = _expected_key(Decimal(digits).scaleb(-scale, _WIDE), rule, True, sent)
            if key != e_keys[at]:
                e_keys[at] = key
                nearest = nearest or sent or digits % 10**scale != 0
    a_keys, near = _actual_keys(actual, rule)
    return _ExactKeys(e_keys, a_keys, scale + len(str(part)) - 1, near or nearest, rtol, atol)


def _actual_keys(actual: ReadColumn, rule: _Rule) -> tuple[pl.Series, bool]:
    assert actual.series is not None
    values = actual.series.fill_nan(None)
    unit = 10.0**rule.scale
    v, scaled = pl.col("v"), pl.col("v") * unit
    whole = scaled.round(0, mode="half_to_even")
    apart = (scaled - whole).abs()
    allowed = pl.min_horizontal(rule.most, rule.atol * unit + rule.rtol * whole.abs())
    plain = scaled.abs() < _IN_FLOATS
    part = pl.lit(rule.part, dtype=pl.Int128)
    between = (scaled * rule.part).round(0).cast(pl.Int128, strict=False)
    between = pl.when(between % part == 0).then(between + 1).otherwise(between)
    key = pl.when(apart <= allowed).then(whole.cast(pl.Int128, strict=False) * part).otherwise(between)
    far = pl.lit(_LIMIT, dtype=pl.Int128)
    beyond = pl.when(v > 0).then(far).otherwise(-far)
    made = pl.DataFrame({"v": values}).select(
        pl.when(plain).then(key).when(v.is_not_null()).then(beyond).alias("key"),
        (plain & (apart <= allowed) & (apart > NOISE * scaled.abs())).fill_null(False).alias("near"),
        (~plain).fill_null(False).alias("slow"),
    )
    keys, slow = made.get_column("key"), made.get_column("slow")
    if actual.is_exact is not None:
        slow = slow | (actual.is_exact & (values != values.round(0)).fill_null(False))
    near = bool((made.get_column("near") & ~slow).any())
    if slow.any():
        cells = actual.cells
        at = slow.arg_true()
        found = [rule.key(cells[row]) for row in at.to_list()]
        near = near or any(is_near for _, is_near in found)
        held = [None if one is None else max(-_LIMIT, min(one, _LIMIT)) for one, _ in found]
        keys = keys.scatter(at, pl.Series(held, dtype=pl.Int128))
    return keys, near


@dataclass(frozen=True, slots=True)
class _Rule:
    """What an answer's number is the key of: the place of the expected column's last digit, how far a float may be from
    a value of that column, never more than `most` of its units, and how many keys there are to one (`part`)."""

    scale: int
    rtol: float
    atol: float
    most: float
    part: int

    def key(self, cell: int | float | Decimal) -> tuple[int | None, bool]:
        """The key of a number of the answer, and whether it is so only nearly; None of NaN."""
        if not isinstance(cell, int) and not _finite(cell):
            return (None if cell != cell else (_LIMIT if cell > 0 else -_LIMIT) * 10**400), False
        scaled = Fraction(cell) * 10**self.scale
        whole = round(scaled)
        if scaled == whole:
            return whole * self.part, False
        if isinstance(cell, float):
            if abs(scaled) >= _IN_FLOATS:
                return round(scaled * self.part), False
            apart = abs(scaled - whole)
            if apart <= min(self.most, self.atol * 10.0**self.scale + self.rtol * abs(whole)):
                return whole * self.part, apart > NOISE * abs(scaled)
        between = round(scaled * self.part)
        return between + (between % self.part == 0), False


_SENT_AS_FLOATS = ("HUGEINT", "DECIMAL", "BIGNUM")
"""Types of whole numbers that nao's server sends as floats: the sum of integers among them. `BIGNUM` are HUGEINTs of 39
digits, too, and PostgreSQL's numbers of more."""


def _expected_key(cell: int | Decimal, rule: _Rule, to_floats: bool, sent: bool = False) -> int:
    """The key of an expected number; with `to_floats` that of the float which stands for it where none holds it: the
    one nearest to a fraction, and of an integer the one that is written with its digits (`1e+30`), or, where such a
    column is `sent` as floats, the nearest."""
    exact = Fraction(cell) * 10**rule.scale
    if to_floats and abs(exact) >= _IN_FLOATS:
        try:
            held = float(cell)
        except OverflowError:
            return int(exact * rule.part)
        fraction = exact.numerator % 10**rule.scale != 0
        if fraction or sent or (abs(exact) >= _HELD and Decimal(shortest_text(held)) == Decimal(cell)):
            return round(Fraction(held) * 10**rule.scale * rule.part)
    return int(exact * rule.part)


def _exact_cells(column: ReadColumn) -> list[Any]:
    if column.is_exact is None:
        return []
    cells = column.cells
    return [cells[row] for row in column.is_exact.arg_true().to_list()]


def _is_wide(cell: int | float | Decimal, scale: int) -> bool:
    return not isinstance(cell, float) and abs(cell) * 10**scale >= _IN_FLOATS


def _finite(number: float | Decimal) -> bool:
    return number == number and abs(number) != float("inf")


# -- What equals what in columns of any kind.


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
        kinds = set(map(type, expected.cells)) - {type(None)}
        exactly = not settings.explicit or (not settings.relative and not settings.absolute)
        if kinds <= {int, Decimal} and exactly:  # more digits than 128 bits hold
            return _exact_pair(name, expected, actual, settings)
        expected = as_floats(expected) if kinds <= {int, float, Decimal} else expected
    if expected.kind == "mixed" and (mixed := _mixed(name, expected, actual, settings)) is not None:
        return mixed
    if expected.kind == "exact" and expected.type_name == "BOOLEAN" and actual.kind == "bool":
        return ColumnPair(name, expected, actual, series_of(expected), series_of(actual).cast(pl.Int64))
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
    if expected.type_name.upper() in JSON_TYPES and expected.kind == "text":
        if any(isinstance(c, list | dict) for c in actual.cells):
            sides = json_texts(list(expected.cells), list(actual.cells))
        else:
            sides = json_scalars(series_of(expected).to_list(), canonical_texts(actual).to_list())
        return ColumnPair(name, expected, actual, text_series(sides[0]), text_series(sides[1]))
    if expected.kind == "text" and actual.kind == "text":
        if expected.type_name.upper() in BYTES_TYPES:
            wanted = series_of(expected)
            texts = texts_of_bytes(wanted.to_list(), series_of(actual).to_list(), expected.type_name)
            return ColumnPair(name, expected, actual, wanted, text_series(texts))
        return _texts(name, expected, actual)
    if expected.kind == "nested" and expected.typed:
        given = series_of(actual).to_list() if actual.kind == "nested" and actual.typed else actual.cells
        if expected.type_name.upper() == "INTERVAL":
            texts = [None if cell is None else duck_text(cell) for cell in given]
            wanted, found = intervals(series_of(expected).to_list(), texts)
        else:
            wanted, found = nested_texts(series_of(expected).to_list(), list(given), expected.type_name)
        return ColumnPair(name, expected, actual, text_series(wanted), text_series(found))
    if expected.kind == "nested" and actual.kind in ("text", "mixed"):
        found = text_series([None if cell is None else canonical(holder(cell)) for cell in actual.cells])
        return ColumnPair(name, expected, actual, canonical_texts(expected), found)
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
