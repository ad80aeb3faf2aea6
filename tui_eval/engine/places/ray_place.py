"""`ray`: attempts on the workers of a Ray cluster. The engine stays the one writer of the run, and what is
the run's (limits, rates, the order of rows) stays with it; what needs the engine's own files or processes is
executed here."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.agents.base import Pace
from tui_eval.config.project import Config, ConfigError
from tui_eval.engine.places import ray_messages as messages
from tui_eval.engine.places.attempt_place import (
    UNKNOWN_COST,
    AttemptPlace,
    Made,
    PlaceLost,
    under_way_at_loss,
)
from tui_eval.engine.places.chosen_place import Here, what_runs_here
from tui_eval.engine.places.ray_driver import why_ended
from tui_eval.engine.places.ray_messages import LoggedEvent, events_of
from tui_eval.engine.places.sent_project import explained, packed_project
from tui_eval.engine.schedule import within_open_files
from tui_eval.extensions import adding
from tui_eval.guard import private
from tui_eval.guard.fair_share import in_turn
from tui_eval.guard.spelling import some_of
from tui_eval.model import Attempt
from tui_eval.slow_imports import hide_in
from tui_eval.store.encoding import unpack
from tui_eval.store.frames import FOLDER
from tui_eval.store.writer import Packed

if TYPE_CHECKING:
    from tui_eval.engine.places.ray_worker import SentTicket
    from tui_eval.engine.run_context import RunContext
    from tui_eval.engine.schedule import Ticket
    from tui_eval.store.writer import RunWriter

GIVEN_BACK = 2
"""How often an attempt whose worker was lost is given to another one."""
_GIVEN = 10
"""How often an attempt is given at all: what kills a worker at once is not seen to have begun there."""
_MOMENT = 1.0
"""Seconds until what a worker had is given to another one: when a machine dies, its workers are heard of one by one."""
_SUSPECT = 5.0
"""Seconds for which a machine that lost a worker is given something only where there is no other one."""
_CANCELLING = 10.0
"""Seconds in which a worker says what there was of an attempt that is cancelled."""
_LEAVING = 15.0
_PATIENCE = 30.0
"""Seconds without a first worker after which that is said."""
_REFUSED = 3
"""How many machines without a worker a run's note names."""
_NAMED = 5
"""Files that are left out which are named."""
_LARGE = 1 << 20
_FRAME = re.compile(rf"{FOLDER}/(\d+)-(?:expected|actual)\.parquet")
_TOLD = frozenset({"started", "limit", "turn", "retrying", "waits", "running_again", "progress", "live"})
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "120",
    "RAY_NUM_REDIS_GET_RETRIES": "60",
}
"""What Ray does not do for us, and the seconds that it gives its processes on a busy machine."""


def check_ray(address: str) -> None:
    """Say before anything is made that Ray is not installed.

    Raises:
        ConfigError: one line that says what to install.
    """
    wanted = ["ray", *(["grpc"] if address else [])]
    if any(importlib.util.find_spec(name) is None for name in wanted):
        raise ConfigError(f"{address or 'ray'} needs the extra ray: {adding('ray')}")


class WorkerLost(Exception):
    """A worker is gone with the attempts that it had."""


class _RayWorker:
    """What the engine knows of a worker."""

    def __init__(self, number: int, node: str) -> None:
        self.number = number
        self.node = node
        self.flights: dict[int, asyncio.Future[Made]] = {}
        self.started: set[int] = set()
        self.outbox: list[SentTicket] = []
        self.settings: dict[str, Any] = {}
        self.suites: set[str] = set()
        self.turns: dict[int, asyncio.Task[None]] = {}


class RayPlace:
    """The workers of a cluster: `address` empty is one on this machine, which ends with the run. `most` attempts run at
    once. `shared`: the project is the same folder on all machines. `named` gives the variables that suites name; it is
    called in a thread."""

    def __init__(
        self,
        address: str,
        most: int,
        environment: RunContext,
        writer: RunWriter,
        *,
        shared: bool,
        named: Callable[[], Iterable[str]] = tuple,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._address = address
        self._most = most
        self._environment = environment
        self._writer = writer
        self._shared = shared or not address
        self._named = named
        self._say = say
        self._here: AttemptPlace = Here(environment, writer)
        self._room = asyncio.Semaphore(within_open_files(most))
        self._workers: dict[int, _RayWorker] = {}
        self._nodes = 0
        self._waits = ""
        self._silent = 0.0
        self._refused: dict[str, str] = {}
        self._lost_with: dict[int, list[str]] = {}
        self._lost_at: dict[str, float] = {}
        self._workers_lost = self._given_up = 0
        self._begun_anew: set[int] = set()
        self._said: dict[tuple[Any, ...], Attempt] = {}
        self.left_out: list[str] = []
        self._lost: str | None = None
        self.begun_at_loss = 0
        self._news = asyncio.Condition()
        self._changed: Callable[[], None] = lambda: None
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._sending: asyncio.Handle | None = None
        self._working: set[asyncio.Task[None]] = set()
        self._folder = contextlib.ExitStack()

    @property
    def words(self) -> str:
        """`ray · 3 nodes · 24 workers`."""
        if self._lost is not None:
            return "ray"
        if not self._nodes or not self._workers:
            return f"ray · {self._waits or 'waiting for workers'}"
        silent = f" · its head does not answer, since {self._silent:.0f} s" if self._silent else ""
        return f"ray · {_count(self._nodes, 'node')} · {_count(len(self._workers), 'worker')}{silent}"

    @property
    def note(self) -> str:
        """`24 attempts were begun anew, since 1 worker was lost; …; no worker could begin on 10.0.0.4: …`"""
        said: list[str] = []
        if anew := len(self._begun_anew):
            attempts, workers = _count(anew, "attempt"), _count(self._workers_lost, "worker")
            were = "was" if anew == 1 else "were"
            gone = "was" if self._workers_lost == 1 else "were"
            ended = (
                f", of which {self._given_up:,} ended as {'an error' if self._given_up == 1 else 'errors'},"
            )
            said.append(
                f"{attempts} {were} begun anew{ended if self._given_up else ','} since {workers} {gone} lost; {UNKNOWN_COST}"
            )
        said += [_no_worker(node, why) for node, why in list(self._refused.items())[:_REFUSED]]
        if more := len(self._refused) - _REFUSED:
            said += [f"nor on {_count(more, 'other machine')}"] if more > 0 else []
        if self.left_out:
            said.append(f"not sent to the cluster, for a secret in them: {some_of(self.left_out, _NAMED)}")
        return "; ".join(said)

    async def open(self, changed: Callable[[], None]) -> None:
        """See `AttemptPlace`: it is ready when the first worker is."""
        self._changed = changed
        folder = Path(
            self._folder.enter_context(
                tempfile.TemporaryDirectory(prefix="tui-eval-ray-", ignore_cleanup_errors=True)
            )
        )
        package = ""
        if not self._shared:
            try:
                sent = await asyncio.to_thread(
                    packed_project, self._environment.config, self._environment.masker, folder
                )
            except OSError as error:
                raise PlaceLost(f"ray: the project's files cannot be sent: {error}") from None
            package = str(sent.file)
            self.left_out = sent.left_out
            self._tell(sent.words)
        start = pickle.dumps(await asyncio.to_thread(self._start), protocol=5)
        from tui_eval.engine.places.ray_worker import of_the_machine

        errors = self._folder.enter_context((folder / "ray.log").open("w+b"))
        hide_in(folder / "hidden")
        environ = {name: value for name, value in os.environ.items() if of_the_machine(name)}
        # Ray's own processes, seven on one machine, import jsonschema: that is two thirds of their time.
        environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, (str(folder / "hidden"), environ.get("PYTHONPATH")))
        )
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tui_eval.engine.places.ray_driver",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env={**_QUIET, **environ},
            cwd=folder,
            start_new_session=True,
        )
        self._send(messages.Connect(self._address, self._most, package, start))
        self._reading = asyncio.create_task(self._read(self._process, folder / "ray.log"))
        try:
            await asyncio.wait_for(self._free(), _PATIENCE)
        except TimeoutError:
            if not self._waits:
                self._tell(f"{self.words}, since {_PATIENCE:.0f} s ({_count(self._nodes, 'node')})")
            await self._free()

    def _tell(self, line: str) -> None:
        if self._say is not None:
            self._say(line)

    def _start(self) -> Any:
        from tui_eval.engine.places.ray_worker import WorkerStart, sent_environment

        context = self._environment
        environ = sent_environment(os.environ, context.config, self._named())
        config: Config = msgspec.structs.replace(context.config, problems=[])
        # Of a folder that machines share each has the run's own, too, where that is kept in it; of a copy none.
        folder = self._writer.folder
        mark = str(folder) if self._shared and self._address and folder.is_relative_to(config.root) else ""
        typed = context.judge_spec(name) if (name := context.typed_judge) else None
        return WorkerStart(config, context.trust, context.run_id, name, environ, self._shared, mark, typed)

    def _send(self, message: messages.FromEngine) -> None:
        pipe = self._process.stdin if self._process is not None else None
        if pipe is not None and not pipe.is_closing():  # uvloop takes nothing for one that is closed
            pipe.write(messages.frame(message))

    # Attempts

    async def attempt(self, ticket: Ticket, ends: float | None, left: dict[int, Attempt]) -> Made:
        """See `AttemptPlace`."""
        what = what_runs_here(ticket.job, self._environment)
        if what is not None:
            if what:
                self._environment.say_once(f"ray: {what} run on this machine")
            async with self._room:
                return await self._here.attempt(ticket, ends, left)
        made = explained(await self._far(ticket, ends, left), self.left_out)
        job, attempt = ticket.job, made.attempt
        key = job.case.case_id, job.agent, job.model, ticket.number
        self._environment.memory.remember(job.case, job.agent, job.model, self._said.pop(key, attempt))
        return made

    async def _far(self, ticket: Ticket, ends: float | None, left: dict[int, Attempt]) -> Made:
        """Given to a worker, and to another one where that is lost; not to more than `GIVEN_BACK` others."""
        ref = ticket.attempt_ref
        lost = self._lost_with[ref] = []
        try:
            return await self._given(ticket, ends, left, lost)
        finally:
            self._lost_with.pop(ref, None)

    async def _given(
        self, ticket: Ticket, ends: float | None, left: dict[int, Attempt], lost: list[str]
    ) -> Made:
        ref, given, nodes = ticket.attempt_ref, 0, set[str]()
        why = ""
        loop = asyncio.get_running_loop()
        since = loop.time()
        while len(lost) <= GIVEN_BACK and given < _GIVEN:
            worker = await self._free(nodes)
            given += 1
            future: asyncio.Future[Made] = loop.create_future()
            worker.flights[ref] = future
            # What was lost with a worker, and until there is one, is no time of a case's; a suite's goes on.
            gone = 0.0 if ticket.job.deadline_suite is not None else loop.time() - since
            worker.outbox.append(self._sent(ticket, None if ends is None else ends + gone, worker))
            self._send_soon()
            try:
                return await future
            except WorkerLost as error:
                why = str(error)
                nodes.add(worker.node)
                self._writer.waiting(ref)
                self._writer.live(ref, "note", f"worker lost ({why}): given back")
            except asyncio.CancelledError:
                self._lost_with.pop(ref, None)
                await self._cancelled(worker, ref, left)
                raise
            await asyncio.sleep(_MOMENT)
        self._given_up += ref in self._begun_anew
        job = ticket.job
        text = f"worker lost, {len(lost) if len(lost) > GIVEN_BACK else given} times: {why}"
        return Made(Attempt(job.case.case_id, ticket.number, "error", job.agent, job.model, text, error=text))

    async def _free(self, avoided: Collection[str] = ()) -> _RayWorker:
        """The worker with the fewest attempts, once there is one; rather one that is on none of these
        machines, nor on one that has just lost another worker.

        Raises:
            PlaceLost: there will be none any more.
        """
        if not self._workers:
            async with self._news:
                while not self._workers:
                    if self._lost is not None:
                        raise PlaceLost(self._lost)
                    await self._news.wait()
        if self._lost is not None:
            raise PlaceLost(self._lost)
        since = asyncio.get_running_loop().time() - _SUSPECT
        self._lost_at = {node: at for node, at in self._lost_at.items() if at > since}

        def rank(worker: _RayWorker) -> tuple[bool, int]:
            return worker.node in avoided or worker.node in self._lost_at, len(worker.flights)

        return min(self._workers.values(), key=rank)

    def _sent(self, ticket: Ticket, ends: float | None, worker: _RayWorker) -> SentTicket:
        from tui_eval.engine.places.ray_worker import SentTicket

        job = ticket.job
        if job.settings and job.suite not in worker.suites:
            worker.suites.add(job.suite)
            worker.settings[job.suite] = job.settings
        seconds = None if ends is None else ends - asyncio.get_running_loop().time()
        handed = self._environment.memory.handed_on(job, ticket.number)
        bare = msgspec.structs.replace(job, settings={})
        lost = list(self._lost_with.get(ticket.attempt_ref, ()))
        return SentTicket(ticket.attempt_ref, ticket.number, bare, seconds, handed, lost)

    def _send_soon(self) -> None:
        """What becomes ready in one turn of the loop goes together."""
        if self._sending is None:
            self._sending = asyncio.get_running_loop().call_soon(self._send_all)

    def _send_all(self) -> None:
        self._sending = None
        for worker in self._workers.values():
            if not worker.outbox:
                continue
            tickets, worker.outbox = worker.outbox, []
            settings, worker.settings = worker.settings, {}
            try:
                bodies = [pickle.dumps(part, protocol=5) if part else b"" for part in (settings, tickets)]
            except Exception as error:  # of our own making: their attempts end with it
                for ticket in tickets:
                    if (future := worker.flights.pop(ticket.ref, None)) is not None and not future.done():
                        future.set_exception(error)
            else:
                self._send(messages.Give(worker.number, *bodies))

    async def _cancelled(self, worker: _RayWorker, ref: int, left: dict[int, Attempt]) -> None:
        """End an attempt that is on a worker, and have what there was of it."""
        if self._workers.get(worker.number) is not worker:
            return  # nobody says it any more
        future: asyncio.Future[Made] = asyncio.get_running_loop().create_future()
        worker.flights[ref] = future
        if self._sending is not None:
            self._sending.cancel()
            self._send_all()
        self._send(messages.CancelAttempts(worker.number, [ref]))
        with contextlib.suppress(TimeoutError, WorkerLost, PlaceLost, asyncio.CancelledError):
            left[ref] = (await asyncio.wait_for(future, _CANCELLING)).attempt
        worker.flights.pop(ref, None)

    # What the cluster says

    async def _read(self, process: asyncio.subprocess.Process, log: Path) -> None:
        assert process.stdout is not None
        while (message := await messages.read_to_engine(process.stdout)) is not None:
            match message:
                case messages.Happened():
                    if (worker := self._workers.get(message.worker)) is not None:
                        for event in events_of(message.events):
                            self._happened(worker, event)
                case messages.WorkerUp():
                    self._workers[message.worker] = _RayWorker(message.worker, message.node)
                    self._refused.pop(message.node, None)
                    self._waits = ""
                    await self._moved()
                case messages.WorkerDown():
                    worker = self._workers.pop(message.worker, None)
                    if worker is not None:
                        self._worker_lost(worker, message.why)
                    await self._moved()
                case messages.MachineRefuses():
                    self._refused[message.node] = message.why
                    self._tell(f"ray: {_no_worker(message.node, message.why)}")
                    await self._moved()
                case messages.Nodes():
                    self._nodes, self._waits = message.count, ""
                    await self._moved()
                case messages.Waits():
                    self._waits = message.why
                    self._tell(f"ray: {message.why}")
                    await self._moved()
                case messages.Silent():
                    if bool(message.seconds) != bool(self._silent):
                        self._tell(f"ray: {_head(message.seconds)}")
                    self._silent = message.seconds
                    await self._moved()
                case messages.Gone():
                    await self._gone(f"ray: {message.why}")
        if self._lost is None:
            code = await process.wait()
            await self._gone(f"ray: {why_ended(code, self._address, bool(self._nodes), log)}")

    def _worker_lost(self, worker: _RayWorker, why: str) -> None:
        """Give back what it had, and say what that means: its attempts may have been asked, and paid, already."""
        words = f"worker {worker.number} on {worker.node}"
        self._lost_at[worker.node] = asyncio.get_running_loop().time()
        had = {ref: self._lost_with[ref] for ref in worker.flights if ref in self._lost_with}
        begun = [len(lost) for ref, lost in had.items() if ref in worker.started]
        anew = sum(lost < GIVEN_BACK for lost in begun)
        self._workers_lost += bool(begun)
        lost_by = f"{words}: {why}" if why else words
        for ref, before in had.items():
            if ref in worker.started:  # else nothing of it was asked
                before.append(lost_by)
        _fail(worker, WorkerLost(lost_by))
        if self._lost is not None:
            return
        said = [f"ray: {words} is gone{f' ({why})' if why else ''}"]
        if anew:
            said.append(
                f"{_count(anew, 'attempt')} {'begins' if anew == 1 else 'begin'} anew, {UNKNOWN_COST}"
            )
        if not self._workers:
            said.append("no worker is left, waiting for another one")
        if had or not self._workers:
            self._tell("; ".join(said))

    async def _moved(self) -> None:
        self._changed()
        async with self._news:
            self._news.notify_all()

    async def _gone(self, why: str) -> None:
        """There will be no workers any more: say of how many attempts that means that they are asked, and
        paid, twice."""
        first, self._lost = self._lost is None, self._lost or why
        workers, self._workers = list(self._workers.values()), {}
        if first:
            lost = {
                ref for ref, before in self._lost_with.items() if before
            }  # not given to another one yet, or there
            begun = {ref for worker in workers for ref in worker.started & worker.flights.keys()}
            self.begun_at_loss = len(lost | begun & self._lost_with.keys())
            if self.begun_at_loss:
                self._tell(f"ray: {under_way_at_loss(self.begun_at_loss)}")
        await self._moved()
        for worker in workers:
            _fail(worker, PlaceLost(why))

    def _happened(self, worker: _RayWorker, event: LoggedEvent) -> None:
        ref, what, given = event.ref, event.what, event.given
        if not ref:
            self._wanted(worker, what, given)
            return
        future = worker.flights.get(ref)
        if future is None or future.done():
            return  # nobody waits for it any more
        if what in ("started", "done") and ref not in worker.started:  # what is done at once says only that
            worker.started.add(ref)
            if self._lost_with.get(ref):  # given back is not yet begun
                self._begun_anew.add(ref)
                self._changed()
        if what in ("done", "cancelled", "broken"):
            worker.started.discard(ref)
        if what in _TOLD:
            getattr(self._writer, what)(ref, *given)
        elif what == "frame":
            self._keep_frame(ref, *given)
        elif what == "broken":
            del worker.flights[ref]
            future.set_exception(RuntimeError(given[0]))
        elif what in ("done", "cancelled") and given:
            del worker.flights[ref]
            body, mark = given
            if len(body) < _LARGE:
                future.set_result(_made(body, mark))
            else:
                task = asyncio.ensure_future(_made_in_turn(future, body, mark))
                self._working.add(task)
                task.add_done_callback(self._working.discard)
        elif what == "cancelled":
            del worker.flights[ref]
            future.cancel()

    def _wanted(self, worker: _RayWorker, what: str, given: list[Any]) -> None:
        """What is the run's, and not a worker's."""
        match what, given:
            case "pace", [asked, agent, per_minute, ref]:
                pace = self._environment.paces.setdefault(agent, Pace(per_minute))
                self._send(messages.Granted(worker.number, asked, pace.claim(ref)))
            case "turn_wanted", [asked, judge, most]:
                worker.turns[asked] = asyncio.ensure_future(self._turn(worker, asked, judge, most))
            case "turn_over", [asked]:
                worker.turns.pop(asked).cancel()
            case "handed_on", [*key, body]:
                self._said[tuple(key)] = unpack(body, Attempt)
            case "told", [line]:
                self._environment.tell_once(line)
            case "said", [line]:
                self._environment.say_once(line)
            case _:
                pass

    async def _turn(self, worker: _RayWorker, asked: int, judge: str, most: int) -> None:
        """A worker's turn at a judge, until that is over, or the worker gone: this is cancelled."""
        async with self._environment.turn(judge, most):
            self._send(messages.Granted(worker.number, asked, 0.0))
            await asyncio.Event().wait()

    def _keep_frame(self, ref: int, name: str, body: bytes) -> None:
        """Rows that are kept beside the run's database, as `store.frames` does."""
        named = _FRAME.fullmatch(name)
        if named is None or int(named[1]) != ref:
            return
        folder = self._writer.folder
        with contextlib.suppress(OSError):
            private.make_folder(folder / FOLDER)
            descriptor = private.open_file(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            with open(descriptor, "wb") as file:
                file.write(body)

    async def close(self) -> None:
        """See `AttemptPlace`. A cluster of this machine ends."""
        process, self._process = self._process, None
        try:
            if process is not None:
                self._lost = self._lost or "the run is over"
                assert process.stdin is not None
                process.stdin.close()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), _LEAVING)
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            if self._reading is not None:
                self._reading.cancel()
                await asyncio.gather(self._reading, return_exceptions=True)
        finally:
            self._folder.close()


def _fail(worker: _RayWorker, why: Exception) -> None:
    for turn in worker.turns.values():
        turn.cancel()
    flights, worker.flights = worker.flights, {}
    for future in flights.values():
        if not future.done():
            future.set_exception(why)


def _made(body: bytes, mark: str) -> Made:
    attempt = unpack(body, Attempt)
    return Made(attempt, Packed(attempt, body, mark))


async def _made_in_turn(future: asyncio.Future[Made], body: bytes, mark: str) -> None:
    made = await in_turn(partial(_made, body, mark))
    if not future.done():
        future.set_result(made)


def _head(silent: float) -> str:
    if not silent:
        return "the cluster's head answers again"
    return f"the cluster's head does not answer, since {silent:.0f} s; what its workers have goes on until it is given up"


def _no_worker(node: str, why: str) -> str:
    return f"no worker could begin on {node}: {why}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
