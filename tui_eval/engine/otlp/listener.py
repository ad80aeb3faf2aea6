"""The receiver of spans: OTLP over HTTP on loopback, one per address whatever number of runs use it.

What arrives is from outside: a body that is too large, garbage or of another type gets its status and nothing
else happens; spans of traces that nobody waits for are counted and dropped.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import errno
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.agents.loose_json import decode
from tui_eval.extensions import adding
from tui_eval.guard import figures
from tui_eval.model import TraceSpan

if TYPE_CHECKING:
    from aiohttp import web


# -- OTLP requests as they arrive over HTTP: the spans in a body of JSON or protobuf.


EXTRA = adding("otlp")
_HEX = re.compile(r"[0-9a-f]+", re.IGNORECASE)
_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
_CODES = ("unset", "ok", "error")
_DEEPEST = 20


class WireError(Exception):
    """A body that is no OTLP request; one line."""


class NoProtobuf(WireError):
    """A body of protobuf where the extra `otlp` is not installed."""


def spans_of_json(body: bytes) -> list[tuple[str, TraceSpan]]:
    """Trace ids (32 hexadecimal digits, lower case) and spans of a JSON body.

    Raises:
        WireError: it is not JSON, or no request.
    """
    try:
        value = decode(body)
    except ValueError as error:
        raise WireError(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict) or not isinstance(value.get("resourceSpans"), list):
        raise WireError("the body has no list resourceSpans")
    return list(_spans(value))


def spans_of_protobuf(body: bytes) -> list[tuple[str, TraceSpan]]:
    """The same of a body of protobuf.

    Raises:
        NoProtobuf: the extra `otlp` is not installed.
        WireError: it is not such a request.
    """
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError:
        raise NoProtobuf(f"spans as protobuf need the extra otlp: {EXTRA}") from None
    try:
        request = ExportTraceServiceRequest.FromString(body)
        return list(_spans(MessageToDict(request, use_integers_for_enums=True)))
    except (DecodeError, ValueError, RecursionError):
        raise WireError("the body is not an ExportTraceServiceRequest of protobuf") from None


def _spans(request: dict[str, Any]) -> Iterator[tuple[str, TraceSpan]]:
    for resource_spans in _mappings(request.get("resourceSpans")):
        resource = _attributes(_mapping(resource_spans.get("resource")).get("attributes"))
        scopes = resource_spans.get("scopeSpans") or resource_spans.get("instrumentationLibrarySpans")
        for scope_spans in _mappings(scopes):
            scope = _mapping(scope_spans.get("scope"))
            for span in _mappings(scope_spans.get("spans")):
                trace_id, span_id = _id(span.get("traceId"), 32), _id(span.get("spanId"), 16)
                if trace_id and span_id:
                    yield trace_id, _span(span, span_id, resource, scope)


def _span(given: dict[str, Any], span_id: str, resource: dict[str, Any], scope: dict[str, Any]) -> TraceSpan:
    kind = _numbered(given.get("kind"), "SPAN_KIND_", _KINDS)
    attributes = {**resource, **_attributes(given.get("attributes"))}
    for key, value in (("otel.scope.name", scope.get("name")), ("otel.scope.version", scope.get("version"))):
        if isinstance(value, str):
            attributes[key] = value
    if kind is not None and kind < len(_KINDS):
        attributes["otel.span.kind"] = _KINDS[kind]
        attributes["otel.span.kind_code"] = kind
    status = _mapping(given.get("status"))
    message, name = status.get("message"), given.get("name")
    return TraceSpan(
        span_id=span_id,
        name=name if isinstance(name, str) else "",
        parent_id=_id(given.get("parentSpanId"), 16),
        start=_milliseconds(given.get("startTimeUnixNano")),
        end=_milliseconds(given.get("endTimeUnixNano")),
        attributes=attributes,
        status=_numbered(status.get("code"), "STATUS_CODE_", _CODES),
        message=message if isinstance(message, str) and message else None,
    )


def _numbered(value: Any, prefix: str, names: Sequence[str]) -> int | None:
    """A member of an enumeration. OTLP has its number; what writes protobuf as JSON by protobuf's own rules
    has its name, `STATUS_CODE_ERROR`: an error that is not read passes for none."""
    if isinstance(value, str):
        name = value.removeprefix(prefix).lower()
        return names.index(name) if name in names else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 600 else None


def _id(value: Any, digits: int) -> str | None:
    """An id as hexadecimal digits in lower case; None where it is none, or all zero."""
    if not isinstance(value, str) or not value or len(value) > 4 * digits:
        return None
    if len(value) != digits or not _HEX.fullmatch(value):
        try:
            raw = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        except (binascii.Error, ValueError):
            return None
        text = raw.decode("ascii", "replace")
        value = text if len(text) == digits and _HEX.fullmatch(text) else raw.hex()
    return value.lower() if len(value) == digits and value.strip("0") else None


def _milliseconds(value: Any) -> float | None:
    """Nanoseconds since the epoch, a number or its digits, as milliseconds."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 25:
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e25:
        return value / 1e6
    return None


def _attributes(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in _mappings(value):
        key, given = item.get("key"), item.get("value")
        if isinstance(key, str) and isinstance(given, dict):
            read = _value(given, 0)
            if read is not None:
                found[key] = read
    return found


def _value(given: dict[str, Any], depth: int) -> Any:
    """An `AnyValue`; 64-bit integers are texts in JSON."""
    if depth > _DEEPEST:
        return None
    if "stringValue" in given:
        return given["stringValue"] if isinstance(given["stringValue"], str) else None
    if "intValue" in given:
        number = given["intValue"]
        if isinstance(number, str) and re.fullmatch(r"-?[0-9]{1,20}", number):
            number = int(number)
        if isinstance(number, bool) or not figures.is_finite(number) or abs(number) > figures.MOST:
            return None  # an `AnyValue` has 64 bits
        return number
    if "doubleValue" in given:
        number = given["doubleValue"]
        if isinstance(number, int | float) and not figures.is_finite(number):
            return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"
        return number if isinstance(number, int | float | str) else None
    if "boolValue" in given:
        return given["boolValue"] is True
    if "bytesValue" in given:
        return given["bytesValue"] if isinstance(given["bytesValue"], str) else None
    if "arrayValue" in given:
        items = _mappings(_mapping(given["arrayValue"]).get("values"))
        return [_value(item, depth + 1) for item in items]
    if "kvlistValue" in given:
        pairs = _mappings(_mapping(given["kvlistValue"]).get("values"))
        return {
            pair["key"]: _value(_mapping(pair.get("value")), depth + 1)
            for pair in pairs
            if isinstance(pair.get("key"), str)
        }
    return None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


LARGEST = 10_000_000
"""Bytes of a body, unpacked; promptfoo's limit."""
MOST_SPANS = 10_000
MOST_BYTES = 32_000_000
"""Of one trace; what is beyond is left out with a note."""
_REMEMBERED = 10_000
"""Traces that have ended of which it is known that they were waited for."""
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
        self._known: set[tuple[str, str, float, float | None]] = set()

    def add(self, span: TraceSpan) -> None:
        """Keep a span, as far as there is room. One that is sent once more (an exporter that has not heard in
        time that it arrived) is one; those that say no time are told apart by nothing."""
        mark = None if span.start is None else (span.span_id, span.name, span.start, span.end)
        if mark in self._known:
            return
        size = len(_encoder.encode(span.attributes)) + len(span.name)
        if len(self.spans) >= MOST_SPANS or self._bytes + size > MOST_BYTES:
            self.left_out += 1
            return
        self._bytes += size
        self.spans.append(span)
        if mark is not None:
            self._known.add(mark)


class SpanListener:
    """One address. `strays` counts spans of traces that nobody waits for, `late` those of traces that were waited for
    and no more are, `refused` bodies that could not be read, with `refusal` the reason of the last one."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.formats: set[str] = set()
        self.strays = 0
        self.late = 0
        self.refused = 0
        self.refusal = ""
        self.users = 0
        self._traces: dict[str, Arriving] = {}
        self._forgotten: dict[str, None] = {}
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
        if self._traces.pop(trace_id, None) is not None:
            self._forgotten[trace_id] = None
            if len(self._forgotten) > _REMEMBERED:
                del self._forgotten[next(iter(self._forgotten))]

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
            if arriving is not None:
                arriving.add(span)
            elif trace_id in self._forgotten:
                self.late += 1
            else:
                self.strays += 1

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
        self._open: dict[tuple[str, int], SpanListener] = {}
        self._lock = asyncio.Lock()

    async def acquire(self, host: str, port: int, formats: Iterable[str]) -> SpanListener:
        """A listener at this address, started where there is none; give it back with `release`.

        Raises:
            ListenerError: the address cannot be used.
        """
        async with self._lock:
            listener = self._open.get((host, port))
            if listener is None:
                listener = SpanListener(host, port)
                await listener.start()
                self._open[host, port] = listener
            listener.users += 1
            listener.formats.update(formats)
            return listener

    async def release(self, listener: SpanListener) -> None:
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
