"""What each tab looks like at 80x24 and 120x40."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support import mostly_real
from tests.support.attempts import (
    chat_prompt,
    hallucinated_argument,
    judged,
    missing_row,
    multi_agent_in_time,
    text_failure,
)
from tests.support.case_host import host, loaded, until
from tests.support.settling import rested
from tests.tui.inspector.test_case_history import add_run
from tui_eval.model import Usage
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.inspector.history import HistoryTab

TABS = {
    "transcript": (text_failure, "1"),
    "tools": (hallucinated_argument, "2"),
    "assertions": (judged, "3"),
    "data": (missing_row, "4"),
    "raw": (text_failure, "5"),
    "times": (multi_agent_in_time, "s"),
    "network": (multi_agent_in_time, "1"),
    "chat": (chat_prompt, "1"),
    "nearest": (chat_prompt, "3"),
}


@pytest.fixture(autouse=True)
def universal_time(monkeypatch: pytest.MonkeyPatch):
    """Raw shows times of day."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40)], (80, 24)))
@pytest.mark.parametrize("tab", list(TABS))
def test_tab(snap_compare, tmp_path: Path, tab: str, size: tuple[int, int]) -> None:
    make, key = TABS[tab]

    async def before(pilot) -> None:
        screen = await loaded(pilot)
        if key == "s":
            await pilot.press("2")
        if key != "1":
            await pilot.press(key)
        if isinstance(data := screen.tab, DataTab):
            await until(pilot, lambda: data.view is not None and data.queries is not None)
        await until(pilot, lambda: screen.tab.main.row_count > 0)
        if key == "3":
            await until(pilot, lambda: screen.content.past is not None)
        await rested(pilot)

    assert snap_compare(host(tmp_path, make()), terminal_size=size, run_before=before)


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40)], (80, 24)))
def test_history(snap_compare, tmp_path: Path, size: tuple[int, int]) -> None:
    app = host(tmp_path, text_failure())
    for number in range(2, 9):
        attempt = text_failure()
        attempt.started_at += 3600 * number
        attempt.duration_ms = 9000.0 + number * 1700 % 6000
        attempt.usage = Usage(2000 + 411 * number % 1700, 100 + number)
        if number % 3:
            attempt.outcome, attempt.message = "passed", "passed"
            attempt.response_text = "Our refund policy covers 30 days; I can offer a repair."
        add_run(tmp_path, attempt, linked=None, run_id=f"20260601-13000{number}-bbbb")
    Notes(tmp_path).put(
        HumanNote("20260601-130006-bbbb", 1, text_failure().case_id, "wrong", "no repair", True)
    )

    async def before(pilot) -> None:
        screen = await loaded(pilot)
        await pilot.press("h")
        tab = screen.tab
        assert isinstance(tab, HistoryTab)
        await until(pilot, lambda: tab.table.row_count == 8 and screen.focused is tab.table)
        await pilot.press("g", "j")
        await rested(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)
