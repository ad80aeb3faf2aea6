"""Two answers with rows, of two attempts, models or runs, against each other in the table of the Data tab."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from textual.pilot import Pilot

from tests.support import mostly_real
from tests.support.app_host import running_app
from tests.support.attempts import text_failure, wrong_cell
from tests.support.case_host import sees, write_run
from tests.support.case_host import until as wait
from tests.support.live_run import project
from tui_eval.model import Attempt, DataDetails
from tui_eval.tui.loaders.compare_loader import Sides, first_sides
from tui_eval.tui.screens.sides import SidesScreen
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.data.data_view import paired_rows
from tui_eval.tui.state.text.lines import plain

EXPECTED = [{"id": n, "day": f"2018-01-0{n}T00:00:00", "amount": n * 10.0} for n in range(1, 5)]


def answered(number: int, rows: list[dict[str, Any]] | None, model: str = "m") -> Attempt:
    attempt = wrong_cell()
    attempt.attempt, attempt.model = number, model
    attempt.outcome = "passed" if rows == EXPECTED else "failed"
    attempt.data = DataDetails(
        EXPECTED, rows, list(EXPECTED[0]), None, "SELECT 1", "SELECT 2", {"key": ["id"]}
    )
    return attempt


def doubled() -> list[dict[str, Any]]:
    rows = [dict(row) for row in EXPECTED]
    rows[1]["amount"] = 40.0
    return [*rows[:3], {**rows[0], "id": 9}]


def sides_of(root: Path, *attempts: Attempt) -> Sides:
    write_run(root, [list(attempts)], "20260601-120000-abcd")
    found = first_sides(root, CasePointer(attempts[0].case_id, run_id="20260601-120000-abcd"))
    assert found is not None
    return found


async def until(condition: Any, pilot: Any) -> None:

    await wait(pilot, condition)


@asynccontextmanager
async def two_answers(folder: Path, size: tuple[int, int]) -> AsyncIterator[tuple[SidesScreen, Pilot[Any]]]:
    """Two attempts side by side whose rows differ, once they are compared."""
    root = project(folder)
    async with running_app(root, size) as (app, pilot):
        screen = SidesScreen(sides_of(root, answered(1, EXPECTED), answered(2, doubled())))
        app.push_screen(screen)
        await until(lambda: screen.is_mounted and screen.rows.view is not None, pilot)
        yield screen, pilot


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40), (60, 16)], (60, 16)))
async def test_the_rows_of_two_attempts_are_compared_in_one_table(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with two_answers(tmp_path, size) as (screen, pilot):
        await sees(pilot, "≠ 1 of 4 rows differs in amount", "20.0→40.0", "before   20.0", "after    40.0")
        shown = [line.split() for line in screen.rows.grid.rows_text().splitlines()]
        assert shown[1:] == [
            ["≠", "2", "2018-01-02", "20.0→40.0"],
            ["3", "2018-01-03", "30.0"],
            ["−", "4", "2018-01-04", "40.0"],
            ["+", "9", "2018-01-01", "10.0"],
        ]
        if size[1] > 16:
            await pilot.press("enter")
            await sees(pilot, "▎ before     20.0", "▎ after      40.0")
            await pilot.press("enter")
        await pilot.press("right_curly_bracket")
        await sees(pilot, "− the one after lacks this row")
        await pilot.press("i")
        assert screen.rows.grid.row_count == 3
        await pilot.press("i", "o")
        await sees(pilot, "   before", " │ ")
        await pilot.press("o", "d")
        await sees(pilot, "entries differ", "What is the revenue by region?")
        await pilot.press("d")
        await sees(pilot, "20.0→40.0")


@pytest.mark.real
async def test_answers_without_rows_show_their_transcripts(tmp_path: Path) -> None:

    root = project(tmp_path)
    first, second = text_failure(), text_failure()
    first.attempt, first.outcome = 1, "passed"
    async with running_app(root, (80, 24)) as (app, pilot):
        screen = SidesScreen(sides_of(root, first, second))
        app.push_screen(screen)
        await until(lambda: screen.is_mounted and screen.query("SideBySide").first().size.width > 0, pilot)
        await pilot.press("d")
        lines = app.services.notices.lines
        await until(lambda: any("not both of them answered with rows" in str(line) for line in lines), pilot)
        assert not screen.has_class("-rows")


def test_large_answers_are_read_from_the_folders_of_their_runs(tmp_path: Path) -> None:
    found: list[tuple[Path, DataDetails | None]] = []
    for name, factor in (("one", 1.0), ("two", 2.0)):
        folder = tmp_path / name
        (folder / "frames").mkdir(parents=True)
        frame = pl.DataFrame({"id": range(3000), "v": [n * factor for n in range(3000)]})
        frame.write_parquet(folder / "frames" / "1-actual.parquet")
        settings = {
            "truncated": {"expected": 3000, "actual": 3000},
            "frames": {"actual": "frames/1-actual.parquet"},
        }
        rows = frame.head(5).to_dicts()
        found.append((folder, DataDetails(rows, rows, ["id", "v"], settings=settings)))
    pair = paired_rows(*found)
    assert pair is not None and "truncated" in pair.details.settings
    before, after, lost = pair.read()
    assert (len(before), len(after), lost) == (3000, 3000, {}) and after["v"][2999] == 2 * before["v"][2999]
    (tmp_path / "two" / "frames" / "1-actual.parquet").unlink()
    assert pair.read()[2] == {"expected": 3000, "actual": 3000}
    assert paired_rows(found[0], (tmp_path, None)) is None


def test_what_is_said_of_two_answers_speaks_of_both() -> None:
    from tui_eval.tui.state.data.data_view import BEFORE_AFTER, make

    pair = paired_rows((Path(), DataDetails(EXPECTED, EXPECTED)), (Path(), DataDetails(EXPECTED, doubled())))
    assert pair is not None
    view = make(pair.details, None, pair.read())
    view.names = BEFORE_AFTER
    assert [plain(line) for line in view.explain(1, 2)][1:] == ["before   20.0", "after    40.0"]
    assert "the one after has this row too many" in plain(view.explain(4, 0)[0])


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_both_transcripts_and_their_rows_are_searched(tmp_path: Path, size: tuple[int, int]) -> None:
    async with two_answers(tmp_path, size) as (screen, pilot):
        await pilot.press("slash", *"40.0", "enter")
        await sees(pilot, "2 of 5")
        assert screen.rows.grid.cursor == 1
        await pilot.press("n")
        await sees(pilot, "4 of 5")
        await pilot.press("d", "slash", *"REGION?")
        await pilot.press("enter")
        await sees(pilot, "not here: REGION?")  # a capital letter is meant
        await pilot.press("slash", *"region?", "enter")
        many = screen.pane.place[1]
        await sees(pilot, f"1 of {many}")
        here = screen.pane.cursor
        line = screen.pane.row_line(here)
        assert "region?" in plain(line) and any("hit-here" in span.style for span in line)
        for number in (*range(2, many + 1), 1):
            await pilot.press("n")
            await sees(pilot, f"{number} of {many}")
        assert screen.pane.cursor == here
        await pilot.press("tab")  # laid out anew: what is looked for is marked there too
        assert any(
            "hit" in span.style for row in range(screen.pane.row_count) for span in screen.pane.row_line(row)
        )
        await pilot.press("slash", "escape")
        assert not any(
            "hit" in span.style for row in range(screen.pane.row_count) for span in screen.pane.row_line(row)
        )
