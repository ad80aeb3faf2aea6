"""Libraries that the attempts of a run need first, imported before any of their clocks goes.

An import takes up to seconds of the loop, which all attempts share: made when the first assertion needs it, it would be
taken out of the time limits and latencies of whoever runs beside that. Only what the run's own cases and agents need is
imported, in a thread, so that starting without them costs nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from msgspec import UNSET

from tui_eval import agents
from tui_eval.config.project import AgentSpec, Config, ConfigError
from tui_eval.engine import grader_choice
from tui_eval.engine.plan import Job
from tui_eval.formats import format_of
from tui_eval.guard.fair_share import in_thread


class _Needed:
    """Modules and types of agents, gathered from cases; each kind of assertion is looked at once."""

    def __init__(self, config: Config, typed_judge: str | None) -> None:
        self.modules: dict[str, None] = {}
        self.agents: dict[str, None] = {}
        self._config = config
        self._typed = typed_judge
        self._before: object = None
        self._kinds: set[tuple[str, str, bool, str | None, str]] = set()

    def add(self, job: Job) -> None:
        if job.problem:
            return
        if job.spec is not None:
            self.agents[job.spec.type] = None
        if job.held is self._before:  # another column of the same case
            return
        self._before, case = job.held, job.case
        form = format_of(case.format)
        for one in case.asserted:
            graded = form.asks_a_judge(one.type)
            named = form.named_grader(one, case) if graded else None
            kind = (case.format, one.type, one.value is UNSET, job.judge, str(named))
            if kind in self._kinds:
                continue
            self._kinds.add(kind)
            self.modules |= dict.fromkeys(form.libraries_for(one))
            if graded and (judge := self._judge(job, named)) is not None:
                self.agents[judge.type] = None

    def _judge(self, job: Job, named: Any) -> AgentSpec | None:
        with suppress(ConfigError, grader_choice.NoGrader):
            if named is not None:
                return grader_choice.suites_own(named, self._config, job.base, job.settings.get("env"))
            judge = grader_choice.judge_of(job.judge, self._config, self._typed)
            return judge or grader_choice.default_of(job, self._config)
        return None


async def import_first(jobs: Iterable[Job], config: Config, typed_judge: str | None = None) -> None:
    """Import what these jobs' assertions, agents and judges need. What cannot be imported is said by whoever needs
    it. `typed_judge` is the one that a person named for this run."""

    def work() -> None:
        needed = _Needed(config, typed_judge)
        for job in jobs:
            needed.add(job)
        for name in needed.modules:
            with suppress(ImportError):
                importlib.import_module(name)
        for kind in needed.agents:
            with suppress(ImportError, ConfigError):
                agents.agent_class(kind)

    await in_thread(work)
