"""The one foundation of widgets of rows: lists, tables, panes of text, streams, the bars at top and bottom.

A row is a `Line`, pieces of text with style words; whoever derives from `RowView` says what a row shows and no more.
Painting, the window of rows in sight, the cursor, the keys and the mouse are here. Rows are made when they are seen,
and only cells that look different from what was painted before are painted again. Where the cursor leaves the
window, that jumps by half a page: each row scrolled repaints all of them, and a slow line carries one repaint
for many keys.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import (
    Blur,
    Click,
    DescendantBlur,
    DescendantFocus,
    Focus,
    MouseScrollDown,
    MouseScrollUp,
    Resize,
)
from textual.geometry import Region
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import bindings
from tui_eval.tui.state.text.fitting import clusters
from tui_eval.tui.state.text.lines import Line, Span, letters
from tui_eval.tui.widgets.looks import Look, Styles, styles_of


def strip_of(line: Line, styles: Styles, base: Style, width: int, *, left: int = 0, over: str = "") -> Strip:
    """The cells of a line from the column `left` on, `width` of them; `base` lies under all of it, the style words
    `over` on top."""
    segments = [Segment(text, base + styles[words] if words else base) for text, words in line]
    strip = Strip(segments).crop_extend(left, left + width, base)
    if not over:
        return strip
    top = styles[over]
    return Strip([Segment(text, (own or base) + top) for text, own, _ in strip], strip.cell_length)


def changed_cells(old: Strip, new: Strip) -> tuple[int, int] | None:
    """The first cell in which two strips differ and the one after the last; None where they are the
    same. Never in the middle of a wide character."""
    before, after = _cells(old), _cells(new)
    if before == after:
        return None
    count = max(len(before), len(after))
    before += [(" ", None)] * (count - len(before))
    after += [(" ", None)] * (count - len(after))
    start = next(at for at in range(count) if before[at] != after[at])
    end = next(at for at in range(count, 0, -1) if before[at - 1] != after[at - 1])
    while start > 0 and "" in (before[start][0], after[start][0]):
        start -= 1
    while end < count and "" in (before[end][0], after[end][0]):
        end += 1
    return start, end


def _cells(strip: Strip) -> list[tuple[str, Style | None]]:
    """One entry per cell; the second cell of a wide character is empty."""
    cells: list[tuple[str, Style | None]] = []
    for text, style, _ in strip:
        if text.isascii():
            cells.extend((letter, style) for letter in text)
            continue
        for letter, size in clusters(text):  # an emoji of several characters has its width once
            if size:
                cells.append((letter, style))
                cells.extend([("", style)] * (size - 1))
            elif cells:
                cells[-1] = (cells[-1][0] + letter, style)
    return cells


class RowView(ScrollView, can_focus=True, inherit_bindings=False):
    """Rows with a cursor (or none) and a window over them."""

    BINDINGS = bindings("moving")

    class Entered(Message):
        """Enter, where the screen binds it: what stands here is to be opened."""

    DEFAULT_CSS = """
    RowView { background: $background; overflow: hidden hidden; }
    """
    LOOKS: ClassVar[Mapping[str, Look]] = {}
    """Style words that look otherwise here than everywhere."""
    has_cursor = True

    def __init__(self, *, name: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, classes=classes)
        self.cursor = 0
        self.touched = False
        """Whether the person has moved."""
        self._row_count = 0
        self._laid_out_to = 0
        self._styles: Styles | None = None
        self._painted: dict[int, Strip] = {}
        self._ground: Style | None = None

    # -- for those derived

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return self._row_count

    def row_line(self, row: int) -> Line:
        """What one row shows; called for rows in sight only."""
        raise NotImplementedError

    def line_below(self, y: int) -> Line:
        """What stands on a line of the screen below the last row."""
        return ()

    def cursor_line(self, row: int) -> bool:
        """Whether the cursor's background goes over the whole row."""
        return self.has_cursor and row == self.cursor

    def relayout(self) -> None:
        """The width is another: make rows anew."""

    def moved(self) -> None:
        """The cursor is elsewhere."""

    def scrolled(self) -> None:
        """The cursor is where it was, other rows are in sight."""

    def entered(self) -> None:
        """Tell the screen."""
        self.post_message(self.Entered())

    def opened(self) -> None:
        """A row was clicked twice."""

    # -- painting

    @property
    def text_width(self) -> int:
        """Columns for text: what it has without a scroll bar."""
        return max(self.scrollable_content_region.width, 1)

    @property
    def window(self) -> int:
        """How many rows are in sight."""
        return max(self.scrollable_content_region.height, 1)

    def style(self, words: str) -> Style:
        """The style of one or several style words, later ones on top."""
        if self._styles is None:
            self._styles = styles_of(self, self.LOOKS)
        return self._styles[words]

    def notify_style_update(self) -> None:
        """The theme changed, or what is below it."""
        self._styles = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of a frame, whose ground Textual makes of all that they stand in: once, not for each."""
        self._ground = self.rich_style
        try:
            return super().render_lines(crop)
        finally:
            self._ground = None

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        strip = self._painted[y] = self._strip(y, self._ground or self.rich_style)
        return strip

    def line_at(self, y: int) -> Line:
        """What stands on one line of the screen."""
        row = self.top + y
        return self.row_line(row) if row < self.row_count else self.line_below(y)

    def _strip(self, y: int, ground: Style) -> Strip:
        line = self.line_at(y)
        if not self._has_glyphs:
            line = tuple(Span(letters(text), words) for text, words in line)
        over = ""
        if self.top + y < self.row_count and self.cursor_line(self.top + y):
            over = "cursor" if self.has_focus else "cursor-away"
        self.style("")
        assert self._styles is not None
        left = self.scroll_offset.x
        return strip_of(line, self._styles, ground, self.size.width, left=left, over=over)

    @property
    def _has_glyphs(self) -> bool:
        """Whether the terminal can show more than ASCII (the app knows)."""
        return getattr(getattr(getattr(self.app, "services", None), "symbols", None), "unicode", True)

    def repaint(self, lines: Iterable[int] | None = None) -> None:
        """Paint what has changed in these lines of the screen (all of them): the cells from the first to the last
        that look different from what was painted before."""
        (width, height), ground = self.size, self.rich_style
        regions: list[Region] = []
        for y in range(height) if lines is None else lines:
            if not 0 <= y < height:
                continue
            old = self._painted.get(y)
            if old is None or old.cell_length != width:
                regions.append(Region(0, y, width, 1))
                continue
            span = changed_cells(old, self._strip(y, ground))
            if span is not None:
                regions.append(Region(span[0], y, span[1] - span[0], 1))
        if regions:
            self.refresh(*regions)

    def refresh_row(self, *rows: int) -> None:
        """Repaint these rows, as far as they are in sight and look different."""
        self.repaint(row - self.top for row in rows)

    def on_resize(self, event: Resize) -> None:
        """Rows may depend on the width; the cursor stays in sight. One that comes back as wide as it was is not
        made twice; what was painted since has this size already."""
        width, height = self.size
        self._painted = {
            y: strip for y, strip in self._painted.items() if y < height and strip.cell_length == width
        }
        if self.text_width != self._laid_out_to:
            self._laid_out_to = self.text_width
            self.relayout()
        if self.show_cursor():
            self.scrolled()

    def on_focus(self, event: Focus) -> None:
        """The cursor's colour shows which widget has the keys; Textual would repaint all of it."""
        event.prevent_default()
        self.has_focus = True
        self.focus_changed()
        if self.parent is not None:
            self.parent.post_message(DescendantFocus(self))

    def on_blur(self, event: Blur) -> None:
        """As above."""
        event.prevent_default()
        self.has_focus = False
        self.focus_changed()
        if self.parent is not None:
            self.parent.post_message(DescendantBlur(self))

    def focus_changed(self) -> None:
        """Keys go here now, or elsewhere."""
        if self.has_cursor:
            self.refresh_row(self.cursor)

    # -- the window

    @property
    def top(self) -> int:
        """The first row in sight."""
        return self.scroll_offset.y

    @top.setter
    def top(self, row: int) -> None:
        self.show_from(row)

    @property
    def max_scroll_y(self) -> int:
        """The first row in sight where the last one is: known from the rows, before there is a layout for it."""
        return max(0, self.row_count - self.window)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Other rows are in sight: all are painted once (comparing them first costs more), and the terminal is sent
        what differs."""
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = new_value
        if round(old_value) != round(new_value):
            self.refresh()

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """A bar that appears after the first move stands where the window is."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def show_from(self, row: int) -> bool:
        """Let a row be the first in sight, as far as there are rows below it; whether that was another one."""
        row = min(max(0, row), self.max_scroll_y)
        if row == self.top:
            return False
        self.scroll_to(y=row, animate=False, immediate=True, force=True)
        return True

    def scroll_by(self, rows: int) -> None:
        """Shift the window, without the cursor."""
        if self.show_from(self.top + rows):
            self.scrolled()

    def show_cursor(self, *, top: bool = False) -> bool:
        """Bring the cursor into sight (`top`: near the upper edge); whether other rows are in sight now."""
        if not self.has_cursor:
            return self.show_from(self.top)
        window, row = self.window, self.cursor
        if top:
            return self.show_from(row - min(2, window // 4))
        if self.top <= row < self.top + window:
            return self.show_from(self.top)
        if os.environ.get("TUI_EVAL_LOCAL"):
            return self.show_from(row if row < self.top else row - window + 1)
        return self.show_from(row - window // 2)

    # -- moving

    def move_to(self, row: int, *, top: bool = False) -> None:
        """Put the cursor on a row and bring it into sight (`top`: near the upper edge)."""
        before, self.cursor = self.cursor, max(0, min(row, self.row_count - 1))
        other = self.show_cursor(top=top)
        if self.cursor != before:
            self.refresh_row(before, self.cursor)
            self.moved()
        elif other:
            self.scrolled()

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            "list.open": self.entered,
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
        """Rows down (or up)."""
        self.touched = True
        if self.has_cursor:
            self.move_to(self.cursor + step)
        else:
            self.scroll_by(step)

    def half_page(self, step: int) -> None:
        """Half a page down (or up)."""
        self._page(step * max(1, self.window // 2))

    def whole_page(self, step: int) -> None:
        """A page down (or up)."""
        self._page(step * max(1, self.window - 1))

    def to_end(self, step: int) -> None:
        """To the first (or last) row."""
        self.touched = True
        if self.has_cursor:
            self.move_to(0 if step < 0 else self.row_count - 1)
        else:
            self.scroll_by(step * self.row_count)

    def _page(self, rows: int) -> None:
        """Window and cursor go on together, so that no row is passed unseen."""
        self.touched = True
        target = self.cursor + rows
        self.scroll_by(rows)
        if self.has_cursor:
            self.move_to(target)

    # -- the mouse, where the app has it

    WHEEL = 3
    """Rows of one step of the wheel."""

    def on_click(self, event: Click) -> None:
        """The row that is clicked gets the cursor; clicked twice, it is opened."""
        place = event.get_content_offset(self)
        if place is None or not self.can_focus or not self.has_cursor or self.top + place.y >= self.row_count:
            return
        event.stop()
        self.touched = True
        self.clicked(self.top + place.y, place.x)
        if event.chain == 2:
            self.opened()

    def clicked(self, row: int, x: int) -> None:
        """The cursor goes to a row; `x` is the column of the screen in it."""
        self.move_to(row)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """The wheel."""
        self._wheel(event, self.WHEEL)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """The wheel."""
        self._wheel(event, -self.WHEEL)

    def _wheel(self, event: MouseScrollDown | MouseScrollUp, rows: int) -> None:
        """Other rows are in sight, and the cursor stays among them."""
        event.stop()
        event.prevent_default()
        self.touched = True
        self.scroll_by(rows)
        if self.has_cursor:
            self.move_to(max(self.top, min(self.cursor, self.top + self.window - 1)))
