"""Server-sent events out of a body that arrives in pieces cut anywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator

import httpx
from httpx_sse import EventSource

from tui_eval.guard.fair_share import in_thread

_HEADERS = httpx.Headers({"Content-Type": "text/event-stream"})
_LONG = 1 << 19
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


def all_data(body: bytes) -> Iterator[str]:
    """The data of the events of a piece of a body that ends with an event."""
    response = httpx.Response(200, headers=_HEADERS, content=body)
    response.encoding = "utf-8"  # the only one the standard allows; looking for another costs time
    for event in EventSource(response).iter_sse():
        if event.data:
            yield event.data
