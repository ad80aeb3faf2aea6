"""The methods of JavaScript's lists in templates. Those that change a list change it here, too: variables
are copied before rendering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tui_eval.javascript.operators import strictly_equal
from tui_eval.javascript.values import (
    UNDEFINED,
    ScriptValueError,
    integer,
    is_undefined,
    join,
    relative,
    text,
)


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
