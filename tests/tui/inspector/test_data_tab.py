"""Tab 4 under the keys of a person: what stands above, below and beside the rows."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from textual.events import Key
from textual.pilot import Pilot

from tests.support import mostly_real
from tests.support.attempts import text_failure, wrong_cell
from tests.support.case_host import HostApp, host, loaded, screen_text, sees, until
from tests.tui.inspector.test_case_large import happens
from tui_eval.model import Attempt, DataDetails
from tui_eval.tui.inspector import data
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.screens import case_actions
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.state.data import data_export
from tui_eval.tui.state.data.data_export import ExportEnded
from tui_eval.tui.state.data.data_view import make
from tui_eval.tui.terminal import clipboard

SIZES = mostly_real([(80, 24), (120, 40), (60, 16)], (60, 16))


def attempt_of(expected: list[dict[str, Any]], actual: list[dict[str, Any]], **settings: Any) -> Attempt:
    attempt = wrong_cell()
    attempt.data = DataDetails(expected, actual, list(expected[0]), None, "SELECT 1", "SELECT 2", settings)
    return attempt


async def opened(pilot: Pilot[Any]) -> tuple[CaseScreen, DataTab]:
    screen = await loaded(pilot)
    await pilot.press("4")
    tab = screen.tab
    assert isinstance(tab, DataTab)
    await until(pilot, lambda: tab.view is not None)
    return screen, tab


def lines(app: HostApp) -> list[str]:
    return screen_text(app).splitlines()


@pytest.mark.parametrize("size", SIZES)
async def test_the_foot_says_what_the_keys_do_here(tmp_path: Path, size: tuple[int, int]) -> None:
    app = host(tmp_path, wrong_cell())
    async with app.run_test(size=size) as pilot:
        screen, _ = await opened(pilot)
        await until(pilot, lambda: "S try SQL" in lines(app)[-1] and "s SQL" in lines(app)[-1])
        for key, words in (("1", "d difference"), ("2", "s times"), ("3", "y copy"), ("5", "y copy")):
            await pilot.press(key)
            await until(pilot, lambda words=words: words in lines(app)[-1] and "? help" in lines(app)[-1])
        assert screen.tab is not None


@pytest.mark.parametrize("size", SIZES)
async def test_key_and_cursor_columns_are_in_sight_however_wide(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    rows = [{"the key of all these rows": f"customer number {n}", "note": "x" * 40, "v": n} for n in range(4)]
    app = host(tmp_path, attempt_of(rows, [{**row, "v": 9} for row in rows]))
    async with app.run_test(size=size) as pilot:
        _, tab = await opened(pilot)
        for key in ("g", "left", "left", "right"):
            await pilot.press(key)
            shown = [index for index, _, _ in tab.grid.shown_columns()]
            assert 0 in shown and tab.grid.column in shown
        await sees(pilot, "custom")


@pytest.mark.real
async def test_enter_shows_the_cell_in_full(tmp_path: Path) -> None:
    long = "one two three " * 40
    rows = [{"id": 1, "v": long + "four"}, {"id": 2, "v": "short"}, {"id": 3, "v": {"a": [1, 2]}}]
    other = [{"id": 1, "v": long + "five"}, {"id": 2, "v": "other"}, {"id": 3, "v": {"a": [1, 3]}}]
    app = host(tmp_path, attempt_of(rows, other))
    async with app.run_test(size=(80, 24)) as pilot:
        _, tab = await opened(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "five" in tab.text.rows_text())
        assert tab.grid.has_focus and "four" in tab.text.rows_text()
        await pilot.press("j")
        await until(pilot, lambda: "other" in tab.text.rows_text())
        await pilot.press("j")
        await until(pilot, lambda: '"a"' in tab.text.rows_text())
        await pilot.press("enter")
        await until(pilot, lambda: not tab.has_class("-below") or "SELECT" in tab.text.rows_text())


@pytest.mark.real
async def test_sql_stands_below_where_there_is_room_and_s_says_otherwise(tmp_path: Path) -> None:
    rows = [{"id": n} for n in range(60)]
    many = attempt_of(rows, rows[1:])
    many.case_id = "tests/many.yaml::many"
    app = host(tmp_path, attempt_of(rows[:2], rows[1:3]), many)
    async with app.run_test(size=(80, 24)) as pilot:
        screen, tab = await opened(pilot)
        await sees(pilot, "SELECT", "1")
        screen.go_to(app.pointers[1])
        await until(pilot, lambda: tab.view is not None and tab.view.total == 60)
        await until(pilot, lambda: "SELECT" not in screen_text(app))
        await pilot.press("s")
        await sees(pilot, "SELECT", "the agent's, verified", "≠")
        await pilot.press("s")
        await until(pilot, lambda: "SELECT" not in screen_text(app))


@pytest.mark.real
async def test_columns_too_far_right_do_not_stay(tmp_path: Path) -> None:
    rows = [{f"column_{i}": n + i for i in range(60)} for n in range(3)]
    app = host(tmp_path, attempt_of(rows, [rows[0], {**rows[1], "column_50": -1}, rows[2]]))
    async with app.run_test(size=(80, 24)) as pilot:
        _, tab = await opened(pilot)
        assert tab.grid.column == 50
        await pilot.press("v")
        await sees(pilot, "too far right to stay")
        assert tab.view is not None and tab.view.frozen == 1
        tab.grid.to_column(1)
        await pilot.press("v")
        await sees(pilot, "2 columns stay")


@pytest.mark.real
async def test_nothing_stays_scrolled_away_that_fits_when_only_what_differs_is_shown(tmp_path: Path) -> None:
    rows = [{"id": n, **{f"column_{i}": n + i for i in range(300)}} for n in range(6)]
    other = [dict(row) for row in rows]
    other[1]["column_50"] = other[3]["column_200"] = other[4]["column_201"] = -1
    app = host(tmp_path, attempt_of(rows, other))
    async with app.run_test(size=(120, 40)) as pilot:
        _, tab = await opened(pilot)
        await pilot.press("}", "}")
        assert tab.grid.column == 202 and tab.grid.first_column > 51
        await pilot.press("i")
        await until(pilot, lambda: [at for at, _, _ in tab.grid.shown_columns()] == [0, 51, 201, 202])
        assert tab.grid.column == 202 and not any("more" in line for line in lines(app))
        await pilot.press("i", "g", "i")
        cell = tab.cell()
        assert tab.grid.column == 51 and cell is not None and not cell.same


@pytest.mark.real
async def test_the_next_case_shows_nothing_of_the_last_one(tmp_path: Path) -> None:
    app = host(tmp_path, wrong_cell(), text_failure())
    async with app.run_test(size=(80, 24)) as pilot:
        screen, _ = await opened(pilot)
        await sees(pilot, "off by 0.75")
        screen.go_to(app.pointers[1])
        await until(pilot, lambda: screen.tab_shown == 0)  # it has no rows
        assert "off by" not in screen_text(app) and "region" not in screen_text(app)


@pytest.mark.real
@pytest.mark.parametrize("size", SIZES)
async def test_both_modes_take_the_lines_that_they_need(tmp_path: Path, size: tuple[int, int]) -> None:
    rows = [{"id": n, "v": 1_000_000 + n} for n in range(3)]
    app = host(tmp_path, attempt_of(rows, [{**rows[0], "v": 1_000_001}, *rows[1:]], compat="documented"))
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        await sees(pilot, "✗ documented", "✓ reference")
        found = lines(app)
        at = next(i for i, line in enumerate(found) if "✓ reference" in line)
        assert "integer" in found[at + 2] or "integer" in found[at + 3]


@pytest.mark.real
@pytest.mark.parametrize("size", SIZES)
async def test_the_rows_are_one_table_and_o_puts_both_sides_beside_each_other(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app = host(tmp_path, wrong_cell())
    async with app.run_test(size=size) as pilot:
        _, tab = await opened(pilot)
        await sees(pilot, "1006.5→1007.25", "region", "text", "number")
        here = tab.grid.cursor, tab.grid.column
        await pilot.press("o")
        await sees(pilot, "   expected ", "actual  4 rows", " │ ", "1007.25≠")
        assert "→" not in "".join(lines(app)[:-1]) and (tab.grid.cursor, tab.grid.column) == here
        await pilot.press("o")
        await sees(pilot, "1006.5→1007.25", "one table: o puts both")
        assert tab.rendered


@pytest.mark.real
async def test_a_missing_row_an_extra_one_and_a_repeat_stand_in_their_place(tmp_path: Path) -> None:
    rows = [{"id": n, "day": f"2018-01-0{n}T00:00:00", "v": n / 2} for n in (1, 2, 4)]
    answer = [rows[0], {**rows[0], "v": 7.5}, {"id": 3, "day": "2018-01-03", "v": 1.5}, rows[2]]
    app = host(tmp_path, attempt_of(rows, answer))
    async with app.run_test(size=(80, 24)) as pilot:
        _, tab = await opened(pilot)
        await sees(pilot, "− 1 missing", "+ 1 extra", "× 1 repeated", "repeats once")
        shown = [line.split() for line in tab.grid.rows_text().splitlines()]
        assert shown == [
            ["1", "2018-01-01", "0.5"],
            ["×2", "1", "2018-01-01", "7.5"],
            ["−", "2", "2018-01-02", "1.0"],
            ["+", "3", "2018-01-03", "1.5"],
            ["4", "2018-01-04", "2.0"],
        ]
        await sees(pilot, "×2 the answer has this key twice")


@pytest.mark.real
async def test_beside_each_other_a_repeats_mark_and_its_rows_number_are_told_apart(tmp_path: Path) -> None:
    app = host(tmp_path, attempt_of([{"status": "open"}], [{"status": "open"}] * 120))
    async with app.run_test(size=(80, 24)) as pilot:
        _, tab = await opened(pilot)
        await pilot.press("o")
        await until(pilot, lambda: tab.grid.sides)
        last = tab.grid.rows_text().splitlines()[-1].split("│")[1]
        assert last.split() == ["×120", "120", "open"]


async def test_a_line_that_is_too_long_where_rows_are_few_goes_on_below(tmp_path: Path) -> None:
    rows = [{"id": n, "name": f"n{n}", "v": n * 2.0} for n in range(1, 21)]
    answer = [{**row, "v": row["v"] * (n % 3 + 2)} for n, row in enumerate(rows)]
    app = host(tmp_path, attempt_of(rows, answer, key=["id"]))
    async with app.run_test(size=(60, 16)) as pilot:
        await opened(pilot)
        await sees(pilot, "→ v whole multiples (×2 to ×4)", "as a join does?")
        assert "…" not in "".join(line for line in lines(app) if line.startswith("→"))


@pytest.mark.real
async def test_a_cell_in_full_shows_a_date_as_one_until_it_is_asked_for_raw(tmp_path: Path) -> None:
    rows = [{"id": n, "day": f"2018-01-0{n}T00:00:00"} for n in (1, 2)]
    app = host(tmp_path, attempt_of(rows, [rows[0], {**rows[1], "day": "2018-01-05 00:00:00"}]))
    async with app.run_test(size=(80, 24)) as pilot:
        _, tab = await opened(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "2018-01-05" in tab.text.rows_text())
        assert "00:00" not in tab.text.rows_text()


def test_what_is_not_made_to_its_end_leaves_no_file(tmp_path: Path) -> None:
    attempt = attempt_of([{"a": n} for n in range(18)], [{"a": n} for n in range(100, 118)])
    assert attempt.data is not None
    view = make(attempt.data)
    whole = "".join(view.csv())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_export, "PIECE", 4)
        told: list[tuple[int, int]] = []
        assert "".join(view.csv(None, lambda *so_far: not told.append(so_far))) == whole  # type: ignore[func-returns-value]
        assert told == [(0, 18), (4, 18), (8, 18), (12, 18), (16, 18)]
        with pytest.raises(ExportEnded) as ended:
            clipboard.write_pieces(view.csv(None, lambda done, total: done < 8), "x", ".csv", tmp_path)
    assert ended.value.rows == 8 and not list(tmp_path.iterdir())
    path = clipboard.write_pieces(view.csv(), "x", ".csv", tmp_path)
    assert path.read_text() == whole


@pytest.mark.real
async def test_writing_a_long_difference_says_how_far_it_is_and_can_be_ended(
    tmp_path: Path, monkeypatch: Any
) -> None:
    held = threading.Event()
    as_csv, folder = data_export.as_csv, tmp_path / "out"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr(data_export, "PIECE", 4)
    monkeypatch.setattr(case_actions, "TELL", 0.0)

    def held_up(view: Any, limit: Any, progress: Any) -> Any:
        return as_csv(view, limit, lambda done, total: progress(done, total) and (done != 8 or held.wait(60)))

    monkeypatch.setattr(data_export, "as_csv", held_up)
    app = host(tmp_path, attempt_of([{"a": n} for n in range(18)], [{"a": n} for n in range(100, 118)]))
    async with app.run_test(size=(80, 24)) as pilot:
        screen, _ = await opened(pilot)
        await pilot.press("Y")
        app.screen.post_message(Key("d", "d"))
        await happens(lambda: "writing… 8 of 18 rows; esc ends it" in screen_text(app))
        assert list(folder.iterdir())
        assert screen.back() and not screen.copier.end_writing()
        held.set()
        await sees(pilot, "ended after 12 of 18 rows, nothing is written")
        assert not list(folder.iterdir()) and not screen.back()
        await pilot.press("Y", "d")
        await until(pilot, lambda: any("18 rows written to" in line for line in app.logged))
        (written,) = folder.iterdir()
        assert len(written.read_text().splitlines()) == 19


def many_rows(root: Path, rows: int, shuffled: bool) -> Attempt:
    """An attempt of so many rows, of which the run keeps the first ones with it and all as frames beside it."""
    expected = pl.DataFrame({"id": range(rows), "v": [n / 4 for n in range(rows)]})
    wrong = pl.when(pl.col("id") == rows - 2).then(pl.col("v") + 1).otherwise(pl.col("v"))
    actual = expected.with_columns(wrong.alias("v"))
    actual = actual.reverse() if shuffled else actual
    attempt = attempt_of(expected.head(500).to_dicts(), actual.head(500).to_dicts())
    assert attempt.data is not None
    attempt.data.settings = {
        "compat": "documented",
        "truncated": {"expected": rows, "actual": rows},
        "frames": {side: f"frames/1-{side}.parquet" for side in ("expected", "actual")},
    }
    folder = root / ".tui-eval" / "runs" / "20260601-120000-abcd" / "frames"
    folder.mkdir(parents=True, exist_ok=True)
    for side, frame in (("expected", expected), ("actual", actual)):
        frame.write_parquet(folder / f"1-{side}.parquet")
    return attempt


@pytest.mark.real
@pytest.mark.parametrize("shuffled", [False, True])
async def test_of_many_rows_the_first_stand_there_while_all_are_being_aligned(
    tmp_path: Path, monkeypatch: Any, shuffled: bool
) -> None:
    held = threading.Event()
    real = data.make

    def held_up(*given: Any, progress: Any) -> Any:
        progress("comparing 3,000 rows: column 1 of 2…")
        held.wait(60)
        return real(*given, progress=progress)

    monkeypatch.setattr(data, "make", held_up)
    app = host(tmp_path, wrong_cell())
    attempt = many_rows(tmp_path, 3000, shuffled)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        screen.content.attempt = attempt
        screen.open_tab(3)
        tab = screen.tab
        assert isinstance(tab, DataTab)
        await happens(
            lambda: "comparing 3,000 rows: column 1 of 2…  the first rows stand here" in screen_text(app)
        )
        assert tab.view is None and "61.5" not in screen_text(app)
        assert tab.grid.row_count == 300 and "2.25" in screen_text(app)
        assert tab.turn(1) == "no rows here"
        tab.grid.move_to(6)
        held.set()
        await until(pilot, lambda: tab.view is not None)
        assert tab.view is not None and len(tab.view) == 3000 and tab.view.wrong == 1
        assert tab.grid.cursor == 6, "who went on meanwhile stays there"
        await sees(pilot, "1 of 3,000 rows differs")


async def test_finding_comes_round_in_what_is_shown_and_knows_the_names_of_columns(tmp_path: Path) -> None:
    expected = [{"id": n, **{f"col_{k}": n * 100 + k for k in range(12)}} for n in range(4)]
    actual = [{**row, "col_3": row["col_3"] + 5000 * (row["id"] % 2)} for row in expected]
    app = host(tmp_path, attempt_of(expected, actual))
    async with app.run_test(size=(80, 24)) as pilot:
        _, tab = await opened(pilot)
        await pilot.press("G", "slash", *"5103", "enter")
        await sees(pilot, "2 of 4")
        assert (tab.grid.cursor, tab.grid.column) == (1, 4)
        for key in ("n", "N"):  # nowhere else: it is here all the same
            await pilot.press("G", "n", key)
            await sees(pilot, "2 of 4")
            assert tab.grid.cursor == 1
        await pilot.press("slash", *"COL_11", "enter")
        await sees(pilot, "13 of 13")
        assert (tab.grid.cursor, tab.grid.column) == (1, 12)
        await pilot.press("i", "slash", *"col_11", "enter")
        await sees(pilot, "not here: col_11")  # a column that is not shown
