"""neuro-san as a library: networks run without a server, in a process of an interpreter that has it.

That may be another Python than ours (neuro-san 0.6.98 wants 3.12); `neuro_san_worker` is what it runs.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from tui_eval.scripting.script_host import ScriptError, ScriptHost, into, pass_on, request, result_of
from tui_eval.scripting.script_process import ScriptProcess

_WORKER = Path(__file__).with_name("neuro_san_worker.py")


def interpreter(configured: str | None, base: Path) -> str | None:
    """The Python that has neuro-san: the configured one, else ours where it is installed, else None."""
    if configured:
        path = os.path.expanduser(configured)
        return str(base / path) if "/" in path else shutil.which(path) or path
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
            return ScriptProcess(command, self._root, self.language, self.memory)
        except OSError as error:
            raise ScriptError(f"cannot run {place}: {error.strerror}", code="cannot-run") from None

    async def chat(
        self, network: str, body: dict[str, Any], metadata: Mapping[str, str], use_direct: bool
    ) -> AsyncIterator[Any]:
        """The messages of one `streaming_chat`, as a server streams them line by line.

        Raises:
            ScriptError: there is no such network, neuro-san is not there, or its process ended.
        """
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        given = {"network": network, "body": body, "metadata": dict(metadata), "use_direct": use_direct}
        asked = request("stream", _WORKER, "chat", (), given)
        process, identity = await self._begin(asked, into(answers))
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
