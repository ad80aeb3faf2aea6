"""JavaScript of promptfoo suites, in isolates that can reach nothing.

The isolates live in child processes, because some of their inner loops heed no time limit; such a
process is killed and the next evaluation gets a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tui_eval.javascript.values import UNDEFINED

TIME_LIMIT = 10.0
"""Seconds that an evaluation may take if nothing else is said."""

MEMORY_LIMIT = 256 << 20
"""Bytes that an evaluation may use."""

_WORKER = str(Path(__file__).with_name("javascript_worker.py"))
_GRACE = 0.5
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_DECLARATION = re.compile(r"(?:const|let|var)\s")


class JavaScriptError(Exception):
    """JavaScript failed; one line, as `TypeError: x is not a function`."""


class JavaScriptTimeout(JavaScriptError):
    """JavaScript did not end in time."""


def function_body(code: str) -> str:
    """The body of the function that a piece of code of a suite stands for.

    One line (white space at its end apart) is an expression, or, where it begins with a declaration,
    statements of which the last is the result. Several lines are a body that returns by itself
    (formats/promptfoo.md 5.4).
    """
    line = code.rstrip()
    if "\n" in line:
        return code
    line = line.lstrip()
    if _DECLARATION.match(line):
        statements = line.rstrip("; \t")
        cut = _last_semicolon(statements)
        last = statements[cut + 1 :].strip() if cut >= 0 else ""
        if last:
            return f"{statements[: cut + 1]} return {last}"
        return statements
    return f"return {line}"


def _last_semicolon(code: str) -> int:
    """The last semicolon outside of quotes and brackets; -1 without one."""
    found, depth, quote, index = -1, 0, "", 0
    while index < len(code):
        char = code[index]
        if quote:
            if char == "\\":
                index += 1
            elif char == quote:
                quote = ""
        elif char in "\"'`":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == ";" and depth == 0:
            found = index
        index += 1
    return found


class JavaScriptHost:
    """Evaluates JavaScript. Usable from any event loop and thread."""

    def __init__(self, processes: int = 0, time_limit: float = TIME_LIMIT) -> None:
        """`time_limit`: seconds that a call may take which names no limit of its own."""
        self._time_limit = time_limit
        self._threads = ThreadPoolExecutor(
            processes or min(4, os.cpu_count() or 1), thread_name_prefix="javascript"
        )
        self._local = threading.local()
        self._lock = threading.Lock()
        self._processes: set[_Process] = set()
        self._closed = False

    async def evaluate(self, code: str, variables: Mapping[str, Any], *, timeout: float | None = None) -> Any:
        """The result of a suite's code (see `function_body`); a promise is awaited.

        Args:
            code: One expression or the body of a function.
            variables: JSON-able values by name, `UNDEFINED` too; names that are no identifiers are
                left out. NaN and the infinities arrive as null, as in JSON.
            timeout: Seconds, from when it starts; None: the host's limit.

        Returns:
            A JSON-able value, `UNDEFINED`, or a float that may be NaN or infinite.

        Raises:
            JavaScriptError: it throws, is no JavaScript, or gives what JSON cannot hold.
            JavaScriptTimeout: it did not end in time.
        """
        names = [name for name in variables if _IDENTIFIER.match(name)]
        given = {name: variables[name] for name in names if variables[name] is not UNDEFINED}
        return await self._ask({"names": names, "body": function_body(code), "input": given}, timeout)

    async def call(
        self, source: str, function: str | None, args: Sequence[Any], *, timeout: float | None = None
    ) -> Any:
        """Call what a file exports: `function`, else its default export or `module.exports`.

        CommonJS, and modules without imports. `require` does not exist here.

        Raises:
            JavaScriptError: as `evaluate`, or it exports no such function.
            JavaScriptTimeout: it did not end in time.
        """
        request = {"source": common_js(source), "pick": function or "", "args": list(args)}
        return await self._ask(request, timeout)

    async def _ask(self, request: dict[str, Any], timeout: float | None) -> Any:
        timeout = self._time_limit if timeout is None else timeout
        try:
            request |= {"seconds": timeout, "memory": MEMORY_LIMIT}
            try:
                line = json.dumps(request, allow_nan=False, default=_null_for_undefined)
            except ValueError:
                line = json.dumps(_finite(request))
        except (TypeError, ValueError, RecursionError) as error:
            raise JavaScriptError(f"cannot be given to JavaScript: {error}") from None
        job = _Job(line.encode("ascii") + b"\n", timeout)
        try:
            running = self._threads.submit(self._work, job)
        except RuntimeError:
            raise JavaScriptError("JavaScript was closed") from None
        try:
            answer = await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            job.cancel()
            raise
        return _value(answer, timeout)

    def _work(self, job: _Job) -> dict[str, Any]:
        process: _Process | None = getattr(self._local, "process", None)
        if process is None or process.ended:
            if process is not None:
                self._processes.discard(process)
            with self._lock:
                if self._closed:
                    return {"kind": "error", "message": "JavaScript was closed"}
                process = self._local.process = _Process()
                self._processes.add(process)
        return job.run(process)

    def close(self) -> None:
        """Kill the processes; evaluations that still run fail. Safe to call twice."""
        with self._lock:
            self._closed = True
            processes, self._processes = self._processes, set()
        for process in processes:
            process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)


class _Process:
    """One child, used by one thread at a time."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        self.ended = False

    def ask(self, line: bytes, seconds: float) -> bytes | None:
        """The answer; None where none came in time. Empty where the process ended."""
        assert self._child.stdin is not None and self._child.stdout is not None
        deadline = time.monotonic() + seconds
        try:
            view = memoryview(line)
            while view:
                view = view[self._child.stdin.write(view) :]
        except (OSError, ValueError):
            return b""
        received = bytearray()
        descriptor = self._child.stdout.fileno()
        while not received.endswith(b"\n"):
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([descriptor], [], [], remaining)[0]:
                return None
            piece = os.read(descriptor, 1 << 20)
            if not piece:
                return b""
            received += piece
        return bytes(received)

    def kill(self) -> None:
        """End the process now; its thread then closes it."""
        with contextlib.suppress(OSError):
            self._child.kill()

    def close(self) -> None:
        """Kill and forget."""
        self.ended = True
        self.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class _Job:
    """One evaluation, which may be cancelled before and while it runs."""

    def __init__(self, line: bytes, seconds: float) -> None:
        self._line = line
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._cancelled = False

    def run(self, process: _Process) -> dict[str, Any]:
        with self._lock:
            if self._cancelled:
                return {"kind": "error", "message": "cancelled"}
            self._process = process
        answer = process.ask(self._line, self._seconds + _GRACE)
        with self._lock:
            self._process = None
        if not answer:
            process.close()
            if answer is None:
                return {"kind": "timeout"}
            return {"kind": "error", "message": "the JavaScript process ended (out of memory, or closed)"}
        return json.loads(answer)

    def cancel(self) -> None:
        """Stop it; a process that runs it is killed."""
        with self._lock:
            self._cancelled = True
            if self._process is not None:
                self._process.kill()


def _value(answer: dict[str, Any], seconds: float) -> Any:
    kind = answer["kind"]
    if kind == "value":
        return answer["value"]
    if kind == "undefined":
        return UNDEFINED
    if kind == "number":
        return float(answer["value"].replace("Infinity", "inf"))
    if kind == "timeout":
        raise JavaScriptTimeout(f"did not end within {seconds:g} s")
    raise JavaScriptError((answer["message"].strip().splitlines() or ["an error without a text"])[0][:1000])


def _null_for_undefined(value: Any) -> None:
    if value is not UNDEFINED:
        raise TypeError(f"a value of type {type(value).__name__}")


def _finite(value: Any) -> Any:
    """The value with NaN and the infinities as null, since JSON has none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if value is UNDEFINED else value


_EXPORT_DEFAULT = re.compile(r"^(\s*)export\s+default\s+", re.MULTILINE)
_EXPORT_NAMED = re.compile(
    r"^(\s*)export\s+((?:async\s+)?function\*?\s+|const\s+|let\s+|var\s+|class\s+)([A-Za-z_$][\w$]*)",
    re.MULTILINE,
)


def common_js(source: str) -> str:
    """A module's exports written as CommonJS; a file that has none stays as it is."""
    names = [match.group(3) for match in _EXPORT_NAMED.finditer(source)]
    source = _EXPORT_NAMED.sub(r"\1\2\3", _EXPORT_DEFAULT.sub(r"\1module.exports.default = ", source))
    return source + "".join(f"\nmodule.exports.{name} = {name};" for name in names)
