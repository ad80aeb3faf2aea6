"""Scores below the grid are those of the run in front, whatever small rerun was added to it since."""

from __future__ import annotations

from pathlib import Path

from tui_eval.store.schema import RunInfo, StoredCase
from tui_eval.tui.state.compare.grid_view import metric_lines, metrics_of, scores_in_full
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.text.lines import plain


def run(run_id: str, cases: int, score: float, **options: bool) -> RunView:
    info = RunInfo(id=run_id, version="1", started_at=1.0, paths=["."], options=options, agents=["echo"])
    info.metrics = [
        {"agent": "echo", "named_scores": {"tone": score * cases}, "named_weights": {"tone": cases}}
    ]
    view = RunView(info, Path(run_id))
    view.apply_cases(
        [
            StoredCase(number, f"s::{number}", "s", str(number), "promptfoo", "echo", None, "h", 1, 1)
            for number in range(cases)
        ]
    )
    return view


def test_scores_take_few_lines_and_say_what_they_leave_out() -> None:
    metrics = [
        {"agent": agent, "prompt": "p", "named_scores": {f"measure {n}": n for n in range(6)}}
        for agent in ("a", "b", "c")
    ]
    found = [plain(line) for line in metric_lines(metrics, 60, most=2, here=("c", "", "p"))]
    assert found[0].startswith("c · p  measure 0 0, measure 1 1") and found[0].endswith("and 3 more")
    assert found[1].startswith("a · p  ") and found[1].endswith("more; 1 more column")
    assert all(len(line) <= 60 for line in found)
    assert len(metric_lines(metrics, 20, most=1)) == 1
    assert scores_in_full(metrics, ("c", "", "p")).endswith("measure 4 4, measure 5 5")


def test_what_is_derived_from_sums_is_said_to_be_beside_means() -> None:
    column = {"agent": "a", "named_scores": {"m1": 0, "m2": 4.0}, "derived": {"d1": 8, "d2": 1}}
    weighed = {**column, "named_weights": {"m1": 8, "m2": 8}}
    assert [plain(line) for line in metric_lines([weighed], 60)] == [
        "a  m1 0, m2 0.5, of sums: d1 = 8, d2 = 1"
    ]
    alone = {**column, "named_weights": {"m1": 1, "m2": 1}}
    assert [plain(line) for line in metric_lines([alone], 60)] == ["a  m1 0, m2 4, d1 = 8, d2 = 1"]


def test_a_rerun_of_one_case_leaves_the_scores_of_the_run() -> None:
    whole = run("a", 4, 0.5)
    assert metrics_of([whole]) == (whole.info.metrics, "")
    metrics, told = metrics_of([whole, run("b", 1, 1.0)])
    assert metrics == whole.info.metrics
    assert [plain(line) for line in metric_lines(metrics, 60, told)] == ["echo (without reruns)  tone 0.5"]
    assert metrics_of([whole, run("c", 1, 1.0, step=True)]) == (whole.info.metrics, "")
    assert metrics_of([]) == ([], "")
