"""Rules of promptfoo 0.121.20 that were once read wrongly here: what it made of these suites."""

from __future__ import annotations

from pathlib import Path

from tests.suites.promptfoo.support import Make, errors
from tui_eval.guard.trust import Trust
from tui_eval.scripting.python_host import PythonHost
from tui_eval.suites.promptfoo.render import render_case, resolve_case


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
