"""A pane of blocks: role gutter at the left, text that wraps and folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rich.cells import cell_len

from tui_eval.tui.messages import Said
from tui_eval.tui.state.block_layout import Layout, Layouter, with_marks
from tui_eval.tui.state.blocks import Block
from tui_eval.tui.state.lines import Line, Mark, Span, fit
from tui_eval.tui.widgets.line_pane import LinePane

GUTTER = 13
"""Columns of the gutter: a bar in the role's colour, its word, two blanks."""
NARROW = 40
"""Below this many columns the gutter keeps only its bar."""


class BlockPane(LinePane):
    """Shows blocks. The cursor stands on a row; folding and jumping work on the row's block."""

    DEFAULT_CSS = """
    BlockPane.-unwrapped { overflow-x: auto; }
    """

    def __init__(self, *, name: str | None = None, empty: str = "") -> None:
        super().__init__(name=name)
        self.blocks: Sequence[Block] = ()
        self.following = False
        self.empty = empty
        self._given = False
        self._layouter = Layouter()
        self._layout = Layout((), [], [], 0)
        self._marks: dict[tuple[int, int], list[Mark]] = {}
        self._waiting: Callable[[], None] | None = None

    # -- content

    def set_blocks(self, blocks: Sequence[Block], *, keep: bool = True) -> None:
        """Show other blocks; `keep` leaves the cursor on the block (by key) it stands on."""
        key = self.blocks[self.block_index].key if keep and self.blocks else None
        within = (
            self.cursor - self._layout.firsts[self.block_index]
            if key is not None and self._layout.firsts
            else 0
        )
        self.blocks, self._given = blocks, True
        self._waiting = self._waiting if keep else None
        self._marks = {}
        if not keep:
            self._layouter.folded.clear()
            self.cursor = 0
            self.scroll_to(y=0, animate=False, immediate=True, force=True)
        self._lay_out()
        if key is not None and not self.following:
            at = next((i for i, block in enumerate(blocks) if block.key == key), None)
            if at is not None:
                self.move_to(min(self._layout.firsts[at] + within, self._end_of(at)))
        if self.following:
            self.show_tail()

    def relayout(self) -> None:
        """The width changed: the cursor stays on its character. What was to be gone to before there was a size
        is gone to now."""
        if self._waiting is not None:
            self._lay_out()
            go, self._waiting = self._waiting, None
            go()
            return
        row = self._layout.rows[self.cursor] if self.cursor < len(self._layout.rows) else None
        self._lay_out()
        if row is not None and self._layout.rows:
            self.move_to(self._layout.row_of(row.block, row.line, row.start))

    def _lay_out(self) -> None:
        self._layouter.width = max(self.text_width - self.gutter_width, 8)
        self._layout = self._layouter.layout(self.blocks)
        width = None
        if not self._layouter.wrapped:
            longest = max((sum(len(s.text) for s in row.spans) for row in self._layout.rows), default=0)
            width = max(self.text_width, longest + self.gutter_width)
        self.set_row_count(max(len(self._layout.rows), 1 if self.empty and self._given else 0), width)

    @property
    def gutter_width(self) -> int:
        """Columns before the text."""
        return GUTTER if self.text_width >= NARROW else min(GUTTER, 2)

    @property
    def block_index(self) -> int:
        """The block under the cursor."""
        return self._layout.block_at(self.cursor)

    @property
    def block(self) -> Block | None:
        """The block under the cursor, None where there are none."""
        return self.blocks[self.block_index] if self.blocks and self._layout.rows else None

    # -- drawing

    def row_line(self, row: int) -> Line:
        """Gutter and text of one row."""
        if not self._layout.rows:
            return (Span(self.empty, "muted"),)
        shown = self._layout.rows[row]
        block = self.blocks[shown.block]
        if block.kind == "turn":
            return self._rule(block)
        marks = self._marks.get((shown.block, shown.line))
        spans = with_marks(shown, marks) if marks else shown.spans
        if not self.gutter_width:
            return spans
        room = self.gutter_width - 4
        word = block.label[:room] if shown.first and room > 0 else ""
        return (
            Span("▎", block.label_style),
            Span(f" {word:<{room}}  " if room > 0 else " ", block.label_style),
            *spans,
        )

    def _rule(self, block: Block) -> Line:
        facts = next(iter(block.head() or block.lines()), ())
        text = "".join(span.text for span in facts)
        room = self.text_width - cell_len(block.label) - cell_len(text) - (5 if text else 4)
        end = (Span(" "), *facts) if text else ()
        return fit(
            (
                Span("── ", "muted"),
                Span(block.label, block.label_style),
                Span(f" {'─' * max(room, 0)}", "muted"),
                *end,
            ),
            self.text_width,
        )

    # -- jumping

    def jump_to(self, index: int, line: int = -1) -> None:
        """Put the cursor on a block (on one of its lines)."""
        if not self.size.height:
            self._waiting = partial(self.jump_to, index, line)
        if self._layout.firsts:
            self.following = False
            self.move_to(self._layout.row_of(index, line), top=True)

    def jump_to_key(self, key: str) -> bool:
        """Put the cursor on the block of that key; False where it is not shown."""
        at = next((i for i, block in enumerate(self.blocks) if block.key == key), None)
        if at is not None:
            self.jump_to(at)
        return at is not None

    def show_through(self, above: int, first: int, last: int) -> None:
        """Bring blocks into view with as much as fits of what stands above them.

        Args:
            above: The block that is wanted as the first row, if all rows from it on fit.
            first: The block to show in any case; the cursor goes there where `above` does not fit.
            last: The last of those that should be seen with it.
        """
        if not self.size.height:
            self._waiting = partial(self.show_through, above, first, last)
        if not self._layout.firsts:
            return
        height = max(self.scrollable_content_region.height, 1)
        top, begin, end = self._layout.firsts[above], self._layout.firsts[first], self._end_of(last)
        self.following = False
        if end < height:
            return
        fits = end - top < height
        row = top if fits else min(end - height + 1, max(begin - 1, 0))
        self.move_to(top if fits else begin)
        self.scroll_to(y=row, animate=False, immediate=True, force=True)

    def jump(self, step: int, kinds: Sequence[str], failing: bool = False) -> bool:
        """To the next (or previous) block of these kinds; False where there is none."""
        places = [i for i, b in enumerate(self.blocks) if b.kind in kinds and (b.failing or not failing)]
        here = self.block_index
        if step > 0:
            found = next((i for i in places if i > here), None)
        else:
            at_start = self.cursor == (self._layout.firsts[here] if self._layout.firsts else 0)
            found = next((i for i in reversed(places) if i < here or (i == here and not at_start)), None)
        if found is None:
            return False
        self.jump_to(found)
        return True

    def show_tail(self) -> None:
        """The last row in view, with room below it so that a growing text scrolls seldom."""
        last = self.row_count - 1
        height = max(self.scrollable_content_region.height, 1)
        before, self.cursor = self.cursor, max(last, 0)
        if last >= self.scroll_offset.y + height:
            self.scroll_to(y=max(last - height // 2, 0), animate=False, immediate=True, force=True)
        self.refresh_row(before)
        self.refresh_row(self.cursor)

    def _end_of(self, index: int) -> int:
        firsts = self._layout.firsts
        return (firsts[index + 1] if index + 1 < len(firsts) else len(self._layout.rows)) - 1

    # -- folding, wrapping

    def action_open(self) -> None:
        """Enter folds or unfolds the block under the cursor, else tells the tab."""
        if not self._fold(None):
            super().action_open()

    def action_unfold(self) -> None:
        """Right unfolds; in long lines it goes sideways."""
        if not self._layouter.wrapped:
            self.scroll_to(x=self.scroll_offset.x + 20, animate=False, immediate=True)
        elif not self._fold(False):
            self.post_message(Said("all of this is shown"))

    def action_fold(self) -> None:
        """Left folds; in long lines it goes sideways."""
        if not self._layouter.wrapped:
            self.scroll_to(x=max(self.scroll_offset.x - 20, 0), animate=False, immediate=True)
        elif not self._fold(True):
            self.post_message(Said("too short to fold"))

    def _fold(self, folded: bool | None) -> bool:
        block = self.block
        if block is None or not block.foldable:
            return False
        before = self._layouter.is_folded(block)
        folded = not before if folded is None else folded
        if folded != before:
            index = self.block_index
            self._layouter.folded[block.key] = folded
            if folded:
                block.back_to_the_beginning()
            self._lay_out()
            if folded:
                self.move_to(self._layout.firsts[index])
        return True

    def toggle_wrap(self) -> bool:
        """Wrap lines or not; the new setting."""
        self._layouter.wrapped = not self._layouter.wrapped
        self.set_class(not self._layouter.wrapped, "-unwrapped")
        self.scroll_to(x=0, animate=False, immediate=True)
        self.relayout()
        return self._layouter.wrapped
