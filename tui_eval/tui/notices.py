"""What is said to the person: short notices, problems, and the log that keeps both."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from textual.app import App

from tui_eval.guard.text import clip, visible
from tui_eval.tui.front import Front

LOG_LIMIT = 500
LONGEST = 300
"""Characters of a notice; the log has the rest."""


class Notices:
    """Where everything goes that the person is to know."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self.lines: deque[tuple[float, str, str]] = deque(maxlen=LOG_LIMIT)
        """The log, oldest first: when, `note` or `error`, and the text."""

    def say(self, text: str) -> None:
        """A short notice; it can be read again in the log."""
        self.log("note", text)
        if not self._app.screen_stack:
            return  # said while the app closes: the log has it
        words = _short(text)
        place = self._app.screen
        if not (isinstance(place, Front) and place.notice(words)):
            self.over(words)

    def problem(self, text: str) -> None:
        """Something went wrong: a notice, and the log."""
        self.log("error", text)
        self._app.notify(_short(text), severity="error", timeout=8, markup=False)

    def fault(self, text: str) -> None:
        """An error of our own; the log has it already."""
        # Later: the screen that failed may be left first.
        self._app.call_later(self._app.notify, _short(text), severity="error", timeout=8, markup=False)

    def failed(self, error: Exception) -> None:
        """A thread's work ended with an exception."""
        self.problem(f"{type(error).__name__}: {error}")

    def over(self, text: str, seconds: float = 3) -> None:
        """A notice over the screen, not at its head; not in the log."""
        self._app.notify(_short(text), timeout=seconds, markup=False)

    def call_person(self, text: str) -> None:
        """Somebody is waited for, who may be looking elsewhere: long in sight, and once for each text."""
        if all(text != said for _, _, said in self.lines):
            self.log("note", text)
            words = f"{visible(clip(text, 400), newlines=False)} (l shows it again)"
            self._app.notify(words, severity="warning", timeout=60, markup=False)

    def log(self, level: str, text: str) -> None:
        """Add to the log (`l`)."""
        self.lines.append((time.time(), level, text))


def _short(text: str) -> str:
    return visible(clip(text, LONGEST), newlines=False)
