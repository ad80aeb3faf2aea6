"""A pane's whole text in the person's pager, the app suspended meanwhile."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

from textual.app import App, SuspendNotSupported

from tui_eval.guard.text import visible


def pager_command() -> list[str] | None:
    """`$PAGER` (or less, or more) as arguments; None where there is none to be found."""
    wanted = os.environ.get("PAGER") or "less"
    for candidate in (wanted, "less", "more"):
        try:
            parts = shlex.split(candidate)
        except ValueError:
            continue
        if parts and shutil.which(parts[0]):
            return parts
    return None


def show(app: App[Any], text: str, stem: str = "text") -> str:
    """Show a text in the pager and come back when it ends.

    The text is made safe first: `less -R` and `more` pass control characters on.

    Returns:
        What to tell the person where it did not work; empty otherwise.
    """
    command = pager_command()
    if command is None:
        return "no pager found: set $PAGER, or write it to a file with Y"
    with tempfile.NamedTemporaryFile("wb", prefix=f"tui-eval-{stem}-", suffix=".txt", delete=False) as file:
        file.write(visible(text).encode("utf-8", "replace"))
    try:
        with suspended(app):
            subprocess.run([*command, file.name], check=False)
    except SuspendNotSupported:
        return "this terminal cannot be handed to a pager"
    except OSError as error:
        return f"{command[0]}: {error.strerror or error}"
    finally:
        with contextlib.suppress(OSError):
            os.unlink(file.name)
    return ""


@contextlib.contextmanager
def suspended(app: App[Any]) -> Iterator[None]:
    """The terminal handed over; ctrl+c there is meant for the other program, not for us."""
    with app.suspend():
        before = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
