"""Replies in Markdown, lightly: headings, emphasis, code and tables, a line for a line.

Only what helps reading in a terminal. The text of each line stays what it was apart from the marks
themselves, so that a search and an assertion's highlight find it. Nothing is interpreted beyond
that: no links are made, no markup of ours is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len

from tui_eval.tui.state.text.lines import Line, Span, plain, text_lines

_INLINE = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*|(?<![\w*])\*([^*\s][^*\n]*?)\*(?![\w*])")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_BULLET = re.compile(r"(\s*)[-*+]\s+")
_TABLE_ROW = re.compile(r"\s*\|.*\|\s*$")
_TABLE_RULE = re.compile(r"\s*\|?[\s:|-]*-[\s:|-]*$")


def markdown_lines(text: str) -> Iterator[Line]:
    """The lines of a Markdown text with styles `heading`, `strong`, `emphasis`, `code`."""
    in_code = False
    table: list[str] = []
    for (span,) in text_lines(text):
        line = span.text
        if not in_code and _TABLE_ROW.match(line):
            table.append(line)
            continue
        if table:
            yield from _table(table)
            table = []
        if line.lstrip().startswith(("```", "~~~")):
            in_code = not in_code
            yield (Span(line, "muted"),)
        elif in_code:
            yield (Span(line, "code"),)
        else:
            yield _prose(line)
    yield from _table(table)


def _prose(line: str) -> Line:
    heading = _HEADING.fullmatch(line)
    if heading:
        return _inline(heading[2], "heading")
    if line.startswith(">"):
        return (Span("│ ", "muted"), *_inline(line[1:].lstrip(), "emphasis"))
    bullet = _BULLET.match(line)
    if bullet:
        return (Span(bullet[1] + "• ", "muted"), *_inline(line[bullet.end() :]))
    return _inline(line)


def _inline(text: str, style: str = "") -> Line:
    spans: list[Span] = []
    at = 0
    for match in _INLINE.finditer(text):
        if match.start() > at:
            spans.append(Span(text[at : match.start()], style))
        code, strong, emphasis = match.groups()
        word = "code" if code else "strong" if strong else "emphasis"
        spans.append(Span(code or strong or emphasis, f"{style} {word}".strip()))
        at = match.end()
    if at < len(text) or not spans:
        spans.append(Span(text[at:], style))
    return tuple(spans)


def _table(rows: list[str]) -> Iterator[Line]:
    """A pipe table with its columns aligned."""
    if len(rows) < 2 or not _TABLE_RULE.match(rows[1]):
        for row in rows:
            yield _prose(row)
        return
    cells = [[_inline(cell.strip()) for cell in row.strip().strip("|").split("|")] for row in rows]
    columns = max(len(row) for row in cells)
    widths = [
        max((cell_len(plain(row[i])) for k, row in enumerate(cells) if k != 1 and i < len(row)), default=0)
        for i in range(columns)
    ]
    for number, row in enumerate(cells):
        if number == 1:
            yield (Span("─┼─".join("─" * width for width in widths), "muted"),)
            continue
        spans: list[Span] = []
        for index, cell in enumerate(row):
            room = widths[index] - cell_len(plain(cell))
            text = plain(cell)
            right = number > 0 and text.replace(",", "").replace(".", "").lstrip("-$€£").rstrip("%").isdigit()
            if index:
                spans.append(Span(" │ ", "muted"))
            pad = Span(" " * room)
            styled = tuple(Span(s.text, f"{s.style} strong".strip()) for s in cell) if number == 0 else cell
            spans += [pad, *styled] if right else [*styled, pad]
        yield tuple(spans)
