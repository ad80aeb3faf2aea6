"""`run --cache`: an agent that is told which case is asked is asked each of two cases with the same question."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tests.servers import JsonServer

SUITE = """\
agent: bot
test_cases:
  - {name: alpha, input: hello, expected: {should_contain: [alpha]}}
  - {name: beta, input: hello, expected: {should_contain: [beta]}}
"""
FILES = {
    "script.yaml": "rules:\n  - {match: {case: alpha}, say: of alpha}\n  - {match: {case: beta}, say: of beta}\n",
    "bot.py": "def answer(message, session):\n    return session['case_id']\n",
    "program.py": "import json, sys\nprint(json.load(sys.stdin)['metadata']['case_id'])\n",
}
ENTRIES = {
    "scripted": "script: script.yaml",
    "python": "function: bot.py:answer",
    "command": f"command: {shlex.quote(sys.executable)} program.py",
}


@pytest.mark.parametrize("kind", ENTRIES)
def test_an_agent_that_is_told_the_case_gets_no_answer_of_another_case(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE, "utf-8")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "tui_eval.yaml").write_text(f"agents: {{bot: {{type: {kind}, {ENTRIES[kind]}}}}}\n", "utf-8")
    first = cli("run", "suite.yaml", "--cache", "--trust", "-j", "1")
    assert "2/2 passed" in first.out and "cached" not in first.err.partition("All 2")[0], first.out
    again = cli("run", "suite.yaml", "--cache", "--trust", "-j", "1")
    assert "2/2 passed" in again.out and "2 cached" in again.out


def test_what_an_endpoint_is_sent_by_its_own_body_is_the_same_for_two_cases(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE, "utf-8")
    with JsonServer() as server:
        for body, asked in (("", 2), (", body: {q: '{{prompt}}'}", 3)):
            (tmp_path / "tui_eval.yaml").write_text(
                f"agents: {{bot: {{type: http, url: '{server.url}/chat'{body}}}}}\n", "utf-8"
            )
            cli("run", "suite.yaml", "--cache", "-j", "1")
            assert len(server.requests) == asked
