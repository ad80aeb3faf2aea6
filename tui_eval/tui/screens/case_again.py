"""`.` and `B` on the Case screen: the answer looked at judged again, or the case run from a turn on."""

from __future__ import annotations

from tui_eval.tui.screens.case_parts import CasePart


class CaseAgain(CasePart, inherit_bindings=False):
    """Asks the engine for an attempt that takes a recorded one, or the beginning of it, as its own."""

    one_column = True
    """What keys do here they do for the column that is shown, whatever others the case has."""

    def judge_again(self) -> bool:
        """Judge the recorded answers of the column that is shown, those of all its attempts, by the case as it is
        now; nothing is sent to the agent."""
        self._record(None)
        return True

    def action_from_turn(self) -> None:
        """Run the case again from the turn under the cursor on; those before it are taken as recorded."""
        block = self.tab.text.block if self.tab.text is not None else None
        turn = block.turn if block is not None else 0
        if turn < 1:
            self.say("put the cursor on a turn first")
        else:
            self._record(turn)

    def _record(self, turn: int | None) -> None:
        """Ask for it; says so where there is no finished attempt to begin from."""
        content = self.content
        row = content.row
        if row is None or row.state != "done" or content.attempt is None:
            self.say("there is no finished attempt to begin from")
            return
        self.services.runs.from_recorded(content, turn)
