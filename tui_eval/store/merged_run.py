"""A merged run as it is written: rows and bodies of its parts in one database, with ids of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from tui_eval.guard import private
from tui_eval.model import Attempt
from tui_eval.store.encoding import encode_json, pack, unpack
from tui_eval.store.frames import FOLDER as FRAMES
from tui_eval.store.merging import MergedColumn, MergePart, Whole
from tui_eval.store.missing_cases import is_only_named, missing_cases, write_missing
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.pending import storable_rows
from tui_eval.store.run_folders import RunLock, StoreError
from tui_eval.store.schema import SCHEMA_VERSION, TABLES, AttemptRow, RunInfo
from tui_eval.store.write_thread import connect

_BATCH = 500  # cases in one transaction


def write(folder: Path, info: RunInfo, whole: Whole) -> None:
    """Write the whole into a new run's folder; where it cannot be, the folder goes.

    Raises:
        StoreError: the disk refuses, or a part cannot be read.
    """
    lock = RunLock(folder)
    try:
        with contextlib.closing(connect(folder)) as connection:
            connection.executescript(TABLES)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            copied = _Copy(folder, connection, _notes_on(folder, whole.parts))
            copied.all(whole.columns)
            connection.execute("BEGIN")
            write_missing(connection, missing_cases(whole), *copied.last)
            connection.execute("COMMIT")
            _write_info(connection, info)
        Notes.beside(folder).take_over(copied.notes)
    except BaseException as error:  # a signal ends it as an exception does
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)
        if not isinstance(error, (sqlite3.Error, OSError, StoreError)):
            raise
        raise StoreError(str(error) if isinstance(error, StoreError) else f"{folder}: {error}") from None
    lock.release()


def write_info(folder: Path, info: RunInfo) -> None:
    """Write the facts of a merged run again.

    Raises:
        StoreError: the disk refuses.
    """
    try:
        with contextlib.closing(connect(folder)) as connection:
            _write_info(connection, info)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"{folder}: {error}") from None


def _write_info(connection: sqlite3.Connection, info: RunInfo) -> None:
    row = ("info", encode_json(info).decode())
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)


def _notes_on(folder: Path, parts: Iterable[MergePart]) -> dict[str, dict[int, HumanNote]]:
    """What people noted on attempts of parts, where these lie, or in the project that the whole is made in.
    There a note on the run of a results file means another attempt: the file numbers them anew."""
    here, found = Notes.beside(folder), {}
    for part in parts:
        found[part.info.id] = Notes.beside(part.reader.folder).of_run(part.info.id)
        if not all(map(is_only_named, part.cases)):
            found[part.info.id] |= here.of_run(part.info.id)
    return found


class _Copy:
    """Rows and bodies into a new run's database, with ids of their own."""

    def __init__(
        self, folder: Path, connection: sqlite3.Connection, noted: Mapping[str, Mapping[int, HumanNote]]
    ) -> None:
        self.folder = folder
        self.connection = connection
        self.notes: list[HumanNote] = []
        self._noted = noted
        self._case = self._attempt = 0

    @property
    def last(self) -> tuple[int, int]:
        """The ids of the last case and the last attempt."""
        return self._case, self._attempt

    def all(self, columns: Sequence[MergedColumn]) -> None:
        """Every column, in order."""
        for start in range(0, len(columns), _BATCH):
            batch = columns[start : start + _BATCH]
            rows: dict[str, dict[int, list[AttemptRow]]] = {}
            for part in {one.part.info.id: one.part for one in batch}.values():
                rows[part.info.id] = part.reader.attempts_of(
                    [one.case.id for one in batch if one.part is part]
                )
            self.connection.execute("BEGIN")
            for column in batch:
                self._column(column, rows[column.part.info.id].get(column.case.id, []))
            self.connection.execute("COMMIT")

    def _column(self, column: MergedColumn, attempts: Sequence[AttemptRow]) -> None:
        case, reader = column.case, column.part.reader
        self._case += 1
        row = (
            self._case, case.case_id, case.suite, case.name, case.format, case.agent, case.model, case.content_hash,
            case.attempts, case.required, reader.packed_case(case.id), case.variant,
        )  # fmt: skip
        self.connection.execute(f"INSERT INTO cases VALUES ({','.join('?' * 12)})", storable_rows([row])[0])
        bodies = reader.packed_attempts([one.id for one in attempts if one.state == "done"])
        noted = self._noted.get(column.part.info.id, {})
        for one in attempts:
            self._attempt += 1
            if (note := noted.get(one.id)) is not None:
                column_of = {"agent": case.agent, "model": case.model or ""}
                self.notes.append(
                    replace(note, run_id=self.folder.name, attempt_ref=self._attempt, **column_of)
                )
            ended = one.state == "done" and one.id in bodies
            self.connection.execute(_INSERT, storable_rows([self._row(one, ended)])[0])
            if ended:
                body = with_frames(reader.folder, one.id, self.folder, self._attempt, bodies[one.id])
                self.connection.execute("INSERT INTO bodies VALUES (?, ?)", (self._attempt, body))

    def _row(self, one: AttemptRow, ended: bool) -> tuple[Any, ...]:
        if not ended:
            return (self._attempt, self._case, one.attempt, "waiting", *[None] * 2, "", *[None] * 7, 0, "",
                    self._attempt, "", 0, one.judges, 0, None, "", "", 0, None, None, 0, None)  # fmt: skip
        return (
            self._attempt, self._case, one.attempt, "done", one.outcome, one.score, one.message, one.started_at,
            one.duration_ms, one.input_tokens, one.output_tokens, one.cached_tokens, one.cost, one.tool_calls,
            one.turn, "", self._attempt, one.answer, one.asserted_nothing, one.judges, one.cached,
            one.saved, one.cause, one.alike, one.judge_calls, one.judge_tokens, one.judge_cost, one.judge_cached,
            one.judge_saved,
        )  # fmt: skip


def with_frames(folder: Path, ref: int, target_folder: Path, new_ref: int, body: bytes) -> bytes:
    """A body with the rows that lie beside its run's database copied, too, under the attempt's new id."""
    if not (folder / FRAMES).is_dir() or (folder / FRAMES).is_symlink():
        return body
    sides = [side for side in ("expected", "actual") if (folder / FRAMES / f"{ref}-{side}.parquet").is_file()]
    if not sides:
        return body
    with contextlib.suppress(msgspec.MsgspecError, ValueError, OSError):
        attempt = unpack(body, Attempt)
        named = attempt.data.settings.get("frames") if attempt.data is not None else None
        if attempt.data is None or not isinstance(named, dict):
            return body
        private.make_folder(target_folder / FRAMES)
        moved = {side: f"{FRAMES}/{new_ref}-{side}.parquet" for side in sides if side in named}
        for side, place in moved.items():
            source = private.open_file(folder / FRAMES / f"{ref}-{side}.parquet", os.O_RDONLY)
            target = private.open_file(target_folder / place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            with open(source, "rb") as old, open(target, "wb") as new:
                shutil.copyfileobj(old, new)
        attempt.data.settings = {**attempt.data.settings, "frames": moved}
        return pack(attempt)
    return body


_INSERT = (
    "INSERT INTO attempts (id, case_ref, attempt, state, outcome, score, message, started_at, duration_ms,"
    " input_tokens, output_tokens, cached_tokens, cost, tool_calls, turn, detail, changed, answer, asserted_nothing,"
    f" judges, cached, saved, cause, alike, judge_calls, judge_tokens, judge_cost, judge_cached, judge_saved)"
    f" VALUES ({','.join('?' * 29)})"
)
