"""neuro-san as a library: networks run without a server, in a process of an interpreter that has it.

That may be another Python than ours (neuro-san 0.6.98 wants 3.12); `neuro_san_worker` is what it runs.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from tui_eval.guard import fair_share
from tui_eval.scripting.python.python_host import python_at
from tui_eval.scripting.script_host import ScriptError, ScriptHost, into, pass_on, request, result_of
from tui_eval.scripting.script_process import Listener, ScriptProcess

_WORKER = Path(__file__).with_name("neuro_san_worker.py")
_GRACE = 20.0
"""Seconds after which a process that says nothing of a cancelled turn is taken to be blocked. All conversations are in
one process, are lost with it and are not begun again: a tool of one of them may keep it busy, or the machine is."""


def interpreter(configured: str | None, base: Path) -> str | None:
    """The Python that has neuro-san: the configured one, else ours where it is installed, else None."""
    if configured:
        return python_at(configured, base)
    return sys.executable if importlib.util.find_spec("neuro_san") else None


class Library(ScriptHost):
    """Keeps one process; a new one follows where a network or a tool was edited.

    `manifest` and `tools` stand for AGENT_MANIFEST_FILE and AGENT_TOOL_PATH; empty: the environment's.
    """

    language = "neuro-san"

    def __init__(
        self, python: str, root: Path, manifest: str = "", tools: str = "", memory: float | None = None
    ) -> None:
        super().__init__(root, memory)
        self.python = python
        self._arguments = [manifest, tools]

    def _place(self, request: Mapping[str, Any]) -> str:
        return self.python

    def _launch(self, place: str) -> ScriptProcess:
        def command(channel: int) -> list[str]:
            return [place, str(_WORKER), str(channel), *self._arguments]

        try:
            return ScriptProcess(command, self._root, self.language, self.memory, grace=_GRACE)
        except OSError as error:
            raise ScriptError(f"cannot run {place}: {error.strerror}", code="cannot-run") from None

    def conversation(
        self, network: str, metadata: Mapping[str, str], use_direct: bool, *, own: bool = False
    ) -> LibraryConversation:
        """One with that network, to be opened and closed. `own`: with the package's of that name, whatever the manifest
        lists."""
        return LibraryConversation(
            self, {"network": network, "metadata": dict(metadata), "use_direct": use_direct, "own": own}
        )

    async def begun(self, asked: dict[str, Any], listener: Listener) -> tuple[ScriptProcess, int]:
        """Send a request to the process, a new one where a network or a tool was edited.

        Raises:
            ScriptError: there can be none.
        """
        return await self._begin(asked, listener)


class LibraryConversation:
    """The turns of one conversation, in the process in which it was opened while that is there: what was edited
    meanwhile counts for the next."""

    def __init__(self, library: Library, given: dict[str, Any]) -> None:
        self.library = library
        self._key = uuid.uuid4().hex
        self._given = given
        self._process: ScriptProcess | None = None

    async def open(self) -> None:
        """Have the network read and its session made, which takes seconds that are not the agent's: no time limit of
        an attempt goes on meanwhile.

        Raises:
            ScriptError: there is no such network, neuro-san is not there, or its process ended.
        """
        await self.close()
        with fair_share.waiting():
            answer = await self._opened()
            if "lost" in answer and answer["shared"]:  # by another's doing, and nothing was asked yet
                answer = await self._opened()
            result_of(answer)

    async def _opened(self) -> dict[str, Any]:
        """What the process says of it, which is then kept for its turns if it is there."""
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        asked = request("open", _WORKER, "open", (), {"key": self._key, **self._given})
        process, identity = await self.library.begun(asked, into(answers))
        process.hold(self)
        try:
            answer = await answers.get()
            if answer["kind"] != "error":
                self._process = process
            return answer
        finally:
            process.leave(identity)
            if self._process is None:
                process.drop(self)

    async def chat(self, body: dict[str, Any]) -> AsyncIterator[Any]:
        """The messages of one `streaming_chat`, as a server streams them line by line.

        Raises:
            ScriptError: as `open`, where its process is gone since.
        """
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        asked = request("stream", _WORKER, "chat", (), {"key": self._key, "body": body})
        process, identity = self._process, None
        while process is None or (identity := process.begin(asked, into(answers), holder=self)) is None:
            await self.open()
            process = self._process
        try:
            while True:
                answer = await answers.get()
                if answer["kind"] != "item":
                    pass_on(answer)
                    result_of(answer)
                    return
                yield answer["value"]
        finally:
            process.leave(identity)

    async def close(self) -> None:
        """Release the session. Safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            process.begin(request("close", _WORKER, "close", (), {"key": self._key}), _unheard, holder=self)
            process.drop(self)


def _unheard(answer: dict[str, Any]) -> None:
    pass
