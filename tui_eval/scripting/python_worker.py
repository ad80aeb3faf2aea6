"""The child process in which people's Python runs; started by `python_host`, never imported by it.

Run as a script: `python python_worker.py FD FOLDER ROOT PACKAGES`. Requests and answers are JSON
lines on the socket FD. One thread reads, one runs the event loop on which async functions share
their time; the main thread runs one plain function after the other (so that what is bound to one
thread keeps working), and when it is busy further ones get threads of their own. What a call
prints is kept by context, so calls at the same time do not mix.
"""

from __future__ import annotations

import asyncio
import contextvars
import fcntl
import importlib.machinery
import importlib.util
import inspect
import io
import json
import os
import queue
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

PRINT_LIMIT = 1_000_000
"""Characters of printed text kept of one call."""

STUCK_AFTER = 0.5
"""Seconds after which a cancelled call that has not ended is reported as one that will not."""


class _Printed:
    """What one call has printed."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def write(self, text: str) -> None:
        room = PRINT_LIMIT - self._length
        if room > 0:
            self._pieces.append(text[:room])
            self._length += len(text)
            if self._length > PRINT_LIMIT:
                self._pieces.append("\n… (more was printed)\n")

    def take(self) -> str:
        text, self._pieces = "".join(self._pieces), []
        return text


_printed: contextvars.ContextVar[_Printed | None] = contextvars.ContextVar("printed", default=None)


class _Stdout(io.TextIOBase):
    """`sys.stdout` of people's code: to the call it belongs to."""

    encoding = "utf-8"

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        target = _printed.get() or self._worker.only_printed()
        if target is not None:
            target.write(str(text))
        return len(text)

    def fileno(self) -> int:
        return 1

    @property
    def buffer(self) -> Any:
        return sys.__stdout__.buffer if sys.__stdout__ is not None else None


class Worker:
    """Answers the requests of one host."""

    def __init__(self, connection: socket.socket, folder: Path, root: Path) -> None:
        self._connection = connection
        self._folder = folder
        self._root = root
        self._sending = threading.Lock()
        self._loading = threading.Lock()
        self._claim = threading.Lock()
        self._main_idle = True
        self._main_held = False
        self._main_queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(512, thread_name_prefix="call")
        self._loop = asyncio.new_event_loop()
        self._modules: dict[str, Any] = {}
        self._running: dict[int, _Printed] = {}
        self._left: set[int] = set()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._reported: dict[str, list[int]] = {}
        self._told = 0
        self._seen_modules = 0
        self._raw = self._capture_descriptors()

    @staticmethod
    def _capture_descriptors() -> int:
        """Programs and C code print to the descriptors: they go to a file, read after each call."""
        file, path = tempfile.mkstemp(prefix="tui-eval-")
        os.unlink(path)
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(file, 1)
        os.dup2(file, 2)
        return file

    def only_printed(self) -> _Printed | None:
        """The printed text of the only call that runs: threads of its own print there."""
        running = list(self._running.values())
        return running[0] if len(running) == 1 else None

    def run(self) -> None:
        """Work until the host goes away."""
        threading.Thread(target=self._run_loop, daemon=True).start()
        threading.Thread(target=self._read, daemon=True).start()
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
            os.killpg(0, signal.SIGKILL)  # the host is gone; so is everything that was started here

    def _handle(self, request: dict[str, Any]) -> None:
        identity, operation = request["id"], request["op"]
        if operation == "cancel":
            self._cancel(identity)
            return
        printed = self._running[identity] = _Printed()
        context = contextvars.Context()
        context.run(_printed.set, printed)
        self._submit(lambda: context.run(self._start, request, context))

    def _cancel(self, identity: int) -> None:
        """Stop a call where it can be stopped; say so where it does not end."""
        self._left.add(identity)
        self._loop.call_soon_threadsafe(self._cancel_task, identity)
        timer = threading.Timer(STUCK_AFTER, self._tell_stuck, (identity,))
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
            function = self._find(Path(request["file"]), request["function"])
            if request["op"] == "describe":
                self._end(identity, {"kind": "result", "value": _description(function)})
                return
            streaming = request["op"] == "stream"
            value = function(*request["args"], **request["kwargs"])
            if inspect.isawaitable(value) or inspect.isasyncgen(value):
                self._loop.call_soon_threadsafe(self._begin_task, identity, value, streaming, context.copy())
                return
            if inspect.isgenerator(value):
                value = self._drain(identity, value, streaming)
            self._end(identity, {"kind": "result", "value": value})
        except BaseException as error:  # SystemExit and the like end a call, not the process
            self._fail(identity, error)

    def _drain(self, identity: int, generator: Any, streaming: bool) -> Any:
        if not streaming:
            return list(generator)
        for item in generator:
            if identity in self._left:
                generator.close()
                break
            self._item(identity, item)
        return None

    def _begin_task(self, identity: int, value: Any, streaming: bool, context: contextvars.Context) -> None:
        task = self._loop.create_task(self._await(identity, value, streaming), context=context)
        self._tasks[identity] = task

    async def _await(self, identity: int, value: Any, streaming: bool) -> None:
        try:
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
            self._end(identity, {"kind": "result", "value": result})
        except BaseException as error:  # also CancelledError: the host waits to hear of the end
            self._fail(identity, error)
        finally:
            self._tasks.pop(identity, None)

    def _find(self, file: Path, name: str) -> Callable[..., Any]:
        with self._loading:
            module = self._modules.get(str(file)) or self._load(file)
        function: Any = module
        for part in name.split("."):
            function = getattr(function, part, None)
        if not callable(function):
            there = [key for key, item in vars(module).items() if inspect.isfunction(item) and key[0] != "_"]
            known = f" (there is: {', '.join(there[:10])})" if there else ""
            raise _Refused(f"{file.name} has no function {name!r}{known}")
        return function

    def _load(self, file: Path) -> Any:
        try:
            self._report(file)
            source = file.read_bytes()
        except OSError as error:
            raise _Refused(f"{file}: {error.strerror}") from None
        package = _package(file)
        name = package + file.stem
        if name in sys.modules:
            # An imported module of the same name (queue.py, agent.py elsewhere) must stay what it is.
            name = f"{package}_tui_eval_{len(self._modules)}_{file.stem}"
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None:
            spec = importlib.machinery.ModuleSpec(name, None, origin=str(file))
        module = importlib.util.module_from_spec(spec)
        module.__file__ = str(file)
        sys.modules[name] = module
        try:
            # Compiled here and never from a cache: an edit within the same second must count.
            exec(compile(source, str(file), "exec", dont_inherit=True), module.__dict__)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        self._modules[str(file)] = module
        return module

    def _report(self, file: Path) -> None:
        status = file.stat()
        self._reported.setdefault(str(file), [status.st_mtime_ns, status.st_size])

    def _followed(self) -> dict[str, Any]:
        """The files loaded so far from below the project's folder, as they were when loaded;
        nothing where the host knows them already."""
        if len(sys.modules) != self._seen_modules:
            self._seen_modules = len(sys.modules)
            for module in list(sys.modules.values()):
                file = getattr(module, "__file__", None)
                if isinstance(file, str) and file not in self._reported and "site-packages" not in file:
                    path = Path(file)
                    if path.is_relative_to(self._root) or path.is_relative_to(self._folder):
                        try:
                            self._report(path)
                        except OSError:
                            continue
        if len(self._reported) == self._told:
            return {}
        self._told = len(self._reported)
        return {"files": self._reported}

    def _printed_by(self, identity: int) -> str:
        alone = len(self._running) == 1
        printed = self._running.pop(identity, None)
        text = printed.take() if printed is not None else ""
        if alone and os.fstat(self._raw).st_size:
            raw = os.pread(self._raw, PRINT_LIMIT, 0)
            os.ftruncate(self._raw, 0)
            text += raw.decode("utf-8", "replace")
        return text

    def _item(self, identity: int, item: Any) -> None:
        self._send({"id": identity, "kind": "item", "value": item, "type": _kind_of(item)})

    def _end(self, identity: int, answer: dict[str, Any]) -> None:
        answer |= {"type": _kind_of(answer.get("value"))}
        line = _encode({"id": identity, **answer})
        self._release_main()
        extra = {"stdout": self._printed_by(identity), **self._followed()}
        self._send_line(line[:-1] + b"," + _encode(extra)[1:])

    def _fail(self, identity: int, error: BaseException) -> None:
        answer: dict[str, Any] = {"id": identity, "kind": "error", "message": self._one_line(error)}
        self._release_main()
        answer["traceback"] = "" if isinstance(error, _Refused) else self._traceback(error)
        answer |= {"stdout": self._printed_by(identity), **self._followed()}
        self._send(answer)

    def _one_line(self, error: BaseException) -> str:
        try:
            text = str(error).strip()
        except Exception:
            text = ""
        if isinstance(error, _Refused):
            return text
        if isinstance(error, SyntaxError):
            return f"{type(error).__name__}: {error.msg} ({Path(error.filename or '?').name}:{error.lineno})"
        lines = text.splitlines()
        first = lines[0][:1000] if lines else ""
        if isinstance(error, KeyError) and error.args:
            first = f"no key {first}"
        place = self._place(error)
        return type(error).__name__ + (f": {first}" if first else "") + (f" ({place})" if place else "")

    def _place(self, error: BaseException) -> str:
        """The last line of the person's own code on the way to the error."""
        frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        for file, line in reversed(frames):
            path = Path(file)
            own = path.is_relative_to(self._folder) or path.is_relative_to(self._root)
            if own and file != __file__ and "site-packages" not in file:
                return f"{path.name}:{line}"
        return ""

    def _traceback(self, error: BaseException) -> str:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        return "".join(traceback.format_exception(type(error), error, trace))[-20_000:]

    def _send(self, answer: dict[str, Any]) -> None:
        self._send_line(_encode(answer))

    def _send_line(self, line: bytes) -> None:
        with self._sending:
            self._connection.sendall(line + b"\n")


class _Refused(Exception):
    """A request that cannot be done, said in words of ours."""


def _description(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    return {
        "parameters": [
            item.name for item in parameters if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
        ],
        "any_positional": any(item.kind == item.VAR_POSITIONAL for item in parameters),
        "any_keyword": any(item.kind == item.VAR_KEYWORD for item in parameters),
        "is_async": inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function),
        "is_generator": inspect.isgeneratorfunction(function),
        "is_async_gen": inspect.isasyncgenfunction(function),
    }


def _package(file: Path) -> str:
    """The package that a file is part of, imported, with a dot at its end; so relative imports work.

    As with pytest, a folder is a package where it has an `__init__.py`.
    """
    names: list[str] = []
    folder = file.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    if not names or file.name == "__init__.py":
        return ""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    package = importlib.import_module(".".join(names))
    # Another package of that name may come first on the path: then the file stands alone.
    return f"{package.__name__}." if str(file.parent) in getattr(package, "__path__", ()) else ""


def _kind_of(value: Any) -> str:
    """`event` for a struct of `tui_eval.events`, else empty."""
    return "event" if type(value).__module__ == "tui_eval.events" else ""


def _encode(value: Any) -> bytes:
    return json.dumps(value, default=_plain, check_circular=True).encode("ascii")


def _plain(value: Any) -> Any:
    if type(value).__module__ in ("tui_eval.events", "tui_eval.model"):
        import msgspec

        return msgspec.to_builtins(value)
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    raise _Refused(
        f"gives a value of type {name}, which JSON cannot hold (return text, numbers, lists, dicts)"
    )


def main() -> None:
    """Take the socket, make the process look like a script of the person's folder, and work."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    folder, root, packages = map(Path, sys.argv[2:5])
    sys.dont_write_bytecode = True
    sys.path[0] = str(folder)
    sys.path.extend(str(path) for path in (root, packages) if str(path) not in sys.path)
    sys.argv = [str(folder)]
    os.chdir(folder)
    worker = Worker(connection, folder, root)
    sys.stdout = sys.stderr = _Stdout(worker)  # pyright: ignore[reportAttributeAccessIssue]
    worker.run()


if __name__ == "__main__":
    main()
