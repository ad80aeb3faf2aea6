"""What `provider:model` names, wherever it is written: `--agent`, `-m`, `--judge`, `agents:`, `judge:`, a suite's
providers and graders.

The kinds are promptfoo 0.121.20's (`openai:chat:M`, `anthropic:messages:M`), read the same everywhere.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from tui_eval.config.config_schema import AgentSpec, ConfigError

AgentKind = Literal["openai", "openai-responses", "anthropic", "ollama"]

OLLAMA_URL = "http://localhost:11434"
PROVIDERS = ("openai", "anthropic", "ollama")
OPENAI_MODEL = "gpt-4.1-2025-04-14"
"""promptfoo's model of `openai:chat` and `openai:responses` that name none."""

_ELSEWHERE = frozenset(("azure", "bedrock", "bedrock-agent", "google", "vertex", "xai"))
_AGENTS = frozenset(
    (
        "agent",
        "agents",
        "assistant",
        "assistants",
        "chatkit",
        "claude-agent-sdk",
        "claude-code",
        "codex",
        "codex-app-server",
        "codex-desktop",
        "codex-sdk",
        "foundry-agent",
        "kb",
        "knowledge-base",
    )
)
_OTHER = frozenset(
    (
        "audio",
        "embedding",
        "embeddings",
        "feature-extraction",
        "image",
        "live",
        "moderation",
        "realtime",
        "sentence-similarity",
        "speech",
        "text-classification",
        "token-classification",
        "transcription",
        "tts",
        "video",
        "voice",
    )
)


class ModelId(NamedTuple):
    """A model that is chatted with, and the type of agent that speaks to it; `completion`: the prompt goes to it
    as it is (Ollama)."""

    kind: AgentKind
    model: str
    completion: bool = False


def not_a_model(provider_id: str) -> str:
    """Why an id is none of a model that can be chatted with: it is an agent of its own, or makes pictures, speech or
    vectors. Empty: nothing says so."""
    family, _, rest = provider_id.partition(":")
    kind = rest.partition(":")[0].lower()
    if family == "bedrock-agent" or kind in _AGENTS or rest.startswith(("claude-agent-sdk", "claude-code")):
        return "it is an agent of its own, no model"
    if family == "voyage":
        return "it makes vectors, and is no model to chat with"
    return f"{kind} is no model to chat with" if kind in _OTHER else ""


def model_id(provider_id: str, model: str | None = None, *, loose: bool = False) -> ModelId | None:
    """The model of OpenAI, Anthropic or Ollama that an id names, else `model` where it leaves it open; None: it names
    none of theirs. `loose` takes OpenAI's with a colon in its name (`openai:llama3:8b`, a server of one's own)."""
    family, _, rest = provider_id.partition(":")
    if family not in PROVIDERS or not rest or not_a_model(provider_id):
        return None
    kind, colon, named = rest.partition(":")
    if family == "openai":
        if kind in ("chat", "responses"):
            return ModelId("openai" if kind == "chat" else "openai-responses", named or model or OPENAI_MODEL)
        whole = not colon or kind == "ft" or (loose and kind != "completion")
        return ModelId("openai", rest) if whole else None
    if family == "anthropic":
        if kind != "messages":
            return None if colon or kind == "completion" else ModelId("anthropic", rest)
        found = named or model
        return ModelId("anthropic", found) if found and ":" not in found else None
    if kind in ("chat", "completion") and colon:
        return ModelId("ollama", named, kind == "completion") if named else None
    return ModelId("ollama", rest, True)


def plain_name(model: str, family: str) -> str:
    """The name that a provider's server knows, of `-m FAMILY:[kind:]NAME` or a plain name."""
    if not model.startswith(f"{family}:"):
        return model
    found = model_id(model, loose=True)
    return found.model if found else model.removeprefix(f"{family}:")


_OWN = {"openai": "openai", "openai-responses": "openai", "anthropic": "anthropic", "ollama": "ollama"}
"""The provider of a type of agents."""


def column_model(model: str | None, agent_type: str) -> str | None:
    """The name by which a model stands in its column: without the provider where that is the agent's own, as its
    server knows it, so that `-m openai:M` and `-m M` are one column. nao's ids and others stay as they are."""
    own = _OWN.get(agent_type)
    return model if not model or own is None else plain_name(model, own)


def names_model(typed: str, model: str) -> bool:
    """Whether `-m TYPED` can be what asked a column of this model: it is its name, with or without a provider."""
    return model in {typed, *(plain_name(typed, family) for family in PROVIDERS)}


def agent_of(text: str, base: str) -> AgentSpec | None:
    """The agent that `provider:model` or an http(s) URL names (OpenAI-compatible where its path ends in /v1, else a
    JSON endpoint); None: it is neither.

    Raises:
        ConfigError: the URL is none, or what it names is no model.
    """
    if text.startswith(("http://", "https://")):
        return _of_url(text, base)
    if text.partition(":")[0] in (*PROVIDERS, *_ELSEWHERE) and (why := not_a_model(text)):
        raise ConfigError(f"{text}: {why}")
    found = model_id(text, loose=True)
    if found is None:
        return None
    if found.kind == "ollama":
        from tui_eval.config.config_values import chosen_address

        # By Ollama's OpenAI-compatible end, which wants no key, so that OpenAI's is not sent there.
        address = (chosen_address("ollama") or OLLAMA_URL).rstrip("/").removesuffix("/v1")
        return AgentSpec(
            text, "openai", {"base_url": f"{address}/v1", "api_key": ""}, model=found.model, base=base
        )
    return AgentSpec(text, found.kind, model=found.model, base=base)


def _of_url(url: str, base: str) -> AgentSpec:
    try:
        path = urlsplit(url).path.rstrip("/")
    except ValueError as error:
        raise ConfigError(f"{url}: not a URL ({error})") from None
    if path.endswith("/v1"):
        return AgentSpec(url, "openai", {"base_url": url}, base=base)
    return AgentSpec(url, "http", {"url": url}, base=base)


def provider_name(provider: Any) -> str:
    """A provider's id, for messages."""
    if isinstance(provider, dict):
        return str(provider.get("id") or next(iter(provider), "a provider"))
    return str(provider)
