"""`m` on the Case screen: a person's verdict, note and star on the attempt."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from tui_eval.store.notes import HumanNote, Notes
from tui_eval.tui.handlers import Handler
from tui_eval.tui.loaders.case_loader import notes_of
from tui_eval.tui.screens.case_front import CaseFront
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.services import AppServices
from tui_eval.tui.state.case.noting import note_words

CHOICES = {
    "r": "right answer",
    "w": "wrong",
    "u": "undecided",
    "s": "star",
    "n": "note",
    "x": "take away",
}


class CaseNotes:
    """Asks what to note and keeps it; disks are written in threads."""

    def __init__(self, screen: CaseFront, services: AppServices) -> None:
        self._screen, self._services = screen, services

    def handlers(self) -> Mapping[str, Handler]:
        """What its key does."""
        return {"case.note": self.ask}

    def ask(self) -> None:
        """Ask what to note on the attempt."""
        row = self._screen.content.row
        if row is None or row.state != "done":
            self._screen.say("there is no finished attempt to note anything on")
        else:
            self._screen.foot.ask("note", CHOICES, self._chosen)

    async def _chosen(self, choice: str) -> None:
        note = self._noted()
        if note is None:
            return
        if choice == "n":
            prompt = Prompt("note", note.text, "a word on this attempt", replaces=False)
            await self._screen.prompts.ask(prompt, self._left)
        elif choice == "s":
            self._keep(msgspec.structs.replace(note, star=not note.star))
        elif choice == "x":
            self._keep(msgspec.structs.replace(note, star=False, verdict=None, text=""))
        else:
            verdicts = {"r": "right", "w": "wrong"}
            self._keep(msgspec.structs.replace(note, verdict=verdicts.get(choice)))

    def _left(self, text: str, kept: bool) -> None:
        note = self._noted()
        if kept and note is not None:
            self._keep(msgspec.structs.replace(note, text=text.strip()))

    def _noted(self) -> HumanNote | None:
        """The attempt's note as it is, an empty one where there is none."""
        content = self._screen.content
        if content.row is None or not content.run_id:
            return None
        return content.note or HumanNote(content.run_id, content.row.id, content.pointer.case_id)

    def _keep(self, note: HumanNote) -> None:
        root = self._services.state.root

        def put() -> dict[tuple[str, int], HumanNote]:
            Notes(root).put(note)
            return notes_of(root, note.case_id)

        self._services.tasks.thread(
            put,
            partial(self._kept, note),
            lambda error: self._services.notices.problem(str(error)),
            name="note",
            queue="notes",
        )

    def _kept(self, note: HumanNote, notes: dict[tuple[str, int], HumanNote]) -> None:
        if self._screen.content.pointer.case_id != note.case_id:
            return
        self._screen.content.notes = notes
        self._services.state.set_note(note.case_id, next(iter(notes.values()), None))
        self._screen.noted()
        words = note_words(note)
        self._screen.say(f"noted: {words}" if words else "nothing noted any more")
