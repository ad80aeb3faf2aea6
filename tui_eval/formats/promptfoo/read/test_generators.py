"""Tests made by a person's Python or JavaScript (formats/promptfoo.md 4.4)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tui_eval.formats.promptfoo.read.promptfoo_types import JAVASCRIPT
from tui_eval.formats.promptfoo.read.suite_file import Missing, SuiteReading, brief
from tui_eval.guard.trust import NeedsTrust, script

DEFAULT_FUNCTION = "generate_tests"
TIME_LIMIT = 60.0
"""Seconds that a generator may take."""


def run(reading: SuiteReading, path: Path, function: str | None, config: Any) -> list[Any]:
    """What the function returns, a list of tests; it is called with `config` only if one is given.

    A JavaScript file may also export the list itself.

    Raises:
        Missing: it needs trust, fails, or returns no list; the text says which.
    """
    from tui_eval.scripting.script_host import ScriptError

    javascript = path.suffix[1:].lower() in JAVASCRIPT
    name = function or ("" if javascript else DEFAULT_FUNCTION)
    shown = reading.relative(path) + (f":{name}" if name else "")
    try:
        reading.trust.require(script(path, reading.root))
    except NeedsTrust as error:
        raise Missing(str(error)) from None
    reading.saw(path)
    arguments = [] if config is None else [config]
    try:
        if javascript:
            result = reading.node().value_sync(
                path,
                name,
                arguments,
                timeout=TIME_LIMIT,
                cwd=reading.base,
                reference=os.path.relpath(path, reading.base),
            )
        else:
            result = reading.python().call_sync(path, name, arguments, timeout=TIME_LIMIT)
    except ScriptError as error:
        raise Missing(f"{shown}: {error}", error.raised_at) from None
    if not isinstance(result.value, list):
        raise Missing(f"{shown} must return a list of tests, not {brief(result.value)}")
    return result.value
