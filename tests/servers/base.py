"""What all stand-in servers share: a thread with a loop, a log of requests, planned answers."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web


@dataclass
class Seen:
    """One request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    text: str
    body: Any


@dataclass
class Planned:
    """One answer. `status` other than 200 answers `body` (or an error object) with `headers`.

    `delay` is waited before anything is sent, `gap` between two chunks (seconds). `chunks` cuts the
    text in that many pieces. `plain` ignores the wish to stream. `cut` ends the stream in the
    middle, `hang` never ends it. `raw` is sent as it is.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    usage: tuple[int, int] | None = (12, 7)
    cached: int = 0
    finish: str | None = None
    model: str | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    raw: bytes | None = None
    delay: float = 0.0
    gap: float = 0.0
    chunks: int = 4
    plain: bool = False
    cut: bool = False
    hang: bool = False

    def pieces(self, text: str) -> list[str]:
        """The text cut into at most `chunks` pieces."""
        if not text:
            return []
        size = max(1, -(-len(text) // self.chunks))
        return [text[i : i + size] for i in range(0, len(text), size)]


class Server:
    """A web server in a thread. `plan` is used up answer by answer; then `default` decides."""

    default: Callable[[Seen], Planned]

    def __init__(
        self, *plan: Planned, default: Callable[[Seen], Planned] | None = None, log: bool = True
    ) -> None:
        self.plan: deque[Planned] = deque(plan)
        self.requests: list[Seen] = []
        self.disconnected = threading.Event()
        self.asked = threading.Event()
        self.log = log
        self.port = 0
        if default is not None:
            self.default = default  # type: ignore[method-assign]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self.port}"

    def routes(self, app: web.Application) -> None:
        """Add this server's routes."""
        raise NotImplementedError

    def default(self, seen: Seen) -> Planned:  # type: ignore[no-redef]
        """What is answered when nothing is planned."""
        return Planned(text="ok")

    async def see(self, request: web.Request) -> Seen:
        """Read and log a request."""
        text = await request.text()
        try:
            body = json.loads(text) if text else None
        except ValueError:
            body = None
        seen = Seen(request.method, request.path, request.headers, text, body)
        if self.log:
            self.requests.append(seen)
        self.asked.set()
        return seen

    def next(self, seen: Seen) -> Planned:
        """The answer to give now."""
        return self.plan.popleft() if self.plan else self.default(seen)

    async def begin(self, request: web.Request) -> tuple[Seen, Planned, web.Response | None]:
        """A request, the answer to give now, once its delay is over, and the refusal where that is planned."""
        seen = await self.see(request)
        planned = self.next(seen)
        if planned.delay:
            try:
                await asyncio.sleep(planned.delay)
            except asyncio.CancelledError:
                self.disconnected.set()
                raise
        return seen, planned, await self.refuse(planned) if planned.status != 200 else None

    async def refuse(self, planned: Planned) -> web.Response:
        """An answer with an error status."""
        body = planned.body if planned.body is not None else {"error": {"message": "mock error"}}
        if planned.raw is not None:
            return web.Response(body=planned.raw, status=planned.status, headers=planned.headers)
        return web.json_response(body, status=planned.status, headers=planned.headers)

    async def stream(
        self, request: web.Request, planned: Planned, content_type: str, parts: list[bytes]
    ) -> web.StreamResponse:
        """Send the parts one by one, noticing a client that goes away."""
        response = web.StreamResponse(headers={"Content-Type": content_type, **planned.headers})
        await response.prepare(request)
        try:
            if planned.cut:
                parts = parts[: max(1, len(parts) // 2)]
            if planned.gap or planned.hang:
                for part in parts[: 1 if planned.hang else len(parts)]:
                    await response.write(part)
                    await asyncio.sleep(planned.gap)
            else:
                await response.write(b"".join(parts))
            if planned.hang:
                await asyncio.sleep(3600)
            if planned.cut and request.transport is not None:
                request.transport.close()
                return response
            await response.write_eof()
        except (ConnectionResetError, asyncio.CancelledError):
            self.disconnected.set()
            raise
        return response

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop and self._stop and self._thread
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    def _serve(self, ready: threading.Event) -> None:
        asyncio.run(self.main(lambda: ready.set()))

    async def main(self, ready: Callable[[], object], port: int = 0) -> None:
        """Serve until stopped; `ready` is called when the port is known."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        app = web.Application(client_max_size=2**26)
        self.routes(app)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024)
        await site.start()
        listening = site._server
        assert isinstance(listening, asyncio.Server)
        self.port = listening.sockets[0].getsockname()[1]
        ready()
        await self._stop.wait()
        await runner.cleanup()
        if abort := getattr(listening, "abort_clients", None):
            abort()  # Python 3.13 tells of sockets that are left, and fails at it
        with suppress(TimeoutError):  # from 3.12 on it waits for what it closed
            await asyncio.wait_for(listening.wait_closed(), 5)
