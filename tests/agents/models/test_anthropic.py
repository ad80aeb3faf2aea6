"""Anthropic's messages API: text, thinking, tools, schema, usage, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.servers import AnthropicServer, Planned
from tests.support.agents import agent, kinds, of, talk
from tui_eval.agents import AgentError, Request
from tui_eval.agents.http import http_call
from tui_eval.events import (
    Exchanged,
    Note,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallStarted,
    ToolResult,
    UsageReport,
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[AnthropicServer]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    with AnthropicServer() as running:
        yield running


async def test_streams(server: AnthropicServer) -> None:
    server.plan.append(Planned(text="Hello there", reasoning="let me think", usage=(1000, 500), cached=100))
    it = agent("anthropic", base_url=server.url, model="claude-sonnet-4-20250514", system="S", retries=0)
    events, replies = await talk(it, "hi", "again")
    assert replies[0].text == "Hello there" and replies[1].text == "You said: again"
    assert "".join(event.text for event in of(events, ReasoningDelta)) == "let me think"
    assert "".join(event.text for event in of(events, TextDelta)).startswith("Hello there")
    usage = replies[0].usage
    assert usage is not None and (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (
        1000,
        500,
        100,
    )
    assert replies[0].cost == pytest.approx((900 * 3 + 100 * 0.3 + 500 * 15) / 1e6)
    first, second = server.requests
    assert first.body["system"] == "S" and first.body["max_tokens"] == 4096
    assert (
        first.headers["x-api-key"] == "sk-ant-secret" and first.headers["anthropic-version"] == "2023-06-01"
    )
    assert "sk-ant-secret" not in of(events, Exchanged)[0].exchange.request
    assert second.body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "let me think", "signature": "s1"},
        {"type": "text", "text": "Hello there"},
    ]
    await it.close()


@pytest.mark.parametrize("plain", [False, True])
async def test_tool_loop(server: AnthropicServer, plain: bool) -> None:
    calls = [("plan", {"who": "ada"}), ("gone", {})]
    server.plan.extend(
        [Planned(text="Looking.", tool_calls=calls, plain=plain), Planned(text="Pro.", plain=plain)]
    )
    tools = [{"type": "canned", "name": "plan", "schema": {"type": "object"}, "result": {"plan": "Pro"}}]
    it = agent("anthropic", base_url=f"{server.url}/v1", model="m", tools=tools)
    events, replies = await talk(it, "which plan?")
    assert replies[0].text == "Pro."
    assert [(call.name, call.arguments) for call in of(events, ToolCall)] == calls
    assert of(events, ToolResult)[0].result == {"plan": "Pro"} and of(events, ToolResult)[1].error
    assert plain or of(events, ToolCallStarted)[0].name == "plan"
    sent = server.requests[1].body["messages"]
    assert sent[1]["content"][1] == {
        "type": "tool_use",
        "id": "toolu_0",
        "name": "plan",
        "input": {"who": "ada"},
    }
    assert sent[2]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "toolu_0",
        "content": '{"plan":"Pro"}',
    }
    assert sent[2]["content"][1]["is_error"] is True
    await it.close()


async def test_schema_by_a_forced_tool(server: AnthropicServer) -> None:
    server.plan.extend([Planned(text="a"), Planned(tool_calls=[("structured_answer", {"data": [{"n": 1}]})])])
    it = agent("anthropic", base_url=server.url, model="m")
    schema = {"type": "object", "properties": {"data": {"type": "array"}}}
    events, replies = await talk(it, "q", Request(2, "rows", schema=schema), "and?")
    assert replies[1].text == '{"data":[{"n":1}]}' and not of(events, ToolCall)
    assert server.requests[1].body["tool_choice"] == {"type": "tool", "name": "structured_answer"}
    assert server.requests[1].body["tools"][0]["input_schema"] == schema
    assert server.requests[2].body["messages"][3] == {"role": "assistant", "content": '{"data":[{"n":1}]}'}
    await it.close()


async def test_errors_and_whole_conversations(server: AnthropicServer) -> None:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "max_tokens: too large"}}
    overloaded = (
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    )
    server.plan.extend(
        [Planned(status=400, body=error), Planned(raw=overloaded), Planned(text="long enough text", cut=True)]
    )
    it = agent("anthropic", base_url=server.url, model="m", retries=0)
    for said in (
        "HTTP 400 from .*: max_tokens: too large",
        "reported an error: Overloaded",
        "broke off|ended before",
    ):
        with pytest.raises(AgentError, match=said):
            await talk(it, "x")
    chat = [{"role": "system", "content": "own"}, {"role": "user", "content": "x"}]
    _, replies = await talk(it, Request(1, None, messages=chat))
    assert replies[0].text == "You said: x" and server.requests[-1].body["system"] == "own"
    await it.close()


@pytest.mark.parametrize(
    ("for_an_hour", "written"), [(None, 3.75), (0, 3.75), (400, 0.6 * 3.75 + 0.4 * 6), (1000, 6)]
)
async def test_what_is_written_to_the_cache_costs_a_quarter_more_and_twice_for_an_hour(
    server: AnthropicServer, for_an_hour: int | None, written: float
) -> None:
    counts: dict[str, Any] = {"input_tokens": 100, "output_tokens": 0, "cache_creation_input_tokens": 1000}
    if for_an_hour is not None:
        counts["cache_creation"] = {"ephemeral_1h_input_tokens": for_an_hour}
    parts = [
        {"type": "message_start", "message": {"model": "claude-sonnet-4-5", "content": [], "usage": counts}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
    sent = "".join(f"event: {part['type']}\ndata: {json.dumps(part)}\n\n" for part in parts)
    server.plan.append(Planned(raw=sent.encode()))
    it = agent("anthropic", base_url=server.url, model="claude-sonnet-4-5", retries=0)
    _, (reply,) = await talk(it, "hi")
    assert reply.usage is not None and reply.usage.input_tokens == 1100
    assert reply.cost == pytest.approx((100 * 3 + 1000 * written + 10 * 15) / 1e6)


def _searching() -> list[dict[str, Any]]:
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"title": "a"}]}
    called = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x"}}
    return [{"type": "text", "text": "Looking. "}, called, found]


def _streamed(blocks: list[dict[str, Any]], reason: str) -> Planned:
    parts: list[dict[str, Any]] = [{"type": "message_start", "message": {"usage": {"input_tokens": 10}}}]
    for index, block in enumerate(blocks):
        given = json.dumps(block.get("input", {}))
        pieces: dict[str, list[dict[str, Any]]] = {
            "text": [{"type": "text_delta", "text": block.get("text")}],
            "server_tool_use": [
                {"type": "input_json_delta", "partial_json": given[:4]},
                {"type": "input_json_delta", "partial_json": given[4:]},
            ],
        }
        begun = {
            **block,
            **({"text": ""} if "text" in block else {}),
            **({"input": {}} if "input" in block else {}),
        }
        parts.append({"type": "content_block_start", "index": index, "content_block": begun})
        for delta in pieces.get(block["type"], []):
            parts.append({"type": "content_block_delta", "index": index, "delta": delta})
        parts.append({"type": "content_block_stop", "index": index})
    parts += [{"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]
    return Planned(raw="".join(f"data: {json.dumps(part)}\n\n" for part in parts).encode())


@pytest.mark.parametrize("stream", [True, False])
async def test_tools_of_the_providers_own_are_calls_and_a_paused_turn_goes_on(
    server: AnthropicServer, stream: bool
) -> None:
    """`max_tool_calls: 0` passed for a search of the web, and half a turn was judged as all of it."""
    blocks, rest = _searching(), [{"type": "text", "text": "Found it."}]
    if stream:
        server.plan.extend([_streamed(blocks, "pause_turn"), _streamed(rest, "end_turn")])
    else:
        whole = [
            json.dumps({"content": one, "stop_reason": reason, "usage": {"input_tokens": 10}}).encode()
            for one, reason in ((blocks, "pause_turn"), (rest, "end_turn"))
        ]
        server.plan.extend(Planned(raw=body, headers={"Content-Type": "application/json"}) for body in whole)
    it = agent("anthropic", base_url=server.url, model="m", stream=stream)
    events, (reply,) = await talk(it, "x")
    assert reply.text == "Looking. Found it." and reply.usage is not None and reply.usage.input_tokens == 20
    assert [(one.name, one.arguments) for one in of(events, ToolCall)] == [("web_search", {"q": "x"})]
    assert [(one.call_id, one.name, one.result) for one in of(events, ToolResult)] == [
        ("s1", "web_search", [{"title": "a"}])
    ]
    sent = server.requests[1].body["messages"]
    assert sent == [{"role": "user", "content": "x"}, {"role": "assistant", "content": blocks}]
    await it.close()


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "Text/Event-Stream"])
async def test_a_stream_of_events_is_one_whatever_its_type_says(server: AnthropicServer, kind: str) -> None:
    planned = _streamed([{"type": "text", "text": "Hi"}], "end_turn")
    assert planned.raw is not None
    server.plan.append(Planned(raw=b"retry: 3000\n\n" + planned.raw, headers={"Content-Type": kind}))
    it = agent("anthropic", base_url=server.url, model="m")
    assert (await talk(it, "x"))[1][0].text == "Hi"
    await it.close()


async def test_a_block_that_is_not_closed_ends_with_its_message(server: AnthropicServer) -> None:
    parts: list[dict[str, Any]] = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "1", "name": "f"},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "{}"},
        },
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    server.plan.append(Planned(raw="".join(f"data: {json.dumps(part)}\n\n" for part in parts).encode()))
    it = agent("anthropic", base_url=server.url, model="m")
    events, (reply,) = await talk(it, "x")
    assert reply.text == "Hi" and [call.name for call in of(events, ToolCall)] == ["f"]
    await it.close()


def _begun(index: Any, kind: str) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, kind: ""}}


def _said(index: Any, kind: str, text: str) -> dict[str, Any]:
    return {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": f"{kind}_delta", kind: text},
    }


TOOL = {
    "type": "content_block_start",
    "index": 0,
    "content_block": {"type": "tool_use", "id": "1", "name": "f"},
}


@pytest.mark.parametrize(
    ("parts", "text", "thought"),
    [
        # a block begins where another is open
        ([_begun(0, "text"), _said(0, "text", "No. "), _begun(0, "text"), _said(0, "text", "Hi")], "No. Hi", ""),
        ([_begun(0, "text"), _said(0, "text", "No."), TOOL], "No.", ""),
        # one whose beginning, or end, was not said
        ([_said(0, "thinking", "Hm"), _begun(1, "text"), _said(1, "text", "Hi")], "Hi", "Hm"),
        ([_begun(0, "thinking"), _said(0, "thinking", "Hm"), _said(0, "text", "Hi")], "Hi", "Hm"),
        ([_begun(0, "text"), _said(0, "text", "Hi"), _said(0, "thinking", "Hm")], "Hi", "Hm"),
        # parts of another shape
        ([{"type": "message_start", "message": []}, _said([1], "text", "Hi"), {"type": "content_block_start", "content_block": 1}], "Hi", ""),
        ([_said(0, "text", "Hi"), {"type": "message_delta", "delta": "x", "usage": [1]}], "Hi", ""),
        ([_said(0, "text", "Hi"), {"type": "content_block_delta", "index": 0, "delta": "x"}], "Hi", ""),
        ([_said(0, "text", "Hi"), {"type": "message_delta", "delta": {"stop_reason": {"a": 1}}}], "Hi", ""),
    ],
)  # fmt: skip
async def test_nothing_that_a_gateway_says_out_of_order_is_lost_or_taken_for_something_else(
    server: AnthropicServer, parts: list[dict[str, Any]], text: str, thought: str
) -> None:
    """`should_not_contain` passed for what was lost, and failed for a thought."""
    ended = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    raw = "".join(f"data: {json.dumps(part)}\n\n" for part in [*parts, *ended]).encode()
    server.plan.append(Planned(raw=raw))
    it = agent("anthropic", base_url=server.url, model="m")
    events, (reply,) = await talk(it, "x")
    assert reply.text == text and "".join(one.text for one in of(events, ReasoningDelta)) == thought
    assert [call.name for call in of(events, ToolCall)] == ["f"] * (TOOL in parts)
    await it.close()


async def test_what_the_input_takes_is_known_before_the_answer_is_whole(server: AnthropicServer) -> None:
    """An attempt that its time limit cuts off has taken it."""
    server.plan.append(Planned(text="Hello there", usage=(1000, 500)))
    it = agent("anthropic", base_url=server.url, model="claude-sonnet-4-5")
    events, _ = await talk(it, "hi")
    await it.close()
    told = of(events, UsageReport)
    assert [one.usage.input_tokens for one in told] == [1000, 1000] and told[-1].usage.output_tokens == 500
    assert kinds(events[:2]) == ["TextDelta", "UsageReport"]


@pytest.mark.parametrize("later", [{}, {"stop_reason": None}])
async def test_why_it_stopped_is_known_whatever_is_told_after_it(
    server: AnthropicServer, later: dict[str, Any]
) -> None:
    """`message_delta` may come several times, as gateways send the usage: a refusal was judged as an answer."""
    planned = _streamed([{"type": "text", "text": "I wo"}], "refusal")
    usage = json.dumps({"type": "message_delta", "delta": later, "usage": {"output_tokens": 9}})
    raw = (planned.raw or b"").replace(
        b'data: {"type": "message_stop"}', f'data: {usage}\n\ndata: {{"type": "message_stop"}}'.encode()
    )
    server.plan.append(Planned(raw=raw))
    it = agent("anthropic", base_url=server.url, model="m")
    with pytest.raises(AgentError, match=r"its content filter stopped it \(finish reason refusal\)"):
        await talk(it, "x")
    await it.close()


@pytest.mark.parametrize("how", ["cut", "hang"])
async def test_a_stream_that_said_its_end_is_whole_whatever_becomes_of_the_connection(
    server: AnthropicServer, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """It was an error, or its time limit was waited for, and what it took was lost."""
    monkeypatch.setattr(http_call, "LINGER", 0.01)
    raw = _streamed([{"type": "text", "text": "Hi"}], "end_turn").raw or b""
    raw = raw.replace(b'"end_turn"}', b'"end_turn"}, "usage": {"output_tokens": 7}')
    server.plan.append(Planned(raw=raw, hang=how == "hang", cut=how == "cut"))
    it = agent("anthropic", base_url=server.url, model="m", retries=0)
    _, (reply,) = await talk(it, "x")
    assert reply.text == "Hi" and reply.usage is not None and reply.usage.output_tokens == 7
    await it.close()


async def test_a_step_that_does_not_say_its_tokens_is_noted(server: AnthropicServer) -> None:
    """As behind chat completions: the limit on tokens that the others keep is no limit kept."""

    def whole(counts: dict[str, int] | None, *content: dict[str, Any]) -> Planned:
        body = {"content": content, "stop_reason": "end_turn", "usage": counts}
        return Planned(raw=json.dumps(body).encode(), headers={"Content-Type": "application/json"})

    call = {"type": "tool_use", "id": "1", "name": "x", "input": {}}
    counts = {"input_tokens": 9, "output_tokens": 1}
    tools = [{"type": "canned", "name": "x", "result": 1}]
    it = agent("anthropic", base_url=server.url, model="m", tools=tools)
    for first, second, notes in ((None, counts, 1), (counts, None, 1), (counts, counts, 0), (None, None, 0)):
        server.plan.extend([whole(first, call), whole(second, {"type": "text", "text": "done"})])
        events, _ = await talk(it, "x")
        said = [note.text for note in of(events, Note)]
        assert said == ["1 of 2 requests did not say their tokens, which count as 0"] * notes
    await it.close()


async def test_only_what_may_stand_in_a_conversation_goes_back(server: AnthropicServer) -> None:
    """Arguments that were cut off, an empty text and an empty turn are HTTP 400: the case was that, not what
    happened."""
    called = {"type": "tool_use", "id": "1", "name": "x", "input": {}}
    cut = _streamed([called], "max_tokens").raw or b""
    stop = b'data: {"type": "content_block_stop"'
    broken = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": '{"q": "a'},
    }
    cut = cut.replace(stop, f"data: {json.dumps(broken)}\n\n".encode() + stop, 1)
    blocks = [{"type": "text", "text": ""}, {"type": "text", "text": "\n\n"}, {**called, "id": "2"}]
    whole = json.dumps({"content": blocks, "stop_reason": "tool_use"}).encode()
    empty = _streamed([], "end_turn")
    server.plan.extend(
        [Planned(raw=cut), Planned(raw=whole, headers={"Content-Type": "application/json"}), empty]
    )
    it = agent(
        "anthropic", base_url=server.url, model="m", tools=[{"type": "canned", "name": "x", "result": 1}]
    )
    events, replies = await talk(it, "a", "b")
    assert of(events, ToolCall)[0].arguments == '{"q": "a' and replies[0].text == ""
    sent = [message["content"] for message in server.requests[3].body["messages"]]
    assert sent[1] == [called] and sent[3] == [{**called, "id": "2"}]
    assert "not a JSON object" in sent[2][0]["content"] and sent[2][0]["is_error"]
    assert [sent[4][0]["type"], *sent[5:]] == ["tool_result", "b"]
    await it.close()
