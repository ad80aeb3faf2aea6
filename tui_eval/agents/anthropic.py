"""Agents behind Anthropic's messages API, with the same small tool loop as chat completions."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from tui_eval.agents import finish_reasons, prices, promptfoo_models, promptfoo_outputs
from tui_eval.agents.anthropic_stream import Answer
from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.http_client import HttpClient
from tui_eval.agents.model_call import asked
from tui_eval.agents.openai import KNOWN, add_usage
from tui_eval.agents.options import Options, guard_secret, place
from tui_eval.agents.parameter_files import loaded
from tui_eval.agents.recorded import anthropic_messages
from tui_eval.agents.reply_metadata import split_metadata
from tui_eval.agents.tools import Toolbox
from tui_eval.agents.wire import encode, text_of
from tui_eval.config import AgentSpec
from tui_eval.events import Event, Finished, TextDelta, ToolCall, ToolResult, UsageReport
from tui_eval.model import Entry, Reply, Usage
from tui_eval.model_ids import plain_name

BASE_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
MAX_TOKENS = 4096
STRUCTURED = "structured_answer"
"""The tool that a model must call where a JSON schema is asked for."""


class AnthropicAgent(Agent):
    """One model. Options as of `openai`; `parameters: {max_tokens: …}` has a default here."""

    capabilities = Capabilities(tokens=True, tools=True)
    keeps_pace = True

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, KNOWN)
        base_url = (options.text("base_url") or BASE_URL).rstrip("/")
        self.url = f"{base_url}/messages" if base_url.endswith("/v1") else f"{base_url}/v1/messages"
        self.model = spec.model or options.text("model")
        self.system = options.content("system")
        self.parameters = loaded(options, options.mapping("parameters"))
        self.metadata = options.text("metadata")
        self.max_steps = options.number("max_steps", 10)
        self.stream = spec.options.get("stream", True) is not False
        self.promptfoo = options.flag("promptfoo")
        self.toolbox = Toolbox(options, services)
        api_key = options.text("api_key", os.environ.get("ANTHROPIC_API_KEY"))
        guard_secret(spec, services.trust, base_url, {"ANTHROPIC_API_KEY": api_key})
        headers = {"anthropic-version": VERSION, **options.headers()}
        if self.promptfoo and (
            named := promptfoo_models.betas(self.parameters, headers.get("anthropic-beta", ""))
        ):
            headers["anthropic-beta"] = named
        if api_key and "x-api-key" not in {name.lower() for name in headers}:
            headers["x-api-key"] = api_key
        self.client = HttpClient(base_url, headers=headers, retries=spec.retries, pace=self.pace)

    @classmethod
    def reported(cls, spec: AgentSpec) -> Capabilities:
        return Capabilities(tokens=True, tools=True, metadata=spec.options.get("metadata") is not None)

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation."""
        model = context.model or self.model
        if not model:
            raise AgentError(f"{place(self.spec, 'model')}: is missing; give one with -m")
        await self.toolbox.load()
        return AnthropicSession(
            self, plain_name(model, "anthropic"), context.model_headers, tested=context.test is not None
        )

    def asked_for(self, model: str, request: Request) -> dict[str, Any]:
        """The parameters of a request."""
        if not self.promptfoo:
            return self.parameters
        return promptfoo_models.messages(model, promptfoo_models.filled_in(self.parameters, request.vars))

    async def close(self) -> None:
        """Close connections and the tools' process."""
        await self.client.close()
        await self.toolbox.close()


class AnthropicSession(Session):
    """The messages so far; each turn adds to them."""

    def __init__(
        self, agent: AnthropicAgent, model: str, headers: dict[str, str], tested: bool = False
    ) -> None:
        self.agent = agent
        self.tested = tested
        self.model = model
        self.headers = headers
        self.system: Any = agent.system
        self.messages: list[dict[str, Any]] = []

    def restart(self) -> None:
        """Forget everything but the system text."""
        self.system = self.agent.system
        self.messages = []

    def restore(self, entries: Sequence[Entry], replies: Sequence[Reply]) -> bool:
        """The messages of recorded turns, tool calls with their results included."""
        self.messages.extend(anthropic_messages(entries))
        return True

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Send one turn and run the tools that it asks for."""
        agent = self.agent
        dialogue = promptfoo_models.spoken(request.text or "") if agent.promptfoo and self.tested else None
        if request.messages is not None or dialogue:
            self._take(request.messages or dialogue or [])
        else:
            self.messages.append({"role": "user", "content": request.text or ""})
        began = time.monotonic()
        total = Usage()
        carried: dict[str, Any] | None = None
        keeps_filtered = agent.promptfoo or self.tested
        answer = Answer(keeps_filtered)
        called = False
        for step in range(agent.max_steps):
            answer = Answer(keeps_filtered) if step else answer
            body = encode(self._body(request))
            call = agent.client.call("POST", agent.url, body=body, headers=self.headers, turn=request.turn)
            async for event in asked(call, answer):
                yield event
            total = add_usage(total, answer.usage)
            cost = prices.cost_of(answer.model, self.model, total, agent.services.prices)
            yield UsageReport(total, cost)
            text = answer.text
            if request.schema is not None and (structured := answer.called(STRUCTURED)) is not None:
                text = text_of(structured)
                yield TextDelta(text)
                # As text, since a call without a result may not stand in a conversation.
                self.messages.append({"role": "assistant", "content": text})
                calls, ours = [], False
            else:
                self.messages.append({"role": "assistant", "content": answer.blocks or text})
                calls, ours = answer.calls, bool(agent.toolbox.tools) and bool(answer.calls)
            if not (keeps_filtered or answer.acted) and (
                why := finish_reasons.silence(text, answer.stop_reason, called=called)
            ):
                raise AgentError(f"{agent.url} {why}")
            called = called or bool(calls)
            results: list[dict[str, Any]] = []
            for block in calls:
                call_id, name, arguments = block["id"], block["name"], block["input"]
                yield ToolCall(call_id, name, arguments)
                if name == agent.metadata and isinstance(arguments, dict):
                    carried = arguments
                if not ours:
                    continue
                outcome = await agent.toolbox.call(name, arguments)
                yield ToolResult(call_id, name, outcome.result, outcome.error)
                result = {"type": "tool_result", "tool_use_id": call_id, "content": outcome.text}
                results.append({**result, "is_error": True} if outcome.error is not None else result)
            if ours:
                self.messages.append({"role": "user", "content": results})
                continue
            metadata = carried
            if agent.metadata == "json":
                text, metadata = split_metadata(text)
            reason, output = answer.stop_reason, None
            if agent.promptfoo:
                reason = promptfoo_outputs.finish_reason(reason)
                if request.schema is None and (self.tested or calls):
                    text = promptfoo_outputs.of_blocks(answer.blocks, agent.parameters)
                    output = promptfoo_outputs.structured(text, agent.parameters.get("output_format"))
            yield Finished(
                Reply(
                    turn=request.turn,
                    text=text,
                    metadata=metadata,
                    usage=total,
                    cost=cost,
                    latency_ms=round((time.monotonic() - began) * 1000, 1),
                    finish_reason=reason,
                    model=answer.model or self.model,
                    output=output,
                    guardrails={"flagged": True} if finish_reasons.is_filtered(reason) else None,
                )
            )
            return
        raise AgentError(
            f"no answer after {agent.max_steps} steps of tool calls (max_steps)", answer=answer.text
        )

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
