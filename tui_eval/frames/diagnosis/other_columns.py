"""Values that stand in another column or in another row than they should."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import polars as pl

from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.diagnosis.changes import ValueChange, number, series, true
from tui_eval.frames.difference import Difference
from tui_eval.frames.matching import match_rows
from tui_eval.frames.pairing import pair
from tui_eval.frames.pairs import ColumnPair, pair_same
from tui_eval.frames.typed_columns import ReadColumn, declared_text, taken

_MOST = 40
_LIKELY = 0.8
_SAMPLE = 200
_PROVES = 5
"""Different values of which three rows are no chance, and more prove no more."""
_DAY = 10
"""Characters of a day: the beginning of a moment, however the rest is spelled."""


class OtherColumns:
    """Where the values of a column stand instead: all columns at once in some of the rows that differ, then those that
    may be it in all of these."""

    def __init__(self, difference: Difference, wrong: dict[str, pl.Series]) -> None:
        """`wrong` are by column the numbers of the aligned rows (that both sides have) in which it differs."""
        self._difference = difference
        self._wrong = {name: rows for name, rows in wrong.items() if len(rows)}
        self._e_rows, self._a_rows = difference.aligned()
        pairs = difference.pairs
        self._expected = _Sampled({name: one.expected for name, one in pairs.items()})
        self._actual = _Sampled({name: one.actual for name, one in pairs.items()})
        self._surplus = _Sampled(difference.surplus)

    def changes(self, name: str) -> Iterator[ValueChange]:
        """Exchanged with another column, holding what another should hold, or held by another of the answer."""
        rows = self._wrong[name]
        pairs = self._difference.pairs
        own = pairs[name].actual
        some = rows if len(rows) <= _SAMPLE else rows.gather_every(len(rows) // _SAMPLE)
        least = len(some) // 5 if len(some) < len(rows) else 1
        e, a = self._e_rows.gather(some).cast(pl.UInt32), self._a_rows.gather(some).cast(pl.UInt32)
        near = self._difference.settings
        held = self._actual.like(_shown(pairs[name].expected, e), a, near, least)
        holds = self._expected.like(_shown(own, a), e, near, least)
        beyond = self._surplus.like(_shown(pairs[name].expected, e), a, near, least)
        for other in [one for one in self._wrong if one != name and one in held and one in holds][:_MOST]:
            there = self._compared(name, pairs[other].actual, rows)  # the expected values, in another column
            here = self._compared(other, own, rows)
            wrong_too = rows.is_in(self._wrong[other].implode())
            if self._told_apart(name, there & here & wrong_too, rows, 1):
                yield ValueChange("swapped", there & here & wrong_too, {"with": other})
        for other in [one for one in self._difference.surplus if one in beyond][:_MOST]:
            there = self._compared(name, self._difference.surplus[other], rows)
            if self._told_apart(name, there, rows, 2):
                yield ValueChange("elsewhere", there, {"name": other})
        for other in [one for one in pairs if one != name and one in holds][:_MOST]:
            here = self._compared(other, own, rows)
            if self._told_apart(other, here, rows, 3):
                yield ValueChange("other_column", here, {"holds": other}, sure=False)

    def _compared(self, name: str, column: ReadColumn, rows: pl.Series) -> pl.Series:
        e, a = self._e_rows.gather(rows).cast(pl.UInt32), self._a_rows.gather(rows).cast(pl.UInt32)
        expected = taken(self._difference.pairs[name].expected, e)
        return pair_same(pair(name, expected, taken(column, a), self._difference.settings), None, None)

    def _told_apart(self, name: str, mask: pl.Series, rows: pl.Series, least: int) -> bool:
        """Whether the expected values of the rows explained are several: one that is everywhere proves nothing."""
        if not mask.any():
            return False
        one = self._difference.pairs[name]
        values = (one.e_value if one.e_value is not None else one.e_key).gather(
            self._e_rows.gather(rows.filter(mask)).cast(pl.UInt32)
        )
        return values.drop_nulls().n_unique() >= least


class _Sampled:
    """Columns of which some rows are looked at, all columns at a time."""

    def __init__(self, columns: Mapping[str, ReadColumn]) -> None:
        self._columns = {str(at): (name, column) for at, (name, column) in enumerate(columns.items())}
        kept = {at: one.series for at, (_, one) in self._columns.items() if one.series is not None}
        self._frame = pl.DataFrame(kept)

    def like(
        self, wanted: tuple[ReadColumn, pl.Series], rows: pl.Series, settings: ComparisonSettings, least: int
    ) -> set[str]:
        """The columns that have about a column's values in at least so many of these rows: roughly, so that all that
        are the same by the rules are among them."""
        column, values = wanted
        tests: list[pl.Expr] = []
        room = 2 * settings.relative + 1e-9
        still = (
            2 * settings.absolute + 1e-9 + (0.0 if settings.decimals is None else 10.0**-settings.decimals)
        )
        for at, (_, other) in self._columns.items():
            if at not in self._frame.columns or not _kin(column, other):
                continue
            one = _plain(pl.col(at), other)
            w = pl.col("wanted")
            size = pl.max_horizontal(w.abs(), one.abs()) if column.kind in _NUMBERS else None
            near = one == w if size is None else (one == w) | ((one - w).abs() <= still + room * size)
            tests.append((true(near) | (one.is_null() & w.is_null())).sum().alias(at))
        if not tests:
            return set()
        some = self._frame.select(pl.all().gather(rows)).with_columns(values.alias("wanted"))
        counts = some.select(tests).row(0, named=True)
        return {self._columns[at][0] for at, count in counts.items() if count >= least}


_NUMBERS = ("exact", "float")


def _plain(values: pl.Expr, column: ReadColumn) -> pl.Expr:
    """Values as they are compared roughly: numbers as floats, of times and texts that may be times the day."""
    if column.kind not in _NUMBERS:
        return values.cast(pl.String).str.head(_DAY)
    return values.cast(pl.Float64) / 10.0 ** (column.scale if column.kind == "exact" else 0)


def _shown(column: ReadColumn, rows: pl.Series) -> tuple[ReadColumn, pl.Series]:
    """A column, and its values in some rows, to be compared roughly."""
    if column.series is None:
        return column, pl.repeat(None, len(rows), dtype=pl.Null, eager=True)
    frame = pl.DataFrame({"v": column.series.gather(rows)})
    return column, frame.select(_plain(pl.col("v"), column)).to_series()


def _kin(expected: ReadColumn, actual: ReadColumn) -> bool:
    if expected.kind in _NUMBERS and actual.kind in _NUMBERS:
        return True
    kinds = {expected.kind, actual.kind}
    if kinds == {"text", "time"}:  # the dates of an answer are texts
        return not (declared_text(expected) or declared_text(actual))
    return len(kinds) == 1 and kinds <= {"text", "time"}


def renamed(difference: Difference) -> tuple[dict[str, str], int, int]:
    """By each column that the answer lacks the one of its own that holds its values; how many values of these
    are the same, of how many. Where no column is shared, values are compared whatever their rows."""
    found: dict[str, str] = {}
    same = every = 0
    e_rows, a_rows = difference.both_rows()
    e_rows, a_rows = e_rows.cast(pl.UInt32), a_rows.cast(pl.UInt32)
    as_sets = not difference.pairs
    for name in difference.missing_columns[:_MOST]:
        wanted = difference.lacking.get(name)
        if wanted is None or wanted.kind == "null":
            continue
        best, chosen = 0.0, ""
        for other, column in list(difference.surplus.items())[:_MOST]:
            if other in found.values() or not _kin(wanted, column):
                continue
            if not as_sets and len(e_rows) > 10 * _SAMPLE:  # of many rows some first
                e, a = e_rows.head(_SAMPLE), a_rows.head(_SAMPLE)
                few = pair(name, taken(wanted, e), taken(column, a), difference.settings)
                if pair_same(few, None, None).sum() < _SAMPLE // 5:
                    continue
            one = pair(name, wanted, column, difference.settings)
            alike = 0.01 if _bare(name) == _bare(other) else 0.0
            if as_sets:
                if difference.lengths[0] != difference.lengths[1]:
                    continue
                share = 1.0 if match_rows([one]) is not None else 0.0
            elif len(e_rows):
                share = int(pair_same(one, e_rows, a_rows).sum()) / len(e_rows)
            else:
                continue
            if share >= _LIKELY and share + alike > best and (_varied(one) or alike or len(e_rows) == 1):
                best, chosen = share + alike, other
        if chosen:
            rows = difference.lengths[0] if as_sets else len(e_rows)
            found[name] = chosen
            same, every = same + round(min(best, 1.0) * rows), every + rows
    return found, same, every


def pivoted(difference: Difference) -> tuple[str, tuple[str, ...], bool] | None:
    """A column whose values are columns on the other side, with those; whether the answer has the columns."""
    missing, surplus = difference.missing_columns[:_MOST], list(difference.surplus)[:_MOST]
    for columns, names, wide in ((difference.lacking, surplus, True), (difference.surplus, missing, False)):
        for name, column in columns.items():
            if column.kind != "text" or column.series is None:
                continue
            held = {_bare(value) for value in column.series.drop_nulls().unique().head(_SAMPLE).to_list()}
            found = tuple(other for other in names if other != name and _bare(other) in held - {""})
            if len(found) >= 2:
                return name, found, wide
    return None


def _bare(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _varied(one: ColumnPair) -> bool:
    values = one.e_value if one.e_value is not None else one.e_key
    return values.drop_nulls().n_unique() >= min(3, max(len(values), 1))


def displaced(expected: pl.Series, actual: pl.Series, wrong: pl.Series) -> Iterator[ValueChange]:
    """Values of a neighbouring row, in reverse order, or in any other.

    Args:
        expected, actual: the column in all rows that both sides have, in expected order (null: nothing).
        wrong: which of these differ; the masks are of the wrong ones alone.
    """
    count = int(wrong.sum())
    if count < 3:
        return
    frame = {"e": expected, "a": actual, "w": wrong}
    distinct = _distinct(expected.filter(wrong).drop_nulls())
    if distinct < 3:
        return
    if int(_alike(frame, pl.col("e")).sum()) * 2 > count:
        return  # the numbers differ by less than a float tells apart: which row's a value is cannot be said
    at = wrong.arg_true()
    at = at if count <= 10 * _SAMPLE else at.gather_every(count // _SAMPLE)
    some, every = actual.gather(at), at.cast(pl.Int64)

    def hardly(places: pl.Series) -> bool:
        """Whether few of some rows have what is expected in these."""
        there = places.set((places < 0) | (places >= len(expected)), None)
        right = _alike({"e": expected.gather(there), "a": some, "w": at.is_not_null()}, pl.col("e"))
        return int(right.sum()) * 4 < len(at)

    for step in (-1, 1, -2, 2):
        if hardly(every + step):
            continue
        mask = _alike(frame, pl.col("e").shift(-step))
        if _surprising(mask, distinct):
            every_one = bool((mask | _beyond(frame, step)).all())
            yield ValueChange("neighbour", mask, {"step": step}, sure=every_one)
    if not hardly(len(expected) - 1 - every):
        mask = _alike(frame, pl.col("e").reverse())
        if _surprising(mask, distinct):
            yield ValueChange("reversed", mask, sure=False)
    e, a = expected.filter(wrong), actual.filter(wrong)
    if distinct >= 4 and e.null_count() == a.null_count() and _same_values(e.drop_nulls(), a.drop_nulls()):
        yield ValueChange("permuted", pl.repeat(True, count, eager=True), sure=False)


def _beyond(frame: dict[str, pl.Series], step: int) -> pl.Series:
    """The wrong rows that have no such neighbour, and nothing or 0 for it."""
    at = pl.int_range(len(frame["e"]), eager=True)
    outside = (at + step < 0) | (at + step >= len(at))
    nothing = (
        pl.col("a").is_null() | (pl.col("a") == 0) if frame["a"].dtype.is_numeric() else pl.col("a").is_null()
    )
    return (series(frame, true(nothing)) & outside).filter(frame["w"])


def _distinct(values: pl.Series) -> int:
    """How many values are different; of many rows no more are counted than prove anything."""
    some = values.head(_SAMPLE).n_unique()
    return some if some >= _PROVES or len(values) <= _SAMPLE else values.n_unique()


def _same_values(e: pl.Series, a: pl.Series) -> bool:
    """Whether both have the same values whatever their order, floats but for their noise. Two sums of hashes tell
    without sorting."""
    if all(e.hash(seed).sum() == a.hash(seed).sum() for seed in (1, 2)):
        return True
    if not e.dtype.is_float():
        return False  # a single other value is another multitude
    e, a = e.sort(), a.sort()
    return bool(_alike({"e": e, "a": a, "w": pl.repeat(True, len(e), eager=True)}, pl.col("e")).all())


def _alike(frame: dict[str, pl.Series], wanted: pl.Expr) -> pl.Series:
    """In which of the wrong rows the actual value is the wanted one. Of numbers that are large beside what
    they vary by a billionth is much: then what they vary by counts."""
    a = pl.col("a")
    if not frame["a"].dtype.is_float():
        return series(frame, true(a == wanted)).filter(frame["w"])
    varies = number(frame["e"].max()) - number(frame["e"].min())
    room = pl.min_horizontal(1e-9 * a.abs() + 1e-12, pl.lit(1e-6 * varies))
    return series(frame, true((a - wanted).abs() <= room)).filter(frame["w"])


def _surprising(mask: pl.Series, distinct: int) -> bool:
    rows = int(mask.sum())
    return rows >= 3 and rows * 2 > len(mask) and rows * math.log10(distinct) >= 2
