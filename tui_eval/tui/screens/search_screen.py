"""What a search through a run's transcripts found; enter opens the place."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from tui_eval.case_names import full_name
from tui_eval.guard.text import visible
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import OPEN_KEYS, PANE_KEYS, SEARCH_KEYS, Key, bindings
from tui_eval.tui.loaders.runs_loader import Everywhere, find, find_everywhere
from tui_eval.tui.screens.attempt_beside import BREAKPOINTS, AttemptBelow, LookedAt
from tui_eval.tui.screens.place import Place, keys_in, keys_of, labelled
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.state.app_state import CasePointer, where_is
from tui_eval.tui.state.lists.telling_apart import RowName
from tui_eval.tui.state.runs.search_view import (
    HINT,
    FoundEntry,
    SoughtPlace,
    began_at,
    names_of,
    place_of,
    row_line,
)
from tui_eval.tui.state.text.lines import Line
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.line_pane import LinePane, RowTable
from tui_eval.tui.widgets.lines_pane import AttemptPane

WAITING = "Searching."
PROGRESS = 0.3
"""Seconds between two words about how far it is."""


class ResultTable(RowTable):
    """Two lines for each result, which the cursor takes together."""

    def move_to(self, row: int, *, top: bool = False) -> None:
        """Put the cursor on the first line of a result."""
        before = self.cursor
        super().move_to(row - row % 2, top=top)
        self.refresh_row(before + 1, self.cursor + 1)

    def move_by(self, step: int) -> None:
        """Results down (or up)."""
        self.touched = True
        self.move_to(self.cursor + 2 * step)

    def cursor_line(self, row: int) -> bool:
        """Both lines."""
        return bool(self.rows) and row // 2 == self.cursor // 2


class SearchScreen(Place, inherit_bindings=False):
    """Results, best first: case, turn, who said it, the words with what stands around them."""

    TITLE = "Search"
    kind = "search"
    BINDINGS: ClassVar = [*bindings("search", SEARCH_KEYS), *bindings("screen", PANE_KEYS)]
    KEY_SECTIONS = (("Results", (*OPEN_KEYS, *SEARCH_KEYS, *PANE_KEYS)), ("Moving", keys_in("moving")))
    VERTICAL_BREAKPOINTS = BREAKPOINTS
    DEFAULT_CSS = "SearchScreen RowTable { height: 1fr; }"

    def __init__(self, folder: Path, words: str) -> None:
        super().__init__()
        self._folder = folder
        self._words = words
        self.table = ResultTable(
            self._draw, lambda row: (row[0].run_id, row[0].hit.attempt_ref, row[1]), empty=WAITING
        )
        self.below = AttemptBelow(self, self.services, self._looked_at)
        self._search = 0
        self._told = 0.0
        self._everywhere = False
        self._names: dict[int, RowName] = {}
        """What the case of each result is called."""
        self._one_suite = False
        self._begun_at: dict[str, str] = {}
        """When the runs of the results began."""

    def _draw(self, row: tuple[FoundEntry, int], width: int) -> Line:
        found = row[0]
        begun = self._begun_at.get(found.run_id, "")
        name = self._names.get(id(found))
        return row_line(found, row[1], width, name, begun, one_suite=self._one_suite)

    def compose(self) -> ComposeResult:
        """Facts, results, the attempt of the one under the cursor, keys."""
        yield FactsBar()
        yield self.table
        yield AttemptPane()
        yield KeyHints(self.hints())

    def on_mount(self) -> None:
        """Search."""
        self.table.focus()
        self._begin()

    def on_unmount(self) -> None:
        """What is still being gathered is for nobody."""
        self._search += 1

    def hints(self) -> Sequence[Key]:
        """Few keys."""
        found = keys_of("list.open") if self.table.rows else []
        keys = [*found, *SEARCH_KEYS, *keys_of("back", "help", "quit")]
        return labelled(keys, "search.runs", "this run") if self._everywhere else keys

    def _begin(self) -> None:
        self._search += 1
        number = self._search
        self._bar("")
        self.table.empty = WAITING
        self.table.set_rows([], keep=False)
        self.table.relayout()
        self.query_one(KeyHints).show(self.hints())

        def tell(words: str) -> bool:
            """Called in the thread."""
            if number == self._search and time.monotonic() - self._told > PROGRESS:
                self._told = time.monotonic()
                self.app.call_later(self._gathering, number, words)
            return number == self._search

        def one_run(done: int, total: int) -> bool:
            return tell(f"Reading the transcripts: {done:,} of {total:,} attempts.")

        def all_runs(run: int, runs: int, done: int, total: int) -> bool:
            attempts = f", {done:,} of {total:,} attempts" if total else ""
            return tell(f"Reading run {run + 1:,} of {runs:,}{attempts}; esc ends it.")

        if self._everywhere:
            work = partial(find_everywhere, self.services.state.root, self._words, all_runs)
            run_in_thread(self.app, work, partial(self._found_everywhere, number), name="search", opens=True)
        else:
            work = partial(find, self._folder, self._words, one_run)
            run_in_thread(self.app, work, partial(self._found, number), name="search", opens=True)

    def _bar(self, words: str) -> None:
        asked = visible(self._words, newlines=False)
        where = "Search in all runs" if self._everywhere else "Search"
        self.query_one(FactsBar).show([("title", f"{where}: {asked}"), ("dim", f"  {words}")])

    def _gathering(self, number: int, words: str) -> None:
        """A run that is searched first takes a while."""
        if stands(self) and number == self._search:
            self.table.empty = words
            self.table.relayout()

    def _found_everywhere(self, number: int, answer: Everywhere) -> None:
        if number != self._search or not self.has(FactsBar):
            return
        lost = f", {answer.unreadable} cannot be read" if answer.unreadable else ""
        runs = f"{answer.runs:,} of {answer.searched:,} run{'s' * (answer.searched != 1)}{lost}"
        self._show(answer.found, f"{_places(len(answer.found), answer.total)} in {runs}")
        self.table.empty = (
            f"No transcript of {answer.searched:,} runs{lost} holds all these words; / asks again."
        )
        self.table.relayout()

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            **self.below.handlers(),
            "search.again": self._ask,
            "search.runs": self._toggle_runs,
        }

    def _toggle_runs(self) -> None:
        """Search all runs, or only this one again."""
        self._everywhere = not self._everywhere
        self._begin()

    def _found(self, number: int, answer: tuple[list[FoundEntry], int]) -> None:
        if number != self._search or not self.has(FactsBar):
            return
        found, total = answer
        cases = len({one.case.id for one in found})
        self._show(found, f"{_places(len(found), total)} in {cases:,} case{'s' * (cases != 1)}")
        self.table.empty = "No transcript of it holds all these words; a looks in all runs, / asks again."
        self.table.relayout()

    def _show(self, found: list[FoundEntry], words: str) -> None:
        self._bar(words if found else "")
        names = names_of(found, self.services.state.name_of)
        self._names = {id(one): name for one, name in zip(found, names, strict=True)}
        self._one_suite = len({one.case.suite for one in found}) == 1
        self._begun_at = began_at(one.run_id for one in found)
        self.table.set_rows([(one, line) for one in found for line in (0, 1)], keep=False)
        self.query_one(KeyHints).show(self.hints())
        self.below.show()

    async def _ask(self) -> None:
        """Ask for other words."""
        await self.prompts.ask(Prompt("search transcripts", self._words, HINT), self._asked)

    def _asked(self, text: str, kept: bool) -> None:
        words = text.strip()
        if kept and words and words != self._words:
            self._words = words
            self._begin()

    def focus_home(self) -> None:
        """The results."""
        self.table.focus()

    def current(self) -> CasePointer | None:
        """The case of the result under the cursor."""
        row = self.table.current
        return place_of(row[0], self._folder.name) if row is not None else None

    @on(LinePane.Moved)
    def _moved(self, event: LinePane.Moved) -> None:
        event.stop()
        self.below.moved()

    def _looked_at(self) -> LookedAt | None:
        """The attempt of the result, in the turn where the words stand."""
        row, pointer = self.table.current, self.current()
        if row is None or pointer is None:
            return None
        state, turn = self.services.state, row[0].hit.turn
        where = where_is(state, pointer, family=False)
        if not self._everywhere:  # also a run from elsewhere
            where = replace(where, folder=self._folder)
        name = full_name(*self._names[id(row[0])][:2])
        return LookedAt((pointer, turn), [("", where)], [("title", name)], turn=turn)

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        event.stop()
        row, pointer = self.table.current, self.current()
        if row is None or pointer is None:
            return
        hit = row[0].hit
        sought = SoughtPlace(hit.turn, hit.kind, self._words.split())
        self.services.places.show("case", pointer, sought=sought)


def _places(shown: int, total: int) -> str:
    best = f"the best {shown:,} of " if total > shown else ""
    return f"{best}{total:,} place{'s' * (total != 1)}"
