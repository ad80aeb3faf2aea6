"""promptfoo's HTTP provider over TLS with certificates of its own, and where it is sent on."""

from __future__ import annotations

import asyncio
import base64
import gc
import shutil
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.promptfoo.test_promptfoo_providers import AnyServer
from tests.servers import Planned
from tests.support import TESTS
from tests.support.agents import agent, talk
from tui_eval.agents import AgentError
from tui_eval.agents.http.http_call import HttpClient
from tui_eval.config.project import ConfigError
from tui_eval.events import Exchanged
from tui_eval.guard.trust import NeedsTrust

FILES = TESTS / "data" / "tls"
OURS = {"caPath": "ca.pem"}
MINE = {**OURS, "certPath": "client.pem", "keyPath": "client.key"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in FILES.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server that wants a certificate and answers with the name in it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=FILES / "ca.pem")
    context.load_cert_chain(FILES / "server.pem", FILES / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    loops: list[asyncio.AbstractEventLoop] = []
    ports: list[int] = []
    ready, stop = threading.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        shown: Any = writer.get_extra_info("peercert")
        body = f'{{"name": "{shown["subject"][0][0][1]}"}}'.encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        ports.append(server.sockets[0].getsockname()[1])
        loops.append(asyncio.get_running_loop())
        ready.set()
        await stop.wait()
        server.close()

    # asyncio.run ends the handshakes that were refused, too; left alone they are complained about later.
    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(60)
    yield f"https://127.0.0.1:{ports[0]}/"
    loops[0].call_soon_threadsafe(stop.set)
    thread.join(60)
    gc.collect()


async def asked(url: str, root: Path, **config: Any) -> Any:
    it = agent("promptfoo-http", root, url=url, config={"maxRetries": 0, **config}, retries=0)
    try:
        _, (reply,) = await talk(it, "hi")
        return reply.output
    finally:
        await it.close()


@pytest.mark.parametrize(
    "settings",
    [
        MINE,
        {"ca": (FILES / "ca.pem").read_text(), "cert": (FILES / "client.pem").read_text(),
         "key": (FILES / "client.key").read_text(), "minVersion": "TLSv1.2"},
        {**MINE, "keyPath": "file://client-locked.key", "passphrase": "open-sesame"},
        {**MINE, "caPath": None, "rejectUnauthorized": False},
        {**OURS, "pfxPath": "client.p12", "passphrase": "open-sesame"},
        {**OURS, "pfx": base64.b64encode((FILES / "client.p12").read_bytes()).decode(), "passphrase": "open-sesame"},
        {**OURS, "jksPath": "client.jks", "keystorePassword": "open-sesame", "keyAlias": "me"},
        {**MINE, "servername": "127.0.0.1", "secureProtocol": "TLSv1_2_method"},
    ],
    ids=["files", "inline", "passphrase", "unchecked", "pfx file", "pfx", "jks", "one version"],
)  # fmt: skip
async def test_a_certificate_is_shown(folder: Path, endpoint: str, settings: dict[str, Any]) -> None:
    assert await asked(endpoint, folder, tls=settings) == {"name": "127.0.0.1"}


@pytest.mark.parametrize("place", ["ca.pem", "ca"])
async def test_authorities_are_those_of_pythons_requests_where_the_environment_names_them(
    folder: Path, endpoint: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As neuro-san's own client has it."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(AgentError, match=r"not trusted: .*; SSL_CERT_FILE names"):
        await asked(endpoint, folder, tls={**MINE, "caPath": None})
    (folder / "ca").mkdir()
    shutil.copy(FILES / "ca.pem", folder / "ca" / "fdf59c95.0")  # as `openssl rehash` calls it
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(folder / place))
    assert await asked(endpoint, folder, tls={**MINE, "caPath": None}) == {"name": "127.0.0.1"}


async def test_a_server_without_tls_is_called_so() -> None:
    with AnyServer() as server:
        url = server.url.replace("http://", "https://")
        with pytest.raises(AgentError, match=r"no answer from https://.*: no TLS: wrong version number"):
            await asked(url, Path())


async def test_what_is_no_matter_of_time_is_tried_once(endpoint: str) -> None:
    """A certificate that is not trusted was tried four times, for seconds."""
    with AnyServer() as server:
        for url in (endpoint, server.url.replace("http://", "https://")):
            client = HttpClient(retries=3)
            call, seen = client.call("GET", url), []
            with pytest.raises(AgentError, match=r"not trusted|no TLS"):
                async for event in call.open():
                    seen.append(event)
            await client.close()
            assert [type(event) for event in seen] == [Exchanged]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (None, "certificate is not trusted: (self.signed certificate|unable to get)"),
        (OURS, "it refuses TLS: certificate required|connection reset|closed the connection"),
        ({**MINE, "caPath": "client.pem"}, "certificate is not trusted: "),
        ({**MINE, "servername": "another.example"}, "certificate is not trusted: .*another.example"),
    ],
    ids=["unknown authority", "no certificate", "another authority", "another name"],
)
async def test_without_it_there_is_no_answer(
    folder: Path, endpoint: str, settings: dict[str, Any] | None, why: str
) -> None:
    with pytest.raises(AgentError, match=rf"no answer from https://127[^ ]*: .*({why})") as caught:
        await asked(endpoint, folder, tls=settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"pfxPath": "none.pfx"}, r"config\.tls\.pfxPath: none\.pfx: No such file"),
        ({"pfx": "#"}, r"config\.tls\.pfx: it is not base64"),
        (
            {"pfxPath": "client.p12", "passphrase": "wrong"},
            r"config\.tls: it is no PKCS#12 file, or the password is",
        ),
        ({"jksPath": "client.jks", "passphrase": "wrong"}, r"config\.tls: the password is wrong"),
        ({"jksPath": "client.jks"}, r"config\.tls: keystorePassword is missing"),
        ({"sessions": 1}, r"config\.tls\.sessions is not supported; known: ca, "),
        ({"caPath": "none.pem"}, r"config\.tls\.caPath: none\.pem: No such file"),
        ({"ca": "no certificate"}, r"config\.tls: "),
        ({"keyPath": "client.key"}, r"a key without a certificate"),
        ({**MINE, "keyPath": "client-locked.key"}, r"config\.tls: "),
        (
            {**MINE, "minVersion": "SSLv3"},
            r"config\.tls\.minVersion: 'SSLv3' is none of TLSv1, TLSv1\.1, TLSv1\.2, TLSv1\.3",
        ),
        ("yes", r"config\.tls: expected a mapping"),
    ],
)
def test_settings_that_cannot_be_used(folder: Path, settings: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        agent("promptfoo-http", folder, url="https://127.0.0.1/", config={"tls": settings})
    assert "\n" not in str(caught.value)


def test_not_checking_needs_trust(folder: Path) -> None:
    from tests.support.agents import services
    from tui_eval.agents import create
    from tui_eval.config.project import AgentSpec

    config = {"tls": {"rejectUnauthorized": False}}
    spec = AgentSpec(
        "it", "promptfoo-http", {"url": "https://127.0.0.1/", "config": config}, base=str(folder)
    )
    with pytest.raises(NeedsTrust, match="without checking its certificate"):
        create(spec, services(folder, trusted=False))


POST = {
    "method": "POST",
    "body": {"q": "{{prompt}}"},
    "headers": {"authorization": "Bearer mine", "x-a": "1"},
}


@pytest.mark.parametrize(
    ("status", "method", "text"), [(302, "GET", ""), (303, "GET", ""), (307, "POST", '{"q":"hi"}')]
)
async def test_redirects_of_one_host_are_followed(status: int, method: str, text: str) -> None:
    with AnyServer(Planned(status=status, body={}, headers={"Location": "/next"})) as server:
        await asked(f"{server.url}/first", Path("/"), **POST)
        assert [(seen.method, seen.path) for seen in server.requests] == [
            ("POST", "/first"),
            (method, "/next"),
        ]
        assert server.requests[1].text == text
        assert server.requests[1].headers["authorization"] == "Bearer mine"


async def test_another_host_gets_no_credentials_and_no_body() -> None:
    with AnyServer() as other, AnyServer() as server:
        moved = {"Location": f"{other.url}/there"}
        server.plan.extend(
            [Planned(status=302, body={}, headers=moved), Planned(status=307, body={}, headers=moved)]
        )
        await asked(f"{server.url}/first", Path("/"), headers=POST["headers"])
        assert other.requests[0].headers.get("authorization") is None
        assert other.requests[0].headers["x-a"] == "1"
        with pytest.raises(AgentError, match=r"redirects to another host, .*/there"):
            await asked(f"{server.url}/first", Path("/"), **POST)
        assert len(other.requests) == 1


async def test_another_host_gets_no_secret_under_whatever_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was agreed to was said of the first: a page of it that leads on sent `X-Auth-Token` anywhere."""
    monkeypatch.setenv("PAGE_TOKEN", "sekret-0123456789")
    headers = {"X-Auth-Token": "t0k3n-98765", "X-Page": "of sekret-0123456789", "x-a": "1"}
    with AnyServer() as other, AnyServer() as server:
        server.plan.append(Planned(status=302, body={}, headers={"Location": f"{other.url}/there"}))
        await asked(f"{server.url}/first", Path("/"), headers=headers)
        assert server.requests[0].headers["x-page"] == "of sekret-0123456789"
        sent = other.requests[0].headers
        assert (sent.get("x-auth-token"), sent.get("x-page"), sent["x-a"]) == (None, None, "1")


@pytest.mark.parametrize(
    "settings",
    [
        {"auth": {"type": "api_key", "keyName": "X-Shop", "value": "mine", "placement": "header"}},
        {"auth": {"type": "bearer", "token": "mine"}, "headers": {"X-Shop": "mine"}},
    ],
)
async def test_nor_what_it_is_signed_in_with(settings: dict[str, Any]) -> None:
    with AnyServer() as other, AnyServer() as server:
        server.plan.append(Planned(status=302, body={}, headers={"Location": f"{other.url}/there"}))
        await asked(f"{server.url}/first", Path("/"), **{"headers": {}, **settings})
        assert server.requests[0].headers["x-shop"] == "mine"
        sent = other.requests[0].headers
        assert (sent.get("x-shop"), sent.get("authorization")) == (None, None)


async def test_redirects_in_a_circle_end() -> None:
    with AnyServer(
        default=lambda seen: Planned(status=302, body={}, headers={"Location": "/round"})
    ) as server:
        with pytest.raises(AgentError, match=r"HTTP 302 from .*/round: it redirects"):
            await asked(f"{server.url}/round", Path("/"), validateStatus="status < 300")
        assert len(server.requests) == 21
