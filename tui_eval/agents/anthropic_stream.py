"""One message of Anthropic's API as it arrives, streamed or whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from tui_eval.agents import finish_reasons
from tui_eval.agents.base import AgentError
from tui_eval.agents.http_answers import explain
from tui_eval.agents.wire import decode, one_line, text_of
from tui_eval.events import Event, ReasoningDelta, TextDelta, ToolCallStarted
from tui_eval.guard import figures
from tui_eval.model import Usage

if TYPE_CHECKING:
    from tui_eval.agents.http_call import Call

_SAID = ("text", "thinking", "redacted_thinking")
_LISTS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


class Answer:
    """Collects one message. `blocks` is its content as it goes back into the conversation. `keeps_filtered`: what
    the provider's classifiers left is an answer, as in promptfoo."""

    def __init__(self, keeps_filtered: bool = False) -> None:
        self.keeps_filtered = keeps_filtered
        self.blocks: list[dict[str, Any]] = []
        self.model: str | None = None
        self.stop_reason: str | None = None
        self._usage: dict[str, Any] = {}
        self._open: dict[int, tuple[dict[str, Any], list[str]]] = {}
        self._done = False
        self._begun = False

    @property
    def text(self) -> str:
        """The text so far, of blocks that are complete and those still open."""
        done = "".join(block["text"] for block in self.blocks if block.get("type") == "text")
        waiting = "".join(
            "".join(parts) for block, parts in self._open.values() if block.get("type") == "text"
        )
        return done + waiting

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The tool_use blocks."""
        return [block for block in self.blocks if block.get("type") == "tool_use"]

    @property
    def acted(self) -> bool:
        """Whether there is anything beside text and thoughts: calls of tools, also of the provider's own."""
        return any(block.get("type") not in _SAID for block in self.blocks)

    @property
    def usage(self) -> Usage | None:
        """Tokens; what was read from or written to the cache is part of the input."""
        if not self._usage:
            return None
        cached = figures.count(self._usage.get("cache_read_input_tokens"), "cached tokens")
        written = figures.count(self._usage.get("cache_creation_input_tokens"), "tokens written to the cache")
        given = figures.count(self._usage.get("input_tokens"), "input tokens")
        total = None if given is None else figures.total([given, cached, written], "input tokens")
        output = figures.count(self._usage.get("output_tokens"), "output tokens")
        return Usage(total, output, cached or None)

    def called(self, name: str) -> Any:
        """The arguments of the call of a tool; None where it was not called."""
        return next((block["input"] for block in self.calls if block["name"] == name), None)

    async def take(self, call: Call) -> AsyncIterator[list[Event]]:
        """Read an opened call to its end; yields the events of each piece that arrives.

        Raises:
            AgentError: the body is not a message, says an error, or ends too early.
        """
        if "event-stream" not in call.headers.get("content-type", ""):
            yield self._whole(await call.read(), call.url)
            self._check(call.url)
            return
        async for data in call.events():
            event = self._event(self._decoded(data, call.url), call.url)
            if event is not None:
                yield [event]
        if not self._done and self.stop_reason is None:
            raise AgentError(call.unfinished("message"), answer=self.text)
        self._check(call.url)

    def _check(self, url: str) -> None:
        if (why := finish_reasons.failure(self.stop_reason, filters_too=not self.keeps_filtered)) is not None:
            raise AgentError(f"{url} {why}", answer=self.text)
        if not self._begun:
            raise AgentError(f"{url} answered without a message")

    def _event(self, value: dict[str, Any], url: str) -> Event | None:
        kind = value.get("type")
        self._begun = self._begun or kind in ("message_start", "content_block_start", "content_block_delta")
        if kind == "content_block_delta":
            return self._delta(value)
        if kind == "content_block_start":
            block = value.get("content_block")
            block = dict(block) if isinstance(block, dict) else {}
            self._open[value.get("index", 0)] = (block, [])
            if block.get("type") == "tool_use":
                return ToolCallStarted(text_of(block.get("id")), text_of(block.get("name")))
        elif kind == "content_block_stop":
            self._close(value.get("index", 0))
        elif kind == "message_start":
            message = value.get("message") or {}
            self.model = message.get("model")
            self._usage.update(message.get("usage") or {})
        elif kind == "message_delta":
            self.stop_reason = (value.get("delta") or {}).get("stop_reason")
            told = value.get("usage") or {}
            self._usage.update({key: count for key, count in told.items() if count is not None})
        elif kind == "message_stop":
            self._done = True
        elif kind == "error" or value.get("error"):
            raise self._failure(value, url)
        return None

    def _delta(self, value: dict[str, Any]) -> Event | None:
        delta = value.get("delta") or {}
        kind = delta.get("type")
        opened = self._open.setdefault(value.get("index", 0), ({"type": "text"}, []))
        if kind == "signature_delta":
            opened[0]["signature"] = delta.get("signature")
            return None
        piece = text_of(delta.get(_LISTS.get(str(kind), "")))
        if not piece:
            return None
        opened[1].append(piece)
        if kind == "text_delta":
            return TextDelta(piece)
        return ReasoningDelta(piece) if kind == "thinking_delta" else None

    def _close(self, index: int) -> None:
        block, parts = self._open.pop(index, ({}, []))
        text = "".join(parts)
        if block.get("type") in ("text", "thinking"):
            key = block["type"]
            block[key] = text_of(block.get(key)) + text
            if key == "text" and not block["text"]:
                return
        elif block.get("type") == "tool_use":
            try:
                block["input"] = decode(text) if text.strip() else block.get("input") or {}
            except ValueError:
                block["input"] = text
        if block:
            self.blocks.append(block)

    def _whole(self, body: bytes, url: str) -> list[Event]:
        value = self._decoded(body, url)
        self._begun = True
        if value.get("type") == "error" or value.get("error"):
            raise self._failure(value, url)
        if not isinstance(value.get("content"), list):
            raise AgentError(f"the answer of {url} is no message: {one_line(text_of(value), 200)}")
        self.blocks = [block for block in value["content"] if isinstance(block, dict)]
        self.model, self.stop_reason = value.get("model"), value.get("stop_reason")
        self._usage = value.get("usage") or {}
        events: list[Event] = []
        for block in self.blocks:
            if block.get("type") == "thinking":
                events.append(ReasoningDelta(text_of(block.get("thinking"))))
            elif block.get("type") == "text":
                block["text"] = text_of(block.get("text"))
                events.append(TextDelta(block["text"]))
        return events

    def _decoded(self, item: bytes | str, url: str) -> dict[str, Any]:
        try:
            value = decode(item)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            said = one_line(item[:200] if isinstance(item, str) else item[:200].decode("utf-8", "replace"))
            raise AgentError(f"{url} sent something that is not JSON: {said}", answer=self.text)
        return value

    def _failure(self, value: dict[str, Any], url: str) -> AgentError:
        return AgentError(f"{url} reported an error: {explain(text_of(value))}", answer=self.text)
