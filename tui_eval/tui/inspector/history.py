"""Tab 6: this case over its runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer

from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.inspector.tab import REST, InspectorTab
from tui_eval.tui.loaders.case_loader import read_answers
from tui_eval.tui.services import HasServices
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.case.case_history import CasePast, PastAttempt
from tui_eval.tui.state.case.history_view import changed_words, detail, plots, reasons, row_line, rows, title
from tui_eval.tui.state.text.blocks import whole_text
from tui_eval.tui.state.text.lines import Line
from tui_eval.tui.widgets.line_pane import LineLabel, LinePane
from tui_eval.tui.widgets.text_pane import TextPane

LOW = 14
"""Lines below which two plots have to do."""


class HistoryTab(InspectorTab):
    """Plot above, attempts in the middle, the one under the cursor below; `} {` go from one to the
    next, enter shows it in the other tabs."""

    DEFAULT_CSS = """
    HistoryTab Vertical { height: 1fr; }
    HistoryTab .plot { height: 3; }
    HistoryTab HistoryTable { height: 3; }
    HistoryTab TextPane { height: 1fr; border-top: hkey $surface-lighten-2; }
    HistoryTab.-zoomed HistoryTable, HistoryTab.-zoomed TextPane, HistoryTab.-zoomed .titles { display: none; }
    HistoryTab.-empty HistoryTable, HistoryTab.-empty LineLabel { display: none; }
    HistoryTab.-empty TextPane { display: block; }
    """

    foot = ("list.open", "case.zoom")
    foot_words = MappingProxyType({"list.open": "show it", "case.zoom": "plots"})

    def foot_of(self, content: CaseContent) -> tuple[str, ...]:
        """Also of a case that runs again; without a past there is nothing to show."""
        return self.foot if content.past is not None and content.past.attempts else ()

    class Chosen(Message):
        """Enter on an attempt."""

        def __init__(self, attempt: PastAttempt) -> None:
            super().__init__()
            self.attempt = attempt

    def __init__(self) -> None:
        super().__init__()
        self._past: CasePast | None = None
        self._resting: Timer | None = None

    def compose(self) -> ComposeResult:
        """Plot, titles, attempts, detail."""
        with Vertical():
            yield LineLabel(classes="plot")
            yield LineLabel(classes="titles")
            yield HistoryTable()
            yield TextPane(empty="Reading what became of this case…")

    @property
    def table(self) -> HistoryTable:
        """The attempts."""
        return self.query_one(HistoryTable)

    @property
    def main(self) -> LinePane:
        """The attempts, or the text where there are none."""
        return self.text if self.has_class("-empty") else self.table

    @property
    def text(self) -> TextPane:
        """The attempt under the cursor."""
        return self.query_one(TextPane)

    def show(self, content: CaseContent, *, keep: bool) -> None:
        """Show what is known of the case; nothing until it was read."""
        self._past = content.past
        none = content.past is None or not content.past.attempts
        self.set_class(none, "-empty")
        if none:
            self.text.empty = (
                "Reading what became of this case…"
                if content.past is None
                else "It has no past yet: r runs it."
            )
            self.text.set_blocks([], keep=False)
        else:
            assert content.past is not None
            here = (content.run_id, content.row.id if content.row is not None else 0)
            self.table.set_past(content.past, here, keep=keep)
            self.post_message(self.Shown())
            self._sized()
            self._detail()

    def _sized(self) -> None:
        """The plot takes up to a third of the tab, the attempts up to a third; on a low one the attempt below
        keeps half."""
        if self._past is None or not self._past.attempts:
            return
        height = self.size.height
        zoomed = self.has_class("-zoomed")
        high = max((height - 2) // 4, 1) if zoomed else 1 if height < 24 else 3
        most = 4 if zoomed or height >= LOW else 2
        lines = plots(self._past, self.size.width, high, whole=zoomed, most=most)
        plot = self.query_one(".plot", LineLabel)
        plot.styles.height = min(len(lines), height) if zoomed else min(len(lines), max(height // 3, 2))
        plot.set_lines(lines)
        self.query_one(".titles", LineLabel).set_lines([title(self.size.width)])
        self.table.styles.height = max(1, min(len(self.table.rows), height // (3 if height >= LOW else 4)))

    def zoom(self) -> None:
        """The plots alone, large."""
        super().zoom()
        self._sized()

    def on_resize(self) -> None:
        """The plot depends on the width."""
        super().on_resize()
        self._sized()

    def _detail(self) -> None:
        table = self.table
        if self._past is not None and table.rows:
            two = table.rows[table.cursor : table.cursor + 2]
            if any(one.answer is None for one in two):
                work = partial(read_answers, cast("HasServices", self.app).services.state.root, two)
                run_in_thread(
                    self.app, work, lambda _: self._detail() if stands(self) else None, name="answers"
                )
                return
            blocks = detail(self._past, table.rows, table.cursor, table.changed[table.cursor])
            self.text.set_blocks(blocks, keep=False)

    @on(LinePane.Moved)
    def _moved(self, event: LinePane.Moved) -> None:
        if isinstance(event.pane, HistoryTable):
            # a key that is held costs its two rows; what stands below follows when it rests
            if self._resting is not None:
                self._resting.stop()
            self._resting = self.set_timer(REST, self._detail)

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        if isinstance(event.pane, HistoryTable) and event.row < len(self.table.rows):
            event.stop()
            self.post_message(self.Chosen(self.table.rows[event.row]))

    def has_turn(self, step: int) -> bool:
        """Whether an attempt stands below (or above)."""
        return 0 <= self.table.cursor + step < len(self.table.rows)

    def turn(self, step: int) -> str:
        """To the next (older) or previous attempt."""
        before = self.table.cursor
        self.table.move_to(before + step)
        if self.table.cursor != before:
            return ""
        return "no older attempt" if step > 0 else "no newer attempt"

    def text_maker(self) -> Callable[[], str]:
        """The plot, the attempts and the one under the cursor."""
        above = [self.query_one(".plot", LineLabel).rows_text(), self.table.rows_text(), ""]
        blocks = list(self.text.blocks)
        return lambda: "\n".join([*above, whole_text(blocks)])


# -- The list of a case's attempts over its runs, newest first.


class HistoryTable(LinePane):
    """One row per attempt; enter shows it in the other tabs."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[PastAttempt] = []
        self.changed: list[str] = []
        self.reasons: list[str] = []
        self.here: tuple[str, int] = ("", 0)

    def set_past(self, past: CasePast, here: tuple[str, int], *, keep: bool) -> None:
        """Show other attempts; `here` is the run and attempt that the other tabs show."""
        self.rows, self.changed, self.here = rows(past), changed_words(past), here
        self.reasons = reasons(self.rows)
        if not keep:
            places = (i for i, one in enumerate(self.rows) if (one.run_id, one.row.id) == here)
            self.cursor = next(places, 0)
        self.relayout()
        if not keep:
            self.show_cursor(top=True)

    def relayout(self) -> None:
        """The width changed."""
        self.set_row_count(len(self.rows))

    def row_line(self, row: int) -> Line:
        """One attempt."""
        one = self.rows[row]
        here = (one.run_id, one.row.id) == self.here
        return row_line(one, self.changed[row], self.reasons[row], self.text_width, here=here)
