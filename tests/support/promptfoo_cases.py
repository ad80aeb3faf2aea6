"""Cases and evidence for promptfoo's assertions, from the rows of the recorded vectors."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from tui_eval.assertions import JudgeInput, JudgeServices, Reports
from tui_eval.model import Assertion, Case, Reply, Turn

_FIELDS = ("threshold", "weight", "metric", "transform", "provider", "config")


def assertion_from(given: dict[str, Any], **more: Any) -> Assertion:
    known = {key: given[key] for key in _FIELDS if key in given}
    extra = {key: value for key, value in given.items() if key not in (*_FIELDS, "type", "value")}
    return Assertion(given["type"], given.get("value", UNSET), **known, extra=extra or None, **more)


def case_with(assertions: list[Assertion], **more: Any) -> Case:
    turns = [Turn("{{prompt}}", assertions)]
    return Case("promptfooconfig.yaml::c", "c", "promptfooconfig.yaml", "promptfoo", turns=turns, **more)


def evidence_for(row: dict[str, Any], services: JudgeServices | None = None) -> JudgeInput:
    output = row["output"]
    metadata = dict(row.get("metadata") or {})
    if "trace" in row:
        metadata["trace"] = row["trace"]
    reply = Reply(
        turn=1,
        text=output if isinstance(output, str) else "",
        output=None if isinstance(output, str) else output,
        metadata=metadata or None,
        cost=row.get("cost"),
        latency_ms=row.get("latencyMs"),
        finish_reason=row.get("finishReason"),
        log_probs=row.get("logProbs"),
        guardrails=row.get("guardrails"),
    )
    options = {}
    provider: Any = None
    if "tools" in row or "functions" in row:
        config = {key: row[key] for key in ("tools", "functions") if key in row}
        provider = {"id": "openai:gpt-4.1", "config": config}
    case = case_with([assertion_from(row["assertion"])], options=options, provider=provider)
    return JudgeInput(
        case,
        [reply],
        capabilities=Reports(True, True, True),
        cost=row.get("cost"),
        vars=row["vars"],
        prompt_sent="P",
        services=services or JudgeServices(),
    )
