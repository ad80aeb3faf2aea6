"""promptfoo's HTTP providers: requests from templates, answers through transforms, sessions; and its `webhook:`."""

from __future__ import annotations

import asyncio
import math
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options
from tui_eval.agents.http.error_answers import backoff, beyond, explain, quota_spent, retry_after
from tui_eval.agents.http.http_call import SENSITIVE, HttpCall, HttpClient
from tui_eval.agents.http.http_connections import place_of, refusal
from tui_eval.agents.loose_json import decode, encode, one_line, text_of
from tui_eval.agents.programs.suite_scripts import Scripts
from tui_eval.agents.promptfoo.promptfoo_auth import Authorization, answered, signature_of
from tui_eval.agents.promptfoo.promptfoo_env import (
    require_destination,
    require_destination_within,
    require_destinations_within,
    require_led_to,
    require_values,
)
from tui_eval.agents.promptfoo.promptfoo_files import SettingsFiles
from tui_eval.agents.promptfoo.promptfoo_providers import unnamed_secrets
from tui_eval.agents.promptfoo.promptfoo_request import (
    JSON_TYPE,
    TEXT_TYPE,
    HttpRequest,
    add_form,
    configured,
    filled,
    filled_headers,
    raw,
    raw_address,
    rendered,
    tool_values,
)
from tui_eval.agents.promptfoo.promptfoo_tls import context_of, server_name
from tui_eval.agents.promptfoo.provider_response import call_context, prompt_of, read_response
from tui_eval.config.config_values import check_led_to, holds_secret, leads_elsewhere
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.events import Event, Finished, Retrying, TextDelta
from tui_eval.guard import figures
from tui_eval.guard.fair_share import seconds_left
from tui_eval.guard.secrets import secret_values
from tui_eval.javascript.values import UNDEFINED, handed, is_undefined
from tui_eval.model import Reply, Usage

# -- `config.session` of a promptfoo HTTP provider: an endpoint that begins a session before the request.


class SessionEndpoint:
    """Begins sessions for one provider; a session that it began is gone on with where the vars name it."""

    def __init__(
        self,
        settings: Any,
        scripts: Scripts,
        context: ssl.SSLContext | None,
        led_to: Callable[[str, Any], None],
    ) -> None:
        """`led_to` is told the address that a session is asked of and what it gets, and raises where it may not."""
        self._led_to = led_to
        self._settings: dict[str, Any] = settings if isinstance(settings, dict) else {}
        self._scripts = scripts
        self._context = context
        self._client: HttpClient | None = None
        self._begun: set[str] = set()

    async def add(self, values: dict[str, Any]) -> None:
        """Put `sessionId` among the values of the templates.

        Raises:
            AgentError: the endpoint gave none.
            NeedsTrust: its address leads to another host than the one that stands there.
        """
        if not self._settings.get("url") or values.get("sessionId") in self._begun:
            return
        values["sessionId"] = await self._begin(values)
        self._begun.add(values["sessionId"])

    async def _begin(self, values: Mapping[str, Any]) -> str:
        settings = self._settings
        url = filled(str(settings["url"]), values)
        method = str(settings.get("method") or "POST").upper()
        headers = filled_headers(settings.get("headers"), values)
        given, body = settings.get("body"), None
        if given and method != "GET":
            plain = isinstance(given, str)
            body = (
                filled(given, values).encode("utf-8", "replace") if plain else encode(rendered(given, values))
            )
            headers.setdefault("content-type", TEXT_TYPE if plain else JSON_TYPE)
        self._led_to(url, [headers, body and body.decode("utf-8", "replace")])
        if self._client is None:
            self._client = HttpClient(context=self._context)
        call = self._client.call(method, url, body=body, headers=headers, any_status=True)
        text = await answered(call, url, "config.session:", "session")
        parser = settings.get("responseParser")
        if not isinstance(parser, str):
            raise AgentError("config.session.responseParser is missing", code="bad-setting")
        found = await parsed(self._scripts, parser, call, text, "config.session.responseParser")
        if not found:
            raise AgentError(
                "config.session: its answer holds no session id",
                code="no-field",
                said="config.session",
                place="session id",
            )
        return text_of(found)

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        if self._client is not None:
            await self._client.close()


async def parsed(scripts: Scripts, parser: str, call: HttpCall, text: str, what: str) -> Any:
    """What an expression over `data.headers` and `data.body` finds in an answer.

    Raises:
        AgentError: it fails.
    """
    try:
        body = decode(text)
    except ValueError:
        body = None
    data = {"headers": dict(call.headers.items()), "body": text if body is None else body}
    return await scripts.run(parser, {"data": data}, what)


# -- The reply that the answer of a promptfoo HTTP provider means: status, transforms, metadata, tokens.


_WORDS = 1.3
"""Tokens for a word, unless the suite says otherwise."""


class AnswerReader:
    """Reads the answers of one provider by its `config`.

    `reference` keeps to promptfoo where it loses something: every status is an answer, and an output that is empty or
    an error becomes an object.
    """

    def __init__(self, config: Mapping[str, Any], scripts: Scripts) -> None:
        self._config = config
        self._scripts = scripts

    async def check_status(self, call: HttpCall, text: str, reference: bool, broken: bool) -> None:
        """promptfoo takes every status for an answer unless told otherwise; we do not, save to the
        letter (`compat: reference`); nor for any a text that is `broken`, or a part that nobody asked for.

        Raises:
            AgentError: this status is none.
        """
        status = call.status or 0
        check = self._config.get("validateStatus")
        if isinstance(check, str) and check:
            plain = check.strip()
            bare = "=>" not in plain and not plain.startswith(("function", "file://"))
            code = f"(status) => {plain}" if bare else plain
            values = {"status": status}
            fine = bool(await self._scripts.run(code, values, "config.validateStatus", given=check))
        else:
            # Of a server that stays busy promptfoo makes an error, too.
            fine = status < 400 or (reference and status != 429)
            if status == 206 and not reference:
                raise call.part_only()
        if broken or not fine:
            raise AgentError(
                refusal(call.url, status, explain(text, call.headers)),
                status=status,
                answer=text,
                said=explain(text, call.headers),
                place=place_of(call.url),
            )

    async def read(
        self,
        call: HttpCall,
        text: str,
        turn: int,
        values: Mapping[str, Any],
        prompt: Any,
        reference: bool,
        took: float,
    ) -> tuple[list[Event], Reply]:
        """The reply, and what it shows. `prompt` is what was sent after `transformRequest`; `took` in ms.

        Raises:
            AgentError: a transform fails, or says an error.
        """
        parser = self._config.get("transformResponse") or self._config.get("responseParser")
        value = _something(text)
        found: Any = text if value is None else value
        answers = isinstance(
            parser, str
        )  # only a transform's result can be a whole answer with metadata and cost
        if isinstance(parser, str):
            found = await self._transformed(parser, value, call, text, took)
        if (
            answers
            and isinstance(found, dict)
            and (found.get("output") or (found.get("error") and not reference))
        ):
            events, reply = read_response(found, turn)
        else:
            answers = False
            missing = found is None and not reference
            if is_undefined(found):
                found = {}  # as promptfoo stores what is undefined
            elif reference and not isinstance(found, dict | list) and not found:
                found = {"output": found}
            # A reply that is null is none, promptfoo's "No output"; to the letter it is an object with a null in it.
            reply = Reply(turn=turn, text="" if missing else text_of(found), text_missing=missing)
            if not isinstance(found, str) and not missing:
                reply.output = found
            events = []
            if reply.text:
                events.append(TextDelta(reply.text))
        if reply.raw is None:
            reply.raw = text
        reply.metadata = {**(reply.metadata or {}), "http": call.answered()}
        session = found.get("sessionId") if answers and isinstance(found, dict) else None
        session_parser = self._config.get("sessionParser")
        if not session and isinstance(session_parser, str):
            session = await parsed(self._scripts, session_parser, call, text, "config.sessionParser")
        if session := session or values.get("sessionId"):
            reply.metadata["sessionId"] = text_of(session)
        if reply.usage is None:
            told = found.get("output") if answers and isinstance(found, dict) else found
            self._estimate(reply, str(values["prompt"]), prompt, told if isinstance(told, str) else text)
        return events, reply

    async def _transformed(self, parser: str, value: Any, call: HttpCall, text: str, took: float) -> Any:
        response = {
            "data": text,
            "status": call.status,
            "statusText": call.reason,
            "headers": dict(call.headers.items()),
            "cached": False,
            "latencyMs": round(took),
        }
        given = {"json": value, "text": text, "context": {"response": response}}
        return await self._scripts.run(
            parser, given, "config.transformResponse", "parse_response", undefined=UNDEFINED
        )

    def _estimate(self, reply: Reply, original: str, prompt: Any, answer: str) -> None:
        """Tokens guessed from words, where the suite asks for it."""
        settings = self._config.get("tokenEstimation")
        if not isinstance(settings, dict) or settings.get("enabled") is not True:
            return
        factor = settings.get("multiplier")
        factor = factor if figures.is_finite(factor) and factor > 0 else _WORDS
        sent = prompt if isinstance(prompt, str) else original
        reply.usage = Usage(math.ceil(len(sent.split()) * factor), math.ceil(len(answer.split()) * factor))


def _something(text: str) -> Any:
    """The JSON value of a body; None where it is none, or one that JavaScript takes for nothing."""
    try:
        value = decode(text)
    except ValueError:
        return None
    return value if value or isinstance(value, dict | list) else None


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
        self.sent = [self.config, self.url, self.raw]
        if self.raw is not None:
            named, self.url = self.url, raw_address(self.raw, self.config, self.url)
            check_led_to(spec, named, self.url, services.trust)  # of a request in a file
        require_destination(spec, self.sent, self.url, services.trust)
        require_destinations_within(spec, self.config, services.trust)
        for secret in unnamed_secrets(self.config):
            services.conceal(secret)
        tls = self.config.get("tls")
        context = context_of(tls, services, self.base, spec.name)
        tries = self.config.get("maxRetries")
        self.tries = int(tries) if isinstance(tries, int | float) and tries >= 0 else TRIES
        self.client = HttpClient(
            retries=self.tries,
            pace=self.pace,
            context=context,
            server_name=server_name(tls),
        )
        self.scripts = Scripts(services, spec.base)
        self.auth = Authorization(
            self.config.get("auth"),
            services,
            self.scripts,
            spec.name,
            context,
            partial(self._led_to, "auth", "tokenUrl"),
        )
        self.signs_in = any(self.config.get(key) for key in ("auth", "signatureAuth"))
        self.signature = signature_of(self.config.get("signatureAuth"), services, self.base, spec.name)
        self.session = SessionEndpoint(
            self.config.get("session"), self.scripts, context, partial(self._led_to, "session", "url")
        )
        self.reader = AnswerReader(self.config, self.scripts)

    def _led_to(self, key: str, named_by: str, address: str, sent: Any) -> None:
        """See that what stands under a key goes to the host that stands there, with templates filled in, too."""
        given = self.config[key]
        if leads_elsewhere(str(given[named_by]), address):
            require_destination_within(self.spec, key, given, address, self.services.trust)
        require_values(self.spec, f".{key}", [address, sent], address, self.services.trust)

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
        require_led_to(agent.spec, agent.sent, agent.url, wanted.url, values, agent.services.trust)
        wanted.headers.update(self.context.trace_headers)
        agent.auth.add(wanted, values)
        attempt = followed = 0
        while True:
            broken = False
            asked_at = time.monotonic()
            call = agent.client.call(
                wanted.method, wanted.url, body=wanted.body, headers=wanted.headers, turn=request.turn,
                any_status=True,
            )  # fmt: skip
            try:
                async for event in call.open():
                    yield event
                text = (await call.read()).decode("utf-8", "replace")
            except AgentError as error:
                error.answer = error.answer or call.heard
                if (call.status or 0) < 400:
                    raise
                text, broken = call.heard, True  # what the status says is true without
            finally:
                if call.unreported:
                    yield call.exchanged()
                await call.close()
            onward = next_request(wanted, call, agent.signs_in or bool(agent.spec.secret_in))
            if onward is not None and followed < MOST:
                wanted, followed = onward, followed + 1
                continue
            status = call.status or 0
            if attempt >= agent.tries or not _later(status) or quota_spent(status, text):
                break
            asked = retry_after(call.headers)
            if asked is not None and (too_late := beyond(asked, seconds_left())):
                why = explain(text, call.headers)
                raise AgentError(
                    f"HTTP {status} from {wanted.url}: {why}; {too_late}",
                    status=status,
                    code="asks-to-wait",
                    said=too_late,
                    place=place_of(wanted.url),
                )
            wait = backoff(attempt, asked)
            attempt += 1
            yield Retrying(str(call.status), round(wait, 3))
            await asyncio.sleep(wait)
        await agent.reader.check_status(call, text, reference, broken)
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
        asking = {**call_context(request, self.context), "vars": handed(values)}
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
        given = {
            "prompt": values["prompt"],
            "vars": handed(values),
            "context": call_context(request, self.context),
        }
        found = await self.agent.scripts.run(transform, given, "config.transformRequest", "transform_request")
        if found is None and not reference:
            raise AgentError("config.transformRequest gave nothing", code="bad-setting")
        return found


def _later(status: int) -> bool:
    return status == 429 or (status >= 500 and os.environ.get("PROMPTFOO_RETRY_5XX", "") in ("1", "true"))


# -- Where an answer sends a request on to, as browsers follow it (the Fetch standard, HTTP-redirect fetch),
# save that nothing goes to another host but a plain GET without credentials, nor from https to http.


MOST = 20
"""How often a request is sent on."""
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_PLAIN = frozenset(("accept", "accept-language", "user-agent"))
_OF_A_BODY = frozenset(("content-type", "content-length", "content-encoding"))


def next_request(request: HttpRequest, call: HttpCall, secret: bool = False) -> HttpRequest | None:
    """The request that a redirect asks for; None where the answer is none. `secret`: any header may hold one, of the
    suite's own environment or what it signs in with.

    Raises:
        AgentError: it leads where this request must not go.
    """
    status, place = call.status or 0, call.headers.get("location")
    if status not in _REDIRECTS or not place:
        return None
    url = urljoin(request.url, place)
    before, after = urlsplit(request.url), urlsplit(url)
    if after.scheme not in ("http", "https") or (before.scheme, after.scheme) == ("https", "http"):
        raise AgentError(
            f"{request.url} redirects to {one_line(url)}: that is not followed",
            status=status,
            code="redirected",
            said=one_line(url),
        )
    method, body, headers = request.method, request.body, dict(request.headers)
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, body = "GET", None
        headers = {name: value for name, value in headers.items() if name.lower() not in _OF_A_BODY}
    if (before.scheme, before.netloc) != (after.scheme, after.netloc):
        if method != "GET":
            raise AgentError(
                f"{request.url} redirects to another host, {one_line(url)}: what is sent does not follow; "
                "write that URL into the provider if it is meant",
                status=status,
                code="redirected",
                said=one_line(url),
            )
        headers = {name: value for name, value in headers.items() if not _is_secret(name, value, secret)}
    return HttpRequest(method, url, headers, body)


def _is_secret(name: str, value: str, secret: bool) -> bool:
    """Whether a header was meant for the host that it was sent to alone."""
    if name.lower() in SENSITIVE or secret_values({name: value}) or holds_secret(value):
        return True
    return secret and name.lower() not in _PLAIN


# -- promptfoo's `webhook:` provider: `{prompt, config}` is posted, `{output}` comes back.


class WebhookAgent(Agent):
    """One endpoint; nothing of its `config` is a template."""

    capabilities = Capabilities(tokens=True, tools=True, metadata=True, calls_in_metadata=True)
    keeps_pace = True

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, frozenset({"url", "config"}))
        self.url = options.required("url", "http://localhost:9000/hook")
        self.config = options.mapping("config")
        self.client = HttpClient(retries=spec.retries, pace=self.pace)

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
        except AgentError as error:
            error.answer = error.answer or call.heard
            raise
        finally:
            if call.unreported:
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
