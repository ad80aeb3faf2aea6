"""Judging nao tests: `tool_call` assertions and the rows of the expected SQL.

Matching and messages of `tool_call` and the way messages join are nao-core 0.3.29's (formats/nao.md
section 2); rows are compared by `tui_eval.frames`, in the documented or the reference's way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput, Judgement, RowsAnswer
from tui_eval.assertions.judging import error_verdict, verdict_of
from tui_eval.guard.fair_share import in_thread
from tui_eval.model import Assertion, DataDetails, Evidence, Verdict

if TYPE_CHECKING:
    from tui_eval.frames.compare import FrameComparison
    from tui_eval.frames.sql import SqlResult

DETAIL_ROWS = 1000
NO_VERIFICATION = "no verification"


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
        return [seen.budget_of(f"calls of {tool}", len(fitting), ">=", least, "under")]
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

    def error(reason: str, code: str) -> tuple[Verdict, str]:
        return error_verdict(assertion, reason, [seen.rule(code, reason)]), reason

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
    result: SqlResult | None = None
    if evidence.services.run_sql is not None and not (evidence.reference and backend):
        try:
            result = await evidence.services.run_sql(evidence.case.database, sql)
        except Exception as problem:
            if not (backend and type(problem).__name__ == "ConfigError"):
                said = " ".join(str(problem).split())
                told = [Evidence("sql", "query-failed", text=seen.cut(said))]
                return error_verdict(assertion, f"expected SQL: {said}", told), f"expected SQL: {said}"
    elif not backend:
        if evidence.reference and reply is not None and reply.verified:
            return error("nao verified the answer without saying which rows it expected", "not-reported")
        if evidence.reference:
            return _without_verification(assertion, evidence)
        return error(_no_database(evidence), "no-database")
    columns = result.columns if result is not None else list((reply.rows_columns if reply else None) or [])
    answer = await _answer(evidence, columns)
    if isinstance(answer, str):
        return error(answer, "no-rows")
    if result is None and answer.expected is None:
        return error(_no_database(evidence), "no-database")
    comparison = await in_thread(lambda: _compare(answer, result, settings, evidence.reference))
    _fill(data, answer, result, comparison)
    if "truncated" in data.settings:
        judgement.frames = await in_thread(lambda: _whole(answer, result))
    summary = _summary(
        data.expected, result.frame.height if result is not None else len(answer.expected or ())
    )
    given = None if answer.rows is None else _summary(data.actual, len(answer.rows))
    if comparison.passed is None:
        told = [seen.rule("cannot-judge", comparison.message)]
        verdict = error_verdict(assertion, comparison.message, told, actual=given)
        verdict.expected = summary
        return verdict, comparison.message
    reason = comparison.message
    if not comparison.passed and comparison.text:
        reason += f": {comparison.text.splitlines()[0]}"
    if comparison.passed and (sql := answer.sql) and not evidence.reference:
        from tui_eval.assertions.query import reads_no_table

        if await in_thread(lambda: reads_no_table(sql)):
            reason += " (the verification query reads no table)"
    told = _rows_told(comparison, answer)
    return verdict_of(
        assertion, comparison.passed, reason, told, actual=given, expected=summary
    ), comparison.message


def _rows_told(comparison: FrameComparison, answer: RowsAnswer) -> list[Evidence]:
    """What of the rows is not as expected; which cells, the Data tab finds."""
    if comparison.passed:
        return [seen.rule("holds")]
    if answer.rows is None:
        return [Evidence("missing", "no-rows", text=seen.cut(answer.error or ""))]
    missing = comparison.difference.missing_columns if comparison.difference is not None else ()
    return [
        Evidence("rule", "rows", text=seen.cut(comparison.message)),
        *(Evidence("missing", "column", path=seen.cut(name)) for name in list(missing)[: seen.MOST]),
    ]


def _without_verification(assertion: Assertion, evidence: JudgeInput) -> tuple[Verdict, str]:
    """What nao 0.3.29 makes of a test whose server sent no verification."""
    if any(other.type == "tool_call" for other in evidence.case.assertions):
        message = "no verification data"
        return verdict_of(assertion, False, message, [seen.rule("not-verified", message)]), message
    return verdict_of(assertion, True, NO_VERIFICATION, [seen.rule("holds")]), NO_VERIFICATION


def _no_database(evidence: JudgeInput) -> str:
    name = evidence.case.database or "main"
    return (
        f"no database to run the expected SQL on: write `databases: {{{name}: {{type: duckdb, path: FILE}}}}` "
        "into tui_eval.yaml, or `databases:` into nao_config.yaml"
    )


async def _answer(evidence: JudgeInput, columns: list[str]) -> RowsAnswer | str:
    """The agent's answer as rows, or why it cannot be asked for."""
    if evidence.services.rows is not None:
        try:
            return await evidence.services.rows(columns)
        except CannotJudge as why:
            return str(why)
    reply = evidence.reply()
    if reply is None or (reply.rows is None and not reply.verified):
        return "the agent's answer cannot be had as rows"
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
        return original.compare(answer.rows, expected, settings, columns, answer.error)
    if result is not None:
        return compare(answer.rows, result, settings, None, answer.error)
    return compare(answer.rows, answer.expected or [], settings, answer.columns, answer.error)


def _fill(
    data: DataDetails, answer: RowsAnswer, result: SqlResult | None, comparison: FrameComparison
) -> None:
    from tui_eval.frames.sql import rows

    if result is not None:
        data.columns, data.expected = list(result.columns), rows(result, DETAIL_ROWS)
        data.settings["types"] = dict(result.types)  # JSON tells neither decimals nor nested values
        height = result.frame.height
    else:
        expected = answer.expected or []
        data.columns = list(answer.columns or dict.fromkeys(key for row in expected for key in row))
        data.expected, height = expected[:DETAIL_ROWS], len(expected)
    data.actual = None if answer.rows is None else answer.rows[:DETAIL_ROWS]
    if max(height, len(answer.rows or ())) > DETAIL_ROWS:
        data.settings["truncated"] = {"expected": height, "actual": len(answer.rows or ())}
    data.settings["source"] = answer.source
    data.comparison = comparison.text
    data.verification_sql = answer.sql


def _whole(answer: RowsAnswer, result: SqlResult | None) -> dict[str, Any]:
    """Both sides as frames, for what does not fit into the attempt's details."""
    frames: dict[str, Any] = {}
    if result is not None:
        frames["expected"] = result.frame
    elif answer.expected:
        frames["expected"] = _frame(answer.expected)
    if answer.rows:
        frames["actual"] = _frame(answer.rows)
    return frames


def _frame(records: list[dict[str, Any]]) -> Any:
    """Rows as a frame; a column of mixed or nested values becomes JSON text."""
    import polars as pl

    from tui_eval.frames.cells import cell_text

    names = dict.fromkeys(name for row in records for name in row)
    columns: dict[str, Any] = {}
    for name in names:
        cells = [row.get(name) for row in records]
        kinds = {type(cell) for cell in cells if cell is not None}
        if kinds <= {int, float} or (len(kinds) == 1 and kinds <= {str, bool}):
            try:
                columns[name] = pl.Series(name, cells, strict=False)
                continue
            except (pl.exceptions.PolarsError, OverflowError, TypeError):
                pass
        columns[name] = pl.Series(name, [None if c is None else cell_text(c) for c in cells], pl.String)
    return pl.DataFrame(columns)


def _summary(records: list[dict[str, Any]] | None, count: int) -> Any:
    """One small row itself, else how many rows there are."""
    if records and count == 1 and len(records[0]) <= 5:
        return records[0]
    return f"{count:,} row{'' if count == 1 else 's'}"
