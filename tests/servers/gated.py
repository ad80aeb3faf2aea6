"""An agent whose answers a test lets through, and that counts what it was asked."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

from aiohttp import web

from tests.servers.base import Planned
from tests.servers.openai import OpenAIServer


class GatedServer(OpenAIServer):
    """Repeats `allowed` messages and keeps the others waiting; counts how often each was asked and answered, and
    keeps when (`time.monotonic`). The first `refusals` of each message are told to come again at once."""

    def __init__(self, allowed: int = 0, refusals: int = 0) -> None:
        super().__init__(log=False)
        self.allowed = allowed
        self.refusals = refusals
        self.asks: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.arrivals: list[float] = []

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """One answer, when it is its turn."""
        self.arrivals.append(time.monotonic())
        message = (await request.json())["messages"][-1]["content"]
        self.asks[message] += 1
        if self.asks[message] <= self.refusals:
            return await self.refuse(Planned(status=429, headers={"Retry-After": "0"}))
        # Another thread opens the gate.
        while self.answers.total() >= self.allowed:
            await asyncio.sleep(0.02)
            if request.transport is None or request.transport.is_closing():  # who asked has been killed
                return web.Response()
        self.answers[message] += 1
        return await super().complete(request)
