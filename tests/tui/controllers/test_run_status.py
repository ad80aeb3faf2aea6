"""What runs stands at the end of every screen's footer, and a run that goes on is followed when the app opens."""

from __future__ import annotations

import re
import time

import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tests.tui.screens.test_runs_screen import write_runs

NAMES = ["one", "two", "three"]


@pytest.mark.real
async def test_an_app_that_opens_follows_the_run_that_goes_on_and_every_screen_says_how_far_it_is(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.start(0)
    run.done(0, "passed")
    async with running_app(root, (100, 24)) as (app, pilot):
        await until(lambda: "● 1/3 ✓1" in screen_text(app).splitlines()[-1], pilot)
        await pilot.press("H")
        await until(lambda: "● 1/3 ✓1" in screen_text(app).splitlines()[-1], pilot)
        run.start(1)
        run.done(1, "failed", "no")
        await until(lambda: "● 2/3 ✓1 ✗1" in screen_text(app).splitlines()[-1], pilot)
        await pilot.press("L")
        await until(lambda: "2/3" in screen_text(app).splitlines()[0], pilot)
        assert "2/3" not in screen_text(app).splitlines()[-1]
        run.start(2)
        run.done(2, "passed")
        run.finish()
        await pilot.press("U")
        await until(
            lambda: "3/3" not in screen_text(app) and "●" not in screen_text(app).splitlines()[-1], pilot
        )


async def test_a_project_without_a_run_at_work_says_nothing(tmp_path):
    root = project(tmp_path)
    LiveRun(root, NAMES).all_done(["passed"] * 3)
    async with running_app(root, (100, 24)) as (app, pilot):
        await pilot.pause(0.2)
        assert app.state.run is None


@pytest.mark.real
async def test_runs_that_another_process_makes_are_seen_in_an_app_that_is_open(tmp_path):
    root = project(tmp_path)
    LiveRun(root, ["refund is approved", "greets by name"]).all_done(["passed", "passed"])
    async with running_app(root, (120, 40)) as (app, pilot):
        await until(lambda: "✓2" in screen_text(app) or "✓ 2" in screen_text(app), pilot)
        LiveRun(root, ["refund is approved", "greets by name"]).all_done(["failed", "passed"])
        await until(lambda: "case 0 went wrong" in screen_text(app), pilot)
        await pilot.press("H")
        await until(lambda: len(app.screen.query("RowTable").first().rows) == 2, pilot)
        LiveRun(root, ["greets by name"]).all_done(["failed"])
        await until(lambda: len(app.screen.query("RowTable").first().rows) == 3, pilot)


def last(app) -> str:
    """The last line of the screen, without the time left."""
    return re.sub(r" ~\S+ L$", " L", screen_text(app).splitlines()[-1])


@pytest.mark.real
async def test_with_an_older_run_in_front_every_screen_tells_of_the_one_that_goes_on_and_keys_mean_it(
    tmp_path,
):
    root = project(tmp_path)
    (old,) = write_runs(root, ["passed", "failed", "passed"])
    run = LiveRun(root, NAMES)
    run.start(0)
    run.done(0, "passed")

    async with running_app(root) as (app, pilot):
        await until(lambda: last(app).endswith("● 1/3 ✓1 L"), pilot)
        await pilot.press("H")
        await until(lambda: len(app.screen.query("RowTable").first().rows) == 2, pilot)
        await pilot.press("j", "enter")
        await until(lambda: app.state.run is not None and app.state.run.folder == old, pilot)
        assert app.screen.kind == "run"
        await until(lambda: last(app).endswith("● 1/3 ✓1 L"), pilot)
        await pilot.press("H")
        await until(lambda: app.screen.kind == "runs" and last(app).endswith("● 1/3 ✓1 L"), pilot)
        await pilot.press("P")
        assert app.notices.lines[-1][2] != "no run goes on"
        await pilot.press("X")
        await until(lambda: "Cancel the run? 2 attempts have not ended." in screen_text(app), pilot)
        assert f"It is {run.info.id}; L shows it." in screen_text(app)
        await pilot.press("n", "L")
        await until(lambda: app.state.run.info.id == run.info.id and app.screen.kind == "run", pilot)
        await until(lambda: "1/3" in screen_text(app).splitlines()[0] and "●" not in last(app), pilot)
        run.start(1)
        run.done(1, "failed", "no")
        await until(lambda: "2/3" in screen_text(app).splitlines()[0], pilot)
        await pilot.press("U")
        await until(lambda: last(app).endswith("● 2/3 ✓1 ✗1 L"), pilot)
        run.finish()


@pytest.mark.real
async def test_the_end_of_a_run_beside_the_one_that_is_looked_at_is_told(tmp_path):
    root = project(tmp_path)
    (old,) = write_runs(root, ["passed", "failed", "passed"])
    run = LiveRun(root, NAMES)
    async with running_app(root) as (app, pilot):
        await until(lambda: app.state.run is not None, pilot)
        app.runs.open(old)
        await until(lambda: app.state.run.folder == old, pilot)
        run.all_done(["passed"] * 3)
        await until(lambda: any(text == "run finished: 3 passed" for *_, text in app.notices.lines), pilot)
        assert app.state.run.folder == old and app.screen.kind == "run"


@pytest.mark.real
async def test_a_run_begun_elsewhere_while_an_ended_one_is_in_front_is_told_of_and_does_not_take_its_place(
    tmp_path,
):
    root = project(tmp_path)
    (old,) = write_runs(root, ["passed"])
    async with running_app(root, open_run=old) as (app, pilot):
        await until(lambda: app.state.run is not None and app.screen.kind == "run", pilot)
        await until(lambda: app.other_engines.looked_at >= 5, pilot)
        run = LiveRun(root, NAMES)
        run.start(0)
        run.done(0, "passed")
        await until(lambda: last(app).endswith("● 1/3 ✓1 L"), pilot)
        assert app.state.run.folder == old
        await pilot.press("L")
        await until(lambda: app.state.run.info.id == run.info.id, pilot)
        await until(lambda: "1/3" in screen_text(app).splitlines()[0], pilot)
        run.finish()


@pytest.mark.real
async def test_a_run_in_front_that_is_gone_on_with_elsewhere_is_followed_again(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.start(0)
    run.done(0, "passed")
    run.writer.state("interrupted", time.time())
    async with running_app(root, (120, 40), open_run=run.folder) as (app, pilot):
        await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
        await until(lambda: app.other_engines.looked_at >= 5, pilot)
        run.start(1)
        run.start(2)
        run.done(1, "failed", "no")
        run.done(2, "passed")
        run.finish()
        await until(lambda: app.state.run.counts.done == 3 and app.state.run.info.state == "finished", pilot)


@pytest.mark.real
async def test_a_run_elsewhere_says_where_and_raw_which_worker(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.info.place = "ray · 3 nodes · 24 workers"
    run.writer.update_info()
    run.start(0)
    run.done(0, "failed", "no", ran_on="worker 7 on 10.0.0.4 (node 5d2f81)")
    async with running_app(root, (120, 40), open_run=run.folder) as (app, pilot):
        await until(lambda: "ray · 3 nodes · 24 workers" in screen_text(app), pilot)
        run.info.place = "ray · 2 nodes · 16 workers"
        run.writer.update_info()
        await until(lambda: "ray · 2 nodes · 16 workers" in screen_text(app), pilot)
        await pilot.press("enter")
        await until(lambda: "Raw" in screen_text(app), pilot)
        await pilot.press("5")
        await until(lambda: "ran on worker 7 on 10.0.0.4 (node 5d2f81)" in screen_text(app), pilot)
        run.finish()
