"""What a run has reported and is not on disk yet: gathered, so that an attempt which begins and ends within
one transaction costs one row and not one for each of its steps."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from typing import Any

import msgspec

from tui_eval import causes
from tui_eval.guard.text import clip, storable_text
from tui_eval.model import Attempt, Entry, Evidence
from tui_eval.store.encoding import pack, unpack
from tui_eval.store.schema import COMPARED_LATER

Operation = Callable[[sqlite3.Connection], object]
_LIVE_KEPT_PER_ATTEMPT = 262_144  # characters of live text kept of one running attempt

_OF_ENDED = (
    "turn", "outcome", "score", "message", "started_at", "duration_ms", "input_tokens", "output_tokens", "cached_tokens",
    "cost", "tool_calls", "answer", "asserted_nothing", "cached", "saved", "cause", "alike", "judge_calls", "judge_tokens",
    "judge_cost", "judge_cached", "judge_saved", "changed",
)  # fmt: skip
"""The columns of an attempt that has ended; behind them stands its id."""
_ID = len(_OF_ENDED) + 1


def _as_ended(value: str) -> str:
    """An attempt's columns when it has ended; `value` and a number, from 1 on, stand for each of its values."""
    known = ", ".join(f"{name} = {value}{number}" for number, name in enumerate(_OF_ENDED[1:], 2))
    waits = f"CASE WHEN {value}2 IS NULL THEN"
    return (
        f"UPDATE attempts SET turn = coalesce({value}1, turn), {known}, state = {waits} 'waiting' ELSE 'done' END,"
        f" detail = {waits} '{COMPARED_LATER}' ELSE '' END"
    )


_ENDED = f"{_as_ended('?')} WHERE id = ?{_ID}"
_SEVERAL_ENDED = f"{_as_ended('e.column')} FROM (VALUES {{}}) AS e WHERE attempts.id = e.column{_ID}"
MANY_AT_ONCE = sqlite3.sqlite_version_info >= (3, 33)
"""Whether this SQLite knows UPDATE … FROM."""
_LIVE = "INSERT INTO live (attempt_ref, kind, agent, text, name, call_id, at) VALUES (?, ?, ?, ?, ?, ?, ?)"


def own_fault(error: Exception) -> bool:
    """Whether it is a record that the database does not take, rather than the disk that refuses any."""
    if isinstance(error, sqlite3.Error):
        kinds = sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError
        return isinstance(error, kinds)
    return not isinstance(error, OSError | MemoryError)


def unkept(attempt: Attempt, error: Exception, whole: bool = False) -> Attempt:
    """What stands for an attempt that cannot be kept as it is: an error that says why; with what was said
    where that can be kept (`whole`)."""
    why = f"its result could not be kept: {type(error).__name__}: {clip(' '.join(str(error).split()), 300)}"
    evidence = [Evidence("agent", "not-kept", text=why)]
    if whole:
        return msgspec.structs.replace(
            attempt, outcome="error", message=why, error=why, score=0.0, usage=None, cost=None, judging=None,
            duration_ms=None, tool_call_count=None, evidence=evidence,
        )  # fmt: skip
    return Attempt(
        case_id=attempt.case_id,
        attempt=attempt.attempt,
        outcome="error",
        agent=attempt.agent,
        model=attempt.model,
        message=why,
        error=why,
        transcript=[Entry(turn=1, kind="error", text=why, error=why)],
        evidence=evidence,
    )


class Ended(msgspec.Struct):
    """An attempt that has ended: the values of `_OF_ENDED` without the turn (the outcome first, None where others are
    waited for), then its id; and its body. `turn` is where it was."""

    values: tuple[Any, ...]
    body: bytes
    turn: int | None = None

    @property
    def ref(self) -> int:
        """The attempt's id."""
        return self.values[-1]

    def as_error(self, error: Exception, whole: bool) -> Ended:
        """The same attempt as an error that says why it could not be kept, with what was said or without."""
        try:
            attempt = unpack(self.body, Attempt)
        except Exception:
            attempt = Attempt(case_id="", attempt=1, outcome="error")
        failed = unkept(attempt, error, whole)
        changed = self.values[-2] if isinstance(self.values[-2], int) else 0
        started = self.values[3] if isinstance(self.values[3], float) else None
        why = causes.cause_of(failed), causes.alike(failed)
        values = (
            "error",
            0.0,
            failed.message,
            started,
            *[None] * 6,
            "",
            0,
            0,
            None,
            *why,
            0,
            None,
            None,
            0,
            None,
            changed,
            self.ref,
        )
        return Ended(values, pack(failed))


class Pending(msgspec.Struct):
    """`operations` first, then the newest `columns` of attempts that run, then those that `ended`."""

    operations: list[Operation] = []
    columns: dict[int, dict[str, Any]] = {}
    ended: list[Ended] = []

    def __bool__(self) -> bool:
        return bool(self.operations or self.columns or self.ended)

    def followed_by(self, later: Pending) -> Pending:
        """Both, in their order: what could not be written, and what came since."""
        over = {one.ref for one in later.ended}
        columns = {ref: dict(own) for ref, own in self.columns.items() if ref not in over}
        for ref, own in later.columns.items():
            columns.setdefault(ref, {}).update(own)
        return Pending([*self.operations, *later.operations], columns, [*self.ended, *later.ended])

    def write(self, connection: sqlite3.Connection) -> None:
        """Everything, within the caller's transaction."""
        for operation in self.operations:
            operation(connection)
        for ref, columns in self.columns.items():
            _write_columns(connection, ref, columns)
        _write_ended(connection, self.ended)

    def write_each(self, connection: sqlite3.Connection, lost: dict[int, str]) -> list[str]:
        """As `write`, one record after the other: an attempt that the database does not take is written as an
        error. What could not be written at all, in a line each; attempts are in `lost`, too, by their ids.

        Raises:
            sqlite3.Error, OSError, MemoryError: the disk refuses; nothing is to be committed.
        """
        failed: list[str] = []
        for operation in self.operations:
            if error := tried(connection, lambda operation=operation: operation(connection)):
                failed.append(f"{type(error).__name__}: {error}")
        for ref, columns in self.columns.items():  # how far it is: not worth a word where that is not known
            tried(connection, lambda ref=ref, columns=columns: _write_columns(connection, ref, columns))
        for one in self.ended:
            error = tried(connection, lambda one=one: _write_ended(connection, [one]))
            if error is None:
                continue
            for other in (one.as_error(error, True), one.as_error(error, False)):
                if not tried(connection, lambda other=other: _write_ended(connection, [other])):
                    break
            else:
                lost[one.ref] = other.values[2]
                failed.append(f"attempt {one.ref}: {other.values[2]}")
        return failed


def tried(connection: sqlite3.Connection, write: Callable[[], object]) -> Exception | None:
    """Write a record; why the database does not take it, nothing of it being written then."""
    connection.execute("SAVEPOINT record")
    try:
        write()
    except Exception as error:
        if not own_fault(error):
            raise
        connection.execute("ROLLBACK TO record")
        connection.execute("RELEASE record")
        return error
    connection.execute("RELEASE record")
    return None


def _write_columns(connection: sqlite3.Connection, ref: int, columns: dict[str, Any]) -> None:
    names = ", ".join(f"{name} = ?" for name in columns)
    values = storable_rows([(*columns.values(), ref)])[0]
    connection.execute(f"UPDATE attempts SET {names} WHERE id = ?", values)


def _write_ended(connection: sqlite3.Connection, ended: list[Ended]) -> None:
    if not ended:
        return
    rows = storable_rows([(one.turn, *one.values) for one in ended])
    once = len({one.ref for one in ended}) == len(ended)  # of two rows for one attempt any might be taken
    if MANY_AT_ONCE and once:
        _with_rows(connection, _SEVERAL_ENDED, rows)
    else:
        connection.executemany(_ENDED, rows)
    insert_rows(connection, "bodies", [(one.ref, one.body) for one in ended], replacing=True)


class PendingText:
    """Text of running attempts that viewers have not got yet; pieces of one text are joined."""

    def __init__(self) -> None:
        self._pieces: dict[int, list[tuple[str, str, list[str], str, str, float]]] = {}
        self._sizes: dict[int, int] = {}
        self._written: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, ref: int, kind: str, text: str, agent: str, name: str, call_id: str) -> bool:
        """Whether there is something new to show: beyond a size there is not."""
        size = self._sizes.get(ref, 0) + len(text)
        if size > _LIVE_KEPT_PER_ATTEMPT:
            return False
        self._sizes[ref] = size
        pieces = self._pieces.setdefault(ref, [])
        if pieces and kind in ("assistant", "reasoning") and pieces[-1][:2] == (kind, agent):
            pieces[-1][2].append(text)
        else:
            pieces.append((kind, agent, [text], name, call_id, time.time()))
        return True

    def forget(self, ref: int) -> bool:
        """The attempt is done; whether text of it has been written, which goes now."""
        self._pieces.pop(ref, None)
        self._sizes.pop(ref, None)
        written = ref in self._written
        self._written.discard(ref)
        return written

    def take(self, later: Collection[int]) -> list[tuple[Any, ...]]:
        """The rows to write, in the order of the attempts; those of the attempts in `later` wait."""
        pieces = {ref: own for ref, own in self._pieces.items() if ref not in later}
        self._pieces = {ref: own for ref, own in self._pieces.items() if ref in later}
        self._written.update(pieces)
        return [
            (ref, kind, agent, "".join(texts), name, call_id, at)
            for ref, own in pieces.items()
            for kind, agent, texts, name, call_id, at in own
        ]


def write_live(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    """Rows of `LiveText.take`, within the caller's transaction."""
    connection.executemany(_LIVE, storable_rows(rows))


_is_text = str.__instancecheck__
"""`isinstance(…, str)`, without a line of Python for each of the many values."""


def storable_rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """SQLite refuses lone surrogates; look for them only where encoding fails."""
    try:
        for row in rows:
            text = "".join(filter(_is_text, row))
            if not text.isascii():
                text.encode()
    except UnicodeEncodeError:
        return [
            tuple(storable_text(value) if isinstance(value, str) else value for value in row) for row in rows
        ]
    return rows


_VALUES = 999
"""Values of one statement: as many as each SQLite takes (those before 3.32 no more). Each statement gives Python's lock
back and takes it again, which the engine's loop waits for."""


def insert_rows(
    connection: sqlite3.Connection, into: str, rows: Sequence[Sequence[Any]], *, replacing: bool = False
) -> None:
    """Insert rows into a table (`into`: its name, with the columns where it has others), within the caller's
    transaction; `replacing` those that are there under the same key."""
    _with_rows(connection, f"INSERT{' OR REPLACE' if replacing else ''} INTO {into} VALUES {{}}", rows)


def _with_rows(connection: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Execute a statement with as many rows at a time as it takes, in place of its `{}`."""
    if not rows:
        return
    row = f"({', '.join('?' * len(rows[0]))})"
    together = _VALUES // len(rows[0])
    for start in range(0, len(rows), together):
        some = rows[start : start + together]
        connection.execute(statement.format(", ".join([row] * len(some))), [*chain.from_iterable(some)])
