"""The cases of a plan that no part of it has: a merged run holds them as rows that have not run, so that whatever
counts or lists cases says that they are missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tui_eval.model import Case
from tui_eval.store.encoding import pack
from tui_eval.store.imported.results_entries import FROM_FILE, UNNAMED
from tui_eval.store.pending import storable_rows
from tui_eval.store.schema import StoredCase

if TYPE_CHECKING:
    from tui_eval.store.merging import Whole


class MissingCase(NamedTuple):
    """A case with one agent and model, as far as it is known."""

    case: Case
    agent: str
    model: str | None
    attempts: int
    required: int


def is_only_named(case: StoredCase) -> bool:
    """Whether a run knows a case from a results file, or by its name, only: nobody can be asked it from here."""
    return case.content_hash.startswith(FROM_FILE)


def missing_cases(whole: Whole) -> list[MissingCase]:
    """What no part has. Where the parts know its ids, in the columns in which the other cases of its suite were
    asked; else as many as are missing, by their number."""
    rows = [case for part in whole.parts for case in part.cases]
    known = {row.case_id: row for row in rows}
    found: list[MissingCase] = []
    names = [name for name in whole.missing_names if name not in known]
    for case_id in names:
        suite = case_id.partition("::")[0]
        found += _columns(case_id, suite, rows)
    for number in range(1, whole.missing - len(names) + 1):
        numbers = ", ".join(map(str, whole.missing_shards))
        place = f"shard{'s' * (len(whole.missing_shards) > 1)} {numbers}" if numbers else "no shard"
        name = f"case {number} of {whole.missing:,} that no part has"
        found += _columns(f"{place}::{name}", place, _alike(rows), name)
    return found


def _alike(rows: Sequence[StoredCase]) -> Sequence[StoredCase]:
    """A row for each column that a case of which only the number is known has, too: those that all suites were asked
    in. One row where these differ, or where each column is a case of its own."""
    suites: dict[str, dict[tuple[str, str | None], StoredCase]] = {}
    for row in rows:
        suites.setdefault(row.suite, {}).setdefault((row.agent, row.model), row)
    columns = [own.keys() for own in suites.values()]
    if _in_columns(rows) or any(own != columns[0] for own in columns):
        return rows[:1]
    return list(next(iter(suites.values()), {}).values())


def _in_columns(rows: Sequence[StoredCase]) -> bool:
    """Whether tests stand in columns: the agent is a part of the id then."""
    return any(f"::{row.agent}::" in row.case_id for row in rows)


def _columns(case_id: str, suite: str, rows: Sequence[StoredCase], name: str = "") -> list[MissingCase]:
    like = [row for row in rows if row.suite == suite]
    given = like or [row for row in rows if row.suite.rpartition(".")[2] == suite.rpartition(".")[2]] or rows
    kind = given[0].format if given else UNNAMED
    in_columns = _in_columns(given)
    rest = case_id.partition("::")[2] or case_id
    numbered = bool(name)
    if not name:
        name = rest.rsplit("::", 2)[0] if in_columns else rest
    columns = {(row.agent, row.model): (row.attempts, row.required) for row in given}
    if in_columns:
        own = {column: counts for column, counts in columns.items() if f"::{column[0]}::" in case_id}
        columns = own or columns
    if not like and not numbered and len(columns) > 1:
        columns = {("", None): next(iter(columns.values()))}
    case = Case(case_id, name, suite, kind, content_hash=f"{FROM_FILE}missing")
    return [
        MissingCase(case, *column, *counts) for column, counts in (columns or {("", None): (1, 1)}).items()
    ]


def write_missing(
    connection: sqlite3.Connection, missing: Iterable[MissingCase], case_ref: int, attempt_ref: int
) -> None:
    """Write them behind the rows with these ids, the last ones that there are.

    Raises:
        sqlite3.Error: the disk refuses.
    """
    for one in missing:
        case_ref += 1
        row = (
            case_ref, one.case.case_id, one.case.suite, one.case.name, one.case.format, one.agent, one.model,
            one.case.content_hash, one.attempts, one.required, pack(one.case), "",
        )  # fmt: skip
        connection.execute(f"INSERT INTO cases VALUES ({','.join('?' * 12)})", storable_rows([row])[0])
        for number in range(1, one.attempts + 1):
            attempt_ref += 1
            connection.execute(
                "INSERT INTO attempts (id, case_ref, attempt, state, changed) VALUES (?, ?, ?, 'waiting', ?)",
                (attempt_ref, case_ref, number, attempt_ref),
            )
