"""The process that holds the engine's connection to Ray: it starts workers where there is room, gives them
what the engine gives, and hands back what happens. It ends with the engine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from tui_eval import __version__
from tui_eval.engine.places import ray_messages as messages
from tui_eval.engine.places.ray_messages import (
    Connect,
    Gone,
    Happened,
    MachineRefuses,
    Nodes,
    Silent,
    ToEngine,
    Waits,
    WorkerDown,
    WorkerUp,
)
from tui_eval.guard.text import clip

_LOOK = 1.0
"""Seconds between two looks at the cluster."""
_SILENT = 15.0
"""Seconds without a worker and without an answer of the head, or without any machine, after which it is gone."""
_BUSY = 20.0
"""Seconds without a worker after which it is looked whether others have all processors: at first ours take them."""
_NOBODY = 300.0
"""Seconds without a worker after which nobody comes any more: a cluster that grows takes minutes."""
_REFUSALS = 3
"""Workers that could not begin on a machine, one after the other, after which none can there."""
_PAUSE, _LONGEST = 1.0, 60.0
"""Seconds until another worker is tried on a machine where one could not begin: the first time, twice as many
each time, and at most."""
_ASKED = 15.0
"""Seconds between two questions to a worker whether it still works."""
_FROZEN = 60.0
"""Seconds without an answer after which it does not: nothing of it would come, nor end at its time limit."""
_STARTS = 4
"""How often Ray is started on this machine until it is up."""
_LEAVING = 5.0
_ANSWER = 10.0
"""Seconds in which a cluster answers a question."""
_PROXY = "RAY_grpc_enable_http_proxy"
"""Ray's own variable: whether its connections go through a proxy."""
_SEARCH = 30.0
"""Seconds in which a cluster is looked for at its address."""
_STORE = 200 * 2**20
"""Bytes of Ray's object store on this machine: batches pass through it, nothing stays."""


class NoCluster(Exception):
    """There is no cluster where one should be. One line."""


class NoWorker(Exception):
    """What runs on a machine is not, or cannot be, a worker of this run, or is none any more. One line."""


@dataclass
class Machine:
    """A node with processors: whether workers have begun there, how many could not since, and when another one may."""

    node: str
    words: str
    processors: int
    good: bool = False
    refused: int = 0
    again: float = 0.0

    def begun(self) -> None:
        """A worker has."""
        self.good, self.refused, self.again = True, 0, 0.0

    def refuses(self, now: float, *, for_good: bool) -> None:
        """A worker could not begin; `for_good`: nor will another one."""
        self.good = False
        self.refused += _REFUSALS if for_good else 1
        self.again = now + (_LONGEST if for_good else min(_PAUSE * 2 ** min(self.refused - 1, 6), _LONGEST))


class Machines:
    """The machines of the cluster by the beginning of their ids, as workers call themselves: where the next
    worker is started."""

    def __init__(self) -> None:
        self._all: dict[str, Machine] = {}
        self._on: dict[int, str] = {}
        self._beginning: set[int] = set()
        self._unplaced = False

    def seen(self, machines: Sequence[Machine]) -> None:
        """These there are now."""
        before, self._all = self._all, {}
        for one in machines:
            known = self._all[one.node[:_ID]] = before.get(one.node[:_ID], one)
            known.processors = one.processors

    def next(self, now: float) -> str | None:
        """The node of the next worker; empty: as Ray likes, while all is well; None: nowhere for now. Where
        something went wrong, one is tried at a time, and each on a machine that is known: Ray does not say
        where one failed."""
        if not self._unplaced and not any(one.refused for one in self._all.values()):
            return ""
        count = Counter(self._on.values())
        trying = {self._on[number] for number in self._beginning if number in self._on}
        free = [
            (one.refused, count[key], one.node)
            for key, one in self._all.items()
            if now >= one.again and count[key] < one.processors and (one.good or key not in trying)
        ]
        return min(free)[2] if free else None

    def started(self, number: int, node: str) -> None:
        """A worker is to begin, on that node where it is not empty."""
        self._beginning.add(number)
        if node:
            self._on[number] = node[:_ID]

    def on(self, number: int, words: str) -> None:
        """A worker says where it is (`RayWorker.where`)."""
        self._on[number] = words.rpartition("(node ")[2].rstrip(")")

    def begun(self, number: int) -> None:
        """A worker has begun."""
        self._beginning.discard(number)
        if (machine := self._all.get(self._on.get(number, ""))) is not None:
            machine.begun()

    def refused(self, number: int, now: float, *, for_good: bool) -> Machine | None:
        """A worker could not begin; where, as far as that is known."""
        machine = self._all.get(self._on.get(number, ""))
        if machine is None and len(self._all) == 1:
            (machine,) = self._all.values()
        if machine is None:
            self._unplaced = True
        else:
            machine.refuses(now, for_good=for_good)
        return machine

    def ended(self, number: int) -> None:
        """A worker is gone."""
        self._beginning.discard(number)
        self._on.pop(number, None)

    @property
    def hopeless(self) -> bool:
        """Whether no worker can begin anywhere."""
        return bool(self._all) and all(one.refused >= _REFUSALS for one in self._all.values())


_ID = 6
"""Characters of a node's id by which a worker names it."""


class Driver:
    """The workers of one run."""

    def __init__(self, ray: Any, asked: Connect, out: BinaryIO) -> None:
        from tui_eval.engine.places.ray_worker import RayWorker

        self._ray = ray
        self._asked = asked
        self._out = out
        self._actor = ray.remote(RayWorker)
        self._where = f" at {asked.address}" if asked.address else ""
        self._by_client = asked.address.startswith("ray://")
        self._workers: dict[int, Any] = {}
        self._up: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._next = 1
        self._nodes = -1
        self._machines = Machines()
        self._told: set[str] = set()
        self._why = ""
        self._heard = self._seen = self._left = 0.0
        self._silent = 0.0
        self._busy = 0
        self._own: str | None = None

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Until the engine has gone."""
        self._heard = self._seen = self._left = asyncio.get_running_loop().time()
        watching = asyncio.create_task(self._watch())
        try:
            while (message := await messages.read_from_engine(reader)) is not None:
                self._take(message)
        finally:
            watching.cancel()
            ends = [worker.end.remote() for number, worker in self._workers.items() if number in self._up]
            with suppress(Exception):
                await asyncio.wait_for(asyncio.gather(*ends, return_exceptions=True), _LEAVING)

    def _take(self, message: messages.FromEngine) -> None:
        worker = self._workers.get(getattr(message, "worker", 0))
        if worker is None:  # it has gone meanwhile, which the engine will hear
            return
        match message:
            case messages.Give():
                worker.give.remote(message.settings, message.tickets)
            case messages.CancelAttempts():
                worker.cancel.remote(message.refs)
            case messages.Granted():
                worker.granted.remote(message.asked, message.seconds)
            case _:
                pass

    def _say(self, message: ToEngine) -> None:
        with suppress(OSError):  # nobody hears it any more: the end of what they say follows
            self._out.write(messages.frame(message))
            self._out.flush()

    async def _watch(self) -> None:
        """Workers where there is room for them, as machines come and go."""
        loop = asyncio.get_running_loop()
        looking: asyncio.Future[tuple[int, list[Machine], bool, bool]] | None = None
        room = 0
        while True:
            waits = not self._up and loop.time() - self._seen > _BUSY
            looking = looking or asyncio.ensure_future(asyncio.to_thread(self._look, waits))
            done, _ = await asyncio.wait({looking}, timeout=_LOOK)
            if done:
                try:
                    count, machines, own, busy = looking.result()
                    room = sum(one.processors for one in machines)
                    self._machines.seen(machines)
                    self._heard = loop.time()
                    if count:
                        self._left = self._heard
                    if count != self._nodes:
                        self._nodes = count
                        self._say(Nodes(count))
                    if self._silent:
                        self._silent = 0.0
                        self._say(Silent(0.0))
                    self._says_busy(room if busy and not self._up else 0)
                    if not own:
                        self._say(Gone("the raylet that this machine is connected to has ended"))
                    elif self._heard - self._left > _SILENT:
                        self._say(Gone(f"the cluster{self._where} has no machine any more"))
                except Exception:
                    traceback.print_exc()
                looking = None
            now = loop.time()
            if self._up:
                self._seen = now
                if now - self._heard > self._silent + _SILENT:  # what workers have goes on meanwhile
                    self._silent = now - self._heard
                    self._say(Silent(self._silent))
            elif now - self._heard > _SILENT:
                self._say(Gone(f"the cluster{self._where} is gone: its head does not answer any more"))
            elif now - self._seen > _NOBODY:
                why = f"; the last one that could not begin: {self._why}" if self._why else ""
                self._say(Gone(f"Ray has started no worker for {_NOBODY:.0f} s ({self._nodes} nodes){why}"))
            while len(self._workers) < min(room, self._asked.most) and now - self._heard < _SILENT:
                node = self._machines.next(now)
                if node is None:
                    break
                self._start(node)
            await asyncio.sleep(_LOOK)

    def _says_busy(self, processors: int) -> None:
        """That all processors are in use (none: they are not, or no longer) is said once. Ray does not say by whom: a
        worker of ours that is being started has its own."""
        if processors and processors != self._busy:
            every = "its only processor is" if processors == 1 else f"all {processors:,} processors are"
            self._say(
                Waits(f"waiting for workers: {every} in use, by others or by workers that are being started")
            )
        self._busy = processors

    def _look(self, waits: bool) -> tuple[int, list[Machine], bool, bool]:
        """How many machines there are, those with processors, whether that through which this process speaks
        to them is among them: without it nothing comes back; and, where it `waits` for a worker, whether no
        processor is free."""
        nodes = self._ray.nodes()
        alive = [node for node in nodes if node.get("Alive")]
        if self._own is None and not self._by_client:
            self._own = self._ray.get_runtime_context().get_node_id()
        gone = any(node.get("NodeID") == self._own and not node.get("Alive") for node in nodes)
        machines = [
            Machine(
                str(node.get("NodeID")),
                f"{node.get('NodeManagerAddress')} (node {str(node.get('NodeID'))[:_ID]})",
                int(node.get("Resources", {}).get("CPU", 0)),
            )
            for node in alive
        ]
        busy = waits and float(self._ray.available_resources().get("CPU", 0)) < 1
        return len(alive), [one for one in machines if one.processors], not gone, busy

    def _start(self, node: str) -> None:
        number, self._next = self._next, self._next + 1
        there = "SPREAD"
        if node:
            strategies = import_module("ray.util.scheduling_strategies")
            there = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        options = self._actor.options(num_cpus=1, max_restarts=0, scheduling_strategy=there)
        self._machines.started(number, node)
        worker = self._workers[number] = options.remote(number)
        task = asyncio.create_task(self._follow(number, worker))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, number: int, worker: Any) -> None:
        """A worker from its beginning to its end."""
        why, for_good = "it has ended", False
        of_ray = self._ray.exceptions.RayError
        try:
            node = await worker.where.remote()
            self._machines.on(number, node)
            found = await worker.begin.remote(self._asked.start, node, __version__)
            if found["version"] != __version__:
                raise NoWorker(f"it has tui-eval {found['version']}, and this is {__version__}")
            if found["lacks"]:
                raise NoWorker(found["lacks"])
            self._machines.begun(number)
            self._up.add(number)
            self._say(WorkerUp(number, node))
            await _first_of(self._listen(number, worker), self._until_frozen(worker))
        except Exception as error:
            traceback.print_exc()
            why = why_gone(error, of_ray) if number in self._up else why_not(error, of_ray)
            for_good = isinstance(error, NoWorker)
        finally:
            del self._workers[number]
        if number in self._up:
            self._up.discard(number)
            self._say(WorkerDown(number, why))
        else:
            self._could_not(number, why, for_good=for_good)
        self._machines.ended(number)
        with suppress(Exception):
            self._ray.kill(worker)

    async def _listen(self, number: int, worker: Any) -> None:
        """Hand on what happens at a worker."""
        if self._by_client:  # Ray's client knows no streams
            while True:
                self._say(Happened(number, await worker.take.remote()))
        async for piece in worker.stream.remote():
            self._say(Happened(number, await piece))

    async def _until_frozen(self, worker: Any) -> None:
        """Ask a worker now and then whether it works. Ray sees one that has ended, not one that stands still.

        Raises:
            NoWorker: it has not answered for long. Counted by looks, not by the clock: what stood still may have been
                this process. While the head does not answer either, that is not the worker's fault.
        """
        while True:
            answer = asyncio.ensure_future(_awaited(worker.works.remote()))
            silent = 0.0
            while not (await asyncio.wait({answer}, timeout=_LOOK))[0]:
                if asyncio.get_running_loop().time() - self._heard < _SILENT:
                    silent += _LOOK
                if silent > _FROZEN:
                    answer.cancel()
                    raise NoWorker(f"it does not answer any more, for {silent:.0f} s")
            answer.result()
            await asyncio.sleep(_ASKED)

    def _could_not(self, number: int, why: str, *, for_good: bool) -> None:
        """A worker could not begin: said once of a machine, and the end where that is so on each."""
        self._why = why
        machine = self._machines.refused(number, asyncio.get_running_loop().time(), for_good=for_good)
        if machine is not None and machine.node not in self._told:
            self._told.add(machine.node)
            self._say(MachineRefuses(machine.words, why))
        if self._machines.hopeless and not self._up:
            self._say(Gone(f"no worker can begin: {why}"))


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


async def _first_of(*waited_for: Coroutine[Any, Any, None]) -> None:
    """Until the first of these ends; what it raises."""
    tasks = [asyncio.ensure_future(one) for one in waited_for]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


_CAUSES = {"node has died": "its machine is gone", "low on memory": "its machine ran out of memory"}
"""What a person can make something of, by what of Ray's own words says it."""


def why_gone(error: Exception, of_ray: type[Exception]) -> str:
    """Why a worker is gone; empty where Ray but says that it is, in its own words."""
    if isinstance(error, NoWorker):
        return str(error)
    if getattr(error, "cause", None) or not isinstance(error, of_ray):
        return _line(error)
    return next((words for mark, words in _CAUSES.items() if mark in str(error)), "")


def why_not(error: Exception, of_ray: type[Exception]) -> str:
    """Why a worker could not begin: always a reason. Of Ray's own words the line that says most: the first
    one only says that it is so, lines with a tab say of whom."""
    if why := why_gone(error, of_ray):
        return why
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("\t")]
    telling = [line for line in lines[1:] if _TELLING.match(line)] or lines[1:] or lines
    if not telling:
        return type(error).__name__
    # That a class cannot be imported is followed by its traceback.
    return clip(
        f"{telling[0]} {telling[-1]}" if telling[0].endswith(":") and telling[1:] else telling[0], 300
    )


_TELLING = re.compile(r"(?:[\w.]*(?:Error|Exception): |Failed to )")


def why_ended(code: int, address: str, connected: bool, log: Path) -> str:
    """What it means that the process with the connection has ended without a word: Ray ends it with its head."""
    if code < 0:
        return f"the connection has ended (code {code})"
    if connected:
        return f"the cluster at {address} is gone" if address else "Ray on this machine has ended"
    if said := _raised(log):
        return f"there is no connection: {said}"
    if address:
        return f"there is no connection: the cluster at {address} went away while it was made (code {code})"
    return f"Ray has ended on this machine before there was a connection (code {code})"


def _raised(log: Path) -> str:
    """What Python raised where the process ended by that. Ray's own lines, and the frames of its crashes, tell a person
    nothing."""
    with suppress(OSError):
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        if lines and _RAISED.match(lines[-1]):
            return clip(lines[-1].partition(" See https://")[0], 300)
    return ""


_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b")


def _line(error: BaseException) -> str:
    """What Ray says in one line; of an error on a worker, the error."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    if not lines:
        return type(cause).__name__
    said = f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
    return f"{type(cause).__name__}: {clip(said, 300)}"


def _connected(asked: Connect, say: Callable[[ToEngine], None]) -> Any:
    """Ray, connected."""
    if asked.address:
        find_cluster(asked.address, say)  # Ray looks for the token when it is imported
    ray = import_module("ray")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if asked.package:
        quiet["runtime_env"] = {"working_dir": asked.package}
    if not asked.address:
        own = {"_node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": _STORE}
        patiently(lambda: ray.init(address="local", **own, **quiet), ray.shutdown)
    else:
        attach(asked.address, lambda: ray.init(address=asked.address, **quiet))
    return ray


def attach(address: str, connect: Callable[[], Any]) -> None:
    """Connect to a cluster that has answered at an address.

    Raises:
        NoCluster: it went away meanwhile, or is none.
    """
    try:
        try:
            connect()
        except ConnectionAbortedError:  # the server that `ray://` starts for each client has 30 s, too
            traceback.print_exc()
            connect()
    except ConnectionAbortedError:
        raise  # it says why, in the cluster's own words
    except ConnectionError:
        traceback.print_exc()
        raise NoCluster(f"the cluster at {address} went away while the connection to it was made") from None
    except json.JSONDecodeError:
        traceback.print_exc()
        raise NoCluster(f"what answers at {address} does not speak as Ray does") from None


def patiently(start: Callable[[], Any], shutdown: Callable[[], Any]) -> None:
    """Start Ray on this machine. It gives its own processes 30 s, which a busy machine may need for one of
    them; what it has started until then goes on, and takes the next try's time."""
    for _ in range(_STARTS - 1):
        try:
            start()
            return
        except Exception:
            traceback.print_exc()
            shutdown()
            end_children()
    start()


def end_children() -> None:
    """End what this process has started, and what that has."""
    for process in import_module("psutil").Process().children(recursive=True):
        with suppress(Exception):  # it has ended by itself
            process.kill()
            process.wait(_LEAVING)


def find_cluster(address: str, say: Callable[[ToEngine], None]) -> None:
    """Wait until a cluster answers: Ray itself would, at some addresses, wait for ever.

    Raises:
        NoCluster: none does, or what answers is none.
    """
    ends, told = time.monotonic() + _SEARCH, False
    while why := _no_answer(address):
        if time.monotonic() > ends:
            raise NoCluster(f"no cluster answers at {address} ({why})")
        if not told:
            say(Waits(f"no cluster answers at {address} so far ({why})"))
            told = True
        time.sleep(_LOOK)


def _no_answer(address: str) -> str:
    """Why no cluster answers; empty: one does. Ray's token is then shown where that cluster asks for one, one
    lies here, and nobody has decided about it: `ray start` makes a cluster that asks for it wherever one
    lies, and who connects to an address shows it only when told to.

    Raises:
        NoCluster: what answers is something else.
    """
    plain, by_client = address.removeprefix("ray://"), address.startswith("ray://")
    host, _, port = plain.rpartition(":")
    proxy = os.environ.get(_PROXY, "0").lower() in ("1", "true")
    if not proxy:
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER).close()
        except (OSError, OverflowError) as error:
            return str(getattr(error, "strerror", None) or error)
    if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return ""
    grpc = import_module("grpc")
    asked = "RayletDriver/ClusterInfo" if by_client else "NodeInfoGcsService/CheckAlive"
    try:
        with grpc.insecure_channel(plain, options=[("grpc.enable_http_proxy", int(proxy))]) as channel:
            channel.unary_unary(f"/ray.rpc.{asked}")(b"", timeout=_ANSWER)
    except grpc.RpcError as error:
        code = error.code()
        if code is grpc.StatusCode.UNIMPLEMENTED:
            wanted = "Ray's client server (10001 mostly)" if by_client else "a cluster's head (6379 mostly)"
            raise NoCluster(f"what answers at {address} is not {wanted}") from None
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            return "what is there does not speak as Ray does"
        kept = os.environ.get("RAY_AUTH_TOKEN_PATH") or os.path.expanduser("~/.ray/auth_token")
        lies = bool(os.environ.get("RAY_AUTH_TOKEN")) or os.path.exists(kept)
        if code is grpc.StatusCode.UNAUTHENTICATED and lies and "RAY_AUTH_MODE" not in os.environ:
            os.environ["RAY_AUTH_MODE"] = "token"
    return ""


def main() -> None:
    """`python -m tui_eval.engine.places.ray_driver`, started by `ray_place` in a folder for this; frames on stdin and
    stdout."""
    folder = os.getcwd()
    source, out = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # Ray prints
    asked = messages.read_connect(source)
    if asked is None:
        return

    def say(message: ToEngine) -> None:
        with suppress(OSError):
            out.write(messages.frame(message))
            out.flush()

    def give_up() -> None:
        say(Gone(f"no connection to the cluster at {asked.address} within {_NOBODY:.0f} s"))
        os._exit(1)

    patience = threading.Timer(_NOBODY, give_up)
    patience.daemon = True
    if asked.address:
        patience.start()
    try:
        ray = _connected(asked, say)
    except BaseException as error:
        traceback.print_exc()
        say(Gone(str(error) if isinstance(error, NoCluster) else _line(error)))
        os._exit(1)
    patience.cancel()

    async def serve() -> None:
        reader = asyncio.StreamReader(limit=2**26)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), source
        )
        await Driver(ray, asked, out).serve(reader)

    try:
        asyncio.run(serve())
    finally:
        with suppress(Exception):
            ray.shutdown()
        sys.stderr.flush()
        shutil.rmtree(folder, ignore_errors=True)  # an engine that was killed leaves it behind
        os._exit(0)


if __name__ == "__main__":
    main()
