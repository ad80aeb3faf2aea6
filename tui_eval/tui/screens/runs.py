"""Runs: every run of the project, what became of it, its figures over time, how its attempts failed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widgets import Input

from tui_eval.store.runs import Store
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.keys import Key, bindings
from tui_eval.tui.keys_runs import OPEN_KEYS, RUNS_KEYS
from tui_eval.tui.messages import RunChanged
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.runs_loader import delete, load_facts, load_runs
from tui_eval.tui.screens.list_place import now
from tui_eval.tui.screens.place import keys_in, keys_of
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.screens.run_naming import RunNaming
from tui_eval.tui.screens.search import SearchScreen
from tui_eval.tui.state.lines import fit, one_line
from tui_eval.tui.state.runs_view import (
    DetailRow,
    RunFacts,
    RunLine,
    detail_rows,
    holds,
    points,
    row_line,
    titles,
)
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.line_label import LineLabel
from tui_eval.tui.widgets.line_pane import LinePane
from tui_eval.tui.widgets.plot import figures, plot_lines
from tui_eval.tui.widgets.run_table import RowTable

REST = 0.15
"""Seconds the cursor rests before a run's figures are read."""
AGAIN = 3.0
"""Seconds between two looks at the list while a run goes on anywhere."""


class RunsScreen(RunNaming, inherit_bindings=False):
    """The list at the left, the run under the cursor at the right; one at a time on a narrow screen."""

    TITLE = "Runs"
    BINDINGS: ClassVar = bindings("runs", RUNS_KEYS)
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    KEY_SECTIONS = (
        ("Runs", (*OPEN_KEYS, *RUNS_KEYS)),
        ("Moving", keys_in("moving")),
    )
    DEFAULT_CSS = """
    RunsScreen .body { height: 1fr; }
    RunsScreen .list { width: 56%; }
    RunsScreen .detail { width: 44%; background: $surface; padding: 0 1; }
    RunsScreen.-narrow .list { width: 100%; }
    RunsScreen.-narrow .detail { display: none; width: 100%; }
    RunsScreen.-narrow.-detail .detail { display: block; }
    RunsScreen.-narrow.-detail .list { display: none; }
    RunsScreen.-plots .list { display: none; }
    RunsScreen.-plots .detail { display: block; width: 100%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[RunLine] = []
        self.marks: dict[str, None] = {}
        self.whole_only = False
        self.figure = ""
        self.filter = ""
        self._facts: dict[str, RunFacts] = {}
        self._reading = ""
        self._rest: Timer | None = None
        self._again: Timer | None = None
        self._loaded_once = False
        self._list = RowTable(
            lambda row, width: row_line(row, width, now(), self.marks),
            lambda row: row.run.id,
            empty="Reading the runs.",
            classes="runs",
        )
        self._detail = RowTable(lambda row, width: fit(row.line, width), classes="detail")

    def compose(self) -> ComposeResult:
        """Facts, list, detail, keys."""
        yield FactsBar()
        with Horizontal(classes="body"):
            with Vertical(classes="list"):
                yield LineLabel(classes="titles")
                yield self._list
            yield self._detail
        yield KeyHints(self.hints())

    def on_mount(self) -> None:
        """Read the list."""
        self._list.focus()
        self.load(asked=True)

    def hints(self) -> Sequence[Key]:
        """Seven keys of this place."""
        own = {key.id: key for key in RUNS_KEYS}
        if self.has_class("-plots"):
            return [own["runs.figure"], own["runs.plots"], *keys_of("back", "help", "quit")]
        return [
            *keys_of("list.open"),
            *(own[name] for name in ("runs.search", "runs.mark")),
            *keys_of("compare"),
            own["runs.plots"],
            *keys_of("help", "quit"),
        ]

    # -- what is shown

    @property
    def chosen(self) -> RunLine | None:
        """The run under the cursor."""
        return self._list.current

    def load(self, asked: bool = False) -> None:
        """Read the list (again); `asked`: what is typed next means the new list."""
        if self._again is not None:
            self._again.stop()
            self._again = None
        work = partial(load_runs, self.eval_app.state.root)
        run_in_thread(self.app, work, self._loaded, name="runs", opens=asked)

    def _loaded(self, lines: list[RunLine]) -> None:
        if not self.has(".titles", FactsBar):
            return
        changed = [one.run.id for one in lines if one.run.id in self._facts and one not in self.lines]
        for run_id in changed:
            del self._facts[run_id]
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

    def _show(self) -> None:
        self._list.empty = (
            "No run yet: a in the suites (U) starts one." if self._loaded_once else self._list.empty
        )
        shown = [one for one in self.lines if not (self.whole_only and one.run.linked_to)]
        shown = [one for one in shown if holds(one, self.filter)]
        if self.lines and not shown:
            self._list.empty = "No run is so: F clears the filter, i shows linked runs too."
        self._list.set_rows(shown)
        if not shown:
            self._list.relayout()
        self.query_one(".titles", LineLabel).set_lines([titles(self.size.width)])
        self._bar()
        self._show_detail()

    def _bar(self) -> None:
        active = sum(one.active for one in self.lines)
        cut_off = sum(one.run.state == "interrupted" for one in self.lines)
        parts = [("title", "Runs"), ("dim", f"  {len(self.lines):,}")]
        if active:
            parts.append(("running", f"  {active} going on"))
        if cut_off:
            parts.append(("warn", f"  {cut_off} interrupted (u goes on)"))
        if self.naming_words:
            parts.append(("running", f"  {self.naming_words}"))
        if self.whole_only:
            parts.append(("dim", "  whole runs only (i shows all)"))
        if self.filter:
            shown = f"  filter: {one_line(self.filter)} ({len(self._list.rows):,})"
            parts.append(("warn", shown))
        if self.marks:
            words = "c compares them" if len(self.marks) == 2 else "c compares"
            parts.append(("key", f"  {len(self.marks)} marked, {words}"))
        self.query_one(FactsBar).show(parts)

    def _show_detail(self) -> None:
        one = self.chosen
        if not self._detail.display:
            return
        width = self._detail.text_width
        if one is None:
            self._detail.set_rows([], keep=False)
            return
        trend = points(self._list.rows if self.filter else self.lines)
        if self.has_class("-plots"):
            height = max(self._detail.size.height, 8)
            unicode = self.eval_app.symbols.unicode
            lines = plot_lines(trend, width, height, one.run.id, only=self.figure, unicode=unicode)
            self._detail.set_rows([DetailRow(line) for line in lines])
            return
        facts = self._facts.get(one.run.id)
        height = 2 if self.size.height >= 30 else 1
        rows = detail_rows(one, facts, trend, width, height=height, ours=self._ours())
        self._detail.set_rows(rows, keep=self._detail.has_focus)
        if facts is None and self._reading != one.run.id:
            self._read(one.run.id)

    def _read(self, run_id: str) -> None:
        self._reading = run_id

        def take(facts: RunFacts) -> None:
            self._facts[run_id] = facts
            if self._reading == run_id:
                self._reading = ""
            if self.has(".titles"):
                self._show_detail()

        run_in_thread(self.app, partial(load_facts, self._folder(run_id)), take, name="facts")

    def _folder(self, run_id: str):
        return Store(self.eval_app.state.root).runs_folder / run_id

    def folder_of(self, run_id: str) -> Path:
        """Where a run is kept."""
        return self._folder(run_id)

    def naming_changed(self, run_id: str = "") -> None:
        """How far the judge is, or the names it gave."""
        self._facts.pop(run_id, None)
        if self.has(".titles", FactsBar):
            self._bar()
            if run_id:
                self._show_detail()

    def _ours(self) -> set[str]:
        app = self.eval_app
        group = app.state.group
        runs = group.active if group is not None else []
        return {run.info.id for run in runs if run.info.id not in app.out_of_reach}

    def on_resize(self) -> None:
        """Titles and figures depend on the width."""
        if self._loaded_once:
            self.call_after_refresh(self._show)

    @on(LinePane.Moved)
    def _moved(self, event: LinePane.Moved) -> None:
        event.stop()
        if event.pane is not self._list:
            return
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST, self._show_detail)

    # -- keys

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        event.stop()
        one = self.chosen
        if one is None:
            return
        if event.pane is self._list:
            self.eval_app.open_run(self._folder(one.run.id))
            return
        row = self._detail.current
        if row is not None and row.example is not None:
            example = row.example
            self.eval_app.open_case(
                CasePointer(example.case_id, run_id=one.run.id, attempt_ref=example.attempt_ref)
            )

    def action_pane(self) -> None:
        """To the other side; on a narrow screen, one at a time."""
        to_detail = self._list.has_focus
        self.set_class(False, "-plots")
        self.query_one(KeyHints).show(self.hints())
        self.set_class(to_detail, "-detail")
        self.call_after_refresh(self._focus, self._detail if to_detail else self._list)

    def _focus(self, pane: RowTable) -> None:
        pane.focus()
        self._show_detail()

    def action_plots(self) -> None:
        """The plots alone, large, or the list again."""
        large = not self.has_class("-plots")
        self.set_class(large, "-plots")
        self.set_class(False, "-detail")
        self.query_one(KeyHints).show(self.hints())
        self.call_after_refresh(self._focus, self._detail if large else self._list)

    def action_figure(self, step: int) -> None:
        """In the plots: the next figure alone, or all of them again."""
        if not self.has_class("-plots"):
            self.eval_app.say("v shows the plots; > < then take one of them alone")
            return
        names = ["", *figures(points(self._list.rows if self.filter else self.lines))]
        at = names.index(self.figure) if self.figure in names else 0
        self.figure = names[(at + step) % len(names)]
        self._show_detail()

    def action_linked(self) -> None:
        """With or without the runs that add to others."""
        self.whole_only = not self.whole_only
        self._show()

    def action_mark(self) -> None:
        """Mark the run, or not; of three the oldest mark goes."""
        one = self.chosen
        if one is None:
            return
        if one.run.id in self.marks:
            del self.marks[one.run.id]
        else:
            self.marks[one.run.id] = None
            if self._list.cursor + 1 < len(self._list.rows):
                self._list.refresh_row(self._list.cursor)
                self._list.move_to(self._list.cursor + 1)
        self._list.refresh_row(self._list.cursor)
        self._bar()

    async def action_search(self) -> None:
        """Ask for words to find in the run's transcripts."""
        if self.chosen is not None:
            await self._ask("search transcripts", "", "words that an entry holds; enter searches")

    async def action_filter(self) -> None:
        """Ask for words that the runs shown must hold."""
        await self._ask("filter", self.filter, "words of what, agent, state or id")

    def action_clear_filter(self) -> None:
        """Every run again."""
        self._filter_by("")

    async def _ask(self, purpose: str, text: str, hint: str) -> None:
        """Ends when the prompt has the focus: keys typed ahead belong to it (see `typing_ahead`)."""
        if not self.query(Prompt):
            prompt = Prompt(purpose, text, hint)
            await self.mount(prompt)
            self.set_focus(prompt.query_one(Input), scroll_visible=False)

    def _filter_by(self, text: str) -> None:
        self.filter = text.strip()
        self._show()

    @on(Prompt.Typed)
    def _typed(self, event: Prompt.Typed) -> None:
        event.stop()
        if event.purpose == "filter":
            self._filter_by(event.text)

    @on(Prompt.Left)
    def _asked(self, event: Prompt.Left) -> None:
        event.stop()
        for prompt in self.query(Prompt):
            prompt.remove()
        self._list.focus()
        if event.purpose == "filter":
            self._filter_by(event.text if event.kept else "")
            return
        one = self.chosen
        if event.kept and event.text.strip() and one is not None:
            self.app.push_screen(SearchScreen(self._folder(one.run.id), event.text.strip()))

    def action_take_up(self) -> None:
        """Go on with an interrupted run."""
        one = self.chosen
        if one is None or one.run.state not in ("interrupted", "cancelled"):
            self.eval_app.say("only an interrupted or cancelled run can go on")
        else:
            self.eval_app.take_up(self._folder(one.run.id))

    def action_delete(self) -> None:
        """Delete the run, or the marked ones, after asking."""
        one = self.chosen
        chosen = list(self.marks) or ([one.run.id] if one is not None else [])
        self._ask_delete([run for run in self.lines if run.run.id in chosen])

    def action_prune(self) -> None:
        """Delete this run and all older ones, after asking."""
        one = self.chosen
        if one is not None:
            self._ask_delete([run for run in self.lines if run.run.id <= one.run.id])

    def _ask_delete(self, doomed: list[RunLine]) -> None:
        doomed = [one for one in doomed if not one.active]
        if not doomed:
            self.eval_app.say("nothing to delete: a run that goes on stays")
            return
        ids = [one.run.id for one in doomed]
        many = f"these {len(ids):,} runs" if len(ids) > 1 else f"run {ids[0]}"
        details = [f"{one.run.id}  {one.run.what}"[:70] for one in doomed[:5]]
        details += [f"and {len(ids) - 5:,} more"] if len(ids) > 5 else []

        def answer(value: str | None) -> None:
            if value == "delete":
                work = partial(delete, self.eval_app.state.root, ids)
                run_in_thread(self.app, work, partial(self._deleted, len(ids)), name="delete", opens=True)

        self.eval_app.ask(
            f"Delete {many} for good?", [("y", "delete", "delete"), ("n", "no", "no")], answer, details
        )

    def _deleted(self, count: int, stayed: list[str]) -> None:
        for words in stayed:
            self.eval_app.problem(words)
        gone = count - len(stayed)
        self.eval_app.say(f"deleted {gone} run{'s' * (gone != 1)}")
        if stands(self):
            self.marks = {}
            self.load(asked=True)

    def compared(self) -> tuple[str, str] | None:
        """The two runs that `c` means, the older first: the marked ones, else the one marked and the one
        under the cursor, else this one and the one before it."""
        one = self.chosen
        chosen = list(self.marks)
        if one is not None and len(chosen) < 2 and one.run.id not in chosen:
            chosen.append(one.run.id)
        if len(chosen) == 1:
            rows = [line.run.id for line in self.lines if not line.run.linked_to]
            older = [run_id for run_id in rows if run_id < chosen[0]]
            chosen += older[:1]
        return (min(chosen[-2:]), max(chosen[-2:])) if len(chosen) >= 2 else None

    def back(self) -> bool:
        """Leave the prompt, the plots, the figures, the marks."""
        prompts = self.query(Prompt)
        if prompts:
            prompts.first().leave()
        elif self.has_class("-plots"):
            self.action_plots()
        elif self._detail.has_focus:
            self.action_pane()
        elif self.marks:
            self.marks = {}
            self._list.refresh()
            self._bar()
        elif self.filter:
            self._filter_by("")
        else:
            return False
        return True
