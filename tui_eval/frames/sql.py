"""Expected SQL and the `sql` tool: one SELECT, read-only, with limits, into a frame.

Columns that frames cannot hold come as DuckDB's text, dates and times as nao's API gives them. Databases of a project
are opened and queried in processes of their own (`sql_worker`), which are kept for the next question, and killed when
one takes too long.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import math
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.config.project import DatabaseSpec
from tui_eval.frames.databases import NoDatabase, SqlError, SqlResult, TooLate, forget_copies, one_line
from tui_eval.frames.numbers import MIXED, mixed_cell
from tui_eval.frames.sql_worker import KINDS, QueryAnswered, QueryAsked, framed

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SqlError", "SqlResult", "end_idle", "execute", "execute_all", "rows", "schema_text"]

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
    said = _ask(database, sql, timeout, memory_mb, cancel)
    return _result_of(said, _frame_of(said))


def execute_all(
    database: DatabaseSpec, queries: Sequence[str], *, timeout: float, limit: int, memory_mb: int = 1024
) -> Iterator[SqlResult | SqlError]:
    """Run many SELECTs on one connection; of each its error, or its first `limit` rows. Blocks.

    `timeout` in seconds for each. Where the tables of all cannot be loaded together, each is run alone.
    """
    done = 0
    for said in _ask_many(database, queries, timeout, memory_mb, limit):
        if said.unopened and issubclass(KINDS[said.kind], NoDatabase):
            yield from [_error_of(said)] * (len(queries) - done)
            return
        if said.unopened:
            break
        done += 1
        yield _result(said) if not said.error else _error_of(said)
    for sql in queries[done:]:
        try:
            yield execute(database, sql, timeout=timeout, memory_mb=memory_mb)
        except SqlError as problem:
            yield problem


def _result(said: QueryAnswered) -> SqlResult | SqlError:
    try:
        frame = _frame_of(said)
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
    from tui_eval.frames.typed_columns import as_cells, digits_of

    columns: list[list[Any]] = []
    for name in result.columns:
        held = as_cells(frame.get_column(name)) if not result.types.get(name) else None
        cells = frame.get_column(name).to_list() if held is None else held
        if result.types.get(name) in ("UHUGEINT", "BIGNUM", "VARINT"):
            columns.append([_value(digits_of(cell), finite) for cell in cells])
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
    return _ask(database, None, _SCHEMA_SECONDS, 1024, None).text


# -- The processes.


_GRACE = 3.0
"""Seconds that a process may take beyond a query's time to say so itself; after that it is killed."""
_START = 60.0
"""Seconds for a process to be there and have its libraries."""
_KEPT = 4
_HEAD = 8
_LOOK_MS = 20


def _ask(
    database: DatabaseSpec, sql: str | None, timeout: float, memory_mb: int, cancel: threading.Event | None
) -> QueryAnswered:
    """Have a query answered, or without one the tables listed. Blocks: call it in a thread.

    Raises:
        SqlError: one clear line.
    """
    if cancel is not None and cancel.is_set():
        raise SqlError("cancelled")
    try:
        worker = _taken()
    except OSError as error:
        raise SqlError(f"no process for SQL can be started: {one_line(error)}") from None
    try:
        said = worker.ask(QueryAsked(database, sql, timeout, memory_mb), cancel)
    except BaseException:
        worker.kill()
        raise
    if said.spent:
        worker.kill()
    else:
        _give_back(worker)
    if said.error:
        raise _error_of(said)
    return said


def _ask_many(
    database: DatabaseSpec, queries: Sequence[str], timeout: float, memory_mb: int, limit: int
) -> Iterator[QueryAnswered]:
    """Have queries answered on one connection, one after another; of each the first `limit` rows. `timeout` is each
    one's own, and that of loading what they need. Blocks. An answer may be an error, and then is that query's alone;
    one that says `unopened` is the last.
    """
    left = list(queries)
    while left:
        try:
            worker = _taken()
        except OSError as error:
            yield QueryAnswered(error=f"no process for SQL can be started: {one_line(error)}", unopened=True)
            return
        asked = QueryAsked(database, None, timeout, memory_mb, left, limit)
        done = False
        try:
            worker.send(asked)
            while left:
                said = worker.receive(asked, None)
                left = left[1:]
                done = (not left or said.unopened) and not said.spent
                yield said
                if said.unopened:
                    return
                if said.spent:
                    break
        except SqlError as problem:  # its process is no more: the others get a new one
            left = left[1:]
            yield QueryAnswered(error=str(problem), kind="late" if isinstance(problem, TooLate) else "query")
        finally:
            if done:
                _give_back(worker)
            else:
                worker.kill()


def _error_of(said: QueryAnswered) -> SqlError:
    """The error that an answer is."""
    return KINDS[said.kind](said.error, said.detail)


def _frame_of(said: QueryAnswered) -> pl.DataFrame:
    """The rows of an answer.

    Raises:
        SqlError: they cannot be read.
    """
    import polars as pl

    try:
        return pl.read_ipc_stream(said.data)
    except BaseException as problem:
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        raise SqlError(f"the rows could not be read: {one_line(problem)}") from None


class SqlWorker:
    """One process, asked by one thread at a time."""

    def __init__(self) -> None:
        # -P: the folder that the program was started in is no place to import modules from. A session of its
        # own, so that Ctrl-C is the engine's alone.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tui_eval.frames.sql_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        self._fresh = True

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, asked: QueryAsked, cancel: threading.Event | None) -> QueryAnswered:
        """The answer to a question.

        Raises:
            SqlError: its time is up, it is cancelled, or the process ended.
        """
        self.send(asked)
        return self.receive(asked, cancel)

    def send(self, asked: QueryAsked) -> None:
        """Put a question.

        Raises:
            SqlError: the process has ended, or what is asked is no text.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(framed(msgspec.msgpack.encode(asked)))
        except UnicodeEncodeError:
            why = f"the path of database {asked.database.name!r} is not UTF-8"
            with contextlib.suppress(UnicodeEncodeError):
                asked.database.path.encode()
                why = "the query holds half of a pair of surrogates, which is no character"
            raise SqlError(why) from None
        except OSError:
            raise SqlError(self._lost(asked)) from None

    @staticmethod
    def _lost(asked: QueryAsked) -> str:
        needs = f"the query needs more than {asked.memory_mb} MB of memory"
        if asked.database.type == "postgres":
            return needs
        return f"the process that executed the query ended: {needs}, or database {asked.database.name!r} is damaged"

    def receive(self, asked: QueryAsked, cancel: threading.Event | None) -> QueryAnswered:
        """The next answer to the question that was put; raises as `ask` does."""
        late = f"the query took longer than {asked.timeout:g} s"
        lost = self._lost(asked)
        if self._fresh:  # it says when it is there: only then a query has begun
            self._read(_HEAD, time.monotonic() + _START, cancel, late, lost)
            self._fresh = False
        limit = asked.timeout * (2 if asked.many else 1)  # loading has its own
        end = time.monotonic() + limit + _GRACE
        largest = 4 * asked.memory_mb * 1024 * 1024
        head = self._read(_HEAD, end, cancel, late, lost)
        length = int.from_bytes(head, "big")
        if length > largest:
            raise SqlError(f"the rows need more than {asked.memory_mb} MB of memory")
        body = self._read(length, end, cancel, late, lost)
        try:
            return msgspec.msgpack.decode(body, type=QueryAnswered)
        except msgspec.MsgspecError:
            raise SqlError(lost) from None

    def _read(
        self, length: int, end: float, cancel: threading.Event | None, late: str, lost: str
    ) -> bytearray:
        assert self.process.stdout is not None
        handle = self.process.stdout.fileno()
        there = select.poll()
        there.register(handle, select.POLLIN | select.POLLHUP)
        found = bytearray()
        while len(found) < length:
            left = end - time.monotonic()
            if left <= 0:
                raise TooLate(late)
            if cancel is not None and cancel.is_set():
                raise SqlError("cancelled")
            if not there.poll(left * 1000 if cancel is None else min(left * 1000, _LOOK_MS)):
                continue
            piece = os.read(handle, min(length - len(found), 1 << 20))
            if not piece:
                raise SqlError(lost)
            found += piece
        return found

    def kill(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        forget_copies(self.process.pid)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


_lock = threading.Lock()
_idle: list[SqlWorker] = []


def _taken() -> SqlWorker:
    """A process that waits, else a new one."""
    while True:
        with _lock:
            worker = _idle.pop() if _idle else None
        if worker is None:
            return SqlWorker()
        if worker.alive:
            return worker
        worker.kill()


def _give_back(worker: SqlWorker) -> None:
    with _lock:
        if len(_idle) < _KEPT:
            _idle.append(worker)
            return
    worker.kill()


@atexit.register
def end_idle() -> None:
    """End the processes that wait for a query."""
    with _lock:
        waiting, _idle[:] = _idle[:], []
    for worker in waiting:
        worker.kill()
