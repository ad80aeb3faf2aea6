"""The server of the soak: speaks every protocol, honestly or with the fault that the question names
(`soak KIND NUMBER`), and writes down when each question was asked. Run as a program with the file to write to."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import IO, Any

from tests.reliability.hostile_server import ANSWERS, HEAD, SSE, busy, endless, large, whole

QUESTION = re.compile(rb"soak ([a-z]+) (\d+)")
_HOSTILE = [
    "9223372036854775808", "1e400", "-1", "NaN", "Infinity", "9" * 400, "9" * 5000, "true", '"12"', "{}", "[1]"
]  # fmt: skip
_FAULTS = ("endless", "flood", "bomb", "malformed", "reset", "broken")
_NASTY = "\x1b]0;owned\x07\x1b[2J\u202e\u0000\ufffe[red]{{x}}<script>\r\n"


def body_of(path: str, text: str, figure: str | None) -> tuple[bytes, bytes]:
    """An answer in the protocol of a path, and its content type; with a hostile figure in its every count."""
    count, cost = "@1@", "@2@"
    if path.endswith("/chat/completions"):
        message = {"role": "assistant", "content": text}
        value: Any = {
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": count, "completion_tokens": count, "prompt_tokens_details": {"cached_tokens": count}},
        }  # fmt: skip
    elif path.endswith("/responses"):
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        details = {"cached_tokens": count}
        value = {
            "status": "completed", "output": [said],
            "usage": {"input_tokens": count, "output_tokens": count, "input_tokens_details": details},
        }  # fmt: skip
    elif path.endswith("/messages"):
        value = {
            "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn", "usage": {"input_tokens": count, "output_tokens": count, "cache_read_input_tokens": count},
        }  # fmt: skip
    elif path.endswith("/api/test/run"):
        value = {
            "text": text, "toolCalls": [], "finishReason": "stop", "durationMs": count,
            "usage": {"inputTotalTokens": count, "outputTotalTokens": count}, "cost": {"totalCost": cost},
        }  # fmt: skip
    elif path.endswith("/streaming_chat"):
        tokens = {
            "total_tokens": count,
            "prompt_tokens": count,
            "completion_tokens": count,
            "total_cost": cost,
        }
        lines = [
            {"type": "AGENT", "structure": tokens, "origin": [{"tool": "net", "instantiation_index": 1}]},
            {"type": "AGENT_FRAMEWORK", "text": text, "chat_context": {"chat_histories": []}},
        ]
        joined = "".join(json.dumps({"response": line}) + "\n" for line in lines)
        return _filled(joined, figure), b"application/json-lines"
    elif path.endswith("/api/chat"):
        value = {
            "message": {"role": "assistant", "content": text}, "done": True, "prompt_eval_count": count,
            "eval_count": count,
        }  # fmt: skip
    elif path.endswith("/hook"):
        value = {"output": text, "cost": cost}
    elif path.endswith("/socket"):
        value = {"output": text, "tokenUsage": {"prompt": count, "completion": count}, "cost": cost}
    else:
        value = {"reply": text, "usage": {"input_tokens": count, "output_tokens": count}, "cost": cost}
    return _filled(json.dumps(value) + "\n", figure), b"application/json"


def _filled(text: str, figure: str | None) -> bytes:
    return text.replace('"@1@"', figure or "12").replace('"@2@"', figure or "0.25").encode()


class Soak:
    """What is asked, and what is answered."""

    def __init__(self, log: IO[str]) -> None:
        self._log = log
        self._asked: dict[int, int] = {}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1].decode().partition("?")[0]
            length = next(
                (
                    int(line[15:])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                ),
                0,
            )
            if path == "/socket":
                writer.write(_upgraded(head))
            asked = await _frame(reader) if path == "/socket" else await reader.readexactly(length)
            found = QUESTION.search(asked)
            kind, number = (found[1].decode(), int(found[2])) if found else ("broken", -1)
            self._log.write(f"{time.time()} {number}\n")
            self._log.flush()
            times = self._asked[number] = self._asked.get(number, 0) + 1
            async for piece in self._pieces(kind, number, times, path):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)  # the honest ones come to their turn
            if kind == "reset":
                connection: socket.socket = writer.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()

    async def _pieces(self, kind: str, number: int, times: int, path: str) -> AsyncIterator[bytes]:
        text = f"answer {number}."
        figure = _HOSTILE[number % len(_HOSTILE)] if kind == "figures" else None
        if kind == "text":
            text = f"{_NASTY}{text}{_NASTY}"
        if kind == "wrong":
            text = "something else"
        body, content = body_of(path, text, figure)
        if kind == "large":
            # Just below what a reply may weigh; the answer stands at its end.
            body = large(50)[:-5] + text.encode() + b'"}'
        if path == "/socket" and kind not in _FAULTS:
            yield b"\x81" + (bytes([len(body)]) if len(body) < 126 else _long(len(body))) + body
            return
        broken: dict[str, Callable[[], AsyncIterator[bytes]]] = {
            "endless": lambda: endless(b"data: {}\n\n" * 100, SSE),
            "flood": ANSWERS["/headers"],
            "bomb": ANSWERS["/bomb"],
            "malformed": lambda: whole(b'{"reply": "answer', content),
            "reset": lambda: _half(body, content),
        }
        pieces = broken[kind]() if kind in broken else whole(body, content)
        if kind == "broken":
            pieces = _refused()
        if kind == "busy" and times == 1 and path != "/socket":
            pieces = busy([b"0", b"-5", b"0.01", b"NaN"][number % 4])
        if kind == "slow":
            await asyncio.sleep(0.5)
        async for piece in pieces:
            yield piece


def _upgraded(head: bytes) -> bytes:
    """The answer to a WebSocket's handshake (RFC 6455, 4.2.2)."""
    key = next(
        line[18:].strip() for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:")
    )
    accepted = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accepted + b"\r\n\r\n"
    )


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """A short text that a client sends, unmasked."""
    length = (await reader.readexactly(2))[1] & 127
    mask = await reader.readexactly(4)
    return bytes(one ^ mask[place % 4] for place, one in enumerate(await reader.readexactly(length)))


def _long(length: int) -> bytes:
    return b"\x7e" + length.to_bytes(2, "big") if length < 1 << 16 else b"\x7f" + length.to_bytes(8, "big")


async def _half(body: bytes, content: bytes) -> AsyncIterator[bytes]:
    yield HEAD + b"Content-Type: " + content + b"\r\nContent-Length: %d\r\n\r\n" % (len(body) * 2)
    yield body[: len(body) // 2]


async def _refused() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\nContent-Length: 6\r\n\r\nbroken"


async def main(log: IO[str]) -> None:
    """Serve until nobody holds the standard input any more."""
    server = await asyncio.start_server(Soak(log).answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    with open(sys.argv[1], "a", encoding="utf-8") as file:
        asyncio.new_event_loop().run_until_complete(main(file))
    os._exit(0)  # connections that are still written to end with the process
