"""`W`: on a save, the recorded answer is judged again, or the case is run again."""

from __future__ import annotations

from functools import partial
from typing import Any

from tui_eval.tui.background import run_in_thread
from tui_eval.tui.debugging_actions import DebuggingActions
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.state.app_state import CaseItem
from tui_eval.tui.state.lists.suite_changes import EditedSuite
from tui_eval.tui.state.python_imports import Imports
from tui_eval.tui.watching import Watcher, stamps


class WatchActions(DebuggingActions):
    """Follows the files of one case."""

    watch_mode = ""
    """`judge`, `rerun` or empty."""
    _watcher: Watcher | None = None
    _watched: CasePointer | None = None
    _one_column = False
    """Whether it is watched for the column that was shown alone, as on the Case screen; a line stands for all."""
    _imports = Imports()

    def action_watch(self) -> None:
        """Off, judge again on save, rerun on save."""
        modes = {"": "judge", "judge": "rerun", "rerun": ""}
        pointer = self._watched if self.watch_mode else self.pointer()
        if pointer is None or (not self.watch_mode and pointer.case_id not in self.state.by_id):
            self.say("put the cursor on a case of the suites first")
            return
        self.watch_mode = modes[self.watch_mode]
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher = None
        if self._watched is None:
            self._one_column = getattr(self.screen, "shows_one_column", False)
        self._watched = pointer if self.watch_mode else None
        if not self.watch_mode:
            self.say("watching no more")
        else:
            # What an agent imports is looked for in its files: not while a key waits.
            seen = stamps(self._plain_files())
            began = partial(self._began_watching, pointer, self.watch_mode)
            work = partial(Watcher, self.watched_files, self._saved, seen=seen)
            run_in_thread(self, work, began, name="watch")
        self._show_watch()

    def _began_watching(self, pointer: CasePointer, mode: str, watcher: Watcher) -> None:
        if (pointer, mode) != (self._watched, self.watch_mode) or self._watcher is not None:
            return
        self._watcher = watcher
        watcher.start()
        item = self.state.by_id.get(pointer.case_id)
        does = "judges again" if mode == "judge" else "reruns"
        count = f"{watcher.count} file{'s' if watcher.count != 1 else ''}"
        self.say(f"watching {count}: a save {does} {item.name if item is not None else 'the case'}")

    @property
    def watch_words(self) -> str:
        """What the status line says of it."""
        return {"judge": "watch: judge", "rerun": "watch: rerun"}.get(self.watch_mode, "")

    def _show_watch(self) -> None:
        from tui_eval.tui.widgets.bars import KeyHints

        for screen in self.screen_stack:
            for hints in screen.query(KeyHints):
                hints.refresh()

    def watched_files(self) -> list[str]:
        """The suite's files; for a rerun also those of the agent, and tui_eval.yaml. None while nothing is
        watched."""
        files = self._plain_files()
        if self.watch_mode == "rerun" and self._watched is not None:
            found, _ = self.files_of_agent(self._watched)
            files.update(map(str, self._imports.of(found, self.state.root)))
        return sorted(files)

    def _plain_files(self) -> set[str]:
        """Without what the agent's files import."""
        pointer = self._watched
        item = self._known_item(pointer)
        if pointer is None or item is None:
            return set()
        suite = next((suite for suite in self.state.suites if suite.path == item.suite), None)
        files = {str(self.state.root / item.suite), *(suite.files if suite is not None else ())}
        if self.watch_mode == "rerun":
            files.update(map(str, self.files_of_agent(pointer)[0]))
            if self.config is not None and self.config.file is not None:
                files.add(str(self.config.file))
        return files

    def _known_item(self, pointer: CasePointer | None) -> CaseItem | None:
        """Also one that its file has lost for now."""
        if pointer is None:
            return None
        return self.state.by_id.get(pointer.case_id) or self.state.gone.get(pointer.case_id)

    def _saved(self, files: list[str]) -> None:
        """In the watcher's thread."""
        self.call_later(self._on_save, files)

    def _on_save(self, files: list[str]) -> None:
        pointer = self._watched
        if pointer is None:
            return
        if any(self.desk.starting or row.state != "done" for row in self._rows_of(pointer)):
            self.set_timer(0.5, partial(self._on_save, files))
            return
        again = partial(self._again, pointer)
        if self.config is not None and str(self.config.file) in files:
            self.loader.load()
            again(EditedSuite())
        elif not self.reload_suites(files, again):
            again(EditedSuite())  # the agent's alone

    def _again(self, pointer: CasePointer, change: EditedSuite) -> None:
        """What was saved has been read: judge or run what is watched, where it is still there."""
        if pointer is not self._watched:
            return
        if pointer.case_id in change.renamed:
            pointer = self._watched = CasePointer(change.renamed[pointer.case_id])
        if pointer.case_id not in self.state.by_id:
            if not change.words:
                self.say(f"{pointer.case_id.partition('::')[2]} is not in its file: nothing to watch it for")
            return
        if self.watch_mode == "judge":
            self.judge_again(pointer, "", one_column=self._one_column)
            return
        made = self._request(pointer)
        if made is not None:
            if made[0].cells and not self._one_column:
                others = map(self.desk.cell, self._other_columns(pointer))
                made[0].cells = [*made[0].cells, *(cell for cell in others if cell is not None)]
            self.desk.send(made[0], show=False, said="")

    def _rows_of(self, pointer: CasePointer) -> list[Any]:
        return self.attempts_of(CasePointer(pointer.case_id, pointer.agent, pointer.model))
