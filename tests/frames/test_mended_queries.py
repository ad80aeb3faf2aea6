"""An agent's query without one of its usual mistakes: what gives the expected rows then was the cause."""

from __future__ import annotations

import pytest

from tests.support import TESTS
from tui_eval.config.project import DatabaseSpec
from tui_eval.frames.mended_queries import mended, with_clauses
from tui_eval.frames.queries import conclude, gives_expected, to_mend
from tui_eval.frames.sql import SqlError, execute, rows

SHOP = DatabaseSpec("shop", "duckdb", str(TESTS / "data" / "jaffle_shop" / "jaffle_shop.duckdb"))
REVENUE = "select customer_id, sum(amount) as revenue from orders group by 1 order by 1"
FANNED = "select o.customer_id, sum(o.amount) as revenue from orders o join stg_payments p using (order_id) group by 1"
TOP = "select customer_id, sum(amount) as revenue, count(*) as orders from orders group by 1 order by revenue desc, 1 limit 5"
STATES = "select status, count(*) as n from orders group by 1"
TWICE = "its join repeats rows of orders (each counted once, it gives the expected rows)"


def cause_of(expected: str, own: str) -> str:
    """What is said of an agent's query whose rows the answer has."""
    wanted, given = execute(SHOP, expected), execute(SHOP, own)
    found = conclude(wanted, given, rows(given))
    assert found.blame == "query", found
    tried = [one for clauses in (False, True) for one in to_mend(found, expected, own, clauses=clauses)]
    for query in tried:
        try:
            made = execute(SHOP, query.sql)
        except SqlError:
            continue
        if gives_expected(made, wanted):
            found = found.caused_by(query)
            assert found.short == f"its query is wrong: {query.mistake}"
            break
    return found.line.removeprefix("its query is wrong: ").removesuffix("; the answer has its rows")


@pytest.mark.usually(3)
@pytest.mark.parametrize(
    ("expected", "own", "cause"),
    [
        (TOP, TOP.replace("revenue desc", "revenue"), "it sorts by revenue ascending (descending, it gives the expected rows)"),
        (
            TOP,
            TOP.replace("by revenue desc", "by orders desc"),
            "it sorts by orders descending (by revenue descending, it gives the expected rows)",
        ),
        (
            TOP.replace("5", "1"),
            "select o.customer_id, sum(o.amount) total, count(*) n from orders o group by 1 order by sum(o.amount), 1 limit 1",
            "it sorts by total ascending (descending, it gives the expected rows)",
        ),
        (
            TOP,
            "select customer_id, sum(amount) as revenue, count(*) as orders from orders where amount >= 0 group by 1 limit 5",
            "it does not sort before its LIMIT (sorted by revenue descending, it gives the expected rows)",
        ),
        (REVENUE, FANNED, TWICE),
        (REVENUE, f"with sums as ({FANNED}) select * from sums order by customer_id", TWICE),
        (
            REVENUE,
            "select o.customer_id, sum(o.amount) as revenue from (select * from orders) t, orders o, stg_payments p "
            "where o.order_id = p.order_id and t.order_id = o.order_id group by o.customer_id",
            TWICE,
        ),
        (
            STATES,
            "select o.status, count(*) as n from orders o left join stg_payments p on o.order_id = p.order_id "
            "where o.status is not null group by o.status having count(*) > 0 order by n",
            TWICE,
        ),
        (TOP, TOP.replace("limit 5", "limit 4"), "it has LIMIT 4 (with LIMIT 5, it gives the expected rows)"),
        (TOP, TOP.replace("limit 5", ""), "it has no LIMIT (with LIMIT 5, it gives the expected rows)"),
        (TOP, TOP + " offset 1", "it has OFFSET 1 (without it, it gives the expected rows)"),
        (REVENUE, REVENUE + " limit 10", "it has LIMIT 10 (without it, it gives the expected rows)"),
        (
            "select status, sum(amount) as x from orders o where o.customer_id >= 3 group by 1",
            "select status, sum(amount) as x from orders where customer_id > 3 group by status",
            "it has WHERE customer_id > 3 (with WHERE customer_id >= 3, it gives the expected rows)",
        ),
        (STATES, STATES.replace("group", "where status <> 'returned' group"),
         "it has WHERE status <> 'returned' (without it, it gives the expected rows)"),
        (STATES, STATES.replace("group", "where status is not null and status not in ('placed') group"),
         "it has WHERE status IS NOT NULL AND status NOT IN ('placed') (without it, it gives the expected rows)"),
        (STATES + " having count(*) > 5", STATES, "it has no HAVING (with HAVING COUNT(*) > 5, it gives the expected rows)"),
        (
            "select status, count(*) as n from orders where amount > 5 group by 1 having count(*) > 3",
            "select status, count(*) as n from orders o where o.amount > 5 group by 1",
            "it has no HAVING (with HAVING COUNT(*) > 3, it gives the expected rows)",
        ),
        (
            STATES.replace("group", "where amount > 20 group"),
            "with part as (select * from orders where order_id is not null) " + STATES.replace("orders", "part"),
            "its outermost SELECT has no WHERE (with WHERE amount > 20, it gives the expected rows)",
        ),
        (
            "select count(*) as n from orders c join stg_payments p using (order_id) where c.status <> 'returned'",
            "select count(*) as n from orders o join stg_payments c on o.order_id = c.order_id where o.status = 'returned'",
            "it has WHERE o.status = 'returned' (with WHERE o.status <> 'returned', it gives the expected rows)",
        ),
        (
            STATES.replace("group", "where status not in ('a long state', 'another long state') and order_id > 0 and amount > 20 group"),
            STATES.replace("group", "where status not in ('a long state', 'another long state') and order_id > 0 and amount > 9 group"),
            "it has WHERE … amount > 9 (with WHERE … amount > 20, it gives the expected rows)",
        ),
        (
            "select count(*) as n from orders o where amount > (select avg(amount) from orders u where u.status = o.status)",
            "select count(*) as n from orders x",
            "it has no WHERE (with WHERE amount > (SELECT AVG(amount) FROM orders AS u WHERE u…, it gives the expected rows)",
        ),
        ("select sum(amount) as x from orders", "select sum(o.amount) as x from orders o join stg_payments using (order_id)", TWICE),
    ],
)  # fmt: skip
def test_a_mistake_without_which_the_query_is_right_is_its_cause(expected: str, own: str, cause: str) -> None:
    assert cause_of(expected, own) == cause


@pytest.mark.real
@pytest.mark.parametrize(
    ("expected", "own"),
    [
        (TOP, TOP.replace("revenue desc", "revenue").replace("group", "where amount > 20 group")),
        (TOP, TOP.replace("sum(amount)", "max(amount)").replace("revenue desc", "orders desc")),
        (REVENUE, FANNED.replace("group", "where payment_method <> 'coupon' group")),
        (REVENUE, FANNED.replace("sum(", "2 * sum(")),
        (TOP, TOP.replace("limit 5", "limit 4").replace("sum(amount)", "max(amount)")),
        (STATES, STATES.replace("count(*)", "count(*) + 1").replace("group", "where amount > 20 group")),
        (REVENUE, FANNED.replace("sum(o.amount)", "avg(o.amount)")),
    ],
)
def test_a_mistake_that_is_not_all_of_it_is_not_called_the_cause(expected: str, own: str) -> None:
    assert cause_of(expected, own) in (
        "values differ",
        "row count: 61 vs 62",
        "row count: 58 vs 62",
        "row count: 4 vs 5",
    )


@pytest.mark.parametrize(
    "own",
    [
        REVENUE,
        "not a query at (all",
        "select 1; select 2",
        "select o.*, count(*) over () from orders o join stg_payments using (order_id)",
        "select distinct sum(amount) from orders join stg_payments using (order_id)",
        "select sum(amount) from orders, (select 1)",
        "select " + "(" * 300 + "1" + ")" * 300,
        "select sum(x) from " + "a, " * 9_000 + "b",
    ],
)
def test_where_nothing_can_be_mended_nothing_is_tried(own: str) -> None:
    assert mended(own, REVENUE) == []
    assert with_clauses(own, REVENUE) == []


@pytest.mark.parametrize(
    "own",
    [TOP.replace("order by revenue desc, 1 limit 5", "limit 4"), TOP.replace(", 1 limit 5", " limit 4")],
)
def test_a_limit_over_rows_that_are_not_sorted_alike_is_no_cause_which_rows_it_takes_is_chance(
    own: str,
) -> None:
    assert with_clauses(own, TOP) == []


def test_a_query_that_may_have_been_a_look_at_more_rows_is_not_called_wrong_for_it() -> None:
    expected = STATES.replace("group", "where amount > 20 group")
    wanted, given = execute(SHOP, expected), execute(SHOP, STATES)
    found = conclude(wanted, given, [{"status": "completed", "n": 1_000}])
    assert found.blame == "unknown"
    assert [to_mend(found, expected, STATES, clauses=clauses) for clauses in (False, True)] == [[], []]
