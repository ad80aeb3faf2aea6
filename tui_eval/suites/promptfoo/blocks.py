"""The two kinds of `lazy.Block`: cases that are made already, and rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tui_eval.model import Case, Problem
from tui_eval.suites import identity
from tui_eval.suites.promptfoo.cases import CaseMaker, Column
from tui_eval.suites.promptfoo.csv import Rows
from tui_eval.suites.promptfoo.tests import Test, merged


class CaseList:
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
        default: Test | None,
        cols: list[Column],
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
            test = merged(self._rows[number], self._default)
            tests, combinations = (count + number + 1 for count in self._before)
            base = maker.base(test, self._attempts, tests)
            for column in self._columns[first : first + stop - place]:
                yield maker.case(base, test, column, test.vars, ids[place - start], combinations)
                place += 1

    def problems(self) -> list[Problem]:
        """See `lazy.Block`."""
        return self._rows.problems()
