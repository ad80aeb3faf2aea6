"""What people's code started and left behind, also where it left the process group: found by its parents.

Stands alone, like everything that the child process of `python_worker` imports.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def adopt() -> None:
    """Become the parent of what descendants leave behind, so that it can be found; only Linux knows how."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and theirs; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as status:
                    parent = int(status.read().rpartition(b")")[2].split()[1])
                    children.setdefault(parent, []).append(int(name))
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
