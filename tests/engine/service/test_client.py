"""The client of an engine, and what it keeps between runs, where something comes in between."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from pathlib import Path

import pytest

from tui_eval.config.project import Config
from tui_eval.engine.service.client import EngineClient, EngineError
from tui_eval.formats.reading import SuiteCache
from tui_eval.guard.trust import Trust


async def test_an_answer_that_nobody_waits_for_any_more_is_not_the_next_ones(tmp_path: Path) -> None:
    asked: asyncio.Queue[dict] = asyncio.Queue()
    go_on = asyncio.Event()

    async def engine(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            message = json.loads(line)
            asked.put_nowait(message)
            await go_on.wait()
            writer.write(json.dumps({"id": message["id"], "ok": True, "cancelled": message["id"]}).encode())
            writer.write(b"\n")
        writer.close()

    socket = tmp_path / "engine-1-abcdef.sock"
    async with await asyncio.start_unix_server(engine, str(socket)):
        (tmp_path / "engine.json").write_text(json.dumps({"socket": str(socket)}))
        client = EngineClient(tmp_path)
        await client.attach(tmp_path)
        first = asyncio.create_task(client.cancel("run"))
        await asked.get()
        first.cancel()  # its screen is gone
        with pytest.raises(asyncio.CancelledError):
            await first
        go_on.set()
        assert [await client.cancel("run") for _ in range(3)] == [2, 3, 4]
        await client.close()


@pytest.mark.parametrize(
    "said",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"[1]\n", b"{}\n", b'{"ok": true}\n', b'{"ok": "OK"}\n', b"\xff\xfe\n",
     b'{"ok": true, "cancelled": "all"}\n', b"x" * 10_000],
    ids=["http", "list", "empty", "ok alone", "ok of another kind", "no text", "no number", "without end"],
)  # fmt: skip
async def test_what_answers_in_place_of_an_engine_is_called_another_program(
    tmp_path: Path, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_eval.engine.service.client._LINE_LIMIT", 1000)

    async def foreign(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(said)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        await reader.read()
        writer.close()

    socket = tmp_path / "engine-1-abcdef.sock"
    async with await asyncio.start_unix_server(foreign, str(socket)):
        (tmp_path / "engine.json").write_text(json.dumps({"socket": str(socket)}))
        client = EngineClient(tmp_path)
        await client.attach(tmp_path)
        with pytest.raises(EngineError, match=r"\.sock is another program, no engine of tui-eval$"):
            await asyncio.wait_for(client.cancel("run"), 20)
        assert not client.connected


async def test_in_place_of_an_engine_that_was_attached_to_none_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_eval.engine.service.client._spawn", lambda *_: pytest.fail("started another"))
    lines: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def engine(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.put_nowait(writer)
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(json.dumps({"id": json.loads(line)["id"], "ok": True, "cancelled": 7}).encode())
                writer.write(b"\n")

    socket = tmp_path / "engine-1-abcdef.sock"
    client = EngineClient(tmp_path)
    async with await asyncio.start_unix_server(engine, str(socket)) as server:
        (tmp_path / "engine.json").write_text(json.dumps({"socket": str(socket)}))
        await client.attach(tmp_path)
        (await lines.get()).close()
        async with asyncio.timeout(20):
            while client.connected:  # noqa: ASYNC110 - the other end's
                await asyncio.sleep(0.001)
        assert await client.cancel("run") == 7, "one that is there is connected to again"
        server.close()
        (await lines.get()).close()
        async with asyncio.timeout(20):
            while client.connected:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.001)
    with pytest.raises(EngineError, match=f"the engine of run {tmp_path.name} has ended"):
        await client.cancel("run")
    await client.close()


@pytest.mark.parametrize("facts", [[], {}, {"socket": 1}, {"socket": "a\0b"}, {"socket": "/" + "x" * 300}])
async def test_where_an_engine_is_said_to_be_can_be_anything(tmp_path: Path, facts: object) -> None:
    (tmp_path / "engine.json").write_text(json.dumps(facts))
    with pytest.raises(EngineError, match=r"no engine that can be reached|has ended"):
        await EngineClient(tmp_path).attach(tmp_path)


async def test_what_else_listens_here_is_sent_nothing_though_a_run_names_it(tmp_path: Path) -> None:
    """A folder that somebody has sent may name any socket: docker's, or a link to it."""
    heard: list[bytes] = []

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readline())
        writer.close()

    socket, link = tmp_path / "docker.sock", tmp_path / "engine-1-abcdef.sock"
    async with await asyncio.start_unix_server(other, str(socket)):
        link.symlink_to(socket)
        for named in (socket, link):
            (tmp_path / "engine.json").write_text(json.dumps({"pid": os.getpid(), "socket": str(named)}))
            with pytest.raises(EngineError, match="no engine that can be reached"):
                await EngineClient(tmp_path).attach(tmp_path)
    assert not heard


def test_a_suite_written_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text("agent: a\ntest_cases: [{name: one, input: x}]\n")
    moment = time.time_ns() + 60 * 10**9  # later than the reading begins
    os.utime(file, ns=(moment, moment))
    cache, config = SuiteCache(), Config(root=tmp_path)

    def names() -> list[str]:
        return [case.name for suite in cache.load([file], config, Trust()) for case in suite.cases]

    assert names() == ["one"]
    # Of the same size, at the same time as far as the file system can tell.
    file.write_text(file.read_text().replace("one", "two"))
    os.utime(file, ns=(moment, moment))
    assert names() == ["two"]
    os.utime(file, ns=(moment - 120 * 10**9,) * 2)
    kept = cache.load([file], config, Trust())
    assert cache.load([file], config, Trust())[0] is kept[0], "what did not change is not read again"
