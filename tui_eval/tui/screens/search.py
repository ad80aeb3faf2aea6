"""What a search through a run's transcripts found; enter opens the place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.timer import Timer

from tui_eval.tui.background import run_in_thread
from tui_eval.tui.keys import Key
from tui_eval.tui.keys_runs import OPEN_KEYS
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.runs_loader import find
from tui_eval.tui.screens.place import Place, keys_in, keys_of
from tui_eval.tui.state.lines import Line
from tui_eval.tui.state.search_view import Found, place_of, row_line
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.line_pane import LinePane
from tui_eval.tui.widgets.run_table import RowTable
from tui_eval.tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from tui_eval.tui.screens.case_screen import CaseScreen

TRIES = 100
"""Looks at a Case screen, a twentieth of a second apart, until its transcript is there."""


class SearchScreen(Place):
    """Results, best first: case, turn, who said it, the words with what stands around them."""

    TITLE = "Search"
    KEY_SECTIONS = (("Results", OPEN_KEYS), ("Moving", keys_in("moving")))

    def __init__(self, folder: Path, words: str) -> None:
        super().__init__()
        self._folder = folder
        self._words = words
        self._table = RowTable(self._draw, lambda row: (row[0].hit.attempt_ref, row[1]), empty="Searching.")
        self._timer: Timer | None = None

    def _draw(self, row: tuple[Found, int], width: int) -> Line:
        return row_line(row[0], row[1], width)

    def compose(self) -> ComposeResult:
        """Facts, results, keys."""
        yield FactsBar()
        yield self._table
        yield KeyHints(self.hints())

    def on_mount(self) -> None:
        """Search."""
        self._table.focus()
        self._bar("")
        work = partial(find, self._folder, self._words)
        run_in_thread(self.app, work, self._found, name="search", opens=True)

    def hints(self) -> Sequence[Key]:
        """Few keys."""
        return keys_of("list.open", "back", "help", "quit")

    def _bar(self, words: str) -> None:
        from tui_eval.guard.text import visible

        asked = visible(self._words, newlines=False)
        self.query_one(FactsBar).show([("title", f"Search: {asked}"), ("dim", f"  {words}")])

    def _found(self, found: list[Found]) -> None:
        if not self.is_mounted:
            return
        cases = len({one.case.id for one in found})
        self._bar(f"{len(found):,} places in {cases:,} cases" if found else "")
        self._table.empty = "Nothing in this run holds all these words; esc, and / asks again."
        rows = [(one, line) for one in found for line in (0, 1)]
        self._table.set_rows(rows, keep=False)
        self._table.relayout()

    def current(self) -> CasePointer | None:
        """The case of the result under the cursor."""
        row = self._table.current
        return place_of(row[0], self._folder.name) if row is not None else None

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        event.stop()
        row, pointer = self._table.current, self.current()
        if row is None or pointer is None:
            return
        from tui_eval.tui.screens.case_screen import CaseScreen

        app = self.eval_app
        app.case_view = {**app.case_view, "tab": 0}
        screen = CaseScreen(pointer)
        self.app.push_screen(screen)
        hit = row[0].hit
        self._show_turn(screen, hit.turn, hit.kind, 0)

    def _show_turn(self, screen: CaseScreen, turn: int, kind: str, tries: int) -> None:
        """Bring the turn into view as soon as the transcript is there."""
        pane = screen.tab.text if screen.is_mounted and screen.content.attempt is not None else None
        if pane is not None and show_place(pane, turn, kind, self._words.split()):
            return
        if tries < TRIES and (tries == 0 or screen.is_attached):
            self.app.set_timer(0.05, partial(self._show_turn, screen, turn, kind, tries + 1))


def show_place(pane: TextPane, turn: int, kind: str, words: Sequence[str]) -> bool:
    """Mark the first of the words and go to it in this turn (in an entry of this kind, where there is
    one); False while there is no text."""
    blocks = pane.blocks
    if not blocks or not pane.row_count:
        return False
    of_turn = [i for i, block in enumerate(blocks) if block.turn == turn]
    of_kind = [i for i in of_turn if blocks[i].kind == kind]
    holding = [i for i in of_kind if any(w.lower() in "\n".join(blocks[i].text()).lower() for w in words[:1])]
    best = next(iter([*holding, *of_kind, *of_turn]), None)
    if best is not None:
        pane.jump_to(best)
    if words:
        pane.find(words[0])
    return True
