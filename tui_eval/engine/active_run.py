"""A run that is prepared: its execution from the first attempt to its place in the index."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tui_eval.config.project import Config
from tui_eval.engine.plan import Job
from tui_eval.engine.provenance import provenance
from tui_eval.engine.request import RunRequest
from tui_eval.engine.row_order import arrange, suites_concurrency
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.runner import Limits, Runner
from tui_eval.engine.schedule import Ticket
from tui_eval.formats import format_of
from tui_eval.model import Attempt, Problem
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError
from tui_eval.store.schema import RunState
from tui_eval.store.writer import RunWriter

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
        on_start: Callable[[Job, int, int], None] | None = None,
        on_done: Callable[[Job, int, Attempt], None] | None = None,
    ) -> None:
        self.config = config
        self.request = request
        self.jobs = jobs
        self.writer = writer
        self.problems = problems
        self.environment = environment
        limits = Limits(
            concurrency=max(
                1,
                request.concurrency
                or _threads(config, jobs)
                or max(config.run.concurrency, suites_concurrency(jobs) or 0),
            ),
            fail_fast=request.fail_fast,
            step=request.step,
            max_cost=request.max_cost if request.max_cost is not None else config.run.max_cost,
        )
        arrange(jobs, request.delay, request.concurrency)
        self.runner = Runner(jobs, environment, limits, writer, on_start, on_done)
        self.tickets: list[Ticket] = []
        self.note = ""
        """What is said of the run besides why it was stopped."""

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
        try:
            return await self.runner.run(self.tickets)
        finally:
            await self._sum_up()
            await self._assess()
            ended = await self.environment.hooks.end() if self.environment.hooks is not None else []
            await self.environment.close()
            if self.writer is not None:
                self.writer.info.provenance = {**(await self._found(facts)), **self.writer.info.provenance}
                self.note = "; ".join(filter(None, [self.note, self._uncounted()]))
                # Why it was stopped is known anew: a resumed one was interrupted before.
                notes = [self.runner.stopped_because or "", self.note, *ended]
                self.writer.info.note = "; ".join(filter(None, notes))
                self.writer.update_info()
                writer, root = self.writer, self.config.root
                await asyncio.to_thread(writer.close)
                if self.runner.stepper is not None and not self.runner.stepper.sent:
                    await asyncio.to_thread(shutil.rmtree, writer.home, True)  # stepped, and nothing was sent
                elif writer.home.is_relative_to(Store(root).runs_folder):
                    await asyncio.to_thread(Index(root).record, writer.home)

    def _uncounted(self) -> str:
        """What a cost limit did not count, in words."""
        count = self.runner.without_cost
        if self.runner.limits.max_cost is None or not count:
            return ""
        answers = "1 answer" if count == 1 else f"{count:,} answers"
        return f"the cost of {answers} is unknown: the cost limit of {self.runner.limits.max_cost:g} USD did not count that"

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

    async def _found(self, facts: asyncio.Task[dict[str, Any]]) -> dict[str, Any]:
        """The provenance; after an interrupt it is waited for a moment: a file system may never answer."""
        while True:
            interrupted = self.runner.stopped_because == "interrupted"
            done, _ = await asyncio.wait({facts}, timeout=_MOMENT if interrupted else 0.5)
            if done:
                return facts.result()
            if interrupted:
                return {}

    async def _sum_up(self) -> None:
        """Sums of promptfoo's columns, and what is derived from them, into the run's facts."""
        settings = {job.case.suite: job.settings for job in self.jobs if format_of(job.case.format).rows}
        if self.writer is None or not any("derivedMetrics" in own for own in settings.values()):
            return
        from tui_eval.engine.after import derived_metrics
        from tui_eval.store import column_names

        rows: list[list[dict[str, float]]] = []

        def read(folder: Path) -> list[dict[str, Any]]:
            reader = RunReader(folder)
            try:
                return column_names.sums(reader, rows)
            finally:
                reader.close()

        await asyncio.to_thread(self.writer.flush)
        try:
            found = await asyncio.to_thread(read, self.writer.folder)
        except StoreError:
            return  # the disk refused; the run says so
        await derived_metrics.derive(found, settings, self.environment.javascript, rows)
        self.writer.info.metrics = found


def _threads(config: Config, jobs: list[Job]) -> int | None:
    """`test.threads` of a nao_config.yaml, where everything that runs is nao's."""
    if (
        config.nao is not None
        and config.nao.threads
        and all(format_of(job.case.format).checks_queries for job in jobs)
    ):
        return config.nao.threads
    return None
