"""The cases of large tables: kept as rows, made when they are asked for.

A suite of a hundred thousand rows is loaded in about the time that its CSV takes to parse. Cases are
values: asked for twice, a case of a row is made twice, and equal. Ids need all rows (a repeated one
gets `#2`), so the first one asked for costs the ids of all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, overload

from tui_eval.model import Case, Problem
from tui_eval.suites import identity


class Block(Protocol):
    """Cases that follow each other in a suite. Their `case_id`s are those wanted, repeated or not."""

    def __len__(self) -> int: ...

    def wanted(self) -> Iterator[str]:
        """The id that each case would have if it were alone."""
        ...

    def cases(self, start: int, stop: int, ids: Sequence[str]) -> Iterator[Case]:
        """The cases from `start` to `stop`, with the ids given for them."""
        ...

    def problems(self) -> Iterable[Problem]:
        """What is wrong with single cases."""
        ...


class LazyCases(Sequence[Case]):
    """The cases of a suite, some of them still rows. A sequence that cannot be changed."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = [block for block in blocks if len(block)]
        self._starts: list[int] = []
        self._size = 0
        for block in self._blocks:
            self._starts.append(self._size)
            self._size += len(block)
        self._changes: list[Callable[[Case], None]] = []
        self._ids: list[str] | None = None

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Case: ...

    @overload
    def __getitem__(self, index: slice) -> list[Case]: ...

    def __getitem__(self, index: int | slice) -> Case | list[Case]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._size)
            return list(self._made(start, stop)) if step == 1 else [self[i] for i in range(start, stop, step)]
        place = index if index >= 0 else self._size + index
        if not 0 <= place < self._size:
            raise IndexError(f"there are {self._size} cases")
        return next(self._made(place, place + 1))

    def __iter__(self) -> Iterator[Case]:
        return self._made(0, self._size)

    def ids(self) -> list[str]:
        """The `case_id` of every case, in order; quicker than making the cases."""
        if self._ids is None:
            take = identity.Ids().take
            self._ids = [take(wanted) for block in self._blocks for wanted in block.wanted()]
        return self._ids

    def with_ids(self, wanted: Iterable[str]) -> list[Case]:
        """The cases that have one of these ids, in order; only they are made."""
        names = frozenset(wanted)
        return [self[place] for place, case_id in enumerate(self.ids()) if case_id in names]

    def problems(self) -> list[Problem]:
        """What is wrong with single cases, in order."""
        return [problem for block in self._blocks for problem in block.problems()]

    def each(self, change: Callable[[Case], None]) -> None:
        """Have `change` applied to every case when it is made."""
        self._changes.append(change)

    def _made(self, start: int, stop: int) -> Iterator[Case]:
        ids = self.ids()
        place = start
        while place < stop:
            number = bisect_right(self._starts, place) - 1
            first, block = self._starts[number], self._blocks[number]
            end = min(stop - first, len(block))
            own = ids[place : first + end]
            for case in block.cases(place - first, end, own):
                case.order = place
                for change in self._changes:
                    change(case)
                yield case
                place += 1
