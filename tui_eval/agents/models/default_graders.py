"""The models that promptfoo 0.121.20 grades with where neither the suite nor the configuration names one: whichever
provider's key is there, in its order (getDefaultProviders)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tui_eval.agents.choose import for_embeddings, for_provider
from tui_eval.agents.promptfoo.promptfoo_env import with_env
from tui_eval.config.project import AgentSpec, Config

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
