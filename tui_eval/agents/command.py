"""Agents that are a program: one process a turn, JSON on stdin, JSON or text on stdout."""

from __future__ import annotations

import dataclasses
import re
import shlex
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from tui_eval.agents.base import Agent, AgentError, Capabilities, Request, Services, Session, SessionContext
from tui_eval.agents.held_back import without_sly_data
from tui_eval.agents.json_reply import Paths, read_reply
from tui_eval.agents.options import Options
from tui_eval.agents.program import run_program
from tui_eval.agents.provider_response import call_context, prompt_of, provider_options
from tui_eval.agents.remembering import RememberingSession
from tui_eval.agents.wire import decode, encode, one_line
from tui_eval.config import AgentSpec
from tui_eval.events import Event, Exchanged, Finished, Note, TextDelta
from tui_eval.guard.trust import agent_code
from tui_eval.model import Exchange, Reply

KEPT = 256_000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class CommandAgent(Agent):
    """One command line, without a shell. With `promptfoo: true` it is called as promptfoo's `exec:`
    does: prompt, options and context as arguments."""

    capabilities = Capabilities(
        tokens=True,
        tools=True,
        metadata=True,
        sly_data=True,
        structure=True,
        guardrails=False,
        finish_reason=False,
    )

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(
            spec, services, frozenset({"command", "env", "cwd", "promptfoo", "config", "id", "provider_env"})
        )
        self.command = _words(options, spec.options.get("command"))
        self.env = options.headers("env")
        self.promptfoo = options.flag("promptfoo")
        self.options = provider_options(spec, services.root)
        folder = options.text("cwd")
        self.cwd = str(options.path(folder, "cwd")) if folder else (spec.base or str(services.root))
        if not spec.typed:
            services.trust.require(agent_code(shlex.join(self.command), spec.name, spec.base, services.root))

    @classmethod
    def reported(cls, spec: AgentSpec) -> Capabilities:
        return dataclasses.replace(cls.capabilities, calls_in_metadata=spec.options.get("promptfoo") is True)

    async def open(self, context: SessionContext) -> Session:
        """Begin; nothing runs between turns."""
        return CommandSession(self, context)


class CommandSession(RememberingSession):
    """The conversation so far goes in with each turn."""

    def __init__(self, agent: CommandAgent, context: SessionContext) -> None:
        super().__init__()
        self.agent = agent
        self.context = context

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Run the command for one turn."""
        agent = self.agent
        began, started_at = time.monotonic(), time.time()
        argv, stdin = list(agent.command), b""
        if agent.promptfoo:
            context = call_context(request, self.context)
            argv += [prompt_of(request), encode(agent.options).decode(), encode(context).decode()]
        else:
            stdin = encode(turn_body(request, self.context, self.messages))
        code, out, err = await self._run(argv, stdin)
        spent = round((time.monotonic() - began) * 1000, 1)
        yield Exchanged(
            Exchange(
                turn=request.turn,
                request=f"{shlex.join(argv)}\n\n{_kept(stdin)}",
                response=_kept(out),
                status=code,
                started_at=started_at,
                duration_ms=spent,
                note=one_line(err[-2000:].decode("utf-8", "replace"), 1000),
            )
        )
        text = out.decode("utf-8", "replace")
        said = _ANSI.sub("", err.decode("utf-8", "replace")).strip()
        if code != 0 or (agent.promptfoo and said and not text.strip()):
            last = one_line(said.splitlines()[-1]) if said else "it said nothing"
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            raise AgentError(f"{agent.command[0]}: {how}: {last}", answer=text)
        if said:
            yield Note(f"printed: {said[:10_000]}")
        events, reply = self._read(text, request.turn)
        for event in events:
            yield event
        reply.latency_ms = spent
        self.remember(request, reply)
        yield Finished(reply)

    def _read(self, text: str, turn: int) -> tuple[list[Event], Reply]:
        if self.agent.promptfoo:
            text = _ANSI.sub("", text).strip()
            return ([TextDelta(text)] if text else []), Reply(turn=turn, text=text)
        stripped = text.strip()
        if stripped.startswith(("{", '"')):
            with suppress(ValueError):
                return read_reply(decode(stripped), turn, Paths())
        return read_reply(text.rstrip("\n"), turn, Paths())

    async def _run(self, argv: list[str], stdin: bytes) -> tuple[int, bytes, bytes]:
        agent = self.agent
        # How programs are told by the environment: OpenTelemetry's convention for child processes.
        more = {**agent.env, **{name.upper(): value for name, value in self.context.trace_headers.items()}}
        return await run_program(argv, stdin, agent.cwd, more)


def turn_body(request: Request, context: SessionContext, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What endpoints and programs of somebody's own are sent: the message, those before it with it,
    the conversation's id, and what is known beside."""
    given = request.messages if request.messages is not None else [{"role": "user", "content": request.text}]
    metadata: dict[str, Any] = {"case_id": context.case_id, "attempt": context.attempt, "turn": request.turn}
    if context.model:
        metadata["model"] = context.model
    if request.vars:
        metadata["vars"] = request.vars
    if context.trace is not None:
        metadata["traceparent"] = context.trace.traceparent
    body: dict[str, Any] = {
        "message": prompt_of(request),
        "messages": [*messages, *given],
        "session_id": context.session_id,
        "metadata": metadata,
    }
    if request.sly_data is not None:
        body["sly_data"] = request.sly_data
    if request.schema is not None:
        body["schema"] = request.schema
    return body


def _kept(data: bytes) -> str:
    return without_sly_data(data[:KEPT].decode("utf-8", "replace"))


def _words(options: Options, value: Any) -> list[str]:
    if isinstance(value, str):
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise options.error("command", f"cannot be split into words: {error}") from None
    elif isinstance(value, list):
        words = [str(word) for word in value]
    else:
        words = []
    if not words:
        raise options.error("command", 'is missing, for example ["./agent", "--json"]')
    return words
