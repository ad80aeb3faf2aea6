"""Numbers that floats do not hold, and dates that blanks make another text, against slow exact arithmetic."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tui_eval.frames.compare import compare
from tui_eval.frames.comparison_rules import ComparisonSettings

BIG = 2**53
INTEGERS = st.sampled_from(
    [0, 1, BIG - 1, BIG, BIG + 1, BIG + 2, -BIG - 1, 2**60, 2**60 + 1, 10**17, 2**130, 2**130 + 1]
)
FLOATS = st.sampled_from(
    [0.0, 1.0, 1.0000001, 1.5, float(BIG), float(BIG + 2), float(2**60), 1e17, 1e17 + 16, 2.0**130]
)
DECIMALS = st.sampled_from([Decimal("1.5"), Decimal(BIG + 1), Decimal("9007199254740993.5"), Decimal("1")])
NEAR = st.sampled_from([BIG, BIG + 1, float(BIG), BIG + 2, Decimal(BIG + 1), 1.0])


def is_float(value: Any) -> bool:
    return isinstance(value, float)


def same(expected: Any, actual: Any, *, floats: bool, tolerance: tuple[Fraction, Fraction]) -> bool:
    """`floats`: whether the expected column is one of floats, in which every number is within the tolerance."""
    if expected is None or actual is None:
        return expected is actual
    e, a = Fraction(expected), Fraction(actual)
    relative, absolute = tolerance
    return e == a or ((floats or is_float(actual)) and abs(a - e) <= absolute + relative * abs(e))


def reference(expected: list[Any], actual: list[Any], tolerance: tuple[Fraction, Fraction]) -> bool:
    floats = any(map(is_float, expected))
    return any(
        all(same(e, a, floats=floats, tolerance=tolerance) for e, a in zip(expected, order, strict=True))
        for order in permutations(actual)
    )


@examples(400)
@given(st.data())
def test_verdicts_are_those_of_exact_fractions(data: st.DataObject) -> None:
    values = data.draw(st.sampled_from([st.none() | INTEGERS | FLOATS | DECIMALS, INTEGERS | FLOATS, NEAR]))
    expected = data.draw(
        st.lists(data.draw(st.sampled_from([values, INTEGERS, NEAR])), min_size=1, max_size=4)
    )
    actual = list(data.draw(st.permutations(expected)))
    for _ in range(data.draw(st.integers(0, 2))):
        actual[data.draw(st.integers(0, len(actual) - 1))] = data.draw(values)
    exactly = data.draw(st.booleans())
    settings = ComparisonSettings(rtol=0, atol=0) if exactly else ComparisonSettings()
    tolerance = (Fraction(0), Fraction(0)) if exactly else (Fraction(1, 10**5), Fraction(1, 10**8))
    found = compare([{"v": value} for value in actual], [{"v": value} for value in expected], settings)
    assert found.passed is reference(expected, actual, tolerance), (expected, actual, found)


@pytest.mark.parametrize("frame", [False, True])
def test_a_float_near_enough_passes_beside_an_integer_that_floats_cannot_hold(frame: bool) -> None:
    rows = [{"v": 1.5}, {"v": float(2**60)}]
    expected = pl.DataFrame(rows) if frame else rows
    found = compare([{"v": 1.500000001}, {"v": 2**60}], expected)
    assert (found.passed, found.message) == (True, "match (approximate)")
    assert compare([{"v": 1.6}, {"v": 2**60}], expected).passed is False


def test_an_integer_off_by_one_fails_beside_floats_too() -> None:
    expected = [{"v": 1}, {"v": BIG + 1}]
    assert compare([{"v": 1.0}, {"v": BIG + 1}], expected).passed is True
    assert compare([{"v": 1.0}, {"v": BIG}], expected).passed is False
    assert compare([{"v": 1.0}, {"v": BIG}], pl.DataFrame(expected)).passed is False


@pytest.mark.parametrize(
    "text", [" 2024-01-05", "2024-01-05 ", "2024-01-05\n", "\u00a02024-01-05", "٢٠٢٤-01-05"]
)
def test_blanks_around_a_date_make_it_another_text(text: str) -> None:
    day = pl.DataFrame({"d": [datetime.date(2024, 1, 5)]})
    assert compare([{"d": text}], day).passed is False
    assert compare([{"d": text}], [{"d": "2024-01-05"}]).passed is False
    assert compare([{"d": "2024-01-05T00:00:00"}], day).passed is True
    assert compare([{"d": "2024-01-05 00:00:00"}], [{"d": "2024-01-05"}]).passed is True
