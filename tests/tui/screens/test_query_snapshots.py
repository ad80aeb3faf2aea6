"""How a query that is tried looks, on the jaffle shop: its rows, compared, and what DuckDB says of a wrong one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.case_host import host, loaded, screen_text, until
from tests.support.settling import rested
from tests.tui.inspector.test_data_snapshots import ORDERS, SHOP, SIZES, mistaken
from tui_eval.config.project import load
from tui_eval.model import Case
from tui_eval.tui.screens.query_screen import QueryScreen

HALVED = ORDERS.replace("amount from", "amount / 2 as amount from").replace(" limit 40", " limit 38")


@pytest.mark.real
@pytest.mark.usually(4)  # rows, too
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("sql", "keys"), [("", ""), (ORDERS, ""), (HALVED, "c"), ("select order_id, amuont from orders", "")],
    ids=["asked", "rows", "compared", "fault"],
)  # fmt: skip
def test_query(
    snap_compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, keys: str, size: tuple[int, int]
) -> None:
    monkeypatch.setattr("tui_eval.tui.screens.query_screen._took", lambda seconds: "12 ms")
    (tmp_path / "tui_eval.yaml").write_text(f"databases: {{shop: {{type: duckdb, path: {SHOP}}}}}\n")
    app = host(tmp_path, mistaken())

    async def before(pilot: Any) -> None:
        app.services.state.config = load(root=tmp_path)
        app.services.state.trusted = True
        case_screen = await loaded(pilot)
        case_screen.content.case = case_screen.content.case or Case("t::t", "t", "t.yml", "nao")
        await pilot.press("4", "S")
        await until(pilot, lambda: isinstance(app.screen, QueryScreen) and app.screen.is_mounted)
        screen = app.screen
        assert isinstance(screen, QueryScreen)
        await until(pilot, lambda: screen.prompt.line.has_focus)
        if sql:
            screen.prompt.line.value = sql
            await pilot.press("enter")
            await until(pilot, lambda: screen.found is not None)
            await pilot.press(*keys)
        else:
            await until(pilot, lambda: "order_id" in screen_text(app))  # the tables that may be asked
        if keys:
            await until(pilot, lambda: screen.comparing)
        await rested(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)
