"""Files that are wrong in any way: problems, never an exception."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tui_eval.config.project import Config
from tui_eval.formats.promptfoo import read
from tui_eval.formats.promptfoo.promptfoo_words import ListError
from tui_eval.formats.promptfoo.read import csv_rows, matrix_cases, references
from tui_eval.formats.promptfoo.read.csv_rows import read as read_csv
from tui_eval.formats.promptfoo.read.promptfoo_types import ASSERTION_KEYS, BASE_TYPES, TEST_KEYS, TOP_KEYS
from tui_eval.formats.promptfoo.read.render import RenderError, resolve_case
from tui_eval.formats.promptfoo.read.suite_file import SuiteReading
from tui_eval.formats.promptfoo.read.test_rows import CsvError, rows
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Suite

FOLDER = Path(tempfile.mkdtemp())

WORDS = st.sampled_from(
    [*sorted(TOP_KEYS | TEST_KEYS | ASSERTION_KEYS), "$ref", "#/tests", "#/", "file://x.yaml", "file://*.csv", "file://", "../..", "assert-set", "{{q}}", "{{ env.HOME }}",
       "filterRange", "filterSample", "filterSampleSeed", "envPath", "promptPrefix", "1:2", "file://v.py", "file://i.png", "file://d.pdf", "file://h.py:beforeAll", "b.xlsx#2",
       "https://docs.google.com/spreadsheets/d/x", "echo", "path", "raw", "label", "id", "q", "repeat", "disableVarExpansion", "prefix", "\x00", "https://x", "exec:ls",
       "file://\x00", "/", "*", "file://[", "promptfooconfig.yaml", "x" * 300 + ".txt"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=25,
)
TESTS = st.lists(st.dictionaries(st.sampled_from(sorted(TEST_KEYS)), VALUES, max_size=5) | VALUES, max_size=4)
SUITES = st.fixed_dictionaries(
    {}, optional={**{k: VALUES for k in sorted(TOP_KEYS)}, "tests": TESTS, "prompts": st.just(["{{q}}"])}
)


def exercised(text: str) -> Suite:
    trust = Trust()
    suite = read.read("promptfooconfig.yaml", text, Config(root=FOLDER), trust)
    assert isinstance(suite, Suite)
    ids = [case.case_id for case in suite.cases]
    assert len(ids) == len(set(ids))
    for problem in [*suite.problems, *(p for c in suite.cases for p in c.problems)]:
        assert problem.path
        assert problem.message
    for case in suite.cases[:5]:
        try:
            resolve_case(case, FOLDER, FOLDER, trust, env=suite.settings.get("env"))
        except (RenderError, NeedsTrust) as error:
            assert "\n" not in str(error)
    return suite


@pytest.mark.real
@examples(200)
@given(SUITES)
def test_any_structure(value: dict[str, Any]) -> None:
    exercised(json.dumps(value))


@examples(200)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60) | st.lists(
    st.sampled_from(["tests:", "\n", "- ", "  ", "vars", ": ", "&a ", "*a", "<<: ", "{", "}", "[", "]", "|", "'", '"', "!x ", "---", "#", "a"]),
    max_size=25,
).map("".join))  # fmt: skip
def test_any_text(text: str) -> None:
    exercised(text)


@examples(300)
@given(st.lists(st.sampled_from(
    ["q", ",", "\n", '"', '""', "\r\n", "__expected", "__expected1", "contains: a", "contains-any: ", "__metadata:t[]",
     "__metadata", "__config:__expected:threshold", "__config:x", "__threshold", "0.5", " ", "\ufeff", "\x00", "\\,", "é"]
), max_size=30).map("".join), st.booleans())  # fmt: skip
def test_any_csv(text: str, reference: bool) -> None:
    config = Config(root=FOLDER)
    reading = SuiteReading(
        "promptfooconfig.yaml", config, Trust(), "reference" if reference else "documented"
    )
    for test in read_csv(reading, "t.csv", text):
        assert test.line >= 1
        assert all(isinstance(value, str) for value in test.vars.values())
    for strict in (False, True):
        try:
            assert all(line >= 1 for line, _ in rows(text, strict=strict))
        except CsvError as error:
            assert error.line >= 1


@given(
    st.sampled_from(sorted(BASE_TYPES)),
    st.text(max_size=12),
    st.sampled_from(["", "(1)", "(0.5)", "(x)", "(-1)"]),
)
def test_any_shorthand(kind: str, value: str, number: str) -> None:
    for cell in (f"{kind}{number}:{value}", f"not-{kind}{number}", value.strip() or "x"):
        try:
            assert csv_rows.assertion_of_cell(cell).type
        except ListError as error:
            assert "\n" not in str(error)


def test_aliases_that_double_and_deep_nesting_end() -> None:
    doubling = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))
    assert exercised(doubling + "tests: *a39\n").problems
    assert exercised("tests: " + "[" * 5000).problems
    matrix = ", ".join(f"v{i}: [a, b, c, d]" for i in range(30))
    suite = exercised(
        f"providers: [echo]\nprompts: [x]\ntests: [{{vars: {{{matrix}}}}}, {{vars: {{q: ok}}}}]"
    )
    assert len(suite.cases) == 1
    assert "combinations" in str(suite.problems[0])


def test_references_in_a_circle_end() -> None:
    for text in (
        "tests: [{$ref: '#/tests/0'}]",
        "a: {$ref: '#/b'}\nb: {$ref: '#/a'}\ntests: [{$ref: '#/a'}]",
        "tests: [{vars: {$ref: '#'}}]",
    ):
        assert exercised(text).problems


def test_references_to_all_that_they_stand_in_end_at_once_and_are_said_once_each() -> None:
    tests = "".join(
        f"- {{vars: {{q: {n}}}, assert: [{{type: is-json, value: {{$ref: '#'}}}}]}}\n" for n in range(20)
    )
    before = time.thread_time()
    suite = exercised(f"providers: [echo]\nprompts: ['{{{{q}}}}']\ntests:\n{tests}")
    assert time.thread_time() - before < 2
    assert [problem.key for problem in suite.problems] == [f"tests[{n}].assert[0].value" for n in range(20)]
    assert "$ref #: refers to itself" in str(suite.problems[0])


def test_references_that_multiply_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "MOST", 10_000)
    levels = {f"x{n}": [{"$ref": f"#/x{n + 1}"}] * 10 for n in range(20)}
    tests = [{"vars": {"q": {"$ref": "#/x0"}}}]
    suite = exercised(json.dumps({**levels, "x20": "a", "tests": tests}))
    assert any("refers too far, or to too much" in str(problem) for problem in suite.problems)


def test_a_scenario_that_multiplies_beyond_what_can_be_meant_is_an_error_of_it_alone() -> None:
    many = [{"vars": {"q": n}} for n in range(400)]
    scenarios = [{"config": many, "tests": many}, {"config": [{"vars": {"w": 1}}], "tests": many[:2]}]
    suite = exercised(json.dumps({"providers": ["echo"], "prompts": ["{{q}}"], "scenarios": scenarios}))
    assert len(suite.cases) == 2
    assert "scenarios[0]: 400 entries of config × 400 tests, at most 100,000" in str(suite.problems[0])


def test_columns_that_multiply_beyond_what_can_be_meant_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_cases, "MOST", 20)
    many = {
        "providers": [{"id": "echo", "label": f"p{n}"} for n in range(5)],
        "prompts": [f"{n}" for n in range(5)],
    }
    suite = exercised(json.dumps({**many, "tests": [{"vars": {"q": 1}}]}))
    assert not suite.cases
    assert "5 providers × 5 prompts, at most 20 together" in str(suite.problems[0])


def test_tests_that_multiply_with_columns_end_and_say_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_cases, "MOST_MADE", 20)
    tests = [{"vars": {"q": n}} for n in range(30)]
    suite = exercised(json.dumps({"providers": ["echo"], "prompts": ["a {{q}}", "b {{q}}"], "tests": tests}))
    assert len(suite.cases) == 20
    said = [str(one) for one in suite.problems if "comes to more than" in str(one)]
    assert len(said) == 1 and "more than 20 cases" in said[0]
