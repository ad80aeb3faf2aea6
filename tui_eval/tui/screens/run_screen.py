"""Run: the live run. The case list at the left, what running cases say at the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.timer import Timer

from tui_eval.guard.text import visible
from tui_eval.model import OUTCOMES
from tui_eval.model import Entry as TranscriptEntry
from tui_eval.store.reader import RunReader
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.front import LiveText, RunChanged, SuitesChanged
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import Key, bindings
from tui_eval.tui.screens.list_place import ListPlace, now
from tui_eval.tui.screens.place import keys_in, keys_of, labelled
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.case_sources import RunCases
from tui_eval.tui.state.runs.run_facts import figures_line, progress_line
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.runs.stream_layout import capacity
from tui_eval.tui.state.text.formatting import counted
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.case_list import CaseList
from tui_eval.tui.widgets.lines_pane import LinesPane
from tui_eval.tui.widgets.stream_grid import StreamGrid

EMPTY = RunGroup(())
NO_RUN = (
    *keys_of("run.all"),
    *labelled(keys_of("place.suites"), "place.suites", "suites"),
    *labelled(keys_of("place.runs"), "place.runs", "runs"),
    *keys_of("help", "quit"),
)
ENDED_RUN = (
    "list.open",
    "failure.next",
    "case.rerun",
    "run.failed",
    "list.clear",
    "case.edit",
    "list.filter",
    "help",
    "quit",
)
"""Keys of the footer, those that the person needs sooner first: as many as do something and have room."""
GOING_ON = (
    "run.pause",
    "list.open",
    "pane.next",
    "list.clear",
    "failure.next",
    "stream.zoom",
    "case.cancel",
    "list.filter",
    "help",
    "quit",
)
"""The same while the run goes on, or waits to."""
IN_PANES = ("list.open", "pane.next", "stream.zoom", "stream.pin", "stream.follow", "help", "quit")
FLUSH = 0.25
"""Seconds at least between two redraws of the list; more when many lines changed at once."""
LINES_A_SECOND = 12
"""Lines of the list that may be repainted per second on average (2 kB/s)."""
REORDER = 2.0
"""Seconds at least between two changes of the list's order."""


class RunScreen(ListPlace, inherit_bindings=False):
    """The run in front (`services.state.run`), live or finished."""

    TITLE = "Run"
    kind = "run"
    BINDINGS = [*ListPlace.BINDINGS, *bindings("run")]
    KEY_SECTIONS = (
        ("The run", keys_in("run")),
        ("Moving", keys_in("moving")),
        ("The list", keys_in("list", "screen")),
    )
    DEFAULT_CSS = """
    RunScreen .body { height: 1fr; }
    RunScreen .right { width: 1fr; height: 1fr; }
    RunScreen.-wide CaseList { width: 38%; min-width: 46; border-right: solid $surface-lighten-2; }
    RunScreen LinesPane { display: none; background: $surface; }
    RunScreen.-looking LinesPane { display: block; }
    RunScreen.-wide.-looking LinesPane { border-top: solid $surface-lighten-2; }
    RunScreen.-ended StreamGrid { display: none; }
    RunScreen.-ended LinesPane { display: block; border-top: none; }
    RunScreen.-wide.-ended CaseList { width: 55%; max-width: 100%; border-right: none; padding-right: 1; }
    RunScreen.-wide.-large CaseList { width: 30%; min-width: 30; }
    RunScreen.-wide.-hidden CaseList { width: 100%; }
    RunScreen.-hidden .right { display: none; }
    RunScreen.-wide.-zoomed CaseList { display: none; }
    RunScreen.-narrow .body { layout: vertical; }
    RunScreen.-narrow .right { height: 8; border-top: solid $surface-lighten-2; }
    RunScreen.-narrow.-low .right { height: 5; }
    RunScreen.-narrow.-large .right { height: 70%; }
    RunScreen.-narrow.-short .right { display: none; }
    RunScreen.-narrow.-short.-large .right { display: block; }
    RunScreen.-narrow.-looking StreamGrid { display: none; }
    RunScreen.-narrow.-streams .right { display: block; height: 1fr; border-top: none; }
    RunScreen.-narrow.-streams CaseList { display: none; }
    RunScreen.-narrow.-streams.-ended StreamGrid { display: none; }
    RunScreen.-wide.-hidden.-streams .right { display: block; }
    RunScreen.-wide.-hidden.-streams CaseList { display: none; }
    """

    def __init__(self) -> None:
        super().__init__(RunCases(self.services.state), floats=True)
        self.view.failures_first = True
        self._dirty: set[str] = set()
        self._flush_timer: Timer | None = None
        self._shown: RunView | None = None
        self._root = ""
        self._slot_timer: Timer | None = None

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            **super().handlers(),
            "stream.pin": self.pin,
            "stream.zoom": self.zoom,
            "stream.follow": self.follow,
        }

    def compose(self) -> ComposeResult:
        """Facts, list, streams, keys."""
        services = self.services
        yield FactsBar(lines=2)
        with Horizontal(classes="body"):
            yield CaseList("run", services.symbols)
            with Vertical(classes="right"):
                yield StreamGrid(services.symbols)
                yield LinesPane()
        yield KeyHints(self.hints())

    def on_mount(self) -> None:
        """Begin with what is known."""
        self.case_list.at_once = self.at_once
        self.case_list.when_whole = self.mark_when_whole
        self.case_list.focus()
        self.streams.called = self._called
        self.set_interval(1.0, self._tick)
        self._load()

    def hints(self) -> Sequence[Key]:
        """Seven keys, others while a run goes on than after it, and in the panes than in the list."""
        run = self.services.state.run
        if run is None:
            return NO_RUN if self.services.state.rows else NO_RUN[1:]
        if run.active:
            if self.is_mounted and self.streams.has_focus:
                return labelled(self.useful_keys(*IN_PANES), "pane.next", "next pane")
            keys = self.useful_keys(*GOING_ON)
            return labelled(labelled(keys, "pane.next", "panes"), "run.pause", "go on")
        if self.is_mounted and self.query_one(LinesPane).has_focus:
            return labelled(self.useful_keys("pane.next", *ENDED_RUN), "pane.next", "list")
        return self.useful_keys(*ENDED_RUN)

    def useful(self) -> set[str]:
        """Those of the list, of the panes, and of a run that takes orders."""
        found = super().useful()
        run = self.services.state.run
        if run is None or not run.active:
            return found
        if run.info.id in self.services.engines.out_of_reach:
            found.discard("case.cancel")
        elif run.paused:
            found.add("run.pause")
        streams = self.streams
        running = len(run.running())
        if streams.has_focus and streams.current_pane is not None:
            found |= {"stream.pin", "stream.follow"}
        fit = capacity(streams.size.width, streams.size.height)
        if running and not (streams.has_focus and min(fit, running) < 2 and self.has_class("-narrow")):
            found.add("stream.zoom")
        if streams.has_focus and self.current() is None:
            found.discard("list.open")
        return found

    def _called(self, case_ref: int) -> tuple[str, str, str] | None:
        """What the list calls a case of the run in front."""
        run, group = self.services.state.run, self.services.state.group
        key = group.key_in(run, case_ref) if run is not None and group is not None else None
        row = self.arrangement.rows.get(key) if key is not None else None
        return (row.name, row.variant, row.suite) if row is not None else None

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

    # -- news

    def _load(self) -> None:
        run = self.services.state.run
        self.streams.follow_run(run)
        self.say_nothing()
        self.streams.empty = ["Waiting for the first words."] if run is not None else []
        group = self.services.state.group
        root = group.root if group is not None else ""
        fresh = (
            run is not None
            and root != self._root
            and not self.arrangement.rows.keys() & (group or EMPTY).cases
        )
        self._root = root
        self._shown = run
        self._dirty.clear()
        self._layout_for_state()
        if fresh:
            self.case_list.marks = set()
            self.case_list.touched = False
            self.view.held.clear()
            self.case_list.move_to(0)
        self.arrangement.remake()
        self.assign()

    def _layout_for_state(self) -> None:
        run = self.services.state.run
        ended = run is not None and not run.active
        hidden = not self.case_list.display
        self.set_class(ended, "-ended")
        if ended:
            self.streams.zoomed = None
        self.set_class(self.streams.zoomed is not None, "-zoomed")  # of another run none is
        if ended and hidden:
            self.set_class(False, "-streams")
            self.case_list.focus()
        self.show_hints()

    @on(RunChanged)
    def _run_changed(self, event: RunChanged) -> None:
        run, group = self.services.state.run, self.services.state.group
        if run is None or group is None or run is not self._shown:  # a run that is resumed is read anew
            self._load()
            return
        if event.run_id and group.find_run(event.run_id) is None:
            return  # it goes on beside this one
        changed_run = group.find_run(event.run_id) if event.run_id else run
        if changed_run is not None:
            keys = (group.key_in(changed_run, row.case_ref) for row in event.changed)
            self._dirty.update(key for key in keys if key is not None)
        if event.opened:
            self._layout_for_state()
            if len(group.cases) != len(self.arrangement.rows) and not self.arrangement.busy:
                self.arrangement.remake()
                self.say_nothing()  # until the list of many is there
            if not run.active:
                self._flush(final=True)
        if self.streams.display:
            self.streams.changed()
            self.assign()
        if self._dirty and self._flush_timer is None:
            self._flush_timer = self.set_timer(FLUSH, self._flush)

    @on(SuitesChanged)
    def _suites_changed(self, event: SuitesChanged) -> None:
        """The cases' own words may be known only now, or what a person noted on one of them."""
        if event.case_ids is not None:
            changed = set(event.case_ids)
            self._dirty.update(
                key for key, entry in self.arrangement.rows.items() if entry.case_id in changed
            )
            if self._flush_timer is None:
                self._flush()
            return
        if self.arrangement.busy or any(entry.case is None for entry in self.arrangement.rows.values()):
            self.arrangement.remake()

    @on(LiveText)
    def _live_text(self, event: LiveText) -> None:
        if self.streams.display and not event.run_id:
            self.streams.flush(event.attempts)

    def _flush(self, final: bool = False) -> None:
        """Redraw the lines of cases that changed; then wait as long as they cost."""
        self._flush_timer = None
        if self.services.state.group is None:
            return
        keys, self._dirty = self._dirty, set()
        moved = self.arrangement.replace_some(keys)
        cases = self.case_list
        in_sight = sum(
            line.entry is not None and line.key in keys
            for line in cases.cases.lines[cases.top : cases.top + cases.size.height]
        )
        if final:
            self.arrangement.rearrange()
            self._show_facts()
            return
        if moved:
            # Where only folds are listed (`48 waiting`) nothing jumps, and what has begun is nowhere to be seen.
            lines = cases.cases.lines[cases.top : cases.top + cases.size.height]
            listed = any(line.kind in ("case", "test") for line in lines)
            self.arrangement.rearrange_soon(REORDER if listed else 0.0)
        self._show_facts()
        pause = max(FLUSH, in_sight / LINES_A_SECOND)
        self._flush_timer = self.set_timer(pause, self._flush_again)

    def _flush_again(self) -> None:
        self._flush_timer = None
        if self._dirty:
            self._flush()

    def _tick(self) -> None:
        """Once a second while the run goes on: the clocks."""
        run = self.services.state.run
        if run is None or not run.active or not self.is_current:
            return
        self._show_facts()
        if self.case_list.display:
            self.case_list.tick()
        if self.streams.display:
            self.streams.tick()

    def on_screen_resume(self) -> None:
        """What happened meanwhile."""
        if self._shown is not None and not self.arrangement.up_to_date():
            self._load()

    def show_detail(self) -> None:
        """While cases run, the attempt under the cursor takes the place of a pane once it has ended and the person
        has gone to it."""
        line = self.case_list.current_line
        told = line.telling if line is not None else None
        looking = (
            self.case_list.touched
            and told is not None
            and told.status in OUTCOMES
            and not self.has_class("-ended")
        )
        if looking != self.has_class("-looking"):
            self.set_class(looking, "-looking")
            self.call_after_refresh(self.preview.show)
            self.call_after_refresh(self.assign)
            return
        super().show_detail()

    def nothing(self) -> list[str]:
        """That there is no run, or none that has told of its cases yet."""
        if self.services.state.run is None and not self.services.runs.opening:
            if why := self.services.state.unread:
                return ["This run cannot be read.", visible(why, newlines=False)]
            return ["No run yet.", "a runs all cases; U goes to the suites, H to earlier runs."]
        if (group := self.services.state.group) is not None and group.cases:
            return [f"{counted(len(group.cases), 'case')}: their list is being made."]
        return ["Starting."]

    def rebuilt(self) -> None:
        """The facts, the empty list's words, and of a run that has ended what is under the cursor."""
        self._to_what_was_begun()
        self._show_facts()
        self.say_nothing()
        self.show_detail()

    def _to_what_was_begun(self) -> None:
        """The cursor goes to the first case of what was run again from elsewhere, as soon as the list has it."""
        state = self.services.state
        group = state.group or EMPTY
        run = group.find_run(state.begun_elsewhere) if state.begun_elsewhere else None
        if run is None or not run.cases or self.arrangement.busy:
            return
        state.begun_elsewhere = ""
        if len(run.cases) < len(group.cases):
            keys = {group.key_in(run, ref) for ref in run.cases}
            first = next((entry for entry in self.shown_entries() if entry.key in keys), None)
            if first is not None:
                self.go_to(self.pointer_of(first))

    def _show_facts(self) -> None:
        services = self.services
        run = services.state.run
        bar = self.query_one(FactsBar)
        if run is None:
            nothing = "not read" if services.state.unread else "no run yet"
            bar.show([("title", "starting" if services.runs.opening else nothing)], [])
            return
        first: list[tuple[str, str]] = []
        marks = len(self.case_list.marks)
        if marks:
            first.append(("key", f"{marks:,} marked  "))
        if self.finder.problem:
            first.append(("bad", f"{visible(self.finder.problem, newlines=False)}  "))
        if self.expression:
            shown = len(self.shown_entries())
            first.append(("key", f"filter: {visible(self.expression, newlines=False)} "))
            first.append(("dim", f"({shown:,} shown, F clears)  "))
        used = sum(cell_len(text) for _, text in first)
        group = services.state.group
        several = group is not None and len(group.runs) > 1
        whole = None
        if group is not None and several:
            # What has changed since the lines were redrawn counts: it is in what the run says is done, too.
            changed = {key: group.status(key) for key in self._dirty if key in group.cases}
            whole = self.arrangement.tally(changed)

        def fitted(width: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
            figures = figures_line(run, services.symbols, now(), max(20, width - used), alone=not several)
            return progress_line(run, services.symbols, width, whole), [*first, *figures]

        bar.show_fitted(fitted)

    # -- the streaming panes: which attempts have one

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
        self.show_hints()

    # -- keys

    @on(CaseList.Opened)
    def _opened(self, event: CaseList.Opened) -> None:
        event.stop()
        if event.line.entry is not None:
            self.services.places.open_case(self.pointer_of(event.line.entry))

    def pane(self, step: int) -> None:
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
                self.zoom()
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

    def pin(self) -> None:
        """Keep a pane, or let it go."""
        ref = self._chosen_ref()
        if ref is None:
            self.services.notices.say("nothing to pin: this case is not running")
            return
        self.services.notices.say("pinned" if self.streams.pin(ref) else "no longer pinned")
        self.assign()

    def zoom(self) -> None:
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

    def follow(self) -> None:
        """Follow the tail, or stay where it is."""
        self.services.notices.say("following" if self.streams.toggle_follow() else "not following")

    def show_list(self) -> None:
        """In the room of the panes, and of the one that is zoomed."""
        if self.streams.zoomed is not None:
            self.zoom()
        self.set_class(False, "-streams")

    def back(self) -> bool:
        """Out of the zoom, out of the panes, then as every list."""
        if self.streams.zoomed is not None or self.streams.has_focus or self.query_one(LinesPane).has_focus:
            self.focus_home()
            return True
        return super().back()
