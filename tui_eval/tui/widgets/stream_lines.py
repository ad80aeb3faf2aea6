"""How streaming panes are drawn: their heads and texts side by side, only what changed."""

from __future__ import annotations

import time

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui_eval.tui.state import figures
from tui_eval.tui.state.run_view import RunView
from tui_eval.tui.state.slots import Slots
from tui_eval.tui.widgets.line_view import LineView
from tui_eval.tui.widgets.painting import fit, ink, line
from tui_eval.tui.widgets.stream_pane import HEAD_STATUSES, Pane, head_text, pad

STYLES = ("text", "reasoning", "agent", "user", "tool", "result", "handoff", "warn", "bad", "dim", "good")


class StreamLines(LineView):
    """Draws `panes`, each where its area is; `selected` is the one that keys go to, `slots` knows which are
    pinned."""

    has_cursor = False
    COMPONENT_CLASSES = {
        *(f"stream--{name}" for name in STYLES),
        "stream--head",
        "stream--head-selected",
        "stream--rule",
        *(f"stream--{status}" for status in HEAD_STATUSES),
    }
    DEFAULT_CSS = """
    StreamLines { width: 1fr; }
    StreamLines .stream--reasoning { color: $text-muted; text-style: italic; }
    StreamLines .stream--agent { color: $text-accent; text-style: bold; }
    StreamLines .stream--user { color: $text-muted; }
    StreamLines .stream--tool { color: $text-secondary; }
    StreamLines .stream--result { color: $text-muted; }
    StreamLines .stream--handoff { color: $text-accent; }
    StreamLines .stream--warn { color: $text-warning; }
    StreamLines .stream--bad { color: $text-error; }
    StreamLines .stream--good { color: $text-success; }
    StreamLines .stream--dim { color: $text-muted; }
    StreamLines:ansi .stream--dim { text-style: dim; }
    StreamLines .stream--head { background: $surface; }
    StreamLines .stream--head-selected { background: $surface-lighten-2; text-style: bold; }
    StreamLines .stream--rule { color: $surface-lighten-2; }
    StreamLines .stream--passed { color: $text-success; }
    StreamLines .stream--failed { color: $text-error; }
    StreamLines .stream--error { color: $text-warning; }
    StreamLines .stream--retrying { color: $text-warning; }
    StreamLines .stream--late { color: $text-warning; }
    StreamLines .stream--running { color: $text-primary; }
    StreamLines .stream--cancelled { color: $text-muted; }
    StreamLines:ansi .stream--head { text-style: underline; }
    StreamLines:ansi .stream--head-selected { text-style: reverse; }
    """

    def __init__(self, symbols: figures.Symbols, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.symbols = symbols
        self.run_view: RunView | None = None
        self.panes: list[Pane] = []
        self.slots = Slots()
        self.selected = 0
        self.empty: list[str] = []
        self.now = time.time

    @property
    def line_count(self) -> int:
        """Lines of the pane that is scrolled."""
        pane = self.current_pane
        return len(pane.text.lines) if pane else 0

    @property
    def current_pane(self) -> Pane | None:
        """The pane that keys go to."""
        if not self.panes:
            return None
        return self.panes[min(self.selected, len(self.panes) - 1)]

    def _head_text(self, pane: Pane) -> str:
        return head_text(pane, self.run_view, self.symbols, self.now(), pane.ref in self.slots.pinned)

    def _repaint(self, pane: Pane, start: int | None = None, end: int | None = None) -> None:
        y = pane.area[1]
        first = 0 if start is None else max(0, start - pane.top)
        last = pane.rows if end is None else min(pane.rows, end - pane.top)
        if last > first:
            self.repaint(range(y + 1 + first, y + 1 + last))

    def _repaint_head(self, pane: Pane) -> None:
        fresh = self._head_text(pane)
        if fresh != pane.head:
            pane.head = fresh
            self.repaint((pane.area[1],))

    def _heads(self) -> None:
        self.repaint({pane.area[1] for pane in self.panes})

    def draw(self, index: int, width: int) -> Strip:
        """Not used: `render_line` draws all panes side by side."""
        raise NotImplementedError

    def strip_at(self, y: int) -> Strip:
        """One line of the screen, across the panes."""
        width = self.size.width
        base = self.rich_style
        if not self.panes:
            number = y - 1
            text = self.empty[number] if 0 <= number < len(self.empty) else ""
            return line([("  " + fit(text, width - 2), self._style("dim"))], width, base)
        strips: list[Strip] = []
        used = 0
        rule = Strip([Segment(self.symbols.column, base + self._style("rule"))])
        for number, pane in enumerate(self.panes):
            x, top, wide, high = pane.area
            if not top <= y < top + high:
                continue
            if x > used:
                strips.append(rule if x - used == 1 else Strip.blank(x - used, base))
            strips.append(self._pane_line(pane, y - top, wide, number == self.selected and self.has_focus))
            used = x + wide
        return Strip.join(strips).adjust_cell_length(width, base)

    def _style(self, name: str) -> Style:
        if name.startswith("head"):
            return self.get_component_rich_style(f"stream--{name}", partial=True)
        return ink(self.get_component_rich_style(f"stream--{name}"))

    def _pane_line(self, pane: Pane, y: int, width: int, selected: bool) -> Strip:
        base = self.rich_style
        if y == 0:
            head = base + self._style("head-selected" if selected else "head")
            text = pane.head = self._head_text(pane)
            return line(
                [(text[:1], self._style(pane.status(self.run_view, self.now()))), (text[1:], Style())],
                width,
                head,
            )
        shown = pane.line(y - 1)
        if shown is None:
            return Strip.blank(width, base)
        style, text = shown
        edge = " " * pad(width)
        return line([(edge + text, Style() if style == "text" else self._style(style))], width, base)
