"""Runs: every run of the project, what became of it, its figures over time, how its attempts failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.timer import Timer

from tui_eval.case_names import full_name
from tui_eval.store.linked import MOST_LISTED
from tui_eval.store.run_folders import Store
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.front import RunChanged, RunsMeant, SuitesChanged
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import KEYS, PANE_KEYS, RUNS_KEYS, RUNS_OPEN_KEYS, Key, bindings
from tui_eval.tui.loaders.runs_loader import load_facts, load_runs
from tui_eval.tui.screens.attempt_beside import BREAKPOINTS, AttemptBelow, LookedAt
from tui_eval.tui.screens.list_place import now
from tui_eval.tui.screens.place import Place, keys_in, keys_of, labelled
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.screens.run_deletion import RunDeletion
from tui_eval.tui.screens.run_plots import RunPlots
from tui_eval.tui.state.app_state import CasePointer, Where
from tui_eval.tui.state.lists.run_line import (
    RunLine,
    RunName,
    Texts,
    begun_apart,
    holds,
    names_apart,
    row_line,
    titles,
    with_hidden,
)
from tui_eval.tui.state.runs.runs_view import (
    DetailRow,
    RunFacts,
    can_go_on,
    detail_rows,
    example_of,
    mode_line,
)
from tui_eval.tui.state.runs.search_view import HINT
from tui_eval.tui.state.text.lines import Line, fit, one_line, plain
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.line_pane import LineLabel, LinePane, RowTable
from tui_eval.tui.widgets.lines_pane import AttemptPane

REST = 0.15
"""Seconds the cursor rests before a run's figures are read."""
AGAIN = 3.0
"""Seconds between two looks at the list while a run goes on anywhere."""
FOOTER = (
    "list.open",
    "runs.resume",
    "runs.clear",
    "runs.search",
    "runs.mark",
    "compare",
    "runs.plots",
    "runs.filter",
    "help",
    "quit",
)
"""Keys of the footer, those that the person needs sooner first: as many as do something and have room."""
NO_RUN = labelled(keys_of("run.all", "place.suites", "help", "quit"), "place.suites", "suites")


class RunsScreen(Place, inherit_bindings=False):
    """The list at the left, the run under the cursor at the right with an attempt of it that failed; on a narrow
    screen that attempt below the list, or the run's figures alone."""

    TITLE = "Runs"
    kind = "runs"
    BINDINGS: ClassVar = [*bindings("runs", RUNS_KEYS), *bindings("screen", PANE_KEYS)]
    VERTICAL_BREAKPOINTS = BREAKPOINTS
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    KEY_SECTIONS = (
        ("Runs", (*RUNS_OPEN_KEYS, *RUNS_KEYS, *PANE_KEYS)),
        ("Moving", keys_in("moving")),
    )
    DEFAULT_CSS = """
    RunsScreen .body { height: 1fr; }
    RunsScreen .list { width: 56%; }
    RunsScreen .side { width: 44%; }
    RunsScreen .detail { height: 1fr; background: $surface; padding: 0 1; }
    RunsScreen.-narrow .body { layout: vertical; }
    RunsScreen.-narrow .list { width: 100%; height: 1fr; }
    RunsScreen.-narrow .side { width: 100%; height: 8; }
    RunsScreen.-narrow AttemptPane { height: 1fr; }
    RunsScreen.-narrow .detail { display: none; }
    RunsScreen.-narrow.-low .side { height: 5; }
    RunsScreen.-narrow.-low AttemptPane { display: block; }
    RunsScreen.-narrow.-roomy .side { height: 40%; }
    RunsScreen.-narrow.-large .side { height: 70%; }
    RunsScreen.-narrow.-hidden .side, RunsScreen.-narrow.-short .side { display: none; }
    RunsScreen.-narrow.-short.-large .side { display: block; }
    RunsScreen.-narrow.-short.-detail .side, RunsScreen.-narrow.-short.-plots .side { display: block; }
    RunsScreen.-narrow.-hidden.-detail .side, RunsScreen.-narrow.-hidden.-plots .side { display: block; }
    RunsScreen.-narrow.-detail .list, RunsScreen.-plots .list { display: none; }
    RunsScreen.-narrow.-detail .side, RunsScreen.-plots .side { display: block; width: 100%; height: 1fr; }
    RunsScreen.-narrow.-plots .side { height: 1fr; }
    RunsScreen.-narrow.-detail .detail, RunsScreen.-plots .detail { display: block; }
    RunsScreen.-narrow.-detail AttemptPane, RunsScreen.-plots AttemptPane { display: none; }
    RunsScreen.-narrow.-plots AttemptPane { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[RunLine] = []
        """Every run, newest first."""
        self.marks: dict[str, None] = {}
        """The ids of the marked runs, in the order in which they were marked."""
        self.filter = ""
        """Words that the runs shown hold."""
        self.whole_only = False
        self._names: dict[str, RunName] = {}
        """What the cases of runs are called beside each other."""
        self._texts: Texts = {}
        """What their lines say, as far as they have been made."""
        self._begun: tuple[int, dict[str, str]] = (0, {})
        self._priced = True
        """The width of the list, and when runs began that read the same there."""
        self.plots = RunPlots(self, self.services)
        self.below = AttemptBelow(self, self.services, self._looked_at)
        self._deletion = RunDeletion(self, self.services)
        self.facts: dict[str, RunFacts] = {}
        """Figures of runs, as far as they have been read."""
        self._reading = ""
        self._rest: Timer | None = None
        self._again: Timer | None = None
        self._generation = 0
        self._loaded_once = False
        self.table = RowTable(
            self._line,
            lambda row: row.run.id,
            empty="Reading the runs.",
            classes="runs",
        )
        self.detail = RowTable(lambda row, width: fit(row.line, width), classes="detail")

    def handlers(self) -> Mapping[str, Handler]:
        """What the keys of the plots and of deleting do."""
        return {
            **self.below.handlers(),
            **self.plots.handlers(),
            **self._deletion.handlers(),
            "runs.search": self._ask_search,
            "runs.mark": self._mark,
            "runs.resume": self._take_up,
            "runs.name": self._name_failures,
            "runs.plots": self._toggle_plots,
            "runs.filter": self._ask_filter,
            "runs.clear": self._clear_filter,
            "runs.linked": self._toggle_linked,
            "runs.pane": self._other_pane,
        }

    def compose(self) -> ComposeResult:
        """Facts, list, detail, keys."""
        yield FactsBar()
        with Horizontal(classes="body"):
            with Vertical(classes="list"):
                yield LineLabel(classes="titles")
                yield self.table
            with Vertical(classes="side"):
                yield self.detail
                yield AttemptPane()
        yield KeyHints(self.hints())

    def on_mount(self) -> None:
        """Read the list."""
        self.table.focus()
        self.load(asked=True)

    def hints(self) -> Sequence[Key]:
        """Seven keys of this place."""
        if self.large:
            keys = self._useful("runs.figure", "runs.alike", "runs.plots", "back", "help", "quit")
            return labelled(keys, "runs.plots", "list")
        if self._loaded_once and not self.lines:
            return NO_RUN if self.services.state.rows else NO_RUN[1:]
        if self.is_mounted and self.detail.has_focus:
            return labelled(self._useful("runs.pane", *FOOTER), "runs.pane", "list")
        return self._useful(*FOOTER)

    def _useful(self, *ids: str) -> list[Key]:
        """The keys of these ids, but for those that would do nothing to the run under the cursor."""
        table = {key.id: key for key in (*KEYS, *RUNS_KEYS)}
        one, idle = self.chosen, set[str]()
        if one is None:
            idle |= {"list.open", "runs.search", "runs.mark", "compare", "runs.plots"}
        if one is None or not can_go_on(one):
            idle.add("runs.resume")
        if one is not None and not self._has_other(one):
            idle.add("compare")
        if len(self.table.rows) < 2:
            idle.add("runs.mark")
        if not self.filter:
            idle.add("runs.clear")
        if self.is_mounted and self.detail.has_focus:
            row: DetailRow | None = self.detail.current
            idle |= {"runs.mark", *(["list.open"] if row is None or row.example is None else [])}
        if "runs.figure" in ids:
            idle |= self.plots.idle()
        return [table[name] for name in ids if name not in idle]

    def _has_other(self, one: RunLine) -> bool:
        """Whether there is something to compare a run with: another that is marked, one of the same suites before
        it, another agent in it."""
        earlier = any(other.run.id < one.run.id and other.places == one.places for other in self.lines)
        facts = self.facts.get(one.run.id)
        meet = facts is not None and facts.agents_meet
        return self.compared() is not None or meet or (earlier and not one.unread)

    def show_hints(self) -> None:
        """Let the footer name what does something now."""
        if self.has(KeyHints):
            self.query_one(KeyHints).show(self.hints())

    def on_descendant_focus(self) -> None:
        """Other keys in the figures than in the list."""
        self.show_hints()

    # -- what is shown

    def _line(self, one: RunLine, width: int) -> Line:
        if self._begun[0] != width:
            self._begun = width, begun_apart(self.table.rows, width, self._names, self._texts)
        begun = self._begun[1].get(one.run.id, "")
        name = self._names.get(one.run.id)
        return row_line(one, width, now(), self.marks, begun, name, priced=self._priced)

    @property
    def chosen(self) -> RunLine | None:
        """The run under the cursor."""
        return self.table.current

    def load(self, asked: bool = False) -> None:
        """Read the list (again); `asked`: what is typed next means the new list."""
        if self._again is not None:
            self._again.stop()
            self._again = None
        self._generation += 1
        work = partial(load_runs, self.services.state.root)
        run_in_thread(self.app, work, partial(self._loaded, self._generation), name="runs", opens=asked)

    def _loaded(self, generation: int, lines: list[RunLine]) -> None:
        # Of two readings under way at once the older may come last: it still has the runs deleted since.
        if generation == self._generation:
            self.show_runs(lines)

    def show_runs(self, lines: list[RunLine]) -> None:
        """Show the runs that were read, where the screen is still there."""
        if not self.has(".titles", FactsBar):
            return
        changed = [one.run.id for one in lines if one.run.id in self.facts and one not in self.lines]
        for run_id in changed:
            del self.facts[run_id]
        self._texts = self._texts if lines == self.lines else {}
        self.lines, self._loaded_once = lines, True
        self.marks = {run_id: None for run_id in self.marks if any(one.run.id == run_id for one in lines)}
        self._show()
        if any(one.active for one in lines) and self._again is None:
            self._again = self.set_timer(AGAIN, self._look_again)

    def _look_again(self) -> None:
        self._again = None
        if self.is_current:
            self.load()

    def on_screen_resume(self) -> None:
        """What happened meanwhile."""
        if self._loaded_once:
            self.load()

    @on(RunChanged)
    def _run_changed(self, event: RunChanged) -> None:
        if event.opened:
            self.load()

    @on(SuitesChanged)
    def _suites_changed(self, event: SuitesChanged) -> None:
        """What became of cases was read anew: there may be runs that others made."""
        if self._loaded_once:
            self.load()

    def _show(self) -> None:
        self.table.empty = (
            "No run yet: a runs all cases, U goes to the suites." if self._loaded_once else self.table.empty
        )
        shown = [one for one in self.lines if one.whole or not self.whole_only]
        if self.filter:
            begun, texts = begun_apart(shown, texts=self._texts), self._texts
            shown = [one for one in shown if holds(one, self.filter, begun.get(one.run.id, ""), texts)]
        shown = with_hidden(shown)
        if self.lines and not shown:
            held = "holds these words: F clears the filter" if self.filter else "is a whole one"
            self.table.empty = f"No run {held}{', i shows all runs' if self.whole_only else ''}."
        self._names, self._begun = names_apart(shown), (0, {})
        self._priced = any(one.run.cost is not None for one in shown)
        self.table.set_rows(shown)
        if not shown:
            self.table.relayout()
        self.query_one(".titles", LineLabel).set_lines(
            [titles(self.size.width, priced=self._priced) if shown else ()]
        )
        self._bar()
        self._show_detail()

    def _bar(self) -> None:
        active = sum(one.active for one in self.lines)
        cut_off = sum(one.run.state == "interrupted" for one in self.lines)
        unread = Counter(one.run.state for one in self.lines if one.unread)
        newest = "the newest " * (len(self.lines) >= MOST_LISTED)  # others are left in the store
        parts = [("title", "Runs"), ("dim", f"  {newest}{len(self.lines) - unread.total():,}")]
        if self.marks:
            words = "c compares them" if len(self.marks) == 2 else "c compares"
            parts.append(("key", f"  {len(self.marks)} marked, {words}"))
        if active:
            parts.append(("running", f"  {active} going on"))
        if cut_off:
            parts.append(("warn", f"  {cut_off} interrupted (u goes on)"))
        for state, count in unread.items():
            parts.append(("bad", f"  {count} {state}"))
        if self.services.runs.naming.words:
            parts.append(("running", f"  {self.services.runs.naming.words}"))
        if self.whole_only:
            parts.append(("dim", "  whole runs only (i shows all)"))
        if self.filter:
            shown = f"  filter: {one_line(self.filter)} ({len(self.table.rows):,})"
            parts.append(("warn", shown))
        self.query_one(FactsBar).show(parts)

    def _show_detail(self) -> None:
        self.show_hints()
        one = self.chosen
        if not self.has("AttemptPane") or not (self.detail.display or self.below.seen):
            return
        self.below.show()
        width = self.detail.text_width
        if one is None:
            self.detail.set_rows([], keep=False)
            return
        if self.large:
            lines = self.plots.large(width, max(self.detail.size.height, 8))
            self.detail.set_rows([DetailRow(line) for line in lines], keep=False)
            return
        facts = self.facts.get(one.run.id)
        height = 2 if self.size.height >= 30 else 1
        trend, same = self.plots.trend()
        rows = detail_rows(one, facts, trend, width, height=height, ours=self._ours(), same=same)
        self.detail.set_rows(rows, keep=self.detail.has_focus)
        if facts is None and not one.unread and self._reading != one.run.id:
            self._read(one.run.id)

    def _read(self, run_id: str) -> None:
        self._reading = run_id
        line = self._line_of(run_id)

        def take(facts: RunFacts) -> None:
            if self._reading == run_id:
                self._reading = ""
            if self._line_of(run_id) == line:  # else it went on meanwhile: its figures are read anew
                self.facts[run_id] = facts
            if self.has(".titles"):
                self._show_detail()
                self.show_hints()

        def failed(error: Exception) -> None:
            take(RunFacts(problem=str(error)))
            self.services.notices.failed(error)

        run_in_thread(self.app, partial(load_facts, self.folder_of(run_id)), take, failed, name="facts")

    def _line_of(self, run_id: str) -> RunLine | None:
        return next((one for one in self.lines if one.run.id == run_id), None)

    def folder_of(self, run_id: str) -> Path:
        """Where a run is kept."""
        return Store(self.services.state.root).folder_of(run_id)

    def naming_changed(self, run_id: str = "") -> None:
        """How far the judge is, or the names it gave."""
        self.facts.pop(run_id, None)
        if self.has(".titles", FactsBar):
            self._bar()
            if run_id:
                self._show_detail()

    def _ours(self) -> set[str]:
        services = self.services
        return {
            run.info.id for run in services.state.active if run.info.id not in services.engines.out_of_reach
        }

    def on_resize(self) -> None:
        """Titles and figures depend on the width."""
        if self._loaded_once:
            self.call_after_refresh(self._show)

    @on(LinePane.Moved)
    def _moved(self, event: LinePane.Moved) -> None:
        event.stop()
        if event.pane is not self.table:
            self.below.moved()
            self.show_hints()
            return
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST, self._show_detail)

    # -- an attempt that failed

    def _looked_at(self) -> LookedAt | None:
        """An example of the failures under the cursor in the figures, else of the most frequent."""
        one = self.chosen
        if one is None:
            return None
        facts = self.facts.get(one.run.id)
        row: DetailRow | None = self.detail.current if self.detail.has_focus else None
        found = example_of(facts, row.example if row is not None else None)
        if found is None:
            rows = detail_rows(one, facts, (), max(self.size.width - 4, 20), ours=self._ours())
            said = [("text", plain(row.line)) for row in rows] if not self.detail.display else []
            nothing = "no attempt that failed" if facts is not None else "reading the run"
            return LookedAt(one.run.id, [], otherwise=said or [("dim", nothing)])
        mode, example = found
        state = self.services.state
        item = state.by_id.get(example.case_id)
        names = facts.names if facts is not None else {}
        recorded = names.get((example.case_id, example.agent), "")
        name = recorded or state.called.get(example.case_id) or example.case_id.partition("::")[2]
        variant = item.variant(example.agent or None) if item is not None else ""
        if item is not None:
            name = full_name(item.name, variant)
        own = item.case.column_name if item is not None and item.case is not None else ""
        said = own and variant.startswith(own) if item is not None else example.agent in recorded
        if ", " in one.run.agents and not said:
            name = f"{name} {example.agent}".rstrip()
        pointer = CasePointer(example.case_id, run_id=one.run.id, attempt_ref=example.attempt_ref)
        head = [("bad", plain(mode_line(mode, 200)).strip()), ("title", one_line(name))]
        place = Where(pointer, self.folder_of(one.run.id), None, item.case if item is not None else None)
        return LookedAt(pointer, [("", place)], head)

    # -- keys

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        event.stop()
        one = self.chosen
        if one is None:
            return
        if one.unread:
            self.services.notices.problem(one.run.what)
            return
        if event.pane is self.table:
            self.services.runs.open(self.folder_of(one.run.id))
            return
        row = self.detail.current
        if row is not None and row.example is not None:
            example = row.example
            self.services.places.open_case(
                CasePointer(example.case_id, run_id=one.run.id, attempt_ref=example.attempt_ref)
            )

    def _other_pane(self) -> None:
        """To the other side; on a narrow screen, one at a time."""
        to_detail = self.table.has_focus
        self.set_class(False, "-plots")
        self.set_class(to_detail, "-detail")
        self.call_after_refresh(self._focus, self.detail if to_detail else self.table)

    def _focus(self, pane: RowTable) -> None:
        pane.focus()
        self._show_detail()

    # -- the plots

    @property
    def large(self) -> bool:
        """Whether the plots stand alone."""
        return self.has_class("-plots")

    def plotted(self) -> Sequence[RunLine]:
        """Those the filter lets through, else all."""
        return self.table.rows if self.filter else self.lines

    def show_plots(self) -> None:
        """They stand in the detail."""
        self._show_detail()

    def _toggle_plots(self) -> None:
        """The plots alone, large, or the list again."""
        large = not self.large
        self.set_class(large, "-plots")
        self.set_class(False, "-detail")
        self.show_hints()
        self.call_after_refresh(self._focus, self.detail if large else self.table)

    # -- what is asked

    def focus_home(self) -> None:
        """The list, in sight; where the plots stand alone, these."""
        if self.large:
            self.detail.focus()
            return
        self.set_class(False, "-detail")
        self.table.focus()

    async def _ask_search(self) -> None:
        """Ask for words to find in the run's transcripts."""
        if self.chosen is not None:
            prompt = Prompt("search transcripts", "", HINT)
            await self.prompts.ask(prompt, self._search)

    def _search(self, text: str, kept: bool) -> None:
        one = self.chosen
        if kept and text.strip() and one is not None:
            self.services.places.show("search", self.folder_of(one.run.id), text.strip())

    async def _ask_filter(self) -> None:
        """Ask for words that the runs shown must hold."""
        prompt = Prompt("filter", self.filter, "words of what, agent, state or id")
        await self.prompts.ask(
            prompt, lambda text, kept: self.filter_by(text if kept else ""), self.filter_by
        )

    def _clear_filter(self) -> None:
        """Every run again."""
        self.filter_by("")

    def filter_by(self, text: str) -> None:
        """Show only runs that hold these words."""
        self.filter = text.strip()
        self._show()

    def deleted(self) -> None:
        """The marks went with the runs."""
        if stands(self):
            self.marks = {}
            self.load(asked=True)

    # -- keys of the list

    def _toggle_linked(self) -> None:
        """With or without the runs that add to others."""
        self.whole_only = not self.whole_only
        self._show()

    def _mark(self) -> None:
        """Mark the run, or not; of three the oldest mark goes."""
        one = self.chosen
        if one is None:
            return
        if one.run.id in self.marks:
            del self.marks[one.run.id]
        else:
            self.marks[one.run.id] = None
            if self.table.cursor + 1 < len(self.table.rows):
                self.table.refresh_row(self.table.cursor)
                self.table.move_to(self.table.cursor + 1)
        self.table.refresh_row(self.table.cursor)
        self._bar()
        self.show_hints()

    def _take_up(self) -> None:
        """Go on with an interrupted run."""
        one = self.chosen
        if one is None or not can_go_on(one):
            self.services.notices.say("only a run of which not all has run can go on")
        else:
            self.services.runs.take_up(self.folder_of(one.run.id))

    def _name_failures(self) -> None:
        """The judge says in a sentence each how the attempts failed; stop where it goes on."""
        one, services = self.chosen, self.services
        naming = services.runs.naming
        if naming.run_id:
            naming.stop()
        elif one is not None and one.active:
            services.notices.say("its failures can be named when it has ended")
        elif one is not None:
            services.tasks.soon(naming.begin(self.folder_of(one.run.id)), opens=True)

    def compared(self) -> tuple[str, str] | None:
        """The two runs that `c` means, the older first: the marked ones, else the one marked and the one
        under the cursor; None where that is the one under the cursor alone."""
        one = self.chosen
        chosen = list(self.marks)
        if one is not None and len(chosen) < 2 and one.run.id not in chosen:
            chosen.append(one.run.id)
        return (min(chosen[-2:]), max(chosen[-2:])) if len(chosen) >= 2 else None

    def runs_meant(self) -> RunsMeant:
        """The two runs that `c` means, else the one under the cursor."""
        one = self.chosen
        return RunsMeant(
            self.compared(), one.run.id if one is not None else "", one is not None and one.active
        )

    def unmark(self) -> None:
        """No run is marked any more."""
        self.marks = {}
        self.table.refresh()
        self._bar()

    def back(self) -> bool:
        """Leave the prompt, the plots, the figures, the marks."""
        if super().back():
            return True
        if self.large:
            self._toggle_plots()
        elif self.detail.has_focus:
            self._other_pane()
        elif self.marks:
            self.unmark()
        elif self.filter:
            self.filter_by("")
        else:
            return False
        return True
