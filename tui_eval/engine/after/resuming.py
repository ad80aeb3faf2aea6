"""Going on with a run that was interrupted: only attempts without a result are executed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tui_eval.config.project import CONFIG_NAME, Config, find_root, load, read_withheld
from tui_eval.engine.active_run import ActiveRun, cost_limit
from tui_eval.engine.after.row_comparison import recall
from tui_eval.engine.attempt.continuing import place
from tui_eval.engine.changed import changed_since
from tui_eval.engine.fingerprints import Fingerprints
from tui_eval.engine.kept_cases import with_secrets
from tui_eval.engine.places.chosen_place import check_place, check_sent, place_name
from tui_eval.engine.plan import Job, plan, same_column
from tui_eval.engine.prepare import kept_answers, typed_options
from tui_eval.engine.request import ReachedLimit, RunRequest, request_of
from tui_eval.engine.run_checks import check_given, check_judge, check_limits, check_vars
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.run_hooks import SuiteHooks
from tui_eval.engine.runner import Spent
from tui_eval.engine.selection import LimitReached, NothingToRun, SelectionError
from tui_eval.engine.wants import wants_of_jobs
from tui_eval.formats import format_of, reading
from tui_eval.guard import figures
from tui_eval.guard.figures import usd
from tui_eval.guard.secrets import MASK, in_addresses
from tui_eval.guard.spelling import some_of
from tui_eval.guard.trust import Trust
from tui_eval.guard.trust_store import trust_for
from tui_eval.model import NOT_COMPARED, Attempt, Case, Suite
from tui_eval.store.clock_jumps import seen_ahead
from tui_eval.store.missing_cases import is_only_named, unread_with
from tui_eval.store.printed_commands import by_typing, rescore_command, resume_command, run_command
from tui_eval.store.reader import RunReader
from tui_eval.store.rescued import bring_back
from tui_eval.store.run_folders import SET_BACK_MOST, STATE, Store, StoreError, is_alive
from tui_eval.store.schema import CUT_OFF, CUT_OFF_PARTS, PLACE_LOST, AttemptRow, RunInfo, StoredCase
from tui_eval.store.shard_runs import (
    COST_LIMIT,
    LOOKED_AT,
    add_unfinished,
    counts_in,
    is_looked_at,
    noted_in,
    unfinished_in,
)
from tui_eval.store.summary import unfinished_tokens
from tui_eval.store.writer import RunWriter


def resume(
    folder: Path,
    *,
    overrides: RunRequest | None = None,
    on_done: Callable[[Job, int, Attempt], None] | None = None,
) -> ActiveRun:
    """Go on with a run that was interrupted: only attempts without a result are executed.

    The cases are those of the run as they were; agents come from today's configuration.
    `overrides` replaces concurrency, timeout, judge, cost limit and trust where given, and takes `fail_fast` back.
    The run's limits are those of all of it: what was spent before counts.

    Raises:
        NothingToRun: every attempt has a result.
        SelectionError: it cannot be done so that the run becomes what it was to be; nothing has been touched.
        StoreError: there is no such run, or another process executes it.
    """
    overrides = overrides or RunRequest()
    if is_looked_at(folder):
        raise SelectionError(LOOKED_AT)
    if is_alive(folder):  # whatever else it would need, that comes first
        raise StoreError(f"run {folder.name} is being executed by another process: it goes on already")
    _refuse(folder, overrides)
    bring_back(folder)
    record = _record_of(folder)
    info, rows, attempts = record.info, record.rows, record.attempts
    trusted_then = request_of(info).trust and not overrides.trust
    request, this_time = _asked_for_now(info, overrides)
    config = _config_of_today(record, request)
    spent = _spent_before(attempts, rows, info)
    _refuse_at_a_limit(folder, info, request, attempts, spent, cost_limit(request, config))
    check_vars(request)
    config.typed = typed_options(request)
    trust = trust_for(config.root, request.trust, request.agreed)
    check_place(request, config, trust, typed=bool(overrides.on) and not overrides.on_recorded)
    read_now = _models_read(config, trust)
    loaded = {
        path: reading.load(config.root / path, config, trust)
        for path in {case.suite for case in record.cases.values() if format_of(case.format).needs_suite}
    }
    settings = {path: suite.settings for path, suite in loaded.items()}
    environment = RunContext(config, trust)
    environment.answers = kept_answers(config, trust, request)
    cases = with_secrets(record.cases, rows.values(), loaded, environment)
    environment.hooks = hooks = SuiteHooks(settings, config, trust, environment.hosts)
    hooks.go_on(folder, rows, attempts, cases)
    jobs, references, renamed = _jobs_left(record, cases, request, settings, environment, read_now)
    check_given(overrides.agreed, jobs, config, trust)
    check_sent(request, jobs, environment, trust)
    if this_time or trusted_then:
        _refuse_without_trust(record, jobs, environment, overrides, trusted_then=trusted_then)
    if request.continue_from is not None:
        place(jobs, request.continue_from, Store(config.root))
    check_judge(request, environment, typed=overrides.judge)
    hooks.mark_failed(jobs)
    earlier = recall(environment, folder, jobs)
    cut_off, note = _cut_off(info, record.left, known=_are_known(jobs, environment))
    environment.begin(_runs_again(info, attempts))
    changes = _changes(info, rows, attempts, jobs, loaded, config, trust)
    noted = noted_in(info)
    info.note = "; ".join(filter(None, (note, changes, *noted)))
    info.provenance |= unread_with(info, config.problems)
    info.provenance |= seen_ahead(Store(config.root), info, time.time(), goes_on=True)
    writer = RunWriter(folder, info)
    for ref, model in renamed.items():
        writer.model(ref, model)
    active = ActiveRun(config, request, jobs, environment, writer, config.problems, on_done)
    active.runner.earlier = earlier
    active.runner.go_on_from(spent)
    active.tickets = active.runner.tickets(references)
    active.noted, active.going_on = noted, "; ".join(filter(None, (note, changes)))
    active.said_first += [line for line in (cut_off, changes) if line]
    return active


@dataclass(frozen=True, slots=True)
class _Record:
    """What a run's folder has of it: its cases by their numbers (`cases`: those of attempts that are left),
    its attempts, and those without a result that can be executed."""

    folder: Path
    info: RunInfo
    rows: dict[int, StoredCase]
    attempts: list[AttemptRow]
    left: list[AttemptRow]
    cases: dict[int, Case]


def _record_of(folder: Path) -> _Record:
    """Read what a run has left to execute.

    Raises:
        NothingToRun: every attempt has a result.
        SelectionError: what was to be run is not in the record.
    """
    with closing(RunReader(folder)) as reader:
        info = reader.info()
        rows = {row.id: row for row in reader.cases()}
        attempts = reader.attempts()
        left = [row for row in attempts if row.state != "done" and not is_only_named(rows[row.case_ref])]
        cases = {ref: reader.case(ref) for ref in {row.case_ref for row in left}}
    if not rows:
        raise SelectionError(
            f"run {info.id} ended before what it was to run was written down: nothing of it has run; start it anew "
            f"with tui-eval run"
        )
    if not left:
        if any(row.message == NOT_COMPARED for row in attempts):
            words = "has its answer; what compares columns is still to be judged"
            raise NothingToRun(f"run {info.id}: every attempt {words}: tui-eval rescore {info.id}")
        raise NothingToRun(f"run {info.id} is complete: every attempt has a result")
    return _Record(folder, info, rows, attempts, left, cases)


def _config_of_today(record: _Record, request: RunRequest) -> Config:
    """Today's configuration of the project that a run is of.

    Raises:
        SelectionError: the project is another one.
        ConfigError: a limit in it cannot be read.
    """
    root = root_of(record.folder)
    config = load([root], request.config_file, root=root)
    check_limits(config)
    suites = dict.fromkeys(row.suite for row in record.rows.values())
    if config.file is None and not any(os.path.exists(config.root / suite) for suite in suites):
        raise SelectionError(
            f"run {record.info.id}: {root} is not the project that it was started in: "
            f"{_elsewhere(record.folder, record.info)}"
        )
    return config


class _JobsLeft(NamedTuple):
    """The jobs that are left, the numbers of the attempts of each, and, by case, what a model is called by now that had
    another name."""

    jobs: list[Job]
    references: list[list[int]]
    renamed: dict[int, str]


def _jobs_left(
    record: _Record,
    cases: Mapping[int, Case],
    request: RunRequest,
    settings: dict[str, dict[str, Any]],
    environment: RunContext,
    read_now: Mapping[str, str],
) -> _JobsLeft:
    """A job for each attempt that is left, asked of whom it was to be asked. `read_now`: as `_models_read` gives it.

    Raises:
        SelectionError: one of them cannot be asked any more.
    """
    config, trust = environment.config, environment.trust
    whole = msgspec.structs.replace(
        request, shard=None, case_ids=None, select=[], filter_pattern=None, filter_metadata=[],
        filter_first_n=None, failed_only=False, changed_only=False, filter_range=None, filter_sample=None, filter_prompts=None,
        filter_providers=None, filter_failing=None, filter_failing_only=None, filter_errors_only=None,
    )  # fmt: skip
    found = _JobsLeft([], [], {})
    left: dict[int, list[AttemptRow]] = {}
    for attempt in record.left:
        left.setdefault(attempt.case_ref, []).append(attempt)
    for ref, case in cases.items():
        row = record.rows[ref]
        again = plan([case], config, whole, dict, settings, trust=trust)
        model = read_now.get(row.model or "", row.model)
        job = next((job for job in again if same_column(job, row.agent, model)), None)
        if job is None or (job.spec is None and _was_there(row.agent, record.info)):
            raise SelectionError(_not_to_be_asked(record, row, again, config))
        if model != row.model and job.model:
            found.renamed[ref] = job.model
        for attempt in left[ref]:
            found.jobs.append(
                msgspec.structs.replace(
                    job, attempts=1, first_attempt=attempt.attempt, of_attempts=row.attempts
                )
            )
            found.references.append([attempt.id])
    return found


def _not_to_be_asked(record: _Record, row: StoredCase, again: Sequence[Job], config: Config) -> str:
    """Why the agent of a case cannot be asked any more, of which today's configuration makes the jobs `again`."""
    info = record.info
    asked = f"{row.agent} with {row.model}" if row.model else row.agent
    errors = [str(problem) for problem in config.problems if problem.level == "error"]
    if said := next((one.problem for one in again if any(text in one.problem for text in errors)), ""):
        return f"run {info.id}: {asked} cannot be asked: {said}"
    where = config.file or config.root / CONFIG_NAME
    ways = "write it there again as it was"
    if record.folder.parents[1].name != STATE:  # it may be another project's
        ways += f", or {_elsewhere(record.folder, info)}"
    return f"run {info.id}: its agent {asked} is not configured in {where} any more: {ways}"


def _refuse_without_trust(
    record: _Record,
    jobs: Sequence[Job],
    environment: RunContext,
    overrides: RunRequest,
    *,
    trusted_then: bool,
) -> None:
    """See that nothing of what is left needs trust that the run had when it was started, and nobody gives now.

    Raises:
        SelectionError: some of it does, with the command that gives it.
    """
    info = record.info
    wanted = wants_of_jobs(jobs, environment.config, environment.trust, typed_judge=overrides.judge)
    if not wanted:
        return
    told = resume_command(
        info.id if record.folder.name == info.id else record.folder,
        {**info.options, "agreed": [*overrides.agreed, *wanted]},
    )
    raise SelectionError(
        f"run {info.id} was started with {'--trust' if trusted_then else 'what was agreed to for that time'}, and "
        f"would be without it: {'; '.join(wanted)}; go on with: {told}"
    )


def _was_there(agent: str, info: RunInfo) -> bool:
    """Whether an agent was there when the run began: others were errors from the start."""
    known = info.provenance.get("agents")
    return isinstance(known, dict) and any(
        name == agent or name.startswith(f"{agent} (") for name in known
    )  # `changed.marked_as`


def _elsewhere(folder: Path, info: RunInfo) -> str:
    """How a run goes on that is not where its project is: what it names (agents, files) is looked for there."""
    git = info.provenance.get("git")
    commit = git.get("commit") if isinstance(git, dict) else None
    at = f" (commit {commit[:12]})" if isinstance(commit, str) else ""
    if folder.parents[1].name == STATE:  # it goes by the folder that this lies in
        return (
            f"copy {folder} into {STATE}/runs of a checkout of that{at}, and type there: "
            f"{resume_command(info.id, info.options)}"
        )
    return (
        f"go into a checkout of its project{at}, and type there: "
        f"{resume_command(folder.resolve(), info.options)}"
    )


def _are_known(jobs: Sequence[Job], environment: RunContext) -> bool:
    """Whether answers that one of the agents gave before are in the cache, and taken from there."""
    answers = environment.answers
    if answers is None or not answers.reads:
        return False
    return any(job.spec is not None and answers.of(job.spec) for job in jobs)


def _cut_off(info: RunInfo, open_attempts: Sequence[AttemptRow], known: bool) -> tuple[str, str]:
    """Of a run that was killed, or lost its place, what is asked again now, and what was in all the times
    that it went on (for its note); empty of one that was interrupted otherwise: it has put that back. The
    record is written behind the run: what began, or ended, in the moment before is not in it. `known`:
    answers are in the cache."""
    counts = counts_in(info, CUT_OFF)
    merged = counts_in(info, CUT_OFF_PARTS)
    lost = info.provenance.pop(PLACE_LOST, 0)
    killed = info.finished_at is None and info.paused_at is None
    if merged:  # its own attempts had not begun
        new = merged
        del info.provenance[CUT_OFF_PARTS]
    elif killed or (lost and isinstance(lost, int)):
        count = sum(row.state in ("running", "retrying") for row in open_attempts) if killed else lost
        new = [count]
        add_unfinished(info.provenance, unfinished_tokens(open_attempts), 0.0)
    else:
        return "", _asked_again(counts, known)
    info.provenance[CUT_OFF] = [*counts, *new]
    return _asked_again(new, known), _asked_again([*counts, *new], known)


def _asked_again(counts: Sequence[int], known: bool) -> str:
    if not counts:
        return ""
    times = f", {len(counts):,} times" if len(counts) > 1 else ""
    times += ", but for what the cache has of it" if known else ""
    if not (count := sum(counts)):
        return (
            f"asked again: what had been asked, if anything, in the moment before the run was cut off{times}; what "
            "that cost is not known"
        )
    were = "1 attempt that was" if count == 1 else f"{count:,} attempts that were"
    they = "it" if count == 1 else "they"
    return f"asked again: at least {were} under way when the run was cut off{times}; what {they} cost before is not known"


def _changes(
    info: RunInfo,
    rows: Mapping[int, StoredCase],
    attempts: Sequence[AttemptRow],
    jobs: Sequence[Job],
    loaded: Mapping[str, Suite],
    config: Config,
    trust: Trust,
) -> str:
    """What changed since the results that the run keeps, in one line with how to run all of it anew; empty:
    nothing that can be seen."""
    kept = [rows[row.case_ref] for row in attempts if row.state == "done" and row.case_ref in rows]
    if not kept:
        return ""
    agents = {row.agent for row in kept}
    suites: dict[str, Suite] = {}
    unread: list[str] = []
    hashes = {row.case_id: row.content_hash for row in rows.values()}
    for path in dict.fromkeys(row.suite for row in rows.values()):
        own = Trust(granted=trust.granted, agreed=trust.agreed)
        suites[path] = suite = loaded.get(path) or reading.load(config.root / path, config, own)
        # It reads otherwise than it did in the run, or the run has what its hooks made of it.
        hooked = any(format_of(suite.format).hook_files(suite.settings))
        why = "needs trust" if own.wanted else "its hooks make its cases" if hooked else ""
        if why and any(hashes.get(one.case_id, one.content_hash) != one.content_hash for one in suite.cases):
            unread.append(f"{path} ({why})")
            del suites[path]
    found = changed_since(
        info.provenance,
        [job for job in jobs if job.agent in agents],
        Fingerprints(config, trust),
        hashes,
        suites.values(),
    )
    told = [f"not looked at for changes: {some_of(unread, _NAMED)}"] if unread else []
    if not found:
        return "; ".join(told)
    results = f"{len(kept):,} kept result{'s' * (len(kept) != 1)}"
    anew = run_command([config.root / path for path in info.paths], config.root, info.options)
    told.insert(0, f"changed since the {results} of this run: {some_of(found, _NAMED)}")
    return "; ".join([*told, f"to run all of it anew: {anew}"])


_NAMED = 3
"""Of what changed, what is named."""


def _asked_for_now(info: RunInfo, overrides: RunRequest) -> tuple[RunRequest, list[str]]:
    """What the run was asked for, with what is said this time, which the run's options keep; and what was agreed to
    before, for that time alone."""
    request = request_of(info)
    request.concurrency = overrides.concurrency or request.concurrency
    request.timeout = overrides.timeout or request.timeout
    request.judge = overrides.judge or request.judge
    request.agents = [_as_typed(name, overrides.agents) or name for name in request.agents]
    request.vars = {
        name: overrides.vars.get(name, value) if MASK in value else value
        for name, value in request.vars.items()
    }
    request.on = overrides.on or request.on
    if overrides.max_cost is not None:
        request.max_cost = info.options["max_cost"] = overrides.max_cost
    if overrides.no_fail_fast:
        request.fail_fast = False
        info.options.pop("fail_fast", None)
    # What a run's folder says of trust was not said by the person: it can come from anywhere.
    request.trust = overrides.trust
    before, request.agreed = request.agreed, overrides.agreed
    info.note = ""  # why it was interrupted; that is over
    info.provenance.pop(COST_LIMIT, None)
    # The commands printed from now on need what this time needed.
    if overrides.trust:
        info.options["trust"] = True
    if overrides.agreed:
        info.options["agreed"] = list(dict.fromkeys([*before, *overrides.agreed]))
    if overrides.judge:
        info.options["judge"] = in_addresses(overrides.judge)
    if overrides.on:
        info.options["on"] = in_addresses(overrides.on)
    return request, before


def _as_typed(recorded: str, typed: Sequence[str]) -> str | None:
    """What is typed now for an agent as it was recorded, where a secret in its address is masked."""
    return next((one for one in typed if recorded in (one, in_addresses(one))), None)


def _runs_again(info: RunInfo, attempts: list[AttemptRow]) -> float:
    """Let a run be at work again; the moment at which it was last."""
    ended = (row.started_at + (row.duration_ms or 0.0) / 1000 for row in attempts if row.started_at)
    now = time.time()
    last = max((moment for moment in ended if moment < now + SET_BACK_MOST), default=now)
    # Nothing went on since then; one that was killed has not said when: it was after its last attempt began or ended.
    info.paused_for += max(0.0, now - (info.paused_at or info.finished_at or last))
    info.state, info.finished_at, info.paused_at = "running", None, None
    return last


def _models_read(config: Config, trust: Trust) -> dict[str, str]:
    """Read what of nao_config.yaml has been trusted meanwhile; the models by what they were called before, as
    `openai:${MODEL}`, where that has another name now."""
    before = config.nao.models if config.nao is not None else []
    read_withheld(config, trust)
    now = config.nao.models if config.nao is not None else []
    if len(now) != len(before):
        return {}
    return {str(old): str(new) for old, new in zip(before, now, strict=True) if old != new}


def _refuse(folder: Path, overrides: RunRequest) -> None:
    """Say before anything is touched that going on like this would not do what the run was started for. What
    its record says that somebody typed then is typed by nobody now: the record may be anybody's.

    Raises:
        SelectionError: what it needs, with the command that gives it.
        StoreError: there is no such run.
    """
    with closing(RunReader(folder)) as reader:
        info = reader.info()
    request = request_of(info)
    if request.rescores:
        raise SelectionError(
            f"run {info.id} judges the answers of {request.rescores} again and asks no agent; do that anew: "
            f"{rescore_command(request.rescores, info.options)}"
        )
    if request.continue_from is not None and request.continue_from.turn is None:
        raise SelectionError(
            f"run {info.id} judges recorded answers again and asks no agent; do that anew: . on the case, or "
            f"{rescore_command(Path(request.continue_from.run).name, info.options)}"
        )
    root = root_of(folder)
    told = resume_command(info.id if folder.name == info.id else folder, info.options)
    for name, value in request.vars.items():
        if MASK in value and name not in overrides.vars:
            raise SelectionError(
                f"run {info.id} was started with --var {name}, whose value is a secret and in no record; go on with: {told}"
            )
    known = load([root], request.config_file, root=root).agents
    masked = [_as_typed(name, overrides.agents) for name in request.agents if MASK in name]
    if request.judge and MASK in request.judge:
        masked.append(overrides.judge)
    if trust_for(root, overrides.trust).granted and all(masked):
        return
    for name in request.agents:
        if name not in known and by_typing(name) and _as_typed(name, overrides.agents) is None:
            raise SelectionError(
                f"run {info.id} was started with --agent {name}, {_why_typed(name)}; go on with: {told}"
            )
    judge = request.judge
    if judge is not None and judge not in known and by_typing(judge) and overrides.judge is None:
        raise SelectionError(
            f"run {info.id} was started with --judge {judge}, {_why_typed(judge)}; go on with: {told}"
        )


def _why_typed(name: str) -> str:
    return "a part of which is in no record" if MASK in name else "which is trusted only where it is typed"


def _spent_before(attempts: Sequence[AttemptRow], cases: Mapping[int, StoredCase], info: RunInfo) -> Spent:
    """What the run's results came to so far."""
    spent = Spent(unfinished_in(info)[1])
    for row in attempts:
        if row.state != "done":
            continue
        spent.cost += row.judge_cost or 0.0
        spent.judges_without_cost += row.judge_calls if row.judge_cost is None else 0
        if row.judges:
            continue
        spent.cost += row.cost or 0.0
        used = (row.input_tokens or 0) + (row.output_tokens or 0)
        answered = bool(used) or row.outcome in ("passed", "failed")
        spent.without_cost += row.cost is None and not row.cached and answered
        if used and row.started_at is not None and row.case_ref in cases:
            ended = row.started_at + (row.duration_ms or 0.0) / 1000
            spent.tokens.setdefault(cases[row.case_ref].agent, []).append((ended, used))
    return spent


def _refuse_at_a_limit(
    folder: Path,
    info: RunInfo,
    request: RunRequest,
    attempts: Sequence[AttemptRow],
    spent: Spent,
    max_cost: float | None,
) -> None:
    """Say before anything is asked that a limit of the run has been reached.

    Raises:
        LimitReached: it has, with the command that goes on all the same.
    """
    words = resume_command(info.id if folder.name == info.id else folder, info.options)
    if max_cost is not None and figures.reaches(spent.cost, max_cost):
        higher = float(f"{2 * max(max_cost, spent.cost):.3g}")
        raise LimitReached(
            f"run {info.id}: its cost limit of {max_cost:g} USD is reached ({usd(spent.cost, '')} spent so far); to go on "
            f"with a higher one, for all of the run: {words} --max-cost {higher:g}",
            ReachedLimit(max_cost, spent.cost, higher),
        )
    bad = [row for row in attempts if row.state == "done" and row.outcome in ("failed", "error")]
    if request.fail_fast and bad:
        raise LimitReached(
            f"run {info.id} was to end at the first attempt that does not pass (--fail-fast), and {len(bad)} did not; "
            f"to go on all the same: {words} --no-fail-fast",
            ReachedLimit(bad=len(bad)),
        )


def lost_place_of(folder: Path) -> str:
    """The place that a run was lost with, where it would go back there now; empty: it would not.

    Raises:
        ConfigError, StoreError: that cannot be known.
    """
    with closing(RunReader(folder)) as reader:
        info = reader.info()
    if PLACE_LOST not in info.provenance:
        return ""
    request, root = request_of(info), root_of(folder)
    on = place_name(request, load([root], request.config_file, root=root))
    return "" if on == "here" else on


def root_of(folder: Path) -> Path:
    """The project root of a run's folder; of one that is kept elsewhere, that of the current folder."""
    if folder.parents[1].name == STATE:
        return folder.parents[2]
    return find_root([Path.cwd()])[0]
