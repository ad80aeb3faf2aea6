"""A disk that is full: the run goes on, what it finds is kept in memory, written later, or elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.store.test_store import attempt, start
from tests.support.waiting import until
from tui_eval.guard import private
from tui_eval.store import rescued, write_thread
from tui_eval.store.failure_modes import Assessment
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.rescued import bring_back, delete_run
from tui_eval.store.run_folders import DATABASE, LOCK, Store, StoreError, moved_to
from tui_eval.store.writer import RunWriter, keep_assessment

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
        transaction = write_thread.write_pending

        def written(connection: sqlite3.Connection, *what: object) -> None:
            pages = self.pages if connection in self._connections else 1_000_000
            connection.execute(f"PRAGMA max_page_count = {pages}")
            transaction(connection, *what)  # type: ignore[arg-type]

        monkeypatch.setattr(write_thread, "write_pending", written)


def fill(writer: RunWriter, references: Sequence[Sequence[int]]) -> None:
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
    # Whoever reads the run's own folder finds all of it there.
    assert kept(full) == ["0", "0", "1", "1", "2", "2"]
    with contextlib.closing(RunReader(full)) as reader:
        assert reader.folder == writer.folder and "its disk was full" in reader.info().note
    # What a person noted on it is where it is for every other run: exports look beside the folder that was read.
    monkeypatch.chdir(tmp_path)
    Notes(tmp_path).put(HumanNote(full.name, references[0][0], "suite.yaml::c0", text="seen"))
    assert [one.text for one in Notes.beside(writer.folder).of_run(full.name).values()] == ["seen"]


def test_a_run_that_no_disk_has_room_for_is_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container home, project and files for a while are one disk."""
    (tmp_path / "state").write_text("in the way of a folder", "utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(private, "temporary_home", no_room)
    monkeypatch.setattr(tempfile, "mkdtemp", no_room)
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(private, "MEMORY", memory)
    disk = Disk(monkeypatch)
    writer, references = start(tmp_path, cases=3)
    disk.pages = 1
    fill(writer, references)
    writer.close()
    assert writer.folder == memory / f"tui-eval-{os.getuid()}" / "rescued" / writer.home.name
    assert writer.error is not None and "gone when the machine is switched off" in writer.error
    assert not writer.lost and kept(writer.home) == ["0", "0", "1", "1", "2", "2"]
    disk.pages = 1_000_000
    assert bring_back(writer.home) == writer.folder and kept(writer.home) == ["0", "0", "1", "1", "2", "2"]


def test_a_viewer_sees_the_end_of_a_run_that_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    disk = Disk(monkeypatch)
    writer, references = start(tmp_path, cases=3)
    writer.flush()
    with contextlib.closing(RunReader(writer.folder)) as reader:
        assert reader.info().state == "running"
        disk.pages = 1
        fill(writer, references)
        writer.state("finished", 2000.0)
        writer.close()
        assert reader.info().state == "finished"
        assert [row.outcome for row in reader.changes(0)] == ["passed"] * 6


def test_a_run_comes_back_when_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    disk = Disk(monkeypatch)
    writer, references = start(tmp_path, cases=3)
    writer.flush()
    disk.pages = 1
    fill(writer, references)
    writer.close()
    home, away = writer.home, writer.folder
    keep_assessment(home, Assessment(6, 6, []))  # as the app has the judge name what failed
    assert moved_to(home) == away
    assert "its disk was full: kept in" in note_of(home)
    assert bring_back(home) == away
    assert not note_of(home), "it is at home again"
    assert not away.exists() and moved_to(home) is None
    assert kept(home) == ["0", "0", "1", "1", "2", "2"]
    with contextlib.closing(RunReader(home)) as reader:
        assert reader.folder == home
    bring_back(home)  # nothing to do


def test_a_run_that_is_deleted_is_deleted_there_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    disk = Disk(monkeypatch)
    writer, references = start(tmp_path, cases=1)
    writer.flush()
    disk.pages = 1
    fill(writer, references)
    writer.close()
    delete_run(writer.home)
    assert not writer.home.exists() and not writer.folder.exists()


def test_a_resumed_run_keeps_what_was_there_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    writer, references = start(tmp_path, cases=3)
    fill(writer, references[:1])
    writer.close()
    again = RunWriter(writer.folder, writer.info)
    (again.home / DATABASE).unlink()  # what was written through the open file is gone with it
    fill(again, references[1:])
    again.close()
    assert again.folder == tmp_path / "state" / "tui-eval" / "rescued" / again.home.name
    with contextlib.closing(RunReader(again.folder)) as reader:
        assert [row.outcome for row in reader.attempts()] == ["passed"] * 6
        (first, *_, last) = [reader.attempt(row.id) for row in reader.attempts()]
        assert first is not None and "transcript is lost" in first.transcript[0].text
        assert last is not None and last.response_text[:1] == "2"


def test_a_resumed_run_that_compares_what_had_ended_anew_stays_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its attempt was counted twice, and the whole run was "damaged", and copied elsewhere."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    writer, references = start(tmp_path, cases=3)
    fill(writer, references[:1])
    writer.close()
    again = RunWriter(writer.folder, writer.info)
    fill(again, references)
    again.close()
    assert again.error is None and again.folder == again.home


def test_a_resumed_run_whose_database_is_lost_keeps_what_was_compared_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    writer, references = start(tmp_path, cases=1)
    fill(writer, references)
    writer.close()
    again = RunWriter(writer.folder, writer.info)
    again.done(references[0][0], attempt("suite.yaml::c0", 1, "failed", response_text="compared"))
    assert again.flush()
    (again.home / DATABASE).rename(tmp_path / "elsewhere")
    again.close()
    with contextlib.closing(RunReader(again.folder)) as reader:
        first, second = reader.attempts()
        body = reader.attempt(first.id)
        assert [first.outcome, second.outcome] == ["failed", "passed"]
        assert body is not None and body.response_text == "compared"


def test_no_room_yet_says_so_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    disk = Disk(monkeypatch)
    writer, references = start(tmp_path, cases=2)
    writer.flush()
    disk.pages = 1
    fill(writer, references)
    writer.close()

    def refused(*_: object) -> None:
        raise sqlite3.OperationalError(FULL)

    monkeypatch.setattr(rescued, "_copied", refused)
    with pytest.raises(StoreError, match="make room"):
        bring_back(writer.home)
    assert moved_to(writer.home) == writer.folder and kept(writer.home) == ["0", "0", "1", "1"]


def test_a_mark_that_leads_nowhere_is_none(tmp_path: Path) -> None:
    writer, _ = start(tmp_path, cases=1)
    writer.close()
    planted = tmp_path / "theirs"
    planted.mkdir()
    (planted / "run.db").write_bytes((writer.home / "run.db").read_bytes())
    for text in (
        json.dumps({"moved": str(planted)}),
        '{"moved": "/nowhere/at/all"}',
        '{"moved": 1}',
        "{",
        '["moved"]',
        "\x00",
    ):
        (writer.home / LOCK).write_text(text)
        assert moved_to(writer.home) is None
        with contextlib.closing(RunReader(writer.home)) as reader:
            assert reader.folder == writer.home
        bring_back(writer.home)
    delete_run(writer.home)
    assert planted.is_dir() and not writer.home.exists()


def note_of(folder: Path) -> str:
    with contextlib.closing(RunReader(folder)) as reader:
        return reader.info().note


def no_room(*_: object, **__: object) -> str:
    raise OSError(28, "No space left on device")


@pytest.fixture
def no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The person's folder cannot be made; temporary files are in `temporary`."""
    (tmp_path / "state").write_text("a file where a folder should be")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


def ended_on_a_full_disk(root: Path, monkeypatch: pytest.MonkeyPatch, cases: int) -> RunWriter:
    """A run whose attempts end when there is no room any more."""
    disk = Disk(monkeypatch)
    writer, references = start(root, cases=cases)
    writer.flush()
    disk.pages = 1
    fill(writer, references)
    writer.close()
    return writer


@pytest.mark.usefixtures("no_state")
def test_temporary_files_are_the_last_place_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = ended_on_a_full_disk(tmp_path, monkeypatch, 2)
    assert writer.folder.is_relative_to(tmp_path / "temporary")
    assert kept(writer.folder) == kept(writer.home) == ["0", "0", "1", "1"]
    assert bring_back(writer.home) == writer.folder
    assert kept(writer.home) == ["0", "0", "1", "1"] and not writer.folder.exists()


@pytest.mark.usefixtures("no_state")
def test_a_folder_for_temporary_files_that_is_somebody_elses_is_no_place_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "temporary" / f"tui-eval-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    writer = ended_on_a_full_disk(tmp_path, monkeypatch, 1)
    assert not any((tmp_path / "elsewhere").iterdir()) and kept(writer.folder) == ["0", "0"]


@pytest.mark.usefixtures("no_state")
def test_nowhere_to_go_says_what_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "temporary_home", no_room)
    monkeypatch.setattr(private, "memory_home", no_room)
    monkeypatch.setattr(tempfile, "mkdtemp", no_room)
    writer = ended_on_a_full_disk(tmp_path, monkeypatch, 2)
    assert writer.error is not None and "4 attempts are lost" in writer.error and "\n" not in writer.error


@pytest.mark.parametrize("all_of_it", [False, True], ids=["the run's folder", "all runs"])
def test_a_run_whose_folder_is_taken_away_is_made_again_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_of_it: bool
) -> None:
    """By `git clean`, say: it went into the state folder, where no list of runs found it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    writer, references = start(tmp_path, cases=3)
    fill(writer, references[:1])
    assert writer.flush()
    home = writer.folder
    shutil.rmtree(home.parents[1] if all_of_it else home)
    fill(writer, references[1:])
    writer.state("finished", 2000.0)
    writer.close()
    assert writer.folder == home and kept(home) == ["0", "0", "1", "1", "2", "2"]
    assert writer.error is not None and str(home) in writer.error
    assert Store(tmp_path).find(home.name) == home
    with contextlib.closing(RunReader(home)) as reader:
        assert reader.info().state == "finished"


def test_a_run_that_is_being_read_is_deleted_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite makes its files anew for a reader that had just opened the database: `Directory not empty`, and half
    a folder stayed for good, in no list."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / DATABASE).write_bytes(b"")
    unlink = os.unlink

    def read_meanwhile(name: str, **options: int) -> None:
        unlink(name, **options)
        if name == DATABASE:
            (folder / f"{DATABASE}-shm").write_bytes(b"")

    monkeypatch.setattr(os, "unlink", read_meanwhile)
    delete_run(folder)
    assert not folder.exists()
