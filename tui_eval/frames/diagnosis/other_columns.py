"""Values that stand in another column or in another row than they should."""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from tui_eval.frames.diagnosis.changes import ValueChange, series, true
from tui_eval.frames.difference import Difference
from tui_eval.frames.matching import match_rows
from tui_eval.frames.pairing import pair
from tui_eval.frames.pairs import ColumnPair, pair_same
from tui_eval.frames.typed_columns import ReadColumn

_MOST = 40
_LIKELY = 0.8
_SAMPLE = 200


class OtherColumns:
    """Where the values of a column stand instead; what was compared once is not compared again."""

    def __init__(self, difference: Difference, wrong: dict[str, pl.Series]) -> None:
        """`wrong` are by column the numbers of the aligned rows (that both sides have) in which it differs."""
        self._difference = difference
        self._wrong = {name: rows for name, rows in wrong.items() if len(rows)}
        self._e_rows, self._a_rows = difference.aligned()
        self._made: dict[tuple[str, str, str], ColumnPair | None] = {}

    def changes(self, name: str) -> Iterator[ValueChange]:
        """Exchanged with another column, holding what another should hold, or held by another of the answer."""
        rows = self._wrong[name]
        actual = {other: one.actual for other, one in self._difference.pairs.items() if other != name}
        for other in [other for other in self._wrong if other != name][:_MOST]:
            there = self._same(name, other, actual[other], rows)  # the expected values, in another column
            if there is None:
                continue
            here = self._same(other, name, self._difference.pairs[name].actual, rows)
            wrong_too = rows.is_in(self._wrong[other].implode())
            if here is not None and self._told_apart(name, there & here & wrong_too, rows, 1):
                yield ValueChange("swapped", there & here & wrong_too, {"with": other})
        for other, column in list(self._difference.surplus.items())[:_MOST]:
            there = self._same(name, other, column, rows)
            if there is not None and self._told_apart(name, there, rows, 2):
                yield ValueChange("elsewhere", there, {"name": other})
        own = self._difference.pairs[name].actual
        for other in [other for other in self._difference.pairs if other != name][:_MOST]:
            here = self._same(other, name, own, rows)
            if here is not None and self._told_apart(other, here, rows, 3):
                yield ValueChange("other_column", here, {"holds": other}, sure=False)

    def _same(self, name: str, other: str, column: ReadColumn, rows: pl.Series) -> pl.Series | None:
        """Whether a column of the answer has in these rows what `name` is expected to have; None: hardly."""
        expected = self._difference.pairs[name].expected
        if not _kin(expected, column):
            return None
        if (name, other, "") not in self._made:
            self._made[name, other, ""] = pair(name, expected, column, self._difference.settings)
        one = self._made[name, other, ""]
        assert one is not None
        e, a = self._e_rows.gather(rows).cast(pl.UInt32), self._a_rows.gather(rows).cast(pl.UInt32)
        if len(rows) > _SAMPLE and pair_same(one, e.head(_SAMPLE), a.head(_SAMPLE)).sum() < _SAMPLE // 5:
            return None
        return pair_same(one, e, a)

    def _told_apart(self, name: str, mask: pl.Series, rows: pl.Series, least: int) -> bool:
        """Whether the expected values of the rows explained are several: one that is everywhere proves nothing."""
        if not mask.any():
            return False
        one = self._difference.pairs[name]
        values = (one.e_value if one.e_value is not None else one.e_key).gather(
            self._e_rows.gather(rows.filter(mask)).cast(pl.UInt32)
        )
        return values.drop_nulls().n_unique() >= least


def _kin(expected: ReadColumn, actual: ReadColumn) -> bool:
    numbers = ("exact", "float")
    if expected.kind in numbers and actual.kind in numbers:
        return True
    return (
        expected.kind == actual.kind and expected.kind in ("text", "time", "bool") and expected.kind != "bool"
    )


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
    numeric = expected.dtype.is_float()
    distinct = expected.filter(wrong).drop_nulls().n_unique()
    if distinct < 3:
        return
    for step in (-1, 1, -2, 2):
        mask = _alike(frame, pl.col("e").shift(-step), numeric)
        if _surprising(mask, distinct):
            yield ValueChange("neighbour", mask, {"step": step}, sure=False)
    mask = _alike(frame, pl.col("e").reverse(), numeric)
    if _surprising(mask, distinct):
        yield ValueChange("reversed", mask, sure=False)
    e, a = expected.filter(wrong), actual.filter(wrong)
    if distinct >= 4 and e.null_count() == a.null_count():
        e, a = e.drop_nulls().sort(), a.drop_nulls().sort()
        if _alike({"e": e, "a": a, "w": pl.repeat(True, len(e), eager=True)}, pl.col("e"), numeric).all():
            yield ValueChange("permuted", pl.repeat(True, count, eager=True), sure=False)


def _alike(frame: dict[str, pl.Series], wanted: pl.Expr, numeric: bool) -> pl.Series:
    a = pl.col("a")
    same = (a - wanted).abs() <= 1e-9 * a.abs() + 1e-12 if numeric else a == wanted
    return series(frame, true(same)).filter(frame["w"])


def _surprising(mask: pl.Series, distinct: int) -> bool:
    rows = int(mask.sum())
    return rows >= 3 and rows * 2 > len(mask) and rows * math.log10(distinct) >= 2
