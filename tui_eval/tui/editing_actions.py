"""Editing a case or an agent in the person's editor, and reading what changed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tui_eval.tui.screens.list_place import ListPlace
from tui_eval.tui.suites_reading import SuitesReading


class EditingActions(SuitesReading):
    """`e E`."""

    def action_edit_case(self) -> None:
        """The file at its line in the editor; then read what changed."""
        from tui_eval.tui.editing import edit

        path, line = self._place_to_edit()
        if path is None:
            self.say("put the cursor on a case, a suite or a problem first")
            return
        suites = [suite for suite in self.state.suites if suite.path == path]
        files = sorted({str(self.state.root / path), *(file for suite in suites for file in suite.files)})
        before = _stamps(files)
        trouble = edit(self, self.state.root / path, line)
        if trouble:
            self.problem(trouble)
        changed = [file for file, stamp in _stamps(files).items() if stamp != before.get(file)]
        if changed:
            self.reload_suites(changed)

    def _place_to_edit(self) -> tuple[str | None, int]:
        if isinstance(self.screen, ListPlace):
            found = self.screen.case_list.current_line
            if found is not None and found.problem is not None:
                return found.problem.path, found.problem.line
            if found is not None and found.kind == "suite":
                return found.path, 0
        pointer = self.pointer()
        item = self.state.by_id.get(pointer.case_id) if pointer is not None else None
        if item is None:
            return None, 0
        return item.suite, item.case.line if item.case is not None else 0

    def action_edit_agent(self) -> None:
        """The agent's files in the editor; its entry in tui_eval.yaml where it names none."""
        from tui_eval.tui.editing import edit

        pointer = self.pointer()
        item = self.state.by_id.get(pointer.case_id) if pointer is not None else None
        name = (pointer.agent if pointer else None) or (item.agent if item else None)
        config = self.config
        spec = config.agents.get(name) if config is not None and name else None
        if config is None or spec is None:
            if config is not None and config.file is not None:
                edit(self, config.file)
                self.loader.load()
                return
            self.say(f"agent {name or ''} has no entry in tui_eval.yaml")
            return
        base = Path(spec.base) if spec.base else config.root
        files = [base / file for file in spec.files]
        line = 0
        if not files and config.file is not None:
            files, line = [config.file], spec.line
        if not files:
            self.say(f"agent {name} names no files")
            return
        trouble = edit(self, files[0], line, files[1:])
        if trouble:
            self.problem(trouble)
        if config.file in files:
            self.loader.load()


def _stamps(files: Iterable[str]) -> dict[str, tuple[int, int]]:
    stamps: dict[str, tuple[int, int]] = {}
    for file in files:
        with suppress(OSError):
            status = os.stat(file)
            stamps[file] = (status.st_mtime_ns, status.st_size)
    return stamps
