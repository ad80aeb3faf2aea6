"""OTLP requests as they arrive over HTTP: the spans in a body of JSON or protobuf.

The format is opentelemetry-proto 1.x (`ExportTraceServiceRequest`); ids are hexadecimal in JSON, base64
where a library writes protobuf's own JSON. Resource attributes belong to each span, as in promptfoo.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from tui_eval.agents.wire import decode
from tui_eval.extras import adding
from tui_eval.guard import figures
from tui_eval.model import TraceSpan

EXTRA = adding("otlp")
_HEX = re.compile(r"[0-9a-f]+", re.IGNORECASE)
_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
_DEEPEST = 20


class WireError(Exception):
    """A body that is no OTLP request; one line."""


class NoProtobuf(WireError):
    """A body of protobuf where the extra `otlp` is not installed."""


def has_protobuf() -> bool:
    """Whether the extra `otlp` is installed."""
    try:
        import opentelemetry.proto.collector.trace.v1.trace_service_pb2  # noqa: F401
    except ImportError:
        return False
    return True


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
    kind = given.get("kind")
    attributes = {**resource, **_attributes(given.get("attributes"))}
    for key, value in (("otel.scope.name", scope.get("name")), ("otel.scope.version", scope.get("version"))):
        if isinstance(value, str):
            attributes[key] = value
    if isinstance(kind, int) and not isinstance(kind, bool) and 0 <= kind < len(_KINDS):
        attributes["otel.span.kind"] = _KINDS[kind]
        attributes["otel.span.kind_code"] = kind
    status = _mapping(given.get("status"))
    code, message, name = status.get("code"), status.get("message"), given.get("name")
    return TraceSpan(
        span_id=span_id,
        name=name if isinstance(name, str) else "",
        parent_id=_id(given.get("parentSpanId"), 16),
        start=_milliseconds(given.get("startTimeUnixNano")),
        end=_milliseconds(given.get("endTimeUnixNano")),
        attributes=attributes,
        status=code if isinstance(code, int) and not isinstance(code, bool) and 0 <= code < 600 else None,
        message=message if isinstance(message, str) and message else None,
    )


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
