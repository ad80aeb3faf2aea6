"""A worker of a Ray cluster: the same attempts as in the engine, on a loop of its own.

Everything it is given and gives is bytes, so that Ray's records hold no secret in the clear; the environment comes as
an argument of a method, which Ray keeps nowhere (that of a constructor it does)."""

from __future__ import annotations

import asyncio
import os
import pickle
import platform
import tempfile
from collections.abc import AsyncIterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from tui_eval import __version__
from tui_eval.agents.pace import Pace
from tui_eval.config.project import AgentSpec, Config
from tui_eval.engine.attempt.attempt import execute
from tui_eval.engine.needed_first import import_first
from tui_eval.engine.places.moved_paths import moved
from tui_eval.engine.places.ray_events import EventLog
from tui_eval.engine.plan import Job
from tui_eval.engine.row_order import HandedOn
from tui_eval.engine.run_context import RunContext
from tui_eval.guard.fair_share import in_turn
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt
from tui_eval.store.encoding import encode_json
from tui_eval.store.long_texts import has_long
from tui_eval.store.writer import Packed


class WorkerStart(msgspec.Struct):
    """What a worker is begun with. `environ` are the variables of the engine's environment that are not its machine's,
    `shared` says that the project's root is the same folder here."""

    config: Config
    trust: Trust
    run_id: str
    judge: str | None
    environ: dict[str, str]
    shared: bool


class SentTicket(msgspec.Struct):
    """An attempt as it is sent: `job` without its settings, `left` seconds until it must have ended, and what rows
    before it handed on."""

    ref: int
    number: int
    job: Job
    left: float | None
    handed_on: HandedOn | None


class FarPace(Pace):
    """How fast an agent may be asked, which the engine decides for all workers."""

    def __init__(
        self, name: str, per_minute: float, log: EventLog, waiting: dict[int, asyncio.Future[float]]
    ):
        super().__init__(per_minute)
        self._name, self._per_minute, self._log, self._waiting = name, per_minute, log, waiting

    async def claimed(self) -> float:
        """The seconds to wait, as the engine says."""
        asked = next(_numbers)
        self._waiting[asked] = asyncio.get_running_loop().create_future()
        self._log.now(0, "pace", asked, self._name, self._per_minute)
        try:
            return await self._waiting[asked]
        finally:
            del self._waiting[asked]


_numbers = count(1)


class RayWorker:
    """The Ray actor. One event loop only."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._paces: dict[int, asyncio.Future[float]] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        self._words = ""
        self._roots: tuple[str, str] | None = None

    async def where(self) -> str:
        """The machine it is on: its address, and the beginning of the id that Ray knows it by."""
        ray = import_module("ray")
        return f"{ray.util.get_node_ip_address()} (node {ray.get_runtime_context().get_node_id()[:6]})"

    async def begin(self, start: bytes, node: str) -> dict[str, str]:
        """Make it ready; what it is, for who compares versions."""
        given: WorkerStart = pickle.loads(start)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):  # what people's code prints there would stand in Ray's logs
            os.dup2(nowhere, descriptor)
        os.environ.update(given.environ)
        config = given.config
        if not given.shared:
            self._roots = str(config.root), os.getcwd()
            config = moved(config, *self._roots)
        self._words = f"worker {self._number} on {node}"
        self._log = EventLog(Path(tempfile.mkdtemp(prefix="tui-eval-")))
        self._context = RunContext(config, given.trust)
        self._context.run_id = given.run_id
        self._context.typed_judge = given.judge
        for spec in (*config.agents.values(), config.judge):
            self._keep_pace(spec)
        return {"version": __version__, "python": platform.python_version()}

    def _keep_pace(self, spec: AgentSpec | None) -> None:
        paces = self._context.paces
        if spec is not None and spec.rate_requests and spec.name not in paces:
            paces[spec.name] = FarPace(spec.name, spec.rate_requests, self._log, self._paces)

    async def give(self, settings: bytes, tickets: list[bytes]) -> None:
        """Begin these attempts."""
        if settings:
            self._settings.update(pickle.loads(settings))
        for one in tickets:
            ticket: SentTicket = pickle.loads(one)
            self._tasks[ticket.ref] = asyncio.ensure_future(self._execute(ticket))

    async def cancel(self, refs: list[int]) -> None:
        """End these attempts; what there was of them is told."""
        for ref in refs:
            if (task := self._tasks.get(ref)) is not None:
                task.cancel()

    async def granted(self, asked: int, seconds: float) -> None:
        """The engine's answer to a question for a moment to send."""
        future = self._paces.get(asked)
        if future is not None and not future.done():
            future.set_result(seconds)

    async def take(self) -> bytes:
        """What has happened, once something has."""
        return await self._log.take()

    async def stream(self) -> AsyncIterator[bytes]:
        """What happens, in batches, without end."""
        while True:
            yield await self._log.take()

    async def end(self) -> None:
        """Release what it holds."""
        for task in self._tasks.values():
            task.cancel()
        await self._context.close()

    async def _execute(self, ticket: SentTicket) -> None:
        ref, left = ticket.ref, {}
        try:
            await self._executed(ticket, left)
        except asyncio.CancelledError:
            kept = left.get(ref)
            self._log.now(ref, "cancelled", *([] if kept is None else await self._packed(kept)))
        except Exception as error:  # of our own making: the engine says so
            self._log.now(ref, "broken", f"{type(error).__name__}: {error}")
        finally:
            self._tasks.pop(ref, None)

    async def _executed(self, ticket: SentTicket, left: dict[int, Attempt]) -> None:
        job = ticket.job
        if self._roots is not None:
            job = moved(job, *self._roots)
        job.settings = self._settings.get(job.case.suite, {})
        await import_first([job], self._context.config, self._context.typed_judge)
        self._keep_pace(job.spec)
        if ticket.handed_on is not None:
            self._context.memory.take(job, ticket.number, ticket.handed_on)
        ends = None if ticket.left is None else asyncio.get_running_loop().time() + ticket.left
        attempt = await execute(job, ticket.number, ticket.ref, self._context, self._log, ends, None, left)
        await self._send_frames(attempt, ticket.ref)
        self._log.now(ticket.ref, "done", *await self._packed(attempt))

    async def _send_frames(self, attempt: Attempt, ref: int) -> None:
        named = attempt.data.settings.get("frames") if attempt.data is not None else None
        for name in named.values() if isinstance(named, dict) else ():
            file = self._log.folder / name
            self._log.now(ref, "frame", name, await asyncio.to_thread(file.read_bytes))
            file.unlink()

    async def _packed(self, attempt: Attempt) -> tuple[bytes, str]:
        def made() -> Packed:
            return Packed.of(self._as_at_home(attempt))

        attempt.ran_on = self._words
        packed = await in_turn(made) if has_long(attempt) else made()
        return packed.body, packed.mark

    def _as_at_home(self, attempt: Attempt) -> Attempt:
        """Paths of this machine as the engine knows them."""
        if self._roots is None:
            return attempt
        home, own = (encode_json(root)[1:-1] for root in self._roots)
        body = encode_json(attempt)
        return msgspec.json.decode(body.replace(own, home), type=Attempt) if own in body else attempt
