"""Sums and pass metrics against what nao-core 0.3.29 computed for the same results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui_eval.reports.results import Metrics, whole

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
