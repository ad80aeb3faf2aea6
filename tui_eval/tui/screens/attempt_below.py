"""The attempt under the cursor of a table that lists no cases of the suites: of a comparison, a search, a grid, a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from textual.timer import Timer

from tui_eval.tui.handlers import Handler
from tui_eval.tui.loaders.case_loader import Where
from tui_eval.tui.screens.attempt_beside import PaneScreen, ShownAttempts
from tui_eval.tui.services import AppServices

BREAKPOINTS = [(0, "-short"), (20, "-tall"), (30, "-roomy")]
"""Lines of a screen from which on the pane is there, and is large."""
REST = 0.12
"""Seconds the cursor rests before the pane follows it, so that a held key stays cheap."""


class LookedAt(NamedTuple):
    """What is under the cursor: the attempts under what tells them apart, what stands above them, what stands there
    where none of them can be read; `turn` is the one that is looked at."""

    key: Hashable
    places: Sequence[tuple[str, Where]]
    head: Sequence[tuple[str, str]] = ()
    otherwise: Sequence[tuple[str, str]] = ()
    turn: int | None = None


class AttemptBelow:
    """Follows a table's cursor with its screen's pane."""

    def __init__(
        self, screen: PaneScreen, services: AppServices, under_cursor: Callable[[], LookedAt | None]
    ) -> None:
        """`under_cursor` says what is to be shown; None: nothing."""
        self._screen, self._under_cursor = screen, under_cursor
        self._attempts = ShownAttempts(screen, services, self.show)
        self._timer: Timer | None = None
        self._moved_at = 0.0

    def handlers(self) -> Mapping[str, Handler]:
        """What its key does."""
        return {"list.pane_size": self._attempts.resize}

    def moved(self) -> None:
        """One step shows at once what is under the cursor; of many in a row only the last does."""
        if self._timer is not None:
            self._timer.stop()
        before, self._moved_at = self._moved_at, time.monotonic()
        if self._moved_at - before > REST:
            self.show()
        else:
            self._timer = self._screen.set_timer(REST, self.show)

    def show(self) -> None:
        """Show what is under the cursor, where the pane is seen."""
        if not self._screen.has("LinesPane") or not self._screen.beside.display:
            return
        looked = self._under_cursor()
        if looked is None or not looked.places:
            self._attempts.none(looked.otherwise if looked is not None else ())
            return
        head, otherwise = looked.head, [*looked.head, *looked.otherwise]
        self._attempts.show(
            looked.key,
            looked.places,
            head,
            lambda: self._screen.beside.show(otherwise),
            turn=looked.turn,
        )
