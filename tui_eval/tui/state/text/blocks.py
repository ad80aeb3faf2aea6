"""A long text as blocks that fold: what the text panes show, before anything is laid out.

A block has a role (`kind`), a word for the gutter, and lines made only as far as they are looked
at. Folding, clipping and finding work on blocks; the width of a screen comes in later
(`block_layout`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from tui_eval.tui.state.text.lines import Line, cut, plain

CLIP = 64_000
"""Characters of one block that are shown when it is unfolded; `p` shows all of them, and a search more of them
where it finds something there."""
SEARCHED = 2_000_000
"""Characters of one block that are searched."""
ABOVE = CLIP // 4
"""Characters that are shown before a line far down in a block."""

Source = Callable[[], Iterator[Line]]


class Reached(NamedTuple):
    """What a block shows where a place far down in it was gone to: its first lines and those about the place, the
    lines left out between them, and whether there are more after them."""

    lines: list[Line]
    gap: tuple[int, int]
    clipped: bool


@dataclass(slots=True, eq=False)
class Block:
    """One part of a text.

    `key` is the same whenever the same thing is shown again, so that folds and the cursor stay.
    `kind` is the role (`user`, `tool_call`, `verdict`…), `label` the word in the gutter and
    `label_style` its style. `source` makes the lines; `fold` is the number of lines shown while
    folded (0: never folded) and `size` its characters where known. `failing` marks what `i` keeps. `raw`
    is the text that the lines are made of where that is long: a search looks there before it makes lines.
    Blocks of a greater `depth` that follow one that is a `group` belong to it, and fold away with it.
    `gap` are the lines, from one up to before another, that are left out where a place far down is shown.
    """

    key: str
    kind: str
    label: str
    source: Source
    turn: int = 0
    label_style: str = ""
    fold: int = 0
    size: int = 0
    failing: bool = False
    call_id: str | None = None
    version: int = 0
    clipped: bool = False
    limit: int = CLIP
    raw: str = ""
    gap: tuple[int, int] = (0, 0)
    depth: int = 0
    group: bool = False
    _lines: list[Line] | None = field(default=None, repr=False)
    _head: list[Line] | None = field(default=None, repr=False)

    @property
    def has_lines(self) -> bool:
        """Whether its lines are made: asking for them costs nothing."""
        return self._lines is not None

    def lines(self) -> list[Line]:
        """All lines up to `limit` characters (or those about a place far down, see `gap`); `clipped` says whether
        there are more after them."""
        if self._lines is None:
            made, self.clipped = self._made(self.limit)
            self._lines = made  # whole: a search in a thread may look at them
        return self._lines

    def _made(self, limit: int) -> tuple[list[Line], bool]:
        """Lines up to so many characters, and whether there are more."""
        lines: list[Line] = []
        for line in self.source():
            length = len(plain(line))
            if length > limit:
                if limit > 200:
                    lines.append(_shortened(line, limit))
                return lines, True
            limit -= length + 1
            lines.append(line)
        return lines, False

    def all_lines(self) -> Iterator[Line]:
        """The lines that are searched, beyond those that are shown too; they are not kept."""
        if self._whole:
            yield from self._lines or ()
            return
        room = SEARCHED
        for line in self.source():
            room -= len(plain(line)) + 1
            if room < 0:
                return
            yield line

    @property
    def _whole(self) -> bool:
        """Whether all lines are there."""
        return self._lines is not None and not self.clipped and not self.gap[1]

    def number_of(self, index: int) -> int:
        """The number of the line at a place among those shown."""
        first, after = self.gap
        return index if index < first else index + after - first

    def shows(self, number: int) -> bool:
        """Whether a line is among those shown when it is unfolded, whole."""
        lines, (first, after) = self.lines(), self.gap
        if first <= number < after:
            return False
        shown = number if number < first else number - after + first
        return not self.clipped or shown < len(lines) - 1

    def about(self, number: int) -> Reached:
        """What is to be shown so that a line far down is: the beginning as it is folded, then the lines about it.
        All lines up to there are made, so of a long block call it in a thread; nothing of the block changes."""
        about: deque[Line] = deque()
        first: list[Line] = []
        total = ahead = 0
        after = CLIP
        clipped, count = False, 0
        for at, line in enumerate(self.source()):
            length = len(plain(line)) + 1
            total += length
            after -= length if at > number else 0
            if total > SEARCHED or after < 0:
                clipped = True
                break
            count = at + 1
            if at < self.fold:
                first.append(_shortened(line, CLIP))
                continue
            about.append(line if at == number else _shortened(line, CLIP))
            ahead += length if at < number else 0
            while at <= number and ahead > ABOVE and len(about) > 1:
                ahead -= len(plain(about.popleft())) + 1
        begin = count - len(about)
        return Reached([*first, *about], (len(first), begin) if begin > len(first) else (0, 0), clipped)

    def show(self, reached: Reached) -> None:
        """Show what was found to be about a place."""
        self._lines, self.gap, self.clipped = reached
        self.version += 1

    def back_to_the_beginning(self) -> None:
        """Show the beginning again, as at first."""
        if self.gap[1]:
            self._lines, self.gap = None, (0, 0)
            self.version += 1

    def head(self) -> list[Line]:
        """Two lines more than are shown while folded, so that one can tell whether folding pays."""
        if self._lines is not None and not self.gap[1]:
            return self._lines[: self.fold + 2]
        if self._head is None:
            self._head = [_shortened(line, CLIP) for line in islice(self.source(), self.fold + 2)]
        return self._head

    def may_hold(self, words: Sequence[str], phrase: str = "") -> bool:
        """Whether all these words (in lower case) may be in it; lines are not made for that. `phrase` are the
        words with the blanks between them, where they can only stand so in a text."""
        if not self.raw or self._whole:
            return True
        text = self.raw.lower()
        if phrase:
            return phrase in text
        escaped = "\\u" in text  # as JSON writes letters beyond ASCII, or some of them
        return all(word in text or (escaped and not word.isascii()) for word in words)

    @property
    def foldable(self) -> bool:
        """Whether folding hides anything."""
        return bool(self.fold) and (
            len(self.head()) > self.fold + 1 or _characters(self.head()) > self.fold * 160
        )

    def text(self) -> Iterator[str]:
        """The whole text, unclipped, line by line (for the pager)."""
        for line in self.source():
            yield plain(line)


def _shortened(line: Line, limit: int) -> Line:
    return line if len(plain(line)) <= limit else cut(line, 0, limit)


def _characters(lines: list[Line]) -> int:
    return sum(len(plain(line)) for line in lines)


def with_heads(make: Callable[[], list[Block]]) -> list[Block]:
    """Blocks with what is shown of them while they are folded made already; of long ones call it in a thread."""
    blocks = make()
    for block in blocks:
        block.head()
    return blocks


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
