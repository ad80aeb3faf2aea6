"""neuro-san 0.6.98 as a library, in a Python of its own: verdicts of networks run without a server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.neuro_san_server import RECIPE, library
from tests.real.processes import NotHere, ended_after, environment, until_healthy
from tests.support.ports import free_port

pytestmark = pytest.mark.real
SUITES = Path(__file__).parent / "suites"
EXPECTED = {
    "hello": ("passed", ""),
    "math": ("passed", ""),
    "nobody": ("error", 'no_such_agent: Agent named "no_such_agent" not found'),
    "struct": ("passed", ""),
    "team": ("passed", ""),
    "slow_turn": ("error", "turn 2 timed out after 1 s"),
}


@pytest.fixture
def model() -> Iterator[str]:
    port = free_port()
    mock = subprocess.Popen([sys.executable, RECIPE / "mock_llm.py", str(port)])
    with ended_after(mock):
        until_healthy(f"http://127.0.0.1:{port}/", mock)
        yield f"http://127.0.0.1:{port}/v1"


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return library()
    except NotHere as reason:
        pytest.skip(str(reason))


def run(folder: Path, model: str) -> tuple[int, list[dict[str, Any]], str]:
    """The exit code, the attempts and what was said on stderr."""
    command = [sys.executable, "-m", "tui_eval", "run", ".", "--trust", "-o", "r.json", "--display", "none"]
    variables = environment(OPENAI_API_BASE=model, OPENAI_API_KEY="sk-mock")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=variables)
    return done.returncode, json.loads((folder / "r.json").read_text())["results"], done.stderr


def test_networks_without_a_server(tmp_path: Path, model: str, python: Path) -> None:
    for name in EXPECTED:
        suite = SUITES / ("math_both_connections.hocon" if name == "math" else f"{name}.hocon")
        text, changed = re.subn(
            r'"connections": ("http"|\[[^]]*\])', '"connections": "direct"', suite.read_text()
        )
        assert changed == 1
        (tmp_path / f"{name}.hocon").write_text(text)
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n  neuro-san:\n    type: neuro-san\n    url: http://127.0.0.1:9\n"
        f"    python: {python}\n    manifest: {RECIPE}/networks/manifest.hocon\n    tool_path: {RECIPE}/coded\n"
        f"judge: {{type: openai, base_url: '{model}', model: m, system: You are evaluating text samples.}}\n"
    )
    code, results, said = run(tmp_path, model)
    assert code == 1, said
    got = {result["name"].partition(" [")[0]: result for result in results}
    assert {name: result["outcome"] for name, result in got.items()} == {
        name: outcome for name, (outcome, _) in EXPECTED.items()
    }
    for name, (_, message) in EXPECTED.items():
        assert message in got[name]["message"], name
    called = [entry for entry in got["math"]["transcript"] if entry["kind"] == "tool_call"]
    assert [entry["name"] for entry in called] == ["calculator", "calculator"]


def test_the_stock_judge_judges(tmp_path: Path, model: str, python: Path) -> None:
    """neuro-san's own network `gist`, run by the library, as its driver does."""
    (tmp_path / "gist.hocon").write_text(
        """{ "agent": "te_echo", "interactions": [ { "text": "Hello", "response": { "text": {
        "gist": ["It uses the word 'hello'.", "It uses the word 'Saturn'."], "not_gist": "Mentions 'Mars'." } } } ] }"""
    )
    (tmp_path / "tui_eval.yaml").write_text(
        f"agents:\n  neuro-san: {{type: neuro-san, python: {python}, "
        f"manifest: {RECIPE}/networks/manifest.hocon, tool_path: {RECIPE}/coded}}\n"
        f"judge: {{type: neuro-san, python: {python}, agent: gist}}\n"
    )
    _, results, said = run(tmp_path, model)
    verdicts = [(one["type"], one["passed"]) for one in results[0]["assertions"]]
    assert verdicts == [("gist", True), ("gist", False), ("not_gist", True)], (said, results[0]["message"])
