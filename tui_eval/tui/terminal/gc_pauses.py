"""Keeping Python's garbage collector from looking through everything while a person types.

The collector holds the interpreter while it looks: 300 ms in which no key is answered, measured while
100,000 cases were sorted; 30 ms without it. While very many objects are made in a thread it does not look at
all (`undisturbed`): they live as long as the list that they are for, so they are set aside for good
(`gc.freeze`); what nothing refers to any more is freed all the same. At all other times it looks through what
is young as ever, and through everything only when no key has been pressed for some seconds (`Collecting`).
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

YOUNG = (2_000, 20)
"""Thresholds of the collections of young objects, as for `gc.set_threshold`."""
NEVER = 1_000_000_000
QUIET = 4.0
"""Seconds without a key after which everything may be looked through."""
WORTH = 10
"""Collections of young objects (of some 40,000 new ones each) from which on that is worth it."""
TOO_MUCH = 300
"""The same, from which on it is done although somebody types."""

_lock = threading.Lock()
_working = 0
_was_on = True


def enable() -> None:
    """Collect from now on, or as soon as the last thread in `undisturbed` has left."""
    global _was_on
    with _lock:
        _was_on = True
        if not _working:
            gc.enable()


@contextmanager
def undisturbed() -> Iterator[None]:
    """No collection until the last thread in here has left."""
    global _working, _was_on
    with _lock:
        if not _working:
            _was_on = gc.isenabled()
            gc.disable()
        _working += 1
    try:
        yield
    finally:
        with _lock:
            _working -= 1
            if not _working:
                gc.freeze()
                if _was_on:
                    gc.enable()


class Collecting:
    """Full collections of an app, each when nobody types."""

    def __init__(self, keys: Callable[[], int]) -> None:
        """`keys` says how many keys have been pressed."""
        self._keys = keys
        self._seen = -1
        self._before: tuple[int, int, int] | None = None

    def begin(self) -> None:
        """No full collection by itself from now on."""
        self._before = gc.get_threshold()
        gc.set_threshold(*YOUNG, NEVER)

    def end(self) -> None:
        """As it was before."""
        if self._before is not None:
            gc.set_threshold(*self._before)
            self._before = None

    def look(self) -> bool:
        """Called every `QUIET` seconds: collect where it is worth it and no key was pressed since the last call;
        whether that was done."""
        keys, seen = self._keys(), self._seen
        self._seen = keys
        due = gc.get_count()[2]
        if not gc.isenabled() or due < WORTH or (keys != seen and due < TOO_MUCH):
            return False
        gc.collect()
        return True
