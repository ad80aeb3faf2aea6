"""A key that runs everything says what it will run where that is not in sight, and is never the end of another one."""

from __future__ import annotations

from pathlib import Path

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tui_eval.tui.screens.dialogs import AskScreen


async def test_a_in_runs_asks_what_it_would_run_and_runs_it(tmp_path: Path) -> None:
    root = project(tmp_path)
    LiveRun(root, ["refund is approved"]).all_done(["passed"])
    async with running_app(root, (100, 30)) as (app, pilot):
        requests = app.services.engines.own.requests
        await pilot.press("H", "a")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        text = screen_text(app)
        assert (
            "Run all that Suites shows?" in text and "3 cases, 3 attempts" in text and "with offline" in text
        )
        await pilot.press("n")
        assert not requests
        await pilot.press("a")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await pilot.press("y")
        await until(lambda: requests, pilot)
        assert len(requests[0].case_ids or []) == 3
        app.services.engines.own.live.finish()


async def test_y_on_a_list_copies_of_the_case_and_what_follows_runs_nothing(tmp_path: Path) -> None:
    root = project(tmp_path)
    LiveRun(root, ["refund is approved"]).all_done(["failed"])
    async with running_app(root, (100, 30)) as (app, pilot):
        await until(lambda: app.state.rows[0].last is not None, pilot)
        await pilot.press("G")
        app.places.suites.go_to(app.places.suites.pointer_of(app.places.suites.shown_entries()[0]))
        await pilot.press("y", "a")
        await until(lambda: "no actual to copy" in screen_text(app), pilot)
        await pilot.press("y", "i")
        await until(lambda: "id: " in screen_text(app), pilot)
        assert app.clipboard == app.state.rows[0].case_id
        assert not app.services.engines.own.requests
