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
    if e.drop_nulls().n_unique() < (2 if e.dtype == pl.Boolean else 3):
        return
    of_all = e.dtype.is_float() and bool(_near(a.head(1), pl.Series([number(e.sum())]))[0])
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
    if int(wrong.sum()) < _LEAST or e.null_count() or a.null_count() or not e.dtype.is_float():
        return
    for plain, total, added in ((e, a, True), (a, e, False)):
        frame = pl.DataFrame({"plain": plain, "total": total}).with_row_index("row")
        whole = number(plain.sum())
        last = bool(_near(total, pl.repeat(whole, len(total), dtype=pl.Float64, eager=True)).any())
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
                same = _near(sums.get_column("total"), sums.get_column("sum"), least)
                if same.all():
                    told = {"added": added, "by": name or ""}
                    yield ValueChange("running", pl.repeat(True, int(wrong.sum()), eager=True), told)
                    return


def shortest(value: object) -> str:
    """A value of the answer in a line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return shortest_text(value) if isinstance(value, int | float) else " ".join(str(value).split())


def _near(one: pl.Series, other: pl.Series, most: float = float("inf")) -> pl.Series:
    """Which numbers are the same but for the noise of floats, and not `most` apart, by which wrong ones differ."""
    a, b = pl.col("a"), pl.col("b")
    room = pl.min_horizontal(_CLOSE * pl.max_horizontal(a.abs(), b.abs()) + 1e-9, pl.lit(most))
    return series({"a": one, "b": other}, true((a - b).abs() <= room))
