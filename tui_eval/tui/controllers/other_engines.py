"""What other processes make of this project's runs while the app is open: a run in another terminal, a headless one,
a `resume`. The screens follow."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tui_eval.store.index import Index
from tui_eval.store.run_folders import DATABASE, Store
from tui_eval.tui.controllers.front_run import FrontRun
from tui_eval.tui.services import Core
from tui_eval.tui.watching import Watcher

EVERY = 1.0
"""Seconds between two looks at a handful of files' times; nothing is sent to the terminal for it."""
OWN = 2.0
"""Seconds after the history was read in which a change is the app's own."""


class OtherEngines:
    """Looks at the index and at the run in front where it has ended: both change only by what another process does,
    or by what the app knows already."""

    def __init__(self, core: Core, front_run: FrontRun) -> None:
        self._core, self._front = core, front_run
        index = Index(core.state.root).path
        self._index = (str(index), f"{index}-wal")
        self._store = Store(core.state.root)
        self._watcher: Watcher | None = None

    def begin(self) -> None:
        """Look from now on."""
        if self._watcher is None:
            self._watcher = Watcher(self._files, self._changed, EVERY)
            self._watcher.start()

    @property
    def looked_at(self) -> int:
        """How many files there are that it has looked at."""
        return self._watcher.count if self._watcher is not None else 0

    def stop(self) -> None:
        """Look no more."""
        if self._watcher is not None:
            self._watcher.stop()

    def _files(self) -> Iterator[str]:
        """Called in the watcher's thread."""
        yield from self._index
        yield str(self._store.runs_folder)  # a run begins
        run = self._core.state.run
        if run is not None and not run.active:
            yield str(run.folder / DATABASE)
            yield str(run.folder / f"{DATABASE}-wal")

    def _changed(self, files: list[str]) -> None:
        """Called in the watcher's thread."""
        if files == [str(self._store.runs_folder)]:
            newest = next(self._store.run_folders(), None)
            if newest is None or newest.name in self._front.followers:
                return  # the app's own, which it follows
            if self._core.state.find_run(newest.name) is not None:
                return
        self._core.tasks.later(self._take, files)

    def _take(self, files: list[str]) -> None:
        front, run = self._front, self._core.state.run
        if time.monotonic() - front.history_read_at < OWN:
            # It may still be another's: looked at again when the app's own news have settled.
            self._core.tasks.after(OWN, lambda: self._take(files))
            return
        if run is not None and not run.active and any(file.startswith(str(run.folder)) for file in files):
            front.follow(run.folder)
        front.refresh_history()
        front.follow_what_runs()
