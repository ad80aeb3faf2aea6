"""On a save, the recorded answer is judged again, or the case is run again."""

from __future__ import annotations

from functools import partial
from typing import Any

from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.controllers.recorded import RecordedController
from tui_eval.tui.controllers.runs import RunController
from tui_eval.tui.controllers.suites import SuiteController
from tui_eval.tui.handlers import Handler
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.services import Core
from tui_eval.tui.state.case_agent import files_of_agent
from tui_eval.tui.state.lists.suite_changes import EditedSuite
from tui_eval.tui.state.python_imports import Imports
from tui_eval.tui.watching import Watcher, stamps

_IMPORTS = Imports()


class WatchController:
    """Follows the files of one case."""

    def __init__(
        self,
        core: Core,
        places: PlaceController,
        suites: SuiteController,
        runs: RunController,
        recorded: RecordedController,
    ) -> None:
        self._core, self._places, self._suites = core, places, suites
        self._runs, self._recorded = runs, recorded
        self.state, self._notices = core.state, core.notices
        self.mode = ""
        """`judge`, `rerun` or empty."""
        self.watcher: Watcher | None = None
        self.watched: CasePointer | None = None
        self._one_column = False
        """Whether it is watched for the column that was shown alone, as on the Case screen; a line stands for
        all."""

    def handlers(self) -> dict[str, Handler]:
        """What its key does."""
        return {"watch": self.watch}

    def watch(self) -> None:
        """Off, judge again on save, rerun on save."""
        modes = {"": "judge", "judge": "rerun", "rerun": ""}
        pointer = self.watched if self.mode else self._places.pointer()
        if pointer is None or (not self.mode and pointer.case_id not in self.state.by_id):
            self._notices.say("put the cursor on a case of the suites first")
            return
        self.mode = modes[self.mode]
        if self.watcher is not None:
            self.watcher.stop()
            self.watcher = None
        if self.watched is None:
            place = self._places.place
            self._one_column = place is not None and place.one_column
        self.watched = pointer if self.mode else None
        if not self.mode:
            self._notices.say("watching no more")
        else:
            # What an agent imports is looked for in its files: not while a key waits.
            seen = stamps(self._plain_files())
            began = partial(self._began_watching, pointer, self.mode)
            work = partial(Watcher, self.files, self._saved, seen=seen)
            self._core.tasks.thread(work, began, name="watch")
        self._places.show_status()

    def _began_watching(self, pointer: CasePointer, mode: str, watcher: Watcher) -> None:
        if (pointer, mode) != (self.watched, self.mode) or self.watcher is not None:
            return
        self.watcher = watcher
        watcher.start()
        item = self.state.by_id.get(pointer.case_id)
        does = "judges again" if mode == "judge" else "reruns"
        count = f"{watcher.count} file{'s' if watcher.count != 1 else ''}"
        self._notices.say(f"watching {count}: a save {does} {item.name if item is not None else 'the case'}")

    @property
    def words(self) -> str:
        """What the status line says of it."""
        return {"judge": "watch: judge", "rerun": "watch: rerun"}.get(self.mode, "")

    def files(self) -> list[str]:
        """The suite's files; for a rerun also those of the agent, and tui_eval.yaml. None while nothing is
        watched."""
        files = self._plain_files()
        if self.mode == "rerun" and self.watched is not None:
            found, _ = files_of_agent(self.state, self.watched)
            files.update(map(str, _IMPORTS.of(found, self.state.root)))
        return sorted(files)

    def _plain_files(self) -> set[str]:
        """Without what the agent's files import."""
        pointer = self.watched
        item = self.state.item_of(pointer)
        if pointer is None or item is None:
            return set()
        suite = next((suite for suite in self.state.suites if suite.path == item.suite), None)
        files = {str(self.state.root / item.suite), *(suite.files if suite is not None else ())}
        if self.mode == "rerun":
            files.update(map(str, files_of_agent(self.state, pointer)[0]))
            if self.state.config is not None and self.state.config.file is not None:
                files.add(str(self.state.config.file))
        return files

    def _saved(self, files: list[str]) -> None:
        """In the watcher's thread."""
        self._core.tasks.later(self._on_save, files)

    def _on_save(self, files: list[str]) -> None:
        pointer = self.watched
        if pointer is None:
            return
        if any(self._runs.starting or row.state != "done" for row in self._rows_of(pointer)):
            self._core.tasks.after(0.5, partial(self._on_save, files))
            return
        again = partial(self.again, pointer)
        if self.state.config is not None and str(self.state.config.file) in files:
            self._suites.load()
            again(EditedSuite())
        elif not self._suites.reload(files, again):
            again(EditedSuite())  # the agent's alone

    def again(self, pointer: CasePointer, change: EditedSuite) -> None:
        """What was saved has been read: judge or run what is watched, where it is still there."""
        if pointer is not self.watched:
            return
        if pointer.case_id in change.renamed:
            pointer = self.watched = CasePointer(change.renamed[pointer.case_id])
        if pointer.case_id not in self.state.by_id:
            if not change.words:
                self._notices.say(
                    f"{pointer.case_id.partition('::')[2]} is not in its file: nothing to watch it for"
                )
            return
        if self.mode == "judge":
            self._recorded.judge_again(pointer, "", one_column=self._one_column)
            return
        made = self._runs.one_attempt(pointer)
        if made is not None:
            if made[0].cells and not self._one_column:
                others = map(self._runs.cell, self._recorded.other_columns(pointer))
                made[0].cells = [*made[0].cells, *(cell for cell in others if cell is not None)]
            self._runs.send(made[0], show=False, said="")

    def _rows_of(self, pointer: CasePointer) -> list[Any]:
        return self.state.attempts_of(CasePointer(pointer.case_id, pointer.agent, pointer.model))
