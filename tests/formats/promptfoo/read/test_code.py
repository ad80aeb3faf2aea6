"""What code of a suite makes: configurations, tests, vars, prompts, filters; media and documents."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.promptfoo_files import Make, errors, texts
from tui_eval.config.project import Config
from tui_eval.formats import reading
from tui_eval.formats.promptfoo.read.render import RenderError, render_case
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.javascript.node_host import NodeHost
from tui_eval.model import Suite
from tui_eval.scripting.python.python_host import PythonHost
from tui_eval.suites.sampling import sample

node_needed = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
HEAD = "providers: [{id: echo, label: E}]\nprompts: ['{{q}}']\n"


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[PythonHost, NodeHost]]:
    python, node = PythonHost(tmp_path), NodeHost(tmp_path)
    yield python, node
    python.close()
    node.close()


async def rendered(
    suite: Suite, folder: Path, hosts: tuple[PythonHost, NodeHost], trusted: bool = True
) -> list[str]:
    """The prompt of each case as the engine gets it, or why there is none."""
    result: list[str] = []
    for case in suite.cases:
        try:
            found = await render_case(
                case, folder, folder, Trust(trusted), hosts[0], node=hosts[1], settings=suite.settings
            )
            result.append(found.prompt)
        except (RenderError, NeedsTrust) as error:
            assert "\n" not in str(error)
            result.append(str(error))
    return result


PYTHON_VAR = """
def get_var(name, prompt, others):
    if others.get("fail"):
        return {"error": "no\\nluck"}
    return {"output": f"  {name}|{len(prompt)}|{others['q']} "}
"""


async def test_vars_made_by_python(make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]) -> None:
    suite = make(
        "providers: [echo]\nprompts: ['{{q}} {{v}}']\n"
        "tests: [{vars: {q: a, v: 'file://v.py'}}, {vars: {q: a, fail: x, v: 'file://v.py'}}, {vars: {q: a, v: 'file://gone.py'}}]",
        v__py=PYTHON_VAR,
        trusted=True,
    )
    assert not suite.problems
    assert await rendered(suite, tmp_path, hosts) == [
        "a v|11|a", "v: v.py: no luck", "v: there is no file gone.py",
    ]  # fmt: skip
    untrusted = make(HEAD + "tests: [{vars: {q: 'file://v.py'}}]")
    assert [str(p) for p in untrusted.problems] == [
        "promptfooconfig.yaml: needs trust: run v.py (run with --trust, or trust the folder in the app)"
    ]
    assert "needs trust" in (await rendered(untrusted, tmp_path, hosts, False))[0]


async def test_what_python_makes_of_a_variable_is_text_and_code_sees_all_of_the_prompt(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    """As promptfoo 0.121.20 has it."""
    made = "['5', 5, False, ['a'], {}, ' '.join([str(len(prompt)), *others])][int(others['q'])]"
    suite = make(
        "providers: [echo]\nprompts: ['P']\ndefaultTest: {options: {prefix: '{{q}}', suffix: '{{v}}'}}\n"
        f"tests: [{', '.join(f'{{vars: {{q: {n}, v: file://v.py}}}}' for n in range(6))}]",
        v__py=f"def get_var(name, prompt, others):\n    return {{'output': {made}}}\n",
        trusted=True,
    )
    assert await rendered(suite, tmp_path, hosts) == [
        "0P5",
        "v: v.py: output must be text, not 5",
        "v: v.py must return {output} or {error}",
        'v: v.py: output must be text, not ["a"]',
        "v: v.py: output must be text, not {}",
        "5P11 q v",
    ]


@pytest.mark.real
@node_needed
async def test_vars_and_filters_made_by_javascript(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    suite = make(
        "providers: [{id: echo, label: E}]\nprompts: ['{{v | shout(2)}}']\n"
        "nunjucksFilters: {shout: 'filters/*.js'}\n"
        "tests: [{vars: {q: a, v: 'file://v.js'}}, {vars: {q: none, v: 'file://v.js'}}]",
        v__js="const p = require('path'); module.exports = async (name, prompt, vars, provider) => "
        "vars.q === 'none' ? {} : { output: p.join(name, vars.q, provider.label) }",
        **{"filters/s__js": "module.exports = (text, n) => text.toUpperCase() + '!'.repeat(n)"},
        trusted=True,
    )
    assert not suite.problems
    assert await rendered(suite, tmp_path, hosts) == ["V/A/E!!", "v: v.js must return {output} or {error}"]
    (tmp_path / "filters" / "s.js").write_text("module.exports = () => { throw new Error('no\\nluck') }")
    assert "Error: no luck" in (await rendered(suite, tmp_path, hosts))[0]


@pytest.mark.real
@node_needed
async def test_filters_are_given_what_nunjucks_gives_them(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    suite = make(
        "providers: [echo]\nprompts: ['{{ gone | f }} {{ q | f(gone, 2) }} {{ q | f(k=1) }} {{ u | f }}']\n"
        "nunjucksFilters: {f: f.js}\ntests: [{vars: {q: a, u: null}}]",
        f__js="module.exports = (...all) => all.map((one) => one === undefined ? 'U' : JSON.stringify(one)).join()",
        trusted=True,
    )
    assert await rendered(suite, tmp_path, hosts) == ['U "a",U,2 "a",{"k":1,"__keywords":true} null']


async def test_media_and_documents(make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]) -> None:
    (tmp_path / "i.PNG").write_bytes(b"\x89PNG")
    (tmp_path / "s.mp3").write_bytes(b"ID3")
    pixel, sound = base64.b64encode(b"\x89PNG").decode(), base64.b64encode(b"ID3").decode()
    suite = make(
        "providers: [echo]\nprompts: ['{{f}}', 'data:image/jpeg;base64,{{f}}', "
        '\'[{"role": "user", "content": [{"image_url": {"url": "data:image/jpeg;base64,{{f}}"}}]}]\']\n'
        "tests: [{vars: {f: 'file://i.PNG'}}, {vars: {f: 'file://s.mp3'}}, {vars: {f: 'file://gone.png'}}, {vars: {f: 'file://bad.pdf'}}]",
        bad__pdf="no PDF",
    )
    assert not suite.problems
    found = await rendered(suite, tmp_path, hosts, False)
    image = f"data:image/png;base64,{pixel}"
    assert found[:2] == [image, image]
    assert f'"url": "{image}"' in found[2]
    assert found[3:5] == [sound, f"data:image/jpeg;base64,{sound}"]
    assert found[6] == "f: there is no file gone.png"
    assert found[9].startswith("f: bad.pdf cannot be read as PDF")
    case = suite.cases[1]
    reference = await render_case(case, tmp_path, tmp_path, Trust(), hosts[0], compat="reference")
    assert reference.prompt == f"data:image/jpeg;base64,{image}"


async def test_text_of_a_pdf(make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "d.pdf").write_bytes(small_pdf("Hello from a page"))
    suite = make(HEAD + "tests: [{vars: {q: 'file://d.pdf'}}]")
    assert await rendered(suite, tmp_path, hosts, False) == ["Hello from a page"]


def small_pdf(text: str) -> bytes:
    """A PDF of one page that says `text`."""
    stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    body, offsets = b"%PDF-1.4\n", []
    for number, item in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(body)
    return body + b"xref\n0 6\n0000000000 65535 f \n" + table + end


async def test_prompts_made_by_commands_and_scripts(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    suite = make(
        "providers: [echo]\nprompts: ['exec:sh ./p.sh \"a b\"', 'file://p.sh', 'file://whole.py', 'exec:./not-there', 'file://bad.sh', 'file://quiet.sh']\n"
        "tests: [{vars: {q: hi}, options: {prefix: '> '}}]",
        p__sh='printf "\\033[1m%s\\033[0m {{q}}\\n" "$1"\n',
        whole__py="import json, sys\nprint('py', json.loads(sys.argv[1])['vars']['q'])\n",
        bad__sh="echo broken >&2\nexit 3\n",
        quiet__sh="echo only complaints >&2\n",
        trusted=True,
    )
    assert not suite.problems
    found = await rendered(suite, tmp_path, hosts)
    assert found[0] == "a b hi"  # as in the tool, nothing is put around what code makes
    assert found[1].startswith('{"vars":{"q":"hi"}')  # as JSON.stringify writes it, for programs that cut it
    assert found[2] == "py hi"
    assert "./not-there" in found[3] and "cannot be run: No such file" in found[3]
    assert found[4].endswith("ended with exit code 3: broken")
    assert found[5].endswith("quiet.sh: only complaints")
    assert [case.prompt for case in suite.cases[:2]] == ['sh ./p.sh "a b"', "p.sh"]
    assert all("needs trust: run" in text for text in await rendered(suite, tmp_path, hosts, False))


async def test_a_raw_prompt_may_name_a_command_a_script_or_a_file(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    suite = make(
        "providers: [echo]\nprompts: [{label: a, raw: 'exec:sh p.sh'}, {label: b, raw: p.sh}, {label: c, raw: t.txt}, {label: d, raw: 'no file.txt here {{q}}'}]\n"
        "tests: [{vars: {q: hi}}]",
        p__sh="echo made\n",
        t__txt="text {{q}}",
        trusted=True,
    )
    assert not suite.problems
    assert await rendered(suite, tmp_path, hosts) == ["made", "made", "text hi", "no file.txt here hi"]
    assert [case.prompt for case in suite.cases] == ["a", "b", "c: t.txt: text {{q}}", "d"]
    assert all("needs trust: run" in text for text in (await rendered(suite, tmp_path, hosts, False))[:2])


@node_needed
async def test_prompts_made_by_javascript(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    suite = make(
        "providers: [{id: echo, label: E}]\nprompts: ['file://p.js', 'file://p.js:chat', {id: 'file://p.js:chat', label: L, config: {n: 1}}, 'file://p.js:gone']\n"
        "tests: [{vars: {q: hi}}]",
        p__js="module.exports = ({ vars, provider }) => `${vars.q} ${provider.label} {{q}}`;\n"
        "module.exports.chat = async ({ config }) => [{ role: 'user', content: JSON.stringify(config) }];",
        trusted=True,
    )
    assert [c.prompt for c in suite.cases] == ["p.js", "p.js:chat", "L", "p.js:gone"]
    found = await rendered(suite, tmp_path, hosts)
    assert found[0] == "hi E hi"
    assert '"content": "{}"' in found[1]
    assert '{\\"n\\":1}' in found[2]
    assert found[3] == "p.js:gone: Error: p.js must export a function gone"


@pytest.mark.real
@node_needed
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("promptfooconfig.js", "module.exports = {{{body}}}"),
        ("promptfooconfig.cjs", "module.exports = async () => ({{{body}}})"),
        ("promptfooconfig.mjs", "export default {{{body}}}"),
    ],
)
async def test_configurations_in_javascript(
    tmp_path: Path, hosts: tuple[PythonHost, NodeHost], name: str, text: str
) -> None:
    body = (
        "prompts: [({ vars }) => `made of ${vars.q}`, 'plain {{q}}'], providers: ['echo'],"
        " tests: [{ vars: { q: 'a' }, assert: [{ type: 'javascript', value: (o) => o.length > 1 }] }, { asert: [], vars: {} }]"
    )
    (tmp_path / name).write_text(text.replace("{{{body}}}", "{" + body + "}"))
    suite = reading.load(tmp_path / name, Config(root=tmp_path), Trust(True))
    assert [str(p) for p in errors(suite)] == [f"{name}: tests[1].asert: unknown key; did you mean assert?"]
    assert (await rendered(suite, tmp_path, hosts))[:2] == ["made of a", "plain a"]
    assert suite.cases[0].assertions[0].value == f"file://{name}:__fn_1"
    assert (await hosts[1].call(tmp_path / name, "__fn_1", ["xx"])).value is True
    without = reading.load(tmp_path / name, Config(root=tmp_path), Trust())
    assert [str(p) for p in without.problems] == [
        f"{name}: needs trust: run {name} with node; run with --trust, or trust the folder"
    ]
    assert not without.cases


@pytest.mark.real
@node_needed
def test_configurations_that_fail(tmp_path: Path) -> None:
    for text, says in (
        ("module.exports = (", "SyntaxError"),
        ("throw new Error('no\\nluck')", "Error: no luck"),
        ("module.exports = 5", "must be a mapping, not 5"),
        ("require('nowhere-at-all')", "Cannot find module"),
    ):
        (tmp_path / "promptfooconfig.js").write_text(text)
        suite = reading.load(tmp_path / "promptfooconfig.js", Config(root=tmp_path), Trust(True))
        assert not suite.cases
        assert says in str(suite.problems[0])
        assert "\n" not in str(suite.problems[0])


def test_numbers_of_tests_made_by_python_are_those_that_json_hands_on(make: Make) -> None:
    text = "providers: [echo]\ntests: file://gen.py"
    code = "def generate_tests(): return [{'vars': {'a': %s}}]"
    variables = make(text, gen__py=code % "[1.0, 2.5, -0.0, 2**60]", trusted=True).cases[0].vars
    assert repr(variables["a"]) == "[1, 2.5, 0, 1152921504606847000]"
    suite = make(text, gen__py=code % "float('nan')", trusted=True)
    assert "generate_tests gives NaN or an infinite number, which JSON cannot hold" in str(errors(suite)[0])


@node_needed
def test_tests_made_by_javascript(make: Make) -> None:
    suite = make(
        HEAD
        + "tests:\n- file://g.js\n- file://list.mjs\n- {path: 'file://g.js:named', config: {n: 2, f: 'file://d.yaml'}}\n- file://g.js:bad\n",
        g__js="module.exports = async () => [{ vars: { q: 'from js' } }];\n"
        "module.exports.named = (config) => [{ vars: { q: config.n + config.f.k } }];\nmodule.exports.bad = () => 5;",
        list__mjs="export default [{ vars: { q: 'listed' } }]",
        d__yaml="k: v",
        trusted=True,
    )
    assert [c.vars["q"] for c in suite.cases] == ["from js", "listed", "2v"]
    assert [str(p) for p in errors(suite)] == [
        "promptfooconfig.yaml:7: tests[3]: g.js:bad must return a list of tests, not 5"
    ]


def test_javascript_without_node(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    suite = make(HEAD + "tests: file://g.js", g__js="module.exports = []", trusted=True)
    assert "g.js: JavaScript files need node, and there is no node on PATH" in str(errors(suite)[0])


def test_transform_of_vars_comes_before_combinations(make: Make, tmp_path: Path) -> None:
    suite = make(
        HEAD
        + """defaultTest: {options: {transformVars: '({ q: vars.q.split(","), n: context.uuid.length })'}}
tests:
- vars: {q: 'a,b', k: kept}
- vars: {q: [x, 'y,z']}
  options:
    transformVars: |
      return { q: vars.q.map((v) => v + '!') }
- vars: {q: 5}
- vars: {q: 'c'}
  options: {transformVars: '5'}
""",
    )
    assert [(c.vars["q"], c.vars.get("n")) for c in suite.cases[:4]] == [
        ("a", 36), ("b", 36), ("x!", None), ("y,z!", None),
    ]  # fmt: skip
    assert suite.cases[0].vars["k"] == "kept"
    assert [c.vars["q"] for c in suite.cases[4:]] == [5, "c"]
    assert [p.line for p in errors(suite)] == [10, 11]
    assert "transformVars: TypeError" in str(errors(suite)[0])
    assert "must return an object of vars, not 5" in str(errors(suite)[1])
    assert len({c.case_id for c in suite.cases}) == 6


@pytest.mark.parametrize(
    "code",
    [
        "({...vars, q: vars.none})",
        "|\n      return {q: undefined}",
        "Promise.resolve({q: undefined})",
        "|\n      delete vars.q;\n      return vars;",
        "|\n      vars.q = undefined;\n      return {};",
    ],
)
def test_a_variable_that_transform_vars_makes_undefined_is_none(make: Make, code: str) -> None:
    given = code if code.startswith("|") else f"'{code}'"
    text = f"{HEAD}tests:\n- vars: {{q: [a, b], k: kept}}\n  options:\n    transformVars: {given}\n"
    assert [case.vars for case in make(text).cases] == [{"k": "kept"}]


@pytest.mark.real
def test_transform_of_vars_by_files(make: Make) -> None:
    text = HEAD + "tests: [{vars: {q: a}, options: {transformVars: 'file://%s'}}]"
    code = "def get_transform(vars, context):\n    return {'q': vars['q'] + 'p'}\ndef other(vars, context):\n    return {'o': 1}\n"
    assert make(text % "t.py", t__py=code, trusted=True).cases[0].vars == {"q": "ap"}
    assert make(text % "t.py:other", trusted=True).cases[0].vars == {"q": "a", "o": 1}
    untrusted = make(text % "t.py")
    assert untrusted.cases[0].vars == {"q": "a"}
    assert "needs trust: run t.py" in str(errors(untrusted)[0])
    assert "neither JavaScript nor Python" in str(errors(make(text % "t.rb", trusted=True))[0])
    if shutil.which("node"):
        made = make(text % "t.js:any", t__js="module.exports = (vars) => ({ q: vars.q + 'j' })", trusted=True)
        assert made.cases[0].vars == {"q": "aj"}
        undefined = make(text % "u.js", u__js="module.exports = () => ({ q: undefined })", trusted=True)
        assert undefined.cases[0].vars == {}
        deleted = "module.exports = (vars) => { delete vars.q; return { k: 1 }; }"
        assert make(text % "d.js", d__js=deleted, trusted=True).cases[0].vars == {"k": 1}
        changed = "module.exports = (vars) => { vars.q += 'c'; return {}; }"
        assert make(text % "c.js", c__js=changed, trusted=True).cases[0].vars == {"q": "ac"}


def test_transform_vars_may_change_what_it_is_given(make: Make) -> None:
    code = "|\n      vars.q = vars.q + 'x';\n      vars = {k: 'nobody sees'};\n      return {n: 1};"
    text = f"{HEAD}tests:\n- vars: {{q: a, k: kept}}\n  options:\n    transformVars: {code}\n"
    assert [case.vars for case in make(text).cases] == [{"q": "ax", "k": "kept", "n": 1}]


def test_lines_of_an_env_file_that_give_no_variable_are_noted(make: Make, tmp_path: Path) -> None:
    """A key that was misspelt with a blank in it was missing in silence."""
    text = "\ufeffA=1\n# a comment\n\nMY KEY=secret-9x7\nexport B: two\nC='over\ntwo lines'\nD\n"
    (tmp_path / ".env").write_text(text)
    suite = make(
        "prompts: ['{{ env.A }} {{ env.B }} {{ env.C }}']\nproviders: [echo]\ntests: [{vars: {}}]\n",
        trusted=True,
    )
    assert suite.cases[0].turns[0].text == "1 two over\ntwo lines"
    noted = [(one.path, one.line, one.level) for one in suite.problems if "passed over" in one.message]
    assert noted == [(".env", 4, "note"), (".env", 8, "note")] and "9x7" not in str(suite.problems)


def test_env_files(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "outer")
    (tmp_path / ".env").write_text(
        "A=from file # comment\nexport B=\"two\\nlines\"\nC='single $x'\nOUTER=file\n# D=no\n"
    )
    (tmp_path / "more.env").write_text("A=named\nOUTER=named\n")
    text = (
        "env: {E: '{{ env.A }}!'}\nproviders: [echo]\ntests: [{vars: {}}]\n"
        "prompts: ['{{env.A}}|{{env.B}}|{{env.C}}|{{env.OUTER}}|{{env.E}}|{{env.D}}']\n"
    )
    trusted = make(text, trusted=True)
    assert trusted.settings["env"] == {
        "A": "from file",
        "B": "two\nlines",
        "C": "single $x",
        "E": "from file!",
    }
    named = make(text + "commandLineOptions: {envPath: more.env}", trusted=True)
    assert named.settings["env"]["A"] == "named"
    assert named.settings["env"]["OUTER"] == "named"
    assert named.cases[0].turns[0].text == "named|two\nlines|single $x|named|named!|{{env.D}}"
    untrusted = make(text)
    assert untrusted.settings["env"] == {"E": "{{ env.A }}!"}
    assert any("needs trust: read .env" in str(p) for p in untrusted.problems)


def test_ranges_and_samples(make: Make, tmp_path: Path) -> None:
    tests = "tests: [" + ", ".join(f"{{vars: {{q: t{n}}}}}" for n in range(6)) + "]\n"
    assert texts(make(HEAD + tests + "commandLineOptions: {filterRange: '1:3'}"), tmp_path) == ["t1", "t2"]
    assert texts(make(HEAD + tests + "evaluateOptions: {filterRange: '4:'}"), tmp_path) == ["t4", "t5"]
    seeded = make(HEAD + tests + "commandLineOptions: {filterSample: 3, filterSampleSeed: 7}")
    again = make(HEAD + tests + "commandLineOptions: {filterSample: 3, filterSampleSeed: 7}")
    assert texts(seeded, tmp_path) == texts(again, tmp_path)
    assert len(set(texts(seeded, tmp_path))) == 3
    assert texts(seeded, tmp_path) == sorted(texts(seeded, tmp_path))
    assert not seeded.problems
    unseeded = make(HEAD + tests + "commandLineOptions: {filterSample: 2, filterFirstN: 1}")
    assert len(unseeded.cases) == 2
    assert [(p.level, p.key) for p in unseeded.problems] == [
        ("note", "commandLineOptions.filterFirstN"), ("note", "commandLineOptions.filterSample"),
    ]  # fmt: skip


def test_the_sample_of_a_seed_is_that_of_mulberry32() -> None:
    # Reckoned with the published JavaScript of both functions.
    assert [sample(10, 4, seed) for seed in ("7", "abc", "\u20ac")] == [
        [2, 8, 1, 7], [7, 8, 1, 3], [0, 3, 6, 4],
    ]  # fmt: skip
    assert sorted(sample(50, 50, "x")) == list(range(50))
    assert sample(3, 9, "x") == sample(3, 3, "x")
    assert sample(0, 3, "x") == []


def test_prefix_and_suffix_of_the_command_line(make: Make, tmp_path: Path) -> None:
    text = HEAD + "commandLineOptions: {promptPrefix: '<', promptSuffix: '>'}\ntests: [{vars: {q: a}}]\n"
    assert texts(make(text), tmp_path) == ["<a>"]
    own = text + "defaultTest: {options: {suffix: ']'}}\n"
    assert texts(make(own), tmp_path) == ["<a]"]
    assert texts(make(own, compat="reference"), tmp_path) == ["a]"]


def test_what_is_read_and_ignored_is_said(make: Make) -> None:
    suite = make(
        HEAD + "sharing: true\nredteam: {numTests: 5}\nwriteLatestResults: true\ntests: [{vars: {q: a}}]\n"
    )
    assert not errors(suite)
    assert [(p.key, p.line) for p in suite.problems] == [
        ("sharing", 3),
        ("redteam", 4),
        ("writeLatestResults", 5),
    ]
    assert all("is ignored" in p.message for p in suite.problems)


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        ("out/res.json", "add -o out/res.promptfoo.json"),
        ("[a b.csv, r.JUNIT.xml, t.yaml, x.xml]", "add -o 'a b.csv' -o r.JUNIT.xml -o t.promptfoo.json -o x.promptfoo.json"),
        ("https://docs.google.com/spreadsheets/d/1", "add -o results.promptfoo.json"),
        ("{a: 1}", "add -o FILE"),
    ],
)  # fmt: skip
def test_where_results_would_be_written_is_ignored_and_said(make: Make, given: str, cure: str) -> None:
    (told,) = make(HEAD + f"outputPath: {given}\ntests: [{{vars: {{q: a}}}}]\n").problems
    assert (told.level, told.key, told.line, told.cure) == ("note", "outputPath", 3, cure)


def test_where_the_tools_loaders_differ_is_said(make: Make) -> None:
    files = {"a__csv": "q\nx\n", "t__json": '[{"$ref": "#/1"}, {"vars": {"q": "y"}}]'}
    pattern = make(HEAD + "tests: 'file://*.csv'", **files)
    assert [c.vars["q"] for c in pattern.cases] == ["x"]
    assert "patterns of YAML files only" in str(pattern.problems[0])
    whole = make(HEAD + "tests: file://t.json")
    assert [c.vars["q"] for c in whole.cases] == ["y", "y"]
    assert "$ref" in str(whole.problems[0])
    assert not make(HEAD + "tests: ['file://*.csv', 'file://t.json']").problems


OWN_NAME = """
export default class Mine {
  constructor(options) { this.name = options.config.name; }
  id() { return this.name ? `mine-${this.name}` : 'mine'; }
  async callApi(prompt) { return { output: prompt }; }
}
"""


@pytest.mark.real
@node_needed
def test_tests_name_a_provider_by_what_its_class_calls_itself(make: Make) -> None:
    text = """
        prompts: ['{{q}}']
        providers:
          - file://mine.mjs
          - {id: 'file://mine.mjs', config: {name: two}}
          - {id: 'file://mine.mjs', label: three}
          - echo
        tests:
          - {vars: {q: a}, providers: [mine]}
          - {vars: {q: b}, providers: [mine-two]}
          - {vars: {q: c}, providers: ['mine*']}
          - {vars: {q: d}, providers: [echo]}
    """
    suite = make(text, trusted=True, mine__mjs=OWN_NAME)
    assert not errors(suite)
    found = [(case.vars["q"], case.column_number) for case in suite.cases]
    assert found == [("a", 1), ("a", 3), ("b", 2), ("c", 1), ("c", 2), ("c", 3), ("d", 4)]
    said = [problem.cure for problem in errors(make(text, mine__mjs=OWN_NAME))]
    assert len(said) == 3 and all("needs trust: run mine.mjs with node" in cure for cure in said)
    broken = OWN_NAME.replace("options.config.name;", "options.none.at.all;")
    said = [problem.cure for problem in errors(make(text, trusted=True, mine__mjs=broken))]
    assert len(said) == 3 and all("mine.mjs: TypeError" in cure for cure in said)
