"""What processes that run people's code may take: so much memory, and no longer than we live.

A script that allocates without end ends, not the machine. What is limited is what a process can write to
(RLIMIT_DATA: heap and private mappings), not its address space, of which libraries and JavaScript engines
reserve far more than they use. It holds for each process by itself, also for those that it starts, and where
one process can limit another: on Linux.

Whoever is killed (`kill -9`, no memory) ends nothing that it started. The kernel could, but takes the end of
the thread that started a process for that of its parent; and a program, or an endless loop, does not see that
nobody listens.
"""

from __future__ import annotations

import os
import resource
import threading
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


_AFTER_US = """trap '' HUP INT TERM
all=' '
while read -r sign group; do
    case $sign in
        +) all="$all$group " ;;
        -) case $all in *" $group "*) all="${all%%" $group "*} ${all#*" $group "}" ;; esac ;;
    esac
done
for group in $all; do kill -s KILL -- "-$group"; done
"""


class Groups:
    """The groups of processes that run. A shell hears of them, and outlives us for as long as it takes to end those
    that are left."""

    def __init__(self) -> None:
        self._running: set[int] = set()
        self._shell: int | None = None
        self._lock = threading.Lock()

    def add(self, group: int) -> None:
        """It runs."""
        with self._lock:
            self._running.add(group)
            self._tell(f"+ {group}\n")

    def remove(self, group: int) -> None:
        """It is ended. To be called before its number can be another's."""
        with self._lock:
            self._running.discard(group)
            self._tell(f"- {group}\n")

    def _tell(self, line: str) -> None:
        if self._shell is not None:
            try:
                os.write(self._shell, line.encode())
                return
            except OSError:  # it has been ended, or stopped
                os.close(self._shell)
                self._shell = None
        if self._running:
            self._begin()

    def _begin(self) -> None:
        theirs, ours = os.pipe()
        silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
        try:
            os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _AFTER_US, "tui-eval"],
                {},
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 0), *silent],
                setsid=True,
            )
            os.set_blocking(ours, False)
            os.write(ours, "".join(f"+ {group}\n" for group in self._running).encode())
        except (OSError, NotImplementedError):  # nobody sees to them, then
            os.close(ours)
        else:
            self._shell = ours
        finally:
            os.close(theirs)


groups = Groups()
"""Those of this process."""
