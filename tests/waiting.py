"""Waiting for what another thread or process does, without a fixed sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Come back when the condition holds; TimeoutError where it does not in time."""
    async with asyncio.timeout(seconds):
        # What is waited for happens in a database or another process: there is no event to await.
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
