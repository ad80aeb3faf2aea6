"""Agents behind OpenAI's chat completions, from whichever server: OpenAI, vLLM, Ollama, a gateway.

Streams, runs the small tool loop, and takes what servers do differently: no streaming, no usage, no
ids, reasoning under two names.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from tui_eval.agents.base import AgentError, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options, asked_with, below, usual_secret
from tui_eval.agents.http.http_call import HttpClient
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.loose_json import decode, encode, text_of
from tui_eval.agents.models import finish_reasons, prices
from tui_eval.agents.models.model_call import (
    ModelAgent,
    asked,
    made_tools,
    metadata_of,
    no_model,
    too_many_steps,
    uncounted,
)
from tui_eval.agents.models.openai_stream import Completion, usage_of
from tui_eval.agents.models.recorded_messages import chat_messages, with_metadata
from tui_eval.agents.models.tool_loop import Toolbox, only_calls
from tui_eval.agents.promptfoo import promptfoo_models, promptfoo_outputs
from tui_eval.config.config_values import OPENAI_ADDRESS
from tui_eval.config.project import AgentSpec
from tui_eval.events import Event, Finished, Note, ToolCall, ToolResult, UsageReport
from tui_eval.guard import figures
from tui_eval.guard.once import Once
from tui_eval.guard.text import clip
from tui_eval.model import Entry, Reply, Usage
from tui_eval.model_ids import plain_name

if TYPE_CHECKING:
    from tui_eval.agents.programs.suite_scripts import Callbacks

EMBEDDING_MODEL = "text-embedding-3-large"
"""promptfoo's default."""
KNOWN = frozenset(
    {
        "base_url",
        "model",
        "api_key",
        "headers",
        "system",
        "tools",
        "parameters",
        "metadata",
        "max_steps",
        "embedding_model",
        "stream",
        "promptfoo",
        "promptfoo_price",
    }
)


class OpenAIAgent(ModelAgent):
    """One model behind one base URL.

    With `promptfoo: true` `parameters` are the settings of a promptfoo provider, and outputs have promptfoo's
    shapes.
    """

    provider = "openai"

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, KNOWN)
        self.base_url = (options.text("base_url") or OPENAI_ADDRESS).rstrip("/")
        self.url = below(self.base_url, "chat/completions")
        self.model = spec.model or options.text("model")
        self.headers = options.headers()
        self.system = options.content("system")
        self.parameters = asked_with(options)
        self.made = made_tools(self.parameters, spec, services)
        self.format = self.parameters.get("response_format")
        if isinstance(options.mapping("parameters").get("response_format"), str):
            self.format = (
                None  # promptfoo takes an answer for a value where its format stands in the suite itself
            )
        self.metadata = options.text("metadata")
        self.max_steps = options.number("max_steps", 10)
        self.embedding_model = options.text("embedding_model") or EMBEDDING_MODEL
        self.stream = False not in (spec.options.get("stream"), self.parameters.get("stream"))
        self.promptfoo = options.flag("promptfoo")
        self.own_price = prices.own_price(options.mapping("promptfoo_price"))
        self.callbacks = _callbacks(self.parameters.get("functionToolCallbacks"), services, spec.base)
        self.knows_schemas = True
        self.toolbox = Toolbox(options, services)
        self._models: Once[list[str]] = Once()
        api_key = usual_secret(options, "api_key", self.base_url, "OPENAI_API_KEY")
        if api_key and "authorization" not in {name.lower() for name in self.headers}:
            self.headers["Authorization"] = f"Bearer {api_key}"
        self.client = HttpClient(headers=self.headers, retries=spec.retries, pace=self.pace)

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation with the system text, where there is one."""
        model = context.model or self.model
        if not model:
            served = await self._models.get(self._served)
            if len(served) != 1:
                there = f" ({self.base_url} has {clip(', '.join(served), 200)})" if served else ""
                raise no_model(self.spec, f"give one here or with -m{there}")
            model = self.model = served[0]
        await self.toolbox.load()
        if self.made is not None:
            self.parameters["tools"] = await self.made.tools()
        session = OpenAISession(self, plain_name(model, "openai"), context, tested=context.test is not None)
        await session.tools.get_ready()
        return session

    def asked_for(self, model: str, request: Request) -> dict[str, Any]:
        """The parameters of a request."""
        if not self.promptfoo:
            return self.parameters
        return promptfoo_models.chat(model, promptfoo_models.filled_in(self.parameters, request.vars))

    def priced(self, context: SessionContext, told: UsageReport, model: str | None) -> float | None:
        """See `Agent.priced`. A price that only the server knows stays what it was."""
        found = super().priced(context, told, model)
        return told.cost if found is None and told.cost_said and not self.promptfoo else found

    async def _served(self) -> list[str]:
        """The models of a server of one's own; local ones often serve exactly one.

        Raises:
            AgentError: there is no server.
        """
        if self.base_url == OPENAI_ADDRESS:
            return []
        call = self.client.call("GET", below(self.base_url, "models"))
        try:
            served = decode(await call.whole())
            return [item["id"] for item in served["data"] if isinstance(item["id"], str)]
        except AgentError as error:
            if error.status is None:
                raise
        except (ValueError, TypeError, KeyError):
            pass
        return []

    async def embed(self, texts: list[str]) -> tuple[list[list[float]], Usage | None, float | None]:
        """A vector for each text, by this server's `/embeddings` and `embedding_model`; their tokens, and USD.

        Raises:
            AgentError: it does not answer, or with something else.
        """
        body = encode({"model": self.embedding_model, "input": texts})
        call = self.client.call("POST", below(self.base_url, "embeddings"), body=body)
        try:
            answer = decode(await call.whole())
            data = answer["data"]
            if all(isinstance(item.get("index"), int) for item in data):
                data = sorted(data, key=lambda item: item["index"])
            vectors = [[float(number) for number in item["embedding"]] for item in data]
            if not all(map(figures.is_finite, chain.from_iterable(vectors))):
                raise ValueError("not finite")
        except OverflowError:
            raise AgentError(
                f"{self.base_url}/embeddings answered with numbers that are too large",
                code="unreadable",
                said="embeddings: numbers that are too large",
                place=place_of(self.base_url),
            ) from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise AgentError(
                f"{self.base_url}/embeddings did not answer with embeddings",
                code="unreadable",
                said="no embeddings",
                place=place_of(self.base_url),
            ) from None
        usage = figures.usage(usage_of(answer.get("usage")))
        model = self.embedding_model
        return vectors, usage, prices.cost(model, usage, self.services.prices, self.own_price)

    async def close(self) -> None:
        """Close connections and the tools' process."""
        await self.client.close()
        if self.made is not None:
            await self.made.close()
        if self.callbacks is not None:
            await self.callbacks.close()
        await self.toolbox.close()


class OpenAISession(Session):
    """The messages so far; each turn adds to them. `tested` says that a promptfoo test is run (not a judge asked),
    whose output has the model's thoughts in it, as for promptfoo that of a judge, too (`compat: reference`)."""

    def __init__(self, agent: OpenAIAgent, model: str, context: SessionContext, tested: bool = False) -> None:
        self.agent = agent
        self.tools = agent.toolbox.for_attempt(context)
        self.callbacks = agent.callbacks.for_attempt(context) if agent.callbacks is not None else None
        self.model = model
        self.headers = context.model_headers
        self.priced = not (agent.promptfoo and context.reference) or promptfoo_models.is_priced(model)
        self.tested = tested
        self.thinks_aloud = tested or context.reference
        self.messages: list[dict[str, Any]] = []
        self.restart()

    def restart(self) -> None:
        """Forget everything but the system text."""
        self.messages = [{"role": "system", "content": self.agent.system}] if self.agent.system else []

    def restore(self, entries: Sequence[Entry], replies: Sequence[Reply]) -> bool:
        """The messages of recorded turns, tool calls with their results included."""
        kept = with_metadata(entries, replies) if self.agent.metadata == "json" else entries
        self.messages.extend(chat_messages(kept))
        return True

    async def close(self) -> None:
        """Let another attempt have the process of the tools, and that of the suite's functions."""
        self.tools.close()
        if self.callbacks is not None:
            await self.callbacks.close()

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Send one turn and run the tools that it asks for."""
        agent = self.agent
        if request.messages is not None:
            self._take(request.messages)
        else:
            self.messages.append({"role": "user", "content": request.text or ""})
        began = time.monotonic()
        total = UsageReport(Usage())
        reported: list[Any] = []
        counted: list[bool] = []
        completion = self._completion(request)
        called = noted = False
        bound = only_calls(agent.parameters.get("tool_choice"))
        steps, again, without_schema = 0, False, False
        while steps < agent.max_steps or again:
            # Asked again without a schema that the server does not know, it is the same step.
            steps, again = steps + (not again), False
            if steps > 1:
                completion = self._completion(request)
            # Another attempt may learn meanwhile that the server knows no schemas.
            with_schema = request.schema is not None and agent.knows_schemas and not without_schema
            heard: UsageReport | None = None
            body = encode(self._body(request, with_schema))
            call = agent.client.call("POST", agent.url, body=body, headers=self.headers, turn=request.turn)
            try:
                async for event in asked(call, completion):
                    if isinstance(event, UsageReport):  # of this request alone
                        event = heard = self._spent(total, completion)
                    yield event
            except AgentError as error:
                if with_schema and error.status in (400, 422):
                    yield Note("asked again without a JSON schema, which this server may not know")
                    completion, again, without_schema = self._completion(request), True, True
                    continue
                if completion.usage is not None and (told := self._spent(total, completion)) != heard:
                    yield told  # it was paid for
                raise
            if without_schema:
                agent.knows_schemas = False  # it was the schema, not what else the request holds
            told = self._spent(total, completion)
            total = told
            counted.append(completion.usage is not None)
            if told != heard:
                yield told
            self.messages.append(completion.sent_back(called))
            if not completion.keeps_filtered:
                completion.check_said(agent.url, called)
            called = called or bool(completion.calls)
            names = [one.name for one in completion.calls]
            ours = agent.toolbox.goes_on(names, completion.text, noted or bound)
            noted = agent.toolbox.reports(names)
            # What a server of before tools calls nobody here answers; in a promptfoo test it is a part of the output.
            old = [] if completion.keeps_filtered else completion.old_calls
            for tool_call in old:
                yield ToolCall(tool_call.id, tool_call.name, tool_call.arguments)
                if tool_call.name == agent.metadata:
                    reported.append(tool_call.arguments)
            for tool_call in completion.calls:
                yield ToolCall(tool_call.id, tool_call.name, tool_call.arguments)
                if tool_call.name == agent.metadata:
                    reported.append(tool_call.arguments)
                if ours:
                    outcome = await self.tools.call(tool_call.name, tool_call.arguments)
                    yield ToolResult(tool_call.id, tool_call.name, outcome.result, outcome.error)
                    told_back = outcome.text
                else:
                    told_back = agent.toolbox.unanswered(tool_call.name)
                self.messages.append({"role": "tool", "tool_call_id": tool_call.id, "content": told_back})
            if ours:
                continue
            latency_ms = round((time.monotonic() - began) * 1000, 1)
            reply = self._reply(request.turn, completion, reported, told, latency_ms)
            if self.tested:
                reply.metadata = {**(reply.metadata or {}), "http": call.answered()}
            if agent.promptfoo:
                self._as_promptfoo(reply, completion)
            if agent.promptfoo and self.callbacks is not None:
                asked_for = [(call.name, call.raw) for call in completion.calls]
                if completion.old_call:
                    asked_for = [(completion.old_call["name"], completion.old_call["arguments"])]
                if (answer := await self.callbacks.output(asked_for)) is not None:
                    reply.text, reply.output = answer, None
                if self.callbacks.failed:
                    yield Note(self.callbacks.failed)
            if self.tested and not completion.wrote and not reply.text and reply.output is None:
                reply.text_missing = True  # promptfoo's "No output"
            for note in uncounted(counted):
                yield note
            yield Finished(reply)
            return
        raise too_many_steps(agent.max_steps, completion.text)

    def _reply(
        self, turn: int, completion: Completion, reported: list[Any], told: UsageReport, latency_ms: float
    ) -> Reply:
        """The reply of a turn that ended with this completion. `reported` is what the model reported by the
        tool of that name, `told` what the turn took."""
        text, metadata = metadata_of(completion.text, self.agent.metadata, reported)
        reply = Reply(
            turn=turn,
            text=text,
            metadata=metadata,
            usage=told.usage,
            cost=told.cost,
            latency_ms=latency_ms,
            finish_reason=completion.finish_reason,
            model=completion.model or self.model,
            log_probs=completion.log_probs,
        )
        if completion.refused:
            reply.guardrails = {"flagged": True}
        elif finish_reasons.is_filtered(reply.finish_reason):
            reply.text = reply.text or promptfoo_outputs.FILTERED
            reply.guardrails = {"flagged": True}
        return reply

    def _spent(self, before: UsageReport, completion: Completion) -> UsageReport:
        """What this turn has taken with this completion, and `before` it."""
        agent, total = self.agent, add_usage(before.usage, completion.usage)
        written = before.written + completion.written
        costs, own = agent.services.prices, agent.own_price
        cost = prices.cost_of(completion.model, self.model, total, costs, own, written, priced=self.priced)
        if cost is None and not (agent.promptfoo or self.tested):  # whose price nobody here knows
            return UsageReport(total, _said_of_all(before, completion), written, cost_said=True)
        return UsageReport(total, cost, written)

    def _completion(self, request: Request) -> Completion:
        return Completion(request.turn, keeps_filtered=self.agent.promptfoo or self.tested)

    def _as_promptfoo(self, reply: Reply, completion: Completion) -> None:
        """Give the reply promptfoo's output, in place."""
        settings, raw = self.agent.parameters, completion.message()
        reply.finish_reason = promptfoo_outputs.finish_reason(reply.finish_reason)
        if reply.guardrails:
            return
        if completion.calls or completion.old_call:
            own = raw["tool_calls"] if completion.calls else completion.old_call
            if completion.text and completion.old_call:
                raw["function_call"] = completion.old_call
            reply.output = raw if completion.text else own
            reply.text = text_of(reply.output)
        elif (value := promptfoo_outputs.structured(reply.text, self.agent.format)) is not None:
            reply.output = value
        elif completion.value is not None and self.thinks_aloud:
            reply.output = completion.value
            reply.text = text_of(reply.output)
        elif self.thinks_aloud:
            thoughts = "".join(completion.thoughts)
            reply.text = promptfoo_outputs.with_thoughts(reply.text, thoughts, settings)

    def _take(self, messages: list[Any]) -> None:
        """A conversation given at once: it replaces the one so far."""
        chat = [
            message if isinstance(message, dict) else {"role": "user", "content": str(message)}
            for message in messages
        ]
        self.restart()
        if any(message.get("role") in ("system", "developer") for message in chat):
            self.messages = []
        self.messages.extend(chat)

    def _body(self, request: Request, with_schema: bool) -> dict[str, Any]:
        agent = self.agent
        body: dict[str, Any] = {"model": self.model, "messages": self.messages}
        if agent.stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        body.update(agent.asked_for(self.model, request))
        if agent.toolbox.tools:
            ours = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.schema,
                    },
                }
                for tool in agent.toolbox.tools.values()
            ]
            given = body.get("tools")
            others = [tool for tool in given if _name_of(tool) not in agent.toolbox.tools] if given else []
            body["tools"] = [*others, *ours]
        if with_schema:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": request.schema},
            }
            if "tools" in body:
                body["tool_choice"] = "none"
        return body


def _name_of(tool: Any) -> Any:
    """What a tool of `parameters` is called; None where it is the server's own. A second one of a name is refused."""
    function = tool.get("function") if isinstance(tool, dict) else None
    return function.get("name") if isinstance(function, dict) else None


def _callbacks(given: Any, services: Services, base: str) -> Callbacks | None:
    """The functions of a promptfoo suite that answer the model's calls, where it has some."""
    if not isinstance(given, dict) or not given:
        return None
    from tui_eval.agents.programs.suite_scripts import Callbacks

    return Callbacks(given, services, base)


_NONE = Usage()


def _said_of_all(before: UsageReport, completion: Completion) -> float | None:
    """What the server says that a turn has cost; None where it does not say it of each request that took something: a
    part would read as all."""
    if completion.usage is None:
        return before.cost
    if completion.cost is None or before.usage == _NONE:
        return completion.cost
    return None if before.cost is None else figures.total_amount((before.cost, completion.cost), "cost")


def add_usage(total: Usage, more: Usage | None) -> Usage:
    """The sum; what neither says stays unsaid."""
    if more is None:
        return total
    return more if total == _NONE else figures.usage_sum([total, more]) or total
