"""Files that change while the app is open: edited from here in the person's editor, or saved or removed by another
program, an editor in another pane or one that did not wait. What changed is read again."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tui_eval.config.project import CONFIG_NAME
from tui_eval.guard.spelling import some_of
from tui_eval.guard.text import visible
from tui_eval.tui.handlers import Handler
from tui_eval.tui.loaders.suites_loader import Loaded
from tui_eval.tui.services import AppServices, Core, Suites
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.case_agent import agent_spec, files_of_agent
from tui_eval.tui.state.lists.suite_changes import first_error
from tui_eval.tui.watching import Stamp, Watcher, stamps

if TYPE_CHECKING:
    from tui_eval.formats.discovery import Looked


class EditController:
    """`e E`."""

    def __init__(self, services: AppServices, saved: SavedElsewhere) -> None:
        self._core, self._saved = services, saved
        self._places, self._suites = services.places, services.suites
        self.state, self._notices = services.state, services.notices

    def handlers(self) -> dict[str, Handler]:
        """What its keys do."""
        return {"case.edit": self.edit_case, "agent.edit": self.edit_agent}

    def edit_case(self) -> None:
        """The file at its line in the editor; then read what changed."""
        path, line = self._place_to_edit()
        if path is None:
            self._notices.say("put the cursor on a case, a suite or a problem first")
            return
        if not os.path.exists(self.state.root / path):  # an editor would begin an empty one under its name
            self._notices.problem(f"{path} is not there any more")
            return
        suites = [suite for suite in self.state.suites if suite.path == path]
        files = sorted({str(self.state.root / path), *(file for suite in suites for file in suite.files)})
        before = stamps(files)
        trouble = self._core.editor.edit(self.state.root / path, line)
        if trouble:
            self._notices.problem(trouble)
        changed = _changed(before, stamps(files))
        if changed:
            self._saved.known(changed)
            self._suites.reload(changed, "read again: r runs it, . judges the recorded answer")

    def _place_to_edit(self) -> tuple[str | None, int]:
        place = self._places.place
        if place is not None and place.lists_cases:
            found = place.line_under_cursor()
            if found is not None and found.problem is not None:
                return found.problem.to_mend
            if found is not None and found.kind == "suite":
                return self._first_error(found.path) or (found.path, 0)
        if place is not None and (found := place.place_to_edit()) is not None:
            return found
        pointer = self._places.pointer()
        item = self.state.by_id.get(pointer.case_id) if pointer is not None else None
        if item is None:
            # Taken out of its file, or the file cannot be read any more: where that went wrong.
            item = self.state.gone.get(pointer.case_id) if pointer is not None else None
            return (self._first_error(item.suite) or (item.suite, 0)) if item is not None else (None, 0)
        if item.case is None:
            return item.suite, 0
        return item.case.file or item.suite, item.case.line

    def _first_error(self, path: str) -> tuple[str, int] | None:
        found = first_error(self.state.suites, path)
        return found[1].to_mend if found is not None else None

    def edit_agent(self) -> None:
        """The agent's files in the editor; its entry in tui_eval.yaml where it names none."""
        pointer = self._places.pointer() or self._first_below()
        files, line = files_of_agent(self.state, pointer)
        config = self.state.config
        entry_only = not files
        if not files and config is not None and config.file is not None:
            spec = agent_spec(self.state, pointer)
            files, line = [config.file], spec.line if spec is not None else 0
        if not files:
            unread = config is None and self.state.loading
            why = "the agent names no files, and there is no tui_eval.yaml"
            self._notices.say("still reading tui_eval.yaml" if unread else why)
            return
        before = stamps(map(str, files))
        trouble = self._core.editor.edit(files[0], line, files[1:])
        if trouble:
            self._notices.problem(trouble)
        changed = _changed(before, stamps(map(str, files)))
        self._saved.known(changed)
        if entry_only and changed:
            self._suites.load()
        elif changed:
            self._suites.reload(changed)
        if changed:
            self._notices.say("the agent as it is now answers the next r")

    def _first_below(self) -> CasePointer | None:
        """The first case of the suite or folder under the cursor: its agent is as good as the others'."""
        place = self._places.place
        below = place.cases_under_cursor() if place is not None and place.lists_cases else ()
        return CasePointer(below[0].case_id) if below else None


def _changed(before: Mapping[str, Stamp], now: Mapping[str, Stamp]) -> list[str]:
    return [file for file, stamp in now.items() if stamp != before.get(file)]


def _are(files: Collection[str]) -> str:
    return "is" if len(files) == 1 else "are"


def _is_gone(file: str) -> bool:
    """Whether it is surely not there: a disk that does not answer says nothing."""
    try:
        os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        pass
    return False


SECONDS = 1.0
"""Between two looks, for up to as many files as `AT_ONCE`; more files are looked at less often."""
AT_ONCE = 500


MOST_FOLLOWED = 200
"""New files that are no suites yet and are looked at again when they are saved: somebody may be writing one."""


class SavedElsewhere:
    """Follows the files of all suites, tui_eval.yaml, and the folders that suites were looked for in.
    `others` are files whose saving does something else."""

    def __init__(self, core: Core, suites: Suites) -> None:
        self._core, self._suites = core, suites
        self.others: Callable[[], Iterable[str]] = tuple
        self._watcher: Watcher | None = None
        self._followed: tuple[int, list[str]] = (-1, [])
        self._known: dict[str, Stamp] = {}
        self._looked: Looked = {}
        self._not_yet: set[str] = set()
        self._configured: bool | None = None
        """Whether there was a tui_eval.yaml when everything was read last."""
        self._lost: dict[str, list[str]] = {}
        """Files that are gone, with the suites that named them: a suite is not known by a file that it cannot read."""

    def begin(self, loaded: Loaded) -> None:
        """Once everything has been read, follow what it was read from."""
        if loaded.looked is not None:
            self._looked, self._followed = loaded.looked, (-1, [])
        if loaded.done and self._configured is False and loaded.config.file is not None:
            self.known([str(loaded.config.file)])  # new, and read now
        if loaded.done:
            self._configured = loaded.config.file is not None
        if loaded.done and self._watcher is None:
            interval = SECONDS * max(1.0, len(self.suite_files()) / AT_ONCE)
            # A folder that has changed since it was looked into has changed.
            seen = {folder: one.stamp for folder, one in self._looked.items()}
            self._watcher = Watcher(self.suite_files, self._saved, interval, seen, gone=True)
            self._watcher.start()

    @property
    def follows(self) -> bool:
        """Whether it has begun to look."""
        return self._watcher is not None

    def known(self, files: Iterable[str]) -> None:
        """These files are read again, as they are now, by whoever changed them from here."""
        self._known.update(stamps(files))

    def stop(self) -> None:
        """Look no more."""
        if self._watcher is not None:
            self._watcher.stop()

    @property
    def _configuration(self) -> str:
        """The configuration, where it is or would be."""
        config = self._core.state.config
        return str(config.file if config is not None and config.file else self._core.state.root / CONFIG_NAME)

    def suite_files(self) -> list[str]:
        """The files of all suites, tui_eval.yaml, and the folders that suites are looked for in; called in
        the watcher's thread too."""
        state = self._core.state
        version, files = self._followed
        if version != state.version:
            found = {str(state.root / suite.path) for suite in state.suites}
            found.update(file for suite in state.suites for file in suite.files)
            found.update(self._looked)
            found.update(self._not_yet, list(self._lost))
            found.add(self._configuration)
            files = sorted(found)
            self._followed = (state.version, files)
        return files

    def _saved(self, files: list[str]) -> None:
        """Called in the watcher's thread."""
        looked = self._looked
        new = self._new_suites(sorted(looked.keys() & files), sorted(self._not_yet.intersection(files)))
        if new:
            self._core.tasks.later(self._added, new)
        known = {file for file in files if file not in looked and file not in self._not_yet}
        gone = {file for file in known if _is_gone(file)}
        if gone and self._core.state.root.is_dir():  # else all of the disk is out of reach for now
            self._core.tasks.later(self._removed, gone)
        if known := sorted(known - gone):
            self._core.tasks.later(self.read, known)

    def _new_suites(self, folders: list[str], saved: list[str]) -> list[str]:
        """Suites that are new in these folders, or among new files that were saved again."""
        from tui_eval.formats.discovery import is_or_was_meant, new_in
        from tui_eval.guard.trust import Trust

        state = self._core.state
        trust = Trust(granted=state.trusted, agreed=state.agreed)
        found, others = new_in(folders, self._looked, state.root, trust)
        found += [file for one in saved if is_or_was_meant(file := Path(one), state.root, trust)]
        room = max(MOST_FOLLOWED - len(self._not_yet), 0)
        unsure = [str(file) for file in others[:room]]
        self._not_yet = self._not_yet.union(unsure).difference(map(str, found))
        self._followed = (-1, [])
        if self._watcher is not None:  # what was written meanwhile has changed, too
            now = {folder: one.stamp for folder, one in self._looked.items()}
            self._watcher.saw(now | dict.fromkeys(unsure, (0, 0, 0)))
        return [str(file) for file in found]

    def _added(self, files: list[str]) -> None:
        """These suites are new: read them, where whoever wrote them from here did not."""
        now, suites = (
            stamps(files),
            {str(self._core.state.root / suite.path) for suite in self._core.state.suites},
        )
        new = [file for file, stamp in now.items() if self._known.get(file) != stamp and file not in suites]
        if new:
            self._suites.load()
            self._core.notices.say(f"{self._named(new)} {_are(new)} new: read")

    def _removed(self, files: set[str]) -> None:
        """These files are gone: the suites among them leave the list, others that named them say so. What was read of
        the configuration holds until it is there again."""
        state = self._core.state
        if any(str(state.root / suite.path) in files for suite in state.suites):
            self._suites.load()
        elif others := files - {self._configuration}:
            for file in others:
                self._lost[file] = [str(state.root / one.path) for one in state.suites if file in one.files]
            self._suites.reload(others, f"{self._named(sorted(others))} {_are(others)} gone: read again")

    @staticmethod
    def _named(files: list[str]) -> str:
        return visible(some_of([Path(file).name for file in files], 3), newlines=False)

    def read(self, files: list[str]) -> None:
        """These files were saved: read what they belong to, where that was not done yet."""
        now = stamps(set(files) - set(self.others()))
        files = sorted(file for file, stamp in now.items() if self._known.get(file) != stamp)
        if not files:
            return
        said = f"{self._named(files)} {'was' if len(files) == 1 else 'were'} saved: read again"
        files += [suite for file in files for suite in self._lost.pop(file, ())]
        if self._configuration in files:
            self._suites.load()
            self._core.notices.say(said)
        else:
            self._suites.reload(files, said)
