"""Agents behind Anthropic's messages API, with the same small tool loop as chat completions."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from tui_eval.agents.base import AgentError, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options, asked_with, below, usual_secret
from tui_eval.agents.http.answer_body import begins_as_events
from tui_eval.agents.http.error_answers import explain
from tui_eval.agents.http.http_call import HttpClient
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.loose_json import decode, encode, one_line, text_of
from tui_eval.agents.models import finish_reasons, prices
from tui_eval.agents.models.model_call import (
    ModelAgent,
    asked,
    chosen_model,
    made_tools,
    metadata_of,
    no_json,
    too_many_steps,
    uncounted,
)
from tui_eval.agents.models.openai import KNOWN, add_usage
from tui_eval.agents.models.recorded_messages import anthropic_messages, with_metadata
from tui_eval.agents.models.tool_loop import Toolbox, only_calls
from tui_eval.agents.promptfoo import promptfoo_models, promptfoo_outputs
from tui_eval.config.config_values import ANTHROPIC_ADDRESS
from tui_eval.config.project import AgentSpec
from tui_eval.events import (
    Event,
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallStarted,
    ToolResult,
    UsageReport,
)
from tui_eval.guard import figures
from tui_eval.guard.text import whole_characters
from tui_eval.model import Entry, Reply, Usage
from tui_eval.model_ids import plain_name

if TYPE_CHECKING:
    from tui_eval.agents.http.http_call import HttpCall


# -- One message of Anthropic's API as it arrives, streamed or whole.


_CACHED_SHARE = 0.1
"""What cached input costs of what input does."""
_SAID = ("text", "thinking", "redacted_thinking")
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
"""Calls of tools; all but the first are of the provider's own."""
_OF_ANSWER = (TextDelta, ReasoningDelta, ToolCallStarted)
_SPOKEN = ("text", "thinking")
_OF_DELTA = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}
"""The type of block that a delta goes on with, where its beginning was not said."""
_LISTS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def _object(value: Any) -> dict[str, Any]:
    """A part of an event that is an object; of another kind it says nothing."""
    return value if isinstance(value, dict) else {}


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _index(value: dict[str, Any]) -> int:
    index = value.get("index", 0)
    return index if isinstance(index, int) else 0


class AnthropicAnswer:
    """Collects one message. `blocks` is its content as it goes back into the conversation. `keeps_filtered`:
    what the provider's classifiers left is an answer, as in promptfoo; `flat`: one price for all that is
    written to its cache."""

    def __init__(self, keeps_filtered: bool = False, flat: bool = False) -> None:
        self.keeps_filtered = keeps_filtered
        self._flat = flat
        self.blocks: list[dict[str, Any]] = []
        self.model: str | None = None
        self.stop_reason: str | None = None
        self._usage: dict[str, Any] = {}
        self._open: dict[int, tuple[dict[str, Any], list[str]]] = {}
        self._done = False
        self._begun = False

    @property
    def text(self) -> str:
        """The text so far, of blocks that are complete and those still open."""
        done = "".join(block["text"] for block in self.blocks if block.get("type") == "text")
        waiting = "".join(
            "".join(parts) for block, parts in self._open.values() if block.get("type") == "text"
        )
        return done + waiting

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The tool_use blocks."""
        return [block for block in self.blocks if block.get("type") == "tool_use"]

    @property
    def sent_back(self) -> list[dict[str, Any]]:
        """Its content as it may stand in the conversation: no text is empty or blank there, and arguments are
        an object, also where they were cut off."""
        return [
            {**block, "input": {}} if not isinstance(block.get("input", {}), dict) else block
            for block in self.blocks
            if block.get("type") != "text" or (block.get("text") or "").strip()
        ]

    @property
    def acted(self) -> bool:
        """Whether there is anything beside text and thoughts: calls of tools, also of the provider's own."""
        return any(block.get("type") not in _SAID for block in self.blocks)

    @property
    def usage(self) -> Usage | None:
        """Tokens; what was read from or written to the cache is part of the input."""
        if not self._usage:
            return None
        cached = figures.count(self._usage.get("cache_read_input_tokens"), "cached tokens")
        written = self._created or None
        given = figures.count(self._usage.get("input_tokens"), "input tokens")
        total = None if given is None else figures.total([given, cached, written], "input tokens")
        output = figures.count(self._usage.get("output_tokens"), "output tokens")
        return Usage(total, output, cached or None)

    @property
    def written(self) -> int:
        """Tokens of the input that were written to the cache, a quarter of whose price is added. Those that
        it keeps for an hour cost twice what input does, and count as four each (promptfoo: as one)."""
        parts = self._usage.get("cache_creation") if self._usage else None
        kept = parts.get("ephemeral_1h_input_tokens") if isinstance(parts, dict) else None
        longer = 0 if self._flat else figures.count(kept, "tokens written to the cache for an hour") or 0
        return self._created + 3 * min(longer, self._created)

    @property
    def _created(self) -> int:
        count = self._usage.get("cache_creation_input_tokens") if self._usage else None
        return figures.count(count, "tokens written to the cache") or 0

    def called(self, name: str) -> Any:
        """The arguments of the call of a tool; None where it was not called."""
        return next((block.get("input") for block in self.calls if block.get("name") == name), None)

    async def take(self, call: HttpCall) -> AsyncIterator[list[Event]]:
        """Read an opened call to its end; yields the events of each piece that arrives.

        Raises:
            AgentError: the body is not a message, says an error, or ends too early.
        """
        body = None
        if "event-stream" not in call.headers.get("content-type", ""):
            body = await call.read()
            if not body.strip():
                raise call.unfinished("message", "")
            if not begins_as_events(body.lstrip()[:10].decode("utf-8", "replace")):
                yield self._whole(body, call.url)
                self._check(call.url)
                return
        async for data in call.events(body):
            events = self._event(self._decoded(data, call.url), call.url)
            call.ended = self._done
            if events:
                yield events
        if not self._done and self.stop_reason is None:
            raise call.unfinished("message", self.text)
        for index in list(self._open):  # a message that has ended has no block that goes on
            if (event := self._close(index)) is not None:
                yield [event]
        self._check(call.url)

    def _check(self, url: str) -> None:
        if (why := finish_reasons.failure(self.stop_reason, filters_too=not self.keeps_filtered)) is not None:
            raise finish_reasons.error(url, why, self.stop_reason, self.text)
        if not self._begun:
            raise AgentError(
                f"{url} answered without a message",
                code="empty-answer",
                said="no message",
                place=place_of(url),
            )

    def _event(self, value: dict[str, Any], url: str) -> list[Event]:
        kind = value.get("type")
        self._begun = self._begun or kind in ("message_start", "content_block_start", "content_block_delta")
        if kind == "error" or value.get("error"):
            if kind == "content_block_delta":
                self._delta(value)
            raise self._failure(value, url)
        found: Event | None = None
        if kind == "content_block_delta":
            found = self._delta(value)
        elif kind == "content_block_start":
            block, index = dict(_object(value.get("content_block"))), _index(value)
            # Some gateways begin a block where another is open: what that said was said.
            before = self._close(index) if index in self._open else None
            self._open[index] = (block, [])
            if block.get("type") == "tool_use":
                found = ToolCallStarted(text_of(block.get("id")), text_of(block.get("name")))
            if before is not None:
                return [before] if found is None else [before, found]
        elif kind == "content_block_stop":
            found = self._close(_index(value))
        elif kind == "message_start":
            message = _object(value.get("message"))
            self.model = _name(message.get("model"))
            self._usage.update(_object(message.get("usage")))
        elif kind == "message_delta":
            self.stop_reason = _name(_object(value.get("delta")).get("stop_reason")) or self.stop_reason
            told = _object(value.get("usage"))
            self._usage.update({key: count for key, count in told.items() if count is not None})
        elif kind == "message_stop":
            self._done = True
        return [] if found is None else [found]

    def _delta(self, value: dict[str, Any]) -> Event | None:
        delta, index = _object(value.get("delta")), _index(value)
        kind = text_of(delta.get("type"))
        own = _OF_DELTA.get(kind)
        opened = self._open.get(index)
        if opened is not None and own and opened[0].get("type") != own and opened[0].get("type") in _SPOKEN:
            self._close(index)
            opened = None
        if opened is None:
            opened = self._open[index] = ({"type": own or "text"}, [])
        if kind == "signature_delta":
            opened[0]["signature"] = delta.get("signature")
            return None
        piece = text_of(delta.get(_LISTS.get(kind, "")))
        if not piece:
            return None
        opened[1].append(piece)
        if kind == "text_delta":
            return TextDelta(piece)
        return ReasoningDelta(piece) if kind == "thinking_delta" else None

    def _close(self, index: int) -> Event | None:
        block, parts = self._open.pop(index, ({}, []))
        text = whole_characters("".join(parts))
        if block.get("type") in ("text", "thinking"):
            key = block["type"]
            block[key] = text_of(block.get(key)) + text
            if key == "text" and not block["text"]:
                return None
        elif block.get("type") in _CALLS:
            try:
                block["input"] = decode(text) if text.strip() else block.get("input") or {}
            except ValueError:
                block["input"] = text
        if block:
            self.blocks.append(block)
        return self._provided(block)

    def _provided(self, block: dict[str, Any]) -> Event | None:
        """The call of a tool that runs at the provider's (its search of the web, an MCP server), or what came
        of one."""
        kind = text_of(block.get("type"))
        if kind in _CALLS[1:]:
            return ToolCall(text_of(block.get("id")), text_of(block.get("name")), block.get("input"))
        if not kind.endswith("_tool_result"):
            return None
        call_id = block.get("tool_use_id")
        name = next((text_of(one.get("name")) for one in self.blocks if one.get("id") == call_id), "")
        return ToolResult(text_of(call_id), name, block.get("content"))

    def _whole(self, body: bytes, url: str) -> list[Event]:
        value = self._decoded(body, url)
        self._begun = True
        content = value.get("content")
        self.blocks = (
            [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        )
        if value.get("type") == "error" or value.get("error"):
            raise self._failure(value, url)
        if not isinstance(content, list):
            raise AgentError(
                f"the answer of {url} is no message: {one_line(text_of(value), 200)}",
                code="unreadable",
                said=f"no message: {one_line(text_of(value), 200)}",
                place=place_of(url),
            )
        self.model, self.stop_reason = _name(value.get("model")), _name(value.get("stop_reason"))
        self._usage = _object(value.get("usage"))
        events: list[Event] = []
        for block in self.blocks:
            if block.get("type") == "thinking":
                events.append(ReasoningDelta(text_of(block.get("thinking"))))
            elif block.get("type") == "text":
                block["text"] = text_of(block.get("text"))
                events.append(TextDelta(block["text"]))
            elif (step := self._provided(block)) is not None:
                events.append(step)
        return events

    def _decoded(self, item: bytes | str, url: str) -> dict[str, Any]:
        try:
            value = decode(item)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise no_json(item, url, self.text)
        return value

    def _failure(self, value: dict[str, Any], url: str) -> AgentError:
        return AgentError(
            f"{url} reported an error: {explain(text_of(value))}",
            answer=self.text,
            code="reported",
            said=explain(text_of(value)),
        )


VERSION = "2023-06-01"
MAX_TOKENS = 4096
STRUCTURED = "structured_answer"
"""The tool that a model must call where a JSON schema is asked for."""


class AnthropicAgent(ModelAgent):
    """One model. Options as of `openai`; `parameters: {max_tokens: …}` has a default here."""

    provider = "anthropic"

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, KNOWN)
        base_url = (options.text("base_url") or ANTHROPIC_ADDRESS).rstrip("/")
        versioned = base_url.partition("?")[0].rstrip("/").endswith("/v1")
        self.url = below(base_url, "messages" if versioned else "v1/messages")
        self.model = spec.model or options.text("model")
        self.system = options.content("system")
        self.parameters = asked_with(options)
        self.made = made_tools(self.parameters, spec, services)
        self.metadata = options.text("metadata")
        self.max_steps = options.number("max_steps", 10)
        self.stream = spec.options.get("stream", True) is not False
        self.promptfoo = options.flag("promptfoo")
        self.own_price = prices.own_price(options.mapping("promptfoo_price"), _CACHED_SHARE)
        self.toolbox = Toolbox(options, services)
        api_key = usual_secret(options, "api_key", base_url, "ANTHROPIC_API_KEY")
        headers = {"anthropic-version": VERSION, **options.headers()}
        self.betas = headers.get("anthropic-beta", "")
        if self.promptfoo and (named := promptfoo_models.betas(self.parameters, self.betas)):
            headers["anthropic-beta"] = named
        if api_key and "x-api-key" not in {name.lower() for name in headers}:
            headers["x-api-key"] = api_key
        self.client = HttpClient(headers=headers, retries=spec.retries, pace=self.pace)

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation."""
        model = chosen_model(self.spec, self.model, context)
        await self.toolbox.load()
        if self.made is not None:
            self.parameters["tools"] = await self.made.tools()
        session = AnthropicSession(
            self, plain_name(model, "anthropic"), context, tested=context.test is not None
        )
        made = self.promptfoo and self.made is not None  # only now is known whether they are strict
        if made and (named := promptfoo_models.betas(self.parameters, self.betas)):
            session.headers = {**session.headers, "anthropic-beta": named}
        await session.tools.get_ready()
        return session

    def asked_for(self, model: str, request: Request) -> dict[str, Any]:
        """The parameters of a request."""
        if not self.promptfoo:
            return self.parameters
        return promptfoo_models.messages(model, promptfoo_models.filled_in(self.parameters, request.vars))

    async def close(self) -> None:
        """Close connections and the tools' process."""
        await self.client.close()
        if self.made is not None:
            await self.made.close()
        await self.toolbox.close()


class AnthropicSession(Session):
    """The messages so far; each turn adds to them."""

    def __init__(
        self, agent: AnthropicAgent, model: str, context: SessionContext, tested: bool = False
    ) -> None:
        self.agent = agent
        self.tools = agent.toolbox.for_attempt(context)
        self.flat = agent.promptfoo and context.reference
        self.priced = not self.flat or promptfoo_models.is_priced(model)
        self.tested = tested
        self.model = model
        self.headers = context.model_headers
        self.system: Any = agent.system
        self.messages: list[dict[str, Any]] = []
        self.unanswered: list[dict[str, Any]] = []
        """Results of calls that nobody here answers, which stand before what is asked next."""

    def restart(self) -> None:
        """Forget everything but the system text."""
        self.system = self.agent.system
        self.messages, self.unanswered = [], []

    def restore(self, entries: Sequence[Entry], replies: Sequence[Reply]) -> bool:
        """The messages of recorded turns, tool calls with their results included."""
        kept = with_metadata(entries, replies) if self.agent.metadata == "json" else entries
        self.messages.extend(anthropic_messages(kept))
        return True

    async def close(self) -> None:
        """Let another attempt have the process of the tools."""
        self.tools.close()

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Send one turn and run the tools that it asks for."""
        agent = self.agent
        dialogue = (
            promptfoo_models.spoken(request.text or "", always=self.flat)
            if agent.promptfoo and self.tested
            else None
        )
        if request.messages is not None or dialogue:
            self._take(request.messages or dialogue or [])
        else:
            asked_now: Any = request.text or ""
            if self.unanswered:
                asked_now = [*self.unanswered, {"type": "text", "text": asked_now}]
                self.unanswered = []
            self.messages.append({"role": "user", "content": asked_now})
        began = time.monotonic()
        total, written = Usage(), 0
        reported: list[Any] = []
        before: list[str] = []
        counted: list[bool] = []
        keeps_filtered = agent.promptfoo or self.tested
        answer = AnthropicAnswer(keeps_filtered, self.flat)
        called = noted = False
        bound = only_calls(agent.parameters.get("tool_choice"))
        for step in range(agent.max_steps):
            answer = AnthropicAnswer(keeps_filtered, self.flat) if step else answer
            body = encode(self._body(request))
            call = agent.client.call("POST", agent.url, body=body, headers=self.headers, turn=request.turn)
            begun = False
            try:
                async for event in asked(call, answer):
                    yield event
                    if not begun and isinstance(event, _OF_ANSWER) and answer.usage is not None:
                        begun = True  # the input is known: so much at least an answer takes that is cut off
                        yield self._spent(total, written, answer)
            except AgentError:
                if answer.usage is not None:  # it was paid for
                    yield self._spent(total, written, answer)
                raise
            told = self._spent(total, written, answer)
            counted.append(answer.usage is not None)
            total, written = told.usage, told.written
            yield told
            if answer.stop_reason == "pause_turn" and not keeps_filtered:
                # A long turn of the provider's own tools is to be gone on with, with what it has so far.
                self.messages.append({"role": "assistant", "content": answer.sent_back})
                before.append(answer.text)
                continue
            text = "".join([*before, answer.text])
            before.clear()
            if request.schema is not None and (structured := answer.called(STRUCTURED)) is not None:
                text = text_of(structured)
                yield TextDelta(text)
                # As text, since a call without a result may not stand in a conversation.
                self.messages.append({"role": "assistant", "content": text})
                calls, ours = [], False
            else:
                if answer.sent_back:  # an empty message may not stand there
                    self.messages.append({"role": "assistant", "content": answer.sent_back})
                calls = answer.calls
                names = [text_of(block.get("name")) for block in calls]
                ours = agent.toolbox.goes_on(names, text, noted or bound)
                noted = agent.toolbox.reports(names)
            if not (keeps_filtered or answer.acted) and (
                why := finish_reasons.silence(text, answer.stop_reason, called=called)
            ):
                raise AgentError(f"{agent.url} {why}", code="empty-answer", said=why)
            called = called or bool(calls)
            results: list[dict[str, Any]] = []
            for block in calls:
                call_id, name = text_of(block.get("id")), text_of(block.get("name"))
                arguments = block.get("input")
                yield ToolCall(call_id, name, arguments)
                if name == agent.metadata:
                    reported.append(arguments)
                result = {"type": "tool_result", "tool_use_id": call_id}
                if not ours:
                    results.append({**result, "content": agent.toolbox.unanswered(name)})
                    continue
                outcome = await self.tools.call(name, arguments)
                yield ToolResult(call_id, name, outcome.result, outcome.error)
                result["content"] = outcome.text
                results.append({**result, "is_error": True} if outcome.error is not None else result)
            self.unanswered = [] if ours else results
            if ours:
                self.messages.append({"role": "user", "content": results})
                continue
            latency_ms = round((time.monotonic() - began) * 1000, 1)
            for note in uncounted(counted):
                yield note
            yield Finished(self._reply(request, answer, text, bool(calls), reported, told, latency_ms))
            return
        raise too_many_steps(agent.max_steps, answer.text)

    def _reply(
        self,
        request: Request,
        answer: AnthropicAnswer,
        text: str,
        called: bool,
        reported: list[Any],
        told: UsageReport,
        latency_ms: float,
    ) -> Reply:
        """The reply of a turn that ended with this answer, which `called` tools of nobody here. `reported` is
        what the model reported by the tool of that name, `told` what the turn took."""
        agent = self.agent
        text, metadata = metadata_of(text, agent.metadata, reported)
        reason, output = answer.stop_reason, None
        if agent.promptfoo:
            reason = promptfoo_outputs.finish_reason(reason)
            if request.schema is None and (self.tested or called):
                text = promptfoo_outputs.of_blocks(answer.blocks, agent.parameters)
                output = promptfoo_outputs.structured(text, agent.parameters.get("output_format"))
        return Reply(
            turn=request.turn,
            text=text,
            metadata=metadata,
            usage=told.usage,
            cost=told.cost,
            latency_ms=latency_ms,
            finish_reason=reason,
            model=answer.model or self.model,
            output=output,
            guardrails={"flagged": True} if finish_reasons.is_filtered(reason) else None,
        )

    def _spent(self, before: Usage, written: int, answer: AnthropicAnswer) -> UsageReport:
        """What this turn has taken with this answer, and `before` it."""
        agent, total = self.agent, add_usage(before, answer.usage)
        written += answer.written
        costs, own = agent.services.prices, agent.own_price
        cost = prices.cost_of(answer.model, self.model, total, costs, own, written, priced=self.priced)
        return UsageReport(total, cost, written)

    def _take(self, messages: list[Any]) -> None:
        """A conversation given at once: it replaces the one so far."""
        chat = [
            message if isinstance(message, dict) else {"role": "user", "content": str(message)}
            for message in messages
        ]
        self.restart()
        system = [message for message in chat if message.get("role") in ("system", "developer")]
        if system:
            self.system = "\n\n".join(text_of(message.get("content")) for message in system)
        self.messages = [message for message in chat if message not in system]

    def _body(self, request: Request) -> dict[str, Any]:
        agent = self.agent
        body: dict[str, Any] = {"model": self.model, "max_tokens": MAX_TOKENS, "messages": self.messages}
        if self.system:
            body["system"] = self.system
        if agent.stream:
            body["stream"] = True
        body.update(agent.asked_for(self.model, request))
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
            for tool in agent.toolbox.tools.values()
        ]
        if request.schema is not None:
            # A schema is kept by making the model call a tool that takes it; thinking forbids forcing.
            tools.append(
                {"name": STRUCTURED, "description": "Give the answer.", "input_schema": request.schema}
            )
            body["tool_choice"] = {"type": "tool", "name": STRUCTURED}
            body.pop("thinking", None)
        if tools:
            body["tools"] = [*body.get("tools", []), *tools]
        return body
