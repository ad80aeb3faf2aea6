"""What `env` of a promptfoo suite and of a provider in it says to the provider, before the person's environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tui_eval.config.config_values import (
    check_led_to,
    chosen_host,
    destination,
    holds_secret,
    host_of_origin,
    is_loopback,
    leads_elsewhere,
    texts_in,
)
from tui_eval.config.project import AgentSpec
from tui_eval.guard.secrets import secret_pair, secret_values
from tui_eval.guard.trust import Trust, from_root, variable

_OF = {
    "openai": {
        "apiKey": ("OPENAI_API_KEY",),
        "organization": ("OPENAI_ORGANIZATION",),
        "temperature": ("OPENAI_TEMPERATURE",),
        "max_tokens": ("OPENAI_MAX_TOKENS",),
        "max_completion_tokens": ("OPENAI_MAX_COMPLETION_TOKENS",),
        "top_p": ("OPENAI_TOP_P",),
        "presence_penalty": ("OPENAI_PRESENCE_PENALTY",),
        "frequency_penalty": ("OPENAI_FREQUENCY_PENALTY",),
    },
    "anthropic": {
        "apiKey": ("ANTHROPIC_API_KEY",),
        "apiBaseUrl": ("ANTHROPIC_BASE_URL",),
        "temperature": ("ANTHROPIC_TEMPERATURE",),
        "max_tokens": ("ANTHROPIC_MAX_TOKENS",),
    },
    "ollama": {"apiKey": ("OLLAMA_API_KEY",), "apiBaseUrl": ("OLLAMA_BASE_URL",)},
    "huggingface": {"apiKey": ("HF_TOKEN", "HF_API_TOKEN")},
}
"""Family → key of `config` → the variables that stand for it."""
_NUMBERS = frozenset(
    ("temperature", "max_tokens", "max_completion_tokens", "top_p", "presence_penalty", "frequency_penalty")
)


def with_env(entry: Any, env: Any) -> Any:
    """A provider's entry with the suite's `env` under its own."""
    if not isinstance(env, Mapping) or not env:
        return entry
    if isinstance(entry, str):
        return {"id": entry, "env": dict(env)}
    if not isinstance(entry, dict):
        return entry
    if "id" not in entry and len(entry) == 1:
        ((name, rest),) = entry.items()
        return with_env({"id": name, **(rest if isinstance(rest, dict) else {})}, env)
    own = entry.get("env")
    return {**entry, "env": {**env, **(own if isinstance(own, dict) else {})}}


def settled(provider_id: str, settings: dict[str, Any], env: Any) -> dict[str, Any]:
    """The settings of a provider with what its `env` says where they say nothing."""
    if not isinstance(env, Mapping) or not env:
        return settings
    family = provider_id.partition(":")[0]
    found = dict(settings)
    if (own := settings.get("apiKeyEnvar")) and not settings.get("apiKey") and env.get(own):
        found["apiKey"] = str(env[own])
    if family == "openai" and not settings.get("apiHost") and not settings.get("apiBaseUrl"):
        if env.get("OPENAI_API_HOST"):
            found["apiHost"] = str(env["OPENAI_API_HOST"])
        elif url := env.get("OPENAI_API_BASE_URL") or env.get("OPENAI_BASE_URL"):
            found["apiBaseUrl"] = str(url)
    for key, names in _OF.get(family, {}).items():
        value = next((env[name] for name in names if env.get(name) not in (None, "")), None)
        if value is None or found.get(key) is not None or (key == "apiKey" and settings.get("apiKeyEnvar")):
            continue
        found[key] = _number(value) if key in _NUMBERS else str(value)
    return found


def read_when_asked(kind: str, options: Mapping[str, Any]) -> list[str]:
    """The variables of the person's environment that an agent of this type puts into its requests for what its options,
    which a promptfoo provider made, do not say."""
    given = options.get("parameters")
    known = given if isinstance(given, dict) else {}
    family = _OF.get(kind.partition("-")[0], {}) if options.get("promptfoo") else {}
    return [
        name for key in sorted(_NUMBERS & family.keys()) if known.get(key) is None for name in family[key]
    ]


def _number(value: Any) -> int | float | None:
    try:
        return float(value) if "." in str(value) else int(value)
    except ValueError:
        return None


template_variables: ContextVar[Mapping[str, str]] = ContextVar(
    "template_variables", default=MappingProxyType({})
)
"""What `{{ env.NAME }}` finds in a provider's templates while an attempt is run, where it was not filled in when the
suite was read: `{% if env.KEY %}`, `env[name]`, a body in a file. Asking for one that needs trust raises."""


def names_variables(options: Any) -> bool:
    """Whether a provider's templates still name variables: the suite was read without them."""
    return next(_named(options), None) is not None


def untrusted(options: Any, base: str, root: Path) -> Iterator[str]:
    """What a provider's templates (`Bearer {{env.KEY}}`) need trust for: they still name variables since the suite was
    read without, and nothing would be sent in their place. `base` is the suite's folder.

    Raises:
        NeedsTrust: the attempt at work may not read one.
    """
    for name in _named(options):
        template_variables.get().get(name)
        from tui_eval.nunjucks.suite_environment import SuiteEnvironment

        beside = Path(base) / ".env"
        if name in SuiteEnvironment({}, Trust()):
            yield variable(name)
        elif base and beside.is_file():  # whether it has this one nobody knows
            yield f"read {from_root(beside, root)}"


def require_destination(spec: AgentSpec, sent: Any, url: str, trust: Trust) -> None:
    """See that templates may be sent which read a secret of the environment only when they are filled in (`{% set k =
    env.TOKEN %}`): that the variable may be read says nothing of the host that gets it.

    Raises:
        NeedsTrust: the host is not this machine, in a folder that is not trusted.
    """
    if _is_chosen(spec, url) and read_secret(sent, spec.base):
        _require_host(spec, "", url, trust)


def require_led_to(spec: AgentSpec, sent: Any, named: str, address: str, values: Any, trust: Trust) -> None:
    """As `require_destination`, for where a request really goes, once its templates are filled in with `values`:
    `named` is the address that was looked at before. What goes to the host that the entry names, as it stands, is
    looked at where a question is asked (`check_said`).

    Raises:
        NeedsTrust: it is another host, and not this machine.
    """
    if leads_elsewhere(named, address):
        check_led_to(spec, named, address, trust)
        require_destination(spec, sent, address, trust)
    if (host_of_origin(address) or destination(address)) != chosen_host(spec):
        require_values(spec, "", values, address, trust)


def require_values(spec: AgentSpec, key: str, values: Any, url: str, trust: Trust) -> None:
    """As `require_destination`, for what templates under a key of `config` were filled in with.

    Raises:
        NeedsTrust: a secret is among it.
    """
    if not trust.granted and _is_chosen(spec, url) and holds_secret(values):
        _require_host(spec, key, url, trust)


def require_destinations_within(spec: AgentSpec, config: Mapping[str, Any], trust: Trust) -> None:
    """As `require_destination`, for the other hosts that an endpoint's settings name: where its session begins, where
    it signs in. They get what stands there.

    Raises:
        NeedsTrust: one of them.
    """
    for key, address in (("session", "url"), ("auth", "tokenUrl")):
        given = config.get(key)
        if isinstance(given, dict) and isinstance(url := given.get(address), str):
            require_destination_within(spec, key, given, url, trust)


def require_destination_within(
    spec: AgentSpec, key: str, given: Mapping[str, Any], url: str, trust: Trust
) -> None:
    """As `require_destinations_within`, for the settings under one key that go to `url`."""
    if _is_chosen(spec, url) and (
        secret_values(given) or holds_secret(given) or read_secret(given, spec.base)
    ):
        _require_host(spec, f".{key}", url, trust)


def _is_chosen(spec: AgentSpec, url: str) -> bool:
    """Whether a file chose where this goes, and it is not this machine."""
    return not (spec.typed or is_loopback(url))


def _require_host(spec: AgentSpec, key: str, url: str, trust: Trust) -> None:
    trust.require(f"send a secret (agents.{spec.name}.config{key}) to {destination(url)}")


def read_secret(templates: Any, base: str) -> bool:
    """Whether one of the texts of a value is a template that reads a secret of the environment, or may; `base` is their
    suite's folder."""
    return any(_reads_secret(text, base) for text in texts_in(templates))


def _reads_secret(text: str, base: str) -> bool:
    if "env" not in text or not ("{{" in text or "{%" in text):
        return False
    from tui_eval.nunjucks.suite_environment import reads_unnamed, variables_named

    beside = bool(base) and (Path(base) / ".env").is_file()
    return reads_unnamed(text) or any(
        secret_pair(name, os.environ.get(name, "")) and (beside or name in os.environ)
        for name in variables_named(text)
    )


def _named(options: Any) -> Iterator[str]:
    if isinstance(options, str):
        if "{{" in options and "env" in options:
            from tui_eval.nunjucks.suite_environment import variables_named

            for tag in re.findall(r"(?s)\{\{(.{1,400}?)\}\}", options):
                yield from variables_named(tag)
    elif isinstance(options, (Mapping, list)):
        for item in options.values() if isinstance(options, Mapping) else options:
            yield from _named(item)
