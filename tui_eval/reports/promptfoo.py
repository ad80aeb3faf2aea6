"""promptfoo's own JSON of an evaluation (formats/promptfoo.md 11), so that its viewer and scripts read a run.

Where promptfoo throws a row away (an assertion that could not be judged), the row keeps its response here;
`failureReason` tells the difference as it does there.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
from pathlib import Path
from typing import Any

from msgspec import UNSET

from tui_eval.guard.text import storable
from tui_eval.model import Assertion, Attempt, Case, Trace, TraceSpan, Usage, Verdict
from tui_eval.store.columns import column_agent
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, CaseRow, RunInfo

FORMAT = "0.121.20"
"""The release of promptfoo whose format this is."""
_FAILURE = {"passed": 0, "failed": 1}


def write(reader: RunReader, path: Path) -> None:
    """Write the document, 2-space indent as promptfoo does."""
    text = json.dumps(storable(build(reader)), indent=2, ensure_ascii=False, default=str)
    path.write_text(text + "\n", encoding="utf-8")


def build(reader: RunReader) -> dict[str, Any]:
    """The whole document, JSON-able."""
    info = reader.info()
    table = _Table()
    cases = {row.id: row for row in reader.cases()}
    bodies = {row.id: reader.case(row.id) for row in cases.values()}
    rows = sorted(
        (row for row in reader.attempts() if row.state == "done"),
        key=lambda row: (cases[row.case_ref].suite, bodies[row.case_ref].order, row.attempt, row.id),
    )
    for row in rows:
        attempt = reader.attempt(row.id)
        if attempt is not None:
            table.add(row, cases[row.case_ref], bodies[row.case_ref], attempt)
    table.results.sort(key=lambda result: (result["testIdx"], result["promptIdx"]))
    derived = {(column["agent"], column["prompt"]): column.get("derived") or {} for column in info.metrics}
    for column in table.prompts:
        more = derived.get((column["provider"], column["label"]))
        if more:
            column["metrics"]["namedScores"].update(more)
    return {
        "evalId": f"eval-{info.id}",
        "results": {
            "version": 3,
            "timestamp": _time(info.started_at),
            "prompts": table.prompts,
            "results": table.results,
            "stats": _stats(table, info),
        },
        "config": _config(table, info),
        "shareableUrl": None,
        "metadata": {
            "promptfooVersion": FORMAT,
            "generator": f"tui-eval {info.version}",
            "nodeVersion": "",
            "platform": platform.system().lower(),
            "arch": platform.machine(),
            "exportedAt": _time(datetime.datetime.now(datetime.UTC).timestamp()),
            "evaluationCreatedAt": _time(info.started_at),
        },
        "vars": sorted({name for result in table.results for name in result["vars"]}),
        "runtimeOptions": {},
        **({"traces": table.traces} if table.traces else {}),
    }


class _Table:
    """Tests down, columns (provider, prompt) across."""

    def __init__(self) -> None:
        self.prompts: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self.traces: list[dict[str, Any]] = []
        self._columns: dict[tuple[str, str], int] = {}
        self._tests: dict[str, int] = {}

    def add(self, row: AttemptRow, case_row: CaseRow, case: Case, attempt: Attempt) -> None:
        label = case.prompt or ""
        raw = (case.turns[0].text if case.turns else "") or ""
        agent = column_agent(case, case_row.agent)
        place = self._columns.get((agent, label))
        if place is None:
            place = self._columns[agent, label] = len(self.prompts)
            self.prompts.append(_column(agent, label, raw))
        test = self._test(case, row.attempt)
        result = _result(row, case_row, case, attempt, test, place)
        if attempt.trace is not None:
            result["traceId"], result["evaluationId"] = attempt.trace.trace_id, attempt.trace.evaluation_id
            self.traces.append(_trace(attempt.trace, attempt.vars, test, place))
        self.results.append(result)
        _count(self.prompts[place]["metrics"], result, attempt)

    def _test(self, case: Case, attempt: int) -> int:
        key = json.dumps([case.suite, case.name, case.line, case.vars, attempt], sort_keys=True, default=str)
        return self._tests.setdefault(key, len(self._tests))


def _column(agent: str, label: str, raw: str) -> dict[str, Any]:
    return {
        "id": _prompt_id(label),
        "raw": raw,
        "label": label or raw,
        "provider": agent,
        "metrics": {
            "score": 0.0,
            "testPassCount": 0,
            "testFailCount": 0,
            "testErrorCount": 0,
            "assertPassCount": 0,
            "assertFailCount": 0,
            "totalLatencyMs": 0,
            "tokenUsage": _tokens(None, 0),
            "namedScores": {},
            "namedScoresCount": {},
            "namedScoreWeights": {},
            "cost": 0.0,
        },
    }


def _prompt_id(label: str) -> str:
    return hashlib.sha256(label.encode("utf-8", "replace")).hexdigest()


def _count(metrics: dict[str, Any], result: dict[str, Any], attempt: Attempt) -> None:
    outcome = {0: "testPassCount", 1: "testFailCount"}.get(result["failureReason"], "testErrorCount")
    metrics[outcome] += 1
    metrics["score"] += result["score"]
    for verdict in attempt.verdicts:
        metrics["assertPassCount" if verdict.passed else "assertFailCount"] += 1
        if verdict.metric:
            counts = metrics["namedScoresCount"]
            counts[verdict.metric] = counts.get(verdict.metric, 0) + 1
    for name, value in attempt.named_scores.items():
        weight = attempt.named_weights.get(name, 1.0)
        metrics["namedScores"][name] = metrics["namedScores"].get(name, 0.0) + value * weight
        metrics["namedScoreWeights"][name] = metrics["namedScoreWeights"].get(name, 0.0) + weight
        metrics["namedScoresCount"].setdefault(name, 1)
    metrics["totalLatencyMs"] += result["latencyMs"]
    metrics["cost"] += result["cost"]
    for key, number in result["tokenUsage"].items():
        metrics["tokenUsage"][key] = metrics["tokenUsage"].get(key, 0) + number


def _result(
    row: AttemptRow, case_row: CaseRow, case: Case, attempt: Attempt, test: int, place: int
) -> dict[str, Any]:
    reason = _FAILURE.get(attempt.outcome, 2)
    passed = attempt.outcome == "passed"
    reply = attempt.replies[-1] if attempt.replies else None
    output = attempt.output if attempt.output is not None else attempt.response_text
    usage = _tokens(attempt.usage, len(attempt.replies))
    latency = (reply.latency_ms if reply else None) or attempt.duration_ms or 0
    response: dict[str, Any] | None = None
    if reply is not None or attempt.response_text:
        response = {
            "output": output,
            "cached": False,
            "cost": attempt.cost or 0,
            "tokenUsage": usage,
            "latencyMs": round(latency),
            "metadata": (reply.metadata if reply else None) or {},
        }
        if reply is not None:
            extra = {"finishReason": reply.finish_reason, "guardrails": reply.guardrails, "raw": reply.raw}
            response.update({key: value for key, value in extra.items() if value is not None})
    provider = case.provider if isinstance(case.provider, dict) else {}
    result: dict[str, Any] = {
        "id": f"{row.id}",
        "testIdx": test,
        "promptIdx": place,
        "promptId": _prompt_id(case.prompt or ""),
        "provider": {
            "id": str(provider.get("id") or case_row.agent),
            "label": str(provider.get("label") or ""),
        },
        "prompt": {"raw": attempt.prompt_sent or "", "label": case.prompt or ""},
        "vars": case.vars or attempt.vars,
        "testCase": _test_case(case),
        "response": response,
        "gradingResult": _grading(attempt) if attempt.verdicts or attempt.error is None else None,
        "success": passed,
        "score": attempt.score or 0.0,
        "namedScores": attempt.named_scores,
        "failureReason": reason,
        "latencyMs": round(latency),
        "cost": attempt.cost or 0,
        "tokenUsage": usage,
        "metadata": {**case.metadata, **((reply.metadata if reply else None) or {})},
    }
    if not passed:
        result["error"] = attempt.error or attempt.message
    return result


def _trace(trace: Trace, variables: dict[str, Any], test: int, place: int) -> dict[str, Any]:
    return {
        "traceId": trace.trace_id,
        "evaluationId": trace.evaluation_id,
        "testCaseId": trace.test_case_id,
        "metadata": {"testIdx": test, "promptIdx": place, "vars": variables},
        "spans": [_span(span) for span in trace.spans],
    }


def _span(span: TraceSpan) -> dict[str, Any]:
    return _without_none(
        {
            "spanId": span.span_id,
            "parentSpanId": span.parent_id,
            "name": span.name,
            "startTime": span.start,
            "endTime": span.end,
            "attributes": span.attributes,
            "statusCode": span.status,
            "statusMessage": span.message,
        }
    )


def _grading(attempt: Attempt) -> dict[str, Any]:
    return {
        "pass": attempt.outcome == "passed",
        "score": attempt.score or 0.0,
        "reason": "All assertions passed" if attempt.message == "passed" else attempt.message,
        "namedScores": attempt.named_scores,
        "namedScoreWeights": attempt.named_weights,
        "tokensUsed": _tokens(None, 0),
        "componentResults": [_component(verdict) for verdict in attempt.verdicts],
    }


def _component(verdict: Verdict) -> dict[str, Any]:
    found: dict[str, Any] = {
        "pass": verdict.passed is True,
        "score": verdict.score,
        "reason": verdict.reason,
    }
    if verdict.type != "assert-set":
        found["assertion"] = _without_none(
            {
                "type": verdict.type,
                "value": verdict.expected,
                "metric": verdict.metric,
                "weight": None if verdict.weight == 1.0 else verdict.weight,
            }
        )
    return found


def _test_case(case: Case) -> dict[str, Any]:
    given = [*(assertion for turn in case.turns for assertion in turn.assertions), *case.assertions]
    listed: list[dict[str, Any]] = []
    sets: dict[int, list[dict[str, Any]]] = {}
    for index, assertion in enumerate(given):
        shown = _assertion(assertion)
        if assertion.type == "assert-set":
            sets[index] = shown["assert"] = []
        (listed if assertion.set is None else sets.get(assertion.set, listed)).append(shown)
    return _without_none(
        {
            "description": case.description or None,
            "vars": case.vars,
            "assert": listed,
            "options": case.options or None,
            "metadata": case.metadata or None,
            "threshold": case.threshold,
        }
    )


def _assertion(assertion: Assertion) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": assertion.type}
    if assertion.value is not UNSET:
        shown["value"] = assertion.value
    for key in ("threshold", "weight", "metric", "transform", "provider", "config"):
        value = getattr(assertion, key)
        if value is not None:
            shown[key] = value
    return {**shown, **(assertion.extra or {})}


def _tokens(usage: Usage | None, requests: int) -> dict[str, int]:
    prompt, completion = (usage.input_tokens or 0, usage.output_tokens or 0) if usage else (0, 0)
    return {
        "total": prompt + completion,
        "prompt": prompt,
        "completion": completion,
        "cached": (usage.cached_tokens or 0) if usage else 0,
        "numRequests": requests,
    }


def _stats(table: _Table, info: RunInfo) -> dict[str, Any]:
    reasons = [result["failureReason"] for result in table.results]
    tokens = _tokens(None, 0)
    for result in table.results:
        for key, number in result["tokenUsage"].items():
            tokens[key] += number
    took = round(((info.finished_at or info.started_at) - info.started_at) * 1000)
    return {
        "successes": reasons.count(0),
        "failures": reasons.count(1),
        "errors": reasons.count(2),
        "tokenUsage": tokens,
        "durationMs": took,
        "evaluationDurationMs": took,
    }


def _config(table: _Table, info: RunInfo) -> dict[str, Any]:
    tests: dict[int, dict[str, Any]] = {}
    for result in table.results:
        tests.setdefault(result["testIdx"], result["testCase"])
    return _without_none(
        {
            "description": info.provenance.get("description") or ", ".join(info.paths) or None,
            "prompts": list(dict.fromkeys(column["raw"] for column in table.prompts)),
            "providers": list(dict.fromkeys(column["provider"] for column in table.prompts)),
            "tests": list(tests.values()),
        }
    )


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _time(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
