"""Answers of the Python worker as JSON, and errors in a line; imported only by `python_worker`, from its own
folder."""

from __future__ import annotations

import inspect
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_OURS = {Path(__file__).parent, Path(sys.argv[0]).parent}
"""Where the worker's own files lie, which no error is placed in (two where an installer makes links)."""


class Refused(Exception):
    """A request that cannot be done, said in words of ours."""


def description(function: Callable[..., Any]) -> dict[str, Any]:
    """How a function may be called, as `python_host.Description` has it."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    return {
        "parameters": [
            item.name for item in parameters if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
        ],
        "any_positional": any(item.kind == item.VAR_POSITIONAL for item in parameters),
        "any_keyword": any(item.kind == item.VAR_KEYWORD for item in parameters),
        "is_async": inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function),
        "is_generator": inspect.isgeneratorfunction(function),
        "is_async_gen": inspect.isasyncgenfunction(function),
    }


def kind_of(value: Any) -> str:
    """`event` for a struct of `tui_eval.events`, else empty."""
    return "event" if type(value).__module__ == "tui_eval.events" else ""


def encode(value: Any) -> bytes:
    """A value as JSON.

    Raises:
        Refused: JSON cannot hold it.
    """
    return json.dumps(value, default=_plain, check_circular=True).encode("ascii")


def _plain(value: Any) -> Any:
    if type(value).__module__ in ("tui_eval.events", "tui_eval.model"):
        import msgspec

        return msgspec.to_builtins(value)
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    raise Refused(
        f"gives a value of type {name}, which JSON cannot hold (return text, numbers, lists, dicts)"
    )


def told(error: BaseException, folders: Sequence[Path]) -> dict[str, Any]:
    """An error in a line, and the last place of the person's own code, which is what lies in `folders`."""
    raised_at = None if isinstance(error, Refused) else _raised_at(error, folders)
    return {"message": _one_line(error, raised_at), "raised_at": raised_at}


def _one_line(error: BaseException, raised_at: tuple[str, int] | None) -> str:
    try:
        text = str(error).strip()
    except Exception:
        text = ""
    if isinstance(error, Refused):
        return text
    lines = [str(error.msg)] if isinstance(error, SyntaxError) else text.splitlines()
    first = lines[0][:1000] if lines else ""
    if isinstance(error, KeyError) and error.args:
        first = f"no key {first}"
    place = f" ({Path(raised_at[0]).name}:{raised_at[1]})" if raised_at is not None else ""
    return type(error).__name__ + (f": {first}" if first else "") + place


def _raised_at(error: BaseException, folders: Sequence[Path]) -> tuple[str, int] | None:
    """The last line of the person's own code on the way to the error, or the line that is no Python."""
    if isinstance(error, SyntaxError):
        return error.filename or "?", error.lineno or 0
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    for file, line in reversed(frames):
        path = Path(file)
        own = any(path.is_relative_to(folder) for folder in folders)
        if own and not _is_ours(file) and "site-packages" not in file:
            return file, line
    return None


def traceback_of(error: BaseException) -> str:
    """The traceback from the person's own code on; none of what the worker refused itself."""
    if isinstance(error, Refused):
        return ""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))[-20_000:]


def _is_ours(file: str) -> bool:
    path = Path(file)
    return path.parent in _OURS and path.name.startswith("python_worker")
