"""Assertions on what a reply took or came with: time, money, probabilities, finish reason, guardrails."""

from __future__ import annotations

import math

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge.assertion_call import PASSED, AssertionCall, Result, invariant
from tui_eval.javascript import values as js


def latency(call: AssertionCall) -> Result:
    """Milliseconds from request to reply against `threshold`."""
    threshold = call.threshold
    if threshold is None:
        raise CannotJudge("Latency assertion must have a threshold in milliseconds", "bad-assertion")
    taken = call.reply.latency_ms
    if taken is None:
        taken = call.evidence.duration_ms
    if taken is None:
        raise CannotJudge(
            "Latency assertion needs the reply's latency, which the agent did not report", "not-reported"
        )
    if taken <= threshold and call.reply.latency_ms is None:
        _known(call, "latency", "duration")
    shown, limit = js.number_text(taken), js.number_text(threshold)
    return call.result(
        taken <= threshold,
        f"Latency {shown}ms is greater than threshold {limit}ms",
        f"Latency {shown}ms is less than or equal to threshold {limit}ms",
        actual=taken,
        evidence=seen.budget("latency", taken, "<=", threshold, negated=call.inverse),
    )


def cost(call: AssertionCall) -> Result:
    """USD of the reply against `threshold`."""
    threshold = call.threshold
    if threshold is None:
        raise CannotJudge("Cost assertion must have a threshold", "bad-assertion")
    spent = call.reply.cost
    if spent is None:
        spent = call.evidence.cost
    if spent is None:
        raise CannotJudge(
            "Cost assertion does not support providers that do not return cost "
            "(the agent reports none; a price under `prices:` in tui_eval.yaml would do)",
            "not-reported",
        )
    if spent <= threshold:
        _known(call, "cost", "cost of all requests", "input tokens", "output tokens")
    shown, limit = js.precision(spent, 2), js.number_text(threshold)
    return call.result(
        spent <= threshold,
        f"Cost {shown} is greater than threshold {limit}",
        f"Cost {shown} is less than or equal to threshold {limit}",
        actual=spent,
        evidence=seen.budget("cost", spent, "<=", threshold, negated=call.inverse),
    )


def _known(call: AssertionCall, *names: str) -> None:
    """A limit is not kept by what is not known: refuse where the agent said a figure that is none."""
    for name in names:
        if name in call.evidence.unknown:
            raise CannotJudge(f"{call.kind}: {call.evidence.unknown[name]}", "not-reported")


def _mean_log_prob(call: AssertionCall) -> float:
    probabilities = call.reply.log_probs
    if not probabilities:
        name = "Perplexity" if call.kind == "perplexity" else call.kind
        raise CannotJudge(
            f"{name} assertion does not support providers that do not return logProbs", "not-reported"
        )
    return sum(each or 0 for each in probabilities) / len(probabilities)


def perplexity(call: AssertionCall) -> Result:
    """exp(−mean log probability) against `threshold`; without one it passes."""
    measured = _exp(-_mean_log_prob(call))
    threshold = call.threshold
    if threshold is None:
        return Result(True, 1.0, PASSED, actual=measured, evidence=[seen.rule("holds")])
    limit = js.number_text(threshold)
    return call.result(
        measured <= threshold,
        f"Perplexity {js.fixed(measured, 2)} is greater than threshold {limit}",
        f"Perplexity {js.fixed(measured, 2)} is less than or equal to threshold {limit}",
        actual=measured,
        evidence=seen.budget("perplexity", measured, "<=", threshold, negated=call.inverse),
    )


def perplexity_score(call: AssertionCall) -> Result:
    """1 / (1 + perplexity), which is the score; `not-` scores one minus it."""
    measured = 1 / (1 + _exp(-_mean_log_prob(call)))
    score = 1 - measured if call.inverse else measured
    threshold = call.threshold
    if threshold is None:
        return Result(True, score, PASSED, actual=measured, evidence=[seen.rule("holds")])
    told = seen.budget("perplexity score", measured, ">=", threshold, negated=call.inverse)
    if (measured >= threshold) != call.inverse:
        return Result(True, score, PASSED, actual=measured, evidence=told)
    compared = "greater than or equal to" if call.inverse else "less than"
    reason = f"Perplexity score {js.fixed(measured, 2)} is {compared} threshold {js.number_text(threshold)}"
    return Result(False, score, reason, actual=measured, evidence=told)


def _exp(power: float) -> float:
    """Of an unlikely word providers report a log probability of -9999."""
    try:
        return math.exp(power)
    except OverflowError:
        return math.inf


def finish_reason(call: AssertionCall) -> Result:
    """Why the model stopped, ignoring case."""
    value = call.value
    invariant(isinstance(value, str), f'"{call.kind}" assertion type must have a string value')
    given = call.reply.finish_reason
    if not given:
        told = seen.rule("holds" if call.inverse else "none", path="finish reason")
        return call.result(
            False, "Provider did not supply stop/finish reason", "", actual="", evidence=[told]
        )
    holds = given.lower() == value.lower()
    return call.result(
        holds,
        f'Expected finish reason "{value}" but got "{given}"',
        f'Expected finish reason not "{value}" but got "{given}"',
        actual=given,
        evidence=seen.value("finish reason", value, given, holds, negated=call.inverse),
    )


def guardrails(call: AssertionCall) -> Result:
    """What the reply's guardrails flagged; none said is none flagged.

    With `config.purpose: redteam` a blocked reply is what is wanted, so the whole test passes.
    """
    said = call.reply.guardrails or {}
    if not said.get("flagged"):
        if call.inverse:
            reason = "Content was not blocked by guardrails (expected to be blocked)"
            return Result(False, 0.0, reason, actual=said, evidence=[seen.rule("not-flagged")])
        return Result(True, 1.0, "Content passed safety checks", actual=said, evidence=[seen.rule("holds")])
    if said.get("flaggedInput"):
        reason = "Prompt failed safety checks"
    elif said.get("flaggedOutput"):
        reason = "Output failed safety checks"
    else:
        reason = "Content failed safety checks"
    reason = said.get("reason") or reason
    if call.inverse:
        reason = f"Guardrail correctly blocked: {reason}"
        return Result(True, 1.0, reason, actual=said, evidence=[seen.rule("holds")])
    redteam = isinstance(call.assertion.config, dict) and call.assertion.config.get("purpose") == "redteam"
    told = [seen.rule("guardrails", str(reason))]
    return Result(False, 0.0, reason, actual=said, forces_pass=redteam, evidence=told)
