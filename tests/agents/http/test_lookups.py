"""Names that nobody answers for: who asks for one waits for it, and nobody else."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tui_eval.agents.http.http_connections import Connections, resolver
from tui_eval.engine.service.process import run_engine
from tui_eval.guard import fair_share

DEAD = [f"dead{number}.example.test" for number in range(40)]


class Silent:
    """A resolver that knows names for addresses of this machine, and gives no answer for those that are dead."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.asked: list[str] = []
        self._really = socket.getaddrinfo

    def __call__(self, host: Any, port: Any, family: int, kind: int, proto: int, flags: int) -> Any:
        if flags & socket.AI_NUMERICHOST or host not in DEAD:
            return self._really(host, port, family, kind, proto, flags)
        self.asked.append(host)
        self.over.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    made = Silent()
    monkeypatch.setattr(socket, "getaddrinfo", made)
    yield made
    made.over.set()


@asynccontextmanager
async def healthy() -> AsyncIterator[int]:
    """The port of a server that answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def _by_http(silent: Silent) -> int:
    async def get(host: str, port: int) -> int:
        connections = Connections(f"http://{host}/")
        try:
            return (await connections.request("GET", f"http://{host}:{port}/", {}, None)).status
        finally:
            await connections.close()

    async with healthy() as port:
        dead = [asyncio.ensure_future(get(host, port)) for host in DEAD]
        while len(silent.asked) < len(DEAD):  # noqa: ASYNC110  # it is threads that ask
            await asyncio.sleep(0.01)
        status = await get("localhost", port)
        for one in dead:
            one.cancel()
        await asyncio.gather(*dead, return_exceptions=True)
    return status


async def _by_the_loop(silent: Silent) -> int:
    """As httpx, which webhooks are called with, looks names up."""
    loop = asyncio.get_running_loop()
    dead = [asyncio.ensure_future(loop.getaddrinfo(host, 80)) for host in DEAD]
    while len(silent.asked) < len(DEAD):  # noqa: ASYNC110  # it is threads that ask
        await asyncio.sleep(0.01)
    found = await loop.getaddrinfo("localhost", 80)
    for one in dead:
        one.cancel()
    await asyncio.gather(*dead, return_exceptions=True)
    return 200 if found else 0


@pytest.mark.parametrize("ask", [_by_http, _by_the_loop])
def test_names_that_nobody_answers_for_stop_no_other_agent(silent: Silent, ask: Any) -> None:
    """uvloop looks two names up at a time: two dead ones stopped every agent that has a name."""

    async def in_time() -> int:
        async with asyncio.timeout(20):
            return await ask(silent)

    assert run_engine(in_time()) == 200


def test_a_name_is_looked_up_once_at_a_time_and_its_failure_is_all_askers(silent: Silent) -> None:
    async def both() -> list[Any]:
        names = resolver()
        asked = [asyncio.ensure_future(names.resolve(DEAD[0], 80)) for _ in range(3)]
        while not silent.asked:  # noqa: ASYNC110  # it is a thread that asks
            await asyncio.sleep(0.01)
        asked[0].cancel()
        silent.over.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    gone, *failed = run_engine(both())
    assert isinstance(gone, asyncio.CancelledError) and silent.asked == DEAD[:1]
    assert [type(one) for one in failed] == [socket.gaierror] * 2


def test_an_address_is_looked_up_by_nobody(silent: Silent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_share, "Thread", None)

    async def addresses() -> list[Any]:
        loop = asyncio.get_running_loop()
        return [
            (await loop.getaddrinfo(host, 80, type=socket.SOCK_STREAM))[0][4][0]
            for host in ("127.0.0.1", "::1")
        ]

    assert run_engine(addresses()) == ["127.0.0.1", "::1"]
