"""A pane of blocks with a search through all of it, folded parts too."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial

from rich.cells import cell_len
from textual.message import Message

from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.front import Said
from tui_eval.tui.state.text.block_layout import (
    BlockHit,
    Layout,
    Layouter,
    find_all,
    heads_of,
    weight,
    with_marks,
)
from tui_eval.tui.state.text.blocks import Block, Reached, whole_text
from tui_eval.tui.state.text.lines import Line, Mark, Span, fit, pattern
from tui_eval.tui.widgets.line_pane import LinePane

# -- A pane of blocks: role gutter at the left, text that wraps and folds.


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
            self._layouter.closed.clear()
            self.cursor = 0
            self.show_from(0)
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
        self._open_groups(index)
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
        height = self.window
        top, begin, end = self._layout.firsts[above], self._layout.firsts[first], self._end_of(last)
        self.following = False
        if end < height:
            return
        fits = end - top < height
        row = top if fits else min(end - height + 1, max(begin - 1, 0))
        self.move_to(top if fits else begin)
        self.show_from(row)

    def jump(self, step: int, kinds: Sequence[str], failing: bool = False) -> bool:
        """To the next (or previous) block of these kinds; False where there is none."""
        found = self.place_of(step, kinds, failing)
        if found is not None:
            self.jump_to(found)
        return found is not None

    def place_of(self, step: int, kinds: Sequence[str], failing: bool = False) -> int | None:
        """The place of the next (or previous) block of these kinds; None where there is none."""
        here, blocks = self.block_index, self.blocks
        at_start = self.cursor == (self._layout.firsts[here] if self._layout.firsts else 0)
        places = range(here + 1, len(blocks)) if step > 0 else range(here - at_start, -1, -1)
        return next(
            (i for i in places if blocks[i].kind in kinds and (blocks[i].failing or not failing)), None
        )

    def show_tail(self) -> None:
        """The last row in view, with room below it so that a growing text scrolls seldom."""
        last = self.row_count - 1
        before, self.cursor = self.cursor, max(last, 0)
        if last >= self.top + self.window:
            self.show_from(last - self.window // 2)
        self.refresh_row(before, self.cursor)

    def _end_of(self, index: int) -> int:
        firsts = self._layout.firsts
        return (firsts[index + 1] if index + 1 < len(firsts) else len(self._layout.rows)) - 1

    # -- folding, wrapping

    def _open_groups(self, index: int) -> None:
        """Unfold the groups that a block stands in."""
        keys = {self.blocks[head].key for head in heads_of(self.blocks, index)} & self._layouter.closed
        if keys:
            self._layouter.closed -= keys
            self._lay_out()

    def _close(self, closed: bool) -> bool:
        """Fold the group under the cursor away, or unfold it; False where that changes nothing."""
        block = self.block
        if block is None or not block.group or (block.key in self._layouter.closed) is closed:
            return False
        index = self.block_index
        self._layouter.closed ^= {block.key}
        self._lay_out()
        self.move_to(self._layout.firsts[index])
        return True

    def _to_head(self) -> bool:
        """From a part of a group to its head; False where it is in none."""
        heads = heads_of(self.blocks, self.block_index) if self.block is not None else []
        if heads:
            self.move_to(self._layout.firsts[heads[0]])
        return bool(heads)

    def open(self) -> None:
        """Enter folds or unfolds the block under the cursor, or its group, else notifies the tab."""
        block = self.block
        closed = block is not None and block.key in self._layouter.closed
        if not (closed and self._close(False)) and not self._fold(None) and not self._close(True):
            super().open()

    def unfold(self) -> None:
        """Right unfolds; in long lines it goes sideways."""
        if not self._layouter.wrapped:
            self.scroll_to(x=self.scroll_offset.x + 20, animate=False, immediate=True)
        elif not self._close(False) and not self._fold(False):
            self.post_message(Said("all of this is shown"))

    def fold(self) -> None:
        """Left folds; in long lines it goes sideways."""
        if not self._layouter.wrapped:
            self.scroll_to(x=max(self.scroll_offset.x - 20, 0), animate=False, immediate=True)
        elif (not self._unfolded and self._close(True)) or (not self._unfolded and self._to_head()):
            return
        elif not self._fold(True):
            self.post_message(Said("too short to fold"))

    @property
    def _unfolded(self) -> bool:
        """Whether the block under the cursor is one that folds, and is not folded."""
        block = self.block
        return block is not None and block.foldable and not self._layouter.is_folded(block)

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


AT_ONCE = 100_000
"""Characters up to which a search is done between two keys, or a place in a block gone to; beyond them in a
thread."""
SEARCHING = -1
"""What `find` answers while it goes on."""
TELL = 0.5
"""Seconds between two words about how far a search is."""


class TextPane(BlockPane):
    """Shows blocks and finds in them. Where there is much text the search goes on in a thread."""

    class Searched(Message):
        """A search in a thread has ended (`words` empty), or says how far it is."""

        def __init__(self, pane: TextPane, words: str = "") -> None:
            super().__init__()
            self.pane = pane
            self.words = words

        @property
        def control(self) -> TextPane:
            """The pane, for `@on` selectors."""
            return self.pane

    def __init__(self, *, name: str | None = None, empty: str = "") -> None:
        super().__init__(name=name, empty=empty)
        self._query: re.Pattern[str] | None = None
        self._hits: list[BlockHit] | None = None
        self._hit = -1
        self._search_number = 0
        self._looking = False
        self._asked_at: int | None = None
        self._going = 0

    def set_blocks(self, blocks: Sequence[Block], *, keep: bool = True) -> None:
        """Show other blocks, looked through for what was looked for in those before."""
        self._hits = None
        self._going += 1
        super().set_blocks(blocks, keep=keep)
        if self._query is not None:
            self._search(self._asked_at if self._looking else None)

    def prepare(self, blocks: Sequence[Block]) -> None:
        """Make the rows of blocks that are shown soon, at the present width; of many blocks call it in a thread."""
        self._layouter.width = max(self.text_width - self.gutter_width, 8)
        self._layouter.layout(blocks)

    def find(self, query: str) -> int:
        """Look for a text, mark it everywhere and go to the first place from the cursor on.

        Returns:
            How many places there are (0: nothing is marked); `SEARCHING` where that is found out in a thread,
            after which `Searched` is sent.
        """
        self._query = pattern(query) if query else None
        if self._search(self.cursor):
            return SEARCHING
        self._to_first()
        return len(self._hits or ())

    def _to_first(self) -> None:
        """To the first place from the cursor on."""
        self._hit = -1
        self.find_next(1)

    def find_next(self, step: int) -> tuple[int, int]:
        """To the next (or previous) place; its number from 1 and how many there are."""
        if not self._hits:
            return 0, 0
        if self._hit < 0 and step:
            self._hit = bisect_left([(h.block, h.line) for h in self._hits], self._here()) - (step > 0)
        self._hit = (self._hit + step) % len(self._hits)
        self._mark()
        self._go(self._hits[self._hit])
        return self._hit + 1, len(self._hits)

    def _go(self, hit: BlockHit) -> None:
        """To a place; what lies far down in a long block is made in a thread, and gone to unless the person has
        moved meanwhile."""
        self._going += 1
        block = self.blocks[hit.block]
        if weight((block,)) <= AT_ONCE or hit.line < len(block.head()) - 2:
            self._arrive(hit, reached(block, hit.line))
            return
        found = partial(self._found_place, self._going, hit, self.cursor)
        run_in_thread(self.app, partial(reached, block, hit.line), found, name="place")

    def _found_place(self, going: int, hit: BlockHit, cursor: int, there: Reached | None) -> None:
        if going == self._going and stands(self) and self.cursor == cursor:
            self._arrive(hit, there)

    def _arrive(self, hit: BlockHit, there: Reached | None) -> None:
        block = self.blocks[hit.block]
        self._open_groups(hit.block)
        if there is not None:
            block.show(there)
        if self._layouter.is_folded(block):
            self._layouter.folded[block.key] = False
            self._lay_out()
        elif there is not None:
            self._lay_out()
        self.following = False
        self.move_to(self._layout.row_of(hit.block, hit.line, hit.start))
        self.refresh()

    @property
    def places(self) -> tuple[int, int]:
        """The place gone to last, from 1 (0: none of them), and how many there are."""
        return self._hit + 1, len(self._hits or ())

    @property
    def searching(self) -> bool:
        """Whether a search goes on in a thread."""
        return self._looking

    def _here(self) -> tuple[int, int]:
        """Block and line under the cursor."""
        rows = self._layout.rows
        row = rows[self.cursor] if self.cursor < len(rows) else None
        return (row.block, row.line) if row else (0, -1)

    def _search(self, asked_at: int | None) -> bool:
        """Look for the text in all blocks; True where that goes on in a thread.

        Args:
            asked_at: The row on which the person waits for the first place; None where nobody does.
        """
        self._search_number += 1
        self._hit, self._looking = -1, False
        if self._query is not None and weight(self.blocks) > AT_ONCE:
            self._hits, self._looking, self._asked_at = None, True, asked_at
            self._in_thread(self._search_number, self._query)
        else:
            self._hits = find_all(self.blocks, self._query) if self._query else None
        self._mark()
        self.refresh()
        return self._looking

    def _in_thread(self, number: int, wanted: re.Pattern[str]) -> None:
        blocks, told = self.blocks, time.monotonic()

        def progress(done: int, total: int, hits: Sequence[BlockHit]) -> bool:
            nonlocal told
            if time.monotonic() - told > TELL and number == self._search_number:
                told = time.monotonic()
                self.app.call_later(self._some, number, list(hits), done, total)
            return number == self._search_number

        def found(hits: list[BlockHit]) -> None:
            if number != self._search_number or not stands(self):
                return
            self._take(hits, all_of_them=True)
            if self._asked_at is not None:
                self.post_message(self.Searched(self))

        run_in_thread(self.app, partial(find_all, blocks, wanted, progress=progress), found, name="find")

    def _some(self, number: int, hits: list[BlockHit], done: int, total: int) -> None:
        """What a search has found so far: it can be gone through already."""
        if number != self._search_number or not self._looking or not stands(self):
            return
        self._take(hits, all_of_them=False)
        if self._asked_at is not None:
            self.post_message(self.Searched(self, f"searching… {done:,} of {total:,} parts"))

    def _take(self, hits: list[BlockHit], *, all_of_them: bool) -> None:
        self._hits, self._looking = hits, not all_of_them
        later = bool(hits) and (hits[-1].block, hits[-1].line) >= self._here()
        if self._hit < 0 and self._asked_at == self.cursor and (all_of_them or later):
            self._to_first()  # the person is still where they asked
        self._mark()
        self.refresh()

    def _mark(self) -> None:
        self._marks = {}
        for number, hit in enumerate(self._hits or ()):
            word = "hit-here" if number == self._hit else "hit"
            self._marks.setdefault((hit.block, hit.line), []).append(Mark(hit.start, hit.end, word))

    # -- unfolding

    def _fold(self, folded: bool | None) -> bool:
        """As of any pane; the lines of a long block are made in a thread first."""
        block = self.block
        made = block is None or block.has_lines or weight((block,)) <= AT_ONCE
        if made or folded is True or not block or not self._layouter.is_folded(block):
            return super()._fold(folded)

        def unfold(_: object) -> None:
            if stands(self) and self.block is block and self._layouter.is_folded(block):
                BlockPane._fold(self, False)

        run_in_thread(self.app, block.lines, unfold, name="unfold", opens=True)
        return True

    # -- all of it

    def rows_text(self) -> str:
        """The whole text with its roles, folded and clipped parts too."""
        return whole_text(self.blocks)


def reached(block: Block, line: int) -> Reached | None:
    """What a block is to show so that a line of it is shown; None where it is shown already."""
    return None if block.shows(line) else block.about(line)
