"""Deleting runs in Runs: one, the marked ones, or this and all older ones; asked before."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Protocol

from tui_eval.store.linked import MOST_LISTED
from tui_eval.tui.handlers import Handler
from tui_eval.tui.loaders.runs_loader import delete
from tui_eval.tui.services import AppServices
from tui_eval.tui.state.lists.run_line import RunLine

LISTED = 5
"""Runs that the question lists."""


class MarkedRuns(Protocol):
    """What deleting asks of the list of runs."""

    @property
    def lines(self) -> Sequence[RunLine]:
        """Every run, newest first."""
        ...

    @property
    def marks(self) -> Collection[str]:
        """The ids of those that are marked."""
        ...

    @property
    def chosen(self) -> RunLine | None:
        """The run under the cursor."""
        ...

    def deleted(self) -> None:
        """Runs are gone: read the list anew."""
        ...


class RunDeletion:
    """Asks, and deletes in a thread."""

    def __init__(self, runs: MarkedRuns, services: AppServices) -> None:
        self._runs, self._services = runs, services

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {"runs.delete": self.delete_chosen, "runs.prune": self.prune}

    def delete_chosen(self) -> None:
        """Delete the run, or the marked ones, after asking."""
        one = self._runs.chosen
        chosen = list(self._runs.marks) or ([one.run.id] if one is not None else [])
        self._ask_delete([run for run in self._runs.lines if run.run.id in chosen])

    def prune(self) -> None:
        """Delete this run and all older ones, after asking."""
        one = self._runs.chosen
        if one is not None:
            lines = self._runs.lines
            left = "older runs that are not listed stay" if len(lines) >= MOST_LISTED else ""
            self._ask_delete([run for run in lines if run.run.id <= one.run.id], left)

    def _ask_delete(self, doomed: Sequence[RunLine], left: str = "") -> None:
        doomed = [one for one in doomed if not one.active]
        if not doomed:
            self._services.notices.say("nothing to delete: a run that goes on stays")
            return
        ids = [one.run.id for one in doomed]
        many = f"these {len(ids):,} runs" if len(ids) > 1 else f"run {ids[0]}"
        details = [f"{one.run.id}  {one.run.what}"[:70] for one in doomed[:LISTED]]
        details += [f"and {len(ids) - LISTED:,} more"] if len(ids) > LISTED else []
        stay = sum(one.above in ids and one.run.id not in ids for one in self._runs.lines)
        details += [left] if left else []
        details += [f"what was run again of them stays: {stay:,} run{'s' * (stay != 1)}"] if stay else []

        def answer(value: str | None) -> None:
            if value == "delete":
                work = partial(delete, self._services.state.root, ids)
                self._services.tasks.thread(work, partial(self._deleted, len(ids)), name="delete", opens=True)

        self._services.ask(
            f"Delete {many} for good?", [("y", "delete", "delete"), ("n", "no", "no")], answer, details
        )

    def _deleted(self, count: int, stayed: Sequence[str]) -> None:
        for words in stayed:
            self._services.notices.problem(words)
        gone = count - len(stayed)
        self._services.notices.say(f"deleted {gone} run{'s' * (gone != 1)}")
        self._runs.deleted()
