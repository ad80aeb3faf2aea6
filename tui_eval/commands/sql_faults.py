"""Where in a file an expected query is faulty, and what in a good one makes its answer change by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

_PLACE = re.compile(r"^LINE (\d+): (.*)$")
_ELIDED = "..."
_BEFORE = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
"""White space and comments before a statement."""
_UNPARSED = "Parser Error"
_CHANGING = re.compile(
    r"\blimit\b|\bcurrent_(date|time|timestamp)\b|\blocaltime|\b(now|today|random|get_current_timestamp)\s*\(",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"\bcurrent_(?:date|time|timestamp)\b|\blocaltime\w*|\b(?:now|today|get_current_timestamp)\s*\(",
    re.IGNORECASE,
)
_LIMIT = "LIMIT without ORDER BY: which rows come is left to the database"
_NOW = "{} changes what is expected from day to day"
_RANDOM = "random() changes what is expected from run to run"


def shown(detail: str) -> str:
    """A database's error without its first line: the candidates, and the line with its caret."""
    lines = detail.strip().splitlines()[1:]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def place_in_query(detail: str, sql: str) -> tuple[int, int] | None:
    """Line and column (from 1) that a database's error points at in a query; None where it does not.

    DuckDB writes `LINE 2: …` and a caret below; a long line is cut (`...`) around the place.
    """
    lines, query = detail.splitlines(), sql.splitlines()
    before = _BEFORE.match(sql)
    leading = sql.count("\n", 0, before.end()) if before else 0
    for line, caret in pairwise(lines):
        found = _PLACE.match(line)
        if found is None or not caret.strip() or caret.strip(" ^"):
            continue
        column = len(caret) - len(caret.lstrip()) - (len(line) - len(found[2]))
        elided = found[2].startswith(_ELIDED)
        piece = found[2].removeprefix(_ELIDED).removesuffix(_ELIDED) if elided else found[2]
        piece = piece.removesuffix(_ELIDED)
        # Lines before the statement, comments too, are counted where it could not be parsed, else not.
        shifts = (0, leading) if detail.lstrip().startswith(_UNPARSED) else (leading, 0)
        for row in (int(found[1]) + shift for shift in shifts):
            start = query[row - 1].find(piece) if row <= len(query) else -1
            if start >= 0 and column >= 0:
                return row, start + column - (len(_ELIDED) if elided else 0) + 1
    return None


def line_in_file(file: Path, key_line: int, sql: str, row: int) -> int:
    """The line of the YAML file on which line `row` of a query stands whose key is on `key_line`; that of the key
    where the query does not stand there line by line (folded, escaped)."""
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return key_line
    at = key_line + row
    block = 0 < key_line <= len(lines) and re.search(r"[:\s]\|[-+0-9]*\s*(#.*)?$", lines[key_line - 1])
    wanted = sql.splitlines()[row - 1].rstrip()
    return at if block and at <= len(lines) and lines[at - 1].rstrip().endswith(wanted) else key_line


def changing(sql: str) -> Iterator[str]:
    """What of a query gives another answer tomorrow, or another one each time."""
    if not _CHANGING.search(sql):
        return
    try:
        import sqlglot
        from sqlglot import expressions as node

        tree = sqlglot.parse_one(sql, read="duckdb")
    except Exception:
        return  # what is wrong with it is said where it is executed
    for query in tree.find_all(node.Query):
        if query.args.get("limit") is None or query.args.get("order") is not None:
            continue
        if not _at_most_one_row(query):
            yield _LIMIT
            break
    clocks = (node.CurrentTimestamp, node.CurrentDate, node.CurrentTime, node.CurrentDatetime)
    functions = {call.name.lower() for call in tree.find_all(node.Anonymous)}
    if tree.find(*clocks) is not None or functions & {"now", "today", "get_current_timestamp", "localtime"}:
        word = _CLOCK.search(sql)
        yield _NOW.format(re.sub(r"\s*\($", "()", word[0]) if word else "the time of day")
    if tree.find(node.Rand) is not None or "random" in functions:
        yield _RANDOM


def _at_most_one_row(query: object) -> bool:
    """Whether a query has one row anyway: aggregates without groups, or LIMIT 0."""
    from sqlglot import expressions as node

    if not isinstance(query, node.Select) or query.args.get("group") is not None:
        return False
    return bool(query.expressions) and all(
        one.find(node.AggFunc) is not None and one.find(node.Window) is None for one in query.expressions
    )
