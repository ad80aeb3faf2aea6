"""What a window over other rows made of values, totals among the rows, and what only looks like these."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tui_eval.frames.diagnosis import diagnose

SHOPS = "aabbbaabbaab"
PLAIN = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 8.0]
RANKED = [1, 2, 2, 2, 5, 6, 6, 8, 9, 9, 11, 12]
DENSE = [1, 2, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8]
NUMBERED = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]


def table(values: list[Any]) -> list[dict[str, Any]]:
    return [{"id": at, "shop": SHOPS[at], "x": value} for at, value in enumerate(values)]


def averages(most: int = 99) -> list[float]:
    last = [PLAIN[max(0, at + 1 - most) : at + 1] for at in range(len(PLAIN))]
    return [sum(part) / len(part) for part in last]


def of_shop(figure: Any) -> list[float]:
    return [
        float(figure([v for v, other in zip(PLAIN, SHOPS, strict=True) if other == shop])) for shop in SHOPS
    ]


SHARES = [value / sum(PLAIN) for value in PLAIN]
OF_SHOP = [value / every for value, every in zip(PLAIN, of_shop(sum), strict=True)]
BY_SHOP = [
    1 + sum(o < v and s == t for o, t in zip(PLAIN, SHOPS, strict=True))
    for v, s in zip(PLAIN, SHOPS, strict=True)
]
OVER_ALL = [1 + sum(o < v for o in PLAIN) for v in PLAIN]


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        (PLAIN, averages(), "a running average"),
        (PLAIN, [round(one, 2) for one in averages()], "a running average"),
        (averages(), PLAIN, "as it is, not a running average"),
        (PLAIN, averages(3), "a moving average of 3 rows"),
        (averages(3), PLAIN, "as it is, not a moving average of 3 rows"),
        (PLAIN, [max(PLAIN[: at + 1]) for at in range(12)], "a running maximum"),
        (PLAIN, of_shop(sum), "the sum of all with the same shop"),
        (PLAIN, of_shop(max), "the largest of all with the same shop"),
        (of_shop(sum), PLAIN, "as it is, not the sum of all with the same shop"),
        (OF_SHOP, SHARES, "shares of all, not shares of all with the same shop"),
        (SHARES, OF_SHOP, "shares of all with the same shop, not shares of all"),
        (RANKED, DENSE, "ranked without gaps after ties (DENSE_RANK), not with them (RANK)"),
        (DENSE, RANKED, "ranked with gaps after ties (RANK), not without (DENSE_RANK)"),
        (RANKED, NUMBERED, "numbered row by row (ROW_NUMBER): rows that tie should share a rank"),
        (NUMBERED, RANKED, "ranked, so that ties share a rank: each row should have its own (ROW_NUMBER)"),
        (BY_SHOP, OVER_ALL, "ranked over all rows, not by shop"),
        (OVER_ALL, BY_SHOP, "ranked by shop, not over all rows"),
    ],
)
def test_what_a_window_made_of_values_is_said(expected: list[Any], actual: list[Any], words: str) -> None:
    wrong = table(actual)
    assert diagnose(table(expected), wrong).lines[0].startswith(f"x {words} in ")
    assert diagnose(table(expected), wrong[::-1]).lines[0].startswith(f"x {words} in ")


SALES = [
    {"shop": s, "region": r, "n": n}
    for s, r, n in (("a", "x", 5), ("a", "y", 7), ("b", "x", 2), ("b", "y", 4))
]
SUBTOTALS = [{"shop": "a", "region": None, "n": 12}, {"shop": "b", "region": None, "n": 6}]
TOTAL = [{"shop": None, "region": None, "n": 18}]


def test_totals_among_the_rows_are_called_that() -> None:
    rows = SALES + SUBTOTALS + TOTAL
    words = "all 3 {} rows are sums of others, in n: a ROLLUP"
    assert diagnose(SALES, rows).lines[0].startswith(words.format("extra"))
    assert diagnose(rows, SALES).lines[0].startswith(words.format("missing"))
    named = [*SALES, {"shop": "Grand total", "region": None, "n": 18}]
    assert diagnose(SALES, named).lines[0].startswith("the extra row is the sum of others, in n: a ROLLUP")


def test_rows_that_are_no_totals_are_not_called_so() -> None:
    wrong = [*SALES, *SUBTOTALS, {"shop": None, "region": None, "n": 19}]
    another = [*SALES, {"shop": "c", "region": "x", "n": 7}]
    again = [*SALES, {"shop": "a", "region": "x", "n": 7}]
    for rows in (wrong, another, again):
        assert "totals" not in {found.code for found in diagnose(SALES, rows).findings}


def test_wrong_values_by_chance_are_no_window() -> None:
    draw = random.Random(5)
    for _ in range(40):
        expected = [draw.randrange(1, 4) for _ in SHOPS]
        actual = [draw.randrange(1, 4) for _ in SHOPS]
        codes = {found.code for found in diagnose(table(expected), table(actual)).findings}
        assert not codes & {"running", "of_group", "group_shares", "ranked"}, (expected, actual)


def test_values_that_became_columns_are_called_that() -> None:
    """It was called a column that has another name, with a join that fans out."""
    tall = [
        {"shop": s, "region": r, "n": n}
        for s, r, n in (("a", "North", 5), ("a", "South", 7), ("b", "North", 2))
    ]
    wide = [{"shop": "a", "north": 5, "south": 7}, {"shop": "b", "north": 2, "south": None}]
    words = "the answer has north and south as {}, expected as {} (the values of region)"
    assert diagnose(tall, wide).lines == [words.format("columns", "rows")]
    assert diagnose(wide, tall).lines == [words.format("rows", "columns")]


@pytest.mark.parametrize("peers", [False, True])
def test_a_running_total_over_all_rows_is_told_from_one_by_part(peers: bool) -> None:
    """Where each month has all shops, the last ones of each add up to the total over all: it was `a moving total of 2
    rows`, or the sum of all with the same month."""
    values = [31.5, 17.25, 8.0, 44.75, 12.5, 3.25, 27.0, 9.75, 15.5, 61.25]
    key = [{"month": f"2024-0{1 + at // 2}-01", "shop": "ab"[at % 2]} for at in range(10)]
    parted = [sum(values[at % 2 : at + 1 : 2]) for at in range(10)]
    whole = [sum(values[: (at // 2 * 2 + 1 if peers else at) + 1]) for at in range(10)]
    sides = [
        [{**names, "x": value} for names, value in zip(key, side, strict=True)] for side in (parted, whole)
    ]
    assert diagnose(*sides).lines[0].startswith("x a running total over all rows, not by shop in ")
    assert diagnose(*sides[::-1]).lines[0].startswith("x a running total by shop, not over all rows in ")


def test_a_running_total_of_four_quarters_is_called_that() -> None:
    """The first one is as expected: three sums, which with so many digits come about by no chance."""
    expected: list[dict[str, Any]] = [
        {"q": q, "s": s} for q, s in enumerate((48301.25, 51277.81, 60914.02, 47650.6), 1)
    ]
    actual: list[dict[str, Any]] = [
        {"q": q, "s": s} for q, s in enumerate((48301.25, 99579.06, 160493.08, 208143.68), 1)
    ]
    assert diagnose(expected, actual).lines == ["s a running total in 3 of 3 rows that differ"]
    assert diagnose(actual, expected).lines == [
        "s not added up to a running total in 3 of 3 rows that differ"
    ]
    few = [{"q": q, "s": q} for q in (1, 2, 3)]
    summed = [{"q": 1, "s": 1}, {"q": 2, "s": 3}, {"q": 3, "s": 6}]
    assert "running" not in {one.code for one in diagnose(few, summed).findings}
