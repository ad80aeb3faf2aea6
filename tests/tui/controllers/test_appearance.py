"""The theme, the keys and the mouse as the settings want them, at the start and when their file has changed."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.support.alone import Alone
from tui_eval.tui import keys
from tui_eval.tui.controllers.appearance import Appearance, MouseController
from tui_eval.tui.memory import remember
from tui_eval.tui.services import Window
from tui_eval.tui.settings import settings_file


@pytest.fixture(autouse=True)
def _keys_as_they_are(monkeypatch):
    monkeypatch.delenv("TEXTUAL_THEME", raising=False)
    yield
    keys.remap({})


def appearance(alone: Alone, *, no_color: bool = False) -> Appearance:
    return Appearance(cast(Window, alone.window), alone.core, no_color=no_color)


def write_settings(text: str) -> None:
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().write_text(text)


@pytest.mark.parametrize(
    ("settings", "remembered", "terminal", "theme"),
    [
        ("", "", "", "tui-eval"),
        ("", "nord", "", "nord"),
        ("tui-eval-light", "nord", "", "tui-eval-light"),
        ("", "nord", "tui-eval-light,x", "tui-eval-light"),
    ],
)
def test_the_theme_is_that_of_the_settings_or_of_the_last_time(
    tmp_path: Path, monkeypatch, settings: str, remembered: str, terminal: str, theme: str
) -> None:
    if terminal:
        monkeypatch.setenv("TEXTUAL_THEME", terminal)
    remember(tmp_path, {"theme": remembered})
    alone = Alone(tmp_path)
    alone.core.settings.theme = settings
    appearance(alone).begin()
    assert alone.window.theme == theme


def test_without_colours_it_is_the_terminals_own_whatever_is_wanted(tmp_path: Path) -> None:
    alone = Alone(tmp_path)
    alone.window.available_themes["ansi-dark"] = alone.window.available_themes["nord"]
    alone.core.settings.theme = "nord"
    appearance(alone, no_color=True).begin()
    assert alone.window.theme == "ansi-dark"


@pytest.mark.parametrize(("no_color", "terminal"), [(True, ""), (False, "tui-eval-light")])
def test_a_theme_that_nobody_chose_here_is_not_remembered(
    tmp_path: Path, monkeypatch, no_color: bool, terminal: str
) -> None:
    if terminal:
        monkeypatch.setenv("TEXTUAL_THEME", terminal)
    remember(tmp_path, {"theme": "nord"})
    alone = Alone(tmp_path)
    alone.window.available_themes["ansi-dark"] = alone.window.available_themes["nord"]
    look = appearance(alone, no_color=no_color)
    look.begin()
    assert look.remembered() == {"theme": "nord"}
    remember(tmp_path, {"theme": "tui-eval"})  # another app was left, where it was chosen
    assert look.remembered() == {"theme": "tui-eval"}
    alone.window.theme = "nord"
    assert look.remembered() == {"theme": "nord"}


def test_a_theme_that_is_not_there_is_ours_and_said(tmp_path: Path) -> None:
    alone = Alone(tmp_path)
    alone.core.settings.theme, alone.core.settings.theme_line = "neon", 7
    look = appearance(alone)
    look.begin()
    look.report()
    assert alone.window.theme == "tui-eval"
    assert alone.said == "settings.yaml:7: theme: there is no neon; there are nord, tui-eval, tui-eval-light"


def test_a_theme_that_the_environment_named_before_ours_were_known_is_styled_anew(tmp_path: Path) -> None:
    alone = Alone(tmp_path)
    alone.window.theme = "tui-eval"
    appearance(alone).begin()
    assert alone.window.done == [("quietly", "textual-dark")] and alone.window.theme == "tui-eval"
    alone.window.is_running = True
    appearance(alone).begin()
    assert len(alone.window.done) == 1


def test_settings_that_changed_hold_from_now_on(tmp_path: Path) -> None:
    alone = Alone(tmp_path)
    look = appearance(alone)
    look.begin()
    alone.window.theme = "nord"  # chosen meanwhile
    write_settings("keymap: {case.rerun: f5}\n")
    look.take_settings()
    assert alone.window.theme == "nord"  # the file says nothing of it
    assert alone.window.done == [("keys", {"case.rerun": "f5"})]
    (rerun,) = [key for key in keys.ALL_KEYS if key.id == "case.rerun"]
    assert rerun.shown == "f5"
    write_settings("theme: tui-eval-light\nnonsense: 1\n")
    look.take_settings()
    assert alone.window.theme == "tui-eval-light" and rerun.shown == "r" and "nonsense" in alone.said


def test_the_mouse_is_left_to_the_terminal_unless_asked_for(tmp_path: Path) -> None:
    alone = Alone(tmp_path)
    mouse = MouseController(cast(Window, alone.window), alone.core)
    mouse.take_settings()
    assert alone.window.done == []
    mouse.handlers()["mouse"]()
    assert alone.window.done == [("mouse", True)] and alone.core.settings.mouse and "shift held" in alone.said
    mouse.handlers()["mouse"]()
    assert (
        alone.window.done[-1] == ("mouse", False)
        and alone.said == "the mouse is the terminal's: it selects text"
    )


def test_settings_that_want_the_mouse_take_it_once(tmp_path: Path) -> None:
    alone = Alone(tmp_path)
    alone.core.settings.mouse = True
    mouse = MouseController(cast(Window, alone.window), alone.core)
    mouse.take_settings()
    mouse.take_settings()
    assert alone.window.done == [("mouse", True)]
    alone.core.settings.mouse = False
    mouse.take_settings()
    assert alone.window.done[-1] == ("mouse", False)
