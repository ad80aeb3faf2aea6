"""The grid: tests down, what they are run with across; beside the list one came from.

That of many cases is made in a thread, as their list is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.timer import Timer

from tui_eval.guard.text import clip, visible
from tui_eval.model import OUTCOMES, Case
from tui_eval.tui.background import stands
from tui_eval.tui.front import RunChanged, SuitesChanged
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import FILTER_KEYS, FIND_KEYS, GRID_KEYS, GRID_OPEN_KEYS, PANE_KEYS, Key, bindings
from tui_eval.tui.loaders.runs_loader import RecordedAt, recorded_at, recorded_cases, with_recorded
from tui_eval.tui.screens import list_arrangement
from tui_eval.tui.screens.attempt_beside import BREAKPOINTS, AttemptBelow, LookedAt
from tui_eval.tui.screens.list_finder import RowFinder
from tui_eval.tui.screens.list_place import ListPlace, now
from tui_eval.tui.screens.place import Place, keys_in, keys_of
from tui_eval.tui.state.app_state import CasePointer, where_is
from tui_eval.tui.state.case.case_details import describe_entry, entry_head
from tui_eval.tui.state.compare.grid_view import (
    Column,
    Grid,
    GridTest,
    Metrics,
    columns_of,
    grid,
    metric_lines,
    metrics_of,
    row_line,
    scores_in_full,
    title_lines,
    total_line,
    widths,
)
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.text.lines import Line
from tui_eval.tui.terminal.gc_pauses import undisturbed
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.line_pane import LineLabel, LinePane, RowTable
from tui_eval.tui.widgets.lines_pane import AttemptPane

FLUSH = 0.5
"""Seconds between two redraws while a run goes on."""
METRICS = 10
"""One line of named scores for so many of the screen's: the tests keep their place."""
BAR = 1
"""Columns of the scroll bar at the right of the tests."""
_EMPTY = "No case is shown: M goes back to the list, U to the suites."
_NO_CELL = "this test has no case in this column"


class GridScreen(Place, inherit_bindings=False):
    """The cases shown in the list one came from; enter opens the case of the cell."""

    TITLE = "Grid"
    kind = "grid"
    BINDINGS: ClassVar = [
        *bindings("grid", GRID_KEYS),
        *bindings("screen", (*FIND_KEYS, *FILTER_KEYS, *PANE_KEYS)),
    ]
    KEY_SECTIONS = (
        ("The grid", (*GRID_OPEN_KEYS, *GRID_KEYS, *FIND_KEYS, *FILTER_KEYS, *PANE_KEYS)),
        ("Moving", keys_in("moving")),
    )
    VERTICAL_BREAKPOINTS = BREAKPOINTS
    DEFAULT_CSS = """
    GridScreen LineLabel { background: $panel; }
    GridScreen .heads { height: auto; }
    GridScreen .metrics { height: auto; }
    GridScreen RowTable { height: 1fr; }
    """

    def __init__(self, place: ListPlace) -> None:
        super().__init__()
        self._place = place
        self.grid = Grid([], [])
        self.column = 0
        self.only = False
        self.figure = "time"
        """What a cell says beside its outcome."""
        self.below = AttemptBelow(self, self.services, self._looked_at)
        self._first = 0
        self._metrics: tuple[Metrics, str] = ((), "")
        """Named scores of the run in front, and what is said of them."""
        self._timer: Timer | None = None
        self._seen: list[tuple] = []
        """What the cases of the grid were like when it was made."""
        self._at_work = False
        """Whether a thread makes it."""
        self._due = False
        """Whether the cases went on meanwhile."""
        self._came_from: CasePointer | None = None
        """The case that the cursor is put on with the first tests."""
        self._recorded: dict[RecordedAt, Case | None] = {}
        """Cases that no suite has, as their runs have them."""
        self.table = RowTable(
            self._draw,
            lambda test: test.key,
            to_column=self.to_column,
            empty=_EMPTY,
        )
        self.finder = RowFinder(self.table, _words_of, self.prompts, self.services.notices, "names")

    def _draw(self, test: GridTest, width: int) -> Line:
        here = self.table.current is test
        return row_line(self.grid, test, width, self._first, self.column if here else -1, self.figure)

    def compose(self) -> ComposeResult:
        """Facts, headings, tests, scores, keys."""
        yield FactsBar()
        yield LineLabel(classes="heads")
        yield self.table
        yield LineLabel(classes="metrics")
        yield AttemptPane()
        yield KeyHints(self.hints())

    def focus_home(self) -> None:
        """The tests."""
        self.table.focus()

    def on_mount(self) -> None:
        """Show it, the cursor on the case one came from."""
        self.focus_home()
        self._came_from = self._place.current()
        self._place.arranged.subscribe(self, lambda _: self.renew())
        self.renew()
        self.call_after_refresh(self.below.show)

    def hints(self) -> Sequence[Key]:
        """Seven keys."""
        own = {key.id: key for key in GRID_KEYS}
        opened, run = (keys_of(name) if self.cell is not None else [] for name in ("list.open", "case.rerun"))
        names: list[str] = []
        if len(self.grid.columns) > 1:
            last = self.column + 1 >= len(self.grid.columns)
            names = ["grid.previous" if last else "grid.next", "grid.differing"]
        figure = [own["grid.figure"]] if len(self.grid.figures) > 1 else []
        mine = [own[name] for name in names]
        return [*opened, *mine, *run, *keys_of("place.grid"), *figure, *keys_of("help", "quit")]

    def show_hints(self) -> None:
        """Let the footer name what does something now."""
        for hints in self.query(KeyHints):
            hints.show(self.hints())

    def renew(self) -> None:
        """Make the grid anew from the list's cases; nothing is repainted where none has changed."""
        self._timer = None
        if self._place.arrangement.busy and not self._seen:
            self.table.empty = "The list of cases is being made."
            self.table.relayout()
            return  # its rows tell of the time before
        if self._at_work:
            self._due = True
            return
        entries, rows, before = list(self._place.shown_entries()), list(self._place.all_entries()), self._seen
        known = self._recorded
        unknown = [row for row in rows if (place := recorded_at(row)) is not None and place not in known]
        if len(rows) <= list_arrangement.MANY and not unknown:
            self._take(_made(with_recorded(entries, known), with_recorded(rows, known), before))
            return
        group = self.services.state.group
        folders = {run.info.id: run.folder for run in (group.runs if group is not None else ())}

        def work() -> tuple[list[tuple], Grid | None]:
            with undisturbed():
                found = {**known, **recorded_cases(unknown, folders)} if unknown else known
                self._recorded = found
                return _made(with_recorded(entries, found), with_recorded(rows, found), before)

        self._at_work = True
        if not before:
            self.table.empty = "The grid is being made."
            self.table.relayout()
        self._facts()
        self.services.tasks.thread(work, self._show_made, self._not_made, name="grid", opens=not before)

    def _show_made(self, made: tuple[list[tuple], Grid | None]) -> None:
        """The thread has done its work."""
        self._at_work = False
        if not stands(self):
            return
        self._take(made)
        if self._due:
            self._due = False
            self.renew()

    def _not_made(self, error: Exception) -> None:
        """It is made again with the next news."""
        self._at_work = self._due = False
        self.services.notices.failed(error)

    def _take(self, made: tuple[list[tuple], Grid | None]) -> None:
        """Show what was made; None: as it was."""
        seen, fresh = made
        if fresh is None:
            self._facts()
            return
        here, self._seen = self._here, seen
        self.grid = fresh
        columns = fresh.columns  # others may have come or gone: `r` means the one that the cursor was on
        self.column = columns.index(here) if here in columns else min(self.column, max(len(columns) - 1, 0))
        group = self.services.state.group
        self._metrics = metrics_of(group.runs if group is not None else ())
        self._show_tests()
        if self._came_from is not None:
            self.call_after_refresh(self.go_to, self._came_from)
            self._came_from = None

    def _show_tests(self) -> None:
        """All of them, or those that differ."""
        shown = self.grid.differing if self.only else self.grid.tests
        filtered = "Nothing matches the filter: F clears it."
        self.table.empty = (
            "No test came out differently: i shows all."
            if self.only and self.grid.tests
            else filtered
            if self._place.expression
            else _EMPTY
        )
        self.table.set_rows(shown)
        if not shown:
            self.table.relayout()
        self.to_column(0)
        self.below.show()

    def _facts(self) -> None:
        """How large it is, which columns are in sight, what is shown of it."""
        tests, many = len(self.grid.tests), len(self.grid.columns)
        words = f"  {tests:,} test{'s' * (tests != 1)} × {many:,}"
        _, _, fits = widths(self.grid, self._width, self._first)
        if fits < many:
            words += f"  columns {self._first + 1:,}-{self._first + fits:,} of {many:,}"
        parts = [("title", "Grid"), ("dim", words)]
        if self._place.expression:
            parts.append(("warn", f"  filter: {clip(visible(self._place.expression, newlines=False), 40)}"))
        if self._place.arrangement.busy or self._at_work:
            parts.append(("dim", "  reading"))
        if self.only:
            parts.append(("warn", f"  {len(self.table.rows):,} differ (i shows all)"))
        if self.grid.tests and not self.grid.worth_it:
            parts.append(("dim", "  every test has one column: A runs with several agents"))
        for facts in self.query(FactsBar):
            facts.show(parts)

    @property
    def _width(self) -> int:
        """Columns of the screen for the tests and their cells: the terminal's until they are laid out, so that what
        stands above them is right at once."""
        return self.table.text_width if self.table.size.width else max(self.app.size.width - BAR, 1)

    @property
    def _here(self) -> Column | None:
        """The column under the cursor."""
        return self.grid.columns[self.column] if self.column < len(self.grid.columns) else None

    def _heads(self) -> None:
        """What stands around the tests: it depends on the width and on the column under the cursor."""
        self._facts()
        metrics, told = self._metrics
        most = max(self.size.height // METRICS, 1)
        scores = metric_lines(metrics, max(self.size.width - 2, 20), told, most=most, here=self._here)
        for box in self.query(".metrics").results(LineLabel):
            box.styles.height = len(scores)
            box.set_lines(scores)
        width = self._width
        lines = [
            *title_lines(self.grid, width, self._first, self.column),
            total_line(self.grid, width, self._first),
        ]
        # None of it where a window that changes its size has the screen closed, or not composed yet.
        for heads in self.query(".heads").results(LineLabel):
            heads.styles.height = len(lines)
            heads.set_lines(lines)

    def on_resize(self) -> None:
        """The columns depend on the width, the scores below them on the height too."""
        self.call_after_refresh(self.to_column, 0)

    @on(RunChanged)
    @on(SuitesChanged)
    def _changed(self) -> None:
        if self._timer is None:
            self._timer = self.set_timer(FLUSH, self._again)

    def _again(self) -> None:
        """The list behind is brought up to date, and tells when it is."""
        self._timer = None
        arrangement = self._place.arrangement
        if arrangement.busy:
            self._changed()
            return
        arrangement.remake()
        self._facts()

    # -- the cell

    @property
    def cell(self) -> CaseRow | None:
        """The case under the cursor."""
        test: GridTest | None = self.table.current
        if test is None or self.column >= len(self.grid.columns):
            return None
        return test.cells.get(self.grid.columns[self.column])

    def current(self) -> CasePointer | None:
        """The case under the cursor."""
        cell = self.cell
        return self._place.pointer_of(cell) if cell is not None else None

    def go_to(self, pointer: CasePointer) -> None:
        """Put the cursor on a case."""
        for row, test in enumerate(self.table.rows):
            for column, cell in test.cells.items():
                if cell.case_id == pointer.case_id and pointer.agent in (None, "", cell.agent):
                    self.column = self.grid.columns.index(column)
                    self.to_column(0)
                    self.table.move_to(row)
                    return

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            **self.below.handlers(),
            "grid.figure": self._next_figure,
            "grid.next": partial(self.to_column, 1),
            "grid.previous": partial(self.to_column, -1),
            "grid.differing": self._toggle_differing,
            "list.find": self.finder.ask,
            "list.find_next": partial(self.finder.find_next, 1),
            "list.find_previous": partial(self.finder.find_next, -1),
            "list.filter": partial(self._place.finder.ask_filter, self.prompts, self._filtered),
            "list.clear": partial(self._place.finder.clear, self._filtered),
        }

    def _filtered(self) -> None:
        """The list's filter is another."""
        self._facts()
        self._place.when_whole(self._filtered_list)

    def _filtered_list(self) -> None:
        """The list is filtered; what the grid says of none depends on it."""
        if stands(self):
            self._seen = []
            self.renew()

    @on(LinePane.Moved)
    def _moved(self, event: LinePane.Moved) -> None:
        event.stop()
        self.show_hints()
        self.below.moved()

    def _looked_at(self) -> LookedAt | None:
        """The answer in the cell."""
        cell = self.cell
        if cell is None:
            lacks = [("dim", _NO_CELL)] if self.grid.tests else []
            return LookedAt((), [], otherwise=lacks)
        symbols, state = self.services.symbols, self.services.state
        pointer = self._place.pointer_of(cell)
        key = (pointer, cell.finished_at, cell.attempts, cell.message)
        places = [("", where_is(state, pointer, family=False))] if cell.status in OUTCOMES else []
        head = entry_head(cell, symbols)
        told = describe_entry(cell, symbols, now())[len(head) :]
        scores = scores_in_full(self._metrics[0], self._here, self._metrics[1])
        # Of a pane of a few lines the answer needs all.
        if scores and (self.has_class("-roomy") or self.has_class("-large")):
            head = [*head, ("dim", scores)]
        return LookedAt(key, places, head, told if places else [*head, *told])

    def _next_figure(self) -> None:
        """Another figure in the cells."""
        known = self.grid.figures
        self.figure = known[(known.index(self.figure) + 1) % len(known)] if self.figure in known else "time"
        words = "no other figure is known" if len(known) < 2 else f"each cell's {self.figure}"
        self.services.notices.say(words)
        self.table.refresh()

    def _toggle_differing(self) -> None:
        """Only tests whose columns came out differently, or all."""
        self.only = not self.only
        self._show_tests()
        self.renew()

    def to_column(self, step: int) -> None:
        """The next (or previous) column."""
        many = len(self.grid.columns)
        before = (self.column, self._first)
        _, _, fit_at_all = widths(self.grid, self._width, 0)
        self._first = min(self._first, max(many - fit_at_all, 0))
        self.column = min(max(self.column + step, 0), max(many - 1, 0))
        if self.column < self._first:
            self._first = self.column
        elif self.column >= self._first + fit_at_all:
            self._first = self.column - fit_at_all + 1
        if before[1] != self._first:
            self.table.refresh()
        elif before[0] != self.column:
            self.table.refresh_row(self.table.cursor)
        self._heads()
        self.show_hints()
        if before[0] != self.column:
            self.below.moved()

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        event.stop()
        pointer = self.current()
        if pointer is not None:
            self.services.places.open_case(pointer)
        else:
            self.services.notices.say(_NO_CELL if self.grid.tests else _EMPTY)


def _words_of(test: GridTest) -> str:
    return f"{test.called} {test.name}"


def _made(
    entries: Sequence[CaseRow], rows: Sequence[CaseRow], before: Sequence[tuple]
) -> tuple[list[tuple], Grid | None]:
    """What these cases, of all `rows`, are like, and their grid; None where they were the same `before`."""
    seen = [(e.key, e.status, e.attempts, e.duration_ms, e.agent) for e in entries]
    return seen, grid(entries, columns_of(rows)) if seen != before or not seen else None
