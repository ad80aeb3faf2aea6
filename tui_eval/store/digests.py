"""Databases that only sum up what the runs hold: one that is damaged is thrown away and made again. Nothing
that was paid for is kept in one of these (kept answers are rescued: `answer_cache`)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, Self, TypeVar

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


def check_whole(connection: sqlite3.Connection) -> sqlite3.Connection:
    """A connection to a file in which each page is as it should be; another one is closed.

    Raises:
        sqlite3.Error: it is not.
    """
    try:
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("damaged")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


class Digest(Protocol):
    """What sums up runs: it can be made anew, or in memory."""

    def renew(self) -> None:
        """Make a damaged file anew."""
        ...

    def aside(self) -> Self:
        """One in memory, which leaves the file alone."""
        ...


P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D", bound=Digest)
_TRIES = 2


def read_again(method: Callable[Concatenate[D, P], R]) -> Callable[Concatenate[D, P], R]:
    """Where a digest fails while it is read (a damaged page; or another version has made its file anew
    meanwhile, whose journal SQLite then takes for that of the old one), it is read again, in the end in
    memory, where nobody else is at work."""

    @wraps(method)
    def call(self: D, *args: P.args, **named: P.kwargs) -> R:
        for _ in range(_TRIES):
            try:
                return method(self, *args, **named)
            except sqlite3.DatabaseError as error:
                if is_damage(error):
                    with contextlib.suppress(sqlite3.Error, OSError):
                        self.renew()
        return method(self.aside(), *args, **named)

    return call


@contextlib.contextmanager
def undone(connection: sqlite3.Connection) -> Iterator[None]:
    """What is not committed inside has not been."""
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
