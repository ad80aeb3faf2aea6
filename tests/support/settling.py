"""Waiting until the app has done all it has to do, in place of Textual's guess.

Textual's pilot compares the process's CPU time with the clock for at least a fiftieth of a second, twice
for each key: slow where the machine is idle, and wrong where it is busy, since a process that gets no
turn looks like one that has nothing to do.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

from textual._context import active_app
from textual.app import App
from textual.pilot import Pilot
from textual.timer import Timer

AT_MOST = 20.0
"""Seconds for what the app itself has to do."""
THREADS_AT_MOST = 3.0
"""Seconds for its threads: some tests hold one up on purpose."""
LASTING = ("tui-follower", "tui-watcher", "tui-shards")
"""Threads that only end with the app."""
_before_test: set[threading.Thread] = set()
"""Threads that were there when the test began."""
_in_executors: set[asyncio.Future[Any]] = set()
"""What the loop's own threads do: `asyncio.to_thread`, Textual's thread workers."""
SOON = 0.6
"""Seconds of a timer that `rested` waits for: the cursor's rest, a portion of news; not how long words stay."""


def waiter() -> Callable[..., Coroutine[Any, Any, None]]:
    """A replacement for `textual._wait.wait_for_idle`; threads that run already now are not waited for."""
    others = set(threading.enumerate())
    _before_test.clear()
    _before_test.update(others)

    async def settled(min_sleep: float = 0, max_sleep: float = 0) -> None:
        start = time.monotonic()
        app = active_app.get()
        quiet = 0
        while quiet < 3:
            await asyncio.sleep(0)
            passed = time.monotonic() - start
            if app._exception is not None or app._exit or passed > AT_MOST:
                return
            if _has_work(app):
                quiet = 0
            elif passed < THREADS_AT_MOST and (app._batch_count or _working_threads(others)):
                quiet = 0
                await asyncio.sleep(0.001)
            else:
                quiet += 1

    return settled


def watching_executors(
    begin: Callable[..., asyncio.Future[Any]],
) -> Callable[..., asyncio.Future[Any]]:
    """A replacement for a loop's `run_in_executor`: `rested` waits for what it begins. Its threads stay when their
    work is done, so that looking for threads finds nothing out."""
    _in_executors.clear()

    def run_in_executor(loop: asyncio.AbstractEventLoop, *given: Any) -> asyncio.Future[Any]:
        future = begin(loop, *given)
        _in_executors.add(future)
        future.add_done_callback(_in_executors.discard)
        return future

    return run_in_executor


async def rested(pilot: Pilot[Any]) -> None:
    """The app has settled, and what it does a moment after a key is done too, and what its threads read, however
    long that takes on a busy machine."""
    end = time.monotonic() + AT_MOST
    await pilot.pause()
    quiet = 0
    while quiet < 2:  # a thread that ended just now has left something to show
        quiet = 0 if _goes_on(pilot.app) else quiet + 1
        assert time.monotonic() < end, "a timer or a thread follows the other"
        if not quiet:
            await asyncio.sleep(0.01)
        await pilot.pause()


def _goes_on(app: App[Any]) -> bool:
    pumps = (app, *app.screen.walk_children(with_self=True))
    return (
        bool(_in_executors)
        or _working_threads(_before_test)
        or any(_runs_soon(timer) for pump in pumps for timer in list(pump._timers))
    )


def _runs_soon(timer: Timer) -> bool:
    task = timer._task
    return (
        timer._repeat == 0
        and timer._interval <= SOON
        and timer._active.is_set()
        and task is not None
        and not task.done()
    )


def _has_work(app: App[Any]) -> bool:
    """Whether something can go on at once; paints what is to be painted."""
    if asyncio.get_running_loop()._ready:  # type: ignore[attr-defined]
        return True
    screen = app.screen_stack[-1] if app.screen_stack else None
    if screen is None or not screen.is_mounted or app._batch_count:
        return False
    if (
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    ):
        screen._on_timer_update()
        return True
    return False


def _working_threads(others: set[threading.Thread]) -> bool:
    return any(
        thread.name.startswith("tui-") and thread.name not in LASTING and thread not in others
        for thread in threading.enumerate()
    )
