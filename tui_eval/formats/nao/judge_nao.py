"""Judging nao tests: `tool_call` assertions and the rows of the expected SQL.

Matching and messages of `tool_call` and the way messages join are nao-core 0.3.29's (formats/nao.md
section 2); rows are compared by `tui_eval.frames`, in the documented or the reference's way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput, Judgement, RowsAnswer
from tui_eval.assertions.judging import error_verdict, verdict_of
from tui_eval.causes import wrong_query
from tui_eval.frames.difference import know_queries
from tui_eval.frames.sql_faults import fault_place
from tui_eval.guard.fair_share import in_thread
from tui_eval.guard.paths import read_words
from tui_eval.model import NO_VERIFICATION, Assertion, DataDetails, Evidence, Problem, Verdict

if TYPE_CHECKING:
    from tui_eval.frames.compare import FrameComparison
    from tui_eval.frames.comparison_rules import ComparisonSettings
    from tui_eval.frames.sql import SqlResult


DETAIL_ROWS = 1000
DIAGNOSED_CELLS = 400_000
"""Cells of both sides up to which a verdict says what the rows that differ have in common, and not only in what."""


async def judge(assertion: Assertion, evidence: JudgeInput, judgement: Judgement) -> Verdict:
    """Judge one assertion of a nao test and bring the judgement's message up to date.

    What cannot be judged is an error verdict; its reason joins the message like any other.
    """
    if assertion.type == "tool_call":
        verdict, message = _judge_tool_call(assertion, evidence)
    elif assertion.type == "sql":
        verdict, message = await _judge_sql(assertion, evidence, judgement)
    else:
        message = f"unknown nao assertion type {assertion.type!r}; supported: tool_call"
        verdict = error_verdict(assertion, message, [seen.rule("unknown-type", assertion.type)])
    judgement.message = join_messages([judgement.message, message])
    return verdict


async def before_asking(evidence: JudgeInput) -> Judgement | None:
    """The judgement of a test whose expected SQL cannot be run, so that nobody is paid for an answer that is
    compared with nothing, or of one whose `comparison` cannot be read; None where it can be judged, or where
    the agent's own backend may bring the rows that are expected."""
    if any(_keeps_from_judging(problem, evidence) for problem in evidence.case.problems):
        return Judgement(outcome="error", score=0.0)
    services = evidence.services
    assertion = next((one for one in evidence.case.assertions if one.type == "sql"), None)
    if assertion is None or not isinstance(assertion.value, str):
        return None
    if services.backend_may_verify and (evidence.reference or services.run_sql is None):
        return None
    details = DataDetails(reference_sql=assertion.value)
    judgement = Judgement(outcome="error", score=0.0, data=details)
    if services.run_sql is None or services.try_sql is None:
        judgement.message = await _why_no_database(evidence)
        details.settings["not_asked"] = True
        told = [seen.rule("no-database", judgement.message)]
        judgement.verdicts = [error_verdict(assertion, judgement.message, told)]
        return judgement
    try:
        await services.try_sql(evidence.case.database, assertion.value)
    except Exception as problem:
        if services.backend_may_verify and type(problem).__name__ == "ConfigError":
            return None
        verdict, judgement.message = await _query_failed(assertion, evidence, judgement, problem)
        judgement.verdicts = [verdict]
        details.settings["not_asked"] = True
        return judgement
    return None


def _keeps_from_judging(problem: Problem, evidence: JudgeInput) -> bool:
    """Whether it makes an error of the case, whatever is answered: how its rows are compared cannot be read."""
    passed_over = evidence.reference and problem.tool == "ignores"
    return problem.level == "error" and problem.key.partition(".")[0] == "comparison" and not passed_over


def join_messages(parts: list[str]) -> str:
    """Messages in order, empty ones dropped, joined as nao joins them."""
    return "; ".join(part for part in parts if part)


def _judge_tool_call(assertion: Assertion, evidence: JudgeInput) -> tuple[Verdict, str]:
    if not evidence.capabilities.tools:
        reason = "tool_call: this type of agent does not report tool calls"
        return error_verdict(assertion, reason, [seen.rule("not-reported", "tool calls")]), reason
    wanted = assertion.value if isinstance(assertion.value, Mapping) else {}
    calls = [(entry.name, entry.arguments) for entry in evidence.transcript if entry.kind == "tool_call"]
    passed, message = match_tool_call(wanted, calls)
    told = _calls_told(wanted, calls, passed=passed)
    return verdict_of(assertion, passed, message, told, actual=[name for name, _ in calls]), message


def _calls_told(wanted: Mapping[str, Any], calls: list[tuple[str, Any]], *, passed: bool) -> list[Evidence]:
    """Which calls were of the tool, and of the one that came closest argument by argument."""
    tool, args = seen.cut(str(wanted.get("tool") or "").strip()), wanted.get("args")
    least = wanted.get("min_count") or 1
    named = [(number, given) for number, (name, given) in enumerate(calls, 1) if name == tool]
    fitting = [number for number, given in named if args is None or seen.contains(args, given or {})]
    if passed:
        return [Evidence("call", "called", text=tool, call=number) for number in fitting[: seen.MOST]] or [
            seen.rule("holds")
        ]
    if not named:
        return [
            Evidence(
                "call",
                "not-called",
                text=tool,
                actual=list(dict.fromkeys(name for name, _ in calls))[: seen.MOST],
            )
        ]
    if fitting or args is None:
        count = seen.budget_of(f"calls of {tool}", len(fitting), ">=", least, "under")
        count.text = tool
        return [count]
    number, given = seen.closest(args, named)
    return seen.arguments(tool, number, args, given)


def match_tool_call(wanted: Mapping[str, Any], calls: list[tuple[str, Any]]) -> tuple[bool, str]:
    """Whether enough calls (name, arguments) match, and nao's message.

    `args` are a subset of the call's, mappings recursively, anything else by equality with booleans
    kept apart from numbers.
    """
    tool, args = str(wanted.get("tool") or "").strip(), wanted.get("args")
    least = wanted.get("min_count") or 1
    named = [arguments for name, arguments in calls if name == tool]
    found = len(named) if args is None else sum(_subset(args, given or {}) for given in named)
    if found >= least:
        if args is None and least == 1:
            return True, f"tool_call: {tool}"
        notes = [f"x{found}"]
        if least > 1:
            notes.append(f"min {least}")
        if args is not None:
            notes.append("args matched")
        return True, f"tool_call: {tool} ({', '.join(notes)})"
    if args is None:
        counts = f" (found {found}, need >= {least})" if least > 1 else ""
        return False, f"missing tool_call: {tool}{counts}"
    counts = f" (found {found} matching, need >= {least}; {len(named)} total)" if named else ""
    return False, f"missing tool_call: {tool} with args {args!r}{counts}"


def _subset(wanted: Any, given: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(given, Mapping) and all(
            key in given and _subset(value, given[key]) for key, value in wanted.items()
        )
    return isinstance(wanted, bool) == isinstance(given, bool) and bool(wanted == given)


async def _judge_sql(assertion: Assertion, evidence: JudgeInput, judgement: Judgement) -> tuple[Verdict, str]:
    from tui_eval.frames.comparison_rules import ComparisonSettings

    sql = assertion.value if isinstance(assertion.value, str) else ""
    data = judgement.data = DataDetails(reference_sql=sql)

    def error(reason: str, code: str, said: str | None = None) -> tuple[Verdict, str]:
        return error_verdict(assertion, reason, [seen.rule(code, said or reason)]), reason

    own = evidence.case.comparison or {}
    values = {**evidence.services.comparison, **own}
    if {"rtol", "atol"} & own.keys():
        values["exact_integers"] = False
    try:
        settings = ComparisonSettings.of(values)
    except ValueError as problem:
        return error(str(problem), "bad-assertion")
    data.settings = {**settings.shown(), "compat": evidence.compat}
    reply = evidence.reply()
    backend = reply is not None and reply.verified and reply.expected_rows is not None
    if evidence.reference and evidence.services.backend_was_to_verify and reply and not reply.verified:
        # Also where there is a database: nao asks nobody again.
        return _without_verification(assertion, evidence)
    result: SqlResult | None = None
    if evidence.services.run_sql is not None and not (evidence.reference and backend):
        try:
            result = await evidence.services.run_sql(evidence.case.database, sql)
        except Exception as problem:
            if not (backend and type(problem).__name__ == "ConfigError"):
                return await _query_failed(assertion, evidence, judgement, problem)
    elif not backend:
        if evidence.reference and reply is not None and reply.verified:
            return error("nao verified the answer without saying which rows it expected", "not-reported")
        if evidence.reference:
            return _without_verification(assertion, evidence)
        return error(_no_database(evidence), "no-database")
    columns = result.columns if result is not None else list((reply.rows_columns if reply else None) or [])
    answer = await _answer(evidence, columns)
    if isinstance(answer, CannotJudge):
        return error(str(answer), answer.code, answer.said)
    if result is None and answer.expected is None:
        return error(_no_database(evidence), "no-database")
    comparison = await in_thread(lambda: _compare(answer, result, settings, evidence.reference))
    if result is not None and not evidence.reference and _of_order(comparison, settings):
        result = await _with_places(evidence, sql, result)
        if result.places is not None:
            comparison = await in_thread(lambda: _compare(answer, result, settings, evidence.reference))
    _fill(data, answer, result, comparison)
    if comparison.passed is False and answer.rows is not None:
        from tui_eval.formats.nao.query_blame import (
            conclude_from,  # late: of rows that are as expected nothing is asked
        )

        await conclude_from(data, answer, result, settings, evidence)
    if "truncated" in data.settings:
        judgement.frames = await in_thread(lambda: _whole(answer, result))
    return await _told(assertion, evidence, settings, comparison, answer, result, columns, data)


async def _told(
    assertion: Assertion,
    evidence: JudgeInput,
    settings: ComparisonSettings,
    comparison: FrameComparison,
    answer: RowsAnswer,
    result: SqlResult | None,
    columns: list[str],
    data: DataDetails,
) -> tuple[Verdict, str]:
    """The verdict of rows that were compared, and the case's message. `columns` are the expected ones."""
    from tui_eval.frames.comparison_rules import keys_not_given, names_repeated

    types = result.types if result is not None else {}
    summary = _summary(
        data.expected, result.frame.height if result is not None else len(answer.expected or ()), types
    )
    given = None if answer.rows is None else _summary(data.actual, len(answer.rows), types)
    if comparison.passed is None:
        told = [seen.rule("cannot-judge", comparison.message)]
        verdict = error_verdict(assertion, comparison.message, told, actual=given)
        verdict.expected = summary
        return verdict, comparison.message
    reason = comparison.message
    if not comparison.passed and comparison.text:
        reason += f": {comparison.text.splitlines()[0]}"
    unproven = comparison.passed and not evidence.reference
    if unproven and (sql := answer.sql) and await in_thread(lambda: reads_no_table(sql)):
        reason += " (the verification query reads no table)"
    notes = [
        f"comparison.key: {said}" for said in keys_not_given(settings.key or (), columns).values() if columns
    ]
    notes += names_repeated(result.renamed) if result is not None else []
    noted = "".join(f" ({note})" for note in notes)
    if comparison.difference is not None:
        know_queries(comparison.difference, data)
    told = await in_thread(lambda: _rows_told(comparison, answer, data))
    message = comparison.message if evidence.reference else comparison.message + noted
    return verdict_of(
        assertion, comparison.passed, reason + noted, told, actual=given, expected=summary
    ), message


def _of_order(comparison: FrameComparison, settings: ComparisonSettings) -> bool:
    """Whether the rows may be in another order alone: one that tells apart what ties, perhaps."""
    from tui_eval.frames.compare import ORDER_DIFFERS

    return comparison.message == ORDER_DIFFERS or (comparison.passed is False and settings.ordered)


async def _with_places(evidence: JudgeInput, sql: str, expected: SqlResult) -> SqlResult:
    """Expected rows whose order counts with their places in it, where their columns do not say these: rows that tie are
    right in any order."""
    from tui_eval.frames.tied_rows import query_of_places, with_places

    run = evidence.services.run_sql
    query = None
    if run is not None:
        query = await in_thread(lambda: query_of_places(sql, expected, expected.dialect))
    if run is None or query is None:
        return expected
    try:
        return with_places(expected, await run(evidence.case.database, query))
    except Exception:
        return expected  # what was made of it cannot be run: its rows as they came are one right order


async def _query_failed(
    assertion: Assertion, evidence: JudgeInput, judgement: Judgement, problem: Exception
) -> tuple[Verdict, str]:
    """The expected SQL gave no rows: why, where in its file, and the rows of the answer all the same, so that they can
    be looked at, and judged again when the query is mended."""
    from tui_eval.frames.databases import WrongQuery

    said = " ".join(str(problem).split())
    detail = str(getattr(problem, "detail", ""))
    data = judgement.data = judgement.data or DataDetails()
    sql = data.reference_sql or ""
    fault = await in_thread(lambda: _fault(evidence, sql, said, detail))
    data.settings["sql_error"] = fault
    message = f"expected SQL: {said}"
    if isinstance(problem, WrongQuery) or _OF_THE_QUERY.match(said):
        begins = evidence.case.place(assertion.line)
        message = wrong_query(said, fault_place(fault) if fault.get("file") else begins)
    verdict = error_verdict(
        assertion,
        message,
        [Evidence("sql", "query-failed", text=seen.cut(said), row=fault.get("file_line"))],
    )
    reply = evidence.reply()
    columns = await in_thread(lambda: columns_named(sql))
    if reply is not None and not columns and not evidence.reference:
        columns = await _columns_found(evidence, sql)
    at_hand = reply is not None and (reply.rows is not None or reply.verified)
    if at_hand or (columns and not evidence.reference):
        answer = await _answer(evidence, columns)
        if not isinstance(answer, CannotJudge) and answer.rows is not None:
            data.actual, data.columns = answer.rows[:DETAIL_ROWS], list(answer.columns or columns)
            data.keep_not_finite()
            data.verification_sql = answer.sql
            data.settings["source"] = answer.source
            if len(answer.rows) > DETAIL_ROWS:
                data.settings["truncated"] = {"actual": len(answer.rows)}
                judgement.frames = await in_thread(lambda: _whole(answer, None))
    return verdict, message


_OF_THE_QUERY = re.compile(
    r"(?:(?:Binder|Parser|Catalog|Conversion|Invalid Input|Out of Range|Mismatch Type|Not implemented|Syntax|SQLite) Error: "
    r"|only (?:SELECT|one SQL)|there is no SQL|the statement gives)"
)
"""How a database begins where the query is to blame: not itself, its time, its memory. PostgreSQL says it by
its code."""


async def _columns_found(evidence: JudgeInput, sql: str) -> list[str]:
    """The columns that a query has which fails in one of its rows: none are made for that; none where it cannot even be
    begun."""
    if evidence.services.run_sql is None:
        return []
    from tui_eval.frames.query_words import bare_statement

    try:
        found = await evidence.services.run_sql(
            evidence.case.database, f"SELECT * FROM (\n{bare_statement(sql)}\n) AS expected LIMIT 0"
        )
    except Exception:
        return []  # what is wrong with the query is known already
    return list(found.columns)


def _fault(evidence: JudgeInput, sql: str, said: str, detail: str) -> dict[str, Any]:
    """What is kept of a query that failed: what DuckDB said, and the place in the query and in its file."""
    from tui_eval.frames.sql_faults import fault_of
    from tui_eval.yaml.yaml_scalars import place_in_file

    found = fault_of(sql, said, detail)
    kept: dict[str, Any] = {"message": found.message, "detail": found.detail}
    if not found.line:
        return kept
    kept |= {"line": found.line, "column": found.column}
    name = evidence.case.path
    try:
        text = read_words(evidence.services.root / name)
    except (OSError, ValueError):
        return kept
    place = place_in_file(text, "sql", sql, found.line, found.column)
    if place is not None:
        kept |= {"file": name, "file_line": place[0], "file_column": place[1]}
    return kept


def _rows_told(comparison: FrameComparison, answer: RowsAnswer, data: DataDetails) -> list[Evidence]:
    """What of the rows is not as expected, and what those that differ have in common (`rule`; in how many of them is
    in the text); which cells, the Data tab finds. May take a while: call it in a thread."""
    if comparison.passed:
        return [seen.rule("holds")]
    if answer.rows is None:
        return [Evidence("missing", "no-rows", text=seen.cut(answer.error or ""))]
    from tui_eval.frames.queries import kept_conclusion

    missing = comparison.difference.missing_columns if comparison.difference is not None else ()
    kept = kept_conclusion(data)
    if kept is not None and kept.blame == "ties":
        common = kept.line, kept.line.partition(":")[0]
    else:
        common = _fact_of_rows(comparison)
    message = seen.cut(comparison.message)
    return [
        Evidence("rule", "rows", text=seen.cut(common[0] or message), rule=seen.cut(common[1])),
        *(Evidence("missing", "column", path=seen.cut(name)) for name in list(missing)[: seen.MOST]),
    ]


def _fact_of_rows(comparison: FrameComparison) -> tuple[str, str]:
    """What is wrong with the rows in few words, and without its figures: what they have in common where that is
    found (`amount ×100 in 13 of 113 rows`), else how many differ in what; nothing where rows are many."""
    from tui_eval.frames.compare import OUT_OF_ORDER

    difference = comparison.difference
    if comparison.message == OUT_OF_ORDER:  # cell by cell all of them would differ
        return comparison.text or OUT_OF_ORDER, OUT_OF_ORDER
    if difference is None:
        return "", ""
    from tui_eval.frames.diagnosis import Diagnosis, diagnosis_of, what
    from tui_eval.frames.one_table import OneTable

    many = sum(difference.lengths) * max(1, len(difference.pairs)) > DIAGNOSED_CELLS
    try:
        found = Diagnosis() if many else diagnosis_of(difference)
        if not found.findings:
            return OneTable(difference).fact()
    except BaseException as problem:
        # Polars panics with a BaseException; what rows have in common is worth no verdict
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        return "", ""
    first = found.findings[0]
    words = what(first)
    if words == str(first) or first.explained > difference.lengths[0]:  # rows of either side are counted
        return words, words
    return f"{words} in {first.explained:,} of {difference.lengths[0]:,} rows", words


def _without_verification(assertion: Assertion, evidence: JudgeInput) -> tuple[Verdict, str]:
    """What nao 0.3.29 makes of a test whose server sent no verification."""
    if any(other.type == "tool_call" for other in evidence.case.assertions):
        message = "no verification data"
        return verdict_of(assertion, False, message, [seen.rule("not-verified", message)]), message
    return verdict_of(assertion, True, NO_VERIFICATION, [seen.rule("holds")]), NO_VERIFICATION


async def _why_no_database(evidence: JudgeInput) -> str:
    """Why there is none for a test, before anybody is asked: none is configured, or none of that name."""
    if evidence.services.try_sql is not None:
        try:
            await evidence.services.try_sql(evidence.case.database, "SELECT 1")
        except Exception as problem:
            if type(problem).__name__ == "ConfigError" and str(problem).startswith("there is no database "):
                return str(problem)
    return _no_database(evidence)


def _no_database(evidence: JudgeInput) -> str:
    name = evidence.case.database or "main"
    return (
        f"no database to run the expected SQL on: write `databases: {{{name}: {{type: duckdb, path: FILE}}}}` "
        "into tui_eval.yaml, or `databases:` into nao_config.yaml"
    )


async def _answer(evidence: JudgeInput, columns: list[str]) -> RowsAnswer | CannotJudge:
    """The agent's answer as rows, or why it cannot be asked for."""
    if evidence.services.rows is not None:
        try:
            return await evidence.services.rows(columns)
        except CannotJudge as why:
            return why
    reply = evidence.reply()
    if reply is None or (reply.rows is None and not reply.verified):
        return CannotJudge("the agent's answer cannot be had as rows", "no-rows")
    return RowsAnswer(
        reply.rows, reply.rows_error, reply.rows_sql, reply.expected_rows, reply.rows_columns, "verification"
    )


def _compare(answer: RowsAnswer, result: SqlResult | None, settings: Any, reference: bool) -> FrameComparison:
    from tui_eval.frames import nao_reference as original
    from tui_eval.frames.compare import compare
    from tui_eval.frames.sql import rows

    if reference:
        expected = rows(result) if result is not None else answer.expected or []
        columns = result.columns if result is not None else answer.columns
        types = result.types if result is not None else None
        dialect = result.dialect if result is not None else "duckdb"
        return original.compare(answer.rows, expected, settings, columns, answer.error, types, dialect)
    if result is not None:
        return compare(answer.rows, result, settings, None, answer.error)
    return compare(answer.rows, answer.expected or [], settings, answer.columns, answer.error)


def _fill(
    data: DataDetails, answer: RowsAnswer, result: SqlResult | None, comparison: FrameComparison
) -> None:
    from tui_eval.frames.sql import rows

    if result is not None:
        data.columns, data.expected = list(result.columns), rows(result, DETAIL_ROWS, finite=False)
        data.settings["types"] = dict(result.types)  # JSON knows neither decimals nor nested values
        data.settings |= {"dialect": result.dialect} if result.dialect != "duckdb" else {}
        height = result.frame.height
    else:
        expected = answer.expected or []
        data.columns = list(answer.columns or dict.fromkeys(key for row in expected for key in row))
        data.expected, height = expected[:DETAIL_ROWS], len(expected)
    data.actual = None if answer.rows is None else answer.rows[:DETAIL_ROWS]
    if max(height, len(answer.rows or ())) > DETAIL_ROWS:
        data.settings["truncated"] = {"expected": height, "actual": len(answer.rows or ())}
    data.keep_not_finite()
    data.settings["source"] = answer.source
    data.comparison = comparison.text
    data.verification_sql = answer.sql


def _whole(answer: RowsAnswer, result: SqlResult | None) -> dict[str, Any]:
    """Both sides as frames, for what does not fit into the attempt's details."""
    from tui_eval.frames.typed_columns import frame_of

    frames: dict[str, Any] = {}
    if result is not None:
        frames["expected"] = result.frame
    elif answer.expected:
        frames["expected"] = frame_of(answer.expected, expected=True)
    if answer.rows:
        frames["actual"] = frame_of(answer.rows)
    return frames


def _summary(records: list[dict[str, Any]] | None, count: int, types: Mapping[str, str]) -> Any:
    """One small row itself, dates without a midnight, else how many rows there are."""
    if records and count == 1 and len(records[0]) <= 5:
        from tui_eval.frames.value_texts import plain_moment

        return {
            name: plain_moment(value, True) if types.get(name) == "DATE" and isinstance(value, str) else value
            for name, value in records[0].items()
        }
    return f"{count:,} row{'' if count == 1 else 's'}"


# -- What is known of a query without running it.


_MAY_READ = re.compile(r"\b(?:from|join|table|describe|summarize|show|pivot|unpivot)\b", re.IGNORECASE)

_TEXT = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_READS = re.compile(r'\bfrom\s+[\w"]', re.IGNORECASE)
_NAMES_ROWS = re.compile(
    r"\b(?:with|values|unnest|range|generate_series|extract|substring|trim|distinct)\b", re.IGNORECASE
)


def reads_no_table(sql: str) -> bool:
    """Whether a query (DuckDB's dialect) makes its rows of literals alone, as `SELECT 7` does, which proves
    nothing of the data. False where it cannot be parsed."""
    bare = _TEXT.sub("''", sql)
    if not _MAY_READ.search(bare):
        return bool(sql.strip())
    if _READS.search(bare) and not _NAMES_ROWS.search(bare):
        return False  # most queries: parsing them would cost a run its time
    import sqlglot
    from sqlglot import errors, exp

    try:
        statements = [found for found in sqlglot.parse(sql, read="duckdb") if found is not None]
    except (errors.SqlglotError, RecursionError, ValueError, LookupError):
        return False
    if not statements or not all(isinstance(found, exp.Query) for found in statements):
        return False
    own = {cte.alias.lower() for found in statements for cte in found.find_all(exp.CTE)}
    return all(
        isinstance(table.this, exp.Identifier) and not table.db and table.name.lower() in own
        for found in statements
        for table in found.find_all(exp.Table)
    )


def columns_named(sql: str) -> list[str]:
    """The columns that a query (DuckDB's dialect) names, in order; none where it has a star, names one not at all, or
    cannot be parsed."""
    import sqlglot
    from sqlglot import errors, exp

    try:
        found = sqlglot.parse_one(sql, read="duckdb")
    except (errors.SqlglotError, RecursionError, ValueError, LookupError):
        return []
    if not isinstance(found, exp.Query):
        return []
    names = found.named_selects
    return [] if not all(names) or "*" in names or len(set(names)) < len(names) else list(names)
