"""Replies of endpoints and programs of somebody's own: JSON or text, read by dotted paths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tui_eval.agents.base import AgentError
from tui_eval.agents.loose_json import one_line, text_of
from tui_eval.events import Event, TextDelta, ToolCall, ToolResult
from tui_eval.guard import figures
from tui_eval.model import Reply, Usage

TEXT_KEYS = ("reply", "answer", "output", "text", "response")
FACTS = (
    "escalated",
    "escalation_priority",
    "tools_used",
    "tool_call_count",
    "input_tokens",
    "output_tokens",
)
"""Facts about a reply that are taken where they stand beside it, not within a `metadata`: what an agent says of itself
must not count as "not reported"."""
_STEP = re.compile(r"[^.\[\]]+")
_INPUT = ("input_tokens", "prompt_tokens", "prompt", "input", "promptTokens", "inputTokens")
_OUTPUT = ("output_tokens", "completion_tokens", "completion", "output", "completionTokens", "outputTokens")
_CACHED = ("cached_tokens", "cached", "cache_read_input_tokens", "cachedTokens")
MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Paths:
    """Where the parts of a reply are; None: under the usual names."""

    reply: str | None = None
    metadata: str | None = None
    tool_calls: str | None = None
    usage: str | None = None


def at_path(value: Any, path: str) -> Any:
    """What lies at `json.a.b[0]` (the leading `json` may be left out), or `MISSING`."""
    steps = _STEP.findall(path)
    if steps and steps[0] in ("json", "$") and not (isinstance(value, dict) and steps[0] in value):
        steps = steps[1:]
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.lstrip("-").isdigit() and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value


def read_reply(value: Any, turn: int, paths: Paths) -> tuple[list[Event], Reply]:
    """The events and the reply that a JSON value (or plain text) means.

    Raises:
        AgentError: the reply is not where it should be, or the value says an error; with the reply beside it.
    """
    if isinstance(value, str) and paths.reply is None:
        return _events(value), Reply(turn=turn, text=value)
    found = at_path(value, paths.reply) if paths.reply else _usual(value)
    if isinstance(value, dict) and value.get("error") and not _asks_for_errors(paths.reply):
        answer = "" if found is MISSING or found is None else text_of(found)
        raise AgentError(one_line(text_of(_message(value["error"]))), answer=answer, code="reported")
    if found is None:
        raise AgentError(
            f"the answer is null{f' at {paths.reply}' if paths.reply else ''}",
            code="no-field",
            said="null",
            place=paths.reply or "",
        )
    if found is MISSING:
        where = paths.reply or f"any of {', '.join(TEXT_KEYS)}"
        raise AgentError(
            f"the answer has no {where}: {one_line(text_of(value), 200)}",
            code="no-field",
            said=one_line(text_of(value), 200),
            place=paths.reply or "a reply",
        )
    reply = Reply(turn=turn, text=text_of(found), raw=value)
    if not isinstance(found, str):
        reply.output = found
    metadata = _part(value, paths.metadata, "metadata")
    if paths == Paths() and isinstance(value, dict) and (beside := _beside(value)):
        metadata = beside | (metadata if isinstance(metadata, dict) else {})
    if isinstance(metadata, dict):
        reply.metadata = metadata
    usage = _part(value, paths.usage, "usage")
    reply.usage = usage_from(usage) if isinstance(usage, dict) else usage_from(reply.metadata or {})
    if isinstance(value, dict):
        for key in ("structure", "sly_data"):
            if isinstance(value.get(key), dict):
                setattr(reply, key, value[key])
        reply.cost = figures.amount(value.get("cost"), "cost")
        if isinstance(value.get("model"), str):
            reply.model = value["model"]
    calls = tool_events(_part(value, paths.tool_calls, "tool_calls"), turn)
    return [*calls, *_events(reply.text)], reply


def _asks_for_errors(path: str | None) -> bool:
    """Whether the reply is what stands under `error` itself."""
    steps = _STEP.findall(path or "")
    return "error" in steps[:1] or (steps[:1] in (["json"], ["$"]) and "error" in steps[1:2])


def tool_events(calls: Any, turn: int) -> list[Event]:
    """Tool calls as a reply lists them: names, or mappings with a name and perhaps more (chat
    completions' `{id, function: {name, arguments}}` too)."""
    events: list[Event] = []
    for index, call in enumerate(calls if isinstance(calls, list) else []):
        call_id = f"{turn}.{index + 1}"
        if isinstance(call, str):
            events.append(ToolCall(call_id, call))
            continue
        if not isinstance(call, dict):
            continue
        inner = call["function"] if isinstance(call.get("function"), dict) else call
        name = text_of(inner.get("name") or inner.get("tool") or inner.get("toolName"))
        call_id = text_of(call.get("id") or call.get("call_id") or call.get("toolCallId")) or call_id
        arguments = next((inner[key] for key in ("arguments", "args", "input") if key in inner), None)
        events.append(ToolCall(call_id, name, arguments))
        if "result" in call or "output" in call or call.get("error") is not None:
            error = call.get("error")
            result = call.get("result", call.get("output"))
            events.append(ToolResult(call_id, name, result, None if error is None else text_of(error)))
    return events


def usage_from(value: dict[str, Any]) -> Usage | None:
    """Token counts under the names that they usually have; None where there are none."""
    usage = Usage(
        _count(value, _INPUT, "input tokens"),
        _count(value, _OUTPUT, "output tokens"),
        _count(value, _CACHED, "cached tokens"),
    )
    return None if usage.input_tokens is None and usage.output_tokens is None else usage


def _count(value: dict[str, Any], names: tuple[str, ...], shown: str) -> int | None:
    for name in names:
        found = value.get(name)
        # `output` and its like may just as well be a text or an object: only what looks like a figure is one.
        figure = isinstance(found, int | float) and not isinstance(found, bool)
        if figure or (found is not None and name.lower().endswith("tokens")):
            return figures.count(found, shown)
    return None


def _beside(value: dict[str, Any]) -> dict[str, Any]:
    return {name: value[name] for name in FACTS if name in value}


def _usual(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return next((value[key] for key in TEXT_KEYS if value.get(key) is not None), MISSING)


def _part(value: Any, path: str | None, usual: str) -> Any:
    found = at_path(value, path or usual)
    return None if found is MISSING else found


def _message(error: Any) -> Any:
    return error.get("message", error) if isinstance(error, dict) else error


def _events(text: str) -> list[Event]:
    return [TextDelta(text)] if text else []
