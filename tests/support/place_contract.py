"""What every place of attempts has to do, whatever it is: `ATTEMPTS` of one that is open, `RUNS` of whole
runs there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers.gated import GatedServer
from tests.support.waiting import until
from tui_eval.agents.base import Pace
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.after.resuming import resume
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


LONG = 240
"""Seconds for what is a matter of seconds: a busy machine."""


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
    await until(lambda: any("so far" in text for text in given.live(waits.attempt_ref)), LONG)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait_for(task, LONG)
    assert task.cancelled()
    kept = left[waits.attempt_ref]
    assert kept.outcome == "cancelled"
    assert [entry.text for entry in kept.transcript if entry.kind == "assistant"] == ["so far "]


async def ends_in_time(given: Contract) -> None:
    """An attempt that must have ended by a time has."""
    ends = asyncio.get_running_loop().time() + 1
    made = await asyncio.wait_for(given.place.attempt(given.run.tickets[2], ends, {}), LONG)
    assert made.attempt.outcome == "error"
    assert "timed out" in made.attempt.message or "cut off" in made.attempt.message, made.attempt.message


ATTEMPTS = (executes_to_the_end, cancels_and_keeps_what_there_was, ends_in_time)


# -- Runs

HELPER = "agents:\n  helper: {{type: openai, base_url: '{0}', model: m{1}}}\n"
PAID = "default: {say: ok, cost: 0.01}\n"


@dataclass
class There:
    """A folder for a project whose runs go on at `on`, where there are so many processors."""

    folder: Path
    on: str = "here"
    processors: int = 0

    def asks(self, server: GatedServer, options: str = "", run: str = "") -> None:
        """The agent is this server."""
        (self.folder / "tui_eval.yaml").write_text(HELPER.format(server.base, options) + run)

    def cases(self, *messages: str | list[str], without: str = "nobody says this") -> None:
        """A case for each message, which stands in its answer, or list of them."""
        lines = "".join(
            f"  - {{name: case {n}, {'input' if isinstance(one, str) else 'messages'}: {one}, "
            f"expected: {{should_not_contain: [{without}]}}}}\n"
            for n, one in enumerate(messages)
        )
        (self.folder / "suite.yaml").write_text(f"agent: helper\ntest_cases:\n{lines}")

    async def run(self, **values: Any) -> ActiveRun:
        """A run that is prepared; its attempts begin when all workers are there."""
        request = RunRequest(paths=[str(self.folder)], trust=True, on=self.on, **values)
        run = await asyncio.to_thread(prepare, request)
        place = run.runner.place
        ready = place.open
        workers = min(self.processors, run.runner.limits.concurrency)

        async def all_ready(changed: Callable[[], None]) -> None:
            await ready(changed)
            await until(lambda: not workers or f"· {workers} worker" in place.words, LONG)

        place.open = all_ready  # type: ignore[method-assign]
        return run


def kept(run: ActiveRun) -> list[Attempt | None]:
    """The attempts of a run that has ended, in their order; None: it has no result."""
    assert run.writer is not None
    reader = RunReader(run.writer.folder)
    try:
        rows = reader.attempts()
        return [reader.attempt(row.id) if row.state == "done" else None for row in rows]
    finally:
        reader.close()


def outcomes(run: ActiveRun) -> list[str | None]:
    """Their outcomes."""
    return [attempt.outcome if attempt is not None else None for attempt in kept(run)]


class WatchedPace(Pace):
    """Keeps the moments that it hands out (`time.monotonic`)."""

    def __init__(self, per_minute: float) -> None:
        super().__init__(per_minute)
        self.moments: list[float] = []

    def reserve(self, attempt: int) -> None:
        """A moment that is now, for the attempt's first claim."""
        self.moments.append(time.monotonic())
        super().reserve(attempt)

    def claim(self, attempt: int) -> float:
        """A moment, unless one was reserved."""
        now, reserved = time.monotonic(), attempt in self._reserved
        wait = super().claim(attempt)
        if not reserved:
            self.moments.append(now + wait)
        return wait


async def keeps_the_rate(there: There) -> None:
    """An agent's rate is the run's, for every request of every worker: none leaves before its moment."""
    with GatedServer(allowed=100, refusals=0) as server:
        there.asks(server, ", rate: {requests: 600}")
        there.cases(*(["one", "two", "three"] for _ in range(4)))
        run = await there.run(concurrency=4)
        pace = run.environment.paces["helper"] = WatchedPace(600)
        assert await run.execute() == "finished"
        moments, arrivals = sorted(pace.moments), sorted(server.arrivals)
    assert len(moments) == len(arrivals) == 12
    assert all(arrived >= moment for moment, arrived in zip(moments, arrivals, strict=True))
    assert moments[-1] - moments[0] > 11 * 0.1 - 0.05
    assert outcomes(run) == ["passed"] * 4


async def asks_again_when_told_to(there: There) -> None:
    """What may be asked again is, as often as the configuration says."""
    with GatedServer(allowed=100, refusals=1) as server:
        there.asks(server)
        there.cases("one")
        run = await there.run(concurrency=1)
        assert await run.execute() == "finished"
        assert (outcomes(run), server.asks["one"]) == (["passed"], 2)
        there.asks(server, run="run: {retries: 0}\n")
        there.cases("two")
        run = await there.run(concurrency=1)
        assert await run.execute() == "finished"
        assert (outcomes(run), server.asks["two"]) == (["error"], 1)


async def ends_at_the_time_limit(there: There) -> None:
    """What waits longer than it may is an error."""
    with GatedServer() as server:
        there.asks(server)
        there.cases("not answered")
        run = await there.run(concurrency=1, timeout=2)
        assert await run.execute() == "finished"
    (late,) = kept(run)
    assert late is not None and (late.outcome, late.error) == ("error", "timed out after 2 s")


async def ends_at_the_first_failure(there: There) -> None:
    """`--fail-fast`: what has not begun is not."""
    with GatedServer(allowed=100) as server:
        there.asks(server)
        there.cases("good", "bad", "never asked", without="bad")
        run = await there.run(concurrency=1, fail_fast=True)
        await run.execute()
        assert "never asked" not in server.asks
    assert outcomes(run) == ["passed", "failed", None]
    assert run.runner.stopped_because == "--fail-fast: suite.yaml::case 1 failed"


async def ends_at_the_cost_limit(there: There) -> None:
    """The run's cost counts, wherever it arises."""
    (there.folder / "tui_eval.yaml").write_text(
        "agents: {helper: {type: scripted, script: agent.script.yaml}}\n"
    )
    (there.folder / "agent.script.yaml").write_text(PAID)
    there.cases("a", "b", "c", "d")
    run = await there.run(concurrency=1, max_cost=0.02)
    await run.execute()
    assert outcomes(run) == ["passed", "passed", None, None]
    assert run.runner.stopped_because == "the cost limit of 0.02 USD is reached (0.0200)"


async def counts_what_judges_take(there: There) -> None:
    """Towards the cost limit, wherever they are asked, and with the attempt."""
    (there.folder / "tui_eval.yaml").write_text("judge: {type: scripted, script: judge.script.yaml}\n")
    (there.folder / "judge.script.yaml").write_text(
        'default: {say: \'{"pass": true, "score": 1}\', cost: 0.01}\n'
    )
    (there.folder / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [echo]\ndefaultTest: {assert: [{type: llm-rubric, value: fine}]}\n"
        "tests: [{vars: {q: a}}, {vars: {q: b}}, {vars: {q: c}}]\n"
    )
    run = await there.run(concurrency=1, max_cost=0.02)
    await run.execute()
    assert outcomes(run) == ["passed", "passed", None]
    took = [one.judging for one in kept(run) if one and one.judging]
    assert [(one.calls, one.cost) for one in took] == [(1, 0.01)] * 2


async def begins_nothing_while_it_pauses(there: There) -> None:
    """What has been asked ends, the rest comes when the run goes on."""
    with GatedServer() as server:
        there.asks(server)
        there.cases("a", "b", "c", "d")
        run = await there.run(concurrency=2)
        running = asyncio.ensure_future(run.execute())
        await until(lambda: running.done() or server.asks.total() == 2, LONG)
        await run.runner.pause(True)
        server.allowed = 100
        await until(lambda: running.done() or outcomes(run).count("passed") == 2, LONG)
        assert not running.done()
        assert server.asks == {"a": 1, "b": 1}
        await run.runner.pause(False)
        assert await running == "finished"
        assert server.asks == dict.fromkeys("abcd", 1)
    assert outcomes(run) == ["passed"] * 4


async def cancels_a_case_and_the_rest(there: There) -> None:
    """One attempt alone, in whose place another one begins; then all that runs and all that waits."""
    with GatedServer() as server:
        there.asks(server)
        there.cases("a", "b", "c", "d")
        run = await there.run(concurrency=2)
        first = run.tickets[0].attempt_ref
        running = asyncio.ensure_future(run.execute())
        await until(lambda: running.done() or server.asks.total() == 2, LONG)
        assert await run.runner.cancel({first}) == 1
        await until(lambda: running.done() or server.asks.total() == 3, LONG)
        assert not running.done()
        assert await run.runner.cancel() == 3
        assert await running == "cancelled"
        assert server.asks == dict.fromkeys("abc", 1)
    assert outcomes(run) == [*["cancelled"] * 3, None]  # the last one had not begun
    begun = kept(run)[0]
    assert begun is not None and [entry.text for entry in begun.transcript][:1] == ["a"]


async def hands_on_from_row_to_row(there: There) -> None:
    """What a row keeps under a name is there for the rows after it, wherever either runs."""
    (there.folder / "promptfooconfig.yaml").write_text(
        """
prompts: ["{{said}}"]
providers: [echo]
tests:
  - {vars: {said: one}, options: {storeOutputAs: first}}
  - {vars: {said: "{{first}} two"}, options: {storeOutputAs: second}}
  - {vars: {said: "{{second}} three"}, assert: [{type: equals, value: one two three}]}
"""
    )
    run = await there.run(concurrency=4)
    assert await run.execute() == "finished"
    assert [attempt.response_text for attempt in kept(run) if attempt is not None] == [
        "one", "one two", "one two three",
    ]  # fmt: skip
    assert outcomes(run)[2] == "passed"


async def goes_on_after_a_run_here(there: There) -> None:
    """A run that was interrupted on the engine's own loop goes on there."""
    await _goes_on(There(there.folder), there.on)


async def goes_on_here(there: There) -> None:
    """A run that was interrupted there goes on on the engine's own loop."""
    await _goes_on(there, "here")


async def _goes_on(there: There, on: str) -> None:
    """Nothing is asked twice but what had not ended."""
    with GatedServer(allowed=1) as server:
        there.asks(server)
        there.cases("a", "b", "c")
        run = await there.run(concurrency=1)
        running = asyncio.ensure_future(run.execute())
        await until(lambda: running.done() or server.asks.total() == 2, LONG)
        await run.runner.interrupt()
        assert await running == "interrupted"
        assert outcomes(run) == ["passed", None, None]
        assert run.writer is not None
        server.allowed = 100
        overrides = RunRequest(on=on, trust=True)
        again = await asyncio.to_thread(resume, run.writer.folder, overrides=overrides)
        assert await again.execute() == "finished"
        assert outcomes(run) == ["passed"] * 3
        assert server.asks == {"a": 1, "b": 2, "c": 1}


RUNS = (
    keeps_the_rate,
    asks_again_when_told_to,
    ends_at_the_time_limit,
    ends_at_the_first_failure,
    ends_at_the_cost_limit,
    counts_what_judges_take,
    begins_nothing_while_it_pauses,
    cancels_a_case_and_the_rest,
    hands_on_from_row_to_row,
    goes_on_after_a_run_here,
    goes_on_here,
)
