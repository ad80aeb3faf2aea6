"""Rows that tie where the LIMIT of an expected query ends: any of them is right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import TESTS
from tui_eval.config.project import DatabaseSpec
from tui_eval.frames.sql import SqlError, execute, rows
from tui_eval.frames.tied_rows import CutTies, chance_in, cut_ties, query_of_ties

SHOP = DatabaseSpec("shop", "duckdb", str(TESTS / "data" / "jaffle_shop" / "jaffle_shop.duckdb"))
TOP = "select customer_id, count(*) as n from orders group by customer_id order by n desc limit 3"


def ties_of(sql: str) -> CutTies | None:
    expected = execute(SHOP, sql)
    asked = query_of_ties(sql, expected)
    found = cut_ties(asked, execute(SHOP, asked.sql)) if asked is not None else None
    assert found is None or found.allow(expected), "what is expected is one of those that are right"
    return found


@pytest.mark.real
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
        (TOP.replace("limit 3", "limit 2 offset 0"), "LIMIT cuts through ties: 5 rows share n=3, any of them is right"),
        (TOP.replace("limit 3", "limit 1 offset 2"), "OFFSET and LIMIT cut through ties: 5 rows share n=3, any of them is right"),
        (TOP.replace("limit 3", "limit 7 offset 3"), "OFFSET cuts through ties: 5 rows share n=3, any 3 of them are right; its LIMIT: "),
        (TOP.replace("limit 3", "offset (2 - 1) * 3"), "OFFSET cuts through ties: 5 rows share n=3, any 3 of them are right"),
        (TOP.replace("limit 3", "limit 5 offset 1"), ""),
        (TOP.replace("limit 3", "offset 2000"), ""),
        (TOP.replace("limit 3", "fetch first 3 rows only"), "FETCH cuts through ties: 5 rows share n=3, any 2 of them are right"),
        (TOP.replace("limit 3", "offset 2 rows fetch next row only"), "OFFSET and FETCH cut through ties: 5 rows share n=3, any of them is right"),
        (TOP.replace("limit 3", "limit 5%"), "LIMIT cuts through ties: 5 rows share n=3, any 2 of them are right"),
        ("select distinct on (status) status, order_id from orders order by status limit 2", ""),
        ("select status from orders limit 2", "the expected query's LIMIT without ORDER BY: any 2 of 99 rows are right"),
        ("select status from orders limit 1 offset 3", "OFFSET and LIMIT without ORDER BY: any of 99 rows is right"),
        ("select status from orders limit 99", ""),
        ("select count(*) from orders limit 1", ""),
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
    assert found.line.startswith("the expected query's ") and (
        " through ties: " in found.line or " without ORDER BY: " in found.line
    )


def chance(sql: str) -> str:
    asked = chance_in(sql, execute(SHOP, sql))
    try:
        query = next(asked)
        while True:
            try:
                given = execute(SHOP, query)
            except SqlError:
                given = None
            query = asked.send(given)
    except StopIteration as end:
        return end.value


FIRST = "select status, order_id from orders qualify row_number() over (partition by status order by {}) = 1"
NUMBERED = "select order_id from (select *, row_number() over (partition by status order by {}) as r from orders) where r <= 2"
WINDOW = "select order_id, {} from orders"
"""Of `orders` with what goes by the order of single rows in it."""
PICKED = "select distinct on (status) status, order_id from orders order by status, {}"
BESIDE = "select first_name, order_id from customers c, lateral (select order_id from orders where customer_id = c.customer_id order by {} limit 1)"


@pytest.mark.real
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (FIRST.format("order_id"), ""),
        (FIRST.format("customer_id % 3"), "in the expected query ROW_NUMBER() may take others of rows that tie"),
        (NUMBERED.format("order_id"), ""),
        (NUMBERED.format("customer_id % 3"), "in the expected query ROW_NUMBER() may"),
        (NUMBERED.format("1"), "in the expected query ROW_NUMBER() may"),
        (NUMBERED.format("customer_id % 3").replace("<= 2", "= 2"), "in the expected query ROW_NUMBER() may"),
        *[(WINDOW.format(f"{call} over (partition by status order by customer_id % 3)"),
           f"in the expected query {call.split('(')[0].upper()}() may take others of rows that tie")
          for call in ("lag(order_id)", "lead(order_id, 2)", "first_value(order_id)", "last_value(order_id)",
                       "nth_value(order_id, 2)", "ntile(4)", "row_number()")],
        *[(WINDOW.format(f"{call} over (partition by status order by order_id)"), "")
          for call in ("lag(order_id)", "lead(order_id, 2)", "first_value(order_id)", "last_value(order_id)", "ntile(4)")],
        (WINDOW.format("lag(order_id ignore nulls) over w") + " window w as (order by customer_id % 3)", "in the expected query LAG() may"),
        (WINDOW.format("lag(order_id ignore nulls) over w") + " window w as (order by order_id)", ""),
        (WINDOW.format("first_value(customer_id % 3) over (order by customer_id % 3)"), ""),
        (WINDOW.format("last_value(customer_id % 3) over (order by customer_id % 3)"), ""),
        (WINDOW.format("sum(order_id) over (order by status)"), ""),
        (WINDOW.format("sum(order_id) over (order by status rows unbounded preceding)"), "in the expected query SUM() may"),
        (WINDOW.format("rank() over (order by status)"), ""),
        ("select status, count(*) as n, row_number() over (order by count(*) desc) as place from orders where status <> 'placed' group by 1", ""),
        ("select status, row_number() over (order by count(*) desc) as place from orders group by 1", "in the expected query ROW_NUMBER() may"),
        (WINDOW.format("lag(order_id) over (order by status)").replace("orders", "(select order_id, status from Orders)"), "in the expected query LAG() may"),
        ("select range % 3 as n, lag(range) over (order by range % 3) as before from range(9)", "in the expected query LAG() may"),
        ("select range % 3 as n, lag(range) over (order by range % 3, range) as before from range(9)", ""),
        ("select customer_id as c, row_number() over (order by count(*) desc) as place from orders group by c", "in the expected query ROW_NUMBER() may"),
        ("select customer_id, lag(count(*)) over (order by count(*)) as before from orders group by all", "in the expected query LAG() may"),
        # whichever of several equal rows is kept
        ("select status from (select status, row_number() over (partition by status order by 1) as r from orders) where r = 1", ""),
        ("with twice as (select * from orders union all select * from orders) select * exclude r from (select *, row_number() over (partition by order_id order by order_id) as r from twice) where r = 1", ""),
        (PICKED.format("order_id"), ""),
        (PICKED.format("order_id").replace("status, order_id from", "* from"), ""),
        (PICKED.format("customer_id % 3"), "in the expected query DISTINCT ON may"),
        (BESIDE.format("order_id"), "inside of the expected query a LIMIT may cut through ties"),
        ("select status, any_value(order_id) from orders group by 1", "in the expected query ANY_VALUE may"),
        ("select status, any_value(status) from orders group by 1", ""),
        ("select status, first(order_id order by customer_id % 3) from orders group by 1", "in the expected query FIRST may"),
        ("select status, last(order_id order by order_id) from orders group by 1", ""),
        ("select status, arg_max(order_id, customer_id % 3) from orders group by 1", "in the expected query ARG_MAX may"),
        ("select status, max_by(order_id, order_id), min_by(order_id, order_id) from orders group by 1", ""),
        ("select * from (select status from orders limit 2)", "inside of the expected query LIMIT without ORDER BY: any 2 of 99 rows are right"),
        ("select 1 as a from customers c where exists (select 1 from orders limit 1)", ""),
        ("select status from orders where order_id = (select max(order_id) from orders limit 1)", ""),
        ("select range as n from range(20000) limit 5", "in the expected query more rows tie at its LIMIT than can be read"),
        ("select range as n from range(20000) order by n limit 5", ""),
        ("select status, max(order_id) as last from orders group by 1", ""),
    ],
)  # fmt: skip
def test_what_else_is_left_to_the_database(
    sql: str, said: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    found = chance(sql)
    assert found.startswith(said) if said else not found, found
    assert not caplog.records and not capfd.readouterr().err


def test_which_rows_are_right() -> None:
    found = ties_of(TOP)
    assert found is not None
    some: list[dict[str, Any]] = rows(found.rows)
    assert len(some) == 6 and some[0]["n"] > 3
    assert found.allow([some[5], some[0], some[3]])
    assert not found.allow(some[1:4])  # without the one that must be there
    assert not found.allow([some[0], some[1], {**some[2], "n": 4}])
    assert not found.allow([some[0], some[1], {"customer_id": -1, "n": 3}])
    assert not found.allow(some[:2]) and not found.allow(some[:4]) and not found.allow([])
    assert not found.allow([some[0], some[1], some[1]])


@pytest.mark.real
@given(
    values=st.lists(st.integers(0, 3), min_size=1, max_size=9),
    offset=st.integers(0, 9),
    limit=st.integers(1, 9),
    fetch=st.booleans(),
    chosen=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_right_are_the_rows_of_some_order_of_those_that_tie(
    values: list[int], offset: int, limit: int, fetch: bool, chosen: st.DataObject
) -> None:
    table = ", ".join(f"({number}, {value})" for number, value in enumerate(values))
    part = (
        f"offset {offset} rows fetch first {limit} rows only" if fetch else f"limit {limit} offset {offset}"
    )
    found = ties_of(f"select * from (values {table}) as t(id, v) order by v {part}")
    order = chosen.draw(st.permutations(range(len(values))))
    right = sorted(order, key=lambda at: values[at])[offset : offset + limit]
    ids = chosen.draw(st.sampled_from([right, list(order)[: len(right)]]))
    group = sorted(values)[offset : offset + limit]
    sure = [at for at, value in enumerate(values) if values.count(value) == group.count(value)]
    if found is None:
        assert len(sure) == len(group), "no group is cut"
        return
    allowed = sorted(values[at] for at in ids) == group
    assert found.allow([{"id": at, "v": values[at]} for at in ids]) is allowed
