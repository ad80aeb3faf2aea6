"""Preparing a run: suites read, cases chosen, its folder made; the same for the app and the command line."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval import __version__
from tui_eval.config.project import (
    Config,
    SuiteRule,
    closed_to_us,
    find_root,
    load,
    read_withheld,
)
from tui_eval.engine import failed_before
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.after import derived_columns
from tui_eval.engine.after.row_comparison import (
    CaseColumn,
    StoredColumn,
    column_of,
    compares,
    kept_beside,
    names_columns,
    recall_linked,
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
from tui_eval.engine.run_checks import check_given, check_judge, check_limits, check_outputs, check_vars
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.selection import (
    NOTHING_FAILED,
    NothingLeft,
    NothingToRun,
    SelectionError,
    choose,
    left_unmade,
    not_made_before,
)
from tui_eval.formats import format_of, reading
from tui_eval.formats.format import COLUMNS
from tui_eval.formats.reading import SuiteCache
from tui_eval.guard.secrets import in_addresses, in_pairs
from tui_eval.guard.spelling import some_of
from tui_eval.guard.trust import Trust, fingerprint
from tui_eval.guard.trust_store import agreed, trust_for
from tui_eval.model import Attempt, Case, Problem, Suite
from tui_eval.store import judged_under, missing_cases, shard_runs
from tui_eval.store.case_state import Column, by_content
from tui_eval.store.clock_jumps import seen_ahead
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError, not_known_in
from tui_eval.store.schema import KEEPS_ANSWERS, CaseHistory, RunInfo
from tui_eval.store.shard_runs import PlannedShard
from tui_eval.store.writer import RunWriter

if TYPE_CHECKING:
    from tui_eval.engine.after.judging_again import Judged
    from tui_eval.engine.shards import Shard


def prepare(
    request: RunRequest,
    *,
    config: Config | None = None,
    cache: SuiteCache | None = None,
    store: Store | None = None,
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
    run = _Preparation(_as_before(request), config, cache)
    run.environment.answers = kept_answers(run.config, run.trust, run.named, keeps=store is None)
    try:
        run.ask_hooks()
        run.choose()
        run.take_shard()
        run.plan()
    except NothingLeft as error:
        raise run.nothing_left(error) from None
    except SelectionError as error:
        raise run.without_secrets(error) from None
    if not run.jobs:
        raise run.all_filtered_out()
    run.keep_changed()
    run.go_on_from_recorded()
    run.link()
    run.find_never_ran()
    run.check(outputs)
    writer = run.written(store or Store(run.config.root))
    return run.begin(writer, on_done)


class _Preparation:
    """A run that is not there yet: what each step has found of it, for those that follow."""

    def __init__(self, request: RunRequest, config: Config | None, cache: SuiteCache | None) -> None:
        """Read the configuration and the suites.

        Raises:
            NothingToRun: there is no case at all.
            SelectionError, ConfigError: one clear line each.
        """
        self.named = self.request = self._asks = request
        """What was asked for; the same with all tests of which columns are compared; and as far as hooks leave it."""
        self.shard: Shard | None = None
        if request.shard is not None:
            from tui_eval.engine.shards import shard_asked  # late: most runs are whole

            self.shard = shard_asked(request, request.shard)
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
        self.config = config
        self.trust = trust = trust_for(config.root, request.trust, request.agreed)
        check_place(request, config, trust)
        read_withheld(config, trust)
        self.loaded = (cache or SuiteCache()).load(paths, config, trust)
        problems = [*config.problems, *(problem for suite in self.loaded for problem in suite.problems)]
        self.cases = self.chosen = candidates(self.loaded, request)
        self.settings = {suite.path: suite.settings for suite in self.loaded}
        self._hooked = {suite.path for suite in self.loaded if _has_hooks(suite)}
        # Hooks may add tests to columns in which no test of their file runs.
        if not self.cases and not any(self.settings[path].get(COLUMNS) for path in self._hooked):
            raise NothingToRun(_nothing(paths, self.loaded, problems), problems)
        if not self._hooked:
            problems += no_longer_there(request, self.cases)
        self._chooses = self.shard is not None or bool(self._hooked) or names_columns(request)
        """Whether cases are chosen before they are planned, and not by that."""
        self.environment = RunContext(config, trust)
        self.problems = self.environment.masker.value(problems)
        self.jobs: list[Job] = []
        self.of_shards: list[Job] = []
        """What all shards run, where that has to be known."""
        self._planned_shard: PlannedShard | None = None
        self._whole: list[list[Any]] = []
        self._unmade: set[str] = set()
        self._judged: list[Judged] = []
        self._stored: list[StoredColumn] = []
        self._added: list[Job] = []
        self._of_hooks = self._never = self._unknown = ""
        """What is said of the run: of cases that hooks make, that never ran, and of which nothing is known."""
        self._history: dict[str, list[CaseHistory]] | None = None

    @functools.cached_property
    def _store(self) -> Store:
        """The runs that there are."""
        return Store(self.config.root)

    def _latest(self) -> dict[str, list[CaseHistory]]:
        """The last results by case id; asked for only where something looks back."""
        if self._history is None:
            found = Index(self.config.root).latest()
            self._history = dict(by_content(found, candidates(self.loaded, self.named)))
        return self._history

    def ask_hooks(self) -> None:
        """Have the hooks of suites make of their cases what they do."""
        if not self._hooked:
            return
        of_files = CasesOfSuites(self.loaded)
        from tui_eval.engine.run_hooks import SuiteHooks, suites_with_hooks  # late: few suites have any

        self.environment.hooks = hooks = SuiteHooks(
            self.settings, self.config, self.trust, self.environment.hosts
        )
        self.loaded, self.settings, self._asks = suites_with_hooks(
            self.loaded, self._hooked, self.request, self.config.root, hooks
        )
        self.cases = candidates(self.loaded, self._asks)
        if not (self.cases or of_files):
            said = _nothing(paths_of(self.request), self.loaded, self.problems)
            raise NothingToRun(said, self.problems)
        gone = no_longer_there(self.request, [*of_files, *self.cases])
        self.problems += self.environment.masker.value(gone)
        if self._asks.failed_only or (self.request.linked_to and self._asks.cells):
            self._unmade = not_made_before(of_files, CasesOfSuites(self.loaded), self._latest())

    def choose(self) -> None:
        """Choose the cases, with all tests of which columns are compared; else planning chooses them."""
        if not self._chooses:
            return
        self.chosen = choose(self.cases, self._asks, self._latest, self._unmade)
        if self.request.linked_to:
            left = left_unmade(CasesOfSuites(self.loaded), self._unmade, self.chosen)
            self._of_hooks = self.environment.masker.text(left)
        self.cases, self.request = whole_tests(
            self.chosen, self.loaded, self.request, self._latest, self._store
        )

    def take_shard(self) -> None:
        """Keep of the cases those of the shard that was asked for."""
        if self.shard is None:
            return
        if failed_before.looks_back(self.request):
            own = msgspec.structs.replace(self.request)  # planning writes into it
            self.of_shards = self._planned(own, chosen=True)
        asked_by_suite = AskedBySuite(self.config, self.request, self.settings, self.trust)
        from tui_eval.engine.shards import part_of

        self.cases, planned, self._whole = part_of(self.cases, self.request, self.shard, asked_by_suite)
        masked = self.environment.masker.value
        planned.columns = masked(asked_by_suite.kept())
        planned.asked = shard_runs.asked_of(masked(msgspec.to_builtins(self.request)))
        self._planned_shard = planned

    def plan(self) -> None:
        """Make the jobs: who is asked what, and how often."""
        planned_as = request = self.request
        if request.continue_from is not None and request.continue_from.turn is None and request.cells:
            # Whoever answered then, and not whom the suite names by now.
            cells = [msgspec.structs.replace(cell, own=False) for cell in request.cells]
            planned_as = msgspec.structs.replace(request, cells=cells)
        self.jobs = self._planned(planned_as, chosen=self._chooses)
        if self.environment.hooks is not None:
            self.environment.hooks.mark_failed(self.jobs)

    def _planned(self, request: RunRequest, *, chosen: bool) -> list[Job]:
        return plan(
            self.cases, self.config, request, self._latest, self.settings, chosen=chosen, trust=self.trust
        )

    def nothing_left(self, error: NothingLeft) -> NothingToRun:
        """What is said where nothing of what failed before is left to be run."""
        never = self._never_ran(self.of_shards)
        why = f"; but {never}" if never else _NOTHING_YET * (str(error) == NOTHING_FAILED)
        unknown = not_known(UnreadRuns(Index(self.config.root).runs()).all)
        told = "; ".join(filter(None, (f"{error}{why}", unknown, _of_hooks(self.environment))))
        told += not_known_in(closed_to_us(self.config.root))
        return NothingToRun(told, self.problems, incomplete=bool(never))

    def without_secrets(self, error: SelectionError) -> SelectionError:
        """What a selection says there is, masked: cases' names may hold secrets."""
        hidden = KeptCases(self.environment.masker)
        for case in candidates(self.loaded, self.named):
            hidden.learn(case)
        told = "; ".join(filter(None, (str(error), _of_hooks(self.environment))))
        return SelectionError(self.environment.masker.text(told))

    def all_filtered_out(self) -> NothingToRun:
        """What is said where filters leave no case."""
        never = self._never_ran(self.of_shards)
        return NothingToRun(
            "the filters leave no case to run" + (f"; but {never}" if never else ""),
            self.problems,
            incomplete=bool(never),
        )

    def keep_changed(self) -> None:
        """With `--changed`, keep the jobs that did not pass last time, or of which something has changed since.

        Raises:
            NothingToRun: there is none.
        """
        if not self.request.changed_only:
            return
        marks, of_run = Fingerprints(self.config, self.trust), provenance_in(self._store)
        unread = UnreadRuns(Index(self.config.root).runs())
        of_all = self.jobs
        self.jobs, self._unknown = changed(
            of_all, self._latest(), marks, VerdictSettings(marks), of_run, unread
        )
        if not self.jobs:
            raise NothingToRun(_unchanged(of_all), self.problems)

    def go_on_from_recorded(self) -> None:
        """Put the jobs behind a recorded answer: behind one of its turns, or to judge it again."""
        recorded = self.request.continue_from
        if recorded is None:
            return
        if recorded.turn is not None:
            continuing.place(self.jobs, recorded, self._store)
            return
        from tui_eval.engine.after.judging_again import answers_beside, judged_by  # late, as below

        answered = answers_beside(self._store, recorded)
        self._judged = [judged_by(self.jobs, answered, Path(recorded.run).name)]
        self.jobs = [self._judged[0].job]

    def link(self) -> None:
        """Take from the runs that it adds to what they have of compared columns, and leave these out."""
        linked_to = self.request.linked_to
        if linked_to is None:
            return
        asked = _asked(
            self.jobs, self.named, self.request, self.chosen, self.config, self.settings, self.trust
        )
        today = _hashes(self.loaded, self.jobs)
        self._stored = recall_linked(self.environment, self._store, linked_to, self.jobs, asked, today)
        self.jobs, self._added = without_stored(self.jobs, asked, self._stored)

    def find_never_ran(self) -> None:
        """Find what of the cases that are looked back at never ran, or is in a run that cannot be read."""
        self._never = self._never_ran(self.of_shards or self.jobs)
        if self.named.failed_only and (runs := UnreadRuns(Index(self.config.root).runs())).all:
            latest = self._latest()
            self._unknown = not_known(
                runs.beside(latest.get(one, ()) for one in meant(self.named, self.loaded))
            )

    def _never_ran(self, jobs: Sequence[Job]) -> str:
        told = _never_ran(self.config.root, self.named, self.loaded, self._latest, jobs)
        return self.environment.masker.text(told)

    def check(self, outputs: Sequence[Path]) -> None:
        """The last look before anything is written.

        Raises:
            SelectionError, ConfigError: something cannot be run as it was asked for.
        """
        request, config, trust = self.request, self.config, self.trust
        check_judge(request, self.environment, typed=request.judge)
        check_given(request.agreed, self.jobs, config, trust)
        check_sent(request, self.jobs, self.environment, trust)
        check_outputs(outputs, self.loaded, self.jobs, config, trust)

    def written(self, store: Store) -> RunWriter:
        """The run's folder with what is known of it."""
        writer = new_writer(store, self.config, self.request, self.jobs, self.environment)
        if self._planned_shard is not None:
            writer.info.provenance[shard_runs.KEY] = msgspec.to_builtins(self._planned_shard)
            writer.update_info()
            writer.whole_plan(self._whole)
        if unread := missing_cases.unread_remembered(self.problems):
            writer.info.provenance |= self.environment.masker.value(unread)
            writer.update_info()
        if self._never:
            beside = {missing_cases.BESIDE: self._never}
            writer.info.provenance |= self.environment.masker.value(beside)
            writer.update_info()
        return writer

    def begin(
        self,
        writer: RunWriter,
        on_done: Callable[[Job, int, Attempt], None] | None,
    ) -> ActiveRun:
        """The run with its tickets, which whoever opens it sees from now on."""
        former = ""
        references: list[list[int]] | None = None
        if self._judged:
            from tui_eval.engine.after.judging_again import (  # late: a new run needs none of it
                of_former_agents,
                planned,
            )

            former = of_former_agents(self._judged, Fingerprints(self.config, self.trust))
            self.jobs, references = planned(writer, self.environment, self._judged)
        active = ActiveRun(
            self.config, self.request, self.jobs, self.environment, writer, self.problems, on_done
        )
        runner = active.runner
        active.tickets = runner.plan() if references is None else runner.tickets(references)
        runner.earlier = kept_beside(writer, self._stored, active.tickets)
        said = (former or _asked_with_it(self._added), self._never, self._unknown, self._of_hooks)
        active.noted = list(filter(None, said))
        answers = self.environment.answers
        active.unseen = unlisted_data(self.jobs) if answers is not None and answers.reads else ""
        writer.flush()
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


def kept_answers(config: Config, trust: Trust, request: RunRequest, *, keeps: bool = True) -> Answers | None:
    """The answers that are kept, where somebody asked for that; what is asked anew replaces its own in any
    case. Of a run that `keeps` nothing only those that are there are taken."""
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
            **({derived_columns.KEY: metrics} if (metrics := derived_columns.remembered(jobs)) else {}),
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


def _relative(path: str, root: Path) -> str:
    try:
        return str(Path(path).absolute().relative_to(root)) or "."
    except ValueError:
        return path


def _nothing(paths: Sequence[Path], loaded: Sequence[Suite], problems: list[Problem]) -> str:
    places = ", ".join(str(path) for path in paths)
    if any(problem.level == "error" for problem in problems):
        return f"nothing to run in {places}: no file of it could be read"
    if any(suite.path for suite in loaded):
        return f"nothing to run in {places}: no test of its suites is run; `tui-eval check` says why"
    return f"nothing to run in {places}: {reading.looks_for()}; `tui-eval init` writes a first one"
