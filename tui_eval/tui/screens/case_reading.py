"""Where the Case screen's content comes from: the lists, a run's folder, the news of a run that goes on."""

from __future__ import annotations

from functools import partial

from textual import on

from tui_eval.case_names import full_name, variant_of
from tui_eval.store.linked import replaced_by
from tui_eval.store.run_folders import Store
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.case_past import load_past
from tui_eval.tui.inspector.history import HistoryTab
from tui_eval.tui.inspector.transcript import TranscriptTab
from tui_eval.tui.loaders.case_loader import Where, load
from tui_eval.tui.messages import LiveText, RunChanged
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.case_parts import ASSERTIONS, HISTORY, CasePart
from tui_eval.tui.state.case.case_content import CaseContent, foreseen
from tui_eval.tui.state.case.case_history import CasePast
from tui_eval.tui.state.runs.linked_lists import merged

PATIENCE = 0.4
"""Seconds of reading after which it is said that something is being read."""


class CaseReading(CasePart, inherit_bindings=False):
    """Reads what the pointer leads to, in threads, and gives it to the tab in front."""

    _read = 0
    """The generation whose content is shown."""

    def current(self) -> CasePointer | None:
        """The case and attempt looked at."""
        return self.pointer

    def go_to(self, pointer: CasePointer) -> None:
        """Show another case, or another attempt, in the same tab."""
        if pointer != self.pointer:
            self._fresh = False
            self.pointer = pointer
            self._load(keep=False)

    def reload(self) -> None:
        """Read the same attempt again, the cursor staying where it is."""
        self._load(keep=True)

    def _foreseen(self) -> CaseContent:
        """What the lists know, for the first frame: over a slow line the reason comes with it."""
        state, pointer = self.services.state, self.pointer
        item = state.by_id.get(pointer.case_id)
        case = item.case if item is not None else None
        name = full_name(case.name, variant_of(case, pointer.agent)) if case is not None else ""
        last = item.last_of(pointer.agent, pointer.model) if item is not None else None
        return foreseen(pointer, state.attempts_of(pointer), last, name)

    def _where(self) -> Where:
        state = self.services.state
        item = state.by_id.get(self.pointer.case_id)
        case = item.case if item is not None else None
        run = state.run
        if run is not None and self.pointer.run_id in (None, run.info.id):
            ref = run.find(self.pointer.case_id, self.pointer.agent, self.pointer.model)
            if ref is not None:
                return Where(self.pointer, run.folder, ref, case, state.root)
        if self.pointer.run_id is None:
            return Where(self.pointer, None, None, case, state.root)
        folder = Store(state.root).folder_of(self.pointer.run_id)
        return Where(self.pointer, folder, None, case, state.root)

    def _load(self, *, keep: bool) -> None:
        self._generation += 1
        loaded = partial(self._loaded, self._generation, keep)
        self.set_timer(PATIENCE, partial(self._still_reading, self._generation))
        first = self._generation == 1
        run_in_thread(self.app, partial(load, self._where()), loaded, name="case", opens=first)

    def _still_reading(self, generation: int) -> None:
        if generation == self._generation and generation != self._read:
            self.say("reading the attempt…")

    def _loaded(self, generation: int, keep: bool, content: CaseContent) -> None:
        if generation != self._generation or not stands(self):
            return
        self._read = generation
        content.fresh = self._fresh
        self.content = content
        self._reading_past = None
        self._shown = set()
        self._words = ""
        self.show_tab(keep=keep)
        self.show_head()
        if content.running and self._has_ended(content):
            self.reload()

    def _has_ended(self, content: CaseContent) -> bool:
        """Whether the attempt ended while it was read: what was told of that was told too early."""
        group, row = self.services.state.group, content.row
        run = group.find_run(content.run_id) if group is not None else None
        known = run.attempts.get(row.id) if run is not None and row is not None else None
        return known is not None and known.state == "done"

    def show_tab(self, *, keep: bool) -> None:
        """Give the tab in front what was loaded, once."""
        if self._active in self._shown:
            return
        self._shown.add(self._active)
        self.tab.present(self.content, keep=keep)
        if isinstance(self.tab, TranscriptTab) and self.content.running:
            self._show_live()
        if self._active in (ASSERTIONS, HISTORY) and self.content.past is None:
            self._read_past()

    def _read_past(self) -> None:
        """What became of the case in all runs; only these two tabs show it."""
        if self._reading_past == self.pointer:
            return
        self._reading_past = self.pointer
        content = self.content
        column = (content.agent or self.pointer.agent, content.model or self.pointer.model)
        run_in_thread(
            self.app,
            partial(load_past, self.services.state.root, self.pointer.case_id, *column),
            partial(self._past_read, content),
            name="past",
        )

    def _past_read(self, content: CaseContent, past: CasePast) -> None:
        if content is not self.content or not stands(self):
            return
        content.past = past
        self._shown -= {ASSERTIONS, HISTORY}
        if self._active in (ASSERTIONS, HISTORY):
            self._shown.add(self._active)
            self.tab.present(content, keep=self._active == ASSERTIONS)
            if self._active == HISTORY:
                # what was hidden cannot be focused before the styles are looked at again
                self.call_after_refresh(self.focus_main)

    @on(HistoryTab.Chosen)
    def _attempt_chosen(self, event: HistoryTab.Chosen) -> None:
        event.stop()
        one = event.attempt
        self.go_to(CasePointer(self.pointer.case_id, one.agent, one.model, one.run_id, one.row.id))
        self.action_tab(0)

    @on(LiveText)
    def _live_text(self, event: LiveText) -> None:
        if self.content.row is not None and self.content.row.id in event.attempts:
            self._show_live()

    def _show_live(self) -> None:
        run, row = self.services.state.find_run(self.run_id), self.content.row
        if self._active == 0 and run is not None and row is not None:
            tab = self._tabs[0]
            if isinstance(tab, TranscriptTab) and tab.size.width:
                tab.show_live(run.live.get(row.id))

    @on(RunChanged)
    def _run_changed(self, event: RunChanged) -> None:
        state = self.services.state
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
            self._fresh = True
            self._load(keep=False)
            return
        if run.info.id != self.run_id or not any(row.case_ref == ref for row in event.changed):
            return
        here = self.content.row
        rows = run.attempts_of(ref)
        fresh = next((row for row in rows if here is not None and row.id == here.id), None)
        self.content.rows = rows
        self.content.family = merged(self.content.family, run.info.id, rows, replaced_by(run.info))
        if fresh is None or (fresh.state == "done" and self.content.attempt is None):
            self.reload()
        elif self.content.attempt is None:
            self.content.row = fresh
        self.show_head()

    def on_screen_resume(self) -> None:
        """What happened meanwhile."""
        if self._shown and (self.content.running or self.content.row is None):
            self.reload()
