"""OTLP bodies, JSON and protobuf: the same spans from both, one line for whatever is none."""

from __future__ import annotations

import base64
import gc
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tui_eval.engine.otlp.listener import (
    NoProtobuf,
    WireError,
    spans_of_json,
    spans_of_protobuf,
)
from tui_eval.model import TraceSpan

TRACE, SPAN, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
START = 1_700_000_000_000_000_000


def body(span: dict[str, Any] | None = None, **more: Any) -> bytes:
    """A request of one span; `span` overrides its keys."""
    usual = {"traceId": TRACE, "spanId": SPAN, "name": "x", **(span or {}), **more}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "bot"}}]}
    scopes = [{"scope": {"name": "lib", "version": "1"}, "spans": [usual]}]
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}).encode()


def only(found: list[tuple[str, TraceSpan]]) -> TraceSpan:
    ((trace_id, span),) = found
    assert trace_id == TRACE
    return span


def test_a_span_of_json() -> None:
    attributes = [
        {"key": "tool.name", "value": {"stringValue": "look"}},
        {"key": "n", "value": {"intValue": "7"}},
        {"key": "m", "value": {"intValue": -8}},
        {"key": "f", "value": {"doubleValue": 0.5}},
        {"key": "b", "value": {"boolValue": False}},
        {"key": "l", "value": {"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}]}}},
        {"key": "d", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}}},
        {"key": "nothing", "value": {}},
    ]
    span = only(
        spans_of_json(
            body(
                parentSpanId=PARENT,
                kind=3,
                startTimeUnixNano=str(START),
                endTimeUnixNano=START + 1_500_000,
                attributes=attributes,
                status={"code": 2, "message": "boom"},
            )
        )
    )
    assert (span.span_id, span.parent_id, span.name) == (SPAN, PARENT, "x")
    assert (span.start, span.end) == (START / 1e6, START / 1e6 + 1.5)
    assert (span.status, span.message, span.own) == (2, "boom", False)
    assert span.attributes == {
        "service.name": "bot",
        "tool.name": "look",
        "n": 7,
        "m": -8,
        "f": 0.5,
        "b": False,
        "l": ["a", 1],
        "d": {"k": True},
        "otel.scope.name": "lib",
        "otel.scope.version": "1",
        "otel.span.kind": "client",
        "otel.span.kind_code": 3,
    }


@pytest.mark.parametrize(
    ("code", "status"),
    [("STATUS_CODE_ERROR", 2), ("STATUS_CODE_OK", 1), ("STATUS_CODE_UNSET", 0), ("oops", None), (True, None)],
)
def test_enumerations_by_their_names(code: Any, status: int | None) -> None:
    span = only(spans_of_json(body(kind="SPAN_KIND_CLIENT", status={"code": code})))
    assert span.status == status
    assert (span.attributes["otel.span.kind"], span.attributes["otel.span.kind_code"]) == ("client", 3)


def test_protobuf_gives_the_same() -> None:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add()
    spans.resource.attributes.add(key="service.name").value.string_value = "bot"
    scope = spans.scope_spans.add()
    scope.scope.name, scope.scope.version = "lib", "1"
    span = scope.spans.add(
        trace_id=bytes.fromhex(TRACE),
        span_id=bytes.fromhex(SPAN),
        parent_span_id=bytes.fromhex(PARENT),
        name="x",
        kind=3,
        start_time_unix_nano=START,
        end_time_unix_nano=START + 1_500_000,
    )
    span.attributes.add(key="n").value.int_value = 2**60
    span.attributes.add(key="l").value.array_value.values.add().double_value = 0.5
    span.attributes.add(key="d").value.kvlist_value.values.add(key="k").value.bool_value = True
    span.status.code, span.status.message = 2, "boom"
    attributes = [
        {"key": "n", "value": {"intValue": str(2**60)}},
        {"key": "l", "value": {"arrayValue": {"values": [{"doubleValue": 0.5}]}}},
        {"key": "d", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}}},
    ]
    assert spans_of_protobuf(request.SerializeToString()) == spans_of_json(
        body(
            parentSpanId=PARENT,
            kind=3,
            startTimeUnixNano=str(START),
            endTimeUnixNano=str(START + 1_500_000),
            attributes=attributes,
            status={"code": 2, "message": "boom"},
        )
    )


@pytest.mark.parametrize(
    "trace_id",
    [
        TRACE.upper(),
        base64.b64encode(bytes.fromhex(TRACE)).decode(),
        base64.b64encode(bytes.fromhex(TRACE)).decode().rstrip("="),
        base64.b64encode(TRACE.encode()).decode(),
    ],
)
def test_ids_in_every_spelling(trace_id: str) -> None:
    assert only(spans_of_json(body(traceId=trace_id))).span_id == SPAN


@pytest.mark.parametrize("trace_id", ["", "0" * 32, "xyz", 5, None, [], "a" * 10_000, TRACE + "00"])
def test_a_span_without_an_id_is_left_out(trace_id: Any) -> None:
    assert spans_of_json(body(traceId=trace_id)) == []


@pytest.mark.parametrize(
    "given",
    [b"", b"{", b"[]", b"null", b"{}", b'{"resourceSpans": 5}', b"\xff\xfe", b"[" * 100_000, b'{"a":NaN}'],
    ids=["nothing", "open", "list", "null", "object", "number", "no text", "deep", "NaN"],
)
def test_what_is_no_request_is_one_line(given: bytes) -> None:
    gc.collect()  # what other tests left is not complained about at the bottom of a deep recursion
    with pytest.raises(WireError) as told:
        spans_of_json(given)
    assert "\n" not in str(told.value)


def test_garbage_is_no_protobuf() -> None:
    for garbage in (b"\xff" * 50, b"{}", b"\x0a\xff\xff\xff\xff\x0f"):
        with pytest.raises(WireError, match="protobuf"):
            spans_of_protobuf(garbage)
    assert spans_of_protobuf(b"") == []


def test_without_the_extra_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.trace.v1.trace_service_pb2", None)
    with pytest.raises(NoProtobuf, match=r"pip install -e '\.\[otlp\]'"):
        spans_of_protobuf(b"")
    assert only(spans_of_json(body())).name == "x"


def test_deep_values_end_somewhere() -> None:
    value: dict[str, Any] = {"stringValue": "end"}
    for _ in range(200):
        value = {"arrayValue": {"values": [value]}}
    span = only(spans_of_json(body(attributes=[{"key": "deep", "value": value}])))
    assert isinstance(span.attributes["deep"], list)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("name", "kind", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status")
SPANS = st.dictionaries(st.sampled_from(KEYS), ANY, max_size=7)


@given(SPANS)
def test_a_span_of_anything_is_a_span(span: dict[str, Any]) -> None:
    found = only(spans_of_json(body(span)))
    assert isinstance(found.name, str) and isinstance(found.attributes, dict)
    assert found.start is None or found.start >= 0
    assert found.status is None or isinstance(found.status, int)


@given(ANY)
def test_whatever_stands_there_nothing_else_is_raised(value: Any) -> None:
    for request in (value, {"resourceSpans": [value]}, {"resourceSpans": [{"scopeSpans": [value]}]}):
        try:
            assert spans_of_json(json.dumps(request).encode()) == []
        except WireError:
            continue
