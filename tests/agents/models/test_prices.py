"""What tokens cost where a promptfoo provider says it itself: as promptfoo 0.121.20 counted it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import AnthropicServer, OpenAIServer
from tests.support.agents import services, talk
from tui_eval.agents import create
from tui_eval.agents.base import SessionContext
from tui_eval.agents.choose import for_provider
from tui_eval.agents.models.prices import cost, own_price
from tui_eval.agents.promptfoo.promptfoo_models import is_priced
from tui_eval.config.project import AgentSpec, Config
from tui_eval.events import UsageReport
from tui_eval.model import Usage

COUNTED: list[tuple[dict[str, Any], float, float]] = [  # calculateOpenAIUsageCost, calculateAnthropicCost
    ({}, 0.003, 0.00342),
    ({"inputCost": 0.001}, 1.001, 0.6415),
    ({"outputCost": 0.002}, 0.202, 0.20192),
    ({"cost": 0.001, "outputCost": 0.002}, 1.2, 0.84),
    ({"inputCost": 0, "outputCost": 0.5}, 50, 50),
]
USAGE = Usage(1000, 100, 400)


@pytest.mark.parametrize(("config", "openai", "anthropic"), COUNTED)
def test_the_providers_own_price_is_promptfoos(
    config: dict[str, Any], openai: float, anthropic: float
) -> None:
    assert cost("gpt-4o", USAGE, {}, own_price(config)) == pytest.approx(openai)
    assert cost("claude-sonnet-4-5", USAGE, {}, own_price(config, 0.1)) == pytest.approx(anthropic)


@pytest.mark.parametrize("given", [0.001, "0.001"])
def test_one_price_for_all_tokens_is_that_of_cached_ones_too(given: Any) -> None:
    assert cost("gpt-4o", USAGE, {}, own_price({"cost": given})) == pytest.approx(1.1)
    assert cost("claude-sonnet-4-5", USAGE, {}, own_price({"cost": given}, 0.1)) == pytest.approx(1.1)


def test_it_wins_over_the_projects_price() -> None:
    project = {"gpt-4o": {"input": 1.0, "output": 1.0}}
    assert cost("gpt-4o", USAGE, project, own_price({"cost": 1})) == 1100


def test_a_model_that_no_table_knows_needs_both() -> None:
    assert cost("mine", USAGE, {}, own_price({"cost": 0.001})) == pytest.approx(1.1)
    assert cost("mine", USAGE, {}, own_price({"inputCost": 0.001})) is None


@pytest.mark.parametrize("wrong", ["dear", True, -1, [1], "nan"])
def test_what_is_no_price_gives_no_cost(wrong: Any) -> None:
    assert cost("gpt-4o", USAGE, {}, own_price({"inputCost": wrong})) is None


def test_chatgpt_4o_latest_has_a_price() -> None:
    assert cost("chatgpt-4o-latest", Usage(1_000_000, 1_000_000), {}) == 20


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("gpt-5.4", 2.5 + 1.5),
        ("openai:responses:gpt-5.4-2026-03-05", 2.5 + 1.5),
        ("gpt-5.5", 5 + 3),
        ("gpt-5.1-codex", 1.25 + 1),
        ("gpt-5-chat-latest", 1.25 + 1),
        ("claude-opus-4-1-20250805", 15 + 7.5),
    ],
)
def test_models_of_promptfoos_examples_have_its_price(model: str, price: float) -> None:
    assert cost(model, Usage(100_000, 10_000), {}) == pytest.approx(price / 10)


def test_a_prompt_beyond_the_length_that_a_price_is_for_has_none() -> None:
    assert cost("gpt-5.4", Usage(272_000, 0), {}) == pytest.approx(0.68)
    assert cost("gpt-5.4", Usage(272_001, 0), {}) is None
    assert cost("gpt-5.4", Usage(272_001, 0), {"gpt-5.4": {"input": 5.0}}) == pytest.approx(1.360005)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


async def test_an_answer_costs_what_the_suites_provider_says(server: OpenAIServer, tmp_path: Path) -> None:
    config = {"apiBaseUrl": server.base, "apiKey": "k", "inputCost": 1, "outputCost": 2}
    provider = {"id": "openai:chat:gpt-4o", "config": config}
    spec = for_provider(provider, Config(root=tmp_path), tmp_path)
    _, (reply,) = await talk(create(spec, services(tmp_path)), "hello")
    assert reply.usage is not None and reply.usage.input_tokens and reply.usage.output_tokens
    assert reply.cost == reply.usage.input_tokens + 2 * reply.usage.output_tokens
    assert not {"inputCost", "outputCost", "promptfoo_price"} & server.requests[0].body.keys()


@pytest.mark.parametrize(
    ("config", "expected"), [({}, 0.00525), ({"inputCost": 0.001}, 1.2515), ({"cost": 0.001}, 1.1)]
)
def test_writing_to_anthropics_cache_costs_a_quarter_more(config: dict[str, Any], expected: float) -> None:
    usage = Usage(1000, 100)  # all of its input written to the cache
    assert cost("claude-sonnet-4-5", usage, {}, own_price(config, 0.1), 1000) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("model", "priced"),
    [
        ("mock-a", False), ("gpt-4o", True), ("gpt-4o-2024-11-20", True), ("gpt-4o-2020-01-01", False),
        ("mine/gpt-4o", True), ("ft:gpt-4o:x:y", True), ("ft:gpt-4o-x", False), ("ft:mock-a", False),
        ("chatgpt-4o-latest", True), ("claude-sonnet-4-5", True), ("claude-x", False), ("", False),
    ],
)  # fmt: skip
def test_promptfoo_has_a_price_of_models_by_their_names(model: str, priced: bool) -> None:
    """As its `calculateOpenAIUsageCost` and `calculateAnthropicCost` (0.121.20) gave a cost or none."""
    assert is_priced(model) is priced


@pytest.mark.parametrize(
    ("name", "reference", "prices", "known"),
    [
        ("openai:chat:mock-a", True, {}, False),
        ("openai:chat:mock-a", False, {}, True),
        ("openai:chat:mock-a", True, {"mock-a": {"input": 1, "output": 1}}, True),
        ("openai:chat:gpt-4o", True, {}, True),
        ("openai:chat:gpt-4o-2020-01-01", True, {}, False),
        ("openai:chat:gpt-4o-2020-01-01", False, {}, True),
        ("anthropic:messages:claude-x", True, {}, False),
        ("anthropic:messages:claude-x", False, {}, True),
        ("anthropic:messages:claude-haiku-4-5", True, {}, True),
    ],
)
async def test_a_model_without_a_price_in_promptfoo_has_no_cost_by_its_rules(
    name: str, reference: bool, prices: dict[str, Any], known: bool, tmp_path: Path
) -> None:
    kind = OpenAIServer if name.startswith("openai") else AnthropicServer
    with kind() as server:
        base = server.base if isinstance(server, OpenAIServer) else server.url
        provider = {"id": name, "config": {"cost": 2e-6, "apiBaseUrl": base, "apiKey": "k"}}
        it = create(
            for_provider(provider, Config(root=tmp_path), tmp_path), services(tmp_path, prices=prices)
        )
        _, replies = await talk(it, "hello", reference=reference)
        await it.close()
    assert replies[0].text == "You said: hello"
    assert (replies[0].cost is not None) is known


@pytest.mark.parametrize(
    ("kind", "told", "expected"),
    [
        ("anthropic", UsageReport(Usage(1000, 100), 1.0, 400), 0.0053),  # writing costs a quarter more
        ("openai", UsageReport(Usage(1000, 100), 1.0), 0.005),
        ("openai-responses", UsageReport(Usage(1000, 100), None), 0.005),
        ("litellm", UsageReport(Usage(1000, 100), 1.0), 0.005),
        ("echo", UsageReport(Usage(1000, 100), 1.0), 1.0),  # which is told what it costs
    ],
)
def test_an_answer_of_before_has_the_price_of_today(kind: Any, told: UsageReport, expected: float) -> None:
    spec = AgentSpec("it", kind, {"api_key": "k"} if kind != "echo" else {}, model="m")
    it = create(spec, services(prices={"m": {"input": 3.0, "output": 20.0}}))
    context = SessionContext(case_id="c", attempt=1, session_id="s")
    assert it.priced(context, told, "m-2030") == it.priced(context, told, "m") == expected


@pytest.mark.parametrize("said", [True, False])
def test_without_a_price_of_today_only_what_the_server_said_stays(said: bool) -> None:
    """The other cost was made of a price that is no longer there."""
    it = create(AgentSpec("it", "openai", {"api_key": "k"}, model="of/nobody:free"), services())
    context = SessionContext(case_id="c", attempt=1, session_id="s")
    told = UsageReport(Usage(1000, 100), 1.0, cost_said=said)
    assert it.priced(context, told, "of/nobody:free") == (1.0 if said else None)
