"""When a list of cases is put in order anew while they run."""

from __future__ import annotations

from tests.support.app_host import FakeEngine, LiveRun, project, running_app, screen_text, until
from tui_eval.tui.screens.list_arrangement import LONGEST_PAUSE, pause_after
from tui_eval.tui.screens.run_screen import RunScreen


def test_failures_of_a_large_run_come_into_the_list_within_seconds():
    assert pause_after(0.001, 2.0) == 2.0
    assert pause_after(0.3, 2.0) == 6.0
    assert pause_after(60.0, 2.0) == LONGEST_PAUSE <= 10


async def test_a_run_without_rows_yet_is_not_said_to_be_filtered(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, [])
    async with running_app(root, open_run=run.folder, engine=FakeEngine(root)) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and "running" in screen_text(app), pilot)
        await until(lambda: "Starting." in screen_text(app), pilot)
        assert "Nothing matches" not in screen_text(app)
        run.finish()
