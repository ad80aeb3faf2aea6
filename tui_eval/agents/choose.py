"""Which agent is meant: `--agent` in all its forms, and promptfoo's provider entries."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.agents.entry_options import module_file
from tui_eval.agents.promptfoo.promptfoo_env import settled, with_env
from tui_eval.agents.promptfoo.promptfoo_providers import RELAYS, SCRIPTS, other_provider
from tui_eval.config.config_values import chosen_address, holds_secret
from tui_eval.config.project import AgentSpec, Config, ConfigError, masker, refused_agent
from tui_eval.guard.paths import no_file
from tui_eval.guard.secrets import MASK, in_addresses, secret_values
from tui_eval.guard.spelling import close_to
from tui_eval.model_ids import OLLAMA_URL, PROVIDERS, agent_of, model_id

_FUNCTION = r"(?P<file>.+\.py):(?P<function>[^\W\d]\w*)"
_PARAMETERS = (
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "top_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "stop",
    "stop_sequences",
    "seed",
    "reasoning_effort",
    "response_format",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "thinking",
    "metadata",
)


def from_argument(text: str, config: Config) -> AgentSpec:
    """The agent that `--agent TEXT` names: a configured name, `FILE.py:function` (or
    `package.module:function` of a module below the current folder), an http(s) URL (OpenAI-compatible
    where its path ends in /v1, else a JSON endpoint) or `provider:model`.

    Raises:
        ConfigError: it is none of these; says which there are.
    """
    if text in config.agents:
        return config.agents[text]
    return _meant(text, config, str(Path.cwd()), "--agent ")


def from_file(text: str, config: Config) -> AgentSpec:
    """The agent that a file names (`agent:` and `judge:` of `suites:`, a suite's grader), in the forms
    of `--agent`: its files are below the root, and nobody typed it, so that it is not trusted by that.

    Raises:
        ConfigError: as `from_argument`.
    """
    if text in config.agents:
        return config.agents[text]
    return msgspec.structs.replace(_meant(text, config, str(config.root), ""), typed=False)


_typed: dict[str, str] = {}
"""Addresses with secrets that were asked for in this process, by the name that they are recorded under: an engine
that is kept warm asks them again."""


def _meant(text: str, config: Config, here: str, said: str) -> AgentSpec:
    if MASK in text and "://" in text:
        if text not in _typed and said:
            raise ConfigError(f"{said}{text}: what is masked there is in no record; give the whole address")
        text = _typed.get(text, text)
    if (wrong := refused_agent(config, text)) is not None:
        raise ConfigError(f"{said}{text}: {wrong}")
    if match := re.fullmatch(_FUNCTION, text):
        if not os.path.isfile(file := Path(here, match["file"])):
            raise ConfigError(f"{said}{text}: {no_file(file, match['file'])}")
        return AgentSpec(text, "python", {"function": text}, base=here, typed=True)
    if re.match(r"(?i)https?://", text) and not re.match(r"(?i)https?://[^/\s]", text):
        raise ConfigError(f"{said}{text}: names no host, as http://localhost:9000/chat does")
    try:
        named = agent_of(text, here)
    except ConfigError as error:
        raise ConfigError(f"{said}{error}") from None
    if named is not None:
        name = in_addresses(text)
        if name != text:
            _typed[name] = text
        return msgspec.structs.replace(named, name=name, typed=True)
    provider, _, model = text.partition(":")
    if text == "echo":
        return AgentSpec("echo", "echo", base=here, typed=True)
    dotted = model.isidentifier() and all(part.isidentifier() for part in provider.split("."))
    if dotted and module_file(provider, [here]) is not None:
        return AgentSpec(text, "python", {"function": text}, base=here, typed=True)
    known = ", ".join(config.agents) or "none configured"
    if (slip := close_to(text, config.agents)) is not None:
        raise ConfigError(f"{said}{text}: no agent of that name; did you mean {slip!r}? There is: {known}")
    raise ConfigError(
        f"{said}{text}: no agent of that name ({known}), nor FILE.py:function, an http(s):// URL "
        f"or {'|'.join(PROVIDERS)}:MODEL"
    )


def for_provider(entry: Any, config: Config, base: Path | str, target: Any = None) -> AgentSpec:
    """The agent for a promptfoo provider: an id, `{id, label, config, …}` or `{id: {…}}`.

    What `providers:` in tui_eval.yaml maps (by id or label) comes first. `base` is the suite's
    folder, to which its files are relative. `target` is the provider that a relaying one speaks to.

    Raises:
        ConfigError: nothing here speaks to it; says how to map it.
    """
    provider_id, label, settings = _parts(entry)
    for name in (provider_id, label):
        mapped = config.providers.get(name) if name else None
        if mapped is not None:
            if mapped not in config.agents:
                wrong = refused_agent(config, mapped) or f"there is no agent called {mapped}"
                raise ConfigError(f"providers.{name}: {wrong}")
            return config.agents[mapped]
    spec = _provider(provider_id, settings, str(base)) or other_provider(
        provider_id, label, settings, str(base), _model_options
    )
    if spec.type in RELAYS and target is not None:
        spec.options["target"] = msgspec.to_builtins(for_provider(target, config, base))
    if spec.type in SCRIPTS:
        spec.options["id"] = provider_id
        if isinstance(entry, dict) and isinstance(entry.get("env"), dict) and entry["env"]:
            spec.options["provider_env"] = entry["env"]
    spec.plain = True
    spec.name = masker(config).text(in_addresses(label or provider_id))
    env = entry.get("env") if isinstance(entry, dict) else None
    # Of several configurations each has filled in what its own says, which is among what is kept secret of the suite.
    secrets = [*secret_values(env if isinstance(env, dict) else {}), *config.suite_secrets]
    if secrets:
        held = (key for key, value in spec.options.items() if holds_secret(value, secrets))
        spec.secret_in = next(held, "")
    return spec


def for_embeddings(entry: Any, config: Config, base: Path | str) -> AgentSpec:
    """The agent whose `/embeddings` stands behind a promptfoo embedding provider
    (`openai:embedding:MODEL`, `ollama:embeddings:MODEL`, or what `providers:` maps).

    Raises:
        ConfigError: it is no such provider.
    """
    provider_id, label, settings = _parts(entry)
    family, _, rest = provider_id.partition(":")
    kind, _, model = rest.partition(":")
    mapped = config.providers.get(provider_id) or (config.providers.get(label) if label else None)
    if mapped is None and kind in ("embedding", "embeddings") and model and family in ("openai", "ollama"):
        options = _model_options(settings)
        if family == "ollama":
            address = settings.get("apiBaseUrl") or chosen_address("ollama") or OLLAMA_URL
            address = str(address).rstrip("/").removesuffix("/v1")
            options.update(
                base_url=f"{address}/v1", api_key=""
            )  # it wants no key: OpenAI's is not sent there
        options["embedding_model"] = model
        return AgentSpec(provider_id, "openai", options, base=str(base), plain=True)
    if mapped is None and family in ("openai", "ollama") and kind not in ("chat", "responses"):
        raise ConfigError(f"provider {provider_id}: no embedding model; write {family}:embedding:MODEL")
    return for_provider(entry, config, base)


def for_scores(entry: Any, config: Config, base: Path | str) -> AgentSpec:
    """The model behind a promptfoo provider that classifies or moderates (`huggingface:text-classification:MODEL`,
    `openai:moderation:MODEL`).

    Raises:
        ConfigError: it is no such provider.
    """
    provider_id, label, settings = _parts(entry)
    name = label or provider_id
    family, _, rest = provider_id.partition(":")
    kind, _, model = rest.partition(":")
    if (family, kind) == ("huggingface", "text-classification") and model:
        keys = {"url": "apiEndpoint", "api_key": "apiKey"}
        options = {ours: settings[theirs] for ours, theirs in keys.items() if settings.get(theirs)}
        return AgentSpec(name, "huggingface-classifier", options, model=model, base=str(base), plain=True)
    if (family, kind) == ("openai", "moderation"):
        known = _of_openai(settings)
        options = {key: known[key] for key in ("base_url", "api_key", "headers") if key in known}
        asked = model or "text-moderation-latest"
        return AgentSpec(name, "openai-moderation", options, model=asked, base=str(base), plain=True)
    raise ConfigError(
        f"provider {provider_id}: nothing here has it classify; write huggingface:text-classification:MODEL "
        "(config.apiEndpoint: a server of your own) or openai:moderation:MODEL"
    )


def _parts(entry: Any) -> tuple[str, str | None, dict[str, Any]]:
    if isinstance(entry, str):
        return entry, None, {}
    if not isinstance(entry, dict) or not entry:
        raise ConfigError(f"provider {entry!r}: must be an id or a mapping with an id")
    if "id" not in entry and len(entry) == 1:
        (provider_id, rest) = next(iter(entry.items()))
        entry = {"id": provider_id, **(rest if isinstance(rest, dict) else {})}
    provider_id = entry.get("id")
    if not isinstance(provider_id, str) or not provider_id:
        raise ConfigError("provider: its id is missing or not text")
    given = entry.get("config")
    label = entry.get("label")
    settings = settled(provider_id, dict(given) if isinstance(given, dict) else {}, entry.get("env"))
    return provider_id, str(label) if label else None, settings


def _provider(provider_id: str, settings: dict[str, Any], base: str) -> AgentSpec | None:
    kind, _, rest = provider_id.partition(":")
    if provider_id == "echo":
        return AgentSpec("echo", "echo", base=base)
    if kind in PROVIDERS:
        return _of_model(provider_id, settings, base)
    if kind == "exec":
        return AgentSpec(
            provider_id,
            "command",
            {"command": rest.strip(), "promptfoo": True, "config": settings},
            base=base,
        )
    if kind == "python" or (kind == "file" and re.search(r"\.py(:\w+)?$", rest)):
        return _python(provider_id, settings, base)
    return None


def _of_model(provider_id: str, settings: dict[str, Any], base: str) -> AgentSpec | None:
    """The agent for a model of OpenAI, Anthropic or Ollama."""
    found = model_id(provider_id, str(settings.get("model") or "") or None)
    if found is None:
        return None
    if found.kind == "anthropic":
        return AgentSpec(provider_id, "anthropic", _asked_options(settings), model=found.model, base=base)
    if found.kind != "ollama":
        return AgentSpec(provider_id, found.kind, _of_openai(settings), model=found.model, base=base)
    from tui_eval.agents.promptfoo.promptfoo_models import OLLAMA_KEYS

    parameters = {key: value for key, value in settings.items() if key in OLLAMA_KEYS and value is not None}
    options: dict[str, Any] = {"parameters": parameters}
    if settings.get("apiKey"):
        options["api_key"] = str(settings["apiKey"])
    if settings.get("apiBaseUrl"):
        options["base_url"] = str(settings["apiBaseUrl"])
    if found.completion:
        options["completion"] = True
    return AgentSpec(provider_id, "ollama", options, model=found.model, base=base)


def _of_openai(settings: dict[str, Any]) -> dict[str, Any]:
    """The options of one of OpenAI's models: which server, which organization, and what is asked of it."""
    options = _asked_options(settings)
    if host := settings.get("apiHost"):
        options["base_url"] = f"https://{host}/v1"
    organization = settings.get("organization")
    if not organization and "base_url" not in options:  # the person's own goes to no host that a file chose
        organization = os.environ.get("OPENAI_ORGANIZATION")
    if organization:
        options["headers"] = {"OpenAI-Organization": str(organization), **options.get("headers", {})}
    return options


def _asked_options(settings: dict[str, Any]) -> dict[str, Any]:
    """The same, with the parameters as promptfoo's own providers make them of the settings."""
    options = _model_options(settings)
    from tui_eval.agents.promptfoo.promptfoo_models import (
        KEYS,  # imported late: for promptfoo's providers only
    )

    parameters = {key: value for key, value in settings.items() if key in KEYS and value is not None}
    return {**options, "parameters": parameters}


def _model_options(settings: dict[str, Any]) -> dict[str, Any]:
    """promptfoo's settings of a model in our words."""
    from tui_eval.agents.promptfoo.promptfoo_models import PRICE_KEYS

    options: dict[str, Any] = {"promptfoo": True}
    parameters = {key: settings[key] for key in _PARAMETERS if settings.get(key) is not None}
    passthrough = settings.get("passthrough")
    if isinstance(passthrough, dict):
        parameters.update(passthrough)
    if parameters:
        options["parameters"] = parameters
    if price := {name: settings[name] for name in PRICE_KEYS if settings.get(name) is not None}:
        options["promptfoo_price"] = price
    if settings.get("apiKey"):
        options["api_key"] = settings["apiKey"]
    elif (name := settings.get("apiKeyEnvar")) and (name in os.environ or "OPENAI_API_KEY" not in os.environ):
        options["api_key"] = f"${{{name}}}"
    if isinstance(settings.get("headers"), dict):
        options["headers"] = settings["headers"]
    if settings.get("apiBaseUrl"):
        options["base_url"] = settings["apiBaseUrl"]
    return options


def _python(provider_id: str, settings: dict[str, Any], base: str) -> AgentSpec:
    path = provider_id.removeprefix("python:").removeprefix("file://")
    file, _, function = path.rpartition(":")
    if not file.endswith(".py"):
        file, function = path, "call_api"
    options = {"function": f"{file}:{function}", "promptfoo": True, "config": settings}
    return AgentSpec(provider_id, "python", options, base=base)


# -- The models that promptfoo 0.121.20 grades with where neither the suite nor the configuration names one:
# whichever provider's key is there, in its order (getDefaultProviders).


OPENAI = "openai:chat:gpt-5.5-2026-04-23"
ANTHROPIC = "anthropic:messages:claude-sonnet-4-6"
EMBEDDING = "openai:embedding:text-embedding-3-large"


def default_grader(env: Any, config: Config) -> AgentSpec | None:
    """The default grader; `env` is the suite's. None: no key is there, or that of a provider that promptfoo would
    prefer and nothing here speaks to (Azure)."""
    named = _named(env)
    return None if named is None else for_provider(with_env(named, env), config, config.root)


def default_embeddings(env: Any, config: Config) -> AgentSpec | None:
    """The default embedding model, which is OpenAI's; None: its key is not there."""
    if not _has("OPENAI_API_KEY", env):
        return None
    return for_embeddings(with_env(EMBEDDING, env), config, config.root)


def _named(env: Any) -> str | None:
    if _has("OPENAI_API_KEY", env):
        return OPENAI
    azure = _has("AZURE_OPENAI_API_KEY", env) or _has("AZURE_API_KEY", env)
    azure = azure or all(_has(f"AZURE_{part}", env) for part in ("CLIENT_ID", "CLIENT_SECRET", "TENANT_ID"))
    deployed = _has("AZURE_DEPLOYMENT_NAME", env) and _has("AZURE_OPENAI_DEPLOYMENT_NAME", env)
    if azure and deployed:
        return None
    return ANTHROPIC if _has("ANTHROPIC_API_KEY", env) else None


def _has(name: str, env: Any) -> bool:
    return bool(os.environ.get(name) or (isinstance(env, Mapping) and env.get(name)))
