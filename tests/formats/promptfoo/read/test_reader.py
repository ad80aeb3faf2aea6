"""What the reader makes of a configuration: cases, ids, merging, problems with their lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import UNSET, structs

from tests.support.promptfoo_files import Make, errors, texts
from tui_eval.agents.programs import command
from tui_eval.case_names import short_prompts
from tui_eval.config.project import Config
from tui_eval.formats.promptfoo import read
from tui_eval.formats.promptfoo.promptfoo_format import PROMPTFOO
from tui_eval.formats.promptfoo.read.render import RenderError, render_case, resolve_case
from tui_eval.guard.secrets import MASK
from tui_eval.guard.trust import Trust
from tui_eval.model import Suite
from tui_eval.scripting.python.python_host import PythonHost
from tui_eval.suites.identity import content_hash

HEAD = "providers: [echo]\nprompts: ['{{q}}']\n"


def test_inline_tests_of_the_seed(make: Make) -> None:
    suite = make(
        HEAD
        + """tests:
- vars:
    q: 'What is the capital of France?'
  assert:
  - type: contains
    value: 'Paris'
- description: sums
  vars: {q: 'What is 2 + 2?'}
  threshold: 0.5
  assert:
  - {type: equals, value: '4', weight: 2, metric: maths}
  metadata: {category: math, difficulty: easy}
"""
    )
    first, second = suite.cases
    assert (first.name, first.description, first.vars) == (
        "Row #1",
        "",
        {"q": "What is the capital of France?"},
    )
    assert [(a.type, a.value, a.line) for a in first.assertions] == [("contains", "Paris", 7)]
    assert second.case_id == "promptfooconfig.yaml::sums::echo::prompt1"
    assert (second.agent, second.prompt, second.provider) == ("echo", "{{q}}", {"id": "echo"})
    assert (second.threshold, second.metadata) == (0.5, {"category": "math", "difficulty": "easy"})
    assert (second.assertions[0].weight, second.assertions[0].metric) == (2, "maths")
    assert (second.line, second.order, second.turns[0].text) == (9, 1, "{{q}}")
    assert first.case_id.startswith("promptfooconfig.yaml::vars-")
    assert not errors(suite)


def test_secrets_are_masked_before_what_lists_call_a_case_is_cut(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENANT_TOKEN", "tok_9f8e7d6c5b4a")
    monkeypatch.setenv("LONG_TOKEN", f"lt-{'0123456789' * 5}")
    suite = make(
        """providers: [echo]
prompts: ["Use key {{env.LONG_TOKEN}} to ECHO {{q}}", "Please do ECHO {{q}}", "file://long.md"]
tests:
- description: matrix var
  vars: {q: ["ECHO one {{env.TENANT_TOKEN}}a", "ECHO two {{env.TENANT_TOKEN}}b"]}
""",
        trusted=True,
        long__md="Now {{q}} with the key of ours, lt-" + "0123456789" * 5,
    )
    assert [case.variant for case in suite.cases[:2]] == [
        f"Use key {MASK} to ECHO {{{{q}}}} q=ECHO one {MASK}a",
        f"Please do ECHO {{{{q}}}} q=ECHO one {MASK}a",
    ]
    assert not any(
        "lt-0" in f"{case.variant} {case.prompt}" for case in suite.cases if ".md" in str(case.prompt)
    )


@pytest.mark.parametrize(
    "provider",
    ["'{}'", "{{id: '{}'}}", "{{'{}': {{config: {{timeout: 9}}}}}}"],
    ids=["text", "with an id", "as a key"],
)
def test_the_key_in_a_command_of_a_suite_is_a_secret(make: Make, provider: str) -> None:
    """It stood in the agent's name: in the record, the reports, and what is printed."""
    provider = provider.format("exec: bot.py --api-key sk-abcdef1234567890")
    suite = make(f"providers: [{provider}]\nprompts: ['{{{{q}}}}']\ntests: [{{vars: {{q: a}}}}]\n")
    assert not errors(suite)
    assert set(suite.hidden) == {"sk-abcdef1234567890"} and "sk-" not in suite.cases[0].case_id


def test_prompts_that_a_secret_alone_tells_apart_are_numbered() -> None:
    def hide(text: str) -> str:
        return text.replace("one-secret", MASK).replace("two-secret", MASK)

    assert short_prompts(["say one-secret", "say two-secret"], hide) == ["prompt1", "prompt2"]
    assert short_prompts(["one-secret.txt", "two-secret.txt"], hide) == ["prompt1", "prompt2"]


def test_ids_stay_when_assertions_change(make: Make) -> None:
    text = HEAD + "tests:\n- vars: {q: [a, b], n: 1}\n  assert: [{type: equals, value: %s}]\n"
    before, after = make(text % "x"), make(text % "y")
    assert [c.case_id for c in before.cases] == [c.case_id for c in after.cases]
    assert [c.content_hash for c in before.cases] != [c.content_hash for c in after.cases]
    assert before.cases[0].case_id.endswith("[q=a]::echo::prompt1")


@pytest.mark.parametrize("tests", ["- vars: {q: %s}\n", "- 'file://t.csv'\n"])
def test_a_name_that_is_made_of_the_place_is_no_content(make: Make, tmp_path: Path, tests: str) -> None:
    """A test without a description is the same one wherever it stands; what its suite calls it is content."""

    def hashes(*asked: str) -> list[str]:
        (tmp_path / "t.csv").write_text("q\n" + "\n".join(asked), "utf-8")
        listed = tests if "file://" in tests else "".join(tests % one for one in asked)
        return [case.content_hash for case in make(f"{HEAD}tests:\n{listed}").cases]

    assert hashes("new", "a", "b")[1:] == hashes("a", "b") and len(set(hashes("a", "b"))) == 2
    named = make(HEAD + "tests:\n- {description: x, vars: {q: a}}\n- {description: y, vars: {q: a}}\n").cases
    assert named[0].content_hash != named[1].content_hash


def test_order_is_test_combination_provider_prompt(make: Make) -> None:
    suite = make(
        """
        providers: [echo, {id: echo, label: Two}]
        prompts: [{raw: 'A {{q}}', label: A}, {raw: 'B {{q}}', id: b}]
        tests: [{vars: {q: [x, y]}}]
        """
    )
    assert [(c.vars["q"], c.agent, c.prompt) for c in suite.cases] == [
        (q, p, m) for q in "xy" for p in ("echo", "Two") for m in ("A", "B {{q}}")
    ]
    assert suite.cases[0].case_id.endswith("::echo::A")
    assert suite.cases[1].case_id.endswith("::echo::b")


def test_default_test_lies_under_every_test(make: Make) -> None:
    suite = make(
        HEAD
        + """
defaultTest:
  vars: {q: d, k: d}
  threshold: 0.1
  metadata: {a: 1, b: 1}
  options: {prefix: P, suffix: S}
  assert:
    - type: assert-set
      threshold: 0.5
      assert: [{type: contains, value: d}]
tests:
- vars: {q: o}
  metadata: {b: 2}
  options: {suffix: T}
  assert:
    - {type: equals, value: o}
    - type: assert-set
      metric: m
      assert: [{type: contains, value: a}, {type: contains, value: b}]
- vars: {}
  threshold: 0
  options: {disableDefaultAsserts: true}
"""
    )
    first, second = suite.cases
    assert first.vars == {"q": "o", "k": "d"}
    assert (first.threshold, first.metadata) == (0.1, {"a": 1, "b": 2})
    assert first.options == {"prefix": "P", "suffix": "T"}
    assert [(a.type, a.set) for a in first.assertions] == [
        ("assert-set", None), ("contains", 0), ("equals", None), ("assert-set", None), ("contains", 3), ("contains", 3),
    ]  # fmt: skip
    assert (second.threshold, second.assertions) == (0, [])


def test_repeats_are_attempts(make: Make) -> None:
    suite = make(
        HEAD + "evaluateOptions: {repeat: 2, timeoutMs: 1500}\n"
        "tests: [{vars: {q: a}}, {vars: {q: b}, options: {repeat: 3}}, {vars: {q: c}, options: {repeat: no}}]"
    )
    assert [(c.attempts, c.required, c.timeout) for c in suite.cases] == [
        (2, 2, 1.5),
        (3, 3, 1.5),
        (1, 1, 1.5),
    ]
    assert len(errors(suite)) == 1


def test_a_date_keeps_its_text_and_numbers_print_as_in_javascript(make: Make, tmp_path: Path) -> None:
    suite = make(
        HEAD + "tests: [{vars: {q: 2024-01-05}}, {vars: {q: 010}}, {vars: {q: yes}}, {vars: {q: 1.50}}]"
    )
    assert [c.vars["q"] for c in suite.cases] == ["2024-01-05", 10, "yes", 1.5]
    assert texts(suite, tmp_path) == ["2024-01-05", "10", "yes", "1.5"]


def test_no_prompts_and_no_tests(make: Make, tmp_path: Path) -> None:
    assert texts(make("providers: [echo]\ntests: [{vars: {prompt: hi}}]"), tmp_path) == ["hi"]
    assert texts(make("providers: [echo]\nprompts: [static]"), tmp_path) == ["static"]
    nothing = make("providers: [echo]\nprompts: [static]\ntests: file://gone.yaml")
    assert not nothing.cases
    assert "there is no file gone.yaml" in str(errors(nothing)[0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tests: [{vars: {q: a}, assert: [{type: contians, value: a}]}]", "3: tests[0].assert[0].type: unknown assertion type \"contians\"; did you mean contains?"),
        ("tests:\n- vars: {q: a}\n  assert: [{type: no-such-type}]", "5: tests[0].assert[0].type: unknown assertion type"),
        ("tests:\n- vars: {q: a}\n  asert: []", "5: tests[0].asert: unknown key; did you mean assert?"),
        (
            "tests: [{assert: [{type: is-sql, value: {allowedTable: [x]}}]}]",
            "3: tests[0].assert[0].value.allowedTable: unknown key; did you mean allowedTables?",
        ),
        (
            "tests: [{assert: [{type: not-word-count, value: {min: 1, mx: 5}}]}]",
            "3: tests[0].assert[0].value.mx: unknown key; did you mean max?",
        ),
        (
            "tests: [{assert: [{type: trajectory:tool-args-match, value: {name: x, args: {}, moed: exact}}]}]",
            "3: tests[0].assert[0].value.moed: unknown key; did you mean mode?",
        ),
        (
            "tests: [{assert: [{type: trajectory:tool-sequence, value: {steps: [{name: x, tpye: tool}]}}]}]",
            "3: tests[0].assert[0].value.steps[0].tpye: unknown key; did you mean type?",
        ),
        (
            "tests: [{assert: [{type: trajectory:tool-sequence, value: [x, {nmae: y, pattern: z}]}]}]",
            "3: tests[0].assert[0].value[1].nmae: unknown key; did you mean name?",
        ),
        ("tests:\n- vars: {q: a}\n  assert: [{value: a}]", "an assertion without a type; keep type and value"),
        ("tests:\n- vars: {q: a}\n  assert: [{tpye: equals, value: a}]", 'did you mean type by "tpye"?'),
        (
            "tests:\n- vars: {q: a}\n  assert: [{type: is_valid_openai_tools_call}]",
            "did you mean is-valid-openai-tools-call?",
        ),
        ("tests:\n- vars: {q: a}\n  assert: ['contains: a']", "an assertion must be a mapping"),
        ("tests:\n- vars: {q: a}\n  assert: contains", "must be a list of assertions"),
        ("tests:\n- vars: {q: a}\n  assert: [{type: assert-set}]", "an assert-set without a list"),
        ("tests:\n- vars: {q: a}\n  threshold: high", "threshold: must be a number"),
        ("tests:\n- description: x", "a test without anything to test; give one of"),
        ("tests:\n- {description: x, asert: []}", 'did you mean assert by "asert"?'),
        ("tests:\n- 5", "a test must be a mapping"),
        ("tests: 5", "must be a list of tests or a file"),
        ("tests: [{vars: {q: a}, prompts: [Nope]}]", 'there is no prompt "Nope"'),
        ("tests: [{vars: {q: a}, providers: [Nope]}]", 'there is no provider "Nope"; there are: echo'),
        ("tests: ['file://x.js']", "there is no file x.js"),
        ("tests: ['https://docs.google.com/spreadsheets/d/x/edit']", "needs trust: fetch https://docs"),
        ("tests: ['https://example.com/x.csv']", "tests are not fetched from"),
        ("tests: ['huggingface://datasets/a/b']", "needs trust: fetch"),
        ("tests: ['az://blob/x.csv']", "tests are not fetched from"),
        ("tests: ['file://../../etc/passwd']", "needs trust: read"),
        ("tests: [{vars: {q: 'file://nope*.txt'}}]", "no file matches"),
        ("tsts: []", "tsts: unknown key; did you mean tests?"),
        ("tests: [{$ref: '#/nowhere'}]", "there is no 'nowhere'"),
        ("tests: [{$ref: 'https://example.com/x.yaml'}]", "nothing is fetched"),
        ("tests: ['file://*/../../*.yaml']", "may only stand before the first wildcard"),
        ("tests: ['file://../*.yaml']", "needs trust: read"),
        ("extensions: ['file://h.py:hook']", "there is no file h.py"),
        ("extensions: ['file://h.py']", "there is no file h.py"),
        ("extensions: ['file://h.rb:hook']", "extensions[0]: must be file://PATH:FUNCTION"),
        ("extensions: 5", "extensions: must be file://PATH:FUNCTION"),
        ("nunjucksFilters: {shout: gone.js}", "nunjucksFilters.shout: there is no file gone.js"),
        ("nunjucksFilters: [x]", "nunjucksFilters: must be a mapping"),
        ("commandLineOptions: {filterRange: x}", "3: commandLineOptions.filterRange: must be START:END"),
        ("commandLineOptions: {filterSample: x}", "filterSample: must be a number of tests"),
        ("commandLineOptions: {envPath: gone.env}", "needs trust: read gone.env"),
    ],
)  # fmt: skip
def test_problems_say_where_and_what(make: Make, text: str, says: str) -> None:
    suite = make(HEAD + text)
    found = [str(p) for p in (errors(suite) or suite.problems)]
    assert any(says in line for line in found), found
    assert all(line.startswith("promptfooconfig.yaml") for line in found)


def test_one_bad_test_leaves_the_others(make: Make) -> None:
    suite = make(
        HEAD + "tests: [5, {vars: {q: a}}, 'file://gone.csv', {vars: {q: b}, assert: [{type: nope}]}]"
    )
    assert [c.vars["q"] for c in suite.cases] == ["a", "b"]
    assert not suite.cases[0].problems
    assert suite.cases[1].problems


def test_unknown_keys_of_ones_own_are_notes(make: Make) -> None:
    suite = make(
        HEAD + "ownTemplates: {a: 1}\ntests: [{vars: {q: a}, comment: x, assert: [{type: is-json, mine: 1}]}]"
    )
    assert not errors(suite)
    assert [p.key for p in promptfoo_problems(suite)] == [
        "ownTemplates",
        "tests[0].comment",
        "tests[0].assert[0].mine",
    ]


def promptfoo_problems(suite: Suite) -> list:
    return [*suite.problems, *(p for c in suite.cases for p in c.problems)]


def test_all_66_types_and_their_negations_load(make: Make) -> None:
    from tui_eval.formats.promptfoo.read.promptfoo_types import ALL_TYPES, BASE_TYPES

    assert len(BASE_TYPES) == 66
    asserts = [{"type": t, "assert": []} if t == "assert-set" else {"type": t} for t in sorted(ALL_TYPES)]
    suite = make(HEAD + "tests: " + json.dumps([{"vars": {"q": "a"}, "assert": asserts}]))
    assert not errors(suite)
    assert len(suite.cases[0].assertions) == len(ALL_TYPES)
    assert suite.cases[0].assertions[0].value is UNSET


def test_external_files_of_all_kinds_in_order(make: Make) -> None:
    suite = make(
        HEAD + "tests: ['file://b.yaml', 'file://c.csv', 'file://d.jsonl', 'sub/*.yaml', 'file://e.json']",
        b__yaml="- vars: {q: yaml}\n- file://sub/z.yaml\n",
        c__csv='q,__expected,__metadata:tags[]\n"x, y",contains: x,"a,b\\,c"\n',
        d__jsonl='{"vars": {"q": "l1"}}\n\n{"vars": {"q": "l2"}\n{"vars": {"q": "l3"}}\n',
        e__json='[{"vars": {"q": "json"}}]',
        **{"sub/y__yaml": "vars: {q: y}", "sub/z__yaml": "vars: {q: z}"},
    )
    assert [c.vars["q"] for c in suite.cases] == ["yaml", "z", "x, y", "l1", "l3", "y", "z", "json"]
    assert [c.case_id[-2:] for c in suite.cases if c.vars["q"] == "z"] == ["t1", "#2"]
    row = suite.cases[2]
    assert (row.name, row.line, row.metadata) == ("Row #1", 2, {"tags": ["a", "b,c"]})
    assert [(p.path, p.line) for p in errors(suite)] == [("d.jsonl", 3)]
    assert {Path(f).name for f in suite.files} == {
        "promptfooconfig.yaml", "b.yaml", "c.csv", "d.jsonl", "y.yaml", "z.yaml", "e.json",
    }  # fmt: skip


@pytest.mark.real
def test_generators_need_trust_and_get_their_config(make: Make) -> None:
    code = "def create_tests(config):\n    return [{'vars': {'q': config['dataset']}}]\n"
    text = (
        HEAD
        + "tests:\n- path: file://gen.py:create_tests\n  config: {dataset: validation}\n- vars: {q: own}\n"
    )
    without = make(text, gen__py=code)
    assert [c.vars["q"] for c in without.cases] == ["own"]
    assert "needs trust: run gen.py" in str(errors(without)[0])
    assert [c.vars["q"] for c in make(text, trusted=True).cases] == ["validation", "own"]
    broken = make(
        text, trusted=True, gen__py="def create_tests(config):\n    raise ValueError('no\\nluck')\n"
    )
    assert [c.vars["q"] for c in broken.cases] == ["own"]
    assert "\n" not in str(errors(broken)[0])
    file, line = errors(broken)[0].to_mend
    assert (Path(file).name, line, file in broken.files) == ("gen.py", 2, True)
    elsewhere = make(
        text, trusted=True, gen__py="import json\ndef create_tests(config):\n    json.loads('')\n"
    )
    assert errors(elsewhere)[0].raised_at == (file, 3)
    no_python = make(text, trusted=True, gen__py="import json\ndef create_tests(config:\n")
    assert errors(no_python)[0].raised_at == (file, 2)
    wrong = make(text, trusted=True, gen__py="def create_tests(config):\n    return {}\n")
    assert "must return a list of tests" in str(errors(wrong)[0])


def test_env_of_the_suite_and_of_the_person(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOST_NAME", "outer")
    text = (
        "env: {MINE: inner, N: 5}\nproviders: [{id: echo, label: '{{ env.HOST_NAME }}'}]\n"
        "prompts: ['{{env.MINE}} {{ env.N }} {{env.NOT_THERE}}']\ntests: [{vars: {}}]"
    )
    trusted = make(text, trusted=True)
    assert (trusted.cases[0].agent, texts(trusted, tmp_path)) == ("outer", ["inner 5 "])
    assert trusted.settings["env"] == {"MINE": "inner", "N": "5"}
    untrusted = make(text)
    assert untrusted.cases[0].agent == "{{ env.HOST_NAME }}"
    assert texts(untrusted, tmp_path) == ["inner 5 "]


def test_file_vars_are_kept_and_read_when_rendered(make: Make, tmp_path: Path) -> None:
    suite = make(
        "providers: [echo]\nprompts: ['{{d.name}}: {{d}} {{t}}']\n"
        "tests: [{vars: {d: 'file://d.yaml', t: 'file://t.txt'}}, {vars: {d: 'file://../out.yaml', t: x}}]",
        d__yaml="name: Ada\nage: 36\n",
        t__txt="  hello {{ d.age }}\n",
    )
    assert suite.cases[0].vars == {"d": "file://d.yaml", "t": "file://t.txt"}
    assert texts(suite, tmp_path)[0] == "Ada: name: Ada\nage: 36 hello 36"
    assert "needs trust" in texts(suite, tmp_path)[1]


def test_providers_in_all_shapes(make: Make) -> None:
    suite = make(
        """
        targets:
          - echo
          - {id: 'openai:gpt-4.1', label: big, config: {temperature: 0}}
          - 'anthropic:x': {config: {max_tokens: 5}}
          - file://p.yaml
          - 5
        prompts: ['{{q}}']
        tests: [{vars: {q: a}}, {vars: {q: b}, provider: {id: 'http://x', label: mine}, providers: [big]}]
        """,
        p__yaml="- id: python:agent.py\n  label: py\n",
    )
    first = [(c.agent, c.provider) for c in suite.cases if c.vars["q"] == "a"]
    assert [name for name, _ in first] == ["echo", "big", "anthropic:x", "py"]
    assert first[2][1] == {"id": "anthropic:x", "config": {"max_tokens": 5}}
    own = suite.cases[-1]
    assert (own.agent, own.provider) == ("mine", {"id": "http://x", "label": "mine"})
    assert "::big::" in own.case_id
    assert len(errors(suite)) == 1


def test_prompt_functions_ask_for_trust(make: Make, tmp_path: Path) -> None:
    suite = make(
        "providers: [echo]\nprompts: ['file://p.py:make', 'file://p.py', 'file://p.js']\ntests: [{vars: {q: a}}]",
        p__py="def make(context):\n    return 'py ' + context['vars']['q']\n",
        p__js="module.exports = () => 1",
    )
    assert [c.prompt for c in suite.cases][::2] == ["p.py:make", "p.js"]
    assert [p.level for p in suite.problems] == ["note"] * 2
    for text, wanted in zip(texts(suite, tmp_path), ("p.py", "p.py", "p.js with node"), strict=True):
        assert f"needs trust: run {wanted} (run with" in text
    rendered = resolve_case(suite.cases[0], tmp_path, tmp_path, Trust(True))
    assert rendered.function
    assert rendered.function.function == "make"
    assert rendered.function.context["vars"] == {"q": "a"}


async def test_prompt_functions_are_called_for_each_attempt(make: Make, tmp_path: Path) -> None:
    suite = make(
        "providers: [{id: echo, label: E}]\nprompts: ['file://p.py:text', 'file://p.py:chat', 'file://p.py:bad', "
        "'file://p.py:none', '{{q}}']\ntests: [{vars: {q: 'a{{b}}', b: c}, options: {prefix: 'P '}}]",
        p__py=(
            "def text(context):\n    return context['provider']['label'] + context['vars']['q']\n"
            "async def chat(context):\n    return {'prompt': [{'role': 'user', 'content': 'x'}], 'config': {'n': 1}}\n"
            "def bad(context):\n    raise KeyError('no\\nluck')\n"
            "def none(context):\n    return 5\n"
        ),
    )
    host = PythonHost(tmp_path)
    try:
        found = []
        for case in suite.cases:
            try:
                rendered = await render_case(case, tmp_path, tmp_path, Trust(True), host)
                found.append((rendered.prompt, rendered.config))
            except RenderError as error:
                found.append((str(error), {}))
    finally:
        host.close()
    assert found[0] == ("Eac", {})
    assert (json.loads(found[1][0]), found[1][1]) == ([{"role": "user", "content": "x"}], {"n": 1})
    assert found[2][0].startswith("p.py:bad: ")
    assert "\n" not in found[2][0]
    assert "must return text" in found[3][0]
    assert found[4] == ("P ac", {})


async def test_a_prompt_function_is_told_the_columns_provider_and_its_label_is_a_text(
    make: Make, tmp_path: Path
) -> None:
    """`provider["label"]` was None where it has none, on which most functions fail, and a test's own was told."""
    suite = make(
        "providers: [echo, {id: echo, label: L}]\nprompts: ['file://p.py:text']\n"
        "tests: [{vars: {q: a}}, {vars: {q: b}, provider: {id: 'exec:cat', label: T}}]",
        p__py="def text(context):\n    own = context['provider']\n    return own['id'] + '/' + own['label'].upper()\n",
    )
    host = PythonHost(tmp_path)
    try:
        found = [
            (await render_case(case, tmp_path, tmp_path, Trust(True), host)).prompt for case in suite.cases
        ]
    finally:
        host.close()
    assert found == ["echo/", "echo/L"] * 2


async def test_a_command_that_makes_a_prompt_without_end_is_ended(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "OUTPUT_LIMIT", 1_000_000)
    suite = make("providers: [echo]\nprompts: ['exec:yes']\ntests: [{vars: {q: a}}]\n")
    host = PythonHost(tmp_path)
    try:
        with pytest.raises(RenderError, match="yes wrote more than 1 MB"):
            await render_case(suite.cases[0], tmp_path, tmp_path, Trust(True), host)
    finally:
        host.close()


def test_messages_of_a_chat_prompt(make: Make, tmp_path: Path) -> None:
    suite = make(
        """
        providers: [echo]
        prompts: ['[{"role": "user", "content": "{{q}}"}]', 'file://c.yaml', 'plain [{{q}}]']
        tests: [{vars: {q: 'a "b"'}}]
        """,
        c__yaml="- {role: system, content: s}\n- {role: user, content: '{{q}}'}\n",
    )
    found = [resolve_case(c, tmp_path, tmp_path, Trust()).messages for c in suite.cases]
    assert found == [
        [{"role": "user", "content": 'a "b"'}],
        [{"role": "system", "content": "s"}, {"role": "user", "content": 'a "b"'}],
        None,
    ]


def test_default_test_and_scenarios_from_files(make: Make, tmp_path: Path) -> None:
    suite = make(
        """
        providers: [echo]
        prompts: ['{{a}} {{b}} {{c}}']
        metadata: {team: x}
        defaultTest: file://d.yaml
        scenarios: ['file://s.yaml', 5]
        """,
        d__yaml="vars: {c: '!'}\nassert: [{type: contains, value: '!'}]\n",
        s__yaml=(
            "- config: [{vars: {a: 1}, assert: [{type: contains, value: 1}]}, {vars: {a: 2}}]\n"
            "  tests: [{vars: {b: [x, y]}, assert: [{type: contains, value: x}]}]\n"
        ),
    )
    assert texts(suite, tmp_path) == ["1 x !", "1 y !", "2 x !", "2 y !"]
    assert [a.value for a in suite.cases[0].assertions] == ["!", 1, "x"]
    assert suite.cases[2].metadata == {"team": "x", "conversationId": "__scenario_1__"}
    assert len({c.case_id for c in suite.cases}) == 4
    assert len(errors(suite)) == 1


def test_scenarios_from_patterns(make: Make, tmp_path: Path) -> None:
    files = {
        "s/b__yaml": "config: [{vars: {a: 3}}]\ntests: [{vars: {b: z}}]\n",
        "s/a__yaml": "- config: [{vars: {a: 1}}, {vars: {a: 2}}]\n  tests: [{vars: {b: x}}]\n",
    }
    head = "providers: [echo]\nprompts: ['{{a}}{{b}}']\n"
    suite = make(head + "scenarios: ['file://s/*.yaml', 'file://none/*.yaml']", **files)
    assert texts(suite, tmp_path) == ["1x", "2x", "3z"]
    assert [str(p) for p in errors(suite)] == [
        "promptfooconfig.yaml:3: scenarios: no file matches file://none/*.yaml"
    ]
    assert texts(make(head + "scenarios: file://s/b.yaml"), tmp_path) == ["3z"]


def test_json_configurations_may_hold_any_escape(make: Make, tmp_path: Path) -> None:
    text = '{"providers": ["echo"], "prompts": ["{{q}}"], "tests": [{"vars": {"q": "\\ud83d\\ude00 \\/"}}]}'
    (tmp_path / "promptfooconfig.json").write_text(text)
    suite = read.read("promptfooconfig.json", text, Config(root=tmp_path), Trust())
    assert not suite.problems
    assert texts(suite, tmp_path) == ["\U0001f600 /"]


def test_ids_stay_when_the_default_test_changes(make: Make) -> None:
    text = HEAD + "defaultTest: {vars: {k: %s}}\ntests: [{vars: {q: a}}]"
    assert make(text % "1").cases[0].case_id == make(text % "2").cases[0].case_id


def test_prompts_of_files_and_their_labels(make: Make, tmp_path: Path) -> None:
    suite = make(
        """
        providers: [echo]
        prompts:
          - file://two.txt
          - {id: 'file://one.txt', label: Short, config: {temperature: 0}}
          - j.jsonl
          - 'prompts/'
          - gone.txt
          - file://broken.json
          - 'What is a .txt file, and why?'
        tests: [{vars: {q: a}}, {vars: {q: b}, prompts: [Short]}]
        """,
        two__txt="First {{q}}\n---\n\nSecond {{q}}\n---\n",
        one__txt="One {{q}}\n",
        j__jsonl='["{{q}}"]\n\n["x"]\n',
        broken__json='{"q": {{ q | dump }}}',
        **{"prompts/b__md": "# B\n", "prompts/a__j2": "{% if q %}A{% endif %}", "prompts/skip__bin": ""},
    )
    assert [c.prompt for c in suite.cases if c.vars["q"] == "a"] == [
        "two.txt: First {{q}}", "two.txt: Second {{q}}", "Short: one.txt: One {{q}}", 'j.jsonl: ["{{q}}"]', 'j.jsonl: ["x"]',
        "prompts/a.j2: {% if q %}A{% endif %}...", "prompts/b.md: # B\n...", 'broken.json: {"q": {{ q | dump }}}',
        "What is a .txt file, and why?",
    ]  # fmt: skip
    assert texts(suite, tmp_path)[2:4] == ["One a", '[\n  "a"\n]']
    assert texts(suite, tmp_path)[7] == '{"q": "a"}'
    only = suite.cases[-1]
    assert (only.vars["q"], only.prompt) == ("b", "Short: one.txt: One {{q}}")
    assert only.beside == {"promptConfig": {"temperature": 0}} and only.case_id.endswith("::Short")
    assert [str(p) for p in errors(suite)] == [
        "promptfooconfig.yaml:8: prompts[4]: there is no file gone.txt; paths are relative to the configuration's folder"
    ]


def test_glob_vars_and_matrix_of_files(make: Make, tmp_path: Path) -> None:
    suite = make(
        HEAD + "tests: [{vars: {q: 'file://in/*.txt'}}, {vars: {q: ['file://in/b.txt', plain]}}]",
        **{"in/b__txt": "bee\n", "in/a__txt": "ay\n"},
    )
    assert texts(suite, tmp_path) == ["ay", "bee", "bee", "plain"]
    assert suite.cases[0].case_id.endswith("[q=file://in/a.txt]::echo::prompt1")


def test_what_is_set_for_the_whole_suite(make: Make) -> None:
    suite = make(
        "description: mine\nproviders: [echo]\nprompts: [x]\ntags: {a: b}\n"
        "derivedMetrics: [{name: f1, value: 'a / b'}]\n"
        "commandLineOptions: {repeat: 2, vars: {q: line}}\nevaluateOptions: {maxConcurrency: 3, repeat: 5}\n"
        "tests: [{vars: {k: v}, providerOutput: {a: 1}, assertScoringFunction: 'file://s.py'}]"
    )
    assert suite.description == "mine"
    assert suite.settings["evaluateOptions"] == {"maxConcurrency": 3, "repeat": 2}
    assert suite.settings["derivedMetrics"] == [{"name": "f1", "value": "a / b"}]
    case = suite.cases[0]
    assert (case.vars, case.attempts, case.provider_output) == ({"q": "line", "k": "v"}, 2, {"a": 1})
    assert (case.options, case.beside) == ({}, {"assertScoringFunction": "file://s.py"})


def test_a_csv_row_says_its_line(make: Make) -> None:
    suite = make(
        HEAD + "tests: file://t.csv",
        t__csv='q,__expected\n"a\nb",contains: a\nc,"contains-any: ""x"" y"\nd,file://check.py:fn\n',
    )
    assert [c.line for c in suite.cases] == [2, 4, 5]
    assert [(p.path, p.line, p.key) for p in errors(suite)] == [("t.csv", 4, "__expected")]
    assert suite.cases[2].assertions[0].value == "file://check.py:fn"
    same = make(HEAD + "tests: file://t.csv", compat="reference")
    assert same.cases[2].assertions[0].value == "check.py:fn"


@pytest.mark.parametrize(
    ("header", "level"),
    [
        ("__config:__expected:weight", "error"), ("__config:__expectedX:threshold", "error"),
        ("__config:__expected0:threshold", "error"), ("__config:threshold", "note"), ("_metric", "note"),
        ("__metadata", "note"), ("q", "note"), ("__own", None),
    ],
)  # fmt: skip
def test_odd_headers(make: Make, header: str, level: str | None) -> None:
    suite = make(HEAD + "tests: file://t.csv", t__csv=f"q,__expected,{header}\na,contains: x,0.5\n")
    found = [p for p in suite.problems if p.path == "t.csv"]
    assert [p.level for p in found] == ([level] if level else [])
    assert all(p.line == 1 for p in found)
    assert len(suite.cases) == (0 if level == "error" else 1)


def test_references_in_files_of_tests(make: Make) -> None:
    suite = make(
        HEAD + "tests: ['file://t.yaml']",
        t__yaml="- vars: {q: a}\n  assert: [{$ref: 'shared.yaml#/has'}]\n- $ref: '#/0'\n",
        shared__yaml="has: {type: contains, value: a}\n",
    )
    assert [[a.type for a in c.assertions] for c in suite.cases] == [["contains"], ["contains"]]
    assert not errors(suite)


@pytest.mark.parametrize(
    ("name", "text", "ours"),
    [
        ("promptfooconfig.yaml", "", True), ("a/promptfooconfig.json", "{}", True), ("promptfooconfig.js", "", True),
        ("a.yaml", "prompts: [x]\nproviders: [echo]\ntests: []\n", True), ("a.yaml", "tests: []\n", False),
        ("a.txt", "prompts: [x]\nproviders: [echo]\ntests: []\n", False), ("a.yaml", "test_cases: []\n", False),
    ],
)  # fmt: skip
def test_recognises(name: str, text: str, ours: bool) -> None:
    assert read.recognises(Path(name), text) is ours


@pytest.mark.parametrize(
    "table",
    [
        "q,_expected\na,contains: x\n",
        "q,__expect\na,contains: x\n",
        "q,__Expected\na,contains: x\n",
        "q;__expected\na;contains: x\n",
        "q\t__expected\na\tcontains: x\n",
        "q,__expected,__expected\na,contains: x,contains: y\n",
    ],
)
def test_a_table_whose_assertions_are_lost_is_an_error(make: Make, table: str) -> None:
    """promptfoo takes it without a word, and so `reference` does."""
    suite = make(HEAD + "tests: file://t.csv", t__csv=table)
    assert [(one.path, one.line) for one in errors(suite)] == [("t.csv", 1)]
    assert not errors(make(HEAD + "tests: file://t.csv", compat="reference", t__csv=table))


@pytest.mark.parametrize(
    "files",
    [{"t.csv": "q,__expected\n"}, {"t.csv": ""}, {"t.json": "[]"}, {"t.jsonl": "\n"}, {"t.yaml": "[]"}],
)
@pytest.mark.parametrize("key", ["tests: {}", "tests: [{{vars: {{q: a}}}}, '{}']"])
def test_a_file_without_a_test_is_an_error(make: Make, files: dict[str, str], key: str) -> None:
    ((name, text),) = files.items()
    suite = make(HEAD + key.format(f"file://{name}"), **{name.replace(".", "__"): text})
    (told,) = errors(suite)
    assert f"{name} holds no test" in told.message and told.line


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("scenarios:\n  - confg: [{vars: {q: b}}]\n    tests: [{vars: {q: a}}]\n", "scenarios[0].confg"),
        ("scenarios:\n  - config: []\n    tests: [{vars: {q: a}}]\n", "scenarios[0].config"),
    ],
)
def test_a_scenario_that_loses_its_configurations_is_an_error(make: Make, more: str, key: str) -> None:
    assert [one.key for one in errors(make(HEAD + more))] == [key]


def test_a_provider_without_its_prompts_or_a_file_without_providers_is_an_error(make: Make) -> None:
    """Their columns would not be missed."""
    suite = make(
        "prompts: [a]\nproviders: [echo, {id: echo, label: two, prompts: [nope]}]\ntests: [{vars: {q: a}}]\n"
    )
    assert ["there is no prompt" in one.message for one in errors(suite)] == [True]
    suite = make(
        "prompts: [a]\nproviders: [echo, 'file://p.yaml']\ntests: [{vars: {q: a}}]\n", p__yaml="[]\n"
    )
    assert [one.message for one in errors(suite)] == ["p.yaml holds no provider"]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("assert: [{type: contains, value: x}]\ntests: [{vars: {q: a}}]\n", ["assert"]),
        ("tests:\n  - vars: {q: a}\n    type: contains\n    value: x\n", ["tests[0].type", "tests[0].value"]),
    ],
)
def test_assertions_in_a_wrong_place_are_errors(make: Make, text: str, keys: list[str]) -> None:
    told = errors(make(HEAD + text))
    assert [one.key for one in told] == keys and all("put it under" in one.cure for one in told)


def test_options_of_our_own_names_are_the_users(make: Make) -> None:
    given = {
        "assertScoringFunction": "file://s.py", "columnProvider": {"id": "echo", "transform": "'x'"},
        "promptConfig": {"a": 1}, "promptFunction": {"command": "true"},
    }  # fmt: skip
    suite = make(
        f"providers: [echo]\nprompts: ['{{{{q}}}}']\ntests: [{{vars: {{q: a}}, options: {json.dumps(given)}}}]"
    )
    (case,) = suite.cases
    assert (case.options, case.beside) == (given, {})
    assert (PROMPTFOO.own_score(case), PROMPTFOO.column_provider(case)) == ("", None)
    assert PROMPTFOO.agent_options(case) == given
    told = PROMPTFOO.test_for_scripts(case)
    assert told is not None and told["options"] == given and "assertScoringFunction" not in told
    assert [(p.level, p.key, p.message) for p in case.problems] == [
        ("note", "tests[0].options.assertScoringFunction", "is only a provider's setting here")
    ]


def test_what_stands_beside_options_counts_as_older_versions_counted_it(make: Make) -> None:
    suite = make(
        "providers: [echo]\nprompts: [{raw: '{{q}}', label: p, config: {t: 0}}]\n"
        "tests: [{vars: {q: a}, assertScoringFunction: 'file://s.py', options: {prefix: x}}]"
    )
    (case,) = suite.cases
    among = {"prefix": "x", "assertScoringFunction": "file://s.py", "promptConfig": {"t": 0}}
    older = structs.replace(case, options=among, beside=None)
    assert content_hash(case) == content_hash(older) == case.content_hash
    assert PROMPTFOO.test_for_scripts(case) == PROMPTFOO.test_for_scripts(older)
    assert PROMPTFOO.own_score(older) == "assertScoringFunction"
    clash = structs.replace(case, options={"prefix": "x", "promptConfig": 1})
    other = structs.replace(case, options={"prefix": "x", "promptConfig": 2})
    assert len({content_hash(one) for one in (case, clash, other)}) == 3


def test_a_test_that_no_provider_runs_is_said(make: Make) -> None:
    """promptfoo 0.121.20 leaves both out without a word."""
    suite = make(
        "providers: [{id: echo, label: A, prompts: [p]}, {id: echo, label: B, prompts: [p, r]}]\n"
        "prompts: [{raw: P, label: p}, {raw: Q, label: q}, {raw: R, label: r}]\n"
        "tests: [{vars: {n: 1}, prompts: [q]}, {vars: {n: 2}, prompts: [r], providers: [A]}, {vars: {n: 3}}]\n"
    )
    assert [case.vars["n"] for case in suite.cases] == [3, 3, 3]
    said = [(one.level, f"{one.key}: {one.message}") for one in suite.problems if "prompt" in one.message]
    assert said == [
        ("error", 'prompts: no provider takes the prompt "q"'),
        ("note", "providers: it is run nowhere: these providers take none of its prompts"),
    ]
