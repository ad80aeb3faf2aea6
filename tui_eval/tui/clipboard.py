"""Copying to the terminal's clipboard over SSH (OSC 52), and writing to a file where that will not do."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from textual.app import App

from tui_eval.guard.text import visible
from tui_eval.tui.state.amounts import size

LIMIT = 74_000
"""Bytes of one OSC 52 sequence; many terminals drop longer ones (terminal.md A7)."""


def copied(app: App[Any], text: str, what: str) -> str:
    """Send a text to the terminal's clipboard, cut where it is too long for one sequence.

    Returns:
        What to tell the person: how much was sent, and what to do where it does not arrive.
    """
    sent = fitting(text)
    app.copy_to_clipboard(sent)
    cut = f" of {size(len(text))} (cut: Y writes all to a file)" if len(sent) < len(text) else ""
    words = f"{what}: {size(len(sent))} characters{cut} copied by OSC 52"
    if os.environ.get("TMUX"):
        words += "; tmux passes it on only with `set -g set-clipboard on`"
    return words + "" if cut else words + " · nothing there? Y writes a file"


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
    """`write_file` for a text that comes in pieces."""
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in stem)[:60].strip("-") or "text"
    handle, path = tempfile.mkstemp(prefix=f"tui-eval-{name}-", suffix=suffix, dir=folder)
    with os.fdopen(handle, "wb") as file:
        for piece in pieces:
            file.write(piece.encode("utf-8", "replace"))
    return Path(path)
