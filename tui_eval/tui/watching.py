"""Watching files: a daemon thread looks at their times, so that a save is seen without any help of the
system. Nothing is sent to the terminal while nothing changes."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tui_eval.guard.paths import read_plain

_LOOKED_INTO = 16 * 1024 * 1024
"""Bytes of a file that are compared; a save of a larger one counts whatever it holds."""
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


def _content(file: str) -> bytes | None:
    """A digest of what a file holds; None where that is too much, or cannot be read."""
    try:
        read = read_plain(Path(os.path.realpath(file)), _LOOKED_INTO + 1)
    except (OSError, ValueError):
        return None
    return hashlib.blake2b(read, digest_size=16).digest() if len(read) <= _LOOKED_INTO else None


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
        by_content: bool = False,
    ) -> None:
        """`files` is asked at each look; `seen` are files as they were before this one; `gone`: those that are not
        there any more are reported, too; `by_content`: saves that change no bytes are left out, and where all are,
        nothing is what changed."""
        self._files = files
        self._on_change = on_change
        self._interval = interval
        self._gone = gone
        self._contents: dict[str, bytes | None] | None = {} if by_content else None
        self._ended = threading.Event()
        self._seen = {**stamps(files()), **(seen or {})}
        self._look_into(self._seen)
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
            new = {file: stamp for file, stamp in now.items() if file not in self._seen}
            self._seen = {**self._seen, **now}
            self._look_into(new)
            pending |= changed
            if pending and not changed:
                told = sorted(file for file in pending if file in now and (self._gone or now[file][2]))
                pending = set()
                if told and not self._ended.is_set():
                    self._on_change(self._otherwise(told))

    def _look_into(self, seen: Mapping[str, Stamp]) -> None:
        """Know what files hold, unless they were saved since they were seen so."""
        if self._contents is not None:
            for file, stamp in seen.items():
                content = _content(file)
                if stamps([file])[file] == stamp:
                    self._contents[file] = content

    def _otherwise(self, files: list[str]) -> list[str]:
        """Those that hold something else than when they were looked into last."""
        contents = self._contents
        if contents is None:
            return files
        now = {file: _content(file) for file in files}
        changed = [file for file in files if now[file] is None or now[file] != contents.get(file)]
        contents.update(now)
        return changed
