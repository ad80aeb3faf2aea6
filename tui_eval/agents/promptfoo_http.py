"""promptfoo's HTTP provider: requests from templates, answers through transforms, sessions."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui_eval.agents import redirects
from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.http_answers import backoff, beyond, explain, quota_spent, retry_after
from tui_eval.agents.http_client import HttpClient
from tui_eval.agents.options import Options
from tui_eval.agents.promptfoo_answer import AnswerReader
from tui_eval.agents.promptfoo_auth import Authorization
from tui_eval.agents.promptfoo_files import SettingsFiles
from tui_eval.agents.promptfoo_form import add_form
from tui_eval.agents.promptfoo_providers import unnamed_secrets
from tui_eval.agents.promptfoo_request import HttpRequest, configured, raw, rendered
from tui_eval.agents.promptfoo_session import SessionEndpoint
from tui_eval.agents.promptfoo_signature import signature_of
from tui_eval.agents.promptfoo_tls import context_of, server_name
from tui_eval.agents.promptfoo_tools import tool_values
from tui_eval.agents.provider_response import call_context, prompt_of
from tui_eval.agents.redirects import next_request
from tui_eval.agents.suite_scripts import Scripts
from tui_eval.agents.wire import decode, text_of
from tui_eval.config import AgentSpec, ConfigError
from tui_eval.events import Event, Finished, Retrying
from tui_eval.guard.fair_share import seconds_left

TRIES = 4
"""How often promptfoo asks again."""


class PromptfooHttpAgent(Agent):
    """One endpoint as promptfoo's `http` provider describes it in `config`."""

    capabilities = Capabilities(tokens=True, tools=True, metadata=True, calls_in_metadata=True)
    keeps_pace = True

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, frozenset({"url", "config"}))
        self.config = dict(options.mapping("config"))
        self.url = options.text("url") or str(self.config.get("url") or "")
        self.base = Path(spec.base) if spec.base else services.root
        files = SettingsFiles(services, self.base, f"provider {spec.name}: config")
        self.config["body"] = files.filled_in(self.config.get("body"), "body")
        request = files.filled_in(self.config.get("request"), "request")
        self.raw = request if isinstance(request, str) else None
        if not self.url and not self.raw:
            raise ConfigError(f"provider {spec.name}: config.url is missing")
        for secret in unnamed_secrets(self.config):
            services.conceal(secret)
        tls = self.config.get("tls")
        context = context_of(tls, services, self.base, spec.name)
        tries = self.config.get("maxRetries")
        self.tries = int(tries) if isinstance(tries, int | float) and tries >= 0 else TRIES
        secure = self.config.get("useHttps") is True
        self.client = HttpClient(
            self.url or ("https:" if secure else "http:"),
            retries=self.tries,
            pace=self.pace,
            context=context,
            server_name=server_name(tls),
        )
        self.scripts = Scripts(services, spec.base)
        self.auth = Authorization(self.config.get("auth"), services, self.scripts, spec.name, context)
        self.signature = signature_of(self.config.get("signatureAuth"), services, self.base, spec.name)
        self.session = SessionEndpoint(self.config.get("session"), self.scripts, context)
        self.reader = AnswerReader(self.config, self.scripts)

    async def open(self, context: SessionContext) -> Session:
        """Begin; nothing is sent before the first turn."""
        return PromptfooHttpSession(self, context)

    async def close(self) -> None:
        """Close connections and the processes of the suite's code."""
        await self.client.close()
        await self.auth.close()
        await self.session.close()
        await self.scripts.close()


class PromptfooHttpSession(Session):
    """One row."""

    def __init__(self, agent: PromptfooHttpAgent, context: SessionContext) -> None:
        self.agent = agent
        self.context = context

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """One request and its answer."""
        began = time.monotonic()
        agent, reference = self.agent, self.context.reference
        values = await self._values(request)
        wanted, prompt = await self._request(request, values)
        wanted.headers.update(self.context.trace_headers)
        agent.auth.add(wanted, values)
        attempt = followed = 0
        while True:
            asked_at = time.monotonic()
            call = agent.client.call(
                wanted.method, wanted.url, body=wanted.body, headers=wanted.headers, turn=request.turn,
                any_status=True,
            )  # fmt: skip
            try:
                async for event in call.open():
                    yield event
                text = (await call.read()).decode("utf-8", "replace")
            finally:
                if call.unreported and call.status is not None:
                    yield call.exchanged()
                await call.close()
            onward = next_request(wanted, call)
            if onward is not None and followed < redirects.MOST:
                wanted, followed = onward, followed + 1
                continue
            status = call.status or 0
            if attempt >= agent.tries or not _later(status) or quota_spent(status, text):
                break
            asked = retry_after(call.headers)
            if asked is not None and (too_late := beyond(asked, seconds_left())):
                why = explain(text, call.headers)
                raise AgentError(f"HTTP {status} from {wanted.url}: {why}; {too_late}", status=status)
            wait = backoff(attempt) if asked is None else asked
            attempt += 1
            yield Retrying(str(call.status), round(wait, 3))
            await asyncio.sleep(wait)
        await agent.reader.check_status(call, text, reference)
        took = (time.monotonic() - asked_at) * 1000
        events, reply = await agent.reader.read(call, text, request.turn, values, prompt, reference, took)
        for event in events:
            yield event
        if reply.latency_ms is None:
            reply.latency_ms = round((time.monotonic() - began) * 1000, 1)
        yield Finished(reply)

    async def _values(self, request: Request) -> dict[str, Any]:
        """What the templates know: the test's vars and what promptfoo adds to them, in its order."""
        agent, trace = self.agent, self.context.trace
        values: dict[str, Any] = {**(request.vars or self.context.vars), "prompt": prompt_of(request)}
        if evaluation_id := trace.evaluation_id if trace is not None else self.context.evaluation_id:
            values["evaluationId"] = evaluation_id
        values.update(tool_values(agent.config, self.context.prompt))
        asking = {**call_context(request, self.context), "vars": dict(values)}
        await agent.auth.prepare(values, asking)
        if agent.signature is not None:
            agent.signature.add(values)
        await agent.session.add(values)
        return values

    async def _request(self, request: Request, values: dict[str, Any]) -> tuple[HttpRequest, Any]:
        """The request, and the prompt as it was sent."""
        agent, config = self.agent, self.agent.config
        prompt: Any = values["prompt"]
        transform = config.get("transformRequest")
        if isinstance(transform, str) and transform:
            prompt = await self._transformed(transform, request, values)
        if agent.raw is not None:
            return raw(agent.raw, config, agent.url, values, prompt), prompt
        wanted = configured(agent.url, config, values, prompt, self.context.reference)
        form = config.get("multipart")
        if isinstance(form, dict):
            known = {**values, "prompt": text_of(prompt)}
            add_form(form.get("parts"), wanted, known, agent.services, agent.base)
        return wanted, prompt

    async def _transformed(self, transform: str, request: Request, values: dict[str, Any]) -> Any:
        reference = self.context.reference
        if "{{" in transform and not reference:
            # Plain JSON with templates is meant as such; promptfoo takes it for JavaScript and sends the braces.
            with suppress(ValueError):
                return rendered(decode(transform), values)
        given = {"prompt": values["prompt"], "vars": values, "context": call_context(request, self.context)}
        found = await self.agent.scripts.run(transform, given, "config.transformRequest", "transform_request")
        if found is None and not reference:
            raise AgentError("config.transformRequest gave nothing")
        return found


def _later(status: int) -> bool:
    return status == 429 or (status >= 500 and os.environ.get("PROMPTFOO_RETRY_5XX", "") in ("1", "true"))
