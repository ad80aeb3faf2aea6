"""Agents that are a Python function of the person's own, run in processes beside the engine's; attempts that
run at the same time have one each, as far as there are (`script_host.Lease`).

The function's parameters decide how it is called: `f(message)` is the StartToAgent guide's contract (a case
with `messages` is given as one list), `f(message, session)` and generators are called turn by turn. What has
a default is the function's own, unless it is called `session`. It returns text or `(text, metadata)`; a
generator yields `tui_eval.events` and text.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from tui_eval.agents.base import (
    Agent,
    AgentError,
    Capabilities,
    RememberingSession,
    Request,
    Services,
    Session,
    SessionContext,
)
from tui_eval.agents.entry_options import Options
from tui_eval.agents.http.error_answers import fact_first
from tui_eval.agents.http.json_reply import Paths, read_reply, usage_from
from tui_eval.agents.loose_json import one_line, text_of
from tui_eval.agents.programs.suite_scripts import ScriptConfig
from tui_eval.agents.promptfoo.provider_response import (
    call_context,
    prompt_of,
    read_response,
)
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.events import Event, Finished, HandOff, Message, Note, TextDelta, ToolCall, UsageReport
from tui_eval.guard.once import parsed
from tui_eval.guard.trust import agent_code
from tui_eval.guard.trust import command as command_name
from tui_eval.model import Reply, Usage
from tui_eval.scripting.python.python_host import (
    CallResult,
    Description,
    Lease,
    PythonHost,
    ScriptError,
    python_at,
)

SessionWay = Literal["", "second", "by name"]
"""How a function gets the session: not at all, after the message, or by keyword alone."""


def _session_way(described: Description) -> SessionWay:
    """A second parameter without a default is the session; one with a default (`retries=3`) is the function's own,
    unless that is its name."""
    if "session" in described.by_keyword:
        return "by name"
    placed = [name for name in described.parameters if name not in described.by_keyword]
    if len(placed) > 1 and (placed[1] == "session" or placed[1] not in described.optional):
        return "second"
    return ""


_MAKES_NAMES = (b"globals(", b"setattr(", b"exec(", b"import *")
_REACHES_ITSELF = (
    b"__getattr__",
    b"__setattr__",
    b"__dict__",
    b"vars(",
    b"locals(",
    b"sys.modules",
    b"import_module(",
)
"""Words of a module that gives itself names through its own object."""


def takes_message_alone(text: bytes, function: str) -> bool:
    """Whether a file's text shows that its function is given the message and no session (`_session_way`).
    Only of one that is written plainly, once: a decorator, or whatever gives the name another meaning, may
    make anything of it."""
    if any(word in text for word in _MAKES_NAMES):
        return False
    import ast  # imported late: of most agents nobody asks

    try:
        tree = parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    written = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = [node for node in written if node.name == function]
    if len(found) != 1 or found[0].decorator_list:
        return False
    for node in ast.walk(tree):
        if node is not found[0] and function in (
            getattr(node, "name", None), getattr(node, "asname", None),
            node.id if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) else None,
            *(node.names if isinstance(node, ast.Global) else ()),
        ):  # fmt: skip
            return False
    taken = found[0].args
    placed = [*taken.posonlyargs, *taken.args]
    own = placed[len(placed) - len(taken.defaults) :]
    return (
        bool(placed)
        and taken.vararg is taken.kwarg is None
        and all(one.arg != "session" for one in (*placed[1:], *taken.kwonlyargs))
        and all(one in own for one in placed[1:2])
    )


def functions_instead(text: bytes, function: str) -> list[str] | None:
    """The functions of a file whose text shows that none has this name; None where one may."""
    if any(word in text for word in (*_MAKES_NAMES, *_REACHES_ITSELF)):
        return None
    import ast  # imported late: only `check` asks

    try:
        tree = parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        named = (getattr(node, key, None) for key in ("name", "asname", "id", "rest"))
        if function in named or (isinstance(node, ast.Global) and function in node.names):
            return None
    written = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [node.name for node in written if not node.name.startswith("_")]


class PythonAgent(Agent):
    """One function. With `promptfoo: true` it is a promptfoo provider's `call_api`."""

    capabilities = Capabilities(tokens=True, tools=True, metadata=True, sly_data=True, structure=True)

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(
            spec,
            services,
            frozenset({"function", "fresh", "python", "promptfoo", "config", "id", "provider_env"}),
        )
        given = options.required("function", "my_agent.py:answer")
        if not spec.typed:
            services.trust.require(agent_code(given, spec.name, spec.base, services.root))
        self.file, self.function = options.file_function(given, "function")
        self.promptfoo = options.flag("promptfoo")
        self.told_case = not self.promptfoo
        self._alone: tuple[tuple[int, int], bool] | None = None
        self.fresh = options.flag("fresh")
        self.config = ScriptConfig(spec, services) if self.promptfoo else None
        self.options: dict[str, Any] = {}
        self.host = PythonHost(services.root, services.script_memory, self._program(options))
        self.takes_whole_conversation = False if self.promptfoo else None

    def _program(self, options: Options) -> str:
        """The Python that runs the function: its own, where one is named, as that of a virtual environment."""
        spec, services = self.spec, self.services
        own = options.mapping("config").get("pythonExecutable") if self.promptfoo else options.text("python")
        named = own or (os.environ.get("PROMPTFOO_PYTHON") if self.promptfoo else None)
        if not named:
            return sys.executable
        base = Path(spec.base or services.root)
        if own and not spec.typed:
            purpose = f"Python for the agent {spec.name}"
            services.trust.require(command_name(str(own), purpose, base, services.root))
        program = python_at(str(named), base)
        if shutil.which(program) is None:
            raise ConfigError(f"agent {spec.name}: there is no program {named} to run {self.shown}")
        return program

    @classmethod
    def reported(cls, spec: AgentSpec) -> Capabilities:
        own = spec.options.get("promptfoo") is True
        return msgspec.structs.replace(
            cls.capabilities, calls_in_metadata=own, guardrails=own, finish_reason=own
        )

    def is_told_case(self) -> bool:
        """Not where it is seen to take the message alone."""
        if not self.told_case:
            return False
        with suppress(OSError):
            status = self.file.stat()
            stamp = status.st_mtime_ns, status.st_size
            if self._alone is None or self._alone[0] != stamp:
                self._alone = stamp, takes_message_alone(self.file.read_bytes(), self.function)
            return not self._alone[1]
        return True

    @property
    def shown(self) -> str:
        """The function as people name it."""
        return f"{self.file.name}:{self.function}"

    @property
    def preparing(self) -> str:
        return f"loading {self.file.name}"

    async def open(self, context: SessionContext) -> Session:
        """Begin a conversation, by how the function wants to be called, in a process that has loaded its file: imports
        may take many seconds that are not the agent's.

        Raises:
            AgentError: its file does not load, or has no such function; code that its config names fails.
        """
        if self.config is not None:
            self.options = await self.config.options()
        lease = self.host.lease(f"{context.case_id} (attempt {context.attempt})", fresh=self.fresh)
        try:
            described = await self.host.describe(self.file, self.function, lease=lease)
        except ScriptError as error:
            lease.release()
            raise AgentError(one_line(str(error)), code=error.code) from None
        except BaseException:
            lease.release()
            raise
        streams = described.is_async_gen or described.is_generator
        way = _session_way(described)
        self.takes_whole_conversation = not way and not streams and not self.promptfoo
        return PythonSession(self, context, lease, way)

    async def close(self) -> None:
        """Kill the function's processes."""
        if self.config is not None:
            await self.config.close()
        await asyncio.to_thread(self.host.close)


_ALONE = "f(message) was given this message alone; f(message, session) finds those before it in session['messages']"


class PythonSession(RememberingSession):
    """One conversation; the function is given what was said before in `session["messages"]`."""

    def __init__(
        self,
        agent: PythonAgent,
        context: SessionContext,
        lease: Lease,
        session_way: SessionWay,
    ) -> None:
        super().__init__()
        self.agent = agent
        self.context = context
        self.lease = lease
        self.session_way: SessionWay = session_way

    async def send(self, request: Request) -> AsyncIterator[Event]:
        """Call the function for one turn, or for the whole conversation."""
        began = time.monotonic()
        agent = self.agent
        given = self._arguments(request), self._keywords(request)
        if len(self.messages) == 2 and not (self.session_way or agent.promptfoo or request.messages):
            yield Note(_ALONE)  # once: the turns after it are like it
        said = _Streamed()
        result: CallResult | None = None
        try:
            if agent.promptfoo:
                result = await agent.host.call(agent.file, agent.function, *given, lease=self.lease)
            else:
                stream = agent.host.stream(agent.file, agent.function, *given, lease=self.lease)
                async with aclosing(stream):  # type: ignore[type-var]
                    async for part in stream:
                        if isinstance(part, CallResult):
                            result = part
                        elif said.take(part, agent.shown):
                            yield part
        except ScriptError as error:
            raise AgentError(
                f"{agent.shown}: {one_line(str(error))}",
                answer=said.text,
                code=error.code,
                said=fact_first(str(error)),
                traceback=error.traceback,
            ) from None
        events: list[Event] = []
        if result is None:
            reply = said.reply(request.turn, agent.shown)
        elif agent.promptfoo:
            events, reply = read_response(result.value, request.turn, of_python=True)
        else:
            events, reply = self._read(result.value, request, pair=result.is_tuple)
        for event in events:
            yield event
        if result is None or reply.latency_ms is None:
            reply.latency_ms = round((time.monotonic() - began) * 1000, 1)
        self.remember(request, reply)
        yield Finished(reply)

    async def close(self) -> None:
        """Let another attempt have the process."""
        self.lease.release()

    def _arguments(self, request: Request) -> list[Any]:
        agent = self.agent
        if agent.promptfoo:
            return [prompt_of(request), agent.options, call_context(request, self.context)]
        message: Any = request.text
        if request.messages is not None and (agent.takes_whole_conversation or message is None):
            message = request.messages
        return [message, self._session(request)] if self.session_way == "second" else [message]

    def _keywords(self, request: Request) -> dict[str, Any]:
        by_name = self.session_way == "by name" and not self.agent.promptfoo
        return {"session": self._session(request)} if by_name else {}

    def _session(self, request: Request) -> dict[str, Any]:
        context = self.context
        trace = context.trace
        return {
            "session_id": context.session_id,
            "case_id": context.case_id,
            "attempt": context.attempt,
            "turn": request.turn,
            "model": context.model or self.agent.spec.model,
            "messages": self.messages,
            "vars": request.vars or context.vars,
            "sly_data": request.sly_data,
            "traceparent": trace.traceparent if trace is not None else None,
        }

    def _read(self, value: Any, request: Request, *, pair: bool) -> tuple[list[Event], Reply]:
        """What the function returned; a tuple (`pair`) is (text, metadata) and nothing else: as JSON text its metadata
        would count as not reported, and every limit on it would pass."""
        shown, turn = self.agent.shown, request.turn
        two = isinstance(value, list) and len(value) == 2
        if value is None or (two and value[0] is None):
            raise AgentError(
                f"{shown} returned nothing; it must return text or (text, metadata)",
                code="empty-answer",
                said="returned nothing",
            )
        if two and (pair or isinstance(value[0], str)) and isinstance(value[1], dict | None):
            text, metadata = value[0], value[1] or {}
            reply = Reply(turn=turn, text=text_of(text), metadata=metadata, usage=usage_from(metadata))
            if not isinstance(text, str):
                reply.output = text
            return ([TextDelta(reply.text)] if reply.text else []), reply
        if pair:
            said = f"returned ({', '.join(map(_kind, value))})"
            raise AgentError(
                f"{shown} {said}; it must return text or (text, metadata)", code="unreadable", said=said
            )
        try:
            return read_reply(value, turn, Paths(), rows=request.schema is not None)
        except AgentError as error:
            raise AgentError(f"{shown}: {error}", answer=error.answer, like=error) from None


class _Streamed:
    """What a generator gave. Its own text is what it gave piece by piece, and messages of its own (`Message` without an
    agent), each of which stands for itself; one that is the pieces before it once more adds nothing."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._pieces: list[str] = []
        self._reply: Reply | None = None
        self._usage: Usage | None = None
        self._cost: float | None = None
        self._acted = False

    def take(self, event: Event, who: str) -> bool:
        """One event; whether it is passed on.

        Raises:
            AgentError: the turn had ended with a text, which would be judged without what comes now.
        """
        ended = self._reply
        if ended is not None and (isinstance(event, Finished) or (ended.text and _speaks(event))):
            said = "gave Finished twice" if isinstance(event, Finished) else "gave text after Finished"
            raise AgentError(
                f"{who} {said}: Finished is the last of a turn",
                answer=self.text,
                code="unreadable",
                said=said,
            )
        if isinstance(event, Finished):
            self._reply = event.reply
            return False
        if isinstance(event, TextDelta) and not event.agent:
            self._pieces.append(event.text)
        elif isinstance(event, Message) and not event.agent:
            self._texts += [*self._before(event.text), event.text]
            self._pieces = []
        elif isinstance(event, UsageReport):
            self._usage, self._cost = event.usage, event.cost
        self._acted = self._acted or isinstance(event, ToolCall | HandOff | Message)
        self._acted = self._acted or (
            isinstance(event, TextDelta) and bool(event.text)
        )  # an empty piece is none
        return True

    def _before(self, message: str) -> list[str]:
        """The pieces before a message, where they are not the same."""
        before = "".join(self._pieces)
        return [before] if before.strip() not in ("", message.strip()) else []

    @property
    def text(self) -> str:
        """Its own text so far."""
        if not self._texts:
            return "".join(self._pieces)
        return "\n\n".join([*self._texts, *self._before(self._texts[-1])])

    def reply(self, turn: int, who: str) -> Reply:
        """What it comes to.

        Raises:
            AgentError: it gave nothing.
        """
        reply = self._reply
        if reply is None and not self._acted:
            raise AgentError(
                f"{who} gave nothing: neither text nor a call of a tool",
                code="empty-answer",
                said="gave nothing",
            )
        reply = reply or Reply(turn=turn)
        reply.turn = turn
        reply.text = reply.text or self.text
        reply.usage = reply.usage or self._usage or usage_from(reply.metadata or {})
        reply.cost = reply.cost if reply.cost is not None else self._cost
        return reply


def _speaks(event: Event) -> bool:
    """Whether these are words of its own."""
    return isinstance(event, TextDelta | Message) and not event.agent and bool(event.text.strip())


_KINDS = {str: "text", dict: "a mapping", list: "a list", bool: "a boolean", type(None): "None"}


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "a number")
