"""A run that is kept elsewhere since its disk was full: brought back once there is room."""

from __future__ import annotations

import contextlib
import errno
import shutil
import sqlite3
import time
from pathlib import Path

import msgspec

from tui_eval.guard import private
from tui_eval.store.encoding import encode_json
from tui_eval.store.frames import FOLDER as FRAMES
from tui_eval.store.run_folders import DATABASE, RunLock, StoreError, kept_in, moved_to
from tui_eval.store.schema import RunInfo

TRIES = 10
"""Times that a run's folder is emptied, while somebody reads it."""


def bring_back(folder: Path) -> Path | None:
    """Write all of a run into its own folder again; where it was. None: it is there, and nothing is done.

    Raises:
        StoreError: there is still no room, or another process executes the run.
    """
    kept = moved_to(folder)
    if kept is None:
        return None
    lock = RunLock(folder)
    try:
        private.prepare_database(folder / DATABASE)
        _copied(kept / DATABASE, folder / DATABASE)
        if (kept / FRAMES).is_dir():
            private.make_folder(folder / FRAMES)
            shutil.copytree(kept / FRAMES, folder / FRAMES, symlinks=True, dirs_exist_ok=True)
        _note_return(folder / DATABASE, kept)
        lock.moved(None)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(
            f"{folder}: {error}; its results are in {kept}: make room, or go on there with "
            f"`tui-eval resume {kept}`"
        ) from None
    finally:
        lock.release()
    shutil.rmtree(kept, ignore_errors=True)
    return kept


def write_end(folder: Path) -> bool:
    """Where a run was cut off when all of it had ended, but for that to be written, write it; whether it was so.

    Raises:
        StoreError: it cannot be written, or another process executes the run.
    """
    lock = RunLock(folder)
    try:
        private.prepare_database(folder / DATABASE)
        with contextlib.closing(sqlite3.connect(folder / DATABASE, timeout=10)) as connection, connection:
            private.refuse_programs(connection)
            info = _info(connection)
            if info.state not in ("running", "paused", "interrupted"):
                return False
            (last,) = connection.execute(
                "SELECT max(started_at + coalesce(duration_ms, 0) / 1000) FROM attempts"
            ).fetchone()
            info.state, info.paused_at = "finished", None
            info.finished_at = info.finished_at or last
            info.note = "" if info.note == "interrupted" else info.note
            _rewrite(connection, info)
    except (OSError, sqlite3.Error, msgspec.MsgspecError) as error:
        raise StoreError(f"{folder}: {error}") from None
    finally:
        lock.release()
    return True


def delete_run(folder: Path) -> None:
    """Delete a run's folder, and where it is kept instead.

    Raises:
        OSError: it cannot be.
    """
    kept = moved_to(folder)
    for left in reversed(range(TRIES)):
        try:
            shutil.rmtree(folder)
            break
        except OSError as error:
            # Who was just reading it (a list in another terminal, the pane beside this one) makes SQLite's
            # own files anew.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not left:
                raise
            time.sleep(0.05)
    if kept is not None:
        shutil.rmtree(kept, ignore_errors=True)


def _copied(old: Path, new: Path) -> None:
    """In one transaction: a reader sees the run as it was, or all of it."""
    with (
        contextlib.closing(sqlite3.connect(old)) as source,
        contextlib.closing(sqlite3.connect(new, timeout=10)) as target,
    ):
        source.backup(target)


def _note_return(database: Path, kept: Path) -> None:
    """Take out of a run's note that it is kept there: it is back."""
    with (
        contextlib.closing(sqlite3.connect(database, timeout=10)) as connection,
        connection,
        contextlib.suppress(msgspec.MsgspecError),
    ):
        info = _info(connection)
        if info.note.endswith(kept_in(kept)):
            info.note = info.note.removesuffix(kept_in(kept)).rpartition("; ")[0]
            _rewrite(connection, info)


def _info(connection: sqlite3.Connection) -> RunInfo:
    (text,) = connection.execute("SELECT value FROM meta WHERE key = 'info'").fetchone() or ("",)
    return msgspec.json.decode(text, type=RunInfo)


def _rewrite(connection: sqlite3.Connection, info: RunInfo) -> None:
    connection.execute("UPDATE meta SET value = ? WHERE key = 'info'", (encode_json(info).decode(),))
