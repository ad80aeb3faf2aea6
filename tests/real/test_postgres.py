"""A real PostgreSQL on loopback, made for the test and run as nobody: what its types arrive as, what is
refused, and a nao project whose database it is."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.real.processes import ended_after
from tests.support.ports import free_port
from tui_eval.config.project import DatabaseSpec
from tui_eval.frames.compare import compare
from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.databases import NoDatabase, WrongQuery
from tui_eval.frames.difference import align
from tui_eval.frames.postgres import arrived
from tui_eval.frames.sql import SqlError, SqlResult, execute, execute_all, rows, schema_text
from tui_eval.frames.sql_faults import fault_of
from tui_eval.frames.tied_rows import query_of_places, with_places

pytestmark = pytest.mark.real

TABLE = """
CREATE TABLE orders (
  id int PRIMARY KEY, amount numeric(10,2), placed date, paid timestamptz, customer text, ok bool,
  tags text[], extra jsonb, key uuid, took interval, host inet, price money, big bigint);
INSERT INTO orders VALUES
  (1, 10.50, '2024-01-05', '2024-01-05 10:11:12+00', 'Zoë', true, '{a,b}', '{"k": 1}',
   '00000000-0000-0000-0000-000000000001', '1 day', '10.0.0.1', 3.20, 9007199254740993),
  (2, 134.50, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE SCHEMA sales;
CREATE TABLE sales.orders (id int, note text);
INSERT INTO sales.orders VALUES (7, 'sold');
CREATE TABLE sales."Own" (id int);
CREATE DOMAIN euros AS numeric(10,2);
CREATE DOMAIN day AS date;
CREATE DOMAIN "Working day" AS day;
CREATE DOMAIN numbers AS int[];
CREATE DOMAIN document AS jsonb;
CREATE FUNCTION hidden() RETURNS text LANGUAGE plpgsql AS $$BEGIN RETURN pg_read_file('/etc/hostname'); END$$;
CREATE DOMAIN iso3 AS char(3);
CREATE DOMAIN "Land" AS iso3;
CREATE DOMAIN codes AS char(3)[];
CREATE DOMAIN bits AS bit(3);
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN pairs AS pair;
CREATE TYPE mood AS ENUM ('sad', 'happy');
"""


def _binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


@pytest.fixture(scope="module")
def server() -> Iterator[DatabaseSpec]:
    pytest.importorskip("adbc_driver_postgresql", reason="the postgres extra is not installed")
    binaries = _binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server (initdb) on this machine")
    # The server refuses to run as root, and its socket's path must be short.
    user: dict[str, Any] = {"user": "nobody", "group": "nogroup"} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    try:
        if user:
            shutil.chown(folder, **user)
        made = subprocess.run(
            [binaries / "initdb", "-D", folder / "data", "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-locale"],
            cwd=folder, capture_output=True, text=True, extra_groups=[] if user else None, **user,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        port = free_port()
        process = subprocess.Popen(
            [binaries / "postgres", "-D", folder / "data", "-h", "127.0.0.1", "-p", str(port), "-k", folder,
             "-c", "fsync=off"],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, extra_groups=[] if user else None,
            **user,
        )  # fmt: skip
        with ended_after(process):
            spec = DatabaseSpec("shop", "postgres", url=f"postgresql://tester@127.0.0.1:{port}/postgres")
            _fill(spec)
            yield spec
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(spec: DatabaseSpec) -> None:
    from adbc_driver_postgresql import dbapi  # type: ignore[import-not-found]

    end = time.monotonic() + 60
    while True:
        try:
            with dbapi.connect(spec.url) as connection, connection.cursor() as cursor:
                for statement in TABLE.strip().split(";\n"):
                    cursor.execute(statement)
                connection.commit()
                return
        except dbapi.OperationalError as error:
            assert time.monotonic() < end, f"PostgreSQL does not come up: {error}"
            time.sleep(0.1)


def test_types_arrive_with_their_meaning(server: DatabaseSpec) -> None:
    result = execute(server, "SELECT * FROM orders ORDER BY id;")
    assert result.ordered
    first, second = rows(result)
    assert first == {
        "id": 1, "amount": 10.5, "placed": "2024-01-05T00:00:00", "customer": "Zoë", "ok": True,
        "paid": "2024-01-05T10:11:12+00:00", "tags": ["a", "b"], "extra": '{"k": 1}',
        "key": "00000000-0000-0000-0000-000000000001", "took": "1 day", "host": "10.0.0.1", "price": 3.2,
        "big": 9007199254740993,
    }  # fmt: skip
    assert {name for name, cell in second.items() if cell is not None} == {"id", "amount", "ok"}
    total = execute(server, "SELECT sum(amount) AS total, avg(amount) AS mean FROM orders")
    assert total.frame.row(0) == (Decimal("145.00"), 72.5)
    assert rows(execute(server, "SELECT took FROM orders WHERE id > 9")) == []
    assert schema_text(server).startswith("orders(id integer, amount numeric, placed date")


@pytest.mark.parametrize(
    ("sql", "right", "wrong"),
    [
        ("avg(x)", 0.5, 0.6), ("2/3.0", 0.66666667, 0.6666), ("1/3.0", 1 / 3, 0.34), ("1.0/7", 1 / 7, 0.14),
        ("avg(x) * 100 / 3", 50 / 3, 16), ("avg(x) + 123456", 123456.5, 123458), ("0.00001/3", 1e-5 / 3, 0),
        ("41152263.0/7", 5878894.714, 5878994), ("sqrt(2.0)", 1.4142136, 1.41), ("1e40::numeric", 1e40, 1e41),
        ("'NaN'::numeric", None, 0), ("sum(1234567.89)", 2469135.78, 2469135.79),
    ],
)  # fmt: skip
def test_quotients_are_numbers(server: DatabaseSpec, sql: str, right: float | None, wrong: float) -> None:
    found = execute(server, f"SELECT {sql} AS n FROM (VALUES (1), (0)) AS v(x) GROUP BY () LIMIT 1")
    assert compare([{"n": right}], found).passed
    assert not compare([{"n": wrong}], found).passed


@pytest.mark.parametrize(
    ("sql", "right", "wrong"),
    [
        ("""'{"b": 1, "a": [2.50, null]}'::jsonb""", {"a": [2.5, None], "b": 1}, {"a": [2.5], "b": 1}),
        ("'[1, 2]'::json", [1, 2], [2, 1]),
        ("""ARRAY['{"a": 1}'::jsonb]""", [{"a": 1}], [{"a": 2}]),
        ("ARRAY[[1, 2], [3, 4]]", [[1, 2], [3, 4]], [1, 2, 3, 4]),
        ("ARRAY[ARRAY['a'], ARRAY[NULL]]", [["a"], [None]], [["a"], ["NULL"]]),
        ("ARRAY[1.50, 9007199254740993]::numeric[]", [1.5, 9007199254740993], [1.5, 9007199254740992]),
        ("ARRAY[2 / 3.0, 12.5]", [2 / 3, 12.5], [0.67, 12.5]),
        ("ARRAY[[2 / 3.0], [NULL::numeric]]", [[2 / 3], [None]], [[0.67], [None]]),
        ("ARRAY['2024-01-01'::date, NULL]", ["2024-01-01", None], ["2024-01-02", None]),
        ("ARRAY['2024-01-01 10:00+02'::timestamptz]", ["2024-01-01T08:00:00Z"], ["2024-01-01T10:00:00Z"]),
        ("ARRAY[0.1::real]", [0.1], [0.2]),
        ("ARRAY['10.0.0.1'::inet]", ["10.0.0.1"], ["10.0.0.2"]),
        ("ARRAY[3.50::money]", [3.5], [3.51]),
        ("ARRAY[]::date[]", [], None),
        ("'24:00'::time", "24:00", None),
        ("5.00::euros", 5, 5.01),
        ("""'2024-01-05'::"Working day\"""", "2024-01-05T00:00:00", "2024-01-06"),
        ("'infinity'::day", "infinity", None),
        ("ARRAY[1, 2]::numbers", [1, 2], [2, 1]),
        ("""'{"a": 1}'::document""", {"a": 1}, {"a": 2}),
        ("'DEU'::iso3", "DEU", "D"),
        ("""'DEU'::"Land\"""", "DEU", "D"),
        ("ARRAY['DEU', 'FRA']::codes", ["DEU", "FRA"], ["D", "F"]),
        ("'101'::bits", "101", "1"),
        ("ROW(1, NULL)::pair", "(1,)", None),
        ("ROW(1, NULL)::pairs", "(1,)", None),
        ("ROW(NULL, NULL)", "(,)", None),
        ("ARRAY['happy'::mood]", ["happy"], ["sad"]),
        ("'happy'::mood", "happy", "sad"),
        ("'10:30'::time", "10:30", "10:31"),
        ("'-1 day 2 hours'::interval", "-22:00:00", "-20:00:00"),
        ("'3 days'::interval", "P3D", "4 days"),
        ("'infinity'::date", "infinity", None),
        ("'-infinity'::timestamp", "-infinity", "infinity"),
        ("'infinity'::timestamptz", "infinity", None),
        ("'20240-02-29'::date", "20240-02-29", "20240-03-01"),
        ("'294276-12-31 23:59:59.999999'::timestamptz", "294276-12-31T23:59:59.999999Z", "294276-12-31"),
        ("'0044-03-15 BC'::date", "0044-03-15 BC", "0044-03-15"),
        ("'4713-01-01 10:00 BC'::timestamp", "4713-01-01 10:00:00 BC", "4713-01-01 10:00:00"),
        ("'0001-01-01'::date", "0001-01-01", "0002-01-01"),
    ],
)  # fmt: skip
def test_an_answer_as_json_equals_every_type(
    server: DatabaseSpec, capfd: pytest.CaptureFixture[str], sql: str, right: object, wrong: object
) -> None:
    found = execute(server, f"SELECT {sql} AS v UNION ALL SELECT NULL")
    said = compare([{"v": right}, {"v": None}], found)
    assert said.passed, said.text
    assert not compare([{"v": wrong}, {"v": None}], found).passed
    kept = json.loads(json.dumps(rows(found), default=str))  # as a run keeps them
    for answer, is_right in ((right, True), (wrong, False)):
        difference = align(kept, [{"v": answer}, {"v": None}], None, ["v"], found.types)
        assert difference.same_cells()["v"].all() == is_right
    assert capfd.readouterr().err == ""


def test_a_declared_number_of_many_places_is_exact(server: DatabaseSpec) -> None:
    number = "1234567.123456789::numeric(38,9)"
    for sql in (f"SELECT {number} AS n", f"SELECT sum(x) AS n FROM (VALUES ({number})) AS v(x)"):
        found = execute(server, sql)
        assert compare([{"n": 1234567.123456789}], found).passed
        assert not compare([{"n": 1234560}], found).passed
    assert compare([{"n": 1234567.12}], execute(server, f"SELECT avg({number}) AS n")).passed
    found = execute(server, f"SELECT ARRAY[{number}] AS n")
    assert compare([{"n": [1234567.123456789]}], found).passed
    assert not compare([{"n": [1234560]}], found).passed


def test_texts_of_values_do_not_depend_on_what_a_role_has_set(server: DatabaseSpec) -> None:
    options = "intervalstyle=iso_8601", "datestyle=SQL,DMY", "bytea_output=escape", "extra_float_digits=-5"
    said = "%20".join(f"-c{option.replace('=', '%3D')}" for option in (*options, "client_encoding=LATIN1"))
    own = msgspec.structs.replace(server, url=f"{server.url}?options={said}")
    sql = """SELECT '1 day'::interval AS a, '\\x01ff'::bytea AS b, point(1.0/3, 2) AS c, 'Zoë' AS d,
        daterange('03/02/2024', '04/02/2024') AS e"""
    assert rows(execute(own, sql)) == [
        {
            "a": "1 day",
            "b": "\\x01ff",
            "c": "(0.3333333333333333,2)",
            "d": "Zoë",
            "e": "[2024-02-03,2024-02-04)",
        }
    ]


def test_a_row_without_a_field_is_there(server: DatabaseSpec) -> None:
    sql = "SELECT e FROM (VALUES (1, NULL), (NULL, NULL)) AS e(a, b)"
    assert [row["e"] for row in rows(execute(server, sql))] == ["(1,)", "(,)"]


def test_arrays_of_several_depths_and_moments_beside_infinite_ones(server: DatabaseSpec) -> None:
    found = execute(server, "SELECT * FROM (VALUES (ARRAY[1, 2]), (ARRAY[[1], [2]])) AS v(a)")
    assert compare([{"a": [1, 2]}, {"a": [[1], [2]]}], found).passed
    assert not compare([{"a": [1, 2]}, {"a": [1, 2]}], found).passed
    found = execute(
        server, "SELECT * FROM (VALUES ('infinity'::timestamptz), ('2024-01-05 10:00+02')) AS v(t)"
    )
    assert compare([{"t": "2024-01-05T08:00:00+00:00"}, {"t": "infinity"}], found).passed


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        ("SELECT nope FROM orders", 1, 8),
        ("-- of all\n\nSELECT id,\n  nope\nFROM orders", 4, 3),
        ("SELECT id,\n" + "\n" * 7 + "key, nope\nFROM orders", 9, 6),
        ("SELECT * FROM nowhere", 1, 15),
        ("SELECT 1 / 0", 0, 0),
    ],
)
def test_a_wrong_query_is_called_so_with_its_place(
    server: DatabaseSpec, sql: str, line: int, column: int
) -> None:
    with pytest.raises(WrongQuery) as caught:
        execute(server, sql)
    found = fault_of(sql, str(caught.value), caught.value.detail)
    assert (found.line, found.column) == (line, column)
    assert "DECLARE" not in found.detail and "SQLSTATE" not in found.detail


def test_what_a_role_may_not_read_is_no_wrong_query(server: DatabaseSpec) -> None:
    with pytest.raises(SqlError) as caught:
        execute(server, "SELECT pg_read_file('x')")
    assert not isinstance(caught.value, WrongQuery)


@pytest.mark.parametrize("end", [";", ";\n", ";;\n", "; -- a note", ";\n/* a /* note; */ */\n", " -- a note"])
@pytest.mark.parametrize("columns", ["id", "id, key"])
def test_what_ends_a_query_is_none_of_it(server: DatabaseSpec, end: str, columns: str) -> None:
    assert execute(server, f"SELECT {columns} FROM orders ORDER BY id{end}").frame["id"].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM orders", "only SELECT is allowed"),
        ("SELECT 1; DELETE FROM orders", "only one SQL statement"),
        ("SELECT nope FROM orders", '^column "nope" does not exist'),
        ("SELECT pg_sleep(30)", "statement timeout"),
        ("SELECT setval('s', 1)", "does not exist"),
        ("SELECT 1 / (id - 1) FROM orders", "^division by zero"),
        ("SELECT 1 / (id - 1), key FROM orders", "^division by zero"),
        (
            "WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone",
            "^DECLARE CURSOR must not contain data-modifying statements",
        ),
    ],
)
def test_what_is_refused_is_one_line(server: DatabaseSpec, sql: str, said: str) -> None:
    with pytest.raises(SqlError, match=said) as caught:
        execute(server, sql, timeout=0.5)
    assert "\n" not in str(caught.value)
    assert execute(server, "SELECT count(*) AS n FROM orders").frame.item() == 2


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("copy (select 1) to program 'touch {file}'", "^only SELECT is allowed, not COPY"),
        ("/* a /* b */ c */ Copy orders to '{file}'", "^only SELECT is allowed, not COPY"),
        ("select 1) to program 'touch {file}' --", 'syntax error at or near "\\)"'),
        ("select 1) as q; drop table orders; select * from (select 1", "^only one SQL statement"),
        ("select $b$; select 1", "unterminated dollar-quoted|only one"),
        ("set transaction read write;", "^only SELECT is allowed, not SET"),
        ("do $$begin end$$", "not DO"),
        ("lock table orders", "not LOCK"),
        ("notify x", "not NOTIFY"),
        ("explain analyze select 1", "not EXPLAIN"),
        ("-- nothing\n;", "there is no SQL statement"),
        ("with x as (select 1) insert into orders select 9", 'syntax error at or near "insert"'),
        ("select 1 as a into made", "not allowed here"),
        ("select id from orders for update", "^cannot execute SELECT FOR UPDATE in a read-only transaction"),
        ("select from orders", "^the query gives no columns"),
        ("select pg_read_file('/etc/hostname')", "^pg_read_file is refused: .* tester should not be a superuser"),
        ("select pg_catalog.\"pg_read_file\"/* a */('/etc/hostname')", "^pg_read_file is refused"),
        ("select ('/etc/hostname'::text).PG_Read_File", "^pg_read_file is refused"),
        ('select U&"\\0070g_read_file"(\'/etc/hostname\')', "^a name written as U&"),
        ("select E'a'\n'b\\' , ' || pg_read_file('/etc/hostname')", "^pg_read_file is refused"),
        ("select query_to_xml('select pg_read_' || 'file(''/etc/hostname'')', true, true, '')", "^query_to_xml is"),
        # What the server's lexer takes for no text or comment.
        ("select 1 -- a\r, pg_read_file('/etc/hostname')\n, 2", "^pg_read_file is refused"),
        ("select 1 as €$$, pg_read_file('/etc/hostname') as b$$", "^pg_read_file is refused"),
        ("select $٣$ ' $٣$ || pg_read_file('/etc/hostname') || ''", "^pg_read_file is refused"),
        ("select E'a' -- b\n'\\' , ' || pg_read_file('/etc/hostname') --'", "^pg_read_file is refused"),
        ("select 'a\\' || pg_read_file('/etc/hostname') || '\\'", "^pg_read_file is refused"),
        ("select U&'a\\' || pg_read_file('/etc/hostname') || ''", "^pg_read_file is refused"),
        ("select $a$ $b$ $a$ || pg_read_file('/etc/hostname') || $b$ $b$", "^pg_read_file is refused"),
        ("select '' /* /* */ ' */ || pg_read_file('/etc/hostname') -- '", "^pg_read_file is refused"),
        ("select * from crosstab('select 1')", "^crosstab is refused: it runs SQL out of a text"),
        ("select table_to_xml(('pg_auth' || 'id')::regclass, true, true, '')", "^table_to_xml is refused"),
        ("select schema_to_xml_and_xmlschema('pg_catalog', true, true, '')", "^schema_to_xml_and_xmlschema is refu"),
        ("select umoptions from pg_user_mappings", "^pg_user_mappings is refused"),
        ('select subconninfo from "pg_subscription"', "^pg_subscription is refused"),
        ("select autoprewarm_dump_now()", "^autoprewarm_dump_now is refused"),
        ("select brin_summarize_new_values('orders')", "^brin_summarize_new_values is refused"),
        ("select gin_clean_pending_list('orders')", "^gin_clean_pending_list is refused"),
        # What a superuser sees otherwise than who it asks as.
        ("select count(*) from information_schema.table_constraints",
         "^role tester is a superuser, and expected SQL asks as pg_read_all_data, which sees other rows of "
         "information_schema: give the database a role that is none$"),
        ("select * from pg_stat_activity", "which sees other rows of pg_stat_activity"),
        ("select name from pg_catalog.PG_SETTINGS", "which sees other rows of pg_settings"),
        ("select * from orders where customer = user", "for which user is another"),
        ("select Current_User", "for which current_user is another"),
        ("select has_table_privilege('orders', 'delete')", "for which has_table_privilege is another"),
        ("select lo_import('/etc/hostname')", "^lo_import is refused"),
        ("select pg_terminate_backend(pid) from pg_stat_activity", "^pg_terminate_backend is refused"),
        ("select pg_reload_conf()", "^pg_reload_conf is refused"),
        ("select set_config('role', 'none', false)", "^set_config is refused"),
        ("select rolpassword from pg_authid", "^pg_authid is refused"),
        # What no list knows is refused by the server: a superuser asks as a role that only reads.
        ("select pg_config()", r"^permission denied for function pg_config \(asked as pg_read_all_data, as tester is a"),
        ("select hidden()", r"^permission denied for function pg_read_file"),
    ],
)  # fmt: skip
def test_nothing_but_a_query_is_run(server: DatabaseSpec, tmp_path: Path, sql: str, said: str) -> None:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o777)  # the server's user may write here
    try:
        for ask in (execute, _of_many):
            with pytest.raises(SqlError, match=said) as caught:
                ask(server, sql.replace("{file}", str(folder / "made")))
            assert "\n" not in str(caught.value)
        assert list(folder.iterdir()) == []
    finally:
        shutil.rmtree(folder)
    assert execute(server, "SELECT count(*) AS n FROM orders").frame.item() == 2


def _of_many(spec: DatabaseSpec, sql: str) -> None:
    for found in execute_all(spec, [sql], timeout=5, limit=1):
        if isinstance(found, SqlError):
            raise found


def test_a_role_that_is_no_superuser_is_asked_as_itself(server: DatabaseSpec) -> None:
    from adbc_driver_postgresql import dbapi  # type: ignore[import-not-found]

    with dbapi.connect(server.url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE ROLE plain LOGIN")
        try:
            plain = msgspec.structs.replace(server, url=server.url.replace("tester@", "plain@"))
            assert (
                execute(plain, "SELECT current_user::text AS u, count(*) AS n FROM pg_settings")
                .frame["u"]
                .item()
                == "plain"
            )
            assert execute(plain, "SELECT count(*) AS n FROM information_schema.tables").frame.item() > 0
            with pytest.raises(SqlError, match=r"^pg_read_file is refused") as caught:
                execute(plain, "SELECT pg_read_file('/etc/hostname')")
            assert "superuser" not in str(caught.value)
        finally:
            cursor.execute("DROP ROLE plain")


def test_a_connection_that_others_have_is_waited_for(server: DatabaseSpec) -> None:
    """Of a role that may have one, most cases of a run were errors."""
    from adbc_driver_postgresql import dbapi  # type: ignore[import-not-found]

    with dbapi.connect(server.url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE ROLE scarce LOGIN CONNECTION LIMIT 1")
        try:
            scarce = msgspec.structs.replace(server, url=server.url.replace("tester@", "scarce@"))
            with ThreadPoolExecutor(3) as pool:
                asked = [
                    pool.submit(execute, scarce, "SELECT 1 AS n, pg_sleep(0.3)::text AS s", timeout=60)
                    for _ in range(3)
                ]
                assert [one.result().frame["n"].item() for one in asked] == [1, 1, 1]
            cursor.execute("ALTER ROLE scarce CONNECTION LIMIT 0")
            with pytest.raises(NoDatabase, match=r"cannot be reached: .*too many connections"):
                execute(scarce, "SELECT 1", timeout=1)
        finally:
            cursor.execute("DROP ROLE scarce")


def test_a_superuser_finds_what_it_found(server: DatabaseSpec) -> None:
    """The schema that is called as the role, and rows that policies keep from others, or an error that says so."""
    from adbc_driver_postgresql import dbapi  # type: ignore[import-not-found]

    made = """CREATE TABLE mine AS SELECT 'of all' AS note
        CREATE SCHEMA tester
        CREATE TABLE tester.mine AS SELECT 'its own' AS note
        CREATE TABLE tester.kept (id int)
        ALTER TABLE tester.kept ENABLE ROW LEVEL SECURITY"""
    with dbapi.connect(server.url) as connection, connection.cursor() as cursor:
        for statement in made.splitlines():
            cursor.execute(statement)
        connection.commit()
        try:
            assert execute(server, "SELECT note FROM mine").frame.item() == "its own"
            with pytest.raises(SqlError, match=r"row-level security .*tester is a superuser"):
                execute(server, "SELECT * FROM kept")
        finally:
            cursor.execute("DROP SCHEMA tester CASCADE")
            cursor.execute("DROP TABLE mine")
            connection.commit()


@pytest.mark.parametrize(
    "sql", ["SELECT id, id FROM orders", "SELECT id, key AS id FROM orders", "SELECT 1, 2"]
)
def test_the_second_of_two_columns_of_one_name_is_renamed(server: DatabaseSpec, sql: str) -> None:
    found = execute(server, sql)
    first, second = found.columns
    assert found.renamed == {second: first} and second == f"{first}_1"
    assert found.frame.columns == found.columns


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("TABLE orders", 2), ("VALUES (1), (2), (3)", 3), ("(SELECT 1) UNION (SELECT 2)", 2),
        ("WITH x AS (SELECT 1) SELECT * FROM x", 1), ("SELECT o FROM orders o", 2), ("SELECT pg_sleep(0)", 1),
        ("SELECT ';' AS a$b$ -- $b$", 1),
        ("SELECT 1 AS http_post_count, 2 AS pg_notify, 3 AS set_config, 'http_get(' AS dblink_name, 'see pg_shadow' AS t", 1),
        ("SELECT q.crosstab_total /* not pg_read_file( */ FROM (SELECT 1 AS crosstab_total) q -- lowrite(", 1),
        ("SELECT $a$ pg_read_file('x') $a$, E'\\' pg_read_file(' AS b, U&'lowrite(' AS c", 1),
        ("SELECT count(*) AS n FROM pg_available_extensions WHERE name = 'dblink'", 1),
        ('SELECT q.user, "user", user_id, \'current_user\' AS user FROM (SELECT 1, 2) AS q("user", user_id)', 1),
        ("SELECT 1 AS http_headers, 2 AS lo_orderdate, 3 AS stats_reset, 4 AS crosstab_id", 1),
    ],
)  # fmt: skip
def test_every_kind_of_query_is_run(server: DatabaseSpec, sql: str, count: int) -> None:
    assert execute(server, sql).frame.height == count


def test_a_query_is_stopped_here_and_on_the_server(server: DatabaseSpec) -> None:
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    with pytest.raises(SqlError, match="cancelled"):
        execute(server, "SELECT pg_sleep(60)", timeout=120, cancel=cancel)
    end = time.monotonic() + 30
    runs = "SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE '%sleep(60)%' AND pid <> pg_backend_pid()"
    from adbc_driver_postgresql import dbapi  # type: ignore[import-not-found]

    with dbapi.connect(server.url, autocommit=True) as connection, connection.cursor() as cursor:
        while True:
            cursor.execute(runs)
            if not arrived(cursor.fetch_arrow()).item():
                break
            assert time.monotonic() < end, "the query goes on"
            time.sleep(0.1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 1000000) || i AS t FROM generate_series(1, 1500) i",
        "SELECT repeat('x', 1000000) || i AS t FROM generate_series(1, 100) i",
        "SELECT i, ARRAY[i, i] AS a FROM generate_series(1, 1000000) i",
    ],
)
def test_rows_have_a_limit_of_memory_and_none_of_it_is_ours(server: DatabaseSpec, sql: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SqlError, match=r"^the query needs more than 64 MB of memory$"):
        execute(server, sql, timeout=120, memory_mb=64)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB
    assert execute(server, "SELECT count(*) AS n FROM orders").frame.item() == 2


def test_many_queries_have_each_its_rows_or_its_error(server: DatabaseSpec) -> None:
    queries = ["SELECT 1 AS a", "SELECT nope", "SELECT generate_series(1, 1000) AS n"]
    one, two, three = execute_all(server, queries, timeout=5, limit=2)
    assert isinstance(one, SqlResult) and isinstance(three, SqlResult)
    assert (one.frame.rows(), str(two), three.frame.rows()) == (
        [(1,)],
        'column "nope" does not exist',
        [(1,), (2,)],
    )
    away = msgspec.structs.replace(server, url="postgresql://tester@127.0.0.1:1/postgres")
    assert ["cannot be reached" in str(said) for said in execute_all(away, queries, timeout=5, limit=2)] == [
        True
    ] * 3


def test_names_are_those_of_the_schema(server: DatabaseSpec) -> None:
    other = msgspec.structs.replace(server, schema="sales")
    for spec, sql, there in (
        (server, "SELECT count(*) AS n FROM orders", 2),
        (other, "SELECT count(*) AS n FROM orders", 1),
        (other, "SELECT count(*) AS n, min(key::text) AS k FROM public.orders", 2),
        (msgspec.structs.replace(server, schema="nope, sales"), "SELECT count(*) AS n FROM orders;\n", 1),
        (msgspec.structs.replace(server, url=f"{server.url}?options=-csearch_path%3Dsales"),
         "SELECT count(*) AS n FROM orders", 1),
    ):  # fmt: skip
        assert execute(spec, sql).frame["n"].to_list() == [there]
    for schema, said in (("nope", 'relation "orders" does not exist'), ("it's; x", "invalid value")):
        with pytest.raises(SqlError, match=said):
            execute(msgspec.structs.replace(server, schema=schema), "SELECT count(*) AS n FROM orders")
    with pytest.raises(SqlError, match="data-modifying"):
        execute(other, "WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone")
    assert {line.partition("(")[0] for line in schema_text(server).splitlines()} == {
        "orders", "sales.Own", "sales.orders",
    }  # fmt: skip
    assert {line.partition("(")[0] for line in schema_text(other).splitlines()} == {
        "Own", "orders", "public.orders",
    }  # fmt: skip


def test_a_nao_project_on_it(server: DatabaseSpec, tmp_path: Path) -> None:
    port = server.url.rpartition(":")[2].partition("/")[0]
    (tmp_path / "nao_config.yaml").write_text(
        "project_name: shop\ndatabases:\n"
        f"  - {{name: shop, type: postgres, host: 127.0.0.1, port: {port}, database: postgres, user: tester}}\n"
        f"  - {{name: sold, type: postgres, host: 127.0.0.1, port: {port}, database: postgres, user: tester,"
        " schema_name: sales}\n"
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "total.yml").write_text(
        "prompt: What was the total?\nsql: SELECT sum(amount) AS total, min(key) AS key FROM orders\n".replace(
            "min(key)", "min(key::text)"
        )
    )
    (tmp_path / "tests" / "keys.yml").write_text("prompt: Which keys?\nsql: SELECT key FROM orders\n")
    (tmp_path / "tests" / "sold.yml").write_text(
        "prompt: What was sold?\ndatabase: sold\nsql: |\n  SELECT note FROM orders;\n"
    )
    for name in ("total.yml", "keys.yml"):
        with (tmp_path / "tests" / name).open("a") as file:
            file.write("database: shop\n")
    (tmp_path / "agent.yaml").write_text(
        "rules:\n"
        "  - {match: sold, say: x, rows: [{note: sold}]}\n"
        "  - {match: keys, say: x, rows: [{key: 00000000-0000-0000-0000-000000000001}, {key: null}]}\n"
        "  - {match: total, say: x, rows: [{total: 145, key: 00000000-0000-0000-0000-000000000001}]}\n"
    )
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n  it: {type: scripted, script: agent.yaml}\nsuites:\n  - {path: 'tests/**', agent: it}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "tui_eval", "run", "tests", "-o", "out.json"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "out.json").read_text())["results"]
    assert {entry["message"] for entry in results} == {"match"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM {t} ORDER BY k",
        "(SELECT a FROM {t} ORDER BY k)",
        "((SELECT a FROM {t} ORDER BY k)) -- all",
        "(SELECT a FROM {t} ORDER BY k) LIMIT 4",
        "SELECT a FROM {t} ORDER BY k USING <",
        "SELECT a FROM {t} ORDER BY -k USING > NULLS LAST LIMIT 4;",
        "SELECT a FROM {t} ORDER BY k FOR READ ONLY",
        "SELECT k, a FROM {t} WHERE k = 1 UNION SELECT k, a FROM {t} WHERE k = 2 ORDER BY k FOR READ ONLY /* so */",
        "SELECT a FROM {t} ORDER BY k FOR READ ONLY;",
        "(SELECT a FROM {t} ORDER BY -k USING OPERATOR(pg_catalog.>) FOR READ ONLY)",
    ],
)
def test_rows_that_tie_are_right_in_any_order_however_the_query_orders_them(
    server: DatabaseSpec, sql: str
) -> None:
    """sqlglot reads some of them not at all, and of one in brackets no order."""
    query = sql.format(t="(VALUES (1, 1), (2, 1), (3, 2), (4, 2)) AS t(a, k)")
    found = execute(server, query)
    assert found.ordered
    asked = query_of_places(query, found, found.dialect)
    assert asked is not None
    expected = with_places(found, execute(server, asked))
    assert expected.places is not None and expected.places.to_list() == [1, 1, 3, 3]
    strict = ComparisonSettings(ordered=True)
    given = found.frame.to_dicts()
    assert compare([given[1], given[0], given[3], given[2]], expected, strict).passed
    assert not compare([given[2], given[1], given[0], given[3]], expected, strict).passed
