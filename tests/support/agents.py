"""Making agents and talking to them, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tui_eval.agents import Agent, Request, Services, SessionContext, create
from tui_eval.agents.http.http_call import HttpCall, HttpClient
from tui_eval.config.project import AgentSpec
from tui_eval.events import Event, Finished
from tui_eval.guard.trust import Trust
from tui_eval.model import Reply


def services(root: Path | str = "/", trusted: bool = True, **more: Any) -> Services:
    """Services for a project at `root`."""
    return Services(root=Path(root), trust=Trust(trusted), **more)


def agent(kind: str, root: Path | str = "/", **options: Any) -> Agent:
    """An agent of a type with options; `model`, `retries`, `live` are the entry's own."""
    own = {key: options.pop(key) for key in ("model", "retries", "live") if key in options}
    spec = AgentSpec("it", kind, options, base=str(root), **own)  # type: ignore[arg-type]
    return create(spec, services(root))


def context(attempt: int = 1, **more: Any) -> SessionContext:
    """A context for one attempt."""
    return SessionContext(case_id="s::c", attempt=attempt, session_id=f"session-{attempt}", **more)


class InPieces:
    """aiohttp's answer with a body of which the next piece is always there."""

    status = 200
    reason = "OK"

    def __init__(self, pieces: Callable[[], list[bytes]], headers: Mapping[str, str]) -> None:
        self._pieces = pieces
        self.raw_headers = tuple((name.encode(), value.encode()) for name, value in headers.items())
        self._left: Iterator[bytes] | None = None

    @property
    def content(self) -> InPieces:
        return self

    async def read(self, size: int) -> bytes:
        if self._left is None:
            self._left = iter([piece for piece in self._pieces() if piece])
        return next(self._left, b"")

    async def request(self, *_: object, **__: object) -> InPieces:
        """As a session of aiohttp's: itself is the answer to whatever is asked."""
        return self


async def opened_in_pieces(
    pieces: Callable[[], list[bytes]], headers: Mapping[str, str] | None = None
) -> HttpCall:
    """A call whose answer is a body in these pieces."""
    client = HttpClient()
    client.sessions[False] = InPieces(pieces, headers or {})  # type: ignore[assignment]
    call = client.call("GET", "http://127.0.0.1:9")
    async for _ in call.open():
        pass
    return call


async def talk(it: Agent, *turns: str | Request, **more: Any) -> tuple[list[Event], list[Reply]]:
    """Send turns one after the other in one session; all events and the replies."""
    session = await it.open(context(**more))
    events: list[Event] = []
    for number, turn in enumerate(turns, 1):
        request = turn if isinstance(turn, Request) else Request(number, turn)
        async for event in session.send(request):
            events.append(event)
    await session.close()
    return events, [event.reply for event in events if isinstance(event, Finished)]


def kinds(events: list[Event]) -> list[str]:
    """The names of events, repetitions in a row dropped."""
    found: list[str] = []
    for event in events:
        name = type(event).__name__
        if not found or found[-1] != name:
            found.append(name)
    return found


def of(events: list[Event], kind: type) -> list[Any]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]
