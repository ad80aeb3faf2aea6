"""The receiver of spans: OTLP over HTTP on loopback, one per address whatever number of runs use it.

What arrives is from outside: a body that is too large, garbage or of another type gets its status and nothing
else happens; spans of traces that nobody waits for are counted and dropped.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from tui_eval.engine.otlp.wire import NoProtobuf, WireError, spans_of_json, spans_of_protobuf
from tui_eval.model import TraceSpan

if TYPE_CHECKING:
    from aiohttp import web

LARGEST = 10_000_000
"""Bytes of a body, unpacked; promptfoo's limit."""
MOST_SPANS = 10_000
MOST_BYTES = 32_000_000
"""Of one trace; what is beyond is left out with a note."""
TYPES = {"json": "application/json", "protobuf": "application/x-protobuf"}

_encoder = msgspec.json.Encoder(enc_hook=str)
_quiet = logging.getLogger("tui_eval.otlp")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


class ListenerError(Exception):
    """Nothing can listen there; one line."""


class Arriving:
    """The spans of one trace as they arrive."""

    def __init__(self, trace_id: str) -> None:
        self.trace_id = trace_id
        self.spans: list[TraceSpan] = []
        self.left_out = 0
        self._bytes = 0

    def add(self, span: TraceSpan) -> None:
        """Keep a span, as far as there is room."""
        size = len(_encoder.encode(span.attributes)) + len(span.name)
        if len(self.spans) >= MOST_SPANS or self._bytes + size > MOST_BYTES:
            self.left_out += 1
            return
        self._bytes += size
        self.spans.append(span)


class Listener:
    """One address. `strays` counts spans of traces that nobody waits for, `refused` bodies that could not be
    read, with `refusal` the reason of the last one."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.formats: set[str] = set()
        self.strays = 0
        self.refused = 0
        self.refusal = ""
        self.users = 0
        self._traces: dict[str, Arriving] = {}
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where agents send their spans."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1/traces"

    def expect(self, trace_id: str) -> Arriving:
        """Keep the spans of this trace from now on."""
        return self._traces.setdefault(trace_id, Arriving(trace_id))

    @property
    def expected(self) -> int:
        """How many traces are waited for."""
        return len(self._traces)

    def forget(self, trace_id: str) -> None:
        """Keep no more of it."""
        self._traces.pop(trace_id, None)

    async def start(self) -> None:
        """Listen.

        Raises:
            ListenerError: the address cannot be used.
        """
        from aiohttp import web

        app = web.Application(client_max_size=LARGEST)
        app.router.add_post("/v1/traces", self._received)
        app.router.add_get("/health", _healthy)
        self._runner = web.AppRunner(
            app, access_log=None, logger=_quiet, handle_signals=False, shutdown_timeout=0.5
        )
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self.host, self.port).start()
        except (OSError, UnicodeError) as error:
            await self.stop()
            raise ListenerError(_cannot(self.host, self.port, error)) from None

    async def stop(self) -> None:
        """End, with the connections that are open."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _received(self, request: web.Request) -> web.Response:
        from aiohttp import web

        kind = next((name for name, mime in TYPES.items() if mime == request.content_type), None)
        if kind is None or kind not in self.formats:
            accepted = ", ".join(TYPES[name] for name in sorted(self.formats))
            return self._refuse(415, f"the content type {request.content_type} is not accepted: {accepted}")
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._refuse(413, f"a body is larger than {LARGEST // 1_000_000} MB")
        except (web.RequestPayloadError, ValueError) as error:
            return self._refuse(400, f"a body broke off or cannot be unpacked: {error}")
        try:
            found = await asyncio.to_thread(spans_of_json if kind == "json" else spans_of_protobuf, body)
        except NoProtobuf as error:
            return self._refuse(501, str(error))
        except WireError as error:
            return self._refuse(400, str(error))
        self._keep(found)
        if kind == "protobuf":  # an empty message is the whole answer
            return web.Response(content_type=TYPES["protobuf"], body=b"")
        return web.json_response({"partialSuccess": {}})

    def _keep(self, found: Iterable[tuple[str, TraceSpan]]) -> None:
        for trace_id, span in found:
            arriving = self._traces.get(trace_id)
            if arriving is None:
                self.strays += 1
            else:
                arriving.add(span)

    def _refuse(self, status: int, reason: str) -> web.Response:
        from aiohttp import web

        self.refused += 1
        self.refusal = reason[:300]
        return web.json_response({"error": self.refusal}, status=status)


async def _healthy(_: web.Request) -> web.Response:
    from aiohttp import web

    return web.json_response({"status": "ok"})


def _cannot(host: str, port: int, error: OSError | UnicodeError) -> str:
    reason = getattr(error, "strerror", None) or str(error)
    if getattr(error, "errno", None) == errno.EADDRINUSE:
        reason = "the port is in use (by another run? give tracing.otlp.http.port another number)"
    return f"nothing can listen for spans at {host}:{port}: {reason}"


class Listeners:
    """The addresses of one event loop, each with as many users as there are runs."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], Listener] = {}
        self._lock = asyncio.Lock()

    async def acquire(self, host: str, port: int, formats: Iterable[str]) -> Listener:
        """A listener at this address, started where there is none; give it back with `release`.

        Raises:
            ListenerError: the address cannot be used.
        """
        async with self._lock:
            listener = self._open.get((host, port))
            if listener is None:
                listener = Listener(host, port)
                await listener.start()
                self._open[host, port] = listener
            listener.users += 1
            listener.formats.update(formats)
            return listener

    async def release(self, listener: Listener) -> None:
        """One user less; the last one ends it."""
        async with self._lock:
            listener.users -= 1
            if listener.users <= 0 and self._open.get((listener.host, listener.port)) is listener:
                del self._open[listener.host, listener.port]
                await listener.stop()


_of_loops: dict[asyncio.AbstractEventLoop, Listeners] = {}


def listeners() -> Listeners:
    """Those of the running loop: one engine, whatever number of runs."""
    loop = asyncio.get_running_loop()
    for other in [known for known in _of_loops if known.is_closed()]:
        del _of_loops[other]
    return _of_loops.setdefault(loop, Listeners())
