"""The streaming panes of the Run screen: which attempts have one, and the keys that mean a pane."""

from __future__ import annotations

from textual import on
from textual.timer import Timer

from tui_eval.model import Entry as TranscriptEntry
from tui_eval.store.reader import RunReader
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.list_place import ListPlace
from tui_eval.tui.widgets.lines_pane import LinesPane
from tui_eval.tui.widgets.stream_grid import StreamGrid


class RunStreams(ListPlace, inherit_bindings=False):
    """A list of cases with a `StreamGrid` beside it."""

    def __init__(self) -> None:
        super().__init__()
        self._slot_timer: Timer | None = None

    @property
    def streams(self) -> StreamGrid:
        """The panes."""
        return self.query_one(StreamGrid)

    def current(self) -> CasePointer | None:
        """The case under the cursor, or that of the pane that keys go to."""
        run = self.services.state.run
        pane = self.streams.current_pane
        if self.streams.has_focus and pane is not None and run is not None:
            row = run.attempts.get(pane.ref)
            case = run.cases.get(row.case_ref) if row is not None else None
            if case is not None:
                return CasePointer(case.case_id, case.agent, case.model, run.info.id, pane.ref)
        return super().current()

    @on(StreamGrid.Ended)
    def _ended(self, event: StreamGrid.Ended) -> None:
        """Read the transcript of a pane's attempt, for its last words."""
        event.stop()
        run = self.services.state.run
        if run is None:
            return
        folder, ref = run.folder, event.ref

        def read() -> list[TranscriptEntry]:
            reader = RunReader(folder)
            try:
                attempt = reader.attempt(ref)
                return attempt.transcript if attempt is not None else []
            finally:
                reader.close()

        def take(transcript: list[TranscriptEntry]) -> None:
            if transcript and stands(self) and self.services.state.run is run:
                self.streams.complete(ref, transcript)

        run_in_thread(self.app, read, take, name="transcript")

    def assign(self) -> None:
        """Panes come and go; look again when a finished one may give up its place."""
        if self._slot_timer is not None:
            self._slot_timer.stop()
            self._slot_timer = None
        wait = self.streams.assign_panes() if self.streams.display else None
        if wait is not None:
            self._slot_timer = self.set_timer(wait + 0.02, self.assign)

    # -- keys

    def action_pane(self, step: int) -> None:
        """From the list through the panes and back."""
        streams = self.streams
        if self.case_list.has_focus:
            self.set_class(True, "-streams")
            if self.has_class("-ended"):
                self.query_one(LinesPane).focus()
                self.call_after_refresh(self.show_detail)
                return
            streams.selected = 0 if step > 0 else max(0, len(streams.panes) - 1)
            streams.focus()
            self.call_after_refresh(self.assign)
            return
        if self.query_one(LinesPane).has_focus or not streams.select(step):
            self.set_class(False, "-streams")
            if self.has_class("-zoomed"):
                self.action_zoom()
            self.case_list.focus()

    def _chosen_ref(self) -> int | None:
        """The attempt whose pane a key means."""
        pane = self.streams.current_pane
        if self.streams.has_focus and pane is not None:
            return pane.ref
        run = self.services.state.run
        entry = self.case_list.current_entry
        if run is None or entry is None or entry.case_ref is None:
            return pane.ref if pane else None
        if entry.run_id != run.info.id:
            return None
        rows = run.attempts_of(entry.case_ref)
        return next((row.id for row in rows if row.state in ("running", "retrying")), None)

    def action_pin(self) -> None:
        """Keep a pane, or let it go."""
        ref = self._chosen_ref()
        if ref is None:
            self.services.notices.say("nothing to pin: this case is not running")
            return
        self.services.notices.say("pinned" if self.streams.pin(ref) else "no longer pinned")
        self.assign()

    def action_zoom(self) -> None:
        """One pane over everything, or all of them again."""
        streams = self.streams
        if streams.zoomed is not None:
            streams.zoom(None)
            self.set_class(False, "-zoomed")
            self.call_after_refresh(self.assign)
            return
        ref = self._chosen_ref()
        if ref is None and streams.panes:
            ref = streams.panes[0].ref
        if ref is None:  # a small screen shows the list, and no pane has been asked for yet
            run = self.services.state.run
            ref = next((row.id for row in run.running()), None) if run is not None else None
        if ref is None:
            self.services.notices.say("nothing to zoom: no case is running")
            return
        if ref not in streams.slots.shown:
            streams.slots.shown = [ref, *streams.slots.shown]
        self.set_class(True, "-streams")
        self.set_class(True, "-zoomed")
        streams.focus()
        streams.zoom(ref)
        self.call_after_refresh(self.assign)

    def action_follow(self) -> None:
        """Follow the tail, or stay where it is."""
        self.services.notices.say("following" if self.streams.toggle_follow() else "not following")

    def back(self) -> bool:
        """Out of the zoom, out of the panes, then as every list."""
        if self.streams.zoomed is not None:
            self.action_zoom()
            self.set_class(False, "-streams")
            self.case_list.focus()
            return True
        if self.streams.has_focus or self.query_one(LinesPane).has_focus:
            self.set_class(False, "-streams")
            self.case_list.focus()
            return True
        return super().back()
