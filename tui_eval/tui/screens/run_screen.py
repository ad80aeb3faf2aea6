"""Run: the live run. The case list at the left, what running cases say at the right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.timer import Timer

from tui_eval.guard.text import visible
from tui_eval.model import Suite
from tui_eval.tui.keys import Key, bindings
from tui_eval.tui.messages import LiveText, RunChanged, SuitesChanged
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.list_place import now
from tui_eval.tui.screens.place import keys_in, keys_of, labelled
from tui_eval.tui.screens.run_streams import RunStreams
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.entries import run_entries, run_entry
from tui_eval.tui.state.runs.run_facts import figures_line, progress_line
from tui_eval.tui.state.runs.run_group import RunGroup
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
FLUSH = 0.25
"""Seconds at least between two redraws of the list; more when many lines changed at once."""
LINES_A_SECOND = 12
"""Lines of the list that may be repainted per second on average (2 kB/s)."""
REORDER = 4.0
"""Seconds at least between two changes of the list's order."""


class RunScreen(RunStreams, inherit_bindings=False):
    """The run in front (`services.state.run`), live or finished."""

    TITLE = "Run"
    kind = "run"
    BINDINGS = [*bindings("screen"), *bindings("run")]
    KEY_SECTIONS = (
        ("The run", keys_in("run")),
        ("Moving", keys_in("moving")),
        ("The list", keys_in("list", "screen")),
    )
    DEFAULT_CSS = """
    RunScreen .body { height: 1fr; }
    RunScreen.-wide CaseList { width: 30%; min-width: 46; max-width: 66; border-right: solid $surface-lighten-2; }
    RunScreen LinesPane { display: none; background: $surface; }
    RunScreen.-ended StreamGrid { display: none; }
    RunScreen.-wide.-ended CaseList { width: 55%; max-width: 100%; border-right: none; padding-right: 1; }
    RunScreen.-wide.-ended LinesPane { display: block; width: 45%; }
    RunScreen.-narrow.-ended.-streams LinesPane { display: block; }
    RunScreen.-wide.-zoomed CaseList { display: none; }
    RunScreen.-narrow StreamGrid { display: none; }
    RunScreen.-narrow.-streams StreamGrid { display: block; }
    RunScreen.-narrow.-streams CaseList { display: none; }
    RunScreen.-narrow.-streams.-ended StreamGrid { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.view.failures_first = True
        self._dirty: set[str] = set()
        self._flush_timer: Timer | None = None
        self._order_timer: Timer | None = None
        self._order_at = 0.0
        self._shown_run = ""
        self._root = ""

    def compose(self) -> ComposeResult:
        """Facts, list, streams, keys."""
        services = self.services
        yield FactsBar(lines=2)
        with Horizontal(classes="body"):
            yield CaseList("run", services.symbols)
            yield StreamGrid(services.symbols)
            yield LinesPane()
        yield KeyHints(self.hints())

    def on_mount(self) -> None:
        """Begin with what is known."""
        self.case_list.focus()
        self.set_interval(1.0, self._tick)
        self._load()

    def hints(self) -> Sequence[Key]:
        """Seven keys, others while a run goes on than after it, and in the panes than in the list."""
        run = self.services.state.run
        if run is None:
            return NO_RUN
        if run.active:
            if self.is_mounted and self.streams.has_focus:
                ids = ("list.open", "pane.next", "stream.zoom", "stream.pin", "stream.follow", "help", "quit")
                return labelled(keys_of(*ids), "pane.next", "next pane")
            last = "run.pause" if run.info.state == "paused" else "case.cancel"
            ids = ("list.open", "pane.next", "failure.next", "stream.zoom", last, "help", "quit")
            return labelled(labelled(keys_of(*ids), "pane.next", "panes"), "run.pause", "go on")
        if self.is_mounted and self.query_one(LinesPane).has_focus:
            ids = ("pane.next", "list.open", "failure.next", "case.rerun", "run.failed", "help", "quit")
            return labelled(keys_of(*ids), "pane.next", "list")
        return keys_of("list.open", "failure.next", "case.rerun", "run.failed", "list.filter", "help", "quit")

    def on_descendant_focus(self) -> None:
        """Other keys in the panes than in the list."""
        self.query_one(KeyHints).show(self.hints())

    def case_count(self) -> int:
        """One for each case and column of the run."""
        group = self.services.state.group
        return len(group.cases) if group is not None else 0

    def entry_maker(self) -> Callable[[], list[CaseRow]]:
        """From the run."""
        state = self.services.state
        return partial(run_entries, state.group, state) if state.group is not None else list

    def entries_of(self, keys: Iterable[str]) -> Iterable[CaseRow]:
        """The cases of these keys."""
        state = self.services.state
        group = state.group
        return (
            [run_entry(group, key, state) for key in keys if key in group.cases] if group is not None else []
        )

    def list_suites(self) -> Iterable[Suite]:
        """Formats for the lines of suites; problems of the files belong to the Suites screen."""
        return ()

    def pointer_of(self, entry: CaseRow) -> CasePointer:
        """The case in this run; the attempt is the first that did not pass."""
        group = self.services.state.group
        best = group.telling(entry.key) if group is not None else None
        return CasePointer(
            entry.case_id,
            entry.agent or None,
            entry.model or None,
            best.run.info.id if best is not None else entry.run_id or None,
            best.row.id if best is not None else None,
        )

    # -- news

    def _load(self) -> None:
        run = self.services.state.run
        self.streams.follow_run(run)
        self.case_list.empty = (
            ["Starting."]
            if run is None and self.services.runs.starting
            else ["No run yet.", "a runs all cases; U goes to the suites, H to earlier runs."]
            if run is None
            else ["Nothing matches the filter.", "F clears it, f changes it."]
        )
        self.streams.empty = ["Waiting for the first words."] if run is not None else []
        group = self.services.state.group
        root = group.root if group is not None else ""
        fresh = run is not None and root != self._root and not self._entries.keys() & (group or EMPTY).cases
        self._root = root
        self._shown_run = run.info.id if run is not None else ""
        self._dirty.clear()
        self._layout_for_state()
        if fresh:
            self.case_list.marks = set()
            self.case_list.touched = False
            self.view.held.clear()
            self.case_list.show_cursor(0)
        self.remake()
        self.assign()

    def prepare(self) -> bool:
        """Where the person has not moved the cursor, it stays at the top, where failures float to."""
        super().prepare()
        return self.case_list.touched

    def _layout_for_state(self) -> None:
        run = self.services.state.run
        ended = run is not None and not run.active
        self.set_class(ended, "-ended")
        if ended and not self.case_list.display:
            self.set_class(False, "-streams")
            self.set_class(False, "-zoomed")
            self.case_list.focus()
        self.query_one(KeyHints).show(self.hints())

    @on(RunChanged)
    def _run_changed(self, event: RunChanged) -> None:
        run, group = self.services.state.run, self.services.state.group
        if run is None or group is None or run.info.id != self._shown_run:
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
            if len(group.cases) != len(self._entries):
                self.remake()
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
            self._dirty.update(key for key, entry in self._entries.items() if entry.case_id in changed)
            if self._flush_timer is None:
                self._flush()
            return
        if any(entry.case is None for entry in self._entries.values()):
            self.remake()

    @on(LiveText)
    def _live_text(self, event: LiveText) -> None:
        if self.streams.display and not event.run_id:
            self.streams.flush(event.attempts)

    def _flush(self, final: bool = False) -> None:
        """Redraw the lines of cases that changed; then wait as long as they cost."""
        self._flush_timer = None
        state = self.services.state
        group = state.group
        if group is None:
            return
        keys, self._dirty = self._dirty, set()
        moved = self.replace_entries(self.entries_of(keys))
        cases = self.case_list
        in_sight = sum(
            line.entry is not None and line.key in keys
            for line in cases.cases.lines[cases.top : cases.top + cases.size.height]
        )
        self._token = state.token
        if final:
            self.rearrange()
            self._show_facts()
            return
        if moved and self._order_timer is None:
            wait = max(0.0, self._order_at + REORDER - now())
            self._order_timer = self.set_timer(max(0.01, wait), self._reorder)
        self._show_facts()
        pause = max(FLUSH, in_sight / LINES_A_SECOND)
        self._flush_timer = self.set_timer(pause, self._flush_again)

    def _flush_again(self) -> None:
        self._flush_timer = None
        if self._dirty:
            self._flush()

    def _reorder(self) -> None:
        """Let failures float up, not too often."""
        self._order_timer = None
        self._order_at = now()
        self.rearrange()

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
        if self._shown_run and not self.up_to_date():
            self._load()

    def rebuilt(self) -> None:
        """The facts, and of a run that has ended what is under the cursor."""
        self._show_facts()
        self.show_detail()

    def _show_facts(self) -> None:
        services = self.services
        run = services.state.run
        bar = self.query_one(FactsBar)
        if run is None:
            bar.show([("title", "no run yet")], [])
            return
        width = self.size.width
        first: list[tuple[str, str]] = []
        marks = len(self.case_list.marks)
        if marks:
            first.append(("key", f"{marks:,} marked  "))
        if self.filter_error:
            first.append(("bad", f"{visible(self.filter_error, newlines=False)}  "))
        if self.expression:
            shown = len(self.shown_entries())
            first.append(("key", f"filter: {visible(self.expression, newlines=False)} "))
            first.append(("dim", f"({shown:,} shown, F clears)  "))
        used = sum(cell_len(text) for _, text in first)
        second = [*first, *figures_line(run, services.symbols, now(), max(20, width - 2 - used))]
        group = services.state.group
        whole = None
        if group is not None and len(group.runs) > 1:
            whole = Counter(entry.status for entry in self._entries.values())
        bar.show(progress_line(run, services.symbols, width - 2, whole), second)

    # -- keys

    @on(CaseList.Opened)
    def _opened(self, event: CaseList.Opened) -> None:
        event.stop()
        if event.line.entry is not None:
            self.services.places.open_case(self.pointer_of(event.line.entry))
