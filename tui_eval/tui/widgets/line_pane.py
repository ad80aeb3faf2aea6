"""The base of the inspector's panes: rows drawn one at a time, a cursor, no animation.

A Line API widget: a cursor key repaints two rows (terminal.md 0.1). Where the cursor leaves the
view, the view jumps by half a page, so that a slow line carries one repaint for many keys.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.binding import Binding, BindingType
from textual.color import Color
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
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import KEYS
from tui_eval.tui.state.text.lines import Line, Span, letters

# -- The style words of the inspector's state modules, and what they look like.


class Look(NamedTuple):
    """What a word looks like: colours by their names in the theme (`$text-error`, `$warning 40%`), and
    attributes in Rich's words."""

    color: str = ""
    attributes: str = ""
    background: str = ""


_MUTED = Look("$text-muted")
_STRONG = Look(attributes="bold")
LOOKS: dict[str, Look] = {
    "muted": _MUTED,
    "label": _MUTED,
    "strong": _STRONG,
    "heading": Look("$text-primary", "bold"),
    "emphasis": Look(attributes="italic"),
    "code": Look("$text-accent"),
    "thinking": Look("$text-muted", "italic"),
    "note": Look("$text-warning"),
    "error": Look("$text-warning", "bold"),
    "agent": Look("$text-secondary", "bold"),
    "json-key": Look("$text-primary"),
    "json-text": Look("$text-success"),
    "json-number": Look("$text-accent"),
    "json-word": Look("$text-accent"),
    "json-mark": _MUTED,
    "passed": Look("$text-success"),
    "failed": Look("$text-error", "bold"),
    "cancelled": _MUTED,
    "skipped": _MUTED,
    "running": Look("$text-primary"),
    "waiting": _MUTED,
    "role-user": Look("$text-primary", "bold"),
    "role-assistant": Look("$text-success", "bold"),
    "role-reasoning": _MUTED,
    "role-tool_call": Look("$text-accent", "bold"),
    "role-tool_result": Look("$text-accent"),
    "role-hand_off": Look("$text-secondary", "bold"),
    "role-note": _MUTED,
    "role-error": Look("$text-error", "bold"),
    "removed": Look("$text-error", "reverse"),
    "added": Look("$text-warning", "reverse"),
    "removed-sign": Look("$text-error", "bold"),
    "added-sign": Look("$text-warning", "bold"),
    "differs": Look("$text-error", "bold"),
    "was": Look("$text-success"),
    "missing": Look("$text-error"),
    "extra": Look("$text-warning"),
    "tab": Look(),
    "tab-empty": _MUTED,
    "tab-active": Look(attributes="bold reverse"),
    "hit": Look(attributes="underline", background="$warning 40%"),
    "hit-here": Look(attributes="reverse bold"),
    "cell-here": Look(attributes="reverse bold"),
    "hit-wanted": Look(attributes="underline", background="$success 30%"),
    "hit-forbidden": Look(attributes="bold underline", background="$error 45%"),
    "hit-near": Look(attributes="italic underline", background="$warning 25%"),
    "cursor": Look(background="$primary 30%"),
    "cursor-away": Look(background="$foreground 8%"),
}
"""Every style word of the state modules."""
_DIM = Look("ansi_default", "dim")
_OWN_COLOURS: dict[str, Look] = {
    **{word: _DIM for word, look in LOOKS.items() if look.color == "$text-muted"},
    "cursor": Look(attributes="reverse"),
    "cursor-away": Look(attributes="underline"),
    "hit": Look(attributes="underline bold"),
    "cell-here": Look(attributes="underline bold"),
    "hit-wanted": Look(attributes="underline bold"),
    "hit-forbidden": Look(attributes="reverse"),
    "hit-near": Look(attributes="italic underline"),
}
"""Those that look otherwise in the terminal's own colours."""


def style_of(app: App[object], word: str, under: Color) -> Style:
    """A word's style over a background.

    Raises:
        KeyError: there is no such word.
    """
    look = LOOKS[word]
    if app.native_ansi_color:
        look = _OWN_COLOURS.get(word, look)
    variables = _variables(app)
    back = front = None
    if look.background:
        under = under + _color(look.background, variables, under)
        back = under.rich_color
    if look.color:
        front = _over(look.color, variables, under)
    return Style.from_color(front, back) + Style.parse(look.attributes or "none")


_MADE: dict[tuple[str, str | None, str], dict[str, str]] = {}


def _variables(app: App[object]) -> dict[str, str]:
    """The theme's colours by name; making them takes a millisecond, and there are many words."""
    theme = app.current_theme
    key = (theme.name, theme.background, theme.primary)
    if key not in _MADE:
        _MADE[key] = app.get_css_variables()
    return _MADE[key]


def _over(name: str, variables: dict[str, str], under: Color) -> RichColor:
    return (under + _color(name, variables, under)).rich_color


def _color(name: str, variables: dict[str, str], under: Color) -> Color:
    """A colour of the theme; `auto 60%` is what can be read on the background."""
    name, _, share = name.partition(" ")
    value, _, own_share = variables.get(name.removeprefix("$"), name).partition(" ")
    alpha = 1.0
    for part in (share, own_share):
        if part:
            alpha *= float(part.removesuffix("%")) / 100
    if value == "auto":
        return under.get_contrast_text(alpha)
    color = Color.parse(value)
    return color if alpha == 1.0 else color.multiply_alpha(alpha)


_MOVES = (
    "list.down",
    "list.up",
    "list.half_down",
    "list.half_up",
    "list.page_down",
    "list.page_up",
    "list.top",
    "list.bottom",
    "list.open",
    "list.unfold",
    "list.fold",
)
MOVE_KEYS = tuple(key for key in KEYS if key.id in _MOVES)


class LinePane(ScrollView, can_focus=True, inherit_bindings=False):
    """Rows of styled text with a cursor. Subclasses say how many rows there are and draw one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key.keys, f"app.do('{key.id}')", key.words, show=False, id=key.id) for key in MOVE_KEYS
    ]
    DEFAULT_CSS = """
    LinePane {
        background: $background;
        overflow-x: hidden;
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

    def __init__(self, *, name: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, classes=classes)
        self.row_count = 0
        self.cursor = 0
        self._styles_made: dict[str, Style] = {}
        self._laid_out_to = 0

    # -- what subclasses give

    def row_line(self, row: int) -> Line:
        """What one row shows; called for visible rows only."""
        raise NotImplementedError

    def cursor_line(self, row: int) -> bool:
        """Whether the cursor's background goes over the whole row."""
        return row == self.cursor

    def relayout(self) -> None:
        """Called when the width changes; makes rows anew and calls `set_row_count`."""

    # -- rows

    @property
    def text_width(self) -> int:
        """Columns for text: the pane without its scrollbar."""
        return max(self.scrollable_content_region.width, 1)

    def set_row_count(self, count: int, width: int | None = None) -> None:
        """Say how many rows there are, keeping the cursor within them, and repaint."""
        self.row_count = count
        self._laid_out_to = self.text_width  # rows made while a pane was hidden are made again when it is not
        self.virtual_size = Size(width or self.text_width, count)
        self.cursor = min(self.cursor, max(count - 1, 0))
        self.refresh()

    def style(self, words: str) -> Style:
        """The Rich style of one or several style words, later ones on top."""
        made = self._styles_made.get(words)
        if made is None:
            made, under = Style.null(), self.background_colors[1]
            for word in words.split():
                made += style_of(self.app, word, under)
            self._styles_made[words] = made
        return made

    def notify_style_update(self) -> None:
        """The theme changed."""
        self._styles_made.clear()
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """One row of the view."""
        x, top = self.scroll_offset
        row = top + y
        width = self.size.width
        base = self.rich_style
        if row >= self.row_count:
            return Strip.blank(width, base)
        line = self.row_line(row)
        if not self._has_glyphs:
            line = tuple(Span(letters(text), words) for text, words in line)
        segments = [Segment(text, base + self.style(words) if words else base) for text, words in line]
        strip = Strip(segments).crop_extend(x, x + width, base)
        if self.cursor_line(row):
            word = "cursor" if self.has_focus else "cursor-away"
            strip = _under(strip, self.style(word))
        return strip

    @property
    def _has_glyphs(self) -> bool:
        """Whether the terminal can show more than ASCII (the app knows)."""
        return getattr(getattr(getattr(self.app, "services", None), "symbols", None), "unicode", True)

    # -- moving

    def move_to(self, row: int, *, top: bool = False) -> None:
        """Put the cursor on a row and bring it into view (`top`: near the upper edge)."""
        row = max(0, min(row, self.row_count - 1)) if self.row_count else 0
        before, self.cursor = self.cursor, row
        self._show(row, top)
        if before != row:
            self.refresh_row(before)
            self.refresh_row(row)
            self.post_message(self.Moved(self, row))

    def refresh_row(self, row: int) -> None:
        """Repaint one row where it is in view."""
        if 0 <= row - self.scroll_offset.y < self.size.height:
            self.refresh_line(row)

    def _show(self, row: int, top: bool) -> None:
        height = max(self.scrollable_content_region.height, 1)
        first = self.scroll_offset.y
        if top:
            target = row - min(2, height // 4)
        elif first <= row < first + height:
            return
        elif os.environ.get("TUI_EVAL_LOCAL"):
            target = row if row < first else row - height + 1
        else:
            target = row - height // 2
        self.scroll_to(y=max(target, 0), animate=False, immediate=True, force=True)

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """A bar that appears after the first move stands where the view is."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def on_resize(self, event: Resize) -> None:
        """Rows depend on the width; a pane that comes back as wide as it was is not painted twice."""
        if self.text_width != self._laid_out_to:
            self._laid_out_to = self.text_width
            self.relayout()

    def on_focus(self, event: Focus) -> None:
        """The cursor's colour tells which pane has the keys; one row is repainted, not the pane."""
        event.prevent_default()
        self.has_focus = True
        self.refresh_row(self.cursor)
        if self.parent is not None:
            self.parent.post_message(DescendantFocus(self))

    def on_blur(self, event: Blur) -> None:
        """As above."""
        event.prevent_default()
        self.has_focus = False
        self.refresh_row(self.cursor)
        if self.parent is not None:
            self.parent.post_message(DescendantBlur(self))

    # -- the mouse, where the app has it

    WHEEL = 3
    """Rows of one step of the wheel."""

    def on_click(self, event: Click) -> None:
        """The row that is clicked gets the cursor; clicked twice, it is opened."""
        place = event.get_content_offset(self)
        if place is None or not self.can_focus or self.scroll_offset.y + place.y >= self.row_count:
            return
        event.stop()
        self.clicked(self.scroll_offset.y + place.y, place.x)
        if event.chain == 2:
            self.open()

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
        """Other rows are in view, and the cursor stays among them."""
        event.stop()
        event.prevent_default()
        height = max(self.scrollable_content_region.height, 1)
        first = max(0, min(self.scroll_offset.y + rows, self.row_count - height))
        self.scroll_to(y=first, animate=False, immediate=True, force=True)
        self.move_to(max(first, min(self.cursor, first + height - 1)))

    # -- moving by keys

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
            "list.open": self.open,
            "list.unfold": self.unfold,
            "list.fold": self.fold,
        }

    def move_by(self, step: int) -> None:
        """Rows down (or up)."""
        self.move_to(self.cursor + step)

    def half_page(self, step: int) -> None:
        """Half a page down (or up)."""
        self.move_to(self.cursor + step * max(self.size.height // 2, 1))

    def whole_page(self, step: int) -> None:
        """A page down (or up)."""
        self.move_to(self.cursor + step * max(self.size.height - 1, 1))

    def to_end(self, step: int) -> None:
        """To the first (or last) row."""
        self.move_to(0 if step < 0 else self.row_count - 1)

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


def _under(strip: Strip, style: Style) -> Strip:
    """The strip with a background put under it where it has none of its own kind."""
    return Strip([Segment(text, (own or Style.null()) + style) for text, own, _ in strip], strip.cell_length)


def region_of(pane: LinePane, rows: Sequence[int]) -> Region:
    """The part of the screen that rows take; for tests."""
    return Region(
        pane.region.x, pane.region.y + min(rows) - pane.scroll_offset.y, pane.region.width, len(rows)
    )
