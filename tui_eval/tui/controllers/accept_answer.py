"""The answer is right and the case is wrong: the change to the suite shown, written, taken back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.tui.controllers.recorded import RecordedController
from tui_eval.tui.controllers.saved_elsewhere import SavedElsewhere
from tui_eval.tui.handlers import Handler
from tui_eval.tui.services import AppServices

if TYPE_CHECKING:
    from tui_eval.formats.accepting import Proposal
    from tui_eval.tui.state.case.case_content import CaseContent


class AcceptController:
    """`! Z`. `edit` opens the case in the editor, where the change is to be another."""

    def __init__(
        self,
        services: AppServices,
        recorded: RecordedController,
        saved: SavedElsewhere,
        edit: Callable[[], Any],
    ) -> None:
        self._core, self._recorded, self._saved, self._edit = services, recorded, saved, edit
        self._places, self._suites = services.places, services.suites
        self.state, self._notices = services.state, services.notices
        self._written: tuple[dict[str, tuple[str, str]], ...] = ()
        """What was written, oldest first: per file its text before and after."""

    def handlers(self) -> dict[str, Handler]:
        """What its keys do."""
        return {"case.accept": self.accept, "case.take_back": self.take_back}

    def _not_written(self, error: Exception) -> None:
        self._notices.problem(str(error))

    def accept(self) -> None:
        """Show what would have to change in the case, then write it."""
        from tui_eval.formats.accepting import propose

        pointer = self._places.pointer()
        if pointer is None:
            self._notices.say("put the cursor on a case first")
            return
        item = self.state.by_id.get(pointer.case_id)

        def take(content: CaseContent) -> None:
            case = item.case if item is not None and item.case is not None else content.case
            if content.attempt is None or case is None:
                self._notices.say(content.problem or "there is no finished attempt to accept")
            elif content.attempt.outcome == "passed":
                self._notices.say("it has passed: there is nothing to change")
            else:
                work = partial(propose, case, content.attempt, self.state.root)
                name = self.state.name_of(case.case_id, content.name or case.name)
                shown = partial(self._show_proposal, name)
                self._core.tasks.thread(work, shown, name="accept", opens=True)

        self._recorded.read(pointer, take)

    def _show_proposal(self, name: str, proposal: Proposal) -> None:
        from tui_eval.formats.accepting import write

        if not proposal.changes and not proposal.unable:
            self._notices.say("nothing of the case failed that a change would mend")
            return
        count = len(proposal.changes)
        what = (
            f"{count} change{'s' if count != 1 else ''}" if count else "nothing that can be changed from here"
        )
        title = f"Accept the answer of {name}: {what}"

        def put() -> None:
            write(proposal)
            self._saved.known(proposal.texts)

        def answer(value: str | None) -> None:
            if value == "edit":
                self._edit()
            elif value == "write":
                done = partial(self._accepted, proposal.texts)
                self._core.tasks.thread(put, lambda _: done(), self._not_written, name="accept")

        self._places.show(
            "change",
            title,
            proposal.diff,
            proposal.unable,
            told=proposal.notes,
            edits=True,
            taken_back=self._key_back(),
            answer=answer,
        )

    def _key_back(self) -> str:
        from tui_eval.tui.keys import KEYS

        return next(key.shown for key in KEYS if key.id == "case.take_back")

    def _accepted(self, texts: dict[str, tuple[str, str]]) -> None:
        self._written = (*self._written, texts)
        self._suites.reload(list(texts))
        shown = ", ".join(Path(name).name for name in texts)
        self._notices.say(f"{shown} written: r runs it, {self._key_back()} undoes it")

    def take_back(self) -> None:
        """Give the files of the last accepted answer the text that they had before."""
        from tui_eval.formats.accepting import replace_file

        if not self._written:
            self._notices.say("no answer was accepted since the app was opened")
            return
        texts = self._written[-1]

        def back() -> None:
            for name, (old, new) in texts.items():
                replace_file(Path(name), new, old)
            self._saved.known(texts)

        def done() -> None:
            self._written = self._written[:-1]
            self._suites.reload(list(texts))
            self._notices.say(f"as it was: {', '.join(Path(name).name for name in texts)}")

        self._core.tasks.thread(back, lambda _: done(), self._not_written, name="take back")
