"""Prompts from files of all kinds, as promptfoo 0.121.20 splits and labels them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import TESTS
from tui_eval.config.project import Config, SuiteRule
from tui_eval.formats import reading
from tui_eval.formats.promptfoo.promptfoo_words import beside
from tui_eval.formats.promptfoo.read import read
from tui_eval.formats.promptfoo.read.render import resolve_case
from tui_eval.formats.promptfoo.read.suite_file import SuiteReading, no_line
from tui_eval.formats.promptfoo.read.suite_prompts import PromptTemplate
from tui_eval.formats.promptfoo.read.suite_prompts import read as read_prompts
from tui_eval.guard.trust import Trust
from tui_eval.model import Compat, Suite

RECORDED = [
    json.loads(line)
    for line in (TESTS / "vectors" / "promptfoo_prompts.jsonl").read_text("utf-8").splitlines()
]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode("utf-8"))


def prompts_of(
    folder: Path, value: Any, compat: Compat = "documented"
) -> tuple[list[PromptTemplate], list[str]]:
    reading = SuiteReading("promptfooconfig.yaml", Config(root=folder), Trust(), compat)
    found = read_prompts(reading, value, no_line)
    return found, [problem.message for problem in reading.problems]


def suite_of(folder: Path, text: str) -> Suite:
    return read("promptfooconfig.yaml", text, Config(root=folder), Trust())


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_recorded_columns(case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, case["files"])
    for name, value in case["env"].items():
        monkeypatch.setenv(name, value)
    config = Config(root=tmp_path, suites=[SuiteRule(path="**", compat="reference")])
    suite = read("promptfooconfig.yaml", case["files"]["promptfooconfig.yaml"], config, Trust())
    errors = [problem for problem in reading.problems_of(suite) if problem.level == "error"]
    if case["columns"] is None:
        assert errors and errors[0].line and not suite.cases
        return
    assert not errors
    found = {(case.prompt, case.turns[0].text) for case in suite.cases}
    assert found == {(label, raw) for label, raw in case["columns"]}


def test_files_that_a_prompt_names(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "p.yaml": "- {role: system, content: file://system.md}\n- {role: user, content: '{{q}}', data: file://rows.csv}\n"
            "- {tools: file://t.json, more: 'file://*.md', run: 'file://f.py:make', one: file://one.csv}\n",
            "system.md": "Be brief.\n",
            "rows.csv": "a,b\n1,2\n",
            "one.csv": "a\n1\n2\n",
            "t.json": '[{"name": "x"}]',
            "bad.json": '{"a": "file://nope.txt"}',
        },
    )
    found, problems = prompts_of(tmp_path, ["file://p.yaml", "file://bad.json"])
    assert json.loads(found[0].raw) == [
        {"role": "system", "content": "Be brief.\n"},
        {"role": "user", "content": "{{q}}", "data": [{"a": "1", "b": "2"}]},
        {"tools": [{"name": "x"}], "more": ["Be brief.\n"], "run": "file://f.py:make", "one": ["1", "2"]},
    ]
    assert problems == ["there is no file nope.txt"] and len(found) == 1
    assert len(prompts_of(tmp_path, ["file://bad.json"], "reference")[0]) == 1


def test_a_table_of_prompts_that_does_not_fit_its_header_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, {"long.csv": "prompt,label\na,b,c\n", "none.csv": "text,label\na,b\n"})
    found, problems = prompts_of(tmp_path, ["long.csv", "none.csv"])
    assert not found
    assert problems == ["long.csv: a row has 3 cells, the header 2", "none.csv has no column prompt"]


def test_braces_are_patterns(tmp_path: Path) -> None:
    write(tmp_path, {"p/a.txt": "a", "p/b.md": "b", "p/c.csv": "c", "d.txt": "d"})
    found, problems = prompts_of(tmp_path, ["file://{p,q}/*.{txt,md}", "literal {a,b}"])
    assert [prompt.raw for prompt in found] == ["a", "b", "literal {a,b}"] and not problems


def test_an_empty_list_of_prompts_is_an_error(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, "providers: [echo]\nprompts: []\ntests: [{vars: {prompt: hi}}]\n")
    assert [str(problem) for problem in reading.problems_of(suite)] == [
        "promptfooconfig.yaml:2: prompts: there are none; list at least one, or leave the key out to send each test's var prompt"
    ]
    suite = suite_of(tmp_path, "providers: [echo]\ntests: [{vars: {prompt: hi}}]\n")
    assert suite.cases[0].turns[0].text == "{{prompt}}"


@pytest.mark.parametrize(
    "given",
    [
        "langfuse://greeting:3",
        "langfuse://{{name}} with a blank",
        "portkey://prompt-id",
        "helicone://id:1.2",
        "promptlayer://id",
        "{raw: 'langfuse://greeting'}",
        "{id: 'helicone://id', label: x}",
        "file://held.txt",
    ],
)
def test_a_prompt_that_is_kept_elsewhere_is_an_error_and_no_text_for_the_agent(
    tmp_path: Path, given: str
) -> None:
    (tmp_path / "held.txt").write_text("langfuse://greeting")
    (tmp_path / "promptfooconfig.yaml").write_text(
        f"prompts: [{given if given[0] == '{' else repr(given)}]\nproviders: [echo]\ntests: [{{vars: {{a: 1}}}}]\n"
    )
    suite = reading.load(tmp_path / "promptfooconfig.yaml", Config(root=tmp_path), Trust())
    assert not list(suite.cases)
    (problem,) = [found for found in suite.problems if found.level == "error"]
    assert (problem.line, problem.key) == (1, "prompts[0]")
    assert "prompts are not fetched here" in problem.message


def test_an_address_of_the_web_is_a_prompt(tmp_path: Path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['https://example.org/x', 'see s3://a/b and c']\nproviders: [echo]\ntests: [{vars: {a: 1}}]\n"
    )
    suite = reading.load(tmp_path / "promptfooconfig.yaml", Config(root=tmp_path), Trust())
    assert len(list(suite.cases)) == 2 and not [p for p in suite.problems if p.level == "error"]


def test_a_case_is_the_same_in_every_checkout_of_its_project(tmp_path: Path) -> None:
    """Shards of one commit run in other folders, or in one that is reached through a link; a copy is
    `--changed` nowhere."""
    files = {
        "evals/promptfooconfig.yaml": 'prompts: ["file://fn.py:make", file://fn.js, file://say.sh, "file://../shared/*.py",'
        ' "file://../shared/*.txt"]\nproviders: [echo]\ntests: [{vars: {a: "file://../shared/*.txt"}}]\n',
        "evals/fn.py": "def make(context): return 'x'\n",
        "evals/fn.js": "module.exports = () => 'x'\n",
        "evals/say.sh": "echo x\n",
        "shared/one.py": "print('x')\n",
        "shared/a.txt": "x",
        "shared/b.txt": "y",
    }
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "real").mkdir()
    roots = [tmp_path / "one", tmp_path / "deeper" / "two", tmp_path / "link" / "three"]
    found: list[list[tuple[str, str]]] = []
    for root in roots:
        write(root, files)
        config = Config(root=root)
        suite = read(
            "evals/promptfooconfig.yaml", files["evals/promptfooconfig.yaml"], config, Trust(granted=True)
        )
        found.append([(case.case_id, case.content_hash) for case in suite.cases])
        made = [
            resolve_case(case, root / "evals", root, Trust(granted=True)).function
            for case in suite.cases
            if beside(case, "promptFunction")
        ]
        assert {one.file for one in made if one} == {
            (root / name).resolve()
            for name in ("evals/fn.py", "evals/fn.js", "evals/say.sh", "shared/one.py")
        }
    assert len(found[0]) == 12
    assert found[0] == found[1] == found[2]
