"""nunjucks' built-in tests (`x is defined`), on JavaScript's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tui_eval.javascript.operators import loosely_equal, strictly_equal
from tui_eval.javascript.values import is_undefined, number, text, truthy


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TESTS: dict[str, Callable[..., Any]] = {
    "callable": callable,
    "defined": lambda v: not is_undefined(v),
    "undefined": is_undefined,
    "divisibleby": lambda v, by: number(by) != 0 and number(v) % number(by) == 0,
    "escaped": lambda v: False,
    "equalto": strictly_equal,
    "eq": strictly_equal,
    "sameas": strictly_equal,
    "ne": lambda a, b: not strictly_equal(a, b),
    "even": lambda v: number(v) % 2 == 0,
    "odd": lambda v: number(v) % 2 == 1,
    "falsy": lambda v: not truthy(v),
    "truthy": truthy,
    "ge": lambda a, b: number(a) >= number(b),
    "greaterthan": lambda a, b: number(a) > number(b),
    "gt": lambda a, b: number(a) > number(b),
    "le": lambda a, b: number(a) <= number(b),
    "lessthan": lambda a, b: number(a) < number(b),
    "lt": lambda a, b: number(a) < number(b),
    "lower": lambda v: text(v).lower() == text(v),
    "upper": lambda v: text(v).upper() == text(v),
    "none": lambda v: v is None,
    "null": lambda v: v is None,
    "number": _is_number,
    "string": lambda v: isinstance(v, str),
    "iterable": lambda v: isinstance(v, (str, list, tuple)),
    "mapping": lambda v: isinstance(v, Mapping),
    "boolean": lambda v: isinstance(v, bool),
    "looselyequal": loosely_equal,
}
