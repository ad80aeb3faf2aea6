"""promptfoo's providers that are not a plain agent of ours: endpoints, files, relays, LiteLLM."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.extensions import adding
from tui_eval.model_ids import not_a_model

RELAYS = frozenset(("sequence", "simulated-user"))
"""Types that speak to the provider of the column."""
SCRIPTS = frozenset(("python", "command", "javascript", "ruby"))
"""Types that are a suite's own code, which is given the provider's entry."""

_LITELLM = {
    "ai21": "ai21/",
    "azure": "azure/",
    "azureopenai": "azure/",
    "bedrock": "bedrock/",
    "cerebras": "cerebras/",
    "cloudflare-ai": "cloudflare/",
    "cohere": "cohere/",
    "databricks": "databricks/",
    "deepseek": "deepseek/",
    "fireworks": "fireworks_ai/",
    "google": "gemini/",
    "groq": "groq/",
    "huggingface": "huggingface/",
    "mistral": "mistral/",
    "openrouter": "openrouter/",
    "palm": "gemini/",
    "perplexity": "perplexity/",
    "replicate": "replicate/",
    "sagemaker": "sagemaker/",
    "togetherai": "together_ai/",
    "vertex": "vertex_ai/",
    "voyage": "voyage/",
    "watsonx": "watsonx/",
    "xai": "xai/",
}
"""promptfoo's prefix → LiteLLM's."""

_FAMILIES = re.compile(r"^(?:chat|completion|text|messages|converse|text-generation):")


_MAP_IT = 'map it in tui_eval.yaml with providers: {"%s": NAME}, or run with --agent NAME'
_PACKED = ("pfx", "pfxContent", "jksContent", "keystoreContent", "certificateContent")


def unnamed_secrets(settings: Any) -> list[str]:
    """Secrets in the settings of an HTTP provider whose names do not say that they are: keys packed in base64, the
    value of an API key. What is a template is none."""
    if not isinstance(settings, dict):
        return []
    parts = {name: settings.get(name) for name in ("tls", "signatureAuth", "auth")}
    found = [part.get(key) for part in parts.values() if isinstance(part, dict) for key in _PACKED]
    if isinstance(auth := parts["auth"], dict):
        found.append(auth.get("value"))
    return [value for value in found if isinstance(value, str) and "{{" not in value]


def other_provider(
    provider_id: str,
    label: str | None,
    settings: dict[str, Any],
    base: str,
    model_options: Callable[[dict[str, Any]], dict[str, Any]],
) -> AgentSpec:
    """The agent for a provider id that names no model of OpenAI, Anthropic or Ollama and no program.

    Raises:
        ConfigError: nothing here speaks to it; says how to map it.
    """
    kind, _, rest = provider_id.partition(":")
    if kind in ("http", "https"):
        url = str(settings.get("url") or (provider_id if rest.startswith("//") else ""))
        if isinstance(request := settings.get("request"), str) and request:
            from tui_eval.agents.promptfoo.promptfoo_request import raw_address

            if provider_id == "https" and not url:  # a url like another: it says how the request goes
                settings = {**settings, "useHttps": True}
            url = raw_address(request, settings, url)
        return AgentSpec(provider_id, "promptfoo-http", {"url": url, "config": settings}, base=base)
    if kind == "webhook" and rest:
        return AgentSpec(provider_id, "webhook", {"url": rest, "config": settings}, base=base)
    if kind in ("ws", "wss", "websocket"):
        url = settings.get("url") or (rest if kind == "websocket" else provider_id)
        return AgentSpec(provider_id, "websocket", {"url": str(url), "config": settings}, base=base)
    if provider_id == "sequence":
        return AgentSpec(provider_id, "sequence", {"config": settings}, base=base)
    if provider_id == "promptfoo:simulated-user":
        return AgentSpec(provider_id, "simulated-user", {"config": settings}, base=base)
    if kind in ("file", "javascript") and re.search(r"\.[cm]?[jt]s(:[\w$]+)?$", rest):
        reference = provider_id if kind == "file" else rest
        options: dict[str, Any] = {"file": reference, "id": provider_id, "config": settings}
        if label:
            options["label"] = label
        return AgentSpec(provider_id, "javascript", options, base=base)
    if kind in ("file", "ruby") and re.search(r"\.rb(:[\w.!?]+)?$", rest):
        options = {"file": provider_id if kind == "file" else rest, "config": settings}
        return AgentSpec(provider_id, "ruby", options, base=base)
    if why := not_a_model(provider_id):
        raise ConfigError(
            f"provider {provider_id}: {why}, so that nothing here speaks to it; {_MAP_IT % provider_id}"
        )
    model = (
        rest.removeprefix("chat:").removeprefix("completion:")
        if kind == "litellm"
        else f"{_LITELLM[kind]}{_FAMILIES.sub('', rest)}"
        if kind in _LITELLM
        else ""
    )
    if model and find_spec("litellm") is not None:
        return AgentSpec(provider_id, "litellm", model_options(settings), model=model, base=base)
    lacks = f"it needs LiteLLM: {adding('litellm')}; or" if model else "tui-eval has no agent for it;"
    raise ConfigError(f"provider {provider_id}: {lacks} {_MAP_IT % provider_id}")
