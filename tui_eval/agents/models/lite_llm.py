"""Models of any provider through LiteLLM, where its extra is installed."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options, loaded
from tui_eval.agents.http.error_answers import backoff, beyond, quota_spent, retry_after
from tui_eval.agents.http.http_connections import RETRIES, RETRY_STATUS
from tui_eval.agents.loose_json import encode, one_line, text_of
from tui_eval.agents.models import finish_reasons, prices
from tui_eval.agents.models.model_call import made_tools
from tui_eval.agents.models.tool_loop import UNANSWERED
from tui_eval.agents.promptfoo import promptfoo_outputs
from tui_eval.config.config_values import destination, host_of, texts_in
from tui_eval.config.project import AgentSpec
from tui_eval.events import Event, Finished, Held, Retrying, ToolCall, UsageReport
from tui_eval.extensions import adding
from tui_eval.guard import figures
from tui_eval.guard.fair_share import Share, seconds_left
from tui_eval.guard.once import Once
from tui_eval.guard.trust import marked
from tui_eval.model import Entry, Reply, Usage

if TYPE_CHECKING:
    from tui_eval.agents.models.openai_stream import Completion

T = TypeVar("T")
_NOBODYS = (Usage(0, 0), Usage(0, 0, 0))
"""Counts where nobody counted."""


_OF_THE_ANSWER = frozenset(
    {
        "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "n", "stop", "stream",
        "frequency_penalty", "presence_penalty", "reasoning_effort", "response_format", "tools", "tool_choice",
        "logprobs", "top_logprobs", "num_retries", "timeout", "verbosity", "user",
    }
)  # fmt: skip
"""Parameters that say how is answered, not where the keys go to or which are read."""


def _wanted(model: str | None, base_url: str | None, parameters: Mapping[str, Any]) -> str:
    """What LiteLLM needs trust for: it takes keys from the environment by itself, and sends them where the address
    and such parameters as `api_base`, `fallbacks` and `aws_bedrock_runtime_endpoint` say. Their values may be
    secrets: of these the name has the hosts and a fingerprint."""
    where = f", which go to {destination(base_url)}" if base_url else ""
    others = {str(name): value for name, value in parameters.items() if name not in _OF_THE_ANSWER}
    if others:
        hosts = dict.fromkeys(filter(None, map(host_of, texts_in(others))))
        named = ", ".join([*others, *hosts])
        where += f", with {named} {marked(json.dumps(others, default=str))}"
    return f"let LiteLLM read the environment's keys for {model}{where}"


class _LoopOfItsOwn:
    """An event loop in a thread: what blocks it keeps only LiteLLM's own requests waiting."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="litellm", daemon=True).start()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine that runs there; cancelled with the one who waits for it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def call(self, work: Callable[[], T]) -> T:
        """The result of a function that runs there."""

        async def called() -> T:
            return work()

        return await self.run(called())

    def end(self) -> None:
        """Run nothing more."""
        self._loop.call_soon_threadsafe(self._loop.stop)


_SENT_ONCE = {"num_retries": 0, "max_retries": 0}
"""LiteLLM sends again whatever failed, and the client below it each of these: a 400 four times, a 500 seven."""
_UNKNOWN_TO = frozenset(("gradient_ai", "huggingface"))
"""Providers that LiteLLM itself asks, once, and that refuse these settings or are sent them."""


def _sent_once(library: Any, model: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What has LiteLLM send a request once. Of a provider that is asked through OpenAI's client it drops the setting
    where the provider has it in no list: each request went out three times."""
    with suppress(Exception):  # models that it has not heard of
        provider = library.get_llm_provider(model, api_base=given.get("api_base"))[1]
        if provider in _UNKNOWN_TO:
            return {}
        known = library.get_supported_openai_params(model, provider) or ()
        if (
            provider in library.openai_compatible_providers
            and "max_retries" not in known
            and "allowed_openai_params" in inspect.signature(library.utils.get_optional_params).parameters
        ):
            return {
                **_SENT_ONCE,
                "allowed_openai_params": [*given.get("allowed_openai_params", ()), "max_retries"],
            }
    return _SENT_ONCE


class LiteLLMAgent(Agent):
    """One model by LiteLLM's name (`bedrock/…`, `vertex_ai/…`). Its keys come from the environment, which
    needs trust."""

    capabilities = Capabilities(tokens=True, tools=True)
    keeps_pace = True

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        known = frozenset(
            {"base_url", "api_key", "headers", "parameters", "promptfoo", "promptfoo_price", "model"}
        )
        options = Options(spec, services, known)
        self.parameters = loaded(options, options.mapping("parameters"))
        self.made = made_tools(self.parameters, spec, services)
        base_url = options.text("base_url")
        services.trust.require(_wanted(spec.model, base_url, self.parameters))
        self.own_price = prices.own_price(options.mapping("promptfoo_price"))
        self.stream = self.parameters.pop("stream", True) is not False
        for name, value in (("api_base", base_url), ("api_key", options.text("api_key"))):
            if value:
                self.parameters[name] = value
        if headers := options.headers():
            self.parameters["extra_headers"] = headers
        given = [self.parameters.pop(name, None) for name in _SENT_ONCE]
        self.retries = next((max(0, one) for one in (*given, spec.retries) if isinstance(one, int)), RETRIES)
        self._library: Once[Any] = Once()
        self.loop = _LoopOfItsOwn()

    @property
    def preparing(self) -> str:
        return "importing LiteLLM"

    async def prepare(self, tell: Callable[[str], None] | None) -> None:
        """Import LiteLLM, which takes seconds that are not the model's."""
        await self.library()

    async def library(self) -> Any:
        """LiteLLM.

        Raises:
            AgentError: it cannot be imported.
        """
        return await self._library.get(lambda: asyncio.to_thread(_imported))

    def priced(self, context: SessionContext, told: UsageReport, model: str | None) -> float | None:
        """See `Agent.priced`. A price that only LiteLLM's table has stays what it was."""
        asked = context.model or self.spec.model or model
        found = prices.cost(asked, told.usage, self.services.prices, self.own_price, told.written)
        return told.cost if found is None and self.own_price is None else found

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation."""
        if self.made is not None:
            self.parameters["tools"] = await self.made.tools()
        return LiteLLMSession(self, context.model or self.spec.model or "", tested=context.test is not None)

    async def close(self) -> None:
        """Close LiteLLM's connections."""
        if self.made is not None:
            await self.made.close()
        library = await self._library.taken()
        if library is not None:
            with suppress(Exception):  # it is of no consequence to a run that is over
                await self.loop.run(library.close_litellm_async_clients())
        self.loop.end()


def _imported() -> Any:
    # Its own way of not fetching its table of prices from the internet at each start.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        library: Any = importlib.import_module("litellm")
    except ImportError as error:
        raise AgentError(
            f"LiteLLM cannot be imported ({one_line(str(error))}): {adding('litellm')}",
            code="cannot-run",
            said=f"LiteLLM: {one_line(str(error))}",
        ) from None
    library.suppress_debug_info = True  # it prints advice otherwise
    # Where a server gives no counts it counts itself, with a tokenizer that it fetches from a foreign host for
    # some models, in the loop: counts that nobody reported are unknown here.
    library.disable_hf_tokenizer_download = True
    library.disable_token_counter = True
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    return library


class LiteLLMSession(Session):
    """The messages so far; each turn adds to them. `tested` says that a promptfoo test is run."""

    def __init__(self, agent: LiteLLMAgent, model: str, tested: bool = False) -> None:
        self.agent = agent
        self.tested = tested
        self.model = model
        self.messages: list[Any] = []

    def restart(self) -> None:
        """Forget what was said."""
        self.messages = []

    def restore(self, entries: Sequence[Entry], replies: Sequence[Reply]) -> bool:
        """The messages of recorded turns, tool calls with their results included."""
        from tui_eval.agents.models.recorded_messages import chat_messages

        self.messages.extend(chat_messages(entries))
        return True

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Send one turn."""
        from tui_eval.agents.models.openai_stream import Completion

        agent = self.agent
        library = await agent.library()
        began = time.monotonic()
        if request.messages is not None:
            self.messages = list(request.messages)
        else:
            self.messages.append({"role": "user", "content": request.text or ""})
        given = dict(agent.parameters)
        given |= await agent.loop.call(lambda: _sent_once(library, self.model, given))
        if request.schema is not None and await agent.loop.call(lambda: _knows_schemas(library, self.model)):
            given["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": request.schema},
            }
        if agent.stream:
            given.update(stream=True, stream_options={"include_usage": True})
        completion = Completion(request.turn, keeps_filtered=self.tested)
        who = f"LiteLLM: {self.model}"
        try:
            begun: _Begun | None = None
            async for event in self._begun(library, given):
                if isinstance(event, _Begun):
                    begun = event
                else:
                    yield event
            assert begun is not None
            answer, parts, text = begun
            share = Share()
            while text is not None:
                for event in completion.add(text, who):
                    if isinstance(
                        event, UsageReport
                    ):  # its price is the library's, and 0 is what nobody counted
                        if event.usage in _NOBODYS:
                            continue
                        event = await self._spent(library, completion)
                    yield event
                if parts is None:
                    break
                await share.turn()
                text = await agent.loop.run(_next(answer, parts))
            completion.check(who)
            if not self.tested:
                completion.check_said(who)
        except AgentError as error:
            error.answer = error.answer or completion.text
            if completion.usage not in (None, *_NOBODYS):  # it was paid for
                yield await self._spent(library, completion)
            raise
        except Exception as error:  # every provider brings errors of its own
            status = getattr(error, "status_code", None)
            raise AgentError(
                f"{who}: {one_line(str(error))}",
                status=status if isinstance(status, int) else None,
                answer=completion.text,
                code="reported" if not isinstance(status, int) else "",
                said=one_line(str(error)),
            ) from None
        if completion.usage in _NOBODYS:
            completion.usage = None  # it says 0 where nobody counted
        for call in completion.calls:
            yield ToolCall(call.id, call.name, call.arguments)
        told = await self._spent(library, completion)
        reply = Reply(
            turn=request.turn,
            text=completion.text,
            usage=completion.usage,
            cost=told.cost,
            latency_ms=round((time.monotonic() - began) * 1000, 1),
            finish_reason=completion.finish_reason,
            model=completion.model or self.model,
        )
        message = completion.message()
        self.messages.append(message)
        for call in completion.calls:  # nobody here answers them, and no provider takes one without a result
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": UNANSWERED})
        if completion.calls:
            reply.output = message if completion.text else message["tool_calls"]
            reply.text = text_of(reply.output)
        elif finish_reasons.is_filtered(reply.finish_reason):
            reply.text = reply.text or promptfoo_outputs.FILTERED
            reply.guardrails = {"flagged": True}
        elif self.tested and not (completion.wrote or reply.text):
            reply.text_missing = True  # promptfoo's "No output"
        if completion.usage is not None:
            yield told
        yield Finished(reply)

    async def _begun(self, library: Any, given: dict[str, Any]) -> AsyncIterator[Event | _Begun]:
        """Send the request, again where that makes sense; what happens meanwhile, and last what came first."""
        agent = self.agent
        for attempt in range(agent.retries + 1):
            if held := await agent.pace.claimed():
                yield Held(round(held, 3))
                await asyncio.sleep(held)
            try:
                answer = await agent.loop.run(
                    library.acompletion(model=self.model, messages=self.messages, **given)
                )
                parts = aiter(answer) if agent.stream else None
                first = await agent.loop.run(_next(answer, parts))
            except Exception as error:
                again = _again(error, attempt) if attempt < agent.retries else None
                if again is None:
                    raise
                reason, wait = again
                yield Retrying(reason, round(wait, 3))
                await asyncio.sleep(wait)
            else:
                yield _Begun(answer, parts, first)
                return

    async def _spent(self, library: Any, completion: Completion) -> UsageReport:
        """What an answer took so far; without counts neither tokens nor a cost."""
        agent, usage, written = self.agent, completion.usage, completion.written
        cost = await agent.loop.call(lambda: _cost(library, self.model, usage, written, agent))
        return UsageReport(usage or Usage(), cost, written)


class _Begun(NamedTuple):
    """An answer that has begun: its parts, where it is streamed, and the first of them."""

    answer: Any
    parts: AsyncIterator[Any] | None
    first: str | None


_NOT_ASKED = ("ConnectError", "ConnectTimeout", "ClientConnectorError", "ServerDisconnectedError")
"""Errors of httpx and aiohttp where no answer has begun: one that breaks off in the middle was paid for."""


def _again(error: Exception, attempt: int) -> tuple[str, float] | None:
    """Why, and after how many seconds, a request that failed so is sent again, as to any model; None: it is not."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < 10:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    status = getattr(error, "status_code", None)
    if status in RETRY_STATUS:
        spent = any(quota_spent(status, encode(getattr(one, "body", None)).decode()) for one in causes)
        wished = retry_after(_headers(error))
        if spent or (wished is not None and beyond(wished, seconds_left())):
            return None
        return str(status), backoff(attempt, wished)
    kinds = {kind.__name__ for one in causes for kind in type(one).__mro__}
    lost = not kinds.isdisjoint(_NOT_ASKED) and "SSLError" not in kinds
    return ("no connection", backoff(attempt)) if lost else None


def _headers(error: Exception) -> dict[str, str]:
    """Those of the answer that an error of LiteLLM's is about."""
    told = getattr(error, "litellm_response_headers", None) or getattr(
        getattr(error, "response", None), "headers", None
    )
    with suppress(Exception):  # every provider brings errors of its own
        return {str(name).lower(): str(value) for name, value in dict(told or {}).items()}
    return {}


async def _next(answer: Any, parts: AsyncIterator[Any] | None) -> str | None:
    """The next part of an answer, or all of it, as JSON; None at its end."""
    part = answer if parts is None else await anext(parts, None)
    if part is None:
        return None
    try:
        return part.model_dump_json(exclude_none=True)
    except ValueError:  # half of a character, whose other half comes with the next part
        return encode(part.model_dump(exclude_none=True)).decode()


def _knows_schemas(library: Any, model: str) -> bool:
    with suppress(Exception):  # models that it has not heard of
        return bool(library.supports_response_schema(model=model))
    return False


def _cost(library: Any, model: str, usage: Usage | None, written: int, agent: LiteLLMAgent) -> float | None:
    """By the provider's own price or the project's, else by LiteLLM's table; None for a model that none knows."""
    found = prices.cost(model, usage, agent.services.prices, agent.own_price, written)
    if found is not None or usage is None or agent.own_price is not None:
        return found
    fresh = max(0, (usage.input_tokens or 0) - (usage.cached_tokens or 0))
    with suppress(Exception):  # a model that it has no price for
        parts = library.cost_per_token(
            model=model,
            prompt_tokens=usage.input_tokens or 0,
            completion_tokens=usage.output_tokens or 0,
            cache_read_input_tokens=usage.cached_tokens or 0,
            cache_creation_input_tokens=min(written, fresh),
        )
        return figures.amount(round(sum(parts), 10), "cost")
    return None
