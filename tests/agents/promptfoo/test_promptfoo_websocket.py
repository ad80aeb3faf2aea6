"""promptfoo's websocket provider against a server on this machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import WSMsgType, web

from tests.agents.promptfoo.test_promptfoo_providers import provider
from tests.servers.base import Seen, Server
from tests.support.agents import of, services, talk
from tests.support.waiting import until
from tui_eval.agents import AgentError, Request, create
from tui_eval.agents.promptfoo import promptfoo_websocket
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.events import Exchanged, Held, Retrying
from tui_eval.model import Reply


class Talker(Server):
    """Answers each message with `says`. /closes goes away at once, /refuses with a reason, /breaks after a message,
    /on-and-on never ends nor says goodbye, /slowly pauses between its words, /moved is elsewhere, /busy refuses as
    often as `busy` says."""

    says: list[str]
    busy = 0

    def routes(self, app: web.Application) -> None:
        for path in ("/chat", "/closes", "/refuses", "/breaks", "/slowly"):
            app.router.add_get(path, self.chat)
        app.router.add_get("/on-and-on", self.on_and_on)
        app.router.add_get("/moved", self.moved)
        app.router.add_get("/busy", self.refused)

    async def on_and_on(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.receive()
        with suppress(ConnectionError):
            for text in [*self.says, *["more"] * 1000]:
                await socket.send_str(text)
                await asyncio.sleep(0.01)
        return socket

    async def moved(self, request: web.Request) -> web.Response:
        raise web.HTTPFound("/chat")

    async def refused(self, request: web.Request) -> web.WebSocketResponse:
        self.busy -= 1
        if self.busy >= 0:
            raise web.HTTPServiceUnavailable
        return await self.chat(request)

    async def chat(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("v2",))
        await socket.prepare(request)
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                self.requests.append(
                    Seen("WS", request.path_qs, request.headers, message.data, socket.ws_protocol)
                )
                if request.path == "/closes":
                    break
                if request.path == "/breaks":
                    await socket.send_str(self.says[0])
                    await socket.close(code=1011, message=b"boom")
                    break
                if request.path == "/refuses":
                    await socket.close(code=1008, message=b"invalid token")
                    break
                for text in self.says:
                    if request.path == "/slowly":
                        await asyncio.sleep(0.15)
                    await socket.send_str(text)
        return socket


@pytest.fixture
def server() -> Iterator[Talker]:
    with Talker() as running:
        running.says = ['{"answer": "hello", "n": 1}']
        yield running


async def asked(
    server: Talker, path: str = "/chat", root: Path | str = "/", **config: Any
) -> tuple[list[Any], Reply]:
    url = f"ws://127.0.0.1:{server.port}{path}"
    agent = provider({"id": url, "config": {"messageTemplate": "{{prompt}}", **config}}, root)
    try:
        events, replies = await talk(agent, Request(1, "hi", vars={"v": "x"}))
        return events, replies[0]
    finally:
        await agent.close()


@pytest.mark.parametrize(
    ("transform", "output"),
    [
        (None, {"answer": "hello", "n": 1}),
        ("data.answer", "hello"),
        ("({output: data.answer, metadata: {m: 1}})", "hello"),
        ("data.n", 1),
    ],
)
async def test_one_answer(server: Talker, transform: str | None, output: Any) -> None:
    config = {"transformResponse": transform} if transform else {}
    _, reply = await asked(server, **config)
    assert (reply.text if reply.output is None else reply.output) == output
    assert reply.metadata == ({"m": 1} if transform and "metadata" in transform else None)


async def test_what_is_sent(server: Talker) -> None:
    message = '{"q": "{{prompt}}", "v": "{{v}}"}'
    headers = {"X-A": "{{v}}"}
    events, _ = await asked(
        server, "/chat?v={{v}}", messageTemplate=message, headers=headers, protocols="v1, v2"
    )
    seen = server.requests[0]
    assert (seen.path, seen.text, seen.body) == ("/chat?v=x", '{"q": "hi", "v": "x"}', "v2")
    assert seen.headers["X-A"] == "{{v}}"
    exchange = of(events, Exchanged)[0].exchange
    assert exchange.request.endswith('/chat?v=x\n\n{"q": "hi", "v": "x"}')
    assert exchange.response == '{"answer": "hello", "n": 1}'


@pytest.mark.parametrize("where", ["inline", "file"])
async def test_an_answer_in_pieces(server: Talker, tmp_path: Path, where: str) -> None:
    server.says = ["one ", "two", "END", "never read"]
    code = (
        "(accumulator, data, context) => data.data === 'END'\n"
        "  ? [{output: accumulator.text + '|' + context.vars.v}, true]\n"
        "  : [{text: (accumulator.text ?? '') + data.data}, false]"
    )
    (tmp_path / "s.js").write_text(f"module.exports = {code};")
    _, reply = await asked(server, root=tmp_path, streamResponse=code if where == "inline" else "file://s.js")
    assert reply.text == "one two|x"


@pytest.mark.parametrize(
    ("path", "config", "said"),
    [
        ("/chat", {"transformResponse": "({error: 'no such order'})"}, "^no such order$"),
        ("/chat", {"transformResponse": "data.nope"}, "found no output in the answer"),
        ("/chat", {"transformResponse": "({output: data.nope})"}, "transformResponse found no output"),
        (
            "/chat",
            {"transformResponse": "({output: data.nope, metadata: {}})"},
            "transformResponse found no output",
        ),
        ("/chat", {"streamResponse": "(a, d) => [{output: a.nope}, true]"}, "streamResponse found no output"),
        ("/chat", {"transformResponse": "data.a.b"}, r"config\.transformResponse: TypeError"),
        ("/chat", {"streamResponse": "1"}, r"must return \[accumulator, isComplete\]"),
        ("/closes", {}, "closed the connection before it answered"),
        ("/refuses", {}, r"before it answered \(1008: invalid token\)$"),
        (
            "/breaks",
            {"streamResponse": "(a, d) => [a, false]"},
            r"before its answer was complete \(1011: boom\)$",
        ),
        ("/none", {}, "refuses the connection: HTTP 404"),
        ("/moved", {"headers": {"X-Api-Key": "k"}}, "redirects to /chat: that is not followed"),
        ("/chat", {"protocols": "v3"}, "speaks none of the protocols"),
        ("/chat", {"headers": {"X": "a\nb"}}, "^this cannot be sent to "),
    ],
)
async def test_what_fails_is_said(server: Talker, path: str, config: dict[str, Any], said: str) -> None:
    with pytest.raises(AgentError, match=said):
        await asked(server, path, **config)
    if path == "/moved":
        assert not server.requests, "its key went along"


async def test_an_answer_counts_whose_server_never_says_goodbye(server: Talker) -> None:
    """The farewell was waited for within the limit, ten seconds for each message that came meanwhile."""
    began, limit = time.monotonic(), 60.0
    _, reply = await asked(server, "/on-and-on", timeoutMs=limit * 1000, transformResponse="data.answer")
    assert reply.text == "hello"
    assert (reply.latency_ms or 0) < limit * 500
    assert time.monotonic() - began < limit


async def test_the_limit_ends_with_the_first_message(server: Talker) -> None:
    server.says = ["one ", "two ", "three ", "END"]
    code = "(a, d) => d.data === 'END' ? [{output: a.t}, true] : [{t: (a.t ?? '') + d.data}, false]"
    _, reply = await asked(server, "/slowly", timeoutMs=400, streamResponse=code)
    assert reply.text == "one two three "


async def test_messages_without_end_are_too_large(server: Talker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promptfoo_websocket, "LARGEST", 2_000_000)
    server.says = ["x" * 600_000] * 4
    with pytest.raises(AgentError, match="is larger than 2 MB"):
        await asked(server, streamResponse="(a, d) => [{n: 1}, false]")


async def test_a_server_that_is_busy_is_asked_again(server: Talker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        promptfoo_websocket, "backoff", lambda attempt, wished=None: 0.01 if wished is None else wished
    )
    server.busy = 2
    events, reply = await asked(server, "/busy", transformResponse="data.answer")
    assert (reply.text, len(of(events, Retrying)), len(of(events, Exchanged))) == ("hello", 2, 3)
    server.busy = 100
    with pytest.raises(AgentError, match="refuses the connection: HTTP 503") as caught:
        await asked(server, "/busy")
    assert caught.value.status == 503
    assert server.busy == 100 - 1 - promptfoo_websocket.RETRIES


async def test_it_is_asked_again_as_often_as_the_entry_says_and_at_its_rate(
    server: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        promptfoo_websocket, "backoff", lambda attempt, wished=None: 0.01 if wished is None else wished
    )
    config = {"messageTemplate": "{{prompt}}"}
    url = f"ws://127.0.0.1:{server.port}/busy"
    spec = AgentSpec("it", "websocket", {"url": url, "config": config}, retries=0)
    server.busy = 1
    with pytest.raises(AgentError, match="HTTP 503"):
        await talk(create(spec, services()), "hi")
    server.busy = 1
    paced = create(msgspec.structs.replace(spec, retries=1, rate_requests=60), services())
    paced.pace.claim(0)  # as the engine does before the turn
    events, _ = await talk(paced, "hi")
    assert of(events, Held)[0].seconds > 0


async def test_a_null_is_no_output_and_what_javascript_takes_for_no_json_is_text(server: Talker) -> None:
    _, reply = await asked(server, transformResponse="data.none ?? null")
    assert (reply.text, reply.text_missing) == ("", True)
    server.says = ['{"answer": NaN}']
    _, reply = await asked(server)
    assert reply.text == '{"answer": NaN}'


async def test_an_answer_that_is_too_large_is_said_to_be(
    server: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was `closed the connection before it answered`: it was we who did."""
    monkeypatch.setattr(promptfoo_websocket, "LARGEST", 2_000_000)
    server.says = ["x" * 2_100_000]
    with pytest.raises(AgentError, match="is larger than 2 MB") as caught:
        await asked(server)
    assert caught.value.evidence.code == "too-large"


async def test_a_server_that_says_nothing(server: Talker) -> None:
    server.says = []
    with pytest.raises(AgentError, match=r"did not answer within 0\.05 s"):
        await asked(server, timeoutMs=50)


@pytest.mark.parametrize(
    ("url", "said"),
    [("ws://127.0.0.1:9/", "connection refused"), ("ws://{{v}}", r"is not a ws\(s\) URL|no answer")],
)
async def test_no_server(url: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        promptfoo_websocket, "backoff", lambda attempt, wished=None: 0.01 if wished is None else wished
    )
    agent = provider({"id": "websocket", "config": {"url": url, "messageTemplate": "x"}})
    with pytest.raises(AgentError, match=said):
        await talk(agent, Request(1, "hi", vars={"v": "[bad"}))
    await agent.close()


def test_a_message_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"config\.messageTemplate is missing"):
        provider("ws://127.0.0.1:9/")


async def test_a_cut_attempt_closes_the_connection(server: Talker) -> None:
    server.says = []
    task = asyncio.ensure_future(asked(server))
    await until(lambda: server.requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
