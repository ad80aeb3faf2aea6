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
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec

from tui_eval.scripting import child_limits
from tui_eval.scripting.python.python_worker_memory import MEMORY, tells_of_memory
from tui_eval.scripting.python.python_worker_watcher import descendants, kill

LARGEST = 64_000_000
"""Bytes of one answer that are taken; who says more is ended."""
_KEPT = 65_536
"""Bytes that are kept of the end of what a process writes to its errors."""
_CRASHES = frozenset(
    -one for one in (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL, signal.SIGSEGV, signal.SIGBUS)
)
_MOST_OF_IT = 0.7
GRACE = 2.0
"""Seconds after which a process that says nothing of a cancelled call is taken to be blocked."""

TAKEN = "TUI_EVAL_TAKEN"
"""The variable that gives a child the number of a file in which it notes the last request it has taken: 8 bytes,
little endian. What it had not taken when it ended has done nothing and may be asked of another. A byte after them says
that it ended because it had no memory left."""

Listener = Callable[[dict[str, Any]], None]
"""Gets the answers to one request, in a thread of the process."""


class ScriptProcess:
    """One child: sends requests, hands each answer to the listener of its call."""

    def __init__(
        self,
        command: Callable[[int], list[str]],
        folder: Path,
        language: str,
        memory: int,
        own_children: int = 0,
        *,
        limits_itself: bool = False,
        variables: Iterable[tuple[str, str]] = (),
        grace: float = GRACE,
    ) -> None:
        """`memory` is how many bytes it may have, which it sees to itself where it `limits_itself`; `own_children` how
        many processes below it are of its own making; `variables` are added to the environment; `grace` is how many
        seconds it may say nothing of a cancelled call."""
        self._memory = memory
        self._grace = grace
        self._own_children = own_children
        ours, theirs = socket.socketpair()
        self._language = language
        self._taken = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
        with theirs:
            self._child = subprocess.Popen(
                command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL if limits_itself else subprocess.PIPE,
                pass_fds=(theirs.fileno(), self._taken.fileno()),
                start_new_session=True,
                cwd=folder,
                env={
                    **os.environ,
                    **dict(variables),
                    TAKEN: str(self._taken.fileno()),
                    **({MEMORY: str(memory)} if limits_itself else {}),
                },
            )
        self._watched = limits_itself
        """Whether a process of its own sees to its end."""
        if not limits_itself:
            child_limits.limit(self._child.pid, memory)
            child_limits.groups.add(self._child.pid)
        self._socket = ours
        self._lock = threading.Lock()
        self._listeners: dict[int, tuple[Listener, str]] = {}
        self._left: set[int] = set()
        self._holders: set[object] = set()
        self._killed_for = ""
        self._too_large = False
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._next = 0
        self._reaping = threading.Lock()
        self.retired = False
        """Takes nobody new; who holds it may go on."""
        self.dead = False
        """Takes no calls at all."""
        self.ended = False
        self.how = ""
        """How it ended, once it has: `exit code 9`."""
        self.answered = 0.0
        """When it last answered (the monotonic clock); 0: not yet."""
        self._lingering = False
        self.files: dict[str, list[int]] = {}
        self._complained = b""
        self._complaints = threading.Thread(target=self._hear_errors, name="script-host-errors", daemon=True)
        self._complaints.start()
        threading.Thread(target=self._write, name="script-host-write", daemon=True).start()
        self._reader = threading.Thread(target=self._read, name="script-host-read", daemon=True)
        self._reader.start()

    @property
    def held(self) -> int:
        """How many hold it."""
        return len(self._holders)

    @property
    def leaving(self) -> bool:
        """Whether it has not yet said of a call that was left that it has ended."""
        return bool(self._left)

    @property
    def idle(self) -> bool:
        """Whether nobody holds it and nothing runs in it."""
        return not (self._holders or self._listeners or self._left)

    def hold(self, holder: object) -> None:
        """Keep it for somebody's further calls, also when it is retired."""
        with self._lock:
            self._holders.add(holder)

    def drop(self, holder: object, *, with_started: bool = False) -> None:
        """Somebody needs it no more. Where a timer of theirs is still to go off, or they have started processes that
        are to end `with_started`, nobody new gets it."""
        started = with_started and self._has_started_others()
        with self._lock:
            self.retired = self.retired or started
            self._holders.discard(holder)
            self.retired = self.retired or self._lingering
            unused = self.retired and self._unused()
        if unused:  # somebody's event loop may be here
            threading.Thread(target=self.kill, name="script-host-kill", daemon=True).start()

    def _has_started_others(self) -> bool:
        with self._reaping:
            return not self.ended and len(descendants(self._child.pid)) > self._own_children

    def begin(
        self, request: dict[str, Any], listener: Listener, *, holder: object = None, name: str = ""
    ) -> int | None:
        """Send a request; None where the process takes no more. `name` is whose call it is, for others
        that lose theirs by it."""
        body = json.dumps(request, default=_plain).encode("ascii")
        with self._lock:
            if self.dead or (self.retired and holder not in self._holders):
                return None
            self._next += 1
            identity = self._next
            self._listeners[identity] = listener, name
        self._outgoing.put(b'{"id":%d,%s\n' % (identity, body[1:]))
        return identity

    def leave(self, identity: int) -> None:
        """Nobody waits for this call any more: it is cancelled, or its process given up."""
        with self._lock:
            call = self._listeners.pop(identity, None)
            if call is None:
                return
            self._left.add(identity)
        self._outgoing.put(json.dumps({"id": identity, "op": "cancel"}).encode("ascii") + b"\n")
        timer = threading.Timer(self._grace, self._give_up, (identity, call[1]))
        timer.daemon = True
        timer.start()

    def _give_up(self, identity: int, name: str) -> None:
        """A process that does not even answer is blocked as a whole: its other calls are lost too."""
        with self._lock:
            if identity not in self._left:
                return
            self._killed_for = name or "another call"
        self.kill()

    def _unused(self) -> bool:
        return not self._listeners and not self._holders

    def retire(self) -> None:
        """Take no more calls; end once those that run are answered."""
        with self._lock:
            self.retired = True
            unused = self._unused()
        if unused:
            self.kill()

    def kill(self) -> None:
        """End the process and all that it started, now."""
        self.retired = self.dead = True
        self._kill_group()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _kill_group(self) -> None:
        with self._reaping:
            if not self.ended:  # until it is reaped, its number cannot be another process's
                for _ in range(20):  # also what was started meanwhile
                    if not (left_the_group := descendants(self._child.pid)):
                        break
                    kill(left_the_group)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._child.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until a killed process is gone."""
        self._reader.join()

    def _write(self) -> None:
        while (line := self._outgoing.get()) is not None:
            try:
                self._socket.sendall(line)
            except OSError:
                return

    def _hear_errors(self) -> None:
        """Keep the end of what it writes to its errors, where that comes here."""
        if self._child.stderr is None:
            return
        with contextlib.suppress(OSError, ValueError), self._child.stderr as errors:
            while piece := os.read(errors.fileno(), 65_536):
                self._complained = (self._complained + piece)[-_KEPT:]

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._socket.makefile("rb") as lines:
            while line := lines.readline(LARGEST + 1):
                if len(line) > LARGEST:
                    self._too_large = True
                    self._kill_group()
                    break
                self._hear(json.loads(line))
        self._ended()

    def _hear(self, answer: dict[str, Any]) -> None:
        identity, kind = answer["id"], answer["kind"]
        if kind == "stuck":
            # It answers: the others in it may go on, but this one can only be ended with it.
            with self._lock:
                self._left.discard(identity)
                self.retired = True
                unused = self._unused()
            if unused:
                self.kill()
            return
        if kind in ("item", "printed"):  # more comes
            call = self._listeners.get(identity)
        else:
            self.files = answer.get("files", self.files)
            self.answered = time.monotonic()
            with self._lock:
                self._lingering = bool(answer.get("lingering"))
                call = self._listeners.pop(identity, None)
                self._left.discard(identity)
        if answer.get("spent"):  # what it holds may be held for good
            self.retired = True
            place = answer.get("raised_at")
            answer["message"] = child_limits.spent(self._memory) + (
                f" ({Path(place[0]).name}:{place[1]})" if place else ""
            )
        if call is not None:
            call[0](answer)
        if self.retired and self._unused():
            self.kill()

    def _ended(self) -> None:
        with self._lock:
            self.retired = self.dead = True
            waiting, self._listeners = self._listeners, {}
        _wait_unreaped(self._child.pid, 1.0)
        self._kill_group()  # what it started and left behind
        with self._reaping:
            if not self._watched:
                child_limits.groups.remove(self._child.pid)
            code, largest = self._reaped()
            self.how = _how(code)
            self.ended = True
        self._outgoing.put(None)
        self._socket.close()
        with self._taken:
            note = os.pread(self._taken.fileno(), 9, 0)
        taken = int.from_bytes(note[:8], "little") if note else self._next
        self._complaints.join(5.0)  # what it left behind may hold the pipe
        spent = bool(note[8:]) or tells_of_memory(self._complained)
        # Allocators that get nothing more end a process in many ways.
        spent = spent or (code in _CRASHES and largest > self._memory * _MOST_OF_IT)
        if spent:
            self.how = f"{child_limits.spent(self._memory, self._complained)}; {self.how}"
        if self._too_large:
            self.how = f"an answer of more than {LARGEST // 1_000_000} MB"
        message = f"the {self._language} process ended ({self.how})"
        for identity, (listener, _) in waiting.items():
            others = [name for other, (_, name) in waiting.items() if other != identity]
            listener({
                "kind": "error", "message": message + self._shared_with(others), "traceback": "", "stdout": "",
                "lost": message, "begun": identity <= taken, "shared": bool(others or self._killed_for),
                "spent": spent,
            })  # fmt: skip

    def _reaped(self) -> tuple[int, int]:
        """The exit code, and the bytes of memory that the largest process had."""
        try:
            _, status, usage = os.wait4(self._child.pid, 0)
        except ChildProcessError:
            return self._child.wait(), 0
        self._child.returncode = os.waitstatus_to_exitcode(status)
        return self._child.returncode, usage.ru_maxrss * 1024

    def _shared_with(self, others: list[str]) -> str:
        """What is to be said beside a process's end where it need not be the call's own doing."""
        if self._killed_for:
            return (
                f": it was blocked by {self._killed_for}, which was out of time and ran in the same process"
            )
        if not others:
            return ""
        return f"; it may not be this call's doing: {calls_in_words(others)} ran in the same process"


def calls_in_words(names: list[str]) -> str:
    """Calls in words, of which some may have no name."""
    named = [name for name in names if name][:3]
    rest = len(names) - len(named)
    if not named:
        return "another call" if rest == 1 else f"{rest} other calls"
    return ", ".join(named) + (f" and {rest} more" if rest else "")


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
