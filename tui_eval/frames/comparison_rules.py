"""The rules by which rows are compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

RTOL = 1e-5
ATOL = 1e-8


@dataclass(frozen=True, slots=True)
class ComparisonSettings:
    """How rows are compared.

    `rtol` and `atol` None: 1e-5 and 1e-8, floats only; given, they apply to integers and decimals
    too unless `exact_integers` is set (tolerances of a whole nao project, which are for floats).
    `decimals` rounds floats before the tolerance (None: no rounding; the reference's 2).
    `ordered` makes row order count. `key` names the columns that align rows for display.
    """

    rtol: float | None = None
    atol: float | None = None
    decimals: int | None = None
    ordered: bool = False
    key: tuple[str, ...] | None = None
    exact_integers: bool = False

    @property
    def explicit(self) -> bool:
        """Whether a tolerance was given for the suite or case, so that it counts for integers."""
        return (self.rtol is not None or self.atol is not None) and not self.exact_integers

    @property
    def relative(self) -> float:
        """The relative tolerance in force."""
        return RTOL if self.rtol is None else self.rtol

    @property
    def absolute(self) -> float:
        """The absolute tolerance in force."""
        return ATOL if self.atol is None else self.atol

    @classmethod
    def kept(cls, values: Mapping[str, Any]) -> ComparisonSettings:
        """Settings as a run keeps them with an attempt's rows; what is not known is left out."""
        known = ("rtol", "atol", "decimals", "ordered", "key", "exact_integers")
        given = {name: values[name] for name in known if values.get(name) is not None}
        if "exact_integers" not in given and (given.get("rtol"), given.get("atol")) == (RTOL, ATOL):
            given["exact_integers"] = True  # runs before 0.2 kept the tolerance in force, given or not
        try:
            return cls.of(given)
        except ValueError:
            return cls()

    @classmethod
    def of(cls, values: Mapping[str, Any] | None) -> ComparisonSettings:
        """Settings from a `comparison:` mapping; unknown keys are the reader's business.

        Raises:
            ValueError: a value of the wrong kind, in one line.
        """
        values = values or {}
        key = values.get("key")
        if isinstance(key, str):
            key = [key]
        decimals = values.get("decimals")
        whole = isinstance(decimals, int) and not isinstance(decimals, bool) and decimals >= 0
        if decimals is not None and not whole:
            raise ValueError(f"comparison.decimals must be a whole number of 0 or more, not {decimals!r}")
        return cls(
            rtol=_tolerance("rtol", values.get("rtol")),
            atol=_tolerance("atol", values.get("atol")),
            decimals=decimals,
            ordered=bool(values.get("ordered", False)),
            key=tuple(str(name) for name in key) if key else None,
            exact_integers=bool(values.get("exact_integers", False)),
        )

    def shown(self) -> dict[str, Any]:
        """The settings in force as the results file and the Data tab show them; `of` reads them back."""
        return {
            "rtol": self.relative,
            "atol": self.absolute,
            "exact_integers": not self.explicit,
            "decimals": self.decimals,
            "ordered": self.ordered,
            "key": list(self.key) if self.key else None,
        }


def _tolerance(name: str, value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"comparison.{name} must be a number, not {value!r}") from None
    if isinstance(value, bool) or not number >= 0:
        raise ValueError(f"comparison.{name} must be a number of at least 0, not {value!r}")
    return number


def keys_not_given(key: Iterable[str], columns: Collection[str]) -> dict[str, str]:
    """The columns of `comparison.key` that a query does not give, each with the words for it."""
    return {name: f"the query gives no column {name!r}" for name in key if name not in columns}


def names_repeated(renamed: Mapping[str, str]) -> list[str]:
    """The words for each column that a query calls as another one before it, by its name in the comparison."""
    return [
        f"the query has several columns called {own!r}: this one is compared as {name!r}"
        for name, own in renamed.items()
    ]
