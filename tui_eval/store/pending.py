"""What a run has told and is not on disk yet: gathered, so that an attempt which begins and ends within
one transaction costs one row and not one for each of its steps."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Operation = Callable[[sqlite3.Connection], object]
_LIVE_KEPT_PER_ATTEMPT = 262_144  # characters of live text kept of one running attempt

_ENDED = (
    "UPDATE attempts SET state = 'done', turn = coalesce(?, turn), outcome = ?, score = ?, message = ?,"
    " started_at = ?, duration_ms = ?, input_tokens = ?, output_tokens = ?, cached_tokens = ?, cost = ?,"
    " tool_calls = ?, detail = '', answer = ?, asserted_nothing = ?, changed = ? WHERE id = ?"
)
_LIVE = "INSERT INTO live (attempt_ref, kind, agent, text, name, call_id, at) VALUES (?, ?, ?, ?, ?, ?, ?)"


@dataclass(slots=True)
class Pending:
    """`operations` first, then the newest `columns` of attempts that run, then those that `ended` (the
    values of `_ENDED`, and the body)."""

    operations: list[Operation] = field(default_factory=list)
    columns: dict[int, dict[str, Any]] = field(default_factory=dict)
    ended: list[tuple[tuple[Any, ...], bytes]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.operations or self.columns or self.ended)

    def followed_by(self, later: Pending) -> Pending:
        """Both, in their order: what could not be written, and what came since."""
        over = {values[-1] for values, _ in later.ended}
        columns = {ref: dict(own) for ref, own in self.columns.items() if ref not in over}
        for ref, own in later.columns.items():
            columns.setdefault(ref, {}).update(own)
        return Pending([*self.operations, *later.operations], columns, [*self.ended, *later.ended])

    def write(self, connection: sqlite3.Connection) -> None:
        """Everything, within the caller's transaction."""
        for operation in self.operations:
            operation(connection)
        for ref, columns in self.columns.items():
            names = ", ".join(f"{name} = ?" for name in columns)
            values = storable_rows([(*columns.values(), ref)])[0]
            connection.execute(f"UPDATE attempts SET {names} WHERE id = ?", values)
        if self.ended:
            connection.executemany(_ENDED, storable_rows([values for values, _ in self.ended]))
            bodies = [(values[-1], body) for values, body in self.ended]
            connection.executemany("INSERT OR REPLACE INTO bodies VALUES (?, ?)", bodies)


class LiveText:
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

    def take(self) -> list[tuple[Any, ...]]:
        """The rows to write, in the order of the attempts."""
        pieces, self._pieces = self._pieces, {}
        self._written.update(pieces)
        return [
            (ref, kind, agent, "".join(texts), name, call_id, at)
            for ref, own in pieces.items()
            for kind, agent, texts, name, call_id, at in own
        ]


def write_live(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    """Rows of `LiveText.take`, within the caller's transaction."""
    connection.executemany(_LIVE, storable_rows(rows))


def storable_rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
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
