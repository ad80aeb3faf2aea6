"""Expected SQL and the `sql` tool: one SELECT, read-only, with limits, into a frame.

Columns that frames cannot hold come as DuckDB's text, dates and times as nao's API gives them. Databases of a project
are opened in a process of their own (`sql_process`), which is ended when its time is up.
"""

from __future__ import annotations

import datetime
import math
import threading
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from tui_eval.config.project import DatabaseSpec
from tui_eval.frames import sql_process
from tui_eval.frames.databases import SqlError
from tui_eval.frames.numbers import MIXED, mixed_cell
from tui_eval.frames.sql_worker import QueryAnswered, SqlResult

__all__ = ["SqlError", "SqlResult", "execute", "execute_all", "rows", "schema_text"]

_SCHEMA_SECONDS = 30.0


def execute(
    database: DatabaseSpec,
    sql: str,
    *,
    timeout: float = 30,
    memory_mb: int = 1024,
    cancel: threading.Event | None = None,
) -> SqlResult:
    """Run one SELECT. Blocks: call it in a thread.

    `timeout` in seconds, for loading the tables and the query together; setting `cancel` interrupts at once.

    Raises:
        SqlError: one clear line: not a single SELECT, wrong SQL, no database, time or memory spent.
    """
    said = sql_process.ask(database, sql, timeout, memory_mb, cancel)
    return _result_of(said, sql_process.frame_of(said))


def execute_all(
    database: DatabaseSpec, queries: Sequence[str], *, timeout: float, limit: int, memory_mb: int = 1024
) -> Iterator[SqlResult | SqlError]:
    """Run many SELECTs on one connection; of each its error, or its first `limit` rows. Blocks.

    `timeout` in seconds for each. Where the tables of all cannot be loaded together, each is run alone.
    """
    done = 0
    for said in sql_process.ask_many(database, queries, timeout, memory_mb, limit):
        if said.unopened and said.kind in ("no database", "bad database"):
            yield from [sql_process.error_of(said)] * (len(queries) - done)
            return
        if said.unopened:
            break
        done += 1
        yield _result(said) if not said.error else sql_process.error_of(said)
    for sql in queries[done:]:
        try:
            yield execute(database, sql, timeout=timeout, memory_mb=memory_mb)
        except SqlError as problem:
            yield problem


def _result(said: QueryAnswered) -> SqlResult | SqlError:
    try:
        frame = sql_process.frame_of(said)
    except SqlError as problem:
        return problem
    return _result_of(said, frame)


def _result_of(said: QueryAnswered, frame: Any) -> SqlResult:
    order = tuple(said.order_columns)
    return SqlResult(
        said.columns, frame, said.ordered, said.types, order, renamed=said.renamed, dialect=said.dialect
    )


def rows(result: SqlResult, limit: int | None = None, *, finite: bool = True) -> list[dict[str, Any]]:
    """The rows as JSON-able records: whole decimals as integers, others as the float that prints
    alike, else as text; dates and times as nao's API sends them; NaN and infinity as null, unless they are not to be
    `finite`."""
    frame = result.frame if limit is None else result.frame.head(limit)
    from tui_eval.frames.typed_columns import as_cells

    columns: list[list[Any]] = []
    for name in result.columns:
        held = as_cells(frame.get_column(name)) if not result.types.get(name) else None
        cells = frame.get_column(name).to_list() if held is None else held
        if result.types.get(name) in ("UHUGEINT", "BIGNUM", "VARINT"):
            columns.append([None if cell is None else int(cell) for cell in cells])
        elif result.types.get(name) == MIXED:
            columns.append([_value(mixed_cell(cell), finite) for cell in cells])
        else:
            columns.append([_value(cell, finite) for cell in cells])
    return [dict(zip(result.columns, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _value(cell: Any, finite: bool) -> Any:
    if isinstance(cell, Decimal):
        if cell == cell.to_integral_value():
            return int(cell)
        near = float(cell)
        return near if Decimal(repr(near)) == cell else format(cell, "f")
    if finite and isinstance(cell, float) and not math.isfinite(cell):
        return None
    if isinstance(cell, datetime.date | datetime.time):
        from tui_eval.frames.value_texts import plain  # with polars

        return plain(cell)
    return cell


def schema_text(database: DatabaseSpec) -> str:
    """The tables with their columns and types, one line each, for a model that writes SQL.

    Raises:
        SqlError: the database cannot be opened.
    """
    return sql_process.ask(database, None, _SCHEMA_SECONDS, 1024, None).text
