"""Which request goes to the engine for each key, what is asked before it, and what becomes of each answer."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from tests.support.alone import Alone, FakeList, on_project
from tests.support.live_run import SUITE, FakeEngine, LiveRun, project
from tests.support.waiting import until
from tui_eval.engine.request import ReachedLimit, RequestCell, RunRequest
from tui_eval.engine.service.client import EngineError, RunStarted
from tui_eval.model import Outcome
from tui_eval.store.run_folders import StartLock
from tui_eval.store.schema import PLACE_LOST
from tui_eval.tui.controllers.quit import QuitController
from tui_eval.tui.controllers.runs import MOST_ROWS
from tui_eval.tui.loaders.follower import RunNews
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.case_tree import TreeLine
from tui_eval.tui.state.run_requests import RunChoice

REFUND, GREETS, CALMS = "refund is approved", "greets by name", "calms an angry customer"
AGENTS = "agents:\n  offline: {type: echo}\n  other: {type: echo}\n"


def in_front(alone: Alone, run: LiveRun) -> None:
    """Have a run in front as far as it has come."""
    run.writer.flush()
    alone.show_run(run.folder)


def at_work(alone: Alone, *begun: int) -> LiveRun:
    """A run of two cases in front, that goes on; `begun` of them have been."""
    run = LiveRun(alone.root, [REFUND, GREETS])
    for number in begun:
        run.start(number)
    in_front(alone, run)
    return run


async def ended(alone: Alone, *outcomes: Outcome) -> None:
    """The run that was asked for last is done, and that has been seen."""
    run = alone.engine.live
    assert run is not None
    run.all_done([*outcomes])
    await alone.until(lambda: not alone.runs.starting)  # only then it has been seen at all
    await alone.until(lambda: (seen := alone.state.find_run(run.info.id)) is None or not seen.active)


# -- a: all that is shown


async def test_all_that_is_shown_is_run_and_the_run_shown(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    alone.list.hidden = {row.key for row in alone.list.all_entries() if row.name == CALMS}
    await alone.press(alone.runs.handlers(), "run.all")
    assert alone.asked == [REFUND, GREETS]
    assert alone.request.paths == [str(tmp_path / "suites/support.yaml")]
    assert alone.places.place is not None and alone.places.place.kind == "run"
    assert alone.engine.live is not None and alone.engine.live.info.id in alone.front_run.followers
    alone.front_run.stop()


@pytest.mark.parametrize("hooked", [True, False])
async def test_all_is_all_also_where_hooks_made_cases_of_the_run_in_front(
    tmp_path: Path, hooked: bool
) -> None:
    """Run as a part of that run they kept what they had come to before, the files that they rest on edited or not."""
    alone = await on_project(tmp_path)
    run = LiveRun(alone.root, [REFUND, GREETS, CALMS, "made by a hook"])
    run.all_done(["passed"] * 4)
    in_front(alone, run)
    if hooked:
        for item in alone.state.rows:
            item.content = ""
    await alone.press(alone.runs.handlers(), "run.all")
    assert alone.asked == [REFUND, GREETS, CALMS]
    assert alone.request.linked_to == (None if hooked else run.info.id)
    alone.front_run.stop()


async def test_a_second_press_before_the_first_is_answered_starts_no_second_run(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    handlers = alone.runs.handlers()
    handlers["run.all"]()
    await alone.press(handlers, "run.all")
    assert len(alone.engine.requests) == 1
    alone.front_run.stop()


@pytest.mark.real
async def test_while_all_of_it_runs_it_is_run_a_second_time_only_by_a_person_who_was_asked(
    tmp_path: Path,
) -> None:
    alone = await on_project(tmp_path)
    run = LiveRun(alone.root, [REFUND, GREETS, CALMS])
    run.start(0)
    in_front(alone, run)
    for answer in ("no", None):
        await alone.press(alone.runs.handlers(), "run.all")
        assert alone.question == "All 3 are still at work." and alone.offered == ["again", "no"]
        assert alone.dialog.arguments[2] == ["now: ● 0/3", "again: 3 cases, 3 attempts, costs nothing"]
        await alone.answer(answer)
        assert not alone.engine.requests
    await alone.press(alone.runs.handlers(), "run.all")
    await alone.answer("again")
    assert alone.asked == [REFUND, GREETS, CALMS]
    alone.front_run.stop()


async def test_of_cases_that_are_partly_at_work_the_others_can_be_run_alone(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = at_work(alone, 0)
    run.done(0)
    in_front(alone, run)
    await alone.press(alone.runs.handlers(), "run.all")
    assert alone.question == "1 of these 3 cases is still at work."
    assert alone.offered == ["others", "again", "no"]
    assert [words for _, _, words in alone.dialog.arguments[1]][:2] == [
        "run the 2 others",
        "run all 3, 1 of them a second time",
    ]
    await alone.answer("others")
    assert alone.asked == [REFUND, CALMS]
    alone.front_run.stop()


@pytest.mark.real
async def test_of_the_others_none_is_run_that_has_been_begun_while_the_question_stood(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = at_work(alone, 0)
    run.done(0)
    in_front(alone, run)
    await alone.press(alone.runs.handlers(), "run.all")
    in_front(alone, LiveRun(alone.root, [GREETS, CALMS]))  # by another key, or another app
    await alone.answer("others")
    assert alone.asked == [REFUND]
    alone.front_run.stop()


async def test_the_question_is_renewed_while_it_stands(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = at_work(alone, 0, 1)
    await alone.press(alone.runs.handlers(), "run.all")
    assert alone.question == "2 of these 3 cases are still at work."
    renewed = alone.dialog.arguments[6]
    run.done(0)
    in_front(alone, run)
    asked = renewed()
    assert asked.question == "1 of these 3 cases is still at work."
    assert [value for _, value, _ in asked.answers] == ["others", "again", "no"]
    run.done(1)
    run.finish()
    in_front(alone, run)
    asked = renewed()
    assert asked.question == "None of these 3 cases is at work any more."
    assert [words for _, _, words in asked.answers] == ["run them again", "no"]
    assert [words for words in asked.details if words.startswith("now:")] == []
    await alone.answer(None)
    alone.front_run.stop()


async def test_questions_about_what_goes_on_say_how_it_stands_while_they_stand(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = at_work(alone, 0, 1)

    def question() -> tuple[str, list[str]]:
        asked = alone.dialog.arguments[6]()
        return asked.question, [value for _, value, _ in asked.answers]

    await alone.press(alone.runs.handlers(), "run.cancel")
    assert alone.question == "Cancel the run? 2 attempts have not ended."
    run.done(0)
    in_front(alone, run)
    assert question() == ("Cancel the run? 1 attempt has not ended.", ["yes", "no"])
    cancelling = alone.dialog
    await alone.answer(None)
    quitting = QuitController(alone.window, alone.core, alone.places, alone.runs, lambda: None)
    await alone.press(quitting.handlers(), "quit")
    assert question() == ("A run goes on.", ["detach", "stop", "stay"])
    run.done(1)
    run.finish()
    in_front(alone, run)
    assert question() == ("The run has ended.", ["detach", "stay"])
    assert cancelling.arguments[6]().question == "The run has ended: there is nothing to cancel."
    await alone.answer(None)
    alone.front_run.stop()


async def test_one_case_that_is_at_work_is_asked_about_by_its_name(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    at_work(alone, 0)
    alone.go_to(GREETS)
    await alone.press(alone.runs.handlers(), "case.rerun")
    assert alone.question == f"{GREETS}: it is still at work." and not alone.engine.requests
    await alone.answer(None)
    alone.go_to(CALMS)  # which is none of the run's
    await alone.press(alone.runs.handlers(), "case.rerun")
    assert alone.asked == [CALMS]
    alone.front_run.stop()


async def test_a_case_at_work_is_run_in_another_column_without_a_question(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    at_work(alone, 0)
    await alone.press(alone.runs.handlers(), "run.dialog")
    await alone.answer(RunChoice(agents="other", filter="refund"))
    assert alone.asked == [REFUND] and alone.request.agents == ["other"]
    alone.front_run.stop()


async def test_the_run_dialog_asks_too_where_its_cases_are_at_work(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    at_work(alone, 0)
    await alone.press(alone.runs.handlers(), "run.dialog")
    await alone.answer(RunChoice(filter="calms"))
    assert alone.asked == [CALMS]  # none of those at work
    await ended(alone, "passed")
    alone.window.stack = [alone.list]
    await alone.press(alone.runs.handlers(), "run.dialog")
    await alone.answer(RunChoice())
    assert alone.question == "2 of these 3 cases are still at work."
    await alone.answer("others")
    assert alone.asked == [CALMS] and len(alone.engine.requests) == 2
    alone.front_run.stop()


@pytest.mark.parametrize(("answered", "run_now"), [("others", [CALMS]), ("again", [REFUND, GREETS, CALMS])])
async def test_what_another_app_began_a_moment_ago_is_asked_about_before_it_is_run_twice(
    tmp_path: Path, answered: str, run_now: list[str]
) -> None:
    """Its run has a folder, and this app has not seen it yet."""
    alone = await on_project(tmp_path)
    run = LiveRun(alone.root, [REFUND, GREETS])
    run.writer.flush()
    assert not alone.state.active
    for answer in ("no", answered):
        await alone.press(alone.runs.handlers(), "run.all")
        assert alone.question == "2 of these 3 cases are still at work." and not alone.engine.requests
        assert alone.dialog.arguments[2] == ["begun by another app or command"]
        await alone.answer(answer)
    assert alone.asked == run_now
    alone.front_run.stop()


async def test_what_a_cancelled_run_left_is_at_work_no_more(tmp_path: Path) -> None:
    """Its engine has not let go of it yet: it was called begun by another app."""
    alone = await on_project(tmp_path)
    run = LiveRun(alone.root, [REFUND, GREETS])
    run.writer.state("cancelled", time.time())
    run.writer.flush()
    await alone.press(alone.runs.handlers(), "run.all")
    assert alone.asked == [REFUND, GREETS, CALMS]
    alone.front_run.stop()


async def test_while_another_app_begins_a_run_its_end_is_waited_for(tmp_path: Path) -> None:
    """Else neither sees the folder of the other."""
    alone = await on_project(tmp_path)
    theirs = StartLock(alone.root)
    theirs.take()
    alone.runs.handlers()["run.all"]()
    await until(lambda: alone.said == "starting the run…")
    assert not alone.engine.requests
    run = LiveRun(alone.root, [REFUND, GREETS, CALMS])
    run.writer.flush()
    theirs.release()
    await alone.settle()
    assert alone.question == "All 3 are still at work." and not alone.engine.requests
    alone.front_run.stop()


async def test_a_second_press_of_any_key_before_the_engine_answers_starts_nothing(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    handlers = alone.runs.handlers()
    alone.go_to(REFUND)
    handlers["case.rerun"]()
    handlers["case.rerun"]()
    assert alone.said == "a run of it is being started"
    alone.go_to(GREETS)
    handlers["case.rerun"]()  # another case
    await alone.settle()
    assert [request.case_ids for request in alone.engine.requests] == [
        [f"suites/support.yaml::{name}"] for name in (REFUND, GREETS)
    ]
    alone.front_run.stop()


async def test_runs_begin_in_the_order_of_their_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread of the first may be slow to get its turn."""
    alone = await on_project(tmp_path)
    take, begun, second = StartLock.take, [], threading.Event()

    def first_is_slow(lock: StartLock) -> None:
        begun.append(lock)
        second.wait(0.2) if len(begun) == 1 else second.set()
        take(lock)
        second.set()

    monkeypatch.setattr(StartLock, "take", first_is_slow)
    for name in (REFUND, GREETS):
        alone.go_to(name)
        alone.runs.handlers()["case.rerun"]()
    await alone.settle()
    assert [request.case_ids for request in alone.engine.requests] == [
        [f"suites/support.yaml::{name}"] for name in (REFUND, GREETS)
    ]
    alone.front_run.stop()


async def test_a_run_whose_record_cannot_be_read_keeps_no_key_waiting(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)

    class Unreadable:
        def start(self) -> None: ...
        def stop(self) -> None: ...
        def take(self) -> RunNews:
            assert alone.engine.live is not None
            return RunNews(alone.engine.live.info.id, error="damaged")

    alone.front_run.take_news = lambda: None  # type: ignore[method-assign]
    await alone.press(alone.runs.handlers(), "run.all")
    assert alone.runs.starting and alone.engine.live is not None
    alone.front_run.stop()
    alone.front_run.followers[alone.engine.live.info.id] = cast(Any, Unreadable())
    del alone.front_run.take_news  # type: ignore[method-assign]
    alone.front_run.take_news()
    assert alone.said == "damaged" and not alone.runs.starting and not alone.runs.opening


async def test_on_an_empty_live_run_all_cases_of_the_suites_are_run(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    alone.places.show("run")
    await alone.press(alone.runs.handlers(), "run.all")
    assert alone.asked == [REFUND, GREETS, CALMS]
    alone.front_run.stop()


async def test_nothing_to_run_is_said_and_so_is_that_suites_are_still_read(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    alone.list.hidden = {row.key for row in alone.list.all_entries()}
    await alone.press(alone.runs.handlers(), "run.all")
    assert alone.said == "no case to run here" and not alone.engine.requests
    alone.state.rows, alone.state.loading = [], True
    await alone.press(alone.runs.handlers(), "run.all")
    assert alone.said == "still reading the suites" and not alone.engine.requests


async def test_problems_of_the_files_are_logged_and_counted(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    alone.engine.problems = ["a.yaml:1: name: missing"]
    await alone.press(alone.runs.handlers(), "run.all")
    assert ("error", "a.yaml:1: name: missing") in [line[1:] for line in alone.notices.lines]
    assert alone.said == "1 problem in the files: see the log (l)"
    alone.front_run.stop()


async def test_what_the_person_agreed_to_goes_with_the_request(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    alone.state.agreed = frozenset({"run my_agent.py"})
    await alone.press(alone.runs.handlers(), "case.rerun")
    assert alone.request.agreed == ["run my_agent.py"] and not alone.request.trust
    alone.state.trusted = True
    await ended(alone, "passed")
    await alone.press(alone.runs.handlers(), "case.rerun")
    assert alone.request.trust
    alone.front_run.stop()


# -- r: the case, or the marked ones


async def test_the_case_under_the_cursor_is_run_and_the_list_stays_in_front(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    alone.go_to(GREETS)
    await alone.press(alone.runs.handlers(), "case.rerun")
    assert alone.asked == [GREETS] and alone.request.attempts is None
    assert alone.places.place is alone.list and alone.said == "running, 1 attempt"
    alone.front_run.stop()


async def test_marked_cases_are_run_and_unmarked(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    alone.list.mark({row.key for row in alone.list.all_entries() if row.name != REFUND})
    await alone.press(alone.runs.handlers(), "case.rerun")
    assert alone.asked == [GREETS, CALMS] and alone.list.marked() == set()
    assert alone.places.place is not alone.list  # several: the run is shown
    alone.front_run.stop()


async def test_a_case_that_is_looked_at_is_run_also_where_the_filter_hides_it(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    pointer = alone.go_to(CALMS)
    alone.list.hidden = {alone.list.cursor}
    alone.list.marks = {row.key for row in alone.list.all_entries()}
    alone.look_at(pointer)
    await alone.press(alone.runs.handlers(), "case.rerun")
    assert alone.asked == [CALMS] and alone.list.marks  # not the marked ones, which are out of sight
    alone.front_run.stop()


async def test_a_case_that_the_list_of_the_run_has_by_another_name_is_run(tmp_path: Path) -> None:
    """Renamed in the editor, it was `not run yet: r runs it`, and then `no case to run here`."""
    alone = await on_project(tmp_path)
    run = LiveRun(alone.root, [REFUND])
    run.start(0)
    run.done(0, "failed")
    run.finish()
    alone.show_run(run.folder)
    alone.list.kind = "run"
    (renamed,) = [item.case_id for item in alone.state.rows if item.name == GREETS]
    alone.look_at(CasePointer(renamed))
    await alone.press(alone.runs.handlers(), "case.rerun")
    assert alone.asked == [GREETS]
    alone.front_run.stop()


async def test_a_case_that_was_taken_out_of_its_file_is_not_run(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    pointer = alone.go_to(REFUND)
    alone.look_at(pointer)
    alone.state.gone[pointer.case_id] = alone.state.by_id.pop(pointer.case_id)
    await alone.press(alone.runs.handlers(), "case.rerun")
    assert (
        alone.said == "this case is no longer in the suites: e opens its file" and not alone.engine.requests
    )


async def test_a_case_of_the_run_in_front_is_run_as_a_part_of_it_in_its_column(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed", "passed")
    run = alone.state.run
    assert run is not None
    alone.window.stack.append(FakeList(alone.state, "run"))
    alone.go_to(REFUND)
    await alone.press(alone.runs.handlers(), "case.rerun")
    assert alone.request.linked_to == run.info.id
    assert alone.request.cells == [RequestCell(run.cases[1].case_id, "offline", None, True)]
    alone.front_run.stop()


def lost(alone: Alone, *outcomes: Outcome) -> LiveRun:
    """A run that ended since its cluster was lost."""
    run = LiveRun(alone.root, [REFUND, GREETS, CALMS][: len(outcomes)], options={"on": CLUSTER})
    for number, outcome in enumerate(outcomes):
        run.start(number)
        run.done(number, outcome)
    run.info.provenance[PLACE_LOST] = 1
    run.writer.state("interrupted", time.time())
    run.writer.flush()
    return run


@pytest.mark.parametrize("key", ["case.rerun", "case.step"])
@pytest.mark.parametrize("later", [True, False])
async def test_what_was_asked_in_a_later_run_than_the_one_in_front_is_no_part_of_that(
    tmp_path: Path, later: bool, key: str
) -> None:
    """Another window had run the case since: the rerun, or the step, stood in Runs under the older run."""
    alone = await on_project(tmp_path, "failed", "passed")
    run = alone.state.run
    assert run is not None
    alone.past(REFUND, "failed", run_id=f"{run.info.id}z" if later else "2000")
    item = next(item for item in alone.state.rows if item.name == REFUND)
    item.history = sorted(item.history, key=lambda one: one.run_id, reverse=True)  # the newest first
    alone.go_to(REFUND)
    await alone.press({**alone.runs.handlers(), **alone.steps.handlers()}, key)
    await alone.until(lambda: bool(alone.engine.requests))
    assert alone.request.linked_to == (None if later else run.info.id)
    alone.front_run.stop()


@pytest.mark.parametrize("key", ["case.rerun", "case.once_more", "run.failed", "run.all"])
async def test_what_the_run_dialog_chose_for_a_run_is_no_choice_for_those_that_follow(
    tmp_path: Path, key: str
) -> None:
    """Every case was asked of the dialog's agent, passed with less, and was cut at its cost: no screen said so."""
    alone = await on_project(tmp_path, "failed", "passed")
    await alone.press(alone.runs.handlers(), "run.dialog")
    chosen = {"attempts": "3", "threshold": "0.3", "concurrency": "2", "max_cost": "0.1", "on": "here"}
    await alone.answer(RunChoice(agents="other", models="m", filter="refund", **chosen))
    assert (alone.request.agents, alone.request.threshold) == (["other"], 0.3)
    await ended(alone, "passed")
    alone.window.stack = [alone.list]
    alone.go_to(CALMS)
    alone.past(CALMS, "failed")
    await alone.press(alone.runs.handlers(), key)
    request = alone.request
    assert CALMS in alone.asked and not request.agents and not request.models
    assert (request.threshold, request.max_cost) == (None, None)
    assert request.attempts == (1 if key == "case.once_more" else None) and request.on == "here"
    alone.front_run.stop()
    await alone.press(alone.runs.handlers(), "run.dialog")
    assert alone.dialog.arguments[0].agents == "other"  # which shows it


CLUSTER = "ray://head:10001"


@pytest.mark.parametrize(("chosen", "on", "recorded"), [("", CLUSTER, True), ("here", "here", False)])
@pytest.mark.parametrize("key", ["case.rerun", "case.once_more", "run.failed", "run.all"])
async def test_cases_of_a_run_go_where_it_went_unless_the_dialog_says_otherwise(
    tmp_path: Path, key: str, chosen: str, on: str, recorded: bool
) -> None:
    """Before, they silently ran here; also where they are all of its cases, and no part of it."""
    alone = await on_project(tmp_path, "failed", "failed")
    run = alone.state.run
    assert run is not None
    run.info.options["on"] = CLUSTER
    alone.runs.plans.choice = RunChoice(on=chosen)
    alone.window.stack.append(FakeList(alone.state, "run"))
    alone.go_to(REFUND)
    await alone.press(alone.runs.handlers(), key)
    assert (alone.request.on, alone.request.on_recorded) == (on, recorded)
    alone.front_run.stop()


@pytest.mark.parametrize(("chosen", "on", "recorded"), [("", CLUSTER, True), ("here", "here", False)])
async def test_a_run_is_gone_on_with_where_it_went_unless_the_dialog_says_otherwise(
    tmp_path: Path, chosen: str, on: str, recorded: bool
) -> None:
    alone = await on_project(tmp_path)
    run = LiveRun(alone.root, [REFUND, GREETS], options={"on": CLUSTER})
    run.start(0)
    alone.runs.plans.choice = RunChoice(on=chosen)
    alone.runs.take_up(run.folder)
    await alone.settle()
    ((_, request),) = alone.engine.resumed
    assert (request.on, request.on_recorded) == (on, recorded)
    alone.front_run.stop()


@pytest.mark.parametrize(
    ("chosen", "on", "said"),
    [
        ("ray", "ray", f"on ray (`on` of the run dialog), it was on {CLUSTER}"),
        ("here", "here", f"here (`on` of the run dialog), it was on {CLUSTER}"),
        (CLUSTER, CLUSTER, ""),
        ("", CLUSTER, ""),
    ],
)
async def test_what_the_run_dialog_of_another_run_moves_elsewhere_is_said(
    tmp_path: Path, chosen: str, on: str, said: str
) -> None:
    """Of a run that goes on and of one more attempt: `on` stays chosen after the run it was typed for."""
    alone = await on_project(tmp_path, "failed", "failed")
    alone.runs.plans.choice = RunChoice(on=chosen)
    old = LiveRun(alone.root, [REFUND, GREETS], options={"on": CLUSTER})
    old.start(0)
    alone.runs.take_up(old.folder)
    await alone.settle()
    ((_, request),) = alone.engine.resumed
    assert request.on == on
    going = [line[2] for line in alone.notices.lines if "going on, " in line[2]]
    assert going == [f"going on, 2 attempts; {said}" if said else "going on, 2 attempts"]
    alone.front_run.stop()


@pytest.mark.parametrize(
    ("chosen", "said"), [("ray", f"; on ray (`on` of the run dialog), it was on {CLUSTER}"), ("", "")]
)
async def test_one_more_attempt_that_the_run_dialog_moves_elsewhere_is_said(
    tmp_path: Path, chosen: str, said: str
) -> None:
    alone = await on_project(tmp_path, "failed", "failed")
    run = alone.state.run
    assert run is not None
    run.info.options["on"] = CLUSTER
    alone.runs.plans.choice = RunChoice(on=chosen)
    alone.go_to(REFUND)
    await alone.press(alone.runs.handlers(), "case.once_more")
    assert alone.request.linked_to == run.info.id
    assert alone.said == f"running, 1 attempt{said}"
    alone.front_run.stop()


@pytest.mark.parametrize(
    ("chosen", "answer", "on"),
    [
        ("", "here", "here"),
        (CLUSTER, "here", "here"),
        (CLUSTER, "again", CLUSTER),
        ("", "again", CLUSTER),
        ("", "no", None),
        ("", None, None),
        ("ray", "not asked", "ray"),
    ],
)
async def test_a_run_whose_cluster_was_lost_is_asked_where_it_goes_on(
    tmp_path: Path, chosen: str, answer: str | None, on: str | None
) -> None:
    """It led back to the dead cluster, half a minute long; another place that was chosen since is taken."""
    alone = await on_project(tmp_path)
    run = LiveRun(alone.root, [REFUND, GREETS], options={"on": CLUSTER})
    run.start(0)
    run.info.provenance[PLACE_LOST] = 1
    run.writer.state("interrupted", time.time())
    run.writer.flush()
    alone.runs.plans.choice = RunChoice(on=chosen)
    alone.runs.take_up(run.folder)
    await alone.settle()
    if answer != "not asked":
        assert alone.question == f"The run ended since {CLUSTER} was lost. Go on where?"
        await alone.answer(answer)
        await alone.settle()
    assert [request.on for _, request in alone.engine.resumed] == ([] if on is None else [on])
    alone.front_run.stop()


class AtLimits(FakeEngine):
    """Refuses to go on while one of these limits holds."""

    limits: ClassVar[list[ReachedLimit]] = []

    async def resume_run(self, folder: Path, request: RunRequest) -> RunStarted:
        for limit in self.limits:
            if limit.past(request) != request:
                refused = EngineError("a limit is reached: tui-eval resume … does it")
                refused.limit = limit
                raise refused
        return await super().resume_run(folder, request)


COST, FAILED = ReachedLimit(0.177, 0.18, 0.36), ReachedLimit(bad=1)


@pytest.mark.parametrize(
    ("limits", "answers", "went_on"),
    [
        ([COST], ["yes"], (0.36, False)),
        ([FAILED], ["yes"], (None, True)),
        ([COST, FAILED], ["yes", "yes"], (0.36, True)),
        ([COST, FAILED], ["yes", "no"], None),
        ([COST], [None], None),
    ],
)
async def test_past_the_limit_that_ended_a_run_it_goes_on_when_a_person_says_so(
    tmp_path: Path, limits: list[ReachedLimit], answers: list[str | None], went_on: tuple | None
) -> None:
    """`u go on` answered with a command line; nothing in the app ever went on with such a run."""
    engine = AtLimits(tmp_path)
    engine.limits = limits  # pyright: ignore[reportAttributeAccessIssue]
    alone = await on_project(tmp_path, engine=engine)
    run = LiveRun(alone.root, [REFUND, GREETS])
    run.start(0)
    run.writer.state("finished", time.time())
    run.writer.flush()
    alone.runs.take_up(run.folder)
    for limit, answer in zip(limits, answers, strict=False):
        await alone.settle()
        words = alone.question
        assert words.endswith("Go on?") and alone.offered == ["yes", "no"]
        if limit is COST:
            assert "cost limit of $0.177 is reached: $0.1800 is spent" in words
            assert "at most $0.1800 more ($0.36 for all of the run)" in str(alone.dialog.arguments)
        else:
            assert "first attempt that does not pass, and 1 attempt did not" in words
        await alone.answer(answer)
    await alone.settle()
    found = [(request.max_cost, request.no_fail_fast) for _, request in alone.engine.resumed]
    assert found == ([] if went_on is None else [went_on])
    alone.front_run.stop()


@pytest.mark.parametrize("key", ["case.rerun", "run.failed", "case.once_more", "run.all"])
@pytest.mark.parametrize(
    ("chosen", "answer", "on"),
    [
        ("", "here", "here"),
        ("", "again", CLUSTER),
        (CLUSTER, "here", "here"),
        ("", None, None),
        ("ray", "", "ray"),
    ],
)
async def test_what_is_run_again_of_a_run_whose_cluster_was_lost_is_asked_where(
    tmp_path: Path, key: str, chosen: str, answer: str | None, on: str | None
) -> None:
    """Only `u` asked; these went back to the dead cluster."""
    alone = await on_project(tmp_path)
    run = lost(alone, "passed", "error", "failed")
    in_front(alone, run)
    alone.window.stack.append(FakeList(alone.state, "run"))
    alone.go_to(GREETS)
    alone.runs.plans.choice = RunChoice(on=chosen)
    await alone.press(alone.runs.handlers(), key)
    if chosen != "ray":
        assert not alone.engine.requests and not alone.runs.starting
        assert alone.question == f"The run ended since {CLUSTER} was lost. Go on where?"
        await alone.answer(answer)
        await alone.settle()
    assert [request.on for request in alone.engine.requests] == ([] if on is None else [on])
    assert [request.on_recorded for request in alone.engine.requests] == (
        [] if on is None else [answer == "again"]
    )
    if on == "here" and key != "run.all":  # of which no dialog was asked
        assert alone.said.endswith(f"here, it was on {CLUSTER}")
    alone.front_run.stop()


async def test_a_run_whose_cluster_was_lost_is_looked_up_where_it_is_in_front_of_nobody(
    tmp_path: Path,
) -> None:
    alone = await on_project(tmp_path)
    run = lost(alone, "error", "failed", "passed")
    alone.past(REFUND, "error", run_id=run.info.id)
    alone.past(GREETS, "failed", run_id=run.info.id)
    alone.past(CALMS, "passed", run_id=run.info.id)
    await alone.press(alone.runs.handlers(), "run.failed")
    assert alone.question == f"The run ended since {CLUSTER} was lost. Go on where?"
    await alone.answer("here")
    await alone.settle()
    assert [(one.linked_to, one.on) for one in alone.engine.requests] == [(run.info.id, "here")]
    alone.front_run.stop()


async def test_one_answer_says_where_all_goes_that_one_key_adds_to_a_run_whose_cluster_was_lost(
    tmp_path: Path,
) -> None:
    alone = await on_project(tmp_path)
    run = lost(alone, "passed", "failed")
    in_front(alone, run)
    opened = len(alone.window.stack)
    for number in (2, 3):  # of which `+` on several rows makes one each
        request = RunRequest(
            case_ids=[run.cases[0].case_id], linked_to=run.info.id, first_attempt=number, anew=True
        )
        alone.runs.send(request, show=False, aside=True)
    await alone.settle()
    assert len(alone.window.stack) == opened + 1
    await alone.answer("here")
    await alone.settle()
    assert len(alone.window.stack) == opened
    assert [(one.on, one.first_attempt) for one in alone.engine.requests] == [("here", 2), ("here", 3)]
    alone.front_run.stop()


async def test_a_cluster_that_was_typed_in_the_dialog_is_typed_still_for_cases_of_its_run(
    tmp_path: Path,
) -> None:
    alone = await on_project(tmp_path, "failed", "failed")
    await alone.press(alone.runs.handlers(), "run.dialog")
    await alone.answer(RunChoice(on=CLUSTER))
    assert (alone.request.on, alone.request.on_recorded) == (CLUSTER, False)
    await ended(alone, "failed", "failed", "failed")
    alone.runs.plans.choice = RunChoice()
    run = alone.state.run
    assert run is not None
    run.info.options["on"] = CLUSTER
    alone.window.stack = [FakeList(alone.state, "run")]
    alone.go_to(REFUND)
    await alone.press(alone.runs.handlers(), "case.once_more")
    assert (alone.request.on, alone.request.on_recorded) == (CLUSTER, False)
    alone.front_run.stop()


async def test_a_run_that_will_cost_much_is_asked_about_once(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n  offline: {type: openai, model: gpt-4.1, api_key: x}\n"
    )
    await alone.read()
    alone.past(REFUND, "passed", model="gpt-4.1", cost=4.2)
    alone.go_to(REFUND)
    handlers = alone.runs.handlers()
    await alone.press(handlers, "case.rerun")
    assert alone.question == "This will cost about $4.20. Run it?" and not alone.engine.requests
    await alone.answer("no")
    assert not alone.engine.requests
    await alone.press(handlers, "case.rerun")
    await alone.answer(None)
    assert not alone.engine.requests
    await alone.press(handlers, "case.rerun")
    await alone.answer("run")
    assert alone.asked == [REFUND]
    await ended(alone, "passed")
    await alone.press(handlers, "case.rerun")
    assert len(alone.engine.requests) == 2 and alone.places.place is alone.list  # not asked again
    alone.front_run.stop()


@pytest.mark.parametrize(
    ("entry", "answers", "key", "price"),
    [
        ("", "cache", "run.all", "up to $12.60"),
        (", cache: true", "", "run.all", "up to $12.60"),
        (", cache: true", "ask", "run.all", "about $12.60"),
        (", cache: true", "cache", "case.rerun", "about $4.20"),  # run again, it is asked anew
        ("", "", "run.all", "about $12.60"),
    ],
)
async def test_what_the_cache_may_save_is_not_said_to_be_paid(
    tmp_path: Path, entry: str, answers: str, key: str, price: str
) -> None:
    alone = await on_project(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text(
        f"agents:\n  offline: {{type: openai, model: gpt-4.1, api_key: x{entry}}}\n"
    )
    await alone.read()
    alone.past(REFUND, "passed", model="gpt-4.1", cost=4.2)
    alone.go_to(REFUND)
    alone.runs.plans.choice = RunChoice(answers=answers)
    await alone.press(alone.runs.handlers(), key)
    assert alone.question == f"This will cost {price}. Run it?"


TWO_AGENTS = "agent: {0}\ntest_cases:\n  - {{name: {0} {1}, input: hi, expected: {{should_contain: [x]}}}}\n"


async def test_what_one_agent_costs_is_not_said_of_another_that_never_reported_a_cost(tmp_path: Path) -> None:
    suites = {"a/s.yaml": TWO_AGENTS.format("dear", "one"), "b/s.yaml": TWO_AGENTS.format("mute", "two")}
    alone = await on_project(tmp_path, suites=suites)
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n  dear: {type: openai, model: gpt-4.1, api_key: x}\n  mute: {type: http, url: 'http://127.0.0.1:1'}\n"
    )
    await alone.read()
    alone.past("dear one", "passed", agent="dear", model="gpt-4.1", cost=0.8)
    alone.past("mute two", "passed", agent="mute")
    handlers = alone.runs.handlers()
    entries = alone.list.all_entries()
    words = "2 cases, 2 attempts, at least $0.80 (1 of unknown cost)"
    assert alone.runs.plans.estimate(entries, RunChoice())[0] == words  # the dialog's
    await alone.press(handlers, "run.all")
    assert len(alone.engine.requests) == 1  # below what is asked about
    alone.front_run.stop()


async def test_a_cost_that_is_not_wholly_known_is_asked_about_in_the_dialogs_words(tmp_path: Path) -> None:
    suites = {"a/s.yaml": TWO_AGENTS.format("dear", "one"), "b/s.yaml": TWO_AGENTS.format("mute", "two")}
    alone = await on_project(tmp_path, suites=suites)
    alone.past("dear one", "passed", agent="dear", cost=1.6)
    alone.past("mute two", "passed", agent="mute")
    await alone.press(alone.runs.handlers(), "run.all")
    assert alone.question == "This will cost at least $1.60 (1 of unknown cost). Run it?"
    alone.front_run.stop()


async def test_an_agent_that_is_nowhere_is_asked_for_before_anything_runs(tmp_path: Path) -> None:
    suite = "agent: helper\ntest_cases:\n  - {name: one, input: hi, expected: {should_contain: [x]}}\n"
    alone = await on_project(tmp_path, suites={"s.yaml": suite})
    await alone.press(alone.runs.handlers(), "case.rerun")
    assert alone.dialog.name == "agent" and alone.dialog.arguments == ("helper", "tui_eval.yaml", 1, True)
    assert not alone.engine.requests
    await alone.answer({"type": "echo"})
    assert "helper" in (tmp_path / "tui_eval.yaml").read_text() and alone.suites.loads == 1
    assert alone.asked == ["one"]
    alone.front_run.stop()


# -- R: what did not pass


async def test_what_did_not_pass_is_run_in_its_columns_whatever_was_chosen_last(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    alone.past(REFUND, "failed")
    alone.past(GREETS, "passed")
    alone.past(CALMS, "error", agent="other", asked="named")
    alone.runs.plans.choice = RunChoice(agents="somebody else", models="gpt-5")
    await alone.press(alone.runs.handlers(), "run.failed")
    assert alone.asked == [REFUND, CALMS]
    assert alone.request.cells is not None and [one.agent for one in alone.request.cells] == ["", "other"]
    assert not alone.request.agents and not alone.request.models
    alone.front_run.stop()


async def test_what_failed_of_the_run_in_front_is_run_as_a_part_of_it(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed", "passed", "error")
    alone.window.stack.append(FakeList(alone.state, "run"))
    run = alone.state.run  # of before: the run that the key starts comes to the front in its own time
    await alone.press(alone.runs.handlers(), "run.failed")
    assert run is not None and alone.asked == [REFUND, CALMS] and alone.request.linked_to == run.info.id
    alone.front_run.stop()


async def test_on_a_line_that_stands_for_several_what_did_not_pass_below_it_is_run(tmp_path: Path) -> None:
    """A file, a test or a cause: it ran everything that did not pass in the project, unasked."""
    other = SUITE.replace(REFUND, "asks").replace(GREETS, "waits").replace(CALMS, "leaves")
    alone = await on_project(tmp_path, suites={"suites/support.yaml": SUITE, "suites/other.yaml": other})
    alone.past(REFUND, "failed")
    alone.past(GREETS, "passed")
    alone.past("asks", "error")
    alone.past("waits", "passed")
    alone.list.line = TreeLine("suite", "suites/other.yaml", 0, "other", path="suites/other.yaml")
    await alone.press(alone.runs.handlers(), "run.failed")
    assert alone.asked == ["asks"] and len(alone.engine.requests) == 1
    alone.front_run.stop()


async def test_on_a_line_below_which_all_passed_nothing_is_run_and_it_is_said_where_something_is(
    tmp_path: Path,
) -> None:
    alone = await on_project(tmp_path)
    alone.past(REFUND, "failed")
    alone.list.line = TreeLine("suite", "elsewhere.yaml", 0, "elsewhere", path="elsewhere.yaml")
    await alone.press(alone.runs.handlers(), "run.failed")
    assert alone.said == "nothing to rerun on this line: on a case's row R runs all 1 that did not pass"
    assert not alone.engine.requests


async def test_where_everything_passed_nothing_is_run(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    shown = alone.list.all_entries()
    alone.past(REFUND, "passed")
    await alone.press(alone.runs.handlers(), "run.failed")
    never = len(shown) - 1
    assert alone.said == f"nothing shown has failed; {never} never ran (r runs a case, a all shown)"
    for entry in shown:
        alone.past(entry.name, "passed")
    await alone.press(alone.runs.handlers(), "run.failed")
    assert alone.said == "everything shown has passed" and not alone.engine.requests
    alone.list.whole = False
    await alone.press(alone.runs.handlers(), "run.failed")
    assert alone.said == "everything shown has passed so far: reading"
    alone.list.hidden = {entry.key for entry in shown}
    await alone.press(alone.runs.handlers(), "run.failed")
    assert alone.said == "still reading the suites" and not alone.engine.requests


async def test_where_no_case_is_none_has_passed(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    alone.window.stack.append(FakeList(alone.state, "run"))  # as of shards that hold none
    await alone.press(alone.runs.handlers(), "run.failed")
    assert alone.said == "there are no cases here" and not alone.engine.requests


async def test_what_failed_in_the_last_run_adds_to_it_where_it_is_not_in_front(tmp_path: Path) -> None:
    root = project(tmp_path)
    run = LiveRun(root, [REFUND, GREETS, CALMS])
    run.all_done(["failed", "failed", "passed"])
    alone = Alone(root)
    await alone.read()
    assert alone.state.run is None
    await alone.press(alone.runs.handlers(), "run.failed")
    assert alone.asked == [REFUND, GREETS] and alone.request.linked_to == run.info.id
    alone.front_run.stop()


@pytest.mark.parametrize("earlier", [True, False])
async def test_what_failed_in_several_runs_or_is_all_of_one_adds_to_none(
    tmp_path: Path, earlier: bool
) -> None:
    root = project(tmp_path)
    LiveRun(root, [REFUND, CALMS]).all_done(["failed", "passed" if earlier else "failed"])
    LiveRun(root, [GREETS, CALMS] if earlier else [GREETS]).all_done(
        ["failed", "passed"] if earlier else ["passed"]
    )
    alone = Alone(root)
    await alone.read()
    await alone.press(alone.runs.handlers(), "run.failed")
    assert alone.asked == ([REFUND, GREETS] if earlier else [REFUND, CALMS])
    assert alone.request.linked_to is None
    alone.front_run.stop()


async def test_what_is_at_work_is_no_failure_yet_and_is_not_said_to_have_passed(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = at_work(alone, 0)
    run.done(0)
    in_front(alone, run)
    alone.window.stack.append(FakeList(alone.state, "run"))
    await alone.press(alone.runs.handlers(), "run.failed")
    assert alone.said == "nothing has failed so far: 1 not ended" and not alone.engine.requests


# -- +: one more attempt


async def test_one_more_attempt_is_the_next_of_the_run_in_front(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed", "passed")
    alone.runs.plans.choice = RunChoice(agents="other", attempts="5")
    alone.go_to(REFUND)
    run = alone.state.run
    await alone.press(alone.runs.handlers(), "case.once_more")
    assert run is not None and alone.asked == [REFUND]
    assert (alone.request.linked_to, alone.request.first_attempt, alone.request.attempts) == (
        run.info.id,
        2,
        1,
    )
    assert alone.request.cells is not None and alone.request.cells[0].agent == "offline"
    assert not alone.request.agents  # in its column, whatever was chosen last
    alone.front_run.stop()


@pytest.mark.parametrize("key", ["case.once_more", "case.rerun", "run.failed"])
async def test_what_follows_a_rerun_of_another_case_builds_on_the_run_that_the_case_is_of(
    tmp_path: Path, key: str
) -> None:
    """It stood below the other case's rerun: `adds to` what it has nothing to do with."""
    alone = await on_project(tmp_path, "passed", "failed", "failed")
    alone.window.stack.append(FakeList(alone.state, "run"))
    run = alone.state.run
    assert run is not None
    again = LiveRun(alone.root, [GREETS], linked_to=run.info.id)
    again.all_done(["passed"])
    alone.front_run.follow(again.folder)
    await alone.until(lambda: alone.state.run is not None and alone.state.run.info.id == again.info.id)
    alone.go_to(CALMS)
    await alone.press(alone.runs.handlers(), key)
    await alone.until(lambda: bool(alone.engine.requests))
    assert alone.asked == [CALMS] and alone.request.linked_to == run.info.id
    alone.front_run.stop()


async def test_one_more_attempt_of_a_case_of_an_earlier_run_builds_on_that_run(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed")
    run = alone.state.run
    assert run is not None
    alone.state.run = alone.state.group = None
    alone.past(REFUND, "failed")
    alone.look_at(CasePointer(run.cases[1].case_id, "offline", None, run.info.id))
    await alone.press(alone.runs.handlers(), "case.once_more")
    assert alone.request.linked_to == run.info.id and alone.request.first_attempt == 2
    alone.front_run.stop()


async def test_a_case_that_still_runs_gets_no_further_attempt(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    at_work(alone, 0)
    alone.go_to(REFUND)
    await alone.press(alone.runs.handlers(), "case.once_more")
    assert alone.said == "this case is still running" and not alone.engine.requests


@pytest.mark.parametrize("begun", [0, 1])
async def test_a_case_of_which_a_run_that_ended_left_attempts_is_not_called_running(
    tmp_path: Path, begun: int
) -> None:
    """A cost limit ended it: it waited for what nobody runs."""
    alone = await on_project(tmp_path)
    run = LiveRun(alone.root, [REFUND, GREETS], attempts=2)
    for attempt in range(begun):
        run.done(0, "passed", attempt=attempt)
    run.finish()
    in_front(alone, run)
    alone.go_to(REFUND)
    await alone.press(alone.runs.handlers(), "case.once_more")
    assert alone.said == "not all of it has run: r runs it anew, u in Runs (H) goes on with the run"
    assert not alone.engine.requests


async def test_one_more_attempt_of_each_row_of_a_test_up_to_a_limit(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed", "passed")
    pointers = [alone.list.pointer_of(row) for row in alone.list.all_entries()]
    place = alone.look_at(pointers[0], also=pointers[:2])
    await alone.press(alone.runs.handlers(), "case.once_more")
    (request,) = alone.engine.requests  # one run, in the column of each
    assert request.case_ids == [p.case_id for p in pointers[:2]] and request.first_attempt == 2
    assert [cell.case_id for cell in request.cells or ()] == request.case_ids
    place.also = pointers[:1] * (MOST_ROWS + 1)
    await alone.press(alone.runs.handlers(), "case.once_more")
    assert alone.said == f"one more attempt of at most {MOST_ROWS} at once: A runs more of them"
    assert len(alone.engine.requests) == 1
    alone.front_run.stop()


async def test_one_more_attempt_of_rows_of_several_runs_adds_to_each(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed", "passed")
    first, second = [alone.list.pointer_of(row).case_id for row in alone.list.all_entries()][:2]
    alone.state.run = alone.state.group = None
    pointers = [CasePointer(first, "offline", None, "one"), CasePointer(second, "offline", None, "two")]
    alone.look_at(pointers[0], also=[*pointers, CasePointer(second, "offline", None, "one")])
    await alone.press(alone.runs.handlers(), "case.once_more")
    made = sorted(
        (request.linked_to, request.case_ids) for request in alone.engine.requests
    )  # each by itself
    assert made == [("one", [first, second]), ("two", [second])]
    alone.front_run.stop()


async def test_one_more_attempt_of_nothing_says_so(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    place = alone.look_at(CasePointer("suites/support.yaml::not there"))
    await alone.press(alone.runs.handlers(), "case.once_more")
    assert alone.said == "no such case here"
    place.looked_at = None
    await alone.press(alone.runs.handlers(), "case.once_more")
    assert alone.said == "put the cursor on a case first" and not alone.engine.requests


# -- A: the dialog


async def test_the_dialog_is_about_what_is_marked_else_shown_and_its_choice_is_kept(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text(AGENTS)
    alone = await on_project(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text(AGENTS)
    await alone.read()
    handlers = alone.runs.handlers()
    await alone.press(handlers, "run.dialog")
    choice, agents, _, what, beside = alone.dialog.arguments
    assert not beside
    assert agents == ["offline", "other"] and what == "the 3 shown"
    choice.agents = "typed over"
    await alone.answer(None)
    assert (
        not alone.engine.requests and alone.runs.plans.choice.agents == ""
    )  # what was typed and left is no choice
    alone.list.mark({row.key for row in alone.list.all_entries() if row.name != CALMS})
    await alone.press(handlers, "run.dialog")
    assert alone.dialog.arguments[3] == "the 2 marked"
    await alone.answer(
        RunChoice(agents="other", attempts="2", threshold="50%", concurrency="4", max_cost="$1")
    )
    request = alone.request
    assert alone.asked == [REFUND, GREETS] and request.agents == ["other"]
    assert (request.attempts, request.threshold, request.concurrency, request.max_cost) == (2, 0.5, 4, 1.0)
    alone.window.stack = [alone.list]
    await alone.press(handlers, "run.dialog")
    assert alone.dialog.arguments[0].agents == "other"
    alone.front_run.stop()


# -- P, x, X: pausing and cancelling


async def test_the_run_is_paused_and_goes_on_again(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = at_work(alone, 0)
    await alone.press(alone.runs.handlers(), "run.pause")
    assert alone.engine.paused == [True] and alone.said.startswith("pausing")
    run.writer.state("paused")
    in_front(alone, run)
    await alone.press(alone.runs.handlers(), "run.pause")
    assert alone.engine.paused == [True, False] and alone.said == "going on"


async def test_a_run_of_another_program_takes_no_orders(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = at_work(alone, 0)
    alone.core.engines.out_of_reach.add(run.info.id)
    await alone.press(alone.runs.handlers(), "run.pause")
    assert "executed by another program" in alone.said and alone.engine.paused == []
    await alone.press(alone.runs.handlers(), "run.cancel")
    await alone.answer("yes")
    assert alone.engine.cancelled == []


async def test_where_no_run_goes_on_there_is_none_to_pause_or_cancel(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "passed")
    await alone.press(alone.runs.handlers(), "run.pause")
    assert alone.said == "no run goes on"
    await alone.press(alone.runs.handlers(), "run.cancel")
    assert alone.said == "no run goes on"
    alone.go_to(REFUND)
    await alone.press(alone.runs.handlers(), "case.cancel")
    assert alone.said == "no running case here"
    assert (alone.engine.paused, alone.engine.cancelled) == ([], [])


async def test_a_run_that_is_starting_is_not_said_to_be_none(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    theirs = StartLock(alone.root)
    theirs.take()
    alone.runs.handlers()["run.all"]()
    await until(lambda: alone.runs.starting)
    for key in ("run.pause", "run.cancel"):
        alone.runs.handlers()[key]()
        assert alone.said == "the run is starting: once more when it goes on"
    theirs.release()
    await until(lambda: bool(alone.engine.requests))
    alone.front_run.stop()


async def test_the_run_beside_one_that_has_ended_is_the_one_to_pause_and_cancel(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "passed")
    old, run = alone.state.run, at_work(alone, 0)
    assert old is not None and alone.state.run is not None
    alone.state.aside.add(alone.state.run)
    alone.show_run(old.folder)
    await alone.press(alone.runs.handlers(), "run.pause")
    assert alone.engine.paused == [True] and alone.said.startswith("pausing")
    await alone.press(alone.runs.handlers(), "run.cancel")
    assert alone.question == "Cancel the run? 2 attempts have not ended."
    await alone.answer("yes")
    assert alone.engine.cancelled == [(run.info.id, None)]


async def test_a_run_none_of_whose_attempts_is_known_yet_is_not_one_of_none(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    at_work(alone, 0)
    assert alone.state.run is not None
    alone.state.run.counts.total = alone.state.run.counts.done = 0
    await alone.press(alone.runs.handlers(), "run.cancel")
    assert alone.question == "Cancel the run? It is just beginning."


async def test_the_run_is_cancelled_after_asking(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = at_work(alone, 0)
    for answer in ("no", None):
        await alone.press(alone.runs.handlers(), "run.cancel")
        assert alone.question == "Cancel the run? 2 attempts have not ended."
        await alone.answer(answer)
        assert alone.engine.cancelled == []
    await alone.press(alone.runs.handlers(), "run.cancel")
    await alone.answer("yes")
    assert alone.engine.cancelled == [(run.info.id, None)]


async def test_the_attempts_of_one_case_that_have_not_ended_are_cancelled_at_once(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = LiveRun(alone.root, [REFUND, GREETS], attempts=3)
    run.start(0)
    run.done(0)
    run.start(0, 1)
    in_front(alone, run)
    alone.go_to(REFUND)
    await alone.press(alone.runs.handlers(), "case.cancel")
    assert (
        alone.engine.cancelled == [(run.info.id, [*run.refs[0][1:]])]
        and alone.said == "cancelling 2 attempts"
    )


async def test_attempts_of_several_tests_are_cancelled_after_asking(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = at_work(alone, 0, 1)
    pointers = [alone.list.pointer_of(row) for row in alone.list.all_entries()[:2]]
    alone.look_at(pointers[0], also=pointers)
    await alone.press(alone.runs.handlers(), "case.cancel")
    assert alone.question == "Cancel 2 attempts of 2 tests?"
    await alone.answer("no")
    assert alone.engine.cancelled == []
    await alone.press(alone.runs.handlers(), "case.cancel")
    await alone.answer("yes")
    assert alone.engine.cancelled == [(run.info.id, [refs[0] for refs in run.refs])]


async def test_a_case_of_a_run_at_work_that_has_ended_is_not_cancelled(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = at_work(alone, 0, 1)
    run.done(0)
    in_front(alone, run)
    alone.go_to(REFUND)
    await alone.press(alone.runs.handlers(), "case.cancel")
    assert alone.said == "this case is not running" and alone.engine.cancelled == []


# -- L: the run in front


@pytest.mark.real
async def test_the_live_run_is_shown_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "passed")
    handlers = alone.runs.handlers()
    await alone.press(handlers, "place.run")
    alone.look_at(CasePointer("suites/support.yaml::x"))
    await alone.press(handlers, "place.run")
    assert [screen.kind for screen in alone.window.stack] == ["suites", "run"]


async def test_where_none_is_in_front_the_newest_run_is_opened(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = LiveRun(alone.root, [REFUND])
    run.all_done(["failed"])
    await alone.press(alone.runs.handlers(), "place.run")
    assert list(alone.front_run.followers) == [run.info.id]
    assert [screen.kind for screen in alone.window.stack] == ["suites", "run"]
    alone.front_run.stop()


# -- what screens ask for


async def test_a_run_is_gone_on_with_by_the_agents_that_were_typed_for_it_here(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    run = LiveRun(alone.root, [REFUND, GREETS])
    run.start(0)
    alone.runs.plans.typed[run.info.id] = ["my_agent.py:answer"]
    alone.state.agreed = frozenset({"this"})
    alone.runs.take_up(run.folder)
    await alone.settle()
    ((folder, request),) = alone.engine.resumed
    assert folder == run.folder
    assert request == RunRequest(agents=["my_agent.py:answer"], agreed=["this"])
    # Behind it may stand already that no engine of the test's run answers.
    assert "going on, 2 attempts" in [line[2] for line in alone.notices.lines]
    assert alone.window.screen.kind == "run"
    alone.front_run.stop()


async def test_recorded_answers_of_several_cases_are_judged_again_as_one_run_beside(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed", "failed")
    run = alone.state.run
    assert run is not None
    ids = [row.case_id for row in run.cases.values()]
    alone.runs.judge_again(run.folder, ids)
    await alone.settle()
    ((folder, request),) = alone.engine.rescored
    assert folder == run.folder and request.case_ids == ids
    assert alone.said == "judging 2 recorded answers again" and not alone.engine.requests
    alone.front_run.stop()


async def test_what_the_engine_says_of_answers_that_are_judged_again_is_shown(tmp_path: Path) -> None:
    class Says(FakeEngine):
        async def rescore(self, folder, request):
            started = await super().rescore(folder, request)
            return RunStarted(started.run_id, started.folder, started.attempts, [], "bot is another by now")

    alone = await on_project(tmp_path, "failed", "failed", engine=Says(tmp_path))
    run = alone.state.run
    assert run is not None
    alone.runs.judge_again(run.folder, [row.case_id for row in run.cases.values()])
    await alone.settle()
    assert alone.said == "judging 2 recorded answers again; bot is another by now"
    alone.front_run.stop()


async def test_an_engine_that_refuses_is_quoted_and_the_app_can_run_again(tmp_path: Path) -> None:
    from tui_eval.engine.service.client import EngineError

    class Refuses(FakeEngine):
        async def run(self, request: RunRequest) -> Any:
            raise EngineError("no room for another run")

    alone = await on_project(tmp_path, engine=Refuses(tmp_path))
    await alone.press(alone.runs.handlers(), "run.all")
    assert alone.said == "no room for another run"
    assert not alone.runs.running and alone.places.place is alone.list
