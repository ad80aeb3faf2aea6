"""Failures grouped by their cause."""

from __future__ import annotations

from tui_eval.model import Attempt, Evidence, Verdict
from tui_eval.store.failure_modes import assess


def test_attempts_of_one_cause_are_one_group_whatever_was_answered() -> None:
    def late(figure: float) -> Attempt:
        piece = Evidence("budget", "over", path="latency", actual=figure, rule="<=", expected=8000.0)
        return Attempt("s::a", 1, "failed", verdicts=[Verdict("latency", False, evidence=[piece])])

    def refused(case: str) -> Attempt:
        piece = Evidence("agent", "refused", text="connection refused", path=":8941")
        return Attempt(case, 1, "error", error=f"no answer to {case}", evidence=[piece])

    found = assess(
        enumerate([late(20_000.0), refused("s::b"), late(9_500.0), refused("s::c"), late(8_500.0)])
    )
    assert [(mode.what, mode.count) for mode in found.modes] == [("8.5–20 s > 8 s", 3), ("refused :8941", 2)]


def test_a_group_says_what_all_of_it_say() -> None:
    def judged(*reasons: str) -> list[tuple[int, Attempt]]:
        pieces = [Evidence("judge", "judged", text=reason) for reason in reasons]
        verdicts = [Verdict("llm-rubric", False, evidence=[piece]) for piece in pieces]
        return list(
            enumerate(Attempt(f"s::{n}", 1, "failed", verdicts=[one]) for n, one in enumerate(verdicts))
        )

    def words(*reasons: str) -> list[str]:
        return [mode.what for mode in assess(judged(*reasons)).modes]

    assert words("it is rude", "it is rude") == ["judge: it is rude"]
    assert words("it is rude", "it is wrong") == ["judge: not met"]
    assert words(*(f"it is wrong in {number}" for number in range(500))) == ["judge: not met"]
