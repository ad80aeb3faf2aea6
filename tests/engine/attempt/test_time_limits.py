"""The limit that struck is the one that is told, and whose it was, whatever did not count before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import WriteProject
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.engine.attempt import time_limits
from tui_eval.engine.attempt.collector import Collector
from tui_eval.engine.attempt.finished import AttemptFailed
from tui_eval.engine.attempt.stepping import Decision
from tui_eval.engine.attempt.time_limits import TimeLimits
from tui_eval.engine.plan import Job
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.service.process import run_engine
from tui_eval.guard.masker import Masker
from tui_eval.model import Attempt, Case
from tui_eval.store.reader import RunReader


def a_job(timeout: float = 120.0, **values: Any) -> Job:
    return Job(
        held=Case("s::c", "c", "s", "neuro-san"), agent="a", model=None, spec=None, required=1,
        attempts=values.pop("attempts", 1), compat="documented", base=Path(), timeout=timeout,
        comparison={}, database=None, judge=None, **values,
    )  # fmt: skip


def prepared(limits: TimeLimits) -> None:
    with limits.uncounted():
        pass


def waited(limits: TimeLimits) -> None:
    limits.stop()
    limits.go_on()


def held(limits: TimeLimits) -> None:
    limits.hold(0.01)


async def failure(
    job: Job, until: float | None, before: Callable[[TimeLimits], None], turn: float | None
) -> tuple[str, str, Any]:
    """Of an attempt that never answers: its message, and whose limit of how many seconds the evidence says."""
    deadline = None if until is None else asyncio.get_running_loop().time() + until
    limits = TimeLimits(job, deadline, False, Collector(None, 1, Masker()))

    async def whole() -> None:
        async with limits.turn(1, turn):
            for _ in range(40):
                before(limits)
            await asyncio.Event().wait()

    with pytest.raises(AttemptFailed) as told:
        async with asyncio.timeout(20):
            await limits.attempt(whole)
    return str(told.value), told.value.evidence.path or "", told.value.evidence.expected


@pytest.mark.parametrize("before", [prepared, waited, held])
@pytest.mark.parametrize("turn", [None, 60.0])
@pytest.mark.parametrize(
    ("values", "words", "whose", "limit"),
    [
        ({"deadline_all": 0.3}, "timed out: the case's 0.3 s are over", "the case", 0.3),
        (
            {"deadline_all": 0.3, "attempts": 3},
            "timed out: the case's 0.3 s for all its attempts are over", "all attempts", 0.3,
        ),
        (
            {"deadline_suite": 0.3},
            "timed out: the suite's 0.3 s (maxEvalTimeMs) are over", "the suite", 0.3,
        ),
    ],
    ids=["case", "all attempts", "suite"],
)  # fmt: skip
async def test_a_deadline_that_struck_is_told_and_whose_it_was(
    values: dict[str, Any], words: str, whose: str, limit: float, turn: float | None, before
) -> None:
    assert await failure(a_job(**values), 0.3, before, turn) == (words, whose, limit)


@pytest.mark.parametrize("before", [prepared, waited])
async def test_a_limit_of_the_attempts_own_or_of_a_turn_that_struck_is_told_as_such(before) -> None:
    job = a_job(0.3, deadline_all=60.0)
    assert await failure(job, 60.0, before, None) == ("timed out after 0.3 s", "", 0.3)
    job = a_job(deadline_all=60.0)
    assert await failure(job, 60.0, before, 0.2) == ("turn 1 timed out after 0.2 s", "turn 1", 0.2)


def test_what_does_not_count_is_measured_finer_than_a_loop_tells_time() -> None:
    """uvloop tells whole milliseconds: attempts of less than one came out as having taken less than nothing."""

    async def whole() -> list[float]:
        waited: list[float] = []
        for _ in range(5):
            limits = TimeLimits(a_job(), None, False, Collector(None, 1, Masker()))
            with limits.uncounted():
                await asyncio.sleep(0.0015)
            waited.append(limits.waited_ms)
        return waited

    assert any(abs(ms - round(ms)) > 1e-3 for ms in run_engine(whole()))


SILENT_JUDGE = "rate: 2000\ndefault: {steps: [{say: a}, {wait: 600}]}\n"
FAILS = "{type: contains, value: NOTTHERE}"


@pytest.fixture
async def silent() -> AsyncIterator[str]:
    """The URL of a server that takes requests and never answers."""

    async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the other side goes
        writer.close()

    async with await asyncio.start_server(taken, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def judged(project: WriteProject, test: str, *, step: bool = False) -> Attempt:
    root = project(
        config="judge: {type: scripted, script: judge.script.yaml}\n",
        **{
            "judge.script.yaml": SILENT_JUDGE,
            "promptfooconfig.yaml": f"prompts: ['{{{{q}}}}']\nproviders: [echo]\ntests: [{test}]\n",
        },
    )
    request = RunRequest(paths=[str(root / "promptfooconfig.yaml")], timeout=1.0, trust=True, step=step)
    active = await asyncio.to_thread(prepare, request)
    async with asyncio.timeout(30):
        running = asyncio.create_task(active.execute())
        if step:
            stepper = active.runner.stepper
            assert stepper is not None
            while not stepper.decide(1, Decision()):  # noqa: ASYNC110  # until its turn waits
                await asyncio.sleep(0)
        await running
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    attempt = reader.attempt(reader.attempts()[0].id)
    assert attempt is not None
    return attempt


@pytest.mark.real
@pytest.mark.usually(2)
@pytest.mark.parametrize("step", [False, True], ids=["run", "step"])
@pytest.mark.parametrize("kind", ["python", "llm-rubric", "webhook"])
async def test_an_assertion_that_hangs_is_its_own_error_and_hides_no_other(
    project: WriteProject, silent: str, kind: str, step: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was "no answer", with the answer there, and what the others had said of it was lost; stepped through, it hung
    for good."""
    monkeypatch.setattr(time_limits, "AT_LEAST", 0.5)
    value = {"python": "'all(True for _ in iter(int, 1))'", "llm-rubric": "kind", "webhook": silent}[kind]
    asserted = f"[{FAILS}, {{type: {kind}, value: {value}}}, {{type: equals, value: hi}}]"
    attempt = await judged(project, f"{{vars: {{q: hi}}, assert: {asserted}}}", step=step)
    assert [(one.type, one.passed) for one in attempt.verdicts] == [
        ("contains", False), (kind, None), ("equals", True),
    ]  # fmt: skip
    assert attempt.outcome == "failed" and attempt.error is None and attempt.response_text == "hi"
    late = attempt.verdicts[1]
    assert late.reason.startswith(f"{kind}: did not end within ")
    assert late.reason.endswith("(the attempt's time limit is 1 s)")
    assert [one.code for one in late.evidence or []] == ["not-in-time"]


@pytest.mark.real
@pytest.mark.parametrize(
    ("test", "what"),
    [
        ("options: {transform: 'file://slow.py'}, assert: [{type: equals, value: hi}]", "transform"),
        (
            "assertScoringFunction: 'file://slow.py', assert: [{type: equals, value: hi}]",
            "assertScoringFunction",
        ),
    ],
)
async def test_code_beside_the_assertions_that_hangs_is_named_too(
    project: WriteProject, test: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "AT_LEAST", 0.5)
    slow = "import time\ndef get_transform(*_):\n    time.sleep(600)\nfunc = get_transform\n"
    project(**{"slow.py": slow})
    attempt = await judged(project, f"{{vars: {{q: hi}}, {test}}}")
    assert attempt.outcome == "error" and attempt.message.startswith(f"{what}: did not end within ")
    assert attempt.response_text == "hi" and len(attempt.verdicts) == 1


@pytest.mark.real
async def test_many_assertions_that_hang_do_not_take_their_seconds_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time_limits, "AT_LEAST", 0.4)
    monkeypatch.setattr(time_limits, "LEAST", 0.15)
    limits = TimeLimits(a_job(0.05), None, False, Collector(None, 1, Masker()))
    had: list[float] = []

    async def whole() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(4):
            now = loop.time()
            with pytest.raises(CannotJudge):
                async with limits.judging("python"):
                    left = limits.left()
                    assert left is not None
                    had.append(round(left + loop.time() - now, 2))
                    await asyncio.Event().wait()

    await limits.attempt(whole)
    assert had == [0.4, 0.2, 0.15, 0.15]


@pytest.mark.parametrize(
    ("case", "turn", "compat", "outcome", "words"),
    [
        ("timeout_in_seconds: 1.5", "", "reference", "error", "(the case's time limit of 1.5 s is over)"),
        ("", "timeout_in_seconds: 1.5", "reference", "error", "(the time limit of turn 1 is over)"),
        ("timeout_in_seconds: 1.5", "timeout_in_seconds: 1.5", "documented", "passed", ""),
        ("timeout_in_seconds: 30", "timeout_in_seconds: 30", "reference", "passed", ""),
    ],
)
async def test_limits_of_neuro_san_go_on_while_it_is_judged_as_with_its_driver(
    project: WriteProject, case: str, turn: str, compat: Any, outcome: str, words: str
) -> None:
    """A `gist` that took longer than the case or the interaction had was green."""
    asked = f"{{text: hi, {turn}, response {{text {{gist: [polite, polite]}}}}}}".replace(", ,", ",")
    root = project(
        config="""
            agents: {neuro-san: {type: echo}}
            judge: {type: scripted, script: judge.script.yaml}
        """,
        **{
            "judge.script.yaml": "default: {steps: [{wait: 1}, {say: pass}]}\n",
            "a.hocon": f"agent: a\nconnections: http\n{case}\ninteractions: [{asked}]\n",
        },
    )
    active = await asyncio.to_thread(
        prepare, RunRequest(paths=[str(root / "a.hocon")], compat=compat, trust=True)
    )
    async with asyncio.timeout(30):
        await active.execute()
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    attempt = reader.attempt(reader.attempts()[0].id)
    assert attempt is not None and attempt.outcome == outcome, attempt
    assert [one.passed for one in attempt.verdicts] == [True, True if outcome == "passed" else None]
    assert attempt.verdicts[1].reason.endswith(words)


async def test_what_is_asked_after_kept_answers_has_the_rest_of_the_time() -> None:
    def took(limits: TimeLimits) -> None:
        limits.took(59.9)  # in all, however often it is said

    said, _, limit = await failure(a_job(60.0), None, took, None)
    assert (said, limit) == ("timed out after 60 s", 60.0)
    said, _, limit = await failure(a_job(deadline_all=60.0), 60.0, took, None)
    assert (said, limit) == ("timed out: the case's 60 s are over", 60.0)
