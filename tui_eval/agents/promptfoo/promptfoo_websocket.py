"""promptfoo's `websocket` provider: one message is sent, and what comes back read through a transform."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import aiohttp
from yarl import URL

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options
from tui_eval.agents.http.error_answers import backoff, beyond, retry_after
from tui_eval.agents.http.http_connections import (
    CONNECT_TIMEOUT,
    FAILURES,
    NOT_CONNECTED,
    READ_TIMEOUT,
    RETRIES,
    RETRY_STATUS,
    Connector,
    failure_text,
    place_of,
    stays,
    unanswered,
    usual_authorities,
)
from tui_eval.agents.loose_json import encode, one_line, text_of
from tui_eval.agents.programs.suite_scripts import Scripts
from tui_eval.agents.promptfoo.promptfoo_env import require_destination, require_led_to
from tui_eval.agents.promptfoo.promptfoo_request import filled
from tui_eval.agents.promptfoo.provider_response import call_context, prompt_of, read_response
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.events import Event, Exchanged, Finished, Held, Retrying
from tui_eval.guard import fair_share
from tui_eval.guard.secrets import in_addresses
from tui_eval.guard.text import clip
from tui_eval.javascript.values import UNDEFINED, is_undefined, parse_json
from tui_eval.model import Exchange, Reply

SECONDS = 300.0
"""How long promptfoo waits for an answer."""
LARGEST = 64_000_000
"""Characters of an answer, all its messages together."""
KEPT = 256_000
LINGER = 0.5
"""Seconds that are waited for the server to say goodbye once its answer is there; some never do."""
_BESIDE_OUTPUT = frozenset(("cached", "cost", "latencyMs", "metadata", "raw", "sessionId", "tokenUsage"))
"""What a transform may give beside `output`."""


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
        self.sent = [self.message, self.url]
        require_destination(spec, self.sent, self.url, services.trust)
        limit = self.config.get("timeoutMs")
        self.seconds = limit / 1000 if isinstance(limit, int | float) and limit > 0 else SECONDS
        given = self.config.get("protocols") or []
        listed = given if isinstance(given, list) else [given]
        self.protocols = [name.strip() for one in listed for name in str(one).split(",") if name.strip()]
        self.headers = options_headers(self.config.get("headers"))
        self.scripts = Scripts(services, spec.base)
        self.retries = RETRIES if spec.retries is None else spec.retries
        self._context: ssl.SSLContext | None = None

    def authorities(self) -> ssl.SSLContext:
        """Whom to trust over wss; reading them takes time, and is done when first asked."""
        if self._context is None:
            self._context = usual_authorities()
        return self._context

    async def open(self, context: SessionContext) -> Session:
        """Begin; nothing is sent before the first turn."""
        return WebSocketSession(self, context)

    async def close(self) -> None:
        """End the processes of the suite's code."""
        await self.scripts.close()


def options_headers(given: Any) -> dict[str, str]:
    """Headers as a suite gives them; they are no templates here."""
    return {str(name): text_of(value) for name, value in given.items()} if isinstance(given, dict) else {}


class _Later(Exception):
    """The connection is not had now, and nothing was sent: it may be later."""

    def __init__(self, reason: str, wished: float | None, failed: AgentError) -> None:
        super().__init__(reason)
        self.wished = wished
        self.failed = failed


class WebSocketSession(Session):
    """One row."""

    def __init__(self, agent: WebSocketAgent, context: SessionContext) -> None:
        self.agent = agent
        self.context = context
        self._heard: list[str] = []
        self._kept = 0
        self._took = 0.0

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Send one message and read what comes until it is an answer. While there is no connection it is tried again,
        as promptfoo does."""
        agent = self.agent
        values = {**(request.vars or self.context.vars), "prompt": prompt_of(request)}
        url, message = filled(agent.url, values), filled(str(agent.message), values)
        require_led_to(agent.spec, agent.sent, agent.url, url, values, agent.services.trust)
        found, took = None, 0.0
        for attempt in range(agent.retries + 1):
            began, started_at = time.monotonic(), time.time()
            self._heard, self._kept, self._took = [], 0, 0.0
            problem, later = None, None
            try:
                found = await self._once(url, message, request)
            except _Later as error:
                later, problem = error, error.failed
            except AgentError as error:
                problem = error
            except asyncio.CancelledError:
                yield self._exchanged(url, message, request, (began, started_at), "cut off")
                raise
            took = self._took or time.monotonic() - began
            note = "failed" if problem is not None else ""
            yield self._exchanged(url, message, request, (began, started_at), note)
            if problem is None:
                break
            if later is None or attempt == agent.retries:
                raise problem
            wait = backoff(attempt, later.wished)
            if beyond(wait, fair_share.seconds_left()):
                raise problem
            yield Retrying(str(later), round(wait, 3))
            await asyncio.sleep(wait)
            if held := await agent.pace.claimed():  # the engine waited for the first
                yield Held(round(held, 3))
                await asyncio.sleep(held)
        events, reply = self._read(found, url, request.turn)
        for event in events:
            yield event
        reply.latency_ms = round(took * 1000, 1)
        yield Finished(reply)

    def _exchanged(
        self, url: str, message: str, request: Request, since: tuple[float, float], note: str
    ) -> Exchanged:
        """What was sent `since` then (by `time.monotonic`, and by the clock), and what has come of it."""
        took = self._took or time.monotonic() - since[0]
        return Exchanged(
            Exchange(
                turn=request.turn,
                request=f"{in_addresses(url)}\n\n{clip(message, KEPT)}",
                response=clip("\n".join(self._heard), KEPT),
                started_at=since[1],
                duration_ms=round(took * 1000, 1),
                note=note,
            )
        )

    def _read(self, found: Any, url: str, turn: int) -> tuple[list[Event], Reply]:
        """The reply that a transform gives, promptfoo's ProviderResponse or what else it is."""
        config = self.agent.config
        key = "streamResponse" if config.get("streamResponse") else "transformResponse"
        code = str(config.get(key) or config.get("responseParser") or "")
        answers = isinstance(found, dict) and ("output" in found or "error" in found)
        # `({output: data.missing})`: what is undefined does not come out of JavaScript.
        gone = isinstance(found, dict) and not answers and found.keys() <= _BESIDE_OUTPUT
        if is_undefined(found) or (gone and ("output" in code or code.startswith("file://"))):
            raise AgentError(
                f"{url}: config.{key} found no output in the answer",
                code="no-field",
                said=f"config.{key}",
                place="output",
            )
        return read_response(found if answers else {"output": found}, turn)

    async def _once(self, url: str, message: str, request: Request) -> Any:
        """One connection, one message, what comes of it. The limit ends with the first message, as promptfoo's does:
        after it the attempt's own holds."""
        agent = self.agent
        try:
            async with asyncio.timeout(agent.seconds) as limit:
                return await self._answer(url, message, request, limit)
        except TimeoutError:
            if self._heard:
                raise AgentError(
                    f"{url}: nothing came for {READ_TIMEOUT:g} s", code="unreachable", place=place_of(url)
                ) from None
            running = fair_share.clock.get()
            name = running.looked_up if running is not None else ""
            raise AgentError(
                f"{url} did not answer within {agent.seconds:g} s"
                + (f": its host name {one_line(name, 80)} was not resolved" if name else ""),
                code="late-lookup" if name else "time-limit",
                limit=agent.seconds,
                place=place_of(url),
                said=name,
            ) from None

    async def _answer(self, url: str, message: str, request: Request, limit: asyncio.Timeout) -> Any:
        agent, began = self.agent, time.monotonic()
        secure = _checked(url).scheme in ("wss", "https")
        not_followed = aiohttp.TraceConfig()
        not_followed.on_request_redirect.append(_refuse_redirect)
        async with aiohttp.ClientSession(
            connector=Connector(ssl=agent.authorities()) if secure else Connector(),
            timeout=aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT),
            trace_configs=[not_followed],
        ) as client:
            socket = await self._connected(client, url)
            await self._sent(socket, url, message)
            found = await self._received(socket, url, request, limit)
            self._took = time.monotonic() - began
            with suppress(TimeoutError, *FAILURES):
                async with asyncio.timeout(LINGER):
                    await socket.close()
            return found

    async def _connected(
        self, client: aiohttp.ClientSession, url: str
    ) -> aiohttp.ClientWebSocketResponse[Any]:
        agent = self.agent
        headers = {**agent.headers, **self.context.model_headers}
        try:
            # Pings are answered here: of a server that has gone since, its last words are still to be read.
            socket = await client.ws_connect(
                url, headers=headers, protocols=agent.protocols, max_msg_size=LARGEST, autoping=False
            )
        except aiohttp.WSServerHandshakeError as error:
            failed = _refused(url, error)
            if error.status not in RETRY_STATUS:
                raise failed from None
            raise _Later(str(error.status), retry_after(_headers(error)), failed) from None
        except FAILURES as error:
            if isinstance(error, TimeoutError) and not isinstance(error, NOT_CONNECTED):
                raise
            failed = unanswered(url, error)
            if stays(error):
                raise failed from None
            raise _Later(failure_text(error, url), None, failed) from None
        except (ValueError, TypeError) as error:
            raise _unsent(url, error) from None
        if agent.protocols and socket.protocol is None:
            raise AgentError(
                f"{url} speaks none of the protocols that config.protocols asks for: {', '.join(agent.protocols)}",
                code="bad-setting",
                said="none of config.protocols",
                place=place_of(url),
            )
        return socket

    async def _sent(self, socket: aiohttp.ClientWebSocketResponse[Any], url: str, message: str) -> None:
        try:
            await socket.send_frame(message.encode("utf-8", "replace"), aiohttp.WSMsgType.TEXT)
        except FAILURES as error:
            if isinstance(error, TimeoutError):
                raise
            raise unanswered(url, error) from None

    async def _received(
        self,
        socket: aiohttp.ClientWebSocketResponse[Any],
        url: str,
        request: Request,
        limit: asyncio.Timeout,
    ) -> Any:
        """What the messages that come are made into.

        Raises:
            AgentError: the connection ends before that, they are too many, or code of the suite fails.
        """
        kind, size = aiohttp.WSMsgType, 0
        gathered: Any = {"error": "unknown error occurred"}
        streams = self.agent.config.get("streamResponse")
        while True:
            piece = await socket.receive()
            if piece.type == kind.PING:
                with suppress(*FAILURES):
                    await socket.pong(piece.data)
                continue
            if piece.type in (kind.CLOSE, kind.CLOSING, kind.CLOSED, kind.ERROR):
                raise self._ended(url, piece)
            if piece.type not in (kind.TEXT, kind.BINARY):
                continue
            text = piece.data if isinstance(piece.data, str) else piece.data.decode("utf-8", "replace")
            size += len(text)
            if size > LARGEST:
                raise _too_large(url)
            if self._kept <= KEPT:
                self._heard.append(text[: KEPT + 1])
                self._kept += len(text)
            silent = None if fair_share.seconds_left() is not None else READ_TIMEOUT
            limit.reschedule(None if silent is None else asyncio.get_running_loop().time() + silent)
            if not streams:
                return await self._transformed(text)
            gathered, ended = await self._gathered(gathered, text, request)
            if ended:
                return gathered

    def _ended(self, url: str, last: aiohttp.WSMessage) -> AgentError:
        """Why nothing more comes."""
        place, heard = place_of(url), "\n".join(self._heard)
        if last.type == aiohttp.WSMsgType.ERROR:
            error: Any = last.data
            if getattr(error, "code", 0) == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
                return _too_large(url)
            said = f"no WebSocket message: {one_line(str(error))}"
            return AgentError(
                f"the answer of {url} is {said}", answer=heard, code="unreadable", said=said, place=place
            )
        code = last.data if last.type == aiohttp.WSMsgType.CLOSE else None
        words = one_line(last.extra or "", 200) if code else ""
        why = f" ({code}{': ' if words else ''}{words})" if code and (words or code not in _PLAIN) else ""
        before = "its answer was complete" if heard else "it answered"
        said = f"closed before {before}{why}"
        return AgentError(
            f"{url} closed the connection before {before}{why}",
            answer=heard,
            code="broke-off",
            said=said,
            place=place,
        )

    async def _gathered(self, gathered: Any, text: str, request: Request) -> tuple[Any, bool]:
        given = {
            "accumulator": gathered,
            "data": {"type": "message", "data": text},
            "context": json.loads(encode(call_context(request, self.context))),
        }
        code = str(self.agent.config["streamResponse"])
        found = await self.agent.scripts.run(code, given, "config.streamResponse")
        if not isinstance(found, list) or len(found) < 2:
            raise AgentError(
                "config.streamResponse must return [accumulator, isComplete]", code="bad-setting"
            )
        return found[0], bool(found[1])

    async def _transformed(self, text: str) -> Any:
        try:
            data = parse_json(text)
        except (ValueError, RecursionError):
            data = text
        parser = self.agent.config.get("transformResponse") or self.agent.config.get("responseParser")
        if not isinstance(parser, str):
            return {"output": data}
        return await self.agent.scripts.run(
            parser, {"data": data}, "config.transformResponse", undefined=UNDEFINED
        )


_PLAIN = (1000, 1001, 1005, 1006)
"""Codes with which a connection is closed that say nothing of why (RFC 6455 7.4.1)."""


def _checked(url: str) -> URL:
    """Raises `AgentError` where it is no URL of a WebSocket."""
    with suppress(ValueError, TypeError):
        found = URL(url)
        if found.scheme in ("ws", "wss", "http", "https") and found.host:
            return found
    raise AgentError(
        f"{one_line(url)} is not a ws(s) URL", code="bad-setting", said=f"{one_line(url)} is not a ws(s) URL"
    )


async def _refuse_redirect(_: Any, __: Any, told: aiohttp.TraceRequestRedirectParams) -> None:
    """Headers with keys would go along to wherever it points."""
    response = told.response
    raise aiohttp.WSServerHandshakeError(
        response.request_info, (), status=response.status, headers=response.headers
    )


def _headers(error: aiohttp.WSServerHandshakeError) -> Mapping[str, str]:
    return {name.lower(): value for name, value in (error.headers or {}).items()}


def _refused(url: str, error: aiohttp.WSServerHandshakeError) -> AgentError:
    """What an answer means that opens no connection."""
    if error.status == 101:
        said = f"no WebSocket: {one_line(error.message).lower()}"
        return AgentError(f"{url} is {said}", code="unreadable", said=said, place=place_of(url))
    if to := _headers(error).get("location"):
        return AgentError(
            f"{url} redirects to {one_line(in_addresses(to))}: that is not followed",
            status=error.status,
            code="redirected",
            said=one_line(in_addresses(to)),
            place=place_of(url),
        )
    return AgentError(
        f"{url} refuses the connection: HTTP {error.status}",
        status=error.status,
        said="the connection is refused",
        place=place_of(url),
    )


def _unsent(url: str, error: Exception) -> AgentError:
    said = one_line(str(error))
    return AgentError(
        f"this cannot be sent to {url}: {said}", code="not-sent", said=said, place=place_of(url)
    )


def _too_large(url: str) -> AgentError:
    limit = f"{LARGEST // 1_000_000} MB"
    return AgentError(
        f"the answer of {url} is larger than {limit}", code="too-large", limit=limit, place=place_of(url)
    )
