"""The sample suites, and 2,000 generated cases, give the same results files on Ray as here, times apart."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
import yaml

pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")

from tests.same_results import ROOT, SUITES, differences, results_of

pytestmark = pytest.mark.real
WORDS = ("price", "refund", "hello", "order", "ünïcode", "42", "3.5", "{braces}", "a\nb", '"quoted"')
SCRIPT = """
rate: 0
seed: 7
rules:
  - match: {contains: "price"}
    steps:
      - {call: search, arguments: {query: price}, result: {price: 79}}
      - {say: "It costs 79."}
    usage: {input: 100, output: 20}
    cost: 0.01
  - match: {contains: "refund"}
    say: ["yes", "no", "perhaps"]
  - match: {contains: "42"}
    error: "the agent broke"
default: {say: "nothing to say"}
"""
ASSERTIONS = (
    {"type": "contains", "value": "price"},
    {"type": "not-contains", "value": "42"},
    {"type": "icontains-any", "value": ["HELLO", "order"]},
    {"type": "regex", "value": "[0-9]{2}"},
    {"type": "javascript", "value": "output.length > 20 ? {pass: true, score: 0.5, reason: 'long'} : false"},
    {"type": "python", "value": "file://checks.py:ends_well"},
    {"type": "levenshtein", "value": "a price of 42", "threshold": 12},
    {"type": "cost", "threshold": 1},
)


def generated(folder: Path) -> Path:
    """2,000 cases: rows of promptfoo with rules, JavaScript and Python, and conversations with a scripted agent."""
    draw = random.Random(13)
    folder.mkdir()
    (folder / "agent.script.yaml").write_text(SCRIPT)
    (folder / "checks.py").write_text(
        "def ends_well(output, context):\n    return not output.endswith('2')\n"
    )

    def text() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(1, 6)))

    tests = [
        {"vars": {"said": text(), "n": n}, "assert": draw.sample(ASSERTIONS, draw.randint(0, 4))}
        for n in range(1200)
    ]
    promptfoo = {"prompts": ["{{said}} as {{n}}"], "providers": ["echo"], "tests": tests}
    (folder / "promptfooconfig.yaml").write_text(yaml.safe_dump(promptfoo, allow_unicode=True))
    cases = [
        {
            "name": f"case {n}",
            "messages": [text() for _ in range(draw.randint(1, 3))],
            "expected": draw.choice(
                [
                    {"should_contain": ["79"]},
                    {"should_not_contain": ["yes"]},
                    {"tools_used": ["search"]},
                    {"max_tool_calls": 0},
                ]
            ),
        }
        for n in range(800)
    ]
    (folder / "suite.yaml").write_text(
        yaml.safe_dump({"agent": "helper", "test_cases": cases}, allow_unicode=True)
    )
    return folder


def test_results_on_ray_are_those_of_here(tmp_path: Path) -> None:
    """All in one run, as it takes Ray a while to start."""
    project = tmp_path / "project"
    shutil.copytree(
        ROOT / SUITES, project, ignore=shutil.ignore_patterns(".tui-eval", "__pycache__", "outputs")
    )
    for file in (project / "shop_analyst" / "tests").rglob("*.yml"):
        # DuckDB gives groups in the order in which its threads have them.
        text = file.read_text("utf-8")
        ordered = text.replace("  GROUP BY category\n", "  GROUP BY category\n  ORDER BY category\n")
        file.write_text(ordered, "utf-8")
    generated(project / "generated")
    config = project / "tui_eval.yaml"
    own = "agents:\n  helper: {type: scripted, script: generated/agent.script.yaml}\n"
    config.write_text(config.read_text("utf-8").replace("agents:\n", own, 1), "utf-8")
    options = ("--trust", "-j", "32")
    here = results_of(ROOT, project, *options)
    ray = results_of(ROOT, project, *options, "--on", "ray")
    for found in (here, ray):
        results = json.loads(found["json"])
        assert results["run"]["state"] == "finished"
        assert len({one["suite"] for one in results["results"]}) > 10
        assert sum(one["outcome"] == "passed" for one in results["results"]) > 500
    found = differences(here, ray)
    assert {kind: lines[:12] for kind, lines in found.items() if lines} == {}
