"""Opening the databases of a project read-only, with nothing outside them in reach; what comes of a query.

A DuckDB file is opened for one query (an open handle locks the agent out). SQLite answers in its own dialect
(`sqlite_file`); for what it does not understand its tables are loaded into DuckDB's memory, as folders of files are, so
that external access can be off and no extension is needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.config.project import DatabaseSpec
from tui_eval.guard.text import clip

if TYPE_CHECKING:
    import duckdb
    import polars as pl

_LOCK_TRIES = 6
_LOCK_PAUSE = 0.15
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


@dataclass(slots=True)
class SqlResult:
    """Rows of a query. `types` are DuckDB's names by column; `ordered`: there is a top-level ORDER BY, by the
    result columns `order_columns` where they could be found (empty: all). `places`: the place of each row in
    that order, one for all that tie, where the database was asked for it (None: it was not). `renamed`: the
    columns that the query calls as another one before them, by their name here, with that. `dialect` is that
    of the database which ran it, as sqlglot calls it."""

    columns: list[str]
    frame: pl.DataFrame
    ordered: bool = False
    types: dict[str, str] = field(default_factory=dict)
    order_columns: tuple[str, ...] = ()
    places: pl.Series | None = None
    renamed: dict[str, str] = field(default_factory=dict)
    dialect: str = "duckdb"


def distinct_names(names: list[str]) -> list[str]:
    """The names of columns, a number behind those that stand twice."""
    taken: set[str] = set()
    made: list[str] = []
    for name in names:
        number, fresh = 1, name
        while fresh in taken or (fresh != name and fresh in names):
            fresh, number = f"{name}_{number}", number + 1
        taken.add(fresh)
        made.append(fresh)
    return made


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

    path = existing_path(database)
    connection = duckdb.connect(":memory:", config={"memory_limit": f"{memory_mb}MB", **_CLOSED})
    try:
        if database.type == "sqlite":
            from tui_eval.frames.sqlite_file import load_into  # it knows what is here

            load_into(connection, database, path, _named(connection, sql), end)
        else:
            _load_files(connection, database, path, sql)
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


def existing_path(database: DatabaseSpec) -> Path:
    """Where the database is.

    Raises:
        BadDatabase: it is not there, or nothing that can be one.
    """
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

    path = existing_path(database)
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
            folder = tempfile.mkdtemp(prefix=_copies_of(os.getpid()))
            copy = Path(folder) / path.name
            try:
                shutil.copyfile(path, copy)
                wal = path.with_name(path.name + ".wal")
                if wal.is_file() and not wal.is_symlink():
                    shutil.copyfile(wal, copy.with_name(copy.name + ".wal"))
                    duckdb.connect(str(copy)).close()  # a copy may take in its write-ahead log
                connection = duckdb.connect(str(copy), read_only=True, config=dict(config))
                # It stays open, and none is left, whatever ends this.
                shutil.rmtree(folder, ignore_errors=True)
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


def _copies_of(process: int) -> str:
    return f"tui-eval-db-{process}-"


def forget_copies(process: int) -> None:
    """Remove the copies of databases that a process was making when it was ended."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_copies_of(process)}*"):
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
    tables: dict[str, str] = {}
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
        table = file.stem.lower()
        needed = named is None or table in named
        if not needed and named_here:
            continue
        if (other := tables.setdefault(table, file.name)) != file.name:
            if needed:
                both = f"{other} and {file.name} are both the table {file.stem}"
                raise SqlError(f"database {database.name!r}: {both}: rename one of them")
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
