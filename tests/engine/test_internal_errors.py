"""An error of our own in the engine: the run is interrupted, its log says where, a resume goes on."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import msgspec
import pytest

from tests.support.waiting import connected, until
from tui_eval.engine.request import RunRequest
from tui_eval.engine.service.client import EngineClient
from tui_eval.store.reader import RunReader

SUITE = """\
agent: helper
test_cases:
  - {name: quick, input: quick, expected: {should_contain: [end]}}
  - {name: slow, input: slow, expected: {should_contain: [end]}}
"""
SCRIPT = """\
rules:
  - {match: {contains: slow}, steps: [{say: begin}, {wait: 60}, {say: " end"}]}
default: {steps: [{wait: 0.3}, {say: end}]}
"""
BROKEN = """
import sys
from tui_eval.engine import runner
from tui_eval.engine.service import process
def broken(self, ticket, attempt, *_):
    api_key = "sk-planted-secret-value"
    raise LookupError("on purpose")
runner.Runner._ended = broken
sys.argv = ["engine", "--socket", sys.argv[1]]
process.main()
"""
DEAF = BROKEN.replace("runner.Runner._ended", "process.EngineServer._operate")


async def engine(tmp_path: Path, code: str):
    """A process of the engine with something broken in it; (process, socket)."""
    socket = tmp_path / "engine.socket"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(socket), stderr=asyncio.subprocess.PIPE
    )
    return process, socket


async def ask(socket: Path, **message) -> dict:
    reader, writer = await connected(socket)
    writer.write(msgspec.json.encode({"id": 1, **message}) + b"\n")
    answer = json.loads(await reader.readline())
    writer.close()
    return answer


@pytest.mark.real
async def test_a_run_whose_engine_fails_is_interrupted_and_resumes(project, tmp_path) -> None:
    root = project(suite=SUITE, script=SCRIPT)
    process, socket = await engine(tmp_path, BROKEN)
    request = msgspec.to_builtins(RunRequest(paths=[str(root)]))
    started = await ask(socket, op="run", request=request)
    _, said = await asyncio.wait_for(process.communicate(), 60)
    assert b"LookupError: on purpose" in said and b"in broken" in said and b"planted" not in said
    reader = RunReader(Path(started["folder"]))
    assert reader.info().state == "interrupted" and "on purpose" in reader.info().note
    assert {row.state for row in reader.attempts()} <= {"waiting", "running"}
    (root / "agent.script.yaml").write_text("default: {say: end}\n")
    client = EngineClient(root)
    await client.resume_run(Path(started["folder"]))
    await until(lambda: reader.info().state == "finished")
    assert [row.outcome for row in reader.attempts()] == ["passed", "passed"]
    await client.close()
    reader.close()


@pytest.mark.real
async def test_an_engine_that_fails_to_answer_says_so_and_goes_on(project, tmp_path) -> None:
    process, socket = await engine(tmp_path, DEAF)
    for _ in range(2):
        answer = await ask(socket, op="state")
        assert not answer["ok"] and answer["error"].startswith("internal error in the engine: TypeError")
    os.kill(process.pid, 15)
    _, said = await asyncio.wait_for(process.communicate(), 60)
    assert b"TypeError" in said
