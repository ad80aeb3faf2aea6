"""The digest across runs: the list of runs, and each case's results over time.

It holds nothing that the runs' folders do not: a run missing in it is read from its folder, and a
damaged index is thrown away and built again.

Results are in the order of their ends. An end that is ahead of the clock was recorded while the clock was ahead, and is
no time: such a result counts as of when the run after it began, else as of when the index saw that. A run that begins, or
goes on, keeps which ends were ahead of its clock then (`seen_ahead`): later they are no more, and say nothing of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from typing import Any, Self

from tui_eval.case_names import full_name, number_of_test
from tui_eval.causes import is_of_file
from tui_eval.guard import figures, private
from tui_eval.model import JUDGED
from tui_eval.store.case_state import Column
from tui_eval.store.digests import check_whole, connect_or_renew, is_damage, read_again
from tui_eval.store.judged_under import compat_of, other_rules
from tui_eval.store.missing_cases import lacks_of
from tui_eval.store.pending import insert_rows
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import (
    DATABASE,
    DamagedRun,
    NeverBegun,
    NewerRun,
    Store,
    StoreError,
    is_alive,
    project_of_run,
    time_in,
    touched,
    written_mark,
)
from tui_eval.store.schema import Asked, AttemptRow, CaseHistory, RunInfo, RunSummary, StoredCase
from tui_eval.store.shard_runs import merged_of, shard_words
from tui_eval.store.summary import CaseSummary, CaseTaker, RunSums, summarise

_VERSION = 25
_KEPT_PER_COLUMN = 12
_BUSY_SECONDS = 10.0
_NAMED = 3
"""Cases of one test that the name of what was run says one by one."""
_TABLES = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, started_at REAL NOT NULL, finished_at REAL, what TEXT NOT NULL,
    agents TEXT NOT NULL, total INTEGER NOT NULL, passed INTEGER NOT NULL, failed INTEGER NOT NULL,
    errors INTEGER NOT NULL, cancelled INTEGER NOT NULL, cost REAL, linked_to TEXT,
    cached INTEGER NOT NULL, saved REAL, stepped INTEGER NOT NULL, paused_for REAL NOT NULL, merged TEXT NOT NULL,
    cost_of INTEGER NOT NULL, tokens_of INTEGER NOT NULL, only_case TEXT NOT NULL, only_suite TEXT NOT NULL, rules TEXT NOT NULL,
    judge_tokens INTEGER, judge_cost REAL, judge_cached INTEGER NOT NULL, judge_saved REAL, ahead TEXT NOT NULL,
    cases_failed INTEGER NOT NULL, cases_errors INTEGER NOT NULL, lacks TEXT NOT NULL, went_on_after TEXT NOT NULL, last_end REAL NOT NULL,
    tokens INTEGER, latency_ms REAL, case_set BLOB NOT NULL, written INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE case_sets (digest BLOB PRIMARY KEY, marks BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE results (
    run_id TEXT NOT NULL, case_id TEXT NOT NULL, agent TEXT NOT NULL, model TEXT, outcome TEXT NOT NULL,
    passed INTEGER NOT NULL, attempts INTEGER NOT NULL, finished_at REAL NOT NULL, duration_ms REAL,
    tokens INTEGER, cost REAL, content_hash TEXT NOT NULL, message TEXT NOT NULL,
    own_attempts INTEGER NOT NULL, asked TEXT NOT NULL, cause TEXT NOT NULL, alike TEXT NOT NULL,
    cached INTEGER NOT NULL, judge_cost REAL, compat TEXT NOT NULL, unjudged INTEGER NOT NULL, judges TEXT NOT NULL, answers TEXT NOT NULL);
CREATE INDEX results_by_case ON results (case_id, finished_at);
CREATE INDEX results_by_run ON results (run_id);
"""
_RESULT_COLUMNS = (
    "run_id, case_id, agent, model, outcome, passed, attempts, finished_at, duration_ms, tokens, cost,"
    " content_hash, message, own_attempts, asked, cause, alike, cached, judge_cost, compat, unjudged, judges"
)
_RUN_COLUMNS = (
    "id, state, started_at, finished_at, what, agents, total, passed, failed, errors, cancelled, cost, linked_to,"
    " cached, saved, stepped, paused_for, cost_of, tokens_of, only_case AS only, only_suite AS suite, rules, judge_tokens,"
    " judge_cost, judge_cached, judge_saved, cases_failed, cases_errors, lacks"
)
_RESULTS = (
    f"SELECT {_RESULT_COLUMNS}, answers, (SELECT merged FROM runs WHERE id = run_id) FROM results WHERE %s"
    " ORDER BY finished_at DESC, run_id DESC"
)
"""Results, newest first, each with its answers and the runs that its run was merged of."""


class Index:
    """History of a project's runs. Every method opens and closes its own connection, so one object
    may be used from any thread; never from the app's loop."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.path = self.store.folder / "index.db"
        self.in_memory = False

    @read_again
    def runs(self, limit: int = 200) -> list[RunSummary]:
        """The newest runs, those that are being executed and those that cannot be read included."""
        with self._caught_up(limit) as (connection, unreadable):
            if connection is None:
                return []
            rows = connection.execute(f"SELECT {_RUN_COLUMNS} FROM runs ORDER BY id DESC LIMIT ?", (limit,))
            names = [one[0] for one in rows.description]
            found = [RunSummary(**_named(names, row)) for row in rows]
            cases = _case_sets(connection)
        from tui_eval.store.linked import parts  # it looks into the index itself

        above = parts(found, cases)
        for run in found:
            run.part_of = above.get(run.id, "")
        # One that had not finished may have gone on in a newer version.
        known = {run.id for run in found if run.state == "finished"}
        unread = {run.id: run for run in self._unread(unreadable) if run.id not in known}
        found = [*(run for run in found if run.id not in unread), *unread.values()]
        return sorted(found, key=lambda run: run.id, reverse=True)[:limit]

    def _unread(self, unreadable: Mapping[str, StoreError]) -> list[RunSummary]:
        """Runs that are there and cannot be read, with the reason as `what`; one that is just being begun
        is none of them."""
        return [
            RunSummary(
                name, "newer" if isinstance(why, NewerRun) else "damaged", time_in(name) or touched(folder)[0] / 1e9, None, str(why),
                "", 0, 0, 0, 0, 0, None, None, never_begun=isinstance(why, NeverBegun),
            )
            for name, why in unreadable.items()
            if not is_alive(folder := self.store.folder_of(name))
        ]  # fmt: skip

    @read_again
    def sharing(self, run_id: str, cases: Collection[str] | None = None) -> dict[str, tuple[int, int]]:
        """The whole runs (those that add to others left out) that have cases of a run, by id, oldest first:
        how many of its cases, and how many cases at all; itself among them. `cases` are those of a run that
        is not in the index."""
        with self._caught_up() as (connection, _):
            if connection is None:
                return {}
            wanted = "SELECT case_id FROM results WHERE run_id = :run"
            if cases is not None:
                wanted = "SELECT value FROM json_each(:cases)"
            rows = connection.execute(
                f"SELECT run_id, sum(case_id IN ({wanted})), count(*)"
                " FROM (SELECT DISTINCT run_id, case_id FROM results JOIN runs ON runs.id = run_id"
                " WHERE linked_to IS NULL OR runs.id = :run) GROUP BY run_id ORDER BY run_id",
                {"run": run_id, "cases": json.dumps(list(cases or ()))},
            )
            return {name: (shared, cases) for name, shared, cases in rows if shared}

    def before(self, run_id: str, cases: Collection[str] | None = None) -> str | None:
        """The run that a run is best compared with: the one it is linked to, else the newest whole one
        before it of mostly the same cases (with its agents and models, where there is one), else the newest
        that has most of its cases, else one that has any; None where there is none. `cases` as for
        `sharing`."""
        shared = self.sharing(run_id, cases)
        above = self.links().get(run_id)
        if above in shared:
            return above
        own = shared.get(run_id, (0, 0))[0] if cases is None else len(cases)
        copies = self._same_answers(run_id)
        earlier = [other for other in shared if other < run_id and other not in copies]
        most = [other for other in earlier if shared[other][0] * 2 > own]
        same = [other for other in most if shared[other][0] * 2 > shared[other][1]]
        alike = self._with_agents_of(run_id) if cases is None else set()
        groups = ([other for other in same if other in alike], same, most, earlier)
        return next((group[-1] for group in groups if group), None)

    def _same_answers(self, run_id: str) -> set[str]:
        """The runs that a run was merged of, and those merged of one of these, too: they have its answers, and none
        to compare them with."""
        merged = self.merged()
        own = merged.get(run_id, set())
        return own | {name for name, parts in merged.items() if parts & own}

    @read_again
    def merged(self) -> dict[str, set[str]]:
        """The runs that each run was merged of, by its id."""
        with self._open() as connection:
            rows = connection.execute("SELECT id, merged FROM runs").fetchall() if connection else ()
        return {name: set(parts.split()) for name, parts in rows}

    @read_again
    def _with_agents_of(self, run_id: str) -> set[str]:
        """Runs that have a case of this one with the same agent and model."""
        with self._open() as connection:
            if connection is None:
                return set()
            found = (
                "SELECT DISTINCT one.run_id FROM results AS own JOIN results AS one ON one.case_id = own.case_id"
                " AND one.agent = own.agent AND one.model IS own.model WHERE own.run_id = ?"
            )
            return {name for (name,) in connection.execute(found, (run_id,))}

    @read_again
    def latest(self, case_ids: Iterable[str] | None = None) -> dict[str, list[CaseHistory]]:
        """The last results of each case (at most 12 of each of its columns), newest first, by case id. What a
        person changed on its way (`skipped`) is none, nor is a judgement that a newer one has replaced;
        `store.case_state` says what they come to."""
        wanted = None if case_ids is None else set(case_ids)
        found: dict[str, list[CaseHistory]] = {}
        counted: Counter[tuple[str, str, str | None]] = Counter()
        judged: set[tuple[str, str, str | None, str]] = set()
        with self._caught_up() as (connection, _):
            if connection is None:
                return {}
            for row in _once(connection.execute(_RESULTS % "outcome != 'skipped'")):
                case_id = row[1]
                if wanted is not None and case_id not in wanted:
                    continue
                column = row[1:4]
                if row[-1]:
                    if (*column, row[-1]) in judged:
                        continue
                    judged.add((*column, row[-1]))
                if counted[column] < _KEPT_PER_COLUMN:
                    counted[column] += 1
                    found.setdefault(case_id, []).append(CaseHistory(*row))
        return found

    @read_again
    def history(self, case_id: str) -> list[CaseHistory]:
        """Every result of a case, newest first; of one answer in several runs (parts and what was merged of
        them) one."""
        with self._caught_up() as (connection, _):
            if connection is None:
                return []
            found = connection.execute(_RESULTS % "case_id = ?", (case_id,))
            return [CaseHistory(*row) for row in _once(found)]

    @read_again
    def figures(self) -> dict[str, tuple[float | None, int | None]]:
        """Of every run in the index, by its id: the mean duration in ms of its attempts that came to a verdict, where it
        asked for the answers, and the tokens of all that ended (None: not known)."""
        with self._open() as connection:
            if connection is None:
                return {}
            rows = connection.execute("SELECT id, latency_ms, tokens FROM runs").fetchall()
        return {run_id: (latency, tokens) for run_id, latency, tokens in rows}

    @read_again
    def links(self) -> dict[str, str | None]:
        """Which run each run is linked to (None: to none), by run id; of those that have not ended
        only their facts are read."""
        with self._open() as connection:
            if connection is None:
                return {}
            known = dict(connection.execute("SELECT id, linked_to FROM runs"))
        found: dict[str, str | None] = {}
        for folder in self.store.run_folders():
            if folder.name in known:
                found[folder.name] = known[folder.name]
                continue
            with contextlib.suppress(StoreError, OSError), contextlib.closing(RunReader(folder)) as reader:
                found[folder.name] = reader.info().linked_to
        return found

    def record(self, folder: Path, beside: Callable[[RunReader], CaseTaker] | None = None) -> bool:
        """Put a run into the index (again); whether it is there. A run that cannot be read is left out; where the disk
        refuses, it is put there when the index is asked next. `beside` gives, as often as the run is read, what takes
        each of its cases as well: reading them costs as much as the rest."""
        with contextlib.suppress(sqlite3.Error), self._open(create=True) as connection:
            if connection is not None:
                recorded = _record(connection, self.store, folder, beside) is None
                _mend_times(connection)
                return recorded
        return False

    @read_again
    def forget(self, run_id: str) -> None:
        """Drop a deleted run."""
        with self._open() as connection:
            if connection is not None:
                _forget(connection, run_id)

    @read_again
    def rebuild(self) -> None:
        """Forget everything and read every run again."""
        with self._open(create=True) as connection:
            if connection is not None:
                for table in ("runs", "results", "case_sets"):
                    connection.execute(f"DELETE FROM {table}")
                self._catch_up(connection, None)

    @contextlib.contextmanager
    def _caught_up(
        self, limit: int = 200
    ) -> Iterator[tuple[sqlite3.Connection | None, Mapping[str, StoreError]]]:
        """A connection to what the newest runs hold by now, and the runs that cannot be read, by name, and why. Where
        the index cannot be written (a full disk, a process that keeps it busy), to one in memory: what it knew of a
        run that went on since is no answer."""
        with self._open() as connection:
            if connection is None:
                yield None, {}
                return
            try:
                unreadable = self._catch_up(connection, limit)
            except sqlite3.OperationalError as error:
                if is_damage(error):
                    raise
            else:
                yield connection, unreadable
                return
            with contextlib.closing(_in_memory(connection)) as copy:
                yield copy, self._catch_up(copy, limit)

    def _catch_up(self, connection: sqlite3.Connection, limit: int | None) -> dict[str, StoreError]:
        """Read runs that are missing here, or of which more may have been written since they were read last; those
        that cannot be read, by name, and why.

        Raises:
            sqlite3.OperationalError: the index cannot be written.
        """
        # First what is known, then what is there: a run that comes between the two is not taken for a deleted one.
        known = {one: rest for one, *rest in connection.execute("SELECT id, state, written FROM runs")}
        folders = list(self.store.run_folders())
        for gone in known.keys() - {folder.name for folder in folders}:
            _forget(connection, gone)
        unreadable: dict[str, StoreError] = {}
        for folder in folders[:limit]:
            if folder.name in known and self._has_ended(folder, *known[folder.name]):
                continue
            if (why := _record(connection, self.store, folder)) is not None:
                unreadable[folder.name] = why
        _mend_times(connection)
        return unreadable

    def _has_ended(self, folder: Path, state: str, written: int) -> bool:
        """Whether a run is still as it was read. One that was interrupted or cancelled may go on, and may have gone on
        and been interrupted again, where nobody was to write that down; one that has finished may be cut short or
        overwritten since."""
        if state in ("running", "paused") or written != written_mark(folder):
            return False
        return state == "finished" or not is_alive(folder)

    @contextlib.contextmanager
    def _open(self, create: bool = False):
        if not create and not any(place.is_dir() for place in self.store.places):
            yield None
            return
        try:
            connection = _in_memory() if self.in_memory else connect_or_renew(self.path, self._connect)
        except (sqlite3.Error, OSError):
            # A project that cannot be written, or an index that another process holds for long: the runs
            # are read into an index in memory.
            connection = _in_memory()
        try:
            yield connection
        finally:
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        private.prepare_database(self.path)
        connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            private.refuse_programs(connection)
            if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                _create(connection)
            connection.execute("SELECT 1 FROM runs, results LIMIT 1").fetchone()
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def renew(self) -> None:
        """Make a damaged file anew, and read what is there."""

        def connect() -> sqlite3.Connection:
            return check_whole(self._connect())

        connect_or_renew(self.path, connect).close()
        with self._caught_up():
            pass

    def aside(self) -> Self:
        """One in memory, which leaves the file alone."""
        own = type(self)(self.store.root)
        own.in_memory = True
        return own


def _create(connection: sqlite3.Connection) -> None:
    """Make the tables, unless another thread or process did so in the meantime.

    Raises:
        sqlite3.DatabaseError: another version's index.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise sqlite3.DatabaseError("another version's index")
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _in_memory(known: sqlite3.Connection | None = None) -> sqlite3.Connection:
    """An index that goes with its connection; it begins with what another one has, where that can be read."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(_TABLES)
    if known is not None:
        try:
            for table in ("runs", "results", "case_sets"):
                rows = known.execute(f"SELECT * FROM {table}")
                marks = ",".join("?" * len(rows.description))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        except sqlite3.Error:  # a run without its results would be one that came to nothing
            connection.close()
            return _in_memory()
    return connection


def _forget(connection: sqlite3.Connection, run_id: str) -> None:
    connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))
    connection.execute("DELETE FROM results WHERE run_id = ?", (run_id,))
    connection.execute("DELETE FROM case_sets WHERE digest NOT IN (SELECT case_set FROM runs)")


def _case_set(case_ids: Iterable[str]) -> tuple[bytes, bytes]:
    """Which cases a run has, and a digest of that; most runs of a project have those of another."""
    marks = sorted({blake2b(case_id.encode(), digest_size=8).digest() for case_id in case_ids})
    joined = b"".join(marks)
    return blake2b(joined, digest_size=16).digest(), joined


def _case_sets(connection: sqlite3.Connection) -> dict[str, frozenset[int]]:
    """The marks of each run's cases, by its id; runs of the same cases share them."""
    sets = {
        digest: frozenset(array("q", marks))
        for digest, marks in connection.execute("SELECT digest, marks FROM case_sets")
    }
    runs = connection.execute("SELECT id, case_set FROM runs")
    return {run_id: sets[digest] for run_id, digest in runs if digest in sets}


def _mend_times(connection: sqlite3.Connection) -> None:
    """Give results whose ends are ahead of the clock the ends that the module's docstring says. The run after theirs is
    told by its id, which is behind those of all runs that were there when it began (`Store.next_run`); what was merged
    has the times of its parts.

    Raises:
        sqlite3.OperationalError: the index cannot be written.
    """
    seen = sorted(
        one
        for (ahead,) in connection.execute("SELECT ahead FROM runs WHERE ahead != ''")
        for one in json.loads(ahead)
    )
    for moment, run_id, first, last in seen:
        which = (moment, run_id, moment, first - 1.0, last + 1.0)
        where = "run_id = ? AND finished_at > ? AND finished_at BETWEEN ? AND ?"
        if connection.execute(f"SELECT 1 FROM results WHERE {where} LIMIT 1", which[1:]).fetchone():
            connection.execute(f"UPDATE results SET finished_at = ? WHERE {where}", which)
    now = {"now": time.time()}
    if connection.execute("SELECT 1 FROM runs WHERE last_end > :now LIMIT 1", now).fetchone() is None:
        return
    begun = (
        "SELECT min(started_at) FROM runs WHERE started_at <= :now AND merged = '' AND id > max(results.run_id,"
        " (SELECT went_on_after FROM runs AS own WHERE own.id = results.run_id))"
    )
    connection.execute("BEGIN IMMEDIATE")
    with _undone(connection):
        connection.execute(
            f"UPDATE results SET finished_at = coalesce(({begun}), :now) WHERE finished_at > :now", now
        )
        connection.execute("UPDATE runs SET last_end = :now WHERE last_end > :now", now)
        connection.execute("COMMIT")


def _once(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of `_RESULTS` as `CaseHistory` has them, without those that hold nothing but answers that a row before them
    holds: a merged run has the answers of its parts, and may be merged twice. What judges the answers of one
    that is left out judges those of the one that stands for it."""
    kept: dict[tuple[Any, ...], list[tuple[str, set[str], bool]]] = {}
    instead: dict[tuple[Any, ...], str] = {}
    found: list[tuple[Any, ...]] = []
    for *values, answers, merged in rows:
        row = tuple(values)
        if answers and not row[-1]:
            column, own = row[1:4], set(answers.split())
            before = kept.setdefault(column, [])
            holder = next((run for run, held, one in before if own <= held and (merged or one)), None)
            if holder is not None:
                instead[*column, row[0]] = holder
                continue
            before.append((row[0], own, bool(merged)))
        found.append(row)
    if instead:
        return [(*row[:-1], instead.get((*row[1:4], row[-1]), row[-1])) for row in found]
    return found


_AHEAD, _AFTER = "seen_ahead", "went_on_after"
"""Under which the provenance of a run keeps what the clock that it began, or went on, by says of other runs."""


def seen_ahead(store: Store, info: RunInfo, moment: float, *, goes_on: bool = False) -> dict[str, Any]:
    """What a run that begins or goes on at this moment keeps in its provenance: results of other runs that ended later
    than that, under another clock, as `(moment, run, first end, last end)`; of one that goes on, the newest run there
    is, which its results come after. Only runs that were written later are read."""
    kept = _ahead(info)
    found: list[Any] = json.loads(kept) if kept else []
    newest = ""
    for folder in store.run_folders():
        newest = newest or folder.name
        if folder.name == info.id or touched(folder)[0] / 1e9 < moment + 1.0 or is_alive(folder):
            continue
        with contextlib.suppress(StoreError, OSError), contextlib.closing(RunReader(folder)) as reader:
            ends = [
                end
                for row in reader.attempts()
                if row.state == "done"
                and (end := (row.started_at or 0.0) + (row.duration_ms or 0.0) / 1000) > moment
            ]
            if ends:
                found.append([moment, folder.name, min(ends), max(ends)])
    after = {_AFTER: newest} if goes_on and newest > info.id else {}
    return {**({_AHEAD: found} if found else {}), **after}


def _ahead(info: RunInfo) -> str:
    """What a run has `seen_ahead`, as JSON; empty where that is nothing, or cannot be."""
    given = info.provenance.get(_AHEAD)
    found = [one for one in given if _is_seen(one, info)] if isinstance(given, list) else []
    return json.dumps(found) if found else ""


def _is_seen(one: Any, info: RunInfo) -> bool:
    """A record may come from anywhere: a run says nothing of what was before it."""
    if not (isinstance(one, list) and len(one) == 4 and isinstance(one[1], str)):
        return False
    times = (one[0], one[2], one[3])
    return all(type(at) in (int, float) and isfinite(at) for at in times) and one[0] >= info.started_at - 1.0


def _went_on_after(info: RunInfo) -> str:
    given = info.provenance.get(_AFTER)
    return given if isinstance(given, str) else ""


_UNFIT = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    ValueError,  # half a surrogate pair is no text
)
"""What the index says to a row that does not fit into it: it is that run which cannot be listed, and no other."""


def _record(
    connection: sqlite3.Connection,
    store: Store,
    folder: Path,
    beside: Callable[[RunReader], CaseTaker] | None = None,
) -> StoreError | None:
    """Put a run into the index (again); where it cannot be read, why. What was known of one that is damaged since goes."""
    try:
        with contextlib.closing(RunReader(folder)) as reader:
            while True:
                written = written_mark(folder)
                info = reader.info()
                together = _with_those_before(connection, store, folder, info)
                taker = beside(reader) if beside else None
                run, results, marks = _values(store, info, reader, together, taker)
                connection.execute("BEGIN IMMEDIATE")
                with _undone(connection):
                    # Read long ago, perhaps: another process may have written since how the run ended.
                    now = reader.info()
                    if (now.state, now.finished_at) == (info.state, info.finished_at):
                        _forget(connection, info.id)
                        _write(connection, (*run, written), results, marks)
                        return None
    except StoreError as error:
        if isinstance(error, DamagedRun) and not is_alive(folder):
            _forget(connection, folder.name)
        return error
    except _UNFIT as error:
        _forget(connection, folder.name)
        return StoreError(f"{folder}: what it holds cannot be listed: {error}")


@contextlib.contextmanager
def _undone(connection: sqlite3.Connection) -> Iterator[None]:
    """What is not committed inside has not been."""
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _write(
    connection: sqlite3.Connection, run: tuple[Any, ...], results: list[tuple[Any, ...]], marks: bytes
) -> None:
    connection.execute("INSERT OR IGNORE INTO case_sets VALUES (?, ?)", (run[-2], marks))
    connection.execute(f"INSERT INTO runs VALUES ({','.join('?' * len(run))})", run)
    insert_rows(connection, "results", results)
    connection.execute("COMMIT")


def _with_those_before(
    connection: sqlite3.Connection, store: Store, folder: Path, info: RunInfo
) -> dict[Column, dict[str, CaseSummary]]:
    """Of a run that adds attempts to another, or judges some of its answers again: what its cases have come to
    with it, by column. Of other runs nothing: they stand for themselves."""
    given = info.options
    adds = given.get("first_attempt", 1) != 1 or given.get("continue_from") or given.get("rescores")
    if not info.linked_to or not adds:
        return {}
    from tui_eval.store.linked import family, load_together  # it looks into the index itself

    links = dict(connection.execute("SELECT id, linked_to FROM runs"))
    links[info.id] = info.linked_to
    above: str | None = info.linked_to
    while above is not None and above not in links:
        links[above] = None
        with (
            contextlib.suppress(StoreError),
            contextlib.closing(RunReader(store.folder_of(above))) as reader,
        ):
            above = links[above] = reader.info().linked_to
    together = family(links, info.id)
    before = [store.folder_of(name) for name in together[: together.index(info.id)]]
    found: dict[Column, dict[str, CaseSummary]] = {}
    for summary in load_together([*(one for one in before if os.path.isfile(one / DATABASE)), folder]):
        found.setdefault(Column(summary.agent, summary.model or ""), {})[summary.case_id] = summary
    return found


def _asked(info: RunInfo) -> Asked:
    """Whose choice the columns of a run were, by what it was asked for."""
    given = info.options
    again = ("cells", "pairs", "failed_only", "changed_only", "continue_from", "rescores", "step")
    if any(given.get(name) for name in again) or given.get("first_attempt", 1) != 1:
        return "again"
    return "named" if given.get("agents") or given.get("models") else "own"


def _values(
    store: Store,
    info: RunInfo,
    reader: RunReader,
    together: Mapping[Column, Mapping[str, CaseSummary]],
    beside: CaseTaker | None,
) -> tuple[tuple[Any, ...], list[tuple[Any, ...]], bytes]:
    """A run's row without when it was written, those of its results, and the marks of its cases; `together` as
    `_with_those_before` says. `beside` takes each case."""
    counts = {"passed": 0, "failed": 0, "error": 0, "cancelled": 0}
    cases = total = cached = cost_of = cases_failed = cases_errors = 0
    judges = RunSums()
    cost: float | None = None
    saved: float | None = None
    tokens: list[int | None] = []
    took: list[float] = []
    asked: str = _asked(info)
    judged_by = compat_of(info)
    # A part of a run, or a step, in which nothing was judged changes nothing of what there was.
    part = bool(info.linked_to or info.stepped)
    judged_here = bool(info.linked_to) and os.path.isfile(store.folder_of(str(info.linked_to)) / DATABASE)
    open_cases: set[str] = set()
    case_ids: set[str] = set()
    named: list[StoredCase] = []
    of_one_name = True
    results: list[tuple[Any, ...]] = []
    for case, attempts in reader.by_case():
        cases += 1
        case_ids.add(case.case_id)
        if not named or case.name == named[0].name:
            named = [*named, case][: _NAMED + 1]
        else:
            of_one_name = False
        total += len(attempts)
        finished = 0.0
        answers: list[str] = []
        for row in attempts:
            if row.state != "done":
                continue
            if row.started_at is not None:  # no two answers of one column began in the same millisecond
                answers.append(f"{row.started_at:.3f}/{row.attempt}")
            if row.outcome in counts:
                counts[row.outcome] += 1
            # An answer judged again has the duration that it took, not that of the judging.
            end = (row.started_at or info.started_at) + (row.duration_ms or 0) / 1000
            finished = max(min(end, info.finished_at or end), finished)
            if row.cost is not None:
                cost = figures.total_amount([cost, row.cost], "cost")
                cost_of += 1
            if row.judges:  # the answer took its time and tokens where it was given
                continue
            tokens.append(figures.tokens(row.input_tokens, row.output_tokens))
            if row.duration_ms is not None and row.outcome in JUDGED:
                took.append(row.duration_ms)
        own = summarise(case, attempts)
        if beside is not None:
            beside(case, attempts, own)
        cases_failed += own.outcome == "failed"
        cases_errors += own.outcome == "error"
        cached += own.cached
        judges.add_judges(own)
        if own.saved is not None:
            saved = figures.total_amount([saved, own.saved], "cost saved")
        now = own
        if together:
            now = together.get(Column(own.agent, own.model or ""), {}).get(own.case_id, own)
        if own.outcome is None or now.outcome is None:  # nor of what it adds to, or judges, has enough ended
            open_cases.add(own.case_id)
            continue
        if part and own.outcome in ("cancelled", "skipped"):
            continue
        if judged_here and all(row.judges and is_of_file(row.alike) for row in attempts):
            continue  # the results file lacks what judging needs, and the run is here
        # What an answer cost is in its own run; how long it took is said wherever it is judged.
        again = [row.judges for row in attempts if row.judges]
        judged = max(judges.rpartition("/")[0] for judges in again) if again else None
        rules = now.compat or judged_by(own.suite)
        results.append(
            (
                info.id, own.case_id, own.agent, own.model, now.outcome, now.passed, now.attempts,
                finished, own.duration_ms, None if judged is not None else own.tokens, own.cost,
                case.content_hash, now.message, own.attempts, asked,
                now.cause, now.alike, now.cached, _judging(own, attempts), rules, now.unjudged, judged or "", " ".join(answers),
            )
        )  # fmt: skip
    if asked == "own" and open_cases:
        # A run that was ended before it had asked all columns of a case says nothing of which these are.
        results = [(*row[:14], "again", *row[15:]) if row[1] in open_cases else row for row in results]
    named = reader.listed(named) if of_one_name else []
    suites = {case.suite for case in named}
    digest, marks = _case_set(case_ids)
    run = (
        info.id, info.state, info.started_at, info.finished_at, what(info, cases, reader.folder), ", ".join(info.agents),
        total, counts["passed"], counts["failed"], counts["error"], counts["cancelled"], cost,
        info.linked_to, cached, saved, info.stepped, info.paused_for, " ".join(name for name, _ in merged_of(info.provenance)),
        cost_of, len(tokens) - tokens.count(None), name_of_cases(named), suites.pop() if len(suites) == 1 else "", other_rules(info),
        figures.total([judges.judge_tokens], "tokens of the judges"),
        figures.amount(judges.judge_cost, "cost of the judges"), judges.judge_cached,
        figures.amount(judges.judge_saved, "cost saved"),
        _ahead(info), cases_failed, cases_errors, lacks_of(info), _went_on_after(info), max((result[7] for result in results), default=0.0),
        figures.total(tokens, "tokens"), sum(took) / len(took) if took else None, digest,
    )  # fmt: skip
    return run, results, marks


def _judging(own: CaseSummary, attempts: Sequence[AttemptRow]) -> float | None:
    """What judging a case takes where no answer of a judge is kept (`CaseHistory.judge_cost`)."""
    if any(row.judge_cached and row.judge_saved is None for row in attempts):
        return None
    known = [amount for amount in (own.judge_cost, own.judge_saved) if amount is not None]
    return figures.total_amount(known, "cost of the judges") if known else None


def name_of_cases(cases: Sequence[StoredCase]) -> str:
    """What cases of one name are called: as lists call that, with what tells each from the others of its suite, where
    these are not too many."""
    told = [f"{case.variant} {number_of_test(case.case_id, case.suite, case.name)}".strip() for case in cases]
    parts = list(dict.fromkeys(told))
    common = [len(set(letters)) == 1 for letters in zip(*parts, strict=False)]
    shared = parts[0][: common.index(False) if False in common else len(common)] if len(parts) > 1 else ""
    shared = shared[: shared.rfind(" ") + 1]
    parts[1:] = [part.removeprefix(shared) for part in parts[1:]]
    more = ", ".join(filter(None, parts)) if len(parts) <= _NAMED else ""
    return full_name(cases[0].name, more) if cases else ""


def _named(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    values = dict(zip(names, row, strict=True))
    return values | {"stepped": bool(values["stepped"])}


def places(info: RunInfo, folder: Path) -> list[str]:
    """The paths of a run as people are shown them: a whole project goes by the name of its folder."""
    project = project_of_run(folder)
    name = project.name if project is not None else ""
    return [name if path == "." and name else path for path in info.paths or ["."]]


def what(info: RunInfo, cases: int, folder: Path) -> str:
    """A run in a few words: its paths, how many cases, and which shard it is."""
    told = places(info, folder)
    named = ", ".join(told[:3]) + (" …" if len(told) > 3 else "")
    part = shard_words(info.provenance)
    return f"{named} ({cases} case{'' if cases == 1 else 's'}{', ' if part else ''}{part})"
