"""Finding a text in the cells of a difference: at once among the nearest rows, between keys beyond them."""

from __future__ import annotations

from functools import partial

from tui_eval.tui.inspector.tab import InspectorTab
from tui_eval.tui.messages import Said
from tui_eval.tui.state.data_view import DataView
from tui_eval.tui.widgets.data_grid import DataGrid

AT_ONCE = 1_000
"""Rows that are looked through before a search lets other keys in."""
SLICE = 500
"""Rows that it then takes at a time."""


class SearchedRows(InspectorTab):
    """A tab whose `view` is drawn by its `grid`."""

    view: DataView | None = None
    _query = ""
    _search = 0

    @property
    def grid(self) -> DataGrid:
        """The rows."""
        return self.query_one(DataGrid)

    def find(self, query: str) -> int:
        """Look for a text in the cells, from the cursor on."""
        self._query = query.lower()
        return 1 if self._query and self._seek(0, 1) is not None else 0

    def find_next(self, step: int) -> tuple[int, int]:
        """To the next or previous cell with the text; (row, rows)."""
        found = self._seek(step, step) if self._query else None
        return (found + 1, len(self.view or ())) if found is not None else (0, 0)

    def _seek(self, offset: int, step: int) -> int | None:
        """Go to the nearest row with the text; beyond so many rows the search goes on between keys."""
        self._search += 1
        return self._look(self.grid.cursor + offset, step or 1, self._search, AT_ONCE)

    def _look(self, row: int, step: int, search: int, most: int) -> int | None:
        view = self.view
        if view is None or search != self._search:
            return None
        end = min(row + most, len(view)) if step > 0 else max(row - most, -1)
        for at in range(row, end, step):
            for index, cell in enumerate(view.row(at).cells):
                if any(self._query in text.lower() for text in (cell.expected, cell.actual) if text):
                    self.grid.move_to(at)
                    self.grid.to_column(index)
                    return at
        if 0 <= end < len(view):
            self.set_timer(0.01, partial(self._look_on, end, step, search, self.grid.cursor))
        return None

    def _look_on(self, row: int, step: int, search: int, cursor: int) -> None:
        """The next rows, unless the person went elsewhere meanwhile."""
        if self.view is None or search != self._search or self.grid.cursor != cursor:
            return
        found = self._look(row, step, search, SLICE)
        if found is not None:
            self.post_message(Said(f"row {found + 1:,} of {len(self.view):,}"))
        elif not 0 <= row + step * SLICE < len(self.view):
            self.post_message(Said(f"not here: {self._query}"))
        elif row // SLICE % 10 == 0:
            self.post_message(Said(f"looking at row {row:,} of {len(self.view):,}; any move stops it"))
