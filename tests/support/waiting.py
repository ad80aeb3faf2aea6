"""Waiting for what another thread or process does, without a fixed sleep; and clocks that are put forward, for
what would take long or hang on how busy the machine is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Come back when the condition holds; TimeoutError where it does not in time."""
    async with asyncio.timeout(seconds):
        # What is waited for happens in a database or another process: there is no event to await.
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def connected(socket: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a process that is coming up: its socket is there a moment before anybody listens."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await asyncio.open_unix_connection(socket)
            except (FileNotFoundError, ConnectionRefusedError):
                await asyncio.sleep(0.02)


class Clock:
    """This process' monotonic clocks, which `forward` puts forward; the loop's time limits strike then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead = 0.0
        monotonic, perf_counter = time.monotonic, time.perf_counter
        monkeypatch.setattr(time, "monotonic", lambda: monotonic() + self._ahead)
        monkeypatch.setattr(time, "perf_counter", lambda: perf_counter() + self._ahead)

    def forward(self, seconds: float) -> None:
        """Now is that much later."""
        self._ahead += seconds
