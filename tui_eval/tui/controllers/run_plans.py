"""What a run would be: the request for cases that are shown, by whom they are asked, and what it comes to in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tui_eval.engine.request import RunRequest
from tui_eval.guard.spelling import some_of
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.services import Core
from tui_eval.tui.state import run_requests
from tui_eval.tui.state.lists import filtering
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.entries import subject
from tui_eval.tui.state.run_requests import RunChoice
from tui_eval.tui.state.runs.run_estimate import agent_of, expected
from tui_eval.tui.state.runs.run_view import RunView

AGENTS_NAMED = 3
"""Agents that a question names before a run."""


class RunPlans:
    """Turns cases and what a person chose for them into requests, by the state alone: no engine is asked."""

    def __init__(self, core: Core, places: PlaceController) -> None:
        self.state, self._places = core.state, places
        self.choice = RunChoice()
        """What was chosen in the run dialog."""
        self.typed: dict[str, list[str]] = {}
        """By run the agents that a person typed for it here: these may be asked again without being trusted."""
        self.places_typed: set[str] = set()
        """Where a person had runs go: there more may go without being trusted."""

    def would_be(self, entries: Sequence[CaseRow]) -> list[str]:
        """What running these cases would be: how many, by whom, and what it will cost."""
        request = self.request(entries, self.choice.lasting)
        self.ask_in_columns(request, entries)
        cells = {cell.agent for cell in request.cells or () if cell.agent}
        names = request.agents or sorted(
            cells or {agent_of(self.state, entry) or "" for entry in entries} - {""}
        )
        with_whom = f"with {some_of(names, AGENTS_NAMED)}" if names else ""
        return list(filter(None, [expected(self.state, entries, request).words, with_whom]))

    def chosen(self, entries: Iterable[CaseRow], choice: RunChoice) -> list[CaseRow]:
        """The entries that the choice's filter lets through."""
        entries = list(entries)
        if not choice.filter:
            return entries
        parsed = filtering.parse(choice.filter)
        return [entry for entry in entries if parsed.matches(subject(entry))]

    def estimate(self, entries: Sequence[CaseRow], choice: RunChoice) -> tuple[str, bool]:
        """What a choice comes to in words, and whether it can be started."""
        try:
            request = self.request(entries, choice)
            chosen = self.chosen(entries, choice)
        except (ValueError, filtering.ListFilterError) as error:
            return str(error), False
        if not chosen:
            return "no case matches", False
        for name in request.agents:
            if run_requests.is_unknown(self.state.config, name):
                return f"no agent {name} here", False
        return expected(self.state, chosen, request).words, True

    def request(self, entries: Iterable[CaseRow], choice: RunChoice) -> RunRequest:
        """The request for these cases.

        Raises:
            ValueError: a number is none; one line that names the field.
        """
        asked = [run_requests.RunAsked(entry.case_id, entry.suite) for entry in self.chosen(entries, choice)]
        whole = self.state.is_whole([case.case_id for case in asked])
        return run_requests.chosen(self.project, asked, choice, whole=whole)

    @property
    def project(self) -> run_requests.Project:
        """What requests need to know of the project."""
        state = self.state
        return run_requests.Project(
            state.root, state.trusted, tuple(sorted(state.agreed)), self.state.config_file
        )

    def known(self, run_id: str, folder: Path, options: dict[str, Any]) -> run_requests.Run:
        """A run as requests that build on it know it."""
        return run_requests.Run(run_id, folder, options, run_id in self.typed)

    def built_on(self, linked_to: str | None = None) -> run_requests.Run | None:
        """The run in front, where this one is linked to it, or to none and is of its list."""
        front, place = self.front(), self._places.list_in_front
        if front is None or linked_to is not None:
            return self._known(group.find_run(linked_to) if (group := self.state.group) else None)
        return front if place is not None and place.kind == "run" else None

    def as_it_ran(self, request: RunRequest, run: run_requests.Run | None) -> RunRequest:
        """The request, changed so that it goes where the run did that it builds on."""
        return run_requests.as_it_ran(request, run, self.places_typed)

    def front(self) -> run_requests.Run | None:
        """The run in front, as requests that build on it know it."""
        return self._known(self.state.run)

    def _known(self, run: RunView | None) -> run_requests.Run | None:
        return self.known(run.info.id, run.folder, run.info.options) if run is not None else None

    def belongs(self, request: RunRequest, entries: Sequence[CaseRow]) -> str | None:
        """The run in front, where these cases are some of its and would be asked of the same agents: the
        list then keeps all of them, with what is run now in its place."""
        group, front = self.state.group, self.state.run
        if group is None or front is None or len(entries) >= len(group.cases):
            return None
        place = self._places.place
        pointer = self._places.pointer() if place is not None and place.compares else None
        own = pointer is not None and pointer.case_id == entries[0].case_id
        if pointer is not None and own and group.find_run(pointer.run_id) is None:
            return None  # the run in front may be the one that this is measured by: its answers stay
        return run_requests.part_of_front(self.state, request, entries)

    def ask_in_columns(self, request: RunRequest, entries: Sequence[CaseRow]) -> None:
        """Where no one else was chosen, cases are asked of those who were asked before, each in its own
        columns."""
        cells = [cell for entry in entries for cell in run_requests.cells_of(self.state, entry)]
        run_requests.in_columns(request, cells, self.front())

    def gone_on_with(self, folder: Path, options: dict[str, Any], on: str) -> RunRequest:
        """The request that goes on with a recorded run of these options, `on` that place."""
        request = run_requests.gone_on_with(self.project, self.typed.get(folder.name, []), on)
        return self.as_it_ran(request, self.known(folder.name, folder, options))
