"""The mouse: left to the terminal unless asked for; then a click selects, a second opens, the wheel scrolls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from textual.events import MouseScrollDown, MouseScrollUp

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tests.support.terminal import Terminal
from tests.tui.terminal.test_pty import START
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.settings import read_settings
from tui_eval.tui.widgets.bars import KeyHints
from tui_eval.tui.widgets.case_list import CaseList

TAKEN, LEFT_ALONE = b"\x1b[?1000h", b"\x1b[?1000l"


def line_of(app: Any, text: str) -> int:
    """The line of the screen that holds this text."""
    return next(y for y, line in enumerate(screen_text(app).splitlines()) if text in line)


@pytest.mark.real
async def test_a_click_selects_and_a_second_opens(tmp_path: Path) -> None:
    root = project(tmp_path)
    LiveRun(root, ["refund is approved"]).all_done(["failed"])
    async with running_app(root, (80, 24)) as (app, pilot):
        await until(lambda: "greets by name" in screen_text(app), pilot)
        case_list = app.screen.query_one(CaseList)
        y = line_of(app, "greets by name")
        await pilot.click(offset=(10, y))
        await until(lambda: "greets by name" in case_list.current_line.name, pilot)
        y = line_of(app, "refund is approved")
        await pilot.click(offset=(10, y), times=2)
        await until(lambda: isinstance(app.screen, CaseScreen), pilot)
        assert app.screen.current().case_id.endswith("refund is approved")
        await pilot.press("escape")
        y = line_of(app, "support.yaml")
        await pilot.click(offset=(10, y), times=2)
        await until(lambda: "greets by name" not in screen_text(app), pilot)


async def test_a_click_on_a_key_of_the_last_line_presses_it(tmp_path: Path) -> None:
    async with running_app(project(tmp_path), (80, 24)) as (app, pilot):
        await until(lambda: "greets by name" in screen_text(app), pilot)
        suites = app.screen

        async def click(words: str) -> None:
            line = screen_text(app).splitlines()[-1]
            await pilot.click(KeyHints, offset=(line.index(words), 0))

        for words in ("? help", "help  "):  # the key, or what it does
            await click(words)
            await until(lambda: app.screen is not suites, pilot)
            await click("back")
            await until(lambda: app.screen is suites, pilot)
        await click("  r run")  # between two keys
        await click("filter")
        await until(lambda: "filter" in screen_text(app).splitlines()[-1], pilot)
        assert app.screen is suites and app.screen.prompts.open


@pytest.mark.real
async def test_a_click_on_the_name_of_a_tab_opens_it(tmp_path: Path) -> None:
    root = project(tmp_path)
    LiveRun(root, ["refund is approved"]).all_done(["failed"])
    async with running_app(root, (80, 24)) as (app, pilot):
        await until(lambda: "refund is approved" in screen_text(app), pilot)
        await pilot.press("right_square_bracket", "enter")
        await until(lambda: isinstance(app.screen, CaseScreen) and app.screen.content.attempt, pilot)
        for name, number in (("Assertions", 2), ("History", 5), ("Transcript", 0)):
            y = line_of(app, "1 Transcript")
            x = screen_text(app).splitlines()[y].index(name)
            await pilot.click(".tabs", offset=(x, 0))
            await until(lambda number=number: app.screen.tab_shown == number, pilot)
        await pilot.click(".tabs", offset=(79, 0))  # beside them
        assert app.screen.tab_shown == 0


async def test_the_wheel_scrolls_and_the_cursor_stays_in_sight(tmp_path: Path) -> None:
    suite = "agent: offline\ntest_cases:\n" + "".join(
        f"  - {{name: case {n:03}, input: hi, expected: {{should_contain: [x]}}}}\n" for n in range(100)
    )
    async with running_app(project(tmp_path, {"many.yaml": suite})) as (app, pilot):
        case_list = app.screen.query_one(CaseList)
        await until(lambda: "many.yaml" in screen_text(app), pilot)
        await pilot.press("s")  # one by one
        await until(lambda: "case 000" in screen_text(app), pilot)
        top, cursor = case_list.top, case_list.cursor
        await pilot._post_mouse_events([MouseScrollDown], widget=case_list, offset=(5, 3))
        await until(lambda: case_list.top == top + CaseList.WHEEL, pilot)
        assert case_list.cursor == cursor + CaseList.WHEEL
        for _ in range(3):
            await pilot._post_mouse_events([MouseScrollUp], widget=case_list, offset=(5, 3))
        await until(lambda: case_list.top == 0, pilot)


def settings_in(folder: Path, text: str) -> dict[str, str]:
    """A home with these settings."""
    (folder / "config" / "tui-eval").mkdir(parents=True)
    (folder / "config" / "tui-eval" / "settings.yaml").write_text(text)
    return {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}


def sgr(x: int, y: int) -> str:
    """A click as a terminal sends it."""
    return f"\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m"


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("asked", [True, False], ids=["settings", "key"])
def test_on_a_terminal_it_is_taken_used_and_given_back(tmp_path: Path, asked: bool) -> None:
    project(tmp_path)
    homes = settings_in(tmp_path, "mouse: true\n" if asked else "{}\n")
    app = Terminal([sys.executable, "-c", START.replace("{extra}", "")], tmp_path, (80, 24), **homes)
    try:
        app.until("refund is approved")
        if not asked:
            app.quiet()
            assert TAKEN not in app.output
            app.send("T")
            app.until("double click opens")
        assert TAKEN in app.output and b"\x1b[?1003h" not in app.output  # not every move of the pointer
        y = next(y for y, line in enumerate(app.text.splitlines(), 1) if "refund is approved" in line)
        app.send(sgr(10, y) + sgr(10, y))
        app.until("1 Transcript")
        app.send("\x1b")
        app.until("enter open")
        app.send("T")
        app.until("it selects text")
        assert app.output.rfind(LEFT_ALONE) > app.output.rfind(TAKEN)
        app.send("T")
        app.until("double click opens")
        app.send("Q")
        assert app.wait() == 0
        assert app.output.rfind(LEFT_ALONE) > app.output.rfind(TAKEN), "it is left to the terminal again"
    finally:
        app.close()


def test_the_setting_is_true_or_false(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("mouse: perhaps\n")
    settings = read_settings(file)
    assert not settings.mouse and "mouse: must be true or false" in settings.problems[0]
    file.write_text("mouse: true\n")
    assert read_settings(file).mouse
