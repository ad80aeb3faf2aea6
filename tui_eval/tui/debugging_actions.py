"""Between a red case and a green one: step, go on from a turn, judge again.

What an action needs is imported when it is used: the first paint does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tui_eval.engine.request import RunRequest
from tui_eval.store import case_state
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.editing_actions import EditingActions
from tui_eval.tui.following import Following
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.state import run_requests
from tui_eval.tui.state.lists.case_tree import CaseRow

if TYPE_CHECKING:
    from tui_eval.tui.state.case.case_content import CaseContent


class DebuggingActions(EditingActions, Following):
    """`b .`."""

    # -- requests

    def _request(self, pointer: CasePointer) -> tuple[RunRequest, CaseRow] | None:
        """One attempt of the case, by the agent it is shown with; says why where there is none."""
        item = self.state.by_id.get(pointer.case_id)
        if item is None:
            self.say("put the cursor on a case of the suites first")
            return None
        entry = CaseRow(
            pointer.case_id, pointer.case_id, item.name, item.suite, "", agent=pointer.agent or ""
        )
        case = run_requests.RunAsked(pointer.case_id, item.suite)
        cell, choice = self.desk.cell(pointer), self.desk.choice_for_one()
        request = run_requests.one_attempt(self.desk.project, case, choice, cell)
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
        from tui_eval.tui.screens.step_screen import StepScreen

        started = await self.engine.run(request)
        self.follow(started.folder, aside=True)
        if isinstance(self.screen, StepScreen) and self.screen.ended:
            self.pop_screen()
        self.push_screen(StepScreen(started.run_id, pointer, name))

    # -- from a recorded attempt

    async def action_judge_again(self) -> None:
        """Judge the answer that is looked at, or the last one of the case under the cursor, anew."""
        pointer = self.pointer()
        if hasattr(self.screen, "action_judge_again"):
            await self.run_action("judge_again", self.screen)
        elif pointer is None:
            self.say("put the cursor on a case first")
        else:
            self.judge_again(pointer)

    def judge_again(self, pointer: CasePointer, said: str | None = None, *, one_column: bool = False) -> None:
        """Judge the case's last recorded answers anew; nothing is sent to the agent.

        A line that stands for several columns stands for all of them by the file as it is, not for one by the file
        of now beside others by that of before; `one_column`: the one that is pointed at alone is meant.
        """

        def take(content: CaseContent) -> None:
            row = content.row
            if row is None or row.state != "done":
                self.say("there is no recorded answer to judge")
                return
            self.from_recorded(content, None, said)

        def take_beside(content: CaseContent) -> None:
            if content.row is not None and content.row.state == "done":
                self.from_recorded(content, None, "", aside=True)

        self._with_attempt(pointer, take)
        for other in () if one_column else self._other_columns(pointer):
            self._with_attempt(other, take_beside)

    def _other_columns(self, pointer: CasePointer) -> list[CasePointer]:
        """The further columns of a case, each in its last run; none where one attempt is meant."""
        item = self.state.by_id.get(pointer.case_id)
        if item is None or pointer.attempt_ref is not None:
            return []
        last = item.last_of(pointer.agent, pointer.model)
        meant = case_state.column_of(last) if last is not None else None
        return [
            CasePointer(pointer.case_id, column.agent, column.model or None, results[0].run_id)
            for column, results in case_state.by_column(item.history).items()
            if column != meant
        ]

    def from_recorded(
        self, content: CaseContent, turn: int | None, said: str | None = None, *, aside: bool = False
    ) -> None:
        """Run the case with the recorded turns before `turn` of the attempt that was read; None: judge the
        recorded answers that count with it again. `aside`: the run in front stays there."""
        row, folder = content.row, content.folder
        if row is None or folder is None or not content.run_id:
            return
        case, column = (
            run_requests.RunAsked(content.pointer.case_id, content.suite),
            (content.agent or "", content.model),
        )
        run = self.desk.known(content.run_id, folder, content.options)
        project = self.desk.project
        request = run_requests.from_recorded(project, case, column, run, row.id, row.attempt, turn)
        if said is None:
            said = (
                "judging the recorded answers again" if turn is None else f"running again from turn {turn} on"
            )
        self.desk.send(request, show=False, said=said, aside=aside)

    def _with_attempt(self, pointer: CasePointer, take: Callable[[CaseContent], Any]) -> None:
        """Read the attempt that a pointer means (its last one where it names none) in a thread."""
        from tui_eval.tui.loaders.case_loader import Where, load

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
