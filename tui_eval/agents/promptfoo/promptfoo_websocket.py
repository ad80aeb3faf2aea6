"""promptfoo's `websocket` provider: one message is sent, and what comes back read through a transform."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options
from tui_eval.agents.http.http_connections import FAILURES, Connector, place_of, unanswered
from tui_eval.agents.loose_json import decode, encode, one_line, text_of
from tui_eval.agents.programs.suite_scripts import Scripts
from tui_eval.agents.promptfoo.promptfoo_env import require_destination
from tui_eval.agents.promptfoo.promptfoo_request import filled
from tui_eval.agents.promptfoo.provider_response import call_context, prompt_of, read_response
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.events import Event, Exchanged, Finished, TextDelta
from tui_eval.guard import fair_share
from tui_eval.guard.secrets import in_addresses
from tui_eval.guard.text import clip
from tui_eval.model import Exchange, Reply

SECONDS = 300.0
"""How long promptfoo waits for an answer."""
LARGEST = 64_000_000
KEPT = 256_000


class WebSocketAgent(Agent):
    """One endpoint; each row has a connection of its own."""

    capabilities = Capabilities(tokens=True, tools=True, metadata=True, calls_in_metadata=True)

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, frozenset({"url", "config"}))
        self.url = options.required("url", "wss://localhost:9000/chat")
        self.config = options.mapping("config")
        self.message = self.config.get("messageTemplate")
        if not isinstance(self.message, str) or not self.message:
            raise ConfigError(
                f"provider {spec.name}: config.messageTemplate is missing, for example '{{{{prompt}}}}'"
            )
        require_destination(spec, [self.message, self.url], self.url, services.trust)
        limit = self.config.get("timeoutMs")
        self.seconds = limit / 1000 if isinstance(limit, int | float) and limit > 0 else SECONDS
        given = self.config.get("protocols") or []
        listed = given if isinstance(given, list) else [given]
        self.protocols = [name.strip() for one in listed for name in str(one).split(",") if name.strip()]
        self.headers = options_headers(self.config.get("headers"))
        self.scripts = Scripts(services, spec.base)

    async def open(self, context: SessionContext) -> Session:
        """Begin; nothing is sent before the first turn."""
        return WebSocketSession(self, context)

    async def close(self) -> None:
        """End the processes of the suite's code."""
        await self.scripts.close()


def options_headers(given: Any) -> dict[str, str]:
    """Headers as a suite gives them; they are no templates here."""
    return {str(name): text_of(value) for name, value in given.items()} if isinstance(given, dict) else {}


class WebSocketSession(Session):
    """One row."""

    def __init__(self, agent: WebSocketAgent, context: SessionContext) -> None:
        self.agent = agent
        self.context = context
        self._heard: list[str] = []

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Send one message and read what comes until it is an answer."""
        agent = self.agent
        began, started_at = time.monotonic(), time.time()
        values = {**(request.vars or self.context.vars), "prompt": prompt_of(request)}
        url, message = filled(agent.url, values), filled(str(agent.message), values)
        self._heard = []
        found, problem = None, None
        try:
            async with asyncio.timeout(agent.seconds):
                found = await self._answer(url, message, request)
        except TimeoutError:
            running = fair_share.clock.get()
            name = running.looked_up if running is not None else ""
            problem = AgentError(
                f"{url} did not answer within {agent.seconds:g} s"
                + (f": its host name {one_line(name, 80)} was not resolved" if name else ""),
                code="late-lookup" if name else "time-limit",
                limit=agent.seconds,
                place=place_of(url),
                said=name,
            )
        except AgentError as error:
            problem = error
        yield Exchanged(
            Exchange(
                turn=request.turn,
                request=f"{in_addresses(url)}\n\n{clip(message, KEPT)}",
                response=clip("\n".join(self._heard), KEPT),
                started_at=started_at,
                duration_ms=round((time.monotonic() - began) * 1000, 1),
                note="failed" if problem is not None else "",
            )
        )
        if problem is not None:
            raise problem
        if isinstance(found, dict) and ("output" in found or "error" in found):
            events, reply = read_response(found, request.turn)
        elif found is None:
            raise AgentError(
                f"{url}: config.transformResponse found no output in the answer",
                code="no-field",
                said="config.transformResponse",
                place="output",
            )
        else:
            reply = Reply(turn=request.turn, text=text_of(found))
            if not isinstance(found, str):
                reply.output = found
            events = [TextDelta(reply.text)] if reply.text else []
        for event in events:
            yield event
        reply.latency_ms = round((time.monotonic() - began) * 1000, 1)
        yield Finished(reply)

    async def _answer(self, url: str, message: str, request: Request) -> Any:
        agent = self.agent
        gathered: Any = {"error": "unknown error occurred"}
        headers = {**agent.headers, **self.context.model_headers}
        try:
            async with (
                aiohttp.ClientSession(connector=Connector()) as client,
                client.ws_connect(
                    url, headers=headers, protocols=agent.protocols, max_msg_size=LARGEST
                ) as socket,
            ):
                await socket.send_str(message)
                async for piece in socket:
                    broken: Any = piece.data if piece.type == aiohttp.WSMsgType.ERROR else None
                    if getattr(broken, "code", 0) == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
                        raise AgentError(
                            f"the answer of {url} is larger than {LARGEST // 1_000_000} MB",
                            code="too-large",
                            limit=f"{LARGEST // 1_000_000} MB",
                            place=place_of(url),
                        )
                    if piece.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                        continue
                    text = (
                        piece.data if isinstance(piece.data, str) else piece.data.decode("utf-8", "replace")
                    )
                    self._heard.append(text)
                    if agent.config.get("streamResponse"):
                        gathered, ended = await self._gathered(gathered, text, request)
                        if ended:
                            return gathered
                    else:
                        return await self._transformed(text)
        except aiohttp.WSServerHandshakeError as error:
            raise AgentError(
                f"{url} refuses the connection: HTTP {error.status}",
                status=error.status,
                said="the connection is refused",
                place=place_of(url),
            ) from None
        except (aiohttp.InvalidURL, ValueError):
            raise AgentError(f"{one_line(url)} is not a ws(s) URL", code="bad-setting") from None
        except FAILURES as error:
            if isinstance(error, TimeoutError):
                raise
            raise unanswered(url, error) from None
        raise AgentError(
            f"{url} closed the connection before it answered",
            answer="\n".join(self._heard),
            code="broke-off",
            said="closed before it answered",
            place=place_of(url),
        )

    async def _gathered(self, gathered: Any, text: str, request: Request) -> tuple[Any, bool]:
        given = {
            "accumulator": gathered,
            "data": {"type": "message", "data": text},
            "context": json.loads(encode(call_context(request, self.context))),
        }
        code = str(self.agent.config["streamResponse"])
        found = await self.agent.scripts.run(code, given, "config.streamResponse")
        if not isinstance(found, list) or len(found) != 2:
            raise AgentError(
                "config.streamResponse must return [accumulator, isComplete]", code="bad-setting"
            )
        return found[0], bool(found[1])

    async def _transformed(self, text: str) -> Any:
        try:
            data = decode(text)
        except ValueError:
            data = text
        parser = self.agent.config.get("transformResponse") or self.agent.config.get("responseParser")
        if not isinstance(parser, str):
            return {"output": data}
        return await self.agent.scripts.run(parser, {"data": data}, "config.transformResponse")
