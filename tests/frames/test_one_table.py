"""Two frames as one table: each row once, what differs with an arrow, dates as dates."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.difference import align, alone
from tui_eval.frames.one_table import OneTable, table_of_details
from tui_eval.frames.value_texts import plain_moment
from tui_eval.model import DataDetails

TYPES = {"order_id": "INTEGER", "order_date": "DATE", "amount": "DOUBLE", "note": "VARCHAR"}


def order(number: int, day: str, amount: float | None, note: str | None = "x") -> dict[str, Any]:
    return {"order_id": number, "order_date": f"{day}T00:00:00", "amount": amount, "note": note}


EXPECTED = [order(1, "2018-01-01", 10.0), order(2, "2018-01-02", 26.0), order(3, "2018-01-03", None)]


def table(actual: list[dict[str, Any]], **settings: Any) -> OneTable:
    return OneTable(align(EXPECTED, actual, ComparisonSettings(**settings), None, TYPES))


def marks(made: OneTable) -> list[str]:
    return [made.row(number).mark for number in range(len(made))]


def test_each_row_stands_once_with_its_mark_and_what_differs_with_an_arrow() -> None:
    actual = [
        order(2, "2018-01-02", 24.0),
        order(1, "2018-01-01", 10.0),
        order(1, "2018-01-01", 11.0),
        order(1, "2018-01-01", 12.0),
        order(9, "2018-01-09", 1.0),
    ]
    made = table(actual)
    assert marks(made) == [" ", "×2", "×3", "≠", "−", "+"]
    assert [cell.text for cell in made.row(3).cells] == ["2", "2018-01-02", "26.0→24.0", "x"]
    assert [cell.text for cell in made.row(4).cells] == ["3", "2018-01-03", "null", "x"]
    assert {cell.state for cell in made.row(5).cells} == {"extra"}
    assert made.line == (
        "≠ 1 of 3 rows differs in amount · − 1 missing · × 2 repeated · + 1 extra · key: order_id"
    )
    assert made.differing.to_list() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("actual", "words", "general"),
    [
        (
            [EXPECTED[0], order(2, "2018-01-02", 24.0), EXPECTED[2]],
            "amount 26.0→24.0 in 1 of 3 rows",
            "amount differs",
        ),
        (
            [order(1, "2018-01-01", 7.0, "y"), order(2, "2018-01-02", 24.0), EXPECTED[2]],
            "amount, note differ in 2 of 3 rows",
            "amount, note differ",
        ),
        (EXPECTED[:2], "1 of 3 rows missing", "rows missing"),
        ([*EXPECTED, order(9, "2018-01-09", 1.0)], "1 row too many", "rows too many"),
        ([*EXPECTED, EXPECTED[0]], "1 of 4 rows repeated", "rows repeated"),
        ([], "3 of 3 rows missing", "rows missing"),
        (
            [{"order_id": 1}, {"order_id": 2}],
            "columns order_date, amount, note missing; 1 of 3 rows missing",
            "columns order_date, amount, note missing; rows missing",
        ),
        (EXPECTED, "", ""),
        ([{k: v for k, v in row.items() if k != "note"} for row in EXPECTED], "", ""),
    ],
)
def test_the_fact_leads_with_columns_or_rows(actual: Any, words: str, general: str) -> None:
    assert table(actual).fact() == (words, general)


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        (2**127 - 1, 2**127 - 2, "v …3715884105727→…3715884105726 in 1 of 1 rows"),
        (
            "a" * 99 + "x and more that is not shown",
            "a" * 99 + "y",
            "v …aaaaaaaaaaaax and more…→…aaaaaaaaaaaay in 1 of 1 rows",
        ),
        ("a" * 30, "b" * 30, f"v {'a' * 23}…→{'b' * 23}… in 1 of 1 rows"),
    ],
)
def test_two_long_values_never_read_alike_in_the_fact(expected: Any, actual: Any, words: str) -> None:
    made = OneTable(align([{"v": expected}], [{"v": actual}], ComparisonSettings(), None, {}))
    assert made.fact()[0] == words


def test_the_fact_of_another_order() -> None:
    assert table(EXPECTED[::-1], ordered=True).fact()[1] == "row order differs"


def test_heads_say_kinds_the_key_and_what_the_answer_lacks() -> None:
    made = table([{k: v for k, v in row.items() if k != "note"} for row in EXPECTED])
    assert [column.kind for column in made.columns] == ["integer", "date", "number", "text"]
    assert [column.name for column in made.columns if column.key] == ["order_id"]
    assert [column.name for column in made.columns if column.missing] == ["note"]
    assert made.line.startswith("− column note missing") and marks(made) == [" "] * 3
    assert made.row(0).cells[3].state == "lacking"


def test_a_date_never_loses_the_day_in_which_it_differs() -> None:
    late = [dict(row) for row in EXPECTED]
    late[0]["order_date"] = "2018-01-01T08:00:00"
    late[1]["order_date"] = "2018-01-03"
    made = table(late)
    assert made.row(0).cells[1].text == "2018-01-01→2018-01-01 08:00:00"
    assert made.row(1).cells[1].text == "2018-01-02→2018-01-03"


@pytest.mark.parametrize(
    ("expected", "actual", "shown"),
    [
        ("Anna", "Anna ", 'Anna→"Anna "'),
        ("", "x", '""→x'),
        (None, "null", 'null→"null"'),
        ("null", "NULL", '"null"→NULL'),
        ("a", "b", "a→b"),
    ],
)
def test_texts_that_would_look_alike_are_in_quotes(expected: Any, actual: Any, shown: str) -> None:
    left = [{"id": 1, "t": expected}, {"id": 2, "t": "same"}]
    right = [{"id": 1, "t": actual}, {"id": 2, "t": "same"}]
    settings = ComparisonSettings(key=("id",))
    made = OneTable(align(left, right, settings, None, {"id": "INTEGER", "t": "VARCHAR"}))
    assert made.row(0).cells[1].text == shown


def test_equal_within_the_tolerance_is_said_quietly() -> None:
    plain = [dict(row, order_date=row["order_date"][:10]) for row in EXPECTED]  # as JSON has dates
    assert {cell.state for cell in table(plain).row(0).cells} == {"same"}
    near = [dict(row) for row in EXPECTED]
    near[0]["amount"] = 10.000001
    made = table(near)
    cell = made.row(0).cells[2]
    assert (cell.state, cell.text, marks(made)) == ("near", "10.0", [" "] * 3) and "off by" in cell.why


def test_another_order_is_one_line() -> None:
    assert table(EXPECTED[::-1], ordered=True).order == "row order differs: 2 of 3 rows stand elsewhere"
    assert table(EXPECTED[::-1]).order == "" and table(EXPECTED[::-1]).line == "all 3 rows are the same"
    wrong = [dict(row, amount=1.0) for row in EXPECTED[::-1]]
    assert table(wrong, ordered=True).order == ""


def test_a_recorded_comparison_is_aligned_as_it_was_judged() -> None:
    details = DataDetails(
        EXPECTED, EXPECTED[:2], list(EXPECTED[0]), settings={"types": TYPES, "key": ["order_id"]}
    )
    made = table_of_details(details)
    assert marks(made) == [" ", " ", "−"] and made.columns[1].kind == "date"


def test_dates_of_rows_without_types_are_dates_too() -> None:
    rows = [{"id": n, "day": f"2018-01-0{n}T00:00:00", "at": f"2018-01-0{n}T08:00:00"} for n in (1, 2, 3)]
    made = OneTable(align(rows, rows))
    assert [column.kind for column in made.columns] == ["integer", "date", "text"]
    assert [cell.text for cell in made.row(1).cells] == ["2", "2018-01-02", "2018-01-02 08:00:00"]


@pytest.mark.parametrize(
    "day",
    [
        "2018-01-02",
        "2018-01-02T00:00:00",
        "2018-01-02 00:00:00",
        "2018-01-02T00:00:00.000Z",
        "2018-01-02 00:00",
    ],
)
def test_an_answers_date_is_shown_as_a_date_however_it_is_written(day: str) -> None:
    expected = [{"id": n, "day": f"2018-01-0{n}T00:00:00"} for n in (1, 2, 3)]
    answer = [expected[1] | {"id": 1, "day": day}, *expected[1:]]
    found = align(expected, answer, None, None, {"day": "DATE"})
    assert OneTable(found).row(0).cells[1].text == "2018-01-01→2018-01-02"
    assert "day: expected 2018-01-01, actual 2018-01-02" in found.render()
    assert "00:00" not in align(expected, expected[1:], None, None, {"day": "DATE"}).render()


def test_a_text_that_only_begins_like_a_time_stays_as_it_is() -> None:
    assert plain_moment("2018-01-02The rest", False) == "2018-01-02The rest"
    assert plain_moment("2018-01-02T08:30:00", True) == "2018-01-02 08:30:00"


def test_the_head_says_of_which_other_kind_the_answer_is() -> None:
    rows = [{"id": n, "v": n / 2, "w": n} for n in range(3)]
    made = OneTable(align(rows, [{"id": str(row["id"]), "v": row["w"], "w": row["v"]} for row in rows]))
    assert [(column.kind, column.given) for column in made.columns] == [
        ("integer", "text"),
        ("number", "integer"),
        ("integer", "number"),
    ]
    whole = [{"i": n, "f": float(n)} for n in range(3)]
    swapped = OneTable(align(whole, [{"i": float(n), "f": n} for n in range(3)]))
    assert [column.given for column in swapped.columns] == ["", ""]  # JSON's 3.0 is 3
    prices = pl.DataFrame({"p": [1.25, 2.5]}, schema={"p": pl.Decimal(9, 2)})
    assert OneTable(align(prices, [{"p": 1.25}, {"p": 2.5}])).columns[0].given == ""
    assert OneTable(align(prices, [{"p": 1}, {"p": 3}])).columns[0].given == "integer"
    days = [{"id": 1, "day": "2018-01-01"}]
    typed = align(days, days, None, None, {"day": "DATE"})
    assert OneTable(typed).columns[1].given == ""


def test_the_key_stands_first() -> None:
    rows = [{"v": 1.5, "id": n, "t": "x"} for n in range(3)]
    made = OneTable(align(rows, [dict(row, v=2.5) for row in rows]))
    assert [column.name for column in made.columns] == ["id", "v", "t"]
    assert [cell.text for cell in made.row(0).cells] == ["0", "1.5→2.5", "x"]


def test_rows_alone_stand_in_their_order_with_no_key_and_no_marks() -> None:
    rows = [{"status": "b", "id": 2}, {"status": "a", "id": 1}, {"status": "b", "id": 2}]
    made = OneTable(alone(rows))
    assert [column.name for column in made.columns] == ["status", "id"] and not made.difference.key
    assert [made.row(n).cells[0].text for n in range(3)] == ["b", "a", "b"] and marks(made) == [" "] * 3
    assert len(OneTable(alone([]))) == 0


def test_whole_money_that_json_gives_as_a_float_is_not_marked_as_written_otherwise() -> None:
    expected = [{"id": 1, "v": Decimal("803.00")}, {"id": 2, "v": Decimal("47.10")}, {"id": 3, "v": 1.0}]
    actual = [{"id": 1, "v": 803.0}, {"id": 2, "v": 47.1}, {"id": 3, "v": 1.0000001}]
    made = OneTable(align(expected, actual))
    assert [made.row(n).cells[1].state for n in range(3)] == ["same", "same", "near"]


def test_integers_beyond_128_bits_are_integers() -> None:
    """Below their column's name stood `mixed`."""
    made = OneTable(align([{"h": 2**127 - 1}], [{"h": 2**127 - 2}]))
    assert [one.kind for one in made.columns] == ["integer"]
    assert [one.kind for one in OneTable(align([{"h": 1}, {"h": "x"}], [{"h": 1}, {"h": "y"}])).columns] == [
        "mixed"
    ]


def test_where_no_rows_are_expected_the_heads_say_what_the_answer_has() -> None:
    rows = [{"id": 1, "name": "Ann", "since": "2024-01-05T00:00:00"}]
    made = OneTable(align([], rows, None, ["id", "name", "since"], {"id": "INTEGER"}))
    assert [column.kind for column in made.columns] == ["integer", "text", "date"]
