"""Models that give scores, against a server that answers like Hugging Face and OpenAI."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.promptfoo.test_promptfoo_providers import AnyServer
from tests.servers.base import Planned
from tests.support.agents import services, talk
from tui_eval.agents import AgentError, create, for_scores
from tui_eval.agents.models.classifiers import ScoringAgent
from tui_eval.config.project import Config, ConfigError
from tui_eval.guard.trust import NeedsTrust


@pytest.fixture
def server() -> Iterator[AnyServer]:
    with AnyServer() as running:
        yield running


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HF_API_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def model(entry: Any, trusted: bool = True) -> ScoringAgent:
    made = create(for_scores(entry, Config(Path("/")), "/"), services("/", trusted))
    assert isinstance(made, ScoringAgent)
    return made


def hugging_face(server: AnyServer) -> dict[str, Any]:
    return {
        "id": "huggingface:text-classification:m",
        "config": {"apiEndpoint": f"{server.url}/hf", "apiKey": "k"},
    }


async def test_hugging_face(server: AnyServer) -> None:
    server.plan.append(Planned(body=[[{"label": "pos", "score": 0.8}, {"label": "neg", "score": 0.2}]]))
    agent = model(hugging_face(server))
    assert await agent.scores("good") == {"pos": 0.8, "neg": 0.2}
    await agent.close()
    seen = server.requests[0]
    assert (seen.path, seen.body) == ("/hf", {"inputs": "good", "parameters": {}})
    assert seen.headers["Authorization"] == "Bearer k"


@pytest.mark.parametrize(
    "body", [{"error": "loading"}, [], [[{"name": "x"}]], "text", [{"label": "a", "score": 1}]]
)
async def test_hugging_face_without_scores(server: AnyServer, body: Any) -> None:
    server.plan.append(Planned(body=body))
    agent = model(hugging_face(server))
    with pytest.raises(AgentError, match="did not answer with scores"):
        await agent.scores("x")
    await agent.close()


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("openai:moderation", {"model": "text-moderation-latest", "input": "bad"}),
        ("openai:moderation:omni-moderation-latest",
         {"model": "omni-moderation-latest", "input": [{"type": "text", "text": "bad"}]}),
    ],
)  # fmt: skip
async def test_moderation(server: AnyServer, name: str, asked: dict[str, Any]) -> None:
    flags = {"hate": True, "violence": False, "self-harm": True}
    results = [
        {"flagged": True, "categories": flags, "category_scores": {"hate": 0.9, "self-harm": 0.7}},
        {"flagged": True, "categories": {"hate": True}, "category_scores": {"hate": 0.5}},
        {"flagged": False, "categories": {"violence": True}, "category_scores": {}},
    ]
    server.plan.append(Planned(body={"results": results}))
    agent = model({"id": name, "config": {"apiBaseUrl": f"{server.url}/v1", "apiKey": "k"}})
    assert await agent.scores("bad") == {"hate": 0.9, "self-harm": 0.7}
    assert (server.requests[0].path, server.requests[0].body) == ("/v1/moderations", asked)
    server.plan.extend([Planned(body={"results": []}), Planned(raw=b"<html>"), Planned(body={})])
    assert await agent.scores("good") == {}
    for said in ("did not answer with JSON", "did not answer with scores"):
        with pytest.raises(AgentError, match=said):
            await agent.scores("x")
    for odd in ({}, "flagged", {"categories": {"hate": True}}):
        server.plan.append(Planned(body={"results": [odd]}))
        with pytest.raises(AgentError, match="did not answer with scores"):
            await agent.scores("x")
    with pytest.raises(AgentError, match="gives scores, not answers"):
        await talk(agent, "hi")
    await agent.close()


def test_a_token_goes_elsewhere_only_with_trust(server: AnyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "my-own-token")
    model("huggingface:text-classification:m", trusted=False)
    elsewhere = {
        "id": "huggingface:text-classification:m",
        "config": {"apiEndpoint": "https://other.example/x"},
    }
    with pytest.raises(NeedsTrust, match=r"send HF_TOKEN to other\.example"):
        model(elsewhere, trusted=False)


@pytest.mark.parametrize(
    "name", ["openai:chat:m", "huggingface:text-generation:m", "huggingface:text-classification"]
)
def test_what_does_not_classify(name: str) -> None:
    with pytest.raises(ConfigError, match=f"provider {name}: nothing here has it classify"):
        for_scores(name, Config(Path("/")), "/")
