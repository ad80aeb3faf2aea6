"""Where the Case screen's content comes from: the lists, a run's folder, the news of a run that goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from textual.timer import Timer

from tui_eval.case_names import full_name
from tui_eval.guard.paths import read_words
from tui_eval.store.linked import replaced_by
from tui_eval.tui.front import RunChanged
from tui_eval.tui.loaders.case_loader import load, load_past
from tui_eval.tui.services import AppServices
from tui_eval.tui.state.app_state import CasePointer, where_is
from tui_eval.tui.state.case.case_content import CaseContent, foreseen, named_among
from tui_eval.tui.state.case.case_history import CasePast
from tui_eval.tui.state.data.data_view import fault_of
from tui_eval.tui.state.runs.run_group import merged
from tui_eval.tui.state.runs.run_view import as_left
from tui_eval.yaml.yaml_scalars import place_in_file

PATIENCE = 0.4
"""Seconds of reading after which it is said that something is being read."""
READING = "reading the attempt…"
"""Until it has been read."""


class ReadingScreen(Protocol):
    """The screen that shows what is read."""

    def has(self, *selectors: str) -> bool:
        """Whether these widgets are there, and the screen with them."""
        ...

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> Timer:
        """Call this once, in so many seconds."""
        ...

    def say(self, words: str) -> None:
        """A few words for the person."""
        ...

    def unsay(self, words: str) -> None:
        """These words are true no more."""
        ...

    def show_head(self) -> None:
        """Attempts have come, or changed."""
        ...

    def loaded(self, keep: bool) -> None:
        """An attempt was read; `keep`: the one that was shown before."""
        ...

    def past_read(self) -> None:
        """What became of the case in all runs is known."""
        ...


class CaseReader:
    """Reads what the pointer leads to, in threads."""

    def __init__(self, screen: ReadingScreen, services: AppServices, pointer: CasePointer) -> None:
        self._screen = screen
        self._state, self._tasks = services.state, services.tasks
        self.pointer = pointer
        self.content = CaseContent(pointer)
        """What was read last."""
        self.fresh = False
        """Whether it is of a run that the person has just asked for."""
        self._runs_seen: set[str] = set()
        self._generation = 0
        self._read = 0
        """The generation whose content is shown."""
        self._reading_past: CasePointer | None = None
        self._of_step = False
        """Whether the run looked at is a step: left without a result it leaves no trace."""

    @property
    def run_id(self) -> str | None:
        """The run looked at: the pointer's, else the one in front."""
        run = self._state.run
        return self.pointer.run_id or (run.info.id if run is not None else None)

    def go_to(self, pointer: CasePointer) -> None:
        """Another case, or another attempt."""
        if pointer != self.pointer:
            self.fresh = False
            self.pointer = pointer
            self.load(keep=False)

    def step(self, step: int) -> bool:
        """The next (-1: previous) attempt; False where there is none."""
        placed = self.content.step(step)
        if placed is None:
            return False
        old, fresh = self.pointer, self.fresh
        self.go_to(
            CasePointer(old.case_id, old.agent, old.model, placed.run_id or self.run_id, placed.row.id)
        )
        self.fresh = fresh and placed.run_id == old.run_id
        return True

    def reload(self) -> None:
        """Read the same attempt again."""
        self.load(keep=True)

    def foresee(self) -> None:
        """Begin with what the lists know, for the first frame: over a slow line the reason comes with it."""
        state, pointer = self._state, self.pointer
        if state.run is not None:
            self._runs_seen.add(state.run.info.id)
        item = state.by_id.get(pointer.case_id)
        case = item.case if item is not None else None
        name = full_name(item.name, item.variant(pointer.agent)) if item and case else ""
        last = item.last_of(pointer.agent, pointer.model) if item is not None else None
        run = state.run_of(pointer.run_id)
        rows, ended = state.attempts_of(pointer), run is not None and not run.active
        if run is not None:
            rows = as_left(rows, run.info)
        self.content = foreseen(pointer, rows, last, name, ended=ended)

    def load(self, *, keep: bool) -> None:
        """Read what the pointer leads to; `keep`: it is the same attempt, and the cursor stays where it is."""
        self._generation += 1
        loaded = partial(self._loaded, self._generation, keep)
        self._screen.set_timer(PATIENCE, partial(self._still_reading, self._generation))
        first = self._generation == 1
        run = self._state.run_of(self.pointer.run_id)
        self._of_step = run is not None and run.info.stepped
        where, item, items = (
            where_is(self._state, self.pointer),
            self._state.item_of(self.pointer),
            self._state.rows,
        )

        def read() -> CaseContent:
            content = load(where)
            content.row_name = named_among(item, content.agent, items)
            return content

        self._tasks.thread(read, loaded, name="case", opens=first)

    def _still_reading(self, generation: int) -> None:
        if generation == self._generation and generation != self._read:
            self._screen.say(READING)

    def _loaded(self, generation: int, keep: bool, content: CaseContent) -> None:
        if generation != self._generation or not self._screen.has(".head", ".tabs"):
            return
        self._read = generation
        self._screen.unsay(READING)
        content.fresh = self.fresh
        content.called = self._state.name_of(self.pointer.case_id, content.name)
        self.content = content
        self._reading_past = None
        self._screen.loaded(keep)
        if content.running and self._has_ended(content):
            self.reload()
        elif content.problem:
            self._before_a_step_of_nothing()

    def _before_a_step_of_nothing(self) -> bool:
        """Go to what the case came to before, where it is read in a step that came to nothing."""
        run = self._state.find_run(self.content.run_id)
        if not self._of_step or not (run is None or run.came_to_nothing):
            return False
        item = self._state.by_id.get(self.pointer.case_id)
        last = item.last_of(self.pointer.agent, self.pointer.model) if item is not None else None
        if last is None or last.run_id == self.content.run_id:
            return False
        self.go_to(CasePointer(self.pointer.case_id, last.agent, last.model, last.run_id))
        return True

    def _has_ended(self, content: CaseContent) -> bool:
        """Whether the attempt ended while it was read: what was shown of that was shown too early."""
        group, row = self._state.group, content.row
        run = group.find_run(content.run_id) if group is not None else None
        known = run.attempts.get(row.id) if run is not None and row is not None else None
        return known is not None and known.state == "done"

    def read_past(self) -> None:
        """Read what became of the case in all runs, unless it is being read."""
        if self._reading_past == self.pointer:
            return
        self._reading_past = self.pointer
        content = self.content
        column = (content.agent or self.pointer.agent, content.model or self.pointer.model)
        self._tasks.thread(
            partial(load_past, self._state.root, self.pointer.case_id, *column),
            partial(self._past_read, content),
            name="past",
        )

    def _past_read(self, content: CaseContent, past: CasePast) -> None:
        if content is self.content and self._screen.has():
            content.past = past
            self._screen.past_read()

    def run_changed(self, event: RunChanged) -> None:
        """Attempts of a run have changed: those of this case are shown as they are now."""
        state = self._state
        if self.content.problem and self._before_a_step_of_nothing():
            return
        run = state.run
        if event.run_id:
            run = state.find_run(event.run_id)
        if run is None:
            return
        ref = run.find(self.pointer.case_id, self.pointer.agent, self.pointer.model)
        if ref is None:
            return
        if event.opened and run.info.id not in self._runs_seen and run.info.id != self.pointer.run_id:
            # The case was run again: the new attempt is what the person waits for.
            self._runs_seen.add(run.info.id)
            self.pointer = CasePointer(
                self.pointer.case_id, self.pointer.agent, self.pointer.model, run.info.id
            )
            self.fresh = True
            self.load(keep=False)
            return
        if run.info.id != self.run_id:
            return
        ended = not run.active  # of attempts that never began no other news comes
        if ended == self.content.ended and not any(row.case_ref == ref for row in event.changed):
            return
        here = self.content.row
        rows = as_left(run.attempts_of(ref), run.info)
        fresh = next((row for row in rows if here is not None and row.id == here.id), None)
        unread = self.content.attempt is None and fresh is not None and fresh.state == "done"
        # It did run: until what came of it has been read it stands as it did, not as one that never began.
        self.content.ended = ended and not unread
        self.content.rows = rows
        self.content.family = merged(self.content.family, run.info.id, rows, replaced_by(run.info))
        if self.content.attempt is None and fresh is not None and fresh.state != "done":
            self.content.row = fresh
        if fresh is None or unread or (self.content.attempt is None and ended):
            self.reload()
        self._screen.show_head()


# -- Where an expected query failed, looked for in its file as it is now.


def place_of_fault(content: CaseContent, root: Path) -> tuple[str, int] | None:
    """The file (from `root`) and the line in which the expected query of an attempt failed; None: it did not, or that
    is not known. Where the file has another query by now, the line that was recorded."""
    details = content.attempt.data if content.attempt is not None else None
    fault = fault_of(details) if details is not None else None
    if details is None or fault is None or content.case is None:
        return None
    name = content.case.path  # the record may be somebody else's: it names no file to open
    if fault.get("file") != name:
        return None
    recorded = fault.get("file_line")
    try:
        text = read_words(root / name)
    except (OSError, ValueError):
        return None
    line, column = fault.get("line"), fault.get("column")
    if isinstance(line, int) and isinstance(column, int):
        found = place_in_file(text, "sql", details.reference_sql or "", line, column)
        recorded = found[0] if found is not None else recorded
    return (name, recorded) if isinstance(recorded, int) else None
