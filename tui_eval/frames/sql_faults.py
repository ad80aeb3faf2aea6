"""Where a query went wrong: the place that the message of DuckDB or PostgreSQL shows, as a line and a column
of the query as written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SHOWN = re.compile(r"^LINE (\d+): (.*)\n( *)\^", re.MULTILINE)
_BEFORE = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_CUT = "..."
_HINTS = ("Candidate bindings", "Did you mean", "Either add", "HINT:")


@dataclass(frozen=True, slots=True)
class SqlFault:
    """What a database said of a query: its `message` on one line, all of it as `detail` (with candidates and a caret
    under the place; empty where it said no more), and the place in the query, both from 1 (0: not known)."""

    message: str
    detail: str = ""
    line: int = 0
    column: int = 0

    @property
    def told(self) -> str:
        """The message with what the database proposes instead, on one line."""
        hint = next((line for line in self.detail.splitlines()[1:] if line.startswith(_HINTS)), "")
        return " ".join(f"{self.message} {hint}".split())

    @property
    def shown_place(self) -> list[str]:
        """The line of the query that the database shows, and under it the caret; nothing where it shows none."""
        lines = self.detail.splitlines()
        at = next((n for n, line in enumerate(lines) if line.startswith("LINE ")), len(lines))
        return lines[at : at + 2]


def fault_of(sql: str, message: str, detail: str = "") -> SqlFault:
    """What an error of a query says, and where in `sql` as it is written. DuckDB shows long lines cut; it counts lines
    from the statement's first word on where it could parse it (up to 2.0.0), else and later with the comments before
    it; blank lines before those it may not have been given."""
    detail = detail.strip("\n").rstrip()
    found = _SHOWN.search(detail)
    if found is None:
        return SqlFault(message, detail)
    number, excerpt = int(found[1]), found[2]
    at = len(found[3]) - len(f"LINE {number}: ")
    core, cut = excerpt.removesuffix(_CUT), 0
    if core.startswith(_CUT):
        core, cut = core.removeprefix(_CUT), len(_CUT)
    lines = sql.split("\n")
    before = _BEFORE.match(sql)
    blank = sql[: len(sql) - len(sql.lstrip())].count("\n")
    shift = before[0].count("\n") if before is not None else 0
    for moved in dict.fromkeys((0, blank, shift) if detail.startswith("Parser") else (shift, blank, 0)):
        line = lines[number - 1 + moved] if number - 1 + moved < len(lines) else ""
        place = line.find(core.strip())
        if core.strip() and place >= 0:
            column = place - (len(core) - len(core.lstrip())) + at - cut + 1
            return SqlFault(message, detail, number + moved, max(column, 1))
    return SqlFault(message, detail)


def fault_place(kept: Mapping[str, Any]) -> str:
    """Where an expected query failed, as an attempt's record has it: `tests/revenue.yml:7:12`, else its line and column
    in the query; empty: not known."""
    if kept.get("file") and kept.get("file_line"):
        column = f":{kept['file_column']}" if kept.get("file_column") else ""
        return f"{kept['file']}:{kept['file_line']}{column}"
    return f"line {kept['line']}, column {kept.get('column') or 1} of the query" if kept.get("line") else ""
