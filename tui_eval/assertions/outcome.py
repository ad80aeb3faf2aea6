"""From verdicts to the outcome, score and first message of an attempt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tui_eval.model import Outcome, Verdict

NOTHING_ASSERTED = "nothing asserted"
PASSED = "passed"

_GUIDE_ORDER = {
    key: place
    for place, key in enumerate(
        (
            "should_contain",
            "should_not_contain",
            "escalated",
            "escalation_priority",
            "tools_used",
            "max_tool_calls",
            "max_input_tokens",
            "max_output_tokens",
        )
    )
}


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


def missing_tools_text(missing: Iterable[str]) -> str:
    """The StartToAgent guide's text for tools that were not called, sorted."""
    return f"tools_used: missing {{{', '.join(map(repr, sorted(missing)))}}}"


def in_the_guides_order(verdicts: list[Verdict]) -> None:
    """Sort StartToAgent's verdicts as the guide's harness checks them, whatever the file's order.

    All failing `tools_used` get the guide's one text that names every missing tool.
    """
    verdicts.sort(key=lambda verdict: _GUIDE_ORDER.get(verdict.type, len(_GUIDE_ORDER)))
    failing = [verdict for verdict in verdicts if verdict.type == "tools_used" and verdict.passed is False]
    if len(failing) < 2:
        return
    missing = {str(verdict.expected) for verdict in failing if not isinstance(verdict.expected, list)}
    for verdict in failing:
        if isinstance(verdict.expected, list):
            missing |= {str(item) for item in verdict.expected} - set(verdict.actual or ())
    for verdict in failing:
        verdict.reason = missing_tools_text(missing)
