"""A run from elsewhere in the app: a folder copied under another name, a results file; looked at, and compared."""

from __future__ import annotations

import json
import shutil
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import FakeEngine, project
from tests.tui.screens.test_runs_screen import sees, write_runs
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.service.client import EngineClient
from tui_eval.formats.reading import open_results
from tui_eval.reports import results
from tui_eval.store.imported.results_files import open_folder
from tui_eval.store.notes import Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import GUESTS, Store
from tui_eval.store.schema import AttemptRow
from tui_eval.tui.inspector.history import HistoryTab
from tui_eval.tui.loaders.compare_loader import Half
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.compare_screen import CompareScreen
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.screens.runs_screen import RunsScreen
from tui_eval.tui.screens.sides import SidesScreen


@pytest.fixture(autouse=True)
def _alone(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    GUESTS.clear()
    yield
    GUESTS.clear()


def from_ci(root: Path) -> Path:
    """A run that was copied from another machine, its folder named otherwise; the project does not have it."""
    (folder,) = write_runs(root, ["failed", "passed", "passed"])
    copied = root / "artifact"
    shutil.copytree(folder, copied)
    shutil.rmtree(folder)
    return copied


def test_a_copied_folder_is_found_under_its_id_and_nothing_is_written_to_it(tmp_path: Path) -> None:
    root = project(tmp_path)
    copied = from_ci(root)
    before = sorted(path.name for path in copied.iterdir())
    opened = open_folder(copied)
    assert opened != copied and opened == open_folder(copied)
    reader = RunReader(opened)
    assert reader.info().id == opened.name and len(reader.attempts()) == 3
    reader.close()
    assert not (copied / "notes.db").exists()
    assert Notes.beside(opened).path.is_relative_to(opened.parents[2])
    names = {path.name for path in copied.iterdir()} - {"run.db-shm", "run.db-wal"}
    assert names == set(before) - {"run.db-shm", "run.db-wal"}
    (own,) = write_runs(root, ["passed"] * 3)
    assert open_folder(own) == own  # of a project


@pytest.mark.real
@pytest.mark.parametrize("kind", ["folder", "file"])
async def test_a_run_brought_home_is_looked_at_and_compared_with_the_projects_own(
    tmp_path: Path, kind: str
) -> None:
    root = project(tmp_path)
    copied = from_ci(root)
    if kind == "file":
        reader = RunReader(copied)
        results.write(reader, root / "ci.json")
        reader.close()
    guest = open_folder(copied) if kind == "folder" else open_results(root / "ci.json")
    older, newer = (
        folder.rename(folder.with_name(name))
        for folder, name in zip(
            write_runs(root, ["passed"] * 3, ["passed"] * 3),
            ("20251231-000000-old0", "20270101-000000-new0"),
            strict=True,
        )
    )
    for folder in (older, newer):
        import sqlite3

        with sqlite3.connect(folder / "run.db") as connection:
            connection.execute(
                "UPDATE meta SET value = json_set(value, '$.id', ?) WHERE key = 'info'", (folder.name,)
            )
    async with running_app(root, open_run=guest) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and app.state.run is not None, pilot)
        await sees(app, pilot, "finished", "✗")
        await pilot.press("H")
        await until(lambda: isinstance(app.screen, RunsScreen) and len(app.screen.table.rows) == 3, pilot)
        assert [one.run.id for one in app.screen.lines] == [newer.name, guest.name, older.name]
        await pilot.press("j", "c")
        await until(lambda: isinstance(app.screen, CompareScreen) and app.screen.comparison, pilot)
        assert (app.screen.before.folder, app.screen.after.folder) == (older, guest)
        await sees(app, pilot, "1 regressed")
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        await pilot.press("escape", "greater_than_sign")
        await until(
            lambda: isinstance(app.screen, CompareScreen) and app.screen.before.folder == newer, pilot
        )
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, RunsScreen), pilot)
        await pilot.press("D", "y")
        await until(
            lambda: any("is not in this project, so it stays" in line[2] for line in app.notices.lines), pilot
        )
        assert guest.exists()
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, CaseScreen) and app.screen.content.attempt, pilot)
        await pilot.press("h")
        await until(
            lambda: isinstance(app.screen.tab, HistoryTab) and app.screen.tab.table.row_count == 3, pilot
        )


@pytest.mark.real
async def test_the_answers_of_a_run_from_elsewhere_are_judged_again_on_the_case_screen(
    tmp_path: Path,
) -> None:
    """The project does not have the run: `.` names it by where it is, and the judgement is the project's own."""
    suite = "agent: helper\ntest_cases:\n  - {name: one, input: hello, expected: {should_contain: [%s]}}\n"
    (tmp_path / "suite.yaml").write_text(suite % "hello")
    (tmp_path / "tui_eval.yaml").write_text("agents: {helper: {type: echo}}\n")
    active = prepare(RunRequest(paths=[str(tmp_path)]))
    assert active.writer is not None
    await active.execute()
    shutil.move(active.writer.folder, tmp_path / "artifact")
    (tmp_path / "suite.yaml").write_text(suite % "never said")
    guest = open_folder(tmp_path / "artifact")
    client = EngineClient(tmp_path)
    try:
        async with running_app(tmp_path, engine=client, open_run=guest) as (app, pilot):
            await until(lambda: isinstance(app.screen, RunScreen) and app.state.run is not None, pilot)
            await sees(app, pilot, "finished", "✓")
            await pilot.press("enter")
            await until(lambda: isinstance(app.screen, CaseScreen) and app.screen.content.attempt, pilot)
            await pilot.press("full_stop")
            own = Store(tmp_path)
            await until(lambda: list(own.run_folders()), pilot)
            (judged,) = own.run_folders()
            await until(lambda: [row.state for row in rows_of(judged)] == ["done"], pilot)
            (row,) = rows_of(judged)
            assert (row.outcome, row.judges) == ("failed", f"{guest.name}/1")
            assert not [line for line in app.notices.lines if line[1] == "error"]
    finally:
        await client.shutdown()
        await client.close()


def rows_of(folder: Path) -> list[AttemptRow]:
    with closing(RunReader(folder)) as reader:
        return reader.attempts()


@pytest.mark.parametrize("late", [False, True])
async def test_tests_without_a_name_are_called_by_their_variables_also_where_their_suite_is_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    root = project(tmp_path)
    listed, found = threading.Event(), RunReader.called
    if late:  # of a large file the names come when the list stands

        def called(reader: RunReader) -> dict[str, str]:
            listed.wait(30)
            return found(reader)

        monkeypatch.setattr(RunReader, "called", called)
    entries = [
        {
            "name": f"Row #{number}",
            "suite": "pf/promptfooconfig.yaml",
            "format": "promptfoo",
            "case_id": f"pf/promptfooconfig.yaml::vars-0000000{number}::echo",
            "agent": "echo",
            "vars": {"q": f"question {number}"},
            "passed": passed,
            "outcome": "passed" if passed else "failed",
            "message": "no such words",
            "details": {"response_text": "said"},
        }
        for number, passed in ((1, False), (2, False))
    ]
    for name, passed in (("old.json", True), ("ci.json", False)):
        of_file = [{**one, "passed": passed, "outcome": "passed" if passed else "failed"} for one in entries]
        (root / name).write_text(json.dumps({"timestamp": "2026-01-01T00:00:00", "results": of_file}))
    older, guest = open_results(root / "old.json"), open_results(root / "ci.json")
    async with running_app(root, open_run=guest) as (app, pilot):
        if late:
            await sees(app, pilot, "Row #1", "Row #2")
            listed.set()
        await sees(app, pilot, "question 1", "question 2")
        assert "Row #" not in screen_text(app)
        await pilot.press("enter")
        await sees(app, pilot, "question 1 ")
        await pilot.press("H")
        await until(lambda: isinstance(app.screen, RunsScreen), pilot)
        await pilot.press("slash", *"said", "enter")
        await sees(app, pilot, "2 places", "question 1", "question 2")
        app.services.places.show("compare", Half(older), Half(guest))
        await sees(app, pilot, "2 regressed", "question 1", "question 2")
        assert "Row #" not in screen_text(app)


@pytest.mark.parametrize("with_suite", [True, False])
async def test_results_whose_suite_is_not_here_offer_no_run_and_say_why(
    tmp_path: Path, with_suite: bool
) -> None:
    """`r` and `R` stood in the footer, and said what a suite is."""
    root = project(tmp_path)
    copied = from_ci(root)
    with closing(RunReader(copied)) as reader:
        results.write(reader, root / "ci.json")
    shutil.rmtree(copied)
    if not with_suite:
        shutil.rmtree(root / "suites")
    engine = FakeEngine(root)
    guest = open_results(root / "ci.json")
    async with running_app(root, (120, 30), engine=engine, open_run=guest) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and app.screen.current() is not None, pilot)
        offered = {"case.rerun", "run.failed", "case.edit"} & {key.id for key in app.screen.hints()}
        assert offered == ({"case.rerun", "run.failed", "case.edit"} if with_suite else set())
        if not with_suite:
            for key in ("r", "R", "a", "A"):
                await pilot.press(key)
                await sees(app, pilot, "not in this project: suites/support.yaml")
                await pilot.press("left_square_bracket")
            assert not engine.requests
