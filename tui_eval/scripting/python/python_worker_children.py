"""What people's code started and left behind, also where it left the process group: found by its parents.

Stands alone, like everything that the child process of `python_worker` imports.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36


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
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as status:
                    state, parent = status.read().rpartition(b")")[2].split()[:2]
                    if state not in (b"Z", b"X"):
                        children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        own = children.get(waiting.pop(), [])
        found += own
        waiting += own
    return found


def kill(processes: list[int]) -> None:
    """End them."""
    for pid in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
