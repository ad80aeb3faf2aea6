"""Asking an engine for things: start, cancel, pause. What comes of it is read from the store."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.config.project import state_dir
from tui_eval.engine.request import ReachedLimit, RunRequest
from tui_eval.guard import private
from tui_eval.guard.paths import read_plain
from tui_eval.store.encoding import encode_json

_FACTS = 64 * 1024
"""Bytes of what an engine says of itself in a run's folder, at most."""
_START_SECONDS = 60.0
_LINE_LIMIT = 64 * 1024 * 1024


class EngineError(Exception):
    """The engine refused or could not be reached; one clear line. `limit` is the limit of a run that is
    reached, where it refuses to go on for that."""

    limit: ReachedLimit | None = None


class RunStarted(msgspec.Struct):
    """A run that has begun: its id, folder, number of attempts, errors of files that were left out, and what is
    said of it beforehand."""

    run_id: str
    folder: Path
    attempts: int
    problems: list[str]
    note: str = ""


class EngineClient:
    """A connection to the engine of this app, started when first needed.

    One per app, on its loop. `close` leaves the engine to end by itself once its runs have.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._socket: Path | None = None
        self._attends = ""
        """The run whose engine it is attached to; empty: it has an engine of its own."""
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._lock = asyncio.Lock()
        self._numbers = 0

    async def start(self) -> None:
        """Start the engine's process and connect; does nothing when connected.

        Raises:
            EngineError: it did not come up; the text names its log.
        """
        async with self._lock:
            await self._ensure()

    async def attach(self, run_folder: Path) -> None:
        """Connect to the engine that executes this run, instead of one of our own: from now on none is started.

        Raises:
            EngineError: no engine executes it.
        """
        try:
            facts = json.loads(read_plain(run_folder / "engine.json", _FACTS))
            socket = Path(facts["socket"])
            if not _is_of_an_engine(socket):
                raise ValueError("an engine listens nowhere else")
        except (OSError, ValueError, KeyError, TypeError):
            raise EngineError(f"run {run_folder.name} is executed by no engine that can be reached") from None
        async with self._lock:
            await self._disconnect()
            self._process = None
            self._socket, self._attends = socket, run_folder.name
            await self._ensure()

    async def run(self, request: RunRequest) -> RunStarted:
        """Start a run. Paths of the request are absolute or relative to the current folder.

        Raises:
            EngineError: nothing to run, or what is wrong with the request.
        """
        return _started(await self._ask("run", _STARTED, request=msgspec.to_builtins(request)))

    async def resume_run(self, folder: Path, overrides: RunRequest | None = None) -> RunStarted:
        """Go on with an interrupted run (`engine.resuming.resume`)."""
        given = msgspec.to_builtins(overrides or RunRequest())
        return _started(await self._ask("resume", _STARTED, folder=str(folder), request=given))

    async def rescore(self, folder: Path, overrides: RunRequest) -> RunStarted:
        """Judge recorded answers of a run again (`engine.after.rescoring.rescore`)."""
        given = msgspec.to_builtins(overrides)
        return _started(await self._ask("rescore", _STARTED, folder=str(folder), request=given))

    async def cancel(self, run_id: str, attempt_refs: Sequence[int] | None = None) -> int:
        """Cancel these attempts, or all of the run; how many were concerned."""
        refs = None if attempt_refs is None else list(attempt_refs)
        return (await self._ask("cancel", {"cancelled": int}, run=run_id, attempts=refs))["cancelled"]

    async def pause(self, run_id: str, paused: bool = True) -> None:
        """Start nothing new of this run, or go on."""
        await self._ask("pause", run=run_id, paused=paused)

    async def step(
        self, run_id: str, attempt_ref: int, action: str = "send", text: str | None = None
    ) -> None:
        """Decide on the turn that an attempt of a stepped run waits before: `send` (with another text
        where one is given), `skip`, `run_on` (ask no more) or `stop`.

        Raises:
            EngineError: no turn of this attempt waits.
        """
        await self._ask("step", run=run_id, attempt=attempt_ref, decision={"action": action, "text": text})

    async def plan_naming(
        self, folder: Path, trust: bool = False, agreed: Iterable[str] = ()
    ) -> dict[str, Any]:
        """What having a run's failures named would ask and cost: `{judge, questions, cost, free}`.

        Raises:
            EngineError: there is no judge, or nothing to name.
        """
        return await self._ask("plan_naming", folder=str(folder), trust=trust, agreed=sorted(agreed))

    async def name_failures(
        self, folder: Path, total: int, trust: bool = False, agreed: Iterable[str] = ()
    ) -> None:
        """Begin it; `naming` reports how far it is."""
        await self._ask("name", folder=str(folder), total=total, trust=trust, agreed=sorted(agreed))

    async def naming(self, run_id: str, cancel: bool = False) -> dict[str, Any]:
        """`{done, total, ended, error}` of a naming; `cancel` stops it."""
        return await self._ask("naming", run=run_id, cancel=cancel)

    @property
    def connected(self) -> bool:
        """Whether an engine is at the other end: asking it something starts none."""
        if self._writer is None or self._writer.is_closing():
            return False
        ended = self._process is not None and self._process.poll() is not None
        return not ended and self._reader is not None and not self._reader.at_eof()

    async def state(self) -> dict[str, Any]:
        """`{runs: [id, …], pid, troubles: {id: what the disk refuses}}` of the engine."""
        return await self._ask("state")

    async def shutdown(self) -> None:
        """Stop the runs (a resume goes on with them) and end the engine."""
        with contextlib.suppress(EngineError):
            await self._ask("shutdown")

    async def close(self) -> None:
        """Disconnect; the engine goes on while it has runs."""
        async with self._lock:
            await self._disconnect()

    async def _ask(
        self, operation: str, answered: Mapping[str, type] | None = None, **values: Any
    ) -> dict[str, Any]:
        """The engine's answer, which has all that is `answered`.

        Raises:
            EngineError: what it refuses, that it is gone, or that what answers there is no engine.
        """
        async with self._lock:
            await self._ensure()
            assert self._reader is not None and self._writer is not None
            self._numbers += 1
            message = {"id": self._numbers, "op": operation, **values}
            try:
                self._writer.write(encode_json(message) + b"\n")
                await self._writer.drain()
                answer = await self._answer_to(self._numbers)
            except OSError as error:
                await self._disconnect()
                raise EngineError(f"the engine is gone: {error}; its log: {self._log()}") from None
            except ValueError:  # no JSON, or a line without an end
                answer = {"ok": None}
            if not answer:
                await self._disconnect()
                raise EngineError(f"the engine ended; its log: {self._log()}")
            has = answer["ok"] is not True or all(
                isinstance(answer.get(name), kind) for name, kind in (answered or {}).items()
            )
            if not isinstance(answer["ok"], bool) or not has:
                await self._disconnect()
                raise EngineError(f"what answers at {self._socket} is another program, no engine of tui-eval")
        if not answer["ok"]:
            refused = EngineError(str(answer.get("error", "the engine refused")))
            with contextlib.suppress(msgspec.ValidationError):
                refused.limit = msgspec.convert(answer.get("limit"), ReachedLimit | None)
            raise refused
        return answer

    async def _answer_to(self, number: int) -> dict[str, Any]:
        """What answers this message; empty where nothing will. Answers that were no longer waited for (their asker was
        cancelled) come before it.

        Raises:
            ValueError: what comes is no answer of an engine.
        """
        assert self._reader is not None
        while line := await self._reader.readline():
            answer = json.loads(line)
            if not isinstance(answer, dict) or "ok" not in answer:
                raise ValueError("no answer")
            if answer.get("id") in (number, None):
                return answer
        return {}

    async def _ensure(self) -> None:
        """Connect where that is to be done, to an engine that is started for it.

        Raises:
            EngineError: it did not come up, or the one attached to has ended.
        """
        if self.connected:
            return
        await self._disconnect()
        if self._attends:
            if self._socket is None or not await self._connect(self._socket):
                raise EngineError(f"the engine of run {self._attends} has ended")
            return
        try:
            sockets = private.runtime_folder()
        except OSError as error:
            raise EngineError(f"{error.filename}: {error.strerror}") from None
        self._socket = sockets / f"engine-{os.getpid()}-{os.urandom(3).hex()}.sock"  # as `_NAME` has it
        log = self._log()
        self._process = process = await asyncio.to_thread(_spawn, self._socket, log)
        loop = asyncio.get_running_loop()
        end = loop.time() + _START_SECONDS
        while not await self._connect(self._socket):
            if process.poll() is not None or loop.time() > end:
                raise EngineError(f"the engine did not start; its log: {log}")
            await asyncio.sleep(0.02)

    async def _connect(self, socket: Path) -> bool:
        try:
            self._reader, self._writer = await asyncio.open_unix_connection(str(socket), limit=_LINE_LIMIT)
        except (OSError, ValueError):  # a path with NUL in it
            return False
        return True

    async def _disconnect(self) -> None:
        writer, self._reader, self._writer = self._writer, None, None
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _log(self) -> Path:
        return state_dir(self.root) / "engine.log"


_NAME = re.compile(r"(?:engine|run)-\d{1,10}-[0-9a-f]{6}\.sock", re.ASCII)


def _is_of_an_engine(socket: Path) -> bool:
    """Whether a socket that a run's folder names can be an engine's, which ended perhaps: the folder may be anybody's,
    and what else listens on this machine (docker, an ssh agent) is to be sent nothing.

    Raises:
        OSError, ValueError: what it names is no path.
    """
    if not socket.is_absolute() or not _NAME.fullmatch(socket.name):
        return False
    try:
        found = os.lstat(socket)
    except FileNotFoundError:
        return True
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()


def _spawn(socket: Path, log: Path) -> subprocess.Popen[bytes]:
    """The engine in a session of its own, so that the terminal's end is not its end."""
    try:
        log.parent.parent.mkdir(parents=True, exist_ok=True)
        private.make_folder(log.parent)
        handle = private.open_file(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        output = open(handle, "ab")  # noqa: SIM115 - handed to the child
    except OSError:
        output = open(os.devnull, "wb")  # noqa: SIM115
    with output:
        return subprocess.Popen(
            # -P: the project's folder, in which this may run, is no place to import modules from.
            [sys.executable, "-P", "-m", "tui_eval.engine.service.process", "--socket", str(socket)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


_STARTED: Mapping[str, type] = {"run": str, "folder": str, "attempts": int, "problems": list, "note": str}
"""What an engine answers that has begun a run."""


def _started(answer: dict[str, Any]) -> RunStarted:
    return RunStarted(
        answer["run"], Path(answer["folder"]), answer["attempts"], answer["problems"], answer["note"]
    )
