"""`run --cache`: an agent that is told which case is asked is asked each of two cases with the same question."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tests.servers import JsonServer
from tui_eval.agents.programs.python_agent import takes_message_alone

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


def test_a_function_that_takes_the_message_alone_is_asked_once(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked, and paid, for each case that asks the same, and again where one was renamed; not where an
    edit has it take the session."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE.replace("[alpha]", "[a]").replace("[beta]", "[a]"), "utf-8")
    (tmp_path / "bot.py").write_text("def answer(message):\n    return 'a'\n", "utf-8")
    (tmp_path / "tui_eval.yaml").write_text("agents: {bot: {type: python, function: bot.py:answer}}\n")
    assert "(1 cached" in cli("run", "suite.yaml", "--cache", "--trust", "-j", "1").out
    (tmp_path / "suite.yaml").rename(tmp_path / "other.yaml")
    assert "(2 cached" in cli("run", "other.yaml", "--cache", "--trust", "-j", "1").out
    (tmp_path / "bot.py").write_text("def answer(message, session):\n    return 'a'\n", "utf-8")
    assert "cached" not in cli("run", "other.yaml", "--cache", "--trust", "-j", "1").out


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("def answer(message): ...", True),
        ("async def answer(message, retries=3): yield 1", True),
        ("def answer(message, /, *, top=1): ...", True),
        ("def answer(message, session): ...", False),
        ("def answer(message, context): ...", False),
        ("def answer(message, session=None): ...", False),
        ("def answer(message, *, session=None): ...", False),
        ("def answer(message, *more): ...", False),
        ("def answer(message, **more): ...", False),
        ("def answer(): ...", False),
        ("@told\ndef answer(message): ...", False),
        ("def answer(message): ...\nanswer = told(answer)", False),
        ("def answer(message): ...\ntry:\n    from other import answer\nexcept ImportError: pass", False),
        ("def answer(message): ...\nfrom other import told as answer", False),
        ("def answer(message): ...\nfrom other import *", False),
        ("def answer(message): ...\ndef wrap():\n    global answer\n    answer = 1", False),
        ("def answer(message): ...\nif x:\n    def answer(message, session): ...", False),
        ("def answer(message): ...\nglobals()['answer'] = 1", False),
        ("answer = lambda message: 1", False),
        ("class answer:\n    def __init__(self, message): ...", False),
        ("def answer(message) ...", False),
    ],
)
def test_that_a_function_takes_the_message_alone_is_only_believed_where_it_is_written_plainly(
    text: str, alone: bool
) -> None:
    assert takes_message_alone(text.encode(), "answer") == alone


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
