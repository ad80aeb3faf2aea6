"""The line of a script's file that returned what an assertion came out by: named where it is certain, else not."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.formats.promptfoo.judge.test_promptfoo_scores import judged
from tests.support.judging import GivenHosts
from tui_eval.assertions import JudgeServices
from tui_eval.formats.promptfoo.judge.judge_assertion import returned_at
from tui_eval.javascript.node_host import NodeHost
from tui_eval.tui.state.case.verdict_lines import brief, in_full
from tui_eval.tui.state.text.lines import plain

PYTHON = """def helper(text):
    return False

def get_assert(output, context):
    def inner():
        return False
    if inner():
        return True
    return len(output) < 24

def graded(output, context):
    if not output:
        return {"pass": True, "score": 1, "reason": "nothing"}
    return {"pass": False, "score": 0, "reason": f"{output}"}

def several(output, context):
    if output:
        return output == "a"
    return output == "b"
"""
SCRIPT = """// return false in a comment
module.exports = (output) => {
  const words = "return false";
  if (output.length > 3) {
    return false;
  }
  return true;
};
"""


@pytest.mark.parametrize(
    ("function", "value", "line", "text"),
    [
        (None, False, 9, "return len(output) < 24"),
        ("graded", {"pass": False, "score": 0, "reason": "x"}, 14, 'return {"pass": False, "score": 0, "reason": f"{output}"}'),
        ("graded", {"pass": True, "score": 1, "reason": "nothing"}, 13, 'return {"pass": True, "score": 1, "reason": "nothing"}'),
        ("several", False, 16, "def several(output, context):"),
        ("helper", False, 2, "return False"),
        ("gone", False, 0, ""),
    ],
)  # fmt: skip
def test_lines_of_python(function: str | None, value: Any, line: int, text: str) -> None:
    assert returned_at(PYTHON, ".py", function, value) == (line, text)


@pytest.mark.parametrize(
    ("source", "value", "line"),
    [
        (SCRIPT, False, 5),
        (SCRIPT, True, 7),
        ("module.exports = (output) => output.length < 3;", False, 1),
        ("module.exports = (o) => {\n  return o.split('').some((c) => c > 'a');\n};", False, 2),
        ("module.exports = (o) => {\n  const n = o.filter((c) => c);\n  return n > 1;\n};", False, 0),
        ("module.exports = (o) => {\n  if (o) return a;\n  return b;\n}", False, 0),
        (
            "module.exports = (o) => {\n  return { pass: false, score: 0, reason: 'x' };\n}",
            {"pass": False},
            2,
        ),
        ("module.exports = (o) => {\n  if (o) return { pass: true };\n  return false;\n}", False, 3),
    ],
)
def test_lines_of_javascript(source: str, value: Any, line: int) -> None:
    assert returned_at(source, ".js", None, value).number == line


@pytest.mark.parametrize(
    "source", ["def get_assert(:", "\x00", "def get_assert(o, c):\n" + "(" * 5000, "x" * 300_000]
)
def test_what_is_no_script_has_no_line(source: str) -> None:
    assert returned_at(source, ".py", None, False).number == 0


@pytest.mark.real
@pytest.mark.asyncio(loop_scope="module")
async def test_the_verdict_says_where_it_was_returned(services: JudgeServices) -> None:
    root = Path(services.root)
    (root / "length.py").write_text(PYTHON)
    (root / "shape.js").write_text(SCRIPT)
    result = await judged(
        [{"type": "python", "value": "file://length.py"}, {"type": "javascript", "value": "file://shape.js"}],
        "x" * 30,
        services=services,
    )
    first, second = (
        next(one for one in verdict.evidence or () if one.kind == "rule") for verdict in result.verdicts
    )
    assert (first.path, first.row, first.rule) == ("length.py", 9, "return len(output) < 24")
    assert (second.path, second.row, second.rule) == ("shape.js", 5, "return false;")
    for verdict, said in zip(
        result.verdicts, ("length.py:9  return len(output) < 24", "shape.js:5  return false;"), strict=True
    ):
        assert said in [plain(line) for line in brief(verdict)]
        full = [plain(line) for line in in_full(verdict)]
        assert said in full and not any(line.startswith("expected") for line in full)
        assert "returned  false" in full
        assert plain(next(iter(brief(verdict)))).strip() == verdict.type


@pytest.mark.asyncio(loop_scope="module")
async def test_what_passed_names_no_line(services: JudgeServices) -> None:
    (Path(services.root) / "length.py").write_text(PYTHON)
    result = await judged([{"type": "python", "value": "file://length.py"}], "short", services=services)
    assert not any(one.path for one in result.verdicts[0].evidence or ())


@pytest.mark.asyncio(loop_scope="module")
async def test_a_script_that_fails_is_shown_with_its_line_and_marks_under_what_failed(
    services: JudgeServices,
) -> None:
    root = Path(services.root)
    (root / "limit.py").write_text(
        "def get_assert(output, context):\n"
        '    größe = len(output) + context["vars"]["limit"]["most"]\n'
        "    return größe\n"
    )
    result = await judged([{"type": "python", "value": "file://limit.py"}], "x", services=services)
    (verdict,) = result.verdicts
    shown = [plain(line) for line in brief(verdict)]
    place = shown.index('limit.py:2  größe = len(output) + context["vars"]["limit"]["most"]')
    marks = shown[place + 1]
    assert shown[place][marks.index("^") : marks.rindex("^") + 1] == 'context["vars"]["limit"]'
    assert marks.strip(" ^") == ""


@pytest.mark.asyncio(loop_scope="module")
async def test_a_script_that_is_no_python_is_shown_with_its_line_alone(services: JudgeServices) -> None:
    (Path(services.root) / "broken.py").write_text("def get_assert(output, context):\n    return (\n")
    result = await judged([{"type": "python", "value": "file://broken.py"}], "x", services=services)
    shown = [plain(line) for line in brief(result.verdicts[0])]
    assert any(line.startswith("broken.py:2  return (") for line in shown) and not any(
        "^" in s for s in shown
    )


LINES = "const words = output.split(' ');\nconst last = words[5];\n  return last.length > 3;"
FAILING = [
    ({"type": "javascript", "value": LINES}, "script:3  return last.length > 3;", "last", "(line 3)"),
    ({"type": "javascript", "value": "output.gone.size > 3"}, "script:1  output.gone.size > 3", "output", ""),
    ({"type": "javascript", "value": "const a = 1;\nreturn a +;"}, "script:2  return a +;", ";", "(line 2)"),
    ({"type": "javascript", "value": "file://it.js"}, "it.js:4  return größe.size;", "größe", "(it.js:4)"),
    ({"type": "javascript", "value": "file://module.mjs"}, "module.mjs:2  export default function check(output) { return null.x; }", "", "(module.mjs:2)"),
    ({"type": "javascript", "value": "file://node.js"}, "node.js:3  return output.missing.deep;", "deep", "(node.js:3)"),
    ({"type": "python", "value": "words = output.split()\nreturn words[5]"}, "script:2  return words[5]", "words[5]", "(line 2)"),
    ({"type": "python", "value": "output.split()[5]"}, "script:1  output.split()[5]", "output.split()[5]", ""),
]  # fmt: skip


@pytest.mark.parametrize(("asserted", "place", "marked", "words"), FAILING)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_script_of_either_language_inline_or_a_file_that_throws_is_shown_with_file_line_and_caret(
    services: JudgeServices, asserted: dict[str, str], place: str, marked: str, words: str
) -> None:
    root = Path(services.root)
    (root / "it.js").write_text(
        "function inner(größe) {\n  // it is not there\n\n  return größe.size;\n}\nmodule.exports = () => inner();\n"
    )
    (root / "module.mjs").write_text("\nexport default function check(output) { return null.x; }\n")
    (root / "node.js").write_text(
        "require('fs');\nmodule.exports = (output) => {\n  return output.missing.deep;\n};\n"
    )
    node = NodeHost(root) if "node.js" in asserted["value"] else None
    if node is not None and shutil.which("node") is None:
        pytest.skip("there is no node here")
    try:
        hosts = GivenHosts(services.hosts.python, services.hosts.javascript, node)
        result = await judged([asserted], "x", services=replace(services, hosts=hosts))
    finally:
        if node is not None:
            await asyncio.to_thread(node.close)
    (verdict,) = result.verdicts
    assert verdict.passed is not True
    (told,) = verdict.evidence or ()
    assert told.code == "script-failed" and words in told.text and "inline_" not in verdict.reason
    shown = [plain(line) for line in brief(verdict)]
    assert place in shown, shown
    marks = shown[shown.index(place) + 1] if marked else ""
    assert place[marks.index("^") : marks.rindex("^") + 1] == marked if marked else "^" not in "".join(shown)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_thrown_outside_of_the_script_has_no_place(services: JudgeServices) -> None:
    (Path(services.root) / "empty.js").write_text("exports.other = 1;\n")
    for asserted in (
        {"type": "javascript", "value": "file://empty.js"},
        {"type": "javascript", "value": "Symbol()"},
    ):
        (verdict,) = (await judged([asserted], "x", services=services)).verdicts
        assert verdict.passed is not True and not any(one.path for one in verdict.evidence or ())
