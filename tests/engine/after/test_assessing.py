"""Failures grouped at the end of a run, with and without a judge."""

from __future__ import annotations

import pytest

from tests.engine.test_runs import go, suite_of


async def test_groups_without_a_judge(project) -> None:
    root = project(suite=suite_of("a", "b", "c"), script="default: {say: k}\n")
    _, reader = await go(root, assess=True)
    assessment = reader.assessment()
    assert [(mode.what, mode.count, mode.name) for mode in assessment.modes] == [('lacks "o"', 3, None)]


@pytest.mark.parametrize("thought", ["", "<think>Which letter?</think>\\n"])
async def test_a_judge_names_the_groups(project, thought: str) -> None:
    config = """
    agents: {helper: {type: scripted, script: agent.script.yaml}}
    judge: {type: scripted, script: judge.script.yaml}
    """
    judge = f'default: {{say: "{thought}The answer lacks the letter."}}\n'
    files = {"judge.script.yaml": judge}
    root = project(suite=suite_of("a", "b"), script="default: {say: k}\n", config=config, **files)
    _, reader = await go(root, assess=True)
    assert [mode.name for mode in reader.assessment().modes] == ["The answer lacks the letter."]


async def test_a_judge_that_fails_leaves_the_groups(project) -> None:
    config = """
    agents: {helper: {type: scripted, script: agent.script.yaml}}
    judge: {type: scripted, script: judge.script.yaml}
    """
    files = {"judge.script.yaml": "default: {steps: [{error: 'out of order'}]}\n"}
    root = project(suite=suite_of("a", "b"), script="default: {say: k}\n", config=config, **files)
    _, reader = await go(root, assess=True)
    assessment = reader.assessment()
    assert [mode.count for mode in assessment.modes] == [2]
    assert "out of order" in assessment.note
