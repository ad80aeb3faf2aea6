"""Rows that tie where the LIMIT of an expected query ends: any of them is right."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import TESTS
from tui_eval.config.project import DatabaseSpec
from tui_eval.frames.query_words import CutTies, cut_ties, query_of_ties
from tui_eval.frames.sql import execute, rows

SHOP = DatabaseSpec("shop", "duckdb", str(TESTS / "data" / "jaffle_shop" / "jaffle_shop.duckdb"))
TOP = "select customer_id, count(*) as n from orders group by customer_id order by n desc limit 3"


def ties_of(sql: str) -> CutTies | None:
    expected = execute(SHOP, sql)
    asked = query_of_ties(sql, expected.columns)
    found = cut_ties(asked, execute(SHOP, asked.sql)) if asked is not None else None
    assert found is None or found.allow(expected), "what is expected is one of those that are right"
    return found


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (TOP, "5 rows share n=3, any 2 of them are right"),
        (TOP.replace("by n desc", "by 2 desc"), "5 rows share n=3, any 2 of them are right"),
        (TOP.replace("by n desc", "by count(*) desc"), "5 rows share n=3, any 2 of them are right"),
        (
            TOP.replace(", count(*) as n", "").replace("by n desc", "by count(*) desc"),
            "5 rows share COUNT(*)=3, any 2 of them are right",
        ),
        (f"with top as (select * from orders) {TOP.replace('from orders', 'from top')};", "5 rows share n=3"),
        (f"select * from ({TOP.replace(' limit 3', '')}) order by n desc limit 2", "5 rows share n=3, any of them is right"),
        ("select order_id, order_date from orders order by order_date, status limit 4", "2 rows share order_date=2018-01-05, status=completed, any of them"),
        (TOP.replace("n desc", "n desc, customer_id"), ""),
        (TOP.replace("limit 3", "limit 1"), ""),
        (TOP.replace("limit 3", "limit 1000"), ""),
        (TOP.replace("limit 3", "limit 3 offset 1"), ""),
        ("select distinct on (status) status, order_id from orders order by status limit 2", ""),
        ("select status from orders limit 2", ""),
        ("select status from orders union all select status from orders order by 1 limit 5", "134 rows share status=completed"),
        ("select status from orders union select status from orders order by status limit 2", ""),
        ("select status, status from orders order by 1 limit 3", "67 rows share status=completed, any 3 of them"),
        ("from orders order by lower(status) desc limit 3", "13 rows share LOWER(status)=shipped, any 3 of them"),
    ],
)  # fmt: skip
def test_ties_at_the_limit(sql: str, said: str) -> None:
    found = ties_of(sql)
    if not said:
        assert found is None
        return
    assert found is not None and said in found.line, found
    assert found.line.startswith("the expected query's LIMIT cuts through ties: ")


def test_which_rows_are_right() -> None:
    found = ties_of(TOP)
    assert found is not None
    given: list[dict[str, Any]] = rows(found.rows)
    assert len(given) == 6 and given[0]["n"] > 3
    assert found.allow([given[5], given[0], given[3]])
    assert not found.allow(given[1:4])  # without the one that must be there
    assert not found.allow([given[0], given[1], {**given[2], "n": 4}])
    assert not found.allow([given[0], given[1], {"customer_id": -1, "n": 3}])
    assert not found.allow(given[:2]) and not found.allow(given[:4]) and not found.allow([])
    assert not found.allow([given[0], given[1], given[1]])
