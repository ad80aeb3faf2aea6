"""Cases of a plan, as they are and packed."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pytest

from tui_eval.model import Assertion, Case, Turn
from tui_eval.store.planned_cases import case_of, held


def case_with(value: Any) -> Case:
    asserted = [Assertion("contains"), Assertion("equals", value)]
    return Case("s::c", "c", "s", "promptfoo", turns=[Turn("hello")], vars={"v": value}, assertions=asserted)


@pytest.mark.parametrize(
    "value", ["text", "ü\u2028", 1, 1.0, True, None, [], {"a": [1, {"b": 0.1}]}, "x" * 9000, 2**60]
)
def test_a_case_that_json_can_say_is_held_packed_and_comes_back_the_same(value: Any) -> None:
    case = case_with(value)
    kept = held(case)
    assert isinstance(kept, bytes) and len(kept) < 400
    again = case_of(kept)
    assert again == case and repr(again) == repr(case)


@pytest.mark.parametrize(
    "value", [datetime.date(2026, 1, 1), math.nan, math.inf, (1, 2), {1: 2}, b"x", "\ud800", {1, 2}, 10**40]
)
def test_one_that_would_come_back_as_another_is_held_as_it_is(value: Any) -> None:
    case = case_with(value)
    assert case_of(held(case)) is case or repr(case_of(held(case))) == repr(case)


def test_a_whole_number_where_any_may_stand_stays_one() -> None:
    asserted = [Assertion("latency", threshold=2000, weight=2), Assertion("cost", threshold=0.5)]
    case = Case("s::c", "c", "s", "promptfoo", assertions=asserted, threshold=1)
    kept = held(case)
    assert isinstance(kept, bytes) and repr(case_of(kept)) == repr(case)  # and as a run that goes on reads it
