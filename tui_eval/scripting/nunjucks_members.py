"""Members of values in templates: `.length`, and the methods of JavaScript's strings and lists.

Only what stands in the tables here can be reached; Python's own attributes cannot.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

from tui_eval.javascript.values import (
    UNDEFINED,
    ScriptValueError,
    double,
    fixed,
    integer,
    is_undefined,
    number_text,
    precision,
    text,
    units,
)
from tui_eval.scripting.nunjucks_list_members import LIST_METHODS
from tui_eval.scripting.nunjucks_string_members import STRING_METHODS, char_at


def member(value: Any, key: Any) -> Any:
    """`value[key]` as JavaScript finds it; what is not there is `UNDEFINED`."""
    if isinstance(value, Mapping):
        name = key if key in value else text(key)
        if name in value:
            return value[name]
        return _bound(OBJECT_METHODS, value, key)
    if isinstance(value, str):
        if key == "length":
            return units(value)
        index = _index(key)
        if index is not None:
            return char_at(value, index) if 0 <= index < units(value) else UNDEFINED
        return _bound(STRING_METHODS, value, key)
    if isinstance(value, (list, tuple)):
        if key == "length":
            return len(value)
        index = _index(key)
        if index is not None:
            return value[index] if 0 <= index < len(value) else UNDEFINED
        return _bound(LIST_METHODS, value, key)
    if isinstance(value, (int, float)):
        return _bound(NUMBER_METHODS, value, key)
    return UNDEFINED


def _index(key: Any) -> int | None:
    if isinstance(key, bool):
        return None
    if isinstance(key, int):
        return key
    if isinstance(key, float):
        return int(key) if key.is_integer() else None
    return int(key) if isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 16 else None


def _bound(table: dict[str, Callable[..., Any]], value: Any, key: Any) -> Any:
    method = table.get(key) if isinstance(key, str) else None
    return UNDEFINED if method is None else functools.partial(_call, method, value)


def _call(method: Callable[..., Any], value: Any, /, *arguments: Any, **named: Any) -> Any:
    try:
        return method(value, *arguments)
    except TypeError:
        raise ScriptValueError(f"{method.__name__.strip('_')}: wrong arguments") from None


def _to_fixed(value: int | float, digits: Any = 0) -> str:
    places = integer(digits)
    if not 0 <= places <= 100:
        raise ScriptValueError("toFixed: between 0 and 100 digits")
    return fixed(value, places)


def _to_precision(value: int | float, digits: Any = UNDEFINED) -> str:
    if is_undefined(digits):
        return number_text(value)
    places = integer(digits)
    if not 1 <= places <= 100:
        raise ScriptValueError("toPrecision: between 1 and 100 digits")
    return precision(value, places)


def _number_text(value: int | float, base: Any = 10) -> str:
    radix = integer(base, 10)
    value = double(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if radix == 10 or not isinstance(value, int) or isinstance(value, bool):
        return text(value)
    if not 2 <= radix <= 36 or abs(value) > 2**64:
        raise ScriptValueError("toString: the base lies between 2 and 36")
    digits, rest = "", abs(value)
    while rest:
        rest, digit = divmod(rest, radix)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return ("-" if value < 0 else "") + (digits or "0")


def _grouped(value: int | float, *_: Any) -> str:
    plain = number_text(round(value, 3) if isinstance(value, float) else value)
    return (
        re.sub(r"(?<=\d)(?=(\d{3})+(?!\d))", ",", plain) if "." not in plain and "e" not in plain else plain
    )


NUMBER_METHODS: dict[str, Callable[..., Any]] = {
    "toFixed": _to_fixed,
    "toPrecision": _to_precision,
    "toString": _number_text,
    "toLocaleString": _grouped,
    "valueOf": lambda n: n,
}

OBJECT_METHODS: dict[str, Callable[..., Any]] = {
    "hasOwnProperty": lambda o, key: text(key) in o,
    "toString": text,
}
