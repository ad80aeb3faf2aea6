"""Pipes, devices and files without end in a project's folder: one line, and never a wait."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_LIMIT = 60.0
_SUITE = "agent: bot\ntest_cases:\n  - {name: one, input: hello, expected: {should_contain: [hello]}}\n"
_CONFIG = "agents:\n  bot: {type: echo}\n"


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_STATE_HOME": str(root / ".state"), "HOME": str(root)}
    command = [sys.executable, "-m", "tui_eval", *arguments]
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=_LIMIT, check=False
    )


def said(done: subprocess.CompletedProcess[str]) -> str:
    text = done.stdout + done.stderr
    assert "Traceback" not in text and "internal error" not in text
    return text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "suite.yaml").write_text(_SUITE)
    (tmp_path / "tui_eval.yaml").write_text(_CONFIG)
    return tmp_path


@pytest.mark.real
@pytest.mark.usually(2)
@pytest.mark.parametrize("arguments", [["list", "odd.yaml"], ["list", "-c", "odd.yaml"], ["run", "odd.yaml"]])
@pytest.mark.parametrize("kind", ["pipe", "device", "huge"])
def test_what_is_no_ordinary_file_is_no_suite(root: Path, kind: str, arguments: list[str]) -> None:
    odd = root / "odd.yaml"
    if kind == "pipe":
        os.mkfifo(odd)
    elif kind == "device":
        odd.symlink_to("/dev/zero")
    else:
        with open(odd, "wb") as file:
            file.truncate(100 << 30)
    done = run(root, *arguments)
    assert done.returncode == 4
    text = said(done)
    assert "odd.yaml" in text
    assert ("larger than" if kind == "huge" else "no ordinary file") in text or kind == "device"


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("expected", ["equals, value: file://odd", "is-json, value: file://odd.json"])
def test_an_assertion_that_names_a_pipe_is_an_error(root: Path, expected: str) -> None:
    os.mkfifo(root / "odd")
    os.mkfifo(root / "odd.json")
    (root / "promptfooconfig.yaml").write_text(
        f"prompts: [hi]\nproviders: [echo]\ntests: [{{assert: [{{type: {expected}}}]}}]\n"
    )
    done = run(root, "run", "promptfooconfig.yaml", "-o", "out.json")
    assert done.returncode == 1
    assert "no ordinary file" in said(done)
    assert [one["outcome"] for one in json.loads((root / "out.json").read_text())["results"]] == ["error"]


@pytest.mark.usually(1)
@pytest.mark.parametrize(
    "agent",
    [
        "{type: scripted, script: odd}",
        "{type: openai, model: m, base_url: 'http://127.0.0.1:9/v1', system: 'file://odd'}",
    ],
)
def test_an_agent_whose_file_is_a_pipe_is_an_error(root: Path, agent: str) -> None:
    os.mkfifo(root / "odd")
    (root / "tui_eval.yaml").write_text(f"agents:\n  bot: {agent}\n")
    done = run(root, "run", "suite.yaml")
    assert done.returncode == 1
    assert "no ordinary file" in said(done)


@pytest.mark.real
def test_a_configuration_that_is_named_and_not_there_is_an_error_of_usage(root: Path) -> None:
    for command in ("list", "check", "run"):
        done = run(root, command, "suite.yaml", "--config", "nowhere.yaml")
        assert done.returncode == 4
        assert "nowhere.yaml: no such file" in said(done)


@pytest.mark.real
def test_an_engine_file_that_is_a_pipe_is_no_engine(root: Path) -> None:
    assert run(root, "run", "suite.yaml").returncode == 0
    (folder,) = (root / ".tui-eval" / "runs").iterdir()
    (folder / "engine.json").unlink(missing_ok=True)
    os.mkfifo(folder / "engine.json")
    done = run(root, "cancel", folder.name)
    assert done.returncode == 4
    assert "no engine that can be reached" in said(done)


@pytest.mark.real
def test_a_run_whose_facts_are_damaged_damages_no_other(root: Path) -> None:
    import sqlite3
    from contextlib import closing

    assert run(root, "run", "suite.yaml").returncode == 0
    (folder,) = (root / ".tui-eval" / "runs").iterdir()
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        connection.execute("UPDATE meta SET value = 'no JSON' WHERE key = 'info'")
        connection.commit()
    for command in (["show"], ["show", folder.name], ["resume"], ["rescore"], ["export", "-o", "o.html"]):
        done = run(root, *command)
        assert done.returncode == 4, command
        assert "damaged" in said(done)
    assert run(root, "run", "suite.yaml").returncode == 0
    assert "\n1 case passed" in said(run(root, "show"))


@pytest.mark.real
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_database_that_is_a_pipe_is_said_at_once(root: Path, kind: str) -> None:
    os.mkfifo(root / "odd")
    (root / "tui_eval.yaml").write_text(f"databases:\n  shop: {{type: {kind}, path: odd}}\n")
    (root / "tests").mkdir()
    (root / "tests" / "one.yaml").write_text("name: one\nprompt: one\nsql: SELECT 1 AS id\n")
    assert "no ordinary file" in said(run(root, "check", "tests"))


@pytest.mark.parametrize(
    "entry", ["{type: scripted, script: odd.txt}", "{type: openai, model: m, system: 'file://odd.txt'}"]
)
def test_a_file_without_end_that_an_agent_names_is_an_error_of_one_line(root: Path, entry: str) -> None:
    """`check` and runs took the memory of the machine."""
    (root / "tui_eval.yaml").write_text(f"agents:\n  bot: {entry}\n")
    with open(root / "odd.txt", "wb") as file:
        file.truncate(100 << 30)
    for arguments in (["check", "suite.yaml"], ["run", "suite.yaml", "--display", "plain"]):
        done = run(root, *arguments)
        assert done.returncode in (1, 4)
        assert "larger than 64 MB" in said(done)
