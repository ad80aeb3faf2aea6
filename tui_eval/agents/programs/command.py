"""Agents that are a program: one process a turn, JSON on stdin, JSON or text on stdout."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.agents.base import (
    OF_ITS_OWN_FORM,
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
from tui_eval.agents.http.answer_body import is_events
from tui_eval.agents.http.json_reply import Paths, read_reply, words_beside_json, written_otherwise
from tui_eval.agents.loose_json import broken_object, decode, encode, one_line
from tui_eval.agents.neuro_san.sly_data import without_sly_data
from tui_eval.agents.promptfoo.provider_response import call_context, prompt_of, provider_options
from tui_eval.config.project import AgentSpec
from tui_eval.events import Event, Exchanged, Finished, Note, TextDelta
from tui_eval.guard.fair_share import Share
from tui_eval.guard.text import clip
from tui_eval.guard.trust import agent_code
from tui_eval.model import Exchange, Reply
from tui_eval.scripting import child_limits, suite_variables
from tui_eval.scripting.python.python_worker_watcher import descendants, kill

# -- Running a program to its end: it is killed with everything that it started when the attempt is cut.


OUTPUT_LIMIT = 64_000_000
"""Bytes of output that are read at all."""
ERROR_KEPT = 1_000_000
"""Bytes that are kept of what it writes to its errors."""
_LOOK = 0.05
_SILENT = 0.3
"""Seconds without a byte after which a program that has ended has said everything."""


async def run_program(
    argv: Sequence[str],
    stdin: bytes,
    cwd: str | Path,
    more: Mapping[str, str],
    memory: float | None = None,
    written: list[Output] | None = None,
) -> tuple[int, bytes, bytes]:
    """The exit code, and what it wrote to its output and its errors. `more` is added to the environment, after
    what the suite adds; each of its processes may have `memory` (gigabytes; None: the usual). `written` gets both
    outputs as they are read, for who has to know them although it does not end.

    Raises:
        AgentError: it cannot be run, or writes without end.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, **added} if (added := {**suite_variables.get(), **more}) else None,
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Cut while it starts, asyncio would wait for it, and for what it starts, to end by itself.
        with suppress(OSError, ValueError):
            process = await starting
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        if isinstance(error, OSError) and not os.access(cwd, os.X_OK):  # which the system says of the program
            reason = f"{cwd} (`cwd`): {reason}" if os.path.isdir(cwd) else f"there is no folder {cwd} (`cwd`)"
        raise AgentError(
            f"cannot run {argv[0]}: {reason}", code="cannot-run", said=str(reason), place=argv[0]
        ) from None
    child_limits.groups.add(process.pid)
    child_limits.limit(process.pid, child_limits.limit_of(memory))
    assert process.stdin and process.stdout and process.stderr
    out, err = Output(process.stdout, argv[0]), Output(process.stderr, argv[0], ERROR_KEPT)
    if written is not None:
        written += [out, err]
    tasks = [asyncio.ensure_future(part) for part in (out.read(), err.read(), _write(process.stdin, stdin))]
    try:
        await _ended(process, tasks, (out, err))
        await asyncio.wait([asyncio.ensure_future(_exit(process))])
        assert process.returncode is not None
        return process.returncode, out.taken(), err.taken()
    finally:
        if process.returncode is None:
            _end_what_left_the_group(process.pid)
        # Also what it started and left behind: the group is its own.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        child_limits.groups.remove(process.pid)
        for task in tasks:
            task.cancel()
        # All of them are heard out: an error that nobody asks for would be printed.
        await asyncio.shield(asyncio.gather(*tasks, _exit(process), return_exceptions=True))
        # What left the group may hold the pipes for ever; they are closed at this end.
        process._transport.close()  # type: ignore[attr-defined]  # asyncio has no public way


def _end_what_left_the_group(pid: int) -> None:
    """What a program that still runs has started in a session of its own (`setsid`, `detached: true`) is found by
    its parents as long as these live. Its own group stands still meanwhile: it would start anew what ends."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGSTOP)
    for _ in range(3):  # also what was started meanwhile
        if not (found := descendants(pid)):
            return
        kill(found)


async def _ended(
    process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]], outputs: Sequence[Output]
) -> None:
    """Until it has said everything: to the end of its output, or, where what it started holds that open, until
    it has ended itself and nothing more comes.

    Raises:
        AgentError: it writes without end.
    """
    left = set(tasks)
    silent_since = (-1, 0.0)
    while left:
        done, left = await asyncio.wait(left, timeout=_LOOK, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
        if process.returncode is None:
            continue
        size, now = sum(output.size for output in outputs), time.monotonic()
        if size != silent_since[0]:
            silent_since = size, now
        elif now - silent_since[1] > _SILENT:
            return


async def _exit(process: asyncio.subprocess.Process) -> None:
    """Until it has ended; asyncio's own `wait` also waits for whoever holds its pipes."""
    while process.returncode is None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await process.wait()


class Output:
    """What a program writes to one of its outputs, of `kept` bytes the beginning and the end."""

    def __init__(self, stream: asyncio.StreamReader, name: str, kept: int = OUTPUT_LIMIT) -> None:
        self.size = 0
        self._stream = stream
        self._name = name
        self._half = kept // 2 if kept < OUTPUT_LIMIT else kept
        self._kept = bytearray()
        self._end = bytearray()

    async def read(self) -> None:
        """To its end.

        Raises:
            AgentError: there is none.
        """
        share = Share()
        while part := await self._stream.read(65536):
            share.arrived(len(part))
            self.size += len(part)
            if self.size > OUTPUT_LIMIT:
                raise AgentError(
                    f"{self._name} wrote more than {OUTPUT_LIMIT // 1_000_000} MB",
                    code="too-large",
                    limit=f"{OUTPUT_LIMIT // 1_000_000} MB",
                    place=self._name,
                )
            fits = max(0, self._half - len(self._kept))
            self._kept += part[:fits]
            self._end += part[fits:]
            if len(self._end) > 2 * self._half:
                del self._end[: -self._half]
            await share.turn()

    def taken(self) -> bytes:
        """What was kept of it."""
        end = self._end[-self._half :]
        left_out = self.size - len(self._kept) - len(end)
        between = f"\n… {left_out} bytes left out …\n".encode() if left_out else b""
        return bytes(self._kept + between + end)


async def _write(stream: asyncio.StreamWriter, data: bytes) -> None:
    if stream.is_closing():  # the program ended without reading, and uvloop takes no more for it
        return
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.write(data)
        await stream.drain()
    stream.close()


KEPT = 256_000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class CommandAgent(Agent):
    """One command line, without a shell. With `promptfoo: true` it is called as promptfoo's `exec:`
    does: prompt, options and context as arguments."""

    capabilities = OF_ITS_OWN_FORM

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        options = Options(
            spec, services, frozenset({"command", "env", "cwd", "promptfoo", "config", "id", "provider_env"})
        )
        self.command = _words(options, spec.options.get("command"))
        self.env = options.headers("env")
        self.promptfoo = options.flag("promptfoo")
        self.told_case = not self.promptfoo
        self.options = provider_options(spec, services.root)
        folder = options.text("cwd")
        self.cwd = str(options.path(folder, "cwd")) if folder else (spec.base or str(services.root))
        if not spec.typed:
            # A command means another program in another folder; `env` was asked about when it was filled in.
            services.trust.require(agent_code(shlex.join(self.command), spec.name, self.cwd, services.root))

    @classmethod
    def reported(cls, spec: AgentSpec) -> Capabilities:
        return msgspec.structs.replace(
            cls.capabilities, calls_in_metadata=spec.options.get("promptfoo") is True
        )

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
        written: list[Output] = []

        def exchanged(code: int | None, note: str = "") -> Exchanged:
            out, err = (one.taken() for one in written) if written else (b"", b"")
            logged = one_line(("…" if len(err) > 2000 else "") + err[-2000:].decode("utf-8", "replace"), 1000)
            return Exchanged(
                Exchange(
                    turn=request.turn,
                    request=f"{shlex.join(argv)}\n\n{_kept(stdin)}",
                    response=_kept(out),
                    status=code,
                    started_at=started_at,
                    duration_ms=round((time.monotonic() - began) * 1000, 1),
                    note="; ".join(filter(None, (note, logged))),
                )
            )

        try:
            code, out, err = await self._run(argv, stdin, written)
        except asyncio.CancelledError:
            yield exchanged(None, "cut off")
            raise
        except AgentError:
            if written:
                yield exchanged(None, "failed")
            raise
        spent = round((time.monotonic() - began) * 1000, 1)
        yield exchanged(code if code >= 0 else None, f"signal {-code}" if code < 0 else "")
        text = out.decode("utf-8", "replace")
        said = _ANSI.sub("", err.decode("utf-8", "replace")).strip()
        if code != 0 or (agent.promptfoo and said and not text.strip()):
            last = one_line(said.splitlines()[-1]) if said else "it said nothing"
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            raise AgentError(
                f"{agent.command[0]}: {how}: {last}", answer=text, code="exit", said=last, place=how
            )
        if said:
            yield Note(f"printed: {clip(said, 10_000)}")
        events, reply = self._read(text, request)
        for event in events:
            yield event
        reply.latency_ms = spent
        self.remember(request, reply)
        yield Finished(reply)

    def _read(self, text: str, request: Request) -> tuple[list[Event], Reply]:
        turn = request.turn
        if self.agent.promptfoo:
            text = _ANSI.sub("", text).strip()
            return ([TextDelta(text)] if text else []), Reply(turn=turn, text=text)
        stripped = text.strip("\ufeff \t\r\n")
        if stripped.startswith("\x1b") and (plain := _ANSI.sub("", stripped).strip()).startswith("{"):
            stripped = plain  # JSON in colours (FORCE_COLOR, jq -C) is JSON
        name = self.agent.command[0]
        if not stripped:
            raise AgentError(f"{name} answered nothing", code="empty-answer", place=name)
        if "\0" in stripped:
            said = "bytes that are no text"
            what = f"{name} answered with {said}: {one_line(stripped, 80)}"
            raise AgentError(what, answer=text, code="unreadable", said=said, place=name)
        if stripped.startswith(("{", '"')) or stripped == "null":
            with suppress(ValueError):
                return read_reply(decode(stripped), turn, Paths(), rows=request.schema is not None)
        if why := broken_object(stripped) or written_otherwise(stripped):
            what = f"{name} answered with {why}: {one_line(stripped)}"
            raise AgentError(what, answer=text, code="unreadable", said=why, place=name)
        if is_events(stripped):
            said = "a stream of events, not its answer as a whole"
            what = f"{name} answered with {said}: {one_line(stripped)}"
            raise AgentError(what, answer=text, code="unreadable", said=said, place=name)
        if (beside := words_beside_json(stripped)) is not None:
            said = f"words beside its JSON: {one_line(beside, 120)}"
            what = f"{name} printed {said}; what is not the answer belongs on stderr"
            raise AgentError(what, answer=text, code="unreadable", said=said, place=name)
        return read_reply(text.removeprefix("\ufeff").rstrip("\r\n"), turn, Paths())

    async def _run(self, argv: list[str], stdin: bytes, written: list[Output]) -> tuple[int, bytes, bytes]:
        agent = self.agent
        # What programs are given by the environment: OpenTelemetry's convention for child processes.
        more = {**agent.env, **{name.upper(): value for name, value in self.context.trace_headers.items()}}
        return await run_program(argv, stdin, agent.cwd, more, agent.services.script_memory, written)


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
    return without_sly_data(clip(data[: 4 * KEPT].decode("utf-8", "replace"), KEPT))


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
