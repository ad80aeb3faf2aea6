"""Compare: two runs, or two agents of one, joined by case; what regressed first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from tui_eval.reports.comparison import CHANGES, Comparison
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.compare_loader import Half, Sides, changed_sides, load_comparison
from tui_eval.tui.keys import Key, bindings
from tui_eval.tui.keys_runs import COMPARE_KEYS, OPEN_KEYS
from tui_eval.tui.pointer import CasePointer
from tui_eval.tui.screens.place import Place, keys_in, keys_of
from tui_eval.tui.screens.sides import SidesScreen
from tui_eval.tui.state.compare_view import Row, row_line, rows, summary_lines
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.line_label import LineLabel
from tui_eval.tui.widgets.line_pane import LinePane
from tui_eval.tui.widgets.run_table import RowTable

STYLES = {"regressed": "bad", "fixed": "good", "flaky": "warn"}
"""Styles of the changes in the line at the top."""


class CompareScreen(Place, inherit_bindings=False):
    """Facts of both, then the cases by change; enter shows the two transcripts."""

    TITLE = "Compare"
    BINDINGS: ClassVar = bindings("compare", COMPARE_KEYS)
    KEY_SECTIONS = (("Compare", (*OPEN_KEYS, *COMPARE_KEYS)), ("Moving", keys_in("moving")))
    DEFAULT_CSS = """
    CompareScreen LineLabel { height: 3; background: $panel; padding: 0 1; }
    CompareScreen RowTable { height: 1fr; }
    """

    def __init__(self, before: Half, after: Half) -> None:
        super().__init__()
        self.before, self.after = before, after
        self.comparison: Comparison | None = None
        self.only_changed = False
        self._generation = 0
        self._table = RowTable(row_line, lambda row: row.key, empty="Reading both runs.")

    def compose(self) -> ComposeResult:
        """Title, facts, cases, keys."""
        yield FactsBar()
        yield LineLabel()
        yield self._table
        yield KeyHints(self.hints())

    def on_mount(self) -> None:
        """Read both."""
        self._table.focus()
        self._load()

    def hints(self) -> Sequence[Key]:
        """Few keys."""
        own = {key.id: key for key in COMPARE_KEYS}
        return [
            *keys_of("list.open"),
            own["compare.changed"],
            own["compare.swap"],
            *keys_of("back", "help", "quit"),
        ]

    def _load(self) -> None:
        self._generation += 1
        work = partial(load_comparison, self.before, self.after)
        run_in_thread(self.app, work, partial(self._take, self._generation), name="compare")

    def _take(self, generation: int, comparison: Comparison) -> None:
        if generation == self._generation and self.is_mounted:
            self.comparison = comparison
            self._show(keep=False)

    def _show(self, *, keep: bool = True) -> None:
        comparison = self.comparison
        if comparison is None:
            return
        found = rows(comparison, only_changed=self.only_changed)
        self._table.empty = "Nothing changed." if comparison.cases else "Neither run has a finished case."
        self._table.set_rows(found, keep=keep)
        if not found:
            self._table.relayout()
        elif not keep and len(found) > 1:
            self._table.move_to(1)
        parts = [("title", "Compare"), ("dim", f"  {len(comparison.cases):,} cases")]
        for change in CHANGES[:3]:
            number = comparison.count(change)
            if number:
                parts.append((STYLES[change], f"  {number:,} {change}"))
        self.query_one(FactsBar).show(parts)
        lines = summary_lines(comparison, self.before.name, self.after.name, max(self.size.width - 2, 20))
        self.query_one(LineLabel).set_lines(lines)

    def on_resize(self) -> None:
        """The facts depend on the width."""
        self._show()

    def current(self) -> CasePointer | None:
        """The case under the cursor, as the second run has it."""
        row: Row | None = self._table.current
        if row is None or row.case is None:
            return None
        half, one = (self.after, row.case.after) if row.case.after else (self.before, row.case.before)
        assert one is not None
        return CasePointer(one.case_id, one.agent, one.model, half.folder.name)

    def go_to(self, pointer: CasePointer) -> None:
        """Put the cursor on a case."""
        for number, row in enumerate(self._table.rows):
            if row.case is not None and row.case.case_id == pointer.case_id:
                self._table.move_to(number)
                return

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        event.stop()
        row: Row | None = self._table.current
        if row is None or row.case is None:
            return
        pointer = self.current()
        if row.case.before is None or row.case.after is None:
            if pointer is not None:
                self.eval_app.open_case(pointer)
            return

        def take(sides: Sides | None) -> None:
            if not self.is_current:
                return
            if sides is not None:
                self.app.push_screen(SidesScreen(sides))
            elif pointer is not None:
                self.eval_app.open_case(pointer)

        work = partial(changed_sides, self.eval_app.state.root, self.before, self.after, row.case)
        run_in_thread(self.app, work, take, name="sides")

    def action_changed(self) -> None:
        """Without the cases that are as they were, or with them."""
        self.only_changed = not self.only_changed
        self._show()

    def action_swap(self) -> None:
        """The other way round."""
        self.before, self.after = self.after, self.before
        self._load()
