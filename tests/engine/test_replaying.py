"""`replay` answers from an earlier run: never from the one that is being written, never from one without answers."""

from __future__ import annotations

from pathlib import Path

from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader

CONFIG = """
agents:
  helper: {type: scripted, script: agent.script.yaml}
  again: {type: replay}
"""


async def run(root: Path, **options) -> tuple[str, list[Attempt]]:
    active = prepare(RunRequest(paths=[str(root)], **options))
    assert active.writer is not None
    await active.execute()
    reader = RunReader(active.writer.folder)
    try:
        found = [reader.attempt(row.id) for row in reader.attempts()]
    finally:
        reader.close()
    return active.run_id, [one for one in found if one is not None]


async def test_the_last_run_is_not_the_one_that_is_being_written(project) -> None:
    root = project(config=CONFIG)
    _, first = await run(root, attempts=2)
    _, again = await run(root, agents=["again"], attempts=2, concurrency=1)
    assert [one.error for one in again] == [None] * 8
    assert [one.response_text for one in again] == [one.response_text for one in first]
    # A run of another kind, in which the case was not answered, is passed over: of another case, of errors.
    await run(root, select=["greets"])
    (root / "agent.script.yaml").write_text("default: {steps: [{error: boom}]}\n")
    _, broken = await run(root)
    assert all(one.outcome == "error" for one in broken)
    _, again = await run(root, agents=["again"])
    assert [one.response_text for one in again] == [one.response_text for one in first[::2]]


async def test_without_an_earlier_run_it_says_so_for_every_case(project) -> None:
    root = project(config=CONFIG)
    run_id, alone = await run(root, agents=["again"], concurrency=1)
    assert {one.message for one in alone} == {
        f"replay: no earlier run has an answer to {one.case_id}" for one in alone
    }
    assert len(alone) == 4 and run_id
