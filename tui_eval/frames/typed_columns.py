"""Columns of either side, read into kinds that can be compared.

A side may be JSON rows (the agent's answer, a backend's expected rows) or a frame (our SQL).
Numbers are kept exact: integers and decimals as unscaled 64 or 128 bit integers with a scale.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from typing import Any, Literal

import polars as pl

from tui_eval.frames.numbers import MARK, MIXED, mixed_cell, mixed_text
from tui_eval.frames.value_texts import canonical, moment, plain

Kind = Literal["null", "bool", "exact", "float", "text", "time", "nested", "mixed"]
Side = Sequence[dict[str, Any]] | pl.DataFrame

_INT128 = 2**126
BIG_TYPES = ("UHUGEINT", "BIGNUM", "VARINT")  # numbers that frames hold as text
_FLOAT_TYPES = ("DOUBLE", "FLOAT", "REAL")
_TIME_TYPES = ("DATE", "TIMESTAMP", "TIME")


@dataclass(slots=True)
class ReadColumn:
    """One column of one side.

    `series` holds the values (`exact`: Int64 or Int128 unscaled with `scale`; `float`: Float64,
    where `is_exact` marks cells that were written as integers or decimals; `time` and `nested`:
    text; `mixed` and `null`: None). `cells` are the JSON-like values, made when asked for.
    `typed` tells a column of a frame, whose type is known, from one of JSON rows. `had_nan`: some cells
    that hold nothing were given as NaN.
    """

    kind: Kind
    length: int
    series: pl.Series | None = None
    scale: int = 0
    is_exact: pl.Series | None = None
    typed: bool = False
    type_name: str = ""
    source: pl.Series | None = None
    raw: list[Any] | None = None
    integral: bool = False
    had_nan: bool = False

    @property
    def cells(self) -> list[Any]:
        """The values as Python ones."""
        if self.raw is None:
            assert self.source is not None
            self.raw = self.source.to_list()
        return self.raw

    def cell(self, index: int) -> Any:
        """One value, without making all of them."""
        if self.raw is not None:
            return self.raw[index]
        assert self.source is not None
        return self.source[index]

    def cells_at(self, rows: pl.Series) -> list[Any]:
        """The values of some rows, None where there is no row."""
        if self.raw is not None:
            return [None if row is None else self.raw[row] for row in rows.to_list()]
        assert self.source is not None
        return self.source.gather(rows).to_list()


def taken(column: ReadColumn, rows: pl.Series) -> ReadColumn:
    """Some rows of a column."""
    series, exact, source = (
        None if one is None else one.gather(rows) for one in (column.series, column.is_exact, column.source)
    )
    raw = None if column.raw is None else [column.raw[row] for row in rows.to_list()]
    return replace(column, length=len(rows), series=series, is_exact=exact, source=source, raw=raw)


def column_names(side: Side) -> list[str]:
    """The columns of a side, in order of first appearance."""
    if isinstance(side, pl.DataFrame):
        return side.columns
    names: dict[str, None] = {}
    for row in side:
        names.update(dict.fromkeys(row))
    return list(names)


def column(side: Side, name: str, type_name: str = "") -> ReadColumn:
    """One column of a side; a key absent in a row is null."""
    if isinstance(side, pl.DataFrame):
        series = side.get_column(name)
        held = as_cells(series) if not type_name else None
        return from_series(series, type_name) if held is None else from_cells(held)
    cells = [row.get(name) for row in side]
    return _from_kept(cells, type_name) if type_name else from_cells(cells)


def _from_kept(cells: list[Any], type_name: str) -> ReadColumn:
    """A column of DuckDB's type that was kept as JSON values."""
    upper = type_name.upper()
    try:
        if upper in (*BIG_TYPES, "HUGEINT"):  # beyond 64 bits they may have been stored as their digits
            cells = [digits_of(str(cell)) if isinstance(cell, str | float) else cell for cell in cells]
        if (decimal := _DECIMAL.fullmatch(upper)) is not None:
            read = from_cells([None if cell is None else Decimal(str(cell)) for cell in cells])
            return replace(_at_scale(read, int(decimal[1])), type_name=type_name)
        elif upper in _FLOAT_TYPES and any(map(is_nan, cells)) and set(map(type, cells)) <= _NUMERIC:
            return from_series(pl.Series(cells, dtype=pl.Float64, strict=False), type_name)  # NaN is no null
        elif all(cell is None or isinstance(cell, str) for cell in cells) and upper not in (
            *BIG_TYPES,
            MIXED,
        ):
            return from_series(text_series(cells), type_name)
    except (ArithmeticError, ValueError):
        pass
    return replace(from_cells(cells), type_name=upper if upper in ("BOOLEAN", "HUGEINT", *BIG_TYPES) else "")


_DECIMAL = re.compile(r"DECIMAL\(\d+,\s*(\d+)\)")


def _at_scale(column: ReadColumn, scale: int) -> ReadColumn:
    """Decimals with all the digits of their type: JSON has 123.45 of 123.4500, and what an answer may have
    more would be within the tolerance then."""
    series = column.series
    if column.kind != "exact" or series is None or column.scale > scale:
        return column
    factor = 10 ** (scale - column.scale)
    values = _integers([None if value is None else value * factor for value in series.to_list()])
    return column if values is None else replace(column, series=values, scale=scale, integral=scale == 0)


def from_series(series: pl.Series, type_name: str = "") -> ReadColumn:
    """Read a column of a frame. `type_name` is its DuckDB type, where temporal and nested values
    come as text."""
    dtype, count = series.dtype, len(series)

    def made(kind: Kind, values: pl.Series | None, scale: int = 0, integral: bool = False) -> ReadColumn:
        return ReadColumn(
            kind, count, values, scale, typed=True, type_name=type_name, source=series, integral=integral
        )

    if dtype == pl.Null:
        return made("null", None)
    if dtype == pl.Boolean:
        return made("bool", series)
    if dtype.is_integer():
        wide = dtype in (pl.UInt64, pl.Int128) or str(dtype) == "UInt128"
        return made("exact", series.cast(pl.Int128 if wide else pl.Int64), integral=True)
    if isinstance(dtype, pl.Decimal):
        return made("exact", series.to_physical(), dtype.scale, integral=dtype.scale == 0)
    if dtype.is_float():
        values = series.cast(pl.Float64)
        return made("float", values + 0.0 if (values == 0.0).any() else values)
    if dtype in (pl.Categorical, pl.Enum):
        return made("text", series.cast(pl.String))
    if dtype == pl.String:
        upper = type_name.upper()
        if upper.endswith("]") or upper.startswith(
            ("STRUCT", "TUPLE", "MAP", "UNION", "INTERVAL", "VARIANT")
        ):
            return made("nested", series)
        if upper.startswith(_TIME_TYPES):
            return made("time", _times(series))
        if upper in BIG_TYPES or upper == MIXED:
            read = mixed_cell if upper == MIXED else digits_of
            whole = from_cells([read(text) for text in series.to_list()])
            whole.typed, whole.type_name = True, type_name
            return whole
        return made("text", series)
    if (quick := _moments(series)) is not None:
        return made("time", quick)
    if dtype.is_temporal():
        texts = [None if value is None else plain(value) for value in series.to_list()]
        return made("time", _times(pl.Series(series.name, texts, dtype=pl.String)))
    whole = from_cells([plain(value) for value in series.to_list()])
    whole.typed = whole.kind != "nested"  # DuckDB's own text of nested values comes as String
    return whole


_IN_FLOATS = 2**53


def _series_alike(cells: list[Any], kinds: set[type]) -> pl.Series | None:
    """Cells of one kind as a series that reads as they do; None where there is none."""
    if not kinds or kinds == {bool}:
        return pl.Series(cells)
    if kinds == {int}:
        return _integers(cells)
    if not kinds <= {int, float} or all(cell is None or is_nan(cell) for cell in cells):
        return None
    if any(isinstance(cell, int) and abs(cell) >= _IN_FLOATS for cell in cells):
        return None
    return pl.Series([None if cell is None else float(cell) for cell in cells], dtype=pl.Float64)


def frame_of(records: Sequence[dict[str, Any]], *, expected: bool = False) -> pl.DataFrame:
    """Rows as a frame that gives back each cell as it was: columns of several kinds, or of lists and objects, are held
    as texts that say which (`as_cells`). So are dates among those that are `expected`: no database's type makes these
    texts, so that a day and its midnight are one."""
    columns: dict[str, pl.Series] = {}
    for name in column_names(records):
        cells = [row.get(name) for row in records]
        kinds = {type(cell) for cell in cells if cell is not None}
        series = _series_alike(cells, kinds)
        if series is None:
            texts = [mixed_text(cell) for cell in cells]
            days = (at for at, cell in enumerate(cells) if cell is not None and moment(cell))
            if expected and kinds == {str} and (day := next(days, None)) is not None:
                texts[day] = f"{MARK}{json.dumps(cells[day])}"
            series = pl.Series(texts, dtype=pl.String)
        columns[name] = series
    return pl.DataFrame(columns)


def as_cells(series: pl.Series) -> list[Any] | None:
    """The cells of a column that `frame_of` holds as texts; None: it is as it stands."""
    if series.dtype != pl.String or not series.str.starts_with(MARK).any():
        return None
    return [mixed_cell(text) for text in series.to_list()]


def digits_of(text: str | None) -> int | Decimal | None:
    """The number of a column whose numbers have too many digits for a frame, which holds these as text."""
    if text is None:
        return None
    return Decimal(text.rstrip("0")) if "." in text else int(text)


_NUMERIC = {int, float, Decimal, type(None)}


def from_cells(cells: list[Any]) -> ReadColumn:
    """Read a column of JSON values (Decimal, dates and times of Python too)."""
    count = len(cells)
    types = set(map(type, cells))
    if (float in types or Decimal in types) and (
        types - _NUMERIC or all(cell is None or is_nan(cell) for cell in cells)
    ):
        # As in columns of numbers: NaN is no value. It says nothing of what kind of column it stands in.
        without = [None if is_nan(cell) else cell for cell in cells]
        if without.count(None) > cells.count(None):
            return replace(from_cells(without), had_nan=True)
    types.discard(type(None))
    if not types:
        return ReadColumn("null", count, raw=cells)
    if types == {str}:
        return ReadColumn("text", count, text_series(cells), raw=cells)
    if types == {bool}:
        return ReadColumn("bool", count, pl.Series(cells, dtype=pl.Boolean), raw=cells)
    if types == {int}:
        values = _integers(cells)
        return (
            ReadColumn("mixed", count, raw=cells)
            if values is None
            else ReadColumn("exact", count, values, raw=cells, integral=True)
        )
    if types == {float}:
        return ReadColumn("float", count, pl.Series(cells, dtype=pl.Float64) + 0.0, raw=cells)
    if types <= {int, float, Decimal}:
        return _numbers(cells, float in types)
    if types <= {datetime.date, datetime.datetime, datetime.time}:
        texts = pl.Series([None if cell is None else plain(cell) for cell in cells], dtype=pl.String)
        return ReadColumn("time", count, _times(texts), raw=cells)
    if types <= {list, dict, tuple}:
        texts = [None if cell is None else canonical(cell) for cell in cells]
        return ReadColumn("nested", count, text_series(texts), raw=cells)
    return ReadColumn("mixed", count, raw=cells)


def is_nan(cell: Any) -> bool:
    """Whether a cell is the number that is none."""
    return (isinstance(cell, float) and math.isnan(cell)) or (isinstance(cell, Decimal) and cell.is_nan())


def text_series(texts: list[str | None]) -> pl.Series:
    """Texts as a series; lone surrogates, which it cannot hold, become distinct marks."""
    try:
        return pl.Series(texts, dtype=pl.String)
    except UnicodeEncodeError:
        held = [None if t is None else _SURROGATE.sub(lambda c: f"\0u{ord(c[0]):x}", t) for t in texts]
        return pl.Series(held, dtype=pl.String)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _integers(cells: list[Any]) -> pl.Series | None:
    numbers = [cell for cell in cells if cell is not None]
    smallest, largest = min(numbers, default=0), max(numbers, default=0)
    if smallest >= -(2**63) and largest < 2**63:
        return pl.Series(cells, dtype=pl.Int64)
    if smallest > -_INT128 and largest < _INT128:
        return pl.Series(cells, dtype=pl.Int128)
    return None


def _numbers(cells: list[Any], floats: bool) -> ReadColumn:
    count = len(cells)
    if any(isinstance(cell, Decimal) and not cell.is_finite() for cell in cells):
        cells = [_float(c) if isinstance(c, Decimal) and not c.is_finite() else c for c in cells]
        floats = True
    if not floats:
        scale = max(
            (-int(cell.as_tuple().exponent) for cell in cells if isinstance(cell, Decimal)), default=0
        )
        scale = max(scale, 0)
        if scale <= 30:
            factor = 10**scale
            values = _integers([None if cell is None else _unscaled(cell, scale, factor) for cell in cells])
            if values is not None:
                return ReadColumn("exact", count, values, scale, raw=cells, integral=scale == 0)
        return ReadColumn("mixed", count, raw=cells)
    try:
        values = pl.Series([None if cell is None else float(cell) for cell in cells], dtype=pl.Float64) + 0.0
    except OverflowError:  # an integer beyond every float
        return ReadColumn("mixed", count, raw=cells)
    exact = pl.Series([cell is not None and not isinstance(cell, float) for cell in cells], dtype=pl.Boolean)
    return ReadColumn("float", count, values, is_exact=exact, raw=cells)


def _float(number: Decimal) -> float:
    return math.nan if number.is_nan() else float(number)


_WIDE = Context(prec=80)


def _unscaled(number: int | Decimal, scale: int, factor: int) -> int:
    return int(number.scaleb(scale, _WIDE)) if isinstance(number, Decimal) else number * factor


_DAY, _MOMENT = r"^\d{4}-\d\d-\d\d$", r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d$"


def _moments(series: pl.Series) -> pl.Series | None:
    """Dates and timestamps without a zone as `instant` spells them, all at a time; None: one by one."""
    dtype = series.dtype
    if not (dtype == pl.Date or (isinstance(dtype, pl.Datetime) and dtype.time_zone is None)):
        return None
    years = series.dt.year()
    if series.null_count() == len(series) or not bool(years.drop_nulls().is_between(1000, 9999).all()):
        return None
    if dtype == pl.Date:
        return series.dt.strftime("%Y-%m-%dT00:00:00")
    texts = series.dt.cast_time_unit("us").dt.strftime("%Y-%m-%dT%H:%M:%S%.6f")
    return texts.str.replace(r"(\.\d*?)0+$", "${1}").str.strip_suffix(".")


def _times(series: pl.Series) -> pl.Series:
    given = series.drop_nulls()
    if len(given) and given.str.contains(_DAY).all():
        return series + "T00:00:00"
    if len(given) and given.str.contains(_MOMENT).all():
        return series.str.replace(" ", "T", literal=True)
    distinct = series.drop_nulls().unique().to_list()
    readings = {text: moment(text) or text for text in distinct}
    if all(text == reading for text, reading in readings.items()):
        return series
    return pl.Series(
        series.name, [None if t is None else readings[t] for t in series.to_list()], dtype=pl.String
    )


_ONLY_DAY = r"^\d{4,}-\d\d-\d\d(?:[T ]00:00(?::00(?:\.0+)?)?)?(?:Z|\+00:00)?$"
_LOOKED_AT = 1000


def declared_text(column: ReadColumn) -> bool:
    """Whether the database has a column as text, whatever stands in it."""
    return column.kind == "text" and column.typed and bool(column.type_name)


def holds_days(column: ReadColumn) -> bool:
    """Whether all values of a column are dates, or midnights; texts of a column that is known to hold texts
    are none."""
    if column.kind not in ("time", "text") or declared_text(column):
        return False
    if column.type_name.upper() == "DATE":
        return True
    if column.series is None or column.series.dtype != pl.String:
        return False
    text = pl.col("t")
    for known in (column.series.head(_LOOKED_AT).drop_nulls(), column.series.drop_nulls()):
        if not len(known) or not pl.DataFrame({"t": known}).select(text.str.contains(_ONLY_DAY).all()).item():
            return False
    return True


def whole_numbers(column: ReadColumn) -> bool:
    """Whether a column of numbers has no value with a fraction."""
    values = column.series
    if values is None or column.integral or (column.kind == "exact" and not column.scale):
        return True
    if column.kind == "exact":
        unit = pl.lit(10**column.scale, dtype=values.dtype)
        part = pl.DataFrame({"v": values}).select((pl.col("v") % unit != 0).any()).item()
        return not part
    return bool((values == values.round()).all())
