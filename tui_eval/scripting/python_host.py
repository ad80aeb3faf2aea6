"""People's Python, run in child processes that can be killed and that follow edits.

There is one process per folder of scripts (a script finds its folder as current folder and first
on `sys.path`). It is started anew for the next call when a file that it loaded has changed. A call
that does not end when it is cancelled or out of time is left behind: its process gets no further
calls and is killed, with everything it started, as soon as no other call in it is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.events import Event, TextDelta
from tui_eval.scripting.python_process import Listener, PythonProcess


class ScriptError(Exception):
    """People's Python failed; the text is one line. `traceback` is theirs, `stdout` what was printed."""

    def __init__(self, message: str, *, traceback: str = "", stdout: str = "") -> None:
        super().__init__(message)
        self.traceback = traceback
        self.stdout = stdout


class ScriptTimeout(ScriptError):
    """People's Python did not end in time."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call returned (as JSON gives it: tuples are lists) and what it printed."""

    value: Any
    stdout: str = ""


@dataclass(frozen=True, slots=True)
class Description:
    """How a function may be called: its named parameters, and of which kind it is."""

    parameters: list[str]
    any_positional: bool
    any_keyword: bool
    is_async: bool
    is_generator: bool
    is_async_gen: bool


class PythonHost:
    """Runs functions of people's files. Usable from any thread and any event loop.

    Whether the files may run at all (trust) is for the caller to have asked.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._lock = threading.Lock()
        self._current: dict[Path, PythonProcess] = {}
        self._all: list[PythonProcess] = []
        self._closed = False

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
        process, identity = await self._begin(_request("call", file, function, args, kwargs), _into(answers))
        try:
            async with asyncio.timeout(timeout):
                return _result(await answers.get())
        except TimeoutError:
            raise _too_late(file, function, timeout) from None
        finally:
            process.leave(identity)

    async def stream(
        self,
        file: Path,
        function: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_stdout: Callable[[str], None] | None = None,
    ) -> AsyncIterator[Event]:
        """Call a generator, sync or async, and yield its events as they come; text is a `TextDelta`.

        A function that is no generator yields what it returns. `timeout` is for the whole of it;
        `on_stdout` gets what it printed, at its end.

        Raises:
            ScriptError: as `call`, or it yielded something that is neither text nor an event.
            ScriptTimeout: it did not end in time.
        """
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        process, identity = await self._begin(
            _request("stream", file, function, args, kwargs), _into(answers)
        )
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        try:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        answer = await answers.get()
                except TimeoutError:
                    raise _too_late(file, function, timeout) from None
                if on_stdout is not None and answer.get("stdout"):
                    on_stdout(answer["stdout"])
                if answer["kind"] == "item":
                    yield _event(answer, file, function)
                    continue
                value = _result(answer).value
                if value is not None:
                    yield _event(answer, file, function)
                return
        finally:
            process.leave(identity)

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
        return _result(self._ask(_request("call", file, function, args, kwargs), timeout))

    async def describe(self, file: Path, function: str, *, timeout: float | None = 60) -> Description:
        """How the function may be called; loads the file.

        Raises:
            ScriptError: the file fails to load or has no such function.
        """
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        process, identity = await self._begin(_request("describe", file, function, (), None), _into(answers))
        try:
            async with asyncio.timeout(timeout):
                return Description(**_result(await answers.get()).value)
        except TimeoutError:
            raise _too_late(file, function, timeout) from None
        finally:
            process.leave(identity)

    def describe_sync(self, file: Path, function: str, *, timeout: float | None = 60) -> Description:
        """As `describe`, for threads without an event loop."""
        return Description(
            **_result(self._ask(_request("describe", file, function, (), None), timeout)).value
        )

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
            raise _too_late(Path(request["file"]), request["function"], timeout) from None
        finally:
            process.leave(identity)

    async def _begin(self, request: dict[str, Any], listener: Listener) -> tuple[PythonProcess, int]:
        folder = Path(request["file"]).parent
        if folder in self._current:
            return self._start(request, listener)
        return await asyncio.to_thread(self._start, request, listener)  # starting takes milliseconds

    def _start(self, request: dict[str, Any], listener: Listener) -> tuple[PythonProcess, int]:
        while True:
            process = self._process(Path(request["file"]).parent)
            identity = process.begin(request, listener)
            if identity is not None:
                return process, identity

    def _process(self, folder: Path) -> PythonProcess:
        with self._lock:
            if self._closed:
                raise ScriptError("the Python process was closed")
            process = self._current.get(folder)
            if process is not None and not process.retired and not _changed(process.files):
                return process
            if process is not None:
                process.retire()
            if not folder.is_dir():
                raise ScriptError(f"{folder}: no such folder")
            self._all = [one for one in self._all if not one.ended]
            process = self._current[folder] = PythonProcess(folder, self._root)
            self._all.append(process)
            return process


def _request(
    operation: str, file: Path, function: str, args: Sequence[Any], kwargs: Mapping[str, Any] | None
) -> dict[str, Any]:
    path = os.path.abspath(file)
    return {
        "op": operation,
        "file": path,
        "function": function,
        "args": list(args),
        "kwargs": dict(kwargs or {}),
    }


def _into(answers: asyncio.Queue[dict[str, Any]]) -> Listener:
    loop = asyncio.get_running_loop()

    def listener(answer: dict[str, Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(partial(answers.put_nowait, answer))

    return listener


def _result(answer: dict[str, Any]) -> CallResult:
    if answer["kind"] == "error":
        raise ScriptError(answer["message"], traceback=answer["traceback"], stdout=answer["stdout"])
    return CallResult(answer["value"], answer["stdout"])


def _event(answer: dict[str, Any], file: Path, function: str) -> Event:
    value = answer["value"]
    if isinstance(value, str):
        return TextDelta(value)
    if answer["type"] == "event" or (isinstance(value, dict) and "type" in value):
        try:
            return msgspec.convert(value, Event)  # pyright: ignore[reportArgumentType, reportReturnType]
        except msgspec.ValidationError as error:
            raise ScriptError(f"{file.name}:{function} gives an event that is none: {error}") from None
    raise ScriptError(f"{file.name}:{function} gives a {type(value).__name__}, neither text nor an event")


def _too_late(file: Path, function: str, timeout: float | None) -> ScriptTimeout:
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
