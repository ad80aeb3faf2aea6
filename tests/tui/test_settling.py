"""What the waiting of all tests waits for."""

from __future__ import annotations

import asyncio
import threading

from textual.app import App, ComposeResult
from textual.widgets import Static

from tests.support.settling import rested


class Reading(App[None]):
    """Shows what a thread has read."""

    def __init__(self) -> None:
        super().__init__()
        self.may_end = threading.Event()

    def compose(self) -> ComposeResult:
        yield Static("")

    async def on_key(self) -> None:
        self.run_worker(self.read())

    async def read(self) -> None:
        await asyncio.to_thread(self.may_end.wait, 60)
        self.query_one(Static).update("read")


async def test_it_has_rested_when_what_to_thread_reads_is_shown() -> None:
    app = Reading()
    async with app.run_test() as pilot:
        await pilot.press("x")
        # Long after all that could be waited for has been looked at, if the thread were not.
        asyncio.get_running_loop().call_later(0.5, app.may_end.set)
        await rested(pilot)
        assert app.may_end.is_set()
        assert str(app.query_one(Static).render()) == "read"
