"""PostgreSQL by ADBC, straight into Arrow (the `postgres` extra)."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from tui_eval.config import DatabaseSpec
from tui_eval.frames.databases import SqlError, one_line
from tui_eval.frames.sql import SqlResult


@contextlib.contextmanager
def _cursor(database: DatabaseSpec, timeout: float) -> Iterator[Any]:
    try:
        from adbc_driver_postgresql import dbapi  # type: ignore[import-not-found]
    except ImportError:
        raise SqlError(
            f"database {database.name!r} is PostgreSQL: install tui-eval[postgres] to query it"
        ) from None
    if not database.url:
        raise SqlError(f"database {database.name!r} has no url")
    try:
        with dbapi.connect(database.url) as connection, connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
            cursor.execute(f"SET statement_timeout = {max(1, int(timeout * 1000))}")
            connection.commit()
            yield cursor
            connection.rollback()
    except SqlError:
        raise
    except Exception as problem:
        raise SqlError(one_line(problem)) from None


def execute(database: DatabaseSpec, sql: str, *, timeout: float, cancel: threading.Event | None) -> SqlResult:
    """Run one query in a read-only transaction with the server's own time limit (seconds).

    Raises:
        SqlError: one clear line.
    """
    import polars as pl

    with _cursor(database, timeout) as cursor, _Cancelling(cursor, cancel):
        cursor.execute(sql)
        frame = pl.DataFrame(cursor.fetch_arrow())
    return SqlResult(frame.columns, frame, _ordered(sql), {}, ())


class _Cancelling:
    def __init__(self, cursor: Any, cancel: threading.Event | None) -> None:
        self._cursor, self._cancel = cursor, cancel
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sql-cancel", daemon=True)

    def __enter__(self) -> None:
        if self._cancel is not None:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._cancel is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._done.is_set():
            if self._cancel is not None and self._cancel.is_set():
                with contextlib.suppress(Exception):
                    self._cursor.adbc_cancel()
            time.sleep(0.02)


def _ordered(sql: str) -> bool:
    try:
        import sqlglot

        return sqlglot.parse_one(sql, read="postgres").args.get("order") is not None
    except Exception:
        return False


def schema_text(database: DatabaseSpec) -> str:
    """The tables with their columns and types, one line each.

    Raises:
        SqlError: it cannot be reached.
    """
    with _cursor(database, 30) as cursor:
        cursor.execute(
            "SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') "
            "ORDER BY table_schema, table_name, ordinal_position"
        )
        found = cursor.fetchall()
    tables: dict[str, list[str]] = {}
    for schema, table, column, kind in found:
        name = table if schema == "public" else f"{schema}.{table}"
        tables.setdefault(name, []).append(f"{column} {kind}")
    return "\n".join(f"{name}({', '.join(columns)})" for name, columns in tables.items())
