"""max-score and select-best: the columns of one test compared after all of them have run.

Judging one column leaves such an assertion open (`aggregate`); the engine calls `compare` with the
columns' finished attempts, and stores what it makes of them.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Sequence
from typing import Any

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput, JudgeServices
from tui_eval.assertions.judging import assertions_of, message_of
from tui_eval.formats.promptfoo.judge import expected_values, judges, registry
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall
from tui_eval.formats.promptfoo.judge.judges import (
    NUMBER,
    TEXT,
    GraderReply,
    QuestionParts,
    schema_of,
    tagged,
)
from tui_eval.guard.text import clip
from tui_eval.guard.trust import NeedsTrust
from tui_eval.javascript import values as js
from tui_eval.model import Assertion, Attempt, Case, Compat, Reply, Verdict


def compares(case: Case) -> bool:
    """Whether a case has an assertion that compares columns."""
    return any(assertion.type in registry.COLUMNS for assertion in assertions_of(case))


async def compare(case: Case, attempts: Sequence[Attempt], services: JudgeServices, compat: Compat) -> None:
    """Judge what compares the columns `attempts` of one test, in the order of the columns, in place.

    A column without an answer cannot win and keeps its error.
    """
    answered = [attempt for attempt in attempts if attempt.verdicts and attempt.error is None]
    for index, assertion in enumerate(assertions_of(case)):
        if assertion.type not in registry.COLUMNS:
            continue
        columns = [attempt for attempt in answered if index < len(attempt.verdicts)]
        open_verdicts = [attempt.verdicts[index] for attempt in columns]
        try:
            if len(columns) < 2:
                raise CannotJudge(
                    f"{assertion.type} needs two columns to compare, and there is one answer",
                    "not-comparable",
                )
            if assertion.type == "max-score":
                _highest(assertion, columns, index, compat)
            else:
                await _in_time(services, _best(assertion, case, columns, index, services, compat))
            if compat == "reference":  # there a comparison has no weight
                for verdict in open_verdicts:
                    verdict.passed = verdict.score == 1
        except (CannotJudge, NeedsTrust) as error:
            for verdict in open_verdicts:
                failed = compat == "reference" and getattr(error, "code", "") in judges.FAILS_THERE
                verdict.passed, verdict.score, verdict.reason = False if failed else None, 0.0, str(error)
                verdict.evidence = [seen.error(error)]
        except Exception as error:
            for verdict in open_verdicts:
                verdict.passed, verdict.score = None, 0.0
                verdict.reason = f"{assertion.type}: {type(error).__name__}: {error}"
                verdict.evidence = [seen.error(error)]
        for attempt in columns:
            if compat == "reference":  # nor a name, whatever comes of it
                attempt.verdicts[index].metric = None
            _counted(attempt, attempt.verdicts[index], compat == "reference")


async def _in_time(services: JudgeServices, judged: Awaitable[None]) -> None:
    """No attempt's own limit holds for what is judged when all have ended."""
    seconds = services.compare_seconds
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            await judged
    except TimeoutError:
        if not limit.expired():
            raise
        words = f"no answer in {seconds:g} s"
        raise CannotJudge(f"select-best: the judge gave {words}", "judge-failed", words) from None


def _counted(attempt: Attempt, verdict: Verdict, reference: bool) -> None:
    """A lost comparison fails the column with a score of 0; a won one leaves it as it was."""
    if verdict.metric and verdict.passed is not None:
        attempt.named_scores[verdict.metric] = verdict.score
        attempt.named_weights[verdict.metric] = verdict.weight
    if verdict.passed is True:
        return
    before = attempt.outcome
    if verdict.passed is None:
        attempt.outcome = before if before == "failed" and not reference else "error"
    else:
        attempt.score = 0.0
        if before == "passed":
            attempt.outcome = "failed"
    if reference and before == "failed" and verdict.passed is False:
        return  # there what failed first is the row's reason
    nothing_wrong = ("", "passed") if not reference else (attempt.message,)
    reasons = [verdict.reason] if attempt.message in nothing_wrong else [attempt.message, verdict.reason]
    attempt.message = "; ".join(dict.fromkeys(reasons)) or message_of(attempt.verdicts)


def _settle(verdict: Verdict, won: bool, reason: str) -> None:
    verdict.passed = won or verdict.weight == 0
    verdict.score = 1.0 if won else 0.0
    verdict.reason = reason
    verdict.evidence = [seen.rule("holds" if won else "not-chosen", reason)]


def _highest(assertion: Assertion, columns: list[Attempt], index: int, compat: Compat) -> None:
    """The column whose other assertions score highest wins, the first one among equals.

    Raises:
        CannotJudge: there are none, or (`documented`) one could not be judged: nobody knows what its column scores.
    """
    value = assertion.value if isinstance(assertion.value, dict) else {}
    given = value.get("weights")
    weights: dict[str, Any] = given if isinstance(given, dict) else {}
    totals: list[float] = []
    for attempt in columns:
        counted = [one for one in attempt.verdicts if one.type not in (*registry.COLUMNS, "assert-set")]
        unknown = next((one.type for one in counted if one.passed is None), None)
        if unknown is not None and compat != "reference":
            raise CannotJudge(f"max-score: {unknown} of a column could not be judged", "not-comparable")
        parts = [(verdict.score, float(weights.get(verdict.type, 1.0))) for verdict in counted]
        if not parts:
            raise CannotJudge(
                "max-score requires at least one other assertion (besides max-score or select-best) on the "
                "test case",
                "bad-assertion",
            )
        total = sum(score * weight for score, weight in parts)
        weight = sum(weight for _, weight in parts)
        totals.append(total if value.get("method") == "sum" else total / weight if weight else 0.0)
    most = max(totals)
    winner = totals.index(most)
    threshold = judges.number(value.get("threshold"))
    if threshold is None:
        threshold = assertion.threshold
    for place, (attempt, total) in enumerate(zip(columns, totals, strict=True)):
        verdict = attempt.verdicts[index]
        verdict.actual = total
        if place != winner:
            _settle(verdict, False, f"Not selected (score: {js.fixed(total, 3)}, max: {js.fixed(most, 3)})")
        elif threshold is not None and total < threshold:
            limit = js.number_text(threshold)
            _settle(verdict, False, f"Not selected - score {js.fixed(total, 3)} below threshold {limit}")
        else:
            _settle(verdict, True, f"Selected as highest scoring output (score: {js.fixed(total, 3)})")


async def _best(
    assertion: Assertion,
    case: Case,
    columns: list[Attempt],
    index: int,
    services: JudgeServices,
    compat: Compat,
) -> None:
    """The column that a judge finds best by the criterion in `value`."""
    first = columns[0]
    evidence = JudgeInput(
        case, vars=first.vars, prompt_sent=first.prompt_sent, compat=compat, services=services
    )
    criterion = expected_values.rendered(assertion.value, evidence)
    if not isinstance(criterion, str) or not criterion or criterion is UNSET:
        raise CannotJudge("select-best must have a string value", "bad-assertion")
    outputs = [_output(attempt) for attempt in columns]
    call = AssertionCall(
        assertion, evidence, assertion.type, False, outputs[0], outputs[0], criterion, Reply(turn=1)
    )
    said = GraderReply(call)
    system = "You choose the output that meets a criterion best. " + judges.NOT_INSTRUCTIONS
    parts = {f"output_{place}": output for place, output in enumerate(outputs)}
    question = tagged(criterion=criterion, **parts)
    asked = QuestionParts({"criteria": criterion, "outputs": outputs}, rare=True)
    if compat == "reference":
        system += "Answer with the number of the best one, nothing else."
        answer, text = dict[str, Any](), await said.text(system, question, asked)
        digits = re.search(r"\d+", text, re.ASCII)
        number = float(digits[0]) if digits else math.nan
        if not number < len(outputs):
            raise said.failed(f"Invalid select-best verdict: {js.number_text(number)}")
        winner = int(number)
    else:
        system += (
            'Answer with one JSON object: {"reason": "why, in a sentence", "index": the number of the best}.'
        )
        answer, text = await said.ask(system, question, schema_of(reason=TEXT, index=NUMBER), asked)
        winner = _winner(answer, text, len(outputs))
    if winner is None:
        raise CannotJudge(
            f"select-best: the judge named none of the outputs: {clip(' '.join(text.split()), 200)}",
            "judge-unreadable",
        )
    why = f" ({answer['reason']})" if answer.get("reason") else ""
    for place, attempt in enumerate(columns):
        verdict = attempt.verdicts[index]
        verdict.judge = dict[str, Any](said.judge)
        word = "Output selected as the best" if place == winner else "Output not selected"
        _settle(verdict, place == winner, f"{word}: {criterion}{why}")


def _winner(answer: dict[str, Any], text: str, count: int) -> int | None:
    found = judges.number(answer.get("index"))
    if found is None and not answer:
        digits = re.search(r"\d+", text, re.ASCII)  # as JavaScript's
        found = float(digits.group()) if digits else None
    return int(found) if found is not None and 0 <= found < count and found == int(found) else None


def _output(attempt: Attempt) -> str:
    return attempt.response_text if attempt.output is None else js.text_of(attempt.output)
