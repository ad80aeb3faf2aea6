"""An agent's steps: what kind each span of a trace is, and what it was called with.

Rules as seen in promptfoo 0.121.20 (formats/promptfoo.md 14). Frameworks name these attributes each their
own way; the names below are theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from msgspec import UNSET

from tui_eval.assertions.promptfoo import js
from tui_eval.assertions.promptfoo.call import Call
from tui_eval.assertions.promptfoo.spans import matches, source_for_steps
from tui_eval.model import TraceSpan

Kind = Literal["tool", "command", "search", "reasoning", "message", "span"]
KINDS: tuple[Kind, ...] = ("tool", "command", "search", "reasoning", "message", "span")

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
_COMMAND_TOOLS = frozenset(("exec_command", "local_shell", "shell"))

_ANY_NAME = re.compile(r"tool.?name|function.?name", re.IGNORECASE)
_TOOL_PART = re.compile(r"(^|[._])tool($|[._])", re.IGNORECASE)
_NOT_A_NAME = re.compile(r"result|output|definition", re.IGNORECASE)
_ARGUMENT_PART = re.compile(r"(^|[._])(arguments|args|input)($|[._])", re.IGNORECASE)
_NOT_ARGUMENTS = re.compile(r"result|output|error|status", re.IGNORECASE)
_NOT_A_COMMAND = re.compile(r"output|result", re.IGNORECASE)
_SEARCH_NAME = re.compile(r"(^|[\s._:/-])(search|find|lookup|retriev(?:e|al))($|[\s._:/-])", re.IGNORECASE)
_SEARCH_PART = re.compile(r"(^|[._])(search|lookup|retriev(?:e|al))($|[._])", re.IGNORECASE)
_REASONING = re.compile(r"reasoning([_\s]|$)", re.IGNORECASE)


@dataclass(slots=True)
class Step:
    """One step. `names` are all that a pattern may fit; `arguments` is UNSET where none were told."""

    kind: Kind
    name: str
    names: tuple[str, ...]
    arguments: Any = UNSET

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    def fits(self, pattern: str) -> bool:
        """Whether one of its names fits a pattern."""
        return any(matches(pattern, name) for name in self.names)


@dataclass(slots=True)
class Steps:
    """All steps in the order of time; `note` ends the reason where they do not come from a trace."""

    all: list[Step]
    note: str = ""

    def of(self, kinds: Iterable[str]) -> list[Step]:
        """The steps of some kinds."""
        wanted = frozenset(kinds)
        return [step for step in self.all if step.kind in wanted]


def steps_of(call: Call) -> Steps:
    """The steps that the agent took.

    Raises:
        CannotJudge: nothing is known of them.
    """
    source = source_for_steps(call)
    tools = _COMMAND_TOOLS | {name.strip().lower() for name in source.command_tools if name.strip()}
    ordered = sorted(source.spans, key=_when) if all(_timed(span) for span in source.spans) else source.spans
    return Steps([_step(span, tools) for span in ordered], source.note)


def _timed(span: TraceSpan) -> bool:
    return span.start is not None


def _when(span: TraceSpan) -> tuple[float, float]:
    start = cast(float, span.start)
    return start, start if span.end is None else span.end


def _step(span: TraceSpan, command_tools: frozenset[str]) -> Step:
    tool = tool_name(span)
    runs_commands = tool is not None and tool.lower() in command_tools
    command = _command(span, runs_commands)
    if command and (runs_commands or tool is None):
        names = [span.name, command, *([tool] if tool else []), command.split()[0]]
        return Step("command", command, tuple(names), arguments_of(span) if runs_commands else UNSET)
    if tool is not None:
        return Step("tool", tool, (span.name, tool), arguments_of(span))
    if query := _query(span):
        return Step("search", query, (span.name, query))
    kind = span.attributes.get("codex.item.type")
    if kind == "reasoning" or _REASONING.match(span.name):
        return Step("reasoning", span.name, (span.name, "reasoning"))
    if kind == "agent_message" or span.name in ("agent response", "send input"):
        return Step("message", span.name, (span.name, "message"))
    return Step("span", span.name, (span.name,))


def tool_name(span: TraceSpan) -> str | None:
    """The tool that a span says was called."""
    attributes = span.attributes
    if direct := _first_text(attributes, _NAME_KEYS):
        return direct
    for key, value in attributes.items():
        text = value.strip() if isinstance(value, str) else ""
        if not text or _is_structure(text):
            continue
        if _ANY_NAME.search(key) or (_TOOL_PART.search(key) and not _NOT_A_NAME.search(key)):
            return text
    if span.name.startswith("mcp ") and "/" in span.name:
        return span.name.rpartition("/")[2].strip() or None
    return None


def arguments_of(span: TraceSpan) -> Any:
    """What a tool was called with, JSON text read; UNSET where the span does not tell."""
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
        text = value.strip()
        if not text:
            return UNSET
        try:
            return js.parse_json(text)
        except (ValueError, RecursionError):
            return text
    return UNSET if value is None else value


def _command(span: TraceSpan, runs_commands: bool) -> str | None:
    attributes = span.attributes
    if direct := _first_text(attributes, _COMMAND_KEYS):
        return direct
    for key, value in attributes.items():
        if "command" in key.lower() and not _NOT_A_COMMAND.search(key):
            text = value.strip() if isinstance(value, str) else ""
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
        return span.name[5:].strip() or None
    return None


def _joined(value: Any, between: str) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, list):
        return between.join(filter(None, (js.string(part).strip() for part in value))) or None
    return None


def _query(span: TraceSpan) -> str | None:
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
        return span.name[7:].removeprefix('"').removesuffix('"').strip() or None
    return None


def _first_text(attributes: dict[str, Any], keys: Sequence[str]) -> str | None:
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return None


def _is_structure(text: str) -> bool:
    if text[0] not in "[{":
        return False
    try:
        return isinstance(js.parse_json(text), dict | list)
    except (ValueError, RecursionError):
        return False
