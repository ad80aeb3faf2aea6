"""Reading a run, also while it is being written: never a lock on the writer."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import zlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec

from tui_eval.guard import figures, private
from tui_eval.model import JUDGED, NOT_COMPARED, Attempt, Case, decoded
from tui_eval.store.digests import is_damage
from tui_eval.store.encoding import unpack
from tui_eval.store.listed_names import UNNAMED, ListedNames
from tui_eval.store.run_folders import (
    DATABASE,
    DamagedRun,
    NeverBegun,
    NewerRun,
    StoreError,
    is_alive,
    moved_to,
)
from tui_eval.store.schema import (
    COMPARED_LATER,
    SCHEMA_VERSION,
    AttemptRow,
    LiveRow,
    RunInfo,
    StoredCase,
    added_columns,
)

if TYPE_CHECKING:
    from tui_eval.store.failure_modes import Assessment


_AGAIN = (0.01, 0.03, 0.1)  # seconds before a statement that failed is tried again
_CASE_COLUMNS = "id, case_id, suite, name, format, agent, model, content_hash, attempts, required"
_ATTEMPT_COLUMNS = (
    "id, case_ref, attempt, state, outcome, score, message, started_at, duration_ms, input_tokens,"
    " output_tokens, cached_tokens, cost, tool_calls, turn, detail, changed"
)


T = TypeVar("T")
_PIECE = 100  # bodies that are read at once
_CASES_AT_ONCE = 500
CaseOrder = Literal["run", "suites", "suites by name"]
_ORDERS: dict[CaseOrder, str] = {
    "suites": "min(id) OVER (PARTITION BY suite), id",
    "suites by name": "suite, id",
}
"""Orders of a run's cases: as they were planned; a suite's cases together, the suite first that was planned first; the
same by the suites' names."""


class AttemptCount(NamedTuple):
    """How many attempts a case has in a run, how many of them have ended, and how many of these with a verdict."""

    planned: int
    ended: int
    judged: int


class _Answer(msgspec.Struct):
    response_text: str = ""


class RunReader:
    """One viewer's connection to a run's folder. Not shared between threads at the same time. A run that is
    kept elsewhere since its disk was full is read from there; `folder` says where.

    Raises:
        StoreError: the folder holds no run, or one of a newer version.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder = moved_to(folder) or folder
        self.lost: Mapping[int, str] = {}
        """Attempts whose results could not be written, by id, and why: errors, not cases that did not run."""
        path = folder / DATABASE
        if not path.is_file():
            raise StoreError(f"{folder}: not a run (no {DATABASE})")
        self._connection = _open(path)
        try:
            private.refuse_programs(self._connection)
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            self._attempt_columns = f"{_ATTEMPT_COLUMNS}, {added_columns(self._connection, 'attempts')}"
            self._case_columns = f"{_CASE_COLUMNS}, {added_columns(self._connection, 'cases')}"
            _refuse_cut_off(self._connection, path)
        except sqlite3.Error as error:
            self._connection.close()
            raise _unreadable(path, error) from None
        if version > SCHEMA_VERSION:
            raise NewerRun(f"{path}: written by a newer tui-eval (schema {version}); update this one")

    def info(self) -> RunInfo:
        """The run's facts; a run whose engine is gone is `interrupted`."""
        info = self._facts()
        of_now = not self._connection.in_transaction  # else what its engine wrote last is not seen
        if info.state in ("running", "paused") and of_now and not is_alive(self.folder):
            if self._move():
                return self.info()
            # It may have ended between the two looks: what its engine wrote last counts.
            info = self._facts()
            if info.state in ("running", "paused"):
                info.state = "interrupted"
        return info

    @contextlib.contextmanager
    def of_one_moment(self) -> Iterator[None]:
        """While it lasts, a run that goes on is read as it is now: what is read in several passes, or into
        several files, belongs together. Not where it has no write-ahead log (on some network mounts): there
        its writer would have to wait."""
        if not self._connection.in_transaction and self._goes_on():
            self._all("BEGIN", ())
        else:  # it changes no more, or is read so already
            yield
            return
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.Error):
                self._connection.rollback()

    def _goes_on(self) -> bool:
        try:
            return self.info().state in ("running", "paused") and self._one("PRAGMA journal_mode", ()) == (
                "wal",
            )
        except StoreError:  # who reads it says so
            return False

    def _facts(self) -> RunInfo:
        try:
            row = self._one("SELECT value FROM meta WHERE key = 'info'", ())
        except DamagedRun:
            if not self._is_blank():
                raise
            row = None
        if row is None:
            raise NeverBegun(
                f"{self.folder}: a run without its facts; it was cut off at its start: delete it"
            )
        try:
            info = msgspec.json.decode(str(row[0]).encode("utf-8", "replace"), type=RunInfo)
        except msgspec.MsgspecError as error:
            raise self._damaged(str(error)) from None
        info.started_at = figures.moment(info.started_at, "start") or 0.0
        info.finished_at = figures.moment(info.finished_at, "end")
        info.paused_at = figures.moment(info.paused_at, "pause")
        info.paused_for = figures.amount(info.paused_for, "pause") or 0.0
        return info

    def _is_blank(self) -> bool:
        """Whether the database has no tables yet: its engine was killed while it made them. One that was cut short has
        some on its first page, or nothing at all."""
        database = self.folder / DATABASE
        with contextlib.suppress(StoreError, OSError):
            begun = database.stat().st_size or os.path.lexists(f"{database}-journal")
            return bool(begun) and self._one("SELECT 1 FROM sqlite_master LIMIT 1", ()) is None
        return False

    def _move(self) -> bool:
        """The run that is read has ended, and its end is elsewhere: read that."""
        target = moved_to(self.folder)
        if target is None or target == self.folder:
            return False
        self._connection.close()
        self.folder = target
        self._connection = _open(target / DATABASE)
        return True

    def stamp(self) -> int:
        """Another number after every transaction of another connection: whether there may be news, without
        reading any (SQLite's `data_version`)."""
        row = self._one("PRAGMA data_version", ())
        return int(row[0]) if row is not None else -1

    def cases(self) -> list[StoredCase]:
        """Every case of the run, in its order."""
        return _each(self._case, self._all(f"SELECT {self._case_columns} FROM cases ORDER BY id", ()))

    def cases_of(self, case_id: str) -> list[StoredCase]:
        """The rows of one case: one for each agent and model that it was run with."""
        statement = f"SELECT {self._case_columns} FROM cases WHERE case_id = ? ORDER BY id"
        return [self._case(row) for row in self._all(statement, (case_id,))]

    def called(self) -> dict[str, str]:
        """What lists call the cases whose recorded name says too little, by id."""
        found: dict[str, str] = {}
        for piece in self.pieces():
            found |= self._listed_names.of(piece)
        return found

    def listed(self, rows: Iterable[StoredCase]) -> list[StoredCase]:
        """These cases of the run by the names that lists call them."""
        rows = list(rows)
        names = self._listed_names.of(rows)
        if not names:
            return rows
        return [
            msgspec.structs.replace(row, name=names[row.case_id]) if row.case_id in names else row
            for row in rows
        ]

    @cached_property
    def _listed_names(self) -> ListedNames:
        return ListedNames(self)

    def pieces(self) -> Iterator[list[StoredCase]]:
        """Every case of the run in its order, some hundreds at a time."""
        statement = f"SELECT {self._case_columns} FROM cases WHERE id > ? ORDER BY id LIMIT {_CASES_AT_ONCE}"
        last = -1
        while rows := self._all(statement, (last,)):
            last = rows[-1][0]
            yield [self._case(row) for row in rows]

    def all_named_apart(self) -> bool:
        """Whether every case has a name, and no two of a suite have the same one."""
        row = self._one(
            "SELECT (SELECT count(DISTINCT case_id) FROM cases)"
            " = (SELECT count(*) FROM (SELECT 1 FROM cases GROUP BY suite, name))"
            f" AND NOT EXISTS (SELECT 1 FROM cases WHERE name GLOB '{UNNAMED}*')",
            (),
        )
        return row is not None and bool(row[0])

    def bodies(self, refs: Collection[int], kind: type[T]) -> dict[int, T]:
        """What of these cases `kind` has, as they were when the run began, by id; without those that are damaged."""
        found: dict[int, T] = {}
        statement = f"SELECT id, body FROM cases WHERE id IN ({_marks(refs)}) ORDER BY id"
        for ref, body in self._all(statement, tuple(refs)) if refs else ():
            with contextlib.suppress(StoreError):
                found[ref] = self._unpack(body, kind)
        return found

    def case(self, case_ref: int) -> Case:
        """The case as it was when the run began."""
        row = self._one("SELECT body FROM cases WHERE id = ?", (case_ref,))
        if row is None:
            raise StoreError(f"{self.folder}: no case {case_ref}")
        return self._unpack(row[0], Case)

    def changes(self, since: int = 0) -> list[AttemptRow]:
        """Attempts changed after `since` (the largest `changed` seen; 0: all), oldest change first."""
        return [
            self._attempt(row)
            for row in self._all(
                f"SELECT {self._attempt_columns} FROM attempts WHERE changed > ? ORDER BY changed", (since,)
            )
        ]

    def attempts(self, case_ref: int | None = None) -> list[AttemptRow]:
        """Attempts of one case, or all, in the order of case and attempt."""
        where, values = ("WHERE case_ref = ?", (case_ref,)) if case_ref is not None else ("", ())
        statement = f"SELECT {self._attempt_columns} FROM attempts {where} ORDER BY case_ref, attempt, id"
        return _each(self._attempt, self._all(statement, values))

    def attempts_of(self, case_refs: Sequence[int]) -> dict[int, list[AttemptRow]]:
        """The attempts of these cases in their order, by case; of one without any there is none."""
        statement = (
            f"SELECT {self._attempt_columns} FROM attempts WHERE case_ref IN ({_marks(case_refs)})"
            " ORDER BY case_ref, id"  # as the index has them: whole rows are not sorted
        )
        found: dict[int, list[AttemptRow]] = {}
        for row in self._all(statement, tuple(case_refs)):
            found.setdefault(row[1], []).append(self._attempt(row))
        for rows in found.values():
            if len(rows) > 1:
                rows.sort(key=lambda row: row.attempt)
        return found

    def attempt_counts(self) -> dict[int, AttemptCount]:
        """How many attempts each case has, by its id; of one without any there is none."""
        judged = f"state = 'done' AND outcome IN ({_marks(JUDGED)}) AND message IS NOT ?"
        statement = (
            f"SELECT case_ref, count(*), sum(state = 'done'), total({judged}) FROM attempts GROUP BY case_ref"
        )
        same: dict[AttemptCount, AttemptCount] = {}  # most have as many as the one before
        return {
            ref: same.setdefault(count := AttemptCount(planned, ended, int(judged)), count)
            for ref, planned, ended, judged in self._all(statement, (*JUDGED, NOT_COMPARED))
        }

    def by_case(
        self, order: CaseOrder = "run", *, listed: bool = False
    ) -> Iterator[tuple[StoredCase, list[AttemptRow]]]:
        """Every case of the run with its attempts; no more of them are held at once than a few hundred.
        `listed`: by the names that lists call them."""
        for cases in self.pieces() if order == "run" else self._pieces_in(order):
            attempts = self.attempts_of([case.id for case in cases])
            for case in self.listed(cases) if listed else cases:
                yield case, attempts.get(case.id, [])

    def _pieces_in(self, order: CaseOrder) -> Iterator[list[StoredCase]]:
        ids = array("q", (row[0] for row in self._all(f"SELECT id FROM cases ORDER BY {_ORDERS[order]}", ())))
        for start in range(0, len(ids), _CASES_AT_ONCE):
            piece = ids[start : start + _CASES_AT_ONCE]
            cases = self._cases_with(piece)
            yield [cases[ref] for ref in piece if ref in cases]

    def in_turn(self, refs: Sequence[int]) -> Iterator[tuple[StoredCase, AttemptRow]]:
        """The attempts of these ids in this order, each with its case; no more of them are held at once than a few
        hundred."""
        for start in range(0, len(refs), _CASES_AT_ONCE):
            piece = refs[start : start + _CASES_AT_ONCE]
            attempts = {row.id: row for row in self.attempts_with(piece)}
            cases = self._cases_with({row.case_ref for row in attempts.values()})
            for ref in piece:
                row = attempts[ref]
                yield cases[row.case_ref], row

    def _cases_with(self, refs: Collection[int]) -> dict[int, StoredCase]:
        statement = f"SELECT {self._case_columns} FROM cases WHERE id IN ({_marks(refs)}) ORDER BY id"
        return {row[0]: self._case(row) for row in self._all(statement, tuple(refs))}

    def _case(self, row: tuple[Any, ...]) -> StoredCase:
        try:
            case = msgspec.convert(row, StoredCase)
        except msgspec.ValidationError:
            raise self._damaged(f"the row of case {row[0]} is none") from None
        # The same for most cases of a run: one text for all.
        case.suite, case.format, case.agent = map(intern, (case.suite, case.format, case.agent))
        return case

    def _attempt(self, row: tuple[Any, ...]) -> AttemptRow:
        try:
            attempt = msgspec.convert(row, AttemptRow)
        except msgspec.ValidationError:
            try:
                attempt = msgspec.convert(_known_figures(AttemptRow(*row)), AttemptRow)
            except msgspec.ValidationError:
                raise self._damaged(f"the row of attempt {row[0]} is none") from None
        if attempt.judges:  # the agent was asked, and paid, for the answer where that was recorded
            attempt.input_tokens = attempt.output_tokens = attempt.cached_tokens = attempt.cost = None
        if attempt.id in self.lost:
            attempt.state, attempt.outcome, attempt.message = "done", "error", self.lost[attempt.id]
        elif attempt.detail == COMPARED_LATER and not is_alive(self.folder):
            attempt.state, attempt.outcome, attempt.detail = "done", "error", ""
        return attempt

    def live(
        self, since_seq: int = 0, attempt_refs: Sequence[int] | None = None, limit: int = 2000
    ) -> list[LiveRow]:
        """Pieces of running attempts' text after `since_seq`, at most `limit`."""
        where, values = "", [since_seq]
        if attempt_refs is not None:
            where = f" AND attempt_ref IN ({','.join('?' * len(attempt_refs))})"
            values.extend(attempt_refs)
        return [
            LiveRow(*row)
            for row in self._all(
                "SELECT seq, attempt_ref, kind, agent, text, name, call_id, at FROM live"
                f" WHERE seq > ?{where} ORDER BY seq LIMIT {int(limit)}",
                tuple(values),
            )
        ]

    def attempt(self, attempt_ref: int) -> Attempt | None:
        """A finished attempt with its transcript and verdicts; None while it runs or waits."""
        if why := self.lost.get(attempt_ref):
            found = self._one(
                "SELECT case_id, attempt, agent, model FROM attempts JOIN cases ON cases.id = case_ref"
                " WHERE attempts.id = ?",
                (attempt_ref,),
            )
            case_id, number, agent, model = found or ("", 1, "", None)
            return Attempt(case_id, number, "error", agent, model, message=why, error=why)
        row = self._one("SELECT body FROM bodies WHERE attempt_ref = ?", (attempt_ref,))
        return None if row is None else self._unpack(row[0], Attempt)

    def answer(self, attempt_ref: int) -> str | None:
        """The text that a finished attempt answered, without reading the rest of it; None as above."""
        row = self._one("SELECT body FROM bodies WHERE attempt_ref = ?", (attempt_ref,))
        return None if row is None else self._unpack(row[0], _Answer).response_text

    def ended(self) -> list[int]:
        """The ids of finished attempts."""
        return [row[0] for row in self._all("SELECT id FROM attempts WHERE state = 'done' ORDER BY id", ())]

    def attempts_with(self, refs: Sequence[int]) -> list[AttemptRow]:
        """The attempts of these ids."""
        statement = f"SELECT {self._attempt_columns} FROM attempts WHERE id IN ({_marks(refs)})"
        return [self._attempt(row) for row in self._all(statement, tuple(refs))]

    def bodies_of(self, refs: Sequence[int], kind: type[T]) -> Iterator[tuple[int, T]]:
        """Of these finished attempts, their ids and what a type of the caller's takes of their bodies."""
        statement = (
            f"SELECT attempt_ref, body FROM bodies WHERE attempt_ref IN ({_marks(refs)}) ORDER BY attempt_ref"
        )
        for ref, body in self._all(statement, tuple(refs)):
            yield ref, self._unpack(body, kind)

    def whole_plan(self) -> tuple[list[str], list[int]]:
        """The ids and shards of all cases of the whole that this run is a part of; empty where that is not known."""
        row = self._one("SELECT value FROM meta WHERE key = 'plan'", ())
        if row is None or not isinstance(row[0], bytes):
            return [], []
        return self._unpack(row[0], tuple[list[str], list[int]])

    def assessment(self) -> Assessment:
        """How the run's attempts failed: as it was assessed with a judge, else grouped now."""
        from tui_eval.store.failure_modes import Assessment, assess  # imported late: few ask for it

        row = self._one("SELECT value FROM meta WHERE key = 'assessment'", ())
        if row is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                return msgspec.json.decode(str(row[0]).encode(), type=Assessment)
        passed, bad = 0, array("q")
        for _, attempts in self.by_case():
            ended = [row for row in attempts if row.state == "done"]
            passed += sum(row.outcome == "passed" for row in ended)
            bad.extend(row.id for row in ended if row.outcome in ("failed", "error"))
        return assess(self._bodies_in_pieces(bad), passed=passed)

    def _bodies_in_pieces(self, refs: Sequence[int]) -> Iterator[tuple[int, Attempt]]:
        for start in range(0, len(refs), _PIECE):
            yield from self.bodies_of(refs[start : start + _PIECE], Attempt)

    def packed_case(self, case_ref: int) -> bytes:
        """A case as it is kept (`encoding.pack`).

        Raises:
            StoreError: it cannot be read.
        """
        row = self._one("SELECT body FROM cases WHERE id = ?", (case_ref,))
        body = bytes(row[0]) if row is not None and isinstance(row[0], bytes) else b"{}"
        self._unpack(body, msgspec.Raw)
        return body

    def packed_attempts(self, refs: Sequence[int]) -> dict[int, bytes]:
        """Finished attempts as they are kept, by id.

        Raises:
            StoreError: one cannot be read.
        """
        found: dict[int, bytes] = {}
        for start in range(0, len(refs), _PIECE):
            piece = tuple(refs[start : start + _PIECE])
            statement = f"SELECT attempt_ref, body FROM bodies WHERE attempt_ref IN ({_marks(piece)})"
            rows = self._all(statement, piece)
            found.update((ref, body) for ref, body in rows if isinstance(body, bytes))
        for body in found.values():  # whoever copies one that is damaged would be blamed for it
            self._unpack(body, msgspec.Raw)
        return found

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _unpack(self, body: bytes, kind: type[T]) -> T:
        if type(body) is not bytes:
            raise self._damaged(f"a body is of type {type(body).__name__}")
        try:
            return unpack(body, kind)
        except (msgspec.MsgspecError, zlib.error, UnicodeError) as error:
            raise self._damaged(str(error)) from None

    def _damaged(self, why: str) -> StoreError:
        return StoreError(f"{self.folder / DATABASE}: damaged: {' '.join(why.split())}")

    def _all(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Rows of a statement. Another connection that closes takes the write-ahead log's files away
        under this one's feet: such an error passes when the database is opened again."""
        for wait in (*_AGAIN, None):
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                if wait is None:
                    raise _unreadable(self.folder / DATABASE, error) from None
                time.sleep(wait)
                self._connection.close()
                self._connection = _open(self.folder / DATABASE)
            except sqlite3.Error as error:
                raise _unreadable(self.folder / DATABASE, error) from None
        return []

    def _one(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        rows = self._all(statement, values)
        return rows[0] if rows else None


def _marks(values: Collection[object]) -> str:
    return ",".join("?" * len(values))


def _each(made: Callable[[tuple[Any, ...]], T], rows: list[tuple[Any, ...]]) -> list[T]:
    """What is made of each row; a row goes when it is made, so that a long list is not held twice."""
    found: list[Any] = rows
    for place, row in enumerate(rows):
        found[place] = made(row)
    return found


def _known_figures(row: AttemptRow) -> tuple[Any, ...]:
    """A run can come from anywhere, and SQLite keeps any value in any column: what is no figure is unknown."""
    row.score = figures.score(row.score, "score")
    row.started_at = figures.moment(row.started_at, "start")
    row.duration_ms = figures.amount(row.duration_ms, "duration")
    row.input_tokens = figures.count(row.input_tokens, "input tokens")
    row.output_tokens = figures.count(row.output_tokens, "output tokens")
    row.cached_tokens = figures.count(row.cached_tokens, "cached tokens")
    row.cost = figures.amount(row.cost, "cost")
    row.saved = figures.amount(row.saved, "cost saved")
    row.judge_tokens = figures.count(row.judge_tokens, "tokens of the judges")
    row.judge_cost = figures.amount(row.judge_cost, "cost of the judges")
    row.judge_saved = figures.amount(row.judge_saved, "cost saved")
    row.tool_calls = figures.count(row.tool_calls, "tool calls")
    row.ends_at = figures.moment(row.ends_at, "end")
    return msgspec.structs.astuple(row)


def _open(path: Path) -> sqlite3.Connection:
    """Read-only; a folder that cannot be written (a copied run) is opened as unchanging. Of one that can, an
    error passes (see `_all`): a run that goes on must not be taken for one that never changes."""
    try:
        private.check_database(path)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from None
    location = f"{path.absolute().as_uri()}?mode=ro"
    for wait in (*(_AGAIN if os.access(path.parent, os.W_OK) else ()), None):
        connection = sqlite3.connect(
            location, uri=True, timeout=5, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return connection
        except sqlite3.OperationalError:
            connection.close()
            if wait is not None:
                time.sleep(wait)
        except UnicodeDecodeError:  # SQLite says which name in its schema is damaged
            connection.close()
            raise _unreadable(path, sqlite3.DatabaseError("its schema is malformed")) from None
        except sqlite3.Error:  # damaged
            connection.close()
            break
    try:
        return sqlite3.connect(
            f"{location}&immutable=1", uri=True, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise _unreadable(path, error) from None


def _refuse_cut_off(connection: sqlite3.Connection, path: Path) -> None:
    """A copy that broke off within the last page: SQLite itself takes what is missing of it for zeros.

    Raises:
        sqlite3.DatabaseError: it did.
    """
    wanted = 1
    for name in ("page_count", "page_size"):
        wanted *= connection.execute(f"PRAGMA {name}").fetchone()[0]
    with contextlib.suppress(OSError):
        if path.stat().st_size >= wanted:
            return
        beside = path.with_name(f"{path.name}-wal")
        if beside.is_file() and beside.stat().st_size:  # the last pages are there
            return
        if path.stat().st_size < wanted:  # else its engine has just put them in their place
            raise sqlite3.DatabaseError("its end is missing")


def _unreadable(path: Path, error: sqlite3.Error) -> StoreError:
    if not is_damage(error):
        return StoreError(f"{path}: {error}")
    # SQLite repeats the text itself, and that is the run's.
    why = "a text in it is not UTF-8" if str(error).startswith("Could not decode to UTF-8") else str(error)
    return DamagedRun(
        f"{path}: damaged: {why}; copy the folder again from where it is whole, or delete it: other runs are "
        "none the worse"
    )


decoded(_Answer, tuple[list[str], list[int]])
