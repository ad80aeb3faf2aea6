"""The line (and file) at which `e` opens a case, in all four formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_eval.config.project import load
from tui_eval.engine.agent_files import folder_files, function_of, named_files, provider_files
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust
from tui_eval.suites.read_values import function_line
from tui_eval.tui.state.app_state import AppState, CasePointer
from tui_eval.tui.state.case_agent import all_files_of_agent

FILES = {
    "guide.yaml": "# a\nagent: x\ntest_cases:\n\n  - name: CASE one\n    input: a\n  - input: b   # CASE\n",
    "tests/nao.yml": "# CASE\nname: n\nprompt: p\nsql: select 1\n",
    "net.hocon": '# c\n{\n  agent: a\n  "interactions": [  # CASE\n {text: b}]\n}\n',
    "part.hocon": "# x\ninteractions: [ {text: b} ] # CASE\n",
    "whole.hocon": 'include "part.hocon"\nagent: a\n',
}


def places(root: Path, name: str) -> list[tuple[str, str]]:
    (root / "tui_eval.yaml").write_text("{}\n")
    suite = reading.load(root / name, load([root]), Trust(granted=True))
    assert suite.cases, suite.problems
    found = []
    for case in suite.cases:
        file = root / (case.file or case.suite)
        found.append((case.file or case.suite, file.read_text().split("\n")[case.line - 1]))
    return found


@pytest.mark.parametrize("name", ["guide.yaml", "net.hocon"])
def test_in_the_suite_itself(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FILES[name])
    found = places(tmp_path, name)
    assert found and all(file == name and "CASE" in line for file, line in found)


def test_a_nao_test_begins_at_its_top(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/nao.yml").write_text(FILES["tests/nao.yml"])
    assert places(tmp_path, "tests/nao.yml") == [("tests/nao.yml", "name: n")]


def test_interactions_of_an_included_file(tmp_path: Path) -> None:
    for name in ("part.hocon", "whole.hocon"):
        (tmp_path / name).write_text(FILES[name])
    [(file, line)] = places(tmp_path, "whole.hocon")
    assert file == "part.hocon" and "CASE" in line


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", 'q,__expected\n"a\nb",CASE\nc,CASE 2\n'),
        ("t.yaml", "# x\n- vars: {q: CASE}\n- description: CASE\n  vars: {q: a}\n"),
        ("t.jsonl", '{"vars": {"q": "CASE"}}\n{"vars": {"q": "CASE 2"}}\n'),
        ("t.json", '[\n {"vars": {"q": "CASE"}},\n {"vars": {"q": "CASE 2"}}\n]\n'),
        ("t.py", "import os\n\nasync_ = 1\ndef make():  # CASE\n    return [{'vars': {'q': 'a'}}]\n"),
    ],
)
def test_promptfoo_tests_of_another_file(tmp_path: Path, name: str, text: str) -> None:
    reference = f"file://{name}:make" if name.endswith(".py") else f"file://{name}"
    (tmp_path / "promptfooconfig.yaml").write_text(
        f"prompts: ['{{{{q}}}}']\nproviders: [echo]\ntests: {reference}\n"
    )
    (tmp_path / name).write_text(text)
    found = places(tmp_path, "promptfooconfig.yaml")
    assert len(found) == (1 if name.endswith(".py") else 2)
    for file, line in found:
        assert file == name
        assert "CASE" in line or line == '"a'


def test_the_files_of_an_agent(tmp_path: Path) -> None:
    for name in (
        "a.py",
        "s.yaml",
        "sys.txt",
        "tools.py",
        "pkg/mod.py",
        "nets/manifest.hocon",
        "nets/desk.hocon",
        "coded/fare.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("import os\n\nasync def answer(x):\n    pass\n")
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n"
        "  py: {type: python, function: 'a.py:answer', files: [sys.txt]}\n"
        "  script: {type: scripted, script: s.yaml}\n"
        "  api: {type: openai, base_url: 'http://x', model: m, system: 'file://sys.txt',\n"
        "        tools: [{type: python, name: t, function: 'tools.py:answer'}]}\n"
        "  module: {type: python, function: 'pkg.mod:answer'}\n"
        "  cmd: {type: command, command: 'python a.py --x'}\n"
        "  direct: {type: neuro-san, network: desk, manifest: nets/manifest.hocon, tool_path: coded}\n"
    )
    agents = load([tmp_path]).agents

    def names(agent: str) -> list[str]:
        return [path.relative_to(tmp_path).as_posix() for path in named_files(agents[agent], tmp_path)]

    assert names("py") == ["sys.txt", "a.py"]
    assert names("script") == ["s.yaml"]
    assert set(names("api")) == {"sys.txt", "tools.py"}
    assert names("module") == ["pkg/mod.py"]
    assert names("cmd") == ["a.py"]
    assert names("direct") == ["nets/manifest.hocon"]
    below = [path.relative_to(tmp_path).as_posix() for path in folder_files(agents["direct"], tmp_path)]
    assert below == ["coded/fare.py", "nets/desk.hocon", "nets/manifest.hocon"]
    assert function_line(tmp_path / "a.py", function_of(agents["py"])) == 3
    assert provider_files("file://a.py", tmp_path) == [tmp_path / "a.py"]
    assert provider_files({"id": "exec: python a.py"}, tmp_path) == [tmp_path / "a.py"]
    assert provider_files("openai:gpt-4.1", tmp_path) == []


def test_the_networks_and_tools_of_a_direct_agent_are_followed(tmp_path: Path) -> None:
    for name in ("nets/manifest.hocon", "nets/desk.hocon", "coded/fare.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "tui_eval.yaml").write_text(
        "agents: {direct: {type: neuro-san, network: desk, manifest: nets/manifest.hocon, tool_path: coded}}\n"
    )
    state = AppState(tmp_path)
    state.config = load([tmp_path])
    pointer = CasePointer("net.hocon::case", agent="direct")
    assert [path.name for path in all_files_of_agent(state, pointer)] == [
        "manifest.hocon", "fare.py", "desk.hocon",
    ]  # fmt: skip
