"""A list of lines that repaints only those that changed, however many there are.

Not a `ScrollView`: no virtual size, no scroll bars to repaint, and no animation. Lines are drawn when
they are seen. At the edge it scrolls by half a page, since each scrolled line repaints all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui_eval.tui.keys import bindings


class LineView(Widget, can_focus=True):
    """The base: a cursor (or none), a first line shown, and the keys that move them."""

    DEFAULT_CSS = """
    LineView { height: 1fr; width: 1fr; background: $background; }
    """
    BINDINGS = bindings("moving")
    has_cursor = True

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.top = 0
        self.cursor = 0

    # -- for those derived

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        raise NotImplementedError

    def draw(self, index: int, width: int) -> Strip:
        """One line, exactly `width` cells wide."""
        raise NotImplementedError

    def draw_empty(self, y: int, width: int) -> Strip:
        """A line below the last."""
        return Strip.blank(width, self.rich_style)

    def moved(self) -> None:
        """The cursor (or the first line shown) is elsewhere."""

    # -- drawing

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        index = self.top + y
        width = self.size.width
        return self.draw(index, width) if index < self.line_count else self.draw_empty(y, width)

    def refresh_lines(self, indices: Iterable[int]) -> None:
        """Repaint these lines if they are in sight."""
        height, width = self.size.height, self.size.width
        regions = [
            Region(0, index - self.top, width, 1) for index in indices if 0 <= index - self.top < height
        ]
        if regions:
            self.refresh(*regions)

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self.show_cursor()

    # -- moving

    def show_cursor(self, index: int | None = None) -> None:
        """Move the cursor (to `index`, or keep it) and scroll as far as that needs."""
        last = max(0, self.line_count - 1)
        before, top = self.cursor, self.top
        self.cursor = min(max(0, self.cursor if index is None else index), last)
        height = max(1, self.size.height)
        if self.has_cursor:
            if self.cursor < self.top:
                near = self.top - self.cursor <= height
                self.top = self.cursor - (height // 2 if near else height // 3)
            elif self.cursor >= self.top + height:
                near = self.cursor - self.top - height < height
                self.top = self.cursor - (height // 2 if near else height * 2 // 3)
        self.top = min(max(0, self.top), max(0, self.line_count - height))
        if self.top != top:
            self.refresh()
        elif self.cursor != before:
            self.refresh_lines((before, self.cursor))
        if self.cursor != before or self.top != top:
            self.moved()

    def action_move(self, step: int) -> None:
        """One line down or up."""
        if self.has_cursor:
            self.show_cursor(self.cursor + step)
        else:
            self.scroll_by(step)

    def action_half(self, direction: int) -> None:
        """Half a page."""
        self._leap(direction * max(1, self.size.height // 2))

    def action_page(self, direction: int) -> None:
        """A page."""
        self._leap(direction * max(1, self.size.height - 1))

    def action_end(self, direction: int) -> None:
        """To the first or last line."""
        if self.has_cursor:
            self.show_cursor(0 if direction < 0 else self.line_count - 1)
        else:
            self.scroll_by(direction * self.line_count)

    def scroll_by(self, lines: int) -> None:
        """Shift what is shown, without a cursor."""
        most = max(0, self.line_count - self.size.height)
        top = min(max(0, self.top + lines), most)
        if top != self.top:
            self.top = top
            self.refresh()
            self.moved()

    def _leap(self, lines: int) -> None:
        if not self.has_cursor:
            self.scroll_by(lines)
            return
        most = max(0, self.line_count - self.size.height)
        top, before = self.top, self.cursor
        self.top = min(max(0, self.top + lines), most)
        self.cursor = min(max(0, self.cursor + lines), max(0, self.line_count - 1))
        if self.top != top:
            self.refresh()
        else:
            self.refresh_lines((before, self.cursor))
        self.moved()
