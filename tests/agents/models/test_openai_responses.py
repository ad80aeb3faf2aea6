"""OpenAI's responses API outside promptfoo's suites: what is judged is what was said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.agents.promptfoo.test_promptfoo_providers import AnyServer
from tests.servers import Planned
from tests.support.agents import agent, of, talk
from tui_eval.agents import AgentError
from tui_eval.events import ReasoningDelta, ToolCall, ToolResult


@pytest.fixture
def server() -> Iterator[AnyServer]:
    with AnyServer() as running:
        yield running


def _said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "not sure, I don't know"}]}


@pytest.mark.parametrize(
    ("item", "called"),
    [
        (
            {"type": "function_call", "call_id": "1", "name": "search", "arguments": '{"q": 1}'},
            ("search", {"q": 1}),
        ),
        ({"type": "custom_tool_call", "call_id": "1", "name": "run", "input": "ls"}, ("run", "ls")),
        (
            {"type": "web_search_call", "id": "1", "action": {"type": "search", "query": "q"}},
            ("web_search", {"type": "search", "query": "q"}),
        ),
        ({"type": "file_search_call", "id": "1", "queries": ["q"]}, ("file_search", ["q"])),
        ({"type": "code_interpreter_call", "id": "1", "code": "1+1"}, ("code_interpreter", "1+1")),
        ({"type": "mcp_call", "id": "1", "name": "look", "arguments": "{}", "output": "o"}, ("look", {})),
        (
            {"type": "mcp_call", "id": "1", "name": "look", "arguments": "{}", "error": {"message": "e"}},
            ("look", {}),
        ),
        ({"type": "image_generation_call", "id": "1"}, ("image_generation", None)),
    ],
)
async def test_a_thought_is_not_judged_and_every_call_counts(
    server: AnyServer, item: dict[str, Any], called: tuple[str, Any]
) -> None:
    """`should_not_contain` failed for a thought, `should_contain` passed for what a tool was asked, and
    `max_tool_calls: 0` for a search of the web."""
    body = {"status": "completed", "output": [THOUGHT, item, _said("PRO"), _said("more")]}
    server.plan.extend([Planned(body=body), Planned(body=body)])
    it = agent("openai-responses", base_url=server.url, model="m", parameters={"store": False})
    events, (reply, _) = await talk(it, "x", "y")
    await it.close()
    assert reply.text == "PRO\nmore" and of(events, ReasoningDelta)[0].text == "not sure, I don't know"
    assert [(one.name, one.arguments) for one in of(events, ToolCall)] == [called, called]
    results = [(one.call_id, one.result, one.error) for one in of(events, ToolResult)]
    assert results == (
        [("1", "o", None)] * 2
        if "output" in item
        else [("1", None, '{"message":"e"}')] * 2
        if "error" in item
        else []
    )
    first, second = (seen.body for seen in server.requests)
    assert first == {"model": "m", "input": "x", "store": False}
    assert second["input"][1] == {"role": "assistant", "content": "PRO\nmore"}


@pytest.mark.parametrize("apart", [False, True], ids=["in one message", "in two"])
async def test_what_was_said_beside_a_refusal_is_judged_too(server: AnyServer, apart: bool) -> None:
    """`should_not_contain` passed over it."""
    secret, no = {"type": "output_text", "text": "the secret"}, {"type": "refusal", "refusal": "I cannot"}
    contents = [[secret], [no]] if apart else [[secret, no]]
    output = [{"type": "message", "role": "assistant", "content": content} for content in contents]
    server.plan.append(Planned(body={"status": "completed", "output": output}))
    it = agent("openai-responses", base_url=server.url, model="m")
    _, (reply,) = await talk(it, "x")
    await it.close()
    assert reply.text == "the secret\nI cannot" and reply.guardrails == {"flagged": True}


def _streamed(*events: dict[str, Any]) -> Planned:
    first = {"type": "response.created", "response": {"status": "in_progress", "output": []}}
    deltas = [{"type": "response.output_text.delta", "delta": piece} for piece in ("PR", "O")]
    named = [(one["type"], json.dumps(one)) for one in (first, *deltas, *events)]
    raw = "".join(f"event: {name}\ndata: {data}\n\n" for name, data in named)
    return Planned(raw=raw.encode(), headers={"Content-Type": "text/event-stream"})


async def test_a_stream_that_was_asked_for_is_read_to_its_last_event(server: AnyServer) -> None:
    """It was paid for, and said to be no JSON."""
    usage = {"input_tokens": 3, "output_tokens": 2}
    whole = {"status": "completed", "output": [THOUGHT, _said("PRO")], "usage": usage}
    cut = {**whole, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    ends = [
        {"type": "response.completed", "response": whole},
        {"type": "response.incomplete", "response": cut},
    ]
    for end in ends:
        server.plan.append(_streamed(end))
        it = agent("openai-responses", base_url=server.url, model="m", parameters={"stream": True})
        _, (reply,) = await talk(it, "x")
        await it.close()
        assert reply.text == "PRO" and reply.usage is not None and reply.usage.input_tokens == 3
    assert server.requests[0].body["stream"] is True


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], "ended before it was complete"),
        ([{"type": "error", "code": "server_error", "message": "it broke"}], "reported an error: it broke"),
        (
            [
                {
                    "type": "response.failed",
                    "response": {"error": {"message": "it broke"}, "output": [_said("PRO")]},
                }
            ],
            "reported an error: it broke",
        ),
        ([{"type": "response.completed"}], "something that is no response"),
    ],
)
async def test_a_stream_without_its_end_is_no_answer(
    server: AnyServer, events: list[dict[str, Any]], said: str
) -> None:
    server.plan.append(_streamed(*events))
    it = agent("openai-responses", base_url=server.url, model="m", parameters={"stream": True})
    with pytest.raises(AgentError, match=said) as caught:
        await talk(it, "x")
    await it.close()
    assert caught.value.answer == ("" if "no response" in said else "PRO")


async def test_what_was_said_before_a_stream_was_cut_within_an_event_is_kept(server: AnyServer) -> None:
    """It was paid for, and said to be no JSON."""
    planned = _streamed()
    assert planned.raw is not None
    server.plan.append(
        Planned(raw=planned.raw.rstrip() + b'\n\ndata: {"type": "respon', headers=planned.headers)
    )
    it = agent("openai-responses", base_url=server.url, model="m", parameters={"stream": True})
    with pytest.raises(AgentError, match="ended before it was complete") as caught:
        await talk(it, "x")
    await it.close()
    assert caught.value.answer == "PRO"
