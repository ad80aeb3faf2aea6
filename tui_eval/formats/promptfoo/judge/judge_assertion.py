"""Judging one promptfoo assertion: transform, value, check, verdict."""

from __future__ import annotations

import asyncio
from inspect import isawaitable
from math import isfinite
from typing import Any

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput, Judgement
from tui_eval.assertions.judging import added_handler, clip_actual, error_verdict
from tui_eval.formats.promptfoo.judge import expected_values, registry, script_source
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result
from tui_eval.formats.promptfoo.judge.case_output import case_output
from tui_eval.formats.promptfoo.judge.code import add_values_of_file
from tui_eval.guard import figures
from tui_eval.javascript import values as js
from tui_eval.model import Assertion, Reply, Verdict

_LISTS = (".yaml", ".yml")
_SCRIPTS = ("javascript", "python", "ruby")


async def judge(assertion: Assertion, evidence: JudgeInput, judgement: Judgement) -> Verdict:
    """A handler for the registry: one assertion on the reply as the case's transforms leave it."""
    verdict, _ = await judge_output(assertion, evidence, await case_output(evidence))
    return verdict


async def judge_output(assertion: Assertion, evidence: JudgeInput, output: Any) -> tuple[Verdict, Result]:
    """One assertion on an output; a handler's error is raised.

    Raises:
        CannotJudge: an unknown type, one not judged here, one that is not written as it must be.
        NeedsTrust: it runs code or reads a file of a folder that is not trusted.
    """
    kind, inverse = registry.split(assertion.type)
    check = registry.check_for(kind) or added_handler("promptfoo", kind)
    if check is None:
        known = kind in registry.NOT_YET or kind in ("human", *registry.COLUMNS)
        code = "not-supported" if known or kind.startswith("promptfoo:redteam:") else "unknown-type"
        raise CannotJudge(_why_not(assertion.type, kind), code)
    reply = evidence.reply() or Reply(turn=1)
    if assertion.transform:
        output = await expected_values.transformed(assertion.transform, output, evidence)
    value, from_script, file = assertion.value, False, ""
    if evidence.reference and (evidence.case.file or "").endswith(_LISTS):
        value = await expected_values.loaded_early(value, evidence)
    if value is not UNSET:
        if expected_values.is_file(value) and "{{" in value:
            value = expected_values.rendered(value, evidence)
        if expected_values.is_file(value):
            file = value
            try:
                value, from_script = await expected_values.from_file(
                    value, evidence, output, assertion.config
                )
            except expected_values.ScriptFault as fault:
                failed = Result(False, 0.0, str(fault), evidence=[seen.rule("script-failed", str(fault))])
                call = AssertionCall(
                    assertion, evidence, kind, inverse, output, js.text_of(output), value, reply
                )
                return verdict_from(call, failed), failed
        else:
            if isinstance(value, list) and any(map(expected_values.is_file, value)):
                value = await expected_values.with_files(value, evidence)
            value = expected_values.rendered(value, evidence)
    call = AssertionCall(
        assertion, evidence, kind, inverse, output, js.text_of(output), value, reply, from_script
    )
    answer = check(call)
    result = await answer if isawaitable(answer) else answer
    result.score = figures.as_float(result.score)
    if from_script and result.passed is False and kind in _SCRIPTS and result.evidence:
        path, function = expected_values.split_reference(file)
        place, root = expected_values.place(path, evidence), evidence.services.root
        if value is False:
            await add_values_of_file(result, place, function, call)
        await asyncio.to_thread(script_source.add_place, result.evidence, place, root, function, value)
    return verdict_from(call, result), result


def verdict_from(call: AssertionCall, result: Result) -> Verdict:
    """The verdict of a result. A weight of 0 always passes and keeps its score, as promptfoo's does."""
    assertion = call.assertion
    if result.passed is None:
        verdict = error_verdict(assertion, result.reason, result.evidence, actual=result.actual)
        verdict.expected, verdict.judge = clip_actual(call.value), result.judge
        return verdict
    weight = 1.0 if assertion.weight is None else assertion.weight
    expected = call.value
    if expected is UNSET:
        expected = assertion.threshold
    return Verdict(
        type=assertion.type,
        passed=True if weight == 0 else result.passed,
        target=assertion.target,
        expected=clip_actual(expected),
        actual=clip_actual(result.actual if result.actual is not None else call.text),
        score=float(result.score) if isfinite(result.score) else 0.0,
        reason=clip_actual(result.reason),
        weight=weight,
        metric=metric_of(assertion, call.evidence),
        turn=assertion.turn,
        set=assertion.set,
        judge=result.judge,
        line=assertion.line,
        evidence=seen.bounded(result.evidence),
    )


def metric_of(assertion: Assertion, evidence: JudgeInput) -> str | None:
    """The name under which an assertion's score is counted, its template filled in."""
    metric = assertion.metric
    if not metric or "{" not in metric:
        return metric
    return expected_values.rendered(metric, evidence)


def _why_not(full: str, kind: str) -> str:
    if kind in registry.NOT_YET:
        return f"{full} is not judged by this version: it would need {registry.NOT_YET[kind]}"
    if kind == "human":
        return "human is a person's verdict, given in promptfoo's web page; it cannot be configured"
    if kind in registry.COLUMNS:
        return f"{full}: the columns of a test are compared when all of them have run"
    if kind.startswith("promptfoo:redteam:"):
        return f"{full} is promptfoo's red team, which is not judged here"
    return f"Unknown assertion type: {full}"
