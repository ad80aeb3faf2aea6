"""Names that nobody answers for: who asks for one waits for it, and nobody else."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tui_eval import causes
from tui_eval.agents.http.http_connections import Connections, resolver
from tui_eval.engine.attempt import time_limits
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.service.process import run_engine
from tui_eval.guard import fair_share
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader

DEAD = [f"dead{number}.example.test" for number in range(40)]


class Silent:
    """A resolver that knows names for addresses of this machine, and gives no answer for those that are dead."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.asked: list[str] = []
        self._really = socket.getaddrinfo

    def __call__(self, host: Any, port: Any, family: int, kind: int, proto: int, flags: int) -> Any:
        name = host.decode() if isinstance(host, bytes) else host  # httpx gives bytes
        if flags & socket.AI_NUMERICHOST or name not in DEAD:
            return self._really(host, port, family, kind, proto, flags)
        self.asked.append(name)
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
        connections = Connections()
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


LATE_CASES = """\
test_cases:
  - {name: one, input: hello, expected: {should_contain: [x]}}
  - {name: two, input: hello, expected: {should_contain: [x]}}
"""
LATE_PROVIDERS = """\
prompts: ['{{q}}']
providers:
  - {id: 'ws://dead2.example.test/', config: {messageTemplate: '{}', timeoutMs: 300}}
  - echo
tests: [{vars: {q: hi}, assert: [{type: webhook, value: 'http://dead3.example.test/'}]}]
"""
UNRESOLVED = "the host name dead1.example.test was not resolved"


@pytest.mark.real
@pytest.mark.usefixtures("silent")
def test_a_time_limit_that_a_name_used_up_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It read as the agent's silence (`no answer in 9 s`), for who asked first and who waited with them."""
    monkeypatch.setattr(time_limits, "AT_LEAST", 0.3)
    (tmp_path / "tui_eval.yaml").write_text(
        "agents: {bot: {type: http, url: 'http://dead1.example.test/', retries: 0}}\n"
    )
    (tmp_path / "suite.yaml").write_text(LATE_CASES)
    (tmp_path / "promptfooconfig.yaml").write_text(LATE_PROVIDERS)

    def attempts(file: str, *agents: str, timeout: float) -> list[Attempt]:
        async def go() -> Path:
            request = RunRequest(
                paths=[str(tmp_path / file)], agents=list(agents), timeout=timeout, concurrency=2, trust=True
            )
            active = await asyncio.to_thread(prepare, request)
            await active.execute()
            assert active.writer is not None
            return active.writer.folder

        reader = RunReader(run_engine(go()))
        return [attempt for row in reader.attempts() if (attempt := reader.attempt(row.id)) is not None]

    for attempt in attempts("suite.yaml", "bot", timeout=0.5):
        assert attempt.message == f"timed out after 0.5 s: {UNRESOLVED}"
        assert causes.cause_of(attempt) == "no answer in 0.5 s: host name dead1.example.test not resolved"
    # Much longer than the provider's own limit: on a busy machine the nearer one strikes first all the same.
    found = attempts("promptfooconfig.yaml", timeout=4.0)
    by_socket, judged = sorted(found, key=lambda one: one.agent, reverse=True)
    assert by_socket.message.endswith(
        "did not answer within 0.3 s: " + UNRESOLVED.replace("the", "its", 1).replace("dead1", "dead2")
    )
    assert causes.cause_of(by_socket).endswith(": host name dead2.example.test not resolved")
    assert f"s: {UNRESOLVED.replace('dead1', 'dead3')} (the attempt's time" in judged.verdicts[0].reason


def test_an_address_is_looked_up_by_nobody(silent: Silent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_share, "Thread", None)

    async def addresses() -> list[Any]:
        loop = asyncio.get_running_loop()
        return [
            (await loop.getaddrinfo(host, 80, type=socket.SOCK_STREAM))[0][4][0]
            for host in ("127.0.0.1", "::1")
        ]

    assert run_engine(addresses()) == ["127.0.0.1", "::1"]
