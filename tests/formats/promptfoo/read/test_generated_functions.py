"""Functions within what a JavaScript file generates: found again when they are needed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.formats.promptfoo.run.test_runtime import run, suite
from tui_eval.config.project import load
from tui_eval.engine.case_files import verdict_files
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


CONFIGURED = """
const check = (word) => ({ type: 'javascript', value: (output, context) => output.includes(word + context.vars.x) });
module.exports = (config) => config.words.map((word) => ({ vars: { x: ':é' }, assert: [check(word), check('absent')] }));
module.exports.make = module.exports;
"""


async def test_functions_of_what_a_config_makes_are_made_with_it_again(tmp_path: Path) -> None:
    tests = (
        "{path: 'file://tests.js:make', config: {words: ['say ', '100%_{{x}}']}}",
        "{path: 'file://tests.js', config: {words: [say]}}",
    )
    root = suite(tmp_path, config(*tests), tests_js=CONFIGURED)
    (root / "tui_eval.yaml").write_text("")
    found, _ = await run(root)
    assert [[verdict.passed for verdict in one.verdicts] for one in found] == [
        [True, False], [False, False], [False, False],
    ]  # fmt: skip
    assert not [one for attempt in found for one in attempt.verdicts if one.passed is None]


@pytest.mark.real
async def test_a_long_config_is_as_good_and_stands_in_no_verdict(tmp_path: Path) -> None:
    """Of more than 2,000 characters it was an error of the whole suite."""
    tests = f"{{path: 'file://tests.js:make', config: {{words: [say], more: {'x' * 9000}}}}}"
    root = suite(tmp_path, config(tests), tests_js=CONFIGURED)
    (root / "tui_eval.yaml").write_text("")
    ((one,), _) = await run(root)
    verdicts = one.verdicts
    assert [verdict.passed for verdict in verdicts] == [False, False]
    assert verdicts[1].reason == "Custom function returned false\nfile://tests.js:__fn_make_…_1"
    loaded = load([root])
    (read,) = reading.load_all([root], loaded, Trust(True))
    assert root / "tests.js" in verdict_files(read.cases[0], root, root), "its edits count for --changed"


def test_functions_of_what_too_long_a_config_makes_are_said(tmp_path: Path) -> None:
    words = ", ".join(["x"] * 500)
    many = f"{{path: 'file://tests.js:make', config: {{words: [{words}], more: {'x' * 9000}}}}}"
    root = suite(tmp_path, config(many), tests_js=CONFIGURED)
    (root / "tui_eval.yaml").write_text("")
    (loaded,) = reading.load_all([root], load([root]), Trust(True))
    (problem,) = [problem for problem in loaded.problems if problem.level == "error"]
    assert "1000 functions with a config of" in problem.message
    assert "cannot be kept; name them: file://FILE.js:NAME" in problem.message
