"""What another package adds through its entry points is there for a person who installed it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.extended import tui_eval as extended_command

PACKAGE = ROOT / "tests" / "data" / "extension"

CONFIG = """\
agents:
  friend: {type: greeter, word: hello, timeout: 60}
  cold: {type: greeter, word: what}
suites:
  - {path: "*.greet", agent: friend}
"""
SUITES = {
    "all.greet": "Ada\nGrace\n",
    "guide.yaml": "agent: friend\ntest_cases:\n  - {name: g, input: Ada, expected: {greets: hello}}\n",
    "promptfooconfig.yaml": "prompts: ['{{who}}']\nproviders: [echo]\ntests:\n"
    "  - {description: p, vars: {who: hello Ada}, assert: [{type: greets, value: hello}]}\n"
    "  - {description: n, vars: {who: Ada}, assert: [{type: not-greets, value: hello}]}\n",
    "tests/n.yml": "name: n\nprompt: Ada\nassertions:\n  - {type: greets, word: hello}\n",
    "net.hocon": 'agent = friend\ninteractions = [{text = "Ada", response { text { greets = hello } }}]\n',
}


def tui_eval(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return extended_command(folder, *words, package=PACKAGE)


@pytest.fixture
def extended(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tui_eval.yaml").write_text(CONFIG, "utf-8")
    for name, text in SUITES.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


@pytest.mark.real
def test_format_agent_assertion_and_report_of_another_package(extended: Path) -> None:
    done = tui_eval(extended, "run", "all.greet", "-o", "out.txt", "-o", "out.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (extended / "out.txt").read_text().split("\n") == ["1: passed", "2: passed", ""]
    results = json.loads((extended / "out.json").read_text())["results"]
    assert [(r["name"], r["format"], r["assertions"][0]["actual"]) for r in results] == [
        ("Ada", "greetings", "hello, Ada"),
        ("Grace", "greetings", "hello, Grace"),
    ]
    # What was stored is read back.
    shown = tui_eval(extended, "show", "last", "all.greet::Ada")
    assert shown.returncode == 0 and "hello, Ada" in shown.stdout


@pytest.mark.real
def test_an_added_assertion_judges_in_every_format(extended: Path) -> None:
    suites = ("guide.yaml", "net.hocon", "tests/n.yml")

    def results(*words: str) -> tuple[int, list[dict[str, Any]]]:
        done = tui_eval(extended, "run", *words, "-o", "out.json")
        found = json.loads((extended / "out.json").read_text())["results"]
        assert all([a["type"].removeprefix("not-") for a in r["assertions"]] == ["greets"] for r in found)
        return done.returncode, found

    code, passed = results(*suites, "--agent", "friend")
    assert code == 0 and [(r["suite"], r["outcome"]) for r in passed] == [(s, "passed") for s in suites]
    code, failed = results(*suites, "--agent", "cold")
    assert code == 1 and [(r["suite"], r["outcome"]) for r in failed] == [(s, "failed") for s in suites]
    code, rows = results("promptfooconfig.yaml")
    assert code == 0 and [r["outcome"] for r in rows] == ["passed", "passed"]


@pytest.mark.real
def test_not_turns_an_added_assertion_round_and_one_that_exits_ends_no_run(extended: Path) -> None:
    tests = [
        {
            "description": f"{not_}{kind} {who}",
            "vars": {"who": who},
            "assert": [{"type": not_ + kind, "value": "Ada"}],
        }
        for kind in ("greets", "begins")
        for not_ in ("", "not-")
        for who in ("Ada", "Bob")
    ]
    exits = {"description": "leaves", "vars": {"who": "Ada"}, "assert": [{"type": "leaves"}]}
    suite = {"prompts": ["{{who}}"], "providers": ["echo"], "tests": [exits, *tests]}
    (extended / "promptfooconfig.yaml").write_text(json.dumps(suite), "utf-8")
    done = tui_eval(extended, "run", "promptfooconfig.yaml", "-o", "out.json")
    assert done.returncode == 1, done.stdout + done.stderr
    results = json.loads((extended / "out.json").read_text())["results"]
    assert {r["name"]: (r["outcome"], r["score"]) for r in results} == {
        "leaves": ("error", 0.0),
        **{
            f"{not_}{kind} {who}": ("passed", 1.0) if (who == "Ada") != bool(not_) else ("failed", 0.0)
            for kind in ("greets", "begins")
            for not_ in ("", "not-")
            for who in ("Ada", "Bob")
        },
    }
    reasons = {r["name"]: r["message"] for r in results}
    assert reasons["not-greets Ada"] == "begins with Ada" and reasons["leaves"] == "leaves: SystemExit: 0"
    assert reasons["not-begins Ada"] == "begins holds: said so"


@pytest.mark.real
def test_a_report_that_exits_hides_no_failure(extended: Path) -> None:
    done = tui_eval(extended, "run", "guide.yaml", "--agent", "cold", "-o", "out.leaving")
    assert done.returncode != 0 and "leaving cannot write this run: SystemExit: 0" in done.stderr, done.stderr
    assert tui_eval(extended, "export", "last", "-o", "out.leaving").returncode != 0


@pytest.mark.real
def test_problems_of_an_added_format_have_their_place(extended: Path) -> None:
    (extended / "all.greet").write_text("Ada\n?why\n", "utf-8")
    done = tui_eval(extended, "check", "all.greet")
    assert done.returncode == 4
    assert "all.greet:2: a question is no greeting; remove it" in done.stdout


@pytest.mark.real
def test_a_package_that_cannot_be_loaded_is_named(extended: Path) -> None:
    (extended / "tui_eval.yaml").write_text("agents:\n  gone: {type: absent}\n", "utf-8")
    (extended / "guide.yaml").write_text(
        "agent: gone\ntest_cases:\n  - {name: g, input: Ada, expected: {absent: 1}}\n", "utf-8"
    )
    done = tui_eval(extended, "run", "guide.yaml")
    assert done.returncode == 1 and "absent of the package greetings cannot be loaded" in done.stdout, (
        done.stdout
    )
    (extended / "echo.py").write_text("def answer(message):\n    return message\n", "utf-8")
    done = tui_eval(extended, "run", "guide.yaml", "--agent", "echo.py:answer")
    assert done.returncode == 1 and "start_to_agent.absent of the package greetings cannot be" in done.stdout
    assert tui_eval(extended, "check", ".").returncode == 0


@pytest.mark.parametrize("tools", ["5", "[{type: sql, database: own}]", "[{type: [a]}]"])
def test_what_an_added_agent_calls_its_tools_is_its_own_business(extended: Path, tools: str) -> None:
    """`check` looked at them as at those of a model."""
    (extended / "tui_eval.yaml").write_text(
        CONFIG.replace("word: hello,", f"word: hello, tools: {tools},"), "utf-8"
    )
    done = tui_eval(extended, "check", ".")
    assert "tools" not in done.stdout and done.returncode == 0, done.stdout + done.stderr


def test_a_report_that_fails_is_named(extended: Path) -> None:
    done = tui_eval(extended, "run", "all.greet", "-o", "out.failing")
    assert done.returncode == 4
    assert "reports: failing cannot write this run: RuntimeError: out of ink" in done.stderr
    assert not (extended / "out.failing").exists()


def test_a_format_that_cannot_be_loaded_is_named(extended: Path) -> None:
    broken = extended / "packages" / "broken-1.dist-info"
    broken.mkdir(parents=True)
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[tui_eval.formats]\nlost = not_there:FORMAT\n")
    done = subprocess.run(
        [sys.executable, "-m", "tui_eval", "check", "all.greet"],
        cwd=extended, env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, PACKAGE, broken.parent)))},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "lost of the package broken cannot be loaded: ModuleNotFoundError" in done.stdout
    assert "its suites are passed over (note)" in done.stdout


@pytest.mark.parametrize("packed", [False, True])
def test_packages_are_read_only_where_one_may_add_something(tmp_path: Path, packed: bool) -> None:
    """The reading of all packages takes longer than the rest of a small run; what is in an archive is not
    looked into."""
    folder = tmp_path / "packages"
    info = folder / "else-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: else\nVersion: 1.0\n")
    points = (
        "[tui_eval.reports]\nodd = tui_eval.odd:write\n"
        if packed
        else "[console_scripts]\na = tui_eval.x:y\n"
    )
    (info / "entry_points.txt").write_text(points)
    if packed:
        folder = Path(shutil.make_archive(str(tmp_path / "packages"), "zip", folder))
    code = "import sys; from tui_eval import extensions as e; print(*e.installed('reports'), 'importlib.metadata' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, folder)))},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.split() == (["odd", "True"] if packed else ["False"])


@pytest.mark.real
def test_without_the_package_its_types_are_mistakes(extended: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tui_eval", "check", "."],
        cwd=extended, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 4
    assert "unknown type 'greeter'" in done.stdout
