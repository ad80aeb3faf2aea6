"""jsonschema as Ajv reads schemas, imported without what takes a second of a run's start (`slow_imports`): its formats
are those of Ajv's collection, and what it may look at has a limit. Imported where a schema is first needed."""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from tui_eval.slow_imports import FORMATS, as_if_not_installed

with as_if_not_installed():
    import jsonschema
    import jsonschema.validators

# -- How much one look at a value may ask for: `allOf` of two that are each `allOf` of two … is a trillion in a page.


class TooMuch(Exception):
    """A schema asks for more steps than there may be."""


_steps = threading.local()  # a value is looked at in one thread, from beginning to end


@contextmanager
def at_most(steps: int) -> Iterator[None]:
    """What is looked at within it ends with `TooMuch` after so many steps."""
    before = getattr(_steps, "left", None)
    _steps.left = steps
    try:
        yield
    finally:
        _steps.left = before


def _spend(steps: int) -> None:
    """What is looked at costs so many steps, of about ten microseconds.

    Raises:
        TooMuch: the last one is spent.
    """
    left = getattr(_steps, "left", None)
    if left is not None:
        _steps.left = left - steps
        if left < steps:
            raise TooMuch


def _keywords(schema: Any) -> Any:
    """The keywords of a schema that is applied to a value."""
    _spend(1 + sum(len(part) for part in schema.values() if isinstance(part, list | dict)) // 64)
    return schema.items()


def identical(items: Sequence[Any]) -> tuple[int, int] | None:
    """The places of the first item that stands in a list already, and of that one; None: each is there once."""
    seen: dict[Any, int] = {}
    _spend(len(items) // 16)
    for place, item in enumerate(items):
        earlier = seen.setdefault(_content(item), place)
        if earlier != place:
            return place, earlier
    return None


def _content(value: Any) -> Any:
    """What is equal of equal values of JSON alone: `true` is not 1, 1.0 is."""
    if isinstance(value, bool):
        return bool, value
    if not isinstance(value, dict | list):
        return value
    _spend(1 + len(value) // 16)
    if isinstance(value, dict):
        return frozenset((name, _content(item)) for name, item in value.items())
    return tuple(map(_content, value))


_FORMAT_LIST = """date time date-time iso-time iso-date-time duration uri uri-reference uri-template url email hostname ipv4
    ipv6 regex uuid json-pointer json-pointer-uri-fragment relative-json-pointer byte int32 int64 float double
    password binary"""
FORMAT_NAMES = frozenset(_FORMAT_LIST.split())
"""Every other format is an error where a schema names it."""

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIME = re.compile(
    r"(\d\d):(\d\d):(\d\d(?:\.\d+)?)(?:(z)|([+-])(\d\d)(?::?(\d\d))?)?", re.ASCII | re.IGNORECASE
)
_ATOM = r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_EMAIL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+{_LABEL}", re.IGNORECASE)
_URL = re.compile(
    r"(?:https?|ftp)://(?:\S+@)?(?P<host>[a-z0-9\u00a1-\uffff.-]+)(?::\d{2,5})?(?:/\S*)?",
    re.IGNORECASE,
)
_HOST = re.compile(
    r"(?:[a-z0-9\u00a1-\uffff]+(?:-+[a-z0-9\u00a1-\uffff]+)*\.)+[a-z\u00a1-\uffff]{2,}", re.IGNORECASE
)
_VARIABLE = r"(?:[a-z0-9_]|%[0-9a-f]{2})+(?::[1-9][0-9]{0,3}|\*)?"
_FORMAT_PATTERNS = {
    "uri-template": re.compile(
        rf"(?:[^\x00-\x20\"'<>%\\^`{{|}}]|%[0-9a-f]{{2}}|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*+",
        re.IGNORECASE,
    ),
    "json-pointer-uri-fragment": re.compile(
        r"#(?:/(?:[a-z0-9_.!$&'()*+,;:=@-]|%[0-9a-f]{2}|~0|~1)*)*", re.IGNORECASE
    ),
    "email": _EMAIL,
    "uuid": re.compile(r"(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE),
    "duration": re.compile(
        r"P(?!\Z)((\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?|(\d+W)?)", re.ASCII
    ),
}


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if not found:
        return False
    year, month, day = map(int, found.groups())
    try:
        date(year or 4, month, day)  # year 0 is a leap year
    except ValueError:
        return False
    return True


def _is_time(text: str, *, zone: bool) -> bool:
    found = _TIME.fullmatch(text)
    if not found:
        return False
    hour, minute, second = int(found[1]), int(found[2]), float(found[3])
    ahead = -1 if found[5] == "-" else 1
    hours, minutes = int(found[6] or 0), int(found[7] or 0)
    if hours > 23 or minutes > 59 or (zone and not (found[4] or found[5])):
        return False
    if hour <= 23 and minute <= 59 and second < 60:
        return True
    # A leap second ends a day of Greenwich.
    utc_minute = minute - minutes * ahead
    utc_hour = hour - hours * ahead - (utc_minute < 0)
    return utc_hour in (23, -1) and utc_minute in (59, -1) and second < 61


def _is_date_time(text: str, *, zone: bool) -> bool:
    parts = re.split(r"[tT\s]", text)
    return len(parts) == 2 and _is_date(parts[0]) and _is_time(parts[1], zone=zone)


def _is_url(text: str) -> bool:
    found = _URL.fullmatch(text)
    return bool(found) and (_HOST.fullmatch(found["host"]) is not None or _is_public(found["host"]))


def _is_public(host: str) -> bool:
    """An IPv4 address that is not for private networks, this machine or many at once."""
    if not re.fullmatch(r"(?:0|[1-9]\d{0,2})(?:\.\d{1,3}){3}", host, re.ASCII):
        return False
    a, b, c, d = map(int, host.split("."))
    private = a in (10, 127) or (a, b) in ((169, 254), (192, 168)) or (a == 172 and 16 <= b <= 31)
    return not private and 1 <= a <= 223 and b <= 255 and c <= 255 and 1 <= d <= 254


def _is_base64(text: str) -> bool:
    base64.b64decode(text, validate=True)
    return True


_TEXT_FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _is_date,
    "time": lambda text: _is_time(text, zone=True),
    "iso-time": lambda text: _is_time(text, zone=False),
    "date-time": lambda text: _is_date_time(text, zone=True),
    "iso-date-time": lambda text: _is_date_time(text, zone=False),
    "url": _is_url,
    "byte": _is_base64,
    **{
        name: lambda text, shape=shape: shape.fullmatch(text) is not None
        for name, shape in _FORMAT_PATTERNS.items()
    },
}


@lru_cache(maxsize=1)
def format_checker() -> Any:
    """jsonschema's checker with these formats; those not given here are as jsonschema has them."""
    made = jsonschema.FormatChecker(formats=())
    known = jsonschema.Draft7Validator.FORMAT_CHECKER.checkers
    # Ray's workers have imported jsonschema before us, with all it finds: what is judged is the same there.
    made.checkers = {name: check for name, check in known.items() if name not in FORMATS}

    def within(low: float, high: float) -> Any:
        return lambda value: (
            not isinstance(value, int | float) or (value == int(value) and low <= value <= high)
        )

    for name, holds in _TEXT_FORMATS.items():
        made.checks(name, raises=ValueError)(
            lambda value, holds=holds: not isinstance(value, str) or holds(value)
        )
    made.checks("int32")(within(-(2**31), 2**31 - 1))
    made.checks("int64")(within(float("-inf"), float("inf")))
    return made


def order_key(name: str, text: str) -> Any:
    """What two texts of a format are compared by (`formatMinimum` and the like); None: they are not."""
    return ORDERS[name](text) if name in ORDERS else None


def _moment(text: str, *, whole: bool) -> datetime | None:
    parts = re.split(r"[tT\s]", text) if whole else ["2020-01-01", text]
    found = _TIME.fullmatch(parts[-1])
    if len(parts) != 2 or not found or not _is_date(parts[0]):
        return None
    zone = timedelta(hours=int(found[6] or 0), minutes=int(found[7] or 0)) * (-1 if found[5] == "-" else 1)
    seconds = timedelta(hours=int(found[1]), minutes=int(found[2]), seconds=float(found[3]))
    try:
        day = date.fromisoformat(parts[0])
        return datetime.combine(day, time(tzinfo=UTC)) + seconds - zone
    except (ValueError, OverflowError):
        return None


ORDERS: dict[str, Callable[[str], Any]] = {
    "date": lambda text: text or None,
    "time": lambda text: _moment(text, whole=False),
    "iso-time": lambda text: "".join(found.groups()[:3]) if (found := _TIME.fullmatch(text)) else None,
    "date-time": lambda text: _moment(text, whole=True),
    "iso-date-time": lambda text: _moment(text, whole=True),
}
"""By the formats whose texts have an order."""

LIMITS: dict[str, tuple[str, Callable[[int], bool]]] = {
    "formatMinimum": (">=", lambda order: order >= 0),
    "formatMaximum": ("<=", lambda order: order <= 0),
    "formatExclusiveMinimum": (">", lambda order: order > 0),
    "formatExclusiveMaximum": ("<", lambda order: order < 0),
}
"""The keywords that limit such texts: how they are said, and what they take."""


# -- A validator of draft 07 with Ajv's liberties: `nullable`, keywords beside `$ref`, limits of formats.


def validator_of(schema: Any, matches: Callable[[str, str], bool]) -> Any:
    """The validator of a schema; `matches` tells whether one of its patterns is found in a text."""
    ValidationError = jsonschema.ValidationError
    listed: dict[
        int, frozenset[Any]
    ] = {}  # what lists of the schema hold, by their ids: it lives as long as this

    def values(wanted: list[Any]) -> frozenset[Any]:
        if id(wanted) not in listed:
            listed[id(wanted)] = frozenset(map(_content, wanted))
        return listed[id(wanted)]

    def enum(_: Any, wanted: Any, instance: Any, __: Any) -> Iterator[Any]:
        if _content(instance) not in values(wanted):
            yield ValidationError("enum")

    def const(_: Any, wanted: Any, instance: Any, __: Any) -> Iterator[Any]:
        if _content(instance) != _content(wanted):
            yield ValidationError("const")

    def pattern(_: Any, wanted: str, instance: Any, __: Any) -> Iterator[Any]:
        if isinstance(instance, str):
            _spend(len(instance) // 256)
            if not matches(wanted, instance):
                yield ValidationError(wanted)

    def format_(validator: Any, wanted: str, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, str):
            _spend(len(instance) // 256)
        yield from given.VALIDATORS["format"](validator, wanted, instance, schema)

    def pattern_properties(validator: Any, wanted: dict[str, Any], instance: Any, _: Any) -> Iterator[Any]:
        if not isinstance(instance, dict):
            return
        _spend(len(instance) * len(wanted) // 4)
        for key, value in instance.items():
            for expression, inner in wanted.items():
                if matches(expression, key):
                    yield from validator.descend(value, inner, path=key, schema_path=expression)

    def additional(validator: Any, wanted: Any, instance: Any, schema: dict[str, Any]) -> Iterator[Any]:
        known, expressions = schema.get("properties", {}), schema.get("patternProperties", {})
        if not isinstance(instance, dict):
            return
        _spend(len(instance) * (1 + len(expressions)) // 4)
        for key, value in instance.items():
            if key in known or any(matches(expression, key) for expression in expressions):
                continue
            if wanted is False:
                yield ValidationError(key)
            else:
                yield from validator.descend(value, wanted, path=key)

    def kind(validator: Any, wanted: Any, instance: Any, schema: dict[str, Any]) -> Iterator[Any]:
        names = wanted if isinstance(wanted, list) else [wanted]
        null = instance is None and schema.get("nullable") is True
        if not null and not any(validator.is_type(instance, name) for name in names):
            yield ValidationError("type")

    def unique(_: Any, wanted: Any, instance: Any, __: Any) -> Iterator[Any]:
        if wanted and isinstance(instance, list) and identical(instance) is not None:
            yield ValidationError("uniqueItems")

    own = {
        "enum": enum,
        "const": const,
        "uniqueItems": unique,
        "pattern": pattern,
        "format": format_,
        "patternProperties": pattern_properties,
        "additionalProperties": additional,
        "type": kind,
        **{key: _limit for key in LIMITS},
    }
    given: Any = jsonschema.Draft7Validator
    made: Any = jsonschema.validators.create(
        meta_schema=given.META_SCHEMA,
        validators={**given.VALIDATORS, **own},
        type_checker=given.TYPE_CHECKER,
        format_checker=format_checker(),
        id_of=given.ID_OF,
        applicable_validators=_keywords,
    )
    return made(schema, format_checker=format_checker())


def _limit(_: Any, wanted: str, instance: Any, schema: dict[str, Any]) -> Iterator[Any]:
    for key in LIMITS.keys() & schema.keys():
        sign, holds = LIMITS[key]
        if schema[key] is wanted and isinstance(instance, str):
            ours, theirs = (order_key(schema["format"], text) for text in (instance, wanted))
            if ours is not None and theirs is not None and not holds((ours > theirs) - (ours < theirs)):
                yield jsonschema.ValidationError(f"should be {sign} {wanted}")
