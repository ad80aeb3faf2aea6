"""Files saved by another program, an editor in another pane or one that did not wait: read again.

Looked at in a daemon thread; nothing is sent to the terminal while nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tui_eval.guard.text import visible
from tui_eval.tui.loaders.suites_loader import Loaded
from tui_eval.tui.suites_reading import SuitesReading
from tui_eval.tui.watching import Stamp, Watcher, stamps

SECONDS = 1.0
"""Between two looks, for up to as many files as `AT_ONCE`; more files are looked at less often."""
AT_ONCE = 500


class SavedElsewhere(SuitesReading):
    """Follows the files of all suites, and tui_eval.yaml."""

    _elsewhere: Watcher | None = None
    _followed: tuple[int, list[str]] = (-1, [])

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._known: dict[str, Stamp] = {}

    def take_suites(self, loaded: Loaded) -> None:
        """Once everything has been read, follow what it was read from."""
        super().take_suites(loaded)
        if loaded.done and loaded.generation == self.loader.generation and self._elsewhere is None:
            interval = SECONDS * max(1.0, len(self._suite_files()) / AT_ONCE)
            self._elsewhere = Watcher(self._suite_files, self._saved_elsewhere, interval)
            self._elsewhere.start()

    def known_saved(self, files: Iterable[str]) -> None:
        """These files are read again, as they are now, by whoever changed them from here."""
        self._known.update(stamps(files))

    def watched_files(self) -> list[str]:
        """Files whose saving does something else (`W`)."""
        return []

    def _suite_files(self) -> list[str]:
        """In the watcher's thread too."""
        state = self.state
        version, files = self._followed
        if version != state.version:
            found = {str(state.root / suite.path) for suite in state.suites}
            found.update(file for suite in state.suites for file in suite.files)
            if self.config is not None and self.config.file is not None:
                found.add(str(self.config.file))
            files = sorted(found)
            self._followed = (state.version, files)
        return files

    def _saved_elsewhere(self, files: list[str]) -> None:
        self.call_later(self._read_saved, files)

    def _read_saved(self, files: list[str]) -> None:
        now = stamps(set(files) - set(self.watched_files()))
        files = sorted(file for file, stamp in now.items() if self._known.get(file) != stamp)
        if not files:
            return
        names = ", ".join(Path(file).name for file in files[:3]) + (" …" if len(files) > 3 else "")
        said = f"{visible(names, newlines=False)} was saved: read again"
        if self.config is not None and str(self.config.file) in files:
            self.loader.load()
            self.say(said)
        else:
            self.reload_suites(files, said)

    async def on_unmount(self) -> None:
        """Look no more."""
        if self._elsewhere is not None:
            self._elsewhere.stop()
