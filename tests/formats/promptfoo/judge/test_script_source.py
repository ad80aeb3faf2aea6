"""The line of a script's file that returned what an assertion came out by: named where it is certain, else not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.formats.promptfoo.judge.test_promptfoo_scores import judged
from tui_eval.assertions import JudgeServices
from tui_eval.formats.promptfoo.judge.script_source import returned_at
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
