"""What keeps the terminal whole: the last gate for control characters, keys that are read on whatever the terminal
sends, and the way out on signals.

Text is made safe where it enters the app (`guard.text.visible`); the filter here is for what was
forgotten, in every strip that is painted.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from rich.segment import Segment
from textual.color import Color
from textual.drivers import linux_driver
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


def _forgiving(encoding: str) -> Callable[[], Any]:
    """Bytes that are not of this encoding are U+FFFD: a key that does nothing, and a mark in a text."""
    return partial(codecs.getincrementaldecoder(encoding), errors="replace")


class KeyReader(linux_driver.LinuxDriver):
    """Textual's, which reads keys whatever comes. Textual 8.2.8 ends on the first byte that is not UTF-8 (é of a
    terminal that speaks Latin-1, a binary file pasted) and on codes of keys that are none."""

    def _run_input_thread(self) -> None:
        """Textual's own swallows what ends it; here whoever watches over threads is told (`FrameApp.thread_failed`)."""
        linux_driver.getincrementaldecoder = _forgiving  # type: ignore[assignment]
        while not self.exit_event.is_set():
            try:
                self.run_input_thread()
            except OSError:  # there is nothing to read from
                raise
            except Exception as error:  # what was read meant nothing to Textual: the rest may
                self._app.call_later(self._app._handle_exception, error)


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
    reads, paints = (stream is not None and stream.isatty() for stream in (sys.__stdin__, sys.__stderr__))
    if not (reads and paints):
        which = ", and stderr, on which it paints, is none" if reads else ""
        which = ", and stdin, from which it reads keys, is none" if paints else which
        return (
            f"tui-eval needs a terminal{which}; without one use `tui-eval run PATH`, which prints plain lines"
        )
    if os.environ.get("TERM", "") in ("", "dumb"):
        name = os.environ.get("TERM") or "not set"
        return f"this terminal cannot show the app (TERM is {name}); use `tui-eval run PATH`"
    return None


def has_unicode() -> bool:
    """Whether the terminal's encoding can show glyphs (Textual writes to stderr)."""
    stream = sys.__stderr__
    return "utf" in (getattr(stream, "encoding", "") or "").lower()
