"""Agents of a nao backend: `/api/test/run` in one piece, or `/api/agent` as it happens (`live`).

`/api/test/run` also verifies the answer's data; the live endpoint does not, nor does it report tokens
or cost (formats/nao.md 4 and 5).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Any

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options, below
from tui_eval.agents.http.error_answers import explain, fact_first
from tui_eval.agents.http.http_call import HttpCall, HttpClient
from tui_eval.agents.loose_json import decode, encode, one_line, text_of
from tui_eval.agents.models import finish_reasons
from tui_eval.agents.nao.nao_auth import Credentials
from tui_eval.causes import wrong_query
from tui_eval.config.nao_config import DEFAULT_MODEL, price_of
from tui_eval.config.project import NAO_URL, AgentSpec
from tui_eval.events import (
    Event,
    Finished,
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

# -- Replies of a nao backend: the whole of `/api/test/run`, and the stream of `/api/agent`.


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


_END_A_TURN = frozenset(("clarification", "request_warehouse_selection"))
"""Tools after whose call nao 0.3.29 asks its model nothing more: the person is to answer."""


def _silence(text: str, reason: str | None, tools: Iterable[str], *, verified: bool = False) -> str | None:
    """Why an answer without text is none. The text is the last step's alone, and nao itself ends a turn after
    some calls (`tool-calls`): that of a question to the person is an end, and so is any where the rows are there."""
    called = [*tools]
    ended = verified or not _END_A_TURN.isdisjoint(called)
    if ended and not finish_reasons.cut_off(reason):
        return None
    return finish_reasons.silence(text, reason, called=bool(called) or verified)


def check(text: str, finish_reason: str | None) -> None:
    """Raises `AgentError` where a complete reply is no answer of the agent's."""
    if (why := finish_reasons.failure(finish_reason)) is not None:
        raise finish_reasons.error("nao", why, finish_reason, text)
    if in_place_of_an_answer(text):
        raise AgentError(
            f"nao answered with a failure: {one_line(text, 300)}", code="reported", said=fact_first(text)
        )


def read_run(body: dict[str, Any], turn: int) -> tuple[list[Event], Reply]:
    """The events and the reply of `/api/test/run`. Keys may be absent instead of null.

    Raises:
        AgentError: it is no answer of nao, or its verification cannot be read. Nothing is left out
            of the rows, since what is left could then pass.
    """
    if body.get("error"):
        said = explain(text_of({"error": body["error"]}))
        raise AgentError(
            f"nao reported an error: {said}",
            answer=text_of(body.get("text")),
            code="reported",
            said=fact_first(explain(text_of(body))),
        )
    if "text" not in body:
        raise AgentError(
            "nao's answer has no text: is this a nao backend?",
            code="no-field",
            said="is this a nao backend?",
            place="text",
        )
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
    tools = [event.name for event in events if isinstance(event, ToolCall)]
    if why := _silence(reply.text, reply.finish_reason, tools, verified=reply.verified):
        raise AgentError(f"nao {why}", code="empty-answer", said=why)
    return events, reply


def _verified(reply: Reply, verification: Any) -> None:
    if not isinstance(verification, dict):
        raise AgentError(
            "nao's answer: verification is not an object",
            answer=reply.text,
            code="unreadable",
            said="verification is not an object",
        )
    reply.verified = True
    for key in ("data", "expectedData"):
        rows = verification.get(key)
        if rows is None:
            continue
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise AgentError(
                f"nao's answer: verification.{key} is not a list of rows",
                answer=reply.text,
                code="unreadable",
                said=f"verification.{key} is not a list of rows",
            )
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
        self.ended = False
        self._steps = False
        """Whether it tells where a step begins."""
        self._begins = True
        """Whether the next text is the first one of its step."""

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
            self.ended = True
            return []
        try:
            value = decode(data)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise AgentError(
                f"nao sent something that is not JSON: {one_line(data, 200)}",
                answer=self.text,
                code="unreadable",
                said=f"no JSON: {one_line(data, 200)}",
            )
        kind = text_of(value.get("type"))
        if kind == "text-delta":
            piece = text_of(value.get("delta"))
            self._parts.append(piece)
            return [TextDelta(piece)]
        if kind == "start-step":
            self._steps = self._begins = True
        elif kind == "text-start":
            # As in /api/test/run, the answer is all text of the last step.
            if self._begins or not self._steps:
                self._parts = []
            self._begins = False
        elif kind == "reasoning-delta":
            return [ReasoningDelta(text_of(value.get("delta")))]
        elif kind.startswith("tool-"):
            return self._tool(kind, value)
        elif kind == "data-newChat" and isinstance(value.get("data"), dict):
            self.chat_id = value["data"].get("id")
        elif kind == "finish":
            self.finish_reason, self.ended = text_of(value.get("finishReason")) or None, True
        elif kind == "error" or (not kind and value.get("error")):
            said = text_of(value.get("errorText")) or explain(text_of(value))
            raise AgentError(one_line(said), answer=self.text, code="reported", said=fact_first(said))
        elif kind == "abort":
            raise AgentError(
                f"stopped: {one_line(text_of(value.get('reason')))}",
                answer=self.text,
                code="broke-off",
                said=f"stopped: {one_line(text_of(value.get('reason')))}",
            )
        elif kind == "data-compactionSummaryStarted":
            return [Note("the conversation is being shortened")]
        return []

    def end(self) -> None:
        """The body is over. Raises `AgentError` where the answer is not."""
        if not self.ended:
            raise AgentError(
                "nao's answer ended before it was complete",
                answer=self.text,
                code="broke-off",
                said="ended before it was complete",
            )
        check(self.text, self.finish_reason)
        if self.finish_reason is None and not self._parts:
            raise AgentError(
                "nao's answer ended without an answer: nothing was said, and nothing finished",
                code="empty-answer",
                said="nothing was said, and nothing finished",
            )
        if why := _silence(self.text, self.finish_reason, self._names.values()):
            raise AgentError(f"nao {why}", code="empty-answer", said=why)

    def reply(self) -> Reply:
        """What was answered."""
        return Reply(turn=self.turn, text=self.text, finish_reason=self.finish_reason)

    def _tool(self, kind: str, value: dict[str, Any]) -> list[Event]:
        call_id = text_of(value.get("toolCallId"))
        name = text_of(value.get("toolName")) or self._names.get(call_id, "")
        self._names[call_id] = name
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


EARLIER = 20_000
"""Characters of each earlier message that a follow-up turn repeats."""


class NaoAgent(Agent):
    """One backend and who signs in to it."""

    capabilities = Capabilities(tokens=True, tools=True, guardrails=False)
    keeps_pace = True

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        known = frozenset({"url", "email", "username", "password", "token", "headers", "model"})
        options = Options(spec, services, known)
        self.url = (options.text("url") or NAO_URL).rstrip("/")
        self.model = spec.model or options.text("model") or DEFAULT_MODEL
        self.credentials = Credentials(options, self.url)
        # A run that broke off in the middle was paid for: it is not sent again.
        self.client = HttpClient(
            headers=options.headers(),
            retries=spec.retries,
            retry_status=frozenset({429, 503}),
            retry_lost=False,
            pace=self.pace,
        )

    @classmethod
    def reported(cls, spec: AgentSpec) -> Capabilities:
        return Capabilities(tokens=not spec.live, tools=True, guardrails=False)

    async def prepare(self, tell: Callable[[str], None] | None) -> None:
        """Sign in, in a browser where there is nothing else to sign in with."""
        await self.credentials.prepare(self.client, tell)

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation with a model `provider:model_id`."""
        provider, _, model_id = (context.model or self.model).partition(":")
        if not model_id:
            raise AgentError(
                f"model {context.model or self.model}: must be provider:model_id, like {DEFAULT_MODEL}",
                code="bad-setting",
            )
        return NaoSession(self, {"provider": provider, "modelId": model_id})

    async def close(self) -> None:
        """Close all connections."""
        await self.client.close()


_REFUSED = re.compile(
    r"HTTP 500 from \S+: (?:Warehouse SQL request denied: (?P<denied>.*)|(?P<writes>Write SQL operations are disabled.*))"
)
"""What nao's server says of a test's own `sql`: the agent's queries fail in its tools (formats/nao.md section 4)."""


class NaoSession(Session):
    """A chat (live), or the questions so far, which a follow-up repeats."""

    def __init__(self, agent: NaoAgent, model: dict[str, str]) -> None:
        self.agent = agent
        self.model = model
        self.earlier: list[str] = []
        self.chat_id: str | None = None

    def restart(self) -> None:
        """Forget what was said."""
        self.earlier = []
        self.chat_id = None

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """One question."""
        began = time.monotonic()
        agent, live = self.agent, self.agent.spec.live
        url = below(agent.url, "api/agent" if live else "api/test/run")
        body = encode(self._live_body(request) if live else self._body(request))
        stream, reply = Stream(request.turn), Reply(turn=request.turn)
        for again in (False, True):
            headers = await agent.credentials.current(agent.client)
            generation = agent.credentials.generation
            call = agent.client.call("POST", url, body=body, headers=headers, turn=request.turn)
            try:
                async for event in call.open():
                    yield event
                if live:
                    async for event in self._follow(call, stream):
                        yield event
                    reply = stream.reply()
                else:
                    events, reply = read_run(self._decoded(await call.read()), request.turn)
                    for event in events:
                        yield event
            except AgentError as error:
                if call.unreported:
                    yield call.exchanged("failed")
                error.answer = error.answer or stream.text or call.heard
                if request.sql and (refused := _REFUSED.search(str(error))) is not None:
                    said = refused["denied"] or refused["writes"]
                    raise AgentError(
                        wrong_query(said, request.sql_place),
                        status=error.status,
                        answer=error.answer,
                        code="query-failed",
                        said=said,
                    ) from None
                if error.status != 401:
                    raise
                if again:
                    raise AgentError(
                        "Unauthorized. Please check your credentials.",
                        status=401,
                        said="check your credentials",
                    ) from None
            except (asyncio.CancelledError, GeneratorExit) as left:
                if stream.chat_id:
                    await self._stop(stream.chat_id)
                if call.unreported and isinstance(left, asyncio.CancelledError):
                    yield call.exchanged()
                raise
            else:
                yield call.exchanged()
                break
            finally:
                await call.close()
            await agent.credentials.renew(agent.client, generation)
        self.chat_id = stream.chat_id or self.chat_id
        self.earlier += [f"User: {request.text}", f"Assistant: {reply.text}"]
        reply.model = f"{self.model['provider']}:{self.model['modelId']}"
        if reply.latency_ms is None:
            reply.latency_ms = round((time.monotonic() - began) * 1000, 1)
        yield Finished(reply)

    async def _follow(self, call: HttpCall, stream: Stream) -> AsyncIterator[Event]:
        async for data in call.events():
            found = stream.take(data)
            call.ended = stream.ended
            for event in found:
                yield event
        stream.end()

    async def _stop(self, chat_id: str) -> None:
        """The backend does not notice that a client left, and goes on paying; so it is notified."""
        body = encode({"json": {"chatId": chat_id}})
        agent = self.agent
        call = agent.client.call(
            "POST",
            below(agent.url, "api/trpc/chat.stop"),
            body=body,
            headers=agent.credentials.headers,
            any_status=True,
        )
        with suppress(AgentError, TimeoutError):
            async with asyncio.timeout(2):
                async for _ in call.open():
                    pass
        await call.close()

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {"prompt": self._prompt(request), "model": self.model}
        if request.sql and self.agent.spec.extraction != "guide":
            body["sql"] = request.sql
        if request.database:
            body["databaseId"] = request.database
        costs = price_of(self.agent.services.nao_costs, self.model["provider"], self.model["modelId"])
        if costs:
            body["meta"] = {"costs": costs}
        return body

    def _live_body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {"message": {"text": request.text or ""}, "model": self.model}
        if self.chat_id:
            body["chatId"] = self.chat_id
        return body

    def _prompt(self, request: Request) -> str:
        """The endpoint knows no conversations: what was said before is sent with the question."""
        text = request.text or text_of(request.messages)
        if not self.earlier:
            return text
        said = "\n\n".join(part[:EARLIER] for part in self.earlier)
        return f"The conversation so far:\n\n{said}\n\nUser: {text}"

    def _decoded(self, body: bytes) -> dict[str, Any]:
        try:
            value = decode(body)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            said = one_line(body[:1000].decode("utf-8", "replace"), 200)
            raise AgentError(
                f"{self.agent.url} answered something that is not nao's: {said}",
                code="unreadable",
                said=f"not nao's: {said}",
            )
        return value
