"""How much work something is, counted and not timed: a busy machine changes no count."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Work:
    """Calls of this thread, of Python's functions and of C's, so far."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, frame: object, event: str, argument: object) -> None:
        self.calls += event in ("call", "c_call")


@contextmanager
def counted() -> Iterator[Work]:
    """Counts the calls made inside."""
    work, before = Work(), sys.getprofile()
    sys.setprofile(work)
    try:
        yield work
    finally:
        sys.setprofile(before)


def calls_of(do: Callable[[], T]) -> tuple[T, int]:
    """What it gives, and how many calls it took."""
    with counted() as work:
        found = do()
    return found, work.calls
