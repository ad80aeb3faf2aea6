"""The limit that struck is the one that is told, and whose it was, whatever did not count before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tui_eval.engine.attempt.collector import Collector
from tui_eval.engine.attempt.finished import AttemptFailed
from tui_eval.engine.attempt.time_limits import TimeLimits
from tui_eval.engine.plan import Job
from tui_eval.engine.service.process import run_engine
from tui_eval.guard.secrets import Masker
from tui_eval.model import Case


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
    limits.hold(30.0)


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
