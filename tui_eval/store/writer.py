"""Writing a run: the one process that executes it appends here, from a thread of its own.

Calls return at once; a thread gathers what came within a few milliseconds into one transaction, so
that a finished attempt is on disk about 20 ms later and a token never costs a commit.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.model import Attempt, Case
from tui_eval.store.encoding import encode_json, pack
from tui_eval.store.failure_modes import Assessment
from tui_eval.store.runs import DATABASE, RunLock, StoreError, journal_mode
from tui_eval.store.schema import SCHEMA_VERSION, TABLES, RunInfo, RunState

_GATHER_SECONDS = 0.02
_LIVE_SECONDS = 0.12
_LIVE_KEPT_PER_ATTEMPT = 262_144  # characters of live text kept of one running attempt

_Operation = Callable[[sqlite3.Connection], None]


class PlannedCase(msgspec.Struct):
    """A case that a run will execute with one agent, `attempts` times from `first_attempt` on."""

    case: Case
    agent: str
    model: str | None
    attempts: int
    required: int
    first_attempt: int = 1


class RunWriter:
    """Creates a run's folder and appends to it. One per run; used from one event loop or thread.

    `on_error` is told when the disk refuses (full, gone): the run goes on and says so.
    """

    def __init__(self, folder: Path, info: RunInfo, on_error: Callable[[str], None] | None = None) -> None:
        self.folder = folder
        self.info = info
        self.error: str | None = None
        self._on_error = on_error
        self._lock = RunLock(folder)
        self._operations: list[_Operation] = []
        self._live: dict[int, list[list[Any]]] = {}
        self._live_sizes: dict[int, int] = {}
        self._live_due = 0.0
        self._wake = threading.Condition()
        self._closing = False
        self._busy = False
        self._urgent = False
        self._changed = 0
        self._next_attempt = 1
        self._next_case = 1
        connection = _connect(folder)
        try:
            if info.state == "running" and not _has_tables(connection):
                connection.executescript(TABLES)
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            else:
                self._continue_from(connection)
            _write_info(connection, info)
            connection.commit()
        except sqlite3.Error as error:
            raise StoreError(f"{folder}: {error}") from None
        finally:
            connection.close()
        self._thread = threading.Thread(target=self._write_loop, name=f"store-{info.id}", daemon=True)
        self._thread.start()

    def _continue_from(self, connection: sqlite3.Connection) -> None:
        row = connection.execute(
            "SELECT (SELECT coalesce(max(id), 0) FROM attempts), (SELECT coalesce(max(id), 0) FROM cases),"
            " (SELECT coalesce(max(changed), 0) FROM attempts)"
        ).fetchone()
        self._next_attempt, self._next_case, self._changed = row[0] + 1, row[1] + 1, row[2]
        connection.execute("DELETE FROM live")

    # What the engine tells

    def plan(self, planned: Sequence[PlannedCase]) -> list[list[int]]:
        """Record what will be executed; returns the attempt ids of each planned case, in order."""
        case_rows: list[tuple[Any, ...]] = []
        attempt_rows: list[tuple[Any, ...]] = []
        references: list[list[int]] = []
        for item in planned:
            case = item.case
            case_ref = self._next_case
            self._next_case += 1
            case_rows.append(
                (
                    case_ref, case.case_id, case.suite, case.name, case.format, item.agent, item.model,
                    case.content_hash, item.attempts, item.required, pack(case),
                )
            )  # fmt: skip
            ids: list[int] = []
            for number in range(item.first_attempt, item.first_attempt + item.attempts):
                self._changed += 1
                attempt_rows.append((self._next_attempt, case_ref, number, "waiting", self._changed))
                ids.append(self._next_attempt)
                self._next_attempt += 1
            references.append(ids)

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(f"INSERT INTO cases VALUES ({','.join('?' * 11)})", _storable(case_rows))
            connection.executemany(
                "INSERT INTO attempts (id, case_ref, attempt, state, changed) VALUES (?, ?, ?, ?, ?)",
                attempt_rows,
            )

        self._add(write)
        return references

    def started(self, attempt_ref: int, at: float) -> None:
        """The attempt has begun (`at`: seconds since the epoch)."""
        self._update(attempt_ref, "state = 'running', started_at = ?, detail = ''", (at,))

    def waiting(self, attempt_ref: int) -> None:
        """The attempt waits again, nothing of it kept (a resumed run)."""
        self._update(
            attempt_ref, "state = 'waiting', outcome = NULL, started_at = NULL, detail = '', turn = 0", ()
        )

    def turn(self, attempt_ref: int, turn: int) -> None:
        """The attempt sends its turn number `turn`."""
        self._update(attempt_ref, "turn = ?, state = 'running', detail = ''", (turn,))

    def retrying(self, attempt_ref: int, detail: str) -> None:
        """The attempt waits before it asks again; `detail` says why and how long."""
        self._update(attempt_ref, "state = 'retrying', detail = ?", (detail,))

    def running_again(self, attempt_ref: int) -> None:
        """After a retry, the answer is coming."""
        self._update(attempt_ref, "state = 'running', detail = ''", ())

    def progress(self, attempt_ref: int, usage: tuple[int | None, int | None], tool_calls: int) -> None:
        """Tokens and tool calls so far of a running attempt."""
        self._update(attempt_ref, "input_tokens = ?, output_tokens = ?, tool_calls = ?", (*usage, tool_calls))

    def live(
        self, attempt_ref: int, kind: str, text: str, agent: str = "", name: str = "", call_id: str = ""
    ) -> None:
        """Append to what viewers see of a running attempt; pieces of one text are joined."""
        size = self._live_sizes.get(attempt_ref, 0) + len(text)
        if size > _LIVE_KEPT_PER_ATTEMPT:
            return
        with self._wake:
            self._live_sizes[attempt_ref] = size
            pieces = self._live.setdefault(attempt_ref, [])
            if kind in ("assistant", "reasoning") and pieces:
                last = pieces[-1]
                if last[0] == kind and last[1] == agent:
                    last[2].append(text)
                    return
            pieces.append([kind, agent, [text], name, call_id, time.time()])
            if not self._live_due:
                self._live_due = time.monotonic() + _LIVE_SECONDS
                self._wake.notify()

    def done(self, attempt_ref: int, attempt: Attempt) -> None:
        """The attempt has ended; its live text goes, its body stays."""
        with self._wake:
            self._live.pop(attempt_ref, None)
            had_live = self._live_sizes.pop(attempt_ref, None) is not None
        body = pack(attempt)
        usage = attempt.usage
        self._changed += 1
        values = (
            "done", attempt.outcome, attempt.score, attempt.message, attempt.started_at,
            attempt.duration_ms, usage.input_tokens if usage else None,
            usage.output_tokens if usage else None, usage.cached_tokens if usage else None,
            attempt.cost, attempt.tool_call_count, "", self._changed, attempt_ref,
        )  # fmt: skip

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE attempts SET state = ?, outcome = ?, score = ?, message = ?, started_at = ?,"
                " duration_ms = ?, input_tokens = ?, output_tokens = ?, cached_tokens = ?, cost = ?,"
                " tool_calls = ?, detail = ?, changed = ? WHERE id = ?",
                _storable([values])[0],
            )
            connection.execute("INSERT OR REPLACE INTO bodies VALUES (?, ?)", (attempt_ref, body))
            if had_live:
                connection.execute("DELETE FROM live WHERE attempt_ref = ?", (attempt_ref,))

        self._add(write)

    def state(self, state: RunState, finished_at: float | None = None) -> None:
        """The run's state changes (`finished_at`: seconds since the epoch, at its end)."""
        self.info.state = state
        self.info.finished_at = finished_at
        info = msgspec.structs.replace(self.info)
        self._add(lambda connection: _write_info(connection, info))

    def update_info(self) -> None:
        """Write `info` again after a change of its provenance."""
        info = msgspec.structs.replace(self.info)
        self._add(lambda connection: _write_info(connection, info))

    def assessment(self, assessment: Assessment) -> None:
        """Keep how the run's attempts failed, named by a judge."""
        text = encode_json(assessment).decode()
        self._add(
            lambda connection: (
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('assessment', ?)", (text,)) and None
            )
        )

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until everything told so far is on disk; False when that took too long."""
        end = time.monotonic() + timeout
        with self._wake:
            self._urgent = True
            self._wake.notify()
            while (self._operations or self._busy) and time.monotonic() < end:
                self._wake.wait(0.05)
            self._urgent = False
            return not (self._operations or self._busy)

    def close(self) -> None:
        """Write what is left, end the thread, give the run's lock back."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout=30)
        self._lock.release()

    # The writing thread

    def _update(self, attempt_ref: int, assignments: str, values: tuple[Any, ...]) -> None:
        self._changed += 1
        changed = self._changed
        statement = f"UPDATE attempts SET {assignments}, changed = ? WHERE id = ?"
        parameters = _storable([(*values, changed, attempt_ref)])[0]
        self._add(lambda connection: connection.execute(statement, parameters) and None)

    def _add(self, operation: _Operation) -> None:
        with self._wake:
            self._operations.append(operation)
            if len(self._operations) == 1:
                self._wake.notify()

    def _write_loop(self) -> None:
        connection: sqlite3.Connection | None = None
        while True:
            with self._wake:
                while not self._operations and not self._closing:
                    if self._live_due:
                        left = self._live_due - time.monotonic()
                        if left <= 0:
                            break
                        self._wake.wait(left)
                    else:
                        self._wake.wait()
                closing = self._closing
                at_once = closing or self._urgent
            if not at_once:
                time.sleep(_GATHER_SECONDS)
            with self._wake:
                operations, self._operations = self._operations, []
                live: dict[int, list[list[Any]]] = {}
                if self._live_due and (time.monotonic() >= self._live_due or closing):
                    live, self._live, self._live_due = self._live, {}, 0.0
                self._busy = True
            try:
                if connection is None:
                    connection = _connect(self.folder)
                self._write(connection, operations, live)
            except sqlite3.Error as error:
                self._failed(str(error))
                if connection is not None:
                    with contextlib.suppress(sqlite3.Error):
                        connection.rollback()
            with self._wake:
                self._busy = False
                self._wake.notify_all()
                if self._closing and not self._operations:
                    break
        if connection is not None:
            connection.close()

    def _write(
        self, connection: sqlite3.Connection, operations: list[_Operation], live: dict[int, list[list[Any]]]
    ) -> None:
        if not operations and not live:
            return
        connection.execute("BEGIN IMMEDIATE")
        for operation in operations:
            operation(connection)
        if live:
            rows = [
                (ref, kind, agent, "".join(texts), name, call_id, at)
                for ref, pieces in live.items()
                for kind, agent, texts, name, call_id, at in pieces
            ]
            connection.executemany(
                "INSERT INTO live (attempt_ref, kind, agent, text, name, call_id, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                _storable(rows),
            )
        connection.commit()

    def _failed(self, message: str) -> None:
        if self.error is None:
            self.error = f"{self.folder / DATABASE}: {message}"
            if self._on_error is not None:
                self._on_error(self.error)


def _connect(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / DATABASE, timeout=10, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {journal_mode(folder)}")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'attempts'").fetchone() is not None


def _write_info(connection: sqlite3.Connection, info: RunInfo) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('info', ?)", (encode_json(info).decode(),))


def _storable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """SQLite refuses lone surrogates; look for them only where encoding fails."""
    try:
        for row in rows:
            for value in row:
                if type(value) is str and not value.isascii():
                    value.encode()
    except UnicodeEncodeError:
        return [
            tuple(
                value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
                for value in row
            )
            for row in rows
        ]
    return rows
