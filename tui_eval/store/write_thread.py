"""The thread that writes a run: what came within a few milliseconds in one transaction, again where the
disk refuses, and at the end elsewhere where it refuses for good."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from tui_eval.guard import private
from tui_eval.store.frames import FOLDER as FRAMES
from tui_eval.store.held_results import HeldResults
from tui_eval.store.pending import Ended, Operation, Pending, PendingText, own_fault, tried, write_live
from tui_eval.store.run_folders import DATABASE, journal_mode, memory_folders, put_in_place, rescue_folders

_GATHER_SECONDS = 0.05
_LIVE_SECONDS = 0.12
_PAGE = 16_384
"""Bytes of a page of a run's database. An attempt has two or three thousand: SQLite's usual pages hold one of them
each, and are written and read one by one."""
_GATHERED = 64
"""Ended attempts that are written without gathering more."""
_AHEAD = 128
"""Ended attempts that may wait to be written before no other is to begin: a process that is killed loses them, and
they are paid for twice."""
FULL = "disk is full"
"""SQLite's words for a disk without room."""
LEFT_OUT = "could not be written: "
"""Stands in the report of a part of a run that no database takes; the rest is kept."""
_AGAIN_SECONDS = 0.5
_DAMAGED = "its database was damaged or taken away while the run went on"


class WriteThread:
    """Everything reported is on disk at once, or about 50 ms after what was written before, sooner where much
    ends; what running attempts do and say about 120 ms after it came, so that one which ends sooner is
    written once. A full disk loses nothing: what it refuses waits here and is tried again; `on_error` is
    reported once, in one line. Nothing that it is given ends the thread: a record that the database does not
    take is written as an error, the others as they are. `lost` are attempts of which nothing could be
    written, by id, and why. A database that was damaged or taken away meanwhile is made anew elsewhere, from
    what `held` has of the run."""

    def __init__(self, folder: Path, held: HeldResults, last_change: int = 0) -> None:
        self.folder = folder
        self._held = held
        self._last_change = last_change
        self.error: str | None = None
        self.on_error: Callable[[str], None] | None = None
        self._pending = Pending()
        self._live = PendingText()
        self._news_since: dict[int, float] = {}
        """Since when there is something of a running attempt to be shown, the longest first."""
        # Taken by itself where many records come: a Condition does that in Python.
        self.lock = threading.RLock()
        """Held from a change's number to its record, so that none is written behind a larger one."""
        self._wake = threading.Condition(self.lock)
        self._closing = False
        self._busy = False
        self._urgent = False
        self._failures = 0
        self._writing = 0
        self.lost: dict[int, str] = {}
        self._refusal: Exception | None = None
        self._unwritten = ""
        self._thread = threading.Thread(target=self._loop, name=f"store-{folder.name}", daemon=True)
        self._thread.start()

    @property
    def why(self) -> str:
        """Why the run was moved, as its note says."""
        return (
            "its disk was full"
            if FULL in str(self._refusal)
            else f"it could not be written ({self._refusal or _DAMAGED})"
        )

    # What is reported, from the engine's loop

    def next_change(self, count: int = 1) -> int:
        """The number of the next change (of `count` changes the last); to be called with the `lock`."""
        self._last_change += count
        return self._last_change

    def add(self, operation: Operation) -> None:
        """Do this with the database."""
        with self.lock:
            self._news()
            self._pending.operations.append(operation)

    def update(self, ref: int, columns: dict[str, Any]) -> None:
        """New values of a running attempt; their change is numbered when they are written."""
        with self.lock:
            known = self._pending.columns.get(ref)
            if known is None:
                self._pending.columns[ref] = columns
                self._show_soon(ref)
            else:
                known.update(columns)

    def live(self, ref: int, kind: str, text: str, agent: str, name: str, call_id: str) -> None:
        """Text of a running attempt."""
        with self.lock:
            if self._live.add(ref, kind, text, agent, name, call_id):
                self._show_soon(ref)

    def ended(self, attempt: Ended) -> None:
        """An attempt has ended; its live text goes."""
        ref = attempt.ref
        with self.lock:
            self._news()
            self._news_since.pop(ref, None)
            steps = self._pending.columns.pop(ref, {})
            attempt.turn = steps.get("turn")
            self._pending.ended.append(attempt)
            if len(self._pending.ended) == _GATHERED:
                self._wake.notify()
            if self._live.forget(ref):
                self._pending.operations.append(
                    lambda connection: connection.execute("DELETE FROM live WHERE attempt_ref = ?", (ref,))
                )

    def _show_soon(self, ref: int) -> None:
        if ref not in self._news_since:
            self._news_since[ref] = time.monotonic()
            if len(self._news_since) == 1:
                self._wake.notify()

    def _until_shown(self) -> float:
        """Seconds until there is something of a running attempt to be written, where there is any."""
        return next(iter(self._news_since.values())) + _LIVE_SECONDS - time.monotonic()

    def _take_running(self, pending: Pending, everything: bool) -> list[tuple[Any, ...]]:
        """Leave of the running attempts in `pending` those whose time has come, for the others wait; their text."""
        if not everything and self._news_since and self._until_shown() > 0:
            pending.columns, self._pending.columns = {}, pending.columns
            return []
        # Those that come soon after come with them; one that has just begun mostly ends before it need be shown.
        young = time.monotonic() - _LIVE_SECONDS / 2
        later = set() if everything else {ref for ref, since in self._news_since.items() if since > young}
        self._news_since = {ref: since for ref, since in self._news_since.items() if ref in later}
        for ref in later & pending.columns.keys():
            self._pending.columns[ref] = pending.columns.pop(ref)
        for columns in pending.columns.values():
            # Readers ask for what changed after the newest that they have.
            columns["changed"] = self.next_change()
        return self._live.take(later)

    def _news(self) -> None:
        if not (self._pending.operations or self._pending.ended):
            self._wake.notify()

    @property
    def behind(self) -> bool:
        """Whether so many ended attempts wait to be written that no other is to begin. Never where the disk refuses:
        what is found then waits in memory."""
        refused = self.error is not None and self.error != self._unwritten
        return self._writing + len(self._pending.ended) >= _AHEAD and not refused

    def flush(self, timeout: float) -> bool:
        """Wait until everything reported so far is on disk; False when it could not be, or that took too long."""
        end = time.monotonic() + timeout
        with self._wake:
            failures = self._failures
            self._urgent = True
            self._wake.notify()
            while (self._pending or self._busy) and self._failures == failures and time.monotonic() < end:
                self._wake.wait(0.05)
            self._urgent = False
            return not (self._pending or self._busy)

    def close(self) -> None:
        """Write what is left and end; where the disk refuses it, the run moves elsewhere."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout=30)
        if self._pending or self._thread.is_alive() or not self._kept_here():
            self._rescue()

    def _kept_here(self) -> bool:
        """Whether the run's own database has every result."""
        if self._unwritten:
            return True  # what it has not was tried record by record, and is reported
        return self._held.stands_in(self.folder / DATABASE, len(self.lost))

    # The thread

    def _loop(self) -> None:
        connection: sqlite3.Connection | None = None
        written = float("-inf")
        while True:
            at_once = self._wait()
            if not at_once:
                self._gather(written + _GATHER_SECONDS)
            with self._wake:
                pending, self._pending = self._pending, Pending()
                self._writing = len(pending.ended)
                live = self._take_running(pending, at_once)
                self._busy = True
            try:
                if connection is None:
                    connection = connect(self.folder)
                self._write(connection, pending, live)
                failed = False
            except (
                Exception
            ) as error:  # the disk, mostly; whatever it is, what was reported is kept and tried again
                failed = True
                if connection is not None:
                    with contextlib.suppress(sqlite3.Error):
                        connection.rollback()
                self._refused(pending, error)
            written = time.monotonic()
            with self._wake:
                if not failed and pending:
                    self.error = self._unwritten or None
                self._busy = False
                self._writing = 0
                self._wake.notify_all()
                if self._closing and (failed or not self._pending):
                    break
                if failed:
                    self._wake.wait(_AGAIN_SECONDS)
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _write(self, connection: sqlite3.Connection, pending: Pending, live: list[tuple[Any, ...]]) -> None:
        """All of it in one transaction; record by record where one of them cannot be written."""
        try:
            write_pending(connection, pending, live)
        except Exception as error:
            if not own_fault(error):
                raise
        else:
            return
        connection.rollback()
        lost: dict[int, str] = {}
        connection.execute("BEGIN IMMEDIATE")
        failed = pending.write_each(connection, lost)
        tried(connection, lambda: write_live(connection, live))  # it is only shown meanwhile
        connection.commit()
        self.lost |= lost
        if failed:
            more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
            self._unwritten = f"{self.folder / DATABASE}: {LEFT_OUT}{failed[0]}{more}"
            self._say(self._unwritten)

    def _say(self, line: str) -> None:
        if self.on_error is not None and not self._closing:
            with contextlib.suppress(
                Exception
            ):  # a person who cannot be notified is no reason to write nothing
                self.on_error(line)

    def _wait(self) -> bool:
        """Until there is something to do; whether it is to be done without gathering more."""
        with self._wake:
            while not (self._pending.operations or self._pending.ended or self._closing):
                if self._pending.columns and (self._urgent or not self._news_since):
                    break  # the disk refused them, or somebody waits for all
                if self._news_since:
                    left = self._until_shown()
                    if left <= 0:
                        break
                    self._wake.wait(left)
                else:
                    self._wake.wait()
            return self._closing or self._urgent

    def _gather(self, until: float) -> None:
        """Wait for more to come until then, or until there is much. What comes after a pause is written at once."""
        with self._wake:
            while (left := until - time.monotonic()) > 0:
                if self._closing or self._urgent or len(self._pending.ended) >= _GATHERED:
                    return
                self._wake.wait(left)

    def _refused(self, pending: Pending, error: Exception) -> None:
        with self._wake:
            self._pending = pending.followed_by(self._pending)
            self._failures += 1
        self._refusal = error
        if self.error is None or self.error == self._unwritten:
            kind = "" if isinstance(error, sqlite3.Error) else f"{type(error).__name__}: "
            self.error = f"{self.folder / DATABASE}: {kind}{error}"
            self._say(f"{self.error}; the run goes on: what it finds waits in memory and is tried again")

    def _rescue(self) -> None:
        """The whole run into the first folder that can be written; its own where that was taken away."""
        refused = self.error or f"{self.folder / DATABASE}: {_DAMAGED}"
        kept, bare = self.folder, -1
        why: Exception = OSError("there is no other place")
        instead = put_in_place(self.folder) if not self.folder.exists() else iter(())
        try:
            for kept in chain(
                instead,
                rescue_folders(self.folder),
                _any_folder(self.folder.name),
                memory_folders(self.folder),
            ):
                before = kept.exists()
                try:
                    kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                    bare = self._write_to(kept)
                    break
                except (OSError, sqlite3.Error) as error:
                    why = error
                    if not before:  # half of it only takes the room that the disk lacks
                        shutil.rmtree(kept, ignore_errors=True)
        except Exception as error:
            why = error
        if bare < 0:
            lost = self._held.missing_from(self.folder / DATABASE)
            self.error = f"{refused}; {lost_words(len(lost))}: {kept} cannot be written either ({why})"
            self.lost |= dict.fromkeys(lost, f"its result was lost: {self.error}")
            return
        without = f"; of {bare} attempts the transcript is lost, not the result" if bare else ""
        in_memory = " (memory: gone when the machine is switched off)" * kept.is_relative_to(private.MEMORY)
        self.error = f"{refused}; the whole run is kept in {kept}{in_memory}{without}"
        self.folder = kept

    def _write_to(self, folder: Path) -> int:
        """The run into another folder: as it is on disk and what could not be written to it, or all anew. How
        many attempts have no transcript there."""
        private.make_folder(folder)
        bare = 0
        old = self.folder / DATABASE if folder != self.folder else None
        if old is None or not self._copied(folder):
            for name in (DATABASE, f"{DATABASE}-journal", f"{DATABASE}-wal", f"{DATABASE}-shm"):
                (folder / name).unlink(missing_ok=True)
            private.prepare_database(folder / DATABASE)
            with contextlib.closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as target:
                bare = self._held.write(target, old, self.lost)
        if (self.folder / FRAMES).is_dir():
            shutil.copytree(self.folder / FRAMES, folder / FRAMES, symlinks=True, dirs_exist_ok=True)
        return bare

    def _copied(self, folder: Path) -> bool:
        """Whether the other folder has the whole run after what is on disk was copied, and the rest written."""
        location = f"{(self.folder / DATABASE).absolute().as_uri()}?mode=ro"
        try:
            private.prepare_database(folder / DATABASE)
            with (
                contextlib.closing(sqlite3.connect(location, uri=True)) as source,
                contextlib.closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as target,
            ):
                source.backup(target)
                self._write(target, self._pending, [])
        except sqlite3.Error:
            return False
        return self._held.stands_in(folder / DATABASE, len(self.lost))


def _any_folder(name: str) -> Iterator[Path]:
    """One more where files for a while go: ours there may be somebody else's."""
    try:
        made = Path(tempfile.mkdtemp(prefix="tui-eval-"))
    except OSError:
        return
    yield made / name
    shutil.rmtree(made, ignore_errors=True)  # it could not be written


def lost_words(count: int) -> str:
    """That the results of so many attempts are lost."""
    return "1 attempt is lost" if count == 1 else f"{count or 'no'} attempts are lost"


def write_pending(connection: sqlite3.Connection, pending: Pending, live: list[tuple[Any, ...]]) -> None:
    if not pending and not live:
        return
    connection.execute("BEGIN IMMEDIATE")
    pending.write(connection)
    if live:
        write_live(connection, live)
    connection.commit()


def connect(folder: Path) -> sqlite3.Connection:
    """A connection that writes a run's database.

    Raises:
        sqlite3.Error: there is none to be had.
    """
    private.prepare_database(folder / DATABASE)
    connection = sqlite3.connect(folder / DATABASE, timeout=10, isolation_level=None)
    private.refuse_programs(connection)
    private.keep_in_memory(connection)
    connection.execute(f"PRAGMA page_size = {_PAGE}")  # of one that is new; before its journal
    connection.execute(f"PRAGMA journal_mode = {journal_mode(folder)}")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection
