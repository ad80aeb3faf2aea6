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
from collections.abc import Iterable
from pathlib import Path

from tui_eval.guard import private
from tui_eval.guard.trust_store import state_home
from tui_eval.store.digests import connect_or_renew
from tui_eval.store.run_folders import Store

FILE = "answers.db"
LARGEST = 4 << 20
"""Bytes of one answer that are kept at most."""
ROOM = 256 << 20
"""Bytes of all answers: those not used for longest go first."""
_VERSION = 1
_TABLE = (
    "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, body BLOB NOT NULL, size INTEGER NOT NULL,"
    " at REAL NOT NULL, used REAL NOT NULL) WITHOUT ROWID"
)


class AnswerCache:
    """The answers kept in a project. Blocking: use it in threads, from any number of them. What the disk refuses is
    not kept, and what cannot be read was never kept: nothing here ends an attempt."""

    def __init__(self, root: Path, room: int = ROOM) -> None:
        self.path = Store(root).folder / FILE
        self._root = root
        self._room = room
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._secret = b""

    def key(self, *parts: bytes) -> bytes:
        """The key of what these say together."""
        if not self._secret:
            self._secret = _secret()
        whole = hmac.new(self._secret, digestmod=hashlib.sha256)
        for part in parts:
            whole.update(len(part).to_bytes(8, "big") + part)
        return whole.digest()

    def get(self, keys: Iterable[bytes]) -> dict[bytes, tuple[float, bytes]]:
        """What is kept under these keys, with when it was answered (seconds since the epoch)."""
        found: dict[bytes, tuple[float, bytes]] = {}
        with self._lock, contextlib.suppress(sqlite3.Error, OSError):
            connection = self._open(create=False)
            if connection is None:
                return {}
            for key in keys:
                row = connection.execute("SELECT at, body FROM answers WHERE key = ?", (key,)).fetchone()
                if row is not None and isinstance(row[0], float) and isinstance(row[1], bytes):
                    found[key] = row[0], row[1]
                    connection.execute("UPDATE answers SET used = ? WHERE key = ?", (time.time(), key))
        return found

    def put(self, key: bytes, body: bytes) -> None:
        """Keep an answer in place of the one before it."""
        if len(body) > min(LARGEST, self._room):
            return
        with self._lock, contextlib.suppress(sqlite3.Error, OSError):
            connection = self._open(create=True)
            assert connection is not None
            now = time.time()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", (key, body, len(body), now, now)
            )
            total = connection.execute("SELECT coalesce(sum(size), 0) FROM answers").fetchone()[0]
            while total > self._room:
                old = connection.execute("SELECT key, size FROM answers ORDER BY used LIMIT 1").fetchone()
                connection.execute("DELETE FROM answers WHERE key = ?", (old[0],))
                total -= old[1]
            connection.execute("COMMIT")

    def size(self) -> tuple[int, int]:
        """How many answers are kept, and their bytes."""
        with self._lock, contextlib.suppress(sqlite3.Error, OSError):
            connection = self._open(create=False)
            if connection is not None:
                return connection.execute("SELECT count(*), coalesce(sum(size), 0) FROM answers").fetchone()
        return 0, 0

    def clear(self) -> None:
        """Forget them all.

        Raises:
            OSError: the file cannot be deleted.
        """
        self.close()
        for ending in ("", "-journal", "-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self, *, create: bool) -> sqlite3.Connection | None:
        if self._connection is None:
            if not create and not os.path.lexists(self.path):
                return None
            if create:
                Store(self._root).make()
            self._connection = connect_or_renew(self.path, self._connect)
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        private.prepare_database(self.path)
        connection = sqlite3.connect(self.path, timeout=5, isolation_level=None, check_same_thread=False)
        try:
            private.refuse_programs(connection)
            connection.execute("PRAGMA synchronous = OFF")
            if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, _VERSION):
                raise sqlite3.DatabaseError("of another version")
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _secret() -> bytes:
    """This person's own, made when it is first needed; one for this process where it cannot be kept."""
    place = state_home() / "answers.key"
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            handle = private.open_file(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with open(handle, "wb") as file:
                file.write(secrets.token_bytes(32))
        with open(private.open_file(place, os.O_RDONLY), "rb") as file:
            if len(found := file.read(64)) >= 32:
                return found
    return secrets.token_bytes(32)
