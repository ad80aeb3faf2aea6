"""Which running attempts have a streaming pane, and for how long.

Pure; times are seconds of any one clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

LINGER = 2.0
"""Seconds that a finished pane shows its verdict before it gives its place to the next."""
ROWS = 11
"""Lines of a pane below which panes stand side by side instead."""


@dataclass(slots=True)
class Slots:
    """The attempts shown, in the places they keep; `finished` says when one ended."""

    shown: list[int] = field(default_factory=list)
    pinned: set[int] = field(default_factory=set)
    finished: dict[int, float] = field(default_factory=dict)

    def assign(self, running: Iterable[int], capacity: int, now: float, front: int | None = None) -> bool:
        """Give the places to what runs; says whether the places changed.

        An attempt keeps its place while it runs, and `LINGER` after it; a pinned one keeps it until
        it is let go. When there is less room, the unpinned ones that came last lose theirs, `front` (it has
        the whole screen) last of all.
        """
        before = list(self.shown)
        wanted = list(running)
        alive = set(wanted)
        for ref in self.shown:
            if ref not in alive:
                self.finished.setdefault(ref, now)
        waiting = [ref for ref in wanted if ref not in self.shown]
        pins = [ref for ref in waiting if ref in self.pinned]
        places: list[int] = []
        for ref in self.shown:
            over = ref not in alive and now - self.finished.get(ref, now) >= LINGER
            if not over or ref in self.pinned:
                places.append(ref)
            elif waiting:
                places.append(waiting.pop(0))
            elif alive:
                continue
            else:
                places.append(ref)
        for ref in pins:
            if ref not in places:
                places.insert(0, ref)
        while len(places) > max(0, capacity):
            behind = [ref for ref in places if ref != front] or places
            loose = [ref for ref in behind if ref not in self.pinned] or behind
            ended = [ref for ref in loose if ref not in alive]
            places.remove((ended or loose)[-1])
        for ref in waiting:
            if len(places) < capacity and ref not in places:
                places.append(ref)
        self.shown = places
        self.finished = {ref: at for ref, at in self.finished.items() if ref in places and ref not in alive}
        return places != before

    def next_change(self, now: float) -> float | None:
        """Seconds until a finished pane may give its place away; None if none lingers."""
        left = [at + LINGER - now for ref, at in self.finished.items() if ref not in self.pinned]
        return max(0.05, min(left)) if left else None


def capacity(width: int, height: int) -> int:
    """How many panes fit: at least 11 lines and 36 columns each, one on a small screen; at most 12."""
    if height < 24 or width < 60:
        return 1
    return max(1, min(12, min(3, width // 36) * (height // ROWS)))


def grid(count: int, width: int, height: int) -> list[tuple[int, int, int, int]]:
    """Rectangles (x, y, width, height) for `count` panes: stacked while few, then in columns. A
    column of one cell stands between panes side by side."""
    if count <= 0:
        return []
    columns = 1
    while columns < 3 and -(-count // columns) * ROWS > height and width // (columns + 1) >= 34:
        columns += 1
    rows = -(-count // columns)
    places: list[tuple[int, int, int, int]] = []
    for number in range(count):
        row, column = divmod(number, columns)
        across = min(columns, count - row * columns)
        left = width * column // across
        right = width * (column + 1) // across - (1 if column + 1 < across else 0)
        top, bottom = height * row // rows, height * (row + 1) // rows
        places.append((left, top, right - left, bottom - top))
    return places
