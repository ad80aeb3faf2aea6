"""A person's verdicts, notes and stars on attempts. Runs are never changed once they have ended, so
these are kept beside them, in `notes.db` of the store."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

import msgspec

from tui_eval.config.project import find_root
from tui_eval.guard import private
from tui_eval.store.run_folders import STATE, Store, StoreError, moved_to

_TABLE = """
CREATE TABLE IF NOT EXISTS notes (
    run_id TEXT NOT NULL, attempt_ref INTEGER NOT NULL, case_id TEXT NOT NULL, verdict TEXT, text TEXT NOT NULL,
    star INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (run_id, attempt_ref)) WITHOUT ROWID
"""

_OF_COLUMNS = """
CREATE TABLE IF NOT EXISTS noted_columns (
    run_id TEXT NOT NULL, attempt_ref INTEGER NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL,
    PRIMARY KEY (run_id, attempt_ref)) WITHOUT ROWID
"""
"""Beside the notes, whose table earlier versions write into as it is."""

HumanVerdict = Literal["right", "wrong"]


class HumanNote(msgspec.Struct):
    """What a person says of an attempt: whether its answer is `right` or `wrong` (None: nothing said), a
    text, a star; `at` in seconds since the epoch. `agent` and `model` are the column that it is of; both
    empty where an earlier version kept it."""

    run_id: str
    attempt_ref: int
    case_id: str
    verdict: HumanVerdict | None = None
    text: str = ""
    star: bool = False
    at: float = 0.0
    agent: str = ""
    model: str = ""

    def is_of(self, agent: str, model: str) -> bool:
        """Whether this column's answer is meant; of a note without one each may be."""
        return (self.agent, self.model) in (("", ""), (agent, model))


class Notes:
    """The notes of a project. Every method opens and closes its own connection: use it from any
    thread, never from the app's loop."""

    def __init__(self, root: Path) -> None:
        self.paths = [place.parent / "notes.db" for place in Store(root).places]
        """Where notes are read from, the one they are written to first."""
        self.path = self.paths[0]

    @classmethod
    def beside(cls, run_folder: Path) -> Notes:
        """The notes of the project whose store a run's folder is in."""
        store = run_folder.resolve().parents[1]
        if store.name != STATE:  # of a project that cannot be written, or could not be
            here = find_root([Path.cwd()])[0]
            known = Store(here)
            if known.holds(run_folder) or moved_to(known.folder_of(run_folder.name)) == run_folder:
                return cls(here)
        return cls(store.parent)

    def put(self, note: HumanNote, seen: HumanNote | None = None) -> None:
        """Keep a note in the attempt's place of one; an empty note is taken away. `seen`: what the person saw of it
        when they made this of it; what somebody else has noted since then stays.

        Raises:
            StoreError: it cannot be written.
        """
        try:
            self.path.parent.parent.mkdir(parents=True, exist_ok=True)
            private.make_folder(self.path.parent)
            private.prepare_database(self.path)
            with closing(self._connect()) as connection, connection:
                _create(connection)
                connection.execute("BEGIN IMMEDIATE")
                if seen is not None:
                    note = _both(self.of_run(note.run_id).get(note.attempt_ref), seen, note)
                if _is_empty(note) and len(self.paths) == 1:  # else it says that another one is no more
                    connection.execute(
                        "DELETE FROM notes WHERE run_id = ? AND attempt_ref = ?",
                        (note.run_id, note.attempt_ref),
                    )
                    return
                _write(connection, msgspec.structs.replace(note, at=time.time()))
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path}: {error}") from None

    def take_over(self, notes: Sequence[HumanNote]) -> None:
        """Keep notes that were made elsewhere, at their own time.

        Raises:
            StoreError: they cannot be written.
        """
        if not notes:
            return
        try:
            private.make_folder(self.path.parent)
            private.prepare_database(self.path)
            with closing(self._connect()) as connection, connection:
                _create(connection)
                for note in notes:
                    _write(connection, note)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path}: {error}") from None

    def of_run(self, run_id: str) -> dict[int, HumanNote]:
        """The notes of a run by attempt id."""
        return {note.attempt_ref: note for note in self._all("run_id = ?", run_id)}

    def of_case(self, case_id: str) -> list[HumanNote]:
        """The notes of a case over all runs, newest first."""
        return self._all("case_id = ?", case_id)

    def by_case(self) -> dict[str, list[HumanNote]]:
        """All notes, newest first, by case id."""
        found: dict[str, list[HumanNote]] = {}
        for note in self._all("run_id >= ?", ""):
            found.setdefault(note.case_id, []).append(note)
        return found

    def verdicts(self, limit: int = 300) -> list[HumanNote]:
        """The newest notes of the project that say whether an answer is right."""
        return [note for note in self._all("run_id >= ?", "") if note.verdict is not None][:limit]

    def _all(self, where: str, value: str) -> list[HumanNote]:
        """Of several on one attempt the newest counts."""
        every = [note for path in self.paths for note in self._in(path, where, value)]
        every.sort(key=lambda note: note.at, reverse=True)
        newest: dict[tuple[str, int], HumanNote] = {}
        for note in every:
            newest.setdefault((note.run_id, note.attempt_ref), note)
        return [note for note in newest.values() if not _is_empty(note)]

    def _in(self, path: Path, where: str, value: str) -> list[HumanNote]:
        if not path.is_file():
            return []
        try:
            with closing(self._connect(path)) as connection:
                rows = connection.execute(
                    f"SELECT run_id, attempt_ref, case_id, verdict, text, star, at FROM notes WHERE {where}"
                    " ORDER BY at DESC",
                    (value,),
                ).fetchall()
                columns = _columns(connection)
        except sqlite3.Error:
            return []
        return [
            HumanNote(run, ref, case, verdict, text, bool(star), at, *columns.get((run, ref), ()))
            for run, ref, case, verdict, text, star, at in rows
        ]

    def _connect(self, path: Path | None = None) -> sqlite3.Connection:
        path = path or self.path
        private.check_database(path)
        connection = sqlite3.connect(path, timeout=10)
        try:
            private.refuse_programs(connection)
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(_TABLE)
    connection.execute(_OF_COLUMNS)


def _columns(connection: sqlite3.Connection) -> dict[tuple[str, int], tuple[str, str]]:
    """Of which agent and model the noted attempts are, as far as that is known."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'noted_columns'").fetchone():
        return {}
    found = connection.execute("SELECT run_id, attempt_ref, agent, model FROM noted_columns")
    return {(run, ref): (agent, model) for run, ref, agent, model in found}


def _both(now: HumanNote | None, seen: HumanNote, made: HumanNote) -> HumanNote:
    """What somebody made of the note that they saw, with what it has become meanwhile."""
    if now is None:
        now = HumanNote(made.run_id, made.attempt_ref, made.case_id)
    text = now.text if made.text == seen.text else made.text
    if now.text not in ("", seen.text) and text != now.text:
        text = f"{now.text}; {text}" if text else now.text
    return msgspec.structs.replace(
        made,
        verdict=now.verdict if made.verdict == seen.verdict else made.verdict,
        star=now.star if made.star == seen.star else made.star,
        text=text,
    )


def _is_empty(note: HumanNote) -> bool:
    return note.verdict is None and not note.text and not note.star


def _write(connection: sqlite3.Connection, note: HumanNote) -> None:
    text = note.text.encode("utf-8", "replace").decode()
    values = (note.run_id, note.attempt_ref, note.case_id, note.verdict, text, note.star, note.at)
    connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    if note.agent or note.model:
        column = (note.run_id, note.attempt_ref, note.agent, note.model)
        connection.execute("INSERT OR REPLACE INTO noted_columns VALUES (?, ?, ?, ?)", column)
