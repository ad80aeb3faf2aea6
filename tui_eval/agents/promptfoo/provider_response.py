"""promptfoo's ProviderResponse: what its Python, exec and HTTP providers answer with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tui_eval.agents.base import AgentError, Request, SessionContext
from tui_eval.agents.http.error_answers import fact_first
from tui_eval.agents.http.json_reply import tool_events
from tui_eval.agents.loose_json import encode, one_line, text_of
from tui_eval.config.project import AgentSpec
from tui_eval.events import Event, TextDelta, UsageReport
from tui_eval.guard import figures
from tui_eval.javascript.values import handed
from tui_eval.model import Reply, Usage


def read_response(value: Any, turn: int, *, of_python: bool = False) -> tuple[list[Event], Reply]:
    """The reply of a mapping with `output` or `error`. What Python gives comes as JSON, which has no NaN anywhere.

    Raises:
        AgentError: it has an error, or neither.
    """
    if not isinstance(value, dict) or ("output" not in value and "error" not in value):
        raise AgentError(
            f"the provider must return output or error, not {one_line(encode(value).decode(), 120)}",
            code="no-field",
            said=one_line(encode(value).decode(), 120),
            place="output",
        )
    if value.get("error") not in (None, False, "", 0):  # JavaScript takes an empty object for one, too
        said = text_of(value["error"])
        failed = AgentError(
            one_line(said), answer=text_of(value.get("output")), code="reported", said=fact_first(said)
        )
        raise _spent(failed, value)
    output = value.get("output")
    if not figures.all_finite(value if of_python else [output, value.get("metadata")]):
        held = "NaN or an infinite number"
        what = f"the provider returned {held}, which JSON cannot hold"
        raise _spent(AgentError(what, code="unreadable", said=held), value)
    reply = Reply(turn=turn, text=text_of(output), raw=value.get("raw"), text_missing=output is None)
    if not isinstance(output, str):
        reply.output = output
    if isinstance(value.get("metadata"), dict):
        reply.metadata = value["metadata"]
    if (session := value.get("sessionId")) is not None:  # promptfoo keeps it among the metadata of the row
        reply.metadata = {"sessionId": text_of(session), **(reply.metadata or {})}
    reply.usage = _usage(value.get("tokenUsage"))
    reply.cost = figures.amount(value.get("cost"), "cost")
    reply.latency_ms = figures.amount(value.get("latencyMs"), "latency")
    if isinstance(value.get("finishReason"), str):
        reply.finish_reason = value["finishReason"]
    if isinstance(value.get("guardrails"), dict):
        reply.guardrails = value["guardrails"]
    if isinstance(value.get("logProbs"), list):
        reply.log_probs = value["logProbs"]
    figures.reply(reply)
    events = tool_events((reply.metadata or {}).get("toolCalls"), turn)
    if reply.text:
        events.append(TextDelta(reply.text))
    return events, reply


def _spent(failed: AgentError, value: dict[str, Any]) -> AgentError:
    """The error, with what was paid for it all the same."""
    usage, cost = _usage(value.get("tokenUsage")), figures.amount(value.get("cost"), "cost")
    if usage is not None or cost is not None:
        failed.spent = UsageReport(usage or Usage(), cost)
    return failed


def _usage(told: Any) -> Usage | None:
    if not isinstance(told, dict):
        return None
    usage = Usage(
        figures.count(told.get("prompt"), "input tokens"),
        figures.count(told.get("completion"), "output tokens"),
        figures.count(told.get("cached"), "cached tokens"),
    )
    if usage.input_tokens is None and usage.output_tokens is None:
        # Only a total is known: it counts, as input, rather than vanish.
        usage.input_tokens = figures.count(told.get("total"), "tokens")
    return usage


def provider_options(spec: AgentSpec, root: Path) -> dict[str, Any]:
    """The `options` of a provider that is a script: what its entry says, and the suite's folder as `basePath`."""
    given = spec.options
    label = {"label": given["label"]} if given.get("label") else {}
    config = {**(given.get("config") or {}), "basePath": spec.base or str(root)}
    return {
        "id": given.get("id") or spec.name,
        **label,
        "config": config,
        "env": given.get("provider_env") or {},
    }


def call_context(request: Request, context: SessionContext) -> dict[str, Any]:
    """The `context` argument of a provider."""
    prompt, values = prompt_of(request), handed(request.vars or context.vars)
    found = {
        "vars": values,
        "prompt": context.prompt or {"raw": prompt, "label": context.label or prompt},
        "test": {"options": {}, "metadata": {}, **(context.test or {"vars": values})},
        "repeatIndex": context.attempt - 1,
        "evaluationId": context.evaluation_id or context.session_id,
    }
    if context.trace is not None:
        found["traceparent"] = context.trace.traceparent
        found["evaluationId"] = context.trace.evaluation_id
        found["testCaseId"] = context.trace.test_case_id
        test = found["test"]
        told = {"tracingEnabled": True, "evaluationId": context.trace.evaluation_id}
        found["test"] = {**test, "metadata": {**(test.get("metadata") or {}), **told}}
    return found


def prompt_of(request: Request) -> str:
    """The prompt as providers get it: text, or a chat as JSON."""
    if request.text is not None:
        return request.text
    return text_of(request.messages) if request.messages else ""
