"""promptfoo's `webhook:` provider: `{prompt, config}` is posted, `{output}` comes back."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options
from tui_eval.agents.http.http_call import HttpClient
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.loose_json import decode, encode, one_line
from tui_eval.agents.promptfoo.provider_response import prompt_of
from tui_eval.config.project import AgentSpec
from tui_eval.events import Event, Finished, TextDelta
from tui_eval.model import Reply


class WebhookAgent(Agent):
    """One endpoint; nothing of its `config` is a template."""

    capabilities = Capabilities(tokens=True, tools=True, metadata=True, calls_in_metadata=True)
    keeps_pace = True

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, frozenset({"url", "config"}))
        self.url = options.required("url", "http://localhost:9000/hook")
        self.config = options.mapping("config")
        self.client = HttpClient(self.url, retries=spec.retries, pace=self.pace)

    async def open(self, context: SessionContext) -> Session:
        """Begin; nothing is sent before the first turn."""
        return WebhookSession(self, context)

    async def close(self) -> None:
        """Close connections."""
        await self.client.close()


class WebhookSession(Session):
    """One row."""

    def __init__(self, agent: WebhookAgent, context: SessionContext) -> None:
        self.agent = agent
        self.context = context

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """One request and its answer."""
        began = time.monotonic()
        agent = self.agent
        sent: dict[str, Any] = {"prompt": prompt_of(request)}
        if agent.config:
            sent["config"] = agent.config
        call = agent.client.call(
            "POST", agent.url, body=encode(sent), headers=self.context.model_headers, turn=request.turn,
            any_status=self.context.reference,
        )  # fmt: skip
        try:
            async for event in call.open():
                yield event
            text = (await call.read()).decode("utf-8", "replace")
        finally:
            if call.unreported and call.status is not None:
                yield call.exchanged()
            await call.close()
        try:
            answer = decode(text)
        except ValueError:
            answer = None
        output = answer.get("output") if isinstance(answer, dict) else None
        if not isinstance(output, str):
            raise AgentError(
                f"{agent.url} must answer with {{output: text}}, not {one_line(text, 120) or 'nothing'}",
                answer=text,
                code="unreadable",
                said=f"no {{output: text}}: {one_line(text, 120) or 'nothing'}",
                place=place_of(agent.url),
            )
        if output:
            yield TextDelta(output)
        latency = round((time.monotonic() - began) * 1000, 1)
        yield Finished(Reply(turn=request.turn, text=output, latency_ms=latency, raw=text))
