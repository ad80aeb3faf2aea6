"""What `env` of a promptfoo suite and of its providers says, as promptfoo 0.121.20 took it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tui_eval.agents import Services, create, for_provider, for_scores, with_env
from tui_eval.config.project import AgentSpec, Config, fill
from tui_eval.guard.trust import NeedsTrust, Trust, variable

SUITE = {
    "OPENAI_API_KEY": "suite-key",
    "OPENAI_BASE_URL": "http://suite/v1",
    "OPENAI_TEMPERATURE": "0.3",
    "OPENAI_MAX_TOKENS": 9,
    "ANTHROPIC_API_KEY": "anthropic-key",
    "ANTHROPIC_BASE_URL": "http://suite/a",
    "OLLAMA_BASE_URL": "http://suite:11434",
    "HF_TOKEN": "hf-token",
    "OTHER_KEY": "other-key",
}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE_URL", "OPENAI_API_HOST", "OPENAI_ORGANIZATION",
                 "ANTHROPIC_BASE_URL", "OLLAMA_BASE_URL", "OTHER_KEY"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


def made(entry: Any, env: Any = None) -> AgentSpec:
    return for_provider(with_env(entry, SUITE if env is None else env), Config(Path("/")), "/")


def test_a_suite_s_variables_stand_for_what_a_provider_does_not_say() -> None:
    spec = made("openai:chat:m")
    assert (spec.options["api_key"], spec.options["base_url"]) == ("suite-key", "http://suite/v1")
    assert spec.options["parameters"] == {"temperature": 0.3, "max_tokens": 9}
    spec = made(
        {"id": "openai:chat:m", "config": {"apiKey": "own", "apiBaseUrl": "http://own", "temperature": 0}}
    )
    assert (spec.options["api_key"], spec.options["base_url"]) == ("own", "http://own")
    assert spec.options["parameters"] == {"temperature": 0, "max_tokens": 9}


def test_a_provider_s_own_variables_come_first() -> None:
    own = {"OPENAI_API_KEY": "own-key", "OPENAI_ORGANIZATION": "org", "OPENAI_API_HOST": "host"}
    for entry in ({"id": "openai:chat:m", "env": own}, {"openai:chat:m": {"env": own}}):
        spec = made(entry)
        assert (spec.options["api_key"], spec.options["base_url"]) == ("own-key", "https://host/v1")
        assert spec.options["headers"] == {"OpenAI-Organization": "org"}


@pytest.mark.parametrize(
    ("variables", "key"),
    [
        ({}, "other-key"),
        ({"OTHER_KEY": "from outside"}, "other-key"),
    ],
)
def test_the_variable_that_a_provider_names(
    variables: dict[str, str], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert made({"id": "openai:chat:m", "config": {"apiKeyEnvar": "OTHER_KEY"}}).options["api_key"] == key


def test_a_named_variable_that_is_not_set_leaves_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"id": "openai:chat:m", "config": {"apiKeyEnvar": "OTHER_KEY"}}
    assert made(entry, {"X": "y"}).options["api_key"] == "${OTHER_KEY}"
    monkeypatch.setenv("OPENAI_API_KEY", "usual")
    assert "api_key" not in made(entry, {"X": "y"}).options
    monkeypatch.setenv("OTHER_KEY", "named")
    assert made(entry, {"X": "y"}).options["api_key"] == "${OTHER_KEY}"


def test_other_families(monkeypatch: pytest.MonkeyPatch) -> None:
    claude = made("anthropic:messages:claude-x")
    assert (claude.options["api_key"], claude.options["base_url"]) == ("anthropic-key", "http://suite/a")
    assert made("ollama:chat:m").options["base_url"] == "http://suite:11434"
    scores = for_scores(with_env("huggingface:text-classification:m", SUITE), Config(Path("/")), "/")
    assert scores.options["api_key"] == "hf-token"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://outside")
    outside = fill(made("anthropic:messages:claude-x", {"X": "y"}), Trust())
    assert outside.options["base_url"] == "http://outside"


def test_scripts_are_told_both() -> None:
    spec = made({"id": "python:p.py", "env": {"B": "own"}}, {"A": "suite", "B": "suite"})
    assert spec.options["provider_env"] == {"A": "suite", "B": "own"}


@pytest.mark.parametrize("env", [None, {}, "no"])
def test_without_variables_an_entry_stays(env: Any) -> None:
    entry = {"id": "echo"}
    assert with_env(entry, env) is entry and with_env(None, {"A": "b"}) is None


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "http://localhost:1/x", "config": {"headers": {"Authorization": "Bearer {{env.OTHER_KEY}}"}}},
        {"id": "http://localhost:1/x", "config": {"body": {"keys": ["{{ env['OTHER_KEY'] }}"]}}},
        {"id": "ws://localhost:1/x", "config": {"messageTemplate": "{{prompt}} {{ env.OTHER_KEY }}"}},
        {"id": "webhook:http://localhost:1/x", "config": {"key": "{{env.OTHER_KEY}}"}},
        {
            "id": "openai:chat:m",
            "config": {"apiBaseUrl": "http://localhost:1", "headers": {"X": "{{env.OTHER_KEY}}"}},
        },
    ],
)
def test_a_provider_is_not_asked_without_what_its_templates_take_from_the_environment(
    entry: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without trust in the variable the server was sent nothing in its place, and its answer was judged."""
    spec = for_provider(entry, Config(tmp_path), tmp_path)
    create(spec, Services(root=tmp_path, trust=Trust()))  # a name that nobody has is empty, as in promptfoo
    (tmp_path / ".env").write_text("OTHER_KEY=other-key", "utf-8")
    with pytest.raises(NeedsTrust, match=r"read \.env "):
        create(spec, Services(root=tmp_path, trust=Trust()))
    create(spec, Services(root=tmp_path, trust=Trust(agreed=frozenset(["read .env"]))))
    monkeypatch.setenv("OTHER_KEY", "other-key")
    with pytest.raises(NeedsTrust, match="read the environment variable OTHER_KEY"):
        create(spec, Services(root=tmp_path, trust=Trust()))
    create(spec, Services(root=tmp_path, trust=Trust(agreed=frozenset([variable("OTHER_KEY")]))))


@pytest.mark.parametrize(
    "config",
    [
        {"transformResponse": "(json) => { const x = json.a; return `got ${x}` }"},
        {"body": {"q": "{{prompt}} costs ${HOME}"}, "headers": {"x-home": "${HOME}"}},
    ],
)
@pytest.mark.parametrize(
    "provider_id", ["http://localhost:1/${HOME}", "file://p.js", "python:p.py", "exec:cat ${HOME}"]
)
def test_a_suite_s_providers_keep_what_looks_like_a_variable_of_ours(
    provider_id: str, config: dict[str, Any]
) -> None:
    spec = made({"id": provider_id, "config": config}, {"X": "y"})
    assert fill(spec, Trust(granted=True)).options == spec.options
    assert spec.options["config"] == config


def test_a_model_s_settings_keep_it_too_and_its_named_key_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "named")
    given = {"apiKeyEnvar": "OTHER_KEY", "apiBaseUrl": "http://localhost:1/${HOME}", "user": "${user}"}
    spec = fill(made({"id": "openai:chat:${HOME}", "config": given}, {"X": "y"}), Trust(granted=True))
    assert (spec.options["api_key"], spec.options["base_url"]) == ("named", "http://localhost:1/${HOME}")
    assert (spec.model, spec.options["parameters"]["user"]) == ("${HOME}", "${user}")
