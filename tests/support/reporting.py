"""For a program on a terminal: tells, in a file, how many keys the app has dealt with."""

from __future__ import annotations

import asyncio
import os

from tests.support.settling import waiter
from tui_eval.tui.app import EvalApp


def report_keys(path: str) -> None:
    """From now on the file at `path` grows by a byte for each key that the app has dealt with, once it
    has settled."""
    handled = EvalApp.done_with_key
    told = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    untold = 0
    telling: asyncio.Task[None] | None = None

    async def tell() -> None:
        # One at a time: what waits for the app to settle is itself at work.
        nonlocal untold
        settled = waiter()
        while untold:
            count = untold
            await settled()
            os.write(told, b"." * count)
            untold -= count

    async def reporting(app: EvalApp, number: int) -> None:
        nonlocal untold, telling
        if number == app.keys_taken and app.handling:
            untold += 1
            if telling is None or telling.done():
                telling = asyncio.create_task(tell())
        await handled(app, number)

    EvalApp.done_with_key = reporting  # type: ignore[method-assign]
