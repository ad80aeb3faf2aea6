"""What verdicts hold, and what they come to."""

from __future__ import annotations

import pytest

from tui_eval.assertions.judging import error_verdict, message_of, outcome_of, share_passed, verdict_of
from tui_eval.model import Assertion, Verdict


def verdict(passed: bool | None, reason: str = "", kind: str = "equals") -> Verdict:
    asserted = Assertion(kind)
    return error_verdict(asserted, reason) if passed is None else verdict_of(asserted, passed, reason)


@pytest.mark.parametrize(("weight", "weighs"), [(None, 1.0), (0, 0), (2.5, 2.5)])
def test_a_verdict_scores_one_or_nothing_and_weighs_what_its_assertion_does(
    weight: float | None, weighs: float
) -> None:
    asserted = Assertion("equals", "x", weight=weight, metric="m", turn=2, line=7)
    passed, failed, error = (
        verdict_of(asserted, True, "is x"),
        verdict_of(asserted, False, "is y"),
        error_verdict(asserted, "no reply"),
    )
    assert [(one.passed, one.score) for one in (passed, failed, error)] == [
        (True, 1.0),
        (False, 0.0),
        (None, 0.0),
    ]
    for one in (passed, failed, error):
        assert (one.weight, one.metric, one.turn, one.line, one.expected) == (weighs, "m", 2, 7, "x")


def test_an_error_without_evidence_says_that_it_could_not_be_judged() -> None:
    told = error_verdict(Assertion("equals"), "no reply").evidence or []
    assert [(one.code, one.actual or one.text) for one in told] == [("cannot-judge", "no reply")]


@pytest.mark.parametrize(
    ("verdicts", "outcome", "share"),
    [
        ((), "passed", 1.0),
        ((True, True), "passed", 1.0),
        ((True, None), "error", 0.5),
        ((None, False), "failed", 0.0),
        ((False, None, True, True), "failed", 0.5),
    ],
)
def test_what_is_wrong_outweighs_what_could_not_be_judged(
    verdicts: tuple[bool | None, ...], outcome: str, share: float
) -> None:
    found = [verdict(one) for one in verdicts]
    assert (outcome_of(found), share_passed(found)) == (outcome, share)


@pytest.mark.parametrize(
    ("verdicts", "message"),
    [
        ([], "nothing asserted"),
        ([verdict(True, "is x")], "passed"),
        ([verdict(None, "no reply"), verdict(False, "is y"), verdict(True, "is x")], "is y; no reply"),
        ([verdict(None, "no reply"), verdict(None, "no reply")], "no reply"),
        ([verdict(False, " "), verdict(None, "")], "equals failed"),
        ([verdict(False, "missing a", "tools_used"), verdict(False, "missing a", "tools_used")], "missing a"),
        ([verdict(False, "is y"), verdict(False, "is y")], "is y; is y"),
    ],
)
def test_a_person_reads_failures_first_then_errors(verdicts: list[Verdict], message: str) -> None:
    assert message_of(verdicts) == message
