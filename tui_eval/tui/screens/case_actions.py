"""What keys do with the attempt that the Case screen shows: look for words (`/`, `n`, `N`), note on it (`m`), copy it
(`y`) or write it to a file (`Y`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Protocol

import msgspec

from tui_eval.guard.text import clip
from tui_eval.model import Verdict
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.shard_runs import NOT_NOTED, is_looked_at
from tui_eval.tui.handlers import Handler
from tui_eval.tui.inspector.assertions import AssertionsTab
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.inspector.tab import InspectorTab
from tui_eval.tui.loaders.case_loader import notes_of
from tui_eval.tui.screens.prompt import Prompt, Prompts
from tui_eval.tui.services import ASKS_NOTHING, AppServices
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.case.case_history import note_words
from tui_eval.tui.state.case.copying import COPY_CHOICES, text_of
from tui_eval.tui.state.case.transcript_view import build
from tui_eval.tui.state.data.data_export import ExportEnded
from tui_eval.tui.state.text.block_layout import MOST_HITS
from tui_eval.tui.state.text.blocks import whole_text
from tui_eval.tui.state.text.formatting import counted
from tui_eval.tui.terminal import clipboard
from tui_eval.tui.widgets.bars import CopyBar
from tui_eval.tui.widgets.text_pane import SEARCHING, TELL, TextPane


class CaseFront(Protocol):
    """An attempt looked at, in one of several tabs."""

    prompts: Prompts

    @property
    def content(self) -> CaseContent:
        """What is shown of it."""
        ...

    @property
    def tab(self) -> InspectorTab:
        """The tab in front."""
        ...

    @property
    def foot(self) -> CopyBar:
        """The keys, or a question that one key answers."""
        ...

    def has(self, *selectors: str) -> bool:
        """Whether these widgets are there, and the screen with them."""
        ...

    def live_text(self) -> str:
        """What a running attempt has said so far."""
        ...

    def copy_text(self, text: str, what: str) -> str:
        """Copy to the terminal's clipboard; what to say of it."""
        ...

    def say(self, words: str) -> None:
        """A few words for the person, for some seconds."""
        ...

    def announce(self, words: str) -> None:
        """Words to be read again in the log."""
        ...

    def noted(self) -> None:
        """The notes on the attempts have changed."""
        ...


class CaseFinder:
    """Asks what to look for, and says where it is."""

    def __init__(self, screen: CaseFront) -> None:
        self._screen = screen
        self.sought = ""
        """What is looked for."""

    def handlers(self) -> Mapping[str, Handler]:
        """Keys of lists that mean the same here."""
        return {
            "list.find": self.ask,
            "list.find_next": partial(self.find_next, 1),
            "list.find_previous": partial(self.find_next, -1),
        }

    async def ask(self) -> None:
        """Ask what to look for."""
        last = clip(self.sought, 40)
        hint = f"enter: {last} again, esc: marks away" if last else "text in this tab"
        await self._screen.prompts.ask(Prompt("find", "", hint), self._left)

    def _left(self, text: str, kept: bool) -> None:
        self.look_for((text or self.sought) if kept else "")

    def look_for(self, words: str) -> None:
        """Mark these words where they stand, and go to the first; nothing takes the marks away."""
        screen = self._screen
        self.sought = words
        count = screen.tab.find(self.sought)
        if not self.sought:
            screen.say("")
        elif count == SEARCHING:
            screen.say("searching…")
        else:
            screen.say(self._found(screen.tab.find_next(0)) if count else self._found((0, 0)))

    async def find_next(self, step: int) -> None:
        """The next or previous place."""
        if not self.sought:
            await self.ask()
            return
        tab = self._screen.tab
        found = tab.find_next(step)
        self._screen.say("searching…" if tab.searching and not found[1] else self._found(found))

    def searched(self, pane: TextPane, words: str) -> None:
        """A search in a thread has come further, as its words say, or to its end."""
        if pane is self._screen.tab.text:
            number, count = pane.places
            so_far = f"{number:,} of {count:,}, " if words and count else ""
            self._screen.say(so_far + words if words else self._found((number, count)))

    def _found(self, place: tuple[int, int]) -> str:
        more = " or more" if place[1] >= MOST_HITS else ""
        if place[1] and not place[0]:
            return f"{place[1]:,}{more} places: n goes to the next"
        return f"{place[0]:,} of {place[1]:,}{more}" if place[1] else f"not here: {self.sought}"


NOTE_CHOICES = {
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
            self._asks_nothing("there is no finished attempt to note anything on")
        elif (folder := self._screen.content.folder) is not None and is_looked_at(folder):
            self._asks_nothing(NOT_NOTED)
        elif (
            note := self._noted()
        ) is not None:  # of the attempt that is seen now: another one may end meanwhile
            self._screen.foot.ask("note", NOTE_CHOICES, partial(self._chosen, note))

    def look(self) -> None:
        """Show what the lists know: somebody else may have noted something."""
        content, state = self._screen.content, self._services.state
        known = state.notes.get(content.pointer.case_id, ())
        notes = {(note.run_id, note.attempt_ref): note for note in known}
        if content.row is not None and not state.loading and notes != content.notes:
            content.notes = notes
            self._screen.noted()

    def _asks_nothing(self, words: str) -> None:
        """The next key was an answer, and does nothing else: `m r` runs nothing."""
        self._services.ask(f"{words[:1].upper()}{words[1:]}.", ASKS_NOTHING, lambda _: None)

    async def _chosen(self, note: HumanNote, choice: str) -> None:
        if choice == "n":
            prompt = Prompt("note", note.text, "a word on this attempt", replaces=False)
            await self._screen.prompts.ask(prompt, partial(self._left, note))
        elif choice == "s":
            self._keep(note, msgspec.structs.replace(note, star=not note.star))
        elif choice == "x":
            self._keep(note, msgspec.structs.replace(note, star=False, verdict=None, text=""))
        else:
            verdicts = {"r": "right", "w": "wrong"}
            self._keep(note, msgspec.structs.replace(note, verdict=verdicts.get(choice)))

    def _left(self, note: HumanNote, text: str, kept: bool) -> None:
        if kept:
            self._keep(note, msgspec.structs.replace(note, text=text.strip()))

    def _noted(self) -> HumanNote | None:
        """The attempt's note as it is, an empty one where there is none."""
        content = self._screen.content
        if content.row is None or not content.run_id:
            return None
        note = content.note or HumanNote(content.run_id, content.row.id, content.pointer.case_id)
        return msgspec.structs.replace(note, agent=content.agent or "", model=content.model or "")

    def _keep(self, seen: HumanNote, note: HumanNote) -> None:
        root = self._services.state.root

        def put() -> dict[tuple[str, int], HumanNote]:
            Notes(root).put(note, seen)
            return notes_of(root, note.case_id)

        self._services.tasks.thread(
            put,
            partial(self._kept, note),
            lambda error: self._services.notices.problem(str(error)),
            name="note",
            queue="notes",
        )

    def _kept(self, note: HumanNote, notes: dict[tuple[str, int], HumanNote]) -> None:
        # Lists show it, whatever is in front by now.
        self._services.state.set_notes(note.case_id, [*notes.values()])
        if self._screen.content.pointer.case_id != note.case_id or not self._screen.has(".head"):
            return
        self._screen.content.notes = notes
        self._screen.noted()
        words = note_words(notes.get((note.run_id, note.attempt_ref)))
        self._screen.say(f"noted: {words}" if words else "nothing noted any more")


CSV_COPIED = 2_000
"""Differing rows that `y d` copies; `Y d` writes all of them."""


class CaseCopier:
    """Asks what to copy; files are written in threads."""

    def __init__(self, screen: CaseFront, services: AppServices) -> None:
        self._screen, self._services = screen, services
        self._writing: threading.Event | None = None

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {"case.copy": self.copy, "case.write": self.write}

    def copy(self) -> None:
        """Ask what to copy."""
        self._screen.foot.ask("copy", COPY_CHOICES, partial(self._chosen, False))

    def write(self) -> None:
        """Ask what to write to a file."""
        self._screen.foot.ask("write", COPY_CHOICES, partial(self._chosen, True))

    def _chosen(self, to_file: bool, choice: str) -> None:
        what = COPY_CHOICES[choice]
        if choice == "d" and isinstance(self._screen.tab, DataTab):
            self._rows_out(self._screen.tab, to_file)
            return
        text = self._text_of(choice)
        if not text:
            self._screen.say(f"there is no {what} to copy")
        elif to_file:
            self._services.tasks.thread(
                partial(clipboard.write_file, text, f"{self._screen.content.in_short}-{what}"),
                lambda path: self._screen.announce(f"{what}: {len(text):,} characters written to {path}"),
                self._refuse,
                name="write",
            )
        else:
            self._screen.announce(self._screen.copy_text(text, what))

    def _rows_out(self, tab: DataTab, to_file: bool) -> None:
        """The differing cells as CSV, made in a thread: there may be millions. It says how far it is, esc ends it."""
        view = tab.view
        if view is None:
            self._screen.say("no rows here")
            return
        if self._writing is not None:
            self._screen.say("rows are being written already: esc ends that")
            return
        self._writing = writing = threading.Event()
        told = time.monotonic()

        def progress(done: int, total: int) -> bool:
            nonlocal told
            if time.monotonic() - told > TELL:
                told = time.monotonic()
                self._services.tasks.later(self._so_far, writing, done, total)
            return not writing.is_set()

        def write() -> str:
            if not to_file:
                return "".join(view.csv(CSV_COPIED, progress))
            path = clipboard.write_pieces(
                view.csv(None, progress), f"{self._screen.content.in_short}-difference", ".csv"
            )
            return f"difference: {counted(len(view.differing), 'row')} written to {path}"

        def written(said: str) -> None:
            self._writing = None
            self._screen.announce(said if to_file else self._screen.copy_text(said, "difference"))

        def failed(error: Exception) -> None:
            self._writing = None
            if isinstance(error, ExportEnded):
                total = len(view.differing)
                self._screen.announce(
                    f"difference: ended after {error.rows:,} of {total:,} rows, nothing is written"
                )
            else:
                self._refuse(error)

        self._services.tasks.thread(write, written, failed, name="write")

    def _so_far(self, writing: threading.Event, done: int, total: int) -> None:
        if writing is self._writing and not writing.is_set() and self._screen.has():
            self._screen.say(f"writing… {done:,} of {total:,} rows; esc ends it")

    def end_writing(self) -> bool:
        """Let what is being written be; False where nothing is."""
        if self._writing is None or self._writing.is_set():
            return False
        self._writing.set()
        return True

    def _text_of(self, choice: str) -> str:
        """The text behind a letter; in Data the cell's, in Assertions the verdict's under the cursor."""
        if choice in "ae" and isinstance(self._screen.tab, DataTab):
            cell = self._screen.tab.cell()
            if cell is not None:
                return (cell.expected if choice == "e" else cell.actual) or ""
        return text_of(
            self._screen.content, choice, self._verdict_here(), self._transcript() if choice == "t" else ""
        )

    def _verdict_here(self) -> Verdict | None:
        block = (
            self._screen.tab.text.block
            if isinstance(self._screen.tab, AssertionsTab) and self._screen.tab.text
            else None
        )
        if block is None or not block.key.startswith("v") or self._screen.content.attempt is None:
            return None
        return self._screen.content.attempt.verdicts[int(block.key[1:])]

    def _transcript(self) -> str:
        """The whole transcript as text; of a running attempt what it has said so far."""
        if self._screen.content.attempt is not None:
            return whole_text(build(self._screen.content.attempt).blocks)
        return self._screen.live_text()

    def _refuse(self, error: Exception) -> None:
        """What could not be written, in one line."""
        self._services.notices.problem(str(error))
