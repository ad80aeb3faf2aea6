"""The receiver of spans over HTTP: what it takes, and that hostile input gets a status and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
from collections.abc import AsyncIterator

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.engine.otlp.test_otlp_wire import SPAN, TRACE, body
from tests.support.ports import free_port
from tui_eval.engine.otlp import listener as module
from tui_eval.engine.otlp.listener import Arriving, ListenerError, SpanListener, listeners
from tui_eval.engine.otlp.tracing import FORMATS
from tui_eval.model import TraceSpan

JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}


@pytest.fixture
async def listener() -> AsyncIterator[SpanListener]:
    running = await listeners().acquire("127.0.0.1", free_port(), FORMATS)
    yield running
    await listeners().release(running)


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=60, verify=False) as client:  # certificates take long to read
        yield client


async def post(
    listener: SpanListener,
    content: bytes,
    headers: dict[str, str],
    path: str = "/v1/traces",
    client: httpx.AsyncClient | None = None,
) -> httpx.Response:
    if client is None:
        async with httpx.AsyncClient(timeout=60, verify=False) as client:
            return await post(listener, content, headers, path, client)
    return await client.post(f"http://127.0.0.1:{listener.port}{path}", content=content, headers=headers)


async def works(listener: SpanListener) -> None:
    """Whatever came before, a good body still arrives."""
    before = len(listener.expect(TRACE).spans)
    assert (await post(listener, body(), JSON)).status_code == 200
    assert len(listener.expect(TRACE).spans) == before + 1


async def test_json_protobuf_and_gzip(listener: SpanListener) -> None:
    arriving = listener.expect(TRACE)
    answer = await post(listener, body(), {"Content-Type": "application/json; charset=utf-8"})
    assert (answer.status_code, answer.json()) == (200, {"partialSuccess": {}})
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    scope.spans.add(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(SPAN), name="proto")
    answer = await post(listener, request.SerializeToString(), PROTOBUF)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/x-protobuf"
    packed = gzip.compress(request.SerializeToString())
    assert (await post(listener, packed, {**PROTOBUF, "Content-Encoding": "gzip"})).status_code == 200
    assert [span.name for span in arriving.spans] == ["x", "proto", "proto"]


async def test_spans_of_traces_that_nobody_waits_for_are_dropped(listener: SpanListener) -> None:
    assert (await post(listener, body(), JSON)).status_code == 200
    assert listener.strays == 1
    listener.expect(TRACE)
    listener.forget(TRACE)
    await post(listener, body(), JSON)
    assert (listener.strays, listener.late) == (1, 1)


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", {"Content-Type": ""}, 415),
        (b"not json", JSON, 400),
        (b"[" * 200_000, JSON, 400),
        (b"\xff" * 100, PROTOBUF, 400),
        (b"not gzip", {**JSON, "Content-Encoding": "gzip"}, 400),
        (gzip.compress(body())[:-20], {**JSON, "Content-Encoding": "gzip"}, 400),
        (b" " * 11_000_000, JSON, 413),
        (gzip.compress(b" " * 60_000_000, 1), {**JSON, "Content-Encoding": "gzip"}, 413),
    ],
    ids=["text", "no type", "no json", "deep", "no protobuf", "no gzip", "cut", "large", "bomb"],
)
async def test_hostile_bodies(
    listener: SpanListener, content: bytes, headers: dict[str, str], status: int
) -> None:
    # The server may close the connection before all of a body that it does not want was sent.
    with contextlib.suppress(httpx.WriteError, httpx.ReadError):
        assert (await post(listener, content, headers)).status_code == status
    await works(listener)


async def test_other_methods_and_paths(listener: SpanListener) -> None:
    async with httpx.AsyncClient() as client:
        base = f"http://127.0.0.1:{listener.port}"
        assert (await client.get(f"{base}/v1/traces")).status_code == 405
        assert (await client.post(f"{base}/v1/logs", json={})).status_code == 404
        assert (await client.get(f"{base}/health")).json() == {"status": "ok"}


async def test_garbage_on_the_wire(listener: SpanListener, capsys: pytest.CaptureFixture[str]) -> None:
    for garbage in (
        b"\x16\x03\x01\x02\x00",
        b"GET\r\n\r\n",
        b"POST /v1/traces HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ):
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(garbage)
        await writer.drain()
        writer.close()
    await works(listener)
    assert capsys.readouterr().err == ""


async def test_formats_that_the_suite_takes() -> None:
    listener = await listeners().acquire("127.0.0.1", free_port(), ("json",))
    try:
        answer = await post(listener, b"", PROTOBUF)
        assert answer.status_code == 415 and "application/json" in answer.json()["error"]
        await works(listener)
    finally:
        await listeners().release(listener)


async def test_one_listener_for_all_until_the_last_has_gone() -> None:
    port = free_port()
    one = await listeners().acquire("127.0.0.1", port, ("json",))
    two = await listeners().acquire("127.0.0.1", port, ("protobuf",))
    assert one is two and one.formats == {"json", "protobuf"}
    await listeners().release(one)
    await works(two)
    await listeners().release(two)
    with pytest.raises(httpx.ConnectError):
        await post(two, body(), JSON)
    again = await listeners().acquire("127.0.0.1", port, ("json",))
    await listeners().release(again)


async def test_a_port_in_use_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ListenerError, match=f"127.0.0.1:{port}: the port is in use") as told:
            await listeners().acquire("127.0.0.1", port, FORMATS)
    assert "\n" not in str(told.value)
    with pytest.raises(ListenerError, match="nothing can listen for spans at no such host"):
        await listeners().acquire("no such host", port, FORMATS)


def test_one_trace_takes_only_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SPANS", 3)
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    many, long = Arriving("t"), Arriving("t")
    for number in range(5):
        many.add(TraceSpan(str(number), "x"))
        long.add(TraceSpan(str(number), "x", attributes={"k": "v" * 600}))
    assert (len(many.spans), many.left_out) == (3, 2)
    assert (len(long.spans), long.left_out) == (1, 4)


def test_a_span_that_is_sent_once_more_is_one() -> None:
    arriving, sent = Arriving("t"), TraceSpan("a", "x", start=1.0, end=2.0)
    for span in (
        sent,
        TraceSpan("b", "x", start=1.0, end=2.0),
        sent,
        TraceSpan("a", "x", start=3.0, end=4.0),
    ):
        arriving.add(span)
    assert [(span.span_id, span.start) for span in arriving.spans] == [("a", 1.0), ("b", 1.0), ("a", 3.0)]
    timeless = Arriving("t")
    for _ in range(2):  # ids that somebody wrote by hand are often one
        timeless.add(TraceSpan("a", "x"))
    assert len(timeless.spans) == 2


@pytest.mark.real
async def test_what_arrives_at_once_is_all_kept(listener: SpanListener, client: httpx.AsyncClient) -> None:
    ids = [f"{number:032x}" for number in range(1, 41)]
    arriving = {trace_id: listener.expect(trace_id) for trace_id in ids}
    await asyncio.gather(
        *(post(listener, body(traceId=one, name=one), JSON, client=client) for one in ids * 3)
    )
    for trace_id in ids:
        assert [span.name for span in arriving[trace_id].spans] == [trace_id] * 3
