"""Aligning the rows of two frames for people: by the key given, by a key found, else by content."""

from __future__ import annotations

from itertools import combinations

import polars as pl

from tui_eval.frames.matching import row_hashes
from tui_eval.frames.pairs import Pair

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
    if key:
        return _joined(*row_hashes([one for one in pairs if one.name in key], values=True))
    e_hash, a_hash = row_hashes(pairs, values=True)
    e_rows, a_rows = _joined(e_hash, a_hash)
    both = pl.DataFrame({"e": e_rows, "a": a_rows})
    same = both.filter(pl.col("e").is_not_null() & pl.col("a").is_not_null())
    e_left = both.filter(pl.col("a").is_null()).get_column("e")
    a_left = both.filter(pl.col("e").is_null()).get_column("a")
    e_left, a_left = _by_content(pairs, e_left, "e"), _by_content(pairs, a_left, "a")
    longest = max(len(e_left), len(a_left))
    rest = pl.DataFrame(
        {
            "e": e_left.extend_constant(None, longest - len(e_left)),
            "a": a_left.extend_constant(None, longest - len(a_left)),
        }
    )
    table = pl.concat([same, rest]).sort("e", nulls_last=True, maintain_order=True)
    return table.get_column("e"), table.get_column("a")


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


def _by_content(pairs: list[Pair], rows: pl.Series, side: str) -> pl.Series:
    frame: dict[str, pl.Series] = {}
    for index, one in enumerate(pairs):
        key, value = (one.e_key, one.e_value) if side == "e" else (one.a_key, one.a_value)
        frame[f"k{index}"] = key.gather(rows)
        if value is not None:
            frame[f"v{index}"] = value.gather(rows)
    table = pl.DataFrame(frame)
    return rows.gather(table.select(pl.arg_sort_by(table.columns)).to_series())
