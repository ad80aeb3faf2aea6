"""Ways out: what each key closes, what is asked while a run goes on, what every answer does, what is kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.alone import Alone, FakePlace, on_project
from tests.support.live_run import LiveRun
from tui_eval.store.schema import RunState
from tui_eval.store.shard_runs import looked_at_home
from tui_eval.tui.controllers.quit import QuitController
from tui_eval.tui.services import Window
from tui_eval.tui.state.runs.run_group import RunGroup

LEFT = ("left", 0, "")


class Leaving:
    """The controller, how often it had things remembered, and whether it has left."""

    def __init__(self, alone: Alone) -> None:
        self.alone, self.remembered = alone, 0
        self.quit = QuitController(
            cast(Window, alone.window), alone.core, alone.places, alone.runs, self._remember
        )

    def _remember(self) -> None:
        self.remembered += 1

    async def press(self, key_id: str) -> None:
        await self.alone.press(self.quit.handlers(), key_id)

    @property
    def done(self) -> list[Any]:
        return self.alone.window.done


@pytest.fixture
async def leaving(tmp_path: Path) -> Leaving:
    return Leaving(await on_project(tmp_path, "passed"))


def at_work(alone: Alone, root: Path | None = None) -> LiveRun:
    run = LiveRun(root or alone.root, ["refund is approved"])
    run.start(0)
    run.writer.flush()
    alone.show_run(run.folder)
    return run


@pytest.mark.parametrize("key", ["quit"])
async def test_a_place_is_closed_and_the_suites_are_left(leaving: Leaving, key: str) -> None:
    alone = leaving.alone
    alone.places.show("runs")
    await leaving.press(key)
    assert alone.window.screen is alone.list and leaving.done == []
    await leaving.press(key)
    assert leaving.done == [LEFT] and leaving.remembered == 1


async def test_a_dialog_is_closed_as_one_that_was_not_answered(leaving: Leaving) -> None:
    answers: list[Any] = []
    leaving.alone.places.ask("Sure?", [("y", "yes", "yes")], answers.append)
    await leaving.press("quit")
    assert answers == [None] and leaving.done == [] and leaving.alone.window.screen is leaving.alone.list


async def test_the_live_run_is_closed_where_it_has_ended_and_asked_about_while_it_goes_on(
    leaving: Leaving,
) -> None:
    alone = leaving.alone
    alone.places.show("run")
    await leaving.press("quit")
    assert alone.window.screen is alone.list
    at_work(alone)
    alone.places.show("run")
    await leaving.press("quit")
    assert alone.question == "A run goes on." and alone.offered == ["detach", "stop", "stay"]


@pytest.mark.parametrize("answer", ["stay", None])
async def test_a_run_that_goes_on_is_asked_about_and_who_stays_stays(
    leaving: Leaving, answer: str | None
) -> None:
    at_work(leaving.alone)
    await leaving.press("quit")
    await leaving.alone.answer(answer)
    assert leaving.done == [] and not leaving.remembered and leaving.alone.engine.cancelled == []


async def test_who_detaches_is_told_the_way_back(leaving: Leaving) -> None:
    run = at_work(leaving.alone)
    await leaving.press("quit")
    await leaving.alone.answer("detach")
    assert leaving.done == [("left", 0, f"run {run.info.id} goes on; `tui-eval attach` comes back to it")]
    assert leaving.alone.engine.cancelled == []


async def test_a_paused_run_is_not_said_to_go_on(leaving: Leaving) -> None:
    run = LiveRun(leaving.alone.root, ["refund is approved"])
    run.writer.state("paused")
    run.writer.flush()
    leaving.alone.show_run(run.folder)
    await leaving.press("quit")
    assert leaving.alone.question == "A run is paused." and leaving.alone.offered == [
        "detach",
        "stop",
        "stay",
    ]
    await leaving.alone.answer("detach")
    words = f"run {run.info.id} is paused; `tui-eval` comes back to it, P there goes on"
    assert leaving.done == [("left", 0, words)]


async def test_who_stops_it_cancels_it_first(leaving: Leaving) -> None:
    run = at_work(leaving.alone)
    await leaving.press("quit")
    await leaving.alone.answer("stop")
    assert leaving.alone.engine.cancelled == [(run.info.id, None)] and leaving.done == [LEFT]


async def test_an_engine_that_does_not_answer_keeps_nobody_here(leaving: Leaving) -> None:
    async def refuses(run_id: str, refs: Any = None) -> int:
        raise OSError("gone")

    at_work(leaving.alone)
    leaving.alone.engine.cancel = refuses  # type: ignore[method-assign]
    await leaving.press("quit")
    await leaving.alone.answer("stop")
    assert leaving.done == [LEFT] and "gone" in leaving.alone.said


async def test_a_run_of_another_program_cannot_be_stopped_from_here(leaving: Leaving) -> None:
    run = at_work(leaving.alone)
    leaving.alone.core.engines.out_of_reach.add(run.info.id)
    await leaving.press("quit")
    assert leaving.alone.offered == ["detach", "stay"]


async def test_a_run_that_is_only_planned_is_asked_about_too(leaving: Leaving) -> None:
    leaving.alone.runs.run_all()
    assert leaving.alone.runs.starting and not leaving.alone.state.active
    leaving.quit.quit()
    assert leaving.alone.question == "A run goes on." and leaving.done == []
    await leaving.alone.answer("stay")
    leaving.alone.front_run.stop()


async def test_detaching_asks_nothing_and_says_what_goes_on(leaving: Leaving) -> None:
    await leaving.press("detach")
    run = at_work(leaving.alone)
    await leaving.press("detach")
    words = f"run {run.info.id} goes on; `tui-eval attach` comes back to it"
    assert leaving.done == [LEFT, ("left", 0, words)] and leaving.remembered == 2


@pytest.fixture
def gathered(leaving: Leaving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of which each run is one of shards that are only looked at."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = looked_at_home() / "shards"
    place.mkdir(parents=True)
    return place


@pytest.mark.parametrize("state", ["running", "paused"])
@pytest.mark.parametrize("key", ["quit", "detach", "copy_or_quit"])
async def test_shards_that_are_only_looked_at_go_and_no_way_back_is_told(
    leaving: Leaving, gathered: Path, key: str, state: RunState
) -> None:
    run = at_work(leaving.alone, gathered)
    run.writer.state(state)
    run.writer.flush()
    leaving.alone.show_run(run.folder)
    assert leaving.alone.state.active
    await leaving.press(key)
    if key == "copy_or_quit":
        assert leaving.alone.question == "Quit?"
        await leaving.alone.answer("quit")
    assert leaving.done == [LEFT]


def beside_shards(leaving: Leaving, gathered: Path) -> LiveRun:
    """A run that is at work beside shards that are looked at, which stand in front."""
    own = at_work(leaving.alone)
    assert leaving.alone.state.run is not None
    leaving.alone.state.aside = RunGroup([leaving.alone.state.run])
    at_work(leaving.alone, gathered)
    return own


async def test_a_run_beside_shards_that_are_looked_at_is_the_one_that_is_asked_about(
    leaving: Leaving, gathered: Path
) -> None:
    own = beside_shards(leaving, gathered)
    leaving.alone.core.engines.out_of_reach.add(own.info.id)
    await leaving.press("quit")
    assert leaving.alone.question == "A run goes on." and leaving.alone.offered == ["detach", "stay"]
    await leaving.alone.answer("detach")
    assert leaving.done == [("left", 0, f"run {own.info.id} goes on; `tui-eval attach` comes back to it")]


async def test_who_stops_a_run_asks_nothing_of_shards_that_are_looked_at(
    leaving: Leaving, gathered: Path
) -> None:
    own = beside_shards(leaving, gathered)
    await leaving.press("quit")
    await leaving.alone.answer("stop")
    assert leaving.alone.engine.cancelled == [(own.info.id, None)] and leaving.done == [LEFT]


async def test_what_is_selected_is_copied_and_nothing_is_left(leaving: Leaving, monkeypatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    leaving.alone.list.selected = "some\x1b text"
    await leaving.press("copy_or_quit")
    ((what, text),) = leaving.done
    assert what == "copied" and text.startswith("some") and "\x1b" not in text
    assert leaving.alone.said.startswith("selection: ")


async def test_where_nothing_is_selected_quitting_is_asked_about(leaving: Leaving) -> None:
    for answer in ("stay", None):
        await leaving.press("copy_or_quit")
        assert leaving.alone.question == "Quit?"
        await leaving.alone.answer(answer)
        assert leaving.done == []
    await leaving.press("copy_or_quit")
    await leaving.alone.answer("quit")
    assert leaving.done == [LEFT]
    at_work(leaving.alone)
    await leaving.press("copy_or_quit")
    assert leaving.alone.question == "A run goes on."


async def test_to_the_shell_only_where_there_is_one(leaving: Leaving, monkeypatch) -> None:
    monkeypatch.setattr(os, "getpgrp", lambda: 1)
    monkeypatch.setattr(os, "getsid", lambda pid: 1)
    await leaving.press("suspend")
    assert leaving.done == [] and leaving.alone.said.startswith("there is no shell behind the app")
    monkeypatch.setattr(os, "getsid", lambda pid: 2)
    await leaving.press("suspend")
    assert leaving.done == ["suspended"]


async def test_a_signal_leaves_with_its_code_whatever_goes_on(leaving: Leaving) -> None:
    at_work(leaving.alone)
    leaving.alone.window.stack.append(FakePlace("case"))
    leaving.quit.leave_by_signal(143)
    assert leaving.done == [("left", 143, "")] and leaving.remembered == 1
