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
"""Characters of one block that are shown when it is unfolded; `p` shows all of them."""

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
    raw: str = ""
    _lines: list[Line] | None = field(default=None, repr=False)
    _head: list[Line] | None = field(default=None, repr=False)

    def lines(self) -> list[Line]:
        """All lines up to `CLIP` characters; `clipped` tells whether there are more."""
        if self._lines is None:
            self._lines, room = [], CLIP
            for line in self.source():
                length = len(plain(line))
                if length > room:
                    self.clipped = True
                    if room > 200:
                        self._lines.append(_shortened(line, room))
                    break
                room -= length + 1
                self._lines.append(line)
        return self._lines

    def head(self) -> list[Line]:
        """Two lines more than are shown while folded, so that one can tell whether folding pays."""
        if self._lines is not None:
            return self._lines[: self.fold + 2]
        if self._head is None:
            self._head = [_shortened(line, CLIP) for line in islice(self.source(), self.fold + 2)]
        return self._head

    def may_hold(self, words: Sequence[str]) -> bool:
        """Whether all these words (in lower case) may be in it; lines are not made for that."""
        if self._lines is not None or not self.raw:
            return True
        text = self.raw.lower()
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
