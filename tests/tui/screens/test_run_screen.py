"""The live run: panes, pinning, zooming, news that repaint little."""

from __future__ import annotations

import time

import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tests.support.work import counted
from tui_eval.model import Evidence
from tui_eval.store.schema import FOR_PERSON
from tui_eval.tui.screens.grid import GridScreen
from tui_eval.tui.screens.run_screen import REORDER, RunScreen
from tui_eval.tui.state.text.lines import width_of
from tui_eval.tui.widgets.bars import FactsBar
from tui_eval.tui.widgets.case_list import CaseList
from tui_eval.tui.widgets.stream_grid import StreamGrid

NAMES = [f"case {number}" for number in range(8)]


async def opened(app, pilot):
    await until(lambda: isinstance(app.screen, RunScreen) and app.state.run is not None, pilot)
    await until(lambda: len(app.state.run.cases) == len(NAMES), pilot)
    return app.screen


@pytest.mark.real
async def test_panes_show_what_running_cases_say(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, size=(120, 40), open_run=run.folder) as (app, pilot):
        screen = await opened(app, pilot)
        for number in range(7):
            ref = run.start(number)
            run.writer.live(ref, "assistant", f"words of number {number}")
            run.writer.live(ref, "tool_call", '{"a": 1}', name="find", call_id="c")
        await until(lambda: len(screen.streams.panes) == 6, pilot)
        await until(lambda: 'find({"a": 1})' in screen_text(app), pilot)
        await until(lambda: "words of number 0" in screen_text(app), pilot)
        run.done(0, "failed", "it said nothing useful")
        await until(lambda: "it said nothing useful" in screen_text(app), pilot)
        await until(lambda: "✗ failed" in screen_text(app), pilot)
        pane = next(pane for pane in screen.streams.panes if pane.ref == run.refs[0][0])
        await until(lambda: ("text", "hi") in pane.text.lines, pilot)  # the last words, from the store
        run.finish()


@pytest.mark.real
async def test_one_pane_at_a_time_on_a_small_screen(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, open_run=run.folder) as (app, pilot):
        screen = await opened(app, pilot)
        for number in range(3):
            run.writer.live(run.start(number), "assistant", f"words of number {number}")
        await until(lambda: app.state.run.counts.running == 3, pilot)
        await until(lambda: screen_text(app).count("● case") >= 3, pilot)
        await pilot.press("tab")
        await until(lambda: "words of number" in screen_text(app), pilot)
        await until(lambda: len(screen.streams.panes) == 1, pilot)
        assert not screen.query_one(CaseList).display
        head, *said = screen_text(app).splitlines()[2:5]
        assert head.startswith(" ●") and any(line.startswith(" words of number") for line in said)
        await pilot.press("escape")
        await until(lambda: screen.query_one(CaseList).display, pilot)
        run.finish()


@pytest.mark.real
async def test_pin_zoom_and_follow(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, size=(120, 40), open_run=run.folder) as (app, pilot):
        screen = await opened(app, pilot)
        refs = [run.start(number) for number in range(8)]
        run.writer.live(refs[7], "assistant", "line\n" * 300)
        await until(lambda: app.state.run.counts.running == 8, pilot)
        await until(lambda: len(screen.case_list.cases.lines) == 8, pilot)  # none waits any more
        screen.query_one(CaseList).move_to(7)
        assert screen.current().case_id.endswith("case 7")
        await pilot.press("v")
        await until(lambda: refs[7] in screen.streams.slots.shown, pilot)
        await until(lambda: "pinned" in screen_text(app), pilot)
        await pilot.press("z")
        await until(lambda: [pane.ref for pane in screen.streams.panes] == [refs[7]], pilot)
        await until(lambda: len(screen.streams.panes[0].text.lines) > 200, pilot)
        await until(lambda: screen.streams.panes[0].top > 200, pilot)
        pane = screen.streams.panes[0]
        assert pane.follow
        await pilot.press("k")
        await until(lambda: not pane.follow, pilot)
        await pilot.press("t")
        await until(lambda: pane.follow, pilot)
        await pilot.press("z")
        await until(lambda: len(screen.streams.panes) > 1, pilot)
        await pilot.press("escape")
        await until(lambda: screen.query_one(CaseList).has_focus, pilot)
        run.finish()


async def test_a_retry_says_why(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, open_run=run.folder) as (app, pilot):
        await opened(app, pilot)
        run.writer.retrying(run.start(0), "429, again in 12 s")
        await until(lambda: "429, again in 12 s" in screen_text(app), pilot)
        await until(lambda: "↻1" in screen_text(app), pilot)
        run.finish()


async def test_failures_float_up_until_i_is_pressed(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.all_done(["skipped", "passed", "passed", "passed", "passed", "failed", "passed", "error"])
    async with running_app(root, open_run=run.folder) as (app, pilot):
        screen = await opened(app, pilot)
        await until(lambda: screen.shown_entries(), pilot)
        assert [entry.name for entry in screen.shown_entries()][:2] == ["case 5", "case 7"]
        await pilot.press("i")
        await until(lambda: [e.name for e in screen.shown_entries()][:2] == ["case 0", "case 5"], pilot)


@pytest.mark.real
async def test_what_has_begun_is_listed_at_once_where_all_was_folded_as_waiting(tmp_path, monkeypatch):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, open_run=run.folder) as (app, pilot):
        screen = await opened(app, pilot)
        await until(lambda: "8 waiting" in screen_text(app) and not app.state.loading, pilot)
        assert [line.kind for line in screen.case_list.cases.lines] == ["fold"]
        pauses: list[float] = []
        monkeypatch.setattr(screen.arrangement, "rearrange_soon", pauses.append)
        run.start(0)
        await until(lambda: pauses, pilot)
        assert pauses.pop() == 0.0
        screen.arrangement.rearrange()
        await until(lambda: "case" in [line.kind for line in screen.case_list.cases.lines], pilot)
        pauses.clear()
        run.start(1)
        await until(lambda: pauses, pilot)
        assert pauses.pop() == REORDER, "listed cases do not jump"


@pytest.mark.real
async def test_d_opens_what_made_it_fail_and_h_the_history(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, size=(120, 40), open_run=run.folder) as (app, pilot):
        screen = await opened(app, pilot)
        run.start(0)
        run.done(0, "failed", "lacks it", evidence=[Evidence("missing", "not-contained", text="it")])
        run.finish()
        await until(lambda: app.state.run.counts.failed == 1, pilot)
        await until(lambda: screen.current() is not None, pilot)
        await pilot.press("g", "d")
        await until(lambda: app.screen is not screen and app.screen.tab_shown == 2, pilot)
        await pilot.press("1", "escape")
        await until(lambda: app.screen is screen, pilot)
        await pilot.press("h")
        await until(lambda: app.screen is not screen and app.screen.tab_shown == 5, pilot)


@pytest.mark.real
async def test_an_empty_list_says_that_nothing_matches_and_how_to_clear_the_filter(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.all_done(["passed"] * len(NAMES))
    async with running_app(root, open_run=run.folder) as (app, pilot):
        await opened(app, pilot)
        for place in ("L", "U"):
            await pilot.press(place, "f", *"nowhere", "enter")
            await until(lambda: "Nothing matches the filter." in screen_text(app), pilot)
            assert "F clears it" in screen_text(app) and "Starting." not in screen_text(app)
            if place == "L":
                await pilot.press("M")
                await until(lambda: isinstance(app.screen, GridScreen), pilot)
                await until(lambda: "Nothing matches the filter: F clears it" in screen_text(app), pilot)
                await pilot.press("F")
                await until(lambda: f"{len(NAMES)} tests" in screen_text(app), pilot)
                await pilot.press("f", *"name:0")
                await until(lambda: "Grid  1 test ×" in screen_text(app), pilot)
                await pilot.press("enter")
                await until(lambda: "filter: name:0" in screen_text(app), pilot)
                await pilot.press("f", "escape", "M")
                await until(lambda: getattr(app.screen, "expression", "") == "name:0", pilot)
                assert [entry.name for entry in app.screen.shown_entries()] == [NAMES[0]]
            await pilot.press("F")
            await until(lambda: "Nothing matches" not in screen_text(app), pilot)


async def test_grouping_ends_a_sort_under_which_nothing_is_grouped(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.all_done(["failed"] * len(NAMES))
    async with running_app(root, open_run=run.folder) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("s", "I")
        await until(
            lambda: "one test after the other; no longer sorted by outcome" in screen_text(app), pilot
        )
        await pilot.press("I", "I")
        await until(lambda: "by cause" in screen_text(app), pilot)
        assert not screen.view.flat and screen.view.grouping == "cause"


async def test_the_run_goes_on_while_another_place_is_shown(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, open_run=run.folder) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("U")
        for number in range(8):
            run.start(number)
            run.done(number, "failed" if number == 3 else "passed")
        await until(lambda: app.state.run.counts.done == 8, pilot)
        await pilot.press("L")
        await until(lambda: isinstance(app.screen, RunScreen) and "8/8" in screen_text(app), pilot)
        run.finish()
        await until(lambda: "finished" in screen_text(app), pilot)


async def test_growing_text_repaints_only_new_cells(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, size=(120, 40), open_run=run.folder) as (app, pilot):
        screen = await opened(app, pilot)
        ref = run.start(0)
        run.writer.live(ref, "assistant", "one two")
        await until(lambda: "one two" in screen_text(app), pilot)
        grid = screen.query_one(StreamGrid)
        regions = []
        refresh = grid.refresh
        grid.refresh = lambda *areas, **more: (regions.extend(areas), refresh(*areas, **more))[1]
        run.writer.live(ref, "assistant", " three")
        await until(lambda: "one two three" in screen_text(app), pilot)
        text_areas = [area for area in regions if area.y > grid.panes[0].area[1]]
        assert sum(area.area for area in text_areas) == len(" three")
        run.finish()


@pytest.mark.real
async def test_a_thousand_cases_are_drawn_as_seen(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, [f"n{number}" for number in range(1000)])
    for number in range(1000):
        run.done(number, "failed", f"reason {number}")
    async with running_app(root, open_run=run.folder) as (app, pilot):
        await until(lambda: app.state.run is not None and len(app.state.run.cases) == 1000, pilot)
        await until(lambda: len(app.screen.shown_entries()) == 1000, pilot)
        with counted() as work:
            await pilot.press("G", "k", "ctrl+u", "g", "ctrl+d")
        assert work.calls < 500_000, "118,000; rows out of sight are not drawn"
        assert app.screen.query_one(CaseList).cursor > 0
        run.finish()


@pytest.mark.real
async def test_the_head_says_which_tool_is_at_work_and_for_how_long(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, size=(120, 40), open_run=run.folder) as (app, pilot):
        screen = await opened(app, pilot)
        began = time.time()
        screen.streams.now = lambda: began
        ref = run.start(0)
        run.writer.live(ref, "tool_call", "{}", name="look up\x1b orders of long names", call_id="c")
        await until(lambda: "look up␛ orders… 0s" in screen_text(app), pilot)
        screen.streams.now = lambda: began + 3_600
        screen.streams.tick()
        await until(
            lambda: "look up␛ orders… 59m" in screen_text(app) or "… 1h00m" in screen_text(app), pilot
        )
        run.writer.live(ref, "tool_result", "[]", name="x", call_id="c")
        await until(lambda: "look up␛ orders…" not in screen_text(app).splitlines()[2], pilot)
        run.finish()


@pytest.mark.real
async def test_an_engine_that_ends_in_the_middle_is_said_and_nothing_seems_to_run(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, size=(120, 40), open_run=run.folder) as (app, pilot):
        await opened(app, pilot)
        for number in range(3):
            run.writer.live(run.start(number), "assistant", "words")
        run.writer.retrying(run.start(3), "429")
        run.done(0, "passed")
        await until(lambda: app.state.run.counts.running == 2 and app.state.run.counts.retrying == 1, pilot)
        run.writer.state("interrupted", time.time())
        await until(lambda: not app.state.run.active, pilot)
        counts = app.state.run.counts
        assert (counts.done, counts.running, counts.retrying) == (1, 0, 0)
        await until(lambda: "interrupted" in screen_text(app) and " running" not in screen_text(app), pilot)
        assert any("its engine has ended (H, then u goes on" in text for _, _, text in app.notices.lines)
        await until(lambda: "not run" in screen_text(app) and "waiting" not in screen_text(app), pilot)
        run.writer.close()


async def test_an_agent_that_waits_for_the_person_calls_them(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    line = "sign in to nao within 5 minutes: http://localhost:5005/cli-login?port=1\x1b[2J"
    async with running_app(root, open_run=run.folder) as (app, pilot):
        await opened(app, pilot)
        for number in range(2):
            run.writer.live(run.start(number), "note", line, name=FOR_PERSON)
            run.writer.live(run.start(number), "note", "sign in to be told more")  # a note like others
        await until(lambda: len(app._notifications), pilot)
        (notice,) = app._notifications
        assert notice.message.startswith("sign in to nao") and "l shows it again" in notice.message
        assert notice.message.isprintable() and line in [text for _, _, text in app.notices.lines]
        run.finish()


@pytest.mark.real
async def test_a_paused_run_says_how_it_goes_on(tmp_path):
    root = project(tmp_path)
    async with running_app(root) as (app, pilot):
        await pilot.press("a")
        await until(lambda: app.services.engines.own.live and app.state.run is not None, pilot)
        run = app.services.engines.own.live
        run.start(0)
        await until(lambda: "x cancel" in screen_text(app), pilot)
        run.writer.state("paused")
        await until(lambda: "P go on" in screen_text(app) and "paused" in screen_text(app), pilot)
        run.writer.state("running")
        await until(lambda: "x cancel" in screen_text(app), pilot)
        run.finish()


async def test_suites_count_what_was_cancelled(tmp_path):
    root = project(tmp_path)
    LiveRun(root, ["refund is approved", "greets by name"]).all_done(["cancelled", "passed"])
    async with running_app(root) as (app, pilot):
        await until(lambda: sum("⊘1" in line for line in screen_text(app).splitlines()[1:]) == 2, pilot)
        assert "⊘" in screen_text(app).splitlines()[0]  # beside the folder's and the suite's


async def test_zoom_on_a_small_screen_takes_a_case_that_runs(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, open_run=run.folder) as (app, pilot):
        screen = await opened(app, pilot)
        run.writer.live(run.start(5), "assistant", "words of number 5")
        run.done(0, "failed")
        await until(lambda: app.state.run.counts.failed == 1, pilot)
        screen.case_list.go_to(screen.shown_entries()[0].key)
        await pilot.press("z")
        await until(lambda: "words of number 5" in screen_text(app), pilot)
        run.finish()


@pytest.mark.real
async def test_who_gets_the_place_of_a_zoomed_pane_is_zoomed_and_one_key_leaves(tmp_path, monkeypatch):
    """Else the list stayed hidden, and the keys went to its lines unseen."""
    monkeypatch.setattr("tui_eval.tui.state.runs.stream_layout.LINGER", 0.1)
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, size=(120, 40), open_run=run.folder) as (app, pilot):
        screen = await opened(app, pilot)
        first, *others = [run.start(number) for number in range(4)]
        await until(lambda: len(screen.streams.panes) == 4, pilot)
        screen.case_list.go_to(next(e.key for e in screen.shown_entries() if e.name == "case 0"))
        await pilot.press("z")
        await until(lambda: [pane.ref for pane in screen.streams.panes] == [first], pilot)
        run.done(0, "failed", "no")
        await until(lambda: screen.streams.panes[0].ref in others, pilot)
        assert len(screen.streams.panes) == 1
        await pilot.press("escape")
        await until(lambda: screen.case_list.display and screen.case_list.has_focus, pilot)
        await until(lambda: len(screen.streams.panes) == 3, pilot)
        await pilot.press("z")
        await until(lambda: not screen.case_list.display, pilot)
        for number in (1, 2, 3):
            run.done(number, "passed")
        run.finish()
        await until(lambda: screen.case_list.display and screen.case_list.has_focus, pilot)
        assert screen.streams.zoomed is None


async def test_a_finished_pane_takes_the_width_it_gets(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    async with running_app(root, size=(120, 40), open_run=run.folder) as (app, pilot):
        screen = await opened(app, pilot)
        ref = run.start(3)
        for number in (4, 5, 6, 7):
            run.start(number)
        await until(lambda: len(screen.streams.panes) == 5, pilot)
        screen.case_list.go_to(next(e.key for e in screen.shown_entries() if e.name == "case 3"))
        await pilot.press("v")
        await until(lambda: "pinned" in screen_text(app), pilot)
        run.done(3, "failed", "no", said="word " * 30)
        await until(lambda: "✗ failed" in screen_text(app), pilot)
        pane = next(pane for pane in screen.streams.panes if pane.ref == ref)
        assert max(len(text) for _, text in pane.text.lines) < 40
        await pilot.press("tab")
        await until(lambda: screen.streams.has_focus, pilot)
        screen.streams.selected = screen.streams.panes.index(pane)
        await pilot.press("z")
        await until(lambda: [pane.ref for pane in screen.streams.panes] == [ref], pilot)
        await until(lambda: max(len(text) for _, text in screen.streams.panes[0].text.lines) > 90, pilot)
        run.finish()


async def test_what_a_run_and_the_suites_say_at_the_top_is_cut_to_a_window_that_becomes_narrower(tmp_path):
    root = project(tmp_path)
    names = ["refund is approved", "greets by name", "calms an angry customer"]
    run = LiveRun(root, names)
    run.all_done(["failed", "passed", "error"])

    def fits(width):
        bar = app.screen.query_one(FactsBar)
        lines = [bar.row_line(row) for row in range(bar.row_count)]
        return bar.size.width == width and all(width_of(line) <= width for line in lines)

    async with running_app(root, (120, 24), open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and "finished" in screen_text(app), pilot)
        await pilot.resize_terminal(40, 24)
        await until(lambda: fits(38), pilot)
        await pilot.resize_terminal(120, 24)
        await pilot.press("U")
        await until(lambda: "✗ 1 failed" in screen_text(app), pilot)
        await pilot.resize_terminal(40, 24)
        await until(lambda: fits(38), pilot)
        assert "✗1" in screen_text(app).split("\n")[0]


async def test_the_cursor_stands_on_the_case_that_was_run_again_from_elsewhere(tmp_path):
    """It stood on the row that was looked at before, or on the first one."""
    root = project(tmp_path)
    whole = LiveRun(root, NAMES)
    whole.all_done(["failed"] * len(NAMES))
    async with running_app(root, open_run=whole.folder) as (app, pilot):
        screen = await opened(app, pilot)
        await until(lambda: screen.current() is not None, pilot)
        await pilot.press("g", "U")
        again = LiveRun(root, [NAMES[5]], linked_to=whole.info.id)
        again.writer.flush()
        app.front_run.follow(again.folder, aside=True)
        await until(lambda: app.state.find_run(again.info.id) is not None, pilot)
        again.all_done(["failed"])
        await pilot.press("L")
        await until(lambda: isinstance(app.screen, RunScreen) and app.screen.current() is not None, pilot)
        await until(lambda: app.screen.current().case_id.endswith(NAMES[5]), pilot)
        await pilot.press("k")
        await until(lambda: not app.screen.current().case_id.endswith(NAMES[5]), pilot)
