"""Editing a case or an agent in the person's editor, and reading what changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.saved_elsewhere import SavedElsewhere
from tui_eval.tui.screens.list_place import ListPlace
from tui_eval.tui.state.lists.suite_changes import first_error, place_of
from tui_eval.tui.watching import Stamp, stamps

if TYPE_CHECKING:
    from tui_eval.config.project import AgentSpec


class EditingActions(SavedElsewhere):
    """`e E`."""

    def action_edit_case(self) -> None:
        """The file at its line in the editor; then read what changed."""
        from tui_eval.tui.terminal.editor import edit

        path, line = self._place_to_edit()
        if path is None:
            self.say("put the cursor on a case, a suite or a problem first")
            return
        suites = [suite for suite in self.state.suites if suite.path == path]
        files = sorted({str(self.state.root / path), *(file for suite in suites for file in suite.files)})
        before = stamps(files)
        trouble = edit(self, self.state.root / path, line)
        if trouble:
            self.problem(trouble)
        changed = _changed(before, stamps(files))
        if changed:
            self.known_saved(changed)
            self.reload_suites(changed, "read again: r runs it, . judges the recorded answer")

    def _place_to_edit(self) -> tuple[str | None, int]:
        if isinstance(self.screen, ListPlace):
            found = self.screen.case_list.current_line
            if found is not None and found.problem is not None:
                return place_of(found.problem, self.state.suites)
            if found is not None and found.kind == "suite":
                return self._first_error(found.path) or (found.path, 0)
        pointer = self.pointer()
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
        if found is None:
            return None
        return place_of(found[0].problems[found[1]], [found[0]])

    def action_edit_agent(self) -> None:
        """The agent's files in the editor; its entry in tui_eval.yaml where it names none."""
        from tui_eval.tui.terminal.editor import edit

        pointer = self.pointer() or self._first_below()
        files, line = self.files_of_agent(pointer)
        config = self.config
        entry_only = not files
        if not files and config is not None and config.file is not None:
            spec = self.agent_spec(pointer)
            files, line = [config.file], spec.line if spec is not None else 0
        if not files:
            self.say("the agent names no files, and there is no tui_eval.yaml")
            return
        before = stamps(map(str, files))
        trouble = edit(self, files[0], line, files[1:])
        if trouble:
            self.problem(trouble)
        changed = _changed(before, stamps(map(str, files)))
        self.known_saved(changed)
        if entry_only and changed:
            self.loader.load()
        elif changed:
            self.reload_suites(changed)
        if changed:
            self.say("the agent as it is now answers the next r")

    def _first_below(self) -> CasePointer | None:
        """The first case of the suite or folder under the cursor: its agent is as good as the others'."""
        place = self.screen
        found = place.case_list.current_line if isinstance(place, ListPlace) else None
        below = place.case_list.below(found) if isinstance(place, ListPlace) and found is not None else []
        return CasePointer(below[0].case_id) if below else None

    def files_of_agent(self, pointer: CasePointer | None) -> tuple[list[Path], int]:
        """The files that the agent of a case is made of, and the line of its function in the first."""
        from tui_eval.tui.state.agent_files import agent_files, function_line, function_of, provider_files

        item = self.state.by_id.get(pointer.case_id) if pointer is not None else None
        case = item.case if item is not None else None
        spec = self.agent_spec(pointer)
        if spec is not None:
            files = agent_files(spec, self.state.root)
            return files, function_line(files[0], function_of(spec)) if files else 0
        if case is not None and case.provider is not None:
            return provider_files(case.provider, (self.state.root / case.suite).parent), 0
        return [], 0

    def agent_spec(self, pointer: CasePointer | None) -> AgentSpec | None:
        """The entry of the agent that a case was run by, would be run by, or that is meant."""
        if self.config is None or pointer is None:
            return None
        from tui_eval.config.project import rule_for
        from tui_eval.formats import format_of

        item = self.state.by_id.get(pointer.case_id)
        rule = rule_for(self.config, item.suite) if item is not None else None
        for name in (pointer.agent, item.agent if item is not None else None, rule.agent if rule else None):
            if name and name in self.config.agents:
                return self.config.agents[name]
        if item is not None and item.case is not None:
            return format_of(item.case.format).default_agent(item.agent, self.config)
        return None


def _changed(before: Mapping[str, Stamp], now: Mapping[str, Stamp]) -> list[str]:
    return [file for file, stamp in now.items() if stamp != before.get(file)]
