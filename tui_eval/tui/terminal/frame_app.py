"""What of Textual's app is another one here: it sends only what looks different, lets no control character
through, and lives on after errors of ours."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.text import Text
from textual.app import App
from textual.command import CommandPalette
from textual.events import Resize
from textual.filter import LineFilter, Monochrome, NoColor
from textual.screen import Screen
from textual.widgets import Input

from tui_eval.guard.crash_report import crash_line
from tui_eval.tui.faults import Faults, contain
from tui_eval.tui.notices import Notices
from tui_eval.tui.terminal.renderer import Painted, Ready
from tui_eval.tui.terminal.terminal_guard import TerminalGuard

STARTING = 3.0
"""Seconds after the first frame in which a resize to the same size is the terminal's first report."""


def _hold_still(palette: CommandPalette) -> None:
    for entry in palette.query(Input):
        entry.cursor_blink = False


class FrameApp(App[int], inherit_bindings=False):
    """The base of the app, for slow lines and for errors of ours."""

    def __init__(self, *, unicode: bool, no_color: bool) -> None:
        """`unicode`: whether the terminal has more than ASCII; `no_color`: NO_COLOR is set."""
        super().__init__()
        self._painted = Painted()
        self._first_frame = 0.0
        self._no_colours = NoColor() if no_color else None
        self._guard = TerminalGuard(unicode=unicode)
        self.notices = Notices(self)
        self.faults = Faults(self.notices.fault, self.notices.log)
        self.crash: BaseException | None = None
        self.begun = False
        """Whether it has begun; an app that cannot is left with a report."""
        contain()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's own, and the last gate against control characters. Under NO_COLOR none of Textual's
        greys, but the terminal's own colours only."""
        filters = super().get_line_filters()
        if self._no_colours is not None:
            filters = [self._no_colours if isinstance(item, Monochrome) else item for item in filters]
        return [*filters, self._guard]

    def get_css_variables(self) -> dict[str, str]:
        """Textual's; what is raised over a surface (the line of the cursor) is lighter than it, which over a
        light one nobody sees: there it is darker."""
        variables = super().get_css_variables()
        if not self.current_theme.dark:
            variables["surface-lighten-2"] = variables["panel-darken-1"]
        return variables

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

    def _handle_exception(self, error: Exception) -> None:
        """What a handler or a painter raises is reported, and the app lives; one that cannot begin, or whose
        errors follow each other without end, is left with a report."""
        if self.begun and len(self._screen_stack) > 1 and not self.screen.children:
            self.call_later(self._leave_unopened, self.screen)
        if not self.begun or not self.faults.survive(error):
            super()._handle_exception(error)
        elif self.is_headless and self._exception is None:
            # Tests are to fail of it.
            self._exception = error
            self._exception_event.set()

    async def _leave_unopened(self, screen: Screen[Any]) -> None:
        """A screen that could not be made shows nothing, not even what went wrong."""
        if self.screen is screen and not screen.children:
            await self.pop_screen()

    def _fatal_error(self) -> None:
        """Textual's own prints the values of variables; ours is a line that says what, and where the rest is."""
        if self.crash is None:  # what goes wrong in taking things down is not what happened
            self.crash = sys.exc_info()[1] or self._exception or RuntimeError("unknown")
            words = f"tui-eval: {crash_line(self.crash)}\n{self.last_words()}"
            self._exit_renderables.append(Text(words.rstrip()))
        self._close_messages_no_wait()

    def last_words(self) -> str:
        """What else to say after a crash."""
        return ""
