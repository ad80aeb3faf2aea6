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
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tui_eval.config.project import kept_by_link
from tui_eval.events import Event
from tui_eval.guard import private
from tui_eval.guard.trust_store import state_home
from tui_eval.model import Reply
from tui_eval.store.answers_file import (
    VERSION,
    NewerAnswers,
    NotOurAnswers,
    all_or_none,
    connect,
    identity,
    is_emptied,
    make_tables,
    number,
    of_damaged,
    only_to_read,
    pages_in_use,
    readable,
    version_of,
)
from tui_eval.store.digests import alone, is_damage
from tui_eval.store.run_folders import Store

FILE = "answers.db"
LARGEST = 4 << 20
"""Bytes of one answer that are kept at most."""
ROOM = 256 << 20
"""Bytes of the file: of all answers those not used for longest go first, before it is larger."""
_events = msgspec.json.Decoder(list[Event])
_reply = msgspec.json.Decoder(Reply)
_KEPT_FREE = 10  # a part of this size is made room for at once
_AT_ONCE = 200  # answers that go in one step
_BESIDE = 8  # pages that an answer may take beside its own
_BESIDE_IT = ("-journal", "-wal", "-shm")
_ASIDE = f"{FILE}-aside"
_NEVER = 253_402_300_800.0  # a time of the year 10,000: no answer was given then


class AnswerCache:
    """The answers kept in a project. Blocking: use it in threads, from any number of them. What the disk refuses is
    not kept, and what cannot be read was never kept: nothing here ends an attempt. `problem` says it.

    Where the project's folder cannot be written, answers are kept where its runs are, and those in the
    project's own file are found all the same.

    Args:
        room: Bytes that the file has at most.
        only_read: The file, where nothing is to be written.
        keeps: Whether new answers are kept; else those that are there are found, and forgotten.
    """

    def __init__(
        self, root: Path, room: int = ROOM, only_read: Path | None = None, *, keeps: bool = True
    ) -> None:
        self._keeps = keeps
        self.path = only_read or Store(root).folder / FILE
        self._root = root
        self._room = room
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._only_read = only_read is not None
        self._writable = True
        self._secret = b""
        self._opened: tuple[int, int] | None = None
        self._said: dict[str, str] = {}
        self._given: AnswerCache | None = None
        own = root / ".tui-eval" / FILE
        if only_read is None and self.path != own and not kept_by_link(root) and os.path.lexists(own):
            self._given = AnswerCache(root, room, own)

    @property
    def problem(self) -> str:
        """Why answers are not kept, or not found again, or which are lost, in a line; empty: nothing is known to be
        wrong."""
        lines = [*self._said.values()]
        if self._given is not None:
            lines += [line for line in self._given._said.values() if line not in lines]
            if "failed" not in self._said and "failed" not in self._given._said:
                lines.append(
                    f"{self._given._name} can only be read: what is answered anew is kept in {self.path}"
                )
        return "; ".join(lines)

    @property
    def left_alone(self) -> Path | None:
        """The project's own file, where it can only be read."""
        return self._given.path if self._given is not None else None

    def key(self, *parts: bytes) -> bytes:
        """The key of what these say together."""
        if not self._secret:
            self._secret, problem = _secret()
            if problem:
                self._said.setdefault("key", problem)
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
                    and 0 <= row[0] < _NEVER
                    and row[1:] == (self._seal(key, row[2]), row[2])
                ):
                    found[key] = row[0], row[2]
            if found and self._writable:
                _used(connection, found)
            return found

        found = self._tried(look, create=False) or {}
        if self._given is not None and (others := [key for key in wanted if key not in found]):
            found |= self._given.get(others)
        return {key: found[key] for key in wanted if key in found and found[key][1]}

    def put(self, key: bytes, body: bytes) -> None:
        """Keep an answer in place of the one before it."""
        if not self.takes(body) or (body and not self._keeps):
            return

        def keep(connection: sqlite3.Connection) -> None:
            now = time.time()
            with all_or_none(connection):
                connection.execute("DELETE FROM answers WHERE key = ?", (key,))
                self._make_room(connection, len(body))
                row = (key, now, now, self._seal(key, body), body)
                connection.execute(
                    "INSERT INTO answers (key, at, used, seal, body) VALUES (?, ?, ?, ?, ?)", row
                )

        self._tried(keep, create=True)

    def forget(self, key: bytes) -> bool:
        """Keep nothing under this key; whether anything was."""
        if self._given is not None:
            if known := bool(self.get([key])):
                self.put(key, b"")  # stands before that of the file that can only be read
            return known

        def drop(connection: sqlite3.Connection) -> bool:
            return connection.execute("DELETE FROM answers WHERE key = ?", (key,)).rowcount > 0

        return self._tried(drop, create=False) or False

    @property
    def is_there(self) -> bool:
        """Whether answers were kept here."""
        return self._given is not None or os.path.lexists(self.path)

    def takes(self, body: bytes) -> bool:
        """Whether an answer is not too large to be kept."""
        most = min(LARGEST, self._room // 2)
        if len(body) > most:
            size = f"{most >> 20} MiB" if most >> 20 else f"{most:,} bytes"
            self._said.setdefault(
                "large", f"an answer of more than {size} is not kept, and is asked for again"
            )
        return len(body) <= most

    @staticmethod
    def events(body: bytes) -> list[Event]:
        """What an agent said, of what is kept of it.

        Raises:
            msgspec.MsgspecError: it is none.
        """
        return _events.decode(body)

    @staticmethod
    def reply(body: bytes) -> Reply:
        """What a judge said, of what is kept of it.

        Raises:
            msgspec.MsgspecError: it is none.
        """
        return _reply.decode(body)

    def size(self) -> tuple[int, int]:
        """How many answers are kept, and the bytes of the file with those that were moved aside."""
        count = self._tried(lambda it: number(it, "SELECT count(*) FROM answers"), create=False) or 0
        size = 0
        for path in (self.path, *self._aside()):
            with contextlib.suppress(OSError):
                size += path.lstat().st_size
        return count, size

    def _aside(self) -> list[Path]:
        """The files that were moved aside."""
        return sorted(self.path.parent.glob(f"{_ASIDE}*"))

    def _seal(self, key: bytes, body: Any) -> bytes:
        """What only who kept an answer can say of it."""
        if not isinstance(body, bytes):
            return b""
        if not self._secret:
            self.key()
        return hmac.new(self._secret, key + body, hashlib.sha256).digest()[:16]

    def _make_room(self, connection: sqlite3.Connection, size: int) -> None:
        """Let those go that were not used for longest, where the file would become too large."""
        page = number(connection, "PRAGMA page_size")
        most = self._room // page
        needed = size // (page - 64) + _BESIDE
        if pages_in_use(connection) + needed <= most:
            return
        most -= most // _KEPT_FREE
        while pages_in_use(connection) + needed > most:
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
                    if again and self._connection is not None and self._writable and is_damage(error):
                        with contextlib.suppress(sqlite3.Error, OSError):
                            self._renew()
                            continue
                    self._said.setdefault("failed", self._why(error))
                except OSError as error:
                    self._said.setdefault("failed", self._why(error))
                return None
        return None

    def _why(self, error: Exception) -> str:
        """In a line why the file cannot be used, and what to do."""
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        if self._only_read:
            reason = said if isinstance(error, NewerAnswers) else f"cannot be read ({said})"
            return f"answers are not found again: {self._name}: {reason}"
        if said.endswith("remove it") or isinstance(error, NewerAnswers):
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
        """Forget them all, with the files that were moved aside.

        Raises:
            OSError: a file cannot be deleted.
        """
        self.close()
        for path in (*self._with_journals(""), self.path.with_name(f"{FILE}-new"), *self._aside()):
            path.unlink(missing_ok=True)

    def _with_journals(self, name: str) -> list[Path]:
        """A file of the folder (empty: that of the answers) and what SQLite keeps beside it."""
        return [self.path.with_name((name or self.path.name) + end) for end in ("", *_BESIDE_IT)]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
        if self._given is not None:
            self._given.close()

    def _open(self, *, create: bool) -> sqlite3.Connection | None:
        if self._connection is not None and self._opened != identity(self.path):
            self._connection.close()  # another process has made it anew, or deleted it
            self._connection = None
        if self._connection is None:
            if not os.path.lexists(self.path):
                if not create:
                    return None
                Store(self._root).make()
            self._opened = identity(self.path)
            emptied = is_emptied(self.path)
            try:
                self._connection = self._connect()
                if emptied and self._writable:
                    self._said.setdefault("lost", f"{self._name} was empty: what was kept in it is lost")
                renew = self._writable and version_of(self._connection) != VERSION
            except sqlite3.Error as error:
                if not self._writable or not is_damage(error):
                    raise
                renew = True
            if renew:
                self._renew()
            self._opened = identity(self.path)
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        self._writable = not self._only_read and (
            os.access(self.path.parent, os.W_OK)
            and (os.access(self.path, os.W_OK) or not os.path.lexists(self.path))
        )
        if self._writable:
            private.prepare_database(self.path)
            connection = connect(self.path)
        else:
            private.check_database(self.path)
            connection = only_to_read(self.path)
        try:
            private.refuse_programs(connection)
            # In this order: another process may make them in between.
            empty = not number(connection, "SELECT count(*) FROM sqlite_master")
            version = version_of(connection)
            if not 0 <= version <= VERSION:
                raise NewerAnswers("a newer tui-eval has made it, so it is left as it is; update this one")
            if version == 0 and not empty:
                raise NotOurAnswers("it is another program's")
            if version == 0 and self._writable:
                make_tables(connection)
            elif version == 0:
                raise sqlite3.OperationalError("readonly, and empty")
            if not self._writable and not self._only_read:
                self._said.setdefault("failed", self._why(sqlite3.OperationalError("readonly")))
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _renew(self) -> None:
        """Make the file anew of all that can be read of it: answers were paid for. One of which nothing can be is moved
        aside.

        Raises:
            sqlite3.Error, OSError: it cannot be made.
        """
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        try:
            with alone(self.path.parent):
                if self._opened is not None and self._opened != identity(self.path):
                    self._connection = self._connect()  # somebody else has
                    return
                kept, why = False, "nothing in it can be read"
                try:
                    old = of_damaged(self.path)
                except sqlite3.Error as error:
                    if not is_damage(error):
                        raise
                    why = str(error)
                else:
                    with contextlib.closing(old):
                        kept = self._rescue(old)
                if kept:
                    os.replace(self.path.with_name(f"{FILE}-new"), self.path)
                    # With its journal: one that belongs to another file would be played back into the new one.
                    for left in self._with_journals("")[1:]:
                        left.unlink(missing_ok=True)
                else:
                    self.path.with_name(f"{FILE}-new").unlink(missing_ok=True)
                    self._move_aside(why)
                self._connection = self._connect()
        finally:
            self._opened = identity(self.path)

    def _rescue(self, old: sqlite3.Connection) -> bool:
        """Write all answers that can be read of a file into a new one beside it; False where there are some,
        and none of them can be.

        Raises:
            sqlite3.Error, OSError: the new one cannot be made, or the old one is not to be had at the moment.
        """
        made = self.path.with_name(f"{FILE}-new")
        for left in self._with_journals(made.name):
            left.unlink(missing_ok=True)
        private.prepare_database(made)
        first, read = version_of(old) == 1, 0
        with contextlib.closing(connect(made)) as new:
            make_tables(new)
            with all_or_none(new):
                for row in readable(old):
                    self._take_over(new, row, first)
                    read += 1
            kept = number(new, "SELECT count(*) FROM answers")
        whole: int | None = None
        with contextlib.suppress(sqlite3.Error):
            whole = number(old, "SELECT count(*) FROM answers")
        if kept and not (first and whole == read):
            lost = "how many are lost is not known" if whole is None else f"{max(0, whole - read):,} are lost"
            self._said.setdefault(
                "lost",
                f"{self._name} was damaged: it was made anew of the {kept:,} answers that could be read, {lost}",
            )
        return kept > 0 or whole == 0

    def _move_aside(self, why: str) -> None:
        """Keep the file under another name: it may be somebody's.

        Raises:
            OSError: it cannot be moved.
        """
        number, name = 1, _ASIDE
        while os.path.lexists(self.path.with_name(name)):
            number += 1
            name = f"{_ASIDE}-{number}"
        for left, kept in zip(self._with_journals(""), self._with_journals(name), strict=True):
            with contextlib.suppress(FileNotFoundError):
                os.rename(left, kept)
        self._said.setdefault(
            "lost",
            f"{self._name} was no file of answers ({why}): it was moved to {self.path.parent.name}/{name}, and all was"
            " asked",
        )

    def _take_over(self, new: sqlite3.Connection, row: Sequence[Any], first: bool) -> None:
        key, at, used, seal, body = row
        if not isinstance(key, bytes) or not isinstance(body, bytes):
            return
        if not isinstance(at, float) or not isinstance(used, float):
            return
        self._make_room(new, len(body))
        # A seal stays as it is: it may be another person's, who alone can say whether it holds.
        values = (key, at, used, self._seal(key, body) if first else seal, body)
        new.execute(
            "INSERT OR IGNORE INTO answers (key, at, used, seal, body) VALUES (?, ?, ?, ?, ?)", values
        )


_Done = TypeVar("_Done")


def _used(connection: sqlite3.Connection, keys: Iterable[bytes]) -> None:
    """Note that answers were used; where another process is at work for long, it is not noted."""
    try:
        with all_or_none(connection):
            now = time.time()
            connection.executemany("UPDATE answers SET used = ? WHERE key = ?", [(now, key) for key in keys])
    except sqlite3.Error as error:
        if is_damage(error):
            raise


def _secret() -> tuple[bytes, str]:
    """This person's own, made when it is first needed; one for this process where it cannot be kept, and why."""
    place = state_home() / "answers.key"
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = _read_secret(place)
        if not found:
            with alone(place.parent):
                found = _read_secret(place) or _write_secret(place)
        return found, ""
    except OSError as error:
        why = error.strerror or str(error)
    return secrets.token_bytes(32), f"answers are not found again: {place}: {why}"


def _read_secret(place: Path) -> bytes:
    """What is kept; empty where nothing is, or where a process ended before it had written it."""
    with contextlib.suppress(FileNotFoundError), open(private.open_file(place, os.O_RDONLY), "rb") as file:
        found = file.read(64)
        return found if len(found) >= _SECRET else b""
    return b""


def _write_secret(place: Path) -> bytes:
    """A new one, kept whole or not at all: of a half, as kill -9 or a full disk leaves it, nothing could be made."""
    made = secrets.token_bytes(_SECRET)
    part = place.with_name(f"{place.name}-{secrets.token_hex(4)}")
    try:
        private.write_file(part, made)
        os.replace(part, place)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return made


_SECRET = 32
"""Bytes of a person's key, at least."""
