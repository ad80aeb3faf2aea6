"""The app on a project on disk, with an engine of the test's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tests.support.live_run import FakeEngine
from tui_eval.tui.app import EvalApp


async def until(condition: Callable[[], Any], pilot: Pilot[Any] | None = None, seconds: float = 60.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    wait = 0.02
    while not condition():
        assert time.monotonic() < end, "waited too long"
        if pilot is not None:
            await pilot.pause()
        await asyncio.sleep(wait)
        wait = min(1.25 * wait, 0.05)  # a process that is waited for gets the processor


@asynccontextmanager
async def running_app(
    root: Path, size: tuple[int, int] = (80, 24), **options: Any
) -> AsyncIterator[tuple[Any, Pilot[Any]]]:
    """The app on a project, its suites read: yields (app, pilot). `notices` draws those over the screen."""
    engine: Any = options.pop("engine", None) or FakeEngine(root)
    notices = options.pop("notices", False)
    app = EvalApp([root], root=root, engine=engine, unicode=options.pop("unicode", True), **options)
    async with app.run_test(size=size, notifications=notices) as pilot:
        await until(lambda: not app.state.loading, pilot)
        await pilot.pause()
        yield app, pilot


def screen_text(app: EvalApp) -> str:
    """What is on the screen, as lines."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())
