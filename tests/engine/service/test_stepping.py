"""A case run one turn at a time: send, edit, skip, run on, stop."""

from __future__ import annotations

import time

import pytest

from tests.support.waiting import until
from tui_eval.engine.request import RunRequest
from tui_eval.engine.service.client import EngineClient, EngineError
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
        await until(lambda: reader.attempts()[0].detail == f"step: before turn {turn}")
        assert reader.attempts()[0].state == "running", "it waits for a person: nothing is tried again"
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


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("change", [None, "skip", "edit"])
async def test_a_function_that_takes_the_whole_conversation_is_asked_once(
    project, change: str | None
) -> None:
    """Given each message alone it would pass here what it fails in a run."""
    code = "def answer(messages):\n    return f'{len(messages)} messages: ' + ' / '.join(messages)\n"
    config = "agents:\n  helper: {type: python, function: 'bot.py:answer'}\n"
    root = project(suite=SUITE, config=config, **{"bot.py": code})
    client = EngineClient(root)
    request = RunRequest(paths=[str(root)], step=True, agents=["helper"], trust=True)
    started = await client.run(request)
    reader = RunReader(started.folder)
    ref = reader.attempts()[0].id
    for turn in (1, 2, 3):
        await until(lambda turn=turn: reader.attempts()[0].detail == f"step: before turn {turn}")
        if turn == 2 and change == "skip":
            await client.step(started.run_id, ref, "skip")
        else:
            await client.step(started.run_id, ref, text="dos" if turn == 2 and change == "edit" else None)
    await until(lambda: reader.attempts()[0].state == "done")
    attempt = reader.attempt(ref)
    reader.close()
    await client.shutdown()
    await client.close()
    assert attempt is not None
    replies = {
        None: "3 messages: one / two / three",
        "skip": "2 messages: one / three",
        "edit": "3 messages: one / dos / three",
    }
    assert [reply.text for reply in attempt.replies] == [replies[change]]
    assert attempt.outcome == ("skipped" if change else "passed")
    assert any("asked once" in entry.text for entry in attempt.transcript if entry.kind == "note")


@pytest.mark.real
async def test_a_persons_time_is_not_the_agents(stepped) -> None:
    client, run, ref, waits, ended = stepped
    looked = 0.0
    for turn, text in enumerate(("one", "two", "three"), 1):
        await waits(turn, text)
        began = time.monotonic()
        await until(lambda began=began: time.monotonic() - began > 0.3)  # the person looks at it
        looked += time.monotonic() - began
        await client.step(run, ref)
    attempt = await ended()
    whole = time.time() - attempt.started_at
    assert attempt.duration_ms <= (whole - looked + 0.05) * 1000, "the waiting does not count"


@pytest.mark.real
async def test_after_each_turn_stands_what_the_assertions_say_so_far(project) -> None:
    suite = """
    {agent: helper, connections: http, interactions: [
      {text: one, response: {text: {keywords: one, gist: "says one"}}},
      {text: two, response: {text: {keywords: never}}}]}
    """
    guide = SUITE.replace('["three"]}', '["three", "one"], max_output_tokens: 15}')
    script = SCRIPT.replace('"}\n', '", usage: {input: 9, output: 9}}\n')
    config = "agents:\n  helper: {type: scripted, script: agent.script.yaml}\njudge: helper\n"
    root = project(suite=guide, script=script, config=config, **{"net.hocon": suite})

    async def step_through(path: str, turns: int) -> list[str]:
        client = EngineClient(root)
        started = await client.run(RunRequest(paths=[str(root / path)], step=True, agents=["helper"]))
        reader = RunReader(started.folder)
        ref = reader.attempts()[0].id
        told: list[str] = []
        for turn in range(1, turns + 1):
            await until(lambda turn=turn: reader.attempts()[0].detail.endswith(f"turn {turn}"))
            await until(
                lambda turn=turn: any(r.kind == "step" and r.name == str(turn) for r in reader.live(0))
            )
            told = [line for row in reader.live(0) if row.kind == "verdict" for line in row.text.split("\n")]
            await client.step(started.run_id, ref)
        await until(lambda: reader.attempts()[0].state == "done")
        reader.close()
        await client.shutdown()
        await client.close()
        return told

    # Of the first two turns; the third is told with the end.
    assert await step_through("suite.yaml", 3) == [
        'later: not yet: should_contain "three"',
        'later: so far yes: should_contain "one"',
        "later: so far yes: max_output_tokens 15",
        'later: not yet: should_contain "three"',
        'later: not yet: should_contain "one"',
        "later: not yet: max_output_tokens 15",
    ]
    assert await step_through("net.hocon", 2) == [
        'passed: turn 1: keywords "one"',
        'later: turn 1: gist "says one": the judge is asked at the end',
    ]


async def test_stopping(stepped) -> None:
    client, run, ref, waits, ended = stepped
    await waits(1, "one")
    await client.step(run, ref)
    await waits(2, "two")
    await client.step(run, ref, "stop")
    attempt = await ended()
    assert (attempt.outcome, attempt.message) == ("cancelled", "stopped by hand before turn 2")
    assert [entry.kind for entry in attempt.transcript] == ["user", "assistant"]
