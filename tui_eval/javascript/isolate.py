"""JavaScript of promptfoo suites, in isolates that can reach nothing.

The isolates live in child processes, because some of their inner loops heed no time limit; such a
process is killed and the next evaluation gets a new one. An evaluation that takes longer than a moment
leaves the quick processes to the others and goes on aside, with the rest of the machine first: a pattern
that runs away keeps nobody waiting.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tui_eval.guard.fair_share import waiting
from tui_eval.javascript.values import UNDEFINED
from tui_eval.scripting.child_limits import groups

TIME_LIMIT = 10.0
"""Seconds that an evaluation may take if nothing else is said."""

MEMORY_LIMIT = 256 << 20
"""Bytes that an evaluation may use."""

_WORKER = str(Path(__file__).with_name("isolate_worker.py"))
_GRACE = 0.5
MOMENT = 0.5
"""Seconds after which an evaluation leaves its place to others."""
ASIDE = 8
"""Evaluations that take longer and run at once."""
_START = 60.0
_NO_MEMORY = ("InternalError: out of memory", "MemoryError")
_PATIENCE = 10
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_DECLARATION = re.compile(r"(?:const|let|var)\s")


class JavaScriptError(Exception):
    """JavaScript failed; one line, as `TypeError: x is not a function`. `code` as in evidence (`causes`), `place` the
    line of the code that was given, from 1, and the characters of it (from, to) at which it was thrown, where known."""

    def __init__(
        self,
        message: str,
        code: str = "script-raised",
        place: tuple[int, tuple[int, int] | None] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.place = place


class JavaScriptTimeout(JavaScriptError):
    """JavaScript did not end in time."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "script-time-limit")


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
    """Evaluates JavaScript. Usable from any event loop and thread.

    `processes` evaluate what is done in a moment. What takes longer goes on in the process that it is in,
    which is then its own, as long as there are fewer than `aside` of these; else it begins again once there
    are. Time limits count from when an evaluation begins, and the clock of the attempt (`fair_share.clock`)
    stands still while it waits.
    """

    def __init__(self, processes: int = 0, time_limit: float = TIME_LIMIT, aside: int = ASIDE) -> None:
        """`time_limit`: seconds that a call may take which names no limit of its own."""
        self._time_limit = time_limit
        self._quick = ThreadPoolExecutor(
            processes or max(2, min(4, os.cpu_count() or 1)), thread_name_prefix="javascript"
        )
        self._slow = ThreadPoolExecutor(aside, thread_name_prefix="javascript-aside")
        self._most_aside = aside
        self._aside = 0
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
        body = function_body(code)
        return await self._ask({"names": names, "body": body, "input": given}, timeout, (body, code))

    async def call(
        self, source: str, function: str | None, args: Sequence[Any], *, timeout: float | None = None
    ) -> Any:
        """Call what a file exports: `function`, else its default export or `module.exports`.

        CommonJS, and modules without imports. `require` does not exist here.

        Raises:
            JavaScriptError: as `evaluate`, or it exports no such function.
            JavaScriptTimeout: it did not end in time.
        """
        module = common_js(source)
        request = {"source": module, "pick": function or "", "args": list(args)}
        return await self._ask(request, timeout, (module, source))

    async def _ask(self, request: dict[str, Any], timeout: float | None, codes: tuple[str, str]) -> Any:
        """`codes`: what is run, and what that was made of."""
        timeout = self._time_limit if timeout is None else timeout
        request |= {"seconds": timeout, "memory": MEMORY_LIMIT}
        loop = asyncio.get_running_loop()
        with waiting() as held:

            def turn(begins: bool) -> None:
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    loop.call_soon_threadsafe(held.over if begins else held.again)

            job = _Job(request, timeout, turn)
            try:
                self._quick.submit(self._in_a_moment, job)
            except RuntimeError:
                raise JavaScriptError("JavaScript was closed", "worker-lost") from None
            try:
                answer = await asyncio.wrap_future(job.answer)
            except asyncio.CancelledError:
                job.cancel()
                raise
        return _value(answer, timeout, codes)

    def _in_a_moment(self, job: _Job) -> None:
        """In a thread of the quick ones: to its end, or hand it on."""
        with job.answering():
            process: _Process | None = getattr(self._local, "process", None)
            if process is None or process.ended:
                process = self._local.process = self._made(process)
            if job.begin(process) and not job.wait(MOMENT):
                self._local.process = None
                self._hand_on(job, process)

    def _hand_on(self, job: _Job, process: _Process) -> None:
        with self._lock:
            goes_on = self._aside < self._most_aside
            self._aside += 1
        if goes_on:
            process.yield_to_others()
        else:
            job.interrupt()
            self._forget(process)
        try:
            self._slow.submit(self._to_the_end, job, process if goes_on else None)
        except RuntimeError:
            self._forget(process)
            job.fail("JavaScript was closed", "worker-lost")

    def _to_the_end(self, job: _Job, process: _Process | None) -> None:
        """In a thread of those aside: what is left of its time, or all of it from the beginning."""
        begun = process is not None
        try:
            with job.answering():
                if process is None:
                    process = self._made(None)
                    process.yield_to_others()
                if begun or job.begin(process):
                    job.wait(None)
        finally:
            with self._lock:
                self._aside -= 1
            if process is not None:
                self._forget(process)

    def _made(self, before: _Process | None) -> _Process:
        with self._lock:
            if before is not None:
                self._processes.discard(before)
            if self._closed:
                raise JavaScriptError("JavaScript was closed", "worker-lost")
            process = _Process()
            self._processes.add(process)
        return process

    def _forget(self, process: _Process) -> None:
        with self._lock:
            self._processes.discard(process)
        process.close()

    def close(self) -> None:
        """Kill the processes; evaluations that still run fail. Safe to call twice."""
        with self._lock:
            self._closed = True
            processes, self._processes = self._processes, set()
        for process in processes:
            process.kill()
        for threads in (self._quick, self._slow):
            threads.shutdown(wait=True, cancel_futures=True)


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
        groups.add(self._child.pid)
        self._received = bytearray()
        self._closing = threading.Lock()
        self._ready = False
        self.ended = False

    def send(self, line: bytes) -> bool:
        """Wait until it has started and give it a request; False where it has ended."""
        if not self._ready:
            self._ready = bool(self.answer(_START))
            if not self._ready:
                return False
        assert self._child.stdin is not None
        try:
            view = memoryview(line)
            while view:
                view = view[self._child.stdin.write(view) :]
        except (OSError, ValueError):
            return False
        return True

    def answer(self, seconds: float) -> bytes | None:
        """The answer; None where none came in time. Empty where the process ended."""
        assert self._child.stdout is not None
        deadline = time.monotonic() + seconds
        received = self._received
        try:
            descriptor = self._child.stdout.fileno()
            readable = select.poll()  # select() takes no descriptor above 1,023: a large run has more open
            readable.register(descriptor, select.POLLIN)
            while not received.endswith(b"\n"):
                remaining = max(0.0, deadline - time.monotonic())
                if not readable.poll(math.ceil(remaining * 1000)):
                    return None
                piece = os.read(descriptor, 1 << 20)
                if not piece:
                    return b""
                received += piece
        except (OSError, ValueError):
            return b""
        whole = bytes(received)
        received.clear()
        return whole

    def yield_to_others(self) -> None:
        """Leave the processors to everybody else."""
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._child.pid, _PATIENCE)

    def kill(self) -> None:
        """End the process now; its thread then closes it."""
        with contextlib.suppress(OSError):
            self._child.kill()

    def close(self) -> None:
        """Kill and forget. Safe to call twice."""
        with self._closing:
            if self.ended:
                return
            self.ended = True
        self.kill()
        groups.remove(self._child.pid)
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class _Job:
    """One evaluation, which may be cancelled before and while it runs. `turn` is notified when it begins, and when
    it has to wait once more."""

    def __init__(self, request: dict[str, Any], seconds: float, turn: Callable[[bool], None]) -> None:
        self.answer: Future[dict[str, Any]] = Future()
        self._request = request
        self._seconds = seconds
        self._turn = turn
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._ends = 0.0
        self._cancelled = False

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Whatever goes wrong within is the answer."""
        try:
            yield
        except JavaScriptError as error:
            self.fail(str(error), error.code)
        except Exception as error:
            self.fail(f"{type(error).__name__}: {error}")

    def begin(self, process: _Process) -> bool:
        """Give it to a process; False where it is over with that."""
        try:
            try:
                line = json.dumps(self._request, allow_nan=False, default=_null_for_undefined)
            except ValueError:
                line = json.dumps(_finite(self._request))
        except (TypeError, ValueError, RecursionError) as error:
            self.fail(f"cannot be given to JavaScript: {error}")
            return False
        with self._lock:
            if self._cancelled:
                self.fail("cancelled")
                return False
            self._process = process
        if not process.send(line.encode("ascii") + b"\n"):
            self._over(process, b"")
            return False
        self._turn(True)
        self._ends = time.monotonic() + self._seconds + _GRACE
        return True

    def wait(self, moment: float | None) -> bool:
        """Wait for the answer, at most a `moment`; False where it is still to come then."""
        process = self._process
        assert process is not None
        left = self._ends - time.monotonic()
        answer = process.answer(left if moment is None else min(left, moment))
        if answer is None and moment is not None and left > moment:
            return False
        self._over(process, answer)
        return True

    def interrupt(self) -> None:
        """It waits for another process."""
        with self._lock:
            self._process = None
        self._turn(False)

    def fail(self, message: str, code: str = "script-raised") -> None:
        """It ends with an error."""
        self._set({"kind": "error", "message": message, "code": code})

    def _over(self, process: _Process, answer: bytes | None) -> None:
        with self._lock:
            self._process = None
        if answer:
            self._set(json.loads(answer))
            return
        process.close()
        if answer is None:
            self._set({"kind": "timeout"})
        else:
            self.fail("the JavaScript process ended (out of memory, or closed)", "worker-lost")

    def _set(self, answer: dict[str, Any]) -> None:
        with contextlib.suppress(InvalidStateError):  # nobody waits any more
            self.answer.set_result(answer)

    def cancel(self) -> None:
        """Stop it; a process that runs it is killed."""
        with self._lock:
            self._cancelled = True
            if self._process is not None:
                self._process.kill()


def _value(answer: dict[str, Any], seconds: float, codes: tuple[str, str]) -> Any:
    kind = answer["kind"]
    if kind == "value":
        return answer["value"]
    if kind == "undefined":
        return UNDEFINED
    if kind == "number":
        return float(answer["value"].replace("Infinity", "inf"))
    if kind == "timeout":
        raise JavaScriptTimeout(f"did not end within {seconds:g} s")
    message = (answer["message"].strip().splitlines() or ["an error without a text"])[0][:1000]
    code = answer.get("code", "script-raised")
    code = "script-memory-limit" if message in _NO_MEMORY else code
    at = answer.get("at")
    raise JavaScriptError(message, code, _place(*codes, *at) if at else None)


_WORD = re.compile(r"[\w$]+|.")


def _place(run: str, given: str, line: int, column: int) -> tuple[int, tuple[int, int] | None] | None:
    """A line and a column of what was run, in what that was made of; without characters where these are not
    the same."""
    theirs, ours = given.split("\n"), run.split("\n")
    if not 0 < line <= min(len(theirs), len(ours)):
        return None
    written = theirs[line - 1].strip()
    before = ours[line - 1].find(written)
    start = column - 1 - before + (len(theirs[line - 1]) - len(theirs[line - 1].lstrip()))
    word = _WORD.match(theirs[line - 1], max(start, 0))
    if before < 0 or column - 1 < before or word is None:
        return line, None
    return line, word.span()


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
