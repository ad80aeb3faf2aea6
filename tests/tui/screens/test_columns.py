"""Several models in the app: what R asks, and that a rerun of one case leaves the run in front where it is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tui_eval.engine.request import RequestCell
from tui_eval.model import Attempt, Case, Turn
from tui_eval.store.index import Index
from tui_eval.store.run_folders import Store, new_run_id
from tui_eval.store.schema import CaseHistory, RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.tui.front import SuitesChanged
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.entries import suite_entries
from tui_eval.tui.state.watch_scope import AfterSave

NAMES = ["refund is approved", "greets by name", "calms an angry customer"]


def asked(root: Path, *models: str, wrong: tuple[str, ...] = ()) -> Path:
    """A run of all cases with these models, in this order; `wrong` ones fail the first two."""
    run_id = new_run_id()
    writer = RunWriter(
        Store(root).create_folder(run_id),
        RunInfo(run_id, started_at=1000.0, agents=["offline"], options={"models": list(models)}),
    )
    cells = [(name, model) for name in NAMES for model in models]
    planned = [
        PlannedCase(
            Case(f"suites/support.yaml::{name}", name, "suites/support.yaml", "start_to_agent", turns=[Turn("x")]),
            "offline", model, 1, 1,
        )
        for name, model in cells
    ]  # fmt: skip
    for (ref,), (name, model) in zip(writer.plan(planned), cells, strict=True):
        outcome = "failed" if model in wrong and name in NAMES[:2] else "passed"
        case_id = f"suites/support.yaml::{name}"
        writer.done(ref, Attempt(case_id, 1, outcome, "offline", model, message=outcome, started_at=1000.0))
    writer.state("finished", 1001.0)
    writer.close()
    Index(root).record(writer.folder)
    return writer.folder


@pytest.mark.real
async def test_suites_are_red_where_one_model_failed_and_r_asks_that_one(tmp_path: Path) -> None:
    for order in (("sloppy", "good"), ("good", "sloppy")):
        root = project(tmp_path / order[0]) if (tmp_path / order[0]).mkdir() is None else tmp_path
        asked(root, *order, wrong=("sloppy",))
        async with running_app(root, (120, 30)) as (app, pilot):
            await until(lambda: app.state.rows and app.state.rows[0].last is not None, pilot)
            await until(lambda: "✗2" in screen_text(app) or "2 failed" in screen_text(app), pilot)
            await until(lambda: "1 of 2" in screen_text(app) and "sloppy" in screen_text(app), pilot)
            await pilot.press("R")
            await until(lambda: app.services.engines.own.requests, pilot)
            request = app.services.engines.own.requests[0]
            assert request.cells == [
                RequestCell(f"suites/support.yaml::{name}", "offline", "sloppy") for name in NAMES[:2]
            ]
            assert not request.agents and not request.models
            app.services.engines.own.live.finish()


@pytest.mark.real
async def test_a_rerun_of_one_case_leaves_the_run_in_front(tmp_path: Path) -> None:
    root = project(tmp_path)
    front = LiveRun(root, NAMES[:2])
    for number in range(2):
        front.start(number)
        front.done(number, "passed")
    front.finish()
    async with running_app(root, (120, 30), open_run=front.folder) as (app, pilot):
        await until(lambda: app.state.run is not None and len(app.state.rows) == 3, pilot)
        await pilot.press("U")
        app.places.suites.go_to(CasePointer(f"suites/support.yaml::{NAMES[2]}"))
        await pilot.pause()
        await pilot.press("r")
        await until(lambda: app.state.aside.runs, pilot)
        assert app.state.run.info.id == front.info.id and app.runs.running
        live = app.services.engines.own.live
        live.start(0)
        await until(lambda: suite_entries(app.state)[2].status == "running", pilot)
        live.done(0, "failed")
        live.finish()
        await until(lambda: not app.state.aside.runs, pilot)
        assert [entry.status for entry in suite_entries(app.state)] == ["passed", "passed", "failed"]
        assert app.state.run.info.id == front.info.id
        await pilot.press("L")
        await until(lambda: NAMES[0] in screen_text(app) and NAMES[2] not in screen_text(app), pilot)


@pytest.mark.real
async def test_a_line_of_several_columns_is_judged_again_in_all_of_them(tmp_path: Path) -> None:
    """Else the column that the edited file fails stays green beside the one that it passes."""
    root = project(tmp_path)
    folder = asked(root, "good", "sloppy", wrong=("sloppy",))
    case_id = f"suites/support.yaml::{NAMES[0]}"
    async with running_app(root, (120, 30)) as (app, pilot):
        await until(lambda: app.state.rows and app.state.rows[0].last is not None, pilot)
        await until(lambda: app.places.suites.case_list.cases.index, pilot)
        app.places.suites.go_when_there(
            next(key for key in app.places.suites.case_list.cases.index if key.endswith(NAMES[0]))
        )
        await until(lambda: app.places.suites.line_under_cursor().members, pilot)
        await pilot.press("full_stop")
        await until(lambda: app.services.engines.own.rescored, pilot)
        ((run, request),) = app.services.engines.own.rescored
        assert run == folder and not app.services.engines.own.requests
        assert set(map(msgspec.json.encode, request.cells or ())) == {
            msgspec.json.encode(RequestCell(case_id, "offline", model)) for model in ("good", "sloppy")
        }


@pytest.mark.real
@pytest.mark.parametrize("place", ["the line of a test", "a row of Suites", "the Case screen"])
async def test_a_save_that_is_watched_judges_what_the_key_judges_there(tmp_path: Path, place: str) -> None:
    """All columns where a line stands for them, the shown one where one is shown."""
    root = project(tmp_path)
    asked(root, "good", "sloppy", wrong=("sloppy",))
    case_id = f"suites/support.yaml::{NAMES[0]}"
    async with running_app(root, (120, 30)) as (app, pilot):
        await until(lambda: app.state.rows and app.state.rows[0].last is not None, pilot)
        app.places.suites.go_to(CasePointer(case_id))
        await until(lambda: "1 of 2" in screen_text(app), pilot)
        app.places.suites.go_to(CasePointer(case_id, "offline", "sloppy"))
        await until(lambda: app.places.suites.current().model == "sloppy", pilot)
        models = ["good", "sloppy"] if place == "the line of a test" else ["sloppy"]
        if place == "the line of a test":
            await pilot.press("k", "k")
            await until(lambda: app.places.suites.line_under_cursor().members, pilot)
        elif place == "the Case screen":
            await pilot.press("enter")
            await until(lambda: getattr(app.screen, "content", None) and app.screen.content.attempt, pilot)
        await pilot.press("W")
        app.watching.again(app.watching.watched, AfterSave({"run": [case_id]}, [], {}, []))
        engine = app.services.engines.own
        await until(lambda: engine.requests or engine.rescored, pilot)
        await pilot.pause()
        (request,) = [*engine.requests, *(one for _, one in engine.rescored)]  # one run for all of them
        assert sorted(cell.model for cell in request.cells) == models
        engine.requests.clear()
        await pilot.press("W")
        assert app.watching.mode == "rerun"
        app.watching.again(app.watching.watched, AfterSave({"run": [case_id]}, [], {}, []))
        await until(lambda: app.services.engines.own.requests, pilot)
        assert sorted(cell.model for cell in app.services.engines.own.requests[0].cells) == models
        app.services.engines.own.live.finish()


@pytest.mark.real
async def test_the_cursor_stays_on_a_case_that_another_agent_is_asked_for(tmp_path: Path) -> None:
    """Its row has another key then: the cursor was on the case below it, and so were the keys."""
    root = project(tmp_path)
    case_id = f"suites/support.yaml::{NAMES[0]}"

    def result(model: str) -> CaseHistory:
        return CaseHistory("r", case_id, "offline", model, "failed", 0, 1, 9.0, 5.0, 10, None, "h", model, 1)

    async with running_app(root, (120, 30)) as (app, pilot):
        await until(lambda: app.places.suites.case_list.cases.index and len(app.state.rows) == 3, pilot)
        for models in (("good",), ("good", "sloppy"), ("sloppy",)):
            app.state.set_history({case_id: [result(model) for model in models]})
            if len(models) == 1:
                app.places.suites.go_to(CasePointer(case_id))
            app.places.post(SuitesChanged([case_id]))
            await until(lambda: len(app.places.suites.all_entries()) == 2 + len(models), pilot)  # noqa: B023
            await pilot.pause()
            pointer = app.places.suites.current()
            assert pointer is not None and pointer.case_id == case_id
