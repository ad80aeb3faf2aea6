"""Where a reply stops being SQL, as a parser of that database sees it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

from tui_eval.model import Verdict
from tui_eval.tui.state.text.lines import Line, Mark, Span, marked, one_line

LONGEST = 20_000
"""Characters of a statement that are parsed again."""
_DIALECTS = {
    "mariadb": "mysql",
    "postgresql": "postgres",
    "transactsql": "tsql",
    "db2": "",
    "flinksql": "",
    "noql": "",
}
_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*(?:sql)?[ \t]*\n(.*?)^ {0,3}\1[`~]*[ \t]*$", re.DOTALL | re.MULTILINE | re.IGNORECASE)  # fmt: skip
AROUND = 30


def sql_explained(verdict: Verdict, text: str) -> Iterator[Line]:
    """The statement that is none, with the place; nothing where a parser finds nothing wrong with it. Imports
    sqlglot: call it in a thread."""
    if verdict.passed is not False or verdict.type.startswith("not-") or "unauthorized" in verdict.reason:
        return
    expected = verdict.expected if isinstance(verdict.expected, dict) else {}
    database = str(expected.get("databaseType") or "MySQL").lower()
    blocks = [found.group(2).strip() for found in _FENCED.finditer(text[:LONGEST])]
    if verdict.type == "contains-sql":
        words = (
            f"{len(blocks)} fenced block{'s' * (len(blocks) != 1)} tried"
            if blocks
            else "no fenced SQL; the whole reply was tried"
        )
        yield (Span(words, "muted"),)
    elif blocks:
        yield (
            Span(
                "the whole reply must be SQL: here it stands in a fenced block, which contains-sql takes",
                "note",
            ),
        )
        return
    for statement in (blocks or [text[:LONGEST]])[:2]:
        place = _fault(statement, _DIALECTS.get(database, database))
        if place is not None:
            yield from _shown(statement, *place)
        else:
            yield (Span("tried   ", "label"), Span(one_line(" ".join(statement.split()), 200)))


def _fault(statement: str, dialect: str) -> tuple[int, int, str] | None:
    """Line and column (from 1) and what is wrong there."""
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        found: list[Any] = sqlglot.parse(statement, read=dialect or None)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        return int(first.get("line") or 1), int(first.get("col") or 1), str(first.get("description") or "")
    except (SqlglotError, RecursionError, ValueError) as error:
        return 1, 1, str(error).split("\n")[0]
    kinds = [type(one).__name__ for one in found if one is not None]
    if any(kind in ("Alias", "Column", "Command") for kind in kinds):
        word = statement.split()[0] if statement.split() else ""
        return 1, max(len(word), 1), f"{word} begins no statement"
    return None


def _shown(statement: str, line: int, column: int, words: str) -> Iterator[Line]:
    text = (statement.split("\n")[line - 1 : line] or [""])[0]
    start = max(column - 1 - AROUND, 0)
    before = "…" if start else ""
    shown = one_line(text[start : column + AROUND])
    yield (Span(f"line {line}, column {column}: {one_line(words, 120)}", "failed"),)
    if shown.strip():
        at = 2 + len(before) + column - 1 - start
        yield marked((Span(f"  {before}{shown}"),), [Mark(at, at + 1, "hit-forbidden")])
