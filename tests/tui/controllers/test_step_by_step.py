"""What the key of a step begins, or goes back to."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.alone import on_project
from tests.support.live_run import LiveRun
from tui_eval.tui.controllers.step_by_step import waiting_step
from tui_eval.tui.state.app_state import CasePointer

GREETS = "greets by name"


async def test_a_step_is_one_attempt_by_itself_and_shown_for_its_case(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    pointer = alone.go_to(GREETS)
    await alone.press(alone.steps.handlers(), "case.step")
    assert alone.request.step and alone.request.attempts == 1 and alone.asked == [GREETS]
    assert alone.engine.live is not None
    assert alone.window.screen.kind == "step"
    assert alone.window.screen.arguments == (alone.engine.live.info.id, pointer, GREETS)
    alone.front_run.stop()


async def test_a_step_that_another_app_left_is_gone_back_to(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    pointer = alone.go_to(GREETS)
    suite, _, name = pointer.case_id.partition("::")
    left = LiveRun(alone.root, [name], suite=suite, options={"step": True}, agent=pointer.agent or "offline")
    left.start(0)
    for _ in range(100):  # until it is written
        if waiting_step(alone.root, pointer.case_id, pointer.agent) is not None:
            break
        await asyncio.sleep(0.05)
    assert waiting_step(alone.root, pointer.case_id, "another") is None
    await alone.press(alone.steps.handlers(), "case.step")
    assert alone.engine.live is None and alone.window.screen.kind == "step"
    assert alone.window.screen.arguments[0] == left.info.id
    alone.front_run.stop()


@pytest.mark.real
async def test_a_step_that_has_ended_makes_room_for_the_next_and_one_that_goes_on_does_not(
    tmp_path: Path,
) -> None:
    alone = await on_project(tmp_path)
    pointer = alone.go_to(GREETS)
    place = alone.look_at(pointer)
    place.kind, place.ended = "step", False  # type: ignore[attr-defined]
    await alone.press(alone.steps.handlers(), "case.step")
    assert [screen.kind for screen in alone.window.stack] == ["suites", "step", "step"]
    del alone.window.stack[2]
    place.ended = True  # type: ignore[attr-defined]
    await alone.press(alone.steps.handlers(), "case.step")
    assert [screen.kind for screen in alone.window.stack] == [
        "suites",
        "step",
    ] and place not in alone.window.stack
    alone.front_run.stop()


async def test_nothing_can_be_stepped_through_without_a_case_of_the_suites(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    place = alone.look_at(CasePointer("elsewhere.yaml::x"))
    await alone.press(alone.steps.handlers(), "case.step")
    assert alone.said == "put the cursor on a case of the suites first"
    place.looked_at = None
    await alone.press(alone.steps.handlers(), "case.step")
    assert alone.said == "put the cursor on a case first" and not alone.engine.requests
