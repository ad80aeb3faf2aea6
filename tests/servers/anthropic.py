"""An Anthropic messages server."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.servers.base import Planned, Seen, Server


class AnthropicServer(Server):
    """Unplanned, it repeats the last message."""

    def default(self, seen: Seen) -> Planned:
        """Repeat the last message."""
        last = seen.body["messages"][-1]["content"] if seen.body else ""
        return Planned(text=f"You said: {last}")

    def routes(self, app: web.Application) -> None:
        """The messages API."""
        app.router.add_post("/v1/messages", self.message)

    async def message(self, request: web.Request) -> web.StreamResponse:
        """One message."""
        seen, planned, refusal = await self.begin(request)
        if refusal is not None:
            return refusal
        body = seen.body or {}
        model = planned.model or body.get("model", "mock")
        if planned.raw is not None:
            return await self.stream(request, planned, "text/event-stream", [planned.raw])
        if planned.plain or not body.get("stream"):
            return web.json_response(whole(planned, model))
        parts = [
            f"event: {part['type']}\ndata: {json.dumps(part)}\n\n".encode() for part in pieces(planned, model)
        ]
        return await self.stream(request, planned, "text/event-stream", parts)


def _finish(planned: Planned) -> str:
    return planned.finish or ("tool_use" if planned.tool_calls else "end_turn")


def _usage(planned: Planned) -> dict[str, int]:
    prompt, completion = planned.usage or (0, 0)
    return {
        "input_tokens": prompt - planned.cached,
        "cache_read_input_tokens": planned.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": completion,
    }


def whole(planned: Planned, model: str) -> dict[str, Any]:
    """An answer in one piece."""
    content: list[dict[str, Any]] = []
    if planned.reasoning:
        content.append({"type": "thinking", "thinking": planned.reasoning, "signature": "s1"})
    if planned.text:
        content.append({"type": "text", "text": planned.text})
    for index, (name, arguments) in enumerate(planned.tool_calls):
        content.append({"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": arguments})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": _finish(planned),
        "usage": _usage(planned),
    }


def pieces(planned: Planned, model: str) -> list[dict[str, Any]]:
    """An answer as the events of the stream."""
    usage = _usage(planned)
    start = {
        **whole(planned, model),
        "content": [],
        "stop_reason": None,
        "usage": {**usage, "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    index = 0

    def block(opening: dict[str, Any], deltas: list[dict[str, Any]]) -> None:
        nonlocal index
        events.append({"type": "content_block_start", "index": index, "content_block": opening})
        events.extend({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})
        index += 1

    if planned.reasoning:
        thoughts: list[dict[str, Any]] = [
            {"type": "thinking_delta", "thinking": piece} for piece in planned.pieces(planned.reasoning)
        ]
        block(
            {"type": "thinking", "thinking": "", "signature": ""},
            [*thoughts, {"type": "signature_delta", "signature": "s1"}],
        )
    if planned.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in planned.pieces(planned.text)]
        block({"type": "text", "text": ""}, deltas)
    for number, (name, arguments) in enumerate(planned.tool_calls):
        text = json.dumps(arguments)
        half = len(text) // 2
        block(
            {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}},
            [{"type": "input_json_delta", "partial_json": part} for part in ("", text[:half], text[half:])],
        )
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": _finish(planned), "stop_sequence": None},
            "usage": {"output_tokens": usage["output_tokens"]},
        }
    )
    events.append({"type": "message_stop"})
    return events
