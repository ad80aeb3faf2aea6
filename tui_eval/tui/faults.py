"""An error of our own in a handler, a timer or a painter: a notice and a line in the log; the app lives.

Textual 8.2.8 ends the message loop of whatever raised and then the whole app (`App._handle_exception`). A person
who debugs a run would lose their place for a line that could not be drawn. So what a message, key or timer does
is run in a net (`contain`), a widget that cannot be drawn says so in its own place, and only an app that cannot
begin, or fails again and again, ends with a report.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any

from rich.segment import Segment
from textual.app import App
from textual.geometry import Region
from textual.message import Message
from textual.message_pump import MessagePump
from textual.strip import Strip
from textual.widget import Widget
from textual.worker import WorkerFailed

from tui_eval.guard.crash_report import crash_line

QUIET = 10.0
"""Seconds in which the same error at the same place is told once: a painter fails with every frame."""
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
