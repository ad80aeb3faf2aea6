"""A disk that is full: the run goes on, what it finds is kept in memory, written later, or elsewhere."""

from __future__ import annotations

import secrets
import sqlite3
from pathlib import Path

import pytest

from tests.store.test_store import attempt, start
from tests.waiting import until
from tui_eval.store import write_thread
from tui_eval.store.reader import RunReader
from tui_eval.store.writer import RunWriter

FULL = "database or disk is full"


class Disk:
    """How many pages the databases may have; SQLite itself then says that the disk is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pages = 1_000_000
        self._connections: list[sqlite3.Connection] = []
        connect = write_thread.connect

        def limited(folder: Path) -> sqlite3.Connection:
            connection = connect(folder)
            self._connections.append(connection)
            return connection

        monkeypatch.setattr(write_thread, "connect", limited)
        transaction = write_thread._transaction

        def written(connection: sqlite3.Connection, *what: object) -> None:
            pages = self.pages if connection in self._connections else 1_000_000
            connection.execute(f"PRAGMA max_page_count = {pages}")
            transaction(connection, *what)  # type: ignore[arg-type]

        monkeypatch.setattr(write_thread, "_transaction", written)


def fill(writer: RunWriter, references: list[list[int]]) -> None:
    for ids in references:
        place = (ids[0] - 1) // 2
        for number, ref in enumerate(ids, 1):
            writer.started(ref, 1000.0)
            writer.done(
                ref,
                attempt(
                    f"suite.yaml::c{place}", number, response_text=f"{place} {secrets.token_hex(40_000)}"
                ),
            )


def kept(folder: Path) -> list[str]:
    reader = RunReader(folder)
    try:
        rows = reader.attempts()
        assert all(row.state == "done" and row.outcome == "passed" for row in rows)
        bodies = [reader.attempt(row.id) for row in rows]
        return [body.response_text[:1] for body in bodies if body is not None]
    finally:
        reader.close()


async def test_what_was_refused_is_written_when_there_is_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    writer, references = start(tmp_path, cases=3)
    writer.flush()
    told: list[str] = []
    writer.tell(told.append)
    disk.pages = 1
    fill(writer, references)
    assert not writer.flush()
    assert writer.error is not None and FULL in writer.error
    await until(lambda: told)
    disk.pages = 1_000_000
    await until(lambda: writer.error is None)
    writer.close()
    (line,) = told
    assert FULL in line and "the run goes on" in line and "\n" not in line
    assert kept(writer.folder) == ["0", "0", "1", "1", "2", "2"]


def test_a_disk_that_stays_full_moves_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    disk = Disk(monkeypatch)
    writer, references = start(tmp_path, cases=3)
    fill(writer, references[:1])
    assert writer.flush()
    full = writer.folder
    disk.pages = 1
    fill(writer, references[1:])
    writer.close()
    assert writer.folder == tmp_path / "state" / "tui-eval" / "rescued" / full.name
    assert writer.error is not None and FULL in writer.error and str(writer.folder) in writer.error
    assert kept(writer.folder) == ["0", "0", "1", "1", "2", "2"]


def test_nowhere_to_go_says_what_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    disk = Disk(monkeypatch)
    writer, references = start(tmp_path, cases=2)
    writer.flush()
    disk.pages = 1
    fill(writer, references)
    writer.close()
    assert writer.error is not None and "4 attempts are lost" in writer.error and "\n" not in writer.error
