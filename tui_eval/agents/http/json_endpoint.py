"""Agents behind a JSON endpoint of somebody's own.

Without `body`, `{message, messages, session_id, metadata}` is posted. `reply`, `metadata`,
`tool_calls` and `usage` are dotted paths into the answer; without `reply`, the first of `reply`,
`answer`, `output`, `text`, `response` counts. Of a stream of events the texts are put together first: what is split
over two of them would be found by no assertion.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import time
from collections.abc import AsyncIterator, Collection
from contextlib import aclosing, suppress
from itertools import chain
from typing import Any

from tui_eval.agents.base import (
    OF_ITS_OWN_FORM,
    Agent,
    AgentError,
    Capabilities,
    RememberingSession,
    Request,
    Services,
    Session,
    SessionContext,
)
from tui_eval.agents.entry_options import Options
from tui_eval.agents.http import answer_body
from tui_eval.agents.http.error_answers import explain
from tui_eval.agents.http.filled_request import (
    address_of,
    check_path,
    filled,
    form_of,
    json_in,
    json_text,
    nearly_json,
)
from tui_eval.agents.http.http_call import HttpCall, HttpClient
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.http.json_reply import (
    MISSING,
    Paths,
    at_path,
    failure,
    is_aside,
    read_reply,
    spent_for,
    texts_beside,
    texts_of,
    words_beside_json,
    written_otherwise,
)
from tui_eval.agents.loose_json import broken_object, decode, encode, one_line, text_of
from tui_eval.agents.models import finish_reasons
from tui_eval.agents.programs.command import turn_body
from tui_eval.agents.promptfoo.provider_response import prompt_of
from tui_eval.config.project import AgentSpec
from tui_eval.events import Event, Finished, Note, TextDelta, UsageReport
from tui_eval.guard.spelling import close_to
from tui_eval.model import Reply, Usage

KNOWN = frozenset({"url", "method", "headers", "body", "reply", "metadata", "tool_calls", "usage"})
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")
"""What no words have: bytes that are no text, as those of an answer that is packed."""
_TAG = re.compile(r"<[A-Za-z!?/]")
"""How markup begins."""
_FORM = "application/x-www-form-urlencoded"
_NO_FORM = re.compile(r"\s*(?:\[|\{(?![{%]))")
"""How a body begins that is JSON, whatever type is said of it."""
_SAID_ALL = re.compile(rb"(?:\A|\n)data: ?\[DONE\]\s*\Z")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
_NAMED = re.compile(r"\{\{-?\s*([A-Za-z_]\w*)\s*(?:(\|\s*d(?:efault)?\b)|[|}.\[-])")
"""The name of a value that a template prints, and the filter that says what stands in its place where there is none."""
_ASKS = re.compile(r"\{\{(?:(?!\}\}).)*?\b(?:prompt|messages?)\b")
"""What is asked, wherever a template prints it (`{{ prompt ~ "!" }}`, `{{ q | default(prompt) }}`)."""
_ASKS_ON = re.compile(r"\{\{(?:(?!\}\}).)*?\b(?:messages|session_id|sessionId)\b|\{%")
"""What a template prints that tells a later message of the ones before it."""
_ALONE = "only this message was sent, nothing of those before it: what is sent has neither {{messages}} nor {{session_id}}"
_ALWAYS = ("prompt", "message", "messages", "session_id", "sessionId")
"""Values that there always are, of which another name may be a slip."""


def _is_json(name: str) -> bool:
    return name == "application/json" or name.endswith("+json")


def _is_stream(kind: str, text: str) -> bool:
    """Whether an answer of the type `kind` is a stream of events: it says so, or is one, whatever it is called."""
    return kind.strip().lower().startswith("text/event-stream") or answer_body.is_events(text)


def _markup(name: str) -> bool:
    """Whether this is the type of pages: HTML (which some servers call any text) and XML."""
    return name == "text/html" or name.endswith(("/xml", "+xml"))


async def _read_whole(call: HttpCall) -> bytes:
    """The body; that of a stream of events also where the connection stays open, or breaks, after its last one."""
    if not call.headers.get("content-type", "").strip().lower().startswith("text/event-stream"):
        return await call.read()
    body = bytearray()
    async with aclosing(call.chunks()) as chunks:
        async for chunk in chunks:
            body += chunk
            call.ended = _SAID_ALL.search(body[-64:]) is not None
    return bytes(body)


def _charset(call: HttpCall) -> str:
    """The encoding that an answer declares, where it is one of texts; else UTF-8."""
    named = _CHARSET.search(call.headers.get("content-type", ""))
    if named is not None:
        with suppress(LookupError, ValueError):
            b"a".decode(named[1], "replace")  # refuses what is unknown, and what is no encoding of texts
            if (found := codecs.lookup(named[1]).name) not in _OF_PYTHON:
                return found
    return "utf-8"


_OF_PYTHON = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape"})
"""Encodings that no server means; of the first a megabyte takes minutes, in which all cases stand still."""
_WESTERN = frozenset({"iso8859-1", "ascii", "cp1252"})
"""What frameworks declare of themselves, whatever they send."""


def _decoded(body: bytes, call: HttpCall) -> str:
    """A body as text. JSON and events are UTF-8 (RFC 8259 8.1, HTML 9.2.5): where they can be read as that, a
    western encoding that is declared is not meant."""
    charset = _charset(call)
    kind = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    if charset in _WESTERN and (_is_json(kind) or kind == "text/event-stream"):
        with suppress(UnicodeDecodeError):
            return body.decode()
    return body.decode(charset, "replace")


class HttpAgent(Agent):
    """One endpoint (promptfoo's HTTP provider is `promptfoo_http`)."""

    capabilities = OF_ITS_OWN_FORM
    keeps_pace = True

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, KNOWN)
        self.url = options.required("url", "http://localhost:9000/chat")
        source = spec.options
        self.method = str(source.get("method") or "POST").upper()
        self.headers = {str(name): str(value) for name, value in (source.get("headers") or {}).items()}
        self.body = source.get("body")
        self.json = json_in(self.body)
        sends_body = self.method not in ("GET", "HEAD")
        self.told_case = sends_body and self.body is None
        if self.body is not None and not sends_body:
            raise options.error(
                "body", f"a {self.method} has none: url takes what is asked, as ?q={{{{prompt}}}}"
            )
        said = text_of([self.url, list(self.headers.values()), self.body])
        found = _NAMED.findall(said) if "{%" not in said else []
        self.named = {name for name, _ in found}
        """The values that are filled in, as far as that can be told."""
        self.may_lack = {name for name, default in found if default}
        all_told = len(found) == said.count("{{") and not _ASKS.search(said)
        self.asks_by_names = all_told and (self.body is not None or not sends_body)
        """Whether nothing of what is asked is sent but by these names: the usual body has it, too."""
        self.asks_on = self.told_case or _ASKS_ON.search(said) is not None
        """Whether a later message goes out with what tells of the ones before it."""
        if (self.body is not None or not sends_body) and "{{" not in said and "{%" not in said:
            key = "body" if sends_body else "url"
            raise options.error(key, "says nothing of what is asked: write {{prompt}} where it belongs")
        self.paths = Paths(
            options.text("reply"), options.text("metadata"), options.text("tool_calls"), options.text("usage")
        )
        self.client = HttpClient(retries=spec.retries, pace=self.pace)

    @classmethod
    def reported(cls, spec: AgentSpec) -> Capabilities:
        named = {
            key for key in ("reply", "metadata", "tool_calls", "usage") if spec.options.get(key) is not None
        }
        if "reply" not in named:
            return cls.capabilities
        # A mapped answer reports what is mapped; the guide's metadata holds the counts too.
        told = "metadata" in named
        return Capabilities(
            tokens=told or "usage" in named,
            tools=told or "tool_calls" in named,
            metadata=told,
            guardrails=False,
            finish_reason=False,
        )

    def slips(self, known: Collection[str]) -> dict[str, str]:
        """Names that are filled in, are none of these values, and look like slips for one that there always is."""
        missing = sorted(self.named.difference(known, self.may_lack, _ALWAYS))
        return {name: close for name in missing if (close := close_to(name, _ALWAYS))}

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation; its id goes out with each turn."""
        return HttpSession(self, context)

    async def close(self) -> None:
        """Close connections."""
        await self.client.close()


class HttpSession(RememberingSession):
    """What was said so far goes in with each turn."""

    def __init__(self, agent: HttpAgent, context: SessionContext) -> None:
        super().__init__()
        self.agent = agent
        self.context = context
        self._told_alone = False

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """One request and its answer."""
        began = time.monotonic()
        agent = self.agent
        url, headers, body = self._request(request)
        if self.messages and not (agent.asks_on or self._told_alone):
            self._told_alone = True
            yield Note(_ALONE)
        call = agent.client.call(agent.method, url, body=body, headers=headers, turn=request.turn)
        parts: list[str] = []
        streamed = False
        try:
            async for event in call.open():
                yield event
            if call.headers.get("content-type", "").startswith("text/plain") and agent.paths.reply is None:
                # Plain text can be shown as it comes; JSON only when it is whole, and events, whose name comes first.
                begun = False
                decoder = codecs.getincrementaldecoder(_charset(call))("replace")
                async for chunk in call.chunks():
                    piece = decoder.decode(chunk)
                    parts.append(piece)
                    if not begun:
                        piece = "".join(parts)
                        if len(piece.lstrip()) < len("event:"):
                            continue
                        begun, streamed = True, not answer_body.begins_as_events(piece)
                    if piece and streamed:
                        yield TextDelta(piece)
            else:
                parts.append(_decoded(await _read_whole(call), call))
            await self._no_answer(call, "".join(parts))
            yield call.exchanged()
            events, reply = self._read("".join(parts), request, call.headers.get("content-type", ""))
            parts.clear()  # the reply has what is in it
        except (asyncio.CancelledError, AgentError) as error:
            if call.unreported:
                yield call.exchanged("failed")
            if isinstance(error, AgentError):
                error.answer = error.answer or "".join(parts) or call.heard
                kind = call.headers.get("content-type", "")
                error.spent = error.spent or self._spent("".join(parts), kind)
            raise
        finally:
            await call.close()
        for event in events:
            if not (streamed and isinstance(event, TextDelta)):
                yield event
        reply.latency_ms = round((time.monotonic() - began) * 1000, 1)
        self.remember(request, reply)
        yield Finished(reply)

    async def _no_answer(self, call: HttpCall, text: str) -> None:
        """Raises `AgentError` where nothing was answered, or where a page (a gateway's, or one to sign in) or a
        stream that reports an error stands in the place of an answer."""
        kind = call.headers.get("content-type", "")
        if not text.lstrip("\ufeff \t\r\n"):
            status = "" if call.status == 200 else f" (HTTP {call.status})"
            raise AgentError(
                f"the answer of {self.agent.url} is empty{status}",
                code="empty-answer",
                place=place_of(self.agent.url),
            )
        if _is_stream(kind, text) and (why := await answer_body.failure_in(text.encode())):
            raise AgentError(
                f"no answer from {self.agent.url}: {why}",
                answer=text,
                code="reported",
                said=why,
                place=place_of(self.agent.url),
            )

    def _read(self, text: str, request: Request, kind: str) -> tuple[list[Event], Reply]:
        """Raises `AgentError` also for what is neither JSON nor words (a page, an image, JSON that breaks off in the
        middle): it would be judged as the agent's words."""
        agent, turn = self.agent, request.turn
        name = kind.partition(";")[0].strip().lower()
        data: list[str] = []
        if _is_stream(kind, text):
            data = answer_body.all_data(f"{text}\n\n".encode())
            events = [one for one in data if one != answer_body.END]
            if len(events) > 1:
                return self._of_events(events, answer_body.END in data, turn)
            if events and finish_reasons.goes_on([_json(events[0])], answer_body.END in data):
                raise _broke_off(agent.url, "")
            text = events[0] if events else text  # one that says all is read as a body
        value: Any = text
        try:
            value = decode(text) if text.strip() else text
        except ValueError:
            self._check_words(text, name)
        try:
            found, reply = read_reply(value, turn, agent.paths, rows=request.schema is not None)
        except AgentError as error:
            raise AgentError(f"{agent.url}: {error}", answer=error.answer, like=error) from None
        self._check_ended([value], reply, done=answer_body.END in data)
        path = agent.paths.reply or ""
        if is_aside(value, path):
            said = f"{path} is a thought of the model's, not its answer"
            raise AgentError(
                f"{agent.url}: {said}", answer=reply.text, code="no-field", said=said, place=path
            )
        if others := texts_beside(value, path):
            found.append(Note(f"{path} is one of {others + 1} texts, and the others are not judged"))
        return found, reply

    def _check_ended(self, values: list[Any], reply: Reply, *, done: bool) -> None:
        """Say why an answer ended, where it is in the form of a known protocol. Raises `AgentError` where by that it
        has not, or is none."""
        url, wrong = self.agent.url, None
        reply.finish_reason = reason = finish_reasons.ended_by(values)
        # In a promptfoo suite what a filter left is an answer.
        if why := finish_reasons.failure(reason, filters_too=self.context.test is None):
            wrong = finish_reasons.error(url, why, reason, reply.text)
        elif finish_reasons.goes_on(values, done):
            wrong = _broke_off(url, reply.text)
        if wrong is not None:
            if reply.usage is not None or reply.cost is not None:
                wrong.spent = UsageReport(reply.usage or Usage(), reply.cost)
            raise wrong

    def _check_words(self, text: str, name: str) -> None:
        """Raises `AgentError` where a body of the type `name` that is no JSON is not what the agent said either."""
        url, is_json = self.agent.url, _is_json(name)

        def unlike(what: str, said: str, code: str = "unreadable") -> AgentError:
            return AgentError(what, answer=text, code=code, said=said, place=place_of(url))

        start = text.lstrip("\ufeff \t\r\n")
        why = broken_object(text) or written_otherwise(text)
        if why or (is_json and (start[:1] in '{["' or _BINARY.search(text))):
            said = "says that it is JSON and is not" if is_json else f"is {why}"
            raise unlike(f"the answer of {url} {said}: {one_line(text)}", f"no JSON: {one_line(text)}")
        if (beside := words_beside_json(text)) is not None:
            said = f"words beside its JSON: {one_line(beside, 120)}"
            raise unlike(f"the answer of {url} has {said}", said)
        if (_markup(name) or is_json or not name) and _TAG.match(start):
            what = "XML" if name.endswith("xml") else "a page"
            shown = explain(text)
            raise unlike(
                f"{url} answered with {what} instead of JSON or text: {shown}", shown, "page-instead"
            )
        if name and not is_json and not name.startswith("text/"):
            what = f"{name}, neither JSON nor text"
        elif "\0" in text:
            what = "bytes that are no text"
        else:
            return
        raise unlike(f"{url} answered with {what}: {one_line(text, 80)}", what)

    def _of_events(self, events: list[str], ended: bool, turn: int) -> tuple[list[Event], Reply]:
        """The texts of a stream's events as one: those at `reply`, else those of a chat completion.

        Raises:
            AgentError: nothing says which texts count, there are none, or the stream breaks off.
        """
        paths, url = self.agent.paths, self.agent.url
        values = [_json(data) for data in events]
        if paths.reply is None:
            if not any(isinstance(value, dict) and "choices" in value for value in values):
                raise AgentError(
                    f"{url} answered with a stream of events, and nothing says which text of each counts: "
                    f"{one_line(events[0], 120)}; name it with `reply` (json.delta, say), or have the endpoint "
                    "answer as a whole",
                    code="unreadable",
                    said=f"a stream of events: {one_line(events[0], 120)}",
                    place=place_of(url),
                )
            return _chat_completion(events, ended, turn, url)
        found, again = texts_of(values, paths.reply)
        texts = [text_of(text) for text in found if text is not MISSING and text is not None]
        self._check_end(events, values, found)
        if not texts:
            raise AgentError(
                f"no event of the stream that {url} answered with has {paths.reply}: {one_line(events[0], 120)}",
                code="no-field",
                said=one_line(events[0], 120),
                place=paths.reply,
            )
        whole = {"reply": "".join(texts), **self._facts(values)}
        listed = [_at(value, paths.tool_calls or "tool_calls") for value in values]
        if paths.tool_calls is None:
            usual = [_at(value, "toolCalls") for value in values]
            listed = [one if other is None else other for one, other in zip(usual, listed, strict=True)]
        whole["tool_calls"] = _calls_of(listed)
        told, reply = read_reply(whole, turn, Paths())
        self._check_ended(values, reply, done=ended)
        if again:
            told.append(
                Note(f"some events say again what {paths.reply} of those before them said: it counts once")
            )
        if any(texts_beside(value, paths.reply) for value in values):
            told.append(
                Note(f"{paths.reply} is one of several texts in an event, and the others are not judged")
            )
        return told, reply

    def _spent(self, text: str, kind: str) -> UsageReport | None:
        """What the events of a stream that is no answer say that it took."""
        if not _is_stream(kind, text):
            return None
        data = answer_body.all_data(f"{text}\n\n".encode())
        return spent_for(self._facts([_json(one) for one in data]), Paths())

    def _facts(self, values: list[Any]) -> dict[str, Any]:
        """What the events of a stream say beside the reply: of the same, the last one counts."""
        paths = self.agent.paths
        whole: dict[str, Any] = {}
        for name, path in (("metadata", paths.metadata), ("usage", paths.usage)):
            for value in values:
                if isinstance(one := _at(value, path or name), dict):
                    before = whole.get(name)
                    whole[name] = {**before, **one} if isinstance(before, dict) else one
                elif one is not None:
                    whole.setdefault(name, one)
        for name in ("cost", "model"):
            whole[name] = next(
                (one for value in reversed(values) if (one := _at(value, name)) is not None), None
            )
        return whole

    def _check_end(self, events: list[str], values: list[Any], found: list[Any]) -> None:
        """Raises `AgentError` where a stream says that it failed, or breaks off in an event. What goes wrong
        before more is said is a matter of the agent's steps."""
        url, reply = self.agent.url, self.agent.paths.reply
        spoke = max(
            (place for place, text in enumerate(found) if text not in (MISSING, None, "")), default=-1
        )
        answer = "".join(text_of(text) for text in found if text is not MISSING)
        for place, (data, value) in enumerate(zip(events, values, strict=True)):
            said = ""
            if why := broken_object(data) if isinstance(value, str) else "":
                said = f"an event is {why}: {one_line(data, 120)}"
            elif isinstance(value, dict) and place >= spoke:
                said = failure(value, found[place] if place == spoke else MISSING, reply)
                kind, name = (str(value.get(key)).lower() for key in ("type", "event"))  # Dify has the latter
                if not said and (kind in ("error", "run_error") or name == "error"):
                    said = explain(data)
                elif not said and kind == "response.failed" and (why := at_path(value, "response.error")):
                    said = explain(text_of({"error": why}))
            if said:
                raise AgentError(
                    f"no answer from {url}: {one_line(said)}",
                    answer=answer,
                    code="reported",
                    said=one_line(said),
                    place=place_of(url),
                )

    def _check_names(self, values: dict[str, Any]) -> None:
        """Raises `AgentError` where a name that is filled in is a slip, or nothing of what is asked would be sent: the
        answer would be one to something else."""
        agent = self.agent
        if not (missing := sorted(agent.named - values.keys())):
            return
        slips = agent.slips(values)
        if slips or (agent.asks_by_names and agent.named.isdisjoint(values)):
            name, meant = next(iter(slips.items()), (missing[0], ""))
            what = f"is {{{{{meant}}}}} meant?" if meant else "{{prompt}} is what is asked"
            said = f"{{{{{name}}}}}: there is no {name}; {what}"
            raise AgentError(said, code="bad-setting", said=said)

    def _request(self, request: Request) -> tuple[str, dict[str, str], bytes | None]:
        agent = self.agent
        standard = turn_body(request, self.context, self.messages)
        values = {
            **(request.vars or self.context.vars),
            "prompt": prompt_of(request),
            "message": standard["message"],
            "messages": standard["messages"],
            "session_id": self.context.session_id,
            "sessionId": self.context.session_id,
            "turn": request.turn,
            "model": self.context.model or agent.spec.model or "",
        }
        url = address_of(agent.url, values)
        check_path(agent.url, url)
        headers = {name: text_of(filled(item, values)) for name, item in agent.headers.items()}
        headers.update(self.context.trace_headers)
        if agent.method in ("GET", "HEAD"):
            self._check_names(values)
            return url, headers, None
        kind = next((one for name, one in headers.items() if name.lower() == "content-type"), "")
        if agent.json is not None:
            body = json_text(str(agent.body), agent.json, values)
        elif kind.strip().lower().startswith(_FORM) and (
            isinstance(agent.body, dict) or (isinstance(agent.body, str) and not _NO_FORM.match(agent.body))
        ):
            body = form_of(agent.body, values)
        else:
            body = standard if agent.body is None else filled(agent.body, values)
            if isinstance(agent.body, str) and isinstance(body, str):
                body = nearly_json(agent.body, values)
        self._check_names(values)
        if isinstance(body, str):
            return url, headers, body.encode("utf-8", "replace")
        return url, headers, None if body is None else encode(body)


def _calls_of(listed: list[Any]) -> list[Any]:
    """The calls that events list. Of one id there is one: the last event may have all of them once more, and another
    what came of one. A piece of a chat completion's call goes on with that of its index."""
    calls: dict[Any, Any] = {}
    begun: dict[int, dict[str, Any]] = {}
    for call in chain.from_iterable(one if isinstance(one, list) else [one] if one else [] for one in listed):
        known = call.get("id") if isinstance(call, dict) else None
        function, index = (
            (call.get("function"), call.get("index")) if isinstance(call, dict) else (None, None)
        )
        if isinstance(function, dict) and isinstance(index, int):
            if (before := begun.get(index)) is not None and not function.get("name"):
                before["arguments"] = text_of(before.get("arguments")) + text_of(function.get("arguments"))
                continue
            begun[index] = function = dict(function)
            call = {**call, "function": function}
        key = known if isinstance(known, str) else len(calls)
        calls[key] = {**calls[key], **call} if key in calls else call
    return list(calls.values())


def _broke_off(url: str, answer: str) -> AgentError:
    said = "ended before it was complete"
    return AgentError(
        f"the answer of {url} {said}", answer=answer, code="broke-off", said=said, place=place_of(url)
    )


def _at(value: Any, path: str) -> Any:
    found = at_path(value, path)
    return None if found is MISSING else found


def _json(data: str) -> Any:
    """An event's data; text where it is no JSON."""
    try:
        return decode(data)
    except ValueError:
        return data


def _chat_completion(events: list[str], ended: bool, turn: int, url: str) -> tuple[list[Event], Reply]:
    """What the pieces of a chat completion come to. Raises `AgentError` where that is no whole answer, or
    where it calls tools, which nobody here runs."""
    from tui_eval.agents.models.openai_stream import Completion  # imported late: few endpoints speak so

    completion = Completion(turn)
    for data in events:
        completion.add(data, url)
    if not ended and completion.finish_reason is None:
        raise _broke_off(url, completion.text)
    completion.check(url)
    if completion.calls or completion.old_call:
        raise AgentError(
            f"{url} answered with the stream of a chat completion that calls a tool: ask it as `type: openai`",
            answer=completion.text,
            code="unreadable",
            said="a chat completion that calls a tool",
            place=place_of(url),
        )
    completion.check_said(url)
    reply = Reply(turn=turn, text=completion.text, usage=completion.usage, model=completion.model)
    reply.finish_reason = completion.finish_reason
    return [TextDelta(reply.text)] if reply.text else [], reply
