"""A file in the person's editor at a line, the app suspended meanwhile."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from tui_eval.tui.terminal.pager import not_found, program_of, run_over

_PLUS_LINE = (
    "vi",
    "vim",
    "nvim",
    "nano",
    "emacs",
    "emacsclient",
    "kak",
    "joe",
    "jed",
    "mg",
    "micro",
    "ne",
    "view",
    "vise",
    "pico",
    "e3",
    "gvim",
    "gedit",
)
_COLON_LINE = ("hx", "helix", "subl", "zed", "amp")
_GOTO_LINE = ("code", "code-insiders", "codium", "vscodium", "cursor", "windsurf")
_WAITS = {
    **dict.fromkeys((*_GOTO_LINE, "subl", "zed", "gedit"), ("--wait", "-w")),
    "gvim": ("--nofork", "-f"),
}
"""Editors with a window of their own, which return at once unless told to wait, and how they are asked to."""


class Editor:
    """The person's editor over the app that is running."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app

    def edit(self, path: Path | str, line: int = 0, others: Sequence[Path | str] = ()) -> str:
        """See `edit`."""
        return edit(self._app, path, line, others)


def editor_command(path: Path | str, line: int = 0, others: Sequence[Path | str] = ()) -> list[str] | None:
    """The editor's arguments for a file at a line; None where no editor is found.

    `$VISUAL`, else `$EDITOR`, else vi or nano. Lines are given the way the editor wants them; an
    editor that is not known gets only the file's name. One that would return at once is told to wait; of
    others that do, what is saved later is seen all the same (`SavedElsewhere`).
    """
    found = next(filter(None, map(program_of, (*_wanted().values(), "vi", "nano"))), None)
    if found is None:
        return None
    program = Path(found[0]).name.removesuffix(".exe")
    rest = [str(other) for other in others]
    waits = _WAITS.get(program)
    if waits is not None and not set(waits) & set(found):
        found = [*found, waits[0]]
    if line > 0 and program in _PLUS_LINE:
        return [*found, f"+{line}", str(path), *rest]
    if line > 0 and program in _COLON_LINE:
        return [*found, f"{path}:{line}", *rest]
    if line > 0 and program in _GOTO_LINE:
        return [*found, "--goto", f"{path}:{line}", *rest]
    return [*found, str(path), *rest]


def _wanted() -> dict[str, str]:
    """What the person set, by the variable's name."""
    return {name: os.environ[name] for name in ("VISUAL", "EDITOR") if os.environ.get(name)}


def edit(app: App[Any], path: Path | str, line: int = 0, others: Sequence[Path | str] = ()) -> str:
    """Open a file in the editor and come back when it is closed.

    Args:
        line: From 1; 0 where it is not known.
        others: Further files to open with it.

    Returns:
        What to show the person where it did not work; empty otherwise.
    """
    command = editor_command(path, line, others)
    if command is None:
        return "no editor found: set $VISUAL or $EDITOR"
    try:
        code = run_over(app, command)
    except SuspendNotSupported:
        return "this terminal cannot be handed to an editor"
    except OSError as error:
        return f"{command[0]}: {error.strerror or error}"
    if code:
        return f"{command[0]} ended with {code}"
    return not_found(_wanted(), command[0])
