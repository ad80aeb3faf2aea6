"""Where two frames differ, cell by cell, rows aligned; lazy, so that a million rows open at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tui_eval.frames.alignment import align_rows, find_key
from tui_eval.frames.columns import column, column_names, from_cells
from tui_eval.frames.numbers import read_number, shortest_text
from tui_eval.frames.pairing import pair
from tui_eval.frames.pairs import Pair, pair_same
from tui_eval.frames.settings import ATOL, RTOL, ComparisonSettings

if TYPE_CHECKING:
    from tui_eval.frames.sql import SqlResult

Status = Literal["same", "different", "missing", "extra"]
_SHOWN = 20
_CELL = 80


@dataclass(frozen=True, slots=True)
class Cell:
    """One aligned cell. A text is None where that side has no such row or column; `why` is empty
    for equal cells."""

    column: str
    expected: str | None
    actual: str | None
    same: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One aligned row: row numbers from 0 on each side (None: no such row) and its cells."""

    status: Status
    expected_index: int | None
    actual_index: int | None
    cells: list[Cell]


class Difference:
    """The aligned rows of an expected and an actual frame.

    `columns` are the expected columns, `missing_columns` those the answer lacks, `key` the columns
    that aligned the rows (empty: by content). Alignment is made when first asked for.
    """

    def __init__(
        self,
        pairs: list[Pair],
        columns: Sequence[str],
        missing_columns: Sequence[str],
        expected_rows: int,
        actual_rows: int,
        settings: ComparisonSettings,
        in_order: bool = False,
    ) -> None:
        self.columns = list(columns)
        self.missing_columns = list(missing_columns)
        self.settings = settings
        self._pairs = {one.name: one for one in pairs}
        self._lengths = (expected_rows, actual_rows)
        self._in_order = in_order
        self._aligned: tuple[pl.Series, pl.Series] | None = None
        self._flags: pl.DataFrame | None = None
        self._different: pl.Series | None = None
        self._key: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that aligned the rows; empty: by content."""
        self._align()
        return self._key

    def __len__(self) -> int:
        return len(self._align()[0])

    def _align(self) -> tuple[pl.Series, pl.Series]:
        if self._aligned is None:
            pairs = list(self._pairs.values())
            if not self._in_order:
                self._key = find_key(pairs, self.settings.key)
            self._aligned = align_rows([] if self._in_order else pairs, self._key, self._lengths)
        return self._aligned

    def _same(self) -> pl.DataFrame:
        """Per column and aligned row, whether the cells are the same."""
        if self._flags is None:
            e_rows, a_rows = self._align()
            both = e_rows.is_not_null() & a_rows.is_not_null()
            flags = {
                name: pair_same(one, e_rows.cast(pl.UInt32), a_rows.cast(pl.UInt32)) & both
                for name, one in self._pairs.items()
            }
            flags |= {name: pl.repeat(False, len(e_rows), eager=True) for name in self.missing_columns}
            self._flags = pl.DataFrame(flags) if flags else pl.DataFrame({"": both})
        return self._flags

    def same_under(self, pairs: list[Pair]) -> bool:
        """Whether every aligned row is the same by other pairs of the same columns."""
        e_rows, a_rows = self._align()
        if e_rows.null_count() or a_rows.null_count():
            return False
        unequal = [one for one in pairs if not self._same().get_column(one.name).all()]
        return all(bool(pair_same(one, e_rows, a_rows).all()) for one in unequal)

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

    def row(self, index: int) -> Row:
        """Aligned row `index` with its cells as texts.

        Raises:
            IndexError: there is no such row.
        """
        e_rows, a_rows = self._align()
        if not 0 <= index < len(e_rows):
            raise IndexError(index)
        status, e_row, a_row = self.status(index), e_rows[index], a_rows[index]
        return Row(status, e_row, a_row, [self._cell(name, index, e_row, a_row) for name in self.columns])

    def _cell(self, name: str, index: int, e_row: int | None, a_row: int | None) -> Cell:
        one = self._pairs.get(name)
        if one is None:
            return Cell(name, None, None, False, "column missing")
        expected = None if e_row is None else cell_text(one.expected.cell(e_row))
        actual = None if a_row is None else cell_text(one.actual.cell(a_row))
        if e_row is None or a_row is None:
            return Cell(name, expected, actual, False, "extra row" if e_row is None else "missing row")
        if self._same().get_column(name)[index]:
            return Cell(name, expected, actual, True)
        return Cell(
            name, expected, actual, False, _why(one, one.expected.cell(e_row), one.actual.cell(a_row))
        )

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
        for index in rows.head(limit * 4).to_list() if whole else self._shared_differences(limit * 4):
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

    def _shared_differences(self, limit: int) -> list[int]:
        flags = self._same().drop(self.missing_columns)
        return (
            flags.select(pl.all_horizontal(pl.all()).not_().alias("d"))
            .get_column("d")
            .arg_true()
            .head(limit)
            .to_list()
        )

    def _lines(self, index: int) -> list[str]:
        found = self.row(index)
        cells = [cell for cell in found.cells if cell.column not in self.missing_columns]
        if found.status == "extra":
            return [f"extra row {_one(found.actual_index)}: {_values(cells, 'actual')}"]
        if found.status == "missing":
            return [f"missing row {_one(found.expected_index)}: {_values(cells, 'expected')}"]
        named = ", ".join(
            f"{c.column}={_clip(c.expected)}" for c in cells if c.column in self._key and c.same
        )
        place = f"row {_one(found.expected_index)}" + (f" ({named})" if named else "")
        return [
            f"{place}: {cell.column}: expected {_clip(cell.expected)}, actual {_clip(cell.actual)}"
            + (f" ({cell.why})" if cell.why and cell.why != "value" else "")
            for cell in cells
            if not cell.same
        ]


def align(
    expected: SqlResult | pl.DataFrame | Sequence[dict[str, Any]],
    actual: SqlResult | pl.DataFrame | Sequence[dict[str, Any]] | None,
    settings: ComparisonSettings | None = None,
    columns: Sequence[str] | None = None,
) -> Difference:
    """Align two frames for the Data tab; also where they are equal or of different length."""
    settings = settings or ComparisonSettings()
    sides: list[Any] = []
    types: list[dict[str, str]] = []
    for side in (expected, actual if actual is not None else []):
        frame = getattr(side, "frame", None)
        sides.append(side if frame is None else frame)
        types.append(getattr(side, "types", {}) if frame is not None else {})
    known = column_names(sides[0])
    names = list(dict.fromkeys(columns or known))
    given = set(column_names(sides[1]))
    pairs: list[Pair] = []
    for name in names:
        if name in given:
            wanted = (
                column(sides[0], name, types[0].get(name, ""))
                if name in known
                else from_cells([None] * len(sides[0]))
            )
            pairs.append(pair(name, wanted, column(sides[1], name, types[1].get(name, "")), settings))
    missing = [name for name in names if name not in given]
    return Difference(pairs, names, missing, len(sides[0]), len(sides[1]), settings)


def cell_text(value: Any) -> str:
    """A value as the Data tab prints it: null, numbers without loss, texts as they are."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int):
        return shortest_text(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, pl.Series):
        return str(value.to_list())
    return str(value)


def _why(one: Pair, expected: Any, actual: Any) -> str:
    if (expected is None) != (actual is None):
        return "null" if actual is None else "not null"
    if isinstance(expected, bool) or isinstance(actual, bool):
        return "value" if isinstance(expected, bool) and isinstance(actual, bool) else "type"
    if isinstance(expected, str) and isinstance(actual, str):
        return "value"
    number = read_number(actual) if isinstance(actual, str) else actual
    if not isinstance(expected, int | float | Decimal) or not isinstance(number, int | float | Decimal):
        return "type"
    try:
        distance = abs(Decimal(str(number)) - Decimal(str(expected)))
        size = abs(Decimal(str(expected)))
        allowed = Decimal(str(one.atol)) + Decimal(str(one.rtol)) * size
        reference = Decimal(str(ATOL)) + Decimal(str(RTOL)) * size
    except ArithmeticError:
        return "value"
    if not distance.is_finite():
        return "value"
    text = f"off by {shortest_text(distance) if distance < 10**15 else str(distance)}"
    if one.tolerant:
        return f"{text}, allowed {float(allowed):.3g}"
    return f"{text}, within nao's tolerance" if distance <= reference else text


def _one(index: int | None) -> int:
    return 0 if index is None else index + 1


def _clip(text: str | None) -> str:
    text = "nothing" if text is None else text.replace("\n", "\\n")
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def _values(cells: list[Cell], side: Literal["expected", "actual"]) -> str:
    return ", ".join(f"{cell.column}={_clip(getattr(cell, side))}" for cell in cells[:12])
