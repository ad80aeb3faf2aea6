"""A way in which values of one column were changed, and how sure it is that it is no chance; those that all of its rows
tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tui_eval.frames.numbers import shortest_text
from tui_eval.guard.text import clip


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One way, tried on the rows in which a column differs.

    `code` and `parameters` as in `Finding`; `mask` marks the rows that it explains. `sure`: rows that are
    explained so are so by no chance, however few they are among those that differ.
    """

    code: str
    mask: pl.Series
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sure: bool = True

    @property
    def count(self) -> int:
        """Rows explained."""
        return int(self.mask.sum() or 0)


def series(frame: dict[str, pl.Series], expression: pl.Expr) -> pl.Series:
    """An expression over some series of one length."""
    return pl.DataFrame(frame).select(expression.alias("found")).to_series()


def true(expression: pl.Expr) -> pl.Expr:
    """A condition, false where it is not known."""
    return expression.fill_null(False)


_MOST_DECIMALS = 9


def decimals_of(values: pl.Series) -> int:
    """The fewest decimals that hold all values (to the precision of floats), at most nine."""
    values = values.drop_nulls()
    values = values.filter(values.is_finite())
    if not len(values):
        return 0
    size = float(values.abs().max() or 0.0)  # type: ignore[arg-type]
    some = values.head(_LEAST)  # most have more decimals than few in the first rows already
    first = next((digits for digits in range(_MOST_DECIMALS) if _whole(some, digits, size)), _MOST_DECIMALS)
    return next(
        (digits for digits in range(first, _MOST_DECIMALS) if _whole(values, digits, size)), _MOST_DECIMALS
    )


def _whole(values: pl.Series, digits: int, size: float) -> bool:
    scaled = values * 10.0**digits
    return bool(((scaled - scaled.round(0)).abs() <= 1e-6 + 1e-15 * size * 10.0**digits).all())


def number(value: Any) -> float:
    """A figure of a series, 0 where there is none."""
    return 0.0 if value is None else float(value)


def choose(of: int, some: int) -> float:
    """The decimal logarithm of how many ways there are to choose some of many."""
    if some <= 0 or some >= of:
        return 0.0
    return (math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)) / math.log(10)


# -- Ways that all rows of a column tell: the opposite truth, a running total, one value throughout.


_CLOSE = 1e-9
_LEAST = 4
"""Rows of which a running total, or one value, proves something."""
_VALUE = 24


def opposite(e: pl.Series, a: pl.Series, wrong: pl.Series) -> Iterator[ValueChange]:
    """Booleans (all rows) of which none is right, of both kinds."""
    if e.dtype != pl.Boolean or a.dtype != pl.Boolean or e.drop_nulls().n_unique() < 2:
        return
    mask = series({"e": e, "a": a}, true(pl.col("e") != pl.col("a")))
    known = int((e.is_not_null() & a.is_not_null()).sum())
    if known > _LEAST and int(mask.sum()) == known:
        yield ValueChange("opposite", mask.filter(wrong))


def one_value(e: pl.Series, a: pl.Series, wrong: pl.Series, shown: str) -> Iterator[ValueChange]:
    """One value in all rows of the answer, where several are expected.

    Args:
        shown: that value as it is written.
    """
    if len(a) < _LEAST - 1 or a.null_count() or not (a == a.head(1)).all():
        return
    truths = e.dtype == pl.Boolean
    if e.drop_nulls().n_unique() < (2 if truths else 3) or (truths and int(wrong.sum()) < _LEAST - 1):
        return
    of_all = e.dtype.is_float() and bool(near(a.head(1), pl.Series([number(e.sum())]))[0])
    told = {"value": clip(shown, _VALUE), "sum": of_all}
    yield ValueChange("one_value", pl.repeat(True, int(wrong.sum()), eager=True), told, sure=False)


def running_total(
    e: pl.Series, a: pl.Series, wrong: pl.Series, orders: Sequence[pl.Series], parts: dict[str, pl.Series]
) -> Iterator[ValueChange]:
    """Each value added to those before it, or what is to be added up, as it is.

    Args:
        orders: by which rows may have been added up, beside their own order: values to sort by.
        parts: columns with each of whose values it may begin anew.
    """
    if e.null_count() or a.null_count() or not e.dtype.is_float():
        return
    for plain, total, added in ((e, a, True), (a, e, False)):
        if not _proves(total, wrong):
            continue
        frame = pl.DataFrame({"plain": plain, "total": total}).with_row_index("row")
        whole = number(plain.sum())
        last = bool(near(total, pl.repeat(whole, len(total), dtype=pl.Float64, eager=True)).any())
        least = number((total - plain).abs().filter(wrong).min()) / 2
        if not last and not parts:
            continue
        for by in [None, *orders]:
            rows = frame if by is None else frame.with_columns(by.alias("by")).sort("by", maintain_order=True)
            for name in [None, *parts]:
                if name is None:
                    if not last:
                        continue
                    sums = rows.select("row", "total", pl.col("plain").cum_sum().alias("sum"))
                else:
                    part = pl.DataFrame({"row": frame.get_column("row"), "part": parts[name]})
                    sums = rows.join(part, on="row", maintain_order="left").select(
                        "row", "total", pl.col("plain").cum_sum().over("part").alias("sum")
                    )
                same = near(sums.get_column("total"), sums.get_column("sum"), least)
                if same.all():
                    told = {"added": added, "by": name or ""}
                    yield ValueChange("running", pl.repeat(True, int(wrong.sum()), eager=True), told)
                    return


_DIGITS = 8
"""Digits that so few sums must have together that none is met by chance."""


def _proves(total: pl.Series, wrong: pl.Series) -> bool:
    """Whether sums are enough of a proof: four of them, or two and three of quarters, where these have many digits."""
    count = int(wrong.sum())
    if count >= _LEAST or count < 2:
        return count >= _LEAST
    units = total.filter(wrong).abs() * 10.0 ** decimals_of(total)
    return sum(math.log10(max(unit, 1.0)) for unit in units.to_list()) >= _DIGITS


def shortest(value: object) -> str:
    """A value of the answer in a line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return shortest_text(value) if isinstance(value, int | float) else " ".join(str(value).split())


def near(one: pl.Series, other: pl.Series, most: float = float("inf")) -> pl.Series:
    """Which numbers are the same but for the noise of floats, and not `most` apart, by which wrong ones differ."""
    a, b = pl.col("a"), pl.col("b")
    room = pl.min_horizontal(_CLOSE * pl.max_horizontal(a.abs(), b.abs()) + 1e-9, pl.lit(most))
    return series({"a": one, "b": other}, true((a - b).abs() <= room))


# -- What a window over other rows makes: running and moving figures, a figure of a group in each row, ranks.


_WIDEST = 400
"""Rows of a moving window; a wider one is seldom meant."""


def window_changes(
    e: pl.Series, a: pl.Series, wrong: pl.Series, orders: Sequence[pl.Series], parts: Mapping[str, pl.Series]
) -> Iterator[ValueChange]:
    """What a window over rows made of a column of numbers, or what it should have made of it.

    Args:
        e, a, wrong: all rows of the column, and which of them differ.
        orders: by which rows may have been taken, beside their own order: values to sort by.
        parts: columns whose values may divide the rows.
    """
    count = int(wrong.sum())
    if count < _LEAST or not all(side.dtype.is_float() and side.is_finite().all() for side in (e, a)):
        return
    if e.null_count() or a.null_count():
        return
    groups = {name: part for name, part in parts.items() if 1 < part.n_unique() < len(part)}
    for code, parameters in (
        *_ranks(e, a, groups),
        *_parted(e, a, orders, groups),
        *_of_groups(e, a, groups),
        *_running(e, a, orders, groups),
    ):
        yield ValueChange(code, pl.repeat(True, count, eager=True), parameters)
        return


_Told = Iterator[tuple[str, dict[str, Any]]]


_ROUNDED = 0.102
"""What rounding adds at the most."""


@dataclass(frozen=True, slots=True)
class _Room:
    """How far two figures may be apart that are one: by the noise of floats, never as far as values that differ are,
    and by what rounding adds (`rounding`), nothing like what most of these differ by."""

    noise: float
    rounding: float

    @classmethod
    def of(cls, e: pl.Series, a: pl.Series) -> _Room:
        digits = max(decimals_of(e), decimals_of(a))
        apart = (a - e).abs()
        differing = apart.filter(apart > 0)
        rounding = 1.01 * 10.0**-digits if 0 < digits <= 4 else 0.0
        return cls(number(differing.min()) / 2, min(rounding, number(differing.median()) / 8))

    def same(self, one: pl.Series, other: pl.Series) -> pl.Series:
        """Which of them are one."""
        return near(one, other, self.noise) | ((one - other).abs() <= self.rounding)


# -- Figures over the rows before one.


def _running(
    e: pl.Series, a: pl.Series, orders: Sequence[pl.Series], groups: Mapping[str, pl.Series]
) -> _Told:
    for by in [None, *orders]:
        at = None if by is None else by.arg_sort()
        first = 0 if at is None else int(at[0])
        # Nothing stands before the first row: each figure of it is its value, on both sides.
        if abs(e[first] - a[first]) > _ROUNDED + _CLOSE * max(abs(e[first]), abs(a[first])):
            continue
        room = _Room.of(e, a)
        if not room.same(e.slice(first, 1), a.slice(first, 1)).all():
            continue
        for plain, made, given in ((e, a, True), (a, e, False)):
            if made.n_unique() < 3:
                continue
            p, m = (plain, made) if at is None else (plain.gather(at), made.gather(at))
            for kind, rows in _windows(p, m, room):
                yield "running", {"added": given, "by": "", "figure": kind, "window": rows}
            for name, part in groups.items():
                frame = {"p": p, "g": part if at is None else part.gather(at)}
                for kind, expression in _CUMULATED.items():
                    if room.same(series(frame, expression.over("g")), m).all():
                        yield "running", {"added": given, "by": name, "figure": kind, "window": 0}


_CUMULATED = {
    "average": pl.col("p").cum_sum() / pl.col("p").cum_count(),
    "maximum": pl.col("p").cum_max(),
    "minimum": pl.col("p").cum_min(),
}


def _windows(p: pl.Series, m: pl.Series, room: _Room) -> Iterator[tuple[str, int]]:
    """What of all rows so far, or of the last few, the values are made; how many these are, 0 for all."""
    for kind, expression in (*_CUMULATED.items(), ("total", pl.col("p").cum_sum())):
        if not room.same(series({"p": p.head(2)}, expression), m.head(2)).all():
            continue
        sums = series({"p": p}, expression)
        other = ~room.same(sums, m)
        rows = (
            int(other.arg_max() or 0) if other.any() else 0
        )  # the first row that the window has left a row out of
        if not rows and kind != "total":  # a running total is told by itself
            yield kind, 0
        if 2 <= rows <= min(_WIDEST, len(p) - _LEAST) and kind in ("average", "total"):
            moved = (
                p.rolling_mean(rows, min_samples=1)
                if kind == "average"
                else p.rolling_sum(rows, min_samples=1)
            )
            if room.same(moved, m).all():
                yield kind, rows


def _parted(
    e: pl.Series, a: pl.Series, orders: Sequence[pl.Series], groups: Mapping[str, pl.Series]
) -> _Told:
    """A running total that begins anew with each value of a column on one side, and runs over all rows on the other:
    these with the same place in the order may share the last one's."""
    room = _Room.of(e, a)
    step = pl.col("p").diff().over("g").fill_null(pl.col("p"))
    for by in orders:
        rows = pl.DataFrame({"e": e, "a": a, "by": by}).with_row_index("row").sort("by", maintain_order=True)
        for name, part in groups.items():
            for parted, whole, over_all in (("e", "a", True), ("a", "e", False)):
                frame = rows.select(
                    "by", p=parted, w=whole, g=part.gather(rows.get_column("row"))
                ).with_columns(s=step.cum_sum())
                shared = frame.select(pl.col("s").last().over("by")).to_series()
                given = frame.get_column("w")
                if room.same(frame.get_column("s"), given).all() or room.same(shared, given).all():
                    yield "running", {"added": True, "by": name, "over_all": over_all}


# -- A figure of a group in each of its rows.


_FIGURES = {
    "sum": pl.col("p").sum(),
    "average": pl.col("p").mean(),
    "largest": pl.col("p").max(),
    "smallest": pl.col("p").min(),
}


def _of_groups(e: pl.Series, a: pl.Series, groups: Mapping[str, pl.Series]) -> _Told:
    if not groups:
        return
    room = _Room.of(e, a)
    # One value everywhere is no group's.
    ways = [way for way in ((e, a, True), (a, e, False)) if way[1].n_unique() > 1]
    for name, part in groups.items():
        for plain, made, given in ways:
            frame = {"p": plain, "m": made, "g": part}
            if bool(series(frame, (pl.col("m") == pl.col("m").first().over("g"))).all()):
                for figure, expression in _FIGURES.items():
                    if room.same(series(frame, expression.over("g")), made).all():
                        yield "of_group", {"figure": figure, "by": name, "given": given}
                continue
            whole = number(plain.sum())
            for all_of in (1.0, 100.0):  # shares of each group, and of all
                if abs(whole - all_of) > 0.01 * all_of:
                    continue
                of_groups = pl.DataFrame(frame).group_by("g").agg(pl.col("m").sum()).get_column("m")
                if bool(((of_groups - all_of).abs() > 0.01 * all_of).any()):
                    continue
                weighed = series(frame, pl.col("m") * pl.col("p").sum().over("g") / all_of)
                if room.same(weighed, plain).all():
                    yield "group_shares", {"by": name, "wanted": not given}


# -- Ranks.


def _ranks(e: pl.Series, a: pl.Series, groups: Mapping[str, pl.Series]) -> _Told:
    both = pl.DataFrame({"e": e, "a": a})
    whole = both.select(
        pl.all_horizontal(
            (pl.all() == pl.all().round(0)).all() & (pl.all().min() == 1) & (pl.all().max() <= len(e))
        )
    ).item()
    if not whole:
        return
    frame = {"e": e, "a": a}
    for name, part in [("", pl.repeat(0, len(e), eager=True)), *groups.items()]:
        within = {**frame, "g": part}
        if (how := _ties(within)) is not None:
            yield "ranked", {"how": how, "by": name}
        if name:
            for method in ("min", "dense"):
                for one, other, how in (("e", "a", "over all"), ("a", "e", "by part")):
                    ranked = pl.col(other).rank(method).over("g") == pl.col(one)
                    over_all = pl.col(other).rank(method) == pl.col(other)
                    if bool(series(within, true(ranked & over_all)).all()):
                        yield "ranked", {"how": how, "by": name}


def _ties(frame: dict[str, pl.Series]) -> str | None:
    """Which ranks stand where rows that tie should have others."""

    def rank(of: str, method: Any) -> pl.Expr:
        return pl.col(of).rank(method).over("g")

    def every(*conditions: pl.Expr) -> bool:
        return bool(series(frame, pl.all_horizontal(conditions)).all())

    e, a = pl.col("e"), pl.col("a")
    gaps, dense = every(e == rank("e", "min")), every(e == rank("e", "dense"))
    if gaps and dense:  # no ties are expected
        tied = every(a == rank("a", "min")) or every(a == rank("a", "dense"))
        fits = every(e >= rank("a", "min"), e <= rank("a", "max"))
        return "ties" if tied and fits else None
    if gaps and every(a == rank("e", "dense")):
        return "dense"
    if dense and every(a == rank("e", "min")):
        return "gaps"
    numbered = every(a == rank("a", "min"), a == rank("a", "max"))
    if (gaps or dense) and numbered and every(a >= rank("e", "min"), a <= rank("e", "max")):
        return "numbered"
    return None
