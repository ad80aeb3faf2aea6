"""nunjucks' built-in filters of texts, on JavaScript's values."""

from __future__ import annotations

import html
import re
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

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
    number,
    text,
    truthy,
)
from tui_eval.scripting.nunjucks_string_members import STRING_METHODS, units

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
        else [(p[0], p[1]) for p in items(value) if len(items(p)) == 2]
    )

    def quoted(part: Any) -> str:
        return urllib.parse.quote("null" if part is None else text(part), safe=safe, errors="replace")

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
