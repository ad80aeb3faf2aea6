"""nunjucks' built-in filters, with promptfoo's `load`, on JavaScript's values."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from tui_eval.javascript import operators
from tui_eval.javascript.values import (
    MAX_TEXT,
    UNDEFINED,
    WHITESPACE,
    FileList,
    FileValue,
    ScriptValueError,
    integer,
    is_nullish,
    is_undefined,
    join,
    json_text,
    number,
    parse_json,
    text,
    tidy,
    truthy,
)
from tui_eval.scripting.nunjucks_list_members import MAX_ITEMS
from tui_eval.scripting.nunjucks_members import member
from tui_eval.scripting.nunjucks_string_members import units
from tui_eval.scripting.nunjucks_tests import TESTS
from tui_eval.scripting.nunjucks_text_filters import TEXT_FILTERS, SafeText, items


def _there(value: Any, name: str) -> Any:
    """The value, unless it is null or undefined, of which this filter can make nothing."""
    if is_nullish(value):
        raise ScriptValueError(f"{name}: there is no value")
    return value


def _sequence(value: Any, name: str) -> list[Any]:
    """A list; anything else is refused."""
    if not isinstance(value, (list, tuple)):
        raise ScriptValueError(f"{name}: the value is not a list")
    return list(value)


def _default(value: Any, fallback: Any = "", falsy: Any = False) -> Any:
    if truthy(falsy):
        return value if truthy(value) else fallback
    return fallback if is_undefined(value) else value


def _join(value: Any, separator: Any = "", attribute: Any = None) -> str:
    if truthy(attribute):
        found = [member(_there(item, "join"), attribute) for item in items(value)]
    else:
        found = _sequence(value, "join")
    return join(found, text(separator) if truthy(separator) else "")


def _length(value: Any) -> Any:
    if isinstance(value, str):
        return units(value)
    if isinstance(value, (list, tuple, Mapping)):
        return len(value)
    return 0 if is_nullish(value) or value is False else UNDEFINED


def _round(value: Any, precision: Any = 0, method: Any = "common") -> Any:
    factor = 10 ** max(-300, min(300, integer(precision)))
    scaled = number(value) * factor
    if scaled != scaled or scaled in (float("inf"), float("-inf")):
        return scaled
    how = text(method)
    whole = -(-scaled // 1) if how == "ceil" else scaled // 1 if how == "floor" else (scaled + 0.5) // 1
    return tidy(whole / factor)


def _int(value: Any, default: Any = UNDEFINED, base: Any = 10) -> Any:
    """`parseInt`: as many digits of the base as there are at the beginning."""
    plain, system = text(value).strip(WHITESPACE)[:400], integer(base)
    sign, plain = (plain[0], plain[1:]) if plain[:1] in ("+", "-") else ("", plain)
    if system in (0, 16) and plain[:2].lower() == "0x":
        plain, system = plain[2:], 16
    system = system or 10
    if not 2 <= system <= 36:
        return default
    known = "0123456789abcdefghijklmnopqrstuvwxyz"[:system]
    digits = re.match(f"[{known}]*", plain, re.ASCII | re.IGNORECASE)
    return int(sign + digits[0], system) if digits and digits[0] else default


def _float(value: Any, default: Any = UNDEFINED) -> Any:
    found = re.match(
        r"[+-]?Infinity|[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text(value).strip(WHITESPACE)[:400], re.ASCII
    )
    return tidy(float(found.group())) if found else default


def _reverse(value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else items(value)[::-1]


def _compared(one: Any, other: Any, case_sensitive: Any) -> int:
    """JavaScript's order of two values: below 0, 0 or above 0; what cannot be compared is equal."""
    if isinstance(one, str) and isinstance(other, str) and not truthy(case_sensitive):
        one, other = one.lower(), other.lower()
    if operators.ordered("lt", one, other):
        return -1
    return 1 if operators.ordered("gt", one, other) else 0


def _sort(value: Any, reverse: Any = False, case_sensitive: Any = False, attribute: Any = None) -> list[Any]:
    def order(one: tuple[Any, Any], other: tuple[Any, Any]) -> int:
        return _compared(one[0], other[0], case_sensitive)

    by = text(attribute) if truthy(attribute) else ""
    pairs = [(_attribute(item, by) if by else item, item) for item in items(value)]
    found = sorted(pairs, key=functools.cmp_to_key(order), reverse=truthy(reverse))
    return [item for _, item in found]


def _attribute(value: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        if is_undefined(value):
            break
        value = member(_there(value, dotted), part)
    return value


def _dictsort(value: Any, case_sensitive: Any = False, by: Any = UNDEFINED) -> list[Any]:
    if not isinstance(value, Mapping):
        raise ScriptValueError("dictsort: the value must be an object")
    column = "key" if is_undefined(by) else text(by)
    if column not in ("key", "value"):
        raise ScriptValueError("dictsort: sorts by key or by value only")
    place = 0 if column == "key" else 1

    def order(one: list[Any], other: list[Any]) -> int:
        a, b = one[place], other[place]
        if not truthy(case_sensitive):
            a = a.upper() if isinstance(a, str) else a
            b = b.upper() if isinstance(b, str) else b
        # Not in that order, which is what the tool takes for the opposite one.
        return 1 if operators.ordered("gt", a, b) else 0 if operators.strictly_equal(a, b) else -1

    return sorted(([k, v] for k, v in value.items()), key=functools.cmp_to_key(order))


def _batch(value: Any, size: Any = UNDEFINED, filler: Any = UNDEFINED) -> list[Any]:
    found = items(_there(value, "batch"))
    count = max(1, integer(size, len(found)))
    rows = [found[i : i + count] for i in range(0, len(found), count)]
    if rows and truthy(filler):
        _within(count)
        rows[-1].extend([filler] * (count - len(rows[-1])))
    return rows


def _slice(value: Any, count: Any = UNDEFINED, filler: Any = UNDEFINED) -> list[Any]:
    whole = isinstance(value, str) and not truthy(filler)
    found: Any = value if whole else _sequence(value, "slice")
    parts = max(0, integer(count))
    if not parts:
        return []
    _within(parts)
    size, extra = divmod(len(found), parts)
    result: list[Any] = []
    at = 0
    for i in range(parts):
        step = size + (i < extra)
        part = found[at : at + step]
        at += step
        if i >= extra and truthy(filler):
            part.append(filler)
        result.append(part)
    return result


def _within(count: int) -> None:
    if count > MAX_ITEMS:
        raise ScriptValueError("the list would be too long")


def _groupby(value: Any, attribute: Any) -> dict[str, Any]:
    groups: dict[str, Any] = {}
    for item in items(_there(value, "groupby")):
        groups.setdefault(text(_attribute(item, text(attribute))), []).append(item)
    return groups


def _sum(value: Any, attribute: Any = None, start: Any = 0) -> Any:
    if truthy(attribute):
        found = [member(_there(item, "sum"), attribute) for item in items(value)]
    else:
        found = _sequence(value, "sum")
    return operators.add(start, functools.reduce(operators.add, found, 0))


def _selected(value: Any, test: Any, argument: Any, wanted: bool) -> list[Any]:
    name = "truthy" if is_undefined(test) else text(test)
    if name not in TESTS:
        raise ScriptValueError(f"test not found: {name}")
    more = () if is_undefined(argument) else (argument,)
    return [item for item in items(_there(value, "select")) if bool(TESTS[name](item, *more)) is wanted]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [{"key": k, "value": v} for k, v in value.items()]
    if isinstance(value, (str, list, tuple)):
        return items(value)
    raise ScriptValueError("list: the value is not iterable")


def _first(value: Any) -> Any:
    return member(_there(value, "first"), 0)


def _last(value: Any) -> Any:
    found = items(_there(value, "last"))
    return found[-1] if found else UNDEFINED


def _random(value: Any) -> Any:
    found = items(_there(value, "random"))
    return random.choice(found) if found else UNDEFINED


def _load(value: Any) -> Any:
    if value is None or isinstance(value, (FileValue, FileList)):
        return value
    try:
        return parse_json(text(value))
    except (ValueError, RecursionError) as error:
        raise ScriptValueError(f"load: not JSON: {str(error).splitlines()[0]}") from None


def _dump(value: Any, indent: Any = None) -> Any:
    if is_undefined(value):
        return UNDEFINED
    written = json_text(value, indent)
    if len(written) > MAX_TEXT:
        raise ScriptValueError("the text would be too long")
    return written


FILTERS: dict[str, Callable[..., Any]] = {
    **TEXT_FILTERS,
    "load": _load,
    "dump": _dump,
    "abs": lambda v: abs(number(v)),
    "batch": _batch,
    "default": _default,
    "d": _default,
    "dictsort": _dictsort,
    "first": _first,
    "float": _float,
    "groupby": _groupby,
    "int": _int,
    "join": _join,
    "last": _last,
    "length": _length,
    "list": _listed,
    "random": _random,
    "reject": lambda v, test=UNDEFINED, more=UNDEFINED: _selected(v, test, more, False),
    "rejectattr": lambda v, name: [
        i for i in _sequence(v, "rejectattr") if not truthy(member(_there(i, "rejectattr"), name))
    ],
    "reverse": _reverse,
    "round": _round,
    "safe": lambda v: SafeText(text(v)),
    "select": lambda v, test=UNDEFINED, more=UNDEFINED: _selected(v, test, more, True),
    "selectattr": lambda v, name: [
        i for i in _sequence(v, "selectattr") if truthy(member(_there(i, "selectattr"), name))
    ],
    "slice": _slice,
    "sort": _sort,
    "string": lambda v: text(_there(v, "string")),
    "sum": _sum,
}
