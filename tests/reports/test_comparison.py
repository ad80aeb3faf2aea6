"""Run against run, and failures by kind."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import msgspec
import pytest

from tui_eval.model import Attempt, Verdict
from tui_eval.reports.console_table import failure_modes
from tui_eval.reports.run_comparison import compare, fisher_exact, mcnemar_exact
from tui_eval.store.failure_modes import Assessment, FailedAttempt, FailureMode, assess, classified, mode_of
from tui_eval.store.summary import CaseSummary, wilson


def case(
    name: str, passed: int, attempts: int = 1, agent: str = "a", required: int | None = None
) -> CaseSummary:
    needed = attempts if required is None else required
    outcome = "passed" if passed >= needed else "failed"
    return CaseSummary(
        f"s::{name}", name, "s", agent, None, outcome, attempts, attempts, passed, needed,
        passed / attempts, 0 < passed < attempts,
    )  # fmt: skip


def test_changes_worst_first() -> None:
    before = [case("same", 1), case("worse", 1), case("better", 0), case("gone", 1), case("shaky", 2, 3)]
    after = [case("same", 1), case("worse", 0), case("better", 1), case("new", 1), case("shaky", 1, 3)]
    result = compare(before, after)
    assert [(item.name, item.change) for item in result.cases] == [
        ("worse", "regressed"), ("better", "fixed"), ("shaky", "flaky"), ("new", "new"), ("gone", "gone"),
        ("same", "unchanged"),
    ]  # fmt: skip
    assert result.p_value == 1.0
    assert result.pass_rates[0][0] == pytest.approx(3 / 5)


def test_an_outcome_of_another_kind_is_a_change_though_neither_passed() -> None:
    """A judge or a server that died between two runs was called the same outcome."""
    failed = [case("died", 0), case("stays", 0), case("shaky", 1, 3)]
    errors = [msgspec.structs.replace(one, outcome="error") for one in failed]
    result = compare(failed, [errors[0], failed[1], errors[2]])
    assert [(item.name, item.change) for item in result.cases] == [
        ("died", "now an error"), ("shaky", "now an error"), ("stays", "unchanged"),
    ]  # fmt: skip
    assert result.told == "0 fixed, 2 now an error"
    assert [item.change for item in compare(errors[:1], failed[:1]).cases] == ["an error no more"]
    assert [item.change for item in compare(errors[:1], errors[:1]).cases] == ["unchanged"]


def test_what_was_cancelled_is_in_no_statistic() -> None:
    before = [case("one", 1), case("two", 1)]
    after = [case("one", 1), msgspec.structs.replace(case("two", 0), outcome="cancelled")]
    result = compare(before, after)
    assert [(item.name, item.change) for item in result.cases] == [("two", "not run"), ("one", "unchanged")]
    assert result.pass_rates[1][0] == 1.0


def test_a_case_that_passed_and_never_ran_in_the_second_run_is_not_gone_from_it() -> None:
    """Whether it regressed is not known, and a run that was cut off is no proof that nothing did."""
    before = [case("one", 1), case("two", 1), case("three", 0), case("four", 1)]
    waiting = [msgspec.structs.replace(case(name, 0), outcome=None, attempts=0) for name in ("two", "three")]
    result = compare(before, [case("one", 1), *waiting])
    assert {item.name: item.change for item in result.cases} == {
        "one": "unchanged", "two": "not run", "three": "not run", "four": "gone",
    }  # fmt: skip
    assert result.unknown == 1  # three had failed


def test_what_has_an_outcome_on_neither_side_is_no_proof_that_nothing_regressed() -> None:
    """A cut run and its own judgement were as good as each other."""

    def left(name: str, outcome: Literal["cancelled", "skipped"] | None = None) -> CaseSummary:
        return msgspec.structs.replace(case(name, 0), outcome=outcome, attempts=0)

    half = [case("one", 1), left("two"), left("three", "cancelled"), left("four", "skipped")]
    result = compare(half, half)
    assert (result.count("unchanged"), result.never_ran, result.unknown) == (1, 2, 2)
    assert result.told == "0 fixed, 2 not run on either side"
    assert compare([case("one", 1)], half).unknown == 2  # new ones, which never ran either
    assert compare(half, [case("one", 1), case("two", 1), case("three", 1)]).unknown == 0
    assert compare([case("one", 1), case("two", 1), left("three")], half).unknown == 2  # each once


def test_what_the_second_lacks_without_a_name_or_an_agent_may_be_each_that_it_has_not() -> None:
    before = [case("one", 1), case("two", 1, agent="b"), case("three", 1, agent="c")]
    lacks = msgspec.structs.replace(case("two", 0), outcome=None)
    for agent in ("", "unknown"):
        after = [case("one", 1), msgspec.structs.replace(lacks, agent=agent)]
        changes = {item.name: item.change for item in compare(before, after).cases}
        assert changes == {"one": "unchanged", "two": "not run", "three": "gone"}
    some = msgspec.structs.replace(lacks, case_id="shard 2::x", name="case 1 of 1 that no part has")
    found = compare(before, [case("one", 1), some])
    assert (found.count("not run"), found.unknown, found.count("gone")) == (2, 2, 0)


def test_an_agent_against_another_is_joined_by_case() -> None:
    result = compare([case("x", 1, agent="old")], [case("x", 0, agent="new")])
    assert [item.change for item in result.cases] == ["regressed"]


def test_columns_of_several_agents_stay_apart() -> None:
    before = [case("x", 1, agent="a"), case("x", 0, agent="b")]
    result = compare(before, [case("x", 0, agent="a"), case("x", 0, agent="b")])
    assert sorted(item.change for item in result.cases) == ["regressed", "unchanged"]


def test_two_models_against_another_one_have_no_case_in_common_and_say_so() -> None:
    def one(model: str) -> CaseSummary:
        return msgspec.structs.replace(case("x", 1), model=model)

    found = compare([one("a"), one("b")], [one("c")])
    assert (found.common, found.nothing_common) == (0, "no case in common with the same agent and model")
    assert [item.change for item in found.cases] == ["new", "gone", "gone"]
    assert (
        compare([one("a")], [one("c")]).common == 1 and compare([one("a")], [one("c")]).nothing_common == ""
    )
    assert compare([case("x", 1)], [case("y", 1)]).nothing_common == "no case in common"
    assert compare([one("a"), one("b")], [one("b")]).common == 1


def test_a_column_whose_model_one_side_does_not_know_is_the_same_column() -> None:
    """promptfoo's results name no model beside a label; `echo` has none on either side."""

    def one(model: str | None, passed: int = 1, name: str = "x") -> CaseSummary:
        return msgspec.structs.replace(case(name, passed, agent="oai"), model=model)

    def changes(before: list[CaseSummary], after: list[CaseSummary]) -> list[str]:
        echo = case("x", 1, agent="echo")
        found = compare([*before, echo], [*after, echo])
        return [item.change for item in found.cases if (item.before or item.after or echo).agent == "oai"]

    assert changes([one(None)], [one("m", 0)]) == changes([one("m")], [one(None, 0)]) == ["regressed"]
    assert changes([one(None)], [msgspec.structs.replace(one("m", 0), outcome=None)]) == ["not run"]
    # It may be either of two, and models that are known are two.
    assert changes([one(None)], [one("m"), one("n", 0)]) == ["new", "new", "gone"]
    assert changes([one(None), one("m")], [one("m", 0)]) == ["regressed", "gone"]
    cancelled = msgspec.structs.replace(one("n", 0), outcome="cancelled")
    assert changes([one(None)], [one("m"), cancelled]) == ["new", "gone"]
    assert changes([one("m")], [one("n", 0)]) == ["new", "gone"]


def test_what_one_agent_was_not_asked_in_the_place_of_another_is_not_gone() -> None:
    before = [case("x", 1, agent="one"), case("y", 1, agent="one")]
    after = [case("x", 1, agent="two"), msgspec.structs.replace(case("y", 1, agent="two"), outcome=None)]
    found = compare(before, after)
    assert [(item.name, item.change) for item in found.cases] == [("y", "not run"), ("x", "unchanged")]


def test_cases_of_the_same_name_are_told_apart_by_what_differs() -> None:
    def one(ending: str, agent: str = "a", model: str | None = None) -> CaseSummary:
        return msgspec.structs.replace(case("x", 1, agent=agent), case_id=f"s::x{ending}", model=model)

    def marks(*cases: CaseSummary) -> list[str]:
        return [item.mark for item in compare(cases, cases).cases]

    assert marks(one("::gpt::p1"), one("::gpt::p2")) == ["p1", "p2"]
    assert marks(one("", "a", "m"), one("", "b", "m")) == ["a", "b"]
    assert marks(one("", "a", "m"), one("", "a", "n")) == ["m", "n"]
    assert marks(one("::m::p", "a", "m"), one("::n::p", "a", "n")) == ["m", "n"]
    assert marks(one("[k=1]"), one("[k=2]"), one("#2")) == ["[k=1]", "[k=2]", "#2"]
    assert marks(one("::p1"), one("::gpt::p2")) == ["::p1", "::gpt::p2"]
    assert marks(case("x", 1), case("y", 1)) == ["", ""]


# scipy 1.17.1 (fisher_exact), statsmodels 0.15.0 (mcnemar exact=True, proportion_confint method="wilson")
FISHER = [((10, 0, 7, 3), 0.21052631578947367), ((3, 17, 12, 8), 0.007911693673651405), ((0, 5, 5, 0), 0.007936507936507936),
          ((46, 55, 46, 52), 0.8873962471425364)]  # fmt: skip
MCNEMAR = [((3, 12), 0.03515625), ((40, 61), 0.046044066929342785), ((0, 30), 1.862645149230957e-09)]
WILSON = [((8, 10), (0.49016247153664165, 0.9433178485456247)), ((0, 3), (0.0, 0.5614970317550455)),
          ((1999, 2000), (0.9971731374967338, 0.9999117322692944))]  # fmt: skip


def test_the_numbers_are_those_of_scipy_and_statsmodels() -> None:
    for table, p_value in FISHER:
        assert fisher_exact(*table) == pytest.approx(p_value, rel=1e-9), table
    for counts, p_value in MCNEMAR:
        assert mcnemar_exact(*counts) == pytest.approx(p_value, rel=1e-9), counts
    for counts, interval in WILSON:
        assert wilson(*counts) == pytest.approx(interval, rel=1e-9), counts


def test_exact_tests() -> None:
    assert mcnemar_exact(0, 0) == 1.0
    assert mcnemar_exact(5, 0) == pytest.approx(0.0625)
    assert mcnemar_exact(1, 9) == pytest.approx(0.021484375)
    assert fisher_exact(3, 0, 0, 3) == pytest.approx(0.1)
    assert fisher_exact(8, 2, 1, 5) == pytest.approx(0.03496503496)
    for a, b, c, d in itertools.product(range(4), repeat=4):
        assert 0 < fisher_exact(a, b, c, d) <= 1 + 1e-12
        assert math.isclose(fisher_exact(a, b, c, d), fisher_exact(c, d, a, b))


def failed(*verdicts: Verdict, message: str = "", error: str | None = None) -> Attempt:
    outcome = "error" if error else "failed"
    return Attempt("s::x", 1, outcome, message=message, verdicts=list(verdicts), error=error)


def test_attempts_that_fail_alike_are_one_mode() -> None:
    missing = Verdict(
        "should_contain", False, expected="79", reason="should_contain: '79' not found in response"
    )
    attempts = [
        (1, failed(missing)),
        (2, failed(missing)),
        (3, failed(error="HTTP 500 from http://x: took 31 ms")),
        (4, failed(error="HTTP 500 from http://x: took 77 ms")),
        (5, failed(Verdict("value", False, target="sly_data.equals", turn=2, expected=3.0))),
        (6, Attempt("s::x", 2, "passed")),
        (7, Attempt("s::x", 3, "cancelled")),
        (8, failed(missing)),
    ]
    assessment = assess(attempts)
    assert (assessment.attempts, assessment.passed) == (7, 1)
    assert [(mode.what, mode.count) for mode in assessment.modes] == [
        ("should_contain: 79", 3),
        ("error: HTTP 500 from http://x: took N ms", 2),
        ("turn 2, value of sly_data.equals: expected 3.0", 1),
    ]
    assert assessment.modes[0].examples[0].attempt_ref == 1
    shown = failure_modes(assessment)
    assert "1/7 attempts passed." in shown and "3/6 failures (50.00%): should_contain: 79" in shown


def test_an_attempt_without_telling_verdicts_has_a_mode_too() -> None:
    assert mode_of(failed(message="something 12 odd")) == "something N odd"
    assert mode_of(failed(Verdict("gist", None, reason="no judge"))) == "could not be judged: gist: no judge"


@pytest.mark.parametrize(
    ("error", "what"),
    [
        ("503 Service Unavailable after 12 s", "error: 503 Service Unavailable after N s"),
        (
            "the server answered with status code 429, 3 tries",
            "error: the server answered with status code 429, N tries",
        ),
        ("HTTP 4040 tokens, 500 ms", "error: HTTP N tokens, N ms"),
        ("500.5 ms too late", "error: N ms too late"),
    ],
)
def test_a_status_is_part_of_the_way_to_fail_other_figures_are_not(error: str, what: str) -> None:
    assert mode_of(failed(error=error)) == what


def test_groups_that_the_judge_calls_the_same_are_one() -> None:
    def mode(what: str, count: int, name: str | None = None) -> FailureMode:
        examples = [FailedAttempt(count * 10 + i, f"s::{what}", 1, "no") for i in range(2)]
        return FailureMode(what, count, count / 10, 2, examples, name)

    given = Assessment(20, 10, [mode("a", 4, "Leaves things out."), mode("b", 3, "leaves  things out"), mode("c", 2, "Is rude."),
                                mode("d", 1)])  # fmt: skip
    found = classified(given)
    assert [(one.name or one.what, one.count, one.also) for one in found.modes] == [
        ("Leaves things out.", 7, ["b"]), ("Is rude.", 2, []), ("d", 1, []),
    ]  # fmt: skip
    assert found.modes[0].share == pytest.approx(0.7) and len(found.modes[0].examples) == 3
    assert sum(one.count for one in found.modes) == 10 and len(given.modes) == 4
    assert "7/10 failures (70.00%): Leaves things out." in failure_modes(
        given
    ) and "    b\n" in failure_modes(given)
    nameless = Assessment(2, 0, [mode("a", 1), mode("b", 1)])
    assert [one.what for one in classified(nameless).modes] == ["a", "b"]
