"""A server of everything that a reply should not be, beside a quick and honest one. Run as a program, so that
what it costs is not the tests': it prints its port and ends with its standard input."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sys
import zlib
from collections.abc import AsyncIterator, Callable

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
SSE = HEAD + b"Content-Type: text/event-stream\r\n\r\n"
_DELTA = json.dumps({"choices": [{"delta": {"content": "x"}}]}).encode()


async def endless(piece: bytes, head: bytes) -> AsyncIterator[bytes]:
    """The head, then the same piece for ever."""
    yield head
    while True:
        yield piece


async def interim() -> AsyncIterator[bytes]:
    """Interim answers for ever."""
    async for piece in endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 2000, b""):
        yield piece


def _bomb() -> tuple[bytes, bytes]:
    packer = zlib.compressobj(6, wbits=31)
    return tuple(packer.compress(b"0" * 16_000_000) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))  # type: ignore[return-value]


BOMB = _bomb()


async def bomb() -> AsyncIterator[bytes]:
    """A little that stands for a lot, for ever: each 16 kB of it for 16 MB."""
    yield HEAD + b"Content-Type: text/plain\r\nContent-Encoding: gzip\r\n\r\n" + BOMB[0]
    while True:
        yield BOMB[1]


async def whole(body: bytes, kind: bytes = b"application/json", more: bytes = b"") -> AsyncIterator[bytes]:
    """One answer."""
    yield HEAD + b"Content-Type: " + kind + b"\r\n" + more
    yield b"Content-Length: %d\r\n\r\n" % len(body)
    for start in range(0, len(body), 1 << 20):
        yield body[start : start + (1 << 20)]


async def quick() -> AsyncIterator[bytes]:
    """What an honest agent says after a hundredth of a second."""
    await asyncio.sleep(0.01)
    async for piece in whole(json.dumps({"reply": "fine"}).encode()):
        yield piece


async def busy(wait: bytes) -> AsyncIterator[bytes]:
    """Later, perhaps."""
    yield b"HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n"
    yield b"Retry-After: " + wait + b"\r\n\r\n"


def large(megabytes: int) -> bytes:
    """A JSON answer of that size, in which no line repeats."""
    lines = "".join(f"row {number:08} of the answer, which goes on\\n" for number in range(1000))
    return b'{"reply": "' + (lines * (megabytes * 1_000_000 // len(lines) + 1)).encode() + b'end"}'


ANSWERS: dict[str, Callable[[], AsyncIterator[bytes]]] = {
    "/quick": quick,
    "/stream": lambda: endless(b"data: " + _DELTA + b"\n\n", SSE),
    "/floods/chat/completions": lambda: endless((b"data: " + _DELTA + b"\n\n") * 500, SSE),
    "/text": lambda: endless(b"word " * 10_000, HEAD + b"Content-Type: text/plain\r\n\r\n"),
    "/line/chat/completions": lambda: endless(b"x" * 60_000, SSE + b"data: "),
    "/lines/chat/completions": lambda: endless(b"data: x\n" * 8000, SSE),
    "/chunks": lambda: endless(
        b"1\r\nx\r\n" * 10_000, HEAD + b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    ),
    "/headers": lambda: endless(b"X-More: and more of it\r\n" * 2000, HEAD),
    "/header": lambda: endless(b"x" * 60_000, HEAD + b"X-Long: "),
    "/interim": interim,
    "/bomb": bomb,
    "/packed": lambda: whole(gzip.compress(b'{"reply": "unpacked"}'), more=b"Content-Encoding: gzip\r\n"),
    "/year": lambda: busy(b"31536000"),
    "/never": lambda: busy(b"inf"),
    "/soon": lambda: busy(b"200"),
    "/large": lambda: whole(large(50)),
}


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection, one request."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ")[1].decode().partition("?")[0]
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        await reader.readexactly(length)
        async for piece in ANSWERS[path]():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)  # the honest ones come to their turn
    except (OSError, EOFError):
        pass
    finally:
        writer.close()


async def main() -> None:
    """Serve until nobody holds the standard input any more."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    # Connections that are still written to end with the process.
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    sys.stdout.flush()
    os._exit(0)
