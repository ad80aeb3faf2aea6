"""A list of lines that repaints only those that changed, however many there are.

Not a `ScrollView`: no virtual size, no scroll bars to repaint, and no animation. Lines are drawn when
they are seen. At the edge it scrolls by half a page, since each scrolled line repaints all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import bindings
from tui_eval.tui.widgets.painting import changed_cells


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
        self.touched = False
        """Whether the person has moved."""
        self._painted: dict[int, Strip] = {}

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
        strip = self._painted[y] = self.strip_at(y)
        return strip

    def strip_at(self, y: int) -> Strip:
        """What belongs on one line of the screen."""
        index = self.top + y
        width = self.size.width
        return self.draw(index, width) if index < self.line_count else self.draw_empty(y, width)

    def repaint(self, rows: Iterable[int] | None = None) -> None:
        """Repaint what has changed in these lines of the screen (all of them): the cells from the
        first to the last that look different from what was painted before."""
        height, width = self.size.height, self.size.width
        regions: list[Region] = []
        for y in range(height) if rows is None else rows:
            if not 0 <= y < height:
                continue
            old = self._painted.get(y)
            if old is None or old.cell_length != width:
                regions.append(Region(0, y, width, 1))
                continue
            span = changed_cells(old, self.strip_at(y))
            if span is not None:
                regions.append(Region(span[0], y, span[1] - span[0], 1))
        if regions:
            self.refresh(*regions)

    def refresh_lines(self, indices: Iterable[int]) -> None:
        """Repaint these lines, as far as they are in sight and look different."""
        self.repaint([index - self.top for index in indices])

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self._painted.clear()
        self.show_cursor()
        self.refresh()

    # -- the mouse, where the app has it

    WHEEL = 3
    """Lines of one step of the wheel."""

    def on_click(self, event: Click) -> None:
        """The line that is clicked gets the cursor; clicked twice, it is opened."""
        place = event.get_content_offset(self)
        if place is None or not self.has_cursor or self.top + place.y >= self.line_count:
            return
        event.stop()
        self.touched = True
        self.show_cursor(self.top + place.y)
        if event.chain == 2:
            self.opened()

    def opened(self) -> None:
        """A line was clicked twice."""

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """The wheel."""
        self._wheel(event, self.WHEEL)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """The wheel."""
        self._wheel(event, -self.WHEEL)

    def _wheel(self, event: MouseScrollDown | MouseScrollUp, lines: int) -> None:
        event.stop()
        event.prevent_default()
        self._leap(lines)

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
            self.repaint()
        elif self.cursor != before:
            self.refresh_lines((before, self.cursor))
        if self.cursor != before or self.top != top:
            self.moved()

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            "list.down": partial(self.move_by, 1),
            "list.up": partial(self.move_by, -1),
            "list.half_down": partial(self.half_page, 1),
            "list.half_up": partial(self.half_page, -1),
            "list.page_down": partial(self.whole_page, 1),
            "list.page_up": partial(self.whole_page, -1),
            "list.top": partial(self.to_end, -1),
            "list.bottom": partial(self.to_end, 1),
        }

    def move_by(self, step: int) -> None:
        """One line down or up."""
        self.touched = True
        if self.has_cursor:
            self.show_cursor(self.cursor + step)
        else:
            self.scroll_by(step)

    def half_page(self, direction: int) -> None:
        """Half a page."""
        self._leap(direction * max(1, self.size.height // 2))

    def whole_page(self, direction: int) -> None:
        """A page."""
        self._leap(direction * max(1, self.size.height - 1))

    def to_end(self, direction: int) -> None:
        """To the first or last line."""
        self.touched = True
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
            self.repaint()
            self.moved()

    def _leap(self, lines: int) -> None:
        self.touched = True
        if not self.has_cursor:
            self.scroll_by(lines)
            return
        most = max(0, self.line_count - self.size.height)
        top, before = self.top, self.cursor
        self.top = min(max(0, self.top + lines), most)
        self.cursor = min(max(0, self.cursor + lines), max(0, self.line_count - 1))
        if self.top != top:
            self.repaint()
        else:
            self.refresh_lines((before, self.cursor))
        self.moved()
