"""What a run is to execute, and its rows: those of `cases`, and those of `attempts` that wait."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from tui_eval.case_names import variant_of
from tui_eval.guard import figures
from tui_eval.model import Case
from tui_eval.store.encoding import pack, unpack
from tui_eval.store.pending import insert_rows, storable_rows

_AT_ONCE = 500
"""Rows that are made before they are written: packed, a large suite takes more memory than it does."""


def held(case: Case) -> Case | bytes:
    """A case as a large plan holds it: packed, in a fourth of the memory; as it is where it would come back as another
    one (a date, a number that is none)."""
    body = pack(case)
    try:
        again = unpack(body, Case)
        return body if again == case and pack(again) == body else case
    except (msgspec.MsgspecError, RecursionError):
        return case


def case_of(kept: Case | bytes) -> Case:
    """The case that is held so; of a packed one a new object each time."""
    return unpack(kept, Case) if isinstance(kept, bytes) else kept


class PlannedCase(msgspec.Struct, gc=False):
    """A case, packed or not, that a run will execute with one agent, `attempts` times from `first_attempt`
    on. Of a case whose recorded answers are judged again, `judges` says which each attempt judges
    (`AttemptRow.judges`), and `numbers` the numbers of the attempts, where they do not follow one another."""

    held: Case | bytes
    agent: str
    model: str | None
    attempts: int
    required: int
    first_attempt: int = 1
    judges: Sequence[str] = ()
    numbers: Sequence[int] = ()

    @property
    def case(self) -> Case:
        """The case; of a packed one a new object each time."""
        return case_of(self.held)

    @property
    def attempt_numbers(self) -> Sequence[int]:
        """The number of each attempt."""
        return self.numbers or range(self.first_attempt, self.first_attempt + self.attempts)


class Plan(msgspec.Struct, frozen=True):
    """Cases that were planned together. Their ids follow one another, and so do those of their attempts."""

    cases: list[PlannedCase]
    first_case: int
    first_attempt: int

    def references(self) -> list[range]:
        """The attempt ids of each case, in order."""
        found: list[range] = []
        following = self.first_attempt
        for item in self.cases:
            count = len(item.attempt_numbers)
            found.append(range(following, following + count))
            following += count
        return found

    def attempts(self) -> Iterator[tuple[int, int, PlannedCase, int, str]]:
        """Of each attempt its id, the id of its case, that case, its number and what it judges."""
        ref = self.first_attempt
        for case_ref, item in enumerate(self.cases, self.first_case):
            for place, number in enumerate(item.attempt_numbers):
                judges = item.judges[place] if place < len(item.judges) else ""
                yield ref, case_ref, item, number, judges
                ref += 1

    def write(self, connection: sqlite3.Connection, changed: int) -> None:
        """All rows, within the caller's transaction; the last attempt's change has the number `changed`.

        Raises:
            sqlite3.Error: they cannot be written.
        """
        cases = (_case_row(ref, item) for ref, item in enumerate(self.cases, self.first_case))
        while rows := list(islice(cases, _AT_ONCE)):
            insert_rows(connection, "cases", storable_rows(rows))
        first = changed - sum(len(item.attempt_numbers) for item in self.cases) + 1
        attempts = (
            (ref, case_ref, number, "waiting", change, judges)
            for change, (ref, case_ref, _, number, judges) in enumerate(self.attempts(), first)
        )
        while rows := list(islice(attempts, _AT_ONCE)):
            insert_rows(connection, "attempts (id, case_ref, attempt, state, changed, judges)", rows)


def _case_row(ref: int, item: PlannedCase) -> tuple[Any, ...]:
    case = item.case
    return (
        ref, case.case_id, case.suite, case.name, case.format, item.agent, item.model, case.content_hash,
        min(item.attempts, figures.MOST), min(item.required, figures.MOST),
        item.held if isinstance(item.held, bytes) else pack(case),
        variant_of(case, item.agent),
    )  # fmt: skip
