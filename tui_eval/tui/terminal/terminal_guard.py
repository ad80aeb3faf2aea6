"""What keeps the terminal whole: the last gate for control characters, keys that are read on whatever the terminal
sends, and the way out on signals.

Text is made safe where it enters the app (`guard.text.visible`); the filter here is for what was
forgotten, in every strip that is painted.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import signal
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from rich.segment import Segment
from textual import constants, events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._time import get_time
from textual._xterm_parser import XTermParser
from textual.color import Color
from textual.drivers import linux_driver
from textual.filter import LineFilter
from textual.message import Message

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


ESC = "\x1b"
PASTE, PASTED = "\x1b[200~", "\x1b[201~"
SEQUENCE = re.compile(r"\x1b\[(?:\[[A-E]|<[0-9;-]*[Mm]|[0-9]+\$|[0-9:;<=>?]*[ -/]*[@-Z\\-~])")
"""A whole one; `[[A` to `[[E` are function keys of Linux' console, `[3$` and its like those of urxvt with shift;
Ghostty tells of a mouse left of the window by numbers below 0."""
OLD_MOUSE = re.compile(r"\x1b\[M[ -\uffff]{3}")
"""How a terminal tells of the mouse that knows no better way (GNU screen); Textual passes over it."""
BEGUN = re.compile(r"\x1b\[(?:\[|<[0-9;-]*|[0-9:;<=>?]*[ -/]*)")
REPLY = re.compile(r"\x1b(?:\][0-9]+;|P(?:[>!]\||[01][+$]r)|_G[a-z]=)[^\x00-\x1f]*(?:\x07|\x1b\\)")
"""What a terminal says of its colours, name or pictures (OSC, DCS, APC). Who asked was a shell or an editor before:
on a slow line the reply comes when that has ended."""
REPLY_BEGUN = re.compile(
    r"\x1b(?:\][0-9]+|P(?:[>!]|[01][+$]?)|_G[a-z]?|(?:\][0-9]+;|P(?:[>!]\||[01][+$]r)|_G[a-z]=)[^\x00-\x1f]*\x1b?)"
)
TYPED = re.compile(r"\x1b(?:\[\[?|O|\][0-9]+|P(?:[>!]|[01][+$]?)|_G[a-z]?)?")
"""Beginnings of sequences that a person types, too: `esc` and keys."""
BACK_TAB = "\x1b\t"
"""Shift+tab of Linux' console; elsewhere `esc` and tab."""
LATE = 2.0
"""Seconds within which the rest of any other comes; a person waits for no key as long."""
BROKEN_OFF = 5.0
"""Seconds without a word after which a key that comes alone is none of a pasted text: the line was dropped within it,
and its end will not come."""

WORD_KEYS = {"b": "ctrl+left", "f": "ctrl+right", "d": "ctrl+f", "\x7f": "ctrl+w"}
"""What alt and a key do where one types: a word back and on; to delete the next one and the one before."""


class EscapeAnd(events.Key):
    """A key right behind ESC: a person's `esc` and that key (`apart`), or alt and the key."""

    def __init__(self, character: str, key: events.Key) -> None:
        capital = len(key.key) == 1 and key.key.isupper()
        super().__init__(f"alt+shift+{key.key.lower()}" if capital else f"alt+{key.key}", None)
        self.apart = (events.Key("escape", ESC), key)
        word = WORD_KEYS.get(character)
        self.where_one_types = None if word is None else events.Key(word, None)


class KeyParser(XTermParser):
    """What the terminal sends, taken apart into keys and pasted texts where Textual's parser guesses: it gets whole
    sequences only, and neither a lone ESC nor a pasted text.

    Textual 8.2.8 gives ESC and what follows it a tenth of a second. On a slow line, and in tmux, which waits half a
    second by itself, `esc` and the next key arrive together: it took them for alt and a key that is bound nowhere, and
    `esc enter` for enter alone. A sequence of the terminal of which a part came late, and whatever stood behind an ESC
    in a pasted text, it had pressed as keys.
    """

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._held = ""
        """The beginning of a sequence that may go on in what is read next."""
        self._held_until = 0.0
        self._pasted: list[str] | None = None
        """The parts of a text that is being pasted."""
        self._heard = 0.0
        self._back_tab = os.environ.get("TERM", "").startswith("linux")

    def feed(self, data: str) -> Iterator[Message]:
        """The keys and pasted texts in what was read; nothing read is the end."""
        if not data:
            yield from super().feed(data)
            return
        broken_off = self._broken_off(data)
        rest, self._held = self._held + data, ""
        if broken_off:
            yield events.Paste("".join(self._pasted or ()).replace("\x00", ""))
            self._pasted = None
        while rest:
            found, rest = self._first(rest)
            yield from found

    def _broken_off(self, data: str) -> bool:
        """Whether what was read is a key behind a pasted text that has no end."""
        before, self._heard = self._heard, get_time()
        if self._pasted is None or self._held or self._heard - before < BROKEN_OFF:
            return False
        return len(data) == 1 or data.startswith(PASTE) or (data != PASTED and bool(SEQUENCE.fullmatch(data)))

    def tick(self) -> Iterator[Message]:
        """The keys in what was held back, once its time is over. Textual's own parser waits for nothing."""
        if not self._held or self._pasted is not None or get_time() < self._held_until:
            return
        held, self._held = self._held, ""
        if TYPED.fullmatch(held):
            yield events.Key("escape", ESC)
            yield from self._plain(held[1:])

    def _first(self, data: str) -> tuple[list[Message], str]:
        """What it begins with, and the rest."""
        if self._pasted is not None:
            return self._of_paste(data, self._pasted)
        escape = data.find(ESC)
        if escape:
            end = len(data) if escape < 0 else escape
            return self._plain(data[:end]), data[end:]
        if old := OLD_MOUSE.match(data):
            return [], data[old.end() :]
        if reply := REPLY.match(data):
            return [], data[reply.end() :]
        if REPLY_BEGUN.fullmatch(data):
            return self._hold(data)
        if data.startswith(BACK_TAB) and self._back_tab:
            return [events.Key("shift+tab", None)], data[len(BACK_TAB) :]
        if whole := SEQUENCE.match(data):
            return self._sequence(whole[0]), data[whole.end() :]
        if begun := BEGUN.match(data):
            return self._begun(begun[0], data[begun.end() :])
        if data[:3] in ANSI_SEQUENCES_KEYS and data[1:2] == "O":
            return list(super().feed(data[:3])), data[3:]
        if len(data) == 1 or data == ESC + "O":
            return self._hold(data)
        if data[1] == ESC:
            return [events.Key("escape", ESC)], data[1:]
        keys = self._plain(data[1])
        if len(keys) == 1 and isinstance(keys[0], events.Key):
            return [EscapeAnd(data[1], keys[0])], data[2:]
        return [events.Key("escape", ESC), *keys], data[2:]

    def _begun(self, begun: str, rest: str) -> tuple[list[Message], str]:
        """A sequence without its end: what comes may have it; what is broken off was typed by nobody."""
        if not rest:
            return self._hold(begun)
        if TYPED.fullmatch(begun):
            return [events.Key("escape", ESC), *self._plain(begun[1:])], rest
        return [], rest

    def _sequence(self, sequence: str) -> list[Message]:
        if sequence == PASTE:
            self._pasted = []
            return []
        found = list(super().feed(sequence))
        if self._awaiting.timeout is None:
            return found
        self._timeout_time = 0.0  # it means nothing to Textual, which would have its letters pressed
        list(super().tick())
        if len(sequence) == 3:
            return [events.Key("escape", ESC), *self._plain(sequence[1:])]
        return []

    def _of_paste(self, data: str, parts: list[str]) -> tuple[list[Message], str]:
        """The text up to its end; what may be the beginning of the end is kept for what is read next."""
        text, end, rest = data.partition(PASTED)
        if end:
            self._pasted = None
            return [events.Paste("".join([*parts, text]).replace("\x00", ""))], rest
        kept = next((size for size in range(len(PASTED) - 1, 0, -1) if data.endswith(PASTED[:size])), 0)
        parts.append(data[: len(data) - kept])
        return self._hold(data[len(data) - kept :])

    def _hold(self, data: str) -> tuple[list[Message], str]:
        self._held = data
        self._held_until = get_time() + (constants.ESCAPE_DELAY if TYPED.fullmatch(data) else LATE)
        return [], ""

    def _plain(self, text: str) -> list[Message]:
        """The keys of a text without ESC. What joins letters (ZWJ, ZWNJ) is part of what one types, but for Textual no
        letter: fields take it as pasted."""
        if not text:
            return []
        return [
            events.Paste(one.character)
            if isinstance(one, events.Key)
            and one.character
            and unicodedata.category(one.character[0]) == "Cf"
            else one
            for one in super().feed(text)
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
        linux_driver.XTermParser = KeyParser  # type: ignore[misc]
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
