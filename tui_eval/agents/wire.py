"""JSON and server-sent events as they cross the border, with every oddity they may hold.

msgspec is fast and strict; what it refuses (lone surrogates, NaN) the standard library takes.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def encode(value: Any) -> bytes:
    """JSON as bytes; text that is not UTF-8 (lone surrogates) is escaped."""
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, TypeError, msgspec.EncodeError):
        return json.dumps(value, default=str).encode()


def decode(data: bytes | str) -> Any:
    """A JSON value.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
        try:
            return json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def text_of(value: Any) -> str:
    """A value as text: text as it is, nothing as the empty text, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else encode(value).decode()


def one_line(text: str, limit: int = 300) -> str:
    """The text on one line, cut at `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


class EventStream:
    """Takes the chunks of a `text/event-stream` body and gives the data of its events.

    Chunk by chunk rather than line by line (httpx-sse): what arrives together is handed on together,
    at a third of the time. Names and ids of events are not kept: every protocol here repeats them in
    the data.
    """

    __slots__ = ("_data", "_held")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that this chunk completes."""
        held = self._held
        if b"\n" not in chunk and b"\r" not in chunk and not (held and held[-1].endswith(b"\r")):
            # Joined only at the end of the line: a line of many megabytes must not be copied each time.
            held.append(chunk)
            return []
        data = b"".join(held) + chunk if held else chunk
        last = b""
        if b"\r" in data:
            if data.endswith(b"\r"):
                data, last = data[:-1], b"\r"
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        rest = lines.pop() + last
        self._held = [rest] if rest else []
        found: list[bytes] = []
        pending = self._data
        for line in lines:
            if line.startswith(b"data:"):
                pending.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line and pending:
                found.append(pending[0] if len(pending) == 1 else b"\n".join(pending))
                pending.clear()
        return found

    def end(self) -> list[bytes]:
        """What was still waiting for its blank line when the body ended."""
        rest = self.feed(b"\n\n")
        self._held = []
        return rest


class LineStream:
    """Takes the chunks of a body of lines and gives whole lines; they end with a newline and nothing
    else, and the last one may lack it."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, empty ones left out."""
        if b"\n" not in chunk:
            self._held.append(chunk)
            return []
        *lines, rest = (b"".join(self._held) + chunk).split(b"\n")
        self._held = [rest] if rest else []
        return [line for line in lines if line.strip()]

    def end(self) -> list[bytes]:
        """What came after the last newline."""
        return self.feed(b"\n")
