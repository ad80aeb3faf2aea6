"""Replies of a nao backend: the whole of `/api/test/run`, and the stream of `/api/agent`."""

from __future__ import annotations

import re
from typing import Any

from tui_eval.agents import finish_reasons
from tui_eval.agents.base import AgentError
from tui_eval.agents.http_answers import explain
from tui_eval.agents.wire import decode, one_line, text_of
from tui_eval.events import (
    Event,
    Note,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallStarted,
    ToolResult,
    UsageReport,
)
from tui_eval.guard import figures
from tui_eval.model import Reply, Usage

NO_RESULT = "the tool failed (nao does not say why)"
_INSTEAD = re.compile(
    r"""\s*(?:Error:\s*)?(?:
        (?:(?:AI_)?[A-Z]\w*Error(?:\s\[\w+\])?:\s*)?Failed\ after\ \d+\ attempts?\b[^\n]*?\b(?:error|Error)\b |
        AI_\w+Error(?:\ \[\w+\])?:\s |
        No\ (?:output|object)\ generated(?::|\.) |
        The\ selected\ model\ could\ not\ be\ resolved\. |
        No\ project\ configured\b
    )""",
    re.VERBOSE,
)
"""What nao-core 0.3.29 and the library below it say where no model could answer: not the agent's words."""


def in_place_of_an_answer(text: str) -> bool:
    """Whether a reply is nao's own word for what went wrong: one paragraph that begins like it."""
    return _INSTEAD.match(text) is not None and "\n\n" not in text.strip()


def check(text: str, finish_reason: str | None) -> None:
    """Raises `AgentError` where a complete reply is no answer of the agent's."""
    if (why := finish_reasons.failure(finish_reason)) is not None:
        raise AgentError(f"nao {why}", answer=text)
    if in_place_of_an_answer(text):
        raise AgentError(f"nao answered with a failure: {one_line(text, 300)}")


def read_run(body: dict[str, Any], turn: int) -> tuple[list[Event], Reply]:
    """The events and the reply of `/api/test/run`. Keys may be absent instead of null.

    Raises:
        AgentError: it is no answer of nao, or its verification cannot be read. Nothing is left out
            of the rows, since what is left could then pass.
    """
    if "text" not in body and body.get("error"):
        raise AgentError(f"nao reported an error: {explain(text_of(body))}")
    if "text" not in body:
        raise AgentError("nao's answer has no text: is this a nao backend?")
    events: list[Event] = []
    for index, call in enumerate(_list(body.get("toolCalls"))):
        name = text_of(call.get("toolName"))
        call_id = text_of(call.get("toolCallId")) or f"{turn}.{index + 1}"
        events.append(ToolCall(call_id, name, call.get("args")))
        failed = "result" not in call
        events.append(ToolResult(call_id, name, call.get("result"), NO_RESULT if failed else None))
    reply = Reply(turn=turn, text=text_of(body.get("text")), raw=body)
    if reply.text:
        events.append(TextDelta(reply.text))
    usage = body.get("usage")
    if isinstance(usage, dict):
        reply.usage = Usage(
            figures.count(usage.get("inputTotalTokens"), "input tokens"),
            figures.count(usage.get("outputTotalTokens"), "output tokens"),
            figures.count(usage.get("inputCacheReadTokens"), "cached tokens"),
        )
    cost = body.get("cost")
    if isinstance(cost, dict):
        reply.cost = figures.amount(cost.get("totalCost"), "cost")
    if reply.usage is not None:
        events.append(UsageReport(reply.usage, reply.cost))
    if isinstance(body.get("finishReason"), str):
        reply.finish_reason = body["finishReason"]
    check(reply.text, reply.finish_reason)
    reply.latency_ms = figures.amount(body.get("durationMs"), "duration")
    if body.get("verification"):
        _verified(reply, body["verification"])
    acted = bool(body.get("toolCalls")) or reply.verified
    if why := finish_reasons.silence(reply.text, reply.finish_reason, called=acted):
        raise AgentError(f"nao {why}")
    return events, reply


def _verified(reply: Reply, verification: Any) -> None:
    if not isinstance(verification, dict):
        raise AgentError("nao's answer: verification is not an object", answer=reply.text)
    reply.verified = True
    for key in ("data", "expectedData"):
        rows = verification.get(key)
        if rows is None:
            continue
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise AgentError(f"nao's answer: verification.{key} is not a list of rows", answer=reply.text)
    reply.rows = verification.get("data")
    reply.rows_sql = verification.get("sql")
    error = verification.get("error")
    reply.rows_error = None if error is None else text_of(error)
    columns = verification.get("expectedColumns")
    reply.expected_rows = verification.get("expectedData")
    reply.rows_columns = [text_of(name) for name in columns] if isinstance(columns, list) else None


class Stream:
    """Takes the events of `/api/agent` (the AI SDK's UI message stream) one by one."""

    def __init__(self, turn: int) -> None:
        self.turn = turn
        self.chat_id: str | None = None
        self.finish_reason: str | None = None
        self._parts: list[str] = []
        self._names: dict[str, str] = {}
        self._acted = False
        self._ended = False

    @property
    def text(self) -> str:
        """The text of the last step that had any, so far."""
        return "".join(self._parts)

    def take(self, data: str) -> list[Event]:
        """One event of the stream.

        Raises:
            AgentError: it is not JSON, or says that the agent failed or was stopped.
        """
        if data == "[DONE]":
            self._ended = True
            return []
        try:
            value = decode(data)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise AgentError(f"nao sent something that is not JSON: {one_line(data[:200])}", answer=self.text)
        kind = text_of(value.get("type"))
        if kind == "text-delta":
            piece = text_of(value.get("delta"))
            self._parts.append(piece)
            return [TextDelta(piece)]
        if kind == "text-start" and self._parts:
            # As in /api/test/run, the answer is the last step's text.
            self._parts = []
        elif kind == "reasoning-delta":
            return [ReasoningDelta(text_of(value.get("delta")))]
        elif kind.startswith("tool-"):
            return self._tool(kind, value)
        elif kind == "data-newChat" and isinstance(value.get("data"), dict):
            self.chat_id = value["data"].get("id")
        elif kind == "finish":
            self.finish_reason, self._ended = text_of(value.get("finishReason")) or None, True
        elif kind == "error" or (not kind and value.get("error")):
            said = text_of(value.get("errorText")) or explain(text_of(value))
            raise AgentError(one_line(said), answer=self.text)
        elif kind == "abort":
            raise AgentError(f"stopped: {one_line(text_of(value.get('reason')))}", answer=self.text)
        elif kind == "data-compactionSummaryStarted":
            return [Note("the conversation is being shortened")]
        return []

    def end(self) -> None:
        """The body is over. Raises `AgentError` where the answer is not."""
        if not self._ended:
            raise AgentError("nao's answer ended before it was complete", answer=self.text)
        check(self.text, self.finish_reason)
        if self.finish_reason is None and not self._parts:
            raise AgentError("nao's answer ended without an answer: nothing was said, and nothing finished")
        if why := finish_reasons.silence(self.text, self.finish_reason, called=self._acted):
            raise AgentError(f"nao {why}")

    def reply(self) -> Reply:
        """What was answered."""
        return Reply(turn=self.turn, text=self.text, finish_reason=self.finish_reason)

    def _tool(self, kind: str, value: dict[str, Any]) -> list[Event]:
        call_id = text_of(value.get("toolCallId"))
        name = text_of(value.get("toolName")) or self._names.get(call_id, "")
        self._names[call_id] = name
        self._acted = True
        if kind == "tool-input-start":
            return [ToolCallStarted(call_id, name)]
        if kind == "tool-input-available":
            return [ToolCall(call_id, name, value.get("input"))]
        if kind == "tool-output-available":
            return [ToolResult(call_id, name, value.get("output"))]
        if kind in ("tool-output-error", "tool-input-error"):
            error = text_of(value.get("errorText")) or NO_RESULT
            events: list[Event] = (
                [] if kind == "tool-output-error" else [ToolCall(call_id, name, value.get("input"))]
            )
            return [*events, ToolResult(call_id, name, None, error)]
        if kind == "tool-output-denied":
            return [ToolResult(call_id, name, None, "the tool was not allowed")]
        return []


def _list(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
