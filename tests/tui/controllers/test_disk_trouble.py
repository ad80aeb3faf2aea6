"""A full disk while a run goes on is said in the app, and a run that ended elsewhere is followed there."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import NothingToRun
from tui_eval.engine.service.client import EngineClient
from tui_eval.store import write_thread
from tui_eval.store.run_folders import moved_to
from tui_eval.tui.controllers import front_run
from tui_eval.tui.screens.run_screen import RunScreen

FULL = "run.db: database or disk is full"


@pytest.mark.real
async def test_it_is_said_once_and_when_there_is_room_again(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(front_run, "DISK_SECONDS", 0.05)
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("a")
        await until(lambda: app.state.run is not None and isinstance(app.screen, RunScreen), pilot)
        app.services.engines.own.troubles = {app.state.run.info.id: FULL}
        await until(lambda: "disk full" in screen_text(app), pilot)
        errors = [words for _, level, words in app.notices.lines if level == "error"]
        assert len(errors) == 1 and errors[0].startswith(FULL) and "Make room there" in errors[0]
        app.services.engines.own.troubles = {}
        await until(lambda: "disk full" not in screen_text(app).splitlines()[1], pilot)
        assert "there is room again" in app.notices.lines[-1][2]
        app.services.engines.own.live.finish()


@pytest.mark.real
@pytest.mark.parametrize(
    ("trouble", "shown", "told"),
    [
        ("run.db: disk I/O error", "not written: results wait in memory", "Nothing finished is lost"),
        (
            "run.db: could not be written: attempt 3: x",
            "a part of the run could not be kept",
            "the rest of the run",
        ),
    ],
)
async def test_other_trouble_is_no_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str, shown: str, told: str
) -> None:
    monkeypatch.setattr(front_run, "DISK_SECONDS", 0.05)
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("a")
        await until(lambda: app.state.run is not None and isinstance(app.screen, RunScreen), pilot)
        app.services.engines.own.troubles = {app.state.run.info.id: trouble}
        await until(lambda: shown in screen_text(app), pilot)
        (line,) = [words for _, level, words in app.notices.lines if level == "error"]
        assert told in line and "Make room" not in line and "disk full" not in screen_text(app)
        app.services.engines.own.live.finish()


@pytest.mark.real
async def test_a_run_whose_disk_stayed_full_is_whole_and_paid_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "p").mkdir()
    root = project(tmp_path / "p")
    names = ["refund is approved", "greets by name", "calms an angry customer"]
    async with running_app(root) as (app, pilot):
        run = LiveRun(root, names)
        run.start(0)
        run.done(0)
        assert run.writer.flush()
        app.front_run.follow(run.folder)
        app.runs.show()
        await until(lambda: app.state.run is not None and app.state.run.counts.done == 1, pilot)

        def refused(connection: sqlite3.Connection, pending: object, live: object) -> None:
            if not own(connection):
                written(connection, pending, live)  # type: ignore[arg-type]
            elif pending:
                raise sqlite3.OperationalError("database or disk is full")

        def own(connection: sqlite3.Connection) -> bool:
            return str(run.folder) in connection.execute("PRAGMA database_list").fetchone()[2]

        written = write_thread.write_pending
        monkeypatch.setattr(write_thread, "write_pending", refused)
        for number in (1, 2):
            run.start(number)
            run.done(number)
        run.finish()
        await until(lambda: not app.state.run.active, pilot)
        await until(lambda: app.state.run.counts.done == 3, pilot)
        assert app.state.run.info.state == "finished"
        await until(lambda: "its disk was full" in screen_text(app), pilot)
        # A case that was decided while there was no room opens as any other.
        await pilot.press("g", "right", "j", "j", "enter")  # those that passed are one line
        await until(lambda: getattr(app.screen, "content", None) and app.screen.content.attempt, pilot)
    monkeypatch.setattr(write_thread, "write_pending", written)
    assert moved_to(run.folder) is not None
    with pytest.raises(NothingToRun, match="complete"):
        resume(run.folder)
    assert moved_to(run.folder) is None, "there is room: all of it is at home again"


@pytest.mark.real
async def test_the_engine_says_what_the_disk_refuses(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "agent.script.yaml").write_text("default: {steps: [{wait: 60}]}\n")
    (root / "tui_eval.yaml").write_text("agents: {offline: {type: scripted, script: agent.script.yaml}}\n")
    client = EngineClient(root)
    assert not client.connected
    started = await client.run(RunRequest(paths=[str(root)]))
    assert client.connected
    answer = await client.state()
    assert answer["troubles"] == {} and answer["runs"] == [started.run_id]
    await client.cancel(started.run_id)
    await client.shutdown()
    await client.close()
