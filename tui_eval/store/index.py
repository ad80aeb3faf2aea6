"""The digest across runs: the list of runs, and each case's results over time.

It holds nothing that the runs' folders do not: a run missing in it is read from its folder, and a
damaged index is thrown away and built again.
Results are in the order of their ends (`clock_jumps` says which these are where a clock was ahead).
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self

import msgspec

from tui_eval.guard import private
from tui_eval.store.case_state import Column
from tui_eval.store.clock_jumps import ends_ahead, mend_times
from tui_eval.store.digests import check_whole, connect_or_renew, is_damage, read_again, undone
from tui_eval.store.indexed_run import Results, rows_of
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
    time_in,
    touched,
    written_mark,
)
from tui_eval.store.schema import CaseHistory, RunInfo, RunSummary
from tui_eval.store.summary import CaseSummary, CaseTaker

_VERSION = 26
_KEPT_PER_COLUMN = 12
_BUSY_SECONDS = 10.0
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
            found = _checked([_named(names, row) for row in rows], list[RunSummary])
            cases = _case_sets(connection)
        from tui_eval.store.linked import parts  # late: only lists of runs ask

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
        """Of every run in the index, by its id: the mean duration in ms of its attempts that came to a
        verdict, where it asked for the answers, and the tokens of all that ended (None: not known)."""
        with self._open() as connection:
            if connection is None:
                return {}
            rows = connection.execute("SELECT id, latency_ms, tokens FROM runs").fetchall()
            rows = _checked(rows, list[tuple[str, float | None, int | None]])
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

    def counting_folders(self, folder: Path, other: Path | None = None) -> list[Path]:
        """As `linked.counting`, for runs' folders; one that is not of this project stands alone."""
        from tui_eval.store.linked import counting  # late: only comparisons ask

        if not self.store.holds(folder):
            return [folder]
        found = counting(self.links(), folder.name, other.name if other is not None else "")
        return [folder if name == folder.name else self.store.folder_of(name) for name in found]

    def record(self, folder: Path, beside: Callable[[RunReader], CaseTaker] | None = None) -> bool:
        """Put a run into the index (again); whether it is there. A run that cannot be read is left out; where the disk
        refuses, it is put there when the index is asked next. `beside` gives, as often as the run is read, what takes
        each of its cases as well: reading them costs as much as the rest."""
        with contextlib.suppress(sqlite3.Error), self._open(create=True) as connection:
            if connection is not None:
                recorded = _record(connection, self.store, folder, beside) is None
                mend_times(connection)
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
        mend_times(connection)
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
            private.keep_in_memory(connection)
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
            connection = check_whole(self._connect())
            try:
                _check_rows(connection)
            except sqlite3.Error:
                connection.close()
                raise
            return connection

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


def _case_sets(connection: sqlite3.Connection) -> dict[str, frozenset[int]]:
    """The marks of each run's cases, by its id; runs of the same cases share them."""
    known = connection.execute("SELECT digest, marks FROM case_sets").fetchall()
    if not all(isinstance(marks, bytes) and len(marks) % 8 == 0 for _, marks in known):
        raise sqlite3.DatabaseError("it holds sets of cases that tui-eval does not write")
    sets = {digest: frozenset(array("q", marks)) for digest, marks in known}
    runs = connection.execute("SELECT id, case_set FROM runs")
    return {run_id: sets[digest] for run_id, digest in runs if digest in sets}


def _checked(rows: list[Any], kind: Any) -> Any:
    """Rows of the types that they are read as. SQLite keeps whatever is put into a column.

    Raises:
        sqlite3.DatabaseError: one is of another: the file is damaged, or somebody's own.
    """
    try:
        return msgspec.convert(rows, kind)
    except msgspec.ValidationError as error:
        raise sqlite3.DatabaseError(f"it holds what tui-eval does not write: {error}") from None


def _check_rows(connection: sqlite3.Connection) -> None:
    rows = connection.execute(f"SELECT {_RUN_COLUMNS} FROM runs")
    names = [one[0] for one in rows.description]
    _checked([_named(names, row) for row in rows], list[RunSummary])
    _checked(connection.execute(_RESULTS % "1").fetchall(), _rows_of_results())
    figures = connection.execute("SELECT id, latency_ms, tokens FROM runs").fetchall()
    _checked(figures, list[tuple[str, float | None, int | None]])
    _case_sets(connection)
    ends_ahead(connection)


@cache
def _rows_of_results() -> Any:
    fields = msgspec.structs.fields(CaseHistory)[: _RESULT_COLUMNS.count(",") + 1]
    return list[tuple[(*(field.type for field in fields), str, str | None)]]  # type: ignore[misc]


def _once(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of `_RESULTS` as `CaseHistory` has them, without those that hold nothing but answers that a row before them
    holds: a merged run has the answers of its parts, and may be merged twice. What judges the answers of one
    that is left out judges those of the one that stands for it."""
    kept: dict[tuple[Any, ...], list[tuple[str, set[str], bool]]] = {}
    instead: dict[tuple[Any, ...], str] = {}
    found: list[tuple[Any, ...]] = []
    for *values, answers, merged in _checked(list(rows), _rows_of_results()):
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
    """Put a run into the index (again); where it cannot be read, why. What was known of one that is damaged
    since goes."""
    try:
        with contextlib.closing(RunReader(folder)) as reader:
            while True:
                written = written_mark(folder)
                info = reader.info()
                together = _with_those_before(connection, store, folder, info)
                taker = beside(reader) if beside else None
                run, results, marks = rows_of(store, info, reader, together, taker)
                connection.execute("BEGIN IMMEDIATE")
                with undone(connection):
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


def _write(connection: sqlite3.Connection, run: tuple[Any, ...], results: Results, marks: bytes) -> None:
    connection.execute("INSERT OR IGNORE INTO case_sets VALUES (?, ?)", (run[-2], marks))
    connection.execute(f"INSERT INTO runs VALUES ({','.join('?' * len(run))})", run)
    for rows in results.pieces():
        insert_rows(connection, "results", rows)
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
    from tui_eval.store.linked import family, load_together  # late: most runs are linked to none

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


def _named(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    values = dict(zip(names, row, strict=True))
    return values | {"stepped": bool(values["stepped"])}
