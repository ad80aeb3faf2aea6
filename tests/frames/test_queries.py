"""Which step went wrong, the query or what was made of its rows; and both queries beside each other."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from tui_eval.frames.queries import QueryLine, beside, conclude, formatted
from tui_eval.frames.sql_faults import SqlFault

EXPECTED = pl.DataFrame({"status": ["open", "paid"], "revenue": [10.5, 20.0]})
WRONG = EXPECTED.with_columns(pl.col("revenue") * 100)
WIDE = pl.DataFrame({"status": ["open", "paid"], "revenue": [1.5, 2.5]})
FINER = pl.DataFrame({"status": ["open", "open", "paid"], "revenue": [10.0, 0.5, 20.0]})
UNSAID = "its query gives other rows than expected ({}), the answer others again: which of both went wrong cannot be said"
ADDS_UP = "its query gives finer rows (row count: 3 vs 2), which add up to the expected ones; the answer has "
ANSWER, OTHER = EXPECTED.to_dicts(), [{"status": "open", "revenue": 1.0}, {"status": "paid", "revenue": 2.0}]


@pytest.mark.parametrize(
    ("own", "answer", "blame", "line"),
    [
        (WRONG, WRONG.to_dicts(), "query", "its query is wrong: values differ; the answer has its rows"),
        (EXPECTED, OTHER, "retold", "its query gives the right rows: the answer retold them wrongly"),
        (EXPECTED, None, "retold", "its query gives the right rows: the answer retold them wrongly"),
        (EXPECTED, ANSWER, "neither", "the agent's query and its answer give the expected rows"),
        (WRONG, ANSWER, "lucky", "its query gives other rows (values differ), the answer is right all the same"),
        (WIDE, [*WIDE.to_dicts()[:2], {"status": "lost", "revenue": 1.0}], "both", "its query is wrong: values differ; the answer has other rows than it, too"),
        (EXPECTED.head(1), [*ANSWER[:1], {"status": "lost", "revenue": 2.0}], "both", "its query is wrong: row count: 1 vs 2; the answer has other rows than it, too"),
        (EXPECTED.head(1), OTHER, "unknown", UNSAID.format("row count: 1 vs 2")),
        (WRONG, OTHER, "unknown", UNSAID.format("values differ")),
        (pl.DataFrame({"n": [3]}), OTHER, "unknown", UNSAID.format("missing columns: {'revenue', 'status'}")),
        (EXPECTED.select("status"), OTHER, "unknown", UNSAID.format("missing columns: {'revenue'}")),
        (FINER, OTHER, "unknown", ADDS_UP + "others"),
        (FINER, FINER.to_dicts(), "query", ADDS_UP + "them"),
        (SqlFault("Binder Error: no such column"), OTHER, "unknown", "the agent's query cannot be run here: Binder Error: no such column"),
        (None, OTHER, "unknown", "the agent's query is not in the record"),
    ],
)  # fmt: skip
def test_which_step_went_wrong(own: Any, answer: Any, blame: str, line: str) -> None:
    found = conclude(EXPECTED, own, answer)
    assert (found.blame, found.line) == (blame, line)


def test_what_cannot_be_said_is_short_enough_for_a_narrow_screen() -> None:
    for own, answer in ((WRONG, OTHER), (FINER, OTHER), (FINER, FINER.to_dicts()), (WRONG, WRONG.to_dicts())):
        found = conclude(EXPECTED, own, answer)
        for one in (found, found.of_verification(right=False)):
            assert len(one.short) <= 72 and "\n" not in one.short
    named = pl.DataFrame({"status": ["open", "paid"], "total": [10.5, 20.0]})
    assert "wrong" not in conclude(EXPECTED, named, named.to_dicts()).short


def test_a_query_whose_columns_have_other_names_is_right_all_the_same() -> None:
    own = pl.DataFrame({"STATUS": ["open", "paid"], "sum(amount)": [10.5, 20.0]})
    found = conclude(EXPECTED, own, OTHER)
    assert found.blame == "retold" and found.renamed == {"STATUS": "status", "sum(amount)": "revenue"}


def test_a_query_whose_columns_are_called_otherwise_is_not_blamed_on_the_answer() -> None:
    own = [{"status": row["status"], "total": row["revenue"]} for row in ANSWER]
    found = conclude(EXPECTED, own, own)
    assert found.blame == "query"
    assert (
        found.line
        == "its query gives the right rows but for names (revenue as total); the answer has its rows"
    )
    assert conclude(EXPECTED, own, ANSWER).blame == "neither"


def test_a_wrong_query_whose_columns_have_other_names_is_known_in_the_answer() -> None:
    own = pl.DataFrame({"status": ["open", "paid"], "sum(amount)": [1.0, 2.0]})
    found = conclude(EXPECTED, own, OTHER)
    assert (found.blame, found.line) == (
        "query",
        "its query is wrong: values differ; the answer has its rows",
    )


def test_a_query_that_lacks_a_column_is_wrong() -> None:
    found = conclude(EXPECTED, EXPECTED.select("status"), [{"status": "open"}, {"status": "paid"}])
    assert found.blame == "query" and "missing columns: {'revenue'}" in found.line


def test_other_rows_beyond_the_expected_columns_do_not_count() -> None:
    own = EXPECTED.with_columns(pl.lit(1).alias("n"))
    assert conclude(EXPECTED, own, ANSWER, columns=["status", "revenue"]).blame == "neither"


def test_both_queries_are_formatted_alike() -> None:
    wanted = "select status, sum(amount) as revenue from orders where status <> 'returned' group by 1;"
    own = "SELECT status,\n  SUM(amount) AS revenue\nFROM orders\nGROUP BY 1"
    lines = beside(wanted, own)
    assert [(line.expected, line.actual) for line in lines if not line.same] == [
        ("WHERE", None),
        ("  status <> 'returned'", None),
    ]
    assert QueryLine("FROM orders", "FROM orders", True) in lines
    assert all(line.same for line in beside(own, own))


@pytest.mark.parametrize("sql", ["selec from where", "  select 'x", "((((" * 2000 + "1", "x" * 30_000])
def test_a_query_that_cannot_be_parsed_stays_as_it_is(sql: str) -> None:
    assert formatted(sql) == sql.strip()
    assert all(line.same for line in beside(sql, sql))


def test_a_line_that_is_another_one_stands_beside_it() -> None:
    lines = beside("select a from t", "select b from t")
    assert [line for line in lines if not line.same] == [QueryLine("  a", "  b", False)]
