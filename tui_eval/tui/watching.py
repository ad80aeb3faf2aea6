"""Watching files: a daemon thread looks at their times, so that a save is seen without any help of the
system. Nothing is sent to the terminal while nothing changes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping

INTERVAL = 0.5
"""Seconds between two looks."""


Stamp = tuple[int, int, int]
"""A file's time, size and number; zeros where it is not there."""


def stamps(files: Iterable[str]) -> dict[str, Stamp]:
    """The stamp of each file."""
    found: dict[str, Stamp] = {}
    for file in files:
        try:
            status = os.stat(file)
            found[file] = (status.st_mtime_ns, status.st_size, status.st_ino)
        except (OSError, ValueError):
            found[file] = (0, 0, 0)
    return found


class Watcher:
    """Calls `on_change` (in its thread) with the files that changed. A save of several files, or one in
    several steps, is reported once it has been quiet for one look."""

    def __init__(
        self,
        files: Callable[[], Iterable[str]],
        on_change: Callable[[list[str]], None],
        interval: float = INTERVAL,
        seen: Mapping[str, Stamp] | None = None,
        gone: bool = False,
    ) -> None:
        """`files` is asked at each look; `seen` are files as they were before this one; `gone`: those that are not
        there any more are reported, too."""
        self._files = files
        self._on_change = on_change
        self._interval = interval
        self._gone = gone
        self._ended = threading.Event()
        self._seen = {**stamps(files()), **(seen or {})}
        self._thread = threading.Thread(target=self._watch, name="tui-watcher", daemon=True)

    def start(self) -> None:
        """Look from now on."""
        self._thread.start()

    @property
    def count(self) -> int:
        """How many files there are to look at."""
        return len(self._seen)

    def saw(self, seen: Mapping[str, Stamp]) -> None:
        """Files to be looked at from now on, as they were before this look; called from `on_change`."""
        self._seen = {**self._seen, **seen}

    def stop(self) -> None:
        """Look no more; returns at once."""
        self._ended.set()

    def _watch(self) -> None:
        pending: set[str] = set()
        while not self._ended.wait(self._interval):
            now = stamps(self._files())
            changed = {file for file, stamp in now.items() if self._seen.get(file, stamp) != stamp}
            self._seen = {**self._seen, **now}
            pending |= changed
            if pending and not changed:
                told = sorted(file for file in pending if file in now and (self._gone or now[file][2]))
                pending = set()
                if told and not self._ended.is_set():
                    self._on_change(told)
