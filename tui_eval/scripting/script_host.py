"""Calling functions of people's files in child processes that can be killed and that follow edits.

What the hosts of Python and of node share. There is one process per folder; it is started anew for
the next call when a file that it loaded has changed. A call that does not end when it is cancelled or
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


class ScriptHost(ABC):
    """Runs functions of people's files. Usable from any thread and any event loop.

    Whether the files may run at all (trust) is for the caller to have asked.
    """

    language = ""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._lock = threading.Lock()
        self._current: dict[Hashable, ScriptProcess] = {}
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
    ) -> CallResult:
        """Call a function, sync or async; a generator's items come as a list.

        Args:
            file: The Python file, absolute.
            function: Its name; dotted for a class's method.
            args: JSON-able values.
            kwargs: JSON-able values by name.
            timeout: Seconds.

        Raises:
            ScriptError: it raised, does not exist or gives what JSON cannot hold.
            ScriptTimeout: it did not end in time.
        """
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        asked = request("call", file, function, args, kwargs)
        process, identity = await self._begin(asked, into(answers))
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

    async def _begin(self, request: dict[str, Any], listener: Listener) -> tuple[ScriptProcess, int]:
        if self._place(request) in self._current:
            return self._start(request, listener)
        return await asyncio.to_thread(self._start, request, listener)  # starting takes milliseconds

    def _start(self, request: dict[str, Any], listener: Listener) -> tuple[ScriptProcess, int]:
        while True:
            process = self._process(self._place(request))
            identity = process.begin(request, listener)
            if identity is not None:
                return process, identity

    def _process(self, place: Hashable) -> ScriptProcess:
        with self._lock:
            if self._closed:
                raise ScriptError(f"the {self.language} process was closed")
            process = self._current.get(place)
            if process is not None and not process.retired and not _changed(process.files):
                return process
            if process is not None:
                process.retire()
            self._all = [one for one in self._all if not one.ended]
            process = self._current[place] = self._launch(place)
            self._all.append(process)
            return process


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
