"""`-c FILE` says what the file is, whatever it is called and lacks."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tui_eval.config.project import Config
from tui_eval.formats.reading import discover

WHOLE = "prompts: [hi]\nproviders: [echo]\ntests: [{assert: [{type: contains, value: hi}]}]\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "evals.yaml",
            "providers: [echo]\ntests: [{vars: {prompt: hi}, assert: [{type: contains, value: hi}]}]\n",
        ),
        ("evals.yaml", "prompts: [hi]\nproviders: [echo]\n"),
        ("evals.conf", WHOLE),
        ("evals", WHOLE),
        ("quality.json", '{"prompts": ["hi"], "providers": ["echo"], "tests": [{"vars": {"a": 1}}]}'),
        ("tests/evals.yaml", "test_cases: [{input: x}]\n" + WHOLE),
    ],
)
def test_a_configuration_is_what_c_says(cli: Any, project: Path, name: str, text: str) -> None:
    (project / "tests").mkdir(exist_ok=True)
    (project / name).write_text(text)
    ran = cli("run", "-c", project / name)
    assert ran.code == 0, ran.err
    assert "1/1 passed" in ran.out
    listed = cli("list", "--json", "-c", project / name)
    assert [row["format"] for row in listed.json] == ["promptfoo"]
    assert cli("check", "-c", project / name).code == 0


def test_what_is_printed_to_run_a_case_again_says_c_too(
    cli: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    (project / "evals.conf").write_text(WHOLE.replace("value: hi", "value: no"))
    ran = cli("run", "-c", "evals.conf")
    assert ran.code == 1
    (again,) = [line.partition("again: ")[2] for line in ran.out.splitlines() if "again: " in line]
    words = shlex.split(again)
    assert words[:4] == ["tui-eval", "run", "-c", "evals.conf"]
    assert cli(*words[1:]).code == 1


def test_what_is_a_suite_of_another_format_for_certain_stays_one(cli: Any, project: Path) -> None:
    (project / "guide.yaml").write_text("agent: helper\ntest_cases: [{name: n, input: hello}]\n")
    assert [row["format"] for row in cli("list", "--json", "-c", project / "guide.yaml").json] == [
        "start_to_agent"
    ]
    gone = cli("run", "-c", project / "gone.yaml")
    assert gone.code == 4 and "no such file" in gone.err
    (project / "broken.yaml").write_text("prompts: [a\n")
    broken = cli("run", "-c", project / "broken.yaml")
    assert broken.code == 4 and "broken.yaml:1: not valid YAML" in broken.err


def test_without_c_such_a_file_is_not_taken(project: Path) -> None:
    (project / "evals.conf").write_text(WHOLE)
    found, problems = discover([project / "evals.conf"], Config(root=project).root)
    assert not found and "not recognised" in problems[0].message
