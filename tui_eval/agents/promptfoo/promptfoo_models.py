"""What promptfoo 0.121.20 asks models for: the parameters of a request from a provider's `config`.

Without a word in the suite it asks for temperature 0 and 1,024 tokens, so that a suite tried there is tried the
same way here. Environment variables that change that (`OPENAI_TEMPERATURE`, …) count as there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from tui_eval.agents.loose_json import encode

Values = Mapping[str, Any]

KEYS = frozenset(
    ("temperature", "max_tokens", "max_completion_tokens", "max_output_tokens", "top_p", "top_k", "seed", "stop",
     "presence_penalty", "frequency_penalty", "functions", "function_call", "tools", "tool_choice",
     "tool_resources", "response_format", "reasoning", "reasoning_effort", "verbosity", "service_tier", "user",
     "metadata", "store", "modalities", "audio", "prompt_cache_key", "prompt_cache_options",
     "prompt_cache_retention", "passthrough", "omitDefaults", "showThinking", "max_tool_calls", "include",
     "previous_response_id", "truncation", "parallel_tool_calls", "background", "webhook_url", "stop_sequences",
     "thinking", "effort", "output_format", "cache_control", "extra_body", "beta", "instructions", "functionToolCallbacks")
)  # fmt: skip
"""Keys of `config` that say something about a request."""

PRICE_KEYS = ("cost", "inputCost", "outputCost")
"""Keys of `config` that say what a token costs (USD)."""

_PRICED = """
gpt-4o-search-preview gpt-4o-search-preview-2025-03-11 gpt-4o-mini-search-preview
gpt-4o-mini-search-preview-2025-03-11 gpt-5-search-api gpt-5-search-api-2025-10-14 chatgpt-4o-latest chat-latest
gpt-4.1 gpt-4.1-2025-04-14 gpt-4.1-mini gpt-4.1-mini-2025-04-14 gpt-4.1-nano gpt-4.1-nano-2025-04-14 o1
o1-2024-12-17 o1-preview o1-preview-2024-09-12 o1-mini o1-mini-2024-09-12 o3 o3-2025-04-16 o3-mini
o3-mini-2025-01-31 gpt-4o gpt-4o-2024-11-20 gpt-4o-2024-08-06 gpt-4o-2024-05-13 gpt-4o-mini
gpt-4o-mini-2024-07-18 gpt-4 gpt-4-0613 gpt-4-0314 gpt-4-32k gpt-4-32k-0314 gpt-4-32k-0613 gpt-4-turbo
gpt-4-turbo-2024-04-09 gpt-4-turbo-preview gpt-4-0125-preview gpt-4-1106-preview gpt-4-1106-vision-preview
gpt-4-vision-preview gpt-3.5-turbo gpt-3.5-turbo-0125 gpt-3.5-turbo-1106 gpt-3.5-turbo-0301 gpt-3.5-turbo-0613
gpt-3.5-turbo-16k gpt-3.5-turbo-16k-0613 o4-mini o4-mini-2025-04-16 gpt-5 gpt-5-2025-08-07 gpt-5-chat
gpt-5-chat-latest gpt-5-nano gpt-5-nano-2025-08-07 gpt-5-mini gpt-5-mini-2025-08-07 codex-mini-latest gpt-5.1
gpt-5.1-2025-11-13 gpt-5.1-chat-latest gpt-5.2 gpt-5.2-2025-12-11 gpt-5.2-chat-latest gpt-5.3-chat-latest
gpt-5.6 gpt-5.6-sol gpt-5.6-terra gpt-5.6-luna gpt-5.5 gpt-5.5-2026-04-23 gpt-5.4 gpt-5.4-2026-03-05
gpt-5.4-mini gpt-5.4-mini-2026-03-17 gpt-5.4-nano gpt-5.4-nano-2026-03-17 gpt-audio gpt-audio-2025-08-28
gpt-audio-1.5 gpt-audio-mini gpt-audio-mini-2025-12-15 gpt-audio-mini-2025-10-06 gpt-4o-audio-preview
gpt-4o-audio-preview-2024-12-17 gpt-4o-audio-preview-2024-10-01 gpt-4o-audio-preview-2025-06-03
gpt-4o-mini-audio-preview gpt-4o-mini-audio-preview-2024-12-17 gpt-3.5-turbo-instruct
gpt-3.5-turbo-instruct-0914 babbage-002 davinci-002 computer-use-preview computer-use-preview-2025-03-11 o1-pro
o1-pro-2025-03-19 o3-pro o3-pro-2025-06-10 gpt-5-codex gpt-5-codex-mini gpt-5-pro gpt-5-pro-2025-10-06
gpt-5.1-codex gpt-5.1-codex-max gpt-5.1-codex-mini gpt-5.2-codex gpt-5.3-codex gpt-5.2-pro
gpt-5.2-pro-2025-12-11 gpt-5.4-pro gpt-5.4-pro-2026-03-05 gpt-5.5-pro gpt-5.5-pro-2026-04-23 o3-deep-research
o3-deep-research-2025-06-26 o4-mini-deep-research o4-mini-deep-research-2025-06-26 claude-fable-5
claude-mythos-5 claude-opus-5 claude-sonnet-5 claude-mythos-preview claude-opus-4-8 claude-opus-4-7
claude-sonnet-4-6 claude-sonnet-4-6-latest claude-opus-4-6 claude-opus-4-6-latest claude-opus-4-5
claude-opus-4-5-20251101 claude-opus-4-5-latest claude-opus-4-1 claude-opus-4-1-20250805 claude-opus-4-20250514
claude-opus-4-0 claude-opus-4-latest claude-sonnet-4-5 claude-sonnet-4-5-20250929 claude-sonnet-4-5-latest
claude-sonnet-4-20250514 claude-sonnet-4-0 claude-sonnet-4-latest claude-haiku-4-5 claude-haiku-4-5-20251001
claude-haiku-4-5-latest claude-2.0 claude-2.1 claude-3-haiku-20240307 claude-3-haiku-latest
claude-3-opus-20240229 claude-3-opus-latest claude-3-5-haiku-20241022 claude-3-5-haiku-latest
claude-3-5-sonnet-20240620 claude-3-5-sonnet-20241022 claude-3-5-sonnet-latest claude-3-7-sonnet-20250219
claude-3-7-sonnet-latest
"""
"""Models of OpenAI and Anthropic that promptfoo 0.121.20 knows a price of, by these names exactly."""
_TUNED = (
    r"ft:(?:babbage-002|davinci-002|gpt-3\.5-turbo(?:-(?:0125|0613|1106))?|gpt-4-0613|gpt-4\.1(?:-mini|-nano)?(?:-2025-04-14)?"
    r"|gpt-4o(?:-2024-(?:08-06|11-20)|-mini(?:-2024-07-18)?)?|o4-mini(?:-2025-04-16)?)(?::|$)"
)


def is_priced(model: str) -> bool:
    """Whether promptfoo says what a model costs: of no other does it, though `config` has a price."""
    bare = model.rpartition("/")[2]
    return bare in _PRICED.split() or re.match(_TUNED, bare) is not None


OLLAMA_OPTIONS = frozenset(
    ("num_predict", "top_k", "top_p", "tfs_z", "seed", "useNUMA", "num_ctx", "num_keep", "num_batch", "num_gqa",
     "num_gpu", "main_gpu", "low_vram", "f16_kv", "logits_all", "vocab_only", "use_mmap", "use_mlock",
     "embedding_only", "rope_frequency_base", "rope_frequency_scale", "typical_p", "repeat_last_n", "temperature",
     "repeat_penalty", "presence_penalty", "frequency_penalty", "mirostat", "mirostat_tau", "mirostat_eta",
     "penalize_newline", "stop", "num_thread")
)  # fmt: skip
"""What Ollama takes as `options` of a request."""
OLLAMA_KEYS = OLLAMA_OPTIONS | {"tools", "think", "passthrough"}

_TOKENS = 1024
_THINKING_TOKENS = 2048
# Patterns are compiled when they are first asked for: few runs ask.
_REASONS = r"(?:^|/)(?:o1|o3|o4|gpt-5)"
_GPT_5 = r"(?:^|/)gpt-5"
_NO_SAMPLING = r"(?i)(?:^|[^a-z0-9])claude-(?:(?:fable|mythos)-5(?![a-z0-9])|(?:opus|sonnet)-5(?![0-9])|opus-4-[78](?![0-9]))"
"""Claude's models that take neither temperature nor top_p and think as they see fit."""
_ALWAYS_THINKS = r"(?i)(?:^|[^a-z0-9])claude-(?:(?:fable|mythos)-5(?![a-z0-9])|opus-5(?![0-9]))"
_STRUCTURED = "structured-outputs-2025-11-13"


_TEMPLATES = ("tools", "functions", "response_format", "output_format", "reasoning", "reasoning_effort")


def filled_in(given: Values, values: Values) -> Values:
    """The settings with the test's variables in those that promptfoo takes for templates.

    Raises:
        AgentError: a template cannot be rendered.
    """
    wanted = [key for key in _TEMPLATES if key in given and b"{{" in encode(given[key])]
    if not wanted:
        return given
    from tui_eval.agents.promptfoo.promptfoo_request import rendered

    return {**given, **{key: rendered(given[key], values) for key in wanted}}


def _tools(given: Values, shape: str) -> tuple[Any, Any]:
    """The tools and the choice among them, in a maker's shape; None where there are none."""
    tools, choice = given.get("tools"), given.get("tool_choice")
    if not tools and not choice:
        return None, None
    from tui_eval.agents.promptfoo.promptfoo_request import shaped_choice, shaped_tools

    return shaped_tools(tools, shape) or None, shaped_choice(choice, shape)


def chat(model: str, given: Values) -> dict[str, Any]:
    """The parameters of a chat completion."""
    extra = _mapping(given.get("passthrough"))
    known = str(extra.get("model") or model).replace("ft:", "")
    reasons = re.search(_REASONS, known) is not None
    found: dict[str, Any] = {"seed": given.get("seed")}
    if reasons:
        found["max_completion_tokens"] = _given(
            given, "max_completion_tokens", "OPENAI_MAX_COMPLETION_TOKENS"
        )
    else:
        found["max_tokens"] = _given(given, "max_tokens", "OPENAI_MAX_TOKENS", _default(given, _TOKENS))
        found["temperature"] = _given(given, "temperature", "OPENAI_TEMPERATURE", _default(given, 0))
    for name in ("top_p", "presence_penalty", "frequency_penalty"):
        found[name] = _given(given, name, f"OPENAI_{name.upper()}")
    for name in ("functions", "function_call", "tool_resources", "response_format", "stop"):
        found[name] = given.get(name) or None
    found["tools"], choice = _tools(given, "openai")
    found["tool_choice"] = choice or None
    for name in ("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"):
        found[name] = given.get(name)
    found = {**{name: value for name, value in found.items() if value is not None}, **extra}
    if "audio" in known:
        found["modalities"] = given.get("modalities") or ["text", "audio"]
        found["audio"] = given.get("audio") or {"voice": "alloy", "format": "wav"}
    if given.get("reasoning_effort") and (reasons or "gpt-oss" in known):
        found["reasoning_effort"] = given["reasoning_effort"]
    if given.get("reasoning") and reasons and not re.search(_GPT_5, known):
        found["reasoning"] = given["reasoning"]
    if given.get("verbosity") and re.search(_GPT_5, known):
        found["verbosity"] = given["verbosity"]
    found |= {name: given[name] for name in ("service_tier", "user", "metadata") if given.get(name)}
    if given.get("store") is not None:
        found["store"] = given["store"]
    if reasons:
        found.pop("max_tokens", None)
    return found


def responses(model: str, given: Values) -> dict[str, Any]:
    """The parameters of a request to the responses API."""
    reasons = re.search(_REASONS, model.replace("ft:", "")) is not None
    usual = None if reasons else _default(given, _TOKENS)
    tokens = given.get("max_output_tokens")
    for variable in (
        ("OPENAI_MAX_COMPLETION_TOKENS", "OPENAI_MAX_TOKENS") if reasons else ("OPENAI_MAX_TOKENS",)
    ):
        tokens = _number(variable) if tokens is None else tokens
    reasoning = _mapping(given.get("reasoning"))
    effort = (reasoning.get("effort") or given.get("reasoning_effort")) if reasons else None
    found: dict[str, Any] = {"max_output_tokens": usual if tokens is None else tokens}
    if reasons and (effort or reasoning):
        found["reasoning"] = {**({"effort": effort} if effort else {}), **reasoning}
    if not reasons:
        found["temperature"] = _given(given, "temperature", "OPENAI_TEMPERATURE", _default(given, 0))
    found["instructions"] = given.get("instructions") or None
    if not effort or effort == "none":
        found["top_p"] = _given(given, "top_p", "OPENAI_TOP_P")
    tools = given.get("tools")
    found["tools"] = [_flat(tool) for tool in tools] if isinstance(tools, list) else tools
    choice = given.get("tool_choice")
    name = _mapping(_mapping(choice).get("function")).get("name")
    found["tool_choice"] = {"type": "function", "name": name} if name else choice or None
    for key in (
        "max_tool_calls",
        "previous_response_id",
        "truncation",
        "metadata",
        "background",
        "webhook_url",
        "user",
    ):
        found[key] = given.get(key) or None
    found["text"] = _text_format(model, given)
    for key in ("include", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"):
        found[key] = given.get(key)
    for key in ("parallel_tool_calls", "store"):
        if key in given:
            found[key] = bool(given[key])
    found = {key: value for key, value in found.items() if value is not None}
    found |= _mapping(given.get("passthrough"))
    found.pop("max_tokens", None)
    return found


def messages(model: str, given: Values) -> dict[str, Any]:
    """The parameters of a request to Anthropic's messages API."""
    deprecated = re.search(_NO_SAMPLING, model) is not None
    thinking = _mapping(given.get("thinking")) or None
    if thinking is not None and deprecated and thinking.get("type") == "enabled":
        display = {"display": thinking["display"]} if thinking.get("display") else {}
        thinking = {"type": "adaptive", **display}
    thinks = thinking is not None and thinking.get("type") in ("enabled", "adaptive")
    thinks = thinks or (thinking is None and re.search(_ALWAYS_THINKS, model) is not None)
    found: dict[str, Any] = {
        "max_tokens": _given(
            given, "max_tokens", "ANTHROPIC_MAX_TOKENS", _THINKING_TOKENS if thinks else _TOKENS
        )
    }
    top_p = given.get("top_p")
    if top_p is None and not thinks and not deprecated:
        found["temperature"] = _given(given, "temperature", "ANTHROPIC_TEMPERATURE", 0)
    if isinstance(top_p, int | float) and not deprecated:
        found["top_p"] = max(0.95, min(1, top_p)) if thinks else top_p
    if not thinks and not deprecated:
        found["top_k"] = given.get("top_k")
    for key in ("cache_control", "service_tier", "stop_sequences", "metadata"):
        found[key] = given.get(key) or None
    found["tools"], choice = _tools(given, "anthropic")
    forced = isinstance(choice, dict) and choice.get("type") in ("any", "tool")
    if choice and not (forced and thinking is not None and thinking.get("type") == "enabled"):
        found["tool_choice"] = choice
    found["thinking"] = thinking
    if given.get("output_format") or given.get("effort"):
        form = {"format": given["output_format"]} if given.get("output_format") else {}
        found["output_config"] = {**form, **({"effort": given["effort"]} if given.get("effort") else {})}
    found = {key: value for key, value in found.items() if value is not None}
    return {**found, **_mapping(given.get("extra_body"))}


def betas(given: Values, header: str = "") -> str:
    """What Anthropic's `anthropic-beta` header must name for these settings, beside what it names already."""
    own = given.get("beta")
    names = [str(name) for name in own] if isinstance(own, list) else []
    strict = any(isinstance(tool, dict) and tool.get("strict") is True for tool in given.get("tools") or [])
    names += [_STRUCTURED] if strict else []
    names += [name.strip() for name in header.split(",") if name.strip()]
    names += [_STRUCTURED] if given.get("output_format") else []
    return ",".join(dict.fromkeys(names))


_SPEAKERS = ("system:", "user:", "assistant:")


def spoken(prompt: str, *, always: bool = False) -> list[dict[str, str]] | None:
    """The messages of a prompt for Anthropic that is written as a dialogue (`user: …` at the beginning of lines, what
    follows belongs to it); None where it is not. The last line that says `system:` counts. promptfoo reads each prompt
    so (`always`), and any other loses blank lines and the blanks around a line."""
    lines = [line.strip() for line in prompt.split("\n") if line.strip()]
    if not (always and lines) and not any(line.startswith(_SPEAKERS) for line in lines):
        return None
    system: list[dict[str, str]] = []
    found: list[dict[str, str]] = []
    for line in lines:
        role, _, rest = line.partition(":")
        if line.startswith("system:"):
            system = [{"role": "system", "content": rest.strip()}]
        elif line.startswith(_SPEAKERS):
            found.append({"role": role, "content": rest.strip()})
        elif found:
            found[-1]["content"] += f"\n{line}"
        else:
            found.append({"role": "user", "content": line})
    return [*system, *found]


def _given(given: Values, key: str, variable: str, default: Any = None) -> Any:
    """A setting, else the environment's, else the default."""
    if given.get(key) is not None:
        return given[key]
    found = _number(variable)
    return default if found is None else found


def _default(given: Values, value: Any) -> Any:
    return None if given.get("omitDefaults") else value


def _number(variable: str) -> int | float | None:
    text = os.environ.get(variable, "").strip()
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _flat(tool: Any) -> Any:
    """A tool of chat completions as the responses API has it."""
    if (
        not isinstance(tool, dict)
        or tool.get("type") != "function"
        or not isinstance(tool.get("function"), dict)
    ):
        return tool
    return {**{key: value for key, value in tool.items() if key != "function"}, **tool["function"]}


def _text_format(model: str, given: Values) -> dict[str, Any]:
    wanted = _mapping(given.get("response_format"))
    inner = _mapping(wanted.get("json_schema"))
    form: dict[str, Any] = {"type": "text"}
    if wanted.get("type") == "json_object":
        form = {"type": "json_object"}
    elif wanted.get("type") == "json_schema":
        form = {
            "type": "json_schema",
            "name": inner.get("name") or wanted.get("name") or "response_schema",
            "schema": wanted.get("schema") or inner.get("schema"),
            "strict": True,
        }
    verbosity = (
        {"verbosity": given["verbosity"]} if given.get("verbosity") and re.search(_GPT_5, model) else {}
    )
    return {"format": form, **verbosity}
