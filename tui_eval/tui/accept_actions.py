"""The answer is right and the case is wrong: the change to the suite shown, written, taken back."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_eval.tui.background import run_in_thread
from tui_eval.tui.debugging_actions import DebuggingActions

if TYPE_CHECKING:
    from tui_eval.formats.accepting import Proposal
    from tui_eval.tui.state.case.case_content import CaseContent


class AcceptActions(DebuggingActions):
    """`! Z`."""

    _changed: tuple[dict[str, tuple[str, str]], ...] = ()
    """What was written, oldest first: per file its text before and after."""

    def action_accept(self) -> None:
        """Show what would have to change in the case, then write it."""
        from tui_eval.formats.accepting import propose

        pointer = self.pointer()
        if pointer is None:
            self.say("put the cursor on a case first")
            return
        item = self.state.by_id.get(pointer.case_id)

        def take(content: CaseContent) -> None:
            case = item.case if item is not None and item.case is not None else content.case
            if content.attempt is None or case is None:
                self.say(content.problem or "there is no finished attempt to accept")
            elif content.attempt.outcome == "passed":
                self.say("it has passed: there is nothing to change")
            else:
                work = partial(propose, case, content.attempt, self.state.root)
                shown = partial(self._show_proposal, content.name or case.name)
                run_in_thread(self, work, shown, name="accept", opens=True)

        self._with_attempt(pointer, take)

    def _show_proposal(self, name: str, proposal: Proposal) -> None:
        from tui_eval.formats.accepting import write
        from tui_eval.tui.screens.change import ChangeScreen

        if not proposal.changes and not proposal.unable:
            self.say("nothing of the case failed that a change would mend")
            return
        count = len(proposal.changes)
        what = (
            f"{count} change{'s' if count != 1 else ''}" if count else "nothing that can be changed from here"
        )
        title = f"Accept the answer of {name}: {what}"

        def put() -> None:
            write(proposal)
            self.known_saved(proposal.texts)

        def answer(value: str | None) -> None:
            if value == "edit":
                self.action_edit_case()
            elif value == "write":
                done = partial(self._accepted, proposal.texts)
                run_in_thread(self, put, lambda _: done(), self._not_written, name="accept")

        screen = ChangeScreen(
            title,
            proposal.diff,
            proposal.unable,
            told=proposal.notes,
            edits=True,
            taken_back=self._key_back(),
        )
        self.push_screen(screen, answer)

    def _key_back(self) -> str:
        from tui_eval.tui.keys import KEYS

        return next(key.shown for key in KEYS if key.id == "case.take_back")

    def _accepted(self, texts: dict[str, tuple[str, str]]) -> None:
        self._changed = (*self._changed, texts)
        self.reload_suites(list(texts))
        shown = ", ".join(Path(name).name for name in texts)
        self.say(f"{shown} written: r runs it, {self._key_back()} undoes it")

    def action_take_back(self) -> None:
        """Give the files of the last accepted answer the text that they had before."""
        from tui_eval.formats.accepting import replace_file

        if not self._changed:
            self.say("no answer was accepted since the app was opened")
            return
        texts = self._changed[-1]

        def back() -> None:
            for name, (old, new) in texts.items():
                replace_file(Path(name), new, old)
            self.known_saved(texts)

        def done() -> None:
            self._changed = self._changed[:-1]
            self.reload_suites(list(texts))
            self.say(f"as it was: {', '.join(Path(name).name for name in texts)}")

        run_in_thread(self, back, lambda _: done(), self._not_written, name="take back")
