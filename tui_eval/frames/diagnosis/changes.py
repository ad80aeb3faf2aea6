"""A way in which values of one column were changed, and how sure it is that it is no chance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl


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
    for digits in range(_MOST_DECIMALS):
        scaled = values * 10.0**digits
        if ((scaled - scaled.round(0)).abs() <= 1e-6 + 1e-15 * size * 10.0**digits).all():
            return digits
    return _MOST_DECIMALS


def number(value: Any) -> float:
    """A figure of a series, 0 where there is none."""
    return 0.0 if value is None else float(value)


def choose(of: int, some: int) -> float:
    """The decimal logarithm of how many ways there are to choose some of many."""
    if some <= 0 or some >= of:
        return 0.0
    return (math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)) / math.log(10)
