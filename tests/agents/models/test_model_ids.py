"""One rule for all ways to name a model: which server is asked, and what is no model to be asked at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers.openai import OpenAIServer
from tui_eval.agents import for_embeddings, for_provider, for_scores, from_argument, from_file
from tui_eval.config.project import AgentSpec, Config, ConfigError, fill, load
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.guard.trust import Trust
from tui_eval.model_ids import agent_of, model_id, not_a_model, plain_name
from tui_eval.store.reader import RunReader

VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE_URL", "OPENAI_API_HOST", "ANTHROPIC_API_KEY",
             "ANTHROPIC_BASE_URL", "OLLAMA_BASE_URL")  # fmt: skip
ELSEWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def entry_of(kind: str) -> Callable[[Config], Any]:
    def named(config: Config) -> Any:
        (config.root / "tui_eval.yaml").write_text(
            f"agents: {{a: {{type: {kind}, model: m}}}}\njudge: {kind}:m\n"
        )
        return load([config.root])

    return named


WAYS: dict[str, Callable[[str, Config], AgentSpec | None]] = {
    "--agent and --judge": lambda kind, config: from_argument(f"{kind}:m", config),
    "agent: of suites:": lambda kind, config: from_file(f"{kind}:m", config),
    "agents:": lambda kind, config: entry_of(kind)(config).agents["a"],
    "judge:": lambda kind, config: entry_of(kind)(config).judge,
    "a suite's provider": lambda kind, config: for_provider(f"{kind}:m", config, config.root),
    "a labelled provider": lambda kind, config: for_provider(
        {"id": f"{kind}:m", "label": "x"}, config, config.root
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("kind", "variable"), [("openai", "OPENAI_BASE_URL"), ("anthropic", "ANTHROPIC_BASE_URL")]
)
def test_every_way_to_name_a_model_goes_where_the_environment_says(
    way: str, kind: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "https://gateway.example/v1")
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", "sk-of-the-person")
    spec = WAYS[way](kind, Config(root=tmp_path))
    assert spec is not None
    options = fill(spec, Trust()).options  # no trust is needed: the person's environment says where
    assert (options["base_url"], options["api_key"]) == ("https://gateway.example/v1", "sk-of-the-person")


def test_what_makes_vectors_and_scores_goes_there_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", ELSEWHERE)
    config = Config(root=tmp_path)
    for spec in (
        for_embeddings("openai:embedding:e", config, tmp_path),
        for_scores("openai:moderation:m", config, tmp_path),
        for_provider("openai:responses:r", config, tmp_path),
    ):
        assert fill(spec, Trust()).options["base_url"] == ELSEWHERE


def test_an_address_that_is_written_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", ELSEWHERE)
    config = Config(root=tmp_path)
    for spec in (
        AgentSpec("a", "openai", {"base_url": "http://localhost:1/v1"}),
        from_argument("http://localhost:1/v1", config),
        for_provider({"id": "openai:m", "config": {"apiBaseUrl": "http://localhost:1/v1"}}, config, tmp_path),
    ):
        assert fill(spec, Trust()).options["base_url"] == "http://localhost:1/v1"
    assert "base_url" not in fill(AgentSpec("a", "http", {"url": "http://localhost:1"}), Trust()).options


async def test_a_run_asks_agent_and_judge_at_the_environments_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [hi]\nproviders: [echo]\ntests: [{assert: [{type: llm-rubric, value: kind}]}]\n"
    )
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        request = RunRequest(
            paths=[str(tmp_path)],
            agents=["openai:asked"],
            models=["openai:chat:other"],
            judge="openai:grader",
        )
        active = await asyncio.to_thread(prepare, request)
        await active.execute()
        assert {seen.body["model"] for seen in server.requests} == {"other", "grader"}


AGENTS = [
    "openai:codex-sdk",
    "openai:codex-sdk:gpt-5",
    "openai:codex",
    "openai:codex-app-server",
    "openai:codex-desktop",
    "openai:agents:triage",
    "openai:chatkit:w",
    "openai:assistant:a",
    "openai:assistant",
    "anthropic:claude-agent-sdk",
    "anthropic:claude-agent-sdk:x",
    "anthropic:claude-code",
    "azure:assistant:a",
    "azure:foundry-agent:a",
    "bedrock:agents:a",
    "bedrock-agent:a",
]
NO_CHAT = [
    "openai:realtime:m",
    "openai:realtime",
    "openai:image:m",
    "openai:tts:m",
    "openai:embedding",
    "ollama:embedding:m",
    "anthropic:completion:claude-2",
    "anthropic:messages",
    "google:live:m",
    "xai:voice:m",
    "mistral:embedding:m",
    "voyage:m",
]


@pytest.mark.parametrize("named", AGENTS)
def test_agents_are_not_sent_as_the_name_of_a_model(named: str, tmp_path: Path) -> None:
    config = Config(root=tmp_path)
    for way in (lambda: for_provider(named, config, tmp_path), lambda: from_argument(named, config)):
        with pytest.raises(ConfigError, match="an agent of its own, no model"):
            way()
    with pytest.raises(ConfigError, match=r"map it in tui_eval\.yaml"):
        for_provider({"id": named, "config": {"model": "gpt-5"}}, config, tmp_path)
    mapped = Config(root=tmp_path, agents={"mine": AgentSpec("mine", "echo")}, providers={named: "mine"})
    assert for_provider(named, mapped, tmp_path).name == "mine"


@pytest.mark.parametrize("named", NO_CHAT)
def test_what_is_not_chatted_with_is_refused(named: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=named):
        for_provider(named, Config(root=tmp_path), tmp_path)


async def test_no_request_is_made_for_an_agent_named_as_a_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [hi]\nproviders: ['openai:codex-sdk', 'anthropic:claude-agent-sdk']\ntests: [{vars: {a: 1}}]\n"
    )
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        active = await asyncio.to_thread(prepare, RunRequest(paths=[str(tmp_path)]))
        await active.execute()
        assert not server.requests
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    attempts = [reader.attempt(row.id) for case in reader.cases() for row in reader.attempts(case.id)]
    assert [attempt.outcome for attempt in attempts] == ["error", "error"]
    assert all("an agent of its own" in attempt.message for attempt in attempts)
    with pytest.raises(ConfigError, match="-m openai:codex-sdk"):
        await asyncio.to_thread(
            prepare, RunRequest(paths=[str(tmp_path)], agents=["openai:m"], models=["openai:codex-sdk"])
        )


def test_a_judge_that_is_an_agent_is_a_problem_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("judge: openai:codex-sdk\n")
    config = load([tmp_path])
    assert config.judge is None
    assert "an agent of its own" in str(config.problems[0]) and config.problems[0].line == 1
    (tmp_path / "tui_eval.yaml").write_text("judge: ollama:llama3:8b\n")
    config = load([tmp_path])
    assert not config.problems and config.judge is not None and config.judge.model == "llama3:8b"


def test_models_are_read_the_same_everywhere() -> None:
    assert model_id("openai:chat:m") == model_id("openai:m") == ("openai", "m", False)
    assert model_id("openai:responses") == ("openai-responses", "gpt-4.1-2025-04-14", False)
    assert model_id("openai:chat", "mine") == ("openai", "mine", False)
    assert model_id("openai:ft:gpt-4o:org::id") == ("openai", "ft:gpt-4o:org::id", False)
    assert model_id("openai:llama3:8b") is None
    assert model_id("openai:llama3:8b", loose=True) == ("openai", "llama3:8b", False)
    assert model_id("anthropic:messages:c") == model_id("anthropic:c") == ("anthropic", "c", False)
    assert model_id("ollama:llama3:8b") == ("ollama", "llama3:8b", True)
    assert plain_name("openai:chat:m", "openai") == plain_name("m", "openai") == "m"
    assert plain_name("anthropic:m", "openai") == "anthropic:m"
    for model in (
        "openai:gpt-5-codex",
        "openai:codex-mini-latest",
        "anthropic:claude-sonnet-4-5",
        "ollama:codellama",
    ):
        assert not not_a_model(model) and agent_of(model, "") is not None
