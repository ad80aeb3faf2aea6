"""`r` and `+` from a run: the list keeps all cases, each with its newest attempts."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import FakeEngine, LiveRun, project
from tui_eval.engine.request import RunRequest
from tui_eval.engine.service.client import RunStarted
from tui_eval.store.linked import load_together
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.widgets.lines_pane import LinesPane
from tui_eval.tui.widgets.stream_grid import StreamGrid

NAMES = ["refund is approved", "greets by name", "calms an angry customer"]


class LinkingEngine(FakeEngine):
    """Its runs are linked as asked for and number their attempts from where they are asked to."""

    async def run(self, request: RunRequest) -> RunStarted:
        self.requests.append(request)
        names = [case_id.partition("::")[2] for case_id in request.case_ids or []]
        self.live = LiveRun(
            self.root,
            names,
            linked_to=request.linked_to,
            first_attempt=request.first_attempt,
            options=msgspec.to_builtins(request),
        )
        return RunStarted(self.live.info.id, self.live.folder, len(names), [])


async def started(root: Path, size=(80, 24)):
    run = LiveRun(root, NAMES)
    run.all_done(["failed", "passed", "passed"])
    return running_app(root, size, engine=LinkingEngine(root), open_run=run.folder), run


def line_of(app, name: str) -> str:
    return next((line for line in screen_text(app).splitlines() if name in line), "")


@pytest.mark.real
async def test_a_rerun_keeps_the_other_cases_and_plus_adds_an_attempt(tmp_path):
    host, first = await started(project(tmp_path))
    async with host as (app, pilot):
        await until(lambda: "✗1" in screen_text(app), pilot)
        await pilot.press("r")
        await until(lambda: app.state.run is not None and app.state.run.info.linked_to, pilot)
        assert app.services.engines.own.requests[0].linked_to == first.info.id
        live = app.services.engines.own.live
        live.start(0)
        await until(lambda: "●" in line_of(app, "refund is"), pilot)
        assert "✓ ▸ 2 passed" in screen_text(app) and "of 3" in screen_text(app)
        assert screen_text(app).splitlines()[2].startswith(" ●")  # it stays where it was
        live.done(0, "passed")
        live.finish()
        await until(lambda: "✓3" in screen_text(app), pilot)
        assert "✗" not in line_of(app, "refund is") and isinstance(app.screen, RunScreen)

        await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
        await pilot.press("plus")
        await until(lambda: len(app.services.engines.own.requests) == 2, pilot)
        assert app.services.engines.own.requests[1].first_attempt == 2
        await until(lambda: len(app.state.group.runs) == 3, pilot)
        app.services.engines.own.live.start(0)
        app.services.engines.own.live.done(0, "failed", "no refund in it")
        app.services.engines.own.live.finish()
        await until(lambda: "✓✗" in line_of(app, "refund is"), pilot)
        pointer = app.screen.current()
        assert (
            pointer is not None
            and pointer.run_id == app.services.engines.own.live.info.id
            and app.state.attempts_of(pointer)[0].outcome == "failed"
        )
        await pilot.press("U")
        await until(lambda: "flaky 1/2" in line_of(app, "refund is"), pilot)


@pytest.mark.real
async def test_a_run_goes_on_beside_a_rerun_of_one_of_its_cases(tmp_path):
    root = project(tmp_path)
    first = LiveRun(root, NAMES)
    async with running_app(root, engine=LinkingEngine(root), open_run=first.folder) as (app, pilot):
        first.start(0)
        first.done(0, "failed", "no")
        first.start(1)
        await until(lambda: "✗" in line_of(app, "refund is"), pilot)
        await pilot.press("r")
        await until(lambda: app.state.group and len(app.state.group.runs) == 2, pilot)
        second = app.services.engines.own.live
        second.start(0)
        first.done(1, "passed")
        await until(lambda: "✓" in line_of(app, "greets by name"), pilot)
        second.done(0, "passed")
        second.finish()
        await until(lambda: app.state.run.info.id == first.info.id, pilot)  # what still runs is in front
        await until(lambda: "✓" in line_of(app, "refund is"), pilot)
        assert app.runs.running
        first.start(2)
        first.done(2)
        first.finish()
        await until(lambda: not app.runs.running, pilot)
        await until(lambda: "✓3" in screen_text(app), pilot)


@pytest.mark.real
async def test_an_opened_rerun_shows_what_it_builds_on(tmp_path):
    root = project(tmp_path)
    first = LiveRun(root, NAMES)
    first.all_done(["failed", "passed", "passed"])
    again = LiveRun(root, NAMES[:1], linked_to=first.info.id)
    again.all_done(["passed"])
    async with running_app(root, open_run=again.folder) as (app, pilot):
        await until(lambda: "✓3" in screen_text(app), pilot)
        await until(lambda: "✓ ▸ 3 passed" in screen_text(app), pilot)
        await pilot.press("right")
        await until(lambda: all("✓" in line_of(app, name) for name in NAMES), pilot)


@pytest.mark.real
async def test_the_newest_run_opened_by_its_key_counts_with_all_that_was_added(tmp_path):
    """After a restart as before it: reruns beside each other count, a step takes no run's place."""
    root = project(tmp_path)
    first = LiveRun(root, NAMES)
    first.all_done(["failed", "passed", "passed"])
    LiveRun(root, NAMES[:1], linked_to=first.info.id).all_done(["passed"])
    LiveRun(root, NAMES[1:2], linked_to=first.info.id).all_done(["failed"])
    LiveRun(root, NAMES[2:], linked_to=first.info.id, options={"step": True}).finish()
    async with running_app(root) as (app, pilot):
        await pilot.press("L")
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        await until(lambda: "✗ greets by name" in screen_text(app), pilot)
        await until(lambda: "✓2" in screen_text(app) and "✗1" in screen_text(app), pilot)
        assert [run.info.linked_to for run in app.state.group.runs] == [None, first.info.id, first.info.id]
        assert not app.state.run.info.options.get("step")


async def test_after_a_run_one_pane_at_a_time_on_a_small_screen(tmp_path):
    host, _ = await started(project(tmp_path))
    async with host as (app, pilot):
        await until(lambda: "✗1" in screen_text(app), pilot)
        await pilot.press("tab")
        await pilot.pause()
        screen = app.screen
        assert screen.query_one(LinesPane).display and not screen.query_one(StreamGrid).display
        assert screen.query_one(LinesPane).size.width >= 78 and not screen.case_list.display


@pytest.mark.real
async def test_an_untouched_cursor_stays_at_the_top_with_the_failures(tmp_path):
    root = project(tmp_path)
    names = [f"case {number}" for number in range(40)]
    run = LiveRun(root, names)
    async with running_app(root, open_run=run.folder) as (app, pilot):
        await until(lambda: app.state.run is not None and len(app.state.run.cases) == 40, pilot)
        for number in range(40):
            run.start(number)
            run.done(number, "failed" if number > 30 else "passed", "no" if number > 30 else "")
        run.finish()
        await until(lambda: not app.state.run.active, pilot)
        await until(lambda: screen_text(app).count(" ✗ case") == 9, pilot)
        assert app.screen.case_list.cursor == 0 and app.screen.case_list.top == 0


@pytest.mark.real
@pytest.mark.parametrize("which", [1, 2])
async def test_an_attempt_judged_again_takes_its_own_place(tmp_path, which):
    """`.` on one of three attempts: the list keeps three, and that one stays the one shown."""
    root = project(tmp_path)
    first = LiveRun(root, NAMES[:2], attempts=3)
    for number, outcome in enumerate(("failed", "failed", "passed")):
        first.start(0, number)
        first.done(0, outcome, "no" if outcome == "failed" else "", number)
        first.done(1, attempt=number)
    first.finish()
    async with running_app(root, (120, 40), engine=LinkingEngine(root), open_run=first.folder) as (
        app,
        pilot,
    ):
        await until(lambda: "✗✗✓" in line_of(app, "refund is"), pilot)
        await pilot.press("enter")
        await until(lambda: "attempt 1 of 3" in screen_text(app), pilot)
        if which == 2:
            await pilot.press("greater_than_sign")
            await until(lambda: "attempt 2 of 3" in screen_text(app), pilot)
        await pilot.press("full_stop")
        await until(lambda: app.state.run is not None and app.state.run.info.linked_to, pilot)
        request = app.services.engines.own.requests[0]
        assert (request.attempts, request.first_attempt) == (1, which)
        again = app.services.engines.own.live
        again.start(0)
        again.done(0, "passed")
        again.finish()
        judged = "✓✗✓" if which == 1 else "✗✓✓"
        await until(lambda: f"attempt {which} of 3 {judged}" in screen_text(app), pilot)
        assert "new run" in screen_text(app) and "2/3 flaky" in screen_text(app)
        await pilot.press("escape")
        await until(lambda: judged in line_of(app, "refund is"), pilot)
    told = load_together([first.folder, again.folder])
    assert [one.passed for one in told if "refund" in one.case_id] == [2]


@pytest.mark.real
async def test_an_attempt_that_ends_while_the_case_is_read_is_shown_as_it_ended(tmp_path, monkeypatch):
    """As an answer that is judged again does, within milliseconds."""
    from tui_eval.tui.screens import case_reader

    host, _ = await started(project(tmp_path))
    read, go_on = threading.Event(), threading.Event()
    load = case_reader.load

    def slow(where):
        content = load(where)
        if content.running:  # read before its end, given to the screen after it
            read.set()
            go_on.wait(60)
        return content

    async with host as (app, pilot):
        await until(lambda: "✗1" in screen_text(app), pilot)
        await pilot.press("enter")
        await until(lambda: getattr(app.screen, "content", None) and app.screen.content.attempt, pilot)
        monkeypatch.setattr(case_reader, "load", slow)
        await pilot.press("r")
        await until(read.is_set, pilot)
        app.services.engines.own.live.start(0)
        app.services.engines.own.live.done(0, "passed")
        app.services.engines.own.live.finish()
        await until(lambda: not app.state.run.active and app.state.run.counts.done == 1, pilot)
        go_on.set()
        await until(lambda: "✓ passed" in screen_text(app), pilot)
