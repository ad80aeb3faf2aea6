"""Where the keys of a HOCON document stand, and the error that says where it is broken."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from tui_eval.model import Problem

Place = tuple[str, int]
"""A file, from the project root, and a line of it."""

Path_ = tuple[Hashable, ...]


class HoconError(Exception):
    """The text cannot be read; carries the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass
class Lines:
    """Where each key path of a HOCON document stands, also those from included files."""

    path: str
    places: dict[Path_, Place] = field(default_factory=dict)

    def at(self, *path: Hashable) -> int:
        """The line (from 1) of the key or item at `path`, else of its nearest parent; 0: unknown."""
        return self._place(path)[1]

    def file(self, *path: Hashable) -> str | None:
        """The file that line is in."""
        return self._place(path)[0]

    def source(self, *path: Hashable) -> str | None:
        """None: numbers are not kept as written."""
        return None

    def _place(self, path: Path_) -> Place:
        for length in range(len(path), 0, -1):
            place = self.places.get(path[:length])
            if place is not None:
                return place
        return self.path, 1
