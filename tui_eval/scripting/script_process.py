"""One child process that runs people's code, as its host sees it.

Requests go out and answers come in as JSON lines on a socket pair, each by a thread of its own, so
that nobody's event loop ever waits for a child that does not read.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec

from tui_eval.scripting.python_worker_children import descendants, kill

GRACE = 2.0
"""Seconds after which a process that says nothing of a cancelled call is taken to be blocked."""

Listener = Callable[[dict[str, Any]], None]
"""Gets the answers to one request, in a thread of the process."""


class ScriptProcess:
    """One child: sends requests, hands each answer to the listener of its call."""

    def __init__(self, command: Callable[[int], list[str]], folder: Path, language: str) -> None:
        ours, theirs = socket.socketpair()
        self._language = language
        with theirs:
            self._child = subprocess.Popen(
                command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                cwd=folder,
            )
        self._socket = ours
        self._lock = threading.Lock()
        self._listeners: dict[int, Listener] = {}
        self._left: set[int] = set()
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._next = 0
        self._reaping = threading.Lock()
        self.retired = False
        self.ended = False
        self.files: dict[str, list[int]] = {}
        threading.Thread(target=self._write, name="script-host-write", daemon=True).start()
        self._reader = threading.Thread(target=self._read, name="script-host-read", daemon=True)
        self._reader.start()

    def begin(self, request: dict[str, Any], listener: Listener) -> int | None:
        """Send a request; None where the process takes no more."""
        body = json.dumps(request, default=_plain).encode("ascii")
        with self._lock:
            if self.retired:
                return None
            self._next += 1
            identity = self._next
            self._listeners[identity] = listener
        self._outgoing.put(b'{"id":%d,%s\n' % (identity, body[1:]))
        return identity

    def leave(self, identity: int) -> None:
        """Nobody waits for this call any more: it is cancelled, or its process given up."""
        with self._lock:
            if self._listeners.pop(identity, None) is None:
                return
            self._left.add(identity)
        self._outgoing.put(json.dumps({"id": identity, "op": "cancel"}).encode("ascii") + b"\n")
        timer = threading.Timer(GRACE, self._give_up, (identity, True))
        timer.daemon = True
        timer.start()

    def _give_up(self, identity: int, silent: bool) -> None:
        with self._lock:
            if identity not in self._left:
                return
            self.retired = True
            unused = not self._listeners
        # A process that does not even answer is blocked as a whole: its other calls are lost too.
        if unused or silent:
            self.kill()

    def retire(self) -> None:
        """Take no more calls; end once those that run are answered."""
        with self._lock:
            self.retired = True
            unused = not self._listeners
        if unused:
            self.kill()

    def kill(self) -> None:
        """End the process and all that it started, now."""
        self.retired = True
        self._kill_group()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _kill_group(self) -> None:
        with self._reaping:
            if not self.ended:  # until it is reaped, its number cannot be another process's
                left_the_group = descendants(self._child.pid)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._child.pid, signal.SIGKILL)
                kill(left_the_group)

    def wait(self) -> None:
        """Wait until a killed process is gone."""
        self._reader.join()

    def _write(self) -> None:
        while (line := self._outgoing.get()) is not None:
            try:
                self._socket.sendall(line)
            except OSError:
                return

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._socket.makefile("rb") as lines:
            for line in lines:
                self._hear(json.loads(line))
        self._ended()

    def _hear(self, answer: dict[str, Any]) -> None:
        identity, kind = answer["id"], answer["kind"]
        if kind == "stuck":
            # It answers: the others in it may go on, but this one can only be ended with it.
            with self._lock:
                self._left.discard(identity)
                self.retired = True
                unused = not self._listeners
            if unused:
                self.kill()
            return
        if kind == "item":
            listener = self._listeners.get(identity)
        else:
            self.files = answer.get("files", self.files)
            with self._lock:
                listener = self._listeners.pop(identity, None)
                self._left.discard(identity)
        if listener is not None:
            listener(answer)
        if self.retired and not self._listeners:
            self.kill()

    def _ended(self) -> None:
        with self._lock:
            self.retired = True
            waiting, self._listeners = list(self._listeners.values()), {}
        _wait_unreaped(self._child.pid, 1.0)
        self._kill_group()  # what it started and left behind
        with self._reaping:
            code = self._child.wait()
            self.ended = True
        self._outgoing.put(None)
        self._socket.close()
        message = f"the {self._language} process ended ({_how(code)})"
        for listener in waiting:
            listener({"kind": "error", "message": message, "traceback": "", "stdout": ""})


def _wait_unreaped(pid: int, seconds: float) -> None:
    """Wait for a child to end by itself, so that its own exit code is seen, without reaping it."""
    if not hasattr(os, "waitid"):
        return
    deadline = time.monotonic() + seconds
    with contextlib.suppress(ChildProcessError):
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            if time.monotonic() > deadline:
                return
            time.sleep(0.002)


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else str(value)
