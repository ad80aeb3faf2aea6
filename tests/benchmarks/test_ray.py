"""What Ray on this machine brings against the engine's own loop (design.md, Budgets): throughput, and the
engine's part."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")

from tests.benchmarks.figures import Figures
from tests.benchmarks.support import mock, openai, project, tui_eval
from tui_eval.store.reader import RunReader

pytestmark = pytest.mark.benchmark
SECTION = "Ray on this machine"
CASES = 4000
WEIGHTY, WORDS = 600, 2000
AT_ONCE = 32
WORKERS = 2
FREE = 2 * WORKERS
"""Processors from which on two workers have theirs, beside the engine, Ray and the server."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Driven:
    """Attempts a second once a tenth of them has ended (the second worker's start is as little an attempt's as the
    first one's), and ms of the engine's process alone for each of all."""

    throughput: float
    cpu: float


def driven(folder: Path, *options: str) -> Driven:
    """A run to its end; what comes before its first attempt (Python, the suite, Ray's start) does not count."""
    before = set(folder.glob(".tui-eval/runs/*"))
    with (folder / "measured.log").open("wb") as log:
        process = subprocess.Popen(
            tui_eval("run", ".", "--trust", "-j", str(AT_ONCE), *options), cwd=folder, stdout=log, stderr=log
        )
        spent: list[tuple[float, float]] = []
        while process.poll() is None:
            if seconds := _own_seconds(process.pid):
                spent.append((time.time(), seconds))
            time.sleep(0.05)
    assert process.returncode == 0, (folder / "measured.log").read_text()[-2000:]
    (made,) = set(folder.glob(".tui-eval/runs/*")) - before
    with closing(RunReader(made)) as reader:
        rows = reader.attempts()
    begun = [row.started_at or 0.0 for row in rows]
    ended = sorted((row.started_at or 0.0) + (row.duration_ms or 0.0) / 1000 for row in rows)
    before_it = max(seconds for at, seconds in spent if at <= min(begun))
    own = spent[-1][1] - before_it
    tenth = len(ended) // 10
    return Driven((len(ended) - tenth) / (ended[-1] - ended[tenth - 1]), own * 1000 / len(rows))


def _own_seconds(process: int) -> float:
    """CPU of a process without its children's."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's own connections do not go through a proxy."""
    for name in [name for name in os.environ if "proxy" in name.lower()]:
        monkeypatch.delenv(name)


def beside(figures: Figures, folder: Path, what: str, *, always: bool) -> None:
    """A project's run here and on Ray. The gain has a budget where there is a processor for every part, or
    `always`: where attempts weigh, whose answers are larger than those of the engine's own budget."""
    here, ray = driven(folder), driven(folder, "--on", "ray")
    gain = ray.throughput / here.throughput
    owed = always or (os.cpu_count() or 1) >= FREE
    figures.add(
        SECTION,
        f"{what}: throughput with two workers, beside here",
        f"{gain:.2f} × ({ray.throughput:,.0f} and {here.throughput:,.0f} attempts a second)",
        "1.6 ×" if owed else f"1.6 × from {FREE} processors on",
        gain >= 1.6 if owed else None,
    )
    figures.add(
        SECTION,
        f"{what}: CPU of the engine's own process an attempt",
        f"{ray.cpu:.2f} ms (here {here.cpu:.2f} ms)",
        "" if always else "0.4 ms",
        None if always else ray.cpu <= 0.4,
    )


@pytest.mark.parametrize("agent", ["echo", "a server that answers at once"])
def test_attempts_that_cost_next_to_nothing(tmp_path: Path, figures: Figures, agent: str) -> None:
    with mock("openai") as url:
        config = "agents:\n  bot: {type: echo}\n" if agent == "echo" else openai(url)
        folder = project(tmp_path, CASES, config)
        beside(figures, folder, f"{CASES:,} cases, {agent}, -j {AT_ONCE}", always=False)
    figures.hold()


def test_attempts_whose_judging_weighs(tmp_path: Path, figures: Figures) -> None:
    """What an attempt's own work costs is shared by the workers; the engine's and Ray's part stays what it is."""
    draw = random.Random(5)
    words = [f"word{number}" for number in range(300)]

    def text() -> str:
        return " ".join(draw.choices(words, k=WORDS))

    judged = [{"type": kind, "value": text(), "threshold": 0.0} for kind in ("rouge-n", "bleu", "gleu")]
    tests = [{"vars": {"said": f"{number} {text()}"}} for number in range(WEIGHTY)]
    suite = {
        "prompts": ["{{said}}"], "providers": ["echo"], "tests": tests, "defaultTest": {"assert": judged},
    }  # fmt: skip
    (tmp_path / "promptfooconfig.json").write_text(json.dumps(suite))
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    what = f"{WEIGHTY:,} answers of {WORDS:,} words, each compared with three texts, -j {AT_ONCE}"
    beside(figures, tmp_path, what, always=(os.cpu_count() or 1) >= WORKERS)
    figures.hold()
