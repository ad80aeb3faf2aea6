"""Seed 000: nao's test command."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.seeds.support import Document, by_name, evaluate, messages, write
from tests.servers import NaoServer, OpenAIServer, Planned
from tui_eval import cli
from tui_eval.engine.attempt.extraction import PROMPT

TEST = """
name: total_revenue
prompt: What is the total revenue from all orders?
sql: |
  SELECT SUM(amount) as total_revenue
  FROM orders
"""
CONFIG = """
agents:
  analyst: {{type: openai, base_url: "{url}", model: mock, retries: 0}}
databases:
  shop: {{type: sqlite, path: shop.db}}
suites: [{{path: "tests/**", agent: analyst}}]
"""


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    for name in ("NAO_USERNAME", "NAO_PASSWORD", "BACKEND_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A nao project with a database of three orders."""
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.execute("CREATE TABLE orders (id INTEGER, amount REAL)")
    connection.executemany("INSERT INTO orders VALUES (?, ?)", [(1, 20.0), (2, 64.5), (3, 20.0)])
    connection.commit()
    connection.close()
    return tmp_path


def rows(*values: dict[str, Any]) -> Planned:
    return Planned(text=json.dumps({"data": list(values)}))


async def answered(
    root: Path, *answers: Planned, sql: str = "", **files: str
) -> tuple[Document, OpenAIServer]:
    """Run the project's test against a model that first speaks, then gives these rows."""
    test = TEST if not sql else f"name: total_revenue\nprompt: p\nsql: |\n  {sql}\n"
    with OpenAIServer(Planned(text="The total is 104.50."), *answers) as server:
        write(
            root, {"tests/total_revenue.yml": test, "tui_eval.yaml": CONFIG.format(url=server.base), **files}
        )
        return await evaluate(root), server


async def test_the_extraction_turn_has_the_documents_words_and_the_whole_history(root: Path) -> None:
    document, server = await answered(root, rows({"total_revenue": 104.5}))
    assert by_name(document)["total_revenue"]["message"] == "match"
    *history, asked = server.requests[1].body["messages"]
    assert [(message["role"], message["content"]) for message in history] == [
        ("user", "What is the total revenue from all orders?"), ("assistant", "The total is 104.50."),
    ]  # fmt: skip
    assert asked["role"] == "user"
    assert asked["content"] == (
        "Based on your previous analysis, provide the final answer to the original question.\n"
        "Format the data with these columns: total_revenue\n"
        "Return the data as an array of rows, where each row is an object with the column names as keys.\n"
        "If you cannot answer, set data to null."
    )
    assert asked["content"] == PROMPT.format(columns="total_revenue")


async def test_the_reply_is_asked_for_as_structured_data(root: Path) -> None:
    _, server = await answered(root, rows({"a": 1, "b": 2}), sql="SELECT 1 AS b, 2 AS a")
    asked = server.requests[1].body
    assert "columns: b, a\n" in asked["messages"][-1]["content"]
    schema = json.dumps(asked["response_format"])
    assert '"data"' in schema and '"a"' in schema and '"null"' in schema


async def test_what_cannot_be_answered_is_null_and_fails(root: Path) -> None:
    document, _ = await answered(root, Planned(text='{"data": null}'))
    result = by_name(document)["total_revenue"]
    assert not result["passed"] and "null" in result["message"]
    assert result["details"]["actual_data"] is None


@pytest.mark.parametrize(
    ("given", "sql", "message"),
    [
        ([{"total_revenue": 104.5}], "SELECT SUM(amount) AS total_revenue FROM orders", "match"),
        ([{"b": 2, "a": 1}], "SELECT 1 AS a, 2 AS b", "match"),  # columns in any order
        ([{"id": 3}, {"id": 1}, {"id": 2}], "SELECT id FROM orders", "match"),  # rows as well
        ([{"id": 1}, {"id": 2}], "SELECT id FROM orders", "row count: 2 vs 3"),
        ([{"x": 1.0 + 9e-6}], "SELECT 1.0::DOUBLE AS x", "match (approximate)"),
        ([{"x": 1.0 + 2e-5}], "SELECT 1.0::DOUBLE AS x", "values differ"),
        ([{"x": 9e-9}], "SELECT 0.0::DOUBLE AS x", "match (approximate)"),
        ([{"x": 2e-8}], "SELECT 0.0::DOUBLE AS x", "values differ"),
        ([{"x": "a"}], "SELECT 'b' AS x", "values differ"),
        ([{"y": 1}], "SELECT 1 AS x", "missing columns: {'x'}"),
    ],
)
async def test_the_comparison(root: Path, given: list[dict[str, Any]], sql: str, message: str) -> None:
    document, _ = await answered(root, rows(*given), sql=sql)
    result = by_name(document)["total_revenue"]
    assert result["message"] == message
    assert result["passed"] == message.startswith("match")


async def test_a_difference_says_where_values_differ(root: Path) -> None:
    document, _ = await answered(
        root, rows({"id": 1, "amount": 20.0}, {"id": 2, "amount": 65.5}, {"id": 3, "amount": 20.0}),
        sql="SELECT id, amount FROM orders",
    )  # fmt: skip
    details = by_name(document)["total_revenue"]["details"]
    assert (
        "id=2" in details["comparison"]
        and "64.5" in details["comparison"]
        and "65.5" in details["comparison"]
    )
    assert details["expected_data"][1] == {"id": 2, "amount": 64.5}
    assert details["actual_data"][1] == {"id": 2, "amount": 65.5}


async def test_discovery_takes_both_endings_and_leaves_outputs_alone(root: Path) -> None:
    files = {f"tests/{name}": f"name: {name}\nprompt: p\n" for name in ("a.yml", "b.yaml", "deep/c.yml")}
    files |= {"tests/outputs/old.yml": "name: old\nprompt: p\n", "tests/notes.txt": "name: no\nprompt: p\n"}
    with OpenAIServer() as server:
        write(root, {**files, "tui_eval.yaml": CONFIG.format(url=server.base)})
        document = await evaluate(root)
    assert set(messages(document)) == {"a.yml", "b.yaml", "deep/c.yml"}


async def test_the_transcript_keeps_history_tool_calls_and_text(root: Path) -> None:
    call = ("run_sql", {"query": "SELECT 1 AS n"})
    with OpenAIServer(Planned(tool_calls=[call]), Planned(text="It is 1."), rows({"n": 1})) as server:
        config = CONFIG.format(url=server.base).replace("retries: 0", "tools: [{type: sql, database: shop}]")
        write(root, {"tests/t.yml": "name: t\nprompt: p\nsql: SELECT 1 AS n\n", "tui_eval.yaml": config})
        result = by_name(await evaluate(root))["t"]
    assert result["passed"] and result["tool_call_count"] == 1
    assert [entry["kind"] for entry in result["transcript"]][:4] == [
        "user", "tool_call", "tool_result", "assistant",
    ]  # fmt: skip
    (kept,) = result["details"]["tool_calls"]
    assert kept["toolName"] == "run_sql" and kept["args"] == {"query": "SELECT 1 AS n"}
    assert kept["result"]["rows"] == [{"n": 1}]
    assert result["details"]["response_text"] == "It is 1."


class Backend(NaoServer):
    """Verifies every test as right."""

    def default(self, seen: Any) -> Planned:
        body = {
            "text": "104.5", "toolCalls": [], "usage": {"inputTotalTokens": 1000, "outputTotalTokens": 250},
            "cost": {"totalCost": 0.0125}, "finishReason": "stop", "durationMs": 234,
            "verification": {"data": [{"total_revenue": 104.5}], "expectedData": [{"total_revenue": 104.5}],
                             "expectedColumns": ["total_revenue"]},
        }  # fmt: skip
        return Planned(body=body)


def nao_project(root: Path, url: str) -> None:
    agent = f'{{type: nao, url: "{url}", email: {NaoServer.email}, password: {NaoServer.password}}}'
    write(root, {
        "tests/total_revenue.yml": TEST, "tests/customer_metrics.yml": TEST.replace("total_revenue\n", "again\n", 1),
        "tui_eval.yaml": f'agents: {{nao: {agent}}}\nsuites: [{{path: "tests/**", agent: nao}}]\n'
        "databases: {shop: {type: sqlite, path: shop.db}}\n",
    })  # fmt: skip


async def test_models_are_provider_and_id_with_the_documents_default(root: Path) -> None:
    with Backend() as server:
        nao_project(root, server.url)
        document = await evaluate(root)
        assert {result["model"] for result in document["results"]} == {"openai:gpt-4.1"}
        assert server.requests[-1].body["model"] == {"provider": "openai", "modelId": "gpt-4.1"}
        document = await evaluate(root, models=["anthropic:claude-sonnet-4-5"])
        assert {result["model"] for result in document["results"]} == {"anthropic:claude-sonnet-4-5"}
        assert server.requests[-1].body["model"] == {"provider": "anthropic", "modelId": "claude-sonnet-4-5"}


async def test_metrics_and_totals(root: Path) -> None:
    with Backend() as server:
        nao_project(root, server.url)
        document = await evaluate(root)
    for result in document["results"]:
        assert (result["tokens"], result["cost"], result["tool_call_count"]) == (1250, 0.0125, 0)
        assert isinstance(result["duration_ms"], int)
    summary = document["summary"]
    total = sum(result["duration_ms"] for result in document["results"])
    assert (summary["total"], summary["passed"], summary["failed"]) == (2, 2, 0)
    assert (summary["total_tokens"], summary["total_cost"]) == (2500, 0.025)
    assert summary["total_duration_ms"] == total and summary["total_duration_s"] == round(total / 1000, 2)
    assert summary["avg_duration_ms"] == round(total / 2) and summary["avg_tool_calls"] == 0


def test_the_command_line_of_the_document(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-m`, `-t`, the summary table, the results file under tests/outputs."""
    monkeypatch.chdir(root)
    with Backend() as server:
        nao_project(root, server.url)
        monkeypatch.setattr(sys, "argv", ["tui-eval"])
        with pytest.raises(SystemExit) as ended:
            cli.main(["run", "tests", "-m", "openai:gpt-4.1", "-t", "4"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    for column in ("Test", "Model", "Status", "Message", "Tokens", "Cost", "Time (s)", "Tools"):
        assert column in out.splitlines()[0]
    assert "match" in out and "All 2 cases passed" in out
    (file,) = (root / "tests" / "outputs").iterdir()
    assert (
        file.name.startswith("results_")
        and file.suffix == ".json"
        and len(file.stem) == len("results_20250209_143022")
    )
    document = json.loads(file.read_text())
    assert {"name", "model", "passed", "message", "tokens", "cost", "duration_ms", "tool_call_count",
            "details"} <= document["results"][0].keys()  # fmt: skip
