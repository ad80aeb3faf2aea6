"""What people's code prints, kept call by call; imported only by `python_worker`, from its own folder, and by
neuro-san's worker, in whichever Python that runs."""

from __future__ import annotations

import contextvars
import fcntl
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

PRINT_LIMIT = 1_000_000
"""Characters of printed text kept of one call."""


class Printed:
    """What one call has printed. `spoke` is set where there is something to be taken."""

    def __init__(self, spoke: threading.Event | None = None) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._spoke = spoke
        self._lock = threading.Lock()

    def write(self, text: str) -> None:
        """Keep a text, as far as there is room."""
        with self._lock:
            room = PRINT_LIMIT - self._length
            if room <= 0:
                return
            self._pieces.append(text[:room])
            self._length += len(text)
            if self._length > PRINT_LIMIT:
                self._pieces.append("\n… (more was printed)\n")
        if self._spoke is not None:
            self._spoke.set()

    def take(self) -> str:
        """What was printed since it was last taken."""
        with self._lock:
            text, self._pieces = "".join(self._pieces), []
        return text


current: contextvars.ContextVar[Printed | None] = contextvars.ContextVar("printed", default=None)
"""The call that runs in this context."""


class Stdout(io.TextIOBase):
    """`sys.stdout` of people's code: to the call it belongs to."""

    encoding = "utf-8"

    def __init__(self, otherwise: Callable[[], Printed | None]) -> None:
        """`otherwise` says which call prints where the context does not tell."""
        self._otherwise = otherwise

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        target = current.get() or self._otherwise()
        if target is not None:
            target.write(str(text))
        return len(text)

    def fileno(self) -> int:
        return 1

    @property
    def buffer(self) -> Any:
        return sys.__stdout__.buffer if sys.__stdout__ is not None else None


class Descriptors:
    """Programs and C code print to the descriptors: they go to a file, read after each call."""

    def __init__(self) -> None:
        file, path = tempfile.mkstemp(prefix="tui-eval-")
        os.unlink(path)
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(file, 1)
        os.dup2(file, 2)
        self._file = file

    def take(self) -> str:
        """What was printed since it was last taken."""
        if not os.fstat(self._file).st_size:
            return ""
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            raw = os.pread(self._file, PRINT_LIMIT, 0)
            os.ftruncate(self._file, 0)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)
        return raw.decode("utf-8", "replace")

    def last(self) -> bytes:
        """The end of what was printed, which is not taken by that."""
        size = os.fstat(self._file).st_size
        return os.pread(self._file, 4096, max(0, size - 4096))

    def cut(self) -> None:
        """Give back what is beyond the limit: a program can fill the disk before its call has ended. To be
        called from another process than `take`, from time to time."""
        if os.fstat(self._file).st_size <= 4 * PRINT_LIMIT:
            return
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            if os.fstat(self._file).st_size > PRINT_LIMIT:
                os.ftruncate(self._file, PRINT_LIMIT)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)
