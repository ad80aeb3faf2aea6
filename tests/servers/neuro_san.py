"""A neuro-san server: streaming_chat as JSON lines."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.servers.base import Planned, Seen, Server


class NeuroSanServer(Server):
    """`Planned.raw` is a whole stream; else `text` is answered in one AGENT_FRAMEWORK line.

    `Planned.body`, a mapping, is laid over that line's response (`sly_data`, `structure`).
    `chat_context` numbers the answers, as the driver vectors do.
    """

    def __init__(self, *plan: Planned, **options: Any) -> None:
        super().__init__(*plan, **options)
        self.answered = 0

    def default(self, seen: Seen) -> Planned:
        """Repeat the message."""
        return Planned(text=f"You said: {seen.body['user_message'].get('text')}")

    def routes(self, app: web.Application) -> None:
        """The chat and the health check."""
        app.router.add_post("/api/v1/{agent:.+}/streaming_chat", self.chat)
        app.router.add_get("/healthz", self.health)

    async def health(self, request: web.Request) -> web.Response:
        """Say that all is well."""
        return web.json_response(
            {"service": "neuro-san.Agent", "status": "ok", "versions": {"neuro-san": "0.6.98"}}
        )

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """One chat request."""
        _, planned, refusal = await self.begin(request)
        if refusal is not None:
            return refusal
        if planned.raw is not None:
            lines = planned.raw.splitlines(keepends=True) or [b""]
            return await self.stream(request, planned, "application/json-lines", lines)
        self.answered += 1
        message: dict[str, Any] = {
            "type": "AGENT_FRAMEWORK",
            "text": planned.text,
            "chat_context": {"chat_histories": [{"n": self.answered}]},
            **(planned.body or {}),
        }
        line = json.dumps({"response": message}).encode() + b"\n"
        return await self.stream(request, planned, "application/json-lines", [line])
