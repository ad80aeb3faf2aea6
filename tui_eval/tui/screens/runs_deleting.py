"""Deleting runs in Runs: one, the marked ones, or this and all older ones; asked before."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tui_eval.tui.background import run_in_thread
from tui_eval.tui.loaders.runs_loader import delete
from tui_eval.tui.screens.place import Place
from tui_eval.tui.state.lists.run_line import RunLine

LISTED = 5
"""Runs that the question lists."""


class RunsDeleting(Place, inherit_bindings=False):
    """The one derived holds the list of runs and the marks in it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[RunLine] = []
        """Every run, newest first."""
        self.marks: dict[str, None] = {}
        """The ids of the marked runs, in the order in which they were marked."""

    @property
    def chosen(self) -> RunLine | None:
        """The run under the cursor."""
        raise NotImplementedError

    def deleted(self) -> None:
        """Runs are gone: read the list anew."""
        raise NotImplementedError

    def action_delete(self) -> None:
        """Delete the run, or the marked ones, after asking."""
        one = self.chosen
        chosen = list(self.marks) or ([one.run.id] if one is not None else [])
        self._ask_delete([run for run in self.lines if run.run.id in chosen])

    def action_prune(self) -> None:
        """Delete this run and all older ones, after asking."""
        one = self.chosen
        if one is not None:
            self._ask_delete([run for run in self.lines if run.run.id <= one.run.id])

    def _ask_delete(self, doomed: Sequence[RunLine]) -> None:
        doomed = [one for one in doomed if not one.active]
        if not doomed:
            self.services.notices.say("nothing to delete: a run that goes on stays")
            return
        ids = [one.run.id for one in doomed]
        many = f"these {len(ids):,} runs" if len(ids) > 1 else f"run {ids[0]}"
        details = [f"{one.run.id}  {one.run.what}"[:70] for one in doomed[:LISTED]]
        details += [f"and {len(ids) - LISTED:,} more"] if len(ids) > LISTED else []

        def answer(value: str | None) -> None:
            if value == "delete":
                work = partial(delete, self.services.state.root, ids)
                run_in_thread(self.app, work, partial(self._deleted, len(ids)), name="delete", opens=True)

        self.services.ask(
            f"Delete {many} for good?", [("y", "delete", "delete"), ("n", "no", "no")], answer, details
        )

    def _deleted(self, count: int, stayed: Sequence[str]) -> None:
        for words in stayed:
            self.services.notices.problem(words)
        gone = count - len(stayed)
        self.services.notices.say(f"deleted {gone} run{'s' * (gone != 1)}")
        self.deleted()
