"""The run in front together with the runs it builds on or that add to it (`r`, `R`, `+`): one list of
cases, each with its newest attempts. Pure.

Which attempts of a case count is `store.linked.generations`' rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from math import ceil
from typing import NamedTuple

from tui_eval.model import Outcome
from tui_eval.store.linked import Placed, generations, replaced_by
from tui_eval.store.schema import AttemptRow, StoredCase
from tui_eval.store.summary import outcome_so_far
from tui_eval.tui.state.runs.run_view import NOT_RUN, RunView


class PlacedAttempt(NamedTuple):
    """An attempt and the run it is in; attempts' ids are unique within a run only."""

    run: RunView
    row: AttemptRow


def key_of(row: StoredCase) -> str:
    """What a case with its agent and model is called in every run of a group."""
    return f"{row.case_id}\n{row.agent}\n{row.model or ''}"


class _Together(NamedTuple):
    """What a group is made of. It is replaced as a whole and never changed: a thread may be reading it."""

    runs: tuple[RunView, ...] = ()
    cases: Mapping[str, Sequence[tuple[RunView, int]]] = {}
    keys: Mapping[str, Sequence[str]] = {}


class RunGroup:
    """Runs that belong together, oldest first. `cases` says in which of them each case is."""

    def __init__(self, runs: Iterable[RunView]) -> None:
        self._now = _Together()
        for run in runs:
            self.add(run)

    @property
    def runs(self) -> Sequence[RunView]:
        """The runs, oldest first."""
        return self._now.runs

    @property
    def cases(self) -> Mapping[str, Sequence[tuple[RunView, int]]]:
        """By its key where each case is: runs, oldest first, and the case's id there."""
        return self._now.cases

    def as_now(self) -> RunGroup:
        """These runs and cases, whatever is taken in or left out later: for a thread that goes through them."""
        group = RunGroup(())
        group._now = self._now
        return group

    def add(self, run: RunView) -> None:
        """Take a run in (or anew)."""
        others = (other for other in self.runs if other.info.id != run.info.id)
        self._hold(sorted([*others, run], key=lambda one: (one.info.started_at, one.info.id)))

    def renew(self) -> None:
        """Look again at which cases the runs have."""
        self._hold(self.runs)

    def _hold(self, runs: Sequence[RunView]) -> None:
        cases: dict[str, list[tuple[RunView, int]]] = {}
        keys: dict[str, list[str]] = {}
        for run in runs:
            for ref, row in run.cases.items():
                key = key_of(row)
                places = cases.get(key)
                if places is None:
                    cases[key] = [(run, ref)]
                    keys.setdefault(row.case_id, []).append(key)
                else:
                    places.append((run, ref))
        self._now = _Together(tuple(runs), cases, keys)

    @property
    def root(self) -> str:
        """The id of the first of the runs; the same as long as others are linked to it."""
        return self.runs[0].info.id if self.runs else ""

    @property
    def active(self) -> list[RunView]:
        """Runs that an engine is at work on."""
        return [run for run in self.runs if run.active]

    def find_run(self, run_id: str | None) -> RunView | None:
        """One of the runs by its id."""
        return next((run for run in self.runs if run.info.id == run_id), None)

    def drop(self, run_id: str) -> None:
        """Leave a run out."""
        self._hold([run for run in self.runs if run.info.id != run_id])

    def keys(self, case_id: str) -> Sequence[str]:
        """The keys of a case: one for each of its columns."""
        return self._now.keys.get(case_id, ())

    def key(self, case_id: str, agent: str | None = None, model: str | None = None) -> str | None:
        """The key of a case (of that agent and model where given)."""
        for key in self.keys(case_id):
            run, ref = self.cases[key][-1]
            row = run.cases[ref]
            if (not agent or row.agent == agent) and (not model or row.model == model):
                return key
        return None

    def key_in(self, run: RunView, case_ref: int) -> str | None:
        """The key of a row of one of the runs."""
        row = run.cases.get(case_ref)
        return key_of(row) if row is not None else None

    def newest(self, key: str) -> tuple[RunView, StoredCase]:
        """The case as the newest of the runs has it, and that run."""
        run, ref = self.cases[key][-1]
        return run, run.cases[ref]

    def first_with(self, keys: Collection[str]) -> RunView | None:
        """The oldest run that has all of these cases: they are of that one, and others ran some of it again."""
        return next((run for run in self.runs if keys and all(self._is_in(run, key) for key in keys)), None)

    def _is_in(self, run: RunView, key: str) -> bool:
        return any(other is run for other, _ in self.cases.get(key, ()))

    def attempts(self, key: str) -> list[PlacedAttempt]:
        """The attempts that count: those since the last rerun, in their order."""
        runs: list[list[Placed]] = []
        for run, ref in self.cases.get(key, ()):
            rows = run.attempts_of(ref)
            if runs and rows and all(row.outcome in ("skipped", "cancelled") for row in rows):
                continue  # changed by hand on its way, or nothing came of it: it takes no result's place
            if runs and not run.active:
                if all(row.state != "done" for row in rows):
                    continue  # cut off before it had any result
                rows = [row for row in rows if row.state == "done" or not row.judges]
            instead = replaced_by(run.info)
            runs.append([Placed(run.info.id, row, instead) for row in rows])
        by_id = {run.info.id: run for run in self.runs}
        return [
            PlacedAttempt(by_id[one.run_id], one.row) for group in generations(runs)[-1:] for one in group
        ]

    def why_no_more(self, key: str) -> str:
        """Why no further attempt of a case can be had now, for a person; empty: it can."""
        left = [one for one in self.attempts(key) if one.row.state != "done"]
        if any(one.run.active for one in left):
            return "this case is still running"
        return "not all of it has run: r runs it anew, u in Runs (H) goes on with the run" if left else ""

    def telling(self, key: str) -> PlacedAttempt | None:
        """The attempt to look at first: one at work, else the first that did not pass (of the newest run
        where it has one), else the last."""
        placed = self.attempts(key)
        working = next((one for one in placed if one.row.state in ("running", "retrying")), None)
        bad = [one for one in placed if one.row.state == "done" and one.row.outcome != "passed"]
        newest = next((one for one in bad if one.run is placed[-1].run), None)
        return working or newest or next(iter(bad), None) or (placed[-1] if placed else None)

    def status(self, key: str) -> str:
        """An outcome, or `running`, `retrying`, `waiting`, `not-run`."""
        placed = self.attempts(key)
        states = {one.row.state for one in placed}
        if "retrying" in states:
            return "retrying"
        if "running" in states:
            return "running"
        active = any(run.active for run, _ in self.cases[key])
        if active and (not placed or "waiting" in states):
            # What earlier runs came to does not make one more attempt run that waits.
            begun = any(one.run.active and one.row.state == "done" for one in placed)
            return "running" if begun else "waiting"
        return self._outcome(key, placed) or NOT_RUN

    def _outcome(self, key: str, placed: Sequence[PlacedAttempt]) -> Outcome | None:
        """By the share of attempts that the case had to pass when it was run as a whole."""
        run, ref = self.cases[key][0]
        row = run.cases[ref]
        required = row.required
        if row.attempts and len(placed) != row.attempts:
            required = ceil(row.required * len(placed) / row.attempts)
        done: list[Outcome] = [one.row.outcome or "cancelled" for one in placed if one.row.state == "done"]
        return outcome_so_far(done, required, len(placed))


def merged(
    own: Sequence[Placed], run_id: str, rows: Iterable[AttemptRow], instead: tuple[str, int] | None = None
) -> list[Placed]:
    """The attempts with those of one run taken anew, in the order of runs."""
    fresh = [Placed(run_id, row, instead) for row in rows]
    others = [one for one in own if one.run_id != run_id]
    return sorted([*others, *fresh], key=lambda one: one.run_id)


def together(placed: Sequence[Placed], run_id: str) -> list[Placed]:
    """Of all attempts of a family, those that count together with a run's (`store.linked.generations`)."""
    runs = [list(own) for _, own in groupby(placed, lambda one: one.run_id)]
    groups = generations(runs)
    return next((group for group in groups if any(one.run_id == run_id for one in group)), list(placed))


def stability(states: Sequence[str]) -> str:
    """What several attempts come to: `2/3 flaky`, `0/3 broken`, `3/3 steady`; nothing where fewer than
    two have ended. Attempts that were cancelled or skipped say nothing."""
    told = [state for state in states if state in ("passed", "failed", "error")]
    if len(told) < 2:
        return ""
    passed = told.count("passed")
    word = "steady" if passed == len(told) else "broken" if not passed else "flaky"
    return f"{passed}/{len(told)} {word}"
