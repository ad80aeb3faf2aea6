"""Agent networks of a neuro-san server, over its streaming chat.

What is carried from one interaction to the next is as the documentation of its test cases says;
`reference` contexts do as its own driver does (formats/neuro_san.md 1).
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote, urlsplit

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.http_client import Call, HttpClient
from tui_eval.agents.neuro_san_stream import Reader
from tui_eval.agents.options import Options
from tui_eval.agents.wire import decode, encode, one_line, text_of
from tui_eval.config import NEURO_SAN_URL, AgentSpec
from tui_eval.events import Event, Exchanged, Finished, Note
from tui_eval.model import Reply

KNOWN = frozenset({"url", "headers", "network", "python", "manifest"})


class NeuroSanAgent(Agent):
    """One server. The network is the case's, else the entry's `network`, else the entry's name."""

    capabilities = Capabilities(tokens=True, tools=True, sly_data=True, structure=True)

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, KNOWN)
        self.url = (options.text("url") or NEURO_SAN_URL).rstrip("/")
        self.network = options.text("network")
        self.headers = options.headers()
        self.client = HttpClient(self.url, retries=spec.retries, retry_lost=False)
        self._secure: HttpClient | None = None

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation over the connection that the case asks for."""
        url, client = self.url, self.client
        if context.connection == "mcp":
            raise AgentError("connection mcp: tui-eval does not speak it; use http or https in the test case")
        if context.connection not in (None, "direct", "http", "https"):
            raise AgentError(f"connection {context.connection}: unknown; known: direct, http, https")
        if context.connection == "https" and url.startswith("http:"):
            url = f"https:{url.removeprefix('http:')}"
            self._secure = self._secure or HttpClient(url, retries=self.spec.retries, retry_lost=False)
            client = self._secure
        network = context.network or self.network or self.spec.name
        return NeuroSanSession(
            self, context, client, f"{url}/api/v1/{quote(network)}/streaming_chat", network
        )

    async def close(self) -> None:
        """Close all connections."""
        await self.client.close()
        if self._secure is not None:
            await self._secure.close()


class NeuroSanSession(Session):
    """What is carried: the chat context of the last reply and the sly data."""

    def __init__(
        self, agent: NeuroSanAgent, context: SessionContext, client: HttpClient, url: str, network: str
    ) -> None:
        self.agent = agent
        self.context = context
        self.client = client
        self.url = url
        self.network = network
        self.headers = {**agent.headers, **self._metadata()}
        self.chat_context: dict[str, Any] = {}
        self.carried: dict[str, Any] | None = None
        self._sent: dict[str, Any] | None = None
        self._told = False

    def restart(self) -> None:
        """Start clean: neither context nor sly data. The reference still carries what was sent."""
        self.chat_context = {}
        self.carried = self._sent if self.context.reference else None

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """One interaction."""
        began = time.monotonic()
        reference = self.context.reference
        watching = request.chat_filter is None and not reference
        chat_filter = request.chat_filter or ("MINIMAL" if reference else "MAXIMAL")
        self._sent = request.sly_data if request.sly_data is not None else self.carried
        reader = Reader(request.turn, minimal_only=watching)
        call = self.client.call(
            "POST",
            self.url,
            body=encode(self._body(request, chat_filter)),
            headers=self.headers,
            turn=request.turn,
        )
        if self.context.connection == "direct" and not self._told:
            self._told = True
            host = urlsplit(self.url).netloc
            yield Note(
                f"connection direct: no neuro-san library here; the server at {host} is used over HTTP"
            )
        kept: list[str] = []
        try:
            async for event in call.open():
                yield event
            async for line in call.lines():
                for event in self._take(reader, line, kept):
                    yield event
        except AgentError as error:
            if call.unreported and call.status is not None:
                yield _exchanged(call, kept, "failed")
            raise self._explained(error, reader) from None
        finally:
            await call.close()
        yield _exchanged(call, kept)
        failure = reader.failure
        if failure is None and not reader.answered and request.text is not None:
            failure = "the agent gave no answer"
        if failure is not None:
            if not reference:
                raise AgentError(f"{self.network}: {failure}", answer=text_of(reader.text))
            yield Note(failure)
        self._carry(reader)
        yield Finished(
            Reply(
                turn=request.turn,
                text=text_of(reader.text),
                output=None if reader.text is None or isinstance(reader.text, str) else reader.text,
                structure=reader.structure,
                sly_data=reader.sly_data,
                usage=reader.usage,
                cost=reader.cost,
                model=reader.model,
                latency_ms=round((time.monotonic() - began) * 1000, 1),
            )
        )

    def _metadata(self) -> dict[str, str]:
        """Request metadata goes out as headers; the reference's driver says who asks by default."""
        if self.context.headers is not None:
            return self.context.headers
        user = os.environ.get("USER")
        return {"user_id": user} if self.context.reference and user else {}

    def _body(self, request: Request, chat_filter: str) -> dict[str, Any]:
        body: dict[str, Any] = {"user_message": {"type": "HUMAN", "text": request.text}}
        if self.chat_context:
            body["chat_context"] = self.chat_context
        if self._sent:
            body["sly_data"] = self._sent
        body["chat_filter"] = {"chat_filter_type": chat_filter}
        return body

    def _take(self, reader: Reader, line: str, kept: list[str]) -> list[Event]:
        try:
            value = decode(line)
        except ValueError:
            raise AgentError(f"{self.url} sent a line that is not JSON: {one_line(line[:120])}") from None
        if isinstance(value, dict) and "request" in value:
            # The server repeats the whole request, secrets included, on each line.
            value = {key: item for key, item in value.items() if key != "request"}
            kept.append(encode(value).decode())
        else:
            kept.append(line)
        return reader.take(value)

    def _carry(self, reader: Reader) -> None:
        self.chat_context = reader.chat_context
        returned = reader.sly_data
        if isinstance(returned, dict) and returned:
            self.carried = {**(self._sent or {}), **returned}
        else:
            self.carried = self._sent

    def _explained(self, error: AgentError, reader: Reader) -> AgentError:
        text = str(error)
        if error.status == 404:
            text = f"HTTP 404 from {self.url}: the server has no network called {self.network}"
        elif (
            error.status is None and self.context.connection == "direct" and text.startswith("no answer from")
        ):
            text = (
                f"connection direct: there is no neuro-san library here, and the server does not answer either "
                f"({text}); start the server, or give its url under agents in tui_eval.yaml"
            )
        return AgentError(text, status=error.status, answer=text_of(reader.text))


def _exchanged(call: Call, kept: list[str], note: str = "") -> Exchanged:
    """The exchange with the lines as kept."""
    event = call.exchanged(note)
    if kept:
        head = event.exchange.response.partition("\n\n")[0]
        body = "\n".join(kept)[:256_000]
        event.exchange.response = f"{head}\n\n{body}"
    return event
