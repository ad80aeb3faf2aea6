"""What stays in its place in a list while it is worked on, and what a thread makes of many cases."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tests.tui.loaders.test_linked_runs import LinkingEngine
from tui_eval.tui.screens import list_arrangement
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import View

NAMES = ["case 0", "case 1", "case 2", "case 3"]


def names(app) -> list[str]:
    return [entry.name for entry in app.screen.shown_entries()]


async def rerun_passes(app, pilot, case: int = 0) -> None:
    """`r`, and the case passes now."""
    known = len(app.services.engines.own.requests)
    await pilot.press("r")
    await until(lambda: len(app.services.engines.own.requests) > known, pilot)
    run = app.services.engines.own.live
    await until(lambda: app.state.group.find_run(run.info.id) is not None, pilot)
    run.start(0)
    await until(lambda: app.screen.case_list.current_entry.status == "running", pilot)
    assert app.screen.case_list.current_entry.name == f"case {case}"
    run.done(0, "passed")
    run.finish()
    await until(lambda: app.screen.case_list.current_entry.status == "passed", pilot)


@pytest.mark.real
async def test_a_case_that_passes_now_leaves_the_failures_when_the_cursor_does(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.all_done(["passed", "failed", "passed", "failed"])
    async with running_app(root, engine=LinkingEngine(root), open_run=run.folder) as (app, pilot):
        await until(
            lambda: isinstance(app.screen, RunScreen) and names(app)[:2] == ["case 1", "case 3"], pilot
        )
        await rerun_passes(app, pilot, 1)
        assert names(app)[:2] == ["case 1", "case 3"]  # under the hands nothing moves
        await pilot.press("j")
        await until(lambda: names(app) == ["case 3", "case 0", "case 1", "case 2"], pilot)
        assert app.screen.case_list.current_entry.name == "case 3"
        assert not app.screen.view.held


@pytest.mark.real
@pytest.mark.parametrize("place", ["run", "suites"])
async def test_a_filter_lets_go_of_what_passes_when_the_cursor_leaves_it(tmp_path, place):
    suite = "agent: offline\ntest_cases:\n" + "".join(
        f"  - {{name: {name}, input: hello, expected: {{should_contain: [x]}}}}\n" for name in NAMES
    )
    root = project(tmp_path, {"suites/support.yaml": suite})
    run = LiveRun(root, NAMES)
    run.all_done(["failed", "passed", "failed", "failed"])
    async with running_app(root, engine=LinkingEngine(root), open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and len(names(app)) == 4, pilot)
        if place == "suites":
            await pilot.press("U")
        await pilot.press("f", *"failed", "enter")
        await until(lambda: names(app) == ["case 0", "case 2", "case 3"], pilot)
        app.screen.case_list.go_to(app.screen.shown_entries()[1].key)
        await rerun_passes(app, pilot, 2)
        assert names(app) == ["case 0", "case 2", "case 3"]
        await pilot.press("j")
        await until(lambda: names(app) == ["case 0", "case 3"], pilot)
        assert app.screen.case_list.current_entry.name == "case 3"
        await pilot.press("F")
        await until(lambda: len(names(app)) == 4, pilot)


def test_what_loses_its_place_is_held_and_what_gains_one_is_not():
    entry = partial(CaseRow, "k", "k", "n", "s", "nao")
    for view, before, after, held in (
        (View(failures_first=True), "failed", "running", True),
        (View(failures_first=True), "running", "failed", False),
        (View(failures_first=True), "passed", "running", False),
        (View(accept=lambda one, _: one.status == "failed"), "failed", "passed", True),
        (View(accept=lambda one, _: one.status == "failed"), "passed", "failed", False),
        (View(), "failed", "passed", True),  # what passed folds away with the others that did
        (View(sort="name"), "failed", "passed", False),
    ):
        list_arrangement.hold(view, {"k": entry(before)}, {"k": entry(after)})
        assert bool(view.held) is held, (before, after)


@pytest.mark.real
async def test_many_cases_are_made_in_a_thread_and_what_changes_meanwhile_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(list_arrangement, "MANY", 2)
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, (120, 40), open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and len(names(app)) == 4, pilot)
        for number in range(4):
            run.start(number)
        await until(lambda: screen_text(app).count("●") >= 4, pilot)
        run.done(2, "failed", "no")
        run.done(0, "passed")
        await until(lambda: names(app)[0] == "case 2", pilot)
        await pilot.press("U")
        await until(lambda: app.screen.arrangement.up_to_date() and not app.screen.arrangement.busy, pilot)
        await until(lambda: "✗" in screen_text(app), pilot)
        run.done(1, "error", "broken")
        run.done(3, "passed")
        run.finish()
        await pilot.press("L")
        await until(
            lambda: {e.status for e in app.screen.shown_entries()} == {"failed", "error", "passed"}, pilot
        )
        await until(lambda: names(app)[:2] == ["case 1", "case 2"], pilot)


async def test_folders_of_many_cases_fold_and_unfold(tmp_path, monkeypatch):
    monkeypatch.setattr(list_arrangement, "MANY", 1)
    async with running_app(project(tmp_path)) as (app, pilot):
        await until(lambda: "refund is approved" in screen_text(app), pilot)
        await pilot.press("g", "left")
        await until(lambda: "refund is approved" not in screen_text(app), pilot)
        await pilot.press("right")
        await until(lambda: "refund is approved" in screen_text(app), pilot)


@pytest.mark.real
async def test_next_and_previous_go_through_the_models_of_one_agent(tmp_path):
    from tests.support.live_run import FakeEngine
    from tui_eval.store.writer import PlannedCase

    root = project(tmp_path)
    run = LiveRun(root, [])
    case = LiveRun(root, ["a case"]).cases[0]
    run.writer.plan([PlannedCase(case, "offline", model, 1, 1, 1) for model in ("m1", "m2", "m3")])
    run.finish()
    async with running_app(root, engine=FakeEngine(root), open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and len(names(app)) == 3, pilot)
        await pilot.press("right")  # three rows of one test that wait are one line
        await until(lambda: len(app.screen.case_list.cases.lines) == 4, pilot)
        await pilot.press("j")
        seen = []
        pointer = app.screen.current()
        while pointer is not None:
            seen.append(pointer.model)
            app.screen.go_to(pointer)
            pointer = app.screen.neighbour(pointer, 1, False)
        assert seen == ["m1", "m2", "m3"]


@pytest.mark.real
@pytest.mark.parametrize("many", [1, 20_000], ids=["in a thread", "at once"])
@pytest.mark.parametrize("filtered", ["", "case"])
async def test_cursor_filter_marks_and_order_come_back(tmp_path, monkeypatch, many, filtered):
    monkeypatch.setattr(list_arrangement, "MANY", many)
    suite = "agent: offline\ntest_cases:\n" + "".join(
        f"  - {{name: {name}, input: hello, expected: {{should_contain: [x]}}}}\n" for name in NAMES
    )
    root = project(tmp_path, {"suites/support.yaml": suite})
    async with running_app(root) as (app, pilot):
        await until(lambda: len(names(app)) == 4, pilot)
        if filtered:
            await pilot.press("f", *filtered, "enter")
            await until(lambda: app.screen.expression == filtered, pilot)
        app.screen.case_list.go_to("suites/support.yaml::case 1")
        await pilot.press("space", "s", "s", "S")
        await until(lambda: names(app)[0] == "case 3", pilot)
        app.screen.case_list.go_to("suites/support.yaml::case 2")
        await pilot.press("q")
        await until(lambda: app.return_code is not None or not app.is_running, pilot)
    async with running_app(root) as (app, pilot):
        await until(lambda: names(app)[:1] == ["case 3"], pilot)
        await until(lambda: app.screen.case_list.current_entry.name == "case 2", pilot)
        assert app.screen.case_list.marks == {"suites/support.yaml::case 1"}
        assert app.screen.expression == filtered


MANY = "agent: offline\ntest_cases:\n" + "".join(
    f"  - {{name: {word} {number}, input: hello, expected: {{should_contain: [x]}}}}\n"
    for number in range(30)
    for word in ("red", "blue")
)


@pytest.mark.real
async def test_a_filter_leaves_the_cursor_near_where_it_was_and_escape_brings_it_back(tmp_path):
    root = project(tmp_path, {"suites/support.yaml": MANY})
    async with running_app(root) as (app, pilot):
        place = app.screen
        place.case_list.go_to("suites/support.yaml::red 20")
        await pilot.press("f", *"blue")
        await until(lambda: len(place.shown_entries()) == 30, pilot)
        assert place.case_list.current_entry.name == "blue 20"  # the next one, not the last line
        await pilot.press("escape")
        await until(lambda: len(place.shown_entries()) == 60, pilot)
        assert place.case_list.current_entry.name == "red 20"
        await pilot.press("f", *"blue", "enter")
        await until(lambda: len(place.shown_entries()) == 30, pilot)
        assert place.case_list.current_entry.name == "blue 20"
        await pilot.press("f", "ctrl+u", *"red", "enter")
        await until(lambda: {entry.name[:3] for entry in place.shown_entries()} == {"red"}, pilot)
        assert place.case_list.current_entry.name == "red 20"  # none of them was there: the same height
        await pilot.press("left")
        await until(lambda: place.case_list.current_line.kind == "suite", pilot)
        await pilot.press("left")
        await until(lambda: place.case_list.current_line.folded, pilot)
        assert place.case_list.current_line.key == "suites/support.yaml"


async def test_another_order_is_seen_from_its_top_and_the_tree_comes_back_where_the_cursor_is(tmp_path):
    root = project(tmp_path, {"suites/support.yaml": MANY})
    run = LiveRun(root, ["blue 29", "red 0"])
    run.all_done(["failed", "passed"])
    async with running_app(root) as (app, pilot):
        cases = app.screen.case_list
        cases.go_to("suites/support.yaml::red 20")
        await pilot.press("i")
        await until(lambda: "failures first" in screen_text(app), pilot)
        assert cases.current_entry.name == "blue 29" and (cases.cursor, cases.top) == (0, 0)
        await pilot.press("i")
        await until(lambda: cases.cases.lines[0].kind == "folder", pilot)
        assert cases.current_entry.name == "blue 29"
        await pilot.press("s")
        await until(lambda: "by outcome" in screen_text(app), pilot)
        assert cases.current_entry.name == "blue 29" and cases.cursor == 0


@pytest.mark.real
async def test_the_live_run_of_a_project_that_has_runs_is_its_newest(tmp_path):
    root = project(tmp_path)
    LiveRun(root, NAMES).all_done(["passed"] * 4)
    newest = LiveRun(root, NAMES[:2])
    newest.all_done(["failed", "passed"])
    async with running_app(root) as (app, pilot):
        assert not app.state.run
        await pilot.press("L")
        await until(lambda: isinstance(app.screen, RunScreen) and app.state.run is not None, pilot)
        assert app.state.run.info.id == newest.info.id
        await until(lambda: "case 0 went wrong" in screen_text(app), pilot)
        await pilot.press("U", "L")
        assert isinstance(app.screen, RunScreen)


@pytest.mark.real
async def test_a_run_at_work_goes_before_newer_ones_that_have_ended(tmp_path):
    root = project(tmp_path)
    running = LiveRun(root, NAMES)
    LiveRun(root, NAMES).all_done(["passed"] * 4)
    async with running_app(root) as (app, pilot):
        await pilot.press("L")
        await until(lambda: app.state.run is not None, pilot)
        assert app.state.run.info.id == running.info.id
        running.finish()


@pytest.mark.real
async def test_a_flaky_case_of_the_past_says_how_many_passed(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, ["refund is approved"], attempts=3)
    for attempt, outcome in enumerate(("passed", "failed", "passed")):
        run.done(0, outcome, attempt=attempt)
    run.finish()
    async with running_app(root) as (app, pilot):
        await until(lambda: "flaky 2/3" in screen_text(app), pilot)
