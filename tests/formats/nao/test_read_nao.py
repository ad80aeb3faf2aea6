"""nao tests: the keys, nao's own error texts, and our comparison settings."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support import TESTS
from tests.support.examples import examples
from tests.support.suite_files import messages, read, structures
from tui_eval.formats.nao import read_nao

VECTORS = TESTS / "vectors" / "nao_assertions.jsonl"
ROWS = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
SEED = """\
name: total_revenue
prompt: What is the total revenue from all orders?
sql: |
  SELECT SUM(amount) as total_revenue
  FROM orders
"""


def test_the_seeds_test():
    suite = read(read_nao, SEED, "tests/total_revenue.yml")
    (case,) = suite.cases
    assert not messages(suite)
    assert (case.case_id, case.name, case.line) == (
        "tests/total_revenue.yml::total_revenue",
        "total_revenue",
        1,
    )
    assert [t.text for t in case.turns] == ["What is the total revenue from all orders?"]
    (sql,) = case.assertions
    assert (sql.type, sql.target, sql.line) == ("sql", "rows", 3)
    assert sql.value == "SELECT SUM(amount) as total_revenue\nFROM orders\n"


@pytest.mark.parametrize("row", [r for r in ROWS if "parse" in r], ids=lambda r: r["id"])
def test_assertions_are_accepted_and_refused_as_by_nao(row):
    text = json.dumps({"name": "n", "prompt": "p", "assertions": row.get("assertions")})
    suite = read(read_nao, text)
    if row["parse"]["ok"]:
        assert not messages(suite)
        (case,) = suite.cases
        assert len(case.assertions) == row["parse"]["count"]
        assert all((a.type, a.target) == ("tool_call", "tools") for a in case.assertions)
    else:
        assert not suite.cases
        assert [p.message for p in suite.problems] == [row["parse"]["error"]]


def test_name_and_database_are_text_and_an_absent_name_is_the_stem():
    assert read(read_nao, "{name: 12, prompt: x, database: 7}").cases[0].name == "12"
    assert read(read_nao, "{name: 1.10, prompt: 5}").cases[0].turns[0].text == "5"
    case = read(read_nao, "{prompt: x, database: 7}", "tests/a/b.yml").cases[0]
    assert (case.name, case.database, case.case_id) == ("b", "7", "tests/a/b.yml::b")


def test_a_prompt_alone_asserts_nothing():
    for sql in ("", "sql:", 'sql: ""'):
        suite = read(read_nao, f"prompt: x\n{sql}\n")
        assert not messages(suite) and not suite.cases[0].assertions


def test_comparison_settings_of_a_case():
    text = "prompt: x\nsql: y\ncomparison: {rtol: 1e-3, atol: 0, decimals: 2, ordered: true, key: id}\n"
    suite = read(read_nao, text)
    assert not messages(suite)
    assert suite.cases[0].comparison == {
        "rtol": 1e-3,
        "atol": 0,
        "decimals": 2,
        "ordered": True,
        "key": ["id"],
    }


@pytest.mark.parametrize(
    ("text", "line", "words", "level"),
    [
        ("name: a\n", 1, "'prompt' is missing", "error"),
        ("name: a\nprompt:\n", 1, "'prompt' is missing", "error"),
        ("name: a\nprompt: [x]\n", 2, "must be text", "error"),
        ("prompt: x\nslq: y\n", 2, "did you mean 'sql'", "error"),
        ("prompt: x\ntags: [y]\n", 2, "not read", "note"),
        ("prompt: x\nsql: [y]\n", 2, "must be text", "error"),
        ("prompt: x\ncomparison:\n  rtol: much\n", 3, "must be a number", "error"),
        ("prompt: x\ncomparison:\n  rtol: -1\n", 3, "at least 0", "error"),
        ("prompt: x\ncomparison:\n  decimals: 1.5\n", 3, "whole number", "error"),
        ("prompt: x\ncomparison:\n  ordered: 1\n", 3, "true or false", "error"),
        ("prompt: x\ncomparison:\n  tolerance: 1\n", 3, "known keys", "error"),
        ("prompt: x\nassertions:\n  - type: tool_call\n", 3, "non-empty 'tool'", "error"),
        (
            "prompt: x\nassertions:\n  - {type: tool_call, tol: a}\n",
            3,
            "did you mean 'tool' by 'tol'?",
            "error",
        ),
        (
            "prompt: x\nassertions:\n  - {tpye: tool_call, tool: a}\n",
            3,
            "did you mean 'type' by 'tpye'?",
            "error",
        ),
        ("", 0, "must be a mapping", "error"),
        ("- a\n", 1, "must be a mapping", "error"),
        ("prompt: x: y\n", 1, "not valid YAML", "error"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text, line, words, level):
    suite = read(read_nao, text)
    (problem,) = [*suite.problems, *(p for c in suite.cases for p in c.problems)]
    assert words in str(problem) and problem.line == line and problem.level == level


@pytest.mark.parametrize(
    ("path", "text", "yes"),
    [
        ("tests/a.yml", "prompt: x", True),
        ("a.yml", "prompt: x", False),
        ("a.yml", "prompt: x\nsql: y", True),
        ("a.yaml", "{prompt: x, assertions: []}", True),
        ("tests/deep/a.yml", "name: x\nsql: y", True),
        ("tests/a.yml", "promt: x\nsql: y", True),
        ("tests/a.yml", "version: 3\nservices: {}\n", False),
        ("tests/a.yml", "prompts: [x]\nproviders: [y]\ntests: []\nprompt: z", False),
        ("tests/a.json", '{"prompt": "x"}', False),
        ("tests/A.YML", "prompt: x", True),  # nao passes it over without a word
        ("tests/a.yml", "- prompt: x\n  sql: y", False),
    ],
)
def test_which_files_are_nao_tests(path, text, yes):
    assert read_nao.recognises(Path(path), text) is yes


@pytest.mark.real
@examples(200)
@given(structures([*read_nao.KEYS, *read_nao.TOOL_CALL_KEYS, *read_nao.COMPARISON_KEYS]))
def test_no_structure_raises(data):
    for value in (data, {"prompt": "x", "assertions": [data], "comparison": data, "sql": data}):
        for text in (yaml.safe_dump(value), json.dumps(value)):
            messages(read(read_nao, text))


@examples(60)
@given(st.text())
def test_no_text_raises(text):
    messages(read(read_nao, text))
    read_nao.recognises(Path("tests/x.yml"), "prompt: " + text)
