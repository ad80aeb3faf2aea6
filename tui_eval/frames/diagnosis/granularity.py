"""Whether one side is the other one summed up: another granularity, or totals among its rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations

import polars as pl

from tui_eval.frames.diagnosis.changes import decimals_of, near, number, true
from tui_eval.frames.diagnosis.finding import Finding
from tui_eval.frames.diagnosis.time_changes import moments
from tui_eval.frames.difference import Difference
from tui_eval.frames.typed_columns import ReadColumn

_OURS = "\0"
"""Begins the names of columns that no frame of a person has."""
_MEASURES = 12
_FIRST = 2_000
_MANY, _SOME = 20_000, 300
_NEARLY = 0.95
_PERIODS = ("day", "week", "month", "quarter", "year")
_Keys = Callable[[], dict[str, tuple[pl.Series, pl.Series]]]
_EVERY = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}


def granularity(difference: Difference) -> Finding | None:
    """Sums of groups of one side that are the rows of the other."""
    expected, actual = difference.lengths
    if expected == actual or not expected or not actual:
        return None
    numbers = _numbers(difference)
    both = difference.pairs
    alike = {
        name for name in numbers if _totals_alike(floats(both[name].expected), floats(both[name].actual))
    }
    if not alike:
        return None
    finer = actual > expected
    few, many = ("e", "a") if finer else ("a", "e")
    sides = {"e": _side(difference, "e"), "a": _side(difference, "a")}

    def measures_of(by: tuple[str, ...]) -> list[str]:
        """What is summed in groups by these columns; nothing where the sums of it all cannot agree."""
        measures = [name for name in numbers if name not in by]
        return measures if alike.issuperset(measures) else []

    for by, unit, keys in _groupings(difference, sides[few], sides[many], measures_of):
        measures = measures_of(by)
        found = _summed(sides[few], sides[many], keys(), measures)
        if found is None:
            continue
        same, groups = found
        if same < _NEARLY * groups or (groups == 1 and max(expected, actual) < 3):
            continue
        grouped = [name for name in difference.surplus if _tells(sides["a"], by, name)] if finer else []
        parameters = {
            "finer": finer,
            "by": tuple(by),
            "unit": unit,
            "rows": max(expected, actual),
            "grouped": tuple(grouped[:3]),
        }
        return Finding("granularity", tuple(measures), same, groups, parameters)
    return None


def _tells(side: pl.DataFrame, by: tuple[str, ...], name: str) -> bool:
    """Whether a column takes several values in a group."""
    if name not in side.columns or side.schema[name].is_float():
        return False
    whole = side.n_unique(subset=list(by)) if by else 1
    return side.n_unique(subset=[*by, name]) > whole


def _totals_alike(e: pl.Series, a: pl.Series) -> bool:
    """Whether two columns sum to about the same: what groups of the one give the other has the same sum."""
    left, right = number(e.sum()), number(a.sum())
    return abs(left - right) <= 0.1 * max(abs(left), abs(right))


def _numbers(difference: Difference) -> list[str]:
    """Columns of numbers on both sides."""
    found = [
        name
        for name, one in difference.pairs.items()
        if one.expected.kind in ("exact", "float") and one.actual.kind in ("exact", "float")
    ]
    return found[:_MEASURES]


def _side(difference: Difference, side: str) -> pl.DataFrame:
    """The values of a side: numbers as Float64, what else can be compared as its key."""
    made: dict[str, pl.Series] = {}
    for name, one in difference.pairs.items():
        column = one.expected if side == "e" else one.actual
        key = one.e_key if side == "e" else one.a_key
        if one.expected.kind in ("exact", "float") and one.actual.kind in ("exact", "float"):
            made[name] = floats(column)
        elif not one.tolerant:  # both sides' keys are of one type
            made[name] = key
    others = difference.lacking if side == "e" else difference.surplus
    for name, column in others.items():
        if column.kind in ("exact", "float"):
            made[name] = floats(column) if column.kind == "float" else _series(column)
        elif column.kind in ("text", "time", "bool"):
            made[name] = _series(column)
    return pl.DataFrame(made)


def _series(column: ReadColumn) -> pl.Series:
    assert column.series is not None
    return column.series


def floats(column: ReadColumn) -> pl.Series:
    """A column of numbers as Float64."""
    values = _series(column).cast(pl.Float64)
    return values / 10.0**column.scale if column.scale else values


def _groupings(
    difference: Difference,
    few: pl.DataFrame,
    many: pl.DataFrame,
    measures_of: Callable[[tuple[str, ...]], list[str]],
) -> Iterator[tuple[tuple[str, ...], str, _Keys]]:
    """By what the rows of the larger side may be grouped: columns that are unique on the smaller side, a
    period of a time, all of it; where that leaves something to sum. With each its values on the smaller and the
    larger side."""
    shared = [name for name in difference.shared_columns if name in few.columns and name in many.columns]
    texts = [name for name in shared if difference.pairs[name].expected.kind not in ("exact", "float")]
    whole = [name for name in shared if difference.pairs[name].expected.integral]
    tried: list[tuple[str, ...]] = []
    sets = (
        difference.key,
        tuple(texts),
        *((*texts, name) for name in whole),
        *((name,) for name in (*texts, *whole)),
        *combinations(whole[:4], 2),
    )
    for by in sets:
        if by and by not in tried and all(name in shared for name in by):
            tried.append(by)
            if measures_of(by) and _unique(few.select(by)):
                yield by, "", partial(_values, few, many, by)
    for name in texts:
        left = moments(few.get_column(name)) if measures_of(tuple(texts)) else None
        if left is None:
            continue
        others = tuple(other for other in texts if other != name)
        for period in _PERIODS:
            short = left.dt.truncate(_EVERY[period])
            for more in ((), others) if others else ((),):
                if measures_of((name, *more)) and _unique(few.select(*more, short.alias(_OURS))):
                    yield (name, *more), period, partial(_periods, few, many, name, _EVERY[period], more)
    if len(few) == 1 and measures_of(()):
        yield (), "", dict


def _unique(rows: pl.DataFrame) -> bool:
    """Whether no two rows are the same; the first ones often show it."""
    some = rows.head(_FIRST)
    return some.n_unique() == len(some) and (len(some) == len(rows) or rows.n_unique() == len(rows))


def _values(
    few: pl.DataFrame, many: pl.DataFrame, by: tuple[str, ...]
) -> dict[str, tuple[pl.Series, pl.Series]]:
    return {name: (few.get_column(name), many.get_column(name)) for name in by}


def _periods(
    few: pl.DataFrame, many: pl.DataFrame, name: str, every: str, more: tuple[str, ...]
) -> dict[str, tuple[pl.Series, pl.Series]]:
    sides = [moments(side.get_column(name)) for side in (few, many)]
    if sides[0] is None or sides[1] is None:  # texts that are no times on one side: no group has several rows
        return _values(few, many, (name, *more))
    return {name: (sides[0].dt.truncate(every), sides[1].dt.truncate(every))} | _values(few, many, more)


def _summed(
    few: pl.DataFrame, many: pl.DataFrame, keys: dict[str, tuple[pl.Series, pl.Series]], measures: list[str]
) -> tuple[int, int] | None:
    """How many rows of the smaller side are the sums of the larger one's groups, of how many; None where no
    group has several rows."""
    left, right = (
        pl.DataFrame(
            {f"k{i}": key[at] for i, key in enumerate(keys.values())}
            | {f"m{i}": side.get_column(name) for i, name in enumerate(measures)}
        )
        for at, side in enumerate((few, many))
    )
    names, measures = [f"k{i}" for i in range(len(keys))], [f"m{i}" for i in range(len(measures))]
    if names:
        if _unique(right.select(names)):
            return None
        if len(right) > _MANY and len(left) > 10 * _SOME:  # of many groups some first
            some = left.sample(_SOME, seed=13)
            rows = right.join(some.select(names), on=names, how="semi", nulls_equal=True)
            if _summed_alike(some, rows, names, measures)[0] * 2 < _SOME:
                return None
    same, several, rows = _summed_alike(left, right, names, measures)
    return (same, rows) if several else None


def _summed_alike(
    left: pl.DataFrame, right: pl.DataFrame, names: list[str], measures: list[str]
) -> tuple[int, bool, int]:
    """How many rows of a side are the sums of the other one's groups; whether some of these have several rows; how
    many rows and groups there are."""
    sums = [pl.col(name).sum().alias(f"s{index}") for index, name in enumerate(measures)]
    # What is nothing adds nothing: a group of one value and nulls is no sum of several.
    parts = pl.max_horizontal([(pl.col(name) != 0).sum() for name in measures]).alias("n")
    if names:
        groups = right.group_by(names).agg(parts, *sums)
        both = left.with_columns(there=True).join(groups, on=names, how="full", nulls_equal=True)
    else:
        groups = right.select(parts, *sums)
        both = pl.concat([left.with_columns(there=True), groups], how="horizontal")
    near = [
        true((pl.col(name) - pl.col(f"s{index}")).abs() <= 1e-6 + 1e-9 * pl.col(name).abs())
        | (pl.col("there") & pl.col(name).is_null() & pl.col("n").is_not_null())
        for index, name in enumerate(measures)
    ]
    several = true(pl.col("n") > 1)
    flags = both.select(pl.all_horizontal(near).alias("same"), several.alias("several"))
    proven = bool(flags.select((pl.col("same") & pl.col("several")).any()).item())
    return int(flags.get_column("same").sum()), proven, len(both)


# -- Totals among the rows: a ROLLUP too many, or one that is missing.


_WAYS = 16


def totals(difference: Difference, missing: pl.Series, extra: pl.Series) -> list[Finding]:
    """Whether all missing rows, and all extra ones, are sums of the other rows of their side: all of these, or those
    that share what such a row names. Where both sides have rows of their own, these are totals by other columns."""
    sides = [(side, rows) for side, rows in (("e", missing), ("a", extra)) if len(rows)]
    if len(sides) == 2 and len(_numbers(difference)) == len(difference.pairs):
        return []  # nothing names a total there
    found: list[Finding] = []
    for side, rows in sides:
        one = _totals_of(difference, side, rows)
        if one is None:
            return []
        found.append(replace(one, parameters={**one.parameters, "both": True}) if len(sides) == 2 else one)
    return found


def are_a_level(difference: Difference, side: str, rows: pl.Series) -> bool:
    """Whether these rows may be all that are as coarse, of a side whose rows leave open what others name in more than
    one column, as ROLLUP, CUBE and GROUPING SETS have it: what a figure is above or below tells coarse rows from fine
    ones there, and not what is filtered. Of notes that some rows have, and of groups that HAVING leaves out, there are
    such as are as coarse and not among them."""
    numbers = set(_numbers(difference))
    for one in "ea" if side == "e" else "ae":
        table = _side(difference, one)
        named = table.select(
            name for name in difference.pairs if name in table.columns and name not in numbers
        )
        opened = pl.DataFrame([_opened(values) for values in named])
        if one == side:
            if not named.width:
                return False
            own = pl.int_range(len(table), eager=True, dtype=pl.UInt32).is_in(rows.implode())
            if len(opened.filter(own).join(opened.filter(~own), on=named.columns, how="semi")):
                return False
        if sum(0 < number(values.sum()) < len(values) for values in opened) > 1 and _unique(named):
            return True
    return False


def _totals_of(difference: Difference, side: str, rows: pl.Series) -> Finding | None:
    length = difference.lengths[0 if side == "e" else 1]
    if len(rows) >= length - 1 or length > _MANY:
        return None
    table = _side(difference, side)
    if not table.width:
        return None  # no frame holds its values
    own = pl.int_range(length, eager=True, dtype=pl.UInt32).is_in(rows.implode())
    others, made = table.filter(~own), table.filter(own)
    # A number that a total leaves open, a year, say, is what rows are grouped by.
    measures = [name for name in _numbers(difference) if not made.get_column(name).null_count()]
    names = [name for name in difference.pairs if name in table.columns and name not in measures]
    if not measures:
        return None
    opened = pl.DataFrame({name: _opened(made.get_column(name)) for name in names})
    if names and not opened.select(pl.any_horizontal(pl.all()).all()).item():
        return None
    summed = set(measures)
    several = False
    ways = opened.unique().rows() if names else [()]
    if len(ways) > _WAYS:
        return None
    for way in ways:
        chosen = (
            made
            if not names
            else made.filter(
                opened.select(
                    pl.all_horizontal(
                        pl.col(name) == is_open for name, is_open in zip(names, way, strict=True)
                    )
                ).to_series()
            )
        )
        bound = [name for name, is_open in zip(names, way, strict=True) if not is_open]
        sums = [pl.col(name).sum().alias(f"{_OURS}{at}") for at, name in enumerate(measures)]
        if bound:
            of = others.group_by(bound).agg(pl.len().alias(_OURS), *sums)
            both = chosen.join(of, on=bound, how="left", nulls_equal=True)
        else:
            both = chosen.join(others.select(pl.len().alias(_OURS), *sums), how="cross")
        several = several or bool((both.get_column(_OURS) > 1).any())
        for at, name in enumerate(measures):
            if name in summed and not near(both.get_column(name), both.get_column(f"{_OURS}{at}")).all():
                summed.discard(name)
    # Nothing is proved by what is 0 everywhere.
    summed = {name for name in summed if bool((made.get_column(name) != 0).any())}
    if not several or not summed:
        return None
    if (not names and summed != set(measures)) or (
        all(name in measures for name in difference.key)  # nothing there says that a row is a total
        and not any(_worded(made.get_column(name)) for name in names)
        and _by_chance(made, sorted(summed))
    ):
        return None
    found = tuple(name for name in measures if name in summed)
    return Finding("totals", found, len(rows), len(rows), {"extra": side == "a"})


_NO_CHANCE = 100
"""How many sums that others may be there must be, where no word or null says that a row is a total (1, 2, 3)."""


def _by_chance(made: pl.DataFrame, measures: list[str]) -> bool:
    units = [made.get_column(name).abs() * 10.0 ** decimals_of(made.get_column(name)) for name in measures]
    return math.prod(max(number(one), 1.0) for values in units for one in values.head(_WAYS)) < _NO_CHANCE


_TOTAL = (
    r"(?i)\b(?:all|everything|grand|overall|sub-?totals?|sums?|together|totale?s?|gesamt|insgesamt|summe)\b"
)


def _worded(values: pl.Series) -> bool:
    return values.dtype == pl.String and bool(values.str.contains(_TOTAL).any())


def _opened(values: pl.Series) -> pl.Series:
    """Where a row leaves open what others name: it has nothing there, or a word for all of them."""
    if values.dtype != pl.String:
        return values.is_null()
    return values.is_null() | values.str.contains(_TOTAL).fill_null(False)
