"""Projects with scripted agents, run by the real engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

SUITE = """
agent: helper
test_cases:
  - name: "greets"
    input: "hello"
    expected: {should_contain: ["hi"]}
  - name: "knows the price"
    input: "what does it cost?"
    expected: {should_contain: ["79"], tools_used: [search], max_tool_calls: 1}
  - name: "says sorry"
    input: "complain"
    expected: {should_not_contain: ["whatever"]}
  - name: "remembers"
    messages: ["I am Ada", "who am I?"]
    expected: {should_contain: ["Ada"]}
"""
SCRIPT = """
rate: 2000
rules:
  - match: {contains: "hello"}
    say: "hi there"
  - match: {contains: "cost"}
    steps:
      - {call: search, arguments: {query: price}, result: {price: 79}}
      - {say: "It costs 79."}
    usage: {input: 100, output: 20}
    cost: 0.01
  - match: {contains: "complain"}
    say: "whatever"
  - match: {contains: "who am I"}
    say: "You are Ada."
default: {say: "ok"}
"""
CONFIG = "agents:\n  helper: {type: scripted, script: agent.script.yaml}\n"

WriteProject = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path) -> WriteProject:
    """Writes a project; keyword arguments replace or add files (`suite`, `script`, `config`)."""

    def write(suite: str = SUITE, script: str = SCRIPT, config: str = CONFIG, **files: str) -> Path:
        named = {"suite.yaml": suite, "agent.script.yaml": script, "tui_eval.yaml": config, **files}
        for name, text in named.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        return tmp_path

    return write
