"""A real pseudo-terminal with a program on it, and the screen that the program paints."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from pathlib import Path

import pyte

from tests.support import ROOT

ENTERED, LEFT = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """`command` on a pty of `size` (columns, lines). Output is read by `read` and `until`."""

    def __init__(
        self, command: list[str], cwd: Path, size: tuple[int, int] = (80, 24), **environment: str
    ) -> None:
        self.screen = pyte.Screen(*size)
        self.stream = pyte.ByteStream(self.screen)
        self.output = b""
        self._at_end = False
        values = {
            **os.environ,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "PYTHONPATH": str(ROOT),
            "PYTHONUTF8": "1",
            **environment,
        }
        # COLUMNS and LINES, which pytest-xdist sets, would hide every resize.
        for name in {"TEXTUAL_FPS", "NO_COLOR", "COLUMNS", "LINES"} - set(environment):
            values.pop(name, None)
        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                os.execvpe(command[0], command, values)
            finally:
                os._exit(127)
        fcntl.ioctl(self.handle, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.status: int | None = None

    def read(self, seconds: float) -> bytes:
        """What comes within this time."""
        got = b""
        if self.handle < 0:
            time.sleep(seconds)
            return got
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.handle], [], [], min(left, 0.1))[0]:
                continue
            try:
                data = os.read(self.handle, 65536)
            except OSError:
                data = b""
            if not data:
                self._at_end = True
                break
            got += data
            self.stream.feed(data)
        self.output += got
        return got

    def until(self, text: str, seconds: float = 60.0) -> None:
        """Read until this is on the screen."""
        end = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < end, f"{text!r} did not appear:\n{self.text}\n{self.output[-2000:]!r}"
            self.read(0.05)

    def quiet(self, seconds: float = 1.0, at_most: float = 60.0) -> None:
        """Read until nothing has come for a while."""
        end = time.monotonic() + at_most
        while self.read(seconds):
            assert time.monotonic() < end, "never quiet"

    def send(self, keys: str | bytes) -> None:
        """Press keys; bytes are sent as they are."""
        os.write(self.handle, keys.encode() if isinstance(keys, str) else keys)

    def press(self, keys: str, reports: Path, seconds: float = 60.0) -> None:
        """Press keys, and read until the program has dealt with each (see `reporting`)."""
        expected = reports.stat().st_size + len(keys)
        self.send(keys)
        end = time.monotonic() + seconds
        while reports.stat().st_size < expected:
            assert time.monotonic() < end, f"{keys!r} was not dealt with:\n{self.text}"
            self.read(0.02)
        self.quiet(0.02)

    @property
    def text(self) -> str:
        """The screen."""
        # Not `screen.display`: it raises (pyte 0.8.2) on the half of a wide character whose other half was
        # written over.
        rows = (self.screen.buffer[y] for y in range(self.screen.lines))
        return "\n".join("".join(row[x].data for x in range(self.screen.columns)).rstrip() for row in rows)

    def kill(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def wait(self, seconds: float = 60.0) -> int:
        """Read to the end; the exit code, or minus the signal."""
        end = time.monotonic() + seconds
        while self.status is None:
            assert time.monotonic() < end, f"it did not end:\n{self.text}"
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._rest()
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def _rest(self) -> None:
        """What it wrote last may still be on its way on a busy machine: read until nobody can write any more,
        or, where a program it started still could, for a moment."""
        end = time.monotonic() + 2
        while not self._at_end and self.handle >= 0 and time.monotonic() < end:
            self.read(0.05)

    def close(self) -> None:
        """End it, whatever it does."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.hang_up()

    def hang_up(self) -> None:
        """Take the terminal away from the program."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1
