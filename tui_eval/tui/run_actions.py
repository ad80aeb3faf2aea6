"""What keys do to cases and runs: run, rerun, add, cancel, pause."""

from __future__ import annotations

from tui_eval.tui.following import Following
from tui_eval.tui.screens.list_place import ListPlace
from tui_eval.tui.screens.run_dialog import RunChoice, RunDialog
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.state.lists.entries import meant, not_passed


class RunActions(Following):
    """`a A r R + x X P`."""

    def action_run_all(self) -> None:
        """Run all shown."""
        place = self.list_in_front
        if place is not None:
            self.desk.start(place.shown_entries())

    def action_rerun(self) -> None:
        """Run the case, or the marked ones."""
        place = self.list_in_front
        if place is None:
            return
        if isinstance(self.screen, ListPlace):
            entries = place.marked_entries()
            place.case_list.marks = set()
            place.case_list.refresh()
        else:
            pointer = self.pointer()
            if pointer is not None and pointer.case_id in self.state.gone:
                self.say("this case is no longer in the suites: e opens its file")
                return
            entries = [e for e in place.shown_entries() if pointer is not None and meant(e, pointer)][:1]
        several = len(entries) > 1
        self.desk.start(entries, show=several or isinstance(self.screen, RunScreen))

    def action_rerun_failed(self) -> None:
        """Run what did not pass again."""
        place = self.list_in_front
        entries = not_passed(place.shown_entries()) if place is not None else []
        if not entries:
            self.say("everything shown has passed")
            return
        run = self.state.run
        linked = run.info.id if isinstance(place, RunScreen) and run is not None else None
        self.desk.start(entries, linked_to=linked, in_their_columns=True)

    def action_once_more(self) -> None:
        """One more attempt."""
        pointer = self.pointer()
        if pointer is None:
            self.say("put the cursor on a case first")
        else:
            self.desk.once_more(pointer)

    def action_run_dialog(self) -> None:
        """Agent, attempts, limits."""
        place = self.list_in_front
        if place is None:
            return
        marked = place.case_list.marks
        entries = place.marked_entries() if marked else place.shown_entries()
        agents = sorted(self.config.agents) if self.config is not None else []

        def answer(choice: RunChoice | None) -> None:
            if choice is not None:
                self.desk.choice = choice
                self.desk.send(self.desk.request(entries, choice), show=True)

        choice = RunChoice(**{name: getattr(self.desk.choice, name) for name in RunChoice.__slots__})
        what = (
            f"the {len(entries):,} {'marked' if marked else 'shown'}" if len(entries) != 1 else "the one case"
        )
        self.push_screen(RunDialog(choice, agents, lambda c: self.desk.estimate(entries, c), what), answer)

    def action_pause(self) -> None:
        """Pause or resume the run."""
        self.desk.pause()

    def action_cancel_case(self) -> None:
        """Cancel the attempts of the case that have not ended."""
        pointer = self.pointer()
        run = self._run_of(pointer.run_id) if pointer is not None else None
        if run is None or not run.active or pointer is None:
            self.say("no running case here")
            return
        refs = [row.id for row in self.attempts_of(pointer) if row.state != "done"]
        if not refs:
            self.say("this case is not running")
            return
        self.desk.cancel(refs, run.info.id)
        self.say("cancelling the case")

    def action_cancel_run(self) -> None:
        """Cancel the run, after asking."""
        run = self.state.run
        if run is None or not run.active:
            self.say("no run goes on")
            return
        left = run.counts.total - run.counts.done
        self.ask(
            f"Cancel the run? {left:,} attempt{'s have' if left != 1 else ' has'} not ended.",
            [("y", "yes", "cancel them"), ("n", "no", "no")],
            lambda value: self.desk.cancel(None) if value == "yes" else None,
        )
