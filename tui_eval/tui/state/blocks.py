"""A long text as blocks that fold: what the text panes show, before anything is laid out.

A block has a role (`kind`), a word for the gutter, and lines made only as far as they are looked
at. Folding, clipping and finding work on blocks; the width of a screen comes in later
(`block_layout`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tui_eval.tui.state.lines import Line, cut, plain

CLIP = 64_000
"""Characters of one block that are shown when it is unfolded; `p` shows all of them, and a search more of them
where it finds something there."""
SEARCHED = 2_000_000
"""Characters of one block that are searched, and shown at most."""

Source = Callable[[], Iterator[Line]]


@dataclass(slots=True, eq=False)
class Block:
    """One part of a text.

    `key` is the same whenever the same thing is shown again, so that folds and the cursor stay.
    `kind` is the role (`user`, `tool_call`, `verdict`…), `label` the word in the gutter and
    `label_style` its style. `source` makes the lines; `fold` is the number of lines shown while
    folded (0: never folded) and `size` its characters where known. `failing` marks what `i` keeps. `raw`
    is the text that the lines are made of where that is long: a search looks there before it makes lines.
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
    _lines: list[Line] | None = field(default=None, repr=False)
    _head: list[Line] | None = field(default=None, repr=False)

    def lines(self) -> list[Line]:
        """All lines up to `limit` characters; `clipped` tells whether there are more."""
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
        if self._lines is not None and not self.clipped:
            yield from self._lines
            return
        room = SEARCHED
        for line in self.source():
            room -= len(plain(line)) + 1
            if room < 0:
                return
            yield line

    def reach(self, number: int) -> bool:
        """Have a line and what follows it shown, where it lies beyond `limit`; whether anything changed."""
        shown = len(self.lines())
        if not self.clipped or number < shown - 1:
            return False
        length = 0
        for index, line in enumerate(self.all_lines()):
            length += len(plain(line)) + 1
            if index >= number:
                break
        self.limit = min(length + CLIP, SEARCHED)
        self.version += 1
        self._lines = None
        return True

    def head(self) -> list[Line]:
        """Two lines more than are shown while folded, so that one can tell whether folding pays."""
        if self._lines is not None:
            return self._lines[: self.fold + 2]
        if self._head is None:
            self._head = [_shortened(line, CLIP) for line in islice(self.source(), self.fold + 2)]
        return self._head

    def may_hold(self, words: Sequence[str], phrase: str = "") -> bool:
        """Whether all these words (in lower case) may be in it; lines are not made for that. `phrase` are the
        words with the blanks between them, where they can only stand so in a text."""
        if not self.raw or (self._lines is not None and not self.clipped):
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
