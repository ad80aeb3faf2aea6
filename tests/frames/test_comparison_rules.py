"""Which rules are taken, which refused, and how runs of before kept them."""

from __future__ import annotations

from typing import Any

import pytest

from tui_eval.frames.compare import compare
from tui_eval.frames.comparison_rules import ComparisonSettings


@pytest.mark.parametrize("decimals", [True, -1, 1.0, "2"])
def test_decimals_are_a_whole_number_of_0_or_more(decimals: Any) -> None:
    with pytest.raises(ValueError, match=r"comparison\.decimals must be a whole number"):
        ComparisonSettings.of({"decimals": decimals})


def test_no_decimals_are_whole_numbers() -> None:
    settings = ComparisonSettings.of({"decimals": 0})
    assert settings.decimals == 0
    assert compare([{"x": 1.4}], [{"x": 1.2}], settings).passed is True
    assert compare([{"x": 1.6}], [{"x": 1.2}], settings).passed is False


@pytest.mark.parametrize("name", ["rtol", "atol"])
@pytest.mark.parametrize("value", [True, -1e-9, "near", float("nan"), [1]])
def test_a_tolerance_is_a_number_of_at_least_0(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"comparison\.{name} must be a number"):
        ComparisonSettings.of({name: value})


@pytest.mark.parametrize(
    ("kept", "explicit"),
    [
        ({"rtol": 1e-5, "atol": 1e-8}, False),  # a run of before 0.2: those in force
        ({"rtol": 1e-5, "atol": 1e-8, "exact_integers": False}, True),
        ({"rtol": 1e-3, "atol": 1e-8}, True),
        ({"rtol": 1e-3, "atol": 1e-8, "exact_integers": True}, False),
        ({}, False),
    ],
)
def test_rules_that_a_run_kept_are_read_as_they_were_in_force(kept: dict[str, Any], explicit: bool) -> None:
    assert ComparisonSettings.kept({**kept, "compat": "documented"}).explicit is explicit


def test_rules_that_nobody_can_read_any_more_are_the_usual_ones() -> None:
    assert ComparisonSettings.kept({"decimals": "two", "ordered": True}) == ComparisonSettings()


@pytest.mark.parametrize(
    "given", [{}, {"rtol": 0.1}, {"atol": 0, "ordered": True, "key": "x"}, {"decimals": 2}]
)
def test_what_is_shown_is_read_back(given: dict[str, Any]) -> None:
    settings = ComparisonSettings.of(given)
    again = ComparisonSettings.of(settings.shown())
    for name in ("relative", "absolute", "explicit", "decimals", "ordered", "key"):
        assert getattr(again, name) == getattr(settings, name)
