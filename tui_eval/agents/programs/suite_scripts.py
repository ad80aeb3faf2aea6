"""Code that promptfoo suites bring to their providers: expressions, functions, files."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.agents.base import AgentError, Services, SessionContext
from tui_eval.agents.entry_options import CODE_FILE, names_code
from tui_eval.agents.loose_json import one_line, text_of
from tui_eval.agents.promptfoo.promptfoo_files import SettingsFiles
from tui_eval.agents.promptfoo.provider_response import provider_options
from tui_eval.config.project import AgentSpec
from tui_eval.guard.paths import confine, no_file
from tui_eval.guard.secrets import secret_values
from tui_eval.guard.trust import inline_in_node, script
from tui_eval.javascript import Hosts
from tui_eval.javascript.values import is_undefined

if TYPE_CHECKING:
    from tui_eval.scripting.script_host import Lease, ScriptHost

_FUNCTION = re.compile(r"^(?:async\s+)?(?:function\b|\([^()]*\)\s*=>|[A-Za-z_$][\w$]*\s*=>)")
_RETURNS = re.compile(r"\breturn\b")
_SECONDS = 300.0
_LARGEST = 4_000_000


class ScriptLeases:
    """The processes in which one attempt's calls of a suite's functions run, one for each language. What they keep in
    memory is there at the next call and is no other attempt's; what they started ends with the attempt. To be
    released."""

    def __init__(self, attempt: str, owner: str) -> None:
        """`attempt` and `owner` are for messages, as in `ScriptHost.lease`."""
        self._attempt = attempt
        self._owner = owner
        self._leases: dict[ScriptHost, Lease] = {}

    def of(self, host: ScriptHost) -> Lease:
        """The lease for calls of this host."""
        if host not in self._leases:
            # Its process may be ended by a call that hangs: the next has another, once that was said.
            self._leases[host] = host.lease(self._attempt, self._owner, renewed=True)
        return self._leases[host]

    async def release(self) -> None:
        """The attempt has ended. Safe to call twice."""
        for lease in self._leases.values():
            await asyncio.to_thread(lease.release, with_started=True)  # it looks at the machine's processes


class Scripts:
    """Runs the scripts of one provider; files are relative to `base`.

    Inline JavaScript runs in the isolate without trust; files that need node's modules and Python run
    in a process of their own in trusted folders.
    """

    def __init__(self, services: Services, base: str) -> None:
        self.services = services
        self.base = Path(base) if base else services.root
        self._hosts = Hosts(services.root, services.script_memory)

    async def run(
        self,
        code: str,
        values: Mapping[str, Any],
        what: str,
        default: str = "get_transform",
        given: str = "",
        leases: ScriptLeases | None = None,
        undefined: Any = None,
    ) -> Any:
        """The result of an expression, a function (called with the values in their order) or `file://…`;
        `undefined` where an isolate gives that. `given` is the code as the suite has it, where it was added
        to; `leases` say in whose process it runs (None: any that is free).

        Raises:
            AgentError: it fails; the text begins with `what`.
            NeedsTrust: it is code of a folder that is not trusted.
        """
        if code.startswith("file://"):
            return await self.file(code, list(values.values()), what, default, leases)
        plain = code.strip().rstrip(";")
        if _FUNCTION.match(plain):
            body = f"return (\n{plain}\n)({', '.join(values)});"
        elif _RETURNS.search(plain):
            body = f"{code}\n;"
        else:
            body = f"return (\n{plain}\n);"
        found = await self._evaluate(body, values, what, given or code, leases)
        return undefined if is_undefined(found) else found

    async def _evaluate(
        self, body: str, values: Mapping[str, Any], what: str, code: str, leases: ScriptLeases | None
    ) -> Any:
        from tui_eval.javascript.inline import evaluate
        from tui_eval.javascript.isolate import JavaScriptError

        def require(_: str) -> None:
            self.services.trust.require(inline_in_node(code, self.base, self.services.root))

        try:
            node = self._hosts.node
            lease = leases.of(node) if leases is not None else None
            return await evaluate(body, values, self._hosts.javascript, node, require, self.base, lease=lease)
        except JavaScriptError as error:
            raise AgentError(f"{what}: {one_line(str(error))}", code=error.code) from None

    async def file(
        self,
        reference: str,
        arguments: Sequence[Any],
        what: str,
        default: str,
        leases: ScriptLeases | None = None,
    ) -> Any:
        """Call a function of a `.js` or `.py` file.

        Raises:
            AgentError, NeedsTrust: as `run`.
        """
        path, function = self.place(reference, what)
        if path.suffix == ".py":
            return await self._call_python(path, function or default, arguments, what, leases)
        from tui_eval.javascript.inline import better_in_node, needs_node
        from tui_eval.javascript.isolate import JavaScriptError
        from tui_eval.javascript.values import UNDEFINED

        try:
            source = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise AgentError(f"{what}: cannot read {path.name}: {reason}", code="bad-setting") from None
        trusted = self.services.trust.granted
        if needs_node(path, source, function) or (trusted and better_in_node(source)):
            return await self.node(path, function, arguments, what, leases)
        try:
            found = await self._hosts.javascript.call(source, function, arguments)
        except JavaScriptError as error:
            raise AgentError(f"{what}: {path.name}: {one_line(str(error))}", code=error.code) from None
        return None if found is UNDEFINED else found

    async def value(self, reference: str, what: str, default: str) -> Any:
        """What a `.py` file's function gives, or what a `.js` file exports: a value, or a function that gives one.

        Raises:
            AgentError, NeedsTrust: as `run`.
        """
        path, function = self.place(reference, what)
        if path.suffix == ".py":
            return await self._call_python(path, function or default, [], what, None)
        self.services.trust.require(script(path, self.services.root))
        from tui_eval.javascript.node_host import ScriptError

        try:
            exported = partial(
                self._hosts.node.value_sync, path, function or "", timeout=_SECONDS, cwd=self.base
            )
            return (await asyncio.to_thread(exported)).value
        except ScriptError as error:
            raise AgentError(f"{what}: {path.name}: {one_line(str(error))}", code=error.code) from None

    async def node(
        self,
        path: Path,
        function: str | None,
        arguments: Sequence[Any],
        what: str,
        leases: ScriptLeases | None = None,
    ) -> Any:
        """Call a function of a module through the `node` on the PATH."""
        self.services.trust.require(script(path, self.services.root))
        from tui_eval.javascript.node_host import ScriptError

        try:
            host = self._hosts.node
            lease = leases.of(host) if leases is not None else None
            found = await host.call(
                path, function or "", list(arguments), timeout=_SECONDS, cwd=self.base, lease=lease
            )
        except ScriptError as error:
            raise AgentError(f"{what}: {path.name}: {one_line(str(error))}", code=error.code) from None
        return found.value

    def place(self, reference: str, what: str) -> tuple[Path, str | None]:
        """The file and function that a reference names.

        Raises:
            AgentError: there is no such file.
            NeedsTrust: it lies outside the root.
        """
        match = CODE_FILE.fullmatch(reference)
        if match is None:
            raise AgentError(f"{what}: {reference} is not a .js or .py file", code="bad-setting")
        try:
            path = confine(self.services.root, match["path"], self.services.trust, self.base)
        except (OSError, ValueError) as error:
            raise AgentError(f"{what}: {match['path']}: {error}", code="bad-setting") from None
        if not os.path.isfile(path) or path.stat().st_size > _LARGEST:
            raise AgentError(f"{what}: {no_file(path, match['path'])}", code="bad-setting")
        return path, match["function"]

    async def _call_python(
        self, path: Path, function: str, arguments: Sequence[Any], what: str, leases: ScriptLeases | None
    ) -> Any:
        self.services.trust.require(script(path, self.services.root))
        from tui_eval.scripting.python.python_host import ScriptError

        host = self._hosts.python
        lease = leases.of(host) if leases is not None else None
        try:
            return (await host.call(path, function, list(arguments), timeout=_SECONDS, lease=lease)).value
        except ScriptError as error:
            raise AgentError(f"{what}: {path.name}: {one_line(str(error))}", code=error.code) from None

    async def close(self) -> None:
        """Kill the processes."""
        await asyncio.to_thread(self._hosts.close)


class _Named:
    """Code that settings name as `file://…`, each run once for all attempts, in whatever place it stands."""

    def __init__(self, settings: Any, services: Services, base: str, what: str, default: str) -> None:
        self.references = _code_in(settings)
        self._what = what
        self._default = default
        self._scripts = Scripts(services, base)
        for reference in self.references:
            path, _ = self._scripts.place(reference, what)
            services.trust.require(script(path, services.root))
        self._lock = asyncio.Lock()
        self._given: dict[str, Any] | None = None

    async def given(self) -> dict[str, Any]:
        """What each gives, by its reference.

        Raises:
            AgentError: one fails.
        """
        async with self._lock:  # attempts that begin together
            if self._given is None:
                self._given = {
                    one: await self._scripts.value(one, self._what, self._default) for one in self.references
                }
        return self._given

    async def close(self) -> None:
        """Kill the processes that it ran in."""
        await self._scripts.close()


class ScriptConfig:
    """The `options` that a provider which is a Python or Ruby file gets: what `file://…` in its `config` names is
    read when this is made, or run where it is code, once, when they are first asked for. A provider in JavaScript
    gets its config as it is written.

    Raises:
        ConfigError, AgentError: a file cannot be read, or is not there.
        NeedsTrust: it is code, or lies outside the root, and the folder is not trusted.
    """

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        self._options = provider_options(spec, services.root)
        what = f"provider {spec.name}: config"
        files = SettingsFiles(services, Path(spec.base or services.root), what)
        given = self._options["config"]
        self._read = {name: files.filled_in(value, name) for name, value in given.items()}
        self._code = _Named(given, services, spec.base, what, "get_config")
        self._made: dict[str, Any] | None = None
        self._conceal = services.conceal
        _hide(self._read, given, services.conceal)

    @property
    def runs_code(self) -> bool:
        """Whether code gives some of it."""
        return bool(self._code.references)

    async def options(self) -> dict[str, Any]:
        """`{id, label, config, env}`.

        Raises:
            AgentError: code that the config names fails.
        """
        if self.runs_code and self._made is None:
            made = _with_code(self._options["config"], self._read, await self._code.given())
            _hide(made, self._read, self._conceal)
            self._made = made
        return {**self._options, "config": self._read if self._made is None else self._made}

    async def close(self) -> None:
        """Kill the processes that code ran in."""
        await self._code.close()


class MadeTools:
    """Tools of a model that functions of the suite give (`tools: file://tools.py:get_tools`)."""

    def __init__(self, tools: Any, spec: AgentSpec, services: Services) -> None:
        self._tools = tools
        self._what = f"provider {spec.name}: tools"
        self._code = _Named(tools, services, spec.base, self._what, "get_tools")

    async def tools(self) -> list[Any]:
        """All tools, those that are given as they are among them.

        Raises:
            AgentError: a function fails.
        """
        found = await self._code.given()
        result: list[Any] = []
        for one in self._tools if isinstance(self._tools, list) else [self._tools]:
            made = found.get(one, one) if isinstance(one, str) else one
            if not isinstance(made, list | dict):
                raise AgentError(
                    f"{self._what}: {one} gives {one_line(text_of(made), 60) or 'nothing'}, and must give a list of tools",
                    code="bad-setting",
                )
            result += made if isinstance(made, list) else [made]
        return result

    async def close(self) -> None:
        """Kill the processes that they ran in."""
        await self._code.close()


def _hide(config: Mapping[str, Any], before: Mapping[str, Any], conceal: Callable[[str], None]) -> None:
    """Mask the secrets that came from files and code; those that the entry has itself are known."""
    if config == before:
        return
    for value in secret_values(config):
        conceal(value)
        if value != (bare := value.strip()):
            conceal(bare)


def _code_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if names_code(value) else []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return list(dict.fromkeys(one for item in items for one in _code_in(item)))


def _with_code(given: Any, read: Any, found: dict[str, Any]) -> Any:
    """What was read, with what code gave in the places where the config names it; what a file holds stays as it is."""
    if isinstance(given, str):
        return found.get(given, read)
    if isinstance(given, dict):
        return {name: _with_code(item, read[name], found) for name, item in given.items()}
    if isinstance(given, list):
        return [_with_code(*pair, found) for pair in zip(given, read, strict=True)]
    return read


class Callbacks:
    """`functionToolCallbacks` of a provider: a suite's functions, JavaScript in it or `file://…` beside it,
    that answer the calls of its model."""

    def __init__(self, given: dict[str, Any], services: Services, base: str) -> None:
        self.given = given
        self.scripts = Scripts(services, base)

    def for_attempt(self, context: SessionContext) -> AttemptCallbacks:
        """The functions for one attempt."""
        return AttemptCallbacks(self, f"{context.case_id} (attempt {context.attempt})")

    async def close(self) -> None:
        """End the processes of the suite's code."""
        await self.scripts.close()


class AttemptCallbacks:
    """The functions as one attempt calls them, in a process that is its own for as long as it lasts. To be closed."""

    def __init__(self, callbacks: Callbacks, attempt: str) -> None:
        self._callbacks = callbacks
        self._leases = ScriptLeases(attempt, "suite")
        self.failed = ""
        """Why the last calls have no output, where one of their functions failed."""

    async def output(self, calls: Sequence[tuple[str, str]]) -> str | None:
        """What the functions that `calls` (names with their arguments as JSON) name give, one below the
        other; None where the suite has none of them, or one fails: then the calls themselves are the output.

        Raises:
            NeedsTrust: one is code of a folder that is not trusted.
        """
        results: list[str] = []
        self.failed = ""
        for name, arguments in calls:
            code = self._callbacks.given.get(name)
            if not isinstance(code, str):
                continue
            what = f"config.functionToolCallbacks.{name}"
            try:
                run = self._callbacks.scripts.run(code, {"args": arguments}, what, leases=self._leases)
                results.append(text_of(await run))
            except AgentError as error:
                self.failed = f"{error}; the calls themselves are the output, as in promptfoo"
                return None
        return "\n".join(results) if results else None

    async def close(self) -> None:
        """Let another attempt have the processes, unless something that was started in them still runs."""
        await self._leases.release()
