"""What tokens cost where a promptfoo provider says it itself: as promptfoo 0.121.20 counted it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import OpenAIServer
from tests.support.agents import services, talk
from tui_eval.agents import create
from tui_eval.agents.choose import for_provider
from tui_eval.agents.models.prices import cost, own_price
from tui_eval.config.project import Config
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
