"""Aligning the rows of two frames for people: by the key given, by a key found, else by content."""

from __future__ import annotations

from bisect import bisect_left
from itertools import combinations

import polars as pl

from tui_eval.frames.matching import row_hashes
from tui_eval.frames.pairs import Pair, pair_same

_MANY_ROWS = 200_000


def find_key(pairs: list[Pair], key: tuple[str, ...] | None) -> tuple[str, ...]:
    """The columns that align rows: those asked for, else the smallest set unique on both sides, of
    those the one that most rows share. Empty: there is none."""
    if key and all(any(one.name == name for one in pairs) for name in key):
        return key
    usable = [one for one in pairs if not one.tolerant and one.expected.kind != "null"]
    if not usable or not len(usable[0].e_key) or not len(usable[0].a_key):
        return ()
    many = max(len(usable[0].e_key), len(usable[0].a_key)) > _MANY_ROWS
    singles = usable[: 10 if many else 40]
    best: tuple[int, tuple[str, ...]] = (0, ())
    for one in singles:
        if _unique(one.e_key) and _unique(one.a_key):
            shared = int(one.e_key.is_in(one.a_key.implode()).sum() or 0)
            if shared > best[0]:
                best = (shared, (one.name,))
    if best[1]:
        return best[1]
    for size in (2, 3):
        for chosen in combinations(usable[: 4 if many else 8], size):
            e_hash, a_hash = row_hashes(list(chosen), values=True)
            if _unique(e_hash) and _unique(a_hash):
                shared = int(e_hash.is_in(a_hash.implode()).sum() or 0)
                if shared > best[0]:
                    best = (shared, tuple(one.name for one in chosen))
        if best[1]:
            return best[1]
    return ()


def _unique(series: pl.Series) -> bool:
    return series.null_count() == 0 and series.n_unique() == len(series)


def align_rows(
    pairs: list[Pair], key: tuple[str, ...], lengths: tuple[int, int]
) -> tuple[pl.Series, pl.Series]:
    """Row numbers of the expected and the actual side, in display order; null where a row has no
    partner. Expected rows come in their own order, extra rows after them."""
    if not pairs:
        return _side_by_side(*lengths)
    keyed = [one for one in pairs if one.name in key]
    if key and unique_rows(keyed):
        return _joined(*row_hashes(keyed, values=True))
    both = pl.DataFrame(dict(zip("ea", _joined(*row_hashes(pairs, values=True)), strict=True)))
    same = both.filter(pl.col("e").is_not_null() & pl.col("a").is_not_null())
    e_left = both.filter(pl.col("a").is_null()).get_column("e")
    a_left = both.filter(pl.col("e").is_null()).get_column("a")
    if key:  # of the rows that share a key, equal ones belong together first
        e_hash, a_hash = row_hashes(keyed, values=True)
        e_at, a_at = _joined(e_hash.gather(e_left), a_hash.gather(a_left))
        rest = pl.DataFrame({"e": e_left.gather(e_at), "a": a_left.gather(a_at)})
    else:
        alike = _alike(pairs, e_left, a_left)
        e_left = e_left.filter(~e_left.is_in(alike.get_column("e").implode()))
        a_left = a_left.filter(~a_left.is_in(alike.get_column("a").implode()))
        rest = pl.concat([alike, _by_content(pairs, e_left, a_left)])
    table = pl.concat([same, rest]).sort("e", "a", nulls_last=True)
    return table.get_column("e"), table.get_column("a")


def unique_rows(pairs: list[Pair]) -> bool:
    """Whether no two rows of a side are the same in these columns."""
    return (
        all(hashes.n_unique() == len(hashes) for hashes in row_hashes(pairs, values=True)) if pairs else False
    )


_MOST_ALIKE = 4_000_000
"""Cells that are compared at most to find which rows are alike."""


def _alike(pairs: list[Pair], e_left: pl.Series, a_left: pl.Series) -> pl.DataFrame:
    """Of rows without an equal one, those with the most cells in common, best first; rows that have none in
    common, and those of frames too large for it, stay apart."""
    size = len(e_left) * len(a_left)
    found: tuple[list[int], list[int]] = ([], [])
    if size > 0 and len(pairs) > 1 and size * len(pairs) <= _MOST_ALIKE:
        table = pl.DataFrame({"e": e_left}).join(pl.DataFrame({"a": a_left}), how="cross")
        e, a = table.get_column("e"), table.get_column("a")
        score = pl.sum_horizontal(pair_same(one, e, a).cast(pl.UInt16) for one in pairs)
        table = table.select("e", "a", pl.select(score.alias("score")).to_series())
        table = table.filter(pl.col("score") > 0).sort("score", "e", "a", descending=[True, False, False])
        e_taken: set[int] = set()
        a_taken: set[int] = set()
        for e_row, a_row, _ in table.iter_rows():
            if e_row not in e_taken and a_row not in a_taken:
                e_taken.add(e_row)
                a_taken.add(a_row)
                found[0].append(e_row)
                found[1].append(a_row)
    return pl.DataFrame(dict(zip("ea", found, strict=True)), schema={"e": e_left.dtype, "a": a_left.dtype})


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


def _by_content(pairs: list[Pair], e_left: pl.Series, a_left: pl.Series) -> pl.DataFrame:
    """The rows that are left, the n-th in order of content with the n-th."""
    sides: list[pl.Series] = []
    longest = max(len(e_left), len(a_left))
    for side, rows in (("e", e_left), ("a", a_left)):
        frame: dict[str, pl.Series] = {}
        for index, one in enumerate(pairs):
            key, value = (one.e_key, one.e_value) if side == "e" else (one.a_key, one.a_value)
            frame[f"k{index}"] = key.gather(rows)
            if value is not None:
                frame[f"v{index}"] = value.gather(rows)
        table = pl.DataFrame(frame)
        ordered = rows.gather(table.select(pl.arg_sort_by(table.columns)).to_series())
        sides.append(ordered.extend_constant(None, longest - len(ordered)))
    return pl.DataFrame({"e": sides[0], "a": sides[1]})
