"""nao's verdict on frames, a column at a time, is the one that it gives on their rows."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tui_eval.frames import nao_reference
from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.nao_reference import compare_frames

KINDS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "whole": (pl.Int64, st.integers(-3, 3) | st.just(2**60)),
    "gaps": (pl.Int64, st.integers(0, 2) | st.none()),
    "float": (pl.Float64, st.sampled_from([0.0, -0.0, 0.004, 0.005, 0.015, 1.0, 1.004, 1.0000001, 99999.994, 1e5])),
    "float or none": (pl.Float64, st.sampled_from([0.5, 2.0, float("nan"), None])),
    "text": (pl.String, st.sampled_from(["a", "B", "ü", "", None])),
    "number text": (pl.String, st.sampled_from(["1", "2.50", "1,000", "€3", None])),
    "code": (pl.String, st.sampled_from(["a7", "007", None])),
    "bool": (pl.Boolean, st.booleans()),
}  # fmt: skip


@st.composite
def frames(draw: st.DrawFn) -> tuple[pl.DataFrame, pl.DataFrame]:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))
    rows = draw(st.integers(1, 6))
    schema = {f"{kind} {at}": KINDS[kind] for at, kind in enumerate(kinds)}
    expected = {
        name: draw(st.lists(some, min_size=rows, max_size=rows)) for name, (_, some) in schema.items()
    }
    actual = {name: list(cells) for name, cells in expected.items()}
    order = draw(st.permutations(range(rows)))
    actual = {name: [cells[at] for at in order] for name, cells in actual.items()}
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from(list(schema)))
        actual[name][draw(st.integers(0, rows - 1))] = draw(schema[name][1])
    types = {name: dtype for name, (dtype, _) in schema.items()}
    return pl.DataFrame(expected, schema=types), pl.DataFrame(actual, schema=types)


def rows_of(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return frame.fill_nan(None).to_dicts() if len(frame) else []


@pytest.mark.real
@examples(400)
@given(frames(), st.sampled_from([None, 0, 1, 3]))
def test_the_verdict_is_that_of_the_rows(
    sides: tuple[pl.DataFrame, pl.DataFrame], decimals: int | None
) -> None:
    expected, actual = sides
    settings = ComparisonSettings(decimals=decimals)
    found = compare_frames(actual, expected, settings, expected.columns)
    wanted = nao_reference.compare(rows_of(actual), rows_of(expected), settings, expected.columns)
    if found is not None:
        assert (found.passed, found.message) == (wanted.passed, wanted.message)


def test_kinds_that_every_cell_must_be_read_of_are_left_to_the_rows() -> None:
    plain = pl.DataFrame({"id": [1, 2]})
    for strange in (
        pl.Series("v", [[1], [2]]),
        pl.Series("v", ["7", "seven"]),
        pl.Series("v", [None, True]),
        pl.Series("v", [1e300, 1.0]),
        pl.Series("v", [2**63, 1], dtype=pl.UInt64),
    ):
        frame = plain.with_columns(strange)
        assert compare_frames(frame, frame) is None
    assert compare_frames(plain, plain.rename({"id": "other"})) is None


@pytest.mark.parametrize(("factor", "passed"), [(1.0, True), (1 + 1e-7, True), (1.01, False)])
def test_decimals_are_floats_as_in_rows(factor: float, passed: bool) -> None:
    expected = pl.DataFrame({"id": range(50), "v": pl.Series(range(50)).cast(pl.Decimal(18, 2)) / 4})
    actual = pl.DataFrame({"id": range(50), "v": [number / 4 * factor for number in range(50)]})
    found = compare_frames(actual.reverse(), expected)
    assert found is not None and found.passed is passed


def test_a_text_of_nothing_but_commas_is_left_to_what_reads_row_by_row() -> None:
    """nao ends with a ValueError there; the Data tab of a large answer did, too."""
    frame = pl.DataFrame({"a": ["1", ","]})
    assert compare_frames(frame, frame) is None
