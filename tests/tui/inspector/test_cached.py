"""Answers from the cache are said to be that wherever an attempt, a case or a run is shown."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.support.attempts import text_failure
from tests.support.case_host import host, sees
from tui_eval.store.reader import RunReader
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.case.case_details import describe_entry
from tui_eval.tui.state.lists.entries import run_entries
from tui_eval.tui.state.runs.run_facts import figures_line
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.text.formatting import Symbols


def cached() -> object:
    return msgspec.structs.replace(text_failure(), cached=1, saved=0.25, cost=0.0)


async def test_the_case_screen_says_it_in_the_head_in_raw_and_in_history(tmp_path: Path) -> None:
    app = host(tmp_path, cached())  # type: ignore[arg-type]
    async with app.run_test(size=(120, 40)) as pilot:
        await sees(pilot, "cached")
        await pilot.press("5")
        await sees(pilot, "no request made for it")


def test_the_lists_and_the_run_say_it(tmp_path: Path) -> None:
    host(tmp_path, cached())  # type: ignore[arg-type]
    (folder,) = (tmp_path / ".tui-eval" / "runs").iterdir()
    reader = RunReader(folder)
    view = RunView(reader.info(), folder)
    view.apply_cases(reader.cases())
    view.apply_attempts(reader.attempts())
    reader.close()
    symbols = Symbols()
    assert any(
        "1 cached ($0.25" in text and "saved" in text for _, text in figures_line(view, symbols, 0.0, 120)
    )
    (entry,) = run_entries(RunGroup([view]), AppState(tmp_path))
    assert entry.cached == 1
    assert any("cached" in text for _, text in describe_entry(entry, symbols, 0.0))
