"""Columns whose wrong values are told by all of their rows, and what only looks like it."""

from __future__ import annotations

from typing import Any

import pytest

from tui_eval.frames.diagnosis import diagnose

N = range(1, 13)
PLAIN = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
SUMS = [3, 4, 8, 9, 14, 23, 25, 31, 36, 39, 44, 52]
PARTS = "aabbbaabbaab"


def table(values: list[Any], **others: list[Any]) -> list[dict[str, Any]]:
    columns = {"id": list(N), **others, "x": values}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def by_part() -> list[int]:
    held = dict.fromkeys(PARTS, 0)
    made: list[int] = []
    for part, value in zip(PARTS, PLAIN, strict=True):
        held[part] += value
        made.append(held[part])
    return made


TRUTH = [n % 3 == 0 for n in N]


@pytest.mark.parametrize(
    ("expected", "actual", "line"),
    [
        (PLAIN, SUMS, "x a running total in 11 of 11 rows that differ"),
        (SUMS, PLAIN, "x not added up to a running total in 11 of 11 rows that differ"),
        ([v / 7 for v in PLAIN], [v / 7 for v in SUMS], "x a running total in 11 of 11 rows that differ"),
        (TRUTH, [not one for one in TRUTH], "x the opposite in 12 of 12 rows that differ"),
        (TRUTH, [False] * 12, "x one value for all rows (false) in 4 of 4 rows that differ"),
        (PLAIN, [52] * 12, "x one value for all rows (52, the sum of all) in 12 of 12 rows that differ"),
        (PLAIN, [5] * 12, "x one value for all rows (5) in 9 of 9 rows that differ"),
        (list("abcabcabcabc"), ["b"] * 12, "x one value for all rows (b) in 8 of 8 rows that differ"),
    ],
)
def test_what_all_rows_tell_is_said(expected: list[Any], actual: list[Any], line: str) -> None:
    wrong = table(actual)
    assert diagnose(table(expected), wrong).lines[0] == line
    assert diagnose(table(expected), wrong[::-1]).lines[0] == line


def test_a_running_total_in_the_order_of_the_key_and_by_another_column() -> None:
    turned = table(PLAIN)[::-1]
    assert diagnose(turned, table(SUMS)).lines == ["x a running total in 11 of 11 rows that differ"]
    part = list(PARTS)
    found = diagnose(table(PLAIN, part=part), table(by_part(), part=part))
    assert found.lines[0] == "x a running total by part in 10 of 10 rows that differ"


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (PLAIN, [*SUMS[:-1], 53]),
        (PLAIN, [value + 1 for value in SUMS]),
        (TRUTH, [not one for one in TRUTH[:-1]] + TRUTH[-1:]),
        ([True] * 12, [False] * 12),
        (PLAIN, [5] * 11 + [7]),
        ([1, 2] * 6, [2] * 12),
        (["2024-01-05", "2024-02-06", "2024-03-07"] * 4, ["2024-01-01"] * 12),
    ],
)
def test_what_only_looks_like_it_is_not_called_so(expected: list[Any], actual: list[Any]) -> None:
    codes = {found.code for found in diagnose(table(expected), table(actual)).findings}
    if expected[0] == "2024-01-05":
        assert codes == {"time_cut"}
    assert not codes & {"running", "opposite", "one_value"}


def test_nothing_is_said_of_all_rows_where_some_are_missing() -> None:
    codes = {found.code for found in diagnose(table(PLAIN), table(SUMS)[:-2]).findings}
    assert "running" not in codes
