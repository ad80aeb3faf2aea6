"""Which rows of two frames belong together, for people: by the key given, by a key found, else by content."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import combinations

import polars as pl

from tui_eval.frames.matching import row_hashes
from tui_eval.frames.pairs import ColumnPair, cells_of, pair_same
from tui_eval.guard.text import LOOK_ALIKES

_MANY_ROWS = 200_000
_CLEARLY = 0.25
"""By what share of the expected rows more than a smaller key a larger one must find its rows."""
_ENOUGH = 0.5
"""Of the expected rows, what a key must find; one that finds fewer is looked for without regard to how texts
are written."""


@dataclass(frozen=True, slots=True)
class AlignmentKey:
    """What aligns rows: the pairs of its columns (none: content does), `loose` where their texts are compared
    without case, blanks, accents and zeros that do not count."""

    pairs: tuple[ColumnPair, ...] = ()
    loose: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(one.name for one in self.pairs)

    def repeats(self) -> int:
        """How many rows of the answer have a key that stands above them already."""
        if not self.pairs:
            return 0
        hashes = row_hashes(list(self.pairs), values=True)[1]
        return len(hashes) - hashes.n_unique()


def find_key(pairs: list[ColumnPair], key: tuple[str, ...] | None) -> AlignmentKey:
    """The columns that align rows: those asked for; else the smallest set that is unique in *expected*, of
    those the one whose values the answer has most of, however often it repeats them; else none."""
    by_name = {one.name: one for one in pairs}
    if key and all(name in by_name for name in key):
        return AlignmentKey(tuple(by_name[name] for name in key))
    usable = [one for one in pairs if not one.tolerant and one.expected.kind != "null"]
    if not usable or not len(usable[0].e_key) or not len(usable[0].a_key):
        return AlignmentKey()
    share, found = _best(usable)
    if share < _ENOUGH:
        texts = [loosened(one) if one.e_key.dtype == pl.String else one for one in usable]
        loose_share, loose = _best(texts)
        if loose_share >= _ENOUGH and loose_share > share:
            return AlignmentKey(loose, loose=True)
    return AlignmentKey(found)


def _best(usable: list[ColumnPair]) -> tuple[float, tuple[ColumnPair, ...]]:
    """The share of expected rows that are found, and the key that finds them."""
    length = len(usable[0].e_key)
    many = max(length, len(usable[0].a_key)) > _MANY_ROWS
    best: tuple[float, tuple[ColumnPair, ...]] = (0.0, ())
    for one in usable[: 10 if many else 40]:
        if _unique(one.e_key):
            share = int(one.e_key.is_in(one.a_key.implode(), nulls_equal=True).sum() or 0) / length
            if share > best[0] or (best[1] and share == best[0] and _tells_more(one, best[1][0])):
                best = (share, (one,))
    for size in (2, 3):
        if best[0] + _CLEARLY > 1:
            break
        least = best[0] + _CLEARLY if best[1] else 0.0
        for chosen in combinations(usable[: 4 if many else 8], size):
            e_hash, a_hash = row_hashes(list(chosen), values=True)
            if _unique(e_hash):
                share = int(e_hash.is_in(a_hash.implode()).sum() or 0) / length
                if share > best[0] and share >= least:
                    best = (share, chosen)
    return _better(usable, best, many)


_ID = re.compile(r"(?:^|_|\b)(?:ids?|keys?|uuid|guid|code|sku|nr|no)(?:$|_|\b)|id$|Id\b|ID\b")
"""Names of numbers that tell rows apart."""


def _better(
    usable: list[ColumnPair], best: tuple[float, tuple[ColumnPair, ...]], many: bool
) -> tuple[float, tuple[ColumnPair, ...]]:
    """Columns that name rows (texts, times, ids), in place of a count or an amount that is unique in expected by
    chance: where the answer has it twice, a row too many is not called one that a join repeats."""
    if len(best[1]) != 1 or not _measures(best[1][0]):
        return best
    measure = best[1][0]
    if not measure.expected.scale and _unique(measure.a_key):
        return best
    names = [one for one in usable[: 4 if many else 8] if one is not measure and not one.expected.scale]
    for size in (1, 2, 3):
        for chosen in combinations(names, size):
            if all(_measures(one) for one in chosen):
                continue
            e_hash, a_hash = row_hashes(list(chosen), values=True)
            if _unique(e_hash) and _unique(a_hash):
                share = int(e_hash.is_in(a_hash.implode()).sum() or 0) / len(e_hash)
                if share >= best[0]:
                    return share, chosen
    return best


def _tells_more(one: ColumnPair, other: ColumnPair) -> bool:
    """Whether a column names each row of the answer, too, where one as good in the expected rows repeats: of the two
    best of each department no row is the other one again. An id that repeats is a row's all the same."""
    if one.expected.scale or _measures(one) or names_a_row(other.name):
        return False
    return not _unique(other.a_key) and _unique(one.a_key)


def names_a_row(name: str) -> bool:
    """Whether a column is called an id, a key, a number of something."""
    return _ID.search(name) is not None


def _measures(one: ColumnPair) -> bool:
    """Whether a column may be a count or an amount."""
    return one.expected.kind == "exact" and not (one.expected.integral and _ID.search(one.name))


def loosened(one: ColumnPair) -> ColumnPair:
    """A pair of texts that are the same where they differ only in case, blanks, accents, or zeros before and
    after a number."""
    return replace(one, e_key=loose_texts(one.e_key), a_key=loose_texts(one.a_key))


def loose_texts(texts: pl.Series) -> pl.Series:
    """Texts without what people overlook: case, blanks, accents, zeros that do not change a number, letters of another
    alphabet that look alike."""
    latin = pl.col("t").str.replace_many(list(LOOK_ALIKES), list(LOOK_ALIKES.values()))
    text = latin.str.normalize("NFKD").str.replace_all(r"\p{M}", "").str.to_lowercase()
    text = text.str.replace_all(r"[\s\u{200b}]+", "")
    text = text.str.replace(r"^(-?)0+(\d)", "${1}${2}").str.replace(r"^(-?\d+)\.0+$", "${1}")
    text = text.str.replace(r"^(-?\d+\.\d*[1-9])0+$", "${1}")
    return pl.DataFrame({"t": texts}).select(text).to_series()


def _unique(series: pl.Series) -> bool:
    """Whether no two values are the same; nothing may be one of them, as the group of rows that have none."""
    return series.n_unique() == len(series)


def align_rows(
    pairs: list[ColumnPair], key: AlignmentKey, lengths: tuple[int, int]
) -> tuple[pl.Series, pl.Series]:
    """Row numbers of the expected and the actual side, in display order; null where a row has no
    partner. Expected rows come in their own order, below each the rows of the answer that repeat it (its key,
    where there is one), other extra rows in their place (`_in_place`)."""
    if not pairs:
        return _side_by_side(*lengths)
    keyed = list(key.pairs)
    if keyed:
        e_hash, a_hash = row_hashes(keyed, values=True)
        if e_hash.n_unique() == len(e_hash):
            if a_hash.n_unique() == len(a_hash):
                return _in_place(_rows(*_joined(e_hash, a_hash)))
            return _with_repeats(pairs, e_hash, a_hash)
    both = pl.DataFrame(dict(zip("ea", _joined(*row_hashes(pairs, values=True)), strict=True)))
    same = both.filter(pl.col("e").is_not_null() & pl.col("a").is_not_null())
    e_left = both.filter(pl.col("a").is_null()).get_column("e")
    a_left = both.filter(pl.col("e").is_null()).get_column("a")
    if keyed:  # of the rows that share a key, equal ones belong together first
        e_hash, a_hash = row_hashes(keyed, values=True)
        e_at, a_at = _joined(e_hash.gather(e_left), a_hash.gather(a_left))
        rest = pl.DataFrame({"e": e_left.gather(e_at), "a": a_left.gather(a_at)})
    else:
        as_many = lengths[0] == lengths[1]
        alike = _alike(pairs, e_left, a_left, 1 if as_many else (len(pairs) + 1) // 2)
        e_left = e_left.filter(~e_left.is_in(alike.get_column("e").implode()))
        a_left = a_left.filter(~a_left.is_in(alike.get_column("a").implode()))
        # where rows are missing, or others are named, one that has nothing in common with another stays apart from it
        paired = as_many and not _named_otherwise(pairs)
        rest = pl.concat([alike, _by_content(pairs, e_left, a_left) if paired else _apart(e_left, a_left)])
    table = pl.concat([same, rest])
    return _in_place(_rows(*_repeated(pairs, table)))


def _named_otherwise(pairs: list[ColumnPair]) -> bool:
    """Whether both sides name each row of theirs in a column, which would be the key had they one name in common:
    the five customers with the least in place of the five with the most."""
    names = [one for one in pairs if not one.tolerant and one.expected.kind != "null"]
    return len(pairs) > 1 and any(
        len(one.e_key) > 1 and _unique(one.e_key) and _unique(one.a_key) for one in names
    )


_ROWS = {"e": pl.UInt32, "a": pl.UInt32, "at": pl.Int64}


def _rows(e: pl.Series, a: pl.Series, at: pl.Series | None = None) -> pl.DataFrame:
    """Aligned rows with the number of the expected row at which each stands; null: it is not known."""
    return pl.DataFrame({"e": e, "a": a, "at": e if at is None else at}, schema_overrides=_ROWS)


def _repeated(pairs: list[ColumnPair], table: pl.DataFrame) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Rows aligned by content; extra ones that are the same as an expected row stand at the last of these."""
    extra = table.filter(pl.col("e").is_null()).get_column("a")
    if not len(extra):
        return table.get_column("e"), table.get_column("a"), table.get_column("e")
    e_hash, a_hash = row_hashes(pairs, values=True)
    last = pl.DataFrame({"hash": e_hash}).with_row_index("at").group_by("hash").agg(pl.col("at").max())
    found = pl.DataFrame({"a": extra, "hash": a_hash.gather(extra)}).join(last, on="hash", how="left")
    table = table.join(found.select("a", "at"), on="a", how="left", nulls_equal=False)
    table = table.with_columns(pl.coalesce("e", "at").alias("at"))
    return table.get_column("e"), table.get_column("a"), table.get_column("at")


def _in_place(table: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """Rows in display order. A row of the answer that belongs to no expected row stands before the row that it
    precedes in the answer, where the answer keeps the expected order; else after all."""
    e, at = pl.col("e"), pl.col("at")
    rank = pl.when(e.is_not_null()).then(0).when(at.is_not_null()).then(1).otherwise(2)
    table = table.with_columns(rank.cast(pl.Int8).alias("rank"))
    both = table.filter(e.is_not_null() & pl.col("a").is_not_null()).sort("a")
    if table.get_column("at").null_count() and both.get_column("e").is_sorted():
        after = both.select("a", (e.cast(pl.Int64) - 1).alias("after"))
        lost = table.filter(at.is_null()).sort("a").join_asof(after, on="a", strategy="forward")
        lost = lost.with_columns(pl.col("after").alias("at")).drop("after")
        table = pl.concat([table.filter(at.is_not_null()), lost])
    table = table.sort("at", "rank", "a", nulls_last=True)
    return table.get_column("e"), table.get_column("a")


def _with_repeats(
    pairs: list[ColumnPair], e_hash: pl.Series, a_hash: pl.Series
) -> tuple[pl.Series, pl.Series]:
    """Rows by a key that is unique in expected: of those that repeat it, the one with the most cells in common
    is its row, the others stand below it."""
    expected = pl.DataFrame({"hash": e_hash}).with_row_index("e")
    actual = pl.DataFrame({"hash": a_hash}).with_row_index("a")
    table = actual.join(expected, on="hash", how="left")
    found = table.filter(pl.col("e").is_not_null())
    e, a = found.get_column("e"), found.get_column("a")
    score = pl.sum_horizontal(pair_same(one, e, a).cast(pl.UInt16) for one in pairs)
    found = found.with_columns(pl.select(score.alias("score")).to_series())
    found = found.sort("e", "score", "a", descending=[False, True, False])
    first = pl.int_range(pl.len()).over("e") == 0
    found = found.select(pl.when(first).then(pl.col("e")).alias("e"), "a", pl.col("e").alias("at"))
    missing = expected.join(actual, on="hash", how="anti")
    extra = table.filter(pl.col("e").is_null())
    parts = [(found, "at"), (missing, "e"), (extra, "e")]
    empty = pl.lit(None, dtype=pl.UInt32).alias("a")
    whole = pl.concat(
        (part if "a" in part.columns else part.with_columns(empty)).select(
            "e", "a", pl.col(at).cast(pl.Int64).alias("at")
        )
        for part, at in parts
    )
    return _in_place(whole)


def _apart(e_left: pl.Series, a_left: pl.Series) -> pl.DataFrame:
    e = e_left.extend_constant(None, len(a_left))
    a = pl.concat([pl.Series([None] * len(e_left), dtype=a_left.dtype), a_left])
    return pl.DataFrame({"e": e, "a": a})


def unique_rows(pairs: list[ColumnPair]) -> bool:
    """Whether no two rows of a side are the same in these columns."""
    return (
        all(hashes.n_unique() == len(hashes) for hashes in row_hashes(pairs, values=True)) if pairs else False
    )


_MOST_ALIKE = 4_000_000
"""Cells that are compared at most to find which rows are alike."""


def _alike(pairs: list[ColumnPair], e_left: pl.Series, a_left: pl.Series, least: int) -> pl.DataFrame:
    """Of rows without an equal one, those with the most cells in common, best first; rows that have fewer than
    `least` in common stay apart. Of frames too large for that, those that differ in one column alone."""
    size = len(e_left) * len(a_left)
    if size > 0 and len(pairs) > 1 and size * len(pairs) > _MOST_ALIKE:
        return _all_but_one(pairs, e_left, a_left)
    found: tuple[list[int], list[int]] = ([], [])
    if size > 0 and len(pairs) > 1:
        table = pl.DataFrame({"e": e_left}).join(pl.DataFrame({"a": a_left}), how="cross")
        e, a = table.get_column("e"), table.get_column("a")
        score = pl.sum_horizontal(pair_same(one, e, a).cast(pl.UInt16) for one in pairs)
        table = table.select("e", "a", pl.select(score.alias("score")).to_series())
        table = table.filter(pl.col("score") >= least).sort(
            "score", "e", "a", descending=[True, False, False]
        )
        e_taken: set[int] = set()
        a_taken: set[int] = set()
        for e_row, a_row, _ in table.iter_rows():
            if e_row not in e_taken and a_row not in a_taken:
                e_taken.add(e_row)
                a_taken.add(a_row)
                found[0].append(e_row)
                found[1].append(a_row)
    return pl.DataFrame(dict(zip("ea", found, strict=True)), schema={"e": e_left.dtype, "a": a_left.dtype})


def _all_but_one(pairs: list[ColumnPair], e_left: pl.Series, a_left: pl.Series) -> pl.DataFrame:
    """Rows that are the same in all columns but one, the n-th such row with the n-th."""
    made: list[pl.DataFrame] = [pl.DataFrame({"e": e_left.clear(), "a": a_left.clear()})]
    for one in pairs:
        others = [other for other in pairs if other is not one]
        e_hash, a_hash = row_hashes(others, values=True)
        e_at, a_at = _joined(e_hash.gather(e_left), a_hash.gather(a_left))
        same = pl.DataFrame({"e": e_left.gather(e_at), "a": a_left.gather(a_at)}).drop_nulls()
        made.append(same)
        e_left = e_left.filter(~e_left.is_in(same.get_column("e").implode()))
        a_left = a_left.filter(~a_left.is_in(same.get_column("a").implode()))
    return pl.concat(made)


def turned_around(pairs: list[ColumnPair]) -> tuple[str, bool] | None:
    """Of rows that are the same in another order, the column by which the expected ones are sorted, the answer's the
    other way, and whether they are so descending; None: there is none."""
    for one in pairs:
        e, a = _sortable(one)
        if e is None or a is None or e.null_count() or a.null_count() or e.n_unique() < 3:
            continue
        for descending in (True, False):
            if e.is_sorted(descending=descending) and a.is_sorted(descending=not descending):
                return one.name, descending
    return None


def _sortable(one: ColumnPair) -> tuple[pl.Series | None, pl.Series | None]:
    """The values of both sides in their order: numbers of any type (decimals stand beside floats), else what is of one
    type, dates by how both sides are compared; None: they have no order in common."""
    e, a = one.expected.series, one.actual.series
    if e is not None and a is not None:
        numbers = all(side.kind in ("exact", "float") for side in (one.expected, one.actual))
        if numbers or e.dtype == a.dtype:
            return e, a
    days = one.expected.kind == "time" and not one.tolerant and one.e_key.dtype == one.a_key.dtype
    return (one.e_key, one.a_key) if days else (None, None)


def sorted_alike(pairs: list[ColumnPair]) -> str | None:
    """Of rows that are the same in another order, the column by which both sides are sorted the same way, so
    that only rows that share its value stand elsewhere; None: there is none."""
    found = ""
    most = 1
    for one in pairs:
        e, a = _sortable(one)
        if e is None or a is None or not most < e.n_unique() < len(e):
            continue
        if any(e.is_sorted(descending=way) and a.is_sorted(descending=way) for way in (True, False)):
            found, most = one.name, e.n_unique()
    return found or None


_MOST_SORTED = 200_000


def moved_rows(e_rows: pl.Series, a_rows: pl.Series) -> pl.Series:
    """Which aligned rows are out of order: all but the longest run of rows that ascend on both sides. Of
    frames too long for that, those with another rank."""
    table = pl.DataFrame({"e": e_rows, "a": a_rows}).with_row_index("at").drop_nulls().sort("e")
    places = table.get_column("a")
    if len(places) > _MOST_SORTED:
        ranks = places.rank("ordinal").cast(pl.UInt32)
        wrong = ranks != pl.int_range(1, len(places) + 1, eager=True, dtype=pl.UInt32)
        return table.get_column("at").filter(wrong).sort()
    numbers = places.to_list()
    ends: list[int] = []
    tails: list[int] = []
    before: list[int] = []
    for index, number in enumerate(numbers):
        length = bisect_left(ends, number)
        before.append(tails[length - 1] if length else -1)
        if length == len(ends):
            ends.append(number)
            tails.append(index)
        else:
            ends[length], tails[length] = number, index
    stay = [False] * len(numbers)
    at = tails[-1] if tails else -1
    while at >= 0:
        stay[at] = True
        at = before[at]
    return table.get_column("at").filter(~pl.Series(stay, dtype=pl.Boolean)).sort()


def _side_by_side(expected: int, actual: int) -> tuple[pl.Series, pl.Series]:
    longest = max(expected, actual)
    e = pl.int_range(expected, eager=True, dtype=pl.UInt32).extend_constant(None, longest - expected)
    a = pl.int_range(actual, eager=True, dtype=pl.UInt32).extend_constant(None, longest - actual)
    return e, a


def _joined(e_hash: pl.Series, a_hash: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Rows of equal hash, the n-th of one side with the n-th of the other."""
    if len(e_hash) == len(a_hash):
        e_order, a_order = e_hash.arg_sort(), a_hash.arg_sort()
        if e_hash.gather(e_order).equals(a_hash.gather(a_order)):
            table = pl.DataFrame({"e": e_order, "a": a_order}).sort("e")
            return table.get_column("e"), table.get_column("a")
    sides: list[pl.DataFrame] = []
    for name, hashes in (("e", e_hash), ("a", a_hash)):
        table = pl.DataFrame({"hash": hashes}).with_row_index(name)
        if hashes.n_unique() < len(hashes):
            table = table.with_columns(pl.int_range(pl.len(), dtype=pl.UInt32).over("hash").alias("nth"))
        else:
            table = table.with_columns(pl.lit(0, dtype=pl.UInt32).alias("nth"))
        sides.append(table)
    table = sides[0].join(sides[1], on=["hash", "nth"], how="full", coalesce=True)
    table = table.sort("e", "a", nulls_last=True)
    return table.get_column("e"), table.get_column("a")


def _by_content(pairs: list[ColumnPair], e_left: pl.Series, a_left: pl.Series) -> pl.DataFrame:
    """The rows that are left, the n-th in order of content with the n-th."""
    sides: list[pl.Series] = []
    longest = max(len(e_left), len(a_left))
    for side, rows in (("e", e_left), ("a", a_left)):
        table = cells_of(pairs, rows, side)
        ordered = rows.gather(table.select(pl.arg_sort_by(table.columns)).to_series())
        sides.append(ordered.extend_constant(None, longest - len(ordered)))
    return pl.DataFrame({"e": sides[0], "a": sides[1]})
