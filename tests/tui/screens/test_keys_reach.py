"""Every action of the table is reached by its key at 80x24 in its place, and listed by `?` there."""

from __future__ import annotations

import pytest
from textual.events import Key as KeyEvent

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tests.support.settling import rested
from tui_eval.tui.keys import CASE_KEYS, KEYS, RUN_PLACES, SHARED_KEYS, Key
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.help import PaperScreen, help_paragraphs
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.screens.runs_screen import RunsScreen
from tui_eval.tui.screens.settings_place import SettingsScreen
from tui_eval.tui.state.app_state import CasePointer

NAMES = ["refund is approved", "greets by name"]
PLACES = ("suites", "run", "case", "runs", "settings")
WORKS = {
    "suites": ("everywhere", "moving", "list", "screen"),
    "run": ("everywhere", "moving", "list", "screen", "run"),
    "case": ("everywhere", "moving", "case"),
    "runs": ("everywhere", "moving", "runs"),
    "settings": ("everywhere", "moving", "settings"),
}


def keys_of(place: str) -> list[Key]:
    table = [key for key in (*KEYS, *CASE_KEYS, *RUN_PLACES) if key.place in WORKS[place]]
    own = {part for key in table if key.place == place for part in key.keys.split(",")}
    # A place's own keys come before those of the same letter elsewhere.
    return [key for key in table if key.place != "everywhere" or not own & set(key.keys.split(","))] + (
        list(SHARED_KEYS) if place == "case" else []
    )


async def go(place: str, app, pilot, run) -> None:
    if place == "suites":
        return
    await until(lambda: app.state.run is not None, pilot)
    if place == "run":
        assert isinstance(app.screen, RunScreen)
        return
    if place in ("runs", "settings"):
        await pilot.press("H" if place == "runs" else "comma")
        await until(lambda: isinstance(app.screen, RunsScreen | SettingsScreen), pilot)
        await rested(pilot)
        return
    app.places.open_case(
        CasePointer("suites/support.yaml::refund is approved", "offline", None, run.info.id, 1)
    )
    await until(lambda: isinstance(app.screen, CaseScreen), pilot)
    await rested(pilot)


@pytest.mark.real
@pytest.mark.usually(2)
@pytest.mark.parametrize("place", PLACES)
async def test_each_key_does_its_action(tmp_path, place, monkeypatch):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.all_done(["failed", "passed"])
    options = {} if place == "suites" else {"open_run": run.folder}
    async with running_app(root, **options) as (app, pilot):
        await go(place, app, pilot, run)
        done: list[str] = []

        async def only_note(action, *_, **__):
            done.append(action if isinstance(action, str) else action[1])
            return True

        monkeypatch.setattr(app, "run_action", only_note)
        for key in keys_of(place):
            for pressed in key.keys.split(","):
                done.clear()
                app.post_message(KeyEvent(pressed, pressed if len(pressed) == 1 else None))
                await pilot.pause()
                await until(lambda: done, pilot, 3)
                # ctrl+p is bound by Textual itself
                textual = key.id == "palette" and done[0] == "command_palette"
                assert textual or done[0] == f"app.do('{key.id}')", (place, key.id, pressed)


@pytest.mark.usually(2)
@pytest.mark.parametrize("place", PLACES)
async def test_help_lists_each_key_of_the_place(tmp_path, place):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.all_done(["failed", "passed"])
    options = {} if place == "suites" else {"open_run": run.folder}
    async with running_app(root, **options) as (app, pilot):
        await go(place, app, pilot, run)
        sections = app.screen.KEY_SECTIONS
        await pilot.press("question_mark")
        await until(lambda: isinstance(app.screen, PaperScreen) and "Help" in screen_text(app), pilot)
        text = "\n".join(text for _, text in help_paragraphs("x", sections))
        here = {key.id: key for _, keys in sections for key in keys}
        for key in keys_of(place):
            words = here.get(key.id, key).words  # some places say what it does there
            assert f"{key.all_shown}\x00{words}" in text, key.id
