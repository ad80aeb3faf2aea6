"""Talking to the systems under test: one module per protocol, made known here.

`create` makes an agent of a configured entry; its module is imported only then, since some load
heavy libraries. Another package adds a type with an entry point in the group `tui_eval.agents`
whose value is a class derived from `tui_eval.agents.base.Agent`.

May not: know suites, runs or verdicts.
"""

from __future__ import annotations

import importlib

from tui_eval import extensions
from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.choose import (
    default_embeddings,
    default_grader,
    for_embeddings,
    for_provider,
    for_scores,
    from_argument,
    from_file,
)
from tui_eval.agents.promptfoo.promptfoo_env import names_variables, template_variables, untrusted, with_env
from tui_eval.config.project import AgentSpec, ConfigError

TYPES: dict[str, str] = {
    "openai": "tui_eval.agents.models.openai:OpenAIAgent",
    "anthropic": "tui_eval.agents.models.anthropic:AnthropicAgent",
    "nao": "tui_eval.agents.nao.nao_agent:NaoAgent",
    "neuro-san": "tui_eval.agents.neuro_san.neuro_san_agent:NeuroSanAgent",
    "http": "tui_eval.agents.http.json_endpoint:HttpAgent",
    "python": "tui_eval.agents.programs.python_agent:PythonAgent",
    "command": "tui_eval.agents.programs.command:CommandAgent",
    "echo": "tui_eval.agents.offline.echo:EchoAgent",
    "silent": "tui_eval.agents.offline.echo:SilentAgent",
    "scripted": "tui_eval.agents.offline.scripted:ScriptedAgent",
    "replay": "tui_eval.agents.offline.replay:ReplayAgent",
    "promptfoo-http": "tui_eval.agents.promptfoo.promptfoo_http:PromptfooHttpAgent",
    "ollama": "tui_eval.agents.models.ollama:OllamaAgent",
    "websocket": "tui_eval.agents.promptfoo.promptfoo_websocket:WebSocketAgent",
    "webhook": "tui_eval.agents.promptfoo.promptfoo_http:WebhookAgent",
    "javascript": "tui_eval.agents.programs.script_providers:JavaScriptAgent",
    "ruby": "tui_eval.agents.programs.script_providers:RubyAgent",
    "huggingface-classifier": "tui_eval.agents.models.classifiers:HuggingFaceClassifier",
    "openai-moderation": "tui_eval.agents.models.classifiers:OpenAIModeration",
    "sequence": "tui_eval.agents.promptfoo.relay:SequenceAgent",
    "simulated-user": "tui_eval.agents.promptfoo.relay:SimulatedUserAgent",
    "openai-responses": "tui_eval.agents.models.openai_responses:OpenAIResponsesAgent",
    "litellm": "tui_eval.agents.models.lite_llm:LiteLLMAgent",
}
"""Type → `module:class`, imported on first use."""


def agent_class(type_name: str) -> type[Agent]:
    """The class of a type, ours or another package's.

    Raises:
        ConfigError: there is no such type.
    """
    target = TYPES.get(type_name)
    if target is not None:
        module, _, name = target.partition(":")
        return getattr(importlib.import_module(module), name)
    try:
        added = extensions.load("agents", type_name)
    except extensions.ExtensionError as error:
        raise ConfigError(f"agent type {error}") from error
    if added is not None:
        return added
    raise ConfigError(f"there is no agent type {type_name}; types: {', '.join(TYPES)}")


_OF_PROVIDERS = {"promptfoo-http", "webhook", "websocket", "huggingface-classifier", "openai-moderation"}
"""Types that only a promptfoo suite makes, whose templates its environment is filled into when it is read."""


def of_templates(spec: AgentSpec) -> bool:
    """Whether a promptfoo suite made this agent, whose options, and files that they name, are templates."""
    return spec.type in _OF_PROVIDERS or "promptfoo" in spec.options


def create(spec: AgentSpec, services: Services) -> Agent:
    """The agent of an entry whose `${NAME}`s are filled in (`config.fill`).

    Raises:
        ConfigError: an option is wrong; one line that names the key.
        NeedsTrust: it reads a file, or sends a secret to a place, that needs trust.
    """
    if of_templates(spec):
        for what in untrusted(spec.options, spec.base, services.root):
            services.trust.require(what)
    return agent_class(spec.type)(spec, services)


__all__ = [
    "TYPES",
    "Agent",
    "AgentError",
    "Capabilities",
    "Request",
    "Services",
    "Session",
    "SessionContext",
    "agent_class",
    "create",
    "default_embeddings",
    "default_grader",
    "for_embeddings",
    "for_provider",
    "for_scores",
    "from_argument",
    "from_file",
    "names_variables",
    "of_templates",
    "template_variables",
    "with_env",
]
