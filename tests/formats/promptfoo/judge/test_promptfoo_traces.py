"""trajectory:*, trace-* and skill-used: promptfoo 0.121.20's verdicts on traces of ours, and where we differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import TESTS
from tests.support.promptfoo_cases import assertion_from, case_with, evidence_for
from tui_eval.assertions import JudgeInput, Reports
from tui_eval.formats import judge
from tui_eval.model import Entry, Reply, Trace, TraceSpan, Verdict

pytestmark = pytest.mark.asyncio(loop_scope="module")

_LINES = [
    json.loads(line) for line in (TESTS / "vectors" / "promptfoo_traces.jsonl").read_text().splitlines()
]
TRACES = {line["trace"]: line["spans"] for line in _LINES if "spans" in line}
ROWS = [line for line in _LINES if "assertion" in line]


def evidence_of(row: dict[str, Any], compat: Any) -> JudgeInput:
    trace = {"traceId": "0" * 32, "spans": TRACES[row["trace"]]}
    evidence = evidence_for(
        {
            "output": "x",
            "vars": {},
            "assertion": row["assertion"],
            "metadata": row.get("metadata"),
            "trace": trace,
        }
    )
    evidence.compat = compat
    return evidence


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
async def test_reference_gives_promptfoos_verdict(row: dict[str, Any]) -> None:
    verdict = (await judge(evidence_of(row, "reference"))).verdicts[0]
    if "error" in row:
        assert verdict.passed is None, verdict
        if "is not a function" not in row["error"]:
            assert row["error"] in verdict.reason
        return
    assert (verdict.passed, verdict.score, verdict.reason) == (row["pass"], row["score"], row["reason"])


async def test_documented_is_never_looser_but_where_promptfoo_looks_away() -> None:
    """Where we differ, an accidental pass becomes a failure or an error; the two that fail by accident pass."""
    looser = []
    for row in ROWS:
        verdict = (await judge(evidence_of(row, "documented"))).verdicts[0]
        if "error" in row:
            assert verdict.passed is None, row["id"]
        elif verdict.passed is True and not row["pass"]:
            looser.append((row["assertion"]["type"], json.dumps(row["assertion"]["value"])))
    assert looser == [
        ("trajectory:tool-sequence", '{"steps": [{"type": "command", "name": "ls"}]}'),
        ("trajectory:tool-sequence", '{"steps": [{"type": ["tool", "command"], "pattern": "git*"}]}'),
        (
            "trajectory:tool-args-match",
            '{"name": "search_orders", "args": {"limit": 10}, "defaults": {"limit": 10}}',
        ),
    ]


async def one(
    given: dict[str, Any],
    *,
    trace: Trace | None = None,
    transcript: list[Entry] | None = None,
    reports: Reports | None = None,
    compat: Any = "documented",
    metadata: dict[str, Any] | None = None,
) -> Verdict:
    reply = Reply(1, "x", metadata=metadata)
    evidence = JudgeInput(
        case_with([assertion_from(given)]), [reply], transcript or [], reports or Reports(True)
    )
    evidence.trace, evidence.compat = trace, compat
    return (await judge(evidence)).verdicts[0]


OURS = TraceSpan("1", "chat gpt-4.1", start=0, end=30, own=True)
SILENT = Trace("0" * 32, spans=[OURS], problem="no span arrived")
CALL = [Entry(1, "tool_call", name="refund", arguments={"id": 1}, call_id="a", started_at=1.0)]
RESULT = Entry(1, "tool_result", name="refund", error="timeout", call_id="a", started_at=1.5)

FORBIDDEN = {"type": "not-trajectory:tool-used", "value": "refund"}
AT_MOST = {"type": "trace-span-count", "value": {"pattern": "db*", "max": 3}}
NO_ERRORS = {"type": "trace-error-spans", "value": {"pattern": "db*"}}


@pytest.mark.parametrize("given", [FORBIDDEN, AT_MOST, NO_ERRORS])
async def test_a_silent_trace_is_an_error_and_passes_by_the_letter_only(given: dict[str, Any]) -> None:
    verdict = await one(given, trace=SILENT)
    assert verdict.passed is None and "no span arrived" in verdict.reason
    assert (await one(given, trace=SILENT, compat="reference")).passed is True


async def test_our_span_of_the_request_answers_what_is_asked_of_it() -> None:
    within = {"type": "trace-span-duration", "value": {"pattern": "chat *", "max": 20}}
    assert (await one(within, trace=SILENT)).passed is False


async def test_reported_calls_stand_in_for_a_trace_that_did_not_come() -> None:
    verdict = await one(FORBIDDEN, trace=SILENT, transcript=CALL)
    assert verdict.passed is False


async def test_an_agent_that_reports_no_calls_is_not_cleared_by_a_trace_that_did_not_come() -> None:
    said = [Entry(1, "assistant", text="done")]
    assert (await one(FORBIDDEN, trace=SILENT, transcript=said, reports=Reports(tools=True))).passed is None
    assert (await one(FORBIDDEN, transcript=said, reports=Reports(tools=True))).passed is True


async def test_a_provider_that_never_lists_calls_is_not_cleared_by_its_silence() -> None:
    """promptfoo's own providers tell calls by `metadata.toolCalls` alone, which most do not set."""
    said, by_metadata = [Entry(1, "assistant", text="done")], Reports(tools=True, calls_in_metadata=True)
    assert (await one(FORBIDDEN, transcript=said, reports=by_metadata)).passed is None
    none = {"toolCalls": []}
    assert (await one(FORBIDDEN, transcript=said, reports=by_metadata, metadata=none)).passed is True
    assert (await one(FORBIDDEN, transcript=CALL, reports=by_metadata)).passed is False


async def test_a_trace_without_tool_spans_does_not_hide_reported_calls() -> None:
    trace = Trace("0" * 32, spans=[TraceSpan("1", "agent run", start=0, end=1)])
    verdict = await one(FORBIDDEN, trace=trace, transcript=CALL)
    assert verdict.passed is False and "from the transcript" in verdict.reason
    assert (await one(FORBIDDEN, trace=trace, transcript=CALL, compat="reference")).passed is True


async def test_spans_of_the_transcript() -> None:
    transcript = [*CALL, RESULT]
    named = {"type": "trace-span-duration", "value": {"pattern": "execute_tool *", "max": 400}}
    assert (await one(named, transcript=transcript)).passed is False
    failed = {"type": "trace-error-spans", "value": {"pattern": "*refund"}}
    assert (await one(failed, transcript=transcript)).passed is False
    for compat, given in (("documented", AT_MOST), ("reference", failed)):
        assert (await one(given, transcript=transcript, compat=compat)).passed is None


async def test_a_received_trace_comes_before_one_in_the_metadata() -> None:
    metadata = {"trace": {"spans": [{"name": "x", "startTime": 0, "attributes": {"tool.name": "refund"}}]}}
    trace = Trace("0" * 32, spans=[TraceSpan("1", "x", start=0, attributes={"tool.name": "lookup"})])
    used = {"type": "trajectory:tool-used", "value": "lookup"}
    assert (await one(used, trace=trace, metadata=metadata)).passed is True
    assert (await one(used, trace=SILENT, metadata=metadata)).passed is False


async def test_tools_that_the_suite_calls_commands() -> None:
    span = TraceSpan("1", "x", start=0, attributes={"tool.name": "Bash", "tool.args": '{"cmd": "ls -l"}'})
    commands = {"type": "trajectory:step-count", "value": {"type": "command", "name": "ls", "min": 1}}
    assert (await one(commands, trace=Trace("0", spans=[span]))).passed is False
    assert (await one(commands, trace=Trace("0", spans=[span], command_tools=["bash"]))).passed is True


async def test_skills_from_the_skill_tool() -> None:
    used = {"type": "skill-used", "value": "pdf"}
    call = Entry(1, "tool_call", name="Skill", arguments={"skill": "pdf"}, call_id="s")
    assert (await one(used, transcript=[call])).passed is True
    assert (await one(used, transcript=[call], compat="reference")).passed is False
    failed = Entry(1, "tool_result", name="Skill", error="no such skill", call_id="s")
    assert (await one(used, transcript=[call, failed])).passed is False
    span = TraceSpan("1", "x", start=0, attributes={"tool.name": "Skill", "tool.input": {"name": "pdf"}})
    assert (await one(used, trace=Trace("0", spans=[span]))).passed is True


async def test_no_skill_is_not_told_from_an_agent_that_reports_nothing() -> None:
    unused = {"type": "not-skill-used", "value": "pdf"}
    assert (await one(unused, reports=Reports())).passed is None
    assert (await one(unused, reports=Reports(metadata=True))).passed is True


async def test_scripts_see_the_trace() -> None:
    from tui_eval.formats.promptfoo.judge.code import context_of

    evidence = JudgeInput(case_with([]), [Reply(1, "x")])
    evidence.trace = Trace("ab", "e", "t", [TraceSpan("1", "x", "0", 1.0, 2.0, {"k": 1}, 2, "bad")])
    assert context_of(evidence)["trace"] == {
        "traceId": "ab",
        "evaluationId": "e",
        "testCaseId": "t",
        "spans": [
            {
                "spanId": "1",
                "parentSpanId": "0",
                "name": "x",
                "startTime": 1.0,
                "endTime": 2.0,
                "attributes": {"k": 1},
                "statusCode": 2,
                "statusMessage": "bad",
            }
        ],
    }


async def test_patterns_and_hostile_spans_take_no_minutes() -> None:
    name = "a" * 60_000
    odd = {"spans": [{"name": name, "startTime": 0}, {"name": 5, "startTime": "x", "attributes": 7}, None]}
    given = {"type": "trace-span-count", "value": {"pattern": "*a*a*a*a*a*a*b", "max": 0}}
    assert (await one(given, metadata={"trace": odd})).passed is True
    steps = {"type": "trajectory:step-count", "value": {"min": 2, "max": 2}}
    assert (await one(steps, metadata={"trace": odd})).passed is True
