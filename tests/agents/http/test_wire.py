"""What crosses the border: JSON with its oddities, server-sent events cut anywhere; and what is loaded."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from itertools import pairwise
from math import inf
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.servers import JsonServer, Planned
from tests.support import TESTS
from tests.support.agents import agent, opened_in_pieces, services, talk
from tui_eval.agents import AgentError, create, loose_json
from tui_eval.agents.http import http_call, http_connections
from tui_eval.agents.http.error_answers import backoff, explain, retry_after
from tui_eval.agents.http.http_call import HttpClient
from tui_eval.agents.http.http_connections import READ_TIMEOUT, authorities_read_late, usual_authorities
from tui_eval.agents.http.json_reply import MISSING, at_path
from tui_eval.agents.loose_json import decode, encode, one_line, split_metadata
from tui_eval.config.project import AgentSpec
from tui_eval.events import Retrying
from tui_eval.guard import fair_share
from tui_eval.guard.trust import NeedsTrust

TLS = TESTS / "data" / "tls"
EVENTS = 'data: {"a": 1}\n\n: note\n\nevent: x\r\ndata:two\r\ndata: lines\r\n\r\nid: 3\ndata: €\r\rdata: rest'
LINES = '{"a": 1}\n\n{"b": "€"}\r\n  \n{"c": 3}'


def cut(body: str, cuts: list[int]) -> list[bytes]:
    """A body cut at some places."""
    data = body.encode()
    places = sorted({0, len(data), *(place for place in cuts if place <= len(data))})
    return [data[start:end] for start, end in pairwise(places)]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@given(cuts=st.lists(st.integers(0, 100)))
async def test_events_however_they_are_cut(mark: str, cuts: list[int]) -> None:
    call = await opened_in_pieces(lambda: cut(mark + EVENTS, cuts))
    assert [event async for event in call.events()] == ['{"a": 1}', "two\nlines", "€", "rest"]


@given(st.lists(st.integers(0, 100)))
async def test_lines_however_they_are_cut(cuts: list[int]) -> None:
    call = await opened_in_pieces(lambda: cut(LINES, cuts))
    assert [line async for line in call.lines()] == ['{"a": 1}', '{"b": "€"}', '{"c": 3}']


async def test_a_byte_order_mark_is_no_part_of_a_body() -> None:
    for pieces in ([b"\xef\xbb\xbf{}"], [b"\xef", b"\xbb", b"\xbf{", b"}"]):
        assert await (await opened_in_pieces(lambda pieces=pieces: pieces)).read() == b"{}"
    for other in (b"\xef\xbb", b"\xef\xbba", b"a\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf"):
        call = await opened_in_pieces(lambda other=other: [other[:2], other[2:]])
        assert await call.read() == other.removeprefix(b"\xef\xbb\xbf")


async def test_long_lines_in_many_pieces() -> None:
    body = [b"data: ", *[b"x" * 16_000] * 640, b"\n\n"]
    found = [event async for event in (await opened_in_pieces(lambda: body)).events()]
    assert len(found) == 1 and len(found[0]) == 640 * 16_000
    assert [len(line) async for line in (await opened_in_pieces(lambda: body[1:])).lines()] == [640 * 16_000]


async def test_events_of_a_body_that_was_read() -> None:
    call = await opened_in_pieces(lambda: [b"data: a\n\ndata: b"])
    assert [event async for event in call.events(await call.read())] == ["a", "b"]
    assert "data: b" in call.exchanged().exchange.response


@pytest.mark.real
@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), st.lists))
def test_json_goes_both_ways(value: object) -> None:
    assert decode(encode(value)) == value


def test_odd_json() -> None:
    assert decode(b'"\\ud800"') == "\ud800" and decode(encode("\ud800")) == "\ud800"
    assert decode(b'{"a": NaN}')["a"] != decode(b'{"a": NaN}')["a"]
    for bad in (b"{", b"", b"[" * 100_000):
        with pytest.raises(ValueError):
            decode(bad)
    assert one_line("a\n b\t" + "c" * 400).startswith("a b c") and len(one_line("x" * 999)) == 300


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"error": {"message": "no\\nway"}}', "no way"),
        ('{"detail": [{"msg": "field required"}]}', "field required"),
        ('{"error": "plain"}', "plain"),
        ("[1]", "[1]"),
        ("<html><title>502 Bad Gateway</title>", "502 Bad Gateway"),
        ("", "no explanation"),
    ],
)
def test_error_bodies(body: str, said: str) -> None:
    assert explain(body) == said


def test_retry_after() -> None:
    assert retry_after({"retry-after": "3"}) == 3 and retry_after({"retry-after-ms": "250"}) == 0.25
    assert retry_after({"retry-after": "soon"}) is None and retry_after({}) is None
    assert retry_after({"retry-after": "-5"}) is None and retry_after({"retry-after": "0"}) == 0
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after({"retry-after": "99999"}) == 99999 and retry_after({"retry-after": "inf"}) == inf


def test_a_server_that_says_at_once_again_and_again_is_given_time() -> None:
    assert backoff(0, 0.0) == 0 and backoff(0, 7.0) == 7
    assert all(backoff(attempt, 0.0) >= 0.25 * 2**attempt for attempt in range(1, 6))
    assert backoff(3, 500.0) == 500 and backoff(1) >= 0.5


def test_paths() -> None:
    value = {"a": [{"b": 1}], "json": {"x": 2}}
    assert at_path(value, "a[0].b") == 1 and at_path(value, "a.-1.b") == 1 and at_path(value, "json.x") == 2
    assert (
        at_path({"a": 1}, "json.a") == 1 and at_path(value, "a.5") is MISSING and at_path(3, "a") is MISSING
    )


def test_metadata_at_the_end() -> None:
    assert split_metadata('a\r\n```json\r\n{"x": 1}\r\n```\r\n') == ("a", {"x": 1})
    assert split_metadata("no fence") == ("no fence", None)
    assert split_metadata('a ```json\n{"x": 1}\n``` b') == ('a ```json\n{"x": 1}\n``` b', None)
    assert split_metadata("a\n```\n[1]\n```") == ("a\n```\n[1]\n```", None)
    assert split_metadata('```json\n{"x": 1}\n```\nthen\n```json\n{"y": 2}\n```\n')[1] == {"y": 2}


def test_metadata_is_looked_for_twice_at_most_however_many_blocks_are_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []
    monkeypatch.setattr(loose_json, "decode", lambda text: tried.append(text) or decode(text))
    assert split_metadata("```json\n{" * 1000 + '"x": 1}\n```\n')[1] == {"x": 1}
    assert split_metadata("```json\n{" * 1000 + "x}\n```\n")[1] is None
    assert len(tried) <= 3


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, tui_eval.agents; heavy = {'httpx', 'aiohttp', 'jinja2', 'duckdb', 'polars', 'quickjs'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


async def test_cookies_are_not_carried_from_one_attempt_to_the_next_nor_redirects_followed() -> None:
    plan = [
        Planned(body={"reply": "one"}, headers={"Set-Cookie": "session=secret"}),
        Planned(body={"reply": "2"}),
    ]
    moved = Planned(status=302, body={}, headers={"Location": "/elsewhere"})
    with JsonServer(*plan, moved) as server:
        it = agent("http", url=f"{server.url}/chat", retries=0)
        await talk(it, "a", "b")
        assert [seen.headers.get("Cookie") for seen in server.requests] == [None, None]
        with pytest.raises(AgentError, match=r"HTTP 302 from .*: it redirects to /elsewhere"):
            await talk(it, "c")
        await it.close()


def test_addresses_that_only_look_like_this_machine_get_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-person")
    for host in ("127.evil.example", "localhost.evil.example"):
        spec = AgentSpec("it", "openai", {"base_url": f"http://{host}/v1"})
        with pytest.raises(NeedsTrust, match=f"send OPENAI_API_KEY to {host}"):
            create(spec, services(trusted=False))


async def test_a_header_of_the_agent_takes_the_place_of_ours_however_it_is_written() -> None:
    with JsonServer(Planned(body={"reply": "one"})) as server:
        it = agent("http", url=f"{server.url}/chat", headers={"user-agent": "mine", "X-Team": "é"})
        await talk(it, "a")
        sent = server.requests[0].headers
        assert sent.get("User-Agent") == "mine" and sent.get("X-Team") == "é"
        await it.close()


def test_authorities_are_read_when_a_context_is_first_used() -> None:
    usual = ssl.create_default_context().cert_store_stats()
    for use in ("wrap_bio", "wrap_socket"):
        with authorities_read_late():
            context = ssl.create_default_context()
        assert context.cert_store_stats()["x509"] == 0
        bios = ssl.MemoryBIO(), ssl.MemoryBIO()
        with socket.socket() as unconnected:
            wrapped = (unconnected,) if use == "wrap_socket" else bios
            getattr(context, use)(*wrapped, server_hostname="localhost")
        assert context.cert_store_stats() == usual and use not in vars(context)
    assert "set_default_verify_paths" not in vars(ssl.SSLContext)


def test_importing_what_speaks_http_reads_no_authorities() -> None:
    code = (
        "import ssl; ssl.SSLContext.load_verify_locations = None; import tui_eval.agents.http.http_call as _\n"
        "from aiohttp import connector; print(connector._SSL_CONTEXT_VERIFIED.cert_store_stats()['x509'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "0\n", done.stderr


async def test_a_blank_in_a_query_is_sent_as_browsers_send_it() -> None:
    async def path_of(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    seen: list[bytes] = []
    async with await asyncio.start_server(path_of, "127.0.0.1", 0) as server:
        client = HttpClient()
        call = client.call("GET", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/é?q=a b+c%2B")
        async for _ in call.open():
            pass
        await call.close()
        await client.close()
    assert seen == [b"/%C3%A9?q=a%20b+c%2B"]


async def test_an_answer_that_was_waited_for_in_vain_is_not_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be on its way, and is paid for: an agent that thought for longer than ten minutes was asked four times."""
    asked: list[bytes] = []
    over = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        await over.wait()
        writer.close()

    short = aiohttp.ClientTimeout(sock_connect=15, sock_read=0.1)
    monkeypatch.setattr(http_connections, "_UNTIL_SILENT", short)
    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat"
        client = HttpClient()
        with pytest.raises(AgentError, match=r"no answer from .*: nothing came for 600 s"):
            await client.call("POST", url, body=b"{}").whole()
        over.set()
        await client.close()
    assert len(asked) == 1


@pytest.mark.parametrize(("left", "watched"), [(None, True), (20.0, False), (7200.0, False)])
async def test_silence_is_watched_where_no_limit_of_the_attempt_ends_it(
    left: float | None, watched: bool
) -> None:
    class Limits:
        def left(self) -> float | None:
            return left

    class Session:
        def __init__(self) -> None:
            self.timeouts: list[Any] = []

        async def request(self, *_: object, timeout: object, **__: object) -> None:
            self.timeouts.append(timeout)
            raise ConnectionResetError

    session, client = Session(), HttpClient(retries=0)
    client.sessions[False] = session  # type: ignore[assignment]
    token = fair_share.clock.set(Limits())  # type: ignore[arg-type]
    try:
        with pytest.raises(AgentError):
            async for _ in client.call("GET", "http://127.0.0.1:9").open():
                pass
    finally:
        fair_share.clock.reset(token)
    assert [timeout.sock_read for timeout in session.timeouts] == [READ_TIMEOUT if watched else None]
    assert session.timeouts[0].sock_connect


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        ("http://me:secret@127.0.0.1:{port}", "its proxy 127.0.0.1:{port} (http_proxy): connection refused"),
        ("http://gone.example.test:3128", "its proxy gone.example.test:3128 (http_proxy): Name"),
    ],
)
async def test_a_proxy_that_cannot_be_reached_is_named(
    monkeypatch: pytest.MonkeyPatch, proxy: str, said: str
) -> None:
    """`no answer from http://agent…: connection refused`, and the agent was there."""

    def known(host: str, *_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and nobody listens
        port = closed.getsockname()[1]
        monkeypatch.setenv("http_proxy", proxy.format(port=port))
        if "gone" in proxy:
            monkeypatch.setattr(socket, "getaddrinfo", known)
        url = "http://agent.example.test/chat"
        client = HttpClient(retries=1)
        call, seen = client.call("GET", url), []
        with pytest.raises(AgentError) as failed:
            async for event in call.open():
                seen.append(event)
        await client.close()
    said = said.format(port=port)
    assert f"no answer from {url}: {said}" in str(failed.value) and "secret" not in str(failed.value)
    again = next(event for event in seen if isinstance(event, Retrying))
    assert again.reason.startswith(said) and said.startswith(failed.value.evidence.path or "?")


@pytest.mark.parametrize(
    "proxy", ["127.0.0.1:{port}", "me:secret@127.0.0.1:{port}", "HTTP://127.0.0.1:{port}/"]
)
async def test_a_proxy_needs_no_scheme(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """As for curl, and everybody else."""
    with JsonServer() as server:
        monkeypatch.setenv("http_proxy", proxy.format(port=server.url.rpartition(":")[2]))
        url = "http://agent.example.test/chat"
        client = HttpClient(retries=0)
        assert b"You said" in await client.call("POST", url, body=b"{}").whole()
        await client.close()


@pytest.mark.parametrize(
    "proxy", ["socks5://127.0.0.1:9", "socks5h://me:secret@127.0.0.1:9", "http://[::1", "http://"]
)
async def test_a_proxy_that_cannot_be_used_is_said(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """A SOCKS proxy was sent plain HTTP, with the headers of the agent."""
    monkeypatch.setenv("all_proxy", proxy)
    url = "http://agent.example.test/chat"
    client = HttpClient(retries=3)
    with pytest.raises(AgentError, match=r"its proxy .* \(all_proxy\) is no http\(s\) proxy") as failed:
        async for _ in client.call("GET", url).open():
            pass
    assert "secret" not in str(failed.value) and failed.value.evidence.code == "bad-setting"
    await client.close()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_is_told_who_asks_and_nobody_else_is(
    monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    heads: list[str] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while True:
                heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                if scheme == "https":  # a tunnel; what would go through it is not looked at
                    writer.write(b"HTTP/1.1 502 No Way\r\ncontent-length: 0\r\n\r\n")
                    break
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
        writer.close()

    async with await asyncio.start_server(proxy, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv(f"{scheme}_proxy", f"http://me:s%C3%A9cret@127.0.0.1:{port}")
        url = f"{scheme}://agent.example.test/chat"
        client = HttpClient(headers={"proxy-authorization": "mine"}, retries=0)
        for _ in range(2):
            with suppress(AgentError):
                async for _ in client.call("GET", url).open():
                    pass
        await client.close()
    first = {"http": f"GET {url} HTTP/1.1", "https": "CONNECT agent.example.test:443 HTTP/1.1"}[scheme]
    told = f"Proxy-Authorization: Basic {base64.b64encode('me:sécret'.encode('latin-1')).decode()}"
    assert [head.splitlines()[0] for head in heads] == [first, first]
    for head in heads:
        own = [line for line in head.splitlines() if line.lower().startswith("proxy-authorization")]
        assert own == [told]
        assert "\nauthorization" not in head.lower()


async def test_a_proxy_that_never_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    over = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    monkeypatch.setattr(http_connections, "CONNECT_TIMEOUT", 0.1)
    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        client = HttpClient(retries=1, retry_lost=False)
        said = rf"its proxy 127\.0\.0\.1:{port} \(https_proxy\): connection timed out"
        seen: list[Any] = []
        with pytest.raises(AgentError, match=f"no answer from .*: {said}"):
            async for event in client.call("GET", "https://agent.example.test/chat").open():
                seen.append(event)
        assert any(isinstance(event, Retrying) for event in seen)  # nothing had been sent
        over.set()
        await client.close()


async def answers_with(status: str, heads: list[bytes]) -> asyncio.Server:
    """A proxy that answers whatever it is asked like this."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        writer.close()

    return await asyncio.start_server(refuse, "127.0.0.1", 0)


@pytest.mark.parametrize(
    ("scheme", "status", "said", "times"),
    [
        ("https", "407 Proxy Authentication Required", "HTTP 407 Proxy Authentication Required", 1),
        ("https", "403 Forbidden", "HTTP 403 Forbidden", 1),
        ("https", "502 Bad Gateway", "HTTP 502 Bad Gateway", 2),
        ("http", "407 Proxy Authentication Required", "HTTP 407: no explanation", 1),
    ],
)
async def test_a_proxy_that_refuses_is_what_says_so(
    monkeypatch: pytest.MonkeyPatch, scheme: str, status: str, said: str, times: int
) -> None:
    """A wrong password was tried four times an attempt, which locks people out; and over http it was the agent that
    refused. What a proxy could not reach was sent nothing, also where a request is not sent twice."""
    heads: list[bytes] = []
    monkeypatch.setattr(http_call, "backoff", lambda *_: 0.0)
    async with await answers_with(status, heads) as server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv(f"{scheme}_proxy", f"http://me:secret@127.0.0.1:{port}")
        url = f"{scheme}://agent.example.test/chat"
        client = HttpClient(retries=1, retry_lost=False)
        proxy = rf"its proxy 127\.0\.0\.1:{port} \({scheme}_proxy\)"
        with pytest.raises(AgentError, match=f"^no answer from {url}: {proxy}: {said}$") as failed:
            async for _ in client.call("GET", url).open():
                pass
        await client.close()
    assert "secret" not in str(failed.value) and len(heads) == times


async def test_each_host_is_reached_by_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address may be a template, or be redirected to: what was for a host of NO_PROXY, or for this machine, went to
    the proxy with its headers, and behind a redirect from here no proxy was asked."""
    heads: list[bytes] = []
    with JsonServer() as server:
        async with await answers_with("200 OK", heads) as proxy:
            port = proxy.sockets[0].getsockname()[1]
            monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{port}")
            monkeypatch.setenv("no_proxy", "near.example.test")
            client = HttpClient(retries=0)
            await client.call("POST", f"{server.url}/chat", body=b"{}").whole()
            await client.call("GET", "http://far.example.test/chat").whole()
            await client.call("POST", f"{server.url}/chat", body=b"{}").whole()
            with pytest.raises(AgentError, match=r"near\.example\.test"):
                await client.call("GET", "http://near.example.test/chat").whole()
            await client.close()
    assert [head.split(b"\r\n")[0] for head in heads] == [b"GET http://far.example.test/chat HTTP/1.1"]
    assert len(server.requests) == 2
    assert not any("proxy-authorization" in map(str.lower, seen.headers) for seen in server.requests)


async def test_a_proxy_that_speaks_tls_is_trusted_as_servers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of http, whose connections know no authorities, its certificate was not trusted whatever SSL_CERT_FILE named."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "ca.pem"))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(head), head))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("http_proxy", f"https://127.0.0.1:{port}")
        client = HttpClient(retries=0)
        assert (await client.call("GET", "http://agent.example.test/chat").whole()).startswith(b"GET http://")
        await client.close()


@pytest.mark.parametrize(
    ("version", "said"), [("TLSv1_3", "certificate required"), ("TLSv1_2", "handshake failure")]
)
async def test_a_server_that_wants_a_certificate_is_said_to(
    monkeypatch: pytest.MonkeyPatch, version: str, said: str
) -> None:
    """It says so once the request is sent, by TLS 1.3: that was "operation not permitted", and asked four times."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=TLS / "ca.pem")
    context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = ssl.TLSVersion[version]
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "ca.pem"))
    monkeypatch.setattr(http_call, "backoff", lambda *_: 0.0)
    asked: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    plain, where = listening.accept()
                except OSError:
                    return
                asked.append(where)
                with suppress(OSError), plain:
                    context.wrap_socket(plain, server_side=True).close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/chat"
        client = HttpClient(retries=3)
        with pytest.raises(AgentError, match=f"^no answer from {url}: it refuses TLS: {said}$"):
            await client.call("POST", url, body=b"{}").whole()
        await client.close()
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)
    assert len(asked) == 1


@pytest.mark.parametrize("file", ["", str(TLS / "ca.pem")])
def test_authorities_of_a_company_need_no_extensions(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python 3.13 on one without them was refused ("CA cert does not include key usage extension")."""
    of_python = ssl.create_default_context

    def of_python_3_13(*arguments: Any, **options: Any) -> ssl.SSLContext:
        context = of_python(*arguments, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", of_python_3_13)
    monkeypatch.setenv("SSL_CERT_FILE", file)
    context = usual_authorities()
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.check_hostname and context.verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        (b"X-Long: " + b"a" * 20_000 + b"\r\n", ""),
        (b"X-Long: " + b"a" * 200_000 + b"\r\n", "no HTTP: Got more than 65536 bytes"),
        (b"no header at all\r\n", "no HTTP: no header at all"),
        (b"".join(b"X-%d: v\r\n" % n for n in range(400)), ""),
        (b"".join(b"X-%d: v\r\n" % n for n in range(4000)), "no HTTP: Too many headers"),
    ],
    ids=["long", "too long", "none", "many", "too many"],
)
async def test_an_answer_whose_headers_cannot_be_read_is_not_asked_for_again(
    headers: bytes, said: str
) -> None:
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n" + headers + b"\r\n{}")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat"
        client = HttpClient()
        try:
            assert await client.call("GET", url).whole() == b"{}" and not said
        except AgentError as failed:
            assert said and said in str(failed)
        await client.close()
    assert len(asked) == 1  # it was answered, and so it was paid for


@pytest.mark.parametrize("framing", [{"Content-Length": "3"}, {"transfer-encoding": "chunked"}])
@pytest.mark.parametrize("kind", ["http", "openai"])
async def test_headers_that_say_where_a_request_ends_are_not_the_agents(
    kind: str, framing: dict[str, str]
) -> None:
    """As they are copied from a browser or from curl: the server was asked three bytes, or waited for more."""
    with JsonServer(
        Planned(body={"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})
    ) as server:
        own = {"url": server.url} if kind == "http" else {"base_url": server.url, "model": "m"}
        path = {"reply": "choices[0].message.content"} if kind == "http" else {}
        it = agent(kind, headers={"X-Team": "evals", **framing}, **own, **path)
        _, replies = await talk(it, "hi")
        await it.close()
    assert replies[0].text == "hi" and server.requests[0].headers["x-team"] == "evals"
    assert "hi" in json.dumps(server.requests[0].body)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
async def test_how_often_a_request_is_sent_is_decided_here_whatever_its_method(method: str) -> None:
    asked: list[bytes] = []

    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    async with await asyncio.start_server(leave, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat"
        client = HttpClient(retries=0)
        with pytest.raises(AgentError, match="the server closed the connection"):
            await client.call(method, url).whole()
        await client.close()
    assert len(asked) == 1


@pytest.mark.parametrize("again", [True, False], ids=["sent again", "never again"])
@pytest.mark.parametrize("leaves", ["at once", "later"])
async def test_a_server_that_closes_after_each_answer_is_asked_all_turns_once(
    again: bool, leaves: str
) -> None:
    asked: list[bytes] = []
    gone = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
            await writer.drain()
            if leaves == "later":
                await asyncio.sleep(0.01)
        writer.close()
        await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat"
        client = HttpClient(retries=0, retry_lost=again)
        for _ in range(3):
            gone.clear()
            assert await client.call("POST", url, body=b"{}").whole() == b"{}"
            if again:  # what is kept is looked at: its end has come, and was not heard yet
                await gone.wait()
        await client.close()
    assert len(asked) == 3


async def test_a_refusal_whose_body_does_not_come_is_what_its_status_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its body was waited for until the time limit, which was then all that was said."""
    monkeypatch.setattr(http_call, "ERROR_TIME", 0.05)
    refusals = [b"429 Slow Down", b"400 Bad Request"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(b"HTTP/1.1 %s\r\nretry-after: 0\r\ncontent-length: 9\r\n\r\nno" % refusals.pop(0))
        await reader.read()  # it goes on when the client has left
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat"
        client = HttpClient()
        call = client.call("POST", url, body=b"{}")
        with pytest.raises(AgentError, match=r"HTTP 400 from .*: no$"):
            async with asyncio.timeout(5):
                await call.whole()
        await client.close()
    assert not refusals


async def test_a_body_is_sent_whether_or_not_a_server_says_that_it_may_be() -> None:
    """With `Expect: 100-continue` among an agent's headers, as curl's are copied, both sides waited for each other."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        await reader.readexactly(2)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat"
        client = HttpClient()
        call = client.call("POST", url, body=b"{}", headers={"Expect": "100-continue", "X-Team": "evals"})
        async with asyncio.timeout(5):
            assert await call.whole() == b"{}"
        await client.close()
    assert b"xpect" not in heads[0] and b"X-Team: evals" in heads[0]


@pytest.mark.parametrize("reset", [True, False])
async def test_a_body_without_a_length_whose_connection_is_reset_is_not_whole(reset: bool) -> None:
    """`hello` of a server that was killed counted as all it said, and what must not be said was not in it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nhello")
        await writer.drain()
        await asyncio.sleep(0.02)
        if reset:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat"
        client = HttpClient()
        call = client.call("POST", url, body=b"{}")
        if reset:
            with pytest.raises(AgentError, match="broke off: connection reset by peer"):
                await call.whole()
            assert call.heard == "hello"
        else:
            assert await call.whole() == b"hello"
        await client.close()


async def test_what_a_server_says_unasked_is_no_answer_to_the_next_request() -> None:
    said = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal said
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                said += 1
                body = str(said).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n" + body)
                await writer.drain()
                await asyncio.sleep(0.01)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n?")
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat"
        client = HttpClient()
        answers: list[bytes] = []
        for _ in range(3):
            answers.append(await client.call("GET", url).whole())
            await asyncio.sleep(0.05)  # the loop has heard what came
        await client.close()
    assert answers == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("kind", "key", "asked"),
    [
        ("openai", "base_url", "/gw/chat/completions"),
        ("anthropic", "base_url", "/gw/v1/messages"),
        ("ollama", "base_url", "/gw/api/chat"),
        ("neuro-san", "url", "/gw/api/v1/net/streaming_chat"),
        ("nao", "url", "/gw/api/test/run"),
    ],
)
async def test_the_query_of_an_address_stays_behind_its_path(kind: str, key: str, asked: str) -> None:
    lines: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append((await reader.readline()).decode())
        writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/gw/?key=k#top"
        more = {"token": "t" * 9} if kind == "nao" else {}
        it = agent(kind, model="a:b", retries=0, **{key: url}, **more)
        with pytest.raises(AgentError, match="404"):
            await talk(it, "x", network="net", connection="http")
        await it.close()
    assert lines == [f"POST {asked}?key=k HTTP/1.1\r\n"]


async def test_a_file_of_authorities_that_cannot_be_read_is_what_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was `no connection` to the server, whose name stood there, four times."""
    for file, why in (("/no/such/file", "No such file"), (__file__, "it has no certificate")):
        monkeypatch.setenv("SSL_CERT_FILE", file)
        client = HttpClient()
        with pytest.raises(AgentError, match=f"^SSL_CERT_FILE: {file} cannot be read: {why}"):
            await client.call("GET", "https://127.0.0.1:9/chat").whole()
        await client.close()


@pytest.mark.parametrize("file", ["/no/such/file", __file__, "a certificate"])
def test_a_bundle_for_other_programs_takes_no_authority_away(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A company's own authority alone, or an old path, in REQUESTS_CA_BUNDLE: every other https server was refused."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    usual = usual_authorities().cert_store_stats()["x509_ca"]
    own = str(TLS / "ca.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", own if file == "a certificate" else file)
    assert usual_authorities().cert_store_stats()["x509_ca"] == usual + (file == "a certificate")
