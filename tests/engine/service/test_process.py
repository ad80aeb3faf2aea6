"""The engine as a process: started by a client, runs outlive it, others attach."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from tests.support.waiting import connected, until
from tui_eval.engine.request import RunRequest
from tui_eval.engine.service import process
from tui_eval.engine.service.client import EngineClient, EngineError
from tui_eval.store.reader import RunReader

SUITE = "agent: helper\ntest_cases:\n  - {name: slow, input: slow, expected: {should_contain: [end]}}\n"


def script(seconds: float) -> str:
    return f"default: {{steps: [{{say: begin}}, {{wait: {seconds}}}, {{say: ' end'}}]}}\n"


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:  # it may go between two looks
        return Path("/proc/self").exists()


@pytest.mark.real
async def test_a_run_outlives_its_client_and_the_engine_ends_after_it(project) -> None:
    root = project(suite=SUITE, script=script(0.5))
    client = EngineClient(root)
    started = await client.run(RunRequest(paths=[str(root)]))
    pid = (await client.state())["pid"]
    await client.close()
    reader = RunReader(started.folder)
    await until(lambda: reader.info().state == "finished")
    assert [row.outcome for row in reader.attempts()] == ["passed"]
    await until(lambda: gone(pid))


async def test_another_client_attaches_and_cancels(project) -> None:
    root = project(suite=SUITE, script=script(60))
    client = EngineClient(root)
    started = await client.run(RunRequest(paths=[str(root)]))
    reader = RunReader(started.folder)
    await until(lambda: any(row.text == "begin" for row in reader.live(0)))
    other = EngineClient(root)
    await other.attach(started.folder)
    assert await other.cancel(started.run_id) == 1
    await until(lambda: reader.info().state == "cancelled")
    assert reader.attempts()[0].outcome == "cancelled"
    await other.close()
    await client.close()


async def test_what_is_asked_of_a_run_that_has_ended_is_answered_in_words(project) -> None:
    root = project(suite=SUITE, script=script(0.01))
    client = EngineClient(root)
    started = await client.run(RunRequest(paths=[str(root)]))
    reader = RunReader(started.folder)
    await until(lambda: reader.info().state == "finished")
    # Its last words are written before the engine is done with it.
    async with asyncio.timeout(60):
        while (await client.state())["runs"]:  # noqa: ASYNC110 - another process's
            await asyncio.sleep(0.01)
    for ask in (client.cancel, client.pause, client.naming):
        with pytest.raises(EngineError) as refused:
            await ask(started.run_id)
        assert "Error" not in str(refused.value) and started.run_id in str(refused.value)
    await client.close()


@pytest.mark.real
async def test_a_killed_engine_leaves_an_interrupted_run_that_resumes(project) -> None:
    root = project(suite=SUITE, script=script(60))
    client = EngineClient(root)
    started = await client.run(RunRequest(paths=[str(root)]))
    reader = RunReader(started.folder)
    await until(lambda: any(row.text == "begin" for row in reader.live(0)))
    os.kill((await client.state())["pid"], signal.SIGKILL)
    await until(lambda: reader.info().state == "interrupted")
    await until(lambda: client._process is not None and client._process.poll() is not None)
    (root / "agent.script.yaml").write_text(script(0))
    again = await client.resume_run(started.folder)
    assert again.run_id == started.run_id
    await until(lambda: reader.info().state == "finished")
    assert [row.outcome for row in reader.attempts()] == ["passed"]
    await client.close()


@pytest.mark.real
async def test_that_a_limit_is_in_the_way_comes_with_the_refusal(project) -> None:
    root = project(suite=SUITE, script="rate: 5000\ndefault: nothing\n")
    client = EngineClient(root)
    asked = RunRequest(paths=[str(root)], attempts=3, fail_fast=True, concurrency=1)
    started = await client.run(asked)
    reader = RunReader(started.folder)
    await until(lambda: reader.info().state == "finished")
    with pytest.raises(EngineError, match="--no-fail-fast") as refused:
        await client.resume_run(started.folder)
    limit = refused.value.limit
    assert limit is not None and limit.bad == 1
    again = await client.resume_run(started.folder, limit.past(RunRequest()))
    assert again.attempts == 2
    await until(lambda: [row.state for row in reader.attempts()] == ["done"] * 3)
    reader.close()
    await client.close()


@pytest.mark.real
async def test_a_stepped_run_that_nobody_attends_is_interrupted(project, tmp_path) -> None:
    root = project(suite=SUITE, script=script(0))
    socket = tmp_path / "engine.socket"
    engine = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tui_eval.engine.service.process",
        "--socket",
        str(socket),
        "--unattended",
        "0.2",
    )
    reader, writer = await connected(socket)
    request = msgspec.to_builtins(RunRequest(paths=[str(root)], step=True))
    writer.write(msgspec.json.encode({"id": 1, "op": "run", "request": request}) + b"\n")
    run = RunReader(Path(json.loads(await reader.readline())["folder"]))
    await until(lambda: run.attempts()[0].detail == "step: before turn 1")
    assert run.info().state == "running"
    writer.close()
    assert await asyncio.wait_for(engine.wait(), 60) == 0
    assert run.info().state == "interrupted"
    run.close()


@pytest.mark.real
async def test_the_terminals_end_is_not_the_engines(project) -> None:
    root = project(suite=SUITE, script=script(0.5))
    client = EngineClient(root)
    started = await client.run(RunRequest(paths=[str(root)]))
    os.kill((await client.state())["pid"], signal.SIGHUP)
    reader = RunReader(started.folder)
    await until(lambda: reader.info().state == "finished")
    await client.close()


@pytest.mark.real
async def test_refusals_are_one_line(project) -> None:
    root = project()
    client = EngineClient(root)
    with pytest.raises(EngineError, match="no case, file or folder is called 'nothing'"):
        await client.run(RunRequest(paths=[str(root)], select=["nothing"]))
    with pytest.raises(EngineError, match="nothing of it is being executed"):
        await client.cancel("none")
    with pytest.raises(EngineError, match="no engine"):
        await EngineClient(root).attach(root)
    await client.close()


def test_a_client_that_is_there_when_a_foreground_run_ends_causes_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The app looks at a run of `tui-eval run`, which ends: nothing but its own lines stands on stderr."""
    said: list[dict[str, Any]] = []

    async def run(folder: Path) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
        active = cast("Any", SimpleNamespace(run_id="one", writer=None))
        async with process.reachable(active):
            (socket,) = folder.glob("run-*.sock")
            reader, writer = await asyncio.open_unix_connection(str(socket))
            writer.write(b'{"id": 1, "op": "hello"}\n')
            assert json.loads(await reader.readline())["ok"]

    with tempfile.TemporaryDirectory() as name:  # a short one: a socket's path has room for 100 letters
        folder = Path(name)
        monkeypatch.setattr(process.private, "runtime_folder", lambda: folder)
        asyncio.run(run(folder))
    assert said == []
