"""Suites and `R` by column: the worst column stands for a case, whichever ran last."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from tui_eval.model import Case, Suite
from tui_eval.store.schema import Asked, AttemptRow, CaseHistory, RunInfo, StoredCase
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.lists.case_tree import View, build
from tui_eval.tui.state.lists.entries import failing, not_passed, suite_entries
from tui_eval.tui.state.runs.run_estimate import Who
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import RunView


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
def test_folders_count_each_case_by_its_worst_column(order: tuple[str, str]) -> None:
    """The columns of a run end in any order; a folder not run again keeps what it was."""
    results = []
    for number, model in enumerate(order):
        for case in ("one/s::a", "one/s::b", "two/s::c"):
            bad = model == "sloppy" and case != "one/s::b"
            results.append(result(case, model, "failed" if bad else "passed", 10.0 + number))
    results.append(result("one/s::a", "good", "passed", 90.0))
    state = app_state(*results)
    entries = suite_entries(state)
    assert [entry.status for entry in entries] == ["failed", "passed", "failed"]
    assert [(entry.model, entry.message) for entry in entries if failing(entry)] == [
        ("sloppy", "sloppy: failed"),
        ("sloppy", "sloppy: failed"),
    ]
    assert [entry.variant for entry in entries] == ["sloppy, 1 of 2", "2 columns", "sloppy, 1 of 2"]
    tree = build(entries, state.suites, View())
    counts = {line.name: dict(line.counts) for line in tree.lines if line.kind in ("folder", "suite")}
    assert counts["one/"] == {"failed": 1, "passed": 1}
    again = not_passed(entries)
    assert [(entry.case_id, [one.model for one in entry.columns]) for entry in again] == [
        ("one/s::a", ["sloppy"]),
        ("two/s::c", ["sloppy"]),
    ]


def test_the_trend_is_that_of_the_column_that_is_shown() -> None:
    results = [
        result("one/s::a", "sloppy", "failed", 1.0),
        result("one/s::a", "good", "passed", 2.0),
        result("one/s::a", "sloppy", "passed", 3.0),
        result("one/s::a", "good", "passed", 4.0),
        result("one/s::a", "sloppy", "failed", 5.0),
    ]
    assert suite_entries(app_state(*results))[0].trend == (0.0, 1.0, 0.0)


def test_one_own_column_is_a_line_as_before() -> None:
    entry = suite_entries(app_state(result("one/s::a", "m", "failed", 1.0, "own")))[0]
    assert (entry.columns, entry.variant, entry.status) == ((), "", "failed")


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
    entry = suite_entries(state)[0]
    assert (entry.status, entry.model) == ("failed", "sloppy")


def test_a_run_of_one_model_in_front_leaves_the_failure_of_another() -> None:
    state = app_state(result("one/s::a", "sloppy", "failed", 1.0))
    state.run = run_of({"good": "passed"})
    state.group = RunGroup([state.run])
    assert suite_entries(state)[0].status == "failed"
    state.run = run_of({"good": ""}, "running")
    state.group = RunGroup([state.run])
    assert suite_entries(state)[0].status == "running"


def test_what_a_run_will_cost_is_known_by_column() -> None:
    from tui_eval.tui.state.runs.run_estimate import Planned, estimate

    history = [result("a", "dear", "passed", 2.0, cost=1.0), result("a", "cheap", "passed", 1.0, cost=0.01)]
    assert estimate([Planned(history, 1, [Who("bot", "cheap")])], 1).cost == pytest.approx(0.01)
    assert estimate(
        [Planned(history, 2, [Who("bot", "cheap"), Who("bot", "dear")])], 1
    ).cost == pytest.approx(2.02)
    history = [result("a", "dear", "passed", 2.0, cost=1.0), result("a", "own", "passed", 1.0, "own", 0.01)]
    assert estimate([Planned(history, 1, [Who("bot")])], 1).cost == pytest.approx(0.01)
