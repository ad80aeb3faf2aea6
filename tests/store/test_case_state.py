"""The state of a case is that of each of its columns: nothing hangs on which column ran last."""

from __future__ import annotations

import sqlite3
from itertools import permutations
from pathlib import Path

import msgspec
import pytest

from tui_eval.model import Attempt, Case, Turn
from tui_eval.store import case_state
from tui_eval.store.case_state import Column
from tui_eval.store.index import Index
from tui_eval.store.run_folders import Store, StoreError, new_run_id
from tui_eval.store.schema import Asked, CaseHistory, RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter

CASE = "suite.yaml::one"


def result(run: int, model: str, outcome: str = "passed", asked: Asked = "named") -> CaseHistory:
    return CaseHistory(
        f"run{run}", CASE, "helper", model, outcome, outcome == "passed", 1, float(run), 1.0, None, None, "h",  # type: ignore[arg-type]
        outcome, 1, asked,
    )  # fmt: skip


def newest_first(*results: CaseHistory) -> list[CaseHistory]:
    return sorted(results, key=lambda one: one.finished_at, reverse=True)


@pytest.mark.parametrize("order", list(permutations(("sloppy", "good", "fine"))))
def test_the_worst_column_stands_for_the_case_in_whatever_order_they_ran(order: tuple[str, ...]) -> None:
    outcomes = {"sloppy": "failed", "good": "passed", "fine": "error"}
    history = newest_first(*(result(n, model, outcomes[model]) for n, model in enumerate(order)))
    assert set(case_state.not_passed(history)) == {Column("helper", "sloppy"), Column("helper", "fine")}
    stands = case_state.newest_of(history, None, None)
    assert stands is not None and stands.model == "sloppy"


def test_a_pass_in_one_column_takes_nothing_from_a_failure_in_another() -> None:
    history = newest_first(result(1, "sloppy", "failed"), result(2, "good"), result(3, "good"))
    assert case_state.not_passed(history) == [Column("helper", "sloppy")]
    assert case_state.not_passed([result(4, "sloppy"), *history]) == []


def test_the_suites_own_column_moves_with_its_configuration_and_named_ones_stay() -> None:
    own = newest_first(result(1, "old", "failed", "own"), result(2, "new", "passed", "own"))
    assert list(case_state.by_column(own)) == [Column("helper", "new")]
    named = newest_first(result(1, "old", "failed", "named"), result(2, "new", "passed", "own"))
    assert case_state.not_passed(named) == [Column("helper", "old")]
    again = newest_first(result(1, "old", "failed", "own"), result(2, "good", "passed", "named"))
    assert case_state.not_passed(again) == [Column("helper", "old")]


def test_failed_asks_a_named_column_where_it_did_not_pass_or_never_ran() -> None:
    history = newest_first(result(1, "sloppy", "failed"), result(2, "good"))
    asks = {m: case_state.runs_again(history, Column("helper", m)) for m in ("sloppy", "good", "unseen")}
    assert asks == {"sloppy": True, "good": False, "unseen": True}
    assert not case_state.runs_again([result(1, "good")], Column("helper", "unseen"))


def test_what_is_at_work_is_shown_before_the_worst() -> None:
    assert case_state.worst({"a": "failed", "b": "running", "c": "passed"}) == "b"
    assert case_state.worst({"a": "passed", "b": "error", "c": "failed"}) == "c"
    assert case_state.worst({}) is None


def test_columns_are_called_by_what_tells_them_apart() -> None:
    same_agent = [Column("helper", "sloppy"), Column("helper", "good")]
    assert list(case_state.column_names(same_agent).values()) == ["sloppy", "good"]
    agents = [Column("a", "gpt"), Column("b", "gpt"), Column("c")]
    assert list(case_state.column_names(agents).values()) == ["a gpt", "b gpt", "c"]


# -- the index


def record(
    root: Path,
    outcomes: dict[str, list[str]],
    options: dict | None = None,
    linked_to: str | None = None,
    first: int = 1,
) -> str:
    """A run of the one case with the model's outcomes, by model."""
    run_id = new_run_id()
    info = RunInfo(run_id, started_at=float(len(list(Store(root).run_folders())) + 1), agents=["helper"],
                   options=options or {}, linked_to=linked_to)  # fmt: skip
    writer = RunWriter(Store(root).create_folder(run_id), info)
    case = Case(CASE, "one", "suite.yaml", "start_to_agent", turns=[Turn("hello")])
    planned = [
        PlannedCase(case, "helper", model, len(many), len(many), first) for model, many in outcomes.items()
    ]
    for refs, (model, many) in zip(writer.plan(planned), outcomes.items(), strict=True):
        for number, (ref, outcome) in enumerate(zip(refs, many, strict=True), first):
            if outcome:
                done = Attempt(CASE, number, outcome, "helper", model, message=outcome, started_at=info.started_at,
                               duration_ms=1.0, cost=0.5)  # type: ignore[arg-type]  # fmt: skip
                writer.done(ref, done)
    writer.state("finished", info.started_at + 1)
    writer.close()
    Index(root).record(writer.folder)
    return run_id


def states(root: Path) -> dict[str, str]:
    history = Index(root).latest().get(CASE, [])
    return {column.model: results[0].outcome for column, results in case_state.by_column(history).items()}


def test_the_index_keeps_the_last_results_of_every_column(tmp_path: Path) -> None:
    record(tmp_path, {"sloppy": ["failed"]}, {"models": ["sloppy"]})
    for _ in range(13):
        record(tmp_path, {"good": ["passed"]}, {"models": ["good"]})
    assert states(tmp_path) == {"good": "passed", "sloppy": "failed"}


def test_a_run_that_ended_before_all_columns_takes_none_away(tmp_path: Path) -> None:
    record(tmp_path, {"a": ["failed"], "b": ["passed"]})
    record(tmp_path, {"a": [""], "b": ["passed"]})
    assert states(tmp_path) == {"a": "failed", "b": "passed"}


def test_one_more_attempt_stands_beside_those_before_it(tmp_path: Path) -> None:
    first = record(tmp_path, {"m": ["failed", "failed", "failed"]})
    record(tmp_path, {"m": ["passed"]}, {"first_attempt": 4}, linked_to=first, first=4)
    newest = Index(tmp_path).latest()[CASE][0]
    assert (newest.outcome, newest.passed, newest.attempts, newest.own_attempts) == ("failed", 1, 4, 1)


@pytest.mark.parametrize("outcome", ["cancelled", "skipped"])
def test_what_was_stepped_and_abandoned_leaves_no_trace(tmp_path: Path, outcome: str) -> None:
    kept = record(tmp_path, {"m": ["failed"]})
    record(tmp_path, {"m": [outcome]}, {"step": True})
    assert states(tmp_path) == {"m": "failed"}
    assert Store(tmp_path).find("last").name == kept
    assert [one.run_id for one in Index(tmp_path).history(CASE)] == [kept]


def test_a_part_of_a_run_that_was_cancelled_changes_nothing(tmp_path: Path) -> None:
    first = record(tmp_path, {"m": ["failed"]})
    record(tmp_path, {"m": ["cancelled"]}, linked_to=first)
    assert states(tmp_path) == {"m": "failed"}


def test_where_there_are_only_steps_there_is_no_last_run(tmp_path: Path) -> None:
    record(tmp_path, {"m": ["passed"]}, {"step": True})
    with pytest.raises(StoreError, match="no runs yet"):
        Store(tmp_path).find("last")


@pytest.mark.parametrize("step", [True, False])
def test_the_list_of_runs_knows_steps(tmp_path: Path, step: bool) -> None:
    record(tmp_path, {"m": ["passed"]}, {"step": True} if step else {})
    (found,) = Index(tmp_path).runs()
    assert found.stepped is step


def test_an_index_of_an_earlier_version_is_made_anew(tmp_path: Path) -> None:
    record(tmp_path, {"sloppy": ["failed"], "good": ["passed"]})
    path = Index(tmp_path).path
    path.unlink()
    with sqlite3.connect(path) as old:
        old.executescript(
            "CREATE TABLE runs (id TEXT); CREATE TABLE results (run_id TEXT); PRAGMA user_version = 1"
        )
    assert states(tmp_path) == {"sloppy": "failed", "good": "passed"}


@pytest.mark.parametrize(
    ("history", "bars"),
    [
        ([("r1", "", 1)], [1.0]),
        ([("j", "r1", 0), ("r1", "", 1)], [0.0]),
        ([("j2", "r1", 1), ("j1", "r1", 0), ("r1", "", 1)], [1.0]),
        ([("r2", "", 1), ("j", "r1", 0), ("r1", "", 1)], [0.0, 1.0]),
        ([("j", "r1", 0), ("r2", "", 1), ("r1", "", 1)], [0.0, 1.0]),
        ([("j2", "r0", 1), ("j1", "r0", 0), ("r1", "", 1)], [1.0, 1.0]),
    ],
    ids=["none", "once", "twice", "before a run", "of an older run", "of a run that is gone"],
)
def test_judging_again_replaces_a_bar_and_adds_none(
    history: list[tuple[str, str, int]], bars: list[float]
) -> None:
    results = [
        msgspec.structs.replace(result(1, "a", "passed" if passed else "failed"), run_id=run, judges=of)
        for run, of, passed in history
    ]
    assert [one.passed / one.attempts for one in case_state.over_runs(results)] == bars


def test_what_earlier_versions_recorded_with_the_provider_is_the_same_column() -> None:
    history = newest_first(
        result(1, "openai:m", "failed"), result(2, "m"), result(3, "openai:other", "failed")
    )
    columns = case_state.by_column(history)
    assert {column.model: [one.run_id for one in results] for column, results in columns.items()} == {
        "m": ["run2", "run1"],
        "openai:other": ["run3"],
    }
    assert case_state.not_passed(history) == [Column("helper", "openai:other")]
