"""Whether one side is the other one summed up: another granularity."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from tui_eval.frames.columns import Column
from tui_eval.frames.diagnosis.changes import true
from tui_eval.frames.diagnosis.finding import Finding
from tui_eval.frames.diagnosis.time_changes import moments
from tui_eval.frames.difference import Difference

_MEASURES = 12
_NEARLY = 0.95
_PERIODS = ("day", "week", "month", "quarter", "year")
_EVERY = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}


def granularity(difference: Difference) -> Finding | None:
    """Sums of groups of one side that are the rows of the other."""
    expected, actual = difference.lengths
    if expected == actual or not expected or not actual:
        return None
    measures = _measures(difference)
    if not measures:
        return None
    finer = actual > expected
    few, many = ("e", "a") if finer else ("a", "e")
    sides = {"e": _side(difference, "e"), "a": _side(difference, "a")}
    for by, unit, keys in _groupings(difference, sides[few], sides[many]):
        if any(name in measures for name in by):
            continue
        found = _summed(sides[few], sides[many], keys, measures)
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


def _measures(difference: Difference) -> list[str]:
    """Columns of numbers on both sides that are no key."""
    found = [
        name
        for name, one in difference.pairs.items()
        if one.expected.kind in ("exact", "float")
        and one.actual.kind in ("exact", "float")
        and name not in difference.key
    ]
    return found[:_MEASURES]


def _side(difference: Difference, side: str) -> pl.DataFrame:
    """The values of a side: numbers as Float64, what else can be compared as its key."""
    made: dict[str, pl.Series] = {}
    for name, one in difference.pairs.items():
        column = one.expected if side == "e" else one.actual
        key = one.e_key if side == "e" else one.a_key
        if column.kind in ("exact", "float"):
            made[name] = floats(column)
        elif not one.tolerant:
            made[name] = key
    others = difference.lacking if side == "e" else difference.surplus
    for name, column in others.items():
        if column.kind in ("exact", "float"):
            made[name] = floats(column) if column.kind == "float" else _series(column)
        elif column.kind in ("text", "time", "bool"):
            made[name] = _series(column)
    return pl.DataFrame(made)


def _series(column: Column) -> pl.Series:
    assert column.series is not None
    return column.series


def floats(column: Column) -> pl.Series:
    """A column of numbers as Float64."""
    values = _series(column).cast(pl.Float64)
    return values / 10.0**column.scale if column.scale else values


def _groupings(
    difference: Difference, few: pl.DataFrame, many: pl.DataFrame
) -> Iterator[tuple[tuple[str, ...], str, dict[str, tuple[pl.Series, pl.Series]]]]:
    """By what the rows of the larger side may be grouped: columns that are unique on the smaller side, a
    period of a time, all of it. With each its values on the smaller and the larger side."""
    shared = [name for name in difference.shared_columns if name in few.columns and name in many.columns]
    exact = [name for name in shared if not difference.pairs[name].tolerant]
    texts = [name for name in exact if difference.pairs[name].expected.kind not in ("exact", "float")]
    tried: list[tuple[str, ...]] = []
    for by in (tuple(difference.key), tuple(texts), *((name,) for name in exact)):
        if by and by not in tried and all(name in few.columns for name in by):
            tried.append(by)
            if few.n_unique(subset=list(by)) == len(few):
                yield by, "", {name: (few.get_column(name), many.get_column(name)) for name in by}
    for name in texts:
        left, right = moments(few.get_column(name)), moments(many.get_column(name))
        if left is None or right is None:
            continue
        others = [other for other in texts if other != name]
        for period in _PERIODS:
            short = left.dt.truncate(_EVERY[period])
            if short.n_unique() == len(few) or others:
                keys = {name: (short, right.dt.truncate(_EVERY[period]))}
                for with_others in ([], others) if others else ([],):
                    chosen = keys | {n: (few.get_column(n), many.get_column(n)) for n in with_others}
                    if pl.DataFrame({n: k[0] for n, k in chosen.items()}).n_unique() == len(few):
                        yield (name, *with_others), period, chosen
    if len(few) == 1:
        yield (), "", {}


def _summed(
    few: pl.DataFrame, many: pl.DataFrame, keys: dict[str, tuple[pl.Series, pl.Series]], measures: list[str]
) -> tuple[int, int] | None:
    """How many rows of the smaller side are the sums of the larger one's groups, of how many; None where no
    group has several rows."""
    left = pl.DataFrame(
        {f"k{i}": key[0] for i, key in enumerate(keys.values())} | {n: few.get_column(n) for n in measures}
    )
    right = pl.DataFrame(
        {f"k{i}": key[1] for i, key in enumerate(keys.values())} | {n: many.get_column(n) for n in measures}
    )
    names = [f"k{i}" for i in range(len(keys))]
    sums = [pl.col(name).sum().alias(f"s{index}") for index, name in enumerate(measures)]
    if names:
        groups = right.group_by(names).agg(pl.len().alias("n"), *sums)
        if int(groups.get_column("n").max() or 0) < 2:  # type: ignore[call-overload]
            return None
        both = left.join(groups, on=names, how="full", nulls_equal=True)
    else:
        groups = right.select(pl.len().alias("n"), *sums)
        both = pl.concat([left, groups], how="horizontal")
    near = [
        true((pl.col(name) - pl.col(f"s{index}")).abs() <= 1e-6 + 1e-9 * pl.col(name).abs())
        | (pl.col(name).is_null() & pl.col("n").is_not_null())
        for index, name in enumerate(measures)
    ]
    several = true((pl.col("n") > 1) & pl.any_horizontal([pl.col(name).abs() > 0 for name in measures]))
    flags = both.select(pl.all_horizontal(near).alias("same"), several.alias("several"))
    same = int(flags.get_column("same").sum())
    if not flags.select((pl.col("same") & pl.col("several")).any()).item():
        return None
    return same, len(both)
