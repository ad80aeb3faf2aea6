"""SQLite files, which answer queries in their own dialect, that of the user's, and do nothing else for them; and how
their tables come into DuckDB's memory, for what SQLite does not understand."""

from __future__ import annotations

import contextlib
import datetime
import re
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.config.project import DatabaseSpec
from tui_eval.frames.databases import (
    BadDatabase,
    NoDatabase,
    SqlError,
    TooLate,
    existing_path,
    kind_of_file,
    one_line,
    quoted,
)
from tui_eval.frames.numbers import MIXED, holds_both, mixed_text, shortest_text
from tui_eval.guard.text import clip

if TYPE_CHECKING:
    import duckdb
    import polars as pl

_STEPS = 10_000
"""Instructions of SQLite's machine after which the time is looked at."""
_SELECTS = re.compile(r"(?>\s|--[^\n]*|/\*.*?\*/)*+(?:select|with|values)\b", re.IGNORECASE | re.DOTALL)
_OTHERS = re.compile(
    r"\bcast\s*\([^()]*(?:\([^()]*\)[^()]*)*\bas\s+(?:date|datetime|timestamp\w*|time|interval)\s*\)"
    r"|\bstrftime\s*\(\s*(?!['\"])[^;']*,\s*'[^']*%[^']*'\s*\)",
    re.IGNORECASE,
)
"""What SQLite takes and nobody means in it: a cast to a type that it has not gives the year as a number,
`strftime` with its arguments in DuckDB's order nothing."""
_READING = frozenset({
    "collation_list", "compile_options", "data_version", "database_list", "foreign_key_list", "function_list",
    "index_info", "index_list", "index_xinfo", "page_size", "table_info", "table_list", "table_xinfo",
})  # fmt: skip
"""Pragmas that only tell something: they can be read as tables."""
_SQLITE_OWN = frozenset({
    sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_CONSTRAINT,
})  # fmt: skip
"""Errors of a query, not of its file."""
_COLUMNS_OF_IT = "tui_eval_columns_of_the_query"


_CODE = frozenset({"load_extension", "fts3_tokenizer"})
"""Functions that run code of the caller's: the second takes an address of it, where SQLite is built so
(Debian's is)."""


def _sqlite(path: Path, over: Callable[[], bool]) -> sqlite3.Connection:
    """A connection that cannot write, whose statements end when `over` says so."""
    source = _opened(path, "mode=ro", over)
    try:
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as problem:
        source.close()
        log = Path(f"{path}-wal")
        if _code(problem) & 0xFF != sqlite3.SQLITE_CANTOPEN or (log.exists() and log.stat().st_size):
            raise
        # In WAL mode SQLite makes files beside it also to read, which it cannot in a folder that is read-only; all that
        # was written is in the file itself.
        source = _opened(path, "mode=ro&immutable=1", over)
    return source


def _opened(path: Path, how: str, over: Callable[[], bool]) -> sqlite3.Connection:
    source = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, isolation_level=None)
    source.set_progress_handler(over, _STEPS)
    source.text_factory = lambda data: data.decode("utf-8", "replace")
    source.execute("PRAGMA trusted_schema = OFF")
    source.execute("PRAGMA temp_store = MEMORY")  # what it sorts counts as memory, and is in no file
    return source


def _code(problem: sqlite3.Error) -> int:
    return getattr(problem, "sqlite_errorcode", None) or 0


def _unread(database: DatabaseSpec, problem: sqlite3.Error) -> NoDatabase:
    kind = NoDatabase if "locked" in str(problem) else BadDatabase
    path, code, said = Path(database.path), _code(problem) & 0xFF, one_line(problem)
    if path.is_dir():
        said = f"{path} is a folder"
    elif code == sqlite3.SQLITE_READONLY and Path(f"{path}-journal").exists():
        said = f"{path.name}-journal is of a writer that was ended: open the file once with a program that may write"
    elif code == sqlite3.SQLITE_CANTOPEN and Path(f"{path}-wal").exists():
        said = f"{said}: to read {path.name}-wal, SQLite must write into its folder"
    elif code == sqlite3.SQLITE_NOTADB and kind_of_file(path) == "duckdb":
        said = f"{path.name} is a file of DuckDB: write type: duckdb"
    return kind(f"database {database.name!r}: {said}")


def _only_reads(action: int, one: str | None, other: str | None, *_: object) -> int:
    """SQLite asks what a statement, and each view that it reads, may do."""
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and other not in _CODE:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and one in _READING:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_UPDATE and one == "sqlite_master":
        return sqlite3.SQLITE_OK  # it asks so of `json_each` and the like, and lets nobody do it
    return sqlite3.SQLITE_DENY


@dataclass(frozen=True, slots=True)
class SqliteRows:
    """What a query gave: its columns as SQLite calls them, the types that their tables declare ("": none does), and the
    cells of each."""

    names: list[str]
    declared: list[str]
    columns: list[list[Any]]


class SqliteFile:
    """A SQLite file that answers queries itself, and does nothing else for them: its dialect is that of the user's."""

    def __init__(self, database: DatabaseSpec, end: float) -> None:
        """Open it; `end` (of `time.monotonic`) is when that must be done.

        Raises:
            NoDatabase: it does not exist or is none.
            TooLate: the time is up.
        """
        self._database, self._end, self._late = database, end, False
        path = existing_path(database)
        try:
            self._source = _sqlite(path, self._over)
        except sqlite3.Error as problem:
            raise TooLate if self._late else _unread(database, problem) from None
        self._source.set_authorizer(_only_reads)

    def close(self) -> None:
        """Close it."""
        self._source.close()

    def refuses(self, query: str) -> str | None:
        """What SQLite has against a query before it runs it ("": it is no SELECT); None: it understands it."""
        if not _SELECTS.match(query):
            return ""
        try:
            self._source.execute(f"EXPLAIN {query}").close()
        except (sqlite3.Error, sqlite3.Warning, ValueError) as problem:
            return one_line(problem)
        return None

    def rows(self, query: str, end: float) -> SqliteRows:
        """Run a query that it does not refuse, until `end` at most.

        Raises:
            TooLate: the time is up.
            NoDatabase: the file cannot be read.
            SqlError: the query fails in one of its rows.
        """
        self._end, self._late = end, False
        try:
            cursor = self._source.execute(query)
            names = [entry[0] for entry in cursor.description]
            columns: list[list[Any]] = [[] for _ in names]
            while rows := cursor.fetchmany(10_000):
                for column, cells in zip(columns, zip(*rows, strict=True), strict=True):
                    column.extend(cells)
            declared = self._declared(query)
        except sqlite3.Error as problem:
            if self._late:
                raise TooLate from None
            if getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _SQLITE_OWN:
                raise SqlError(f"SQLite Error: {one_line(problem)}") from None
            raise _unread(self._database, problem) from None
        if len(declared) != len(names):
            declared = [""] * len(names)
        return SqliteRows(names, declared, columns)

    def _declared(self, query: str) -> list[str]:
        """The declared types of a query's columns. Only a view tells them (the module keeps them to itself);
        one that is this connection's own, in memory, is neither run nor seen by anybody."""
        self._source.set_authorizer(None)
        try:
            self._source.execute(f"CREATE TEMP VIEW {_COLUMNS_OF_IT} AS {query}")
            try:
                found = self._source.execute(f"PRAGMA temp.table_info({_COLUMNS_OF_IT})").fetchall()
            finally:
                self._source.execute(f"DROP VIEW temp.{_COLUMNS_OF_IT}")
        finally:
            self._source.set_authorizer(_only_reads)
        return [str(row[2] or "").upper() for row in found]

    def _over(self) -> bool:
        self._late = time.monotonic() > self._end
        return self._late


def means_duckdb(query: str) -> bool:
    """Whether a query that SQLite takes was written for DuckDB all the same."""
    return bool(_OTHERS.search(query))


def both_refuse(said: str, problem: SqlError) -> SqlError:
    """The error of a query that SQLite does not understand (what it `said`), nor DuckDB: DuckDB's, which
    shows the place and what is there, unless it stumbles over something that SQLite has."""
    text = str(problem)
    name = said.rpartition(": ")[2].rpartition(".")[2].strip('"')
    syntax = not said.startswith(("no such", "wrong number", "misuse", "ambiguous"))
    if not said or not text.startswith(_DUCKDB_SAYS) or (name and name.lower() in text.lower()):
        return problem
    if syntax and text.startswith("Parser"):
        return problem
    return SqlError(clip(f"SQLite Error: {said} (nor as DuckDB's dialect: {text})", 500))


_DUCKDB_SAYS = ("Parser Error", "Binder Error", "Catalog Error", "Conversion Error", "Invalid Input Error")


# -- Its tables in DuckDB.


def load_into(
    connection: duckdb.DuckDBPyConnection,
    database: DatabaseSpec,
    path: Path,
    wanted: set[str] | None,
    end: float,
) -> None:
    """Load a file's tables into DuckDB's memory, until `end` at most: those that are `wanted` (in lower case), or all
    (None).

    Raises:
        TooLate: the time is up.
        NoDatabase: the file cannot be read.
        SqlError: DuckDB cannot hold one of them.
    """
    import duckdb

    late = False

    def over() -> bool:
        nonlocal late
        late = time.monotonic() > end
        return late

    try:
        with contextlib.closing(_sqlite(path, over)) as source:
            kinds = dict(
                source.execute(
                    "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
                ).fetchall()
            )
            strange = bool((wanted or set()) - {name.lower() for name in kinds})
            for name, kind in kinds.items():
                if wanted is None or name.lower() in wanted:
                    _load_table(connection, source, name)
                elif strange and kind == "table":  # without its rows: for the candidates that DuckDB names
                    _load_table(connection, source, name, "LIMIT 0")
    except sqlite3.Error as problem:
        if late:
            raise TooLate from None
        raise _unread(database, problem) from None
    except duckdb.Error as problem:
        raise SqlError(f"database {database.name!r}: {one_line(problem)}") from None


class _Capsule:
    """A frame handed over by the Arrow capsule alone: DuckDB takes polars itself only with pyarrow."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


def _load_table(
    connection: duckdb.DuckDBPyConnection, source: sqlite3.Connection, name: str, limit: str = ""
) -> None:
    import polars as pl

    cursor = source.execute(f"SELECT * FROM {quoted(name)} {limit}")
    names = [entry[0] for entry in cursor.description]
    declared = {
        row[1]: str(row[2] or "").upper() for row in source.execute(f"PRAGMA table_info({quoted(name)})")
    }
    values: list[list[Any]] = [[] for _ in names]
    while rows := cursor.fetchmany(10_000):
        for target, column in zip(values, zip(*rows, strict=True), strict=True):
            target.extend(column)
    frame: dict[str, pl.Series] = {}
    casts: list[str] = []
    for column, cells in zip(names, values, strict=True):
        series, cast = _typed(cells, declared.get(column, ""))
        frame[column] = series
        reference = quoted(column)
        casts.append(f"CAST({reference} AS {cast}) AS {reference}" if cast else reference)
    view = "tui_eval_loading"
    connection.register(view, _Capsule(pl.DataFrame(frame)))
    connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT {', '.join(casts)} FROM {view}")
    connection.unregister(view)


# -- Its cells as columns.


_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?")


def _typed(cells: list[Any], declared: str) -> tuple[Any, str]:
    """A column by what it holds, read by its declared type where all values agree; a DuckDB type to
    cast it to, or nothing."""
    import polars as pl

    types = set(map(type, cells))
    types.discard(type(None))
    if types <= {int}:
        cast = "BOOLEAN" if "BOOL" in declared and all(cell in (0, 1, None) for cell in cells) else ""
        return pl.Series(cells, dtype=pl.Int64), cast or _empty_cast(types, declared)
    if types <= {int, float}:
        return pl.Series([None if cell is None else float(cell) for cell in cells], dtype=pl.Float64), ""
    if types == {bytes}:
        return pl.Series(cells, dtype=pl.Binary), ""
    texts = [
        None
        if cell is None
        else cell.decode("utf-8", "replace")
        if isinstance(cell, bytes)
        else shortest_text(cell)
        if isinstance(cell, int | float)
        else str(cell)
        for cell in cells
    ]
    cast = ""
    if types == {str} and "DATE" in declared and all(cell is None or _is_time(_DAY, cell) for cell in cells):
        cast = "DATE" if "TIME" not in declared else "TIMESTAMP"
    elif (
        types == {str}
        and "TIME" in declared
        and all(cell is None or _is_time(_MOMENT, cell) for cell in cells)
    ):
        cast = "TIMESTAMP"
    return pl.Series(texts, dtype=pl.String), cast


def result_column(cells: list[Any], declared: str, predicate: bool, computed: bool) -> tuple[pl.Series, str]:
    """A column of a query that SQLite ran, and DuckDB's name for its type, read by its declared type as that of a table
    is. SQLite has neither truth nor days: `predicate` columns are 0 and 1, and dates that are `computed` texts."""
    import polars as pl

    if declared == "" and all(cell is None for cell in cells):
        return pl.Series(cells, dtype=pl.Null), '"NULL"'
    if holds_both(cells):
        return pl.Series([mixed_text(cell) for cell in cells], dtype=pl.String), MIXED
    series, cast = _typed(cells, "BOOLEAN" if predicate else declared)
    for kind in ("DATE", "TIMESTAMP") if computed or declared == "" else ():
        if not cast and series.dtype == pl.String:
            cast = _typed(cells, kind)[1]
    if cast in ("DATE", "TIMESTAMP"):
        texts = [None if cell is None else _moment_text(cell) for cell in cells]
        return pl.Series(texts, dtype=pl.String), cast
    if cast == "VARCHAR":
        return series.cast(pl.String), cast
    if cast == "DOUBLE":
        return series.cast(pl.Float64), cast
    if series.dtype == pl.Binary:
        return pl.Series(
            [None if cell is None else _bytes_text(cell) for cell in cells], dtype=pl.String
        ), "BLOB"
    return series, cast or {pl.Int64: "BIGINT", pl.Float64: "DOUBLE"}.get(type(series.dtype), "VARCHAR")


def _moment_text(cell: str) -> str:
    """A day or moment of SQLite in the spelling of nao's API."""
    text = datetime.datetime.fromisoformat(cell).isoformat()
    return text.rstrip("0") if "." in text else text


def _bytes_text(cell: bytes) -> str:
    """Bytes as DuckDB writes them."""
    odd = b"\"'\\"
    return "".join(chr(one) if 32 <= one < 127 and one not in odd else f"\\x{one:02X}" for one in cell)


def _is_time(form: re.Pattern[str], text: str) -> bool:
    """Whether a text is a day or moment that there is: SQLite holds a 30th of February, which stays text."""
    if not form.fullmatch(text):
        return False
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _empty_cast(types: set[type], declared: str) -> str:
    """The type of a column without values, by its declaration."""
    if types:
        return ""
    if "DATE" in declared or "TIMESTAMP" in declared:
        return "TIMESTAMP" if "TIME" in declared else "DATE"
    if any(word in declared for word in ("CHAR", "TEXT", "CLOB")):
        return "VARCHAR"
    return "DOUBLE" if any(word in declared for word in ("REAL", "FLOA", "DOUB")) else ""
