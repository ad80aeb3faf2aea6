"""The body of an answer out of the bytes that arrive: unpacked, without its mark, apart into server-sent events."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from tui_eval.agents.base import AgentError
from tui_eval.agents.http.error_answers import explain
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.loose_json import broken_object, decode, encode
from tui_eval.guard.fair_share import in_thread

# -- Bodies that a server sends packed although nobody asked for it: unpacked a little at a time, since a few
# kilobytes may stand for gigabytes.


PIECE = 1 << 16
"""Bytes that are unpacked at once."""
_KNOWN = ("gzip", "x-gzip", "deflate")
_GZIP_OR_ZLIB, _BARE = 47, -15


class Unpacking:
    """The bytes of a body by its `Content-Encoding` (RFC 9110 8.4).

    Raises:
        AgentError: the encoding is none that was asked for, nor one that is known anyway.
    """

    def __init__(self, encoding: str, url: str) -> None:
        named = [
            name for part in encoding.lower().split(",") if (name := part.strip()) not in ("", "identity")
        ]
        if unknown := [name for name in named if name not in _KNOWN]:
            raise AgentError(
                f"the answer of {url} is packed as {unknown[0][:40]}, which nobody asked for",
                code="unreadable",
                said=f"packed as {unknown[0][:40]}",
                place=place_of(url),
            )
        if len(named) > 1:
            raise AgentError(
                f"the answer of {url} is packed {len(named)} times",
                code="unreadable",
                said=f"packed {len(named)} times",
                place=place_of(url),
            )
        self._url = url
        self._packed = bool(named)
        self._begun = False
        if named:
            self._unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)

    def pieces(self, data: bytes) -> Iterable[bytes]:
        """What these bytes stand for, at most `PIECE` bytes at once.

        Raises:
            AgentError: they are damaged.
        """
        return self._unpacked(data) if self._packed else (data,)

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        try:
            while data:
                if (
                    self._unpacker.eof
                ):  # several members, one after the other (RFC 1952 2.2), or what fills a block
                    if not (data := data.lstrip(b"\0")):
                        return
                    self._unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
                out = self._piece(data)
                data = self._unpacker.unconsumed_tail or self._unpacker.unused_data
                if out:
                    yield out
                while len(out) == PIECE and not data and not self._unpacker.eof:
                    if out := self._unpacker.decompress(b"", PIECE):
                        yield out
        except zlib.error as error:
            raise AgentError(
                f"the answer of {self._url} cannot be unpacked: {error}",
                code="unreadable",
                said=f"cannot be unpacked: {error}",
                place=place_of(self._url),
            ) from None

    def end(self) -> None:
        """The body has come to its end.

        Raises:
            AgentError: what is packed has not: the rest of the answer is missing.
        """
        if self._packed and self._begun and not self._unpacker.eof:
            raise AgentError(
                f"the answer of {self._url} broke off: it is packed, and its end is missing, so it is incomplete",
                code="broke-off",
                said="its end is missing",
                place=place_of(self._url),
            )

    def _piece(self, data: bytes) -> bytes:
        first, self._begun = not self._begun, True
        try:
            return self._unpacker.decompress(data, PIECE)
        except zlib.error:
            if not first:
                raise
            # Some servers send "deflate" without zlib's frame.
            self._unpacker = zlib.decompressobj(_BARE)
            return self._unpacker.decompress(data, PIECE)


class Beginning:
    """A body's first bytes. UTF-8's byte order mark is no part of it (RFC 8259 8.1, HTML 9.2.5): the first event of a
    stream would not be known by its name, and lost."""

    _MARK = b"\xef\xbb\xbf"

    def __init__(self) -> None:
        self._first: bytes | None = b""

    def without_mark(self, piece: bytes) -> bytes:
        """The next bytes, as far as it is clear that they are the body's."""
        if self._first is None:
            return piece
        first = self._first + piece
        if len(first) < len(self._MARK) and self._MARK.startswith(first):
            self._first = first
            return b""
        self._first = None
        return first.removeprefix(self._MARK)

    def end(self) -> bytes:
        """What was held back, at the end."""
        return self._first or b""


# -- Server-sent events out of a body that arrives in pieces cut anywhere.


_LONG = 1 << 19
_EVENT = re.compile(r"\s*(?:data|event|id|retry)?:")
"""How a stream of events begins."""
END = "[DONE]"
"""What some streams say last."""
_ANSWERED = ("reply", "answer", "output", "text", "response", "content", "choices", "delta")
_BLANK_LINES = (b"\n\n", b"\n\r\n", b"\r\r")


def until_blank_line(waiting: bytearray, chunk: bytes) -> bytes:
    """What is whole now that a chunk has come; `waiting` keeps the rest."""
    seen = max(0, len(waiting) - 2)  # a blank line may be cut in two
    waiting += chunk
    end = max(place + len(line) if (place := waiting.rfind(line, seen)) >= 0 else 0 for line in _BLANK_LINES)
    body = bytes(waiting[:end])
    del waiting[:end]
    return body


def begins_as_events(text: str) -> bool:
    """Whether a text may be a stream of events."""
    return _EVENT.match(text) is not None


def is_events(text: str) -> bool:
    """Whether a text is nothing but events with JSON, the last of which may break off. As words they would be judged
    event by event."""
    if not begins_as_events(text):
        return False
    said = [data for data in all_data(f"{text}\n\n".encode("utf-8", "replace")) if data != END]
    *before, last = [*map(_object_in, said)] or [False]
    return all(before) and (last or (bool(said) and bool(broken_object(said[-1]))))


def _object_in(data: str) -> bool:
    with suppress(ValueError):
        return isinstance(decode(data), dict)
    return False


async def data_of(body: bytes) -> list[str]:
    """As `all_data`; an event so long that reading it would keep the loop is read in a thread."""
    return all_data(body) if len(body) < _LONG else await in_thread(lambda: all_data(body))


async def failure_in(body: bytes) -> str | None:
    """What a whole stream of events says went wrong: it has none, or one of them is an error (by its name, or JSON
    with `error` and nothing that was answered)."""
    return _failure_in(body) if len(body) < _LONG else await in_thread(lambda: _failure_in(body))


def _failure_in(body: bytes) -> str | None:
    heard = False
    for name, data in map(_name_and_data, _events(body + b"\n\n")):
        if not data or data == "[DONE]":
            continue
        heard = True
        try:
            value = decode(data)
        except ValueError:
            value = None
        failed = isinstance(value, dict) and value.get("error") and not any(map(value.get, _ANSWERED))
        if failed or name == "error":
            return f"it reported an error: {explain(data)}"
    return None if heard else "its stream of events is empty"


def all_data(body: bytes) -> list[str]:
    """The data of the events of a piece of a body that ends with an event; those without data are left out. An event
    called `error` is one by its data, too."""
    text = _text_of(body)
    found = text[6:-2].split("\n\ndata: ")
    plain = text.startswith("data: ") and text.endswith("\n\n") and text.count("\n") == 2 * len(found)
    if plain:  # a line of data each, as nearly all are
        return [data for data in found if data] if "" in found else found
    return [data for event in text.split("\n\n") if (data := _told(*_name_and_data(event)))]


def _told(name: str, data: str) -> str:
    """What an event says to those who read its data alone."""
    if name != "error" or not data:
        return data
    value: Any = data
    with suppress(ValueError):
        value = decode(data) or data
    known = isinstance(value, dict) and (value.get("error") or value.get("type") == "error")
    return data if known else encode({"error": value}).decode()


def _text_of(body: bytes) -> str:
    """The text of a body of events, its lines ending with a line feed each."""
    text = body.decode("utf-8", "replace")  # the only encoding the standard allows
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _events(body: bytes) -> list[str]:
    """The events of a body, each as its lines."""
    return _text_of(body).split("\n\n")


def _name_and_data(event: str) -> tuple[str, str]:
    """Those of an event (the HTML standard, 9.2.6); without data it is none."""
    name, data = "", []
    for line in event.split("\n"):
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
        elif field == "event":
            name = value.removeprefix(" ")
    return name, "\n".join(data)
