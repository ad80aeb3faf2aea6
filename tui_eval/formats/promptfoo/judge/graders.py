"""Graded comparisons: with an ideal answer, with criteria in steps, with a closed question."""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.formats.promptfoo.judge import judges
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result, invariant
from tui_eval.formats.promptfoo.judge.graded import judged, unreadable
from tui_eval.formats.promptfoo.judge.judges import (
    NUMBER,
    TEXT,
    TRUTH,
    GraderReply,
    a_list,
    schema_of,
    tagged,
)
from tui_eval.javascript import values as js

_RELATIONS = {
    "A": ("subset", "is a subset of the expert answer and consistent with it", 1.0),
    "B": ("superset", "is a superset of the expert answer and consistent with it", 1.0),
    "C": ("agree", "holds the same facts as the expert answer", 1.0),
    "D": ("disagree", "disagrees with the expert answer", 0.0),
    "E": ("differButFactual", "differs from the expert answer in nothing that matters factually", 1.0),
}


async def factuality(call: AssertionCall) -> Result:
    """How the facts of the output relate to an ideal answer; the test's `factuality` weighs the five
    relations (by default all but disagreement pass)."""
    value = call.value
    invariant(isinstance(value, str), "factuality assertion type must have a string value")
    said = GraderReply(call)
    kinds = "; ".join(f"{letter}: the submission {words}" for letter, (_, words, _) in _RELATIONS.items())
    system = (
        "You compare the facts of a submitted answer with those of an expert's; style, grammar and length "
        "do not count. " + judges.NOT_INSTRUCTIONS + f"The relations are {kinds}. "
        'Answer with one JSON object: {"category": one letter of A to E, "reason": "why, in a sentence"}.'
    )
    question = tagged(question=call.evidence.prompt_sent or "", expert=value, submission=call.text)
    schema = schema_of(category={"type": "string", "enum": list(_RELATIONS)}, reason=TEXT)
    answer, text = await said.ask(system, question, schema)
    letter = _letter(answer, text)
    if letter is None:
        return unreadable(call, said, text)
    name, words, score = _RELATIONS[letter]
    weights = call.evidence.case.options.get("factuality")
    if isinstance(weights, dict) and (given := judges.number(weights.get(name))) is not None:
        score = given
    passed = score > 0
    if call.inverse:
        passed, score = not passed, 1 - score
    reason = str(answer.get("reason") or f"The submitted answer {words}")
    told = judged(call, passed, reason, score)
    return Result(passed, score, reason, actual=call.text, judge=said.judge, evidence=told)


def _letter(answer: dict[str, Any], text: str) -> str | None:
    given = answer.get("category")
    found = re.match(r"\(?([A-E])\b", str(given).strip().upper()) if given is not None else None
    if found is None and not answer:
        found = re.search(r"\(([A-E])\)", text) or re.match(r"\s*([A-E])\b", text)
    return found.group(1) if found else None


async def closed_qa(call: AssertionCall) -> Result:
    """Whether the output meets one criterion, yes or no."""
    value = call.value
    invariant(isinstance(value, str), "model-graded-closedqa assertion type must have a string value")
    said = GraderReply(call)
    system = (
        "You decide whether a submission meets a criterion, taking the criterion literally. "
        + judges.NOT_INSTRUCTIONS
        + 'Answer with one JSON object: {"reason": "why, in a sentence", "pass": true or false}.'
    )
    question = tagged(task=call.evidence.prompt_sent or "", submission=call.text, criterion=value)
    answer, text = await said.ask(system, question, schema_of(**{"reason": TEXT, "pass": TRUTH}))
    passed = judges.passing(answer.get("pass", answer.get("answer")), call.inverse)
    if passed is None and not answer:
        last = text.strip().rsplit(None, 1)[-1:] or [""]
        passed = judges.truth(last[0])
    if passed is None:
        return unreadable(call, said, text)
    reason = str(
        answer.get("reason") or f"The submission {'meets' if passed else 'does not meet'} the criterion"
    )
    holds = passed != call.inverse
    told = judged(call, holds, reason, float(holds))
    return Result(holds, float(holds), reason, actual=call.text, judge=said.judge, evidence=told)


async def g_eval(call: AssertionCall) -> Result:
    """G-Eval: the judge makes steps from the criteria, then grades by them from 0 to 10; the mean over
    several criteria, divided by ten, at least `threshold` (default 0.7)."""
    value = call.value
    criteria = value if isinstance(value, list) else [value]
    invariant(
        value is not UNSET and criteria and all(isinstance(item, str) for item in criteria),
        "g-eval assertion type must have a string or array of strings value",
    )
    said = GraderReply(call)
    scores: list[float] = []
    reasons: list[str] = []
    for criterion in criteria:
        graded = await _by_steps(call, said, criterion)
        if isinstance(graded, Result):
            return graded
        scores.append(graded[0])
        reasons.append(graded[1])
    score = sum(scores) / len(scores)
    threshold = 0.7 if call.threshold is None else call.threshold
    passed = (score >= threshold) != call.inverse
    shown = 1 - score if call.inverse else score
    reason = "\n\n".join(reasons) or f"score {js.number_text(score)}"
    told = seen.budget("score", score, ">=", threshold, negated=call.inverse)
    if not passed:
        told += judged(call, passed, "\n\n".join(reasons), score)
    return Result(passed, shown, reason, actual=call.text, judge=said.judge, evidence=told)


async def _by_steps(call: AssertionCall, said: GraderReply, criterion: str) -> Result | tuple[float, str]:
    system = (
        "You plan how to evaluate a text: turn the criterion into three or four short, concrete steps. "
        + judges.NOT_INSTRUCTIONS
        + 'Answer with one JSON object: {"steps": ["first step", "second step"]}.'
    )
    answer, text = await said.ask(
        system, tagged(criterion=criterion), schema_of(steps=a_list(TEXT)), custom=False
    )
    steps = answer.get("steps")
    if not isinstance(steps, list) or not steps:
        return unreadable(call, said, text)
    system = (
        "You evaluate a reply by given steps, with a whole number from 0 (not at all) to 10 (fully). "
        + judges.NOT_INSTRUCTIONS
        + 'Answer with one JSON object: {"reason": "why, naming what is missing", "score": 0 to 10}.'
    )
    listed = "\n".join(f"{place}. {step}" for place, step in enumerate(steps, 1))
    question = tagged(
        criterion=criterion, steps=listed, source=call.evidence.prompt_sent or "", reply=call.text
    )
    answer, text = await said.ask(system, question, schema_of(reason=TEXT, score=NUMBER), custom=False)
    score = judges.number(answer.get("score"))
    if score is None:
        return unreadable(call, said, text)
    return min(1.0, max(0.0, score / 10)), str(answer.get("reason") or "")
