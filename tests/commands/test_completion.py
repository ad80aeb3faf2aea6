"""What a shell completes, asked as a shell asks: through the variables of click's scripts."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import Cli


def completed(words: str, folder: Path) -> list[tuple[str, str]]:
    """(kind, value) of what bash would offer for the last of the words."""
    environment = {
        **os.environ,
        "_TUI_EVAL_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tui_eval"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.stderr == "", done.stderr
    lines = [line.partition(",") for line in done.stdout.splitlines()]
    return [(kind, value) for kind, _, value in lines if kind]


def values(words: str, folder: Path) -> list[str]:
    """The words offered."""
    return [value for _, value in completed(words, folder)]


def test_the_first_word_is_a_command_or_a_path(project: Path) -> None:
    assert values("tui-eval re", project) == ["rescore", "resume"]
    assert ("file", "suite.ya") in completed("tui-eval run suite.ya", project)


@pytest.mark.real
def test_options_runs_cases_agents_and_pages(project: Path, cli: Cli) -> None:
    assert cli("run", "suite.yaml").code == 1
    run = cli("runs", "--json").json[0]["id"]
    assert values("tui-eval run --filter-m", project) == ["--filter-metadata"]
    assert values("tui-eval run . --agent h", project) == ["helper"]
    assert values("tui-eval show ", project) == ["last", run]
    assert values(f"tui-eval compare last {run[:6]}", project) == [run]
    assert values("tui-eval show last s", project) == ["says sorry"]
    assert values("tui-eval help coming-from-n", project) == ["coming-from-nao", "coming-from-neuro-san"]


def test_an_agent_may_be_a_file(project: Path) -> None:
    assert completed("tui-eval run . --agent my_", project) == [("file", "my_")]


@pytest.mark.real
def test_names_that_would_reach_the_terminal_are_not_offered(project: Path, cli: Cli) -> None:
    (project / "suite.yaml").write_text(
        'agent: helper\ntest_cases:\n  - {name: "a\\u001b[31m", input: hello}\n  - {name: "ab", input: hello}\n'
    )
    cli("run", "suite.yaml")
    assert values("tui-eval show last a", project) == ["ab"]


def test_compare_offers_the_agents_of_its_run(project: Path, cli: Cli) -> None:
    cli("run", ".")
    assert values("tui-eval compare last --agent h", project) == ["helper"]


@pytest.mark.real
def test_what_cannot_be_read_completes_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("agents: [")
    assert completed("tui-eval run . --judge x", tmp_path) == [("file", "x")]
    assert values("tui-eval show none y", tmp_path) == []


def test_the_script_works_in_bash(project: Path, cli: Cli, tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    shown = cli("completion", "bash")
    assert shown.code == 0 and shown.out.startswith("# tui-eval completion bash: for ~/.bashrc\n")
    called = tmp_path / "tui-eval"
    called.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tui_eval "$@"\n')
    called.chmod(0o755)
    asked = (
        "\nCOMP_WORDS=(tui-eval expo); COMP_CWORD=1; _tui_eval_completion ./tui-eval\necho ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", shown.out + asked], cwd=project, capture_output=True, text=True)
    assert done.stdout.strip() == "export", done.stderr


@pytest.mark.parametrize(
    ("typed", "put_in"),
    [("sa", "says\\ sorry"), ("says\\ s", "says\\ sorry"), ("'sa", "says sorry"), ('"says s', "says sorry")],
)
def test_a_name_of_several_words_is_put_in_as_one_word(
    project: Path, cli: Cli, tmp_path: Path, typed: str, put_in: str
) -> None:
    """`show last says sorry` was put in, which is a usage error."""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    cli("run", ".")
    called = tmp_path / "tui-eval"
    called.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tui_eval "$@"\n')
    called.chmod(0o755)
    words = f"COMP_WORDS=(tui-eval show last {shlex.quote(typed)}); COMP_CWORD=3"
    asked = f"\n{words}; _tui_eval_completion ./tui-eval\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    script = cli("completion", "bash").out + asked
    done = subprocess.run(["bash", "-c", script], cwd=project, capture_output=True, text=True)
    assert done.stdout == f"{put_in}\n", done.stderr


def test_the_shell_in_use_is_taken_or_one_is_asked_for(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert "--command tui-eval" in cli("completion").out
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    asked = cli("completion")
    assert asked.code == 4 and asked.out == ""
    assert asked.err.startswith("name the shell, one of bash, zsh, fish: tui-eval completion bash")
