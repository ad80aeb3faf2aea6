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
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.support import Cost, measure, mock, openai, project, tui_eval

Tool = Callable[[Path, str, int, int], Sequence[str]]
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


def run(tool: Tool, load: Load, times: int) -> tuple[Cost, str]:
    """The median of some runs after one that is not counted, and what to say of them: a tool that ended with
    an error of its own (promptfoo 0.121.20 does at times, when it closes its log) is measured all the same.
    """
    with tempfile.TemporaryDirectory() as temporary, mock("openai", "--delay", str(load.delay)) as url:
        folder = Path(temporary)
        command = tool(folder, url, load.cases, load.connections)
        costs = [measure(command, folder) for _ in range(times + 1)][1:]
        failed = sum(cost.code != 0 for cost in costs)
    cost = Cost(
        statistics.median(cost.wall for cost in costs),
        statistics.median(cost.cpu for cost in costs),
        max(cost.memory for cost in costs),
        0,
    )
    return cost, f" (ended with an error in {failed} of {times} runs)" if failed else ""


def main() -> None:
    """Measure every load with every tool that is named, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--promptfoo", metavar="COMMAND")
    parser.add_argument("--inspect", metavar="COMMAND")
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    os.environ |= {
        "OPENAI_API_KEY": "none",
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_CONFIG_DIR": tempfile.mkdtemp(prefix="promptfoo-"),
    }
    tools: dict[str, Tool] = {"tui-eval": ours}
    if options.promptfoo:
        tools["promptfoo"] = promptfoo(str(Path(options.promptfoo).absolute()))
    if options.inspect:
        tools["Inspect"] = inspect(str(Path(options.inspect).absolute()))
    print("| load | tool | wall s | CPU s | memory MB |\n|---|---|---|---|---|")
    for load in LOADS:
        for name, tool in tools.items():
            cost, remark = run(tool, load, options.times)
            figures = f"{cost.wall:.2f} | {cost.cpu:.2f} | {cost.memory:.0f}"
            print(f"| {load.name} | {name}{remark} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
