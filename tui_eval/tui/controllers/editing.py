"""Editing a case or an agent in the person's editor, and reading what changed."""

from __future__ import annotations

from collections.abc import Mapping

from tui_eval.tui.controllers.saved_elsewhere import SavedElsewhere
from tui_eval.tui.handlers import Handler
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.services import AppServices
from tui_eval.tui.state.case_agent import agent_spec, files_of_agent
from tui_eval.tui.state.lists.suite_changes import first_error
from tui_eval.tui.watching import Stamp, stamps


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
            self._notices.say("the agent names no files, and there is no tui_eval.yaml")
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
