"""PostgreSQL by ADBC, straight into Arrow (the `postgres` extra)."""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import threading
import time
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from tui_eval.config.project import DatabaseSpec
from tui_eval.extras import adding
from tui_eval.frames.databases import NoDatabase, SqlError, TooLate, one_line
from tui_eval.frames.sql_worker import SqlResult, bare_statement
from tui_eval.frames.value_texts import duck_text

if TYPE_CHECKING:
    import polars as pl


_PREFIX = re.compile(
    r"^(?:[A-Z_]+: )?(?:\[libpq\] )?(?:Failed to [^:]*: |Execution error [^:]*: )?(?:could not begin COPY: )?(?:ERROR: +)?"
)

_AS_IT_IS = frozenset({
    "bigint", "boolean", "character", "character varying", "date", "double precision", "integer", "json", "jsonb",
    "name", "numeric", "oid", "real", "smallint", "text", "timestamp with time zone", "timestamp without time zone",
    "xml",
})  # fmt: skip
"""Types that arrive with their meaning; of others (uuid, interval, inet, ranges, …) the driver hands on
the bytes of the wire, or nothing that a frame can hold; of a `time` it loses 24:00."""
_COMPARED_AS = {
    "interval": "INTERVAL", "json": "JSON", "jsonb": "JSON", "time without time zone": "TIME",
}  # fmt: skip
"""DuckDB's names of types that arrive as text."""
_MEMBERS = {
    "bigint": "BIGINT", "boolean": "BOOLEAN", "character": "VARCHAR", "character varying": "VARCHAR", "date": "DATE",
    "double precision": "DOUBLE", "integer": "INTEGER", "interval": "INTERVAL", "money": "DECIMAL", "name": "VARCHAR",
    "numeric": "DECIMAL", "real": "FLOAT", "smallint": "SMALLINT", "text": "VARCHAR",
    "time without time zone": "TIME", "timestamp with time zone": "TIMESTAMP WITH TIME ZONE",
    "timestamp without time zone": "TIMESTAMP", "uuid": "UUID",
}  # fmt: skip
"""DuckDB's names of what arrays hold; arrays of other types are compared as JSON."""


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
        try:
            opened = dbapi.connect(database.url)
        except Exception as problem:
            said = _PREFIX.sub("", one_line(problem).replace("got external error: ", ""))
            raise NoDatabase(f"database {database.name!r} cannot be reached: {said}") from None
        with opened as connection, connection.cursor() as cursor:
            if database.schema:  # as nao's client does
                path = database.schema.replace("'", "''")
                cursor.execute(f"SELECT set_config('search_path', '{path}', false)")
                arrived(cursor.fetch_arrow())
            cursor.execute("SET default_transaction_read_only = on")
            cursor.execute(f"SET statement_timeout = {max(1, int(timeout * 1000))}")
            connection.commit()
            try:
                yield cursor
            finally:
                connection.rollback()
    except SqlError:
        raise
    except Exception as problem:
        said = one_line(problem).replace("got external error: ", "")
        # PostgreSQL ends a query by itself, and says so in its own words.
        raise (TooLate if "statement timeout" in said else SqlError)(_PREFIX.sub("", said)) from None


def execute(database: DatabaseSpec, sql: str, *, timeout: float, cancel: threading.Event | None) -> SqlResult:
    """Run one query in a read-only transaction with the server's own time limit (seconds).

    Raises:
        SqlError: one clear line.
    """
    with _cursor(database, timeout) as cursor, _Cancelling(cursor, cancel):
        query, kinds = _readable(cursor, bare_statement(sql, keep_open=True))
        cursor.execute(query)
        frame, types = _meant(arrived(cursor.fetch_arrow()), kinds)
    return SqlResult(frame.columns, frame, _ordered(sql), types, dialect="postgres")


def _readable(cursor: Any, sql: str) -> tuple[str, dict[str, str]]:
    """The query with columns of types that do not arrive with their meaning as their text, money as a number and
    arrays as JSON; and the type of each column. They are asked for without running it."""
    query = f"(\n{sql}\n) AS q"
    # Of the side that is never joined nothing is computed, and every column still has its name and type.
    nothing = f"FROM (SELECT 1) AS one LEFT JOIN {query} ON false"
    try:
        row = f"FROM (SELECT q.* {nothing}) AS tui_eval_row"
        cursor.execute(f"SELECT ARRAY(SELECT json_object_keys(row_to_json(tui_eval_row))) {row}")
        names: list[str] = list(arrived(cursor.fetch_arrow()).item())
        quoted = ['"' + name.replace('"', '""') + '"' for name in names]
        asked = ", ".join(f'pg_typeof(q.{name})::text AS "{i}"' for i, name in enumerate(quoted))
        cursor.execute(f"SELECT {asked} {nothing}")
        types: list[str] = list(arrived(cursor.fetch_arrow()).row(0))
        bases = _bases(cursor, types)
    except Exception:  # the query itself will report what is wrong with it
        cursor.connection.rollback()
        return sql, {}
    kinds = {name: bases.get(kind, kind) for name, kind in zip(names, types, strict=True)}
    if all(kind in _AS_IT_IS for kind in types):
        return sql, kinds
    parts = [
        f"{_read(f'{name}::{bases[kind]}' if kind in bases else name, bases.get(kind, kind))} AS {name}"
        for name, kind in zip(quoted, types, strict=True)
    ]
    return f"SELECT {', '.join(parts)} FROM {query}", kinds


def _bases(cursor: Any, types: Sequence[str]) -> dict[str, str]:
    """What the domains among some types are made of."""
    strange = {kind for kind in types if kind not in _AS_IT_IS and kind not in _MEMBERS}
    if not strange:
        return {}
    given = ", ".join("'" + kind.replace("'", "''") + "'" for kind in sorted(strange))
    cursor.execute(
        "WITH RECURSIVE made_of(kind, oid) AS ("
        f"SELECT kind, to_regtype(kind)::oid FROM unnest(ARRAY[{given}]) AS kind UNION ALL "
        "SELECT kind, typbasetype FROM made_of JOIN pg_type USING (oid) WHERE typtype = 'd') "
        "SELECT kind, format_type(oid, NULL) FROM made_of JOIN pg_type USING (oid) WHERE typtype <> 'd'"
    )
    return {kind: base for kind, base in arrived(cursor.fetch_arrow()).rows() if kind != base}


def _read(value: str, kind: str) -> str:
    """The expression by which a value of a type is read."""
    if kind in _AS_IT_IS:
        return value
    if kind.endswith("[]"):
        return f"to_json({value}::numeric[])::text" if kind == "money[]" else f"to_json({value})::text"
    if kind == "money":
        return f"{value}::numeric"
    return f"CASE WHEN {value} IS NOT NULL THEN format('%s', {value}) END"


def _meant(frame: pl.DataFrame, kinds: dict[str, str]) -> tuple[pl.DataFrame, dict[str, str]]:
    """The frame with what its columns stand for, where it takes PostgreSQL's type to know, and DuckDB's names of the
    types that frames do not show."""
    import polars as pl

    types: dict[str, str] = {}
    columns: list[pl.Series] = []
    for series in frame.get_columns():
        kind = kinds.get(series.name, "")
        if kind.endswith("[]"):
            series, known = _lists(series, kind.removesuffix("[]"))
        elif series.dtype.is_temporal():
            series, known = _moments(series)
        elif kind == "numeric" and series.dtype == pl.String and series.str.contains(r"^-?\d+$").all():
            known = "BIGNUM"  # whole numbers beyond 128 bits
        else:
            known = _COMPARED_AS.get(kind, "")
        columns.append(series)
        if known:
            types[series.name] = known
    return frame.select(columns), types


def _lists(series: pl.Series, member: str) -> tuple[pl.Series, str]:
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
    elif name in ("DOUBLE", "FLOAT"):
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


def arrived(stream: Any) -> pl.DataFrame:
    """The Arrow stream as a frame; NUMERIC, which the driver sends as text of a type of its own,
    as exact decimals.

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
            plain.append(exact_decimals(stored) if stored.dtype == pl.String else stored.cast(pl.String))
        else:
            plain.append(series)
    return pl.DataFrame(plain)


_DIGITS = 37
"""What a number may have for its thousandfold to be held in 128 bits, as comparing needs it."""
_DIVIDED = 16
"""The digits to which PostgreSQL divides, takes averages and roots, at least."""
_PLACES, _OF_TOKENS = 8, 18
"""The places up to which numbers are exact whatever their digits are, as sums of money; and those of tokens' amounts."""
_WHOLE_IN_FLOATS = 15
_EXACT = Context(prec=10_000)


def exact_decimals(series: pl.Series) -> pl.Series:
    """Numbers written as text, as decimals; as floats where they are quotients or the like, whose last digits are
    nobody's, or NaN and infinity are among them; the text where one is no number or has too many digits."""
    import polars as pl

    try:
        numbers = [None if text is None else Decimal(text) for text in series.to_list()]
    except InvalidOperation:
        return series
    given = [number for number in numbers if number is not None and number.is_finite()]
    finite = len(given) == len(numbers) - numbers.count(None)
    before = max((number.adjusted() + 1 for number in given if number), default=0)
    digits = max((len(number.as_tuple().digits) for number in given), default=0)
    scale = _places(given)
    divided = scale > _OF_TOKENS or (_PLACES < scale < _OF_TOKENS and digits >= _DIVIDED)
    if (divided and before <= _WHOLE_IN_FLOATS) or (not finite and digits <= _WHOLE_IN_FLOATS):
        return pl.Series(series.name, [None if n is None else float(n) for n in numbers], dtype=pl.Float64)
    if not finite:
        return series
    if max(0, before) + scale > _DIGITS:  # zeros at the end may be too many
        scale = _places([number.normalize(_EXACT) for number in given])
    if max(0, before) + scale > _DIGITS:
        return series
    unit = Decimal(1).scaleb(-scale)
    exact = [None if number is None else number.quantize(unit, context=_EXACT) for number in numbers]
    return pl.Series(series.name, exact, dtype=pl.Decimal(38, scale))


def _places(numbers: list[Decimal]) -> int:
    return max((max(0, -int(number.as_tuple().exponent)) for number in numbers), default=0)


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


_SHORT = (
    "to_regclass(quote_ident(table_name))"
    " IS NOT DISTINCT FROM to_regclass(quote_ident(table_schema) || '.' || quote_ident(table_name))"
)
"""Whether a table's name alone means it."""


def schema_text(database: DatabaseSpec) -> str:
    """The tables with their columns and types, one line each.

    Raises:
        SqlError: it cannot be reached.
    """
    with _cursor(database, 30) as cursor:
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
