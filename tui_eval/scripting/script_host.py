"""Calling functions of people's files in child processes that can be killed and that follow edits.

What the hosts of Python and of node share. Calls that run at the same time have a process each, up to
`PROCESSES` of a folder: an attempt's for all its calls (`Lease`), any other call's for itself. Above that they
share; a call that was lost because somebody else ended the process is made once more, alone. A process is
started anew for the next call when a file that it loaded has changed. A call that does not end when it is cancelled or
out of time is left behind: its process gets no further calls and is killed, with everything it
started, as soon as no other call in it is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.guard import figures
from tui_eval.scripting import ScriptError, ScriptTimeout, printed, suite_variables
from tui_eval.scripting.child_limits import limit_of
from tui_eval.scripting.script_process import Listener, ScriptProcess

PROCESSES = 8
"""How many processes of a folder attempts may hold before they share; a start and its imports cost time
and memory each."""

_PATIENCE = 0.1
"""Seconds without an answer from any process after which a call that waits for a free one starts one more: most
calls take a millisecond, a start a hundred."""
Variables = frozenset[tuple[str, str]]
_LONGEST = 1.0
"""Seconds that a call waits for a free process at most."""
_STARTING = 2.0
"""The same while one is starting: what people's code imports is loaded twice only if it takes long."""


class CallResult(msgspec.Struct, frozen=True):
    """What a call returned (as JSON gives it: tuples are lists, which `is_tuple` tells) and what it printed."""

    value: Any
    stdout: str = ""
    is_tuple: bool = False


class Lease:
    """A claim to a process: all calls of it go to the one where the first went, and no other runs there at the
    same time, unless `PROCESSES` are taken.

    So what an attempt's code does to its process (end it, block it) costs no other attempt, and what it keeps
    in memory is there in the next turn. A file changed meanwhile counts for the next lease.
    """

    def __init__(
        self, host: ScriptHost, name: str, owner: str = "agent", *, renewed: bool = False, fresh: bool = False
    ) -> None:
        """`name` is the attempt's and `owner` whose process it is, for messages; after its process has ended
        and this was said, `renewed` calls go to another. `fresh`: one that nobody had before and nobody gets after."""
        self._host = host
        self.name = name
        self.owner = owner
        self.renewed = renewed
        self.fresh = fresh
        self.process: ScriptProcess | None = None
        self.answered = False
        self.released = False

    def forget(self) -> None:
        """Begin anew with the next call, in another process."""
        if self.process is not None:
            self.process.drop(self)
        self.process = None
        self.answered = False

    def release(self, *, with_started: bool = False) -> None:
        """Let others have the process; `with_started`: unless its code has started others, which end with it. Safe to
        call twice."""
        self._host.release(self, with_started=with_started)


class ScriptHost(ABC):
    """Runs functions of people's files. Usable from any thread and any event loop.

    Whether the files may run at all (trust) is for the caller to have asked.
    """

    language = ""

    def __init__(self, root: Path, memory: float | None = None) -> None:
        """`memory`: gigabytes that each process may have (`child_limits`)."""
        self._root = root.resolve()
        self.variables: Mapping[str, str] = {}
        """What is added to the environment of its processes, whoever calls (see `suite_variables`)."""
        self.memory = limit_of(memory)
        self._lock = threading.Lock()
        self._current: dict[Hashable, list[ScriptProcess]] = {}
        self._all: list[ScriptProcess] = []
        self._closed = False
        self._starting: set[Hashable] = set()
        self._waiting: deque[Callable[[], object]] = deque()

    def _added(self) -> Variables:
        return frozenset({**self.variables, **suite_variables.get()}.items())

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
        asked = request("call", file, function, args, kwargs)
        async with aclosing(self._answers(asked, timeout, lease)) as answers:
            async for answer in answers:
                return result_of(answer)
        raise AssertionError("a call has an answer")

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

    def lease(self, name: str, owner: str = "agent", *, renewed: bool = False, fresh: bool = False) -> Lease:
        """A claim for the calls of one attempt; a process is looked for with the first. To be released."""
        return Lease(self, name, owner, renewed=renewed, fresh=fresh)

    def release(self, lease: Lease, *, with_started: bool = False) -> None:
        """As `Lease.release`."""
        with self._lock:
            lease.released = True
        if lease.process is not None:
            lease.process.drop(lease, with_started=with_started)
        with contextlib.suppress(IndexError, RuntimeError):  # nobody waits; its loop is closed
            self._waiting.popleft()()

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
        lease, again = Lease(self, ""), False
        try:
            while True:
                future: Future[dict[str, Any]] = Future()
                process, identity = self._start(request, last_into(future), lease)
                try:
                    answer = future.result(timeout)
                except FutureTimeout:
                    raise too_late(Path(request["file"]), request["function"] or "default", timeout) from None
                finally:
                    process.leave(identity)
                if again or not self._may_be_made_again(answer, lease, single=True):
                    return answer
                again = True
                self._apart(request, lease)
        finally:
            lease.release()

    async def _answers(
        self, request: dict[str, Any], timeout: float | None, lease: Lease | None
    ) -> AsyncGenerator[dict[str, Any]]:
        """The answers to a request; what was printed is passed on. One that was lost with a process and had not
        been taken, or that was lost by others and may be made again, is made once more.

        Raises:
            ScriptError: the lease's process has ended between two calls.
            ScriptTimeout: the last answer has not come in time.
        """
        held = lease or Lease(self, "")
        anew = True
        try:
            while True:
                answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
                process, identity = await self._begin(request, into(answers), held, alone=lease is None)
                deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
                said = ""
                try:
                    while True:
                        try:
                            async with asyncio.timeout_at(deadline):
                                answer = await answers.get()
                        except TimeoutError:
                            raise too_late(
                                Path(request["file"]), request["function"] or "default", timeout
                            ) from None
                        if answer["kind"] == "printed":
                            pass_on(answer)
                            said += answer["stdout"]
                            continue
                        if (
                            anew
                            and not held.answered
                            and self._may_be_made_again(answer, held, lease is None)
                        ):
                            break
                        if "lost" in answer and held.answered and (not answer["begun"] or held.renewed):
                            raise self._ended_between(held, process)
                        pass_on(answer)
                        if said and "stdout" in answer:
                            answer["stdout"] = said + answer["stdout"]
                        anew, last = False, answer["kind"] != "item"
                        held.answered = held.answered or (last and "lost" not in answer)
                        yield answer
                        if last:
                            return
                finally:
                    process.leave(identity)
                anew = False
                pass_on({"stdout": f"[{answer['lost']}; called again in a process of its own]\n"})
                await asyncio.to_thread(self._apart, request, held)
        finally:
            if lease is None:
                held.release()

    @staticmethod
    def _may_be_made_again(answer: Mapping[str, Any], lease: Lease, single: bool) -> bool:
        """Whether a call was lost with its process and nothing of it was done, or others may have ended it."""
        if "lost" not in answer:
            return False
        return not answer["begun"] or (answer["shared"] and (single or lease.renewed))

    def _ended_between(self, lease: Lease, process: ScriptProcess) -> ScriptError:
        process.wait()
        if lease.renewed:
            lease.forget()
        return ScriptError(
            f"the {lease.owner}'s process ended between two turns ({process.how}); what it kept in memory is lost"
            + ("" if lease.renewed else ", so the conversation cannot go on"),
            code="worker-lost",
        )

    def _apart(self, request: Mapping[str, Any], lease: Lease) -> None:
        """Give a lease a new process that nobody else gets."""
        lease.forget()
        place = self._place(request)
        with self._lock:
            if self._closed or lease.released:
                raise ScriptError(f"the {self.language} process was closed", code="worker-lost")
            self._own(place, lease)

    def _own(self, place: Hashable, lease: Lease) -> ScriptProcess:
        process = lease.process = self._launched(place)
        process.hold(lease)
        process.retired = True
        return process

    async def _begin(
        self, request: dict[str, Any], listener: Listener, lease: Lease | None = None, *, alone: bool = False
    ) -> tuple[ScriptProcess, int]:
        """Send a request; `alone` waits a little for a process to be free before one more is started."""
        place = self._place(request)
        if alone and lease is not None and lease.process is None:
            loop, began = asyncio.get_running_loop(), time.monotonic()
            while not self._free(place, lease, began):
                freed = asyncio.Event()
                wake = partial(loop.call_soon_threadsafe, freed.set)
                self._waiting.append(wake)
                try:
                    async with asyncio.timeout(_PATIENCE):
                        await freed.wait()
                except TimeoutError:
                    with contextlib.suppress(ValueError):
                        self._waiting.remove(wake)
            alone = lease.process is None
        try:
            if place not in self._current if lease is None else lease.process is None:
                await asyncio.to_thread(self._process, place, lease)  # starting takes milliseconds
        finally:
            if alone:
                self._starting.discard(place)
        if lease is not None and lease.answered and lease.process is not None and lease.process.dead:
            await asyncio.to_thread(lease.process.wait)  # how it ended is to be said
        return self._start(request, listener, lease)

    def _free(self, place: Hashable, lease: Lease, began: float) -> bool:
        """Whether a lease has got a process that is free, or need not wait for one any longer."""
        with self._lock:
            pool = [one for one in self._current.get(place, []) if not one.retired]
            process = next((one for one in pool if one.idle and not _changed(one.files)), None)
            if process is not None and not self._closed:
                process.hold(lease)
                lease.process = process
                return True
            if len(pool) >= PROCESSES:
                return True
            if place in self._starting or (pool and not _waited(pool, began)):
                return False
            self._starting.add(place)
            return True

    def _start(
        self, request: dict[str, Any], listener: Listener, lease: Lease | None = None
    ) -> tuple[ScriptProcess, int]:
        name = lease.name if lease is not None else ""
        while True:
            process = self._process(self._place(request), lease)
            identity = process.begin(request, listener, holder=lease, name=name)
            if identity is not None:
                return process, identity
            if lease is not None:
                if lease.answered:
                    raise self._ended_between(lease, process)
                lease.process = None  # it ended after it was chosen; nothing was lost

    def _process(self, place: Hashable, lease: Lease | None) -> ScriptProcess:
        with self._lock:
            if self._closed or (lease is not None and lease.released):
                raise ScriptError(f"the {self.language} process was closed", code="worker-lost")
            if lease is not None and lease.process is not None:
                return lease.process
            if lease is not None and lease.fresh:
                return self._own(place, lease)
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
        process = self._launched(place)
        self._current[place].append(process)
        return process

    def _launched(self, place: Hashable) -> ScriptProcess:
        self._all = [one for one in self._all if not one.ended]
        process = self._launch(place)
        self._all.append(process)
        return process


def _waited(pool: Sequence[ScriptProcess], began: float) -> bool:
    """Whether a call has waited for a free process since `began` for long enough that one more may be started."""
    now = time.monotonic()
    if not all(one.answered for one in pool):
        return now - began > _STARTING
    return now - max(began, *(one.answered for one in pool)) > _PATIENCE or now - began > _LONGEST


def _least_held(pool: Sequence[ScriptProcess]) -> ScriptProcess | None:
    """The process to be shared where as many as may be are taken."""
    # One that winds up a call nobody waits for is free again or gone within seconds.
    taken = [one for one in pool if one.held or not one.leaving]
    # Of those, one that has just answered is not blocked.
    return min(taken, key=lambda one: (one.held, -one.answered)) if len(taken) >= PROCESSES else None


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


def last_into(future: Future[dict[str, Any]]) -> Listener:
    """A listener for the answer that ends a call, with all that was printed."""
    said: list[str] = []

    def listener(answer: dict[str, Any]) -> None:
        if answer["kind"] == "printed":
            said.append(answer["stdout"])
            return
        answer["stdout"] = "".join([*said, answer["stdout"]])
        future.set_result(answer)

    return listener


def pass_on(answer: dict[str, Any]) -> None:
    """Hand what a call printed to whoever listens."""
    take = printed.get()
    if take is not None and answer.get("stdout"):
        take(answer["stdout"])


def held(value: Any) -> Any:
    """What Python returned, in which no number may be one that JSON has not: as null it would be below any limit.

    Raises:
        ScriptError: one is.
    """
    if not figures.all_finite(value):
        raise ScriptError("gives NaN or an infinite number, which JSON cannot hold", code="script-raised")
    return value


def result_of(answer: dict[str, Any]) -> CallResult:
    """What an answer says, or the error it is.

    Raises:
        ScriptError: people's code failed.
    """
    if answer["kind"] == "error":
        code = "worker-lost" if "lost" in answer else "script-raised"
        if answer.get("spent"):
            code = "script-memory-limit"
        raised_at, columns = answer.get("raised_at"), answer.get("columns")
        raise ScriptError(
            answer["message"],
            traceback=answer["traceback"],
            stdout=answer["stdout"],
            code=code,
            raised_at=(raised_at[0], raised_at[1]) if raised_at else None,
            columns=(columns[0], columns[1]) if columns else None,
        )
    return CallResult(answer["value"], answer["stdout"], answer.get("type") == "tuple")


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
