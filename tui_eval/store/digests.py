"""Databases that only sum up what the runs hold: one that is damaged is thrown away and made again. Nothing that was paid
for is kept in one of these (kept answers are rescued: `answer_cache`)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

_PASSING = frozenset(
    (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_INTERRUPT,
    )
)
"""What says nothing of the file: another process is at work in it, or the disk refuses."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is wrong, rather than busy or out of reach."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is None or code & 0xFF not in _PASSING


def connect_or_renew(path: Path, connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
    """What `connect` gives; where it finds the file damaged (or another version's), the file is deleted and
    made anew. One that another process uses, or has made anew in the meantime, stays.

    Raises:
        sqlite3.Error, OSError: it cannot be had.
    """
    try:
        return connect()
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
    with alone(path.parent):
        try:
            return connect()
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
        # With its journal: one that belongs to another file would be played back into the new one.
        for left in (path, *(path.with_name(path.name + end) for end in ("-journal", "-wal", "-shm"))):
            left.unlink(missing_ok=True)
        return connect()


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Of those who want to renew something in a folder, one at a time."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
