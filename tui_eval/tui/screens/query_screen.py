"""A query tried on a case's database: its rows in the table of the Data tab, or what DuckDB says of it."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from tui_eval.config.project import DatabaseSpec
from tui_eval.guard.text import visible
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import QUERY_KEYS, Key, bindings
from tui_eval.tui.loaders.queries_loader import QueryPlace, TriedQuery, against_expected, tables, tried
from tui_eval.tui.screens.place import Place, keys_in, keys_of, labelled
from tui_eval.tui.screens.prompt import Prompt, TypedLine
from tui_eval.tui.state.data.data_blocks import fault_view, table_lines
from tui_eval.tui.state.data.data_view import DataView
from tui_eval.tui.state.text.formatting import counted
from tui_eval.tui.state.text.lines import Line, Span, fit
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.data_grid import DataGrid
from tui_eval.tui.widgets.line_pane import LineLabel, LinePane

# -- The line in which a query is typed: the queries before it with ↑ and ↓, a pasted one on one line.


_PIECE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|/\*.*?\*/|--([^\r\n]*)|\s+|.", re.DOTALL)


def on_one_line(sql: str) -> str:
    """A query on one line that means the same: texts stay, a comment to the end of a line becomes one that ends. Lines
    end with a carriage return where a terminal pasted them."""

    def piece(found: re.Match[str]) -> str:
        if found[1] is not None:
            return f"/*{found[1].rstrip().replace('*/', '* /')} */"
        return " " if found[0].isspace() else found[0]

    return _PIECE.sub(piece, sql.strip()).strip()


class TypedQuery(TypedLine):
    """`↑ ↓` go through the queries before."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "before(1)", show=False),
        Binding("down", "before(-1)", show=False),
    ]

    def __init__(self, before: Sequence[str], hint: str) -> None:
        super().__init__(placeholder=hint, compact=True, select_on_focus=False)
        self.cursor_blink = False
        self._before = [on_one_line(sql) for sql in before]
        self._at = 0
        self._typed = ""

    def action_before(self, step: int) -> None:
        """An earlier query, or a later one; below the last stands what was being typed."""
        at = min(max(self._at + step, 0), len(self._before))
        if at == self._at:
            return
        if self._at == 0:
            self._typed = self.value
        self._at = at
        self.value = self._before[-at] if at else self._typed
        self.cursor_position = len(self.value)

    def ran(self, sql: str) -> None:
        """A query was run: it is the last of those before."""
        self._before = [*(one for one in self._before if one != sql), sql]
        self._at = 0

    def pasted(self, text: str) -> str:
        """A query of several lines."""
        return on_one_line(text)


class QueryPrompt(Prompt):
    """Stays open while queries are tried."""

    def __init__(self, before: Sequence[str]) -> None:
        """`before`: queries to go through, the last one first."""
        super().__init__("SQL", replaces=False)
        self._queries = before

    def compose(self) -> ComposeResult:
        """The label and the line."""
        with Horizontal():
            yield Static(self.purpose, markup=False, classes="label")
            yield TypedQuery(
                self._queries, "a SELECT; enter runs it, ↑ the case's and earlier ones, esc leaves"
            )

    @property
    def line(self) -> TypedQuery:
        """Where it is typed."""
        return self.query_one(TypedQuery)


_LOW = 16
"""Rows of the screen up to which the line under the rows is left out."""
_TYPED = (
    Key("", "enter", "run the query", "query", "run it"),
    Key("", "up", "the query before", "query", "earlier"),
)
"""Keys of the prompt itself, for the footer."""
TICK = 1.0
"""Seconds between two words about a query that runs."""


class QueryScreen(Place, inherit_bindings=False):
    """A prompt at the foot, the rows of the last query above it. Read-only, as expected SQL is run."""

    TITLE = "Query"
    BINDINGS: ClassVar = bindings("query", QUERY_KEYS)
    KEY_SECTIONS = (("A query tried", QUERY_KEYS), ("Moving", keys_in("moving")))
    DEFAULT_CSS = """
    QueryScreen .body { height: 1fr; }
    QueryScreen .titles { height: 2; }
    QueryScreen .explained { height: 1; background: $surface; }
    QueryScreen .said { height: auto; }
    QueryScreen QueryPrompt { dock: none; }
    QueryScreen.-empty .titles, QueryScreen.-empty DataGrid, QueryScreen.-empty .explained { display: none; }
    """

    def __init__(self, place: QueryPlace, before: Sequence[str] = ()) -> None:
        """`before`: the case's own queries, to begin from."""
        super().__init__()
        self._place = place
        self._before = before
        self._spec: DatabaseSpec | str = ""
        self._cancel: threading.Event | None = None
        self._number = 0
        self._seconds = 0
        self._tables: list[str] = []
        self.found: TriedQuery | None = None
        self._compared: tuple[DataView, list[Line]] | None = None
        self.comparing = False

    def compose(self) -> ComposeResult:
        """Facts, what is said of the query, rows, the cell under the cursor, keys."""
        yield FactsBar()
        with Vertical(classes="body"):
            yield LineLabel(classes="said")
            yield LineLabel(classes="titles")
            yield DataGrid()
            yield LineLabel(classes="explained")
        yield QueryPrompt([*self.services.memory.queries, *(sql for sql in self._before if sql.strip())])
        yield KeyHints(self.hints())

    def on_mount(self) -> None:
        """Ask for a query at once."""
        self.add_class("-empty")
        self._spec = self._place.database()
        self._facts("")
        if isinstance(self._spec, str):
            self._say([(Span(f"No query can be run here: {self._spec}", "failed"),)])
        else:
            run_in_thread(self.app, partial(tables, self._spec), self._tables_read, name="tables")
        self.focus_home()

    def _tables_read(self, found: list[str]) -> None:
        self._tables = found
        self._show_tables()

    def _show_tables(self) -> None:
        """What may be asked, until something has been."""
        if self._tables and self.found is None and self._cancel is None and self.has(DataGrid, QueryPrompt):
            self._say(table_lines(self._tables, max(self.size.width - 1, 20), max(self.size.height - 4, 1)))

    def on_unmount(self) -> None:
        """What still runs is for nobody."""
        if self._cancel is not None:
            self._cancel.set()

    def hints(self) -> Sequence[Key]:
        """Few keys: where a query is typed, those that are no letters of it."""
        if isinstance(self.focused, DataGrid):
            return [*labelled(QUERY_KEYS[:3], "query.pane", "prompt"), *keys_of("back", "help", "quit")]
        rows = [replace(QUERY_KEYS[0], label="rows")] if not self.has_class("-empty") else []
        return [*_TYPED, *rows, *keys_of("back")]

    def on_descendant_focus(self) -> None:
        """Other keys do something."""
        self.query_one(KeyHints).show(self.hints())

    @property
    def grid(self) -> DataGrid:
        """The rows."""
        return self.query_one(DataGrid)

    @property
    def prompt(self) -> QueryPrompt:
        """Where the query is typed."""
        return self.query_one(QueryPrompt)

    def focus_home(self) -> None:
        """The prompt."""
        self.prompt.line.focus()

    # -- running

    @on(QueryPrompt.Left)
    def _entered(self, event: QueryPrompt.Left) -> None:
        event.stop()
        event.prevent_default()
        self._run(event.text.strip())

    def back(self) -> bool:
        """End a query that runs; else leave."""
        return self._stop()

    def _stop(self) -> bool:
        if self._cancel is None:
            return False
        self._cancel.set()
        self._cancel = None
        self._number += 1
        self._facts("cancelled")
        return True

    def _run(self, sql: str) -> None:
        if not sql or isinstance(self._spec, str):
            return
        self._stop()
        self._number += 1
        self._seconds = 0
        self._cancel = threading.Event()
        self.services.memory.keep_query(sql)
        self.prompt.line.ran(sql)
        self._facts("running, esc ends it")
        run_in_thread(
            self.app,
            partial(tried, self._spec, sql, self._cancel),
            partial(self._ran, self._number),
            partial(self._failed, self._number),
            name="query",
        )
        self.set_timer(TICK, partial(self._ticked, self._number))

    def _ticked(self, number: int) -> None:
        if number == self._number and self._cancel is not None:
            self._seconds += 1
            self._facts(f"running for {self._seconds} s, esc ends it")
            self.set_timer(TICK, partial(self._ticked, number))

    def _failed(self, number: int, error: Exception) -> None:
        if number == self._number and self.has(DataGrid):
            self._cancel = None
            self._facts("")
            self._say([(Span(f"the rows could not be shown: {error}", "failed"),)])

    def _ran(self, number: int, found: TriedQuery) -> None:
        if number != self._number or not self.has(DataGrid, QueryPrompt):
            return
        self._cancel = None
        self.found, self._compared = found, None
        if found.view is None or found.fault is not None:
            self._facts("")
            self._show_fault()
            return
        if self.comparing:
            self._compare()
        else:
            self._show_rows()

    def _show_fault(self) -> None:
        fault = self.found.fault if self.found is not None else None
        if fault is not None:
            self._say(fault_view(fault.message, fault.detail, max(self.size.width, 20)))
            if fault.column and self.found is not None and fault.line == 1:
                self.prompt.line.cursor_position = min(fault.column - 1, len(self.prompt.line.value))

    # -- what is shown

    def _facts(self, words: str) -> None:
        spec = self._spec
        name = visible(spec.name, newlines=False) if isinstance(spec, DatabaseSpec) else "no database"
        self.query_one(FactsBar).show([("title", f"Query on {name}"), ("dim", f"  {words}" if words else "")])

    def _say(self, lines: list[Line]) -> None:
        """Words in place of rows."""
        self.grid.set_view(None)
        self.add_class("-empty")
        box = self.query_one(".said", LineLabel)
        box.display = True
        box.styles.height = max(len(lines), 1)
        box.set_lines(lines)
        self.focus_home()

    def _show_rows(self) -> None:
        found = self.found
        if found is None or found.view is None:
            return
        self.comparing = False
        self._facts(f"{counted(found.view.expected, 'row')} in {_took(found.seconds)}")
        self._show(found.view, [])

    def _show(self, view: DataView, lines: list[Line]) -> None:
        self.remove_class("-empty")
        box = self.query_one(".said", LineLabel)
        box.display = bool(lines)
        box.styles.height = max(len(lines), 1)
        box.set_lines(lines)
        first = view.difference.next_difference(-1)
        start = view.place(first) if first is not None and len(view) else 0
        if len(view) and first is not None:
            self.grid.column = view.first_bad_column(start)
        self.grid.first_column = view.frozen
        self.grid.set_view(view, start)
        self.call_after_refresh(self._explain)  # the rows have no width before they are laid out
        self.grid.focus()

    def _explain(self) -> None:
        if not self.has(DataGrid):
            return
        view = self.grid.view
        self.query_one(".titles", LineLabel).set_lines(self.grid.titles() if view is not None else [])
        box = self.query_one(".explained", LineLabel)
        compared = view is not None and self._compared is not None and view is self._compared[0]
        box.display = compared and self.size.height > _LOW
        if compared and view is not None:
            lines = view.explain(self.grid.cursor, self.grid.column, max(self.size.width - 40, 40))
            box.styles.height = max(len(lines), 1)
            box.set_lines(lines)

    @on(LinePane.Moved)
    def _moved(self, event: LinePane.Moved) -> None:
        event.stop()
        self._explain()

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        event.stop()

    def on_resize(self) -> None:
        """Titles, and what there is room for, depend on the size."""
        if self.found is not None and self.found.fault is not None:
            self._show_fault()
        elif self.found is None:
            self._show_tables()
        elif self.grid.view is not None:
            self.call_after_refresh(self._explain)

    # -- keys of the rows

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            "query.pane": self._other_pane,
            "query.compare": self._toggle_compared,
            "query.next": partial(self._to_difference, 1),
            "query.previous": partial(self._to_difference, -1),
            "query.only": self._toggle_only,
        }

    def _other_pane(self) -> None:
        """The prompt, or the rows."""
        if self.prompt.line.has_focus and self.grid.display and self.grid.view is not None:
            self.grid.focus()
        else:
            self.focus_home()

    def _toggle_compared(self) -> None:
        """The rows against the expected ones, or alone again."""
        if self.found is None or self.found.result is None:
            self.services.notices.say("run a query first")
        elif self.comparing:
            self._show_rows()
        else:
            self._compare()

    def _compare(self) -> None:
        assert self.found is not None
        if self._compared is not None:
            self._show_compared(self._number, self._compared)
            return
        run_in_thread(
            self.app,
            partial(against_expected, self._place, self.found),
            partial(self._show_compared, self._number),
            partial(self._failed, self._number),
            name="compare",
            opens=True,
        )

    def _show_compared(self, number: int, made: tuple[DataView, list[Line]] | str) -> None:
        if number != self._number or not self.has(DataGrid) or self.found is None:
            return
        if isinstance(made, str):
            self._show_rows()
            self.services.notices.say(made)
            return
        self._compared, self.comparing = made, True
        view, lines = made
        self._facts(f"against the expected rows, in {_took(self.found.seconds)}")
        width = max(self.size.width, 20)
        self._show(view, [fit(line, width) for line in (view.summary(), *lines)])

    def _to_difference(self, step: int) -> None:
        """The next differing row, or the one before."""
        view = self.grid.view
        found = view.next_difference(self.grid.cursor, step) if view is not None and len(view) else None
        if view is None or found is None:
            self.services.notices.say("no later difference" if step > 0 else "no earlier difference")
            return
        self.grid.move_to(found)
        if bad := view.bad_columns(view.row(found)):
            self.grid.to_column(bad[0])

    def _toggle_only(self) -> None:
        """Only rows that differ, or all."""
        view = self.grid.view
        if view is None or not self.comparing:
            self.services.notices.say("c compares with the expected rows first")
            return
        here = view.aligned(self.grid.cursor) if len(view) else 0
        view.only = not view.only
        self.grid.set_view(view, view.place(here) if len(view) else 0)
        self._explain()


def _took(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"
