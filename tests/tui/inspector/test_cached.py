"""Answers from the cache are said to be that wherever an attempt, a case or a run is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.attempts import text_failure
from tests.support.case_host import host, sees
from tests.support.live_run import LiveRun, project
from tui_eval.model import Attempt
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.case.case_details import describe_entry
from tui_eval.tui.state.lists.entries import run_entries
from tui_eval.tui.state.runs.run_facts import figures_line
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.text.formatting import Symbols


def cached() -> Attempt:
    return msgspec.structs.replace(text_failure(), cached=1, saved=0.25, cost=0.0)


async def test_the_case_screen_says_it_in_the_head_in_raw_and_in_history(tmp_path: Path) -> None:
    app = host(tmp_path, cached())
    async with app.run_test(size=(120, 40)) as pilot:
        await sees(pilot, "cached")
        await pilot.press("5")
        await sees(pilot, "no request made for it")


def test_the_lists_and_the_run_say_it(tmp_path: Path) -> None:
    host(tmp_path, cached())
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


@pytest.mark.parametrize("width", [80, 120])
async def test_suites_and_the_grid_say_it_of_the_last_result(tmp_path: Path, width: int) -> None:
    names = ["refund is approved", "greets by name"]
    root = project(tmp_path)
    run = LiveRun(root, names)
    for number, taken in enumerate((1, 0)):
        attempt = msgspec.structs.replace(
            cached(), case_id=run.cases[number].case_id, agent="offline", outcome="failed", cached=taken
        )
        run.writer.done(run.refs[number][0], attempt)
    run.finish()
    async with running_app(root, (width, 24)) as (app, pilot):
        await until(lambda: app.state.rows[0].last is not None, pilot)
        for key in ("", "M"):
            await pilot.press(*([key] if key else []))
            await until(lambda: [" cached" in line_of(app, name) for name in names] == [True, False], pilot)


def line_of(app: Any, name: str) -> str:
    lines = screen_text(app).splitlines()
    return next((line for line in lines[1:14] if name in line), "")


def test_the_index_knows_it_of_each_result(tmp_path: Path) -> None:
    host(tmp_path, cached())
    (results,) = Index(tmp_path).latest(None).values()
    assert [one.cached for one in results] == [1]
