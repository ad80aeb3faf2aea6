"""Whole runs: the list of them, opening, going on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tui_eval.tui.following import Following
from tui_eval.tui.screens.run import RunScreen
from tui_eval.tui.screens.runs import RunsScreen


class RunsActions(Following):
    """`H`, and what enter and `u` do in Runs."""

    def action_show_runs(self) -> None:
        """All runs."""
        for screen in self.screen_stack:
            if isinstance(screen, RunsScreen):
                while self.screen is not screen:
                    self.pop_screen()
                return
        self.push_screen(RunsScreen())

    def open_run(self, folder: Path) -> None:
        """Bring a run to the front: follow it, attach to its engine where one is at work, show it."""
        run = self.state.run
        if run is None or run.folder != folder:
            self._open_run = folder
            self.follow(folder)
        for screen in self.screen_stack:
            if isinstance(screen, RunScreen):
                while self.screen is not screen:
                    self.pop_screen()
                return
        self.push_screen(RunScreen())

    def take_up(self, folder: Path) -> None:
        """Go on with a run that was cut off, and show it."""
        self.desk.soon(self._take_up(folder))

    async def _take_up(self, folder: Path) -> None:
        started: Any = await self.engine.resume_run(folder)
        for problem in started.problems:
            self.log_line("error", problem)
        self.follow(started.folder)
        self.open_run(started.folder)
        self.say(f"going on, {started.attempts} attempt{'s' if started.attempts != 1 else ''}")
