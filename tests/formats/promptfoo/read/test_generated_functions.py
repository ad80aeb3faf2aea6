"""Functions within what a JavaScript file generates: found again when they are needed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.formats.promptfoo.run.test_runtime import run, suite
from tui_eval.config.project import load
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")

TESTS = """
const check = (word) => ({ type: 'javascript', value: (output) => output.includes(word) });
module.exports = async () => [{ vars: { x: 'default' }, assert: [check('default'), check('absent')] }];
module.exports.make = () => [{ vars: { x: 'named' }, assert: [check('named')] }];
"""


def config(*tests: str) -> str:
    return f"prompts: ['say {{{{x}}}}']\nproviders: [echo]\ntests: [{', '.join(tests)}]\n"


async def test_each_generators_functions_are_its_own(tmp_path: Path) -> None:
    root = suite(tmp_path, config("file://tests.js", "'file://tests.js:make'"), tests_js=TESTS)
    (root / "tui_eval.yaml").write_text("")
    (first, second), _ = await run(root)
    assert [verdict.passed for verdict in first.verdicts] == [True, False]
    assert (second.response_text, second.outcome) == ("say named", "passed")


def test_functions_of_what_a_config_makes_are_said(tmp_path: Path) -> None:
    root = suite(tmp_path, config("{path: 'file://tests.js:make', config: {n: 1}}"), tests_js=TESTS)
    (root / "tui_eval.yaml").write_text("")
    (loaded,) = reading.load_all([root], load([root]), Trust(True))
    (problem,) = [problem for problem in loaded.problems if problem.level == "error"]
    assert "functions within what is made with a config cannot be called later" in problem.message
