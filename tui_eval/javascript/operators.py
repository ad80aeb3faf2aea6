"""What `+`, `==`, `<`, `in` and the other operators of JavaScript do with plain values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tui_eval.javascript.values import (
    MAX_TEXT,
    ScriptValueError,
    double,
    is_nullish,
    is_undefined,
    look_through,
    number,
    string,
    text,
    tidy,
)


def add(left: Any, right: Any) -> Any:
    """JavaScript's `+`: numbers are added, everything else is joined as text."""
    if all(isinstance(side, int | float | None) or is_undefined(side) for side in (left, right)):
        if is_undefined(left) or is_undefined(right):
            return math.nan
        return tidy(_float_safe(lambda: number(left) + number(right)))
    both = [string(left), string(right)]
    if len(both[0]) + len(both[1]) > MAX_TEXT:
        raise ScriptValueError("the text would be too long")
    return both[0] + both[1]


def _float_safe(compute: Callable[[], int | float]) -> int | float:
    try:
        return compute()
    except OverflowError:
        return math.inf
    except (ValueError, TypeError):
        return math.nan


def arithmetic(operator: str, left: Any, right: Any) -> Any:
    """The other operators: `- * / // % **`, on numbers only."""
    first, second = number(left), number(right)
    if operator in ("/", "//"):
        if second == 0:
            result: int | float = (
                math.nan if first == 0 or math.isnan(first) else math.copysign(math.inf, first)
            )
        else:
            result = _float_safe(lambda: first / second)
            if operator == "//" and math.isfinite(result):
                result = math.floor(result)
    elif operator == "%":
        result = math.nan if second == 0 else _float_safe(lambda: math.fmod(first, second))
    elif operator == "**":
        result = _float_safe(lambda: float(first) ** float(second) if first or second >= 0 else math.inf)
        if isinstance(result, complex):
            result = math.nan
    elif operator == "*":
        result = _float_safe(lambda: float(first) * float(second))
    else:
        result = _float_safe(lambda: first - second)
    return tidy(result)


def strictly_equal(left: Any, right: Any) -> bool:
    """JavaScript's `===` (lists and objects are compared by their content: a template cannot tell)."""
    if is_undefined(left) or is_undefined(right):
        return is_undefined(left) and is_undefined(right)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return double(left) == double(right)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        if left.keys() != right.keys():
            return False
        look_through(left)
        return all(strictly_equal(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        if len(left) != len(right):
            return False
        look_through(left)
        return all(map(strictly_equal, left, right))
    return type(left) is type(right) and left == right


def deeply_equal(left: Any, right: Any) -> bool:
    """node's `isDeepStrictEqual` of values that JSON can hold: NaN equals itself, 0 and -0 differ."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return _same_number(double(left), double(right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        if left.keys() != right.keys():
            return False
        look_through(left)
        return all(deeply_equal(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        if len(left) != len(right):
            return False
        look_through(left)
        return all(map(deeply_equal, left, right))
    return left == right


def _same_number(left: int | float, right: int | float) -> bool:
    if left != right:
        return left != left and right != right
    return bool(left) or math.copysign(1, left) == math.copysign(1, right)


def loosely_equal(left: Any, right: Any) -> bool:
    """JavaScript's `==`."""
    if is_nullish(left) or is_nullish(right):
        return is_nullish(left) and is_nullish(right)
    scalars = (str, int, float)
    if isinstance(left, scalars) and isinstance(right, scalars) and type(left) is not type(right):
        return number(left) == number(right)
    if isinstance(left, (list, dict)) != isinstance(right, (list, dict)):
        return loosely_equal(_primitive(left), _primitive(right))
    return strictly_equal(left, right)


def _primitive(value: Any) -> Any:
    """A list or an object as the text that it is compared by."""
    return text(value) if isinstance(value, (list, tuple, Mapping)) else value


def ordered(operator: str, left: Any, right: Any) -> bool:
    """JavaScript's `<`, `<=`, `>`, `>=`."""
    left, right = _primitive(left), _primitive(right)
    if isinstance(left, str) and isinstance(right, str):
        first: Any = left.encode("utf-16-be", "surrogatepass")
        second: Any = right.encode("utf-16-be", "surrogatepass")
    else:
        first = math.nan if is_undefined(left) else number(left)
        second = math.nan if is_undefined(right) else number(right)
    match operator:
        case "lt":
            return first < second
        case "lteq":
            return first <= second
        case "gt":
            return first > second
        case _:
            return first >= second


def contains(item: Any, container: Any) -> bool:
    """nunjucks' `in`: membership of a list, part of a text, key of an object."""
    if isinstance(container, str):
        return string(item) in container  # of what is missing, the word "undefined"
    if isinstance(container, (list, tuple)):
        return any(strictly_equal(item, other) for other in container)
    if isinstance(container, Mapping):
        return string(item) in container
    raise ScriptValueError("cannot use `in` on a value that is neither text, list nor object")
