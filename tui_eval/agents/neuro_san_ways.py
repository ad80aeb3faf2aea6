"""The ways to an agent network: a server's streaming chat over HTTP, or neuro-san as a library.

Both hand each message to the reader of the answer, and keep what came for the Raw tab: without the
request, which a server repeats on each line, and without sly data, which is private (the reply has it).
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

from tui_eval.agents.base import AgentError
from tui_eval.agents.held_back import HELD_BACK
from tui_eval.agents.http_call import KEPT
from tui_eval.agents.http_client import HttpClient
from tui_eval.agents.neuro_san_library import Library
from tui_eval.agents.neuro_san_stream import Reader
from tui_eval.agents.wire import decode, encode, one_line
from tui_eval.events import Event, Exchanged, Note
from tui_eval.model import Exchange
from tui_eval.scripting.script_host import ScriptError

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
        self, network: str, body: dict[str, Any], headers: dict[str, str], reader: Reader
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
        except AgentError as error:
            if call.unreported and call.status is not None:
                yield _told(call.exchanged("failed"), body, kept)
            raise self._explained(error, network) from None
        finally:
            await call.close()
        yield _told(call.exchanged(), body, kept)

    def _decoded(self, line: str, kept: list[str]) -> Any:
        try:
            value = decode(line)
        except ValueError:
            raise AgentError(f"{self.url} sent a line that is not JSON: {one_line(line[:120])}") from None
        kept.append(_public(value))
        return value

    def _explained(self, error: AgentError, network: str) -> AgentError:
        text = str(error)
        if error.status == 404:
            text = f"HTTP 404 from {self.url}: the server has no network called {network}"
        elif error.status is None and self._instead and text.startswith("no answer from"):
            text = (
                "connection direct: there is no neuro-san library here, and the server does not answer "
                f"either ({text}); {BOTH_WAYS}"
            )
        return AgentError(text, status=error.status)


class Direct:
    """The library, in its process. `use_direct` keeps calls to other networks within it."""

    def __init__(self, library: Library, use_direct: bool) -> None:
        self.library = library
        self.use_direct = use_direct

    async def ask(
        self, network: str, body: dict[str, Any], headers: dict[str, str], reader: Reader
    ) -> AsyncIterator[Event]:
        """As `OverHttp.ask`."""
        started, clock = time.time(), time.monotonic()
        kept: list[str] = []
        note = ""
        try:
            async for message in self.library.chat(network, body, headers, self.use_direct):
                kept.append(_public(message))
                for event in reader.take(message):
                    yield event
        except ScriptError as error:
            note = one_line(str(error))
        said = _public(body)
        exchange = Exchange(
            turn=reader.turn,
            request=f"direct: {network} with {self.library.python}\n\n{said[:KEPT]}",
            response="\n".join(kept)[:KEPT],
            started_at=started,
            duration_ms=round((time.monotonic() - clock) * 1000, 1),
            note=note,
        )
        yield Exchanged(exchange)
        if note:
            raise AgentError(f"connection direct: {network}: {note}")


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
    exchange.request = f"{exchange.request.partition(BLANK)[0]}{BLANK}{_public(body)[:KEPT]}"
    if kept:
        said = "\n".join(kept)[:KEPT]
        exchange.response = f"{exchange.response.partition(BLANK)[0]}{BLANK}{said}"
    return event
