"""Numbers that floats do not hold, and dates that blanks make another text, against slow exact arithmetic."""

from __future__ import annotations

import datetime
import math
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
from tui_eval.frames.difference import align

BIG = 2**53
INTEGERS = st.sampled_from(
    [0, 1, 250001, BIG - 1, BIG, BIG + 1, BIG + 2, -BIG - 1, 2**60, 2**60 + 1, 10**17, 2**130, 2**130 + 1]
)
FLOATS = st.sampled_from(
    [
        0.0,
        1.0,
        1.0000000001,
        1.0000001,
        1.5,
        250001.4,
        250002.0,
        float(BIG),
        float(BIG + 2),
        float(2**60),
        1e17,
        1e17 + 16,
        2.0**130,
    ]
)
DECIMALS = st.sampled_from([Decimal("1.5"), Decimal(BIG + 1), Decimal("9007199254740993.5"), Decimal("1")])
NEAR = st.sampled_from([BIG, BIG + 1, float(BIG), BIG + 2, Decimal(BIG + 1), 1.0])


def is_float(value: Any) -> bool:
    return isinstance(value, float)


def decimals(value: Any) -> int:
    return max(-int(value.as_tuple().exponent), 0) if isinstance(value, Decimal) else 0


def stands_for(expected: Any, actual: float, scale: int, wide: bool) -> bool:
    """Whether a float is an exact number of a column with so many decimals; `wide`: beside exact numbers that no
    float holds, where floats are taken by their exact value."""
    e, a, unit = Fraction(expected), Fraction(actual), Fraction(1, 10**scale)
    if abs(e) >= 2**51 * unit:
        whole = e.denominator == 1
        written = Decimal(repr(float(expected))) == Decimal(expected)
        return e == a or (not wide and Fraction(float(expected)) == a and (written or not whole))
    if scale:
        return abs(a - e) <= min(unit / 2, Fraction(1, 10**8) + Fraction(1, 10**5) * abs(e))
    return abs(a - e) <= min(Fraction(1, 1000), Fraction(1, 10**8) + Fraction(1, 10**12) * abs(e))


def reference(expected: list[Any], actual: list[Any], tolerance: tuple[Fraction, Fraction]) -> bool:
    """`tolerance` 0: given as that. A column of floats is one in which every number is within the tolerance."""
    floats = any(map(is_float, expected))
    scale = max(map(decimals, expected))
    relative, absolute = tolerance
    wide = any(not is_float(v) and v is not None and abs(v) * 10**scale >= 2**51 for v in actual)

    def same(expected: Any, actual: Any) -> bool:
        if expected is None or actual is None:
            return expected is actual
        e, a = Fraction(expected), Fraction(actual)
        if e == a or floats or not absolute:
            return e == a or (floats and abs(a - e) <= absolute + relative * abs(e))
        return is_float(actual) and stands_for(expected, actual, scale, wide)

    return any(
        all(same(e, a) for e, a in zip(expected, order, strict=True)) for order in permutations(actual)
    )


@pytest.mark.real
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


def judged(expected: Any, actual: Any, **settings: Any) -> tuple[bool | None, str]:
    """A cell of JSON, and the same of a frame: one verdict; the frame's message."""
    kept = compare([{"v": actual}], [{"v": expected}], ComparisonSettings(**settings))
    found = compare([{"v": actual}], pl.DataFrame([{"v": expected}]), ComparisonSettings(**settings))
    assert kept.passed is found.passed
    return found.passed, found.message


NEAR_MISS = (False, "values differ (within nao's tolerance)")


@pytest.mark.parametrize(
    ("expected", "actual", "verdict"),
    [
        (250001, 250002.0, NEAR_MISS),
        (250001, 250001.4, NEAR_MISS),
        (250001, 250001.001, NEAR_MISS),
        (1, 1.0000001, NEAR_MISS),
        (99, 99.0001, NEAR_MISS),
        (1, 1.001, (False, "values differ")),
        (0, 1e-7, (False, "values differ")),
        (250001, 250001.0, (True, "match")),
        (250001, 250001.00000000003, (True, "match")),
        (0, 1e-9, (True, "match (approximate)")),
        (-250001, -250000.6, NEAR_MISS),
        (BIG + 1, float(BIG), NEAR_MISS),
        (BIG + 2, float(BIG + 2), (True, "match")),
        (10**30, 1e30, (True, "match")),
        (10**30 + 1, 1e30, NEAR_MISS),
        (5, float("inf"), (False, "values differ")),
        (Decimal("250.10"), 250.1, (True, "match")),
        (Decimal("250.10"), 250.11, (False, "values differ")),
        (Decimal("250000.10"), 250000.11, NEAR_MISS),
        (Decimal("250000.10"), 250000.1000000001, (True, "match")),
        (Decimal("250000.10"), 250000.104, (True, "match (approximate)")),
        (Decimal("250000.10"), 250000.106, NEAR_MISS),
        (Decimal("33.3333"), 33.333333333, (True, "match (approximate)")),
        (Decimal("12345678901234567.89"), 12345678901234567.89, (True, "match (approximate)")),
        (Decimal("12345678901234567.89"), 12345678901234570.0, NEAR_MISS),
    ],
)
def test_a_float_stands_for_an_exact_number_or_does_not(
    expected: Any, actual: float, verdict: tuple[bool, str]
) -> None:
    assert judged(expected, actual) == verdict
    assert judged(expected, actual, rtol=1e-5, exact_integers=True) == verdict


def test_the_tolerance_holds_where_floats_are_expected_or_where_it_is_given() -> None:
    assert judged(250001.0, 250002)[0] is True
    assert judged(250001, 250002.0, rtol=1e-5)[0] is True


def test_whole_numbers_beside_fractions_and_texts_of_the_answer_are_exact() -> None:
    expected = pl.DataFrame({"v": [250001, 7, None]})
    assert compare([{"v": 250001.0}, {"v": "7"}, {"v": None}], expected).passed is True
    assert compare([{"v": 250002.0}, {"v": "7"}, {"v": None}], expected).passed is False
    assert compare([{"v": 250001.0}, {"v": "x"}, {"v": None}], expected).passed is False


def test_integers_that_no_column_holds_are_exact_beside_floats() -> None:
    assert compare([{"v": 1e40}], [{"v": 10**40}]).passed is True
    assert compare([{"v": 1e40}], [{"v": 10**40 + 1}]).passed is False
    assert compare([{"v": 1e40}], [{"v": 10**40 + 1}], ComparisonSettings(rtol=1e-5)).passed is True


def test_big_ids_within_the_tolerance_of_floats_are_no_exact_match() -> None:
    for expected, actual in ((float(BIG), BIG + 1), (float(BIG), float(BIG + 2)), (2.0**60, 2**60 + 1)):
        assert judged(expected, actual) == (True, "match (approximate)")
    assert judged(2.0**60, 2**60) == (True, "match")
    assert judged(float("inf"), float("inf")) == (True, "match")


def test_decimals_are_rounded_and_exact_still() -> None:
    cents = Decimal("250000.104")
    assert judged(cents, 250000.1, decimals=2)[0] is True
    assert judged(cents, Decimal("250000.099"), decimals=2)[0] is True
    assert judged(cents, 250000.11, decimals=2)[0] is False
    assert judged(Decimal("-0.125"), Decimal("-0.12"), decimals=2)[0] is True  # half to even
    assert judged(Decimal("-0.135"), Decimal("-0.14"), decimals=2)[0] is True


def test_why_says_what_a_float_lacks() -> None:
    def why(expected: Any, actual: Any) -> str:
        return align([{"v": expected}], [{"v": actual}]).row(0).cells[0].why

    assert why(250001, 250002.0) == "off by 1, within nao's tolerance"
    assert why(Decimal("250000.10"), 250000.104) == "off by 0.004, allowed 0.005"
    assert why(Decimal("12345678901234567.89"), 12345678901234567.89).endswith(
        "the nearest that a float holds"
    )


def test_nan_is_nothing_and_infinity_is_not() -> None:
    nan, infinite = float("nan"), float("inf")
    assert judged(None, nan) == judged(nan, None) == (True, "match")
    for expected, actual in ((infinite, -infinite), (infinite, nan), (-infinite, nan), (nan, infinite)):
        assert judged(expected, actual)[0] is False
        assert compare([{"v": actual}, {"v": 1.5}], [{"v": expected}, {"v": 1.5}]).passed is False
    assert judged(infinite, None) == (True, "match")
    assert judged(0, nan)[0] is judged(nan, 0)[0] is False


@pytest.mark.parametrize("infinite", [math.inf, -math.inf])
def test_beside_infinity_in_another_row_values_have_their_tolerance(infinite: float) -> None:
    expected = pl.DataFrame({"v": [infinite, 1.0, infinite]})
    assert compare([{"v": 1.000001}, {"v": infinite}, {"v": infinite}], expected).passed is True
    assert compare([{"v": 1.000001}, {"v": infinite}, {"v": -infinite}], expected).passed is False
    assert compare([{"v": 1.1}, {"v": infinite}, {"v": infinite}], expected).passed is False


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


@pytest.mark.parametrize("text", ["2024-01-05 10:11:12 ", " 2024-01-05T10:11:12", "2024-01-05 10:11:12.50 "])
def test_blanks_around_a_timestamp_make_it_another_text(text: str) -> None:
    moment = pl.DataFrame({"t": [datetime.datetime.fromisoformat(text.strip())]})
    assert compare([{"t": text.strip()}], moment).passed is True
    assert compare([{"t": text}], moment).passed is False


@pytest.mark.parametrize("actual", [["b", 1.5, "a"], ["a", "b", 1.5], [2.5, "b", "a"]])
def test_rows_of_texts_and_numbers_in_another_order_are_in_another_one(actual: list[Any]) -> None:
    """Where order counts each cell is held against its own, its text as well as its number."""
    settings = ComparisonSettings(ordered=True)
    expected = [{"x": "a"}, {"x": 1.5}, {"x": "b"}]
    assert compare([{"x": cell} for cell in actual], expected, settings).passed is False
    assert compare([{"x": "a"}, {"x": 1.5000001}, {"x": "b"}], expected, settings).passed is True


@pytest.mark.parametrize(
    ("tolerance", "actual", "passed"),
    [
        ({}, ["2.50", "a"], True),
        ({"atol": 0.0}, ["2.50", "a"], True),
        ({}, ["2.51", "a"], False),
        ({}, ["a", 2.5], True),
    ],
)
def test_a_text_of_the_answer_may_be_a_number_of_a_column_that_has_texts_too(
    tolerance: dict[str, Any], actual: list[Any], passed: bool
) -> None:
    expected = [{"x": 2.5}, {"x": "a"}]
    found = compare([{"x": cell} for cell in actual], expected, ComparisonSettings(**tolerance))
    assert found.passed is passed


@pytest.mark.parametrize("kind", ["INTEGER[]", "DATE", "VARCHAR", "DOUBLE"])
@pytest.mark.parametrize(("actual", "shown"), [("", '""'), (5, "5"), (True, "true")])
def test_what_stands_where_nothing_is_expected_is_shown_beside_it(kind: str, actual: Any, shown: str) -> None:
    found = compare([{"x": actual}], [{"x": None}], None, None, None, {"x": kind})
    assert (found.passed, found.text) == (False, f"row 1: x: expected null, actual {shown} (not null)")
