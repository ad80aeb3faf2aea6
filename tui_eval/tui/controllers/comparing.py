"""Two runs, two agents of one, or two attempts of a case beside each other.

The screens are imported when they are first shown: the first paint does not wait for them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tui_eval.case_names import column_label
from tui_eval.guard.text import visible
from tui_eval.store.run_folders import Store
from tui_eval.tui.front import Front, RunsMeant
from tui_eval.tui.handlers import Handler
from tui_eval.tui.services import AppServices, Core, PlaceStack

if TYPE_CHECKING:
    from tui_eval.tui.loaders.compare_loader import Column, Sides

PAIRS = 8
"""Pairs of agents that are offered; `> <` in the comparison reach the others."""


class CompareController:
    """What `c` does."""

    def __init__(self, services: AppServices) -> None:
        self._core: Core = services
        self._places: PlaceStack = services.places
        self._ask = services.ask
        self.state, self._notices = services.state, services.notices

    def handlers(self) -> dict[str, Handler]:
        """What its key does."""
        return {"compare": self.compare}

    def compare(self) -> None:
        """Two runs where one is in the list of runs, else two attempts of the case."""
        from tui_eval.tui.loaders.compare_loader import first_sides

        screen = self._places.place
        runs = screen.runs_meant() if screen is not None else None
        if screen is not None and runs is not None:
            self._compare_runs(screen, runs)
            return
        pointer = self._places.pointer()
        if pointer is None:
            self._notices.say("put the cursor on a case first, or mark two runs in Runs (H)")
            return

        def take(sides: Sides | None) -> None:
            if sides is None:
                self._notices.say("nothing to compare with: this case has one attempt so far")
            elif self._places.place is screen:
                self._places.show("sides", sides)

        run = self.state.run
        if pointer.run_id is None and run is not None and run.find(pointer.case_id) is not None:
            pointer = type(pointer)(pointer.case_id, pointer.agent, pointer.model, run.info.id)
        self._core.tasks.thread(
            partial(first_sides, self.state.root, pointer), take, name="compare", opens=True
        )

    def _compare_runs(self, screen: Front, runs: RunsMeant) -> None:
        """The runs that are meant; where none but the one under the cursor is, that with the run before it of
        the same cases, and what is compared of a run with several agents is asked."""
        from tui_eval.tui.loaders.compare_loader import Candidates, Half, candidates

        store = Store(self.state.root)
        pair, run_id = runs.pair, runs.one

        def both(before: str, after: str) -> None:
            self._places.show("compare", Half(store.folder_of(before)), Half(store.folder_of(after)))
            screen.unmark()

        if pair is not None:
            both(*pair)
        if pair is not None or not run_id:
            return
        folder = store.folder_of(run_id)

        def take(found: Candidates) -> None:
            if self._places.place is not screen:
                return
            if not found.pairs and found.before is None:
                self._notices.say(
                    "no run before it has a case of it: mark two runs with space, then c compares them"
                )
            elif not found.pairs and found.before is not None:
                both(found.before, run_id)
            else:
                ask(found)

        def ask(found: Candidates) -> None:
            answers = [
                (str(number), str(number), _against(one, other))
                for number, (one, other) in enumerate(found.pairs[:PAIRS], 1)
            ]
            before = found.before
            if before is not None:
                answers.append(("b", "before", "the run before it against this one"))

            def answer(value: str | None) -> None:
                if value == "before" and before is not None:
                    both(before, run_id)
                elif value:
                    one, other = found.pairs[int(value) - 1]
                    self._places.show("compare", Half(folder, *one), Half(folder, *other))

            self._ask("Compare which?", answers, answer)

        work = partial(candidates, self.state.root, folder)
        slow = "looking what it can be compared with"
        self._core.tasks.thread(work, take, name="columns", opens=True, slow=slow)


def _against(one: Column, other: Column) -> str:
    """Two agents for people; of one agent with two models the models."""
    if one[0] == other[0] and one[1] and other[1]:
        one, other = ("", one[1]), ("", other[1])
    return f"{_column(one)} against {_column(other)}"


def _column(column: Column) -> str:
    return visible(column_label(*column) or "no agent", newlines=False)
