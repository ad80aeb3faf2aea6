"""Expected SQL: read-only, limited, whatever the types; SQLite and folders of files."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tui_eval.config.project import DatabaseSpec
from tui_eval.frames.compare import compare
from tui_eval.frames.query_words import bare_statement
from tui_eval.frames.sql import (
    SqlError,
    SqlResult,
    SqlWorker,
    end_idle,
    execute,
    execute_all,
    rows,
    schema_text,
)

EVERY_TYPE = """
SELECT 1::HUGEINT h, 1.5::DECIMAL(38, 3) d, INTERVAL 3 DAYS i, TIME '10:30' t, [1, 2] l, {'a': 1} s,
       TIMESTAMPTZ '2024-01-05 10:00:00+02' tz, 'ab'::BLOB b, 'x'::ENUM('x', 'y') e, '101'::BIT bi,
       DATE '2024-01-05' dt, 7::UINT128 uh, NULL n, 1::UTINYINT ut, MAP {'a': 1} m, 'a' v, 1.5::FLOAT f,
       true bo, TIMESTAMP '2024-01-05 10:11:12.5' ts, 'infinity'::DATE di, 'infinity'::TIMESTAMP ti,
       'nan'::DOUBLE nn, 123456789012345678901234567890123456789012::BIGNUM bn, 1 dup, 2 dup
"""


@pytest.fixture
def shop(tmp_path: Path) -> DatabaseSpec:
    import duckdb

    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE orders AS SELECT i AS id, i * 1.5 AS amount FROM range(10) t(i)")
    return DatabaseSpec("shop", "duckdb", str(path))


def test_every_type_becomes_rows(shop: DatabaseSpec) -> None:
    [row] = rows(execute(shop, EVERY_TYPE))
    assert row == {
        "h": 1, "d": 1.5, "i": "3 days", "t": "10:30:00", "l": "[1, 2]", "s": "{'a': 1}",
        "tz": "2024-01-05T08:00:00+00:00", "b": "ab", "e": "x", "bi": "101", "dt": "2024-01-05T00:00:00",
        "uh": 7, "n": None, "ut": 1, "m": "{a=1}", "v": "a", "f": 1.5, "bo": True,
        "ts": "2024-01-05T10:11:12.500000", "di": "infinity", "ti": "infinity", "nn": None,
        "bn": 123456789012345678901234567890123456789012, "dup": 1, "dup_1": 2,
    }  # fmt: skip


@pytest.mark.parametrize("clock", ["10:11:12", "10:11:12.5", "10:11:12.000250", "00:00:00.123456"])
def test_a_fraction_of_a_second_has_the_digits_that_nao_sends(shop: DatabaseSpec, clock: str) -> None:
    sql = f"""SELECT TIME '{clock}' AS t, TIMESTAMP '2024-01-05 {clock}' AS ts, TIMESTAMP_MS '2024-01-05 {clock}' AS ms,
        TIMESTAMPTZ '2024-01-05 {clock}+00' AS tz, TIMESTAMP_NS '2024-01-05 10:11:12.1234567' AS ns"""
    [row] = rows(execute(shop, sql))
    at = datetime.fromisoformat(f"2024-01-05T{clock}")
    milliseconds = at.replace(microsecond=at.microsecond // 1000 * 1000)
    assert row == {
        "t": at.time().isoformat(), "ts": at.isoformat(), "ms": milliseconds.isoformat(),
        "tz": f"{at.isoformat()}+00:00", "ns": "2024-01-05T10:11:12.123456700",
    }  # fmt: skip


def test_an_answer_as_json_equals_every_type(shop: DatabaseSpec) -> None:
    result = execute(shop, EVERY_TYPE)
    [answer] = rows(result)
    assert compare([answer], result).message == "match"
    answer |= {
        "l": [1, 2],
        "s": {"a": 1},
        "m": {"a": 1},
        "dt": "2024-01-05",
        "h": 1.0,
        "tz": "2024-01-05 08:00Z",
    }
    assert compare([answer], result).passed


def test_dates_before_christ_are_written_as_postgresql_writes_them(shop: DatabaseSpec) -> None:
    sql = """SELECT * FROM (VALUES
        (DATE '0044-03-15 (BC)', TIMESTAMP '0044-03-15 (BC) 10:00:00', TIMESTAMPTZ '0044-03-15 (BC) 10:00:00+00'),
        ('-infinity', '-infinity', '-infinity'), (NULL, NULL, NULL), ('2024-01-05', '2024-01-05', '2024-01-05 00:00+00')
    ) AS days(d, t, z)"""
    result = execute(shop, sql)
    assert [tuple(row.values()) for row in rows(result)] == [
        ("0044-03-15 BC", "0044-03-15 10:00:00 BC", "0044-03-15 10:00:00+00:00 BC"),
        ("-infinity",) * 3,
        (None,) * 3,
        ("2024-01-05T00:00:00", "2024-01-05T00:00:00", "2024-01-05T00:00:00+00:00"),
    ]
    assert compare(rows(result), result).message == "match"


def test_sums_of_integers_are_exact(shop: DatabaseSpec) -> None:
    result = execute(shop, "SELECT SUM(250001) AS s, 100000.01::DECIMAL(10, 2) AS d FROM range(1)")
    assert compare([{"s": 250001, "d": 100000.01}], result).passed
    assert not compare([{"s": 250002, "d": 100000.01}], result).passed


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("INSERT INTO orders VALUES (1, 2)", "only SELECT"),
        ("COPY orders TO '/tmp/x.csv'", "only SELECT"),
        ("ATTACH '/tmp/x.db'", "only SELECT"),
        ("SET memory_limit = '9GB'", "only SELECT"),
        ("INSTALL httpfs", "only SELECT"),
        ("SELECT 1; SELECT 2", "only one"),
        ("SELECT * FROM read_csv('/etc/passwd')", "Permission"),
        ("SELECT * FROM '/etc/passwd'", "does not exist"),
        ("", "no SQL"),
        ("SELCT 1", "syntax"),
    ],
)
def test_only_one_harmless_select(shop: DatabaseSpec, sql: str, words: str) -> None:
    with pytest.raises(SqlError, match=words) as caught:
        execute(shop, sql)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "end",
    [";", ";\n", ";;", " ;\n-- a note", "; -- it's one;", ";\n/* a /* note */ ; */\n", "", " -- a note"],
)
def test_what_ends_a_query_is_none_of_it(shop: DatabaseSpec, end: str) -> None:
    assert bare_statement(f"\nSELECT 1{end}") == "SELECT 1"
    found = execute(shop, f"SELECT DATE '2024-01-05' AS d, 'a; -- b' AS t{end}")
    assert rows(found) == [{"d": "2024-01-05T00:00:00", "t": "a; -- b"}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ';--'", "SELECT 'it''s; '", r"SELECT E'\'; -- '", 'SELECT 1 AS "a;"', "SELECT $$ ; -- $$",
        "SELECT $t$ ; $$ /* $t$", "SELECT 1; SELECT 2", "SELECT 1 /* ; */ + 2", "SELECT 1; 'open", "SELECT 4 / 2 - -1",
    ],
)  # fmt: skip
def test_what_stands_in_texts_and_between_statements_is_kept(sql: str) -> None:
    assert bare_statement(sql) == sql


@pytest.mark.parametrize("end", ["/* open", ";/* open", "; /* a /* b */ -- open", "-- a note\n/* c */ /*"])
def test_a_comment_without_an_end_is_kept_for_a_database_that_refuses_it(
    shop: DatabaseSpec, end: str
) -> None:
    sql = f"SELECT 1 AS a {end}"
    assert bare_statement(sql, keep_open=True) == sql
    assert bare_statement(sql) == "SELECT 1 AS a"  # in brackets it would be a comment to their end
    with pytest.raises(SqlError, match="unterminated"):
        execute(shop, sql)


def test_a_comment_ends_where_it_ends_for_the_database(shop: DatabaseSpec) -> None:
    assert rows(execute(shop, "SELECT 1 AS a -- one\r, 2 AS b")) == [{"a": 1, "b": 2}]


def test_a_comment_that_ends_for_sqlite_ends_no_statement() -> None:
    assert bare_statement("SELECT 1 /* a /* b */ + 2;") == "SELECT 1 /* a /* b */ + 2"
    assert bare_statement("/* ; no end") == ""


def test_top_level_order_is_seen(shop: DatabaseSpec) -> None:
    assert execute(shop, "SELECT id FROM orders ORDER BY 1 DESC").ordered
    assert execute(shop, "WITH a AS (SELECT * FROM orders) SELECT id FROM a ORDER BY id").order_columns == (
        "id",
    )
    assert not execute(shop, "SELECT id FROM (SELECT id FROM orders ORDER BY id)").ordered
    assert not execute(shop, "SELECT row_number() OVER (ORDER BY id) AS n FROM orders").ordered
    assert execute(shop, "SELECT 1 AS a UNION ALL SELECT 2 ORDER BY a DESC").ordered


def test_row_order_counts_up_to_ties(shop: DatabaseSpec) -> None:
    result = execute(shop, "SELECT id % 2 AS k, id FROM orders WHERE id < 4 ORDER BY k")
    answer = rows(result)
    tied = [answer[1], answer[0], answer[2], answer[3]]
    assert compare(tied, result).message == "match"
    assert compare(answer[::-1], result).message == "match (row order differs)"


def test_order_survives_casting(shop: DatabaseSpec) -> None:
    result = execute(
        shop, "SELECT DATE '2024-01-01' + id::INT AS d FROM orders ORDER BY d DESC LIMIT 3 -- end"
    )
    assert [row["d"][:10] for row in rows(result)] == ["2024-01-10", "2024-01-09", "2024-01-08"]


def test_time_limit_and_cancel(shop: DatabaseSpec) -> None:
    slow = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3"
    with pytest.raises(SqlError, match=r"longer than 0\.2 s"):
        execute(shop, slow, timeout=0.2)
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    with pytest.raises(SqlError, match="cancelled"):
        execute(shop, slow, cancel=cancel)


def test_a_query_whose_time_is_up_while_its_rows_are_read_says_so(shop: DatabaseSpec) -> None:
    with pytest.raises(SqlError, match=r"^the query took longer than 0\.5 s$"):
        execute(shop, "SELECT * FROM range(100000000000)", timeout=0.5)


@contextlib.contextmanager
def held_by_another(path: str | None) -> Iterator[None]:
    """A database that another process has open to write."""
    code = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); c.execute('CREATE TABLE z AS SELECT 42 AS a');"
        "print('ready', flush=True); sys.stdin.read()"
    )
    assert path is not None
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        holder.stdout.readline()
        yield
        holder.stdin.close()


@pytest.mark.real
def test_a_locked_file_is_copied(shop: DatabaseSpec) -> None:
    with held_by_another(shop.path):
        assert rows(execute(shop, "SELECT count(*) AS n FROM orders")) == [{"n": 10}]


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own for temporary files, also for the processes that answer queries."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    end_idle()
    yield folder
    end_idle()


@pytest.mark.real
def test_no_copy_of_a_locked_file_is_left_when_its_query_is_cancelled(
    shop: DatabaseSpec, copies: Path
) -> None:
    cancel = threading.Event()
    threading.Timer(4, cancel.set).start()
    with held_by_another(shop.path), pytest.raises(SqlError, match="cancelled"):
        execute(shop, "SELECT count(*) FROM range(1000000) a, range(1000000) b", timeout=60, cancel=cancel)
    assert list(copies.iterdir()) == []


def test_a_copy_that_was_being_made_goes_with_its_process(copies: Path) -> None:
    worker = SqlWorker()
    half, others = (copies / f"tui-eval-db-{number}-x" for number in (worker.process.pid, 1))
    for folder in (half, others):
        folder.mkdir()
        (folder / "shop.duckdb").write_bytes(b"half of it")
    worker.kill()
    assert list(copies.iterdir()) == [others]


def test_sqlite_is_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE t (id INTEGER, d DATE, at DATETIME, ok BOOLEAN, v TEXT, n NUMERIC, mixed)"
    )
    connection.execute("INSERT INTO t VALUES (1, '2024-01-05', '2024-01-05 10:00:00', 1, 'a', 1.5, 'x')")
    connection.execute("INSERT INTO t VALUES (2, NULL, NULL, 0, NULL, 2, 3)")
    connection.execute("CREATE VIEW w AS SELECT id FROM t")
    connection.commit()
    connection.close()
    spec = DatabaseSpec("s", "sqlite", str(path))
    assert rows(execute(spec, "SELECT * FROM t ORDER BY id")) == [
        {"id": 1, "d": "2024-01-05T00:00:00", "at": "2024-01-05T10:00:00", "ok": True, "v": "a", "n": 1.5,
         "mixed": "x"},
        {"id": 2, "d": None, "at": None, "ok": False, "v": None, "n": 2.0, "mixed": 3},
    ]  # fmt: skip
    assert rows(execute(spec, "SELECT count(*) AS n FROM w")) == [{"n": 2}]
    assert "t(id BIGINT, d DATE" in schema_text(spec)
    with pytest.raises(SqlError, match="Permission"):
        execute(spec, "SELECT * FROM read_csv('/etc/passwd')")


def test_two_files_of_one_name_are_an_error_that_names_both(tmp_path: Path) -> None:
    for name in ("orders.csv", "orders.tsv", "other.csv"):
        (tmp_path / name).write_text("a\n1\n")
    files = DatabaseSpec("raw", "files", str(tmp_path))
    with pytest.raises(SqlError, match=r"'raw': orders.csv and orders.tsv are both the table orders: rename"):
        execute(files, "SELECT * FROM orders")
    assert rows(execute(files, "SELECT * FROM other")) == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("id,note\n#1,a\n3,c\n", [("#1", "a"), ("3", "c")]),  # to DuckDB's sniffer a comment
        ("id,note\n1,a\n# so far\n3,c\n", [(1, "a"), (3, "c")]),
        ("Report of May\n\nid,note,z\n1,a,b\n3,c,d\n", [(1, "a", "b"), (3, "c", "d")]),
        ("Made,today\nBy,me\n\nid,note,z\n1,a,b\n3,c,d\n5,e,f\n4,e,f\n7,g,h\n", 5),
        ('"City, State"\nx\n', 1),
        ("id,v\n1,2\n3\n4,5,6\n", "line 4 has another number of values than those above"),
        ("id,v\n" + "1,2\n" * 50 + "3,4,5\n", "line 52 has another number of values than those above"),
        ("name,city\nann,rome\nsmith, john,oslo\n", "line 3 has another number of values"),
        ("id,name,v\n1,a,2\n2,b", "not every line has 3 values, as the first has"),
        ("id;v\n1;2\n3\n", "not every line has 2 values, as the first has"),
    ],
)
def test_no_row_of_a_csv_file_is_left_out_without_a_word(tmp_path: Path, text: str, found: Any) -> None:
    (tmp_path / "t.csv").write_text(text)
    files = DatabaseSpec("raw", "files", str(tmp_path))
    if isinstance(found, str):
        with pytest.raises(SqlError, match=r"^database 'raw': t\.csv: " + found):
            execute(files, "SELECT count(*) FROM t")
        return
    frame = execute(files, "SELECT * FROM t").frame
    assert frame.height == found if isinstance(found, int) else frame.rows() == found


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ('[{"id": 1}, {"id": 2},', False),
        ('[{"id": 1},  \n', False),
        ('[{"id": 1}]\n', True),
        ('{"id": 1}\n', True),
    ],
)
def test_a_json_list_that_is_cut_off_is_no_table(tmp_path: Path, text: str, whole: bool) -> None:
    """DuckDB takes what ends in a comma for whole: rows that are not written yet were not expected."""
    (tmp_path / "t.json").write_text(text)
    files = DatabaseSpec("raw", "files", str(tmp_path))
    if whole:
        assert rows(execute(files, "SELECT * FROM t")) == [{"id": 1}]
        return
    with pytest.raises(SqlError, match=r"^database 'raw': t\.json: its list is not closed"):
        execute(files, "SELECT * FROM t")


def test_the_tables_of_a_folder_are_told_without_those_that_cannot_be_read(tmp_path: Path) -> None:
    """One broken file left a model without any of them."""
    (tmp_path / "good.csv").write_text("id\n1\n")
    (tmp_path / "bad.csv").write_text("id,v\n1,2\n3\n4,5,6\n")
    (tmp_path / "cut.json").write_text('[{"id": 1},')
    (tmp_path / "worse.parquet").write_text("x")
    files = DatabaseSpec("raw", "files", str(tmp_path))
    assert schema_text(files) == "good(id BIGINT)"
    with pytest.raises(SqlError, match=r"^database 'raw': bad\.csv: line 4 has"):
        execute(files, "SHOW TABLES")  # what is expected is all of them


def test_a_file_that_is_no_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    for name in ("book.xlsx", "old.csv.gz"):
        (tmp_path / name).write_text("x")
    files = DatabaseSpec("raw", "files", str(tmp_path))
    for table, name in (("book", r"book\.xlsx"), ("old", r"old\.csv\.gz")):
        with pytest.raises(SqlError, match=f"^database 'raw': {name} is not read: only .csv, "):
            execute(files, f"SELECT * FROM a JOIN {table} USING (id)")
    assert rows(execute(files, "WITH book(q) AS (SELECT 1) SELECT q FROM book")) == [{"q": 1}]


def test_a_view_over_files_beside_the_database_says_what_to_do(shop: DatabaseSpec, tmp_path: Path) -> None:
    import duckdb

    (tmp_path / "raw.csv").write_text("a\n1\n")
    with duckdb.connect(str(shop.path)) as connection:
        connection.execute(f"CREATE VIEW raw AS SELECT * FROM read_csv('{tmp_path / 'raw.csv'}')")
    with pytest.raises(
        SqlError, match=r"raw\.csv.* \(SQL reads no files here, nor do views over them: make each a table, or"
    ):
        execute(shop, "SELECT * FROM raw")


def test_a_folder_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,x\n2,y\n")
    (tmp_path / "b.json").write_text('[{"id": 1, "v": 2.5}]')
    spec = DatabaseSpec("f", "files", str(tmp_path))
    assert rows(execute(spec, "SELECT name, v FROM a JOIN b USING (id)")) == [{"name": "x", "v": 2.5}]
    with pytest.raises(SqlError, match="Permission"):
        execute(spec, f"SELECT * FROM read_csv('{tmp_path}/a.csv')")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (DatabaseSpec("m", "mysql"), "use duckdb, sqlite, files or postgres"),
        (DatabaseSpec("n", "duckdb", "/nowhere.duckdb"), "there is no"),
        (DatabaseSpec("n", "sqlite", __file__), "not a database"),
        (DatabaseSpec("n", "files", "/proc/self/fd"), "no CSV"),
    ],
)
def test_what_cannot_be_opened_says_so(spec: DatabaseSpec, words: str) -> None:
    with pytest.raises(SqlError, match=words):
        execute(spec, "SELECT 1")


def test_integers_of_39_digits_are_exact(shop: DatabaseSpec) -> None:
    largest = 2**127 - 1
    result = execute(shop, f"SELECT {largest}::HUGEINT AS h UNION ALL SELECT NULL")
    assert {row["h"] for row in rows(result)} == {largest, None}
    assert compare([{"h": largest}, {"h": None}], result).passed
    assert not compare([{"h": largest + 3}, {"h": None}], result).passed
    assert result.types == {"h": "BIGNUM"} and execute(shop, "SELECT 1::HUGEINT h").types == {"h": "HUGEINT"}


def test_two_columns_of_one_name_are_told_apart_whatever_their_types(shop: DatabaseSpec) -> None:
    found = execute(shop, "SELECT 1 AS id, 2 AS id, 3 AS id_1")
    assert rows(found) == [{"id": 1, "id_2": 2, "id_1": 3}] and found.renamed == {"id_2": "id"}
    assert not execute(shop, "SELECT 1 AS id, 2 AS id_1").renamed


def test_a_day_that_there_is_not_in_sqlite_stays_text(tmp_path: Path) -> None:
    spec = sqlite_of(tmp_path, "INSERT INTO t VALUES (1, '2024-02-30', '2024-01-05 25:00:00')")
    wanted = [{"id": 1, "d": "2024-02-30", "since": "2024-01-05 25:00:00"}]
    assert rows(execute(spec, "SELECT * FROM t")) == wanted


@pytest.mark.parametrize("filled", ["", "INSERT INTO t VALUES (1, NULL, NULL)"])
def test_a_date_column_of_sqlite_without_dates_is_compared_as_one(tmp_path: Path, filled: str) -> None:
    sql = "SELECT count(*) AS n FROM t WHERE d > DATE '2024-01-01' OR year(since) = 2024"
    assert rows(execute(sqlite_of(tmp_path, filled), sql)) == [{"n": 0}]


def test_a_misspelt_table_of_sqlite_is_told_which_there_are(tmp_path: Path) -> None:
    spec = sqlite_of(tmp_path, "CREATE TABLE people (id INTEGER)")
    with pytest.raises(SqlError) as caught:
        execute(spec, "SELECT * FROM peeple")
    assert 'Did you mean "people"' in caught.value.detail


def test_a_broken_file_matters_to_the_queries_that_read_it(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("id\n1\n")
    (tmp_path / "broken.json").write_text('{"not": "rows" broken')
    spec = DatabaseSpec("f", "files", str(tmp_path))
    assert rows(execute(spec, "SELECT * FROM main.good")) == [{"id": 1}]
    with pytest.raises(SqlError, match=r"broken\.json: .*Malformed JSON"):
        execute(spec, "SELECT * FROM good, broken")
    tried = list(execute_all(spec, ["SELECT * FROM broken", "SELECT * FROM good"], timeout=10, limit=5))
    assert isinstance(tried[0], SqlError) and isinstance(tried[1], SqlResult)
    with pytest.raises(SqlError) as caught:
        execute(spec, "SELECT * FROM goood")
    assert 'Did you mean "good"' in caught.value.detail


def test_a_csv_that_is_not_utf_8_is_said_to_be_that(tmp_path: Path) -> None:
    (tmp_path / "cafes.csv").write_bytes(b"id,name\n1,caf\xe9\n")
    with pytest.raises(SqlError, match=r"cafes\.csv: .*Line: 2: .*not utf-8 encoded"):
        execute(DatabaseSpec("f", "files", str(tmp_path)), "SELECT * FROM cafes")


def test_a_csv_whose_late_rows_are_of_another_type_is_read(tmp_path: Path) -> None:
    many = "".join(f"{number}\n" for number in range(30_000))
    (tmp_path / "big.csv").write_text(f"code\n{many}x7\n")
    spec = DatabaseSpec("f", "files", str(tmp_path))
    sql = "SELECT count(*) AS n, max(code) AS last FROM big"
    assert rows(execute(spec, sql)) == [{"n": 30_001, "last": "x7"}]


@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_tables_joined_by_their_columns_names_are_there_for_each_of_many_queries(
    tmp_path: Path, kind: str
) -> None:
    spec = sqlite_of(
        tmp_path, "CREATE TABLE u (id INTEGER)", "INSERT INTO u VALUES (5)", "INSERT INTO t (id) VALUES (5)"
    )
    if kind == "files":
        for name in "tu":
            (tmp_path / f"{name}.csv").write_text("id\n5\n")
        spec = DatabaseSpec("f", "files", str(tmp_path))
    queries = ["SELECT id FROM t JOIN u USING (id)", "SELECT 1 AS id", "SELECT FROM WHERE"]
    assert rows(execute(spec, "SELECT count(*) AS n FROM duckdb_tables()")) == [{"n": 2}]
    joined, one, faulty = execute_all(spec, queries, timeout=10, limit=5)
    assert isinstance(joined, SqlResult) and rows(joined) == [{"id": 5}]
    assert isinstance(one, SqlResult) and isinstance(faulty, SqlError) and "syntax error" in str(faulty)


def sqlite_of(folder: Path, *statements: str) -> DatabaseSpec:
    """A database with a table of an id, a day and a moment."""
    with closing(sqlite3.connect(folder / "days.db")) as made:
        made.execute("CREATE TABLE t (id INTEGER, d DATE, since TIMESTAMP)")
        for statement in statements:
            made.execute(statement)
        made.commit()
    return DatabaseSpec("s", "sqlite", str(folder / "days.db"))


def test_a_path_and_a_query_that_are_not_utf_8_are_said_to_be(tmp_path: Path, shop: DatabaseSpec) -> None:
    """`check` ended with an internal error."""
    folder = tmp_path / "caf\udce9"
    folder.mkdir()
    spec = DatabaseSpec("d", "files", str(folder))
    for error in (*execute_all(spec, ["SELECT 1", "SELECT 2"], timeout=30, limit=5),):
        assert isinstance(error, SqlError) and str(error) == "the path of database 'd' is not UTF-8"
    with pytest.raises(SqlError, match="the path of database 'd' is not UTF-8"):
        execute(spec, "SELECT 1", timeout=30)
    with pytest.raises(SqlError, match="half of a pair of surrogates"):
        execute(shop, "SELECT '\ud800'", timeout=30)
