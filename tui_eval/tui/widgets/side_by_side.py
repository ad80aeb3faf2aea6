"""Two transcripts beside each other, or below each other where the screen is narrow."""

from __future__ import annotations

from collections.abc import Sequence

from tui_eval.tui.state.compare.sides_view import SidePair, SideRow, joined, layout
from tui_eval.tui.state.text.lines import Line, Span, fit
from tui_eval.tui.widgets.line_pane import LinePane


class SideBySide(LinePane):
    """Shows pairs. `side` is None for both beside each other, 0 or 1 for one alone, `STACKED` for both below
    each other."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: Sequence[SidePair] = ()
        self.side: int | None = None
        self.only_differing = False
        self._rows: list[SideRow] = []
        self._made_for: tuple = ()

    def set_pairs(self, pairs: Sequence[SidePair]) -> None:
        """Show other pairs, from the first that differs."""
        self.pairs = pairs
        self.cursor = 0
        self._rows, self._made_for = [], ()
        self.relayout()

    def show_side(self, side: int | None) -> None:
        """Both, or one; the cursor stays on its entry."""
        if side != self.side:
            self._keeping(side=side)

    def toggle_only(self) -> bool:
        """Only what differs, or everything; says which."""
        self._keeping(only=not self.only_differing)
        return self.only_differing

    def _keeping(self, *, side: int | None = -1, only: bool | None = None) -> None:
        if side != -1:
            self.side = side
        if only is not None:
            self.only_differing = only
        self.relayout()

    def relayout(self) -> None:
        """The width, the side or the pairs changed; before there is a width nothing is laid out."""
        if not self.size.width:
            return
        made_for = (self.text_width, self.side, self.only_differing, len(self.pairs))
        if made_for == self._made_for:
            return
        fresh = not self._made_for and bool(self.pairs)
        here = self._rows[self.cursor].pair if self._made_for and self.cursor < len(self._rows) else -1
        self._made_for = made_for
        self._rows = layout(self.pairs, self.text_width, side=self.side, only_differing=self.only_differing)
        self.set_row_count(max(len(self._rows), 1))
        at = next((i for i, row in enumerate(self._rows) if row.pair == here), None)
        if fresh:
            self.scroll_to(y=0, animate=False, immediate=True, force=True)
            at = next(
                (i for i, row in enumerate(self._rows) if row.pair >= 0 and self.pairs[row.pair].differs), 0
            )
            self.move_to(at, top=True)
        elif here >= 0 and at is not None:
            self.move_to(at, top=True)

    def row_line(self, row: int) -> Line:
        """One row."""
        if not self._rows:
            words = "Nothing differs." if self.pairs else "Reading both."
            return (Span(words, "muted"),)
        if self.side is not None:
            return fit(self._rows[row].left, self.text_width)
        return joined(self._rows[row], self.text_width)

    def step(self, step: int) -> bool:
        """To the next (or previous) entry that differs; False where there is none."""
        rows = self._rows
        here = rows[self.cursor].pair if self.cursor < len(rows) else -1
        starts = [
            i
            for i, row in enumerate(rows)
            if row.pair >= 0 and self.pairs[row.pair].differs and (i == 0 or rows[i - 1].pair != row.pair)
        ]
        if step > 0:
            found = next((i for i in starts if i > self.cursor and rows[i].pair != here), None)
        else:
            found = next((i for i in reversed(starts) if i < self.cursor), None)
        if found is None:
            return False
        self.move_to(found, top=True)
        return True
