"""Starting a run and going on with an interrupted one; the same for the app and the command line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tui_eval import __version__, suites
from tui_eval.config import Config, ConfigError, SuiteRule, load, rule_for
from tui_eval.engine import continuing
from tui_eval.engine.candidates import candidates
from tui_eval.engine.columns import Ended, ended_columns
from tui_eval.engine.environment import Environment
from tui_eval.engine.plan import Job, plan
from tui_eval.engine.provenance import provenance
from tui_eval.engine.request import RunRequest
from tui_eval.engine.rows import arrange, suites_concurrency
from tui_eval.engine.runner import Limits, Runner
from tui_eval.engine.schedule import Ticket
from tui_eval.engine.selection import SelectionError, choose
from tui_eval.guard.trust import Trust
from tui_eval.guard.trust_store import trust_for
from tui_eval.model import Attempt, Case, Problem, Suite
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.runs import Store, StoreError, new_run_id
from tui_eval.store.schema import RunInfo, RunState
from tui_eval.store.writer import RunWriter


class NothingToRun(Exception):
    """The selection holds no case; one clear line, and the problems of files that may be why."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = list(problems)


class SuiteCache:
    """Suites read before, read again only when one of their files changed (path, time or size)."""

    def __init__(self) -> None:
        self._suites: dict[tuple[Path, bool, str | None, str], tuple[tuple, Suite]] = {}

    def load(self, paths: Sequence[Path], config: Config, trust: Trust) -> list[Suite]:
        """Every suite of the paths, in order; unreadable ones carry their problems."""
        found, problems = suites.discover(paths, config.root)
        loaded: list[Suite] = []
        for path in found:
            rule = rule_for(config, suites.from_root(path, config.root))
            key = (path, trust.granted, rule.compat if rule else None, repr(config.typed))
            known = self._suites.get(key)
            if known is not None and known[0] == _stamp(known[1].files or [str(path)], config):
                loaded.append(known[1])
                continue
            suite = suites.load(path, config, trust)
            self._suites[key] = (_stamp(suite.files or [str(path)], config), suite)
            loaded.append(suite)
        if problems:
            loaded.append(Suite(path="", format="nao", problems=problems))
        return loaded


def _stamp(files: Sequence[str], config: Config) -> tuple:
    stamps: list[tuple[str, int, int]] = []
    for name in (*files, str(config.file or ""), config.nao.path if config.nao else ""):
        try:
            status = Path(name).stat()
            stamps.append((name, status.st_mtime_ns, status.st_size))
        except OSError:
            stamps.append((name, 0, 0))
    return tuple(stamps)


class ActiveRun:
    """A run that is prepared, then executed by `execute`. Close with it is done for you."""

    def __init__(
        self,
        config: Config,
        request: RunRequest,
        jobs: list[Job],
        environment: Environment,
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

    @property
    def run_id(self) -> str:
        """The run's id; empty where nothing is kept."""
        return self.writer.info.id if self.writer else ""

    async def execute(self) -> RunState:
        """Run to the end, put the result into the index, release everything."""
        facts = asyncio.create_task(
            asyncio.to_thread(
                provenance, self.config.root, self.jobs, self.request.command, self.environment.masker
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
                self.writer.info.provenance = {**(await facts), **self.writer.info.provenance}
                if self.runner.stopped_because:
                    self.writer.info.note = self.runner.stopped_because
                if ended:
                    self.writer.info.note = "; ".join(filter(None, [self.writer.info.note, *ended]))
                self.writer.update_info()
                writer, root = self.writer, self.config.root
                await asyncio.to_thread(writer.close)
                if writer.folder.is_relative_to(Store(root).runs_folder):
                    await asyncio.to_thread(Index(root).record, writer.folder)

    async def _assess(self) -> None:
        """Failure modes of the run, kept with it, where they were asked for."""
        if not self.request.assess or self.writer is None:
            return
        from tui_eval.engine.assessing import assess_run

        ask, _ = self.environment.judge(self.request.judge)
        await asyncio.to_thread(self.writer.flush)
        reader = RunReader(self.writer.folder)
        try:
            self.writer.assessment(await assess_run(reader, ask))
        finally:
            reader.close()

    async def _sum_up(self) -> None:
        """Sums of promptfoo's columns, and what is derived from them, into the run's facts."""
        settings = {job.case.suite: job.settings for job in self.jobs if job.case.format == "promptfoo"}
        if self.writer is None or not any("derivedMetrics" in own for own in settings.values()):
            return
        from tui_eval.engine import metrics

        def read(folder: Path) -> list[dict[str, Any]]:
            reader = RunReader(folder)
            try:
                return metrics.columns(reader)
            finally:
                reader.close()

        await asyncio.to_thread(self.writer.flush)
        try:
            found = await asyncio.to_thread(read, self.writer.folder)
        except StoreError:
            return  # the disk refused; the run says so
        await metrics.derive(found, settings, self.environment.javascript)
        self.writer.info.metrics = found


def prepare(
    request: RunRequest,
    *,
    config: Config | None = None,
    cache: SuiteCache | None = None,
    store: Store | None = None,
    on_start: Callable[[Job, int, int], None] | None = None,
    on_done: Callable[[Job, int, Attempt], None] | None = None,
) -> ActiveRun:
    """Read the suites, choose the cases, create the run's folder. Blocking: call it in a thread.

    Problems of files do not stop the others; they come in `.problems`.

    Raises:
        NothingToRun: there is no case at all.
        SelectionError, ConfigError, StoreError: one clear line each.
    """
    paths = [Path(path).absolute() for path in request.paths or ["."]]
    if config is None:
        config = load(paths, request.config_file)
    if request.compat is not None:
        config.suites = [
            *(msgspec.structs.replace(rule, compat=request.compat) for rule in config.suites),
            SuiteRule(path="*", compat=request.compat),
        ]
    typed = {
        "vars": request.vars,
        "promptPrefix": request.prompt_prefix,
        "promptSuffix": request.prompt_suffix,
    }
    config.typed = {name: value for name, value in typed.items() if value}
    trust = trust_for(config.root, request.trust)
    loaded = (cache or SuiteCache()).load(paths, config, trust)
    problems = [*config.problems, *(problem for suite in loaded for problem in suite.problems)]
    cases = candidates(loaded, request)
    if not cases:
        raise NothingToRun(_nothing(paths, problems), problems)
    settings = {suite.path: suite.settings for suite in loaded}
    latest = Index(config.root).latest
    environment = Environment(config, trust)
    if any("extensions" in own for own in settings.values()):
        cases, settings = _with_hooks(choose(cases, request, latest), settings, environment)
        jobs = plan(cases, config, request, latest, settings, chosen=True)
        _mark_failed(jobs, environment)
    else:
        jobs = plan(cases, config, request, latest, settings)
    if not jobs:
        raise NothingToRun("the filters leave no case to run")
    if request.continue_from is not None:
        continuing.place(jobs, request.continue_from, store or Store(config.root))
    check_judge(request, environment)
    linked = request.linked_to
    earlier = _recall(environment, config, linked, jobs) if linked is not None else []
    writer = new_writer(store or Store(config.root), config, request, jobs, environment)
    active = ActiveRun(config, request, jobs, environment, writer, problems, on_start, on_done)
    active.runner.earlier = earlier
    active.tickets = active.runner.plan()
    writer.flush()  # who opens the run now sees what it will execute
    return active


def _recall(environment: Environment, config: Config, run: str | Path, jobs: Sequence[Job]) -> list[Ended]:
    """Rows of a conversation, or with stored outputs, that are run again need what came before them;
    columns that are compared, the other columns, which are given back."""
    theirs = [job for job in jobs if job.case.format == "promptfoo"]
    if not theirs:
        return []
    try:
        reader = RunReader(run if isinstance(run, Path) else Store(config.root).find(run))
    except StoreError:
        return []  # the run is gone: its rows are, too
    try:
        environment.memory.recall(reader, theirs)
        return ended_columns(reader, theirs, same_run=isinstance(run, Path))
    finally:
        reader.close()


def _with_hooks(
    cases: list[Case], settings: dict[str, dict[str, Any]], environment: Environment
) -> tuple[list[Case], dict[str, dict[str, Any]]]:
    """The cases and settings as the suites' `beforeAll` hooks leave them."""
    from tui_eval.engine.hooks import SuiteHooks

    environment.hooks = SuiteHooks(settings, environment)
    cases, changed = environment.hooks.begin(cases)
    return cases, {**settings, **changed}


def _mark_failed(jobs: Sequence[Job], environment: Environment) -> None:
    """Attempts of suites whose `beforeAll` failed are errors that say so."""
    failed = environment.hooks.failed if environment.hooks is not None else {}
    for job in jobs:
        if job.case.suite in failed:
            job.problem = failed[job.case.suite]


def check_judge(request: RunRequest, environment: Environment) -> None:
    """Say before anything is asked, and paid for, that there is no such judge.

    Raises:
        ConfigError: `--judge` names nothing.
    """
    try:
        environment.judge(request.judge)
    except ConfigError as error:
        raise ConfigError(str(error).replace("--agent", "--judge", 1)) from None


def new_writer(
    store: Store, config: Config, request: RunRequest, jobs: list[Job], environment: Environment
) -> RunWriter:
    """The folder of a new run with its facts.

    Raises:
        StoreError: it cannot be written.
    """
    run_id = new_run_id()
    info = RunInfo(
        id=run_id,
        version=__version__,
        started_at=time.time(),
        paths=[_relative(path, config.root) for path in request.paths or ["."]],
        options=environment.masker.value(msgspec.to_builtins(request)),
        agents=list(dict.fromkeys(job.agent for job in jobs)),
        linked_to=request.linked_to,
        provenance={"description": request.description} if request.description else {},
        scripted=any(job.spec is not None and job.spec.type == "scripted" for job in jobs),
    )
    return RunWriter(store.create_folder(run_id), info)


def resume(
    folder: Path,
    *,
    overrides: RunRequest | None = None,
    on_start: Callable[[Job, int, int], None] | None = None,
    on_done: Callable[[Job, int, Attempt], None] | None = None,
) -> ActiveRun:
    """Go on with a run that was interrupted: only attempts without a result are executed.

    The cases are those of the run as they were; agents come from today's configuration.
    `overrides` replaces concurrency, timeout, judge and trust where given.

    Raises:
        NothingToRun: every attempt has a result.
        StoreError: there is no such run, or another process executes it.
    """
    reader = RunReader(folder)
    try:
        info = reader.info()
        rows = {row.id: row for row in reader.cases()}
        open_attempts = [row for row in reader.attempts() if row.state != "done"]
        cases: dict[int, Case] = {ref: reader.case(ref) for ref in {row.case_ref for row in open_attempts}}
    finally:
        reader.close()
    if not open_attempts:
        raise NothingToRun(f"run {info.id} is complete: every attempt has a result")
    request = msgspec.convert(info.options, RunRequest)
    if request.rescores:
        raise SelectionError(
            f"run {info.id} judges the answers of {request.rescores} again and asks no agent; do that anew: "
            f"tui-eval rescore {request.rescores}"
        )
    if overrides is not None:
        request.concurrency = overrides.concurrency or request.concurrency
        request.timeout = overrides.timeout or request.timeout
        request.judge = overrides.judge or request.judge
        request.trust = overrides.trust
    root = folder.parents[2]
    config = load([root], request.config_file)
    trust = trust_for(config.root, request.trust)
    whole = msgspec.structs.replace(
        request, case_ids=None, pairs=None, select=[], filter_pattern=None, filter_metadata=[],
        filter_first_n=None, failed_only=False, filter_range=None, filter_sample=None, filter_prompts=None,
        filter_providers=None, filter_failing=None, filter_failing_only=None, filter_errors_only=None,
    )  # fmt: skip
    settings = {
        path: suites.load(config.root / path, config, trust).settings
        for path in {case.suite for case in cases.values() if case.format == "promptfoo"}
    }
    environment = Environment(config, trust)
    if any("extensions" in own for own in settings.values()):
        _with_hooks(list(cases.values()), settings, environment)  # what they prepare is needed again
    jobs: list[Job] = []
    references: list[list[int]] = []
    for ref, case in cases.items():
        row = rows[ref]
        again = plan([case], config, whole, dict, settings)
        job = next((job for job in again if (job.agent, job.model) == (row.agent, row.model)), None)
        if job is None:
            raise SelectionError(f"run {info.id}: its agent {row.agent} is no longer configured")
        for attempt in (item for item in open_attempts if item.case_ref == ref):
            jobs.append(msgspec.structs.replace(job, attempts=1, first_attempt=attempt.attempt))
            references.append([attempt.id])
    _mark_failed(jobs, environment)
    earlier = _recall(environment, config, folder, jobs)
    info.state, info.finished_at = "running", None
    writer = RunWriter(folder, info)
    active = ActiveRun(config, request, jobs, environment, writer, [], on_start, on_done)
    active.runner.earlier = earlier
    active.tickets = active.runner.tickets(references)
    return active


def _threads(config: Config, jobs: list[Job]) -> int | None:
    """`test.threads` of a nao_config.yaml, where everything that runs is nao's."""
    if config.nao is not None and config.nao.threads and all(job.case.format == "nao" for job in jobs):
        return config.nao.threads
    return None


def _relative(path: str, root: Path) -> str:
    try:
        return str(Path(path).absolute().relative_to(root)) or "."
    except ValueError:
        return path


def _nothing(paths: Sequence[Path], problems: list[Problem]) -> str:
    places = ", ".join(str(path) for path in paths)
    if any(problem.level == "error" for problem in problems):
        return f"nothing to run in {places}: no file of it could be read"
    return (
        f"nothing to run in {places}: no nao tests (tests/*.yml), no `test_cases:` suites, no "
        "promptfooconfig.*, no .hocon with `interactions`"
    )
