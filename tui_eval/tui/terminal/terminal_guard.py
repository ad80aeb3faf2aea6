"""What keeps the terminal whole: the last gate for control characters, and the way out on signals.

Text is made safe where it enters the app (`guard.text.visible`); the filter here is for what was
forgotten, in every strip that is painted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from tui_eval.guard.text import CONTROL_TABLE
from tui_eval.tui.state.text.lines import letters

EXIT_BY_SIGNAL = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130}


class TerminalGuard(LineFilter):
    """Replaces everything that could steer the terminal in text about to be painted, and what a terminal
    without UTF-8 would be sent as escapes of another width."""

    def __init__(self, *, unicode: bool = True) -> None:
        super().__init__()
        self._unicode = unicode

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments with control characters made visible."""
        if not self._unicode:
            return [
                segment
                if (segment.text.isascii() and segment.text.isprintable()) or segment.control
                else Segment(letters(segment.text.translate(CONTROL_TABLE)), segment.style)
                for segment in segments
            ]
        if all(segment.text.isprintable() for segment in segments):
            return segments
        return [
            segment
            if segment.text.isprintable() or segment.control
            else Segment(segment.text.translate(CONTROL_TABLE), segment.style)
            for segment in segments
        ]


def on_signals(leave: Callable[[int], None]) -> None:
    """Call `leave` with the exit code when the process is asked to end or the terminal goes away, so
    that the terminal is put back. To be called on the running loop."""
    loop = asyncio.get_running_loop()
    for number, code in EXIT_BY_SIGNAL.items():
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, leave, code)


def terminal_gone() -> bool:
    """Whether the terminal that keys were read from is there no more. The signal that says so reaches the session's
    leader alone, which may keep it for itself (`nohup`, a script with a trap)."""
    return sys.__stdin__ is not None and not os.isatty(sys.__stdin__.fileno())


def terminal_problem() -> str | None:
    """Why the app cannot be shown here, in one line; None where it can."""
    streams = (sys.__stdin__, sys.__stderr__)  # Textual reads the one and paints on the other
    if not all(stream is not None and stream.isatty() for stream in streams):
        return "tui-eval needs a terminal; without one use `tui-eval run PATH`, which prints plain lines"
    if os.environ.get("TERM", "") in ("", "dumb"):
        name = os.environ.get("TERM") or "not set"
        return f"this terminal cannot show the app (TERM is {name}); use `tui-eval run PATH`"
    return None


def has_unicode() -> bool:
    """Whether the terminal's encoding can show glyphs (Textual writes to stderr)."""
    stream = sys.__stderr__
    return "utf" in (getattr(stream, "encoding", "") or "").lower()
