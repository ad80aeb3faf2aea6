"""The columns of a list of cases: which there are at a width, and how wide each is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui_eval.tui.state.case_entry import Extent

WORD = 9
"""Cells of an outcome's word with how often a flaky case passed, `flaky 2/3`."""

WORDS_FROM = 44
"""Columns from which a line of a run says its outcome as a word too (ux.md: glyph, word, colour); with fewer
there is no room for anything beside a name."""

TIMES_FROM = 56
"""Columns from which it says how long it took: with fewer the reason has the room, unless
a time limit is near, which must be seen before it strikes."""

NAME = 18
"""Cells that a case's name has before a message beside it gets any."""

ASIDE = 12
"""Cells below which nothing is said beside a name."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The widths of the columns right of the name; 0: not shown. Each is preceded by a space. `name` is
    where what is said beside a name begins at the latest."""

    word: int = 0
    trend: int = 0
    attempts: int = 0
    tokens: int = 0
    cost: int = 0
    duration: int = 0
    age: int = 0
    name: int = 0

    @property
    def total(self) -> int:
        """Cells they take with their spaces."""
        widths = (self.word, self.trend, self.attempts, self.tokens, self.cost, self.duration, self.age)
        return sum(width + 1 for width in widths if width)


def columns_for(kind: Literal["suites", "run"], width: int, extent: Extent) -> Columns:
    """Which columns a list of this width has: those that fit, and that any of its cases fills."""
    many = extent.attempts if extent.attempts > 1 else 0
    word = max(extent.word, len("flaky") if extent.flaky else 0)
    if kind == "run":
        time = (9 if width >= 60 else 8) if extent.limit else 6
        return Columns(
            word=word if width >= WORDS_FROM else 0,
            attempts=min(10 if width >= 60 else 5, many),
            duration=time if width >= (WORDS_FROM if extent.limit else TIMES_FROM) else 0,
            tokens=8 if width >= 100 and extent.tokens else 0,
            cost=8 if width >= 110 and extent.cost else 0,
            name=extent.name,
        )
    return Columns(
        word=WORD if extent.flaky else word,
        attempts=min(5, many) if width >= 84 else 0,
        trend=(12 if width >= 100 else 6 if width >= 44 else 0) if extent.trend else 0,
        age=4 if width >= 38 and extent.age else 0,
        duration=6 if width >= 52 and extent.duration else 0,
        cost=8 if width >= 100 and extent.cost else 0,
        name=extent.name,
    )
