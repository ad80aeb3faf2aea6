"""From verdicts to the outcome, score and first message of an attempt."""

from __future__ import annotations

from collections.abc import Sequence

from tui_eval.model import Outcome, Verdict

NOTHING_ASSERTED = "nothing asserted"
PASSED = "passed"
OPEN = "the columns of this test are compared when all of them have run"
"""Of what compares columns, until then."""


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
    texts += [verdict.reason for verdict in verdicts if verdict.passed is None]
    return "; ".join(text for text in texts if text) or PASSED


def failure_texts(verdicts: Sequence[Verdict]) -> list[str]:
    """The texts of what failed, in order; missing tools are one failure however many they are."""
    texts: list[str] = []
    for verdict in verdicts:
        if verdict.passed is False and not (verdict.type == "tools_used" and verdict.reason in texts):
            texts.append(verdict.reason)
    return texts
