"""nunjucks' built-in filters, with promptfoo's `load`, on JavaScript's values."""

from __future__ import annotations

import html
import random
import re
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from tui_eval.scripting.nunjucks_list_members import MAX_ITEMS
from tui_eval.scripting.nunjucks_members import member
from tui_eval.scripting.nunjucks_string_members import units
from tui_eval.scripting.nunjucks_values import (
    MAX_TEXT,
    UNDEFINED,
    WHITESPACE,
    ScriptValueError,
    integer,
    is_nullish,
    is_undefined,
    join,
    number,
    parse_json,
    text,
    tidy,
    to_json,
    truthy,
)


def items(value: Any) -> list[Any]:
    """What a filter walks through: a list, the letters of a text, nothing of anything else."""
    if isinstance(value, (list, tuple)):
        return list(value)
    return list(value) if isinstance(value, str) else []


def _default(value: Any, fallback: Any = "", falsy: Any = False) -> Any:
    if truthy(falsy):
        return value if truthy(value) else fallback
    return fallback if is_undefined(value) else value


def _capitalize(value: Any) -> str:
    plain = text(value).lower()
    return plain[:1].upper() + plain[1:]


def _title(value: Any) -> str:
    return " ".join(_capitalize(word) for word in text(value).split(" "))


def _center(value: Any, width: Any = 80) -> str:
    plain, size = text(value), integer(width, 80)
    missing = size - len(plain)
    if missing <= 0:
        return plain
    if size > MAX_TEXT:
        raise ScriptValueError("center: the text would be too long")
    left = missing // 2 - missing % 2
    return " " * max(0, left) + plain + " " * (missing - max(0, left))


def _join(value: Any, separator: Any = "", attribute: Any = None) -> str:
    found = items(value)
    if not is_nullish(attribute):
        found = [member(item, attribute) for item in found]
    return join(found, text(separator))


def _replace(value: Any, old: Any, new: Any = "", count: Any = -1) -> Any:
    if not isinstance(value, str):
        if not isinstance(value, (int, float)):
            return value
        value = text(value)
    before, after, limit = text(old), text(new), integer(count, -1)
    expected = value.count(before) if limit < 0 else min(limit, value.count(before))
    if len(value) + expected * len(after) > MAX_TEXT:
        raise ScriptValueError("replace: the text would be too long")
    return value.replace(before, after, limit)


def _length(value: Any) -> int:
    if isinstance(value, str):
        return units(value)
    return len(value) if isinstance(value, (list, tuple, Mapping)) else 0


def _round(value: Any, precision: Any = 0, method: Any = "common") -> Any:
    factor = 10 ** max(-300, min(300, integer(precision)))
    scaled = number(value) * factor
    if scaled != scaled or scaled in (float("inf"), float("-inf")):
        return scaled
    how = text(method)
    whole = -(-scaled // 1) if how == "ceil" else scaled // 1 if how == "floor" else (scaled + 0.5) // 1
    return tidy(whole / factor)


def _int(value: Any, default: Any = UNDEFINED, base: Any = 10) -> Any:
    plain = text(value).strip(WHITESPACE)
    found = re.match(r"[+-]?(0[xX][0-9a-fA-F]+|\d+)", plain[:400], re.ASCII)
    if not found:
        return default
    digits = found.group()
    return int(digits, 16) if "x" in digits.lower() else int(digits, max(2, min(36, integer(base, 10))))


def _float(value: Any, default: Any = UNDEFINED) -> Any:
    found = re.match(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text(value).strip(WHITESPACE)[:400], re.ASCII)
    return tidy(float(found.group())) if found else default


def _reverse(value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else items(value)[::-1]


def _sort(value: Any, reverse: Any = False, case_sensitive: Any = False, attribute: Any = None) -> list[Any]:
    def key(item: Any) -> Any:
        found = item if is_nullish(attribute) else _attribute(item, text(attribute))
        if isinstance(found, str):
            return (1, 0, found if truthy(case_sensitive) else found.lower())
        return (0, number(found) if isinstance(found, (int, float)) else 0, text(found))

    return sorted(items(value), key=key, reverse=truthy(reverse))


def _attribute(value: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        value = member(value, part)
    return value


def _dictsort(value: Any, case_sensitive: Any = False, by: Any = "key") -> list[Any]:
    if not isinstance(value, Mapping):
        raise ScriptValueError("dictsort: the value must be an object")
    place = 0 if text(by) == "key" else 1
    plain = str if truthy(case_sensitive) else str.lower
    return sorted(([k, v] for k, v in value.items()), key=lambda pair: plain(text(pair[place])))


def _batch(value: Any, size: Any, filler: Any = UNDEFINED) -> list[Any]:
    count, found = max(1, integer(size, 1)), items(value)
    rows = [found[i : i + count] for i in range(0, len(found), count)]
    if rows and not is_nullish(filler):
        _within(count)
        rows[-1].extend([filler] * (count - len(rows[-1])))
    return rows


def _slice(value: Any, count: Any, filler: Any = UNDEFINED) -> list[Any]:
    found, parts = items(value), max(1, integer(count, 1))
    _within(parts)
    size, extra = divmod(len(found), parts)
    result, at = [], 0
    for i in range(parts):
        step = size + (i < extra)
        part = found[at : at + step]
        at += step
        if i >= extra and not is_nullish(filler):
            part.append(filler)
        result.append(part)
    return result


def _within(count: int) -> None:
    if count > MAX_ITEMS:
        raise ScriptValueError("the list would be too long")


def _groupby(value: Any, attribute: Any) -> dict[str, Any]:
    groups: dict[str, Any] = {}
    for item in items(value):
        groups.setdefault(text(_attribute(item, text(attribute))), []).append(item)
    return groups


def _sum(value: Any, attribute: Any = None, start: Any = 0) -> Any:
    found = items(value)
    if truthy(attribute):
        found = [_attribute(item, text(attribute)) for item in found]
    total = number(start)
    for item in found:
        total += number(item)
    return tidy(total)


def _truncate(value: Any, length: Any = 255, killwords: Any = False, end: Any = "...") -> str:
    plain, size = text(value), integer(length, 255)
    if len(plain) <= size:
        return plain
    cut = plain[:size]
    if not truthy(killwords):
        space = plain.rfind(" ", 0, size + 1)
        cut = plain[: space if space != -1 else size]
    return cut + ("..." if is_nullish(end) else text(end))


def _urlencode(value: Any) -> str:
    safe = "!~*'()"
    if isinstance(value, str):
        return urllib.parse.quote(value, safe=safe, errors="replace")
    pairs = (
        value.items()
        if isinstance(value, Mapping)
        else [(p[0], p[1]) for p in items(value) if len(items(p)) == 2]
    )
    return "&".join(
        f"{urllib.parse.quote(text(k), safe=safe, errors='replace')}"
        f"={urllib.parse.quote(text(v), safe=safe, errors='replace')}"
        for k, v in pairs
    )


def _striptags(value: Any, keep_breaks: Any = False) -> str:
    plain = re.sub(r"<!--[^<>]*-->|</?[a-zA-Z][^<>]*>", "", text(value)).strip(WHITESPACE)
    if truthy(keep_breaks):
        lines = [re.sub(r"[ \t]+", " ", line).strip() for line in plain.replace("\r\n", "\n").split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    return re.sub(r"\s+", " ", plain)


def _indent(value: Any, width: Any = 4, first: Any = False) -> str:
    lines, pad = text(value).split("\n"), " " * min(1000, max(0, integer(width, 4)))
    if len(lines) * len(pad) > MAX_TEXT:
        raise ScriptValueError("indent: the text would be too long")
    return "\n".join(pad + line if index or truthy(first) else line for index, line in enumerate(lines))


def _escape(value: Any) -> str:
    plain = html.escape(text(value)).replace("&#x27;", "&#39;").replace("`", "&#96;")
    return plain.replace("\\", "&#92;")


def _select(value: Any, *_: Any) -> list[Any]:
    return [item for item in items(value) if truthy(item)]


def _reject(value: Any, *_: Any) -> list[Any]:
    return [item for item in items(value) if not truthy(item)]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [{"key": k, "value": v} for k, v in value.items()]
    if isinstance(value, (str, list, tuple)):
        return items(value)
    raise ScriptValueError("list: the value is not iterable")


def _first(value: Any) -> Any:
    return member(value, 0)


def _last(value: Any) -> Any:
    found = items(value)
    return found[-1] if found else UNDEFINED


def _random(value: Any) -> Any:
    found = items(value)
    return random.choice(found) if found else UNDEFINED


FILTERS: dict[str, Callable[..., Any]] = {
    "load": parse_json,
    "dump": lambda v, indent=None: UNDEFINED if is_undefined(v) else to_json(v, indent),
    "abs": lambda v: abs(number(v)),
    "batch": _batch,
    "capitalize": _capitalize,
    "center": _center,
    "default": _default,
    "d": _default,
    "dictsort": _dictsort,
    "escape": _escape,
    "e": _escape,
    "first": _first,
    "float": _float,
    "forceescape": _escape,
    "groupby": _groupby,
    "indent": _indent,
    "int": _int,
    "join": _join,
    "last": _last,
    "length": _length,
    "list": _listed,
    "lower": lambda v: text(v).lower(),
    "nl2br": lambda v: re.sub(r"\r\n|\n", "<br />\n", text(v)),
    "random": _random,
    "reject": _reject,
    "rejectattr": lambda v, name: [i for i in items(v) if not truthy(member(i, name))],
    "replace": _replace,
    "reverse": _reverse,
    "round": _round,
    "safe": lambda v: "" if is_nullish(v) else v,
    "select": _select,
    "selectattr": lambda v, name: [i for i in items(v) if truthy(member(i, name))],
    "slice": _slice,
    "sort": _sort,
    "string": text,
    "striptags": _striptags,
    "sum": _sum,
    "title": _title,
    "trim": lambda v: text(v).strip(WHITESPACE),
    "truncate": _truncate,
    "upper": lambda v: text(v).upper(),
    "urlencode": _urlencode,
    "urlize": lambda v, *_: text(v),
    "wordcount": lambda v: len(re.findall(r"\w+", text(v), re.ASCII)) or None,
}
