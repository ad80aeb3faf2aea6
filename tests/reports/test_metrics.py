"""Sums and pass metrics against what nao-core 0.3.29 computed for the same results."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from tui_eval.guard.figures import total_amount
from tui_eval.model import Attempt, Case, Outcome, Usage
from tui_eval.reports.nao_metrics import Metrics
from tui_eval.reports.page import pieces
from tui_eval.reports.results import build, whole
from tui_eval.reports.run_comparison import compare
from tui_eval.reports.tabular import write_markdown
from tui_eval.store.case_state import flaky
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, new_run_id
from tui_eval.store.schema import RunInfo, price_of
from tui_eval.store.summary import RunSums, summarise_run, wilson
from tui_eval.store.writer import PlannedCase, RunWriter

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "vectors" / "nao_pass_metrics.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_like_nao(vector: dict) -> None:
    found = Metrics()
    for run in vector["runs"]:
        found.add({"name": "", **run})
    assert found.summary() == pytest.approx(vector["summary"])
    ours, theirs = found.by_model(), vector["by_model"]
    assert [entry["model"] for entry in ours] == [entry["model"] for entry in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one == pytest.approx(other)
    metrics, expected = whole(found.pass_metrics().items()), vector["pass_metrics"]
    assert metrics["k"] == expected["k"]
    assert metrics["aggregate"] == pytest.approx(expected["aggregate"])
    assert metrics["by_test"] == expected["by_test"]


def test_a_result_whose_name_is_null_has_the_empty_name_as_in_nao() -> None:
    found = Metrics()
    for name in (None, ""):
        found.add({"name": name, "model": "m", "passed": True})
    (test,) = whole(found.pass_metrics().items())["by_test"]
    assert (test["name"], test["k"]) == ("", 2)


def test_sums_of_money_are_as_exact_as_prices() -> None:
    """`3.5999999999999996` stood in files."""
    found = Metrics()
    for _ in range(3):
        judging = {"tokens": 1, "cost": 1.2, "cached": 1, "saved": 1.2}
        found.add({"name": "", "cost": 1.2, "cached": True, "saved": 1.2, "judging": judging})
    summary = found.summary()
    names = ("total_saved", "total_judge_cost", "total_judge_saved")
    assert [summary[name] for name in names] == [3.6] * 3
    assert summary["total_cost"] == sum([1.2] * 3), "as nao has it"
    assert found.by_model()[0]["total_saved"] == found.by_model()[0]["total_cost"] == 3.6
    assert total_amount([1.2, None, 1.2, 1.2], "cost saved") == 3.6 == price_of(1.2, 2.4)
    assert total_amount([1e-12], "cost") == 1e-12  # one alone is as it was said


def test_a_case_is_one_test_whatever_models_its_attempts_name() -> None:
    """One that erred names none: the others were a test of their own, that had passed each time."""
    found = Metrics()
    for number, model in enumerate((None, "m-1", "m-2")):
        found.add({"name": "a", "model": model, "passed": number > 0}, 1)
    for passed in (True, True, False):
        found.add({"name": "a", "model": "m-1", "passed": passed}, 2)
    metrics = whole(found.pass_metrics().items())
    thirds = {"pass_at_1": 2 / 3, "pass_at_k": 1.0, "pass_hat_k": 0.0}
    assert metrics["k"] == 3 and metrics["aggregate"] == pytest.approx(thirds)
    assert [(one["name"], one["model"], one["k"]) for one in metrics["by_test"]] == [("a", "m-1", 3)] * 2
    assert {one["model"]: one["total"] for one in found.by_model()} == {"m-1": 4, "m-2": 1, "unknown": 1}


def markdown(reader: RunReader) -> str:
    """The run as Markdown."""
    path = reader.folder / "out.md"
    write_markdown(reader, path)
    return path.read_text()


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """A run that was cancelled: of three attempts of `x` two passed and one was cut, `y` passed, of `z`
    nothing came, and of the first attempt of `w`, which lacks one more, only its input is known."""
    run_id = new_run_id()
    folder = Store(tmp_path).create_folder(run_id)
    writer = RunWriter(folder, RunInfo(id=run_id, agents=["a"], started_at=1000.0))
    planned = [
        PlannedCase(Case(f"s::{name}", name, "s.yaml", "nao"), "a", None, many, many)
        for name, many in (("x", 3), ("y", 1), ("z", 1), ("w", 2))
    ]
    refs = writer.plan(planned)

    def done(case: int, number: int, outcome: Outcome, took: float, usage: Usage) -> None:
        name = planned[case].case.case_id
        writer.done(
            refs[case][number - 1],
            Attempt(name, number, outcome, agent="a", usage=usage, started_at=1000.0, duration_ms=took),
        )

    done(0, 1, "passed", 10, Usage(10, 5))
    done(0, 2, "passed", 20, Usage(10, 5))
    done(0, 3, "cancelled", 9000, Usage(10, None))
    done(1, 1, "passed", 30, Usage(10, 5))
    done(2, 1, "cancelled", 8000, Usage())
    done(3, 1, "passed", 40, Usage(10, None))
    writer.state("cancelled", 1010.0)
    writer.close()
    return folder


def test_what_was_cancelled_is_in_no_rate_and_makes_nothing_flaky(cut: Path) -> None:
    with closing(RunReader(cut)) as reader:
        document = build(reader)
        x, y, z, _ = summarise_run(reader.cases(), reader.attempts())
        page, text = "".join(pieces(reader)), markdown(reader)
    assert (x.attempts, x.judged, x.passed, x.outcome, x.flaky) == (3, 2, 2, "cancelled", False)
    assert (x.pass_rate, x.interval, x.duration_ms) == (1.0, wilson(2, 2), 15)
    assert (z.attempts, z.judged, z.pass_rate, z.duration_ms) == (1, 0, 0.0, 8000), (
        "nothing else is known of it"
    )
    in_file = document["cases"][0]
    assert (in_file["attempts"], in_file["passed"], in_file["flaky"]) == (3, 2, True), (
        "by the rule that is written down"
    )
    assert (in_file["pass_rate"], in_file["interval"]) == (2 / 3, list(wilson(2, 3)))
    assert document["pass_metrics"]["aggregate"]["pass_at_1"] == pytest.approx((2 / 3 + 1 + 0 + 1) / 4)
    assert document["summary"]["failed"] == 2, "as nao counts: all that did not pass"
    assert "100% (21% to 100% at 95 %)" in page and "flaky" not in text
    assert "cancelled 2/2 |" in text, "as the head of the case has it"
    assert "Pass rate 21% to 100% at 95 %" in text
    found = compare([x, y], [x, y])
    assert [case.p_value for case in found.cases] == [None]


def test_a_run_has_the_same_tokens_wherever_it_stands(cut: Path) -> None:
    with closing(RunReader(cut)) as reader:
        document = build(reader)
        sums = RunSums()
        for one in summarise_run(reader.cases(), reader.attempts()):
            sums.add(one)
        page, text = "".join(pieces(reader)), markdown(reader)
    index = Index(cut.parents[2])
    run = index.runs()[0]
    latency, tokens = index.figures()[cut.name]
    assert document["summary"]["total_tokens"] == sums.tokens == tokens == 65
    assert "65 tokens" in page and "65 tokens" in text
    assert (latency, run.tokens_of) == (25, 5), "of what was cut short nobody knows how long it takes"
    (of_x,) = index.history("s::x")
    assert (of_x.attempts, of_x.judged, flaky(of_x)) == (3, 2, False)
