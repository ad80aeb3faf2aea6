"""One run from plan to end: workers, limits, cancelling and pausing, everything into the store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from tui_eval.engine.after.row_comparison import Ended, RowColumns, compared, open_attempt
from tui_eval.engine.attempt.finished import mask
from tui_eval.engine.attempt.stepping import Stepper
from tui_eval.engine.kept_cases import KeptCases
from tui_eval.engine.needed_first import import_first
from tui_eval.engine.places.attempt_place import AttemptPlace, Made, PlaceLost, under_way_at_loss
from tui_eval.engine.places.chosen_place import Here
from tui_eval.engine.plan import Job
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.schedule import Schedule, Ticket
from tui_eval.guard import figures
from tui_eval.guard.fair_share import in_turn
from tui_eval.model import Attempt, JudgeUse, Usage
from tui_eval.store.encoding import has_long
from tui_eval.store.schema import NOTED, PLACE_LOST, RunState
from tui_eval.store.shard_runs import CostLimit
from tui_eval.store.writer import Packed, PlannedCase, RunWriter

INTERRUPTED = "interrupted"
"""Why a run was stopped that a signal ended."""
_LOOK_AGAIN = 0.002
"""Seconds."""


class Spent(msgspec.Struct):
    """What a run had come to before it was interrupted, against which its limits count on: USD, answers of unknown
    cost (and those of judges), and of each agent when an attempt ended (seconds since the epoch) and its tokens."""

    cost: float = 0.0
    without_cost: int = 0
    judges_without_cost: int = 0
    tokens: dict[str, list[tuple[float, int]]] = {}


class Limits(msgspec.Struct):
    """What ends a run early: the first attempt that does not pass, or money (USD)."""

    concurrency: int
    fail_fast: bool = False
    max_cost: float | None = None
    step: bool = False


_MOMENT = 0.1


class _SharedLimit(msgspec.Struct):
    """A time limit of several attempts together: when it is over (loop time), which moves on by what does not count for
    it. `held` is how long the schedule had kept them waiting for nothing of their own when that was last looked at."""

    ends: float
    held: float

    def until(self, held: float) -> float:
        """When it is over, as far as is known now."""
        self.ends += held - self.held
        self.held = held
        return self.ends

    def had(self, ends: float, uncounted: float) -> None:
        """An attempt that began when it was over at `ends` had so many seconds that do not count (for a rate, or until
        its agent was ready). What others had at the same time is the same time; a moment is the engine's own work."""
        if uncounted > _MOMENT:
            self.ends = max(self.ends, ends + uncounted)


class Runner:
    """Executes jobs at a place (None: here). `on_done(job, number, attempt)` is called after each attempt,
    `writer` None keeps nothing (`--no-store`)."""

    def __init__(
        self,
        jobs: list[Job],
        environment: RunContext,
        limits: Limits,
        writer: RunWriter | None,
        on_done: Callable[[Job, int, Attempt], None] | None = None,
        place: AttemptPlace | None = None,
    ) -> None:
        self.jobs = jobs
        self.environment = environment
        self.limits = limits
        self.writer = writer
        self.stopped_because: str | None = None
        self.noted: Sequence[str] = ()
        """What was said of the run before it was here, for good."""
        self.note = ""
        """A limit that was reached when nothing was left to be stopped by it."""
        self.stepper = Stepper(writer, environment.masker) if limits.step else None
        if writer is not None:
            environment.run_id = writer.info.id
        self.place: AttemptPlace = place or Here(environment, writer, self.stepper)
        self.on_start: Callable[[Job, int, int], None] | None = None
        """Is called before each attempt, with its number and reference."""
        self.on_done = on_done
        self._tasks: dict[int, asyncio.Task[Made]] = {}
        self._cancelled: set[int] = set()
        self._left: dict[int, Attempt] = {}
        self._opening: asyncio.Future[None] | None = None
        self._interrupted = False
        self._cut_short = False
        """Whether an interruption put something back, or left something uncompared."""
        self._over = False
        self._cost = 0.0
        self.unfinished_cost, self.unfinished_tokens = 0.0, 0
        """USD, and tokens, that went into attempts which an interruption put back."""
        self.without_cost = 0
        """Answers of which no cost is known: a cost limit cannot count them."""
        self.judges_without_cost = 0
        """The same of judges' answers."""
        self._limit_reached: str | None = None
        self.spent_at_limit: float | None = None
        """USD, where the run was stopped by its cost limit, or would have been."""
        self._shared: dict[int | str, _SharedLimit] = {}
        self._schedule: Schedule | None = None
        self.earlier: list[Ended] = []
        self.compared_anew: list[str] = []
        """Columns that were not asked, and came to something else by being compared with what was."""
        self._past: Spent | None = None
        self._columns = RowColumns(())
        self._comparing: set[asyncio.Task[None]] = set()
        self._catching_up = asyncio.Lock()
        self._open: dict[int, Ended] = {}

    def go_on_from(self, spent: Spent) -> None:
        """Count what was spent before as the run's: its limits are those of the whole of it."""
        self._cost, self.without_cost, self._past = spent.cost, spent.without_cost, spent
        self.judges_without_cost = spent.judges_without_cost

    def plan(self) -> list[Ticket]:
        """Write the jobs into the store; a ticket for every attempt."""
        if self.writer is not None:
            kept = KeptCases(self.environment.masker)
            references = self.writer.plan(
                [
                    PlannedCase(
                        kept.held(job), job.agent, job.model, job.attempts, job.required, job.first_attempt
                    )
                    for job in self.jobs
                ]
            )
        else:
            references, following = [], 1
            for job in self.jobs:
                references.append(range(following, following + job.attempts))
                following += job.attempts
        return self.tickets(references)

    def tickets(self, references: Sequence[Sequence[int]]) -> list[Ticket]:
        """Tickets for attempt ids by job, in order."""
        tickets: list[Ticket] = []
        for job, refs in zip(self.jobs, references, strict=True):
            for number, ref in enumerate(refs, job.first_attempt):
                tickets.append(Ticket(len(tickets), job, number, ref))
        return tickets

    async def run(self, tickets: list[Ticket]) -> RunState:
        """Execute until everything has ended or was stopped; the run's final state. The tickets are taken: what has
        ended is not held."""
        self._schedule = schedule = Schedule(tickets, self.limits.concurrency, self.environment.paces)
        now = self.environment.now()
        for agent, past in (self._past.tokens if self._past is not None else {}).items():
            schedule.recall(agent, [(now - ended, used) for ended, used in sorted(past)])
        self._columns = RowColumns(tickets, self.earlier)
        workers = min(self.limits.concurrency, len(tickets))
        tickets.clear()
        started: list[asyncio.Task[None]] = []
        try:
            await self._opened()
            for columns in self._columns.cut_off:
                self._begin_comparing(columns)
            await self._all(schedule, workers, started)
            while (
                self._comparing
            ):  # those that an interrupt cancels stay open, and are compared when the run goes on
                ended, _ = await asyncio.wait(self._comparing)
                self._comparing -= ended
                for task in ended:
                    if not task.cancelled() and (error := task.exception()) is not None:
                        raise error
        except PlaceLost as why:
            await self._lost_place(why)
        except Exception as error:  # of our own making: what has no result yet can be gone on with
            await self.interrupt()
            self.stopped_because = f"internal error: {type(error).__name__}: {error}"
            await asyncio.gather(*started, return_exceptions=True)
            raise
        finally:
            await self.place.close()
            self._over = True
            self._stopped_nothing(schedule)
            state: RunState = "interrupted" if self._interrupted else "finished"
            if not self._interrupted and (self._cancelled or self.stopped_because == "cancelled"):
                state = "cancelled" if schedule.waiting or self.stopped_because else "finished"
            if self.writer is not None:
                for ref, (
                    ticket,
                    attempt,
                ) in self._open.items():  # nobody compares them any more: never a pass
                    attempt = open_attempt(attempt)
                    if self.environment.hooks is not None:
                        self.environment.hooks.counted(ticket.job.case, attempt)
                    self.writer.done(ref, mask(attempt, self.environment))
                self.writer.state(state, self.environment.now())
        return state

    def _stopped_nothing(self, schedule: Schedule) -> None:
        """A limit that the last attempts reached, or a signal that came after them, has ended nothing: all that was
        planned ran."""
        if self.stopped_because == INTERRUPTED and not (schedule.waiting or self._cut_short or self._open):
            self._interrupted, self.stopped_because = False, self._limit_reached
        if self.stopped_because is None or self.stopped_because != self._limit_reached or schedule.waiting:
            return
        self.note = f"{self._limit_reached}, with nothing left to run"
        self.stopped_because = None

    async def _opened(self) -> None:
        """The place made ready; cancelling the run does not wait for that."""
        self._moved()
        self._opening = asyncio.ensure_future(self._ready())
        try:
            await self._opening
        except asyncio.CancelledError:
            if self.stopped_because is None:
                raise
        self._moved()

    async def _ready(self) -> None:
        await import_first(self.jobs, self.environment.config, self.environment.typed_judge)
        await self.place.open(self._moved)

    def _moved(self) -> None:
        """Where the run's attempts are executed is said in its facts."""
        if self.writer is None:
            return
        info = self.writer.info
        if (info.place, info.note) != (self.place.words, self.place.note or info.note):
            info.place, info.note = self.place.words, self.place.note or info.note
            if self.place.note:  # also where this process is killed
                info.provenance[NOTED] = [*self.noted, self.place.note]
            self.writer.update_info()

    async def _all(self, schedule: Schedule, workers: int, started: list[asyncio.Task[None]]) -> None:
        """All workers to their end (`started` takes them). Each starts a turn of the loop after the one
        before: requests leave as they are made and are answered one after the other, where a hundred answers
        in one moment would keep a hundred connections idle until the last of them is judged."""
        try:
            for _ in range(workers):
                started.append(asyncio.ensure_future(self._work(schedule)))
                await asyncio.sleep(0)
            await asyncio.gather(*started)
        except asyncio.CancelledError:
            for task in started:
                task.cancel()
            raise

    async def _work(self, schedule: Schedule) -> None:
        while (ticket := await self._next(schedule)) is not None:
            try:
                await self._attempt(ticket)
            finally:
                schedule.done(ticket)
            if self.stopped_because is not None:
                schedule.end()

    async def _next(self, schedule: Schedule) -> Ticket | None:
        """The next attempt to begin; none while many that have ended are not on disk: whoever kills the process would
        pay for them twice. While the loop waits here the writing thread has the processor to itself."""
        if self.writer is not None and self.writer.behind:
            async with self._catching_up:
                # It is a thread that catches up: there is no event of this loop's to await.
                while self.writer.behind:  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_AGAIN)
        return await schedule.next()

    async def _attempt(self, ticket: Ticket) -> None:
        job = ticket.job
        if self.on_start is not None:
            self.on_start(job, ticket.number, ticket.attempt_ref)
        started, began = self.environment.now(), time.perf_counter()
        shared, ends = self._shared_limit(ticket)
        task = asyncio.create_task(self.place.attempt(ticket, ends, self._left))
        self._tasks[ticket.attempt_ref] = task
        try:
            attempt, packed = await task
        except PlaceLost as why:
            self._put_back(ticket)
            await self._lost_place(why)
            return
        except asyncio.CancelledError:
            if self._interrupted:
                begun = self._left.get(ticket.attempt_ref)
                if begun is not None:
                    self.unfinished_cost += (begun.cost or 0.0) + _judging_cost(begun)
                    self.unfinished_tokens += _tokens(begun)
                self._put_back(ticket)
                return
            if ticket.attempt_ref not in self._cancelled:
                raise
            seconds = time.perf_counter() - began
            packed = None
            attempt = self._left.get(ticket.attempt_ref) or _cancelled(job, ticket.number, started, seconds)
        finally:
            self._tasks.pop(ticket.attempt_ref, None)
            self._left.pop(ticket.attempt_ref, None)
        if shared is not None and ends is not None and attempt.duration_ms is not None:
            shared.had(ends, time.perf_counter() - began - attempt.duration_ms / 1000)
        try:
            if self.writer is not None and packed is None and has_long(attempt):
                # Its place stays taken meanwhile: long answers are not gathered faster than they are packed.
                packed = await in_turn(partial(Packed.of, attempt))
        finally:
            self._ended(ticket, attempt, packed)

    def _put_back(self, ticket: Ticket) -> None:
        self._cut_short = True
        if self.writer is not None:
            self.writer.waiting(ticket.attempt_ref)

    def _ended(self, ticket: Ticket, attempt: Attempt, packed: Packed | None = None) -> None:
        judged = ticket.job.judges_only  # what the answer took was spent when it was asked for
        self._cost += 0.0 if judged else attempt.cost or 0.0
        self._judged(attempt.judging)
        used = _tokens(attempt)
        # What is no answer may have been paid for; and an answer that could not be judged is one.
        answered = bool(used) or (attempt.error is None and attempt.outcome in ("passed", "failed", "error"))
        if attempt.cost is None and not judged and not attempt.cached and answered:
            self.without_cost += 1
        if self._schedule is not None:
            if judged or attempt.duration_ms is None or attempt.cached_words == "cached":
                self._schedule.unasked(ticket)
            elif attempt.usage is not None:
                self._schedule.spent(ticket, used)
        if not self._columns.waits(ticket):
            self._settled(ticket, attempt, packed)
            return
        if self.writer is not None:
            waits = attempt.outcome == "passed"
            self.writer.done(ticket.attempt_ref, open_attempt(attempt), waits=waits)
            if waits:
                self._open[ticket.attempt_ref] = ticket, attempt
        columns = self._columns.take(ticket, attempt)
        if columns is not None:
            self._begin_comparing(columns)

    def _begin_comparing(self, columns: list[Ended]) -> None:
        task = asyncio.ensure_future(self._compare(columns))
        self._comparing.add(task)
        task.add_done_callback(self._comparing.discard)

    def _judged(self, judging: JudgeUse | None) -> None:
        """What judges took counts towards the limit, whoever was asked."""
        if judging is not None and judging.cost is None:
            self.judges_without_cost += judging.calls
        self._cost += (judging.cost if judging is not None else None) or 0.0

    async def _compare(self, columns: list[Ended]) -> None:
        took: list[JudgeUse] = []
        try:
            self.compared_anew += await compared(columns, self.environment, took.append)
        except asyncio.CancelledError:
            self._cut_short = True
            first = next((ticket for ticket, _ in columns if ticket.order >= 0), None)
            if (
                first is None or first.attempt_ref not in self._open
            ):  # else it is written again with what was spent
                self.unfinished_cost += sum(one.cost or 0.0 for one in took)
            raise
        for one in took:
            self._judged(one)
        for ticket, attempt in columns:
            if self.environment.hooks is not None:
                self.environment.hooks.counted(ticket.job.case, attempt)
            if ticket.order >= 0:
                self._settled(ticket, mask(attempt, self.environment))
            elif self.writer is not None and ticket.attempt_ref:
                self.writer.done(ticket.attempt_ref, mask(attempt, self.environment))

    def _settled(self, ticket: Ticket, attempt: Attempt, packed: Packed | None = None) -> None:
        self._open.pop(ticket.attempt_ref, None)
        if self.writer is not None:
            self.writer.done(ticket.attempt_ref, attempt, packed or Packed.of(attempt))
        if self.on_done is not None:
            self.on_done(ticket.job, ticket.number, attempt)
        if self.limits.fail_fast and attempt.outcome in ("failed", "error"):
            reached, spent = f"--fail-fast: {attempt.case_id} {attempt.outcome}", None
        elif self.limits.max_cost is not None and figures.reaches(self._cost, self.limits.max_cost):
            reached, spent = CostLimit(self.limits.max_cost, self._cost).reached, self._cost
        else:
            return
        if self.stopped_because in (None, self._limit_reached):
            self.stopped_because = self._limit_reached = reached
            self.spent_at_limit = spent

    def _shared_limit(self, ticket: Ticket) -> tuple[_SharedLimit | None, float | None]:
        """A neuro-san case's limit covers all its attempts from the first one's start, promptfoo's
        `maxEvalTimeMs` all rows of the suite; when it is over. What moves the case's on, to whom it is known; the
        suite's goes on but for a pause of the run."""
        job, schedule = ticket.job, self._schedule
        if schedule is None:
            return None, None
        suite = job.deadline_suite
        seconds = job.deadline_all if suite is None else suite
        if seconds is None:
            return None, None
        held = schedule.held(ticket) if suite is None else schedule.paused_for
        first = _SharedLimit(asyncio.get_running_loop().time() + seconds, held)
        shared = self._shared.setdefault(id(job) if suite is None else job.suite, first)
        return shared if suite is None else None, shared.until(held)

    # Asked for from outside, on the same loop

    async def cancel(self, attempt_refs: set[int] | None = None) -> int:
        """Cancel these attempts, or the whole run; how many were concerned. Of a whole run those that have
        not begun are not run, as after an interrupt: they have no result that would take the place of their
        last one."""
        schedule = self._schedule
        if schedule is None:
            return 0
        dropped: list[Ticket] = []
        if attempt_refs is None:
            self.stopped_because = "cancelled"
            if self._opening is not None:
                self._opening.cancel()
            not_begun = len(schedule.waiting)
            schedule.end()
            attempt_refs = set(self._tasks)
            for task in self._comparing:
                task.cancel()
        else:
            dropped = schedule.drop(attempt_refs)
            not_begun = len(dropped)
        self._cancelled |= attempt_refs
        for ticket in dropped:
            self._ended(ticket, _cancelled(ticket.job, ticket.number, self.environment.now(), 0.0))
        running = [task for ref, task in self._tasks.items() if ref in attempt_refs]
        for task in running:
            task.cancel()
        return not_begun + len(running)

    def interrupted(self, why: str = INTERRUPTED) -> None:
        """From now on the run's end is no finish of it, where something is left of it."""
        if not self._interrupted and not self._over:
            self._interrupted, self.stopped_because = True, why

    async def _lost_place(self, why: PlaceLost) -> None:
        """Nothing more can be executed where the attempts are; who reads the run's end knows that already."""
        if self.writer is not None and not self._interrupted:
            info, place = self.writer.info, self.place
            info.provenance[PLACE_LOST] = place.begun_at_loss
            lost = under_way_at_loss(place.begun_at_loss)
            info.note = "; ".join(filter(None, (str(why), lost, place.note)))
        await self.interrupt(str(why))

    async def interrupt(self, why: str = INTERRUPTED) -> None:
        """Stop at once (Ctrl-C): what runs is put back, what has ended stays, a resume goes on."""
        self.interrupted(why)
        if self._opening is not None:
            self._opening.cancel()
        if self._schedule is not None:
            self._schedule.end()
        self._cut_short = self._cut_short or bool(self._comparing)
        for task in (*self._tasks.values(), *self._comparing):
            task.cancel()

    async def pause(self, paused: bool) -> None:
        """Start nothing new while paused."""
        if self._schedule is not None:
            self._schedule.pause(paused)
        if self.writer is not None:
            self.writer.state("paused" if paused else "running")


def _tokens(attempt: Attempt) -> int:
    taken = attempt.usage or Usage()
    return (taken.input_tokens or 0) + (taken.output_tokens or 0)


def _judging_cost(attempt: Attempt) -> float:
    return (attempt.judging.cost if attempt.judging is not None else None) or 0.0


def _cancelled(job: Job, number: int, started: float, seconds: float) -> Attempt:
    return Attempt(
        case_id=job.case.case_id,
        attempt=number,
        outcome="cancelled",
        agent=job.agent,
        model=job.model,
        message="cancelled",
        started_at=started,
        duration_ms=round(seconds * 1000, 1),
    )
