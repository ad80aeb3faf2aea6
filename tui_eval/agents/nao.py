"""Agents of a nao backend: `/api/test/run` in one piece, or `/api/agent` as it happens (`live`).

`/api/test/run` also verifies the answer's data; the live endpoint does not, nor does it tell tokens
or cost (formats/nao.md 4 and 5).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.http_call import Call
from tui_eval.agents.http_client import HttpClient
from tui_eval.agents.nao_auth import Credentials
from tui_eval.agents.nao_reply import Stream, read_run
from tui_eval.agents.options import Options
from tui_eval.agents.wire import decode, encode, one_line, text_of
from tui_eval.config import NAO_URL, AgentSpec
from tui_eval.events import Event, Finished
from tui_eval.model import Reply

MODEL = "openai:gpt-4.1"
"""The model of `nao test` where none is given (seed 000)."""
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
        self.url = (options.text("url") or os.environ.get("BACKEND_URL") or NAO_URL).rstrip("/")
        self.model = spec.model or options.text("model") or MODEL
        self.credentials = Credentials(options, self.url)
        # A run that broke off in the middle was paid for: it is not sent again.
        self.client = HttpClient(
            self.url,
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
            raise AgentError(f"model {context.model or self.model}: must be provider:model_id, like {MODEL}")
        return NaoSession(self, {"provider": provider, "modelId": model_id})

    async def close(self) -> None:
        """Close all connections."""
        await self.client.close()


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
        url = f"{agent.url}/api/agent" if live else f"{agent.url}/api/test/run"
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
                if call.unreported and call.status is not None:
                    yield call.exchanged("failed")
                error.answer = error.answer or stream.text
                if error.status != 401:
                    raise
                if again:
                    raise AgentError("Unauthorized. Please check your credentials.", status=401) from None
            except (asyncio.CancelledError, GeneratorExit):
                if stream.chat_id:
                    await self._stop(stream.chat_id)
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

    async def _follow(self, call: Call, stream: Stream) -> AsyncIterator[Event]:
        async for data in call.events():
            for event in stream.take(data):
                yield event
        stream.end()

    async def _stop(self, chat_id: str) -> None:
        """The backend does not notice that a client left, and goes on paying; so it is told."""
        body = encode({"json": {"chatId": chat_id}})
        agent = self.agent
        call = agent.client.call(
            "POST",
            f"{agent.url}/api/trpc/chat.stop",
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
        declared = self.agent.services.nao_costs
        costs = declared.get(":".join(self.model.values())) or declared.get(self.model["modelId"])
        if costs:
            body["meta"] = {"costs": costs}
        return body

    def _live_body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {"message": {"text": request.text or ""}, "model": self.model}
        if self.chat_id:
            body["chatId"] = self.chat_id
        return body

    def _prompt(self, request: Request) -> str:
        """The endpoint knows no conversations: what was said before is told with the question."""
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
            said = one_line(body[:200].decode("utf-8", "replace"))
            raise AgentError(f"{self.agent.url} answered something that is not nao's: {said}")
        return value
