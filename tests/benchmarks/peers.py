"""The same suite in tui-eval, promptfoo and Inspect, against the same server, in one go: a table.

Peers are installed apart (`npm i promptfoo`, `pip install inspect-ai openai` in an environment of its own) and
named here by their commands:

    python -m tests.benchmarks.peers --promptfoo node_modules/.bin/promptfoo --inspect venv/bin/inspect
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.support import in_turns, mock, openai, project, ratio, tui_eval

Tool = Callable[[Path, str, int, int], Sequence[str | Path]]
"""Writes the suite into a folder and gives the command: folder, server's address, cases, connections."""

_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate


@task
def same():
    samples = [Sample(input=f"question number {i}", target=f"number {i}") for i in range(CASES)]
    return Task(dataset=samples, solver=generate(), scorer=includes())
"""


@dataclass(frozen=True)
class Load:
    """So many cases, with so many connections, of an agent that takes `delay` seconds."""

    name: str
    cases: int
    connections: int
    delay: float = 0.0


LOADS = (
    Load("one case, start to end", 1, 1),
    Load("1,000 cases, agent of 0 ms, 32 connections", 1000, 32),
    Load("1,000 cases, agent of 200 ms, 100 connections", 1000, 100, 0.2),
)


def ours(folder: Path, url: str, cases: int, connections: int) -> Sequence[str]:
    """tui-eval, its store on and the reply streamed, as it is by default."""
    project(folder, cases, openai(url))
    return tui_eval("run", ".", "-j", str(connections))


def plain(folder: Path, url: str, cases: int, connections: int) -> Sequence[str | Path]:
    """The same requests without anything else: a script over aiohttp."""
    return [sys.executable, Path(__file__).with_name("plain_client.py"), url, str(cases), str(connections)]


def named(surroundings: Mapping[str, str]) -> dict[str, Tool]:
    """The peers whose commands the environment names; sets what they need to be quiet and to ask the mock."""
    tools: dict[str, Tool] = {}
    if command := surroundings.get("BENCHMARK_PROMPTFOO"):
        tools["promptfoo"] = promptfoo(str(Path(command).absolute()))
    if command := surroundings.get("BENCHMARK_INSPECT"):
        tools["Inspect"] = inspect(str(Path(command).absolute()))
    if tools:
        os.environ |= {
            "OPENAI_API_KEY": "none",
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
            "PROMPTFOO_CONFIG_DIR": tempfile.mkdtemp(prefix="promptfoo-"),
        }
    return tools


def promptfoo(command: str) -> Tool:
    """promptfoo, its cache off, its database on."""

    def prepared(folder: Path, url: str, cases: int, connections: int) -> Sequence[str]:
        config = {
            "prompts": ["{{q}}"],
            "providers": [
                {"id": "openai:chat:mock", "config": {"apiBaseUrl": f"{url}/v1", "apiKey": "none"}}
            ],
            "tests": [
                {
                    "vars": {"q": f"question number {i}"},
                    "assert": [{"type": "contains", "value": f"number {i}"}],
                }
                for i in range(cases)
            ],
        }
        (folder / "promptfooconfig.json").write_text(json.dumps(config))
        return [command, "eval", "-j", str(connections), "--no-cache", "--no-table", "--no-progress-bar"]

    return prepared


def inspect(command: str) -> Tool:
    """Inspect without its display, its log on."""

    def prepared(folder: Path, url: str, cases: int, connections: int) -> Sequence[str]:
        (folder / "same.py").write_text(_TASK.replace("CASES", str(cases)))
        os.environ["OPENAI_BASE_URL"] = f"{url}/v1"
        return [
            command, "eval", "same.py", "--model", "openai/mock", "-M", "responses_api=false", "--display", "none",
            "--max-connections", str(connections), "--max-samples", str(connections),
        ]  # fmt: skip

    return prepared


def main() -> None:
    """Measure every load with every tool that is named, in turns, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--promptfoo", metavar="COMMAND", default="")
    parser.add_argument("--inspect", metavar="COMMAND", default="")
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    others = named({"BENCHMARK_PROMPTFOO": options.promptfoo, "BENCHMARK_INSPECT": options.inspect})
    tools: dict[str, Tool] = {"aiohttp script": plain, "tui-eval": ours, **others}
    print("| load | tool | wall s | × script | CPU s | × script | memory MB |\n|---|---|---|---|---|---|---|")
    for load in LOADS:
        with tempfile.TemporaryDirectory() as temporary, mock("openai", "--delay", str(load.delay)) as url:
            commands: dict[str, tuple[Sequence[str | Path], Path]] = {}
            for number, (name, tool) in enumerate(tools.items()):
                folder = Path(temporary) / str(number)
                folder.mkdir()
                commands[name] = tool(folder, url, load.cases, load.connections), folder
            costs = in_turns(commands, options.times)
        for name, own in costs.items():
            wall, cpu = (
                statistics.median(getattr(cost, figure) for cost in own) for figure in ("wall", "cpu")
            )
            base = costs["aiohttp script"]
            # promptfoo 0.121.20 ends with an error of its own at times, when it closes its log.
            failed = sum(cost.code != 0 for cost in own)
            remark = f" (ended with an error in {failed} of {len(own)} runs)" if failed else ""
            figures = (
                f"{wall:.2f} | {ratio(own, base, 'wall'):.2f} | {cpu:.2f} | {ratio(own, base, 'cpu'):.2f} | "
                f"{max(cost.memory for cost in own):.0f}"
            )
            print(f"| {load.name} | {name}{remark} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
