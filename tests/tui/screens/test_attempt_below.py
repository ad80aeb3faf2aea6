"""The attempt under the cursor stands below (or beside) Compare, the search's results, the grid and Runs too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tests.tui.screens.test_compare_screen import run_of_agents
from tui_eval.tui.loaders import case_loader
from tui_eval.tui.loaders.compare_loader import Half
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.compare_screen import CompareScreen
from tui_eval.tui.screens.grid import GridScreen
from tui_eval.tui.screens.runs_screen import RunsScreen
from tui_eval.tui.screens.search_screen import SearchScreen
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.text.lines import plain
from tui_eval.tui.widgets.lines_pane import LinesPane

SIZES = pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40)], (80, 24)))
NAMES = ["refund is approved", "greets by name", "calms an angry customer"]
OUTCOMES = {"a": ["passed", "failed", "passed"], "b": ["failed", "failed", "passed"]}


def below(app: Any) -> str:
    """What the pane shows."""
    pane = app.screen.query_one(LinesPane)
    return "\n".join(plain(pane.row_line(row)) for row in range(pane.row_count))


async def sees(app: Any, pilot: Any, *texts: str) -> None:
    await until(lambda: all(text in below(app) for text in texts), pilot)


@pytest.mark.real
@SIZES
async def test_compare_shows_the_answers_of_both_sides(tmp_path: Path, size: tuple[int, int]) -> None:
    root = project(tmp_path)
    folder = run_of_agents(root, OUTCOMES)
    async with running_app(root, size) as (app, pilot):
        app.push_screen(CompareScreen(Half(folder, "a"), Half(folder, "b")))
        await until(lambda: isinstance(app.screen, CompareScreen) and app.screen.comparison, pilot)
        await sees(app, pilot, "second: b", "b says failed", "first: a", "a says passed")
        name = app.screen.current().case_id
        await pilot.press("j", "j")
        await until(lambda: app.screen.current() and app.screen.current().case_id != name, pilot)
        await sees(app, pilot, app.screen.current().case_id.partition("::")[2])


async def test_compare_shows_the_answers_of_a_run_of_which_one_case_ran_again(tmp_path: Path) -> None:
    """It looked for all of them in the newest run that counts: the others' answers were missing."""
    root = project(tmp_path)
    old, new = LiveRun(root, NAMES), LiveRun(root, NAMES)
    old.all_done(["passed"] * 3)
    new.all_done(["failed"] * 3)
    again = LiveRun(root, NAMES[:1], linked_to=new.info.id)
    again.all_done(["failed"])
    async with running_app(root, (80, 24)) as (app, pilot):
        app.push_screen(CompareScreen(Half(old.folder), Half(new.folder)))
        await until(lambda: isinstance(app.screen, CompareScreen) and app.screen.comparison, pilot)
        for name, run in zip(NAMES, (again, new, new), strict=True):
            app.screen.go_to(CasePointer(f"suites/support.yaml::{name}"))
            await sees(app, pilot, f"after: {run.info.id}", f"before: {old.info.id}")
            assert app.screen.current().run_id == run.info.id
        app.push_screen(CompareScreen(Half(new.folder), Half(again.folder)))
        await until(lambda: app.screen.after.folder == again.folder and app.screen.comparison, pilot)
        app.screen.go_to(CasePointer(f"suites/support.yaml::{NAMES[1]}"))
        await sees(app, pilot, f"one attempt for both: {new.info.id}")
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, CaseScreen) and app.screen.content.attempt, pilot)
        assert app.screen.content.run_id == new.info.id and not app.screen.content.problem


@pytest.mark.real
@SIZES
async def test_a_search_shows_the_attempt_of_each_result(tmp_path: Path, size: tuple[int, int]) -> None:
    root = project(tmp_path)
    folder = run_of_agents(root, {"a": ["passed", "failed", "passed"]})
    async with running_app(root, size) as (app, pilot):
        app.push_screen(SearchScreen(folder, "says"))
        await until(lambda: isinstance(app.screen, SearchScreen) and app.screen.table.rows, pilot)
        await sees(app, pilot, "a says")
        before = below(app)
        await pilot.press("j")
        await until(lambda: below(app) != before, pilot)
        await sees(app, pilot, "a says")


@pytest.mark.real
@SIZES
async def test_the_grid_shows_the_answer_of_the_cell(tmp_path: Path, size: tuple[int, int]) -> None:
    root = project(tmp_path)
    folder = run_of_agents(root, OUTCOMES)
    async with running_app(root, size, open_run=folder) as (app, pilot):
        await until(lambda: app.state.run is not None and app.state.rows, pilot)
        await pilot.press("L", "M")
        await until(lambda: isinstance(app.screen, GridScreen) and app.screen.table.rows, pilot)
        await until(lambda: " says " in below(app), pilot)
        agent = "a" if "a says" in below(app) else "b"
        await pilot.press("tab" if agent == "a" else "shift+tab")
        await sees(app, pilot, f"{'b' if agent == 'a' else 'a'} says")


@pytest.mark.real
@SIZES
async def test_runs_show_an_attempt_that_failed_and_one_key_hides_it(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    root = project(tmp_path)
    run_of_agents(root, OUTCOMES)
    async with running_app(root, size) as (app, pilot):
        await pilot.press("H")
        await until(lambda: isinstance(app.screen, RunsScreen) and app.screen.table.rows, pilot)
        await sees(app, pilot, " says failed")
        assert " says failed" in screen_text(app)
        await pilot.press("V", "V")
        await until(lambda: " says failed" not in screen_text(app), pilot)
        await pilot.press("V")
        await until(lambda: " says failed" in screen_text(app), pilot)


@pytest.mark.real
@pytest.mark.parametrize("place", ["U", "L"])
@SIZES
async def test_a_hidden_pane_has_all_the_room_while_it_has_the_keys(
    tmp_path: Path, size: tuple[int, int], place: str
) -> None:
    root = project(tmp_path)
    folder = run_of_agents(root, {"a": ["failed", "failed", "failed"]})
    async with running_app(root, size, open_run=folder) as (app, pilot):
        await until(lambda: app.state.run is not None and app.state.rows, pilot)
        await pilot.press(place, "j", "j")
        pane, cases = app.screen.query_one(LinesPane), app.screen.case_list
        await pilot.press("V", "V")
        await until(lambda: not pane.is_on_screen and cases.has_focus, pilot)
        await pilot.press("tab")
        await until(lambda: pane.has_focus and pane.is_on_screen and not cases.is_on_screen, pilot)
        assert "says" in screen_text(app)
        await pilot.press("tab")
        await until(lambda: cases.has_focus and cases.is_on_screen and not pane.is_on_screen, pilot)
        await pilot.press("V", "tab", "V", "V")  # while it has the keys
        await until(lambda: cases.has_focus and cases.is_on_screen and not pane.is_on_screen, pilot)


@pytest.mark.parametrize("place", ["U", "L"])
@pytest.mark.parametrize(("height", "lines"), [(16, 4), (14, 4), (13, 0)])
async def test_a_small_window_shows_a_few_lines_of_it_until_they_would_leave_no_list(
    tmp_path: Path, place: str, height: int, lines: int
) -> None:
    """What is under the cursor is shown, and one key is not needed to see it."""
    root = project(tmp_path)
    folder = run_of_agents(root, {"a": ["failed", "failed", "failed"]})
    async with running_app(root, (60, height), open_run=folder) as (app, pilot):
        await until(lambda: app.state.run is not None and app.state.rows, pilot)
        await pilot.press(place, "j", "j")
        await until(lambda: not lines or "says" in screen_text(app), pilot)
        pane, cases = app.screen.query_one(LinesPane), app.screen.case_list
        assert (pane.content_size.height if pane.is_on_screen else 0) == lines
        assert cases.size.height >= 5
        await pilot.press("V")
        await until(lambda: app.screen.query_one(LinesPane).content_size.height > lines, pilot)


async def test_the_attempts_around_the_cursor_are_read_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the key that goes to one paints it with the cursor."""
    read: list[str] = []
    load = case_loader.load

    def counted(where: Any) -> Any:
        read.append(where.pointer.case_id)
        return load(where)

    monkeypatch.setattr(case_loader, "load", counted)
    root = project(tmp_path)
    folder = run_of_agents(root, {"a": ["failed", "failed", "failed"]})
    async with running_app(root, (80, 24), open_run=folder) as (app, pilot):
        await until(lambda: app.state.run is not None and app.state.rows, pilot)
        await pilot.press("L")
        await until(
            lambda: getattr(app.screen, "kind", "") == "run" and app.screen.case_list.cases.lines, pilot
        )
        await pilot.press("j")
        await until(lambda: len(set(read)) >= 2, pilot)
