"""is-sql and contains-sql: syntax by dialect, allowed tables and columns."""

from __future__ import annotations

import logging
import re
from typing import Any

from msgspec import UNSET

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo import js
from tui_eval.assertions.promptfoo.call import Call, Result

# promptfoo's names of databases (any case), and sqlglot's. DuckDB is not among promptfoo's.
_DIALECTS = {
    "mysql": "mysql",
    "mariadb": "mysql",
    "postgresql": "postgres",
    "transactsql": "tsql",
    "sqlite": "sqlite",
    "bigquery": "bigquery",
    "snowflake": "snowflake",
    "athena": "athena",
    "redshift": "redshift",
    "hive": "hive",
    "trino": "trino",
    "db2": "",
    "flinksql": "",
    "noql": "",
}
_WITH_BRACKETS = ("tsql", "postgres", "bigquery", "snowflake", "athena", "trino", "hive", "redshift", "")
_STATEMENTS = (
    "Select SetOperation Subquery Insert Update Delete Create Drop Alter Merge TruncateTable Use Set Show Describe "
    "Transaction Commit Rollback Grant Analyze With"
)
_FENCE = re.compile(
    r"^[ \t]{0,3}(?P<mark>```|~~~)[ \t]*(?P<tag>[^\s`]*)[^\n]*\n(?P<code>.*?)^[ \t]{0,3}(?P=mark)[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_LONGEST = 200_000


def is_sql(call: Call) -> Result:
    """The whole text is SQL of the database and touches only what is allowed."""
    fault = _fault(call, call.text)
    return call.result(fault is None, fault or "", "The output SQL statement is valid")


def contains_sql(call: Call) -> Result:
    """A fenced block tagged `sql` or untagged is valid; without such blocks the whole text is tried."""
    text = call.text
    blocks = [
        found["code"]
        for found in (_FENCE.finditer(text) if len(text) <= _LONGEST else ())
        if found["tag"].lower() in ("", "sql")
    ]
    fault: str | None = None
    for block in blocks or [text]:
        fault = _fault(call, block.strip())
        if fault is None:
            break
    return call.result(fault is None, fault or "", "The output SQL statement is valid")


def _settings(call: Call) -> tuple[str, list[str], list[str]]:
    value = call.value
    if value is UNSET or value is None:
        return "MySQL", [], []
    if not isinstance(value, dict):
        raise CannotJudge(f"{call.kind} assertion must have a object value.")
    tables, columns = value.get("allowedTables") or [], value.get("allowedColumns") or []
    return (
        js.string(value.get("databaseType") or "MySQL"),
        list(map(js.string, tables)),
        list(map(js.string, columns)),
    )


def _fault(call: Call, text: str) -> str | None:
    database, tables, columns = _settings(call)
    wrong = f"SQL statement does not conform to the provided {database} database syntax."
    dialect = _DIALECTS.get(database.lower())
    if dialect is None or not text.strip():
        return wrong
    if len(text) > _LONGEST:
        raise CannotJudge(f"{call.kind}: the text is longer than {_LONGEST:,} characters")
    if text.count("`") % 2 or (
        dialect == "mysql" and re.search(r"generate_series\s*\(", text, re.IGNORECASE)
    ):
        return wrong
    statements = _parsed(text, dialect)
    if not statements:
        return wrong
    used_tables, used_columns = _used(statements)
    for kind, used, allowed in (("table", used_tables, tables), ("column", used_columns, columns)):
        if allowed and not all(any(_allows(rule, names) for rule in allowed) for names in used):
            found = ", ".join(names[0] for names in used)
            return (
                f"SQL references unauthorized {kind}(s). Found: [{found}]. Allowed: [{', '.join(allowed)}]."
            )
    return None


def _allows(rule: str, names: tuple[str, ...]) -> bool:
    try:
        expression = re.compile(rule, re.IGNORECASE)
    except re.error as error:
        raise CannotJudge(f"{rule} is not a pattern: {error}") from error
    return any(expression.fullmatch(name[:500]) for name in names)


def _parsed(text: str, dialect: str) -> list[Any] | None:
    """The statements; None where the text is no SQL, which two columns without a comma are not either."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    # It warns of what it does not know, on stderr; here that is simply no statement.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    if dialect in ("postgres", "redshift", "snowflake", "athena", "trino", ""):
        # The parser that promptfoo uses takes backticks for every database.
        text = text.replace("`", '"')
    try:
        tokens = sqlglot.tokenize(text, read=dialect or None)
        if dialect not in _WITH_BRACKETS and any(token.text == "[" for token in tokens):
            return None
        statements = [
            statement for statement in sqlglot.parse(text, read=dialect or None) if statement is not None
        ]
    except (SqlglotError, RecursionError, ValueError):
        return None
    known = tuple(getattr(exp, name) for name in _STATEMENTS.split() if hasattr(exp, name))
    if not all(isinstance(statement, known) for statement in statements):
        return None
    if _SPACE_FOR_COMMA.search(text):
        return None
    return statements


_SPACE_FOR_COMMA = re.compile(
    r"\bselect\s+(?!distinct\b|all\b|top\b)[a-z_]\w{0,100}\s+(?!from\b|as\b|is\b|in\b|and\b|or\b|not\b|like\b|between\b|collate\b|div\b|mod\b)[a-z_]\w{0,100}\s+from\b",
    re.IGNORECASE,
)


def _used(statements: list[Any]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Tables and columns as `action::schema::name`; a column without a table answers to its only one."""
    from sqlglot import exp

    tables: dict[tuple[str, ...], None] = {}
    columns: dict[tuple[str, ...], None] = {}
    for statement in statements:
        action = {"setoperation": "select", "union": "select", "subquery": "select"}.get(
            type(statement).__name__.lower(), type(statement).__name__.lower()
        )
        with_names = {query.alias_or_name for query in statement.find_all(exp.CTE)}
        found = [table for table in statement.find_all(exp.Table) if table.name not in with_names]
        target = statement.this
        aliases = {table.alias_or_name: table.name for table in found}
        for table in found:
            own = action if action == "select" or table is target or table.parent is target else "select"
            if action == "delete":
                own = "delete" if table.find_ancestor(exp.Subquery) is None else "select"
            tables[(f"{own}::{table.db or 'null'}::{table.name}",)] = None
        for column in statement.find_all(exp.Column):
            name = "(.*)" if isinstance(column.this, exp.Star) else column.name
            owner = aliases.get(column.table, column.table)
            names = [f"{action}::{owner or 'null'}::{name}"]
            if not owner and len(found) == 1:
                names.append(f"{action}::{found[0].name}::{name}")
            columns[tuple(names)] = None
        for query in statement.find_all(exp.Select):
            if any(isinstance(chosen, exp.Star) for chosen in query.expressions):
                columns[(f"{action}::null::(.*)",)] = None
    return list(tables), list(columns)
