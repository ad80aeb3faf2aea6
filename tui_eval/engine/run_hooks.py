"""The suites' own hooks during a run: before and after everything, and each attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.config.project import Config, ConfigError, rule_for
from tui_eval.engine.candidates import CasesOfSuites
from tui_eval.engine.case_filters import FilterError, by_columns
from tui_eval.engine.plan import Job
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import SelectionError, choose
from tui_eval.formats import format_of
from tui_eval.formats.format import COLUMNS, HookError, Hooks, HookScene
from tui_eval.guard.spelling import some_of
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.javascript import Hosts
from tui_eval.model import Attempt, Case, Compat, Entry, Suite
from tui_eval.store.case_state import not_passed
from tui_eval.store.index import Index
from tui_eval.store.missing_cases import is_only_named
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, StoredCase


class SuiteHooks:
    """The hooks of the suites of one run."""

    def __init__(
        self, settings: dict[str, dict[str, Any]], config: Config, trust: Trust, processes: Hosts
    ) -> None:
        self._hooks: dict[str, Hooks] = {}
        self._settings = settings
        self._config, self._trust, self._processes = config, trust, processes
        self._cases: dict[str, list[Case]] = {}
        self.failed: dict[str, str] = {}
        self._failed_after: dict[str, int] = {}

    def begin(
        self, cases: Sequence[Case], bare: Sequence[str] = ()
    ) -> tuple[list[Case], dict[str, dict[str, Any]]]:
        """The cases and the settings as `beforeAll` of their suites leaves them, those of `bare` included, whose files
        make no case: it may add some. A suite whose hook fails keeps its cases, a bare one those of its columns, and
        `failed` says why. For threads without an event loop."""
        columns = {suite: self._settings[suite].get(COLUMNS) or [] for suite in bare}
        first = {suite: found[0] for suite, found in columns.items() if found}
        for suite, case in ({case.suite: case for case in cases} | first).items():
            if (hooks := self._of(suite, case)) is not None:
                self._hooks[suite] = hooks
        if not self._hooks:
            return list(cases), {**self._settings}
        begun, changed = asyncio.run(self._begin(cases, [suite for suite in first if suite in self._hooks]))
        return begun, {**self._settings, **changed}

    def go_on(
        self,
        folder: Path,
        rows: Mapping[int, StoredCase],
        attempts: Iterable[AttemptRow],
        left: Mapping[int, Case],
    ) -> None:
        """Begin for a run that is gone on with, of which these cases are `left`: what they prepare is needed again, and
        `afterAll` is told of all of the run, as by promptfoo. For threads without an event loop."""
        hooked = {
            suite
            for suite, case in {case.suite: case for case in left.values()}.items()
            if self._of(suite, case) is not None
        }
        with closing(RunReader(folder)) as reader:
            known = {
                ref: left.get(ref) or reader.case(ref)
                for ref, row in rows.items()
                if row.suite in hooked and not is_only_named(row)
            }
            self.begin([*known.values(), *(case for ref, case in left.items() if ref not in known)])
            for row in attempts:
                case = known.get(row.case_ref) if row.state == "done" else None
                if case is not None and (attempt := reader.attempt(row.id)) is not None:
                    self.counted(case, attempt)

    def narrow(self, filters: RunRequest) -> None:
        """Leave hooks the columns that filters of prompts and providers mean, for the tests that they add."""
        if filters.filter_prompts is None and filters.filter_providers is None:
            return
        for suite, settings in self._settings.items():
            if COLUMNS not in settings:
                continue
            try:
                left = by_columns(list(settings[COLUMNS]), filters)
            except FilterError:
                left = []
            self._settings[suite] = {**settings, COLUMNS: left}

    def has_columns(self, suites: Collection[str]) -> bool:
        """Whether there are columns left in one of them, for the tests that hooks add."""
        return any(self._settings[suite].get(COLUMNS) for suite in suites)

    def _of(self, suite: str, case: Case) -> Hooks | None:
        rule = rule_for(self._config, suite)
        compat: Compat = (rule.compat if rule else None) or "documented"
        scene = HookScene(self._config, self._trust, self._processes, compat)
        settings, base = self._settings.get(suite, {}), (self._config.root / suite).parent
        return format_of(case.format).hooks(settings, base, scene)

    async def _begin(
        self, cases: Sequence[Case], bare: Sequence[str]
    ) -> tuple[list[Case], dict[str, dict[str, Any]]]:
        result: list[Case] = []
        changed: dict[str, dict[str, Any]] = {}
        own: dict[str, list[Case]] = {suite: [] for suite in bare}
        for case in cases:
            own.setdefault(case.suite, []).append(case)
        for suite, members in own.items():
            hooks = self._hooks.get(suite)
            if hooks is not None:
                try:
                    members, changed[suite] = await hooks.before_all(members, self._settings[suite])
                except (HookError, NeedsTrust) as error:
                    self.failed[suite] = str(error)
                    members = members or self._settings[suite][COLUMNS]
                self._cases[suite] = list(members)
            result.extend(members)
        return result, changed

    def mark_failed(self, jobs: Sequence[Job]) -> None:
        """Attempts of suites whose `beforeAll` failed are errors that say so."""
        for job in jobs:
            if job.suite in self.failed:
                job.problem = self.failed[job.suite]

    async def before_each(self, case: Case) -> Case:
        """The case as `beforeEach` leaves it.

        Raises:
            ConfigError, NeedsTrust: the hook fails or may not run.
        """
        hooks = self._hooks.get(case.suite)
        try:
            return case if hooks is None else await hooks.before_each(case)
        except HookError as error:
            raise ConfigError(str(error)) from None

    async def after_each(self, case: Case, attempt: Attempt) -> None:
        """Tell of an attempt that has ended, and add to it what hooks give; one that fails is a note in its
        transcript."""
        hooks = self._hooks.get(case.suite)
        if hooks is None:
            return
        try:
            await hooks.after_each(case, attempt)
        except (HookError, NeedsTrust) as error:
            attempt.transcript.append(Entry(turn=1, kind="note", text=f"hook failed: {error}"))
            self._failed_after[str(error)] = self._failed_after.get(str(error), 0) + 1

    def counted(self, case: Case, attempt: Attempt) -> None:
        """What an attempt has come to since it ended, for `afterAll`."""
        if (hooks := self._hooks.get(case.suite)) is not None:
            hooks.counted(case, attempt)

    def words(self) -> str:
        """Which hooks failed after attempts, what they were to add being missing there; empty: none."""
        told = (
            f"{error} (after {count:,} attempt{'s' if count > 1 else ''})"
            for error, count in self._failed_after.items()
        )
        return f"hook failed: {some_of(list(told), 3)}" if self._failed_after else ""

    async def end(self, evaluation: str) -> list[str]:
        """Tell that the run is over; what went wrong, a line each. `evaluation` is its `__evalId`."""
        problems: list[str] = []
        for suite, hooks in self._hooks.items():
            if suite in self.failed:
                continue
            try:
                await hooks.after_all(self._cases.get(suite, []), self._settings[suite], evaluation)
            except (HookError, NeedsTrust) as error:
                problems.append(f"{suite}: {error}")
        return problems


_NAMES = ("select", "cells", "case_ids", "failed_only")
_HOW_MANY = ("filter_range", "filter_first_n", "filter_sample", "filter_sample_seed")
_FILTERS = (
    "filter_metadata", "filter_pattern", "filter_prompts", "filter_providers", "filter_failing", "filter_failing_only",
    "filter_errors_only",
)  # fmt: skip


_OF_COLUMNS = ("filter_prompts", "filter_providers")


def suites_with_hooks(
    loaded: Sequence[Suite],
    hooked: Collection[str],
    request: RunRequest,
    root: Path,
    hooks: SuiteHooks,
) -> tuple[list[Suite], dict[str, dict[str, Any]], RunRequest]:
    """The suites as their `beforeAll` hooks leave them, so that a case which a hook adds can be named, and is of one
    shard; and what is left to ask of them. Filters are the tool's and come before its hooks, as there. Hooks of suites
    that nothing named can be in are not run: they may start servers."""
    named = any(getattr(request, name) for name in _NAMES) or request.cells is not None
    asks = _asks_for(request, (*_NAMES, *(_HOW_MANY if named else ())))
    filters = _asks_for(request, (*_FILTERS, *(() if named else _HOW_MANY)))
    may = _may_be_meant(loaded, request, root)
    hooked = {path for path in hooked if may is None or path in may}
    cases: dict[str, Sequence[Case]] = {suite.path: suite.cases for suite in loaded}
    # Filters of columns alone leave a suite its tests: what its hooks add runs in the columns that are left, though no
    # test of its file does.
    of_columns = _asks_for(request, _OF_COLUMNS) == filters
    hooks.narrow(filters)
    every = CasesOfSuites(loaded)
    try:
        left = choose(every, filters, dict)
    except SelectionError:
        if not (of_columns and hooks.has_columns(hooked)):
            raise
        left = ()
    if left is not every:
        cases = _by_suite(loaded, left)
    seen = [case for path in cases if path in hooked for case in cases[path]]
    without = [one for one in loaded if not (cases[one.path] if of_columns else one.cases)]
    made, settings = hooks.begin(seen, [one.path for one in without if one.path in hooked])
    after = _by_suite([suite for suite in loaded if suite.path in hooked], made)
    if asks.case_ids is not None and not (request.cells or request.linked_to or request.continue_from):
        # Who asks for all that a suite's file holds asks for the suite, as its name on the command line does.
        ids = set(asks.case_ids)
        own = ((path, [case.case_id for case in cases[path]]) for path in after)
        whole = [path for path, found in own if found and ids.issuperset(found)]
        asks.case_ids = [*asks.case_ids, *(case.case_id for path in whole for case in after[path])]
    cases |= after
    return [msgspec.structs.replace(one, cases=cases[one.path]) for one in loaded], settings, asks


def _by_suite(suites: Sequence[Suite], cases: Iterable[Case]) -> dict[str, Sequence[Case]]:
    found: dict[str, list[Case]] = {suite.path: [] for suite in suites}
    for case in cases:
        found[case.suite].append(case)
    return {**found}


def _asks_for(request: RunRequest, names: Sequence[str]) -> RunRequest:
    """A request for these things of another alone."""
    return RunRequest(**{name: getattr(request, name) for name in names})


def _may_be_meant(loaded: Sequence[Suite], request: RunRequest, root: Path) -> set[str] | None:
    """The suites in which that can be what a request names; None: in any."""
    if request.case_ids is not None or request.cells is not None:
        ids = request.case_ids or [cell.case_id for cell in request.cells or ()]
        return {case_id.partition("::")[0] for case_id in ids}
    if request.select:
        try:
            return {
                case.suite for case in choose(CasesOfSuites(loaded), _asks_for(request, ["select"]), dict)
            }
        except SelectionError:
            return None  # it may be a case that a hook adds
    if request.failed_only:
        latest = Index(root).latest()
        return {case_id.partition("::")[0] for case_id, results in latest.items() if not_passed(results)}
    return None
