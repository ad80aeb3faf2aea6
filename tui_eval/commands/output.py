"""Saying things on stdout and stderr: control characters visible, letters where there is no UTF-8."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import msgspec

from tui_eval.guard.text import storable, visible
from tui_eval.model import Problem
from tui_eval.reports.console_table import plain_letters

EXIT_OK, EXIT_FAILED, EXIT_INTERNAL, EXIT_USAGE, EXIT_NOTHING = 0, 1, 3, 4, 5


_COLOURS = {"✓": 32, "✗": 31, "!": 33, "⊘": 90, "◌": 90, "≈": 33}
"""SGR numbers of the colours of outcomes and changes, by glyph."""
_TOKENS = r"(?<!\S)(?:[✓✗] (?:passed|failed|regressed|fixed)|! error|⊘ cancelled|◌ not run|≈ flaky)(?!\w)"
"""Outcomes as they are printed, glyph and word; nothing else is coloured."""


class CommandError(Exception):
    """A command that cannot do what was asked: one clear line and an exit code."""

    def __init__(self, message: str, code: int = EXIT_USAGE) -> None:
        super().__init__(message)
        self.code = code


_refused: set[str] = set()
"""Why stdout could not be written, though somebody reads it."""


def say(text: str, to: TextIO | None = None, end: str = "\n") -> None:
    """Print text that may come from outside. What cannot be printed (a reader or a terminal that has gone away, a full
    disk) ends nothing: attempts go on, and files are written. `all_printed` says whether it matters."""
    stream: TextIO = sys.stdout if to is None else to
    text = _no_orders(visible(text))
    encoding = (getattr(stream, "encoding", None) or "ascii").lower()
    if "utf" not in encoding:
        text = plain_letters(text).encode(encoding, "replace").decode(encoding)
    elif not _locale_has_signs():
        text = plain_letters(text)  # what people wrote themselves stays as it is
    if _coloured(stream):
        text = re.sub(_TOKENS, lambda found: f"\x1b[{_COLOURS[found[0][0]]}m{found[0]}\x1b[0m", text)
    put(text + end, stream)


def _no_orders(text: str) -> str:
    """A text in which CI's log sees none of its orders (`::stop-commands::x`, `##[add-mask]x`,
    `##vso[task.setvariable …]`): it would carry out what an answer says."""
    if not any(map(os.environ.get, _CI)):
        return text
    return _ORDERS.sub(lambda found: f"{found[0]}·", text)


_CI = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")
_ORDERS = re.compile(r"^[^\S\n]*(?=::)|##(?=(?:vso|teamcity)?\[)", re.MULTILINE)


def put(text: str, stream: TextIO) -> None:
    """Write it as it is, control characters too; `say` says what happens where that cannot be done."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _silence(stream)  # the pipe's reader (head, less) has enough
    except OSError as error:
        gone = _terminal_is_gone(stream, error)
        _silence(stream)
        if stream is sys.stdout and not gone:
            reason = error.strerror or str(error)
            _refused.add(reason)
            warn(f"stdout cannot be written: {reason}; it lacks what follows")


def _terminal_is_gone(stream: TextIO, error: OSError) -> bool:
    """Whether it went to a terminal that was closed, or whose line dropped: nobody looks there, as where a
    pipe's reader has gone. Such a terminal is one no more for `isatty`, and a device still; a disk that fails
    gives EIO of a file."""
    try:
        return error.errno == errno.EIO and stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # closed, or no file
        return False


_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
"""What Python puts into LC_CTYPE where the locale is C (PEP 538)."""


def _locale_has_signs() -> bool:
    """Whether the locale that was asked for is one of UTF-8: under C and POSIX Python writes UTF-8 all the
    same (PEP 540). Where none was asked for (containers, CI), or Python was told its encoding, it is."""
    get = os.environ.get
    if not sys.flags.utf8_mode or get("PYTHONUTF8") == "1" or get("PYTHONIOENCODING"):
        return True
    kind = get("LC_CTYPE", "")
    named = get("LC_ALL") or (kind if kind not in _COERCED else "") or get("LANG")
    return not named or "utf" in named.lower()


def _silence(stream: TextIO) -> None:
    """Let what is printed there from now on go nowhere."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def all_printed() -> bool:
    """Whether stdout has all that was printed, or nobody who would want it."""
    return not _refused


def say_lines(lines: Iterable[str]) -> None:
    """Print many lines, some hundred at once."""
    lines = iter(lines)
    while some := list(islice(lines, _LINES_AT_ONCE)):
        say("\n".join(some))


_LINES_AT_ONCE = 500


def _coloured(stream: TextIO) -> bool:
    """Whether what this stream goes to shows colours, and nobody asked for none."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return not plain and stream.isatty()


def terminal_width() -> int | None:
    """Columns of the terminal that stdout goes to; None where it is none (a pipe, a file)."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def warn(text: str) -> None:
    """Print on stderr."""
    say(text, sys.stderr)


def warn_line(text: str) -> None:
    """Print one line on stderr, whatever line breaks an argument or a file put into it."""
    say(visible(text, newlines=False), sys.stderr)


def warn_of_large(path: Path) -> None:
    """Say that a large file is being read: of one with 20,000 results nothing is seen for many seconds."""
    with contextlib.suppress(OSError):
        if (size := path.stat().st_size) >= _LARGE:
            warn_line(f"reading {path.name}, {size / 1e6:,.0f} MB")


_LARGE = 10_000_000


def counted(number: int, word: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def say_json(value: Any, indent: int = 2) -> None:
    """Print one JSON document, ASCII; in one line with an indent of -1."""
    try:
        text = json.dumps(value, allow_nan=False, default=str)
    except ValueError:
        text = ""
    if not text or "\\ud" in text:  # what is not storable as it is: NaN, half a surrogate pair
        text = json.dumps(storable(value), default=str)
    # The standard library indents in Python, which takes seconds for a hundred thousand cases.
    text = msgspec.json.format(text, indent=indent) if indent >= 0 else text
    say(text.replace("##", "#\\u0023"))  # says the same, and is no order to CI's log


def report_problems(problems: Iterable[Problem]) -> int:
    """Print the errors among problems on stderr, each once; how many they are. Of what was passed over one
    line says how much."""
    errors = 0
    problems = list(problems)
    passed = {one.path for one in problems if one.passed_over and one.level == "note"}
    if passed:
        what = f"{counted(len(passed), 'place')} that may hold suites passed over"
        warn(
            f"{what}: {', '.join(sorted(passed)[:3])}{', …' if len(passed) > 3 else ''}; tui-eval check says why"
        )
    for text, level in dict.fromkeys((str(problem), problem.level) for problem in problems):
        if level == "error":
            errors += 1
            warn(text)
    return errors
