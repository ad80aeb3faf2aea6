"""`m` on a list: a person's verdict, note or star on the answer that the case's line stands for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tui_eval.guard.text import clip, visible
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.tui.accept_actions import AcceptActions
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.messages import SuitesChanged
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.state.case.noting import note_words

if TYPE_CHECKING:
    from tui_eval.tui.screens.list_place import ListPlace
    from tui_eval.tui.state.case.case_content import CaseContent

ANSWERS = (
    ("r", "right", "the answer is right"),
    ("w", "wrong", "it is wrong"),
    ("u", "undecided", "undecided"),
    ("s", "star", "star, or no star any more"),
    ("n", "note", "write a note"),
    ("x", "nothing", "take everything away"),
    ("esc", "", "leave it"),
)


class NotingActions(AcceptActions):
    """The Case screen has its own `m`, for the attempt looked at."""

    def note_case(self, place: ListPlace, pointer: CasePointer) -> None:
        """Ask what to note on the attempt that a pointer means (its last one where it names none)."""

        from tui_eval.tui.loaders.case_loader import notes_of

        def take(content: CaseContent) -> None:
            row = content.row
            if row is None or row.state != "done" or not content.run_id:
                self.say("there is no finished attempt to note anything on")
                return
            place_of = (content.run_id, row.id)
            work = partial(notes_of, self.state.root, pointer.case_id)
            run_in_thread(self, work, partial(ask, content.name, place_of), name="notes", opens=True)

        def ask(name: str, attempt: tuple[str, int], notes: dict[tuple[str, int], HumanNote]) -> None:
            note = notes.get(attempt) or HumanNote(*attempt, pointer.case_id)
            said = note_words(note)
            self.ask(
                f"What of the answer of {clip(visible(name, newlines=False), 48)}?",
                ANSWERS,
                partial(self._note_answer, place, note),
                [f"You said: {said}"] if said else [],
            )

        self._with_attempt(pointer, take)

    def _note_answer(self, place: ListPlace, note: HumanNote, answer: str | None) -> None:
        match answer:
            case "right" | "wrong":
                self.keep_note(msgspec.structs.replace(note, verdict=answer))
            case "undecided":
                self.keep_note(msgspec.structs.replace(note, verdict=None))
            case "star":
                self.keep_note(msgspec.structs.replace(note, star=not note.star))
            case "nothing":
                self.keep_note(msgspec.structs.replace(note, star=False, verdict=None, text=""))
            case "note":
                place.ask_note(note)

    def keep_note(self, note: HumanNote) -> None:
        """Keep a note, and show it in the lists."""
        notes = Notes(self.state.root)

        def put() -> HumanNote | None:
            notes.put(note)
            return next(iter(notes.of_case(note.case_id)), None)

        def kept(newest: HumanNote | None) -> None:
            self.state.set_note(note.case_id, newest)
            self.tell(SuitesChanged([note.case_id]))
            words = note_words(note)
            self.say(f"noted: {words}" if words else "nothing noted any more")

        run_in_thread(self, put, kept, name="note", queue="notes")
