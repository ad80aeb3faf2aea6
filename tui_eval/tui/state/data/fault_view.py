"""What DuckDB said of a query that failed, as lines of a screen: its words, the place with a caret, its candidates."""

from __future__ import annotations

import re

from tui_eval.tui.state.text.lines import Line, Span, one_line, visible_lines, wrap

_SHOWN = re.compile(r"LINE \d+: ")
_LONGEST = 4_000
_MOST = 12
"""Lines: DuckDB names all forms of a function that exist."""


def fault_view(message: str, detail: str, width: int) -> list[Line]:
    """A database's words of a query, its first line in bold; where it shows a place that is wider than the screen,
    as much around the caret as fits."""
    lines = [line for line in visible_lines(detail[:_LONGEST]) if line.strip()] or [message]
    first = (Span(one_line(lines[0], _LONGEST), "failed"),)
    made: list[Line] = [piece for _, _, piece in wrap(first, width, most=4)]
    at = 1
    while at < len(lines) and len(made) < _MOST:
        head, caret = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
        if _SHOWN.match(head) and caret.strip().startswith("^"):
            made += _around(head, caret, width)
            at += 2
            continue
        made += [piece for _, _, piece in wrap((Span(head.replace("\t", "  "), "muted"),), width, most=3)]
        at += 1
    return made


def _around(head: str, caret: str, width: int) -> list[Line]:
    """The line that failed and the caret under it, both cut to the same window."""
    label = _SHOWN.match(head)
    before = label.end() if label is not None else 0
    text, mark = head[before:], caret[before:].rstrip()
    room = max(width - before, 8)
    start = len(mark) - len(mark.lstrip())
    cut = max(start - room // 2, 0) if len(text) > room else 0
    mark = mark[cut : cut + room]
    return [
        (Span(head[:before], "muted"), Span(text[cut : cut + room])),
        (Span(" " * before), Span(mark, "failed")),
    ]
