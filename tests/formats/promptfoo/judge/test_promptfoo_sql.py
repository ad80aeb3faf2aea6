"""is-sql: what promptfoo 0.121.20 takes for SQL of a database, word for word what it said."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.promptfoo_cases import evidence_for
from tui_eval.formats import judge

pytestmark = pytest.mark.asyncio(loop_scope="module")

TAKEN = {
    "MySQL": """
        SELECT `order`, t.desc, COUNT(*) AS total FROM `group` t
        SELECT rank() OVER (ORDER BY x) AS position FROM t
        SELECT LEFT(name, 2), RIGHT(name, 1), REPLACE(a, 'x', 'y'), IF(a > 1, 'x', 'y') FROM t
        SELECT SQL_CALC_FOUND_ROWS a FROM t
        SELECT a FROM t STRAIGHT_JOIN u
        SELECT @a := 1
        SELECT name, status, type, level FROM user
        CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, date DATE, time TIME)
        DROP INDEX i ON t
        SELECT CURRENT_DATE, CURRENT_TIMESTAMP, TRUE, NULL
        SELECT STRUCT(1)
    """,
    "PostgreSQL": """
        SELECT rank, key, value FROM t
        SELECT data->>'a' FROM t WHERE a = ANY(ARRAY[1,2])
        SELECT DISTINCT ON (a) a, b FROM t
        ALTER TABLE t ALTER COLUMN a TYPE BIGINT
        DROP INDEX i
    """,
    "SQLite": """
        SELECT a FROM t WHERE a == 1
        INSERT OR REPLACE INTO t (a) VALUES (1)
        CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, "table" TEXT)
    """,
    "TransactSQL": "SELECT * FROM t OUTER APPLY f(t.a)",
    "BigQuery": "SELECT * FROM t PIVOT (SUM(a) FOR b IN (1,2))",
    "Snowflake": "SELECT a AS left FROM t LIMIT ALL",
}
REFUSED = {
    "MySQL": """
        SELECT * t
        SELECT desc FROM t
        SELECT a, rank, b FROM t
        SELECT a AS left FROM t
        SELECT * FROM table
        SELECT * FROM t AS index_of WHERE keys = 1
        CREATE TABLE t (primary INT)
        SELECT a FROM t WHERE a == 1
        SELECT a FROM t WHERE a IN ()
        SELECT a FROM t WHERE a IS NOT DISTINCT FROM b
        SELECT a FROM t GROUP BY GROUPING SETS ((a), ())
        SELECT a AT TIME ZONE 'UTC' FROM t
        INSERT OR REPLACE INTO t (a) VALUES (1)
        CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)
        ALTER TABLE t ALTER COLUMN a TYPE BIGINT
        DROP INDEX i
    """,
    "PostgreSQL": """
        SELECT * t
        SELECT offset FROM t
        SELECT @a := 1
        SELECT CONVERT(a USING utf8) FROM t
        SELECT a FROM t WHERE MATCH(a) AGAINST('x')
        DESCRIBE t
        CREATE TABLE t LIKE u
    """,
    "SQLite": """
        SELECT values FROM t
        SELECT a FROM t WHERE a = ANY(ARRAY[1,2])
        SELECT a INTO b FROM t
    """,
    "TransactSQL": "SELECT data->>'a' FROM t",
    "BigQuery": "SELECT a, unnest, b FROM t",
    "Snowflake": "SELECT offset, a FROM t",
}
ROWS = [
    (database, line.strip(), taken)
    for taken, by_database in ((True, TAKEN), (False, REFUSED))
    for database, lines in by_database.items()
    for line in lines.strip().splitlines()
]


@pytest.mark.parametrize(("database", "text", "taken"), ROWS, ids=[f"{row[0]}: {row[1]}" for row in ROWS])
async def test_what_a_database_takes(database: str, text: str, taken: bool) -> None:
    assertion: dict[str, Any] = {"type": "is-sql", "value": {"databaseType": database}}
    judgement = await judge(evidence_for({"output": text, "vars": {}, "assertion": assertion}))
    assert judgement.verdicts[0].passed is taken
