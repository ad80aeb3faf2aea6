"""What sorting, filtering and marking 100,000 cases does to the keys (issue 5), through a pty."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest

from tests.benchmarks.support import tell
from tests.benchmarks.test_app import Screen, started

pytestmark = pytest.mark.benchmark


def pauses(screen: Screen, keys: str, seconds: float = 2.5) -> float:
    """Milliseconds that a cursor key waited for its paint at worst while these keys were worked on. Always
    down: of a `j` and a `k` that are handled before either is painted nothing is left to paint."""
    screen.send(keys)
    worst, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        screen.send("j")
        assert screen.take(3.0), "a key painted nothing"
        worst = max(worst, (time.perf_counter() - began) * 1000)
        screen.drain(0.03)
    return worst


def test_sort_filter_and_mark_100_000_cases(tmp_path: Path, capfd: object) -> None:
    rows = "".join(f"question {i},answer {i}\n" for i in range(100_000))
    (tmp_path / "tests.csv").write_text(f"question,answer\n{rows}")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{question}}']\nproviders: [echo]\ntests: tests.csv\n"
    )
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    with started(["."], tmp_path) as screen:
        screen.shown(b"100,000")
        screen.settle(1.0)
        screen.send("jj")
        screen.settle(0.5)
        sort = max(pauses(screen, "s") for _ in range(4))
        first = max(pauses(screen, "i") for _ in range(2))
        screen.send("f7")
        screen.settle(1.0)
        screen.send("\x1577\r")
        filtered = pauses(screen, "")
        screen.send("F")
        screen.settle(1.0)
        marks: list[float] = []
        for _ in range(60):
            began = time.perf_counter()
            screen.send(" ")
            assert screen.take(2.0)
            marks.append((time.perf_counter() - began) * 1000)
            screen.drain(0.05)
    marks.sort()
    tell(
        capfd,
        f"100,000 cases: a key waits at most {sort:.0f} ms while they are sorted, {first:.0f} ms for failures "
        f"first, {filtered:.0f} ms for a filter; space: median {statistics.median(marks):.1f} ms, "
        f"p99 {marks[int(len(marks) * 0.99)]:.1f} ms",
    )
    assert max(sort, first, filtered) <= 150 and marks[int(len(marks) * 0.99)] <= 50
