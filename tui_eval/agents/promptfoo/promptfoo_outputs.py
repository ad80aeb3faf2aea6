"""What promptfoo 0.121.20 takes for the output of a model's answer: thoughts and tool calls stand in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from tui_eval.agents.loose_json import decode, text_of

FILTERED = "Content filtered by provider"
_REASONS = {
    "function_call": "tool_calls",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def finish_reason(reason: str | None) -> str | None:
    """Why an answer ended, in OpenAI's words; others stay, in lower case."""
    plain = (reason or "").strip().lower()
    return _REASONS.get(plain, plain) or None


def with_thoughts(text: str, thoughts: str, settings: Mapping[str, Any]) -> str:
    """The text of a chat completion with what the model thought before it, unless `showThinking` is false."""
    if not thoughts or settings.get("showThinking") is False:
        return text
    return f"Thinking: {thoughts}\n\n{text}"


def structured(text: str, format_: Any) -> Any:
    """The value of a text that was asked for by a JSON schema; None where it is none, or none was asked for."""
    if isinstance(format_, dict) and format_.get("type") == "json_schema":
        with suppress(ValueError):
            return decode(text)
    return None


def of_blocks(blocks: Iterable[Mapping[str, Any]], settings: Mapping[str, Any]) -> str:
    """Anthropic's blocks as one text: thoughts with their signature, tool calls as JSON."""
    shows = settings.get("showThinking") is not False
    parts: list[str] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            parts.append(text_of(block.get("text")))
        elif kind == "thinking":
            thought = text_of(block.get("thinking"))
            parts.append(
                f"Thinking: {thought}\nSignature: {block.get('signature')}"
                if shows and thought.strip()
                else ""
            )
        elif kind == "redacted_thinking":
            parts.append(f"Redacted Thinking: {text_of(block.get('data'))}" if shows else "")
        else:
            parts.append(text_of(dict(block)))
    return "\n\n".join(part for part in parts if part)


def of_item(item: Mapping[str, Any]) -> str:
    """What an item of a responses API's output says."""
    kind, name = item.get("type"), item.get("name")
    if kind == "message":
        return _message(item) if item.get("role", "assistant") == "assistant" else ""
    if kind in ("function_call", "tool_result"):
        return text_of(dict(item))
    if kind == "reasoning":
        said = summary_of(item)
        return f"Reasoning: {said}" if said else ""
    if kind == "mcp_call":
        if item.get("error"):
            return f"MCP Tool Error ({name}): {text_of(item['error'])}"
        return f"MCP Tool Result ({name}): {text_of(item.get('output'))}"
    if kind == "web_search_call":
        return _failed(item, _search(item))
    if kind == "code_interpreter_call":
        return _failed(item, f"Code Interpreter: {item.get('code') or 'Running code...'}")
    return ""


def summary_of(item: Mapping[str, Any]) -> str:
    """The summary of an item that is a thought."""
    summary = item.get("summary")
    parts = summary if isinstance(summary, list) else []
    return "\n".join(text_of(part.get("text")) for part in parts if isinstance(part, dict))


def refusal_of(item: Mapping[str, Any]) -> str | None:
    """How a message refuses; None where it does not."""
    contents = item.get("content") if item.get("type") == "message" else None
    for content in contents if isinstance(contents, list) else []:
        if isinstance(content, dict) and content.get("type") == "refusal":
            return text_of(content.get("refusal"))
    return None


def spoken_in(item: Mapping[str, Any]) -> str:
    """All that a message says: its text, and how it refuses, which for promptfoo takes the place of the text."""
    return "\n".join(filter(None, (_texts(item), refusal_of(item))))


def _message(item: Mapping[str, Any]) -> str:
    return refusal_of(item) or _texts(item)


def _texts(item: Mapping[str, Any]) -> str:
    contents = item.get("content")
    parts = contents if isinstance(contents, list) else []
    return "".join(text_of(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))


def _search(item: Mapping[str, Any]) -> str:
    action = item.get("action")
    if not isinstance(action, dict):
        return f"Web Search Call (status: {item.get('status') or 'unknown'})"
    kind = action.get("type")
    if kind == "search":
        return f'Web Search: "{action.get("query")}"'
    if kind == "open_page":
        return f"Opening page: {action.get('url')}"
    if kind == "find_in_page":
        return f'Finding in page: "{action.get("query")}"'
    return f"Web action: {kind or 'undefined'}"


def _failed(item: Mapping[str, Any], text: str) -> str:
    failed = item.get("status") == "failed" and item.get("error")
    return f"{text} (Error: {text_of(item['error'])})" if failed else text
