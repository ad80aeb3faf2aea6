"""Which actual row answers which expected row, whatever their order.

Exact columns are compared as a multiset; with tolerances, rows are a perfect matching of a bipartite
graph: sorting alone would pair the wrong rows and fail what is equal. Every pairing returned was
checked cell by cell, so a hash collision can cost time but never a verdict.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass

import polars as pl

from tui_eval.frames.pairs import MOST_NOISE, ColumnPair, cells_of, pair_same

# -- A perfect matching among rows that are alike: small groups, alike rows taken together.


MOST_EDGES = 4_000_000


class TooManyAlike(Exception):
    """More rows are alike within the tolerance than can be told apart."""


def perfect_matching(pairs: list[ColumnPair], e_rows: pl.Series, a_rows: pl.Series) -> pl.Series | None:
    """For each of `e_rows`, the position in `a_rows` of its partner; None where there is no perfect
    matching.

    Raises:
        TooManyAlike: the group is too large.
    """
    e_kinds, e_members = _kinds(pairs, e_rows, "e")
    a_kinds, a_members = _kinds(pairs, a_rows, "a")
    if len(e_kinds) * len(a_kinds) > MOST_EDGES:
        raise TooManyAlike(f"{len(e_rows)} rows are alike within the tolerance")
    neighbours: list[list[int]] = []
    every = pl.Series([a_rows[i] for i in a_kinds], dtype=a_rows.dtype)
    for position in e_kinds:
        row = pl.repeat(e_rows[position], len(every), dtype=e_rows.dtype, eager=True)
        good = pl.repeat(True, len(every), dtype=pl.Boolean, eager=True)
        for one in pairs:
            good = good & pair_same(one, row, every)
        neighbours.append(good.arg_true().to_list())
    flows = _flow([len(m) for m in e_members], [len(m) for m in a_members], neighbours)
    if flows is None:
        return None
    partner = [0] * len(e_rows)
    waiting = [list(members) for members in a_members]
    for kind, members in enumerate(e_members):
        places = iter(members)
        for other, amount in flows[kind].items():
            for _ in range(amount):
                partner[next(places)] = waiting[other].pop()
    return pl.Series(partner, dtype=pl.UInt32)


def _kinds(pairs: list[ColumnPair], rows: pl.Series, side: str) -> tuple[list[int], list[list[int]]]:
    """Positions of the first of each distinct row, and the positions of all like it."""
    cells = cells_of(pairs, rows, side, digits=True)
    grouped = (
        cells.with_row_index("position")
        .group_by(cells.columns, maintain_order=True)
        .agg(pl.col("position"))
        .get_column("position")
        .to_list()
    )
    return [members[0] for members in grouped], grouped


def _flow(supply: list[int], demand: list[int], neighbours: list[list[int]]) -> list[dict[int, int]] | None:
    """Assign every unit of supply to demand along edges; None where some cannot be placed."""
    if any(not near for near in neighbours):
        return None
    flows: list[dict[int, int]] = [{} for _ in supply]
    taken: list[dict[int, int]] = [{} for _ in demand]
    room = list(demand)

    def move(source: int, target: int, amount: int) -> None:
        flows[source][target] = flows[source].get(target, 0) + amount
        taken[target][source] = taken[target].get(source, 0) + amount
        if not flows[source][target]:
            del flows[source][target], taken[target][source]

    left = list(supply)
    for source, near in enumerate(neighbours):
        for target in near:
            amount = min(left[source], room[target])
            if amount:
                move(source, target, amount)
                left[source] -= amount
                room[target] -= amount
    for source in range(len(supply)):
        while left[source]:
            path = _augmenting(source, neighbours, taken, room)
            if path is None:
                return None
            amount = min(left[source], room[path[-1][1]])
            for (_, target), (owner, _) in itertools.pairwise(path):
                amount = min(amount, taken[target][owner])
            for position, (giver, target) in enumerate(path):
                if position + 1 < len(path):
                    move(path[position + 1][0], target, -amount)
                move(giver, target, amount)
            left[source] -= amount
            room[path[-1][1]] -= amount
    return flows


def _augmenting(
    start: int, neighbours: list[list[int]], taken: list[dict[int, int]], room: list[int]
) -> list[tuple[int, int]] | None:
    """The shortest way to free demand: (source, target) steps, each target's owner giving way."""
    came: dict[int, tuple[int, int] | None] = {start: None}
    seen: set[int] = set()
    queue = deque([start])
    while queue:
        source = queue.popleft()
        for target in neighbours[source]:
            if target in seen:
                continue
            seen.add(target)
            if room[target]:
                path = [(source, target)]
                step = came[source]
                while step is not None:
                    path.append(step)
                    step = came[step[0]]
                return path[::-1]
            for owner in taken[target]:
                if owner not in came:
                    came[owner] = (source, target)
                    queue.append(owner)
    return None


__all__ = ["Matching", "TooManyAlike", "match_rows", "row_hashes"]


@dataclass(slots=True)
class Matching:
    """`e_rows[i]` answers to `a_rows[i]` (None: in the order given); `exact`: without tolerance."""

    exact: bool
    e_rows: pl.Series | None = None
    a_rows: pl.Series | None = None


def match_rows(pairs: list[ColumnPair]) -> Matching | None:
    """Pair all rows of two frames of equal length, or None where some row has no partner.

    Raises:
        TooManyAlike: more rows are alike within the tolerance than can be told apart in time.
    """
    if all(_keys_equal(one, None, None) for one in pairs):
        return Matching(True)
    tolerant = [one for one in pairs if one.tolerant]
    in_order = bool(tolerant) and all(bool(pair_same(one, None, None).all()) for one in pairs)
    exact = _multiset(pairs)
    if in_order and exact is None:
        return Matching(False)
    if exact is not None or not tolerant:
        return exact
    return _within_tolerance(pairs, tolerant)


def _keys_equal(one: ColumnPair, e_rows: pl.Series | None, a_rows: pl.Series | None) -> bool:
    values = (one.e_value, one.a_value) if one.e_digits is None else (one.e_digits, one.a_digits)
    for e, a in ((one.e_key, one.a_key), values):
        if e is None or a is None or (e.null_count() == len(e) and a.null_count() == len(a)):
            continue
        left = e if e_rows is None else e.gather(e_rows)
        right = a if a_rows is None else a.gather(a_rows)
        if not left.equals(right, null_equal=True):
            return False
    return True


def row_hashes(pairs: list[ColumnPair], values: bool) -> tuple[pl.Series, pl.Series]:
    """A 64 bit hash of each row's exact keys and, with `values`, of the tolerant values (else of
    whether they are null)."""
    sides: list[pl.Series] = []
    for side in ("e", "a"):
        frame: dict[str, pl.Series] = {}
        for index, one in enumerate(pairs):
            key = one.e_key if side == "e" else one.a_key
            value = one.e_value if side == "e" else one.a_value
            if (
                value is None
                or one.e_key.null_count() < len(one.e_key)
                or one.a_key.null_count() < len(one.a_key)
            ):
                frame[f"k{index}"] = key
            if value is not None:
                frame[f"v{index}"] = value if values else value.is_null()
        sides.append(pl.DataFrame(frame).hash_rows(seed=7))
    return sides[0], sides[1]


def _multiset(pairs: list[ColumnPair]) -> Matching | None:
    e_hash, a_hash = row_hashes(pairs, values=True)
    e_rows, a_rows = e_hash.arg_sort(), a_hash.arg_sort()
    if not e_hash.gather(e_rows).equals(a_hash.gather(a_rows)):
        return None
    if all(_keys_equal(one, e_rows, a_rows) for one in pairs):
        return Matching(True, e_rows, a_rows)
    e_rows, a_rows = _sorted_rows(pairs, "e"), _sorted_rows(pairs, "a")
    if all(_keys_equal(one, e_rows, a_rows) for one in pairs):
        return Matching(True, e_rows, a_rows)
    return None


def _sorted_rows(pairs: list[ColumnPair], side: str) -> pl.Series:
    keys: list[pl.Series] = []
    for one in pairs:
        keys.append(one.e_key if side == "e" else one.a_key)
        value = one.e_value if side == "e" else one.a_value
        if value is not None:
            keys.append(value)
    frame = pl.DataFrame({f"c{index}": key for index, key in enumerate(keys)})
    return frame.select(pl.arg_sort_by(frame.columns)).to_series()


def _within_tolerance(pairs: list[ColumnPair], tolerant: list[ColumnPair]) -> Matching | None:
    e_hash, a_hash = row_hashes(pairs, values=False)
    e_order, a_order = e_hash.arg_sort(), a_hash.arg_sort()
    in_order = e_hash.gather(e_order)
    if not in_order.equals(a_hash.gather(a_order)):
        return None
    if bool((in_order != in_order.shift()).sum() == len(in_order) - 1):  # the exact columns tell rows apart
        same = all(bool(pair_same(one, e_order, a_order).all()) for one in pairs)
        return Matching(False, e_order, a_order) if same else None
    count = len(e_hash)
    table = pl.concat([_side_table(e_hash, tolerant, "e"), _side_table(a_hash, tolerant, "a")])
    table = _split(table, tolerant)
    sizes = table.group_by("group").agg(pl.col("side").sum().alias("actual"), pl.len().alias("rows"))
    if sizes.select((pl.col("actual").cast(pl.Int64) * 2 != pl.col("rows")).any()).item():
        return None
    order = ["group", *[f"v{index}" for index in range(len(tolerant))]]
    table = table.sort(order)
    e_side, a_side = table.filter(pl.col("side") == 0), table.filter(pl.col("side") == 1)
    e_rows, a_rows = e_side.get_column("row"), a_side.get_column("row")
    good = _all_same(pairs, e_rows, a_rows)
    if bool(good.all()):
        return Matching(False, e_rows, a_rows)
    groups = pl.DataFrame({"group": e_side.get_column("group"), "good": good, "e": e_rows, "a": a_rows})
    bad = groups.filter(pl.col("good").all().over("group").not_())
    if bad.select((pl.len().over("group") == 1).any()).item():
        return None
    one_line = len(tolerant) == 1 and tolerant[0].rtol <= 1
    if one_line and _keys_same(pairs, bad.get_column("e"), bad.get_column("a")):
        return None  # along one column, sorted pairing finds a matching wherever there is one
    fixed_e, fixed_a = [], []
    for part in bad.partition_by("group", maintain_order=True):
        e_list, a_list = part.get_column("e"), part.get_column("a")
        found = perfect_matching(pairs, e_list, a_list)
        if found is None:
            return None
        fixed_e.append(e_list)
        fixed_a.append(a_list.gather(found))
    fine = groups.filter(pl.col("good").all().over("group"))
    all_e = pl.concat([fine.get_column("e"), *fixed_e])
    all_a = pl.concat([fine.get_column("a"), *fixed_a])
    assert len(all_e) == count
    return Matching(False, all_e, all_a)


def _all_same(pairs: list[ColumnPair], e_rows: pl.Series, a_rows: pl.Series) -> pl.Series:
    good = pl.repeat(True, len(e_rows), dtype=pl.Boolean, eager=True)
    for one in pairs:
        good = good & pair_same(one, e_rows, a_rows)
    return good


def _keys_same(pairs: list[ColumnPair], e_rows: pl.Series, a_rows: pl.Series) -> bool:
    return all(one.e_key.gather(e_rows).equals(one.a_key.gather(a_rows), null_equal=True) for one in pairs)


def _side_table(hashes: pl.Series, tolerant: list[ColumnPair], side: str) -> pl.DataFrame:
    values = {f"v{i}": one.e_value if side == "e" else one.a_value for i, one in enumerate(tolerant)}
    length = len(hashes)
    return pl.DataFrame(
        {
            "group": hashes,
            "side": pl.repeat(0 if side == "e" else 1, length, dtype=pl.Int8, eager=True),
            "row": pl.int_range(length, eager=True, dtype=pl.UInt32),
            **values,
        }
    )


def _split(table: pl.DataFrame, tolerant: list[ColumnPair]) -> pl.DataFrame:
    """Divide rows into groups that no close pair crosses, by gaps in one column after another.

    Sound while rtol ≤ 1: beyond a gap wider than the tolerance at its ends, distance grows faster
    than tolerance does.
    """
    groups = -1
    unchanged = 0
    columns = [index for index, one in enumerate(tolerant) if one.rtol <= 1]
    for index in columns * 3:
        name, one = f"v{index}", tolerant[index]
        table = table.sort("group", name)
        value, scale = pl.col(name), 10.0**one.scale
        before = value.shift()
        gap = (value - before).cast(pl.Float64) / scale
        size = pl.max_horizontal(value.abs(), before.abs()).cast(pl.Float64) / scale
        # Between two infinities the gap may be NaN, which Polars calls greater than every number.
        wide = ((gap > (one.atol + one.rtol * size) * (1 + 2 * MOST_NOISE)) & gap.is_not_nan()).fill_null(
            False
        )
        new = (pl.col("group") != pl.col("group").shift()).fill_null(True) | wide
        table = table.with_columns(new.cum_sum().cast(pl.UInt64).alias("group"))
        found = int(table.get_column("group").max() or 0)  # type: ignore[arg-type]
        if found * 2 >= len(table):
            break
        unchanged = unchanged + 1 if found == groups else 0
        if unchanged >= len(columns):
            break
        groups = found
    return table
