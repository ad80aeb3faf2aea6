"""Suites and `R` by column: each column of a case is a row of its test, whichever ran last."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from tui_eval.model import Case, Suite
from tui_eval.store.notes import HumanNote
from tui_eval.store.schema import Asked, AttemptRow, CaseHistory, RunInfo, StoredCase
from tui_eval.tui.screens.suites_screen import SuitesFacts, facts_line
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.case.case_details import describe
from tui_eval.tui.state.lists.case_sources import SuiteCases
from tui_eval.tui.state.lists.case_tree import View
from tui_eval.tui.state.lists.entries import failing, meant, not_passed, run_entries, subject, suite_entries
from tui_eval.tui.state.lists.filtering import parse, values_of
from tui_eval.tui.state.lists.tree_lines import build
from tui_eval.tui.state.runs.run_estimate import Who
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.text.formatting import Symbols
from tui_eval.tui.state.text.lines import plain
from tui_eval.tui.widgets.case_lines import CaseLines


def result(
    case: str, model: str, outcome: str, at: float, asked: Asked = "named", cost: float | None = None
) -> CaseHistory:
    return CaseHistory(
        f"r{at:03.0f}", case, "bot", model, outcome, int(outcome == "passed"), 1, at, 5.0, 10, cost, "h",  # type: ignore[arg-type]
        f"{model}: {outcome}", 1, asked,
    )  # fmt: skip


def app_state(*results: CaseHistory) -> AppState:
    state = AppState(Path("."))
    names = ("one/s::a", "one/s::b", "two/s::c")
    suites = [
        Suite(
            path, "nao", cases=[Case(name, name[-1], path, "nao") for name in names if name.startswith(path)]
        )
        for path in ("one/s", "two/s")
    ]
    state.set_suites(suites)
    history = sorted(results, key=lambda one: -one.finished_at)
    state.set_history({name: [one for one in history if one.case_id == name] for name in names})
    return state


@pytest.mark.parametrize("order", list(permutations(("good", "sloppy"))))
def test_each_column_is_a_row_below_the_line_of_its_test(order: tuple[str, str]) -> None:
    """The columns of a run end in any order; a folder not run again keeps what it was."""
    results = []
    for number, model in enumerate(order):
        for case in ("one/s::a", "one/s::b", "two/s::c"):
            bad = model == "sloppy" and case != "one/s::b"
            results.append(result(case, model, "failed" if bad else "passed", 10.0 + number))
    results.append(result("one/s::a", "good", "passed", 90.0))
    state = app_state(*results)
    entries = suite_entries(state)
    assert [(entry.variant, entry.status) for entry in entries] == [
        ("good", "passed"), ("sloppy", "failed"),
        ("good", "passed"), ("sloppy", "passed"),
        ("good", "passed"), ("sloppy", "failed"),
    ]  # fmt: skip
    assert len({entry.key for entry in entries}) == len(entries)
    assert [(entry.model, entry.message) for entry in entries if failing(entry)] == [
        ("sloppy", "sloppy: failed"),
        ("sloppy", "sloppy: failed"),
    ]
    tree = build(entries, state.suites, View())
    assert tree.total == 3
    shown = [(line.depth, line.name, line.summary.variant if line.members else "") for line in tree.lines]
    assert shown == [
        (0, "one/", ""), (1, "s", ""), (2, "a", "1 of 2"), (3, "good", ""), (3, "sloppy", ""), (2, "b", "all 2"),
        (0, "two/", ""), (1, "c", "1 of 2"), (2, "good", ""), (2, "sloppy", ""),
    ]  # fmt: skip
    assert tree.lines[0].counts == {"failed": 1, "passed": 3}
    assert [(one.case_id, one.column and one.column.model) for one in not_passed(entries)] == [
        ("one/s::a", "sloppy"),
        ("two/s::c", "sloppy"),
    ]


def test_each_column_has_its_own_trend() -> None:
    results = [
        result("one/s::a", "sloppy", "failed", 1.0),
        result("one/s::a", "good", "passed", 2.0),
        result("one/s::a", "sloppy", "passed", 3.0),
        result("one/s::a", "good", "passed", 4.0),
        result("one/s::a", "sloppy", "failed", 5.0),
    ]
    rows = suite_entries(app_state(*results))
    assert [row.trend for row in rows[:2]] == [(1.0, 1.0), (0.0, 1.0, 0.0)]


def test_one_own_column_is_a_line_as_before() -> None:
    entry = suite_entries(app_state(result("one/s::a", "m", "failed", 1.0, "own")))[0]
    assert (entry.column, entry.variant, entry.status, entry.key) == (None, "", "failed", entry.case_id)


def test_the_suites_own_column_stands_first_and_asks_for_itself() -> None:
    rows = suite_entries(
        app_state(
            result("one/s::a", "b", "passed", 1.0, "own"),
            result("one/s::a", "a", "failed", 2.0),
        )
    )
    assert [(row.variant, row.column and row.column.own) for row in rows[:2]] == [("b", True), ("a", False)]


def run_of(outcomes: dict[str, str], state: str = "finished", started: float = 50.0) -> RunView:
    view = RunView(RunInfo("r050", state, started_at=started), Path("r050"))  # type: ignore[arg-type]
    view.apply_cases(
        StoredCase(n, "one/s::a", "one/s", "a", "nao", "bot", model, "h", 1, 1)
        for n, model in enumerate(outcomes, 1)
    )
    view.apply_attempts(
        AttemptRow(
            n, n, 1, "done" if outcome else "running", outcome or None, None, outcome, started, 1.0, None, None, None,  # type: ignore[arg-type]
            None, None, 1, "", n,
        )
        for n, outcome in enumerate(outcomes.values(), 1)
    )  # fmt: skip
    return view


@pytest.mark.parametrize("order", list(permutations(("sloppy", "good"))))
def test_every_column_of_the_run_in_front_counts(order: tuple[str, str]) -> None:
    state = app_state()
    state.run = run_of({model: "failed" if model == "sloppy" else "passed" for model in order})
    state.group = RunGroup([state.run])
    assert {entry.model: entry.status for entry in suite_entries(state)[:2]} == {
        "sloppy": "failed",
        "good": "passed",
    }


def test_a_run_of_one_model_in_front_leaves_the_failure_of_another() -> None:
    state = app_state(result("one/s::a", "sloppy", "failed", 1.0))
    state.run = run_of({"good": "passed"})
    state.group = RunGroup([state.run])
    assert [(one.model, one.status) for one in suite_entries(state)[:2]] == [
        ("good", "passed"),
        ("sloppy", "failed"),
    ]
    state.run = run_of({"good": ""}, "running")
    state.group = RunGroup([state.run])
    assert [one.status for one in suite_entries(state)[:2]] == ["running", "failed"]


def test_a_run_in_front_whose_clock_was_ahead_hides_no_newer_result() -> None:
    state = app_state(result("one/s::a", "good", "passed", 90.0))
    state.run = run_of({"good": "failed"}, started=4e9)
    state.group = RunGroup([state.run])
    assert [one.status for one in suite_entries(state)[:1]] == ["passed"]


def test_a_note_stands_in_the_column_whose_answer_it_is_of() -> None:
    """It stood in all columns of the case, and in a run as long as nobody noted anything on another answer of
    the case."""
    state = app_state(
        result("one/s::a", "good", "passed", 10.0),
        result("one/s::a", "sloppy", "failed", 11.0),
        result("one/s::b", "good", "passed", 10.0),
    )
    on_good = HumanNote("r050", 1, "one/s::a", "right", at=1.0, agent="bot", model="good")
    on_sloppy = HumanNote("r011", 1, "one/s::a", "wrong", at=2.0, agent="bot", model="sloppy")
    later = HumanNote("r090", 1, "one/s::b", "wrong", at=2.0, agent="bot", model="gone")
    state.set_notes("one/s::a", [on_sloppy, on_good])
    state.set_notes("one/s::b", [later])
    noted = [entry.note for entry in suite_entries(state)[:3]]
    assert noted == [on_good, on_sloppy, later], "of a case in one column the newest, whoever answered"
    state.set_notes("one/s::a", [on_sloppy])
    assert [entry.note for entry in suite_entries(state)[:2]] == [None, on_sloppy]
    state.set_notes("one/s::a", [HumanNote("r011", 1, "one/s::a", "wrong")])
    assert all(entry.note for entry in suite_entries(state)[:2]), "kept by a version that did not say of whom"
    state.set_notes("one/s::a", [on_sloppy, on_good])
    group = RunGroup([run_of({"good": "passed", "sloppy": "failed"})])
    assert [entry.note for entry in run_entries(group, state)] == [on_good, None]


def test_attempts_that_were_cut_are_in_no_ratio_and_no_trend() -> None:
    past = result("one/s::a", "m", "cancelled", 1.0)
    past.passed, past.attempts, past.unjudged = 2, 3, 1
    flaky_past = result("one/s::b", "m", "failed", 1.0)
    flaky_past.passed, flaky_past.attempts, flaky_past.unjudged = 1, 3, 1
    a, b = suite_entries(app_state(past, flaky_past))[:2]
    assert (a.passed_of, a.flaky) == ((2, 2), False)
    assert (b.passed_of, b.flaky, b.trend) == ((1, 2), True, (0.5,))
    b.attempts = "pfcw"
    assert b.passed_of == (1, 2)


def test_what_a_run_will_cost_is_known_by_column() -> None:
    from tui_eval.tui.state.runs.run_estimate import Planned, estimate

    history = [result("a", "dear", "passed", 2.0, cost=1.0), result("a", "cheap", "passed", 1.0, cost=0.01)]
    assert estimate([Planned(history, 1, [Who("bot", "cheap")])], 1).cost == pytest.approx(0.01)
    assert estimate(
        [Planned(history, 2, [Who("bot", "cheap"), Who("bot", "dear")])], 1
    ).cost == pytest.approx(2.02)
    history = [result("a", "dear", "passed", 2.0, cost=1.0), result("a", "own", "passed", 1.0, "own", 0.01)]
    assert estimate([Planned(history, 1, [Who("bot")])], 1).cost == pytest.approx(0.01)


def test_verdicts_by_reference_are_marked_once_where_all_are_and_else_in_their_rows() -> None:
    def lines(*rules: str) -> list[str]:
        results = [
            result(case, model, outcome, 10.0)
            for case in ("one/s::a", "one/s::b")
            for model, outcome in (("good", "passed"), ("sloppy", "failed"))
        ]
        for one, compat in zip(results, rules, strict=True):
            one.compat = compat
        state = app_state(*results)
        painted = CaseLines("suites", Symbols())
        painted.cases = build(suite_entries(state), state.suites, View(unfolded={"one/s", "two/s"}))
        return [plain(painted.tree_line(line, 100)) for line in painted.cases.lines]

    marked = [line for line in lines(*["reference"] * 4) if "reference" in line]
    assert [line.split()[1] for line in marked] == ["s"]
    of_one_test = [line for line in lines("reference", "reference", "documented", "") if "reference" in line]
    assert len(of_one_test) == 1 and " a " in of_one_test[0]
    of_one_row = [
        line for line in lines("documented", "reference", "documented", "documented") if "reference" in line
    ]
    assert len(of_one_row) == 1 and "sloppy" in of_one_row[0]
    assert not [line for line in lines(*["documented"] * 4) if "reference" in line]


def test_cases_and_their_rows_are_counted_by_their_names_and_outcomes_add_up() -> None:
    """Three cases, of which one never ran and one has two columns."""
    state = app_state(
        result("one/s::a", "good", "passed", 1.0),
        result("one/s::a", "sloppy", "failed", 2.0),
        result("one/s::b", "good", "passed", 3.0),
    )
    state.loading = False
    tree = build(suite_entries(state), state.suites, View())
    assert (tree.total, tree.rows, tree.standing().counts.total()) == (3, 4, 4)
    told = "".join(text for _, text in facts_line(state, tree, Symbols(), SuitesFacts(), "", 200))
    assert told.endswith("2 suites · 3 cases, 4 rows  ✗ 1 failed  ✓ 2 passed  1 never run")
    lines = CaseLines("suites", Symbols())
    lines.cases = tree
    shown = {line.key: plain(lines.tree_line(line, 80)) for line in tree.lines}
    assert shown["one/s"].endswith("2 in 3 rows ✗1 ✓2")
    words = [text for line in tree.lines[:2] for _, text in describe(line, Symbols(), 0.0)]
    assert "2 cases, 3 rows · 1 failed, 2 passed" in words
    never = build(suite_entries(app_state()), state.suites, View())
    told = "".join(text for _, text in facts_line(state, never, Symbols(), SuitesFacts(), "", 200))
    assert told.endswith("3 cases")


def test_a_fold_is_painted_in_a_list_of_any_width() -> None:
    """Of names for which there is less than no room it was a crash, and the list could not be shown."""
    results = [result("one/s::a", model, "failed", 1.0) for model in ("atlas-mini", "atlas-large", "bison")]
    for one in results:
        one.message = one.cause = one.alike = "lacks 2 years"
    state = app_state(*results, result("one/s::a", "good", "passed", 1.0))
    tree = build(suite_entries(state), state.suites, View())
    assert any(line.names for line in tree.lines)
    for lines in (CaseLines("suites", Symbols()), CaseLines("run", Symbols())):
        lines.cases = tree
        for width in range(60):
            assert all(lines.tree_line(line, width) for line in tree.lines)


@pytest.mark.parametrize("of_suite", [None, "m0"])
@pytest.mark.parametrize("past", [True, False])
def test_a_row_of_suites_points_at_the_column_that_its_run_in_front_has(
    past: bool, of_suite: str | None
) -> None:
    """The model of an agent's entry, which no case names, or before that of its suite, is its column's too: `.` asked
    for another, and found no answer."""
    known = result("one/s::a", "m1", "failed", 50.0, "own")
    state = app_state(*([known] if past else []))
    state.rows[0].model = of_suite
    state.run = run_of({"m1": "failed"})
    state.group = RunGroup([state.run])
    row = suite_entries(state)[0]
    pointer = SuiteCases(state).pointer_of(row)
    assert (pointer.agent, pointer.model, pointer.run_id) == ("bot", "m1", "r050")
    assert meant(row, pointer), "r in the Case screen runs it"
    assert not row.column and row.model == (of_suite or "")  # one column of the suites, whoever answered


def test_a_filter_by_model_finds_in_suites_what_it_finds_in_a_run() -> None:
    state = app_state(result("one/s::a", "m1", "failed", 50.0, "own"))
    rows = suite_entries(state)
    assert [row.case_id for row in rows if parse("model:m1").matches(subject(row))] == ["one/s::a"]
    assert values_of(rows)["model"] == ["m1"]
