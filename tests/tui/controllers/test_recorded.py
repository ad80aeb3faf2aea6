"""What becomes of a recorded answer: judged again, noted on, accepted, and what is refused."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.support.alone import Alone, FakeList, on_project
from tests.support.live_run import LiveRun
from tui_eval.engine.request import Recorded
from tui_eval.formats import accepting
from tui_eval.model import Verdict
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.tui.controllers.editing import SavedElsewhere
from tui_eval.tui.controllers.recorded import AcceptController, NoteController, RecordedController
from tui_eval.tui.controllers.runs import MOST_ROWS
from tui_eval.tui.front import SuitesChanged

REFUND, GREETS, CALMS = "refund is approved", "greets by name", "calms an angry customer"
SUITE = "suites/support.yaml"
JUDGE = "case.judge_again"


def unasked(note: HumanNote) -> None:
    """Nobody wanted to write."""
    pytest.fail(f"words were asked for: {note}")


def recorded(alone: Alone) -> RecordedController:
    return RecordedController(alone.core, alone.places, alone.runs)


async def by_two_agents(folder: Path) -> tuple[Alone, LiveRun, LiveRun]:
    """A case that was asked of one agent, then of another; no run is in front."""
    alone = await on_project(folder)
    runs = [LiveRun(alone.root, [REFUND], agent=agent) for agent in ("offline", "other")]
    for run in runs:
        run.all_done(["failed"])
    alone.past(REFUND, "failed", agent="other", asked="named", run_id=runs[1].info.id)
    alone.past(REFUND, "failed", run_id=runs[0].info.id)
    return alone, runs[0], runs[1]


# -- judged again


async def test_the_last_answer_is_judged_again_as_the_run_it_is_of_has_it(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed", "passed")
    run = alone.state.run
    assert run is not None
    alone.go_to(REFUND)
    await alone.press(recorded(alone).handlers(), JUDGE)
    request = alone.request
    assert alone.asked == [REFUND] and request.linked_to == run.info.id
    assert request.continue_from == Recorded(str(run.folder), 1, None)
    assert alone.said == "judging the recorded answers again" and alone.places.place is alone.list
    alone.front_run.stop()


async def test_a_screen_that_looks_at_an_attempt_judges_that_itself(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed")
    alone.look_at(alone.go_to(REFUND)).judges = True
    await alone.press(recorded(alone).handlers(), JUDGE)
    assert not alone.engine.requests


async def test_there_must_be_an_answer_and_a_case(tmp_path: Path) -> None:
    alone = await on_project(tmp_path)
    alone.go_to(REFUND)
    await alone.press(recorded(alone).handlers(), JUDGE)
    assert alone.said == "there is no recorded answer to judge"
    run = LiveRun(alone.root, [REFUND])
    run.start(0)
    run.writer.flush()
    alone.show_run(run.folder)
    await alone.press(recorded(alone).handlers(), JUDGE)
    assert alone.said == "there is no recorded answer to judge"  # it is being given
    alone.list.hidden = {row.key for row in alone.list.all_entries()}
    await alone.press(recorded(alone).handlers(), JUDGE)
    assert alone.said == "put the cursor on a case first" and not alone.engine.requests


async def test_a_line_that_stands_for_several_columns_judges_all_of_them(tmp_path: Path) -> None:
    """Not one by the file of now beside others by that of before."""
    alone, first, second = await by_two_agents(tmp_path)
    pointer = next(
        alone.list.pointer_of(row)
        for row in alone.list.all_entries()
        if (row.name, row.agent) == (REFUND, "other")
    )
    alone.look_at(pointer)
    await alone.press(recorded(alone).handlers(), JUDGE)
    assert {folder for folder, _ in alone.engine.rescored} == {first.folder, second.folder}
    assert [len(request.cells or ()) for _, request in alone.engine.rescored] == [1, 1]
    alone.front_run.stop()


async def test_where_one_column_is_shown_alone_only_that_is_judged(tmp_path: Path) -> None:
    alone, _, second = await by_two_agents(tmp_path)
    pointer = next(
        alone.list.pointer_of(row)
        for row in alone.list.all_entries()
        if (row.name, row.agent) == (REFUND, "other")
    )
    alone.look_at(pointer).column_alone = True
    await alone.press(recorded(alone).handlers(), JUDGE)
    assert [request.linked_to for request in alone.engine.requests] == [second.info.id]
    alone.front_run.stop()


async def test_the_rows_of_a_test_are_judged_as_one_run(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed", "passed", "failed")
    run = alone.state.run
    assert run is not None and not run.active
    pointers = [alone.list.pointer_of(row) for row in alone.list.all_entries()]
    alone.look_at(pointers[0], also=pointers)
    await alone.press(recorded(alone).handlers(), JUDGE)
    ((folder, request),) = alone.engine.rescored
    assert folder == run.folder and not alone.engine.requests
    assert sorted(request.case_ids or ()) == sorted(pointer.case_id for pointer in pointers)
    assert alone.said == "judging 3 recorded answers again"
    alone.front_run.stop()


async def test_of_rows_by_two_agents_each_is_judged_in_the_run_that_it_is_of(tmp_path: Path) -> None:
    """Not the answer that one of them gave in an earlier run, which would stand as its newest."""
    alone, first, second = await by_two_agents(tmp_path)
    pointers = [alone.list.pointer_of(row) for row in alone.list.all_entries() if row.name == REFUND]
    assert len(pointers) == 2
    alone.look_at(pointers[0], also=pointers)
    await alone.press(recorded(alone).handlers(), JUDGE)
    asked = {folder: [cell.agent for cell in one.cells or ()] for folder, one in alone.engine.rescored}
    assert asked == {first.folder: ["offline"], second.folder: ["other"]}
    alone.front_run.stop()


async def test_the_rows_of_a_run_that_goes_on_are_judged_each_and_those_without_an_answer_left_out(
    tmp_path: Path,
) -> None:
    alone = await on_project(tmp_path, "failed", "passed")
    assert alone.state.run is not None
    alone.state.run.info.state = "running"
    pointers = [alone.list.pointer_of(row) for row in alone.list.all_entries()]
    place = alone.look_at(pointers[0], also=pointers)
    await alone.press(recorded(alone).handlers(), JUDGE)
    assert sorted(
        name.partition("::")[2] for one in alone.engine.requests for name in one.case_ids or ()
    ) == sorted([REFUND, GREETS])
    assert alone.said == "judging 2 recorded answers again"
    place.also = pointers[:1] * (MOST_ROWS + 1)
    await alone.press(recorded(alone).handlers(), JUDGE)
    assert alone.said == f"at most {MOST_ROWS} are judged at once: unfold the line"
    assert len(alone.engine.requests) == 2
    alone.front_run.stop()


# -- noted on


@pytest.mark.parametrize(
    ("answer", "noted", "said"),
    [
        ("right", ("right", False), "noted: right"),
        ("wrong", ("wrong", False), "noted: wrong"),
        ("star", (None, True), "noted: ★"),
        ("undecided", None, "nothing noted any more"),
        ("nothing", None, "nothing noted any more"),
    ],
)
async def test_what_is_answered_is_noted_on_the_attempt(
    tmp_path: Path, answer: str, noted, said: str
) -> None:
    alone = await on_project(tmp_path, "failed")
    run = alone.state.run
    assert run is not None
    notes = NoteController(alone.core, alone.places, recorded(alone))
    pointer = alone.go_to(REFUND)
    notes.ask(pointer, unasked)
    await alone.settle()
    assert alone.question == f"What of the answer of {REFUND}?" and not alone.dialog.arguments[2]
    await alone.answer(answer)
    kept = Notes(alone.root).of_case(pointer.case_id)
    assert [(note.verdict, note.star) for note in kept] == ([noted] if noted else [])
    assert alone.said.startswith(said)
    heard = alone.list.heard[-1]
    assert isinstance(heard, SuitesChanged) and heard.case_ids == [pointer.case_id]
    assert (pointer.case_id in alone.state.notes) == bool(noted)


async def test_the_question_calls_the_case_as_the_lists_do(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed")
    pointer = alone.go_to(REFUND)
    alone.state.by_id[pointer.case_id].name = "Where is my money"
    NoteController(alone.core, alone.places, recorded(alone)).ask(pointer, unasked)
    await alone.settle()
    assert alone.question == "What of the answer of Where is my money?"


async def test_the_question_says_what_was_noted_and_a_second_star_takes_it_away(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed")
    run = alone.state.run
    assert run is not None
    pointer = alone.go_to(REFUND)
    Notes(alone.root).put(HumanNote(run.info.id, 1, pointer.case_id, star=True, verdict="wrong", text="no"))
    notes = NoteController(alone.core, alone.places, recorded(alone))
    notes.ask(pointer, unasked)
    await alone.settle()
    assert alone.dialog.arguments[2][0].startswith("You said: ")
    await alone.answer("star")
    (note,) = Notes(alone.root).of_case(pointer.case_id)
    assert not note.star and (note.verdict, note.text) == ("wrong", "no")
    notes.ask(pointer, unasked)
    await alone.settle()
    await alone.answer(None)
    assert Notes(alone.root).of_case(pointer.case_id) == [note]


async def test_words_are_typed_elsewhere_and_a_note_is_for_an_attempt_that_has_ended(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, "failed")
    notes = NoteController(alone.core, alone.places, recorded(alone))
    written: list[HumanNote] = []
    pointer = alone.go_to(REFUND)
    notes.ask(pointer, written.append)
    await alone.settle()
    await alone.answer("note")
    assert [note.case_id for note in written] == [pointer.case_id]
    notes.ask(alone.go_to(CALMS), written.append)
    await alone.settle()
    assert alone.question == "There is no finished attempt to note anything on." and len(written) == 1
    await alone.answer(None)  # `m r` runs nothing: the `r` is taken by the question


# -- accepted


class Accepting:
    """A case that failed since its answer lacks a word."""

    def __init__(self, alone: Alone, say: str = "Your refnd is approved") -> None:
        self.alone, self.file = alone, alone.root / SUITE
        self.edited = 0
        self.saved = SavedElsewhere(alone.core, alone.suites)
        self.controller = AcceptController(alone.services(), recorded(alone), self.saved, self._edit)
        run = LiveRun(alone.root, [REFUND])
        run.start(0)
        lacks = Verdict("should_contain", False, expected="refund", actual=say, line=5)
        run.done(0, "failed", "lacks refund", said=say, verdicts=[lacks])
        run.finish()
        alone.show_run(run.folder)
        alone.go_to(REFUND)

    def _edit(self) -> None:
        self.edited += 1

    async def press(self, key_id: str) -> None:
        await self.alone.press(self.controller.handlers(), key_id)


async def test_a_change_that_took_long_does_not_come_over_what_one_went_on_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A YAML suite of 20,000 cases is looked at for half a minute, in which nothing was said; the enter with which the
    person went on wrote the change unseen."""
    one = Accepting(await on_project(tmp_path))
    go, propose = threading.Event(), accepting.propose
    monkeypatch.setattr(accepting, "propose", lambda *given: go.wait(20) and propose(*given))
    one.controller.handlers()["case.accept"]()
    while not one.alone.window.timers:
        while one.alone.window.waiting:
            one.alone.window.waiting.popleft()()
        await asyncio.sleep(0.01)
    one.alone.window.timers[-1].ring()
    assert one.alone.said.startswith(f"looking at {SUITE}: what would change (")
    one.alone.go_to(GREETS)
    go.set()
    await one.alone.settle()
    assert one.alone.said == f"what would change in {REFUND} is not shown, as you went on"
    assert one.alone.window.timers[-1].stopped and one.alone.window.screen is one.alone.list


async def test_the_change_is_shown_written_and_taken_back(tmp_path: Path) -> None:
    accepting = Accepting(await on_project(tmp_path))
    alone, before = accepting.alone, accepting.file.read_text()
    await accepting.press("case.accept")
    title, diff, unable = alone.dialog.arguments
    assert (
        title == f"Accept the answer of {REFUND}: 1 change" and unable == [] and alone.dialog.options["edits"]
    )
    assert "-    expected: {should_contain: [refund]}" in diff
    assert accepting.file.read_text() == before  # only shown so far
    await alone.answer("write")
    after = accepting.file.read_text()
    assert after != before and alone.suites.reloads == [["support.yaml"]]
    assert alone.said == "support.yaml written: r runs it, Z undoes it"
    await accepting.press("case.take_back")
    assert accepting.file.read_text() == before and alone.said == "as it was: support.yaml"
    assert alone.suites.reloads == [["support.yaml"]] * 2
    await accepting.press("case.take_back")
    assert alone.said == "there is no accepted answer to take back"


async def test_the_change_can_be_left_or_made_by_hand(tmp_path: Path) -> None:
    accepting = Accepting(await on_project(tmp_path))
    before = accepting.file.read_text()
    await accepting.press("case.accept")
    await accepting.alone.answer(None)
    assert accepting.file.read_text() == before and not accepting.edited
    await accepting.press("case.accept")
    await accepting.alone.answer("edit")
    assert accepting.file.read_text() == before and accepting.edited == 1


async def test_a_file_that_was_changed_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    accepting = Accepting(await on_project(tmp_path))
    await accepting.press("case.accept")
    mine = accepting.file.read_text() + "# mine\n"
    accepting.file.write_text(mine)
    await accepting.alone.answer("write")
    assert accepting.file.read_text() == mine and accepting.alone.window.toasts
    assert "written" not in accepting.alone.said and accepting.alone.suites.reloads == []
    await accepting.press("case.take_back")
    assert accepting.alone.said == "there is no accepted answer to take back"


async def test_what_was_edited_after_it_was_accepted_is_not_taken_back(tmp_path: Path) -> None:
    accepting = Accepting(await on_project(tmp_path))
    await accepting.press("case.accept")
    await accepting.alone.answer("write")
    mine = accepting.file.read_text() + "# mine\n"
    accepting.file.write_text(mine)
    await accepting.press("case.take_back")
    assert accepting.file.read_text() == mine and not accepting.alone.said.startswith("as it was")


async def test_there_is_nothing_to_accept_of_what_passed_or_never_ran(tmp_path: Path) -> None:
    accepting = Accepting(await on_project(tmp_path))
    alone = accepting.alone
    alone.go_to(CALMS)
    await accepting.press("case.accept")
    assert alone.said == "there is no finished attempt to accept"
    run = LiveRun(alone.root, [REFUND])
    run.all_done(["passed"])
    alone.show_run(run.folder)
    alone.go_to(REFUND)
    await accepting.press("case.accept")
    assert alone.said == "it has passed: there is nothing to change"
    run = LiveRun(alone.root, [REFUND])
    run.all_done(["failed"])  # by no assertion
    alone.show_run(run.folder)
    await accepting.press("case.accept")
    assert alone.said == "nothing of the case failed that a change would mend"
    alone.list.hidden = {row.key for row in alone.list.all_entries()}
    await accepting.press("case.accept")
    assert alone.said == "put the cursor on a case first"
    assert isinstance(alone.window.screen, FakeList)
