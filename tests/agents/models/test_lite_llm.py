"""The LiteLLM agent with a stand-in for the library (`tests/real` has it itself)."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.agents import context, services, talk
from tests.support.waiting import until
from tui_eval.agents import AgentError, Request, create
from tui_eval.agents.base import Agent
from tui_eval.agents.models import lite_llm
from tui_eval.agents.models.tool_loop import UNANSWERED
from tui_eval.config.project import AgentSpec
from tui_eval.events import Event, Finished, Retrying, TextDelta, ToolCall, UsageReport
from tui_eval.guard.trust import NeedsTrust


class Part:
    """A part of an answer, as LiteLLM's own classes give themselves as JSON."""

    def __init__(self, **delta: Any) -> None:
        self.finish = delta.pop("finish", None)
        self.usage = delta.pop("usage", None)
        self.delta = delta

    def model_dump_json(self, **_: Any) -> str:
        choice = {"index": 0, "delta": self.delta, "finish_reason": self.finish}
        return json.dumps({"model": "m-1", "choices": [choice], "usage": self.usage})


class Library(ModuleType):
    """What of LiteLLM is used. `answers` are lists of parts, or what is raised."""

    def __init__(self, *answers: Any) -> None:
        super().__init__("litellm")
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []
        self.closed = False

    async def acompletion(self, **given: Any) -> Any:
        self.asked.append({**given, "messages": list(given["messages"])})
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer

        async def parts():
            for part in answer:
                yield part

        return parts() if given.get("stream") else answer[0]

    def cost_per_token(
        self, *, prompt_tokens: int, completion_tokens: int, cache_creation_input_tokens: int = 0, **_: Any
    ) -> tuple[float, float]:
        return (prompt_tokens + cache_creation_input_tokens) * 0.001, completion_tokens * 0.01

    def supports_response_schema(self, model: str) -> bool:
        return False

    async def close_litellm_async_clients(self) -> None:
        self.closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)

    def make(library: Library, **options: Any) -> Agent:
        monkeypatch.setitem(sys.modules, "litellm", library)
        given = {"base_url": "http://127.0.0.1:9/v1", "api_key": "sk-12345678", **options}
        return create(AgentSpec("it", "litellm", given, model="bedrock/x", retries=2), services(trusted=True))

    return make


async def test_streams_keeps_the_conversation_and_costs(made) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    library = Library(
        [Part(content="he"), Part(content="llo"), Part(finish="stop"), Part(usage=usage)],
        [Part(content="again", finish="stop")],
    )
    it = made(library, parameters={"temperature": 0})
    events, _ = await talk(it, "hi", "more")
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["he", "llo", "again"]
    first, second = [event.reply for event in events if isinstance(event, Finished)]
    assert (first.text, first.model, first.finish_reason) == ("hello", "m-1", "stop")
    assert first.cost == pytest.approx(0.03) and second.cost is None
    assert [message["role"] for message in library.asked[1]["messages"]] == ["user", "assistant", "user"]
    given = library.asked[0]
    assert (given["api_base"], given["api_key"]) == ("http://127.0.0.1:9/v1", "sk-12345678")
    assert (given["temperature"], given["stream"]) == (0, True)
    assert (given["num_retries"], given["max_retries"]) == (0, 0), "what is sent again is decided here"
    await it.close()
    assert library.closed


@pytest.mark.parametrize(
    ("provider", "settings"),
    [
        ("openai", {"num_retries": 0, "max_retries": 0}),
        ("anthropic", {"num_retries": 0, "max_retries": 0}),
        ("nvidia_nim", {"num_retries": 0, "max_retries": 0, "allowed_openai_params": ["max_retries"]}),
        ("huggingface", {}),
    ],
)
async def test_what_has_a_request_sent_once_is_given_as_the_provider_takes_it(
    made, provider: str, settings: dict[str, Any]
) -> None:
    """LiteLLM drops the setting for some that OpenAI's client asks: three requests. To others it is sent."""
    library: Any = Library([Part(content="hello", finish="stop")])
    library.get_llm_provider = lambda model, api_base: (model, provider, None, api_base)
    library.get_supported_openai_params = lambda model, of: ["max_retries"] if of == "openai" else []
    library.openai_compatible_providers = ["openai", "nvidia_nim"]
    library.utils = SimpleNamespace(get_optional_params=lambda model, allowed_openai_params: {})
    await talk(made(library, parameters={"num_retries": -1}), "hi")
    names = ("num_retries", "max_retries", "allowed_openai_params")
    assert {name: library.asked[0][name] for name in names if name in library.asked[0]} == settings


async def test_what_was_written_to_a_cache_has_a_price_of_its_own(made) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "cache_creation_input_tokens": 5}
    library = Library([Part(content="hello", finish="stop"), Part(usage=usage)])
    _, (reply,) = await talk(made(library), "hi")
    assert reply.cost == pytest.approx(0.035)


async def test_zeros_where_nobody_counted_are_no_tokens_and_what_is_told_early_has_its_price(made) -> None:
    nobodys = {"prompt_tokens": 0, "completion_tokens": 0}
    library = Library(
        [Part(content="hello"), Part(finish="stop"), Part(usage=nobodys)],
        [Part(content="a", usage={"prompt_tokens": 10, "completion_tokens": 2}), Part(finish="stop")],
    )
    events, _ = await talk(made(library), "hi", "more")
    told = [event for event in events if isinstance(event, UsageReport)]
    assert told and all(one.usage.input_tokens == 10 and one.cost == pytest.approx(0.03) for one in told)
    assert next(event.reply.usage for event in events if isinstance(event, Finished)) is None


async def test_tool_calls_are_the_output(made) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"q": 1}'}}
    library = Library([Part(tool_calls=[call]), Part(finish="tool_calls")])
    events, _ = await talk(made(library), "hi")
    assert [event.arguments for event in events if isinstance(event, ToolCall)] == [{"q": 1}]
    assert "look" in next(event.reply.text for event in events if isinstance(event, Finished))


async def test_a_call_that_nobody_answers_has_a_result_in_the_next_turn(made) -> None:
    """Each turn after it was refused: a call may not stand in a conversation without one."""
    calls = [{"index": at, "id": f"c{at}", "function": {"name": "look", "arguments": "{}"}} for at in (0, 1)]
    library = Library(
        [Part(tool_calls=calls), Part(finish="tool_calls")], [Part(content="Hi", finish="stop")]
    )
    await talk(made(library), "hi", "more")
    _, asked, *results, last = library.asked[1]["messages"]
    assert [call["id"] for call in asked["tool_calls"]] == ["c0", "c1"]
    assert results == [{"role": "tool", "tool_call_id": f"c{at}", "content": UNANSWERED} for at in (0, 1)]
    assert last == {"role": "user", "content": "more"}


async def test_an_answer_at_once(made) -> None:
    library = Library([Part(content="whole", finish="stop")])
    events, _ = await talk(made(library, parameters={"stream": False}), "hi")
    assert [event.reply.text for event in events if isinstance(event, Finished)] == ["whole"]
    assert "stream" not in library.asked[0]


class Refused(Exception):
    """As those of LiteLLM."""

    def __init__(self, status: int, body: Any = None, **headers: str) -> None:
        super().__init__(f"status {status}")
        self.status_code, self.body = status, body
        self.litellm_response_headers = {key.replace("_", "-").title(): one for key, one in headers.items()}


# Below LiteLLM's error of status 500, as aiohttp and httpx name them.
ServerDisconnectedError = type("ServerDisconnectedError", (Exception,), {})
ReadError = type("ReadError", (Exception,), {})


def below(cause: Exception) -> Exception:
    error = Refused(500)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("failed", "asked"),
    [
        (Refused(429, retry_after="0"), 3),
        (Refused(503, retry_after="0"), 3),
        (below(ServerDisconnectedError()), 3),
        (below(ReadError()), 1),
        (Refused(400), 1),
        (Refused(401), 1),
        (Refused(500), 1),
        (Refused(429, {"code": "insufficient_quota"}, retry_after="0"), 1),
        (Refused(429, retry_after="3600"), 1),
    ],
)
async def test_a_request_is_sent_again_as_to_any_model(
    made, monkeypatch: pytest.MonkeyPatch, failed: Exception, asked: int
) -> None:
    """LiteLLM did that by itself, up to seven times, a 400 too; each is told, and keeps the agent's rate."""
    monkeypatch.setattr(lite_llm, "backoff", lambda _, wished=None: wished or 0.0)
    library = Library(*[failed] * 3)
    it = made(library)
    events: list[Event] = []
    session = await it.open(context())
    with pytest.raises(AgentError, match="status"):
        async for event in session.send(Request(1, "hi")):
            events.append(event)
    assert len(library.asked) == asked
    assert sum(isinstance(event, Retrying) for event in events) == asked - 1
    await it.close()


async def test_a_character_may_come_in_two_parts(made) -> None:
    """Pydantic cannot write a half, which ended the attempt."""

    class Half(Part):
        def model_dump_json(self, **_: Any) -> str:
            raise ValueError("Error serializing to JSON: surrogates not allowed")

        def model_dump(self, **_: Any) -> dict[str, Any]:
            return json.loads(super().model_dump_json())

    library = Library([Half(content="\ud83c"), Half(content="\udf89 ok"), Part(finish="stop")])
    events, _ = await talk(made(library), "hi")
    assert [event.reply.text for event in events if isinstance(event, Finished)] == ["🎉 ok"]


async def test_what_has_begun_to_answer_is_not_asked_again(made) -> None:
    class Breaking(Library):
        async def acompletion(self, **given: Any) -> Any:
            parts = await super().acompletion(**given)

            async def broken():
                async for part in parts:
                    yield part
                raise Refused(503, retry_after="0")

            return broken()

    library = Breaking([Part(content="he")])
    with pytest.raises(AgentError, match="status 503") as caught:
        await talk(made(library), "hi")
    assert caught.value.answer == "he" and len(library.asked) == 1


async def test_errors_are_one_line_with_their_status(made) -> None:
    class Refused(Exception):
        status_code = 401

    with pytest.raises(AgentError) as caught:
        await talk(made(Library(Refused("bad key\nof yours"))), "hi")
    assert str(caught.value) == "LiteLLM: bedrock/x: bad key of yours" and caught.value.status == 401


async def test_what_is_no_answer_is_an_error(made) -> None:
    it = made(Library([Part(content="half"), Part(finish="content_filter")], [Part(finish="error")], []))
    for said, kept in (
        ("content filter stopped it", "half"),
        ("broke the answer off", ""),
        ("without a message", ""),
    ):
        with pytest.raises(AgentError, match=said) as caught:
            await talk(it, "hi")
        assert caught.value.answer == kept
    it = made(Library([Part(content="", finish="content_filter")]))
    events, _ = await talk(it, "hi", test={"vars": {}})
    reply = next(event.reply for event in events if isinstance(event, Finished))
    assert reply.text == "Content filtered by provider" and reply.guardrails == {"flagged": True}


async def test_without_the_library_the_extra_is_named(made, monkeypatch: pytest.MonkeyPatch) -> None:
    it = made(Library())
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(AgentError, match=r"pip install -e '\.\[litellm\]'"):
        await it.prepare(None)


def test_the_environments_keys_need_trust() -> None:
    with pytest.raises(NeedsTrust, match="let LiteLLM read the environment's keys for bedrock/x"):
        create(AgentSpec("it", "litellm", {}, model="bedrock/x"), services(trusted=False))


def test_trust_in_litellm_is_for_the_hosts_that_its_keys_go_to() -> None:
    """Who had agreed to a model let it send the environment's keys wherever its address was changed to."""

    def wanted(**options: Any) -> str:
        with pytest.raises(NeedsTrust) as needs:
            create(AgentSpec("it", "litellm", options, model="openai/x"), services(trusted=False))
        return needs.value.what

    plain = wanted(parameters={"temperature": 0, "max_tokens": 9})
    assert plain == wanted() == "let LiteLLM read the environment's keys for openai/x"
    assert wanted(base_url="https://a.example/v1") == f"{plain}, which go to a.example"
    fallen = wanted(parameters={"fallbacks": [{"model": "openai/y", "api_base": "http://b.example:8/v1"}]})
    assert fallen.startswith(f"{plain}, with fallbacks, b.example [")
    other = wanted(parameters={"fallbacks": [{"model": "openai/y", "api_base": "http://b.example:9/v1"}]})
    assert fallen != other
    secret = wanted(parameters={"api_base": "http://c.example", "aws_secret_access_key": "hunter2hunter2"})
    assert "c.example" in secret and "hunter2" not in secret
    assert "with x, 1 [" in wanted(parameters={"x": "\ud800", 1: 2})


async def test_it_asks_no_foreign_host_and_what_it_blocks_is_its_own(made) -> None:
    """Where a server counts nothing, LiteLLM fetches a tokenizer for some models, and blocks its loop with that."""
    threads: list[int] = []
    released = threading.Event()

    class Blocking(Library):
        async def acompletion(self, **given: Any) -> Any:
            threads.append(threading.get_ident())
            assert released.wait(60)  # blocks its loop, as a fetch does
            return await super().acompletion(**given)

    counted = {"prompt_tokens": 0, "completion_tokens": 0}
    library = Blocking([Part(content="hi", finish="stop"), Part(usage=counted)])
    it = made(library)
    talking = asyncio.ensure_future(talk(it, "hello"))
    await until(lambda: threads)
    released.set()  # this loop goes on meanwhile: else nobody would come to say so
    _, replies = await asyncio.wait_for(talking, 60)
    assert threading.get_ident() not in threads
    assert replies[-1].text == "hi" and replies[-1].usage is None and replies[-1].cost is None
    assert getattr(library, "disable_hf_tokenizer_download") is True  # noqa: B009
    assert getattr(library, "disable_token_counter") is True  # noqa: B009
    await it.close()
    assert library.closed
