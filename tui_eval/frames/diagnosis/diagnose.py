"""The diagnosis of a difference: every kind of finding tried, the strongest three kept.

Below a million rows it takes well under a second: whole columns are compared, never cells one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from tui_eval.frames.alignment import sorted_alike, turned_around
from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.diagnosis.changes import (
    ValueChange,
    one_value,
    opposite,
    running_total,
    shortest,
    window_changes,
)
from tui_eval.frames.diagnosis.conditions import Condition, separate
from tui_eval.frames.diagnosis.finding import Finding
from tui_eval.frames.diagnosis.granularity import floats, granularity
from tui_eval.frames.diagnosis.number_changes import (
    FIRST,
    HELD,
    as_floats,
    counted_nobody,
    large,
    large_changes,
    number_changes,
    whole_cells,
)
from tui_eval.frames.diagnosis.other_columns import OtherColumns, displaced, pivoted, renamed
from tui_eval.frames.diagnosis.row_sets import may_be_others, moved_key, other_weeks, row_findings
from tui_eval.frames.diagnosis.text_changes import (
    boolean_changes,
    elements,
    not_finite_changes,
    null_changes,
    text_changes,
    units,
)
from tui_eval.frames.diagnosis.time_changes import (
    epochs,
    moved_days,
    other_formats,
    spans,
    time_changes,
    written_otherwise,
    zoned_midnights,
)
from tui_eval.frames.difference import Difference, align, know_queries
from tui_eval.frames.pairing import canonical_texts
from tui_eval.frames.pairs import ColumnPair
from tui_eval.frames.typed_columns import declared_text, holds_days, is_nan, text_series
from tui_eval.frames.value_texts import canonical

if TYPE_CHECKING:
    from tui_eval.frames.databases import SqlResult
    from tui_eval.model import DataDetails

MOST = 3
"""Findings that are kept."""
_NEARLY_ALL = 0.9
_PART = 0.25
_COLUMNS = 60
_WEIGHTS = {
    "granularity": 1.3,
    "renamed": 1.1,
    "permuted": 0.7,
    "neighbour": 0.85,
    "reversed": 0.85,
    "other_column": 0.9,
    "null_filled": 0.7,
    "value_as_null": 0.7,
    "value_as_zero": 0.7,
    "spelling": 0.8,
    "punctuation": 0.9,
    "cut": 0.9,
    "time_cut": 0.95,
    "not_cut": 0.95,
    "not_rounded": 0.95,
    "offset": 0.9,
    "one_value": 0.85,
    "condition": 0.5,
    "one_column": 0.1,
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found, the strongest first, at most three.

    `key` are the columns that aligned the rows (empty: by content); `wrong`, `missing` and `extra` how many
    rows differ, are missing and are too many.
    """

    findings: tuple[Finding, ...] = ()
    key: tuple[str, ...] = ()
    wrong: int = 0
    missing: int = 0
    extra: int = 0

    @property
    def lines(self) -> list[str]:
        """Each finding in one line of plain English."""
        return [str(finding) for finding in self.findings]


def diagnose(
    expected: SqlResult | pl.DataFrame | Sequence[dict[str, Any]],
    actual: SqlResult | pl.DataFrame | Sequence[dict[str, Any]] | None,
    settings: ComparisonSettings | None = None,
    *,
    key: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
) -> Diagnosis:
    """What the differences between two frames have in common.

    Args:
        settings: tolerances and key of the comparison; `key` goes before its key.
        columns, types: as for `difference.align`.
    """
    settings = settings or ComparisonSettings()
    if key is not None:
        settings = ComparisonSettings(
            settings.rtol,
            settings.atol,
            settings.decimals,
            settings.ordered,
            tuple(key),
            settings.exact_integers,
        )
    return diagnosis_of(align(expected, actual, settings, columns, types))


def diagnosis_of(difference: Difference) -> Diagnosis:
    """What the differences of aligned frames have in common. Frames are read whole: call it in a thread."""
    facts = _Facts(difference)
    expected, actual = difference.lengths
    if not expected or not actual:
        return Diagnosis((), difference.key, 0, expected, actual)
    found = list(_candidates(facts))
    return Diagnosis(_strongest(found, facts), difference.key, facts.wrong_rows, facts.missing, facts.extra)


def diagnosis_of_details(
    details: DataDetails, folder_frame: Callable[[str], pl.DataFrame | None] | None = None
) -> Diagnosis:
    """What the rows of a recorded attempt that differ have in common; nothing where some of its rows are not at
    hand, or where they cannot be read.

    Args:
        folder_frame: the whole frame of a side (`expected`, `actual`) where the record has only its first rows.
    """
    sides: dict[str, Any] = {"expected": details.expected, "actual": details.actual}
    cut = details.settings.get("truncated")
    for side, rows in cut.items() if isinstance(cut, Mapping) else ():
        if side in sides and len(sides[side] or ()) < rows:
            sides[side] = folder_frame(side) if folder_frame is not None else None
    if sides["expected"] is None or sides["actual"] is None:
        return Diagnosis()
    kinds = details.settings.get("types")
    types = {str(name): str(kind) for name, kind in kinds.items()} if isinstance(kinds, Mapping) else {}
    settings = ComparisonSettings.kept(details.settings)
    try:
        difference = align(sides["expected"], sides["actual"], settings, details.columns or None, types)
        know_queries(difference, details)
        return diagnosis_of(difference)
    except BaseException as problem:
        # Polars panics with a BaseException; rows that were read from elsewhere may be of any kind
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        return Diagnosis()


@dataclass(slots=True)
class _Candidate:
    finding: Finding
    rows: int
    weight: float


class _Facts:
    """The rows that both sides have, and which of them differ in which column."""

    def __init__(self, difference: Difference) -> None:
        self.difference = difference
        e_rows, a_rows = difference.aligned()
        both = (e_rows.is_not_null() & a_rows.is_not_null()).arg_true()
        self.e_rows, self.a_rows = e_rows.gather(both).cast(pl.UInt32), a_rows.gather(both).cast(pl.UInt32)
        self.missing, self.extra = int(a_rows.is_null().sum()), int(e_rows.is_null().sum())
        self.wrong: dict[str, pl.Series] = {}
        """By column, which of the rows that both sides have differ."""
        cells = difference.same_cells()
        for name in difference.pairs:
            flags = ~cells.get_column(name).gather(both)
            if flags.any():
                self.wrong[name] = flags
        self.both = both
        flags = list(self.wrong.values())
        if flags:
            frame = pl.DataFrame({f"w{i}": flag for i, flag in enumerate(flags)})
            self.any_wrong = frame.select(pl.any_horizontal(pl.all()).alias("w")).to_series()
        else:
            self.any_wrong = pl.repeat(False, len(both), eager=True)
        self.wrong_rows = int(self.any_wrong.sum())
        self.total = max(self.wrong_rows + self.missing + self.extra, 1)


def _candidates(facts: _Facts) -> Iterator[_Candidate]:
    difference = facts.difference
    if difference.missing_columns and (turned := pivoted(difference)) is not None:
        name, columns, wide = turned
        finding = Finding("pivoted", columns, facts.total, facts.total, {"name": name, "wide": wide})
        yield _Candidate(finding, facts.total, 1.3)
        return
    names, same, every = renamed(difference) if difference.missing_columns else ({}, 0, 0)
    if names:
        finding = Finding("renamed", tuple(names), same, every, {"names": tuple(names.values())})
        yield _Candidate(finding, facts.total, _WEIGHTS["renamed"])
    if not difference.pairs:
        return
    lost = list(_lost_digits(facts))
    if lost:
        yield from lost
        return
    coarse = granularity(difference) if facts.missing or facts.extra or facts.wrong_rows else None
    if coarse is not None:
        yield _Candidate(coarse, facts.total, _WEIGHTS["granularity"])
        return
    if (moved := moved_key(difference)) is not None:
        yield _Candidate(moved, facts.total, 1.2)
        return
    if (weeks := other_weeks(difference)) is not None:
        yield _Candidate(weeks, facts.total, 1.2)
        return
    if (border := _day_border(facts)) is not None:
        yield border
        return
    changed = list(_of_values(facts)) if facts.wrong_rows else []
    told = any(one.finding.conclusive and one.rows >= _NEARLY_ALL * facts.wrong_rows for one in changed)
    others = not told and facts.wrong_rows >= max(_NEARLY_ALL * len(facts.both), 2)
    for finding, weight in row_findings(difference):
        if not (others and may_be_others(difference, finding)):
            yield _Candidate(finding, finding.explained, weight)
    if changed:
        yield from changed
    elif not facts.missing and not facts.extra and difference.settings.ordered and len(difference.moved()):
        moved = len(difference.moved())
        turned = turned_around(list(difference.pairs.values()))
        columns, said = ((turned[0],), {"descending": turned[1]}) if turned is not None else ((), {})
        if turned is None and (shared := sorted_alike(list(difference.pairs.values()))) is not None:
            columns = (shared,)
        yield _Candidate(Finding("order", columns, moved, moved, said), facts.total, 1.0)


def _day_border(facts: _Facts) -> _Candidate | None:
    """Sums by day of which part is on a neighbouring day throughout."""
    difference = facts.difference
    if len(difference.key) != 1 or not facts.wrong or difference.key_repeats:
        return None
    day = difference.pairs[difference.key[0]]
    if not (holds_days(day.expected) and day.e_key.dtype == day.a_key.dtype == pl.String):
        return None
    e_rows, a_rows = (rows.cast(pl.UInt32) for rows in difference.aligned())
    days = pl.select(pl.coalesce(day.e_key.gather(e_rows), day.a_key.gather(a_rows))).to_series()
    ways: set[int] = set()
    for name in facts.wrong:
        one = difference.pairs[name]
        if one.expected.kind not in ("exact", "float") or one.actual.kind not in ("exact", "float"):
            return None
        e, a = (floats(side).gather(rows) for side, rows in ((one.expected, e_rows), (one.actual, a_rows)))
        e, a = (
            pl.select(pl.when(rows.is_null()).then(0.0).otherwise(side)).to_series()
            for side, rows in ((e, e_rows), (a, a_rows))
        )
        ways.add(moved_days(days, e, a))
    if len(ways) != 1 or not (way := ways.pop()):
        return None
    found = Finding("day_border", tuple(facts.wrong), facts.total, facts.total, {"later": way > 0})
    return _Candidate(found, facts.total, 1.2)


def _lost_digits(facts: _Facts) -> Iterator[_Candidate]:
    """Columns of large whole numbers that the answer has as the floats nearest to them, however these are
    written, where that is all that differs: neighbours among them are one float."""
    difference = facts.difference
    e_rows, a_rows = difference.aligned()
    missing = e_rows.filter(a_rows.is_null()).cast(pl.UInt32)
    extra = a_rows.filter(e_rows.is_null()).cast(pl.UInt32)
    rest = set(facts.wrong)
    found: list[_Candidate] = []
    for name, one in difference.pairs.items():
        wrong = facts.wrong.get(name)
        rows = facts.e_rows.filter(wrong) if wrong is not None else missing.clear()
        if not all(map(large, whole_cells(one.expected, pl.concat([rows.head(FIRST), missing.head(FIRST)])))):
            continue
        wanted = whole_cells(one.expected, rows)
        lost, given = whole_cells(one.expected, missing), whole_cells(one.actual, extra)
        if not (wanted or lost) or not all(map(large, wanted + lost)):
            continue
        held = whole_cells(one.actual, facts.a_rows.filter(wrong)) if wrong is not None else []
        near = [as_floats(cell) for cell in lost if cell is not None]
        there = set(given)
        alike = sum(not there.isdisjoint(others) for others in near)
        told, every = len(wanted) + alike, len(wanted) + len(lost)
        if told * 2 <= every or not there.issubset(other for others in near for other in others):
            continue  # rows that are not there have lost no digits
        if all(
            cell in as_floats(right) for cell, right in zip(held, wanted, strict=True) if right is not None
        ):
            rest.discard(name)
            found.append(
                _Candidate(
                    Finding("lost_digits", (name,), told, every), round(facts.total * told / every), 1.2
                )
            )
    if not rest:
        yield from found


def _of_values(facts: _Facts) -> Iterator[_Candidate]:
    """How the values of each column were changed, columns that were changed alike taken together."""
    others = OtherColumns(facts.difference, {n: facts.both.filter(w) for n, w in facts.wrong.items()})
    groups: dict[tuple[str, str], list[tuple[str, ValueChange]]] = {}
    explained: set[str] = set()
    for name in list(facts.wrong)[:_COLUMNS]:
        total = int(facts.wrong[name].sum())
        tried: list[ValueChange] = []
        for change in _changes(facts, others, name):
            tried.append(change)
            if change.count == total:
                break
        for change in _accepted(tried, total):
            if change.code == "swapped":
                pair_of = sorted((name, str(change.parameters["with"])))
                groups.setdefault(("swapped", repr(pair_of)), []).append((name, change))
            elif change.code in ("elsewhere", "other_column"):
                groups[change.code, repr((name, sorted(change.parameters.items())))] = [(name, change)]
            else:
                key = (change.code, repr(sorted(change.parameters.items())))
                groups.setdefault(key, []).append((name, change))
            explained.add(name)
    for (code, _), members in groups.items():
        together = _merged(facts, code, members)
        if together.rows >= _NEARLY_ALL * together.finding.total or code == "swapped" or len(members) == 1:
            yield together
        else:  # the same happened to several columns, but in rows of their own
            yield from (_merged(facts, code, [member]) for member in members)
    yield from _places(facts, explained)


def _merged(facts: _Facts, code: str, members: list[tuple[str, ValueChange]]) -> _Candidate:
    """One finding of all columns that were changed in one way: a row is explained where all its cells are."""
    frame: dict[str, pl.Series] = {}
    length = len(facts.both)
    for index, (name, change) in enumerate(members):
        flags = facts.wrong[name]
        right = pl.repeat(False, length, eager=True).scatter(flags.arg_true().filter(change.mask), True)
        frame[f"w{index}"], frame[f"x{index}"] = flags, right | ~flags
    table = pl.DataFrame(frame).select(
        pl.any_horizontal(pl.col(r"^w\d+$")).alias("w"), pl.all_horizontal(pl.col(r"^x\d+$")).alias("x")
    )
    total = int(table.get_column("w").sum())
    rows = int(table.select((pl.col("w") & pl.col("x")).sum()).item())
    names = tuple(dict.fromkeys(name for name, _ in members))
    parameters = dict(members[0][1].parameters)
    if code == "swapped":
        names = tuple(dict.fromkeys((*names, parameters.pop("with"))))
    return _Candidate(Finding(code, names, rows, total, parameters), rows, _WEIGHTS.get(code, 1.0))


def _accepted(changes: list[ValueChange], total: int) -> Iterator[ValueChange]:
    """Of the ways in which a column was changed the one that explains most of its rows, then what explains
    the rest. One that may be chance counts where it explains nearly all of them."""
    left = pl.repeat(True, total, eager=True)
    for _ in range(2):
        rest = int(left.sum())
        best: tuple[int, ValueChange] | None = None
        for change in changes:
            count = int((change.mask & left).sum())
            nearly = count >= _NEARLY_ALL * rest and rest >= min(3, total)
            enough = nearly or (change.sure and count >= max(3, _PART * total))
            if count and enough and (best is None or count > best[0] * 1.02):
                best = (count, change)
        if best is None:
            return
        yield best[1]
        left = left & ~best[1].mask
        if not left.any():
            return


def _changes(facts: _Facts, others: OtherColumns, name: str) -> Iterator[ValueChange]:
    one, flags = facts.difference.pairs[name], facts.wrong[name]
    e_rows, a_rows = facts.e_rows.filter(flags), facts.a_rows.filter(flags)
    numeric = one.expected.kind in ("exact", "float")
    e, a = (_numbers(one, "e"), _numbers(one, "a")) if numeric else (one.e_key, one.a_key)
    if one.tolerant and not numeric:  # its keys are the texts beside numbers
        e, a = canonical_texts(one.expected), canonical_texts(one.actual)
    e_wrong, a_wrong = e.gather(e_rows), a.gather(a_rows)
    for change in boolean_changes(
        one.expected.kind, one.actual.kind, one.e_key.gather(e_rows), one.a_key.gather(a_rows)
    ):
        if change.count:
            yield change
    if one.expected.kind == one.actual.kind == "bool":
        yield from opposite(e.gather(facts.e_rows), a.gather(facts.a_rows), flags)
    strange = _strange(one, a, a_rows)
    given = a_wrong if strange is None else strange
    e_held = e_wrong
    if numeric and one.expected.kind == "float" and one.expected.series is not None:
        e_held = one.expected.series.gather(
            e_rows
        )  # NaN and infinity are nulls to be compared, not to be told
        yield from (change for change in not_finite_changes(e_held, given) if change.count)
    if strange is not None:
        yield from (change for change in units(e_wrong, strange) if change.count)
    if one.expected.kind == "nested" and e_wrong.dtype == a_wrong.dtype == pl.String:
        if one.actual.kind in ("exact", "float"):  # no text that was cut
            yield from (change for change in spans(e_wrong, a_wrong) if change.count)
            return
        yield from (change for change in elements(e_wrong, a_wrong) if change.count)
    if one.expected.kind == "time" and one.actual.kind == "text" and a_wrong.dtype == pl.String:
        yield from (change for change in other_formats(e_wrong, a_wrong) if change.count)
    if one.expected.kind == "time" and one.actual.kind in ("exact", "float"):
        yield from (change for change in epochs(e_wrong, a_wrong) if change.count)
    for change in null_changes(e_held, given):
        if change.count:
            yield change
    if declared_text(one.expected) and a_wrong.dtype == pl.String:
        yield from (change for change in written_otherwise(e_wrong, a_wrong) if change.count)
    moved = list(others.changes(name))
    yield from (change for change in moved if change.code != "other_column")
    if numeric:
        yield from counted_nobody(e, e_wrong, a_wrong)
        if (large := _beyond_floats(one, e_rows, a_rows)) is not None:
            yield from large_changes(*large)
        else:
            yield from _tried((partial(number_changes, name),), e_wrong, a_wrong)
    elif e_wrong.dtype == pl.String and a_wrong.dtype == pl.String:
        day = one.expected.type_name.upper() == "DATE"
        if day:
            yield from zoned_midnights(e_wrong, one.actual.cells_at(a_rows))
        for change in _tried((time_changes, text_changes), e_wrong, a_wrong):
            named = day and change.code == "zone_named"
            yield replace(change, parameters={"midnight": True}) if named else change
    yield from (change for change in moved if change.code == "other_column")
    if not facts.missing and not facts.extra and strange is None:
        yield from _of_all_rows(facts, name, e.gather(facts.e_rows), a.gather(facts.a_rows))
    if name not in facts.difference.key and int(flags.sum()) >= 3:
        for change in displaced(e.gather(facts.e_rows), a.gather(facts.a_rows), flags):
            # rows aligned by content: what is left over was paired so that other columns agree, which puts
            # a column that is right into other rows
            if facts.difference.key or change.code != "permuted":
                yield change


def _of_all_rows(facts: _Facts, name: str, e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """What is told by all rows of a column: both sides have the same number."""
    flags, pairs, key = facts.wrong[name], facts.difference.pairs, facts.difference.key
    if e.dtype.is_float():
        right = [one for one in pairs if one not in facts.wrong and not pairs[one].tolerant]
        orders = [
            canonical_texts(pairs[one].expected).gather(facts.e_rows)
            if (held := pairs[one].expected.series) is None
            else held.gather(facts.e_rows)
            for one in key
        ]
        few = right if len(e) <= _MANY else []
        parts = {one: pairs[one].e_key.gather(facts.e_rows) for one in few}
        yield from running_total(e, a, flags, orders, parts)
        yield from window_changes(e, a, flags, orders, parts)
    if len(a):
        shown = shortest(facts.difference.pairs[name].actual.cell(int(facts.a_rows[0])))
        yield from one_value(e, a, flags, shown)


_Way = Callable[[pl.Series, pl.Series], Iterator[ValueChange]]
_MANY, _SAMPLE = 10_000, 1_000


def _tried(ways: Sequence[_Way], e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """What the first of some ways finds that is meant for such values. Of many rows some are looked at first: what
    explains less than a tenth of them is not it."""
    many = len(e) > _MANY
    some = pl.int_range(len(e), dtype=pl.UInt32, eager=True).sample(_SAMPLE, seed=7) if many else None
    for way in ways:
        if some is None:
            if found := list(way(e, a)):
                yield from found
                return
        elif found := list(way(e.gather(some), a.gather(some))):
            if any(change.count * 10 >= _SAMPLE for change in found):
                yield from way(e, a)
            return


def _numbers(one: ColumnPair, side: str) -> pl.Series:
    """The numbers of a pair as Float64; null where there is none."""
    if side == "a" and one.actual.kind == "float" and one.actual.series is not None and not one.tolerant:
        return one.actual.series.fill_nan(None)  # its keys are cut, and infinity's is a number
    own = one.expected if side == "e" else one.actual
    if one.decimals is not None and own.kind in ("exact", "float"):
        return floats(own).fill_nan(None)  # as they are shown, not as they were rounded
    value, key = (one.e_value, one.e_key) if side == "e" else (one.a_value, one.a_key)
    found = key if value is None else value
    found = found.cast(pl.Float64, strict=False)
    return found / 10.0**one.scale if one.scale else found


def _beyond_floats(
    one: ColumnPair, e_rows: pl.Series, a_rows: pl.Series
) -> tuple[pl.Series, pl.Series] | None:
    """Whole numbers of both sides that differ by less than floats tell apart, as they are; None where floats
    will do."""
    if one.tolerant or one.scale or one.actual.kind == "float":
        return None
    if not (one.e_key.dtype.is_integer() and one.a_key.dtype.is_integer()):
        return None
    sides = one.e_key.gather(e_rows).cast(pl.Int128), one.a_key.gather(a_rows).cast(pl.Int128)
    largest = max(
        abs(cell) for side in sides for cell in (side.min(), side.max(), 0) if isinstance(cell, int)
    )
    return sides if largest >= HELD else None


def _strange(one: ColumnPair, numbers: pl.Series, rows: pl.Series) -> pl.Series | None:
    """The answer as texts where it has what is no number (a list, a boolean, a date too: nulls they are not);
    None where all can be read."""
    if one.expected.kind not in ("exact", "float") or one.actual.kind in ("exact", "float", "null"):
        return None
    cells = one.actual.cells
    unread = numbers.gather(rows).is_null()
    texts = [
        None if cells[row] is None or is_nan(cells[row]) else canonical(cells[row])
        for row in rows.filter(unread).to_list()
    ]
    if not any(text is not None for text in texts):
        return None
    at = unread.arg_true()
    held = numbers.gather(rows).cast(pl.String)
    return held.scatter(at, text_series(texts))


def _places(facts: _Facts, explained: set[str]) -> Iterator[_Candidate]:
    """Where the rows that differ are: in one column, in rows that a condition describes."""
    sets: dict[str, tuple[list[str], pl.Series]] = {}
    by_size = sorted(facts.wrong, key=lambda name: -int(facts.wrong[name].sum()))
    sets["all"] = (by_size, facts.any_wrong)
    for name in by_size[:3]:
        sets[name] = ([name], facts.wrong[name])
    columns = {name: one.expected for name, one in facts.difference.pairs.items()} | facts.difference.lacking
    done: list[pl.Series] = []
    for names, flags in sets.values():
        if any(flags.equals(other) for other in done):
            continue
        done.append(flags)
        if len(names) == 1 and _says_itself(facts, names[0], flags):
            continue
        found = separate(columns, facts.e_rows, flags, but=names, late=facts.difference.key)
        if found is not None:
            yield _Candidate(
                _where(names, found), found.found, _WEIGHTS["condition"] * (1 if found.exact else 0.8)
            )
            break
    only = by_size[0] if len(by_size) == 1 else ""
    if only and only not in explained and facts.wrong_rows >= 2 and len(facts.difference.pairs) > 2:
        finding = Finding("one_column", (only,), facts.wrong_rows, facts.wrong_rows, {}, conclusive=False)
        yield _Candidate(finding, facts.wrong_rows, _WEIGHTS["one_column"])


def _says_itself(facts: _Facts, name: str, flags: pl.Series) -> bool:
    """Whether a column differs wherever it could: in all rows but those that expect nothing or 0, or in all
    that expect nothing. A condition that finds these rows says nothing new."""
    one = facts.difference.pairs[name]
    values = (one.e_key if one.e_value is None else one.e_value).gather(facts.e_rows)
    nothing = values.is_null()
    if nothing.any() and (flags == nothing).all():
        return True
    if values.dtype.is_numeric():
        nothing = nothing | (values == 0).fill_null(False)
    return bool(nothing.filter(~flags).all())


def _where(names: list[str], found: Condition) -> Finding:
    parameters = {"where": found.where, "wrong": found.wrong, "of": tuple(names), "exact": found.exact}
    return Finding("condition", found.columns, found.found, found.total, parameters, conclusive=False)


def _strongest(found: list[_Candidate], facts: _Facts) -> tuple[Finding, ...]:
    order = sorted(found, key=lambda one: -one.weight * one.rows / facts.total)
    return tuple(replace(one.finding, own=facts.difference.own_query) for one in order[:MOST])
