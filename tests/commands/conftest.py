"""The command line in this process, on projects with scripted agents."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tui_eval import cli as command_line
from tui_eval.store.run_folders import Store

SAMPLES = Path(__file__).parents[2] / "sample_suites"

SUITE = """\
agent: helper
test_cases:
  - name: greets
    input: hello
    expected: {should_contain: ["hi"]}
  - name: says sorry
    input: complain
    expected: {should_not_contain: ["whatever"]}
  - name: costs
    input: how much?
    expected: {should_contain: ["79"], tools_used: [search]}
"""
SCRIPT = """\
speed: 0
rules:
  - match: hello
    say: "hi there"
  - match: complain
    say: "whatever"
  - match: how much
    steps:
      - {call: search, arguments: {query: price}, result: {price: 79}}
      - say: "It costs 79."
    usage: {input: 100, output: 20}
    cost: 0.01
default: "ok"
"""
CONFIG = "agents:\n  helper: {type: scripted, script: agent.script.yaml}\n"


@dataclass
class Result:
    """What a command gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout as JSON."""
        return json.loads(self.out)


Cli = Callable[..., Result]


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own: nothing is trusted in it, nothing of the person's is touched."""
    state = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return state


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one suite, the current folder."""
    (tmp_path / "suite.yaml").write_text(SUITE, "utf-8")
    (tmp_path / "agent.script.yaml").write_text(SCRIPT, "utf-8")
    (tmp_path / "tui_eval.yaml").write_text(CONFIG, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs `tui-eval ARGUMENTS`; nothing it prints may be a traceback."""

    def run(*arguments: object) -> Result:
        words = [str(argument) for argument in arguments]
        monkeypatch.setattr(sys, "argv", ["tui-eval", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            command_line.main(words)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err, captured.err
        assert isinstance(ended.value.code, int)
        return Result(ended.value.code, captured.out, captured.err)

    return run


def from_elsewhere(*names: str) -> None:
    """Have results files of the last run here be of one that this project has not: that itself would be judged."""
    run_id = Store(Path.cwd()).find("last").name
    for name in names:
        text = Path(name).read_text("utf-8")
        assert run_id in text
        Path(name).write_text(text.replace(run_id, "elsewhere"), "utf-8")


def fast_samples(folder: Path) -> Path:
    """A copy of the sample suites whose agents do not wait."""
    copy = folder / "sample_suites"
    shutil.copytree(SAMPLES, copy, ignore=shutil.ignore_patterns(".tui-eval", "outputs"))
    for script in copy.rglob("*.script.yaml"):
        text = script.read_text("utf-8")
        if "speed: 0" not in text:
            script.write_text("speed: 0\n" + text, "utf-8")
    return copy
