"""People's JavaScript that needs node's modules, run by the node that is installed (`script_host`).

CommonJS and ES modules; TypeScript where node strips types itself (22.6 or later) or there is `tsx`.
Inline JavaScript of suites comes here only where an isolate has not what it asks for (`inline`).
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from tui_eval.guard.trust import TYPESCRIPT_ENDINGS
from tui_eval.javascript.values import is_undefined
from tui_eval.scripting.script_host import (
    CallResult,
    Lease,
    ScriptError,
    ScriptHost,
    ScriptTimeout,
    Variables,
    request,
    result_of,
)
from tui_eval.scripting.script_process import ScriptProcess

__all__ = [
    "NodeHost",
    "NodeMissing",
    "ScriptError",
    "ScriptTimeout",
]

OLDEST = (18, 0)
"""The oldest node whose modules the worker can load."""

_WORKER = str(Path(__file__).with_name("node_worker.mjs"))
_STRIPS_TYPES = (22, 6)
_Place = tuple[Path, bool, Path, Variables]


class NodeMissing(ScriptError):
    """There is no node that could run the file; the text says what is needed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="cannot-run")


class NodeHost(ScriptHost):
    """Runs functions of people's JavaScript files.

    A function is named by what the file exports (`checks.total` for one within an object), `""` is
    the export itself. `cwd` is the current folder of the process, the file's own if not given.
    Whether the files may run at all (trust) is for the caller to have asked.
    """

    language = "node"

    async def call(
        self,
        file: Path,
        function: str = "",
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        lease: Lease | None = None,
        cwd: Path | None = None,
        lenient: bool = False,
        changed: str = "",
    ) -> CallResult:
        """Call an exported function; a promise is awaited, `undefined` is None.

        Args:
            args: JSON-able values.
            timeout: Seconds.
            lease: Whose process it runs in; without one, any.
            lenient: where there is no such export, call the default one.
            changed: the value is `{returned, changed}`, with what stands under this name in its first object, as the
                function has left it.

        Raises:
            NodeMissing: there is no node, or none that can run this file.
            ScriptError: it throws, is not there or gives what JSON cannot hold.
            ScriptTimeout: it did not end in time.
        """
        more = {"lenient": lenient, "changed": changed}
        return await self._asked("call", file, function, args, timeout, cwd, more, lease)

    def call_sync(
        self,
        file: Path,
        function: str = "",
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        cwd: Path | None = None,
        lenient: bool = False,
        told: bool = False,
    ) -> CallResult:
        """As `call`, for threads without an event loop; of `args`, what is undefined is `undefined` there. `told`: the
        value is `{value, undefined, changed}`, with what became of the members of the first one, which it is laid over:
        those that are `undefined` then, and those that the call itself changed."""
        missing = [place for place, value in enumerate(args) if is_undefined(value)]
        more = {"lenient": lenient, "told": told, "undefined": missing}
        asked = {**request("call", file, function, args, None), **more}
        return result_of(self._ask(_placed(asked, cwd), timeout))

    def import_sync(
        self, file: Path, function: str = "", *, timeout: float | None = None, cwd: Path | None = None
    ) -> None:
        """Import a file, which runs it, and see that it exports the function (`""`: a function or a provider by
        itself); that is not called.

        Raises:
            As `call`.
        """
        result_of(self._ask(_placed(request("import", file, function, (), None), cwd), timeout))

    def value_sync(
        self,
        file: Path,
        function: str = "",
        args: Sequence[Any] = (),
        *,
        timeout: float | None = None,
        cwd: Path | None = None,
        reference: str = "",
    ) -> CallResult:
        """What a file exports; a function is called with `args` for it.

        Functions within the value become texts `file://REFERENCE:__fn_0`, … (of what a function `make`
        gives: `__fn_make_0`), and may be called by these names. `args` stand in them, since it takes these to make
        them again; where they are too long for that it is an error.

        Raises:
            As `call`.
        """
        asked = {**request("value", file, function, args, None), "reference": reference or str(file)}
        return result_of(self._ask(_placed(asked, cwd), timeout))

    async def provider(
        self,
        file: Path,
        function: str,
        options: Mapping[str, Any],
        prompt: str,
        context: Mapping[str, Any],
        *,
        timeout: float | None = None,
        cwd: Path | None = None,
    ) -> CallResult:
        """`callApi(prompt, context)` of the provider that a file exports.

        A class is made once per `options` (`{id, config, …}`); a function is called itself.

        Raises:
            As `call`.
        """
        given = [dict(options), prompt, dict(context), {}]
        return await self._asked("provider", file, function, given, timeout, cwd, {})

    def identity_sync(
        self,
        file: Path,
        function: str,
        options: Mapping[str, Any],
        *,
        timeout: float | None = None,
        cwd: Path | None = None,
    ) -> str | None:
        """What the provider that a file exports calls itself (its `id()`); None where it says nothing.

        Raises:
            As `call`.
        """
        asked = request("identity", file, function, [dict(options)], None)
        return result_of(self._ask(_placed(asked, cwd), timeout)).value

    async def _asked(
        self,
        operation: str,
        file: Path,
        function: str,
        args: Sequence[Any],
        timeout: float | None,
        cwd: Path | None,
        more: Mapping[str, Any],
        lease: Lease | None = None,
    ) -> CallResult:
        asked = _placed({**request(operation, file, function or "", args, None), **more}, cwd)
        async with aclosing(self._answers(asked, timeout, lease)) as answers:
            async for answer in answers:
                return result_of(answer)
        raise AssertionError("a call has an answer")

    def _place(self, request: Mapping[str, Any]) -> _Place:
        file = Path(request["file"])
        return Path(request["cwd"]), file.suffix in TYPESCRIPT_ENDINGS, file.parent, self._added()

    def _launch(self, place: _Place) -> ScriptProcess:
        folder, typescript, home, variables = place
        if not folder.is_dir():
            raise ScriptError(f"{folder}: no such folder", code="cannot-run")
        node = shutil.which("node")
        if node is None:
            raise NodeMissing("JavaScript files need node, and there is no node on PATH; install Node.js")
        version = node_version(node)
        if version < OLDEST:
            raise NodeMissing(f"JavaScript files need node {OLDEST[0]} or later; {node} is {_shown(version)}")
        flags = typescript_flags(node, version, home) if typescript else []

        def command(channel: int) -> list[str]:
            return [node, "--no-warnings", *flags, _WORKER, str(channel)]

        return ScriptProcess(command, folder, self.language, self.memory, variables=variables)


def installed() -> bool:
    """Whether there is a node on PATH."""
    return shutil.which("node") is not None


def _placed(asked: dict[str, Any], cwd: Path | None) -> dict[str, Any]:
    return {**asked, "cwd": str(cwd or Path(asked["file"]).parent)}


@functools.cache
def node_version(node: str) -> tuple[int, int]:
    """Which node this is, asked once.

    Raises:
        NodeMissing: it does not start, or is none.
    """
    try:
        done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise NodeMissing(f"{node} does not start: {error}") from None
    found = re.match(r"v(\d+)\.(\d+)", done.stdout)
    if found is None:
        raise NodeMissing(f"{node} --version says {done.stdout.strip()[:40]!r}; is it node?")
    return int(found[1]), int(found[2])


def typescript_flags(node: str, version: tuple[int, int], folder: Path) -> list[str]:
    """What makes node run TypeScript: nothing, its own flag, or a `tsx`: the project's, or one that
    is installed for all (promptfoo brings it).

    Raises:
        NodeMissing: nothing does.
    """
    if version >= (23, 6) or (22, 18) <= version < (23, 0):
        return []
    if version >= _STRIPS_TYPES:
        return ["--experimental-strip-types"]
    shared = Path(node).resolve().parents[1] / "lib" / "node_modules"
    homes = [above / "node_modules" for above in (folder, *folder.parents)]
    for home in (*homes, shared, shared / "promptfoo" / "node_modules"):
        loader = home / "tsx" / "dist" / "loader.mjs"
        if loader.is_file():
            return ["--import", loader.as_uri()]
    least = ".".join(map(str, _STRIPS_TYPES))
    raise NodeMissing(
        f"TypeScript files need node {least} or later, or tsx in node_modules ({os.path.basename(node)} is "
        f"{_shown(version)}); compile it to JavaScript"
    )


def _shown(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
