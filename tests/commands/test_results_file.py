"""The results file of the sample suites: every key that is promised, sums that agree, outcomes as meant."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Cli, fast_samples

RESULT = {
    "name", "model", "passed", "message", "tokens", "cost", "duration_ms", "tool_call_count", "error", "details",
    "attempt", "suite", "format", "case_id", "agent", "outcome", "score", "named_scores", "prompt", "vars",
    "metadata", "usage", "assertions", "transcript", "started_at",
}  # fmt: skip
DETAILS = {
    "response_text", "actual_data", "expected_data", "comparison", "tool_calls", "reference_sql",
    "verification_sql",
}  # fmt: skip
ASSERTION = {
    "type", "target", "expected", "actual", "passed", "score", "reason", "weight", "metric", "turn",
}  # fmt: skip
ENTRY = {
    "turn", "kind", "agent", "text", "name", "arguments", "result", "error", "call_id", "usage", "started_at",
    "first_token_ms", "duration_ms",
}  # fmt: skip
KINDS = {"user", "assistant", "reasoning", "tool_call", "tool_result", "hand_off", "note", "error"}
SUMMARY = {
    "total", "passed", "failed", "total_tokens", "total_cost", "total_duration_ms", "total_duration_s",
    "total_tool_calls", "avg_duration_ms", "avg_tool_calls", "errors", "cancelled", "skipped", "not_run",
}  # fmt: skip
CASE = {
    "case_id", "name", "suite", "outcome", "attempts", "passed", "required", "pass_rate", "interval", "flaky",
}  # fmt: skip
BY_MODEL = {
    "model", "total", "passed", "failed", "pass_rate", "total_tokens", "total_cost", "total_duration_ms",
    "avg_duration_ms", "total_tool_calls", "avg_tool_calls", "k", "pass_at_1", "pass_at_k", "pass_hat_k",
}  # fmt: skip


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    """What the first test found."""
    return {}


@pytest.fixture
def document(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: dict[str, Any]
) -> dict[str, Any]:
    """The results of the sample suites, run without waiting."""
    kept["document"] = kept.get("document") or _run(cli, tmp_path, monkeypatch)
    return copy.deepcopy(kept["document"])


def _run(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    samples = fast_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = cli("run", "sample_suites", "-o", "results.json", "-o", "results.jsonl", "--display", "none")
    assert (result.code, result.out, result.err) == (1, "", "")
    assert list((samples / "shop_analyst" / "tests" / "outputs").glob("results_*.json"))
    document = json.loads((tmp_path / "results.json").read_text("ascii"))
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text("ascii").splitlines()]
    assert lines == document["results"]
    assert cli("export", samples / ".tui-eval" / "runs" / document["run"]["id"], "-o", "again.json").code == 0
    assert json.loads((tmp_path / "again.json").read_text()) == document
    return document


def test_every_key_and_every_sum(document: dict[str, Any]) -> None:
    assert {"timestamp", "results", "summary", "by_model", "pass_metrics", "cases", "metrics", "run"} <= set(
        document
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?", document["timestamp"])
    for result in document["results"]:
        assert result.keys() >= RESULT
        assert result["details"].keys() >= DETAILS
        assert result["usage"].keys() == {"input_tokens", "output_tokens", "cached_tokens"}
        assert result["passed"] == (result["outcome"] == "passed")
        assert 0 <= result["score"] <= 1
        for assertion in result["assertions"]:
            assert assertion.keys() >= ASSERTION and assertion["passed"] in (True, False, None)
        for entry in result["transcript"]:
            assert entry.keys() == ENTRY and entry["kind"] in KINDS and entry["turn"] >= 1
    results, summary = document["results"], document["summary"]
    assert summary.keys() >= SUMMARY
    assert summary["total"] == len(results) == summary["passed"] + summary["failed"]
    assert summary["passed"] == sum(result["passed"] for result in results)
    assert summary["errors"] == sum(result["outcome"] == "error" for result in results)
    assert summary["total_tokens"] == sum(result["tokens"] or 0 for result in results)
    assert summary["total_cost"] == pytest.approx(sum(result["cost"] or 0 for result in results))
    assert summary["total_tool_calls"] == sum(result["tool_call_count"] or 0 for result in results)
    order = [(result["suite"], result["attempt"]) for result in results]
    assert [suite for suite, _ in order] == sorted(suite for suite, _ in order)
    for entry in document["by_model"]:
        assert entry.keys() >= BY_MODEL
    for case in document["cases"]:
        assert case.keys() >= CASE
        low, high = case["interval"]
        assert 0 <= low <= case["pass_rate"] <= high <= 1
        assert case["flaky"] == (0 < case["passed"] < case["attempts"])
        assert (case["outcome"] == "passed") == (case["passed"] >= case["required"])
    assert document["pass_metrics"]["k"] == 4
    assert len(document["pass_metrics"]["by_test"]) == len(document["cases"])
    run = document["run"]
    assert run["state"] == "finished" and run["id"] and run["version"]
    assert run["started_at"] <= run["finished_at"]
    columns = {(item["prompt"], item["agent"]) for item in document["metrics"]}
    assert len(columns) == 2
    for item in document["metrics"]:
        assert {"suite", "agent", "prompt", "score", "named_scores", "derived"} <= item.keys()
        assert {"facts", "voice", "budget", "speed"} <= item["named_scores"].keys()


def test_the_samples_fail_as_their_readme_says(document: dict[str, Any]) -> None:
    outcomes = {case["case_id"].partition("::")[2]: case for case in document["cases"]}
    assert len(outcomes) >= 40
    wrong = {name.split("::")[0] for name, case in outcomes.items() if case["outcome"] == "failed"}
    assert wrong == {
        "revenue_by_month", "top_customers", "all_orders", "bestsellers", "return_rate",
        "Delivery time names the weekend (flaky)", "Warranty is three years (broken)",
        "Remembers the order number from the first message", "Refund is never promised before it is checked",
        "Cancelling takes one look-up, not six", "Short question stays within the token budget",
        "Kettle text names the capacity", "Kettle text sounds like a person wrote it",
        "Desk lamp as JSON for the shop", "Water bottle headline is no exclamation", "Green tea in Japanese",
        "Olive oil in German", "Unknown facts are not made up",
        "cancellation_terms", "remembers_the_allergy", "stays_in_budget", "train_times",
    }  # fmt: skip
    assert outcomes["Status page is read while it is down"]["outcome"] == "error"
    assert {name for name, case in outcomes.items() if case["flaky"]} == {
        "Delivery time names the weekend (flaky)", "train_times", "visa_rules",
    }  # fmt: skip


def test_what_the_details_hold(document: dict[str, Any]) -> None:
    by_name = {result["name"]: result for result in document["results"] if result["attempt"] == 1}
    month = by_name["revenue_by_month"]
    assert month["message"] == "values differ" and "month=2024-04" in month["details"]["comparison"]
    assert len(month["details"]["expected_data"]) == len(month["details"]["actual_data"]) == 6
    assert month["details"]["reference_sql"].startswith("SELECT strftime")
    (call,) = month["details"]["tool_calls"]
    assert call["toolName"] == "execute_sql" and call["result"]["row_count"] == 6
    rate = by_name["return_rate"]
    assert rate["message"].startswith("missing tool_call: read with args {'path': 'RULES.md'}")
    assert "result" not in rate["details"]["tool_calls"][0], "a call that failed has none"
    lisbon = by_name["lisbon_weekend"]
    speakers = {entry["agent"] for entry in lisbon["transcript"]}
    assert {"flight_finder", "hotel_scout", "hotel_scout.map_reader"} <= speakers
    assert [entry["name"] for entry in lisbon["transcript"] if entry["kind"] == "hand_off"][:2] == [
        "flight_finder", "hotel_scout",
    ]  # fmt: skip
    tea = by_name["Green tea in Japanese"]
    assert tea["vars"]["language"] == "Japanese" and tea["metadata"] == {"kind": "translation"}
    judged = [item for item in by_name["cancellation_terms"]["assertions"] if item["type"] == "gist"]
    assert judged[0]["judge"]["answer"] == "fail"
