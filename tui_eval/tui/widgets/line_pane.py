"""Rows beside a scroll bar that post where their cursor is and what is opened: the tables and panes of screens."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message

from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import KEYS
from tui_eval.tui.state.text.lines import Line, Span, fit, wrap
from tui_eval.tui.widgets.row_view import RowView

_OPENING = ("list.open", "list.unfold", "list.fold")
MOVE_KEYS = tuple(key for key in KEYS if key.place == "moving" or key.id in _OPENING)


class _OfRow(Message):
    """Something happened on a row of a pane."""

    def __init__(self, pane: LinePane, row: int) -> None:
        super().__init__()
        self.pane = pane
        self.row = row

    @property
    def control(self) -> LinePane:
        """The pane, for `@on` selectors."""
        return self.pane


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

    class Moved(_OfRow):
        """The cursor stands on another row."""

        def can_replace(self, message: Message) -> bool:
            """Only the last of many moves matters."""
            return isinstance(message, LinePane.Moved) and message.pane is self.pane

    class Opened(_OfRow):
        """Enter on a row."""

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


class LineLabel(LinePane, can_focus=False):
    """Shows the lines it is given, cut (or, with `wrapped`, wrapped) to its width."""

    DEFAULT_CSS = """
    LineLabel { height: 1; overflow-y: hidden; scrollbar-gutter: auto; }
    """

    has_cursor = False

    def __init__(self, *, name: str | None = None, classes: str | None = None, wrapped: bool = False) -> None:
        super().__init__(name=name, classes=classes)
        self._lines: list[Line] = []
        self._wrapped = wrapped
        self._made_for = 0
        self._rows: list[Line] = []

    def set_lines(self, lines: Sequence[Line]) -> None:
        """Show other lines; the same ones again cost nothing on the wire."""
        lines = list(lines)
        if lines != self._lines:
            self._lines = lines
            self.relayout()

    def relayout(self) -> None:
        """The width or the lines changed."""
        self._made_for = self.size.width
        self._rows = self._laid_out()
        self.set_row_count(len(self._rows))

    def on_resize(self, event: Resize) -> None:
        """Lines may have been given while nothing was shown of it."""
        super().on_resize(event)
        if self.size.width != self._made_for:
            self.relayout()

    def _laid_out(self) -> list[Line]:
        width = max(self.size.width, 1)
        if not self._wrapped:
            return [fit(line, width) for line in self._lines]
        return [piece for line in self._lines for _, _, piece in wrap(line, width)]

    def line_at(self, y: int) -> Line:
        """One line of the screen; the first frame is painted before the size has been told."""
        if self.size.width != self._made_for:
            self._made_for = self.size.width
            self._rows = self._laid_out()
            self._row_count = len(self._rows)
        return super().line_at(y)

    def row_line(self, row: int) -> Line:
        """One line."""
        return self._rows[row]


class RowTable(LinePane):
    """Rows of any kind. `draw(row, width)` makes the line of one, `key(row)` tells rows apart when the
    list is shown anew; `to_column` does what right (1) and left (-1) do; `empty` stands where there are no rows."""

    def __init__(
        self,
        draw: Callable[[Any, int], Line],
        key: Callable[[Any], Hashable] = id,
        *,
        to_column: Callable[[int], Any] | None = None,
        empty: str = "",
        classes: str | None = None,
    ) -> None:
        super().__init__(classes=classes)
        self.rows: list[Any] = []
        self.empty = empty
        self._draw = draw
        self._key = key
        self._to_column = to_column

    @property
    def current(self) -> Any | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def set_rows(self, rows: Sequence[Any], *, keep: bool = True) -> None:
        """Show other rows; `keep` leaves the cursor on the row that it stands on. The same rows again
        cost nothing on the wire."""
        fresh = list(rows)
        if fresh == self.rows and fresh:
            return
        here = self.current if keep else None
        self.rows = fresh
        at = None
        if here is not None:
            wanted = self._key(here)
            at = next((i for i, row in enumerate(fresh) if self._key(row) == wanted), None)
        self.cursor = at if at is not None else self.cursor if keep else 0
        self.relayout()
        if not keep:
            self.show_from(0)
        self.show_cursor()

    def relayout(self) -> None:
        """The width or the rows changed."""
        self.set_row_count(len(self.rows) or bool(self.empty))

    def row_line(self, row: int) -> Line:
        """One row."""
        if not self.rows:
            return fit((Span(f" {self.empty}", "muted"),), self.text_width)
        return self._draw(self.rows[row], self.text_width)

    def cursor_line(self, row: int) -> bool:
        """No cursor in an empty list."""
        return bool(self.rows) and super().cursor_line(row)

    def unfold(self) -> None:
        """Right: to the next column, where there are columns."""
        self._sideways(1)

    def fold(self) -> None:
        """Left: to the previous column."""
        self._sideways(-1)

    def _sideways(self, step: int) -> None:
        if self._to_column is not None:
            self._to_column(step)
