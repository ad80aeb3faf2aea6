"""Server-sent events out of a body that arrives in pieces cut anywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx
from httpx_sse import EventSource

_HEADERS = httpx.Headers({"Content-Type": "text/event-stream"})
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
            for data in all_data(bytes(waiting[:end])):
                yield data
            del waiting[:end]
    if waiting:
        for data in all_data(bytes(waiting) + b"\n\n"):
            yield data


def all_data(body: bytes) -> Iterator[str]:
    """The data of the events of a piece of a body that ends with an event."""
    response = httpx.Response(200, headers=_HEADERS, content=body)
    response.encoding = "utf-8"  # the only one the standard allows; looking for another costs time
    for event in EventSource(response).iter_sse():
        if event.data:
            yield event.data
