"""A query that a person tries on a case's database, as its expected SQL is run: read-only, in the process for SQL, with
its limits. Called in a thread."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.config.project import Config, ConfigError, DatabaseSpec, case_database
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Attempt, Case
from tui_eval.tui.state.data.data_diagnosis import diagnosis_lines
from tui_eval.tui.state.data.data_view import DataView, settings_of, sides_of
from tui_eval.tui.state.text.lines import Line

if TYPE_CHECKING:
    from tui_eval.frames.sql_faults import SqlFault
    from tui_eval.frames.sql_result import SqlResult

SECONDS = 30.0
"""As long as expected SQL may take in a run."""


@dataclass(frozen=True, slots=True)
class QueryPlace:
    """Where queries are tried: a case, what is configured (None: nothing), what is trusted; and the attempt whose
    rows they may be compared with, with its run's folder."""

    case: Case | None = None
    config: Config | None = None
    trust: Trust | None = None
    attempt: Attempt | None = None
    folder: Path | None = None

    def database(self) -> DatabaseSpec | str:
        """The case's database, or why there is none."""
        if self.config is None or self.case is None:
            return "no project with a database is open"
        try:
            return case_database(self.config, self.case.database, self.case.suite, self.trust or Trust())
        except NeedsTrust as problem:
            return f"its database needs trust: {problem}"
        except (ConfigError, OSError) as problem:
            return str(problem)


@dataclass(frozen=True, slots=True)
class TriedQuery:
    """What came of a query: its rows as a table of their own, or the `fault`; `seconds` it took."""

    sql: str
    seconds: float
    result: SqlResult | None = None
    view: DataView | None = None
    fault: SqlFault | None = None


def tried(spec: DatabaseSpec, sql: str, cancel: threading.Event) -> TriedQuery:
    """Run a query; setting `cancel` ends it at once. What goes wrong is in the answer."""
    from tui_eval.frames.difference import alone
    from tui_eval.frames.sql import SqlError, execute
    from tui_eval.frames.sql_faults import fault_of

    before = time.monotonic()
    try:
        result = execute(spec, sql, timeout=SECONDS, cancel=cancel)
    except (SqlError, OSError) as problem:
        fault = fault_of(sql, str(problem), str(getattr(problem, "detail", "")))
        return TriedQuery(sql, time.monotonic() - before, fault=fault)
    took = time.monotonic() - before
    return TriedQuery(sql, took, result, DataView(alone(result)))


def against_expected(place: QueryPlace, found: SqlResult) -> tuple[DataView, list[Line]] | str:
    """The rows of a query against those that are expected of the attempt, by the rules of its case, and what they
    have in common; or why they cannot be compared."""
    details = place.attempt.data if place.attempt is not None else None
    if details is None or details.expected is None:
        return "there are no expected rows to compare with: run the case"
    from tui_eval.frames.difference import align

    wanted, _, lost = sides_of(details, place.folder)
    if "expected" in lost and lost["expected"] > len(wanted):
        return f"only the first {len(wanted):,} of {lost['expected']:,} expected rows are kept"
    kinds: Any = details.settings.get("types")
    types = {str(name): str(kind) for name, kind in kinds.items()} if isinstance(kinds, dict) else {}
    made = align(wanted, found, settings_of(details), details.columns or None, types)
    view = DataView(made, [name for name in found.columns if name not in made.columns])
    return view, diagnosis_lines(view)
