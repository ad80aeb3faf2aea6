"""promptfoo's HTTP provider: requests from templates, answers through transforms, sessions."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tui_eval.agents import redirects
from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.http_answers import backoff, explain, retry_after
from tui_eval.agents.http_call import Call
from tui_eval.agents.http_client import HttpClient
from tui_eval.agents.options import Options
from tui_eval.agents.promptfoo_auth import Authorization
from tui_eval.agents.promptfoo_request import HttpRequest, configured, filled, multipart, raw
from tui_eval.agents.promptfoo_tls import context_of
from tui_eval.agents.provider_response import prompt_of, read_response
from tui_eval.agents.redirects import next_request
from tui_eval.agents.suite_scripts import Scripts
from tui_eval.agents.wire import decode, encode, text_of
from tui_eval.config import AgentSpec, ConfigError
from tui_eval.events import Event, Finished, Retrying, TextDelta
from tui_eval.model import Reply, Usage

TRIES = 4
"""How often promptfoo asks again."""
_KNOWN = frozenset(
    [
        "url",
        "method",
        "headers",
        "body",
        "queryParams",
        "request",
        "transformRequest",
        "transformResponse",
        "responseParser",
        "validateStatus",
        "sessionParser",
        "session",
        "stateful",
        "maxRetries",
        "multipart",
        "tools",
        "tool_choice",
        "transformToolsFormat",
        "tokenEstimation",
        "auth",
        "useHttps",
        "tls",
    ]
)


class PromptfooHttpAgent(Agent):
    """One endpoint as promptfoo's `http` provider describes it in `config`."""

    capabilities = Capabilities(tokens=True, tools=True, metadata=True)
    keeps_pace = True

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, frozenset({"url", "config"}))
        self.config = options.mapping("config")
        self.url = options.text("url") or str(self.config.get("url") or "")
        self.raw = self._request_text()
        if not self.url and not self.raw:
            raise ConfigError(f"provider {spec.name}: config.url is missing")
        if "signatureAuth" in self.config:
            raise ConfigError(
                f"provider {spec.name}: config.signatureAuth (signed requests) is not supported; "
                "map the provider to an agent of tui_eval.yaml with providers:"
            )
        base = Path(spec.base) if spec.base else services.root
        context = context_of(self.config.get("tls"), services, base, spec.name)
        tries = self.config.get("maxRetries")
        self.tries = int(tries) if isinstance(tries, int | float) and tries >= 0 else TRIES
        secure = self.config.get("useHttps") is True
        self.client = HttpClient(
            self.url or ("https:" if secure else "http:"),
            retries=self.tries,
            pace=self.pace,
            context=context,
        )
        self.session_client: HttpClient | None = None
        self.scripts = Scripts(services, spec.base)
        self.auth = Authorization(self.config.get("auth"), self.scripts)

    @property
    def unknown(self) -> list[str]:
        """Keys of `config` that nothing reads."""
        return sorted(set(self.config) - _KNOWN)

    def _request_text(self) -> str | None:
        text = self.config.get("request")
        if not isinstance(text, str):
            return None
        if text.startswith("file://"):
            from tui_eval.guard.paths import confine

            base = Path(self.spec.base) if self.spec.base else self.services.root
            path = confine(self.services.root, text.removeprefix("file://"), self.services.trust, base)
            try:
                return path.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "it is not UTF-8"
                raise ConfigError(
                    f"provider {self.spec.name}: config.request: {path.name}: {reason}"
                ) from None
        return text

    async def open(self, context: SessionContext) -> Session:
        """Begin; nothing is sent before the first turn."""
        return PromptfooHttpSession(self, context)

    async def close(self) -> None:
        """Close connections and the processes of the suite's code."""
        await self.client.close()
        await self.auth.close()
        if self.session_client is not None:
            await self.session_client.close()
        await self.scripts.close()


class PromptfooHttpSession(Session):
    """One row."""

    def __init__(self, agent: PromptfooHttpAgent, context: SessionContext) -> None:
        self.agent = agent
        self.context = context

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """One request and its answer."""
        began = time.monotonic()
        agent = self.agent
        values = await self._values(request)
        wanted = await self._request(request, values)
        wanted.headers.update(self.context.trace_headers)
        await agent.auth.add(wanted, values)
        attempt = followed = 0
        while True:
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
            if attempt >= agent.tries or not _later(call.status or 0):
                break
            asked = retry_after(call.headers)
            wait = backoff(attempt) if asked is None else asked
            attempt += 1
            yield Retrying(str(call.status), round(wait, 3))
            await asyncio.sleep(wait)
        await self._check_status(call, text)
        events, reply = await self._read(call, text, request.turn, values)
        for event in events:
            yield event
        if reply.latency_ms is None:
            reply.latency_ms = round((time.monotonic() - began) * 1000, 1)
        yield Finished(reply)

    async def _values(self, request: Request) -> dict[str, Any]:
        config = self.agent.config
        values: dict[str, Any] = {**(request.vars or self.context.vars), "prompt": prompt_of(request)}
        trace = self.context.trace
        if evaluation_id := trace.evaluation_id if trace is not None else self.context.evaluation_id:
            values["evaluationId"] = evaluation_id
        for name in ("tools", "tool_choice"):
            if config.get(name) is not None:
                values[name] = encode(_tools(config, name)).decode()
        session = config.get("session")
        if isinstance(session, dict) and session.get("url"):
            values["sessionId"] = await self._session_id(session, values)
        return values

    async def _session_id(self, session: dict[str, Any], values: dict[str, Any]) -> str:
        agent = self.agent
        settings = {"method": "POST", "body": {}, **session}
        wanted = configured(str(session["url"]), settings, values, values["prompt"])
        if agent.session_client is None:
            agent.session_client = HttpClient(wanted.url)
        call = agent.session_client.call(wanted.method, wanted.url, body=wanted.body, headers=wanted.headers)
        try:
            async for _ in call.open():
                pass
            text = (await call.read()).decode("utf-8", "replace")
        finally:
            await call.close()
        parser = session.get("responseParser")
        if not isinstance(parser, str):
            raise AgentError("config.session.responseParser is missing")
        found = await self._parsed(parser, call, text, "config.session.responseParser")
        if found is None:
            raise AgentError("config.session: its answer holds no session id")
        return text_of(found)

    async def _parsed(self, parser: str, call: Call, text: str, what: str) -> Any:
        data = {"headers": dict(call.headers.items()), "body": _value(text)}
        return await self.agent.scripts.run(parser, {"data": data}, what)

    async def _request(self, request: Request, values: dict[str, Any]) -> HttpRequest:
        agent, config = self.agent, self.agent.config
        prompt: Any = values["prompt"]
        transform = config.get("transformRequest")
        if isinstance(transform, str) and transform:
            prompt = await self._transformed(transform, prompt, values)
        if agent.raw is not None:
            return raw(agent.raw, config, values, prompt)
        wanted = configured(agent.url, config, values, prompt)
        form = config.get("multipart")
        if isinstance(form, dict):
            base = Path(agent.spec.base) if agent.spec.base else agent.services.root
            given = {**values, "prompt": text_of(prompt)}
            multipart(form.get("parts"), wanted, given, agent.services, base)
        return wanted

    async def _transformed(self, transform: str, prompt: Any, values: dict[str, Any]) -> Any:
        given = {"prompt": prompt, "vars": values, "context": {"vars": values}}
        if not transform.startswith("file://") and "{{" in transform:
            text = filled(transform, values)
            return _value(text)
        found = await self.agent.scripts.run(transform, given, "config.transformRequest", "transform_request")
        if found is None:
            raise AgentError("config.transformRequest gave nothing")
        return found

    async def _check_status(self, call: Call, text: str) -> None:
        """promptfoo takes every status for an answer unless told otherwise; we do not, save to the
        letter (`compat: reference`)."""
        status = call.status or 0
        check = self.agent.config.get("validateStatus")
        if isinstance(check, str) and check:
            code = (
                check
                if "=>" in check or check.startswith(("function", "file://"))
                else f"(status) => {check}"
            )
            fine = bool(await self.agent.scripts.run(code, {"status": status}, "config.validateStatus"))
        else:
            # Of a server that stays busy promptfoo makes an error, too.
            fine = status < 400 or (self.context.reference and status != 429)
        if not fine:
            raise AgentError(
                f"HTTP {status} from {call.url}: {explain(text, call.headers)}", status=status, answer=text
            )

    async def _read(
        self, call: Call, text: str, turn: int, values: dict[str, Any]
    ) -> tuple[list[Event], Reply]:
        config = self.agent.config
        value = _value(text)
        found: Any = text if value is None and text.strip() != "null" else value
        parser = config.get("transformResponse", config.get("responseParser"))
        if isinstance(parser, str) and parser:
            response = {"status": call.status, "headers": dict(call.headers.items()), "body": text}
            given = {"json": value, "text": text, "context": {"response": response}}
            found = await self.agent.scripts.run(parser, given, "config.transformResponse", "parse_response")
            if found is None:
                found = {}  # as promptfoo stores what is undefined
        events: list[Event] = []
        if isinstance(found, dict) and found.get("output"):
            events, reply = read_response(found, turn)
        else:
            reply = Reply(turn=turn, text=text_of(found))
            if not isinstance(found, str):
                reply.output = found
            if reply.text:
                events.append(TextDelta(reply.text))
        reply.raw = text
        headers = {name: item for name, item in call.headers.items() if name.lower() != "set-cookie"}
        reply.metadata = {
            **(reply.metadata or {}),
            "http": {"status": call.status, "headers": headers},
        }
        session = values.get("sessionId")
        if isinstance(config.get("sessionParser"), str):
            session = (
                await self._parsed(config["sessionParser"], call, text, "config.sessionParser") or session
            )
        if session:
            reply.metadata["sessionId"] = text_of(session)
        self._estimate(reply, values)
        return events, reply

    def _estimate(self, reply: Reply, values: dict[str, Any]) -> None:
        """Tokens guessed from words, where the suite asks for it."""
        settings = self.agent.config.get("tokenEstimation")
        if reply.usage is not None or not isinstance(settings, dict) or settings.get("enabled") is False:
            return
        factor = settings.get("multiplier")
        factor = factor if isinstance(factor, int | float) and factor > 0 else 1.3
        reply.usage = Usage(
            math.ceil(len(str(values["prompt"]).split()) * factor),
            math.ceil(len(reply.text.split()) * factor),
        )


def _value(text: str) -> Any:
    """The JSON value of a body; None where it is none."""
    try:
        return decode(text)
    except ValueError:
        return None


def _later(status: int) -> bool:
    return status == 429 or (status >= 500 and os.environ.get("PROMPTFOO_RETRY_5XX", "") in ("1", "true"))


def _tools(config: dict[str, Any], name: str) -> Any:
    """Tools in the shape that the endpoint wants (`transformToolsFormat`), from OpenAI's."""
    value, wanted = config[name], config.get("transformToolsFormat")
    if name != "tools" or wanted != "anthropic" or not isinstance(value, list):
        return value
    return [
        {
            "name": tool["function"].get("name"),
            "description": tool["function"].get("description", ""),
            "input_schema": tool["function"].get("parameters", {"type": "object"}),
        }
        if isinstance(tool, dict) and isinstance(tool.get("function"), dict)
        else tool
        for tool in value
    ]
