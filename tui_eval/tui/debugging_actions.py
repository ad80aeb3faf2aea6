"""Between a red case and a green one: step, go on from a turn, judge again.

What an action needs is imported when it is used: the first paint does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tui_eval.engine.request import Recorded, RunRequest
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.editing_actions import EditingActions
from tui_eval.tui.following import Following
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.run_dialog import RunChoice
from tui_eval.tui.state.case_tree import Entry

if TYPE_CHECKING:
    from tui_eval.tui.state.case_content import CaseContent


class DebuggingActions(EditingActions, Following):
    """`b .`."""

    # -- requests

    def _request(self, pointer: CasePointer) -> tuple[RunRequest, Entry] | None:
        """One attempt of the case, by the agent it is shown with; says why where there is none."""
        item = self.state.by_id.get(pointer.case_id)
        if item is None:
            self.say("put the cursor on a case of the suites first")
            return None
        entry = Entry(pointer.case_id, pointer.case_id, item.name, item.suite, "", agent=pointer.agent or "")
        cell = self.desk.cell(pointer)
        request = self.desk.request([entry], RunChoice() if cell else self.desk.choice_for_one())
        request.attempts, request.cells = 1, [cell] if cell else None
        request.linked_to = self.desk.belongs(request, [entry])
        return request, entry

    # -- step

    def action_step(self) -> None:
        """Run the case one turn at a time."""
        pointer = self.pointer()
        made = self._request(pointer) if pointer is not None else None
        if pointer is None or made is None:
            if pointer is None:
                self.say("put the cursor on a case first")
            return
        request, entry = made
        request.step = True
        self.desk.soon(self._begin_step(request, pointer, entry.name), opens=True)

    async def _begin_step(self, request: RunRequest, pointer: CasePointer, name: str) -> None:
        from tui_eval.tui.screens.step import StepScreen

        started = await self.engine.run(request)
        self.follow(started.folder, aside=True)
        if isinstance(self.screen, StepScreen) and self.screen.ended:
            self.pop_screen()
        self.push_screen(StepScreen(started.run_id, pointer, name))

    # -- from a recorded attempt

    def continue_from(
        self, pointer: CasePointer, turn: int | None, number: int = 1, said: str | None = None
    ) -> None:
        """Run the case with the recorded turns before `turn`; None: judge the recorded answer again.
        `pointer` names the attempt, `number` says the how manieth it is: the new one takes its place."""
        made = self._request(pointer)
        if made is None or pointer.run_id is None or pointer.attempt_ref is None:
            return
        request = made[0]
        request.first_attempt, request.linked_to = number, pointer.run_id
        request.continue_from = Recorded(str(self.run_folder(pointer.run_id)), pointer.attempt_ref, turn)
        if said is None:
            said = "judging the recorded answer again" if turn is None else f"running from turn {turn} on"
        self.desk.send(request, show=False, said=said)

    async def action_judge_again(self) -> None:
        """Judge the answer that is looked at, or the last one of the case under the cursor, anew."""
        pointer = self.pointer()
        if hasattr(self.screen, "action_judge_again"):
            await self.run_action("judge_again", self.screen)
        elif pointer is None:
            self.say("put the cursor on a case first")
        else:
            self.judge_again(pointer)

    def judge_again(self, pointer: CasePointer, said: str | None = None) -> None:
        """Judge the case's last recorded answer anew; nothing is sent to the agent."""

        def take(content: CaseContent) -> None:
            row = content.row
            if row is None or row.state != "done":
                self.say("there is no recorded answer to judge")
                return
            exact = CasePointer(pointer.case_id, content.agent, content.model, content.run_id, row.id)
            self.continue_from(exact, None, row.attempt, said)

        self._with_attempt(pointer, take)

    def _with_attempt(self, pointer: CasePointer, take: Callable[[CaseContent], Any]) -> None:
        """Read the attempt that a pointer means (its last one where it names none) in a thread."""
        from tui_eval.tui.case_loader import Where, load

        item = self.state.by_id.get(pointer.case_id)
        run_id, run = pointer.run_id, self.state.run
        here = run is not None and run.find(pointer.case_id, pointer.agent, pointer.model) is not None
        if run_id is None and here and run is not None:
            run_id = run.info.id
        last = item.last_of(pointer.agent, pointer.model) if item is not None else None
        if run_id is None and last is not None:
            run_id = last.run_id
        folder = self.run_folder(run_id) if run_id else None
        where = Where(pointer, folder, None, item.case if item is not None else None, None)
        run_in_thread(self, partial(load, where), take, name="attempt", opens=True)

    def _not_written(self, error: Exception) -> None:
        self.problem(str(error))
