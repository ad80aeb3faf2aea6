"""An agent's query without one of its usual mistakes: what gives the expected rows then was the cause."""

from __future__ import annotations

import pytest

from tests.support import TESTS
from tui_eval.config.project import DatabaseSpec
from tui_eval.frames.mended_queries import mended
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
    for query in to_mend(found, expected, own):
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
        (REVENUE, FANNED.replace("sum(o.amount)", "avg(o.amount)")),
    ],
)
def test_a_mistake_that_is_not_all_of_it_is_not_called_the_cause(expected: str, own: str) -> None:
    assert cause_of(expected, own) in ("values differ", "row count: 61 vs 62", "row count: 58 vs 62")


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
