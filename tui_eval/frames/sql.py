"""Expected SQL and the `sql` tool: one SELECT, read-only, with limits, into a frame.

Columns that frames cannot hold come as DuckDB's text, dates and times as nao's API gives them.
"""

from __future__ import annotations

import json
import threading
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tui_eval.config import DatabaseSpec
from tui_eval.frames.databases import SqlError, one_line, opened, quoted
from tui_eval.frames.sql_result import SqlResult

if TYPE_CHECKING:
    import duckdb

__all__ = ["SqlError", "SqlResult", "execute", "rows", "schema_text"]

_HELD = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "HUGEINT", "FLOAT", "DOUBLE", "BOOLEAN", "VARCHAR", '"NULL"',
}  # fmt: skip


def execute(
    database: DatabaseSpec,
    sql: str,
    *,
    timeout: float = 30,
    memory_mb: int = 1024,
    cancel: threading.Event | None = None,
) -> SqlResult:
    """Run one SELECT. Blocks: call it in a thread.

    `timeout` in seconds; setting `cancel` interrupts at once.

    Raises:
        SqlError: one clear line: not a single SELECT, wrong SQL, no database, time or memory spent.
    """
    import duckdb

    if database.type == "postgres":
        from tui_eval.frames import postgres

        _only_a_select(sql, strict=False)
        return postgres.execute(database, sql, timeout=timeout, cancel=cancel)
    query = _only_a_select(sql)
    if cancel is not None and cancel.is_set():
        raise SqlError("cancelled")
    with opened(database, query, memory_mb) as connection, _Watch(connection, timeout, cancel) as watch:
        try:
            return _run(connection, query)
        except duckdb.InterruptException:
            raise SqlError(watch.reason or "the query was interrupted") from None
        except duckdb.OutOfMemoryException:
            raise SqlError(f"the query needs more than {memory_mb} MB of memory") from None
        except duckdb.Error as problem:
            raise SqlError(watch.reason or one_line(problem)) from None
        except SqlError:
            raise
        except Exception as problem:
            raise SqlError(f"the rows could not be read: {one_line(problem)}") from None
        except BaseException as problem:
            if type(problem).__name__ != "PanicException":
                raise
            raise SqlError(f"the rows could not be read: {one_line(problem)}") from None


def _only_a_select(sql: str, strict: bool = True) -> str:
    import duckdb

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as problem:
        if not strict:
            return sql  # another dialect; the server itself refuses writes
        raise SqlError(one_line(problem)) from None
    if len(statements) != 1:
        raise SqlError("there is no SQL statement" if not statements else "only one SQL statement is allowed")
    kind = statements[0].type
    if kind == duckdb.StatementType.MULTI:
        raise SqlError("PIVOT over unknown columns is several statements; name its values with IN (…)")
    if kind != duckdb.StatementType.SELECT:
        raise SqlError(f"only SELECT is allowed, not {str(kind).rsplit('.', 1)[-1]}")
    return statements[0].query.strip().rstrip(";").rstrip()


class _Watch:
    """Interrupts a connection's query when its time is up or it is cancelled."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, timeout: float, cancel: threading.Event | None
    ) -> None:
        self.reason = ""
        self._connection, self._timeout, self._cancel = connection, timeout, cancel
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sql-limit", daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        end = time.monotonic() + self._timeout
        pause = 0.02 if self._cancel is not None else None
        while True:
            left = end - time.monotonic()
            if left <= 0:
                self.reason = f"the query took longer than {self._timeout:g} s"
            elif self._cancel is not None and self._cancel.is_set():
                self.reason = "cancelled"
            if self.reason:
                self._connection.interrupt()  # again and again: the query may not have begun
                if self._done.wait(0.02):
                    return
            elif self._done.wait(left if pause is None else min(pause, left)):
                return


def _run(connection: duckdb.DuckDBPyConnection, query: str) -> SqlResult:
    import polars as pl

    relation = connection.sql(query)
    if relation is None:
        raise SqlError("the statement gives no rows")
    types = [str(kind) for kind in relation.types]
    names = _distinct(relation.columns)
    if any(not _held(kind) for kind in types):
        inner = ", ".join(f"c{index}" for index in range(len(names)))
        shown = ", ".join(_shown(f"c{index}", kind) for index, kind in enumerate(types))
        relation = connection.sql(f"SELECT {shown} FROM (\n{query}\n) AS q({inner})")
    frame = pl.DataFrame(relation)
    frame.columns = names
    ordered, order_columns = _order(connection, query, names)
    return SqlResult(names, frame, ordered, dict(zip(names, types, strict=True)), order_columns)


def _held(kind: str) -> bool:
    return kind in _HELD or (kind.startswith("DECIMAL(") and kind.endswith(")"))


def _distinct(names: list[str]) -> list[str]:
    taken: set[str] = set()
    made: list[str] = []
    for name in names:
        number, fresh = 1, name
        while fresh in taken:
            fresh, number = f"{name}_{number}", number + 1
        taken.add(fresh)
        made.append(fresh)
    return made


def _shown(column: str, kind: str) -> str:
    """A column as a frame can hold it, temporal ones in the spelling of nao's API."""
    if _held(kind):
        return column
    text = f"CAST({column} AS VARCHAR)"
    if kind == "DATE":
        return f"CASE WHEN isfinite({column}) THEN {text} || 'T00:00:00' ELSE {text} END"
    if kind in ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        return f"replace({text}, ' ', 'T')"
    if kind == "TIMESTAMP WITH TIME ZONE":
        utc = f"replace(CAST(make_timestamp(epoch_us({column})) AS VARCHAR), ' ', 'T') || '+00:00'"
        return f"CASE WHEN isfinite({column}) THEN {utc} ELSE {text} END"
    return text


def _order(
    connection: duckdb.DuckDBPyConnection, query: str, names: list[str]
) -> tuple[bool, tuple[str, ...]]:
    """Whether the statement has a top-level ORDER BY, and which result columns it names."""
    import duckdb

    try:
        row = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
        tree = json.loads(row[0]) if row else {}
        node = tree["statements"][0]["node"]
        while node.get("type") == "CTE_NODE":
            node = node["child"]
        orders = [
            order
            for modifier in node.get("modifiers", [])
            if modifier.get("type") == "ORDER_MODIFIER"
            for order in modifier["orders"]
        ]
    except (duckdb.Error, KeyError, IndexError, TypeError, ValueError):
        return _order_by_sqlglot(query), ()
    columns: list[str] = []
    for order in orders:
        expression = order.get("expression", {})
        name: Any = None
        if expression.get("type") == "COLUMN_REF":
            name = expression["column_names"][-1]
        elif expression.get("type") == "VALUE_CONSTANT":
            literal = expression.get("literal") or expression.get("value") or {}
            place = str(literal.get("text", literal.get("value", "")))
            if place.isdigit() and 1 <= int(place) <= len(names):
                name = names[int(place) - 1]
        if name not in names:
            return True, ()
        columns.append(name)
    return bool(orders), tuple(columns)


def _order_by_sqlglot(query: str) -> bool:
    try:
        import sqlglot

        tree = sqlglot.parse_one(query, read="duckdb")
    except Exception:
        return False
    return tree.args.get("order") is not None


def rows(result: SqlResult, limit: int | None = None) -> list[dict[str, Any]]:
    """The rows as JSON-able records: whole decimals as integers, others as the float that prints
    alike, else as text; NaN and infinity as null."""
    frame = result.frame if limit is None else result.frame.head(limit)
    columns: list[list[Any]] = []
    for name in result.columns:
        cells = frame.get_column(name).to_list()
        if result.types.get(name) in ("UHUGEINT", "BIGNUM", "VARINT"):
            columns.append([None if cell is None else int(cell) for cell in cells])
        else:
            columns.append([_value(cell) for cell in cells])
    return [dict(zip(result.columns, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _value(cell: Any) -> Any:
    if isinstance(cell, Decimal):
        if cell == cell.to_integral_value():
            return int(cell)
        near = float(cell)
        return near if Decimal(repr(near)) == cell else format(cell, "f")
    if isinstance(cell, float) and (cell != cell or cell in (float("inf"), float("-inf"))):
        return None
    return cell


def schema_text(database: DatabaseSpec) -> str:
    """The tables with their columns and types, one line each, for a model that writes SQL.

    Raises:
        SqlError: the database cannot be opened.
    """
    if database.type == "postgres":
        from tui_eval.frames import postgres

        return postgres.schema_text(database)
    with opened(database, None, 1024) as connection:
        found = connection.execute(
            "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE NOT internal ORDER BY schema_name, table_name, column_index"
        ).fetchall()
    tables: dict[str, list[str]] = {}
    for schema, table, column, kind in found:
        name = table if schema == "main" else f"{schema}.{table}"
        tables.setdefault(name, []).append(f"{_bare(column)} {kind}")
    return "\n".join(f"{name}({', '.join(columns)})" for name, columns in tables.items())


def _bare(name: str) -> str:
    return name if name.isidentifier() else quoted(name)
