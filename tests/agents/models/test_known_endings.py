"""An endpoint that hands on a provider's answer: its end, and why it ended, are heard in that provider's words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agents.promptfoo.test_promptfoo_providers import AnyServer
from tests.servers.base import Planned
from tests.support.agents import agent, talk
from tui_eval.agents import AgentError
from tui_eval.events import Note
from tui_eval.model import Reply

SAID = ("PRO ", "yes")


def anthropic(*rest: dict[str, Any]) -> list[Any]:
    pieces = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        for text in SAID
    ]
    return [{"type": "message_start", "message": {"stop_reason": None}}, *pieces, *rest]


def responses(*rest: dict[str, Any]) -> list[Any]:
    created = {"type": "response.created", "response": {"status": "in_progress"}}
    return [created, *({"type": "response.output_text.delta", "delta": text} for text in SAID), *rest]


def gemini(reason: str | None = None) -> list[Any]:
    pieces = [
        {"candidates": [{"content": {"parts": [{"text": text}]}}], "usageMetadata": {"promptTokenCount": 9}}
        for text in SAID
    ]
    return [*pieces, *([{"candidates": [{"finishReason": reason}]}] if reason else [])]


def ai_sdk(*rest: Any) -> list[Any]:
    return [
        {"type": "start"},
        {"type": "text-start", "id": "1"},
        *({"type": "text-delta", "delta": text} for text in SAID),
        *rest,
    ]


def ag_ui(*rest: dict[str, Any]) -> list[Any]:
    pieces = [{"type": "TEXT_MESSAGE_CONTENT", "messageId": "1", "delta": text} for text in SAID]
    return [{"type": "RUN_STARTED", "runId": "1"}, *pieces, *rest]


def chat(*rest: Any, **more: Any) -> list[Any]:
    pieces = [
        {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}], **more}
        for text in SAID
    ]
    return [*pieces, *rest]


def stopped(reason: str) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}}


def response(status: str, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"status": status, **more}}


def finished(reason: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **more}


TEXT = {
    "anthropic": "json.delta.text",
    "responses": "json.delta",
    "gemini": "json.candidates[0].content.parts[0].text",
    "ai_sdk": "json.delta",
    "ag_ui": "json.delta",
    "chat": "json.choices[0].delta.content",
}


async def streamed(kind: str, events: list[Any]) -> Reply:
    raw = "".join(f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in events).encode()
    return await answered(raw, "text/event-stream", TEXT[kind])


async def answered(raw: bytes, kind: str, reply: str) -> Reply:
    with AnyServer() as server:
        server.plan.append(Planned(raw=raw, headers={"Content-Type": kind}))
        it = agent("http", url=server.url, reply=reply, retries=0)
        try:
            return (await talk(it, "x"))[1][0]
        finally:
            await it.close()


@pytest.mark.parametrize(
    ("kind", "events"),
    [
        ("anthropic", anthropic()),
        ("anthropic", anthropic("[DONE]")),
        ("anthropic", [*anthropic(stopped("tool_use"), {"type": "message_stop"}), *anthropic()]),
        ("responses", responses()),
        ("gemini", gemini()),
        ("ai_sdk", ai_sdk()),
        ("ag_ui", ag_ui()),
        ("chat", chat()),
        ("chat", [*chat(finished("tool_calls", id="1"), id="1"), *chat(id="2")]),
    ],
)
async def test_a_providers_stream_that_is_handed_on_and_cut_off_is_no_answer(
    kind: str, events: list[Any]
) -> None:
    with pytest.raises(AgentError, match="ended before it was complete") as caught:
        await streamed(kind, events)
    assert "PRO yes" in caught.value.answer


@pytest.mark.parametrize(
    ("kind", "events"),
    [
        ("anthropic", anthropic(stopped("end_turn"))),
        ("anthropic", anthropic({"type": "message_stop"})),
        ("anthropic", anthropic()[1:]),  # the pieces alone say nothing of an end
        ("responses", responses(response("completed"))),
        ("responses", responses()[1:]),
        ("gemini", gemini("STOP")),
        ("ai_sdk", ai_sdk({"type": "finish"})),
        ("ai_sdk", ai_sdk("[DONE]")),
        ("ag_ui", ag_ui({"type": "RUN_FINISHED"})),
        ("ai_sdk", [{"type": "start"}, *ai_sdk()[2:]]),  # an endpoint's own events
        ("ai_sdk", [{"type": "message_start", "id": 1}, *ai_sdk()[2:], {"type": "message_end"}]),
        ("ai_sdk", [{"type": "text-start"}, *ai_sdk()[2:], {"type": "text-end"}]),
        ("ai_sdk", [{"type": "abort", "what": "an earlier step"}, *ai_sdk()[2:]]),
        ("chat", chat("[DONE]")),
        ("chat", chat(finished("stop"))),
    ],
)
async def test_a_providers_stream_that_is_handed_on_to_its_end_is_one(kind: str, events: list[Any]) -> None:
    assert (await streamed(kind, events)).text == "PRO yes"


@pytest.mark.parametrize(
    ("kind", "events", "said"),
    [
        ("anthropic", anthropic(stopped("refusal")), "content filter stopped it"),
        (
            "responses",
            responses(response("incomplete", incomplete_details={"reason": "content_filter"})),
            "filter",
        ),
        ("responses", responses(response("failed", error={"message": "boom"})), "boom"),
        ("gemini", gemini("SAFETY"), "content filter stopped it"),
        ("ag_ui", ag_ui({"type": "RUN_ERROR", "message": "boom"}), "boom"),
        ("ai_sdk", ai_sdk({"type": "abort"}, "[DONE]"), "broke the answer off"),
        ("ai_sdk", ai_sdk({"type": "finish", "finishReason": "content-filter"}), "filter"),
        ("chat", chat(finished("content_filter"), "[DONE]"), "content filter stopped it"),
        ("chat", chat(finished("error"), "[DONE]"), "broke the answer off"),
    ],
)
async def test_what_a_provider_says_in_place_of_an_answer_is_none_where_it_is_handed_on(
    kind: str, events: list[Any], said: str
) -> None:
    with pytest.raises(AgentError, match=said) as caught:
        await streamed(kind, events)
    assert "PRO yes" in caught.value.answer


@pytest.mark.parametrize(
    ("body", "reply", "said"),
    [
        ({"choices": [{"message": {"content": "PRO"}, "finish_reason": "content_filter"}]},
         "choices[0].message.content", "content filter"),
        ({"type": "message", "content": [{"text": "PRO"}], "stop_reason": "refusal"}, "content[0].text", "filter"),
        ({"candidates": [{"content": {"parts": [{"text": "PRO"}]}, "finishReason": "SAFETY"}]},
         TEXT["gemini"], "content filter"),
        ({"object": "response", "status": "in_progress", "output": [{"content": [{"text": "PRO"}]}]},
         "output[0].content[0].text", "broke the answer off"),
        ({"model": "m", "created_at": "now", "message": {"content": "PRO"}, "done": False}, "message.content", "before it was complete"),
    ],
)  # fmt: skip
async def test_a_whole_answer_that_its_provider_calls_none_is_none_where_it_is_handed_on(
    body: dict[str, Any], reply: str, said: str
) -> None:
    with pytest.raises(AgentError, match=said) as caught:
        await answered(json.dumps(body).encode(), "application/json", reply)
    assert caught.value.answer == "PRO"


@pytest.mark.parametrize(
    ("kind", "events"),
    [
        ("anthropic", anthropic(stopped("max_tokens"))),
        ("responses", responses(response("incomplete", incomplete_details={"reason": "max_output_tokens"}))),
        ("gemini", gemini("MAX_TOKENS")),
    ],
)
async def test_that_an_answer_was_cut_off_at_a_limit_is_known_where_it_is_handed_on(
    kind: str, events: list[Any]
) -> None:
    from tui_eval.agents.models.finish_reasons import cut_off

    assert cut_off((await streamed(kind, events)).finish_reason)


@pytest.mark.parametrize(
    "body",
    [
        {"reply": "PRO", "stop_reason": "timeout", "status": "in_progress", "finishReason": "error"},
        {"reply": "PRO", "done": False},
        {"reply": "PRO", "done": True, "done_reason": "cancelled"},
        {"reply": "PRO", "type": "abort"},
        {"reply": "PRO", "type": "message_start"},
        {"reply": "PRO", "response": "PRO", "model": "m", "done": False},
        {"reply": "PRO", "candidates": ["Ann"], "choices": []},
    ],
)
async def test_facts_of_an_endpoints_own_are_no_words_of_a_providers(body: dict[str, Any]) -> None:
    assert (await answered(json.dumps(body).encode(), "application/json", "reply")).text == "PRO"


@pytest.mark.parametrize(
    ("kind", "aside"),
    [
        ("ai_sdk", {"type": "reasoning-delta", "id": "0", "delta": "a thought"}),
        ("responses", {"type": "response.reasoning_summary_text.delta", "delta": "a thought"}),
        ("responses", {"type": "response.function_call_arguments.delta", "delta": '{"q": 1}'}),
        ("ag_ui", {"type": "TOOL_CALL_ARGS", "toolCallId": "1", "delta": '{"q": 1}'}),
        ("ag_ui", {"type": "STATE_DELTA", "delta": [{"op": "add"}]}),
        ("ag_ui", {"type": "REASONING_MESSAGE_CONTENT", "delta": "a thought"}),
        ("gemini", {"candidates": [{"content": {"parts": [{"text": "a thought", "thought": True}]}}]}),
    ],
)
async def test_thoughts_and_arguments_that_stand_where_pieces_of_the_text_do_are_no_text(
    kind: str, aside: dict[str, Any]
) -> None:
    """`should_contain` passed on a thought."""
    ends = {
        "ag_ui": {"type": "RUN_FINISHED"},
        "ai_sdk": {"type": "finish"},
        "responses": response("completed"),
    }
    whole = gemini("STOP") if kind == "gemini" else [*globals()[kind](), ends[kind]]
    assert (await streamed(kind, [whole[0], aside, *whole[1:]])).text == "PRO yes"


@pytest.mark.parametrize(
    "kind",
    [
        "response.output_text.delta",
        "response.text.delta",
        "response.output_audio_transcript.delta",
        "response.part.delta",
    ],
)
async def test_pieces_of_a_text_are_none_whatever_they_are_called(kind: str) -> None:
    """Those of the Realtime API, and of an endpoint's own, were left out."""
    assert (await streamed("responses", [{"type": kind, "delta": text} for text in SAID])).text == "PRO yes"


async def test_a_thought_is_no_answer_though_reply_leads_to_it() -> None:
    parts = [{"text": "a thought", "thought": True}, {"text": "PRO"}]
    body = json.dumps({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}).encode()
    with pytest.raises(AgentError, match=r"parts\[0\]\.text is a thought of the model's"):
        await answered(body, "application/json", TEXT["gemini"])
    path = TEXT["gemini"].replace("parts[0]", "parts[1]")
    assert (await answered(body, "application/json", path)).text == "PRO"


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ([{"text": "PRO"}, {"type": "tool_use"}, {"text": "BAD"}], "json.content[0].text is one of 2 texts"),
        ([{"text": "PRO"}, {"type": "thinking", "thinking": "hm"}, {"text": " "}, "x"], ""),
    ],
)
async def test_texts_beside_the_one_that_reply_names_are_said_not_to_be_judged(
    listed: list[Any], said: str
) -> None:
    with AnyServer() as server:
        server.plan.append(Planned(body={"content": listed}))
        it = agent("http", url=server.url, reply="json.content[0].text", retries=0)
        events, (reply,) = await talk(it, "x")
        await it.close()
    assert reply.text == "PRO"
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes == ([f"{said}, and the others are not judged"] if said else [])


async def test_so_are_those_in_an_event_of_a_stream() -> None:
    parts = [{"text": "PRO"}, {"text": "BAD"}]
    events = [{"candidates": [{"content": {"parts": parts}}]}, {"candidates": [{"finishReason": "STOP"}]}]
    raw = "".join(f"data: {json.dumps(one)}\n\n" for one in events).encode()
    with AnyServer() as server:
        server.plan.append(Planned(raw=raw, headers={"Content-Type": "text/event-stream"}))
        it = agent("http", url=server.url, reply=TEXT["gemini"], retries=0)
        told, (reply,) = await talk(it, "x")
        await it.close()
    assert reply.text == "PRO"
    notes = [event.text for event in told if isinstance(event, Note)]
    assert notes == [f"{TEXT['gemini']} is one of several texts in an event, and the others are not judged"]


def of_bedrock(reason: str) -> tuple[Any, str]:
    message = {"role": "assistant", "content": [{"text": "PRO"}]}
    return {"output": {"message": message}, "stopReason": reason}, "json.output.message.content[0].text"


def of_cohere(reason: str) -> tuple[Any, str]:
    content = [{"type": "text", "text": "PRO"}]
    return {"message": {"content": content}, "finish_reason": reason}, "json.message.content[0].text"


def of_anthropic(reason: str) -> tuple[Any, str]:
    content = [{"type": "text", "text": "PRO"}]
    return {"type": "message", "content": content, "stop_reason": reason}, "json.content[0].text"


def of_a2a(state: str, **more: Any) -> tuple[Any, str]:
    task = {"status": {"state": state}, "artifacts": [{"parts": [{"text": "PRO"}]}], **more}
    return {"jsonrpc": "2.0", "id": 1, "result": task}, "json.result.artifacts[0].parts[0].text"


def of_mcp(failed: bool) -> tuple[Any, str]:
    result = {"content": [{"type": "text", "text": "PRO"}], "isError": failed}
    return {"jsonrpc": "2.0", "id": 1, "result": result}, "json.result.content[0].text"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (of_bedrock("guardrail_intervened"), "its content filter stopped it"),
        (of_bedrock("content_filtered"), "its content filter stopped it"),
        (of_cohere("ERROR"), "broke the answer off"),
        (of_anthropic("pause_turn"), "ended before it was complete"),
        (of_a2a("failed"), "it reports state failed: PRO"),
        (of_a2a("TASK_STATE_REJECTED"), "it reports state rejected"),
        (of_a2a("working"), "ended before it was complete"),
        (of_mcp(True), "it reports isError true: PRO"),
    ],
)
async def test_a_whole_answer_that_says_it_is_none_is_none(answer: tuple[Any, str], said: str) -> None:
    """The words of a guardrail, or of what went wrong, were judged as the agent's."""
    body, path = answer
    with pytest.raises(AgentError, match=said) as caught:
        await answered(json.dumps(body).encode(), "application/json", path)
    assert caught.value.answer == "PRO"


@pytest.mark.parametrize(
    "answer",
    [
        of_bedrock("end_turn"),
        of_cohere("COMPLETE"),
        of_anthropic("end_turn"),
        of_a2a("completed"),
        of_a2a("input-required"),
        of_mcp(False),
        ({"text": "PRO", "finish_reason": "error", "result": {"isError": True}}, "json.text"),
        # That of an order, which the agent tells of.
        ({"jsonrpc": "2.0", "result": {"text": "PRO", "status": {"state": "failed"}}}, "json.result.text"),
    ],
)
async def test_one_that_does_not_is_one(answer: tuple[Any, str]) -> None:
    assert (await answered(json.dumps(answer[0]).encode(), "application/json", answer[1])).text == "PRO"


@pytest.mark.parametrize(
    ("body", "path", "count"),
    [
        ([{"parts": [{"text": "PRO"}]}, {"parts": [{"text": "BAD"}]}], "json[0].parts[0].text", 2),
        ({"choices": [{"m": {"c": "PRO"}}, {"m": {"c": "BAD"}}]}, "json.choices[0].m.c", 2),
        ({"l": [{"text": "hm", "thought": True}, {"text": "PRO"}]}, "json.l[1].text", 1),
        ({"l": ["PRO", "BAD"]}, "json.l[0]", 1),  # what is named may be the first of a list of one's own
    ],
)
async def test_texts_stand_beside_the_one_that_is_named_in_each_list_of_its_path(
    body: Any, path: str, count: int
) -> None:
    """Gemini's stream as one list of its pieces was judged by the first of them, without a word."""
    with AnyServer() as server:
        server.plan.append(Planned(body=body))
        it = agent("http", url=server.url, reply=path, retries=0)
        events, (reply,) = await talk(it, "x")
        await it.close()
    assert reply.text == "PRO"
    assert sum("are not judged" in event.text for event in events if isinstance(event, Note)) == (count > 1)
