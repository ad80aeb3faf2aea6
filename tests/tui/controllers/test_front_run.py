"""Which run is in front, what goes beside it, what its end and its disk say, and what other processes make of runs."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.alone import Alone, FakeTimer, on_project
from tests.support.live_run import LiveRun
from tui_eval.causes import NEEDS_TRUST
from tui_eval.engine.service.process import tell_where
from tui_eval.model import Evidence
from tui_eval.store.index import Index
from tui_eval.store.notes import Notes
from tui_eval.store.schema import FOR_PERSON, PLACE_LOST
from tui_eval.store.write_thread import LEFT_OUT
from tui_eval.tui.controllers.front_run import DISK_SECONDS, OWN, OtherEngines
from tui_eval.tui.front import RunChanged, SuitesChanged
from tui_eval.tui.loaders.follower import Follower, RunNews
from tui_eval.tui.loaders.runs_loader import delete
from tui_eval.tui.state.lists.entries import run_entries, suite_entries
from tui_eval.tui.state.runs.run_view import RunView

REFUND, GREETS, CALMS = "refund is approved", "greets by name", "calms an angry customer"
FULL = "run.db: database or disk is full"


@pytest.fixture
async def alone(tmp_path: Path):
    one = await on_project(tmp_path)
    yield one
    one.front_run.stop()


def begun(alone: Alone, *names: str, **options: Any) -> LiveRun:
    """A run whose first attempt has begun."""
    run = LiveRun(alone.root, list(names or (REFUND, GREETS)), **options)
    run.start(0)
    run.writer.flush()
    return run


async def follow(alone: Alone, run: LiveRun, **how: bool) -> None:
    """Follow a run and wait until it has been read."""
    run.writer.flush()
    alone.front_run.follow(run.folder, **how)
    await alone.until(lambda: alone.state.find_run(run.info.id) is not None)


async def end(alone: Alone, run: LiveRun, outcomes: str = "pf") -> None:
    """Let it end, and its news come."""
    for number, outcome in enumerate(outcomes[: len(run.cases)]):
        run.done(number, "passed" if outcome == "p" else "failed", "no" if outcome == "f" else "")
    run.finish()
    await alone.until(lambda: not _active(alone, run))
    await alone.settle()


def _active(alone: Alone, run: LiveRun) -> bool:
    view = alone.state.find_run(run.info.id)
    return view is not None and view.active


def in_front(alone: Alone) -> str:
    return alone.state.run.info.id if alone.state.run is not None else ""


# -- which is in front


async def test_a_run_that_is_followed_comes_to_the_front_and_screens_are_told(alone: Alone) -> None:
    run = begun(alone)
    await follow(alone, run)
    assert in_front(alone) == run.info.id and alone.runs.running
    assert any(isinstance(one, RunChanged) and one.opened for one in alone.list.heard)
    await end(alone, run)
    assert not alone.runs.running and alone.said.startswith("run ")
    heard = [one for one in alone.list.heard if isinstance(one, SuitesChanged)]
    assert sorted(heard[-1].case_ids or ()) == sorted(case.case_id for case in run.cases)
    assert [len(item.history) for item in alone.state.rows] == [1, 1, 0]


async def test_the_end_of_the_run_that_is_looked_at_is_not_said(alone: Alone) -> None:
    run = begun(alone)
    await follow(alone, run)
    alone.places.show("run")
    before = list(alone.notices.lines)
    await end(alone, run, "pp")
    assert list(alone.notices.lines) == before


async def test_one_case_run_again_goes_beside_a_run_of_several(alone: Alone) -> None:
    run, one = begun(alone, REFUND, GREETS), begun(alone, CALMS)
    await follow(alone, run)
    await follow(alone, one, aside=True)
    assert in_front(alone) == run.info.id and alone.state.aside.find_run(one.info.id) is not None
    await end(alone, one)
    assert alone.state.aside.find_run(one.info.id) is None  # a part of the past now
    assert one.info.id not in alone.front_run.followers and in_front(alone) == run.info.id


async def test_a_larger_run_takes_the_place_of_a_single_case(alone: Alone) -> None:
    one, run = begun(alone, CALMS), begun(alone, REFUND, GREETS)
    await follow(alone, one)
    await follow(alone, run, aside=True)
    await alone.until(lambda: in_front(alone) == run.info.id)


@pytest.mark.real
async def test_a_part_of_the_run_in_front_is_shown_within_it(alone: Alone) -> None:
    run = begun(alone)
    await follow(alone, run)
    await end(alone, run)
    part = begun(alone, REFUND, linked_to=run.info.id)
    await follow(alone, part)
    assert in_front(alone) == part.info.id
    assert alone.state.group is not None and len(alone.state.group.runs) == 2
    await end(alone, part, "p")


@pytest.mark.real
async def test_a_step_that_came_to_nothing_leaves_no_trace(alone: Alone) -> None:
    run = begun(alone)
    await follow(alone, run)
    await end(alone, run)
    step = begun(alone, REFUND, linked_to=run.info.id, options={"step": True})
    await follow(alone, step, aside=True)
    step.done(0, "cancelled")
    step.finish()
    await alone.until(lambda: not _active(alone, step))
    await alone.settle()
    assert alone.state.find_run(step.info.id) is None and in_front(alone) == run.info.id


async def test_runs_that_a_run_builds_on_are_read_with_it(alone: Alone) -> None:
    first = begun(alone)
    first.all_done(["failed", "passed"])
    part = begun(alone, REFUND, linked_to=first.info.id)
    await follow(alone, part)
    await alone.settle()
    assert alone.state.group is not None and alone.state.group.find_run(first.info.id) is not None


async def test_a_run_that_is_opened_is_shown_over_what_is_in_front_and_not_read_twice(alone: Alone) -> None:
    run = begun(alone)
    run.all_done(["passed", "failed"])
    alone.places.show("runs")
    alone.front_run.open(run.folder)
    await alone.until(lambda: in_front(alone) == run.info.id)
    follower = alone.front_run.followers[run.info.id]
    alone.front_run.open(run.folder)
    assert alone.front_run.followers[run.info.id] is follower
    assert [screen.kind for screen in alone.window.stack] == ["suites", "runs", "run"]


async def test_the_newest_run_at_work_is_followed_by_itself_and_one_that_has_ended_is_not(
    alone: Alone,
) -> None:
    LiveRun(alone.root, [CALMS]).all_done(["passed"])
    alone.front_run.follow_what_runs()
    await alone.settle()
    assert not alone.front_run.followers
    step = begun(alone, CALMS, options={"step": True})
    alone.front_run.follow_what_runs()
    await alone.settle()
    assert not alone.front_run.followers  # a step takes no other run's place
    step.finish()
    run = begun(alone)
    alone.front_run.follow_what_runs()
    await alone.until(lambda: in_front(alone) == run.info.id)
    assert "a run goes on: L shows it" in [text for _, _, text in alone.notices.lines]
    alone.front_run.follow_what_runs()
    await alone.settle()
    assert list(alone.front_run.followers) == [run.info.id]


async def test_a_step_whose_line_dropped_is_told_of_when_the_app_is_opened_again(alone: Alone) -> None:
    step = begun(alone, CALMS, options={"step": True})
    run = begun(alone)
    alone.front_run.follow_what_runs(left_steps=True)
    await alone.until(lambda: in_front(alone) == run.info.id and len(alone.state.active) == 2)
    assert alone.front_run.status.words.startswith("● 0/2")
    run.all_done(["passed", "passed"])
    await alone.until(lambda: len(alone.state.active) == 1)
    assert alone.front_run.status.words == f"step runs: {CALMS} b"
    alone.front_run.follow_what_runs(left_steps=True)
    await alone.settle()
    assert step.info.id in alone.front_run.followers and len(alone.state.active) == 1
    step.finish()


async def test_a_paused_run_that_is_followed_by_itself_is_not_said_to_go_on(alone: Alone) -> None:
    run = begun(alone)
    run.writer.state("paused")
    run.writer.flush()
    alone.front_run.follow_what_runs()
    await alone.until(lambda: in_front(alone) == run.info.id)
    assert "a run is paused: L shows it, P goes on" in [text for _, _, text in alone.notices.lines]
    assert alone.front_run.status.words.endswith("P goes on")


async def test_a_project_without_runs_has_no_newest(alone: Alone) -> None:
    assert not alone.front_run.open_newest() and not alone.front_run.followers


async def test_a_step_is_not_the_live_run(alone: Alone) -> None:
    run = begun(alone)
    run.done(0, "passed")
    run.done(1, "passed")
    run.finish()
    step = begun(alone, CALMS, options={"step": True})
    await follow(alone, step, aside=True)
    assert in_front(alone) == step.info.id
    await alone.press(alone.runs.handlers(), "place.run")
    await alone.until(lambda: in_front(alone) == run.info.id)
    assert [one.info.id for one in alone.state.active] == [step.info.id]


@pytest.mark.real
async def test_a_run_whose_place_in_front_another_takes_is_followed_to_its_end(alone: Alone) -> None:
    run, later = begun(alone), begun(alone, CALMS)
    await follow(alone, run)
    await follow(alone, later)
    assert in_front(alone) == later.info.id
    assert {one.info.id for one in alone.state.active} == {run.info.id, later.info.id}
    await end(alone, later, "p")
    await alone.settle()
    assert alone.front_run.status.words == "● 0/2 L"
    await end(alone, run)
    await alone.settle()
    assert alone.state.active == [] and not alone.state.aside.runs
    assert alone.front_run.status.words == ""


async def test_a_run_beside_the_one_in_front_that_is_opened_stands_in_one_place(alone: Alone) -> None:
    run, later = begun(alone), begun(alone, CALMS)
    await follow(alone, run)
    await follow(alone, later)
    alone.front_run.open(run.folder)
    await alone.until(lambda: in_front(alone) == run.info.id)
    assert [one.info.id for one in alone.state.aside.runs] == [later.info.id]
    assert len(alone.state.active) == 2


# -- its end


async def test_who_looks_elsewhere_hears_the_end_and_the_persons_command_is_run(alone: Alone) -> None:
    said = alone.root / "said"
    alone.core.settings.notify = f'printf "%s|%s" "$TUI_EVAL_RUN" "$TUI_EVAL_SUMMARY" > "{said}"'
    run = begun(alone)
    await follow(alone, run)
    alone.window.app_focus = False
    await end(alone, run)
    assert "bell" in alone.window.done
    await alone.until(said.exists)
    assert said.read_text().startswith(f"{run.info.id}|")


async def test_a_command_that_fails_is_logged(alone: Alone) -> None:
    alone.core.settings.notify = "exit 7"
    run = begun(alone)
    await follow(alone, run)
    alone.window.app_focus = False
    await end(alone, run)
    assert any(text == "notify: exit 7: exit code 7" for _, _, text in alone.notices.lines)


async def test_who_looks_at_it_hears_no_bell(alone: Alone) -> None:
    run = begun(alone)
    await follow(alone, run)
    await end(alone, run)
    assert alone.window.done == []


async def test_errors_are_logged_by_name_and_what_they_wait_for_is_asked(alone: Alone) -> None:
    run = begun(alone)
    await follow(alone, run)
    run.done(
        0, "error", "agent.py needs trust", evidence=[Evidence("rule", code=NEEDS_TRUST, text="run agent.py")]
    )
    run.done(1, "passed")
    run.finish()
    await alone.until(lambda: bool(alone.trust_asked))
    assert alone.trust_asked == [["run agent.py"]]
    assert any(f"{REFUND}: agent.py needs trust" in text for _, _, text in alone.notices.lines)


async def test_a_run_whose_engine_died_says_how_to_go_on(alone: Alone) -> None:
    run = begun(alone)
    await follow(alone, run)
    run.writer.state("interrupted", time.time())
    run.writer.close()
    await alone.until(lambda: not _active(alone, run))
    assert (
        f"run {run.info.id} was interrupted: its engine has ended (H, then u goes on;"
        in alone.notices.lines[-1][2]
    )


async def test_a_run_whose_cluster_was_lost_says_that_going_on_asks_where(alone: Alone) -> None:
    run = begun(alone)
    await follow(alone, run)
    run.info.provenance[PLACE_LOST] = 0
    run.info.note = "ray: the cluster at 10.0.0.3:6379 is gone"
    run.writer.state("interrupted", time.time())
    run.writer.close()
    await alone.until(lambda: not _active(alone, run))
    assert (
        f"run {run.info.id} was interrupted: ray: the cluster at 10.0.0.3:6379 is gone (H, then u asks where to go on;"
        in alone.notices.lines[-1][2]
    )


async def test_a_run_that_cannot_be_read_is_said(alone: Alone) -> None:
    class Unreadable(Follower):
        def take(self) -> RunNews:
            return RunNews("nowhere", error="nowhere: is no run")

    alone.front_run.followers["nowhere"] = Unreadable(alone.front_run, alone.root / "nowhere")
    alone.front_run.take_news()
    assert alone.said == "nowhere: is no run" and alone.state.run is None


async def test_who_is_waited_for_is_called(alone: Alone) -> None:
    run = begun(alone)
    await follow(alone, run)
    run.writer.live(run.refs[0][0], "note", "approve the tool in the browser", name=FOR_PERSON)
    await alone.until(lambda: any("approve the tool" in toast for toast in alone.window.toasts))


# -- the words in every footer


async def test_how_far_it_is_stands_in_every_footer_while_it_goes_on(alone: Alone) -> None:
    run = begun(alone)
    assert alone.front_run.status.words == ""
    await follow(alone, run)
    (timer,) = [one for one in alone.window.timers if one.seconds == 1.0]
    drawn = alone.list.footer.drawn
    assert alone.front_run.status.words.startswith("● 0/2") and drawn >= 1
    timer.ring()
    assert alone.list.footer.drawn == drawn  # nothing new: nothing is drawn
    run.done(0, "failed", "no")
    await alone.until(lambda: "✗1" in alone.front_run.status.words)
    timer.ring()
    assert alone.list.footer.drawn == drawn + 1
    await end(alone, run)
    timer.ring()
    assert timer.stopped and alone.front_run.status.words == ""


# -- a disk that takes no more


async def looked(alone: Alone) -> None:
    (timer,) = [one for one in alone.window.timers if one.seconds == DISK_SECONDS]
    timer.ring()
    await alone.until(lambda: not alone.front_run.disks.asks)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (FULL, "Make room there; nothing finished is lost"),
        ("run.db: disk I/O error", "Nothing finished is lost"),
        (f"run.db: {LEFT_OUT}: attempt 3", "the rest of the run is kept"),
    ],
)
async def test_trouble_of_the_disk_is_said_once_and_that_it_has_gone(
    alone: Alone, trouble: str, words: str
) -> None:
    run = begun(alone)
    await follow(alone, run)
    alone.engine.troubles = {run.info.id: trouble}
    await looked(alone)
    await looked(alone)
    said = [text for _, level, text in alone.notices.lines if level == "error"]
    assert len(said) == 1 and said[0].startswith(trouble) and words in said[0]
    assert alone.state.run is not None and alone.state.run.trouble == trouble
    alone.engine.troubles = {}
    await looked(alone)
    assert alone.said == "there is room again: everything the run found is kept"


async def test_an_engine_that_takes_no_orders_is_not_asked(alone: Alone) -> None:
    run = begun(alone)
    await follow(alone, run)
    alone.core.engines.out_of_reach.add(run.info.id)
    alone.engine.troubles = {run.info.id: FULL}
    await looked(alone)
    assert not [text for _, level, text in alone.notices.lines if level == "error"]


class ItsEngine:
    """The engine of a run that another process executes: who is connected to it."""

    def __init__(self, run: LiveRun, socket: Path) -> None:
        self._run, self._socket = run, socket
        self.connected = self.ever = 0

    async def __aenter__(self) -> ItsEngine:
        self._server = await asyncio.start_unix_server(self._serve, str(self._socket))
        tell_where(self._run.folder, self._socket)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connected, self.ever = self.connected + 1, self.ever + 1
        await reader.read()
        self.connected -= 1
        writer.close()


@pytest.fixture
def socket() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:  # a short one: a socket's path has room for 100 letters
        yield Path(name) / "engine-1-abcdef.sock"


async def test_an_engine_is_let_go_when_its_run_has_ended(alone: Alone, socket: Path) -> None:
    run = begun(alone)
    async with ItsEngine(run, socket) as engine:
        for times in (1, 2):  # shown again, it is attached to once
            alone.front_run.begin_with(run.folder)
            await alone.until(lambda times=times: engine.ever == times and engine.connected == 1)
        view = alone.state.find_run(run.info.id)
        assert view is not None and alone.core.engines.of(view) is not alone.engine
        await end(alone, run)
        await alone.until(lambda: engine.connected == 0)
        assert alone.core.engines.of(view) is alone.engine


async def test_a_run_that_took_no_orders_takes_them_where_it_is_gone_on_with_here(alone: Alone) -> None:
    run = begun(alone)
    alone.front_run.begin_with(run.folder)
    await alone.until(lambda: run.info.id in alone.core.engines.out_of_reach)
    await end(alone, run)
    assert not alone.core.engines.out_of_reach


# -- other processes


def elsewhere(alone: Alone) -> OtherEngines:
    alone.front_run.history_read_at = -1000.0
    return OtherEngines(alone.core, alone.front_run, lambda: None)


async def test_a_run_that_another_process_began_is_followed_and_the_past_read_anew(alone: Alone) -> None:
    other = elsewhere(alone)
    LiveRun(alone.root, [REFUND]).all_done(["failed"])
    run = begun(alone, GREETS)
    other.changed([str(run.folder.parent)])
    await alone.until(lambda: in_front(alone) == run.info.id)
    await alone.settle()
    assert [len(item.history) for item in alone.state.rows] == [1, 0, 0]


async def test_notes_are_looked_at_and_read_again(alone: Alone) -> None:
    read: list[bool] = []
    other = OtherEngines(alone.core, alone.front_run, lambda: read.append(True))
    notes = str(Notes(alone.root).path)
    assert notes in {*other.files()}
    other.changed([notes])
    await alone.until(lambda: bool(read))


async def test_of_a_run_that_was_deleted_neither_the_suites_nor_the_run_in_front_say_anything(
    alone: Alone,
) -> None:
    kept = begun(alone, CALMS)
    await follow(alone, kept)
    await end(alone, kept)
    run = begun(alone)
    await follow(alone, run)
    await end(alone, run)
    assert [len(item.history) for item in alone.state.rows] == [1, 1, 1] and in_front(alone) == run.info.id
    assert not delete(alone.root, [run.info.id])  # `D`, here or in another app, or `prune`
    elsewhere(alone).changed(["index.db"])
    await alone.settle()
    assert [len(item.history) for item in alone.state.rows] == [0, 0, 1]
    assert alone.state.run is None and alone.state.group is None
    assert [row.status for row in suite_entries(alone.state)] == ["", "", "passed"]


async def test_of_a_step_that_was_deleted_the_lines_are_drawn_as_before_it(alone: Alone) -> None:
    """The head said so, and they stood as they were: the run in front is still another step."""
    run = begun(alone)
    await follow(alone, run)
    await end(alone, run, "ff")
    step = begun(alone, REFUND, linked_to=run.info.id)
    await follow(alone, step)
    await end(alone, step, "p")
    last = begun(alone, GREETS, linked_to=run.info.id)
    await follow(alone, last)
    await end(alone, last, "f")
    group = alone.state.group
    assert group is not None and [row.status for row in run_entries(group, alone.state)] == [
        "passed",
        "failed",
    ]
    assert not delete(alone.root, [step.info.id])
    alone.list.heard.clear()
    elsewhere(alone).changed(["index.db"])
    await alone.settle()
    assert in_front(alone) == last.info.id
    assert [row.status for row in run_entries(group, alone.state)] == ["failed", "failed"]
    heard = [one.case_ids for one in alone.list.heard if isinstance(one, SuitesChanged)]
    assert {case.case_id for case in step.cases} in heard


async def test_what_another_app_added_while_something_else_went_on_is_taken_in(alone: Alone) -> None:
    """Suites showed it, and the run in front what was before."""
    run = begun(alone)
    await follow(alone, run)
    await end(alone, run, "ff")
    part = begun(alone, GREETS, linked_to=run.info.id)
    await follow(alone, part)
    other = LiveRun(alone.root, [REFUND], linked_to=run.info.id)
    other.all_done(["passed"])  # nobody here has followed it
    await end(alone, part, "f")
    elsewhere(alone).changed(["index.db"])
    await alone.settle()
    group = alone.state.group
    assert group is not None and [one.info.id for one in group.runs] == [
        run.info.id, part.info.id, other.info.id,
    ]  # fmt: skip
    assert [row.status for row in run_entries(group, alone.state)] == ["passed", "failed"]
    assert in_front(alone) == part.info.id and other.info.id not in alone.front_run.followers
    heard = [one for one in alone.list.heard if isinstance(one, RunChanged) and one.run_id == other.info.id]
    assert [row.outcome for one in heard for row in one.changed] == ["passed"]  # its line is drawn anew


async def test_nothing_is_added_to_a_run_that_was_opened_alone(alone: Alone) -> None:
    run = begun(alone)
    await follow(alone, run)
    await end(alone, run, "ff")
    LiveRun(alone.root, [REFUND], linked_to=run.info.id).all_done(["passed"])
    elsewhere(alone).changed(["index.db"])
    await alone.settle()
    assert alone.state.group is not None and [one.info.id for one in alone.state.group.runs] == [run.info.id]


async def test_an_index_that_cannot_be_read_takes_no_results_away(alone: Alone, monkeypatch) -> None:
    run = begun(alone)
    await follow(alone, run)
    await end(alone, run)
    monkeypatch.setattr(Index, "latest", lambda *_: {})
    elsewhere(alone).changed(["index.db"])
    await alone.settle()
    assert [len(item.history) for item in alone.state.rows] == [1, 1, 0] and in_front(alone) == run.info.id


async def test_the_apps_own_run_is_no_news(alone: Alone) -> None:
    run = begun(alone)
    await follow(alone, run)
    alone.front_run.history_read_at = -1000.0
    elsewhere(alone).changed([str(run.folder.parent)])
    await alone.settle()
    assert alone.front_run.history_read_at == -1000.0


async def test_news_right_after_the_apps_own_are_looked_at_again_later(alone: Alone) -> None:
    other = elsewhere(alone)
    LiveRun(alone.root, [REFUND]).all_done(["failed"])
    alone.front_run.history_read_at = time.monotonic()
    other.changed(["index.db"])
    await alone.settle()
    assert [len(item.history) for item in alone.state.rows] == [0, 0, 0]
    (timer,) = [one for one in alone.window.timers if one.seconds == OWN]
    assert isinstance(timer, FakeTimer)
    alone.front_run.history_read_at = -1000.0
    timer.ring()
    await alone.settle()
    assert [len(item.history) for item in alone.state.rows] == [1, 0, 0]


async def test_the_run_in_front_that_is_gone_on_with_elsewhere_is_followed_again(alone: Alone) -> None:
    run = begun(alone)
    run.all_done(["passed", "failed"])
    alone.show_run(run.folder)
    assert isinstance(alone.state.run, RunView) and not alone.front_run.followers
    other = elsewhere(alone)
    assert str(run.folder / "run.db") in set(other.files())
    other.changed([str(run.folder / "run.db")])
    await alone.settle()
    assert run.info.id in alone.front_run.followers


async def test_files_are_looked_at_from_the_beginning_to_the_end(alone: Alone) -> None:
    other = elsewhere(alone)
    assert other.looked_at == 0
    other.begin()
    other.begin()
    assert other.looked_at >= 3
    other.stop()
