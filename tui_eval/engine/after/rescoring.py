"""Judging all answers of a recorded run anew, as a new run linked to it; no agent is asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.config.project import Config, find_root, load, read_withheld
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.after.judging_again import (
    AnsweredAttempt,
    Judged,
    SoFar,
    answers_of_cases,
    answers_of_run,
    judged_by,
    never_ran,
    of_former_agents,
    of_transformed,
    planned,
)
from tui_eval.engine.after.resuming import root_of
from tui_eval.engine.after.row_comparison import compares, test_mark
from tui_eval.engine.fingerprints import Fingerprints
from tui_eval.engine.kept_cases import of_today
from tui_eval.engine.plan import Job, plan
from tui_eval.engine.prepare import kept_answers, new_writer
from tui_eval.engine.request import RequestCell, RunRequest, request_of
from tui_eval.engine.run_checks import check_given, check_judge, check_limits
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.selection import NothingToRun, SelectionError
from tui_eval.engine.wants import wants_of_judging
from tui_eval.formats import reading
from tui_eval.guard.private import cache_home
from tui_eval.guard.trust import Trust
from tui_eval.guard.trust_store import trust_for
from tui_eval.model import Attempt, Case, Problem
from tui_eval.store import missing_cases
from tui_eval.store.printed_commands import rescore_command
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError, is_alive
from tui_eval.store.schema import RunInfo
from tui_eval.store.shard_runs import LOOKED_AT, is_looked_at


def rescore(
    folder: Path,
    *,
    overrides: RunRequest,
    on_done: Callable[[Job, int, Attempt], None] | None = None,
    so_far: SoFar | None = None,
) -> ActiveRun:
    """Prepare the judging of every recorded answer with the assertions of today's files; a case that is no
    longer there is judged as it was. `overrides` gives concurrency, timeout, judge and trust, and may narrow
    it to some cases (`case_ids`): then to all attempts of them that count, those of other runs too, or
    (`cells`) to columns of them. `so_far` is told while it is prepared.

    Raises:
        NothingToRun: the run has no answers, or a suite file cannot be read whole, with its problems.
        StoreError: there is no such run, or it is being executed: half of it would stand for the whole.
        SelectionError, ConfigError: one clear line each.
    """
    root = root_of(folder)
    if _opened_file(folder):
        root = find_root([Path.cwd()])[0]
        folder = _recorded_here(Store(root), folder)
    if is_looked_at(folder):
        raise SelectionError(LOOKED_AT)
    if is_alive(folder):
        raise StoreError(
            f"run {folder.name} goes on: judge it again when it has ended, or name an earlier run (tui-eval runs)"
        )
    if overrides.case_ids is None:
        info, recorded = answers_of_run(Store(root), folder, so_far)
    else:
        ids = whole_ids(folder, overrides.case_ids)
        overrides = msgspec.structs.replace(overrides, case_ids=sorted(ids))
        info, recorded = answers_of_cases(Store(root), folder, ids)
        recorded = _in_columns(recorded, overrides)
    unanswered = [one for one in recorded if not one.answers]
    recorded = [one for one in recorded if one.answers]
    if not recorded:
        raise NothingToRun(f"run {info.id} has no recorded answers to judge")
    request = _request(info, overrides)
    config = load([root], request.config_file, root=root)
    check_limits(config)
    trust = trust_for(config.root, request.trust, request.agreed)
    read_withheld(config, trust)
    today, settings, broken, problems = _today({one.case.suite for one in recorded}, config, trust)
    _refuse_unreadable(recorded, today, broken, problems)
    environment = RunContext(config, trust)
    environment.answers = kept_answers(config, trust, request)  # of judges: what they say now replaces that
    check_judge(request, environment, typed=overrides.judge)
    judged = _by_todays_files(recorded, today, settings, request, environment, info.id, so_far)
    check_given(overrides.agreed, [one.job for one in judged], config, trust)
    _refuse_without_trust(folder, info, judged, request, environment)
    problems = [*config.problems, *problems]  # a setting that was left out may be what its verdicts rest on
    writer = new_writer(Store(root), config, request, [one.job for one in judged], environment)
    whole = overrides.case_ids is None
    unread = missing_cases.unread_with(info, problems)
    if lacks := unread | (missing_cases.gap_kept(info) if whole else {}):
        writer.info.provenance |= lacks
        writer.update_info()
    jobs, references = planned(writer, environment, judged, unanswered)
    active = ActiveRun(config, request, jobs, environment, writer, problems, on_done)
    active.tickets = active.runner.tickets(references)
    notes = [of_transformed(judged), of_former_agents(judged, Fingerprints(config, trust))]
    if left := never_ran(folder) if whole else sum(len(one.without) for one in recorded):
        what = "attempt of it was" if left == 1 else "attempts of it were"
        notes.insert(
            0, f"judges the answers of run {info.id} again; {left:,} {what} never run, and have none"
        )
    active.noted = list(filter(None, notes))
    writer.flush()
    return active


def _by_todays_files(
    recorded: Sequence[AnsweredAttempt],
    today: Mapping[str, Case],
    settings: dict[str, dict[str, Any]],
    request: RunRequest,
    environment: RunContext,
    run_id: str,
    so_far: SoFar | None,
) -> list[Judged]:
    """A job for each recorded answer, by the case as it is in today's files."""
    config, trust = environment.config, environment.trust
    now = of_today((one.case for one in recorded), today.values())
    judged: list[Judged] = []
    for number, one in enumerate(recorded):
        if so_far is not None:
            so_far("looking up today's assertions", number, len(recorded))
        row = one.row
        # Its column as it was recorded; nobody has typed its agent now.
        cells = [RequestCell(row.case_id, row.agent, row.model)]
        own = msgspec.structs.replace(request, agents=[], models=[], cells=cells)
        case = now.get((one.case.case_id, one.case.content_hash), one.case)
        if case.case_id != row.case_id:
            case = msgspec.structs.replace(case, case_id=row.case_id)
        jobs = plan([case], config, own, dict, settings, trust=trust)
        judged.append(judged_by(jobs, one, run_id))
    return judged


def _refuse_without_trust(
    folder: Path, info: RunInfo, judged: Sequence[Judged], request: RunRequest, environment: RunContext
) -> None:
    """See that judging needs no trust that nobody gives now.

    Raises:
        SelectionError: it does, with the command that gives it.
    """
    config, trust = environment.config, environment.trust
    if wanted := wants_of_judging([one.job for one in judged], config, trust):
        again = rescore_command(
            info.id if folder.name == info.id else folder,
            {**msgspec.to_builtins(request), "agreed": [*request.agreed, *wanted]},
        )
        raise SelectionError(f"judging again needs trust: {'; '.join(wanted)}; look at it, then: {again}")


def whole_ids(folder: Path, case_ids: Sequence[str]) -> set[str]:
    """These cases of a run with the other columns of tests that compare them: one alone has none to lose against."""
    ids = set(case_ids)
    with closing(RunReader(folder)) as reader:
        rows = reader.cases()
        asked = [case for row in rows if row.case_id in ids and compares(case := reader.case(row.id))]
        marks, suites = {test_mark(case) for case in asked}, {case.suite for case in asked}
        for row in rows:
            if row.suite in suites and row.case_id not in ids and test_mark(reader.case(row.id)) in marks:
                ids.add(row.case_id)
    return ids


def _in_columns(recorded: list[AnsweredAttempt], asked: RunRequest) -> list[AnsweredAttempt]:
    """Those of the columns that are asked for; of cases of which no column is, all."""
    columns = {(cell.case_id, cell.agent, cell.model or None) for cell in asked.cells or ()}
    named = {case_id for case_id, _, _ in columns}
    return [
        one
        for one in recorded
        if one.row.case_id not in named or (one.row.case_id, one.row.agent, one.row.model or None) in columns
    ]


def _refuse_unreadable(
    recorded: list[AnsweredAttempt], today: dict[str, Case], broken: set[str], problems: list[Problem]
) -> None:
    """Say before anything is kept that cases are missing from suites that have errors: they may be in them.

    Raises:
        NothingToRun: some are.
    """
    missing = [one.case for one in recorded if one.case.suite in broken and one.case.case_id not in today]
    if missing:
        suites = list(dict.fromkeys(case.suite for case in missing))
        cases = "1 case" if len(missing) == 1 else f"{len(missing):,} cases"
        raise NothingToRun(
            f"nothing was judged: {', '.join(suites)} {'has' if len(suites) == 1 else 'have'} errors, and {cases} of "
            "the run would be judged by what stood there then; mend that, then judge again",
            problems,
        )


def _opened_file(folder: Path) -> bool:
    return folder.is_relative_to(cache_home())


def _recorded_here(store: Store, folder: Path) -> Path:
    """The run itself of which a results file was written, where it is in the store and has the answers that
    the file has: there is more of them than in the file (sly_data is private). Else the file's."""
    own = store.folder_of(folder.name)
    with suppress(StoreError, OSError), closing(RunReader(folder)) as file, closing(RunReader(own)) as run:
        if file.info().id == run.info().id and _answered(file) == _answered(run):
            return own
    return folder


def _answered(reader: RunReader) -> list[tuple[Any, ...]]:
    """What each attempt of a run answered, and what came of it, by which it is known again."""
    return sorted(
        (
            case.case_id, case.agent, case.model or "", row.attempt, row.outcome or "", round(row.started_at or 0.0, 3),
            row.answer, row.input_tokens or 0, row.output_tokens or 0, row.tool_calls or 0,
        )
        for case, rows in reader.by_case()
        for row in rows
    )  # fmt: skip


def _request(info: RunInfo, overrides: RunRequest) -> RunRequest:
    """What the run was asked for, without filters and limits that concern the asking of agents."""
    given = request_of(info)
    return RunRequest(
        paths=given.paths,
        case_ids=overrides.case_ids,
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
        env_files=overrides.env_files,
        trust=overrides.trust,
        agreed=overrides.agreed,
        command=overrides.command,
        linked_to=info.id,
        rescores=info.id,
        anew=True,
    )


def _today(
    paths: set[str], config: Config, trust: Trust
) -> tuple[dict[str, Case], dict[str, dict[str, Any]], set[str], list[Problem]]:
    """Today's cases by id, the suites' settings, the suites with errors, and what is wrong with their files."""
    cases: dict[str, Case] = {}
    settings: dict[str, dict[str, Any]] = {}
    broken: set[str] = set()
    problems: list[Problem] = []
    for path in sorted(paths):
        if not os.path.isfile(config.root / path):
            continue
        suite = reading.load(config.root / path, config, trust)
        settings[suite.path] = suite.settings
        problems += suite.problems
        if any(problem.level == "error" for problem in suite.problems):
            broken.add(path)
        cases.update((case.case_id, case) for case in suite.cases)
    return cases, settings, broken, problems
