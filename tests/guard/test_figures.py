"""Money for people, and numbers that are none."""

from __future__ import annotations

from typing import Any

import pytest

from tui_eval.guard.figures import all_finite, reaches, usd, usd_in_full


@pytest.mark.parametrize(
    ("dollars", "said", "in_full"),
    [
        (0.0, "$0.0000", "$0.0000"),
        (1234.5, "$1,234.5000", "$1,234.5000"),
        (0.00005, "$0.0001", "$0.0001"),
        (0.0000492, "<$0.0001", "$0.000049"),
        (1.23e-6, "<$0.0001", "$0.0000012"),
        (5e-12, "<$0.0001", "$0.000000000005"),
        (1e-300, "<$0.0001", "<$0.000000000001"),
    ],
)
def test_what_cost_little_is_not_shown_as_having_cost_nothing(
    dollars: float, said: str, in_full: str
) -> None:
    assert (usd(dollars), usd_in_full(dollars)) == (said, in_full)
    assert usd_in_full(dollars, "") == in_full.replace("$", "").replace(",", "")


@pytest.mark.parametrize(
    ("costs", "limit", "reached"),
    [([0.01] * 10, 0.1, True), ([0.01] * 9, 0.1, False), ([1e-12], 1e-12, True), ([0.0999], 0.1, False)],
)
def test_a_limit_is_reached_by_as_many_answers_as_it_holds(
    costs: list[float], limit: float, reached: bool
) -> None:
    """0.01 added up ten times is a little less than 0.1: an eleventh answer was asked, and paid."""
    spent = 0.0
    for cost in costs:
        spent += cost
    assert reaches(spent, limit) == reached


def test_numbers_are_looked_at_however_deep_they_are_and_long_texts_are_not() -> None:
    """What a script gave was written as JSON again, which 50 MB of text took a second for on the loop of all cases, and
    what nests a thousand deep could not be."""
    deep: Any = 1
    for _ in range(5000):
        deep = {"in": [deep, "NaN"]}
    assert all_finite([deep, None, True, 10**400])
    assert not all_finite({"a": [deep, {"b": float("nan")}]})
    assert not all_finite(float("-inf"))
