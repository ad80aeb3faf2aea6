"""How much memory people's code may have, as its own process keeps it. Stands alone, like everything that the child
process of `python_worker` imports."""

from __future__ import annotations

import os
import re
import resource
import signal
import time
from contextlib import suppress

MEMORY = "TUI_EVAL_MEMORY"
"""The variable that says how many bytes it may have."""
RESERVE = 64 << 20
"""Bytes beyond the limit in which a process can say that it has been reached."""
_NEAR = 4 << 20
"""Bytes below its limit at which a process may not get the next piece that its allocator asks for."""
_STAYS = 10.0
"""Seconds at its limit after which it is ended."""

_SPENT = (
    rb"memory allocation of \d+ bytes failed|bad_alloc|[Oo]ut of memory|out-of-memory|OutOfMemory"
    rb"|[Cc]annot allocate memory|MemoryError|heap limit"
)


def limit_own(most: int) -> None:
    """Limit this process, and what it will start."""
    if most > 0:
        with suppress(OSError, ValueError):
            _, hard = resource.getrlimit(resource.RLIMIT_CORE)
            resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # what ends for want of memory is large
            resource.setrlimit(resource.RLIMIT_DATA, lowered(resource.getrlimit(resource.RLIMIT_DATA), most))


def make_room() -> None:
    """Give this process what it needs to say that it has no memory left."""
    with suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


class MemoryWatch:
    """Sees from outside to a process that is at its limit: an interpreter without a byte left cannot even raise what
    says so (CPython tries for ever). It is given room once, and ended where it stays there."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._since = 0.0
        self._roomy = False
        self.ended = False

    def look(self, pid: int) -> None:
        """To be called from time to time."""
        if self._most <= 0 or _written(pid) < self._most - _NEAR:
            self._since = 0.0
        elif not self._since:
            self._since = time.monotonic()
        elif not self._roomy:
            self._roomy = True
            with suppress(OSError, ValueError, AttributeError):
                _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
                resource.prlimit(pid, resource.RLIMIT_DATA, (hard, hard))
        elif time.monotonic() - self._since > _STAYS:
            self.ended = True
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _written(pid: int) -> int:
    """Bytes that a process can write to, as RLIMIT_DATA counts them; 0: it is not known."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as sizes:
            return int(sizes.read().split()[5]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def limit_from_environment() -> int:
    """The bytes that this process may have; 0: none was given."""
    given = os.environ.pop(MEMORY, "")
    return int(given) if given.isdigit() else 0


def lowered(before: tuple[int, int], most: int) -> tuple[int, int]:
    """The limits (soft, hard) for a process that has those of `before`, which are never raised."""
    soft, hard = (limit if limit != resource.RLIM_INFINITY else most + RESERVE for limit in before)
    hard = min(hard, most + RESERVE)
    return min(soft, most, hard), hard


def tells_of_memory(said: bytes) -> bool:
    """Whether a process that has ended says at the end of its errors that it had no memory left."""
    return re.search(_SPENT, said) is not None
