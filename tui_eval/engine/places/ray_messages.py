"""What the engine, the process that holds its connection to Ray and the workers say to each other, in
msgpack: frames between the first two, batches of events from workers.

Ray is kept out of the engine's process: it prints, takes signals, and ends its process when its head is gone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

_LENGTH = 8
MANIFEST = ".tui-eval-files"
"""Among the files that are sent: what they are, as `SentFolder`, in JSON."""
SENT_IN = "tui-eval-files"
"""The folder that they are sent in. Python looks in the one around it, where Ray unpacks, before its own modules:
there a `sitecustomize.py` of a project that nobody trusts would run, and a `cmd.py` be Python's."""


class SentFolder(msgspec.Struct):
    """What is sent of a project: the sizes of files by the names that they are sent by; which of these have other names
    in truth, since Ray unpacks no such names; links to folders with where they lead from there, and folders without
    files. Names of the machine are bytes, here as Latin-1."""

    sizes: dict[str, int] = {}
    names: dict[str, str] = {}
    links: dict[str, str] = {}
    folders: list[str] = []

    def complete(self, folder: Path) -> None:
        """Make of what Ray has unpacked in a folder what it was at home. Blocking."""
        for sent, name in self.names.items():
            own = _made_room(folder, name)
            (folder / sent).rename(own)
        for name in self.folders:
            (folder / name_of(name)).mkdir(parents=True, exist_ok=True)
        for name, target in self.links.items():
            _made_room(folder, name).symlink_to(name_of(target))


def _made_room(folder: Path, name: str) -> Path:
    path = folder / name_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def text_of(name: str) -> str:
    """A file's name, of whatever bytes, as a text that can be sent."""
    return os.fsencode(name).decode("latin-1")


def name_of(text: str) -> str:
    """What `text_of` was given."""
    return os.fsdecode(text.encode("latin-1"))


# -- From the engine


class Connect(msgspec.Struct, tag="connect"):
    """Begin: a cluster's `address` (empty: one on this machine), at most so many workers, the zip file that they get
    as their folder (empty: none), and what each is begun with."""

    address: str
    most: int
    package: str
    start: bytes


class Give(msgspec.Struct, tag="give"):
    """Attempts for a worker (`pickled`), and what the files of their suites say, where it does not know that yet."""

    worker: int
    settings: bytes
    tickets: bytes


class CancelAttempts(msgspec.Struct, tag="cancel"):
    """End these attempts of a worker."""

    worker: int
    refs: list[int]


class Granted(msgspec.Struct, tag="granted"):
    """How long a worker waits before the request that it asked for; at its turn, not at all."""

    worker: int
    asked: int
    seconds: float


# -- To the engine


class WorkerUp(msgspec.Struct, tag="up"):
    """A worker can be given attempts."""

    worker: int
    node: str


class Happened(msgspec.Struct, tag="happened"):
    """What happened at a worker, as `batch_of` makes it."""

    worker: int
    events: bytes


class WorkerDown(msgspec.Struct, tag="down"):
    """A worker is gone, with everything it had."""

    worker: int
    why: str


class MachineRefuses(msgspec.Struct, tag="refused"):
    """No worker could begin on a machine; said once of each."""

    node: str
    why: str


class Nodes(msgspec.Struct, tag="nodes"):
    """How many machines there are."""

    count: int


class Waits(msgspec.Struct, tag="waits"):
    """What is waited for, where that is worth a line."""

    why: str


class Silent(msgspec.Struct, tag="silent"):
    """For how many seconds the cluster's head has not answered while there are workers; 0: it does again."""

    seconds: float


class Gone(msgspec.Struct, tag="gone"):
    """There will be no workers any more."""

    why: str


# -- From a worker


class LoggedEvent(msgspec.Struct, array_like=True):
    """Something an attempt reported to its log: the method's name and what it was given. Beside those of
    `AttemptLog`: `done` (packed, mark), `cancelled` (packed, or nothing where it had not begun), `broken`
    (why), `frame` (name, bytes). No attempt's (`ref` 0) is what a worker wants of the engine: `pace` (id,
    agent, requests a minute), `turn_wanted` (id, judge, questions at once), `turn_over` (id), `told` and
    `said` (line); or `handed_on`, what later cases may ask for (case, agent, model, attempt, packed with its
    secrets)."""

    ref: int
    what: str
    given: list[Any]


FromEngine = Connect | Give | CancelAttempts | Granted
ToEngine = WorkerUp | Happened | WorkerDown | MachineRefuses | Nodes | Waits | Silent | Gone

_encoder = msgspec.msgpack.Encoder()
_from_engine = msgspec.msgpack.Decoder(FromEngine)
_to_engine = msgspec.msgpack.Decoder(ToEngine)
_events = msgspec.msgpack.Decoder(list[LoggedEvent])


def batch_of(events: Sequence[LoggedEvent]) -> bytes:
    """Events as they are sent."""
    return _encoder.encode(events)


def events_of(batch: bytes) -> list[LoggedEvent]:
    """What `batch_of` was given."""
    return _events.decode(batch)


def frame(message: FromEngine | ToEngine) -> bytes:
    """A message as it is sent."""
    body = _encoder.encode(message)
    return len(body).to_bytes(_LENGTH) + body


async def read_from_engine(reader: asyncio.StreamReader) -> FromEngine | None:
    """The next message; None: there is nobody any more."""
    body = await _body(reader)
    return None if body is None else _from_engine.decode(body)


async def read_to_engine(reader: asyncio.StreamReader) -> ToEngine | None:
    """The next message; None: there is nobody any more."""
    body = await _body(reader)
    return None if body is None else _to_engine.decode(body)


def read_connect(file: BinaryIO) -> Connect | None:
    """The first message, before there is a loop; None: there was none."""
    head = file.read(_LENGTH)
    if len(head) < _LENGTH:
        return None
    first = _from_engine.decode(file.read(int.from_bytes(head)))
    return first if isinstance(first, Connect) else None


async def _body(reader: asyncio.StreamReader) -> bytes | None:
    try:
        return await reader.readexactly(int.from_bytes(await reader.readexactly(_LENGTH)))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
