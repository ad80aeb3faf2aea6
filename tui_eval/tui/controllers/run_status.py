"""The one line that says, on every screen, what runs: drawn anew about once a second while something does."""

from __future__ import annotations

import time
from typing import Protocol

from textual.timer import Timer

from tui_eval.tui.services import Core
from tui_eval.tui.state.runs.run_facts import status_words

EVERY = 1.0
"""Seconds between two looks while a run goes on."""


class Footers(Protocol):
    """What shows the words."""

    def show_status(self) -> None:
        """Draw the end of every footer anew."""
        ...


class RunStatus:
    """Says how far the run in front is, and has the footers drawn anew when that changes; rests while none is at
    work, so that an idle line carries nothing."""

    def __init__(self, core: Core, footers: Footers) -> None:
        self._core, self._footers = core, footers
        self._timer: Timer | None = None
        self._told = ""

    @property
    def words(self) -> str:
        """`● 36/109 ✓31 ✗5 ~29s L`; empty where nothing runs."""
        run = self._core.state.run
        return status_words(run, self._core.symbols, time.time()) if run is not None else ""

    def begin(self) -> None:
        """A run has news: look from now on, until it has ended."""
        if self._timer is None and self._active:
            self._timer = self._core.tasks.every(EVERY, self._look)
            self._look()

    @property
    def _active(self) -> bool:
        run = self._core.state.run
        return run is not None and run.active

    def _look(self) -> None:
        if not self._active and self._timer is not None:
            self._timer.stop()
            self._timer = None
        words = self.words
        if words != self._told:
            self._told = words
            self._footers.show_status()
