"""Tab 4 says above the rows what those that differ have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.case_host import host, screen_text, sees, until
from tests.tui.inspector.test_data_tab import SIZES, attempt_of, opened
from tui_eval.model import DataDetails
from tui_eval.tui.state.data.data_view import make
from tui_eval.tui.state.data.data_words import diagnosis_lines
from tui_eval.tui.state.text.lines import plain

Rows = list[dict[str, Any]]
ORDERS: Rows = [
    {
        "order_id": n,
        "status": "returned" if n % 5 == 0 else "placed",
        "amount": 10.0 + n * 1.5,
        "day": f"2018-01-{n:02}",
    }
    for n in range(1, 29)
]


def said(expected: Rows, actual: Rows, **settings: Any) -> list[str]:
    view = make(DataDetails(expected, actual, list(expected[0]), settings=settings))
    return [plain(line) for line in diagnosis_lines(view)]


def test_a_factor_is_named_with_how_many_rows_it_explains() -> None:
    cents = [{**row, "amount": row["amount"] * 100} for row in ORDERS]
    assert said(ORDERS, cents) == ["→ amount ×100 in 28 of 28 rows that differ"]


def test_rows_that_are_the_same_and_noise_have_no_diagnosis() -> None:
    assert said(ORDERS, list(reversed(ORDERS))) == []
    noise = [{**row, "amount": row["amount"] + (n * 7919 % 101) / 7} for n, row in enumerate(ORDERS, 1)]
    assert not any("amount ×" in line or "too" in line for line in said(ORDERS, noise))


def test_where_rows_are_not_kept_nothing_is_said_of_them() -> None:
    cents = [{**row, "amount": row["amount"] * 100} for row in ORDERS]
    assert said(ORDERS, cents, truncated={"expected": 5000, "actual": 5000}) == []


def test_a_column_that_the_answer_calls_otherwise_is_found_in_one_place() -> None:
    other = [{**{k: v for k, v in row.items() if k != "amount"}, "total": row["amount"]} for row in ORDERS]
    view = make(DataDetails(ORDERS, other, list(ORDERS[0])))
    assert view.renamed == {"amount": "total"}
    assert any("amount" in plain(line) and "total" in plain(line) for line in diagnosis_lines(view))
    # of a column of one value all rows, values alone tell nothing
    same = [{**row, "amount": 1} for row in ORDERS]
    constant = [{"order_id": r["order_id"], "status": r["status"], "day": r["day"], "x": 1} for r in ORDERS]
    assert make(DataDetails(same, constant, list(ORDERS[0]))).renamed == {}


@pytest.mark.real
@pytest.mark.parametrize("size", SIZES)
async def test_the_diagnosis_stands_above_the_rows_and_goes_with_its_case(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    cents = [{**row, "amount": row["amount"] * 100} for row in ORDERS]
    right = attempt_of(ORDERS, ORDERS)
    right.case_id = "tests/right.yaml::right"
    app = host(tmp_path, attempt_of(ORDERS, cents), right)
    async with app.run_test(size=size) as pilot:
        screen, tab = await opened(pilot)
        await sees(pilot, "→ amount ×100 in 28 of 28 rows that differ")
        shown = screen_text(app).splitlines()
        at = next(i for i, line in enumerate(shown) if "amount ×100" in line)
        first = next(i for i, line in enumerate(shown) if "expected" in line)
        assert at < first
        screen.go_to(next(p for p in app.pointers if "right" in p.case_id))
        await until(pilot, lambda: tab.view is not None and not tab.view.wrong)
        await until(pilot, lambda: "×100" not in screen_text(app))
