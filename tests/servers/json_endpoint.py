"""An endpoint of somebody's own: JSON in, JSON or text out."""

from __future__ import annotations

from aiohttp import web

from tests.servers.base import Planned, Seen, Server


class JsonServer(Server):
    """Answers any path. `Planned.body` is sent as JSON, `text` as plain text."""

    def default(self, seen: Seen) -> Planned:
        """Repeat the message."""
        message = (seen.body or {}).get("message", "") if isinstance(seen.body, dict) else ""
        return Planned(body={"reply": f"You said: {message}"})

    def routes(self, app: web.Application) -> None:
        """Every path and method."""
        app.router.add_route("*", "/{path:.*}", self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One answer."""
        _, planned, refusal = await self.begin(request)
        if refusal is not None:
            return refusal
        if planned.raw is not None:
            return web.Response(body=planned.raw, headers=planned.headers)
        if planned.body is not None:
            return web.json_response(planned.body, headers=planned.headers)
        return web.Response(text=planned.text, headers=planned.headers)
