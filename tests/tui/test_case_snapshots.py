"""What each tab looks like at 80x24 and 120x40."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.tui.attempts import hallucinated_argument, judged, missing_row, text_failure
from tests.tui.case_host import host, loaded, until
from tui_eval.tui.inspector.data import DataTab

TABS = {
    "transcript": (text_failure, "1"),
    "tools": (hallucinated_argument, "2"),
    "assertions": (judged, "3"),
    "data": (missing_row, "4"),
    "raw": (text_failure, "5"),
}


@pytest.fixture(autouse=True)
def universal_time(monkeypatch: pytest.MonkeyPatch):
    """Raw shows times of day."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
@pytest.mark.parametrize("tab", list(TABS))
def test_tab(snap_compare, tmp_path: Path, tab: str, size: tuple[int, int]) -> None:
    make, key = TABS[tab]

    async def before(pilot) -> None:
        screen = await loaded(pilot)
        if key != "1":
            await pilot.press(key)
        if isinstance(screen.tab, DataTab):
            await until(pilot, lambda: screen.tab.view is not None)
        await until(pilot, lambda: screen.tab.main.row_count > 0)
        await pilot.pause(0.1)

    assert snap_compare(host(tmp_path, make()), terminal_size=size, run_before=before)
