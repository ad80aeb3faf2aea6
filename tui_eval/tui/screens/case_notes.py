"""`m` on the Case screen: a person's verdict, note and star on the attempt."""

from __future__ import annotations

from functools import partial

import msgspec
from textual import on

from tui_eval.store.notes import HumanNote, Notes
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.loaders.case_loader import notes_of
from tui_eval.tui.screens.case_parts import CasePart
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.state.case.noting import note_words
from tui_eval.tui.widgets.copy_bar import CopyBar

CHOICES = {
    "r": "right answer",
    "w": "wrong",
    "u": "undecided",
    "s": "star",
    "n": "note",
    "x": "take away",
}


class CaseNoting(CasePart, inherit_bindings=False):
    """Asks what to note and keeps it; disks are written in threads."""

    def action_note(self) -> None:
        """Ask what to note on the attempt."""
        row = self.content.row
        if row is None or row.state != "done":
            self.say("there is no finished attempt to note anything on")
        else:
            self.query_one(CopyBar).ask("note", CHOICES)

    @on(CopyBar.Chosen)
    def _note_chosen(self, event: CopyBar.Chosen) -> None:
        if event.purpose != "note" or event.choice is None:
            return
        event.stop()
        note = self._noted()
        if note is None:
            return
        if event.choice == "n":
            self.mount(Prompt("note", note.text, "a word on this attempt", replaces=False))
        elif event.choice == "s":
            self._keep(msgspec.structs.replace(note, star=not note.star))
        elif event.choice == "x":
            self._keep(msgspec.structs.replace(note, star=False, verdict=None, text=""))
        else:
            verdicts = {"r": "right", "w": "wrong"}
            self._keep(msgspec.structs.replace(note, verdict=verdicts.get(event.choice)))

    @on(Prompt.Left)
    def _note_left(self, event: Prompt.Left) -> None:
        if event.purpose != "note":
            return
        event.stop()
        for prompt in self.query(Prompt):
            prompt.remove()
        self.focus_main()
        note = self._noted()
        if event.kept and note is not None:
            self._keep(msgspec.structs.replace(note, text=event.text.strip()))

    def _noted(self) -> HumanNote | None:
        """The attempt's note as it is, an empty one where there is none."""
        content = self.content
        if content.row is None or not content.run_id:
            return None
        return content.note or HumanNote(content.run_id, content.row.id, content.pointer.case_id)

    def _keep(self, note: HumanNote) -> None:
        root = self.services.state.root

        def put() -> dict[tuple[str, int], HumanNote]:
            Notes(root).put(note)
            return notes_of(root, note.case_id)

        run_in_thread(self.app, put, partial(self._kept, note), self.refuse, name="note", queue="notes")

    def _kept(self, note: HumanNote, notes: dict[tuple[str, int], HumanNote]) -> None:
        if self.content.pointer.case_id != note.case_id:
            return
        self.content.notes = notes
        self.services.state.set_note(note.case_id, next(iter(notes.values()), None))
        self.noted()
        words = note_words(note)
        self.say(f"noted: {words}" if words else "nothing noted any more")

    def noted(self) -> None:
        """The notes have changed: show them."""
        raise NotImplementedError
