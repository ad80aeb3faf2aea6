"""People's code in child processes that can be killed and follow edits: hosts, processes, leases.

What is here itself is what those know of it who start no process: how it fails, and who hears what it prints.

May not: run any of it in the engine's process; know suites or agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from tui_eval.guard.trust import Trust

printed: ContextVar[Callable[[str], None] | None] = ContextVar("printed", default=None)
"""Gets what people's code printed during a call awaited in this context, beside its result."""

suite_variables: ContextVar[Mapping[str, str]] = ContextVar("suite_variables", default=MappingProxyType({}))
"""What the suite adds to the environment in which its code runs: promptfoo's `.env`, as in the tool itself."""


class SuiteVariables(Mapping[str, str]):
    """Variables among which some that the suite's file has (`wanted`) may not be: no code is run without them. Whoever
    makes an environment of these asks for all of them, which raises `NeedsTrust`."""

    def __init__(self, known: Mapping[str, str], trust: Trust, wanted: Sequence[str]) -> None:
        self._known, self._trust, self._wanted = known, trust, wanted

    def __getitem__(self, name: str) -> str:
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        for what in self._wanted:
            self._trust.require(what)
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def suite_variables_of(settings: Mapping[str, Any], trust: Trust) -> Mapping[str, str]:
    """Those of a suite with these settings."""
    known, wanted = settings.get("env_file") or {}, settings.get("env_code") or ()
    return SuiteVariables(known, trust, wanted) if wanted else known


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
