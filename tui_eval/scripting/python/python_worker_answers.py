"""Answers of the Python worker as JSON, and errors in a line; imported only by `python_worker`, from its own
folder."""

from __future__ import annotations

import inspect
import json
import linecache
import sys
import traceback
from collections.abc import Callable, Sequence, Set
from itertools import islice
from pathlib import Path
from types import TracebackType
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
    named = [item for item in parameters if item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)]
    return {
        "parameters": [item.name for item in named],
        "optional": [item.name for item in named if item.default is not item.empty],
        "by_keyword": [item.name for item in named if item.kind == item.KEYWORD_ONLY],
        "any_positional": any(item.kind == item.VAR_POSITIONAL for item in parameters),
        "any_keyword": any(item.kind == item.VAR_KEYWORD for item in parameters),
        "is_async": inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function),
        "is_generator": inspect.isgeneratorfunction(function),
        "is_async_gen": inspect.isasyncgenfunction(function),
    }


def kind_of(value: Any) -> str:
    """`event` for a struct of `tui_eval.events`, `tuple` for what JSON would make a list, else empty."""
    if isinstance(value, tuple):
        return "tuple"
    return "event" if type(value).__module__ == "tui_eval.events" else ""


def encode(value: Any) -> bytes:
    """A value as JSON; a set within it is a list, as agents of the guide's kind report their tools.

    Raises:
        Refused: JSON cannot hold it.
    """
    return json.dumps(value, default=_plain, check_circular=True).encode("ascii")


def _plain(value: Any) -> Any:
    if type(value).__module__ in ("tui_eval.events", "tui_eval.model"):
        import msgspec

        return msgspec.to_builtins(value)
    if isinstance(value, Set):
        return _in_order(value)
    kind = type(value)
    known = next((form for base in kind.__mro__ if (form := _FORMS.get(_name(base)))), None)
    if (
        known is not None and type(made := known(value)) is not kind
    ):  # numpy's long doubles stay what they are
        return made
    raise Refused(
        f"gives a value of type {_name(kind)}, which JSON cannot hold (return text, numbers, lists, dicts)"
    )


def _name(kind: type) -> str:
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _number(value: Any) -> int | float:
    if value.is_finite() and value.adjusted() > _MOST_DIGITS:
        raise Refused("gives a decimal that is too large for a number")
    return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)


_MOST_DIGITS = 400
"""Of a whole decimal: one of `1E+99999999` takes minutes to write out."""


_FORMS: dict[str, Callable[[Any], Any]] = {
    "decimal.Decimal": _number,
    "datetime.date": lambda value: value.isoformat(),
    "datetime.time": lambda value: value.isoformat(),
    "uuid.UUID": str,
    "pathlib.PurePath": str,
    "pathlib._local.PurePath": str,  # Python 3.13
    "numpy.generic": lambda value: value.item(),
}
"""What databases, drivers and numpy put beside a text, as JSON has it. By name: none of them is imported for this."""


def _in_order(value: Set[Any]) -> list[Any]:
    """A set's elements in an order that is the same in each process."""
    try:
        return sorted(value)
    except TypeError:
        return sorted(value, key=repr)


def told(error: BaseException, folders: Sequence[Path]) -> dict[str, Any]:
    """An error in a line, and the last place of the person's own code, which is what lies in `folders`."""
    found = None if isinstance(error, Refused) else _raised_at(error, folders)
    raised_at = found[:2] if found is not None else None
    columns = found[2] if found is not None else None
    return {"message": _one_line(error, raised_at), "raised_at": raised_at, "columns": columns}


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


def _raised_at(
    error: BaseException, folders: Sequence[Path]
) -> tuple[str, int, tuple[int, int] | None] | None:
    """The last line of the person's own code on the way to the error, or the line that is no Python; with the
    characters of it that were at work, where this Python keeps them (3.11 and later)."""
    if isinstance(error, SyntaxError):
        return error.filename or "?", error.lineno or 0, None
    frames: list[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    for frame in reversed(frames):
        file, line = frame.tb_frame.f_code.co_filename, frame.tb_lineno
        path = Path(file)
        own = any(path.is_relative_to(folder) for folder in folders)
        if own and not _is_ours(file) and "site-packages" not in file:
            return file, line, _columns(frame)
    return None


def _columns(frame: TracebackType) -> tuple[int, int] | None:
    """Between which characters of its line a frame was at work; they are counted in bytes there."""
    positions = getattr(frame.tb_frame.f_code, "co_positions", None)
    if positions is None or frame.tb_lasti < 0:
        return None
    first, last, start, end = next(islice(positions(), frame.tb_lasti // 2, None), (None,) * 4)
    if first is None or first != last or start is None or end is None:
        return None
    line = linecache.getline(frame.tb_frame.f_code.co_filename, first).encode("utf-8", "replace")
    before, within = (line[:place].decode("utf-8", "replace") for place in (start, end))
    return len(before), len(within)


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
