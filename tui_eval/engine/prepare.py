"""Preparing a run: suites read, cases chosen, its folder made; the same for the app and the command line."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import msgspec

from tui_eval import __version__
from tui_eval.config.project import Config, ConfigError, SuiteRule, find_root, load, read_withheld
from tui_eval.engine import case_filters
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.after.row_comparison import Ended, ended_columns
from tui_eval.engine.attempt import continuing
from tui_eval.engine.cached_session import Answers
from tui_eval.engine.changed import changed, provenance_in
from tui_eval.engine.fingerprints import Fingerprints
from tui_eval.engine.places.chosen_place import check_place
from tui_eval.engine.plan import Job, plan, without_provider_twins
from tui_eval.engine.request import RunRequest
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.selection import LOOKS_AT_ALL, NothingLeft, SelectionError, choose
from tui_eval.engine.shards import Shard, read_shard, taken
from tui_eval.engine.suite_cache import SuiteCache
from tui_eval.engine.trust_given import check_given
from tui_eval.formats import format_of, reading
from tui_eval.guard.trust import Trust, fingerprint
from tui_eval.guard.trust_store import agreed, trust_for
from tui_eval.model import Attempt, Case, Problem, Suite
from tui_eval.store import judged_under, shard_runs
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError
from tui_eval.store.schema import UNREAD, RunInfo
from tui_eval.store.shard_runs import PlannedShard
from tui_eval.store.writer import RunWriter

if TYPE_CHECKING:
    from tui_eval.engine.after.judging_again import Judged

# -- The cases that a request chooses from, made no further than it needs them: of a table of a hundred
# thousand rows, one case by its id, or the first ten, are there at once.


class CasesOfSuites(Sequence[Case]):
    """The cases of several suites, one after the other; those of large tables are made when their turn comes."""

    def __init__(self, loaded: Sequence[Suite]) -> None:
        self._parts = [suite.cases for suite in loaded]

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @overload
    def __getitem__(self, index: int) -> Case: ...

    @overload
    def __getitem__(self, index: slice) -> list[Case]: ...

    def __getitem__(self, index: int | slice) -> Case | list[Case]:
        if isinstance(index, slice):
            return list(self)[index]
        place = index if index >= 0 else len(self) + index
        for part in self._parts if place >= 0 else ():
            if place < len(part):
                return part[place]
            place -= len(part)
        raise IndexError(f"there are {len(self)} cases")

    def __iter__(self) -> Iterator[Case]:
        return chain.from_iterable(self._parts)


def candidates(loaded: Sequence[Suite], request: RunRequest) -> Sequence[Case]:
    """All cases, or as many as can be among the chosen ones; `selection.choose` decides."""
    named = request.case_ids
    if named is None and request.cells is not None:
        named = [cell.case_id for cell in request.cells]
    if named and (found := reading.with_ids(loaded, named)):
        return found
    if request.select and (found := _by_ids(loaded, request.select)):
        return found
    count = _beginning(request)
    if count is not None:
        return case_filters.first(chain.from_iterable(suite.cases for suite in loaded), count)
    return CasesOfSuites(loaded)


def _by_ids(loaded: Sequence[Suite], words: Sequence[str]) -> list[Case]:
    """The cases that whole ids name; none where a word is something else, too (a name, a folder)."""
    if not all("::" in word for word in words):
        return []
    wanted = {part.strip() for word in words for part in (word, *word.split(","))}
    found = reading.with_ids(loaded, wanted)
    ids = {case.case_id for case in found}
    for word in words:
        parts = [part.strip() for part in word.split(",") if part.strip()]
        if word.strip() not in ids and not all(part in ids for part in parts):
            return []
    return found


def _beginning(request: RunRequest) -> int | None:
    """How many tests from the first one on are enough; None: all must be looked at."""
    if any(getattr(request, name) for name in LOOKS_AT_ALL):
        return None
    if request.filter_range is not None:
        return case_filters.end_of_range(request.filter_range)
    return request.filter_first_n


class NothingToRun(Exception):
    """The selection holds no case; one clear line, and the problems of files that may be why."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = list(problems)


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
    request = _as_before(request)
    shard = _shard(request)
    paths = paths_of(request)
    if config is None:
        config = load(paths, request.config_file)
    _check_limits(config)
    if request.compat is not None:
        config.suites = [
            *(msgspec.structs.replace(rule, compat=request.compat) for rule in config.suites),
            SuiteRule(path="*", compat=request.compat),
        ]
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
    hooked = any(map(_has_hooks, loaded))
    latest = functools.cache(Index(config.root).latest)
    environment = RunContext(config, trust)
    environment.answers = kept_answers(config, trust, request)
    planned_shard: PlannedShard | None = None
    whole: list[list[Any]] = []
    try:
        if shard is not None:
            cases, planned_shard, whole = _part(choose(cases, request, latest), request, shard)
            planned_shard.asked = shard_runs.asked_of(environment.masker.value(msgspec.to_builtins(request)))
        elif hooked:
            cases = choose(cases, request, latest)
        if hooked:
            cases, settings = with_hooks(cases, settings, environment)
            jobs = plan(cases, config, request, latest, settings, chosen=True)
            mark_failed(jobs, environment)
        else:
            jobs = plan(cases, config, request, latest, settings, chosen=shard is not None)
    except NothingLeft as error:
        raise NothingToRun(str(error)) from None
    if jobs and request.changed_only:
        count = len(jobs)
        jobs = changed(jobs, latest(), Fingerprints(config, trust), provenance_in(Store(config.root)))
        if not jobs:
            raise NothingToRun(
                f"--changed: nothing to run, {count:,} passed last time and nothing of them has changed since"
            )
    if not jobs:
        raise NothingToRun("the filters leave no case to run")
    judged: list[Judged] = []
    if request.continue_from is not None and request.continue_from.turn is None:
        from tui_eval.engine.after.judging_again import answers_beside, judged_by  # late, as below

        answered = answers_beside(Store(config.root), request.continue_from)
        judged = [judged_by(jobs, answered, Path(request.continue_from.run).name)]
        jobs = [judged[0].job]
    elif request.continue_from is not None:
        continuing.place(jobs, request.continue_from, Store(config.root))
    check_judge(request, environment, typed=request.judge)
    check_given(request.agreed, jobs, config, trust)
    linked = request.linked_to
    earlier = recall(environment, config, linked, jobs) if linked is not None else []
    writer = new_writer(store or Store(config.root), config, request, jobs, environment)
    if planned_shard is not None:
        writer.info.provenance[shard_runs.KEY] = msgspec.to_builtins(planned_shard)
        writer.update_info()
        writer.whole_plan(whole)
    if unread := len({str(problem) for problem in problems if problem.level == "error"}):
        writer.info.provenance[UNREAD] = unread
        writer.update_info()
    references: list[list[int]] | None = None
    if judged:
        from tui_eval.engine.after.judging_again import planned  # late, as below

        jobs, references = planned(writer, environment, judged)
    active = ActiveRun(config, request, jobs, environment, writer, problems, on_start, on_done)
    active.runner.earlier = earlier
    runner = active.runner
    active.tickets = runner.plan() if references is None else runner.tickets(references)
    writer.flush()  # who opens the run now sees what it will execute
    return active


def _check_limits(config: Config) -> None:
    """Limits of cost and time that cannot be read are none at all: nothing is asked for without them.

    Raises:
        ConfigError: one of them, with its place.
    """
    for problem in config.problems:
        if problem.level == "error" and problem.key.partition(".")[0] == "run":
            raise ConfigError(str(problem))


def kept_answers(config: Config, trust: Trust, request: RunRequest) -> Answers | None:
    """The answers that are kept where somebody asked for that: what a person runs again is asked anew."""
    wanted = any(spec.cache for spec in config.agents.values()) if request.cache is None else request.cache
    return Answers(config, trust, request.cache, reads=request.linked_to is None) if wanted else None


def _shard(request: RunRequest) -> Shard | None:
    """The part of the cases that is asked for.

    Raises:
        SelectionError: it cannot be read, or every part would be of another whole.
    """
    if request.shard is None:
        return None
    if request.changed_only:
        raise SelectionError(
            "--shard with --changed: what changed is known where the runs before are, not to every shard"
        )
    if request.filter_sample is not None and request.filter_sample_seed is None:
        raise SelectionError(
            "--shard with --filter-sample: each shard would draw other cases; give --filter-sample-seed, the same to all"
        )
    return read_shard(request.shard)


def _part(
    cases: Sequence[Case], request: RunRequest, shard: Shard
) -> tuple[list[Case], PlannedShard, list[list[Any]]]:
    """The shard's part of the chosen cases, with what its run remembers of the whole.

    Raises:
        NothingLeft: there is none.
    """
    if request.agents and request.cells is None:
        cases = list(without_provider_twins(cases))
    own, planned, whole = taken(cases, shard)
    if cases and not own:
        raise NothingLeft(
            f"shard {shard} holds none of the {len(cases):,} cases: there is nothing to run in it"
        )
    return own, planned, whole


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
    """A part of a run that is run again is read as it was read there."""
    if request.linked_to is None or request.rescores or request.configs:
        return request
    from tui_eval.engine.after.judging_again import folder_of  # imported late: a new run needs none of it

    root = find_root([Path(path) for path in request.paths or ["."]], request.config_file)[0]
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
        vars=request.vars or given.vars,
        prompt_prefix=request.prompt_prefix or given.prompt_prefix,
        prompt_suffix=request.prompt_suffix or given.prompt_suffix,
    )


def _has_hooks(suite: Suite) -> bool:
    return any(True for _ in format_of(suite.format).hook_files(suite.settings))


def recall(environment: RunContext, config: Config, run: str | Path, jobs: Sequence[Job]) -> list[Ended]:
    """Rows of a conversation, or with stored outputs, that are run again need what came before them;
    columns that are compared, the other columns, which are given back."""
    theirs = [job for job in jobs if format_of(job.format).templates]
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


def with_hooks(
    cases: Sequence[Case], settings: dict[str, dict[str, Any]], environment: RunContext
) -> tuple[list[Case], dict[str, dict[str, Any]]]:
    """The cases and settings as the suites' `beforeAll` hooks leave them."""
    from tui_eval.engine.run_hooks import SuiteHooks

    environment.hooks = SuiteHooks(settings, environment.config, environment.trust, environment)
    begun, changed = environment.hooks.begin(cases)
    return begun, {**settings, **changed}


def mark_failed(jobs: Sequence[Job], environment: RunContext) -> None:
    """Attempts of suites whose `beforeAll` failed are errors that say so."""
    failed = environment.hooks.failed if environment.hooks is not None else {}
    for job in jobs:
        if job.suite in failed:
            job.problem = failed[job.suite]


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


def new_writer(
    store: Store, config: Config, request: RunRequest, jobs: list[Job], environment: RunContext
) -> RunWriter:
    """The folder of a new run with its facts.

    Raises:
        StoreError: it cannot be written.
    """
    run_id, started_at = store.next_run()
    environment.begin(started_at)
    # What is remembered needs no `--trust` when the run is asked for again.
    remembered = agreed(config.root)
    this_time = sorted(set(request.agreed) - remembered - set(map(fingerprint, remembered)))
    info = RunInfo(
        id=run_id,
        version=__version__,
        started_at=started_at,
        paths=[_relative(path, config.root) for path in [*request.paths, *request.configs] or ["."]],
        options=environment.masker.value(
            msgspec.to_builtins(msgspec.structs.replace(request, agreed=this_time))
        ),
        agents=list(dict.fromkeys(job.agent for job in jobs)),
        linked_to=request.linked_to,
        provenance={
            **({"description": request.description} if request.description else {}),
            judged_under.KEY: judged_under.remembered((job.suite, job.compat) for job in jobs),
        },
        scripted=any(job.spec is not None and job.spec.type == "scripted" for job in jobs),
    )
    folder = store.create_folder(run_id)
    try:
        return RunWriter(folder, info)
    except StoreError:
        shutil.rmtree(
            folder, ignore_errors=True
        )  # a disk that is full: it would stand there as a damaged run
        raise


def _relative(path: str, root: Path) -> str:
    try:
        return str(Path(path).absolute().relative_to(root)) or "."
    except ValueError:
        return path


def _nothing(paths: Sequence[Path], problems: list[Problem]) -> str:
    places = ", ".join(str(path) for path in paths)
    if any(problem.level == "error" for problem in problems):
        return f"nothing to run in {places}: no file of it could be read"
    return f"nothing to run in {places}: {reading.looks_for()}"
