"""A script of one expression that was false says which values it saw; nothing else of the verdict changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.judging import GivenHosts
from tui_eval import causes
from tui_eval.assertions import JudgeServices
from tui_eval.assertions.judge_input import JudgeInput
from tui_eval.formats import judge
from tui_eval.formats.promptfoo.judge.evaluated import Comparison, in_javascript, in_python, in_python_file
from tui_eval.guard.trust import Trust
from tui_eval.javascript.isolate import JavaScriptHost
from tui_eval.model import Assertion, Case, Reply, Verdict
from tui_eval.scripting.python.python_host import PythonHost

REPLY = "x" * 178
SEEN = [
    ("javascript", "output.length < 140", "178 < 140 is false"),
    ("javascript", "output.length > 10 && output.length <= 140;", "178 <= 140 is false"),
    ("javascript", "output.includes('2 years')", "output.includes('2 years') is false"),
    ("javascript", "output.length < 140 || output === 'a'", "output.length < 140 || output === 'a' is false"),
    ("javascript", "JSON.parse('{\"a\": 1}').a === 2 && x", "1 === 2 is false"),
    ("javascript", "output.split('').filter(c => c > 'y').length >= 1", "0 >= 1 is false"),
    ("javascript", "JSON.parse('{}').latency < 400", "undefined < 400 is false"),
    ("javascript", "JSON.parse('[null]')[0] > 400", "null > 400 is false"),
    ("javascript", "Number(output) >= 0", "NaN >= 0 is false"),
    ("javascript", "-1 / 0 > 1n", "-Infinity > 1 is false"),
    ("javascript", "output.at === 'at'", 'a function === "at" is false'),
    ("javascript", "Symbol('({})') === true", "Symbol(({})) === true is false"),
    ("javascript", "/<b>y/.test(output)", "/<b>y/.test(output) is false"),
    ("javascript", "const n = output.length; n < 3", "script: returned false"),
    ("javascript", "const n = 3\nreturn output.length < n", "script: returned false"),
    ("python", "len(output) < 140", "178 < 140 is false"),
    ("python", "len(output) > 3 and 'years' in output", '"years" in "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…" is false'),
    ("python", "json.loads('{}').get('latency') == 400", "None == 400 is false"),
    ("python", "(len(output) > 3) is False", "True is False is false"),
    ("python", "float('nan') < 3", "nan < 3 is false"),
    ("python", "all(letter == 'y' for letter in output)", "all((letter == 'y' for letter in output)) is false"),
    ("python", "__import__('os').getpid() == 0", "script: returned false"),
]  # fmt: skip


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> list[Verdict]:
    root = tmp_path_factory.mktemp("scripts")

    async def judged() -> list[Verdict]:
        javascript, python = JavaScriptHost(), PythonHost(root)
        services = JudgeServices(
            hosts=GivenHosts(python, javascript), trust=Trust(True), root=root, base=root
        )
        assertions = [Assertion(kind, code) for kind, code, _ in SEEN]
        case = Case("s::a", "a", "s", "promptfoo", assertions=assertions)
        try:
            return (await judge(JudgeInput(case, [Reply(1, REPLY)], services=services))).verdicts
        finally:
            javascript.close()
            python.close()

    return asyncio.run(judged())


@pytest.mark.parametrize("index", range(len(SEEN)), ids=[f"{kind} {code[:30]!r}" for kind, code, _ in SEEN])
def test_values_that_were_seen(index: int, verdicts: list[Verdict]) -> None:
    verdict = verdicts[index]
    assert verdict.passed is False and " returned false\n" in verdict.reason
    assert causes.words_of(verdict) == SEEN[index][2]


def test_those_that_fail_alike_have_one_cause(verdicts: list[Verdict]) -> None:
    from tui_eval.model import Attempt

    attempt = Attempt("s::a", 1, "failed", verdicts=verdicts[:1])
    assert causes.alike(attempt) == "output.length < 140 is false"


def test_what_cannot_be_cut_for_certain_stands_whole_or_not_at_all(tmp_path: Path) -> None:
    assert in_javascript("a < b ? c : d") == [Comparison("a < b ? c : d")]
    assert in_javascript("a < b < c") == [Comparison("a < b < c")]
    assert in_javascript("f(a < b) && 'x < y'.length > 2") == [
        Comparison("f(a < b)"),
        Comparison("'x < y'.length > 2", "'x < y'.length", ">", "2"),
    ]
    for code in ("(a", "it's", "a\nb", "x" * 500, ""):
        assert in_javascript(code) == []
    for code in ("print(output)", "lambda: output", "a\nb", "output.__class__", "((", "x" * 500):
        assert in_python(code) == []
    assert in_python("1 < len(output) < 3") == [Comparison("1 < len(output) < 3")]


FILES = [
    ("a.py", "import json\n\n\ndef get_assert(output, context):\n    length = len(output)\n    return length < 140\n", "178 < 140 is false"),
    ("b.py", 'def get_assert(text, _):\n    "Says."\n    return len(text) > 3 and len(text) <= 99\n', "178 <= 99 is false"),
    ("c.py", "LIMIT = 140\n\n\ndef get_assert(output, context):\n    return len(output) < LIMIT\n", "script: returned false"),
    ("d.py", "import os\n\n\ndef get_assert(output, context):\n    seen = os.listdir()\n    return len(output) < 3\n", "script: returned false"),
    ("e.py", "def len(_):\n    return 7\n\n\ndef get_assert(output, context):\n    return len(output) < 3\n", "script: returned false"),
    ("f.py", "def get_assert(output, context):\n    if output:\n        return len(output) < 3\n    return True\n", "script: returned false"),
    ("g.js", "module.exports = (output, context) => output.length < 140;\n", "178 < 140 is false"),
    ("h.js", "const LIMIT = 140;\nmodule.exports = (text) => {\n  const n = text.length;\n  return n <= LIMIT;\n};\n", "178 <= 140 is false"),
    ("i.js", "module.exports = function (output) {\n  if (output) { return false; }\n  return output.length < 3;\n};\n", "script: returned false"),
    ("j.js", "module.exports = (output) => {\n  const said = '%s';\n  return output === 'y';\n};\n", '"xxx'),
]  # fmt: skip


@pytest.mark.real
def test_values_that_a_script_s_file_saw(tmp_path: Path) -> None:
    for name, source, _ in FILES:
        (tmp_path / name).write_text(source)

    async def judged() -> list[Verdict]:
        javascript, python = JavaScriptHost(), PythonHost(tmp_path)
        services = JudgeServices(
            hosts=GivenHosts(python, javascript), trust=Trust(True), root=tmp_path, base=tmp_path
        )
        kinds = {".py": "python", ".js": "javascript"}
        assertions = [Assertion(kinds[name[-3:]], f"file://{name}") for name, _, _ in FILES]
        case = Case("s::a", "a", "s", "promptfoo", assertions=assertions)
        try:
            return (await judge(JudgeInput(case, [Reply(1, REPLY)], services=services))).verdicts
        finally:
            javascript.close()
            python.close()

    for verdict, (name, _, wanted) in zip(asyncio.run(judged()), FILES, strict=True):
        assert verdict.passed is False and verdict.evidence is not None, name
        assert causes.words_of(verdict).startswith(wanted), name
        assert verdict.evidence[0].path == name and "returned false" in verdict.reason


@pytest.mark.parametrize(
    "above",
    [
        "from helpers import *",
        "from helpers import len",
        "try:\n    from helpers import *\nexcept ImportError:\n    pass",
        "if True:\n    def len(value):\n        return 0",
        "if True:\n    import helpers as len",
    ],
)
def test_names_that_a_file_may_give_a_meaning_of_its_own_are_not_looked_at_again(above: str) -> None:
    asserts = "def get_assert(output, context):\n    return len(output) > 3\n"
    assert in_python_file(f"import json, re\n{asserts}", "get_assert").parts
    assert not in_python_file(f"{above}\n{asserts}", "get_assert").parts
