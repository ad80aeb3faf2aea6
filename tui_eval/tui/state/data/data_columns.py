"""The columns of a difference as they are drawn: titles, widths, where numbers stand, what a cell shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from tui_eval.tui.state.text.lines import dotted, one_line

if TYPE_CHECKING:
    from tui_eval.frames.difference import Difference

WIDEST = 24
"""Columns of the screen that a column of data takes at most; the line below shows all of a cell."""
NARROWEST = 6
"""And at least, where there is not enough room for its values."""
SAMPLE = 100
"""Rows at the beginning, throughout, and of those that differ, by which widths are found."""
_LONGEST = 200
_NUMBER = re.compile(r"[-+]?[\d.,]+(e[+-]?\d+)?", re.IGNORECASE)
_POINT = re.compile(r"-?\d+(?:\.(\d+))?")
_MOST_PLACES = 6


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A column as drawn: its title, its width in cells, whether its values stand at the right and with how
    many places after the point. `missing`: the answer lacks it; `apart`: in how many rows it differs."""

    name: str
    title: str
    width: int
    right: bool
    missing: bool = False
    places: int = 0
    apart: int = 0

    def filled(self, text: str, width: int = 0) -> str:
        """A text cut or filled to the column's width, numbers at the right with their points in line."""
        width = width or self.width
        if self.right and self.places and (found := _POINT.fullmatch(text)):
            lacking = self.places - len(found[1] or "") + (found[1] is None)
            if cell_len(text) + lacking <= width:
                text += " " * lacking
        return placed(text, width, right=self.right)


def placed(text: str, width: int, *, right: bool = False) -> str:
    """A text cut or filled to a width."""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, max(width - 1, 0)) + "…"
    pad = " " * (width - length)
    return pad + text if right else text + pad


def value_text(text: str | None) -> str:
    """A cell's value on one line, its beginning where it is long."""
    return dotted(text[:_LONGEST]) if text else ""


def columns_of(
    difference: Difference, differing: Sequence[int], apart: dict[str, int], missing: Sequence[str]
) -> list[DataColumn]:
    """The expected columns; widths by a sample of the rows."""
    total = len(difference)
    step = max(total // SAMPLE, 1)
    sample = {
        *range(min(total, SAMPLE)),
        *range(0, total, step),
        *differing[:SAMPLE],
        *range(max(total - 5, 0), total),
    }
    rows = sorted(sample)
    return [
        _column(name, difference.texts(name, rows), name in missing, apart.get(name, 0))
        for name in difference.columns
    ]


def _column(name: str, texts: Sequence[str], missing: bool, apart: int) -> DataColumn:
    values = [text for text in texts if text not in ("null", "")]
    right = bool(values) and all(_NUMBER.fullmatch(text) for text in values)
    places = _places(values) if right else 0
    widest = max((cell_len(value_text(text)) for text in texts), default=1)
    if places:
        widest = max(widest, max(len(text.partition(".")[0]) for text in values) + 1 + places)
    title = one_line(name, WIDEST)
    width = min(max(widest, cell_len(title) + missing), WIDEST)
    return DataColumn(name, title, width, right, missing, places if widest <= WIDEST else 0, apart)


def _places(values: Sequence[str]) -> int:
    """Digits after the point, where some values have such and none has too many."""
    found = [_POINT.fullmatch(text) for text in values]
    lengths = [len(match[1] or "") for match in found if match is not None]
    return max(lengths) if len(lengths) == len(values) and 0 < max(lengths) <= _MOST_PLACES else 0


def laid_out(
    columns: Sequence[tuple[int, DataColumn]], frozen: int, first: int, room: int, gap: int
) -> list[tuple[int, DataColumn, int]]:
    """Which columns fit into so many cells, and how wide each is drawn.

    Args:
        columns: Those that may be shown, each with its place.
        frozen: Columns before this place stay; they take half of the room at most.
        first: The place of the leftmost of the others.
        gap: Cells after each column.
    """
    stay = [one for one in columns if one[0] < frozen]
    rest = [one for one in columns if one[0] >= max(first, frozen)]
    whole = sum(column.width + gap for _, column in (*stay, *rest))
    made: list[tuple[int, DataColumn, int]] = []
    budget = room if whole <= room or not rest else room // 2
    for number, (index, column) in enumerate(stay):
        fair = budget // (len(stay) - number) - gap
        width = min(column.width, max(fair, 0))
        if width < min(column.width, NARROWEST):
            continue
        made.append((index, column, width))
        budget -= width + gap
        room -= width + gap
    for index, column in rest:
        width = min(column.width, room - gap)
        if made and made[-1][0] >= frozen and width < min(column.width, NARROWEST + 2):
            break
        made.append((index, column, max(width, 1)))
        room -= width + gap
        if width < column.width:
            break
    return made
