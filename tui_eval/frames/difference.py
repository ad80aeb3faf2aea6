"""Where two frames differ, cell by cell, rows aligned; lazy, so that a million rows open at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tui_eval.frames.alignment import AlignmentKey, align_rows, find_key, moved_rows, unique_rows
from tui_eval.frames.cells import (
    AlignedRow,
    Cell,
    Cells,
    Status,
    beside_nothing,
    cell_text,
    compared,
    kind_of,
    text_beside,
    told_apart,
)
from tui_eval.frames.comparison_rules import ComparisonSettings
from tui_eval.frames.matching import row_hashes
from tui_eval.frames.pairing import pair
from tui_eval.frames.pairs import ColumnPair, pair_same
from tui_eval.frames.query_words import limits_rows
from tui_eval.frames.typed_columns import ReadColumn, column, column_names, from_cells, holds_days
from tui_eval.frames.value_texts import plain_moment

if TYPE_CHECKING:
    from tui_eval.frames.query_words import OwnQuery
    from tui_eval.frames.sql import SqlResult
    from tui_eval.model import DataDetails


_SHOWN = 20
_CELL = 80


class Difference:
    """The aligned rows of an expected and an actual frame.

    `columns` are the expected columns, `missing_columns` those the answer lacks, `key` the columns
    that aligned the rows (empty: by content), `lacking` the expected values of missing columns.
    Alignment is made when first asked for.
    """

    def __init__(
        self,
        pairs: list[ColumnPair],
        columns: Sequence[str],
        missing_columns: Sequence[str],
        expected_rows: int,
        actual_rows: int,
        settings: ComparisonSettings,
        in_order: bool = False,
        lacking: Mapping[str, ReadColumn] | None = None,
        surplus: Callable[[], dict[str, ReadColumn]] | None = None,
    ) -> None:
        self.columns = list(columns)
        self.missing_columns = list(missing_columns)
        self.settings = settings
        self._pairs = {one.name: one for one in pairs}
        self._lengths = (expected_rows, actual_rows)
        self._in_order = in_order
        self.lacking = dict(lacking or {})
        self._surplus = surplus
        self.limited: tuple[bool | None, bool | None] = (None, None)
        """Whether the expected query and the agent's own limit their rows; None: it is not known."""
        self.own_query: OwnQuery = ""
        self._aligned: tuple[pl.Series, pl.Series] | None = None
        self._flags: pl.DataFrame | None = None
        self._different: pl.Series | None = None
        self._key = AlignmentKey()

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that aligned the rows; empty: by content."""
        self._align()
        return self._key.names

    @property
    def key_given(self) -> bool:
        """Whether the key was asked for rather than found."""
        return bool(self.key) and self.key == self.settings.key

    @property
    def key_unique(self) -> bool:
        """Whether no two rows of a side share the key's values."""
        return unique_rows([self._pairs[name] for name in self.key])

    @cached_property
    def key_unique_in_expected(self) -> bool:
        """Whether no two expected rows share the key's values."""
        self._align()
        if not self._key.pairs:
            return False
        hashes = row_hashes(list(self._key.pairs), values=True)[0]
        return hashes.n_unique() == len(hashes)

    @cached_property
    def key_repeats(self) -> int:
        """How many rows of the answer have a key that another row of it has already."""
        self._align()
        return self._key.repeats()

    @property
    def key_loose(self) -> bool:
        """Whether the key's texts were compared without case, blanks, accents and zeros that do not count."""
        self._align()
        return self._key.loose

    def key_first(self) -> None:
        """Let the key's columns stand before the others."""
        self.columns.sort(key=lambda name: name not in self.key)

    @cached_property
    def repeats(self) -> pl.Series:
        """The numbers of the extra rows that repeat a row which stands above them, ascending: its key where that is
        unique in expected, else all of it."""
        return self._repeats.get_column("at")

    def repeated(self, index: int) -> int:
        """How often the row that extra row `index` repeats has come with it (2: once again); 0: it repeats none."""
        at = self.repeats.search_sorted(index) if len(self.repeats) else 0
        if at >= len(self.repeats) or self.repeats[at] != index:
            return 0
        return int(self._repeats.get_column("times")[at])

    def repeats_of(self, index: int) -> int | None:
        """The number of the row that extra row `index` repeats; None: it repeats none, or is not the first one to."""
        if self.repeated(index) != 2:
            return None
        return int(self._repeats.get_column("first")[int(self.repeats.search_sorted(index))])

    @property
    def most_repeated(self) -> int:
        """How often the row that is repeated most has come; 0: none is."""
        times = self._repeats.get_column("times").max()
        return int(times) if isinstance(times, int) else 0

    @cached_property
    def _repeats(self) -> pl.DataFrame:
        """By repeated row its number (`at`), how often it has come (`times`), and that of the first one (`first`)."""
        e_rows, a_rows = self._align()
        pairs = list(self._key.pairs) if self.key_unique_in_expected else list(self._pairs.values())
        if self._in_order or not pairs or not e_rows.null_count():
            return pl.DataFrame(schema={"at": pl.UInt32, "times": pl.UInt32, "first": pl.UInt32})
        hashes = row_hashes(pairs, values=True)[1]
        table = pl.DataFrame({"e": e_rows, "hash": hashes.gather(a_rows.cast(pl.UInt32))}).with_row_index(
            "at"
        )
        table = table.filter(pl.col("hash").is_not_null() & pl.col("hash").is_duplicated())
        times = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("hash").alias("times")
        table = table.with_columns(times, pl.col("at").first().over("hash").alias("first"))
        return table.filter((pl.col("times") > 1) & pl.col("e").is_null()).select("at", "times", "first")

    def __len__(self) -> int:
        return len(self._align()[0])

    def _align(self) -> tuple[pl.Series, pl.Series]:
        if self._aligned is None:
            pairs = list(self._pairs.values())
            if not self._in_order:
                self._key = find_key(pairs, self.settings.key)
            self._aligned = align_rows([] if self._in_order else pairs, self._key, self._lengths)
        return self._aligned

    @property
    def pairs(self) -> dict[str, ColumnPair]:
        """The columns that both sides have, by name."""
        return self._pairs

    @cached_property
    def surplus(self) -> dict[str, ReadColumn]:
        """The columns that the answer has beyond the expected ones; read when first asked for."""
        return self._surplus() if self._surplus is not None else {}

    def aligned(self) -> tuple[pl.Series, pl.Series]:
        """By aligned row, its row number on the expected and on the actual side; null: it has none."""
        return self._align()

    def place_of(self, expected: int) -> int:
        """The number of the aligned row of an expected one; 0: there is none."""
        return self._align()[0].index_of(expected) or 0

    def same_cells(self) -> pl.DataFrame:
        """By aligned row and shared column, whether the cells are the same; False where a side lacks the row."""
        return self._same().select([name for name in self._pairs])

    def compare_cells(self, progress: Callable[[int, int], None]) -> None:
        """Compare all cells now rather than when they are first asked for.

        Args:
            progress: Told which column of how many comes next.
        """
        self._same(progress)

    def _same(self, progress: Callable[[int, int], None] | None = None) -> pl.DataFrame:
        """Per column and aligned row, whether the cells are the same."""
        if self._flags is None:
            e_rows, a_rows = self._align()
            both = e_rows.is_not_null() & a_rows.is_not_null()
            flags: dict[str, pl.Series] = {}
            for number, (name, one) in enumerate(self._pairs.items(), 1):
                if progress is not None:
                    progress(number, len(self._pairs))
                flags[name] = pair_same(one, e_rows.cast(pl.UInt32), a_rows.cast(pl.UInt32)) & both
            flags |= {name: pl.repeat(False, len(e_rows), eager=True) for name in self.missing_columns}
            self._flags = pl.DataFrame(flags) if flags else pl.DataFrame({"": both})
        return self._flags

    def same_under(self, pairs: list[ColumnPair]) -> bool:
        """Whether every aligned row is the same by other pairs of the same columns."""
        e_rows, a_rows = self._align()
        if e_rows.null_count() or a_rows.null_count():
            return False
        unequal = [one for one in pairs if not self._same().get_column(one.name).all()]
        return all(bool(pair_same(one, e_rows, a_rows).all()) for one in unequal)

    def both_rows(self) -> tuple[pl.Series, pl.Series]:
        """The row numbers of both sides, of aligned rows that both have."""
        table = pl.DataFrame(dict(zip("ea", self._align(), strict=True))).drop_nulls()
        return table.get_column("e"), table.get_column("a")

    @property
    def lengths(self) -> tuple[int, int]:
        """Rows of the expected and of the actual side."""
        return self._lengths

    @property
    def shared_columns(self) -> list[str]:
        """The expected columns that the answer has."""
        return [name for name in self.columns if name in self._pairs]

    def differing_cells(self) -> dict[str, int]:
        """How many rows that both sides have differ in each shared column, of those where some do."""
        e_rows, a_rows = self._align()
        both = e_rows.is_not_null() & a_rows.is_not_null()
        counts = {name: int((self._same().get_column(name).not_() & both).sum()) for name in self._pairs}
        return {name: count for name, count in counts.items() if count}

    def moved(self) -> pl.Series:
        """The numbers of the aligned rows that stand elsewhere in the answer, ascending: the fewest whose
        moving would bring all into order."""
        return moved_rows(*self._align())

    @property
    def rows_apart(self) -> pl.Series:
        """The numbers of the aligned rows that differ in what both sides have: a column that the answer
        lacks does not count, unless it has none of them."""
        if not self.missing_columns or not self._pairs:
            return self.different_rows
        flags = self._same().drop(self.missing_columns)
        return flags.select(pl.all_horizontal(pl.all()).not_().alias("d")).get_column("d").arg_true()

    @property
    def different_rows(self) -> pl.Series:
        """The numbers of the aligned rows that differ, ascending."""
        if self._different is None:
            flags = self._same()
            self._different = (
                flags.select(pl.all_horizontal(pl.all()).not_().alias("d")).get_column("d").arg_true()
            )
        return self._different

    def next_difference(self, index: int, backwards: bool = False) -> int | None:
        """The nearest differing row after (or before) aligned row `index`; None: there is none."""
        rows = self.different_rows
        if backwards:
            place = int(rows.search_sorted(max(index, 0), side="left")) - 1
        else:
            place = int(rows.search_sorted(max(index, -1) + 1, side="left"))
        return int(rows[place]) if 0 <= place < len(rows) else None

    def status(self, index: int) -> Status:
        """What became of aligned row `index`."""
        e_rows, a_rows = self._align()
        if e_rows[index] is None:
            return "extra"
        if a_rows[index] is None:
            return "missing"
        return "same" if all(self._same().row(index)) else "different"

    def row(self, index: int) -> AlignedRow:
        """Aligned row `index` with its cells as texts.

        Raises:
            IndexError: there is no such row.
        """
        e_rows, a_rows = self._align()
        if not 0 <= index < len(e_rows):
            raise IndexError(index)
        e_row, a_row = e_rows[index], a_rows[index]
        names, flags = self.columns, self._same().row(index)
        status = _status(e_row, a_row, not all(flags))
        cells = Cells(lambda name: self._cell(name, index, e_row, a_row), names)
        return AlignedRow(index, status, e_row, a_row, cells)

    def rows_with_what_differs(self, indexes: pl.Series) -> list[AlignedRow]:
        """Some aligned rows, each only with the cells that are not the same: many at a time cost far less than
        one by one."""
        e_all, a_all = self._align()
        e_rows, a_rows = e_all.gather(indexes), a_all.gather(indexes)
        flags = self._same().select(pl.all().gather(indexes))
        found: list[list[Cell]] = [[] for _ in indexes]
        for name in self.columns:
            apart = flags.get_column(name).not_().arg_true()
            if not len(apart):
                continue
            e_some, a_some = e_rows.gather(apart), a_rows.gather(apart)
            one, lacks = self._pairs.get(name), self.lacking.get(name)
            there = one.expected if one is not None else lacks
            expected = there.cells_at(e_some) if there is not None else [None] * len(apart)
            actual = one.actual.cells_at(a_some) if one is not None else [None] * len(apart)
            places = zip(apart.to_list(), e_some.to_list(), a_some.to_list(), expected, actual, strict=True)
            for at, e_row, a_row, wanted, given in places:
                if one is not None and e_row is not None and a_row is not None:
                    found[at].append(compared(name, one, wanted, given, False))
                else:
                    known = there is not None and e_row is not None
                    texts = (
                        text_beside(one, wanted) if known else None,
                        text_beside(one, given) if one is not None and a_row is not None else None,
                    )
                    found[at].append(Cell(name, *texts, False, _lacks(one is None, e_row, a_row)))
        numbers = zip(indexes.to_list(), e_rows.to_list(), a_rows.to_list(), found, strict=True)
        return [AlignedRow(index, _status(e, a, bool(cells)), e, a, cells) for index, e, a, cells in numbers]

    def apart_in(self, index: int) -> list[int]:
        """The places of the shared columns in which aligned row `index` differs; of a row that a side lacks,
        all of them."""
        same = dict(zip(self._same().columns, self._same().row(index), strict=True))
        return [at for at, name in enumerate(self.columns) if name in self._pairs and not same[name]]

    def sampled(self, name: str, indexes: Sequence[int]) -> list[tuple[Status, Cell]]:
        """A column's cells in some aligned rows, without why they differ, and what became of each row: many at a time
        cost far less than one by one."""
        e_all, a_all = self._align()
        at = pl.Series(indexes, dtype=pl.UInt32)
        one = self._pairs.get(name)
        sides: list[tuple[list[str | None], list[str]]] = []
        there = (self.lacking.get(name), None) if one is None else (one.expected, one.actual)
        for side, rows in zip(there, (e_all.gather(at), a_all.gather(at)), strict=True):
            if side is None:
                sides.append(([None] * len(at), [""] * len(at)))
                continue
            values = list(zip(side.cells_at(rows), rows.is_not_null().to_list(), strict=True))
            sides.append(
                (
                    [text_beside(one, value) if known else None for value, known in values],
                    [kind_of(value) if known else "" for value, known in values],
                )
            )
        flags = self._same().select(pl.all().gather(at))
        apart = flags.select(pl.all_horizontal(pl.all()).not_()).to_series().to_list()
        same = flags.get_column(name).to_list() if name in flags.columns else [False] * len(at)
        numbers = zip(e_all.gather(at).to_list(), a_all.gather(at).to_list(), apart, strict=True)
        (e_texts, e_kinds), (a_texts, a_kinds) = sides
        return [
            (
                _status(e, a, bad),
                Cell(name, wanted, given, alike, "", beside_nothing(one, (wanted, given), kinds)),
            )
            for (e, a, bad), wanted, given, alike, kinds in zip(
                numbers, e_texts, a_texts, same, zip(e_kinds, a_kinds, strict=True), strict=True
            )
        ]

    def _cell(self, name: str, index: int, e_row: int | None, a_row: int | None) -> Cell:
        one = self._pairs.get(name)
        if one is None:
            there = self.lacking.get(name)
            expected = cell_text(there.cell(e_row)) if there is not None and e_row is not None else None
            return Cell(name, expected, None, False, _lacks(True, e_row, a_row))
        if e_row is None or a_row is None:
            expected = None if e_row is None else text_beside(one, one.expected.cell(e_row))
            actual = None if a_row is None else text_beside(one, one.actual.cell(a_row))
            return Cell(name, expected, actual, False, _lacks(False, e_row, a_row))
        same = bool(self._same().get_column(name)[index])
        return compared(name, one, one.expected.cell(e_row), one.actual.cell(a_row), same)

    def render(self, limit: int = _SHOWN) -> str:
        """The first differences as text: row, column, both values and how far apart they are."""
        lines: list[str] = []
        if self.missing_columns:
            lines.append("missing columns: " + ", ".join(self.missing_columns))
        if not self._pairs:
            return "\n".join(lines)
        rows = self.different_rows
        shown = 0
        whole = not self.missing_columns
        for index in (rows if whole else self.rows_apart).head(limit * 4).to_list():
            for line in self._lines(index):
                if shown == limit:
                    break
                lines.append(line)
                shown += 1
            if shown == limit:
                break
        if whole and len(rows) > 1:
            lines.append(f"{len(rows)} of {len(self)} rows differ")
        return "\n".join(lines)

    @cached_property
    def _days(self) -> frozenset[str]:
        """The columns in which only dates are expected."""
        return frozenset(name for name, one in self._pairs.items() if holds_days(one.expected))

    def _lines(self, index: int) -> list[str]:
        found = self.row(index)
        cells = [
            _of_days(cell) if cell.column in self._days else cell
            for cell in found.cells
            if cell.column not in self.missing_columns
        ]
        if found.status == "extra":
            return [f"extra row {_one(found.actual_index)}: {_values(cells, 'actual')}"]
        if found.status == "missing":
            return [f"missing row {_one(found.expected_index)}: {_values(cells, 'expected')}"]
        named = ", ".join(f"{c.column}={_clip(c.expected)}" for c in cells if c.column in self.key and c.same)
        place = f"row {_one(found.expected_index)}" + (f" ({named})" if named else "")
        return [
            f"{place}: {cell.column}: expected {wanted}, actual {given}"
            + (f" ({cell.why})" if cell.why and cell.why != "value" else "")
            for cell in cells
            if not cell.same
            for wanted, given in [_both(*told_apart(cell.expected, cell.actual, cell.kinds))]
        ]


def align(
    expected: SqlResult | pl.DataFrame | Sequence[dict[str, Any]],
    actual: SqlResult | pl.DataFrame | Sequence[dict[str, Any]] | None,
    settings: ComparisonSettings | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    *,
    in_order: bool = False,
) -> Difference:
    """Align two frames for the Data tab; also where they are equal or of different length.

    Args:
        in_order: the n-th row with the n-th, by no key.
        types: DuckDB's types of the expected columns, where rows that were kept as JSON do not say them.
    """
    settings = settings or ComparisonSettings()
    sides: list[Any] = []
    kinds: list[Mapping[str, str]] = []
    for side in (expected, actual if actual is not None else []):
        frame = getattr(side, "frame", None)
        sides.append(side if frame is None else frame)
        kinds.append(getattr(side, "types", {}) if frame is not None else {})
    kinds[0] = kinds[0] or types or {}
    known = column_names(sides[0])
    names = list(dict.fromkeys(columns or known))
    given = set(column_names(sides[1]))
    pairs: list[ColumnPair] = []
    for name in names:
        if name in given:
            wanted = (
                column(sides[0], name, kinds[0].get(name, ""))
                if name in known
                else from_cells([None] * len(sides[0]))
            )
            pairs.append(pair(name, wanted, column(sides[1], name, kinds[1].get(name, "")), settings))
    lacking = {name: column(sides[0], name) for name in names if name not in given and name in known}
    missing = [name for name in names if name not in given]
    others = [name for name in column_names(sides[1]) if name not in names]

    def surplus() -> dict[str, ReadColumn]:
        return {name: column(sides[1], name, kinds[1].get(name, "")) for name in others}

    lengths = len(sides[0]), len(sides[1])
    return Difference(pairs, names, missing, *lengths, settings, in_order, lacking, surplus)


def alone(
    rows: SqlResult | pl.DataFrame | Sequence[dict[str, Any]], columns: Sequence[str] | None = None
) -> Difference:
    """Rows that are compared with nothing, as a difference in which all is the same: in their order, by no key."""
    return align(rows, rows, columns=columns, in_order=True)


def know_queries(difference: Difference, details: DataDetails) -> None:
    """Tell a difference what a recorded comparison knows of its queries."""
    kept = details.settings.get("conclusion")
    own: Mapping[str, Any] = kept if isinstance(kept, Mapping) else {}
    limited = own.get("limited")
    difference.limited = limits_rows(details.reference_sql), limited if isinstance(limited, bool) else None
    if own.get("blame") == "retold":
        difference.own_query = "right"
    elif own.get("joins") is False:
        difference.own_query = "joinless"


def _status(e_row: int | None, a_row: int | None, apart: bool) -> Status:
    """What became of an aligned row of which a side may have none; `apart`: some cells are not the same."""
    if e_row is None or a_row is None:
        return "extra" if e_row is None else "missing"
    return "different" if apart else "same"


def _lacks(column: bool, e_row: int | None, a_row: int | None) -> str:
    """Why there is nothing to compare a cell with."""
    return "column missing" if column else "extra row" if e_row is None else "missing row"


def _of_days(cell: Cell) -> Cell:
    """A cell of a column of dates without midnights; as it came where these are all that tells its sides apart."""
    expected, actual = plain_moment(cell.expected, True), plain_moment(cell.actual, True)
    if expected == actual and not cell.same:
        expected, actual = (cell.expected if expected == cell.actual else expected), cell.actual
    return replace(cell, expected=expected, actual=actual)


def _one(index: int | None) -> int:
    return 0 if index is None else index + 1


def _clip(text: str | None) -> str:
    text = "nothing" if text is None else text.replace("\n", "\\n") or '""'
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


_BEFORE = 20
"""Characters before the place where two long texts part."""


def _both(expected: str | None, actual: str | None) -> tuple[str, str]:
    """Two values that differ, each on a line; from shortly before their difference where that would be cut off."""
    wanted, given = expected or "", actual or ""
    shorter = min(len(wanted), len(given))
    at = next((at for at in range(shorter) if wanted[at] != given[at]), shorter)
    if at < _CELL - _BEFORE:
        return _clip(expected), _clip(actual)
    first = at - _BEFORE
    return _clip(f"…{wanted[first:]}"), _clip(f"…{given[first:]}")


def _values(cells: list[Cell], side: Literal["expected", "actual"]) -> str:
    return ", ".join(f"{cell.column}={_clip(getattr(cell, side))}" for cell in cells[:12])
