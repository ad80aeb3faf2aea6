"""Server-sent events out of a body that arrives in pieces cut anywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator

import httpx
from httpx_sse import EventSource, ServerSentEvent

from tui_eval.agents.http_answers import explain
from tui_eval.agents.wire import decode
from tui_eval.guard.fair_share import in_thread

_HEADERS = httpx.Headers({"Content-Type": "text/event-stream"})
_LONG = 1 << 19
_ANSWERED = ("reply", "answer", "output", "text", "response", "content", "choices", "delta")
_BLANK_LINES = (b"\n\n", b"\n\r\n", b"\r\r")


async def data_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The data of each event as soon as the blank line after it has come.

    An event that the end of the body cuts off before its blank line counts too (the standard drops it,
    servers end like that).
    """
    waiting = bytearray()
    async for chunk in chunks:
        seen = max(0, len(waiting) - 2)  # a blank line may be cut in two
        waiting += chunk
        end = max(
            place + len(line) if (place := waiting.rfind(line, seen)) >= 0 else 0 for line in _BLANK_LINES
        )
        if end:
            body = bytes(waiting[:end])
            del waiting[:end]
            for data in await _all(body):
                yield data
    if waiting:
        for data in await _all(bytes(waiting) + b"\n\n"):
            yield data


async def _all(body: bytes) -> Iterable[str]:
    """As `all_data`; an event so long that reading it would keep the loop is read in a thread."""
    return all_data(body) if len(body) < _LONG else await in_thread(lambda: list(all_data(body)))


async def failure_in(body: bytes) -> str | None:
    """What a whole stream of events says went wrong: it has none, or one of them is an error (by its name, or JSON
    with `error` and nothing that was answered)."""
    return _failure_in(body) if len(body) < _LONG else await in_thread(lambda: _failure_in(body))


def _failure_in(body: bytes) -> str | None:
    heard = False
    for event in _events(body + b"\n\n"):
        if not event.data or event.data == "[DONE]":
            continue
        heard = True
        try:
            value = decode(event.data)
        except ValueError:
            value = None
        failed = isinstance(value, dict) and value.get("error") and not any(map(value.get, _ANSWERED))
        if failed or event.event == "error":
            return f"it reported an error: {explain(event.data)}"
    return None if heard else "its stream of events is empty"


def all_data(body: bytes) -> Iterator[str]:
    """The data of the events of a piece of a body that ends with an event."""
    for event in _events(body):
        if event.data:
            yield event.data


def _events(body: bytes) -> Iterator[ServerSentEvent]:
    response = httpx.Response(200, headers=_HEADERS, content=body)
    response.encoding = "utf-8"  # the only one the standard allows; looking for another costs time
    return EventSource(response).iter_sse()
