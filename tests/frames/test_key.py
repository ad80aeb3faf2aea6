"""Which rows belong together: the key given, else what is unique in expected, else content."""

from __future__ import annotations

import hypothesis
import polars as pl
import pytest
from hypothesis import strategies as st

from tui_eval.frames.compare import compare
from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.difference import Difference, align

ORDERS = pl.DataFrame(
    {
        "order_id": range(1, 21),
        "status": ["completed", "returned", "shipped", "placed"] * 5,
        "amount": [float(number * 3 % 17) + 0.5 for number in range(20)],
    }
)


def shown(found: Difference) -> list[tuple[str, int | None, int | None]]:
    rows = [found.row(index) for index in range(len(found))]
    return [(row.status, row.expected_index, row.actual_index) for row in rows]


def test_a_duplicate_in_the_answer_does_not_throw_the_key_away() -> None:
    repeated = pl.concat([ORDERS, ORDERS.head(13)])
    found = align(ORDERS, repeated)
    assert found.key == ("order_id",) and found.key_unique_in_expected and not found.key_unique
    assert found.key_repeats == 13 and len(found.repeats) == 13
    assert not found.differing_cells(), "a row that is repeated is not another one"


@pytest.mark.parametrize("names", [["country"], ["country", "year"]])
def test_a_group_without_a_name_is_a_value_of_the_key(names: list[str]) -> None:
    rows = [
        {"country": one, "year": 2024, "n": n} for one, n in (("FR", 40), (None, 30), ("DE", 20), ("IT", 10))
    ]
    if len(names) > 1:
        rows += [{**row, "year": 2025, "n": row["n"] + 1} for row in rows]
    answer = [{**row, "n": 35 if row["country"] is None else row["n"]} for row in rows]
    assert align(rows, answer).key == tuple(names)
    assert align(rows, answer).differing_cells() == {"n": len(names)}
    assert align(rows, answer[1:]).key == tuple(names)
    several = [*rows, {"country": None, "year": 2024, "n": 5}]
    assert align(several, several[1:]).key == ("n",), (
        "several rows without a name are told apart by something else"
    )


def test_duplicates_stand_below_the_row_that_they_repeat() -> None:
    found = align(ORDERS.head(3), ORDERS[[2, 0, 0, 1, 0]])
    assert shown(found) == [
        ("same", 0, 1),
        ("extra", None, 2),
        ("extra", None, 4),
        ("same", 1, 3),
        ("same", 2, 0),
    ]
    assert found.repeats.to_list() == [1, 2]


def test_how_often_a_row_has_come_stands_with_its_repeats() -> None:
    found = align(ORDERS.head(3), ORDERS[[2, 0, 0, 1, 0]])
    assert [found.repeated(index) for index in range(len(found))] == [0, 2, 3, 0, 0]


def test_without_a_key_a_row_too_many_stands_below_the_row_that_it_repeats() -> None:
    rows = [{"t": text} for text in "abba"]
    found = align(rows, [{"t": text} for text in "aabbbac"])
    assert found.key == ()
    assert shown(found) == [
        ("same", 0, 0),
        ("same", 1, 2),
        ("same", 2, 3),
        ("extra", None, 4),
        ("same", 3, 1),
        ("extra", None, 5),
        ("extra", None, 6),
    ]
    assert [found.repeated(index) for index in range(len(found))] == [0, 0, 0, 3, 0, 3, 0]


def test_a_row_too_many_stands_where_the_answer_has_it() -> None:
    found = align(ORDERS[[1, 3, 5]], ORDERS[[0, 1, 2, 5, 6, 7]])
    assert shown(found) == [
        ("extra", None, 0),
        ("same", 0, 1),
        ("missing", 1, None),
        ("extra", None, 2),
        ("same", 2, 3),
        ("extra", None, 4),
        ("extra", None, 5),
    ]


def test_rows_too_many_stand_after_all_where_the_answer_has_another_order() -> None:
    found = align(ORDERS[[1, 3, 5]], ORDERS[[5, 0, 3, 2, 1]])
    assert shown(found)[3:] == [("extra", None, 1), ("extra", None, 3)]


def test_of_rows_that_repeat_a_key_the_equal_one_is_the_row() -> None:
    wrong = ORDERS.with_columns(pl.col("amount") * 2)
    found = align(ORDERS, pl.concat([wrong.head(5), ORDERS.with_columns(pl.col("amount") * (1 + 1e-9))]))
    assert found.key_repeats == 5 and not found.differing_cells()


def test_a_missing_row_is_never_paired_with_a_stranger() -> None:
    strangers = pl.DataFrame({"order_id": [91, 92], "status": ["returned", "placed"], "amount": [3.5, 9.0]})
    found = align(ORDERS, pl.concat([ORDERS[3:], ORDERS.tail(2), strangers]))
    assert found.key == ("order_id",)
    rows = shown(found)
    assert rows[:3] == [("missing", number, None) for number in range(3)]
    assert [row[0] for row in rows].count("extra") == 4 and "different" not in [row[0] for row in rows]


def test_without_a_key_a_missing_row_is_not_paired_with_one_that_has_nothing_in_common() -> None:
    expected = [{"a": "x", "b": 1.5}, {"a": "x", "b": 1.5}, {"a": "y", "b": 2.5}]
    found = align(expected, [{"a": "x", "b": 1.5}, {"a": "q", "b": 9.0}])
    assert sorted(row[0] for row in shown(found)) == ["extra", "missing", "missing", "same"]


def test_rows_that_name_others_throughout_are_missing_and_too_many() -> None:
    """A top five from the other end: no customer of them is expected, whatever they spent."""
    expected = [{"customer_id": number, "total": 900.5 - number} for number in (26, 7, 31, 2, 19)]
    actual = [{"customer_id": number, "total": 10.25 + number} for number in (44, 45, 46, 47, 48)]
    assert sorted(row[0] for row in shown(align(expected, actual))) == ["extra"] * 5 + ["missing"] * 5


def test_rows_that_are_named_otherwise_belong_together_by_what_else_they_have() -> None:
    expected = [{"country": name, "n": n} for name, n in (("France", 1.5), ("Norway", 2.5), ("Italy", 7.25))]
    actual = [{"country": name, "n": n} for name, n in (("NO", 2.5), ("IT", 7.25), ("FR", 1.5))]
    assert [row[0] for row in shown(align(expected, actual))] == ["different"] * 3


def test_the_key_is_unique_in_expected_not_in_the_answer() -> None:
    """`amount` is unique in the answer alone: it says nothing of which rows were meant."""
    expected = [{"city": "Lyon", "n": 1}, {"city": "Oslo", "n": 1}, {"city": "Rome", "n": 2}]
    actual = [{"city": "Lyon", "n": 1}, {"city": "Lyon", "n": 2}, {"city": "Rome", "n": 3}]
    found = align(expected, actual)
    assert found.key == ("city",) and found.key_repeats == 1
    assert [row[0] for row in shown(found)] == ["same", "extra", "missing", "different"]


def test_a_measure_that_is_unique_by_chance_is_no_better_key_than_two_columns_that_find_every_row() -> None:
    expected = [
        {"revenue": 100 * year + 7 * month, "y": year, "m": month}
        for year in (1, 2, 3)
        for month in (1, 2, 3)
    ]
    actual = [dict(row, revenue=row["revenue"] * (100 if row["m"] == 2 else 1)) for row in expected]
    assert align(expected, actual).key == ("y", "m")


def test_a_key_written_otherwise_still_tells_rows_apart() -> None:
    expected = [
        {"city": name, "v": number / 2} for number, name in enumerate(("Lyon", "Oslo", "Málaga", "Rom"))
    ]
    actual = [{"city": name, "v": 0.25} for name in ("ROM ", "malaga", "OSLO", "lyon")]
    found = align(expected, actual)
    assert found.key == ("city",) and found.key_loose
    assert [row[1:] for row in shown(found)] == [(0, 3), (1, 2), (2, 1), (3, 0)]
    assert not align(expected, expected[::-1]).key_loose


def test_the_key_given_counts_before_any_other() -> None:
    found = align(ORDERS, pl.concat([ORDERS, ORDERS]), ComparisonSettings(key=("status",)))
    assert found.key == ("status",) and found.key_given and not found.key_unique_in_expected


def test_nulls_in_the_answer_do_not_throw_the_key_away() -> None:
    actual = ORDERS.with_columns(pl.when(pl.col("order_id") > 2).then("order_id").alias("order_id"))
    found = align(ORDERS, actual)
    assert found.key == ("order_id",)
    assert [row[0] for row in shown(found)][:2] == ["missing", "missing"]


@pytest.mark.parametrize("repeats", [0, 13])
def test_the_verdict_does_not_hang_on_the_key(repeats: int) -> None:
    result = compare(pl.concat([ORDERS, ORDERS.head(repeats)]), ORDERS)
    assert result.passed is (repeats == 0)
    assert result.message == ("match" if not repeats else "row count: 33 vs 20")


_ROWS = st.lists(
    st.fixed_dictionaries(
        {"k": st.integers(0, 6), "t": st.sampled_from("ab"), "x": st.floats(0, 3, width=16)}
    ),
    max_size=8,
)


@pytest.mark.real
@hypothesis.settings(deadline=None, max_examples=100)
@hypothesis.given(_ROWS.filter(bool), _ROWS)
def test_every_row_of_both_sides_stands_in_the_table_once(
    expected: list[dict[str, object]], actual: list[dict[str, object]]
) -> None:
    found = align(expected, actual, columns=["k", "t", "x"])
    rows = shown(found)
    assert sorted(row[1] for row in rows if row[1] is not None) == list(range(len(expected)))
    assert sorted(row[2] for row in rows if row[2] is not None) == list(range(len(actual)))
    assert all(row[1] is None for number, row in enumerate(rows) if number in found.repeats)
    if found.key and found.key_unique_in_expected and not found.key_loose:
        for status, e, a in rows:
            if status == "different" and e is not None and a is not None:
                assert all(expected[e][name] == actual[a][name] for name in found.key)
