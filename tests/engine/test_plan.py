"""Jobs of a large plan hold their cases packed: what they come to is the same."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tui_eval.engine import plan
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store

SUITE = """
prompts: ["Say {{q}}", "Repeat {{q}} of {{day}}"]
providers: [echo, {id: echo, label: second}]
evaluateOptions: {repeat: 2}
tests:
  - vars: {q: one, day: 2026-01-01}
    assert: [{type: contains, value: one}, {type: max-score}]
  - {vars: {q: [two, three], day: x}, assert: [{type: regex, value: "^Say"}]}
  - {description: named, vars: {q: four, day: y}, threshold: 0.5, metadata: {tag: a}}
"""


async def results(root: Path, name: str, **asked: Any) -> list[tuple[Any, ...]]:
    """What came of every attempt of a run, times and places apart."""
    request = RunRequest(paths=[str(root)], **asked)
    active = await asyncio.to_thread(prepare, request, store=Store(root / name))
    await active.execute()
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    found: list[tuple[Any, ...]] = []
    for case, rows in reader.by_case():
        for row in rows:
            attempt = reader.attempt(row.id)
            assert attempt is not None
            same = msgspec.structs.replace(
                attempt, started_at=0.0, duration_ms=None, exchanges=[], replies=[]
            )
            entries = [(entry.kind, entry.text) for entry in attempt.transcript]
            found.append(
                (case, row.outcome, row.cause, msgspec.structs.replace(same, transcript=[]), entries)
            )
    reader.close()
    return found


@pytest.mark.parametrize("asked", [{}, {"agents": ["echo"]}, {"filter_first_n": 2}, {"attempts": 3}])
async def test_a_packed_plan_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(SUITE)
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    as_they_are = await results(tmp_path, "one", **asked)
    monkeypatch.setattr(plan, "HELD_AS_THEY_ARE", 0)
    packed = await results(tmp_path, "two", **asked)
    assert as_they_are == packed
    assert as_they_are and all(isinstance(one[3], Attempt) for one in packed)


async def test_jobs_beyond_the_first_ones_hold_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(SUITE)
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    monkeypatch.setattr(plan, "HELD_AS_THEY_ARE", 4)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(tmp_path)]))
    kinds = [type(job.held) for job in active.jobs]
    assert bytes not in kinds[:4] and set(kinds[4:]) == {bytes}
    assert active.jobs[4].held is active.jobs[5].held or active.jobs[4].case != active.jobs[5].case
    opened = active.jobs[-1].opened()
    assert opened.case is opened.case and opened.case == active.jobs[-1].case
    assert (opened.suite, opened.format) == ("promptfooconfig.yaml", "promptfoo")
    await active.execute()
    assert not active.jobs and not active.tickets, "what has ended is not held"


async def test_what_a_promptfoo_suite_says_itself_wins_over_what_tui_eval_yaml_says(tmp_path: Path) -> None:
    """`repeat: 1` was asked as often as `suites:` or `run:` say, its time limit and its grader did not count."""
    own = "evaluateOptions: {repeat: 1, timeoutMs: 9000}\ncommandLineOptions: {grader: theirs}\n"
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "promptfooconfig.yaml").write_text(
        SUITE.replace("evaluateOptions: {repeat: 2}\n", own)
    )
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "promptfooconfig.yaml").write_text(
        SUITE.replace("evaluateOptions: {repeat: 2}\n", "")
    )
    (tmp_path / "tui_eval.yaml").write_text(
        "agents: {ours: {type: echo}, theirs: {type: echo}}\nrun: {attempts: 4, timeout: 7}\n"
        "suites: [{path: '*/promptfooconfig.yaml', attempts: 3, timeout: 5, judge: ours}]\n"
    )

    async def planned(folder: str, **asked: Any) -> set[tuple[int, int, float, str | None]]:
        request = RunRequest(paths=[str(tmp_path / folder)], **asked)
        active = await asyncio.to_thread(prepare, request)
        return {(job.attempts, job.required, job.timeout, job.judge) for job in active.jobs}

    assert await planned("own") == {(1, 1, 9.0, "theirs")}
    assert await planned("open") == {(3, 3, 5.0, "ours")}
    assert await planned("own", attempts=2, timeout=1, judge="ours") == {(2, 2, 1.0, "ours")}
    (tmp_path / "tui_eval.yaml").write_text("run: {attempts: 4, timeout: 7}\n")
    assert {found[:3] for found in await planned("own")} == {(1, 1, 9.0)}
    assert {found[:3] for found in await planned("open")} == {(4, 4, 7.0)}
