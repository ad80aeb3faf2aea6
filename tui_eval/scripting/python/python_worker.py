"""The child process in which people's Python runs; started by `python_host`, never imported by it.

Run as a script: `python python_worker.py FD FOLDER ROOT PACKAGES`. Requests and answers are JSON
lines on the socket FD. One thread reads, one runs the event loop on which async functions share
their time; the main thread runs one plain function after the other (so that what is bound to one
thread keeps working), and when it is busy further ones get threads of their own. What a call
prints is kept by context, so calls at the same time do not mix.

The parts of it lie in the same folder and are imported from there, not from `tui_eval`: people's code
shares this process and starts with nothing of ours loaded. Their names are long so that no module of
people's is called the same.
"""

from __future__ import annotations

import os
import sys

if getattr(sys.flags, "safe_path", False):  # PYTHONSAFEPATH: the script's own folder is left out
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# What PYTHONPATH names (an empty entry: this folder) comes before Python's own modules, and here last: a `json.py`
# beside the code that is asked would be ours.
sys.path.sort(key=[*map(os.path.abspath, os.environ.get("PYTHONPATH", "").split(os.pathsep))].__contains__)

import asyncio
import contextvars
import inspect
import json
import queue
import signal
import socket
import threading
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep  # people's code may replace that of the module
from typing import Any

from python_worker_answers import Refused, description, encode, kind_of, told, traceback_of
from python_worker_memory import MemoryWatch, limit_from_environment, limit_own, make_room, tells_of_memory
from python_worker_modules import Modules
from python_worker_printing import Descriptors, Printed, Stdout, current
from python_worker_watcher import watched

_named = [*map(os.path.abspath, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
sys.path[1:] = sorted(sys.path[1:], key=lambda place: place not in _named)

STUCK_AFTER = 0.5
"""Seconds after which a cancelled call that has not ended is reported as one that will not."""

PASSED_ON_AFTER = 0.5
"""Seconds after which what a call has printed goes out, while it goes on."""


class _Patience(threading.Timer):
    """A timer of the worker's own."""


class PythonWorker:
    """Answers the requests of one host."""

    def __init__(
        self,
        connection: socket.socket,
        folder: Path,
        root: Path,
        descriptors: Descriptors,
        watched: bool,
        taken: int,
    ) -> None:
        self._connection = connection
        self._taken = taken
        self._watched = watched
        self._folders = (folder, root)
        self._modules = Modules(self._folders)
        self._sending = threading.Lock()
        self._claim = threading.Lock()
        self._main_idle = True
        self._main_held = False
        self._main_queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(512, thread_name_prefix="call")
        self._loop = asyncio.new_event_loop()
        self._running: dict[int, Printed] = {}
        self._spoke = threading.Event()
        self._taking = threading.Lock()
        self._left: set[int] = set()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._descriptors = descriptors
        self._process = os.getpid()

    def only_printed(self) -> Printed | None:
        """The printed text of the only call that runs: threads of its own print there."""
        running = list(self._running.values())
        return running[0] if len(running) == 1 else None

    def run(self) -> None:
        """Work until the host goes away."""
        threading.Thread(target=self._run_loop, daemon=True).start()
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._pass_on_printed, daemon=True).start()
        while True:
            job = self._main_queue.get()
            self._main_held = True
            job()
            self._release_main()

    def _release_main(self) -> None:
        """Let the main thread have the next call; before an answer goes out, so that a call made
        upon it finds the thread free."""
        if self._main_held and threading.current_thread() is threading.main_thread():
            self._main_held = False
            with self._claim:
                self._main_idle = True

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _read(self) -> None:
        try:
            for line in self._connection.makefile("rb"):
                self._handle(json.loads(line))
        finally:
            # The host is gone; so is everything that was started here. A watcher sees to that.
            if self._watched:
                os.kill(os.getpid(), signal.SIGKILL)
            os.killpg(0, signal.SIGKILL)

    def _handle(self, request: dict[str, Any]) -> None:
        identity, operation = request["id"], request["op"]
        if operation == "cancel":
            self._cancel(identity)
            return
        if self._taken >= 0:
            os.pwrite(self._taken, identity.to_bytes(8, "little"), 0)
        printed = self._running[identity] = Printed(self._spoke)
        context = contextvars.Context()
        context.run(current.set, printed)
        self._submit(lambda: context.run(self._start, request, context))

    def _cancel(self, identity: int) -> None:
        """Stop a call where it can be stopped; say so where it does not end."""
        self._left.add(identity)
        self._loop.call_soon_threadsafe(self._cancel_task, identity)
        timer = _Patience(STUCK_AFTER, self._tell_stuck, (identity,))
        timer.daemon = True
        timer.start()

    def _cancel_task(self, identity: int) -> None:
        task = self._tasks.get(identity)
        if task is not None:
            task.cancel()

    def _tell_stuck(self, identity: int) -> None:
        self._left.discard(identity)
        if identity in self._running:
            self._send({"id": identity, "kind": "stuck"})

    def _submit(self, job: Callable[[], None]) -> None:
        with self._claim:
            main, self._main_idle = self._main_idle, False
        if main:
            self._main_queue.put(job)
        else:
            self._threads.submit(job)

    def _start(self, request: dict[str, Any], context: contextvars.Context) -> None:
        """Run a request to its end, or hand it to the loop where its function is async."""
        identity = request["id"]
        try:
            function = self._modules.find(Path(request["file"]), request["function"])
            if request["op"] == "describe":
                self._end(identity, {"kind": "result", "value": description(function)})
                return
            streaming = request["op"] == "stream"
            value = function(*request["args"], **request["kwargs"])
            if inspect.isawaitable(value) or inspect.isasyncgen(value):
                self._loop.call_soon_threadsafe(self._begin_task, identity, value, streaming, context.copy())
                return
            pieces = inspect.isgenerator(value)
            if pieces:
                value = self._drain(identity, value, streaming)
            self._end(identity, {"kind": "result", "value": value, "streamed": pieces and streaming})
        except BaseException as error:  # SystemExit and the like end a call, not the process
            self._fail(identity, error)

    def _drain(self, identity: int, generator: Any, streaming: bool) -> Any:
        if not streaming:
            return list(generator)
        while identity not in self._left:
            try:
                item = next(generator)
            except StopIteration as ended:
                if ended.value is not None:
                    raise Refused(
                        f"is a generator, and returns a {type(ended.value).__name__}, which nobody would read: "
                        "yield text, and metadata as Finished(Reply(turn=1, metadata=…))"
                    ) from None
                return None
            self._item(identity, item)
        generator.close()
        return None

    def _begin_task(self, identity: int, value: Any, streaming: bool, context: contextvars.Context) -> None:
        task = self._loop.create_task(self._await(identity, value, streaming), context=context)
        self._tasks[identity] = task

    async def _await(self, identity: int, value: Any, streaming: bool) -> None:
        try:
            streamed = streaming and inspect.isasyncgen(value)
            if inspect.isasyncgen(value):
                items = []
                async for item in value:
                    if streaming:
                        self._item(identity, item)
                    else:
                        items.append(item)
                result = None if streaming else items
            else:
                result = await value
                if inspect.isasyncgen(result):
                    await self._await(identity, result, streaming)
                    return
                if inspect.isgenerator(result):  # in a thread: it may hold up the loop of the others
                    result, streamed = (
                        await asyncio.to_thread(self._drain, identity, result, streaming),
                        streaming,
                    )
            self._end(identity, {"kind": "result", "value": result, "streamed": streamed})
        except BaseException as error:  # also CancelledError: the host waits to hear of the end
            self._fail(identity, error)
        finally:
            self._tasks.pop(identity, None)

    def _pass_on_printed(self) -> None:
        """What is printed by calls that take long goes out before they end: some never do."""
        while True:
            self._spoke.wait()
            sleep(PASSED_ON_AFTER)
            self._spoke.clear()
            for identity, printed in list(self._running.items()):
                with self._taking:  # its answer goes out after it
                    if identity in self._running and (text := printed.take()):
                        self._send({"id": identity, "kind": "printed", "stdout": text})

    def _printed_by(self, identity: int) -> str:
        alone = len(self._running) == 1
        with self._taking:
            printed = self._running.pop(identity, None)
            text = printed.take() if printed is not None else ""
        if alone:
            text += self._descriptors.take()
        return text

    def _leave(self, error: BaseException | None = None) -> None:
        """In a process that people's code forked: end as one does whose program is over. The call is its parent's, and
        so is the answer."""
        if os.getpid() == self._process:
            return
        code = error.code if isinstance(error, SystemExit) else None if error is None else traceback_of(error)
        if code is not None and not isinstance(code, int):
            os.write(2, f"{code}\n".encode("utf-8", "replace"))
            code = 1
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()
        os._exit((code or 0) & 0xFF)

    def _item(self, identity: int, item: Any) -> None:
        self._leave()
        self._send({"id": identity, "kind": "item", "value": item, "type": kind_of(item)})

    def _end(self, identity: int, answer: dict[str, Any]) -> None:
        self._leave()
        answer |= {"type": kind_of(answer.get("value"))}
        line = encode({"id": identity, **answer})
        self._release_main()
        extra = {"stdout": self._printed_by(identity), **self._modules.followed(), **self._lingering()}
        self._send_line(line[:-1] + b"," + encode(extra)[1:])

    def _fail(self, identity: int, error: BaseException) -> None:
        self._leave(error)
        spent = isinstance(error, MemoryError)
        if spent:
            make_room()
        answer: dict[str, Any] = {"id": identity, "kind": "error", **told(error, self._folders)}
        if spent:
            answer["spent"] = True
        self._release_main()
        answer["traceback"] = traceback_of(error)
        answer |= {"stdout": self._printed_by(identity), **self._modules.followed(), **self._lingering()}
        self._send(answer)

    def _lingering(self) -> dict[str, bool]:
        """Whether a timer of people's is still to go off: what it does then may end the process."""
        ours = sum(isinstance(thread, _Patience) for thread in threading.enumerate())
        timers = sum(isinstance(thread, threading.Timer) for thread in threading.enumerate())
        return {"lingering": True} if timers > ours else {}

    def _send(self, answer: dict[str, Any]) -> None:
        self._send_line(encode(answer))

    def _send_line(self, line: bytes) -> None:
        with self._sending:
            self._connection.sendall(line + b"\n")


def _stand_aside() -> None:
    """Be `__main__` no more. Processes that `multiprocessing` starts anew (`spawn`, `forkserver`) load their parent's
    main module first: this file would be theirs, without the folder that its parts lie in."""
    sys.modules["python_worker"] = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")


def _print_plainly() -> None:
    """In a process that people's code forked: what is kept by call is its parent's."""
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__


def main() -> None:
    """Take the socket, make the process look like a script of the person's folder, and work."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    taken = int(os.environ.pop("TUI_EVAL_TAKEN", "-1"))  # see script_process.TAKEN
    if taken >= 0:
        os.set_inheritable(taken, False)
        os.pwrite(taken, bytes(8), 0)
    memory = limit_from_environment()
    descriptors = Descriptors()

    watch = MemoryWatch(memory)

    def each(child: int) -> None:
        descriptors.cut()
        watch.look(child)

    def ended() -> None:
        if taken >= 0 and (watch.ended or tells_of_memory(descriptors.last())):
            os.pwrite(taken, b"\1", 8)

    has_watcher = watched(connection, each, ended)
    limit_own(memory)
    folder, root, packages = map(Path, sys.argv[2:5])
    sys.dont_write_bytecode = True
    sys.path[0] = str(folder)
    # What stands elsewhere was trusted by itself, and not the folder that it is run in.
    own = any(place.is_relative_to(root) for place in (Path(os.path.normpath(folder)), folder.resolve()))
    sys.path.extend(
        str(path) for path in ((root, packages) if own else (packages,)) if str(path) not in sys.path
    )
    sys.argv = [str(folder)]
    os.chdir(folder)
    _stand_aside()
    os.register_at_fork(after_in_child=_print_plainly)
    worker = PythonWorker(connection, folder, root, descriptors, has_watcher, taken)
    sys.stdout = sys.stderr = Stdout(worker.only_printed)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        worker.run()
    except MemoryError:  # not even an answer could be made
        os.write(2, b"MemoryError\n")
        os._exit(1)


if __name__ == "__main__":
    main()
