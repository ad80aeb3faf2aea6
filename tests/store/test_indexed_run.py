"""A run's rows as the index is given them."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from tui_eval.store.indexed_run import Results


def row(number: int) -> tuple[Any, ...]:
    values: list[Any] = ["run", f"case {number} é", "bot", None, "passed", number, 1, float(number)]
    values += [1.5, 12, None, "hash", "", 2, "own", 2**40, -0.0, float("inf"), "x" * (number % 7), True]
    return tuple(values)


@pytest.mark.parametrize("many", [0, 1, 1999, 2000, 2001, 6500])
def test_rows_of_a_large_run_come_back_as_they_were(many: int) -> None:
    results = Results()
    rows = [row(number) for number in range(many)]
    for one in rows:
        results.add(one)
    assert list(map(tuple, chain.from_iterable(results.pieces()))) == rows
    assert results.latest == max(0, many - 1)
    results.again = {rows[0][1], rows[-1][1]} if rows else ()
    found = list(map(tuple, chain.from_iterable(results.pieces())))
    assert [one[14] for one in found] == [
        "again" if number in (0, many - 1) else "own" for number in range(many)
    ]
    assert [(*one[:14], "own", *one[15:]) for one in found] == rows


def test_a_row_that_cannot_be_stored_is_refused() -> None:
    for odd in ("\ud800", 2**70):
        results = Results()
        with pytest.raises((ValueError, OverflowError)):
            for number in range(4000):
                results.add((*row(number)[:18], odd, True))
