"""Tab 4: expected and actual rows as one table or side by side, the cell under the cursor explained and in
full, the SQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.timer import Timer

from tui_eval.agent_query import agent_query
from tui_eval.frames.sql_faults import fault_place
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, DataDetails
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.inspector.tab import REST, InspectorTab
from tui_eval.tui.loaders.queries_loader import Asked, QueryPlace, concluded_from, queries_of
from tui_eval.tui.services import HasServices
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.data.comparison_modes import disagreement
from tui_eval.tui.state.data.data_blocks import cell_blocks, fault_view, rows_of, sql_blocks
from tui_eval.tui.state.data.data_view import (
    BEFORE_AFTER,
    EXPECTED_ACTUAL,
    DataView,
    PairedRows,
    Sides,
    answer_alone,
    fault_of,
    first_rows,
    make,
    words_instead,
)
from tui_eval.tui.state.data.data_words import diagnosis_lines, shortened, without_midnight
from tui_eval.tui.state.data.queries_view import Queries, concluded, sql_below
from tui_eval.tui.state.text.blocks import Block, whole_text
from tui_eval.tui.state.text.formatting import counted
from tui_eval.tui.state.text.lines import Line, Span, fit, in_rows, text_lines, wrap
from tui_eval.tui.widgets.data_grid import DataGrid
from tui_eval.tui.widgets.line_pane import LineLabel, LinePane
from tui_eval.tui.widgets.text_pane import SEARCHING, TextPane

if TYPE_CHECKING:
    from tui_eval.frames.cells import Cell
    from tui_eval.frames.queries import Conclusion


Below = Literal["room", "sql", "cell", "nothing"]
"""What stands below the rows: the SQL where there is room for it, the SQL, the cell, nothing."""
TELL = 0.2
"""Seconds between two words on how far it is."""
_LOW = 16
"""Rows of a tab from which on lines above the rows may wrap."""
_BOXES = (".summary", ".diagnosis", ".modes", ".titles", ".explained")
_BESIDE = 14
"""Columns that the text pane needs beside its text."""


class DataTab(InspectorTab):
    """Counts, titles, grid and explanation; below them the SQL (where there is room, or where it is asked for)
    or the cell under the cursor in full; messages where there are no rows."""

    DEFAULT_CSS = """
    DataTab Vertical { height: 1fr; }
    DataTab .titles { height: 2; }
    DataTab .modes, DataTab .diagnosis { display: none; }
    DataTab .explained { height: 3; background: $surface; }
    DataTab TextPane { display: none; }
    DataTab.-below TextPane { display: block; }
    DataTab.-zoomed TextPane { display: none; }
    DataTab.-words TextPane { display: block; height: 1fr; }
    DataTab.-words DataGrid, DataTab.-words .titles, DataTab.-words .modes, DataTab.-words .explained { display: none; }
    DataTab.-words .diagnosis { display: none; }
    DataTab.-words.-fault .diagnosis { display: block; }
    DataTab.-fault .explained { display: none; }
    """
    foot = ("case.sql", "turn.next")
    foot_words = MappingProxyType({"case.sql": "SQL", "turn.next": "next ≠", "turn.previous": "previous ≠"})

    def foot_of(self, content: CaseContent) -> tuple[str, ...]:
        """Without rows there is nothing to go through; where the expected query failed, another may be tried. Where
        there is no other attempt, its key makes room for that."""
        details = content.attempt.data if content.attempt is not None else None
        if details is not None and fault_of(details) is not None:
            return ("case.query", "case.sql")
        if details is None or details.expected is None:
            return ()
        alone = not any(content.step(step) is not None for step in (1, -1))
        return (*super().foot_of(content), *(("case.query",) if alone else ()))

    def __init__(self) -> None:
        super().__init__()
        self.view: DataView | None = None
        self._details: DataDetails | None = None
        self._content: CaseContent | None = None
        self._generation = 0
        self._told: list[Line] = []
        self.words_found: list[Line] = []
        self._concluded: Conclusion | None = None
        self._asked: Asked | None = None
        self.queries: Queries | None = None
        self._cancel = threading.Event()
        self._below: Below = "room"
        self._resting: Timer | None = None
        self._attempt: Attempt | None = None
        self._folder: Path | None = None
        self._names: tuple[str, str] = EXPECTED_ACTUAL

    def compose(self) -> ComposeResult:
        """Summary, diagnosis, titles, rows, explanation, SQL."""
        with Vertical():
            yield LineLabel(classes="summary", wrapped=True)
            yield LineLabel(classes="diagnosis", wrapped=True)
            yield LineLabel(classes="modes", wrapped=True)
            yield LineLabel(classes="titles")
            yield DataGrid()
            yield LineLabel(classes="explained", wrapped=True)
            yield TextPane()

    @property
    def grid(self) -> DataGrid:
        """The rows."""
        return self.query_one(DataGrid)

    @property
    def main(self) -> LinePane:
        """The rows, or the words that stand in their place."""
        return self.query_one(TextPane) if self.has_class("-words") else self.grid

    @property
    def text(self) -> TextPane:
        """The SQL, or the words."""
        return self.query_one(TextPane)

    def find(self, query: str) -> int:
        """Look for a text in the cells."""
        self.grid.look_for(query)
        found = self.find_next(0)[1] > 0
        return SEARCHING if self.grid.searching else int(found)

    @property
    def searching(self) -> bool:
        """Whether a search goes on."""
        return self.grid.searching or super().searching

    def find_next(self, step: int) -> tuple[int, int]:
        """To the next or previous row with the text; nothing is found in the first rows, while all are being
        aligned."""
        return self.grid.find_next(step) if self.view is not None else (0, 0)

    def show(self, content: CaseContent, *, keep: bool) -> None:
        """Show an attempt's rows; they are aligned in a thread."""
        details = content.attempt.data if content.attempt else None
        if keep and details is self._details and self.view is not None:
            self._only(self.only)
            self._beneath()
            return
        self._details, self._content = details, content
        self._generation += 1
        self.view = None
        self.grid.set_view(None)
        self._explain()
        self._modes(self._generation, [])
        self._cancel.set()
        self._cancel = threading.Event()
        self._asked, self.queries, self._concluded = None, None, None
        self.remove_class("-fault")
        self._diagnosed(self._generation, [])
        self._words(content)
        if details is not None and (fault := fault_of(details)) is not None:
            self._failed_query(details, fault, content.folder)
        if details is None or details.expected is None:
            return
        self._say("aligning rows…")
        generation = self._generation
        assert content.attempt is not None
        state = cast(HasServices, self.app).services.state
        trust = Trust(state.trusted, agreed=state.agreed)
        self._asked = Asked(content.attempt, content.case, content.folder, state.config, trust)
        run_in_thread(
            self.app,
            partial(queries_of, self._asked),
            partial(self._paired, generation),
            lambda error: None,  # what is kept of the SQL is shown as it is
            name="SQL",
        )
        self._attempt, self._folder = content.attempt, content.folder
        self._align(generation, details)

    def compare(self, rows: PairedRows) -> None:
        """Show the rows of two answers against each other."""
        self._details, self._content, self._attempt = rows.details, None, None
        self._generation += 1
        self.view = None
        self.grid.set_view(None)
        self.grid.words = self._names = BEFORE_AFTER
        self._explain()
        self._diagnosed(self._generation, [])
        self._say("aligning rows…")
        self._align(self._generation, rows.details, rows.read)

    def _align(self, generation: int, details: DataDetails, read: Callable[[], Sides] | None = None) -> None:
        """Align the rows; of many, the first ones are shown before."""
        folder = self._folder

        def work() -> DataView:
            first = first_rows(details)
            if first is not None:
                self.app.call_later(self._first, generation, first)
            told = 0.0

            def progress(words: str) -> None:
                nonlocal told
                if time.monotonic() - told > TELL:
                    told = time.monotonic()
                    self.app.call_later(self._so_far, generation, words)

            return make(details, folder, read() if read is not None else None, progress=progress)

        run_in_thread(
            self.app, work, partial(self._made, generation), partial(self._failed, generation), name="rows"
        )

    def _first(self, generation: int, view: DataView) -> None:
        """The first rows, while all are being aligned: they can be looked at, nothing else."""
        if generation == self._generation and stands(self) and self.view is None:
            self.grid.first_column = view.frozen
            self.grid.set_view(view)
            self.query_one(".titles", LineLabel).set_lines(self.grid.titles())

    def _so_far(self, generation: int, words: str) -> None:
        if generation == self._generation and stands(self) and self.view is None:
            self._say(f"{words}  the first rows stand here already" if self.grid.view is not None else words)

    def _say(self, words: str) -> None:
        self._top(".summary", [(Span(words, "muted"),)] if words else [], 1)

    def _top(self, name: str, lines: list[Line], most: int) -> None:
        """Lines above the rows, as many rows of the screen as they need."""
        box = self.query_one(name, LineLabel)
        rows = sum(len(wrap(line, max(self.size.width, 1))) for line in lines)
        box.display = bool(lines)
        if rows > most:
            lines = [fit(line, self.size.width) for line in lines]
        box.styles.height = max(1, min(rows, most) if rows <= most else min(len(lines), most))
        box.set_lines(lines)

    def _words(self, content: CaseContent) -> None:
        """Where there is nothing to put side by side, say why."""
        details, blocks = self._details, []
        words = words_instead(content.attempt)
        if words and self.grid.has_focus:
            self.text.focus()
        elif not words and self.text.has_focus:
            self.grid.focus()
        self.set_class(bool(words), "-words")
        if words:
            self.text.styles.height = "1fr"
            blocks.append(Block("words", "note", "rows", partial(text_lines, words, "muted")))
        if details is not None and words:
            blocks += sql_blocks(details)
        self.text.set_blocks(blocks, keep=False)
        self._say("")

    # -- an expected query that failed

    def _failed_query(self, details: DataDetails, fault: Mapping[str, Any], folder: Path | None) -> None:
        """What DuckDB said and where that is in the file; below it the answer's rows, where there are any."""
        self.add_class("-fault")
        self.words_found = fault_view(
            str(fault.get("message") or ""), str(fault.get("detail") or ""), max(self.size.width, 20)
        )
        if place := fault_place(fault):
            self.words_found.append((Span(f"at {place}", "strong"), Span(": e goes there", "muted")))
        self._above()
        if details.actual:
            run_in_thread(
                self.app,
                partial(answer_alone, details, folder),
                partial(self._alone, self._generation),
                partial(self._failed, self._generation),
                name="rows",
            )

    def _alone(self, generation: int, view: DataView) -> None:
        """The answer's rows, compared with nothing."""
        if generation != self._generation or not stands(self):
            return
        self.view = view
        self.post_message(self.Shown())
        self.grid.first_column = view.frozen
        self.grid.set_view(view, 0)
        self._draw()

    def try_query(self) -> None:
        """Try a query on the case's database, beginning from those of both sides."""
        content = self._content
        services = cast(HasServices, self.app).services
        state = services.state
        trust = Trust(state.trusted, agreed=state.agreed)
        attempt = content.attempt if content is not None else None
        place = QueryPlace(
            content.case if content is not None else None,
            state.config,
            trust,
            attempt,
            content.folder if content is not None else None,
        )
        own = agent_query(attempt) if attempt is not None else None
        expected = (self._details.reference_sql if self._details is not None else None) or ""
        services.places.show("query", place, [expected, *([own.sql] if own is not None else [])])

    def _made(self, generation: int, view: DataView) -> None:
        if generation != self._generation or not stands(self):
            return
        self.view = view
        self.post_message(self.Shown())
        view.only, view.names = self.only, self._names
        first = view.difference.next_difference(-1)
        start = view.place(first) if first is not None else 0
        early, at = self.grid.view, self.grid.cursor
        if early is not None and at:  # who went on meanwhile stays there
            start = view.place(view.difference.place_of(early.row(at).expected_index or 0))
        elif len(view) and first is not None:
            self.grid.column = view.first_bad_column(start)
        self.grid.first_column = view.frozen
        self.grid.set_view(view, start)
        self._draw()
        self._ask()
        self._diagnose(view)
        if self._attempt is not None:
            run_in_thread(
                self.app,
                partial(disagreement, self._attempt, self._folder, view.sides),
                partial(self._modes, generation),
                lambda error: None,  # shown by the alignment
                name="modes",
                queue="about rows",
            )

    def _diagnose(self, view: DataView) -> None:
        run_in_thread(
            self.app,
            partial(diagnosis_lines, view),
            partial(self._diagnosed, self._generation),
            lambda error: None,
            name="diagnosis",
            queue="about rows",
        )

    def _diagnosed(self, generation: int, lines: list[Line]) -> None:
        """Say what the rows that differ have in common."""
        if generation != self._generation or not stands(self):
            return
        self.words_found = lines
        self._above()

    def _above(self) -> None:
        """The diagnosis, and what came of the agent's query."""
        low = self.size.height <= _LOW  # where rows would be crowded out, the strongest alone
        if self.has_class("-fault"):
            self._top(".diagnosis", self.words_found, len(self.words_found))
        elif low:
            width = max(self.size.width, 1)
            lines = [*self.words_found[:1], *concluded(self._concluded, width)]
            self._top(
                ".diagnosis", [row for line in lines for row in in_rows(line, width, 2)], 2 * len(lines)
            )
        else:
            self._top(".diagnosis", [*self.words_found, *concluded(self._concluded)], 5)
        self._beneath()

    # -- the queries of both sides

    def _paired(self, generation: int, queries: Queries | None) -> None:
        """Both queries are there: show them where SQL is shown, and run the agent's."""
        if generation != self._generation or not stands(self):
            return
        self.queries = queries
        if queries is None and self._details is not None:
            from tui_eval.frames.queries import kept_conclusion

            self._concluded = kept_conclusion(
                self._details
            )  # of the expected query it says something all the same
            self._above()
        self._beneath()
        self._ask()

    def _ask(self) -> None:
        """Run the agent's query, once both it and the difference of the rows are there."""
        view, queries, asked = self.view, self.queries, self._asked
        if view is None or queries is None or asked is None or asked.config is None:
            return
        self._asked = None
        run_in_thread(
            self.app,
            partial(concluded_from, asked, queries, self._cancel, view.sides),
            partial(self._conclude, self._generation),
            lambda error: None,
            name="query",
        )

    def _conclude(self, generation: int, conclusion: Conclusion) -> None:
        """Say where the answer went wrong."""
        if generation != self._generation or not stands(self):
            return
        view = self.view
        if view is not None and not (view.wrong or view.missing_columns) and conclusion.blame != "lucky":
            return  # the rows are right: nothing is to be said but that they are not those of its query
        self._concluded = conclusion
        self._above()
        if view is not None and conclusion.blame == "retold" and view.difference.own_query != "right":
            view.difference.own_query = "right"  # known only now: what blames the query is not said
            self._diagnose(view)

    def _modes(self, generation: int, lines: list[Line]) -> None:
        """Say that the two comparisons disagree."""
        if generation != self._generation or not stands(self):
            return
        self._told = lines
        self._top(".modes", lines, 4 if self.size.height > _LOW else 2)
        self._beneath()

    def toggle_freeze(self) -> str:
        """Let the columns up to the cursor's stay while one goes sideways; what to say."""
        if self.view is None or not len(self.view):
            return "no rows here"
        count = self.grid.freeze()
        self._explain()
        if count is None:
            return f"too far right to stay: at most {self.grid.most_frozen} columns fit"
        if not count:
            return "no column stays"
        return f"{count} column{'' if count == 1 else 's'} stay{'s' if count == 1 else ''}: v lets go"

    def toggle_sides(self) -> str:
        """One table, or both sides beside each other; what to say."""
        if self.view is None:
            return "no rows here"
        self.grid.show_sides(not self.grid.sides)
        self._explain()
        return "side by side: o makes one table" if self.grid.sides else "one table: o puts both side by side"

    def _failed(self, generation: int, error: Exception) -> None:
        if generation == self._generation:
            self._say(f"the rows could not be aligned: {error}")

    def _draw(self) -> None:
        if self.view is None:
            return
        if self.has_class("-fault"):
            words = f"the answer's rows: {counted(self.view.actual, 'row')}, compared with nothing"
            self._top(".summary", [(Span(words, "note"),)], 1)
        else:
            self._top(".summary", [self.view.summary()], 2 if self.size.height > _LOW else 1)
        self._explain()
        self._beneath()

    def _explain(self) -> None:
        self.query_one(".titles", LineLabel).set_lines(self.grid.titles())
        box = self.query_one(".explained", LineLabel)
        most = max(5 if self.size.height > _LOW else 3, self.size.height // 4)
        room = max((most - 1) // 2 * self.size.width - 40, 40)  # each side gets half of the lines
        width = max(self.size.width, 1)
        lines = self.view.explain(self.grid.cursor, self.grid.column, room) if self.view is not None else []
        if sum(len(wrap(line, width)) for line in lines) > most:  # both sides are worth more than their ends
            lines = [fit(line, width) for line in shortened(lines, width)]
        box.set_lines(lines)
        box.styles.height = max(3, min(box.row_count, most))

    def on_resize(self) -> None:
        """Titles, and what there is room for, depend on the size."""
        super().on_resize()
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        if self.view is not None:
            self._top(".modes", self._told, 4 if self.size.height > _LOW else 2)
            self._above()
            self._draw()

    # -- below the rows

    def _beneath(self) -> None:
        """Show the SQL or the cell below the rows, as high as it needs and the rows let it be."""
        view, pane, details = self.view, self.text, self._details
        if self.has_class("-words"):
            return
        width = max(self.size.width - _BESIDE, 8)
        boxes = [self.query_one(name, LineLabel) for name in _BOXES]
        free = self.size.height - sum(
            int(box.styles.height.value) for box in boxes if box.display and box.styles.height
        )
        left = free - (len(view) if view is not None else 0) - 1
        blocks: list[Block] = []
        wanted = 0
        if view is not None and self._below == "cell" and (cell := self.cell()) is not None:
            shown = without_midnight(view, cell) if self.rendered else cell
            blocks = cell_blocks(shown, self.rendered, view.names)
            wanted = rows_of(blocks, width)
        elif view is not None and self._below in ("sql", "room") and details is not None:
            most = left if self._below == "room" else None
            blocks, wanted = sql_below(details, self.queries, self._concluded, width, most, self.rendered)
        fits = bool(blocks) and wanted <= left
        self.set_class(fits if self._below == "room" else bool(blocks), "-below")
        pane.styles.height = max(min(wanted, max(left, free // 2)), 1)
        pane.set_blocks(blocks, keep=False)

    def open_cell(self) -> None:
        """The cell under the cursor in full below the rows, or no more."""
        self._below = "room" if self._below == "cell" else "cell"
        self._beneath()

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        event.stop()
        if isinstance(event.pane, DataGrid):
            self.open_cell()

    @on(LinePane.Moved)
    def _moved(self, event: LinePane.Moved) -> None:
        if isinstance(event.pane, DataGrid):
            self._explain()
            if self._below == "cell":
                if self._resting is not None:
                    self._resting.stop()
                self._resting = self.set_timer(REST, self._beneath)

    def cell(self) -> Cell | None:
        """The cell under the cursor."""
        if self.view is None or not len(self.view) or not self.view.columns:
            return None
        return self.view.row(self.grid.cursor).cells[self.grid.column]

    def show_only(self, only: bool) -> None:
        """Only rows that differ, or all."""
        self.only = only
        self._only(only)

    def _only(self, only: bool) -> None:
        if self.view is None or self.view.only == only:
            return
        here = self.view.aligned(self.grid.cursor) if len(self.view) else 0
        self.view.only = only
        start = self.view.place(here) if len(self.view) else 0
        bad = self.view.bad_columns(self.view.row(start)) if only and len(self.view) else []
        if bad and self.grid.column not in bad:
            self.grid.column = bad[0]  # else a row is marked of which no differing cell is in sight
        self.grid.set_view(self.view, start)
        self._draw()

    def has_turn(self, step: int) -> bool:
        """Whether a difference stands further on (or before)."""
        return self.view is not None and self.grid.next_difference(step) is not None

    def turn(self, step: int) -> str:
        """To the next or previous difference."""
        if self.view is None or not len(self.view):
            return "no rows here"
        if (found := self.grid.next_difference(step)) is None:
            return "no later difference" if step > 0 else "no earlier difference"
        row, column = found
        if row != self.grid.cursor:
            self.grid.move_to(row)
        if column is not None:
            self.grid.to_column(column)
        return ""

    def toggle_sql(self) -> str:
        """Show or hide the SQL below the rows."""
        details = self._details
        if details is None or not (details.reference_sql or details.verification_sql or self.queries):
            return "no SQL is kept with this attempt"
        shown = self.has_class("-below") and self._below != "cell"
        self._below = "nothing" if shown else "sql"
        if self.text.has_focus:
            self.grid.focus()
        self._beneath()
        return ""

    def text_maker(self) -> Callable[[], str]:
        """The rows shown and the SQL."""
        view, blocks = self.view, list(self.text.blocks)
        return lambda: (view.text() if view is not None else "") + "\n" + whole_text(blocks)
