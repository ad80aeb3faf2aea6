"""When a list of cases is put in order anew while they run."""

from __future__ import annotations

import time

import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import FakeEngine, LiveRun, project
from tui_eval.model import Outcome
from tui_eval.tui.background import Tasks
from tui_eval.tui.controllers.front_run import FrontRun
from tui_eval.tui.front import RunChanged
from tui_eval.tui.screens import grid, list_arrangement
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.grid import GridScreen
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


async def test_a_case_that_was_written_is_shown_also_where_it_is_folded_away(tmp_path):
    root = project(tmp_path)
    LiveRun(root, ["refund is approved", "greets by name", "calms an angry customer"]).all_done(
        ["passed"] * 3
    )
    async with running_app(root) as (app, pilot):
        await until(lambda: "✓ ▸ 3 passed" in screen_text(app), pilot)
        key = "suites/support.yaml::greets by name"
        app.screen.bring(key, "suites/support.yaml")
        app.screen.arrangement.rebuild()
        await until(lambda: app.screen.case_list.current_line.key == key, pilot)
        await until(lambda: "✓ greets by name" in screen_text(app), pilot)


async def test_enter_twice_opens_the_case_that_is_looked_at_beside_a_fold(tmp_path):
    """Once more on the fold itself would fold it again, and nobody comes to the case."""
    root = project(tmp_path)
    names = ["refund is approved", "greets by name", "calms an angry customer"]
    LiveRun(root, names).all_done(["passed"] * 3)
    async with running_app(root) as (app, pilot):
        await until(lambda: "✓ ▸ 3 passed" in screen_text(app), pilot)
        cases = app.screen.case_list
        for _ in cases.cases.lines:
            if not cases.current_line.folded:
                await pilot.press("down")
        assert cases.current_line.members
        shown = cases.current_line.telling
        await pilot.press("enter")
        await until(lambda: cases.current_entry is shown, pilot)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, CaseScreen), pilot)
        await until(lambda: f"› {shown.name}" in screen_text(app), pilot)


async def test_what_is_unfolded_at_the_lower_edge_comes_into_sight(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, [f"case {number}" for number in range(12)])
    bad: list[Outcome] = ["failed", "error"]
    good: list[Outcome] = ["passed"]
    run.all_done(bad * 4 + good * 4)
    async with running_app(root, (80, 10), open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and app.screen.case_list.cases.lines, pilot)
        await pilot.press("G")
        cases = app.screen.case_list
        await until(lambda: cases.current_line.summary.name == "4 passed", pilot)
        assert cases.cursor == cases.top + cases.window - 1 and cases.current_line.folded
        await pilot.press("enter")
        await until(lambda: cases.cursor + 3 < cases.top + cases.window, pilot)
        assert not cases.current_line.folded


def kept_waiting(monkeypatch, kind):
    """What threads of this name would do and then do: it waits for the test. The others go on."""
    begun = []
    thread = Tasks.thread

    def held(self, work, then=None, failed=None, *, name="", **more):
        if name == kind:
            begun.append((work, then))
        else:
            thread(self, work, then, failed, name=name, **more)

    monkeypatch.setattr(Tasks, "thread", held)
    return begun


@pytest.mark.real
async def test_what_a_thread_arranges_is_not_begun_anew_with_each_case_that_goes_on(tmp_path, monkeypatch):
    """On a busy machine it would be ready when the run is: until then none of its failures had come into the list."""
    root = project(tmp_path)
    run = LiveRun(root, [f"case {number}" for number in range(12)])
    run.start(0)
    async with running_app(root, open_run=run.folder, engine=FakeEngine(root)) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and "waiting" in screen_text(app), pilot)
        begun = kept_waiting(monkeypatch, "arranging")
        monkeypatch.setattr(list_arrangement, "MANY", 2)
        monkeypatch.setattr(list_arrangement, "monotonic", lambda: 1e9)
        arrangement = app.screen.arrangement
        for _ in range(3):
            arrangement.rearrange_soon(0.0)
        assert len(begun) == 1
        work, then = begun[0]
        then(work())
        await until(lambda: len(begun) == 2, pilot)  # for what went on meanwhile
        run.finish()


@pytest.mark.real
async def test_the_rows_of_a_large_run_are_made_once_whatever_goes_on_meanwhile(tmp_path, monkeypatch):
    """They were made anew with news of the run, and once more for every case that was not there yet: the list came
    later than the panes, and said that the run was starting."""
    root = project(tmp_path)
    run = LiveRun(root, [f"case {number}" for number in range(12)])
    begun = kept_waiting(monkeypatch, "entries")
    replaced = []
    replace_some = list_arrangement.ListArrangement.replace_some

    def noted(self, keys, *more, **words):
        replaced.append(keys)
        return replace_some(self, keys, *more, **words)

    monkeypatch.setattr(list_arrangement.ListArrangement, "replace_some", noted)
    monkeypatch.setattr(list_arrangement, "MANY", 2)
    async with running_app(root, open_run=run.folder, engine=FakeEngine(root)) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and app.screen.arrangement.busy, pilot)
        await until(lambda: "12 cases: their list is being made." in screen_text(app), pilot)
        screen, many = app.screen, len(begun)
        run.start(0)
        group = app.state.group
        await until(lambda: app.state.run.running(), pilot)
        await until(lambda: bool(replaced), pilot)  # the screen has passed on what changed
        screen.arrangement.replace_some(list(group.cases)[:3])
        screen.post_message(RunChanged([], True))
        await pilot.pause()
        assert len(begun) == many
        work, then = begun[-1]
        then(work())
        await until(lambda: "● case 0" in screen_text(app), pilot)
        assert len(begun) == many
        run.finish()


async def test_rows_of_one_age_say_the_same_after_a_move(tmp_path, monkeypatch):
    """An idle list is not painted; a row that a move paints anew must not be older than those around it."""
    root = project(tmp_path)
    names = ["refund is approved", "greets by name", "calms an angry customer"]
    LiveRun(root, names).all_done(["failed"] * 3)
    async with running_app(root) as (app, pilot):
        cases = app.screen.case_list

        def ages() -> list[str]:
            lines = screen_text(app).splitlines()
            return [line.split()[-1] for line in lines if "✗" in line and "went wrong" in line]

        await until(lambda: len(ages()) == 3, pilot)
        monkeypatch.setattr(FrontRun, "refresh_history", lambda *_: None)  # that paints all of it too
        before = ages()
        cases.now = lambda: time.time() + 3 * 86_400
        await pilot.press("j", "j")
        await until(lambda: len(ages()) == 3 and not set(ages()) & set(before), pilot)


async def test_what_is_in_sight_of_many_cases_says_at_once_how_a_run_came_out(tmp_path, monkeypatch):
    """Until a thread had made every row, Suites said `not run` of a run that had just ended, and the grid, which heard
    nothing of it, went on to say so."""
    root = project(tmp_path)
    monkeypatch.setattr(list_arrangement, "MANY", 2)
    async with running_app(root, engine=FakeEngine(root)) as (app, pilot):
        suites = app.screen
        await until(lambda: len(suites.shown_entries()) == 3 and not suites.arrangement.busy, pilot)
        await pilot.press("H")
        await until(lambda: app.screen is not suites, pilot)
        LiveRun(root, ["refund is approved", "greets by name", "calms an angry customer"]).all_done(
            ["failed"] * 3
        )
        app.front_run.refresh_history()
        await until(lambda: all(item.last for item in app.state.rows), pilot)
        begun = kept_waiting(monkeypatch, "entries")
        await pilot.press("escape")
        await until(lambda: begun and app.screen is suites, pilot)
        text = screen_text(app)
        assert "· reading" in text and "✗ refund is approved" in text and "✗ calms an angry" in text
        await pilot.press("M")
        await until(lambda: isinstance(app.screen, GridScreen), pilot)
        await until(lambda: "The list of cases is being made." in screen_text(app), pilot)
        for work, then in begun:
            then(work())
        await until(lambda: "0/3" in (text := screen_text(app)) and "reading" not in text, pilot)


@pytest.mark.real
async def test_the_grid_does_not_make_the_rows_of_many_cases_while_keys_wait(tmp_path, monkeypatch):
    root = project(tmp_path)
    monkeypatch.setattr(list_arrangement, "MANY", 2)
    async with running_app(root, engine=FakeEngine(root)) as (app, pilot):
        await until(lambda: len(app.screen.shown_entries()) == 3 and not app.screen.arrangement.busy, pilot)
        await pilot.press("M")
        await until(lambda: isinstance(app.screen, GridScreen) and app.screen.table.rows, pilot)
        begun = kept_waiting(monkeypatch, "entries")
        app.services.places.post(RunChanged([], True))
        await until(lambda: begun, pilot)
        await until(lambda: "reading" in screen_text(app), pilot)
        for work, then in begun:
            then(work())
        await until(lambda: "reading" not in screen_text(app), pilot)


@pytest.mark.real
async def test_the_grid_of_many_cases_is_made_and_filtered_beside_the_app(tmp_path, monkeypatch):
    """That of 22,000 rows held up each key for 0.35 s, and its first paint for a second."""
    root = project(tmp_path)
    async with running_app(root, engine=FakeEngine(root)) as (app, pilot):
        await until(lambda: len(app.screen.shown_entries()) == 3 and not app.screen.arrangement.busy, pilot)
        monkeypatch.setattr(list_arrangement, "MANY", 2)
        begun = kept_waiting(monkeypatch, "grid")
        await pilot.press("M")
        await until(lambda: isinstance(app.screen, GridScreen) and begun, pilot)
        await until(lambda: "The grid is being made." in screen_text(app), pilot)
        work, then = begun.pop()
        then(work())
        await until(lambda: "3 tests" in screen_text(app) and "refund is approved" in screen_text(app), pilot)
        arranged = kept_waiting(monkeypatch, "arranging")
        await pilot.press("f", *"refund")
        await until(lambda: arranged, pilot)
        assert "calms an angry" in screen_text(app)
        work, then = arranged.pop()
        then(work())
        await until(lambda: begun, pilot)
        while begun:
            work, then = begun.pop(0)
            then(work())
            await pilot.pause(0.1)
        await until(lambda: "1 test " in screen_text(app) and "calms an angry" not in screen_text(app), pilot)


async def test_the_heads_of_the_grid_are_made_for_its_width_from_the_first(tmp_path, monkeypatch):
    """They stood as `…` over `columns 1-1 of 11` until all else had been painted."""
    root, given = project(tmp_path), []
    made = grid.title_lines
    monkeypatch.setattr(grid, "title_lines", lambda *told: (given.append(told[1]), made(*told))[1])
    async with running_app(root, engine=FakeEngine(root)) as (app, pilot):
        await until(lambda: len(app.screen.shown_entries()) == 3 and not app.screen.arrangement.busy, pilot)
        await pilot.press("M")
        await until(lambda: isinstance(app.screen, GridScreen) and app.screen.table.size.width, pilot)
        await until(lambda: given and app.screen.table.rows, pilot)
        assert {*given} == {app.screen.table.text_width}


@pytest.mark.real
async def test_a_grid_that_could_not_be_made_is_made_with_the_next_news(tmp_path, monkeypatch):
    root = project(tmp_path)
    gone, made = [OSError("its run is gone")], grid.grid

    def once_wrong(*given):
        if gone:
            raise gone.pop()
        return made(*given)

    monkeypatch.setattr(grid, "grid", once_wrong)
    async with running_app(root, engine=FakeEngine(root)) as (app, pilot):
        await until(lambda: len(app.screen.shown_entries()) == 3 and not app.screen.arrangement.busy, pilot)
        monkeypatch.setattr(list_arrangement, "MANY", 2)
        await pilot.press("M")
        await until(lambda: any("its run is gone" in said for *_, said in app.services.notices.lines), pilot)
        app.services.places.post(RunChanged([], True))
        await until(lambda: "3 tests" in screen_text(app) and "refund is approved" in screen_text(app), pilot)


@pytest.mark.real
async def test_while_suites_are_read_and_listed_the_empty_list_says_so(tmp_path, monkeypatch):
    """A YAML file of 20,000 cases was read in silence for seconds; then, while its list was made, it said `No
    suites here` and `0 cases`, and enter asked what to begin with."""
    root = project(tmp_path)
    monkeypatch.setattr(list_arrangement, "MANY", 2)
    begun = kept_waiting(monkeypatch, "entries")
    async with running_app(root, engine=FakeEngine(root)) as (app, pilot):
        app.state.loading, app.state.reading = True, "suites/large.yaml, 1 of 2 files"
        await until(lambda: app.state.reading in screen_text(app), pilot)
        app.state.loading = False
        await until(lambda: begun, pilot)
        await pilot.press("enter")
        text = screen_text(app)
        assert "Reading suites." in text and "No suites here" not in text and "0 cases" not in text
        for work, then in begun:
            then(work())
        await until(lambda: "3 cases" in screen_text(app) and "Reading" not in screen_text(app), pilot)


@pytest.mark.real
async def test_the_head_of_a_rerun_counts_what_has_ended_whenever_the_rows_are_made(tmp_path, monkeypatch):
    """It counted rows: there were none yet (`of 0 ✓0 ✗0`), or they were redrawn seconds after the run had gone on."""
    root = project(tmp_path)
    names = [f"case {number}" for number in range(4)]
    first = LiveRun(root, names)
    first.all_done(["failed"] * 4)
    async with running_app(root, (120, 30), open_run=first.folder, engine=FakeEngine(root)) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and "✗ 4" in screen_text(app), pilot)
        screen = app.screen
        begun = kept_waiting(monkeypatch, "entries")
        again = LiveRun(root, names[:3], linked_to=first.info.id)
        monkeypatch.setattr(list_arrangement, "MANY", 2)
        screen.arrangement.rows = {}
        app.front_run.follow(again.folder)
        await until(lambda: app.state.run.info.id == again.info.id and screen.arrangement.busy, pilot)
        again.done(0, "passed")
        await until(lambda: app.state.run.counts.done == 1, pilot)
        await until(lambda: "1/3" in screen_text(app) and "✓ 1" in screen_text(app), pilot)
        assert "of 0" not in screen_text(app)
        work, then = begun[-1]
        then(work())
        monkeypatch.setattr(list_arrangement.ListArrangement, "replace_some", lambda *_: False)
        monkeypatch.setattr(RunScreen, "_flush", lambda *_, **__: None)  # the lines are redrawn later
        again.done(1, "passed")
        await until(lambda: app.state.run.counts.done == 2, pilot)
        await until(lambda: "2/3" in screen_text(app) and "of 4" in screen_text(app), pilot)
        assert "✓ 2" in screen_text(app) and "✗ 1" in screen_text(app)
        again.finish()
