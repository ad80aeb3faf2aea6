"""A pane of blocks with a search through all of it, folded parts too."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Sequence
from functools import partial

from textual.message import Message

from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.state.block_layout import Hit, find_all, weight
from tui_eval.tui.state.blocks import Block, Reached
from tui_eval.tui.state.lines import Mark, pattern
from tui_eval.tui.widgets.block_pane import BlockPane

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
        self.query_text = ""
        self._hits: list[Hit] | None = None
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
        self._query, self.query_text = pattern(query) if query else None, query
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

    def _go(self, hit: Hit) -> None:
        """To a place; what lies far down in a long block is made in a thread, and gone to unless the person has
        moved meanwhile."""
        self._going += 1
        block = self.blocks[hit.block]
        if weight((block,)) <= AT_ONCE or hit.line < len(block.head()) - 2:
            self._arrive(hit, reached(block, hit.line))
            return
        found = partial(self._found_place, self._going, hit, self.cursor)
        run_in_thread(self.app, partial(reached, block, hit.line), found, name="place")

    def _found_place(self, going: int, hit: Hit, cursor: int, there: Reached | None) -> None:
        if going == self._going and stands(self) and self.cursor == cursor:
            self._arrive(hit, there)

    def _arrive(self, hit: Hit, there: Reached | None) -> None:
        block = self.blocks[hit.block]
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

        def progress(done: int, total: int, hits: Sequence[Hit]) -> bool:
            nonlocal told
            if time.monotonic() - told > TELL and number == self._search_number:
                told = time.monotonic()
                self.app.call_later(self._some, number, list(hits), done, total)
            return number == self._search_number

        def found(hits: list[Hit]) -> None:
            if number != self._search_number or not stands(self):
                return
            self._take(hits, all_of_them=True)
            if self._asked_at is not None:
                self.post_message(self.Searched(self))

        run_in_thread(self.app, partial(find_all, blocks, wanted, progress=progress), found, name="find")

    def _some(self, number: int, hits: list[Hit], done: int, total: int) -> None:
        """What a search has found so far: it can be gone through already."""
        if number != self._search_number or not self._looking or not stands(self):
            return
        self._take(hits, all_of_them=False)
        if self._asked_at is not None:
            self.post_message(self.Searched(self, f"searching… {done:,} of {total:,} parts"))

    def _take(self, hits: list[Hit], *, all_of_them: bool) -> None:
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
        made = block is None or block._lines is not None or weight((block,)) <= AT_ONCE
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


def whole_text(blocks: Sequence[Block]) -> str:
    """Blocks as plain text: a rule per turn, the role in brackets above each part."""
    parts: list[str] = []
    for block in blocks:
        text = "\n".join(block.text()).rstrip()
        if block.kind == "turn":
            parts.append(f"── {block.label} {text}".rstrip())
        else:
            label = block.label.strip()
            parts.append((f"[{label}]\n" if label else "") + text)
    return "\n\n".join(parts) + "\n"
