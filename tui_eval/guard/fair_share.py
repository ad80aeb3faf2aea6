"""Many attempts on one event loop: how much of it one of them may take at a time, and whose time is spent.

A reply that costs much (an endless stream, a packed bomb) takes turns with the others that do, so that
between two looks at the network at most one of them is worked on, for a few milliseconds. An attempt that
waits for a worker or a thread which others hold does not spend its own time limit on that. A name whose
server does not answer is waited for by those alone who asked for it.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import cache
from threading import Thread
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

SLICE = 0.004
"""Seconds of the loop that a piece of a reply should cost."""
LIGHT = 0.05
"""Seconds of the loop that a reply may cost before it takes turns with other such replies."""
FULL = 1 << 14
"""Bytes that the connection hands over at most."""
SMALLEST, LARGEST = 1 << 10, 1 << 18
"""Bytes of a piece."""


class Clock(Protocol):
    """The time limits of what runs in a context."""

    looked_up: str
    """The host name that was being looked up when a limit ended what waited for it; empty: none was."""

    def stop(self) -> None:
        """What follows is not spent; as often as it is stopped it has to go on again."""
        ...

    def go_on(self) -> None:
        """The reverse of `stop`."""
        ...

    def left(self) -> float | None:
        """Seconds until the nearest limit; None: there is none."""
        ...


clock: ContextVar[Clock | None] = ContextVar("clock", default=None)
"""The clock of the attempt that runs in this context."""


def seconds_left() -> float | None:
    """Seconds until the limit of the attempt that runs in this context; None: it has none."""
    running = clock.get()
    return None if running is None else running.left()


@contextmanager
def looking_up(host: Any) -> Iterator[None]:
    """A host name is looked up inside: where a limit ends that, the attempt's clock knows what took the time."""
    try:
        yield
    except asyncio.CancelledError:
        if (running := clock.get()) is not None:
            running.looked_up = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
        raise


class Waiting:
    """Stops the clock of the attempt in this context until `over`: it waits for what others hold. To be used
    on the attempt's loop; `over` twice is once."""

    def __init__(self) -> None:
        self._clock = clock.get()
        self._stopped = False
        self.again()

    def over(self) -> None:
        """It is its turn."""
        if self._clock is not None and self._stopped:
            self._stopped = False
            self._clock.go_on()

    def again(self) -> None:
        """It waits once more."""
        if self._clock is not None and not self._stopped:
            self._stopped = True
            self._clock.stop()

    def end(self) -> None:
        """It is its turn for good, whatever is still said of it."""
        self.over()
        self._clock = None


@contextmanager
def waiting() -> Iterator[Waiting]:
    """A `Waiting` that is over at the end in any case."""
    held = Waiting()
    try:
        yield held
    finally:
        held.end()


async def in_thread(work: Callable[[], T], threads: Executor | None = None) -> T:
    """`work` in one of `threads` (None: the loop's own); the attempt's time is spent from when it begins."""
    loop = asyncio.get_running_loop()
    context = copy_context()
    with waiting() as held:

        def begun() -> T:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(held.over)
            return context.run(work)

        return await loop.run_in_executor(threads, begun)


async def in_turn(work: Callable[[], T]) -> T:
    """`work` in the thread in which heavy work is done, one after the other: what it needs of memory is needed
    once, and the loop shares the interpreter with one thread at most."""
    return await in_thread(work, _heavy())


@cache
def _heavy() -> Executor:
    return ThreadPoolExecutor(1, thread_name_prefix="heavy")


class Share:
    """What one reply takes of the loop: `cut` gives a body's piece in smaller ones, as many bytes as cost
    about `SLICE` to handle, and `turn` waits between them for its turn where the reply has become heavy."""

    def __init__(self) -> None:
        self._size = 1 << 14
        self._spent = 0.0
        self._since = time.perf_counter()
        self._bytes = 0

    def arrived(self, size: int) -> None:
        """So many bytes were had from the network. Many of them were there already: having them took time of
        the loop; for few of them it was the network that was waited for."""
        self._bytes += size
        if size < FULL:
            self._since = time.perf_counter()

    async def turn(self) -> None:
        """Let others work, where it is their turn."""
        cost = time.perf_counter() - self._since
        if cost < SLICE and self._bytes < LARGEST:
            return
        self._bytes = 0
        self._spent += cost
        if self._spent < LIGHT:
            await asyncio.sleep(0)
        else:
            await _lane().turn()
        self._since = time.perf_counter()

    def handled(self, size: int, seconds: float) -> None:
        """It took so long to handle a piece of so many bytes."""
        if seconds > SLICE:
            self._size = max(SMALLEST, min(self._size, size) // 2)
        elif seconds < SLICE / 4 and size >= self._size:
            self._size = min(LARGEST, self._size * 2)

    def cut(self, piece: bytes) -> Iterable[bytes]:
        """The piece in pieces that cost little enough each."""
        return (piece,) if len(piece) <= self._size else self._smaller(piece)

    def _smaller(self, piece: bytes) -> Iterator[bytes]:
        start = 0
        while start < len(piece):
            end = start + self._size
            yield piece[start:end]
            start = end


class _Lane:
    """Hands out one turn each time the loop goes round, in the order of asking."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._granting = False

    async def turn(self) -> None:
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[None] = loop.create_future()
        self._waiting.append(mine)
        if not self._granting:
            self._granting = True
            loop.call_soon(self._grant, loop)
        await mine

    def _grant(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            following = self._waiting.popleft()
            if not following.done():
                following.set_result(None)
                break
        self._granting = bool(self._waiting)
        if self._granting:
            loop.call_soon(self._grant, loop)


_lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Lane] = WeakKeyDictionary()


def _lane() -> _Lane:
    loop = asyncio.get_running_loop()
    lane = _lanes.get(loop)
    if lane is None:
        lane = _lanes[loop] = _Lane()
    return lane


class Lookups:
    """Host names looked up in a thread each, the same one once at a time. Loops have few threads for that, uvloop's two
    of them: as many names that nobody answers for held all others up for half a minute. To be given in place of
    a loop to what looks names up, or mixed into one."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: dict[tuple[Any, ...], asyncio.Future[Any]] = {}

    async def getaddrinfo(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002  # as loops call it
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        """As `socket.getaddrinfo`."""
        with suppress(OSError, UnicodeError):  # an address is no name
            return socket.getaddrinfo(host, port, family, type, proto, flags | socket.AI_NUMERICHOST)
        with looking_up(host):
            return await self._once(socket.getaddrinfo, host, port, family, type, proto, flags)

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        """As `socket.getnameinfo`."""
        return await self._once(socket.getnameinfo, sockaddr, flags)

    async def _once(self, look_up: Callable[..., Any], *what: Any) -> Any:
        asked = self._asked.get((look_up, *what))
        if asked is None:
            loop = asyncio.get_running_loop()
            asked = loop.create_future()
            # Nobody waits for it at the process's end.
            Thread(target=_look_up, args=(loop, asked, look_up, what), name="lookup", daemon=True).start()
            self._asked[look_up, *what] = asked
            asked.add_done_callback(lambda _: self._asked.pop((look_up, *what), None))
        return await asyncio.shield(asked)


def _look_up(
    loop: asyncio.AbstractEventLoop,
    asked: asyncio.Future[Any],
    look_up: Callable[..., Any],
    what: tuple[Any, ...],
) -> None:
    found: Any = None
    failed: Exception | None = None
    try:
        found = look_up(*what)
    except Exception as error:
        failed = error

    def end() -> None:
        if asked.done():
            return
        if failed is None:
            asked.set_result(found)
        else:
            asked.set_exception(failed)
            asked.exception()  # whoever asked may have gone

    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(end)
