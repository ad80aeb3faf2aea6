"""How much memory a process that runs people's code may have: a script that allocates without end ends, not the machine.

What is limited is what a process can write to (RLIMIT_DATA: heap and private mappings), not its address space, of which
libraries and JavaScript engines reserve far more than they use. It holds for each process by itself, also for those
that it starts, and where one process can limit another: on Linux.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from functools import cache
from pathlib import Path

from tui_eval.scripting.python.python_worker_memory import lowered

LEAST = 2 << 30
"""Bytes that a process may have at least, on however small a machine."""
SETTING = "run.script_memory"
"""The key of tui_eval.yaml that sets it."""

_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def limit_of(gigabytes: float | None) -> int:
    """The limit in bytes that a setting stands for; None: half of this machine's memory."""
    return max(LEAST, _machine() // 2) if gigabytes is None else int(gigabytes * (1 << 30))


@cache
def _machine() -> int:
    """Bytes of memory of this machine, or of the container that this process is in."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for group in _GROUPS:
        with suppress(OSError, ValueError):
            found.append(int(Path(group).read_text("ascii")))
    return min(found)


def limit(pid: int, most: int) -> None:
    """Limit a process that was just started, and what it will start."""
    with suppress(OSError, ValueError, AttributeError):  # it has ended, or this system cannot
        _, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, hard))  # what ends for want of memory is large
        now = resource.prlimit(pid, resource.RLIMIT_DATA)
        resource.prlimit(pid, resource.RLIMIT_DATA, lowered(now, most))


def spent(most: int, said: bytes = b"") -> str:
    """What is said of a script that had no memory left; `said` is the end of what it wrote to its errors."""
    if b"heap limit" in said:
        return "the script needs more memory than node gives its heap (NODE_OPTIONS=--max-old-space-size=MB gives more)"
    return f"the script needs more than {most / (1 << 30):.3g} GB of memory ({SETTING})"
