"""A process above the one in which people's code runs, that outlives it for as long as it takes to end all it started.

People's code may end its process, or hold the interpreter's lock for ever (one regular expression does), and
what it started may have left the process group: so nothing inside that process can be relied on. The watcher
runs none of their code. Stands alone, like everything that the child process of `python_worker` imports.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress

_EVERY_MS = 100
_PATIENCE = 10.0
"""Seconds for killed processes to be gone; one in the middle of a disk's operation may take longer."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36


def watched(connection: socket.socket, each: Callable[[int], None], ended: Callable[[], None]) -> bool:
    """Go on in a child of this process, which stays above it as its watcher and never comes back from here.

    When the other side of `connection` is gone, or the child has ended, the watcher ends all that descends
    from it, and ends as the child did. `each` is called in it with the child ten times a second, `ended` when
    the child has ended by itself.

    Returns whether there is a watcher; without /proc there is no finding descendants.
    """
    if not os.path.isdir("/proc/self"):
        return False
    adopt()
    watcher = os.getpid()
    child = os.fork()
    if child == 0:
        end_with_parent(watcher)
        return True
    try:
        _end_as(_watch(child, connection, each, ended))
    finally:
        os._exit(1)


def _watch(
    child: int, connection: socket.socket, each: Callable[[int], None], ended: Callable[[], None]
) -> int:
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poller = select.poll()
    poller.register(connection, 0)  # nothing but its end: what is said on it is for the child
    poller.register(woken, select.POLLIN)
    status = _reap(child)
    while status is None:
        ready = [descriptor for descriptor, _ in poller.poll(_EVERY_MS)]
        if connection.fileno() in ready:
            break
        if woken in ready:
            os.read(woken, 4096)
        with suppress(OSError):
            each(child)
        status = _reap(child)
    if status:
        with suppress(OSError):
            ended()
    deadline = time.monotonic() + _PATIENCE
    while (found := descendants(os.getpid())) and time.monotonic() < deadline:
        kill(found)
        _reap(child)
        time.sleep(0.001)
    return status or 0


def _reap(child: int) -> int | None:
    """Take note of what has ended; how the child did, if it is among them."""
    ended = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                ended = status
    return ended


def _end_as(status: int) -> None:
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        with suppress(OSError):  # SIGKILL has no handler to be taken away
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


# -- What people's code started and left behind, also where it left the process group: found by its parents.


def adopt() -> None:
    """Become the parent of what descendants leave behind, so that it can be found; only Linux knows how."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(parent: int) -> None:
    """Be killed when the parent ends, however it does; only Linux knows how."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def descendants(pid: int) -> list[int]:
    """The living processes that a process started, and theirs; none where there is no /proc."""
    children = _of_one if os.path.exists("/proc/thread-self/children") else _of_all().get
    found: list[int] = []
    waiting = [pid]
    while waiting:
        own = children(waiting.pop()) or []
        found += own
        waiting += own
    return found


def _of_one(pid: int) -> list[int]:
    """The living processes that one started. To ask for them costs what they are, not what the machine has: many
    commands may be cut at once."""
    own: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as listed:
                own += map(int, listed.read().split())
    return [child for child in own if (told := _state_and_parent(child)) and told[0] not in (b"Z", b"X")]


def _of_all() -> dict[int, list[int]]:
    """The same of every process, where the kernel does not list them by their parents."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit() and (told := _state_and_parent(int(name))) and told[0] not in (b"Z", b"X"):
                children.setdefault(int(told[1]), []).append(int(name))
    return children


def _state_and_parent(pid: int) -> list[bytes] | None:
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as status:
        told = status.read().rpartition(b")")[2].split()[:2]
        return told if len(told) == 2 else None
    return None


def kill(processes: list[int]) -> None:
    """End them."""
    for pid in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
