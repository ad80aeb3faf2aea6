"""One chat completion as it arrives, streamed or whole."""

from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.agents.base import AgentError
from tui_eval.agents.http.answer_body import begins_as_events
from tui_eval.agents.http.error_answers import explain
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.loose_json import decode, one_line, text_of
from tui_eval.agents.models import finish_reasons
from tui_eval.agents.models.model_call import no_json
from tui_eval.events import Event, ReasoningDelta, TextDelta, ToolCallStarted, UsageReport
from tui_eval.guard import figures
from tui_eval.guard.text import whole_characters
from tui_eval.model import Usage

if TYPE_CHECKING:
    from tui_eval.agents.http.http_call import HttpCall


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _Custom(msgspec.Struct):
    """A call of a tool that takes a text (`type: custom`)."""

    name: str | None = None
    input: Any = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    custom: _Custom | None = None
    extra_content: Any = None


class _Delta(msgspec.Struct):
    content: Any = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    logprobs: Any = None
    index: int | None = None
    error: Any = None
    usage: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    model: str | None = None
    error: Any = None
    object: Any = None
    message: Any = None
    detail: Any = None
    error_code: Any = None

    @property
    def failed(self) -> bool:
        """Whether it says an error: under `error` (OpenAI, LiteLLM), in a choice (OpenRouter), or as an object
        that is one (vLLM, FastChat, a web framework's `detail`)."""
        if self.error:
            return True
        for choice in self.choices or ():
            if choice.error:
                return True
        if self.choices:
            return False
        return bool(self.object == "error" or self.message or self.detail or self.error_code)


_chunks = msgspec.json.Decoder(_Chunk)


_BLANKS = 100
"""Characters at the end of arguments that may be blank."""


class CompletedCall(msgspec.Struct):
    """A tool call put together from its pieces; `raw` are the arguments as the model wrote them, `extra` what the
    server wants back with the call (Gemini's signature). `custom`: the tool takes a text."""

    id: str
    name: str
    raw: str = ""
    extra: Any = None
    custom: bool = False

    @property
    def arguments(self) -> Any:
        """The arguments as JSON, or their text where they are not."""
        if self.custom:
            return self.raw
        if not self.raw.strip():
            return {}
        try:
            return decode(whole_characters(self.raw))
        except ValueError:
            return self.raw

    def message(self) -> dict[str, Any]:
        """The call as a part of the assistant's message."""
        if self.custom:
            return {"id": self.id, "type": "custom", "custom": {"name": self.name, "input": self.raw}}
        called = {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": self.raw},
        }
        return {**called, "extra_content": self.extra} if self.extra else called

    @property
    def is_whole(self) -> bool:
        """Whether the arguments so far are all that an object can have."""
        # Looked at for each piece that repeats the name: reading all of it each time would hold the loop up.
        return self.raw[-_BLANKS:].rstrip().endswith("}") and isinstance(self.arguments, dict)

    def is_followed_by(self, function: _Function) -> bool:
        """Whether a piece with a name cannot go on with this one: it has arguments, and these are whole."""
        return bool(function.name) and bool(text_of(function.arguments).strip()) and self.is_whole


class Completion:
    """Collects one completion and says what is new in each part of it. `keeps_filtered`: what a content filter
    left is an answer, as in promptfoo."""

    def __init__(self, turn: int, keeps_filtered: bool = False) -> None:
        self.turn = turn
        self.keeps_filtered = keeps_filtered
        self.parts: list[str] = []
        self.thoughts: list[str] = []
        self.old_call: dict[str, str] | None = None
        """A function call in the way before tools: its name and arguments."""
        self.calls: list[CompletedCall] = []
        self.usage: Usage | None = None
        self.written = 0
        """As `UsageReport.written`."""
        self.cost: float | None = None
        """What the server says that it took (USD)."""
        self.model: str | None = None
        self.finish_reason: str | None = None
        self.log_probs: list[float] | None = None
        self.refused = False
        self._places: dict[int, CompletedCall] = {}
        self._value: Any = None
        self._listed: list[Any] = []
        """Content that came as lists of parts, piece by piece."""
        self.wrote = False
        """Whether there is a text, be it empty: not so where the content is null."""
        self._done = False
        self._answered = False
        self._at_once = False
        self._reasoned = False

    @property
    def text(self) -> str:
        """The text so far."""
        return whole_characters("".join(self.parts))

    @property
    def value(self) -> Any:
        """Content that is no text; of parts all pieces, those that belong together as one."""
        return _put_together(self._listed) if self._listed else self._value

    @property
    def old_calls(self) -> list[CompletedCall]:
        """The call in the way before tools, where there is no other."""
        old = None if self.calls else self.old_call
        return [CompletedCall(f"call_{self.turn}", old["name"], old["arguments"])] if old else []

    def message(self) -> dict[str, Any]:
        """The assistant's message."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.calls:
            message["content"] = self.text or None
            message["tool_calls"] = [call.message() for call in self.calls]
        return message

    def sent_back(self, called: bool) -> dict[str, Any]:
        """The same as it goes into the conversation. `called`: earlier in this turn tools were; of such a turn DeepSeek
        wants the thoughts back, and of others it refuses them."""
        message = self.message()
        if self._reasoned and (self.calls or called):
            message["reasoning_content"] = "".join(self.thoughts)
        return message

    def check_said(self, who: str, called: bool = False) -> None:
        """Raises `AgentError` where neither a text came nor a call of a tool. `called`: earlier in this turn tools
        were."""
        if not (self.calls or self.old_call) and (
            why := finish_reasons.silence(self.text, self.finish_reason, called=called)
        ):
            raise AgentError(f"{who} {why}", answer=self.text, code="empty-answer", said=why)

    async def take(self, call: "HttpCall") -> AsyncIterator[list[Event]]:
        """Read an opened call to its end; yields the events of each piece that arrives.

        Raises:
            AgentError: the body is not a completion, says an error, or ends too early.
        """
        if "event-stream" not in call.headers.get("content-type", ""):
            body = await call.read()
            if not body.strip():
                raise call.unfinished("chat completion", "")
            if not begins_as_events(body.lstrip()[:10].decode("utf-8", "replace")):
                yield self._whole(body, call.url)
                self.check(call.url)
                return
            async for data in call.events(body):
                yield self.add(data, call.url)
        else:
            async for batch in call.batches():
                found: list[Event] = []
                try:
                    self._add_all(batch, call.url, found)
                except AgentError:
                    yield found
                    raise
                call.ended = self._done
                yield found
        if not self._done and self.finish_reason is None:
            raise call.unfinished("chat completion", self.text)
        self.check(call.url)

    def _add_all(self, batch: Iterable[str], url: str, found: list[Event]) -> None:
        """What the chunks mean that arrived at once; their text is one piece."""
        for data in batch:
            self._add(data, url, found)

    def check(self, who: str) -> None:
        """Raises `AgentError` where what came, though it is complete, is no answer of the model's."""
        if (
            why := finish_reasons.failure(self.finish_reason, filters_too=not self.keeps_filtered)
        ) is not None:
            raise finish_reasons.error(who, why, self.finish_reason, self.text)
        if not self._answered:
            raise AgentError(
                f"{who} answered without a message: it has no choice, or an empty one",
                code="empty-answer",
                said="no choice",
            )

    def add(self, item: bytes | str, url: str) -> list[Event]:
        """What one chunk means."""
        events: list[Event] = []
        self._add(item, url, events)
        return events

    def _add(self, item: bytes | str, url: str, events: list[Event]) -> None:
        """The same, after those of earlier chunks."""
        if self._done and not self._at_once:
            # How much comes after its end depends on how long one listens, and no client of OpenAI's does: but what
            # was spent is taken from wherever it is said.
            with suppress(msgspec.DecodeError, UnicodeError):
                if usage := _chunks.decode(item).usage:
                    self.usage, self.cost, self.written = usage_of(usage), cost_in(usage), written_in(usage)
            return
        if item == "[DONE]":
            self._done = True
            return
        try:
            chunk = _chunks.decode(item)
        except (msgspec.DecodeError, UnicodeError):
            if isinstance(item, str) and item.strip() == "[DONE]":
                self._done = True
                return
            chunk = self._loose_chunk(item, url)
        choices = chunk.choices
        if chunk.usage and (usage := usage_of(chunk.usage)) is not None:
            self.usage = usage
            self.cost, self.written = cost_in(chunk.usage), written_in(chunk.usage)
            events.append(
                UsageReport(usage, written=self.written)
            )  # known even where a time limit ends what comes after
        if chunk.error or not choices or len(choices) > 1 or choices[0].error:  # else it says none
            self._check_chunk(chunk, item, url)
        if chunk.model:
            self.model = chunk.model
        for choice in choices or ():
            if choice.index:
                continue
            if choice.finish_reason:
                self.finish_reason = choice.finish_reason
            if choice.logprobs:
                self._log_probs(choice.logprobs)
            if choice.usage and not chunk.usage and (usage := usage_of(choice.usage)) is not None:
                self.usage = usage  # Moonshot says it there
                events.append(UsageReport(usage))
            delta = choice.delta or choice.message
            if delta is not None:
                self._answered = True
                self._delta(delta, events)

    def _delta(self, delta: _Delta, events: list[Event]) -> None:
        if delta.reasoning_content is not None:
            self._reasoned = True
        if thought := delta.reasoning_content or delta.reasoning:
            self.thoughts.append(thought)
            events.append(ReasoningDelta(thought))
        content = delta.content
        if isinstance(content, str):
            self.wrote, text = True, content
            if text and self._listed:
                self._listed.append({"type": "text", "text": text})
        elif content is not None:
            self.wrote = True
            self._take_parts(content, events)
            text = _content(content) if content else ""
        else:
            text = ""
        if delta.refusal:
            self.refused = True
            text += delta.refusal
        if text:
            self.parts.append(text)
            if events and type(before := events[-1]) is TextDelta:
                before.text += text
            else:
                events.append(TextDelta(text))
        for piece in delta.tool_calls or ():
            self._tool_call(piece, events)
        if (called := delta.function_call) is not None:
            self.old_call = self.old_call or {"name": "", "arguments": ""}
            self.old_call["name"] += called.name or ""
            self.old_call["arguments"] += text_of(called.arguments)

    def _take_parts(self, content: Any, events: list[Event]) -> None:
        """Content that is no text; the parts of a stream's next piece go on with those before it (Mistral)."""
        if not isinstance(content, list) or self._at_once:
            self._value = content
        else:
            if content and not self._listed and (before := "".join(self.parts)):
                self._listed.append({"type": "text", "text": before})
            self._value = content
            self._listed += content
        if thought := _thought(content):
            self.thoughts.append(thought)
            events.append(ReasoningDelta(thought))

    def _tool_call(self, piece: _ToolCall, events: list[Event]) -> None:
        function, custom = piece.function or _Function(), piece.custom
        if custom is not None:
            function = _Function(custom.name, custom.input)
        known = self._begun(piece, function)
        if known is None:
            call_id = piece.id or f"call_{self.turn}_{len(self.calls)}"
            known = CompletedCall(call_id, function.name or "", custom=custom is not None)
            self._places[len(self.calls) if piece.index is None else piece.index] = known
            self.calls.append(known)
            events.append(ToolCallStarted(known.id, known.name))
        elif function.name and not known.name:
            known.name = function.name
        if piece.extra_content:
            known.extra = piece.extra_content
        if function.arguments is not None:
            known.raw += text_of(function.arguments)

    def _begun(self, piece: _ToolCall, function: _Function) -> CompletedCall | None:
        """The call that a piece goes on with; None: it begins one.

        Some servers leave out the index, Gemini's compatible end gives several calls the same, and some give calls
        the name of their tool as id.
        """
        if self._at_once:
            return None  # a message that was not streamed has its calls whole
        same = (
            next((call for call in reversed(self.calls) if call.id == piece.id), None) if piece.id else None
        )
        if piece.index is not None:
            known = self._places.get(piece.index)
            if same is not None and known is not None and known.id != piece.id and not function.name:
                return same
        elif piece.id:
            return None if same is not None and same.is_followed_by(function) else same
        else:
            known = self.calls[-1] if self.calls else None
        if known is None or not (function.name and known.name):
            return known  # an id alone begins none: vLLM made up one for each piece
        if piece.id == known.id:
            return None if known.is_followed_by(function) else known
        if function.name != known.name:
            return None
        if piece.id:  # also beside the name: what has begun has to end first
            return known if known.raw.strip() and not known.is_whole else None
        return None if known.is_followed_by(function) else known

    def _whole(self, body: bytes, url: str) -> list[Event]:
        """A server that did not stream."""
        try:
            value = decode(body)
        except ValueError:
            raise AgentError(
                f"the answer of {url} is not JSON: {one_line(body[:1000].decode('utf-8', 'replace'), 200)}",
                code="unreadable",
                said=f"no JSON: {one_line(body[:1000].decode('utf-8', 'replace'), 200)}",
                place=place_of(url),
            ) from None
        choices = value.get("choices") if isinstance(value, dict) else None
        if choices is not None and not choices and not value.get("error"):
            raise AgentError(
                f"{url} answered without a message: its list of choices is empty",
                code="empty-answer",
                said="no choice",
                place=place_of(url),
            )
        if not isinstance(value, dict) or not (choices or value.get("error")):
            raise AgentError(
                f"the answer of {url} is no chat completion: {one_line(text_of(value), 200)}",
                code="unreadable",
                said=f"no chat completion: {one_line(text_of(value), 200)}",
                place=place_of(url),
            )
        self._done = self._at_once = True
        return self.add(body, url)

    def _loose_chunk(self, item: bytes | str, url: str) -> _Chunk:
        """A chunk that is none as documented: numbers as text, say."""
        try:
            return msgspec.convert(decode(item), _Chunk, strict=False)
        except (ValueError, msgspec.ValidationError):
            raise no_json(item, url, self.text) from None

    def _check_chunk(self, chunk: _Chunk, item: bytes | str, url: str) -> None:
        """Raises `AgentError` where a chunk says an error."""
        if not chunk.failed:
            return
        wrong = chunk.error or next((choice.error for choice in chunk.choices or () if choice.error), None)
        told = text_of({"error": wrong}) if wrong else item
        said = explain(told if isinstance(told, str) else told.decode("utf-8", "replace"))
        for choice in chunk.choices or ():  # what it says beside the error is kept
            if not choice.index and (delta := choice.delta or choice.message) is not None:
                self._delta(delta, [])
        raise AgentError(f"{url} reported an error: {said}", answer=self.text, code="reported", said=said)

    def _log_probs(self, value: Any) -> None:
        content = value.get("content") if isinstance(value, dict) else None
        found = [item["logprob"] for item in content or () if isinstance(item, dict) and "logprob" in item]
        if found:
            self.log_probs = [*(self.log_probs or []), *found]


def usage_of(value: Any) -> Usage | None:
    """Usage as chat completions give it; cached tokens are part of the prompt's."""
    if not isinstance(value, dict):
        return None
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    if cached is None:
        cached = value.get("cached_tokens", value.get("prompt_cache_hit_tokens"))  # Moonshot, DeepSeek
    given = figures.count(value.get("prompt_tokens", value.get("input_tokens")), "input tokens")
    output = figures.count(value.get("completion_tokens", value.get("output_tokens")), "output tokens")
    if given is not None and output is not None:
        output += figures.thought_beside(value, given + output)
    return Usage(
        input_tokens=given, output_tokens=output, cached_tokens=figures.count(cached, "cached tokens")
    )


def written_in(usage: Any) -> int:
    """Tokens of the input that Anthropic wrote into its cache, as gateways hand them on (LiteLLM), by what they cost:
    see `UsageReport.written`."""
    created = usage.get("cache_creation_input_tokens") if isinstance(usage, dict) else None
    if not created:
        return 0
    counted = figures.count(created, "tokens written to the cache") or 0
    details = usage.get("prompt_tokens_details")
    kept = details.get("cache_creation_token_details") if isinstance(details, dict) else None
    longer = kept.get("ephemeral_1h_input_tokens") if isinstance(kept, dict) else None
    return counted + 3 * min(figures.count(longer, "tokens written to the cache for an hour") or 0, counted)


def cost_in(usage: Any) -> float | None:
    """What an answer cost where its usage says so: OpenRouter's, with what a provider whose key is one's own took
    beside it, and Perplexity's."""
    if not isinstance(usage, dict):
        return None
    said, details = usage.get("cost"), usage.get("cost_details")
    cost = _dollars(said.get("total_cost") if isinstance(said, dict) else said)
    if cost is None or not isinstance(details, dict) or usage.get("is_byok") is not True:
        return cost
    return figures.total_amount((cost, _dollars(details.get("upstream_inference_cost"))), "cost")


def _dollars(value: Any) -> float | None:
    """An amount; what is none there says nothing of what was spent."""
    return float(value) if type(value) in (int, float) and 0 <= value <= figures.MOST else None


def _content(value: Any) -> str:
    """Content that is a list of parts."""
    if isinstance(value, list):
        return "".join(
            part if isinstance(part, str) else str(part.get("text") or "") if isinstance(part, dict) else ""
            for part in value
        )
    return text_of(value)


def _thought(value: Any) -> str:
    """What the parts of a content say that was thought."""
    parts = value if isinstance(value, list) else ()
    thoughts = (
        part.get("thinking") for part in parts if isinstance(part, dict) and part.get("type") == "thinking"
    )
    return "".join(map(_content, filter(None, thoughts)))


def _put_together(pieces: list[Any], *, within: bool = True) -> list[Any]:
    """The parts of a content that came in pieces: one of the kind of the piece before is its next. `within`: also the
    parts of these (a thought has some), but none of theirs: they may be nested as deep as one likes."""
    whole: list[Any] = []
    for kind, group in groupby(pieces, _kind):
        run = list(group)
        said = [part[kind] for part in run] if kind else []
        if said and all(isinstance(one, str) for one in said):
            whole.append({**run[0], kind: whole_characters("".join(said))})
        elif within and said and all(isinstance(one, list) for one in said):
            whole.append({**run[0], kind: _put_together([*chain.from_iterable(said)], within=False)})
        else:
            whole += run
    return whole


_IN_PIECES = ("text", "thinking")


def _kind(part: Any) -> str:
    """The type of a part whose content comes in pieces, under that name; empty: it is another one, as an image's
    address is whole."""
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if kind in _IN_PIECES and kind in part else ""
