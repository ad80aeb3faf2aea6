"""Expected SQL on a SQLite file: SQLite itself runs it, as the user's agent does; DuckDB what SQLite does not
understand."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tui_eval.config.project import DatabaseSpec
from tui_eval.frames import nao_reference
from tui_eval.frames.compare import compare
from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.databases import BadDatabase, NoDatabase
from tui_eval.frames.diagnosis.diagnose import diagnosis_of
from tui_eval.frames.difference import align
from tui_eval.frames.query_words import changing
from tui_eval.frames.sql import SqlError, SqlResult, end_idle, execute, execute_all, rows
from tui_eval.frames.tied_rows import chance_in, cut_ties, query_of_places, query_of_ties, with_places

ORDERS = """
CREATE TABLE orders (id INTEGER, customer TEXT, items INTEGER, day DATE, at TIMESTAMP, paid BOOLEAN, price DECIMAL(8, 2));
INSERT INTO orders VALUES
  (1, 'Anna', 5, '2024-01-05', '2024-01-05 10:00', 1, 1.5),
  (2, 'bob', 2, '2024-02-05', '2024-02-05 10:00:00.500', 0, 2),
  (3, 'ANNA', 2, NULL, NULL, NULL, 2.25);
CREATE VIEW days AS SELECT id, day FROM orders;
CREATE VIEW loads AS SELECT load_extension('/nowhere.so') AS it;
CREATE VIRTUAL TABLE words USING fts5(body);
INSERT INTO words VALUES ('hello world'), ('good bye');
"""


@pytest.fixture
def shop(tmp_path: Path) -> DatabaseSpec:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as made:
        made.executescript(ORDERS)
    return DatabaseSpec("shop", "sqlite", str(tmp_path / "shop.db"))


def in_sqlite(shop: DatabaseSpec, sql: str) -> list[dict[str, Any]]:
    """What an agent has that runs a query with the standard library."""
    with closing(sqlite3.connect(shop.path or "")) as connection:
        cursor = connection.execute(sql)
        names = [entry[0] for entry in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 5/2 AS half, 7 % 3 AS rest",
        "SELECT sum(items)/count(*) AS per_order FROM orders",
        "SELECT count(*) AS n FROM orders WHERE customer LIKE 'anna%'",
        "SELECT id, date(day, '+1 day') AS due, date(day, 'start of month') AS month FROM orders",
        "SELECT julianday('2024-01-02') - julianday('2024-01-01') AS days, total(price) AS sold FROM orders",
        "SELECT id FROM orders ORDER BY id LIMIT 1, 1",
        "SELECT group_concat(customer, '|') AS names, char(65, 66) AS ab FROM orders",
        "SELECT strftime('%Y-%m', day) AS month, count(*) AS n FROM orders GROUP BY 1 ORDER BY 1",
        "SELECT count(*), max(id) FROM orders",
        "SELECT day, max(id) AS last FROM orders",
        'SELECT id FROM orders WHERE customer = "bob"',
        "SELECT (1 = 1) AS yes, paid FROM orders",
        "SELECT id, paid, day, at, price FROM orders ORDER BY paid",
        "SELECT body FROM words WHERE words MATCH 'hello'",
        "SELECT value FROM json_each('[1, 2]')",
        "SELECT name FROM pragma_table_info('orders')",
        "WITH a AS (SELECT 'a' || NULL AS x, '10' > 9 AS y) SELECT * FROM a; -- end",
    ],
)
def test_an_agent_that_runs_the_same_query_in_sqlite_is_right(shop: DatabaseSpec, sql: str) -> None:
    result = execute(shop, sql)
    assert result.dialect == "sqlite" and result.ordered == ("ORDER BY" in sql)
    assert compare(in_sqlite(shop, sql), result).message == "match"


def test_columns_of_tables_have_the_types_that_these_declare(shop: DatabaseSpec) -> None:
    found = execute(shop, "SELECT id, day, at, paid, price, customer FROM orders WHERE id < 3")
    assert found.types == {
        "id": "BIGINT", "day": "DATE", "at": "TIMESTAMP", "paid": "BOOLEAN", "price": "DOUBLE", "customer": "VARCHAR",
    }  # fmt: skip
    assert [row["day"] for row in rows(found)] == ["2024-01-05T00:00:00", "2024-02-05T00:00:00"]
    assert [row["at"] for row in rows(found)] == ["2024-01-05T10:00:00", "2024-02-05T10:00:00.5"]
    assert execute(shop, "SELECT day FROM days WHERE id > 7").types == {"day": "DATE"}
    assert execute(shop, "SELECT max(day) AS last FROM orders").types == {"last": "DATE"}
    assert execute(shop, "SELECT customer || '' AS c, NULL AS n FROM orders").types == {
        "c": "VARCHAR",
        "n": '"NULL"',
    }


@pytest.mark.parametrize("sql", ["SELECT id, paid FROM orders", "SELECT id, items > 2 AS paid FROM orders"])
def test_true_and_1_are_the_same_truth_in_sqlite_which_has_none(shop: DatabaseSpec, sql: str) -> None:
    result, plain = execute(shop, sql), in_sqlite(shop, sql)
    truth = [row | {"paid": None if row["paid"] is None else bool(row["paid"])} for row in plain]
    assert compare(plain, result).passed and compare(truth, result).passed
    assert not compare([row | {"paid": not row["paid"]} for row in truth], result).passed
    assert not compare([row | {"paid": 2} for row in truth], result).passed


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT year(day) AS y FROM orders WHERE id = 1", 2024),
        ("SELECT day::VARCHAR AS y FROM orders WHERE id = 1", "2024-01-05"),
        ("SELECT strftime(day, '%Y-%m') AS y FROM orders WHERE id = 1", "2024-01"),
        ("SELECT CAST(day AS DATE) AS y FROM orders WHERE id = 1", "2024-01-05T00:00:00"),
        ("FROM orders SELECT items AS y WHERE customer ILIKE 'BOB'", 2),
    ],
)
def test_what_was_written_for_duckdb_still_runs_there(shop: DatabaseSpec, sql: str, wanted: object) -> None:
    found = execute(shop, sql)
    assert found.dialect == "duckdb" and rows(found) == [{"y": wanted}]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT idd FROM orders", r'Binder Error: Referenced column "idd" not found'),
        ("SELECT * FROM ordrs", "Catalog Error: Table with name ordrs does not exist"),
        ("SELECT nope(id) FROM orders", "Catalog Error: Scalar Function with name nope"),
        ("SELCT 1", "Parser Error: syntax error"),
        (
            "SELECT julianday(dayy) FROM orders",
            "^SQLite Error: no such column: dayy .nor as DuckDB's dialect: ",
        ),
        ("SELECT abs(-9223372036854775808)", "^SQLite Error: integer overflow$"),
        ("SELECT 1; SELECT 2", "only one SQL statement"),
        ("EXPLAIN SELECT 1", "only SELECT is allowed"),
        ("WITH a AS (SELECT 1) DELETE FROM orders", "only SELECT is allowed"),
        ("WITH a AS (SELECT 1) UPDATE sqlite_master SET sql = ''", "only SELECT is allowed"),
        ("ATTACH '{folder}/new.db' AS other", "only SELECT is allowed"),
        ("VACUUM INTO '{folder}/new.db'", "Parser Error"),
        ("PRAGMA writable_schema = 1", "only SELECT is allowed"),
        ("SELECT * FROM pragma_wal_checkpoint", "unsafe|not exist|not authorized"),
        ("SELECT load_extension('/nowhere.so')", "load_extension does not exist"),
        ("SELECT * FROM loads", "unsafe use of load_extension"),
        ("SELECT fts3_tokenizer('simple')", "fts3_tokenizer does not exist"),
        ("SELECT fts3_tokenizer('simple', x'4141414141414141')", "fts3_tokenizer does not exist"),
        ("SELECT hex(zeroblob(900000000))", "too big"),
    ],
)
def test_nothing_but_reading_is_allowed_and_errors_are_one_line(
    shop: DatabaseSpec, tmp_path: Path, sql: str, words: str
) -> None:
    before = Path(shop.path or "").read_bytes()
    with pytest.raises(SqlError, match=words) as caught:
        execute(shop, sql.format(folder=tmp_path))
    assert "\n" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["shop.db"]
    assert Path(shop.path or "").read_bytes() == before


def test_the_time_of_a_query_and_its_memory_are_limited(shop: DatabaseSpec) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {} FROM c"
    with pytest.raises(SqlError, match=r"^the query took longer than 0\.3 s$"):
        execute(shop, endless.format("count(*)"), timeout=0.3)
    with pytest.raises(SqlError, match="64 MB of memory"):
        execute(shop, endless.format("zeroblob(30000000) AS b"), timeout=600, memory_mb=64)


@pytest.mark.real
def test_a_cell_that_memory_does_not_hold_is_said_to_be_so_and_the_next_query_is_answered(
    shop: DatabaseSpec,
) -> None:
    """Polars waited for ever, or said its own words, where it ran out of memory in one of its threads."""
    large, small, words = "SELECT hex(zeroblob(100000000)) AS x", "SELECT 1 AS a", "needs more than 64 MB"
    began = time.monotonic()
    with pytest.raises(SqlError, match=f"^the query {words} of memory$"):
        execute(shop, large, timeout=60, memory_mb=64)
    assert rows(execute(shop, small)) == [{"a": 1}]
    first, second = execute_all(shop, [large, small], timeout=60, limit=1, memory_mb=64)
    assert isinstance(first, SqlError) and words in str(first)
    assert isinstance(second, SqlResult) and rows(second) == [{"a": 1}]
    assert time.monotonic() - began < 50


@pytest.mark.real
def test_a_query_that_cannot_be_interrupted_ends_soon_in_a_new_process_too(shop: DatabaseSpec) -> None:
    """A process has a minute to be there; a query had it, too, where it was the first one."""
    end_idle()
    endless = "SELECT instr(hex(zeroblob(9000000)), hex(zeroblob(4000000)) || '1') AS x"
    began = time.monotonic()
    with pytest.raises(SqlError, match=r"^the query took longer than 0\.2 s$"):
        execute(shop, endless, timeout=0.2)
    assert time.monotonic() - began < 45


def test_of_many_queries_each_runs_where_it_is_understood(shop: DatabaseSpec) -> None:
    queries = [
        "SELECT 5/2 AS a",
        "SELECT year(day) AS a FROM days",
        "SELECT nope",
        "SELECT id AS a FROM orders",
    ]
    one, other, wrong, last = execute_all(shop, queries, timeout=10, limit=1)
    assert isinstance(one, SqlResult) and rows(one) == [{"a": 2}] and one.dialect == "sqlite"
    assert isinstance(other, SqlResult) and rows(other) == [{"a": 2024}] and other.dialect == "duckdb"
    assert isinstance(wrong, SqlError) and isinstance(last, SqlResult) and rows(last) == [{"a": 1}]
    unsafe, plain = execute_all(shop, ["SELECT year(it) FROM loads", "SELECT 1 AS a"], timeout=10, limit=1)
    assert isinstance(unsafe, SqlError) and isinstance(plain, SqlResult)
    nowhere = DatabaseSpec("n", "sqlite", "/nowhere.db")
    assert all(isinstance(one, SqlError) for one in execute_all(nowhere, queries, timeout=10, limit=1))


def test_rows_that_tie_at_a_limit_are_found_in_sqlite(shop: DatabaseSpec) -> None:
    sql = "SELECT id, items/2 AS half FROM orders WHERE customer LIKE '%n%' OR id = 2 ORDER BY items/2 LIMIT 0, 1"
    expected = execute(shop, sql)
    asked = query_of_ties(sql, expected, expected.dialect)
    assert asked is not None
    given = execute(shop, asked.sql)
    ties = cut_ties(asked, given)
    assert given.dialect == "sqlite" and ties is not None
    assert ties.allow([{"id": 3, "half": 1}]) and ties.allow([{"id": 2, "half": 1}])
    assert not ties.allow([{"id": 1, "half": 2}])


def test_an_order_by_what_is_no_column_of_the_result_is_known_in_sqlite(shop: DatabaseSpec) -> None:
    sql = "SELECT id FROM orders ORDER BY items/2"
    expected = execute(shop, sql)
    assert expected.ordered and not expected.order_columns
    asked = query_of_places(sql, expected, expected.dialect)
    given = execute(shop, asked or "")
    assert given.dialect == "sqlite"
    assert (places := with_places(expected, given).places) is not None and places.to_list() == [1, 1, 3]


@pytest.mark.parametrize(
    ("sql", "places"),
    [
        ("SELECT b FROM named ORDER BY b", [1, 1, 3, 3, 5]),
        ("SELECT n, b AS name FROM named ORDER BY name DESC, n", [1, 2, 3, 4, 5]),
        ("SELECT b FROM named ORDER BY b COLLATE BINARY", [1, 2, 3, 4, 5]),
        ("SELECT n FROM named ORDER BY n", None),
        ("SELECT b AS n FROM named UNION ALL SELECT b FROM named ORDER BY n LIMIT 4", [1, 1, 1, 1]),
    ],
)
def test_texts_that_their_collation_does_not_tell_apart_tie(
    tmp_path: Path, sql: str, places: list[int] | None
) -> None:
    with closing(sqlite3.connect(tmp_path / "named.db")) as made:
        made.executescript("""
            CREATE TABLE named (n INTEGER, b TEXT COLLATE NOCASE);
            INSERT INTO named VALUES (1, 'a'), (2, 'A'), (3, 'B'), (4, 'b'), (5, 'x');
        """)
    spec = DatabaseSpec("named", "sqlite", str(tmp_path / "named.db"))
    expected = execute(spec, sql)
    asked = query_of_places(sql, expected, expected.dialect)
    assert (asked is None) == (places is None)
    if asked is None:
        return
    placed = with_places(expected, execute(spec, asked))
    assert placed.places is not None and placed.places.to_list() == places
    given, ordered = rows(expected), ComparisonSettings.of({"ordered": True})
    if places == [1, 1, 3, 3, 5]:
        assert not compare([given[at] for at in (1, 0, 3, 2, 4)], expected, ordered).passed
        assert compare([given[at] for at in (1, 0, 3, 2, 4)], placed, ordered).passed
        assert not compare([given[at] for at in (2, 1, 0, 3, 4)], placed, ordered).passed


def test_rows_of_a_window_are_told_apart_in_sqlite(shop: DatabaseSpec) -> None:
    sql = "SELECT id, row_number() OVER (ORDER BY {}) AS place FROM orders"

    def words(column: str) -> str:
        expected = execute(shop, sql.format(column))
        asked = chance_in(sql.format(column), expected, expected.dialect)
        try:
            query = next(asked)
            while True:
                query = asked.send(execute(shop, query))
        except StopIteration as end:
            return end.value

    assert words("id") == ""
    assert "may take others of rows that tie" in words("items")


def test_the_clock_of_sqlite_is_noted() -> None:
    assert list(changing("SELECT count(*) AS n FROM orders WHERE day > date('now', '-7 days')")) == [
        "'now' changes what is expected from day to day"
    ]
    assert list(changing("SELECT strftime('%Y', 'now') AS y"))
    assert not list(changing("SELECT 'now' AS word, date(day) AS d FROM orders"))


PRICES = """
CREATE TABLE prices (sku TEXT, p REAL, any_, ids);
INSERT INTO prices VALUES ('a', 12.0, 1.0, 100001), ('b', 'N/A', 'x', '100002'), ('c', 2.5, '7', 'A-1'), ('d', NULL, 1e20, x'41');
"""


@pytest.fixture
def prices(tmp_path: Path) -> DatabaseSpec:
    with closing(sqlite3.connect(tmp_path / "prices.db")) as made:
        made.executescript(PRICES)
    return DatabaseSpec("prices", "sqlite", str(tmp_path / "prices.db"))


def _edited(given: list[dict[str, Any]], name: str, value: Any, at: int = 0) -> list[dict[str, Any]]:
    return [row | {name: value} if number == at else row for number, row in enumerate(given)]


@pytest.mark.parametrize("reference", [False, True])
def test_numbers_beside_a_text_are_numbers_in_sqlite(prices: DatabaseSpec, reference: bool) -> None:
    """They were texts, of which 12.0 is another one than 12, and 1.2000000000000002 than 1.2."""

    def passed(given: list[dict[str, Any]], result: SqlResult) -> bool | None:
        if reference:
            return nao_reference.compare(given, rows(result), None, result.columns, types=result.types).passed
        judged = compare(given, result)
        difference = align(result, given, None)
        assert (difference.different_rows.is_empty()) == judged.passed  # the table says the same
        return judged.passed

    sql = "SELECT sku, p, any_ FROM prices"
    result, given = execute(prices, sql), in_sqlite(prices, sql)
    assert rows(result) == given and result.types == {"sku": "VARCHAR", "p": "MIXED", "any_": "MIXED"}
    assert passed(given, result) and passed(given[::-1], result) and passed(_edited(given, "p", 12), result)
    assert passed(_edited(given, "any_", 1), result)
    assert not passed(_edited(given, "p", 12.5), result) and not passed(_edited(given, "p", None), result)
    assert not passed(_edited(given, "p", "n/a", 1), result) and not passed(_edited(given, "p", 0, 1), result)
    assert not passed(_edited(given, "p", 0, 3), result) and not passed(
        _edited(given, "p", "null", 3), result
    )
    if reference:
        return
    assert passed(_edited(given, "any_", 7, 2), result) and passed(_edited(given, "p", "12.00"), result)
    assert not passed(_edited(given, "any_", 7.00001, 2), result)  # a text is no number with a tolerance
    sql = "SELECT CASE sku WHEN 'b' THEN 'none' ELSE p * 1.1 END AS p FROM prices"
    result, given = execute(prices, sql), in_sqlite(prices, sql)
    assert passed(given, result) and passed([row | {"p": round(row["p"], 6)} if isinstance(row["p"], float) else row for row in given], result)  # fmt: skip


def test_whole_numbers_beside_texts_are_exact_in_sqlite(prices: DatabaseSpec) -> None:
    result = execute(prices, "SELECT ids FROM prices")
    assert rows(result) == [{"ids": 100001}, {"ids": "100002"}, {"ids": "A-1"}, {"ids": "A"}]
    given = rows(result)
    assert compare(given, result).passed and compare(_edited(given, "ids", "100001"), result).passed
    assert compare(_edited(given, "ids", 100002, 1), result).passed
    for at, other in ((0, 100002), (1, 100001), (2, "a-1")):
        assert not compare(_edited(given, "ids", other, at), result).passed
    loose = ComparisonSettings.of({"rtol": 0.1})
    assert compare(_edited(given, "ids", 100003), result, loose).passed
    assert not compare(_edited(given, "ids", "100003", 1), result, loose).passed
    exact = ComparisonSettings.of({"rtol": 0, "atol": 0})
    assert compare(given, result, exact).passed
    assert not compare(_edited(given, "ids", 100003), result, exact).passed


def test_a_mixed_column_of_sqlite_in_duckdb_has_shortest_texts(prices: DatabaseSpec) -> None:
    result = execute(prices, "SELECT sku, p::VARCHAR AS p FROM prices WHERE sku ILIKE 'A'")
    assert compare([{"sku": "a", "p": 12}], result).passed


def test_what_mixed_columns_have_in_common_is_no_null(prices: DatabaseSpec) -> None:
    sql = "SELECT sku, p FROM prices"
    result = execute(prices, sql)
    given = [row | {"p": 3.25} if row["p"] is not None else row for row in rows(result)]
    judged = compare(given, result)
    assert judged.text is not None and "null" not in judged.text
    assert judged.difference is not None
    found = diagnosis_of(judged.difference).findings
    assert not [one for one in found if "null" in one.code]
    assert '"' not in judged.text and "\0" not in judged.text and "N/A" in judged.text


@pytest.mark.parametrize("column", ["day", "at", "date(at)"])
def test_moments_of_sqlite_are_under_the_reference_what_its_driver_gives(
    shop: DatabaseSpec, column: str
) -> None:
    """SQLite has texts for them: each differed from its own, `2024-01-05` from a midnight."""
    sql = f"SELECT id, {column} AS v FROM orders"
    result, given = execute(shop, sql), in_sqlite(shop, sql)

    def said(answer: list[dict[str, Any]]) -> str:
        known = {"types": result.types, "dialect": result.dialect}
        return nao_reference.compare(answer, rows(result), None, result.columns, **known).message

    assert said(given) == "match"
    assert said(_edited(given, "v", "2024-01-06")) == "values differ"


def test_a_file_in_wal_mode_is_read_where_nothing_can_be_made_beside_it(tmp_path: Path) -> None:
    """As on a mount that is read-only; here a folder stands where SQLite would make its index."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as made:
        made.executescript(f"PRAGMA journal_mode = WAL; {ORDERS}")
    assert [one.name for one in tmp_path.iterdir()] == ["shop.db"]
    (tmp_path / "shop.db-shm").mkdir()
    spec = DatabaseSpec("shop", "sqlite", str(path))
    for sql in (
        "SELECT count(*) AS n FROM orders",
        "SELECT count(*)::int AS n FROM orders",
    ):  # as DuckDB's, too
        assert rows(execute(spec, sql)) == [{"n": 3}]
    (tmp_path / "shop.db-wal").write_bytes(b"x" * 100)  # what it holds would be missing
    with pytest.raises(NoDatabase):
        execute(spec, "SELECT count(*) AS n FROM orders")


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "hot.db"
    ended = (
        "import os, sqlite3, sys\n"
        "made = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "made.executescript('PRAGMA cache_size = 2; CREATE TABLE t (s); BEGIN')\n"
        "made.executemany('INSERT INTO t VALUES (?)', [('x' * 500,)] * 2000)\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", ended, path], check=True)
    assert (tmp_path / "hot.db-journal").exists()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as made:
        made.executescript(ORDERS)
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as other:
        other.execute("CREATE TABLE t (i INT)")
    said = {
        (
            "sqlite",
            "hot.db",
        ): "hot.db-journal is of a writer that was ended: open the file once with a program",
        ("sqlite", "shop.duckdb"): "shop.duckdb is a file of DuckDB: write type: duckdb",
        ("duckdb", "shop.db"): "shop.db is a file of SQLite: write type: sqlite",
        ("sqlite", ""): f"{tmp_path} is a folder",
    }
    for (kind, name), words in said.items():
        with pytest.raises(BadDatabase) as caught:
            execute(DatabaseSpec("shop", kind, str(tmp_path / name)), "SELECT 1 AS n")
        assert str(caught.value).startswith(f"database 'shop': {words}")
