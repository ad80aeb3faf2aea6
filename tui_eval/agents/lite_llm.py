"""Models of any provider through LiteLLM, where its extra is installed."""

from __future__ import annotations

import importlib
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.options import Options
from tui_eval.agents.wire import decode, one_line, text_of
from tui_eval.config import AgentSpec
from tui_eval.events import Event, Finished, TextDelta, ToolCall
from tui_eval.model import Reply, Usage


class LiteLLMAgent(Agent):
    """One model by LiteLLM's name (`bedrock/…`, `vertex_ai/…`). Its keys come from the environment, which
    needs trust."""

    capabilities = Capabilities(tokens=True, tools=True)

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        known = frozenset({"base_url", "api_key", "headers", "parameters", "promptfoo", "model"})
        options = Options(spec, services, known)
        services.trust.require(f"let LiteLLM read the environment's keys for {spec.model}")
        self.parameters = options.mapping("parameters")
        self.base_url = options.text("base_url")
        self.api_key = options.text("api_key")

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation."""
        return LiteLLMSession(self, context.model or self.spec.model or "")


class LiteLLMSession(Session):
    """The messages so far; each turn adds to them."""

    def __init__(self, agent: LiteLLMAgent, model: str) -> None:
        self.agent = agent
        self.model = model
        self.messages: list[Any] = []

    def restart(self) -> None:
        """Forget what was said."""
        self.messages = []

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Send one turn."""
        agent = self.agent
        began = time.monotonic()
        if request.messages is not None:
            self.messages = list(request.messages)
        else:
            self.messages.append({"role": "user", "content": request.text or ""})
        given: dict[str, Any] = dict(agent.parameters)
        if agent.base_url:
            given["api_base"] = agent.base_url
        if agent.api_key:
            given["api_key"] = agent.api_key
        try:
            litellm: Any = importlib.import_module("litellm")
            answer = await litellm.acompletion(model=self.model, messages=self.messages, **given)
            answer = answer.model_dump() if hasattr(answer, "model_dump") else dict(answer)
            message = answer["choices"][0]["message"]
        except Exception as error:  # every provider brings errors of its own
            raise AgentError(f"LiteLLM: {self.model}: {one_line(str(error))}") from None
        text = text_of(message.get("content"))
        calls = message.get("tool_calls") or []
        reply = Reply(turn=request.turn, text=text, model=answer.get("model"), finish_reason=None)
        for call in calls:
            function = call.get("function") or {}
            arguments = function.get("arguments")
            with suppress(ValueError):
                arguments = decode(arguments) if isinstance(arguments, str) else arguments
            yield ToolCall(text_of(call.get("id")), text_of(function.get("name")), arguments)
        if calls:
            reply.output = message if text else calls
            reply.text = text_of(reply.output)
        if reply.text:
            yield TextDelta(reply.text)
        usage = answer.get("usage") or {}
        if usage:
            reply.usage = Usage(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        reply.finish_reason = answer["choices"][0].get("finish_reason")
        reply.latency_ms = round((time.monotonic() - began) * 1000, 1)
        self.messages.append({"role": "assistant", "content": text})
        yield Finished(reply)
