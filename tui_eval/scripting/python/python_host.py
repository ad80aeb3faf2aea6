"""People's Python, run in child processes that can be killed and that follow edits (`script_host`).

A script finds its folder as current folder and first on `sys.path`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.events import Event, TextDelta
from tui_eval.model import decoded
from tui_eval.scripting.script_host import (
    CallResult,
    Lease,
    ScriptError,
    ScriptHost,
    ScriptTimeout,
    Variables,
    printed,
    request,
    result_of,
)
from tui_eval.scripting.script_process import ScriptProcess

__all__ = ["CallResult", "Description", "Lease", "PythonHost", "ScriptError", "ScriptTimeout", "printed"]

_WORKER = str(Path(__file__).with_name("python_worker.py"))


def python_at(given: str, base: Path) -> str:
    """The Python that is named by its path (from `base`), else on the PATH. A link stays one: that of a virtual
    environment is what makes its packages found."""
    path = os.path.expanduser(given)
    return str(base / path) if "/" in path else shutil.which(path) or path


class Description(msgspec.Struct, frozen=True):
    """How a function may be called: its named parameters, those of them that have a default, those that are given by
    keyword alone; and of which kind it is."""

    parameters: list[str]
    optional: list[str]
    by_keyword: list[str]
    any_positional: bool
    any_keyword: bool
    is_async: bool
    is_generator: bool
    is_async_gen: bool


class PythonHost(ScriptHost):
    """Runs functions of people's Python files. Usable from any thread and any event loop.

    Whether the files may run at all (trust) is for the caller to have asked.
    """

    language = "Python"

    def __init__(self, root: Path, memory: float | None = None, program: str = sys.executable) -> None:
        """`program` is the Python that runs them, 3.9 or newer."""
        super().__init__(root, memory)
        self._program = program
        if program != sys.executable:  # for messages: it may be what does not work
            self.language = f"Python ({program})"

    def _place(self, request: Mapping[str, Any]) -> tuple[Path, Variables]:
        return Path(request["file"]).parent, self._added()

    def _launch(self, place: tuple[Path, Variables]) -> ScriptProcess:
        folder, variables = place
        if not folder.is_dir():
            raise ScriptError(f"{folder}: no such folder", code="cannot-run")
        packages = str(Path(__file__).parents[3])

        def command(channel: int) -> list[str]:
            return [self._program, _WORKER, str(channel), str(folder), str(self._root), packages]

        watched = os.path.isdir("/proc/self")  # the child is then the watcher of the one that runs the code
        own = 1 if watched else 0
        return ScriptProcess(
            command, folder, self.language, self.memory, own, limits_itself=True, variables=variables
        )

    async def stream(
        self,
        file: Path,
        function: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        lease: Lease | None = None,
    ) -> AsyncIterator[Event | CallResult]:
        """Call a function and yield the events of the generator, sync or async, that it is, or returns, as
        they come; text is a `TextDelta`. What one returns that makes none is the last that comes. `timeout`
        is for the whole of it.

        Raises:
            ScriptError: as `call`, or it yielded something that is neither text nor an event.
            ScriptTimeout: it did not end in time.
        """
        asked = request("stream", file, function, args, kwargs)
        answers = self._answers(asked, timeout, lease)
        async with aclosing(answers):
            async for answer in answers:
                if answer["kind"] != "item":
                    result = result_of(answer)
                    if not answer.get("streamed"):
                        yield result
                    return
                yield _event(answer)

    async def describe(
        self, file: Path, function: str, *, timeout: float | None = 60, lease: Lease | None = None
    ) -> Description:
        """How the function may be called; loads the file, in the lease's process where there is one.

        Raises:
            ScriptError: the file fails to load or has no such function.
        """
        asked = request("describe", file, function, (), None)
        before = lease is not None and lease.answered
        async with aclosing(self._answers(asked, timeout, lease)) as answers:
            async for answer in answers:
                found = Description(**result_of(answer).value)
                if lease is not None:
                    lease.answered = before  # nothing was called: it keeps nothing yet that could be lost
                return found
        raise AssertionError("a call has an answer")


def _event(answer: dict[str, Any]) -> Event:
    value = answer["value"]
    if isinstance(value, str):
        return TextDelta(value)
    if answer["type"] == "event" or (isinstance(value, dict) and "type" in value):
        try:
            return msgspec.convert(value, Event)  # pyright: ignore[reportArgumentType, reportReturnType]
        except msgspec.ValidationError as error:
            kind = value.get("type") if isinstance(value, dict) else None
            words = str(error).replace("`", "")
            raise ScriptError(f"{kind or 'an'} event: {words}", code="unreadable") from None
    raise ScriptError(f"a value of type {type(value).__name__}: neither text nor an event", code="unreadable")


decoded(Event)
