"""What Ray on this machine brings against the engine's own loop (design.md, Budgets): throughput, and the engine's part."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")

from tests.benchmarks.support import mock, openai, project, tell, tui_eval
from tui_eval.store.reader import RunReader

pytestmark = pytest.mark.benchmark
CASES = 4000
AT_ONCE = 32
WORKERS = 2
FREE = 2 * WORKERS
"""Processors from which on two workers have theirs, beside the engine, Ray and the server."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Driven:
    """Attempts a second from the first's beginning to the last's end, and ms of the engine's process alone for each."""

    throughput: float
    cpu: float


def driven(folder: Path, *options: str) -> Driven:
    """A run to its end; starting Ray, and Python, does not count."""
    before = set(folder.glob(".tui-eval/runs/*"))
    with (folder / "measured.log").open("wb") as log:
        process = subprocess.Popen(
            tui_eval("run", ".", "--trust", "-j", str(AT_ONCE), *options), cwd=folder, stdout=log, stderr=log
        )
        seconds = 0.0
        while process.poll() is None:
            seconds = max(seconds, _own_seconds(process.pid))
            time.sleep(0.05)
    assert process.returncode == 0, (folder / "measured.log").read_text()[-2000:]
    (made,) = set(folder.glob(".tui-eval/runs/*")) - before
    with closing(RunReader(made)) as reader:
        rows = reader.attempts()
    begun = [row.started_at or 0.0 for row in rows]
    ended = [(row.started_at or 0.0) + (row.duration_ms or 0.0) / 1000 for row in rows]
    return Driven(len(rows) / (max(ended) - min(begun)), seconds * 1000 / len(rows))


def _own_seconds(process: int) -> float:
    """CPU of a process without its children's."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


@pytest.mark.parametrize("agent", ["echo", "a server that answers at once"])
def test_ray_against_here(tmp_path: Path, capfd: object, agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if "proxy" in name.lower()]:
        monkeypatch.delenv(name)
    with mock("openai") as url:
        config = "agents:\n  bot: {type: echo}\n" if agent == "echo" else openai(url)
        folder = project(tmp_path, CASES, config)
        here, ray = driven(folder), driven(folder, "--on", "ray")
    ratio = ray.throughput / here.throughput
    tell(
        capfd,
        f"{CASES:,} cases, {agent}, -j {AT_ONCE}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}: here "
        f"{here.throughput:.0f} a second, {here.cpu:.2f} ms of the engine's CPU; ray {ray.throughput:.0f}, {ray.cpu:.2f} ms: "
        f"{ratio:.2f} ×",
    )
    assert ray.cpu <= 0.4 + 2000 / CASES  # with up to 2 s for its start
    if (os.cpu_count() or 1) >= FREE:
        assert ratio >= 1.6
