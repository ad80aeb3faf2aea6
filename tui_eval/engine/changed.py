"""`--changed`: of the planned columns those whose case, agent, files or settings changed since they last passed."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tui_eval.agents.base import AgentError
from tui_eval.config.project import (
    AgentSpec,
    Config,
    ConfigError,
    rule_for,
)
from tui_eval.engine import grader_choice
from tui_eval.engine.after.row_comparison import compares
from tui_eval.engine.fingerprints import (
    MOST_FILES,
    Fingerprints,
    digest,
    without_secrets,
)
from tui_eval.engine.plan import Job, databases_of
from tui_eval.formats import format_of
from tui_eval.guard.spelling import some_of
from tui_eval.model import CODE_TYPES, OWN_JUDGES, Assertion, Case, Suite
from tui_eval.store import judged_under
from tui_eval.store.case_state import Column, by_column, column_of
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError, time_in
from tui_eval.store.schema import CaseHistory, RunSummary

Provenance = Mapping[str, Any]

_BY_ANY = "not known is which variables they read (`env` without a name in a template, or `process.env`)"


class UnreadRuns:
    """Runs that are there and cannot be read: what they came to, and of which cases, nobody knows. A pass before one of
    them may not be the last result; what has been run since it is."""

    def __init__(self, runs: Iterable[RunSummary]) -> None:
        now = time.time()
        # One that is ahead of the clock is older than what has a larger id all the same.
        unread = (run for run in runs if run.unread and not run.never_begun)
        self._begun = {run.id: run.started_at if run.started_at <= now else 0.0 for run in unread}
        self.all = list(self._begun)

    def since(self, result: CaseHistory) -> list[str]:
        """Those that may have judged its case after this result. A merged run has an id of later, and the times of its
        parts."""
        return [
            run_id
            for run_id, begun in self._begun.items()
            if (run_id > result.run_id and time_in(run_id)) or begun > result.finished_at
        ]

    def beside(self, history: Iterable[Sequence[CaseHistory]]) -> list[str]:
        """Those that may have judged what passed, of the cases with these results (newest first)."""
        if not self.all:
            return []
        newest = (results[0] for one in history for results in by_column(one).values())
        found = {run_id for one in newest if one.outcome == "passed" for run_id in self.since(one)}
        return [run_id for run_id in self.all if run_id in found]


def not_known(unread: Sequence[str], told_by: str = "tui-eval runs") -> str:
    """That the results of these runs are not known, in words; empty where there are none. `told_by` says why."""
    if not unread:
        return ""
    whose = "is that of a run" if len(unread) == 1 else "are those of runs"
    return f"not known {whose} that cannot be read: {some_of(unread, 3)} ({told_by} says why)"


def changed(
    jobs: Sequence[Job],
    history: Mapping[str, Sequence[CaseHistory]],
    marks: Fingerprints,
    settings: VerdictSettings,
    provenance_of: Callable[[str], Provenance],
    unread: UnreadRuns,
) -> tuple[list[Job], str]:
    """Those of the jobs that are to run, in their order: what did not pass last time, or never ran, among them. Of
    columns that are compared with each other, and rows that hand on to later ones, all run where one does. And how many
    of them run since a run after their pass cannot be read, or since nobody knows what they read, in words.

    Args:
        history: The results of each case, newest first (`Index.latest`).
        provenance_of: What a run says of where its results come from, by its id.
    """
    from tui_eval.engine.shards import group_keys  # imported late: few runs ask for it

    keys = group_keys(job.case for job in jobs)
    wanted: set[str] = set()
    alone: set[int] = set()
    in_doubt, unnamed, hidden_by = 0, 0, set[str]()
    for number, job in enumerate(jobs):
        results = [
            one
            for one in history.get(job.case.case_id, ())
            if column_of(one) == Column(job.agent, job.model or "")
        ]
        passed = _as_it_passed(job, results, marks, settings, provenance_of)
        later = unread.since(results[0]) if passed else []
        in_doubt += bool(later)
        hidden_by.update(later)
        by_any = passed and not later and marks.variables_of(job) is None
        unnamed += by_any
        if not passed or later or by_any:
            alone.add(number)
            if keys[number].joined or compares(job.case):
                wanted.add(keys[number].text)
    taken = [
        job
        for number, job in enumerate(jobs)
        if number in alone or (keys[number].text in wanted and (keys[number].joined or compares(job.case)))
    ]
    unknown = not_known([run_id for run_id in unread.all if run_id in hidden_by])
    said = [f"asks {in_doubt:,} that passed, too: {unknown}"] if unknown else []
    if unnamed:
        said.append(f"asks {unnamed:,} that passed, too: {_BY_ANY}")
    return taken, "; ".join(said)


def _as_it_passed(
    job: Job,
    results: Sequence[CaseHistory],
    marks: Fingerprints,
    settings: VerdictSettings,
    provenance_of: Callable[[str], Provenance],
) -> bool:
    """Whether a column passed last time, and everything that it rests on is as it was."""
    newest = results[0] if results else None
    if newest is None or job.spec is None or job.problem or newest.outcome != "passed":
        return False
    if (
        newest.content_hash != job.case.content_hash
        or newest.attempts < job.attempts
        or newest.passed < job.required
    ):
        return False
    if newest.duration_ms is not None and newest.duration_ms > job.timeout * 1000:
        return False  # it would not be in time
    asked = provenance_of(newest.judges or newest.run_id)  # a judgement asks no agent
    agents = asked.get("agents")
    if not isinstance(agents, dict) or mark_then(agents, job, marks.config) != marks.agent(job.spec):
        return False
    if marked_as(job, marks.config) in _rewritten(asked):
        return False  # edited, and put back
    files = provenance_of(newest.run_id)
    if not settings.same(job, files.get(judged_under.SETTINGS)):
        return False
    known = files.get("files", {})
    if files.get("too_many_files") or not isinstance(known, dict):
        return False
    now, names = marks.files_of(job)
    if names and _mapping(files, judged_under.FILE_SETS).get(names) != digest(sorted(now)):
        return False  # one is gone, or has come
    written = _rewritten(files)
    return all(known.get(path) == mark and path not in written for path, mark in now.items())


def _rewritten(facts: Provenance) -> list[Any]:
    found = facts.get(judged_under.REWRITTEN)
    return found if isinstance(found, list) else []


def marked_as(job: Job, config: Config) -> str:
    """Under which name a run keeps what the agent of a job was. Those that a suite brings along are its own: another
    suite's, and another shard's, of the same name stand in another folder or are configured otherwise.

    Args:
        job: One with an agent.
    """
    assert job.spec is not None
    own = format_of(job.format).brings_agents and not job.spec.typed and job.spec.name not in config.agents
    return f"{job.spec.marked_as} ({job.suite})" if own else job.spec.marked_as


def mark_then(agents: Mapping[str, Any], job: Job, config: Config) -> Any:
    """What a run says that the agent of a job was; runs of earlier versions say it of one entry once, by its
    name alone."""
    assert job.spec is not None
    names = marked_as(job, config), job.spec.marked_as, job.spec.name
    return next((agents[name] for name in names if name in agents), None)


def provenance_in(store: Store) -> Callable[[str], Provenance]:
    """What the runs of a store say of where their results come from; nothing where one cannot be read."""

    @functools.cache
    def of(run_id: str) -> Provenance:
        with (
            contextlib.suppress(StoreError),
            contextlib.closing(RunReader(store.folder_of(run_id))) as reader,
        ):
            return reader.info().provenance
        return {}

    return of


def changed_since(
    provenance: Provenance,
    asked: Iterable[Job],
    marks: Fingerprints,
    hashes: Mapping[str, str],
    suites: Iterable[Suite],
) -> list[str]:
    """What of that which a run's kept results rest on is otherwise by now, in words: agents, files that cases
    name, cases in their suites. What the run does not say of it is none. Blocking: it reads files.

    Args:
        asked: What is still to be run, of agents that have results.
        hashes: The content of the run's cases, by their ids.
        suites: As they are today.
    """
    found: list[str] = []
    agents = _mapping(provenance, "agents")
    told: dict[str, str] = {}
    for job in {marked_as(job, marks.config): job for job in asked if job.spec is not None}.values():
        before = mark_then(agents, job, marks.config)
        if job.spec is not None and isinstance(before, dict) and (what := marks.differs(job.spec, before)):
            told.setdefault(job.spec.name, what)
    found += [f"agent {name} ({what})" for name, what in told.items()]
    for path, mark in _mapping(provenance, "files").items():
        if marks.of(marks.root / path) != mark:
            found.append(str(path))
    today = {case.case_id: case.content_hash for suite in suites for case in suite.cases}
    edited = [case_id for case_id, known in hashes.items() if today.get(case_id, known) != known]
    return found + [f"{case_id} (the run keeps it as it was)" for case_id in edited]


class VerdictSettings:
    """What a verdict rests on beside the case, its files and the agent: the settings it is judged by, the
    judge, and the databases. Kept as hashes with each run; no secret's value is in them. Blocking: use it in
    threads."""

    def __init__(self, marks: Fingerprints) -> None:
        self._marks = marks
        self._config = marks.config
        self._suites: dict[str, list[str]] = {}
        self._databases: dict[str | None, str] = {}
        self._graders: dict[str, str] = {}
        nao = self._config.nao
        self._prices = digest([self._config.prices, nao.costs if nao is not None else {}])

    def of_jobs(self, jobs: Iterable[Job]) -> dict[str, Any]:
        """What a run keeps: of each suite its rules and judge (most have the same), of databases and of graders that
        cases name what they are. Empty where it would be too much: nothing is known to be as it was."""
        databases: dict[str, str] = {}
        graders: dict[str, str] = {}
        suites: dict[str, list[str]] = {}
        prices: dict[str, str] = {}
        variables: dict[str, str] = {}
        for job in (packed.opened() for packed in jobs):
            prices.update(self._priced(job.case))
            suites[job.suite] = self._suite(job)
            databases.update((name or "", self._database(name)) for name in databases_of(job))
            graders.update(self._named(job))
            variables.update(self._marks.variables_of(job) or {})
        if not suites:
            return {}
        once = judged_under.most_once(suites)
        if len(once) + len(databases) + len(graders) + len(variables) > MOST_FILES:
            return {}
        kept = {"suites": once, "databases": databases, "graders": graders, "prices": prices}
        return {**kept, "variables": variables} if variables else kept

    def same(self, job: Job, kept: Any) -> bool:
        """Whether a job would be judged as in the run that kept this; of variables those count whose names
        are known."""
        suites, databases, graders, prices, variables = (
            _mapping(kept, name) for name in ("suites", "databases", "graders", "prices", "variables")
        )
        known = suites.get(job.suite, suites.get(judged_under.OTHERS))
        if not isinstance(known, list) or len(known) != 2:
            return False
        rules, judge = self._suite(job)
        judged = grader_choice.speaks_for_the_user(job.spec) or grader_choice.asks_a_judge(job.case)
        return (
            known[0] == rules
            and (not judged or known[1] == judge)
            and all(databases.get(name or "") == self._database(name) for name in databases_of(job))
            and all(graders.get(name) == mark for name, mark in self._named(job).items())
            and all(prices.get(name) == mark for name, mark in self._priced(job.case).items())
            and all(
                variables.get(name) == mark for name, mark in (self._marks.variables_of(job) or {}).items()
            )
        )

    def _suite(self, job: Job) -> list[str]:
        """Hashes of the settings that the cases of a job's suite are judged by, and of their judge. What a case says
        itself is a part of it."""
        if job.suite not in self._suites:
            rule = rule_for(self._config, job.suite)
            settings = format_of(job.format).decisive(job.settings)
            rules = (
                job.compat, rule.comparison if rule else {}, format_of(job.format).comparison_defaults(self._config),
                rule.database if rule else None, without_secrets(settings, settings, ""),
            )  # fmt: skip
            self._suites[job.suite] = [digest(rules), self._judge(job)]
        return self._suites[job.suite]

    def _judge(self, job: Job) -> str:
        spec: AgentSpec | None = None
        with contextlib.suppress(ConfigError, AgentError):
            spec = grader_choice.judge_of(job.judge, self._config, job.judge) or grader_choice.default_of(
                job, self._config
            )
        return digest([job.judge, self._marks.with_databases(spec) if spec is not None else None])

    def _named(self, job: Job) -> dict[str, str]:
        """The graders that a case names, by a hash of how it names them."""
        found: dict[str, str] = {}
        for provider in grader_choice.graders_named(job.case):
            name = digest([provider, job.suite])
            if name not in self._graders:
                mark = ""
                with contextlib.suppress(grader_choice.NoGrader, ConfigError, AgentError):
                    env = job.settings.get("env")
                    spec = grader_choice.suites_own(provider, self._config, job.base, env)
                    mark = digest(self._marks.with_databases(spec))
                self._graders[name] = mark
            found[name] = self._graders[name]
        return found

    def _priced(self, case: Case) -> dict[str, str]:
        """A hash of the configured prices, of a case whose verdict may rest on what its answer cost."""
        return {"": self._prices} if any(map(_asks_the_cost, case.asserted)) else {}

    def _database(self, name: str | None) -> str:
        """Which database a name stands for; what is in its files is in `Fingerprints.files_of`."""
        if name not in self._databases:
            self._databases[name] = self._marks.connection(name)
        return self._databases[name]


def _asks_the_cost(assertion: Assertion) -> bool:
    """Whether it may judge by the cost; of code in a file nobody knows."""
    kind = assertion.type.removeprefix("not-")
    if kind not in CODE_TYPES:
        return kind == "cost" or kind in OWN_JUDGES
    told = str(assertion.value)
    return "cost" in told or "file://" in told


def _mapping(kept: Any, name: str) -> Mapping[str, Any]:
    found = kept.get(name) if isinstance(kept, dict) else None
    return found if isinstance(found, dict) else {}
