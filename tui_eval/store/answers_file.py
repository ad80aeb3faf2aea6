"""The file of kept answers as a database: how it is made and opened, also where it cannot be written, and what can be
read of a damaged one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tui_eval.guard import private
from tui_eval.store.digests import is_damage

VERSION = 2
_TABLES = (
    "CREATE TABLE IF NOT EXISTS answers (key BLOB NOT NULL UNIQUE, at REAL NOT NULL, used REAL NOT NULL,"
    " seal BLOB NOT NULL, body BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS by_use ON answers (used)",
)
BUSY = 5.0  # seconds that another process may take
_KEY = hashlib.sha256().digest_size
_JUST_NOW = 60.0  # seconds in which a process has long made its file
_FAR = 1 << 40  # an answer's number is never as large
_ONE_BY_ONE = 100  # answers that are looked for behind a damaged one before steps become longer


class NewerAnswers(sqlite3.OperationalError):
    """A newer tui-eval has made the file: it knows more of it, and reads it again tomorrow."""

    sqlite_errorcode = sqlite3.SQLITE_CANTOPEN  # nothing is wrong with the file


class NotOurAnswers(sqlite3.DatabaseError):
    """A database of something else."""


def connect(path: Path, how: str = "mode=rw", *, cut_off: bool = False) -> sqlite3.Connection:
    """A connection. `cut_off`: also to a file that is shorter than it says, all of which SQLite refuses else."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}",
        uri=True,
        timeout=BUSY,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if cut_off:
            connection.execute("PRAGMA writable_schema = ON")
        connection.execute("PRAGMA synchronous = OFF")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def only_to_read(path: Path) -> sqlite3.Connection:
    """A file that cannot be written. What a writer left beside it (a log, a journal), and locks that its file system
    does not have, would need writing: it is then read as it stands, which a seal a row makes safe."""
    connection = None
    try:
        connection = connect(path, "mode=ro")
        version_of(connection)
        return connection
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        busy = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        if is_damage(error) or error.sqlite_errorcode & 0xFF in busy:
            raise
    return connect(path, "mode=ro&immutable=1")


def of_damaged(path: Path) -> sqlite3.Connection:
    """What is left of a damaged file.

    Raises:
        sqlite3.Error: it is no database, or not ours.
    """
    connection = connect(path, cut_off=True)
    try:
        private.refuse_programs(connection)
        if version_of(connection) not in (1, VERSION):
            raise NotOurAnswers("it is another program's")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def make_tables(connection: sqlite3.Connection) -> None:
    """Make a file of this version of an empty one."""
    with all_or_none(connection):
        for table in _TABLES:
            connection.execute(table)
        connection.execute(f"PRAGMA user_version = {VERSION}")


@contextlib.contextmanager
def all_or_none(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction, which is over whatever happens: others wait for it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def readable(connection: sqlite3.Connection) -> Iterator[Sequence[Any]]:
    """The answers of a file but for those that are damaged: key, when they were given and used, seal (none in a file of
    version 1), body.

    Raises:
        sqlite3.Error: the file is not to be had at the moment.
    """
    return _of_first(connection) if version_of(connection) == 1 else _of_second(connection)


def _of_second(connection: sqlite3.Connection) -> Iterator[Sequence[Any]]:
    """By their numbers, on behind what is damaged."""
    last = _FAR
    with contextlib.suppress(sqlite3.Error):
        last = connection.execute("SELECT max(rowid) FROM answers").fetchone()[0] or 0
    good = at = -1
    while at < last:
        try:
            rows = "SELECT rowid, key, at, used, seal, body FROM answers WHERE rowid > ? ORDER BY rowid"
            for place, *row in connection.execute(rows, (at,)):
                if not _is_answer(row):
                    continue
                if place <= at:
                    break  # part of a page: going on from there would come here again and again
                good = at = place
                yield row
            else:
                return
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
        at += 1 + (at - good) // _ONE_BY_ONE


def _is_answer(row: Sequence[Any]) -> bool:
    """Whether a row of a damaged file can be one that was written."""
    return [type(one) for one in row] == [bytes, float, float, bytes, bytes] and len(row[0]) == _KEY


def _of_first(connection: sqlite3.Connection) -> Iterator[Sequence[Any]]:
    """Answers of version 1 have no numbers: up to what is damaged, from both ends."""
    for direction in ("ASC", "DESC"):
        try:
            chosen = f"SELECT key, at, used, NULL, body FROM answers ORDER BY key {direction}"
            yield from connection.execute(chosen)
            return
        except sqlite3.Error as error:
            if not is_damage(error):
                raise


def version_of(connection: sqlite3.Connection) -> int:
    """The version of a file; 0: nobody has said."""
    return number(connection, "PRAGMA user_version")


def number(connection: sqlite3.Connection, query: str) -> int:
    """The one figure that a query answers with."""
    return connection.execute(query).fetchone()[0]


def pages_in_use(connection: sqlite3.Connection) -> int:
    """Pages of the file that hold anything."""
    return number(connection, "PRAGMA page_count") - number(connection, "PRAGMA freelist_count")


def is_emptied(path: Path) -> bool:
    """Whether a file was cut off to nothing, rather than being made by another process at this moment."""
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        return stat.S_ISREG(found.st_mode) and not found.st_size and found.st_mtime < time.time() - _JUST_NOW
    return False


def identity(path: Path) -> tuple[int, int] | None:
    """Which file it is, whatever it is called; None: there is none."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None
