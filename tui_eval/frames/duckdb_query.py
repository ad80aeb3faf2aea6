"""DuckDB: a project's databases opened in it read-only, with nothing outside them in reach, and the queries that it
answers: one SELECT each, ended when its time is up, its rows as a frame can hold them.

A DuckDB file is opened for one query (an open handle locks the agent out). SQLite answers in its own dialect
(`sqlite_file`); for what it does not understand its tables are loaded into DuckDB's memory, as folders of files are, so
that external access can be off and no extension is needed.

Only for the process that may be killed (`sql_worker`): what a project's file makes a library do is not known.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.config.project import DatabaseSpec
from tui_eval.frames.databases import (
    BadDatabase,
    NoDatabase,
    SqlError,
    SqlResult,
    TooLate,
    copies_of,
    distinct_names,
    existing_path,
    kind_of_file,
    one_line,
    quoted,
)
from tui_eval.frames.query_words import bare_statement, orders_rows, read_query
from tui_eval.frames.sqlite_file import load_into
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


def in_duckdb(database: DatabaseSpec, sql: str, memory_mb: int, end: float, timeout: float) -> SqlResult:
    """The rows of a query on a database that is opened for it alone.

    Raises:
        SqlError: no rows, and why.
    """
    query = only_a_select(sql)
    with opened(database, query, memory_mb, end) as connection:
        return queried(connection, query, memory_mb, end, timeout)


def queried(
    connection: duckdb.DuckDBPyConnection, query: str, memory_mb: int, end: float, timeout: float
) -> SqlResult:
    """The rows of a query on an open connection, by `end`.

    Raises:
        SqlError: no rows, and why.
    """
    import duckdb

    with _Watch(connection, end, timeout) as watch:
        try:
            return _run(connection, query)
        except duckdb.InterruptException:
            raise watch.error("the query was interrupted") from None
        except duckdb.OutOfMemoryException:
            raise SqlError(f"the query needs more than {memory_mb} MB of memory") from None
        except duckdb.PermissionException as problem:
            raise watch.error(f"{one_line(problem)}{_BESIDE}") from None
        except duckdb.Error as problem:
            detail = "" if watch.reason else _detail(connection, query, problem)
            raise watch.error(one_line(problem), detail) from None
        except Exception:
            if watch.reason:  # its rows were being read: polars has an error of its own for that
                raise TooLate(watch.reason) from None
            raise


_BESIDE = (
    " (SQL reads no files here, nor do views over them: "
    "make each a table, or put it into the folder of a database of type files)"
)


def _detail(connection: duckdb.DuckDBPyConnection, query: str, problem: duckdb.Error) -> str:
    """All that DuckDB says of a query that cannot be bound; only `execute` shows the place."""
    import duckdb

    if isinstance(problem, duckdb.BinderException | duckdb.CatalogException):
        try:
            connection.execute(query).fetchone()
        except duckdb.Error as again:
            return str(again)
    return str(problem)


def schema_text(database: DatabaseSpec, memory_mb: int, end: float, timeout: float) -> str:
    """The tables of a database with their columns, a line each."""
    import duckdb

    with opened(database, None, memory_mb, end) as connection, _Watch(connection, end, timeout) as watch:
        try:
            found = connection.execute(
                "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() "
                "WHERE NOT internal ORDER BY schema_name, table_name, column_index"
            ).fetchall()
        except duckdb.Error as problem:
            raise watch.error(one_line(problem)) from None
    tables: dict[str, list[str]] = {}
    for schema, table, column, kind in found:
        name = table if schema == "main" else f"{schema}.{table}"
        tables.setdefault(name, []).append(f"{_bare(column)} {kind}")
    return "\n".join(f"{name}({', '.join(columns)})" for name, columns in tables.items())


_HELD = {
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "HUGEINT", "FLOAT", "DOUBLE", "BOOLEAN", "VARCHAR", '"NULL"',
}  # fmt: skip


def only_a_select(sql: str) -> str:
    """The statement, if it is one SELECT.

    Raises:
        SqlError: it is another, or several.
    """
    import duckdb

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as problem:
        raise SqlError(one_line(problem), str(problem)) from None
    if len(statements) != 1:
        raise SqlError("there is no SQL statement" if not statements else "only one SQL statement is allowed")
    kind = statements[0].type
    if kind == duckdb.StatementType.MULTI:
        raise SqlError("PIVOT over unknown columns is several statements; name its values with IN (…)")
    if kind != duckdb.StatementType.SELECT:
        raise SqlError(f"only SELECT is allowed, not {str(kind).rsplit('.', 1)[-1]}")
    return bare_statement(statements[0].query)


class _Watch:
    """Interrupts a connection's query when its time is up."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, end: float, timeout: float) -> None:
        self.reason = ""
        self._connection, self._end, self._timeout = connection, end, timeout
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sql-limit", daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def error(self, message: str, detail: str = "") -> SqlError:
        """What a query ended with: that its time was up, where it was, else `message`."""
        return TooLate(self.reason) if self.reason else SqlError(message, detail)

    def _watch(self) -> None:
        if self._done.wait(max(0.0, self._end - time.monotonic())):
            return
        self.reason = f"the query took longer than {self._timeout:g} s"
        while True:
            self._connection.interrupt()  # again and again: the query may not have begun
            if self._done.wait(0.02):
                return


def _run(connection: duckdb.DuckDBPyConnection, query: str) -> SqlResult:
    import polars as pl

    relation = connection.sql(query)
    if relation is None:
        raise SqlError("the statement gives no rows")
    types = [str(kind) for kind in relation.types]
    relation_names = list(relation.columns)
    names = distinct_names(relation_names)
    if names != relation_names or any(not _held(kind) for kind in types):
        inner = ", ".join(f"c{index}" for index in range(len(names)))
        shown = ", ".join(_shown(f"c{index}", kind) for index, kind in enumerate(types))
        relation = connection.sql(f"SELECT {shown} FROM (\n{query}\n) AS q({inner})")
    frame = pl.DataFrame(relation)
    frame.columns = names
    for index, kind in enumerate(types):
        if kind == "HUGEINT" and (texts := _beyond_decimals(frame.to_series(index))) is not None:
            frame.replace_column(index, texts)
            types[index] = "BIGNUM"
    ordered, order_columns = _order(connection, query, names)
    renamed = {name: own for name, own in zip(names, relation_names, strict=True) if name != own}
    kinds = dict(zip(names, types, strict=True))
    return SqlResult(names, frame, ordered, kinds, order_columns, renamed=renamed)


def _beyond_decimals(column: pl.Series) -> pl.Series | None:
    """HUGEINTs as texts where one has 39 digits: they come as DECIMAL(38), which rounds it. None: none has."""
    import polars as pl

    if column.dtype != pl.Decimal:
        return None
    whole = column.cast(pl.Int128)
    least, most = whole.min(), whole.max()
    if not isinstance(least, int) or not isinstance(most, int) or max(-least, most) < 10**38:
        return None
    texts = [None if value is None else str(value) for value in whole.to_list()]
    return pl.Series(column.name, texts, dtype=pl.String)


def _held(kind: str) -> bool:
    return kind in _HELD or (kind.startswith("DECIMAL(") and kind.endswith(")"))


def _shown(column: str, kind: str) -> str:
    """A column as a frame can hold it, temporal ones in the spelling of nao's API: a fraction of a second has six
    digits, nine where it has more."""
    if _held(kind):
        return column
    text = f"CAST({column} AS VARCHAR)"
    if kind == "TIME":
        whole = f"strftime(DATE '2000-01-01' + {column}, '%H:%M:%S.%f')"
        return f"CASE WHEN {_FRACTION.format(column)} THEN {whole} ELSE {text} END"
    moment, zone = column, ""
    if kind == "TIMESTAMP WITH TIME ZONE":
        moment, zone = f"make_timestamp(epoch_us({column}))", "+00:00"
    elif kind not in ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        return text
    spelled = f"CAST({moment} AS VARCHAR)"
    cases = [
        f"NOT isfinite({column}) THEN {text}",
        # As PostgreSQL writes it.
        f"{spelled} LIKE '%(BC)%' THEN replace({spelled}, ' (BC)', '') || '{zone} BC'",
    ]
    if kind == "TIMESTAMP_NS":
        cases.append(f"nanosecond({column}) % 1000 <> 0 THEN strftime({column}, '{_MOMENT}%n')")
    if kind != "DATE":
        cases.append(f"{_FRACTION.format(moment)} THEN strftime({moment}, '{_MOMENT}%f{zone}')")
    written = f"{spelled} || 'T00:00:00'" if kind == "DATE" else f"replace({spelled}, ' ', 'T') || '{zone}'"
    return f"CASE {' '.join(f'WHEN {case}' for case in cases)} ELSE {written} END"


_FRACTION = "microsecond({}) % 1000000 <> 0"
_MOMENT = "%Y-%m-%dT%H:%M:%S."


def _order(
    connection: duckdb.DuckDBPyConnection, query: str, names: list[str]
) -> tuple[bool, tuple[str, ...]]:
    """Whether the statement has a top-level ORDER BY, and which result columns it names."""
    import duckdb

    try:
        # All of it: a connection with an unfinished result takes no other query.
        found = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
        tree = json.loads(found[0][0]) if found else {}
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
        tree = read_query(query, "duckdb")
    except Exception:
        return orders_rows(query)
    return tree.args.get("order") is not None


def _bare(name: str) -> str:
    return name if name.isidentifier() else quoted(name)


# -- The databases that it answers from, nothing outside them in reach.


@contextlib.contextmanager
def opened(
    database: DatabaseSpec, sql: str | Sequence[str] | None, memory_mb: int, end: float
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A locked DuckDB connection holding the database; `sql` (one or several) says which tables are needed, `end` (of
    `time.monotonic`) until when they must be loaded.

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
            load_into(connection, database, path, _named(connection, sql), end)
        else:
            _load_files(connection, database, path, sql)
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


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
                    said = one_line(problem)
                    if kind_of_file(path) == "sqlite":
                        said = f"{path.name} is a file of SQLite: write type: sqlite"
                    raise BadDatabase(f"database {database.name!r}: {said}") from None
                if attempt + 1 < _LOCK_TRIES:
                    time.sleep(_LOCK_PAUSE)
        if connection is None:
            folder = tempfile.mkdtemp(prefix=copies_of(os.getpid()))
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
    others: dict[str, str] = {}
    within = (folder if folder.is_dir() else folder.parent).resolve()
    for file in files:
        reader = readers.get(file.suffix.lower())
        if reader is None or not file.is_file():
            others.setdefault(file.name.partition(".")[0].lower(), file.name)
            continue
        real = file.resolve()
        if not real.is_relative_to(within) and str(real) not in database.outside:
            raise NoDatabase(
                f"database {database.name!r}: {file.name} is a link that leads out of the folder: it is not read"
            )
        loaded += 1
        table = file.stem.lower()
        needed = sql is not None and (
            named is None or table in named
        )  # else: only what there is, is asked for
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
            if reader == "read_csv":
                _load_csv(connection, create, name, file)
            elif file.suffix.lower() == ".json" and _is_cut_off(file):
                raise SqlError("its list is not closed: the file is cut off, or still being written")
            else:
                connection.execute(f"{create} {reader}(?)", [name])
        except SqlError as problem:
            if needed:
                raise SqlError(f"database {database.name!r}: {file.name}: {problem}") from None
            connection.execute(f"DROP TABLE IF EXISTS {quoted(file.stem)}")
        except duckdb.Error as problem:
            if needed:
                raise SqlError(f"database {database.name!r}: {file.name}: {_of_file(problem)}") from None
    if not loaded:
        raise BadDatabase(f"database {database.name!r}: {folder} holds no CSV, Parquet or JSON file")
    text = sql if isinstance(sql, str) else "\n".join(sql or ())
    for table in sorted((named or set()) - tables.keys()):
        if table in others and not re.search(rf"(?i)\b{re.escape(table)}\b\s*(?:\([^()]*\)\s*)?as\b", text):
            read = "only .csv, .tsv, .parquet, .json, .jsonl and .ndjson files are tables"
            raise SqlError(f"database {database.name!r}: {others[table]} is not read: {read}")


def _load_csv(connection: duckdb.DuckDBPyConnection, create: str, name: str, file: Path) -> None:
    """Load a CSV file with all its rows: DuckDB, which finds out by itself how a file is written, leaves out those that
    do not fit.

    Raises:
        SqlError: some of them would be left out.
    """
    import duckdb

    sniffed = "SELECT SkipRows, HasHeader, Comment, Delimiter, len(Columns) FROM sniff_csv(?{})"
    try:
        found = connection.execute(sniffed.format(""), [name]).fetchall()
        skipped, header, comment, delimiter, width = found[0]
        as_data = ", comment = ''"
        options = ""
        if comment == "#" and connection.execute(sniffed.format(as_data), [name]).fetchall()[0][-1] == width:
            options = as_data  # lines that begin with it have as many values as the others: `#1001` is an id
    except duckdb.Error:  # what is wrong with the file is said of reading it
        skipped, header, delimiter, width, options = 0, True, ",", 0, ""
    try:
        connection.execute(f"{create} read_csv(?{options})", [name])
    except duckdb.ConversionException:
        # The types were told from its first rows, and a later one is of another.
        connection.execute(f"{create} read_csv(?{options}, sample_size = -1)", [name])
    with file.open(encoding="utf-8", errors="replace") as opened_file:
        first = opened_file.readline(_LONGEST_LINE).removeprefix("\ufeff").rstrip("\r\n")
    if skipped and delimiter in first:
        (count,) = connection.execute(f"SELECT count(*) FROM {quoted(file.stem)}").fetchall()[0]
        if not header or count < skipped:
            raise SqlError(
                f"line {skipped + 1} has another number of values than those above, which would be left out"
            )
    if (
        width == 1
        and not first.startswith('"')
        and (sign := next((one for one in ",;\t" if one in first), ""))
    ):
        raise SqlError(f"not every line has {first.count(sign) + 1} values, as the first has")


_LONGEST_LINE = 100_000


def _is_cut_off(file: Path) -> bool:
    """Whether a JSON list has no end: DuckDB takes one that ends in a comma for whole."""
    with file.open("rb") as data:
        if data.read(_LONGEST_LINE).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"[":
            return False
        data.seek(-min(_LONGEST_LINE, data.seek(0, os.SEEK_END)), os.SEEK_END)
        return data.read().rstrip()[-1:] == b","


def _of_file(problem: duckdb.Error) -> str:
    """What is wrong with a file, on one line: of a CSV file DuckDB says only which line is, and below it why."""
    said = one_line(problem)
    why = re.search(r"^Original Line:.*\n(.+)", str(problem), re.MULTILINE)
    return clip(f"{said}: {why[1].strip()}", 500) if why is not None else said
