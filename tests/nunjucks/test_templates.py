"""Templates: nunjucks' meaning, promptfoo's rules around it, and nothing that can hurt."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import ROOT
from tests.support.examples import examples
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.javascript.values import FileList, FileValue, ScriptValueError, number_text
from tui_eval.nunjucks.members import NUMBER_METHODS
from tui_eval.nunjucks.prompt_templates import render_prompt, resolve_vars
from tui_eval.nunjucks.suite_environment import SuiteEnvironment, reads_unnamed
from tui_eval.nunjucks.templates import TemplateError, including, is_partial, render, render_value

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "nunjucks.jsonl").read_text().splitlines()]
VARS = RECORDED[0]["vars"]


@pytest.mark.parametrize("row", RECORDED[1:], ids=lambda row: row["template"][:40])
def test_as_nunjucks_renders_it(row: dict[str, Any]) -> None:
    if row["text"] is None:
        with pytest.raises(TemplateError):
            render(row["template"], VARS)
    else:
        assert render(row["template"], VARS) == row["text"]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ('{% if not a == "x" %}Y{% else %}N{% endif %}', "N"),
        ("{% if t and not a == 'x' %}Y{% else %}N{% endif %}", "N"),
        ('{% if not (a == "x") %}Y{% else %}N{% endif %}', "Y"),
        ("{% if not missing == 'x' %}Y{% else %}N{% endif %}", "N"),
        ("{{ not a != 'x' }}", "true"),
        ("{{ not n + 1 }}", "1"),
        ("{{ not n in l }} {{ n not in l and t }} {{ not l|length == 3 }}", "true true false"),
        ("{% if n % 2 is odd %}O{% else %}E{% endif %}", "O"),
        ("{% for i in l %}{% if loop.index + 1 is even %}e{% endif %}{% endfor %}", "ee"),
        (
            "{{ n - 1 is divisibleby(2) }} {{ missing + 1 is defined }} {{ not n + 1 is odd }}",
            "true true true",
        ),
        ("{{ missing is defined if t }}", "false"),
        ('{{ a ~ "x" is string }} {{ n is "odd" }} {{ a is not number }}', "true true true"),
        ('{{ "Total: " ~ n + 1 }} {{ n + 1 ~ "x" }} {{ "i" ~ n * 2 }}', "Total: 51 6x i10"),
        ("{{ 100 * n // 3 }} {{ n / 2 // 2 }} {{ 12 // 5 % 2 }} {{ 12 % 5 * 2 }}", "100 5 0 4"),
        ("{{ -n ** 2 }} {{ 2 ** 3 ** 2 }} {{ 7 - 2 + 1 }} {{ 12 / 2 * 3 }}", "25 64 6 18"),
        ("{{ n == 5 < x }} {{ 3 > 2 > 1 }} {{ a == 'x' == false }}", "false false true"),
        ("{{ 'a' * 2 and t }} {{ 'y' if 'a' * 2 else 'n' }}", "NaN n"),
        ("{{ ('x' | abs) + n }} {{ ('x' | round) ~ n }} {{ [('x' | abs), n] | join }}", "NaN NaN5 NaN5"),
        ("{% for k, v in 'ab' %}{{ k }}={{ v }};{% endfor %}", "0=a;1=b;"),
        (
            "{{ missing in a }} {{ none in a }} {{ missing not in a }} {{ missing in 'undefined' }}",
            "false false true true",
        ),
        ("{{ -n is odd }} {{ -4 is even }} {{ n is odd }}", "false true true"),
        (
            "{{ l > '' }} {{ a < {k: 1} }} {{ [] == 0 }} {{ [1] == true }} {{ ['5'] == n }}",
            "true true true true true",
        ),
        ("{{ missing is callable }} {{ range is callable }}", "false true"),
        ("{{ n in l == false }}", None),
        ("{{{a}}}", None),
        ("{{ n is divisibleby 5 }}", None),
        ("{{ t is boolean }}", None),
    ],
)
def test_expressions_are_worked_out_in_the_order_of_what_nunjucks_writes(
    template: str, text: str | None
) -> None:
    given = {"a": "Hello", "n": 5, "l": [3, 1, 2], "t": True, "x": 2}
    if text is None:
        with pytest.raises(TemplateError):
            render(template, given)
    else:
        assert render(template, given) == text


def test_a_hundred_parts_are_joined_in_the_order_in_which_they_stand() -> None:
    """They were nested more deeply than Python compiles."""
    assert render("{{ 1 + 2 ~ " + " ~ ".join(["a"] * 300) + " + 1 }}", {"a": "x"}) == "3" + "x" * 300 + "1"
    assert render("{{ (n + 1) + (n + 2) + a + n + 1 * 2 }}", {"a": "x", "n": 1}) == "5x12"


PROMPTS = [
    json.loads(line) for line in (Path(__file__).parent / "nunjucks_prompts.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("group", PROMPTS, ids=("filters and tags", "edges and includes"))
def test_prompts_as_the_tool_renders_them(group: dict[str, Any], tmp_path: Path) -> None:
    """`text` is null where the row is an error in promptfoo 0.121.20."""
    for name, content in group["files"].items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    for template, text in group["rows"]:
        try:
            with including(tmp_path, tmp_path, Trust()):
                found: str | None = render(template, group["vars"])
        except TemplateError:
            found = None
        assert found == text, template


def test_what_a_template_includes_is_in_the_project_or_needs_trust(tmp_path: Path) -> None:
    suite = tmp_path / "root" / "suite"
    suite.mkdir(parents=True)
    (tmp_path / "root" / "shared.txt").write_text("shared {{ a }}")
    (tmp_path / "secret.txt").write_text("secret")
    (suite / "binary.txt").write_bytes(b"\xff\xfe")
    root = tmp_path / "root"
    with including(suite, root, Trust()):
        assert render("{% include '../shared.txt' %}", {"a": 1}) == "shared 1"
        with pytest.raises(NeedsTrust):
            render("{% include '../../secret.txt' %}", {})
        for name in ("nope.txt", "binary.txt", "."):
            with pytest.raises(TemplateError, match="is not there to be included"):
                render(f"{{% include '{name}' %}}", {})
    with pytest.raises(TemplateError, match="cannot be included here"):
        render("{% include 'a.txt' %}", {})
    (suite / "loop.txt").write_text("{% include 'loop.txt' %}")
    with including(suite, root, Trust()), pytest.raises(TemplateError, match="more than 100 files"):
        render("{% include 'loop.txt' %}", {})


def test_regular_expressions_are_refused_in_so_many_words() -> None:
    with pytest.raises(TemplateError, match="regular expressions"):
        render("{{ s | replace(r/[a-z]+/g, '') }}", {"s": "x"})
    assert render("{{ r }} {{ 6 / 2 }}", {"r": 1}) == "1 3"


def test_filters_take_a_file_for_its_text() -> None:
    data = {"d": FileValue("k: 1 ", {"k": 1}), "l": FileList("- a", ["a"])}
    found = render("{{ d | upper }}{{ d | trim }}|{{ d | replace('k', 'j') }}{{ l | center(5) }}", data)
    assert found == "K: 1 k: 1|j: 1  - a "


def test_plain_names_need_no_jinja2() -> None:
    code = (
        "import sys; from tui_eval.nunjucks.templates import render;"
        "from tui_eval.nunjucks.prompt_templates import render_prompt, resolve_vars;"
        "v = resolve_vars({'a': 'x {{b}}', 'b': 'y'}); assert render('{{ a }}{{q.r}} {{b.length}}', v) == 'x y 1';"
        "render_prompt('[{\"content\": \"{{a}}\"}]', v); assert 'jinja2' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"), (0.1, "0.1"), (1e21, "1e+21"), (1e20, "100000000000000000000"), (1e-6, "0.000001"),
        (1e-7, "1e-7"), (123456.789, "123456.789"), (-0.0, "0"), (float("nan"), "NaN"), (2**63, "9223372036854776000"),
        (12345678901234567890, "12345678901234567000"), (10**400, "Infinity"), (-1.5e-10, "-1.5e-10"),
    ],
)  # fmt: skip
def test_numbers_print_as_in_javascript(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("text", "partial"),
    [
        ("open {{ brace", True), ("{% if", True), ("{# c", True), ("{{ a }}", False), ("{{ a }} {{ b", True),
        ("{{ a\n}}", True), ("{% raw %}{{{% endraw %}", False), ("plain { text }", False), ("{{", True), ("", False),
    ],
)  # fmt: skip
def test_a_tag_that_is_not_closed_on_its_line_is_printed(text: str, partial: bool) -> None:
    assert is_partial(text) is partial
    if partial:
        assert render(text, {"a": "x"}) == text


def test_a_tag_of_what_is_no_prompt_may_go_over_lines_and_is_closed() -> None:
    assert render("<{{ a\n}}>{% if a\n%}y{% endif %}{# c\n #}", {"a": "x"}, whole=True) == "<x>y"
    for text in ("open {{ a", "{% if", "{# c"):
        with pytest.raises(TemplateError):
            render(text, {"a": "x"}, whole=True)


def test_vars_name_vars() -> None:
    found = resolve_vars(
        {"a": "A {{b}}", "b": "B {{ c }}", "c": "C\n", "d": "D {{zzz}} {{b}}", "e": "{{ c | lower }}", "n": "{{x}}",
         "x": None}
    )  # fmt: skip
    assert found == {
        "a": "A B C", "b": "B C", "c": "C", "d": "D {{zzz}} {{b}}", "e": "{{ c | lower }}", "n": "null", "x": None,
    }  # fmt: skip
    assert render_prompt("{{d}}|{{e}}|{{ f }}", {**found, "f": "{{ zzz + 1 }}"}) == "D {{zzz}} {{b}}|c|NaN"


def test_a_var_in_a_prompt_that_is_json_is_no_template() -> None:
    assert render_prompt('["{{e}}"]', {"e": "{{ c | lower }}", "c": "C"}) == '[\n  "{{ c | lower }}"\n]'
    assert render_prompt('["{{e}}", "{{"]', {"e": "x"}) == '["{{e}}", "{{"]'
    assert render_prompt("1e3", {}) == "1000"
    assert render_prompt("NaN", {}) == "NaN"


def test_vars_that_name_each_other_end() -> None:
    assert resolve_vars({"a": "x{{a}}"})["a"] == "x" * 32 + "{{a}}"
    assert resolve_vars({"a": "{{b}}", "b": "{{a}}", "c": 1}) == {"a": "{{a}}", "b": "{{a}}", "c": 1}
    for hostile in ({"a": "x{{a}}{{b}}", "b": "{{a}}{{b}}{{a}}"}, {"a": "{{a}}" * 9000}):
        assert sum(map(len, resolve_vars(hostile).values())) < 5_000_000


def test_objects_in_vars_are_not_rendered() -> None:
    assert resolve_vars({"o": {"k": "{{t}}"}, "t": "x"})["o"] == {"k": "{{t}}"}
    assert render_value(["{{t}}", 1, {"k": "{{t}}"}], {"t": "x"}) == ["x", 1, {"k": "{{t}}"}]
    assert render_value({"k": "{{t}}"}, {"t": "x"}) == {"k": "{{t}}"}


def test_a_chat_prompt_stays_json() -> None:
    prompt = '[{"role":"user","content":"{{q}}"}]'
    sent = render_prompt(prompt, {"q": 'say "hi"\nnow'})
    assert json.loads(sent)[0]["content"] == 'say "hi"\nnow'
    assert sent.startswith('[\n  {\n    "role"')
    assert render_prompt('{"q": {{q | dump}}}', {"q": 'a"b'}) == '{"q": "a\\"b"}'
    assert render_prompt("mid {{x}}", {"x": 1}, "P{{x}} ", " S") == "P1 mid 1 S"


def test_file_values_print_their_text_and_answer_by_key() -> None:
    data = FileValue("a: 1\nb: [x, y]", {"a": 1, "b": ["x", "y"]})
    found = render("{{d}}|{{d.a}}|{{d.b[1]}}|{{ d | dump }}|{{ (d | load).a }}", {"d": data})
    assert found == 'a: 1\nb: [x, y]|1|y|{"a":1,"b":["x","y"]}|1'
    assert render("{{l}}|{{l[0]}}", {"l": FileList("[1,2]", [1, 2])}) == "[1,2]|1"


def test_the_environment_needs_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "hush")
    own = SuiteEnvironment({"MINE": "m"}, trust := Trust())
    assert render("{{env.MINE}} {{env.NOWHERE_AT_ALL}}", {}, env=own) == "m "
    assert render("{{ env.MINE | upper }}", {}, env=own) == "M"
    for template in ("{{env.SOME_SECRET}}", "{{ env['SOME_SECRET'] | upper }}"):
        with pytest.raises(NeedsTrust):
            render(template, {}, env=own)
    assert trust.wanted == ["read the environment variable SOME_SECRET"]
    assert render("{{env.SOME_SECRET}}", {}, env=SuiteEnvironment({}, Trust(True))) == "hush"
    assert "hush" not in render("{{ env | dump }}", {}, env=own)


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(100000000) %}a{% endfor %}",
        "{% for i in range(900000) %}{% for j in range(900000) %}{% endfor %}{% endfor %}",
        "{{ 'a'.repeat(1000000000) }}",
        "{% set x = 'aaaaaaaaaa' %}{% for i in range(60) %}{% set x = x + x %}{% endfor %}{{ x }}",
        "{{ 'a'.padStart(1000000000) }}",
        "{{ 'aaaa' | replace('a', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'.repeat(600000)) }}",
        "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}{{ os }}",
        "{{ 'x' | indent(1000000000) | center(100000000) }}",
        "{{ x.y() }}",
        "{{ 2 ",
        "{% if %}{% endif %}",
        "{{ '{' | load }}",
        "{% for i in range(1000000) %}{{ big }}{% endfor %}",
    ],
)
def test_what_cannot_be_rendered_is_one_line_soon(template: str) -> None:
    began = time.monotonic()
    if is_partial(template):
        assert render(template, {}) == template
        return
    with pytest.raises(TemplateError) as caught:
        render(template, {"big": "b" * 10_000})
    assert "\n" not in str(caught.value)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}", "{{ l.__init__.__globals__ }}", "{{ range.__globals__ }}",
        "{{ self.__init__ }}", "{{ l.append }}", "{{ o.items }}", "{{ o['__class__'] }}", "{{ cycler.__init__ }}",
        "{{ l|attr('__class__') if false }}", "{{ ('%c' % 65).format }}", "{{ joiner().__closure__ }}",
    ],
)  # fmt: skip
def test_nothing_of_python_can_be_reached(template: str) -> None:
    try:
        found = render(template, {"l": [1], "o": {"k": 1}})
    except TemplateError:
        return
    assert "class" not in found and "object at" not in found and "function" not in found


def test_a_template_cannot_change_the_vars() -> None:
    given_vars = {"l": [1], "o": {"k": [1]}}
    assert render("{{ l.push(2) }}{{ l }}{{ o.k.push(3) }}", given_vars) == "21,22"
    assert given_vars == {"l": [1], "o": {"k": [1]}}


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMPTFOO_DISABLE_TEMPLATING", "1")
    assert render("{{a}}", {"a": "x"}) == "{{a}}"
    assert resolve_vars({"a": "{{b}}\n", "b": "x"})["a"] == "{{b}}"


PIECES = st.sampled_from(
    ["{{", "}}", "{%", "%}", "{#", "#}", " a ", "if", "for x in l", "endfor", "endif", "|", "dump", "load", "(", ")",
     "[", "]", "\n", "'", '"', "1", "+", "===", "set", "=", ".length", ".split(", "🎉", "\ud800", "\x00", "raw",
     "endraw", "switch", "case", "macro m()", "endmacro", "{", "}", "in", "not", "and", ",", ":"]
)  # fmt: skip


@examples(300)
@given(st.lists(PIECES, max_size=14).map("".join), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
))  # fmt: skip
def test_any_text_renders_or_says_why_in_a_line(template: str, value: Any) -> None:
    variables = {"a": value, "l": [value], "b": template}
    for call in (render, render_prompt):
        try:
            assert isinstance(call(template, variables), str)
        except TemplateError as error:
            assert "\n" not in str(error)
    try:
        resolve_vars(variables)
    except TemplateError as error:
        assert "\n" not in str(error)


NODES_NUMBERS = [  # node 20: x.toLocaleString()
    (1000, "1,000"), (1.0005, "1.001"), (1234567.891, "1,234,567.891"), (0.0005, "0.001"), (1e22, "10,000,000,000,000,000,000,000"),
    (2.5e-7, "0"), (-1234.5, "-1,234.5"), (12345678901234567890, "12,345,678,901,234,567,000"), (2.0025, "2.003"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "text"), NODES_NUMBERS)
def test_numbers_in_groups_are_those_of_node(number: float, text: str) -> None:
    assert NUMBER_METHODS["toLocaleString"](number) == text


def test_another_locale_in_a_template_is_refused() -> None:
    with pytest.raises(ScriptValueError, match="no other locale"):
        NUMBER_METHODS["toLocaleString"](1234.5, "de-DE")


@pytest.mark.parametrize(
    ("text", "unnamed"),
    [
        ("{{ env[n] }}", True),
        ("{%- set e = env -%}{{ e.X }}", True),
        ("{{ env['X' + n] }}", True),
        ("it's {{ 'an }} of' + env[n] }}", True),
        ("{{ env | dump }}", True),
        ("process.env[name] === output", True),
        ("const { X } = process?.env;", True),
        ("{{ env.X }} {{ env['X'] }} {% if env.X == 1 %}env{% endif %} the env", False),
        ("{% set env = 1 %}{{ q.env }}{{ 'env' }}{{ environment }}", False),
        ("process.env.X === process.env['Y']", False),
    ],
)
def test_what_reads_variables_without_their_names_is_seen(text: str, unnamed: bool) -> None:
    assert reads_unnamed(text) is unnamed
    assert reads_unnamed(text, own=True) is (unnamed and "process" in text)


_TWICE = "{% set s = [1] %}{% for i in range(0, 60) %}{% set s = [s, s] %}{% endfor %}"


@pytest.mark.parametrize(
    "printed",
    [
        "{{ s }}",
        "{{ s | dump | length }}",
        "{{ s.flat(100) | length }}",
        "{{ {a: s, b: 0.00000001} | dump | length }}",
        "{{ [s, s] | sort }}",
        "{% set t = [1] %}{% for i in range(0, 60) %}{% set t = [t, t] %}{% endfor %}{{ s == t }}",
        '{% set w = "word".repeat(4000000) %}{% set l = [] %}{% for i in range(0, 9000) %}{{ l.push(w) }}{% endfor %}{{ l | dump }}',
    ],
)
def test_a_value_that_holds_one_list_twice_over_and_over_ends_the_rendering_not_the_machine(
    printed: str,
) -> None:
    """They went on for ever, deaf to ctrl+c: 2^60 numbers stand in sixty lists."""
    began = time.monotonic()
    with pytest.raises((TemplateError, ScriptValueError), match=r"too (large|long|many|deeply)"):
        render(_TWICE + printed, {})
    assert time.monotonic() - began < 60


def test_what_is_seen_to_differ_at_once_is_not_looked_through() -> None:
    documents = ["word" * 200_000] * 10
    template = "{% for i in range(0, 200) %}{% if documents == [1] %}x{% endif %}{% endfor %}"
    assert render(template, {"documents": documents}) == ""


def test_a_large_value_of_a_case_is_printed_as_json_all_the_same() -> None:
    rows = [{"id": number, "name": "of a row"} for number in range(100_000)]
    assert len(json.loads(render("{{ rows | dump }}", {"rows": rows}))) == len(rows)
