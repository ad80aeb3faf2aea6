"""The traces of a run: an id for each attempt, its spans as they arrive, what is kept of them."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from tui_eval.agents.base import TraceContext
from tui_eval.agents.loose_json import decode
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.engine.otlp.listener import Arriving, ListenerError, SpanListener, listeners
from tui_eval.formats import format_of
from tui_eval.guard.masker import Masker
from tui_eval.guard.secrets import MASK, secret_name, secret_values
from tui_eval.guard.text import clip
from tui_eval.guard.trust import Trust
from tui_eval.model import Assertion, Case, Reply, Trace, TraceSpan

# -- What a promptfoo suite says under `tracing`, and which of its assertions look at a trace.


PORT = 4318
"""OTLP over HTTP (IANA)."""
HOST = "127.0.0.1"
FORMATS = ("json", "protobuf")
_ASKED = frozenset(
    [
        "javascript",
        "python",
        "ruby",
        "skill-used",
        "trace-error-spans",
        "trace-span-count",
        "trace-span-duration",
        "trajectory:goal-success",
        "trajectory:step-count",
        "trajectory:tool-args-match",
        "trajectory:tool-sequence",
        "trajectory:tool-used",
    ]
)
"""Types that are judged on a trace; promptfoo waits for spans where there is one of them."""


class TracingSettings(msgspec.Struct, frozen=True):
    """`listens` says whether spans are received over HTTP at `host` and `port`, in `formats`.

    Attributes whose name holds one of `redact` are replaced. With `must_listen` (promptfoo's
    `failOnReceiverStartFailure`) nothing runs where that cannot be. `command_tools` are names of tools that
    run commands.
    """

    listens: bool = False
    host: str = HOST
    port: int = PORT
    formats: tuple[str, ...] = FORMATS
    redact: tuple[str, ...] = ()
    must_listen: bool = False
    command_tools: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def reached_from_outside(self) -> str:
        """What listening needs trust for; empty where only this machine reaches it, or nothing listens."""
        if not self.listens or self.local:
            return ""
        return f"receive spans at {self.host}:{self.port} from other machines"


def settings_of(case: Case, suite: Mapping[str, Any]) -> TracingSettings | None:
    """The settings for a case; None where nothing asks for traces."""
    if not format_of(case.format).asks_for_traces(case, suite):
        return None
    given = suite.get("tracing")
    tracing: dict[str, Any] = given if isinstance(given, dict) else {}
    otlp = tracing.get("otlp")
    http = otlp.get("http") if isinstance(otlp, dict) else None
    listens = isinstance(http, dict) and http.get("enabled", True) is True
    http = http if isinstance(http, dict) else {}
    port, host = http.get("port"), http.get("host")
    formats = tuple(name for name in FORMATS if name in _texts(http.get("acceptFormats")))
    return TracingSettings(
        listens=listens,
        host=host if isinstance(host, str) and host else HOST,
        port=port if isinstance(port, int) and 0 < port < 65536 else PORT,
        formats=formats or FORMATS,
        redact=tuple(name.lower() for name in _texts(http.get("redactAttributes"))),
        must_listen=tracing.get("failOnReceiverStartFailure") is True,
        command_tools=_texts(tracing.get("commandToolNames")),
    )


def looks_at_traces(assertions: Iterable[Assertion]) -> bool:
    """Whether one of the assertions may look at a trace."""
    return any(
        assertion.type.removeprefix("not-") in _ASKED
        or (isinstance(assertion.value, str) and assertion.value.startswith(("file://", "package:")))
        for assertion in assertions
    )


def _texts(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else []
    return tuple(dict.fromkeys(item.strip() for item in items if isinstance(item, str) and item.strip()))


REDACTED = "[REDACTED]"
KEPT_TEXT = 20_000
"""Characters of an attribute that are kept with the attempt."""
KEPT_SPANS = 2_000
"""Spans that are kept with the attempt; judged are all."""
_DEEPEST = 20
_MODELS = frozenset(
    ("openai", "openai-responses", "anthropic", "ollama", "litellm", "promptfoo-http", "http")
)
"""Agents around whose requests promptfoo makes a span of its own."""


class Tracing:
    """Owned by a run. Nothing listens before the first attempt of a suite that asks for traces."""

    def __init__(self, trust: Trust, evaluation_id: str) -> None:
        self.trust = trust
        self.evaluation_id = evaluation_id
        self._used: dict[tuple[str, int], SpanListener | str] = {}
        self._lock = asyncio.Lock()

    async def begin(
        self, case: Case, suite: Mapping[str, Any], tell: Callable[[str], None] | None = None
    ) -> Tracer | None:
        """A trace for an attempt of a case; None where nothing asks for one.

        `tell` prints a line for the person, once, where nothing can listen; the attempt goes on without spans.

        Raises:
            ConfigError: nothing can listen, and the suite says that it must.
            NeedsTrust: the suite wants to be reached from other machines.
        """
        settings = settings_of(case, suite)
        if settings is None:
            return None
        listener: SpanListener | None = None
        problem = "the suite receives no spans (tracing.otlp.http is missing or not enabled)"
        if settings.listens:
            if not settings.local:
                self.trust.require(settings.reached_from_outside)
            found = await self._listener(settings, tell)
            listener, problem = (None, found) if isinstance(found, str) else (found, "")
            if problem and settings.must_listen:
                raise ConfigError(f"{problem} (tracing.failOnReceiverStartFailure)")
        given = case.metadata.get("evaluationId"), case.metadata.get("testCaseId")
        evaluation_id, test_case_id = (value if isinstance(value, str) else "" for value in given)
        return Tracer(
            settings, listener, problem, evaluation_id or self.evaluation_id, test_case_id or case.case_id
        )

    async def _listener(
        self, settings: TracingSettings, tell: Callable[[str], None] | None
    ) -> SpanListener | str:
        address = settings.host, settings.port
        async with self._lock:
            known = self._used.get(address)
            if known is None:
                try:
                    known = await listeners().acquire(*address, settings.formats)
                except ListenerError as error:
                    known = str(error)
                    if tell is not None:
                        tell(known)
                self._used[address] = known
            elif isinstance(known, SpanListener):
                known.formats.update(settings.formats)
            return known

    async def close(self) -> None:
        """Give the listeners back."""
        used, self._used = self._used, {}
        for listener in used.values():
            if isinstance(listener, SpanListener):
                await listeners().release(listener)


class Tracer:
    """The trace of one attempt, which begins when it is made."""

    def __init__(
        self,
        settings: TracingSettings,
        listener: SpanListener | None,
        problem: str,
        evaluation_id: str,
        test_case_id: str,
    ) -> None:
        self.settings = settings
        self.trace_id, self.parent_id = secrets.token_hex(16), secrets.token_hex(8)
        self.context = TraceContext(f"00-{self.trace_id}-{self.parent_id}-01", evaluation_id, test_case_id)
        self._listener = listener
        self._problem = problem
        self._own: list[TraceSpan] = []
        self._arriving = listener.expect(self.trace_id) if listener is not None else Arriving(self.trace_id)
        self._strays = listener.strays if listener is not None else 0
        self._late = listener.late if listener is not None else 0
        self._refused = listener.refused if listener is not None else 0
        self._waited = 0.0

    async def settle(self, case: Case) -> None:
        """Wait for spans that are still on their way, where an assertion looks at them: until no more came
        between two looks, at most as long as promptfoo does (6 looks, 250 ms apart; its environment
        variables PROMPTFOO_TRACE_FETCH_… count)."""
        if self._listener is None or not looks_at_traces(case.assertions):
            return
        looks = _setting("MAX_ATTEMPTS", 6, 1, 30)
        pause = _setting("RETRY_DELAY_MS", 250, 0, 5000) / 1000
        enough = _setting("STABLE_POLLS", 2, 1, 10)
        began = time.monotonic()
        last, same = 0, 0
        for look in range(looks):
            count = len(self._arriving.spans) + self._arriving.left_out
            same = same + 1 if count and count == last else int(bool(count))
            last = count
            if same >= enough or look == looks - 1:
                break
            await asyncio.sleep(pause)
        self._waited = time.monotonic() - began

    @contextmanager
    def request(self, spec: AgentSpec, model: str | None) -> Iterator[list[Reply]]:
        """Our own span around a request to a model or an endpoint, as promptfoo makes one (`chat MODEL`);
        the reply goes into the list. Agents that are a program have none."""
        replies: list[Reply] = []
        start = time.time() * 1000
        try:
            yield replies
        except Exception as error:
            self._add_own(spec, model, start, None, str(error))
            raise
        self._add_own(spec, model, start, replies[-1] if replies else None, None)

    def _add_own(
        self, spec: AgentSpec, model: str | None, start: float, reply: Reply | None, error: str | None
    ) -> None:
        if spec.type not in _MODELS:
            return
        name = model or spec.model or str(spec.options.get("url") or spec.name)
        attributes: dict[str, Any] = {
            "gen_ai.system": "http" if spec.type.endswith("http") else spec.type.removesuffix("-responses"),
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": name,
        }
        if reply is not None and reply.usage is not None:
            attributes["gen_ai.usage.input_tokens"] = reply.usage.input_tokens or 0
            attributes["gen_ai.usage.output_tokens"] = reply.usage.output_tokens or 0
        self._own.append(
            TraceSpan(
                span_id=secrets.token_hex(8),
                name=f"chat {name}",
                parent_id=self.parent_id,
                start=start,
                end=time.time() * 1000,
                attributes=attributes,
                status=1 if error is None else 2,
                message=error,
                own=True,
            )
        )

    def trace(self) -> Trace:
        """The trace as it is judged, with what came so far."""
        arriving = self._arriving
        left_out = arriving.left_out
        received = arriving.spans
        if self.settings.redact:
            received = [_redacted(span, self.settings.redact) for span in received]
        return Trace(
            trace_id=self.trace_id,
            evaluation_id=self.context.evaluation_id,
            test_case_id=self.context.test_case_id,
            spans=[*received, *self._own],
            problem="" if received else self._why_nothing(),
            note=f"{left_out} more spans arrived than are looked at" if left_out else "",
            cut="spans" if left_out else "",
            command_tools=list(self.settings.command_tools),
        )

    def _why_nothing(self) -> str:
        listener = self._listener
        if listener is None:
            return self._problem
        reason = f"no span of this attempt's trace arrived at {listener.url}"
        if self._waited:
            reason += f" within {self._waited:.1f} s"
        if listener.refused > self._refused:
            return f"{reason}; what arrived was refused: {listener.refusal}"
        if listener.strays > self._strays:
            strays = listener.strays - self._strays
            return f"{reason}; {strays} of other traces did: the agent must go on with the traceparent it is given"
        if listener.late > self._late:
            late = listener.late - self._late
            return (
                f"{reason}; {late} of attempts that had ended did: the agent must export before it answers "
                "(SimpleSpanProcessor, force_flush)"
            )
        return f"{reason}; does the agent export before it answers (SimpleSpanProcessor, force_flush)?"

    def end(self) -> None:
        """Wait for nothing more."""
        if self._listener is not None:
            self._listener.forget(self.trace_id)

    def kept(self) -> Trace:
        """The trace as it is kept: values under the names of secrets masked, long texts cut."""
        trace = self.trace()
        spans = [_kept(span) for span in trace.spans[:KEPT_SPANS]]
        more = len(trace.spans) - len(spans)
        note = f"{more} of {len(trace.spans)} spans are not kept" if more else ""
        note = "; ".join(filter(None, (trace.note, note)))
        cut = "spans" if more or trace.cut else "texts" if any(map(_long, trace.spans)) else ""
        return msgspec.structs.replace(trace, spans=spans, note=note, cut=cut)

    def masker(self) -> Masker:
        """Masks what the spans hold under the names of secrets, wherever else it stands in the attempt."""
        found: list[str] = []
        for span in self._arriving.spans:
            for name, value in span.attributes.items():
                found += secret_values({name: _parsed(value)}, texts=False)
        return Masker(found)


def _long(value: Any) -> bool:
    """Whether it, or something in it, is a text that is not kept whole."""
    if isinstance(value, TraceSpan):
        return any(map(_long, (value.name, value.message, value.attributes)))
    if isinstance(value, dict):
        return any(_long(one) for pair in value.items() for one in pair)
    return (
        any(map(_long, value))
        if isinstance(value, list)
        else isinstance(value, str) and len(value) > KEPT_TEXT
    )


def _kept(span: TraceSpan) -> TraceSpan:
    attributes = {str(key)[:KEPT_TEXT]: _shown(str(key), value, 0) for key, value in span.attributes.items()}
    message = clip(span.message, KEPT_TEXT) if span.message else span.message
    return msgspec.structs.replace(
        span, name=clip(span.name, KEPT_TEXT), message=message, attributes=attributes
    )


def _shown(name: str, value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        return {str(key): _shown(str(key), item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_shown(name, item, depth + 1) for item in value]
    if isinstance(value, str):
        if secret_name(name):
            return MASK
        # Arguments are often JSON in a text.
        inner = _parsed(value)
        if not isinstance(inner, str) and secret_values({name: inner}):
            return _shown(name, inner, depth + 1)
        return value if len(value) <= KEPT_TEXT else f"{value[:KEPT_TEXT]}…"
    return value


def _parsed(value: Any) -> Any:
    """What a text holds where it is a JSON list or mapping."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return decode(value)
        except ValueError:
            return value
    return value


def _redacted(span: TraceSpan, patterns: tuple[str, ...]) -> TraceSpan:
    """A span without the values that the suite wants nobody to see (`redactAttributes`), also where its
    name or message repeats one."""

    def hidden(key: str) -> bool:
        return any(pattern in key.lower() for pattern in patterns)

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: REDACTED if hidden(key) else without(item) for key, item in value.items()}
        return [without(item) for item in value] if isinstance(value, list) else value

    secrets_of = {value for key, value in span.attributes.items() if isinstance(value, str) and hidden(key)}
    return msgspec.structs.replace(
        span,
        name=REDACTED if span.name in secrets_of else span.name,
        message=REDACTED if span.message in secrets_of else span.message,
        attributes=without(span.attributes),
    )


def _setting(name: str, usual: int, least: int, most: int) -> int:
    given = os.environ.get(f"PROMPTFOO_TRACE_FETCH_{name}", "")
    return min(max(int(given), least), most) if given.isdecimal() else usual
