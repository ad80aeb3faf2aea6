"""`/ n N` on screens whose rows are tests: the grid (Compare has its own tests)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.widgets import Input

from tests.support.app_host import running_app, until
from tests.support.live_run import FakeEngine, project
from tui_eval.tui.screens.grid import GridScreen


async def grid_of(app: Any, pilot: Any) -> Any:
    """The rows of the grid, opened over the list of the three cases."""
    await until(lambda: len(app.screen.shown_entries()) == 3, pilot)
    await pilot.press("M")
    await until(lambda: isinstance(app.screen, GridScreen) and len(app.screen.table.rows) == 3, pilot)
    return app.screen.table


async def test_a_test_is_found_in_the_grid_and_its_column_stays(tmp_path: Path) -> None:
    """`/` there said that it works in lists of cases: of a hundred tests one had to be looked for by eye."""
    root = project(tmp_path)
    async with running_app(root, engine=FakeEngine(root)) as (app, pilot):
        table = await grid_of(app, pilot)
        before, column = table.cursor, app.screen.column
        await pilot.press("slash")
        await until(lambda: isinstance(app.focused, Input), pilot)
        await pilot.press(*"calms")
        await until(lambda: "calms" in table.current.name, pilot)
        await pilot.press("escape")
        await until(lambda: app.focused is table and table.cursor == before, pilot)
        await pilot.press("slash")
        await until(lambda: isinstance(app.focused, Input), pilot)
        await pilot.press(*"re", "enter")
        await until(lambda: app.focused is table, pilot)
        found = table.current.name
        await pilot.press("n")
        await until(lambda: table.current.name != found and "re" in table.current.name, pilot)
        await pilot.press("N")
        await until(lambda: table.current.name == found, pilot)
        assert app.screen.column == column


async def test_keys_move_in_the_grid_again_when_it_has_been_filtered(tmp_path: Path) -> None:
    """They went to the pane below it: the cursor stood still after each filter."""
    root = project(tmp_path)
    async with running_app(root, engine=FakeEngine(root)) as (app, pilot):
        table = await grid_of(app, pilot)
        await pilot.press("f")
        await until(lambda: isinstance(app.focused, Input), pilot)
        await pilot.press(*"re", "enter")
        await until(lambda: app.focused is table and len(table.rows) == 2, pilot)
        await pilot.press("g", "j")
        await until(lambda: table.cursor == 1, pilot)


async def test_words_that_no_row_has_are_said_when_they_are_kept(tmp_path: Path) -> None:
    """The prompt closed, and nothing else happened; what was kept and is there is silent."""
    root = project(tmp_path)
    async with running_app(root, engine=FakeEngine(root)) as (app, pilot):
        for opened, words in (("", "no such case"), ("M", "no such test")):
            await until(lambda: len(app.places.suites.shown_entries()) == 3, pilot)
            if opened:
                await grid_of(app, pilot)
            for typed, said in (("calms", False), (words, True)):
                await pilot.press("slash")
                await until(lambda: isinstance(app.focused, Input), pilot)
                app.focused.value = ""
                await pilot.press(*typed, "enter")
                await until(lambda: not isinstance(app.focused, Input), pilot)
                await pilot.pause()
                lines = [text for _, _, text in app.services.notices.lines]
                assert (f"not found: {typed}" in lines) is said
