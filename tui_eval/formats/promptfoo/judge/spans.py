"""The spans that trace-* and trajectory:* look at, where they come from, and what their attributes say.

A trace that the agent exported comes first, then one in the reply's metadata (`metadata.trace`), then, save
under `compat: reference`, what the agent reported of its tool calls while it answered. Nothing known of the
agent is an error: promptfoo judges the empty trace, and each `not-` and each maximum passes by accident.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from msgspec import UNSET

from tui_eval.assertions.judge_input import CannotJudge, JudgeInput
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall
from tui_eval.javascript import values as js
from tui_eval.javascript.patterns import constant
from tui_eval.model import Entry, Trace, TraceSpan

TOOL_SPAN = "execute_tool"
"""How OpenTelemetry's conventions for generative AI begin the name of a tool's span."""
FROM_TRANSCRIPT = " (from the transcript: no trace)"
NO_TOOL_SPANS = " (from the transcript: the trace has no tool spans)"


@dataclass(slots=True)
class Source:
    """Spans in the order in which they arrived; `note` says, at the end of a reason, where they come from
    if that is not a trace."""

    spans: list[TraceSpan]
    command_tools: list[str] = field(default_factory=list)
    note: str = ""


def matches(pattern: str, name: str) -> bool:
    """Whether a whole name fits a pattern with `*` and `?`, upper and lower case alike."""
    return _expression(pattern)(name) is not None


@lru_cache(maxsize=512)
def _expression(pattern: str) -> Callable[[str], re.Match[str] | None]:
    # The library's expressions take no longer however many `*` there are; `[` has no meaning here.
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")), re.IGNORECASE).match


def trace_of(evidence: JudgeInput) -> Trace | None:
    """The trace: received, else of the reply's metadata, else the received one that reports nothing."""
    received = evidence.trace
    if received is not None and (evidence.reference or _by_agent(received)):
        return received
    reply = evidence.reply()
    given = (reply.metadata or {}).get("trace") if reply is not None else None
    if isinstance(given, dict) and isinstance(given.get("spans"), list):
        return _from_metadata(given)
    return received


def _whole(call: AssertionCall) -> Trace | None:
    """The same, for what is judged on its spans.

    Raises:
        CannotJudge: it lacks some, and any of these may be the one that is looked for.
    """
    trace = trace_of(call.evidence)
    if trace is not None and trace.cut == "spans" and not call.evidence.reference:
        raise CannotJudge(f"only a part of the trace is known: {trace.note}", "not-reported")
    return trace


def source_for_steps(call: AssertionCall) -> Source:
    """The spans that a trajectory is made of.

    Raises:
        CannotJudge: nothing is known of the steps that the agent took.
    """
    evidence, trace = call.evidence, _whole(call)
    reported = [] if evidence.reference else from_transcript(evidence.transcript)
    calls = any(entry.kind == "tool_call" for entry in evidence.transcript)
    if trace is not None and not (trace.problem and not evidence.reference):
        if calls and reported and not any(_is_tool(span) for span in trace.spans):
            return Source(reported, trace.command_tools, NO_TOOL_SPANS)
        return Source(trace.spans, trace.command_tools)
    # An agent that can report calls and reports none made none; where a trace was asked for and did not
    # come, that is too little to go by.
    if reported and (calls or (trace is None and _tells_of_calls(evidence))):
        return Source(reported, trace.command_tools if trace else [])
    raise CannotJudge(_nothing(call, trace), "not-reported")


def source_for_spans(call: AssertionCall, pattern: str) -> Source:
    """The spans whose names fit a pattern.

    Raises:
        CannotJudge: there is no trace, and neither our own span of the request nor a call that the agent
            reported fits.
    """
    evidence, trace = call.evidence, _whole(call)
    if trace is not None:
        found = [span for span in trace.spans if matches(pattern, span.name)]
        if found or evidence.reference or not trace.problem:
            return Source(found)
    if not evidence.reference:
        found = [span for span in from_transcript(evidence.transcript) if matches(pattern, span.name)]
        if any(entry.kind == "tool_call" for entry in evidence.transcript) and found:
            return Source(found, note=FROM_TRANSCRIPT)
    raise CannotJudge(_nothing(call, trace), "not-reported")


def from_transcript(entries: Sequence[Entry]) -> list[TraceSpan]:
    """What the agent reported, as spans named by OpenTelemetry's conventions for generative AI."""
    results = {entry.call_id: entry for entry in entries if entry.kind == "tool_result" and entry.call_id}
    spans: list[TraceSpan] = []
    for number, entry in enumerate(entries):
        attributes: dict[str, Any] = {}
        error = entry.error
        start = entry.started_at * 1000 if entry.started_at else None
        end = start + entry.duration_ms if start is not None and entry.duration_ms is not None else None
        if entry.kind == "tool_call":
            name = f"{TOOL_SPAN} {entry.name}"
            attributes["gen_ai.tool.name"] = entry.name
            if entry.arguments is not None:
                attributes["gen_ai.tool.call.arguments"] = entry.arguments
            result = results.get(entry.call_id) if entry.call_id else None
            if result is not None:
                error = error or result.error
                if end is None and start is not None and result.started_at:
                    end = result.started_at * 1000
        elif entry.kind in ("reasoning", "assistant"):
            name = "reasoning" if entry.kind == "reasoning" else "agent response"
        elif entry.kind == "hand_off":
            name = entry.name
        else:
            continue
        status = 2.0 if error else None
        spans.append(TraceSpan(str(number), name, None, start, end, attributes, status, error))
    return spans


def _from_metadata(given: dict[str, Any]) -> Trace:
    metadata = given.get("metadata")
    names = metadata.get("commandToolNames") if isinstance(metadata, dict) else None
    return Trace(
        trace_id=js.string(given.get("traceId") or ""),
        evaluation_id=js.string(given.get("evaluationId") or ""),
        test_case_id=js.string(given.get("testCaseId") or ""),
        spans=[_span_from(span) for span in given["spans"] if isinstance(span, dict)],
        command_tools=[name for name in names if isinstance(name, str)] if isinstance(names, list) else [],
    )


def _span_from(given: dict[str, Any]) -> TraceSpan:
    name, message, attributes = given.get("name"), given.get("statusMessage"), given.get("attributes")
    return TraceSpan(
        span_id=js.string(given.get("spanId") or ""),
        name=name if isinstance(name, str) else "",
        parent_id=js.string(given["parentSpanId"]) if given.get("parentSpanId") else None,
        start=_number(given.get("startTime")),
        end=_number(given.get("endTime")),
        attributes=attributes if isinstance(attributes, dict) else {},
        status=_number(given.get("statusCode")),
        message=message if isinstance(message, str) else None,
    )


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _by_agent(trace: Trace) -> bool:
    return any(not span.own for span in trace.spans)


def _tells_of_calls(evidence: JudgeInput) -> bool:
    """Whether no call reported means that none was made."""
    if not evidence.capabilities.calls_in_metadata:
        return evidence.capabilities.tools
    return any(isinstance((reply.metadata or {}).get("toolCalls"), list) for reply in evidence.replies)


def _is_tool(span: TraceSpan) -> bool:
    return tool_name(span) is not None


def _nothing(call: AssertionCall, trace: Trace | None) -> str:
    text = f"No trace data available for {call.kind} assertion"
    return f"{text}: {trace.problem}" if trace is not None and trace.problem else text


# -- What the attributes of a span say: the tool, its arguments, the command, the query. Rules as seen in promptfoo
# 0.121.20 (formats/promptfoo.md 14). Frameworks name these attributes each their own way; the names below are theirs.


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
