"""Preparing a run: suites read, cases chosen, its folder made; the same for the app and the command line."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval import __version__
from tui_eval.config.config_schema import TOP
from tui_eval.config.project import (
    Config,
    ConfigError,
    SuiteRule,
    closed_to_us,
    find_root,
    load,
    read_withheld,
)
from tui_eval.engine import failed_before
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.after.row_comparison import (
    CaseColumn,
    Ended,
    StoredColumn,
    column_of,
    compares,
    ended_columns,
    kept_beside,
    linked_columns,
    names_columns,
    whole_tests,
    without_stored,
)
from tui_eval.engine.attempt import continuing
from tui_eval.engine.cached_session import Answers
from tui_eval.engine.candidates import CasesOfSuites, candidates, meant, no_longer_there
from tui_eval.engine.changed import UnreadRuns, VerdictSettings, changed, not_known, provenance_in
from tui_eval.engine.fingerprints import Fingerprints, unlisted_data
from tui_eval.engine.kept_cases import KeptCases
from tui_eval.engine.places.chosen_place import check_place, check_sent
from tui_eval.engine.plan import AskedBySuite, Job, plan, same_column
from tui_eval.engine.request import RunRequest
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.selection import (
    NOTHING_FAILED,
    NothingLeft,
    SelectionError,
    choose,
    left_unmade,
    not_made_before,
)
from tui_eval.engine.trust_given import check_given
from tui_eval.formats import format_of, reading
from tui_eval.formats.reading import SuiteCache
from tui_eval.guard.secrets import MASK, in_addresses, in_pairs
from tui_eval.guard.spelling import close_to, some_of
from tui_eval.guard.trust import Trust, fingerprint
from tui_eval.guard.trust_store import agreed, trust_for
from tui_eval.model import Attempt, Case, Problem, Suite
from tui_eval.store import judged_under, missing_cases, shard_runs
from tui_eval.store.case_state import Column, by_content
from tui_eval.store.clock_jumps import seen_ahead
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError, not_known_in
from tui_eval.store.schema import KEEPS_ANSWERS, RunInfo
from tui_eval.store.shard_runs import PlannedShard
from tui_eval.store.writer import RunWriter

if TYPE_CHECKING:
    from tui_eval.engine.after.judging_again import Judged
    from tui_eval.engine.shards import Shard


class NothingToRun(Exception):
    """The selection holds no case; one clear line, and the problems of files that may be why."""

    def __init__(self, message: str, problems: Sequence[Problem] = (), *, incomplete: bool = False) -> None:
        super().__init__(message)
        self.problems = list(problems)
        self.incomplete = incomplete
        """Although nothing failed, not all has run."""


def prepare(
    request: RunRequest,
    *,
    config: Config | None = None,
    cache: SuiteCache | None = None,
    store: Store | None = None,
    on_start: Callable[[Job, int, int], None] | None = None,
    on_done: Callable[[Job, int, Attempt], None] | None = None,
    outputs: Sequence[Path] = (),
) -> ActiveRun:
    """Read the suites, choose the cases, create the run's folder. Blocking: call it in a thread.

    Problems of files do not stop the others; they come in `.problems`. `outputs` are files that will be written in
    the end.

    Raises:
        NothingToRun: there is no case at all.
        SelectionError, ConfigError, StoreError: one clear line each.
    """
    request = _as_before(request)
    shard: Shard | None = None
    if request.shard is not None:
        from tui_eval.engine.shards import shard_asked  # late: most runs are whole

        shard = shard_asked(request, request.shard)
    paths = paths_of(request)
    if config is None:
        config = load(paths, request.config_file, root=Path(request.root) if request.root else None)
    check_limits(config)
    if request.compat is not None:
        config.suites = [
            *(msgspec.structs.replace(rule, compat=request.compat) for rule in config.suites),
            SuiteRule(path="*", compat=request.compat),
        ]
    check_vars(request)
    config.typed = typed_options(request)
    trust = trust_for(config.root, request.trust, request.agreed)
    check_place(request, config, trust)
    read_withheld(config, trust)
    loaded = (cache or SuiteCache()).load(paths, config, trust)
    problems = [*config.problems, *(problem for suite in loaded for problem in suite.problems)]
    cases = candidates(loaded, request)
    if not cases:
        raise NothingToRun(_nothing(paths, problems), problems)
    settings = {suite.path: suite.settings for suite in loaded}
    hooked = {suite.path for suite in loaded if _has_hooks(suite)}
    problems += no_longer_there(request, cases) * (not hooked)
    chooses = shard is not None or bool(hooked) or names_columns(request)
    named, asks, chosen = request, request, cases
    environment = RunContext(config, trust)
    problems = environment.masker.value(problems)
    latest = functools.cache(lambda: dict(by_content(Index(config.root).latest(), candidates(loaded, named))))
    environment.answers = kept_answers(config, trust, request, keeps=store is None)
    planned_shard: PlannedShard | None = None
    whole: list[list[Any]] = []
    of_hooks, unmade = "", set[str]()
    of_shards: list[Job] = []
    """What all shards run, where that has to be known."""
    try:
        if hooked:
            of_files = CasesOfSuites(loaded)
            from tui_eval.engine.run_hooks import SuiteHooks, suites_with_hooks  # late: few suites have any

            environment.hooks = hooks = SuiteHooks(settings, config, trust, environment)
            loaded, settings, asks = suites_with_hooks(loaded, hooked, request, config.root, hooks)
            cases = candidates(loaded, asks)
            problems += environment.masker.value(no_longer_there(request, [*of_files, *cases]))
            if asks.failed_only or (request.linked_to and asks.cells):
                unmade = not_made_before(of_files, CasesOfSuites(loaded), latest())
        if chooses:
            chosen = choose(cases, asks, latest, unmade)
            if request.linked_to:
                of_hooks = environment.masker.text(left_unmade(CasesOfSuites(loaded), unmade, chosen))
            cases, request = whole_tests(chosen, loaded, request, latest, Store(config.root))
        if shard is not None:
            if failed_before.looks_back(request):
                own = msgspec.structs.replace(request)  # planning writes into it
                of_shards = plan(cases, config, own, latest, settings, chosen=True, trust=trust)
            asked_by_suite = AskedBySuite(config, request, settings, trust)
            from tui_eval.engine.shards import part_of

            cases, planned_shard, whole = part_of(cases, request, shard, asked_by_suite)
            planned_shard.columns = environment.masker.value(asked_by_suite.kept())
            planned_shard.asked = shard_runs.asked_of(environment.masker.value(msgspec.to_builtins(request)))
        planned_as = request
        if request.continue_from is not None and request.continue_from.turn is None and request.cells:
            # Whoever answered then, and not whom the suite names by now.
            cells = [msgspec.structs.replace(cell, own=False) for cell in request.cells]
            planned_as = msgspec.structs.replace(request, cells=cells)
        jobs = plan(cases, config, planned_as, latest, settings, chosen=chooses, trust=trust)
        if environment.hooks is not None:
            environment.hooks.mark_failed(jobs)
    except NothingLeft as error:
        never = environment.masker.text(_never_ran(config.root, named, loaded, latest, of_shards))
        why = f"; but {never}" if never else _NOTHING_YET * (str(error) == NOTHING_FAILED)
        unknown = not_known(UnreadRuns(Index(config.root).runs()).all)
        told = "; ".join(filter(None, (f"{error}{why}", unknown, _of_hooks(environment)))) + not_known_in(
            closed_to_us(config.root)
        )
        raise NothingToRun(told, problems, incomplete=bool(never)) from None
    except SelectionError as error:  # it says what there is: cases' names may hold secrets
        hidden = KeptCases(environment.masker)
        for case in candidates(loaded, named):
            hidden.learn(case)
        told = "; ".join(filter(None, (str(error), _of_hooks(environment))))
        raise SelectionError(environment.masker.text(told)) from None
    if not jobs:
        never = environment.masker.text(_never_ran(config.root, named, loaded, latest, of_shards))
        raise NothingToRun(
            "the filters leave no case to run" + (f"; but {never}" if never else ""),
            problems,
            incomplete=bool(never),
        )
    unknown = ""
    if request.changed_only:
        marks, of_run = Fingerprints(config, trust), provenance_in(Store(config.root))
        unread = UnreadRuns(Index(config.root).runs())
        of_all = jobs
        jobs, unknown = changed(jobs, latest(), marks, VerdictSettings(marks), of_run, unread)
        if not jobs:
            raise NothingToRun(_unchanged(of_all), problems)
    judged: list[Judged] = []
    former = ""
    if request.continue_from is not None and request.continue_from.turn is None:
        from tui_eval.engine.after.judging_again import answers_beside, judged_by  # late, as below

        answered = answers_beside(Store(config.root), request.continue_from)
        judged = [judged_by(jobs, answered, Path(request.continue_from.run).name)]
        jobs = [judged[0].job]
    elif request.continue_from is not None:
        continuing.place(jobs, request.continue_from, Store(config.root))
    stored: list[StoredColumn] = []
    added: list[Job] = []
    if request.linked_to is not None:
        asked = _asked(jobs, named, request, chosen, config, settings, trust)
        today = _hashes(loaded, jobs)
        stored = recall_linked(environment, Store(config.root), request.linked_to, jobs, asked, today)
        jobs, added = without_stored(jobs, asked, stored)
    never = environment.masker.text(_never_ran(config.root, named, loaded, latest, of_shards or jobs))
    if named.failed_only and (runs := UnreadRuns(Index(config.root).runs())).all:
        unknown = not_known(runs.beside(latest().get(one, ()) for one in meant(named, loaded)))
    check_judge(request, environment, typed=request.judge)
    check_given(request.agreed, jobs, config, trust)
    check_sent(request, jobs, environment, trust)
    _check_outputs(outputs, loaded, jobs, config, trust)
    writer = new_writer(store or Store(config.root), config, request, jobs, environment)
    if planned_shard is not None:
        writer.info.provenance[shard_runs.KEY] = msgspec.to_builtins(planned_shard)
        writer.update_info()
        writer.whole_plan(whole)
    if unread := missing_cases.unread_remembered(problems):
        writer.info.provenance |= environment.masker.value(unread)
        writer.update_info()
    if never:
        writer.info.provenance |= environment.masker.value({missing_cases.BESIDE: never})
        writer.update_info()
    references: list[list[int]] | None = None
    if judged:
        from tui_eval.engine.after.judging_again import of_former_agents, planned  # late, as below

        former = of_former_agents(judged, Fingerprints(config, trust))
        jobs, references = planned(writer, environment, judged)
    active = ActiveRun(config, request, jobs, environment, writer, problems, on_start, on_done)
    runner = active.runner
    active.tickets = runner.plan() if references is None else runner.tickets(references)
    runner.earlier = kept_beside(writer, stored, active.tickets)
    active.note = "; ".join(filter(None, (former or _asked_with_it(added), never, unknown, of_hooks)))
    takes = environment.answers is not None and environment.answers.reads
    active.unseen = unlisted_data(jobs) if takes else ""
    writer.flush()  # who opens the run now sees what it will execute
    return active


def _asked(
    jobs: Sequence[Job],
    named: RunRequest,
    request: RunRequest,
    chosen: Sequence[Case],
    config: Config,
    settings: dict[str, dict[str, Any]],
    trust: Trust,
) -> set[CaseColumn]:
    """The columns that somebody asked for, where `request` has all of their tests."""
    if request is named:
        return {column_of(job) for job in jobs}
    ids = {case.case_id for case in chosen}
    cases = {job.case.case_id: job.case for job in jobs if job.case.case_id in ids}
    asked = plan(list(cases.values()), config, named, dict, settings, chosen=True, trust=trust)
    return {column_of(job) for job in asked}


def _hashes(loaded: Sequence[Suite], jobs: Sequence[Job]) -> dict[str, str]:
    """What the cases of suites that compare columns of `jobs` are today: their content hashes by id."""
    suites = {job.suite for job in jobs if compares(job.case)}
    return {
        case.case_id: case.content_hash for suite in loaded if suite.path in suites for case in suite.cases
    }


def _unchanged(jobs: Sequence[Job]) -> str:
    """Why `--changed` leaves none of these, in words."""
    told = f"--changed: nothing to run, {len(jobs):,} passed last time and nothing of them has changed since"
    hint = unlisted_data(jobs)
    return f"{told} ({hint})" if hint else told


def _asked_with_it(added: Sequence[Job]) -> str:
    """That columns are asked which nobody named, in words."""
    if not added:
        return ""
    columns = "1 other column" if len(added) == 1 else f"{len(added):,} other columns"
    return f"asks {columns} too: compared with what was named, and without an answer to the same question in its run"


def check_limits(config: Config) -> None:
    """Limits of cost and time that cannot be read are none at all: nothing is asked for without them, nor where what says
    who is asked may stand under a key that is misspelt (`runs:`, `sutes:`), under another of that name, or in a file that
    is none.

    Raises:
        ConfigError: one of them, with its place.
    """
    for problem in config.problems:
        if problem.level != "error" or config.file is None or Path(problem.path).name != config.file.name:
            continue
        top = problem.key.partition(".")[0]
        slip = top == problem.key and top not in TOP and close_to(top, TOP) is not None
        if top in ("", "run") or slip or problem.key in config.doubled:
            raise ConfigError(str(problem))


def _check_outputs(
    outputs: Sequence[Path], loaded: Sequence[Suite], jobs: Sequence[Job], config: Config, trust: Trust
) -> None:
    """What the run reads is not written over.

    Raises:
        SelectionError: it would be.
    """
    there = {path.resolve(): path for path in outputs if path.exists()}
    if not there:
        return
    configured = filter(None, (config.file, config.nao.path if config.nao else None))
    read = [*map(Path, configured), *(Path(file) for suite in loaded for file in suite.files)]
    for file in chain(read, Fingerprints(config, trust).read_by(jobs)):
        if (output := there.get(file.resolve())) is not None:
            raise SelectionError(
                f"-o {output}: the run reads this file, and would write its results over it; name another"
            )


def kept_answers(config: Config, trust: Trust, request: RunRequest, *, keeps: bool = True) -> Answers | None:
    """The answers that are kept, where somebody asked for that; what is asked anew replaces its own in any case. Of a run
    that `keeps` nothing only those that are there are taken."""
    judge = config.judge is not None and config.judge.cache
    entries = judge or any(spec.cache for spec in config.agents.values())
    wanted = entries if request.cache is None else request.cache
    if not wanted and not request.anew:
        return None
    answers = Answers(config, trust, request.cache, anew=request.anew, keeps=keeps)
    return answers if (wanted and (keeps or answers.cache.is_there)) or answers.replaces else None


def typed_options(request: RunRequest) -> dict[str, Any]:
    """What was typed for promptfoo's suites, by promptfoo's names."""
    configs = reading.configs(request.configs)
    typed = {
        "vars": request.vars,
        "promptPrefix": request.prompt_prefix,
        "promptSuffix": request.prompt_suffix,
        "configs": [str(path) for path in configs],
    }
    return {name: value for name, value in typed.items() if value}


def paths_of(request: RunRequest) -> list[Path]:
    """What is to be read: of several configurations that are read as one, the first stands for all."""
    paths = [Path(path).absolute() for path in request.paths]
    configs = reading.configs(request.configs)
    if len(configs) > 1:
        paths = [configs[0], *(path for path in paths if path not in configs)]
    else:
        paths += configs or [Path(path).absolute() for path in request.configs]
    return paths or [Path.cwd()]


def _as_before(request: RunRequest) -> RunRequest:
    """A part of a run that is run again is read as it was read there, runs where it ran, and is kept as it was."""
    if request.linked_to is None or request.rescores or request.configs:
        return request
    from tui_eval.engine.after.judging_again import folder_of  # imported late: a new run needs none of it

    paths = [Path(path) for path in request.paths or ["."]]
    root = Path(request.root) if request.root else find_root(paths, request.config_file)[0]
    try:
        recorded = request.continue_from
        reader = RunReader(
            folder_of(Store(root), recorded.run)
            if recorded is not None
            else Store(root).find(request.linked_to)
        )
    except StoreError:
        return request
    try:
        given = msgspec.convert(reader.info().options, RunRequest)
    except msgspec.ValidationError:
        return request
    finally:
        reader.close()
    return msgspec.structs.replace(
        request,
        configs=given.configs,
        on=request.on or given.on,
        on_recorded=request.on_recorded if request.on else bool(given.on),
        cache=given.cache if request.anew and request.cache is None else request.cache,
        vars=request.vars or given.vars,
        prompt_prefix=request.prompt_prefix or given.prompt_prefix,
        prompt_suffix=request.prompt_suffix or given.prompt_suffix,
    )


def _has_hooks(suite: Suite) -> bool:
    return any(True for _ in format_of(suite.format).hook_files(suite.settings))


def _of_hooks(environment: RunContext) -> str:
    """Why cases that hooks add are not among those that there are; empty: they are."""
    failed = environment.hooks.failed if environment.hooks is not None else {}
    return f"those that hooks add are not among them: {some_of(list(failed.values()), 2)}" if failed else ""


def recall(environment: RunContext, folder: Path, jobs: Sequence[Job]) -> list[Ended]:
    """What rows of a run that is gone on with need of those that ended: of a conversation, or with stored outputs,
    what came before them; of columns that are compared, the other columns, which are given back."""
    theirs = [job for job in jobs if format_of(job.format).templates]
    if not theirs:
        return []
    with closing(RunReader(folder)) as reader:
        environment.memory.recall(reader, theirs)
        return ended_columns(reader, theirs)


def recall_linked(
    environment: RunContext,
    store: Store,
    linked: str,
    jobs: Sequence[Job],
    asked: Collection[CaseColumn],
    today: Mapping[str, str],
) -> list[StoredColumn]:
    """As `recall`, of rows that are run again: from all runs that belong together with the one they were in, since a
    rerun of a rerun has but a part of them. `asked` and `today` as in `linked_columns`."""
    theirs = [job for job in jobs if format_of(job.format).templates]
    if not theirs:
        return []
    try:
        run = store.find(linked)
    except StoreError:
        return []  # the run is gone: its rows are, too
    from tui_eval.store.linked import family  # imported late: most runs are linked to none

    names = family(Index(store.root).links(), run.name)
    with ExitStack() as opened:
        readers: list[RunReader] = []
        for folder in [run if name == run.name else store.folder_of(name) for name in names]:
            with suppress(StoreError):  # of one that cannot be read nothing is known
                readers.append(opened.enter_context(closing(RunReader(folder))))
        for reader in readers:
            environment.memory.recall(reader, theirs)
        return linked_columns(readers, theirs, asked, today)


def check_judge(request: RunRequest, environment: RunContext, *, typed: str | None) -> None:
    """Say before anything is asked, and paid for, that there is no such judge. `typed` is the one that a
    person has named for this run, which is trusted by that.

    Raises:
        ConfigError: `--judge` names nothing.
    """
    environment.typed_judge = typed
    try:
        environment.judge(request.judge)
    except ConfigError as error:
        raise ConfigError(str(error).replace("--agent", "--judge", 1)) from None


_NOTHING_YET = " (or nothing was run yet)"


def _never_ran(
    root: Path,
    request: RunRequest,
    loaded: Sequence[Suite],
    latest: Callable[[], failed_before.History],
    jobs: Sequence[Job],
) -> str:
    """Which of the cases that a request for what failed before is for never ran there (`failed_before.never_ran`), and
    are not among the `jobs` that run now."""
    if not failed_before.looks_back(request):
        return ""
    ids = meant(request, loaded)

    @functools.cache
    def by_id() -> dict[str, list[Job]]:
        found: dict[str, list[Job]] = {}
        for job in jobs:
            found.setdefault(job.case.case_id, []).append(job)
        return found

    def runs_now(case_id: str, column: Column) -> bool:
        return any(same_column(job, column.agent, column.model) for job in by_id().get(case_id, ()))

    every = functools.cache(lambda: list(CasesOfSuites(loaded)))
    return failed_before.never_ran(root, request, ids, latest(), runs_now, every)


def new_writer(
    store: Store, config: Config, request: RunRequest, jobs: list[Job], environment: RunContext
) -> RunWriter:
    """The folder of a new run with its facts.

    Raises:
        StoreError: it cannot be written.
    """
    run_id, started_at = store.next_run()
    environment.begin(started_at)
    environment.masker.add_values({"agents": request.agents, "judge": request.judge})
    # What is remembered needs no `--trust` when the run is asked for again.
    remembered = agreed(config.root)
    this_time = sorted(set(request.agreed) - remembered - set(map(fingerprint, remembered)))
    info = RunInfo(
        id=run_id,
        version=__version__,
        started_at=started_at,
        paths=[_relative(path, config.root) for path in [*request.paths, *request.configs] or ["."]],
        options=environment.masker.value(
            msgspec.to_builtins(_kept(msgspec.structs.replace(request, agreed=this_time)))
        ),
        agents=list(dict.fromkeys(job.agent for job in jobs)),
        linked_to=request.linked_to,
        provenance={
            **environment.masker.value({"description": request.description} if request.description else {}),
            judged_under.KEY: judged_under.remembered((job.suite, job.compat) for job in jobs),
        },
        scripted=any(job.spec is not None and job.spec.type == "scripted" for job in jobs),
    )
    if (answers := environment.answers) is not None:
        asked = chain((job.spec for job in jobs), [config.judge])
        if any(spec is not None and answers.concern(spec) for spec in asked):
            info.provenance[KEEPS_ANSWERS] = True
    info.provenance |= seen_ahead(store, info, started_at)
    folder = store.create_folder(run_id)
    try:
        return RunWriter(folder, info)
    except StoreError:
        shutil.rmtree(
            folder, ignore_errors=True
        )  # a disk that is full: it would stand there as a damaged run
        raise


def _kept(request: RunRequest) -> RunRequest:
    """A request as its record keeps it, without the secrets that were typed."""
    return msgspec.structs.replace(
        request,
        on_recorded=False,
        root=None,  # where the record lies
        vars=in_pairs(request.vars),
        agents=[in_addresses(agent) for agent in request.agents],
        judge=in_addresses(request.judge) if request.judge else request.judge,
    )


def check_vars(request: RunRequest) -> None:
    """See that no variable is a mask: what was typed for a run and is in no record.

    Raises:
        SelectionError: one is.
    """
    for name, value in request.vars.items():
        if MASK in value:
            raise SelectionError(f"--var {name}: its value is a secret, which is in no record; give it again")


def _relative(path: str, root: Path) -> str:
    try:
        return str(Path(path).absolute().relative_to(root)) or "."
    except ValueError:
        return path


def _nothing(paths: Sequence[Path], problems: list[Problem]) -> str:
    places = ", ".join(str(path) for path in paths)
    if any(problem.level == "error" for problem in problems):
        return f"nothing to run in {places}: no file of it could be read"
    return f"nothing to run in {places}: {reading.looks_for()}; `tui-eval init` writes a first one"
