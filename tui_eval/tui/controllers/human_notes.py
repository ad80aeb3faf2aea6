"""A person's verdict, note or star on the answer that a case's line stands for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.guard.text import clip, visible
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.controllers.recorded import RecordedController
from tui_eval.tui.messages import SuitesChanged
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.services import Core
from tui_eval.tui.state.case.noting import note_words

if TYPE_CHECKING:
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


class NoteController:
    """Asks for notes and keeps them. The Case screen has its own `m`, for the attempt looked at."""

    def __init__(self, core: Core, places: PlaceController, recorded: RecordedController) -> None:
        self._core, self._places, self._recorded = core, places, recorded
        self.state, self._notices = core.state, core.notices

    def ask(self, pointer: CasePointer, write: Callable[[HumanNote], Any]) -> None:
        """Ask what to note on the attempt that a pointer means (its last one where it names none);
        `write` is given the note whose words are to be typed."""
        from tui_eval.tui.loaders.case_loader import notes_of

        def take(content: CaseContent) -> None:
            row = content.row
            if row is None or row.state != "done" or not content.run_id:
                self._notices.say("there is no finished attempt to note anything on")
                return
            place_of = (content.run_id, row.id)
            work = partial(notes_of, self.state.root, pointer.case_id)
            self._core.tasks.thread(work, partial(ask_what, content.name, place_of), name="notes", opens=True)

        def ask_what(name: str, attempt: tuple[str, int], notes: dict[tuple[str, int], HumanNote]) -> None:
            note = notes.get(attempt) or HumanNote(*attempt, pointer.case_id)
            said = note_words(note)
            self._places.ask(
                f"What of the answer of {clip(visible(name, newlines=False), 48)}?",
                ANSWERS,
                partial(self._answer, write, note),
                [f"You said: {said}"] if said else [],
            )

        self._recorded.read(pointer, take)

    def _answer(self, write: Callable[[HumanNote], Any], note: HumanNote, answer: str | None) -> None:
        match answer:
            case "right" | "wrong":
                self.keep(msgspec.structs.replace(note, verdict=answer))
            case "undecided":
                self.keep(msgspec.structs.replace(note, verdict=None))
            case "star":
                self.keep(msgspec.structs.replace(note, star=not note.star))
            case "nothing":
                self.keep(msgspec.structs.replace(note, star=False, verdict=None, text=""))
            case "note":
                write(note)

    def keep(self, note: HumanNote) -> None:
        """Keep a note, and show it in the lists."""
        notes = Notes(self.state.root)

        def put() -> HumanNote | None:
            notes.put(note)
            return next(iter(notes.of_case(note.case_id)), None)

        def kept(newest: HumanNote | None) -> None:
            self.state.set_note(note.case_id, newest)
            self._places.post(SuitesChanged([note.case_id]))
            words = note_words(note)
            self._notices.say(f"noted: {words}" if words else "nothing noted any more")

        self._core.tasks.thread(put, kept, name="note", queue="notes")
