"""What a run costs headless, beside what its work costs without it (design.md, Budgets): ratios of runs that take
turns, so that they hold while the machine does other things. `pytest -m benchmark -n 0 -s tests/benchmarks`.

Peers, where they are named, stand beside it (`tests.benchmarks.peers` says how they are installed):

    BENCHMARK_PROMPTFOO=node_modules/.bin/promptfoo BENCHMARK_INSPECT=venv/bin/inspect pytest -m benchmark …
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.benchmarks import peers
from tests.benchmarks.support import Cost, in_turns, measure, mock, openai, project, ratio, tell, tui_eval

pytestmark = pytest.mark.benchmark

IMPORTS = [sys.executable, "-c", "import textual, httpx, yaml"]
SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}}}


def compared(
    capfd: object, title: str, costs: Mapping[str, list[Cost]], base: str, figure: str, budget: float
) -> None:
    """Print a figure of each command as a multiple of the `base`'s, and hold ours against its budget."""
    tell(capfd, f"{title}, {figure}:")
    for name, own in costs.items():
        middle = sorted(getattr(cost, figure) for cost in own)[len(own) // 2]
        failed = sum(cost.code != 0 for cost in own)
        remark = f" (ended with an error in {failed} of {len(own)} runs)" if failed else ""
        times = ratio(own, costs[base], figure)
        tell(capfd, f"    {name:<20} {times:6.2f} ×   {middle:6.2f} s{remark}")
    assert {cost.code for cost in costs["tui-eval"]} == {0}
    assert ratio(costs["tui-eval"], costs[base], figure) <= budget


def beside(
    folder: Path, url: str, cases: int, connections: int
) -> dict[str, tuple[Sequence[str | Path], Path]]:
    """The same requests by aiohttp alone, by tui-eval, and by the peers that are named: commands and folders."""
    tools = {"aiohttp script": peers.plain, "tui-eval": peers.ours, **peers.named(os.environ)}
    found: dict[str, tuple[Sequence[str | Path], Path]] = {}
    for name, tool in tools.items():
        own = folder / name.replace(" ", "_")
        own.mkdir(parents=True)
        found[name] = tool(own, url, cases, connections), own
    return found


@pytest.mark.parametrize("pieces", ["4", "20"])
def test_cpu_of_1000_cases_that_stream(tmp_path: Path, capfd: object, pieces: str) -> None:
    with mock("openai", "--chunks", pieces) as url:
        costs = in_turns(beside(tmp_path, url, 1000, 32))
    title = f"1,000 cases streamed in {pieces} pieces, agent of 0 ms, 32 connections"
    compared(capfd, title, costs, "aiohttp script", "cpu", 2.0)


def test_wall_of_1000_cases_of_a_slow_agent(tmp_path: Path, capfd: object) -> None:
    with mock("openai", "--delay", "0.2") as url:
        costs = in_turns(beside(tmp_path, url, 1000, 100), times=3)
    compared(capfd, "1,000 cases, agent of 200 ms, 100 connections", costs, "aiohttp script", "wall", 1.25)


def test_one_case_start_to_end(tmp_path: Path, capfd: object) -> None:
    with mock("openai") as url:
        costs = in_turns({"imports": (IMPORTS, tmp_path), **beside(tmp_path, url, 1, 1)}, times=7)
    compared(capfd, "one case, beside importing textual, httpx and yaml", costs, "imports", "wall", 1.8)


def test_one_case_with_a_json_schema(tmp_path: Path, capfd: object) -> None:
    test = {"vars": {"q": '{"a": 1}'}, "assert": [{"type": "is-json", "value": SCHEMA}]}
    suite = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": [test]}
    (tmp_path / "promptfooconfig.json").write_text(json.dumps(suite))
    commands = {"imports": (IMPORTS, tmp_path), "tui-eval": (tui_eval("run", "."), tmp_path)}
    compared(
        capfd,
        "one case with a JSON schema, beside the same",
        in_turns(commands, times=7),
        "imports",
        "wall",
        1.8,
    )


def test_memory_of_a_finished_attempt(tmp_path: Path, capfd: object) -> None:
    """How much more 50,000 echo cases of a table take than 5,000, at the peak."""
    peak: list[float] = []
    for cases in (5_000, 50_000):
        folder = tmp_path / str(cases)
        folder.mkdir()
        lines = (f"question number {i},contains:number {i}\n" for i in range(cases))
        (folder / "tests.csv").write_text("q,__expected\n" + "".join(lines))
        suite = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": "file://tests.csv"}
        (folder / "promptfooconfig.json").write_text(json.dumps(suite))
        cost = measure(tui_eval("run", ".", "-j", "32", "--display", "none"), folder)
        assert cost.code == 0, (folder / "measured.log").read_text()[-2000:]
        peak.append(cost.memory)
    each = (peak[1] - peak[0]) * 1024 / 45_000
    tell(capfd, f"50,000 echo cases beside 5,000: {each:.2f} kB an attempt at the peak ({peak[1]:.0f} MB)")
    assert each <= 2.0


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra ray")
def test_ray_beside_here(tmp_path: Path, capfd: object) -> None:
    """Start included: a run of one case says how long Ray takes to begin."""
    with mock("openai") as url:
        folder = project(tmp_path / "many", 5000, openai(url))
        single = project(tmp_path / "one", 1, openai(url))
        here = tui_eval("run", ".", "-j", "64")
        costs = in_turns(
            {
                "here": (here, folder),
                "ray": ([*here, "--on", "ray"], folder),
                "here, one case": (here, single),
                "ray, one case": ([*here, "--on", "ray"], single),
            },
            times=2,
        )
    walls = {name: min(cost.wall for cost in own) for name, own in costs.items()}
    gain = (walls["here"] - walls["here, one case"]) / (walls["ray"] - walls["ray, one case"])
    tell(
        capfd, f"5,000 cases on Ray beside here, 64 connections, start-up apart: {gain:.2f} × the throughput"
    )
    assert {cost.code for own in costs.values() for cost in own} == {0}
