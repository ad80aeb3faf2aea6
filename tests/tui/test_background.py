"""What a thread has read: given to whoever asked for it, unless that is being taken away."""

from __future__ import annotations

import asyncio
import threading
from contextlib import nullcontext

import pytest
from textual.app import ScreenStackError
from textual.css.query import NoMatches
from textual.widgets import Static

from tests.support.app_host import running_app, until
from tests.support.live_run import SUITE, project
from tui_eval.formats import reading
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.screens import screen_names
from tui_eval.tui.screens.place import Place
from tui_eval.tui.screens.suites_screen import SuitesScreen
from tui_eval.tui.state.run_requests import RunChoice


class Paper(Place):
    """A screen with one widget, into which what was read is put."""

    def compose(self):
        yield Static("nothing", id="words")

    def take(self, words: str) -> None:
        self.query_one("#words", Static).update(words)

    def take_wrongly(self, words: str) -> None:
        self.query_one("#nowhere", Static).update(words)


async def test_an_answer_reaches_the_screen_that_asked(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        paper = Paper()
        await app.push_screen(paper)
        seen: list[str] = []
        run_in_thread(app, lambda: "words", lambda words: (paper.take(words), seen.append(words)))
        await until(lambda: seen, pilot)
        assert str(paper.query_one(Static).render()) == "words"


async def test_works_of_a_queue_give_their_results_in_the_order_in_which_they_were_asked_for(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        seen: list[str] = []
        slow = threading.Event()

        def fail() -> str:
            raise OSError("no")

        run_in_thread(app, lambda: "first" if not slow.wait(0.3) else "", seen.append, queue="order")
        run_in_thread(app, fail, seen.append, lambda error: seen.append(str(error)), queue="order")
        run_in_thread(app, lambda: "last", seen.append, queue="order")
        run_in_thread(app, lambda: "other", seen.append, queue="another")
        await until(lambda: len(seen) == 4, pilot)
        assert seen == ["other", "first", "no", "last"]


@pytest.mark.real
async def test_of_two_readings_of_a_file_the_later_counts_however_long_the_earlier_takes(
    tmp_path, monkeypatch
):
    root = project(tmp_path)
    async with running_app(root) as (app, pilot):
        load, slow, texts = reading.load, threading.Event(), []

        def first_is_slow(path, *rest):
            suite = load(path, *rest)
            texts.append([case.name for case in reading.all_cases([suite])])
            if len(texts) == 1:
                slow.wait(1)
            return suite

        monkeypatch.setattr(reading, "load", first_is_slow)
        file = root / "suites/support.yaml"
        for name in ("one", "two"):
            file.write_text(SUITE.replace("greets by name", name))
            assert app.suites.reload(["suites/support.yaml"])
            await until(lambda: texts, pilot)
        await until(lambda: len(texts) == 2, pilot)
        await until(lambda: not any("loader" in one.name for one in threading.enumerate()), pilot)
        await pilot.pause()
        assert {item.name for item in app.state.by_id.values()} & {"one", "two"} == {"two"}


async def test_an_answer_for_a_screen_that_is_being_taken_away_is_for_nobody(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        paper, may, tried = Paper(), threading.Event(), []
        await app.push_screen(paper)

        def take(words: str) -> None:
            tried.append((paper.is_mounted, stands(paper), len(paper.children)))
            paper.take(words)

        run_in_thread(app, lambda: "late" if may.wait(60) else "", take)
        # As a screen is while it is popped: out of the stack and without its widgets, itself still mounted.
        app._screen_stacks[app.current_mode].remove(paper)
        await paper.query("*").remove()
        may.set()
        await until(lambda: tried, pilot)
        assert tried == [(True, False, 0)]
        await pilot.pause()
        assert app.is_running and not app.notices.lines and app.crash is None


async def test_a_widget_missing_on_a_screen_that_stands_is_no_secret(tmp_path):
    with pytest.raises(NoMatches):
        async with running_app(project(tmp_path)) as (app, pilot):
            paper = Paper()
            await app.push_screen(paper)
            run_in_thread(app, lambda: "words", paper.take_wrongly)
            await until(lambda: app.notices.lines, pilot)


async def test_an_exception_is_said_or_given_on(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):

        def fails() -> str:
            raise ValueError("broken disk")

        given: list[Exception] = []
        run_in_thread(app, fails, on_error=given.append)
        await until(lambda: given, pilot)
        assert not app.notices.lines
        run_in_thread(app, fails)
        await until(lambda: any("ValueError: broken disk" in text for _, _, text in app.notices.lines), pilot)


async def test_keys_typed_ahead_wait_for_what_a_thread_opens(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        may, opened = threading.Event(), []
        app.handling, app.openings = True, 0
        run_in_thread(app, lambda: may.wait(60), opened.append, opens=True)
        assert app.openings == 1
        may.set()
        await until(lambda: opened and app.openings == 0, pilot)


async def test_what_is_said_once_the_app_has_closed_is_logged_and_raises_nothing(tmp_path):
    async with running_app(project(tmp_path)) as (app, _pilot):
        notices, tasks = app.services.notices, app.services.tasks
        closed, said = asyncio.Event(), asyncio.Event()

        async def late() -> None:
            try:
                await closed.wait()
                notices.say("running, 1 attempt")
                _ = app.screen.size  # what the next step of such a task would do: there is no screen
            finally:
                said.set()

        tasks.soon(late())
    closed.set()
    await asyncio.wait_for(said.wait(), 30)
    await asyncio.sleep(0)
    assert notices.lines[-1][1:] == ("note", "running, 1 attempt")
    assert app._exception is None


OPENED = {
    "run": (),
    "run dialog": (RunChoice(), ["offline"], lambda choice: ("", True), "what"),
}


@pytest.mark.parametrize("name", OPENED)
@pytest.mark.parametrize("steps", range(2))
async def test_a_screen_that_is_left_while_it_is_mounted_fails_at_nothing(tmp_path, name, steps):
    """What it does once it is there needs widgets that it never gets, or has no more."""
    async with running_app(project(tmp_path)) as (app, pilot):
        app.push_screen(screen_names.make(name, *OPENED[name]))
        for _ in range(steps):  # of the loop: as far as it has come
            await asyncio.sleep(0)
        app.pop_screen()
        await pilot.pause()
        assert app.is_running and not app.notices.lines and isinstance(app.screen, SuitesScreen)
        app.push_screen(screen_names.make(name, *OPENED[name]))
        for _ in range(steps):
            await asyncio.sleep(0)


@pytest.mark.parametrize("closes", [True, False])
async def test_what_looks_for_the_screen_of_an_app_that_is_being_closed_fails_at_nothing(
    tmp_path, monkeypatch, closes
):
    """As a timer does that strikes when the last screen has been taken away and the app has not ended yet."""
    failed = ScreenStackError("No screens on stack")
    with nullcontext() if closes else pytest.raises(ScreenStackError):
        async with running_app(project(tmp_path)) as (app, _):
            with monkeypatch.context() as patch:
                if closes:
                    patch.setattr(app, "_running", False)
                app._handle_exception(failed)
            assert bool(app.notices.lines) is not closes
