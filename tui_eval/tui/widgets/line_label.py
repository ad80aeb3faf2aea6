"""A few lines of styled text that nobody moves in: heads, column titles, explanations."""

from __future__ import annotations

from collections.abc import Sequence

from textual.events import Resize

from tui_eval.tui.state.text.lines import Line, fit, wrap
from tui_eval.tui.widgets.line_pane import LinePane


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
