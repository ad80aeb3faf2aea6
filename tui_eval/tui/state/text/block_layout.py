"""Blocks laid out to a width: which row shows which line, folded or not, and where a search hits."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.formatting import size
from tui_eval.tui.state.text.lines import Line, Mark, Span, cut, marked, plain, wrap

_WORDS = re.compile(r"[a-z0-9_]+(?: [a-z0-9_]+)*")
LONGEST = 2000
"""Characters of a line that are laid out where lines are not wrapped."""


class LayoutRow(NamedTuple):
    """One row on the screen: the block, which of its lines (-1: a note of ours), the character the
    row begins at, the blanks put before it, what it shows, and whether it is the block's first row."""

    block: int
    line: int
    start: int
    indent: int
    spans: Line
    first: bool


class BlockHit(NamedTuple):
    """A place where a search text stands."""

    block: int
    line: int
    start: int
    end: int


@dataclass(slots=True, eq=False)
class Layout:
    """Rows of all blocks. `firsts[i]` is the first row of block i."""

    blocks: Sequence[Block]
    rows: list[LayoutRow]
    firsts: list[int]
    width: int

    def block_at(self, row: int) -> int:
        """The block that a row shows; 0 where there is none."""
        return self.rows[row].block if 0 <= row < len(self.rows) else 0

    def row_of(self, block: int, line: int = -1, character: int = 0) -> int:
        """The row of a line (of a character in it); the block's first where it is not shown."""
        if not self.rows:
            return 0
        first = self.firsts[block]
        if line < 0:
            return first
        end = self.firsts[block + 1] if block + 1 < len(self.firsts) else len(self.rows)
        shown = [place for place in range(first, end) if self.rows[place].line >= 0]
        at = bisect_right(shown, (line, character), key=lambda place: self.rows[place][1:3]) - 1
        return shown[max(at, 0)] if shown else first


def members(blocks: Sequence[Block], head: int) -> range:
    """The places of the blocks that belong to a group."""
    end = head + 1
    while end < len(blocks) and blocks[end].depth > blocks[head].depth:
        end += 1
    return range(head + 1, end)


def heads_of(blocks: Sequence[Block], index: int) -> list[int]:
    """The places of the groups that a block stands in, the innermost first."""
    found: list[int] = []
    depth = blocks[index].depth
    for place in range(index - 1, -1, -1):
        if not depth:
            break
        if blocks[place].depth < depth:
            depth = blocks[place].depth
            if blocks[place].group:
                found.append(place)
    return found


class Layouter:
    """Lays blocks out and remembers each block's rows until it, its fold or the width changes."""

    def __init__(self) -> None:
        self.width = 80
        self.wrapped = True
        self.folded: dict[str, bool] = {}
        self.closed: set[str] = set()
        """Keys of groups whose blocks are folded away."""
        self._cache: dict[str, tuple[tuple[object, ...], list[tuple[int, int, int, Line]]]] = {}

    def is_folded(self, block: Block) -> bool:
        """Blocks that fold are folded until they are opened."""
        return self.folded.get(block.key, True) and block.foldable

    def layout(self, blocks: Sequence[Block]) -> Layout:
        """The rows of all blocks at the present width."""
        rows: list[LayoutRow] = []
        firsts: list[int] = []
        closed: int | None = None
        for index, block in enumerate(blocks):
            firsts.append(len(rows))
            if closed is not None and block.depth > closed:
                continue
            first = True
            for line, start, indent, spans in self._block_rows(block):
                rows.append(LayoutRow(index, line, start, indent, spans, first))
                first = False
            closed = block.depth if block.group and block.key in self.closed else None
            if closed is not None:
                count = len(members(blocks, index))
                words = f"{'  ' * (block.depth + 1)}… {count} part{'s' * (count != 1)} folded: → unfolds"
                rows.append(LayoutRow(index, -1, 0, 0, (Span(words, "muted"),), False))
        return Layout(blocks, rows, firsts, self.width)

    def _block_rows(self, block: Block) -> list[tuple[int, int, int, Line]]:
        folded = self.is_folded(block)
        state = (block, block.version, folded, self.width, self.wrapped)
        cached = self._cache.get(block.key)
        if cached is not None and cached[0] == state:
            return cached[1]
        rows = list(self._made(block, folded))
        self._cache[block.key] = (state, rows)
        return rows

    def _made(self, block: Block, folded: bool) -> list[tuple[int, int, int, Line]]:
        if block.kind == "turn":
            return [(0, 0, 0, next(iter(block.lines()), ()))]  # drawn as a rule, however long its words
        lines = block.head()[: block.fold] if folded else block.lines()
        rows: list[tuple[int, int, int, Line]] = []
        limit = block.fold * 3 if folded else 0
        gap = block.gap if not folded else (0, 0)
        for index, line in enumerate(lines):
            if gap[1] and index == gap[0]:
                words = f"… {gap[1] - gap[0]:,} lines not shown here: p shows all, ← and → the beginning"
                rows.append((-1, 0, 0, (Span(words, "note"),)))
            number = index if folded else block.number_of(index)
            rows.extend((number, *piece) for piece in self._wrapped(line, limit))
            if limit and len(rows) >= limit:
                rows = rows[:limit]
                break
        if folded:
            rows.append((-1, 0, 0, (Span(f"… {self._rest(block)}enter unfolds", "muted"),)))
        elif block.clipped:
            total = f" of {size(block.size)} characters" if block.size else ""
            rows.append((-1, 0, 0, (Span(f"… cut here{total}: p shows all of it", "note"),)))
        return rows or [(-1, 0, 0, ())]

    def _wrapped(self, line: Line, limit: int) -> list[tuple[int, int, Line]]:
        if self.wrapped:
            return wrap(line, self.width, limit)
        return [(0, 0, line if len(plain(line)) <= LONGEST else (*cut(line, 0, LONGEST), Span("…", "muted")))]

    @staticmethod
    def _rest(block: Block) -> str:
        if block._lines is not None and not block.gap[1]:
            return f"{len(block.lines()) - block.fold:,} more lines, "
        return f"{size(block.size)} characters, " if block.size else ""


MOST_HITS = 10_000
"""Places of a search that are kept."""


def find_all(
    blocks: Sequence[Block],
    wanted: re.Pattern[str],
    limit: int = MOST_HITS,
    progress: Callable[[int, int, Sequence[BlockHit]], bool] | None = None,
) -> list[BlockHit]:
    """Every place in the blocks where it matches, in folded and clipped parts too.

    Args:
        limit: So many places are enough.
        progress: Told which block of how many is looked at and what was found so far; the answer False ends
            the search.
    """
    hits: list[BlockHit] = []
    literal = re.sub(r"\\(.)", r"\1", wanted.pattern).lower()
    words = re.findall(r"\w+", literal)
    phrase = literal if _WORDS.fullmatch(literal) else ""
    for index, block in enumerate(blocks):
        if progress is not None and not progress(index, len(blocks), hits):
            return hits
        if not block.may_hold(words, phrase):
            continue
        for number, line in enumerate(block.all_lines()):
            for match in wanted.finditer(plain(line)):
                if match.end() > match.start():
                    hits.append(BlockHit(index, number, match.start(), match.end()))
            if len(hits) >= limit:
                return hits
    return hits


def weight(blocks: Sequence[Block]) -> int:
    """Characters that a search may have to make lines of."""
    return sum(len(block.raw) or block.size for block in blocks)


def with_marks(row: LayoutRow, marks: Sequence[Mark]) -> Line:
    """A row's spans with marks given in characters of its whole line."""
    offset, end = row.indent - row.start, len(plain(row.spans))
    shifted = [Mark(max(m.start + offset, row.indent), min(m.end + offset, end), m.style) for m in marks]
    return marked(row.spans, shifted)
