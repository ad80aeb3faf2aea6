"""What it costs to go through failures with `j` among 20,000 cases while each one's attempt is shown below the list
(issue 11, 3), through a pty."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.benchmarks.figures import Figures
from tests.benchmarks.test_app import SECTION, Screen, started
from tests.support import ROOT

pytestmark = pytest.mark.benchmark

CASES = 20_000
MOVES = 40
PAINTED = 50.0
"""Milliseconds from the key to the attempt's last byte, p95."""
BYTES = 3_000
"""Bytes of a move: the cursor's two lines, and what differs in the pane."""


def moved(screen: Screen, key: str) -> tuple[float, int]:
    """Milliseconds from a key to the last byte that it causes, and how many bytes that are."""
    began = last = time.perf_counter()
    screen.send(key)
    count = 0
    while data := screen.take(0.3):
        last = time.perf_counter()
        count += len(data)
    return (last - began) * 1000, count


def test_the_attempt_follows_the_cursor_among_20_000_failures(tmp_path: Path, figures: Figures) -> None:
    rows = "".join(f"question {i} of {i % 7} words,contains:answer {i}\n" for i in range(CASES))
    (tmp_path / "tests.csv").write_text(f"question,__expected\n{rows}")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{question}}']\nproviders: [echo]\ntests: tests.csv\n"
    )
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    command = [sys.executable, "-m", "tui_eval", "run", ".", "--display", "none", "-j", "32"]
    subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        check=False,
        timeout=600,
    )
    with started(["."], tmp_path) as screen:
        screen.shown(b"20,000", 120.0)
        screen.settle(1.5)
        screen.send("jj")
        screen.settle(1.0)
        moves = [moved(screen, "j") for _ in range(MOVES)]
        assert b"lacks" in screen.seen
    times = sorted(took for took, _ in moves)
    size = statistics.median(count for _, count in moves)
    p95 = times[int(len(times) * 0.95)]
    figures.add(
        SECTION,
        f"`j` among {CASES:,} failures: key to the attempt below painted",
        f"median {statistics.median(times):.1f} ms, p95 {p95:.1f} ms",
        f"p95 {PAINTED:.0f} ms",
        p95 <= PAINTED,
        timed=True,
    )
    figures.add(SECTION, "the same: bytes a move", f"{size:,.0f}", f"{BYTES:,}", size <= BYTES)
    figures.hold()
