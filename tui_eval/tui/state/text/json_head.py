"""The first lines of a long JSON text without reading all of it: most results are looked at folded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tui_eval.tui.state.text.lines import Line

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
        NotJson: the text is no JSON (as its end shows too late, some lines were given already: how many is told).
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
