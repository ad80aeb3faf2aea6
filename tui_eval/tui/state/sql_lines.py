"""SQL as coloured lines, by Pygments' lexer; the text itself is left as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui_eval.guard.text import visible
from tui_eval.tui.state.lines import TAB, Line, Span

ONE_LINE = 60
"""A query of one line that is longer (characters) is broken."""
LONGEST = 50_000
"""A longer query (characters) is shown without colours."""


def sql_lines(sql: str, *, rendered: bool = True) -> Iterator[Line]:
    """The lines of a query; controls are visible. `rendered`: one that is written on one long line is broken
    before its clauses."""
    text = visible(sql.replace("\r\n", "\n")).replace("\t", TAB).strip("\n")
    if rendered and "\n" not in text and ONE_LINE < len(text) <= LONGEST:
        text = broken(text)
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


_CLAUSE = re.compile(
    r"(?:UNION|EXCEPT|INTERSECT)(?:\s+ALL)?|(?:(?:LEFT|RIGHT|FULL|INNER|CROSS|NATURAL|ASOF)\s+)*(?:OUTER\s+)?JOIN"
    r"|FROM|WHERE|GROUP\s+BY|HAVING|WINDOW|QUALIFY|ORDER\s+BY|LIMIT|OFFSET|SELECT|WITH",
    re.IGNORECASE,
)
_PIECE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--.*|/\*.*?\*/|[()]|\w+|\s+|.")


def broken(sql: str) -> str:
    """A query of one line with a line for each clause; subqueries are indented. Nothing but blanks changes."""
    if "--" in sql:  # what follows would be taken into the comment, or out of it
        return sql
    lines: list[str] = []
    line, at = "", 0
    subqueries: list[bool] = []
    while at < len(sql):
        clause = (
            _CLAUSE.match(sql, at) if at == 0 or not (sql[at - 1].isalnum() or sql[at - 1] in "_.") else None
        )
        if clause is not None and re.match(r"\w", sql[clause.end() : clause.end() + 1]):
            clause = None
        if clause is not None and line.strip() and all(subqueries):
            lines.append(line.rstrip())
            line = "  " * len(subqueries)
        piece = clause[0] if clause is not None else _PIECE.match(sql, at)[0]  # type: ignore[index]
        if piece == "(":
            subqueries.append(bool(re.match(r"\s*(?:SELECT|WITH)\b", sql[at + 1 :], re.IGNORECASE)))
        elif piece == ")" and subqueries:
            subqueries.pop()
        line += piece
        at += len(piece)
    return "\n".join([*lines, line])


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
