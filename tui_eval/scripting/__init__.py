"""People's code in child processes that can be killed and follow edits: hosts, processes, leases.

What is here itself is what those know of it who start no process: how it fails, and who hears what it prints.

May not: run any of it in the engine's process; know suites or agents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import MappingProxyType

printed: ContextVar[Callable[[str], None] | None] = ContextVar("printed", default=None)
"""Gets what people's code printed during a call awaited in this context, beside its result."""

suite_variables: ContextVar[Mapping[str, str]] = ContextVar("suite_variables", default=MappingProxyType({}))
"""What the suite adds to the environment in which its code runs: promptfoo's `.env`, as in the tool itself."""


class ScriptError(Exception):
    """People's code failed; the text is one line. `traceback` is theirs, `stdout` what was printed, `code` as
    in evidence (`tui_eval.causes`), `raised_at` the file and line of theirs, where that is known, `columns`
    the characters of that line between which it was, from 0."""

    def __init__(
        self,
        message: str,
        *,
        traceback: str = "",
        stdout: str = "",
        code: str = "script-raised",
        raised_at: tuple[str, int] | None = None,
        columns: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.columns = columns
        self.raised_at = raised_at
        self.traceback = traceback
        self.stdout = stdout


class ScriptTimeout(ScriptError):
    """People's code did not end in time."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="script-time-limit")
