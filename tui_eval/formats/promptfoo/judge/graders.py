"""Graded comparisons: with an ideal answer, with criteria in steps, with a closed question."""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.formats.promptfoo.judge import judges
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result, invariant
from tui_eval.formats.promptfoo.judge.graded import judged, unreadable
from tui_eval.formats.promptfoo.judge.json_objects import placed_objects
from tui_eval.formats.promptfoo.judge.judges import (
    NUMBER,
    TEXT,
    TRUTH,
    GraderReply,
    QuestionParts,
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
    asked = QuestionParts({"input": call.evidence.prompt_sent or "", "ideal": value, "completion": call.text})
    if call.evidence.reference:
        letter, why = _category_there(said, await said.text(system, question, asked))
    else:
        answer, text = await said.ask(system, question, schema, asked)
        letter, why = _letter(answer, text), str(answer.get("reason") or "")
        if letter is None:
            return unreadable(call, said, text)
    name, words, score = _RELATIONS[letter]
    weights = call.evidence.case.options.get("factuality")
    if isinstance(weights, dict) and (given := judges.number(weights.get(name))) is not None:
        score = given
    passed = score > 0
    if call.inverse:
        passed, score = not passed, 1 - score
    reason = why or f"The submitted answer {words}"
    told = judged(call, passed, reason, score)
    return Result(passed, score, reason, actual=call.text, judge=said.judge, evidence=told)


def _letter(answer: dict[str, Any], text: str) -> str | None:
    """The one relation that the judge names; None where it names none, or several."""
    given = answer.get("category")
    if given is None:
        if answer:
            return None
        text = text.strip()
        found = re.findall(r"\(([A-E])\)", text) or re.findall(r"^([A-E])(?=[).:,;*-]|\s*$|\s+[-–—])", text)
    else:
        text = str(given).strip()
        first = re.match(r"\(?([A-E])\b", text.upper())  # "B. A superset" has an article
        found = [first[1], *re.findall(r"\b(?:[B-E]\b|A\b(?!\s+[a-z]))", text)] if first else []
    return found[0] if len(set(found)) == 1 else None


def _category_there(said: GraderReply, text: str) -> tuple[str, str]:
    """The relation and the reason as promptfoo 0.121.20 reads them (`matchesFactuality`): an object with one letter,
    whose reason is a text if any; else the first letter before a closing bracket.

    Raises:
        GraderFailed: it finds neither, or another letter.
    """
    found = next((value for _, value in placed_objects(text)), None)
    found = found if isinstance(found, dict) else {}
    category, reason = found.get("category"), found.get("reason")
    if isinstance(category, str) and category and (reason is None or isinstance(reason, str)):
        letter = js.trim(category).upper()
        if letter not in _RELATIONS:
            raise said.failed(f"Invalid category value: {letter}")
        return letter, js.trim(reason or "")
    match = re.search(r"([a-eA-E])\)", text)
    if match is None:
        raise said.failed(f"Factuality checker output did not match expected format: {text}")
    return match[1].upper(), js.trim(text.partition(")")[2]) or text


async def closed_qa(call: AssertionCall) -> Result:
    """Whether the output meets one criterion, yes or no."""
    value = call.value
    invariant(isinstance(value, str), "model-graded-closedqa assertion type must have a string value")
    said = GraderReply(call)
    system = (
        "You decide whether a submission meets a criterion, taking the criterion literally. "
        + judges.NOT_INSTRUCTIONS
    )
    question = tagged(task=call.evidence.prompt_sent or "", submission=call.text, criterion=value)
    asked = QuestionParts(
        {"input": call.evidence.prompt_sent or "", "criteria": value, "completion": call.text}
    )
    if call.evidence.reference:
        system += "Say why, then on a last line only Y or N."
        return _closed_there(call, said, await said.text(system, question, asked))
    system += 'Answer with one JSON object: {"reason": "why, in a sentence", "pass": true or false}.'
    answer, text = await said.ask(system, question, schema_of(**{"reason": TEXT, "pass": TRUTH}), asked)
    passed = judges.passing(answer.get("pass", answer.get("answer")), call.inverse)
    if passed is None and not answer:
        passed = _said_last(text)
    if passed is None:
        return unreadable(call, said, text)
    reason = str(
        answer.get("reason") or f"The submission {'meets' if passed else 'does not meet'} the criterion"
    )
    holds = passed != call.inverse
    told = judged(call, holds, reason, float(holds))
    return Result(holds, float(holds), reason, actual=call.text, judge=said.judge, evidence=told)


_LAST = re.compile(r"(?:.*(?:[:=→–—]|\s-(?=\s)))?[\s\"'`*_(]*(\w+)[\s\"'`*_).!]*")
"""A line that is one word, or what stands behind a label."""
_LETTER = re.compile(r"(?<!\bnot )(?<!n't )(?<!n’t )\b([YN])[\"'`*_).!]*\s*\Z")


def _said_last(text: str) -> bool | None:
    """Yes or no as the end of a reply without an object: its last line, or the letter it ends in. The last word of a
    sentence is none ("it does not pass")."""
    line = next((one for one in reversed(text.splitlines()) if one.strip()), "")
    word = _LAST.fullmatch(line.strip()) if len(line) <= _LONGEST_LINE else None
    decided = judges.truth(word[1]) if word else None
    letter = _LETTER.search(line[-_LONGEST_LINE:]) if decided is None else None
    return letter[1] == "Y" if letter else decided


_LONGEST_LINE = 200


def _closed_there(call: AssertionCall, said: GraderReply, text: str) -> Result:
    """`matchesClosedQa` of promptfoo 0.121.20: the reply ends in Y, and all others fail."""
    end = text.rstrip(js.WHITESPACE)[-1:]
    passed = end == "Y"
    what = "The submission meets the criterion" if passed else "The submission does not meet the criterion"
    if end not in ("Y", "N"):
        what = "Model grader produced a malformed response"
    reason = f"{what}:\n{text}"
    told = judged(call, passed, reason, float(passed))
    return Result(passed, float(passed), reason, actual=call.text, judge=said.judge, evidence=told)


async def g_eval(call: AssertionCall) -> Result:
    """G-Eval: the judge makes steps from the criteria, then grades by them from 0 to 10; the mean over
    several criteria, divided by ten, at least `threshold` (default 0.7)."""
    value = call.value
    criteria = value if isinstance(value, list) else [value]
    if value == [] and call.evidence.reference:
        reason = "G-Eval assertion requires at least one criterion string in the value array."
        return Result(False, 0.0, reason, actual=call.text)
    invariant(
        value is not UNSET and criteria and all(isinstance(item, str) for item in criteria),
        "g-eval assertion type must have a string or array of strings value",
    )
    said = GraderReply(call)
    scores: list[float] = []
    reasons: list[str] = []
    for number, criterion in enumerate(criteria, 1):
        try:
            graded = await _by_steps(call, said, criterion)
        except judges.GraderFailed as error:
            if not isinstance(value, list):
                raise
            raise said.failed(
                f"G-Eval criterion {number}/{len(value)} ({js.json_text(criterion)}) failed: {error}"
            ) from None
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
        if not call.evidence.reference and any(reasons):  # the judge's words alone may be praise
            word = "reaches" if call.inverse else "is below"
            reason = f"score {js.number_text(score)} {word} the threshold {js.number_text(threshold)}; the judge: {reason}"
    return Result(passed, shown, reason, actual=call.text, judge=said.judge, evidence=told)


async def _by_steps(call: AssertionCall, said: GraderReply, criterion: str) -> Result | tuple[float, str]:
    system = (
        "You plan how to evaluate a text: turn the criterion into three or four short, concrete steps. "
        + judges.NOT_INSTRUCTIONS
        + 'Answer with one JSON object on one line: {"steps": ["first step", "second step"]}.'
    )
    there, question, own = call.evidence.reference, tagged(criterion=criterion), {"criteria": criterion}
    asked = QuestionParts(own, beside=False, part="steps")
    if there:
        steps = _steps_there(said, await said.output(system, question, None, asked))
    else:
        answer, text = await said.ask(system, question, schema_of(steps=a_list(TEXT)), asked)
        steps = answer.get("steps")
        if not isinstance(steps, list) or not steps:
            return unreadable(call, said, text)
    system = (
        "You evaluate a reply by given steps, with a whole number from 0 (not at all) to 10 (fully). "
        + judges.NOT_INSTRUCTIONS
        + 'Answer with one JSON object on one line: {"reason": "why, naming what is missing", "score": 0 to 10}.'
    )
    listed = "\n".join(f"{place}. {step}" for place, step in enumerate(steps, 1))
    question = tagged(
        criterion=criterion, steps=listed, source=call.evidence.prompt_sent or "", reply=call.text
    )
    own |= {"steps": "\n- ".join(map(js.text_of, steps)), "maxScore": "10"}
    sent = call.evidence.prompt_sent or ""
    own |= {"input": judges.read_as_json(sent) if there else sent, "output": call.text}
    asked = QuestionParts(own, beside=False, part="evaluate")
    if there:
        return _score_there(said, await said.output(system, question, None, asked))
    answer, text = await said.ask(system, question, schema_of(reason=TEXT, score=NUMBER), asked)
    score = judges.number(answer.get("score"), 10)
    if score is None or not 0 <= score <= 10:  # of another scale: what would it be of ten?
        return unreadable(call, said, text)
    return score / 10, str(answer.get("reason") or "")


_STEPS = re.compile(r'\{"steps"[^\n\r\u2028\u2029]+\}')
_OBJECT = re.compile(r"\{[^\n\r\u2028\u2029]+\}")
"""As JavaScript's dot, which ends at a line's end."""


def _on_one_line(said: GraderReply, output: Any, pattern: re.Pattern[str], what: str) -> dict[str, Any]:
    """The object that a reply has on one line, as promptfoo 0.121.20 finds it (`matchesGEval`).

    Raises:
        GraderFailed: there is none, or what stands there is no JSON.
    """
    if not isinstance(output, str):
        raise said.failed(f"{what} response is not a string")
    match = pattern.search(output)
    if match is None:
        raise said.failed(f"{what} not in JSON format: {output}")
    try:
        return js.parse_json(match[0])
    except (ValueError, RecursionError) as error:
        raise said.failed(f"{what} not in JSON format: {error}\n\n{output}") from None


def _steps_there(said: GraderReply, output: Any) -> list[str]:
    steps = _on_one_line(said, output, _STEPS, "LLM-proposed evaluation steps are").get("steps")
    if not isinstance(steps, list):
        raise said.failed(f"G-Eval steps response has invalid or missing steps: {js.json_text(steps)}")
    if not steps:
        raise said.failed("LLM does not propose any evaluation step")
    if not all(isinstance(step, str) and js.trim(step) for step in steps):
        raise said.failed(f"G-Eval steps response contains invalid steps: {js.json_text(steps)}")
    return steps


def _score_there(said: GraderReply, output: Any) -> tuple[float, str]:
    found = _on_one_line(said, output, _OBJECT, "LLM-proposed evaluation result is")
    given, reason = found.get("score"), found.get("reason")
    is_figure = isinstance(given, int | float | str) and not isinstance(given, bool)
    score = js.number(given) if is_figure and given != "" else math.nan
    if not math.isfinite(score) or (isinstance(given, str) and not js.trim(given)):
        raise said.failed(f"G-Eval result has invalid or missing score: {js.json_text(given)}")
    if not 0 <= score <= 10:
        raise said.failed(f"G-Eval result score {js.number_text(score)} is outside the expected 0-10 range")
    if not isinstance(reason, str) or not js.trim(reason):
        raise said.failed(f"G-Eval result has invalid or missing reason: {js.json_text(reason)}")
    return score / 10, reason
