"""Values as texts: dates in one spelling, JSON values so that equal ones print alike, DuckDB's own text."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

import polars as pl

from tui_eval.frames.numbers import shortest_text

_ISO = re.compile(
    r"(\d{4,}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?: ?(Z|[+-]\d\d(?::?\d\d)?))?)?",
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
    r"(?:(-?\d+) years? ?)?(?:(-?\d+) mon(?:th)?s? ?)?(?:(-?\d+) days?(?:,(?= ))? ?)?(?:([+-]?)(\d+):(\d\d):(\d\d(?:\.\d{1,9})?))?",
    re.ASCII,
)
_ISO_INTERVAL = re.compile(
    r"(-?)P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d{1,9})?)S)?)?",
    re.ASCII,
)
_MOST_OF_AN_INTERVAL = 100


def interval(text: str, year: int = 360, own_year: int = 360) -> str | None:
    """An interval in one spelling, from a database's text (`2 months 3 days 01:00:00`), Python's (`3 days,
    1:00:00`) or an ISO period (`P2M3DT1H`, in which nao's API sends them), or None where it is none of these.
    As for DuckDB a month is 30 days and a day 24 hours.

    Args:
        year: the days that a year of an ISO period has.
        own_year: those of a database's text.
    """
    if not text or len(text) > _MOST_OF_AN_INTERVAL:
        return None
    if found := _DATABASE_INTERVAL.fullmatch(text):
        years, months, days, sign, hours, minutes, seconds = found.groups()
        weeks, minus = None, -1 if sign == "-" else 1
        whole, year = 1, own_year
    elif text[-1] not in "PT" and (found := _ISO_INTERVAL.fullmatch(text)):
        first, years, months, weeks, days, hours, minutes, seconds = found.groups()
        whole, minus = -1 if first else 1, 1
    else:
        return None
    day = int(years or 0) * year + int(months or 0) * 30 + int(weeks or 0) * 7 + int(days or 0)
    clock = int(hours or 0) * 3600 + int(minutes or 0) * 60 + Decimal(seconds or 0)
    return f"{shortest_text(whole * (day * 86400 + minus * clock))} s"


_YEAR = 365
"""Days of a year in what nao's server sends: 400 days are `P1Y35D` there."""


def intervals(wanted: list[str | None], given: list[str | None]) -> tuple[list[str | None], list[str | None]]:
    """Both sides of a column of intervals in one spelling. A year of an ISO period is nao's, or DuckDB's where that is
    what an expected value with a year in it has: `P1Y` is no 360 days."""
    expected = [None if text is None else interval(text) or text for text in wanted]
    known = set(expected)
    with_years = {one for text, one in zip(wanted, expected, strict=True) if text and "year" in text}

    def read(text: str) -> str:
        long, short = interval(text, _YEAR), interval(text)
        return (short if long not in known and short in with_years else long) or text

    return expected, [None if text is None else read(text) for text in given]


def period(text: str, dialect: str = "duckdb") -> str:
    """An interval of a database, or of Python, as nao's server sends it (`P1DT1H` for `25:00:00`); other texts as they
    are. A year of PostgreSQL is one of its driver's 365 days."""
    own_year = _YEAR if dialect == "postgres" else 360
    if "P" in text or (known := interval(text, own_year=own_year)) is None:
        return text
    seconds = Decimal(known.removesuffix(" s"))
    minutes, second = divmod(abs(seconds), 60)
    hours, minute = divmod(int(minutes), 60)
    days, hour = divmod(hours, 24)
    years, day = divmod(days, _YEAR)
    dates = "".join(f"{count}{unit}" for count, unit in ((years, "Y"), (day, "D")) if count)
    clock = "".join(f"{count}{unit}" for count, unit in ((hour, "H"), (minute, "M")) if count)
    clock += f"{shortest_text(second)}S" if second or not (dates or clock) else ""
    return f"{'-' if seconds < 0 else ''}P{dates}{'T' if clock else ''}{clock}"


_BYTE = re.compile(rb"\\x([0-9A-F]{2})")


BYTES_TYPES = ("BLOB", "BYTEA")
"""Types of bytes, of DuckDB and SQLite, and of PostgreSQL."""


def text_of_bytes(blob: str, type_name: str = "BLOB") -> str | None:
    """Bytes as DuckDB writes them (`M\\xC3\\xBCller`), or PostgreSQL (`\\x4d`), as the text that they are,
    which nao's server sends; None: they are none. Of PostgreSQL's it sends what is no text with marks in its
    place."""
    with contextlib.suppress(ValueError):
        if type_name.upper() == "BYTEA":
            return bytes.fromhex(blob.removeprefix("\\x")).decode("utf-8", "replace")
        return _BYTE.sub(lambda found: bytes([int(found[1], 16)]), blob.encode()).decode()
    return None


def texts_of_bytes(
    blobs: list[str | None], given: list[str | None], type_name: str = "BLOB"
) -> list[str | None]:
    """Texts beside a column of bytes, as these are written."""
    written = {text_of_bytes(blob, type_name): blob for blob in blobs if blob is not None}
    known = set(blobs)
    return [text if text is None or text in known else written.get(text, text) for text in given]


JSON_TYPES = ("JSON", "JSONB")
"""Types whose values come as text and are equal as JSON."""


_MOST_DIGITS = 1_000


def _written_out(text: str) -> Decimal:
    """A number of JSON that can be written in full: `1e999999999`, a few letters of an answer, would take gigabytes."""
    number = Decimal(text)
    if number.is_finite() and abs(number.adjusted()) > _MOST_DIGITS:
        raise ValueError(text)
    return number


def json_scalars(
    wanted: list[str | None], given: list[str | None]
) -> tuple[list[str | None], list[str | None]]:
    """Both sides of a column of JSON in which the answer has no list or object: what is none is a text, a
    number, a truth or nothing, read by the driver or not, as they differ in that."""

    def read(text: str | None) -> str | None:
        if text and text[0] in '"-0123456789tfn':
            with contextlib.suppress(ValueError):
                value = json.loads(text, parse_float=_written_out)
                return None if value is None else canonical(value)
        return text

    expected = [read(text) for text in wanted]
    known = set(expected)
    if _NULL not in wanted:
        known.add(_NULL)
    return expected, [text if text in known else read(text) for text in given]


_NULL = "null"
"""JSON's null. It is SQL's only in that a driver may make this of it: where none is expected, this text is another
value than no value."""


def json_texts(wanted: list[Any], given: list[Any]) -> tuple[list[str | None], list[str | None]]:
    """Both sides of a column of type JSON, texts or already read, as `canonical`; None: JSON's null."""

    def read(cell: Any) -> str | None:
        if isinstance(cell, str):
            with contextlib.suppress(ValueError, RecursionError):
                cell = json.loads(cell)
        return None if cell is None else canonical(cell)

    nulls = _NULL in wanted
    return [read(cell) for cell in wanted], [
        cell if cell == _NULL and not nulls else read(cell) for cell in given
    ]


def holder(value: Any) -> Any:
    """A value; the list or object that a text is as JSON, where it is one: answers that are extracted have no lists."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(value, parse_float=_written_out)
    return value


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
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, Decimal):
        return _even(float(value))
    if isinstance(value, list | tuple):
        return [_even(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _even(item) for key, item in value.items()}
    return value


_SPECIAL = re.compile(r"[,:'\"\[\](){}=\\]|^[ \t\n\v\f\r]|[ \t\n\v\f\r]\Z")
"""What DuckDB 2 quotes a text for within lists; older ones do for any blank (`even_duck_text`)."""
_QUOTED_TEXT = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_DECIMALS = re.compile(r"(?<![\w.])(-?\d+)(?:\.0+|(\.\d*[1-9])0+)(?![\w.])")
_ZONED = re.compile(r"\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?[+-]\d\d(?::\d\d)?", re.ASCII)
_INTERVAL_WITHIN = re.compile(
    r"(?<![\w.:-])-?\d+ (?:years?|mon(?:th)?s?|days?)(?: -?\d+ (?:mon(?:th)?s?|days?))*(?: [+-]?\d+:\d\d:\d\d(?:\.\d{1,9})?)?(?!\w)"
    r"|(?<!\d )(?<![\w.:-])-?\d\d+:\d\d:\d\d(?:\.\d{1,9})?(?![\w:])",
    re.ASCII,
)
_TUPLES = str.maketrans("()", "[]")


_COMPACT = re.compile(r",\S|\bnull\b")
"""What JSON writes otherwise than DuckDB where nothing stands in quotes."""


_NAN = re.compile(r"(?<![\w.])nan(?![\w.])", re.IGNORECASE)
_INFINITE = re.compile(r"(?<![\w.])-?inf(?:inity)?(?![\w.])", re.IGNORECASE)


def nested_texts(
    wanted: list[Any], given: list[Any], type_name: str
) -> tuple[list[str | None], list[str | None]]:
    """Both sides of a column of lists or objects in one spelling (`nested_text`). NaN in them is null, and infinity too
    where the answer has none: JSON, in which nao's server sends them, has neither."""
    sides = [
        [None if cell is None else nested_text(cell, type_name) for cell in side] for side in (wanted, given)
    ]
    upper = type_name.upper()
    if "VARCHAR" not in upper and ("DOUBLE" in upper or "FLOAT" in upper):
        finite = not any(text and (_INFINITE.search(text) or _NAN.search(text)) for text in sides[1])
        sides = [[None if text is None else _NAN.sub("NULL", text) for text in side] for side in sides]
        if finite:
            sides[0] = [None if text is None else _INFINITE.sub("NULL", text) for text in sides[0]]
    return sides[0], sides[1]


def nested_text(value: Any, type_name: str) -> str:
    """A list or an object of a column of this type of DuckDB, as JSON or as DuckDB's own text, in one spelling: equal
    texts are equal values. JSON may stand in a text, too: answers that are extracted have no lists."""
    if isinstance(value, str) and (
        '"' in value or ("VARCHAR" not in type_name.upper() and _COMPACT.search(value))
    ):  # of texts within it DuckDB's own text may look like numbers; its quotes are single ones
        value = holder(value)
    if isinstance(value, list) and type_name.upper() == "JSON[]":  # nao's server sends the text of each
        value = [_json_within(item) for item in value]
    return even_duck_text(duck_text(value, type_name), type_name)


def _json_within(item: Any) -> Any:
    if isinstance(item, str):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(item, parse_float=_written_out)
    return item


def duck_text(value: Any, type_name: str = "", top: bool = True) -> str:
    """A JSON value as DuckDB prints one of this type: `[1, 2]`, `{'a': x}`, a map `{a=x}`; dates, times and numbers
    within it as that type spells them. A text is taken as printed already where it is not within another value."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        kinds = _members(type_name)
        return "[" + ", ".join(duck_text(v, _kind_at(kinds, i), False) for i, v in enumerate(value)) + "]"
    if isinstance(value, dict):
        kinds = _members(type_name)
        as_map = type_name[:4].upper() == "MAP("
        if (
            not as_map and value.keys() == kinds.keys()
        ):  # JSON's objects have no order, a struct has that of its type
            value = {name: value[name] for name in kinds}
        pairs = (
            (_quoted(_leaf(key, kinds.get("key", ""))) + "=" if as_map else f"{_in_quotes(key)}: ")
            + duck_text(item, kinds.get("value" if as_map else str(key), ""), False)
            for key, item in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if top:
        return value if isinstance(value, str) else _leaf(value, "")
    return _quoted(_leaf(value, type_name)) if isinstance(value, str) else _leaf(value, type_name)


def _leaf(value: Any, type_name: str) -> str:
    """A value that holds no others, as its type is printed."""
    kind = type_name.upper()
    if isinstance(value, str):
        if kind == "TIME":
            return moment(value) or value
        if kind == "INTERVAL":
            return interval(value, _YEAR) or value
        known = instant(value) if kind == "DATE" or kind.startswith("TIMESTAMP") else None
        if known is None:
            return value
        if kind == "DATE":
            return known.removesuffix("T00:00:00")
        known = known.replace("T", " ")
        return known.replace("+00:00", "+00") if "ZONE" in kind else known
    if isinstance(value, int | float | Decimal):
        if kind == "DOUBLE":
            return repr(float(value)) if abs(value) < _LARGEST else shortest_text(value)
        if kind.startswith("DECIMAL("):
            exact = Decimal(str(value))
            digits = int(kind.rstrip(")").rpartition(",")[2])
            if exact.is_finite() and -int(exact.as_tuple().exponent) <= digits:
                return f"{exact:.{digits}f}"
        return shortest_text(value)
    return str(value)


_LARGEST = 10**300
_TYPE_PART = re.compile(r'"(?:[^"]|"")*"|[(\[]|[)\]]|,')
_LIST_END = re.compile(r"\[\d*\]\Z")
_FIELD = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s"]+))\s+(.*)', re.DOTALL)


@lru_cache(maxsize=256)
def _members(type_name: str) -> dict[str, str]:
    """The types of what a type of DuckDB holds: of a list under `[]`, of a map under `key` and `value`, of a struct
    under its names, of a tuple under its places; empty where it holds nothing, or what is not known."""
    name = type_name.strip()
    if (end := _LIST_END.search(name)) is not None:
        return {"[]": name[: end.start()]}
    head, _, rest = name.partition("(")
    head = head.strip().upper()
    if head not in ("STRUCT", "MAP", "TUPLE") or not rest.endswith(")"):
        return {}
    parts, depth, start = list[str](), 0, 0
    rest = rest[:-1]
    for found in _TYPE_PART.finditer(rest):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(found[0], 0)
        if found[0] == "," and not depth:
            parts.append(rest[start : found.start()])
            start = found.end()
    parts.append(rest[start:])
    if head == "MAP":
        return dict(zip(("key", "value"), (part.strip() for part in parts), strict=False))
    if head == "TUPLE":
        return {f"[{number}]": part.strip() for number, part in enumerate(parts)}
    fields = [field for part in parts if (field := _FIELD.fullmatch(part)) is not None]
    return {
        field[1].replace('""', '"') if field[1] is not None else field[2]: field[3].strip()
        for field in fields
    }


def _kind_at(kinds: dict[str, str], number: int) -> str:
    return kinds.get("[]") or kinds.get(f"[{number}]", "")


def _quoted(value: Any) -> str:
    text = str(value)
    plain_one = text and not _SPECIAL.search(text) and text.upper() != "NULL"
    return text if plain_one else _in_quotes(text)


def _in_quotes(value: Any) -> str:
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def even_duck_text(text: str, type_name: str) -> str:
    """DuckDB's text of a nested value in one spelling: quotes only where they are needed (its versions differ in
    that), a tuple as a list, and `1.0` written `1`, `1.50` written `1.5`, unless its type holds text."""
    if "INTERVAL" in type_name.upper():
        text = _INTERVAL_WITHIN.sub(lambda found: interval(found[0]) or found[0], text)
    if text[:1] in ("[", "{", "("):
        parts = _QUOTED_TEXT.split(text)  # every second one stood in quotes
        text = "".join(
            _quoted(_ESCAPED.sub(r"\1", part)) if number % 2 else part.replace(",)", ")").translate(_TUPLES)
            for number, part in enumerate(parts)
        )
    if "TIME ZONE" in type_name.upper():  # it is printed in the zone of the machine
        text = _ZONED.sub(
            lambda found: (instant(found[0]) or found[0]).replace("T", " ").removesuffix(":00"), text
        )
    if "VARCHAR" in type_name.upper():
        return text
    return _DECIMALS.sub(r"\1\2", text)
