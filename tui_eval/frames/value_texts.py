"""Values as texts: dates in one spelling, JSON values so that equal ones print alike, DuckDB's own text."""

from __future__ import annotations

import datetime
import json
import math
import re
from decimal import Decimal
from typing import Any

import polars as pl

from tui_eval.frames.numbers import shortest_text

_ISO = re.compile(
    r"(\d{4,}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)? ?(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)


def instant(text: str) -> str | None:
    """A date or timestamp in one spelling (a date is its midnight, offsets become UTC), or None
    where the text is neither: with blanks around it, it is another text."""
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    day, minute, second, fraction, zone = found.groups()
    stem = f"{day}T{minute or '00:00'}:{second or '00'}"
    fraction = (fraction or "").rstrip("0")
    if zone and zone != "Z" and zone.strip("+-0:"):
        try:
            shifted = datetime.datetime.fromisoformat(f"{stem}{zone}").astimezone(datetime.UTC)
        except (ValueError, OverflowError):
            return None
        stem = shifted.strftime("%Y-%m-%dT%H:%M:%S")
    return stem + (f".{fraction}" if fraction else "") + ("+00:00" if zone else "")


def plain(value: Any) -> Any:
    """A value of a frame as nao's API would send it (dates and times as ISO text)."""
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, datetime.date):
        return f"{value.isoformat()}T00:00:00"
    if isinstance(value, datetime.time | datetime.timedelta):
        return value.isoformat() if isinstance(value, datetime.time) else str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, pl.Series):
        return [plain(item) for item in value.to_list()]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value


def canonical(cell: Any) -> str:
    """A cell as a text that equals another's exactly where the two are the same value.

    Texts stand for themselves and numbers for their shortest text; what is neither begins with a
    control character, which keeps `true` apart from the text "true".
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "\0true" if cell else "\0false"
    if isinstance(cell, int | float | Decimal):
        return shortest_text(cell)
    if isinstance(cell, list | dict | tuple):
        return "\0" + json.dumps(_even(cell), sort_keys=True, ensure_ascii=False, default=str)
    return str(plain(cell))


def _even(value: Any) -> Any:
    """Nested values with whole floats as integers, so that 1 and 1.0 print alike."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, Decimal):
        return _even(float(value))
    if isinstance(value, list | tuple):
        return [_even(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _even(item) for key, item in value.items()}
    return value


_QUOTED = re.compile(r"[\s,:'\"\[\](){}=;]")
_WHOLE = re.compile(r"(?<![\w.])(-?\d+)\.0+(?![\w.])")


def duck_text(value: Any, top: bool = True, as_map: bool = False) -> str:
    """A JSON value as DuckDB prints nested values: `[1, 2]`, `{'a': x}`, a map `{a=x}`."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return shortest_text(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(duck_text(item, False) for item in value) + "]"
    if isinstance(value, dict):
        form = "{}={}" if as_map else "'{}': {}"
        pairs = (form.format(key, duck_text(item, False)) for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    text = str(value)
    if top or (text and not _QUOTED.search(text) and text.upper() != "NULL"):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def even_duck_text(text: str, type_name: str) -> str:
    """DuckDB's text of a nested value with `1.0` written `1`, unless its type holds text."""
    return text if "VARCHAR" in type_name.upper() else _WHOLE.sub(r"\1", text)
