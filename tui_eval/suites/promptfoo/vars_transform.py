"""`options.transformVars`: code that changes a test's vars before they are combined
(formats/promptfoo.md 7.4)."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tui_eval.guard.trust import NeedsTrust, inline_in_node, script
from tui_eval.suites.promptfoo.reading import Missing, Reading, brief
from tui_eval.suites.promptfoo.types import JAVASCRIPT

DEFAULT_FUNCTION = "get_transform"
TIME_LIMIT = 30.0
"""Seconds that one transform may take."""

_FILE = re.compile(r"file://(.+?\.(\w+))(?::(\w+))?\Z", re.DOTALL)


def transformed(reading: Reading, code: Any, vars: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    """The vars with what the transform returns laid over them.

    Inline JavaScript runs in the isolate, or in node where it needs that; `file://x.js[:name]` through node and
    `file://x.py[:name]` in Python, both where the folder is trusted.

    Raises:
        Missing: it fails, needs trust, or returns no object; the text says which.
    """
    from tui_eval.scripting.javascript import JavaScriptError
    from tui_eval.scripting.script_host import ScriptError

    if not isinstance(code, str):
        raise Missing(f"transformVars must be code or a file, not {brief(code)}")
    context = {"prompt": {}, "uuid": str(uuid.uuid4())}
    try:
        if code.startswith("file://"):
            value = _from_file(reading, code, vars, context)
        else:
            given = {"vars": vars, "context": context}
            # With any line break, even one at its end, the tool takes the code for a function's body.
            body = f"\n{code}" if "\n" in code else code
            value = _wait(_inline(reading, body, given, code))
    except (JavaScriptError, ScriptError) as error:
        raise Missing(f"transformVars: {error}") from None
    except NeedsTrust as error:
        raise Missing(str(error)) from None
    if not isinstance(value, dict):
        raise Missing(f"transformVars must return an object of vars, not {brief(value)}")
    return {**vars, **value}


async def _inline(reading: Reading, body: str, given: dict[str, Any], code: str) -> Any:
    from tui_eval.scripting.inline_javascript import evaluate

    def require(_: str) -> None:
        reading.trust.require(inline_in_node(code, reading.base, reading.root))

    hosts = reading.javascript(), reading.node()
    return await evaluate(body, given, *hosts, require, reading.base, timeout=TIME_LIMIT)


def _from_file(reading: Reading, code: str, vars: dict[str, Any], context: dict[str, Any]) -> Any:  # noqa: A002
    found = _FILE.match(code)
    kind = found[2].lower() if found else ""
    if found is None or kind not in JAVASCRIPT | {"py"}:
        raise Missing(f"transformVars: {brief(code)} is neither JavaScript nor Python")
    path = reading.find(found[1])
    reading.trust.require(script(path, reading.root))
    reading.saw(path)
    if kind == "py":
        name = found[3] or DEFAULT_FUNCTION
        return reading.python().call_sync(path, name, [vars, context], timeout=TIME_LIMIT).value
    arguments = [vars, context]
    host, name = reading.node(), found[3] or ""
    return host.call_sync(path, name, arguments, timeout=TIME_LIMIT, cwd=reading.base, lenient=True).value


def _wait(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine, also where this thread runs a loop of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
