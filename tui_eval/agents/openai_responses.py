"""Agents behind OpenAI's responses API, as promptfoo's `openai:responses:MODEL`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from tui_eval.agents import prices
from tui_eval.agents.base import AgentError, Request, Session, SessionContext
from tui_eval.agents.openai import OpenAIAgent
from tui_eval.agents.options import place
from tui_eval.agents.wire import decode, encode, text_of
from tui_eval.events import Event, Finished, ReasoningDelta, TextDelta, ToolCall
from tui_eval.model import Reply, Usage


class OpenAIResponsesAgent(OpenAIAgent):
    """One model; options as of `openai`. Answers come whole, and no tools are run."""

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation."""
        model = context.model or self.model
        if not model:
            raise AgentError(f"{place(self.spec, 'model')}: is missing; give one with -m")
        return ResponsesSession(self, model, context.model_headers)


class ResponsesSession(Session):
    """The messages so far; each turn adds to them."""

    def __init__(self, agent: OpenAIResponsesAgent, model: str, headers: dict[str, str]) -> None:
        self.agent = agent
        self.model = model
        self.headers = headers
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
        body: dict[str, Any] = {"model": self.model, "input": self.messages, **agent.parameters}
        if agent.system:
            body.setdefault("instructions", agent.system)
        if "max_tokens" in body:
            body["max_output_tokens"] = body.pop("max_tokens")
        if request.schema is not None:
            body["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": request.schema}}
        call = agent.client.call(
            "POST", f"{agent.base_url}/responses", body=encode(body), headers=self.headers, turn=request.turn
        )
        try:
            async for event in call.open():
                yield event
            answer = decode(await call.read())
        except ValueError:
            raise AgentError(f"{agent.base_url}/responses did not answer with JSON") from None
        finally:
            if call.unreported and call.status is not None:
                yield call.exchanged()
            await call.close()
        if not isinstance(answer, dict) or not isinstance(answer.get("output"), list):
            raise AgentError(f"{agent.base_url}/responses answered without output")
        events, text = _read(answer["output"])
        for event in events:
            yield event
        self.messages.append({"role": "assistant", "content": text})
        usage = _usage(answer.get("usage"))
        model = str(answer.get("model") or self.model)
        cost = prices.cost(model, usage, agent.services.prices) if usage else None
        yield Finished(
            Reply(
                turn=request.turn,
                text=text,
                usage=usage,
                cost=cost,
                latency_ms=round((time.monotonic() - began) * 1000, 1),
                finish_reason="stop" if answer.get("status") == "completed" else answer.get("status"),
                model=model,
            )
        )


def _read(items: list[Any]) -> tuple[list[Event], str]:
    """Texts, and function calls as JSON, joined by line breaks, as promptfoo's output is."""
    events: list[Event] = []
    parts: list[str] = []
    for item in items:
        if not isinstance(item, dict):
            continue
        if item.get("type") == "message":
            contents = item.get("content")
            for content in contents if isinstance(contents, list) else []:
                said = content.get("text") or content.get("refusal") if isinstance(content, dict) else None
                if said:
                    parts.append(str(said))
        elif item.get("type") == "function_call":
            arguments = item.get("arguments")
            if isinstance(arguments, str):
                with suppress(ValueError):
                    arguments = decode(arguments)
            events.append(
                ToolCall(str(item.get("call_id") or item.get("id")), str(item.get("name")), arguments)
            )
            parts.append(text_of(item))
        elif item.get("type") == "reasoning":
            summary = item.get("summary")
            said = (
                "\n".join(str(part.get("text", "")) for part in summary or [] if isinstance(part, dict))
                if isinstance(summary, list)
                else ""
            )
            if said:
                events.append(ReasoningDelta(said))
    text = "\n".join(parts)
    return ([*events, TextDelta(text)] if text else events), text


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    details = value.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(value.get("input_tokens"), value.get("output_tokens"), cached)
