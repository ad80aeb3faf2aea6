"""What stands below the rows of a difference: the queries behind both sides, or one cell in full."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len

from tui_eval.guard.text import visible
from tui_eval.model import DataDetails
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.json_lines import parsed, value_lines
from tui_eval.tui.state.text.lines import TAB, Line, Span, in_rows, one_line, text_lines, visible_lines, wrap
from tui_eval.tui.state.text.text_difference import difference

if TYPE_CHECKING:
    from tui_eval.frames.cells import Cell

# -- SQL as coloured lines, by Pygments' lexer; the text itself is left as it is.


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


def sql_blocks(details: DataDetails, rendered: bool = True, queries: Sequence[Block] = ()) -> list[Block]:
    """The queries behind both sides, and the comparison in words.

    Args:
        queries: Both of them side by side, in place of one after the other.
    """
    same = details.reference_sql == details.verification_sql
    sides = (
        [("both", details.reference_sql)]
        if same
        else [("expected", details.reference_sql), ("actual", details.verification_sql)]
    )
    blocks = list(queries) or [
        Block(label, "part", label, partial(sql_lines, sql, rendered=rendered), 0, "role-note")
        for label, sql in sides
        if sql
    ]
    if details.comparison:
        blocks.append(
            Block(
                "words", "part", "in words", partial(text_lines, details.comparison), 0, "role-note", fold=10
            )
        )
    return blocks


def cell_blocks(
    cell: Cell, rendered: bool = True, names: tuple[str, str] = ("expected", "actual")
) -> list[Block]:
    """Both values of a cell in full; texts that are alike with the words that differ marked.

    Args:
        names: What the sides are called.
    """
    expected, actual = cell.expected, cell.actual
    sides: list[tuple[str, str | None, str]] = [(names[0], expected, "muted"), (names[1], actual, "muted")]
    marked: dict[str, list[Line]] = {}
    if expected and actual and not cell.same and set(cell.kinds) == {"text"}:
        marked[names[0]], marked[names[1]] = difference(expected, actual)
    blocks: list[Block] = []
    for label, text, style in sides:
        if text is None:
            continue
        value = parsed(text) if rendered and label not in marked else text
        source = (
            partial(iter, marked[label])
            if label in marked
            else partial(value_lines, value, rendered=rendered)
        )
        blocks.append(Block(label, "part", label, source, 0, style, size=len(text)))
    return blocks


def rows_of(blocks: list[Block], width: int) -> int:
    """How many rows of the screen blocks take at a width, folded ones as they are folded."""
    lines = [line for block in blocks for line in (block.head() if block.fold else block.lines())]
    return sum(len(wrap(line, width, most=40)) for line in lines)


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


def table_lines(tables: Sequence[str], width: int, room: int) -> list[Line]:
    """A database's tables with their columns (`name(column TYPE, …)`), all in as many lines as fit into `room`."""
    shown = tables if len(tables) <= room else tables[: max(room - 1, 1)]
    parts = [one_line(table, _LONGEST).partition("(") for table in shown]
    column = min(max((cell_len(name) for name, _, _ in parts), default=0), width // 3)
    whole = [
        (
            Span(f"{name}{' ' * (column - cell_len(name))}  ", "label"),
            Span(columns.removesuffix(")"), "muted"),
        )
        for name, _, columns in parts
    ]
    needed = [len(wrap(line, width, room + 1)) for line in whole]
    most = next((n for n in range(room, 1, -1) if sum(min(lines, n) for lines in needed) <= room), 1)
    lines = [row for line in whole for row in in_rows(line, width, most)]
    if len(shown) < len(tables) and len(lines) < room:
        lines.append((Span(f"and {len(tables) - len(shown):,} more tables", "muted"),))
    return lines


def place_lines(place: Sequence[str], width: int) -> Iterator[Line]:
    """The line of a query that failed and the caret under it, as the database shows them."""
    shown = [line for text in place for line in visible_lines(text[:_LONGEST])]
    if len(shown) > 1:
        yield from _around(shown[0], shown[1], width)


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
