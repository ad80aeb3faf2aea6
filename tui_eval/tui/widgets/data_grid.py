"""Expected and actual rows as one table or side by side, a row of the screen for each aligned row.

Line API: a row is asked for when it is drawn, so a million of them scroll. Columns scroll sideways as wholes,
those that are frozen stay. The one table is drawn by `joined_rows`. Side by side a differing cell carries `≠` and
is bold, one that is equal within the tolerance `≈`; a missing row stands only at the left with `−`, an extra one
only at the right with `+`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tui_eval.tui.front import Said
from tui_eval.tui.state.data import joined_rows
from tui_eval.tui.state.data.data_columns import NARROWEST, DataColumn, laid_out, squeezed
from tui_eval.tui.state.data.data_view import DataView
from tui_eval.tui.state.data.joined_rows import GAP, MARK_STYLES
from tui_eval.tui.state.text.fitting import cell_len, fit
from tui_eval.tui.state.text.formatting import counted
from tui_eval.tui.state.text.lines import Line, Span, width_of
from tui_eval.tui.widgets.line_pane import LinePane

if TYPE_CHECKING:
    from tui_eval.frames.cells import Cell


AT_ONCE = 1_000
"""Rows that are looked through before a search lets other keys in."""
SLICE = 500
"""Rows that it then takes at a time."""


@dataclass
class _Search:
    """How far a search is: `done` of `end` rows, from `origin` in the direction of `step`."""

    view: DataView
    origin: int
    step: int
    done: int
    end: int


class DataGrid(LinePane):
    """The grid. `column` is the column under the cursor, `first_column` the leftmost one shown; `sides`: both sides
    stand beside each other."""

    def __init__(self) -> None:
        super().__init__()
        self.sides = False
        self.words: tuple[str, str] = ("expected", "actual")
        """What the sides are called."""
        self.view: DataView | None = None
        self.column = 0
        self.first_column = 0
        self._query = ""
        self._search: _Search | None = None

    def set_view(self, view: DataView | None, cursor: int = 0) -> None:
        """Show other rows, or others of them; a search in those before ends."""
        self._search = None
        self.view = view
        self.column = min(self.column, max(len(view.columns) - 1, 0)) if view else 0
        if view and view.columns and self.column not in view.visible:
            self.column = min(view.visible, key=lambda place: abs(place - self.column))
        self.relayout()
        if view is not None:
            self.cursor = min(cursor, max(len(view) - 1, 0))
            self.show_cursor(top=True)

    def show_sides(self, sides: bool) -> None:
        """Both sides beside each other, or one table."""
        self.sides = sides
        self.first_column = self.view.frozen if self.view is not None else 0
        self.relayout()

    def relayout(self) -> None:
        """The width or the rows changed."""
        self.set_row_count(len(self.view) if self.view else 0)
        self._reveal()
        self._fill()

    # -- drawing

    @property
    def _numbers(self) -> int:
        """Columns of the screen for row numbers."""
        return max(len(f"{max(self.view.expected, self.view.actual):,}"), 2) if self.view else 2

    @property
    def _margin(self) -> int:
        """Columns of the screen before a side's first value: the mark, the row's number, and a blank after each."""
        return (self.view.mark_width if self.view else 1) + 1 + self._numbers + 1

    @property
    def _half(self) -> int:
        """Columns of the screen for one side."""
        return max((self.text_width - 3) // 2, 8)

    def shown_columns(self) -> list[tuple[int, DataColumn, int]]:
        """The columns that fit into a half, and how wide: those that are frozen, then from the first one
        shown on."""
        view = self.view
        if view is None:
            return []
        room = self._room
        if self.sides:
            places = [(index, view.columns[index]) for index in view.visible]
        else:
            places = squeezed(view.joined, view.columns, view.visible, room, GAP, view.frozen)
        return laid_out(places, view.frozen, self.first_column, room, GAP)

    @property
    def _room(self) -> int:
        """Cells for columns; the gap after the last may be cut."""
        if self.sides or self.view is None:
            return self._half - self._margin
        return self.text_width - joined_rows.margin(self.view) + GAP - 1

    def titles(self) -> list[Line]:
        """The two lines above the rows: whose side it is and how many rows it has, and the columns' names,
        those in which something differs with `≠`."""
        if self.view is None:
            return [(), ()]
        half, view, shown = self._half, self.view, self.shown_columns()
        if not self.sides:
            width = self.text_width
            more = self._beyond(shown, short=width < 80)
            return joined_rows.head(view, shown, self.column, width, more)
        sides: list[Line] = []
        for word, name, rows in zip(
            ("expected", "actual"), self.words, (view.expected, view.actual), strict=True
        ):
            side = Span(f"   {name}", "heading")
            rows_of = Span(f"  {counted(view.truncated.get(word, rows), 'row')}", "muted")
            more = self._beyond(shown) if word == "expected" else ()
            if width_of((side, *more)) > half:
                more = self._beyond(shown, short=True)
            left: Line = (side, rows_of) if width_of((side, rows_of, *more)) < half else (side,)
            gap = Span(" " * max(half - width_of((*left, *more)), 0))
            sides.append(_padded([*left, gap, *more], half))
        names: list[list[Span]] = []
        for answer in (False, True):
            spans = [Span(" " * self._margin)]
            for index, column, width in shown:
                lacks = answer and column.missing
                style = (
                    "strong" + (" missing" if lacks else "") + (" hit-here" if index == self.column else "")
                )
                title = ("−" if lacks else "") + column.title
                spans += [Span(fit(title, width, right=column.right), style)]
                spans += [Span("≠" + " " * (GAP - 1) if column.apart else " " * GAP, "differs")]
            names.append(spans)
        bar = Span(" │ ", "muted")
        return [(*sides[0], bar, *sides[1]), (*_padded(names[0], half), bar, *_padded(names[1], half))]

    def _beyond(self, shown: Sequence[tuple[int, DataColumn, int]], *, short: bool = False) -> Line:
        """How many columns there are at the left and right of those shown, and whether they differ."""
        assert self.view is not None
        here = {index for index, _, _ in shown}
        last = max(here, default=-1)
        left = [i for i in self.view.visible if i not in here and i < last]
        right = [i for i in self.view.visible if i > last]
        spans: list[Span] = []
        more = "" if short else " more"
        for columns, words in ((left, f"← {{}}{more}"), (right, f"{{}}{more} →")):
            if columns:
                bad = any(self.view.columns[i].apart for i in columns)
                spans += [
                    Span("  "),
                    Span(words.format(len(columns)), "muted"),
                    Span(" ≠" if bad else "", "differs"),
                ]
        return tuple(spans)

    def row_line(self, row: int) -> Line:
        """One aligned row."""
        assert self.view is not None
        shown = self.view.row(row)
        columns = self.shown_columns()
        if not self.sides:
            here = self.column if row == self.cursor else None
            return joined_rows.row_line(self.view, shown, columns, here)
        mark = self.view.mark(shown)
        style = MARK_STYLES.get(mark[0], "note")
        sides: list[Line] = []
        for answer, index in ((False, shown.expected_index), (True, shown.actual_index)):
            number = f"{index + 1:,}" if index is not None else ""
            spans = [
                Span(f"{mark:<{self._margin - self._numbers - 1}}", style),
                Span(f"{number:>{self._numbers}} ", "muted"),
            ]
            if index is None:
                spans.append(Span("no such row", style))
            else:
                for at, column, width in columns:
                    here = at == self.column and row == self.cursor
                    spans += _cell(
                        shown.cells[at], column, width, answer, style if mark[0] in "−+×" else "", here
                    )
            sides.append(_padded(spans, self._half))
        return (*sides[0], Span(" │ ", "muted"), *sides[1])

    # -- finding a text in the cells: at once among the nearest rows, between keys beyond them

    @property
    def searching(self) -> bool:
        """Whether a search goes on between keys."""
        return self._search is not None

    def look_for(self, query: str) -> None:
        """The text that `find_next` goes to."""
        self._query = query.lower()

    def find_next(self, step: int) -> tuple[int, int]:
        """To the next or previous row of which a cell that is shown has the text, from the cursor on (0: from its own
        row) and round; where none has it, to a column whose name has it.

        Returns:
            (row, rows) or (column, columns), from 1; (0, 0) where nothing has it, or while the search goes on.
        """
        self._search = None
        view = self.view
        if view is None or not self._query:
            return 0, 0
        rows = len(view)
        if not rows:
            return self._to_name(view)
        search = _Search(view, self.cursor, step or 1, abs(step), rows + abs(step))
        found = self._look(search, AT_ONCE)
        if found is not None:
            return found + 1, rows
        if search.done >= search.end:
            return self._to_name(view)
        self._look_later(search)
        return 0, 0

    def _look(self, search: _Search, most: int) -> int | None:
        """Go to the nearest of the next rows that has the text."""
        view = search.view
        shown, end = set(view.visible), min(search.done + most, search.end)
        for number in range(search.done, end):
            at = (search.origin + search.step * number) % len(view)
            for index, cell in enumerate(view.row(at).cells):
                found = any(self._query in text.lower() for text in (cell.expected, cell.actual) if text)
                if found and index in shown:
                    self.move_to(at)
                    self.to_column(index)
                    return at
        search.done = end
        return None

    def _to_name(self, view: DataView) -> tuple[int, int]:
        """Go to the first column shown whose name has the text."""
        for index in view.visible:
            if self._query in view.columns[index].name.lower():
                self.to_column(index)
                return index + 1, len(view.columns)
        return 0, 0

    def _look_later(self, search: _Search) -> None:
        self._search = search
        self.set_timer(0.01, partial(self._look_on, search))

    def _look_on(self, search: _Search) -> None:
        """The next rows, unless the person went elsewhere meanwhile."""
        if search is not self._search:
            return
        self._search = None
        if self.cursor != search.origin:
            return
        view = search.view
        row = (search.origin + search.step * search.done) % len(view)
        found = self._look(search, SLICE)
        if found is not None:
            self.post_message(Said(f"row {found + 1:,} of {len(view):,}"))
        elif search.done < search.end:
            self._look_later(search)
            if search.done // SLICE % 10 == 0:
                self.post_message(Said(f"looking at row {row + 1:,} of {len(view):,}; any move stops it"))
        else:
            column, columns = self._to_name(view)
            self.post_message(
                Said(f"column {column:,} of {columns:,}" if columns else f"not here: {self._query}")
            )

    # -- moving

    def unfold(self) -> None:
        """One column to the right."""
        self._sideways(1)

    def fold(self) -> None:
        """One column to the left."""
        self._sideways(-1)

    @property
    def most_frozen(self) -> int:
        """How many columns may stay: narrow as they can be, they take half of a side."""
        return max(self._room // 2 // (NARROWEST + GAP), 1)

    def freeze(self) -> int | None:
        """Let the columns up to the cursor's stay, or let go of those that do; how many stay, None: there
        would be too many."""
        if self.view is None or not self.view.columns:
            return 0
        wanted = min(self.column + 1, len(self.view.columns) - 1)
        if (
            wanted != self.view.frozen
            and sum(place < wanted for place in self.view.visible) > self.most_frozen
        ):
            return None
        self.view.frozen = 0 if self.view.frozen == wanted else wanted
        self.first_column = self.view.frozen
        self._reveal()
        self.refresh()
        return self.view.frozen

    def clicked(self, row: int, x: int) -> None:
        """The cell that is clicked; in the one table, where columns stand beside each other."""
        super().clicked(row, x)
        if self.view is None or self.sides:
            return
        start = joined_rows.margin(self.view)
        for column, _, width in self.shown_columns():
            if start <= x < start + width + GAP:
                self.to_column(column)
            start += width + GAP

    def to_column(self, column: int) -> None:
        """Put the cursor on a column and bring it into view."""
        if self.view is None or not self.view.columns:
            return
        column = max(0, min(column, len(self.view.columns) - 1))
        if column == self.column:
            return
        self.column = column
        if self._reveal():
            self.refresh()
        self.refresh_row(self.cursor)
        self.post_message(self.Moved(self, self.cursor))

    def next_difference(self, step: int) -> tuple[int, int | None] | None:
        """Where the next or previous difference is: in the cursor's row, else in another one; its column is None where
        the whole row is missing, or one too many."""
        view = self.view
        if view is None or not len(view):
            return None
        nearest = 0 if step > 0 else -1
        bad = view.bad_columns(view.row(self.cursor))
        if beside := [i for i in bad if (i - self.column) * step > 0]:
            return self.cursor, beside[nearest]
        found = view.next_difference(self.cursor, step)
        if found is None:
            return None
        bad = view.bad_columns(view.row(found))
        return found, bad[nearest] if bad else None

    def _sideways(self, step: int) -> None:
        """To the next or previous of the columns shown."""
        places = list(self.view.visible) if self.view is not None else []
        if not places:
            return
        at = bisect_left(places, self.column)
        if step < 0 or (at < len(places) and places[at] == self.column):
            at += step
        self.to_column(places[max(0, min(at, len(places) - 1))])

    def _reveal(self) -> bool:
        """Scroll sideways until the cursor's column is shown, whole where it can be: its values may differ at their
        end. Whether that was needed."""
        before = self.first_column
        frozen = self.view.frozen if self.view is not None else 0
        if self.column < frozen:
            return False
        if self.column < self.first_column:
            self.first_column = self.column
        while self.view is not None and self.first_column < self.column:
            if any(at == self.column and width >= it.width for at, it, width in self.shown_columns()):
                break
            self.first_column += 1
        return before != self.first_column

    def _fill(self) -> None:
        """Show columns at the left for which there is room beside those that are shown: where fewer of them are left,
        or the window is wider, nothing stays scrolled away that fits."""
        if self.view is None:
            return
        shown = self.shown_columns()
        for place in reversed(self.view.visible):
            if not self.view.frozen <= place < self.first_column:
                continue
            before, self.first_column = self.first_column, place
            more = self.shown_columns()
            if not set(more).issuperset(shown):
                self.first_column = before
                return
            shown = more


def _cell(cell: Cell, column: DataColumn, width: int, answer: bool, row_style: str, here: bool) -> list[Span]:
    """One side's value and its mark: `≠` where it differs, `≈` where it is equal but not the same text."""
    value = cell.actual if answer else cell.expected
    style, mark = row_style, " "
    if column.missing and not row_style:
        style, value = ("missing", "−") if answer else ("muted", value)
    elif not row_style:
        style = "muted" if value == "null" else ""
        if not cell.same:
            style = mark = "differs"
        elif cell.why:
            mark = "near"
    signs = {"differs": "≠", "near": "≈"}
    text = column.filled(column.text_of(value), width)
    return [
        Span(text, f"{style} cell-here" if here else style),
        Span(signs.get(mark, " ") + " " * (GAP - 1), "muted" if mark == "near" else "differs"),
    ]


def _padded(spans: list[Span], width: int) -> Line:
    """Spans cut or filled to a width, so that both halves keep their place."""
    line: list[Span] = []
    for text, style in spans:
        length = cell_len(text)
        if length >= width:
            line.append(Span(fit(text, width, sign=""), style))
            return tuple(line)
        line.append(Span(text, style))
        width -= length
    return (*line, Span(" " * width))
