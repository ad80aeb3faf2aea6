"""Calling functions of people's files in child processes that can be killed and that follow edits.

What the hosts of Python and of node share. There is one process per folder, and more of them where
attempts hold one each (`Lease`); it is started anew for the next call when a file that it loaded has
changed. A call that does not end when it is cancelled or
out of time is left behind: its process gets no further calls and is killed, with everything it
started, as soon as no other call in it is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tui_eval.scripting.script_process import Listener, ScriptProcess

PROCESSES = 8
"""How many processes of a folder attempts may hold before they share; a start and its imports cost time
and memory each."""

printed: ContextVar[Callable[[str], None] | None] = ContextVar("printed", default=None)
"""Gets what people's code printed during a call awaited in this context, beside its result."""


class ScriptError(Exception):
    """People's code failed; the text is one line. `traceback` is theirs, `stdout` what was printed."""

    def __init__(self, message: str, *, traceback: str = "", stdout: str = "") -> None:
        super().__init__(message)
        self.traceback = traceback
        self.stdout = stdout


class ScriptTimeout(ScriptError):
    """People's code did not end in time."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call returned (as JSON gives it: tuples are lists) and what it printed."""

    value: Any
    stdout: str = ""


class Lease:
    """One attempt's claim to a process: all its calls go to the one where the first went, and no other
    attempt runs there, unless `PROCESSES` are taken.

    So what an attempt's code does to its process (end it, block it) costs no other attempt, and what it keeps
    in memory is there in the next turn. A file changed meanwhile counts for the next lease.
    """

    def __init__(self, host: ScriptHost, name: str) -> None:
        """`name` is the attempt's, for messages."""
        self._host = host
        self.name = name
        self.process: ScriptProcess | None = None
        self.begun = False
        self.released = False

    def release(self) -> None:
        """Let others have the process. Safe to call twice."""
        self._host.release(self)


class ScriptHost(ABC):
    """Runs functions of people's files. Usable from any thread and any event loop.

    Whether the files may run at all (trust) is for the caller to have asked.
    """

    language = ""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._lock = threading.Lock()
        self._current: dict[Hashable, list[ScriptProcess]] = {}
        self._all: list[ScriptProcess] = []
        self._closed = False

    @abstractmethod
    def _place(self, request: Mapping[str, Any]) -> Hashable:
        """What the process of a request is kept under."""

    @abstractmethod
    def _launch(self, place: Any) -> ScriptProcess:
        """A new process.

        Raises:
            ScriptError: there can be none.
        """

    async def call(
        self,
        file: Path,
        function: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        lease: Lease | None = None,
    ) -> CallResult:
        """Call a function, sync or async; a generator's items come as a list.

        Args:
            file: The Python file, absolute.
            function: Its name; dotted for a class's method.
            args: JSON-able values.
            kwargs: JSON-able values by name.
            timeout: Seconds.
            lease: Whose process it runs in; without one, any.

        Raises:
            ScriptError: it raised, does not exist or gives what JSON cannot hold, or the lease's process
                has ended between two calls.
            ScriptTimeout: it did not end in time.
        """
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        asked = request("call", file, function, args, kwargs)
        process, identity = await self._begin(asked, into(answers), lease)
        try:
            async with asyncio.timeout(timeout):
                answer = await answers.get()
        except TimeoutError:
            raise too_late(file, function, timeout) from None
        finally:
            process.leave(identity)
        pass_on(answer)
        return result_of(answer)

    def call_sync(
        self,
        file: Path,
        function: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> CallResult:
        """As `call`, for threads without an event loop."""
        return result_of(self._ask(request("call", file, function, args, kwargs), timeout))

    def lease(self, name: str) -> Lease:
        """A claim for the calls of one attempt; a process is looked for with the first. To be released."""
        return Lease(self, name)

    def release(self, lease: Lease) -> None:
        """As `Lease.release`."""
        with self._lock:
            lease.released = True
        if lease.process is not None:
            lease.process.drop(lease)

    def close(self) -> None:
        """Kill every process; calls that still run fail. Safe to call twice."""
        with self._lock:
            self._closed = True
            processes, self._all, self._current = self._all, [], {}
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()

    def _ask(self, request: dict[str, Any], timeout: float | None) -> dict[str, Any]:
        future: Future[dict[str, Any]] = Future()
        process, identity = self._start(request, future.set_result)
        try:
            return future.result(timeout)
        except FutureTimeout:
            raise too_late(Path(request["file"]), request["function"], timeout) from None
        finally:
            process.leave(identity)

    async def _begin(
        self, request: dict[str, Any], listener: Listener, lease: Lease | None = None
    ) -> tuple[ScriptProcess, int]:
        place = self._place(request)
        if place not in self._current if lease is None else lease.process is None:
            await asyncio.to_thread(self._process, place, lease)  # starting takes milliseconds
        return self._start(request, listener, lease)

    def _start(
        self, request: dict[str, Any], listener: Listener, lease: Lease | None = None
    ) -> tuple[ScriptProcess, int]:
        name = lease.name if lease is not None else ""
        while True:
            process = self._process(self._place(request), lease)
            identity = process.begin(request, listener, holder=lease, name=name)
            if identity is not None:
                if lease is not None:
                    lease.begun = True
                return process, identity
            if lease is None:
                continue
            if not lease.begun:  # it ended after it was chosen; nothing was lost
                lease.process = None
            else:
                raise ScriptError(
                    f"the {self.language} process of this conversation has ended between two turns; what it kept"
                    " in memory is lost, so the conversation cannot go on"
                )

    def _process(self, place: Hashable, lease: Lease | None) -> ScriptProcess:
        with self._lock:
            if self._closed or (lease is not None and lease.released):
                raise ScriptError(f"the {self.language} process was closed")
            if lease is not None and lease.process is not None:
                return lease.process
            process = self._fit(place, lease) or self._new(place)
            if lease is not None:
                process.hold(lease)
                lease.process = process
            return process

    def _fit(self, place: Hashable, lease: Lease | None) -> ScriptProcess | None:
        """A process that runs and may be used; None where there is to be a new one."""
        while True:
            pool = self._current[place] = [one for one in self._current.get(place, []) if not one.retired]
            if lease is None:
                process = next(iter(pool), None)
            else:
                process = next((one for one in pool if one.idle), None) or _least_held(pool)
            if process is None or not _changed(process.files):
                return process
            process.retire()

    def _new(self, place: Hashable) -> ScriptProcess:
        self._all = [one for one in self._all if not one.ended]
        process = self._launch(place)
        self._current[place].append(process)
        self._all.append(process)
        return process


def _least_held(pool: Sequence[ScriptProcess]) -> ScriptProcess | None:
    """The process to be shared where as many as may be are taken."""
    # One that winds up a call nobody waits for is free again or gone within seconds.
    taken = [one for one in pool if one.held or not one.leaving]
    return min(taken, key=lambda one: one.held) if len(taken) >= PROCESSES else None


def request(
    operation: str, file: Path, function: str, args: Sequence[Any], kwargs: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What is sent to a process."""
    path = os.path.abspath(file)
    return {
        "op": operation,
        "file": path,
        "function": function,
        "args": list(args),
        "kwargs": dict(kwargs or {}),
    }


def into(answers: asyncio.Queue[dict[str, Any]]) -> Listener:
    """A listener that puts answers into a queue of the running loop."""
    loop = asyncio.get_running_loop()

    def listener(answer: dict[str, Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(partial(answers.put_nowait, answer))

    return listener


def pass_on(answer: dict[str, Any]) -> None:
    """Hand what a call printed to whoever listens."""
    take = printed.get()
    if take is not None and answer.get("stdout"):
        take(answer["stdout"])


def result_of(answer: dict[str, Any]) -> CallResult:
    """What an answer says, or the error it is.

    Raises:
        ScriptError: people's code failed.
    """
    if answer["kind"] == "error":
        raise ScriptError(answer["message"], traceback=answer["traceback"], stdout=answer["stdout"])
    return CallResult(answer["value"], answer["stdout"])


def too_late(file: Path, function: str, timeout: float | None) -> ScriptTimeout:
    """The error of a call that did not end in time."""
    return ScriptTimeout(f"{file.name}:{function} did not end within {timeout:g} s")


def _changed(files: dict[str, list[int]]) -> bool:
    for path, (modified, size) in files.items():
        try:
            status = os.stat(path)
        except OSError:
            return True
        if status.st_mtime_ns != modified or status.st_size != size:
            return True
    return False
