"""PostgreSQL by ADBC, straight into Arrow (the `postgres` extra).

Only for the process that may be killed (`sql_worker`): how many rows a server sends is not known.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tui_eval.config.project import DatabaseSpec
from tui_eval.extensions import adding
from tui_eval.frames.databases import (
    BadDatabase,
    NoDatabase,
    SqlError,
    SqlResult,
    TooLate,
    WrongQuery,
    distinct_names,
    one_line,
)
from tui_eval.frames.numbers import are_floats, exact_decimals
from tui_eval.frames.postgres_query import read_postgres
from tui_eval.frames.query_words import divides
from tui_eval.frames.value_texts import duck_text

if TYPE_CHECKING:
    import polars as pl


_PREFIX = re.compile(
    r"^(?:[A-Z_]+: )?(?:\[libpq\] )?(?:Failed to [^:]*: |Execution error [^:]*: )?(?:could not begin COPY: )?(?:ERROR: +)?"
)

_NO_MEMORY = re.compile(
    r"^ReadRecord failed at row \d+:$|^PQgetCopyData\(\) failed: out of memory$|^cannot allocate memory for"
)
"""What the driver says where this process may have no more; the server says it otherwise."""

_AS_IT_IS = frozenset({
    "bigint", "boolean", "character", "character varying", "date", "double precision", "integer", "json", "jsonb",
    "name", "numeric", "oid", "real", "smallint", "text", "timestamp with time zone", "timestamp without time zone",
    "xml",
})  # fmt: skip
"""Types that arrive with their meaning; of others (uuid, interval, inet, ranges, …) the driver hands on
the bytes of the wire, or nothing that a frame can hold; of a `time` it loses 24:00."""
_COMPARED_AS = {
    "bytea": "BYTEA", "interval": "INTERVAL", "json": "JSON", "jsonb": "JSON", "time without time zone": "TIME",
}  # fmt: skip
"""DuckDB's names of types that arrive as text; it writes bytes otherwise."""
_MEMBERS = {
    "bigint": "BIGINT", "boolean": "BOOLEAN", "character": "VARCHAR", "character varying": "VARCHAR", "date": "DATE",
    "double precision": "DOUBLE", "integer": "INTEGER", "interval": "INTERVAL", "money": "DECIMAL", "name": "VARCHAR",
    "numeric": "DECIMAL", "real": "FLOAT", "smallint": "SMALLINT", "text": "VARCHAR",
    "time without time zone": "TIME", "timestamp with time zone": "TIMESTAMP WITH TIME ZONE",
    "timestamp without time zone": "TIMESTAMP", "uuid": "UUID",
}  # fmt: skip
"""DuckDB's names of what arrays hold; arrays of other types are compared as JSON."""


_TEXTS = {
    "client_encoding": "UTF8", "datestyle": "ISO", "intervalstyle": "postgres", "bytea_output": "hex",
    "extra_float_digits": "1",
}  # fmt: skip
"""What a role or database may have set otherwise, and the text of values depends on. In which order a query's own dates
are read (`DMY`) stays as it is."""


@contextlib.contextmanager
def _cursor(database: DatabaseSpec, timeout: float) -> Iterator[Any]:
    try:
        from adbc_driver_postgresql import dbapi  # type: ignore[import-not-found]
    except ImportError:
        raise NoDatabase(
            f"database {database.name!r} is PostgreSQL, which needs the extra postgres: {adding('postgres')}"
        ) from None
    if not database.url:
        raise NoDatabase(f"database {database.name!r} has no url")
    try:
        end = time.monotonic() + timeout
        opened = _connected(dbapi, database, timeout)
        with opened as connection, connection.cursor() as cursor:
            cursor.execute("SET standard_conforming_strings = on")  # as queries are read here
            if database.schema:  # as nao's client does
                path = database.schema.replace("'", "''")
                cursor.execute(f"SELECT set_config('search_path', '{path}', false)")
                arrived(cursor.fetch_arrow())
            cursor.execute("SET default_transaction_read_only = on")
            for setting, value in _TEXTS.items():
                cursor.execute(f"SET {setting} = {value}")
            left = end - time.monotonic()
            cursor.execute(f"SET statement_timeout = {max(1, int(left * 1000))}")
            connection.commit()
            _end_with_us(cursor)
            try:
                yield cursor
            finally:
                with contextlib.suppress(
                    Exception
                ):  # where the connection is lost, why is what is to be said
                    connection.rollback()
    except (SqlError, MemoryError):
        raise
    except Exception as problem:
        said = _said(problem)
        if _NO_MEMORY.search(said):
            raise MemoryError from None
        # PostgreSQL ends a query by itself, and says so in its own words.
        if "statement timeout" in said:
            raise TooLate(said) from None
        state = str(getattr(problem, "sqlstate", None) or "")
        if state[:2] in _OF_THE_QUERY and state != _NO_RIGHT:
            raise WrongQuery(said, str(problem) if isinstance(problem, _Refused) else "") from None
        raise SqlError(said) from None


_FULL = re.compile(r"too many (?:clients|connections)|connection slots|no more connections allowed")
"""How servers, and what stands before them, say that others have all of their connections."""


def _connected(dbapi: Any, database: DatabaseSpec, timeout: float) -> Any:
    """A connection. Where others have all that there are, one of them is waited for, and so is a server that does not
    answer: for half of the time of a query, so that it can be said which.

    Raises:
        NoDatabase: there is none.
    """
    if "PGCONNECT_TIMEOUT" not in _OWN_ENVIRONMENT:
        os.environ["PGCONNECT_TIMEOUT"] = str(max(2, int(timeout / 2)))  # less than 2 is none for the library
    end = time.monotonic() + timeout / 2
    while True:
        try:
            return dbapi.connect(database.url)
        except Exception as problem:
            said = _said(problem)
            if unread := _unread(database.url, said):
                raise BadDatabase(f"database {database.name!r}: its url {unread}") from None
            if not _FULL.search(said) or time.monotonic() > end:
                raise NoDatabase(f"database {database.name!r} cannot be reached: {said}") from None
        time.sleep(random.uniform(0.05, 0.3))


_OWN_ENVIRONMENT = frozenset(os.environ)
_ADDRESS = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
_NO_WORDS = re.compile(r'^missing "=" after|^unterminated quoted string')
_BARE = re.compile(r"[@/\s]|%(?![0-9A-Fa-f]{2})")


def _unread(url: str, said: str) -> str:
    """What is wrong with an address that the library has not understood, "" where that is not known: it takes a
    password with an `@` for a host, and names what it makes of it."""
    begins = _ADDRESS.match(url)
    if begins is None:
        return "is no postgresql://user:password@host:port/database" if _NO_WORDS.match(said) else ""
    rest = url[begins.end() :]
    before = rest.partition("@")[0]
    options = rest.find("?", 0 if re.search(r"/.*\?", before) else len(before))
    login = (rest[:options] if options >= 0 else rest).rpartition("@")[0]
    if said.startswith("connection to server") or not _BARE.search(login):
        return ""
    return "has signs in its user or password that must be written as %40 for @, %2F for /, %25 for %, %20 for a blank"


_OF_THE_QUERY = ("0A", "21", "22", "42")
"""Classes of PostgreSQL's codes that speak of the query: what it cannot do, more rows than one, wrong values,
wrong words or names. What fails while rows are read comes without a code."""
_NO_RIGHT = "42501"


class _Refused(ValueError):
    """A query that the server would not declare: what it says, with its code."""

    def __init__(self, problem: Exception, before: str) -> None:
        """`before` stands before the query, on a line of its own, in what the server was given."""
        said, sent, _ = str(problem).partition("\n\nQuery was:")
        said = _PREFIX.sub("", said.replace(before, ""))
        super().__init__(_PICTURE.sub(_line_before, said) if sent else one_line(said))
        self.sqlstate = getattr(problem, "sqlstate", None)


_PICTURE = re.compile(r"^LINE (\d+): (.*)\n( *\^)", re.MULTILINE)


def _line_before(found: re.Match[str]) -> str:
    number = int(found[1]) - 1
    head = f"LINE {number}: "
    return f"{head}{found[2]}\n{found[3][len(f'LINE {found[1]}: ') - len(head) :]}"


def _end_with_us(cursor: Any) -> None:
    """Have the server look, where it can (since 14, not on every system), whether who asked is still there: a
    query that is stopped is stopped by ending this process."""
    try:
        cursor.execute(
            "SELECT set_config(name, '500ms', false) FROM pg_settings WHERE name = 'client_connection_check_interval'"
        )
        arrived(cursor.fetch_arrow())
        cursor.connection.commit()
    except Exception:
        cursor.connection.rollback()


def _said(problem: Exception) -> str:
    """The server's own words in an error of the driver."""
    return _PREFIX.sub("", one_line(problem).replace("got external error: ", ""))


def execute(database: DatabaseSpec, sql: str, *, timeout: float, memory_mb: int = 1024) -> SqlResult:
    """Run one query in a read-only transaction with the server's own time limit (seconds).

    Raises:
        SqlError: one clear line.
    """
    asked = read_postgres(sql)
    query, refused = asked.text, asked.refused
    with _cursor(database, timeout) as cursor:
        superuser, lowered = _lower(cursor)
        if refused:
            raise SqlError(f"{refused}; {superuser} should not be a superuser" if superuser else refused)
        if lowered and asked.of_role:
            raise SqlError(
                f"role {superuser} is a superuser, and expected SQL asks as {_READER}, {asked.of_role}: "
                "give the database a role that is none"
            )
        try:
            _declare(cursor, query)
            columns = _columns(cursor, query)
            cursor.execute(columns.query)
            quotients = divides(query)
            frame = arrived(cursor.fetch_arrow(), quotients)
        except Exception as problem:
            if lowered and _DENIED.search(str(problem)):
                raise SqlError(
                    f"{_said(problem)} (asked as {_READER}, as {superuser} is a superuser)"
                ) from None
            raise
        if frame.estimated_size() > memory_mb * 1024 * 1024:
            raise SqlError(f"the query needs more than {memory_mb} MB of memory")
        frame.columns = columns.names
        frame, types = meant(frame, columns.kinds, quotients)
    return SqlResult(columns.names, frame, _ordered(sql), types, renamed=columns.renamed, dialect="postgres")


_READER = "pg_read_all_data"
"""PostgreSQL's own role (since 14) that may read every table, and nothing else."""
_DENIED = re.compile(r"permission denied|must be superuser|user mapping not found|row-level security")


def _lower(cursor: Any) -> tuple[str, bool]:
    """Of a superuser lay down for this connection all rights but that of reading tables: the server then
    refuses what no list of names knows. The role's name, "" where it is none; and whether it could be lowered
    (not before 14)."""
    cursor.execute(
        "SELECT CASE WHEN current_setting('is_superuser') = 'on' THEN current_user::text ELSE '' END AS role, "
        f"EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{_READER}') AS there"
    )
    role, there = arrived(cursor.fetch_arrow()).row(0)
    lowered = bool(role and there)
    if lowered:
        # "$user" in the path would be another schema; of tables with policies rows would be missing, without a word.
        cursor.execute(
            "SELECT set_config('search_path', coalesce(string_agg(quote_ident(s.name), ', ' ORDER BY s.place), "
            "'\"\"'), false) FROM unnest(current_schemas(false)) WITH ORDINALITY AS s(name, place)"
        )
        arrived(cursor.fetch_arrow())
        cursor.execute("SET row_security = off")
        cursor.execute(f"SET ROLE {_READER}")
        cursor.connection.commit()
    return role, lowered


def _declare(cursor: Any, sql: str) -> None:
    """Have the server say that the statement is one query: nothing else can be declared as a cursor. It is not run."""
    declared = f"DECLARE tui_eval_query NO SCROLL CURSOR FOR\n{sql}"
    try:
        cursor.execute(declared)
    except Exception as problem:  # the driver puts it before what the server says
        raise _Refused(problem, declared) from None
    cursor.execute("CLOSE tui_eval_query")


@dataclass(frozen=True, slots=True)
class _Columns:
    """What is asked for a query's rows, the names of its columns with their types, and which were renamed."""

    query: str
    names: list[str]
    kinds: dict[str, str]
    renamed: dict[str, str]


def _columns(cursor: Any, sql: str) -> _Columns:
    """The query with columns of types that do not arrive with their meaning as their text, money as a number and
    arrays as JSON. Names and types are asked for without running it.

    Raises:
        SqlError: it has no columns.
    """
    row = f"FROM (SELECT q.* FROM (SELECT 1) AS one LEFT JOIN (\n{sql}\n) AS q ON false) AS tui_eval_row"
    # Of the side that is never joined nothing is computed, and every column still has its name and type.
    cursor.execute(f"SELECT ARRAY(SELECT json_object_keys(row_to_json(tui_eval_row))) {row}")
    own: list[str] = list(arrived(cursor.fetch_arrow()).item())
    if not own:
        raise SqlError("the query gives no columns")
    names = distinct_names(own)
    places = [f"c{at}" for at in range(len(own))]
    query = f"(\n{sql}\n) AS q({', '.join(places)})"
    asked = ", ".join(f"pg_typeof(q.{place})::text AS {place}" for place in places)
    cursor.execute(f"SELECT {asked} FROM (SELECT 1) AS one LEFT JOIN {query} ON false")
    types: list[str] = list(arrived(cursor.fetch_arrow()).row(0))
    bases = _bases(cursor, types)
    kinds = {name: bases[kind][0] if kind in bases else kind for name, kind in zip(names, types, strict=True)}
    renamed = {name: called for name, called in zip(names, own, strict=True) if name != called}
    if all(kind in _AS_IT_IS for kind in types) and not renamed:
        return _Columns(sql, names, kinds, renamed)
    parts = [
        f"{_read(f'{place}::{bases[kind][1]}' if kind in bases else place, kinds[name])} AS {place}"
        for place, kind, name in zip(places, types, names, strict=True)
    ]
    return _Columns(f"SELECT {', '.join(parts)} FROM {query}", names, kinds, renamed)


def _bases(cursor: Any, types: Sequence[str]) -> dict[str, tuple[str, str]]:
    """What the domains among some types are made of, and what they are cast to for it: `character` and `bit` as a cast
    are of the length 1, `bpchar` and `"bit"` the same types of any length."""
    strange = {kind for kind in types if kind not in _AS_IT_IS and kind not in _MEMBERS}
    if not strange:
        return {}
    given = ", ".join("'" + kind.replace("'", "''") + "'" for kind in sorted(strange))
    cursor.execute(
        "WITH RECURSIVE made_of(kind, oid) AS ("
        f"SELECT kind, to_regtype(kind)::oid FROM unnest(ARRAY[{given}]) AS kind UNION ALL "
        "SELECT kind, typbasetype FROM made_of JOIN pg_type USING (oid) WHERE typtype = 'd') "
        "SELECT kind, format_type(oid, NULL) AS base, format_type(oid, -1) AS cast_to FROM made_of JOIN pg_type USING (oid) "
        "WHERE typtype <> 'd'"
    )
    return {kind: (base, cast) for kind, base, cast in arrived(cursor.fetch_arrow()).rows() if kind != base}


def _read(value: str, kind: str) -> str:
    """The expression by which a value of a type is read."""
    if kind in _AS_IT_IS:
        return value
    if kind.endswith("[]"):
        return f"to_json({value}::numeric[])::text" if kind == "money[]" else f"to_json({value})::text"
    if kind == "money":
        return f"{value}::numeric"
    # A row IS NOT NULL only where none of its fields is.
    return f"CASE WHEN {value} IS DISTINCT FROM NULL THEN format('%s', {value}) END"


def meant(
    frame: pl.DataFrame, kinds: dict[str, str], quotients: bool = True
) -> tuple[pl.DataFrame, dict[str, str]]:
    """The frame with what its columns stand for, where it takes PostgreSQL's type to know, and DuckDB's names of the
    types that frames do not show; `quotients` as for `exact_decimals`."""
    import polars as pl

    types: dict[str, str] = {}
    columns: list[pl.Series] = []
    for series in frame.get_columns():
        kind = kinds.get(series.name, "")
        if kind.endswith("[]"):
            series, known = _lists(series, kind.removesuffix("[]"), quotients)
        elif series.dtype.is_temporal():
            series, known = _moments(series)
        elif (
            kind == "numeric"
            and series.dtype == pl.String
            and series.str.contains(r"^-?\d+(?:\.\d+)?$").all()
        ):
            known = "BIGNUM"  # more digits than 128 bits hold
        else:
            known = _COMPARED_AS.get(kind, "")
        known = known or _type_name(series.dtype, kind)
        columns.append(series)
        if known:
            types[series.name] = known
    return frame.select(columns), types


_OF_FRAMES = {
    "Boolean": "BOOLEAN", "Date": "DATE", "Float32": "FLOAT", "Float64": "DOUBLE", "Int16": "SMALLINT",
    "Int32": "INTEGER", "Int64": "BIGINT", "String": "VARCHAR", "UInt32": "UINTEGER",
}  # fmt: skip


def _type_name(dtype: Any, kind: str) -> str:
    """DuckDB's name of what a frame shows by itself, for the record, which keeps rows as JSON."""
    import polars as pl

    if isinstance(dtype, pl.Decimal):
        return f"DECIMAL({dtype.precision},{dtype.scale})"
    if isinstance(dtype, pl.Datetime):
        return "TIMESTAMP WITH TIME ZONE" if dtype.time_zone else "TIMESTAMP"
    return "" if kind == "numeric" and dtype == pl.String else _OF_FRAMES.get(str(dtype), "")


def _lists(series: pl.Series, member: str, quotients: bool) -> tuple[pl.Series, str]:
    """Arrays that came as JSON: as lists where JSON has what they hold, else as DuckDB's text of them and its type."""
    import polars as pl

    values = [None if text is None else json.loads(text, parse_float=Decimal) for text in series.to_list()]
    name = _MEMBERS.get(member)
    depths = {depth for value in values if value is not None for depth in _depths(value)} or {1}
    if name is None or len(depths) > 1:
        return series, "JSON"
    depth = depths.pop()
    inner: Any = {"BOOLEAN": pl.Boolean, "VARCHAR": pl.String}.get(name)
    if name in ("SMALLINT", "INTEGER", "BIGINT"):
        inner = pl.Int64
    elif name in ("DOUBLE", "FLOAT") or (
        member == "numeric" and are_floats(list(_numbers(values)), quotients)
    ):
        inner, values = pl.Float64, _floats(values)
    if inner is None:
        kind = name + "[]" * depth
        texts = [None if value is None else duck_text(value, kind) for value in values]
        return pl.Series(series.name, texts, dtype=pl.String), kind
    for _ in range(depth):
        inner = pl.List(inner)
    return pl.Series(series.name, values, dtype=inner), ""


def _depths(value: Any, above: int = 0) -> Iterator[int]:
    """How deep lists lie in each other, at each value in them; an empty one may be of any depth."""
    if not isinstance(value, list):
        yield above
        return
    for item in value:
        yield from _depths(item, above + 1)


def _numbers(value: Any) -> Iterator[Decimal]:
    """The numbers of an array; JSON has NaN and infinity as texts."""
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif value is not None:
        yield Decimal(value)


def _floats(value: Any) -> Any:
    """The numbers of an array as floats; JSON has NaN and infinity as texts."""
    if isinstance(value, list):
        return [_floats(item) for item in value]
    return None if value is None else float(value)


_DAY = 86_400_000_000
_EPOCH = 10_957
"""Days from 1970 to 2000, from which PostgreSQL counts."""
_YEAR_1, _YEAR_10000 = -719_162, 2_932_897
_CYCLE = 146_097
"""The days of 400 years, after which the calendar repeats."""


def _moments(series: pl.Series) -> tuple[pl.Series, str]:
    """Dates and timestamps; as texts and with DuckDB's type where one of them is none of Python's years 1 to 9999, or
    infinite."""
    import polars as pl

    unit, bits, kind = 1, 32, "DATE"
    if isinstance(series.dtype, pl.Datetime) and series.dtype.time_unit == "us":
        unit, bits, kind = _DAY, 64, "TIMESTAMP WITH TIME ZONE" if series.dtype.time_zone else "TIMESTAMP"
    elif series.dtype != pl.Date:
        return series, ""
    held = series.to_physical()
    ends: list[Any] = [held.min(), held.max()]
    if ends[0] is None or (ends[0] >= _YEAR_1 * unit and ends[1] < _YEAR_10000 * unit):
        return series, ""
    half = 1 << (bits - 1)
    texts: list[str | None] = []
    for value in held.to_list():
        if value is None:
            texts.append(None)
            continue
        # The driver's sum of PostgreSQL's number and its epoch may have run over.
        number = (value - _EPOCH * unit + half) % (2 * half) - half
        if number in (half - 1, -half):
            texts.append("infinity" if number > 0 else "-infinity")
        else:
            texts.append(_moment(number * (_DAY // unit), kind))
    return pl.Series(series.name, texts, dtype=pl.String), kind


def _moment(microseconds: int, kind: str) -> str:
    """A moment since 2000 in the spelling of nao's API, with PostgreSQL's `BC`."""
    days, clock = divmod(microseconds, _DAY)
    cycles, day = divmod(days + _EPOCH - _YEAR_1, _CYCLE)
    date = datetime.date.fromordinal(day + 1)
    year = date.year + 400 * cycles
    time_of_day = (datetime.datetime.min + datetime.timedelta(microseconds=clock)).time().isoformat()
    zone = "+00:00" if "ZONE" in kind else ""
    text = f"{year if year > 0 else 1 - year:04}-{date:%m-%d}"
    if year > 0:
        return f"{text}T{time_of_day}{zone}"
    return f"{text} BC" if kind == "DATE" else f"{text} {time_of_day}{zone} BC"


def arrived(stream: Any, quotients: bool = True) -> pl.DataFrame:
    """The Arrow stream as a frame; NUMERIC, which the driver sends as text of a type of its own,
    as exact decimals, `quotients` as for these.

    Raises:
        SqlError: a column is of a type that frames cannot hold.
    """
    import polars as pl

    try:
        frame = pl.DataFrame(stream)
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":
            raise
        raise SqlError(f"a column cannot be read, cast it to text in the SQL: {one_line(problem)}") from None
    plain: list[pl.Series] = []
    for series in frame.get_columns():
        if type(series.dtype).__name__ == "Extension":
            stored = series.ext.storage()  # type: ignore[attr-defined]
            plain.append(
                exact_decimals(stored, quotients) if stored.dtype == pl.String else stored.cast(pl.String)
            )
        else:
            plain.append(series)
    return pl.DataFrame(plain)


def _ordered(sql: str) -> bool:
    from tui_eval.frames.query_words import orders_rows, read_query

    try:
        return read_query(sql, "postgres").args.get("order") is not None
    except Exception:
        return orders_rows(sql)


_SHORT = (
    "to_regclass(quote_ident(table_name))"
    " IS NOT DISTINCT FROM to_regclass(quote_ident(table_schema) || '.' || quote_ident(table_name))"
)
"""Whether a table's name alone means it."""


def schema_text(database: DatabaseSpec, timeout: float) -> str:
    """The tables with their columns and types, one line each.

    Raises:
        SqlError: it cannot be reached.
    """
    with _cursor(database, timeout) as cursor:
        cursor.execute(
            f"SELECT table_schema, table_name, column_name, data_type, {_SHORT} FROM information_schema.columns "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') "
            "ORDER BY table_schema, table_name, ordinal_position"
        )
        found = arrived(cursor.fetch_arrow()).rows()
    tables: dict[str, list[str]] = {}
    for schema, table, column, kind, short in found:
        name = table if short else f"{schema}.{table}"
        tables.setdefault(name, []).append(f"{column} {kind}")
    return "\n".join(f"{name}({', '.join(columns)})" for name, columns in tables.items())
