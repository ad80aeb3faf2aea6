"""A run that is prepared: its execution from the first attempt to its place in the index."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from tui_eval.config.project import Config
from tui_eval.engine.after import derived_columns
from tui_eval.engine.places.attempt_place import AttemptPlace, under_way_at_loss
from tui_eval.engine.places.chosen_place import all_runs_here, place_of
from tui_eval.engine.plan import Job
from tui_eval.engine.provenance import agents_asked, provenance, rewritten
from tui_eval.engine.request import RunRequest
from tui_eval.engine.row_order import arrange, suites_concurrency
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.runner import INTERRUPTED, Limits, Runner
from tui_eval.engine.schedule import Ticket, within_open_files
from tui_eval.formats import format_of
from tui_eval.guard.spelling import some_of
from tui_eval.model import Attempt, Problem
from tui_eval.store.index import Index
from tui_eval.store.judged_under import REWRITTEN
from tui_eval.store.missing_cases import HOOKS_FAILED
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError
from tui_eval.store.schema import NOTED, RunState
from tui_eval.store.shard_runs import COST_LIMIT, CostLimit, add_unfinished
from tui_eval.store.summary import CaseTaker
from tui_eval.store.writer import RunWriter

_NAMED = 3
"""Columns that are named where others came to something else by a comparison."""
_MOMENT = 1.0
"""Seconds that an interrupted run waits for what is good to know and may never come."""


class ActiveRun:
    """A run that is prepared, then executed by `execute`. Close with it is done for you."""

    def __init__(
        self,
        config: Config,
        request: RunRequest,
        jobs: list[Job],
        environment: RunContext,
        writer: RunWriter | None,
        problems: list[Problem],
        on_done: Callable[[Job, int, Attempt], None] | None = None,
    ) -> None:
        self.config = config
        self.request = request
        self.jobs = jobs
        self.writer = writer
        self.problems = problems
        self.environment = environment
        wanted = request.concurrency or _threads(config, jobs)
        wanted = max(1, wanted or max(config.run.concurrency, suites_concurrency(jobs) or 0))
        at_once = fitting = min(wanted, max(1, sum(job.attempts for job in jobs)))
        here = "" if writer is None else all_runs_here(request, jobs, environment)
        if here is not None:
            fitting = within_open_files(at_once)
        limits = Limits(
            concurrency=wanted if fitting == at_once else fitting,
            fail_fast=request.fail_fast,
            step=request.step,
            max_cost=cost_limit(request, config),
        )
        environment.say = self._say
        arrange(jobs, request.delay, request.concurrency)
        place: AttemptPlace | None = None
        if here is None and writer is not None:
            place = place_of(request, jobs, environment, writer, limits.concurrency, self._say)
        self.runner = Runner(jobs, environment, limits, writer, on_done, place)
        self.tickets: list[Ticket] = []
        self.on_word: Callable[[str], None] | None = None
        """Takes what is said of where the run goes."""
        self.unseen = ""
        """What cannot be seen of its agents, where their kept answers are taken."""
        self.note = ""
        """What is said of the run besides why it was stopped, at its end."""
        self.noted: list[str] = []
        """What is said of the run for good."""
        self.going_on = ""
        """What is said of one that goes on: once more, it is found anew."""
        self.beside: Callable[[RunReader], CaseTaker] | None = None
        """Gives what takes the run's cases when they are read for the index, at the end (`Index.record`)."""
        self.indexed = False
        """Whether that was done."""
        self.said_first: list[str] = []
        """What is said before it begins, or goes on."""
        if here:
            self.said_first.append(here)
        if fitting < at_once:
            self.said_first.append(
                f"{fitting:,} at once instead of {at_once:,}: no more files may be open (ulimit -n allows more)"
            )

    def _say(self, line: str) -> None:
        """What a person should know of where the run goes."""
        if self.on_word is not None:
            self.on_word(line)

    @property
    def run_id(self) -> str:
        """The run's id; empty where nothing is kept."""
        return self.writer.info.id if self.writer else ""

    async def execute(self) -> RunState:
        """Run to the end, put the result into the index, release everything."""
        facts = asyncio.create_task(
            asyncio.to_thread(
                provenance,
                self.config,
                self.environment.trust,
                self.jobs,
                self.request.command,
                self.environment.masker,
            )
        )
        self._note(self.noted)
        self.runner.noted = self.noted
        kept = asyncio.create_task(self._keep(facts))
        try:
            return await self.runner.run(self.tickets)
        finally:
            kept.cancel()
            await self._sum_up()
            await self._assess()
            hooks, evaluation = self.environment.hooks, f"eval-{self.environment.run_id}"
            ended = await hooks.end(evaluation) if hooks is not None else []
            await self.environment.close()
            if self.writer is not None:
                self.writer.info.provenance = {**(await self._found(facts)), **self.writer.info.provenance}
                await self._look_again()
                limit = self._cost_limit()
                self.writer.info.provenance.pop(COST_LIMIT, None)
                self.writer.info.provenance.pop(HOOKS_FAILED, None)
                if ended:
                    told = self.environment.masker.text("; ".join(ended))
                    self.writer.info.provenance[HOOKS_FAILED] = told
                if limit is not None:
                    self.writer.info.provenance[COST_LIMIT] = msgspec.to_builtins(limit)
                answers = self.environment.answers
                lasting = [
                    *self.noted,
                    self.runner.place.note,
                    *self._compared_anew(),
                    hooks.words() if hooks is not None else "",
                    answers.cache.problem if answers is not None else "",
                ]
                self._note(lasting)
                add_unfinished(
                    self.writer.info.provenance, self.runner.unfinished_tokens, self.runner.unfinished_cost
                )
                # Why it was stopped is known anew: a resumed one was interrupted before.
                said = [
                    self.going_on, self.runner.note, under_way_at_loss(self.runner.place.begun_at_loss), *lasting,
                    limit.uncounted if limit is not None else "",
                ]  # fmt: skip
                self.note = "; ".join(dict.fromkeys(filter(None, said)))
                notes = [self.runner.stopped_because or "", self.note, *ended]
                self.writer.info.note = "; ".join(filter(None, notes))
                self.writer.update_info()
                writer, root = self.writer, self.config.root
                await asyncio.to_thread(writer.close)
                self._forget_plan()
                if self.runner.stepper is not None and not self.runner.stepper.sent:
                    await asyncio.to_thread(shutil.rmtree, writer.home, True)  # stepped, and nothing was sent
                elif Store(root).holds(writer.home):
                    self.indexed = await asyncio.to_thread(Index(root).record, writer.home, self.beside)

    def _note(self, lasting: Iterable[str]) -> None:
        """What is said of the run for good, into its facts: who goes on with it says that, too."""
        if self.writer is not None and (said := list(dict.fromkeys(filter(None, lasting)))):
            self.writer.info.provenance[NOTED] = said

    def _forget_plan(self) -> None:
        """Nothing more is executed: what is said of the run is read from its folder, which takes memory too."""
        self.jobs.clear()
        self.tickets.clear()
        if self.writer is not None:
            self.writer.forget()

    def _compared_anew(self) -> list[str]:
        """What became of columns that were not asked, in words."""
        found = self.runner.compared_anew
        if not found:
            return []
        return [f"by the new comparison: {some_of(found, _NAMED)}"]

    def _cost_limit(self) -> CostLimit | None:
        """What is known of the run's cost limit at its end; None where there is none, or nothing to say of it."""
        usd, runner = self.runner.limits.max_cost, self.runner
        if usd is None:
            return None
        limit = CostLimit(usd, runner.spent_at_limit, runner.without_cost, runner.judges_without_cost)
        reached = (runner.stopped_because or runner.note) if limit.spent is not None else ""
        limit.said = list(filter(None, (reached, limit.uncounted)))
        return limit if limit.said else None

    async def _assess(self) -> None:
        """Failure modes of the run, kept with it, where they were asked for."""
        if not self.request.assess or self.writer is None:
            return
        from tui_eval.engine.after.assessing import assess_run

        ask, _ = self.environment.judge(self.request.judge)
        await asyncio.to_thread(self.writer.flush)
        try:
            reader = RunReader(self.writer.folder)
            try:
                self.writer.assessment(await assess_run(reader, ask))
            finally:
                reader.close()
        except StoreError:
            return  # the disk refused; the run says so

    async def _keep(self, facts: asyncio.Task[dict[str, Any]]) -> None:
        """Write down at once what the run begins with: who goes on with one that was killed can see what changed."""
        found = await asyncio.shield(facts)
        if self.writer is not None:
            self.writer.info.provenance = {**found, **self.writer.info.provenance}
            self.writer.update_info()

    async def _found(self, facts: asyncio.Task[dict[str, Any]]) -> dict[str, Any]:
        """The provenance; after an interrupt it is waited for a moment: a file system may never answer."""
        while True:
            interrupted = self.runner.stopped_because == INTERRUPTED
            done, _ = await asyncio.wait({facts}, timeout=_MOMENT if interrupted else 0.5)
            if done:
                return facts.result()
            if interrupted:
                return {}

    async def _look_again(self) -> None:
        """Whether the agents and files are still those that the run began with; not after an interrupt, as
        `_found`: who goes on with the run looks."""
        assert self.writer is not None
        facts = self.writer.info.provenance
        if self.runner.stopped_because != INTERRUPTED and isinstance(agents := facts.get("agents"), dict):
            asked = self.config, self.environment.trust, self.jobs
            facts["agents"] = await asyncio.to_thread(agents_asked, agents, *asked)
            since = self.writer.info.started_at
            if found := await asyncio.to_thread(rewritten, facts, *asked, since):
                facts[REWRITTEN] = found

    async def _sum_up(self) -> None:
        """Sums of the columns, and what is derived from them, into the run's facts."""
        if self.writer is None:
            return
        # One that goes on has only the jobs that were left: of other suites the run remembers it.
        before = self.writer.info.provenance.get(derived_columns.KEY) or {}
        settings = {**before, **derived_columns.remembered(self.jobs)}
        if not settings:
            return
        await asyncio.to_thread(self.writer.flush)
        try:
            found = await derived_columns.derived(
                self.writer.folder, settings, self.environment.hosts.javascript
            )
        except StoreError:
            return  # the disk refused; the run says so
        self.writer.info.metrics = found
        self.writer.info.provenance[derived_columns.KEY] = settings


def cost_limit(request: RunRequest, config: Config) -> float | None:
    """What a run may cost (USD); None: there is no limit."""
    return request.max_cost if request.max_cost is not None else config.run.max_cost


def _threads(config: Config, jobs: list[Job]) -> int | None:
    """How many attempts may run at once by a format's own configuration, where everything that runs is its."""
    names = {job.format for job in jobs}
    return format_of(names.pop()).threads(config) if len(names) == 1 else None
