"""The columns of a difference as they are drawn: titles, widths, where numbers stand, what a cell shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui_eval.tui.state.text.fitting import cell_len, fit, shorten
from tui_eval.tui.state.text.lines import dotted, one_line
from tui_eval.tui.state.text.text_difference import common

if TYPE_CHECKING:
    from tui_eval.frames.one_table import OneTable, TableCell, TableColumn

WIDEST = 24
"""Columns of the screen that a column of data takes at most; the line below shows all of a cell."""
WIDEST_BOTH = 34
"""And where both values of a cell stand in it."""
WIDEST_IN_ROOM = 64
"""And where there is room left beside all columns."""
NARROWEST = 6
"""And at least, where there is not enough room for its values."""
QUIET = 12
"""And of text in which nothing differs where cells that differ would be cut else."""
SAMPLE = 100
"""Rows at the beginning, throughout, and of those that differ, by which widths are found."""
ARROW = "→"
"""Between the values of both sides."""
_LONGEST = 200
_NUMBER = re.compile(r"[-+]?[\d.,]+(e[+-]?\d+)?", re.IGNORECASE)
_POINT = re.compile(r"-?\d+(?:\.(\d+))?")
_MOST_PLACES = 6
_MOMENT = re.compile(r"\d{4,}-\d\d-\d\d(?: \d\d:\d\d\S*)?")
_DAY = 10


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A column as drawn: its title, its width in cells, whether its values stand at the right and with how
    many places after the point.

    `missing`: the answer lacks it; `apart`: in how many rows it differs; `kind`: its type in a word, with the
    answer's where that is another (`integer→text`); `days`: it holds dates, whose midnight is not shown; `least`: the
    width below which it is not drawn; `most`: the width from which on more shows no more.
    """

    name: str
    title: str
    width: int
    right: bool
    missing: bool = False
    places: int = 0
    apart: int = 0
    kind: str = ""
    days: bool = False
    least: int = NARROWEST
    most: int = 0

    def filled(self, text: str, width: int = 0) -> str:
        """A text cut or filled to the column's width, numbers at the right with their points in line."""
        width = width or self.width
        if self.right and self.places and (found := _POINT.fullmatch(text)):
            lacking = self.places - len(found[1] or "") + (found[1] is None)
            if cell_len(text) + lacking <= width:
                text += " " * lacking
        return fit(text, width, right=self.right)

    def text_of(self, value: str | None) -> str:
        """A cell's value on one line, its beginning where it is long; of days no midnight."""
        from tui_eval.frames.value_texts import plain_moment  # late: polars

        return value_text(plain_moment(value, self.days))


def both_fitted(expected: str, actual: str, width: int) -> tuple[str, str]:
    """The two values of a cell that differs, cut so that they fit beside the arrow between them: of moments what both
    share gives way first, of texts, and of numbers that part too late, what both begin with; never the day."""
    wanted, given = value_text(expected), value_text(actual)
    room = max(width - len(ARROW), 2)
    if cell_len(wanted) + cell_len(given) <= room:
        return wanted, given
    if _MOMENT.fullmatch(expected) and _MOMENT.fullmatch(actual):
        return _moments_fitted(wanted, given, room)
    half = room // 2
    numbers = _NUMBER.fullmatch(expected) or _NUMBER.fullmatch(actual)
    if (
        not numbers or common(expected, actual) >= half - 1
    ):  # numbers that would read alike when they are cut, too
        wanted, given = _shorter_texts(expected, actual)
    if cell_len(wanted) <= half:
        return wanted, shorten(given, room - cell_len(wanted))
    if cell_len(given) <= room - half:
        return shorten(wanted, room - cell_len(given)), given
    return shorten(wanted, half), shorten(given, room - half)


def _moments_fitted(wanted: str, given: str, room: int) -> tuple[str, str]:
    """Of two moments what fits: without what both share, else the days alone, else the answer's alone."""
    days = wanted[:_DAY], given[:_DAY]
    for pair in (_shorter_moments(wanted, given), days if days[0] != days[1] else ("", given), ("", given)):
        if cell_len(pair[0]) + cell_len(pair[1]) <= room:
            return pair
    return "", given[:_DAY]


def _shorter_moments(wanted: str, given: str) -> tuple[str, str]:
    """Two moments without what both have: the day, or the time of day."""
    (e_day, _, e_time), (a_day, _, a_time) = wanted.partition(" "), given.partition(" ")
    if e_day == a_day and a_time:
        return wanted, a_time
    return (e_day, given) if e_time == a_time else (wanted, given)


def _shorter_texts(expected: str, actual: str) -> tuple[str, str]:
    """Two texts from shortly before the first character in which they differ."""
    cut = common(expected, actual) - 3
    if cut <= 1:
        return value_text(expected), value_text(actual)
    wanted, given = (dotted(text[cut : cut + _LONGEST]) for text in (expected, actual))
    return f"…{wanted}", f"…{given}"


def value_text(text: str | None) -> str:
    """A cell's value on one line, its beginning where it is long."""
    return dotted(text[:_LONGEST]) if text else ""


# -- The columns of a difference, by a sample of its rows.


def columns_of(table: OneTable, differing: Sequence[int]) -> tuple[list[DataColumn], list[DataColumn]]:
    """The columns of a table, as wide as one side's values are and as wide as both of them in one cell; widths by a
    sample of the rows.

    Args:
        differing: Rows of which some are in the sample.
    """
    total = len(table)
    step = max(total // SAMPLE, 1)
    sample = {
        *range(min(total, SAMPLE)),
        *range(0, total, step),
        *differing[:SAMPLE],
        *range(max(total - 5, 0), total),
    }
    rows = sorted(sample)
    made = [_column(head, table.sampled(at, rows)) for at, head in enumerate(table.columns)]
    return [one for one, _ in made], [both for _, both in made]


def _column(head: TableColumn, cells: Sequence[TableCell]) -> tuple[DataColumn, DataColumn]:
    texts = [text for cell in cells for text in (cell.expected, cell.actual) if text is not None]
    values = [text for text in texts if text not in ("null", "", '""')]
    right = bool(values) and all(_NUMBER.fullmatch(text) for text in values)
    moments = bool(values) and all(_MOMENT.fullmatch(text) for text in values)
    places = _places(values) if right else 0
    title = one_line(head.name, WIDEST)
    kind = f"{head.kind}{ARROW}{head.given}" if head.given else head.kind
    widest = max((cell_len(value_text(text)) for text in texts), default=1)
    if places:
        widest = max(widest, max(len(text.partition(".")[0]) for text in values) + 1 + places)
    most = 2 * WIDEST if moments else WIDEST
    width = min(max(widest, cell_len(title) + head.missing), most)
    least = min(width, _DAY) if moments else NARROWEST
    places = places if widest <= most else 0
    one = DataColumn(head.name, title, width, right, head.missing, places, head.apart, kind, head.days, least)
    pairs = [
        (cell.expected, cell.actual)
        for cell in cells
        if cell.state == "differs" and cell.expected is not None and cell.actual is not None
    ]
    both = [_shorter_moments(*pair) if moments else tuple(map(value_text, pair)) for pair in pairs]
    needed = max((cell_len(e) + cell_len(a) + len(ARROW) for e, a in both), default=0)
    once = max((cell_len(value_text(cell.text)) for cell in cells if cell.state != "differs"), default=1)
    once = max(min(max(once, cell_len(title) + head.missing), most), cell_len(kind))
    joined = max(once, min(needed, 2 * most if moments else WIDEST_BOTH))
    roomy = min(max(joined, needed), WIDEST_IN_ROOM)
    return one, replace(one, width=joined, least=max(least, needed) if moments else least, most=roomy)


def _places(values: Sequence[str]) -> int:
    """Digits after the point, where some values have such and none has too many."""
    found = [_POINT.fullmatch(text) for text in values]
    lengths = [len(match[1] or "") for match in found if match is not None]
    return max(lengths) if len(lengths) == len(values) and 0 < max(lengths) <= _MOST_PLACES else 0


def squeezed(
    joined: Sequence[DataColumn],
    single: Sequence[DataColumn],
    places: Sequence[int],
    room: int,
    gap: int,
    frozen: int = 0,
) -> list[tuple[int, DataColumn]]:
    """Columns cut where all of them fit then: texts in which nothing differs first, then those that are wide since they
    hold both values of cells, none of these below what one side's values take; of each the widest first. Where there is
    room left, those that were cut get it.

    Args:
        single: The same columns as wide as one side's values.
        places: Which of them may be shown.
        frozen: Columns before this place say which row it is.
    """
    columns = {place: joined[place] for place in places}
    least = {place: max(single[place].width, joined[place].least) for place in places}
    over = sum(column.width + gap for column in columns.values()) - room
    spare = {place: column.width - least[place] for place, column in columns.items()}
    if 0 < over <= sum(max(more, 0) for more in spare.values()):
        quiet = {place for place in places if place >= frozen and _may_be_cut(columns[place])}
        spare |= {place: columns[place].width - _quiet(columns[place]) for place in quiet}
        while over > 0:
            loose = [place for place in places if spare[place] > 0]
            place = max([p for p in loose if p in quiet] or loose, key=lambda p: columns[p].width)
            columns[place] = replace(columns[place], width=columns[place].width - 1)
            spare[place] -= 1
            over -= 1
    for place in places:
        more = min(joined[place].most - columns[place].width, -over)
        if more > 0:
            columns[place] = replace(columns[place], width=columns[place].width + more)
            over += more
    return list(columns.items())


def _may_be_cut(column: DataColumn) -> bool:
    """Whether it is text in which nothing differs: of that the beginning will do."""
    return not (column.right or column.apart or column.missing) and column.least == NARROWEST


def _quiet(column: DataColumn) -> int:
    return max(QUIET, cell_len(column.title), cell_len(column.kind))


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
        if width < min(column.width, column.least):
            continue
        made.append((index, column, width))
        budget -= width + gap
        room -= width + gap
    for index, column in rest:
        width = min(column.width, room - gap)
        if made and made[-1][0] >= frozen and width < min(column.width, max(column.least, NARROWEST + 2)):
            break
        made.append((index, column, max(width, 1)))
        room -= width + gap
        if width < column.width:
            break
    return made
