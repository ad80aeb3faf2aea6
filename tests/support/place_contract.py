"""What every place of attempts has to do, whatever it is: each function takes one that is open."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.waiting import until
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.places.attempt_place import AttemptPlace
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader

CONFIG = """
agents:
  helper: {type: scripted, script: agent.script.yaml}
  slow: {type: scripted, script: slow.script.yaml}
  code: {type: python, function: "code.py:answer"}
"""
SUITE = 'agent: {0}\ntest_cases:\n  - {{name: {0}, input: "{1}", expected: {{should_contain: ["{2}"]}}}}\n'
FILES = {
    "tui_eval.yaml": CONFIG,
    "1.yaml": SUITE.format("helper", "hello", "hi"),
    "2.yaml": SUITE.format("code", "a b c", "3 words"),
    "3.yaml": SUITE.format("slow", "hello", "never"),
    "agent.script.yaml": 'default: {steps: [{call: look, arguments: {for: price}, result: 79}, {say: "hi there"}]}\n',
    "slow.script.yaml": 'default: {steps: [{say: "so far "}, {wait: 600}, {say: "never"}]}\n',
    "code.py": "def answer(message):\n    print('counting')\n    return f'{len(message.split())} words'\n",
}


@dataclass
class Contract:
    """A run whose attempts a test gives to a place itself: of `helper`, `code` and `slow`, in this order."""

    run: ActiveRun

    @property
    def place(self) -> AttemptPlace:
        return self.run.runner.place

    def live(self, ref: int) -> list[str]:
        """What viewers see of a running attempt."""
        assert self.run.writer is not None
        self.run.writer.flush()
        reader = RunReader(self.run.writer.folder)
        try:
            return [row.text for row in reader.live(0) if row.attempt_ref == ref]
        finally:
            reader.close()


@contextmanager
def contract(folder: Path) -> Iterator[Contract]:
    """A project in a folder and a run of it that nobody executes."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    run = prepare(RunRequest(paths=[str(folder)], trust=True))
    try:
        yield Contract(run)
    finally:
        assert run.writer is not None
        run.writer.close()


async def executes_to_the_end(given: Contract) -> None:
    """An attempt comes back whole, judged, and another one beside it, in which people's code has run."""
    greets, counts, _ = given.run.tickets
    made, other = await asyncio.gather(
        given.place.attempt(greets, None, {}), given.place.attempt(counts, None, {})
    )
    assert (made.attempt.outcome, made.attempt.response_text) == ("passed", "hi there")
    assert [entry.kind for entry in made.attempt.transcript] == [
        "user",
        "tool_call",
        "tool_result",
        "assistant",
    ]
    assert made.attempt.duration_ms is not None and made.attempt.started_at > 0
    assert (other.attempt.outcome, other.attempt.stdout) == ("passed", "counting\n")


async def cancels_and_keeps_what_there_was(given: Contract) -> None:
    """What a running attempt says is seen meanwhile; cancelled, it ends soon and leaves what there was."""
    waits = given.run.tickets[2]
    left: dict[int, Attempt] = {}
    task = asyncio.ensure_future(given.place.attempt(waits, None, left))
    await until(lambda: any("so far" in text for text in given.live(waits.attempt_ref)))
    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    assert task.cancelled()
    kept = left[waits.attempt_ref]
    assert kept.outcome == "cancelled"
    assert [entry.text for entry in kept.transcript if entry.kind == "assistant"] == ["so far "]


async def ends_in_time(given: Contract) -> None:
    """An attempt that must have ended by a time has."""
    ends = asyncio.get_running_loop().time() + 1
    made = await asyncio.wait_for(given.place.attempt(given.run.tickets[2], ends, {}), 30)
    assert made.attempt.outcome == "error"
    assert "timed out" in made.attempt.message
