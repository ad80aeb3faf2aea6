"""Agents behind OpenAI's responses API, as promptfoo's `openai:responses:MODEL`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from tui_eval.agents.base import AgentError, Request, Session, SessionContext
from tui_eval.agents.entry_options import below
from tui_eval.agents.http.answer_body import END, all_data, begins_as_events
from tui_eval.agents.http.error_answers import explain
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.loose_json import decode, encode, text_of
from tui_eval.agents.models import finish_reasons, prices
from tui_eval.agents.models.model_call import chosen_model
from tui_eval.agents.models.openai import OpenAIAgent
from tui_eval.agents.promptfoo import promptfoo_models, promptfoo_outputs
from tui_eval.events import (
    Event,
    Finished,
    Note,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolResult,
    UsageReport,
)
from tui_eval.guard import figures
from tui_eval.model import Reply, Usage
from tui_eval.model_ids import plain_name

_GIVEN = ("arguments", "input", "action", "queries", "code")
"""Where calls of the several tools say what they were given."""


class OpenAIResponsesAgent(OpenAIAgent):
    """One model; options as of `openai`. Answers come whole, and no tools are run."""

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation."""
        model = chosen_model(self.spec, self.model, context)
        if self.made is not None:
            self.parameters["tools"] = await self.made.tools()
        return ResponsesSession(self, plain_name(model, "openai"), context, tested=context.test is not None)

    def asked_for(self, model: str, request: Request) -> dict[str, Any]:
        """The parameters of a request."""
        if not self.promptfoo:
            return self.parameters
        return promptfoo_models.responses(model, promptfoo_models.filled_in(self.parameters, request.vars))


class ResponsesSession(Session):
    """The messages so far; each turn adds to them."""

    def __init__(
        self, agent: OpenAIResponsesAgent, model: str, context: SessionContext, tested: bool = False
    ) -> None:
        self.agent = agent
        self.callbacks = agent.callbacks.for_attempt(context) if agent.callbacks is not None else None
        self.priced = not (agent.promptfoo and context.reference) or promptfoo_models.is_priced(model)
        self.tested = tested
        self.as_promptfoo = agent.promptfoo or tested
        """Whether an answer is promptfoo's output, with thoughts and calls in it, or what was said."""
        self.model = model
        self.headers = context.model_headers
        self.messages: list[Any] = []

    def restart(self) -> None:
        """Forget what was said."""
        self.messages = []

    async def close(self) -> None:
        """Let another attempt have the process of the suite's functions."""
        if self.callbacks is not None:
            await self.callbacks.close()

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Send one turn."""
        agent = self.agent
        began = time.monotonic()
        call = agent.client.call(
            "POST",
            below(agent.base_url, "responses"),
            body=encode(self._body(request)),
            headers=self.headers,
            turn=request.turn,
        )
        try:
            async for event in call.open():
                yield event
            answer = _whole(await call.read(), call.url)
        except ValueError:
            raise AgentError(
                f"{agent.base_url}/responses did not answer with JSON",
                code="unreadable",
                said="no JSON",
                place=place_of(agent.base_url),
            ) from None
        except AgentError as error:
            error.answer = error.answer or call.heard
            raise
        finally:
            if call.unreported:
                yield call.exchanged()
            await call.close()
        usage = _usage(answer.get("usage")) if isinstance(answer, dict) else None
        if usage is not None:
            yield UsageReport(usage, self._cost(answer, usage))  # paid for, whatever it is
        filters_too = not (agent.promptfoo or self.tested)
        self._check(answer, filters_too=filters_too)
        answered: dict[int, str] = {}
        for number, item in enumerate(answer["output"]):
            if self.callbacks is not None and isinstance(item, dict) and item.get("type") == "function_call":
                called = (str(item.get("name")), text_of(item.get("arguments")))
                if (output := await self.callbacks.output([called])) is not None:
                    answered[number] = output
                if self.callbacks.failed:
                    yield Note(self.callbacks.failed)
        events, text = _read(answer["output"], answered, spoken=not self.as_promptfoo)
        refusal = next(filter(None, map(_refusal, answer["output"])), None)
        if self.as_promptfoo:
            text = refusal or text
        kinds = [text_of(item.get("type")) for item in answer["output"] if isinstance(item, dict)]
        acted = any(kind.endswith("_call") for kind in kinds)
        # Thoughts alone are no answer, though promptfoo's text has them in it.
        said = "" if not refusal and set(kinds) <= {"reasoning"} else text
        if filters_too and (why := finish_reasons.silence(said, _reason(answer), called=acted)):
            raise AgentError(f"{agent.base_url}/responses {why}", code="empty-answer", said=why)
        for event in events:
            yield event
        self.messages.append({"role": "assistant", "content": text})
        reply = self._reply(request.turn, answer, text, usage, round((time.monotonic() - began) * 1000, 1))
        if self.tested:
            told = {"responseId": answer.get("id"), "model": answer.get("model")}
            reply.metadata = {**told, "http": call.answered()}
        if refusal:
            reply.guardrails = {"flagged": True}
        else:
            reply.output = promptfoo_outputs.structured(text, agent.parameters.get("response_format"))
        yield Finished(reply)

    def _body(self, request: Request) -> dict[str, Any]:
        """What is sent for a turn, which is then a part of the conversation."""
        agent = self.agent
        if request.messages is not None:
            self.messages = list(request.messages)
        else:
            self.messages.append({"role": "user", "content": request.text or ""})
        alone = request.messages is None and len(self.messages) == 1
        body: dict[str, Any] = {"model": self.model, "input": request.text or "" if alone else self.messages}
        body.update(agent.asked_for(self.model, request))
        if agent.system:
            body.setdefault("instructions", agent.system)
        if request.schema is not None:
            body["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": request.schema}}
        return body

    def _check(self, answer: Any, *, filters_too: bool) -> None:
        """See that there is an answer.

        Raises:
            AgentError: it says an error, is no response, or ended without one.
        """
        agent = self.agent
        if isinstance(answer, dict) and answer.get("error"):
            said = explain(text_of({"error": answer["error"]}))
            said_before = _read(answer["output"], {})[1] if isinstance(answer.get("output"), list) else ""
            raise AgentError(
                f"{agent.base_url}/responses reported an error: {said}",
                answer=said_before,
                code="reported",
                said=said,
            )
        if not isinstance(answer, dict):
            raise AgentError(
                f"{agent.base_url}/responses answered something that is no response",
                code="unreadable",
                said="no response",
                place=place_of(agent.base_url),
            )
        output = answer["output"] if isinstance(answer.get("output"), list) else []
        if (why := finish_reasons.failure(_reason(answer), filters_too=filters_too)) is not None:
            who = f"{agent.base_url}/responses"
            raise finish_reasons.error(who, why, _reason(answer), _read(output, {})[1])
        if not output:
            raise AgentError(
                f"{agent.base_url}/responses answered without output",
                code="empty-answer",
                said="no output",
                place=place_of(agent.base_url),
            )

    def _reply(
        self, turn: int, answer: dict[str, Any], text: str, usage: Usage | None, latency_ms: float
    ) -> Reply:
        return Reply(
            turn=turn,
            text=text,
            usage=usage,
            cost=self._cost(answer, usage),
            latency_ms=latency_ms,
            finish_reason="stop" if answer.get("status") == "completed" else answer.get("status"),
            model=str(answer.get("model") or self.model),
        )

    def _cost(self, answer: dict[str, Any], usage: Usage | None) -> float | None:
        agent, model = self.agent, str(answer.get("model") or self.model)
        costs, own = agent.services.prices, agent.own_price
        return prices.cost_of(model, self.model, usage, costs, own, priced=self.priced)


def _whole(body: bytes, url: str) -> Any:
    """The response; of a stream of its events, which `parameters` may ask for, and some gateways give anyway, that of
    its last one.

    Raises:
        ValueError: it is no JSON.
        AgentError: the stream ends before that one, with what was said so far.
    """
    if not begins_as_events(body.lstrip()[:10].decode("utf-8", "replace")):
        return decode(body)
    said = ""
    for data in filter(END.__ne__, all_data(body + b"\n\n")):
        try:
            event = decode(data)
        except ValueError:
            if not said:
                raise
            break  # cut within an event: what was said before it is kept
        kind = event.get("type") if isinstance(event, dict) else None
        if kind in finish_reasons.ENDS_OF_RESPONSES:
            return event.get("response")
        if kind == "error" or (isinstance(event, dict) and event.get("error")):
            return {"error": event.get("error") or event, "output": [_message(said)]}
        if kind == "response.output_text.delta":
            said += text_of(event.get("delta"))
    why = "ended before it was complete"
    raise AgentError(
        f"the answer of {url} {why}", answer=said, code="broke-off", said=why, place=place_of(url)
    )


def _message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def _read(items: list[Any], answered: dict[int, str], spoken: bool = False) -> tuple[list[Event], str]:
    """The events of an output, and its text as promptfoo has it: what each item says, one below the other; of calls
    that the suite's functions answered, by their places, the answers. `spoken`: its messages alone."""
    events: list[Event] = []
    parts: list[str] = []
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            continue
        kind = text_of(item.get("type"))
        if kind.endswith("_call"):
            events += _call(kind, item)
        elif kind == "reasoning" and (thought := promptfoo_outputs.summary_of(item)):
            events.append(ReasoningDelta(thought))
        if number in answered:
            parts.append(answered[number])
        elif not spoken:
            parts.append(promptfoo_outputs.of_item(item))
        elif kind == "message" and item.get("role", "assistant") == "assistant":
            parts.append(promptfoo_outputs.spoken_in(item))
    text = "\n".join(part for part in parts if part)
    return ([*events, TextDelta(text)] if text else events), text


def _call(kind: str, item: dict[str, Any]) -> list[Event]:
    """A call of a tool, also of one that runs at the provider's (its search of the web, an MCP server), with what came
    of it where that is said."""
    name = text_of(item.get("name")) or kind.removesuffix("_call")
    call_id = text_of(item.get("call_id") or item.get("id"))
    given = next((item[key] for key in _GIVEN if item.get(key) is not None), None)
    if isinstance(given, str) and "arguments" in item:
        with suppress(ValueError):
            given = decode(given)
    events: list[Event] = [ToolCall(call_id, name, given)]
    if kind == "mcp_call" and (item.get("output") is not None or item.get("error")):
        error = text_of(item["error"]) if item.get("error") else None
        events.append(ToolResult(call_id, name, item.get("output"), error))
    return events


def _reason(answer: dict[str, Any]) -> str | None:
    """Why it ended: its status, or what made it incomplete."""
    details = answer.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return text_of(reason or answer.get("status") or "") or None


def _refusal(item: Any) -> str | None:
    return promptfoo_outputs.refusal_of(item) if isinstance(item, dict) else None


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    details = value.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        figures.count(value.get("input_tokens"), "input tokens"),
        figures.count(value.get("output_tokens"), "output tokens"),
        figures.count(cached, "cached tokens"),
    )
