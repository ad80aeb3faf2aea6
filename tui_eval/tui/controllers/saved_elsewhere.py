"""Files saved by another program, an editor in another pane or one that did not wait: read again.

Looked at in a daemon thread; nothing is sent to the terminal while nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tui_eval.guard.text import visible
from tui_eval.tui.controllers.suites import SuiteController
from tui_eval.tui.loaders.suites_loader import Loaded
from tui_eval.tui.services import Core
from tui_eval.tui.watching import Stamp, Watcher, stamps

SECONDS = 1.0
"""Between two looks, for up to as many files as `AT_ONCE`; more files are looked at less often."""
AT_ONCE = 500


class SavedElsewhere:
    """Follows the files of all suites, and tui_eval.yaml. `others` are files whose saving does something else."""

    def __init__(self, core: Core, suites: SuiteController) -> None:
        self._core, self._suites = core, suites
        self.others: Callable[[], Iterable[str]] = tuple
        self._watcher: Watcher | None = None
        self._followed: tuple[int, list[str]] = (-1, [])
        self._known: dict[str, Stamp] = {}
        suites.on_read.append(self._begin)

    def _begin(self, loaded: Loaded) -> None:
        """Once everything has been read, follow what it was read from."""
        if loaded.done and self._watcher is None:
            interval = SECONDS * max(1.0, len(self._suite_files()) / AT_ONCE)
            self._watcher = Watcher(self._suite_files, self._saved, interval)
            self._watcher.start()

    def known(self, files: Iterable[str]) -> None:
        """These files are read again, as they are now, by whoever changed them from here."""
        self._known.update(stamps(files))

    def stop(self) -> None:
        """Look no more."""
        if self._watcher is not None:
            self._watcher.stop()

    def _suite_files(self) -> list[str]:
        """In the watcher's thread too."""
        state = self._core.state
        version, files = self._followed
        if version != state.version:
            found = {str(state.root / suite.path) for suite in state.suites}
            found.update(file for suite in state.suites for file in suite.files)
            if state.config is not None and state.config.file is not None:
                found.add(str(state.config.file))
            files = sorted(found)
            self._followed = (state.version, files)
        return files

    def _saved(self, files: list[str]) -> None:
        self._core.tasks.later(self.read, files)

    def read(self, files: list[str]) -> None:
        """These files were saved: read what they belong to, where that was not done yet."""
        now = stamps(set(files) - set(self.others()))
        files = sorted(file for file, stamp in now.items() if self._known.get(file) != stamp)
        if not files:
            return
        names = ", ".join(Path(file).name for file in files[:3]) + (" …" if len(files) > 3 else "")
        said = f"{visible(names, newlines=False)} was saved: read again"
        config = self._core.state.config
        if config is not None and str(config.file) in files:
            self._suites.load()
            self._core.notices.say(said)
        else:
            self._suites.reload(files, said)
