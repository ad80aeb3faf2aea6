"""The methods of JavaScript's strings in templates, on UTF-16 units where they count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tui_eval.javascript.values import (
    MAX_TEXT,
    UNDEFINED,
    WHITESPACE,
    ScriptValueError,
    integer,
    is_undefined,
    join,
    relative,
    text,
    units,
)

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


def _at(value: str, index: Any = 0) -> Any:
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
    "at": _at,
    "concat": lambda s, *others: _bounded(s + join(others, "")),
    "match": _match,
    "localeCompare": lambda s, other: (s > text(other)) - (s < text(other)),
    "normalize": lambda s, *_: s,
    "toString": lambda s: s,
    "valueOf": lambda s: s,
}
