"""What rows that differ have in common by chance is not called their cause, and the true one is found."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate, product
from typing import Any

import polars as pl
import pytest

from tui_eval.formats.nao.judge_nao import _fact_of_rows
from tui_eval.frames.compare import compare
from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.diagnosis import diagnose, diagnosis_of
from tui_eval.frames.difference import align

Rows = list[dict[str, Any]]


def counted(name: str, first: int, values: list[Any]) -> Rows:
    return [{name: first + at, "n": value} for at, value in enumerate(values)]


OF_MONTHS = counted("m", 1, [31.5, 28.25, 33.0, 30.75, 29.5, 27.0, 35.25, 36.5, 31.0, 26.75, 24.5, 39.0])
OF_QUARTERS = counted("m", 1, [30.92, 29.08, 34.25, 30.08])
OF_WEEKDAYS = counted("d", 0, [9.5, 8.25, 7.0, 6.75, 5.5, 4.25, 3.0])
OF_DAYS = counted("d", 0, [at * 7 % 31 + 50.5 for at in range(31)])


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (OF_MONTHS, OF_QUARTERS),
        (OF_QUARTERS, OF_MONTHS),
        (OF_WEEKDAYS, OF_DAYS),
        (OF_DAYS, OF_WEEKDAYS),
    ],
)
def test_groups_of_another_kind_that_have_the_same_numbers_are_no_limit_and_no_filter(
    expected: Rows, actual: Rows
) -> None:
    """Month 1 to 4 of twelve and quarter 1 to 4: no row that both have is right."""
    assert diagnose(expected, actual).lines == []


def test_first_rows_that_are_right_or_changed_in_one_way_are_still_a_limit() -> None:
    assert "the first 4 of 12 expected rows" in diagnose(OF_MONTHS, OF_MONTHS[:4]).lines[0]
    dear = [{**row, "n": row["n"] * 100} for row in OF_MONTHS[:5]]
    lines = diagnose(OF_MONTHS, dear).lines
    assert any("the first 5 of 12" in line for line in lines)
    assert any(line.startswith("n ×100 in 5 of 5") for line in lines)


def test_ids_that_are_no_count_are_a_limit_though_their_values_are_others() -> None:
    expected = counted("order_id", 70001, [at * 37 % 101 + 0.5 for at in range(12)])
    actual = counted("order_id", 70001, [9.25, 71.0, 3.5, 44.75])
    first = "the answer has order_id of the first 4 of 12 expected rows and ends there: a LIMIT?"
    assert diagnose(expected, actual).lines == [first]
    more = "the answer begins with order_id of the 4 expected rows and has 8 more: its LIMIT is missing or larger"
    assert diagnose(actual, expected).lines == [more]


@pytest.mark.parametrize(
    "rows",
    [
        counted("rank", 1, [16510.5, 9243.57, 1329.12]),
        [{"oid": 11, "qty": 1}, {"oid": 12, "qty": 2}, {"oid": 13, "qty": 3}, {"oid": 14, "qty": 6}],
        [{"n": 1}, {"n": 2}, {"n": 3}],
        [{"rank": 1, "seen": "a"}, {"rank": 2, "seen": "b"}, {"rank": 3, "seen": None}],
    ],
)
def test_small_numbers_that_add_up_are_no_total(rows: Rows) -> None:
    """Rank 3 is 1 and 2."""
    for sides in ((rows, rows[:-1]), (rows[:-1], rows)):
        assert not any("ROLLUP" in line for line in diagnose(*sides).lines)


def test_a_total_without_a_word_for_it_is_one_where_all_its_figures_are_sums() -> None:
    rows = [{"orders": 113, "revenue": 1672.25}, {"orders": 87, "revenue": 940.5}]
    total = {"orders": 200, "revenue": 2612.75}
    assert "a ROLLUP" in diagnose(rows, [*rows, total]).lines[0]


def test_a_column_that_is_0_everywhere_says_nothing_of_missing_rows() -> None:
    rows = [{"shop": shop, "refunds": 0, "n": at * 7 + 3} for at, shop in enumerate("abcdef")]
    assert not any("groups without" in line for line in diagnose(rows, [rows[1], rows[4]]).lines)


def test_rows_without_a_key_that_are_other_ones_are_not_filtered() -> None:
    """An order stands there twice, so that rows are told apart by content: those with an amount are ×0.9."""
    expected: Rows = [
        {"order_id": 1000 + at // 2 * 2, "amount": None if at % 9 == 4 else at * 31 % 97 + 10}
        for at in range(40)
    ]
    actual = [{**row, "amount": None if row["amount"] is None else row["amount"] * 0.9} for row in expected]
    assert not any("the filter" in line for line in diagnose(expected, actual).lines)


def test_a_row_without_a_value_that_is_missing_makes_no_sum_of_others() -> None:
    expected: Rows = [
        {"region": "north", "share": None, "seen": "2024-08-28T18:43:00"},
        {"region": "south", "share": 0.0363, "seen": "2024-08-23T00:59:00"},
        {"region": "east", "share": 0.7003, "seen": "2024-10-05T20:30:00"},
        {"region": "west", "share": 0.5203, "seen": "2024-05-26T05:08:00"},
    ]
    assert not any("summed by" in line for line in diagnose(expected, expected[1:]).lines)


AMOUNTS = {
    "north": [12.5, 80.25, 31.1],
    "south": [7.75, 19.4],
    "east": [44.0, 3.15, 9.9, 61.3, 20.45, 5.6, 71.2],
}
SUMS = [{"region": region, "x": round(sum(values), 2)} for region, values in AMOUNTS.items()]
AVERAGES = [{"region": region, "x": sum(values) / len(values)} for region, values in AMOUNTS.items()]


def test_sums_for_averages_are_not_called_rows_counted_several_times() -> None:
    of = "(of 2 to 7 values each) in 3 of 3 rows that differ"
    assert diagnose(AVERAGES, SUMS).lines == [f"x sums where averages are expected {of}"]
    assert diagnose(SUMS, AVERAGES).lines == [f"x averages where sums are expected {of}"]


def test_sums_of_as_many_values_each_are_not_called_rows_counted_several_times() -> None:
    averages = [{"k": at, "x": one / 3} for at, one in enumerate([100.25, 71.5, 93.1, 12.25])]
    sums = [{"k": row["k"], "x": round(row["x"] * 3, 2)} for row in averages]
    assert diagnose(averages, sums).lines == ["x ×3 in 4 of 4 rows that differ"]


def test_cents_and_rows_that_a_join_repeats_are_no_sums_of_averages() -> None:
    prices = [{"k": at, "x": one} for at, one in enumerate([12.34, 8.01, 77.77, 5.19])]
    assert diagnose(prices, [{**row, "x": round(row["x"] * 100)} for row in prices]).lines == [
        "x ×100 in 4 of 4 rows that differ"
    ]
    repeated = [{**row, "x": round(row["x"] * (2 + row["k"]), 2)} for row in prices]
    assert "as a join does?" in diagnose(prices, repeated).lines[0]


@pytest.mark.parametrize(("step", "words"), [(1, "before"), (-1, "after")])
@pytest.mark.parametrize("nothing", [None, 0])
def test_values_of_the_row_before_are_found_in_few_rows_too(step: int, words: str, nothing: Any) -> None:
    values = [8380.11, 17765.81, 3481.03, 3909.12, 6403.71, 8398.18]
    moved = [nothing, *values[:-1]] if step > 0 else [*values[1:], nothing]
    assert diagnose(counted("rank", 1, values), counted("rank", 1, moved)).lines == [
        f"n has the value of the row {words} it in 5 of 6 rows that differ"
    ]


def test_one_value_is_no_part_of_numbers_that_are_near_to_each_other() -> None:
    """The largest customer's number for the largest order's: it was `÷7,692,307,692`."""
    expected = counted("shop", 1, [1_000_000_000_898, 1_000_000_000_899, 1_000_000_000_900])
    assert diagnose(expected, counted("shop", 1, [130, 130, 130])).lines == [
        "n one value for all rows (130) in 3 of 3 rows that differ"
    ]


def test_first_months_of_a_quarter_among_others_are_not_cut_to_it() -> None:
    expected = [{"k": at, "m": f"2024-{month:02}-01"} for at, month in enumerate([5, 10, 2, 12, 6, 8, 3, 9])]
    actual = [{"k": at, "m": f"2024-{month:02}-01"} for at, month in enumerate([4, 9, 1, 10, 5, 7, 2, 7])]
    assert not any("cut to" in line for line in diagnose(expected, actual).lines)
    assert not any("cut to" in line for line in diagnose(expected[:1], actual[:1]).lines)
    quarters = [{"k": at, "m": f"2024-{month:02}-01"} for at, month in enumerate([4, 10, 1, 10, 4, 7, 1, 7])]
    assert diagnose(expected, quarters).lines == ["m cut to the quarter in 7 of 7 rows that differ"]


def test_two_wrong_truths_are_not_called_one_value_for_all_rows() -> None:
    expected = [{"k": at, "vip": at > 1} for at in range(5)]
    actual = [{"k": at, "vip": True} for at in range(5)]
    assert diagnose(expected, actual).lines == []
    several = [{"k": at, "vip": at > 4} for at in range(12)]
    assert "one value for all rows" in diagnose(several, [{**row, "vip": True} for row in several]).lines[0]


@pytest.mark.parametrize(
    ("columns", "others"),
    [
        ({"n": [12, 7, 9], "status": ["paid", "open", "void"]}, {"n": 7, "status": "new"}),
        ({"orders": [12, 7, 9], "cid": [9001, 9002, 9007]}, {"orders": 7, "cid": 9005}),
        (
            {"qty": [12, 7, 9], "region": ["n", "n", "s"], "month": [1, 2, 1]},
            {"qty": 7, "region": "s", "month": 2},
        ),
    ],
)
def test_a_group_too_many_that_counts_as_many_as_another_is_not_repeated_by_a_join(
    columns: dict[str, list[Any]], others: dict[str, Any]
) -> None:
    """A count that is unique in expected by chance is no key where others name the rows."""
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    found = diagnose(rows, [*rows, others])
    assert not any("repeats" in line for line in found.lines) and found.extra == 1
    assert found.key[0] in ("status", "cid", "region")


def test_an_id_that_the_answer_repeats_is_still_a_join_that_fans_out() -> None:
    rows = [{"order_id": 7000 + at, "item": f"item {at}"} for at in range(4)]
    lines = diagnose(rows, [*rows, {"order_id": 7001, "item": "another"}]).lines
    assert lines == ["order_id, unique in expected, repeats once: a join fans out"]


@pytest.mark.parametrize("name", ["n", "s0", "k0", "m0", "rows", "sum of 0", "", "amount"])
def test_a_column_may_be_called_as_what_is_counted_on_the_way(name: str) -> None:
    """Of counts called n nothing was said where all are summed to one: an error that nobody saw."""
    parts, whole = [{name: 171}, {name: 374}, {name: 55}], [{name: 600}]
    assert "too coarse: summed" in diagnose(parts, whole).lines[0]
    assert "too fine: summed" in diagnose(whole, parts).lines[0]
    shops = [{"shop": shop, name: n} for shop, n in [("a", 171), ("a", 374), ("b", 7), ("b", 88)]]
    by_shop = [{"shop": "a", name: 545}, {"shop": "b", name: 95}]
    assert "too coarse: summed by shop" in diagnose(shops, by_shop).lines[0]
    total = [*by_shop, {"shop": None, name: 640}]
    assert "a ROLLUP" in diagnose(by_shop, total).lines[0]


def test_a_finer_grouping_is_said_beside_a_join_that_fans_out() -> None:
    expected = [{"segment": one, "a": v} for one, v in zip("abc", (1.5, 2.5, 3.25), strict=True)]
    actual = [
        {"segment": one, "vip": vip, "a": v + at / 8}
        for at, (one, v) in enumerate(zip("abc", (1.5, 2.5, 3.25), strict=True))
        for vip, v in ((True, v + 0.5), (False, v - 0.7))
    ]
    line = "segment, unique in expected, repeats 3 times: grouped by vip too, or a join fans out"
    assert diagnose(expected, actual).lines == [line]


@pytest.mark.parametrize(("unit", "size"), [("seconds", 1), ("milliseconds", 0.001), ("days", 86400)])
def test_an_interval_given_as_a_number_is_no_text_that_was_cut(unit: str, size: float) -> None:
    """The comparison knows intervals as so many seconds, with a letter behind them."""
    expected = [{"k": at, "d": f"{at + 3} days"} for at in range(4)]
    actual = [{"k": at, "d": (at + 3) * 86400 / size} for at in range(4)]
    lines = diagnose(expected, actual, types={"d": "INTERVAL"}).lines
    assert lines == [f"d {unit} instead of an interval in 4 of 4 rows that differ"]


def test_a_division_of_whole_numbers_is_cut_off_and_not_rounded() -> None:
    halves = counted("k", 0, [2.5, 3.0, 1.5, 7.5, 4.0, 0.5])
    assert diagnose(halves, counted("k", 0, [2, 3, 1, 7, 4, 0])).lines[0].startswith("n cut off, not rounded")
    assert diagnose(halves, counted("k", 0, [3, 3, 2, 8, 4, 1])).lines[0].startswith("n rounded to whole")


def test_one_number_in_several_rows_is_rounded_to_nothing() -> None:
    expected, actual = (
        counted("k", 0, [251, 17, 251, 33, 251, 251]),
        counted("k", 0, [250, 17, 250, 33, 250, 250]),
    )
    assert not any("rounded" in line for line in diagnose(expected, actual).lines)


def test_a_factor_that_was_fitted_to_rounded_values_holds_in_all_rows() -> None:
    """Weeks between two days, as calendars count them, are no 0.141065 of the days."""
    days = [334, 333, 221, 330, 285, 150, 98, 340, 12, 77, 201, 305, 289, 264, 181, 45, 359, 66, 118, 243]
    weeks = [(day + at % 7) // 7 for at, day in enumerate(days)]
    lines = diagnose(counted("k", 0, days), counted("k", 0, weeks)).lines
    assert not any("×" in line for line in lines)


@pytest.mark.parametrize("rate", [1 / 1.19, 0.9228])
def test_a_rate_by_which_amounts_were_rounded_is_still_called_that(rate: float) -> None:
    """The factor of their sums is a little beside it, and misses one or two in a hundred by a hair."""
    amounts = [round(7.31 + (at * 7919) % 9973 / 11, 2) for at in range(100)]
    lines = diagnose(
        counted("k", 0, amounts), counted("k", 0, [round(one * rate, 2) for one in amounts])
    ).lines
    assert any("÷1.19" in line or "×0.922" in line for line in lines)


def test_groups_that_the_answer_lacks_are_none_of_its_sums() -> None:
    """Both rows without a day were left out: `summed by seen, … of 20 of 20 rows of the answer`, which has 19."""
    expected: Rows = [{"id": 1000 + at * 7, "seen": f"2024-03-{at + 1:02}"} for at in range(19)]
    lost: Rows = [{"id": 2063, "seen": None}, {"id": 2085, "seen": None}]
    assert not any("summed" in line for line in diagnose([*expected, *lost], expected).lines)


def test_the_first_rows_by_another_column_are_no_filter() -> None:
    """Of the first by orders, not by revenue, those besides have less revenue than any that is expected."""
    customers: Rows = [{"cid": at, "rev": 9000.5 - at * 37, "orders": at * 29 % 41} for at in range(40)]
    by_orders = sorted(customers, key=lambda row: -row["orders"])
    assert diagnose(customers[:15], by_orders[:15]).lines == []
    states = [{**row, "state": ("paid", "open", "void")[row["cid"] * 7 % 3]} for row in customers[:36]]
    paid_or_open, paid_or_void = ([row for row in states if row["state"] != one] for one in ("void", "open"))
    assert "where state = 'open': the filter is too narrow" in " ".join(
        diagnose(paid_or_open, paid_or_void).lines
    )


def test_the_other_order_is_named_where_the_sides_have_other_types() -> None:
    """A sum is a DECIMAL or a HUGEINT in DuckDB, a day a DATE; the answer has floats and texts."""
    ordered = ComparisonSettings(ordered=True)
    days = [date(2024, 5, 9), date(2024, 4, 30), date(2024, 2, 1), date(2024, 1, 7)]
    amounts = [Decimal("940.50"), Decimal("312.25"), Decimal("99.10"), Decimal("7.75")]
    for name, values, plain in (("rev", amounts, float), ("day", days, str)):
        expected = pl.DataFrame({"shop": ["b", "d", "a", "c"], name: values})
        actual = [{"shop": shop, name: plain(value)} for shop, value in expected.rows()][::-1]
        assert diagnose(expected, actual, ordered).lines == [
            f"the same rows in another order: sorted by {name} ascending, not descending"
        ]


def test_the_two_best_of_each_group_for_the_best_one_are_no_join_that_fans_out() -> None:
    best = [{"dept": "ops", "name": "Ann", "pay": 90}, {"dept": "hr", "name": "Bo", "pay": 80}]
    second = [{"dept": "ops", "name": "Cy", "pay": 85}, {"dept": "hr", "name": "Di", "pay": 70}]
    assert "fan_out" not in {found.code for found in diagnose(best, best + second).findings}
    least = [{"dept": "ops", "name": "Ed", "pay": 20}, {"dept": "hr", "name": "Flo", "pay": 30}]
    assert diagnose(best, least + second).lines == ["dept, unique in expected, repeats 2 times"]


PLANS = [
    {"country": c, "plan": p, "n": n}
    for c, p, n in (
        *(("DE", "free", 9), ("DE", "pro", 6), ("FR", "free", 11), ("FR", "pro", 8)),
        *(("JP", "free", 12), ("JP", "pro", 7), (None, None, 53)),
    )
]
OF_COUNTRIES = [{"country": c, "plan": None, "n": n} for c, n in (("DE", 15), ("FR", 19), ("JP", 19))]
OF_PLANS = [{"country": None, "plan": p, "n": n} for p, n in (("free", 32), ("pro", 21))]


def test_totals_by_other_columns_are_no_filters_of_their_size() -> None:
    """rollup(plan, country) for rollup(country, plan)."""
    assert diagnose(PLANS + OF_COUNTRIES, PLANS + OF_PLANS).lines == [
        "all 3 missing rows are sums of others, in n: a ROLLUP by other columns?",
        "all 2 extra rows are sums of others, in n: a ROLLUP by other columns?",
    ]


def test_finer_rows_beside_totals_are_no_filter_of_their_size() -> None:
    """rollup(country, plan) for grouping sets ((country))."""
    fine = [
        {"country": c, "plan": p, "n": 1 + at % 9} for at, (c, p) in enumerate(product("ABCDEFG", "wxyz"))
    ]
    totals = [
        {"country": c, "plan": None, "n": sum(one["n"] for one in fine if one["country"] == c)}
        for c in "ABCDEFG"
    ]
    by_plan = [
        {"country": None, "plan": p, "n": sum(one["n"] for one in fine if one["plan"] == p)} for p in "wxyz"
    ]
    for expected in (totals + by_plan, totals):
        found = diagnose(expected, totals + by_plan + fine)
        assert not [one for one in found.findings if one.columns == ("n",)], found.lines


def test_one_above_every_share_is_no_rounding() -> None:
    """avg(case when late then 1.0 end): what is not late counts for nothing."""
    expected = [{"carrier": c, "late": late} for c, late in (("gls", 0.3034), ("dhl", 0.35), ("ups", 0.352))]
    found = diagnose(expected, [{**row, "late": 1.0} for row in expected])
    assert found.lines[0].startswith("late one value for all rows (1)"), found.lines


def test_a_sum_called_s_is_no_time() -> None:
    expected = [
        {"k": k, "s": n} for k, n in zip("abcdef", (31346.29, 812.5, 99.9, 4071.3, 55.25, 710.8), strict=True)
    ]
    words = " in 6 of 6 rows that differ"
    assert diagnose(expected, [{**row, "s": row["s"] / 1000} for row in expected]).lines == [
        f"s ÷1,000{words}"
    ]
    took = [{"k": row["k"], "took_s": row["s"]} for row in expected]
    found = diagnose(took, [{**row, "took_s": row["took_s"] / 1000} for row in took])
    assert found.lines == [f"took_s ÷1,000{words}: a unit of time a thousand times larger"]


def test_the_first_ones_of_each_group_by_another_column_are_no_filter() -> None:
    groups = [[(g, f"{g}{at}", 900 - 37 * at - 5 * n) for at in range(6)] for n, g in enumerate("ABCDEFG")]
    expected = [{"g": g, "id": name, "rev": rev} for group in groups for g, name, rev in group[:3]]
    actual = [{"g": g, "id": name, "rev": rev} for group in groups for g, name, rev in (group[0], *group[4:])]
    found = diagnose(expected, actual)
    assert not [one for one in found.findings if "rev" in one.columns], found.lines


def test_rows_of_other_days_are_called_by_their_days_and_not_by_a_figure_that_grows_with_these() -> None:
    days = [date(2023, 1, 1 + at) for at in range(28)]
    values = [Decimal(100 + at * 37 % 91).scaleb(-2) for at in range(28)]
    sums = list(accumulate(values))
    expected = [{"day": d, "cum": one} for d, one in zip(days, sums, strict=True)]
    later = [
        {"day": d.isoformat(), "cum": float(one - sums[11])}
        for d, one in zip(days[12:], sums[12:], strict=True)
    ]
    lines = diagnose(pl.DataFrame(expected), later).lines
    assert lines == [
        f"cum {float(sums[11])} too low in 16 of 16 rows that differ",
        "all 12 missing rows are where day <= '2023-01-12': the filter is too narrow",
    ]


LARGE = [
    {"country": c, "plan": p, "n": n}
    for at, c in enumerate("ABCDEF")
    for p, n in (("w", 5 + at), ("z", 40 + at))
]
SUMMED = [{"country": c, "plan": None, "n": 45 + 2 * at} for at, c in enumerate("ABCDEF")]
NOTED = [
    {"id": f"o-{at}", "coupon": None if at % 5 else "x", "sent": None if at % 3 else "y", "n": at * 37 % 101}
    for at in range(40)
]


@pytest.mark.parametrize("rows", [[*LARGE, *SUMMED, {"country": None, "plan": None, "n": 300}], NOTED])
def test_a_filter_of_a_figure_is_told_where_totals_and_rows_without_a_note_are_among_the_rows(
    rows: Rows,
) -> None:
    """HAVING over a ROLLUP: rows as coarse as those that are missing are there."""
    found = diagnose(rows, [row for row in rows if row["n"] > 30])
    least = max(row["n"] for row in rows if row["n"] <= 30)
    assert f"rows are where n <= {least}: the filter is too narrow" in found.lines[0]


@pytest.mark.parametrize("unit", [1, 0.25])
def test_a_filter_of_a_figure_is_told_where_a_limit_keeps_as_many_rows(unit: float) -> None:
    rows = [
        {"id": f"o-{at}", "day": f"2024-03-{at % 28 + 1:02d}", "n": at * 37 % 101 * unit} for at in range(60)
    ]
    within, first = [row for row in rows if row["n"] > 30 * unit][:30], rows[:30]
    assert "extra rows are where n <= " in diagnose(within, first).lines[0]
    assert "missing rows are where n <= " in diagnose(first, within).lines[0]


def test_an_id_that_repeats_with_another_text_throughout_is_repeated_by_a_join() -> None:
    """The product of its items in place of the state of an order."""
    orders = [{"order_id": 70001 + at, "state": "open" if at % 2 else "paid"} for at in range(12)]
    items = [{**row, "state": product} for row in orders for product in ("tea", "cup")]
    assert diagnose(orders, items).lines[0] == (
        "order_id, unique in expected, repeats 12 times: a join fans out"
    )


def test_a_filter_of_a_figure_is_told_where_all_columns_are_numbers() -> None:
    rows = [{"order_id": 70001 + at, "amount": at * 37 % 101 + 0.5, "n": at * 7 % 9} for at in range(60)]
    within = [row for row in rows if row["amount"] > 30]
    assert "missing rows are where amount <= " in diagnose(rows, within).lines[0]
    assert "extra rows are where amount <= " in diagnose(within, rows).lines[0]


def by_week(first: date, amounts: list[int], every: int = 7) -> Rows:
    return [{"w": (first + timedelta(every * at)).isoformat(), "n": n} for at, n in enumerate(amounts)]


ON_SUNDAYS = "w on Sundays where Mondays are expected"


def test_weeks_that_begin_on_another_day_are_no_last_days_of_weeks() -> None:
    """Each week's sums are others; some weeks with the same number seemed to be called by their last day."""
    wanted = by_week(date(2024, 1, 1), [9, 7, 8, 9, 6, 7, 9, 8])
    given = by_week(date(2023, 12, 31), [8, 8, 7, 9, 7, 6, 9, 9, 1])
    lines = diagnose(wanted, given).lines
    assert lines == [f"{ON_SUNDAYS} in {lines[0].split(' in ')[1]}"] and lines[0].endswith(
        "rows that differ: weeks that begin on another day?"
    )
    orders = [{"id": at, "w": (date(2024, 1, 1) + timedelta(at // 7 * 7)).isoformat()} for at in range(60)]
    sundays = [
        {"id": at, "w": (date(2023, 12, 31) + timedelta((at + 1) // 7 * 7)).isoformat()} for at in range(60)
    ]
    assert diagnose(orders, sundays).lines == [
        f"{ON_SUNDAYS} in 60 of 60 rows that differ: weeks that begin on another day?"
    ]


@pytest.mark.parametrize(
    ("first", "told"), [(date(2024, 1, 7), "6 days later"), (date(2023, 12, 31), "1 day earlier")]
)
def test_weeks_that_are_called_by_another_day_only_are_the_same_weeks(first: date, told: str) -> None:
    amounts = [91, 72, 83, 94, 65, 76, 97, 88]
    lines = diagnose(by_week(date(2024, 1, 1), amounts), by_week(first, amounts)).lines
    assert told in lines[0] and not any(ON_SUNDAYS in line for line in lines)


def test_days_of_all_weekdays_are_no_weeks() -> None:
    wanted = by_week(date(2024, 1, 1), [5, 7, 2, 9, 4, 8], every=1)
    given = by_week(date(2024, 3, 1), [3, 1, 6, 8, 2, 7], every=1)
    assert not any("expected in" in line and "days where" in line for line in diagnose(wanted, given).lines)


def test_rows_without_a_partner_are_not_said_to_be_filtered_away() -> None:
    """An inner join leaves out what has none, an outer one adds it: no filter did."""
    every = [{"id": at, "boss": None if at % 3 == 0 else f"b{at % 7}"} for at in range(60)]
    matched = [row for row in every if row["boss"] is not None]
    difference = align(every, matched)
    narrow = "all 20 missing rows are where boss is null: the filter is too narrow"
    assert diagnosis_of(difference).lines == [f"{narrow}, or an inner join leaves them out"]
    difference.own_query = "joinless"
    assert diagnosis_of(difference).lines == [narrow]
    wide = "all 20 extra rows are where boss is null: the filter is too wide, or an outer join adds them"
    assert diagnose(matched, every).lines == [wide]
    named = [{**row, "boss": row["boss"] or "nobody"} for row in every]
    [line] = diagnose(named, [row for row in named if row["boss"] != "nobody"]).lines
    assert line.endswith("where boss = 'nobody': the filter is too narrow")


@pytest.mark.parametrize("city", ["berlin ", " berlin", "new  york"])
def test_a_condition_has_the_blanks_of_its_value(city: str) -> None:
    """Without them it would be true of no row."""
    every = [{"id": at, "city": city if at % 3 == 0 else f"c{at % 7}"} for at in range(60)]
    [line] = diagnose(every, [row for row in every if row["city"] != city]).lines
    assert f"where city = '{city}':" in line


def test_rows_whose_only_column_no_frame_holds_are_explained_as_far_as_they_can_be() -> None:
    """NaN beside a whole number that no 64 bits hold: `_totals_of` had a table without columns, and raised."""
    expected: Rows = [{"n": float("nan")}, {"n": None}, {"n": 2**70}]
    found = diagnose(expected, [{"n": None}, {"n": float("nan")}])
    assert (found.missing, found.extra) == (1, 0)
    assert not any("the sum" in line for line in found.lines)


def test_the_fact_of_weeks_counts_no_more_rows_than_are_expected() -> None:
    wanted = by_week(date(2024, 1, 1), [91, 72, 83, 94, 65, 76, 97, 88])
    given = by_week(date(2023, 12, 31), [18, 28, 37, 49, 57, 66, 79, 89, 11])
    assert _fact_of_rows(compare(given, wanted)) == (ON_SUNDAYS, ON_SUNDAYS)
