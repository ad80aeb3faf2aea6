"""nao-core 0.3.29's `check_dataframe`, to the letter, without pandas (formats/nao.md section 3).

Pandas' type inference, sorting and equality are reproduced as far as they decide a verdict; where
pandas raises, the outcome is an error that names the exception.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import polars as pl

from tui_eval.frames.compare import FrameComparison
from tui_eval.frames.comparison_rules import ATOL, RTOL, ComparisonSettings
from tui_eval.frames.numbers import reference_value
from tui_eval.frames.value_texts import BYTES_TYPES, JSON_TYPES, instant, nested_texts, period, text_of_bytes

_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)
_UINT64_MAX = 2**64 - 1
_NAN = float("nan")
_HELD = 2**53
_WRITTEN_OUT = 1e21
"""JavaScript writes larger numbers with an exponent."""
_NUMERIC = ("int64", "uint64", "float64", "bool")


@dataclass(slots=True)
class _Column:
    dtype: str
    cells: list[Any]


def compare(
    actual: Sequence[dict[str, Any]] | None,
    expected: Sequence[dict[str, Any]],
    settings: ComparisonSettings | None = None,
    columns: Sequence[str] | None = None,
    error: str | None = None,
    types: Mapping[str, str] | None = None,
    dialect: str = "duckdb",
) -> FrameComparison:
    """Judge rows as nao-core 0.3.29 does, with its messages. Never raises.

    Defaults are the reference's: rtol 1e-5, atol 1e-8, two decimals.

    Args:
        types: DuckDB's types of the expected columns: lists, objects, intervals and bytes among them, which
            come as its text,
            are what nao is sent.
        dialect: That of the database whose rows are expected: of PostgreSQL's its driver makes other values.
    """
    try:
        if types:
            expected = [{name: _number_sent(cell) for name, cell in row.items()} for row in expected]
        for name, kind in (types or {}).items():
            if kind.upper() in (*SPELLED, *SPELLED_BY.get(dialect, ())):
                sent = _as_sent(kind.upper(), dialect, expected, actual or (), name)
                expected, actual = _with(sent, expected, name) or [], _with(sent, actual, name)
            if held := _holder(kind):
                expected = [row | {name: held.of(row.get(name), kind)} for row in expected]
                actual = actual and [
                    row | {name: held.of(row[name], kind)} if isinstance(row.get(name), list | dict) else row
                    for row in actual
                ]
        return _check(actual, expected, settings or ComparisonSettings(), list(columns or ()), error)
    except Exception as problem:
        return FrameComparison(
            None, f"the reference raises {type(problem).__name__}: {problem}", raises=type(problem).__name__
        )


SPELLED = ("INTERVAL", *BYTES_TYPES)
SPELLED_BY = {"postgres": ("DATE", "TIME", *JSON_TYPES), "sqlite": ("DATE", "TIMESTAMP")}
"""Types whose texts nao's server sends otherwise, and those of which it does by dialect. SQLite, which nao
does not know, has texts for moments, in any spelling: these are one."""


def _as_sent(
    kind: str, dialect: str, expected: Sequence[dict[str, Any]], actual: Sequence[dict[str, Any]], name: str
) -> dict[str, Any]:
    """Texts of a column, and what nao's server sends of them, which is what it compares."""
    if kind == "INTERVAL":
        return {text: period(text, dialect) for text in _texts(expected, name) | _texts(actual, name)}
    if dialect == "sqlite" and kind in SPELLED_BY[dialect]:
        return {text: instant(text) or text for text in _texts(expected, name) | _texts(actual, name)}
    texts = _texts(expected, name)  # a text of the answer is no spelling of others
    if kind in BYTES_TYPES:
        return {blob: text for blob in texts if (text := text_of_bytes(blob, kind)) is not None}
    if kind == "DATE":
        return {text: text.removesuffix("T00:00:00") for text in texts}
    if kind == "TIME":
        return {text: f"{text:0<15}" for text in texts if "." in text}
    made: dict[str, Any] = {}
    for text in texts:
        with contextlib.suppress(ValueError, RecursionError):
            made[text] = json.loads(text)
    return made


def _texts(rows: Sequence[dict[str, Any]], name: str) -> set[str]:
    return {cell for row in rows if isinstance(cell := row.get(name), str)}


def _with(
    sent: dict[str, Any], rows: Sequence[dict[str, Any]] | None, name: str
) -> Sequence[dict[str, Any]] | None:
    return rows and [
        row | {name: sent[cell]} if isinstance(cell := row.get(name), str) and cell in sent else row
        for row in rows
    ]


def _number_sent(value: Any) -> Any:
    """A whole number as nao's server sends it, which is JavaScript: beyond 2^53 the digits of the nearest float."""
    if not isinstance(value, int) or -_HELD <= value <= _HELD:
        return value
    try:
        held = float(value)
    except OverflowError:
        return None
    return int(Decimal(repr(held))) if abs(held) < _WRITTEN_OUT else held


def _text_sent(value: Any, kind: str) -> str:
    """A list or an object in one spelling, without the numbers that JSON does not have."""
    return nested_texts([value], [], kind)[0][0] or ""


class _List(list[str]):
    """A list as DuckDB's text of it: equal, sorted and not to be hashed as a list is."""

    @classmethod
    def of(cls, value: Any, kind: str) -> Any:
        return None if value is None else cls([_text_sent(value, kind)])

    def __hash__(self) -> int:  # type: ignore[override]
        raise TypeError("unhashable type: 'list'")

    def __repr__(self) -> str:
        return self[0]


class _Object(dict[str, str]):
    """An object, likewise."""

    @classmethod
    def of(cls, value: Any, kind: str) -> Any:
        return None if value is None else cls({"": _text_sent(value, kind)})

    def __hash__(self) -> int:  # type: ignore[override]
        raise TypeError("unhashable type: 'dict'")

    def __repr__(self) -> str:
        return self[""]


def _holder(kind: str) -> type[_List] | type[_Object] | None:
    upper = kind.upper()
    if upper.endswith("]") or upper.startswith("TUPLE("):
        return _List
    return _Object if upper.startswith(("STRUCT", "MAP(")) else None


def _check(
    actual: Sequence[dict[str, Any]] | None,
    expected: Sequence[dict[str, Any]],
    settings: ComparisonSettings,
    columns: list[str],
    error: str | None,
) -> FrameComparison:
    if actual is None:
        return FrameComparison(False, error or "no data returned")
    left, right = _frame(actual), _frame(expected)
    left_empty, right_empty = not actual or not left, not expected or not right
    if left_empty and right_empty:
        return FrameComparison(True, "both empty")
    if left_empty:
        return FrameComparison(False, "actual is empty")
    if right_empty:
        return FrameComparison(False, "expected is empty")
    names = columns or list(left)
    missing = sorted({name for name in columns if name not in left})
    if missing:
        return FrameComparison(False, "missing columns: {" + ", ".join(repr(name) for name in missing) + "}")
    if columns:
        _require(columns, right)
    if len(actual) != len(expected):
        return FrameComparison(False, f"row count: {len(actual)} vs {len(expected)}")
    decimals = 2 if settings.decimals is None else settings.decimals
    left = {name: _normalised(left[name], decimals) for name in dict.fromkeys(names)}
    others = (
        names if columns else right
    )  # without names all columns are read, and those of the answer compared
    right = {name: _normalised(right[name], decimals) for name in dict.fromkeys(others)}
    if not columns:
        _require(names, right)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"The column label {name!r} is not unique.")
    ordered = sorted(names)
    left, right = _sorted(left, ordered), _sorted(right, ordered)
    if all(_identical(left[name], right[name]) for name in ordered):
        return FrameComparison(True, "match")
    rtol = 1e-5 if settings.rtol is None else settings.rtol
    atol = 1e-8 if settings.atol is None else settings.atol
    if all(_close(left[name], right[name], rtol, atol) for name in ordered):
        return FrameComparison(True, "match (approximate)")
    return FrameComparison(False, "values differ", text=_difference_text(left, right, ordered))


def _require(names: Sequence[str], frame: dict[str, _Column]) -> None:
    absent = [name for name in dict.fromkeys(names) if name not in frame]
    if absent:
        raise KeyError(f"{absent} not in index")


def _frame(rows: Sequence[dict[str, Any]]) -> dict[str, _Column]:
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    return {name: _infer([row.get(name, _NAN) for row in rows]) for name in names}


def _infer(cells: list[Any]) -> _Column:
    """A column's type as pandas' `maybe_convert_objects` finds it, cell by cell in order."""
    null = nan = has_float = has_int = unsigned = negative = has_bool = text = other = False
    for cell in cells:
        if cell is None:
            null = True
        elif isinstance(cell, bool):
            has_bool = True
        elif isinstance(cell, float):
            nan, has_float = (True, has_float) if math.isnan(cell) else (nan, True)
        elif isinstance(cell, int):
            has_int = True
            unsigned = unsigned or _INT64_MAX < cell <= _UINT64_MAX
            negative = negative or cell < 0
            if (unsigned and negative) or cell > _UINT64_MAX or cell < _INT64_MIN:
                return _Column("object", cells)
        elif isinstance(cell, str):
            text = True
        else:
            other = True
    numeric = has_float or has_int
    if other or (text and (numeric or has_bool)):
        return _Column("object", cells)
    if text:
        return _Column("object", cells)
    if has_bool:
        plain = not (numeric or null or nan)
        return _Column("bool" if plain else "object", cells)
    if (null or nan) and (numeric or nan):
        return _Column("float64", [_NAN if cell is None else _float(cell) for cell in cells])
    if has_float:
        return _Column("float64", [_float(cell) for cell in cells])
    if has_int:
        return _Column("uint64" if unsigned else "int64", cells)
    return _Column("object", cells)


def _float(value: Any) -> float:
    return float(value)


def _normalised(column: _Column, decimals: int) -> _Column:
    column = _infer([reference_value(cell) for cell in column.cells])
    if column.dtype != "float64":
        return column
    return _Column("float64", [_rounded(cell, decimals) for cell in column.cells])


def _rounded(value: float, decimals: int) -> float:
    """numpy's rounding: scaled, half to even, scaled back."""
    scale = _power_of_ten(decimals)
    if math.isnan(value) or math.isinf(scale):  # numpy divides infinity by infinity
        return _NAN
    scaled = value * scale
    if math.isinf(scaled):
        return scaled
    return math.copysign(float(round(scaled)), value) / scale


@cache
def _power_of_ten(exponent: int) -> float:
    """numpy's scale: exact to 1e8, by repeated multiplication above, infinite beyond what floats hold."""
    scale = 10.0 ** min(exponent, 8)
    for _ in range(8, min(exponent, 400)):
        scale *= 10.0
    return scale


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _sorted(frame: dict[str, _Column], names: list[str]) -> dict[str, _Column]:
    count = len(frame[names[0]].cells)
    if len(names) == 1:
        cells = frame[names[0]].cells
        filled = [i for i in range(count) if not _is_null(cells[i])]
        filled.sort(key=lambda i: cells[i])
        order = filled + [i for i in range(count) if _is_null(cells[i])]
    else:
        codes = [_codes(frame[name]) for name in names]
        order = sorted(range(count), key=lambda i: tuple(code[i] for code in codes))
    return {name: _Column(frame[name].dtype, [frame[name].cells[i] for i in order]) for name in names}


def _codes(column: _Column) -> list[int]:
    """Rank of each cell among the distinct ones, nulls last; hashing and ordering as pandas' Categorical."""
    distinct: dict[Any, None] = {}
    for cell in column.cells:
        hash(cell)
        if not _is_null(cell):
            distinct.setdefault(cell)
    values = list(distinct)
    try:
        values.sort()
    except TypeError:
        numbers = sorted(value for value in values if not isinstance(value, str))
        values = numbers + sorted(value for value in values if isinstance(value, str))
    rank = {value: position for position, value in enumerate(values)}
    last = len(values)
    return [last if _is_null(cell) else rank[cell] for cell in column.cells]


def _identical(left: _Column, right: _Column) -> bool:
    return left.dtype == right.dtype and all(map(_equal, left.cells, right.cells))


def _equal(left: Any, right: Any) -> bool:
    if _is_null(left) or _is_null(right):
        return _is_null(left) and _is_null(right)
    return bool(left == right)


def _close(left: _Column, right: _Column, rtol: float, atol: float) -> bool:
    if left.dtype not in _NUMERIC or right.dtype not in _NUMERIC:
        return _identical(left, right)
    return all(_near(float(a), float(e), rtol, atol) for a, e in zip(left.cells, right.cells, strict=True))


def _near(actual: float, expected: float, rtol: float, atol: float) -> bool:
    if math.isnan(actual) or math.isnan(expected):
        return math.isnan(actual) and math.isnan(expected)
    if actual == expected:
        return True
    return math.isfinite(expected) and abs(actual - expected) <= atol + rtol * abs(expected)


def _difference_text(left: dict[str, _Column], right: dict[str, _Column], names: list[str]) -> str:
    lines: list[str] = []
    hidden = 0
    for row in range(len(left[names[0]].cells)):
        for name in names:
            a, e = left[name].cells[row], right[name].cells[row]
            if _equal(a, e):
                continue
            if len(lines) < 20:
                lines.append(f"row {row} (sorted): {name}: expected {_shown(e)}, actual {_shown(a)}")
            else:
                hidden += 1
    if hidden:
        lines.append(f"… {hidden} more differences")
    if not lines:
        types = [
            f"{name}: expected {right[name].dtype}, actual {left[name].dtype}"
            for name in names
            if left[name].dtype != right[name].dtype
        ]
        lines = ["the values are equal but the column types differ", *types]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    return "null" if _is_null(value) else repr(value)


# -- The same of large frames, a column at a time: the same verdict in a hundredth of the time. Row by row it takes a
# Python object a cell: 23 s and 1.2 GB for 100,000 rows of 30 columns.


_LARGEST_ROUNDED = 1e290
"""Floats beyond are rounded otherwise, row by row."""


class _WholeColumn(NamedTuple):
    dtype: str
    series: pl.Series


def compare_frames(
    actual: pl.DataFrame,
    expected: pl.DataFrame,
    settings: ComparisonSettings | None = None,
    columns: Sequence[str] | None = None,
) -> FrameComparison | None:
    """Judge frames as `compare` judges their rows; None where a column is of a kind that only it can
    read, or where there is nothing to compare. Says nothing of which cells differ."""
    settings = settings or ComparisonSettings()
    names = sorted(set(columns or actual.columns))
    if not names or not len(actual) or not set(names) <= set(actual.columns) & set(expected.columns):
        return None
    if len(actual) != len(expected):
        return FrameComparison(False, f"row count: {len(actual)} vs {len(expected)}")
    decimals = 2 if settings.decimals is None else settings.decimals
    if not 0 <= decimals <= 15:
        return None
    rtol = RTOL if settings.rtol is None else settings.rtol
    atol = ATOL if settings.atol is None else settings.atol
    sides: list[list[_WholeColumn]] = []
    for frame in (actual, expected):
        made = [_whole_normalised(frame.get_column(name), decimals) for name in names]
        read = [one for one in made if one is not None]
        if len(read) < len(made):
            return None
        sides.append(read)
    if rtol <= 1 and not all(
        _whole_alike(a, a.series.sort(nulls_last=True), e, e.series.sort(nulls_last=True), rtol, atol)
        for a, e in zip(*sides, strict=True)
    ):  # sorted by itself a column finds partners wherever there are some: in no order are all of them near
        return FrameComparison(False, "values differ")
    tables = [pl.DataFrame({f"c{at}": one.series for at, one in enumerate(side)}) for side in sides]
    orders = [one.select(pl.arg_sort_by(one.columns, nulls_last=True)).to_series() for one in tables]
    identical = True
    for a, e in zip(*sides, strict=True):
        left, right = a.series.gather(orders[0]), e.series.gather(orders[1])
        if not _whole_alike(a, left, e, right, rtol, atol):
            return FrameComparison(False, "values differ")
        identical = identical and a.dtype == e.dtype and bool(left.eq_missing(right).all())
    return FrameComparison(True, "match" if identical else "match (approximate)")


def _whole_alike(
    a: _WholeColumn, actual: pl.Series, e: _WholeColumn, expected: pl.Series, rtol: float, atol: float
) -> bool:
    """Whether columns are equal, or numbers near each other, in this order of their values."""
    if "object" in (a.dtype, e.dtype):
        return a.dtype == e.dtype and bool(actual.eq_missing(expected).all())
    return _whole_close(actual, expected, rtol, atol)


def _whole_normalised(series: pl.Series, decimals: int) -> _WholeColumn | None:
    """A column as the reference reads it: its type for pandas, its values rounded; None: it must read every cell."""
    from tui_eval.frames.typed_columns import as_cells

    dtype = series.dtype
    if dtype == pl.String:
        if as_cells(series) is not None:
            return None
        texts = series.drop_nulls().unique().to_list()
        try:
            read = [reference_value(text) for text in texts]
        except ValueError:  # text of nothing but commas, with which nao ends
            return None
        numbers = sum(one is not text for one, text in zip(read, texts, strict=True))
        if not numbers:
            return _WholeColumn("object", series)
        if numbers < len(texts):
            return None
        series = series.replace_strict(texts, read, return_dtype=pl.Float64)
    elif dtype == pl.Boolean:
        return None if series.null_count() else _WholeColumn("bool", series)
    elif isinstance(dtype, pl.Decimal):
        values = series.cast(pl.Float64)
        if _size(values) >= _HELD or dtype.scale > 15:
            return None
        whole = bool((values == values.round(0)).all())
        series = values.cast(pl.Int64) if whole else values
    elif dtype.is_integer():
        if dtype not in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32):
            return None
        series = series.cast(pl.Int64)
    elif dtype.is_float():
        series = series.cast(pl.Float64)
    else:
        return None
    if series.null_count() == len(series):
        return None
    if series.dtype == pl.Int64 and not series.null_count():
        return _WholeColumn("int64", series)
    values = series.cast(pl.Float64).fill_nan(None)
    if _size(values) > _LARGEST_ROUNDED:
        return None
    scale = 10.0**decimals
    return _WholeColumn("float64", (values * scale).round(0, mode="half_to_even") / scale + 0.0)


def _size(values: pl.Series) -> float:
    largest = values.fill_nan(None).abs().max()
    return float(largest) if isinstance(largest, int | float) else 0.0


def _whole_close(actual: pl.Series, expected: pl.Series, rtol: float, atol: float) -> bool:
    table = pl.DataFrame({"a": actual.cast(pl.Float64), "e": expected.cast(pl.Float64)})
    a, e = pl.col("a"), pl.col("e")
    near = ((a - e).abs() <= atol + rtol * e.abs()) & e.is_finite()
    return bool(table.select((a.eq_missing(e) | near.fill_null(False)).all()).item())
