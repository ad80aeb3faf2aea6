"""Reading the list of runs, a run's figures, search results and recorded cases; called in threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from tui_eval.case_names import full_name
from tui_eval.model import JUDGED, Case
from tui_eval.store.column_names import in_columns
from tui_eval.store.failure_modes import Assessment
from tui_eval.store.full_text import Progress, search
from tui_eval.store.index import Index
from tui_eval.store.linked import MOST_LISTED
from tui_eval.store.listed_names import may_be_unnamed
from tui_eval.store.reader import RunReader
from tui_eval.store.rescued import delete_run
from tui_eval.store.run_folders import GUESTS, Store, StoreError, is_alive
from tui_eval.store.schema import RunSummary, StoredCase
from tui_eval.store.shard_runs import is_looked_at
from tui_eval.tui.loaders.compare_loader import pairs_of
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.run_line import RunLine, adding_to, under_their_runs
from tui_eval.tui.state.runs.runs_view import RunFacts
from tui_eval.tui.state.runs.search_view import FoundEntry


def load_runs(root: Path) -> list[RunLine]:
    """The newest runs with their figures, newest first; guests among them."""
    index = Index(root)
    runs = index.runs(MOST_LISTED)
    known = index.figures()
    own = {run.id for run in runs}
    for run_id, folder in GUESTS.items():
        if run_id not in own:
            theirs = Index(folder.parents[2])
            runs += [_as_looked_at(run, folder) for run in theirs.runs() if run.id == run_id]
            known |= theirs.figures()
    runs.sort(key=lambda run: run.id, reverse=True)
    below = adding_to(runs)
    return under_their_runs(
        [RunLine(run, *known.get(run.id, (None, None)), below.get(run.id, 0)) for run in runs]
    )


def _as_looked_at(run: RunSummary, folder: Path) -> RunSummary:
    """Shards that are looked at, of which some are still to come or to go on, are paused by nobody."""
    waits = run.state == "paused" and is_looked_at(folder)
    return msgspec.structs.replace(run, state="waiting") if waits else run


def load_facts(folder: Path) -> RunFacts:
    """What a run's own folder says."""
    try:
        with closing(RunReader(folder)) as reader:
            # An answer that is judged again took its time and tokens once, where it was asked.
            rows = [row for row in reader.attempts() if row.state == "done" and not row.judges]
            cases, assessment = reader.cases(), reader.assessment()
            return RunFacts(
                reader.info(),
                [row.duration_ms for row in rows if row.duration_ms is not None and row.outcome in JUDGED],
                [
                    float((row.input_tokens or 0) + (row.output_tokens or 0))
                    for row in rows
                    if row.input_tokens is not None or row.output_tokens is not None
                ],
                assessment,
                bool(pairs_of(cases)),
                names=_names_of_examples(reader, assessment, cases),
            )
    except (StoreError, OSError) as error:
        return RunFacts(problem=str(error))


def _names_of_examples(
    reader: RunReader, assessment: Assessment, cases: Iterable[StoredCase]
) -> dict[tuple[str, str], str]:
    """What lists call the cases of the examples, with what tells them from others, by id and agent."""
    wanted = {(one.case_id, one.agent) for mode in assessment.modes for one in mode.examples[:1]}
    rows = [case for case in cases if (case.case_id, case.agent) in wanted]
    if any(map(may_be_unnamed, rows)):
        rows = reader.listed(rows)
    return {(row.case_id, row.agent): full_name(row.name, row.variant) for row in rows}


MOST_FOUND = 500
"""Places of all runs that are shown."""
RunProgress = Callable[[int, int, int, int], bool]
"""Told the run's number and how many there are, its attempts that are gathered and how many it has."""


def find(folder: Path, words: str, progress: Progress | None = None) -> tuple[list[FoundEntry], int]:
    """Entries of the run's transcripts that hold all the words, best first, and how many there are in all.

    Raises:
        StoreError: the run cannot be read.
    """
    with closing(RunReader(folder)) as reader:
        hits = search(reader, words, progress=progress)
        rows = {row.id: row for row in reader.attempts_with([hit.attempt_ref for hit in hits.best])}
        refs = {row.case_ref for row in rows.values()}
        those = [case for case in reader.cases() if case.id in refs] if rows else []
        if any(map(may_be_unnamed, those)):
            those = reader.listed(those)
        cases = {case.id: case for case in those}
        found: list[FoundEntry] = []
        for hit in hits.best:
            row = rows.get(hit.attempt_ref)
            case = cases.get(row.case_ref) if row is not None else None
            if row is not None and case is not None:
                found.append(FoundEntry(hit, case, row.attempt, row.outcome or ""))
        return found, hits.total


class Everywhere(NamedTuple):
    """What a search through all runs found: the best places, how many there are, the runs that hold them, those
    that were searched and those that could not be read."""

    found: list[FoundEntry]
    total: int
    runs: int
    searched: int
    unreadable: int


def find_everywhere(root: Path, words: str, progress: RunProgress | None = None) -> Everywhere:
    """The same in all runs of the project, the newest run first, its best places first.

    Args:
        progress: Told which run of how many is read, and how far that is; the answer False ends the search.
    """
    folders = list(Store(root).run_folders())
    found: list[FoundEntry] = []
    total = runs = unreadable = 0
    for number, folder in enumerate(folders):
        if progress is not None and not progress(number, len(folders), 0, 0):
            break
        of_run = partial(progress, number, len(folders)) if progress is not None else None
        try:
            best, count = find(folder, words, of_run)
        except (StoreError, OSError, sqlite3.Error):
            unreadable += 1
            continue
        total, runs = total + count, runs + bool(count)
        for one in best[: max(MOST_FOUND - len(found), 0)]:
            one.run_id = folder.name
            found.append(one)
    return Everywhere(found, total, runs, len(folders), unreadable)


def delete(root: Path, run_ids: Sequence[str]) -> list[str]:
    """Delete these runs; those that are being executed stay. Returns one line for each that stayed."""
    store, index = Store(root), Index(root)
    stayed: list[str] = []
    for run_id in run_ids:
        folder = store.folder_of(run_id)
        if run_id in GUESTS and not store.holds(folder):
            stayed.append(f"{run_id}: is not in this project, so it stays")
            continue
        if is_alive(folder):
            stayed.append(f"{run_id}: is being executed, so it stays")
            continue
        try:
            delete_run(folder)
        except OSError as error:
            stayed.append(f"{run_id}: {error.strerror or error}")
            continue
        index.forget(run_id)
    return stayed


# -- Cases as the record of their run has them, for the grid: those of a results file without its suite, and
# those that a hook added, are in no suite that was read.


class RecordedAt(NamedTuple):
    """Where the record of a case is: its run, and its row there."""

    run_id: str
    case_ref: int


def recorded_at(row: CaseRow) -> RecordedAt | None:
    """Where to look for the case of a row; None where it has it, or was never run."""
    if row.case is not None or row.case_ref is None:
        return None
    return RecordedAt(row.run_id, row.case_ref)


def recorded_cases(rows: Iterable[CaseRow], folders: Mapping[str, Path]) -> dict[RecordedAt, Case | None]:
    """The cases of these rows by where they are; None where the record cannot be read, and of suites whose cases stand
    in no columns: their ids say all that is asked of them."""
    runs: dict[str, list[tuple[RecordedAt, str]]] = {}
    for row in rows:
        if (place := recorded_at(row)) is not None:
            runs.setdefault(place.run_id, []).append((place, row.suite))
    found: dict[RecordedAt, Case | None] = {}
    for run_id, places in runs.items():
        found.update(dict.fromkeys(place for place, _ in places))
        if run_id not in folders:
            continue
        plain: set[str] = set()
        with suppress(StoreError, OSError), closing(RunReader(folders[run_id])) as reader:
            for place, suite in places:
                if suite in plain:
                    continue
                case = reader.case(place.case_ref)
                if in_columns(case):
                    found[place] = case
                else:
                    plain.add(suite)
    return found


def with_recorded(rows: Iterable[CaseRow], known: Mapping[RecordedAt, Case | None]) -> list[CaseRow]:
    """The rows, with the cases that are known from records."""
    told: list[CaseRow] = []
    for row in rows:
        place = recorded_at(row)
        case = known.get(place) if place is not None else None
        told.append(row if case is None else msgspec.structs.replace(row, case=case))
    return told
