"""Rules of promptfoo 0.121.20 that were once read wrongly here: what it made of these suites."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.support.promptfoo_files import Make, errors
from tui_eval.formats.promptfoo.read.render import render_case, resolve_case
from tui_eval.guard.trust import Trust
from tui_eval.scripting.python.python_host import PythonHost


def test_keys_beside_a_reference_go_over_what_it_refers_to(make: Make) -> None:
    suite = make("""providers: [echo]
prompts: ['{{q}}']
assertionTemplates:
  c: {type: contains, value: a}
tests:
- vars: {q: abc}
  assert:
  - $ref: '#/assertionTemplates/c'
    value: zz
    weight: 2
""")
    assert not errors(suite)
    (assertion,) = suite.cases[0].assertions
    assert (assertion.type, assertion.value, assertion.weight) == ("contains", "zz", 2)


def test_reference_fills_a_yaml_file_in_as_compact_json(make: Make, tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text("k: [1, 2]\nn: 010\n")
    (tmp_path / "d.json").write_text('{"k": 1}\n')
    suite = make("""providers: [echo]
prompts: ['{{y}}|{{j}}|{{y.k}}']
tests: [{vars: {y: file://d.yaml, j: file://d.json}}]
""")
    (case,) = suite.cases
    reference = resolve_case(case, tmp_path, tmp_path, Trust(), compat="reference")
    assert reference.prompt == '{"k":[1,2],"n":10}|{"k": 1}|'
    documented = resolve_case(case, tmp_path, tmp_path, Trust())
    assert documented.prompt == 'k: [1, 2]\nn: 010|{"k": 1}|1,2'


async def test_code_sees_the_variables_before_its_own_as_they_are_filled_in(
    make: Make, tmp_path: Path
) -> None:
    (tmp_path / "x.txt").write_text("text\n")
    (tmp_path / "g.py").write_text(
        "def get_var(name, prompt, vars):\n    return {'output': vars['a'] + vars['c'][:7]}\n"
    )
    suite = make("""providers: [echo]
prompts: ['{{b}}']
tests: [{vars: {a: file://x.txt, b: file://g.py, c: file://x.txt}}]
""")
    python = PythonHost(tmp_path)
    try:
        rendered = await render_case(suite.cases[0], tmp_path, tmp_path, Trust(True), python)
    finally:
        python.close()
    assert rendered.prompt == "textfile://"


def test_not_before_types_that_do_not_heed_it_is_noted(make: Make) -> None:
    suite = make(
        "providers: [echo]\nprompts: [x]\ntests:\n- assert:\n  - {type: not-trace-error-spans, value: 0}\n"
        "  - {type: not-contains, value: y}\n"
    )
    said = [(p.line, p.key, p.message) for p in suite.cases[0].problems]
    assert said == [
        (5, "tests[0].assert[0].type", "not- makes no difference before trace-error-spans, as in promptfoo")
    ]


def test_what_a_default_and_a_test_lay_over_one_another(make: Make) -> None:
    """As promptfoo does it: an empty prefix takes none away, only a test refuses assertions, and what stands
    for an answer is a test's own or a scenario's."""
    suite = make(
        """
        providers: [echo]
        prompts: [x]
        defaultTest:
          description: default
          providerOutput: none
          options: {prefix: P, suffix: S, disableDefaultAsserts: true}
          assert: [{type: contains, value: d}]
        tests:
        - {vars: {a: 1}, options: {prefix: '', suffix: T}}
        - {vars: {a: 2}, options: {disableDefaultAsserts: true}, providerOutput: 0}
        - {vars: {a: 3}, options: {disableDefaultAsserts: 'true'}, providerOutput: own}
        scenarios:
        - config: [{vars: {a: 4}}]
          tests: [{vars: {}}, {vars: {}, description: own, providerOutput: mine, options: {disableDefaultAsserts: false}}]
        """
    )
    found = [
        (c.description, c.provider_output, c.options.get("prefix"), c.options["suffix"], len(c.assertions))
        for c in suite.cases
    ]
    assert found == [
        ("", None, "P", "T", 1), ("", None, "P", "S", 0), ("", "own", "P", "S", 1),
        ("default", "none", "P", "S", 0), ("own", "mine", "P", "S", 1),
    ]  # fmt: skip


def test_columns_and_tests_are_numbered(make: Make) -> None:
    suite = make(
        "providers: [echo, {id: echo, label: L}]\nprompts: [a, b]\ntests:\n- {vars: {q: [x, y]}}\n"
        "- {vars: {q: z}, providers: [L]}\n"
    )
    numbers = [(case.test_number, case.column_number) for case in suite.cases]
    assert numbers == [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (2, 3), (2, 4), (3, 3), (3, 4)]


def test_the_persons_environment_can_be_hidden_from_templates(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEEN_BY_NOBODY", "x")
    monkeypatch.setenv("PROMPTFOO_DISABLE_TEMPLATE_ENV_VARS", "true")
    suite = make(
        "providers: [echo]\nprompts: ['[{{env.SEEN_BY_NOBODY}}]']\ntests: [{vars: {a: 1}}]\n", trusted=True
    )
    rendered = resolve_case(suite.cases[0], tmp_path, tmp_path, Trust(True))
    assert rendered.prompt == "[]"


@pytest.mark.parametrize(("compat", "asked"), [("documented", "file://a.py"), ("reference", "echo")])
def test_a_provider_of_a_scenarios_config_is_said_to_be_unasked_by_promptfoo(
    make: Make, compat: Literal["documented", "reference"], asked: str
) -> None:
    text = """
        providers: [echo]
        prompts: ['{{q}}']
        scenarios:
        - config: [{vars: {q: a}, provider: 'file://a.py'}]
          tests: [{vars: {k: 1}}, {vars: {k: 2}, provider: 'file://b.py'}]
        - config: [{vars: {q: a}, provider: 'file://a.py'}]
          tests: [{vars: {k: 2}, provider: 'file://b.py'}]
        """
    suite = make(text, compat=compat)
    assert [(case.provider or {})["id"] for case in suite.cases] == [asked, "file://b.py", "file://b.py"]
    said = [str(p) for p in suite.problems if "column's provider" in p.message]
    assert len(said) == 1
    assert said[0].startswith("promptfooconfig.yaml:5: scenarios[0].config[0].provider: promptfoo asks")
    assert ("here it is asked" in said[0]) is (asked != "echo")
