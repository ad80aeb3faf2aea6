"""promptfoo providers that are a JavaScript file: `callApi(prompt, context)`, run by node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.entry_options import Options
from tui_eval.agents.loose_json import one_line
from tui_eval.agents.programs.suite_scripts import Scripts
from tui_eval.agents.promptfoo.provider_response import (
    call_context,
    prompt_of,
    provider_options,
    read_response,
)
from tui_eval.config.project import AgentSpec
from tui_eval.events import Event, Finished, Note
from tui_eval.guard.text import clip
from tui_eval.guard.trust import script
from tui_eval.javascript.node_host import NodeHost, ScriptError

PRINTED = 10_000
"""Characters of what a provider prints that are kept with the attempt."""


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
                yield Note(f"printed: {clip(error.stdout.rstrip(), PRINTED)}")
            raise AgentError(
                f"{_place(agent.file, error.raised_at)}: {one_line(str(error))}",
                code=error.code,
                said=one_line(str(error)),
                traceback=error.traceback,
            ) from None
        if result.stdout:
            yield Note(f"printed: {clip(result.stdout.rstrip(), PRINTED)}")
        value = result.value if not isinstance(result.value, str) else {"output": result.value}
        events, reply = read_response(value, request.turn)
        for event in events:
            yield event
        if reply.latency_ms is None:
            reply.latency_ms = round((time.monotonic() - began) * 1000, 1)
        yield Finished(reply)


def _place(file: Path, raised_at: tuple[str, int] | None) -> str:
    """The provider's file, with the line of it, or of a file that it imports, where it failed."""
    if raised_at is None:
        return file.name
    name, line = Path(raised_at[0]).name, raised_at[1]
    return f"{file.name}:{line}" if name == file.name else f"{file.name}, {one_line(name)}:{line}"
