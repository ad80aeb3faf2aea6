"""SQL as coloured lines, by Pygments' lexer; the text itself is left as it is."""

from __future__ import annotations

from collections.abc import Iterator

from tui_eval.guard.text import visible
from tui_eval.tui.state.lines import TAB, Line, Span

LONGEST = 50_000
"""A longer query (characters) is shown without colours."""


def sql_lines(sql: str) -> Iterator[Line]:
    """The lines of a query; controls are visible."""
    text = visible(sql.replace("\r\n", "\n")).replace("\t", TAB).strip("\n")
    if len(text) > LONGEST:
        for line in text.split("\n"):
            yield (Span(line),)
        return
    from pygments.lexers.sql import SqlLexer

    spans: list[Span] = []
    for token, piece in SqlLexer(stripnl=False, ensurenl=False).get_tokens(text):
        style = _style(str(token))
        for number, part in enumerate(piece.split("\n")):
            if number:
                yield tuple(spans)
                spans = []
            if part:
                spans.append(Span(part, style))
    yield tuple(spans)


def _style(token: str) -> str:
    for word, style in (
        ("Keyword", "json-key"),
        ("String", "json-text"),
        ("Number", "json-number"),
        ("Comment", "muted"),
    ):
        if word in token:
            return style
    return ""
