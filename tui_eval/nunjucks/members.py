"""Members of values in templates: `.length`, and the methods of JavaScript's strings and lists.

Only what stands in the tables here can be reached; Python's own attributes cannot.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from tui_eval.javascript.operators import strictly_equal
from tui_eval.javascript.values import (
    MAX_TEXT,
    UNDEFINED,
    WHITESPACE,
    ScriptValueError,
    double,
    fixed,
    integer,
    is_undefined,
    join,
    look_through,
    number_text,
    precision,
    relative,
    text,
    units,
)

# -- The methods of JavaScript's strings in templates, on UTF-16 units where they count.


# JavaScript counts UTF-16 units, so texts beyond the basic plane are cut through their units.


def _cut(value: str, start: int, end: int) -> str:
    if end <= start:
        return ""
    if value.isascii() or units(value) == len(value):
        return value[start:end]
    encoded = value.encode("utf-16-le", "surrogatepass")
    return encoded[start * 2 : end * 2].decode("utf-16-le", "surrogatepass")


def char_at(value: str, index: Any = 0) -> str:
    """`charAt`."""
    position = integer(index)
    return _cut(value, position, position + 1) if position >= 0 else ""


def _slice(value: str, start: Any = 0, end: Any = UNDEFINED) -> str:
    size = units(value)
    first, last = relative(start, size, 0), relative(end, size, size)
    return _cut(value, first, last)


def _substring(value: str, start: Any = 0, end: Any = UNDEFINED) -> str:
    size = units(value)
    first = min(max(integer(start), 0), size)
    last = size if is_undefined(end) else min(max(integer(end), 0), size)
    return _cut(value, min(first, last), max(first, last))


def _substr(value: str, start: Any = 0, count: Any = UNDEFINED) -> str:
    size = units(value)
    first = relative(start, size, 0)
    return _cut(value, first, size if is_undefined(count) else min(size, first + integer(count)))


def _split(value: str, separator: Any = UNDEFINED, limit: Any = UNDEFINED) -> list[str]:
    if is_undefined(separator):
        parts = [value]
    elif (between := text(separator)) == "":
        parts = [_cut(value, i, i + 1) for i in range(units(value))]
    else:
        parts = value.split(between)
    return parts if is_undefined(limit) else parts[: max(0, integer(limit))]


def _replace(value: str, old: Any, new: Any = UNDEFINED) -> str:
    return _bounded(value.replace(text(old), text(new), 1))


def _replace_all(value: str, old: Any, new: Any = UNDEFINED) -> str:
    old, new = text(old), text(new)
    if len(value) + value.count(old) * len(new) > MAX_TEXT:
        raise ScriptValueError("the text would be too long")
    return value.replace(old, new)


def _bounded(value: str) -> str:
    if len(value) > MAX_TEXT:
        raise ScriptValueError("the text would be too long")
    return value


def _repeat(value: str, count: Any = 0) -> str:
    times = integer(count)
    if times < 0 or times * max(1, len(value)) > MAX_TEXT:
        raise ScriptValueError("repeat: the text would be too long")
    return value * times


def _pad(value: str, size: Any, filler: Any, *, front: bool) -> str:
    filling = " " if is_undefined(filler) else text(filler)
    missing = integer(size) - units(value)
    if missing <= 0 or not filling:
        return value
    if missing > MAX_TEXT:
        raise ScriptValueError("the text would be too long")
    padding = (filling * (missing // len(filling) + 1))[:missing]
    return padding + value if front else value + padding


def _index_of(value: str, part: Any, start: Any = 0) -> int:
    found = value.find(text(part), max(0, integer(start)))
    return found if found < 0 else units(value[:found])


def _last_index_of(value: str, part: Any) -> int:
    found = value.rfind(text(part))
    return found if found < 0 else units(value[:found])


def _code(value: str, index: Any = 0) -> Any:
    unit = char_at(value, index)
    return ord(unit) if unit else float("nan")


def _match(value: str, part: Any) -> Any:
    found = value.find(text(part))
    return None if found < 0 else [text(part)]


def _at_of_nunjucks_string_members(value: str, index: Any = 0) -> Any:
    size, position = units(value), integer(index)
    position = size + position if position < 0 else position
    return char_at(value, position) if 0 <= position < size else UNDEFINED


STRING_METHODS: dict[str, Callable[..., Any]] = {
    "toUpperCase": lambda s: s.upper(),
    "toLowerCase": lambda s: s.lower(),
    "toLocaleUpperCase": lambda s, *_: s.upper(),
    "toLocaleLowerCase": lambda s, *_: s.lower(),
    "trim": lambda s: s.strip(WHITESPACE),
    "trimStart": lambda s: s.lstrip(WHITESPACE),
    "trimEnd": lambda s: s.rstrip(WHITESPACE),
    "trimLeft": lambda s: s.lstrip(WHITESPACE),
    "trimRight": lambda s: s.rstrip(WHITESPACE),
    "split": _split,
    "slice": _slice,
    "substring": _substring,
    "substr": _substr,
    "includes": lambda s, part, start=0: text(part) in s[max(0, integer(start)) :],
    "startsWith": lambda s, part, start=0: s.startswith(text(part), max(0, integer(start))),
    "endsWith": lambda s, part, end=UNDEFINED: (
        s if is_undefined(end) else s[: max(0, integer(end))]
    ).endswith(text(part)),
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "replace": _replace,
    "replaceAll": _replace_all,
    "repeat": _repeat,
    "padStart": lambda s, size, filler=UNDEFINED: _pad(s, size, filler, front=True),
    "padEnd": lambda s, size, filler=UNDEFINED: _pad(s, size, filler, front=False),
    "charAt": char_at,
    "charCodeAt": _code,
    "codePointAt": lambda s, index=0: ord(s[integer(index)]) if 0 <= integer(index) < len(s) else UNDEFINED,
    "at": _at_of_nunjucks_string_members,
    "concat": lambda s, *others: _bounded(s + join(others, "")),
    "match": _match,
    "localeCompare": lambda s, other: (s > text(other)) - (s < text(other)),
    "normalize": lambda s, *_: s,
    "toString": lambda s: s,
    "valueOf": lambda s: s,
}


# -- The methods of JavaScript's lists in templates. Those that change a list change it here, too: variables
# are copied before rendering.


def _list_slice(value: list[Any], start: Any = 0, end: Any = UNDEFINED) -> list[Any]:
    size = len(value)
    return list(value[relative(start, size, 0) : relative(end, size, size)])


def _list_index(value: list[Any], item: Any) -> int:
    return next((i for i, other in enumerate(value) if strictly_equal(item, other)), -1)


def _last_list_index(value: list[Any], item: Any) -> int:
    return next((i for i in range(len(value) - 1, -1, -1) if strictly_equal(item, value[i])), -1)


def _concat(value: list[Any], *others: Any) -> list[Any]:
    result = list(value)
    for other in others:
        result.extend(other if isinstance(other, (list, tuple)) else [other])
    if len(result) > MAX_ITEMS:
        raise ScriptValueError("the list would be too long")
    return result


MAX_ITEMS = 1_000_000
"""The longest list that a template may build."""


def _push(value: list[Any], *items: Any) -> int:
    if len(value) + len(items) > MAX_ITEMS:
        raise ScriptValueError("the list would be too long")
    value.extend(items)
    return len(value)


def _sorted(value: list[Any], *_: Any) -> list[Any]:
    value.sort(key=text)
    return value


def _reversed(value: list[Any]) -> list[Any]:
    value.reverse()
    return value


def _flat(value: list[Any], depth: Any = 1) -> list[Any]:
    look_through(value)
    levels = integer(depth, 1)
    result: list[Any] = []
    for item in value:
        if isinstance(item, (list, tuple)) and levels > 0:
            result.extend(_flat(list(item), levels - 1))
        else:
            result.append(item)
    return result


def _at(value: list[Any], index: Any = 0) -> Any:
    position = integer(index)
    position = len(value) + position if position < 0 else position
    return value[position] if 0 <= position < len(value) else UNDEFINED


LIST_METHODS: dict[str, Callable[..., Any]] = {
    "join": lambda v, separator=",": join(v, "," if is_undefined(separator) else text(separator)),
    "slice": _list_slice,
    "includes": lambda v, item: _list_index(v, item) >= 0,
    "indexOf": _list_index,
    "lastIndexOf": _last_list_index,
    "concat": _concat,
    "push": _push,
    "pop": lambda v: v.pop() if v else UNDEFINED,
    "shift": lambda v: v.pop(0) if v else UNDEFINED,
    "reverse": _reversed,
    "sort": _sorted,
    "flat": _flat,
    "at": _at,
    "toString": text,
}


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


def _grouped(value: int | float, locale: Any = UNDEFINED, *options: Any) -> str:
    """`toLocaleString`, as node has it by default: in groups of three, with three decimals at most."""
    if (not is_undefined(locale) and locale != "en-US") or options:
        raise ScriptValueError("toLocaleString: in a template, no other locale than en-US, and no options")
    number = float(value)
    if not math.isfinite(number):
        return number_text(number).replace("Infinity", "∞")
    plain = Decimal(repr(number)).quantize(Decimal("0.001"), ROUND_HALF_UP, Context(prec=400))
    whole, _, decimals = f"{plain:,f}".partition(".")
    return f"{whole}.{rest}" if (rest := decimals.rstrip("0")) else whole


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
