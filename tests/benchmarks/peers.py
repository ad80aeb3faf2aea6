"""promptfoo and Inspect beside tui-eval, with the same cases against the same server, what each records switched on.

They live outside of the project, in a folder of the cache; this puts them there (npm and PyPI, about 2 GB):

    python -m tests.benchmarks.peers

Others of their commands are named by BENCHMARK_PROMPTFOO and BENCHMARK_INSPECT; `none` leaves one out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.benchmarks.support import openai, project, tui_eval

Tool = Callable[[Path, str, int, int], Sequence[str | Path]]
"""Writes the suite into a folder and gives the command: folder, server's address, cases, connections."""

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tui-eval-benchmarks"
COMMANDS = {
    "promptfoo": ("BENCHMARK_PROMPTFOO", CACHE / "promptfoo" / "node_modules" / ".bin" / "promptfoo"),
    "Inspect": ("BENCHMARK_INSPECT", CACHE / "inspect" / "bin" / "inspect"),
}
"""The variable that names a peer's command, and where it stands otherwise."""

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


def ours(folder: Path, url: str, cases: int, connections: int) -> Sequence[str]:
    """tui-eval, its store on and the reply streamed, as it is by default."""
    project(folder, cases, openai(url))
    return tui_eval("run", ".", "-j", str(connections))


def plain(folder: Path, url: str, cases: int, connections: int) -> Sequence[str | Path]:
    """The same requests without anything else: a script over aiohttp."""
    return [sys.executable, Path(__file__).with_name("plain_client.py"), url, str(cases), str(connections)]


def found(surroundings: Mapping[str, str]) -> tuple[dict[str, Tool], list[str]]:
    """The peers that are here, and a line for each that is not. Sets what they need to be quiet and to ask the mock."""
    tools: dict[str, Tool] = {}
    absent: list[str] = []
    for name, (variable, usual) in COMMANDS.items():
        command = Path(surroundings.get(variable) or usual).absolute()
        if command.is_file():
            tools[name] = (promptfoo if name == "promptfoo" else inspect)(str(command))
        else:
            absent.append(
                f"{name} is not measured: no {command} (python -m tests.benchmarks.peers puts it there)"
            )
    if tools:
        os.environ |= {
            "OPENAI_API_KEY": "none",
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
        }
    return tools, absent


def promptfoo(command: str) -> Tool:
    """promptfoo, its cache off, its database on."""

    def prepared(folder: Path, url: str, cases: int, connections: int) -> Sequence[str]:
        os.environ["PROMPTFOO_CONFIG_DIR"] = tempfile.mkdtemp(prefix="promptfoo-", dir=folder)
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


def versions() -> str:
    """Of the peers that are here: `promptfoo 0.121.20, Inspect 0.3.285`."""
    said = []
    for name, (variable, usual) in COMMANDS.items():
        command = Path(os.environ.get(variable) or usual).absolute()
        if command.is_file():
            done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
            number = re.search(r"\d+\.\d+[\w.]*", done.stdout)
            said.append(f"{name} {number[0] if number else '(unknown version)'}")
    return ", ".join(said)


def main() -> None:
    """Put both into the cache."""
    (CACHE / "promptfoo").mkdir(parents=True, exist_ok=True)
    environment = CACHE / "inspect"
    for command in (
        ["npm", "install", "--prefix", str(CACHE / "promptfoo"), "--no-audit", "--no-fund", "promptfoo"],
        [sys.executable, "-m", "venv", str(environment)],
        [str(environment / "bin" / "pip"), "install", "-q", "inspect-ai", "openai"],
    ):
        if subprocess.run(command, check=False).returncode:
            sys.exit(f"not installed: {' '.join(command)}")
    print(f"in {CACHE}: {versions()}")


if __name__ == "__main__":
    main()
