"""Suites: where the app opens. The tree of cases at the left, what is under the cursor at the right."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.timer import Timer

from tui_eval.formats import offered
from tui_eval.guard.text import clip, visible
from tui_eval.tui.front import RunChanged, SuitesChanged
from tui_eval.tui.keys import Key
from tui_eval.tui.screens.list_place import ListPlace, failed_here
from tui_eval.tui.screens.place import keys_in, keys_of, labelled
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.lists.case_sources import SuiteCases
from tui_eval.tui.state.lists.case_tree import Tree
from tui_eval.tui.state.runs.run_view import NOT_RUN
from tui_eval.tui.state.text.fitting import shorten
from tui_eval.tui.state.text.formatting import Symbols, cases_in_rows, outcomes
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.case_list import CaseList
from tui_eval.tui.widgets.lines_pane import LinesPane

Parts = list[tuple[str, str]]
COUNTED = (
    ("failed", "bad"),
    ("error", "warn"),
    ("retrying", "warn"),
    ("running", "running"),
    ("passed", "good"),
    ("cancelled", "dim"),
    ("waiting", "dim"),
    (NOT_RUN, "dim"),
    ("skipped", "dim"),
)


class SuitesFacts(Struct, frozen=True):
    """How the list is looked at: filter expression, what is wrong with it, how many cases are marked, the order where
    it is not that of the files, and whether its rows are being made anew."""

    expression: str = ""
    error: str = ""
    marks: int = 0
    order: str = ""
    making: bool = False


def facts_line(
    state: AppState, tree: Tree, symbols: Symbols, looked: SuitesFacts, root: str, width: int
) -> Parts:
    """What is here and how it stands. Where there is no room for everything, the folder goes first, then
    words that glyphs say too, then how many suites there are, then our name; what the person asked for stays."""
    if looked.error:
        return [("bad", visible(looked.error, newlines=False))]
    counts = tree.standing().counts
    parts: Parts = []
    fitting: Parts = []
    for words, folder, cases, name in ((1, 1, 1, 1), (0, 1, 1, 1), (0, 0, 1, 1), (0, 0, 0, 1), (0, 0, 0, 0)):
        parts = [("title", "tui-eval"), *([("dim", f"  {root}")] if folder else [])]
        parts += _asked(tree, looked, brief=not folder)
        parts += _read(state, tree, symbols, making=looked.making, brief=not cases)
        parts += [
            (
                style,
                f"  {symbols.glyphs[status]}{f' {outcomes(counts[status], status)}' if words else f'{counts[status]:,}'}",
            )
            for status, style in COUNTED
            if counts[status]
        ]
        if 0 < counts[""] < counts.total():
            parts.append(("dim", f"  {counts['']:,} never run"))
        if not name and len(parts) > 1:
            parts[:2] = [(parts[1][0], parts[1][1].lstrip())]
        room = width - sum(cell_len(text) for _, text in parts)
        if state.problems and room >= SAID:
            # Of no suite, so that it may be out of sight in the list.
            first = visible(clip(str(state.problems[0]), 400), newlines=False)
            parts.append(("bad", f"  {shorten(first, room - len(ALL_OF_THEM) - 2)}"))
            return [*parts, ("dim", ALL_OF_THEM)]
        if room >= 0 and not state.problems:
            return parts
        if room >= 0:
            fitting = fitting or parts
    return fitting or parts


SAID = 40
"""Cells from which on a problem of the configuration is said beside their number."""
ALL_OF_THEM = " (l: all)"


def _asked(tree: Tree, looked: SuitesFacts, *, brief: bool) -> Parts:
    """What the person asked the list for."""
    parts: Parts = []
    if looked.expression:
        parts.append(("key", f"  filter: {visible(looked.expression, newlines=False)}"))
        parts.append(
            ("dim", f" ({len(tree.shown):,})" if brief else f" ({len(tree.shown):,} shown, F clears)")
        )
    if looked.marks:
        parts.append(("key", f"  {looked.marks:,} marked"))
    if looked.order:
        parts.append(("key", f"  {looked.order}"))
    return parts


def _read(state: AppState, tree: Tree, symbols: Symbols, *, making: bool, brief: bool) -> Parts:
    """The suites that were read, and what is wrong with them."""
    parts: Parts = []
    files = sum(bool(suite.cases) for suite in state.suites)
    if (state.loading and not state.rows) or (making and not tree.total):
        parts.append(("dim", "  reading suites"))
    elif not brief:
        parts.append(
            (
                "text",
                f"  {files:,} suite{'s' * (files != 1)}{symbols.dot}{cases_in_rows(tree.total, tree.rows)}",
            )
        )
        if state.loading or making:
            parts.append(("dim", f"{symbols.dot}reading"))
    problems = sum(problem.level == "error" for suite in state.suites for problem in suite.problems)
    problems += len(state.problems)
    if problems:
        parts.append(("bad", f"  {problems} problem{'s' if problems > 1 else ''}"))
    return parts


FLUSH = 0.5
"""Seconds between two redraws while a run goes on."""

IN_LIST = (
    "list.open",
    "case.rerun",
    "list.clear",
    "run.all",
    "failure.next",
    "run.failed",
    "list.filter",
    "case.edit",
    "help",
    "quit",
)
"""Keys of the footer, those that the person needs sooner first: as many as do something and have room."""
AFTER_FAILURE = (
    "case.rerun",
    "case.edit",
    "failure.next",
    "run.failed",
    "list.clear",
    "run.all",
    "help",
    "quit",
)
"""The same where the cursor is on a case that failed: edit, and run it again."""
IN_DETAIL = ("list.open", "case.rerun", "failure.next", "case.edit", "help", "quit")

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
    SuitesScreen.-wide.-large CaseList { width: 30%; }
    SuitesScreen.-wide.-large LinesPane { width: 70%; }
    SuitesScreen.-hidden LinesPane { display: none; }
    SuitesScreen.-wide.-hidden CaseList { width: 100%; }
    SuitesScreen.-narrow .body { layout: vertical; }
    SuitesScreen.-narrow LinesPane { height: 8; border-top: solid $surface-lighten-2; }
    SuitesScreen.-narrow.-low LinesPane { height: 5; }
    SuitesScreen.-narrow.-large LinesPane { height: 70%; }
    SuitesScreen.-narrow.-short LinesPane { display: none; }
    SuitesScreen.-narrow.-short.-large LinesPane { display: block; }
    SuitesScreen.-narrow.-detail LinesPane { display: block; height: 1fr; border-top: none; }
    SuitesScreen.-narrow.-detail CaseList { display: none; }
    SuitesScreen.-wide.-hidden.-detail LinesPane { display: block; width: 100%; }
    SuitesScreen.-wide.-hidden.-detail CaseList { display: none; }
    """

    def __init__(self) -> None:
        super().__init__(SuiteCases(self.services.state))
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
        self.case_list.at_once = self.at_once
        self.case_list.when_whole = self.mark_when_whole
        self.case_list.focus()
        self.set_interval(1.0, self._tick)
        self.arrangement.rebuild()

    def hints(self) -> Sequence[Key]:
        """Seven keys for a start; where there is nothing yet, how to begin."""
        state = self.services.state
        if not state.rows and not state.loading and not any(suite.problems for suite in state.suites):
            return labelled(BEGINNING, "list.open", "begin")
        if self.is_mounted and self.query_one(LinesPane).has_focus:
            return labelled(self.useful_keys("pane.next", *IN_DETAIL), "pane.next", "list")
        if self.is_mounted and failed_here(self.case_list.current_line):
            return self.useful_keys("list.open", *AFTER_FAILURE)
        return self.useful_keys(*IN_LIST)

    # -- news

    @on(SuitesChanged)
    def _suites_changed(self, event: SuitesChanged) -> None:
        if event.case_ids is None or not (self.arrangement.rows or self.arrangement.busy):
            self.arrangement.remake()
            return
        self._dirty.update(event.case_ids)
        self._flush()

    @on(RunChanged)
    def _run_changed(self, event: RunChanged) -> None:
        state = self.services.state
        group = state.group
        if event.opened or (group is None and not event.run_id):
            self._dirty.clear()
            self.arrangement.remake()
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
        if self.arrangement.replace_some(ids):
            self.arrangement.rearrange_soon()
        self.rebuilt()

    def _tick(self) -> None:
        """Once a second while cases run: their clocks; while suites are read: which."""
        if self.services.state.loading:
            self.say_nothing()
        group = self.services.state.group
        active = (group is not None and group.active) or self.services.state.aside.active
        if self.is_current and active and self.case_list.display:
            self.case_list.tick()

    def on_screen_resume(self) -> None:
        """What happened meanwhile."""
        if (self.arrangement.rows or self.services.state.rows) and not self.arrangement.up_to_date():
            self.arrangement.remake()

    def rebuilt(self) -> None:
        """The line at the top, the empty list's words, the detail."""
        self._show_facts()
        self.say_nothing()
        self.show_detail()

    def _show_facts(self) -> None:
        state, cases, symbols = self.services.state, self.case_list, self.services.symbols
        looked = SuitesFacts(
            self.expression,
            self.finder.problem,
            len(cases.marks),
            self.view.order,
            self.arrangement.busy,
        )
        tree, root = cases.cases, state.shown_root
        self.query_one(FactsBar).show_fitted(
            lambda width: [facts_line(state, tree, symbols, looked, root, width)]
        )

    def nothing(self) -> list[str]:
        """How to begin."""
        state = self.services.state
        if state.loading or state.rows:  # a list of many is not there as soon as they are
            named = visible(clip(state.reading, 200), newlines=False)
            return ["Reading suites.", *([named] if state.loading and named else [])]
        return [
            "No suites here.",
            "tui-eval looks in this folder and below for:",
            *(f"- {one.title}: {one.files}" for one in offered() if one.files),
            "and for runs that come to lie in it (shards): it opens them as one.",
            "enter writes a first suite here (as `tui-eval init` does), or brings the samples.",
        ]

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
        state = self.services.state
        if not (self.case_list.cases.lines or state.loading or state.rows or self.expression):
            self.services.suites.first()

    def pane(self, step: int) -> None:
        """To the other side; on a narrow screen, and where the detail is hidden, one side at a time."""
        pane = self.query_one(LinesPane)
        to_detail = self.case_list.has_focus
        self.set_class(to_detail, "-detail")
        (pane if to_detail else self.case_list).focus()
        self.call_after_refresh(self.show_detail)

    def show_list(self) -> None:
        """In the room of the detail."""
        self.set_class(False, "-detail")

    def back(self) -> bool:
        """From the detail to the list first."""
        if self.query_one(LinesPane).has_focus:
            self.pane(-1)
            return True
        return super().back()
