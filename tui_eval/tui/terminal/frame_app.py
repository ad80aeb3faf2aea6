"""What of Textual's app is another one here: it sends only what looks different, lets no control character
through, and lives on after errors of ours.

Textual 8.2.8 ends the message loop of whatever raised and then the whole app (`App._handle_exception`). A person
who debugs a run would lose their place for a line that could not be drawn. So what a message, key or timer does
is run in a net (`contain`), a widget that cannot be drawn says so in its own place, and only an app that cannot
begin, or fails again and again, ends with a report.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from rich.segment import Segment
from rich.text import Text
from textual.app import App
from textual.command import CommandPalette
from textual.driver import Driver
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Resize
from textual.filter import LineFilter, Monochrome, NoColor
from textual.geometry import Region
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import WorkerFailed

from tui_eval.guard.crash_report import crash_line
from tui_eval.tui.background import for_nobody
from tui_eval.tui.notices import Notices
from tui_eval.tui.terminal.renderer import Painted, Ready
from tui_eval.tui.terminal.terminal_guard import EXIT_BY_SIGNAL, KeyReader, TerminalGuard

QUIET = 10.0
"""Seconds in which the same error at the same place is reported once: a painter fails with every frame."""
STORM, STORM_SECONDS = 500, 5.0
"""So many errors within so many seconds: the app does nothing else, and ends as it did."""
REPORTS = 20
"""Reports written at most: the first ones say most."""


class Faults:
    """What went wrong within the app, and whether it may go on.

    `tell` is given one line for the person; `log` one for the log.
    """

    def __init__(
        self,
        tell: Callable[[str], Any],
        log: Callable[[str, str], Any],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell, self._log, self._now = tell, log, now
        self._last: dict[str, float] = {}
        self._recent: list[float] = []
        self._telling = False
        self._reports = 0

    def survive(self, error: Exception) -> bool:
        """Note an error. False: the app is past going on, and should end with a report of it."""
        if isinstance(error, WorkerFailed) and isinstance(error.error, Exception):
            error = error.error
        now = self._now()
        self._recent = [then for then in self._recent if now - then < STORM_SECONDS]
        self._recent.append(now)
        if len(self._recent) >= STORM:
            return False
        place = place_of(error)
        told = self._last.get(place)
        if self._telling or (told is not None and now - told < QUIET):
            return True
        self._last[place] = now
        self._telling = True
        try:
            if self._reports < REPORTS:
                line = crash_line(error, first=not self._reports)
                self._reports += 1
                self._log("error", line)
            else:
                self._log("error", f"internal error: {type(error).__name__} at {place}")
            self._tell(f"this did not work: {type(error).__name__} ({place}); the log (l) has more")
        except Exception:  # the notice itself cannot be shown: the log has the error
            self._log("error", f"internal error: {type(error).__name__} at {place}")
        finally:
            self._telling = False
        return True


def place_of(error: BaseException) -> str:
    """Where an error was raised: the last file of ours it came through, and the line."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/tui_eval/" in frame.filename.replace("\\", "/")]
    if not (ours or frames):
        return type(error).__name__
    frame = (ours or list(frames))[-1]
    name = frame.filename.replace("\\", "/").rpartition("/tui_eval/")[2].rpartition("/site-packages/")[2]
    return f"{name}:{frame.lineno}"


def contain() -> None:
    """Let every message loop of Textual survive what its handlers raise, for apps that have `faults`. May be
    called again."""
    if getattr(MessagePump._dispatch_message, "contains_faults", False):
        return
    dispatch, render_lines = MessagePump._dispatch_message, Widget.render_lines

    async def contained(self: MessagePump, message: Message) -> None:
        try:
            await dispatch(self, message)
        except Exception as error:
            app = _surviving(self)
            if app is None:
                raise
            app._handle_exception(error)

    def drawn(self: Widget, crop: Region) -> list[Strip]:
        try:
            return render_lines(self, crop)
        except Exception as error:
            app = _surviving(self)
            if app is None:
                raise
            app._handle_exception(error)
            return _cannot_be_drawn(self, crop)

    contained.contains_faults = True  # type: ignore[attr-defined]
    MessagePump._dispatch_message = contained
    Widget.render_lines = drawn


def _surviving(pump: MessagePump) -> App[Any] | None:
    """The app of a widget, where it is one that goes on after errors."""
    try:
        app = pump.app
    except Exception:  # taken out of its app meanwhile
        return None
    return app if isinstance(getattr(app, "faults", None), Faults) else None


def _cannot_be_drawn(widget: Widget, crop: Region) -> list[Strip]:
    style = widget.visual_style.rich_style
    words = Strip([Segment("! cannot be drawn: the log (l) says why", style)])
    blank = Strip.blank(crop.width, style)
    first = words.crop(crop.x, crop.right).adjust_cell_length(crop.width, style)
    return [first if crop.y + row == 0 else blank for row in range(crop.height)]


MOUSE_ON = "\x1b[?1003l\x1b[?1000h\x1b[?1006h"
"""Buttons and wheel, places beyond column 223; moves are let go, which Textual asks for after a suspension."""
MOUSE_OFF = "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"
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
        self._first_colours: dict[str, str] | None = None
        self._mouse_taken = False
        self._no_colours = NoColor() if no_color else None
        self._guard = TerminalGuard(unicode=unicode)
        self.notices = Notices(self)
        self.faults = Faults(self.notices.fault, self.notices.log)
        self.crash: BaseException | None = None
        self.begun = False
        """Whether it has begun; an app that cannot is left with a report."""
        contain()

    @property
    def without_colours(self) -> bool:
        """Whether NO_COLOR is set."""
        return self._no_colours is not None

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

    def refresh_css(self, animate: bool = True) -> None:
        """Styles that are not read yet need not be read again, where they will be with these colours (`on_load`)."""
        if self._first_colours is not None and self.get_css_variables() == self._first_colours:
            return
        self._first_colours = None
        super().refresh_css(animate)

    def on_load(self) -> None:
        """Nothing is styled yet: styles are read with the colours of the theme that was set, not with those
        of Textual's own and then again. The terminal may be another program's for a while."""
        self._first_colours = self.get_css_variables()
        self.stylesheet.set_variables(self._first_colours)
        self.app_resume_signal.subscribe(self, lambda app: self._again(), immediate=True)

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
            self._first_colours = None
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
        errors follow each other without end, is left with a report. What a screen that was left misses is nobody's."""
        if for_nobody(error):
            return
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

    def panic(self, *renderables: Any) -> None:
        """Textual's way out with a picture of its own of what happened."""
        self._fatal_error()

    def _fatal_error(self) -> None:
        """Textual's own prints the values of variables; ours is a line that says what, and where the rest is."""
        self._end_with(sys.exc_info()[1] or self._exception or RuntimeError("unknown"))

    def _end_with(self, error: BaseException) -> None:
        if self.crash is None:  # what goes wrong in taking things down is not what happened
            self.crash = error
            words = f"tui-eval: {crash_line(error)}\n{self.last_words()}"
            self._exit_renderables.append(Text(words.rstrip()))
        self._close_messages_no_wait()

    def get_driver_class(self) -> type[Driver]:
        """Textual's, whose keys are read whatever comes."""
        found = super().get_driver_class()
        return KeyReader if found is LinuxDriver else found

    def thread_failed(self, failed: threading.ExceptHookArgs) -> None:
        """A thread ended with an exception (`threading.excepthook`). Without Textual's own, which read keys and write
        frames, nobody can go on; what another one of them raises is an error like those of handlers."""
        thread, error = failed.thread, failed.exc_value
        of_terminal = thread is not None and thread.name.startswith("textual-")
        with suppress(RuntimeError):  # the loop has ended: nobody is there any more
            if of_terminal and isinstance(error, OSError) and error.errno == errno.EIO:
                self.call_later(self.terminal_lost)
            elif of_terminal:
                self.call_later(self._end_with, error or RuntimeError("unknown"))
            elif isinstance(error, Exception):
                self.call_later(self._handle_exception, error)
        if isinstance(thread, WriterThread):
            # The app would wait for it for ever; and the terminal is to be put back, if it can be.
            for text in iter(thread._queue.get, None):
                with suppress(Exception):
                    thread._file.write(text)
                    thread._file.flush()

    def take_mouse(self, wanted: bool) -> None:
        """Ask the terminal for clicks and the wheel, or leave the mouse to it. Textual asks for each move of the
        pointer too, many bytes for nothing over a slow line, and only once, at the start."""
        driver = self._driver
        self._mouse_taken = wanted
        if driver is None:
            return
        # Where this is set, Textual lets the mouse go when the terminal is left, and takes it again afterwards.
        driver._mouse = wanted
        if not driver.is_headless:
            driver.write(MOUSE_ON if wanted else MOUSE_OFF)
            driver.flush()

    def _again(self) -> None:
        """Whoever had the terminal meanwhile has painted over ours, and Textual asks for moves of the mouse."""
        self.action_redraw()
        if self._mouse_taken:
            self.take_mouse(True)

    def terminal_lost(self) -> None:
        """The terminal went away."""
        self.exit(return_code=EXIT_BY_SIGNAL[signal.SIGHUP])

    def last_words(self) -> str:
        """What else to say after a crash."""
        return ""
