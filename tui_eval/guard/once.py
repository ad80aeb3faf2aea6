"""What is made once, or by one at a time, however many attempts and threads ask for it at the same time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import ast

T = TypeVar("T")


class Once(Generic[T]):
    """A value that is made once, however many ask for it meanwhile: all of them get the one that the first
    one's `make` gives. Where that fails all of them get its error, and the next one to ask makes it anew.

    The making belongs to nobody: it goes on when the one who began it is cancelled or out of time, as long as
    another waits for it. One event loop at a time.
    """

    def __init__(self) -> None:
        self._making: asyncio.Task[T] | None = None
        self._waiting = 0

    async def get(self, make: Callable[[], Awaitable[T]]) -> T:
        """The value; raises what `make` raises."""
        making = self._making
        if making is None or (making.done() and (making.cancelled() or making.exception() is not None)):
            making = self._making = asyncio.ensure_future(_made(make))
            self._waiting = 0
        if making.done():
            return making.result()
        self._waiting += 1
        try:
            return await asyncio.shield(making)
        finally:
            if making is self._making:
                self._waiting -= 1
                if not self._waiting and not making.done():
                    self._making = None
                    making.cancel()

    @property
    def waited_for(self) -> bool:
        """Whether somebody waits for it to be made."""
        return self._waiting > 0

    def forget(self) -> None:
        """The next one to ask makes it anew; who waits now gets what is being made."""
        self._making = None

    async def taken(self) -> T | None:
        """What was made, to be closed; None where nothing was. It is made anew after that."""
        making, self._making = self._making, None
        if making is None:
            return None
        if not making.done():
            making.cancel()
        with suppress(asyncio.CancelledError, Exception):
            return await making
        return None


async def _made(make: Callable[[], Awaitable[T]]) -> T:
    return await make()


_parsing = threading.Lock()


def parsed(source: str | bytes) -> ast.Module:
    """A Python file's tree. Two threads that parse at once may both get a `SystemError`: Python counts how deep the
    trees are that it makes, until 3.13 for all threads together.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is none.
    """
    import ast  # imported late: most that need this module need no parser

    with _parsing:
        return ast.parse(source)


def parsed_expression(source: str) -> ast.expr:
    """The same of an expression."""
    import ast  # as above

    with _parsing:
        return ast.parse(source, mode="eval").body
