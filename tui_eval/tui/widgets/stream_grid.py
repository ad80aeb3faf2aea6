"""The streaming panes: what running attempts say, as it arrives, as many as fit.

One widget draws all panes, so that a flush repaints just the lines that changed. A full pane jumps by
half of its height instead of scrolling line by line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

from textual.events import Click, Resize
from textual.geometry import Region
from textual.message import Message

from tui_eval.model import Entry
from tui_eval.tui.state.lists.telling_apart import RowName, row_names
from tui_eval.tui.state.runs import stream_layout
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.runs.stream_layout import Slots
from tui_eval.tui.state.text import formatting
from tui_eval.tui.state.text.fitting import fit
from tui_eval.tui.state.text.lines import Line, Span, line_of
from tui_eval.tui.state.text.stream_text import StreamText
from tui_eval.tui.widgets.looks import Look
from tui_eval.tui.widgets.row_view import RowView
from tui_eval.tui.widgets.stream_pane import Area, Pane, head_text, pad, text_width

# -- How streaming panes are drawn: their heads and texts side by side, only what changed.


class StreamLines(RowView):
    """Draws `panes`, each where its area is; `selected` is the one that keys go to, `slots` knows which are
    pinned."""

    has_cursor = False
    LOOKS: ClassVar[Mapping[str, Look]] = {
        "failed": Look("$text-error"),
        "error": Look("$text-warning"),
        "agent": Look("$text-accent", "bold"),
    }

    def __init__(self, symbols: formatting.Symbols, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self.symbols = symbols
        self.run_view: RunView | None = None
        self.panes: list[Pane] = []
        self.slots = Slots()
        self.selected = 0
        self.empty: list[str] = []
        self.now = time.time
        self.called: Callable[[int], tuple[str, str, str] | None] = lambda case_ref: None
        """What the list beside it calls a case: its name, what tells it from others, its suite."""

    @property
    def row_count(self) -> int:
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
        run = self.run_view
        pinned = pane.ref in self.slots.pinned
        return head_text(pane, run, self.symbols, self.now(), pinned, self._beside_others().get(pane.ref))

    def _beside_others(self) -> dict[int, RowName]:
        """What the case of each pane is called beside the others."""
        attempts = self.run_view.attempts if self.run_view is not None else {}
        told = {
            pane.ref: called
            for pane in self.panes
            if (row := attempts.get(pane.ref)) is not None and (called := self.called(row.case_ref))
        }
        return dict(zip(told, row_names(told.values()), strict=True))

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

    def line_at(self, y: int) -> Line:
        """One line of the screen, across the panes."""
        if not self.panes:
            text = self.empty[y - 1] if 0 <= y - 1 < len(self.empty) else ""
            return (Span("  " + fit(text, self.size.width - 2), "dim"),)
        spans: list[Span] = []
        used = 0
        for number, pane in enumerate(self.panes):
            x, top, width, height = pane.area
            if not top <= y < top + height:
                continue
            if x > used:
                spans.append(Span(self.symbols.column, "rule") if x - used == 1 else Span(" " * (x - used)))
            spans += self._pane_line(pane, y - top, width, number == self.selected and self.has_focus)
            used = x + width
        return line_of(spans)

    def _pane_line(self, pane: Pane, y: int, width: int, selected: bool) -> Iterator[Span]:
        """A line of a pane, as wide as that is."""
        edge = pad(width)
        if y == 0:
            head = "head-selected" if selected else "head"
            pane.head = self._head_text(pane)
            text = fit(" " * edge + pane.head, width, sign="")
            yield Span(text[: edge + 1], f"{head} {pane.status(self.run_view, self.now())}")
            yield Span(text[edge + 1 :], head)
            return
        style, text = pane.line(y - 1) or ("", "")
        yield Span(fit(" " * edge + text, width, sign=""), style)


class StreamGrid(StreamLines):
    """Shows the attempts in `slots`; fed with `flush` and `tick` by the Run screen."""

    class Ended(Message):
        """An attempt with a pane is done: its last words may not have been seen."""

        def __init__(self, ref: int) -> None:
            super().__init__()
            self.ref = ref

    def __init__(self, symbols: formatting.Symbols, *, classes: str | None = None) -> None:
        super().__init__(symbols, classes=classes)
        self.zoomed: int | None = None

    # -- what the screen tells it

    def follow_run(self, run: RunView | None) -> None:
        """Another run."""
        if run is not self.run_view:
            self.run_view = run
            self.slots = stream_layout.Slots()
            self.panes = []
            self.zoomed = None
            self.assign_panes()
            self.refresh()

    def assign_panes(self) -> float | None:
        """Give the panes to the attempts that run; returns seconds until that may change."""
        run = self.run_view
        width, height = self.size.width, self.size.height
        if run is None or not width or not height or not self.is_on_screen:
            return None
        now = time.monotonic()
        room = stream_layout.capacity(width, height)
        # The newest first: their panes have the longest time before them.
        running = sorted(run.running(), key=lambda row: (-round(row.started_at or 0.0), row.id))
        before = list(self.slots.shown)
        moved = self.slots.assign([row.id for row in running], room, now, self.zoomed)
        shown = self.slots.shown
        if (
            self.zoomed is not None and self.zoomed not in shown
        ):  # zoomed is the place: who got it has the screen
            place = before.index(self.zoomed) if self.zoomed in before else 0
            self.zoomed = shown[min(place, len(shown) - 1)] if shown else None
        if self.zoomed is not None:
            shown = [self.zoomed]
        areas = stream_layout.grid(len(shown), width, height)
        wanted = list(zip(shown, areas, strict=True))
        if [(pane.ref, pane.area) for pane in self.panes] != wanted:
            self._place(wanted)
        elif moved:
            self.repaint()
        for pane in self.panes:
            self._feed(pane)
        return self.slots.next_change(now)

    def flush(self, attempts: set[int]) -> None:
        """More text for these attempts; only lines that changed are repainted."""
        for pane in self.panes:
            if pane.ref in attempts:
                self._feed(pane)

    def complete(self, ref: int, transcript: list[Entry]) -> None:
        """The whole transcript of an attempt that is done, in place of what was seen of it."""
        row = self.run_view.attempts.get(ref) if self.run_view else None
        for pane in self.panes:
            if pane.ref != ref or not pane.ended or row is None:
                continue
            pane.complete(transcript, row, self.symbols)
            self._repaint(pane)

    def tick(self) -> None:
        """Once a second: the running times."""
        for pane in self.panes:
            self._repaint_head(pane)

    def changed(self) -> None:
        """Attempts changed their state: verdicts for panes that ended, places for new ones."""
        self.assign_panes()
        for pane in self.panes:
            self._feed(pane)
            self._repaint_head(pane)

    def pin(self, ref: int) -> bool:
        """Keep this attempt's pane, or let it go; says whether it is pinned now."""
        self.slots.pinned ^= {ref}
        self.assign_panes()
        for pane in self.panes:
            self._repaint_head(pane)
        return ref in self.slots.pinned

    def zoom(self, ref: int | None) -> bool:
        """Give one pane the whole place, or all of them theirs again."""
        if self.zoomed is not None or ref is None:
            self.zoomed = None
        elif ref in self.slots.shown:
            self.zoomed = ref
        self.selected = 0
        self.assign_panes()
        self.refresh()
        return self.zoomed is not None

    def select(self, step: int) -> bool:
        """The next pane gets the keys; False past the last."""
        target = self.selected + step
        if not 0 <= target < len(self.panes):
            self.selected = 0 if step > 0 else max(0, len(self.panes) - 1)
            return False
        self.selected = target
        self._heads()
        return True

    def on_click(self, event: Click) -> None:
        """The pane that is clicked gets the keys."""
        for number, pane in enumerate(self.panes):
            x, y, width, height = pane.area
            if x <= event.x < x + width and y <= event.y < y + height:
                event.stop()
                self.selected = number
                self._heads()
                break

    def toggle_follow(self) -> bool:
        """Follow the tail, or stay."""
        pane = self.current_pane
        if pane is None:
            return False
        pane.follow = not pane.follow
        if pane.follow:
            pane.top = pane.tail
            self._repaint(pane)
        self._repaint_head(pane)
        return pane.follow

    def scroll_by(self, rows: int) -> None:
        """Scroll the pane that keys go to; it no longer follows unless its end is in sight."""
        pane = self.current_pane
        if pane is None:
            return
        most = max(0, len(pane.text.lines) - pane.rows)
        top = min(max(0, pane.top + rows), most)
        if top != pane.top:
            pane.top = top
            pane.follow = top >= most
            self._repaint(pane)
            self._repaint_head(pane)

    def half_page(self, step: int) -> None:
        """Half of the pane."""
        pane = self.current_pane
        if pane:
            self.scroll_by(step * max(1, pane.rows // 2))

    def whole_page(self, step: int) -> None:
        """The pane's height."""
        pane = self.current_pane
        if pane:
            self.scroll_by(step * max(1, pane.rows - 1))

    def on_resize(self, event: Resize) -> None:
        """Other room."""
        super().on_resize(event)
        self.assign_panes()
        self.refresh()

    def focus_changed(self) -> None:
        """The selected pane looks different."""
        self._heads()

    # -- inside

    def _place(self, wanted: list[tuple[int, Area]]) -> None:
        old = {pane.ref: pane for pane in self.panes}
        panes: list[Pane] = []
        for ref, area in wanted:
            pane = old.get(ref)
            if pane is None or pane.area[2] != area[2]:
                keep = pane
                pane = Pane(ref, area, StreamText(text_width(area), self.symbols.unicode))
                if keep is not None and keep.ended:
                    pane.text, pane.ended = keep.text, True
                    pane.fed = keep.fed
                    self.post_message(self.Ended(ref))  # its words again, in the new width
            pane.area = area
            panes.append(pane)
        self.panes = panes
        for pane in panes:
            self._feed(pane)
            pane.top = pane.tail
        self.selected = min(self.selected, max(0, len(panes) - 1))
        self.repaint()

    def _feed(self, pane: Pane) -> None:
        if self.run_view is None:
            return
        fed = pane.feed(self.run_view, self.symbols)
        if fed.ended:
            self.post_message(self.Ended(pane.ref))
        if fed.whole:
            self._repaint(pane)
        elif fed.cells:
            x, y = pane.area[0], pane.area[1] + 1
            self.refresh(*(Region(x + left, y + row, width, 1) for left, row, width in fed.cells))
