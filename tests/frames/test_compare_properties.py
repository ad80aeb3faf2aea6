"""No false passes and no false failures, against a judge that tries every pairing."""

from __future__ import annotations

import math
from decimal import Decimal
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

INTEGERS = st.integers(-3, 3) | st.integers(99_998, 100_002) | st.integers(-(2**70), 2**70)
FLOATS = st.sampled_from(
    [0.0, -0.0, 1.0, 1.000005, 1.00001, 1.000015, 1.00002, 1.1, -1.0, -1.000009, 5e8, 5.00004e8]
)
TEXTS = st.sampled_from(["a", "b", "", " a", "42", "42.0", "null", "é", "e\u0301"])
KINDS = {"n": INTEGERS, "f": FLOATS, "g": FLOATS, "t": TEXTS}


@st.composite
def tables(draw: st.DrawFn, most: int = 5) -> list[dict[str, Any]]:
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True))
    count = draw(st.integers(1, most))
    return [{name: draw(st.none() | KINDS[name]) for name in names} for _ in range(count)]


def same_cell(expected: Any, actual: Any, is_float: bool) -> bool:
    if expected is None or actual is None:
        return expected is actual
    if is_float:
        return math.isclose(expected, actual, rel_tol=0, abs_tol=1e-8 + 1e-5 * abs(expected))
    return expected == actual


def oracle(expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> bool:
    def alike(e: dict[str, Any], a: dict[str, Any]) -> bool:
        return all(same_cell(e[name], a[name], name in "fg") for name in e)

    return any(all(map(alike, expected, chosen)) for chosen in permutations(actual))


@pytest.mark.real
@examples(400)
@given(st.data())
def test_verdict_is_that_of_every_pairing_tried(data: st.DataObject) -> None:
    expected = data.draw(tables())
    actual = [dict(row) for row in data.draw(st.permutations(expected))]
    for _ in range(data.draw(st.integers(0, 3))):
        row = data.draw(st.sampled_from(actual))
        name = data.draw(st.sampled_from(sorted(row)))
        row[name] = data.draw(st.none() | KINDS[name])
    result = compare(actual, expected)
    assert result.passed is oracle(expected, actual), (expected, actual, result)
    difference = align(expected, actual)
    if not oracle(expected, actual):
        assert len(difference.different_rows)


@pytest.mark.real
@examples(150)
@given(st.data())
def test_permuted_rows_and_columns_pass_exactly(data: st.DataObject) -> None:
    expected = data.draw(tables(most=30))
    actual = data.draw(st.permutations(expected))
    columns = data.draw(st.permutations(list(expected[0])))
    result = compare([{name: row[name] for name in columns} for row in actual], expected)
    assert (result.passed, result.message) == (True, "match")


@examples(150)
@given(st.lists(st.integers(-(2**50), 2**50), min_size=1, max_size=20), st.data())
def test_twins_of_other_number_types_pass(numbers: list[int], data: st.DataObject) -> None:
    def twin(number: int) -> Any:
        return data.draw(
            st.sampled_from([number, Decimal(number), Decimal(number) / 1, f"{number:,}", f" {number} "])
        )

    shuffled = data.draw(st.permutations(numbers))
    result = compare([{"x": twin(number)} for number in shuffled], [{"x": number} for number in numbers])
    assert result.passed, result
    floats = [{"x": float(number)} for number in shuffled]
    assert compare(floats, [{"x": number} for number in numbers]).passed
    frame = pl.DataFrame({"x": pl.Series(numbers, dtype=pl.Int64).cast(pl.Decimal(38, 4))})
    assert compare([{"x": number} for number in shuffled], frame).message == "match"


@examples(150)
@given(st.lists(st.integers(), min_size=1, max_size=20), st.data())
def test_a_changed_integer_never_passes(numbers: list[int], data: st.DataObject) -> None:
    changed = list(numbers)
    place = data.draw(st.integers(0, len(numbers) - 1))
    changed[place] += data.draw(st.sampled_from([1, -1, 2, 10**6]))
    shuffled = data.draw(st.permutations(changed))
    assert compare([{"x": n} for n in shuffled], [{"x": n} for n in numbers]).passed is False


CELLS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.decimals() | st.lists(
    st.integers(), max_size=2
) | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2)  # fmt: skip


@pytest.mark.real
@examples(300)
@given(
    st.lists(st.fixed_dictionaries({"a": CELLS, "b": CELLS}), min_size=1, max_size=4),
    st.lists(st.fixed_dictionaries({"a": CELLS, "b": CELLS}), max_size=4),
    st.booleans(),
    st.sampled_from([None, 0.0, 0.5, 3.0]),
    st.sampled_from([None, 0, 2]),
)
def test_anything_gets_a_verdict(
    expected: list[dict[str, Any]],
    actual: list[dict[str, Any]],
    ordered: bool,
    tolerance: float | None,
    decimals: int | None,
) -> None:
    chosen = ComparisonSettings(rtol=tolerance, atol=tolerance, decimals=decimals, ordered=ordered)
    assert compare(actual, expected, chosen).passed is not None
    assert compare(expected[::-1], expected, ComparisonSettings(decimals=decimals)).passed is True
