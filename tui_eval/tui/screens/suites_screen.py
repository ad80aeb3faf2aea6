"""Suites: where the app opens. The tree of cases at the left, what is under the cursor at the right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.timer import Timer

from tui_eval.model import Problem, Suite
from tui_eval.tui.keys import Key
from tui_eval.tui.messages import RunChanged, SuitesChanged
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.list_place import ListPlace
from tui_eval.tui.screens.place import keys_in, keys_of, labelled
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.entries import suite_entries, suite_entry
from tui_eval.tui.state.lists.suites_facts import SuitesFacts, facts_line
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.case_list import CaseList
from tui_eval.tui.widgets.lines_pane import LinesPane

FLUSH = 0.5
"""Seconds between two redraws while a run goes on."""

BEGINNING = keys_of("list.open", "help", "quit")


class SuitesScreen(ListPlace):
    """Folders, suites and cases with their last outcome."""

    TITLE = "Suites"
    kind = "suites"
    KEY_SECTIONS = (
        ("Moving", keys_in("moving")),
        ("The list", keys_in("list", "screen")),
    )
    DEFAULT_CSS = """
    SuitesScreen .body { height: 1fr; }
    SuitesScreen.-wide CaseList { width: 55%; padding-right: 1; }
    SuitesScreen.-wide LinesPane { width: 45%; background: $surface; }
    SuitesScreen.-narrow LinesPane { display: none; }
    SuitesScreen.-narrow.-detail LinesPane { display: block; }
    SuitesScreen.-narrow.-detail CaseList { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._dirty: set[str] = set()
        self._flush_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Facts, list, detail, keys."""
        services = self.services
        yield FactsBar()
        with Horizontal(classes="body"):
            yield CaseList("suites", services.symbols)
            yield LinesPane()
        yield KeyHints(self.hints())

    def on_mount(self) -> None:
        """Show what is known already."""
        self.case_list.focus()
        self.set_interval(1.0, self._tick)
        self.rebuild()

    def hints(self) -> Sequence[Key]:
        """Seven keys for a start; where there is nothing yet, how to begin."""
        state = self.services.state
        if not state.rows and not state.loading and not any(suite.problems for suite in state.suites):
            return labelled(BEGINNING, "list.open", "begin")
        if self.is_mounted and self.query_one(LinesPane).has_focus:
            ids = ("pane.next", "case.rerun", "failure.next", "case.edit", "help", "quit")
            return labelled(keys_of(*ids), "pane.next", "list")
        return keys_of("list.open", "case.rerun", "run.all", "failure.next", "list.filter", "help", "quit")

    def on_descendant_focus(self) -> None:
        """Other keys in the detail than in the list."""
        self.query_one(KeyHints).show(self.hints())

    def case_count(self) -> int:
        """One for each case of the suites."""
        return len(self.services.state.rows)

    def entry_maker(self) -> Callable[[], list[CaseRow]]:
        """From the suites and their past."""
        return partial(suite_entries, self.services.state)

    def entries_of(self, keys: Iterable[str]) -> Iterable[CaseRow]:
        """The cases of these ids."""
        state = self.services.state
        return [suite_entry(state.by_id[key], state) for key in keys if key in state.by_id]

    def list_suites(self) -> Iterable[Suite]:
        """All suites, and the configuration where something is wrong in it."""
        state = self.services.state
        by_file: dict[str, list[Problem]] = {}
        for problem in state.problems:
            by_file.setdefault(problem.path, []).append(problem)
        known = {suite.path for suite in state.suites}
        files = [
            Suite(path=path, format="", name=path, problems=sorted(problems, key=lambda one: one.line))  # type: ignore[arg-type]
            for path, problems in by_file.items()
            if path not in known
        ]
        return [*files, *state.suites] if files else state.suites

    def pointer_of(self, entry: CaseRow) -> CasePointer:
        """The case in the run that made its outcome, in the column that stands for it."""
        state = self.services.state
        if entry.run_id:
            return CasePointer(entry.case_id, entry.agent or None, entry.model or None, entry.run_id)
        item = state.by_id.get(entry.case_id)
        last = item.last_of(entry.agent, entry.model) if item else None
        if last is None:
            return CasePointer(entry.case_id, entry.agent or None, entry.model or None)
        return CasePointer(entry.case_id, last.agent, last.model, last.run_id)

    # -- news

    @on(SuitesChanged)
    def _suites_changed(self, event: SuitesChanged) -> None:
        if event.case_ids is None or not self._entries:
            self.remake()
            return
        self._dirty.update(event.case_ids)
        self._flush()

    @on(RunChanged)
    def _run_changed(self, event: RunChanged) -> None:
        state = self.services.state
        group = state.group
        if event.opened or (group is None and not event.run_id):
            self._dirty.clear()
            self.remake()
            return
        run = state.find_run(event.run_id) if event.run_id else state.run
        if run is not None:
            self._dirty.update(
                run.cases[row.case_ref].case_id for row in event.changed if row.case_ref in run.cases
            )
        if self._flush_timer is None:
            self._flush_timer = self.set_timer(FLUSH, self._flush)

    def _flush(self) -> None:
        """Redraw the lines of cases that changed."""
        self._flush_timer = None
        ids, self._dirty = self._dirty, set()
        moved = self.replace_entries(self.entries_of(ids))
        self._token = self.services.state.token
        if moved:
            self.rearrange()
        else:
            self.rebuilt()

    def _tick(self) -> None:
        """Once a second while cases run: their clocks."""
        group = self.services.state.group
        active = (group is not None and group.active) or self.services.state.aside.active
        if self.is_current and active and self.case_list.display:
            self.case_list.tick()

    def on_screen_resume(self) -> None:
        """What happened meanwhile."""
        if (self._entries or self.services.state.rows) and not self.up_to_date():
            self.remake()

    def rebuilt(self) -> None:
        """The line at the top, the empty list's words, the detail."""
        services = self.services
        state = services.state
        tree = self.case_list.cases
        bar = self.query_one(FactsBar)
        looked = SuitesFacts(self.expression, self.filter_error, len(self.case_list.marks), self.view.order)
        bar.show(facts_line(state, tree, services.symbols, looked, state.shown_root, self.size.width - 2))
        if self.expression:
            empty = ["Nothing matches the filter.", "F clears it, f changes it."]
        elif state.loading:
            empty = ["Reading suites."]
        else:
            empty = [
                "No suites here.",
                "tui-eval looks in this folder and below for:",
                "- StartToAgent: *.yaml with test_cases:",
                "- nao: tests/*.yaml with sql:",
                "- promptfoo: promptfooconfig.yaml (.json .js .py)",
                "- neuro-san: *.hocon with interactions",
                "enter writes a first suite here (as `tui-eval init` does), or brings the samples.",
            ]
        if self.case_list.empty != empty:
            self.case_list.empty = empty
            if not tree.lines:
                self.case_list.refresh()
        self.query_one(KeyHints).show(self.hints())
        self.show_detail()

    # -- the right side

    @on(CaseList.Opened)
    async def _opened(self, event: CaseList.Opened) -> None:
        event.stop()
        if event.line.entry is not None:
            self.services.places.open_case(self.pointer_of(event.line.entry))
        elif event.line.problem is not None:
            await self.services.do("case.edit")
        else:
            self.set_class(True, "-detail")
            self.show_detail()
            self.query_one(LinesPane).focus()

    @on(CaseList.Nothing)
    def _nothing(self, event: CaseList.Nothing) -> None:
        """Enter where there is nothing at all: begin."""
        event.stop()
        if not self.case_list.cases.lines and not self.services.state.loading and not self.expression:
            self.services.suites.first()

    def action_pane(self, step: int) -> None:
        """To the other side; on a narrow screen, one side at a time."""
        pane = self.query_one(LinesPane)
        to_detail = self.case_list.has_focus
        self.set_class(to_detail, "-detail")
        (pane if to_detail else self.case_list).focus()
        self.call_after_refresh(self.show_detail)

    def back(self) -> bool:
        """From the detail to the list first."""
        if self.query_one(LinesPane).has_focus:
            self.action_pane(-1)
            return True
        return super().back()
