"""Values as texts: dates in one spelling, JSON values so that equal ones print alike, DuckDB's own text."""

from __future__ import annotations

import contextlib
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


_MIDNIGHT = re.compile(r"(\d{4,}-\d\d-\d\d)T00:00:00(?:\+00:00)?", re.ASCII)


def plain_moment(text: str | None, days: bool) -> str | None:
    """A text as it is shown: a date without its midnight, however that is written, where the column has only dates; a
    timestamp with a blank for its T."""
    if text is None or len(text) < 11 or text[10] not in "T " or (known := instant(text)) is None:
        return text
    if days and (found := _MIDNIGHT.fullmatch(known)) is not None:
        return found[1]
    return f"{text[:10]} {text[11:]}"


_CLOCK = re.compile(r"(\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)


def moment(text: str) -> str | None:
    """As `instant`, a time of day too (`10:30`, `10:30:00.500000`)."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return instant(text)
    minute, second, fraction = found.groups()
    fraction = (fraction or "").rstrip("0")
    return f"{minute}:{second or '00'}" + (f".{fraction}" if fraction else "")


_DATABASE_INTERVAL = re.compile(
    r"(?:(-?\d+) years? ?)?(?:(-?\d+) mon(?:th)?s? ?)?(?:(-?\d+) days? ?)?(?:(-?)(\d+):(\d\d):(\d\d(?:\.\d{1,9})?))?",
    re.ASCII,
)
_ISO_INTERVAL = re.compile(
    r"(-?)P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d{1,9})?)S)?)?",
    re.ASCII,
)
_MOST_OF_AN_INTERVAL = 100


def interval(text: str) -> str | None:
    """An interval in one spelling, from a database's text (`2 months 3 days 01:00:00`) or an ISO period (`P2M3DT1H`,
    in which nao's API sends them), or None where it is neither. As for DuckDB a month is 30 days and a day 24 hours."""
    if not text or len(text) > _MOST_OF_AN_INTERVAL:
        return None
    if found := _DATABASE_INTERVAL.fullmatch(text):
        years, months, days, sign, hours, minutes, seconds = found.groups()
        weeks, minus = None, -1 if sign else 1
        whole = 1
    elif text[-1] not in "PT" and (found := _ISO_INTERVAL.fullmatch(text)):
        first, years, months, weeks, days, hours, minutes, seconds = found.groups()
        whole, minus = -1 if first else 1, 1
    else:
        return None
    day = int(years or 0) * 360 + int(months or 0) * 30 + int(weeks or 0) * 7 + int(days or 0)
    clock = int(hours or 0) * 3600 + int(minutes or 0) * 60 + Decimal(seconds or 0)
    return f"{shortest_text(whole * (day * 86400 + minus * clock))} s"


def json_text(cell: Any) -> str | None:
    """A cell of a column of type JSON, text or already read, as `canonical`; None: JSON's null."""
    if isinstance(cell, str):
        with contextlib.suppress(ValueError, RecursionError):
            cell = json.loads(cell)
    return None if cell is None else canonical(cell)


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
