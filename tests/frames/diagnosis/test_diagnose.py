"""Each kind of finding, both ways: found where it is, not found where it nearly is; and none that does not hold."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from importlib import resources
from typing import Any

import hypothesis
import polars as pl
import pytest
from hypothesis import strategies as st

from tui_eval.frames.compare import compare
from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.databases import SqlResult
from tui_eval.frames.diagnosis import Finding, codes, diagnose, diagnosis_of, diagnosis_of_details, sentence
from tui_eval.frames.difference import align
from tui_eval.frames.one_table import OneTable
from tui_eval.model import DataDetails

c = pl.col
N = 60
DAY = datetime.datetime(2026, 3, 1, 9, 30)


def scattered(seed: int, most: int, least: int = 0) -> pl.Series:
    """Whole numbers that follow no rule."""
    numbers = random.Random(seed)
    return pl.Series([least + numbers.randrange(most) for _ in range(N)])


SHOP = pl.DataFrame(
    {
        "id": range(1, N + 1),
        "status": [("paid", "open", "returned")[n] for n in scattered(5, 3)],
        "country": [("FR", "NO", "IT", "ES")[n] for n in scattered(11, 4)],
        "price": scattered(3, 9973, 100) / 100,
        "cost": scattered(31, 9949, 100) / 100,
        "share": scattered(13, 97, 1) / 100,
        "waiting_time": scattered(19, 500, 1) / 4,
        "quantity": scattered(23, 40, 1),
        "name": [f"Ünit {n} of Señor O'Neil-{n % 7}" for n in scattered(29, 901)],
        "at": [DAY + datetime.timedelta(minutes=int(n)) for n in scattered(37, 90_001)],
        "bonus": [None if n == 0 else float(n) for n in scattered(41, 4)],
    }
)
HALF = c.id % 2 == 0
JUNK = pl.lit(scattered(43, 9941, 100) / 100 + 0.003)


def some(change: pl.Expr, column: str, rest: pl.Expr | None = None) -> pl.Expr:
    """A change in every second row; in the others another, or none."""
    return pl.when(HALF).then(change).otherwise(c(column) if rest is None else rest).alias(column)


hour, day = pl.duration(hours=1), pl.duration(days=1)

FOUND: dict[str, tuple[pl.DataFrame, str, str]] = {
    "added up": (SHOP.with_columns(c.price.cum_sum()), "running", "price a running total in 59 of 59"),
    "one value": (SHOP.with_columns(price=pl.lit(7.25)), "one_value", "price one value for all rows (7.25) in "),
    "factor": (SHOP.with_columns(c.price * 10), "factor", "price ×10 in 60 of 60 rows that differ"),
    "a factor of no round figure": (SHOP.with_columns(c.price * 0.8372), "factor", "price ×0.8372 in 60 of 60"),
    "a factor, rounded afterwards": (SHOP.with_columns((c.price * 1.2).round(2)), "factor", "price ×1.2 in 60 of 60"),
    "divided": (SHOP.with_columns(c.price / 1000), "factor", "price ÷1,000 in 60 of 60"),
    "two columns alike": (SHOP.with_columns(c.price * 10, c.cost * 10), "factor", "price and cost ×10 in 60 of 60"),
    "most rows": (
        SHOP.with_columns(pl.when(c.id == 7).then(c.price + 3.21).otherwise(c.price * 10).alias("price")),
        "factor",
        "price ×10 in 59 of 60 rows that differ",
    ),
    "half of them": (SHOP.with_columns(some(c.price * 10, "price", JUNK)), "factor", "price ×10 in 30 of 60"),
    "offset": (SHOP.with_columns(c.price - 2.5), "offset", "price 2.5 too low in 60 of 60"),
    "sign": (SHOP.with_columns(some(-c.price, "price")), "sign", "price with the other sign in 30 of 30"),
    "rounded": (SHOP.with_columns(c.price.round(1)), "rounded", "price rounded to 1 decimal in"),
    "rounded to tens": (SHOP.with_columns((c.price / 10).round(0) * 10), "rounded", "price rounded to the nearest 10"),
    "truncated": (SHOP.with_columns(c.price.floor()), "truncated", "price cut off, not rounded, to whole numbers"),
    "rounded up": (SHOP.with_columns(c.price.ceil()), "rounded_up", "price rounded up to whole numbers"),
    "complement": (SHOP.with_columns(share=1 - c.share), "complement", "share 1 minus the expected value in "),
    "percent": (SHOP.with_columns(c.share * 100), "percent", "share ×100 in 60 of 60 rows that differ: percent where"),
    "unit of time": (SHOP.with_columns(c.waiting_time * 1000), "time_unit", "a thousand times smaller"),
    "minutes": (SHOP.with_columns(c.waiting_time / 60), "time_unit", "minutes where seconds are expected"),
    "counted twice": (SHOP.with_columns(c.quantity * 2), "multiplied", "quantity ×2 in 60 of 60"),
    "counted several times": (
        SHOP.with_columns(c.price * (c.id % 3 + 1)),
        "multiplied",
        "price whole multiples (×2 to ×3) in 40 of 40",
    ),
    "0 for null": (SHOP.with_columns(c.bonus.fill_null(0)), "null_as_zero", "bonus 0 instead of null"),
    "another value for null": (SHOP.with_columns(c.bonus.fill_null(7)), "null_filled", "a value instead of null"),
    "0 for a value": (SHOP.with_columns(some(pl.lit(0.0), "price")), "value_as_zero", "price 0 instead of a value"),
    "0 for all values": (SHOP.with_columns(quantity=pl.lit(0)), "value_as_zero", "quantity 0 instead of a value in 60 of 60"),
    "null for a value": (SHOP.with_columns(some(pl.lit(None), "price")), "value_as_null", "null instead of a value"),
    "a word for null": (
        SHOP.with_columns(c.bonus.cast(pl.String).fill_null("N/A")),
        "null_as_text",
        "bonus the text N/A instead of null",
    ),
    "case": (SHOP.with_columns(c.name.str.to_lowercase()), "case", "name in other case in 60 of 60"),
    "blanks": (SHOP.with_columns(c.name.str.replace(" ", "  ")), "blanks", "name with other blanks in 60 of 60"),
    "unseen": (
        SHOP.with_columns(c.name.str.replace(" ", "\u00a0")),
        "unseen",
        "name the same but for U+00A0 NO-BREAK SPACE in the answer in 60 of 60",
    ),
    "accents": (
        SHOP.with_columns(c.name.str.replace_all("Ü", "U").str.replace_all("ñ", "n")),
        "accents",
        "name with other accents in 60 of 60",
    ),
    "composed": (
        SHOP.with_columns(c.name.str.normalize("NFD")),
        "composed",
        "name with the same letters composed otherwise (Unicode normalisation) in 60 of 60",
    ),
    "another form": (
        SHOP.with_columns(c.name.str.replace("O'Neil", "Ｏ'Ｎeil")),
        "other_form",
        "name with other forms of the same characters",
    ),
    "punctuation": (SHOP.with_columns(c.name.str.replace("'", "’")), "punctuation", "name with other punctuation"),
    "spelling": (
        SHOP.with_columns(c.name.str.to_uppercase().str.replace("'", "").str.replace("Ü", "U")),
        "spelling",
        "name with other case, blanks, accents, punctuation or letters that look alike",
    ),
    "cut": (SHOP.with_columns(c.name.str.slice(0, 9)), "cut", "name cut to 9 characters in 60 of 60"),
    "a day": (SHOP.with_columns(c.at - day), "days", "at 1 day earlier in 60 of 60"),
    "a week": (SHOP.with_columns(c.at + 7 * day), "days", "at 7 days later"),
    "a month": (SHOP.with_columns(c.at.dt.offset_by("1mo")), "months", "at 1 month later"),
    "a zone": (SHOP.with_columns(c.at + 2 * hour), "time_zone", "at 2 hours later in 60 of 60 rows"),
    "a zone with summer time": (
        SHOP.with_columns(c.at + pl.when(c.id > 30).then(2 * hour).otherwise(hour)),
        "time_zone",
        "at 1 or 2 hours later in 60 of 60 rows",
    ),
    "half an hour of zone": (SHOP.with_columns(c.at - hour * 5 - pl.duration(minutes=30)), "time_zone", "5.5 hours earlier"),
    "seconds": (SHOP.with_columns(c.at + pl.duration(seconds=7)), "time_shift", "at 7 s later in 60 of 60"),
    "midnight": (SHOP.with_columns(c.at.dt.truncate("1d")), "time_cut", "at cut to the day in 60 of 60"),
    "day and month": (
        SHOP.with_columns(pl.Series("at", [datetime.datetime(2026, n % 11 + 1, 12) for n in range(N)])),
        "day_and_month",
        "at with day and month exchanged",
    ),
    "swapped": (
        SHOP.rename({"price": "cost", "cost": "price"}), "swapped", "price and cost are exchanged in 60 of 60"
    ),
    "renamed": (SHOP.rename({"price": "net", "name": "label"}), "renamed", "price as net, name as label"),
    "in another column": (
        SHOP.with_columns(c.price * 1.07 + c.quantity, c.price.alias("net")), "elsewhere", "in the answer's net"
    ),
    "what another should hold": (
        SHOP.with_columns(c.cost.alias("price")), "other_column", "price has what cost should have in 60 of 60"
    ),
    "the row after": (SHOP.with_columns(c.price.shift(-1)), "neighbour", "the value of the row after it in 59 of 60"),
    "in reverse": (SHOP.with_columns(c.price.reverse()), "reversed", "price stands in reverse order"),
    "sorted": (SHOP.with_columns(c.price.sort()), "permuted", "price has the right values in the wrong rows"),
    "where": (
        SHOP.with_columns(pl.when(c.status == "returned").then(JUNK).otherwise(c.price).alias("price")),
        "condition",
        "rows that differ are those where status = 'returned'",
    ),
    "where two things hold": (
        SHOP.with_columns(
            pl.when((c.status == "returned") & (c.country == "FR")).then(JUNK).otherwise(c.price).alias("price")
        ),
        "condition",
        "where status = 'returned' and country = 'FR'",
    ),
    "from a bound on": (
        SHOP.with_columns(pl.when(c.quantity > 30).then(JUNK).otherwise(c.price).alias("price")),
        "condition",
        "where quantity >= 31",
    ),
    "nearly where": (
        SHOP.with_columns(pl.when((c.country != "NO") & (c.id != 1)).then(JUNK).otherwise(c.price).alias("price")),
        "condition",
        "country <> 'NO', and 1 row there is right",
    ),
    "one column": (SHOP.with_columns(JUNK.alias("price")), "one_column", "only price differs, in 60 of 60"),
    "fan-out": (pl.concat([SHOP, SHOP.head(13)]), "fan_out", "id, unique in expected, repeats 13 times: the same rows again"),
    "fan-out with other values": (
        pl.concat([SHOP, SHOP.head(13).with_columns(c.cost + 1.23)]), "fan_out", "repeats 13 times: a join fans out"
    ),
    "too narrow": (SHOP.filter(c.status != "open"), "too_narrow", "missing rows are where status = 'open'"),
    "limit": (SHOP.head(20), "limit", "the first 20 of 60 expected rows"),
    "a number of rows that is round": (SHOP.sample(50, seed=5), "limit", "exactly 50 of 60 expected rows"),
}  # fmt: skip

EXPECTED: dict[str, pl.DataFrame] = {
    "day and month": SHOP.with_columns(
        pl.Series("at", [datetime.datetime(2026, 12, n % 11 + 1) for n in range(N)])
    )
}

WIDE = {
    "too wide": (SHOP.filter(c.status != "open"), SHOP, "too_wide", "extra rows are where status = 'open'"),
    "no limit": (SHOP.head(10), SHOP, "no_limit", "begins with the 10 expected rows and has 50 more"),
    "groups left out": (
        SHOP.select("id", "status", pl.when(c.id % 4 == 1).then(0).otherwise(c.quantity).alias("orders")),
        SHOP.select("id", "status", c.quantity.alias("orders")).filter(c.id % 4 != 1),
        "missing_groups", "missing rows have orders 0",
    ),
    "duplicates": (
        SHOP.select("status", c.share.round(1)), pl.concat([SHOP.select("status", c.share.round(1))] * 2),
        "duplicates", "60 of 60 extra rows repeat expected ones",
    ),
    "distinct": (
        SHOP.select("status", c.share.round(0)), SHOP.select("status", c.share.round(0)).unique(maintain_order=True),
        "distinct", "missing rows repeat others",
    ),
    "the other end": (
        SHOP.sort("price", descending=True).head(7).select("name", "price"), SHOP.sort("price").head(7).select("name", "price"),
        "other_end", "none of the 7 rows is right: sorted by price ascending, not descending, the answer has the other end",
    ),
    "too fine": (
        SHOP.group_by("status").agg(c.price.sum()), SHOP.group_by("status", "country").agg(c.price.sum()),
        "granularity", "too fine: summed by status",
    ),
    "too coarse": (
        SHOP.group_by("status", "country").agg(c.price.sum(), c.quantity.sum()),
        SHOP.group_by("status").agg(c.price.sum(), c.quantity.sum()),
        "granularity", "too coarse: summed by status, the",
    ),
    "weeks": (
        SHOP.group_by(c.at.dt.truncate("1w")).agg(c.quantity.sum()),
        SHOP.group_by(c.at.dt.truncate("1d")).agg(c.quantity.sum()),
        "granularity", "too fine: summed by week of at",
    ),
    "years of whole numbers": (
        SHOP.group_by((c.id % 3).alias("y"), (c.id % 4).alias("m")).agg(c.price.sum()),
        SHOP.group_by((c.id % 3).alias("y")).agg(c.price.sum()),
        "granularity", "too coarse: summed by y, the 12 expected rows give price of 3 of 3",
    ),
    "one figure in cents": (
        pl.DataFrame({"revenue": [1672.5]}), pl.DataFrame({"revenue": [167250.0]}), "factor", "revenue ×100 in 1 of 1 row that differs"
    ),
    "one figure, rounded": (
        pl.DataFrame({"revenue": [1672.53]}), pl.DataFrame({"revenue": [1672.5]}), "rounded", "to 1 decimal in 1 of 1"
    ),
    "empty for null": (
        pl.DataFrame({"k": ["a", "b", "c"], "v": ["x", None, None]}), pl.DataFrame({"k": ["a", "b", "c"], "v": ["x", "", ""]}),
        "null_as_empty", "v an empty text instead of null in 2 of 2",
    ),
    "null for empty": (
        pl.DataFrame({"k": ["a", "b", "c"], "v": ["x", "", ""]}), pl.DataFrame({"k": ["a", "b", "c"], "v": ["x", None, None]}),
        "empty_as_null", "v null instead of an empty text",
    ),
    "null for 0": (
        pl.DataFrame({"k": ["a", "b", "c"], "v": [5, 0, 0]}), pl.DataFrame({"k": ["a", "b", "c"], "v": [5, None, None]}),
        "zero_as_null", "v null instead of 0 in 2 of 2",
    ),
    "zeros": (
        pl.DataFrame({"k": [1, 2, 3], "v": ["1.50", "007", "2.0"]}), pl.DataFrame({"k": [1, 2, 3], "v": ["1.5", "7", "2"]}),
        "zeros", "v with other leading or trailing zeros in 3 of 3",
    ),
}  # fmt: skip


def found(expected: pl.DataFrame, actual: pl.DataFrame) -> list[Finding]:
    return list(diagnose(expected, actual).findings)


@pytest.mark.parametrize("name", [*FOUND, *WIDE])
def test_it_is_found_where_it_is(name: str) -> None:
    if name in WIDE:
        expected, actual, code, words = WIDE[name]
    else:
        actual, code, words = FOUND[name]
        expected = EXPECTED.get(name, SHOP)
    findings = found(expected, actual)
    lines = [str(finding) for finding in findings]
    assert code in [finding.code for finding in findings], lines
    assert any(words in line for line in lines), lines
    assert len(findings) <= 3


JUNK_INT = pl.lit(scattered(61, 400))
SHUFFLED = pl.lit(scattered(67, 59))
NOT_FOUND: dict[str, tuple[pl.DataFrame, str]] = {
    "a factor in too few rows": (
        SHOP.with_columns(pl.when(c.id % 10 == 0).then(c.price * 10).otherwise(JUNK).alias("price")), "factor"
    ),
    "a factor that varies": (SHOP.with_columns(c.price * (1.1 + c.id / 1000)), "factor"),
    "an offset that varies": (SHOP.with_columns(c.price + c.id / 97), "offset"),
    "a sign beside other values": (
        SHOP.with_columns(pl.when(c.id % 10 == 0).then(-c.price).otherwise(JUNK).alias("price")), "sign"
    ),
    "no rounding of what is all 0": (SHOP.with_columns(price=pl.lit(0.0)), "rounded"),
    "nearly rounded": (SHOP.with_columns(c.price.round(0) + c.id % 3 + 2), "rounded"),
    "whole, not truncated": (SHOP.with_columns(c.price.floor() - c.id % 3 - 1), "truncated"),
    "a hundred of no share": (SHOP.with_columns(c.price * 100), "percent"),
    "a thousand of no time": (SHOP.with_columns(c.price * 1000), "time_unit"),
    "multiples of small numbers": (SHOP.with_columns(c.quantity % 2 + 1, c.id).with_columns(c.quantity * (c.id % 4 + 2)), "multiplied"),
    "null for any value is no null for 0": (SHOP.with_columns(some(pl.lit(None), "quantity")), "zero_as_null"),
    "other words in other case": (SHOP.with_columns(c.name.reverse().str.to_uppercase()), "case"),
    "other words without blanks": (SHOP.with_columns(c.name.reverse().str.replace_all(" ", "")), "blanks"),
    "other words without accents": (SHOP.with_columns(c.name.reverse().str.replace("Ü", "U")), "accents"),
    "the beginning of another": (SHOP.with_columns(c.name.reverse().str.slice(5, 9)), "cut"),
    "days that vary": (SHOP.with_columns(c.at + day * (c.id % 7 + 1)), "days"),
    "hours that vary": (SHOP.with_columns(c.at + hour * (c.id % 7 + 1) + pl.duration(minutes=c.id)), "time_zone"),
    "another midnight": (SHOP.with_columns(c.at.dt.truncate("1d") + day * (c.id % 5 + 1)), "time_cut"),
    "one of the two exchanged": (SHOP.with_columns(c.cost.alias("price"), JUNK.alias("cost")), "swapped"),
    "another name and other values": (SHOP.with_columns(JUNK.alias("price")).rename({"price": "net"}), "renamed"),
    "no better column": (SHOP.with_columns(JUNK.alias("price"), (JUNK + 1).alias("net")), "elsewhere"),
    "what no column should hold": (SHOP.with_columns(JUNK.alias("price")), "other_column"),
    "neighbours here and there": (
        SHOP.with_columns(pl.when(c.id % 3 == 0).then(c.price.shift(1)).otherwise(JUNK).alias("price")), "neighbour"
    ),
    "not the same values": (SHOP.with_columns(c.price.sort() + c.id / 50), "permuted"),
    "no condition": (SHOP.with_columns(pl.when(SHUFFLED % 4 == 0).then(JUNK).otherwise(c.price).alias("price")), "condition"),
    "two rows": (SHOP.with_columns(pl.when(c.id.is_in([4, 44])).then(JUNK).otherwise(c.price).alias("price")), "condition"),
    "two columns": (SHOP.with_columns(JUNK.alias("price"), JUNK_INT.alias("quantity")), "one_column"),
    "other keys": (pl.concat([SHOP, SHOP.head(13).with_columns(c.id + 100)]), "fan_out"),
    "any rows missing": (SHOP.filter(SHUFFLED % 5 != 0), "too_narrow"),
    "rows from everywhere": (SHOP.filter(SHUFFLED % 5 != 0), "limit"),
    "the first of few rows": (SHOP.head(59), "limit"),
    "any rows too many": (pl.concat([SHOP, SHOP.sample(9, seed=3).with_columns(c.id + 100)]), "no_limit"),
    "fewer rows that are no sums": (
        SHOP.group_by("status", maintain_order=True).agg(c.price.mean(), c.cost.mean(), c.share.mean()), "granularity"
    ),
    "order where it does not count": (SHOP.reverse(), "order"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_FOUND)
def test_it_is_not_found_where_it_is_not(name: str) -> None:
    actual, code = NOT_FOUND[name]
    findings = found(SHOP, actual)
    assert code not in [finding.code for finding in findings], [str(finding) for finding in findings]


GUESSES = {
    "multiplied": ("", ""),
    "fan_out": ("", ""),
    "duplicates": (": DISTINCT is missing", ""),
    "distinct": (": DISTINCT or UNION took them away", ""),
    "zero_as_one": ("", ""),
    "missing_groups": (": groups without rows are left out", ""),
    "too_narrow": (": the filter is too narrow", ""),
    "too_wide": (": the filter is too wide", ""),
    "outermost_day": (": < for <= in the filter?", ""),
    "limit": (": a LIMIT?", ""),
    "no_limit": (": its LIMIT is missing or larger", ""),
}
"""What is left of the guess where the agent's query joins nothing, and where it gives the right rows."""


@pytest.mark.parametrize("code", GUESSES)
def test_no_guess_is_made_that_the_agents_query_refutes(code: str) -> None:
    measured = {
        "least": 2, "most": 2, "alike": False, "where": "status open", "first": True, "rows": 10, "of": 99,
        "last": True, "day": "2024-01-20",
    }  # fmt: skip
    unknown = Finding(code, ("day",), 3, 3, measured)
    fact = str(replace(unknown, own="right"))
    left, nothing = GUESSES[code]
    assert str(replace(unknown, own="joinless")) == fact + left and not nothing
    assert str(unknown).startswith(f"{fact}: ") and not fact.endswith(("?", ":"))


def test_what_is_known_of_the_query_is_known_to_every_finding() -> None:
    difference = align(SHOP, SHOP.with_columns(c.price * 2))
    assert "as a join does?" in str(diagnosis_of(difference).findings[0])
    difference.own_query = "joinless"
    assert str(diagnosis_of(difference).findings[0]).endswith("rows that differ")


OWN_TESTS = {"averages", "opposite", "shares", "of_group", "group_shares", "ranked", "totals", "pivoted",
    "zone_named", "time_text", "lost_digits", "significant", "order", "kind", "unit", "elements", "date_format", "day_border", "weekday", "zero_as_one", "outermost_day",
    "rounded_down", "not_rounded", "not_cut",
}  # fmt: skip


def test_every_kind_of_finding_is_tried() -> None:
    """Those of `OWN_TESTS` have tests of their own."""
    tried = {code for _, code, _ in FOUND.values()} | {code for _, _, code, _ in WIDE.values()}
    assert tried | OWN_TESTS == set(codes())


PHRASES = {
    "weekday": "on Sundays where Mondays are expected …: weeks that begin on another day?",
    "day_border": "partly on the next day …: days of another time zone?",
    "unit": "with %, a text instead of a number",
    "elements": "with the same elements in another order",
    "date_format": "written as MM/DD/YYYY",
    "zero_as_one": "1 instead of 0 …: does count(*) count rows that an outer join adds?",
    "outermost_day": "the last day, 2024-01-20, is missing: < for <= in the filter?",
    "significant": "rounded to 3 significant digits",
    "lost_digits": "read as a float, digits beyond 2^53 are lost",
    "time_text": "the same times written otherwise …: text is compared as it is",
    "factor": "amount ×100",
    "complement": "100 minus the expected value …: the share of the rest",
    "shares": "amounts where their shares of all are expected",
    "percent": "percent where a share is expected",
    "time_unit": "hours where days are expected",
    "multiplied": "×2 …: the same rows counted several times",
    "averages": "sums where averages are expected",
    "offset": "2.5 too low",
    "sign": "with the other sign",
    "opposite": "the opposite",
    "one_value": "one value for all rows (60.55, the sum of all)",
    "running": "a running total",
    "of_group": "the sum of all with the same shop",
    "group_shares": "shares of all, not shares of all with the same region",
    "ranked": "ranked without gaps after ties (DENSE_RANK), not with them (RANK)",
    "pivoted": "the answer has north and south as columns, expected as rows (the values of region)",
    "totals": "all 6 extra rows are sums of others, in n: a ROLLUP, or a row for the total?",
    "rounded": "rounded to 1 decimal",
    "not_rounded": "not rounded to 2 decimals",
    "truncated": "cut off, not rounded, to whole numbers",
    "rounded_up": "rounded up to whole numbers",
    "rounded_down": "rounded down to whole numbers",
    "kind": "a text instead of a boolean",
    "null_as_zero": "0 instead of null",
    "null_as_empty": "an empty text instead of null",
    "null_as_text": "the text N/A instead of null",
    "null_filled": "a value instead of null",
    "zero_as_null": "null instead of 0",
    "empty_as_null": "null instead of an empty text",
    "value_as_null": "null instead of a value",
    "value_as_zero": "0 instead of a value",
    "case": "in other case",
    "unseen": "the same but for U+200B ZERO WIDTH SPACE in the answer",
    "blanks": "with other blanks",
    "composed": "with the same letters composed otherwise (Unicode normalisation)",
    "other_form": "with other forms of the same characters (as ﬁ for fi)",
    "accents": "with other accents",
    "zeros": "with other leading or trailing zeros",
    "punctuation": "with other punctuation",
    "spelling": "with other case, blanks, accents, punctuation or letters that look alike",
    "cut": "cut to 9 characters",
    "days": "1 day later",
    "months": "1 month later",
    "time_zone": "2 hours later …: another time zone",
    "time_shift": "7 s later",
    "time_cut": "cut to the month",
    "not_cut": "not cut to the day",
    "day_and_month": "with day and month exchanged",
    "zone_named": "the same time, but only one side names its zone",
    "swapped": "price and cost are exchanged",
    "other_column": "price has what cost should have",
    "elsewhere": "differs, the expected values are in the answer's net",
    "renamed": "the answer has revenue as total",
    "neighbour": "has the value of the row before it",
    "reversed": "stands in reverse order",
    "permuted": "has the right values in the wrong rows",
    "condition": "rows that differ are those where status = 'returned'",
    "one_column": "only amount differs",
    "order": "the same rows in another order",
    "fan_out": "order_id, unique in expected, repeats 13 times: a join fans out",
    "duplicates": "extra rows repeat expected ones: DISTINCT is missing",
    "distinct": "missing rows repeat others: DISTINCT or UNION took them away",
    "too_narrow": "missing rows are where …: the filter is too narrow",
    "too_wide": "extra rows are where …: the filter is too wide",
    "missing_groups": "groups without rows are left out",
    "limit": "expected rows and ends there: a LIMIT?",
    "no_limit": "the answer begins with the 5 expected rows and has 94 more",
    "other_end": "rows is right: sorted by revenue ascending, not descending, the answer has the other end",
    "granularity": "too fine: summed by month",
}
"""How the help page quotes the line of each kind; `…` stands for what lies between."""
VALUES = {
    "characters": "U+200B ZERO WIDTH SPACE in the answer",
    "factor": 100.0, "unit": "hours where days are expected", "least": 2, "most": 2, "offset": -2.5, "digits": 0,
    "text": "N/A", "length": 9, "days": 1, "months": 1, "hours": [2.0], "seconds": 7.0, "with": "cost", "holds": "cost",
    "name": "net", "names": ("total",), "step": -1, "where": "status = 'returned'", "wrong": 0, "of": 99, "exact": True,
    "descending": True, "given": "a text", "wanted": "a boolean", "alike": False, "rows": 10, "first": True, "finer": True, "by": ("at",), "grouped": (), "format": "MM/DD/YYYY", "last": True, "later": True, "day": "2024-01-20", "whole": 100,
}  # fmt: skip
ODD: dict[str, dict[str, Any]] = {
    "rounded": {"digits": 1},
    "not_rounded": {"digits": 2},
    "significant": {"digits": 3},
    "time_cut": {"unit": "month"},
    "not_cut": {"unit": "day"},
    "unit": {"unit": "%"},
    "shares": {"wanted": True},
    "averages": {"given": False},
    "of_group": {"figure": "sum", "by": "shop", "given": True},
    "group_shares": {"by": "region", "wanted": True},
    "ranked": {"how": "dense", "by": ""},
    "totals": {"extra": True},
    "pivoted": {"name": "region", "wide": True},
    "granularity": {"unit": "month"},
    "weekday": {"given": 6, "wanted": 0},
    "no_limit": {"rows": 5},
    "one_value": {"value": "60.55", "sum": True},
    "running": {"added": True, "by": ""},
}
COLUMNS = {
    "opposite": ("active",),
    "one_value": ("total",),
    "fan_out": ("order_id",),
    "factor": ("amount",),
    "one_column": ("amount",),
    "outermost_day": ("day",),
    "renamed": ("revenue",),
    "other_end": ("revenue",),
    "totals": ("n",),
    "pivoted": ("north", "south"),
    "swapped": ("price", "cost"),
}
COUNTS = {"fan_out": 13, "no_limit": 94, "totals": 6}


def test_the_help_page_says_what_every_kind_of_line_means() -> None:
    page = resources.files("tui_eval.help").joinpath("comparison.md").read_text(encoding="utf-8")
    quoted = [
        line.rpartition("|")[0].rpartition("|")[0] for line in page.splitlines() if line.startswith("| `")
    ]
    assert set(PHRASES) == set(codes())
    for code, phrase in PHRASES.items():
        assert any(phrase in line for line in quoted), phrase
        count = COUNTS.get(code, 10)
        line = str(
            Finding(code, COLUMNS.get(code, ("price",)), count, count, {**VALUES, **ODD.get(code, {})})
        )
        at = 0
        for part in phrase.split(" …"):
            assert part in line[at:], (phrase, line)
            at = line.index(part, at) + len(part)


def test_a_time_whose_zone_is_named_on_one_side() -> None:
    expected = [{"k": n, "at": f"2026-03-0{n}T10:00:00"} for n in range(1, 4)]
    actual = [{"k": n, "at": f"2026-03-0{n}T10:00:00Z"} for n in range(1, 4)]
    assert diagnose(expected, actual).lines == [
        "at the same time, but only one side names its zone in 3 of 3 rows that differ"
    ]


@pytest.mark.parametrize(
    ("expected", "actual", "line"),
    [
        ("10:00:00.123456789", "10:00:00.123456", "at cut to the microsecond in 3 of 3 rows that differ"),
        ("10:00:00.123456789", "10:00:00.123456792", "at 3 ns later in 3 of 3 rows that differ"),
        ("10:00:00.0000009", "10:00:00", "at cut to the microsecond in 3 of 3 rows that differ"),
        ("10:00:00.000000999", "10:00:00.000001001", "at 2 ns later in 3 of 3 rows that differ"),
        ("10:00:00.0000015", "10:00:00.0000005", "at 1 µs earlier in 3 of 3 rows that differ"),
    ],
)
def test_times_that_are_nanoseconds_apart_are_not_the_same_time(
    expected: str, actual: str, line: str
) -> None:
    sides = [[{"k": n, "at": f"2026-03-0{n}T{text}"} for n in range(1, 4)] for text in (expected, actual)]
    assert diagnose(*sides).lines == [line]
    zoned = [{**row, "at": row["at"] + "Z"} for row in sides[1]]
    assert not any("names its zone" in line for line in diagnose(sides[0], zoned).lines)


def test_a_time_with_zeros_behind_it_has_no_other_zone() -> None:
    expected = pl.DataFrame([{"k": n, "at": f"2026-03-0{n}T10:00:00"} for n in range(1, 4)])  # texts
    actual = [{"k": n, "at": f"2026-03-0{n}T10:00:00.000"} for n in range(1, 4)]
    result = diagnose(expected, actual)
    assert result.wrong == 3
    assert not any("zone" in line for line in result.lines)


@pytest.mark.parametrize(
    "given",
    [[[1], [2], [3]], [{"a": 1}, {"a": 2}, {"a": 3}], [True, False, True], [DAY.date()] * 3],
    ids=["lists", "objects", "booleans", "dates"],
)
def test_what_is_no_number_is_no_null(given: list[Any]) -> None:
    expected = pl.DataFrame({"k": ["a", "b", "c"], "n": [1, 2, 3]})
    said = diagnose(expected, pl.DataFrame({"k": ["a", "b", "c"], "n": given})).lines
    assert not any("null" in line for line in said), said
    nothing = pl.DataFrame({"k": ["a", "b", "c"], "n": pl.Series([None] * 3, dtype=pl.Int64)})
    assert diagnose(expected, nothing).lines[0].startswith("n null instead of a value in 3 of 3")


def test_lists_beside_nulls_leave_the_nulls_named() -> None:
    expected = pl.DataFrame({"k": list("abcd"), "n": [1, 2, 3, 4]})
    given = pl.DataFrame({"k": list("abcd"), "n": [None, [2], None, None]})
    assert diagnose(expected, given).lines[0].startswith("n null instead of a value in 3 of 4")


def test_infinity_in_the_place_of_whole_numbers_is_no_amount_too_high() -> None:
    expected = [{"k": n, "x": n * n} for n in range(1, 5)]
    infinite = [{"k": n, "x": float("inf")} for n in range(1, 5)]
    assert not any("too high" in line for line in diagnose(expected, infinite).lines)
    more = [{"k": n, "x": n * n + 0.0625} for n in range(1, 5)]
    assert diagnose(expected, more).lines[0].startswith("x 0.0625 too high in 4 of 4")


def test_the_strongest_finding_stands_first() -> None:
    actual = SHOP.with_columns(c.price * 10, pl.when(c.status == "paid").then("quantity").alias("quantity"))
    actual = actual.filter(c.country != "NO")
    result = diagnose(SHOP, actual)
    assert [finding.code for finding in result.findings] == ["factor", "value_as_null", "too_narrow"]
    assert (result.key, result.wrong, result.extra) == (("id",), len(actual), 0)
    assert result.missing == len(SHOP) - len(actual)


def test_a_key_given_goes_before_that_of_the_settings() -> None:
    settings = ComparisonSettings(key=("status",))
    assert diagnose(SHOP, SHOP, settings, key=("id",)).key == ("id",)
    assert diagnose(SHOP, SHOP, settings).key == ("status",)


@pytest.mark.parametrize("actual", [None, [], pl.DataFrame({"other": [1, 2]})])
def test_an_answer_without_rows_or_columns_has_no_diagnosis(actual: Any) -> None:
    assert diagnose(SHOP, actual).findings == ()
    assert diagnose(SHOP.head(0), SHOP).findings == ()


def test_names_and_values_of_any_length_stand_on_one_line() -> None:
    name = "a\nname " * 40
    frame = SHOP.rename({"price": name}).with_columns(c.status + "\n" + "x" * 500)
    actual = frame.with_columns(
        pl.when(c.status.str.starts_with("open")).then(c(name) * 10).otherwise(c(name)).alias(name)
    )
    lines = diagnose(frame, actual).lines
    assert len(lines) == 2 and all("\n" not in line and len(line) < 200 for line in lines)


def test_figures_are_written_as_people_write_them() -> None:
    def line(factor: float) -> str:
        return sentence(Finding("factor", ("x",), 1, 1, {"factor": factor})).split(" in ")[0]

    assert [line(f) for f in (1000.0, 0.01, 1.19, 1 / 3, -100.0, 0.8372)] == [
        "x ×1,000", "x ÷100", "x ×1.19", "x ÷3", "x ×-100", "x ×0.8372",
    ]  # fmt: skip


# -- of a recorded attempt


def details(**settings: Any) -> DataDetails:
    expected = SHOP.select("id", "price").to_dicts()
    actual = [dict(row, price=row["price"] * 10) for row in expected]
    return DataDetails(expected=expected, actual=actual, columns=["id", "price"], settings=settings)


def test_rows_that_were_recorded_have_the_diagnosis_of_their_comparison() -> None:
    assert diagnosis_of_details(details()).lines == ["price ×10 in 60 of 60 rows that differ"]
    assert diagnosis_of_details(details(rtol=20.0)).findings == ()
    assert diagnosis_of_details(DataDetails()).findings == ()


def test_rows_that_are_not_all_at_hand_have_none_but_from_the_whole_frames() -> None:
    cut = details(truncated={"expected": 5000, "actual": 60})
    assert diagnosis_of_details(cut).findings == ()
    assert diagnosis_of_details(cut, lambda side: None).findings == ()
    whole = pl.concat([SHOP.select("id", "price")] * 2).with_columns(pl.int_range(pl.len()).alias("id"))
    found = diagnosis_of_details(cut, {"expected": whole}.get)
    assert (found.missing, found.wrong) == (60, 60)


def test_rows_of_any_kind_raise_nothing() -> None:
    odd: Any = [{"id": 1, "x": {"a": [1]}}, {"id": 2, "x": "\ud800"}, {"id": None, "x": 10**400}]
    found = diagnosis_of_details(
        DataDetails(expected=odd, actual=[*odd[1:], {"y": float("nan")}], columns=["id", "x"])
    )
    assert all(0 < finding.explained <= finding.total for finding in found.findings)
    broken: Any = [7, None]
    assert diagnosis_of_details(DataDetails(expected=broken, actual=broken)).findings == ()


# -- no finding that does not hold


def _close(left: float, right: float, room: float = 0.0) -> bool:
    return math.isclose(left, right, rel_tol=1e-8, abs_tol=1e-9 + room)


def _holds(finding: Finding, e: Any, a: Any) -> bool:
    """Whether what is said of a column holds for one pair of its values, by other means than the diagnosis."""
    p, code = finding.parameters, finding.code
    if code in ("null_as_zero", "null_filled"):
        return e is None and a is not None and (a == 0) == (code == "null_as_zero")
    if code in ("zero_as_null", "value_as_null"):
        return a is None and e is not None and (e == 0) == (code == "zero_as_null")
    if e is None or a is None:
        return False
    if code == "value_as_zero":
        return a == 0 and e != 0
    if code in ("factor", "percent", "time_unit"):
        return _close(a, e * p["factor"], 0.51 if a == round(a) else 0.0051)
    if code == "offset":
        return _close(a, e + p["offset"])
    if code == "sign":
        return _close(a, -e)
    if code == "multiplied":
        return _close(a / e, round(a / e)) and p["least"] <= round(a / e) <= p["most"]
    step = 10.0 ** -p["digits"] if "digits" in p else 1.0
    if code in ("rounded", "truncated", "rounded_up", "rounded_down"):
        return _close(a / step, round(a / step), 1e-5) and abs(a - e) <= step * (
            0.5000001 if code == "rounded" else 1
        )
    if code == "case":
        return e.lower() == a.lower()
    if code == "blanks":
        return e.replace(" ", "") == a.replace(" ", "")
    return True


_VALUES = st.none() | st.integers(-40, 40) | st.floats(-50, 50).map(lambda value: round(value, 2))
_TEXTS = st.sampled_from(["paid", "Paid", "open", "op en", "x", "", "returned"])
_LINES = st.lists(
    st.tuples(_VALUES, _VALUES, _TEXTS, _TEXTS, st.booleans(), st.integers(0, 9)), min_size=1, max_size=40
)
_PLANTS: list[Any] = [
    lambda value: value,
    lambda value: value * 100,
    lambda value: -value,
    lambda value: value + 3,
    lambda value: round(value, 0),
    lambda value: 0 if value is None else value,
]


@pytest.mark.real
@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(_LINES, st.sampled_from(_PLANTS), st.integers(0, 10))
def test_random_frames_give_no_finding_that_does_not_hold(
    lines: list[tuple[Any, Any, str, str, bool, int]], plant: Any, rows: int
) -> None:
    expected = [{"id": n, "x": float(x) if x is not None else None, "t": t, "f": f, "g": g}
                for n, (x, _, t, _, f, g) in enumerate(lines)]  # fmt: skip
    actual = []
    for row, (_, other, _, text, _, g) in zip(expected, lines, strict=True):
        planted = row["x"] if row["x"] is None else plant(row["x"])
        actual.append(dict(row, x=planted if g < rows else other, t=text if g > rows else row["t"]))
    types = {"x": "DOUBLE"}
    difference = align(expected, actual, types=types, columns=["id", "x", "t", "f", "g"])
    result = diagnose(expected, actual, types=types, columns=["id", "x", "t", "f", "g"])
    same = difference.same_cells()
    e_rows, a_rows = difference.aligned()
    for finding in result.findings:
        assert 0 < finding.explained <= finding.total
        if (
            finding.code in ("condition", "one_column", "permuted", "neighbour", "reversed")
            or not finding.columns
        ):
            continue
        if finding.code in (
            "cut",
            "spelling",
            "punctuation",
            "accents",
            "zeros",
            "null_as_text",
            "null_as_empty",
        ):
            continue
        name = finding.columns[0]
        if name not in ("x", "t") or len(finding.columns) > 1:
            continue
        wrong = [i for i, fine in enumerate(same.get_column(name)) if not fine]
        pairs = [(expected[e_rows[i]][name], actual[a_rows[i]][name]) for i in wrong
                 if e_rows[i] is not None and a_rows[i] is not None]  # fmt: skip
        assert len(pairs) == finding.total
        assert sum(_holds(finding, e, a) for e, a in pairs) >= finding.explained, (str(finding), pairs)


_CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(),
    st.sampled_from([10**40, -(10**30), 2**63, Decimal("1.10"), Decimal("NaN"), Decimal("1e30")]),
    st.sampled_from(["", "a", "A ", "\ud800", "2024-01-01", "2024-01-01T10:00:00Z", "01", "1.0", "null"]),
    st.sampled_from(
        [datetime.date(2020, 1, 1), datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23)]
    ),
    st.sampled_from([[1], {"a": 1}]),
)
_ANY = st.lists(st.dictionaries(st.sampled_from("abcd"), _CELLS, max_size=4), max_size=8)


@pytest.mark.real
@hypothesis.settings(deadline=None, max_examples=50)
@hypothesis.given(_ANY, _ANY, st.booleans())
def test_cells_of_any_kind_raise_nothing(expected: list[Any], actual: list[Any], ordered: bool) -> None:
    for other in (actual, expected[::-1], expected[:3] + actual[:2]):
        for finding in diagnose(expected, other, ComparisonSettings(ordered=ordered)).findings:
            assert 0 < finding.explained <= finding.total and "\n" not in str(finding)


def test_columns_that_changed_alike_in_rows_of_their_own_are_two_findings() -> None:
    left = pl.when(HALF).then(c.price * 10).otherwise(JUNK).alias("price")
    right = pl.when(HALF).then(JUNK).otherwise(c.cost * 10).alias("cost")
    lines = diagnose(SHOP, SHOP.with_columns(left, right)).lines
    assert "price ×10 in 30 of 60 rows that differ" in lines
    assert "cost ×10 in 30 of 60 rows that differ" in lines


@pytest.mark.real
@hypothesis.settings(deadline=None, max_examples=50)
@hypothesis.given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.booleans()), min_size=4, max_size=60)
)
def test_a_condition_holds_in_the_rows_that_it_names(lines: list[tuple[str, int, bool]]) -> None:
    expected = pl.DataFrame(
        [{"id": n, "s": s, "q": q, "x": float(n)} for n, (s, q, _) in enumerate(lines)],
        schema={"id": pl.Int64, "s": pl.String, "q": pl.Int64, "x": pl.Float64},
    )
    chosen = pl.Series([wrong or s == "a" for s, _, wrong in lines])
    actual = expected.with_columns(
        pl.when(chosen).then(c.x * c.x / 7 + 1000.3 + c.q).otherwise(c.x).alias("x")
    )
    for finding in diagnose(expected, actual).findings:
        if finding.code != "condition":
            continue
        holds = pl.SQLContext({"f": expected}).execute(
            f"select id from f where {finding.parameters['where']}", eager=True
        )
        wrong = set(chosen.arg_true().to_list())
        there = set(holds.get_column("id").to_list())
        assert len(wrong & there) == finding.explained and len(there - wrong) == finding.parameters["wrong"]
        assert finding.total == len(wrong)


def test_a_measure_that_is_unique_by_chance_is_no_join_that_fans_out() -> None:
    """As many rows as expected: one number became another one's, nothing was joined."""
    expected = pl.DataFrame({"status": list("aabbc"), "n": [3, 9, 4, 8, 6]})
    found = diagnose(expected, expected.with_columns(n=pl.Series([3, 9, 4, 9, 6])))
    assert "fan_out" not in [finding.code for finding in found.findings], found.lines
    more = diagnose(expected, pl.concat([expected, pl.DataFrame({"status": ["d"], "n": [9]})]))
    assert more.lines == ["n, unique in expected, repeats once: a join fans out"]


@pytest.mark.real
def test_without_a_key_no_column_is_called_right_but_in_the_wrong_rows() -> None:
    """Quantities were changed at random; rows aligned by content pair some of them so that n differs."""
    numbers = random.Random(286)
    expected = pl.DataFrame(
        {
            "status": [numbers.choice("abc") for _ in range(200)],
            "n": [numbers.randrange(100) for _ in range(200)],
            "quantity": [numbers.randrange(1, 8) for _ in range(200)],
        }
    )
    for seed in range(20):
        numbers = random.Random(seed)
        changed = [numbers.randrange(1, 8) if numbers.random() < 0.6 else n for n in expected["quantity"]]
        found = diagnose(expected, expected.with_columns(quantity=pl.Series(changed)))
        assert not found.key
        assert "permuted" not in [finding.code for finding in found.findings], found.lines


def counted(
    limited: tuple[bool | None, bool | None] = (None, None), **sides: list[dict[str, Any]]
) -> list[str]:
    difference = align(sides["expected"], sides["actual"])
    difference.limited = limited
    return diagnosis_of(difference).lines


@pytest.mark.parametrize("rows", [21, 24, 25])
def test_groups_without_rows_are_no_limit_however_round_their_number_is(rows: int) -> None:
    """A left join has 30 rows, an inner join those with orders, which come first."""
    expected = [{"customer_id": n, "orders": 1 + n * 7 % 5 if n <= rows else 0} for n in range(1, 31)]
    lines = counted(expected=expected, actual=expected[:rows])
    assert "groups without rows are left out (an inner join?)" in lines[0] and "LIMIT" not in " ".join(lines)


def test_a_limit_that_ends_among_zeros_is_one() -> None:
    expected = [{"customer_id": n, "orders": 1 + n * 7 % 5 if n <= 22 else 0} for n in range(1, 31)]
    assert "a LIMIT?" in counted(expected=expected, actual=expected[:24])[0]


def test_a_limit_is_only_missed_where_the_queries_may_have_one() -> None:
    rows: list[dict[str, Any]] = [{"status": f"s{n}", "orders": n * 37 % 101} for n in range(6)]
    assert "its LIMIT is missing" in counted(expected=rows[:4], actual=rows)[0]
    assert "its LIMIT is missing" in counted((True, None), expected=rows[:4], actual=rows)[0]
    assert not counted((False, True), expected=rows[:4], actual=rows)
    many: list[dict[str, Any]] = [{"order_id": n * 37 % 101, "x": n * 53 % 103} for n in range(60)]
    assert counted((None, True), expected=many, actual=many[:20])[0].endswith("ends there: a LIMIT?")
    assert counted((None, False), expected=many, actual=many[:20])[0].endswith("expected rows and ends there")


def test_rows_none_of_which_is_right_are_not_called_the_first_ones() -> None:
    """Without a key they were put beside the first ones because one column of theirs is the same."""
    expected = [{"state": "abc"[n % 3], "n": 34 + n} for n in range(8)]
    actual = [{"state": one, "n": 200 + n} for n, one in enumerate("abc")]
    assert not any("LIMIT" in line for line in counted(expected=expected, actual=actual))
    assert "the first 3 of 8" in counted(expected=expected, actual=expected[:3])[0]
    assert not any("LIMIT" in line for line in counted(expected=actual, actual=expected))


def test_rows_that_lack_a_column_are_not_said_to_repeat() -> None:
    """A pivot: doctors over states where each doctor and each state is a row."""
    expected = [{"did": n // 3, "state": "abc"[n % 3], "n": 30 + n} for n in range(18)]
    wide = [{"did": n, "a": 1, "b": 2, "c": 3} for n in range(6)]
    assert [line.partition(",")[0] for line in counted(expected=expected, actual=wide)] == [
        'the answer has "a"'
    ]
    unnamed = [{"did": row["did"], "one": 1, "two": 2, "three": 3} for row in wide]
    assert counted(expected=expected, actual=unnamed) == []
    twice = [{"a": n % 4} for n in range(11)]
    assert "DISTINCT is missing" in counted(expected=twice, actual=twice * 2)[0]


def test_a_condition_that_holds_exactly_is_said_before_a_limit() -> None:
    """The rows of one country come last; they are sorted by nothing else, and not by country."""
    countries = [("FR", "IT", "FR", "NO", "IT")[n % 5] for n in range(20)] + ["ES"] * 6
    rows: list[dict[str, Any]] = [{"id": n * 37 % 101, "country": c} for n, c in enumerate(countries)]
    assert counted(expected=rows, actual=rows[:20])[0].startswith(
        "all 6 missing rows are where country = 'ES'"
    )


@pytest.mark.parametrize(
    ("expected", "given", "line"),
    [
        (True, "true", "active a text instead of a boolean in 30 of 30 rows that differ"),
        (True, "True", "active a text instead of a boolean in 30 of 30 rows that differ"),
        (True, 1, "active a number instead of a boolean in 30 of 30 rows that differ"),
        ("true", True, "active a boolean instead of a text in 30 of 30 rows that differ"),
    ],
)
def test_a_boolean_in_another_kind_is_called_that(expected: Any, given: Any, line: str) -> None:
    other = {bool: False, str: "false", int: 0}
    rows = [{"id": n, "active": expected if n % 3 else other[type(expected)]} for n in range(30)]
    held = [{"id": n, "active": given if n % 3 else other[type(given)]} for n in range(30)]
    assert diagnose(rows, held).lines[0] == line
    swapped = [{"id": n, "active": other[type(given)] if n % 3 else given} for n in range(30)]
    assert "instead of" not in " ".join(diagnose(rows, swapped).lines)


@pytest.mark.parametrize(
    ("wanted", "given"),
    [("2024-01-05", "2024-01-05T00:00:00"), ("2024-01-05 11:30:00", "2024-01-05T11:30:00")],
)
def test_texts_that_are_times_are_called_texts_that_are_compared_as_they_are(wanted: str, given: str) -> None:
    difference = align(
        [{"k": 1, "d": wanted}], [{"k": 1, "d": given}], types={"k": "INTEGER", "d": "VARCHAR"}
    )
    assert diagnosis_of(difference).lines == [
        "d, text, has the same times written otherwise in 1 of 1 row that differs: text is compared as it is"
    ]
    table = OneTable(difference)
    assert (table.columns[1].kind, table.columns[1].given) == ("text", "")
    cell = table.row(0).cells[1]
    assert cell.text == f"{wanted}→{given}"
    assert cell.why == "the same time written otherwise: text is compared as it is"
    dates = align([{"k": 1, "d": wanted}], [{"k": 1, "d": given}], types={"k": "INTEGER", "d": "TIMESTAMP"})
    assert not len(dates.different_rows)


@pytest.mark.parametrize("base", [2**53 - 1, 2**70, -(2**60)])
def test_ids_that_floats_do_not_hold_are_no_rows_of_a_join(base: int) -> None:
    ids = [base + n for n in range(12)]
    words = "read as a float, digits beyond 2^53 are lost"
    for key in (True, False):
        rows = [{"id": one} if key else {"k": n, "id": one} for n, one in enumerate(ids)]
        given = [row | {"id": float(row["id"])} for row in rows]
        found = diagnose(rows, given)
        assert found.lines[0].startswith(f"id {words} in "), found.lines
        assert found.findings[0].code == "lost_digits" and len(found.findings) == 1
        off = diagnose(rows, [row | {"id": row["id"] + 3e5} for row in given])
        assert words not in " ".join(off.lines)
    assert words not in " ".join(diagnose([{"id": 7}, {"id": 8}], [{"id": 7.0}, {"id": 7.0}]).lines)


@pytest.mark.parametrize(
    "written", [lambda n: int(float(n)), lambda n: str(int(float(n))), lambda n: int(Decimal(repr(float(n))))]
)
@pytest.mark.parametrize("as_text", [False, True])
def test_lost_digits_are_seen_however_a_number_is_written(written: Any, as_text: bool) -> None:
    ids = [1_234_567_890_123_456_789 + 37 * n for n in range(6)]
    rows = [{"k": n, "id": str(one) if as_text else one} for n, one in enumerate(ids)]
    given = [{"k": n, "id": written(one)} for n, one in enumerate(ids)]
    assert diagnose(rows, given).lines == [
        "id read as a float, digits beyond 2^53 are lost in 6 of 6 rows that differ"
    ]
    other = [row | {"id": int(row["id"]) + 1} for row in rows]
    assert not any("lost" in line for line in diagnose(rows, other).lines)
    even = [{"k": n, "id": 2**60 + 1024 * n} for n in range(6)]  # floats hold these: they are in wrong rows
    turned = [{"k": n, "id": even[5 - n]["id"]} for n in range(6)]
    assert not any("lost" in line for line in diagnose(even, turned).lines)


def test_large_whole_numbers_are_as_much_too_high_as_they_are() -> None:
    rows = [{"k": n, "id": 1_234_567_890_123_456_789 + 37 * n} for n in range(12)]
    for by in (1, 100, -3):
        lines = diagnose(rows, [row | {"id": row["id"] + by} for row in rows]).lines
        assert lines == [f"id {abs(by)} too {'high' if by > 0 else 'low'} in 12 of 12 rows that differ"]


@pytest.mark.parametrize(("by", "words"), [
    (datetime.timedelta(days=1), "day 1 day later"),
    (datetime.timedelta(days=-7), "day 7 days earlier"),
])  # fmt: skip
@pytest.mark.parametrize("shops", [1, 2])
def test_a_key_that_is_whole_days_later_throughout_is_no_spill(
    by: datetime.timedelta, words: str, shops: int
) -> None:
    rows = [
        {"day": datetime.date(2024, 1, 5) + datetime.timedelta(days=n), "shop": shop, "n": n * 7 % 11 + shop}
        for n in range(14)
        for shop in range(shops)
    ]
    if shops == 1:
        rows = [{"day": row["day"], "n": row["n"]} for row in rows]
    wanted = pl.DataFrame(rows)
    lines = diagnose(wanted, wanted.with_columns(c.day + by)).lines
    assert lines == [f"{words} in {len(rows)} of {len(rows)} rows that differ"], lines
    ones = wanted.with_columns(
        pl.lit(1).alias("n")
    )  # the filter begins and ends a day later: no date is another
    lines = diagnose(ones, ones.with_columns(c.day + by)).lines
    assert not any("day 1 day later" in line for line in lines), lines


@pytest.mark.parametrize(
    ("name", "factor", "words"),
    [
        ("wait_days", 24, "wait_days ×24 in 20 of 20 rows that differ: hours where days are expected"),
        ("wait_hours", 24, "wait_hours ×24 in 20 of 20 rows that differ"),
        ("wait_days", 1 / 24, "wait_days ÷24 in 20 of 20 rows that differ"),
        ("wait_hours", 60, "wait_hours ×60 in 20 of 20 rows that differ: minutes where hours are expected"),
        ("wait_ms", 60, "wait_ms ×60 in 20 of 20 rows that differ"),
        ("wait_ms", 1 / 1000, "a unit of time a thousand times larger"),
    ],
)
def test_a_unit_of_time_is_none_that_the_columns_name_denies(name: str, factor: float, words: str) -> None:
    rows = [{"id": n, name: 3 + n * n % 41} for n in range(20)]
    (line,) = diagnose(rows, [row | {name: row[name] * factor} for row in rows]).lines
    assert line.endswith(words), line


def test_a_name_that_reads_as_a_word_is_quoted() -> None:
    rows = [{"id": n, "a": 3 + n * n % 41} for n in range(20)]
    difference = align(rows, [row | {"a": row["a"] * 100} for row in rows])
    assert diagnosis_of(difference).lines == ['"a" ×100 in 20 of 20 rows that differ']
    assert OneTable(difference).fact() == ('"a" differs in 20 of 20 rows', '"a" differs')


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("DATE", "d a midnight of a time zone where a date is expected"),
        ("VARCHAR", "d the same time, but only one side names its zone"),
    ],
)
def test_a_midnight_with_a_zone_says_so_beside_a_date(kind: str, words: str) -> None:
    rows = [{"id": n, "d": f"2024-01-{n:02}"} for n in range(1, 9)]
    given = [row | {"d": f"{row['d']}T00:00:00Z"} for row in rows]
    difference = align(rows, given, types={"id": "INTEGER", "d": kind})
    assert diagnosis_of(difference).lines == [f"{words} in 8 of 8 rows that differ"]
    assert OneTable(difference).row(0).cells[1].text == "2024-01-01→2024-01-01T00:00:00Z"
    assert "expected 2024-01-01, actual 2024-01-01T00:00:00Z" in difference.render()


@pytest.mark.parametrize("zone", ["+02:00", "-05:00", "+0530", "Z"])
def test_a_midnight_of_any_zone_says_so_beside_a_date(zone: str) -> None:
    types = {"id": "INTEGER", "d": "DATE"}
    rows = [{"id": n, "d": f"2024-01-{n:02}"} for n in range(1, 9)]
    given = [row | {"d": f"{row['d']}T00:00:00{zone}"} for row in rows]
    words = "d a midnight of a time zone where a date is expected in 8 of 8 rows that differ"
    assert diagnose(rows, given, types=types).lines == [words]
    noon = [row | {"d": f"{row['d']}T12:00:00{zone}"} for row in rows]
    assert not any("a midnight" in line for line in diagnose(rows, noon, types=types).lines)


@pytest.mark.parametrize("hours", [0, 5])
@pytest.mark.parametrize("as_rows", [False, True])
def test_dates_that_an_answer_has_as_texts_are_found_in_other_columns(hours: int, as_rows: bool) -> None:
    first = [datetime.datetime(2024, 1, 1 + 2 * n, hours) for n in range(9)]
    last = [one + datetime.timedelta(days=10 + n) for n, one in enumerate(first)]
    typed = pl.DataFrame({"id": range(9), "first": first, "last": last, "note": [f"n{n}" for n in range(9)]})
    types = {"id": "INTEGER", "first": "TIMESTAMP" if hours else "DATE", "note": "VARCHAR"}
    types["last"] = types["first"]
    typed = typed if hours else typed.with_columns(pl.col("first", "last").cast(pl.Date))
    rows = [row | {name: str(row[name]) for name in ("first", "last")} for row in typed.to_dicts()]
    expected = rows if as_rows else typed

    def said(**columns: str) -> str:
        given = [
            {name: row[columns.get(name, name)] for name in ("id", "first", "last", "note")} for row in rows
        ]
        return diagnose(expected, given, types=types).lines[0]

    assert said(first="last", last="first") == "first and last are exchanged in 9 of 9 rows that differ"
    assert said(first="last").startswith("first has what last should have in 9 of 9 rows")
    named = [{("begin" if name == "first" else name): value for name, value in row.items()} for row in rows]
    assert diagnose(expected, named, types=types).lines == [
        "the answer has first as begin (9 of 9 values are the same)"
    ]


@pytest.mark.parametrize("most", ["descending", "ascending"])
def test_rows_that_are_sorted_the_other_way_say_so(most: str) -> None:
    rows = sorted(
        ({"id": n, "n": n * n % 41} for n in range(20)),
        key=lambda row: row["n"] * (-1 if most[0] == "d" else 1),
    )
    other = "ascending" if most[0] == "d" else "descending"
    ordered = ComparisonSettings(ordered=True)
    words = f"the same rows in another order: sorted by n {other}, not {most}"
    assert diagnose(rows, rows[::-1], ordered).lines == [words]
    assert compare(rows[::-1], rows, ordered).text == words
    mixed = [*rows[10:], *rows[:10]]
    assert "sorted" not in (compare(mixed, rows, ordered).text or "sorted")


def test_rows_in_another_order_that_share_a_value_say_so() -> None:
    rows = [{"id": place, "n": n} for place, n in enumerate((9, 9, 7, 7, 7, 2))]
    other = [rows[at] for at in (1, 0, 4, 2, 3, 5)]
    ordered = ComparisonSettings(ordered=True)
    assert compare(other, rows, ordered).text == (
        "the same rows in another order: 2 of 6 stand elsewhere, among rows that share n"
    )
    assert diagnose(rows, other, ordered).lines == ["the same rows in another order: those that share n"]
    assert "share" not in (compare([*rows[2:], *rows[:2]], rows, ordered).text or "share")


def test_a_floor_of_losses_is_neither_cut_off_nor_rounded() -> None:
    rows = SHOP.select("id", (c.price - 50).round(2).alias("gain"))
    (line,) = diagnose(rows, rows.with_columns(c.gain.floor())).lines[:1]
    assert line.startswith("gain rounded down to whole numbers in ")
    (line,) = diagnose(rows, rows.with_columns(c.gain.cast(pl.Int64).cast(pl.Float64))).lines[:1]
    assert line.startswith("gain cut off, not rounded, to whole numbers in ")


def test_rows_that_distinct_took_away_are_not_told_as_those_of_a_limit_too() -> None:
    rows = [{"status": one} for one in ("paid", "open", *("paid", "open") * 5)]
    assert diagnose(rows, rows[:2]).lines == [
        "10 of 10 missing rows repeat others: DISTINCT or UNION took them away"
    ]


LOOKS = "the same but for U+0430 CYRILLIC SMALL LETTER A in the answer"


@pytest.mark.parametrize("count", [1, 7])
def test_letters_of_another_alphabet_are_named(count: int) -> None:
    names = [f"{one} Martin" for one in "ABCDEFGH"]
    rows = [{"k": n, "name": name} for n, name in enumerate(names)]
    given = [row | {"name": row["name"].replace("a", "\u0430")} if row["k"] < count else row for row in rows]
    finding = diagnose(rows, given).lines
    assert (
        finding[0]
        == f"name {LOOKS} in {count} of {count} row{'' if count == 1 else 's'} that differ{'s' if count == 1 else ''}"
    )
    russian = [{"k": n, "name": name} for n, name in enumerate(("Москва", "Омск", "Тверь"))]
    (line,) = diagnose(russian, [row | {"name": row["name"][::-1]} for row in russian]).lines[:1] or ("",)
    assert "the same but" not in line


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("M\u0430rtin", f"name {LOOKS}"),
        ("MARTIN", "name in other case"),
        ("Martin ", "name with other blanks"),
    ],
)
def test_a_key_that_is_written_otherwise_is_no_other_row(given: str, words: str) -> None:
    rows = [{"name": name, "n": n} for n, name in enumerate(("Anna", "Martin", "Zoë", "Eva"))]
    found = diagnose(rows, [row | {"name": given} if row["n"] == 1 else row for row in rows], key=["name"])
    assert found.lines[0] == f"{words} in 1 of 1 row that differs"
    other = diagnose(rows, [row | {"name": "Marius"} if row["n"] == 1 else row for row in rows], key=["name"])
    assert not other.lines


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("expected", "given", "words"),
    [
        (INF, 0, "0 instead of infinity"),
        (-INF, 0, "0 instead of -infinity"),
        (INF, 1e308, "a finite number instead of infinity"),
        (INF, "Infinity", "a text instead of infinity"),
        (NAN, 0.0, "0 instead of NaN"),
        (NAN, "NaN", "a text instead of NaN"),
        (None, 0, "0 instead of null"),
    ],
)
def test_what_json_does_not_have_is_no_null(expected: Any, given: Any, words: str) -> None:
    """As it is judged, and of rows that were kept."""
    for rest in ([], [2.0]):
        cells = [expected, *rest] if rest or expected is not None else [expected, 1.0]
        others: list[Any] = [given, *cells[1:]]
        kept, answer = ([{"k": n, "r": cell} for n, cell in enumerate(side)] for side in (cells, others))
        frame = pl.DataFrame(kept, schema={"k": pl.Int64, "r": pl.Float64})
        for side in (frame, kept):
            difference = align(side, answer, types={"k": "BIGINT", "r": "DOUBLE"})
            assert diagnosis_of(difference).lines == [f"r {words} in 1 of 1 row that differs"]
            table = OneTable(difference)
            assert table.columns[1].kind == "number", side
            assert expected is None or "null" not in table.row(0).cells[1].text


def test_large_whole_numbers_that_are_one_off_are_not_called_rounded() -> None:
    large = pl.Series([n * 170_141_183_460_469 for n in range(1, 21)])
    expected = pl.DataFrame({"id": range(1, 21), "big": large})

    def said(big: pl.Series) -> list[str]:
        return [one.code for one in diagnose(expected, expected.with_columns(big=big)).findings]

    off = pl.Series([n * 7 % 13 + 1 for n in range(20)])
    assert said(large + 1) == ["offset"]
    assert not {"offset", "rounded"} & set(said(large + off))


LARGE = [3, 41, 7, 88, 19, 62, 30, 75]


@pytest.mark.parametrize("base", [0, 10**9, 10**12, 10**15, 9 * 10**15, 10**17])
@pytest.mark.parametrize("spread", [17, 1_000, 1_000_003])
def test_large_numbers_that_vary_are_no_displaced_ones_and_displaced_ones_are(base: int, spread: int) -> None:
    def found(actual: Sequence[int]) -> list[str]:
        expected = [base + one * spread for one in LARGE]
        sides = ([{"id": at, "n": value} for at, value in enumerate(side)] for side in (expected, actual))
        return [finding.code for finding in diagnose(*sides, key=("id",)).findings]

    displaced = {"permuted", "neighbour", "reversed"}
    other = [base + (one + 100) * spread for one in (5, 1, 80, 33, 71, 9, 54, 26)]
    assert not displaced & set(found(other))
    assert found([base + one * spread for one in [*LARGE[1:], LARGE[0]]])[:1] == ["permuted"]
    assert found([base + one * spread for one in reversed(LARGE)])[:1] == ["reversed"]


def test_a_large_number_is_no_multiple_of_a_thousand_for_being_near_one() -> None:
    expected = [9007199254741993, 9007199254740993, 9007199254743993, 9007199254742993, 9007199254749993]
    actual = [9007199254740993, 9007199254741993, 9007199254742993, 9007199254743993, 9007199254748993]
    sides = ([{"id": at, "n": value} for at, value in enumerate(side)] for side in (expected, actual))
    codes = {finding.code for finding in diagnose(*sides, key=("id",)).findings}
    assert not codes & {"rounded", "truncated", "rounded_up", "rounded_down"}


@pytest.mark.parametrize(
    ("expected", "actual"),
    [([[1], [2]], [[1, 2]]), (["a, b"], ["a", "b"]), ([" a"], ["a"]), ({"z": "NULL"}, {"z": None})],
)
def test_brackets_and_commas_of_lists_and_objects_are_no_punctuation(expected: Any, actual: Any) -> None:
    rows = [[{"k": n, "x": value} for n in range(3)] for value in (expected, actual)]
    lines = diagnose(*(pl.DataFrame(side) for side in rows)).lines
    assert not any("punctuation" in line or "other case" in line for line in lines), lines


def test_a_name_with_blanks_at_its_ends_is_told_from_the_one_without() -> None:
    found = diagnose(SHOP.select("id", "price"), SHOP.select("id", c.price.alias("price "))).lines
    assert found[0].startswith('the answer has price as "price "')


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("gro\u0308\u00dfe", "größe with the same letters composed otherwise (Unicode normalisation)"),
        ("größe\u200b", "größe with U+200B ZERO WIDTH SPACE in the answer"),
        ("size", "größe as size"),
    ],
)
def test_a_columns_name_that_looks_the_same_says_what_sets_it_apart(given: str, words: str) -> None:
    assert diagnose([{"größe": 60}], [{given: 60}]).lines == [
        f"the answer has {words} (1 of 1 values are the same)"
    ]


def days(count: int, shift: int = 0) -> list[datetime.date]:
    return [datetime.date(2024, 1, 5) + datetime.timedelta(days=3 * n + shift) for n in range(count)]


def firsts(count: int) -> list[datetime.date]:
    return [datetime.date(2024, month, 1) for month in range(1, count + 1)]


def clocks(count: int, minutes: int = 0) -> list[datetime.time]:
    first = datetime.datetime(2024, 1, 5, 8, 17)
    return [(first + datetime.timedelta(minutes=37 * n + minutes)).time() for n in range(count)]


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        ([88045, 46626, 33522, 71142], [0.454, 0.605, 0.516, 0.129]),  # no whole million
        ([62753], [0.158]),
        ([6.95131], [100]),
        ([68.79], [100]),
        ([123, 123, 130, 124], [13, 13, 14, 13]),  # all alike: any factor would do
        ([123, 126, 131], [1, 1, 1]),
    ],
)
def test_what_is_near_by_chance_is_no_rounding_and_no_factor(expected: list[Any], given: list[Any]) -> None:
    sides = ([{"id": n, "x": value} for n, value in enumerate(side)] for side in (expected, given))
    lines = diagnose(*sides, key=("id",)).lines
    assert not any(words in " ".join(lines) for words in ("rounded", "cut off", "×", "÷")), lines


@pytest.mark.parametrize(
    ("expected", "given", "words"),
    [
        ([50.0, 25.0, 12.5], ["50%", "25%", "12.5 %"], "with %, a text instead of a number"),
        ([50.0, 33.33333, 12.5], ["€50.00", "€33.33", "€12.50"], ""),  # a number with a currency is one
        ([50.0, 3333.333, 12.5], ["50 kg", "3,333.3kg", "12.5 kg"], "with kg, a text instead of a number"),
        ([50.0, 25.0, 12.5], ["51%", "26%", "13.5%"], ""),
        ([[1, 2], [3, 4], [5, 5, 6]], [[2, 1], [4, 3], [6, 5, 5]], "with the same elements in another order"),
        ([[1, 2], [3, 4], [5, 5, 6]], [[2, 2], [4, 4], [6, 6, 5]], ""),
        ([["a", "b"], ["c"], ["d", "e"]], ["a,b", "c", "e | d"], "a text instead of a list"),
        ([["a", "b"], ["c"], ["d", "e"]], ["a,c", "d", "e | a"], ""),
        (days(9), [f"{day:%m/%d/%Y}" for day in days(9)], "written as MM/DD/YYYY"),
        (days(9), [f"{day:%d/%m/%Y}" for day in days(9)], "written as DD/MM/YYYY"),
        (firsts(1), [f"{day:%d/%m/%Y}" for day in firsts(1)], "written as MM/DD/YYYY or DD/MM/YYYY"),
        (days(9), [f"{day:%b %d, %Y}" for day in days(9)], "written as Month D, YYYY"),
        (days(9), [f"{day:%m/%d/%Y}" for day in days(9, 1)], ""),
        (days(9), [day.replace(year=2026).isoformat() for day in days(9)], "2 years later"),
        (days(9), days(9, 365), "365 days later"),
        ([0.4567, 0.25, 0.1], ["45.67%", "25%", "10%"], "with %, a text instead of a number"),
        ([0.4567, 0.25, 0.1], ["46.67%", "26%", "11%"], ""),
        (clocks(9), clocks(9, 60), "1 hour later"),
        (
            firsts(9),
            [
                (one.replace(day=28) + datetime.timedelta(days=4)).replace(day=1) - datetime.timedelta(days=1)
                for one in firsts(9)
            ],
            "the last day of the month, not the first",
        ),
        (firsts(9), [one.replace(day=n + 11) for n, one in enumerate(firsts(9))], "not cut to the month"),
        (clocks(9, 23 * 60), clocks(9, 23 * 60 + 30), "0.5 hours later"),
        (clocks(9), clocks(9, 7), "7 minutes later"),
        (clocks(9), [one.replace(minute=0) for one in clocks(9)], "cut to the hour"),
        (clocks(9, 400), [f"{one:%I:%M %p}" for one in clocks(9, 400)], "written as HH:MM AM or PM"),
        (
            clocks(9, 400),
            [f"{one:%I:%M}" for one in clocks(9, 400)],
            "written as hours up to 12, without AM or PM",
        ),
        (
            days(9),
            [(day - datetime.date(1970, 1, 1)).days * 86400 for day in days(9)],
            "seconds since 1970 instead of a date",
        ),
        ([3, 0, 0, 1], [3, 1, 1, 1], "1 instead of 0"),
        ([3, 0, 0, 1], [3, 1, 1, 2], ""),
        ([1, 0, 0, 1], [1, 1, 1, 1], ""),
    ],
)
def test_what_became_of_the_values(expected: list[Any], given: list[Any], words: str) -> None:
    sides = ([{"id": n, "x": value} for n, value in enumerate(side)] for side in (expected, given))
    lines = diagnose(*sides, key=("id",)).lines
    if words:
        assert lines[0].startswith(f"x {words} in "), lines
    assert words or not any(w in " ".join(lines) for w in ("a text", "elements", "written as", "of 0")), lines


@pytest.mark.parametrize(("count", "last", "said"), [(9, True, True), (9, False, True), (4, True, False)])
def test_the_day_at_the_end_of_a_range_is_named(count: int, last: bool, said: bool) -> None:
    rows = [{"day": day, "n": n * 7 % 5} for n, day in enumerate(days(count))]
    lines = diagnose(rows, rows[:-1] if last else rows[1:]).lines
    words = f"the last day, {days(count)[-1]}, is missing: < for <= in the filter?"
    first = "the first day, 2024-01-05, is missing: > for >= in the filter?"
    assert ((words if last else first) in lines) == said, lines
    assert not any("is missing" in line for line in diagnose(rows, [*rows[:2], *rows[3:]]).lines)


@pytest.mark.parametrize(("hours", "side"), [(2, "next day"), (-3, "day before"), (0, "")])
def test_days_of_another_time_zone_are_seen_in_sums_by_day(hours: int, side: str) -> None:
    drawn = random.Random(3)
    at = [
        datetime.datetime(2024, 1, 5) + datetime.timedelta(minutes=drawn.randrange(20 * 1440))
        for _ in range(160)
    ]
    orders = pl.DataFrame({"at": at, "amount": [drawn.randrange(100, 9000) / 100 for _ in at]})

    def by_day(shift: int) -> pl.DataFrame:
        day = (c.at + datetime.timedelta(hours=shift)).dt.date().alias("day")
        return (
            orders.group_by(day).agg(pl.len().alias("n"), c.amount.sum().round(2).alias("total")).sort("day")
        )

    other = by_day(hours)
    if not hours:  # as many in all, on other days, but not on the neighbouring ones
        other = other.with_columns(pl.Series("n", other["n"].to_list()[3:] + other["n"].to_list()[:3]))
    lines = diagnose(by_day(0), other).lines
    assert any("another time zone" in line for line in lines) == bool(side), lines
    assert not side or lines[0].startswith(f"n and total partly on the {side} in ")


def test_rows_that_are_missing_have_lost_no_digits() -> None:
    rows = [{"id": 2**53 + 1 + 2 * n, "vip": n % 2 == 0, "orders": n // 2} for n in range(12)]
    kept = diagnose(rows, [row for row in rows if row["vip"]])
    assert kept.missing == 6 and not any("digits" in line for line in kept.lines)
    assert kept.lines and "vip" in kept.lines[0], kept.lines
    some = [row | {"id": int(float(row["id"]))} for row in rows[:9]]
    assert diagnose(rows, some).lines[0] == (
        "id read as a float, digits beyond 2^53 are lost in 9 of 12 rows that differ"
    )
    assert not any("digits" in line for line in diagnose(rows, some[:4]).lines)


MONEY = [18512.33, 22871.1, 9120.55, 41090.0, 7760.2, 30511.9, 12999.5, 88123.0]
LARGE = [36028797018963969 + 7919 * n for n in range(8)]
TOWNS = ["Paris", "Oslo", "Caracas", "Boston", "Cairo", "Lima", "Havana", "Tokyo"]
CYRILLIC = str.maketrans("aeopACTOPB", "аеорАСТОРВ")
ALIKE = "the same but for case and U+0420 CYRILLIC CAPITAL LETTER ER, U+0410 CYRILLIC CAPITAL LETTER A"


@pytest.mark.parametrize(
    ("expected", "given", "words"),
    [
        (MONEY, [round(one / 1000) for one in MONEY], "÷1,000 in 8 of 8"),
        (MONEY, [round(one / 1000, 1) for one in MONEY], "÷1,000 in 8 of 8"),
        ([round(one / 1000, 1) for one in MONEY], MONEY, "×1,000 in 8 of 8"),
        (MONEY, [f"{one / 1000:.1f}K" for one in MONEY], "with K, a text instead of a number in 8 of 8"),
        (MONEY, [f"{one / 1e6:.4f} Mio" for one in MONEY], "with Mio, a text instead of a number in 8 of 8"),
        (MONEY, [f"{one:.3e}" for one in MONEY], "a text with an exponent instead of a number in 8 of 8"),
        (LARGE, [3.6e16] * 8, "rounded to 2 significant digits in 8 of 8"),
        (LARGE[:1], [3.6e16], "rounded to 2 significant digits in 1 of 1"),
        ([123456789012, 3456789012345], [1.235e11, 3.457e12], "rounded to 4 significant digits in 2 of 2"),
        (TOWNS, [town.translate(CYRILLIC).upper() for town in TOWNS], ALIKE),
        (TOWNS[:1], [TOWNS[0].translate(CYRILLIC).upper()], ALIKE),
    ],
)
def test_two_changes_at_once_are_told(expected: list[Any], given: list[Any], words: str) -> None:
    ids = list(range(len(expected)))
    lines = [
        str(one)
        for one in found(pl.DataFrame({"id": ids, "v": expected}), pl.DataFrame({"id": ids, "v": given}))
    ]
    assert any(words in line for line in lines), lines


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        (MONEY, [round(one / 1000) + (place % 3 + 1) * 3 for place, one in enumerate(MONEY)]),
        (MONEY, ["0e0"] * 8),
        (MONEY, [f"{one * 1.3 / 1000:.1f}K" for one in MONEY]),
        (LARGE[:1], [3.5e16]),
        ([1234], [1200]),
    ],
)
def test_numbers_that_are_near_nothing_are_not_told_so(expected: list[Any], given: list[Any]) -> None:
    ids = list(range(len(expected)))
    lines = [
        str(one)
        for one in found(pl.DataFrame({"id": ids, "v": expected}), pl.DataFrame({"id": ids, "v": given}))
    ]
    assert not any(word in line for line in lines for word in ("1,000", "significant", "exponent", " K")), (
        lines
    )


def test_the_largest_numbers_leave_what_else_was_found() -> None:
    """A gap beyond 1e302 has no power of ten: the whole diagnosis was lost."""
    expected = [{"id": i, "v": 1e308 / i, "name": f"n{i}"} for i in range(1, 13)]
    actual = [{**row, "v": row["v"] / 2, "name": row["name"].upper()} for row in expected]
    assert any(line.startswith("name in other case") for line in diagnose(expected, actual, key=["id"]).lines)


@pytest.mark.parametrize(
    ("given", "words"), [([7], "a list"), ({"x": 7}, "an object"), ("7 pcs", "with pcs, a text")]
)
def test_what_holds_a_number_is_no_number_with_a_unit(given: Any, words: str) -> None:
    rows: list[dict[str, Any]] = [{"id": n, "v": 7} for n in range(5)]
    (line,) = diagnose(rows, [row | {"v": given} for row in rows]).lines
    assert line == f"v {words} instead of a number in 5 of 5 rows that differ"


def test_a_hundredfold_is_counted_exactly_where_most_of_it_is_exact() -> None:
    """7 beside 719 was counted as ×100, since the expected 7 might have been 7.19."""
    rows: list[dict[str, Any]] = [{"id": n, "quantity": 3 + n * n % 41} for n in range(40)]
    answer: list[dict[str, Any]] = [
        row | {"quantity": row["quantity"] * 100 + (n * 7 % 45 if n % 4 == 0 else 0)}
        for n, row in enumerate(rows)
    ]
    exact = sum(given["quantity"] == row["quantity"] * 100 for given, row in zip(answer, rows, strict=True))
    assert diagnose(rows, answer).lines[0] == f"quantity ×100 in {exact} of 40 rows that differ"
    thousands: list[dict[str, Any]] = [
        {"id": n, "paid": round((1234 + n * n * 977) / 1000, 1)} for n in range(40)
    ]
    units: list[dict[str, Any]] = [{"id": n, "paid": 1234 + n * n * 977} for n in range(40)]
    assert diagnose(thousands, units).lines[0].startswith("paid ×1,000 in 40 of 40")


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1 / 1.19, "÷1.19"), (1 / 1.2, "÷1.2"), (0.8372, "×0.8372"), (0.5, "÷2"), (0.75, "×0.75")],
)
def test_a_tax_that_is_left_out_is_called_by_its_rate(factor: float, words: str) -> None:
    assert (
        diagnose(SHOP, SHOP.with_columns(c.price * factor)).lines[0].startswith(f"price {words} in 60 of 60")
    )


def test_values_of_a_json_column_say_where_they_differ() -> None:
    expected = SqlResult(["j"], pl.DataFrame({"j": ['{"a": 1, "b": [1, 2]}']}), types={"j": "JSON"})
    result = compare([{"j": {"a": 1, "b": [1, 3]}}], expected)
    assert result.text is not None and "b[1]: expected 2, actual 3" in result.text


def test_what_is_expected_rounded_or_cut_and_is_not() -> None:
    exact = SHOP.with_columns(v=c.price / 7)
    for digits, words in ((2, "2 decimals"), (0, "whole numbers")):
        (line,) = diagnose(exact.with_columns(c.v.round(digits)), exact).lines
        assert line.startswith(f"v not rounded to {words} in ")
    apart = exact.with_columns(v=c.v.round(0) + 0.9)
    assert not any("rounded" in line for line in diagnose(exact.with_columns(c.v.round(0)), apart).lines)
    for every, unit in (("1d", "day"), ("1mo", "month"), ("1h", "hour")):
        expected = SHOP.with_columns(c.at.dt.truncate(every))
        assert diagnose(expected, SHOP).lines[0].startswith(f"at not cut to the {unit} in ")
    days = SHOP.with_columns(c.at.dt.truncate("1d").cast(pl.Date))
    assert diagnose(days, SHOP).lines[0].startswith("at not cut to the day in 60 of 60")
    assert not diagnose(days, SHOP.with_columns(c.at + day * 2)).lines[0].startswith("at not cut")


def test_numbers_that_are_rounded_first_are_told_as_they_are() -> None:
    settings = ComparisonSettings(decimals=2)
    exact = SHOP.with_columns(v=c.price / 7)
    (line,) = diagnose(exact, exact.with_columns(c.v + 0.004), settings).lines
    assert line.startswith("v 0.004 too high in ")
    result = compare([{"v": 10000.500001}], [{"v": 10000.5}], ComparisonSettings(decimals=0))
    assert result.text == (
        "row 1: v: expected 10000.5, actual 10000.500001 (off by 0.000001, rounded first: 10000 and 10001)"
    )
    result = compare([{"v": "0.31"}], [{"v": Decimal("0.304")}], settings)
    assert result.text is not None and "(off by 0.006, rounded first: 0.30 and 0.31)" in result.text
    cell = align([{"v": 1.001}], [{"v": 1.004}], settings).row(0).cells[0]
    assert (cell.same, cell.why) == (True, "off by 0.003, the same rounded to 2 decimals")


BY_WEEKDAY = [64, 73, 72, 73, 73, 73, 72]


@pytest.mark.parametrize(
    ("first", "counts", "words"),
    [
        (1, BY_WEEKDAY, "weekday 1 too high in 7 of 7 rows that differ"),
        (-1, BY_WEEKDAY, "weekday 1 too low in 7 of 7 rows that differ"),
        (1, [65, *BY_WEEKDAY[1:]], ""),
        (1, [73] * 7, ""),  # any row may be another one
    ],
)
def test_a_number_that_tells_rows_apart_and_begins_elsewhere_is_named(
    first: int, counts: list[int], words: str
) -> None:
    """Days of the week from 1, or from 0: row by row the counts of neighbours would differ."""
    expected = [
        {"weekday": n, "n": count} for n, count in enumerate(counts if len(set(counts)) == 1 else BY_WEEKDAY)
    ]
    lines = diagnose(expected, [{"weekday": n + first, "n": count} for n, count in enumerate(counts)]).lines
    assert (words in lines) if words else not any("weekday 1 too" in line for line in lines), lines


@pytest.mark.parametrize("seed", [3, 4, 6])
def test_no_filter_is_told_of_rows_of_which_none_is_right(seed: int) -> None:
    """Weeks from Sunday, not Monday: rows stood beside each other by chance of their counts, and the others were where
    `n between 19 and 22`."""
    drawn = random.Random(seed)
    weeks = [datetime.date(2024, 1, 1) + datetime.timedelta(weeks=n) for n in range(26)]
    expected = [{"week": week, "n": drawn.randrange(14, 23)} for week in weeks]
    given = [
        {"week": week - datetime.timedelta(days=1), "n": drawn.choice([*range(14, 19), 30])} for week in weeks
    ]
    lines = diagnose(expected, given).lines
    assert not any("filter" in line for line in lines), lines


def _said(
    expected: Sequence[float | Decimal], actual: Sequence[float | Decimal], name: str = "pct"
) -> list[str]:
    sides = ([{"id": at, name: value} for at, value in enumerate(side)] for side in (expected, actual))
    return diagnose(*sides, key=("id",)).lines


@pytest.mark.parametrize(
    ("expected", "actual", "whole"),
    [
        ([87.5], [12.5], 100),
        ([0.25, 0.4, 0.9], [0.75, 0.6, 0.1], 1),
        ([33.335, 12.5, 70.2], [66.67, 87.5, 29.8], 100),
    ],
)
def test_the_share_of_the_rest_is_called_so(
    expected: Sequence[float], actual: Sequence[float], whole: int
) -> None:
    line = f"pct {whole} minus the expected value in {len(expected)} of {len(expected)} row"
    assert _said(expected, actual)[0].startswith(line)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ([40], [60]),
        ([0, 1, 1, 0], [1, 0, 0, 1]),
        ([87.5, 60, 30], [12.5, 41, 60]),
        ([120.5, -30], [-20.5, 130]),
    ],
)
def test_what_adds_up_by_chance_is_no_share_of_the_rest(
    expected: Sequence[float], actual: Sequence[float]
) -> None:
    assert "minus" not in " ".join(_said(expected, actual))


@pytest.mark.parametrize(
    ("shares", "amounts"),
    [
        ([0.25, 0.125, 0.625], [40.5, 20.25, 101.25]),
        ([33.3, 16.7, 50.0], [841.0, 420.5, 1261.5]),
        ([66.7, 33.3], [26, 13]),
        ([67, 22, 11], [610, 200, 100]),
    ],
)
def test_amounts_for_shares_are_called_so_and_shares_for_amounts(
    shares: Sequence[float], amounts: Sequence[float]
) -> None:
    count = f"in {len(shares)} of {len(shares)} rows that differ"
    assert _said(shares, amounts)[0] == f"pct amounts where their shares of all are expected {count}"
    assert _said(amounts, shares)[0] == f"pct shares of all where amounts are expected {count}"


@pytest.mark.parametrize(
    ("shares", "others"),
    [
        ([33.3, 16.7, 50.0], [41.0, 20.5, 61.5]),
        ([67, 22, 11], [61, 20, 10]),
        ([0.333, 0.167, 0.5], [0.498, 0.249, 0.747]),
    ],
)
def test_shares_of_another_whole_are_not_called_amounts(
    shares: Sequence[float], others: Sequence[float]
) -> None:
    """Percent of the paid orders where percent of all are expected: what adds up so may be either."""
    assert _said(shares, others) == [
        "pct amounts, or shares of another whole, where shares of all are expected in 3 of 3 rows that differ"
    ]
    assert _said(others, shares) == [
        "pct shares of all where amounts, or shares of another whole, are expected in 3 of 3 rows that differ"
    ]


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ([4, 2, 2], [1, 0, 0]),
        ([0.25, 0.125, 0.625], [25.0, 12.5, 62.5]),
        ([25.0, 12.5, 62.5], [2500.0, 1250.0, 6250.0]),
        ([60, 40], [3, 2]),
        ([0.25, 0.125, 0.625], [40.5, 20.25, 99.0]),
        ([0.5, 0.25], [40.5, 20.25]),
    ],
)
def test_a_factor_or_a_part_of_the_rows_is_no_share_of_all(
    expected: Sequence[float], actual: Sequence[float]
) -> None:
    assert "of all" not in " ".join(_said(expected, actual))


def test_a_seventh_is_a_unit_of_time_only_where_the_name_says_so() -> None:
    assert _said([843.5], [120.5], "sales") == []
    assert "days where weeks" in _said([2.0, 3.0, 5.0], [14.0, 21.0, 35.0], "weeks")[0]


def test_a_factor_near_one_is_not_written_as_one_and_noise_is_no_factor() -> None:
    exact = [Decimal("5.37"), Decimal("17.11"), Decimal("90.40")]
    assert _said(exact, [one * Decimal("1.000001") for one in exact])[0].startswith("pct ×1.000001 in 3")
    isbn = [9780000000000 + at * 11 for at in range(30)]
    assert _said(isbn, [9780000194560] * 30)[0].startswith("pct one value for all rows")
