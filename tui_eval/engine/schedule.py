"""Which attempt runs next: in the order of the suites, within the limits of the run and each agent."""

from __future__ import annotations

import asyncio
import resource
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from tui_eval.agents.base import Pace
from tui_eval.engine.plan import Job
from tui_eval.engine.row_order import test_of


class Ticket(msgspec.Struct, frozen=True, gc=False):
    """One attempt to be made. `order` is its place in the run."""

    order: int
    job: Job
    number: int
    attempt_ref: int


class _Lane(msgspec.Struct):
    """The attempts of one agent and what it can take: `limit` at once, requests at its `pace`, `tokens`
    a minute. `held`: for how many seconds one could have begun but for these two, at present from `held_since` up to
    `held_until`."""

    limit: int
    pace: Pace
    tokens: float | None = None
    waiting: deque[Ticket] = msgspec.field(default_factory=deque)
    running: int = 0
    spent: float = 0.0
    spent_at: float = msgspec.field(default_factory=time.monotonic)
    held: float = 0.0
    held_since: float | None = None
    held_until: float = 0.0

    def hold(self, seconds: float) -> None:
        """For so long from now on an attempt waits for the rate alone; then, maybe, for what others hold."""
        self.let_go()
        self.held_since = now = time.monotonic()
        self.held_until = now + seconds

    def let_go(self) -> None:
        """It waits no longer for that."""
        if self.held_since is not None:
            self.held += min(time.monotonic(), self.held_until) - self.held_since
            self.held_since = None

    def seconds_until_allowed(self) -> float:
        """How long until another attempt may start; 0: now."""
        return max(self.pace.seconds(), self._seconds_of_tokens())

    def spend(self, tokens: int) -> None:
        """An attempt has used so many tokens."""
        self._seconds_of_tokens()
        self.spent += tokens

    def _seconds_of_tokens(self) -> float:
        """What attempts used is only known when they end, so a minute's tokens may be overdrawn by them;
        the next one waits until that is made up for."""
        if self.tokens is None:
            return 0.0
        now = time.monotonic()
        self.spent = max(0.0, self.spent - (now - self.spent_at) * self.tokens / 60)
        self.spent_at = now
        return max(0.0, (self.spent - self.tokens) * 60 / self.tokens)


class _Group(msgspec.Struct):
    """Attempts of which at most `limit` run at once, with `pause` seconds after each that asked its agent."""

    limit: int
    pause: float
    waiting: deque[Ticket] = msgspec.field(default_factory=deque)
    running: int = 0
    not_before: float = 0.0


def _one_by_one(tickets: Iterable[Ticket]) -> list[Ticket]:
    """The first attempts of all, then the second ones; with `compat: reference` test by test, as promptfoo."""
    first: dict[Any, int] = {}

    def turn(ticket: Ticket) -> tuple[int, int, int]:
        if ticket.job.compat != "reference":
            return 0, ticket.number, ticket.order
        return first.setdefault(test_of(ticket.job.case), ticket.order), ticket.number, ticket.order

    return sorted(tickets, key=turn)


_FILES_OF_ALL, _FILES_OF_ONE = 64, 2
"""Files that are open in a run besides those of its attempts, and in one of these."""


def within_open_files(concurrency: int) -> int:
    """So many attempts at once as this process may have files open for; it may have more where it can."""
    needed = _FILES_OF_ALL + _FILES_OF_ONE * concurrency
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY or allowed >= needed:
        return concurrency
    raised = needed if most == resource.RLIM_INFINITY else max(allowed, min(most, needed))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, most))
        allowed = raised
    return max(1, min(concurrency, (allowed - _FILES_OF_ALL) // _FILES_OF_ONE))


class Schedule:
    """Hands out tickets to workers. One event loop only. `paces` are those of the agents by name: an attempt
    starts when its first request may be sent, and has that moment reserved."""

    def __init__(self, tickets: list[Ticket], concurrency: int, paces: dict[str, Pace] | None = None) -> None:
        self.concurrency = concurrency
        self._paces = {} if paces is None else paces
        self._lanes: dict[str, _Lane] = {}
        # Answers that are judged again ask no agent, and keep none of its limits.
        self._unasked = _Lane(concurrency, Pace(None))
        self._groups: dict[str, _Group] = {}
        self._news = asyncio.Event()
        for ticket in tickets:
            group = self._group(ticket)
            lane = self._lane(ticket)
            (lane if group is None else group).waiting.append(ticket)
        for group in self._groups.values():
            if group.limit == 1:
                group.waiting = deque(_one_by_one(group.waiting))
        self._paused_at: float | None = None
        self.paused_for = 0.0
        """Seconds, up to now but for a pause that goes on."""
        self._ended = False
        self._no_pause: set[int] = set()

    def _lane(self, ticket: Ticket) -> _Lane:
        if ticket.job.judges_only:
            return self._unasked
        spec = ticket.job.spec
        lane = self._lanes.get(ticket.job.agent)
        if lane is None:
            limit = spec.concurrency if spec and spec.concurrency else self.concurrency
            pace = self._paces.setdefault(ticket.job.agent, Pace(spec.rate_requests if spec else None))
            pace.freed = self._news.set
            lane = self._lanes[ticket.job.agent] = _Lane(limit, pace, spec.rate_tokens if spec else None)
        return lane

    def _group(self, ticket: Ticket) -> _Group | None:
        job = ticket.job
        if job.group is None:
            return None
        group = self._groups.get(job.group)
        if group is None:
            group = self._groups[job.group] = _Group(max(1, job.at_once), job.pause)
        return group

    def _queues(self) -> list[_Lane | _Group]:
        return [self._unasked, *self._lanes.values(), *self._groups.values()]

    @property
    def waiting(self) -> list[Ticket]:
        """Tickets not handed out."""
        return sorted((t for queue in self._queues() for t in queue.waiting), key=lambda t: t.order)

    async def next(self) -> Ticket | None:
        """The next ticket that may start now; waits while none may; None when there are no more."""
        while not self._ended and any(queue.waiting for queue in self._queues()):
            ticket, pause = self._ready()
            if ticket is not None:
                lane, group = self._lane(ticket), self._group(ticket)
                (lane if group is None else group).waiting.popleft()
                lane.running += 1
                lane.let_go()
                if group is not None:
                    group.running += 1
                lane.pace.reserve(ticket.attempt_ref)
                return ticket
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._news.wait()
        return None

    def _ready(self) -> tuple[Ticket | None, float | None]:
        if self._paused_at is not None:
            return None, None
        best: Ticket | None = None
        pause: float | None = None
        for queue in self._queues():
            if not queue.waiting or queue.running >= queue.limit:
                continue
            first = queue.waiting[0]
            lane = self._lane(first)
            if lane.running >= lane.limit:
                continue
            seconds = lane.seconds_until_allowed()
            if seconds > 0:
                lane.hold(seconds)
            if isinstance(queue, _Group) and queue.pause:
                seconds = max(seconds, queue.not_before - time.monotonic())
            if seconds > 0:
                pause = seconds if pause is None else min(pause, seconds)
            elif best is None or first.order < best.order:
                best = first
        return best, pause

    def spent(self, ticket: Ticket, tokens: int) -> None:
        """The ticket's attempt has used so many tokens."""
        self._lane(ticket).spend(tokens)

    def unasked(self, ticket: Ticket) -> None:
        """No agent was asked for this ticket, which has ended: no pause follows it."""
        self._no_pause.add(ticket.attempt_ref)

    def recall(self, agent: str, past: Sequence[tuple[float, int]]) -> None:
        """What attempts of this agent used before the run was interrupted: the seconds since each ended, the longest
        first, and its tokens."""
        lane = self._lanes.get(agent)
        if lane is None or lane.tokens is None:
            return
        now = time.monotonic()
        for seconds, tokens in past:
            moment = now - max(0.0, seconds)
            gone = max(0.0, moment - lane.spent_at) if lane.spent else 0.0
            lane.spent = max(0.0, lane.spent - gone * lane.tokens / 60) + tokens
            lane.spent_at = moment

    def done(self, ticket: Ticket) -> None:
        """The ticket's attempt has ended; another may start."""
        lane = self._lane(ticket)
        lane.running -= 1
        lane.pace.release(ticket.attempt_ref)
        group = self._group(ticket)
        if group is not None:
            group.running -= 1
            if ticket.attempt_ref not in self._no_pause:
                group.not_before = time.monotonic() + group.pause
        self._no_pause.discard(ticket.attempt_ref)
        self._news.set()

    def pause(self, paused: bool) -> None:
        """Hand out nothing new while paused; what runs goes on."""
        now = time.monotonic()
        if self._paused_at is not None:
            self.paused_for += now - self._paused_at
        self._paused_at = now if paused else None
        for lane in self._lanes.values():
            lane.let_go()
        self._news.set()

    def held(self, ticket: Ticket) -> float:
        """For how many seconds attempts of this agent have waited for its rate alone, or for the run to go on."""
        return self._lane(ticket).held + self.paused_for

    def end(self) -> None:
        """Hand out nothing more."""
        self._ended = True
        self._news.set()

    def drop(self, attempt_refs: set[int]) -> list[Ticket]:
        """Take these attempts out before they start; returns those that were still waiting."""
        dropped: list[Ticket] = []
        for queue in self._queues():
            dropped.extend(ticket for ticket in queue.waiting if ticket.attempt_ref in attempt_refs)
            queue.waiting = deque(t for t in queue.waiting if t.attempt_ref not in attempt_refs)
        self._news.set()
        return dropped
