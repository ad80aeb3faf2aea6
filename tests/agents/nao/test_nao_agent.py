"""nao: signing in, one test in one piece, the live stream, every recorded error."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.servers import NaoServer, Planned
from tests.support import TESTS
from tests.support.agents import agent, context, kinds, of, services, talk
from tui_eval.agents import Agent, AgentError, Request, create
from tui_eval.agents.nao import nao_auth
from tui_eval.agents.nao.nao_agent import NO_RESULT, Stream, read_run
from tui_eval.config.project import AgentSpec, fill
from tui_eval.events import Exchanged, ReasoningDelta, TextDelta, ToolCall, ToolCallStarted, ToolResult
from tui_eval.guard.trust import NeedsTrust, Trust

VECTORS = TESTS / "vectors"
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (VECTORS / "nao_http.jsonl").read_text().splitlines()
]


@pytest.fixture
def server() -> Iterator[NaoServer]:
    with NaoServer() as running:
        yield running


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("NAO_USERNAME", "NAO_PASSWORD", "BACKEND_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def signed(server: NaoServer, **more: Any) -> Agent:
    return agent("nao", url=server.url, email=server.email, password=server.password, retries=0, **more)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
async def test_recorded_exchanges(row: dict[str, Any], server: NaoServer) -> None:
    server.plan.append(Planned(body=row["response"], status=row["status"]))
    asked, answer = row["request"], row["response"]
    model = ":".join(asked["model"].values())
    request = Request(1, asked.get("prompt"), sql=asked.get("sql"), database=asked.get("databaseId"))
    if row["status"] != 200:
        with pytest.raises(AgentError) as caught:
            await talk(signed(server), request, model=model)
        said = " ".join((answer.get("message") or answer["error"]).split())
        refused = row["id"] in ("badexpected", "writeexpected")
        assert (f"HTTP {row['status']}" in str(caught.value)) is not refused
        assert (said.removeprefix("Warehouse SQL request denied: ") if refused else said[:60]) in str(
            caught.value
        )
        assert "\n" not in str(caught.value)
        return
    events, replies = await talk(signed(server), request, model=model)
    sent = server.requests[-1].body
    assert {key: sent[key] for key in sent} == {
        key: asked[key] for key in asked if key not in ("meta",) and asked[key] != ""
    }
    reply = replies[0]
    assert reply.text == answer["text"] and reply.model == model
    assert len(of(events, ToolCall)) == len(of(events, ToolResult)) == len(answer["toolCalls"])
    for call, result in zip(answer["toolCalls"], of(events, ToolResult), strict=True):
        assert result.result == call.get("result")
        assert result.error == (None if "result" in call else NO_RESULT)
    assert reply.usage is not None and reply.usage.input_tokens == answer["usage"]["inputTotalTokens"]
    assert reply.cost == answer["cost"].get("totalCost")
    verification = answer.get("verification")
    assert reply.verified == (verification is not None)
    if verification:
        assert reply.rows == verification["data"] and reply.rows_error == verification.get("error")
        assert reply.expected_rows == verification["expectedData"]
        assert reply.rows_columns == verification["expectedColumns"] and reply.rows_sql == verification.get(
            "sql"
        )


async def test_signs_in_once_and_again_after_401(server: NaoServer) -> None:
    it = signed(server)
    sessions = [talk(it, f"q{i}") for i in range(5)]
    done = await asyncio.gather(*sessions)
    assert server.sign_ins == 1
    shown = " ".join(event.exchange.request for events, _ in done for event in of(events, Exchanged))
    assert server.password not in shown and "token-number" not in shown
    server.tokens.clear()
    events, replies = await talk(it, "again")
    assert server.sign_ins == 2 and replies[0].text == "You asked: again"
    assert [event.exchange.status for event in of(events, Exchanged)] == [401, 200]
    server.tokens = _Never()
    with pytest.raises(AgentError, match=r"Unauthorized\. Please check your credentials\."):
        await talk(it, "x")
    await it.close()


class _Never(set[str]):
    def __contains__(self, item: object) -> bool:
        return False


async def test_where_credentials_come_from(
    server: NaoServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(AgentError, match="no nao credentials"):
        await talk(agent("nao", url=server.url), "x")
    with pytest.raises(AgentError, match=r"sign-in at .* as a@b.co: Invalid email or password"):
        await talk(agent("nao", url=server.url, email="a@b.co", password="wrong"), "x")
    (tmp_path / ".nao").mkdir()
    (tmp_path / ".nao" / "auth.json").write_text('{"token": "stored-token"}')
    server.tokens.add("stored-token")
    await talk(agent("nao", url=server.url), "x")
    assert server.requests[-1].headers["Authorization"] == "Bearer stored-token"
    elsewhere = AgentSpec("it", "nao", {"url": "http://elsewhere.example"})
    with pytest.raises(NeedsTrust, match=r"send the sign-in of .* to elsewhere\.example"):
        create(elsewhere, services(trusted=False))
    monkeypatch.setenv("NAO_USERNAME", server.email)
    monkeypatch.setenv("NAO_PASSWORD", server.password)
    monkeypatch.setenv("BACKEND_URL", server.url)
    filled = fill(AgentSpec("it", "nao", {}), Trust())
    await talk(create(filled, services()), "x")
    assert server.requests[-1].headers["Authorization"].startswith("Bearer token-number")
    assert server.requests[-1].body["model"] == {"provider": "openai", "modelId": "gpt-4.1"}
    assert json.loads((tmp_path / ".nao" / "auth.json").read_text()) == {"token": "stored-token"}
    assert os.environ["NAO_USERNAME"]


def browser(found: list[str], change: str = "") -> Callable[[str], None]:
    """A person who goes to the address told, in a browser of their own; `change` spoils the state."""

    def go(line: str) -> None:
        address = next(word for word in line.split() if word.startswith("http"))
        found.append(address)

        def visit() -> None:
            with suppress(OSError), urllib.request.urlopen(address + change, timeout=60) as answer:
                answer.read()

        threading.Thread(target=visit, daemon=True).start()

    return go


async def test_signs_in_with_a_browser_where_nothing_else_is_given(
    server: NaoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nao_auth, "_approved", {})
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    found: list[str] = []
    it = agent("nao", url=server.url)
    await asyncio.gather(*(it.prepare(browser(found)) for _ in range(3)))
    assert len(found) == 1 and found[0].startswith(f"{server.url}/cli-login?port=")
    _, replies = await talk(it, "q")
    assert replies[0].text == "You asked: q" and server.sign_ins == 1
    # The next run of this process need not ask again; one whose token ended asks once.
    another = agent("nao", url=server.url)
    await another.prepare(browser(found))
    await talk(another, "q")
    assert server.sign_ins == 1
    server.tokens.clear()
    await talk(another, "q")
    assert server.sign_ins == 2 and len(found) == 2
    await it.close()
    await another.close()


async def test_nobody_is_sent_to_a_page_that_no_server_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nao_auth, "_approved", {})
    lines: list[str] = []
    it = agent("nao", url="http://127.0.0.1:9", retries=0)
    with pytest.raises(AgentError, match=r"no answer from http://127\.0\.0\.1:9/: connection refused"):
        await it.prepare(lines.append)
    assert not lines
    await it.close()


async def test_a_sign_in_that_is_never_answered_ends_and_is_not_waited_for_by_each_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was waited for ten minutes without a word, whatever --timeout said, and then by the next attempt."""
    asked: list[bytes] = []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n"))
        await reader.read()
        writer.close()

    monkeypatch.setattr(nao_auth, "SIGN_IN_TIME", 0.2)
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        it = agent("nao", url=url, email="a@b.co", password="pw")
        said = await asyncio.gather(*(prepared(it) for _ in range(5)))
        assert said == [f"sign-in at {url} as a@b.co: no answer within 0.2 s"] * 5 and len(asked) == 1
        assert await prepared(it) == said[0] and len(asked) == 2  # later it is tried again
        await it.close()


async def prepared(it: Agent) -> str:
    """What goes wrong before an attempt."""
    with pytest.raises(AgentError) as failed:
        await it.prepare(None)
    return str(failed.value)


async def test_a_browser_sign_in_that_fails(server: NaoServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")
    lines: list[str] = []

    async def exchange(code: str) -> str:
        return f"token for {code}"

    with pytest.raises(AgentError, match="nobody approved within 0 s"):
        await nao_auth.sign_in(server.url, exchange, lines.append, wait=0.05)
    assert "within 0 minutes" in lines[0] and "ssh -L " in lines[0]

    def refuse(line: str) -> None:
        port = re.search(r"port=(\d+)", line)
        state = re.search(r"state=([\w-]+)", line)
        assert port and state
        callback = f"http://127.0.0.1:{port[1]}/callback"

        def visit() -> None:
            with suppress(OSError):  # HTTP 400: not this sign-in
                urllib.request.urlopen(f"{callback}?code=stolen&state=wrong", timeout=60).close()
            urllib.request.urlopen(f"{callback}?error=denied&state={state[1]}", timeout=60).close()

        threading.Thread(target=visit, daemon=True).start()

    with pytest.raises(AgentError, match="refused in the browser"):
        await nao_auth.sign_in(server.url, exchange, refuse)
    it = agent("nao", url=server.url)
    with pytest.raises(AgentError, match="no nao credentials"):
        await it.prepare(None)
    with pytest.raises(AgentError, match=r"sign-in at .*: Invalid or expired authorization code"):
        await it.credentials.exchange(it.client, "nope")  # type: ignore[attr-defined]
    await it.close()


async def test_no_server_and_bad_models() -> None:
    it = agent("nao", url="http://127.0.0.1:9", token="a-long-token", retries=0)
    with pytest.raises(AgentError, match=r"no answer from http://127\.0\.0\.1:9/api/test/run"):
        await talk(it, "x")
    with pytest.raises(AgentError, match="must be provider:model_id"):
        await it.open(context(model="gpt-4.1"))


async def test_declared_prices_and_extraction(server: NaoServer) -> None:
    options = {"url": server.url, "email": server.email, "password": server.password}
    prices = {"openai:gpt-4.1": {"output": 2.0}, "other": {"output": 3.0}}
    spec = AgentSpec("it", "nao", options, extraction="guide")
    it = create(spec, services(nao_costs=prices))
    await talk(it, Request(1, "q", sql="select 1", database="shop"))
    assert server.requests[-1].body["meta"] == {"costs": {"output": 2.0}}
    assert "sql" not in server.requests[-1].body and server.requests[-1].body["databaseId"] == "shop"
    await talk(it, "q", model="x:other")
    assert server.requests[-1].body["meta"] == {"costs": {"output": 3.0}}
    await it.close()


async def test_a_token_that_is_given_goes_before_a_sign_in_which_renews_it(server: NaoServer) -> None:
    it = agent("nao", url=server.url, token="given-token", email=server.email, password=server.password)
    server.tokens.add("given-token")
    await talk(it, "x")
    assert server.sign_ins == 0 and server.requests[-1].headers["Authorization"] == "Bearer given-token"
    server.tokens.clear()
    await talk(it, "x")
    assert server.sign_ins == 1 and server.requests[-1].headers["Authorization"] == "Bearer token-number-1"
    await it.close()


async def test_follow_ups_tell_what_was_said(server: NaoServer) -> None:
    it = signed(server)
    await talk(it, "first", "second")
    prompts = [seen.body["prompt"] for seen in server.requests if "prompt" in (seen.body or {})]
    assert prompts[0] == "first" and "User: first" in prompts[1] and prompts[1].endswith("User: second")


def live(server: NaoServer, name: str) -> Agent:
    server.plan.append(Planned(raw=(VECTORS / "nao_sse" / f"{name}.txt").read_bytes()))
    return signed(server, live=True)


async def test_live_tools_and_text(server: NaoServer) -> None:
    it = live(server, "ok_one_tool")
    server.plan.append(Planned(raw=(VECTORS / "nao_sse" / "reasoning.txt").read_bytes()))
    events, replies = await talk(it, "What is the total revenue?", "and now?")
    assert kinds(events)[:4] == ["ToolCallStarted", "ToolCall", "ToolResult", "TextDelta"]
    assert replies[0].text == "Total revenue is **145.00**." and replies[0].finish_reason == "stop"
    call = of(events, ToolCall)[0]
    assert call.name == "execute_sql" and call.call_id == of(events, ToolCallStarted)[0].call_id
    assert of(events, ToolResult)[0].result["data"] == [{"total_revenue": 145}]
    assert not it.capabilities.tokens
    assert server.requests[-1].body["chatId"] == "715c47d7-559f-4d59-8acb-87b73de2a088"
    assert "".join(event.text for event in of(events, ReasoningDelta)) == "Let me think."
    assert "".join(event.text for event in of(events, TextDelta)) == replies[0].text + "I just say 12."


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("llm_error", "Failed after 3 attempts. Last error: mock exploded"),
        ("stopped", "stopped: The operation was"),
    ],
)
async def test_live_failures(server: NaoServer, name: str, message: str) -> None:
    with pytest.raises(AgentError) as caught:
        await talk(live(server, name), "x")
    assert message in str(caught.value)


async def test_live_tool_errors_and_cut_streams(server: NaoServer) -> None:
    events, replies = await talk(live(server, "tool_error"), "x")
    assert "Binder Error" in of(events, ToolResult)[0].error and replies[0].text == "I could not."
    server.plan.append(Planned(raw=b'data: {"type":"text-delta","delta":"half"}\n\n'))
    with pytest.raises(AgentError, match="ended before it was complete") as caught:
        await talk(signed(server, live=True), "x")
    assert caught.value.answer == "half"


def test_an_answer_is_all_that_its_last_step_says() -> None:
    """Of a step with several texts (what is quoted stands apart) only the last one was judged."""
    stream = Stream(1)
    for part in (
        {"type": "start-step"},
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "delta": "Let me look. "},
        {"type": "start-step"},
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "delta": "It is 5 "},
        {"type": "text-start", "id": "2"},
        {"type": "text-delta", "delta": "euro."},
        {"type": "finish", "finishReason": "stop"},
    ):
        stream.take(json.dumps(part))
    stream.end()
    assert stream.reply().text == "It is 5 euro."


NEW_CHAT = b"""data: {"type":"data-newChat","data":{"id":"c1"}}

data: {"type":"text-delta","delta":"Let me"}

"""


async def test_live_cancelling_tells_the_backend(server: NaoServer) -> None:
    server.plan.append(Planned(raw=NEW_CHAT, hang=True))
    it = signed(server, live=True)
    session = await it.open(context())
    begun = asyncio.Event()

    async def follow() -> None:
        async for event in session.send(Request(1, "x")):
            if isinstance(event, TextDelta):
                begun.set()

    task = asyncio.create_task(follow())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.disconnected.wait, 5)
    assert server.requests[-1].path == "/api/trpc/chat.stop"
    assert server.requests[-1].body == {"json": {"chatId": "c1"}}
    await it.close()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"text": None}, "without text"),
        ({}, "no text"),
        ({"text": "x", "verification": "done"}, "verification is not an object"),
        ({"text": "x", "verification": {"data": [{"x": 1}, None]}}, "data is not a list of rows"),
        ({"text": "x", "verification": {"data": {"x": [1]}}}, "data is not a list of rows"),
        ({"text": "x", "verification": {"data": [], "expectedData": [1]}}, "expectedData is not a list"),
    ],
)
def test_an_answer_that_cannot_be_read_is_an_error_and_no_pass(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(AgentError, match=said):
        read_run(changes, 1)


@pytest.mark.parametrize(
    "said",
    [
        "Warehouse SQL request denied: Binder Error: no zzz\n\nLINE 1: …",
        "Write SQL operations are disabled. …",
    ],
)
async def test_a_wrong_expected_query_is_the_cases_own(server: NaoServer, said: str) -> None:
    server.plan.append(Planned(body={"error": said}, status=500))
    request = Request(1, "total", sql="SELECT zzz FROM orders", sql_place="tests/a.yml:3")
    with pytest.raises(AgentError) as caught:
        await talk(signed(server), request)
    assert str(caught.value).startswith("the case's expected query is wrong (tests/a.yml:3): ")
    assert caught.value.evidence.code == "query-failed" and "Warehouse" not in str(caught.value)
    server.plan.append(Planned(body={"error": said}, status=500))
    with pytest.raises(AgentError) as caught:
        await talk(signed(server), Request(1, "total"))
    assert "expected query" not in str(caught.value)
