"""What an agent can take: tokens and requests a minute."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.servers import OpenAIServer, Planned
from tests.servers.base import Seen
from tests.support.waiting import Clock
from tui_eval.agents.base import Pace
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.after.rescoring import rescore
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.schedule import Schedule, _Lane, within_open_files
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader

SUITE = "agent: helper\ntest_cases: [{name: one, input: hi}, {name: two, input: hi}]\n"


@pytest.mark.parametrize(("tokens", "waits"), [(60, True), (6000, False)])
async def test_tokens_a_minute(project, tokens: int, waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    config = f"agents:\n  helper: {{type: scripted, script: agent.script.yaml, rate: {{tokens: {tokens}}}}}\n"
    script = "speed: 0\ndefault: {say: ok, usage: {input: 50, output: 11}}\n"
    root: Path = project(suite=SUITE, script=script, config=config)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
    pauses: list[float | None] = []
    look = Schedule._ready

    def ready(schedule: Schedule):
        ticket, pause = look(schedule)
        pauses.append(pause)
        return ticket, pause

    monkeypatch.setattr(Schedule, "_ready", ready)
    began = time.monotonic()
    assert await active.execute() == "finished"
    if waits:
        assert time.monotonic() - began > 0.9, "61 tokens overdraw 60 a minute by a second"
    else:
        assert pauses and not any(pauses)


TURNS = "agent: helper\ntest_cases: [{name: one, messages: [a, b, c]}, {name: two, messages: [d, e]}]\n"


@pytest.mark.real
@pytest.mark.parametrize("kind", ["openai", "scripted"])
async def test_requests_a_minute_are_requests(project, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five turns are five requests, half a second apart whichever attempt they are of; that time is none
    of the agent's."""
    times: list[float] = []
    waited: list[float] = []
    walls: list[float] = []
    claim = Pace.claim

    def claimed(pace: Pace, attempt: int) -> float:
        waited.append(claim(pace, attempt))
        return waited[-1]

    monkeypatch.setattr(Pace, "claim", claimed)

    def answer(seen: Seen) -> Planned:
        times.append(time.monotonic())
        return Planned(text="ok")

    with OpenAIServer(default=answer) as server:
        helper = {
            "openai": f"type: openai, base_url: '{server.base}', model: mock",
            "scripted": "type: scripted, script: agent.script.yaml",
        }[kind]
        config = f"agents:\n  helper: {{{helper}, rate: {{requests: 120}}}}\n"
        root: Path = project(suite=TURNS, script="speed: 0\ndefault: {say: ok}\n", config=config)
        active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)]))
        active.runner.on_done = lambda _job, _number, attempt: walls.append(time.time() - attempt.started_at)
        began = time.monotonic()
        assert await active.execute() == "finished"
        took = time.monotonic() - began
    assert took > 1.9
    if kind == "openai":
        assert len(times) == 5
        assert all(at - began > 0.5 * number - 0.1 for number, at in enumerate(sorted(times)))
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    try:
        bodies = [reader.attempt(row.id) for row in reader.attempts()]
    finally:
        reader.close()
    attempts = [attempt for attempt in bodies if attempt is not None]
    assert [attempt.error for attempt in attempts] == [None, None]
    assert sum(waited) > 1
    assert sum(attempt.duration_ms or 0 for attempt in attempts) <= (sum(walls) - sum(waited) + 0.05) * 1000


async def test_waiting_for_the_rate_is_no_time_of_a_limit(project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three requests a minute apart, with half a minute for the attempt."""
    config = (
        "agents:\n  helper: {type: scripted, script: agent.script.yaml, rate: {requests: 1}, timeout: 30}\n"
    )
    suite = "agent: helper\ntest_cases: [{name: one, messages: [a, b, c]}]\n"
    root: Path = project(suite=suite, script="speed: 0\ndefault: {say: ok}\n", config=config)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)]))
    clock, sleep, passed = Clock(monkeypatch), asyncio.sleep, 0.0

    async def slept(seconds: float, *result: object) -> object:
        nonlocal passed
        if seconds > 5:
            passed += seconds
            clock.forward(seconds)
            seconds = 0
        return await sleep(seconds, *result)

    monkeypatch.setattr(asyncio, "sleep", slept)
    assert await active.execute() == "finished"
    assert passed > 110
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    (attempt,) = [reader.attempt(row.id) for row in reader.attempts()]
    reader.close()
    assert attempt is not None and attempt.error is None
    assert attempt.duration_ms is not None and attempt.duration_ms < 30_000


async def test_only_what_is_asked_takes_moments_of_the_rate(project) -> None:
    """Neither kept answers nor answers that are judged again wait for it, and what they do not take lets no other
    request go sooner."""
    config = (
        "agents:\n  helper: {type: scripted, script: agent.script.yaml, cache: true, rate: {requests: 600}}\n"
    )
    known = (
        "agent: helper\ntest_cases: [" + ", ".join(f"{{name: k{n}, input: k{n}}}" for n in range(40)) + "]\n"
    )
    root: Path = project(suite=known, script="speed: 0\ndefault: {say: ok}\n", config=config)

    async def execute() -> float:
        active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=8))
        began = time.monotonic()
        assert await active.execute() == "finished"
        return time.monotonic() - began

    assert await execute() > 3.8
    assert await execute() < 2, "40 kept answers are no request"
    folder = next(iter((root / ".tui-eval" / "runs").iterdir()))
    again = await asyncio.to_thread(rescore, folder, overrides=RunRequest(paths=[str(root)]))
    began = time.monotonic()
    assert await again.execute() == "finished"
    assert time.monotonic() - began < 2, "nor are 40 that are judged again"

    turns = ", ".join(f"{{name: t{n}, messages: [a{n}, b{n}, c{n}]}}" for n in range(5))
    (root / "turns.yaml").write_text(f"agent: helper\ntest_cases: [{turns}]\n")
    assert await execute() > 1.3, "15 requests, a tenth of a second apart"


HOCON = """{"agent": "travel", "success_ratio": "%s", "timeout_in_seconds": 1,
 "interactions": [{"text": "hi", "response": {"text": {"keywords": ["ok"]}}}]}"""


async def errors_of(
    project, agent: str, ratio: str, concurrency: int, files: Mapping[str, str], pauses: float = 0.0
) -> list[str | None]:
    """Of a case that has a second for all its attempts; after the first one the run pauses for so many."""
    config = f"agents:\n  neuro-san: {{{agent}}}\n"
    script = "speed: 1\ndefault: {steps: [{wait: 0.2}, {say: ok}]}\n"
    root: Path = project(suite="", script=script, config=config, **{"case.hocon": HOCON % ratio, **files})
    (root / "suite.yaml").unlink()
    request = RunRequest(paths=[str(root)], concurrency=concurrency, trust=True)
    active = await asyncio.to_thread(prepare, request)
    told: list[str | None] = []
    tasks: list[asyncio.Task[None]] = []

    async def pause() -> None:
        await active.runner.pause(True)
        await asyncio.sleep(pauses)
        await active.runner.pause(False)

    def done(_job: object, _number: int, attempt: Attempt) -> None:
        told.append(attempt.error)
        if pauses and len(told) == 1:
            tasks.append(asyncio.ensure_future(pause()))

    active.runner.on_done = done
    assert await active.execute() == "finished"
    return told


async def test_a_cases_time_goes_on_only_while_its_attempts_do(project) -> None:
    """neuro-san's limit covers all attempts: those after the first were errors without being asked, where the rate kept
    them waiting, the first one's agent was made ready, or the run paused."""
    scripted = "type: scripted, script: agent.script.yaml"
    assert await errors_of(project, f"{scripted}, rate: {{requests: 100}}", "1/4", 4, {}) == [None] * 4
    assert await errors_of(project, scripted, "1/2", 1, {}, pauses=1.2) == [None] * 2
    loads = {"slow.py": "import time\ntime.sleep(1.5)\ndef answer(message):\n    return 'ok'\n"}
    assert await errors_of(project, "type: python, function: 'slow.py:answer'", "1/2", 1, loads) == [None] * 2


def test_a_case_waits_for_the_rate_only_until_its_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """That attempts of others held every place after it made its limit longer."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    lane = _Lane(1, Pace(60))
    lane.hold(1.0)
    now += 0.5
    lane.hold(0.5)
    now += 30
    lane.hold(1.0)
    assert lane.held == 1.0
    now += 0.25
    lane.let_go()
    assert lane.held == 1.25


async def test_a_cases_time_is_over_for_all_its_attempts(project) -> None:
    """What they take themselves counts, one after the other."""
    slow = {"slow.script.yaml": "speed: 1\ndefault: {steps: [{wait: 0.7}, {say: ok}]}\n"}
    first, *others = await errors_of(project, "type: scripted, script: slow.script.yaml", "1/3", 1, slow)
    assert first is None and all("1 s for all its attempts are over" in str(error) for error in others)


async def test_a_pause_follows_only_what_was_asked(project) -> None:
    """As in promptfoo, where no kept answer is followed by its `delay`; nor is one that is judged again."""
    rows = "".join(f"  - {{vars: {{q: a{n}}}}}\n" for n in range(8))
    suite = f"prompts: ['{{{{q}}}}']\nproviders: [helper]\nevaluateOptions: {{delay: 300}}\ntests:\n{rows}"
    config = "agents:\n  it: {type: scripted, script: agent.script.yaml}\nproviders: {helper: it}\n"
    script = "speed: 0\ndefault: {say: ok}\n"
    root: Path = project(suite="", script=script, config=config, **{"promptfooconfig.yaml": suite})
    (root / "suite.yaml").unlink()

    async def took(active: ActiveRun) -> float:
        began = time.monotonic()
        assert await active.execute() == "finished"
        return time.monotonic() - began

    request = RunRequest(paths=[str(root)], cache=True)
    assert await took(await asyncio.to_thread(prepare, request)) > 2
    assert await took(await asyncio.to_thread(prepare, request)) < 1.5
    folder = next(iter((root / ".tui-eval" / "runs").iterdir()))
    assert await took(await asyncio.to_thread(rescore, folder, overrides=RunRequest(paths=[str(root)]))) < 1.5


def test_a_moment_that_is_given_back_late_lets_no_two_requests_go_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One request a minute: the second of two followed the first at once, and was refused."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    pace = Pace(1)
    pace.reserve(1)
    now += 60
    pace.reserve(2)
    assert pace.claim(2) == 0
    now += 1
    pace.release(1)
    assert pace.seconds() == 59
    now += 59
    pace.reserve(3)
    now += 1
    pace.release(3)
    assert pace.seconds() == 0


@pytest.mark.real
async def test_a_retried_request_is_one_more(project) -> None:
    times: list[float] = []

    def answer(seen: Seen) -> Planned:
        times.append(time.monotonic())
        again = {"retry-after": "0"}
        return Planned(text="ok") if len(times) > 2 else Planned(status=429, headers=again)

    with OpenAIServer(default=answer) as server:
        config = (
            f"agents:\n  helper: {{type: openai, base_url: '{server.base}', model: mock,"
            " rate: {requests: 120}}\n"
        )
        suite = "agent: helper\ntest_cases: [{name: one, input: hi}]\n"
        root: Path = project(suite=suite, config=config)
        active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)]))
        began = time.monotonic()
        assert await active.execute() == "finished"
    assert len(times) == 3
    assert all(at - began > 0.5 * number - 0.1 for number, at in enumerate(times))


@pytest.mark.parametrize(
    ("allowed", "most", "asked", "fitting", "raised"),
    [
        (1024, 4096, 8, 8, 1024),
        (64, 64, 32, 1, 64),
        (80, 80, 32, 8, 80),
        (80, 4096, 32, 32, 128),
        (80, 100, 32, 18, 100),
        (256, resource.RLIM_INFINITY, 500, 500, 1064),
    ],
)
def test_no_more_attempts_run_at_once_than_files_may_be_open_for(
    monkeypatch: pytest.MonkeyPatch, allowed: int, most: int, asked: int, fitting: int, raised: int
) -> None:
    now = [allowed, most]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(now))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: now.__setitem__(0, limits[0]))
    assert within_open_files(asked) == fitting
    assert now[0] == raised
