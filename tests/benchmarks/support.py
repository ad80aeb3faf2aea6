"""Projects to measure with, servers apart, and processes whose own time is counted."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Cost:
    """What a process cost: wall and CPU seconds, peak memory in MB, exit code."""

    wall: float
    cpu: float
    memory: float
    code: int


def measure(command: Sequence[str | Path], cwd: Path) -> Cost:
    """Run to the end. CPU is that of this process alone and of the children it waited for."""
    log = cwd / "measured.log"
    # Compiled modules are kept, as they are where it is installed.
    surroundings = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with log.open("wb") as out:
        began = time.perf_counter()
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=surroundings,
        )
        peak = [0.0]
        ended = threading.Event()
        watching = threading.Thread(target=_watch_memory, args=(process.pid, peak, ended))
        watching.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        ended.set()
        watching.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(wall, usage.ru_utime + usage.ru_stime, peak[0], os.waitstatus_to_exitcode(status))


def _watch_memory(process: int, peak: list[float], ended: threading.Event) -> None:
    """The most that a process takes, in MB. What its end reports is at least what this process had when it began it."""
    while not ended.wait(0.03):
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
            most = next(line for line in lines if line.startswith("VmHWM:"))
            peak[0] = max(peak[0], float(most.split()[1]) / 1024)


def in_turns(
    commands: Mapping[str, tuple[Sequence[str | Path], Path]],
    times: int = 5,
    fewer: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, list[Cost]]:
    """What each command costs in its folder, one after the other and that several times, after a round that is not
    counted: what else the machine does meets all of them. `fewer` names those that take part only in the first turns
    that count."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for turn in range(times + 1):
        for name, (command, folder) in commands.items():
            if name in fewer and not 1 <= turn <= fewer[name]:
                continue
            cost = measure(command, folder)
            if turn:
                costs[name].append(cost)
    return costs


def ratio(costs: Sequence[Cost], base: Sequence[Cost], figure: str) -> float:
    """How many times a figure (`cpu`, `wall`, `memory`) is that of the base: the median over the turns of both."""
    return statistics.median(
        getattr(own, figure) / getattr(other, figure) for own, other in zip(costs, base, strict=False)
    )


def tui_eval(*arguments: str) -> list[str]:
    """The command line as installed beside this Python."""
    script = Path(sys.executable).with_name("tui-eval")
    return [str(script), *arguments] if script.exists() else [sys.executable, "-m", "tui_eval", *arguments]


@contextmanager
def mock(kind: str, *options: str) -> Iterator[str]:
    """A server of tests.servers in a process of its own; its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.servers", kind, *options], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(10)


def project(folder: Path, cases: int, config: str) -> Path:
    """A suite of so many cases that pass when the agent repeats what it was told."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["agent: bot", "test_cases:"]
    for i in range(cases):
        lines.append(f'  - name: "case {i}"')
        lines.append(f'    input: "question number {i}"')
        lines.append(f'    expected: {{should_contain: ["number {i}"]}}')
    (folder / "suite.yaml").write_text("\n".join(lines) + "\n")
    (folder / "tui_eval.yaml").write_text(config)
    return folder


def openai(url: str, options: str = "") -> str:
    """A configuration whose agent `bot` is the mock at `url`."""
    return f"agents:\n  bot: {{type: openai, base_url: '{url}/v1', model: mock{options}}}\n"


def many_cases(folder: Path) -> None:
    """A project of 100,000 cases, rows of a CSV file."""
    rows = "".join(f"question {i},answer {i}\n" for i in range(100_000))
    (folder / "tests.csv").write_text(f"question,answer\n{rows}")
    (folder / "promptfooconfig.yaml").write_text(
        "prompts: ['{{question}}']\nproviders: [echo]\ntests: tests.csv\n"
    )
    (folder / "tui_eval.yaml").write_text("{}\n")
