"""Rows that are missing, too many or in another order: what these have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from tui_eval.frames.alignment import loosened, names_a_row
from tui_eval.frames.diagnosis.changes import ValueChange, choose, number, true
from tui_eval.frames.diagnosis.conditions import Condition, separate
from tui_eval.frames.diagnosis.finding import Finding
from tui_eval.frames.diagnosis.granularity import are_a_level, floats, totals
from tui_eval.frames.diagnosis.text_changes import text_changes
from tui_eval.frames.diagnosis.time_changes import moments, time_changes, weekdays
from tui_eval.frames.difference import Difference
from tui_eval.frames.matching import row_hashes
from tui_eval.frames.pairs import pair_same
from tui_eval.frames.typed_columns import ReadColumn, holds_days
from tui_eval.frames.value_texts import plain_moment

_ROUND = {
    *range(1, 11),
    12,
    15,
    20,
    24,
    25,
    30,
    40,
    50,
    60,
    75,
    100,
    150,
    200,
    250,
    300,
    500,
    1000,
    2000,
    5000,
    10_000,
    50_000,
    100_000,
}

_USUAL = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000)
_NO_CHANCE = 2.0
"""In how many orders values must be able to stand that are called sorted (decimal logarithm)."""
_SELDOM = 1.5
"""How unlikely it must be that the rows which are there are the first ones by chance (decimal logarithm)."""


def row_findings(difference: Difference) -> Iterator[tuple[Finding, float]]:
    """What is found about rows that one side lacks, each with its weight among others of as many rows."""
    e_rows, a_rows = difference.aligned()
    missing = e_rows.filter(a_rows.is_null()).cast(pl.UInt32)
    extra = a_rows.filter(e_rows.is_null()).cast(pl.UInt32)
    if len(missing) == difference.lengths[0] and len(extra) == difference.lengths[1]:
        yield from _other_end(difference)
    if summed := totals(difference, missing, extra):
        yield from ((found, 1.2) for found in summed)
        return
    repeats = difference.repeats if difference.key_unique_in_expected else pl.Series([], dtype=pl.UInt32)
    if len(repeats):
        rows = a_rows.gather(repeats).cast(pl.UInt32)
        found = _fan_out(difference, rows, len(extra))
        # a join that fans out gives more rows; where there are no more, a value was changed into another one's
        if found.parameters["alike"] or difference.lengths[1] > difference.lengths[0]:
            yield found, 1.0
        extra = extra.filter(~extra.is_in(rows.implode()))
    elif not difference.key and not difference.missing_columns:  # what is left of rows repeats by itself
        again = list(_repeated(difference, missing, extra))
        yield from again
        if any(found.code == "distinct" and found.explained == found.total for found, _ in again):
            return  # that these are the last ones says no more of them
    yield from _respelled_keys(difference, missing, extra)
    # Where no row is right, or lacks a column, and none has a key, which rows stand beside each other is a guess.
    cut = bool(difference.missing_columns)
    guessed = not difference.key and (cut or not _right_ones(difference))
    limited = None if guessed else next(_limit(difference, missing, extra), None)
    every_extra = len(extra) + len(repeats)
    filters: list[tuple[Finding, float]] = []
    if not guessed or not (cut or (len(missing) and len(extra))):
        filters += _filters(difference, missing, extra, every_extra=every_extra)
    if (
        limited is not None
        and limited[1] >= 1.0
        and not any(_before_limit(difference, f) for f, _ in filters)
    ):
        yield limited
        return
    yield from filters
    if limited is not None and not filters:
        yield limited
    elif not filters and len(missing) and not len(extra):
        yield from _outermost_day(difference, missing)


def may_be_others(difference: Difference, found: Finding) -> bool:
    """Whether rows may only seem to be missing or too many, where no row that both sides have is right: the key counts
    from 0 or 1, and the answer's 1, 2, 3 may be quarters where months are expected."""
    if found.code not in ("limit", "no_limit", "too_narrow", "too_wide"):
        return False
    pairs = [difference.pairs[name] for name in found.columns if name in difference.key]
    return any(_counts_up(one.expected) and _counts_up(one.actual) for one in pairs)


def _counts_up(column: ReadColumn) -> bool:
    if not column.integral or column.series is None:
        return False
    values = column.series.drop_nulls()
    return number(values.min()) in (0, 1) and number(values.max()) - number(values.min()) < values.n_unique()


def _right_ones(difference: Difference) -> int:
    """How many rows are right in all of their columns."""
    return len(difference) - len(difference.different_rows)


def _respelled_keys(
    difference: Difference, missing: pl.Series, extra: pl.Series
) -> Iterator[tuple[Finding, float]]:
    """Missing rows that are among the extra ones, but for how a text of their key is written."""
    key = [difference.pairs[name] for name in difference.key]
    texts = [one for one in key if one.e_key.dtype == pl.String and not one.tolerant]
    if not texts or difference.key_loose or not len(missing) or not len(extra):
        return
    hashes = row_hashes([loosened(one) if one in texts else one for one in key], values=True)
    sides = [
        pl.DataFrame({"h": side.gather(rows), name: rows}).unique("h", keep="none")
        for name, side, rows in zip("ea", hashes, (missing, extra), strict=True)
    ]
    both = sides[0].join(sides[1], on="h").sort("e")
    count = len(both)
    if not count:
        return
    total = max(len(missing), len(extra))
    for one in texts:
        e, a = one.e_key.gather(both.get_column("e")), one.a_key.gather(both.get_column("a"))
        change = next((c for c in text_changes(e, a) if c.count == count), None)
        if change is not None:
            yield (
                Finding(change.code, (one.name,), count, total, change.parameters),
                2.4,
            )  # a row of either side
            return


_MOVED = ("days", "months", "time_zone", "time_shift", "offset")
_FEWEST = 3


def moved_key(difference: Difference) -> Finding | None:
    """A time, or a whole number, among what rows are told apart by that is another one throughout, by as
    much, while all else is right: the rows of one side are not those that the other side has at the same
    time."""
    rows = difference.lengths[0]
    right = _right_ones(difference)
    if rows != difference.lengths[1] or rows < _FEWEST or 2 * right >= rows or difference.key_repeats:
        return None
    for name in difference.key:
        one = difference.pairs[name]
        numbers = one.expected.integral and one.actual.integral
        sides = (
            [one.expected.series, one.actual.series]
            if numbers
            else [moments(texts) for texts in (one.e_key, one.a_key)]
        )
        if sides[0] is None or sides[1] is None or any(side is None or side.null_count() for side in sides):
            continue
        others = [difference.pairs[other] for other in difference.key if other != name]
        if any(other.tolerant for other in others):
            continue
        keys = [[other.e_key for other in others], [other.a_key for other in others]]
        e, a = (
            _sorted_by([*before, time]) for before, time in zip(keys, sides, strict=True) if time is not None
        )
        if numbers:
            changed = _by_as_much(sides[0].gather(e), sides[1].gather(a))
        else:
            changed = time_changes(one.e_key.gather(e), one.a_key.gather(a))
        found = next((c for c in changed if c.code in _MOVED and c.count == rows), None)
        rest = [other for other in difference.pairs.values() if other is not one]
        if found is not None and all(bool(pair_same(other, e, a).all()) for other in rest):
            return Finding(found.code, (name,), rows, rows, found.parameters)
    return None


def other_weeks(difference: Difference) -> Finding | None:
    """Rows by week, where the answer's weeks begin on another day: most rows are on one side only."""
    e_rows, a_rows = difference.aligned()
    alone = e_rows.null_count() + a_rows.null_count()
    if 2 * alone < len(e_rows):
        return None
    for name, one in difference.pairs.items():
        e, a = (
            (moments(texts) for texts in (one.e_key, one.a_key)) if holds_days(one.expected) else (None, None)
        )
        days = weekdays(e, a) if e is not None and a is not None else None
        if days is not None:
            return Finding("weekday", (name,), len(e_rows), len(e_rows), days)
    return None


def _by_as_much(e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    gaps = (a.cast(pl.Int128) - e.cast(pl.Int128)).unique()
    if len(gaps) == 1 and (gap := int(gaps[0])):
        yield ValueChange("offset", pl.repeat(True, len(e), eager=True), {"offset": gap})


def _sorted_by(columns: list[pl.Series]) -> pl.Series:
    """The numbers of the rows in the order of their values."""
    table = pl.DataFrame({f"k{at}": column for at, column in enumerate(columns)})
    return table.select(pl.arg_sort_by(table.columns)).to_series()


_DAYS = 5
"""Different days of which one that is missing is the last or the first one by chance seldom enough."""


def _outermost_day(difference: Difference, missing: pl.Series) -> Iterator[tuple[Finding, float]]:
    """Where the missing rows are those of the last day, or of the first one, and no others."""
    for name, one in difference.pairs.items():
        values = one.expected.series
        if values is None or not holds_days(one.expected) or values.drop_nulls().n_unique() < _DAYS:
            continue
        for last, day in ((True, values.max()), (False, values.min())):
            if (values == day).arg_true().equals(missing.sort()):
                shown = plain_moment(str(day), True)
                count = len(missing)
                yield Finding("outermost_day", (name,), count, count, {"last": last, "day": shown}), 0.8
                return


def _before_limit(difference: Difference, found: Finding) -> bool:
    """Whether it explains rows better than a LIMIT: it holds exactly, and not because rows are sorted by it, for then
    the last ones are separated by a condition too."""
    if not found.parameters["exact"]:
        return False
    if found.code == "missing_groups":
        return True
    if found.code == "too_narrow":
        columns = {name: one.expected for name, one in difference.pairs.items()} | difference.lacking
    else:
        columns = {name: one.actual for name, one in difference.pairs.items()} | difference.surplus
    return not any(_in_order(columns[name]) for name in found.columns if name in columns)


def _in_order(column: ReadColumn) -> bool:
    if column.series is None:
        return True
    values = column.series.drop_nulls()
    return values.is_sorted() or values.is_sorted(descending=True)


def _other_end(difference: Difference) -> Iterator[tuple[Finding, float]]:
    """Where no row is right: the expected rows are sorted by a column, the answer's the other way, and begin at the
    other end of it."""
    expected, actual = difference.lengths
    if expected != actual or expected < 3:
        return
    found: list[tuple[str, bool, float]] = []
    tried = 0
    for name, one in difference.pairs.items():
        if one.expected.kind not in ("exact", "float") or one.actual.kind not in ("exact", "float"):
            continue
        e, a = floats(one.expected), floats(one.actual)
        if e.null_count() or a.null_count() or e.n_unique() < 2:
            continue
        down = e.is_sorted(descending=True)
        if not down and not e.is_sorted():
            continue
        tried += 1
        beyond = number(a.max()) <= number(e.min()) if down else number(a.min()) >= number(e.max())
        if a.is_sorted(descending=not down) and beyond:
            found.append((name, down, _orders(a)))
    for name, down, orders in found:
        if orders >= _NO_CHANCE + math.log10(tried):
            yield Finding("other_end", (name,), actual, actual, {"descending": down}), 1.0
            return


def _orders(values: pl.Series) -> float:
    """In how many orders these values may stand (decimal logarithm)."""
    equal = values.value_counts().get_column("count").to_list()
    return (math.lgamma(len(values) + 1) - sum(math.lgamma(count + 1) for count in equal)) / math.log(10)


def _fan_out(difference: Difference, rows: pl.Series, extra: int) -> Finding:
    """Rows that repeat a key: the same rows again, or ones that differ otherwise."""
    hashes = row_hashes(list(difference.pairs.values()), values=True)[1]
    counts = hashes.is_duplicated().gather(rows)
    alike = bool(counts.all()) and not difference.surplus
    told = {"alike": alike, "grouped": _told_by(difference), "strange": _named_otherwise(difference)}
    return Finding("fan_out", difference.key, len(rows), extra, told)


def _named_otherwise(difference: Difference) -> bool:
    """Whether rows of one key name something else throughout: these are others, and no join repeated them."""
    e_rows, a_rows = difference.aligned()
    both = e_rows.is_not_null() & a_rows.is_not_null()
    same = difference.same_cells().filter(both)
    return not any(names_a_row(name) for name in difference.key) and any(
        one.expected.kind == "text" and name not in difference.key and not same.get_column(name).any()
        for name, one in difference.pairs.items()
    )


def _told_by(difference: Difference) -> tuple[str, ...]:
    """The column beyond the expected ones that tells rows with the same key apart, as another GROUP BY has it."""
    key = [difference.pairs[name].a_key.alias(f"k{at}") for at, name in enumerate(difference.key)]
    for name, column in difference.surplus.items():
        if column.series is not None and (column.kind in ("text", "time", "bool") or column.integral):
            told = pl.DataFrame([*key, column.series.alias("s")])
            if told.n_unique() == len(told):
                return (name,)
    return ()


def _repeated(
    difference: Difference, missing: pl.Series, extra: pl.Series
) -> Iterator[tuple[Finding, float]]:
    """Without a key: extra rows that are expected once, missing ones that the answer has once."""
    pairs = list(difference.pairs.values())
    if not pairs or bool(len(missing)) == bool(len(extra)):
        return
    e_hash, a_hash = row_hashes(pairs, values=True)
    names = tuple(difference.shared_columns)
    if len(extra):
        again = int(a_hash.gather(extra).is_in(e_hash.implode()).sum())
        if again and again >= 0.9 * len(extra):
            yield Finding("duplicates", names, again, len(extra)), 0.95
    else:
        again = int(e_hash.gather(missing).is_in(a_hash.implode()).sum())
        if again and again >= 0.9 * len(missing) and a_hash.n_unique() == len(a_hash):
            yield Finding("distinct", names, again, len(missing)), 0.95


def _limit(difference: Difference, missing: pl.Series, extra: pl.Series) -> Iterator[tuple[Finding, float]]:
    """Weight 1 where hardly anything else explains it, else 0.6. A query that is known and limits no rows has none that
    is missing or too small."""
    expected, actual = difference.lengths
    limits_expected, limits_own = difference.limited
    said: dict[str, bool] = {} if limits_own is not False else {"limit": False}
    unsure = bool(said)
    if difference.key and not _right_ones(difference):
        said["named"] = True  # what they are called is all that is right of them
    names = tuple(difference.key)
    if len(missing) and not len(extra) and actual == expected - len(missing) and actual:
        first = bool((missing >= actual).all())
        sure = actual in _ROUND and (actual >= 5 or expected >= 4 * actual)
        if first and (sure or len(missing) >= 3) and choose(expected, actual) >= _SELDOM:
            yield (
                Finding(
                    "limit",
                    names,
                    len(missing),
                    len(missing),
                    {"rows": actual, "of": expected, "first": True} | said,
                ),
                1.0 if sure and not unsure else 0.6,
            )
        elif actual in _USUAL and (actual >= 50 or expected >= 2 * actual):
            yield (
                Finding(
                    "limit",
                    names,
                    len(missing),
                    len(missing),
                    {"rows": actual, "of": expected, "first": False} | said,
                ),
                0.6,
            )
    elif (
        limits_expected is not False
        and len(extra)
        and not len(missing)
        and expected in _ROUND
        and bool((extra >= expected).all())
    ):
        if 4 * len(extra) < expected:
            return
        weight = 1.0 if expected >= 3 else 0.6
        told = {"rows": expected} | {one: said[one] for one in said if one == "named"}
        yield Finding("no_limit", names, len(extra), len(extra), told), weight


def _filters(
    difference: Difference, missing: pl.Series, extra: pl.Series, every_extra: int
) -> Iterator[tuple[Finding, float]]:
    pairs = difference.pairs
    narrow: Condition | None = None
    if len(missing) and len(missing) < difference.lengths[0]:
        columns = {name: one.expected for name, one in pairs.items()} | difference.lacking
        narrow = _separated(columns, difference, 0, missing)
        groups = _without_rows(difference, missing, narrow)
        if groups is not None:
            yield groups, 1.0
            narrow = None
        narrow = _no_size(difference, narrow, "e", missing, extra)
    if len(extra) and len(extra) == every_extra and len(extra) < difference.lengths[1]:
        columns = {name: one.actual for name, one in pairs.items()} | difference.surplus
        wide = _no_size(difference, _separated(columns, difference, 1, extra), "a", extra, missing)
        if narrow is not None and wide is not None and narrow.where == wide.where:
            return  # the rows are there on both sides, where they are other ones
        if wide is not None and not _beyond_the_first(difference, wide, "expected"):
            yield _filter("too_wide", wide), 0.95 if wide.exact else 0.8
    if narrow is not None and not (len(extra) and _beyond_the_first(difference, narrow, "actual")):
        yield _filter("too_narrow", narrow), 0.95 if narrow.exact else 0.8


def _no_size(
    difference: Difference, found: Condition | None, side: str, rows: pl.Series, others: pl.Series
) -> Condition | None:
    """A condition of these rows of a side, unless it says how large figures are where that tells no filter: the rows
    are totals, or the other side has as many of its own (`others`), as of the first ones of each group by another
    column."""
    if found is None or not any(_is_figure(difference, name) for name in found.columns):
        return found
    lengths = difference.lengths if side == "e" else difference.lengths[::-1]
    if lengths[0] == lengths[1] and not _pushed_out(rows, others, lengths[0]):
        return None
    return None if are_a_level(difference, side, rows) else found


def _pushed_out(rows: pl.Series, others: pl.Series, length: int) -> bool:
    """Whether a LIMIT cut off the `others`, the last of their side, for these rows, which stand before rows that both
    sides have: a filter let them in, or left them out."""
    return bool((others >= length - len(others)).all() and (rows < length - len(rows)).any())


def _is_figure(difference: Difference, name: str) -> bool:
    one = difference.pairs.get(name)
    return one is not None and name not in difference.key and one.expected.kind in ("exact", "float")


def _beyond_the_first(difference: Difference, found: Condition, first: str) -> bool:
    """Whether one side may be the first rows by a column, of as many on both sides: rows that the other side has
    besides are beyond these whatever they are, and no filter tells them apart."""
    expected, actual = difference.lengths
    pairs = [difference.pairs[name] for name in found.columns if name in difference.pairs]
    if expected != actual or difference.limited[0] is False:
        return False
    return any(_in_order(one.expected if first == "expected" else one.actual) for one in pairs)


def _separated(
    columns: dict[str, ReadColumn], difference: Difference, side: int, rows: pl.Series
) -> Condition | None:
    every = pl.int_range(difference.lengths[side], eager=True, dtype=pl.UInt32)
    return separate(columns, every, every.is_in(rows.implode()), late=difference.key)


def _filter(code: str, found: Condition) -> Finding:
    return Finding(
        code,
        found.columns,
        found.found,
        found.total,
        {"where": found.where, "wrong": found.wrong, "exact": found.exact},
    )


def _without_rows(difference: Difference, missing: pl.Series, found: Condition | None) -> Finding | None:
    """Whether all missing rows are groups of nothing: every measure in them is 0 or null, and seldom elsewhere."""
    if found is not None and not found.exact:
        return None
    measures: list[str] = []
    words: list[str] = []
    empty = 0
    for name, one in difference.pairs.items():
        column = one.expected
        if name in difference.key or column.kind not in ("exact", "float") or column.series is None:
            continue
        frame = pl.DataFrame({"v": column.series})
        there = frame.select(
            (pl.col("v").is_null() | (pl.col("v") == 0)).fill_null(True).alias("n")
        ).to_series()
        if not there.gather(missing).all():
            continue
        besides = int(there.sum()) - len(missing)
        if 2 * besides > min(
            len(missing), len(there) - len(missing)
        ):  # it is nothing in many rows that are there
            continue
        empty = empty or int(there.sum())
        measures.append(name)
        none = frame.select(true(pl.col("v").is_null()).alias("n")).to_series().gather(missing)
        words.append("null" if none.all() else "0" if not none.any() else "0 or null")
    if not measures or len(missing) < 2 or len(missing) == difference.lengths[0]:
        return None
    if found is not None and not set(found.columns) <= set(measures):
        first = difference.pairs.get(found.columns[0])
        if first is None or first.expected.kind in ("text", "bool"):
            return None
    where = f"{measures[0]} {words[0]}"
    return Finding(
        "missing_groups",
        (measures[0],),
        len(missing),
        len(missing),
        {"where": where, "exact": empty == len(missing)},
    )
