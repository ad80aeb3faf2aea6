"""Styled text without a screen: spans, lines, wrapping to a width, finding.

A style is a word or several (`"json-key"`, `"failed hit"`) that a widget turns into colours. All
text that becomes a span goes through `text_lines` or `one_line`, the one border where foreign text
is made safe to show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from rich.cells import cell_len

from tui_eval.guard.text import clip, visible
from tui_eval.tui.state.text.fitting import breaks, clusters, reach

TAB = "    "
AT_ONCE = 100_000
"""Characters of a text of which all lines are made at once."""


class Span(NamedTuple):
    """A piece of text of one style."""

    text: str
    style: str = ""


Line = tuple[Span, ...]


class Mark(NamedTuple):
    """A range of characters of a line that gets a further style."""

    start: int
    end: int
    style: str


def one_line(text: object, limit: int = 0) -> str:
    """Foreign text for a place of one line: controls visible, at most `limit` characters."""
    shown = visible(str(text), newlines=False)
    return clip(shown, limit) if limit else shown


def dotted(text: str) -> str:
    """Foreign text on one line, blanks at its ends, which nobody would see, as dots."""
    line = one_line(text)
    bare = line.strip()
    if len(bare) == len(line):
        return line
    before = len(line) - len(line.lstrip()) if bare else len(line)
    return "·" * before + bare + "·" * (len(line) - before - len(bare))


def text_lines(text: str, style: str = "") -> Iterator[Line]:
    """The lines of foreign text, controls made visible, tabs as four blanks; of a long text each is made when it
    is asked for."""
    for line in visible_lines(text):
        yield (Span(line.replace("\t", TAB), style),)


def visible_lines(text: str) -> Iterator[str]:
    """The lines of a text, controls visible."""
    if len(text) <= AT_ONCE:
        yield from visible(text.replace("\r\n", "\n")).split("\n")
        return
    at = 0
    while (end := text.find("\n", at)) >= 0:
        yield visible(text[at : end - (text[at:end].endswith("\r"))])
        at = end + 1
    yield visible(text[at:])


def plain(line: Line) -> str:
    """The text of a line without its styles."""
    return line[0].text if len(line) == 1 else "".join(span.text for span in line)


def width_of(line: Line) -> int:
    """Width in terminal cells."""
    return sum(cell_len(span.text) for span in line)


def line_of(spans: Iterable[Span]) -> Line:
    """The spans that have a text."""
    return tuple(span for span in spans if span.text)


def cut(line: Line, start: int, end: int) -> Line:
    """The characters from `start` to `end` of a line."""
    pieces: list[Span] = []
    at = 0
    for span in line:
        after = at + len(span.text)
        if after > start and at < end:
            pieces.append(Span(span.text[max(start - at, 0) : end - at], span.style))
        at = after
        if at >= end:
            break
    return tuple(pieces)


def marked(line: Line, marks: Iterable[Mark]) -> Line:
    """The line with further styles on ranges of it; later marks come on top."""
    for start, end, style in marks:
        if end <= start:
            continue
        middle = tuple(Span(s.text, f"{s.style} {style}".strip()) for s in cut(line, start, end))
        line = (*cut(line, 0, start), *middle, *cut(line, end, len(plain(line))))
    return line


def wrap(line: Line, width: int, most: int = 0) -> list[tuple[int, int, Line]]:
    """The rows a line takes at a width: the character each begins at, the blanks put before it, and
    what it shows.

    Rows after the first are indented as the line is (of an item of a list, or behind a sign, as its words are; where it
    begins with a span of style `label`, as wide as that is), up to a third of the width. `most`: no more rows than so
    many are made (0: all).
    """
    text = plain(line)
    if len(text) * 2 <= width or cell_len(text) <= width:
        return [(0, 0, line)]
    width = max(width, 2)
    indent = min(len(line[0].text) if line[0].style == "label" else _hanging(text), width // 3)
    rows: list[tuple[int, int, Line]] = []
    piece = _cutter(line)
    for start, end in islice(breaks(text, width, indent), most or None):
        before = indent if rows else 0
        row = piece(start, end)
        rows.append((start, before, (Span(" " * before), *row) if before else row))
    return rows


_BEGINNING = re.compile(r" *(?:(?:[-*•>✗✓!≠⊘–◌●↳]|\d{1,3}[.)]) +(?=\S))?")
"""Blanks, and the bullet, number or sign of an item."""


def _hanging(text: str) -> int:
    """Where the words of a line begin, below which those of its further rows stand."""
    found = _BEGINNING.match(text)
    return found.end() if found is not None else 0


def _cutter(line: Line) -> Callable[[int, int], Line]:
    """`cut` of one line, for pieces one after the other: each span is looked at for its own pieces only."""
    first = at = 0

    def piece(start: int, end: int) -> Line:
        nonlocal first, at
        while first < len(line) and at + len(line[first].text) <= start:
            at += len(line[first].text)
            first += 1
        pieces: list[Span] = []
        here = at
        for index in range(first, len(line)):
            span = line[index]
            if here >= end:
                break
            if here + len(span.text) > start:
                pieces.append(Span(span.text[max(start - here, 0) : end - here], span.style))
            here += len(span.text)
        return tuple(pieces)

    return piece


def fit(line: Line, width: int) -> Line:
    """The line cut to `width` cells, the cut marked with an ellipsis."""
    if width_of(line) <= width:
        return line
    text = plain(line)
    end = reach(text, 0, width - 1)
    return (*cut(line, 0, len(text[:end].rstrip("…")) or end), Span("…", "muted"))


def in_rows(line: Line, width: int, most: int) -> list[Line]:
    """The rows that a line takes at a width; of more than so many the last is cut."""
    rows = wrap(line, width)
    if len(rows) <= most:
        return [row for _, _, row in rows]
    rest = cut(line, rows[most - 1][0], len(plain(line)))
    return [*(row for _, _, row in rows[: most - 1]), fit(rest, width)]


_LETTERS = {
    "✓": "P", "✗": "F", "⊘": "C", "●": "*", "◌": ".", "▎": "|", "─": "-", "│": "|", "┼": "+", "•": "*",
    "·": ".", "›": ">", "→": ">", "←": "<", "…": "~", "≠": "#", "−": "-", "↕": "^", "–": "-", "—": "-",
    "▁": "_", "▂": ".", "▃": "-", "▄": ":", "▅": "=", "▆": "+", "▇": "*", "█": "#", "▲": "^", "↳": ">",
    "≈": "~", "×": "x", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "━": "=", "▌": "|", "▕": "|", "▔": "-", "▸": "+",
    "▾": "-", "★": "*", "⇄": "#", "↻": "@", "″": '"', "‹": "<", "▏": "|", "░": ".", "▓": "#", "↓": "v", "↑": "^",
}  # fmt: skip


def letters(text: str) -> str:
    """The text for a terminal without UTF-8: glyphs as letters, anything else beyond ASCII as `?`,
    as wide as it was."""
    if text.isascii():
        return text
    return "".join(
        one if one.isascii() else _LETTERS.get(one) or (one[0] if one[0].isascii() else "").ljust(cells, "?")
        for one, cells in clusters(text)
    )


def pattern(query: str) -> re.Pattern[str]:
    """What a search looks for: the text itself, ignoring case unless it has a capital letter."""
    return re.compile(re.escape(query), 0 if any(c.isupper() for c in query) else re.IGNORECASE)
