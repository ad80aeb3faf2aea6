"""Databases of a project that nobody trusts: endless, large, leading elsewhere, made to bring a library down."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tui_eval.config.project import Config, DatabaseSpec, database
from tui_eval.frames import sql
from tui_eval.frames.sql import SqlError, execute, rows, schema_text
from tui_eval.guard.trust import NeedsTrust, Trust

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {} FROM c"


def sqlite(path: Path, view: str) -> DatabaseSpec:
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE orders (id INTEGER)")
        made.execute("INSERT INTO orders VALUES (7)")
        made.execute(f"CREATE VIEW endless AS {view}")
        made.commit()
    return DatabaseSpec("shop", "sqlite", str(path))


@pytest.mark.real
@pytest.mark.parametrize("view", [ENDLESS.format("x"), ENDLESS.format("count(*)")])
def test_a_view_without_end_is_an_error_in_time(tmp_path: Path, view: str) -> None:
    shop = sqlite(tmp_path / "shop.db", view)
    with pytest.raises(SqlError, match=r"took longer than 0\.5 s"):
        execute(shop, "SELECT * FROM endless", timeout=0.5)
    assert rows(execute(shop, "SELECT id FROM orders")) == [{"id": 7}]


def test_a_view_without_end_is_left_when_it_is_cancelled(tmp_path: Path) -> None:
    shop = sqlite(tmp_path / "shop.db", ENDLESS.format("count(*)"))
    cancel = threading.Event()
    timer = threading.Timer(0.3, cancel.set)
    timer.start()
    with pytest.raises(SqlError, match="cancelled"):
        execute(shop, "SELECT * FROM endless", timeout=600, cancel=cancel)
    timer.join()


@pytest.mark.real
def test_rows_beyond_the_memory_of_a_query_are_an_error(tmp_path: Path) -> None:
    large = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT zeroblob(30000000) AS b FROM c"
    shop = sqlite(tmp_path / "shop.db", large)
    with pytest.raises(SqlError, match="64 MB of memory"):
        execute(shop, "SELECT * FROM endless", timeout=600, memory_mb=64)
    assert rows(execute(shop, "SELECT id FROM orders")) == [{"id": 7}]


@pytest.mark.real
def test_a_process_that_ends_is_an_error_and_another_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = sqlite(tmp_path / "shop.db", ENDLESS.format("x"))
    worker = sql.SqlWorker()
    monkeypatch.setattr(sql, "_idle", [worker])
    threading.Timer(0.5, worker.process.kill).start()
    with pytest.raises(SqlError, match="the process that executed the query ended"):
        execute(shop, "SELECT * FROM endless", timeout=600)
    assert rows(execute(shop, "SELECT id FROM orders")) == [{"id": 7}]
    sql.end_idle()


@pytest.mark.real
def test_a_process_that_does_not_hear_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "_START", 0.0)
    monkeypatch.setattr(sql, "_GRACE", 0.0)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute(f"CREATE VIEW x AS {ENDLESS.format('count(*) AS n')}")  # reading it never ends
    with pytest.raises(SqlError, match="took longer than 1 s"):
        execute(DatabaseSpec("shop", "sqlite", str(tmp_path / "shop.db")), "SELECT * FROM x", timeout=1)


def folder_of_files(root: Path) -> Path:
    folder = root / "data"
    folder.mkdir(parents=True)
    (folder / "plain.csv").write_text("id\n1\n", "utf-8")
    return folder


def test_a_link_in_a_folder_of_files_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("password\nhunter22\n", "utf-8")
    root = tmp_path / "project"
    folder = folder_of_files(root)
    (folder / "leak.csv").symlink_to(secret)
    spec = DatabaseSpec("files", "files", str(folder))
    with pytest.raises(SqlError, match=r"leak\.csv is a link that leads out"):
        execute(spec, "SELECT * FROM leak")
    with pytest.raises(SqlError, match=r"leak\.csv is a link that leads out"):
        schema_text(spec)
    config = Config(root, databases={"files": spec})
    with pytest.raises(NeedsTrust, match=r"secret\.csv .*leak\.csv"):
        database(config, "files", Trust())
    assert rows(execute(database(config, "files", Trust(True)), "SELECT * FROM leak")) == [
        {"password": "hunter22"}
    ]


def test_a_link_within_the_project_is_read(tmp_path: Path) -> None:
    folder = folder_of_files(tmp_path)
    (tmp_path / "shared.csv").write_text("id\n2\n", "utf-8")
    (folder / "shared.csv").symlink_to("../shared.csv")
    config = Config(tmp_path, databases={"files": DatabaseSpec("files", "files", "data")})
    spec = database(config, "files", Trust())
    assert rows(execute(spec, "SELECT * FROM shared")) == [{"id": 2}]


def test_a_file_s_name_is_no_pattern(tmp_path: Path) -> None:
    folder = folder_of_files(tmp_path)
    (folder / "p*.csv").write_text("id\n3\n", "utf-8")
    (folder / "q[1].csv").write_text("id\n4\n", "utf-8")
    (folder / "q1.csv").write_text("id\n5\n", "utf-8")
    spec = DatabaseSpec("files", "files", str(folder))
    assert rows(execute(spec, 'SELECT * FROM "p*"')) == [{"id": 3}]
    assert rows(execute(spec, 'SELECT * FROM "q[1]"')) == [{"id": 4}]


@pytest.mark.real
def test_modules_of_the_folder_are_not_taken_for_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "bitten"
    for name in ("duckdb", "polars", "msgspec", "sqlite3"):
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sql, "_idle", [])
    shop = sqlite(tmp_path / "shop.db", "SELECT 1")
    assert rows(execute(shop, "SELECT id FROM orders")) == [{"id": 7}]
    assert not mark.exists()
    sql.end_idle()
