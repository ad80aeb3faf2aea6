"""Reading suites and their past in a daemon thread, handed to the app in portions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from tui_eval.guard.trust import Trust
from tui_eval.model import Case, Problem, Suite
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.tui.background import Tasks
from tui_eval.tui.state.app_state import AppState, CaseItem, Items
from tui_eval.tui.state.lists.suite_changes import EditedSuite, edited
from tui_eval.tui.terminal import gc_pauses

if TYPE_CHECKING:
    from tui_eval.config.project import Config
    from tui_eval.formats.discovery import Looked

PORTION = 0.25
"""Seconds after which what has been read so far is shown."""


class Loaded(msgspec.Struct):
    """A portion: all suites read so far. `wanted` is what they may only do with trust."""

    generation: int
    suites: list[Suite]
    config: Config
    done: bool
    wanted: list[str] = msgspec.field(default_factory=list)
    items: Items | None = None
    """The suites with one item per case and its past, where everything was read."""
    notes: dict[str, list[HumanNote]] = msgspec.field(default_factory=dict)
    problems: list[Problem] = msgspec.field(default_factory=list)
    with_secrets: dict[str, Case] = msgspec.field(default_factory=dict)
    """By their ids the cases of `suites` as they are written, where they are shown otherwise."""
    version: int = -1
    """Of the app's state that `items`, `missing` and `change` were made from, where some suites were read
    again."""
    missing: dict[str, CaseItem] | None = None
    change: EditedSuite | None = None
    looked: Looked | None = None
    """The folders that the suites were looked for in, where everything was read."""


class TakesSuites(Protocol):
    """Whoever is given what was read, on the app's loop."""

    def take_suites(self, loaded: Loaded) -> None:
        """A portion of suites was read."""
        ...

    def take_some_suites(self, loaded: Loaded, then: Callable[[EditedSuite], Any] | None) -> None:
        """Suites were read again after an edit."""
        ...

    def tell_unread(self, words: str) -> None:
        """What cases passed before runs that cannot be read."""
        ...


class Loader:
    """Reads the suites of `paths`; a newer reading makes an older one's portions void."""

    def __init__(self, state: AppState, tasks: Tasks, taker: TakesSuites, paths: Iterable[Path]) -> None:
        self._state, self._tasks, self._taker = state, tasks, taker
        self._paths = list(paths)
        self.generation = 0

    def load(self) -> None:
        """Read everything; portions go to `take_suites`."""
        self.generation += 1
        generation = self.generation
        trusted = self._state.trusted

        def load() -> None:
            try:
                self._load(generation, trusted)
            finally:
                gc_pauses.enable()  # off since the start (commands.app)

        self._tasks.thread(load, name="loader", queue="suites")

    def reload(self, suites: Sequence[Suite], then: Callable[[EditedSuite], Any] | None = None) -> None:
        """Read these suites again; they go to `take_some_suites`, with what is to be done then."""
        generation = self.generation
        state = self._state
        trusted, version, all_suites = state.trusted, state.version, list(state.suites)
        paths = [suite.path for suite in suites]

        def reload() -> None:
            from tui_eval.formats.reading import without_parts

            loaded = self._reload(paths, trusted, generation)
            fresh = {suite.path for suite in loaded.suites}
            others = [suite for suite in all_suites if suite.path not in fresh]
            secret = {**state.secret_cases(), **loaded.with_secrets}
            tests = without_parts([*others, *loaded.suites], loaded.config)
            loaded.items, loaded.version = Items(tests, state.past(), secret), version
            loaded.missing = state.missing(loaded.items)
            loaded.change = edited([suite for suite in all_suites if suite.path in fresh], loaded.suites)
            self._tasks.later(self._taker.take_some_suites, loaded, then)

        self._tasks.thread(reload, name="reloader", queue="suites")

    def _load(self, generation: int, trusted: bool) -> None:
        from tui_eval.config import project
        from tui_eval.engine.wants import wants
        from tui_eval.formats import reading
        from tui_eval.formats.discovery import suite_path
        from tui_eval.store.index import Index

        settings = project.load(self._paths, self._state.config_file, root=self._state.root)
        trust = Trust(granted=trusted, agreed=self._state.agreed)
        project.read_withheld(settings, trust)
        history = Index(settings.root).latest()
        notes = Notes(settings.root).by_case()
        looked: Looked = {}
        found, problems = reading.discover(
            [Path(path) for path in self._paths], settings.root, trust=trust, looked=looked
        )
        read = reading.unreadable(one for one in problems if not one.passed_over)
        items: Items | None = None
        shown, secret = list(read), dict[str, Case]()
        due = time.monotonic() + PORTION
        for number, path in enumerate(found, 1):
            if generation != self.generation:
                return
            many = f", {number:,} of {len(found):,} files" if len(found) > 1 else ""
            self._state.reading = f"{suite_path(path, settings.root)}{many}"
            read.append(_whole(reading.load(path, settings, trust)))
            shown.append(_shown(read[-1], settings, secret))
            if time.monotonic() > due:
                items = Items(shown, history, secret)
                portion = Loaded(generation, items.suites, settings, False, items=items, notes=notes)
                self._tasks.later(self._taker.take_suites, portion)
                due = time.monotonic() + PORTION * 4
        self._state.reading = ""
        tests = reading.without_parts(read, settings)
        if len(tests) < len(read):  # a portion may have had the others, and not yet all of these
            items, read, kept = None, tests, {suite.path for suite in tests}
            shown = [suite for suite in shown if suite.path in kept]
        left = reading.remaining(problems, read, settings)
        shown += reading.unreadable(one for one in left if one.passed_over)
        if items is None or len(items.suites) < len(shown):
            items = Items(shown, history, secret)
        wanted = wants(sorted(read, key=lambda suite: suite.path), settings, trust)
        told = project.masker(settings).value(
            [*settings.problems, *(one for one in left if one.level == "note")]
        )
        self._tasks.later(
            self._taker.take_suites,
            Loaded(generation, items.suites, settings, True, wanted, items, notes, told, looked=looked),
        )
        unread = [run for run in Index(settings.root).runs() if run.unread]
        if unread:
            from tui_eval.engine.changed import (
                UnreadRuns,
                not_known,
            )  # imported late: there are hardly ever any

            own = (history.get(case.case_id, ()) for suite in items.suites for case in suite.cases)
            words = not_known(UnreadRuns(unread).beside(own), "H")
            self._tasks.later(self._taker.tell_unread, words)

    def _reload(self, paths: list[str], trusted: bool, generation: int) -> Loaded:
        from tui_eval.config import project
        from tui_eval.engine.wants import wants
        from tui_eval.formats import reading

        settings = project.load(self._paths, self._state.config_file, root=self._state.root)
        trust = Trust(granted=trusted, agreed=self._state.agreed)
        project.read_withheld(settings, trust)
        if self._state.config is not None:  # suites that are not read again are masked as they were
            settings.suite_secrets += self._state.config.suite_secrets
        read = [_whole(reading.load(settings.root / path, settings, trust)) for path in paths]
        secret: dict[str, Case] = {}
        shown = [_shown(suite, settings, secret) for suite in read]
        wanted = wants(read, settings, trust)
        return Loaded(generation, shown, settings, True, wanted, with_secrets=secret)


def _shown(suite: Suite, settings: Config, with_secrets: dict[str, Case]) -> Suite:
    """A suite as the app has it: with secrets masked; its cases as they are written go to `with_secrets`, where they
    differ."""
    from tui_eval.config.project import masker
    from tui_eval.engine.kept_cases import KeptCases

    hide = masker(settings)
    cases = KeptCases(hide).kept_all(suite.cases)
    for number, one in enumerate(suite.cases):
        if cases[number] is not one:  # where it stands is what it is found by
            cases[number] = msgspec.structs.replace(
                cases[number], case_id=one.case_id, suite=one.suite, file=one.file
            )
    with_secrets.update(
        (one.case_id, one) for one, kept in zip(suite.cases, cases, strict=True) if kept is not one
    )
    return msgspec.structs.replace(
        suite, cases=cases, problems=hide.value(suite.problems), name=hide.text(suite.name),
        description=hide.text(suite.description),
    )  # fmt: skip


def _whole(suite: Suite) -> Suite:
    """A suite whose cases are all made, here in the thread rather than on the app's loop."""
    from tui_eval.formats import reading

    suite.cases = reading.all_cases([suite])
    return suite
