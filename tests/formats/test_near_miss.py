"""Files that were meant as a suite and are none by a slip: never passed over without a word. Ordinary files are."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_eval.config.project import load as load_config
from tui_eval.formats.discovery import discover, reader_for
from tui_eval.formats.near_miss import PassedOver
from tui_eval.formats.reading import load_all
from tui_eval.formats.start_to_agent.start_to_agent_format import START_TO_AGENT
from tui_eval.guard.trust import Trust

GOOD = "agent: a\ntest_cases:\n  - name: n\n    input: i\n"
CASE = "  - name: n\n    input: i\n    expected: {should_contain: [x]}\n"
NAO = "name: total\nprompt: How much?\nsql: |\n  SELECT 1 AS n\n"
NEURO = '{\n  "agent": "net",\n  "interactions": [ { "text": "hi", "response": { "text": { "keywords": "x" } } } ]\n}\n'
FOO = "prompts: [a]\nproviders: [echo]\ntests:\n  - vars: {a: b}\n"


def said(folder: Path) -> list[str]:
    """The errors of a run of the folder, beside a suite that is right."""
    (folder / "good.yaml").write_text(GOOD)
    suites = load_all([folder], load_config([folder], root=folder), Trust())
    assert "good.yaml" in {suite.path for suite in suites}
    return [str(one) for suite in suites for one in suite.problems if one.level == "error"]


SLIPS = {
    "a.yaml": [
        (f"agent: a\ntest_case:\n{CASE}", "a.yaml:2: test_case: 'test_case' is no key", "did you mean 'test_cases'?"),
        (f"testcases:\n{CASE}", "a.yaml:1: testcases:", "did you mean 'test_cases'?"),
        (f"Test_Cases:\n{CASE}", "a.yaml:1: Test_Cases:", "did you mean 'test_cases'?"),
        (f"test-cases:\n{CASE}", "a.yaml:1: test-cases:", "did you mean 'test_cases'?"),
        (f"Test Cases:\n{CASE}", "a.yaml:1: Test Cases:", "did you mean 'test_cases'?"),
        (f'"tests_cases":\n{CASE}', "a.yaml:1: tests_cases:", "did you mean 'test_cases'?"),
        ('{"agent": "a", "testCases": [{"input": "i"}]}', "a.yaml:1: testCases:", "did you mean 'test_cases'?"),
        ('{\n  "test_case": [\n    {"input": "i"}]}', "a.yaml:2: test_case:", "did you mean 'test_cases'?"),
        ("  agent: a\n  test_case:\n    - input: i\n", "a.yaml:2: test_case:", "did you mean 'test_cases'?"),
        ("test_cases:\n  first:\n    input: i\n", "a.yaml:1: test_cases: must be a list of cases, not a mapping", ""),
        ("agent: a\ntest_cases:\n  name: n\n  input: i\n", "a.yaml:2: test_cases: must be a list of cases, not a mapping", ""),
        ("agent: a\ntest_cases:\n", "a.yaml:2: test_cases: must be a list of cases, not nothing", ""),
        ("test_cases: cases.yaml\n", "a.yaml:1: test_cases: must be a list of cases, not the text", ""),
        (f"agent: a\n\tmodel: m\ntest_cases:\n{CASE}", "a.yaml:2: not valid YAML: a tab", "indent with spaces"),
        (f"agent: a\ntest_case:\n\t{CASE}", "a.yaml:3: not valid YAML: a tab", "StartToAgent"),
        ("test_cases: 'x\n", "a.yaml:1: not valid YAML", "StartToAgent"),
        ('{"test_cases": [{"input": "i"}', "a.yaml:1: not valid YAML", "StartToAgent"),
        (f"test_case:\n{CASE}".encode("utf-16").decode("utf-16"), "a.yaml:1: test_case:", ""),
        (NAO.replace("prompt", "promt"), "a.yaml:2: promt: 'promt' is no key of a nao suite", "did you mean 'prompt'?"),
        (NAO.replace("prompt", "Prompt"), "a.yaml:2: Prompt:", "did you mean 'prompt'?"),
        (NAO.replace("sql", "sqll"), "a.yaml:3: sqll:", "did you mean 'sql'?"),
        (NAO.replace("sql", "SQL"), "a.yaml:3: SQL:", "did you mean 'sql'?"),
        ("prompt: p\nassertion:\n  - {type: tool_call, tool: x}\n", "a.yaml:2: assertion:", "'assertions'?"),
        ('{"prompt": "p", "sql": "SELECT 1"', "a.yaml:1: not valid YAML", "nao"),
        (NAO.replace("name:", "\tname:").replace("prompt", "promt"), "a.yaml:1: not valid YAML: a tab", "nao"),
    ],
    "a.hocon": [
        (NEURO.replace("interactions", "interaction"), "a.hocon:3: interaction:", "did you mean 'interactions'?"),
        (NEURO.replace("interactions", "Interactions"), "a.hocon:3: Interactions:", "did you mean 'interactions'?"),
        ("agent = net\ninteracions = [ { text = hi } ]\n", "a.hocon:2: interacions:", "did you mean 'interactions'?"),
        (NEURO.replace("[ {", "{").replace("} ]", "}"), "a.hocon:3: interactions: must be a list", ""),
        (NEURO[:-3], "a.hocon:1: not valid HOCON", ""),
        (NEURO[:-3].replace("interactions", "interaction"), "a.hocon:1: not valid HOCON", "neuro-san"),
        ('include "gone.hocon"\nconnections = http\n', "a.hocon:1: include: ", "gone.hocon"),
        ('include required("gone.hocon")\nconnections = http\n', "a.hocon:1: ", "gone.hocon"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "begins", "holds"), [(name, *one) for name in SLIPS for one in SLIPS[name]]
)
def test_what_was_meant_as_a_suite_is_an_error(
    tmp_path: Path, name: str, text: str, begins: str, holds: str
) -> None:
    (tmp_path / name).write_text(text)
    told = said(tmp_path)
    assert any(one.startswith(begins) and holds in one for one in told), told
    (tmp_path / "good.yaml").unlink()
    (named,) = load_all([tmp_path / name], load_config([tmp_path], root=tmp_path), Trust())
    assert any(holds in str(one) for one in named.problems), "named outright it is told the same"
    loaded = [str(one) for one in named.problems]
    assert not any("not recognised" in one for one in loaded), loaded


@pytest.mark.parametrize(
    ("name", "text"), [("B.YAML", GOOD), ("c.Yml", NAO), ("x.HOCON", NEURO), ("promptfooConfig.YAML", FOO)]
)
def test_endings_count_in_any_case(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert said(tmp_path) == []
    suites = load_all([tmp_path], load_config([tmp_path], root=tmp_path), Trust())
    assert name in {suite.path for suite in suites if suite.cases}


def test_a_promptfoo_suite_of_another_name_is_noted(tmp_path: Path) -> None:
    """promptfoo, too, takes only its own names in a folder; which are slips is said when the file is named."""
    texts = {
        "right.yaml": FOO,
        "flow.yaml": json.dumps({"prompts": ["a"], "providers": ["echo"], "tests": [{"vars": {"a": "b"}}]}),
        "prompt.yaml": FOO.replace("prompts", "prompt"),
        "provders.yaml": FOO.replace("providers", "provders"),
        "test.yaml": FOO.replace("tests", "test"),
        "Tests.yaml": FOO.replace("tests", "Tests"),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert said(tmp_path) == []
    _, problems = discover([tmp_path], tmp_path)
    assert {one.path for one in problems if one.level == "note"} == texts.keys()
    assert all("promptfoo" in str(one) for one in problems)
    for name in texts.keys() - {"right.yaml", "flow.yaml"}:
        _, (told,) = discover([tmp_path / name], tmp_path)
        assert told.level == "error" and "did you mean" in told.cure
    assert discover([tmp_path / "flow.yaml"], tmp_path)[1] == []


@pytest.mark.parametrize("key", ["prompt", "provders", "test", "Tests"])
def test_a_slip_in_a_promptfooconfig_is_an_error(tmp_path: Path, key: str) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(
        FOO.replace({"p": "prompts", "t": "tests"}[key[0].lower()] if key != "provders" else "providers", key)
    )
    assert any(f"{key}:" in one and "did you mean" in one for one in said(tmp_path))


@pytest.mark.parametrize(
    "text", ['{"prompts": ["a"], "providers": ["echo"]', "prompts: [a\nproviders: [b]\n", "prompts:\n\t- a\n"]
)
@pytest.mark.parametrize("name", ["promptfooconfig.json", "promptfooconfig.yaml"])
def test_a_broken_promptfooconfig_is_an_error(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert any("not valid" in one for one in said(tmp_path))


ORDINARY = {
    "docker-compose.yml": "services:\n  web:\n    image: nginx\n    environment: {PROMPT: hi}\n  db: {image: postgres}\n",
    ".github-ci.yaml": "x",
    "workflow.yml": "name: CI\non: [push]\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pytest\n",
    "action.yml": "name: Prompt\ninputs:\n  prompt: {description: p, required: true}\nruns: {using: composite, steps: []}\n",
    "mkdocs.yml": "site_name: Docs\nnav:\n  - Tests: tests.md\n  - Prompts: prompts.md\nplugins: [search]\n",
    "deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {template: {}}\n---\nkind: Service\n",
    "helm.yaml": "apiVersion: v1\nkind: {{ .Values.kind }}\ndata:\n  prompt: {{ .Values.prompt | quote }}\n  sql: {{ x }}\n",
    "values.yaml": "prompt: You are helpful.\nproviders: {openai: {key: x}}\nssl: {host: db}\ntests: {enabled: true}\n",
    "values2.yaml": "prompt: You are helpful.\nprompts: 3\ntest: false\nmysql: {enabled: true}\n",
    "openapi.yaml": "openapi: 3.0.0\ninfo: {title: x}\npaths: {/a: {get: {}}}\ntests: []\n",
    "asyncapi.yaml": "asyncapi: 2.0.0\nchannels: {}\ntags: [prompt]\n",
    "package.yaml": '{"name": "x", "scripts": {"test": "jest"}, "prompts": "^2", "dependencies": {"prompt": "^1"}}',
    "tsconfig.yaml": '{"compilerOptions": {"strict": true}, "include": ["src"]}',
    "schema.yml": "version: 2\nmodels:\n  - name: orders\n    columns: [{name: id, tests: [unique]}]\n",
    "dbt_project.yml": "name: shop\nversion: 1.0.0\ntests:\n  shop: {+severity: warn}\nmodels: {shop: {}}\n",
    "unit_tests.yml": "unit_tests:\n  - name: t\n    model: m\n    given: [{input: ref('a'), rows: []}]\n    expect: {rows: []}\n",
    ".pre-commit.yaml": "x",
    "pre-commit-config.yaml": "repos:\n  - repo: https://github.com/x\n    hooks: [{id: ruff}]\n",
    "test_api.tavern.yaml": "test_name: Get\nstages:\n  - name: a\n    request: {url: x}\n    response: {status_code: 200}\n",
    "venom.yaml": "name: Suite\ntestcases:\n- name: a\n  steps:\n  - script: echo foo\n    assertions: [result.code ShouldEqual 0]\n",
    "judge.yaml": "testcases:\n  - input: 1 2\n    output: 3\n    points: 10\n",
    "two_sum.yaml": "entry: twoSum\ntestcases:\n  - input: [[2, 7], 9]\n    output: [0, 1]\n",
    "benchmark.yaml": "benchmarkId: x\ntestCases:\n  - {input: a, expected: true}\n  - {input: '!a', expected: false}\n",
    "codec.yaml": "testCases:\n  - input: 'ops = []'\n    expected: '[1]'\n",
    "answers.yaml": "testCases:\n  - input: {a: 1}\n    expected: {b: 2}\n",
    "salesforce.yaml": "name: T\nsubjectName: A\ntestCases:\n  - inputs: [{utterance: x}]\n    scorers: [{name: y}]\n",
    "agent-evo.yaml": "version: 1\nagent: {module: e, function: run}\ntest_cases: ./tests/*.yaml\nllm: {model: m}\n",
    "plan.yaml": "test_cases:\n  total: 15\n  items: [{id: TC1, input: {a: b}, expected: throws}]\n",
    "output.yaml": "test_cases:\n  total_tests: integer\n  by_type: {component: integer}\n",
    "numbers.yaml": "test_cases: 12\nfailures: 0\n",
    "counts.yaml": "test_cases: {total: 12, failed: 1}\n",
    "playbook.yml": "- hosts: all\n  vars_prompt:\n    - {name: user, prompt: Who?}\n  tasks: []\n",
    "langchain.yaml": "_type: prompt\ninput_variables: [q]\ntemplate: Tell me {q}\n",
    "few_shot.yaml": "_type: few_shot\nexamples: [{input: a, output: b}]\nprefix: x\nexample_prompt: {template: t}\n",
    "agent.yaml": "name: bot\nprompt: You are a bot.\ntools: [search]\nmodel: gpt-4.1\n",
    "text_to_sql.yaml": "prompt: Write SQL for {question}\ndialect: duckdb\nsql_dialect: x\n",
    "vanna.yaml": "- question: How many?\n  sql: SELECT 1\n- question: Who?\n  sql: SELECT 2\n",
    "superset.yaml": "table_name: orders\nsql: SELECT * FROM orders\nmetrics: []\n",
    "semantic.yaml": "name: revenue\nsql: SELECT 1\ntype: metric\n",
    "providers.yaml": "- id: openai:gpt-4.1\n  config: {temperature: 0}\n",
    "provider.yaml": "id: openai:gpt-4.1\nlabel: gpt\nprompts: [a]\nconfig: {temperature: 0}\n",
    "rows.yaml": "- vars: {a: 1}\n  assert: [{type: equals, value: x}]\n",
    "prompts.yaml": "prompts:\n  - a\n  - b\n",
    "tests_only.yaml": "tests:\n  - vars: {a: 1}\n",
    "tox.yaml": "providers: [a]\ntest: [unit]\n",
    "cases.yaml": "- name: n\n  input: i\n",
    "mentions.yaml": "description: |\n  test_case: write\n  - input: i\n",
    "empty.yaml": "",
    "comment.yaml": "# test_cases:\n#   - input: i\n",
    "network.hocon": '{\n  include "registries/aaosa.hocon"\n  "llm_config": {"model_name": "gpt-4o"},\n  "tools": [{"name": "a", "function": {"interaction": ["x"]}}]\n}\n',
    "no_include.hocon": 'include "gone.hocon"\nllm_config { model_name = x }\n',
    "common.hocon": 'success_ratio = "2/3"\nconnections = http\n',
    "play.hocon": 'akka { interaction = [ "x" ] }\ninteraction = 3\n',
}  # fmt: skip


@pytest.mark.parametrize("name", ORDINARY)
def test_what_lies_about_in_projects_is_passed_over_silently(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(ORDINARY[name])
    assert said(tmp_path) == []
    assert discover([tmp_path], tmp_path) == ([tmp_path / "good.yaml"], [])


def test_what_a_suite_reads_is_none_that_was_meant(tmp_path: Path) -> None:
    """The data of a suite may look like anything."""
    (tmp_path / "one.yaml").write_text(f"testcases:\n{CASE}")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{data}}']\nproviders: [echo]\ntests:\n  - vars: {data: file://one.yaml}\n"
    )
    assert said(tmp_path) == []
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{data}}']\nproviders: [echo]\ntests:\n  - vars: {data: 'file://o*.yaml'}\n"
    )
    assert said(tmp_path) == []
    (tmp_path / "promptfooconfig.yaml").unlink()
    assert len(said(tmp_path)) == 1


LETTERS = st.sampled_from("abcdefghijklmnopqrstuvwxyz_")


@st.composite
def slips_of(draw: st.DrawFn, word: str) -> str:
    """The word with one letter left out, put in, replaced, or swapped with the next one, or in other capitals."""
    place = draw(st.integers(0, len(word) - 1))
    kind = draw(st.sampled_from(["out", "in", "other", "swapped", "capital"]))
    before, at, after = word[:place], word[place], word[place + 1 :]
    made = {
        "out": before + after,
        "in": before + draw(LETTERS) + at + after,
        "other": before + draw(LETTERS) + after,
        "swapped": before + after[:1] + at + after[1:],
        "capital": before + at.upper() + after,
    }[kind]
    return made


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_one_letter_beside_never_goes_without_a_word(data: st.DataObject) -> None:
    name, text, word = data.draw(
        st.sampled_from(
            [
                ("a.yaml", f"agent: a\ntest_cases:\n{CASE}", "test_cases"),
                ("a.yaml", '{"test_cases": [{"input": "i"}]}', "test_cases"),
                ("a.yaml", NAO, "prompt"),
                ("a.yaml", NAO, "sql"),
                ("a.hocon", NEURO, "interactions"),
            ]
        )
    )
    slip = data.draw(slips_of(word))
    text = text.replace(word, slip, 1)
    root = Path(os.path.curdir)
    if reader_for(name, text, root, by_name=True) is None:
        file = PassedOver(name, text, root)
        from tui_eval.formats import all_formats

        told = [one for form in all_formats() for one in form.meant(file)]
        assert told and f"did you mean {word!r}?" in str(told[0]), text


def linked(root: Path) -> Path:
    (root / "evals").mkdir(parents=True)
    (root / "shared").mkdir()
    (root / "shared" / "s.yaml").write_text(GOOD)
    (root / "evals" / "e.yaml").write_text(GOOD)
    (root / "evals" / "more").symlink_to(root / "shared")
    (root / "shared" / "up").symlink_to(root)
    (root / "shared" / "self").symlink_to(root / "shared")
    return root


def test_a_folder_that_is_a_link_within_the_project_is_looked_into_once(tmp_path: Path) -> None:
    root = linked(tmp_path / "p")
    found, problems = discover([root], root)
    assert [str(one.relative_to(root)) for one in found] == ["evals/e.yaml", "shared/s.yaml"]
    assert problems == []
    found, problems = discover([root / "evals"], root)
    assert [str(one.relative_to(root)) for one in found] == ["evals/e.yaml", "evals/more/s.yaml"]
    assert [(one.path, one.level) for one in problems] == [("evals/more/up", "note")]


def test_a_folder_that_is_a_link_out_of_the_project_is_noted_and_not_read(tmp_path: Path) -> None:
    root = linked(tmp_path / "p")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "o.yaml").write_text(GOOD)
    (root / "evals" / "out").symlink_to(tmp_path / "out")
    found, (note,) = discover([root], root)
    assert len(found) == 2
    assert (note.path, note.level) == ("evals/out", "note") and "leads out of the project" in note.message
    assert len(discover([root / "evals" / "out"], root)[0]) == 1


def test_a_suite_that_is_a_link_to_nothing_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "gone.yaml").symlink_to("nowhere.yaml")
    (tmp_path / "circle.yml").symlink_to("circle.yml")
    (tmp_path / "gone.txt").symlink_to("nowhere")
    assert sorted(one.partition(":")[0] for one in said(tmp_path)) == ["circle.yml", "gone.yaml"]


def test_a_number_of_cases_is_no_list_of_them() -> None:
    assert not START_TO_AGENT.meant(PassedOver("a.yaml", "test_cases: 3\n", Path()))
