"""What a run would be by what was chosen, before any engine is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.alone import on_project
from tui_eval.tui.state.run_requests import RunChoice


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (RunChoice(attempts="two"), "attempts: a whole number, not 'two'"),
        (RunChoice(attempts="0"), "attempts: at least 1"),
        (RunChoice(threshold="120%"), "must pass: a share from 0 to 1, such as 0.8"),
        (RunChoice(filter="no such words"), "no case matches"),
        (RunChoice(agents="nobody"), "no agent nobody here"),
        (RunChoice(filter="cost:>much"), "cost: wants a number"),
    ],
)
async def test_a_choice_that_cannot_be_started_says_why(
    tmp_path: Path, choice: RunChoice, words: str
) -> None:
    alone = await on_project(tmp_path)
    said, possible = alone.runs.plans.estimate(alone.list.shown_entries(), choice)
    assert words in said and not possible


@pytest.mark.parametrize("agents", ["offline", "echo", "openai:gpt-4.1", "my_agent.py:answer", ""])
async def test_agents_that_need_not_be_configured_can_be_started(tmp_path: Path, agents: str) -> None:
    alone = await on_project(tmp_path)
    words, possible = alone.runs.plans.estimate(alone.list.shown_entries(), RunChoice(agents=agents))
    assert possible and "3 cases" in words
