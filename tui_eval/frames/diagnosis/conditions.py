"""A condition over the columns of a frame that tells some of its rows from the others: a tree of depth two.

Only said where it separates them exactly or nearly, and where chance would hardly have found it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from tui_eval.frames.diagnosis.changes import choose, true
from tui_eval.frames.diagnosis.finding import name_of
from tui_eval.frames.numbers import shortest_text
from tui_eval.frames.typed_columns import ReadColumn

_NEARLY = 0.05
"""Rows told apart wrongly, as a share of those that are looked for."""
_SELDOM = 1.5
"""How unlikely chance must be (decimal logarithm)."""
_MOST_COLUMNS = 40
_MANY = 20_000
_MOST_VALUES = 3
_TEXT = 40
_BLANK = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Condition:
    """`where` is a condition as SQL has it; of the `total` rows looked for it holds in `found`, of the others
    in `wrong`; `columns` are those that it names."""

    where: str
    columns: tuple[str, ...]
    found: int
    wrong: int
    total: int
    mask: pl.Series

    @property
    def exact(self) -> bool:
        """Whether it holds in these rows and no others."""
        return self.found == self.total and not self.wrong


@dataclass(frozen=True, slots=True)
class _Test:
    where: str
    column: str
    mask: pl.Series
    found: int
    wrong: int
    tried: int
    rank: int


def separate(
    columns: Mapping[str, ReadColumn],
    rows: pl.Series,
    wanted: pl.Series,
    but: Iterable[str] = (),
    late: Iterable[str] = (),
) -> Condition | None:
    """What tells the rows of `wanted` (one boolean for each of `rows`, row numbers) from the others; None
    where nothing does, or where it may be chance. `but` are columns that are not looked at, `late`
    (a key) those that are named only where no other does as well."""
    total, every = int(wanted.sum()), len(wanted)
    if total < 2 or every - total < 2:
        return None
    last, left_out = set(late), set(but)
    names = [name for name, column in columns.items() if _comparable(column)][:_MOST_COLUMNS]
    names = [name for name in names if name not in left_out]
    names = [*(n for n in names if n not in last), *(n for n in names if n in last)]
    tried = 1
    if every > _MANY:
        names, tried = _on_a_sample(columns, rows, wanted, names)
    series = {name: _values(columns[name], rows) for name in names}
    tests = [
        replace(test, rank=test.rank + later)
        for name, values in series.items()
        for later in (_later(columns[name]) if name in last else 0,)
        for test in best_tests(name, values, _scale(columns[name]), wanted)
    ]
    found = _best(tests, total, every)
    if found is not None:
        return _condition([found], total)
    scales = {name: _scale(columns[name]) for name in names}
    return _two(series, scales, tests, wanted, total, every, max(tried, len(tests)))


def _later(key: ReadColumn) -> int:
    """By how much a column of the key comes after others: a day or a month before the figures that go by it, a running
    total among them."""
    return -1 if key.kind == "time" else 20


SAMPLE = 1_500
"""Rows of either kind that are looked at first, where there are many."""


def _on_a_sample(
    columns: Mapping[str, ReadColumn], rows: pl.Series, wanted: pl.Series, names: list[str]
) -> tuple[list[str], int]:
    """Of many rows some are looked at first: the columns of conditions that may hold in all of them, and how many
    tests there were. A condition that holds exactly in all rows does so in any of them."""
    total, every = int(wanted.sum()), len(wanted)
    parts = [_some(wanted.arg_true()), _some((~wanted).arg_true())]
    at = pl.concat(parts)
    shares = (total / len(parts[0]), (every - total) / len(parts[1]))
    weights = pl.concat(
        pl.repeat(share, len(part), dtype=pl.Float64, eager=True)
        for share, part in zip(shares, parts, strict=True)
    )
    some, sampled = wanted.gather(at), rows.gather(at)
    # twice what is allowed, and what the choice of rows may add
    most = 2 * _NEARLY * total + 4 * math.sqrt(_NEARLY * total * max(every - total, total) / SAMPLE)
    series = {name: _values(columns[name], sampled) for name in names}
    scales = {name: _scale(columns[name]) for name in names}
    tests = [test for name in names for test in best_tests(name, series[name], scales[name], some, weights)]
    likely = {test.column for test in tests if _errors(test, total) <= most}
    found = [name for name in names if name in likely]
    if found:
        return found, len(tests)
    first = [t for t in tests if t.found >= total - most and t.found + t.wrong < every]
    first.sort(key=lambda test: (test.wrong, test.rank))
    for test in first[:2]:
        inside = test.mask.arg_true()
        part, share = some.gather(inside), weights.gather(inside)
        for name in names:
            if name == test.column:
                continue
            values = series[name].gather(inside)
            seconds = best_tests(name, values, scales[name], part, share)
            if any(_errors(second, total) <= most for second in seconds):
                likely |= {test.column, name}
    return [name for name in names if name in likely], len(tests)


def _some(rows: pl.Series) -> pl.Series:
    """At most so many of the rows, from everywhere, by no rule that the rows may follow, too."""
    return rows if len(rows) <= SAMPLE else rows.sample(SAMPLE, seed=11).sort()


def _condition(tests: list[_Test], total: int) -> Condition:
    last = tests[-1]
    where = " and ".join(test.where for test in tests)
    return Condition(where, tuple(test.column for test in tests), last.found, last.wrong, total, last.mask)


def _errors(test: _Test, total: int) -> int:
    return total - test.found + test.wrong


def _best(tests: list[_Test], total: int, every: int, tried: int = 1) -> _Test | None:
    near = [test for test in tests if _errors(test, total) <= _NEARLY * total and test.found]
    for test in sorted(near, key=lambda test: (_errors(test, total), test.rank)):
        errors = _errors(test, total)
        chance = choose(every, total) - math.log10(test.tried * tried) - choose(every, errors) - math.log10(2)
        if chance >= _SELDOM:
            return test
    return None


def _two(
    series: Mapping[str, pl.Series],
    scales: Mapping[str, int],
    tests: list[_Test],
    wanted: pl.Series,
    total: int,
    every: int,
    tried: int,
) -> Condition | None:
    """Two tests, both of which hold: the first in nearly all rows looked for, the second among its rows."""
    first = [t for t in tests if t.found >= (1 - _NEARLY) * total and t.found + t.wrong < every and t.wrong]
    first.sort(key=lambda test: (test.wrong, test.rank))
    best: tuple[tuple[int, int], Condition] | None = None
    for test in first[: 4 if every <= _MANY else 2]:
        inside = test.mask.arg_true()
        part = wanted.gather(inside)
        for name, values in series.items():
            if name == test.column:
                continue
            for second in best_tests(name, values.gather(inside), scales[name], part):
                if _best([second], total, every, tried=max(tried, 1) * test.tried) is None:
                    continue
                mask = pl.DataFrame({"at": inside.filter(second.mask)}).to_series()
                whole = pl.repeat(False, every, eager=True).scatter(mask, True)
                found = _Test(second.where, name, whole, second.found, second.wrong, 1, second.rank)
                order = (_errors(found, total), test.rank + second.rank)
                if best is None or order < best[0]:
                    best = (order, _condition([test, found], total))
    return best[1] if best is not None else None


def _comparable(column: ReadColumn) -> bool:
    return column.series is not None and column.kind in ("bool", "exact", "float", "text", "time")


def _scale(column: ReadColumn) -> int:
    return column.scale if column.kind == "exact" else 0


def _values(column: ReadColumn, rows: pl.Series) -> pl.Series:
    assert column.series is not None
    return column.series.gather(rows)


def best_tests(
    name: str, values: pl.Series, scale: int, wanted: pl.Series, weights: pl.Series | None = None
) -> Iterator[_Test]:
    """The best tests of one column: one of its values or a few, all but one, a bound, a range.

    Args:
        weights: For how many rows each of these stands, where they are a sample: a test counts there that a few
            rows of another value speak against.
    """
    table = pl.DataFrame({"v": values, "w": wanted})
    if weights is None:
        n, k = pl.len().cast(pl.Int64), pl.col("w").sum().cast(pl.Int64)
    else:
        table = table.with_columns(weights.alias("n"), (weights * wanted).alias("k"))
        n, k = pl.col("n").sum(), pl.col("k").sum()
    groups = table.group_by("v").agg(n.alias("n"), k.alias("k"))
    if len(groups) < 2:
        return
    yield from _equal(name, values, scale, groups, sampled=weights is not None)
    if values.dtype.is_numeric() or _is_time(values):
        yield from _bounds(name, values, scale, groups)


def _equal(
    name: str, values: pl.Series, scale: int, groups: pl.DataFrame, *, sampled: bool
) -> Iterator[_Test]:
    numeric = values.dtype.is_numeric() or _is_time(values)
    repeated = max(int((groups.get_column("n") >= 2).sum()), 1)
    total, rows = int(groups.get_column("k").sum()), int(groups.get_column("n").sum())
    mostly = groups.filter(pl.col("k") * 2 > pl.col("n")).sort("k", descending=True)
    others = groups.filter(pl.col("k") * 2 <= pl.col("n"))
    chosen = mostly.head(_MOST_VALUES)
    if len(chosen) and (total >= 2 * len(chosen)) and (sampled or len(mostly) <= _MOST_VALUES + 2):
        kept = chosen.get_column("v")
        found, every = int(chosen.get_column("k").sum()), int(chosen.get_column("n").sum())
        where = _is(name, kept, scale)
        mask = _in(values, kept)
        tried = math.comb(repeated, min(len(chosen), repeated))
        yield _Test(where, name, mask, found, every - found, tried, _rank(numeric, len(chosen)))
    if (len(others) == 1 or (sampled and len(others))) and len(mostly) > 1:
        one = others.sort("n", descending=True).head(1)
        value = one.get_column("v")
        found, every = total - int(one.get_column("k")[0]), rows - int(one.get_column("n")[0])
        yield _Test(
            _is_not(name, value, scale),
            name,
            ~_in(values, value),
            found,
            every - found,
            repeated,
            5 if numeric else 2,
        )
    # several values hold all rows looked for, among others: the beginning of two tests
    some = groups.filter(pl.col("k") > 0).sort("k", descending=True)
    if len(some) <= min(2, total // 2, len(groups) - 1) and not some.equals(chosen):
        kept = some.get_column("v")
        found, every = int(some.get_column("k").sum()), int(some.get_column("n").sum())
        yield _Test(
            _is(name, kept, scale),
            name,
            _in(values, kept),
            found,
            every - found,
            repeated,
            _rank(numeric, len(some)),
        )


def _rank(ordered: bool, values: int) -> int:
    """The fewer values the better; of numbers and times a bound (6) goes before two of them."""
    return 3 + 2 * values if ordered else values


def _bounds(name: str, values: pl.Series, scale: int, groups: pl.DataFrame) -> Iterator[_Test]:
    total = int(groups.get_column("k").sum())
    ordered = groups.filter(pl.col("v").is_not_null()).sort("v")
    if len(ordered) < 2:
        return
    n, k = ordered.get_column("n"), ordered.get_column("k")
    found, wrong = k.cum_sum(), (n - k).cum_sum()
    all_found, all_wrong = int(found[-1]), int(wrong[-1])
    low = (total - found) + wrong  # v <= bound
    high = (total - (all_found - found + k)) + (all_wrong - wrong + (n - k))  # v >= bound
    tried = max(len(ordered), 1) * 2
    at = low.arg_min()
    if at is not None and at < len(ordered) - 1:
        bound = ordered.get_column("v")[at]
        mask = true_of(values, pl.col("v") <= pl.lit(bound))
        yield _Test(
            f"{name_of(name)} <= {_shown(bound, scale)}", name, mask, int(found[at]), int(wrong[at]), tried, 6
        )
    at = high.arg_min()
    if at is not None and at > 0:
        bound = ordered.get_column("v")[at]
        mask = true_of(values, pl.col("v") >= pl.lit(bound))
        seen = all_found - int(found[at]) + int(k[at])
        others = all_wrong - int(wrong[at]) + int(n[at]) - int(k[at])
        yield _Test(f"{name_of(name)} >= {_shown(bound, scale)}", name, mask, seen, others, tried, 6)
    inside = ordered.filter(pl.col("k") > 0)
    if len(inside) < 2:
        return
    first, last = inside.get_column("v")[0], inside.get_column("v")[-1]
    if first == ordered.get_column("v")[0] or last == ordered.get_column("v")[-1]:
        return
    between = pl.col("v").is_between(pl.lit(first), pl.lit(last))
    within = int(ordered.filter(between).get_column("n").sum())
    mask = true_of(values, between)
    where = f"{name_of(name)} between {_shown(first, scale)} and {_shown(last, scale)}"
    yield _Test(where, name, mask, all_found, within - all_found, tried * len(ordered), 8)


def true_of(values: pl.Series, condition: pl.Expr) -> pl.Series:
    """Where a condition on `v` holds."""
    return pl.DataFrame({"v": values}).select(true(condition).alias("found")).to_series()


def _in(values: pl.Series, kept: pl.Series) -> pl.Series:
    mask = true_of(values, pl.col("v").is_in(kept.drop_nulls().implode()))
    return mask | values.is_null() if kept.null_count() else mask


def _is_time(values: pl.Series) -> bool:
    if values.dtype != pl.String:
        return False
    first = values.drop_nulls().head(100)
    return bool(len(first)) and bool(first.str.contains(r"^\d{4}-\d\d-\d\d(?:T|$)").all())


def _shown(value: object, scale: int = 0) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return shortest_text(value) if not scale else f"{value / 10**scale:.{scale}f}".rstrip("0").rstrip(".")
    if isinstance(value, float):
        return shortest_text(value) if math.isfinite(value) else str(value)
    text = str(value)
    if len(text) >= 11 and text[10] == "T" and text[:4].isdigit():
        text = text.removesuffix("T00:00:00").replace("T", " ")
    text = _BLANK.sub(" ", text)  # as many as there are: without those at its end it would be another text
    text = text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
    return "'" + text.replace("'", "''") + "'"


def _is(name: str, values: pl.Series, scale: int) -> str:
    column = name_of(name)
    given = [_shown(value, scale) for value in values.drop_nulls().sort().to_list()]
    parts = []
    if len(given) == 1:
        parts.append(f"{column} = {given[0]}")
    elif given:
        parts.append(f"{column} in ({', '.join(given)})")
    if values.null_count():
        parts.append(f"{column} is null")
    return parts[0] if len(parts) == 1 else f"({' or '.join(parts)})"


def _is_not(name: str, values: pl.Series, scale: int) -> str:
    if values.null_count():
        return f"{name_of(name)} is not null"
    return f"{name_of(name)} <> {_shown(values[0], scale)}"
