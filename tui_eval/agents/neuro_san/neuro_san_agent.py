"""Agent networks of neuro-san, of a server or run by the library (connection `direct`).

What is carried from one interaction to the next is as the documentation of its test cases says;
`reference` contexts do as its own driver does (formats/neuro_san.md 1).
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from tui_eval.agents.base import (
    Agent,
    AgentError,
    Capabilities,
    Pace,
    Request,
    Services,
    Session,
    SessionContext,
)
from tui_eval.agents.entry_options import Options, below
from tui_eval.agents.http.http_call import KEPT, HttpClient
from tui_eval.agents.http.http_connections import FRAMING, place_of
from tui_eval.agents.loose_json import decode, encode, one_line, text_of
from tui_eval.agents.neuro_san.neuro_san_library import Library, LibraryConversation, interpreter
from tui_eval.agents.neuro_san.neuro_san_stream import NeuroSanStream
from tui_eval.agents.neuro_san.neuro_san_worker import several
from tui_eval.agents.neuro_san.sly_data import HELD_BACK
from tui_eval.config.project import JUDGE_NETWORK, NEURO_SAN_URL, AgentSpec
from tui_eval.events import Event, Exchanged, Finished, Held, Note
from tui_eval.guard.text import clip
from tui_eval.model import Entry, Exchange, Reply
from tui_eval.scripting.script_host import ScriptError

# -- The ways to an agent network: a server's streaming chat over HTTP, or neuro-san as a library.


BLANK = "\n\n"
BOTH_WAYS = (
    "start the server, or give its url, or give the `python` of an interpreter that has neuro-san, under "
    "agents in tui_eval.yaml"
)


class OverHttp:
    """A server. `instead` says that the case asked for `direct` and there is no library."""

    def __init__(self, client: HttpClient, url: str, instead: bool) -> None:
        self.client = client
        self.url = url
        self._instead = instead
        self._told = not instead

    async def ask(
        self, network: str, body: dict[str, Any], headers: dict[str, str], reader: NeuroSanStream
    ) -> AsyncIterator[Event]:
        """Send one request; yields what happens.

        Raises:
            AgentError: no answer, or none that is neuro-san's.
        """
        if not self._told:
            self._told = True
            host = urlsplit(self.url).netloc
            yield Note(
                f"connection direct: no neuro-san library here; the server at {host} is used over HTTP"
            )
        call = self.client.call("POST", self.url, body=encode(body), headers=headers, turn=reader.turn)
        kept: list[str] = []
        try:
            async for event in call.open():
                yield event
            async for line in call.lines():
                for event in reader.take(self._decoded(line, kept)):
                    yield event
        except (asyncio.CancelledError, AgentError) as error:
            if call.unreported:
                yield _told(call.exchanged("failed"), body, kept)
            if isinstance(error, AgentError):
                raise self._explained(error, network) from None
            raise
        finally:
            await call.close()
        yield _told(call.exchanged(), body, kept)

    async def close(self) -> None:
        """Nothing is held between two requests."""

    def _decoded(self, line: str, kept: list[str]) -> Any:
        try:
            value = decode(line)
        except ValueError:
            raise AgentError(
                f"{self.url} sent a line that is not JSON: {one_line(line, 120)}",
                code="unreadable",
                said=f"no JSON: {one_line(line, 120)}",
                place=place_of(self.url),
            ) from None
        kept.append(_public(value))
        return value

    def _explained(self, error: AgentError, network: str) -> AgentError:
        text = str(error)
        if error.status == 404:
            text = f"HTTP 404 from {self.url}: the server has no network called {network}"
            return AgentError(text, status=404, said=f"no network called {network}", place=place_of(self.url))
        if error.status is None and self._instead and text.startswith("no answer from"):
            text = (
                "connection direct: there is no neuro-san library here, and the server does not answer "
                f"either ({text}); {BOTH_WAYS}"
            )
        return AgentError(text, status=error.status, like=error)


class Direct:
    """The library, in its process, asked at a pace."""

    def __init__(self, conversation: LibraryConversation, pace: Pace) -> None:
        self._conversation = conversation
        self._pace = pace

    async def ask(
        self, network: str, body: dict[str, Any], headers: dict[str, str], reader: NeuroSanStream
    ) -> AsyncIterator[Event]:
        """As `OverHttp.ask`."""
        if held := await self._pace.claimed():
            yield Held(round(held, 3))
            await asyncio.sleep(held)
        started, clock = time.time(), time.monotonic()
        kept: list[str] = []

        def exchanged(note: str = "") -> Exchanged:
            exchange = Exchange(
                turn=reader.turn,
                request=f"direct: {network} with {self._conversation.library.python}\n\n{clip(_public(body), KEPT)}",
                response=clip("\n".join(kept), KEPT),
                started_at=started,
                duration_ms=round((time.monotonic() - clock) * 1000, 1),
                note=note,
            )
            return Exchanged(exchange)

        try:
            async for message in self._conversation.chat(body):
                kept.append(_public(message))
                for event in reader.take(message):
                    yield event
        except ScriptError as error:
            why = one_line(str(error))
            yield exchanged(why)
            raise _not_run(network, why) from None
        except (asyncio.CancelledError, AgentError) as error:
            yield exchanged("cut off" if isinstance(error, asyncio.CancelledError) else "failed")
            raise
        yield exchanged()

    async def close(self) -> None:
        """Release the conversation."""
        await self._conversation.close()


def _not_run(network: str, why: str) -> AgentError:
    return AgentError(f"connection direct: {network}: {why}", code="reported", said=why)


def _public(value: Any) -> str:
    """A message as it is kept: without the repeated request, its sly data held back."""
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key != "request"}
        answer = value.get("response")
        if isinstance(answer, dict) and answer.get("sly_data"):
            value["response"] = {**answer, "sly_data": HELD_BACK}
        if value.get("sly_data"):
            value["sly_data"] = HELD_BACK
    return encode(value).decode()


def _told(event: Exchanged, body: dict[str, Any], kept: list[str]) -> Exchanged:
    """The exchange with its bodies as kept."""
    exchange = event.exchange
    exchange.request = f"{exchange.request.partition(BLANK)[0]}{BLANK}{clip(_public(body), KEPT)}"
    if kept:
        said = clip("\n".join(kept), KEPT)
        exchange.response = f"{exchange.response.partition(BLANK)[0]}{BLANK}{said}"
    return event


KNOWN = frozenset({"url", "headers", "network", "agent", "python", "manifest", "tool_path"})
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
THINKING = "AGENT_TEST_THINKING_BASIS"
"""The variable with which people ask neuro-san's driver for every message; where it is set, MAXIMAL is
the filter of an interaction that names none, and the verdict rests on all that it carries."""


def networks_code(python: str, agent: str) -> str:
    """What is agreed to where networks are run as a library, with this Python."""
    return f"run agent networks with {python} (the agent {agent})"


class NeuroSanAgent(Agent):
    """One server, or neuro-san as a library. The network is the case's, else the entry's `network`
    (`agent` is another word for it), else the entry's name."""

    capabilities = Capabilities(
        tokens=True, tools=True, sly_data=True, structure=True, guardrails=False, finish_reason=False
    )
    keeps_pace = True

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, KNOWN)
        self.url = (options.text("url") or NEURO_SAN_URL).rstrip("/")
        self.network = options.text("network") or options.text("agent")
        self.headers = options.headers()
        self.client = self._client(self.url)
        self._secure: HttpClient | None = None
        self._options = options
        self._library: Library | None = None

    def _client(self, url: str) -> HttpClient:
        """The connections to a server. What broke off in the middle, also behind a gateway (502, 504), was
        paid for: it is not sent again."""
        later = frozenset({429, 503})
        return HttpClient(retries=self.spec.retries, retry_status=later, retry_lost=False, pace=self.pace)

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation over the connection that the case asks for.

        Raises:
            AgentError: there is no such connection.
            NeedsTrust: `direct` runs a network's own code, of a folder that is not trusted.
        """
        network = context.network or self.network or self.spec.name
        if context.connection == "mcp":
            raise AgentError(
                "connection mcp: tui-eval does not speak it; use http or https in the test case",
                code="bad-setting",
                said="connection mcp is not spoken",
            )
        if context.connection not in (None, "direct", "http", "https"):
            raise AgentError(
                f"connection {context.connection}: unknown; known: direct, http, https",
                code="bad-setting",
                said=f"connection {context.connection}: unknown",
            )
        # A judge has no connection of its own: neuro-san asks its judge within the process.
        by_library = self._options.text("python") and not self._options.text("url")
        direct = context.connection == "direct" or (context.connection is None and by_library)
        if direct and (library := self._installed()):
            own = context.judges and network == JUDGE_NETWORK
            conversation = library.conversation(
                network, self.sent_headers(context), context.use_direct, own=own
            )
            try:
                await conversation.open()
            except ScriptError as error:
                raise _not_run(network, one_line(str(error))) from None
            return NeuroSanSession(self, context, Direct(conversation, self.pace), network)
        self._check(network, context)
        url, client = self.url, self.client
        if context.connection == "https" and url.startswith("http:"):
            url = f"https:{url.removeprefix('http:')}"
            self._secure = self._secure or self._client(url)
            client = self._secure
        url = below(url, f"api/v1/{quote(network)}/streaming_chat")
        return NeuroSanSession(self, context, OverHttp(client, url, context.connection == "direct"), network)

    def _check(self, network: str, context: SessionContext) -> None:
        """What a case names becomes part of a request to a server that it has not chosen: a network, and headers.

        Raises:
            AgentError: it would be something else.
        """
        if not {".", ".."}.isdisjoint(network.split("/")):
            said = f"{one_line(network, 60)} is no network: an address does not keep `.` and `..`"
            raise AgentError(said, code="bad-setting", said=said)
        for name in self.sent_headers(context):
            if not _HEADER.fullmatch(name):
                said = f"metadata {one_line(name, 60)!r} is no name of a header, which a server gets it as"
                raise AgentError(said, code="bad-setting", said=said)
            if name.lower() in FRAMING:
                said = f"metadata {name!r}: this header says where a request ends, and is not the case's"
                raise AgentError(said, code="bad-setting", said=said)

    @property
    def preparing(self) -> str:
        """What a conversation with the library begins with."""
        return "loading agent networks" if self._has_library else ""

    @cached_property
    def _has_library(self) -> bool:
        return self._python() is not None

    def sent_headers(self, context: SessionContext) -> dict[str, str]:
        """Request metadata goes out as headers, beside the entry's; the reference's driver says who asks by default."""
        metadata = context.headers
        if metadata is None:
            user = os.environ.get("USER")
            metadata = {"user_id": user} if context.reference and user else {}
        return {**self.headers, **metadata}

    def interpreter(self) -> str | None:
        """The Python that runs agent networks as a library; None where there is none.

        Raises:
            NeedsTrust: networks are code, and the folder is not trusted.
        """
        python, spec = self._python(), self.spec
        if python is not None and (not spec.typed or self._options.text("python")):
            self.services.trust.require(networks_code(python, spec.name))
        return python

    def _python(self) -> str | None:
        base = Path(self.spec.base) if self.spec.base else self.services.root
        return interpreter(self._options.text("python"), base)

    def _installed(self) -> Library | None:
        """neuro-san as a library, where there is one."""
        if self._library is None:
            options, root = self._options, self.services.root
            python = self.interpreter()
            if python is None:
                return None
            paths = [
                os.pathsep.join(str(options.path(one, key)) for one in several(options.text(key) or ""))
                for key in ("manifest", "tool_path")
            ]
            self._library = Library(python, root, *paths, memory=self.services.script_memory)
        return self._library

    async def close(self) -> None:
        """Close all connections, and end the library's process."""
        await self.client.close()
        if self._secure is not None:
            await self._secure.close()
        if self._library is not None:
            await asyncio.to_thread(self._library.close)


class NeuroSanSession(Session):
    """What is carried: the chat context of the last reply and the sly data."""

    def __init__(
        self, agent: NeuroSanAgent, context: SessionContext, way: Direct | OverHttp, network: str
    ) -> None:
        self.context = context
        self.way = way
        self.network = network
        self.headers = agent.sent_headers(context)
        self.chat_context: dict[str, Any] = {}
        self.carried: dict[str, Any] | None = None
        self._sent: dict[str, Any] | None = None

    def restart(self) -> None:
        """Start clean: neither context nor sly data. The reference still carries what was sent."""
        self.chat_context = {}
        self.carried = self._sent if self.context.reference else None

    def sent_before(self, requests: Sequence[Request], replies: Sequence[Reply]) -> None:
        """Sly data are sent beside the texts, come back, and are carried on."""
        returned = {reply.turn: reply.sly_data for reply in replies}
        for request in requests:
            self._sent = request.sly_data if request.sly_data is not None else self.carried
            self._carry_on(returned.get(request.turn))
            if not request.continue_conversation:
                self.restart()

    def restore(self, entries: Sequence[Entry], replies: Sequence[Reply]) -> bool:
        """The chat context that the last recorded reply came with; without one there is no way."""
        last = replies[-1] if replies else None
        kept = last.raw.get("chat_context") if last is not None and isinstance(last.raw, dict) else None
        if not isinstance(kept, dict):
            return False
        self.chat_context = kept
        return True

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """One interaction."""
        began = time.monotonic()
        reference, thinking = self.context.reference, bool(os.environ.get(THINKING))
        watching = request.chat_filter is None and not reference and not thinking
        chat_filter = request.chat_filter
        if chat_filter is None:
            chat_filter = "MINIMAL" if reference and not thinking else "MAXIMAL"
        self._sent = request.sly_data if request.sly_data is not None else self.carried
        reader = NeuroSanStream(request.turn, minimal_only=watching, reference=reference)
        body = self._body(request, chat_filter)
        try:
            async for event in self.way.ask(self.network, body, self.headers, reader):
                yield event
        except AgentError as error:
            error.answer = reader.said
            raise
        failure = reader.failure
        if failure is None and not reader.answered and request.text is not None:
            failure = "the agent gave no answer"
        # To its driver an empty text is an answer, which every assertion of what is not in it lets pass.
        if failure is None and not reference and request.text is not None and reader.empty:
            failure = "the agent's answer is empty"
        if failure is not None and reader.failure is None and reader.unreachable:
            failure += f"; {', '.join(reader.unreachable)} was unreachable"
        if failure is not None:
            if not reference:
                status, fact = reader.fact if reader.failure else (None, failure)
                raise AgentError(
                    f"{self.network}: {failure}",
                    status=status,
                    answer=reader.said,
                    code="empty-answer" if not reader.failure else "reported" if status is None else "",
                    said=fact,
                )
            yield Note(failure)
        self._carry(reader)
        yield Finished(
            Reply(
                turn=request.turn,
                text=text_of(reader.text),
                text_missing=reader.text is None,
                output=None if reader.text is None or isinstance(reader.text, str) else reader.text,
                structure=reader.structure,
                sly_data=reader.sly_data,
                usage=reader.usage,
                cost=reader.cost,
                model=reader.model,
                latency_ms=round((time.monotonic() - began) * 1000, 1),
                raw={"chat_context": reader.chat_context} if reader.chat_context else None,
            )
        )

    async def close(self) -> None:
        """Release what the connection holds."""
        await self.way.close()

    def _body(self, request: Request, chat_filter: Any) -> dict[str, Any]:
        body: dict[str, Any] = {"user_message": {"type": "HUMAN", "text": request.text}}
        if self.chat_context:
            body["chat_context"] = self.chat_context
        if self._sent:
            body["sly_data"] = self._sent
        body["chat_filter"] = {"chat_filter_type": chat_filter}
        return body

    def _carry(self, reader: NeuroSanStream) -> None:
        self.chat_context = reader.chat_context
        self._carry_on(reader.sly_data)

    def _carry_on(self, returned: Any) -> None:
        if isinstance(returned, dict) and returned:
            self.carried = {**(self._sent or {}), **returned}
        else:
            self.carried = self._sent
