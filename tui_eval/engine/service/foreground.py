"""A run in the foreground (`tui-eval run`) that others can attach to, cancel and pause, as they can one
of the engine process: through a socket that the run's folder names."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.service.client import EngineError, runtime_folder
from tui_eval.engine.service.process import EngineServer, tell_where

_OPERATIONS = frozenset({"hello", "cancel", "pause", "step", "state"})


class _OneRun(EngineServer):
    """Serves a run that somebody else executes; starts and ends nothing of its own."""

    async def _operate(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["op"] not in _OPERATIONS:
            raise ValueError(
                "this run is executed in the foreground of another terminal: it takes no other work"
            )
        return await super()._operate(message)


def leave_threads(loop: asyncio.AbstractEventLoop) -> None:
    """Do not wait for the loop's threads when it closes: one may read what never answers (a pipe, a network's
    file system), which no signal reaches."""
    loop.set_default_executor(ThreadPoolExecutor(1))


@contextlib.asynccontextmanager
async def reachable(run: ActiveRun) -> AsyncIterator[None]:
    """While inside, other processes can cancel and pause the run. Where no socket can be made the run
    goes on without."""
    writer = run.writer
    try:
        socket = runtime_folder() / f"run-{os.getpid()}-{os.urandom(3).hex()}.sock"
        engine = _OneRun(socket)
        server = await asyncio.start_unix_server(engine._connected, str(socket))
    except (OSError, EngineError):
        yield
        return
    engine.runs[run.run_id] = run
    try:
        with contextlib.suppress(OSError):
            os.chmod(socket, 0o600)
            if writer is not None:
                tell_where(writer.folder, socket)
        yield
    finally:
        server.close()
        with contextlib.suppress(OSError):
            socket.unlink()
