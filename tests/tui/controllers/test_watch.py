"""What is watched, which files, and what a save does: judge again, run again, or nothing; said where it is nothing."""

from __future__ import annotations

import shutil
from dataclasses import replace as pointer_replace
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from tests.support.alone import Alone, on_project
from tests.support.live_run import LiveRun
from tui_eval.model import Problem
from tui_eval.tui.controllers.recorded import RecordedController
from tui_eval.tui.controllers.suites import SuiteController
from tui_eval.tui.controllers.watch import WatchController
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.case_tree import TreeLine
from tui_eval.tui.state.lists.suite_changes import EditedSuite

REFUND, GREETS, CALMS = "refund is approved", "greets by name", "calms an angry customer"
SUITE = "suites/support.yaml"
WRONG = Problem(SUITE, 3, "", "is no YAML")
CONFIG = "agents:\n  offline: {type: python, function: 'agent.py:answer'}\n"


class Watching:
    """The controller, and saves that are told to it by hand: when a thread sees one is `watching`'s."""

    def __init__(self, alone: Alone) -> None:
        self.alone = alone
        recorded = RecordedController(alone.core, alone.places, alone.runs)
        self.watch = WatchController(
            alone.core,
            alone.places,
            cast(SuiteController, alone.suites),
            alone.runs,
            recorded,
            alone.front_run,
        )

    async def press(self) -> None:
        await self.alone.press(self.watch.handlers(), "watch")

    def names(self) -> list[str]:
        return sorted(Path(file).name for file in self.watch.files())

    async def save(self, *names: str, change: EditedSuite | None = None) -> None:
        """These files are saved, and what came of reading them is told."""
        alone = self.alone
        before = len(alone.suites.reloads)
        self.watch.saved([str(alone.root / name) for name in names])
        await alone.settle()
        if len(alone.suites.reloads) > before and alone.suites.belongs:
            alone.suites.then(change or EditedSuite())
            await alone.settle()

    def edit(self, *names: str) -> None:
        """These cases are defined otherwise when their file is read again."""
        for item in self.alone.state.rows:
            if item.name in names and item.case is not None:
                item.case = replace(item.case, content_hash=f"{item.case.content_hash} edited")

    def end(self) -> None:
        if self.watch.watcher is not None:
            self.watch.watcher.stop()
        self.alone.front_run.stop()


@pytest.fixture
async def watching(tmp_path: Path):
    (tmp_path / "agent.py").write_text("from words import said\n\n\ndef answer(message):\n    return said\n")
    (tmp_path / "words.py").write_text("said = 'hi'\n")
    alone = await on_project(tmp_path, "failed", "passed")
    (tmp_path / "tui_eval.yaml").write_text(CONFIG)
    alone.state.trusted = True
    await alone.read()
    for item in alone.state.rows:  # they ask what the recorded run asked
        assert item.case is not None
        item.case = replace(item.case, turns=[replace(item.case.turns[0], text="hello")])
    one = Watching(alone)
    yield one
    one.end()


def never_ran(alone: Alone) -> None:
    assert alone.state.run is not None
    shutil.rmtree(alone.state.run.folder)
    alone.state.run = alone.state.group = None
    for item in alone.state.rows:
        item.history = []


def folder_line() -> TreeLine:
    return TreeLine("folder", "suites/", 0, "suites/")


# -- one case


async def test_one_case_is_judged_again_then_run_again_then_watched_no_more(watching: Watching) -> None:
    alone = watching.alone
    alone.go_to(REFUND)
    await watching.press()
    assert watching.watch.words == f"watch: judge {REFUND}"
    assert alone.said == f"watching 1 file: a save judges again {REFUND}" and watching.names() == [
        "support.yaml"
    ]
    assert alone.list.footer.drawn == 1
    await watching.press()
    assert watching.watch.words == f"watch: rerun {REFUND}"
    assert watching.names() == ["agent.py", "support.yaml", "tui_eval.yaml", "words.py"]
    assert alone.said == f"watching 4 files: a save reruns {REFUND}"
    await watching.press()
    assert watching.watch.words == "" and alone.said == "watching no more" and watching.names() == []
    assert watching.watch.watcher is None


async def test_the_case_that_is_watched_is_meant_wherever_the_cursor_is(watching: Watching) -> None:
    watching.alone.go_to(REFUND)
    await watching.press()
    watching.alone.go_to(GREETS)
    await watching.press()
    assert watching.watch.words == f"watch: rerun {REFUND}"


async def test_there_must_be_a_case_of_the_suites(watching: Watching) -> None:
    watching.alone.look_at(CasePointer("elsewhere.yaml::x"))
    await watching.press()
    assert watching.alone.said == "put the cursor on a case of the suites, a file or a folder first"
    assert watching.watch.words == "" and watching.watch.watcher is None


async def test_a_saved_suite_has_its_recorded_answer_judged_again(watching: Watching) -> None:
    alone = watching.alone
    alone.go_to(REFUND)
    await watching.press()
    watching.edit(REFUND)
    await watching.save(SUITE)
    assert alone.suites.reloads == [["support.yaml"]]
    assert alone.asked == [REFUND] and alone.request.continue_from is not None
    assert alone.request.continue_from.turn is None  # nothing is sent to the agent


async def test_a_case_that_asks_something_else_is_asked_also_where_saves_judge(watching: Watching) -> None:
    alone = watching.alone
    alone.past(REFUND, "passed", run_id=alone.state.run.info.id if alone.state.run else "")
    alone.go_to(REFUND)
    await watching.press()
    watching.edit(REFUND)
    item = next(one for one in alone.state.rows if one.name == REFUND)
    assert item.case is not None
    item.case = replace(item.case, turns=[replace(item.case.turns[0], text="something else")])
    await watching.save(SUITE)
    assert alone.asked == [REFUND] and alone.request.continue_from is None and not alone.engine.rescored


@pytest.mark.parametrize("presses", [1, 2])
async def test_a_save_that_leaves_the_case_as_it_was_does_nothing(watching: Watching, presses: int) -> None:
    alone = watching.alone
    alone.past(REFUND, "failed")
    alone.go_to(REFUND)
    for _ in range(presses):
        await watching.press()
    watching.edit(GREETS)
    await watching.save(SUITE)
    assert alone.suites.reloads == [["support.yaml"]] and not alone.engine.requests
    assert alone.said == f"saved: {REFUND} is as it was"


async def test_a_saved_agent_has_the_case_run_again_in_its_column(watching: Watching) -> None:
    alone = watching.alone
    alone.go_to(REFUND)
    await watching.press()
    await watching.press()
    alone.suites.belongs = False  # the agent's file is no suite's
    await watching.save("agent.py")
    assert alone.asked == [REFUND] and alone.request.continue_from is None and alone.request.attempts == 1
    assert alone.request.cells is not None and [one.agent for one in alone.request.cells] == ["offline"]


async def test_a_saved_configuration_is_read_whole(watching: Watching) -> None:
    alone = watching.alone
    alone.go_to(REFUND)
    await watching.press()
    await watching.press()
    await watching.save("tui_eval.yaml")
    assert alone.suites.loads == 1 and alone.suites.reloads == [] and alone.asked == [REFUND]


async def test_a_case_of_another_name_is_watched_under_it(watching: Watching) -> None:
    alone = watching.alone
    pointer = alone.go_to(REFUND)
    await watching.press()
    await watching.press()
    await watching.save(SUITE, change=EditedSuite(renamed={pointer.case_id: f"{SUITE}::{GREETS}"}))
    assert alone.asked == [GREETS] and watching.watch.words == f"watch: rerun {GREETS}"


async def test_a_case_that_never_ran_under_its_new_name_is_said_not_to_have(watching: Watching) -> None:
    """`there is no recorded answer to judge` stood over what it is called now."""
    alone = watching.alone
    pointer = alone.go_to(REFUND)
    await watching.press()
    new = next(item.case_id for item in alone.state.rows if item.name == CALMS)
    await watching.save(SUITE, change=EditedSuite(renamed={pointer.case_id: new}))
    assert alone.said == "saved: calms an angry cust… has not been run: r runs it"
    assert not alone.engine.requests


async def test_a_case_that_is_no_longer_in_its_file_is_neither_judged_nor_run(watching: Watching) -> None:
    alone = watching.alone
    pointer = alone.go_to(REFUND)
    await watching.press()
    alone.state.gone[pointer.case_id] = alone.state.by_id.pop(pointer.case_id)
    await watching.save(SUITE)
    assert alone.said == f"{REFUND} is not in its file: nothing to watch it for"
    assert not alone.engine.requests and watching.names() == ["support.yaml"]  # it may come back


async def test_a_save_while_the_case_runs_waits_for_its_end(watching: Watching) -> None:
    alone = watching.alone
    alone.go_to(REFUND)
    await watching.press()
    run = LiveRun(alone.root, [REFUND])
    run.start(0)
    run.writer.flush()
    alone.show_run(run.folder)
    await watching.save(SUITE)
    assert not alone.suites.reloads and not alone.engine.requests
    (again,) = [timer for timer in alone.window.timers if timer.seconds == 0.5]
    run.done(0, "failed", "no")
    run.finish()
    alone.show_run(run.folder)
    again.ring()
    await alone.settle()
    assert alone.suites.reloads == [["support.yaml"]]


async def test_a_save_right_after_a_run_judges_its_answer_wherever_the_cursor_was(watching: Watching) -> None:
    """That a run has ended is seen before its answers are read into the past of cases; and watching began on the
    answer before."""
    alone = watching.alone
    before = alone.state.run
    assert before is not None and alone.go_to(REFUND).run_id in (None, before.info.id)
    await watching.press()
    assert watching.watch.watched is not None
    watching.watch.watched = pointer_replace(watching.watch.watched, run_id=before.info.id)
    run = LiveRun(alone.root, [REFUND])
    run.all_done(["failed"])
    watching.edit(REFUND)
    await watching.save(SUITE)
    given = alone.request.continue_from
    assert given is not None and given.run == str(run.folder) and given.turn is None


async def test_a_save_right_after_a_run_below_the_line_judges_its_answers(watching: Watching) -> None:
    alone = watching.alone
    alone.list.line = folder_line()
    await watching.press()
    run = LiveRun(alone.root, [REFUND, GREETS])
    run.start(0)
    run.done(0, "failed", "no")
    run.writer.flush()
    alone.show_run(run.folder)
    watching.edit(REFUND)
    await watching.save(SUITE)  # the other is asked yet: nothing of this run can be judged
    assert not alone.suites.reloads
    assert alone.said == "saved: judged or run when what is watched has been run"
    run.start(1)
    run.done(1)
    run.finish()
    alone.show_run(run.folder)
    alone.window.timers[0].ring()
    await alone.settle()
    alone.suites.then(EditedSuite())
    await alone.settle()
    assert [folder for folder, _ in alone.engine.rescored] == [run.folder]


async def test_a_save_that_comes_after_watching_has_ended_does_nothing(watching: Watching) -> None:
    alone = watching.alone
    alone.go_to(REFUND)
    await watching.press()
    watching.watch.saved([str(alone.root / SUITE)])
    await watching.press()
    await watching.press()  # off, before the save is told
    await alone.settle()
    asked = len(alone.engine.requests)
    if alone.suites.reloads:
        alone.suites.then(EditedSuite())
        await alone.settle()
    assert len(alone.engine.requests) == asked == 0


# -- all below a line


async def test_below_a_line_all_is_watched_until_the_next_press(watching: Watching) -> None:
    alone = watching.alone
    alone.list.line = folder_line()
    await watching.press()
    assert watching.watch.words == "watch: suites/"
    assert alone.said == (
        "watching 4 files of suites/: a saved suite is judged again, a saved agent runs what did not pass"
    )
    assert watching.names() == ["agent.py", "support.yaml", "tui_eval.yaml", "words.py"]
    await watching.press()
    assert watching.watch.words == "" and alone.said == "watching no more"


async def test_a_save_while_a_case_below_the_line_runs_waits_for_its_end(watching: Watching) -> None:
    alone = watching.alone
    alone.list.line = folder_line()
    await watching.press()
    run = LiveRun(alone.root, [REFUND])
    run.start(0)
    run.writer.flush()
    alone.show_run(run.folder)
    await watching.save(SUITE)
    await watching.save("words.py")  # what is saved meanwhile is one save
    assert not alone.suites.reloads and [timer.seconds for timer in alone.window.timers] == [0.5]
    run.done(0)
    run.finish()
    alone.show_run(run.folder)
    alone.window.timers[0].ring()
    await alone.settle()
    assert alone.suites.reloads == [["support.yaml", "words.py"]]


async def test_a_save_right_after_the_key_is_seen_although_watching_has_not_begun(
    watching: Watching, monkeypatch
) -> None:
    monkeypatch.setattr("tui_eval.tui.controllers.watch.INTERVAL", 0.01)
    alone = watching.alone
    alone.go_to(REFUND)
    watching.watch.watch()
    (alone.root / SUITE).write_text((alone.root / SUITE).read_text() + "# more\n")
    await alone.until(lambda: alone.suites.reloads == [["support.yaml"]])


async def test_a_saved_agent_runs_what_did_not_pass_below_the_line(watching: Watching) -> None:
    alone = watching.alone
    alone.past(REFUND, "failed")
    alone.past(GREETS, "passed")
    alone.list.line = folder_line()
    await watching.press()
    alone.suites.belongs = False
    await watching.save("words.py")
    assert alone.asked == [REFUND] and alone.places.place is alone.list  # the list stays
    assert not alone.engine.rescored
    assert watching.watch.words == "watch: suites/ (1 stale)"  # it passed with the agent as it was
    next(item for item in alone.state.rows if item.name == GREETS).history = []
    alone.past(GREETS, "passed", run_id="20261126-000000-later")
    assert watching.watch.words == "watch: suites/"


async def test_where_all_passed_a_saved_agent_is_said_to_have_been_another(watching: Watching) -> None:
    alone = watching.alone
    never_ran(alone)
    for item in alone.state.rows:
        alone.past(item.name, "passed")
    alone.list.line = folder_line()
    await watching.press()
    alone.suites.belongs = False
    await watching.save("words.py")
    assert alone.said == "saved: 3 passed with the agent as it was, r on their line runs them again"
    assert watching.watch.words == "watch: suites/ (3 stale)"
    assert not alone.engine.requests and not alone.engine.rescored
    await watching.press()
    await watching.press()
    assert watching.watch.words == "watch: suites/"


async def test_a_saved_suite_judges_its_recorded_answers_below_the_line_as_one_run(
    watching: Watching,
) -> None:
    alone = watching.alone
    run = alone.state.run
    assert run is not None
    alone.past(REFUND, "failed", run_id=run.info.id)
    alone.past(GREETS, "passed", run_id=run.info.id)
    alone.past(CALMS, "passed", run_id=run.info.id)
    alone.list.line = folder_line()
    await watching.press()
    watching.edit(REFUND, GREETS)
    await watching.save(SUITE)
    ((folder, request),) = alone.engine.rescored
    assert folder == run.folder and not alone.engine.requests
    assert sorted(request.case_ids or ()) == sorted([f"{SUITE}::{REFUND}", f"{SUITE}::{GREETS}"])
    await watching.save(SUITE)  # as it is
    assert len(alone.engine.rescored) == 1


async def test_a_save_that_means_nothing_says_so(watching: Watching) -> None:
    alone = watching.alone
    never_ran(alone)
    alone.list.line = folder_line()
    await watching.press()
    alone.suites.belongs = False
    await watching.save("agent.py")
    assert alone.said == "saved: nothing that is watched has to be judged or run again"
    assert not alone.engine.requests and not alone.engine.rescored


async def test_a_suite_that_cannot_be_read_is_not_acted_on(watching: Watching) -> None:
    alone = watching.alone
    alone.past(REFUND, "failed")
    alone.list.line = folder_line()
    await watching.press()
    await watching.save(SUITE, change=EditedSuite(problems=[WRONG]))
    assert not alone.engine.requests and not alone.engine.rescored
    assert watching.watch.words == "watch: suites/"  # it is watched still


async def test_files_that_are_watched_are_read_by_no_one_else_meanwhile(watching: Watching) -> None:
    alone = watching.alone
    alone.go_to(REFUND)
    assert watching.watch.followed() == []
    await watching.press()
    assert [Path(file).name for file in watching.watch.followed()] == ["support.yaml"]
