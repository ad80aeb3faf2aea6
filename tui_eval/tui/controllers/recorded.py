"""The recorded attempt that a pointer means: read, judged again, noted on by a person, or accepted: the answer is right
and the case is wrong.

What an action needs is imported when it is used: the first paint does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.engine.request import RequestCell
from tui_eval.guard.text import clip, visible
from tui_eval.model import Attempt, Case
from tui_eval.store import case_state
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.shard_runs import NOT_NOTED, is_looked_at
from tui_eval.tui.controllers.editing import SavedElsewhere
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.controllers.runs import MOST_ROWS, RunController
from tui_eval.tui.front import SuitesChanged
from tui_eval.tui.handlers import Handler
from tui_eval.tui.services import ASKS_NOTHING, AppServices, Core, PlaceStack
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.case.case_history import note_words

if TYPE_CHECKING:
    from tui_eval.formats.accepting import Proposal
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
        """Judge the last recorded answers of all rows of a test as one run, which adds to the one that they are of:
        the one in front stays. Of a run that goes on, whose answers cannot be judged together yet, each by itself."""
        runs: dict[str, list[CasePointer]] = {}
        for pointer in pointers:
            if run_id := self._run_of(pointer):
                runs.setdefault(run_id, []).append(pointer)
        if not runs:
            self._notices.say("there is no recorded answer to judge")
        for run_id, rows in runs.items():
            run = self.state.find_run(run_id)
            if run is not None and run.active:
                self._notices.say(f"judging {len(rows)} recorded answers again")
                for row in rows:
                    self.read(row, self._judge_aside)
                continue
            ids = list(dict.fromkeys(row.case_id for row in rows))
            # A case that two agents answered may have been answered by one of them last, in another run.
            cells = [RequestCell(row.case_id, row.agent, row.model or None) for row in rows if row.agent]
            self._runs.judge_again(self.state.run_folder(run_id), ids, cells)

    def _run_of(self, pointer: CasePointer) -> str | None:
        """The run that a pointer means: its own, the one in front where that has the case, else the case's last."""
        run, item = self.state.run, self.state.by_id.get(pointer.case_id)
        if pointer.run_id is not None:
            return pointer.run_id
        if run is not None and run.find(pointer.case_id, pointer.agent, pointer.model) is not None:
            return run.info.id
        last = item.last_of(pointer.agent, pointer.model) if item is not None else None
        return last.run_id if last is not None else None

    def judge_again(self, pointer: CasePointer, said: str | None = None, *, one_column: bool = False) -> None:
        """Judge the case's last recorded answers anew; nothing is sent to the agent.

        A line that stands for several columns stands for all of them by the file as it is, not for one by the file
        of now beside others by that of before; `one_column`: the one that is pointed at alone is meant.
        """

        item, others = self.state.by_id.get(pointer.case_id), self.other_columns(pointer)
        last = item.last_of(pointer.agent, pointer.model) if item is not None else None
        if others and last is not None and not one_column:
            first = CasePointer(pointer.case_id, last.agent, last.model or None, pointer.run_id)
            self._judge_rows([first, *others])
            return

        def take(content: CaseContent) -> None:
            row = content.row
            if row is None or row.state != "done":
                self._notices.say("there is no recorded answer to judge")
                return
            self._runs.from_recorded(content, None, said)

        self.read(pointer, take)

    def _judge_aside(self, content: CaseContent) -> None:
        """Judge an answer that was read, where it is one; the run in front stays."""
        if content.row is not None and content.row.state == "done":
            self._runs.from_recorded(content, None, "", aside=True)

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
        from tui_eval.tui.loaders.case_loader import load
        from tui_eval.tui.state.app_state import Where

        item = self.state.by_id.get(pointer.case_id)
        run_id = self._run_of(pointer)
        folder = self.state.run_folder(run_id) if run_id else None
        where = Where(pointer, folder, None, item.case if item is not None else None, None)
        self._core.tasks.thread(partial(load, where), take, name="attempt", opens=True)


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
            words = ""
            if row is None or row.state != "done" or not content.run_id:
                words = "there is no finished attempt to note anything on"
            elif content.folder is not None and is_looked_at(content.folder):
                words = NOT_NOTED
            if words or row is None:  # asked all the same: `m r` is no key that runs the case
                self._places.ask(f"{words[:1].upper()}{words[1:]}.", ASKS_NOTHING, lambda _: None)
                return
            place_of = (content.run_id, row.id)
            content.called = self.state.name_of(pointer.case_id, content.name)
            work = partial(notes_of, self.state.root, pointer.case_id)
            take_notes = partial(
                ask_what, content.title, place_of, (content.agent or "", content.model or "")
            )
            self._core.tasks.thread(work, take_notes, name="notes", opens=True)

        def ask_what(
            name: str,
            attempt: tuple[str, int],
            column: tuple[str, str],
            notes: dict[tuple[str, int], HumanNote],
        ) -> None:
            note = notes.get(attempt) or HumanNote(*attempt, pointer.case_id)
            note = msgspec.structs.replace(note, agent=column[0], model=column[1])
            said = note_words(note)
            self._places.ask(
                f"What of the answer of {clip(visible(name, newlines=False), 64)}?",
                ANSWERS,
                partial(self._answer, write, note),
                [f"You said: {said}"] if said else [],
            )

        self._recorded.read(pointer, take)

    def _answer(self, write: Callable[[HumanNote], Any], note: HumanNote, answer: str | None) -> None:
        match answer:
            case "right" | "wrong":
                self.keep(note, msgspec.structs.replace(note, verdict=answer))
            case "undecided":
                self.keep(note, msgspec.structs.replace(note, verdict=None))
            case "star":
                self.keep(note, msgspec.structs.replace(note, star=not note.star))
            case "nothing":
                self.keep(note, msgspec.structs.replace(note, star=False, verdict=None, text=""))
            case "note":
                write(note)

    def keep(self, seen: HumanNote, note: HumanNote) -> None:
        """Keep what somebody made of the note that they saw, and show it in the lists."""
        notes = Notes(self.state.root)

        def put() -> list[HumanNote]:
            notes.put(note, seen)
            return notes.of_case(note.case_id)

        def kept(all_notes: list[HumanNote]) -> None:
            self.state.set_notes(note.case_id, all_notes)
            self._places.post(SuitesChanged([note.case_id]))
            words = note_words(next((one for one in all_notes if _is_of_same(one, note)), None))
            self._notices.say(f"noted: {words}" if words else "nothing noted any more")

        self._core.tasks.thread(put, kept, name="note", queue="notes")

    def read_again(self) -> None:
        """Somebody has noted something, maybe in another app: show it in the lists."""

        def take(found: dict[str, list[HumanNote]]) -> None:
            known = self.state.notes
            changed = [name for name in {**known, **found} if known.get(name) != found.get(name)]
            for name in changed:
                self.state.set_notes(name, found.get(name, []))
            if changed:
                self._places.post(SuitesChanged(changed))

        self._core.tasks.thread(Notes(self.state.root).by_case, take, name="notes", queue="notes")


def _is_of_same(one: HumanNote, other: HumanNote) -> bool:
    return (one.run_id, one.attempt_ref) == (other.run_id, other.attempt_ref)


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
        pointer = self._places.pointer()
        if pointer is None:
            self._notices.say("put the cursor on a case first")
            return
        stays = self._places.stays()

        def take(content: CaseContent) -> None:
            item = self.state.by_id.get(pointer.case_id)
            # Not the record's case: where that stood something else may stand now, and it may be somebody else's.
            case = item.as_written if item is not None else None
            if content.attempt is None or content.case is None:
                self._notices.say(content.problem or "there is no finished attempt to accept")
            elif case is None:
                name = self.state.name_of(pointer.case_id, content.name or content.case.name)
                self._notices.say(f"{name} is in no suite that is open here (any more): nothing to change")
            elif content.attempt.outcome == "passed":
                self._notices.say("it has passed: there is nothing to change")
            else:
                work = partial(self._proposed, case, content.attempt)
                name = self.state.name_of(case.case_id, content.name or case.name)
                slow = f"looking at {case.suite}: what would change"

                def shown(proposed: tuple[Proposal, str]) -> None:
                    if stays():
                        self._show_proposal(name, proposed)
                    else:
                        self._notices.say(f"what would change in {name} is not shown, as you went on")

                self._core.tasks.thread(work, shown, name="accept", opens=True, slow=slow)

        self._recorded.read(pointer, take)

    def _proposed(self, case: Case, attempt: Attempt) -> tuple[Proposal, str]:
        """In a thread: what would change, and as it is shown, with secrets masked."""
        from tui_eval.config.project import Config, secrets
        from tui_eval.formats.accepting import propose, shown_diff

        proposal = propose(case, attempt, self.state.root)
        names = dict.fromkeys(change.path for change in proposal.changes)
        texts = dict(zip(names, proposal.texts.values(), strict=True))
        return proposal, shown_diff(texts, case, secrets(self.state.config or Config(root=self.state.root)))

    def _show_proposal(self, name: str, proposed: tuple[Proposal, str]) -> None:
        from tui_eval.formats.accepting import write

        proposal, diff = proposed
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
            diff,
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
            self._notices.say("there is no accepted answer to take back")
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
