"""Finding a text among the rows of a difference: at once among the nearest, between keys beyond them."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import on
from textual.app import App, ComposeResult

from tests.support.app_host import until
from tui_eval.model import DataDetails
from tui_eval.tui.front import Said
from tui_eval.tui.state.data.data_view import DataView, make
from tui_eval.tui.widgets import data_grid
from tui_eval.tui.widgets.data_grid import DataGrid

ROWS = [{"id": n, "name": f"customer {n}"} for n in range(300)]


class Host(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def compose(self) -> ComposeResult:
        yield DataGrid()

    @on(Said)
    def _said(self, event: Said) -> None:
        self.said.append(event.words)


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_grid, "AT_ONCE", 20)
    monkeypatch.setattr(data_grid, "SLICE", 10)


def view_of(actual: list[dict[str, object]], folder: Path) -> DataView:
    return make(DataDetails(ROWS, actual, ["id", "name"], None, "SELECT 1", "SELECT 2", {}), folder)


async def test_what_is_far_off_is_found_between_keys_and_said(tmp_path: Path) -> None:
    async with Host().run_test(size=(80, 20)) as pilot:
        app, grid = pilot.app, pilot.app.query_one(DataGrid)
        assert isinstance(app, Host)
        grid.set_view(view_of([dict(row) for row in ROWS], tmp_path))
        for query, cursor in (("CUSTOMER 250", 250), ("nobody", 250), ("name", 250)):
            grid.look_for(query)
            assert grid.find_next(0) == (0, 0) and grid.searching
            await until(lambda: not grid.searching, pilot)
            assert grid.cursor == cursor
        await until(lambda: len(app.said) > 2, pilot)
        words = [one for one in app.said if not one.startswith("looking at row")]
        assert words == ["row 251 of 300", "not here: nobody", "column 2 of 2"]


async def test_a_search_ends_with_a_move_and_with_the_rows_that_it_is_in(tmp_path: Path) -> None:
    async with Host().run_test(size=(80, 20)) as pilot:
        grid = pilot.app.query_one(DataGrid)
        view = view_of([dict(row) for row in ROWS], tmp_path)
        grid.set_view(view)
        grid.look_for("customer 299")
        grid.find_next(0)
        grid.move_to(3)
        await until(lambda: not grid.searching, pilot)
        assert grid.cursor == 3
        grid.move_to(0)
        grid.find_next(0)
        view.only = True  # of which none is left
        grid.set_view(view)
        assert not grid.searching
        await pilot.pause(0.05)
        assert grid.row_count == 0 and grid.cursor == 0


async def test_the_column_under_the_cursor_is_whole_where_it_can_be(tmp_path: Path) -> None:
    """Cut at the right it would not show in what its values differ."""
    names = ["id", *(f"column {n} of nothing much" for n in range(6)), "comment", "last"]
    said = "please ring {} at the second door of the yard"
    rows = [dict.fromkeys(names, "same") | {"id": n, "comment": said.format("twice")} for n in range(9)]
    given = [dict(row) for row in rows]
    given[4]["comment"] = said.format("once")
    made = make(DataDetails(rows, given, names, ["id"], "SELECT 1", "SELECT 2", {}), tmp_path)
    async with Host().run_test(size=(80, 20)) as pilot:
        grid = pilot.app.query_one(DataGrid)
        grid.set_view(made)
        for start in range(len(names) - 1):
            grid.to_column(start)
            grid.to_column(names.index("comment"))
            shown = {names[at]: (width, column) for at, column, width in grid.shown_columns()}
            width, column = shown["comment"]
            assert width >= column.width, start
            assert "id" in shown
