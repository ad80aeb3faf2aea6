"""Agents behind a JSON endpoint of somebody's own.

Without `body`, `{message, messages, session_id, metadata}` is posted. `reply`, `metadata`,
`tool_calls` and `usage` are dotted paths into the answer; without `reply`, the first of `reply`,
`answer`, `output`, `text`, `response` counts.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.command import turn_body
from tui_eval.agents.http_client import Call, HttpClient
from tui_eval.agents.json_reply import MISSING, Paths, at_path, read_reply
from tui_eval.agents.options import Options
from tui_eval.agents.provider_response import prompt_of, read_response
from tui_eval.agents.wire import decode, encode, one_line, text_of
from tui_eval.config import AgentSpec
from tui_eval.events import Event, Finished, TextDelta
from tui_eval.model import Reply

KNOWN = frozenset(
    {"url", "method", "headers", "body", "reply", "metadata", "tool_calls", "usage", "promptfoo", "config"}
)
_ONE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_PATH = re.compile(r"(?:json|data)(?:\.[A-Za-z_$][\w$]*|\[\d+\]|\?\.[A-Za-z_$][\w$]*)*")


class HttpAgent(Agent):
    """One endpoint. With `promptfoo: true`, `config` is a promptfoo HTTP provider's."""

    capabilities = Capabilities(tokens=True, tools=True, metadata=True, sly_data=True, structure=True)

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, KNOWN)
        self.url = options.required("url", "http://localhost:9000/chat")
        self.promptfoo = options.flag("promptfoo")
        self.config = options.mapping("config")
        source = self.config if self.promptfoo else spec.options
        method = source.get("method")
        self.method = str(method or ("GET" if self.promptfoo else "POST")).upper()
        self.headers = {str(name): str(value) for name, value in (source.get("headers") or {}).items()}
        self.body = source.get("body")
        self.paths = Paths(
            options.text("reply"), options.text("metadata"), options.text("tool_calls"), options.text("usage")
        )
        if self.paths.reply is not None:
            # A mapped answer reports what is mapped; the guide's metadata holds the counts too.
            told = self.paths.metadata is not None
            self.capabilities = Capabilities(
                tokens=told or self.paths.usage is not None,
                tools=told or self.paths.tool_calls is not None,
                metadata=told,
            )
        if self.promptfoo:
            self._unsupported()
        self.client = HttpClient(self.url, retries=spec.retries)
        self._javascript: Any = None

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation; its id goes out with each turn."""
        return HttpSession(self, context)

    async def transform(self, code: str, value: Any, text: str, call: Call) -> Any:
        """The result of a promptfoo `transformResponse`: a path, or JavaScript in its isolate.

        Raises:
            AgentError: it fails.
        """
        if _PATH.fullmatch(code):
            found = at_path({"json": value, "data": value}, code.replace("?.", "."))
            return {} if found is MISSING else found
        from tui_eval.scripting.javascript import UNDEFINED, JavaScriptError, JavaScriptHost

        if self._javascript is None:
            self._javascript = JavaScriptHost()
        response = {"status": call.status, "headers": dict(call.headers.items()), "body": text}
        try:
            given = {"json": value, "text": text, "context": {"response": response}}
            found = await self._javascript.evaluate(code, given)
        except JavaScriptError as error:
            raise AgentError(f"transformResponse: {one_line(str(error))}") from None
        return {} if found is UNDEFINED else found

    async def close(self) -> None:
        """Close connections and the isolate."""
        await self.client.close()
        if self._javascript is not None:
            await asyncio.to_thread(self._javascript.close)

    def _unsupported(self) -> None:
        known = {
            "url",
            "method",
            "headers",
            "body",
            "queryParams",
            "transformResponse",
            "responseParser",
            "maxRetries",
        }
        from tui_eval.config import ConfigError

        if unknown := sorted(set(self.config) - known):
            raise ConfigError(
                f"provider {self.spec.name}: config.{unknown[0]} is not supported; "
                "map the provider to an agent of type http in tui_eval.yaml"
            )


class HttpSession(Session):
    """What was said so far goes in with each turn."""

    def __init__(self, agent: HttpAgent, context: SessionContext) -> None:
        self.agent = agent
        self.context = context
        self.messages: list[dict[str, Any]] = []

    def restart(self) -> None:
        """Forget what was said."""
        self.messages = []

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """One request and its answer."""
        began = time.monotonic()
        agent = self.agent
        url, headers, body = self._request(request)
        call = agent.client.call(
            agent.method, url, body=body, headers=headers, turn=request.turn, any_status=agent.promptfoo
        )
        parts: list[str] = []
        streamed = False
        try:
            async for event in call.open():
                yield event
            if call.headers.get("content-type", "").startswith("text/plain") and agent.paths.reply is None:
                # Plain text can be shown as it comes; JSON only when it is whole.
                streamed = not agent.promptfoo
                decoder = codecs.getincrementaldecoder("utf-8")("replace")
                async for chunk in call.chunks():
                    piece = decoder.decode(chunk)
                    parts.append(piece)
                    if piece and streamed:
                        yield TextDelta(piece)
            else:
                parts.append((await call.read()).decode("utf-8", "replace"))
            yield call.exchanged()
            events, reply = await self._read("".join(parts), call, request.turn)
        except AgentError as error:
            if call.unreported and call.status is not None:
                yield call.exchanged("failed")
            error.answer = error.answer or "".join(parts)
            raise
        finally:
            await call.close()
        for event in events:
            if not (streamed and isinstance(event, TextDelta)):
                yield event
        reply.latency_ms = round((time.monotonic() - began) * 1000, 1)
        said = {"role": "user", "content": request.text}
        self.messages = [*self.messages, said, {"role": "assistant", "content": reply.text}]
        yield Finished(reply)

    async def _read(self, text: str, call: Call, turn: int) -> tuple[list[Event], Reply]:
        agent = self.agent
        value: Any = text
        with suppress(ValueError):
            value = decode(text) if text.strip() else text
        if not agent.promptfoo:
            try:
                return read_reply(value, turn, agent.paths)
            except AgentError as error:
                raise AgentError(f"{agent.url}: {error}") from None
        code = agent.config.get("transformResponse") or agent.config.get("responseParser")
        if code is not None:
            value = await agent.transform(str(code), value, text, call)
        metadata = {"http": {"status": call.status, "headers": dict(call.headers.items())}}
        if code is not None and isinstance(value, dict) and value.get("output"):
            events, reply = read_response(value, turn)
            reply.metadata = {**metadata, **(reply.metadata or {})}
            return events, reply
        reply = Reply(turn=turn, text=text_of(value), metadata=metadata, raw=text)
        if not isinstance(value, str):
            reply.output = value
        return ([TextDelta(reply.text)] if reply.text else []), reply

    def _request(self, request: Request) -> tuple[str, dict[str, str], bytes | None]:
        agent = self.agent
        standard = turn_body(request, self.context, self.messages)
        values = {
            **(request.vars or self.context.vars),
            "prompt": prompt_of(request),
            "message": standard["message"],
            "messages": standard["messages"],
            "session_id": self.context.session_id,
            "sessionId": self.context.session_id,
            "turn": request.turn,
            "model": self.context.model or agent.spec.model or "",
        }
        url = text_of(_filled(agent.url, values))
        query = agent.config.get("queryParams")
        if isinstance(query, dict):
            url += ("&" if "?" in url else "?") + urlencode(
                {key: text_of(_filled(item, values)) for key, item in query.items()}
            )
        headers = {name: text_of(_filled(item, values)) for name, item in agent.headers.items()}
        if agent.method in ("GET", "HEAD"):
            return url, headers, None
        body = standard if agent.body is None and not agent.promptfoo else _filled(agent.body, values)
        if isinstance(body, str):
            return url, headers, body.encode("utf-8", "replace")
        return url, headers, None if body is None else encode(body)


def _filled(value: Any, values: dict[str, Any]) -> Any:
    """The value with templates filled in, leaf by leaf; `{{messages}}` alone stays a list."""
    if isinstance(value, str):
        if "{{" not in value and "{%" not in value:
            return value
        if (match := _ONE.fullmatch(value)) and match[1] in values:
            return values[match[1]]
        from tui_eval.scripting.templates import TemplateError, render

        try:
            return render(value, values)
        except TemplateError as error:
            raise AgentError(f"the template {one_line(value, 80)}: {one_line(str(error))}") from None
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, values) for key, item in value.items()}
    return value
