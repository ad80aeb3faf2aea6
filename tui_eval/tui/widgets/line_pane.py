"""Rows beside a scroll bar that post where their cursor is and what is opened: the tables and panes of screens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message

from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import KEYS
from tui_eval.tui.widgets.row_view import RowView

_OPENING = ("list.open", "list.unfold", "list.fold")
MOVE_KEYS = tuple(key for key in KEYS if key.place == "moving" or key.id in _OPENING)


class LinePane(RowView, inherit_bindings=False):
    """Subclasses say how many rows there are (`set_row_count`) and what one shows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, f"app.do('{key.id}')", key.words, show=False, id=key.id) for key in MOVE_KEYS
    ]
    DEFAULT_CSS = """
    LinePane {
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 1;
    }
    """

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, pane: LinePane, row: int) -> None:
            super().__init__()
            self.pane = pane
            self.row = row

        @property
        def control(self) -> LinePane:
            """The pane, for `@on` selectors."""
            return self.pane

        def can_replace(self, message: Message) -> bool:
            """Only the last of many moves matters."""
            return isinstance(message, LinePane.Moved) and message.pane is self.pane

    class Opened(Message):
        """Enter on a row."""

        def __init__(self, pane: LinePane, row: int) -> None:
            super().__init__()
            self.pane = pane
            self.row = row

        @property
        def control(self) -> LinePane:
            """The pane, for `@on` selectors."""
            return self.pane

    def set_row_count(self, count: int, width: int | None = None) -> None:
        """Say how many rows there are, keeping the cursor within them, and repaint."""
        self._row_count = count
        self._laid_out_to = self.text_width  # rows made while a pane was hidden are made again when it is not
        self.virtual_size = Size(width or self.text_width, count)
        self.cursor = min(self.cursor, max(count - 1, 0))
        self.refresh()

    def moved(self) -> None:
        """Post it."""
        self.post_message(self.Moved(self, self.cursor))

    def opened(self) -> None:
        """Clicked twice."""
        self.open()

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            **super().handlers(),
            "list.open": self.open,
            "list.unfold": self.unfold,
            "list.fold": self.fold,
        }

    def open(self) -> None:
        """Enter."""
        self.post_message(self.Opened(self, self.cursor))

    def unfold(self) -> None:
        """Right; nothing unless a subclass folds."""

    def fold(self) -> None:
        """Left; nothing unless a subclass folds."""

    def rows_text(self) -> str:
        """The pane's text, for the pager."""
        return "\n".join(
            "".join(span.text for span in self.row_line(row)).rstrip() for row in range(self.row_count)
        )


def region_of(pane: LinePane, rows: Sequence[int]) -> Region:
    """The part of the screen that rows take; for tests."""
    return Region(pane.region.x, pane.region.y + min(rows) - pane.top, pane.region.width, len(rows))
