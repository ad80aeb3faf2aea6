"""nao tests with a bare model: rules, schema and a query tool make it an analyst."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.servers import AnthropicServer, OpenAIServer, Planned
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader

PROJECT = Path(__file__).parents[1] / "data" / "jaffle_shop"
QUERY = "SELECT SUM(amount) AS total_revenue FROM orders"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    shutil.copytree(PROJECT, folder)
    (folder / "RULES.md").write_text("Amounts are in dollars, ${SO_IT_IS}.\n", "utf-8")
    return folder


async def run(shop: Path, agent: str, model: str | None = None) -> Attempt:
    active = prepare(RunRequest(paths=[str(shop / "tests")], agents=[agent], models=[model] if model else []))
    assert active.writer is not None
    await active.execute()
    reader = RunReader(active.writer.folder)
    try:
        attempt = reader.attempt(reader.attempts()[0].id)
    finally:
        reader.close()
    assert attempt is not None
    return attempt


async def test_a_model_answers_from_the_database(shop: Path) -> None:
    rows = json.dumps({"data": [{"total_revenue": 1672.0}]})
    with OpenAIServer(
        Planned(tool_calls=[("run_sql", {"query": QUERY})]), Planned(text="It is $1,672."), Planned(text=rows)
    ) as server:
        attempt = await run(shop, server.base, "m")
        assert (attempt.outcome, attempt.message) == ("passed", "match")
        first = server.requests[0].body
        assert first["messages"][0] == {"role": "system", "content": "Amounts are in dollars, ${SO_IT_IS}.\n"}
        tool = first["tools"][0]["function"]
        assert tool["name"] == "run_sql" and "orders" in tool["description"]
        given = server.requests[1].body["messages"][-1]
        assert given["role"] == "tool" and "1672" in given["content"]
        assert "total_revenue" in server.requests[2].body["messages"][-1]["content"]
    assert [entry.name for entry in attempt.transcript if entry.kind == "tool_call"] == ["run_sql"]


async def test_anthropic_too_and_without_rules(shop: Path) -> None:
    (shop / "RULES.md").unlink()
    with AnthropicServer(Planned(text="No idea.")) as server:
        (shop / "tui_eval.yaml").write_text(
            f"agents:\n  claude: {{type: anthropic, base_url: '{server.url}', model: m}}\n", "utf-8"
        )
        await run(shop, "claude")
        body = server.requests[0].body
        assert not body.get("system") and body["tools"][0]["name"] == "run_sql"


async def test_an_agent_with_tools_of_its_own_is_left_alone(shop: Path) -> None:
    with OpenAIServer() as server:
        (shop / "tui_eval.yaml").write_text(
            f"agents:\n  own: {{type: openai, base_url: '{server.base}', model: m, system: mine}}\n", "utf-8"
        )
        await run(shop, "own")
        body = server.requests[0].body
        assert body["messages"][0]["content"] == "mine" and "tools" not in body


async def agents_of(root: Path, *paths: str) -> dict[str, Any]:
    """What a run says that its agents are; nobody answers."""
    active = prepare(RunRequest(paths=[str(root / path) for path in paths]))
    assert active.writer is not None
    await active.execute()
    return active.writer.info.provenance["agents"]


@pytest.mark.real
async def test_each_checkout_and_every_part_of_a_run_knows_the_same_agents(shop: Path) -> None:
    """One entry that cases of nao and of another format ask is an analyst for the first alone: which of the
    two a run said went by its last case, so that `--changed` never came to rest, and shards of one plan were
    refused."""
    (shop / "tui_eval.yaml").write_text(
        "agents:\n  plain: {type: openai, base_url: 'http://127.0.0.1:9/v1', model: m, retries: 0}\n"
        "suites: [{path: 'tests/**', agent: plain}]\n",
        "utf-8",
    )
    (shop / "a.yaml").write_text("agent: plain\ntest_cases:\n- {name: a, input: hi}\n", "utf-8")
    other = shop.with_name("other")
    shutil.copytree(shop, other)
    both = await agents_of(shop, "a.yaml", "tests")
    assert set(both) == {"plain", "plain (nao duckdb-jaffle-shop)"}
    assert both["plain"] != both["plain (nao duckdb-jaffle-shop)"]
    assert await agents_of(other, "tests", "a.yaml") == both
    assert await agents_of(other, "a.yaml") == {"plain": both["plain"]}
    assert await agents_of(other, "tests") == {
        "plain (nao duckdb-jaffle-shop)": both["plain (nao duckdb-jaffle-shop)"]
    }
