"""Keys that come together, as on a slow line: each does what it does when typed slowly."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.screen import Screen

from tests.support.app_host import running_app, until
from tests.support.live_run import FakeEngine, project
from tests.tui.screens.test_runs_screen import write_runs
from tui_eval.store.run_folders import Store
from tui_eval.tui.loaders import compare_loader
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.compare_screen import CompareScreen
from tui_eval.tui.screens.dialogs import AskScreen
from tui_eval.tui.screens.prompt import TypedLine
from tui_eval.tui.screens.run_dialog import RunDialog
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.screens.runs_screen import RunsScreen
from tui_eval.tui.screens.search_screen import SearchScreen
from tui_eval.tui.screens.sides import SidesScreen
from tui_eval.tui.screens.suites_screen import SuitesScreen
from tui_eval.tui.state.lists.filtering import parse


def type_at_once(app, *keys: str) -> None:
    """All keys reach the app before it has looked at the first."""
    for key in keys:
        name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
        app.post_message(events.Key(name, key if len(key) == 1 else None))


async def handled(app, pilot) -> None:
    """Until the last key typed has had its effect."""
    seen = asyncio.Event()
    app.call_later(seen.set)
    await seen.wait()
    await until(lambda: not app.typed_ahead, pilot)


async def test_an_answer_typed_with_its_question_answers_it(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["passed"] * 3, ["failed"] * 3)
    async with running_app(root) as (app, pilot):
        type_at_once(app, "H", "g", "O", "y")
        await until(lambda: not list(Store(root).run_folders()), pilot)
        await handled(app, pilot)
        assert isinstance(app.screen, RunsScreen) and not app.screen.lines


@pytest.mark.real
async def test_two_questions_in_a_row_are_about_two_runs(tmp_path):
    root = project(tmp_path)
    folders = write_runs(root, ["passed"] * 3, ["passed"] * 3, ["failed"] * 3)
    async with running_app(root) as (app, pilot):
        type_at_once(app, "H", "D", "y", "D", "n", "D", "y", "j")
        await until(lambda: not folders[1].exists(), pilot)
        await handled(app, pilot)
        assert list(Store(root).run_folders()) == [folders[0]]
        assert not [one for one in app.notices.lines if one[1] == "error"]


@pytest.mark.parametrize("key", ["/", "f"])
async def test_words_typed_with_the_prompt_s_key_are_its_words(tmp_path, key):
    async with running_app(project(tmp_path)) as (app, pilot):
        type_at_once(app, key, *"quit a run", "enter", "j")
        await handled(app, pilot)
        place = app.screen
        assert (place.finder.found if key == "/" else place.expression) == "quit a run"
        assert not app.services.engines.own.requests and not place.query("Prompt")


async def test_a_dialog_s_fields_take_what_was_typed_before_it_opened(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        type_at_once(app, "A", *"one,a", "tab", *"m:1")
        await handled(app, pilot)
        assert isinstance(app.screen, RunDialog)
        assert (app.screen.choice.agents, app.screen.choice.models) == ("one,a", "m:1")


async def test_pasted_text_keeps_its_place_among_the_keys(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        type_at_once(app, "f", "x")
        app.post_message(events.Paste(" pasted "))
        type_at_once(app, "y", "enter")
        await handled(app, pilot)
        assert app.screen.expression == "x pasted y" and parse(app.screen.expression)


@pytest.mark.parametrize("ends", ["\n", "\r", "\r\n"])
async def test_all_lines_of_a_pasted_text_are_typed_where_there_is_one_line(tmp_path, ends):
    async with running_app(project(tmp_path)) as (app, pilot):
        type_at_once(app, "f", "a", " ")
        app.post_message(events.Paste(f"the first{ends}  the second{ends}{ends}the last{ends}"))
        type_at_once(app, "enter")
        await handled(app, pilot)
        assert app.screen.expression == "a the first the second the last"
        type_at_once(app, "A")
        app.post_message(events.Paste(f"one,{ends}two"))
        await handled(app, pilot)
        assert app.screen.choice.agents == "one, two"


def test_a_pasted_text_of_many_blanks_holds_nothing_up():
    """Each of them was tried as the beginning of a line's end: 20,000 stopped the app for seconds."""
    begun = time.monotonic()
    assert TypedLine().pasted("a" + " " * 50_000 + "b \n c") == "a" + " " * 50_000 + "b c"
    assert time.monotonic() - begun < 5


async def test_what_is_typed_during_a_thread_s_answer_waits_for_it(tmp_path, monkeypatch):
    root = project(tmp_path)
    folders = write_runs(root, ["passed"] * 3, ["failed"] * 3)
    asked, answer, real = threading.Event(), threading.Event(), compare_loader.pairs_of

    def slow(folder):
        asked.set()
        assert answer.wait(60)
        return real(folder)

    monkeypatch.setattr(compare_loader, "pairs_of", slow)
    monkeypatch.setattr("tui_eval.tui.terminal.type_ahead.LONGEST", 60.0)
    async with running_app(root) as (app, pilot):
        type_at_once(app, "H", "c", "D", "y", "i")
        try:
            await until(asked.is_set)
            here: Screen = app.screen
            assert isinstance(here, RunsScreen) and app.typed_ahead
        finally:
            answer.set()
        await until(lambda: isinstance(app.screen, CompareScreen), pilot)
        await handled(app, pilot)
        assert app.screen.only == "changed" and all(folder.exists() for folder in folders)


@pytest.mark.real
async def test_an_answer_that_never_comes_does_not_keep_the_keys(tmp_path, monkeypatch):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed"] * 3)
    answer, real = threading.Event(), compare_loader.pairs_of
    monkeypatch.setattr(compare_loader, "pairs_of", lambda folder: answer.wait(60) and real(folder))
    monkeypatch.setattr("tui_eval.tui.terminal.type_ahead.LONGEST", 0.2)
    async with running_app(root) as (app, pilot):
        try:
            type_at_once(app, "H", "c", "escape")
            await until(lambda: any(isinstance(screen, RunsScreen) for screen in app.screen_stack))
            await until(lambda: not isinstance(app.screen, RunsScreen))
        finally:
            answer.set()
        await handled(app, pilot)


@pytest.mark.real
async def test_searching_and_opening_in_one_breath(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["failed", "passed", "error"])
    async with running_app(root) as (app, pilot):
        type_at_once(app, "H", "/", *"hel", "enter", "j", "enter", "2")
        await until(lambda: isinstance(app.screen, CaseScreen), pilot)
        await handled(app, pilot)
        assert any(isinstance(screen, SearchScreen) for screen in app.screen_stack)
        assert app.screen.tab_shown == 1 and app.screen.content.attempt is not None


@pytest.mark.real
async def test_from_the_runs_to_two_transcripts_in_one_breath(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["passed"] * 3, ["failed"] * 3)
    async with running_app(root) as (app, pilot):
        type_at_once(app, "H", "j", "space", "g", "space", "c", "enter")
        await until(lambda: isinstance(app.screen, SidesScreen), pilot)
        await handled(app, pilot)
        assert any(isinstance(screen, CompareScreen) for screen in app.screen_stack)


async def test_keys_after_run_mean_the_run(tmp_path, monkeypatch):
    class Slow(FakeEngine):
        def __init__(self, root):
            super().__init__(root)
            self.asked, self.go_on = asyncio.Event(), asyncio.Event()

        async def run(self, request):
            self.asked.set()
            await self.go_on.wait()
            return await super().run(request)

    monkeypatch.setattr("tui_eval.tui.terminal.type_ahead.LONGEST", 60.0)
    root = project(tmp_path)
    engine = Slow(root)
    async with running_app(root, engine=engine) as (app, pilot):
        type_at_once(app, "a", "U")
        await engine.asked.wait()
        await pilot.pause()
        assert app.typed_ahead and not any(isinstance(screen, RunScreen) for screen in app.screen_stack)
        engine.go_on.set()
        await handled(app, pilot)
        assert len(engine.requests) == 1 and not isinstance(app.screen, RunScreen | AskScreen)
        assert any(isinstance(screen, SuitesScreen) for screen in app.screen_stack)


async def test_the_focus_moves_before_the_next_key(tmp_path):
    root = project(tmp_path)
    write_runs(root, ["failed", "passed", "error"], ["failed", "failed", "passed"])
    async with running_app(root, (120, 40)) as (app, pilot):
        type_at_once(app, "H", "tab", "j", "j")
        await handled(app, pilot)
        assert isinstance(app.screen, RunsScreen)
        assert app.screen.detail.has_focus and app.screen.table.cursor == 0


async def test_a_run_of_the_same_key_moves_as_often(tmp_path):
    suite = "agent: offline\ntest_cases:\n" + "".join(
        f"  - {{name: case {number}, input: hi, expected: {{should_contain: [hi]}}}}\n"
        for number in range(60)
    )
    async with running_app(project(tmp_path, {"suites/many.yaml": suite})) as (app, pilot):
        before = app.screen.case_list.cursor
        type_at_once(app, *["j"] * 40)
        await handled(app, pilot)
        assert app.screen.case_list.cursor == before + 40
