"""Copying to the terminal's clipboard over SSH (OSC 52), and writing to a file where that will not do."""

from __future__ import annotations

import base64
import os
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from tui_eval.guard.text import visible
from tui_eval.tui.state.text.formatting import size

LIMIT = 74_000
"""Bytes of one OSC 52 sequence; many terminals drop longer ones (terminal.md A7)."""
TMUX_WAIT = 0.5
"""Seconds for a command of tmux, which takes a few milliseconds."""


class TakesText(Protocol):
    """An app, as far as copying goes."""

    def copy_to_clipboard(self, text: str) -> None:
        """Send a text to the terminal's clipboard (OSC 52)."""
        ...


def copied(terminal: TakesText, text: str, what: str) -> str:
    """Send a text to the terminal's clipboard, cut where it is too long for one sequence.

    Inside tmux the text is given to tmux itself, which passes it on to the terminal: sequences of programs it
    swallows unless `set-clipboard` is on.

    Returns:
        What to show the person: how much was sent, and what to do where it does not arrive.
    """
    sent = fitting(text)
    cut = f" of {size(len(text))} (cut: Y writes all to a file)" if len(sent) < len(text) else ""
    words = f"{what}: {size(len(sent))} characters{cut} copied"
    if os.environ.get("TMUX") and _given_to_tmux(sent):
        if _tmux("show-options", "-sv", "set-clipboard") == "off":
            return f"{words} into tmux (prefix ] pastes); the terminal's clipboard wants `set -s set-clipboard on`"
        return f"{words} into tmux (prefix ] pastes) and the terminal's clipboard"
    terminal.copy_to_clipboard(sent)
    words += " by OSC 52"
    if os.environ.get("TMUX"):
        words += "; tmux passes it on only with `set -s set-clipboard on`"
    return words if cut else f"{words} · nothing there? Y writes a file"


def _given_to_tmux(text: str) -> bool:
    """Whether tmux (3.2 and newer) took the text."""
    return _tmux("load-buffer", "-w", "-", given=text) is not None


def _tmux(*arguments: str, given: str = "") -> str | None:
    """What a command of tmux answers; None where it failed or took too long for a key press."""
    try:
        done = subprocess.run(
            ["tmux", *arguments],
            input=given.encode("utf-8", "replace"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TMUX_WAIT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip()


def fitting(text: str) -> str:
    """As much of the text as one sequence of `LIMIT` bytes carries, control characters visible: a
    pasted text must not run as keys in a shell."""
    shown = visible(text)
    raw = shown.encode("utf-8", "replace")
    room = LIMIT // 4 * 3
    return shown if len(raw) <= room else raw[:room].decode("utf-8", "ignore")


def sequence_length(text: str) -> int:
    """Bytes of the base64 part that a text becomes."""
    return len(base64.b64encode(text.encode("utf-8", "replace")))


def write_file(text: str, stem: str, folder: Path | None = None) -> Path:
    """Write a text to a new file that only the person can read.

    Args:
        folder: Where to; the folder for temporary files where it is None.

    Raises:
        OSError: it cannot be written.
    """
    return write_pieces((text,), stem, ".txt", folder)


def write_pieces(pieces: Iterable[str], stem: str, suffix: str, folder: Path | None = None) -> Path:
    """`write_file` for a text that comes in pieces. No part of it stays where it cannot be written, or made, to
    its end."""
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in stem)[:60].strip("-") or "text"
    handle, path = tempfile.mkstemp(prefix=f"tui-eval-{name}-", suffix=suffix, dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece.encode("utf-8", "replace"))
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
    return Path(path)
