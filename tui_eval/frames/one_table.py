"""Two frames as one table: each row once, what differs as `26.0→24.0`. For the app and every report.

Pure values over a `Difference`; rows are made when they are asked for, so that a million of them open at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import polars as pl

from tui_eval.frames.cells import told_apart
from tui_eval.frames.typed_columns import declared_text, holds_days, whole_numbers
from tui_eval.frames.value_texts import plain_moment
from tui_eval.guard.text import clip

if TYPE_CHECKING:
    from tui_eval.frames.cells import AlignedRow, Cell, Status
    from tui_eval.frames.difference import Difference
    from tui_eval.frames.pairs import ColumnPair
    from tui_eval.frames.typed_columns import ReadColumn
    from tui_eval.model import DataDetails

CellState = Literal["same", "near", "differs", "missing", "extra", "lacking"]
"""`near`: equal within the tolerance, or written otherwise; `lacking`: the answer has no such column."""
ARROW = "→"
_MARKS = {"same": " ", "different": "≠", "missing": "−", "extra": "+"}


@dataclass(frozen=True, slots=True)
class TableColumn:
    """The head of a column: its name, the kind of its expected values in a word (`integer`, `date`), whether it is
    part of the key, whether the answer lacks it, and in how many rows that both sides have it differs.

    `days`: its values are dates alone. `numeric`: its values stand at the right. `given` is the kind of the
    answer's values where that is another one which cannot stand for it. `verbatim`: it is text in the
    database, and shown as it is.
    """

    name: str
    kind: str
    key: bool = False
    missing: bool = False
    apart: int = 0
    days: bool = False
    numeric: bool = False
    given: str = ""
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell of the one table; a text is None where that side has none. Dates are without a midnight; texts whose
    ends or whose kind would not be seen are in quotes. `why` says why it differs."""

    state: CellState
    expected: str | None
    actual: str | None
    why: str = ""

    @property
    def text(self) -> str:
        """What stands in the cell: `24.0`, or `26.0→24.0`."""
        if self.state == "differs":
            return f"{self.expected}{ARROW}{self.actual}"
        return (self.actual if self.state == "extra" else self.expected) or ""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of the one table: its aligned number, its mark (`≠`, `−` missing, `+` extra, `×2` the second row of the
    answer with its key, `↕` in another place, a blank), and its cells."""

    number: int
    mark: str
    cells: tuple[TableCell, ...]
    repeat: int = 1


class OneTable:
    """The one table of a difference.

    `columns` are the heads; `row` gives any aligned row, `differing` the numbers of those that are looked for, in
    the order in which they stand. `line` and `order` say in words how many there are of what.
    """

    def __init__(self, difference: Difference) -> None:
        difference.key_first()
        self.difference = difference
        self.expected_rows, self.actual_rows = difference.lengths
        # an answer without rows has no columns: that says nothing of them
        self.lacking = tuple(difference.missing_columns) if self.actual_rows else ()

    def __len__(self) -> int:
        return len(self.difference)

    @cached_property
    def columns(self) -> tuple[TableColumn, ...]:
        """The expected columns, those of the key first."""
        apart = self.difference.differing_cells()
        return tuple(self._head(name, apart.get(name, 0)) for name in self.difference.columns)

    def _head(self, name: str, apart: int) -> TableColumn:
        one = self.difference.pairs.get(name)
        column = one.expected if one is not None else self.difference.lacking.get(name)
        if one is not None and not self.expected_rows:
            column = one.actual  # no rows tell what is expected
        days = column is not None and holds_days(column)
        kind = _kind(column, days)
        numeric = kind in ("integer", "decimal", "number")
        given = ""
        if one is not None:
            other = _kind(one.actual, kind != "text" and holds_days(one.actual))
            nothing = {kind, other} & {"null", ""}
            if other != kind and not nothing and not _stands_for(kind, other, one):
                given = other
        verbatim = column is not None and declared_text(column)
        return TableColumn(
            name,
            kind,
            name in self.difference.key,
            name in self.lacking,
            apart,
            days,
            numeric,
            given,
            verbatim,
        )

    @cached_property
    def differing(self) -> pl.Series:
        """The numbers of the rows that differ, are missing or too many, ascending."""
        return self.difference.rows_apart

    @property
    def missing(self) -> int:
        """Rows that the answer lacks."""
        return len(self) - self.actual_rows

    @property
    def extra(self) -> int:
        """Rows that only the answer has."""
        return len(self) - self.expected_rows

    @property
    def apart(self) -> int:
        """Rows that both sides have and that differ."""
        return len(self.differing) - self.missing - self.extra

    @cached_property
    def moved(self) -> frozenset[int]:
        """The rows that stand elsewhere in the answer; none where the order does not count."""
        return frozenset(self.difference.moved()) if self.difference.settings.ordered else frozenset()

    def row(self, number: int) -> TableRow:
        """An aligned row.

        Raises:
            IndexError: there is no such row.
        """
        found = self.difference.row(number)
        cells = tuple(self.cell(found, at) for at in range(len(self.columns)))
        return TableRow(number, self.mark(found), cells, self.difference.repeated(number) or 1)

    def mark(self, row: AlignedRow) -> str:
        """The mark of an aligned row."""
        if row.status == "extra" and (repeat := self.difference.repeated(row.number)):
            return f"×{repeat}"
        mark = _MARKS[row.status]
        if row.status == "different" and not self.difference.apart_in(row.number):
            mark = " "  # only in columns that the answer lacks: their heads say so
        return "↕" if mark == " " and row.number in self.moved else mark

    def cell(self, row: AlignedRow, at: int) -> TableCell:
        """One cell of an aligned row."""
        return table_cell(row.status, row.cells[at], self.columns[at])

    def sampled(self, at: int, numbers: Sequence[int]) -> list[TableCell]:
        """The cells of a column in some aligned rows, without why they differ."""
        head = self.columns[at]
        return [
            table_cell(status, cell, head) for status, cell in self.difference.sampled(head.name, numbers)
        ]

    @property
    def order(self) -> str:
        """Where the order counts and only it differs, that in one line; else nothing."""
        if len(self.differing) or self.lacking or not self.moved:
            return ""
        return f"row order differs: {len(self.moved):,} of {self.expected_rows:,} rows stand elsewhere"

    @property
    def line(self) -> str:
        """What differs, in one line: `3 of 99 rows differ in amount · − 2 missing · key: order_id`."""
        if self.order:
            return self.order
        parts: list[str] = []
        names = sorted((c for c in self.columns if c.apart), key=lambda c: -c.apart)
        if self.apart and names:  # where the answer has none of the columns, these are what is said
            shown = ", ".join(f"{c.name} {c.apart:,}" if len(names) > 1 else c.name for c in names[:3])
            more = f", {len(names) - 3} more" if len(names) > 3 else ""
            verb = "differs" if self.apart == 1 else "differ"
            rows = "row" if self.expected_rows == 1 else "rows"
            parts.append(f"≠ {self.apart:,} of {self.expected_rows:,} {rows} {verb} in {shown}{more}")
        parts += [f"− {self.missing:,} missing"] if self.missing else []
        repeats = len(self.difference.repeats) if self.extra else 0
        parts += [f"× {repeats:,} repeated"] if repeats else []
        parts += [f"+ {self.extra - repeats:,} extra"] if self.extra > repeats else []
        parts += [f"− column {name} missing" for name in self.lacking[:3]]
        parts += [f"− {len(self.lacking) - 3} more columns missing"] if len(self.lacking) > 3 else []
        if not parts:
            return f"all {self.expected_rows:,} rows are the same"
        key = self.difference.key
        parts.append(f"key: {', '.join(key)}" if key else "no key: aligned by content")
        return " · ".join(parts)

    def fact(self) -> tuple[str, str]:
        """What differs in few words, `status delivered→shipped in 1 of 181 rows`, and what of it has no figures,
        `status differs`, by which cases that fail alike are found. Both empty where columns alone are missing."""
        if self.order:
            return self.order, "row order differs"
        parts = [self._apart_fact()] if self.apart and any(one.apart for one in self.columns) else []
        repeats = len(self.difference.repeats) if self.extra else 0
        rows = f"{self.expected_rows:,} row{'s' if self.expected_rows != 1 else ''}"
        if self.missing:
            parts.append((f"{self.missing:,} of {rows} missing", "rows missing"))
        if repeats:
            parts.append((f"{repeats:,} of {self.actual_rows:,} rows repeated", "rows repeated"))
        if self.extra > repeats:
            extra = self.extra - repeats
            parts.append((f"{extra:,} row{'s' if extra > 1 else ''} too many", "rows too many"))
        if parts and self.actual_rows and (lacking := self.difference.missing_columns):
            words = f"{'columns' if len(lacking) > 1 else 'column'} {_some_of(lacking)} missing"
            parts.insert(0, (words, words))
        return "; ".join(words for words, _ in parts), "; ".join(words for _, words in parts)

    def _apart_fact(self) -> tuple[str, str]:
        """Of the rows that both sides have."""
        columns = sorted((one for one in self.columns if one.apart), key=lambda one: -one.apart)
        names = _some_of([one.name for one in columns])
        general = f"{names} differ{'s' if len(columns) == 1 else ''}"
        if self.apart == 1 and len(columns) == 1:
            cell = next(
                found
                for number in self.differing.to_list()
                for found in self.row(number).cells
                if found.state == "differs"
            )
            sides = clipped_sides(cell.expected or "", cell.actual or "", _WORD)
            return f"{names} {ARROW.join(sides)} in 1 of {self.expected_rows:,} rows", general
        return f"{general} in {self.apart:,} of {self.expected_rows:,} rows", general


_NAMED = 3
_WORD = 24


def _some_of(columns: Sequence[str]) -> str:
    from tui_eval.frames.diagnosis import name_of

    more = len(columns) - _NAMED
    named = ", ".join(clip(name_of(one), _WORD) for one in columns[:_NAMED])
    return named + (f" and {more} more" if more > 0 else "")


def clipped_sides(expected: str, actual: str, most: int) -> tuple[str, str]:
    """The two values of a cell, each of at most so many characters: cut at the beginning, where they would read alike
    otherwise."""
    shortest = min(len(expected), len(actual))
    if max(len(expected), len(actual)) <= most or expected == actual:
        return clip(expected, most), clip(actual, most)
    at = next((at for at in range(shortest) if expected[at] != actual[at]), shortest)
    if at < most - _TOLD or at < _TOLD:
        return clip(expected, most), clip(actual, most)
    start = max(at - most // 2, 1)
    return f"…{clip(expected[start:], most - 1)}", f"…{clip(actual[start:], most - 1)}"


_TOLD = 4
"""Characters of what differs that are seen."""


def table_of_details(
    details: DataDetails, expected: pl.DataFrame | None = None, actual: pl.DataFrame | None = None
) -> OneTable:
    """The one table of a recorded comparison, aligned as it was judged.

    Args:
        expected, actual: the whole frame of a side where the record has only its first rows.
    """
    from tui_eval.frames.comparison_rules import ComparisonSettings
    from tui_eval.frames.difference import align, know_queries

    kinds = details.settings.get("types")
    types = {str(name): str(kind) for name, kind in kinds.items()} if isinstance(kinds, Mapping) else {}
    sides = (
        details.expected or [] if expected is None else expected,
        details.actual or [] if actual is None else actual,
    )
    settings = ComparisonSettings.kept(details.settings)
    difference = align(*sides, settings, details.columns or None, types)
    know_queries(difference, details)
    return OneTable(difference)


def table_cell(status: Status, cell: Cell, column: TableColumn) -> TableCell:
    """A cell of the one table from one of an aligned row, of which this became."""
    expected, actual = cell.expected, cell.actual
    if not column.verbatim:
        expected, actual = plain_moment(expected, column.days), plain_moment(actual, column.days)
    if status in ("missing", "extra"):
        return TableCell(status, expected, actual)
    if column.missing or cell.why == "column missing":
        return TableCell("lacking", expected, None, cell.why)
    if cell.same:
        near = cell.why and expected != actual  # `2024-05-20` for a date is how JSON writes it
        return TableCell("near" if near else "same", expected, actual, cell.why if near else "")
    if expected == actual:  # what was left out is what differs
        expected, actual = expected if column.days and expected != cell.actual else cell.expected, cell.actual
    return TableCell("differs", *told_apart(expected, actual, cell.kinds), cell.why)


_NUMBERS = {"integer", "number", "decimal"}
"""Kinds of which JSON has one: `3` and `3.0` are the same."""
_AS_TEXT = ("date", "timestamp", "time", "decimal", "interval")
"""Kinds that JSON can only write as texts."""


def _stands_for(kind: str, other: str, one: ColumnPair) -> bool:
    """Whether values of another kind may be those that are expected: numbers may where both sides are whole, or
    neither is."""
    if one.expected.type_name == "BOOLEAN" and {kind, other} == {"integer", "boolean"}:
        return True  # SQLite's
    if {kind, other} <= _NUMBERS:
        return whole_numbers(one.expected) == whole_numbers(one.actual)
    return other == "text" and kind in _AS_TEXT


_WORDS = {
    "bool": "boolean",
    "float": "number",
    "text": "text",
    "nested": "object",
    "mixed": "mixed",
    "null": "null",
}


def _kind(column: ReadColumn | None, days: bool) -> str:
    if column is None:
        return ""
    if column.kind == "time":
        clock = column.type_name.upper().startswith("TIME") and not column.type_name.upper().startswith(
            "TIMESTAMP"
        )
        return "date" if days else "time" if clock else "timestamp"
    if days:
        return "date"
    if column.kind == "exact":
        return "integer" if column.integral or not column.scale else "decimal"
    if column.kind == "nested" and (column.type_name.endswith("]") or _only_lists(column)):
        return "list"
    if column.kind == "nested" and column.type_name.upper() == "INTERVAL":
        return "interval"
    if column.kind == "mixed" and all(type(cell) in (int, type(None)) for cell in column.raw or ("",)):
        return "integer"  # beyond 128 bits, or nearly
    return _WORDS[column.kind]


def _only_lists(column: ReadColumn) -> bool:
    """Whether a nested column of JSON values has no objects."""
    values = [cell for cell in column.raw or () if cell is not None]
    return bool(values) and all(isinstance(cell, list | tuple) for cell in values)
