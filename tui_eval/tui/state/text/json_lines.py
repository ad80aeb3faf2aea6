"""JSON values as indented, styled lines, made one by one so that a megabyte costs what is looked at: the first
lines of a long text are found without reading all of it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tui_eval.guard.text import visible
from tui_eval.tui.state.text.lines import Line, Span, text_lines

LONG = 20_000
"""Characters from which on a text is looked at piece by piece."""
PIECES = (4_000, 64_000)
"""Characters of the beginnings that are read before the whole text is."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},":]+|\s+')
_CLOSERS = {"{": "}", "[": "]"}


def long_json_lines(
    text: str, lines_of: Callable[[Any], Iterable[Line]], parsed: Callable[[str], Any]
) -> Iterator[Line]:
    """The lines of a long text that may be JSON, each piece read only when its lines are asked for.

    Args:
        lines_of: Makes the lines of a JSON value.
        parsed: Reads the whole text; gives it back where it is no JSON.

    Raises:
        NotJson: the text is no JSON (as its end shows too late, some lines were given already: how many is reported).
    """
    given = 0
    if (text.lstrip()[:1], text.rstrip()[-1:]) in (("{", "}"), ("[", "]")):
        for most in PIECES:
            head = first_lines(text[:most], lines_of)
            yield from head[given:]
            given = max(given, len(head))
    value = parsed(text)
    if isinstance(value, str):
        raise NotJson(given)
    for number, line in enumerate(lines_of(value)):
        if number >= given:
            yield line


class NotJson(Exception):
    """The text is no JSON after all; `given` lines were made of its beginning."""

    def __init__(self, given: int) -> None:
        super().__init__(given)
        self.given = given


def first_lines(beginning: str, lines_of: Callable[[Any], Iterable[Line]]) -> list[Line]:
    """The lines of a beginning that are the same in the whole text."""
    cut = _completed(beginning)
    if cut is None:
        return []
    completed, depth = cut
    try:
        lines = list(lines_of(json.loads(completed)))
    except (ValueError, RecursionError):
        return []
    # The brackets that were put there, the last value (more may follow in it) and the one before (its comma).
    return lines[: max(len(lines) - depth - 2, 0)]


def beginning(text: str) -> Any:
    """What the beginning of a JSON text holds up to its last comma; None where it is no such beginning."""
    cut = _completed(text)
    if cut is None:
        return None
    try:
        return json.loads(cut[0])
    except (ValueError, RecursionError):
        return None


def _completed(beginning: str) -> tuple[str, int] | None:
    """The text up to its last comma, with the brackets closed that are open there, and how many those are."""
    stack: list[str] = []
    cut: tuple[int, str] | None = None
    at = 0
    while (found := _TOKEN.match(beginning, at)) is not None:
        token = found.group()
        if token in _CLOSERS:
            stack.append(_CLOSERS[token])
        elif token in ("}", "]"):
            if not stack or stack.pop() != token:
                return None
        elif token == "," and stack:
            cut = (at, "".join(reversed(stack)))
        at = found.end()
    return (beginning[: cut[0]] + cut[1], len(cut[1])) if cut is not None else None


INLINE = 64
"""A list or mapping whose text is at most this long stands on one line."""
DEPTH = 60
"""Deeper values are shown as their plain text."""
PARSED = 2_000_000
"""A text longer than this (characters) is not looked at for JSON."""


def parsed(value: Any) -> Any:
    """The value, or what a text holds where it is a JSON list or mapping."""
    if isinstance(value, str) and len(value) <= PARSED and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def value_lines(value: Any, *, rendered: bool = True) -> Iterator[Line]:
    """Any value as lines: text as it is, JSON (also within a text) indented.

    `rendered` shows texts of several lines inside JSON over several lines; otherwise every text is
    a JSON string on one line and a text is not looked at for JSON.
    """
    if rendered and isinstance(value, str) and LONG < len(value) <= PARSED:
        try:
            yield from long_json_lines(value, json_lines, parsed)
            return
        except NotJson as stopped:
            if stopped.given:
                yield (Span("… from here on it is no JSON; as it came:", "note"),)
    elif rendered:
        value = parsed(value)
    if isinstance(value, str):
        yield from text_lines(value)
    elif value is not None:
        yield from json_lines(value, rendered=rendered)


def json_lines(value: Any, *, rendered: bool = True) -> Iterator[Line]:
    """A JSON value as indented lines with the styles `json-key`, `json-text`, `json-number`,
    `json-word` and `json-mark`."""
    yield from _value(value, (), "", 0, rendered)


def json_inline(value: Any, limit: int = INLINE) -> Line | None:
    """A JSON value on one line, or None where that takes more than `limit` characters."""
    spans: list[Span] = []
    return tuple(spans) if _inline(value, spans, limit) >= 0 else None


def short(value: Any, limit: int = 60) -> str:
    """A value in a few characters: JSON on one line, cut at `limit`. Controls are visible. A text alone has its
    backslashes as they are: those of a pattern are not to be counted."""
    if isinstance(value, str):
        said = quoted(value[:limit]).replace("\\\\", "\\")
        return said if max(len(value), len(said)) <= limit else said[: limit - 1] + "…"
    line = json_inline(value, max(limit, 1))
    if line is not None:
        return "".join(span.text for span in line)
    text = str(value) if not isinstance(value, (list, dict)) else dumped(value, limit * 4)
    return visible(text[: limit - 1], newlines=False) + "…"


def dumped(value: Any, limit: int = 0) -> str:
    """Compact JSON text of a value; what JSON cannot hold becomes its text."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError, TypeError):
        text = repr(value)
    return text[:limit] if limit else text


def quoted(text: str) -> str:
    """A text as a JSON string, every control visible."""
    return visible(json.dumps(text, ensure_ascii=False), newlines=False)


def _scalar(value: Any) -> Span:
    if isinstance(value, str):
        return Span(quoted(value), "json-text")
    if value is None or isinstance(value, bool):
        return Span(json.dumps(value), "json-word")
    if isinstance(value, float) and not math.isfinite(value):
        return Span(str(value), "json-number")
    if isinstance(value, (int, float)):
        return Span(str(value) if isinstance(value, int) else json.dumps(value), "json-number")
    return Span(visible(str(value), newlines=False), "json-text")


def _inline(value: Any, spans: list[Span], room: int, depth: int = 0) -> int:
    """Append the value's spans; the characters left, below 0 where they did not suffice."""
    if room < 0 or depth > DEPTH:
        return -1
    if isinstance(value, str) and len(value) > room:
        return -1
    if not isinstance(value, (dict, list, tuple)):
        span = _scalar(value)
        spans.append(span)
        return room - len(span.text)
    keyed = isinstance(value, dict)
    spans.append(Span("{" if keyed else "[", "json-mark"))
    room -= 2
    for index, item in enumerate(value.items() if isinstance(value, dict) else value):
        if index:
            spans.append(Span(", ", "json-mark"))
            room -= 2
        if keyed:
            key, item = item
            if len(str(key)) > room:
                return -1
            spans += [Span(quoted(str(key)), "json-key"), Span(": ", "json-mark")]
            room -= len(spans[-2].text) + 2
        room = _inline(item, spans, room, depth + 1)
        if room < 0:
            return -1
    spans.append(Span("}" if keyed else "]", "json-mark"))
    return room


def _value(value: Any, head: Line, tail: str, depth: int, rendered: bool) -> Iterator[Line]:
    """Lines of one value; `head` stands before its first line, `tail` (a comma) after its last."""
    indent = "  " * depth
    begin: Line = (Span(indent), *head) if indent else head
    end: Line = (Span(tail, "json-mark"),) if tail else ()
    if isinstance(value, str) and rendered and "\n" in value.strip():
        yield (*begin, Span("|", "json-mark"))
        for line in text_lines(value.rstrip("\n"), "json-text"):
            yield (Span(indent + "  "), *line)
        return
    line = json_inline(value) if depth < DEPTH and isinstance(value, (dict, list, tuple)) else None
    if line is not None:
        yield (*begin, *line, *end)
    elif isinstance(value, (dict, list, tuple)) and depth < DEPTH:
        yield from _members(value, begin, end, depth, rendered)
    elif isinstance(value, (dict, list, tuple)):
        yield (*begin, Span(visible(repr(value)[:1000], newlines=False), "json-text"), *end)
    else:
        yield (*begin, _scalar(value), *end)


def _members(value: Any, begin: Line, end: Line, depth: int, rendered: bool) -> Iterator[Line]:
    keyed = isinstance(value, dict)
    yield (*begin, Span("{" if keyed else "[", "json-mark"))
    last = len(value) - 1
    for index, item in enumerate(value.items() if keyed else value):
        head: Line = ()
        if keyed:
            key, item = item
            head = (Span(quoted(str(key)), "json-key"), Span(": ", "json-mark"))
        yield from _value(item, head, "" if index == last else ",", depth + 1, rendered)
    yield (Span("  " * depth), Span("}" if keyed else "]", "json-mark"), *end)
