"""One HTTP request with its tries, its answer as it arrives, and a record of both for the Raw tab."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tui_eval.agents.base import AgentError
from tui_eval.agents.http.answer_body import Beginning, Unpacking, all_data, data_of, until_blank_line
from tui_eval.agents.http.error_answers import (
    backoff,
    beyond,
    explain,
    quota_spent,
    retry_after,
    without_secrets,
)
from tui_eval.agents.http.http_connections import (
    FAILURES,
    NOT_CONNECTED,
    Connections,
    cut_off,
    failure_text,
    place_of,
    refusal,
    stays,
    unanswered,
)
from tui_eval.agents.loose_json import one_line
from tui_eval.agents.neuro_san.sly_data import without_sly_data
from tui_eval.events import Event, Exchanged, Held, Retrying
from tui_eval.guard.fair_share import Share, seconds_left, waiting
from tui_eval.guard.secrets import MASK, SHORTEST, in_addresses, secret_name
from tui_eval.model import Exchange

if TYPE_CHECKING:
    import aiohttp

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
        self._reported = True
        self._heard = False
        self._broken = False
        self._cut = False
        """Whether a time limit, or a person, ended it: what had come of it is kept as far as it goes."""
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
            except AgentError:
                self._reported = True  # nothing was sent
                raise
            except asyncio.CancelledError:
                self._cut = True
                raise
            except (ValueError, TypeError) as error:
                self._reported = True
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
                        refusal(self.url, self.status, explain(text, self.headers)),
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
                wait = backoff(attempt, wished)
            yield self.exchanged(reason)
            await self.close()
            yield Retrying(reason, round(wait, 3))
            await asyncio.sleep(wait)
            self._received, self._kept = [], 0

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
                raise self.part_only()
        except AgentError:
            self._broken = True
            raise
        except asyncio.CancelledError:
            self._cut = True
            raise
        except FAILURES as error:
            self._broken = True
            raise AgentError(
                f"the answer of {self.url} broke off: {failure_text(error)}",
                code="broke-off",
                said=failure_text(error),
                place=place_of(self.url),
            ) from None

    def part_only(self) -> AgentError:
        """Why an answer of status 206 is none: no part was asked for, and what is missing would be judged as not
        said."""
        shown = self.headers.get("content-range")
        what = f": {one_line(shown, 80)}" if shown else ""
        return AgentError(
            f"{self.url} answered with a part of its answer (HTTP 206{what})",
            answer=_clipped(b"".join(self._received), self._kept) if self.any_status else "",
            code="broke-off",
            said=f"a part only (HTTP 206{what})",
            place=place_of(self.url),
        )

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
            body = chunk if not waiting and chunk.endswith(b"\n\n") else until_blank_line(waiting, chunk)
            if body and (batch := await data_of(body)):
                self._heard = True
                yield batch
        if waiting and (batch := await data_of(bytes(waiting) + b"\n\n")):
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
        note = "cut off" if self._cut else note
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
            name: "[REDACTED]" if _is_secret(name, item) else item for name, item in self.headers.items()
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
        self._reported = False
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


_secret_name = lru_cache(512)(secret_name)


def _is_secret(name: str, value: str) -> bool:
    """Whether a header is a credential; a server may give one by a name of its own (`X-Auth-Token`)."""
    return name.lower() in SENSITIVE or (len(value) >= SHORTEST and _secret_name(name))


def _shown(headers: Mapping[str, str]) -> str:
    """Headers without credentials, a line each."""
    return "".join(
        [
            f"{name}: {MASK if _is_secret(name, value) else without_secrets(value)}\n"
            for name, value in headers.items()
        ]
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
