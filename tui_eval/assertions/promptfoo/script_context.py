"""What every script of a promptfoo suite is given, and how it fails; whatever its language."""

from __future__ import annotations

from typing import Any

from tui_eval import promptfoo_words
from tui_eval.assertions.evidence import Evidence
from tui_eval.assertions.promptfoo.spans import trace_of


class ScriptFailed(Exception):
    """A script threw; the text is one line."""


def context_of(evidence: Evidence, config: Any = None) -> dict[str, Any]:
    """The `context` that scripts get."""
    reply, case = evidence.reply(), evidence.case
    response: dict[str, Any] = {}
    if reply is not None:
        response = {
            "output": reply.text if reply.output is None else reply.output,
            "cost": evidence.cost if reply.cost is None else reply.cost,
            "latencyMs": reply.latency_ms,
            "finishReason": reply.finish_reason,
            "metadata": reply.metadata,
            "guardrails": reply.guardrails,
            "raw": reply.raw if isinstance(reply.raw, str | dict | list) else None,
        }
        if reply.usage is not None:
            prompt, completion = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
            response["tokenUsage"] = {
                "prompt": prompt,
                "completion": completion,
                "total": prompt + completion,
            }
    context: dict[str, Any] = {
        "prompt": evidence.prompt_sent,
        "vars": evidence.vars,
        "test": evidence.test if evidence.test is not None else promptfoo_words.test_of(case),
        "logProbs": reply.log_probs if reply else None,
        "provider": {"id": case.agent} if case.agent else None,
        "providerResponse": {key: value for key, value in response.items() if value is not None},
        "metadata": reply.metadata if reply else None,
        "config": config,
    }
    trace = trace_of(evidence)
    if trace is not None:
        context["trace"] = promptfoo_words.trace_of(trace)
    return {key: value for key, value in context.items() if value is not None}
