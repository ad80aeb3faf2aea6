"""is-sql and contains-sql: syntax by dialect, allowed tables and columns."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo import sql_dialects
from tui_eval.assertions.promptfoo.call import Call, Result
from tui_eval.javascript import values as js

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
    "Transaction Commit Rollback Grant With Semicolon"
)
_FENCE = re.compile(r"[ \t]{0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<tag>.*)")
_LONGEST = 200_000


def is_sql(call: Call) -> Result:
    """The whole text is SQL of the database and touches only what is allowed."""
    fault = _fault(call, call.text)
    return call.result(fault is None, fault or "", "The output SQL statement is valid")


def contains_sql(call: Call) -> Result:
    """A fenced block tagged `sql` or untagged is valid; without such blocks the whole text is tried."""
    blocks = list(_blocks(call.text))
    fault: str | None = None
    for block in blocks or [call.text]:
        fault = _fault(call, block)
        if fault is None:
            break
    return call.result(fault is None, fault or "", "The output SQL statement is valid")


def _blocks(text: str) -> Iterator[str]:
    """The fenced blocks tagged `sql` or untagged; one that does not end is none."""
    mark, wanted, lines = "", False, list[str]()
    for line in re.split(r"\r\n?|\n", text):
        fence = _FENCE.fullmatch(line)
        if not mark:
            if fence:
                mark, wanted, lines = fence["mark"], js.trim(fence["tag"]).lower() in ("", "sql"), []
        elif fence and not js.trim(fence["tag"]) and fence["mark"].startswith(mark):
            if wanted:
                yield "\n".join(lines).strip()
            mark = ""
        else:
            lines.append(line)


def _settings(call: Call) -> tuple[str, list[str], list[str]]:
    value = call.value
    if value is UNSET or not value or isinstance(value, list):
        return "MySQL", [], []
    if not isinstance(value, dict):
        raise CannotJudge(f"{call.kind} assertion must have a object value.")
    tables, columns = value.get("allowedTables") or [], value.get("allowedColumns") or []
    if not isinstance(tables, list) or not isinstance(columns, list):
        raise CannotJudge(f"{call.kind} assertion: allowedTables and allowedColumns must be lists")
    return (
        js.string(value.get("databaseType") or "MySQL"),
        list(map(js.string, tables)),
        list(map(js.string, columns)),
    )


def _fault(call: Call, text: str) -> str | None:
    database, tables, columns = _settings(call)
    wrong = f"SQL statement does not conform to the provided {database} database syntax."
    if database.lower() not in _DIALECTS or not text.strip():
        return wrong
    if len(text) > _LONGEST:
        raise CannotJudge(f"{call.kind}: the text is longer than {_LONGEST:,} characters")
    series = database == "MySQL" and re.search(r"\bgenerate_series\s*\(", text, re.IGNORECASE)
    if text.count("`") % 2 or series:
        return wrong
    statements = _parsed(text, database.lower())
    if not statements:
        return wrong
    used_tables, used_columns = _used(statements, named_too=call.evidence.reference)
    # A column that names its table may be written without it.
    bare = [re.sub(r"^([^:]*)::[^:]+::", r"\1::null::", rule) for rule in columns]
    for kind, used, allowed, rules in (
        ("table", used_tables, tables, tables),
        ("column", used_columns, columns, columns + bare),
    ):
        if allowed and not all(any(_allows(rule, name) for rule in rules) for name in used):
            return (
                f"SQL references unauthorized {kind}(s). Found: [{', '.join(used)}]. "
                f"Allowed: [{', '.join(allowed)}]."
            )
    return None


def _allows(rule: str, name: str) -> bool:
    try:
        expression = re.compile(rule, re.IGNORECASE)
    except re.error as error:
        raise CannotJudge(f"{rule} is not a pattern: {error}") from error
    return expression.fullmatch(name[:500]) is not None


def _parsed(text: str, database: str) -> list[Any] | None:
    """The statements; None where the text is no SQL, which two columns without a comma are not either."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    # It warns of what it does not know, on stderr; here that is simply no statement.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    dialect = _DIALECTS[database]
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
    said = sql_dialects.words(tokens)
    if sql_dialects.is_command(database, said):
        return statements
    known = tuple(getattr(exp, name) for name in _STATEMENTS.split() if hasattr(exp, name))
    if not all(isinstance(statement, known) for statement in statements):
        return None
    if dialect == "mysql":
        said = _MODIFIERS.sub("SELECT ", said)
    if sql_dialects.refuses(database, said, statements) or _SPACE_FOR_COMMA.search(said):
        return None
    return statements


_SPACE_FOR_COMMA = re.compile(
    r"\bSELECT (?:(?:ALL|DISTINCT|DISTINCTROW) )*(?!(?:ALL|DISTINCT|DISTINCTROW)\b)[A-Z_]\w* [A-Z_]\w* FROM\b",
    re.ASCII,
)
_MODIFIERS = re.compile(r"\bSELECT (?:(?:HIGH_PRIORITY|STRAIGHT_JOIN|SQL_[A-Z_]+) )+")
"""What MySQL takes between SELECT and the first column."""


def _used(statements: list[Any], *, named_too: bool) -> tuple[list[str], list[str]]:
    """Tables and columns as `action::schema::name`.

    Columns that are looked at belong to `select` whatever the statement does; those that it writes
    belong to it. `named_too` counts the names of a WITH clause as tables, as promptfoo does.
    """
    from sqlglot import exp

    tables: dict[str, None] = {}
    columns: dict[str, None] = {}
    for statement in statements:
        action = _ACTIONS.get(type(statement).__name__, "select")
        with_names = {query.alias_or_name for query in statement.find_all(exp.CTE)}
        found = [
            table for table in statement.find_all(exp.Table) if named_too or table.name not in with_names
        ]
        written = _written(statement)
        aliases = {table.alias_or_name: table.name for table in found}
        for table in found:
            own = action if table is written or action not in ("insert", "update", "delete") else "select"
            tables[f"{own}::{table.db or 'null'}::{table.name}"] = None
        if action == "show":
            tables["show::null::null"] = None
        columns.update(dict.fromkeys(_changed(statement, action, written)))
        for column in statement.find_all(exp.Column):
            around: Any = column.parent
            if action == "update" and around.parent is statement and around.args.get("this") is column:
                continue
            name = "(.*)" if isinstance(column.this, exp.Star) else column.name
            columns[f"select::{aliases.get(column.table, column.table) or 'null'}::{name}"] = None
        for query in statement.find_all(exp.Select):
            if any(isinstance(chosen, exp.Star) for chosen in query.expressions):
                columns["select::null::(.*)"] = None
    return list(tables), list(columns)


def _written(statement: Any) -> Any:
    """The table that a statement writes to."""
    from sqlglot import exp

    target = statement.this
    return target.this if isinstance(target, exp.Schema) else target


def _changed(statement: Any, action: str, written: Any) -> list[str]:
    """The columns that a statement writes, or defines."""
    from sqlglot import exp

    if action == "delete":
        return [f"delete::{written.name}::(.*)"] if isinstance(written, exp.Table) else []
    if action == "insert":
        listed = statement.this.expressions if isinstance(statement.this, exp.Schema) else []
        return [f"insert::{written.name}::{column.name}" for column in listed] or [
            f"insert::{written.name}::(.*)"
        ]
    if action == "update":
        changes = (change.this for change in statement.expressions if isinstance(change, exp.EQ))
        return [f"update::null::{column.name}" for column in changes if isinstance(column, exp.Column)]
    defined = [column.name for column in statement.find_all(exp.ColumnDef)]
    return [f"{kind}::null::{name}" for name in defined for kind in ("select", "create")]


_ACTIONS = {
    "Insert": "insert",
    "Update": "update",
    "Delete": "delete",
    "Drop": "drop",
    "TruncateTable": "truncate",
    "Create": "create",
    "Alter": "alter",
    "Show": "show",
}
