"""PostgreSQL by ADBC, straight into Arrow (the `postgres` extra)."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from tui_eval.config.project import DatabaseSpec
from tui_eval.extras import adding
from tui_eval.frames.databases import NoDatabase, SqlError, TooLate, one_line
from tui_eval.frames.sql_worker import SqlResult, bare_statement

if TYPE_CHECKING:
    import polars as pl


_PREFIX = re.compile(r"^(?:[A-Z_]+: Failed to prepare query: |\[libpq\] [^:]*: )?(?:ERROR: +)?")

_AS_IT_IS = frozenset({
    "bigint", "bigint[]", "boolean", "boolean[]", "character", "character varying", "character varying[]",
    "date", "double precision", "double precision[]", "integer", "integer[]", "json", "jsonb", "name",
    "numeric", "oid", "real", "real[]", "smallint", "smallint[]", "text", "text[]",
    "time without time zone", "timestamp with time zone", "timestamp without time zone", "xml",
})  # fmt: skip
"""Types that arrive with their meaning; of others (uuid, interval, inet, ranges, …) the driver hands on
the bytes of the wire, or nothing that a frame can hold."""


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
        cursor.execute(_readable(cursor, bare_statement(sql)))
        frame = arrived(cursor.fetch_arrow())
    return SqlResult(frame.columns, frame, _ordered(sql), dialect="postgres")


def _readable(cursor: Any, sql: str) -> str:
    """The query with columns of types that do not arrive with their meaning as their text, money as a
    number. The types are asked for without running it."""
    query = f"(\n{sql}\n) AS q"
    # Of the side that is never joined nothing is computed, and every column still has its name and type.
    nothing = f"FROM (SELECT 1) AS one LEFT JOIN {query} ON false"
    try:
        row = f"FROM (SELECT q.* {nothing}) AS its_row"
        cursor.execute(f"SELECT ARRAY(SELECT json_object_keys(row_to_json(its_row))) {row}")
        quoted = ['"' + name.replace('"', '""') + '"' for name in arrived(cursor.fetch_arrow()).item()]
        asked = ", ".join(f'pg_typeof(q.{name})::text AS "{i}"' for i, name in enumerate(quoted))
        cursor.execute(f"SELECT {asked} {nothing}")
        types = arrived(cursor.fetch_arrow()).row(0)
    except Exception:  # the query itself will report what is wrong with it
        cursor.connection.rollback()
        return sql
    if all(kind in _AS_IT_IS for kind in types):
        return sql
    as_shown = "CASE WHEN {0} IS NOT NULL THEN format('%s', {0}) END AS {0}"
    parts = [
        name
        if kind in _AS_IT_IS
        else f"{name}::numeric AS {name}"
        if kind == "money"
        else as_shown.format(name)
        for name, kind in zip(quoted, types, strict=True)
    ]
    return f"SELECT {', '.join(parts)} FROM {query}"


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
"""The digits to which PostgreSQL divides: a quotient or an average of 1 to 9,999 has so many places, a smaller one
four, eight, … more."""
_MOST_PLACES = 18
"""The most that columns are declared with (amounts of tokens are), and those are exact."""
_WHOLE_IN_FLOATS = 15
_EXACT = Context(prec=10_000)


def exact_decimals(series: pl.Series) -> pl.Series:
    """Numbers written as text, as decimals; as floats where they are quotients, whose last digits are nobody's; the
    text where one of them is no number or has too many digits."""
    import polars as pl

    try:
        numbers = [None if text is None else Decimal(text) for text in series.to_list()]
    except InvalidOperation:
        return series
    if not all(number is None or number.is_finite() for number in numbers):
        return series
    before = max((number.adjusted() + 1 for number in numbers if number), default=0)
    scale = _places(numbers)
    if (scale == _DIVIDED or scale > _MOST_PLACES) and before <= _WHOLE_IN_FLOATS:
        return pl.Series(series.name, [None if n is None else float(n) for n in numbers], dtype=pl.Float64)
    if max(0, before) + scale > _DIGITS:  # zeros at the end may be too many
        scale = _places([None if number is None else number.normalize(_EXACT) for number in numbers])
    if max(0, before) + scale > _DIGITS:
        return series
    unit = Decimal(1).scaleb(-scale)
    exact = [None if number is None else number.quantize(unit, context=_EXACT) for number in numbers]
    return pl.Series(series.name, exact, dtype=pl.Decimal(38, scale))


def _places(numbers: list[Decimal | None]) -> int:
    return max((max(0, -int(n.as_tuple().exponent)) for n in numbers if n is not None), default=0)


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
