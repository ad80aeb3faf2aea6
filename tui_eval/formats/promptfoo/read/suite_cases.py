"""All cases of a suite: those of large tables stay rows until somebody asks for them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol, overload

from tui_eval.formats.promptfoo.read.csv_rows import Rows
from tui_eval.formats.promptfoo.read.matrix_cases import CaseMaker, PromptColumn, combinations
from tui_eval.formats.promptfoo.read.suite_tests import PromptfooTest, merged
from tui_eval.model import Case, Problem
from tui_eval.suites import identity

# -- The cases of large tables: kept as rows, made when they are asked for.


class CaseBlock(Protocol):
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

    def __init__(self, blocks: Sequence[CaseBlock], masked: Callable[[str], str]) -> None:
        self._masked = masked
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
            wanted = chain.from_iterable(block.wanted() for block in self._blocks)
            self._ids = identity.Ids(self._masked).take_all(wanted)
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


# -- The two kinds of `lazy.Block`: cases that are made already, and rows of a table.


class ListedBlock:
    """Cases that are made already, as a block."""

    def __init__(self, cases: list[Case]) -> None:
        self._cases = cases
        self._wanted = [case.case_id for case in cases]

    def __len__(self) -> int:
        return len(self._cases)

    def wanted(self) -> Iterator[str]:
        """See `lazy.Block`."""
        return iter(self._wanted)

    def cases(self, start: int, stop: int, ids: Sequence[str]) -> Iterator[Case]:
        """See `lazy.Block`; always the same objects."""
        for case, case_id in zip(self._cases[start:stop], ids, strict=True):
            case.case_id = case_id
            yield case

    def problems(self) -> list[Problem]:
        """See `lazy.Block`."""
        return [problem for case in self._cases for problem in case.problems]


class RowCases:
    """The cases of a table: each row with each column, made when they are asked for."""

    def __init__(
        self,
        maker: CaseMaker,
        rows: Rows,
        default: PromptfooTest | None,
        cols: list[PromptColumn],
        attempts: int,
        before: tuple[int, int],
    ) -> None:
        self._maker = maker
        self._rows = rows
        self._default = default
        self._columns = cols
        self._attempts = attempts
        self._before = before

    def __len__(self) -> int:
        return len(self._rows) * len(self._columns)

    def wanted(self) -> Iterator[str]:
        """See `lazy.Block`."""
        plan, maker = self._rows.plan, self._maker
        if not plan.vars or plan.bare_metadata is not None:
            for own in self._rows:
                test = merged(own, self._default)
                for column in self._columns:
                    yield maker.wanted(test, own.vars or test.vars, column)
            return
        endings = [identity.ending(column.provider_name, column.named) for column in self._columns]
        for row in self._rows.cells:
            described = row[plan.description] if plan.description >= 0 else ""
            values = {} if described.strip() else {name: row[index] for name, index in plan.vars}
            head = identity.case_id(maker.reading.name, described or None, variables=values)
            for ending in endings:
                yield head + ending

    def cases(self, start: int, stop: int, ids: Sequence[str]) -> Iterator[Case]:
        """See `lazy.Block`."""
        maker, width = self._maker, len(self._columns)
        place = start
        while place < stop:
            number, first = divmod(place, width)
            own = self._rows[number]
            test = merged(own, self._default)
            tests, combinations = (count + number + 1 for count in self._before)
            base = maker.base(test, own, self._attempts, tests)
            for column in self._columns[first : first + stop - place]:
                yield maker.case(base, test, column, test.vars, ids[place - start], combinations)
                place += 1

    def problems(self) -> list[Problem]:
        """See `lazy.Block`."""
        return self._rows.problems()


SMALLEST_LAZY = 1_000
"""Rows; the cases of smaller tables are made at once."""


def all_cases(
    maker: CaseMaker, chunks: Iterable[Sequence[PromptfooTest]], default: PromptfooTest | None
) -> Sequence[Case]:
    """The cases of all tests. Large tables stay rows until their cases are asked for."""
    blocks: list[CaseBlock] = []
    for tests in chunks:
        if isinstance(tests, Rows) and (block := _rows(maker, tests, default)) is not None:
            maker.number += len(tests)
            maker.combination += len(tests)
            blocks.append(block)
        else:
            blocks.append(ListedBlock([case for test in tests for case in maker.cases(test, default)]))
    cases = LazyCases(blocks, maker.reading.masked)
    return cases if any(isinstance(block, RowCases) for block in blocks) else list(cases)


def _rows(maker: CaseMaker, rows: Rows, default: PromptfooTest | None) -> RowCases | None:
    """The rows as a block, where each is one case per column; None where they need a closer look."""
    given = default.vars.values() if default is not None else ()
    expanding = any(isinstance(v, list) or str(v).startswith("file://") for v in given)
    if len(rows) < SMALLEST_LAZY or expanding or rows.mentions_files():
        return None
    first = merged(rows[0], default)
    options = first.options or {}
    if options.get("transformVars") is not None:
        return None
    cols, attempts = maker.columns_of(first), maker.attempts(first, options)
    return RowCases(maker, rows, default, cols, attempts, (maker.number, maker.combination))


# -- The test that a case was made of.


class OwnTest(NamedTuple):
    """A test as its file has it, `default` what the suite lays under all of its tests, `chosen` those values of lists
    in its variables that its case has. `document` is the whole configuration. Nothing of the environment is filled
    in."""

    test: PromptfooTest
    default: PromptfooTest | None
    chosen: dict[str, Any]
    document: dict[str, Any]


def place_of(
    maker: CaseMaker, chunks: Iterable[Sequence[PromptfooTest]], default: PromptfooTest | None, case_id: str
) -> tuple[int, int] | None:
    """Which of the tests a case is of, and which of its combinations of variables, both from 0."""
    take, place = identity.Ids(maker.reading.masked).take, 0
    for tests in chunks:
        block = _rows(maker, tests, default) if isinstance(tests, Rows) else None
        if block is not None:
            maker.number += len(tests)
            maker.combination += len(tests)
            for index, wanted in enumerate(block.wanted()):
                if take(wanted) == case_id:
                    return place + index * len(tests) // len(block), 0
        for number, own in enumerate(tests if block is None else ()):
            before = maker.combination
            for case in maker.cases(own, default):
                if take(case.case_id) == case_id:
                    return place + number, case.test_number - before - 1
        place += len(tests)
    return None


def own_test(
    maker: CaseMaker,
    chunks: Iterable[Sequence[PromptfooTest]],
    default: PromptfooTest | None,
    place: tuple[int, int],
    document: dict[str, Any],
) -> OwnTest | None:
    """The test at a place that `place_of` found."""
    test = next(islice(chain.from_iterable(chunks), place[0], None), None)
    if test is None:
        return None
    whole = merged(test, default)
    options = whole.options or {}
    chosen: dict[str, Any] = {}
    if options.get("transformVars") in (None, ""):  # else its code has made the lists
        expand = maker.everything and not options.get("disableVarExpansion")
        every = combinations(whole.vars, maker.reading, expand=expand)
        _, chosen = next(islice(every, place[1], None), ({}, {}))
    return OwnTest(test, default, chosen, document)
