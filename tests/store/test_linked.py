"""Runs that belong together, as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live_run import LiveRun
from tui_eval.store.index import Index
from tui_eval.store.linked import (
    counting,
    load_together,
    parts,
    summarise_together,
    told_together,
)
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import RunSummary

LINKS = {"a": None, "b": "a", "c": "a", "d": None}


@pytest.mark.parametrize(
    ("run", "other", "expected"),
    [
        ("a", "d", ["a", "b", "c"]),  # with all that was added to it
        ("d", "a", ["d"]),
        ("b", "d", ["a", "b"]),  # as it stood when b had ended
        ("a", "b", ["a"]),  # of one family: what b changed
        ("b", "a", ["a", "b"]),
        ("a", "c", ["a"]),
        ("c", "a", ["a", "b", "c"]),
        ("b", "c", ["a", "b"]),
        ("a", "", ["a", "b", "c"]),
    ],
)
def test_which_runs_count(run: str, other: str, expected: list[str]) -> None:
    assert counting(LINKS, run, other) == expected


def runs(root: Path) -> list[LiveRun]:
    """Two cases, one failed; it is run again and passes; then an attempt is added that fails; the other case
    is run again and cancelled."""
    first = LiveRun(root, ["x", "y"], attempts=2)
    for case, attempt, outcome in ((0, 0, "failed"), (0, 1, "failed"), (1, 0, "passed"), (1, 1, "passed")):
        first.done(case, outcome, attempt=attempt)
    first.finish()
    again = LiveRun(root, ["x"], linked_to=first.info.id)
    again.all_done(["passed"])
    more = LiveRun(root, ["x"], linked_to=again.info.id, first_attempt=2)
    more.all_done(["failed"])
    cancelled = LiveRun(root, ["y"], linked_to=first.info.id)
    cancelled.all_done(["cancelled"])
    return [first, again, more, cancelled]


def test_a_rerun_takes_the_place_and_an_added_attempt_is_added(tmp_path: Path) -> None:
    made = runs(tmp_path)
    folders = [run.folder for run in made]
    x, y = load_together(folders[:2])
    assert (x.passed, x.attempts, x.required, x.outcome) == (1, 1, 1, "passed")
    assert (y.passed, y.attempts, y.outcome) == (2, 2, "passed")
    x, y = load_together(folders)
    assert (x.passed, x.attempts, x.required, x.outcome, x.flaky) == (1, 2, 2, "failed", True)
    assert (y.passed, y.attempts, y.outcome) == (2, 2, "passed"), "a cancelled rerun says nothing"


def test_who_tells_what_became_of_a_case(tmp_path: Path) -> None:
    first, again, more, cancelled = runs(tmp_path)
    x, y = told_together([run.folder for run in (first, again, more, cancelled)])
    assert x.by == (more.info.id, more.refs[0][0]) and y.by == (first.info.id, first.refs[1][0])
    x, y = told_together([run.folder for run in (first, again)])
    assert x.by == (again.info.id, again.refs[0][0]) and y.summary.outcome == "passed"
    assert [one.by for one in told_together([first.folder])] == [None, None]


def test_folders_of_this_project_and_of_elsewhere(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    made = runs(root)
    assert Index(root).counting_folders(made[0].folder) == [run.folder for run in made]
    assert Index(root).counting_folders(made[0].folder, made[1].folder) == [made[0].folder]
    assert Index(tmp_path).counting_folders(made[0].folder) == [made[0].folder]


def test_a_run_of_some_cases_by_itself_counts_with_no_other(tmp_path: Path) -> None:
    """It may be of another state of the agent: what it broke would stand as broken before, and be no regression."""
    whole = LiveRun(tmp_path, ["x", "y", "z"])
    whole.all_done(["passed", "passed", "passed"])
    part = LiveRun(tmp_path, ["x"])
    part.all_done(["failed"])
    another = LiveRun(tmp_path, ["x", "y", "z"])
    another.all_done(["failed", "passed", "passed"])
    assert Index(tmp_path).counting_folders(whole.folder, another.folder) == [whole.folder]
    assert Index(tmp_path).counting_folders(part.folder, whole.folder) == [part.folder]


def test_one_run_alone_is_summarised_as_ever(tmp_path: Path) -> None:
    made = runs(tmp_path)[0]
    reader = RunReader(made.folder)
    parts = [(reader.cases(), reader.attempts())]
    reader.close()
    assert [one.outcome for one in summarise_together(parts)] == ["failed", "passed"]


def summary(
    run_id: str, agents: str = "a", linked_to: str | None = None, stepped: bool = False
) -> RunSummary:
    return RunSummary(
        run_id, "finished", 1.0, 2.0, "", agents, 1, 1, 0, 0, 0, None, linked_to, stepped=stepped
    )


ALL = frozenset(range(100))
SOME = frozenset(range(60))


@pytest.mark.parametrize(
    ("run", "cases", "above"),
    [
        (summary("y"), {1}, "w2"),
        (summary("y"), range(49), "w2"),
        (summary("y"), range(50), ""),  # half of them: the suites have fewer by now
        (summary("y"), {200}, ""),  # of other cases
        (summary("y"), {1, 200}, ""),
        (summary("y", "b"), {1}, "w1"),  # of one of its agents
        (summary("y", "a, c"), {1}, ""),
        (summary("y", linked_to="w1"), {1}, ""),  # it says itself where it belongs
        (summary("y", stepped=True), ALL, "w2"),
        (summary("y", stepped=True), {200}, ""),
        (summary("y"), (), ""),  # not known
    ],
)
def test_a_run_is_a_part_of_the_last_whole_one_that_has_its_cases(run, cases, above: str) -> None:
    before = [summary("w1", "a, b"), summary("w2"), summary("x"), summary("w3", "d")]
    known = dict(zip(("w1", "w2", "x", "w3"), (ALL, ALL, frozenset({300}), ALL), strict=True))
    found = parts([*before, run], known | {"y": frozenset(cases)})
    assert found == ({"y": above} if above else {})


def test_of_a_run_of_fewer_cases_a_smaller_one_is_a_part() -> None:
    runs = [summary(name) for name in ("w1", "w2", "w3")]
    known = {"w1": ALL, "w2": SOME, "w3": frozenset({1})}
    assert parts(runs, known) == {"w3": "w2"}


def test_the_list_of_runs_says_by_their_cases_which_are_parts_of_another(tmp_path: Path) -> None:
    """Also one that is under way, and one in which nothing was judged."""
    whole = LiveRun(tmp_path, ["x", "y", "z"])
    whole.all_done(["passed", "failed", "passed"])
    other = LiveRun(tmp_path, ["fourth"])  # of the same file
    other.all_done(["passed"])
    part = LiveRun(tmp_path, ["y"])
    part.all_done(["passed"])
    step = LiveRun(tmp_path, ["z"], options={"step": True})
    step.all_done(["skipped"])
    going = LiveRun(tmp_path, ["x"])
    assert going.writer.flush()  # its plan is written by a thread
    index = Index(tmp_path)
    for _ in range(2):
        assert {run.id: run.part_of for run in index.runs()} == {
            whole.info.id: "", other.info.id: "", part.info.id: whole.info.id, step.info.id: whole.info.id,
            going.info.id: whole.info.id,
        }  # fmt: skip
        index.rebuild()
    going.all_done(["passed"])
