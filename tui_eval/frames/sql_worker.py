"""The process in which databases of a project are opened, loaded and queried: `python -m tui_eval.frames.sql_worker`.

A project's database is not to be believed: a view of SQLite can be without end, a file can be made to bring a
library down, a server's rows can be more than memory holds. Requests come one at a time on stdin, answers
leave on stdout, each a length and MessagePack. The process ends when stdin does, whatever it is doing then.
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import re
import resource
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import msgspec

from tui_eval.config.project import DatabaseSpec
from tui_eval.frames import duckdb_query
from tui_eval.frames.databases import (
    BadDatabase,
    MissingDatabase,
    NoDatabase,
    SqlError,
    SqlResult,
    TooLate,
    WrongQuery,
    distinct_names,
    forget_copies,
    one_line,
)
from tui_eval.frames.query_words import orders_rows, place_of
from tui_eval.frames.sqlite_file import SqliteFile, SqliteRows, both_refuse, means_duckdb, result_column

if TYPE_CHECKING:
    import duckdb

_LENGTH = struct.Struct(">Q")
_BESIDE = 512 * 1024 * 1024
"""Bytes of address space beside twice the memory that a query may have: rows are held once as they come from
SQLite, once as DuckDB's."""


class QueryAsked(msgspec.Struct):
    """A request. Without `sql` the tables and their columns are asked for. `timeout` in seconds, for opening,
    loading and the query together.

    With `many` each of those queries is answered for itself, on one connection and at most with its first `limit`
    rows; loading has `timeout`, and each query."""

    database: DatabaseSpec
    sql: str | None
    timeout: float
    memory_mb: int
    many: list[str] = []
    limit: int = 0


Kind = Literal["query", "wrong query", "late", "no database", "bad database", "missing database"]
"""What an error is about."""
KINDS: dict[Kind, type[SqlError]] = {
    "late": TooLate,
    "missing database": MissingDatabase,
    "bad database": BadDatabase,
    "no database": NoDatabase,
    "wrong query": WrongQuery,
    "query": SqlError,
}
"""What is raised for each; what is derived stands before what it is derived from."""


class QueryAnswered(msgspec.Struct):
    """An answer: an `error` of a `kind`, a `text`, or a result whose frame is `data` (Arrow IPC). `detail` is all
    that DuckDB says of an error; `unopened` ends the answers to many queries. `spent`: the process ran out of
    memory, and libraries do not get over that: it is not to be asked again."""

    error: str = ""
    spent: bool = False
    detail: str = ""
    unopened: bool = False
    kind: Kind = "query"
    text: str = ""
    columns: list[str] = []
    types: dict[str, str] = {}
    ordered: bool = False
    order_columns: list[str] = []
    renamed: dict[str, str] = {}
    dialect: str = "duckdb"
    data: bytes = b""


def read_message(stream: BinaryIO) -> bytes | None:
    """The next message; None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    return body if len(body) == length else None


def framed(body: bytes) -> bytes:
    """A message with its length before it."""
    return _LENGTH.pack(len(body)) + body


def answers(asked: QueryAsked) -> Iterator[QueryAnswered]:
    """What came of a request, one for each of its queries; never raises."""
    if not asked.many:
        with _memory(asked.memory_mb):
            yield _caught(asked, lambda: _alone(asked))
        return
    if asked.database.type == "sqlite":
        yield from _many_of_sqlite(asked)
        return
    if asked.database.type == "postgres":
        yield from _many_of_a_server(asked)
        return
    with _memory(asked.memory_mb), contextlib.ExitStack() as stack:
        end = time.monotonic() + asked.timeout
        connections: list[duckdb.DuckDBPyConnection] = []

        def open_it() -> QueryAnswered:
            held = duckdb_query.opened(asked.database, asked.many, asked.memory_mb, end)
            connections.append(stack.enter_context(held))
            return QueryAnswered()

        said = _caught(asked, open_it)
        if not connections:
            said.unopened = True
            yield said
            return
        for sql in asked.many:
            yield _caught(asked, lambda sql=sql: _one_of_many(connections[0], sql, asked))


def _many_of_sqlite(asked: QueryAsked) -> Iterator[QueryAnswered]:
    """The answers of a SQLite file: what it does not understand has its tables loaded into DuckDB together,
    and each its own where that fails."""
    with _memory(asked.memory_mb), contextlib.ExitStack() as stack:
        files: list[SqliteFile] = []
        connections: list[duckdb.DuckDBPyConnection] = []
        alone = False

        def open_it() -> QueryAnswered:
            files.append(SqliteFile(asked.database, time.monotonic() + asked.timeout))
            stack.callback(files[0].close)
            return QueryAnswered()

        def in_duckdb(sql: str) -> SqlResult:
            nonlocal alone
            query = duckdb_query.only_a_select(sql)
            if not connections and not alone:
                end = time.monotonic() + asked.timeout
                try:
                    held = duckdb_query.opened(asked.database, others, asked.memory_mb, end)
                    connections.append(stack.enter_context(held))
                except SqlError:
                    alone = True
            end = time.monotonic() + asked.timeout
            if connections:
                return duckdb_query.queried(connections[0], query, asked.memory_mb, end, asked.timeout)
            return duckdb_query.in_duckdb(asked.database, query, asked.memory_mb, end, asked.timeout)

        said = _caught(asked, open_it)
        if not files:
            said.unopened = True
            yield said
            return
        others = [sql for sql in asked.many if files[0].refuses(sql) is not None or means_duckdb(sql)]

        def one(sql: str) -> QueryAnswered:
            end = time.monotonic() + asked.timeout
            return _packed(_of_sqlite(files[0], sql, end, asked.timeout, in_duckdb), asked.limit)

        for sql in asked.many:
            yield _caught(asked, lambda sql=sql: one(sql))


def _many_of_a_server(asked: QueryAsked) -> Iterator[QueryAnswered]:
    """The answers of PostgreSQL, each on a connection of its own; none more where it cannot be reached."""
    from tui_eval.frames import postgres

    def one(sql: str) -> QueryAnswered:
        result = postgres.execute(asked.database, sql, timeout=asked.timeout, memory_mb=asked.memory_mb)
        return _packed(result, asked.limit)

    for sql in asked.many:
        with _memory(asked.memory_mb):
            said = _caught(asked, lambda sql=sql: one(sql))
        said.unopened = issubclass(KINDS[said.kind], NoDatabase)
        yield said
        if said.unopened:
            return


def _one_of_many(connection: duckdb.DuckDBPyConnection, sql: str, asked: QueryAsked) -> QueryAnswered:
    query = duckdb_query.only_a_select(sql)
    end = time.monotonic() + asked.timeout
    result = duckdb_query.queried(connection, query, asked.memory_mb, end, asked.timeout)
    return _packed(result, asked.limit)


def _alone(asked: QueryAsked) -> QueryAnswered:
    if asked.database.type == "postgres":
        from tui_eval.frames import postgres

        if asked.sql is None:
            return QueryAnswered(text=postgres.schema_text(asked.database, asked.timeout))
        return _packed(
            postgres.execute(asked.database, asked.sql, timeout=asked.timeout, memory_mb=asked.memory_mb)
        )
    end = time.monotonic() + asked.timeout
    if asked.sql is None:
        return QueryAnswered(
            text=duckdb_query.schema_text(asked.database, asked.memory_mb, end, asked.timeout)
        )
    return _packed(_execute(asked.database, asked.sql, asked.memory_mb, end, asked.timeout))


def _packed(result: SqlResult, limit: int = 0) -> QueryAnswered:
    data = io.BytesIO()
    frame = result.frame.head(limit) if limit else result.frame
    _room_for(int(frame.estimated_size()) * _COPIES)
    frame.write_ipc_stream(data, compression="uncompressed")
    return QueryAnswered(
        columns=result.columns,
        types=result.types,
        ordered=result.ordered,
        order_columns=list(result.order_columns),
        renamed=result.renamed,
        dialect=result.dialect,
        data=data.getvalue(),
    )


def _caught(asked: QueryAsked, work: Callable[[], QueryAnswered]) -> QueryAnswered:
    """An answer, or the error that came of looking for it."""
    try:
        return work()
    except SqlError as problem:
        kind: Kind = next(kind for kind, raised in KINDS.items() if isinstance(problem, raised))
        loading = (
            f"the query took longer than {asked.timeout:g} s, loading the tables and views that it names"
        )
        return QueryAnswered(error=str(problem) or loading, detail=problem.detail, kind=kind)
    except MemoryError:
        return QueryAnswered(error=f"the query needs more than {asked.memory_mb} MB of memory", spent=True)
    except BaseException as problem:  # Polars panics with one that is no Exception
        # DuckDB can run out of it while its answer is read, too; it is not imported where no query was run.
        if type(problem).__name__ == "OutOfMemoryException" or _NO_MEMORY.search(str(problem)):
            return QueryAnswered(
                error=f"the query needs more than {asked.memory_mb} MB of memory", spent=True
            )
        return QueryAnswered(error=f"the rows could not be read: {one_line(problem)}")


_NO_MEMORY = re.compile(r"Cannot allocate memory|memory allocation|Out of Memory|PyObject pointer is null")
"""How Polars says that there is no more, or what it was given by DuckDB."""
_COPIES = 3
"""How often rows are held while they are packed, besides as they came."""
_MUCH = 32 * 1024 * 1024


def _room_for(count: int) -> None:
    """Whether so many bytes more can be held.

    Raises:
        MemoryError: they cannot. Polars would wait for ever where it runs out of memory in one of its threads.
    """
    if count < _MUCH:
        return
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    with contextlib.suppress(OSError, ValueError, IndexError):
        if most != resource.RLIM_INFINITY and _held_bytes() + count > most:
            raise MemoryError


def _held_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def _memory(memory_mb: int):
    """Bound what this process may hold while a request is answered; where that cannot be (macOS), the time is."""
    old = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(OSError, ValueError, IndexError):
        most = _held_bytes() + 2 * memory_mb * 1024 * 1024 + _BESIDE
        resource.setrlimit(resource.RLIMIT_AS, (most, old[1]))
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, old)


def _execute(database: DatabaseSpec, sql: str, memory_mb: int, end: float, timeout: float) -> SqlResult:
    if database.type != "sqlite":
        return duckdb_query.in_duckdb(database, sql, memory_mb, end, timeout)
    file = SqliteFile(database, end)
    with contextlib.closing(file):
        return _of_sqlite(
            file,
            sql,
            end,
            timeout,
            lambda query: duckdb_query.in_duckdb(database, query, memory_mb, end, timeout),
        )


def _of_sqlite(
    file: SqliteFile, sql: str, end: float, timeout: float, in_duckdb: Callable[[str], SqlResult]
) -> SqlResult:
    """The rows that SQLite itself gives; what it does not understand may be of DuckDB's dialect, in which its tables
    were once queried always."""
    said = file.refuses(sql)
    if said is not None or means_duckdb(sql):
        try:
            return in_duckdb(sql)
        except SqlError as problem:
            if said is not None:
                raise both_refuse(said, problem) from None
            if type(problem) is not SqlError:
                raise
    try:
        found = file.rows(sql, end)
    except TooLate:
        raise TooLate(f"the query took longer than {timeout:g} s") from None
    return _sqlite_result(sql, found)


def _sqlite_result(sql: str, found: SqliteRows) -> SqlResult:
    import polars as pl

    names = distinct_names(found.names)
    texts = (cell for cells in found.columns for cell in cells if isinstance(cell, str | bytes))
    _room_for(sum(map(len, texts)) * (_COPIES + 1))
    tree, predicates, computed = _read_as_sqlite(sql, len(names))
    read = [
        result_column(cells, declared, at in predicates, at in computed)
        for at, (cells, declared) in enumerate(zip(found.columns, found.declared, strict=True))
    ]
    frame = pl.DataFrame([series.alias(name) for name, (series, _) in zip(names, read, strict=True)])
    kinds = {name: kind for name, (_, kind) in zip(names, read, strict=True)}
    renamed = {name: own for name, own in zip(names, found.names, strict=True) if name != own}
    ordered, known = orders_rows(sql), list[str]()
    if tree is not None:
        order = tree.args.get("order")
        places = [place_of(one.this, tree, names) for one in order.expressions] if order is not None else []
        ordered, known = order is not None, [names[at] if at is not None else "" for at in places]
    columns = tuple(known) if all(known) else ()
    return SqlResult(names, frame, ordered, kinds, columns, renamed=renamed, dialect="sqlite")


def _read_as_sqlite(sql: str, width: int) -> tuple[Any, set[int], set[int]]:
    """A query's tree (None: sqlglot does not read it), and which of its columns are true or false, and which are no
    column of a table."""
    import sqlglot
    from sqlglot import errors, exp

    try:
        tree = sqlglot.parse_one(sql, read="sqlite")
    except (errors.SqlglotError, RecursionError, ValueError, LookupError):
        return None, set(), set()
    if not isinstance(tree, exp.Query):
        return None, set(), set()
    shown = [one.unalias().unnest() for one in tree.selects]
    if len(shown) != width or any(one.is_star for one in shown):
        return tree, set(), set()
    truth = (exp.Predicate, exp.And, exp.Or, exp.Not, exp.Boolean)
    predicates = {at for at, one in enumerate(shown) if isinstance(one, truth)}
    return tree, predicates, {at for at, one in enumerate(shown) if not isinstance(one, exp.Column)}


def main() -> None:
    """Answer until stdin ends."""
    import duckdb  # noqa: F401 - what every request needs, before memory is bounded
    import polars  # noqa: F401

    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        while (message := read_message(sys.stdin.buffer)) is not None:
            waiting.put(message)
        forget_copies(os.getpid())
        os._exit(0)  # whoever asked is gone: whatever is being done is for nobody

    threading.Thread(target=listen, name="requests", daemon=True).start()
    out.write(framed(b""))  # it is there
    out.flush()
    while True:
        for said in answers(msgspec.msgpack.decode(waiting.get(), type=QueryAsked)):
            body = msgspec.msgpack.encode(said)
            out.write(_LENGTH.pack(len(body)))
            out.write(body)
            out.flush()


if __name__ == "__main__":
    main()
