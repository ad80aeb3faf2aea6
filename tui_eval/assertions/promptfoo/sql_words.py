"""Words that a database keeps for itself: without quotes they name no column, no table and no alias.

Found by trying 300 words of SQL in node-sql-parser, which promptfoo 0.121.20 asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_NEARLY_ALL = """
    ADD ALL ALTER AND AS ASC BETWEEN BY CALL CASE CREATE CURRENT_USER DELETE DESC DISTINCT DROP ELSE EXISTS EXPLAIN
    FALSE FROM FULL GROUP HAVING IN INNER INSERT INTO IS JOIN LEFT LIKE LIMIT NOT NULL ON OR ORDER OUTER RECURSIVE
    RENAME RIGHT SELECT SET SHOW TABLE THEN TRUE UNION UPDATE USING WHEN WHERE WITH
"""
_MOST = "CONTAINS END GLOBAL LOCAL SESSION_USER TRUNCATE"
_MORE = {
    "mysql": """
        ANALYZE BEFORE BIGINT BLOB BOOLEAN BOTH CASCADE CHAR CHECK COLLATE CONDITION CONSTRAINT CONTINUE CONVERT CROSS
        CURSOR DATABASE DATABASES DEC DECIMAL DECLARE DEFAULT DESCRIBE DIV DOUBLE EXCEPT FETCH FLOAT FOR FOREIGN
        FUNCTION GRANT GROUPS IGNORE INT INTEGER INTERSECT INTERVAL KEY KEYS LATERAL LEADING LOAD LOCK MATCH MOD
        NATURAL NUMERIC OF OPTION OUT OVER PARTITION PRECISION PRIMARY PROCEDURE RANGE RANK READ REAL REFERENCES REGEXP
        REPLACE RESTRICT RETURN REVOKE RLIKE ROW ROWS ROW_NUMBER SCHEMA SEPARATOR SMALLINT SQL TINYINT TO TRIGGER
        UNIQUE UNSIGNED USAGE USE VALUES VARCHAR WINDOW XOR
    """,
    "mariadb": f"{_MOST} BOOLEAN CASCADE CROSS EXCEPT FOR INTERSECT JSON KEY LATERAL NATURAL READ SESSION STATUS VALUES",
    "postgresql": f"{_MOST} AT CONSTRAINT EXCEPT ILIKE INTERSECT JSON NULLS OFFSET PARTITION SESSION WINDOW",
    "sqlite": f"{_MOST} COUNT READ SESSION VALUES",
    "transactsql": f"{_MOST} CROSS FOR JSON KEY READ SESSION VALUES",
    "bigquery": f"{_MOST} ARRAY CROSS EXCEPT FOR INTERSECT JSON PARTITION READ UNNEST VALUES WINDOW",
    "snowflake": f"{_MOST} JSON NULLS OFFSET SESSION WINDOW",
    "athena": f"{_MOST} CROSS JSON READ SESSION UNNEST VALUES",
    "redshift": f"{_MOST} EXCEPT INTERSECT JSON NULLS OFFSET SESSION WINDOW",
    "hive": f"{_MOST} CROSS JSON KEY READ SESSION VALUES",
    "trino": f"{_MOST} DESCRIBE JSON NULLS OFFSET ROW ROWS SESSION WINDOW",
    "db2": f"{_MOST} EXCEPT FETCH JSON KEY OFFSET READ SESSION TYPE VALUES",
    "noql": f"{_MOST} EXCEPT INTERSECT JSON NULLS OFFSET SESSION WINDOW",
    "flinksql": _MOST,
}
_LESS = {"transactsql": {"RIGHT"}, "bigquery": {"RIGHT"}}
_RESERVED = {
    database: frozenset(_NEARLY_ALL.split()) - _LESS.get(database, set()) | frozenset(more.split())
    for database, more in _MORE.items()
}
# These know by the place that a table (or an alias) is named.
_ANY_TABLE = ("bigquery", "snowflake")
_ANY_ALIAS = ("snowflake",)
_NO_ALIAS = frozenset({"SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "JOIN", "UNION"})


def misused(database: str, statements: Iterable[Any]) -> bool:
    """Whether a statement names something by a word of the language; `database` in lower case."""
    return any(
        str(name.this).upper() in _RESERVED[database]
        for statement in statements
        for name in _names(database, statement)
    )


def _names(database: str, statement: Any) -> Iterable[Any]:
    """The names without quotes, save those after a dot, which may be any word."""
    from sqlglot import exp

    for name in statement.find_all(exp.Identifier):
        around = name.parent
        if name.args.get("quoted") or name.find_ancestor(exp.DataType):
            continue
        if isinstance(around, exp.Column):
            if around.parts[0] is name and not isinstance(around.parent, exp.Limit):
                yield name
        elif isinstance(around, exp.Table):
            if around.parts[0] is name and database not in _ANY_TABLE:
                yield name
        elif isinstance(around, exp.Alias | exp.TableAlias):
            if database not in _ANY_ALIAS or str(name.this).upper() in _NO_ALIAS:
                yield name
        elif isinstance(around, exp.ColumnDef) and database != "sqlite":
            yield name
