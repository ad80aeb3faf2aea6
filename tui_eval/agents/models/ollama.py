"""Models of Ollama by its own protocol, as promptfoo's `ollama:chat:MODEL` and `ollama:completion:MODEL` ask them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options, below, loaded, place, usual_secret
from tui_eval.agents.http.error_answers import explain
from tui_eval.agents.http.http_call import HttpClient
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.loose_json import decode, encode, one_line, text_of
from tui_eval.agents.models import finish_reasons, prices
from tui_eval.agents.models.model_call import chosen_model, made_tools
from tui_eval.agents.promptfoo.promptfoo_models import OLLAMA_KEYS, OLLAMA_OPTIONS, filled_in
from tui_eval.agents.promptfoo.promptfoo_request import shaped_tools
from tui_eval.agents.promptfoo.provider_response import prompt_of
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.events import Event, Finished, ReasoningDelta, TextDelta, ToolCall, UsageReport
from tui_eval.guard import figures
from tui_eval.model import Reply, Usage
from tui_eval.model_ids import OLLAMA_URL, plain_name


class OllamaAgent(Agent):
    """One model; `parameters` are Ollama's options (`temperature`, `num_ctx`) and promptfoo's `tools`, `think` and
    `passthrough`. With `completion` the prompt goes to it as it is, without a chat around it."""

    capabilities = Capabilities(tokens=True, tools=True, guardrails=False, finish_reason=False)
    keeps_pace = True

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(
            spec,
            services,
            frozenset({"base_url", "api_key", "headers", "system", "parameters", "completion", "model"}),
        )
        base, mark, query = (options.text("base_url") or OLLAMA_URL).partition("?")
        base = f"{base.rstrip('/').removesuffix('/v1')}{mark}{query}"
        self.completes = options.flag("completion")
        self.url = below(base, f"api/{'generate' if self.completes else 'chat'}")
        self.model = spec.model or options.text("model")
        self.system = options.content("system")
        self.parameters = loaded(options, options.mapping("parameters"))
        self.made = made_tools(self.parameters, spec, services)
        for key in self.parameters.keys() - OLLAMA_KEYS:
            raise ConfigError(
                f"{place(spec, 'parameters')}: Ollama has no option {key!r}; what stands beside its options in a "
                "request goes under passthrough"
            )
        api_key = usual_secret(options, "api_key", base, "OLLAMA_API_KEY")
        headers = options.headers()
        if api_key and "authorization" not in {name.lower() for name in headers}:
            headers["Authorization"] = f"Bearer {api_key}"
        self.client = HttpClient(headers=headers, retries=spec.retries, pace=self.pace)

    @property
    def preparing(self) -> str:
        return "loading tools" if self.made is not None else ""

    def cost(self, model: str, usage: Usage | None) -> float | None:
        """USD by the project's own prices: no table knows what a model costs on a machine of one's own."""
        return prices.cost_of(model, model, usage, self.services.prices, priced=False)

    def priced(self, context: SessionContext, told: UsageReport, model: str | None) -> float | None:
        """See `Agent.priced`."""
        own = context.model or self.model
        return self.cost(plain_name(own, "ollama"), told.usage) if own else told.cost

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation."""
        model = chosen_model(self.spec, self.model, context)
        if self.made is not None:
            self.parameters["tools"] = await self.made.tools()
        return OllamaSession(
            self, plain_name(model, "ollama"), context.model_headers, tested=context.test is not None
        )

    async def close(self) -> None:
        """Close connections, and the process of functions that gave tools."""
        await self.client.close()
        if self.made is not None:
            await self.made.close()


class OllamaSession(Session):
    """The messages so far; each turn adds to them. `tested` says that a promptfoo test is run."""

    def __init__(self, agent: OllamaAgent, model: str, headers: dict[str, str], tested: bool = False) -> None:
        self.agent = agent
        self.tested = tested
        self.model = model
        self.headers = headers
        self.messages: list[Any] = []
        self.restart()

    def restart(self) -> None:
        """Forget everything but the system text."""
        self.messages = [{"role": "system", "content": self.agent.system}] if self.agent.system else []

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Send one turn and read the answer as it comes."""
        agent = self.agent
        began = time.monotonic()
        if request.messages is not None:
            self.restart()
            roles = {one.get("role") for one in request.messages if isinstance(one, dict)}
            self.messages = [*([] if "system" in roles else self.messages), *request.messages]
        else:
            self.messages.append({"role": "user", "content": request.text or ""})
        body = encode(self._body(request))
        call = agent.client.call("POST", agent.url, body=body, headers=self.headers, turn=request.turn)
        parts: list[str] = []
        calls: list[dict[str, Any]] = []
        usage: Usage | None = None
        done, reason = False, None
        try:
            async for event in call.open():
                yield event
            async for line in call.lines():
                piece = self._piece(line)
                inner = piece.get("message")
                message = inner if isinstance(inner, dict) else piece
                if thought := text_of(message.get("thinking")):
                    yield ReasoningDelta(thought)
                if text := text_of(message.get("response" if agent.completes else "content")):
                    parts.append(text)
                    yield TextDelta(text)
                if piece.get("error"):
                    raise AgentError(
                        f"{agent.url} reported an error: {explain(text_of(piece))}",
                        code="reported",
                        said=explain(text_of(piece)),
                    )
                calls += [one for one in message.get("tool_calls") or [] if isinstance(one, dict)]
                if piece.get("done"):
                    done = call.ended = True
                    reason = text_of(piece.get("done_reason")) or None
                    usage = Usage(
                        figures.count(piece.get("prompt_eval_count"), "input tokens"),
                        figures.count(piece.get("eval_count"), "output tokens"),
                    )
            if not done:
                raise AgentError(
                    f"the answer of {agent.url} ended before it was complete",
                    code="broke-off",
                    said="ended before it was complete",
                    place=place_of(agent.url),
                )
        except AgentError as error:
            error.answer = error.answer or "".join(parts) or call.heard
            raise
        finally:
            if call.unreported:
                yield call.exchanged()
            await call.close()
        text = "".join(parts)
        cost = agent.cost(self.model, usage)
        if usage is not None:
            yield UsageReport(usage, cost)
        if not (self.tested or calls) and (why := finish_reasons.silence(text, reason, called=False)):
            raise AgentError(f"{agent.url} {why}", code="empty-answer", said=why)
        self.messages.append(
            {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
        )
        reply = Reply(turn=request.turn, text=text, usage=usage, cost=cost, model=self.model)
        if not self.tested:  # promptfoo's provider does not say it
            reply.finish_reason = reason
        if calls:
            for number, one in enumerate(calls, 1):
                function = _function(one)
                yield ToolCall(
                    f"{request.turn}.{number}", text_of(function.get("name")), function.get("arguments")
                )
            if self.tested:
                told = [self._told(one) for one in calls]
                reply.output = {"content": text, "tool_calls": told} if text.strip() else told
                reply.text = text_of(reply.output)
        reply.latency_ms = round((time.monotonic() - began) * 1000, 1)
        yield Finished(reply)

    def _body(self, request: Request) -> dict[str, Any]:
        agent = self.agent
        given = filled_in(agent.parameters, request.vars)
        body: dict[str, Any] = {"model": self.model}
        if agent.completes:
            body["prompt"] = prompt_of(request)
            if agent.system:
                body["system"] = agent.system
        else:
            body["messages"] = self.messages
        body["stream"] = True
        body["options"] = {key: value for key, value in given.items() if key in OLLAMA_OPTIONS}
        if given.get("think") is not None:
            body["think"] = given["think"]
        if isinstance(given.get("passthrough"), dict):
            body.update(given["passthrough"])
        if given.get("tools") and not agent.completes:
            body["tools"] = shaped_tools(given["tools"], "openai")
        if request.schema is not None:
            body["format"] = request.schema
        return body

    def _piece(self, line: str) -> dict[str, Any]:
        try:
            value = decode(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise AgentError(
                f"{self.agent.url} sent something that is not JSON: {one_line(line, 200)}",
                code="unreadable",
                said=f"no JSON: {one_line(line, 200)}",
                place=place_of(self.agent.url),
            )
        return value

    @staticmethod
    def _told(call: dict[str, Any]) -> dict[str, Any]:
        """A call as promptfoo has it in its output: the arguments as text."""
        function = _function(call)
        return {"function": {"name": function.get("name"), "arguments": text_of(function.get("arguments"))}}


def _function(call: dict[str, Any]) -> dict[str, Any]:
    """What is called."""
    given = call.get("function")
    return given if isinstance(given, dict) else {}
