"""Tests made by a person's Python function (formats/promptfoo.md 4.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tui_eval.guard.trust import NeedsTrust
from tui_eval.suites.promptfoo.reading import Missing, Reading, brief

DEFAULT_FUNCTION = "generate_tests"
TIME_LIMIT = 60.0
"""Seconds that a generator may take."""


def run(reading: Reading, path: Path, function: str | None, config: Any) -> list[Any]:
    """What the function returns, a list of tests; it is called with `config` only if one is given.

    Raises:
        Missing: it needs trust, fails, or returns no list; the text says which.
    """
    from tui_eval.scripting.python_host import ScriptError

    name = function or DEFAULT_FUNCTION
    shown = reading.relative(path)
    try:
        reading.trust.require(f"run {shown}:{name} to make tests")
    except NeedsTrust as error:
        raise Missing(str(error)) from None
    reading.saw(path)
    try:
        arguments = [] if config is None else [config]
        result = reading.python().call_sync(path, name, arguments, timeout=TIME_LIMIT)
    except ScriptError as error:
        raise Missing(f"{shown}:{name}: {error}") from None
    except TimeoutError:
        raise Missing(f"{shown}:{name} took longer than {TIME_LIMIT:.0f} s") from None
    if not isinstance(result.value, list):
        raise Missing(f"{shown}:{name} must return a list of tests, not {brief(result.value)}")
    return result.value
