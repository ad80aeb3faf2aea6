"""What `c` compares: two runs, two agents of one, two attempts of a case; what it asks and what it says instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.alone import Alone, FakePlace, on_project
from tests.support.live_run import LiveRun
from tui_eval.model import Case, Turn
from tui_eval.store.run_folders import Store, new_run_id
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.tui.controllers.comparing import PAIRS, CompareController
from tui_eval.tui.front import RunsMeant
from tui_eval.tui.loaders.compare_loader import Half, Sides

REFUND = "refund is approved"


@pytest.fixture
async def alone(tmp_path: Path) -> Alone:
    return await on_project(tmp_path)


async def compare(alone: Alone) -> None:
    await alone.press(CompareController(alone.services()).handlers(), "compare")


def in_runs(alone: Alone, one: str = "", pair: tuple[str, str] | None = None) -> FakePlace:
    place = FakePlace("runs", runs=RunsMeant(pair, one))
    alone.window.stack = [alone.list, place]
    return place


def ended(alone: Alone, *outcomes, name: str = REFUND) -> str:
    run = LiveRun(alone.root, [name])
    run.all_done(list(outcomes))
    return run.info.id


def of_agents(alone: Alone, *columns: tuple[str, str | None]) -> str:
    """A run of one case, asked of several."""
    run_id = new_run_id()
    folder = Store(alone.root).create_folder(run_id)
    writer = RunWriter(folder, RunInfo(id=run_id, started_at=1.0))
    case = Case(f"s.yaml::{REFUND}", REFUND, "s.yaml", "start_to_agent", turns=[Turn("hi")])
    writer.plan([PlannedCase(case, agent, model, 1, 1) for agent, model in columns])
    writer.state("finished", 2.0)
    writer.close()
    return run_id


async def test_two_marked_runs_are_compared_and_unmarked(alone: Alone) -> None:
    before, after = ended(alone, "passed"), ended(alone, "failed")
    place = in_runs(alone, after, (before, after))
    await compare(alone)
    store = Store(alone.root)
    assert alone.window.screen.kind == "compare"
    assert alone.window.screen.arguments == (Half(store.folder_of(before)), Half(store.folder_of(after)))
    assert place.unmarked


async def test_the_run_under_the_cursor_is_compared_with_the_one_before_it(alone: Alone) -> None:
    before, after = ended(alone, "passed"), ended(alone, "failed")
    in_runs(alone, after)
    await compare(alone)
    assert [half.folder.name for half in alone.window.screen.arguments] == [before, after]


async def test_a_run_with_no_other_of_its_cases_says_how_two_are_compared(alone: Alone) -> None:
    place = in_runs(alone, ended(alone, "passed"))
    await compare(alone)
    assert alone.window.screen is place
    assert alone.said == "no run before it has a case of it: mark two runs with space, then c compares them"
    place.runs = RunsMeant(None, "")  # an empty list
    await compare(alone)
    assert alone.window.screen is place


async def test_of_a_run_with_several_agents_it_is_asked_which(alone: Alone) -> None:
    run_id = of_agents(alone, ("house", None), ("other\x1b[31m", None))
    in_runs(alone, run_id)
    await compare(alone)
    assert alone.question == "Compare which?" and alone.offered == ["1"]
    ((_, _, words),) = alone.dialog.arguments[1]
    assert words.startswith("house against other") and "\x1b" not in words
    await alone.answer("1")
    left, right = alone.window.screen.arguments
    assert (left.agent, right.agent) == ("house", "other\x1b[31m") and left.folder == right.folder


async def test_two_models_of_one_agent_are_named_alone_and_the_run_before_is_offered_too(
    alone: Alone,
) -> None:
    before = of_agents(alone, ("house", "large"))
    run_id = of_agents(alone, ("house", "large"), ("house", "small"))
    in_runs(alone, run_id)
    await compare(alone)
    words = [text for _, _, text in alone.dialog.arguments[1]]
    assert words[0] == "large against small"
    if "before" in alone.offered:
        await alone.answer("before")
        assert [half.folder.name for half in alone.window.screen.arguments] == [before, run_id]


async def test_who_leaves_the_question_compares_nothing_and_no_more_pairs_are_offered_than_keys(
    alone: Alone,
) -> None:
    place = in_runs(alone, of_agents(alone, *[(f"agent {n}", None) for n in range(6)]))
    await compare(alone)
    assert len([one for one in alone.offered if one.isdigit()]) == PAIRS
    await alone.answer(None)
    assert alone.window.screen is place


async def test_two_attempts_of_a_case_stand_beside_each_other(alone: Alone) -> None:
    passed, failed = ended(alone, "passed"), ended(alone, "failed")
    alone.show_run(Store(alone.root).folder_of(failed))
    alone.go_to(REFUND)
    await compare(alone)
    (sides,) = alone.window.screen.arguments
    assert alone.window.screen.kind == "sides" and isinstance(sides, Sides)
    assert [sides.choices[n].run_id for n in (sides.left, sides.right)] == [passed, failed]


async def test_a_case_with_one_attempt_or_none_says_so(alone: Alone) -> None:
    alone.go_to(REFUND)
    await compare(alone)
    assert alone.said == "nothing to compare with: this case has one attempt so far"
    alone.list.hidden = {row.key for row in alone.list.all_entries()}
    await compare(alone)
    assert alone.said == "put the cursor on a case first, or mark two runs in Runs (H)"
    assert alone.window.stack == [alone.list]


async def test_what_was_read_for_a_place_that_was_left_is_not_shown(alone: Alone) -> None:
    ended(alone, "passed")
    alone.show_run(Store(alone.root).folder_of(ended(alone, "failed")))
    alone.go_to(REFUND)
    CompareController(alone.services()).compare()
    alone.places.show("settings")
    await alone.settle()
    assert [screen.kind for screen in alone.window.stack] == ["suites", "settings"]
    ended(alone, "passed")
    in_runs(alone, ended(alone, "failed"))
    CompareController(alone.services()).compare()
    alone.places.show("settings")
    await alone.settle()
    assert [screen.kind for screen in alone.window.stack] == ["suites", "runs", "settings"]
