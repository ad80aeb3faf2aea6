"""nunjucks' built-in filters, with promptfoo's `load`, on JavaScript's values."""

from __future__ import annotations

import functools
import html
import random
import re
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from tui_eval.javascript import operators
from tui_eval.javascript.operators import strictly_equal
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
from tui_eval.nunjucks.members import MAX_ITEMS, STRING_METHODS, member, units

# -- nunjucks' built-in tests (`x is defined`), on JavaScript's values.


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TESTS: dict[str, Callable[..., Any]] = {
    "callable": lambda v: callable(v) and not is_undefined(v),
    "defined": lambda v: not is_undefined(v),
    "undefined": is_undefined,
    "divisibleby": lambda v, by: number(by) != 0 and number(v) % number(by) == 0,
    "escaped": lambda v: False,
    "equalto": strictly_equal,
    "eq": strictly_equal,
    "sameas": strictly_equal,
    "ne": lambda a, b: not strictly_equal(a, b),
    "even": lambda v: number(v) % 2 == 0,
    "odd": lambda v: operators.arithmetic("%", v, 2) == 1,  # of a negative number it is -1
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
}


# -- nunjucks' built-in filters of texts, on JavaScript's values.


_MAIL = re.compile(
    r"[\w.!#$%&'*+\-/=?^`{|}~]{1,200}@[a-z\d-]{1,200}(?:\.[a-z\d-]{1,200}){1,20}", re.I | re.ASCII
)
_DOMAIN = re.compile(r"\.(?:org|net|com)(?::|/|\Z)")


def items(value: Any) -> list[Any]:
    """What a filter walks through: a list, the letters of a text, nothing of anything else."""
    if isinstance(value, (list, tuple)):
        return list(value)
    return list(value) if isinstance(value, str) else []


def _plain(value: Any) -> Any:
    """A file's variable as its text, which is what it is to the tool."""
    return value.source if isinstance(value, (FileValue, FileList)) else value


def _letters(value: Any, name: str) -> str:
    """A text; null, undefined and false are empty ones, and anything else is refused, as in nunjucks."""
    value = _plain(value)
    if is_nullish(value) or value is False:
        return ""
    if not isinstance(value, str):
        raise ScriptValueError(f"{name}: the value is not text")
    return value


def _capitalize(value: Any) -> str:
    plain = _letters(value, "capitalize").lower()
    return plain[:1].upper() + plain[1:]


def _title(value: Any) -> str:
    return " ".join(_capitalize(word) for word in _letters(value, "title").split(" "))


def _center(value: Any, width: Any = 80) -> str:
    value = _plain(value)
    plain = "" if value is False else text(value)
    if not isinstance(value, (str, list, tuple)):
        return plain
    size = integer(width, 80) or 80
    missing = size - (units(value) if isinstance(value, str) else len(value))
    if missing <= 0:
        return plain
    if size > MAX_TEXT:
        raise ScriptValueError("center: the text would be too long")
    # Half of an odd number counts as one more on the right, and as one less on the left.
    odd = missing % 2
    return " " * max(0, missing // 2) + plain + " " * (missing // 2 + odd)


def _replace(value: Any, old: Any, new: Any = UNDEFINED, count: Any = -1) -> Any:
    value = _plain(value)
    if isinstance(old, (int, float)) and not isinstance(old, bool):
        old = text(old)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = text(value)
    if not isinstance(value, str) or not isinstance(old, str):
        return value
    after = "undefined" if is_undefined(new) else "null" if new is None else text(new)
    # An empty text is put between all letters, whatever the count.
    limit = -1 if old == "" else integer(count, -1)
    expected = value.count(old) if limit < 0 else min(limit, value.count(old))
    if len(value) + expected * len(after) > MAX_TEXT:
        raise ScriptValueError("replace: the text would be too long")
    return value.replace(old, after, limit)


def _truncate(value: Any, length: Any = 255, killwords: Any = False, end: Any = "...") -> str:
    plain, size = _letters(value, "truncate"), integer(length, 255) or 255
    if units(plain) <= size:
        return plain
    cut = STRING_METHODS["substring"](plain, 0, size)
    if not truthy(killwords):
        space = plain.rfind(" ", 0, size + 1)
        cut = plain[:space] if space != -1 else cut
    return cut + ("..." if is_nullish(end) else text(end))


def _urlencode(value: Any) -> str:
    safe = "!~*'()"
    if isinstance(value, str):
        return urllib.parse.quote(value, safe=safe, errors="replace")
    pairs = (
        value.items()
        if isinstance(value, Mapping)
        else [(*items(_there(one, "urlencode")), UNDEFINED, UNDEFINED)[:2] for one in items(value)]
    )

    def quoted(part: Any) -> str:
        shown = "null" if part is None else "undefined" if is_undefined(part) else text(part)
        return urllib.parse.quote(shown, safe=safe, errors="replace")

    return "&".join(f"{quoted(k)}={quoted(v)}" for k, v in pairs)


def _urlize(value: Any, length: Any = UNDEFINED, nofollow: Any = False) -> str:
    """Web and mail addresses among the words as links."""
    value = _plain(value)
    if not isinstance(value, str):
        raise ScriptValueError("urlize: the value is not text")
    mark = ' rel="nofollow"' if nofollow is True else ""
    longest = None if is_undefined(length) or number(length) != number(length) else max(0, integer(length))

    def linked(word: str) -> str:
        plain = word[1:] if word[:1] in ("(", "<") else word[4:] if word.startswith("&lt;") else word
        plain = plain[:-1] if plain[-1:] in (".", ",", ")") else plain.removesuffix("&gt;")
        if plain.startswith(("http://", "https://")):
            return f'<a href="{plain}"{mark}>{plain[:longest]}</a>'
        if _MAIL.fullmatch(plain):
            return f'<a href="mailto:{plain}">{plain}</a>'
        if plain.startswith("www.") or _DOMAIN.search(plain):
            return f'<a href="http://{plain}"{mark}>{plain[:longest]}</a>'
        return word

    return "".join(linked(word) for word in re.split(r"(\s+)", value) if word)


def _striptags(value: Any, keep_breaks: Any = False) -> str:
    plain = _letters(value, "striptags")
    while (begin := plain.find("<!--")) >= 0 and (end := plain.find("-->", begin + 4)) >= 0:
        plain = plain[:begin] + plain[end + 3 :]
    plain = re.sub(r"</?[a-zA-Z][^<>]*>", "", plain).strip(WHITESPACE)
    if truthy(keep_breaks):
        lines = [re.sub(r" +", " ", line).strip(" ") for line in plain.replace("\r\n", "\n").split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    return re.sub(r"\s+", " ", plain)


def _indent(value: Any, width: Any = 4, first: Any = False) -> str:
    plain = _letters(value, "indent")
    if not plain:
        return ""
    lines, pad = plain.split("\n"), " " * min(1000, max(0, integer(width, 4) or 4))
    if len(lines) * len(pad) > MAX_TEXT:
        raise ScriptValueError("indent: the text would be too long")
    return "\n".join(pad + line if index or truthy(first) else line for index, line in enumerate(lines))


class SafeText(str):
    """A text that `safe` or `escape` marked: it is not escaped again."""


def _escape(value: Any) -> str:
    if isinstance(value, SafeText):
        return value
    plain = html.escape(text(value)).replace("&#x27;", "&#39;")
    return SafeText(plain.replace("\\", "&#92;"))


def _force_escape(value: Any) -> str:
    return _escape(str(text(value)))


def _trim(value: Any) -> str:
    value = _plain(value)
    if not isinstance(value, str):
        raise ScriptValueError("trim: the value is not text")
    return value.strip(WHITESPACE)


def _breaks(value: Any) -> str:
    value = _plain(value)
    if is_nullish(value):
        return ""
    if not isinstance(value, str):
        raise ScriptValueError("nl2br: the value is not text")
    return re.sub(r"\r\n|\n", "<br />\n", value)


TEXT_FILTERS: dict[str, Callable[..., Any]] = {
    "capitalize": _capitalize,
    "center": _center,
    "escape": _escape,
    "e": _escape,
    "forceescape": _force_escape,
    "indent": _indent,
    "lower": lambda v: _letters(v, "lower").lower(),
    "nl2br": _breaks,
    "replace": _replace,
    "striptags": _striptags,
    "title": _title,
    "trim": _trim,
    "truncate": _truncate,
    "upper": lambda v: _letters(v, "upper").upper(),
    "urlencode": _urlencode,
    "urlize": _urlize,
    "wordcount": lambda v: len(re.findall(r"\w+", _letters(v, "wordcount"), re.ASCII)) or None,
}


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
