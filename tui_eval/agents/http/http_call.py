"""One HTTP request with its tries, its answer as it arrives, and a record of both for the Raw tab."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

from tui_eval.agents.base import AgentError
from tui_eval.agents.http.error_answers import backoff, beyond, explain, quota_spent, retry_after
from tui_eval.agents.http.http_connections import (
    FAILURES,
    NOT_CONNECTED,
    Connections,
    cut_off,
    failure_text,
    place_of,
    stays,
    unanswered,
)
from tui_eval.agents.loose_json import decode, encode, one_line
from tui_eval.agents.neuro_san.sly_data import without_sly_data
from tui_eval.events import Event, Exchanged, Held, Retrying
from tui_eval.guard.fair_share import Share, in_thread, seconds_left, waiting
from tui_eval.guard.secrets import in_addresses
from tui_eval.model import Exchange

if TYPE_CHECKING:
    import aiohttp

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
_ANSWERED = ("reply", "answer", "output", "text", "response", "content", "choices", "delta")
_BLANK_LINES = (b"\n\n", b"\n\r\n", b"\r\r")


def _until_blank_line(waiting: bytearray, chunk: bytes) -> bytes:
    """What is whole now that a chunk has come; `waiting` keeps the rest."""
    seen = max(0, len(waiting) - 2)  # a blank line may be cut in two
    waiting += chunk
    end = max(place + len(line) if (place := waiting.rfind(line, seen)) >= 0 else 0 for line in _BLANK_LINES)
    body = bytes(waiting[:end])
    del waiting[:end]
    return body


async def _all(body: bytes) -> list[str]:
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


KEPT = 256_000
"""Bytes of a body that are kept for the Raw tab."""
BODY_LIMIT = 64_000_000
"""Bytes of a body that are read at all."""
ERROR_LIMIT = 1_000_000
"""Bytes of a body that says why there is no answer."""
ERROR_TIME = 10.0
"""Seconds that are waited for it: what the status says is known without."""
SENSITIVE = frozenset(
    {"authorization", "x-api-key", "api-key", "cookie", "set-cookie", "proxy-authorization"}
)

LINGER = 0.5
"""Seconds that are waited for the connection after a stream has said its end."""
_AT_ONCE = 1 << 14
"""Bytes that are taken of what has arrived."""


class HttpCall:
    """One request with its tries. `async for event in call.open()`, then `chunks` or `read`, then
    `close` (always; it ends a connection that is still sending)."""

    def __init__(
        self,
        client: Connections,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        turn: int,
        any_status: bool,
    ) -> None:
        self.client = client
        self.method = method
        self.url = url
        self.body = body
        self.turn = turn
        self.any_status = any_status
        self.status: int | None = None
        self.reason = ""
        """What the server says beside its status ("Not Found")."""
        self.headers: dict[str, str] = {}
        """Those of the answer, names in small letters."""
        self.started_at = time.time()
        self._began = time.perf_counter()
        self._sent = client.headers_for(headers, body is not None)
        self._response: aiohttp.ClientResponse | None = None
        self._received: list[bytes] = []
        self._kept = 0
        self._reported = False
        self._heard = False
        self._broken = False
        self.ended = False
        """Whether what came of a stream says that it is all."""
        self._leaves = 0.0

    async def open(self) -> AsyncIterator[Event]:
        """Send the request, again where that makes sense; yields what happens meanwhile.

        Raises:
            AgentError: no answer, or one with an error status, in one line.
        """
        for attempt in range(self.client.retries + 1):
            last = attempt == self.client.retries
            if self.client.pace is not None and (held := await self.client.pace.claimed()):
                yield Held(round(held, 3))
                await asyncio.sleep(held)
            try:
                await self._send()
            except FAILURES as error:
                reason = failure_text(error, self.url)
                again = self.client.retry_lost or isinstance(error, NOT_CONNECTED)
                if last or not again or stays(error):
                    yield self.exchanged(reason)
                    raise unanswered(self.url, error) from None
                wait = backoff(attempt)
            except (ValueError, TypeError) as error:
                raise AgentError(
                    f"this cannot be sent to {self.url}: {one_line(str(error))}",
                    code="not-sent",
                    said=one_line(str(error)),
                    place=place_of(self.url),
                ) from None
            else:
                assert self.status is not None
                if self.status < 300 or self.any_status:
                    return
                try:
                    async with asyncio.timeout(ERROR_TIME):
                        text = (await self.read(ERROR_LIMIT)).decode("utf-8", "replace")
                except (AgentError, TimeoutError):
                    text = b"".join(self._received).decode("utf-8", "replace")  # what came of it says why
                reason = str(self.status)
                later = self.status in self.client.retry_status and not quota_spent(self.status, text)
                if last or not later:
                    yield self.exchanged()
                    raise AgentError(
                        f"HTTP {self.status} from {self.url}: {explain(text, self.headers)}",
                        status=self.status,
                        code="quota-spent" if quota_spent(self.status, text) else "",
                        said=explain(text, self.headers),
                        place=place_of(self.url),
                    )
                wished = retry_after(self.headers)
                if wished is not None and (too_late := beyond(wished, seconds_left())):
                    yield self.exchanged(reason)
                    raise AgentError(
                        f"HTTP {self.status} from {self.url}: {explain(text, self.headers)}; {too_late}",
                        status=self.status,
                        code="asks-to-wait",
                        said=too_late,
                        place=place_of(self.url),
                    )
                wait = backoff(attempt) if wished is None else wished
            yield self.exchanged(reason)
            await self.close()
            yield Retrying(reason, round(wait, 3))
            await asyncio.sleep(wait)
            self._received, self._kept, self._reported = [], 0, False

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The body as it arrives.

        Raises:
            AgentError: the connection broke, the body is larger than `BODY_LIMIT`, or a part of the answer.
        """
        response = self._response
        assert response is not None
        received, share = self._received, Share()
        unpacking = Unpacking(self.headers.get("content-encoding", ""), self.url)
        beginning = Beginning()
        try:
            while packed := await (self._rest(response) if self.ended else response.content.read(_AT_ONCE)):
                share.arrived(len(packed))
                for piece in unpacking.pieces(packed):
                    unpacked = beginning.without_mark(piece)
                    if self._kept < KEPT:
                        received.append(unpacked[: KEPT - self._kept])
                    self._kept += len(unpacked)
                    if self._kept > BODY_LIMIT:
                        raise AgentError(
                            f"the answer of {self.url} is larger than {BODY_LIMIT // 1_000_000} MB",
                            code="too-large",
                            limit=f"{BODY_LIMIT // 1_000_000} MB",
                            place=place_of(self.url),
                        )
                    for chunk in share.cut(unpacked):
                        await share.turn()
                        began = time.perf_counter()
                        yield chunk
                        share.handled(len(chunk), time.perf_counter() - began)
            if not self.ended:
                if (reset := cut_off(response)) is not None:
                    raise reset
                unpacking.end()
            if rest := beginning.end():
                received.append(rest)
                yield rest
            if self.status == 206 and not self.any_status:
                # No part was asked for: what is missing would be judged as not said.
                shown = self.headers.get("content-range")
                what = f": {one_line(shown, 80)}" if shown else ""
                raise AgentError(
                    f"{self.url} answered with a part of its answer (HTTP 206{what})",
                    code="broke-off",
                    said=f"a part only (HTTP 206{what})",
                    place=place_of(self.url),
                )
        except AgentError:
            self._broken = True
            raise
        except FAILURES as error:
            self._broken = True
            raise AgentError(
                f"the answer of {self.url} broke off: {failure_text(error)}",
                code="broke-off",
                said=failure_text(error),
                place=place_of(self.url),
            ) from None

    async def _rest(self, response: aiohttp.ClientResponse) -> bytes:
        """What comes after a stream has said its end, for a moment: some servers never end the answer as HTTP does, or
        cut the connection."""
        if response.content.is_eof():  # mostly, and a limit of time takes longer than the rest of this
            with suppress(*FAILURES):
                return await response.content.read(_AT_ONCE)
            return b""
        loop = asyncio.get_running_loop()
        self._leaves = self._leaves or loop.time() + LINGER
        with suppress(*FAILURES):
            async with asyncio.timeout_at(self._leaves):
                return await response.content.read(_AT_ONCE)
        return b""

    async def events(self, body: bytes | None = None) -> AsyncIterator[str]:
        """The data of the server-sent events as they arrive, or those of a `body` that was read.
        Raises `AgentError` as `chunks` does."""
        if body is not None:
            for data in all_data(body + b"\n\n"):
                yield data
            return
        async for batch in self.batches():
            for data in batch:
                yield data

    async def batches(self) -> AsyncIterator[list[str]]:
        """As `events`, those together whose blank line has come with a piece of the body.

        An event that the end of the body cuts off before its blank line counts too (the standard drops it,
        servers end like that).
        """
        waiting = bytearray()
        async for chunk in self.chunks():
            body = chunk if not waiting and chunk.endswith(b"\n\n") else _until_blank_line(waiting, chunk)
            if body and (batch := await _all(body)):
                self._heard = True
                yield batch
        if waiting and (batch := await _all(bytes(waiting) + b"\n\n")):
            self._heard = True
            yield batch

    def unfinished(self, what: str, answer: str) -> AgentError:
        """Why its events are no whole `what`: they end too early, or there are none. `answer`: what was said."""
        place = place_of(self.url)
        if self._heard:
            text = f"the answer of {self.url} ended before it was complete"
            return AgentError(
                text, answer=answer, code="broke-off", said="ended before it was complete", place=place
            )
        said = one_line(b"".join(self._received)[:1000].decode("utf-8", "replace"), 200)
        if not said:
            status = "" if self.status == 200 else f" (HTTP {self.status})"
            text = f"the answer of {self.url} is empty{status}"
            return AgentError(text, answer=answer, code="empty-answer", place=place)
        text = f"the answer of {self.url} is no {what}: {said}"
        return AgentError(text, answer=answer, code="unreadable", said=f"no {what}: {said}", place=place)

    async def lines(self) -> AsyncIterator[str]:
        """The lines of the body as they arrive, blank ones left out. Raises `AgentError` as `chunks`."""
        waiting: list[bytes] = []
        async for chunk in self.chunks():
            *whole, rest = chunk.split(b"\n")
            for line in whole:
                waiting.append(line)
                text = b"".join(waiting).decode("utf-8", "replace").strip("\r")
                waiting.clear()
                if text.strip():
                    yield text
            if rest:
                waiting.append(rest)
        if text := b"".join(waiting).decode("utf-8", "replace").strip():
            yield text

    async def read(self, limit: int | None = None) -> bytes:
        """The whole body, or its first `limit` bytes and a little more. Raises `AgentError` as `chunks`."""
        # One growing piece: thousands of small ones would leave the memory in holes.
        body = bytearray()
        async with aclosing(self.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if limit is not None and len(body) >= limit:
                    break
        return bytes(body)

    @property
    def heard(self) -> str:
        """What came of an answer that broke off, clipped; of another one nothing."""
        if not self._broken:
            return ""
        return _clipped(b"".join(self._received), self._kept)

    def exchanged(self, note: str = "") -> Exchanged:
        """This request and what came back so far, clipped, without credentials."""
        self._reported = True
        body = _clipped(self.body or b"", len(self.body or b""))
        received = _clipped(b"".join(self._received), self._kept)
        clipped = f"cut at {KEPT // 1000} kB of {self._kept // 1000} kB" if self._kept > KEPT else ""
        return Exchanged(
            Exchange(
                turn=self.turn,
                request=f"{self.method} {in_addresses(self.url)}\n{_shown(self._sent)}\n{without_sly_data(body)}",
                response=f"{_shown(self.headers)}\n{without_sly_data(received)}"
                if self.status is not None
                else "",
                status=self.status,
                started_at=self.started_at,
                duration_ms=round((time.perf_counter() - self._began) * 1000, 1),
                note="; ".join(part for part in (note, clipped) if part),
            )
        )

    def answered(self) -> dict[str, Any]:
        """How the server answered, as promptfoo hands it on under `metadata.http`."""
        headers = {
            name: "[REDACTED]" if name.lower() in SENSITIVE else item for name, item in self.headers.items()
        }
        return {"status": self.status, "statusText": self.reason, "headers": headers}

    @property
    def unreported(self) -> bool:
        """Whether this request was sent and `exchanged` not asked for since."""
        return not self._reported

    async def whole(self) -> bytes:
        """Send the request, read all of the answer and close: for one of which nothing is shown meanwhile.
        What a `rate` holds it is no time of the attempt's.

        Raises:
            AgentError: as `open` and `chunks`.
        """
        try:
            with waiting() as held:
                held.over()
                async for event in self.open():
                    held.over()
                    if isinstance(event, Held):
                        held.again()
            return await self.read()
        finally:
            await self.close()

    async def close(self) -> None:
        """Give the connection back, or close it where the answer is not complete."""
        response, self._response = self._response, None
        if response is not None and not response.closed:
            with suppress(*FAILURES):
                response.release()
                await response.wait_for_close()

    async def _send(self) -> None:
        self.started_at, self._began = time.time(), time.perf_counter()
        self.status, self.reason, self.headers = None, "", {}
        response = await self.client.request(self.method, self.url, self._sent, self.body)
        self._response, self.status, self.reason = response, response.status, response.reason or ""
        try:
            found = [(name.decode().lower(), value.decode()) for name, value in response.raw_headers]
        except UnicodeDecodeError:
            found = [(_decoded(name).lower(), _decoded(value)) for name, value in response.raw_headers]
        self.headers = dict(found)
        if len(self.headers) < len(found):
            self.headers = {
                key: ", ".join([one for name, one in found if name == key]) for key in self.headers
            }


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _shown(headers: Mapping[str, str]) -> str:
    """Headers without credentials, a line each."""
    if SENSITIVE.isdisjoint(map(str.lower, headers)):
        return "".join([f"{name}: {value}\n" for name, value in headers.items()])
    return "".join(
        [f"{name}: {'•••' if name.lower() in SENSITIVE else value}\n" for name, value in headers.items()]
    )


class HttpClient(Connections):
    """The connections of one agent, and the requests made over them."""

    def call(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        turn: int = 1,
        any_status: bool = False,
    ) -> HttpCall:
        """A request that is sent when its `open` is iterated. With `any_status` a 404 is an answer
        like another."""
        return HttpCall(self, method, url, body, headers, turn, any_status)


def _clipped(data: bytes, whole: int) -> str:
    """The beginning of what was `whole` bytes, with the sign of a cut."""
    return data[:KEPT].decode("utf-8", "replace") + ("…" if whole > KEPT else "")
