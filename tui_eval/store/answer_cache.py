"""Answers kept for who asks for them (`--cache`): what an agent said to a conversation, in a file of the owner's own.

What is kept is found by a key that only this person's state folder knows how to make: answers that came with a
project from elsewhere are never found.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tui_eval.guard import private
from tui_eval.guard.trust_store import state_home
from tui_eval.store.digests import alone, connect_or_renew, is_damage
from tui_eval.store.run_folders import Store

FILE = "answers.db"
LARGEST = 4 << 20
"""Bytes of one answer that are kept at most."""
ROOM = 256 << 20
"""Bytes of the file: of all answers those not used for longest go first, before it is larger."""
_VERSION = 2
_TABLES = (
    "CREATE TABLE IF NOT EXISTS answers (key BLOB NOT NULL UNIQUE, at REAL NOT NULL, used REAL NOT NULL,"
    " seal BLOB NOT NULL, body BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS by_use ON answers (used)",
)
_KEPT_FREE = 10  # a part of this size is made room for at once
_AT_ONCE = 200  # answers that go in one step
_BESIDE = 8  # pages that an answer may take beside its own
_BUSY = 5.0  # seconds that another process may take


class AnswerCache:
    """The answers kept in a project. Blocking: use it in threads, from any number of them. What the disk refuses is
    not kept, and what cannot be read was never kept: nothing here ends an attempt. `problem` says it.

    Args:
        room: Bytes that the file has at most.
    """

    def __init__(self, root: Path, room: int = ROOM) -> None:
        self.path = Store(root).folder / FILE
        self._root = root
        self._room = room
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._writable = True
        self._secret = b""
        self._opened: tuple[int, int] | None = None
        self.problem = ""
        """Why answers are not kept, or not found again, in a line; empty: nothing is known to be wrong."""

    def key(self, *parts: bytes) -> bytes:
        """The key of what these say together."""
        if not self._secret:
            self._secret, self.problem = _secret(self.problem)
        whole = hmac.new(self._secret, digestmod=hashlib.sha256)
        for part in parts:
            whole.update(len(part).to_bytes(8, "big") + part)
        return whole.digest()

    def get(self, keys: Iterable[bytes]) -> dict[bytes, tuple[float, bytes]]:
        """What is kept under these keys, with when it was answered (seconds since the epoch)."""
        wanted = list(keys)

        def look(connection: sqlite3.Connection) -> dict[bytes, tuple[float, bytes]]:
            found: dict[bytes, tuple[float, bytes]] = {}
            for key in wanted:
                row = connection.execute(
                    "SELECT at, seal, body FROM answers WHERE key = ?", (key,)
                ).fetchone()
                # One whose bytes are others than they were is none: it would be taken for what the agent said.
                if (
                    row is not None
                    and isinstance(row[0], float)
                    and row[1:] == (self._seal(key, row[2]), row[2])
                ):
                    found[key] = row[0], row[2]
            if found and self._writable:
                _used(connection, found)
            return found

        return self._tried(look, create=False) or {}

    def put(self, key: bytes, body: bytes) -> None:
        """Keep an answer in place of the one before it."""
        if len(body) > min(LARGEST, self._room // 2):
            return

        def keep(connection: sqlite3.Connection) -> None:
            now = time.time()
            with _all_or_none(connection):
                connection.execute("DELETE FROM answers WHERE key = ?", (key,))
                self._make_room(connection, len(body))
                row = (key, now, now, self._seal(key, body), body)
                connection.execute(
                    "INSERT INTO answers (key, at, used, seal, body) VALUES (?, ?, ?, ?, ?)", row
                )

        self._tried(keep, create=True)

    def forget(self, key: bytes) -> None:
        """Keep nothing under this key."""

        def drop(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM answers WHERE key = ?", (key,))

        self._tried(drop, create=False)

    def size(self) -> tuple[int, int]:
        """How many answers are kept, and the bytes of the file."""

        def count(connection: sqlite3.Connection) -> tuple[int, int]:
            return connection.execute("SELECT count(*) FROM answers").fetchone()[0], self.path.stat().st_size

        return self._tried(count, create=False) or (0, 0)

    def _seal(self, key: bytes, body: Any) -> bytes:
        """What only who kept an answer can say of it."""
        if not isinstance(body, bytes):
            return b""
        if not self._secret:
            self.key()
        return hmac.new(self._secret, key + body, hashlib.sha256).digest()[:16]

    def _make_room(self, connection: sqlite3.Connection, size: int) -> None:
        """Let those go that were not used for longest, where the file would become too large."""
        page = _one(connection, "PRAGMA page_size")
        most = self._room // page
        needed = size // (page - 64) + _BESIDE
        if _one(connection, "PRAGMA page_count") - _one(connection, "PRAGMA freelist_count") + needed <= most:
            return
        most -= most // _KEPT_FREE
        while (
            _one(connection, "PRAGMA page_count") - _one(connection, "PRAGMA freelist_count") + needed > most
        ):
            oldest = "SELECT rowid FROM answers ORDER BY used LIMIT ?"
            gone = connection.execute(
                f"DELETE FROM answers WHERE rowid IN ({oldest})", (self._step(connection),)
            )
            if not gone.rowcount:
                return

    def _step(self, connection: sqlite3.Connection) -> int:
        """How many answers go at once: a small part of all."""
        last = connection.execute("SELECT max(rowid) - min(rowid) FROM answers").fetchone()[0] or 0
        return max(1, min(_AT_ONCE, last // 100))

    def _tried(self, work: Callable[[sqlite3.Connection], _Done], *, create: bool) -> _Done | None:
        """What comes of work on the file; None where it cannot be done, which `problem` says. A file in which parts are
        damaged is made anew of what can be read of it."""
        with self._lock:
            for again in (True, False):
                try:
                    connection = self._open(create=create)
                    return None if connection is None else work(connection)
                except sqlite3.Error as error:
                    if again and self._connection is not None and is_damage(error):
                        with contextlib.suppress(sqlite3.Error, OSError):
                            self._renew()
                            continue
                    self.problem = self.problem or self._why(error)
                except OSError as error:
                    self.problem = self.problem or self._why(error)
                return None
        return None

    def _why(self, error: Exception) -> str:
        """In a line why the file cannot be used, and what to do."""
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        if said.endswith("remove it"):
            pass
        elif (
            "readonly" in said
            or isinstance(error, PermissionError)
            or not os.access(self.path.parent, os.W_OK)
        ):
            said = "cannot be written; make the file and its folder yours to write"
        elif isinstance(error, sqlite3.Error) and is_damage(error):
            said = f"cannot be read ({said}); delete it with: tui-eval prune --cache"
        elif os.path.isdir(self.path):
            said = "is a folder; remove it"
        return f"answers are not kept: {self._name}: {said}"

    @property
    def _name(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    def clear(self) -> None:
        """Forget them all.

        Raises:
            OSError: the file cannot be deleted.
        """
        self.close()
        for ending in ("", "-new", "-journal", "-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self, *, create: bool) -> sqlite3.Connection | None:
        if self._connection is not None and self._opened != _identity(self.path):
            self._connection.close()  # another process has made it anew, or deleted it
            self._connection = None
        if self._connection is None:
            if not os.path.lexists(self.path):
                if not create:
                    return None
                Store(self._root).make()
            self._connection = connect_or_renew(self.path, self._connect)
            if _version(self._connection) != _VERSION and self._writable:
                self._renew()
            self._opened = _identity(self.path)
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        private.prepare_database(self.path)
        self._writable = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
        connection = _connection(self.path, writable=self._writable)
        try:
            private.refuse_programs(connection)
            if _version(connection) not in (0, 1, _VERSION) or (
                _version(connection) == 0 and not self._writable
            ):
                raise sqlite3.DatabaseError("of another version")
            if _version(connection) == 0:
                _make(connection)
            if not self._writable:
                self.problem = self.problem or self._why(sqlite3.OperationalError("readonly"))
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _renew(self) -> None:
        """Make the file anew of all that can be read of it: answers were paid for.

        Raises:
            sqlite3.Error, OSError: it cannot be made.
        """
        assert self._connection is not None
        old, self._connection = self._connection, None
        try:
            with alone(self.path.parent):
                if self._opened is not None and self._opened != _identity(self.path):
                    self._connection = self._connect()  # somebody else has
                    return
                made = self.path.with_name(f"{FILE}-new")
                made.unlink(missing_ok=True)
                private.prepare_database(made)
                damaged = _version(old) == _VERSION
                with contextlib.closing(_connection(made, writable=True)) as new:
                    _make(new)
                    with _all_or_none(new):
                        for row in _readable(old):
                            self._take_over(new, row)
                    left = _one(new, "SELECT count(*) FROM answers")
                with contextlib.suppress(sqlite3.Error):
                    old.close()
                os.replace(made, self.path)
                for end in ("-journal", "-wal", "-shm"):
                    self.path.with_name(self.path.name + end).unlink(missing_ok=True)
                self._connection = self._connect()
                if damaged:
                    self.problem = self.problem or (
                        f"{self._name} was damaged: it was made anew of the {left:,} answers that could be read"
                    )
        finally:
            self._opened = _identity(self.path)
            with contextlib.suppress(sqlite3.Error):
                old.close()

    def _take_over(self, new: sqlite3.Connection, row: Sequence[Any]) -> None:
        key, at, used, seal, body = row
        if isinstance(key, bytes) and isinstance(body, bytes):
            self._make_room(new, len(body))
            # A seal stays as it is: it may be another person's, who alone can say whether it holds.
            values = (key, float(at), float(used), seal or self._seal(key, body), body)
            new.execute(
                "INSERT OR IGNORE INTO answers (key, at, used, seal, body) VALUES (?, ?, ?, ?, ?)", values
            )


_Done = TypeVar("_Done")


def _connection(path: Path, *, writable: bool) -> sqlite3.Connection:
    mode = "rw" if writable else "ro"
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=_BUSY,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA synchronous = OFF")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _make(connection: sqlite3.Connection) -> None:
    with _all_or_none(connection):
        for table in _TABLES:
            connection.execute(table)
        connection.execute(f"PRAGMA user_version = {_VERSION}")


@contextlib.contextmanager
def _all_or_none(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction, which is over whatever happens: others wait for it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _used(connection: sqlite3.Connection, keys: Iterable[bytes]) -> None:
    """Note that answers were used; where another process is at work for long, it is not noted."""
    try:
        with _all_or_none(connection):
            now = time.time()
            connection.executemany("UPDATE answers SET used = ? WHERE key = ?", [(now, key) for key in keys])
    except sqlite3.Error as error:
        if is_damage(error):
            raise


def _readable(connection: sqlite3.Connection) -> Iterator[Sequence[Any]]:
    """The answers of a file up to what is damaged, from both ends."""
    first = _version(connection) == 1
    order, seal = ("key", "NULL") if first else ("rowid", "seal")
    for direction in ("ASC", "DESC"):
        with contextlib.suppress(sqlite3.Error):
            chosen = f"SELECT key, at, used, {seal}, body FROM answers ORDER BY {order} {direction}"
            yield from connection.execute(chosen)
            return


def _version(connection: sqlite3.Connection) -> int:
    return _one(connection, "PRAGMA user_version")


def _one(connection: sqlite3.Connection, query: str) -> int:
    return connection.execute(query).fetchone()[0]


def _identity(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


def _secret(problem: str) -> tuple[bytes, str]:
    """This person's own, made when it is first needed; one for this process where it cannot be kept, and why."""
    place = state_home() / "answers.key"
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            handle = private.open_file(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with open(handle, "wb") as file:
                file.write(secrets.token_bytes(32))
        with open(private.open_file(place, os.O_RDONLY), "rb") as file:
            if len(found := file.read(64)) >= 32:
                return found, problem
        why = "it is too short; remove it"
    except OSError as error:
        why = error.strerror or str(error)
    return secrets.token_bytes(32), problem or f"answers are not found again: {place}: {why}"
