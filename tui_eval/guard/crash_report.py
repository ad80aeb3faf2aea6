"""An error of our own: one line for the person, the rest in a file that only they can read.

Neither shows values of variables; an exception's own words may hold some, so that they are short and without secrets.
"""

from __future__ import annotations

import os
import platform
import sys
import traceback
from contextlib import suppress
from pathlib import Path

from tui_eval.guard.text import clip, visible
from tui_eval.guard.trust_store import state_home


def leaves(error: BaseException) -> bool:
    """Whether an exception is the program's own end, by a signal (128 and its number): any other `SystemExit`
    is of code that somebody brought, and must not end a run, with 0 least of all."""
    return isinstance(error, SystemExit) and isinstance(error.code, int) and error.code > 128


def crash_line(error: BaseException, *, first: bool = True) -> str:
    """Write the report (behind the ones before it, where it is not the process's `first`), and say in one line
    what happened and where it is."""
    words = f"internal error: {type(error).__name__}: {clip(_masked(_said(error)), 300)}"
    try:
        place = f"details in {_shown(write_report(error, first=first))}"
    except (OSError, RuntimeError):
        place = _where(error)
    return f"{visible(words, newlines=False)}; {visible(place, newlines=False)}; please report it"


def write_report(error: BaseException, *, first: bool = True) -> Path:
    """The way to the error, line by line, and what the program runs on; the `first` of a process replaces an
    earlier report.

    Raises:
        OSError: it cannot be written.
    """
    path = state_home() / "crash.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        f"tui-eval {_version('tui-eval')}, textual {_version('textual')}, "
        f"Python {platform.python_version()}, {sys.platform}, TERM={os.environ.get('TERM', '')}\n",
        *traceback.format_exception(error),
    ]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    if first:
        flags |= os.O_EXCL
        with suppress(FileNotFoundError):
            path.unlink()
    handle = os.open(path, flags, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
        file.write(_masked("".join(lines)))
    return path


def _masked(text: str) -> str:
    """Without the secrets of the environment: an exception may speak of a header, or of an address."""
    from tui_eval.guard.masker import Masker  # imported late: nearly every process ends without this
    from tui_eval.guard.secrets import secret_values

    return Masker(secret_values(os.environ)).text(text)


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a foreign exception whose words cannot be made
        return "(it does not say)"


def _where(error: BaseException) -> str:
    """Where no file can be written: the last place the error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"in {frames[-1].filename}:{frames[-1].lineno}" if frames else "nothing is known of its place"


def _shown(path: Path) -> str:
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # imported late: it reads mail headers

    try:
        return version(package)
    except PackageNotFoundError:
        return "?"
