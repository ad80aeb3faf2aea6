"""What a run says of a case, from its attempts."""

from __future__ import annotations

from typing import Any

import pytest

from tui_eval.model import Outcome
from tui_eval.store.schema import AttemptRow, StoredCase
from tui_eval.store.summary import per_known, share, summarise, sums_of, why_not

CASE = StoredCase(1, "s.yaml::c", "s.yaml", "c", "nao", "bot", None, "abc", 3, 2)


def attempt(number: int, outcome: Outcome | None, **more: Any) -> AttemptRow:
    """One that has ended (None: one that runs), of 10 ms."""
    given: dict[str, Any] = {
        "score": None,
        "message": outcome or "",
        "started_at": None,
        "duration_ms": 10.0,
        "input_tokens": None,
        "output_tokens": None,
        "cached_tokens": None,
        "cost": None,
        "tool_calls": None,
        "turn": 0,
        "detail": "",
        "changed": number,
    } | more
    return AttemptRow(number, 1, number, "done" if outcome else "running", outcome=outcome, **given)


def of(*outcomes: Outcome | None, **more: Any) -> Any:
    return summarise(CASE, [attempt(number, one, **more) for number, one in enumerate(outcomes, 1)])


@pytest.mark.parametrize(
    ("outcomes", "outcome", "counts", "flaky"),
    [
        ((None, None, None), None, (0, 0, 3), False),
        (("passed", None, None), None, (1, 1, 2), False),
        (("passed", "passed", None), "passed", (2, 2, 1), False),
        (("failed", None, None), "failed", (1, 0, 2), False),
        (("passed", "failed", "passed"), "passed", (3, 2, 0), True),
        (("passed", "error", "error"), "error", (3, 1, 0), True),
        (("passed", "cancelled", "cancelled"), "cancelled", (3, 1, 0), False),
        (("passed", "passed", "passed"), "passed", (3, 3, 0), False),
    ],
)
def test_a_case_is_what_enough_of_its_attempts_came_to(
    outcomes: tuple[Outcome | None, ...], outcome: str | None, counts: tuple[int, int, int], flaky: bool
) -> None:
    found = of(*outcomes)
    assert (found.outcome, found.flaky) == (outcome, flaky)
    assert (found.attempts, found.passed, found.waiting) == counts


def test_what_has_no_verdict_is_in_no_rate() -> None:
    found = of("passed", "cancelled", "skipped")
    assert (found.pass_rate, found.unjudged, found.flaky) == (1.0, 2, False)
    assert of("cancelled").pass_rate == 0.0
    assert of("passed", "failed", "error").pass_rate == pytest.approx(1 / 3)


def test_its_time_is_that_of_what_was_judged_unless_nothing_was() -> None:
    judged = [attempt(1, "passed", duration_ms=20.0), attempt(2, "cancelled", duration_ms=90.0)]
    found = summarise(CASE, [*judged, attempt(3, "failed", duration_ms=40.0)])
    assert (found.duration_ms, found.timed) == (30.0, 2)
    cut_short = summarise(CASE, [attempt(1, "cancelled", duration_ms=90.0)])
    assert (cut_short.duration_ms, cut_short.timed) == (90.0, 1)
    assert of("passed", duration_ms=None).duration_ms is None


def test_what_is_known_of_its_tokens_and_costs_is_added_up_and_counted() -> None:
    rows = [
        attempt(1, "passed", input_tokens=5, output_tokens=2, cost=0.25),
        attempt(2, "failed", output_tokens=3, cached=1, saved=0.5),
        attempt(
            3, "passed", judge_calls=1, judge_tokens=7, judge_cost=0.125, judge_cached=2, judge_saved=1.0
        ),
    ]
    found = summarise(CASE, rows)
    assert (found.tokens, found.tokens_of) == (10, 2)
    assert (found.cost, found.cost_of) == (0.25, 1)
    assert (found.cached, found.saved) == (1, 0.5)
    assert (found.judge_tokens, found.judge_cost) == (7, 0.125)
    assert (found.judge_cached, found.judge_saved) == (2, 1.0)
    nothing = of("passed")
    assert (nothing.tokens, nothing.cost, nothing.saved, nothing.judge_tokens, nothing.judge_saved) == (
        None,
    ) * 5


def test_its_answers_are_known_only_where_each_that_was_judged_is() -> None:
    rows = [attempt(1, "passed", answer="b"), attempt(2, "failed", answer="a"), attempt(3, "error")]
    assert summarise(CASE, rows).answers == ["a", "b"]
    assert summarise(CASE, [*rows[:2], attempt(3, "failed")]).answers == []


def test_it_asserted_nothing_where_it_passed_and_no_pass_could_have_failed() -> None:
    idle, real = attempt(1, "passed", asserted_nothing=1), attempt(2, "passed")
    assert summarise(CASE, [idle]).asserted_nothing is True
    assert summarise(CASE, [idle, real]).asserted_nothing is False
    assert summarise(CASE, [attempt(1, "failed", asserted_nothing=1)]).asserted_nothing is False


def test_one_that_goes_on_says_how_many_ran() -> None:
    assert of("passed", None, None).message == "1 of 3 attempts ran, none failed"
    assert of("passed", "passed").message == "passed"


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0%"), (0.001, "1%"), (0.5, "50%"), (0.999, "99%"), (0.994, "99%"), (1, "100%")]
)
def test_a_share_is_all_or_nothing_only_where_it_is(value: float, shown: str) -> None:
    assert share(value) == shown


def test_what_one_attempt_takes_is_by_those_of_which_it_is_known() -> None:
    assert per_known(6.0, 2, 3) == 3.0
    assert per_known(6.0, 0, 3) == 2.0
    assert per_known(None, 2, 3) is None


def test_the_most_frequent_reason_tells_and_each_is_counted() -> None:
    rows = [
        attempt(1, "failed", message="lacks a", cause="lacks a", alike="lacks"),
        attempt(2, "passed", message="fine"),
        attempt(3, "error", message="timed out", cause="timeout", alike="timeout"),
        attempt(4, "failed", message="lacks b", cause="lacks b", alike="lacks"),
        attempt(5, "cancelled", message="stopped"),
    ]
    why = why_not(rows)
    assert why.telling is rows[0] and why.several
    assert (why.alike, why.cause, why.message) == (
        "lacks",
        "2 × lacks, 1 × timeout",
        "2 × lacks, 1 × timed out",
    )
    found = summarise(CASE, rows)
    assert (found.message, found.cause, found.alike) == (why.message, why.cause, why.alike)


def test_reasons_without_a_cause_are_told_by_what_was_said() -> None:
    why = why_not([attempt(1, "failed", message="is y"), attempt(2, "failed", message="is z")])
    assert (why.message, why.cause, why.several) == ("1 × is y, 1 × is z", "", True)
    one = why_not([attempt(1, "failed", message="is y"), attempt(2, "failed", message="is y")])
    assert (one.message, one.several) == ("is y", False)


def test_a_cancelled_attempt_is_a_reason_only_where_there_is_no_other() -> None:
    stopped = attempt(1, "cancelled", message="stopped")
    assert why_not([stopped]).message == "stopped"
    assert why_not([stopped, attempt(2, "failed", message="is y")]).message == "is y"
    assert why_not([attempt(1, "passed"), attempt(2, None, message="waits")]).telling is None


def test_what_cases_come_to_is_added_up() -> None:
    known = attempt(1, "passed", input_tokens=5, cost=0.5, saved=0.25, cached=1, asserted_nothing=1)
    judged = attempt(
        1, "failed", judge_calls=1, judge_tokens=7, judge_cost=0.125, judge_cached=1, judge_saved=1.0
    )
    once = StoredCase(1, "s.yaml::c", "s.yaml", "c", "nao", "bot", None, "abc", 1, 1)
    sums = sums_of((once, rows) for rows in ([known], [judged], [known, judged], [attempt(1, None)]))
    assert [sums.count(one) for one in ("passed", "failed", None)] == [2, 1, 1]
    assert (sums.cases, sums.judged) == (4, 3)
    assert (sums.attempts, sums.attempts_passed, sums.flaky, sums.asserted_nothing) == (4, 2, 1, 2)
    assert (sums.tokens, sums.cost, sums.saved, sums.cached) == (10, 1.0, 0.5, 2)
    assert (sums.judge_tokens, sums.judge_cost, sums.judge_cached, sums.judge_saved) == (14, 0.25, 2, 2.0)
    nothing = sums_of([(CASE, [attempt(1, "passed")])])
    assert (nothing.tokens, nothing.cost, nothing.saved, nothing.judge_tokens, nothing.judge_saved) == (
        None,
    ) * 5
