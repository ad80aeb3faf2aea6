"""The engine as a process of its own: runs outlive the terminal that asked for them.

Spoken to through a unix socket, one JSON object a line: `{"id", "op", …}` answered by
`{"id", "ok", …}` or `{"id", "error"}`. It ends when nobody is connected and nothing runs. A run that a person
steps through is interrupted when nobody has been connected for a while: it would wait for ever, and resumes.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tui_eval.config.project import ConfigError
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.attempt.stepping import Decision
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import LimitReached, NothingToRun, SelectionError
from tui_eval.formats.reading import SuiteCache
from tui_eval.guard import private
from tui_eval.guard.fair_share import Lookups
from tui_eval.store.encoding import encode_json
from tui_eval.store.run_folders import StoreError

if TYPE_CHECKING:
    from tui_eval.engine.after.failure_naming import FailureNaming

ENGINE_FILE = "engine.json"
_LINE_LIMIT = 64 * 1024 * 1024
_GRACE_SECONDS = 2.0
_LEAVING_SECONDS = 3.0
_UNATTENDED_SECONDS = 900.0
# What a first request would otherwise wait for.
_WARM = (
    "tui_eval.agents.models.openai",
    "tui_eval.agents.offline.scripted",
    "jinja2",
)


class EngineServer:
    """One engine: its connections and its runs."""

    def __init__(self, socket: Path, unattended: float = _UNATTENDED_SECONDS) -> None:
        self.socket = socket
        self._unattended = unattended
        self._unattended_timer: asyncio.TimerHandle | None = None
        self.runs: dict[str, ActiveRun] = {}
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._connections = 0
        self._interrupting: set[asyncio.Task[None]] = set()  # kept until they are done
        self._ending = asyncio.Event()
        self._cache = SuiteCache()
        self._namings: dict[str, FailureNaming] = {}
        self._idle_timer: asyncio.TimerHandle | None = None

    async def serve(self) -> None:
        """Serve until nobody is connected and nothing runs."""
        loop = asyncio.get_running_loop()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: asyncio.ensure_future(self._stop()))
        server = await asyncio.start_unix_server(self._connected, str(self.socket), limit=_LINE_LIMIT)
        os.chmod(self.socket, 0o600)
        self._consider_ending(10.0)
        warm = asyncio.create_task(asyncio.to_thread(_warm))
        async with server:
            await self._ending.wait()
        warm.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=10)
        with contextlib.suppress(OSError):
            self.socket.unlink()
        loop.set_default_executor(ThreadPoolExecutor(1))  # its threads may read what never answers
        threading.Thread(target=_leave, name="leave", daemon=True).start()

    async def _stop(self) -> None:
        for run in list(self.runs.values()):
            await run.runner.interrupt()
        self._ending.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        if self._unattended_timer is not None:
            self._unattended_timer.cancel()
        try:
            while line := await reader.readline():
                answer = await self._answer(line)
                writer.write(encode_json(answer) + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):
            pass
        except asyncio.CancelledError:
            pass  # the loop ends while a client is still there: asyncio 3.11 prints a traceback of that
        finally:
            self._connections -= 1
            writer.close()
            self._consider_ending(_GRACE_SECONDS)
            if self._connections == 0:
                loop = asyncio.get_running_loop()
                self._unattended_timer = loop.call_later(self._unattended, self._interrupt_stepping)

    def _consider_ending(self, seconds: float) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._idle_timer = asyncio.get_running_loop().call_later(seconds, self._end_if_idle)

    def _end_if_idle(self) -> None:
        if self._connections == 0 and not self._tasks:
            self._ending.set()

    def _interrupt_stepping(self) -> None:
        for run in self.runs.values():
            if run.runner.stepper is not None:
                self._interrupting.add(asyncio.ensure_future(run.runner.interrupt()))

    async def _answer(self, line: bytes) -> dict[str, Any]:
        message: dict[str, Any] = {}
        try:
            message = json.loads(line)
            result = await self._operate(message)
            return {"id": message.get("id"), "ok": True, **result}
        except LimitReached as error:
            limit = msgspec.to_builtins(error.limit)
            return {"id": message.get("id"), "ok": False, "error": str(error), "limit": limit}
        except (NothingToRun, SelectionError, ConfigError, StoreError) as error:
            return {"id": message.get("id"), "ok": False, "error": str(error)}
        except (msgspec.MsgspecError, ValueError, KeyError, OSError, RuntimeError) as error:
            return {"id": message.get("id"), "ok": False, "error": f"{type(error).__name__}: {error}"}
        except Exception as error:  # of our own making: the log has where
            traceback.print_exception(error)
            said = f"internal error in the engine: {type(error).__name__}: {error}; details in its log"
            return {"id": message.get("id"), "ok": False, "error": said}

    async def _operate(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["op"]:
            case "hello":
                return {"pid": os.getpid()}
            case "run":
                request = msgspec.convert(message["request"], RunRequest)
                return self._launch(await asyncio.to_thread(prepare, request, cache=self._cache))
            case "resume":
                from tui_eval.engine.after.resuming import resume  # imported late: a run needs none of it

                overrides = msgspec.convert(message["request"], RunRequest)
                work = partial(resume, Path(message["folder"]), overrides=overrides)
                return self._launch(await asyncio.to_thread(work))
            case "rescore":
                from tui_eval.engine.after.rescoring import rescore  # as above

                overrides = msgspec.convert(message["request"], RunRequest)
                work = partial(rescore, Path(message["folder"]), overrides=overrides)
                return self._launch(await asyncio.to_thread(work))
            case "cancel":
                refs = message.get("attempts")
                count = await self._run(message).runner.cancel(None if refs is None else set(refs))
                return {"cancelled": count}
            case "pause":
                await self._run(message).runner.pause(bool(message.get("paused", True)))
                return {}
            case "step":
                stepper = self._run(message).runner.stepper
                decision = msgspec.convert(message.get("decision", {}), Decision)
                if stepper is None or not stepper.decide(message["attempt"], decision):
                    raise ValueError("no turn of this attempt waits for a decision")
                return {}
            case "plan_naming":
                from tui_eval.engine.after.failure_naming import plan_naming  # as above

                planned = await plan_naming(
                    Path(message["folder"]), trust=bool(message["trust"]), agreed=message.get("agreed") or ()
                )
                return msgspec.to_builtins(planned)
            case "name":
                from tui_eval.engine.after.failure_naming import FailureNaming  # as above

                folder, total = Path(message["folder"]), int(message["total"])
                before = self._namings.get(folder.name)
                if before is not None and not before.task.done():
                    raise NothingToRun(f"the failures of run {folder.name} are being named already")
                self._namings[folder.name] = FailureNaming(
                    folder, bool(message["trust"]), total, message.get("agreed") or ()
                )
                return {}
            case "naming":
                naming = self._namings.get(message["run"])
                if naming is None:
                    raise NothingToRun(f"no failures of run {message['run']} are being named")
                if message.get("cancel"):
                    naming.task.cancel()
                return naming.facts()
            case "state":
                return {"runs": list(self.runs), "pid": os.getpid(), "troubles": self._troubles()}
            case "shutdown":
                await self._stop()
                return {}
            case unknown:
                raise ValueError(f"unknown operation {unknown!r}")

    def _troubles(self) -> dict[str, str]:
        """What the disk refuses of each run: viewers, who read the disk, cannot see it there."""
        runs = ((run_id, run.writer) for run_id, run in self.runs.items())
        return {run_id: writer.error for run_id, writer in runs if writer is not None and writer.error}

    def _run(self, message: dict[str, Any]) -> ActiveRun:
        run = self.runs.get(message["run"])
        if run is None:
            raise NothingToRun(f"run {message['run']} has ended: nothing of it is being executed")
        return run

    def _launch(self, run: ActiveRun) -> dict[str, Any]:
        assert run.writer is not None
        tell_where(run.writer.folder, self.socket)
        self.runs[run.run_id] = run
        run.environment.tell = lambda text: None  # the app shows it: it is a note of the attempt
        task = asyncio.create_task(run.execute(), name=run.run_id)
        self._tasks[run.run_id] = task
        task.add_done_callback(lambda _: self._finished(run.run_id))
        return {
            "run": run.run_id,
            "folder": str(run.writer.folder),
            "attempts": len(run.tickets),
            "problems": [str(problem) for problem in run.problems if problem.level == "error"],
            "note": "; ".join(filter(None, run.said_first or [run.note])),
        }

    def _finished(self, run_id: str) -> None:
        task = self._tasks.pop(run_id)
        self.runs.pop(run_id, None)
        if not task.cancelled() and task.exception() is not None:
            print(f"run {run_id}:", file=sys.stderr)
            traceback.print_exception(task.exception())
            sys.stderr.flush()
        self._consider_ending(_GRACE_SECONDS)


def tell_where(folder: Path, socket: Path) -> None:
    """Write into a run's folder where its engine is reached; who reads it finds all of it or nothing.

    Raises:
        OSError: it cannot be written.
    """
    part = folder / f".{ENGINE_FILE}-{os.getpid()}"
    private.write_file(part, encode_json({"pid": os.getpid(), "socket": str(socket)}))
    part.replace(folder / ENGINE_FILE)


def _leave() -> None:
    """End the process though a thread is still at something: all runs have been written."""
    time.sleep(_LEAVING_SECONDS)
    os._exit(0)


def _warm() -> None:
    for name in _WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


T = TypeVar("T")


def run_engine(work: Coroutine[Any, Any, T]) -> T:
    """Do an engine's work to its end, on uvloop's loop where that can be had: it takes a twentieth of a run's CPU less
    than Python's own."""
    try:
        from uvloop import Loop
    except ImportError:
        from asyncio import SelectorEventLoop as Loop

    class EngineLoop(Lookups, Loop):  # pyright: ignore[reportGeneralTypeIssues]  # either of the two
        """A loop on which no name that nobody answers for holds others up."""

    with asyncio.Runner(loop_factory=EngineLoop) as runner:
        return runner.run(work)


def main() -> None:
    """`python -m tui_eval.engine.service.process --socket PATH`, started by `engine.client`."""
    import argparse  # imported late: a run in this process needs none of it

    parser = argparse.ArgumentParser(prog="tui_eval.engine.service.process")
    parser.add_argument("--socket", required=True, type=Path)
    parser.add_argument("--unattended", type=float, default=_UNATTENDED_SECONDS, metavar="SECONDS")
    options = parser.parse_args()
    run_engine(EngineServer(options.socket, options.unattended).serve())


if __name__ == "__main__":
    main()


# -- A run in the foreground (`tui-eval run`) that others can attach to, cancel and pause, as they can one
# of the engine process: through a socket that the run's folder names.


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
        # A name of the kind that clients connect to.
        socket = private.runtime_folder() / f"run-{os.getpid()}-{os.urandom(3).hex()}.sock"
        engine = _OneRun(socket)
        server = await asyncio.start_unix_server(engine._connected, str(socket))
    except OSError:
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
