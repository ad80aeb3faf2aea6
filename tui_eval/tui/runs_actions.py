"""Whole runs: the list of them, opening, going on, comparing, the grid.

The screens are imported when they are first shown: the first paint does not wait for them.
"""

from __future__ import annotations

from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tui_eval.engine.request import RunRequest
from tui_eval.guard.text import visible
from tui_eval.store.run_folders import Store, is_alive
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.following import Following
from tui_eval.tui.screens.run_screen import RunScreen

if TYPE_CHECKING:
    from tui_eval.tui.app import EvalApp
    from tui_eval.tui.failure_names import FailureNamesQuestion
    from tui_eval.tui.loaders.compare_loader import Column, Sides
    from tui_eval.tui.screens.runs_screen import RunsScreen


LOOKED_AT = 20
"""Newest runs among which one that is at work is looked for."""
PAIRS = 8
"""Pairs of agents that are offered; `> <` in the comparison reach the others."""


class RunsActions(Following):
    """`H c M`, and what enter, `u` and `n` do in Runs."""

    @cached_property
    def naming(self) -> FailureNamesQuestion:
        """What the judge names, whatever screen is in front."""
        from tui_eval.tui.failure_names import FailureNamesQuestion

        return FailureNamesQuestion(cast("EvalApp", self))

    def action_show_runs(self) -> None:
        """All runs."""
        from tui_eval.tui.screens.runs_screen import RunsScreen

        for screen in self.screen_stack:
            if isinstance(screen, RunsScreen):
                while self.screen is not screen:
                    self.pop_screen()
                return
        self.push_screen(RunsScreen())

    def action_show_run(self) -> None:
        """The run in front; where none has been yet, one that is at work, else the newest."""
        if self.state.run is None and not self.desk.starting and not self.followers:
            newest = list(islice(Store(self.state.root).run_folders(), LOOKED_AT))
            folder = next(filter(is_alive, newest), None) or next(iter(newest), None)
            if folder is not None:
                self.open_run(folder)
                return
        super().action_show_run()

    def open_run(self, folder: Path) -> None:
        """Bring a run to the front: follow it, attach to its engine where one is at work, show it."""
        run = self.state.run
        if run is None or run.folder != folder:
            self._open_run = folder
            self.follow(folder)
        for screen in self.screen_stack:
            if isinstance(screen, RunScreen):
                while self.screen is not screen:
                    self.pop_screen()
                return
        self.push_screen(RunScreen())

    def take_up(self, folder: Path) -> None:
        """Go on with a run that was cut off, and show it."""
        self.desk.soon(self._take_up(folder), opens=True)

    async def _take_up(self, folder: Path) -> None:
        # Who was typed here is typed still; what another's record says is not (`engine.resuming`).
        typed = self.desk.typed.get(folder.name, [])
        started: Any = await self.engine.resume_run(
            folder, RunRequest(trust=self.state.trusted, agreed=sorted(self.state.agreed), agents=list(typed))
        )
        for problem in started.problems:
            self.log_line("error", problem)
        self.follow(started.folder)
        self.open_run(started.folder)
        self.say(f"going on, {started.attempts} attempt{'s' if started.attempts != 1 else ''}")

    def action_show_grid(self) -> None:
        """Tests down, prompts and agents across; or the list again."""
        from tui_eval.tui.screens.grid import GridScreen

        place = self.list_in_front
        if isinstance(self.screen, GridScreen):
            self.pop_screen()
        elif place is not None:
            while self.screen is not place:
                self.pop_screen()
            self.push_screen(GridScreen(place))

    def action_compare(self) -> None:
        """Two runs where one is in the list of runs, else two attempts of the case."""
        from tui_eval.tui.loaders.compare_loader import first_sides
        from tui_eval.tui.screens.runs_screen import RunsScreen
        from tui_eval.tui.screens.sides import SidesScreen

        screen = self.screen
        if isinstance(screen, RunsScreen):
            self._compare_runs(screen)
            return
        pointer = self.pointer()
        if pointer is None:
            self.say("put the cursor on a case first, or mark two runs in Runs (H)")
            return

        def take(sides: Sides | None) -> None:
            if sides is None:
                self.say("nothing to compare with: this case has one attempt so far")
            elif self.screen is screen:
                self.push_screen(SidesScreen(sides))

        run = self.state.run
        if pointer.run_id is None and run is not None and run.find(pointer.case_id) is not None:
            pointer = type(pointer)(pointer.case_id, pointer.agent, pointer.model, run.info.id)
        run_in_thread(self, partial(first_sides, self.state.root, pointer), take, name="compare", opens=True)

    def _compare_runs(self, screen: RunsScreen) -> None:
        """The runs that are meant; where none but the one under the cursor is, that with the run before it of
        the same cases, and what is compared of a run with several agents is asked."""
        from tui_eval.tui.loaders.compare_loader import Candidates, Half, candidates
        from tui_eval.tui.screens.compare_screen import CompareScreen

        store = Store(self.state.root)
        pair, one = screen.compared(), screen.chosen

        def both(before: str, after: str) -> None:
            self.push_screen(CompareScreen(Half(store.folder_of(before)), Half(store.folder_of(after))))
            screen.unmark()

        if pair is not None:
            both(*pair)
        if pair is not None or one is None:
            return
        run_id, folder = one.run.id, store.folder_of(one.run.id)

        def take(found: Candidates) -> None:
            if self.screen is not screen:
                return
            if not found.pairs and found.before is None:
                self.say("no run before it has a case of it: mark two runs with space, then c compares them")
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
                    self.push_screen(CompareScreen(Half(folder, *one), Half(folder, *other)))

            self.ask("Compare which?", answers, answer)

        work = partial(candidates, self.state.root, folder)
        run_in_thread(self, work, take, name="columns", opens=True)


def _against(one: Column, other: Column) -> str:
    """Two agents for people; of one agent with two models the models."""
    if one[0] == other[0] and one[1] and other[1]:
        one, other = ("", one[1]), ("", other[1])
    return f"{_column(one)} against {_column(other)}"


def _column(column: Column) -> str:
    return visible(", ".join(part for part in column if part) or "no agent", newlines=False)
