"""The recorded attempt that a pointer means: read, and judged again.

What an action needs is imported when it is used: the first paint does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tui_eval.store import case_state
from tui_eval.tui.controllers.runs import MOST_ROWS, RunController
from tui_eval.tui.handlers import Handler
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.services import Core, PlaceStack

if TYPE_CHECKING:
    from tui_eval.tui.state.case.case_content import CaseContent


class RecordedController:
    """`.`, and the attempt for whoever needs one."""

    def __init__(self, core: Core, places: PlaceStack, runs: RunController) -> None:
        self._core, self._places, self._runs = core, places, runs
        self.state, self._notices = core.state, core.notices

    def handlers(self) -> dict[str, Handler]:
        """What its key does."""
        return {"case.judge_again": self.judge}

    def judge(self) -> None:
        """Judge the answer that is looked at, or the last one of the case under the cursor, anew."""
        place, pointers = self._places.place, self._places.pointers()
        if place is not None and place.judge_again():
            return
        if not pointers:
            self._notices.say("put the cursor on a case first")
        elif len(pointers) > MOST_ROWS:
            self._notices.say(f"at most {MOST_ROWS} are judged at once: unfold the line")
        elif len(pointers) == 1:
            self.judge_again(pointers[0], one_column=place is not None and place.one_column)
        else:
            self._judge_rows(pointers)

    def _judge_rows(self, pointers: Sequence[CasePointer]) -> None:
        """Judge the last recorded answers of all rows of a test; the run in front stays."""

        def take(content: CaseContent) -> None:
            if content.row is not None and content.row.state == "done":
                self._runs.from_recorded(content, None, "", aside=True)

        self._notices.say(f"judging {len(pointers)} recorded answers again")
        for pointer in pointers:
            self.read(pointer, take)

    def judge_again(self, pointer: CasePointer, said: str | None = None, *, one_column: bool = False) -> None:
        """Judge the case's last recorded answers anew; nothing is sent to the agent.

        A line that stands for several columns stands for all of them by the file as it is, not for one by the file
        of now beside others by that of before; `one_column`: the one that is pointed at alone is meant.
        """

        def take(content: CaseContent) -> None:
            row = content.row
            if row is None or row.state != "done":
                self._notices.say("there is no recorded answer to judge")
                return
            self._runs.from_recorded(content, None, said)

        def take_beside(content: CaseContent) -> None:
            if content.row is not None and content.row.state == "done":
                self._runs.from_recorded(content, None, "", aside=True)

        self.read(pointer, take)
        for other in () if one_column else self.other_columns(pointer):
            self.read(other, take_beside)

    def other_columns(self, pointer: CasePointer) -> list[CasePointer]:
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

    def read(self, pointer: CasePointer, take: Callable[[CaseContent], Any]) -> None:
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
        folder = self.state.run_folder(run_id) if run_id else None
        where = Where(pointer, folder, None, item.case if item is not None else None, None)
        self._core.tasks.thread(partial(load, where), take, name="attempt", opens=True)
