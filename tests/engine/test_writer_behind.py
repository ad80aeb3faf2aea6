"""Nothing begins while many attempts that have ended are not on disk: whoever kills the process would pay for
them twice."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.support.waiting import until
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.store import write_thread
from tui_eval.store.reader import RunReader

CASES = 900
AT_ONCE = 20


@pytest.fixture
def many(project):
    inputs = "".join(f"  - {{input: 'q{n}', expected: {{should_contain: [o]}}}}\n" for n in range(CASES))
    return project(
        suite=f"agent: helper\ntest_cases:\n{inputs}", script='default: {say: "ok"}\nrate: 1000000\n'
    )


@pytest.mark.real
async def test_nothing_begins_while_the_disk_is_behind(many, monkeypatch: pytest.MonkeyPatch) -> None:
    held, first, write = threading.Event(), threading.Event(), write_thread.write_pending

    def slow(connection, pending, live) -> None:
        if pending.ended:
            first.set()
            held.wait(60)
        write(connection, pending, live)

    monkeypatch.setattr(write_thread, "write_pending", slow)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(many)], concurrency=AT_ONCE))
    begun: list[int] = []
    active.runner.on_start = lambda job, number, ref: begun.append(ref)
    going = asyncio.ensure_future(active.execute())
    await until(first.is_set)
    counts = [0, -1]

    def stands() -> bool:
        counts.append(len(begun))
        return len(begun) > AT_ONCE and counts[-1] == counts[-20:][0]

    await until(stands)
    assert len(begun) < CASES // 2, "the rest waits for the disk"
    held.set()
    await asyncio.wait_for(going, 60)
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    assert len(begun) == CASES
    assert [row.outcome for row in reader.attempts()] == ["passed"] * CASES
    reader.close()


@pytest.mark.real
async def test_a_disk_that_refuses_holds_nothing_up(many, monkeypatch: pytest.MonkeyPatch) -> None:
    write = write_thread.write_pending

    def full(connection, pending, live) -> None:
        if pending.ended and len(begun) < CASES:
            raise OSError("disk is full")
        write(connection, pending, live)

    begun: list[int] = []
    monkeypatch.setattr(write_thread, "write_pending", full)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(many)], concurrency=AT_ONCE))
    active.runner.on_start = lambda job, number, ref: begun.append(ref)
    going = asyncio.ensure_future(active.execute())
    await asyncio.wait_for(going, 60)
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    assert [row.outcome for row in reader.attempts()] == ["passed"] * CASES
    reader.close()
