"""The store is its owner's alone, and is not reached through links that a project's folder brings along."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
import struct
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from tests.store.test_store import attempt, start
from tui_eval.config.project import state_dir
from tui_eval.guard import private, trust_store
from tui_eval.guard.masker import Masker
from tui_eval.model import DataDetails
from tui_eval.store import frames
from tui_eval.store.full_text import search
from tui_eval.store.index import Index
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import LOCK, RunLock, Store, StoreError, is_alive
from tui_eval.store.write_thread import connect
from tui_eval.tui import settings


@pytest.fixture
def ordinary_mask():
    old = os.umask(0o022)
    yield
    os.umask(old)


def recorded(root: Path) -> Path:
    """A run with everything that is kept beside one."""
    writer, refs = start(root, 1, 1)
    frames.save(writer.home, 1, {"actual": pl.DataFrame({"a": [1]})}, Masker([]))
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1, response_text="secret"))
    writer.state("finished", 2000.0)
    writer.close()
    Index(root).runs()
    Notes(root).put(HumanNote(writer.info.id, 1, "suite.yaml::c0", None, "mine"))
    return writer.home


def open_to_others(folder: Path) -> list[str]:
    found = [folder, *folder.rglob("*")]
    return [f"{path} {path.stat().st_mode:o}" for path in found if path.stat().st_mode & 0o077]


@pytest.mark.usefixtures("ordinary_mask")
def test_nobody_else_reads_the_store(tmp_path: Path) -> None:
    recorded(tmp_path)
    assert open_to_others(tmp_path / ".tui-eval") == []


@pytest.mark.usefixtures("ordinary_mask")
def test_the_journals_of_a_run_under_way_are_closed_too(tmp_path: Path) -> None:
    writer, refs = start(tmp_path, 1, 1)
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1))
    try:
        assert open_to_others(tmp_path / ".tui-eval") == []
    finally:
        writer.close()


def test_a_store_of_an_earlier_version_is_closed_when_it_is_opened(tmp_path: Path) -> None:
    recorded(tmp_path)
    store = tmp_path / ".tui-eval"
    for path in [store, *store.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    outside = tmp_path / "outside"
    outside.write_text("x", "utf-8")
    outside.chmod(0o644)
    (store / "link").symlink_to(outside)
    Store(tmp_path)
    (store / "link").unlink()
    assert open_to_others(store) == []
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


@pytest.mark.parametrize("linked", [".tui-eval", ".tui-eval/runs"])
def test_a_store_that_is_a_link_is_not_followed(tmp_path: Path, linked: str) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    (root / linked).parent.mkdir(parents=True)
    elsewhere.mkdir()
    (root / linked).symlink_to(elsewhere)
    assert not state_dir(root).is_relative_to(root)
    recorded(root)
    assert list(elsewhere.iterdir()) == []


def test_a_lock_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    target = tmp_path / "precious"
    target.write_text("precious", "utf-8")
    (run / LOCK).unlink()
    (run / LOCK).symlink_to(target)
    with pytest.raises(StoreError, match="is a link, which is not followed"):
        RunLock(run)
    assert target.read_text("utf-8") == "precious" and not is_alive(run)


def test_a_lock_that_is_a_pipe_makes_nobody_wait(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    (run / LOCK).unlink()
    os.mkfifo(run / LOCK)
    assert not is_alive(run)
    with pytest.raises(StoreError):
        RunLock(run)


def test_databases_that_are_links_are_not_followed(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    target = tmp_path / "precious.db"
    os.rename(run / "run.db", target)
    (run / "run.db").symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(StoreError, match="is a link, which is not followed"):
        RunReader(run)
    with pytest.raises(sqlite3.Error, match="is a link, which is not followed"):
        connect(run)
    for name in ("index.db", "notes.db"):
        path = tmp_path / ".tui-eval" / name
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    Index(tmp_path).record(run)
    with pytest.raises(StoreError, match="is a link, which is not followed"):
        Notes(tmp_path).put(HumanNote("r", 1, "c", None, "mine"))
    assert target.read_bytes() == before


def hot_journal(database: Path, names: Path) -> None:
    """A journal that SQLite rolls back when it opens the database to write, and that says to be a part of `names`, the
    journal of several databases, which SQLite deletes then."""
    page = database.read_bytes()[: int.from_bytes(database.read_bytes()[16:18], "big")]
    size = len(page)
    summed = sum(page[at] for at in range(size - 200, 0, -200)) & 0xFFFFFFFF
    magic = bytes.fromhex("d9d505f920a163d7")
    head = magic + struct.pack(">IIIII", 1, 0, database.stat().st_size // size, 512, size)
    record = struct.pack(">I", 1) + page + struct.pack(">I", summed)
    name = str(names).encode()
    end = struct.pack(">I", 0x40000000 // size + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    journal = database.with_name(f"{database.name}-journal")
    journal.write_bytes(head.ljust(512, b"\0") + record + end)


def test_sqlite_deletes_what_such_a_journal_names(tmp_path: Path) -> None:
    database, precious = tmp_path / "a.db", tmp_path / "precious"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE t (a)")
    precious.write_text("precious", "utf-8")
    hot_journal(database, precious)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("SELECT * FROM t")
    assert not precious.exists()


@pytest.mark.parametrize("name", ["index.db", "runs/run.db"])
def test_a_journal_that_came_with_a_folder_deletes_no_file_of_the_persons(tmp_path: Path, name: str) -> None:
    run = recorded(tmp_path)
    Index(tmp_path).record(run)
    precious = tmp_path / "precious"
    precious.write_text("precious", "utf-8")
    database = run / "run.db" if name.startswith("runs/") else tmp_path / ".tui-eval" / name
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    hot_journal(database, precious)
    if database.name == "run.db":
        for reach in (RunReader, connect):
            with pytest.raises((StoreError, sqlite3.Error), match="-journal beside it names another file"):
                reach(run)
    assert Index(tmp_path).runs() or database.name == "run.db"
    assert precious.read_text("utf-8") == "precious"


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
def test_a_pipe_in_the_place_of_a_journal_makes_nobody_wait(tmp_path: Path, ending: str) -> None:
    run = recorded(tmp_path)
    Index(tmp_path).record(run)
    for database in (run / "run.db", tmp_path / ".tui-eval" / "index.db"):
        beside = database.with_name(f"{database.name}{ending}")
        beside.unlink(missing_ok=True)
        os.mkfifo(beside)
    for reach in (RunReader, connect):
        with pytest.raises(
            (StoreError, sqlite3.Error), match=f"run.db{ending} beside it is not what tui-eval"
        ):
            reach(run)
    Index(tmp_path).runs()


def test_rows_are_not_written_through_a_link(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    frame = {"actual": pl.DataFrame({"a": [2]})}
    place = run / frames.FOLDER / "1-actual.parquet"
    place.unlink()
    place.symlink_to(elsewhere / "file")
    with pytest.raises(OSError, match="is a link"):
        frames.save(run, 1, frame, Masker([]))
    place.unlink()
    place.parent.rmdir()
    place.parent.symlink_to(elsewhere)
    with pytest.raises(OSError, match="is a link"):
        frames.save(run, 1, frame, Masker([]))
    assert list(elsewhere.iterdir()) == []


def test_a_run_s_folder_that_is_a_link_is_no_run(tmp_path: Path) -> None:
    run = recorded(tmp_path / "other")
    mine = recorded(tmp_path)
    (mine.parent / "20990101-000000-000aa").symlink_to(run)
    assert list(Store(tmp_path).run_folders()) == [mine]


def test_a_run_with_a_view_is_refused(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    with closing(sqlite3.connect(run / "run.db")) as made:
        made.execute("ALTER TABLE attempts RENAME TO kept")
        made.execute(
            "CREATE VIEW attempts AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT * FROM c"
        )
        made.commit()
    with pytest.raises(StoreError, match="holds views or triggers"):
        RunReader(run)


def test_last_is_the_last_run_whatever_folder_has_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = recorded(tmp_path)
    recorded(tmp_path / "other").rename(tmp_path / "last")
    monkeypatch.chdir(tmp_path)
    assert Store(tmp_path).find("last") == mine


def test_generated_columns_are_refused(tmp_path: Path) -> None:
    """Each row that is read would be computed, as large as SQLite allows."""
    path = tmp_path / "run.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE attempts (id INTEGER, large TEXT AS (hex(zeroblob(400000000))))")
        connection.commit()
    with pytest.raises(StoreError, match="holds generated columns"):
        RunReader(tmp_path)


_COMPUTED = "abs(7)"  # or what takes hours


@pytest.mark.parametrize(
    "bad",
    [
        f"CREATE TABLE more (id INTEGER CHECK ({_COMPUTED} = 0))",
        f"CREATE TABLE more (id INTEGER, CONSTRAINT c check({_COMPUTED} = 0))",
        f"CREATE TABLE more (id INTEGER DEFAULT ({_COMPUTED}))",
        f"CREATE TABLE more (id INTEGER DEFAULT /* 0 */ ({_COMPUTED}))",
        f"CREATE TABLE more (id INTEGER /* DEFAULT ' */ CHECK ({_COMPUTED} = 0) /* ' */)",
        f"CREATE TABLE more (id INTEGER -- DEFAULT '\n CHECK ({_COMPUTED} = 0) -- '\n)",
        f"""CREATE TABLE more ("DEFAULT '" INTEGER, id INTEGER CHECK ({_COMPUTED} = 0), "'" INTEGER)""",
        f"CREATE TABLE more ([DEFAULT '] INTEGER, id INTEGER CHECK ({_COMPUTED} = 0), [x'] INTEGER)",
        f"CREATE INDEX more ON attempts (case_ref) WHERE id = {_COMPUTED}",
        f"CREATE INDEX more ON attempts ({_COMPUTED} + id)",
        "CREATE VIRTUAL TABLE more USING fts5 (body)",
        "CREATE VIRTUAL TABLE words USING fts5 (body, content = 'attempts')",
    ],
)
def test_nothing_is_computed_when_a_row_is_written(tmp_path: Path, bad: str) -> None:
    """`tui-eval runs` wrote to such an index, deaf to ctrl+c and SIGTERM."""
    run = recorded(tmp_path)
    for path in (run / "run.db", tmp_path / ".tui-eval" / "search.db"):
        with closing(sqlite3.connect(path)) as connection:
            if path.name == "search.db":
                connection.execute("CREATE TABLE attempts (id INTEGER, case_ref INTEGER)")
            connection.execute(bad)
            connection.commit()
            with pytest.raises(sqlite3.DatabaseError, match="conditions, or values that are computed"):
                private.refuse_programs(connection)
    with pytest.raises(StoreError, match="conditions, or values that are computed"):
        RunReader(run)


def test_what_the_store_makes_is_not_refused(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    with closing(RunReader(run)) as reader:
        search(reader, "secret")
    made = list(tmp_path.rglob("*.db"))
    assert {path.name for path in made} >= {"run.db", "index.db", "search.db"}
    for path in made:
        with closing(sqlite3.connect(path)) as connection:
            private.refuse_programs(connection)


@pytest.mark.parametrize("taken", ["a link", "a file"])
def test_a_temporary_folder_that_somebody_else_has_made_is_none(
    tmp_path: Path, monkeypatch, taken: str
) -> None:
    """A neighbour's folder of that name kept a person from running anything in the app."""
    temporary, cache = tmp_path / "tmp", tmp_path / "cache"
    temporary.mkdir()
    theirs = temporary / f"tui-eval-{os.getuid()}"
    if taken == "a link":
        (tmp_path / "theirs").mkdir()
        theirs.symlink_to(tmp_path / "theirs")
    else:
        theirs.write_text("")
    monkeypatch.setattr(private, "_SOCKET_PATH", 400)  # a test's folders have long names
    monkeypatch.setattr(private.tempfile, "gettempdir", lambda: str(temporary))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    found = private.socket_home()
    assert found == cache / "tui-eval" / "run" and found.stat().st_mode & 0o777 == 0o700
    theirs.unlink()
    assert private.socket_home() == theirs


def test_sockets_go_where_their_names_fit_and_nobody_else_was(tmp_path: Path, monkeypatch) -> None:
    """The app ran nothing where `XDG_RUNTIME_DIR` has a long name, or root had been there (`su`)."""
    monkeypatch.setattr(private.tempfile, "gettempdir", lambda: str(tmp_path / ("t" * 90)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ("c" * 90)))
    for name in ("r" * 90, "run"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("r" * 90)))
    assert private.runtime_folder() == Path(f"/tmp/tui-eval-{os.getuid()}")
    monkeypatch.setattr(private, "_SOCKET_PATH", 400)
    (tmp_path / "run" / "tui-eval").write_text("theirs")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    assert private.runtime_folder().parent == tmp_path / ("t" * 90)


def test_a_user_whom_the_system_does_not_know_has_a_temporary_home(tmp_path: Path, monkeypatch) -> None:
    """The number that a container runs as, without HOME: everything ended with an internal error."""

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(private.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(Path, "home", unknown)
    own = tmp_path / f"tui-eval-{os.getuid()}"
    assert trust_store.state_home().is_relative_to(own) and settings.settings_file().is_relative_to(own)
    assert private.cache_home().is_relative_to(own) and trust_store.agreed(tmp_path) == frozenset()
    trust_store.grant(tmp_path, ["run it"])
    assert trust_store.agreed(tmp_path) == {"run it"}
    own.rename(tmp_path / "away")
    own.write_text("somebody else's")
    assert trust_store.agreed(tmp_path) == frozenset()
    with pytest.raises(OSError):
        trust_store.grant(tmp_path, ["run it"])


def test_a_home_that_nothing_can_be_made_in_is_no_place_for_anything(tmp_path: Path, monkeypatch) -> None:
    """`/` of `docker run -u 1000`: results files could not be opened, nor merged, nor a run of what is
    read-only kept."""
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    own, theirs = tmp_path / f"tui-eval-{os.getuid()}", tmp_path / "home"
    ours = theirs / ".local" / "state" / "tui-eval"
    ours.mkdir(parents=True)
    monkeypatch.setattr(private.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(Path, "home", lambda: theirs)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write anything
    assert private.cache_home() == own / ".cache" / "tui-eval"
    assert trust_store.state_home() == ours  # what is in it is read
    (theirs / ".cache").mkdir()  # root's, in an image
    ours.rmdir()
    assert private.cache_home() == own / ".cache" / "tui-eval"
    assert trust_store.state_home() == own / ".local" / "state" / "tui-eval"
    ours.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # and closed
    assert trust_store.state_home() == own / ".local" / "state" / "tui-eval"


def test_a_disk_that_takes_no_locks_is_said_to_be_that(tmp_path: Path, monkeypatch) -> None:
    """Lustre, some network file systems: `run … is being executed by another process`."""

    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    folder = Store(tmp_path).create_folder("20261129-120000-00000")
    RunLock(folder).release()
    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(StoreError, match="takes no locks"):
        RunLock(folder)
    assert not is_alive(folder)


def test_a_full_disk_leaves_no_store_that_git_would_keep(tmp_path: Path, monkeypatch) -> None:
    """Its `.gitignore` was empty, for good."""
    write = private.write_file

    def full(path: Path, content: bytes) -> None:
        write(path, b"")
        raise OSError(errno.ENOSPC, "No space left on device")

    store = Store(tmp_path)
    with monkeypatch.context() as disk:
        disk.setattr(private, "write_file", full)
        with pytest.raises(StoreError, match=r"No space left on device: nothing was run; make room"):
            store.create_folder("20261129-120000-00000")
    store.create_folder("20261129-120000-00001")
    assert (tmp_path / ".tui-eval" / ".gitignore").read_text() == "*\n"


def test_rows_beside_a_run_hold_no_secret_in_cells_and_names(tmp_path: Path) -> None:
    secret = "sk-abcdefgh12345"
    frame = pl.DataFrame({"a": [secret], secret: [1]})
    paths = frames.save(tmp_path, 1, {"actual": frame}, Masker([secret]))
    assert pl.read_parquet(tmp_path / paths["actual"]).to_dicts() == [{"a": "•••", "•••": 1}]


def test_rows_beside_a_run_are_read_whatever_its_folder_is_called_and_never_more_than_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path with brackets was taken for a pattern; a file of a stranger's run can stand for any number of rows."""
    run = tmp_path / "shop [eu]*" / "day=1"
    run.mkdir(parents=True)
    details = DataDetails(
        settings={"frames": frames.save(run, 1, {"actual": pl.DataFrame({"a": [1, 2]})}, Masker([]))}
    )
    found = frames.load(run, details, "actual")
    assert found is not None and found.columns == ["a"] and found.height == 2
    monkeypatch.setattr(frames, "_MOST_CELLS", 1)
    assert frames.load(run, details, "actual") is None


def test_damaged_rows_beside_a_run_end_nothing(tmp_path: Path) -> None:
    details = DataDetails(
        settings={"frames": frames.save(tmp_path, 1, {"actual": pl.DataFrame({"a": [[1], [2]]})}, Masker([]))}
    )
    place = tmp_path / "frames" / "1-actual.parquet"
    whole = place.read_bytes()
    for at in range(0, len(whole), 3):
        place.write_bytes(whole[:at] + bytes([whole[at] ^ 0x7F]) + whole[at + 1 :])
        frames.load(tmp_path, details, "actual")
