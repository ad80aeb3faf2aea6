"""What stands in the place of an answer: the words of servers, gateways and nao are errors, not the agent's."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.servers.base import Planned, Server
from tests.support.agents import agent, context, services, talk
from tests.support.waiting import until
from tui_eval import causes
from tui_eval.agents import Agent, AgentError, Request, create
from tui_eval.agents.http import http_call
from tui_eval.agents.http.error_answers import fact_first
from tui_eval.agents.http.http_call import HttpCall
from tui_eval.agents.models.finish_reasons import failure, silence
from tui_eval.agents.nao.nao_agent import in_place_of_an_answer
from tui_eval.agents.programs import command
from tui_eval.agents.promptfoo.promptfoo_websocket import WebSocketSession
from tui_eval.config.project import AgentSpec
from tui_eval.events import Exchanged, Note, TextDelta, ToolCall, ToolResult, UsageReport
from tui_eval.model import Exchange, Reply, Usage


class Gateway(Server):
    """Answers `raw` to every path, with the type of its content in `headers`."""

    def routes(self, app: web.Application) -> None:
        app.router.add_route("*", "/{path:.*}", self.answer)

    async def answer(self, request: web.Request) -> web.Response:
        planned = self.next(await self.see(request))
        return web.Response(body=planned.raw, status=planned.status, headers=planned.headers)


@pytest.fixture
def server() -> Iterator[Gateway]:
    with Gateway() as running:
        yield running


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_call, "backoff", lambda attempt, wished=None: 0.01 if wished is None else wished)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def whole(body: Any) -> Planned:
    return Planned(raw=json.dumps(body).encode(), headers={"Content-Type": "application/json"})


def streamed(*parts: Any, done: bool = True) -> Planned:
    lines = [part if isinstance(part, str) else f"data: {json.dumps(part)}" for part in parts]
    raw = "\n\n".join([*lines, *(["data: [DONE]"] if done else []), ""]) + "\n"
    return Planned(raw=raw.encode(), headers={"Content-Type": "text/event-stream"})


def page(title: str = "502 Bad Gateway", kind: str = "text/html; charset=utf-8") -> Planned:
    raw = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body>later</body></html>"
    return Planned(raw=raw.encode(), headers={"Content-Type": kind})


def choice(content: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"content": content}, "finish_reason": finish, **more}]}


def delta(content: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    inner = {} if content is None else {"content": content}
    return {"choices": [{"index": 0, "delta": inner, "finish_reason": finish, **more}]}


async def asked(server: Gateway, kind: str, planned: Planned, test: bool = False, **options: Any) -> Reply:
    server.plan.append(planned)
    base = server.url if kind in ("anthropic", "ollama") else f"{server.url}/v1"
    given = {"url": server.url} if kind == "http" else {"base_url": base, "model": "m"}
    it = agent(kind, retries=0, **given, **options)
    try:
        return (await talk(it, "x", test={"vars": {}} if test else None))[1][0]
    finally:
        await it.close()


OVERLOADED = {"message": "upstream overloaded", "code": 502}
CHAT: dict[str, tuple[Planned, str, str]] = {
    "an error body with status 200": (whole({"error": OVERLOADED}), "upstream overloaded", ""),
    "an error as text": (whole({"error": "no such model"}), "no such model", ""),
    "an error beside an empty list": (whole({"error": OVERLOADED, "choices": []}), "upstream overloaded", ""),
    "an error in a choice, as OpenRouter has it": (
        whole(choice("", "error", error=OVERLOADED)), "upstream overloaded", "",
    ),
    "an error in a choice of a stream": (
        streamed(delta("half"), delta("", None, error=OVERLOADED)), "upstream overloaded", "half",
    ),
    "an error in a stream, as OpenRouter has it": (
        streamed(delta("half"), {"error": OVERLOADED, **delta("", "error")}), "upstream overloaded", "half",
    ),
    "an error in a stream, as LiteLLM's proxy has it": (
        streamed({"error": {"message": "litellm.RateLimitError: spent", "code": "429"}}), "RateLimitError", "",
    ),
    "an object that is an error": (
        whole({"object": "error", "message": "context too long", "code": 400}), "context too long", "",
    ),
    "an object that is an error, in a stream": (
        streamed({"object": "error", "message": "context too long", "code": 400}), "context too long", "",
    ),
    "a text with an error's code": (
        streamed({"text": "NETWORK ERROR", "error_code": 50001}), "error", "",
    ),
    "an event called error": (
        streamed('event: error\ndata: {"message": "the deployment is gone"}'), "the deployment is gone", "",
    ),
    "a framework's detail in a stream": (streamed({"detail": "Not authenticated"}), "Not authenticated", ""),
    "an empty list of choices": (whole({"choices": [], "usage": {}}), "list of choices is empty", ""),
    "an empty list in a stream, after Azure's word on the prompt": (
        streamed({"choices": [], "prompt_filter_results": [{}]}), "answered without a message", "",
    ),
    "only the end of a stream": (streamed(), "answered without a message", ""),
    "a choice without a message": (
        whole({"choices": [{"index": 0, "finish_reason": "stop"}]}), "answered without a message", "",
    ),
    "a choice with no message": (
        whole({"choices": [{"index": 0, "message": None, "finish_reason": "stop"}]}), "without a message", "",
    ),
    "a page": (page(), "not JSON: <!DOCTYPE html>", ""),
    "a page called a stream": (page(kind="text/event-stream"), "no chat completion", ""),
    "broken off": (whole(choice("half", "error")), "broke the answer off (finish reason error)", "half"),
    "broken off in a stream": (streamed(delta("half"), delta(None, "abort")), "finish reason abort", "half"),
    "no room on the servers": (
        streamed(delta("half"), delta(None, "insufficient_system_resource")), "broke the answer off", "half",
    ),
    "a call that could not be read, in Gemini's words": (
        streamed(delta("let me look"), delta(None, "function_call_filter: MALFORMED_FUNCTION_CALL")),
        "broke the answer off (finish reason function_call_filter: MALFORMED_FUNCTION_CALL)", "let me look",
    ),
    "a call that could not be read, in a gateway's": (
        whole(choice("let me look", "malformed_function_call")), "finish reason malformed_function_call",
        "let me look",
    ),
    "filtered": (whole(choice("", "content_filter")), "its content filter stopped it", ""),
    "filtered in the middle": (
        streamed(delta("I can"), delta(None, "content_filter")), "its content filter stopped it", "I can",
    ),
    "filtered, in Gemini's words": (
        whole(choice("", "content_filter: SAFETY")), "finish reason content_filter: SAFETY", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", CHAT)
async def test_what_stands_in_the_place_of_a_chat_completion_is_an_error(server: Gateway, form: str) -> None:
    planned, said, kept = CHAT[form]
    with pytest.raises(AgentError) as caught:
        await asked(server, "openai", planned)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.answer == kept


async def test_answers_that_look_odd_are_answers(server: Gateway) -> None:
    odd = streamed({"choices": [], "prompt_filter_results": [{}]}, delta("fine"), delta(None, "eos"))
    assert (await asked(server, "openai", odd)).text == "fine"
    assert (await asked(server, "openai", whole({**choice("fine", "stop"), "error": None}))).text == "fine"
    assert (await asked(server, "openai", streamed(delta("cut"), delta(None, "length")))).text == "cut"
    said = "Failed after 3 attempts: error, error. What now?"
    assert (await asked(server, "openai", whole(choice(said, "stop")))).text == said


@pytest.mark.parametrize(("said", "output"), [("", "Content filtered by provider"), ("I can", "I can")])
@pytest.mark.parametrize("promptfoo", [True, False])
async def test_in_a_promptfoo_test_what_a_filter_left_is_judged_as_promptfoo_does(
    server: Gateway, said: str, output: str, promptfoo: bool
) -> None:
    """Its own providers, and an agent that takes their place."""
    filtered = streamed(delta(said), delta(None, "content_filter"))
    reply = await asked(server, "openai", filtered, test=True, promptfoo=promptfoo)
    assert reply.text == output and reply.finish_reason == "content_filter"
    assert reply.guardrails == {"flagged": True}
    with pytest.raises(AgentError, match="broke the answer off"):
        await asked(server, "openai", whole(choice("half", "error")), test=True, promptfoo=promptfoo)


RESPONSES: dict[str, tuple[Any, str]] = {
    "an error": ({"error": OVERLOADED, "output": []}, "upstream overloaded"),
    "a failure without an error": (
        {"status": "failed", "output": [{"type": "reasoning"}]}, "broke the answer off",
    ),
    "cancelled": ({"status": "cancelled", "output": [{"type": "reasoning"}]}, "broke the answer off"),
    "one that goes on in the background": (
        {"status": "in_progress", "output": [{"type": "message", "content": [{"text": "Let me"}]}]},
        "broke the answer off",
    ),
    "filtered": (
        {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []},
        "its content filter stopped it",
    ),
    "nothing": ({"status": "completed", "output": []}, "without output"),
    "a list": ([], "no response"),
}  # fmt: skip


@pytest.mark.parametrize("form", RESPONSES)
async def test_what_stands_in_the_place_of_a_response_is_an_error(server: Gateway, form: str) -> None:
    body, said = RESPONSES[form]
    with pytest.raises(AgentError, match=said):
        await asked(server, "openai-responses", whole(body))


MESSAGES: dict[str, tuple[Planned, str]] = {
    "an error": (whole({"type": "error", "error": OVERLOADED}), "upstream overloaded"),
    "a gateway's error": (whole({"error": OVERLOADED}), "upstream overloaded"),
    "a gateway's error in a stream": (streamed({"error": OVERLOADED}, done=False), "upstream overloaded"),
    "an end without a beginning": (streamed({"type": "message_stop"}, done=False), "without a message"),
    "filtered": (whole({"content": [], "stop_reason": "refusal"}), "its content filter stopped it"),
    "a page": (page(), "not JSON"),
}


@pytest.mark.parametrize("form", MESSAGES)
async def test_what_stands_in_the_place_of_a_message_is_an_error(server: Gateway, form: str) -> None:
    planned, said = MESSAGES[form]
    with pytest.raises(AgentError, match=said):
        await asked(server, "anthropic", planned)


@pytest.mark.parametrize(
    ("raw", "said", "kept"),
    [
        (b'{"error": "model requires more memory"}\n', "more memory", ""),
        (b'{"message": {"content": "half"}, "done": false}\n', "ended before it was complete", "half"),
        (b"{}\n", "ended before it was complete", ""),
        (b"<html><title>502</title></html>", "not JSON", ""),
    ],
)
async def test_what_stands_in_the_place_of_an_answer_of_ollama_is_an_error(
    server: Gateway, raw: bytes, said: str, kept: str
) -> None:
    with pytest.raises(AgentError, match=said) as caught:
        await asked(server, "ollama", Planned(raw=raw))
    assert caught.value.answer == kept


@pytest.mark.parametrize(
    ("planned", "options", "said"),
    [
        (page("Sign in"), {}, "a page instead of JSON or text: Sign in"),
        (whole({"answer": "", "error": "no worker"}), {}, "no worker"),
        (whole({"answer": None, "error": OVERLOADED}), {"reply": "json.answer"}, "upstream overloaded"),
    ],
)
async def test_what_stands_in_the_place_of_an_endpoints_answer_is_an_error(
    server: Gateway, planned: Planned, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(AgentError, match=said):
        await asked(server, "http", planned, **options)
    for told in (None, False, "", {}, []):
        fine = whole({"answer": "here", "error": told})
        assert (await asked(server, "http", fine)).text == "here"
    mapped = whole({"error": {"text": "as it should"}})
    assert (await asked(server, "http", mapped, reply="json.error.text")).text == "as it should"


def typed(raw: bytes, kind: str) -> Planned:
    return Planned(raw=raw, headers={"Content-Type": kind})


NO_WORDS: dict[str, tuple[Planned, str]] = {
    "a part of a page": (typed(b"<h1>Bad Gateway</h1><p>later", "text/html"), "a page instead of JSON or text: Bad Gateway later"),
    "a page after a comment": (typed(b"\n<!-- LB --><html>", "text/html; charset=utf-8"), "a page instead"),
    "a page called JSON": (typed(b"<html><title>Sign in</title>", "application/json"), "a page instead of JSON or text: Sign in"),
    "XML": (typed(b"<Error><Code>Denied</Code></Error>", "application/xml"), "XML instead of JSON or text: Denied"),
    "an image": (typed(b"\x89PNG\r\n\x1a\n\0", "image/png"), "image/png, neither JSON nor text"),
    "bytes": (typed(b"words", "application/octet-stream"), "application/octet-stream, neither JSON nor text"),
    "bytes called text": (typed(b"a\0b", "text/plain"), "bytes that are no text"),
    "an empty list": (whole([]), "[] where its text should be"),
    "an empty object": (whole({}), "the answer has none of reply, "),
    "an empty list as the reply": (whole({"reply": []}), "[] where its text should be"),
    "a status": (whole({"status": "error", "message": "db down"}), "it reports status error: db down"),
    "a status beside its words": (whole({"status": "failed", "text": "db down"}), "it reports status failed: db down"),
    "no success": (whole({"success": False, "detail": "db down"}), "it reports success false: db down"),
    "no success beside its words": (whole({"ok": False, "response": "db down"}), "it reports ok false: db down"),
    "an error that is true": (whole({"error": True, "message": "db down"}), "it reports error true: db down"),
}  # fmt: skip


@pytest.mark.parametrize("form", NO_WORDS)
async def test_what_an_endpoint_says_that_is_neither_words_nor_an_answer_is_an_error(
    server: Gateway, form: str
) -> None:
    """`should_not_contain` passes on all of it."""
    planned, said = NO_WORDS[form]
    with pytest.raises(AgentError) as caught:
        await asked(server, "http", planned)
    assert said in str(caught.value) and "\n" not in str(caught.value)


async def test_what_only_looks_like_no_answer_is_one(server: Gateway) -> None:
    for planned, text in (
        (
            typed(b"Hello, it is 3 < 4", "text/html; charset=utf-8"),
            "Hello, it is 3 < 4",
        ),  # Flask calls all text so
        (typed(b'{"reply": "hello"}', "application/octet-stream"), "hello"),
        (typed(b"<p>a page to your order</p>", "text/plain"), "<p>a page to your order</p>"),
        (whole({"reply": "hello", "status": "ok", "success": True}), "hello"),
        (whole({"reply": "hello", "status": None}), "hello"),
    ):
        assert (await asked(server, "http", planned)).text == text
    mapped = whole({"success": False, "said": "no such order", "found": []})
    assert (await asked(server, "http", mapped, reply="json.said")).text == "no such order"
    assert (await asked(server, "http", mapped, reply="json.found")).text == "[]"
    with pytest.raises(AgentError, match="success false"):
        await asked(server, "http", mapped, reply="json.other")
    server.plan.append(whole([]))  # no rows, where rows are asked for
    _, replies = await talk(agent("http", url=server.url), Request(1, "rows?", schema={"type": "object"}))
    assert replies[0].output == []


_TEXT = {"type": "text", "text": "half"}
BESIDE: dict[str, tuple[str, Planned]] = {
    "http": ("http", whole({"reply": "half", "error": OVERLOADED})),
    "http, mapped": ("http", whole({"text": "half", "error": "upstream overloaded"})),
    "openai": ("openai", whole({**choice("half", "stop"), "error": OVERLOADED})),
    "openai, a stream": ("openai", streamed({**delta("half"), "error": OVERLOADED})),
    "responses": (
        "openai-responses",
        whole(
            {
                "output": [{"type": "message", "content": [{"type": "output_text", "text": "half"}]}],
                "error": OVERLOADED,
            }
        ),
    ),
    "anthropic": ("anthropic", whole({"content": [_TEXT], "stop_reason": "end_turn", "error": OVERLOADED})),
    "anthropic, a stream": (
        "anthropic",
        streamed(
            {"type": "message_start", "message": {}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "half"}, "error": OVERLOADED},
        ),
    ),
    "ollama": (
        "ollama",
        Planned(raw=json.dumps({"message": {"content": "half"}, "error": "upstream overloaded", "done": True}).encode()),
    ),
    "nao": ("nao", whole({"text": "half", "finishReason": "stop", "error": "upstream overloaded"})),
}  # fmt: skip


@pytest.mark.parametrize("form", BESIDE)
async def test_an_error_beside_a_text_is_an_error_and_the_text_is_kept(server: Gateway, form: str) -> None:
    kind, planned = BESIDE[form]
    options: dict[str, Any] = {"url": server.url, "token": "known-before"} if kind == "nao" else {}
    with pytest.raises(AgentError, match="upstream overloaded") as caught:
        if kind == "nao":
            server.plan.append(planned)
            await talk(agent("nao", retries=0, **options), "x")
        else:
            await asked(server, kind, planned)
    assert caught.value.answer == "half"


WHOLE = {
    "http": whole({"reply": "half of it"}),
    "openai": whole(choice("half of it", "stop")),
    "openai-responses": whole({"output": [{"type": "message", "content": [{"type": "output_text", "text": "half of it"}]}]}),
    "anthropic": whole({"content": [{"type": "text", "text": "half of it"}], "stop_reason": "end_turn"}),
    "ollama": whole({"message": {"content": "half of it"}, "done": True}),
}  # fmt: skip


@pytest.mark.parametrize("kind", WHOLE)
async def test_a_part_that_nobody_asked_for_is_no_whole_answer(server: Gateway, kind: str) -> None:
    planned = WHOLE[kind]
    planned = Planned(
        raw=planned.raw, headers={**planned.headers, "Content-Range": "bytes 0-9/50"}, status=206
    )
    with pytest.raises(AgentError, match=r"a part of its answer \(HTTP 206: bytes 0-9/50\)") as caught:
        await asked(server, kind, planned)
    assert "half of it" in caught.value.answer


@pytest.mark.parametrize("kind", WHOLE)
async def test_a_body_that_is_shorter_than_it_says_is_no_answer(kind: str) -> None:
    raw = WHOLE[kind].raw
    assert isinstance(raw, bytes)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(raw) + 40}\r\n\r\n"
        writer.write(head.encode() + raw)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        given = {"url": url} if kind == "http" else {"base_url": url, "model": "m"}
        it = agent(kind, retries=0, **given)
        with pytest.raises(AgentError, match="broke off") as caught:
            await talk(it, "x")
        await it.close()
    assert "half of it" in caught.value.answer


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"text": "", "finishReason": "error"}, "nao broke the answer off"),
        ({"text": "half", "finishReason": "aborted"}, "nao broke the answer off"),
        ({"text": "half", "finishReason": "interrupted"}, "nao broke the answer off"),
        ({"text": "", "finishReason": "content-filter"}, "its content filter stopped it"),
        ({"error": "The selected model could not be resolved."}, "could not be resolved"),
        ({"text": "Failed after 3 attempts. Last error: down", "finishReason": "stop"}, "Last error: down"),
    ],
)
async def test_what_nao_says_in_place_of_an_answer_is_an_error(
    server: Gateway, body: dict[str, Any], said: str
) -> None:
    server.plan.append(whole(body))
    it = agent("nao", url=server.url, token="known-before", retries=0)
    with pytest.raises(AgentError, match=said) as caught:
        await talk(it, "x")
    assert caught.value.answer in (None, "", body.get("text"))
    await it.close()


@pytest.mark.parametrize(
    ("parts", "said", "kept"),
    [
        ([{"type": "text-delta", "delta": "half"}, {"type": "finish", "finishReason": "error"}],
         "nao broke the answer off", "half"),
        ([{"type": "text-delta", "delta": "half"}, {"type": "error", "errorText": "mock exploded"}],
         "mock exploded", "half"),
        ([{"type": "finish", "finishReason": "content-filter"}], "its content filter stopped it", ""),
        ([{"error": OVERLOADED}], "upstream overloaded", ""),
        ([{"type": "text-delta", "delta": "Failed after 3 attempts. Last error: down"},
          {"type": "finish", "finishReason": "stop"}], "Last error: down", ""),
        ([{"type": "start"}], "ended without an answer", ""),
    ],
)  # fmt: skip
async def test_what_naos_stream_says_in_place_of_an_answer_is_an_error(
    server: Gateway, parts: list[Any], said: str, kept: str
) -> None:
    server.plan.append(streamed(*parts))
    it = agent("nao", url=server.url, token="known-before", retries=0, live=True)
    with pytest.raises(AgentError, match=said) as caught:
        await talk(it, "x")
    assert not kept or caught.value.answer == kept
    await it.close()


def test_naos_own_words_and_an_agents_about_them() -> None:
    for text in (
        "Failed after 3 attempts. Last error: Cannot connect to API",
        "Failed after 2 attempts with non-retryable error: 'bad key'",
        "AI_APICallError: Unauthorized",
        "No output generated. Check the stream for errors.",
        "The selected model could not be resolved.",
        "No project configured. Set NAO_DEFAULT_PROJECT_PATH environment variable.",
    ):
        assert in_place_of_an_answer(text), text
    for text in (
        "Three users failed after 3 attempts. Last error: timeout.",
        "Failed after 3 attempts: 17 users.",
        "No output generated by the mill in May: 0 t.",
        "Failed after 3 attempts. Last error: a.\n\nThat is what the log says of the job you asked for.",
    ):
        assert not in_place_of_an_answer(text), text


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("Failed after 3 attempts. Last error: Too Many Requests", "Too Many Requests"),
        ("AI_RetryError: Failed after 2 attempts with non-retryable error: 'bad key'", "'bad key'"),
        ("Failed after 3 attempts. Last error: ", "Failed after 3 attempts. Last error:"),
        ("RateLimitError: Error code: 429 - {'error': {'message': 'slow down', 'type': 'x'}} (a.py:3)", "429: slow down"),
        ("Failed after 3 attempts. Last error: Error code: 529", "529"),
        ("ValueError: no such order (a.py:3)", "ValueError: no such order (a.py:3)"),
    ],
)  # fmt: skip
def test_the_fact_stands_before_what_is_wrapped_around_it(said: str, fact: str) -> None:
    assert fact_first(said) == fact


async def test_lists_begin_with_what_stopped_an_agent(server: Gateway, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "def answer(message):\n    raise RuntimeError(\"Error code: 429 - {'error': {'message': 'slow down'}}\")\n"
    )
    server.plan.append(
        whole({"text": "Failed after 3 attempts. Last error: slow down", "finishReason": "stop"})
    )
    told = []
    for it in (
        agent("python", tmp_path, function="a.py:answer"),
        agent("nao", url=server.url, token="known-before", retries=0),
    ):
        with pytest.raises(AgentError) as caught:
            await talk(it, "x")
        told.append(causes.words_of_pieces([caught.value.evidence]))
        await it.close()
    assert told == ["429: slow down", "slow down"]


def test_reasons_that_nobody_knows_are_no_failures() -> None:
    for reason in (
        None,
        "",
        "stop",
        "length",
        "tool_calls",
        "eos_token",
        "end_turn",
        "max_tokens",
        "unknown",
    ):
        assert failure(reason) is None
    assert failure("content-filter", filters_too=False) is None
    assert failure("ERROR", filters_too=False) is not None


@pytest.mark.parametrize(
    ("raw", "kind", "why"),
    [
        (b'{"reply": "I was about to', "application/json", "says that it is JSON and is not"),
        (b"[" * 100_000, "application/problem+json; charset=utf-8", "says that it is JSON and is not"),
        (b"\xff\xfe\x00\x01binary", "application/json", "says that it is JSON and is not"),
        (b"\x1f\x8b\x08\x00packed", "application/json", "says that it is JSON and is not"),
        (b"", "application/json", "is empty"),
        (b" \n", "application/json; charset=utf-8", "is empty"),
    ],
)
async def test_an_endpoint_whose_json_breaks_off_has_not_answered(
    server: Gateway, raw: bytes, kind: str, why: str
) -> None:
    server.plan.append(Planned(raw=raw, headers={"Content-Type": kind}))
    # A collection in the middle of a text nested as deeply as Python goes would end finalizers of other tests with
    # the same RecursionError, which pytest then reports here.
    gc.disable()
    try:
        with pytest.raises(AgentError, match=why):
            await talk(agent("http", url=server.url, retries=0), "hello")
    finally:
        gc.enable()


async def test_words_are_an_answer_whatever_their_type_says(server: Gateway) -> None:
    server.plan.append(Planned(raw=b"Pro is 79 euros.", headers={"Content-Type": "application/json"}))
    _, replies = await talk(agent("http", url=server.url), "hello")
    assert [reply.text for reply in replies] == ["Pro is 79 euros."]


SILENT: dict[str, tuple[str, Planned, str]] = {
    "null": ("openai", whole(choice(None, "stop")), "without text (finish reason stop)"),
    "no room": ("openai", whole(choice("", "length")), "without text (finish reason length)"),
    "blanks": ("openai", whole(choice(" \n", None)), "without text (no finish reason)"),
    "a silent stream": ("openai", streamed(delta(""), delta(None, "length")), "(finish reason length)"),
    "thoughts alone": (
        "openai", streamed({"choices": [{"delta": {"reasoning": "hm"}}]}, delta(None, "length")), "without text",
    ),
    "a response of thoughts": (
        "openai-responses",
        whole({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
               "output": [{"type": "reasoning", "summary": [{"text": "hm"}]}]}),
        "without text (finish reason max_output_tokens)",
    ),
    "an empty response": (
        "openai-responses",
        whole({"status": "completed", "output": [{"type": "message", "content": []}]}),
        "without text (finish reason completed)",
    ),
    "no blocks": ("anthropic", whole({"content": [], "stop_reason": "end_turn"}), "(finish reason end_turn)"),
    "thinking alone": (
        "anthropic", whole({"content": [{"type": "thinking", "thinking": "hm"}], "stop_reason": "max_tokens"}),
        "without text (finish reason max_tokens)",
    ),
    "ollama": (
        "ollama", Planned(raw=b'{"message": {"content": ""}, "done": true, "done_reason": "length"}\n'),
        "without text (finish reason length)",
    ),
    "no content": ("http", Planned(status=204), r"is empty (HTTP 204)"),
    "no body": ("http", Planned(), "is empty"),
    "null of an endpoint": ("http", whole(None), "the answer is null"),
    "an error in a stream": ("http", streamed({"error": OVERLOADED}), "upstream overloaded"),
    "an event called error": ("http", streamed("event: error\ndata: it is gone"), "it is gone"),
    "an error at the end of a stream": (
        "http", streamed({"delta": "half"}, {"error": {"message": "it broke"}}), "it broke",
    ),
    "a stream of nothing": ("http", streamed(), "stream of events is empty"),
}  # fmt: skip


@pytest.mark.parametrize("form", SILENT)
async def test_who_says_nothing_has_not_answered(server: Gateway, form: str) -> None:
    kind, planned, said = SILENT[form]
    with pytest.raises(AgentError) as caught:
        await asked(server, kind, planned)
    assert said in str(caught.value) and "\n" not in str(caught.value)


async def test_null_where_the_reply_should_be_is_an_error(server: Gateway) -> None:
    with pytest.raises(AgentError, match=r"null at json\.said"):
        await asked(server, "http", whole({"said": None}), reply="json.said")


async def test_one_event_of_an_endpoint_is_read_as_its_answer(server: Gateway) -> None:
    for part in (
        "data: hello",
        {"reply": "hello", "error": None},
        {"reply": "hello", "error": "one tool was slow"},
    ):
        if isinstance(part, dict) and part["error"]:
            with pytest.raises(AgentError, match="one tool was slow"):
                await asked(server, "http", streamed(part))
        else:
            assert (await asked(server, "http", streamed(part))).text == "hello"


async def test_the_texts_of_a_stream_are_put_together_before_they_are_judged(server: Gateway) -> None:
    """Split over two events a word would be found by no assertion, and one that must not be said would pass."""
    parts = [
        delta("the pass"),
        delta("word is 1"),
        delta("23", "stop"),
        {"choices": [], "usage": {"prompt_tokens": 7}},
    ]
    chat = await asked(server, "http", streamed(*parts))
    assert chat.text == "the password is 123" and chat.usage is not None and chat.usage.input_tokens == 7
    own = [{"d": {"t": "pass"}}, {"d": {"t": "word"}}, {"done": True, "usage": {"input_tokens": 3}}]
    named = await asked(server, "http", streamed(*own), reply="json.d.t")
    assert named.text == "password" and named.usage is not None and named.usage.input_tokens == 3


def _artifact(text: str, **more: Any) -> dict[str, Any]:
    about = {"kind": "artifact-update", "taskId": "t", "contextId": "c", **more}
    artifact = {"artifactId": more.pop("of", "a"), "parts": [{"kind": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": "1", "result": {**about, "artifact": artifact}}


_BEGUN = "The refund takes five days"


@pytest.mark.parametrize(
    ("texts", "said", "again"),
    [
        (
            ["", "H", "He", "Hell", "Hello!", "Hello!"],
            "Hello!",
            True,
        ),  # LangGraph: the message so far, then complete
        ([_BEGUN, f"{_BEGUN}."], f"{_BEGUN}.", True),
        (["The refund", " takes five", " days", _BEGUN], _BEGUN, True),  # the pieces, then all of them
        (["The refund", " takes five", " days", _BEGUN, ", or six"], f"{_BEGUN}, or six", True),
        (["ha", "haha"], "hahaha", False),
        (["ha", "ha", "haha"], "hahahaha", False),
        (["a", "a", "a", "a"], "aaaa", False),
        ([_BEGUN, _BEGUN], _BEGUN + _BEGUN, False),
        ([" ", "  ", "x"], "   x", False),
        (["=" * 2, "=" * 30, "=" * 40, "=" * 50], "=" * 122, False),
        (["ha", "haha", "hahaha", "hahahaha"], "ha" * 10, False),
        (["no " * 4, "no " * 4, "no " * 8], "no " * 16, False),
    ],
)
async def test_what_events_of_a_stream_say_again_counts_once(
    server: Gateway, texts: list[str], said: str, again: bool
) -> None:
    server.plan.append(streamed(*({"d": text} for text in texts)))
    it = agent("http", url=server.url, reply="json.d")
    events, (reply,) = await talk(it, "x")
    await it.close()
    assert reply.text == said == "".join(one.text for one in events if isinstance(one, TextDelta))
    assert any("it counts once" in one.text for one in events if isinstance(one, Note)) is again


async def test_the_whole_of_an_adk_answer_counts_once(server: Gateway) -> None:
    def event(text: str, partial: bool | None) -> dict[str, Any]:
        return {"content": {"parts": [{"text": text}]}, **({} if partial is None else {"partial": partial})}

    path = "json.content.parts[0].text"
    for last in (False, None):
        steps = [
            event("A", True),
            event("b. ", True),
            event("Ab. ", last),
            event("Yes", True),
            event("Yes", last),
        ]
        assert (await asked(server, "http", streamed(*steps), reply=path)).text == "Ab. Yes"
    only = [event("No", True), event("No", True)]
    assert (await asked(server, "http", streamed(*only), reply=path)).text == "NoNo"


async def test_a_message_of_langgraphs_so_far_counts_once(server: Gateway) -> None:
    texts = ("", "H", "Hi", "Hi")
    events = [[{"content": text, "type": "AIMessageChunk", "id": "run-1"}] for text in texts]
    assert (await asked(server, "http", streamed(*events), reply="json[0].content")).text == "Hi"
    pieces = [[one[0], {"langgraph_step": 1}] for one in events]  # its `messages-tuple`
    assert (await asked(server, "http", streamed(*pieces), reply="json[0].content")).text == "HHiHi"


async def test_an_artifact_given_anew_stands_in_the_place_of_the_one_before(server: Gateway) -> None:
    """A2A's `append`; what an agent took back was judged as said."""
    done = {"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": "completed"}}
    end = {"jsonrpc": "2.0", "id": "1", "result": done}
    path = "json.result.artifact.parts[0].text"
    for parts, said in (
        (
            [_artifact("draft", append=False), _artifact("fi", append=False), _artifact("nal", append=True)],
            "final",
        ),
        ([_artifact("fi"), _artifact("nal", append=True, lastChunk=True)], "final"),
        ([_artifact("one "), _artifact("two", of="b")], "one two"),
        ([_artifact("pass", append=True), _artifact("word", append=True)], "password"),
    ):
        assert (await asked(server, "http", streamed(*parts, end), reply=path)).text == said


async def test_many_pieces_of_a_stream_are_looked_at_once(server: Gateway) -> None:
    pieces = [{"d": "a", "partial": True}] * 20_000
    reply = await asked(server, "http", streamed(*pieces, {"d": "a" * 20_000}), reply="json.d")
    assert reply.text == "a" * 20_000


def _typed(planned: Planned, kind: str) -> Planned:
    planned.headers = {"Content-Type": kind} if kind else {}
    return planned


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "text/html", "", "Text/Event-Stream"])
async def test_a_stream_of_events_is_one_whatever_its_type_says(server: Gateway, kind: str) -> None:
    parts = [{"d": "pass"}, {"d": "word"}]
    assert (await asked(server, "http", _typed(streamed(*parts), kind), reply="json.d")).text == "password"
    with pytest.raises(AgentError, match="nothing says which text of each counts"):
        await asked(server, "http", _typed(streamed(*parts), kind))
    with pytest.raises(AgentError, match="it broke"):
        await asked(server, "http", _typed(streamed({"d": "x"}, {"error": "it broke"}), kind), reply="json.d")


async def test_the_events_of_a_stream_are_not_shown_however_they_arrive(
    server: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = HttpCall.chunks

    async def cut(call: HttpCall) -> AsyncIterator[bytes]:
        async for chunk in whole(call):
            for at in range(0, len(chunk), 2):
                yield chunk[at : at + 2]

    monkeypatch.setattr(HttpCall, "chunks", cut)
    words = Planned(raw=b"data, and words", headers={"Content-Type": "text/plain"})
    short = Planned(raw=b"yes", headers={"Content-Type": "text/plain"})
    plan = [_typed(streamed(delta("pass"), delta("word", "stop")), "text/plain"), words, short]
    for planned, shown in zip(plan, ("password", "data, and words", "yes"), strict=True):
        server.plan.append(planned)
        it = agent("http", url=server.url)
        events, (reply,) = await talk(it, "x")
        await it.close()
        assert "".join(one.text for one in events if isinstance(one, TextDelta)) == reply.text == shown


async def test_words_that_begin_as_an_event_are_words(server: Gateway) -> None:
    for words in ("data: the figures are\n\ndata: 7", "data: {not json}", "event: a party", ": \n\n"):
        planned = Planned(raw=words.encode(), headers={"Content-Type": "text/plain"})
        assert (await asked(server, "http", planned)).text == words


async def test_a_stream_that_breaks_off_in_an_event_is_one_whatever_it_is_called(server: Gateway) -> None:
    """As words, one that is split over two events was missed."""
    raw = b'data: {"d": "no pass"}\n\ndata: {"d": "word"}\n\ndata: {"d": "and'
    planned = Planned(raw=raw, headers={"Content-Type": "text/plain"})
    with pytest.raises(AgentError, match="a stream of events"):
        await asked(server, "http", planned)


BROKEN_STREAMS: dict[str, tuple[Any, str]] = {
    "a status": ({"status": "error", "message": "db is gone"}, "db is gone"),
    "no success": ({"success": False, "message": "db is gone"}, "db is gone"),
    "a kind of event": ({"type": "error", "message": "db is gone"}, "db is gone"),
    "Dify's kind of event": ({"event": "error", "status": 400, "message": "db is gone"}, "db is gone"),
    "a status beside no more text": ({"d": "", "status": "error", "message": "db is gone"}, "db is gone"),
    "a status beside the last text": ({"d": ".", "status": "error", "message": "db is gone"}, "db is gone"),
    "an event that breaks off": ('data: {"d": "wo', "JSON that breaks off"),
}


@pytest.mark.parametrize("form", BROKEN_STREAMS)
async def test_what_a_stream_says_last_went_wrong_is_an_error(server: Gateway, form: str) -> None:
    last, said = BROKEN_STREAMS[form]
    with pytest.raises(AgentError, match=said) as caught:
        await asked(server, "http", streamed({"d": "pass"}, last), reply="json.d")
    assert "pass" in caught.value.answer
    if isinstance(last, dict):  # of a step: the agent went on
        going_on = streamed({"d": "pass"}, last, {"d": "word"})
        text = (await asked(server, "http", going_on, reply="json.d")).text
        assert text == f"pass{last.get('d', '')}word"


async def test_facts_of_all_events_count(server: Gateway) -> None:
    parts = [
        {"d": "a", "meta": {"escalated": True}, "usage": {"input_tokens": 3}, "tool_calls": {"name": "f"}},
        {"d": "b", "meta": {"n": 1}, "usage": {"output_tokens": 4}, "tool_calls": [{"id": "7", "name": "g"}]},
        {"meta": "done", "tool_calls": [{"id": "7", "name": "g"}], "cost": 0.5, "model": "m-2"},
    ]
    server.plan.append(streamed(*parts))
    it = agent("http", url=server.url, reply="json.d", metadata="json.meta")
    events, (reply,) = await talk(it, "x")
    await it.close()
    assert reply.metadata == {"escalated": True, "n": 1} and (reply.cost, reply.model) == (0.5, "m-2")
    assert reply.usage is not None and (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 4)
    assert [event.name for event in events if isinstance(event, ToolCall)] == ["f", "g"]


async def test_what_came_of_a_call_may_come_in_an_event_of_its_own(server: Gateway) -> None:
    parts = [
        {"tool_calls": [{"id": "7", "name": "g"}]},
        {"tool_calls": [{"id": "7", "result": 1}]},
        {"d": "a"},
    ]
    server.plan.append(streamed(*parts))
    it = agent("http", url=server.url, reply="json.d")
    events, _ = await talk(it, "x")
    await it.close()
    called = [event.name for event in events if isinstance(event, ToolCall | ToolResult)]
    assert called == ["g", "g"]


async def test_the_pieces_of_a_call_are_one_call(server: Gateway) -> None:
    """Each counted: `max_tool_calls: 1` failed."""
    begun = [
        {"index": place, "id": name, "function": {"name": name, "arguments": ""}}
        for place, name in enumerate("fg")
    ]
    rest = [{"index": 0, "function": {"arguments": '{"q"'}}, {"index": 0, "function": {"arguments": ": 1}"}}]
    later = {"index": 0, "id": "h", "function": {"name": "h", "arguments": "{}"}}  # of the agent's next step
    lists = [[begun[0]], [begun[1], rest[0]], [rest[1]], [later]]
    server.plan.append(streamed({"d": "a"}, *({"tool_calls": one} for one in lists)))
    it = agent("http", url=server.url, reply="json.d")
    events, _ = await talk(it, "x")
    await it.close()
    called = [(event.name, event.arguments) for event in events if isinstance(event, ToolCall)]
    assert called == [("f", '{"q": 1}'), ("g", ""), ("h", "{}")]


async def test_a_data_stream_of_the_ai_sdk_is_no_words(server: Gateway) -> None:
    """Each line has a piece of the text: one that is split over two was missed."""
    raw = 'f:{"messageId":"m"}\n0:"no pass"\n0:"word"\nd:{"finishReason":"stop"}\n'
    for stream in (raw, raw[:-5], raw[:20] + raw[20:].partition("word")[0], '0:"no pass"'):
        planned = Planned(raw=stream.encode(), headers={"Content-Type": "text/plain; charset=utf-8"})
        with pytest.raises(AgentError, match="a data stream of the AI SDK, not its text as a whole"):
            await asked(server, "http", planned)
    for words in ('0:"zero"\nis what it says', '0:"'):
        planned = Planned(raw=words.encode(), headers={"Content-Type": "text/plain"})
        assert (await asked(server, "http", planned)).text == words


CALL = {"delta": {"tool_calls": [{"index": 0, "id": "1", "function": {"name": "f", "arguments": "{}"}}]}}
UNCLEAR: dict[str, tuple[Planned, str]] = {
    "events of its own": (
        streamed({"delta": "pass"}, {"delta": "word"}),
        "name it with `reply` (json.delta, say)",
    ),
    "words": (streamed("data: pass", "data: word"), "nothing says which text of each counts"),
    "a chat completion that breaks off": (
        streamed(delta("the pass"), delta("word"), done=False),
        "before it was complete",
    ),
    "a chat completion that calls a tool": (
        streamed({"choices": [CALL]}, delta(None, "tool_calls")),
        "`type: openai`",
    ),
    "a chat completion without a word": (streamed(delta(""), delta(None, "stop")), "answered without text"),
}


@pytest.mark.parametrize("form", UNCLEAR)
async def test_a_stream_of_which_nobody_says_what_counts_is_an_error(server: Gateway, form: str) -> None:
    planned, said = UNCLEAR[form]
    with pytest.raises(AgentError) as caught:
        await asked(server, "http", planned)
    assert said in str(caught.value) and "\n" not in str(caught.value)


async def test_a_stream_without_what_reply_names_is_an_error(server: Gateway) -> None:
    with pytest.raises(AgentError, match=r"no event of the stream that .* has json\.text"):
        await asked(server, "http", streamed({"delta": "pass"}, {"delta": "word"}), reply="json.text")


COUNTED = {"prompt_tokens": 7000, "completion_tokens": 900}
BEGUN = {
    "type": "message_start",
    "message": {"model": "m", "usage": {"input_tokens": 7000, "output_tokens": 1}},
}
OVER = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
PAID: dict[str, tuple[str, Planned, int]] = {
    "an error after the counts": ("openai", streamed({**delta("half"), "usage": COUNTED}, {"error": OVERLOADED}), 900),
    "a filter": ("openai", streamed(delta("ha"), {**delta(None, "content_filter"), "usage": COUNTED}), 900),
    "a filter of a whole answer": ("openai", whole({**choice("ha", "content_filter"), "usage": COUNTED}), 900),
    "no text": ("openai", whole({**choice("", "length"), "usage": COUNTED}), 900),
    "an overloaded server": ("anthropic", streamed(BEGUN, OVER, done=False), 1),
    "a stream that breaks off": ("anthropic", streamed(BEGUN, done=False), 1),
    "no blocks": (
        "anthropic",
        whole({"content": [], "stop_reason": "refusal", "usage": {"input_tokens": 7000, "output_tokens": 9}}),
        9,
    ),
    "a response of thoughts": (
        "openai-responses",
        whole({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
               "output": [{"type": "reasoning"}], "usage": {"input_tokens": 7000, "output_tokens": 64}}),
        64,
    ),
    "a response that failed": (
        "openai-responses",
        whole({"status": "failed", "error": OVERLOADED, "usage": {"input_tokens": 7000, "output_tokens": 2}}),
        2,
    ),
    "ollama": (
        "ollama",
        Planned(raw=b'{"message": {"content": ""}, "done": true, "prompt_eval_count": 7000, "eval_count": 5}\n'),
        5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", PAID)
async def test_what_is_no_answer_was_paid_for_all_the_same(server: Gateway, form: str) -> None:
    """A cost limit would never be reached by a model whose answers all fail."""
    kind, planned, output = PAID[form]
    server.plan.append(planned)
    base = server.url if kind in ("anthropic", "ollama") else f"{server.url}/v1"
    costs = {"m": {"input": 1.0, "output": 1.0}}
    spec = AgentSpec("it", kind, {"base_url": base}, base="/", model="m", retries=0)  # type: ignore[arg-type]
    it = create(spec, services("/", prices=costs))
    events: list[Any] = []
    with pytest.raises(AgentError):
        async for event in (await it.open(context())).send(Request(1, "x")):
            events.append(event)
    await it.close()
    (told,) = [event for event in events if isinstance(event, UsageReport)]
    assert (told.usage.input_tokens, told.usage.output_tokens) == (7000, output)
    assert told.cost == pytest.approx((7000 + output) / 1e6)


@pytest.mark.parametrize("last", [{"error": "it broke"}, {"status": "error"}, {"text": "elsewhere"}])
async def test_what_a_stream_took_that_is_no_answer_counts(server: Gateway, last: dict[str, Any]) -> None:
    told = {"usage": {"input_tokens": 7, "output_tokens": 2}, "cost": 0.5}
    for parts in ([told, last], [{**last, **told}, {}]):
        with pytest.raises(AgentError) as caught:
            await asked(server, "http", streamed(*parts), reply="json.d")
        assert caught.value.spent == UsageReport(Usage(7, 2), 0.5)


async def test_ollama_says_that_an_answer_was_cut_off(server: Gateway) -> None:
    """Not in a promptfoo test, whose provider does not."""
    raw = b'{"message": {"content": "half"}, "done": true, "done_reason": "length"}\n'
    for test in (False, True):
        reply = await asked(server, "ollama", Planned(raw=raw), test=test)
        assert reply.finish_reason == (None if test else "length")


CALLED = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


async def test_whoever_calls_a_tool_or_refuses_need_not_speak(server: Gateway) -> None:
    for message in (
        {"tool_calls": [CALLED]},
        {"function_call": {"name": "f", "arguments": "{}"}},
        {"refusal": "no"},
    ):
        body = {"choices": [{"message": {"content": None, **message}, "finish_reason": "stop"}]}
        await asked(server, "openai", whole(body))
    use = {"type": "tool_use", "id": "1", "name": "f", "input": {}}
    await asked(server, "anthropic", whole({"content": [use], "stop_reason": "tool_use"}))
    call = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "1"}
    await asked(server, "openai-responses", whole({"status": "completed", "output": [call]}))


def test_after_tools_a_model_may_end_of_itself_without_a_word() -> None:
    assert silence("", "end_turn", called=True) is None and silence("", None, called=True) is None
    assert silence("", "length", called=True) == "answered without text (finish reason length)"
    assert silence("", "stop", called=False) and silence("x", "length", called=False) is None


async def test_in_a_promptfoo_test_null_is_no_output_and_an_empty_text_a_text(server: Gateway) -> None:
    """As in promptfoo: the row has no output, or one that is judged."""
    for promptfoo in (True, False):
        given = {"test": True, "promptfoo": promptfoo}
        null = await asked(server, "openai", whole(choice(None, "stop")), **given)
        empty = await asked(server, "openai", whole(choice("", "stop")), **given)
        assert null.text_missing and not empty.text_missing and (null.text, empty.text) == ("", "")
    blocks = whole({"content": [], "stop_reason": "end_turn"})
    assert not (await asked(server, "anthropic", blocks, test=True)).text_missing


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"text": "", "finishReason": "length"}, "without text (finish reason length)"),
        ({"text": None}, "without text (no finish reason)"),
        ({"text": "", "toolCalls": [{"toolName": "sql"}], "finishReason": "length"}, "without text"),
        ({"text": "", "toolCalls": [{"toolName": "sql"}], "finishReason": "stop"}, None),
        ({"text": "", "verification": {"data": [{"n": 1}]}, "finishReason": "stop"}, None),
        ({"text": "", "toolCalls": [{"toolName": "sql"}], "finishReason": "tool-calls"}, "without text"),
        ({"text": "", "toolCalls": [{"toolName": "clarification"}], "finishReason": "tool-calls"}, None),
        (
            {"text": "", "toolCalls": [{"toolName": "clarification"}], "finishReason": "length"},
            "without text",
        ),
        (
            {
                "text": "",
                "toolCalls": [{"toolName": "suggest_follow_ups"}],
                "verification": {"data": [{"n": 1}]},
                "finishReason": "tool-calls",
            },
            None,
        ),
        (
            {"text": "", "verification": {"data": [{"n": 1}]}, "finishReason": "length"},
            "without text",
        ),
    ],
)
async def test_nao_without_text(server: Gateway, body: dict[str, Any], said: str | None) -> None:
    it = agent("nao", url=server.url, token="known-before", retries=0)
    server.plan.append(whole(body))
    try:
        _, replies = await talk(it, "x")
    except AgentError as error:
        assert said is not None and said in str(error)
    else:
        assert said is None and replies[0].text == ""
    await it.close()


@pytest.mark.parametrize(("tool", "said"), [("clarification", None), ("execute_sql", "without text")])
async def test_a_question_to_the_person_ends_a_turn_of_naos_stream(
    server: Gateway, tool: str, said: str | None
) -> None:
    it = agent("nao", url=server.url, token="known-before", retries=0, live=True)
    events = (
        {"type": "start-step"},
        {"type": "tool-input-available", "toolCallId": "c", "toolName": tool, "input": {}},
        {"type": "finish", "finishReason": "tool-calls"},
    )
    server.plan.append(streamed(*events))
    try:
        _, replies = await talk(it, "x")
    except AgentError as error:
        assert said is not None and said in str(error)
    else:
        assert said is None and replies[0].text == ""
    await it.close()


async def test_an_agent_network_that_says_nothing(server: Gateway) -> None:
    def line(**message: Any) -> Planned:
        said = {"type": "AGENT_FRAMEWORK", "chat_context": {"chat_histories": []}, **message}
        return Planned(raw=json.dumps({"response": said}).encode() + b"\n")

    it = agent("neuro-san", url=server.url, network="net", retries=0)
    server.plan += [
        line(text=" "),
        line(text="", structure={"n": 1}),
        line(text="", sly_data={"n": 1}),
        line(text=""),
    ]
    with pytest.raises(AgentError, match="answer is empty"):
        await talk(it, "x")
    for _ in range(2):
        assert (await talk(it, "x"))[1][0].text == ""
    assert (await talk(it, "x", reference=True))[1][0].text == ""
    await it.close()


async def test_an_endpoint_whose_completion_was_cut_off_says_so(server: Gateway) -> None:
    """What must not stand in it could have come after."""
    cut = {"choices": [{"message": {"content": "half"}, "finish_reason": "length"}]}
    for planned, path in (
        (streamed(delta("half"), delta("", "length")), None),
        (streamed(delta("half"), delta("", "length")), "choices[0].delta.content"),
        (whole(cut), "choices[0].message.content"),
    ):
        reply = await asked(server, "http", planned, **({"reply": path} if path else {}))
        assert reply.text == "half" and reply.finish_reason == "length"


@pytest.mark.parametrize("pieces", [("no ", "bo"), ("no",)], ids=["two pieces", "one"])
async def test_the_pieces_of_a_completion_that_say_there_is_more_to_come_are_no_whole_answer(
    server: Gateway, pieces: tuple[str, ...]
) -> None:
    """With `reply` too: what must not stand in it was to come."""
    half = [delta(piece) for piece in pieces]
    for path in (None, "choices[0].delta.content"):
        mapped: dict[str, Any] = {"reply": path} if path else {}
        with pytest.raises(AgentError, match="ended before it was complete" if path or half[1:] else None):
            await asked(server, "http", streamed(*half, done=False), **mapped)
    path = "choices[0].delta.content"
    for ended in (streamed(*half, delta("", "stop"), done=False), streamed(*half)):
        assert (await asked(server, "http", ended, reply=path)).text == "".join(pieces)
    own = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]  # who does not say how it ends
    assert (await asked(server, "http", streamed(*own, done=False), reply=path)).text == "".join(pieces)
    said = {"choices": [{"message": {"content": "all"}, "finish_reason": None}]}
    assert (
        await asked(server, "http", streamed(said, done=False), reply="choices[0].message.content")
    ).text == "all"


@pytest.mark.parametrize("kind", ["openai", "anthropic", "ollama"])
async def test_an_empty_body_is_said_to_be_empty(server: Gateway, kind: str) -> None:
    for status, raw in ((204, b""), (200, b" \n")):
        with pytest.raises(AgentError, match="is empty" if kind != "ollama" else None) as failed:
            await asked(server, kind, Planned(status=status, raw=raw))
        assert ("(HTTP 204)" in str(failed.value)) == (status == 204 and kind != "ollama")


# -- A time limit, or Ctrl-C, in the middle of an answer: what was asked and what had come of it is kept.

BEGUN = {
    "http": b"data: the answer beg",
    "openai": b'data: {"choices": [{"index": 0, "delta": {"content": "the answer beg"}}]}\n\n',
    "anthropic": b'event: ping\ndata: {"type": "ping", "text": "the answer beg"}\n\n',
    "nao": b'{"text": "the answer beg',
    "neuro-san": b'{"response": {"type": "AGENT", "text": "the answer beg"}}\n',
    "ollama": b'{"message": {"role": "assistant", "content": "the answer beg"}}\n',
    "promptfoo-http": b'{"text": "the answer beg',
}


async def cut_off(it: Agent, begun: Callable[[], object]) -> list[Exchange]:
    """What is told of requests by a turn that is cancelled once its answer has begun, or that ends itself."""
    told: list[Exchange] = []

    async def ask() -> None:
        session = await it.open(context())
        async for event in session.send(Request(1, "how many?")):
            if isinstance(event, Exchanged):
                told.append(event.exchange)

    asking = asyncio.ensure_future(ask())
    await until(lambda: asking.done() or begun())
    asking.cancel()
    with pytest.raises((asyncio.CancelledError, AgentError)):
        await asking
    await it.close()
    return told


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("kind", BEGUN)
async def test_what_had_come_of_an_answer_that_is_cut_off_is_kept(
    kind: str, answers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of most agents neither the request nor what was paid for of the answer was to be seen anywhere."""
    asked_for, heard, over = asyncio.Event(), asyncio.Event(), asyncio.Event()
    chunks = HttpCall.chunks

    async def as_heard(call: HttpCall) -> AsyncGenerator[bytes]:
        async for chunk in chunks(call):
            yield chunk
            heard.set()

    monkeypatch.setattr(HttpCall, "chunks", as_heard)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answers:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + BEGUN[kind])
            await writer.drain()
        asked_for.set()
        await over.wait()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        options: dict[str, Any] = {"url": url}
        if kind in ("openai", "anthropic", "ollama"):
            options = {"base_url": url, "model": "small", "api_key": "k"}
        elif kind == "nao":
            options["token"] = "a token of nao's"
        elif kind == "promptfoo-http":
            options["config"] = {"method": "POST", "body": {"q": "{{prompt}}"}}
        if kind == "ollama":
            del options["api_key"]
        begun = heard if answers else asked_for
        (told,) = await cut_off(agent(kind, tmp_path, **options), begun.is_set)
        over.set()
    assert told.note == "cut off" and "how many?" in told.request
    assert ("the answer beg" in told.response, told.status) == ((True, 200) if answers else (False, None))


async def test_what_had_come_over_a_websocket_that_is_cut_off_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []

    async def gathered(_: WebSocketSession, __: Any, text: str, ___: Request) -> tuple[str, bool]:
        heard.append(text)
        return text, False

    monkeypatch.setattr(WebSocketSession, "_gathered", gathered)

    async def speak(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.receive()
        await socket.send_str("the answer beg")
        await socket.receive()
        return socket

    app = web.Application()
    app.router.add_get("/", speak)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    config = {"messageTemplate": "{{prompt}}", "streamResponse": "(a, d) => [d.data, false]"}
    it = agent("websocket", tmp_path, url=f"ws://127.0.0.1:{runner.addresses[0][1]}/", config=config)
    (told,) = await cut_off(it, lambda: heard)
    await runner.cleanup()
    assert told.note == "cut off" and told.request.endswith("how many?")
    assert told.response == "the answer beg"


@pytest.mark.parametrize(
    ("rest", "note"),
    [("sleep 60", "cut off; it loads"), ("yes", "failed; it loads")],
    ids=["hangs", "floods"],
)
async def test_what_a_program_wrote_before_it_is_ended_is_kept(
    tmp_path: Path, rest: str, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "OUTPUT_LIMIT", 1_000_000)
    outputs: list[command.Output] = []
    read = command.Output.read

    async def known(output: command.Output) -> None:
        outputs.append(output)
        await read(output)

    monkeypatch.setattr(command.Output, "read", known)
    it = agent("command", tmp_path, command=["sh", "-c", f"echo it loads >&2; echo the answer beg; {rest}"])

    def spoke() -> bool:
        return rest != "yes" and len(outputs) == 2 and all(one.size for one in outputs)

    (told,) = await cut_off(it, spoke)
    assert told.note == note
    assert "how many?" in told.request and told.response.startswith("the answer beg\n")


# -- Credentials that only a server names, and answers of promptfoo's provider that are none.


@pytest.mark.parametrize("kind", ["http", "promptfoo-http"])
@pytest.mark.parametrize("host", ["", "http://127.0.0.1:9"])
async def test_a_credential_that_a_server_names_is_kept_nowhere(
    server: Gateway, kind: str, host: str, tmp_path: Path
) -> None:
    """Where it redirects to stood in errors and in Raw with its token; so did `X-Auth-Token` of an answer."""
    told = {"Location": f"{host}/back?token=a-secret-of-theirs&x=1", "X-Auth-Token": "a-secret-of-theirs"}
    server.plan.extend([Planned(raw=b"", status=307, headers=told), Planned(raw=b"no", status=404)])
    options: dict[str, Any] = {"config": {"method": "POST", "body": {"q": "{{prompt}}"}, "maxRetries": 0}}
    it = agent(kind, tmp_path, url=f"{server.url}/chat", **(options if kind == "promptfoo-http" else {}))
    seen: list[Any] = []
    session = await it.open(context())
    with pytest.raises(AgentError, match="token=•••&x=1") as failed:
        async for event in session.send(Request(1, "hi")):
            seen.append(event)
    await it.close()
    assert any(isinstance(event, Exchanged) for event in seen)
    said = f"{failed.value} {failed.value.evidence} {seen}"
    assert "a-secret-of-theirs" not in said and "x-auth-token: •••" in said


@pytest.mark.parametrize(
    ("planned", "said", "answer"),
    [
        (Planned(raw=b'{"a": "the ans', status=206, headers={"Content-Range": "bytes 0-9/90"}),
         r"a part of its answer \(HTTP 206: bytes 0-9/90\)", '{"a": "the ans'),
        (Planned(raw=b"x", status=503, headers={"Content-Encoding": "br"}), r"HTTP 503 from \S+: no explanation", ""),
        (Planned(raw=b"x", status=200, headers={"Content-Encoding": "br"}), "is packed as br", ""),
    ],
    ids=["a part", "an error that is packed", "packed"],
)  # fmt: skip
async def test_what_is_no_whole_answer_of_promptfoos_provider_is_said_to_be(
    server: Gateway, planned: Planned, said: str, answer: str, tmp_path: Path
) -> None:
    """A part was judged as if it were all, and of an error whose words cannot be read the status was not said."""
    server.plan.append(planned)
    config = {"method": "POST", "body": {"q": "{{prompt}}"}, "maxRetries": 0}
    it = agent("promptfoo-http", tmp_path, url=f"{server.url}/chat", config=config)
    with pytest.raises(AgentError, match=said) as failed:
        await talk(it, "hi")
    await it.close()
    assert failed.value.answer == answer


@pytest.mark.parametrize("kind", ["promptfoo-http", "webhook"])
async def test_what_came_of_an_answer_that_broke_off_is_in_the_transcript(kind: str, tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{"output": "the answer beg')
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        config = {"method": "POST", "body": {"q": "{{prompt}}"}}
        it = agent(kind, tmp_path, url=url, **({"config": config} if kind == "promptfoo-http" else {}))
        with pytest.raises(AgentError, match="broke off") as failed:
            await talk(it, "hi")
        await it.close()
    assert failed.value.answer == '{"output": "the answer beg'
