"""People's Python, run in child processes that can be killed and that follow edits (`script_host`).

A script finds its folder as current folder and first on `sys.path`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.events import Event, TextDelta
from tui_eval.scripting.script_host import (
    CallResult,
    Lease,
    ScriptError,
    ScriptHost,
    ScriptTimeout,
    into,
    pass_on,
    printed,
    request,
    result_of,
    too_late,
)
from tui_eval.scripting.script_process import ScriptProcess

__all__ = ["CallResult", "Description", "Lease", "PythonHost", "ScriptError", "ScriptTimeout", "printed"]

_WORKER = str(Path(__file__).with_name("python_worker.py"))


@dataclass(frozen=True, slots=True)
class Description:
    """How a function may be called: its named parameters, and of which kind it is."""

    parameters: list[str]
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

    def _place(self, request: Mapping[str, Any]) -> Path:
        return Path(request["file"]).parent

    def _launch(self, place: Path) -> ScriptProcess:
        if not place.is_dir():
            raise ScriptError(f"{place}: no such folder")
        packages = str(Path(__file__).parents[2])

        def command(channel: int) -> list[str]:
            return [sys.executable, _WORKER, str(channel), str(place), str(self._root), packages]

        return ScriptProcess(command, place, self.language)

    async def stream(
        self,
        file: Path,
        function: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        lease: Lease | None = None,
    ) -> AsyncIterator[Event]:
        """Call a generator, sync or async, and yield its events as they come; text is a `TextDelta`.

        A function that is no generator yields what it returns. `timeout` is for the whole of it.

        Raises:
            ScriptError: as `call`, or it yielded something that is neither text nor an event.
            ScriptTimeout: it did not end in time.
        """
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        asked = request("stream", file, function, args, kwargs)
        process, identity = await self._begin(asked, into(answers), lease)
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        try:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        answer = await answers.get()
                except TimeoutError:
                    raise too_late(file, function, timeout) from None
                pass_on(answer)
                if answer["kind"] == "item":
                    yield _event(answer, file, function)
                    continue
                value = result_of(answer).value
                if value is not None:
                    yield _event(answer, file, function)
                return
        finally:
            process.leave(identity)

    async def describe(self, file: Path, function: str, *, timeout: float | None = 60) -> Description:
        """How the function may be called; loads the file.

        Raises:
            ScriptError: the file fails to load or has no such function.
        """
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        process, identity = await self._begin(request("describe", file, function, (), None), into(answers))
        try:
            async with asyncio.timeout(timeout):
                return Description(**result_of(await answers.get()).value)
        except TimeoutError:
            raise too_late(file, function, timeout) from None
        finally:
            process.leave(identity)

    def describe_sync(self, file: Path, function: str, *, timeout: float | None = 60) -> Description:
        """As `describe`, for threads without an event loop."""
        return Description(
            **result_of(self._ask(request("describe", file, function, (), None), timeout)).value
        )


def _event(answer: dict[str, Any], file: Path, function: str) -> Event:
    value = answer["value"]
    if isinstance(value, str):
        return TextDelta(value)
    if answer["type"] == "event" or (isinstance(value, dict) and "type" in value):
        try:
            return msgspec.convert(value, Event)  # pyright: ignore[reportArgumentType, reportReturnType]
        except msgspec.ValidationError as error:
            raise ScriptError(f"{file.name}:{function} gives an event that is none: {error}") from None
    raise ScriptError(f"{file.name}:{function} gives a {type(value).__name__}, neither text nor an event")
