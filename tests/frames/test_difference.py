"""Differences by cell: rows aligned by key, said in words, quick to step through."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import hypothesis
import polars as pl
import pytest
from hypothesis import strategies as st

from tui_eval.frames.compare import compare
from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.difference import align
from tui_eval.frames.queries import gives_expected
from tui_eval.frames.sql import SqlResult
from tui_eval.frames.sql import rows as records
from tui_eval.frames.typed_columns import frame_of

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
    assert [found.status(i) for i in range(len(found))] == ["same", "missing", "extra", "same", "extra"]
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


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        (None, "", 'expected null, actual "" (not null)'),
        ("", None, 'expected "", actual null (null)'),
        ("null", None, 'expected "null", actual null (null)'),
        ("Ann", "Ann ", 'expected Ann, actual "Ann "'),
        ("Ann", "", 'expected Ann, actual ""'),
        ("a", "b", "expected a, actual b"),
    ],
)
def test_no_value_is_invisible_in_words(expected: Any, actual: Any, words: str) -> None:
    found = align([{"id": 1, "t": expected}], [{"id": 1, "t": actual}], ComparisonSettings(key=("id",)))
    assert found.render() == f"row 1 (id=1): t: {words}"


def test_an_empty_text_is_seen_in_rows_that_are_missing_too() -> None:
    found = align([{"id": 1, "t": ""}, {"id": 2, "t": "x"}], [{"id": 2, "t": "x"}])
    assert found.render() == 'missing row 1: id=1, t=""'


@pytest.mark.parametrize(
    ("kind", "expected", "actual", "shown"),
    [
        ("VARCHAR[]", "[a, b d]", ["a", "b c"], ("[a, b d]", "[a, b c]")),
        ("VARCHAR[]", "[a, 'b d']", ["a", "b d"], ("[a, b d]", "[a, b d]")),
        ("DATE[]", "[2024-01-02]", ["2024-01-03T00:00:00"], ("[2024-01-02]", "[2024-01-03]")),
        ("DECIMAL(10,2)[]", "[1.50]", [1.6], ("[1.5]", "[1.6]")),
        ("INTEGER[]", "[1, 2]", [1, 2.5], ("[1, 2]", "[1, 2.5]")),
        ("STRUCT(a DATE)", "{'a': 2024-01-02}", {"a": "2024-01-03"}, ("{a: 2024-01-02}", "{a: 2024-01-03}")),
    ],
)
def test_lists_and_objects_are_written_in_one_way_on_both_sides(
    kind: str, expected: str, actual: Any, shown: tuple[str, str]
) -> None:
    rows = [{"id": 1, "v": expected}], [{"id": 1, "v": actual}]
    (cell,) = [one for one in align(*rows, types={"v": kind}).row(0).cells if one.column == "v"]
    assert (cell.expected, cell.actual) == shown
    ((_, sampled),) = align(*rows, types={"v": kind}).sampled("v", [0])
    assert (sampled.expected, sampled.actual) == shown


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


def test_what_a_missing_column_should_hold_is_known() -> None:
    found = align([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], [{"id": 2}, {"id": 1}])
    assert [found.row(i).cells[1].expected for i in range(2)] == ["a", "b"]
    assert found.row(0).cells[1].actual is None and found.rows_apart.to_list() == []
    empty = align([{"id": 1}], [])
    assert empty.row(0).cells[0].expected == "1" and empty.status(0) == "missing"


def test_of_rows_that_share_a_key_equal_ones_belong_together() -> None:
    expected = [{"t": "a", "n": n} for n in range(4)] + [{"t": "b", "n": 9}]
    actual = [{"t": "b", "n": 9}] + [{"t": "a", "n": n} for n in (3, 2, 7, 0)]
    found = align(expected, actual, ComparisonSettings(key=("t",)))
    assert found.key_given and not found.key_unique
    assert [found.status(i) for i in range(len(found))] == ["same", "different", "same", "same", "same"]
    assert (found.row(1).cells[1].expected, found.row(1).cells[1].actual) == ("1", "7")


def test_without_a_key_the_rows_with_most_in_common_belong_together() -> None:
    expected = [{"a": "x", "b": "y", "c": n, "d": 1} for n in (1, 1, 2)]
    actual = [{"a": "x", "b": "y", "c": 2, "d": 5}, {"a": "zz", "b": "y", "c": 1, "d": 1}, dict(expected[0])]
    found = align(expected, actual)
    assert found.key == ()
    rows = [found.row(i) for i in range(len(found))]
    assert [(row.status, row.expected_index, row.actual_index) for row in rows] == [
        ("same", 0, 2),
        ("different", 1, 1),
        ("different", 2, 0),
    ]


@pytest.mark.parametrize(
    ("order", "moved"),
    [([0, 1, 2, 3], []), ([0, 3, 1, 2], [3]), ([3, 2, 1, 0], [0, 1, 2]), ([1, 2, 3, 0], [0])],
)
def test_the_fewest_rows_that_moved(order: list[int], moved: list[int]) -> None:
    rows = [{"id": n} for n in range(4)]
    found = align(rows, [rows[n] for n in order])
    assert found.moved().to_list() == moved


def test_a_row_that_is_missing_moves_no_other() -> None:
    rows = [{"id": n} for n in range(6)]
    assert align(rows, rows[1:]).moved().to_list() == []


@pytest.mark.parametrize(
    ("expected", "actual", "why"),
    [
        (1.5, "1.50 EUR", "type"),
        ([1, 2], [1], "[1] is missing"),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "a[1].b: expected 2, actual 3"),
        ({"a": 1}, {"a": 1, "c": 2}, "c is too many"),
        ("2026-01-05", "2026-01-07", "2 days later"),
        ("2026-01-05T10:00:00", "2026-01-05T09:59:58", "0:00:02 earlier"),
        ("x", "y", "value"),
    ],
)
def test_why_cells_differ(expected: object, actual: object, why: str) -> None:
    found = align([{"k": "a", "v": expected}], [{"k": "a", "v": actual}])
    assert found.row(0).cells[1].why == why


def test_equal_cells_that_are_written_otherwise_say_so() -> None:
    found = align(
        [{"k": "a", "f": 1.0, "n": 1234.5, "d": "2026-01-05", "t": "x"}],
        [{"k": "a", "f": 1.000001, "n": "1,234.5", "d": "2026-01-05T00:00:00", "t": "x"}],
    )
    cells = found.row(0).cells
    assert all(cell.same for cell in cells)
    assert [cell.why for cell in cells] == [
        "",
        "off by 0.000001, allowed 1e-05",
        "the same, written otherwise",
        "the same, written otherwise",
        "",
    ]


def test_kept_rows_are_read_by_their_types() -> None:
    """Rows of an attempt are kept as JSON, which knows neither decimals nor nested values."""
    kept = [{"id": 1, "price": 100000.5, "pair": "[1, 2]"}]
    answer = [{"id": 1, "price": "100000.51", "pair": [1, 2]}]
    types = {"id": "BIGINT", "price": "DECIMAL(18,2)", "pair": "INTEGER[]"}
    cells = align(kept, answer, types=types).row(0).cells
    assert [cell.same for cell in cells] == [True, False, True]
    assert [cell.same for cell in align(kept, answer).row(0).cells] == [True, True, False]


def test_settings_in_force_are_read_back_as_they_were_given() -> None:
    for given in ({}, {"rtol": 1e-5}, {"atol": 0.5, "ordered": True}, {"rtol": 0.1, "exact_integers": True}):
        settings = ComparisonSettings.of(given)
        back = ComparisonSettings.of(settings.shown())
        assert back.explicit == settings.explicit and back.relative == settings.relative


_CELLS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-2, 2)
    | st.sampled_from(["a", "b ", "2026-01-01"])
)
_ROWS = st.lists(st.fixed_dictionaries({"k": st.integers(0, 5), "x": _CELLS, "y": _CELLS}), max_size=6)


@pytest.mark.real
@hypothesis.settings(deadline=None, max_examples=150)
@hypothesis.given(_ROWS.filter(bool), _ROWS, st.booleans())
def test_many_rows_at_a_time_are_the_same_as_one_by_one(
    expected: list[dict[str, Any]], actual: list[dict[str, Any]], lacks: bool
) -> None:
    if lacks:
        actual = [{"k": row["k"], "x": row["x"]} for row in actual]
    found = align(expected, actual, columns=["k", "x", "y"])
    rows = found.rows_with_what_differs(found.different_rows)
    for number, row in zip(found.different_rows, rows, strict=True):
        one = found.row(number)
        assert list(row.cells) == [cell for cell in one.cells if not cell.same]
        assert replace(row, cells=()) == replace(one, cells=())


@pytest.mark.parametrize(
    ("kind", "kept", "answer", "same"),
    [
        ("DECIMAL(10,4)", 123.45, 123.4501, False),
        ("DECIMAL(10,2)", 100000, 100000.004, True),
        ("DECIMAL(10,2)", 100000, 100000.01, False),
        ("HUGEINT", "1180591620717411303424", 1.1805916207174113e21, True),
        ("BIGNUM", str(2**127 - 1), float(2**127), True),
        ("BIGNUM", str(2**127 - 1), 1.7014118346046921e38, False),
        ("BIGNUM", str(2**127 - 1), 2**127 - 2, False),
        # A sum of integers, as nao's server sends it: it has no other number for it.
        ("HUGEINT", "90071992547409937", 9.007199254740994e16, True),
        ("HUGEINT", "90071992547409937", 9.007199254740992e16, False),
        ("HUGEINT", "90071992547409937", 90071992547409936, False),
        ("DECIMAL(18,0)", "82895251726904339", 8.289525172690434e16, True),
        ("BIGINT", "90071992547409937", 9.007199254740994e16, False),
        ("HUGEINT", "1180591620717411303424", "1180591620717411303425", False),
        ("DECIMAL(38,2)", "12345678901234567890.50", "12345678901234567890.51", False),
    ],
)
def test_numbers_kept_as_json_are_those_of_their_type(
    kind: str, kept: object, answer: object, same: bool
) -> None:
    """What the Data tab compares is the record: it must say what the verdict did."""
    found = align([{"v": kept}], [{"v": answer}], types={"v": kind})
    assert found.same_cells().get_column("v").to_list() == [same]
    assert compare([{"v": answer}], [{"v": kept}], types={"v": kind}).passed is same


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        (pl.Series([9007199254740993, 2, 3]), [9007199254740993, 2.0, 3.5]),
        (pl.Series([True, False, True]), [True, False, "true"]),
        (pl.Series([True, False, True]), [True, 0, None]),
        (pl.Series(["true", "null", "x"]), [True, None, "\0true"]),
        (pl.Series(['{"a": 1}', "[1]", "1"]), [{"a": 1}, [1], 1]),
        (pl.Series([[1, 2], [3], None]), [[1, 2], [3.0], [1]]),
        (pl.Series(["\N{LATIN SMALL LETTER E WITH ACUTE}", "b", "c"]), ["\ud800", "b", {"\ud800": "é"}]),
        (pl.Series([1.5, 2.0, 0.0]), [1.5, 2, True]),
        (pl.Series(["1", "2", "3"]), [2**128, 2, 3]),
        (pl.Series([True, None, None]), [math.nan, math.nan, None]),
    ],
)
def test_a_frame_of_many_rows_says_what_their_verdict_did(expected: pl.Series, answer: list[Any]) -> None:
    """Of more rows than a record holds, the Data tab compares frames: `true` beside the text was the same there."""
    wanted = pl.DataFrame({"v": expected})
    rows = [{"v": one} for one in answer]
    kept = pl.read_ipc(frame_of(rows).write_ipc(None).getvalue())
    told, known = (align(wanted, side).same_cells().get_column("v").to_list() for side in (kept, rows))
    assert told == known
    assert compare(kept, wanted).passed == compare(rows, wanted).passed
    assert repr(records(SqlResult(["v"], kept), finite=False)) == repr(rows)


def test_expected_rows_of_a_backend_say_in_a_frame_what_their_verdict_did() -> None:
    """No database's type makes its dates texts: a day is its midnight, as it was for the verdict."""
    said: list[dict[str, Any]] = [{"d": None, "m": 1}, {"d": "2024-01-05T00:00:00", "m": "x"}]
    given: list[dict[str, Any]] = [{"d": None, "m": 1}, {"d": "2024-01-05", "m": "x"}]
    kept = pl.read_ipc(frame_of(said, expected=True).write_ipc(None).getvalue())
    for answer, wanted in ((given, said), (given, kept), (frame_of(given), kept)):
        assert compare(answer, wanted).passed
        assert align(wanted, answer).same_cells().get_column("d").all()
    own = SqlResult(["d", "m"], frame_of(said))
    assert all(gives_expected(own, wanted, reference=True) for wanted in (said, kept))


def test_a_text_null_is_in_quotes_and_a_date_beside_nothing_is_none() -> None:
    texts = [{"id": 1, "t": "null"}, {"id": 2, "t": "x"}]
    found = align(texts, [{"id": 1, "t": "NULL"}, {"id": 2, "t": "null"}])
    assert found.render().splitlines()[:2] == [
        'row 1 (id=1): t: expected "null", actual NULL',
        'row 2 (id=2): t: expected x, actual "null"',
    ]
    kept = [{"id": 1, "d": "9999-12-31T00:00:00"}, {"id": 2, "d": None}]
    told = align(kept, [{"id": 1, "d": None}, {"id": 2, "d": "2024-01-05"}], types={"d": "DATE"})
    assert told.render().splitlines()[:2] == [
        "row 1 (id=1): d: expected 9999-12-31, actual null (null)",
        "row 2 (id=2): d: expected null, actual 2024-01-05 (not null)",
    ]
    kinds = [cell.kinds for row in (told.row(0), told.row(1)) for cell in row.cells if cell.column == "d"]
    assert kinds == [("date", "null"), ("null", "date")]
    assert [cell.kinds for _, cell in told.sampled("d", [0, 1])] == kinds
    other = align(kept, [{"id": 1, "d": "soon"}, {"id": 2, "d": "soon"}], types={"d": "DATE"})
    assert other.render().splitlines()[1] == 'row 2 (id=2): d: expected null, actual "soon" (not null)'


def test_long_texts_are_shown_from_shortly_before_they_part() -> None:
    long = "lorem ipsum dolor " * 60
    found = align([{"id": 1, "t": f"{long}A"}], [{"id": 1, "t": f"{long}B"}])
    assert found.render() == f"row 1 (id=1): t: expected …{long[-20:]}A, actual …{long[-20:]}B"
