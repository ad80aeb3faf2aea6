"""By which name a model stands in its column, whatever it was typed as."""

from __future__ import annotations

import pytest

from tui_eval.model_ids import column_model, names_model


@pytest.mark.parametrize(
    ("typed", "agent_type", "shown"),
    [
        ("openai:m", "openai", "m"),
        ("m", "openai", "m"),
        ("openai:chat:m", "openai", "m"),
        ("openai:responses:m", "openai-responses", "m"),
        ("openai:llama3:8b", "openai", "llama3:8b"),
        ("llama3:8b", "openai", "llama3:8b"),
        ("anthropic:messages:m", "anthropic", "m"),
        ("anthropic:m", "anthropic", "m"),
        ("ollama:chat:m", "ollama", "m"),
        ("anthropic:m", "openai", "anthropic:m"),
        ("openai:m", "anthropic", "openai:m"),
        ("openai:m", "nao", "openai:m"),
        ("openai:m", "python", "openai:m"),
        ("openai:m", "litellm", "openai:m"),
        (None, "openai", None),
        ("", "openai", ""),
    ],
)
def test_the_agents_own_provider_is_taken_off_and_no_other(
    typed: str | None, agent_type: str, shown: str | None
) -> None:
    assert column_model(typed, agent_type) == shown
    if typed and shown:
        assert names_model(typed, shown)


def test_another_model_is_not_named() -> None:
    assert not names_model("openai:m", "other") and not names_model("m", "openai:m")
