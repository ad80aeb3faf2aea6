"""How long an attempt, each of its turns and each of its assertions may take. Time that an agent's `rate`
holds a request, or that it waits for a worker which others hold, does not count, save against limits that
cover more than one attempt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from typing import TypeVar

from tui_eval.agents.loose_json import one_line
from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.engine.attempt.collector import Collector
from tui_eval.engine.attempt.finished import AttemptFailed
from tui_eval.engine.plan import Job
from tui_eval.formats import format_of
from tui_eval.guard import fair_share

T = TypeVar("T")

AT_LEAST = 10.0
"""Seconds that an assertion has, however late the answer came: as many as JavaScript."""
LEAST = 1.0
"""The same once others of the attempt did not end: each of those halves it."""


class TimeLimits:
    """Those of one attempt of a job. `deadline` is the loop's time at which it must have ended together
    with others; `endless` is an attempt that waits for a person between its turns: its assertions have as long as an
    attempt of the run has in all."""

    def __init__(self, job: Job, deadline: float | None, endless: bool, collector: Collector) -> None:
        self._job = job
        self._deadline = deadline
        self._endless = endless
        self._collector = collector
        self._running: list[asyncio.Timeout] = []
        self._whole: asyncio.Timeout | None = None
        self._own = 0.0
        """When the job's own limit of the attempt is over, were there no `deadline`."""
        self._told: float | None = None
        self._took = 0.0
        self._stops = 0
        self._stopped_at = 0.0
        self._ends: dict[asyncio.Timeout, float] = {}
        self._not_ended = 0
        self._judges = False
        self._cover_judging = job.compat == "reference" and format_of(job.format).limits_cover_judging
        self._turns_left: dict[int, float] = {}
        """What is left of each turn's limit for its tests, where limits cover these."""
        self.waited_ms = 0.0
        """Time that it waited for workers that others held."""
        self.looked_up = ""

    async def attempt(self, whole: Callable[[], Awaitable[T]]) -> T:
        """What the whole attempt comes to, within its limit.

        Raises:
            AttemptFailed: it took too long, or there is no time left to begin.
        """
        job, now = self._job, asyncio.get_running_loop().time()
        self._own = now + job.timeout
        limit = self._own if self._deadline is None else min(self._own, self._deadline)
        if limit <= now and not self._endless:
            raise self._failure()  # nothing is begun that could not end
        self._whole = scope = asyncio.timeout_at(None if self._endless else limit)
        mine = fair_share.clock.set(self)
        self._begin(scope)
        try:
            async with scope:
                return await whole()
        except TimeoutError:
            failure = self._failure()
            self._collector.failed(str(failure))
            raise self._cut_off(failure) from None
        finally:
            self._end(scope)
            fair_share.clock.reset(mine)

    def turn(self, number: int, limit: float | None) -> AbstractAsyncContextManager[None]:
        """A turn runs inside, `limit` seconds at most (None: as long as the attempt).

        Raises:
            AttemptFailed: it took too long.
        """
        return nullcontext() if limit is None else self._turn(number, limit)

    @asynccontextmanager
    async def _turn(self, number: int, limit: float) -> AsyncIterator[None]:
        scope = asyncio.timeout(limit)
        self._begin(scope)
        try:
            async with scope:
                yield
        except TimeoutError:
            words = f"turn {number} {self._over} after {limit:g} s"
            failure = self._late(words, f"turn {number}", limit)
            self._collector.failed(str(failure))
            raise self._cut_off(failure) from None
        finally:
            if self._cover_judging and not self._endless and (when := scope.when()) is not None:
                self._turns_left[number] = when - asyncio.get_running_loop().time()
            self._end(scope)

    @asynccontextmanager
    async def judging(self, what: str, turn: int | None = None) -> AsyncIterator[None]:
        """An assertion (of that turn) is judged inside, in what is left of the attempt's time, and a few seconds at
        least: the answer is there, and what others said of it stays. Where limits cover judging, it has what is left of
        the case's and of the turn's.

        Raises:
            CannotJudge: it took too long.
        """
        whole = self._whole
        inside = self._judges if self._endless else whole is None or whole.when() is None
        if whole is None or inside:
            yield
            return
        loop = asyncio.get_running_loop()
        began, waited, self.looked_up = loop.time(), self.waited_ms, ""
        until, limit = self._judged_until(began, turn)
        scope = asyncio.timeout_at(until)
        _move(whole, None)
        self._judges = True
        self._begin(scope)
        try:
            async with scope:
                yield
        except TimeoutError:
            if not scope.expired():
                raise
            self._not_ended += 1
            seconds = max(loop.time() - began - (self.waited_ms - waited) / 1000, 0.0)
            said = f"did not end within {round(seconds, 1):g} s{self._unresolved}"
            raise CannotJudge(f"{what}: {said} ({limit})", "not-in-time", f"{what} {said}") from None
        finally:
            if turn in self._turns_left:
                self._turns_left[turn] -= loop.time() - began - (self.waited_ms - waited) / 1000
            _move(whole, None if self._endless else self._until(loop.time()))
            self._judges = False
            self._end(scope)

    def _judged_until(self, now: float, turn: int | None) -> tuple[float, str]:
        """When the judging has to end that begins now, and the limit that says so."""
        until, limit = self._until(now), f"the attempt's time limit is {self._job.timeout:g} s"
        if not self._cover_judging or self._endless:
            return until, limit
        if self._deadline is not None and self._deadline < until:
            until, limit = (
                self._deadline,
                f"the case's time limit of {self._job.deadline_all or 0.0:g} s is over",
            )
        if turn in self._turns_left and now + self._turns_left[turn] < until:
            until, limit = now + self._turns_left[turn], f"the time limit of turn {turn} is over"
        return until, limit

    def _until(self, now: float) -> float:
        """When what judges the answer has to end that begins now."""
        if self._endless:
            return now + max(LEAST, max(AT_LEAST, self._job.timeout) / 2**self._not_ended)
        end = self._own if self._deadline is None else min(self._own, self._deadline)
        return max(end, now + max(LEAST, AT_LEAST / 2**self._not_ended))

    def hold(self, seconds: float) -> None:
        """A request waits that long for the agent's rate: what runs may take longer; only a suite's limit goes on."""
        if not self._stops:
            self._own += seconds
        if self._deadline is not None and self._job.deadline_suite is None:
            self._deadline += seconds
        for scope in self._running:
            if (when := scope.when()) is not None:
                scope.reschedule(self._within(scope, when + seconds))
        self.tell()

    @property
    def longest(self) -> float:
        """Seconds that the attempt has at most."""
        job = self._job
        return min(
            limit for limit in (job.timeout, job.deadline_all, job.deadline_suite) if limit is not None
        )

    def took(self, seconds: float) -> None:
        """Answers that are not asked for again took so long in all when they were given: what is asked after them has
        the rest."""
        more, self._took = seconds - self._took, seconds
        self._own -= more
        if self._deadline is not None:
            self._deadline -= more
        if self._whole is not None and (when := self._whole.when()) is not None:
            _move(self._whole, when - more)
        self.tell()

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """What an agent needs before it can be asked is done inside: only a suite's limit goes on meanwhile."""
        deadline, before = self._deadline, time.monotonic()
        moves = deadline is not None and self._job.deadline_suite is None
        if moves:
            self._deadline = None
        self.stop()
        try:
            yield
        finally:
            if deadline is not None and moves:
                self._deadline = deadline + time.monotonic() - before
            self.go_on()

    def stop(self) -> None:
        """It waits for a worker that others hold (`fair_share.Clock`)."""
        self._stops += 1
        if self._stops > 1:
            return
        self._stopped_at = time.monotonic()  # a loop may tell whole milliseconds only
        self._ends = {scope: when for scope in self._running if (when := scope.when()) is not None}
        for scope in self._ends:
            _move(scope, self._deadline if scope is self._whole else None)

    def go_on(self) -> None:
        """It is its turn."""
        self._stops -= 1
        if self._stops:
            return
        seconds = time.monotonic() - self._stopped_at
        self.waited_ms += seconds * 1000
        self._collector.waited(seconds)
        self._own += seconds
        ends, self._ends = self._ends, {}
        for scope, when in ends.items():
            _move(scope, self._within(scope, when + seconds))
        self.tell()

    def _within(self, scope: asyncio.Timeout, end: float) -> float:
        """The deadline cuts the attempt short, which ends its turn too: a turn's limit stays its own."""
        return end if self._deadline is None or scope is not self._whole else min(end, self._deadline)

    def left(self) -> float | None:
        """Seconds until the nearest limit; None: there is none."""
        ends = [when for scope in self._running if (when := scope.when()) is not None]
        return min(ends) - asyncio.get_running_loop().time() if ends else None

    def _begin(self, scope: asyncio.Timeout) -> None:
        self._running.append(scope)
        self.tell()

    def _end(self, scope: asyncio.Timeout) -> None:
        self._running.remove(scope)
        self.tell()

    def tell(self) -> None:
        """Let viewers know which limit comes first, and when; at the attempt's end there is none to tell."""
        if not self._running:
            return
        ends = [when for scope in self._running if (when := scope.when()) is not None]
        nearest = min(ends) if ends else None
        if nearest != self._told:
            self._told = nearest
            left = None if nearest is None else nearest - asyncio.get_running_loop().time()
            self._collector.limited(left)

    def _cut_off(self, failure: AttemptFailed) -> AttemptFailed:
        """The same, with the end of what had come of the answer by then."""
        said = self._collector.left_off().strip()
        failure.evidence.actual = said[-seen.LONGEST :] or None
        return failure

    @property
    def _over(self) -> str:
        """What its time being over did: lists say so of what had come (`tui_eval.causes`), and the case no other."""
        return "cut off" if self._collector.left_off().strip() else "timed out"

    def _failure(self) -> AttemptFailed:
        """Of the limit that struck. Which one that was is no matter of the clock's last digits: both are moved on
        by what does not count, each on its own."""
        job = self._job
        if self._deadline is None or self._own < self._deadline:
            return self._late(f"{self._over} after {job.timeout:g} s", "", job.timeout)
        if (whole := job.deadline_suite) is not None:
            words = f"{self._over}: the suite's {whole:g} s (maxEvalTimeMs) are over"
            return self._late(words, "the suite", whole)
        whole = job.deadline_all or 0.0
        if job.attempts == 1:
            return self._late(f"{self._over}: the case's {whole:g} s are over", "the case", whole)
        words = f"{self._over}: the case's {whole:g} s for all its attempts are over"
        return self._late(words, "all attempts", whole)

    @property
    def _unresolved(self) -> str:
        return f": the host name {one_line(self.looked_up, 80)} was not resolved" if self.looked_up else ""

    def _late(self, words: str, place: str, limit: float) -> AttemptFailed:
        """With what took the time, where that is known: why it was asked again (the agent may be there, and refuse), or
        a host name that nobody resolves."""
        why = self._collector.asked_again
        if self._collector.left_off().strip() or not (why or self.looked_up):
            return AttemptFailed(words, "time-limit", place=place, limit=limit)
        if not why:
            failure = AttemptFailed(f"{words}{self._unresolved}", "late-lookup", place=place, limit=limit)
            failure.evidence.text = seen.cut(self.looked_up)
            return failure
        failure = AttemptFailed(
            f"{words} while it was asked again: {why}", "late-retry", place=place, limit=limit
        )
        failure.evidence.text = seen.cut(why)
        return failure


def _move(scope: asyncio.Timeout, when: float | None) -> None:
    with suppress(RuntimeError):  # it has ended, or is ending what runs in it
        scope.reschedule(when)
