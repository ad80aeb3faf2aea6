"""The mouse: the terminal's own, so that selecting text works, unless the person asks for it."""

from __future__ import annotations

from typing import Any

from textual.app import App

from tui_eval.tui.handlers import Handler
from tui_eval.tui.services import Core
from tui_eval.tui.terminal.mouse_reports import take_mouse


class MouseController:
    """Takes the mouse or leaves it, as the settings say, and as the key does until their file changes."""

    def __init__(self, app: App[Any], core: Core) -> None:
        self._app, self._core = app, core
        self.taken = False

    def handlers(self) -> dict[str, Handler]:
        """What its key does."""
        return {"mouse": self.toggle}

    def begin(self) -> None:
        """As the settings say, once there is a terminal."""
        self._app.app_resume_signal.subscribe(self._app, lambda _: self._again())
        self.take_settings()

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
        take_mouse(self._app, wanted)

    def _again(self) -> None:
        """Another program had the terminal."""
        if self.taken:
            take_mouse(self._app, True)
