"""Several processes and threads at one store at the same time: what each may find in the middle of the other's
work, put there on purpose."""

from __future__ import annotations

import contextlib
import fcntl
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from tests.store.test_store import attempt, start
from tui_eval.store import index as index_module
from tui_eval.store import reader as reader_module
from tui_eval.store.digests import connect_or_renew
from tui_eval.store.full_text import search
from tui_eval.store.imported.results_files import open_folder
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import LOCK, RunLock, Store, StoreError, is_alive, new_run_id
from tui_eval.store.writer import RunWriter


def ended(project: Path) -> RunWriter:
    """A run of one case that has ended."""
    writer, refs = start(project, 1, 1)
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1))
    writer.state("finished", 2000.0)
    writer.close()
    return writer


def test_a_viewer_that_looks_whether_a_run_lives_does_not_keep_an_engine_from_it(tmp_path: Path) -> None:
    folder = ended(tmp_path).folder
    with open(folder / LOCK, "rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        tried = threading.Event()
        later = threading.Thread(target=lambda: (tried.wait(60), fcntl.flock(looking, fcntl.LOCK_UN)))
        later.start()
        threading.Timer(0.02, tried.set).start()
        lock = RunLock(folder)
        later.join()
    assert is_alive(folder)
    lock.release()
    assert not is_alive(folder)


def test_a_process_that_was_just_started_does_not_keep_a_run_alive(tmp_path: Path) -> None:
    folder = ended(tmp_path).folder
    lock = RunLock(folder)
    # Between its fork and its exec a process has all that is open here.
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock.fileno()]
    )
    try:
        lock.release()
        assert not is_alive(folder)
    finally:
        child.communicate(b"\n")


def test_a_run_that_ends_while_it_is_looked_at_was_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, _ = start(tmp_path)
    writer.flush()

    def looked(folder: Path) -> bool:
        writer.state("finished", 2000.0)
        writer.close()
        return is_alive(folder)

    monkeypatch.setattr(reader_module, "is_alive", looked)
    with contextlib.closing(RunReader(writer.folder)) as reader:
        assert reader.info().state == "finished"


def test_an_error_that_passes_makes_no_run_unchanging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, refs = start(tmp_path, 1, 1)
    writer.flush()
    real, failures = sqlite3.connect, [1, 1]

    class Once(sqlite3.Connection):
        def execute(self, *arguments):  # type: ignore[override]
            if failures:
                failures.pop()
                raise sqlite3.OperationalError("unable to open database file")
            return super().execute(*arguments)

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, **{"factory": Once, **k}))
    with contextlib.closing(RunReader(writer.folder)) as reader:
        assert not failures
        writer.started(refs[0][0], 1000.0)
        assert writer.flush()
        assert [row.state for row in reader.attempts()] == ["running"]
    writer.close()


def test_an_index_at_which_another_process_works_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(tmp_path)
    index = Index(tmp_path)
    assert len(index.runs()) == 1
    file = index.path.stat().st_ino
    newer = ended(tmp_path)
    monkeypatch.setattr(index_module, "_BUSY_SECONDS", 0.01)
    with contextlib.closing(sqlite3.connect(index.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert len(index.runs()) == 2  # read into memory
        index.record(newer.folder)
        other.execute("ROLLBACK")
        other.execute("BEGIN IMMEDIATE")
        assert [run.state for run in index.runs()] == ["finished"] * 2  # into memory, what was known with it
        other.execute("ROLLBACK")
    assert index.path.stat().st_ino == file
    assert [run.state for run in index.runs()] == ["finished"] * 2


def test_an_index_that_was_made_anew_meanwhile_stays(tmp_path: Path) -> None:
    """Two find the same damage; the second must not throw away what the first one made."""
    path = tmp_path / "digest.db"
    path.write_bytes(b"no database " * 100)

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path)
        try:
            connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    seen = 0

    def second() -> sqlite3.Connection:
        nonlocal seen
        seen += 1
        if seen == 1:  # the other one is quicker
            with contextlib.closing(connect_or_renew(path, connect)) as first, first:
                first.execute("INSERT INTO t VALUES (1)")
            raise sqlite3.DatabaseError("file is not a database")
        return connect()

    with contextlib.closing(connect_or_renew(path, second)) as connection:
        assert connection.execute("SELECT x FROM t").fetchall() == [(1,)]


_CASES = 300


def with_a_spoilt_page(path: Path) -> None:
    """The last page of results: not one that a connection looks at first."""
    body = bytearray(path.read_bytes())
    leaves = [
        at
        for at in range(4096, len(body), 4096)
        if body[at] == 13 and b"suite.yaml::c" in body[at : at + 4096]
    ]
    assert len(leaves) > 3
    body[leaves[-1] : leaves[-1] + 100] = b"\xff" * 100
    path.write_bytes(body)


@pytest.mark.parametrize(
    "read",
    [
        lambda index, _: index.latest(),
        lambda index, run: range(index.sharing(run)[run][1]),
        lambda index, run: index.figures() and range(_CASES),
        lambda index, run: index.rebuild() or range(_CASES),
    ],
)
def test_an_index_with_a_damaged_page_is_made_anew(
    tmp_path: Path, read: Callable[[Index, str], Collection[object]]
) -> None:
    writer, refs = start(tmp_path, _CASES, 1)
    for number, (ref,) in enumerate(refs):
        writer.done(ref, attempt(f"suite.yaml::c{number}", 1))
    writer.state("finished", 2000.0)
    writer.close()
    index = Index(tmp_path)
    assert index.runs()
    with_a_spoilt_page(index.path)
    assert len(read(index, writer.info.id)) == _CASES
    assert len(index.latest()) == _CASES
    with contextlib.closing(sqlite3.connect(index.path)) as connection:
        assert connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)


@pytest.mark.parametrize("times", [1, 100])
def test_an_index_that_another_version_makes_anew_while_it_is_read_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """SQLite takes the journal of the new file for that of the old one, and empties what is being read."""
    ended(tmp_path)
    index = Index(tmp_path)
    left = times

    def emptied(path: Path, connect: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
        nonlocal left
        connection = connect_or_renew(path, connect)
        if left:
            left -= 1
            connection.execute("DROP TABLE runs")
        return connection

    monkeypatch.setattr(index_module, "connect_or_renew", emptied)
    assert [run.state for run in index.runs()] == ["finished"]
    assert len(index.history("suite.yaml::c0")) == 1 == len(index.latest())


def test_a_damaged_search_is_gathered_anew(tmp_path: Path) -> None:
    folder = ended(tmp_path).folder
    with contextlib.closing(RunReader(folder)) as reader:
        search(reader, "word")
        (folder / "search.db").write_bytes(b"no database " * 100)
        assert search(reader, "word").total == 0
    with contextlib.closing(sqlite3.connect(folder / "search.db")) as connection:
        assert connection.execute("SELECT count(*) FROM done").fetchone() == (1,)


def test_a_run_that_comes_while_folders_are_listed_is_not_a_deleted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(tmp_path)
    index = Index(tmp_path)
    assert len(index.runs()) == 1
    listed = Store.run_folders
    newer: list[RunWriter] = []

    def folders(store: Store):
        found = list(listed(store))
        if not newer:
            newer.append(ended(tmp_path))
            Index(tmp_path).record(newer[0].folder)
        return iter(found)

    monkeypatch.setattr(Store, "run_folders", folders)
    names = [run.id for run in index.runs()]
    assert newer[0].info.id in names


def test_how_a_run_ended_is_not_overwritten_by_what_was_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, refs = start(tmp_path, 1, 1)
    writer.close()
    read = RunReader.by_case
    resumed: list[RunWriter] = []

    def by_case(reader: RunReader):
        rows = list(read(reader))
        if not resumed:
            resumed.append(again := RunWriter(writer.folder, writer.info))
            again.done(refs[0][0], attempt("suite.yaml::c0", 1))
            again.state("finished", 2000.0)
            again.close()
            Index(tmp_path).record(writer.folder)
        return iter(rows)

    monkeypatch.setattr(RunReader, "by_case", by_case)
    (run,) = Index(tmp_path).runs()
    assert (run.state, run.passed) == ("finished", 1)


def test_a_run_from_elsewhere_that_two_open_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    copied = ended(tmp_path / "project").folder.rename(tmp_path / "copied")
    link = Path.symlink_to

    def twice(path: Path, target: Path) -> None:
        link(path, target)
        link(path, target)

    monkeypatch.setattr(Path, "symlink_to", twice)
    with contextlib.closing(RunReader(open_folder(copied))) as reader:
        assert reader.info().state == "finished"


def test_ids_of_one_millisecond_differ_and_sort() -> None:
    ids = [new_run_id() for _ in range(300)]
    assert ids == sorted(ids) and len({name[:-2] for name in ids}) == 300


def test_a_run_that_is_executed_is_refused_at_once(tmp_path: Path) -> None:
    writer, _ = start(tmp_path)
    with pytest.raises(StoreError, match="executed by another process"):
        RunLock(writer.folder)
    writer.close()
