"""The documented comparison: the recorded verdicts that hold, the mended ones, and no false verdicts."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tui_eval.frames.compare import compare
from tui_eval.frames.comparison_rules import ComparisonSettings

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "vectors" / "nao_compare.jsonl")
    .read_text("utf-8")
    .splitlines()
]
MENDED = {
    "num-10", "num-18", "num-19", "num-20", "num-21", "round-merge-sort", "str-03", "str-74", "str-75",
}  # fmt: skip


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_agrees_with_what_does_not_surprise(vector: dict[str, Any]) -> None:
    result = compare(
        vector["actual"],
        vector["expected"],
        ComparisonSettings(**vector.get("options", {})),
        vector["expected_columns"],
        vector.get("error"),
    )
    assert result.passed is not None, result.message
    if vector["id"] in MENDED or vector.get("surprising"):
        return
    assert result.passed is vector["verdict"]["passed"]
    assert result.message.removesuffix(" (within nao's tolerance)") == vector["verdict"]["message"]


def rows(*values: Any) -> list[dict[str, Any]]:
    return [{"x": value} for value in values]


@pytest.mark.parametrize(
    ("expected", "actual", "passed"),
    [
        (1, True, False),
        (True, 1, False),
        ("true", True, False),
        (9007199254740993, 9007199254740992, False),
        (100000, 100001, False),
        (100000.0, 100001, True),
        (Decimal("1.10"), Decimal("1.1"), True),
        (Decimal("100000.01"), Decimal("100000.02"), False),
        (Decimal("130.74"), 130.74, True),
        (1234.5, "1.234,5", True),
        (1234567, "1.234.567", True),
        (15, "1,5", False),
        (1.5, "1,5", False),
        (5, ",5", False),
        (5, "5,", False),
        (1234, "1,234", True),
        (-5, "-$5", True),
        (0.123, "0,123", False),
        ("007", 7, False),
        ("1.5", 1.50, True),
        ("42", 42.0, True),
        ("007", "7", False),
        ("2024-01-05T00:00:00", "2024-01-05", True),
        ("2024-01-05T10:00:00+00:00", "2024-01-05T10:00:00Z", True),
        ("2024-01-05T10:00:00", "2024-01-05T11:00:00", False),
        ([1, 2], [1, 2.0], True),
        ([1, 2], [2, 1], False),
        ({"a": 1, "b": None}, {"b": None, "a": 1}, True),
        (None, None, True),
        (None, "", False),
        (None, 0, False),
        (10**60, 10**60 + 1, False),
        (10**60, 10**60, True),
        (0.0, -0.0, True),
        (float("inf"), None, True),
        (float("inf"), float("-inf"), False),
        (1e308, -1e308, False),
        (1e60, 10**60, True),
        (1e60, 2 * 10**60, False),
    ],
)
def test_one_cell(expected: Any, actual: Any, passed: bool) -> None:
    result = compare(rows(actual), rows(expected))
    assert result.passed is passed, result


def test_near_miss_of_integers_says_so() -> None:
    result = compare(rows(250002), rows(250001))
    assert (result.passed, result.message) == (False, "values differ (within nao's tolerance)")
    assert result.text == "row 1: x: expected 250001, actual 250002 (off by 1, within nao's tolerance)"


def test_near_miss_written_as_text() -> None:
    assert compare(rows("250,002"), rows(250001)).message == "values differ (within nao's tolerance)"


def test_tolerance_given_counts_for_integers() -> None:
    assert compare(rows(100001), rows(100000), ComparisonSettings(rtol=1e-5)).passed
    assert not compare(rows(100001), rows(100000), ComparisonSettings(atol=0.5, rtol=0)).passed
    big = 2**60
    assert not compare(rows(big + 2), rows(big), ComparisonSettings(atol=1, rtol=0)).passed
    assert compare(rows(Decimal("0.31")), rows(Decimal("0.30")), ComparisonSettings(atol=0.01, rtol=0)).passed


def test_decimals_round_only_when_set() -> None:
    assert not compare(rows(1.001), rows(1.004)).passed
    assert compare(rows(1.001), rows(1.004), ComparisonSettings(decimals=2)).passed
    assert compare(rows(1.5), rows(1.5), ComparisonSettings(decimals=400)).passed
    assert compare(rows(1.5), rows(2.5), ComparisonSettings(decimals=400)).passed is False


@pytest.mark.parametrize("given", [float, str, Decimal], ids=["float", "text", "decimal"])
@pytest.mark.parametrize(
    "text", ["1.015", "2.675", "1.005", "-8.125", "-1308769553.505", "19.99", "8579544943.051"]
)
@pytest.mark.parametrize(
    "settings",
    [
        {"decimals": 2},
        {"decimals": 1},
        {"rtol": 0, "atol": 0},
        {"rtol": 0},
        {"decimals": 2, "rtol": 0, "atol": 0},
    ],
    ids=str,
)
def test_a_number_is_itself_under_all_settings(settings: dict[str, Any], text: str, given: Any) -> None:
    """1.015 was 1.01 as a float and 1.02 as a decimal; of a tolerance of 0 the expected 19.99 was
    19.990000000000002."""
    for expected in (Decimal(text), float(text)):
        found = compare(rows(given(text)), rows(expected), ComparisonSettings(**settings))
        assert found.passed, found.text


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("-0.9777181687807142", {"rtol": 0, "atol": 0}),
        ("7.8711388141e-20", {"rtol": 0, "atol": 0}),
        ("90071992547409.94", {"rtol": 0, "atol": 0}),
        ("-90544035764610.19", {"rtol": 0}),
        ("93560595274973.75", {"decimals": 2, "rtol": 0, "atol": 0}),
        ("-535311425773074.44", {"rtol": 0, "atol": 0.05}),
    ],
)
def test_a_number_of_many_digits_is_itself(text: str, settings: dict[str, Any]) -> None:
    """As a float it was rounded twice, or its digits were those that it has in binary."""
    for expected in (Decimal(text), float(text)):
        for given in (float(text), format(Decimal(text), "f"), Decimal(text)):
            found = compare(rows(given), rows(expected), ComparisonSettings(**settings))
            assert found.passed, (expected, given, found.text)
    assert not compare(rows(Decimal(text) * 2), rows(float(text)), ComparisonSettings(rtol=0, atol=0)).passed


@pytest.mark.parametrize("given", [float, str, Decimal], ids=["float", "text", "decimal"])
@pytest.mark.parametrize("kind", [float, Decimal], ids=["float", "decimal"])
@pytest.mark.parametrize(
    ("expected", "actual", "beyond", "settings"),
    [
        ("1.0", "1.3", "1.30001", {"atol": 0.3, "rtol": 0}),
        ("0.35", "0.36", "0.37", {"decimals": 2, "atol": 0.01, "rtol": 0}),
        ("9.41", "9.4", "9.39", {"decimals": 2, "atol": 0.01, "rtol": 0}),
        ("60923960888.52", "60923960888.51", "60923960888.5", {"atol": 0.01, "rtol": 0}),
        ("100.5", "129.645", "129.646", {"atol": 0, "rtol": 0.29}),
        ("1000000000.5", "1000000000.5", "1000000000.5000001", {"rtol": 0}),
    ],
)
def test_a_number_may_differ_by_all_of_the_tolerance(
    expected: str, actual: str, beyond: str, settings: dict[str, Any], kind: Any, given: Any
) -> None:
    """`off by 0.3, allowed 0.3` was red: a float of 1.3 is a little more than 0.3 above 1."""
    for more in ([], [7.0, 7.5]):  # one row, and several
        others = [str(one) for one in more]
        wanted = rows(*map(kind, [expected, *others]))
        assert compare(rows(*map(given, [*others, actual])), wanted, ComparisonSettings(**settings)).passed
        found = compare(rows(*map(given, [*others, beyond])), wanted, ComparisonSettings(**settings))
        assert not found.passed


def test_integers_beside_floats_of_the_answer_stay_exact() -> None:
    assert not compare(rows(250002, 7.0), rows(250001, 7)).passed
    assert compare(rows(250001, 7.0), rows(250001, 7)).passed


def test_tolerance_pairs_rows_that_sorting_would_not() -> None:
    expected = [{"a": 100000.02, "b": "y"}, {"a": 100000.01, "b": "x"}]
    actual = [{"a": 100000.01, "b": "y"}, {"a": 100000.02, "b": "x"}]
    assert compare(actual, expected).passed
    expected = [{"a": 1.0, "b": 2.0}, {"a": 1.000001, "b": 1.0}]
    actual = [{"a": 1.000001, "b": 2.0}, {"a": 1.0, "b": 1.0}]
    assert compare(actual, expected).passed


def test_chains_of_close_values_are_matched_not_sorted() -> None:
    settings = ComparisonSettings(rtol=0, atol=1.5)
    expected = [{"a": float(i), "b": float(i % 7)} for i in range(40)]
    actual = [{"a": float(i) + (1 if i % 2 else -1), "b": float(i % 7)} for i in range(40)]
    assert compare(actual[::-1], expected, settings).passed
    wrong = [dict(row) for row in actual]
    wrong[3]["b"] = 99.0
    assert not compare(wrong, expected, settings).passed


def test_alike_rows_count() -> None:
    assert not compare(rows(1.0, 1.0, 2.0), rows(1.0, 2.0, 2.0)).passed
    assert compare(rows(2.0, 1.0, 1.0000001), rows(1.0, 1.0, 2.0)).passed


def test_ordered_rows() -> None:
    ordered = ComparisonSettings(ordered=True)
    result = compare(rows(2, 1), rows(1, 2), ordered)
    assert (result.passed, result.message) == (False, "row order differs")
    assert result.text == "the same rows in another order: 1 of 2 stand elsewhere"
    assert compare(rows(1, 2), rows(1, 2), ordered).message == "match"


def test_frames_are_compared_by_value_whatever_their_types() -> None:
    left = pl.DataFrame(
        {"a": pl.Series([1, 2], dtype=pl.Int8), "b": pl.Series(["1.50", "2"]).cast(pl.Decimal(38, 2))}
    )
    right = pl.DataFrame(
        {"b": pl.Series(["2", "1.5"]).cast(pl.Decimal(10, 4)), "a": pl.Series([2, 1], dtype=pl.UInt64)}
    )
    assert compare(left, right).passed


def test_missing_columns_still_show_the_rest() -> None:
    result = compare([{"id": 1, "v": 3}], [{"id": 1, "v": 2, "w": 9}])
    assert result.message == "missing columns: {'w'}"
    assert result.text is not None and "v: expected 2, actual 3" in result.text


@pytest.mark.parametrize("bad", ["text", 5, [1], [[1]], {"a": 1}])
def test_what_is_no_table_is_an_error_not_an_exception(bad: Any) -> None:
    assert compare(bad, rows(1)).passed is None


@pytest.mark.real
def test_hostile_cells_never_raise() -> None:
    for value in [
        "\ud800",
        "\x00",
        float("nan"),
        10**5000,
        {"a": {"b": [None]}},
        Decimal("NaN"),
        object(),
        b"\xff",
    ]:
        for other in [1, 1.5, "a", None, True, [1]]:
            compare(rows(value, other), rows(other, other))
            compare(rows(other, other), rows(value, other))


def test_nested_columns_of_any_frame() -> None:
    frame = pl.DataFrame({"x": [[1, 2], [3]]})
    assert compare([{"x": [3]}, {"x": [1, 2]}], frame).passed
    assert not compare([{"x": [3]}, {"x": [2, 1]}], frame).passed


def test_large_integers_beside_fractions_in_a_float_column() -> None:
    assert compare(rows(10**17, 1.5), pl.DataFrame({"x": [1.5, 1e17]})).passed


def test_project_wide_tolerance_leaves_integers_exact() -> None:
    settings = ComparisonSettings.of({"rtol": 1e-5, "atol": 1e-8, "exact_integers": True})
    assert not compare(rows(100001), rows(100000), settings).passed
    assert compare(rows(100000.1), rows(100000.0), settings).passed


@pytest.mark.parametrize("bad", [{"rtol": "x"}, {"atol": -1}, {"decimals": 1.5}, {"rtol": True}])
def test_settings_of_the_wrong_kind_say_so(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="comparison"):
        ComparisonSettings.of(bad)


def test_rows_in_another_order_match_exactly_also_where_neighbours_are_within_the_tolerance() -> None:
    rows = [{"f": 1.0, "g": None}, {"f": 1.000005, "g": None}]
    assert compare(rows[::-1], rows).message == "match"
    assert compare([rows[0], rows[0]], rows).message == "match (approximate)"


NAN = float("nan")
DAY, NOON = datetime.date(2024, 1, 5), datetime.datetime(2024, 1, 5, 12)


@pytest.mark.parametrize(
    ("kind", "expected", "actual", "passes"),
    [
        (pl.String, ["a", None], ["a", NAN], True),
        (pl.String, ["a", None], [NAN, "a"], True),
        (pl.String, ["a", "b"], ["a", NAN], False),
        (pl.String, ["a", "nan"], ["a", NAN], False),
        (pl.String, [None, None], [NAN, NAN], True),
        (pl.String, [None, "a"], [NAN, NAN], False),
        (pl.Date, [DAY, None], ["2024-01-05", NAN], True),
        (pl.Date, [None, None], [NAN, NAN], True),
        (pl.Datetime, [NOON, None], ["2024-01-05T12:00:00", NAN], True),
        (pl.Boolean, [True, None], [True, NAN], True),
        (pl.Boolean, [None, None], [NAN, None], True),
        (pl.Boolean, [True, False], [True, NAN], False),
        (pl.Float64, [1.5, None], [1.5, NAN], True),
        (pl.Float64, [NAN, NAN], [None, NAN], True),
        (pl.Int64, [1, None], [1, NAN], True),
        (pl.Int64, [1, None], ["1", NAN], True),
        (pl.Int64, [1, None], ["1", Decimal("sNaN")], True),
        (pl.Int64, [1, 2], ["1", NAN], False),
        (pl.String, ["a", None], ["a", Decimal("NaN")], True),
    ],
)
def test_nan_is_null_in_columns_of_every_kind(
    kind: Any, expected: list[Any], actual: list[Any], passes: bool
) -> None:
    frame = pl.DataFrame({"x": pl.Series(expected, dtype=kind)})
    assert compare(rows(*actual), frame).passed is passes
    assert compare(rows(*actual), rows(*frame["x"])).passed is passes


@pytest.mark.parametrize("many", [1, 3])
def test_rows_without_columns_are_rows(many: int) -> None:
    """nao takes them for nothing (formats/nao.md section 3, step 2): no row and three rows are not the same."""
    from tui_eval.frames.nao_reference import compare as of_nao

    for expected in ([], pl.DataFrame({"x": []})):
        result = compare([{}] * many, expected, columns=["x"])
        assert (result.passed, result.message) == (False, f"row count: {many} vs 0")
    assert of_nao([{}] * many, [], columns=["x"]).passed is True
    assert compare([], pl.DataFrame({"x": []})).message == "both empty"
