"""Sums and pass metrics against what nao-core 0.3.29 computed for the same results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui_eval.guard.figures import total_amount
from tui_eval.reports.results import Metrics, whole
from tui_eval.store.schema import price_of

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
