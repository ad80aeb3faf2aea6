"""A worker of a Ray cluster: the same attempts as in the engine, on a loop of its own.

Everything it is given and gives is bytes, so that Ray's records hold no secret in the clear; the environment comes as
an argument of a method, which Ray keeps nowhere (that of a constructor it does)."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from tui_eval import __version__
from tui_eval.agents.base import Pace, asking_for
from tui_eval.config.config_values import variables_in
from tui_eval.config.project import AgentSpec, Config
from tui_eval.engine.attempt.attempt import execute
from tui_eval.engine.needed_first import import_first
from tui_eval.engine.places.ray_messages import LoggedEvent, batch_of
from tui_eval.engine.places.sent_project import OwnFiles, moved, moved_text
from tui_eval.engine.plan import Job
from tui_eval.engine.row_order import HandedOn, Memory, hands_on
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.schedule import within_open_files
from tui_eval.guard import figures
from tui_eval.guard.fair_share import in_turn
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Case, Entry
from tui_eval.store.encoding import encode_json, has_long
from tui_eval.store.writer import Packed


class WorkerStart(msgspec.Struct):
    """What a worker is begun with. `environ` are the variables of the engine's environment that are not its
    machine's, `shared` says that the project's root is the same folder here, `mark` (empty: none) what is
    there only where that is so. `judge` is the one that was typed, and `typed_judge` what that is where the
    person is."""

    config: Config
    trust: Trust
    run_id: str
    judge: str | None
    environ: dict[str, str]
    shared: bool
    mark: str = ""
    typed_judge: AgentSpec | None = None


_OF_THE_MACHINE = frozenset(
    ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "PWD",
     "OLDPWD", "SHLVL", "_", "HOSTNAME", "HOST", "TERM", "TERMINFO", "COLORTERM", "DISPLAY", "WAYLAND_DISPLAY",
     "XAUTHORITY", "VIRTUAL_ENV", "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION",
     "LC_MEASUREMENT", "LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE",
     "LC_TIME", "XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_CURRENT_DESKTOP", "XDG_DATA_DIRS",
     "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_SEAT", "XDG_SESSION_CLASS", "XDG_SESSION_DESKTOP",
     "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XDG_STATE_HOME", "XDG_VTNR", "PYTHONPATH", "PYTHONHOME",
     "PYTHONEXECUTABLE", "PYTHONNOUSERSITE", "PYTHONPLATLIBDIR", "PYTHONPYCACHEPREFIX", "PYTHONSTARTUP",
     "PYTHONUSERBASE", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "DBUS_SESSION_BUS_ADDRESS",
     "DBUS_SYSTEM_BUS_ADDRESS", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_DEVICE_ORDER",
     "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_REQUIRE_CUDA",
     "CONDA_DEFAULT_ENV", "CONDA_EXE", "CONDA_PREFIX", "CONDA_PROMPT_MODIFIER", "CONDA_PYTHON_EXE",
     "CONDA_SHLVL", "_CE_CONDA", "_CE_M", "SSH_AGENT_PID", "SSH_ASKPASS", "SSH_AUTH_SOCK", "SSH_CLIENT",
     "SSH_CONNECTION", "SSH_TTY")
)  # fmt: skip
"""Variables that say something about a machine: the connection to Ray has them, workers have their own."""
_RAYS = "RAY_"
"""What Ray's own variables begin with: hundreds, of which each of its processes has some."""


def of_the_machine(name: str) -> bool:
    """Whether a variable says something about a machine."""
    return name in _OF_THE_MACHINE or name.startswith(_RAYS)


def sent_environment(
    environ: Mapping[str, str], config: Config, by_suites: Iterable[str] = ()
) -> dict[str, str]:
    """The variables that workers get: those that are not the machine's, and what the configuration names, in
    `${…}` or as an agent's `variables`, and suites do, whatever it is. Of PYTHONPATH at least the folders of
    the project."""
    specs = (*config.agents.values(), *filter(None, [config.judge]))
    named = {
        *by_suites,
        *variables_in(encode_json(config).decode()),
        *(name for spec in specs for name in spec.variables),
    }
    sent = {name: value for name, value in environ.items() if name in named or not of_the_machine(name)}
    if folders := environ.get(_PYTHONPATH):
        root = str(config.root)
        below = [os.path.abspath(one) for one in folders.split(os.pathsep) if one]
        kept = [one for one in below if _PYTHONPATH in named or moved_text(one, root, "") is not one]
        sent.pop(_PYTHONPATH, None)
        if kept:
            sent[_PYTHONPATH] = os.pathsep.join(kept)
    return sent


_PYTHONPATH = "PYTHONPATH"


def _without(folder: str) -> None:
    """Take Ray's folder from where Python looks, here and in what is started from here: at home nothing is found in the
    project but by who is beside it."""
    folders = [one for one in os.environ.pop(_PYTHONPATH, "").split(os.pathsep) if one and one != folder]
    if folders:
        os.environ[_PYTHONPATH] = os.pathsep.join(folders)
    sys.path[:] = [one for one in sys.path if one != folder]


def _have(environ: Mapping[str, str], roots: tuple[str, str] | None) -> None:
    """Take over the engine's variables: with paths of the project as those of here, and PYTHONPATH before the
    own one."""
    environ = moved(dict(environ), *roots) if roots else dict(environ)
    if folders := environ.pop(_PYTHONPATH, ""):
        taken = [moved(one, *roots) if roots else one for one in folders.split(os.pathsep)]
        own = os.environ.get(_PYTHONPATH, "").split(os.pathsep)
        environ[_PYTHONPATH] = os.pathsep.join(dict.fromkeys(filter(None, (*taken, *own))))
        sys.path.extend(
            one for one in taken if one not in sys.path
        )  # agents that name a module are looked for there
    os.environ.update(environ)


class SentTicket(msgspec.Struct):
    """An attempt as it is sent: `job` without its settings, `left` seconds until it must have ended, what rows
    before it handed on, and the workers that were lost with it before."""

    ref: int
    number: int
    job: Job
    left: float | None
    handed_on: HandedOn | None
    lost: list[str]


_LIVE = 0.15
"""Seconds for which live text is gathered."""
_SHARE, _LEAST, _MOST = 0.1, 0.002, 0.1
"""Seconds for which what has ended is gathered: a part of what an attempt takes, at least, and at most."""
_TEXTS = ("assistant", "reasoning")


class EventLog:
    """The log (`AttemptLog`) of a worker's attempts: what happens is gathered until it is taken. Each batch
    costs the engine and Ray about what an attempt does: the more of them end, the more go together, as long
    as half of those that were given still have something to do. `folder` takes files until they are sent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._events: dict[int, list[LoggedEvent]] = {}
        self._open: dict[int, LoggedEvent] = {}
        self._given: dict[int, float] = {}
        self._takes = 0.0
        self._ended = 0
        self._any = asyncio.Event()
        self._ending = asyncio.Event()
        self._urgent = asyncio.Event()

    async def take(self) -> bytes:
        """Wait until something has happened, and a moment for more."""
        await self._any.wait()
        await _within(_LIVE, self._ending)
        await _within(min(max(_SHARE * self._takes, _LEAST), _MOST), self._urgent)
        taken, self._events = self._events, {}
        self._open.clear()
        self._ended = 0
        for event in (self._any, self._ending, self._urgent):
            event.clear()
        return batch_of([event for events in taken.values() for event in events])

    def given(self, refs: Iterable[int]) -> None:
        """These attempts are to be executed."""
        self._given.update(dict.fromkeys(refs, time.monotonic()))

    def ended(self, ref: int, what: str, *given: Any) -> None:
        """An attempt has ended. Of what it reported before, only that goes with it which is kept of it."""
        before = self._events.get(ref)
        if before:
            turns = [event for event in before if event.what == "turn"]
            self._events[ref] = [*turns[-1:], *(event for event in before if event.what == "frame")]
        self._add(ref, what, *given)
        began = self._given.pop(ref, None)
        if began is not None:
            seconds = time.monotonic() - began
            self._takes = seconds if not self._takes else 0.9 * self._takes + 0.1 * seconds
        self._ended += 1
        self._ending.set()
        if what != "done" or self._ended >= len(self._given):
            self._urgent.set()

    def ask(self, what: str, *given: Any) -> None:
        """Something, of no attempt, that waits for the engine's answer."""
        self._add(0, what, *given)
        self._ending.set()
        self._urgent.set()

    def frame(self, ref: int, name: str, body: bytes) -> None:
        """A file that is kept of an attempt."""
        self._add(ref, "frame", name, body)

    def hands_on(self, *given: Any) -> None:
        """What an attempt that is about to end hands on."""
        self._add(0, "handed_on", *given)

    def _add(self, ref: int, what: str, *given: Any) -> LoggedEvent:
        event = LoggedEvent(ref, what, list(given))
        self._events.setdefault(ref, []).append(event)
        self._open.pop(ref, None)
        self._any.set()
        return event

    # `AttemptLog`

    def started(self, attempt_ref: int, at: float) -> None:
        self._add(attempt_ref, "started", at)
        if not 0 < self._takes < _LIVE:  # a worker that is lost has begun only what it has said so of
            self._ending.set()

    def limit(self, attempt_ref: int, ends_at: float | None) -> None:
        self._add(attempt_ref, "limit", ends_at)

    def turn(self, attempt_ref: int, turn: int) -> None:
        self._add(attempt_ref, "turn", turn)

    def retrying(self, attempt_ref: int, detail: str) -> None:
        self._add(attempt_ref, "retrying", detail)

    def waits(self, attempt_ref: int, detail: str) -> None:
        self._add(attempt_ref, "waits", detail)

    def running_again(self, attempt_ref: int) -> None:
        self._add(attempt_ref, "running_again")

    def progress(self, attempt_ref: int, usage: tuple[int | None, int | None], tool_calls: int) -> None:
        self._add(attempt_ref, "progress", usage, tool_calls)

    def live(
        self, attempt_ref: int, kind: str, text: str, agent: str = "", name: str = "", call_id: str = ""
    ) -> None:
        before = self._open.get(attempt_ref)
        if before is not None and before.given[0] == kind and before.given[2] == agent:
            before.given[1] += text
            return
        event = self._add(attempt_ref, "live", kind, text, agent, name, call_id)
        if kind in _TEXTS:
            self._open[attempt_ref] = event


async def _within(seconds: float, event: asyncio.Event) -> None:
    """Wait for something, not longer than that."""
    if not event.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()


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
        self._log.ask("pace", asked, self._name, self._per_minute, asking_for.get())
        try:
            return await self._waiting[asked]
        finally:
            del self._waiting[asked]


_numbers = count(1)


class FarMemory(Memory):
    """The memory of a worker: what cases hand on the engine keeps, as it was said. What is recorded of it has
    no secrets."""

    def __init__(self, hand_on: Callable[[Case, str, str | None, Attempt], None]) -> None:
        super().__init__()
        self._hand_on = hand_on

    def remember(self, case: Case, agent: str, model: str | None, attempt: Attempt) -> None:
        """See `Memory`."""
        if hands_on(case):
            self._hand_on(case, agent, model, attempt)


class FarContext(RunContext):
    """What the attempts of a worker share. What is the whole run's is the engine's."""

    def __init__(
        self, config: Config, trust: Trust, log: EventLog, waiting: dict[int, asyncio.Future[float]]
    ) -> None:
        super().__init__(config, trust)
        self._log, self._waiting = log, waiting
        self._passed_on: set[tuple[str, str]] = set()
        self.judge_typed: AgentSpec | None = None
        """What `typed_judge` names: a file there is not below the folder of this process."""

    def judge_spec(self, name: str | None) -> AgentSpec | None:
        """See `RunContext`."""
        known = self.judge_typed if name == self.typed_judge else None
        return known or super().judge_spec(name)

    def tell_once(self, line: str) -> None:
        """See `RunContext`."""
        self._pass_on("told", line)

    def say_once(self, line: str) -> None:
        """See `RunContext`."""
        self._pass_on("said", line)

    def _pass_on(self, what: str, line: str) -> None:
        if (what, line) not in self._passed_on:
            self._passed_on.add((what, line))
            self._log.ask(what, line)

    @asynccontextmanager
    async def turn(self, name: str, most: int) -> AsyncIterator[None]:
        """As in the engine, which gives it."""
        asked = next(_numbers)
        given = self._waiting[asked] = asyncio.get_running_loop().create_future()
        self._log.ask("turn_wanted", asked, name, most)
        try:
            await given
            yield
        finally:
            del self._waiting[asked]
            self._log.ask("turn_over", asked)


_LATE = 5.0
"""Seconds that a shared folder may take to show what was made in it."""


def _has_project(given: WorkerStart) -> bool:
    """Whether the project is here, and not a copy of it. Blocking."""
    ends = time.monotonic() + (_LATE if given.mark else 0)
    while True:
        try:
            os.stat(given.mark or given.config.root)
            return True
        except (FileNotFoundError, NotADirectoryError):
            if time.monotonic() >= ends:
                return False
            time.sleep(0.2)
        except OSError:  # it is there, and somebody else's
            return True


class _TrustOfHome(Trust):
    """What a person agreed to, where the project stood in the folder `home` and now stands in `own`."""

    home: str = ""
    own: str = ""

    def covers(self, what: str) -> bool:
        """As `Trust`, of what it was there."""
        return Trust.covers(self, what.replace(self.own, self.home))


def trust_of_home(trust: Trust, home: str, own: str) -> Trust:
    """What was agreed to of a project in the folder `home`, for one in `own`."""
    return _TrustOfHome(trust.granted, [], trust.agreed, set(), home, own)


_MANY = 10_000
"""Attempts at once of one worker, where so many files may be open."""


class RayWorker:
    """The Ray actor. One event loop only."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._waiting: dict[int, asyncio.Future[float]] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        self._words = ""
        self._roots: tuple[str, str] | None = None
        self._files: OwnFiles | None = None
        self._imported: set[tuple[str, str, str | None]] = set()
        self._importing = asyncio.Lock()
        self._room = asyncio.Semaphore(within_open_files(_MANY))

    async def where(self) -> str:
        """The machine it is on: its address, and the beginning of the id that Ray knows it by."""
        ray = import_module("ray")
        return f"{ray.util.get_node_ip_address()} (node {ray.get_runtime_context().get_node_id()[:6]})"

    async def begin(self, start: bytes, node: str, version: str = __version__) -> dict[str, str]:
        """Make it ready; what it is, for who compares versions, and what it `lacks`: then it is not. What is given by
        another `version` is not looked at: it may be anything."""
        is_here = {"version": __version__, "python": platform.python_version(), "lacks": ""}
        if version != __version__:
            return is_here
        given: WorkerStart = pickle.loads(start)
        if given.shared and not await asyncio.to_thread(_has_project, given):
            is_here["lacks"] = (
                f"it does not have the project at {given.config.root}, or only a copy of it "
                "(`files: shared`: one folder of all machines)"
            )
            return is_here
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):  # what people's code prints there would stand in Ray's logs
            os.dup2(nowhere, descriptor)
        config, trust = given.config, given.trust
        if not given.shared:
            self._files = OwnFiles(given.run_id)
            unpacked, own = map(str, await asyncio.to_thread(self._files.take))
            _without(unpacked)
            self._roots = str(config.root), own
            config = moved(config, *self._roots)
            trust = trust_of_home(trust, *self._roots)
        _have(given.environ, self._roots)
        self._words = f"worker {self._number} on {node}"
        gc.set_threshold(10_000, 20, 20)  # as in the engine's own process
        self._log = EventLog(Path(tempfile.mkdtemp(prefix="tui-eval-")))
        self._context = FarContext(config, trust, self._log, self._waiting)
        self._context.memory = FarMemory(self._handed_on)
        self._context.run_id = given.run_id
        self._context.typed_judge = given.judge
        self._context.judge_typed = (
            moved(given.typed_judge, *self._roots) if self._roots else given.typed_judge
        )
        for spec in (*config.agents.values(), config.judge):
            self._keep_pace(spec)
        return is_here

    def _keep_pace(self, spec: AgentSpec | None) -> None:
        paces = self._context.paces
        if spec is not None and spec.rate_requests and spec.name not in paces:
            paces[spec.name] = FarPace(spec.name, spec.rate_requests, self._log, self._waiting)

    async def give(self, settings: bytes, given: bytes) -> None:
        """Begin these attempts."""
        if settings:
            known = pickle.loads(settings)
            self._settings.update(moved(known, *self._roots) if self._roots is not None else known)
        tickets: list[SentTicket] = pickle.loads(given)
        self._log.given(ticket.ref for ticket in tickets)
        for ticket in tickets:
            self._tasks[ticket.ref] = asyncio.ensure_future(self._execute(ticket))

    async def cancel(self, refs: list[int]) -> None:
        """End these attempts; what there was of them is reported."""
        for ref in refs:
            if (task := self._tasks.get(ref)) is not None:
                task.cancel()

    async def granted(self, asked: int, seconds: float) -> None:
        """The engine's answer to a question for a moment to send, or for a turn."""
        future = self._waiting.get(asked)
        if future is not None and not future.done():
            future.set_result(seconds)

    async def take(self) -> bytes:
        """What has happened, once something has."""
        return await self._log.take()

    async def stream(self) -> AsyncIterator[bytes]:
        """What happens, in batches, without end."""
        while True:
            yield await self._log.take()

    async def works(self) -> None:
        """Answered as long as it does."""

    async def end(self) -> None:
        """Release what it holds."""
        for task in self._tasks.values():
            task.cancel()
        await self._context.close()
        if self._files is not None:
            await asyncio.to_thread(self._files.leave)
        await asyncio.to_thread(shutil.rmtree, self._log.folder, True)

    async def _execute(self, ticket: SentTicket) -> None:
        ref, left = ticket.ref, {}
        ends = None if ticket.left is None else asyncio.get_running_loop().time() + ticket.left
        try:
            async with self._room:
                await self._executed(ticket, ends, left)
        except asyncio.CancelledError:
            kept = left.get(ref)
            self._log.ended(
                ref, "cancelled", *([] if kept is None else await self._packed(kept, ticket.lost))
            )
        except Exception as error:  # of our own making: the engine says so
            self._log.ended(ref, "broken", f"{type(error).__name__}: {error}")
        finally:
            self._tasks.pop(ref, None)

    async def _executed(self, ticket: SentTicket, ends: float | None, left: dict[int, Attempt]) -> None:
        job = ticket.job
        if self._roots is not None:
            job = moved(job, *self._roots)
        job.settings = self._settings.get(job.suite, {})
        await self._import_for(job)
        self._keep_pace(job.spec)
        if ticket.handed_on is not None:
            self._context.memory.take(job, ticket.number, ticket.handed_on)
        try:
            attempt = await execute(
                job, ticket.number, ticket.ref, self._context, self._log, ends, None, left
            )
        finally:
            self._context.memory.release(job, ticket.number)
        if self._files is not None and not self._files.there():
            os._exit(1)  # what failed for that is no fault of the agent's: another worker begins it anew
        await self._send_frames(attempt, ticket.ref)
        self._log.ended(ticket.ref, "done", *await self._packed(attempt, ticket.lost))

    def _handed_on(self, case: Case, agent: str, model: str | None, attempt: Attempt) -> None:
        figures.attempt(attempt)
        body = Packed.of(self._as_at_home(attempt)).body
        self._log.hands_on(case.case_id, agent, model, attempt.attempt, body)

    async def _import_for(self, job: Job) -> None:
        """What the attempt needs, off the loop; once for each agent and kind of assertion, as it takes a thread."""
        case = job.case
        needed = {(case.format, one.type, job.judge) for one in case.asserted} | {("", job.agent, None)}
        if needed <= self._imported:
            return
        async with self._importing:
            await import_first([job], self._context.config, self._context.typed_judge)
            self._imported |= needed
            gc.freeze()  # what was imported stays: it is not looked through again and again

    async def _send_frames(self, attempt: Attempt, ref: int) -> None:
        named = attempt.data.settings.get("frames") if attempt.data is not None else None
        for name in named.values() if isinstance(named, dict) else ():
            file = self._log.folder / name
            self._log.frame(ref, name, await asyncio.to_thread(file.read_bytes))
            file.unlink()

    async def _packed(self, attempt: Attempt, lost: Sequence[str]) -> tuple[bytes, str]:
        def made() -> Packed:
            return Packed.of(self._as_at_home(attempt))

        attempt.ran_on = self._words
        anew = "begun anew, its worker was lost ({}); what it had cost there is not known"
        attempt.transcript[:0] = [Entry(0, "note", text=anew.format(why)) for why in lost]
        packed = await in_turn(made) if has_long(attempt) else made()
        return packed.body, packed.mark

    def _as_at_home(self, attempt: Attempt) -> Attempt:
        """Paths of this machine as the engine knows them."""
        if self._roots is None:
            return attempt
        home, own = (encode_json(root)[1:-1] for root in self._roots)
        body = encode_json(attempt)
        return msgspec.json.decode(body.replace(own, home), type=Attempt) if own in body else attempt
