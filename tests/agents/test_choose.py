"""`--agent` in all its forms, and promptfoo's providers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agents import agent, talk
from tui_eval.agents import for_provider, from_argument, from_file
from tui_eval.agents.models import prices
from tui_eval.config.project import AgentSpec, Config, ConfigError
from tui_eval.model import Usage


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE_URL", "OLLAMA_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.py").write_text("def answer(message): return message")
    support = AgentSpec("support", "echo")
    return Config(
        root=tmp_path, agents={"support": support}, providers={"bedrock:x": "support", "gone": "none"}
    )


def test_from_argument(config: Config) -> None:
    assert from_argument("support", config) is config.agents["support"]
    spec = from_argument("bot.py:answer", config)
    assert (spec.type, spec.typed, spec.options["function"]) == ("python", True, "bot.py:answer")
    spec = from_argument("http://localhost:1/v1", config)
    assert (spec.type, spec.options) == ("openai", {"base_url": "http://localhost:1/v1"})
    assert from_argument("https://h/chat", config).type == "http"
    assert from_argument("openai:gpt-4.1", config).model == "gpt-4.1"
    assert from_argument("anthropic:claude-sonnet-4", config).type == "anthropic"
    spec = from_argument("ollama:llama3:8b", config)
    assert (spec.model, spec.options["base_url"], spec.options["api_key"]) == (
        "llama3:8b",
        "http://localhost:11434/v1",
        "",
    )
    (config.root / "bots").mkdir()
    (config.root / "bots" / "house.py").write_text("def answer(message): return message")
    spec = from_argument("bots.house:answer", config)
    assert (spec.type, spec.typed, spec.options["function"]) == ("python", True, "bots.house:answer")
    with pytest.raises(ConfigError, match=r"no agent of that name \(support\)"):
        from_argument("bots.garden:answer", config)
    with pytest.raises(ConfigError, match=r"no agent of that name; did you mean .support."):
        from_argument("suport", config)
    with pytest.raises(ConfigError, match=r"there is no file no\.py"):
        from_argument("no.py:f", config)


def test_for_provider(config: Config, tmp_path: Path) -> None:
    def given(entry: object) -> AgentSpec:
        return for_provider(entry, config, tmp_path)

    assert given("echo").type == "echo"
    assert given("bedrock:x").name == "support"
    spec = given(
        {"id": "openai:chat:gpt-4.1", "label": "G", "config": {"apiBaseUrl": "http://h/v1", "temperature": 0}}
    )
    assert (spec.name, spec.type, spec.model) == ("G", "openai", "gpt-4.1")
    assert spec.options["base_url"] == "http://h/v1" and spec.options["parameters"] == {"temperature": 0}
    assert given("openai:gpt-4o-mini").model == "gpt-4o-mini"
    assert given({"anthropic:messages:claude-x": {"config": {"max_tokens": 5}}}).options["parameters"] == {
        "max_tokens": 5
    }
    assert (given("ollama:chat:llama3").type, given("ollama:chat:llama3").options) == (
        "ollama",
        {"parameters": {}},
    )
    assert given("file://p.py").options["function"] == "p.py:call_api"
    assert given("python:p.py:other").options["function"] == "p.py:other"
    assert given("exec: ./run.sh a").options["command"] == "./run.sh a"
    assert given("https://h/x").options["url"] == "https://h/x"
    for unknown in ("vertex:x", "openai:embedding:y", "golang:x.go"):
        with pytest.raises(ConfigError, match=r"map it in tui_eval\.yaml"):
            given(unknown)
    with pytest.raises(ConfigError, match="there is no agent called none"):
        given("gone")
    with pytest.raises(ConfigError):
        given(3)


def test_costs() -> None:
    usage = Usage(input_tokens=1000, output_tokens=500)
    assert prices.cost("claude-sonnet-4-20250514", usage, {}) == pytest.approx(0.0105)
    assert prices.cost("gpt-4.1-2025-04-14", usage, {}) == pytest.approx(0.006)
    assert prices.cost("openai:gpt-4.1-mini", usage, {}) == pytest.approx(0.0012)
    assert prices.cost("mine", usage, {"mine": {"input": 1, "output": 2}}) == pytest.approx(0.002)
    assert prices.cost("mine", usage, {}) is None and prices.cost("gpt-4.1", None, {}) is None
    cached = Usage(input_tokens=1000, output_tokens=0, cached_tokens=400)
    assert prices.cost("gpt-4.1", cached, {}) == pytest.approx((600 * 2 + 400 * 0.5) / 1e6)


async def test_echo() -> None:
    _, replies = await talk(agent("echo", prefix="> "), "hello")
    assert replies[0].text == "> hello" and replies[0].cost == 0.0


def test_what_a_file_names_is_not_trusted_by_being_named(config: Config, tmp_path: Path) -> None:
    config.root = tmp_path
    (tmp_path / "bot.py").write_text("def answer(message): ...")
    spec = from_file("bot.py:answer", config)
    assert (spec.type, spec.base, spec.typed) == ("python", str(tmp_path), False)
    assert not from_file("https://h/chat", config).typed
    assert from_file("support", config) is config.agents["support"]
    with pytest.raises(ConfigError, match=r"^nobody: no agent of that name"):
        from_file("nobody", config)
