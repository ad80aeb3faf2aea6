"""promptfoo providers that are a JavaScript file, `callApi(prompt, context)` run by node, or a Ruby file,
`call_api(prompt, options, context)`, each call a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options
from tui_eval.agents.loose_json import decode, encode, one_line
from tui_eval.agents.programs.command import Output, run_program
from tui_eval.agents.programs.suite_scripts import ScriptConfig, Scripts
from tui_eval.agents.promptfoo.provider_response import (
    call_context,
    prompt_of,
    provider_options,
    read_response,
)
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.events import Event, Finished, Note
from tui_eval.guard.paths import no_file
from tui_eval.guard.text import clip
from tui_eval.guard.trust import command as command_name
from tui_eval.guard.trust import script
from tui_eval.javascript.node_host import NodeHost, ScriptError

PRINTED = 10_000
"""Characters of what a provider prints that are kept with the attempt."""


def _printed(text: str) -> Note:
    return Note(f"printed: {clip(text, PRINTED)}")


def _answered(value: Any, turn: int, began: float) -> list[Event]:
    """What a call that began at `began` (`time.monotonic`) answered."""
    events, reply = read_response(value, turn)
    if reply.latency_ms is None:
        reply.latency_ms = round((time.monotonic() - began) * 1000, 1)
    return [*events, Finished(reply)]


class JavaScriptAgent(Agent):
    """One file, a class with `callApi` or a function."""

    capabilities = Capabilities(tokens=True, tools=True, metadata=True, calls_in_metadata=True)

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, frozenset({"file", "id", "label", "config", "provider_env"}))
        given = options.required("file", "file://provider.js")
        self.file, self.function = Scripts(services, spec.base).place(given, f"provider {spec.name}")
        services.trust.require(script(self.file, services.root))
        self.settings = provider_options(spec, services.root)
        self.host = NodeHost(services.root, services.script_memory)

    async def open(self, context: SessionContext) -> Session:
        """Begin; the file is loaded with the first call."""
        return JavaScriptSession(self, context)

    async def close(self) -> None:
        """Kill the provider's process."""
        await asyncio.to_thread(self.host.close)


class JavaScriptSession(Session):
    """One row."""

    def __init__(self, agent: JavaScriptAgent, context: SessionContext) -> None:
        self.agent = agent
        self.context = context

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Call the provider once."""
        began = time.monotonic()
        agent = self.agent
        context = call_context(request, self.context)
        try:
            result = await agent.host.provider(
                agent.file, agent.function or "", agent.settings, prompt_of(request), context,
                cwd=agent.file.parent if not agent.spec.base else None,
            )  # fmt: skip
        except ScriptError as error:
            if error.stdout:
                yield _printed(error.stdout.rstrip())
            raise AgentError(
                f"{_place(agent.file, error.raised_at)}: {one_line(str(error))}",
                code=error.code,
                said=one_line(str(error)),
                traceback=error.traceback,
            ) from None
        if result.stdout:
            yield _printed(result.stdout.rstrip())
        value = result.value if not isinstance(result.value, str) else {"output": result.value}
        for event in _answered(value, request.turn, began):
            yield event


def _place(file: Path, raised_at: tuple[str, int] | None) -> str:
    """The provider's file, with the line of it, or of a file that it imports, where it failed."""
    if raised_at is None:
        return file.name
    name, line = Path(raised_at[0]).name, raised_at[1]
    return f"{file.name}:{line}" if name == file.name else f"{file.name}, {one_line(name)}:{line}"


# -- Ruby.


_REFERENCE = re.compile(r"(?:file://)?(?P<path>.+?\.rb)(?::(?P<function>[\w.!?]+))?")
_CALL = r"""
require 'json'
given = JSON.parse($stdin.read)
$stdin.reopen(File::NULL)
$LOAD_PATH.unshift(File.dirname(given['file']))
load given['file']
owner, dot, name = given['function'].rpartition('.')
target = dot.empty? ? self : Object.const_get(owner)
File.write(given['result'], JSON.generate(target.send(name, *given['arguments'])))
"""


class RubyAgent(Agent):
    """One function of one file, or a method of a class in it (`Class.method`)."""

    capabilities = Capabilities(tokens=True, tools=True, metadata=True, calls_in_metadata=True)

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(spec, services, frozenset({"file", "id", "config", "provider_env"}))
        given = options.required("file", "file://provider.rb")
        match = _REFERENCE.fullmatch(given)
        if match is None:
            raise ConfigError(f"provider {spec.name}: {given} is not FILE.rb or FILE.rb:function")
        services.trust.require(script(Path(spec.base or services.root) / match["path"], services.root))
        self.file = options.path(match["path"], "file")
        self.function = match["function"] or "call_api"
        if not os.path.isfile(self.file):
            raise ConfigError(f"provider {spec.name}: {no_file(self.file, match['path'])}")
        self.config = ScriptConfig(spec, services)
        self.options: dict[str, Any] = {}
        own = options.mapping("config").get("rubyExecutable")
        if own:
            purpose = f"Ruby for the provider {spec.name}"
            services.trust.require(command_name(str(own), purpose, self.file.parent, services.root))
        named = own or os.environ.get("PROMPTFOO_RUBY")
        found = shutil.which(str(named or "ruby"))
        if found is None:
            raise ConfigError(f"provider {spec.name}: there is no {named or 'ruby'} on the PATH")
        self.program = found

    @property
    def preparing(self) -> str:
        return "loading the config" if self.config.runs_code else ""

    async def open(self, context: SessionContext) -> Session:
        """Begin; nothing runs between turns.

        Raises:
            AgentError: code that its config names fails.
        """
        self.options = await self.config.options()
        return RubySession(self, context)

    async def close(self) -> None:
        """Kill the processes of its config's code."""
        await self.config.close()


class RubySession(Session):
    """One row."""

    def __init__(self, agent: RubyAgent, context: SessionContext) -> None:
        self.agent = agent
        self.context = context

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Call the provider once."""
        began = time.monotonic()
        agent = self.agent
        with tempfile.TemporaryDirectory(prefix="tui-eval-") as folder:
            result = Path(folder) / "result.json"
            given = {
                "file": str(agent.file),
                "function": agent.function,
                "arguments": [prompt_of(request), agent.options, call_context(request, self.context)],
                "result": str(result),
            }
            more = {name.upper(): value for name, value in self.context.trace_headers.items()}
            command = [agent.program, "-e", _CALL]
            written: list[Output] = []
            try:
                code, out, err = await run_program(
                    command, encode(given), agent.file.parent, more, agent.services.script_memory, written
                )
            except (asyncio.CancelledError, AgentError):
                if said := b"".join(one.taken() for one in written).decode("utf-8", "replace").strip():
                    yield _printed(said)
                raise
            answer = result.read_bytes() if code == 0 and result.is_file() else b""
        if said := (out + err if code == 0 else out).decode("utf-8", "replace").strip():
            yield _printed(said)
        if code != 0:
            why = err.decode("utf-8", "replace").strip().partition("\n")[0]
            raise AgentError(
                f"{agent.file.name}: {one_line(why) or f'exit code {code}'}",
                code="script-raised",
                said=one_line(why) or f"exit code {code}",
            )
        try:
            value = decode(answer)
        except ValueError:
            raise AgentError(
                f"{agent.file.name}: {agent.function} ended without an answer",
                code="empty-answer",
                said="ended without an answer",
            ) from None
        for event in _answered(value, request.turn, began):
            yield event
