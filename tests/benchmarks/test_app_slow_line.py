"""The app over a slow line: 150 ms there and back, 64 kB/s (issue 5), by a relay of our own."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.benchmarks.figures import Figures
from tests.benchmarks.support import ROOT
from tests.benchmarks.test_app import SECTION
from tests.support.live_run import LiveRun, project
from tests.support.terminal import Terminal

pytestmark = pytest.mark.benchmark
DELAY = 0.075
"""Seconds in each direction."""
RATE = 64_000
"""Bytes a second to the person."""


class SlowTerminal(Terminal):
    """What the program writes arrives late and slowly, and so do keys; the program itself waits when the
    line is full, as over ssh."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            [sys.executable, "-m", "tui_eval", "."],
            folder,
            (80, 24),
            PYTHONPATH=str(ROOT),
            XDG_STATE_HOME=str(folder / ".state"),
            XDG_CONFIG_HOME=str(folder / ".config"),
        )
        self._arriving: deque[tuple[float, bytes]] = deque()
        self._stop = threading.Event()
        self.carried = 0
        threading.Thread(target=self._carry, daemon=True).start()

    def _carry(self) -> None:
        while not self._stop.is_set():
            if not select.select([self.handle], [], [], 0.05)[0]:
                continue
            try:
                data = os.read(self.handle, 2048)
            except OSError:
                return
            self._stop.wait(len(data) / RATE)
            self.carried += len(data)
            self._arriving.append((time.perf_counter() + DELAY, data))

    def read(self, seconds: float) -> bytes:
        """What arrives within this time."""
        got = b""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            while self._arriving and self._arriving[0][0] <= time.perf_counter():
                data = self._arriving.popleft()[1]
                self.stream.feed(data)
                got += data
            if got:
                break
            self._stop.wait(0.002)
        self.output += got
        return got

    def pressed(self, keys: str, shows: str) -> float:
        """Seconds from a key press until the person sees this."""
        assert shows not in self.text, "it is seen before the key"
        began = time.perf_counter()
        threading.Timer(DELAY, lambda: self.send(keys)).start()
        while shows not in self.text:
            assert time.perf_counter() - began < 20, self.text
            self.read(0.01)
        return time.perf_counter() - began

    def close(self) -> None:
        """End it."""
        self._stop.set()
        super().close()


@contextmanager
def slow(folder: Path) -> Iterator[SlowTerminal]:
    terminal = SlowTerminal(folder)
    try:
        yield terminal
    finally:
        terminal.close()


def test_why_the_first_case_failed_in_three_keys(tmp_path: Path, figures: Figures) -> None:
    project(tmp_path)
    LiveRun(tmp_path, ["greets by name", "refund is approved"]).all_done(["passed", "failed"])
    with slow(tmp_path) as line:
        began = time.perf_counter()
        while "refund is approved" not in line.text:
            line.read(0.01)
            assert time.perf_counter() - began < 20, line.text
        opened = time.perf_counter() - began
        line.quiet(0.5)
        painted = line.carried
        line.send("]")
        line.quiet(0.4)
        before = line.carried
        waits = [line.pressed("\r", "Transcript")]
        sent = line.carried - before
        line.quiet(0.4)
        waits.append(line.pressed("\x1b", "a run all"))
        line.quiet(0.4)
        carried = line.carried
    shares = [max(0.0, wait - 2 * DELAY) * 1000 for wait in waits]
    own = shares[0] - sent / RATE * 1000
    line_of = "over a line of 150 ms and 64 kB/s"
    figures.add(
        SECTION, f"{line_of}: cases seen after", f"{opened:.2f} s ({painted / 1000:.1f} kB)", timed=True
    )
    figures.add(
        SECTION,
        f"{line_of}: from `enter` to why the case failed, and back, beyond the line's own 150 ms",
        f"{', '.join(f'{share:.0f}' for share in shares)} ms (of the first, {own:.0f} ms without the "
        f"{sent / 1000:.1f} kB on the line)",
        "300 ms",
        max(shares) <= 300,
        timed=True,
    )
    figures.add(SECTION, f"{line_of}: bytes of all of it", f"{carried / 1000:.1f} kB")
    figures.hold()
