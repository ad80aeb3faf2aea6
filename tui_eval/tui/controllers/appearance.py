"""The theme and the keys, as the person's settings want them."""

from __future__ import annotations

from typing import Any

from textual.app import App, InvalidThemeError

from tui_eval.tui import themes
from tui_eval.tui.keys import remap
from tui_eval.tui.services import Core


class Appearance:
    """Gives the app what the settings say, at the start and when their file has changed."""

    def __init__(self, app: App[Any], core: Core, *, no_color: bool) -> None:
        """`no_color`: the environment has NO_COLOR."""
        self._app, self._core, self._no_color = app, core, no_color

    def begin(self) -> None:
        """The theme of the settings, else the last one. Before anything is styled: a theme set later styles
        everything a second time."""
        self._take_theme(self._core.settings.theme or str(self._core.memory.get("theme", "")))

    def take_keys(self) -> None:
        """The keys of the settings."""
        self._app.set_keymap(self._core.settings.keymap)
        remap(self._core.settings.keymap)

    def take_settings(self) -> None:
        """The settings file has changed: what it says holds from now on."""
        settings = self._core.settings
        before = settings.theme
        settings.renew()
        if settings.theme != before:
            self._take_theme(settings.theme)
        self.take_keys()
        self.report()

    def report(self) -> None:
        """What is wrong with the settings."""
        for problem in self._core.settings.problems:
            self._core.notices.problem(problem)

    def _take_theme(self, name: str) -> None:
        app = self._app
        wanted = themes.first_theme(name, no_color=self._no_color)
        if wanted == app.theme and not app.is_running:
            # TEXTUAL_THEME names it: Textual took another one's colours, since ours were not known to it yet.
            app.set_reactive(App.theme, "textual-dark")
        try:
            app.theme = wanted
        except InvalidThemeError:
            there = ", ".join(sorted(app.available_themes))
            self._core.settings.problems.append(f"theme: there is no {wanted}; there are {there}")
            app.theme = themes.DARK.name
