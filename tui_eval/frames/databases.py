"""Opening the databases of a project read-only, with nothing outside them in reach.

A DuckDB file is opened for one query (an open handle locks the agent out). SQLite answers in its own dialect
(`SqliteFile`); for what it does not understand its tables are loaded into DuckDB's memory, as folders of files are, so
that external access can be off and no extension is needed.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.config.project import DatabaseSpec
from tui_eval.frames.numbers import MIXED, holds_both, mixed_text, shortest_text
from tui_eval.guard.text import clip

if TYPE_CHECKING:
    import duckdb
    import polars as pl

_LOCK_TRIES = 6
_LOCK_PAUSE = 0.15
_STEPS = 10_000
"""Instructions of SQLite's machine after which the time is looked at."""
_WILD = re.compile(r"[*?\[]")
_NAMED_OTHERWISE = re.compile(
    r"\binformation_schema\b|\b(?:duckdb|pragma|pg|sqlite)_\w+|\bquery(?:_table)?\s*\(|\bshow\b",
    re.IGNORECASE,
)
"""Queries that may read tables that they do not name as such."""
_CLOSED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
}


class SqlError(Exception):
    """SQL that could not be executed, or a database that could not be opened; one clear line.

    `detail` is all that the database said: its candidates, and a caret under the place.
    """

    def __init__(self, message: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class NoDatabase(SqlError):
    """The database could not be opened or holds nothing; one clear line that names it."""


class BadDatabase(NoDatabase):
    """What the configuration names is not there, or is no database; another one than what cannot be reached now."""


class WrongQuery(SqlError):
    """The server refuses the query itself, and says so by its code; what it says does not begin with that, as
    DuckDB's does."""


class TooLate(SqlError):
    """The time was up: while the tables were loaded, or while the query ran."""


def one_line(problem: BaseException | str) -> str:
    """The first line of a database's error, without the picture of where it happened."""
    lines = [line.strip() for line in str(problem).strip().splitlines() if line.strip()]
    return clip(lines[0] if lines else type(problem).__name__, 500)


@contextlib.contextmanager
def opened(
    database: DatabaseSpec, sql: str | Sequence[str] | None, memory_mb: int, end: float
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A locked DuckDB connection holding the database; `sql` (one or several) says which tables are needed, `end` (of
    `time.monotonic`) until when they must be loaded.

    Only for the process that may be killed (`sql_worker`): what a project's file makes a library do is not known.

    Raises:
        TooLate: the time is up.
        NoDatabase: it does not exist, cannot be opened, or its type is unknown.
        SqlError: a table that is named cannot be loaded.
    """
    if database.type == "duckdb":
        with _duckdb_file(database, memory_mb) as connection:
            yield connection
        return
    if database.type not in ("sqlite", "files"):
        raise NoDatabase(
            f"database {database.name!r}: type {database.type!r} cannot be queried here; "
            "use duckdb, sqlite, files or postgres"
        )
    import duckdb

    path = _existing(database)
    connection = duckdb.connect(":memory:", config={"memory_limit": f"{memory_mb}MB", **_CLOSED})
    try:
        if database.type == "sqlite":
            _load_sqlite(connection, database, path, sql, end)
        else:
            _load_files(connection, database, path, sql)
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


def _existing(database: DatabaseSpec) -> Path:
    if not database.path:
        raise BadDatabase(f"database {database.name!r} has no path")
    path = Path(database.path)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise BadDatabase(f"database {database.name!r}: there is no {path}") from None
    except OSError as error:
        raise BadDatabase(f"database {database.name!r}: {path}: {error.strerror}") from None
    if not path.is_file() and not path.is_dir():
        raise BadDatabase(f"database {database.name!r}: {path} is no ordinary file (a pipe or a device)")
    return path


@contextlib.contextmanager
def _duckdb_file(database: DatabaseSpec, memory_mb: int) -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb

    path = _existing(database)
    config = {
        "memory_limit": f"{memory_mb}MB",
        "enable_external_access": "false",
        "lock_configuration": "true",
        **_CLOSED,
    }
    folder: str | None = None
    connection: duckdb.DuckDBPyConnection | None = None
    try:
        for attempt in range(_LOCK_TRIES):
            try:
                connection = duckdb.connect(str(path), read_only=True, config=dict(config))
                break
            except duckdb.Error as problem:
                busy = "lock" in str(problem).lower() or "different configuration" in str(problem).lower()
                if not busy:
                    raise BadDatabase(f"database {database.name!r}: {one_line(problem)}") from None
                if attempt + 1 < _LOCK_TRIES:
                    time.sleep(_LOCK_PAUSE)
        if connection is None:
            folder = tempfile.mkdtemp(prefix="tui-eval-db-")
            copy = Path(folder) / path.name
            try:
                shutil.copyfile(path, copy)
                wal = path.with_name(path.name + ".wal")
                if wal.is_file() and not wal.is_symlink():
                    shutil.copyfile(wal, copy.with_name(copy.name + ".wal"))
                    duckdb.connect(str(copy)).close()  # a copy may take in its write-ahead log
                connection = duckdb.connect(str(copy), read_only=True, config=dict(config))
            except (OSError, duckdb.Error) as problem:
                raise NoDatabase(
                    f"database {database.name!r} is locked by another process and could not be copied: "
                    f"{one_line(problem)}"
                ) from None
        yield connection
    finally:
        if connection is not None:
            connection.close()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def quoted(name: str) -> str:
    """An identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def _named(connection: duckdb.DuckDBPyConnection, sql: str | Sequence[str] | None) -> set[str] | None:
    """The tables that queries name, in lower case, their own CTEs among them; None where that cannot be known: any may
    be needed. They are parsed only: to bind them, as `get_table_names` does, the tables would have to be there."""
    import duckdb

    queries = [sql] if isinstance(sql, str) else list(sql or ())
    named = set[str]()
    for query in queries:
        if _NAMED_OTHERWISE.search(query):
            return None
        try:
            found = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
            tree = json.loads(found[0][0])
        except (duckdb.Error, ValueError, IndexError, TypeError, RecursionError):
            return None
        if tree.get("error") and tree.get("error_type") != "parser":
            return None  # what does not parse is said of the query
        waiting: list[Any] = [tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                if node.get("type") == "BASE_TABLE":
                    named.add(str(node.get("table_name", "")).lower())
                waiting.extend(node.values())
            elif isinstance(node, list):
                waiting.extend(node)
    return named if queries else None


def _load_files(
    connection: duckdb.DuckDBPyConnection,
    database: DatabaseSpec,
    folder: Path,
    sql: str | Sequence[str] | None,
) -> None:
    """Load the files that are named, all where one of the names is none of theirs: its error names what is there.
    A file that nobody named may be broken."""
    import duckdb

    readers = {
        ".csv": "read_csv",
        ".tsv": "read_csv",
        ".parquet": "read_parquet",
        ".json": "read_json",
        ".jsonl": "read_json",
        ".ndjson": "read_json",
    }
    files = sorted(folder.iterdir()) if folder.is_dir() else [folder]
    named = _named(connection, sql)
    named_here = named is not None and named <= {file.stem.lower() for file in files}
    loaded = 0
    within = (folder if folder.is_dir() else folder.parent).resolve()
    for file in files:
        reader = readers.get(file.suffix.lower())
        if reader is None or not file.is_file():
            continue
        real = file.resolve()
        if not real.is_relative_to(within) and str(real) not in database.outside:
            raise NoDatabase(
                f"database {database.name!r}: {file.name} is a link that leads out of the folder: it is not read"
            )
        loaded += 1
        needed = named is None or file.stem.lower() in named
        if not needed and named_here:
            continue
        # A name is one file, also where it has characters that DuckDB would take for a pattern.
        name = _WILD.sub(lambda found: f"[{found[0]}]", str(real))
        create = f"CREATE TABLE {quoted(file.stem)} AS SELECT * FROM"
        try:
            try:
                connection.execute(f"{create} {reader}(?)", [name])
            except duckdb.ConversionException:
                if reader != "read_csv":
                    raise
                # The types were told from its first rows, and a later one is of another.
                connection.execute(f"{create} {reader}(?, sample_size = -1)", [name])
        except duckdb.Error as problem:
            if needed:
                raise SqlError(f"database {database.name!r}: {file.name}: {_of_file(problem)}") from None
    if not loaded:
        raise BadDatabase(f"database {database.name!r}: {folder} holds no CSV, Parquet or JSON file")


def _of_file(problem: duckdb.Error) -> str:
    """What is wrong with a file, on one line: of a CSV file DuckDB says only which line is, and below it why."""
    said = one_line(problem)
    why = re.search(r"^Original Line:.*\n(.+)", str(problem), re.MULTILINE)
    return clip(f"{said}: {why[1].strip()}", 500) if why is not None else said


def _load_sqlite(
    connection: duckdb.DuckDBPyConnection,
    database: DatabaseSpec,
    path: Path,
    sql: str | Sequence[str] | None,
    end: float,
) -> None:
    import duckdb

    late = False

    def over() -> bool:
        nonlocal late
        late = time.monotonic() > end
        return late

    wanted = _named(connection, sql)
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


def _sqlite(path: Path, over: Callable[[], bool]) -> sqlite3.Connection:
    """A connection that cannot write, whose statements end when `over` says so."""
    source = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    source.set_progress_handler(over, _STEPS)
    source.text_factory = lambda data: data.decode("utf-8", "replace")
    source.execute("PRAGMA trusted_schema = OFF")
    source.execute("PRAGMA temp_store = MEMORY")  # what it sorts counts as memory, and is in no file
    return source


def _unread(database: DatabaseSpec, problem: sqlite3.Error) -> NoDatabase:
    kind = NoDatabase if "locked" in str(problem) else BadDatabase
    return kind(f"database {database.name!r}: {one_line(problem)}")


# -- queries in SQLite's own dialect

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
        path = _existing(database)
        try:
            self._source = _sqlite(path, self._over)
        except sqlite3.Error as problem:
            raise _unread(database, problem) from None
        try:
            self._source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as problem:
            self.close()
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
