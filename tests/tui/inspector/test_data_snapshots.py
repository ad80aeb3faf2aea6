"""How the Data tab looks on rows of the jaffle shop: one table, and both sides beside each other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.support import TESTS, mostly_real
from tests.support.attempts import wrong_cell
from tests.support.case_host import host, loaded, until
from tests.support.settling import rested
from tui_eval.model import Attempt, DataDetails
from tui_eval.tui.inspector.data import DataTab

SHOP = TESTS / "data" / "jaffle_shop" / "jaffle_shop.duckdb"
SIZES = mostly_real([(80, 24), (120, 40), (60, 16)], (80, 24))
ORDERS = "select order_id, customer_id, order_date, status, amount from orders order by order_id limit 40"
TYPES = dict(zip(("order_id", "customer_id"), ("INTEGER", "INTEGER"), strict=True)) | {
    "order_date": "DATE",
    "status": "VARCHAR",
    "amount": "DOUBLE",
}


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def orders() -> list[dict[str, Any]]:
    with duckdb.connect(str(SHOP), read_only=True) as shop:
        found = shop.sql(ORDERS)
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    return [
        {n: f"{v.isoformat()}T00:00:00" if isinstance(v, date) else v for n, v in row.items()} for row in rows
    ]


def mistaken() -> Attempt:
    """Amounts of coupons doubled, a day moved, an order missing, one too many, one three times."""
    expected, attempt = orders(), wrong_cell()
    answer = [dict(row) for row in expected]
    for row in answer[1:12:4]:
        row["amount"] *= 2
    answer[3]["order_date"] = "2018-01-06"
    answer[4]["status"] = "return_pending"
    answer[6]["amount"] *= 1 + 1e-7
    extra = {**answer[7], "order_id": 400, "amount": 1.5}
    attempt.case_id, attempt.message = "tests/orders.yml::orders", "row count: 42 vs 40"
    attempt.data = DataDetails(
        expected,
        [*answer[:2], answer[1], {**answer[1], "amount": 3.0}, *answer[3:8], extra, *answer[8:]],
        list(expected[0]),
        None,
        ORDERS,
        ORDERS,
        {"types": TYPES},
    )
    return attempt


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("keys", ["", "o"], ids=["one_table", "sides"])
def test_rows(snap_compare, tmp_path: Path, keys: str, size: tuple[int, int]) -> None:
    async def before(pilot: Any) -> None:
        screen = await loaded(pilot)
        await pilot.press("4")
        tab = screen.tab
        assert isinstance(tab, DataTab)
        await until(pilot, lambda: tab.view is not None and tab.queries is not None)
        await until(pilot, lambda: bool(tab.words_found))
        await pilot.press(*keys)
        screen.say("")
        await rested(pilot)

    assert snap_compare(host(tmp_path, mistaken()), terminal_size=size, run_before=before)
