"""What happens in attempts on a worker, gathered until the engine takes it: pieces of one text are joined, and what has
ended is not kept waiting."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

_LIVE = 0.15
"""Seconds for which live text is gathered."""
_TOGETHER = 0.002
"""Seconds in which what ends together goes together."""
_TEXTS = ("assistant", "reasoning")


class LoggedEvent(msgspec.Struct, array_like=True):
    """Something an attempt told its log: the method's name and what it was given. Beside those of `AttemptLog`:
    `done` (packed, mark), `cancelled` (packed, or nothing where it had not begun), `broken` (why), `frame` (name, bytes), `pace` (id,
    agent, requests a minute; no attempt's)."""

    ref: int
    what: str
    given: list[Any]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[LoggedEvent])


def events_of(body: bytes) -> list[LoggedEvent]:
    """What `EventLog.take` gave."""
    return _decoder.decode(body)


class EventLog:
    """The log (`AttemptLog`) of a worker's attempts. `folder` takes files until they are sent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._events: list[LoggedEvent] = []
        self._open: dict[int, LoggedEvent] = {}
        self._any = asyncio.Event()
        self._urgent = asyncio.Event()

    async def take(self) -> bytes:
        """Wait until something has happened, and a moment for more."""
        await self._any.wait()
        if not self._urgent.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LIVE):
                    await self._urgent.wait()
        await asyncio.sleep(_TOGETHER)
        taken, self._events = self._events, []
        self._open.clear()
        self._any.clear()
        self._urgent.clear()
        return _encoder.encode(taken)

    def now(self, ref: int, what: str, *given: Any) -> None:
        """Something that the engine waits for."""
        self._add(ref, what, *given)
        self._urgent.set()

    def _add(self, ref: int, what: str, *given: Any) -> LoggedEvent:
        event = LoggedEvent(ref, what, list(given))
        self._events.append(event)
        self._open.pop(ref, None)
        self._any.set()
        return event

    # `AttemptLog`

    def started(self, attempt_ref: int, at: float) -> None:
        self._add(attempt_ref, "started", at)

    def limit(self, attempt_ref: int, ends_at: float | None) -> None:
        self._add(attempt_ref, "limit", ends_at)

    def turn(self, attempt_ref: int, turn: int) -> None:
        self._add(attempt_ref, "turn", turn)

    def retrying(self, attempt_ref: int, detail: str) -> None:
        self._add(attempt_ref, "retrying", detail)

    def running_again(self, attempt_ref: int) -> None:
        self._add(attempt_ref, "running_again")

    def progress(self, attempt_ref: int, usage: tuple[int | None, int | None], tool_calls: int) -> None:
        self._add(attempt_ref, "progress", usage, tool_calls)

    def live(
        self, attempt_ref: int, kind: str, text: str, agent: str = "", name: str = "", call_id: str = ""
    ) -> None:
        before = self._open.get(attempt_ref)
        if before is not None and before.given[0] == kind and before.given[2] == agent:
            before.given[1] += text
            return
        event = self._add(attempt_ref, "live", kind, text, agent, name, call_id)
        if kind in _TEXTS:
            self._open[attempt_ref] = event
