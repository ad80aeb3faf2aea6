"""The loop that judges a case, verdicts as handlers make them, and what they come to: outcome, score and
first message."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from inspect import isawaitable
from typing import Any

from msgspec import UNSET

from tui_eval import extensions
from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput, Judgement
from tui_eval.guard.crash_report import leaves
from tui_eval.guard.text import beginning
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Assertion, Case, Evidence, Outcome, Verdict

NOTHING_ASSERTED = "nothing asserted"
PASSED = "passed"


def outcome_of(verdicts: Sequence[Verdict]) -> Outcome:
    """`failed` if anything is not as expected, else `error` if anything could not be judged.

    The rule for attempts is the design's rule for cases ("error if none failed and one errored").
    """
    outcome: Outcome = "passed"
    for verdict in verdicts:
        if verdict.passed is None:
            if outcome == "passed":
                outcome = "error"
        elif not verdict.passed:
            return "failed"
    return outcome


def share_passed(verdicts: Sequence[Verdict]) -> float:
    """The share of verdicts that passed, 0–1; 1 where nothing was asserted."""
    if not verdicts:
        return 1.0
    return sum(verdict.passed is True for verdict in verdicts) / len(verdicts)


def message_of(verdicts: Sequence[Verdict]) -> str:
    """What a person reads first: the texts of failures, then of errors, joined with `; `.

    `passed` where there is neither, `nothing asserted` where there are no verdicts.
    """
    if not verdicts:
        return NOTHING_ASSERTED
    texts = failure_texts(verdicts)
    texts += dict.fromkeys(verdict.reason for verdict in verdicts if verdict.passed is None)
    return "; ".join(text for text in texts if text) or PASSED


def failure_texts(verdicts: Sequence[Verdict]) -> list[str]:
    """The texts of what failed, in order; missing tools are one failure however many they are."""
    texts: list[str] = []
    for verdict in verdicts:
        if verdict.passed is False and not (verdict.type == "tools_used" and verdict.reason in texts):
            # A script or a judge may give no reason.
            texts.append(verdict.reason if verdict.reason.strip() else f"{verdict.type} failed")
    return texts


Handler = Callable[[Assertion, JudgeInput, Judgement], "Verdict | Awaitable[Verdict | None] | None"]
ACTUAL_LIMIT = 2000


def _refusing(reason: str) -> Handler:
    def refuse(assertion: Assertion, evidence: JudgeInput, judgement: Judgement) -> Verdict:
        raise CannotJudge(reason, "not-supported")

    return refuse


def added_handler(family: str, kind: str) -> Any:
    """What another package judges a format's assertion type with (entry points `tui_eval.assertions`);
    None where none does. For promptfoo it is a `promptfoo.call.Check`, else a `Handler`.

    Raises:
        CannotJudge: the package cannot be loaded.
    """
    try:
        return extensions.load("assertions", f"{family}.{kind}")
    except extensions.ExtensionError as error:
        raise CannotJudge(str(error), "not-supported") from error


def added_or_refusing(family: str, kind: str) -> Handler | None:
    """What another package judges an assertion type with; one that cannot be loaded says so in the verdict."""
    try:
        return added_handler(family, kind)
    except CannotJudge as error:
        return _refusing(str(error))


async def judge_each(
    evidence: JudgeInput,
    handler_for: Callable[[str], Handler | None],
    settle: Callable[[Judgement, JudgeInput], None],
) -> Judgement:
    """Judge every assertion of every turn and of the case; nothing raises but cancellation.

    An assertion that raises is an error verdict beside the others. A case without assertions is
    passed and says `nothing asserted`.

    Args:
        handler_for: the handler of an assertion type; None: there is none.
        settle: what a format has to say or order of its own once every verdict is there.
    """
    judgement = evidence.begun = Judgement()
    for assertion in assertions_of(evidence.case):
        verdict = await judge_one(handler_for(assertion.type), assertion, evidence, judgement)
        if verdict is not None:
            judgement.verdicts.append(verdict)
    settle(judgement, evidence)
    judgement.outcome = outcome_of(judgement.verdicts)
    judgement.score = share_passed(judgement.verdicts)
    judgement.message = judgement.message or message_of(judgement.verdicts)
    return judgement


async def judge_one(
    handler: Handler | None, assertion: Assertion, evidence: JudgeInput, judgement: Judgement
) -> Verdict | None:
    """One assertion's verdict; whatever the handler raises becomes an error verdict.

    None: the original tool makes nothing of the assertion (`compat: reference` only).
    """
    try:
        if handler is None:
            raise CannotJudge(f"{assertion.type}: unknown assertion", "unknown-type")
        verdict = handler(assertion, evidence, judgement)
        if isinstance(verdict, Verdict) or not isawaitable(verdict):
            return verdict
        async with evidence.services.in_time(assertion.type, assertion.turn):
            return await verdict
    except (CannotJudge, NeedsTrust) as error:
        return error_verdict(assertion, str(error), [seen.error(error)])
    except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # Polars panics with one that is no Exception, a library calls sys.exit()
        if leaves(error):
            raise
        text = " ".join(str(error).split())
        return error_verdict(
            assertion, f"{assertion.type}: {type(error).__name__}: {text}", [seen.error(error)]
        )


def error_verdict(
    assertion: Assertion, reason: str, evidence: list[Evidence] | None = None, *, actual: Any = None
) -> Verdict:
    """The verdict of an assertion that could not be judged; `evidence` says why in a code."""
    return Verdict(
        type=assertion.type,
        passed=None,
        target=assertion.target,
        expected=expected_of(assertion),
        actual=clip_actual(actual),
        score=0.0,
        reason=reason,
        weight=1.0 if assertion.weight is None else assertion.weight,
        metric=assertion.metric,
        turn=assertion.turn,
        set=assertion.set,
        line=assertion.line,
        evidence=seen.bounded(evidence or [seen.rule("cannot-judge", reason)]),
    )


def verdict_of(
    assertion: Assertion,
    passed: bool,
    reason: str,
    evidence: list[Evidence] | None = None,
    *,
    actual: Any = None,
    expected: Any = UNSET,
) -> Verdict:
    """A verdict of 1 or 0 with what was expected and what was there."""
    return Verdict(
        type=assertion.type,
        passed=passed,
        target=assertion.target,
        expected=expected_of(assertion) if expected is UNSET else expected,
        actual=clip_actual(actual),
        score=1.0 if passed else 0.0,
        reason=reason,
        weight=1.0 if assertion.weight is None else assertion.weight,
        metric=assertion.metric,
        turn=assertion.turn,
        set=assertion.set,
        line=assertion.line,
        evidence=seen.bounded(evidence),
    )


def assertions_of(case: Case) -> Iterator[Assertion]:
    """Those of the turns in order, then those about the whole conversation."""
    for number, turn in enumerate(case.turns, 1):
        for assertion in turn.assertions:
            if assertion.turn is None:
                # A turn's own assertion looks at that turn's reply.
                assertion.turn = number
            yield assertion
    yield from case.assertions


def expected_of(assertion: Assertion) -> Any:
    """What the file expects; None where it gives no value."""
    return None if assertion.value is UNSET else assertion.value


def clip_actual(value: Any) -> Any:
    """Text longer than 2,000 characters cut for the verdict, saying how much is left out."""
    return beginning(value, ACTUAL_LIMIT) if isinstance(value, str) else value


# -- What is known of an attempt before its agent is asked: assertions that come to nothing whatever is
# answered.
#
# An agent is paid for what it answers. Where nothing of that could be judged (the expected SQL cannot be
# run, no judge is there, the code may not run) the attempt is an error at once. Where something else is
# asserted it is asked all the same: one assertion in error hides no other's verdict.


NO_JUDGE = "no judge is configured; write `judge: NAME` into tui_eval.yaml, or give --judge"


def hopeless(evidence: JudgeInput, check: Callable[[Assertion, JudgeInput], None]) -> Judgement | None:
    """The judgement of a case of which nothing can be judged; None: something can, or nothing is asserted. `check`
    raises `CannotJudge` or `NeedsTrust` for an assertion that cannot."""
    found: list[Verdict] = []
    for assertion in assertions_of(evidence.case):
        if assertion.type == "assert-set":
            continue  # its members stand after it
        try:
            check(assertion, evidence)
        except (CannotJudge, NeedsTrust) as error:
            found.append(error_verdict(assertion, str(error), [seen.error(error)]))
        else:
            return None
    if not found:
        return None
    return Judgement(verdicts=found, outcome="error", score=0.0, message=message_of(found))


def judge_there(assertion: Assertion, evidence: JudgeInput, named: object) -> None:
    """`named` is the grader that the suite names for an assertion, or None.

    Raises:
        CannotJudge: nobody can grade it.
    """
    services = evidence.services
    if named is not None and services.judge_for is not None and services.judge_for(named) is not None:
        return
    if services.ask_judge is None:
        raise CannotJudge(f"{assertion.type}: {NO_JUDGE}", "no-judge")
    if services.judge_fault is not None and (why := services.judge_fault()):
        raise CannotJudge(f"{assertion.type}: {why}", "no-judge")
