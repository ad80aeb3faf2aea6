"""Differences by cell: rows aligned by key, said in words, quick to step through."""

from __future__ import annotations

import polars as pl
import pytest

from tui_eval.frames.compare import compare
from tui_eval.frames.difference import align
from tui_eval.frames.settings import ComparisonSettings

EXPECTED = [
    {"id": 1, "city": "Lyon", "v": 10.5},
    {"id": 2, "city": "Oslo", "v": 7.0},
    {"id": 3, "city": "Rome", "v": 1.0},
]


def test_rows_are_aligned_by_the_key_that_both_share() -> None:
    actual = [dict(EXPECTED[2]), {"id": 2, "city": "Oslo", "v": 8.0}, dict(EXPECTED[0])]
    found = align(EXPECTED, actual)
    assert found.key == ("id",)
    assert [found.status(i) for i in range(3)] == ["same", "different", "same"]
    row = found.row(1)
    assert (row.expected_index, row.actual_index) == (1, 1)
    assert [(c.expected, c.actual, c.same) for c in row.cells] == [
        ("2", "2", True),
        ("Oslo", "Oslo", True),
        ("7.0", "8.0", False),
    ]
    assert row.cells[2].why == "off by 1, allowed 7e-05"
    assert found.render() == "row 2 (id=2): v: expected 7.0, actual 8.0 (off by 1, allowed 7e-05)"


def test_a_wrong_id_aligns_by_another_column() -> None:
    actual = [dict(row, id=row["id"] + 10) for row in EXPECTED]
    assert align(EXPECTED, actual).key == ("city",)


def test_missing_and_extra_rows() -> None:
    actual = [
        EXPECTED[0],
        {"id": 9, "city": "Bonn", "v": 2.0},
        EXPECTED[2],
        {"id": 4, "city": "Kyiv", "v": 3.0},
    ]
    found = align(EXPECTED, actual)
    assert [found.status(i) for i in range(len(found))] == ["same", "missing", "same", "extra", "extra"]
    assert "missing row 2: id=2, city=Oslo, v=7.0" in found.render()
    assert "extra row 2: id=9, city=Bonn, v=2.0" in found.render()
    assert found.row(1).cells[0].actual is None


def test_without_a_key_equal_rows_pair_first() -> None:
    expected = [{"t": "a"}, {"t": "a"}, {"t": "b"}]
    found = align(expected, [{"t": "b"}, {"t": "a"}, {"t": "c"}])
    assert found.key == ()
    assert sorted(found.status(i) for i in range(len(found))) == ["different", "same", "same"]


def test_key_of_two_columns_and_key_given() -> None:
    expected = [{"y": y, "m": m, "v": 1} for y in (1, 2) for m in (1, 2)]
    assert set(align(expected, expected[::-1]).key) == {"y", "m"}
    assert align(expected, expected, ComparisonSettings(key=("m",))).key == ("m",)


def test_stepping() -> None:
    frame = pl.DataFrame({"id": range(1000), "v": range(1000)})
    actual = frame.with_columns(
        pl.when(pl.col("id").is_in([5, 500])).then(-1).otherwise(pl.col("v")).alias("v")
    )
    found = align(frame, actual)
    assert found.next_difference(-1) == 5
    assert found.next_difference(5) == 500
    assert found.next_difference(500) is None
    assert found.next_difference(500, backwards=True) == 5
    assert found.next_difference(5, backwards=True) is None
    with pytest.raises(IndexError):
        found.row(1000)


def test_types_and_nulls_say_why() -> None:
    found = align([{"k": "x", "a": 1, "b": 2, "c": 3}], [{"k": "x", "a": "one", "b": None, "c": True}])
    assert [cell.why for cell in found.row(0).cells] == ["", "type", "null", "type"]


def test_many_differences_are_cut() -> None:
    text = compare([{"x": f"b{i}"} for i in range(100)], [{"x": f"a{i}"} for i in range(100)]).text
    assert text is not None and len(text.splitlines()) == 21
    assert text.endswith("100 of 100 rows differ")


def test_missing_column() -> None:
    found = align([{"a": 1, "b": 2}], [{"a": 1}])
    assert found.status(0) == "different"
    assert found.row(0).cells[1].why == "column missing"
    assert found.render() == "missing columns: b"


def test_no_answer_at_all() -> None:
    found = align([{"a": 1}], None)
    assert len(found) == 1
    assert found.row(0).cells[0].expected is None or found.row(0).cells[0].expected == "1"
