"""A pane's whole text in the person's pager, the app suspended meanwhile."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from textual.app import App, SuspendNotSupported

from tui_eval.guard.text import clip, visible


def pager_command() -> list[str] | None:
    """`$PAGER` (or less, or more) as arguments; None where there is none to be found."""
    return next(filter(None, map(program_of, (os.environ.get("PAGER") or "less", "less", "more"))), None)


def program_of(wanted: str) -> list[str] | None:
    """A command line as arguments; None where it cannot be read or its program is not to be found."""
    try:
        parts = shlex.split(wanted)
    except ValueError:
        return None
    return parts if parts and shutil.which(parts[0]) else None


def not_found(wanted: Mapping[str, str], used: str) -> str:
    """What to show the person where the first program that a variable names is not to be found and another
    one was used; empty otherwise."""
    for name, command in wanted.items():
        if program_of(command) is not None:
            return ""
        return f"${name} ({clip(visible(command, newlines=False), 60)}) is not to be found: {used} was used"
    return ""


def show(app: App[Any], text: str, stem: str = "text") -> str:
    """Show a text in the pager and come back when it ends.

    The text is made safe first: `less -R` and `more` pass control characters on.

    Returns:
        What to show the person where it did not work; empty otherwise.
    """
    command = pager_command()
    if command is None:
        return "no pager found: set $PAGER, or write it to a file with Y"
    with tempfile.NamedTemporaryFile("wb", prefix=f"tui-eval-{stem}-", suffix=".txt", delete=False) as file:
        file.write(visible(text).encode("utf-8", "replace"))
    try:
        run_over(app, [*command, file.name])
    except SuspendNotSupported:
        return "this terminal cannot be handed to a pager"
    except OSError as error:
        return f"{command[0]}: {error.strerror or error}"
    finally:
        with contextlib.suppress(OSError):
            os.unlink(file.name)
    named = os.environ.get("PAGER")
    return not_found({"PAGER": named}, command[0]) if named else ""


ENDING = (signal.SIGHUP, signal.SIGTERM)
GRACE = 3.0
"""Seconds that the other program has to end, too; then the app goes without it: what it holds is not ours to lose."""
_ENDED = b"\0"


def run_over(app: App[Any], command: Sequence[str]) -> int:
    """A program that has the terminal until it ends; its exit code.

    Raises:
        SuspendNotSupported: the terminal cannot be handed over.
        OSError: the program cannot be started.
    """
    with suspended(app):
        process = subprocess.Popen(command)
        _wait(process)
        return process.returncode or 0


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait for its end. A terminal that goes away tells its session's leader alone, which may be the app: then it is
    told from here. The loop that hears signals stands still meanwhile, and the kernel may give one to any thread, which
    no `waitpid` here would notice: so they are read where they are written, and all of them passed on to the loop, also
    those that come together with the end: a terminal that goes away ends both at once."""
    ours, theirs = socket.socketpair()

    def wait() -> None:
        process.wait()
        with contextlib.suppress(OSError):
            theirs.send(_ENDED)

    with ours, theirs:
        theirs.setblocking(False)
        loops = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=wait, name="over", daemon=True).start()
        try:
            ended = False
            while not ended:
                data = ours.recv(64)
                ended = _ENDED in data
                _pass_on(data, loops)
                if not ended and any(number in data for number in ENDING):
                    ours.settimeout(GRACE)
                    process.send_signal(signal.SIGHUP)
        except TimeoutError:
            pass
        finally:
            signal.set_wakeup_fd(loops)
            ours.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while data := ours.recv(64):
                    _pass_on(data, loops)


def _pass_on(data: bytes, loops: int) -> None:
    """Signals, as they are written, to the loop that hears them."""
    heard = data.replace(_ENDED, b"")
    if heard and loops >= 0:
        os.write(loops, heard)


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
