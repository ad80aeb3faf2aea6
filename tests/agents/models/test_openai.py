"""Agents behind chat completions: streaming, tools, usage, errors, retries, cancelling."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from tests.servers import AnthropicServer, OpenAIServer, Planned
from tests.support.agents import agent, context, kinds, of, services, talk
from tui_eval.agents import AgentError, Request, create
from tui_eval.agents.http import http_call
from tui_eval.agents.models.openai_stream import Completion, usage_of
from tui_eval.agents.models.tool_loop import NOTED, UNANSWERED
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.events import (
    Exchanged,
    Note,
    ReasoningDelta,
    Retrying,
    TextDelta,
    ToolCall,
    ToolResult,
    UsageReport,
)
from tui_eval.guard.figures import dropped_figures
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Usage


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_call, "backoff", lambda attempt, wished=None: 0.01 if wished is None else wished)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


async def test_streams_text_and_keeps_the_conversation(server: OpenAIServer) -> None:
    it = agent("openai", base_url=server.base, model="m", system="Be kind.", parameters={"temperature": 0})
    events, replies = await talk(it, "hello", "again")
    assert [reply.text for reply in replies] == ["You said: hello", "You said: again"]
    assert "".join(event.text for event in of(events, TextDelta)) == "You said: helloYou said: again"
    assert replies[0].usage is not None and replies[0].usage.input_tokens == 12
    assert replies[0].finish_reason == "stop" and replies[0].model == "m"
    body = server.requests[1].body
    assert body["stream_options"] == {"include_usage": True} and body["temperature"] == 0
    assert body["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "You said: hello"},
        {"role": "user", "content": "again"},
    ]
    assert "authorization" not in {name.lower() for name in server.requests[0].headers}
    exchange = of(events, Exchanged)[0].exchange
    assert exchange.status == 200 and "[DONE]" in exchange.response and '"hello"' in exchange.request
    await it.close()


async def test_reasoning_plain_answers_and_unicode(server: OpenAIServer) -> None:
    server.plan.extend([Planned(text="42", reasoning="6 × 7"), Planned(text="Größe €", plain=True, cached=3)])
    it = agent("openai", base_url=server.base, model="gpt-4.1")
    events, replies = await talk(it, "a", "b\ud800")
    assert "".join(event.text for event in of(events, ReasoningDelta)) == "6 × 7"
    assert [reply.text for reply in replies] == ["42", "Größe €"]
    assert replies[1].usage is not None and replies[1].usage.cached_tokens == 3
    assert replies[0].cost == pytest.approx((12 * 2 + 7 * 8) / 1e6)
    assert server.requests[1].body["messages"][-1]["content"] == "b\ud800"
    await it.close()


async def test_tool_loop(server: OpenAIServer) -> None:
    server.plan.extend(
        [
            Planned(tool_calls=[("get_plan", {"customer": "a"}), ("nope", {})], reasoning="hm"),
            Planned(text="You have Pro."),
        ]
    )
    tools = [{"type": "canned", "name": "get_plan", "description": "The plan", "result": {"plan": "Pro"}}]
    it = agent("openai", base_url=server.base, model="m", tools=tools)
    events, replies = await talk(it, "which plan?")
    assert replies[0].text == "You have Pro."
    assert [(call.name, call.arguments) for call in of(events, ToolCall)] == [
        ("get_plan", {"customer": "a"}),
        ("nope", {}),
    ]
    results = of(events, ToolResult)
    assert results[0].result == {"plan": "Pro"} and "no tool nope" in results[1].error
    assert replies[0].usage is not None and replies[0].usage.input_tokens == 24
    assert of(events, UsageReport)[-1].usage.output_tokens == 14
    sent = server.requests[1].body["messages"]
    assert sent[1]["tool_calls"][0]["function"] == {"name": "get_plan", "arguments": '{"customer": "a"}'}
    assert sent[2] == {"role": "tool", "tool_call_id": "call_0", "content": '{"plan":"Pro"}'}
    await it.close()


@pytest.mark.parametrize("max_steps", [10, 1])
async def test_a_server_without_schemas_is_asked_without(server: OpenAIServer, max_steps: int) -> None:
    server.plan.append(Planned(status=400, body={"error": {"message": "response_format is not supported"}}))
    it = agent("openai", base_url=server.base, model="m", max_steps=max_steps)
    request = Request(1, "rows", schema={"type": "object"})
    events, replies = await talk(it, request, Request(2, "more", schema={"type": "object"}))
    assert ["response_format" in seen.body for seen in server.requests] == [True, False, False]
    assert replies[0].text == "You said: rows" and len(of(events, Note)) == 1
    server.plan.append(Planned(status=400, body={"error": {"message": "no"}}))
    with pytest.raises(AgentError, match=r"HTTP 400 .*: no"):
        await talk(it, request)
    await it.close()


async def test_what_a_server_refuses_with_and_without_a_schema_is_not_the_schema(
    server: OpenAIServer,
) -> None:
    """One conversation that was too long took the schema from all that came after it."""
    it = agent("openai", base_url=server.base, model="m")
    too_long = Planned(status=400, body={"error": {"message": "context_length_exceeded"}})
    server.plan.extend([too_long, too_long])
    with pytest.raises(AgentError, match="context_length_exceeded"):
        await talk(it, Request(1, "long", schema={"type": "object"}))
    await talk(it, Request(1, "short", schema={"type": "object"}))
    assert ["response_format" in one.body for one in server.requests] == [True, False, True]
    await it.close()


@pytest.mark.parametrize("schema", [None, {"type": "object"}])
async def test_tool_loop_has_an_end(server: OpenAIServer, schema: dict[str, Any] | None) -> None:
    server.plan.extend([Planned(text=f"t{i}", tool_calls=[("x", {})]) for i in range(3)])
    tools = [{"type": "canned", "name": "x", "error": "down"}]
    it = agent("openai", base_url=server.base, model="m", tools=tools, max_steps=2)
    with pytest.raises(AgentError, match="no answer after 2 steps") as caught:
        await talk(it, Request(1, "go", schema=schema))
    assert caught.value.answer == "t1" and len(server.requests) == 2
    await it.close()


async def test_sql_tool(server: OpenAIServer) -> None:
    async def run_sql(database: str, query: str) -> dict[str, object]:
        if "bad" in query:
            raise ValueError("no such table: bad")
        return {"columns": ["n"], "rows": [{"n": 145}], "database": database}

    async def schema_text(database: str) -> str:
        return "orders(id, amount)"

    server.plan.extend(
        [
            Planned(tool_calls=[("run_sql", {"query": "select bad"}), ("run_sql", {"query": "select 1"})]),
            Planned(text="145"),
        ]
    )
    spec = AgentSpec(
        "it",
        "openai",
        {"base_url": server.base, "model": "m", "tools": [{"type": "sql", "database": "shop"}]},
    )
    it = create(spec, services(run_sql=run_sql, schema_text=schema_text))
    events, _ = await talk(it, "total?")
    results = of(events, ToolResult)
    assert results[0].error == "no such table: bad" and results[1].result["rows"] == [{"n": 145}]
    assert "orders(id, amount)" in server.requests[0].body["tools"][0]["function"]["description"]
    await it.close()


async def test_metadata_from_a_fence_or_a_tool(server: OpenAIServer) -> None:
    server.plan.append(Planned(text='Done.\n\n```json\n{"escalated": true, "note": "a ``` b"}\n```'))
    it = agent("openai", base_url=server.base, model="m", metadata="json")
    assert it.capabilities.metadata
    _, replies = await talk(it, "go")
    assert replies[0].text == "Done." and replies[0].metadata == {"escalated": True, "note": "a ``` b"}
    await it.close()
    server.plan.extend([Planned(tool_calls=[("report", {"escalated": False})]), Planned(text="ok")])
    tools = [{"type": "canned", "name": "report", "result": "noted"}]
    it = agent("openai", base_url=server.base, model="m", metadata="report", tools=tools)
    _, replies = await talk(it, "go")
    assert replies[0].metadata == {"escalated": False}
    await it.close()


async def test_schema_and_whole_conversations(server: OpenAIServer) -> None:
    it = agent("openai", base_url=server.base, model="m", system="S")
    schema = {"type": "object", "properties": {"data": {"type": "array"}}}
    chat = [{"role": "system", "content": "own"}, {"role": "user", "content": "x"}]
    await talk(it, Request(1, None, messages=chat), Request(2, "rows", schema=schema))
    assert server.requests[0].body["messages"] == chat
    assert server.requests[1].body["response_format"]["json_schema"]["schema"] == schema
    assert len(server.requests[1].body["messages"]) == 4
    await it.close()


async def test_errors_are_one_line(server: OpenAIServer) -> None:
    server.plan.extend(
        [
            Planned(status=401, body={"error": {"message": "invalid api key\nsecond line"}}),
            Planned(raw=b"data: {nonsense\n\n"),
            Planned(text="half of a long answer", cut=True, chunks=6),
            Planned(
                raw=b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: {"error":{"message":"overloaded"}}\n\n'
            ),
            Planned(raw=b"<html><title>502 oops</title></html>", status=400),
            Planned(raw=b""),
        ]
    )
    it = agent("openai", base_url=server.base, model="m")
    found: list[AgentError] = []
    for _ in range(6):
        with pytest.raises(AgentError) as caught:
            await talk(it, "x")
        assert "\n" not in str(caught.value)
        found.append(caught.value)
    assert str(found[0]) == f"HTTP 401 from {server.base}/chat/completions: invalid api key second line"
    assert found[0].status == 401
    assert "not JSON: {nonsense" in str(found[1])
    assert "broke off" in str(found[2]) and found[2].answer.startswith("half")
    assert "overloaded" in str(found[3]) and found[3].answer == "a"
    assert str(found[4]).endswith("502 oops")
    assert str(found[5]).endswith("chat/completions is empty")
    await it.close()


async def test_no_server() -> None:
    it = agent("openai", base_url="http://127.0.0.1:9/v1", model="m", retries=1)
    with pytest.raises(
        AgentError, match=r"no answer from http://127\.0\.0\.1:9/v1/chat/completions: connection refused"
    ):
        await talk(it, "x")
    await it.close()


async def test_hosts_and_headers_that_cannot_be(server: OpenAIServer) -> None:
    for url, said in (
        ("ftp://h/v1", "is not an http"),
        ("http://h:port/v1", "is not a URL"),
    ):
        it = agent("openai", base_url=url, model="m", retries=0)
        with pytest.raises(AgentError, match=said) as caught:
            await talk(it, "x")
        assert "\n" not in str(caught.value)
        await it.close()
    it = agent("openai", base_url=server.base, model="m", headers={"X": "a\nb"})
    with pytest.raises(AgentError, match="cannot be sent"):
        await talk(it, "x")
    it = agent("openai", base_url=server.base, model="m", headers={"X": "Grüße €"})
    await talk(it, "x")
    assert server.requests[-1].headers["X"] == "Grüße €"


async def test_retries_what_may_pass(server: OpenAIServer) -> None:
    soon = format_datetime(datetime.now(UTC) - timedelta(seconds=5), usegmt=True)
    server.plan.extend(
        [
            Planned(status=429, headers={"Retry-After": "0.02"}),
            Planned(status=503, headers={"Retry-After": soon}),
            Planned(status=502),
        ]
    )
    it = agent("openai", base_url=server.base, model="m")
    events, replies = await talk(it, "x")
    assert replies[0].text == "You said: x"
    assert [(event.reason, event.seconds) for event in of(events, Retrying)] == [
        ("429", 0.02),
        ("503", 0.0),
        ("502", 0.01),
    ]
    assert kinds(events)[:4] == ["Exchanged", "Retrying", "Exchanged", "Retrying"]
    server.plan.extend([Planned(status=429) for _ in range(2)])
    it.client.retries = 1  # type: ignore[attr-defined]
    with pytest.raises(AgentError, match="HTTP 429"):
        await talk(it, "x")
    await it.close()


@pytest.mark.parametrize("planned", [Planned(delay=30), Planned(text="a long text", hang=True)])
async def test_cancelling_closes_the_connection(server: OpenAIServer, planned: Planned) -> None:
    server.plan.append(planned)
    it = agent("openai", base_url=server.base, model="m")
    task = asyncio.create_task(talk(it, "x"))
    assert await asyncio.to_thread(server.asked.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.disconnected.wait, 5)
    await it.close()


async def test_secrets_and_options(monkeypatch: pytest.MonkeyPatch, server: OpenAIServer) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    it = agent("openai", base_url=server.base, model="m")
    events, _ = await talk(it, "x")
    assert server.requests[0].headers["Authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in of(events, Exchanged)[0].exchange.request
    await it.close()
    elsewhere = AgentSpec("it", "openai", {"base_url": "http://evil.example/v1"}, model="m")
    with pytest.raises(NeedsTrust, match=r"send OPENAI_API_KEY to evil\.example"):
        create(elsewhere, services(trusted=False))
    with pytest.raises(ConfigError, match=r"agents\.it\.sytem: is not known"):
        agent("openai", sytem="x")
    with pytest.raises(ConfigError, match=r"agents\.it\.tools\[0\]\.type"):
        agent("openai", tools=[{"type": "shell"}])
    with pytest.raises(
        AgentError, match=r"no answer from http://127\.0\.0\.1:9/v1/models: connection refused"
    ):
        await agent("openai", base_url="http://127.0.0.1:9/v1", retries=0).open(context())
    with pytest.raises(AgentError, match=r"model: is missing; give one here or with -m$"):
        await agent("openai").open(context())


async def test_the_only_model_of_a_server(server: OpenAIServer) -> None:
    it = agent("openai", base_url=server.base)
    _, replies = await talk(it, "x")
    assert replies[0].model == "only-model"
    await it.close()
    server.models_served = ["small", "large\x1b[2J"]
    it = agent("openai", base_url=server.base)
    with pytest.raises(
        AgentError, match=r"model: is missing; give one here or with -m \(.*/v1 has small, large"
    ):
        await it.open(context())
    await it.close()


async def test_odd_tool_call_deltas(server: OpenAIServer) -> None:
    pieces = [
        {"tool_calls": [{"id": "a", "function": {"name": "x", "arguments": {"q": 1}}}]},
        {"tool_calls": [{"id": "b", "function": {"name": "y", "arguments": "not json"}}]},
        {"content": [{"type": "text", "text": "parts"}], "reasoning": "r"},
    ]
    lines = [json.dumps({"choices": [{"delta": piece}]}) for piece in pieces]
    raw = "".join(f": keep-alive\r\n\r\ndata: {line}\r\n\r\n" for line in lines) + "data: [DONE]"
    server.plan.append(Planned(raw=raw.encode()))
    it = agent("openai", base_url=server.base, model="m", promptfoo=True)
    events, replies = await talk(it, "x")
    assert [(call.name, call.arguments) for call in of(events, ToolCall)] == [
        ("x", {"q": 1}),
        ("y", "not json"),
    ]
    assert replies[0].output["content"] == "parts" and replies[0].usage is not None
    assert replies[0].usage.input_tokens is None and replies[0].cost is None
    await it.close()


async def test_system_text_from_a_file(server: OpenAIServer, tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "system.md").write_text("Be ünique.")
    (tmp_path / "outside.md").write_text("Other.")
    it = agent("openai", root, base_url=server.base, model="m", system="file://system.md")
    await talk(it, "x")
    assert server.requests[0].body["messages"][0]["content"] == "Be ünique."
    await it.close()
    options = {"base_url": server.base, "system": "file://../outside.md"}
    spec = AgentSpec("it", "openai", options, model="m", base=str(root))
    with pytest.raises(NeedsTrust, match=r"read .*outside\.md"):
        create(spec, services(root, trusted=False))
    with pytest.raises(ConfigError, match=r"agents\.it\.system: cannot read"):
        agent("openai", root, system="file://none.md")


def _call(index: int | None, call_id: str | None, name: str | None, arguments: object) -> dict[str, object]:
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}


ONE, TWO = ("search", '{"q":"x"}'), ("lookup", '{"k":2}')


@pytest.mark.parametrize(
    "pieces",
    [
        # Gemini's compatible end: one index for all, once with ids, once with empty ones
        [[_call(0, "a", *ONE)], [_call(0, "b", *TWO)]],
        [[_call(0, "a", *ONE), _call(0, "b", *TWO)]],
        [[_call(0, "", *ONE)], [_call(0, "", *TWO)]],
        [[_call(None, None, *ONE), _call(None, None, *TWO)]],
        [[_call(None, "a", *ONE), _call(None, "b", *TWO)]],
        # vLLM made up an id for each piece; others repeat the name, or send nulls
        [[_call(0, "a", "search", '{"q":')], [_call(0, "z", None, '"x"}'), _call(1, "b", *TWO)]],
        [[_call(0, "a", "search", '{"q":')], [_call(0, "a", "search", '"x"}')], [_call(1, "b", *TWO)]],
        [[_call(0, "a", "search", '{"q":')], [_call(0, "z", "search", '"x"}')], [_call(1, "b", *TWO)]],
        [[_call(0, "a", "search", ""), _call(0, "b", "lookup", "")], [_call(0, "b", None, TWO[1]), _call(0, "a", None, ONE[1])]],
        [[_call(0, "a", "search", "")], [_call(0, "a", None, ONE[1]), _call(1, "a", "lookup", "")], [_call(1, "a", None, TWO[1])]],
        [[_call(0, None, "search", '{"q":')], [_call(0, None, "search", '"x"}'), _call(1, None, *TWO)]],
        [[_call(0, "a", "search", ""), _call(1, "b", "lookup", None)],
         [_call(1, None, None, '{"k":2'), _call(0, None, None, '{"q":"x"}')], [_call(1, "", "", "}")]],
    ],
)  # fmt: skip
def test_calls_of_several_tools_are_told_apart(pieces: list[list[dict[str, object]]]) -> None:
    completion = Completion(1)
    for calls in pieces:
        completion.add(json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}), "here")
    assert [(call.name, call.arguments) for call in completion.calls] == [
        ("search", {"q": "x"}),
        ("lookup", {"k": 2}),
    ]


async def test_what_a_gateway_says_was_written_to_anthropics_cache_costs_more() -> None:
    """LiteLLM hands it on; it counted as input like any other, a third less than what was paid."""
    usage = {
        "prompt_tokens": 3010,
        "completion_tokens": 50,
        "cache_creation_input_tokens": 1000,
        "prompt_tokens_details": {
            "cached_tokens": 2000,
            "cache_creation_token_details": {"ephemeral_1h_input_tokens": 600},
        },
    }
    choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}
    chunk = {"model": "claude-sonnet-4-5", "choices": [choice], "usage": usage}
    with OpenAIServer(Planned(raw=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())) as server:
        it = agent("openai", base_url=server.base, model="claude-sonnet-4-5")
        _, (reply,) = await talk(it, "hi")
        await it.close()
    assert reply.cost == pytest.approx((10 * 3 + 400 * 3.75 + 600 * 6 + 2000 * 0.3 + 50 * 15) / 1e6)


def test_a_character_of_a_text_or_of_arguments_may_come_in_two_pieces() -> None:
    completion = Completion(1)
    for text, raw in (("\ud83c", '{"q":"\ud83c'), ("\udf89", '\udf89"}')):
        delta = {"content": text, "tool_calls": [_call(0, "a", "search" if "{" in raw else None, raw)]}
        completion.add(json.dumps({"choices": [{"index": 0, "delta": delta}]}), "here")
    assert completion.text == "🎉" and completion.calls[0].arguments == {"q": "🎉"}


@pytest.mark.parametrize("index", [(0, 0), (None, None), (0, 1)])
@pytest.mark.parametrize("cut", [False, True])
def test_two_calls_of_one_tool_under_one_id_are_two(index: tuple[int | None, int | None], cut: bool) -> None:
    """They were one with arguments that nobody could read: `max_tool_calls: 1` passed."""
    completion = Completion(1)
    for place, number in zip(index, ("1", "2"), strict=True):
        pieces = ('{"q":', f"{number}}}", "") if cut else (f'{{"q":{number}}}',)
        for arguments in pieces:
            calls = [_call(place, "search", "search", arguments)]
            completion.add(json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}), "here")
    assert [(call.name, call.arguments) for call in completion.calls] == [
        ("search", {"q": 1}),
        ("search", {"q": 2}),
    ]


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_call_of_a_tool_that_takes_a_text_has_its_name_and_text(
    server: OpenAIServer, streamed: bool
) -> None:
    """`tools_used` failed beside it, and the next turn named a function of no name."""
    call = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "run", "input": "ls -l"}}
    begun = {**call, "custom": {"name": "run", "input": ""}}
    rest = [{"index": 0, "custom": {"input": text}} for text in ("ls ", "-l")]
    if streamed:
        deltas: list[Any] = [{"delta": {"tool_calls": [one]}} for one in (begun, *rest)]
        chunks = [*deltas, {"delta": {"content": "Ran it."}, "finish_reason": "tool_calls"}]
        raw = (
            "".join(f"data: {json.dumps({'choices': [chunk]})}\n\n" for chunk in chunks) + "data: [DONE] \n\n"
        )
        server.plan.append(Planned(raw=raw.encode()))
    else:
        whole = {"choices": [{"message": {"content": "Ran it.", "tool_calls": [call]}}]}
        kind = {"Content-Type": "application/json"}
        server.plan.append(Planned(raw=json.dumps(whole).encode(), headers=kind))
    server.plan.append(Planned("Done."))
    it = agent("openai", base_url=server.base, model="m")
    events, _ = await talk(it, "x", "y")
    await it.close()
    assert [(one.name, one.arguments) for one in of(events, ToolCall)] == [("run", "ls -l")]
    (sent,) = server.requests[1].body["messages"][1]["tool_calls"]
    assert sent == {"id": "a", "type": "custom", "custom": {"name": "run", "input": "ls -l"}}


async def test_the_calls_of_a_message_that_was_not_streamed_need_no_ids(server: OpenAIServer) -> None:
    calls = [{"function": {"name": "search", "arguments": {"q": place}}} for place in range(2)]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    server.plan.append(Planned(raw=json.dumps(whole).encode(), headers={"Content-Type": "application/json"}))
    it = agent("openai", base_url=server.base, model="m")
    events, _ = await talk(it, "x")
    assert [call.arguments for call in of(events, ToolCall)] == [{"q": 0}, {"q": 1}]
    await it.close()


FACT = '{"escalated": true}'
UNREAD = {
    "cut off": 'Hi\n```json\n{"escalated": tr',
    "no JSON": "Hi\n```json\n{'escalated': True}\n```\n",
    "a list": f"Hi\n```json\n[{FACT}]\n```",
    "no label": 'Hi\n```\n{"escalated": true,}\n```',
    "words after it": f"Hi\n```json\n{FACT}\n```\nBye",
    "another before it": f'```json\n{{"a": 1}}\n```\nHi\n```json\n{FACT},\n```',
    "no fence": f"Hi\n{FACT}",
    "no fence and words": f"Hi\n\n  {FACT}\nBye",
    "no fence, over lines": f'Hi\n{{\n  "a": {{\n"b": 1}},\n  {FACT[1:]}\n',
    "no fence, cut off": 'Hi\n{"escalated": tr',
    "no fence, of Python": "Hi\n{'escalated': True}",
    "no fence, with a mark": f"Hi\n**{FACT}**.",
    "no fence, quoted": f"Hi\n> `{FACT}`",
    "no fence, of a list": f"Hi\n- {FACT};",
    "no fence, a list": f"Hi\n[{FACT}]",
    "another fence": f"Hi\n~~~json\n{FACT}\n~~~",
    "code before it": f"```python\n{{}}\n```\n{FACT}",
}
NONE_MEANT = (
    "Hi",
    f"Hi {FACT}",
    f"{FACT} is what I would report.",
    'Hi\n{"a": 1}\n{"b": "escalated"}\nBye',
    "if x\n{ escalated: 1 }",
    "```js\n{escalated: true}\n```",
    'Do:\n```json\n{"a": 1}\n```\nthen go',
    "```python\n{}\n```",
    "a\n```\n[1]\n```",
    "a\n```json\n[1, 2]\n```",
    "a\n```\n{ return x; }\n```",
)


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
async def test_metadata_that_cannot_be_read_is_not_left_out(protocol: str) -> None:
    """Left out it would count as false: `escalated: false` passed for a reply that says true."""
    for text in (*UNREAD.values(), *NONE_MEANT, f"Hi\n```json\n{FACT}\n```"):
        with (OpenAIServer if protocol == "openai" else AnthropicServer)(Planned(text=text)) as server:
            base = server.url if protocol == "anthropic" else f"{server.url}/v1"
            it = agent(protocol, base_url=base, model="m", metadata="json")
            with dropped_figures() as dropped:
                _, (reply,) = await talk(it, "x")
            await it.close()
        assert (reply.metadata is not None) == text.endswith(f"```json\n{FACT}\n```") and len(dropped) == (
            text in UNREAD.values()
        ), text


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
async def test_a_call_that_reports_metadata_which_is_none_says_nothing_of_it(protocol: str) -> None:
    tools = [{"type": "canned", "name": "report", "result": "ok"}]
    plans: tuple[tuple[list[Any], Any], ...] = (
        ([["x"]], None),
        ([["x"], {"a": 1}], {"a": 1}),
        ([{"a": 1}, ["x"]], {"a": 1}),
    )
    for told, known in plans:
        plan = [*(Planned(tool_calls=[("report", one)]) for one in told), Planned(text="done")]
        with (OpenAIServer if protocol == "openai" else AnthropicServer)(*plan) as server:
            base = server.url if protocol == "anthropic" else f"{server.url}/v1"
            it = agent(protocol, base_url=base, model="m", metadata="report", tools=tools)
            with dropped_figures() as dropped:
                _, (reply,) = await talk(it, "x")
            await it.close()
        assert reply.metadata == known and bool(dropped) == (not isinstance(told[-1], dict))


@contextmanager
def _served(protocol: str, *plan: Planned) -> Iterator[tuple[OpenAIServer | AnthropicServer, str]]:
    """A server of the protocol, and its address as an agent names it."""
    with OpenAIServer(*plan) if protocol == "openai" else AnthropicServer(*plan) as server:
        yield server, f"{server.url}/v1" if protocol == "openai" else server.url


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
async def test_a_call_that_nobody_here_answers_has_a_result_in_the_next_turn(protocol: str) -> None:
    """Without one both servers refuse it (HTTP 400): each case of several turns was an error."""
    called = Planned(text="Looking.", tool_calls=[("search", {}), ("report", {"escalated": True})])
    with _served(protocol, called) as (server, base):
        it = agent(protocol, base_url=base, model="m", metadata="report")
        _, replies = await talk(it, "x", "y", "z")
        await it.close()
    assert [reply.metadata for reply in replies] == [{"escalated": True}, None, None]
    sent = server.requests[2].body["messages"]
    if protocol == "openai":
        results = [(one["tool_call_id"], one["content"]) for one in sent if one["role"] == "tool"]
        assert [one["role"] for one in sent[:5]] == ["user", "assistant", "tool", "tool", "user"]
        assert results == [("call_0", UNANSWERED), ("call_1", NOTED)]
    else:
        results = [(one.get("tool_use_id"), one.get("content")) for one in sent[2]["content"]]
        assert results == [("toolu_0", UNANSWERED), ("toolu_1", NOTED), (None, None)]
        assert sent[2]["content"][2] == {"type": "text", "text": "y"} and sent[4]["content"] == "z"


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.parametrize("own_tools", [False, True])
async def test_a_report_of_metadata_is_noted_and_its_turn_has_the_answer(
    protocol: str, own_tools: bool
) -> None:
    """It was told that there is no such tool; without tools beside it an empty text was the answer, in which
    `should_not_contain` found nothing."""
    told = [("report", {"escalated": True})]
    after = [Planned(text="Done.", tool_calls=told)], [Planned(tool_calls=told), Planned(text="Done.")]
    tools = [{"type": "canned", "name": "plan", "result": "Pro"}] if own_tools else []
    for plan in after:
        with _served(protocol, *plan) as (server, base):
            it = agent(protocol, base_url=base, model="m", metadata="report", tools=tools)
            events, (reply,) = await talk(it, "x")
            await it.close()
        assert (reply.text, reply.metadata, len(server.requests)) == ("Done.", {"escalated": True}, len(plan))
        assert [one.result for one in of(events, ToolResult)] == [NOTED] * (len(plan) - 1)


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
async def test_who_only_ever_reports_metadata_is_asked_once_for_more(protocol: str) -> None:
    with _served(protocol, *[Planned(tool_calls=[("report", {"a": 1})])] * 3) as (server, base):
        it = agent(protocol, base_url=base, model="m", metadata="report")
        _, (reply,) = await talk(it, "x")
        await it.close()
    assert (reply.text, reply.metadata, len(server.requests)) == ("", {"a": 1}, 2)


@pytest.mark.parametrize(
    ("protocol", "choice"),
    [
        ("openai", {"type": "function", "function": {"name": "report"}}),
        ("openai", "required"),
        ("anthropic", {"type": "tool", "name": "report"}),
        ("anthropic", {"type": "any"}),
    ],
)
async def test_a_model_that_may_only_report_is_not_asked_for_more(protocol: str, choice: Any) -> None:
    """It was asked once more, could only report again, and was paid and counted twice in each turn."""
    with _served(protocol, *[Planned(tool_calls=[("report", {"a": 1})])] * 4) as (server, base):
        given = {"tool_choice": choice}
        it = agent(protocol, base_url=base, model="m", metadata="report", parameters=given)
        events, replies = await talk(it, "x", "y")
        await it.close()
    assert [reply.metadata for reply in replies] == [{"a": 1}] * 2
    assert len(server.requests) == len(of(events, ToolCall)) == 2


REPORT = {"type": "function", "function": {"name": "report", "parameters": {}}}
CANNED = {"type": "canned", "name": "report", "result": "ok"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metadata": "JSON"}, "did you mean 'json'?"),
        ({"metadata": "jsno", "base_url": "http://localhost:1/v1"}, "did you mean 'json'?"),
        (
            {"metadata": "reprot", "base_url": "http://localhost:1/v1", "tools": [CANNED]},
            "did you mean 'report'?",
        ),
        ({"metadata": "reprot", "parameters": {"tools": [REPORT]}}, "did you mean 'report'?"),
        ({"metadata": "state", "parameters": {"tools": [{"name": "report"}]}}, "give it under tools"),
        ({"metadata": "state"}, "give it under tools"),
        ({"metadata": "report", "parameters": {"tools": [REPORT]}}, ""),
        ({"metadata": "report", "parameters": {"tools": [{"name": "report"}]}}, ""),
        ({"metadata": "report", "tools": [CANNED]}, ""),
        ({"metadata": "run_sql", "tools": [{"type": "sql", "database": "x"}]}, ""),
        ({"metadata": "state", "base_url": "http://localhost:1/v1"}, ""),  # it may be the server's own
        ({"metadata": "json"}, ""),
        ({}, ""),
    ],
)
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_metadata_that_no_tool_can_report_is_an_error(kind: str, options: dict[str, Any], said: str) -> None:
    """Each reply counted as one that does not say: `escalated: false` passed."""
    if not said:
        agent(kind, model="m", **options)
        return
    with pytest.raises(ConfigError, match=r"agents\.it\.metadata: no tool is called") as caught:
        agent(kind, model="m", **options)
    assert said in str(caught.value)


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_call_in_the_way_before_tools_is_a_call(server: OpenAIServer, streamed: bool) -> None:
    """`max_tool_calls: 0` passed for it."""
    called = {"name": "search", "arguments": '{"q": 1}'}
    if streamed:
        parts = [
            {"function_call": {"name": "search", "arguments": ""}},
            {"function_call": {"arguments": '{"q": 1}'}},
        ]
        chunks = [{"choices": [{"delta": part}]} for part in parts]
        ended = {"choices": [{"delta": {}, "finish_reason": "function_call"}]}
        raw = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in [*chunks, ended]).encode()
        server.plan.append(Planned(raw=raw))
    else:
        message = {"role": "assistant", "content": None, "function_call": called}
        body = {"choices": [{"message": message, "finish_reason": "function_call"}]}
        server.plan.append(
            Planned(raw=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
        )
    it = agent("openai", base_url=server.base, model="m")
    events, _ = await talk(it, "x")
    assert [(call.name, call.arguments) for call in of(events, ToolCall)] == [("search", {"q": 1})]
    await it.close()


@pytest.mark.parametrize(
    ("more", "output"),
    [
        ({"total_tokens": 420, "completion_tokens_details": {"reasoning_tokens": 300}}, 320),  # xAI
        ({"total_tokens": 420}, 320),  # Gemini's compatible end
        ({"total_tokens": 120, "completion_tokens_details": {"reasoning_tokens": 15}}, 20),  # OpenAI
        (
            {"total_tokens": 125, "completion_tokens_details": {"reasoning_tokens": 15}},
            20,
        ),  # of something else
        ({"total_tokens": 90}, 20),
        ({"total_tokens": "420"}, 20),
        ({"total_tokens": 2**70}, 20),
    ],
)
def test_thoughts_that_are_counted_beside_the_output_are_output(more: dict[str, Any], output: int) -> None:
    """`max_output_tokens` passed for what cost many times as much."""
    usage = usage_of({"prompt_tokens": 100, "completion_tokens": 20, **more})
    assert usage is not None and (usage.input_tokens, usage.output_tokens) == (100, output)


@pytest.mark.parametrize(
    "more",
    [
        {"prompt_tokens_details": {"cached_tokens": 80}},
        {"cached_tokens": 80},
        {"prompt_cache_hit_tokens": 80},
    ],
)
@pytest.mark.parametrize("of_choice", [False, True])
def test_tokens_are_found_where_servers_say_them(more: dict[str, Any], of_choice: bool) -> None:
    """In the choice (Moonshot) they were not seen: limits passed. Cached ones cost as much as others."""
    usage = {"prompt_tokens": 100, "completion_tokens": 20, **more}
    choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}
    chunk = {"choices": [choice | {"usage": usage}]} if of_choice else {"choices": [choice], "usage": usage}
    completion = Completion(1)
    events = completion.add(json.dumps(chunk), "here")
    assert completion.usage == Usage(100, 20, 80)
    assert [one.usage for one in of(events, UsageReport)] == [completion.usage]


async def test_a_step_that_does_not_say_its_tokens_is_noted(server: OpenAIServer) -> None:
    """The limit on tokens that the others keep is no limit kept."""

    def whole(counts: dict[str, int] | None, **message: object) -> Planned:
        body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": counts}
        return Planned(raw=json.dumps(body).encode(), headers={"Content-Type": "application/json"})

    calls = [_call(0, "a", "search", "{}")]
    counts = {"prompt_tokens": 9, "completion_tokens": 1}
    it = agent(
        "openai", base_url=server.base, model="m", tools=[{"type": "canned", "name": "search", "result": 1}]
    )
    for first, second, notes in ((None, counts, 1), (counts, None, 1), (counts, counts, 0), (None, None, 0)):
        server.plan.extend([whole(first, content=None, tool_calls=calls), whole(second, content="done")])
        events, _ = await talk(it, "x")
        said = [note.text for note in of(events, Note)]
        assert said == ["1 of 2 requests did not say their tokens, which count as 0"] * notes
    await it.close()


@pytest.mark.parametrize("data", ['{"type": "overloaded"}', '{"code": 500, "reason": "busy"}', "busy", "{}"])
async def test_an_event_called_error_is_one_whatever_it_says(server: OpenAIServer, data: str) -> None:
    """What had come before it was judged as the whole answer."""
    raw = f'data: {{"choices":[{{"delta":{{"content":"Half"}}}}]}}\n\nevent: error\ndata: {data}\n\ndata: [DONE]\n\n'
    server.plan.append(Planned(raw=raw.encode()))
    it = agent("openai", base_url=server.base, model="m")
    with pytest.raises(AgentError, match="reported an error") as failed:
        await talk(it, "x")
    assert failed.value.answer == "Half"
    await it.close()


async def test_what_comes_after_the_end_of_a_stream_is_not_read(server: OpenAIServer) -> None:
    """An error was one where it came within half a second, and text was more of the answer. But for what was spent."""
    more = 'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}}\n\n'
    more += 'event: error\ndata: {"type": "late"}\n\ndata: {"choices":[{"delta":{"content":" and more"}}]}\n\ndata: no JSON\n\n'
    raw = 'data: {"choices":[{"delta":{"content":"Whole"}}]}\n\ndata: [DONE]\n\n' + more
    server.plan.append(Planned(raw=raw.encode()))
    it = agent("openai", base_url=server.base, model="m")
    _, replies = await talk(it, "x")
    assert replies[0].text == "Whole"
    assert replies[0].usage is not None and replies[0].usage.output_tokens == 7
    await it.close()


@pytest.mark.parametrize("stream", [True, False])
async def test_what_a_server_wants_back_with_calls_goes_back(server: OpenAIServer, stream: bool) -> None:
    """Gemini's signature of a call and DeepSeek's thoughts: without them every case with tools was HTTP 400."""
    signed = {"google": {"thought_signature": "s1"}}
    call = {"index": 0, "id": "1", "function": {"name": "x", "arguments": "{}"}, "extra_content": signed}
    said = [
        [{"reasoning_content": "Let me "}, {"reasoning_content": "see."}, {"tool_calls": [call]}],
        [{"reasoning_content": "Now."}, {"content": "Done."}],
        [{"reasoning_content": "Hm."}, {"content": "Again."}],
    ]
    for parts in said:
        if stream:
            chunks: list[Any] = [{"choices": [{"delta": part}]} for part in parts]
            raw = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
            server.plan.append(Planned(raw=raw.encode()))
        else:
            thought = "".join(part.get("reasoning_content", "") for part in parts)
            whole = {"choices": [{"message": {**parts[-1], "reasoning_content": thought}}]}
            server.plan.append(
                Planned(raw=json.dumps(whole).encode(), headers={"Content-Type": "application/json"})
            )
    tools = [{"type": "canned", "name": "x", "result": 1}]
    own = [{"type": "web_search"}, {"type": "function", "function": {"name": "x"}}]  # a second x is refused
    it = agent("openai", base_url=server.base, model="m", tools=tools, parameters={"tools": own})
    await talk(it, "a", "b", "c")
    asked = [seen.body for seen in server.requests]
    assert [tool["type"] for tool in asked[0]["tools"]] == ["web_search", "function"]
    first, answer = asked[1]["messages"][1], asked[2]["messages"][3]
    assert first["tool_calls"][0]["extra_content"] == signed and first["reasoning_content"] == "Let me see."
    assert answer == {"role": "assistant", "content": "Done.", "reasoning_content": "Now."}
    assert "reasoning_content" not in asked[3]["messages"][5]  # no tool was called in that turn
    await it.close()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("how", ["cut", "hang"])
async def test_a_stream_that_said_its_end_is_whole_whatever_becomes_of_the_connection(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, how: str, packed: bool
) -> None:
    """It was an error, or its time limit was waited for, and what it took was lost."""
    monkeypatch.setattr(http_call, "LINGER", 0.01)
    raw = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    raw += b'data: {"choices":[],"usage":{"completion_tokens":7}}\n\ndata: [DONE]\n\n'
    headers = {"Content-Type": "text/event-stream"}
    if packed:  # what has come of it is all, but for the end of the packing
        packing = zlib.compressobj(wbits=31)
        raw = packing.compress(raw) + packing.flush(zlib.Z_SYNC_FLUSH)
        headers["Content-Encoding"] = "gzip"
    server.plan.append(Planned(raw=raw, hang=how == "hang", cut=how == "cut", headers=headers))
    it = agent("openai", base_url=server.base, model="m", retries=0)
    _, (reply,) = await talk(it, "x")
    assert reply.text == "Hi" and reply.usage is not None and reply.usage.output_tokens == 7
    await it.close()


async def test_tokens_are_told_before_the_end_of_a_stream_that_never_comes(server: OpenAIServer) -> None:
    """A time limit ends it then, and what was paid for was in no sum."""
    raw = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    raw += b'data: {"choices":[],"usage":{"completion_tokens":7}}\n\n'
    server.plan.append(Planned(raw=raw, hang=True, headers={"Content-Type": "text/event-stream"}))
    it = agent("openai", base_url=server.base, model="m", retries=0)
    session = await it.open(context())
    found: list[Any] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(2):
            async for event in session.send(Request(1, "x")):
                found.append(event)
                if isinstance(event, UsageReport):
                    break
    assert [report.usage.output_tokens for report in of(found, UsageReport)] == [7]
    await session.close()
    await it.close()


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_parameters_take_no_place_of_what_is_asked_or_who(kind: str) -> None:
    """Of another model the column would say nothing, and other messages are another question."""
    for key in ("model", "messages"):
        with pytest.raises(ConfigError, match=f"parameters.{key}: "):
            agent(kind, base_url="http://127.0.0.1:9/v1", model="m", parameters={key: "x"})


async def test_parameters_may_say_not_to_stream(server: OpenAIServer) -> None:
    """`stream_options` beside it are refused by OpenAI."""
    it = agent("openai", base_url=server.base, model="m", parameters={"stream": False})
    await talk(it, "x")
    assert server.requests[0].body["stream"] is False and "stream_options" not in server.requests[0].body
    await it.close()


async def test_the_query_of_an_address_stays_at_its_end(server: OpenAIServer) -> None:
    """As Azure's version and the key of some gateways: what is asked for was a part of it."""
    with AnthropicServer() as other:
        for kind, base in (
            ("openai", server.base),
            ("anthropic", other.url),
            ("anthropic", f"{other.url}/v1"),
        ):
            it = agent(kind, base_url=f"{base}/?api-version=1", model="m", retries=0)
            events, _ = await talk(it, "x")
            path = "chat/completions" if kind == "openai" else "v1/messages"
            (asked,) = of(events, Exchanged)
            assert f"/{path}?api-version=1\n" in asked.exchange.request.replace("/v1/v1", "")
            await it.close()


@pytest.mark.parametrize(
    ("said", "cost"),
    [
        ({"cost": 0.25}, 0.25),
        ({"cost": 0}, 0.0),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}}, 0.21),
        ({"cost": 0.25, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.25}}, 0.25),
        ({"cost": {"total_cost": 0.006}}, 0.006),
        ({"cost": "0.25"}, None),
        ({"cost": -1}, None),
        ({"cost": True}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_cost_that_only_the_server_knows_counts(
    server: OpenAIServer, said: dict[str, Any], cost: float | None, stream: bool
) -> None:
    """OpenRouter says it; without it `--max-cost` never ended a run."""
    call = {"index": 0, "id": "1", "function": {"name": "x", "arguments": "{}"}}
    for part in ({"tool_calls": [call]}, {"content": "Done."}):
        usage = {"prompt_tokens": 5, "completion_tokens": 7, **said}
        if stream:
            chunks = [{"choices": [{"delta": part}]}, {"choices": [], "usage": usage}]
            raw = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
            server.plan.append(Planned(raw=raw.encode()))
        else:
            whole = json.dumps({"choices": [{"message": part}], "usage": usage}).encode()
            server.plan.append(Planned(raw=whole, headers={"Content-Type": "application/json"}))
    tools = [{"type": "canned", "name": "x", "result": 1}]
    it = agent("openai", base_url=server.base, model="of/nobody:free", tools=tools)
    events, (reply,) = await talk(it, "x")
    await it.close()
    expected = None if cost is None else pytest.approx(2 * cost)
    assert reply.cost == expected and of(events, UsageReport)[-1].cost == expected


async def test_a_price_of_the_projects_wins_over_what_a_server_says(server: OpenAIServer) -> None:
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "cost": 0.25}
    raw = json.dumps({"choices": [{"message": {"content": "Hi"}}], "usage": usage}).encode()
    server.plan.append(Planned(raw=raw, headers={"Content-Type": "application/json"}))
    with_prices = services(prices={"m": {"input": 3.0, "output": 20.0}})
    it = create(AgentSpec("it", "openai", {"base_url": server.base}, model="m"), with_prices)
    assert (await talk(it, "x"))[1][0].cost == 3.0
    await it.close()


@pytest.mark.parametrize(
    ("model", "first", "second"),
    [
        ("gpt-5.4", {"prompt_tokens": 200_000}, {"prompt_tokens": 200_000}),  # priced up to 272,000
        ("of/nobody", {"prompt_tokens": 5, "cost": 0.25}, {"prompt_tokens": 5}),
        ("of/nobody", {"prompt_tokens": 5}, {"prompt_tokens": 5, "cost": 0.25}),
    ],
)
async def test_the_cost_of_some_requests_is_not_that_of_all(
    server: OpenAIServer, model: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """A limit of the cost passed on a part of it."""
    call = {"index": 0, "id": "1", "function": {"name": "x", "arguments": "{}"}}
    for part, usage in (({"tool_calls": [call]}, first), ({"content": "Done."}, second)):
        whole = {"choices": [{"message": part}], "usage": {"completion_tokens": 1, **usage}}
        headers = {"Content-Type": "application/json"}
        server.plan.append(Planned(raw=json.dumps(whole).encode(), headers=headers))
    tools = [{"type": "canned", "name": "x", "result": 1}]
    it = agent("openai", base_url=server.base, model=model, tools=tools)
    _, (reply,) = await talk(it, "x")
    await it.close()
    assert reply.usage is not None and reply.usage.output_tokens == 2
    assert reply.cost is None


def _streamed(*deltas: dict[str, Any]) -> Planned:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    raw = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Planned(raw=raw.encode(), headers={"Content-Type": "text/event-stream"})


def _thinks(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


@pytest.mark.parametrize(
    ("deltas", "thoughts", "output"),
    [
        (  # Mistral's: thoughts as parts, the answer as texts
            ["", [_thinks("h")], [_thinks("m")], "42", ", that"],
            "hm",
            [_thinks("hm"), {"type": "text", "text": "42, that"}],
        ),
        ([[{"type": "text", "text": "42"}], [{"type": "text", "text": ", that"}]], "",
         [{"type": "text", "text": "42, that"}]),
        (["42", [{"type": "text", "text": ", "}, {"type": "reference", "ids": [1]}, "that"]], "",
         [{"type": "text", "text": "42, "}, {"type": "reference", "ids": [1]}, "that"]),
        (["42, that", [{"type": "image_url", "image_url": "http://a/1"}, {"type": "image_url", "image_url": "http://a/2"}]],
         "",
         [{"type": "text", "text": "42, that"}, {"type": "image_url", "image_url": "http://a/1"},
          {"type": "image_url", "image_url": "http://a/2"}]),
        ([[{"type": "text", "text": None}], ["42, that", {"type": 7}]], "",
         [{"type": "text", "text": None}, "42, that", {"type": 7}]),
    ],
)  # fmt: skip
async def test_parts_of_a_streamed_content_are_put_together(
    server: OpenAIServer, deltas: list[Any], thoughts: str, output: Any
) -> None:
    """In a promptfoo test the last list of parts stood for the whole answer."""
    for promptfoo in (False, True):
        server.plan.append(_streamed(*({"content": content} for content in deltas)))
        it = agent("openai", base_url=server.base, model="m", promptfoo=promptfoo)
        events, (reply,) = await talk(it, "x", test={"vars": {}})
        await it.close()
        assert "".join(event.text for event in of(events, ReasoningDelta)) == thoughts
        assert "".join(event.text for event in of(events, TextDelta)) == "42, that"
        assert reply.output == (output if promptfoo else None)
        assert json.loads(reply.text) == output if promptfoo else reply.text == "42, that"


async def test_a_character_that_is_cut_between_two_parts_is_whole(server: OpenAIServer) -> None:
    halves = ([{"type": "text", "text": half}] for half in ("\ud83d", "\ude00"))
    server.plan.append(_streamed(*({"content": half} for half in halves)))
    it = agent("openai", base_url=server.base, model="m", promptfoo=True)
    _, (reply,) = await talk(it, "x", test={"vars": {}})
    await it.close()
    assert reply.output == [{"type": "text", "text": "\U0001f600"}]
    assert reply.text == '[{"type":"text","text":"\U0001f600"}]'


async def test_parts_however_deep_and_many_are_put_together(server: OpenAIServer) -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = [{"type": "thinking", "thinking": deep}]
    many = [{"content": [{"type": "text", "text": "a"}]}] * 5_000
    server.plan.append(_streamed({"content": deep}, {"content": deep}, *many))
    it = agent("openai", base_url=server.base, model="m", promptfoo=True)
    _, (reply,) = await talk(it, "x", test={"vars": {}})
    await it.close()
    assert reply.output[-1] == {"type": "text", "text": "a" * 5_000} and len(reply.output) == 2


@pytest.mark.parametrize("first", ["", "retry: 3000\n\n", "id: 7\n", "\n: hello\n\n", "event: chunk\n"])
async def test_a_stream_is_one_whatever_it_begins_with_and_is_called(
    server: OpenAIServer, first: str
) -> None:
    planned = _streamed({"content": "42"})
    assert planned.raw is not None
    headers = {"Content-Type": "application/octet-stream"}
    server.plan.append(Planned(raw=first.encode() + planned.raw, headers=headers))
    it = agent("openai", base_url=server.base, model="m")
    _, (reply,) = await talk(it, "x")
    await it.close()
    assert reply.text == "42"
