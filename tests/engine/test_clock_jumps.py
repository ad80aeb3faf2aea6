"""The clock on the wall is set back or forward: nothing lasts less than no time, nothing waits, and the order stays."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from tests.support.waiting import until
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import NothingToRun
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store

SUITE = "agent: helper\ntest_cases: [{name: one, input: hi, expected: {should_contain: [%s]}}, {name: two, input: hi}]\n"
WALL = time.time


class Wall:
    """A clock that somebody sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        monkeypatch.setattr(time, "time", lambda: WALL() + self.ahead)


async def run(root: Path, wall: Wall | None = None, jump: float = 0.0) -> Path:
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
    assert active.writer is not None
    folder = active.writer.folder
    running = asyncio.create_task(active.execute())
    if wall is not None:
        await until(lambda: RunReader(folder).attempts()[0].state == "running")
        wall.ahead += jump
    async with asyncio.timeout(20):
        assert await running == "finished"
    return folder


@pytest.mark.parametrize("jump", [-7200.0, 7200.0, -86_400.0])
async def test_a_clock_that_jumps_during_a_run(project, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    root = project(suite=SUITE % "ok", script="default: {steps: [{wait: 0.2}, {say: ok}]}\nrate: 2000\n")
    wall = Wall(monkeypatch)
    reader = RunReader(await run(root, wall, jump))
    info, rows = reader.info(), reader.attempts()
    assert info.finished_at is not None and info.finished_at >= info.started_at
    assert all(row.duration_ms is not None and 0 <= row.duration_ms < 10_000 for row in rows)
    starts = [row.started_at for row in rows if row.started_at is not None]
    assert starts == sorted(starts) and starts[0] >= info.started_at


async def test_a_run_after_the_clock_was_set_back_is_the_last_one_and_counts(
    project, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "default: {say: ok}\nspeed: 0\n"
    root = project(suite=SUITE % "ok", script=script)
    wall = Wall(monkeypatch)
    folders = [await run(root)]
    project(suite=SUITE % "never", script=script)
    for back in (-3600.0, -3600.0):
        wall.ahead += back
        folders.append(await run(root))
    store = Store(root)
    assert list(store.run_folders()) == folders[::-1], "ids sort as the runs were"
    assert store.find("last") == folders[-1]
    latest = Index(root).latest()["suite.yaml::one"][0]
    assert (latest.run_id, latest.outcome) == (folders[-1].name, "failed")


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("ahead", [7200.0, 4 * 365 * 86_400.0])
@pytest.mark.parametrize("looked", [False, True])
async def test_what_ran_while_the_clock_was_ahead_does_not_stay_the_newest(
    project, monkeypatch: pytest.MonkeyPatch, ahead: float, looked: bool
) -> None:
    script = "default: {say: ok}\nspeed: 0\n"
    wall = Wall(monkeypatch)
    wall.ahead = ahead
    names = []
    for word in ("never", "ok", "never"):
        names.append((await run(project(suite=SUITE % word, script=script))).name)
    wall.ahead = 0.0
    root = project(suite=SUITE % "ok", script=script)
    index = Index(root)

    def known() -> list[tuple[str, str]]:
        return [(one.run_id, one.outcome) for one in index.latest()["suite.yaml::one"]]

    before = list(zip(names, ("failed", "passed", "failed"), strict=True))[::-1]
    if looked:
        assert known() == before
    names.append((await run(root)).name)
    after = [(names[-1], "passed"), *before]
    assert known() == after
    index.rebuild()
    assert known() == after
    assert max(one.finished_at for one in index.history("suite.yaml::one")) <= WALL()
    with pytest.raises(NothingToRun, match="nothing failed"):
        await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], failed_only=True))


@pytest.mark.real
async def test_going_on_with_a_run_after_the_clock_was_set_back(
    project, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(suite=SUITE % "ok", script="default: {steps: [{wait: 0.2}, {say: ok}]}\nrate: 2000\n")
    wall = Wall(monkeypatch)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
    assert active.writer is not None
    folder = active.writer.folder
    running = asyncio.create_task(active.execute())
    await until(lambda: RunReader(folder).attempts()[1].state == "running")
    await active.runner.interrupt()
    await running
    wall.ahead -= 7200
    again = await asyncio.to_thread(resume, folder)
    assert await again.execute() == "finished"
    reader = RunReader(folder)
    first, second = reader.attempts()
    assert first.started_at is not None and second.started_at is not None
    assert second.started_at > first.started_at
    info = reader.info()
    assert info.finished_at is not None and info.finished_at > info.started_at


async def interrupted(root: Path) -> Path:
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
    assert active.writer is not None
    running = asyncio.create_task(active.execute())
    await until(lambda: RunReader(active.writer.folder).attempts()[1].state == "running")
    await active.runner.interrupt()
    await running
    return active.writer.folder


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("ahead", [7200.0, 10 * 86_400.0])
@pytest.mark.parametrize("rebuilt_after", [0.0, 1.5])
async def test_an_old_run_that_went_on_while_the_clock_was_ahead_does_not_stay_the_newest(
    project, monkeypatch: pytest.MonkeyPatch, ahead: float, rebuilt_after: float
) -> None:
    """Also where the index is built anew when that time has come. The older result of it stays where it was."""
    slow = "default: {steps: [{wait: 0.2}, {say: ok}]}\nrate: 2000\n"
    root = project(suite=SUITE % "ok", script=slow)
    wall = Wall(monkeypatch)
    old = await interrupted(root)
    between = await run(root)
    wall.ahead = ahead
    assert await (await asyncio.to_thread(resume, old)).execute() == "finished"
    for file in old.iterdir():
        os.utime(file, (WALL() + ahead, WALL() + ahead))
    wall.ahead = 0.0
    index = Index(root)

    def known(name: str) -> list[str]:
        return [one.run_id for one in index.latest()[f"suite.yaml::{name}"]]

    assert known("two") == [old.name, between.name], "it was run last"
    index.rebuild()
    assert known("two") == [old.name, between.name]
    last = await run(root)
    wall.ahead = ahead * rebuilt_after
    for rebuild in (False, True):
        if rebuild:
            index.rebuild()
        assert known("two") == [last.name, old.name, between.name]
        assert known("one") == [last.name, between.name, old.name]
    newest = await run(root)
    assert known("two")[:2] == [newest.name, last.name]


@pytest.mark.real
async def test_a_run_that_goes_on_after_another_under_a_clock_that_was_ahead_comes_after_it(
    project, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = "default: {steps: [{wait: 0.2}, {say: ok}]}\nrate: 2000\n"
    root = project(suite=SUITE % "ok", script=slow)
    wall = Wall(monkeypatch)
    ahead = 10 * 86_400.0
    first, second = await interrupted(root), await interrupted(root)
    wall.ahead = ahead
    await (await asyncio.to_thread(resume, first)).execute()
    for file in first.iterdir():
        os.utime(file, (WALL() + ahead, WALL() + ahead))
    wall.ahead = 0.0
    await (await asyncio.to_thread(resume, second)).execute()
    wall.ahead = 2 * ahead
    index = Index(root)
    index.rebuild()
    assert [one.run_id for one in index.latest()["suite.yaml::two"]] == [second.name, first.name]
