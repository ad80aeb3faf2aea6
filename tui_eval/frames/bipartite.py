"""A perfect matching among rows that are alike: small groups, alike rows taken together."""

from __future__ import annotations

import itertools
from collections import deque

import polars as pl

from tui_eval.frames.pairs import Pair, pair_same

MOST_EDGES = 4_000_000


class TooManyAlike(Exception):
    """More rows are alike within the tolerance than can be told apart."""


def perfect_matching(pairs: list[Pair], e_rows: pl.Series, a_rows: pl.Series) -> pl.Series | None:
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


def _kinds(pairs: list[Pair], rows: pl.Series, side: str) -> tuple[list[int], list[list[int]]]:
    """Positions of the first of each distinct row, and the positions of all like it."""
    frame: dict[str, pl.Series] = {}
    for index, one in enumerate(pairs):
        key, value = (one.e_key, one.e_value) if side == "e" else (one.a_key, one.a_value)
        frame[f"k{index}"] = key.gather(rows)
        if value is not None:
            frame[f"v{index}"] = value.gather(rows)
        digits = one.e_digits if side == "e" else one.a_digits
        if digits is not None:
            frame[f"d{index}"] = digits.gather(rows)
        if side == "a" and one.a_exact is not None:
            frame[f"x{index}"] = one.a_exact.gather(rows)
    names = list(frame)
    grouped = (
        pl.DataFrame(frame)
        .with_row_index("position")
        .group_by(names, maintain_order=True)
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
