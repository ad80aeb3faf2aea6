"""A case run one turn at a time: send, edit, skip, run on, stop."""

from __future__ import annotations

import pytest

from tests.waiting import until
from tui_eval.engine.client import EngineClient, EngineError
from tui_eval.engine.request import RunRequest
from tui_eval.store.reader import RunReader

SUITE = """
agent: helper
test_cases:
  - {name: three, messages: ["one", "two", "three"], expected: {should_contain: ["three"]}}
"""
SCRIPT = 'default: {say: "you said {{message}}"}\nrate: 5000\n'


@pytest.fixture
async def stepped(project):
    root = project(suite=SUITE, script=SCRIPT)
    client = EngineClient(root)
    started = await client.run(RunRequest(paths=[str(root)], step=True))
    reader = RunReader(started.folder)

    async def waits(turn: int, text: str) -> None:
        await until(lambda: reader.attempts()[0].detail == f"step: waits before turn {turn}")
        await until(lambda: [row.text for row in reader.live(0) if row.kind == "step"][-1:] == [text])

    async def ended():
        await until(lambda: reader.attempts()[0].state == "done")
        return reader.attempt(reader.attempts()[0].id)

    yield client, started.run_id, reader.attempts()[0].id, waits, ended
    await client.shutdown()
    await client.close()


async def test_each_turn_waits_and_unchanged_it_is_a_result(stepped) -> None:
    client, run, ref, waits, ended = stepped
    for turn, text in enumerate(("one", "two", "three"), 1):
        await waits(turn, text)
        await client.step(run, ref)
    attempt = await ended()
    assert attempt.outcome == "passed"
    with pytest.raises(EngineError):
        await client.step(run, ref)


async def test_what_was_changed_by_hand_is_no_result(stepped) -> None:
    client, run, ref, waits, ended = stepped
    await waits(1, "one")
    await client.step(run, ref, text="uno")
    await waits(2, "two")
    await client.step(run, ref, "skip")
    await waits(3, "three")
    await client.step(run, ref, "run_on")
    attempt = await ended()
    assert attempt.outcome == "skipped"
    assert "turn 1 was edited (it was: one)" in attempt.message and "turn 2 was left out" in attempt.message
    said = [entry.text for entry in attempt.transcript if entry.kind == "user"]
    assert said == ["uno", "three"]
    assert [verdict.passed for verdict in attempt.verdicts] == [True]


async def test_stopping(stepped) -> None:
    client, run, ref, waits, ended = stepped
    await waits(1, "one")
    await client.step(run, ref)
    await waits(2, "two")
    await client.step(run, ref, "stop")
    attempt = await ended()
    assert (attempt.outcome, attempt.message) == ("error", "stopped by hand before turn 2")
    assert [entry.kind for entry in attempt.transcript] == ["user", "assistant"]
