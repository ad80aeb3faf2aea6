"""The cases that a list shows: how many there are, how their rows are made, which attempt each leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from tui_eval.model import Problem, Suite
from tui_eval.tui.state.app_state import AppState, CasePointer
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.entries import OF_COLUMN, entries_of, run_entries, run_entry, suite_entries

ENOUGH = 4_000
"""Rows that are many, however many more there are."""


class CaseSource(Protocol):
    """Where a list of cases has them from."""

    def count(self) -> int:
        """How many rows there are to be made."""
        ...

    def maker(self) -> Callable[[], list[CaseRow]]:
        """What makes all of them, as things stand now; may be called in a thread."""
        ...

    def some(self, keys: Iterable[str]) -> Iterable[CaseRow]:
        """Those of these keys anew."""
        ...

    def suites(self) -> Iterable[Suite]:
        """Suites whose problems stand in the list."""
        ...

    def pointer_of(self, entry: CaseRow) -> CasePointer:
        """Where a row's case is found."""
        ...


class SuiteCases:
    """The cases of the suites, with their last outcomes."""

    def __init__(self, state: AppState) -> None:
        self._state = state

    def count(self) -> int:
        """One for each case of the suites in each column that it was asked in; of many at least so many, as counting
        them would take its time, too."""
        many = len(self._state.rows)
        for item in self._state.rows:
            if many > ENOUGH:
                break
            many += max(len({(past.agent, past.model) for past in item.history}) - 1, 0)
        return many

    def maker(self) -> Callable[[], list[CaseRow]]:
        """From the suites and their past."""
        return partial(suite_entries, self._state)

    def some(self, keys: Iterable[str]) -> Iterable[CaseRow]:
        """The cases of these ids, or those that rows of these keys are of, in all their columns."""
        state = self._state
        ids = dict.fromkeys(key.partition(OF_COLUMN)[0] for key in keys)
        return [entry for key in ids if key in state.by_id for entry in entries_of(state.by_id[key], state)]

    def suites(self) -> Iterable[Suite]:
        """All suites, and the configuration where something is wrong in it."""
        state = self._state
        by_file: dict[str, list[Problem]] = {}
        for problem in state.problems:
            by_file.setdefault(problem.path, []).append(problem)
        known = {suite.path for suite in state.suites}
        files = [
            Suite(path=path, format="", name=path, problems=sorted(problems, key=lambda one: one.line))  # type: ignore[arg-type]
            for path, problems in by_file.items()
            if path not in known
        ]
        return [*files, *state.suites] if files else state.suites

    def pointer_of(self, entry: CaseRow) -> CasePointer:
        """The case in the run that made its outcome, in the column that stands for it."""
        state = self._state
        if entry.run_id:
            return CasePointer(entry.case_id, entry.agent or None, entry.whom.model or None, entry.run_id)
        item = state.by_id.get(entry.case_id)
        last = item.last_of(entry.agent, entry.model) if item else None
        if last is None:
            return CasePointer(entry.case_id, entry.agent or None, entry.model or None)
        return CasePointer(entry.case_id, last.agent, last.model, last.run_id)


class RunCases:
    """The cases of the run in front and of those that add to it, one row for each column."""

    def __init__(self, state: AppState) -> None:
        self._state = state

    def count(self) -> int:
        """One for each case and column of the run."""
        group = self._state.group
        return len(group.cases) if group is not None else 0

    def maker(self) -> Callable[[], list[CaseRow]]:
        """From the run."""
        state = self._state
        return partial(run_entries, state.group, state) if state.group is not None else list

    def some(self, keys: Iterable[str]) -> Iterable[CaseRow]:
        """The cases of these keys."""
        state = self._state
        group = state.group
        return (
            [run_entry(group, key, state) for key in keys if key in group.cases] if group is not None else []
        )

    def suites(self) -> Iterable[Suite]:
        """None: problems of the files belong to the Suites screen."""
        return ()

    def pointer_of(self, entry: CaseRow) -> CasePointer:
        """The case in this run; the attempt is the first that did not pass."""
        group = self._state.group
        best = group.telling(entry.key) if group is not None else None
        return CasePointer(
            entry.case_id,
            entry.agent or None,
            entry.model or None,
            best.run.info.id if best is not None else entry.run_id or None,
            best.row.id if best is not None else None,
        )
