"""A nao backend: sign-in, /api/test/run, /api/agent, as nao-core 0.3.29 answers."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from tests.servers.base import Planned, Seen, Server


class NaoServer(Server):
    """Knows one user. `Planned.body` is the whole answer of /api/test/run; `raw` that of /api/agent.

    `tokens` are the sessions that are valid; taking one away makes the next call a 401.
    """

    email = "a@b.co"
    password = "secret-password"

    def __init__(self, *plan: Planned, **options: Any) -> None:
        super().__init__(*plan, **options)
        self.tokens: set[str] = set()
        self.sign_ins = 0
        self.codes: set[str] = set()

    def default(self, seen: Seen) -> Planned:
        """An answer without a query."""
        body: dict[str, Any] = {
            "text": f"You asked: {seen.body['prompt']}",
            "toolCalls": [],
            "usage": {"inputTotalTokens": 100, "outputTotalTokens": 20, "totalTokens": 120},
            "cost": {},
            "finishReason": "stop",
            "durationMs": 3,
        }
        return Planned(body=body)

    def routes(self, app: web.Application) -> None:
        """The endpoints that the command line of nao uses."""
        app.router.add_post("/api/auth/sign-in/email", self.sign_in)
        app.router.add_get("/cli-login", self.approve)
        app.router.add_post("/api/cli-auth/token", self.exchange)
        app.router.add_post("/api/test/run", self.run)
        app.router.add_post("/api/agent", self.agent)
        app.router.add_post("/api/trpc/chat.stop", self.stop)

    async def sign_in(self, request: web.Request) -> web.Response:
        """Give a token for the right password."""
        seen = await self.see(request)
        self.sign_ins += 1
        if (seen.body or {}).get("email") != self.email or seen.body.get("password") != self.password:
            body = {"message": "Invalid email or password", "code": "INVALID_EMAIL_OR_PASSWORD"}
            return web.json_response(body, status=401)
        token = f"token-number-{self.sign_ins}"
        self.tokens.add(token)
        answer = web.json_response({"redirect": False, "token": token, "user": {"email": self.email}})
        answer.set_cookie("better-auth.session_token", f"{token}.signature")
        return answer

    async def approve(self, request: web.Request) -> web.Response:
        """What the page does when the person approves: back to the terminal's callback, with a code."""
        code = f"code-{len(self.codes)}-{self.sign_ins}"
        self.codes.add(code)
        port, state = request.query["port"], request.query["state"]
        raise web.HTTPFound(f"http://127.0.0.1:{port}/callback?code={code}&state={state}")

    async def exchange(self, request: web.Request) -> web.Response:
        """Give a token for a code, once."""
        seen = await self.see(request)
        if seen.body["code"] not in self.codes:
            return web.json_response({"error": "Invalid or expired authorization code"}, status=400)
        self.codes.remove(seen.body["code"])
        self.sign_ins += 1
        token = f"token-number-{self.sign_ins}"
        self.tokens.add(token)
        return web.json_response({"token": token})

    def allowed(self, request: web.Request) -> bool:
        """Whether the request carries a valid token."""
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        return kind == "Bearer" and token in self.tokens

    async def run(self, request: web.Request) -> web.StreamResponse:
        """Run a test."""
        seen = await self.see(request)
        if not self.allowed(request):
            return web.json_response({"error": "Unauthorized"}, status=401)
        planned = self.next(seen)
        if planned.delay:
            await asyncio.sleep(planned.delay)
        if planned.status != 200:
            return await self.refuse(planned)
        return web.json_response(planned.body)

    async def agent(self, request: web.Request) -> web.StreamResponse:
        """Stream a chat."""
        seen = await self.see(request)
        if not self.allowed(request):
            return web.json_response({"error": "Unauthorized"}, status=401)
        planned = self.next(seen)
        if planned.status != 200:
            return await self.refuse(planned)
        return await self.stream(request, planned, "text/event-stream", [planned.raw or b"data: [DONE]\n\n"])

    async def stop(self, request: web.Request) -> web.Response:
        """Stop a chat."""
        await self.see(request)
        return web.json_response({"result": {}})
