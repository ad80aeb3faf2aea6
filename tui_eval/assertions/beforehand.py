"""What is known of an attempt before its agent is asked: assertions that come to nothing whatever is answered.

An agent is paid for what it answers. Where nothing of that could be judged (the expected SQL cannot be run, no judge
is there, the code may not run) the attempt is an error at once. Where something else is asserted it is asked all the
same: one assertion in error hides no other's verdict.
"""

from __future__ import annotations

from collections.abc import Callable

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput, Judgement
from tui_eval.assertions.judging import assertions_of, error_verdict
from tui_eval.assertions.outcome import message_of
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Assertion, Verdict

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
