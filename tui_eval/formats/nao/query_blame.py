"""Why rows are not the expected ones: the query that the agent ran, what it made of its rows, or ties and chance in the
expected SQL. The agent's query is run for that, and what is made of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from tui_eval.assertions.judge_input import JudgeInput, RowsAnswer
from tui_eval.frames.query_words import known_of
from tui_eval.guard.fair_share import in_thread
from tui_eval.model import DataDetails

if TYPE_CHECKING:
    from tui_eval.agent_query import AgentQuery
    from tui_eval.frames.queries import Asking, Conclusion
    from tui_eval.frames.sql import SqlResult

T = TypeVar("T")


async def conclude_from(
    data: DataDetails, answer: RowsAnswer, result: SqlResult | None, settings: Any, evidence: JudgeInput
) -> None:
    """Run the agent's own query and keep which step went wrong; nothing where the record has no query of it."""
    from tui_eval.agent_query import query_behind, rows_recorded, verifies_others
    from tui_eval.frames.queries import (
        as_it_was_given,
        changing_conclusion,
        conclude,
        over_ties,
        recorded_conclusion,
        with_cause,
    )
    from tui_eval.frames.sql_faults import SqlFault, fault_of

    async def tied_with(own: SqlResult | SqlFault | Any) -> Conclusion | None:
        if result is None:
            return None
        asking = over_ties(
            data.reference_sql, result, own, answer.rows, settings, data.columns or None,
            reference=evidence.reference,
        )  # fmt: skip
        return await _told(asking, evidence)

    own = query_behind(evidence.transcript, evidence.replies, answer.sql)
    if own is None:
        found = await tied_with(None)
        if found is not None:
            data.settings["conclusion"] = {"blame": found.blame, "line": found.line}
        return
    changing = changing_conclusion(data.reference_sql)
    if changing is not None:
        data.settings["conclusion"] = {"blame": changing.blame, "line": changing.line, "source": own.source}
        return
    expected: Any = result if result is not None else answer.expected or []
    columns = data.columns or None
    last, knew = own, False
    if own.source == "tool" and result is not None:
        own, knew = await _right_one(own, answer, result, columns, settings, evidence)
    given: SqlResult | list[dict[str, Any]] | SqlFault
    if result is not None and " ".join(own.sql.split()) == " ".join((data.reference_sql or "").split()):
        given = result
    elif evidence.services.agent_sql is None:
        given = SqlFault("no database is configured")
    else:
        try:
            given = await evidence.services.agent_sql(evidence.case.database, own.sql)
        except Exception as problem:
            given = fault_of(own.sql, str(problem), str(getattr(problem, "detail", "")))
    tied = await tied_with(given)
    rows = rows_recorded(evidence.transcript, data, own)

    def concluded() -> Conclusion:
        here = conclude(expected, given, answer.rows, settings, columns, reference=evidence.reference)
        if isinstance(given, SqlFault):  # what cannot be run here gave its rows to the agent
            return recorded_conclusion(data, own.sql, rows, ties_known=True) or here
        return as_it_was_given(
            here, expected, rows, answer.rows, settings, columns, reference=evidence.reference
        )

    found = tied or await in_thread(concluded)
    if result is not None:
        mendable = own.sql if tied is None and not isinstance(given, SqlFault) else None
        asking = with_cause(
            found, data.reference_sql, mendable, result, result.dialect, settings, columns,
            reference=evidence.reference,
        )  # fmt: skip
        found = await _told(asking, evidence) or found
    if tied is None and found.accuses and verifies_others(own, evidence.transcript):
        right = result is not None and await _one_right(result, columns, settings, evidence)
        found = found.of_verification(right=right)
    if knew and found.blame == "query":
        found = replace(found, line=f"{found.line}; another of its queries gives the right ones")
    kept: dict[str, Any] = {"blame": found.blame, "line": found.line, "source": own.source}
    if found.cause:
        kept["cause"] = found.cause
    if found.place:
        kept["place"] = list(found.place)
    if own.sql != last.sql:
        kept["query"] = own.sql
    data.settings["conclusion"] = kept | known_of(own.sql)


async def _told(asking: Asking[T], evidence: JudgeInput) -> T | None:
    """What comes of queries, each of which is run; None where there is nothing to run them."""
    run, rows = evidence.services.agent_sql, None
    if run is None:
        return None

    def following() -> tuple[str | None, T | None]:
        try:
            return asking.send(rows), None
        except StopIteration as end:
            return None, end.value

    while True:
        query, told = await in_thread(following)
        if query is None:
            return told
        try:
            rows = await run(evidence.case.database, query)
        except Exception:
            rows = None  # it hangs on the query around it, or what was made of it cannot be run


async def _gives(
    given: SqlResult, rows: Any, columns: Sequence[str] | None, settings: Any, evidence: JudgeInput
) -> bool:
    """Whether what a query gave is those rows."""
    from tui_eval.frames.queries import gives_expected

    return await in_thread(
        lambda: gives_expected(given, rows, settings, columns, reference=evidence.reference)
    )


_MOST_QUERIES = 8
"""Queries of the agent that are run to find the one behind its answer, the last ones."""


async def _right_one(
    last: AgentQuery,
    answer: RowsAnswer,
    expected: SqlResult,
    columns: Sequence[str] | None,
    settings: Any,
    evidence: JudgeInput,
) -> tuple[AgentQuery, bool]:
    """Of all queries that the agent ran the last one whose rows its answer has, and whether another one gives
    the expected rows; else the last one that does: many look at something else after it. Where none does, the
    last one whose columns are the most of those that are expected."""
    from tui_eval.agent_query import queries_called
    from tui_eval.frames.mended_queries import MENDING_SECONDS

    run, began = evidence.services.agent_sql, time.monotonic()
    asked = list({one.sql: one for one in queries_called(evidence.transcript)}.values())
    if run is None or len(asked) < 2:
        return last, False
    wanted = {name.casefold() for name in columns or expected.columns}
    best, most = last, -1
    right: AgentQuery | None = None
    answered: AgentQuery | None = None

    for one in asked[:_MOST_QUERIES]:
        if time.monotonic() - began > MENDING_SECONDS:
            break
        try:
            given = await run(evidence.case.database, one.sql)
        except Exception:
            continue
        if right is None and await _gives(given, expected, columns, settings, evidence):
            right = one
        if answered is None and answer.rows and await _gives(given, answer.rows, columns, settings, evidence):
            answered = one
        shared = len(wanted & {name.casefold() for name in given.columns})
        if shared > most:
            best, most = one, shared
    if answered is not None:
        return answered, right is not None and right.sql != answered.sql
    return right or best, False


async def _one_right(
    expected: SqlResult, columns: Sequence[str] | None, settings: Any, evidence: JudgeInput
) -> bool:
    """Whether one of the queries that the agent ran gives the expected rows."""
    from tui_eval.agent_query import queries_called
    from tui_eval.frames.mended_queries import MENDING_SECONDS

    run, began = evidence.services.agent_sql, time.monotonic()
    asked = list(dict.fromkeys(one.sql for one in queries_called(evidence.transcript)))
    for sql in asked[:_MOST_QUERIES] if run is not None else ():
        assert run is not None
        if time.monotonic() - began > MENDING_SECONDS:
            break
        try:
            given = await run(evidence.case.database, sql)
        except Exception:
            continue  # what cannot be run here says nothing
        if await _gives(given, expected, columns, settings, evidence):
            return True
    return False
