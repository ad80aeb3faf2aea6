"""The terminal as the person's settings want it: the theme, the keys, and the mouse, which is the terminal's
own, so that selecting text works, unless it is asked for."""

from __future__ import annotations

import os

from textual.theme import Theme

from tui_eval.guard.spelling import close_to
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import remap
from tui_eval.tui.services import Core, Window
from tui_eval.tui.settings import settings_file

# -- our own colours: quiet greys, colour only where it means something

DARK = Theme(
    name="tui-eval",
    primary="#7aa2f7",
    secondary="#9d8cd8",
    accent="#7dcfff",
    foreground="#c8ccd4",
    background="#15171c",
    surface="#1b1e25",
    panel="#20242c",
    success="#8fc77b",
    warning="#e0af68",
    error="#f0717b",
    dark=True,
)
LIGHT = Theme(
    name="tui-eval-light",
    primary="#2e5cc5",
    secondary="#6b4bb8",
    accent="#0f7490",
    foreground="#24292f",
    background="#fbfbfa",
    surface="#f1f1ef",
    panel="#e8e8e5",
    success="#2d7a37",
    warning="#8a5a00",
    error="#b3261e",
    dark=False,
)


def first_theme(remembered: str = "", *, no_color: bool = False) -> str:
    """The theme to begin with: the terminal's own colours under NO_COLOR, else the one chosen last
    (or `TEXTUAL_THEME`), else ours."""
    if no_color:
        return "ansi-dark"
    return os.environ.get("TEXTUAL_THEME", "").split(",")[0] or remembered or DARK.name


_EACH = 2
"""Notices about the settings that stand beside one another; more would hide the screen."""


class Appearance:
    """Gives the app what the settings say, at the start and when their file has changed."""

    def __init__(self, window: Window, core: Core, *, no_color: bool) -> None:
        """`no_color`: the environment has NO_COLOR."""
        self._window, self._core, self._no_color = window, core, no_color
        self._given: str | None = None
        """The theme that the settings, the environment or the last time gave."""
        window.register_theme(DARK)
        window.register_theme(LIGHT)

    def begin(self) -> None:
        """The theme of the settings, else the last one. Before anything is styled: a theme set later styles
        everything a second time."""
        self._take_theme(self._core.settings.theme or str(self._core.memory.get("theme", "")))

    def remembered(self) -> dict[str, str]:
        """The theme for the next time: the one that the person chose here, else the one that was remembered by now, so
        that neither a start under NO_COLOR nor another app that is open changes it."""
        chosen = self._window.theme if self._window.theme != self._given else ""
        return {"theme": chosen or str(self._core.memory.by_now("theme", ""))}

    def take_keys(self) -> None:
        """The keys of the settings."""
        self._window.set_keymap(self._core.settings.keymap)
        remap(self._core.settings.keymap)

    def take_settings(self) -> None:
        """The settings file has changed: what it says holds from now on."""
        settings = self._core.settings
        before = settings.theme
        settings.renew()
        if settings.theme != before:
            self._take_theme(settings.theme)
        elif wrong := self._no_theme(settings.theme):
            settings.problems.append(wrong)
        self.take_keys()
        self.report()

    def report(self) -> None:
        """What is wrong with the settings."""
        problems, notices = self._core.settings.problems, self._core.notices
        if len(problems) <= _EACH:
            for problem in problems:
                notices.problem(problem)
            return
        for problem in problems:
            notices.log("error", problem)
        notices.problem(
            f"{len(problems)} things are wrong in your settings (, lists them); first: {problems[0]}"
        )

    def _no_theme(self, name: str) -> str:
        """That there is no theme of the name that the settings, the environment or the last time gave, in words; empty
        where there is."""
        wanted, there = first_theme(name, no_color=self._no_color), self._window.available_themes
        if wanted in there:
            return ""
        slip = close_to(wanted, there)
        own = self._core.settings
        where = f"{settings_file().name}:{own.theme_line}: " if wanted == own.theme else ""
        return f"{where}theme: there is no {wanted}; " + (
            f"did you mean {slip}?" if slip else f"there are {', '.join(sorted(there))}"
        )

    def _take_theme(self, name: str) -> None:
        window = self._window
        wanted = first_theme(name, no_color=self._no_color)
        if wrong := self._no_theme(name):
            self._core.settings.problems.append(wrong)
            wanted = DARK.name
        self._given = wanted
        if wanted == window.theme and not window.is_running:
            # TEXTUAL_THEME names it: Textual took another one's colours, since ours were not known to it yet.
            window.set_reactive(type(window).theme, "textual-dark")
        window.theme = wanted


class MouseController:
    """Takes the mouse or leaves it, as the settings say, and as the key does until their file changes."""

    def __init__(self, window: Window, core: Core) -> None:
        self._window, self._core = window, core
        self.taken = False

    def handlers(self) -> dict[str, Handler]:
        """What its key does."""
        return {"mouse": self.toggle}

    def take_settings(self) -> None:
        """The settings were read."""
        if self._core.settings.mouse != self.taken:
            self._take(self._core.settings.mouse)

    def toggle(self) -> None:
        """Take it, or leave it, for now."""
        self._take(not self.taken)
        if self.taken:
            self._core.notices.say("the mouse: click, double click opens, wheel; shift held selects text")
        else:
            self._core.notices.say("the mouse is the terminal's: it selects text")

    def _take(self, wanted: bool) -> None:
        self.taken = self._core.settings.mouse = wanted
        self._window.take_mouse(wanted)
