"""A disk that takes no more: what becomes of a run can then not be read from it, so its engine is asked."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from tui_eval.store.write_thread import FULL, LEFT_OUT
from tui_eval.tui.following import Following
from tui_eval.tui.messages import RunChanged
from tui_eval.tui.state.runs.run_view import RunView

SECONDS = 2.0


class DiskTrouble(Following):
    """Asks while a run goes on; nothing is painted while there is nothing to tell."""

    _looking = False
    _asking: asyncio.Task[None] | None = None

    def follow(self, folder: Path, *, aside: bool = False) -> None:
        """Follow a run, and whether it can be written."""
        super().follow(folder, aside=aside)
        if not self._looking:
            self._looking = True
            self.set_interval(SECONDS, self._look_at_disk)

    def _look_at_disk(self) -> None:
        active = self.state.active
        if active and (self._asking is None or self._asking.done()):
            self._asking = asyncio.create_task(self._ask_about_disks(active))

    async def _ask_about_disks(self, runs: list[RunView]) -> None:
        for run in runs:
            if run.info.id not in self.out_of_reach and self.engine_of(run).connected:
                await self._ask_about_disk(run)

    async def _ask_about_disk(self, run: RunView) -> None:
        from tui_eval.engine.service.client import EngineError

        with contextlib.suppress(EngineError, OSError):
            trouble = str((await self.engine_of(run).state()).get("troubles", {}).get(run.info.id, ""))
            if trouble == run.trouble:
                return
            told, run.trouble = run.trouble, trouble
            if trouble and LEFT_OUT in trouble:
                self.problem(f"{trouble}; the rest of the run is kept")
            elif trouble and not told:
                self.problem(
                    f"{trouble}; the run goes on: what it finds waits in memory and is tried again. "
                    f"{'Make room there; n' if FULL in trouble else 'N'}othing finished is lost"
                )
            elif not trouble:
                self.say("there is room again: everything the run found is kept")
            self.tell(RunChanged([], True, "" if run is self.state.run else run.info.id))
