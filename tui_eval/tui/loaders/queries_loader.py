"""The queries of a case, the agent's and those that a person tries, and the rows that they give in the case's database;
called in a thread.

A query is run as expected SQL is: read-only, in the process for SQL, with its limits.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tui_eval.agent_query import agent_query, queries_run, rows_given, verifies_others
from tui_eval.config.project import Config, ConfigError, DatabaseSpec, case_database
from tui_eval.frames.sql_faults import SqlFault, fault_of
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Attempt, Case
from tui_eval.tui.state.data.data_view import DataView, Sides, settings_of, sides_of
from tui_eval.tui.state.data.data_words import diagnosis_lines
from tui_eval.tui.state.data.queries_view import Queries
from tui_eval.tui.state.text.lines import Line

if TYPE_CHECKING:
    from tui_eval.config.project import DatabaseSpec
    from tui_eval.frames.databases import SqlResult
    from tui_eval.frames.queries import Asking, Conclusion

T = TypeVar("T")

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

    before = time.monotonic()
    try:
        result = execute(spec, sql, timeout=SECONDS, cancel=cancel)
    except (SqlError, OSError) as problem:
        fault = fault_of(sql, str(problem), str(getattr(problem, "detail", "")))
        return TriedQuery(sql, time.monotonic() - before, fault=fault)
    took = time.monotonic() - before
    return TriedQuery(sql, took, result, DataView(alone(result)))


def tables(spec: DatabaseSpec) -> list[str]:
    """The tables that a query may name, `name(column TYPE, …)`; none where the database does not say: a query will."""
    from tui_eval.frames.sql import SqlError, schema_text

    try:
        return schema_text(spec).splitlines()
    except (SqlError, OSError):
        return []


def against_expected(place: QueryPlace, query: TriedQuery) -> tuple[DataView, list[Line]] | str:
    """The rows of a query against those that are expected of the attempt, by the rules of its case, and what they
    have in common; or why they cannot be compared."""
    details = place.attempt.data if place.attempt is not None else None
    if details is None or details.expected is None:
        return "there are no expected rows to compare with: run the case"
    from tui_eval.frames.difference import align
    from tui_eval.frames.query_words import joins_rows, limits_rows

    found = query.result
    assert found is not None
    wanted, _, lost = sides_of(details, place.folder)
    if "expected" in lost and lost["expected"] > len(wanted):
        return f"only the first {len(wanted):,} of {lost['expected']:,} expected rows are kept"
    kinds: Any = details.settings.get("types")
    types = {str(name): str(kind) for name, kind in kinds.items()} if isinstance(kinds, dict) else {}
    made = align(wanted, found, settings_of(details), details.columns or None, types)
    made.limited = limits_rows(details.reference_sql), limits_rows(query.sql)
    made.own_query = "joinless" if joins_rows(query.sql) is False else ""
    view = DataView(made, [name for name in found.columns if name not in made.columns])
    return view, diagnosis_lines(view)


@dataclass(frozen=True, slots=True)
class Asked:
    """An attempt with rows: its case as the suite has it, the run's folder, and what is configured (None: nothing)."""

    attempt: Attempt
    case: Case | None = None
    folder: Path | None = None
    config: Config | None = None
    trust: Trust | None = None


def queries_of(asked: Asked) -> Queries | None:
    """Both queries, formatted alike; None where the record has none of the agent's."""
    own = agent_query(asked.attempt)
    if own is None:
        return None
    expected = (asked.attempt.data.reference_sql if asked.attempt.data is not None else None) or ""
    if not expected.strip():
        return Queries("", own)
    from tui_eval.frames.queries import beside

    return Queries(expected, own, beside(expected, own.sql, _dialect(asked)))


def concluded_from(
    asked: Asked, queries: Queries, cancel: threading.Event, sides: Sides | None = None
) -> Conclusion:
    """Run the agent's query, and say where the answer went wrong. Blocks as long as queries may take; setting `cancel`
    interrupts it.

    Args:
        sides: Both sides, where they were read already: frames are large.

    The expected query is run beside it: where it gives other rows than in the run, the database is another by now, and
    nothing can be said of the agent's.
    """
    from tui_eval.frames.queries import (
        NOT_RUN,
        Conclusion,
        as_it_was_given,
        changing_conclusion,
        conclude,
        kept_conclusion,
        made_of,
        over_ties,
        with_cause,
    )

    details = asked.attempt.data
    if details is None or details.expected is None:
        return Conclusion("unknown", "there are no expected rows to compare the agent's query with")
    if (changing := changing_conclusion(details.reference_sql)) is not None:
        return changing
    if (kept := kept_conclusion(details)) is not None and kept.settled:
        return kept  # as the run and every report say it; the database may be another by now
    spec = _database(asked)
    if isinstance(spec, str):
        return _recorded(asked.attempt, queries) or Conclusion("unknown", f"{NOT_RUN}{spec}")
    wanted, given, lost = sides if sides is not None else sides_of(details, asked.folder)
    if lost:
        return Conclusion("unknown", "the agent's query is not run: the run has kept only the first rows")
    settings, columns = settings_of(details), details.columns or None
    expected: Any = wanted
    if queries.expected:
        expected = _rows(spec, queries.expected, cancel)
        if isinstance(expected, SqlFault):
            why = expected.told
            return Conclusion(
                "unknown", f"the expected query cannot be run here: {why}", place=expected.shown_place
            )
        if not _as_then(wanted, expected, settings, columns):
            words = (
                "the expected query gives other rows here than in this run: the database has changed since"
            )
            return Conclusion("unknown", words)
        if settings.ordered:
            expected = _placed(spec, queries.expected, expected, cancel)
    own = expected if queries.same else _rows(spec, queries.own.sql, cancel)
    if isinstance(own, SqlFault) and (told := _recorded(asked.attempt, queries)) is not None:
        return told  # as every report says it
    reference = details.settings.get("compat") == "reference"
    if queries.expected:
        asking = over_ties(queries.expected, expected, own, given, settings, columns, reference=reference)
        if (tied := _told(asking, spec, cancel)) is not None:
            return tied
    found = conclude(expected, own, given, settings, columns, reference=reference)
    if not isinstance(own, SqlFault):
        recorded = rows_given(asked.attempt, queries.own)
        found = as_it_was_given(found, expected, recorded, given, settings, columns, reference=reference)
    if found.blame == "lucky" and not isinstance(own, SqlFault):
        several = queries_run(asked.attempt) > 1
        if several or made_of(own, expected, found.renamed, settings, columns):
            return Conclusion("unknown", "")  # the answer may have been worked out from what was asked for
    if queries.expected:
        dialect = _dialect(asked) if isinstance(own, SqlFault) else own.dialect
        asking = with_cause(
            found,
            queries.expected,
            queries.own.sql,
            expected,
            dialect,
            settings,
            columns,
            reference=reference,
        )
        found = _told(asking, spec, cancel)
    if found.accuses and verifies_others(queries.own, asked.attempt.transcript):
        return found.of_verification(right=False)
    return found


def _placed(spec: DatabaseSpec, sql: str, expected: SqlResult, cancel: threading.Event) -> SqlResult:
    """Expected rows with their places in an order that their columns do not say."""
    from tui_eval.frames.tied_rows import query_of_places, with_places

    asked = query_of_places(sql, expected, expected.dialect)
    given = _rows(spec, asked, cancel) if asked is not None else None
    return expected if given is None or isinstance(given, SqlFault) else with_places(expected, given)


def _told(asking: Asking[T], spec: DatabaseSpec, cancel: threading.Event) -> T:
    """What comes of queries, each of which is run."""
    given: SqlResult | None = None
    try:
        while True:
            rows = _rows(spec, asking.send(given), cancel)
            given = None if isinstance(rows, SqlFault) else rows
    except StopIteration as end:
        return end.value


def _recorded(attempt: Attempt, queries: Queries) -> Conclusion | None:
    """What was concluded when the answer was judged, or what its record says; None: nothing."""
    from tui_eval.frames.queries import recorded_conclusion

    assert attempt.data is not None
    rows = rows_given(attempt, queries.own)
    found = recorded_conclusion(attempt.data, queries.own.sql, rows)
    return found if found is not None and found.blame != "unknown" else None


def _as_then(wanted: Any, expected: SqlResult, settings: Any, columns: Any) -> bool:
    """Whether the rows that were expected in a run are those that its query gives now."""
    from tui_eval.frames.compare import compare

    unordered = replace(settings, ordered=False)  # rows that tie come in any order
    return compare(wanted, expected, unordered, columns).passed is True


def _database(asked: Asked) -> DatabaseSpec | str:
    """The case's database, or why there is none."""
    return QueryPlace(asked.case, asked.config, asked.trust).database()


def _dialect(asked: Asked) -> str:
    spec = _database(asked)
    return spec.type if not isinstance(spec, str) and spec.type in ("postgres", "sqlite") else "duckdb"


def _rows(spec: DatabaseSpec, sql: str, cancel: threading.Event) -> SqlResult | SqlFault:
    """What a query gives, or why it gives nothing."""
    from tui_eval.frames.sql import SqlError, execute

    try:
        return execute(spec, sql, timeout=SECONDS, cancel=cancel)
    except (SqlError, OSError) as problem:
        return fault_of(sql, str(problem), str(getattr(problem, "detail", "")))
