"""The tour: once, on the very first start, over the person's suites; any key ends it for good."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import project
from tests.support.terminal import Terminal
from tests.tui.terminal.test_pty import START
from tui_eval.guard.trust_store import state_home
from tui_eval.tui.controllers import first_steps
from tui_eval.tui.keys import remap
from tui_eval.tui.screens.dialogs import AskScreen
from tui_eval.tui.screens.suites_screen import SuitesScreen
from tui_eval.tui.screens.tour_screen import TourScreen

ENDS = "Any key closes this; it does not come back."
SIZES = pytest.mark.parametrize("size", mostly_real([(80, 24), (60, 16)], (60, 16)))


@pytest.fixture
def first_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a person who has never used the app."""
    monkeypatch.delenv("TUI_EVAL_TOUR", raising=False)


@SIZES
@pytest.mark.usefixtures("first_start")
async def test_it_is_one_screen_and_any_key_ends_it_for_good(tmp_path: Path, size: tuple[int, int]) -> None:
    root = project(tmp_path)
    async with running_app(root, size) as (app, pilot):
        await until(lambda: isinstance(app.screen, TourScreen) and ENDS in screen_text(app), pilot)
        lines = screen_text(app).splitlines()
        keys = "a      run", "]      the next", "enter  all of it", "e      change", "r      run that one"
        for key in (*keys, "?      the keys", "ctrl+p everything"):  # in one column
            assert sum(f" {key}" in line for line in lines) == 1, key
        assert f"your {len(app.state.rows)} cases" in "\n".join(lines)
        before = app.services.engines.own.requests[:]
        await pilot.press("a")
        await until(lambda: isinstance(app.screen, SuitesScreen), pilot)
        assert app.services.engines.own.requests == before, "the key that ends it does nothing else"
        await until(lambda: not first_steps.tour_is_wanted(), pilot)
    async with running_app(root, size) as (app, pilot):
        await pilot.press("j")
        assert isinstance(app.screen, SuitesScreen)
        await pilot.press("ctrl+g")  # the palette does the same
        await until(lambda: isinstance(app.screen, TourScreen), pilot)


@pytest.mark.usefixtures("first_start")
async def test_a_notice_lies_over_none_of_its_lines_in_a_small_terminal(tmp_path: Path) -> None:
    async with running_app(project(tmp_path), (60, 16), notices=True) as (app, pilot):
        await until(lambda: isinstance(app.screen, TourScreen) and ENDS in screen_text(app), pilot)
        app.notices.problem("a notice that needs two lines where there are sixty columns; the log has it")
        await until(lambda: "the log has it" in screen_text(app), pilot)
        assert ENDS in screen_text(app) and "everything by its name" in screen_text(app)


@pytest.mark.usefixtures("first_start")
async def test_it_waits_for_the_answer_to_what_the_project_may_do(tmp_path: Path) -> None:
    config = "prompts: ['{{q}}']\nproviders: [echo]\ntests:\n- vars: {q: hi}\n  assert: [{type: python, value: 'True'}]\n"
    root = project(tmp_path, {"promptfooconfig.yaml": config})
    async with running_app(root) as (app, pilot):
        await until(lambda: isinstance(app.screen, AskScreen) and "Do you trust" in screen_text(app), pilot)
        await until(lambda: app.state.rows and not app.state.loading, pilot)
        await pilot.pause()
        assert isinstance(app.screen, AskScreen) and first_steps.tour_is_wanted()
        await pilot.press("n")
        await until(lambda: isinstance(app.screen, TourScreen), pilot)
        await pilot.press("x")
        await until(lambda: isinstance(app.screen, SuitesScreen), pilot)


@pytest.mark.usefixtures("first_start")
async def test_a_folder_without_suites_has_no_loop_to_show(tmp_path: Path) -> None:
    async with running_app(tmp_path) as (app, pilot):
        await until(lambda: "No suites here" in screen_text(app), pilot)
        assert isinstance(app.screen, SuitesScreen) and first_steps.tour_is_wanted()


async def test_it_names_the_keys_as_they_are(tmp_path: Path) -> None:
    async with running_app(project(tmp_path)) as (app, pilot):
        remap({"run.all": "f9"})
        try:
            await pilot.press("ctrl+g")
            await until(lambda: "f9     run them" in screen_text(app), pilot)
        finally:
            remap({})


@pytest.mark.usefixtures("first_start")
def test_who_has_used_the_app_needs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert first_steps.tour_is_wanted()
    (state_home() / "places").mkdir(parents=True)
    assert not first_steps.tour_is_wanted()
    (state_home() / "places").rmdir()
    monkeypatch.setenv("TUI_EVAL_TOUR", "0")
    assert not first_steps.tour_is_wanted()
    monkeypatch.delenv("TUI_EVAL_TOUR")
    first_steps.keep_tour_seen()
    assert not first_steps.tour_is_wanted()
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    first_steps.keep_tour_seen()  # nowhere to remember it: nothing is said


@pytest.mark.real
def test_on_a_terminal_it_comes_once_only(tmp_path: Path) -> None:
    project(tmp_path)
    homes = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    command = [sys.executable, "-c", START.replace("{extra}", "")]
    first = Terminal(command, tmp_path, (80, 24), TUI_EVAL_TOUR="1", **homes)
    try:
        first.until(ENDS)
        first.send(" ")
        end = time.monotonic() + 60
        while ENDS in first.text:
            assert time.monotonic() < end, first.text
            first.read(0.05)
        first.until("refund is approved")
        first.send("Q")
        assert first.wait() == 0
    finally:
        first.close()
    second = Terminal(command, tmp_path, (80, 24), TUI_EVAL_TOUR="1", **homes)
    try:
        second.until("refund is approved")
        second.quiet()
        assert ENDS not in second.text and ENDS.encode() not in second.output
        second.send("Q")
        assert second.wait() == 0
    finally:
        second.close()
