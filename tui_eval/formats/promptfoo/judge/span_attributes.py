"""What the attributes of a span say: the tool, its arguments, the command, the query.

Rules as seen in promptfoo 0.121.20 (formats/promptfoo.md 14). Frameworks name these attributes each their
own way; the names below are theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from tui_eval.javascript import values as js
from tui_eval.javascript.patterns import constant
from tui_eval.model import TraceSpan

_ARGUMENTS = (".args", ".arguments", ".input", "_args", "_arguments", "_input")
_FAMILIES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("tool", ("tool.name", "tool_name", "tool"), _ARGUMENTS),
    ("function", ("function.name", "function_name"), _ARGUMENTS[:5]),
    ("ai.toolCall", ("ai.toolCall.name",), _ARGUMENTS[:3]),
    ("gen_ai.tool", ("gen_ai.tool.name",), (*_ARGUMENTS[:3], ".call.args", ".call.arguments")),
    ("agent.tool", ("agent.tool_name", "agent.tool", "agent.toolName"), _ARGUMENTS[:3]),
    ("codex.mcp", ("codex.mcp.tool",), _ARGUMENTS[:3]),
)
_NAME_KEYS = tuple(key for _, names, _ in _FAMILIES for key in names)
_ARGUMENT_KEYS = (
    *(f"{prefix}{suffix}" for prefix, _, suffixes in _FAMILIES for suffix in suffixes),
    *("args", "arguments", "input"),
)
_COMMAND_KEYS = ("codex.command", "command", "command.name", "command_name")
_SEARCH_KEYS = ("codex.search.query", "search.query", "search_query")

_ANY_NAME = constant(r"tool.?name|function.?name", "i")
_TOOL_PART = constant(r"(^|[._])tool($|[._])", "i")
_NOT_A_NAME = constant(r"result|output|definition", "i")
_ARGUMENT_PART = constant(r"(^|[._])(arguments|args|input)($|[._])", "i")
_NOT_ARGUMENTS = constant(r"result|output|error|status", "i")
_NOT_A_COMMAND = constant(r"output|result", "i")
_SEARCH_NAME = constant(r"(^|[\s._:/-])(search|find|lookup|retriev(?:e|al))($|[\s._:/-])", "i")
_SEARCH_PART = constant(r"(^|[._])(search|lookup|retriev(?:e|al))($|[._])", "i")


def tool_name(span: TraceSpan) -> str | None:
    """The tool that a span says was called."""
    attributes = span.attributes
    if direct := _first_text(attributes, _NAME_KEYS):
        return direct
    for key, value in attributes.items():
        text = js.trim(value) if isinstance(value, str) else ""
        if not text or _is_structure(text):
            continue
        if _ANY_NAME.search(key) or (_TOOL_PART.search(key) and not _NOT_A_NAME.search(key)):
            return text
    if span.name.startswith("mcp ") and "/" in span.name:
        return span.name.rpartition("/")[2].strip() or None
    return None


def arguments_of(span: TraceSpan) -> Any:
    """What a tool was called with, JSON text read; UNSET where the span does not say."""
    attributes = span.attributes
    for key in _ARGUMENT_KEYS:
        if (value := _structured(attributes.get(key))) is not UNSET:
            return value
    for key, given in attributes.items():
        if _ARGUMENT_PART.search(key) and not _NOT_ARGUMENTS.search(key):
            value = _structured(given)
            if value is not UNSET:
                return value
    return UNSET


def _structured(value: Any) -> Any:
    if isinstance(value, str):
        text = js.trim(value)
        if not text:
            return UNSET
        try:
            return js.parse_json(text)
        except (ValueError, RecursionError):
            return text
    return UNSET if value is None else value


def command_of(span: TraceSpan, runs_commands: bool) -> str | None:
    """The command that a span says was run; `runs_commands`: its tool is one that runs them."""
    attributes = span.attributes
    if direct := _first_text(attributes, _COMMAND_KEYS):
        return direct
    for key, value in attributes.items():
        if "command" in key.lower() and not _NOT_A_COMMAND.search(key):
            text = js.trim(value) if isinstance(value, str) else ""
            if text:
                return text
    given = arguments_of(span) if runs_commands else None
    if isinstance(given, dict):
        for key, between in (("cmd", " "), ("command", " "), ("commands", "; ")):
            if key in given:
                if said := _joined(given[key], between):
                    return said
                break
    if span.name.startswith("exec "):
        return js.trim(span.name[5:]) or None
    return None


def _joined(value: Any, between: str) -> str | None:
    if isinstance(value, str):
        return js.trim(value) or None
    if isinstance(value, list):
        return between.join(filter(None, (js.trim(js.string(part)) for part in value))) or None
    return None


def query_of(span: TraceSpan) -> str | None:
    """What a span says was searched for."""
    attributes = span.attributes
    if direct := _first_text(attributes, _SEARCH_KEYS):
        return direct
    said = _first_text(attributes, ("query",))
    if said and (
        _SEARCH_NAME.search(span.name)
        or any(key != "query" and _SEARCH_PART.search(key) for key in attributes)
    ):
        return said
    if span.name.startswith("search "):
        return js.trim(span.name[7:].removeprefix('"').removesuffix('"')) or None
    return None


def _first_text(attributes: dict[str, Any], keys: Sequence[str]) -> str | None:
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and js.trim(value):
            return js.trim(value)
    return None


def _is_structure(text: str) -> bool:
    if text[0] not in "[{":
        return False
    try:
        return isinstance(js.parse_json(text), dict | list)
    except (ValueError, RecursionError):
        return False
