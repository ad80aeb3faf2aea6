"""Judging all answers of a recorded run anew, as a new run linked to it; no agent is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tui_eval import suites
from tui_eval.config import Config, find_root, load
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.environment import Environment
from tui_eval.engine.kept_cases import KeptCases
from tui_eval.engine.plan import Job, plan
from tui_eval.engine.request import RunRequest
from tui_eval.engine.resuming import root_of
from tui_eval.engine.runs import NothingToRun, check_judge, new_writer
from tui_eval.engine.selection import SelectionError
from tui_eval.guard.trust import Trust
from tui_eval.guard.trust_store import trust_for
from tui_eval.model import Attempt, Case, Problem
from tui_eval.store.reader import RunReader
from tui_eval.store.runs import Store
from tui_eval.store.schema import CaseRow, RunInfo
from tui_eval.store.writer import PlannedCase


def rescore(
    folder: Path,
    *,
    overrides: RunRequest,
    on_start: Callable[[Job, int, int], None] | None = None,
    on_done: Callable[[Job, int, Attempt], None] | None = None,
) -> ActiveRun:
    """Prepare the judging of every recorded answer with the assertions of today's files; a case that is no
    longer there is judged as it was. `overrides` gives concurrency, timeout, judge and trust.

    Raises:
        NothingToRun: the run has no answers.
        SelectionError, ConfigError, StoreError: one clear line each.
    """
    info, recorded = _recorded(folder)
    if not recorded:
        raise NothingToRun(f"run {info.id} has no recorded answers to judge")
    root = find_root([Path.cwd()])[0] if _opened_file(folder) else root_of(folder)
    request = _request(info, overrides)
    config = load([root], request.config_file, root=root)
    trust = trust_for(config.root, request.trust)
    today, settings, problems = _today({case.suite for _, case, _ in recorded}, config, trust)
    environment = Environment(config, trust)
    check_judge(request, environment)
    planned: list[tuple[Job, CaseRow, list[Attempt]]] = []
    for row, case, attempts in recorded:
        again = plan([today.get(case.case_id, case)], config, request, dict, settings)
        job = next((job for job in again if (job.agent, job.model) == (row.agent, row.model)), None)
        if job is None:
            raise SelectionError(f"run {info.id}: its agent {row.agent} is no longer configured")
        planned.append((job, row, attempts))
    writer = new_writer(Store(root), config, request, [job for job, _, _ in planned], environment)
    first = [attempts[0].attempt for _, _, attempts in planned]
    kept = KeptCases(environment.masker).kept
    references = writer.plan(
        [
            PlannedCase(
                kept(job.case),
                job.agent,
                job.model,
                len(done),
                min(row.required, len(done)),
                number,
            )
            for (job, row, done), number in zip(planned, first, strict=True)
        ]
    )
    jobs = [
        msgspec.structs.replace(
            job, attempts=1, required=1, first_attempt=number, recorded=attempt, from_turn=None,
            deadline_all=None, deadline_suite=None, pause=0.0,
        )
        for (job, _, attempts), start in zip(planned, first, strict=True)
        for number, attempt in enumerate(attempts, start)
    ]  # fmt: skip
    active = ActiveRun(config, request, jobs, environment, writer, problems, on_start, on_done)
    active.tickets = active.runner.tickets([[ref] for refs in references for ref in refs])
    writer.flush()
    return active


def _recorded(folder: Path) -> tuple[RunInfo, list[tuple[CaseRow, Case, list[Attempt]]]]:
    """The run's facts and its cases, each with what was answered, in order."""
    reader = RunReader(folder)
    try:
        found: list[tuple[CaseRow, Case, list[Attempt]]] = []
        for row in reader.cases():
            done = [reader.attempt(one.id) for one in reader.attempts(row.id) if one.state == "done"]
            attempts = [one for one in done if one is not None and one.replies]
            if attempts:
                found.append((row, reader.case(row.id), attempts))
        return reader.info(), found
    finally:
        reader.close()


def _opened_file(folder: Path) -> bool:
    from tui_eval.store.imported import cache_home

    return folder.is_relative_to(cache_home())


def _request(info: RunInfo, overrides: RunRequest) -> RunRequest:
    """What the run was asked for, without filters and limits that concern the asking of agents."""
    given = msgspec.convert(info.options, RunRequest)
    return RunRequest(
        paths=given.paths,
        configs=given.configs,
        agents=given.agents,
        models=given.models,
        compat=given.compat,
        vars=given.vars,
        prompt_prefix=given.prompt_prefix,
        prompt_suffix=given.prompt_suffix,
        config_file=given.config_file,
        concurrency=overrides.concurrency,
        timeout=overrides.timeout,
        judge=overrides.judge or given.judge,
        trust=overrides.trust,
        command=overrides.command,
        linked_to=info.id,
        rescores=info.id,
    )


def _today(
    paths: set[str], config: Config, trust: Trust
) -> tuple[dict[str, Case], dict[str, dict[str, Any]], list[Problem]]:
    """Today's cases by id, the suites' settings, and what is wrong with their files."""
    cases: dict[str, Case] = {}
    settings: dict[str, dict[str, Any]] = {}
    problems: list[Problem] = []
    for path in sorted(paths):
        if not (config.root / path).is_file():
            continue
        suite = suites.load(config.root / path, config, trust)
        settings[suite.path] = suite.settings
        problems += suite.problems
        cases.update((case.case_id, case) for case in suite.cases)
    return cases, settings, problems
