"""Frames of many rows: some rows are looked at first, and what is said holds in all of them."""

from __future__ import annotations

import polars as pl
import pytest

from tui_eval.frames.diagnosis import conditions, diagnose, other_columns
from tui_eval.frames.diagnosis.granularity import granularity
from tui_eval.frames.difference import align
from tui_eval.frames.pairs import pair_same

N = 30_000
c = pl.col
_at = pl.int_range(N, eager=True)
_mixed = (_at * 48_271) % 65_537
_days = pl.select(pl.date(2024, 1, 1) + pl.duration(days=pl.lit(_mixed % 700))).to_series()
ORDERS = pl.DataFrame(
    {
        "id": _at,
        "status": pl.Series(["placed", "shipped", "done", "returned", "lost"]).gather(_mixed % 5),
        "country": pl.Series(["FR", "DE", "NO", "IT"]).gather((_mixed // 7) % 4),
        "city": ((_at * 13) % 5003).cast(pl.String) + "_name",
        "day": _days,
        "price": ((_at * 7919) % 99_991) / 100.0,
    }
)
OTHER = pl.lit(pl.Series("price", ((_at * 104_729) % 9973) / 13 + 7.7))
SELDOM = pl.lit(_mixed % 499 == 0)

WHERE = {
    "one value": (c.status == "returned", "rows that differ are those where status = 'returned'"),
    "two values": (c.status.is_in(["returned", "lost"]), "where status in ('lost', 'returned')"),
    "all but one": (c.status != "done", "where status <> 'done'"),
    "a bound": (c.day < pl.date(2024, 3, 1), "where day <= '2024-02-29'"),
    "a range": (c.day.is_between(pl.date(2024, 3, 1), pl.date(2024, 3, 20)), "where day between '2024-03-01' and"),
    "two tests": ((c.status == "returned") & (c.country == "FR"), "where status = 'returned' and country = 'FR'"),
    "few rows": (c.city == "77_name", "all 6 rows that differ are those where city = '77_name'"),
    "nearly": ((c.status == "returned") & ~SELDOM, "where status = 'returned'"),
    "nearly, rows beside it": ((c.status == "returned") | SELDOM, "rows that differ are where status = 'returned'"),
    "the last rows": (c.id > 27_000, "where id >= 27001"),
}  # fmt: skip


def changed(where: pl.Expr) -> pl.DataFrame:
    return ORDERS.with_columns(pl.when(where).then(OTHER).otherwise(c.price).alias("price"))


@pytest.mark.parametrize("name", WHERE)
def test_a_condition_is_found_as_if_all_rows_had_been_looked_at(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, words = WHERE[name]
    found = diagnose(ORDERS, changed(where))
    line = next(str(one) for one in found.findings if one.code == "condition")
    assert words in line
    monkeypatch.setattr(conditions, "_MANY", 10**9)
    assert diagnose(ORDERS, changed(where)).lines == found.lines


@pytest.mark.parametrize("rows", [_mixed % 7 == 3, _mixed % 2 == 0, _at % 13 == 5])
def test_rows_that_nothing_tells_from_the_others_have_no_condition(rows: pl.Series) -> None:
    found = diagnose(ORDERS, changed(pl.lit(rows)))
    assert [one.code for one in found.findings] == ["one_column"]


def test_where_nothing_separates_rows_no_column_is_looked_at_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    longest: list[int] = []
    tests = conditions.best_tests

    def counted(name: str, values: pl.Series, *rest: object) -> object:
        longest.append(len(values))
        return tests(name, values, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(conditions, "best_tests", counted)
    assert diagnose(ORDERS, changed(pl.lit(_mixed % 7 == 3))).wrong
    assert 0 < max(longest) <= 2 * conditions.SAMPLE


def test_other_columns_are_compared_only_where_rows_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    longest: list[int] = []
    made = other_columns.pair

    def counted(name: str, expected: object, *rest: object) -> object:
        longest.append(expected.length)  # type: ignore[attr-defined]
        return made(name, expected, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(other_columns, "pair", counted)
    wide = ORDERS.with_columns(c.price.alias("net") * 3, c.id.alias("number") + 5)
    wrong = wide.with_columns(pl.when(c.status == "lost").then(c.net).otherwise(c.price).alias("price"))
    lines = diagnose(wide, wrong).lines
    assert lines[0].startswith("price ×3 in 6,001 of 6,001 rows that differ")
    assert longest and max(longest) <= 6_001


def test_where_the_sums_differ_no_grouping_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    from tui_eval.frames.diagnosis import granularity as module

    def never(*_: object) -> object:
        raise AssertionError("rows are grouped")

    monkeypatch.setattr(module, "_side", never)
    assert granularity(align(ORDERS, ORDERS.head(12_000))) is None


def test_a_column_of_dates_is_known_where_most_cells_are_empty() -> None:
    from tui_eval.frames.diagnosis.time_changes import moments

    texts = pl.Series([None] * 40_000 + ["2024-01-31T00:00:00"] * 9_000)
    found = moments(texts)
    assert found is not None and found.null_count() == 40_000
    assert moments(pl.Series(["open"] * 40_000 + [None])) is None


def test_many_rows_are_compared_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    from tui_eval.frames import pairs

    wrong = changed(c.id % 7 == 3)
    difference = align(ORDERS, wrong)
    whole = {name: pair_same(one, None, None) for name, one in difference.pairs.items()}
    monkeypatch.setattr(pairs, "_AT_ONCE", 7_001)
    e_rows, a_rows = difference.both_rows()
    for name, one in difference.pairs.items():
        assert pair_same(one, None, None).equals(whole[name])
        assert pair_same(one, e_rows, a_rows).equals(whole[name])
        assert pair_same(one, e_rows, None).equals(whole[name])
    assert whole["price"].not_().sum() == (_at % 7 == 3).sum()


@pytest.mark.parametrize("noise", [0.0, 1e-13])
def test_values_in_the_wrong_rows_are_the_same_values_all_of_them(noise: float) -> None:
    shuffled = ORDERS.with_columns(c.price.shuffle(seed=5) * (1 + noise), c.city.shuffle(seed=6))
    said = [(one.code, one.columns) for one in diagnose(ORDERS, shuffled).findings]
    assert ("permuted", ("city", "price")) in said
    first = pl.int_range(N) == 0
    other = shuffled.with_columns(
        pl.when(first).then(c.price + 0.5).otherwise(c.price).alias("price"),
        pl.when(first).then(c.city + "s").otherwise(c.city).alias("city"),
    )
    assert "permuted" not in [one.code for one in diagnose(ORDERS, other).findings]
