"""What a run costs headless, beside what its work costs without it (design.md, Budgets): ratios of runs that take
turns, so that they hold while the machine does other things. Peers stand beside it where they are installed
(`tests.benchmarks.peers`)."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.benchmarks import peers
from tests.benchmarks.figures import Figures
from tests.benchmarks.support import Cost, in_turns, measure, mock, ratio, tui_eval
from tui_eval.store.reader import RunReader

pytestmark = pytest.mark.benchmark

TOOLS, RUN = "The same suite in three tools", "A run"
IMPORTS = [sys.executable, "-c", "import textual, httpx, yaml"]
SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}}}
PEERS = 1
"""Turns in which peers take part: they need ten and twenty times as long. One is enough to say so."""


def beside(
    folder: Path, url: str, cases: int, connections: int, others: Mapping[str, peers.Tool]
) -> dict[str, tuple[Sequence[str | Path], Path]]:
    """The same requests by aiohttp alone, by tui-eval, and by others: commands and folders."""
    tools = {"aiohttp script": peers.plain, "tui-eval": peers.ours, **others}
    found: dict[str, tuple[Sequence[str | Path], Path]] = {}
    for name, tool in tools.items():
        own = folder / name.replace(" ", "_")
        own.mkdir(parents=True)
        found[name] = tool(own, url, cases, connections), own
    return found


def compared(
    figures: Figures, load: str, costs: Mapping[str, list[Cost]], base: str, figure: str, budget: float
) -> None:
    """Every command's cost as a multiple of the `base`'s, and ours against its budget."""
    for name, own in costs.items():
        if name == base:
            continue
        failed = sum(cost.code != 0 for cost in own)
        middle = {kind: statistics.median(getattr(cost, kind) for cost in own) for kind in ("wall", "cpu")}
        words = (
            f"{ratio(own, costs[base], figure):.2f} × the {base}'s {'CPU' if figure == 'cpu' else 'time'} ("
            f"{middle['wall']:.2f} s, CPU {middle['cpu']:.2f} s); {max(cost.memory for cost in own):.0f} MB"
            f"{f'; ended with an error in {failed} of {len(own)} runs' if failed else ''}"
        )
        if name == "tui-eval":
            held = ratio(own, costs[base], figure) <= budget
            figures.add(TOOLS, f"{load}: {name}", words, f"{budget} ×", held)
        else:
            figures.add(TOOLS, f"{load}: {name}", words)
    assert {cost.code for cost in costs["tui-eval"]} == {0}
    figures.hold()


def others(figures: Figures) -> dict[str, peers.Tool]:
    """The peers that are here; of the others it is said that they are not."""
    tools, absent = peers.found(os.environ)
    for line in absent:
        figures.skip(line)
    return tools


@pytest.mark.parametrize("pieces", ["4", "20"])
def test_cpu_of_1000_cases_that_stream(tmp_path: Path, figures: Figures, pieces: str) -> None:
    tools = others(figures) if pieces == "4" else {}
    with mock("openai", "--chunks", pieces) as url:
        costs = in_turns(beside(tmp_path, url, 1000, 32, tools), times=15, fewer=dict.fromkeys(tools, PEERS))
    load = f"1,000 cases streamed in {pieces} pieces, agent of 0 ms, 32 connections"
    compared(figures, load, costs, "aiohttp script", "cpu", 2.0)


def test_wall_of_1000_cases_of_a_slow_agent(tmp_path: Path, figures: Figures) -> None:
    tools = others(figures)
    with mock("openai", "--delay", "0.2") as url:
        costs = in_turns(beside(tmp_path, url, 1000, 100, tools), fewer=dict.fromkeys(tools, PEERS))
    load = "1,000 cases, agent of 200 ms, 100 connections"
    compared(figures, load, costs, "aiohttp script", "wall", 1.25)


def test_one_case_start_to_end(tmp_path: Path, figures: Figures) -> None:
    tools = others(figures)
    with mock("openai") as url:
        commands = {"imports": (IMPORTS, tmp_path), **beside(tmp_path, url, 1, 1, tools)}
        costs = in_turns(commands, times=7, fewer=dict.fromkeys(tools, PEERS))
    del costs["aiohttp script"]
    compared(figures, "one case, beside importing textual, httpx and yaml", costs, "imports", "wall", 1.8)


def test_one_case_with_a_json_schema(tmp_path: Path, figures: Figures) -> None:
    test = {"vars": {"q": '{"a": 1}'}, "assert": [{"type": "is-json", "value": SCHEMA}]}
    suite = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": [test]}
    (tmp_path / "promptfooconfig.json").write_text(json.dumps(suite))
    commands = {"imports": (IMPORTS, tmp_path), "tui-eval": (tui_eval("run", "."), tmp_path)}
    costs = in_turns(commands, times=7)
    compared(figures, "one case with a JSON schema, beside the same", costs, "imports", "wall", 1.8)


def echo_cases(folder: Path, cases: int) -> Path:
    """A table of so many questions that are repeated."""
    folder.mkdir()
    lines = (f"question number {i},contains:number {i}\n" for i in range(cases))
    (folder / "tests.csv").write_text("q,__expected\n" + "".join(lines))
    suite = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": "file://tests.csv"}
    (folder / "promptfooconfig.json").write_text(json.dumps(suite))
    (folder / "tui_eval.yaml").write_text("{}\n")
    return folder


def test_memory_of_a_finished_attempt(tmp_path: Path, figures: Figures) -> None:
    """While a run goes on: how much more the engine holds with most of 50,000 attempts done than with a tenth of them,
    of the same run, so that what the plan takes does not count."""
    cases = 50_000
    folder = echo_cases(tmp_path / "cases", cases)
    with (folder / "measured.log").open("wb") as log:
        process = subprocess.Popen(
            tui_eval("run", ".", "-j", "32", "--display", "none"), cwd=folder, stdout=log, stderr=log
        )
        seen: list[tuple[int, float]] = []
        while process.poll() is None:
            time.sleep(0.2)
            if runs := list(folder.glob(".tui-eval/runs/*/run.db")):
                with closing(RunReader(runs[0].parent)) as reader:
                    done = len(reader.ended())
                if memory := held(process.pid):
                    seen.append((done, memory))
    assert process.returncode == 0, (folder / "measured.log").read_text()[-2000:]
    early = min(seen, key=lambda one: abs(one[0] - cases * 0.1))
    late = min(seen, key=lambda one: abs(one[0] - cases * 0.9))
    each = (late[1] - early[1]) / (late[0] - early[0])
    figures.add(
        RUN,
        f"memory held per finished attempt while {cases:,} echo cases go on",
        f"{each:.2f} kB (from {early[0]:,} to {late[0]:,} done)",
        "2 kB",
        each <= 2.0,
    )
    figures.hold()


WAYS = {
    "nothing printed": ("--display", "none"),
    "tables printed": ("--display", "plain"),
    "one shard of two": ("--display", "none", "--shard", "1/2"),
    **{
        f"with {kind}": ("--display", "none", "-o", f"r.{kind}")
        for kind in ("json", "promptfoo.json", "junit.xml", "html")
    },
}
"""What is asked of a run of many cases: options, by what a report calls them."""


@pytest.mark.parametrize("way", WAYS)
def test_memory_of_a_case_at_the_peak(tmp_path: Path, figures: Figures, way: str) -> None:
    """Plan, attempts, tables and files at the end together: how much more 50,000 echo cases take than 5,000."""
    peak: list[float] = []
    share = 2 if "--shard" in WAYS[way] else 1
    for cases in (5_000, 50_000):
        folder = echo_cases(tmp_path / str(cases), cases * share)
        cost = measure(tui_eval("run", ".", "-j", "32", *WAYS[way]), folder)
        assert cost.code == 0, (folder / "measured.log").read_text()[-2000:]
        peak.append(cost.memory)
    each = (peak[1] - peak[0]) * 1024 / 45_000
    million = (peak[0] + each * 995_000 / 1024) / 1024
    figures.add(
        RUN,
        f"memory of a case at the peak, 50,000 echo cases beside 5,000, {way}",
        f"{each:.2f} kB ({peak[0]:.0f} and {peak[1]:.0f} MB; a million: {million:.1f} GB)",
        # A shard reads the rows of the whole, and remembers the ids of all its cases beside its own.
        "2 kB" if share == 1 else "",
        each <= 2.0 if share == 1 else None,
    )
    figures.hold()


def held(process: int) -> float:
    """Resident kB of a process; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0.0)
