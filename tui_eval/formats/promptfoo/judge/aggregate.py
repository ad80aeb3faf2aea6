"""From promptfoo's verdicts to the row: weights, thresholds, assert-sets, named scores."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput, Judgement
from tui_eval.assertions.judging import (
    assertions_of,
    clip_actual,
    error_verdict,
    expected_of,
    judge_one,
    message_of,
)
from tui_eval.causes import counting
from tui_eval.formats.promptfoo.judge import code, expected_values, judge_assertion, registry
from tui_eval.formats.promptfoo.judge.assertion_call import Result
from tui_eval.formats.promptfoo.judge.expected_values import case_output
from tui_eval.formats.promptfoo.judge.script_results import ScriptFailed, ScriptLost, is_grading, numbers
from tui_eval.formats.promptfoo.promptfoo_words import beside, components_of
from tui_eval.guard import figures
from tui_eval.guard.trust import NeedsTrust
from tui_eval.javascript import values as js
from tui_eval.model import NOT_COMPARED, Assertion, Evidence, Outcome, Verdict

# -- assertScoringFunction: a suite's own function decides what the named scores of a test add up to.


_ERROR = "Scoring function error: "


@dataclass(frozen=True, slots=True)
class OwnScore:
    """What an `assertScoringFunction` says; `named_scores` None leaves them as they are."""

    passed: bool
    score: float
    reason: str
    named_scores: dict[str, float] | None = None


async def own_score(
    evidence: JudgeInput, named: dict[str, float], verdicts: list[Verdict]
) -> OwnScore | None:
    """What the test's `assertScoringFunction` gives; None where the test has none.

    It is called with the named scores and `{threshold, componentResults, tokensUsed}`, the judges' tokens. What is no
    grading result fails with score 0, as in promptfoo.

    Raises:
        NeedsTrust: it is code of a folder that is not trusted.
        ScriptLost: it came to no end.
    """
    reference = beside(evidence.case, "assertScoringFunction")
    if not isinstance(reference, str) or not reference:
        return None
    parts = components_of(evidence.case.asserted, verdicts)
    usage = figures.usage_sum([verdict.judge.get("usage") for verdict in verdicts if verdict.judge])
    prompt, completion = (usage.input_tokens or 0, usage.output_tokens or 0) if usage else (0, 0)
    context: dict[str, Any] = {
        "componentResults": [
            part for part in parts if part.get("assertion", {}).get("type") not in registry.COLUMNS
        ],
        "tokensUsed": {
            "total": figures.tokens(prompt, completion) or 0,
            "prompt": prompt,
            "completion": completion,
        },
    }
    if evidence.case.threshold is not None:
        context["threshold"] = evidence.case.threshold
    try:
        value = await _call(reference, [named, context], evidence)
    except ScriptLost:
        raise
    except (ScriptFailed, CannotJudge) as error:
        return OwnScore(False, 0.0, f"{_ERROR}{error}")
    if isinstance(value, dict) and is_grading(value) and figures.is_finite(score := value["score"]):
        own = numbers(value["namedScores"]) if isinstance(value.get("namedScores"), dict) else None
        return OwnScore(value["pass"], float(score), value["reason"], own)
    return OwnScore(False, 0.0, f"{_ERROR}assertion scoring function must return a GradingResult")


async def _call(reference: str, arguments: list[Any], evidence: JudgeInput) -> Any:
    if not expected_values.is_file(reference):
        names: dict[str, Any] = {"namedScores": arguments[0], "context": arguments[1]}
        value = await code.run_javascript(reference, names, evidence)
        return None if value is UNSET else value
    path, function = expected_values.split_reference(reference)
    target = expected_values.place(path, evidence)
    default = "func" if target.suffix == ".py" else "default"
    return await code.call_file_with(
        target, function or default, evidence, arguments, module_default=function is None
    )


ASSERT_SET = "assert-set"
_BELOW = "score"
"""The code of a score below its threshold."""


@dataclass(slots=True)
class Tally:
    """Scores and weights added up; `named` keeps (score·weight, weight) by metric."""

    threshold: float | None = None
    reference: bool = False
    score: float = 0.0
    weight: float = 0.0
    count: int = 0
    failed: bool = False
    error: bool = False
    forced: bool = False
    reason: str = ""
    error_weight: float = 0.0
    named: dict[str, list[float]] = field(default_factory=dict)

    def add(self, verdict: Verdict, score: float | None = None, inner: Tally | None = None) -> None:
        """Count one verdict (of an assertion, or of a whole set, whose members are `inner`); `score` where it is
        no finite number."""
        self.count += 1
        self.score += (verdict.score if score is None else score) * verdict.weight
        self.weight += verdict.weight
        if verdict.passed is None:
            self.error = True
            self.error_weight += verdict.weight
        elif inner is not None and inner.error:  # it failed by another member
            self.error = True
            self.error_weight += (inner.best - inner.mean) * verdict.weight
        if verdict.passed is False:
            # promptfoo takes from the reason whether anything failed: an empty one is none.
            self.failed = bool(verdict.reason) or not self.reference
            self.reason = verdict.reason
        if verdict.metric:
            self.name(verdict.metric, verdict.score, verdict.weight)

    def name(self, metric: str, score: float, weight: float) -> None:
        """Count a score under a name."""
        total = self.named.setdefault(metric, [0.0, 0.0])
        total[0] += score * weight
        total[1] += weight

    @property
    def mean(self) -> float:
        """Σ(score·weight) / Σweight; 0 where the weights do not add up to more than 0."""
        return self.score / self.weight if self.weight > 0 else 0.0

    @property
    def best(self) -> float:
        """The mean if everything that could not be judged had scored 1."""
        return (self.score + self.error_weight) / self.weight if self.weight > 0 else 0.0

    @property
    def named_scores(self) -> dict[str, float]:
        """The weighted mean of each name."""
        return {name: total / weight if weight > 0 else 0.0 for name, (total, weight) in self.named.items()}

    @property
    def passed(self) -> bool | None:
        """With a threshold the mean alone decides, else that nothing failed.

        What could not be judged never makes a pass: None, unless even a full score there would
        have failed.
        """
        if self.forced and not self.error:
            return True
        if self.threshold is not None:
            if self.error:
                return None if self.best >= self.threshold else False
            return self.mean >= self.threshold
        if self.failed:
            return False
        return None if self.error else True

    @property
    def text(self) -> str:
        """Why, in promptfoo's words."""
        if self.forced and not self.error:
            return "Content failed guardrail safety checks"
        if self.threshold is not None and not self.error:
            sign = "≥" if self.mean >= self.threshold else "<"
            mean = f"{js.fixed(self.mean, 2)}" if math.isfinite(self.mean) else js.number_text(self.mean)
            return f"Aggregate score {mean} {sign} {js.number_text(self.threshold)} threshold"
        return self.reason if self.failed else "All assertions passed"


async def judge_case(evidence: JudgeInput) -> Judgement:
    """Judge all assertions of a promptfoo case and add them up (formats/promptfoo.md 8)."""
    assertions = list(assertions_of(evidence.case))
    judgement = evidence.begun = Judgement()
    try:
        async with evidence.services.in_time("transform"):
            output = await case_output(evidence)
    except (CannotJudge, NeedsTrust) as error:
        return _not_judged(assertions, judgement, str(error), seen.error(error))
    reply = evidence.reply()
    if reply is not None and reply.text_missing:
        return _without_output(assertions, judgement)
    if reply is None or output is not (reply.text if reply.output is None else reply.output):
        judgement.response_text = js.text_of(output)
        judgement.output = None if isinstance(output, str) else output
    if not assertions:
        judgement.message = "No assertions" if evidence.reference else message_of([])
        return judgement
    reference = evidence.reference
    tally = Tally(evidence.case.threshold, reference)
    sets: dict[int, Tally] = {}
    for index, assertion in enumerate(assertions):
        if assertion.type in registry.COLUMNS:
            judgement.verdicts.append(
                error_verdict(assertion, NOT_COMPARED, [seen.rule("later", NOT_COMPARED)])
            )
            judgement.open = True
            continue
        if assertion.type == ASSERT_SET:
            sets[index] = Tally(_number(assertion.threshold), reference)
            judgement.verdicts.append(_set_verdict(assertion, sets[index], evidence))
            continue
        inner = None if assertion.set is None else sets.get(assertion.set)
        verdict, result = await _judge_in_row(assertion, evidence, output, judgement)
        judgement.verdicts.append(verdict)
        target = tally if inner is None else inner
        if result is None:
            target.add(verdict)
            continue
        target.add(verdict, None if math.isfinite(result.score) else result.score)
        for name, score in result.named_scores.items():
            if name != verdict.metric:  # which has the assertion's own score
                target.name(name, score, verdict.weight * result.named_weights.get(name, 1.0))
        tally.forced = tally.forced or result.forces_pass
    for index, inner in sets.items():
        verdict = _finish_set(judgement.verdicts[index], assertions[index], inner)
        tally.add(verdict, inner=inner)
        for name, (total, weight) in inner.named.items():
            if name != verdict.metric:
                tally.name(name, total / weight if weight > 0 else 0.0, weight * verdict.weight)
    judgement = _finish(judgement, tally, reference)
    if not tally.error:
        await _own_score(judgement, evidence)
    if judgement.open and not evidence.services.compares_columns and judgement.outcome == "passed":
        judgement.outcome, judgement.message = "error", NOT_COMPARED
    return judgement


async def _own_score(judgement: Judgement, evidence: JudgeInput) -> None:
    """The suite's `assertScoringFunction` has the last word."""
    try:
        async with evidence.services.in_time("assertScoringFunction"):
            own = await own_score(evidence, judgement.named_scores, judgement.verdicts)
    except (NeedsTrust, ScriptLost, CannotJudge) as error:
        judgement.outcome, judgement.score, judgement.message = "error", 0.0, str(error)
        judgement.evidence = [seen.error(error)]
        return
    if own is not None:
        judgement.score, judgement.message = own.score, own.reason
        judgement.outcome = "passed" if own.passed else "failed"
        judgement.evidence = None if own.passed else [seen.rule("script", own.reason, actual=own.score)]
        if own.named_scores is not None:
            judgement.named_scores = own.named_scores


async def _judge_in_row(
    assertion: Assertion, evidence: JudgeInput, output: Any, judgement: Judgement
) -> tuple[Verdict, Result | None]:
    """A verdict, and what its handler answered; None where that raised."""
    found: Result | None = None

    async def on_output(assertion: Assertion, evidence: JudgeInput, _: Judgement) -> Verdict:
        nonlocal found
        verdict, found = await judge_assertion.judge_output(assertion, evidence, output)
        return verdict

    verdict = await judge_one(on_output, assertion, evidence, judgement)
    verdict = verdict or error_verdict(assertion, f"{assertion.type}: not judged")
    if verdict.passed is None:  # counted under the name that it has where it can be judged
        with suppress(NeedsTrust):
            verdict.metric = judge_assertion.metric_of(assertion, evidence)
    return verdict, found


def _set_verdict(assertion: Assertion, tally: Tally, evidence: JudgeInput) -> Verdict:
    weight = 1.0 if assertion.weight is None else assertion.weight
    return Verdict(
        type=ASSERT_SET,
        passed=None,
        target=assertion.target,
        expected=tally.threshold if tally.threshold is not None else expected_of(assertion),
        weight=weight,
        metric=judge_assertion.metric_of(assertion, evidence),
        turn=assertion.turn,
        line=assertion.line,
    )


def _finish_set(verdict: Verdict, assertion: Assertion, inner: Tally) -> Verdict:
    verdict.score = _finite(inner.mean)
    verdict.actual = clip_actual(inner.mean)
    verdict.passed = inner.passed
    verdict.reason = inner.text if inner.count else "No assertions"
    verdict.evidence = _decided(inner) or [seen.rule("members" if inner.count else "holds")]
    if verdict.passed is None:
        verdict.reason = "an assertion of this set could not be judged"
    return verdict


def _finish(judgement: Judgement, tally: Tally, reference: bool) -> Judgement:
    passed = tally.passed
    judgement.score = _finite(tally.mean)
    judgement.named_scores = tally.named_scores
    judgement.named_weights = {name: weight for name, (_, weight) in tally.named.items()}
    outcome: Outcome = "error" if passed is None else "passed" if passed else "failed"
    if reference and tally.error:
        # promptfoo keeps nothing of a row in which an assertion threw.
        outcome, judgement.score = "error", 0.0
        judgement.named_scores, judgement.named_weights = {}, {}
    judgement.outcome = outcome
    if outcome == "failed":
        judgement.evidence = _decided(tally)
    if reference:
        judged = [verdict for verdict in judgement.verdicts if verdict.reason != NOT_COMPARED]
        errors = [verdict.reason for verdict in judged if verdict.passed is None]
        judgement.message = errors[0] if errors else tally.text
        return judgement
    texts = [] if tally.threshold is None or tally.error else [tally.text]
    if outcome != "passed":
        # A set repeats what its members say, unless its threshold decided.
        shown = [
            v
            for v in counting(judgement.verdicts)
            if v.reason != NOT_COMPARED and (v.type != ASSERT_SET or _by_threshold(v))
        ]
        texts.append(message_of(shown))
    judgement.message = "; ".join(text for text in texts if text != "passed") or "passed"
    return judgement


def _by_threshold(of_set: Verdict) -> bool:
    """Whether a set says something of its own, not what its members say."""
    return bool(of_set.evidence) and of_set.evidence[0].code == _BELOW


def _decided(tally: Tally) -> list[Evidence] | None:
    """The score that decided instead of the single verdicts."""
    if tally.threshold is None or tally.error:
        return None
    code = "within" if tally.mean >= tally.threshold else _BELOW
    return [seen.budget_of("score", _finite(tally.mean), ">=", tally.threshold, code)]


def _not_judged(assertions: list[Assertion], judgement: Judgement, why: str, evidence: Evidence) -> Judgement:
    judgement.verdicts = [error_verdict(assertion, why, [evidence]) for assertion in assertions]
    judgement.evidence = [evidence]
    judgement.outcome, judgement.score, judgement.message = "error", 0.0, why
    return judgement


def _without_output(assertions: list[Assertion], judgement: Judgement) -> Judgement:
    """A provider that answers without an output fails the test, whatever is asserted of it."""
    judgement = _not_judged(assertions, judgement, "No output", seen.rule("no-output"))
    for verdict in judgement.verdicts:
        verdict.passed = False
    judgement.outcome = "failed"
    return judgement


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
