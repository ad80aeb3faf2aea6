"""A column of a test that compares its columns, run again: it alone is asked, and compared with the others' stored
answers."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.waiting import until
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import Recorded, RequestCell, RunRequest
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow

PROVIDER = """\
import pathlib, time
HERE = pathlib.Path(__file__).parent
def call_api(prompt, options, context):
    with open(HERE / "asked", "a") as file:
        file.write(prompt + "\\n")
    while (HERE / "wait").exists():
        time.sleep(0.01)
    said = HERE / (prompt.split()[0] + ".txt")
    return {"output": said.read_text()} if said.exists() else {"error": "no answer"}
"""
SUITE = """\
prompts: ['a {{q}}', 'b {{q}}', 'c {{q}}']
providers: [python:provider.py]
tests:
  - vars: {q: one}
    assert: [{type: contains, value: good, weight: 0}, {type: contains, value: best, weight: 0}, {type: max-score}]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "promptfooconfig.yaml").write_text(SUITE)
    (tmp_path / "provider.py").write_text(PROVIDER)
    (tmp_path / "tui_eval.yaml").write_text("{}")
    for name, text in (("a", "good"), ("b", "bad"), ("c", "bad")):
        (tmp_path / f"{name}.txt").write_text(text)
    return tmp_path


def asked(root: Path) -> list[str]:
    """The prompts that the provider has been given since this was asked last."""
    file = root / "asked"
    found = [line[0] for line in file.read_text().splitlines()] if file.exists() else []
    file.unlink(missing_ok=True)
    return sorted(found)


async def ran(root: Path, request: RunRequest) -> ActiveRun:
    request.paths, request.trust = [str(root / "promptfooconfig.yaml")], True
    active = await asyncio.to_thread(prepare, request)
    assert await active.execute() == "finished"
    return active


def rows(active: ActiveRun) -> dict[str, tuple[str, AttemptRow]]:
    """By prompt the case's id and its attempt."""
    assert active.writer is not None
    with closing(RunReader(active.writer.folder)) as reader:
        found = {row.id: row for row in reader.cases()}
        return {
            reader.case(row.case_ref).prompt[0]: (found[row.case_ref].case_id, row)  # type: ignore[index]
            for row in reader.attempts()
        }


def outcomes(active: ActiveRun) -> dict[str, str | None]:
    return {prompt: row.outcome for prompt, (_, row) in sorted(rows(active).items())}


def column(active: ActiveRun, prompt: str) -> list[RequestCell]:
    case_id, _ = rows(active)[prompt]
    with closing(RunReader(active.writer.folder)) as reader:  # type: ignore[union-attr]
        agent = next(row.agent for row in reader.cases() if row.case_id == case_id)
    return [RequestCell(case_id, agent, None, True)]


async def first(root: Path) -> ActiveRun:
    active = await ran(root, RunRequest())
    assert outcomes(active) == {"a": "passed", "b": "failed", "c": "failed"} and asked(root) == [
        "a",
        "b",
        "c",
    ]
    return active


@pytest.mark.real
async def test_one_column_is_asked_and_the_others_lose_or_win_by_their_stored_answers(root: Path) -> None:
    whole = await first(root)
    (root / "b.txt").write_text("good and best")
    again = await ran(root, RunRequest(cells=column(whole, "b"), linked_to=whole.run_id))
    assert asked(root) == ["b"]
    assert outcomes(again) == {"a": "failed", "b": "passed", "c": "failed"}
    judged = {prompt: row.judges for prompt, (_, row) in rows(again).items()}
    assert judged["b"] == "" and judged["a"] == f"{whole.run_id}/{rows(whole)['a'][1].id}"
    assert again.note.startswith("by the new comparison: ") and again.note.endswith("passed → failed")
    (root / "b.txt").write_text(
        "bad"
    )  # and what had lost wins again, from what it was before it was compared
    third = await ran(root, RunRequest(cells=column(whole, "b"), linked_to=again.run_id))
    assert asked(root) == ["b"]
    assert outcomes(third) == {"a": "passed", "b": "failed", "c": "failed"}


@pytest.mark.real
async def test_a_column_without_an_answer_is_asked_with_it_and_that_is_said_before(root: Path) -> None:
    (root / "c.txt").unlink()
    whole = await ran(root, RunRequest())
    assert outcomes(whole) == {"a": "passed", "b": "failed", "c": "error"} and asked(root) == ["a", "b", "c"]
    active = await asyncio.to_thread(
        prepare,
        RunRequest(
            paths=[str(root / "promptfooconfig.yaml")],
            trust=True,
            cells=column(whole, "b"),
            linked_to=whole.run_id,
        ),
    )
    assert active.noted[0].startswith("asks 1 other column too: ")
    assert await active.execute() == "finished" and asked(root) == ["b", "c"]


@pytest.mark.real
async def test_an_answer_to_another_question_is_not_compared(root: Path) -> None:
    whole = await first(root)
    (root / "promptfooconfig.yaml").write_text(SUITE.replace("value: good", "value: better"))
    await ran(root, RunRequest(cells=column(whole, "b"), linked_to=whole.run_id))
    assert asked(root) == ["a", "b", "c"]


@pytest.mark.real
async def test_a_rerun_without_an_answer_leaves_the_others_as_they_were(root: Path) -> None:
    whole = await first(root)
    (root / "a.txt").unlink()
    again = await ran(root, RunRequest(cells=column(whole, "a"), linked_to=whole.run_id))
    assert asked(root) == ["a"]
    assert outcomes(again) == {"a": "error", "b": "failed", "c": "failed"}


def recorded(whole: ActiveRun, prompt: str, turn: int | None) -> RunRequest:
    assert whole.writer is not None
    case_id, row = rows(whole)[prompt]
    return RunRequest(
        case_ids=[case_id],
        cells=column(whole, prompt),
        linked_to=whole.run_id,
        continue_from=Recorded(str(whole.writer.folder), row.id, turn),
    )


@pytest.mark.real
async def test_judging_one_column_again_compares_it_with_the_others(root: Path) -> None:
    whole = await first(root)
    again = await ran(root, recorded(whole, "b", None))
    assert asked(root) == []
    assert outcomes(again) == {"a": "passed", "b": "failed", "c": "failed"}


@pytest.mark.real
async def test_going_on_from_a_turn_compares_with_the_others_also_after_an_interruption(root: Path) -> None:
    whole = await first(root)
    (root / "b.txt").write_text("good and best")
    (root / "wait").touch()
    request = recorded(whole, "b", 1)
    request.paths, request.trust = [str(root / "promptfooconfig.yaml")], True
    active = await asyncio.to_thread(prepare, request)
    running = asyncio.create_task(active.execute())
    await until(lambda: (root / "asked").exists())
    await active.runner.interrupt()
    assert await running == "interrupted" and active.writer is not None
    assert outcomes(active) == {"a": "passed", "b": None, "c": "failed"}
    (root / "wait").unlink()
    asked(root)
    gone_on = await asyncio.to_thread(resume, active.writer.folder, overrides=RunRequest(trust=True))
    assert await gone_on.execute() == "finished"
    assert asked(root) == ["b"]
    assert outcomes(gone_on) == {"a": "failed", "b": "passed", "c": "failed"}
