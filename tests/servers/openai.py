"""A chat-completions server: streams, tool calls, usage, errors, slowness, as planned."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.servers.base import Planned, Seen, Server


class OpenAIServer(Server):
    """`base` is the base URL that clients are given. Unplanned, it repeats the last message."""

    models_served: tuple[str, ...] | list[str] = ("only-model",)

    @property
    def base(self) -> str:
        """The base URL, ending in /v1."""
        return f"{self.url}/v1"

    def default(self, seen: Seen) -> Planned:
        """Repeat the last message."""
        last = seen.body["messages"][-1]["content"] if seen.body else ""
        return Planned(text=f"You said: {last}")

    def routes(self, app: web.Application) -> None:
        """Chat completions under /v1 and, for odd base URLs, without it."""
        app.router.add_post("/v1/chat/completions", self.complete)
        app.router.add_post("/chat/completions", self.complete)
        app.router.add_get("/v1/models", self.models)

    async def models(self, request: web.Request) -> web.Response:
        """The models that are served; one unless a test names others."""
        data = [{"id": name, "object": "model"} for name in self.models_served]
        return web.json_response({"object": "list", "data": data})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """One chat completion."""
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
            b"data: " + json.dumps(part).encode() + b"\n\n"
            for part in pieces(planned, model, bool((body.get("stream_options") or {}).get("include_usage")))
        ]
        return await self.stream(request, planned, "text/event-stream", [*parts, b"data: [DONE]\n\n"])


def usage_of(planned: Planned) -> dict[str, Any]:
    """The usage object of an answer."""
    prompt, completion = planned.usage or (0, 0)
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
    if planned.cached:
        usage["prompt_tokens_details"] = {"cached_tokens": planned.cached}
    return usage


def calls_of(planned: Planned) -> list[dict[str, Any]]:
    """The tool calls of an answer."""
    return [
        {
            "id": f"call_{i}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for i, (name, arguments) in enumerate(planned.tool_calls)
    ]


def finish_of(planned: Planned) -> str:
    """Why the answer ended."""
    return planned.finish or ("tool_calls" if planned.tool_calls else "stop")


def whole(planned: Planned, model: str) -> dict[str, Any]:
    """An answer in one piece."""
    message: dict[str, Any] = {"role": "assistant", "content": planned.text or None}
    if planned.reasoning:
        message["reasoning_content"] = planned.reasoning
    if planned.tool_calls:
        message["tool_calls"] = calls_of(planned)
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_of(planned)}],
    }
    if planned.usage:
        answer["usage"] = usage_of(planned)
    return answer


def pieces(planned: Planned, model: str, with_usage: bool) -> list[dict[str, Any]]:
    """An answer in chunks."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in planned.pieces(planned.reasoning)]
    deltas += [{"content": piece} for piece in planned.pieces(planned.text)]
    for index, call in enumerate(calls_of(planned)):
        arguments = call["function"]["arguments"]
        half = len(arguments) // 2
        first = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
        deltas.append({"tool_calls": [first]})
        for piece in (arguments[:half], arguments[half:]):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": model}
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish_of(planned)}]})
    if with_usage and planned.usage:
        chunks.append({**head, "choices": [], "usage": usage_of(planned)})
    return chunks
