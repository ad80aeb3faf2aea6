"""An app that sends only what looks different, and everything where the terminal may show something else."""

from __future__ import annotations

import os
import time
from typing import Any

from textual.app import App
from textual.command import CommandPalette
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Input

from tui_eval.tui.terminal.renderer import Painted, Ready

STARTING = 3.0
"""Seconds after the first frame in which a resize to the same size is the terminal's first report."""


def _hold_still(palette: CommandPalette) -> None:
    for entry in palette.query(Input):
        entry.cursor_blink = False


class ThriftyApp(App[int], inherit_bindings=False):
    """The base of the app, for slow lines."""

    def __init__(self) -> None:
        super().__init__()
        self._painted = Painted()
        self._first_frame = 0.0

    def push_screen(self, screen: Any, *arguments: Any, **options: Any) -> Any:
        """Textual's palette, which is a screen of its own, blinks: twice a second something would be sent."""
        if isinstance(screen, CommandPalette) and not os.environ.get("TUI_EVAL_LOCAL"):
            screen.call_later(_hold_still, screen)
        return super().push_screen(screen, *arguments, **options)

    def on_load(self) -> None:
        """Whoever had the terminal meanwhile has painted over ours."""
        self.app_resume_signal.subscribe(self, lambda app: self.action_redraw(), immediate=True)

    def on_resize(self, event: Resize) -> None:
        """A terminal that was made smaller and as large again has lost what was cut off."""
        if self._first_frame and time.monotonic() - self._first_frame > STARTING:
            self.action_redraw()

    def action_redraw(self) -> None:
        """Paint everything anew: another program (`wall`, a background job) has written over it."""
        self._painted.forget()
        if self._screen_stack:
            self.screen.refresh()

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        """Frames in fewer bytes; those in which nothing looks different are not sent."""
        driver = self._driver
        if (
            self._running
            and not self._closed
            and not self._batch_count
            and driver is not None
            and not (driver.is_headless or driver.is_inline)
        ):
            renderable = self._painted.ready(renderable, self.console)
            self._first_frame = self._first_frame or time.monotonic()
            here = self.screen.outer_size.clamp_offset(self.cursor_position)
            if (
                isinstance(renderable, Ready)
                and not renderable.text
                and here == self._previous_cursor_position
            ):
                self.post_display_hook()
                return
        super()._display(screen, renderable)
